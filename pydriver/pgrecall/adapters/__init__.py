"""Adapters: pgrecall as the memory of other libraries. Each module imports its library alone."""
