"""Log a sample of recall times, for banks that ask for it.

A thread with its own connection writes them in batches, a few seconds later. A recall neither waits
for it nor fails because of it. Samples that cannot be written are dropped.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from itertools import groupby
from operator import itemgetter
from threading import Event, Lock, Thread
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from pgrecall import calls
from pgrecall.report import RecallReport

logger = logging.getLogger(__name__)

SECONDS = 5.0
MOST = 1000
_BANK = itemgetter(0)


class RecallLogWriter:
    """Writes samples to the table recall_log."""

    def __init__(self, dsn: str) -> None:
        """Keep the DSN; open nothing before the first sample."""
        self._dsn = make_conninfo(dsn, connect_timeout=int(SECONDS))
        self._samples: deque[tuple[str, dict[str, object]]] = deque(maxlen=MOST)
        self._lock = Lock()
        self._thread: Thread | None = None
        self._is_closed = Event()

    def add(self, bank: str, share: float, report: RecallReport) -> None:
        """Sample a recall that has just ended, with a probability of share."""
        if random.random() >= share:
            return
        times = report.timings
        sample = {
            "asked_at": (
                datetime.now(timezone.utc) - timedelta(milliseconds=times.total)
            ).isoformat(),
            "share": share,
            "total_ms": times.total,
            "wait_ms": times.wait,
            "embed_ms": times.embed,
            "database_ms": times.database,
            "rerank_ms": times.rerank,
            "hits": len(report.hits),
            "left_out": [degradation.what for degradation in report.degradations],
        }
        with self._lock:
            self._samples.append((bank, sample))
            if self._thread is None:
                self._thread = Thread(target=self._work, name="pgrecall log", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Write the remaining samples; wait a few seconds at most."""
        self._is_closed.set()
        thread = self._thread
        if thread is not None:
            thread.join(2 * SECONDS)

    def _work(self) -> None:
        """Write what has come since, until nothing has."""
        while True:
            self._is_closed.wait(SECONDS)
            with self._lock:
                samples = sorted(self._samples, key=_BANK)
                self._samples.clear()
                if not samples:
                    self._thread = None
                    return
            try:
                with psycopg.connect(self._dsn, autocommit=True) as connection:
                    for bank, part in groupby(samples, key=_BANK):
                        _write(connection, bank, [sample for _, sample in part])
            except psycopg.Error as error:
                logger.debug("%d samples of recalls were not written: %s", len(samples), error)


def _write(
    connection: psycopg.Connection[Any], bank: str, samples: Sequence[Mapping[str, object]]
) -> None:
    """Write the samples of a bank, unless it was dropped or the role may not."""
    call = calls.operations.log_recalls(bank, samples)
    try:
        connection.execute(call.sql.encode(), call.parameters, prepare=False)
    except psycopg.Error as error:
        if connection.closed:
            raise
        logger.debug("%d samples of bank %s were not written: %s", len(samples), bank, error)
