"""Adapters to other libraries. Each module imports only its own library."""

from typing import TypeVar

from pgrecall.aio import AsyncRecall
from pgrecall.client import Recall
from pgrecall.errors import InvalidArgument

Client = TypeVar("Client", Recall, AsyncRecall)

LONGEST = 100_000
"""The most characters that the text of a fact or message can have."""


def missing(extra: str, error: ImportError) -> ImportError:
    """Return the error for a missing package, with the command that installs it."""
    return ImportError(
        f"package {error.name} is missing. Run: pip install 'pgrecall[{extra}]'", name=error.name
    )


def checked(memory: Client, kind: type[Client]) -> Client:
    """Return a client that an adapter was given.

    Raises:
        InvalidArgument: it is the other client, whose calls the adapter would wait for in vain.

    """
    other = Recall if kind is AsyncRecall else AsyncRecall
    if isinstance(memory, other):
        raise InvalidArgument(
            f"memory must be a client of class {kind.__name__}, not {other.__name__}",
            hint=f"Make it with {kind.__name__}.connect(pool_size=8), also for concurrent and async"
            " calls.",
        )
    return memory
