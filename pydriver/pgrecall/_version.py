"""The version being developed; sql/values/version.sql says the same, and a test compares them."""

__version__ = "0.2.0"
