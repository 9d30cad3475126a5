"""Commands for your own tables: attach, sync, detach."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

from rich.console import Console

from pgrecall.client import Recall
from pgrecall.command import render
from pgrecall.command.actions import print_done, print_json
from pgrecall.command.running import watch
from pgrecall.rows import AttachedTable, SyncedTable


def attach(options: SimpleNamespace, console: Console) -> int:
    """Attach a table to a bank and copy its rows."""
    fields: dict[str, list[str]] = {}
    for name, column in options.field:
        fields.setdefault(name, []).append(column)
    with Recall.connect(options.dsn, embedder=None) as recall:
        if options.create:
            recall.create_bank(options.bank, exist_ok=True)
        recall.attach_table(
            options.bank,
            options.table,
            key=options.key,
            text=options.text,
            fact_type=options.fact_type,
            occurred=options.occurred,
            entities=options.entity or (),
            fields=fields,
            apply=options.apply,
            is_history_kept=False if options.no_history else None,
        )
    return sync(options, console)


def sync(options: SimpleNamespace, console: Console) -> int:
    """Copy the changes of attached tables to the bank, once or continuously."""
    done: dict[str, SyncedTable] = {}
    with (
        Recall.connect(options.dsn, embedder=None) as recall,
        render.progress_bar() as progress,
    ):
        attached = recall.attached_tables(options.bank)
        rows = sum(table.table_rows or 0 for table in attached if table.status == "copying")
        task = progress.add_task("syncing", total=rows or None)
        advance = partial(progress.advance, task)

        def step() -> None:
            for table in recall.sync_table(
                options.bank, options.table, batch_size=options.batch_size, progress=advance
            ):
                done[table.relation] = table.after(done.get(table.relation))

        watch(step, options, progress.console)
        attached = recall.attached_tables(options.bank)
    if options.json:
        print_json(console, list(done.values()))
        return 0
    for table in done.values():
        console.print(_said(table), markup=False)
    if not done:
        console.print(f'no table is attached to bank "{options.bank}"', markup=False)
    for state in attached:
        if state.problem:
            console.print(_problem(state), style="yellow", markup=False)
    return 0


def detach(options: SimpleNamespace, console: Console) -> int:
    """Detach a table from a bank."""
    with Recall.connect(options.dsn, embedder=None) as recall:
        count = recall.detach_table(options.bank, options.table, is_forgotten=options.forget)
    stay = "were forgotten" if options.forget else "stay"
    said = f'detached {options.table} from bank "{options.bank}"; {count:,} memories {stay}'
    print_done(options, console, said, bank_id=options.bank, memories=count)
    return 0


def _said(table: SyncedTable) -> str:
    counts = (
        f"{table.added:,} added, {table.changed:,} changed, {table.removed:,} removed,"
        f" {table.unchanged:,} unchanged"
    )
    return f"{table.relation}: {counts}" + (f", {table.failed:,} failed" * (table.failed > 0))


def _problem(state: AttachedTable) -> str:
    return f"{state.relation}: {state.problem}"
