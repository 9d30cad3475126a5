"""Check the server, the packages and the banks, and give advice."""

LEAST_RECALL = 0.9  # minimum recall of a vector index
