"""Times and time limit of a call, and a warning about long waits for a connection."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import signature
from math import inf
from time import perf_counter
from typing import Any

import psycopg

from pgrecall.calls.call import Call, limit_time, unlimit_time
from pgrecall.errors import OutOfTime

logger = logging.getLogger(__name__)

SLOW_CONNECTION_SECONDS = 0.05
WARN_EVERY_SECONDS = 60.0
_LEAST_SECONDS = 0.002  # the server's unit; a limit of 0 would mean none


@dataclass(slots=True)
class Trace:
    """Times of a call in seconds, and its deadline."""

    wait: float = 0.0
    database: float = 0.0
    is_lost: bool = False
    is_sent: bool = False
    timeout: float | None = None
    start: float = field(default_factory=perf_counter)

    @property
    def left(self) -> float | None:
        """Seconds until the deadline, at least 0; None without a deadline."""
        if self.timeout is None:
            return None
        return max(0.0, self.start + self.timeout - perf_counter())

    def pool_arguments(
        self, connection: Callable[..., object], at_most: float | None = None
    ) -> dict[str, float]:
        """Return the time limit for borrowing a connection, if the pool supports one."""
        left = min((one for one in (self.left, at_most) if one is not None), default=None)
        if left is None or "timeout" not in signature(connection).parameters:
            return {}
        return {"timeout": max(left, _LEAST_SECONDS)}

    def limits(self) -> tuple[Call[Any, Any] | None, Call[Any, Any]]:
        """Return the calls that set and restore the time limit of statements."""
        left = self.left
        limit = None if left is None else limit_time(max(left, _LEAST_SECONDS))
        return limit, unlimit_time()

    def too_late(self, error: psycopg.Error) -> OutOfTime | None:
        """Return the error to raise if a statement or a pool failed because of the deadline."""
        is_cut = isinstance(error, psycopg.errors.QueryCanceled) or error.sqlstate is None
        if not is_cut or self.left is None or self.left > _LEAST_SECONDS:
            return None
        return OutOfTime(
            f"the timeout of {self.timeout:g} s passed before the database answered",
            hint="Allow more time with timeout=..., or ask for less with budget='low'.",
        )

    def acquired(self, since: float, source: object = None) -> None:
        """Record how long a connection took; warn if it was long.

        Args:
            since: When it was requested.
            source: The pool that it came from, for its statistics.

        """
        seconds = perf_counter() - since
        self.wait += seconds
        if seconds > SLOW_CONNECTION_SECONDS:
            _warn_of_wait(seconds, source)

    def returned(self, since: float) -> None:
        """Record how long it took to commit and to return the connection."""
        self.database += perf_counter() - since

    @contextmanager
    def timing(self, connection: psycopg.BaseConnection[object]) -> Iterator[None]:
        """Time a statement on a connection; record whether the connection was lost."""
        self.is_lost = False
        self.is_sent = True
        start = perf_counter()
        try:
            yield
        except psycopg.Error:
            self.is_lost = connection.closed
            raise
        finally:
            self.database += perf_counter() - start


_warned_at = -inf


def _warn_of_wait(seconds: float, source: object) -> None:
    """Warn about a long wait, at most once in a while."""
    global _warned_at
    if perf_counter() - _warned_at < WARN_EVERY_SECONDS:
        return
    _warned_at = perf_counter()
    state = ""
    if hasattr(source, "get_stats"):
        found = source.get_stats()
        size, idle, waiting = (
            found.get(name, 0) for name in ("pool_size", "pool_available", "requests_waiting")
        )
        state = f"; the pool has {size}, {idle} idle, and {waiting} callers wait"
    logger.warning("waited %.0f ms for a connection%s", seconds * 1000, state)
