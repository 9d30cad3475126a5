"""The worker of a process: bounded threads, turns, batches of many callers, deadlines."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from pgrecall.inference.runtime import settled
from pgrecall.inference.worker import CROWD, FEW, Model, Reading, Worker


def numbers(model: Model[int, int], worker: Worker, *items: int) -> Future[Reading[int]]:
    return worker.submit(model, items)


class Gate:
    """A model that reads nothing until it is opened, and notes what it reads."""

    def __init__(self, batch_size: int = 1, at_once: int | None = None) -> None:
        self.read: list[list[int]] = []
        self.most = 0
        self.opened = threading.Event()
        self.entered = threading.Semaphore(0)
        self.model: Model[int, int] = Model(self._read, batch_size=batch_size, at_once=at_once)
        self._running = 0
        self._lock = threading.Lock()

    def _read(self, items: list[int]) -> list[int]:
        with self._lock:
            self._running += 1
            self.most = max(self.most, self._running)
            self.read.append(items)
        self.entered.release()
        assert self.opened.wait(30)
        with self._lock:
            self._running -= 1
        return [item * 10 for item in items]


class Clock:
    """A time that passes by reading only: a second an item."""

    def __init__(self) -> None:
        self.now = 0.0
        self.model: Model[int, int] = Model(self._read)

    def _read(self, items: list[int]) -> list[int]:
        self.now += len(items)
        return items


def crowd(clock: Clock, callers: int, *, seconds: float) -> list[Reading[int]]:
    """Let callers come at the same time, each with 50 items."""
    gate, worker = Gate(), Worker(1)
    numbers(gate.model, worker, 0)
    assert gate.entered.acquire(timeout=30)
    futures = [worker.submit(clock.model, range(50), seconds=seconds) for _ in range(callers)]
    gate.opened.set()
    return [future.result(30) for future in futures]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("pgrecall.inference.worker.perf_counter", lambda: clock.now)
    return clock


def test_each_item_gets_its_result_in_order() -> None:
    model: Model[int, int] = Model(lambda items: [item * 10 for item in items], batch_size=3)

    reading = numbers(model, Worker(4), *range(20)).result(30)

    assert reading.found == [item * 10 for item in range(20)]
    assert numbers(model, Worker(1)).result(30).found == []


def test_no_more_threads_run_than_there_are_and_none_is_left() -> None:
    gate, worker = Gate(), Worker(2)

    futures = [numbers(gate.model, worker, *range(4)) for _ in range(8)]
    gate.opened.set()
    for future in futures:
        future.result(30)

    assert gate.most == 2
    for thread in threading.enumerate():
        if thread.name == "pgrecall-worker":
            thread.join(30)
    assert "pgrecall-worker" not in {thread.name for thread in threading.enumerate()}


def test_a_model_with_threads_of_its_own_runs_once_at_a_time() -> None:
    gate, worker = Gate(at_once=1), Worker(4)

    futures = [numbers(gate.model, worker, *range(4)) for _ in range(4)]
    gate.opened.set()

    assert [len(future.result(30).found) for future in futures] == [4] * 4
    assert gate.most == 1


def test_callers_are_read_in_turns() -> None:
    gate, worker = Gate(), Worker(1)
    first = numbers(gate.model, worker, 0, 1, 2, 3)
    assert gate.entered.acquire(timeout=30)

    others = [numbers(gate.model, worker, 10, 11, 12), numbers(gate.model, worker, 20, 21)]
    gate.opened.set()
    for future in (first, *others):
        future.result(30)

    order = [item for batch in gate.read for item in batch]
    assert order[0] == 0
    assert sorted(order[1:4]) == [1, 10, 20]
    assert sorted(order[4:7]) == [2, 11, 21]
    assert sorted(order[7:]) == [3, 12]


def test_a_batch_holds_the_items_of_many_callers() -> None:
    gate, worker = Gate(batch_size=4), Worker(1)
    first = numbers(gate.model, worker, 0)
    assert gate.entered.acquire(timeout=30)

    others = [numbers(gate.model, worker, item) for item in (1, 2, 3, 4)]
    gate.opened.set()

    assert [future.result(30).found for future in (first, *others)] == [[0], [10], [20], [30], [40]]
    assert gate.read == [[0], [1, 2, 3, 4]]


def test_reading_stops_where_it_is_enough() -> None:
    model: Model[int, int] = Model(lambda items: items)

    reading = Worker(4).submit(model, range(100), is_enough=lambda found: found == 7).result(30)

    assert reading.found == list(range(8))


def test_what_is_known_is_not_read() -> None:
    gate = Gate()
    gate.opened.set()

    reading = Worker(1).submit(gate.model, [5, 6, 7], known={1: 61}).result(30)

    assert (reading.found, gate.read) == ([50, 61, 70], [[5], [7]])


def test_at_the_deadline_what_is_there_is_returned(clock: Clock) -> None:
    reading = Worker(1).submit(clock.model, range(100), seconds=7).result(30)

    assert reading.found == list(range(8))


def test_when_time_is_short_all_get_some(clock: Clock) -> None:
    found = crowd(clock, 4, seconds=19)

    assert [(len(reading.found), reading.limit) for reading in found] == [(5, 19)] * 4


def test_where_many_wait_each_gets_a_part_of_its_time(clock: Clock) -> None:
    found = crowd(clock, 32, seconds=600)

    read = [len(reading.found) for reading in found]
    assert min(read) == FEW
    assert sum(read) < 16 * 50
    assert min(reading.limit for reading in found) == 600 * CROWD / 32
    assert clock.now < 600


def test_where_many_wait_the_time_limit_holds_still(clock: Clock) -> None:
    found = crowd(clock, 32, seconds=31)

    assert [len(reading.found) for reading in found] == [1] * 32


def test_beginning_takes_no_time_of_the_caller(clock: Clock) -> None:
    def begin() -> None:
        clock.now += 100

    reading = Worker(1).submit(clock.model, [1], begin=begin, seconds=1).result(30)

    assert reading.found == [1]


def test_a_model_that_is_being_loaded_takes_no_time_of_others(clock: Clock) -> None:
    def begin() -> None:
        clock.now += 100

    gate, worker = Gate(), Worker(1)
    numbers(gate.model, worker, 0)
    assert gate.entered.acquire(timeout=30)
    first = worker.submit(clock.model, [1], begin=begin, seconds=2)
    second = worker.submit(clock.model, [2], seconds=2)
    gate.opened.set()

    assert [first.result(30).found, second.result(30).found] == [[1], [2]]


def test_waiting_is_told_from_reading(clock: Clock) -> None:
    gate, worker = Gate(), Worker(1)
    first = numbers(gate.model, worker, 1)
    assert gate.entered.acquire(timeout=30)

    second = worker.submit(clock.model, [2, 3])
    clock.now += 50
    gate.opened.set()

    assert first.result(30).seconds == 50
    assert second.result(30).seconds == 2


def test_who_waits_no_longer_is_not_read_for() -> None:
    gate, worker = Gate(), Worker(1)
    first, second = numbers(gate.model, worker, 1, 2), numbers(gate.model, worker, 3, 4)
    assert gate.entered.acquire(timeout=30)

    assert second.cancel()
    gate.opened.set()
    first.result(30)

    assert numbers(gate.model, worker, 5).result(30).found == [50]
    assert gate.read == [[1], [2], [5]]


@pytest.mark.parametrize("place", ["begin", "read"])
def test_an_error_reaches_who_waits_and_nobody_else(place: str) -> None:
    def read(items: list[int]) -> list[int]:
        if 13 in items:
            raise ValueError("13")
        return items

    def begin() -> None:
        raise ValueError("13")

    gate: Model[int, int] = Model(read, batch_size=8)
    worker = Worker(1)
    good = [worker.submit(gate, [n]) for n in range(3)]
    bad = worker.submit(
        gate, [13 if place == "read" else 1], begin=begin if place == "begin" else None
    )
    good += [worker.submit(gate, [n]) for n in range(3)]

    with pytest.raises(ValueError, match="13"):
        bad.result(30)
    assert [future.result(30).found for future in good] == [[0], [1], [2]] * 2


def test_a_model_that_returns_too_few_results_fails() -> None:
    model: Model[int, int] = Model(lambda items: items[1:], batch_size=4)

    with pytest.raises(ValueError, match="0 results for 1"):
        Worker(1).submit(model, [1]).result(30)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_async_functions_run_in_the_child_of_a_fork() -> None:
    async def answer() -> int:
        return 5

    given: Any = answer
    assert settled(given()) == 5
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(30)
            os._exit(settled(given()))
        finally:
            os._exit(2)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_the_child_of_a_fork_has_a_worker_of_its_own() -> None:
    from pgrecall.embedders import DEFAULT_EMBEDDER

    (expected,) = DEFAULT_EMBEDDER.submit(["Maya leads Atlas"]).result().found
    child = os.fork()
    if child == 0:
        try:
            (found,) = DEFAULT_EMBEDDER.submit(["Maya leads Atlas"]).result(30).found
            os._exit(0 if list(found) == list(expected) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


FORK = """
import os, signal, sys
from pgrecall.embedders import DEFAULT_EMBEDDER

list(DEFAULT_EMBEDDER.embed(["Maya leads Atlas"]))
child = os.fork()
if child == 0:
    signal.alarm(30)
    list(DEFAULT_EMBEDDER.embed(["Maya left Atlas"]))
    print("embedded")
    sys.exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has on_exit()")
def test_the_child_of_a_fork_ends_as_it_exits() -> None:
    run = [sys.executable, "-c", FORK]

    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.split() == ["embedded", "3"]
