"""``pgrecall shard``: banks on several servers behind a router."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import psycopg
from rich.console import Console

from pgrecall.cluster import shards
from pgrecall.command import render
from pgrecall.command.actions import print_done, print_json
from pgrecall.connection.connecting import connect
from pgrecall.server import resolve_dsn


def init(options: SimpleNamespace, console: Console) -> int:
    """Make a database the router."""
    with _router(options) as router:
        is_new = shards.init(router)
    said = "the database is a router now" if is_new else "the database is a router already"
    print_done(options, console, said, is_new=is_new)
    return 0


def add(options: SimpleNamespace, console: Console) -> int:
    """Add a server that holds banks."""
    with _router(options) as router:
        banks = shards.add(router, options.name, options.shard_dsn, is_open=not options.closed)
    said = f'added shard "{options.name}" with {len(banks):,} banks'
    print_done(options, console, said, shard=options.name, banks=len(banks))
    return 0


def list_banks(options: SimpleNamespace, console: Console) -> int:
    """List the banks and their shards."""
    with _router(options) as router:
        banks = shards.banks(router, options.shard)
    if options.json:
        print_json(console, [{"bank_id": bank, "shard": shard} for bank, shard in banks])
    else:
        console.print(render.shard_banks_table(banks))
    return 0


def move(options: SimpleNamespace, console: Console) -> int:
    """Move a bank to another shard."""
    with _router(options) as router:
        moved = shards.move(router, options.bank, options.to)
    said = f'bank "{options.bank}" is on shard "{options.to}"'
    if moved.rows:
        said += f": {moved.rows:,} rows; its writers waited for {moved.paused:.1f} s"
    print_done(options, console, said, bank_id=options.bank, shard=options.to, **asdict(moved))
    return 0


def status(options: SimpleNamespace, console: Console) -> int:
    """Show the state of each shard; return 1 if one has a problem."""
    with _router(options) as router:
        found = shards.status(router)
    if options.json:
        print_json(console, found)
    else:
        console.print(render.shards_table(found))
        for one in found:
            if one.problem:
                said = f'shard "{one.shard}": {one.problem}'
                console.print(said, markup=False, soft_wrap=True)
    return int(any(one.problem for one in found))


def migrate(options: SimpleNamespace, console: Console) -> int:
    """Upgrade pgrecall on each shard in turn, then on the router."""
    done: dict[str, str] = {}

    def report(shard: str, version: str) -> None:
        done[shard] = version
        if not options.json:
            console.print(f'shard "{shard}" has version {version}', markup=False)

    with _router(options) as router:
        shards.migrate(router, report)
    print_done(options, console, "the router has the new functions", shards=done)
    return 0


@contextmanager
def _router(options: SimpleNamespace) -> Iterator[psycopg.Connection[Any]]:
    with connect(resolve_dsn(options.dsn), autocommit=True) as router:
        yield router
