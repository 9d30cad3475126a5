"""The worker of a process: the few threads on which models run for all callers.

Callers submit items, such as texts to embed or pairs to score, and wait for a future. There are no
more threads than cores, and a model uses one core per thread, so callers do not compete for cores.
Threads take one item of each caller in turn. Under load every caller gets fewer candidates
reranked, instead of some callers getting none, and a long retain delays no question. If many
callers wait, the time limit of each is shortened. A model that benefits from batches gets batches
with items of all callers.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf
from time import perf_counter
from typing import Any, Generic, TypeVar

from pgrecall.errors import InvalidArgument
from pgrecall.inference.runtime import THREADS, cores

CROWD = 4
"""Callers per thread; if more wait, each gets a part of its time."""
FEW = 3
"""Items that are read even then: three candidates bring most of the gain of reranking."""

Item = TypeVar("Item")
Found = TypeVar("Found")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reading(Generic[Found]):
    """The results of a model for the items of one caller.

    Attributes:
        found: The results of the first items, as many as time allowed and as were needed.
        seconds: How long at least one of the items was being read; otherwise they waited.
        limit: The time limit that applied; below the given one if many callers waited.

    """

    found: Sequence[Found]
    seconds: float
    limit: float = inf


class Model(Generic[Item, Found]):
    """A model that the worker runs."""

    def __init__(
        self,
        read: Callable[[list[Item]], Sequence[Found]],
        *,
        batch_size: int = 1,
        at_once: int | None = None,
    ) -> None:
        """Define how the model runs.

        Args:
            read: Returns one result per item, in order; called on threads of the worker.
            batch_size: How many items are read in one call, at least 1.
            at_once: How many batches are read at once, at least 1; use 1 for a model with threads
                of its own. Default: the number of the worker's threads.

        Raises:
            InvalidArgument: batch_size is below 1.

        """
        check_batch_size(batch_size)
        self.read = read
        self.batch_size = batch_size
        self.at_once = at_once or inf
        self.running = 0
        self.jobs: list[tuple[int, int, _Job]] = []


def check_batch_size(size: int) -> None:
    """Check the size of batches.

    Raises:
        InvalidArgument: it is below 1, with which nothing would ever be read.

    """
    if size < 1:
        raise InvalidArgument(
            f"batch_size must be at least 1, not {size}", hint="Omit it for the default."
        )


class Worker:
    """A bounded number of threads that run models for all callers of the process.

    A thread ends when nothing waits, so none outlives the process or is lost in a fork.
    """

    def __init__(self, threads: int | None = None) -> None:
        """Set the number of threads; start none.

        Args:
            threads: At least 1. Default: one for each available core, at most 8.

        """
        self._limit = threads
        self.reset()

    def reset(self) -> None:
        """Drop threads and waiting jobs, which do not exist in the child of a fork."""
        self._lock = threading.Lock()
        self._models: list[Model[Any, Any]] = []
        self._threads = 0
        self._turn = 0
        self._numbers = count()

    def submit(
        self,
        model: Model[Item, Found],
        items: Sequence[Item],
        *,
        known: Mapping[int, Found] | None = None,
        begin: Callable[[], object] | None = None,
        seconds: float = inf,
        is_enough: Callable[[Found], bool] | None = None,
    ) -> Future[Reading[Found]]:
        """Let a model read items. Cancel the future to stop it.

        Args:
            model: The model.
            items: The items, most important first.
            known: Known results, by position.
            begin: Called before the first item is read, to load the model. Its time does not count,
                nor for other callers that wait meanwhile.
            seconds: Time limit, including waiting; later results are dropped. If more than CROWD
                callers per thread wait, the limit is lowered in proportion, but FEW items are still
                read if the full limit suffices for them.
            is_enough: Called with each result, in order; returns true if no more are needed. It
                must be quick.

        """
        job = _Job(items, dict(known or {}), begin, perf_counter(), seconds, is_enough)
        reading = job.reading()
        if reading is not None:
            job.future.set_result(reading)
            return job.future
        with self._lock:
            if model not in self._models:
                model.jobs, model.running = [], 0  # jobs from before a fork are void
                self._models.append(model)
            job.turn = self._turn  # the current turn, so that waiting jobs do not wait longer
            self._add(model, job)
        self._start_threads(len(job.places))
        return job.future

    def _add(self, model: Model[Any, Any], job: _Job) -> None:
        heappush(model.jobs, (job.turn, next(self._numbers), job))

    def _most(self) -> int:
        return self._limit or min(cores(), THREADS)

    def _start_threads(self, most: int) -> None:
        with self._lock:
            new = max(0, min(most, self._most() - self._threads))
            self._threads += new
        for _ in range(new):
            threading.Thread(target=self._work, name="pgrecall-worker").start()

    def _work(self) -> None:
        while True:
            with self._lock:
                waiting = [m for m in self._models if m.jobs and m.running < m.at_once]
                if not waiting:
                    self._models = [m for m in self._models if m.jobs or m.running]
                    self._threads -= 1
                    return
                model = min(waiting, key=lambda model: model.jobs[0][:2])
                batch = self._batch(model)
                model.running += 1
            try:
                self._run(model, batch)
            finally:
                with self._lock:
                    model.running -= 1

    def _batch(self, model: Model[Any, Any]) -> list[tuple[_Job, int]]:
        """Take a batch of items, one of each job in turn.

        A job that has to load the model is taken alone.
        """
        batch: list[tuple[_Job, int]] = []
        while model.jobs and len(batch) < model.batch_size:
            job = model.jobs[0][2]
            if batch and job.begin:
                break
            self._turn = max(self._turn, heappop(model.jobs)[0])
            if job.future.done():
                continue
            if not job.begin and job.is_late(CROWD * self._most() / (len(model.jobs) + 1)):
                settle(job.future, job.so_far())
                continue
            batch.append((job, job.places.pop() if not job.begin else -1))
            if job.begin:
                break
            job.start()
            job.turn += 1
            if job.places:
                self._add(model, job)
        return batch

    def _run(self, model: Model[Any, Any], batch: list[tuple[_Job, int]]) -> None:
        jobs = {id(job): job for job, _ in batch}
        try:
            if batch and batch[0][0].begin:
                self._begin(model, batch[0][0])
                return
            found = model.read([job.items[place] for job, place in batch])
            if len(found) != len(batch):
                raise ValueError(f"a model gave {len(found)} results for {len(batch)} items")
        except BaseException as error:  # the caller gets it
            if len(jobs) > 1:  # find the job that failed
                for job in jobs.values():
                    self._run(model, [taken for taken in batch if taken[0] is job])
                return
            for job in jobs.values():
                settle(job.future, error)
            return
        for (job, place), result in zip(batch, found, strict=True):
            with self._lock:
                job.stop()
                job.found[place] = result
                reading = job.reading()
            if reading is not None:
                settle(job.future, reading)

    def _begin(self, model: Model[Any, Any], job: _Job) -> None:
        start = perf_counter()
        assert job.begin is not None
        job.begin()
        with self._lock:
            job.begin = None
            seconds = perf_counter() - start
            self._add(model, job)
            for _, _, waiting in model.jobs:
                waiting.began += seconds
        self._start_threads(len(job.places))


@dataclass(slots=True, eq=False)
class _Job:
    """The items of one caller. Fields are changed only under the worker's lock."""

    items: Sequence[Any]
    found: dict[int, Any]
    begin: Callable[[], object] | None
    began: float
    limit: float
    is_enough: Callable[[Any], bool] | None
    future: Future[Reading[Any]] = field(default_factory=Future)
    turn: int = 0
    ready: int = 0  # results without a gap from the first on
    running: int = 0
    since: float = 0.0
    seconds: float = 0.0
    places: list[int] = field(init=False)  # of items that no thread has taken, last first

    def __post_init__(self) -> None:
        self.places = [n for n in reversed(range(len(self.items))) if n not in self.found]

    def is_late(self, share: float) -> bool:
        """Return whether the time limit is over; a share below 1 shortens the limit."""
        seconds = perf_counter() - self.began
        few = len(self.items) - len(self.places) >= FEW
        limit = self.limit * min(1.0, share) if few else self.limit
        if seconds > limit:
            self.limit = limit
        return seconds > limit

    def start(self) -> None:
        """Note that a thread has taken an item."""
        if self.running == 0:
            self.since = perf_counter()
        self.running += 1

    def stop(self) -> None:
        """Note that a thread is done with an item."""
        self.running -= 1
        if self.running == 0:
            self.seconds += perf_counter() - self.since

    def reading(self) -> Reading[Any] | None:
        """Return the results once no more are needed. Checks each result once, in order."""
        if self.future.done():
            return None
        while self.ready in self.found:
            self.ready += 1
            if self.is_enough is not None and self.is_enough(self.found[self.ready - 1]):
                return self.so_far()
        return self.so_far() if self.ready == len(self.items) else None

    def so_far(self) -> Reading[Any]:
        """Return the results up to the first gap."""
        seconds = self.seconds + (perf_counter() - self.since if self.running else 0.0)
        return Reading([self.found[n] for n in range(self.ready)], seconds, self.limit)


def settle(future: Future[T], result: T | BaseException) -> None:
    """Set the result or error of a future, unless it has been cancelled."""
    with suppress(InvalidStateError):
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)


def on_this_thread(function: Callable[..., T], *arguments: object) -> Future[T]:
    """Call a function on this thread."""
    future: Future[T] = Future()
    try:
        future.set_result(function(*arguments))
    except Exception as error:
        future.set_exception(error)
    return future


def on_own_thread(function: Callable[..., T], *arguments: object) -> Future[T]:
    """Call a function on a thread of its own, which goes on if the caller gives up.

    Use it for functions that wait, such as for a network service.
    """
    future: Future[T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            found: T | BaseException = context.run(function, *arguments)
        except BaseException as error:  # the caller gets it
            found = error
        settle(future, found)

    threading.Thread(target=run, name="pgrecall-call", daemon=True).start()
    return future


WORKER = Worker()
"""The worker of this process."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKER.reset)

Start = Callable[..., "Future[Any]"]
"""Calls a function with arguments, on this thread or another."""
