"""What is sent again after a failure, and when."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain, repeat

import psycopg

from pgrecall.connection.tracing import Trace

_RETRY_SECONDS = (0.05, 0.2, 0.8)
_TRIES = 3  # after the first
_CONFLICT_TRIES = 12  # of what others' commits made fail: somebody else got on
_ROLLED_BACK = ("40001", "40P01", "57P03")  # nothing was done: always safe to repeat
_CONNECTION_LOST = ("08", "57P01", "57P02")
_NOT_YET = ("starting up", "shutting down", "recovery", "too many", "connection slots")
"""What a server says that takes connections again before long; it has no code for it then."""


def retry_delays() -> Iterator[float]:
    """Give the seconds to wait before each repetition, a little at random."""
    for seconds in chain(_RETRY_SECONDS, repeat(_RETRY_SECONDS[-1])):
        yield seconds * random.uniform(0.5, 1.5)


def is_transient(
    error: psycopg.Error, is_repeatable: bool, trace: Trace, repetitions: int = 0
) -> bool:
    """Tell whether repeating a call may succeed and is safe, after so many repetitions."""
    state = error.sqlstate or ""
    if repetitions >= (_CONFLICT_TRIES if state == "40001" else _TRIES):
        return False
    if not trace.is_sent:
        return _may_connect(error)
    if state in _ROLLED_BACK:
        return True
    return is_repeatable and (trace.is_lost or state.startswith(_CONNECTION_LOST))


def _may_connect(error: psycopg.Error) -> bool:
    """Tell whether connecting again may succeed: nothing was refused for good, nothing waited for.

    A pool that gave no connection in time has waited long enough.
    """
    if type(error).__name__ in ("PoolTimeout", "PoolClosed"):
        return False
    said = str(error)
    return isinstance(error, psycopg.OperationalError) and (
        "FATAL" not in said or any(words in said for words in _NOT_YET)
    )
