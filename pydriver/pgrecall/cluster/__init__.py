"""Banks on several servers, behind a router with the same functions."""
