"""Models that run here, on the threads of one worker, and models behind an endpoint."""
