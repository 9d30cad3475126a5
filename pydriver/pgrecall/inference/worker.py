"""The worker of a process: the few threads on which models run, whoever asks.

Callers hand in items, such as texts to embed or pairs to score, and wait for a future. There are no
more threads than cores, and a model uses one core for each, so that callers do not take cores from
one another. Items are taken in turns, one of each caller: under load every caller gets fewer
candidates reranked in its time, instead of some none, and a long retain holds up no question. Where
many wait, that time is the shorter the more they are, so that all go on. A model that gains by
batches gets batches of the items of all callers.
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

from pgrecall.inference.runtime import THREADS, cores

CROWD = 4
"""Callers a thread: where more wait, each gets a part of its time."""
FEW = 3
"""Items that are read also then: three candidates bring most of what reranking brings."""

Item = TypeVar("Item")
Found = TypeVar("Found")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reading(Generic[Found]):
    """What a model said of the items of one caller.

    Attributes:
        found: The results of the first items: as many as time allowed and as were needed.
        seconds: How long any of the items was being read. The rest of the time they waited.
        limit: The time limit that held: a part of the one that was given, where many waited.

    """

    found: Sequence[Found]
    seconds: float
    limit: float = inf


class Model(Generic[Item, Found]):
    """A model, as the worker runs it."""

    def __init__(
        self,
        read: Callable[[list[Item]], Sequence[Found]],
        *,
        batch_size: int = 1,
        at_once: int | None = None,
    ) -> None:
        """Say how it is run.

        Args:
            read: Returns one result an item, in order; called on threads of the worker.
            batch_size: How many items it reads in one go, at least 1.
            at_once: How many batches it reads at a time, at least 1: 1 where it has threads of its
                own. Default: as many as the worker has threads.

        """
        self.read = read
        self.batch_size = batch_size
        self.at_once = at_once or inf
        self.running = 0
        self.jobs: list[tuple[int, int, _Job]] = []


class Worker:
    """A bounded number of threads that run models for all callers of the process.

    A thread ends when nothing waits: none is left to outlive the process or to be lost in a fork.
    """

    def __init__(self, threads: int | None = None) -> None:
        """Set the number of threads; none is started yet.

        Args:
            threads: At least 1. Default: one for each core that the process may use, 8 at most.

        """
        self._limit = threads
        self.reset()

    def reset(self) -> None:
        """Forget threads and what waits: in the child of a fork there are none."""
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
        """Let a model read items. Cancel the future to stop that.

        Args:
            model: Which one.
            items: The more important first.
            known: Results that need no reading, by position.
            begin: Called before the first item is read, to load the model. Its time does not count,
                for others that wait neither.
            seconds: Time limit, waiting included; what is read later is left out. Where more than
                CROWD callers a thread wait, it is the lower the more they are, but FEW items are
                read if it suffices for them.
            is_enough: Called with each result, in order; true where no further one is needed. It
                must be quick.

        """
        job = _Job(items, dict(known or {}), begin, perf_counter(), seconds, is_enough)
        reading = job.reading()
        if reading is not None:
            job.future.set_result(reading)
            return job.future
        with self._lock:
            if model not in self._models:
                model.jobs, model.running = [], 0  # what a fork left there is void
                self._models.append(model)
            job.turn = self._turn  # the present one: who waits already does not wait longer
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
        """Take items in turns, one of each job, as many as the model reads in one go.

        A job that has to begin is taken alone.
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
        except BaseException as error:  # whoever waits gets it
            if len(jobs) > 1:  # the others are not to blame
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
        self._start_threads(len(job.places))  # those that found nothing to read have ended


@dataclass(slots=True, eq=False)
class _Job:
    """The items of one caller. What changes is changed under the worker's lock."""

    items: Sequence[Any]
    found: dict[int, Any]
    begin: Callable[[], object] | None
    began: float
    limit: float
    is_enough: Callable[[Any], bool] | None
    future: Future[Reading[Any]] = field(default_factory=Future)
    turn: int = 0
    ready: int = 0  # results from the first on, without a gap
    running: int = 0
    since: float = 0.0
    seconds: float = 0.0
    places: list[int] = field(init=False)  # of items that no thread has taken, the last first

    def __post_init__(self) -> None:
        self.places = [n for n in reversed(range(len(self.items))) if n not in self.found]

    def is_late(self, share: float) -> bool:
        """Tell whether time is up; of its time a job has a share, where that is below 1."""
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
        """Return the results when no further one is needed. Sees each result once, in order."""
        if self.future.done():
            return None
        while self.ready in self.found:
            self.ready += 1
            if self.is_enough is not None and self.is_enough(self.found[self.ready - 1]):
                return self.so_far()
        return self.so_far() if self.ready == len(self.items) else None

    def so_far(self) -> Reading[Any]:
        """Return the results that are there, as far as there is no gap."""
        seconds = self.seconds + (perf_counter() - self.since if self.running else 0.0)
        return Reading([self.found[n] for n in range(self.ready)], seconds, self.limit)


def settle(future: Future[T], result: T | BaseException) -> None:
    """Give a future its result or error, unless nobody waits any more."""
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
    """Call a function on a thread of its own, which goes on when nobody waits any more.

    For what waits rather than computes, such as a service on the network.
    """
    future: Future[T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            found: T | BaseException = context.run(function, *arguments)
        except BaseException as error:  # whoever waits gets it
            found = error
        settle(future, found)

    threading.Thread(target=run, name="pgrecall-call", daemon=True).start()
    return future


WORKER = Worker()
"""The one of the process."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKER.reset)

Start = Callable[..., "Future[Any]"]
"""Calls a function with arguments, here or elsewhere."""
