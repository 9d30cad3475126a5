"""Adapters to other libraries. Each module imports only its own library."""

LONGEST = 100_000
"""The most characters that the text of a fact or message can have."""


def missing(extra: str, error: ImportError) -> ImportError:
    """Return the error for a missing package, with the command that installs it."""
    return ImportError(
        f"package {error.name} is missing. Run: pip install 'pgrecall[{extra}]'", name=error.name
    )
