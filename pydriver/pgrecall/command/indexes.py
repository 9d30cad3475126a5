"""``pgrecall index``: show which vector indexes are due, and build them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

import psycopg

from pgrecall import wording
from pgrecall.calls.operations import LIMITED, UNLIMITED
from pgrecall.client import Connection, Recall
from pgrecall.command import render
from pgrecall.connection.connecting import connect

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from pgrecall.rows import IndexStep

_POLL_SECONDS = 0.5


def apply(dsn: str, recall: Recall, bank: str | None, console: Console) -> int:
    """Run the statements that are due one by one, with a bar; return how many were run.

    After an interruption the next plan drops the invalid index and builds it again. So it does
    where another session built at the same time, of which PostgreSQL ends one. A bank whose vectors
    cannot be indexed keeps no other from its index; the first such error is raised in the end.
    """
    done = 0
    failed: dict[str | None, psycopg.Error] = {}

    def build(steps: Sequence[IndexStep]) -> None:
        nonlocal done
        left = [step for step in steps if step.bank_id not in failed]
        if steps and not left:
            raise next(iter(failed.values()))
        begun = done
        try:
            for _ in _applied(dsn, left, console) if left else ():
                done += 1
        except psycopg.DataError as error:
            name = left[done - begun].bank_id
            failed[name] = error
            console.print(f'warning: no index of bank "{name}"', markup=False, soft_wrap=True)

    recall._build_indexes(bank, build)
    return done


def _applied(dsn: str, steps: Sequence[IndexStep], console: Console) -> Iterator[IndexStep]:
    with (
        connect(dsn, autocommit=True) as worker,
        connect(dsn, autocommit=True) as watcher,
        render.progress_bar(console) as progress,
    ):
        # A limit of time for queries would interrupt large builds.
        worker.execute(UNLIMITED)
        try:
            for number, step in enumerate(steps, 1):
                about = f"{step.action} {number} of {len(steps)}"
                _run(worker, watcher, step, about, progress)
                yield step
        finally:
            # Behind a pooler the session is used again.
            if not worker.closed:
                worker.execute(LIMITED)


def _run(
    worker: Connection, watcher: Connection, step: IndexStep, about: str, progress: Progress
) -> None:
    task = progress.add_task(about, total=100)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(worker.execute, step.statement.encode())
        try:
            while wait([running], timeout=_POLL_SECONDS).not_done:
                for phase, percent in _phases(watcher, worker.info.backend_pid):
                    progress.update(task, description=f"{about}: {phase}", completed=percent)
        except BaseException:
            while wait([running], timeout=_POLL_SECONDS).not_done:
                worker.cancel()
            raise
    running.result()
    progress.update(task, description=about, completed=100)


def _phases(watcher: Connection, worker: int) -> list[tuple[str, int]]:
    """Yield PostgreSQL's phase and how much of the table it has read."""
    return watcher.execute(
        "select p.phase, case when p.blocks_total > 0"
        " then 100 * p.blocks_done / p.blocks_total else 0 end"
        " from pg_catalog.pg_stat_progress_create_index p where p.pid = %s",
        [worker],
    ).fetchall()


def memory_advice(steps: Sequence[IndexStep], setting: int) -> str | None:
    """Return a warning if an index does not fit into maintenance_work_mem, given in bytes."""
    largest = max((step.estimated_bytes or 0 for step in steps), default=0)
    if largest <= setting:
        return None
    needed = -(-largest // 2**20)
    return (
        f"The largest index takes about {wording.size(largest)}, maintenance_work_mem is "
        f"{wording.size(setting)}: "
        f"it is built faster with PGOPTIONS='-c maintenance_work_mem={needed}MB'."
    )
