"""Run pieces of work concurrently: in tasks for AsyncRecall, on threads for Recall.

The number of concurrent pieces is limited; start() waits for a free place. The first error stops
all: other pieces notice it by check(), and start() raises it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextvars import copy_context
from threading import Condition
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class _Board:
    """The running pieces, numbered in the order of starting, and the first error."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._running: set[int] = set()
        self._started = 0
        self._error: BaseException | None = None

    def check(self) -> None:
        """Raise an error if the work must stop.

        Raises:
            CancelledError: another piece of work failed.

        """
        if self._error is not None:
            raise CancelledError

    def _begin(self) -> int:
        self._raise_error()
        self._started += 1
        self._running.add(self._started)
        return self._started

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error

    def _has_room(self) -> bool:
        return self._error is not None or len(self._running) < self._size

    def _is_first(self, number: int) -> bool:
        return self._error is not None or min(self._running) == number

    def _is_idle(self) -> bool:
        return not self._running


class AsyncBoundedWork(_Board):
    """Runs pieces of work in tasks, and waits for them in the end."""

    def __init__(self, size: int) -> None:
        """Set how many pieces run at once."""
        super().__init__(size)
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Return self."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait until nothing runs; after an error no piece continues."""
        if error is not None:
            self._fail(error)
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if error is None:
            self._raise_error()

    async def start(self, work: Callable[[int], Awaitable[None]]) -> None:
        """Start a piece of work when there is a free place; it is called with its number.

        Raises:
            BaseException: an earlier piece failed.

        """
        await self._until(self._has_room)
        task = asyncio.create_task(self._run(work, self._begin()))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def first(self, number: int) -> None:
        """Wait until all earlier pieces are done."""
        await self._until(lambda: self._is_first(number))
        self.check()

    async def idle(self) -> None:
        """Wait until nothing runs."""
        await self._until(self._is_idle)
        self._raise_error()

    async def _run(self, work: Callable[[int], Awaitable[None]], number: int) -> None:
        try:
            await work(number)
        except BaseException as error:  # start() raises it
            self._fail(error)
        finally:
            self._running.discard(number)
            self._changed.set()

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._changed.clear()
            await self._changed.wait()


class BoundedWork(_Board):
    """Runs pieces of work on threads, and waits for them in the end."""

    def __init__(self, size: int) -> None:
        """Set how many pieces run at once."""
        super().__init__(size)
        self._changed = Condition()
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="pgrecall-bulk")

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait until nothing runs; after an error no piece continues."""
        if error is not None:
            with self._changed:
                self._fail(error)
                self._changed.notify_all()
        self._threads.shutdown()
        if error is None:
            self._raise_error()

    def start(self, work: Callable[[int], None]) -> None:
        """Start a piece of work when there is a free place; it is called with its number.

        Raises:
            BaseException: an earlier piece failed.

        """
        with self._changed:
            self._changed.wait_for(self._has_room)
            number = self._begin()
        self._threads.submit(copy_context().run, self._run, work, number)

    def first(self, number: int) -> None:
        """Wait until all earlier pieces are done."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_first(number))
        self.check()

    def idle(self) -> None:
        """Wait until nothing runs."""
        with self._changed:
            self._changed.wait_for(self._is_idle)
        self._raise_error()

    def _run(self, work: Callable[[int], None], number: int) -> None:
        raised: BaseException | None = None
        try:
            work(number)
        except BaseException as error:  # start() raises it
            raised = error
        with self._changed:
            if raised is not None:
                self._fail(raised)
            self._running.discard(number)
            self._changed.notify_all()
