"""End connections whose server is silent when the deadline of a call has passed.

The server itself ends a statement at the deadline. If it cannot, because the machine or the network
is gone, an answer would be waited for as long as TCP allows: hours, unless configured otherwise.
One thread watches all connections. It begins with the first deadline, in each process.
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from heapq import heappop, heappush
from itertools import count
from time import monotonic
from typing import Any

import psycopg

SILENT_SECONDS = 2.0
"""How long a server may take to end a statement at its deadline, and to say so."""


class _Watch:
    """A thread, and the connections that it ends unless their calls are over in time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._numbers = count()
        self._due: list[tuple[float, int]] = []  # a heap; calls that are over go as they come first
        self._calls: dict[int, psycopg.BaseConnection[Any]] = {}
        self._is_running = False

    def begin(self, connection: psycopg.BaseConnection[Any], seconds: float) -> int:
        with self._changed:
            if not self._is_running:
                # As the interpreter ends, no thread begins: then the server alone keeps deadlines.
                with suppress(RuntimeError):
                    name = "pgrecall-deadlines"
                    threading.Thread(target=self._run, name=name, daemon=True).start()
                    self._is_running = True
            number = next(self._numbers)
            self._calls[number] = connection
            heappush(self._due, (monotonic() + seconds, number))
            if self._due[0][1] == number:
                self._changed.notify()
            return number

    def end(self, number: int) -> None:
        with self._changed:
            self._calls.pop(number, None)
            while self._due and self._due[0][1] not in self._calls:
                heappop(self._due)

    def _run(self) -> None:
        with self._changed:
            while True:
                left = self._due[0][0] - monotonic() if self._due else None
                if left is None or left > 0:
                    self._changed.wait(left)
                    continue
                _, number = heappop(self._due)
                if number in self._calls and not _disconnected(self._calls[number]):
                    heappush(self._due, (monotonic() + SILENT_SECONDS, number))


def _disconnected(connection: psycopg.BaseConnection[Any]) -> bool:
    """Shut the socket of a connection, so that whoever waits for it finds it closed.

    Return False, and do nothing, where the server has answered: then its caller is late.
    """
    with (
        suppress(OSError, psycopg.Error),
        socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as shared,
        selectors.DefaultSelector() as answers,
    ):
        connection.fileno()  # an error, if it was closed before the number was copied
        answers.register(shared, selectors.EVENT_READ)
        if answers.select(0):
            return False
        shared.shutdown(socket.SHUT_RDWR)
    return True


_watch = _Watch()


def _after_fork() -> None:
    """Forget the calls of the parent, whose thread the child does not have."""
    global _watch
    _watch = _Watch()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def disconnected_after(
    connection: psycopg.BaseConnection[Any], seconds: float | None
) -> Iterator[None]:
    """End a connection where the block takes SILENT_SECONDS longer than some seconds.

    None: never.
    """
    if seconds is None:
        yield
        return
    watch = _watch
    number = watch.begin(connection, seconds + SILENT_SECONDS)
    try:
        yield
    finally:
        watch.end(number)
