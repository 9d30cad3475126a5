"""Standbys to read from: whose turn it is, who rests, what they must have replayed."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from math import inf
from time import perf_counter
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgrecall import calls
from pgrecall.arguments import check_type
from pgrecall.calls.call import Call
from pgrecall.connection.connecting import named_dsn
from pgrecall.connection.tracing import Trace
from pgrecall.errors import InvalidArgument

logger = logging.getLogger(__name__)

MAX_LAG = 10.0
REPLICA_SECONDS = 2  # to wait for a connection to a replica; libpq takes no less
REST_SECONDS = 5.0  # of one that cannot be reached
_POSITION = re.compile(r"[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}")


class Replicas:
    """The standbys of a client: whose turn it is, who rests, what they must have replayed.

    Attributes:
        sources: Their connection strings or pools.

    """

    def __init__(
        self, sources: Sequence[object], max_lag: float | None, reads_own_writes: bool
    ) -> None:
        """Open nothing yet.

        Raises:
            InvalidArgument: replicas is one text, or max_lag below 0.

        """
        check_type("replicas", sources, Sequence)
        check_type("max_lag", max_lag, float | None)
        check_type("read_your_writes", reads_own_writes, bool)
        if isinstance(sources, str):
            raise InvalidArgument("replicas is a text, not a list of them", hint="Give a list.")
        if max_lag is not None and not max_lag >= 0:
            raise InvalidArgument(
                f"max_lag must be at least 0, not {max_lag}", hint="Give seconds."
            )
        self.sources = [*sources]
        self._max_lag = max_lag
        self._reads_own_writes = reads_own_writes
        self._rest_until = [-inf] * len(self.sources)
        self._turn = 0
        self._written = self._seen = 0  # counts of writes
        self._after: str | None = None

    def order(self) -> list[int]:
        """List the places of those to ask, in the order of asking."""
        self._turn += 1
        count, now = len(self.sources), perf_counter()
        turns = ((self._turn + n) % count for n in range(count))
        return [place for place in turns if self._rest_until[place] <= now]

    def wrote(self) -> None:
        """Note that something may have been written."""
        self._written += 1

    def unseen(self) -> int | None:
        """Return the count of writes, where it is not known up to where they reach in the log."""
        is_needed = self._reads_own_writes and self._seen < self._written
        return self._written if is_needed else None

    def require(self, position: str, written: int = 0) -> None:
        """Keep reads behind a position, and so many writes before it.

        Raises:
            InvalidArgument: it is not a position in a log.

        """
        check_type("position", position, str)
        if not _POSITION.fullmatch(position):
            raise InvalidArgument(
                f'"{position}" is not a position in the log of a server',
                hint='Pass what position() returned, such as "0/3000060".',
            )
        self._after = max(self._after or position, position, key=_log_bytes)
        self._seen = max(self._seen, written)

    def gate(self) -> Call[Any, Any]:
        """Return the call that fails where a standby is not near enough."""
        return calls.operations.replica_lag(at_most=self._max_lag, after=self._after)

    def note(self, place: int, error: psycopg.Error, trace: Trace) -> None:
        """Let one that cannot be reached rest; one that is behind may soon have caught up."""
        is_reached = trace.is_sent and not trace.is_lost
        level = logging.DEBUG if is_reached else logging.WARNING
        logger.log(level, "replica %d did not answer: %s", place, error)
        if not is_reached:
            self._rest_until[place] = perf_counter() + REST_SECONDS


def _log_bytes(position: str) -> int:
    high, low = position.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def replica_dsn(dsn: str) -> str:
    """Name the connection as :func:`named_dsn` does, and do not wait long for it."""
    named = named_dsn(dsn)
    if conninfo_to_dict(named).get("connect_timeout"):
        return named
    return make_conninfo(named, connect_timeout=REPLICA_SECONDS)
