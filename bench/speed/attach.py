"""Measure what an attachment costs the writers of a table, and how fast the bank follows.

    python -m bench.speed.attach --smoke
    python -m bench.speed.attach --full

One client writes a table of sentences, plain and with each kind of attachment:

* <kind>.<statement>_ms: processor milliseconds of the server for a statement of one row (row), and
  for each row of a long statement (bulk); insert, update, delete. plain: not attached; later:
  attached; commit: attached with apply => 'commit', which includes the work in the bank.
* note.<statement>_us: microseconds that the note of a key adds: later less plain.
* sync.copied_per_s, changed_per_s, removed_per_s: rows of sync_table() for each second of processor
  time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
from bench import harness

ROWS = {False: 5_000, True: 200}
STATEMENTS = {False: 400, True: 20}
WORDS = "array['pool','shop','deploy','window','outage','invoice','Lisbon','meeting','gateway']"
FILL = (
    "insert into {table} select n, (select string_agg(w, ' ') from"
    f" (select ({WORDS})[1 + (hashint4(n * 31 + k) & 7)] as w from generate_series(1, 9) k) x)"
    " || ' ' || n, 'Person ' || n % 500 from generate_series({first}, {last}) n"
)


def measured(connection: psycopg.Connection[Any], work: Callable[[], object], count: int) -> float:
    """Return the processor milliseconds of the server for each of count pieces of work."""
    before = harness.clock(connection)
    work()
    return (harness.clock(connection) - before) / count


def statements(connection: psycopg.Connection[Any], count: int, rows: int) -> harness.Figures:
    """Return what statements on table item cost: of one row each, then long ones."""

    def each(sql: str, *, first: int) -> Callable[[], object]:
        def work() -> None:
            for n in range(first, first + count):
                connection.execute(sql.encode(), {"n": n})

        return work

    def run(sql: str) -> Callable[[], object]:
        return lambda: connection.execute(sql.encode())

    top = 10_000_000
    insert = "insert into item values (%(n)s, 'The shop was open ' || %(n)s, 'Ana')"
    update = "update item set body = body || '.' where id = %(n)s"
    delete = "delete from item where id = %(n)s"
    bulk = f"id between {2 * top} and {2 * top + rows}"
    fill = FILL.format(table="item", first=2 * top, last=2 * top + rows - 1)
    return {
        "insert_row_ms": measured(connection, each(insert, first=top), count),
        "update_row_ms": measured(connection, each(update, first=top), count),
        "delete_row_ms": measured(connection, each(delete, first=top), count),
        "insert_bulk_ms": measured(connection, run(fill), rows),
        "update_bulk_ms": measured(
            connection, run(f"update item set body = body || '.' where {bulk}"), rows
        ),
        "delete_bulk_ms": measured(connection, run(f"delete from item where {bulk}"), rows),
    }


def sync(connection: psycopg.Connection[Any]) -> None:
    """Sync until nothing is left."""
    while connection.execute(
        "select bool_and(is_complete) from pgrecall.sync_table('b')"
    ).fetchone() != (True,):
        pass


def main() -> None:
    """Run the benchmark and print its figures."""
    options = harness.arguments(__doc__).parse_args()
    rows, count = ROWS[options.smoke], STATEMENTS[options.smoke]
    figures: harness.Figures = {}
    attach = (
        "select pgrecall.attach_table('b', 'item', 'id', 'body', entities => '{author}',"
        " apply => %s)"
    )
    with harness.database() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select pgrecall.create_bank('b')")
        connection.execute("create table item (id bigint primary key, body text, author text)")
        connection.execute(FILL.format(table="item", first=1, last=rows).encode())

        def note(kind: str, found: harness.Figures) -> None:
            figures.update({f"{kind}.{name}": figure for name, figure in found.items()})

        statements(connection, count, rows)  # warms up
        note("plain", statements(connection, count, rows))
        connection.execute(attach, ["later"])
        figures["sync.copied_per_s"] = 1000 / measured(connection, lambda: sync(connection), rows)
        note("later", statements(connection, count, rows))
        sync(connection)
        connection.execute("update item set body = body || '!'")
        figures["sync.changed_per_s"] = 1000 / measured(connection, lambda: sync(connection), rows)
        connection.execute("delete from item")
        figures["sync.removed_per_s"] = 1000 / measured(connection, lambda: sync(connection), rows)
        # As many rows as before: in a bank of up to 500 facts each retain weighs all facts again.
        connection.execute(FILL.format(table="item", first=1, last=rows).encode())
        connection.execute(attach, ["commit"])
        sync(connection)
        note("commit", statements(connection, count, min(rows, 500)))
        for name in [name.removeprefix("plain.") for name in figures if name.startswith("plain.")]:
            more = figures[f"later.{name}"] - figures[f"plain.{name}"]
            figures[f"note.{name.removesuffix('_ms')}_us"] = more * 1000
        harness.show(figures)
        harness.write(options, figures, {"rows": rows, "statements": count}, dsn)


if __name__ == "__main__":
    main()
