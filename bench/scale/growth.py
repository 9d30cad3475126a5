"""Measure what time, disk and memory one bank takes as it grows, and project that to ten million.

    python -m bench.scale.growth --smoke
    python -m bench.scale.growth --full
    PGRECALL_DSN=... python -m bench.scale.growth --sizes 1000000 3000000

The banks are those of speed/graph.py: three entities and a link in time for a fact, three fact
types, vectors of 64 dimensions. Each is in a database of its own; on a server that PGRECALL_DSN
names they stay, and a later run finds them.

Figures of each size, of one client and 200 questions that were asked once before:

* growth.SIZE.p50_ms, .p95_ms, .p99_ms: hybrid_recall() with all arms, ten rows, by the wall;
  .processor_ms: the median of the server's processor time;
* growth.SIZE.bytes.PART: bytes a fact of memories, words (the GIN index), embeddings, hnsw,
  mentions, links and others, with their indexes; .backend_mb: memory of the server's process that
  it shares with no other, plans above all;
* growth.SIZE.index_s: seconds that building the HNSW indexes took, where this run built them.

And projected.* for 10,000,000 facts: times by the line over the logarithm of the facts (least
squares), gigabytes by the bytes a fact of the largest bank.
"""

from __future__ import annotations

import math
import time
from statistics import linear_regression, median

import psycopg
from bench import harness
from bench.speed import graph
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgrecall import schema

SIZES = (100_000, 300_000, 1_000_000, 3_000_000)
SMOKE_SIZES = (1_000, 2_000)
PROJECTED = 10_000_000
QUESTIONS = {False: 200, True: 5}
# Room for the largest bank: what is not in shared buffers costs some 5 µs a page.
SETTINGS = {**graph.MEMORY, "shared_buffers": "8GB"}
TIMES = ("p50_ms", "p95_ms", "p99_ms", "processor_ms")
BANK = "growing"
RECALL = """
select * from pgrecall.hybrid_recall(
  %(bank)s, %(query)s, %(embedding)s::real[]::halfvec, options => '{"time_basis": "mentioned"}')
"""
PARTS = """
select case
         when a.amname = 'hnsw' then 'hnsw'
         when a.amname = 'gin' and t.relname = 'memory' then 'words'
         when t.relname like 'embedding%' then 'embeddings'
         when t.relname = 'memory' then 'memories'
         when t.relname = 'mention' then 'mentions'
         when t.relname = 'link' then 'links'
         else 'others'
       end,
       sum(case c.relkind when 'r' then pg_table_size(c.oid) else pg_relation_size(c.oid) end)
from   pg_class c
join   pg_am a on a.oid = c.relam
left   join pg_index i on i.indexrelid = c.oid
join   pg_class t on t.oid = coalesce(i.indrelid, c.oid)
where  c.relkind in ('r', 'i') and t.relnamespace::regnamespace::text like 'pgrecall%'
group  by 1
"""


def fill(dsn: str, facts: int) -> tuple[str, float]:
    """Make a bank in a database of its own, unless it is there.

    Returns:
        The dsn of the database, and the seconds of graph.fill().

    """
    name = f"growth_{harness.label(facts)}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        if not connection.execute("select from pg_database where datname = %s", [name]).rowcount:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    dsn = make_conninfo(dsn, dbname=name)
    with psycopg.connect(dsn) as connection:
        schema.migrate(connection)
    with psycopg.connect(dsn, autocommit=True) as connection:
        took = graph.fill(connection, BANK, facts, graph.USUAL)
        connection.execute("vacuum analyze")
    return dsn, took


def measure(dsn: str, facts: int, count: int) -> harness.Figures:
    """Ask a bank, and look at what it takes."""
    walls: list[float] = []
    spent: list[float] = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.prepare_threshold = 1
        for is_warm in (False, True):
            for question in graph.questions(count):
                began = time.perf_counter()
                took, _ = harness.timed(connection, RECALL, {"bank": BANK, **question})
                if is_warm:
                    walls.append((time.perf_counter() - began) * 1000)
                    spent.append(took)
        found = {f"p{p}_ms": harness.percentile(walls, p) for p in (50, 95, 99)}
        found["processor_ms"] = median(spent)
        found["backend_mb"] = harness.own_megabytes(connection.info.backend_pid)
        for part, size in connection.execute(PARTS.encode()).fetchall():
            found[f"bytes.{part}"] = float(size) / facts
    return found


def project(found: dict[int, harness.Figures]) -> harness.Figures:
    """Return what the figures of all sizes make of PROJECTED facts."""
    logs = [math.log(facts) for facts in found]
    projected: harness.Figures = {}
    for name in TIMES:
        line = linear_regression(logs, [one[name] for one in found.values()])
        projected[name] = line.intercept + line.slope * math.log(PROJECTED)
    sizes = [size for name, size in found[max(found)].items() if name.startswith("bytes.")]
    return projected | {"gigabytes": sum(sizes) * PROJECTED / 1e9}


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = harness.arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", help="facts of the banks, at least two")
    options = parser.parse_args()
    sizes = options.sizes or (SMOKE_SIZES if options.smoke else SIZES)
    found: dict[int, harness.Figures] = {}
    figures: harness.Figures = {}
    with harness.database(graph.MEMORY if options.smoke else SETTINGS) as server:
        for facts in sorted(sizes):
            dsn, index_s = fill(server, facts)
            found[facts] = measure(dsn, facts, QUESTIONS[options.smoke])
            if index_s:
                found[facts]["index_s"] = index_s
            named = {f"growth.{harness.label(facts)}.{k}": v for k, v in found[facts].items()}
            harness.show(named)
            figures |= named
        projected = {f"projected.{name}": value for name, value in project(found).items()}
        harness.show(projected)
        rounded = {name: round(value, 3) for name, value in (figures | projected).items()}
        harness.write(options, rounded, {"sizes": list(sizes)}, server)


if __name__ == "__main__":
    main()
