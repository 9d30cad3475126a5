"""Put load on the server as pgbench does: recall, retain and forget by 1 to 64 clients.

    python -m bench.scale.clients --smoke
    python -m bench.scale.clients --full
    python -m bench.scale.clients --facts 10000 --clients 16 --seconds 120

The scripts are in bench/scale/scripts/; pgbench can run them, too:

    psql -v facts=10000 -f bench/scale/scripts/fill.sql
    pgbench -n -c 16 -T 600 -D facts=10000 -f bench/scale/scripts/recall.sql@8 \
      -f bench/scale/scripts/retain.sql -f bench/scale/scripts/forget.sql

Here each client is a thread with a connection, and chooses among the scripts with the same weights.
A bank of each size, with vectors of 64 dimensions, is put under load for --seconds with each number
of clients. The exit status is 1 if a call failed.

* facts.SIZE.clients.N.errors: calls that failed; .rate: calls a second.
* .recall_p50_ms, .recall_p99_ms, and the same of retain and forget.
* .backend_mb_first, .backend_mb_last: private memory of a server process, the mean over the
  clients, after a tenth of the time and at the end.
* .table_mb_first, .table_mb_last: size of the tables with their indexes; .facts_last: facts in the
  bank at the end; .dead_rows_last: rows that vacuum has to remove.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any

import psycopg
from bench import harness

SCRIPTS = Path(__file__).with_name("scripts")
WEIGHTS = {"recall": 8, "retain": 1, "forget": 1}
FACTS = (1_000, 10_000, 100_000)
CLIENTS = (1, 4, 16, 64)
SET = re.compile(r"^\\set (\w+) random\((\d+), (\d+)\)\n", re.MULTILINE)
TABLES = """
select sum(pg_total_relation_size(c.oid)) / 1e6, sum(coalesce(s.n_dead_tup, 0))
from   pg_class c
left   join pg_stat_user_tables s on s.relid = c.oid
where  c.relnamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
  and  c.relkind = 'r'
"""
Connection = psycopg.Connection[Any]


@dataclass
class Script:
    """A script of pgbench: its variables, each with a range, and its statement."""

    ranges: dict[str, tuple[int, int]]
    statement: str

    def drawn(self, facts: int) -> str:
        """Return the statement with values in place of its variables."""
        values = {name: random.randint(*bounds) for name, bounds in self.ranges.items()}
        return substituted(self.statement, {**values, "facts": facts})


@dataclass
class Load:
    """What the clients did, and its results."""

    milliseconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)
    memory_mb: list[float] = field(default_factory=list)


def substituted(statement: str, values: dict[str, int]) -> str:
    """Put values in place of :name, but not of ::type."""
    return re.sub(r"(?<!:):(\w+)", lambda found: str(values[found[1]]), statement)


def script(name: str) -> Script:
    """Read a script that pgbench runs."""
    text = (SCRIPTS / f"{name}.sql").read_text(encoding="utf-8")
    ranges = {name: (int(low), int(high)) for name, low, high in SET.findall(text)}
    return Script(ranges, SET.sub("", text))


def fill(connection: Connection, facts: int) -> None:
    """Run fill.sql as psql does, unless the bank exists."""
    if connection.execute(
        "select from pgrecall.bank where bank_id = %s", [f"load{facts}"]
    ).fetchone():
        return
    text = substituted((SCRIPTS / "fill.sql").read_text(encoding="utf-8"), {"facts": facts})
    for part in re.split(r";\n|(?<=\\gexec)\n", text):
        if part.rstrip().endswith("\\gexec"):
            rows = connection.execute(part.replace("\\gexec", "").encode()).fetchall()
            for (statement,) in rows:
                connection.execute(statement.encode())
        elif part.strip():
            connection.execute(part.encode())


def own_memory_mb(connection: Connection) -> float:
    """Return the private memory of the server's process; 0 where it cannot be read."""
    try:
        status = Path(f"/proc/{connection.info.backend_pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    return int(found[1]) / 1000 if found else 0


def load(dsn: str, facts: int, clients: int, seconds: float) -> Load:
    """Let clients call until time is up."""
    scripts = {name: script(name) for name in WEIGHTS}
    found = Load()
    first, last = [0.0] * clients, [0.0] * clients
    start = perf_counter()

    def client(number: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while (began := perf_counter()) < start + seconds:
                (name,) = random.choices(list(WEIGHTS), list(WEIGHTS.values()))
                try:
                    connection.execute(scripts[name].drawn(facts).encode())
                except psycopg.Error as error:
                    found.errors[f"{name}: {error.sqlstate} {error.diag.message_primary}"] += 1
                now = perf_counter()
                found.milliseconds[name].append((now - began) * 1000)
                if not first[number] and now > start + seconds / 10:
                    first[number] = own_memory_mb(connection)
            last[number] = own_memory_mb(connection)

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, range(clients)))
    found.memory_mb = [fmean(first), fmean(last)]
    return found


def tables(connection: Connection) -> tuple[float, float]:
    """Return the size of the tables in MB, and how many dead rows they have."""
    megabytes, dead = harness.one(connection, TABLES)
    return float(megabytes), float(dead)


def measure(
    connection: Connection, dsn: str, facts: int, clients: int, seconds: float
) -> tuple[harness.Figures, Counter[str]]:
    """Load a bank with so many clients."""
    size_first, _ = tables(connection)
    found = load(dsn, facts, clients, seconds)
    size_last, dead = tables(connection)
    (count,) = harness.one(
        connection, "select count(*) from pgrecall.memory where bank_id = %s", [f"load{facts}"]
    )
    figures: harness.Figures = {
        "errors": found.errors.total(),
        "rate": sum(map(len, found.milliseconds.values())) / seconds,
        "backend_mb_first": found.memory_mb[0],
        "backend_mb_last": found.memory_mb[1],
        "table_mb_first": size_first,
        "table_mb_last": size_last,
        "dead_rows_last": dead,
        "facts_last": float(count),
    }
    for name, milliseconds in sorted(found.milliseconds.items()):
        for percent in (50, 99):
            figures[f"{name}_p{percent}_ms"] = harness.percentile(milliseconds, percent)
    return {name: round(value, 2) for name, value in figures.items()}, found.errors


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--facts", type=int, nargs="+", help="sizes of the banks")
    parser.add_argument("--clients", type=int, nargs="+", help="numbers of clients")
    parser.add_argument("--seconds", type=float, help="of load for each; default 600, smoke 3")
    options = parser.parse_args()
    sizes = options.facts or ((1_000,) if options.smoke else FACTS)
    clients = options.clients or ((1, 8) if options.smoke else CLIENTS)
    seconds = options.seconds or (3 if options.smoke else 600)
    figures: harness.Figures = {}
    failed: Counter[str] = Counter()
    with harness.database() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        for facts in sizes:
            fill(connection, facts)
            for count in clients:
                found, errors = measure(connection, dsn, facts, count, seconds)
                failed += errors
                print(f"{facts:,} facts, {count} clients, {seconds:g} s")
                for name, value in found.items():
                    print(f"  {name:18} {value:12,.2f}")
                    figures[f"facts.{facts}.clients.{count}.{name}"] = value
        harness.write(options, figures, {"seconds": seconds, "weights": WEIGHTS}, dsn)
    for error, times in failed.most_common(10):
        print(f"{times} times {error}", file=sys.stderr)
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
