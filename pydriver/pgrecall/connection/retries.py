"""Decide which failed calls are retried, and when."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain, repeat

import psycopg

from pgrecall.connection.tracing import Trace

_RETRY_SECONDS = (0.05, 0.2, 0.8)
RETRIES = 3
_CONFLICT_TRIES = 12  # retries of conflicts between transactions
_ROLLED_BACK = ("40001", "40P01", "57P03")  # nothing was done, so a retry is safe
_UPGRADED = ("42883", "42703", "42P01")  # function, column or table that is gone
_REPLACED = "cache lookup failed for function"  # XX000, of a function that was just replaced
_CONNECTION_LOST = ("08", "57P01", "57P02")
# statement_timeout and transaction_timeout; the latter ends the connection, too.
_OUT_OF_TIME = ("57014", "25P04")
_NOT_YET = ("starting up", "shutting down", "recovery", "too many", "connection slots")
"""Messages of a server that will soon accept connections; they come without a code."""


def retry_delays() -> Iterator[float]:
    """Yield, without end, the seconds to wait before each retry, with a random part."""
    for seconds in chain(_RETRY_SECONDS, repeat(_RETRY_SECONDS[-1])):
        yield seconds * random.uniform(0.5, 1.5)


def is_transient(
    error: psycopg.Error, is_repeatable: bool, trace: Trace, repetitions: int = 0
) -> bool:
    """Return whether a retry of a call may succeed and is safe, after some retries."""
    state = error.sqlstate or ""
    if is_cut(error) or repetitions >= (_CONFLICT_TRIES if state == "40001" else RETRIES):
        return False
    if not trace.is_sent:
        return _may_connect(error)
    if state in _ROLLED_BACK:
        return True
    is_replaced = state == "XX000" and _REPLACED in str(error)
    if (state in _UPGRADED or is_replaced) and repetitions == 0:
        return True  # a call that waited for an upgrade goes on in its old body, the next does not
    return is_repeatable and (trace.is_lost or state.startswith(_CONNECTION_LOST))


def is_cut(error: psycopg.Error) -> bool:
    """Return whether the server ended a statement that took too long: it would again."""
    return error.sqlstate in _OUT_OF_TIME


def is_outage(error: psycopg.Error) -> bool:
    """Return whether the server was lost, or cannot be reached, but may come back."""
    state = error.sqlstate
    if state is None:
        return _may_connect(error)
    return state == "57P03" or state.startswith(_CONNECTION_LOST)


def _may_connect(error: psycopg.Error) -> bool:
    """Return whether connecting again may succeed.

    It may not if the server refused the role, or if a pool has already waited for a connection.
    """
    if type(error).__name__ in ("PoolTimeout", "PoolClosed"):
        return False
    said = str(error)
    return isinstance(error, psycopg.OperationalError) and (
        "FATAL" not in said or any(words in said for words in _NOT_YET)
    )
