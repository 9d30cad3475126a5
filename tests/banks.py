"""Calls of pgrecall's SQL, and what they do on the server, for tests that ask SQL itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

Connection = psycopg.Connection[Any]

JSON = {"facts", "messages", "filter", "weights", "gates", "settings"}
VECTORS = {"embedding", "hypothetical"}


def call(connection: Connection, function: str, **arguments: Any) -> list[Any]:
    """Call a function by named arguments; its rows are named tuples."""
    query = sql.SQL("select * from pgrecall.{}({})").format(
        sql.Identifier(function),
        sql.SQL(", ").join(
            sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name))
            for name in arguments
        ),
    )
    values = {name: _to_server(name, value) for name, value in arguments.items()}
    with connection.cursor(row_factory=namedtuple_row) as cursor:
        return list(cursor.execute(query, values).fetchall())


def _to_server(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in JSON:
        return Jsonb(value)
    if name in VECTORS:
        return json.dumps([float(x) for x in value])
    return value


def create(connection: Connection, bank: str = "b", **arguments: Any) -> None:
    call(connection, "create_bank", bank=bank, **arguments)


def retain(
    connection: Connection, facts: Iterable[str | dict[str, Any]], bank: str = "b", **arguments: Any
) -> list[int]:
    """Retain facts, a text or an object each; returns their ids in order."""
    objects = [{"text": fact} if isinstance(fact, str) else fact for fact in facts]
    return [
        row.memory_id for row in call(connection, "retain", bank=bank, facts=objects, **arguments)
    ]


def build_planned(connection: Connection) -> list[str]:
    """Build the indexes that index_plan says are due, in the transaction; returns their names."""
    due = [row for row in call(connection, "index_plan") if row.action == "create"]
    for row in due:
        connection.execute(row.statement.replace(" concurrently", "").encode())
    return [row.index_name for row in due]


def apply_plan(connection: Connection, bank: str | None = None) -> list[str]:
    """Run what index_plan says, one statement after the other; returns the actions."""
    due = call(connection, "index_plan", bank=bank)
    for row in due:
        connection.execute(row.statement.encode())
    return [row.action for row in due]


def ids(rows: Sequence[Any]) -> list[int]:
    return [row[0] for row in rows]


@contextmanager
def counted_scans(connection: Connection) -> Iterator[Counter[str]]:
    """Count the scans that the block makes of each index, and of each table as a whole.

    So are seen the plans of statements inside functions.
    """
    scans: Counter[str] = Counter()
    before = _scans(connection)
    yield scans
    scans.update(_scans(connection) - before)


def _scans(connection: Connection) -> Counter[str]:
    rows = connection.execute(
        "select c.relname, pg_stat_get_xact_numscans(c.oid)"
        " from pg_class c where c.relkind in ('r', 'i')"
        " and c.relnamespace = 'pgrecall'::regnamespace"
    ).fetchall()
    return Counter(dict(rows))
