"""Measure which index finds the facts of a time window: btree, GiST or BRIN.

    python -m bench.speed.temporal_index --smoke
    python -m bench.speed.temporal_index --full

One large bank among others that hold as much together. Three quarters of the facts are moments or
days over five years, stored in about the order in which they happened; one in a hundred lasts for
years or has no end. Each index stands alone in turn, and a statement asks for a window as the
temporal arm does, one branch per fact type, the latest 2,000 of each:

* btree: (bank_id, fact_type, lower, upper), two inequalities;
* btree_parts: the same index with "longer than 31 days" before the bounds, so that the short facts
  need not be read from the beginning of time;
* gist: on the range, over all banks, for btree_gist is no part of every server;
* brin: on the columns of btree.

Figures: {index}.{window}_p50_ms and _p95_ms (planning included), {index}.insert_ms of 1,000 facts,
{index}.megabytes.
"""

from __future__ import annotations

import random
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg
from bench import harness
from psycopg import sql

LARGE, SMALL = "temporal index: large", "temporal index: small {}"
SMALL_BANKS = 12
TYPES = ("world", "experience", "event")
START = datetime(2021, 1, 1, tzinfo=timezone.utc)
DAYS = 5 * 365
WINDOWS: dict[str, int | None] = {"day": 1, "week": 7, "month": 30, "year": 365, "open": None}

IS_LONG = "(upper(occurred) - lower(occurred) > interval '31 days')"
INDEXES = {
    "btree": "btree (bank_id, fact_type, lower(occurred), upper(occurred))",
    "btree_parts": f"btree (bank_id, fact_type, {IS_LONG}, lower(occurred), upper(occurred))",
    "gist": "gist (occurred)",
    "brin": "brin (bank_id, fact_type, lower(occurred), upper(occurred))",
}
BOUNDS = "lower(m.occurred) < %(end)s and upper(m.occurred) > %(start)s"
WHERE = {
    "btree": [BOUNDS],
    "btree_parts": [
        "not (upper(m.occurred) - lower(m.occurred) > interval '31 days')"
        f" and lower(m.occurred) > %(start)s - interval '31 days' and {BOUNDS}",
        f"upper(m.occurred) - lower(m.occurred) > interval '31 days' and {BOUNDS}",
    ],
    "gist": ["m.occurred && tstzrange(%(start)s, %(end)s)"],
    "brin": [BOUNDS],
}
LOAD = """
insert into pgrecall.memory (bank_id, fact_type, text, occurred, content_hash)
select %(bank)s, (%(types)s::text[])[1 + floor(random() * 3)::integer], 'fact ' || n,
       case
         when kind < 0.10 then null
         when kind < 0.60 then tstzrange(at, at, '[]')
         when kind < 0.85 then tstzrange(date_trunc('day', at), date_trunc('day', at) + '1 day')
         when kind < 0.99 then tstzrange(at, at + random() * interval '60 days')
         when kind < 0.995 then tstzrange(at, at + random() * interval '1000 days')
         else tstzrange(at, 'infinity')
       end,
       sha256(convert_to(%(bank)s || n, 'UTF8'))
from (
  select n, random() as kind,
         %(start)s + (n::double precision / %(facts)s * %(days)s + random() * 30)
                   * interval '1 day' as at
  from   generate_series(1, %(facts)s) as n
) as fact
"""

Connection = psycopg.Connection[Any]


def load(connection: Connection, bank: str, facts: int) -> None:
    values = {"bank": bank, "facts": facts, "types": list(TYPES), "start": START, "days": DAYS}
    connection.execute("select pgrecall.create_bank(%s)", [bank])
    connection.execute(LOAD, values)


def branch(kind: str, where: str) -> str:
    return f"""(select m.memory_id, m.occurred from pgrecall.memory m
      where m.bank_id = %(bank)s and m.fact_type = '{kind}' and m.occurred is not null
        and {where} and m.valid_from <= now() and (m.valid_to is null or m.valid_to > now())
      order by lower(m.occurred) desc limit 2000)"""


def statement(index: str) -> bytes:
    found = " union all ".join(branch(t, w) for t in TYPES for w in WHERE[index])
    return f"select count(f.occurred) from ({found}) as f".encode()


def windows(days: int | None, count: int) -> list[tuple[datetime, datetime]]:
    """Make windows at random, the same for each index; what is open has a long way to go."""
    choice = random.Random(days or 0)
    starts = [START + timedelta(days=choice.uniform(0, DAYS)) for _ in range(count)]
    length = timedelta(days=days) if days else timedelta(days=100 * 365)
    return [(start, start + length) for start in starts]


def measure(connection: Connection, index: str, count: int) -> harness.Figures:
    figures: harness.Figures = {}
    query = statement(index)
    for name, days in WINDOWS.items():
        milliseconds = []
        for start, end in windows(days, count):
            values = {"bank": LARGE, "start": start, "end": end}
            began = time.perf_counter()
            # Planned for its values each time, as an arm's statement is.
            connection.execute(query, values, prepare=False).fetchall()
            milliseconds.append((time.perf_counter() - began) * 1000)
        figures[f"{index}.{name}_p50_ms"] = round(harness.percentile(milliseconds, 50), 2)
        figures[f"{index}.{name}_p95_ms"] = round(harness.percentile(milliseconds, 95), 2)
    return figures


def compare(connection: Connection, count: int) -> harness.Figures:
    """Try each index alone; nothing of it stays."""
    figures: harness.Figures = {}
    ours = connection.execute(
        "select i.indexrelid::regclass::text from pg_index i"
        " where i.indrelid = 'pgrecall.memory'::regclass"
        " and pg_get_indexdef(i.indexrelid) like '%occurred%'"
    ).fetchall()
    for index, definition in INDEXES.items():
        with connection.transaction(force_rollback=True):
            for (name,) in ours:
                connection.execute(f"drop index {name}".encode())
            connection.execute(f"create index tried on pgrecall.memory using {definition}".encode())
            connection.execute("analyze pgrecall.memory")
            figures |= measure(connection, index, count)
            size = connection.execute("select pg_relation_size('pgrecall.tried')").fetchone()
            assert size is not None
            figures[f"{index}.megabytes"] = round(size[0] / 1e6, 1)
            began = time.perf_counter()
            load(connection, "temporal index: more", 1000)
            figures[f"{index}.insert_ms"] = round((time.perf_counter() - began) * 1000, 1)
        table(index, figures)
    return figures


def table(index: str, figures: harness.Figures) -> None:
    names = [f"{window}_{p}_ms" for window in WINDOWS for p in ("p50", "p95")]
    print(f"{index:12}", end="")
    print("".join(f" {figures[f'{index}.{name}']:9.2f}" for name in names), end="")
    print(f" {figures[f'{index}.insert_ms']:9.1f} {figures[f'{index}.megabytes']:7.1f}", flush=True)


def main() -> None:
    parser = harness.arguments(__doc__, "")
    options = parser.parse_args()
    facts, count = (6_000, 5) if options.smoke else (120_000, 60)
    banks = [LARGE, *(SMALL.format(n) for n in range(SMALL_BANKS))]
    with harness.database() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select setseed(0.5)")
        try:
            for bank in banks:
                load(connection, bank, facts if bank == LARGE else facts // SMALL_BANKS)
            connection.execute("vacuum analyze pgrecall.memory")
            print(f"{facts} facts in one bank, {facts} in {SMALL_BANKS} others; ms, size in MB")
            head = "".join(f" {w + ' ' + p:>9}" for w in WINDOWS for p in ("p50", "p95"))
            print(f"{'':12}{head} {'insert':>9} {'size':>7}")
            figures = compare(connection, count)
        finally:
            for bank in banks:
                connection.execute(
                    sql.SQL("delete from pgrecall.memory where bank_id = {}").format(bank)
                )
                connection.execute(
                    sql.SQL("delete from pgrecall.bank where bank_id = {}").format(bank)
                )
        harness.write(options, figures, {"facts": facts, "banks": len(banks)}, dsn)


if __name__ == "__main__":
    main()
