"""Whether a server, the installed packages and every bank are well, and what to do if not."""

LEAST_RECALL = 0.9  # of the nearest that a vector index has to find
