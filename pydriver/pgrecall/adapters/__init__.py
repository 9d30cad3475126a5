"""Adapters to other libraries. Each module imports only its own library."""
