"""Banks on several servers, behind a router that has the same functions as they have."""
