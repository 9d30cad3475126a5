"""Choose standbys to read from."""

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
REPLICA_SECONDS = 2  # seconds to wait for a connection to a replica, the minimum of libpq
REST_SECONDS = 5.0  # seconds for which an unreachable replica is skipped
_POSITION = re.compile(r"[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}")


class Replicas:
    """The standbys of a client: their order, those to skip, and what they must have replayed.

    Attributes:
        sources: Their connection strings or pools.

    """

    def __init__(
        self, sources: Sequence[object], max_lag: float | None, reads_own_writes: bool
    ) -> None:
        """Keep the settings; open nothing.

        Raises:
            InvalidArgument: replicas is a string, or max_lag is below 0.

        """
        check_type("replicas", sources, Sequence)
        check_type("max_lag", max_lag, float | None)
        check_type("read_your_writes", reads_own_writes, bool)
        if isinstance(sources, str):
            raise InvalidArgument("replicas is a string, not a list", hint="Give a list.")
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
        """Return the positions of the replicas to ask, in order."""
        self._turn += 1
        count, now = len(self.sources), perf_counter()
        turns = ((self._turn + n) % count for n in range(count))
        return [place for place in turns if self._rest_until[place] <= now]

    def wrote(self) -> None:
        """Note that something may have been written."""
        self._written += 1

    def unseen(self) -> int | None:
        """Return the count of writes if their position in the log is unknown."""
        is_needed = self._reads_own_writes and self._seen < self._written
        return self._written if is_needed else None

    def require(self, position: str, written: int = 0) -> None:
        """Require that reads see the log up to a position, which covers a number of writes.

        Raises:
            InvalidArgument: position is not a position in a log.

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
        """Return the call that fails if a standby is too far behind."""
        return calls.operations.replica_lag(at_most=self._max_lag, after=self._after)

    def note(self, place: int, error: psycopg.Error, trace: Trace) -> None:
        """Skip an unreachable replica for a while; one that is behind may soon catch up."""
        is_reached = trace.is_sent and not trace.is_lost
        level = logging.DEBUG if is_reached else logging.WARNING
        logger.log(level, "replica %d did not answer: %s", place, error)
        if not is_reached:
            self._rest_until[place] = perf_counter() + REST_SECONDS


def _log_bytes(position: str) -> int:
    high, low = position.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def replica_dsn(dsn: str) -> str:
    """Name the connection as :func:`named_dsn` does, and limit the time to connect."""
    named = named_dsn(dsn)
    if conninfo_to_dict(named).get("connect_timeout"):
        return named
    return make_conninfo(named, connect_timeout=REPLICA_SECONDS)
