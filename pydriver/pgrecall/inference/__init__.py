"""Models: those that run here, on the threads of one worker, and those behind an endpoint."""
