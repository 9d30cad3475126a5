"""Bulk commands: embed, export, import."""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import psycopg
from rich.console import Console

from pgrecall import wording
from pgrecall.client import Recall
from pgrecall.command import render
from pgrecall.command.actions import embedder_of, print_done, print_json
from pgrecall.command.jsonl import JsonLines, opened
from pgrecall.command.running import fail, watch, written_whole
from pgrecall.connection.connecting import connect
from pgrecall.errors import InvalidFact, RecallError
from pgrecall.importing import READERS, SOURCES, Imported, Source, import_rows, read_file
from pgrecall.server import resolve_dsn

_ROW = '{"table": "memory", "row": {...}}'
_SHOWN = 20  # misfits that are shown
_LATE = 100_000  # ids that writers may hold before they commit


def embed(options: SimpleNamespace, console: Console) -> int:
    """Embed facts without an embedding, once or continuously."""
    done = from_id = 0
    again = options.again
    with (
        Recall.connect(options.dsn, embedder=embedder_of(options)) as recall,
        render.progress_bar() as progress,
    ):
        recall.bank_options(options.bank)  # there is such a bank, and a server to wait for
        task = progress.add_task("embedding", total=None)
        advance = partial(progress.advance, task)

        def step() -> None:
            nonlocal done, from_id, again
            done += recall.embed_pending(
                options.bank,
                batch_size=options.batch_size,
                from_id=from_id,
                again=again,
                progress=advance,
            )
            again = False
            if options.watch:
                # New facts have greater ids. Those of writers that commit late are found by the
                # next run.
                newest = recall.list_memories(options.bank, is_ended_too=True, top_k=1)
                from_id = max(from_id, newest[0].memory_id - _LATE if newest else 0)

        watch(step, options, progress.console)
    said = f'embedded {done:,} facts in bank "{options.bank}"'
    print_done(options, console, said, bank_id=options.bank, embedded=done)
    return 0


def export(options: SimpleNamespace, console: Console) -> int:
    """Write all rows of a bank from one snapshot."""
    count = 0
    is_piped = options.file is None or str(options.file) == "-"
    with ExitStack() as stack:
        connection = stack.enter_context(connect(resolve_dsn(options.dsn)))
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        out = console.file if is_piped else stack.enter_context(written_whole(options.file))
        for line in Recall(connection, embedder=None).export(options.bank):
            out.write(f"{line}\n")
            count += 1
    if not is_piped:
        said = f'exported {count:,} rows of bank "{options.bank}"'
        print_done(options, console, said, bank_id=options.bank, rows=count)
    return 0


def import_all(options: SimpleNamespace, console: Console) -> int:
    """Import facts from a file or another store, or the rows of an export."""
    with ExitStack() as stack:
        recall = stack.enter_context(Recall.connect(options.dsn, embedder=embedder_of(options)))
        progress = stack.enter_context(render.progress_bar())
        task = progress.add_task("importing", total=None)
        advance = partial(progress.advance, task)

        if options.origin in SOURCES:
            source = Source(
                stack.enter_context(connect(options.source)),
                options.origin,
                options.table,
                options.part,
                has_embeddings=options.vectors_of is not None,
            )
            source.connection.read_only = True
            rows, links, again = source.rows(), source.links(), source.rows
        else:
            file = stack.enter_context(opened(Path(options.source)))
            kind = options.origin or _kind(options.source)
            if kind == "jsonl" and (first := _export_header(file)):
                _check_whole(file, first, options.source)
                lines = JsonLines(Path(options.source), _ROW)
                try:
                    stored = recall.import_rows(options.bank, lines.texts(file), progress=advance)
                except RecallError as error:
                    raise lines.located(error) from error
                said = f'imported {stored:,} rows into bank "{options.bank}"'
                print_done(options, console, said, bank_id=options.bank, rows=stored)
                return 0
            rows, links, again = read_file(file, kind, text=options.text), {}, lambda: iter(())
        if options.create:
            recall.create_bank(options.bank, exist_ok=True)
        done = import_rows(
            recall,
            options.bank,
            rows,
            model=options.vectors_of,
            links=links,
            again=again() if links else (),
            progress=advance,
        )
    return _print_import(options, console, done)


def _print_import(options: SimpleNamespace, console: Console, done: Imported) -> int:
    if options.json:
        print_json(console, done)
    else:
        also = wording.known(done.total - done.new - done.misfit_count)
        console.print(f'imported {done.new:,} facts into bank "{options.bank}"{also}', markup=False)
        for misfit in done.misfits[:_SHOWN]:
            console.print(f"  {misfit.place}: {wording.line(misfit.problem)}", markup=False)
        if done.misfit_count > _SHOWN:
            console.print(f"  and {done.misfit_count - _SHOWN:,} more: see them with --json")
    if done.total == 0:
        return fail(f"there is nothing to import in {options.source}", None)
    if done.misfit_count:
        return fail(f"{done.misfit_count:,} of {done.total:,} rows did not fit", None)
    return 0


def _kind(source: str) -> str:
    """Return the type of a file by its name; standard input has JSON lines."""
    suffix = Path(source).suffix.lower().lstrip(".")
    return suffix if suffix in READERS else "jsonl"


def _export_header(file: BinaryIO) -> dict[str, object] | None:
    """Return the first row if a file begins with a row of an export."""
    line = next((line for line in file if line.strip()), b"")
    file.seek(0)
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        return None
    is_row = isinstance(first, dict) and first.keys() - {"rows"} == {"table", "row"}
    return first if is_row else None


def _check_whole(file: BinaryIO, first: dict[str, object], source: str) -> None:
    """Refuse an export that was cut. Older ones do not say how many rows they have."""
    rows = first.get("rows")
    found = sum(1 for line in file if line.strip())
    file.seek(0)
    if isinstance(rows, int) and found < rows:
        raise InvalidFact(
            f"{source} was cut: it has {found:,} of {rows:,} rows",
            hint="Copy the file again, or export the bank again. Nothing was imported.",
        )
