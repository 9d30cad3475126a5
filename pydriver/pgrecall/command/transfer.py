"""Commands that carry much at once: embed, export, import."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from contextlib import ExitStack

import psycopg
from rich.console import Console

from pgrecall.client import Recall
from pgrecall.command import render
from pgrecall.command.actions import embedder_of
from pgrecall.server import resolve_dsn

_LATE = 100_000  # ids that a writer may have taken before it commits


def embed(options: argparse.Namespace, console: Console) -> int:
    """Embed what was retained without an embedding, once or for good."""
    done = from_id = 0
    with (
        Recall.connect(options.dsn, embedder=embedder_of(options)) as recall,
        render.progress_bar(render.make_console(stderr=True)) as progress,
    ):
        task = progress.add_task("embedding", total=None)

        def advance(count: int) -> None:
            progress.advance(task, count)

        try:
            while True:
                done += recall.embed_pending(
                    options.bank,
                    batch_size=options.batch_size,
                    from_id=from_id,
                    progress=advance,
                )
                if not options.watch:
                    break
                # What comes has greater ids; writers that commit late are found by the next start.
                newest = recall.list_memories(options.bank, is_ended_too=True, top_k=1)
                from_id = max(from_id, newest[0].memory_id - _LATE if newest else 0)
                time.sleep(options.interval)
        except KeyboardInterrupt:
            pass
    console.print(f'embedded {done:,} facts in bank "{options.bank}"', markup=False)
    return 0


def export(options: argparse.Namespace, console: Console) -> int:
    """Write all rows of a bank, as of one moment."""
    count = 0
    with ExitStack() as stack:
        connection = stack.enter_context(psycopg.connect(resolve_dsn(options.dsn)))
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        lines = Recall(connection, embedder=None).export(options.bank)
        first = next(iter(lines), None)  # an unknown bank leaves a file as it was
        out = console.file
        if options.file is not None:
            out = stack.enter_context(options.file.open("w", encoding="utf-8", newline="\n"))
        for line in _chained(first, lines):
            out.write(f"{line}\n")
            count += 1
    if options.file is not None:
        console.print(f'exported {count:,} rows of bank "{options.bank}"', markup=False)
    return 0


def _chained(first: str | None, rest: Iterable[str]) -> Iterable[str]:
    if first is not None:
        yield first
        yield from rest
