"""Compute from measured parts how many servers a load needs, and what breaks first.

    python -m bench.scale.scale_out --smoke
    python -m bench.scale.scale_out --full
    python -m bench.scale.scale_out --router /usr/lib/postgresql/15/bin --banks 1e7 --facts 1e10

Measured on one server: processor time of a recall by size of bank, bytes of a fact in tables,
indexes and log, private memory of a connection, speed of a dump, and bytes of a bank in the
directory of a router. With --router, the directory of the programs of a PostgreSQL with PL/Proxy,
also:

* hop_ratio: time of a recall through the router over that of a direct one, in the largest bank; the
  median over the questions, of the least of three times each.
* hop_router_ms: processor time of the router for a recall.
* spread_ratio: processor time of a recall with four shards that hold four times the banks, over
  that with one.

Without --router, these figures are those of an earlier measurement. The rest is arithmetic, printed
line by line with its formula: the number of shards follows from disk or memory, whichever needs
more; each shard has as many standbys as its recalls need. Options describe the load and a server.
"""

from __future__ import annotations

import math
import os
import random
import subprocess
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from signal import SIGHUP
from statistics import median
from typing import Any

import psycopg
from bench import harness
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgrecall import Recall, schema
from pgrecall.cluster import shards
from pgrecall.server import EmbeddedServer
from pgrecall.server.postmaster import Postmaster

Connection = psycopg.Connection[Any]
SIZES = {False: (100, 1_000, 10_000), True: (50, 200)}
DIMENSIONS = 64
BATCH = 1_000
QUESTIONS = {False: 60, True: 10}
SPREAD_BANKS = {False: 8, True: 2}  # of each shard
DIRECTORY_ROWS = {False: 200_000, True: 20_000}
WORDS = [f"word{n}" for n in range(3_000)]
# Measured with --router; used where it is not given.
HOP = {"hop_ratio": 1.0, "hop_router_ms": 0.8, "spread_ratio": 1.1}
USED = 0.6  # planned share of a processor, of memory and of a disk


def facts(count: int, seed: int) -> list[dict[str, object]]:
    """Make facts with two entities, a date, eight words of a long tail, and an embedding."""
    drawn = random.Random(seed)
    made: list[dict[str, object]] = []
    for n in range(count):
        words = (WORDS[int(len(WORDS) * drawn.random() ** 3)] for _ in range(8))
        person, city = f"Person {drawn.randrange(500)}", f"City {drawn.randrange(200)}"
        made.append(
            {
                "text": f"{person} saw {' '.join(words)} in {city} ({seed}.{n}).",
                "entities": [person, city],
                "occurred": f"2026-{1 + n % 12:02}-{1 + n % 28:02}",
                "embedding": [drawn.gauss(0, 1) for _ in range(DIMENSIONS)],
            }
        )
    return made


def fill(memory: Recall, bank: str, size: int) -> None:
    """Create a bank with the given number of facts."""
    memory.create_bank(bank)
    for place in range(0, size, BATCH):
        batch = facts(min(BATCH, size - place), place)
        memory.retain(bank, batch, model="toy", link="deferred")
    while memory.link_pending(bank):
        pass


def questions(count: int) -> Iterator[tuple[str, list[float]]]:
    """Make questions, each with an embedding."""
    drawn = random.Random(7)
    for _ in range(count):
        words = (WORDS[int(len(WORDS) * drawn.random() ** 3)] for _ in range(3))
        text = f"What did Person {drawn.randrange(500)} see with {' '.join(words)}?"
        yield text, [drawn.gauss(0, 1) for _ in range(DIMENSIONS)]


def recall_ms(asked: Connection, banks: list[str], count: int) -> tuple[float, list[float]]:
    """Return the median of the processor time of the connection's process, and all times."""
    spent, taken = [], []
    for n, (text, embedding) in enumerate([*questions(5), *questions(count)]):
        on_processor, began = harness.clock(asked), time.perf_counter()
        asked.execute(
            "select * from pgrecall.hybrid_recall(%s, %s, %s::real[], model => 'toy')",
            [banks[n % len(banks)], text, embedding],
        ).fetchall()
        spent.append(harness.clock(asked) - on_processor)
        taken.append(1000 * (time.perf_counter() - began))
    return median(spent[5:]), taken[5:]


def measured(dsn: str, *, is_smoke: bool) -> dict[str, float]:
    """Measure the parts that need one server."""
    figures: dict[str, float] = {}
    count = QUESTIONS[is_smoke]
    size_of = "select pg_database_size(current_database())"
    with psycopg.connect(dsn, autocommit=True) as admin:
        memory = Recall(admin, embedder=None)
        for size in SIZES[is_smoke]:
            before, log = value(admin, size_of), value(admin, "select pg_current_wal_lsn()")
            fill(memory, f"bank_{size}", size)
            admin.execute("vacuum analyze")
            figures["fact_bytes"] = (value(admin, size_of) - before) / size
            written = "select pg_wal_lsn_diff(pg_current_wal_lsn(), %s)"
            figures["log_bytes"] = float(value(admin, written, log)) / size
            figures[f"recall_cpu_ms_{size}"], _ = recall_ms(admin, [f"bank_{size}"], count)
        figures["connection_mb"] = private_mb(admin)
        figures["directory_bytes"] = directory_bytes(admin, DIRECTORY_ROWS[is_smoke])
    figures["dump_mb_per_s"] = dump_mb_per_s(dsn)
    return figures


def private_mb(connection: Connection) -> float:
    """Return the private MB of the server's process; 10 where they cannot be read."""
    try:
        path = Path(f"/proc/{connection.info.backend_pid}/status")
        lines = path.read_text(encoding="ascii").splitlines()
        return sum(int(one.split()[1]) for one in lines if one.startswith("RssAnon")) / 1000
    except OSError:
        return 10.0


def directory_bytes(admin: Connection, count: int) -> float:
    """Fill a table like that of the router. Returns the bytes of a row with its indexes."""
    admin.execute("create temp table directory (bank_id text primary key, shard text not null)")
    admin.execute("create index on directory (shard)")
    admin.execute(
        "insert into directory select 'tenant-' || md5(n::text), 'shard' || n %% 100"
        " from generate_series(1, %s) as n",
        [count],
    )
    return float(value(admin, "select pg_total_relation_size('directory')")) / count


def dump_mb_per_s(dsn: str) -> float:
    """Dump the database. Returns the megabytes of the database a second."""
    with psycopg.connect(dsn) as connection:
        size = value(connection, "select pg_database_size(current_database())") / 1e6
        programs = value(connection, "select setting from pg_config where name = 'BINDIR'")
    began = time.perf_counter()
    tables = ["-n", "pgrecall", "-n", "pgrecall_internal"]
    command = [f"{programs}/pg_dump", "-Fc", *tables, "-d", dsn]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return float(size / (time.perf_counter() - began))


def value(connection: Connection, statement: str, *values: object) -> Any:
    """Return the only value of a statement."""
    return harness.one(connection, statement, values or None)[0]


# The router


@contextmanager
def router(programs: Path) -> Iterator[str]:
    """Run a server with PL/Proxy; yields its dsn."""
    with harness.directory() as path:
        postmaster = Postmaster(path / "router", programs)
        postmaster.init()
        with EmbeddedServer(postmaster) as server:
            # Release 15 cannot map roles to "all"; the socket is in a directory of one user.
            (path / "router" / "pgrecall_hba.conf").write_text("local all all trust\n")
            os.kill(int((path / "router" / "postmaster.pid").read_text().split()[0]), SIGHUP)
            for _ in range(100):
                try:
                    psycopg.connect(server.dsn).close()
                    break
                except psycopg.OperationalError:
                    time.sleep(0.1)
            yield server.dsn


def routed(dsn: str, programs: Path, *, is_smoke: bool) -> dict[str, float]:
    """Measure the hop, and a recall on four shards beside one on a single shard."""
    largest, count = SIZES[is_smoke][-1], QUESTIONS[is_smoke]
    with router(programs) as router_dsn, ExitStack() as stack:
        asked = stack.enter_context(psycopg.connect(router_dsn, autocommit=True))
        direct = stack.enter_context(psycopg.connect(dsn, autocommit=True))
        shards.init(asked)
        place = conninfo_to_dict(dsn)
        del place["user"]
        shards.add(asked, "first", make_conninfo("", **place), is_open=False)
        bank = [f"bank_{largest}"]
        here, there, on_router = [], [], []
        for _ in range(3):
            here.append(recall_ms(direct, bank, count)[1])
            spent_there, times = recall_ms(asked, bank, count)
            there.append(times)
            on_router.append(spent_there)
        # The least time of each question: other work on the machine only adds to it.
        ratios = [
            min(times[n] for times in there) / min(times[n] for times in here) for n in range(count)
        ]
        hop = {"hop_ratio": median(ratios), "hop_router_ms": median(on_router)}
        banks: list[str] = []
        spent = []
        for number in range(4):
            name = f"spread{number}"
            direct.execute(f"create database {name}".encode())
            own = make_conninfo(dsn, dbname=name)
            shard = stack.enter_context(psycopg.connect(own, autocommit=True))
            schema.migrate(shard)
            held = [f"{name}_{n}" for n in range(SPREAD_BANKS[is_smoke])]
            for one in held:
                fill(Recall(shard, embedder=None), one, SIZES[is_smoke][-2])
            shard.execute("vacuum analyze")
            shards.add(asked, name, make_conninfo("", **{**place, "dbname": name}))
            banks += held
            if number in (0, 3):
                spent.append(recall_ms(shard, held, count)[0])
            recall_ms(asked, banks, 2 * len(banks))  # every bank answers through the router
        return {**hop, "spread_ratio": spent[1] / spent[0]}


# The arithmetic


def interpolated(figures: dict[str, float], size: float) -> float:
    """Return the processor time of a recall in a bank of a size between or beyond those measured.

    It is interpolated linearly over the logarithm of the size, and extrapolated likewise.
    """
    sizes = sorted(int(name.rsplit("_", 1)[1]) for name in figures if "recall_cpu_ms_" in name)
    low = max((one for one in sizes[:-1] if one <= size), default=sizes[0])
    high = sizes[sizes.index(low) + 1]
    share = (math.log(size) - math.log(low)) / (math.log(high) - math.log(low))
    at_low, at_high = (figures[f"recall_cpu_ms_{one}"] for one in (low, high))
    return max(at_low + share * (at_high - at_low), at_low / 2)


def plan(figures: dict[str, float], options: Namespace) -> list[tuple[str, str, float]]:
    """Compute what the load needs, as lines of (what, formula, value)."""
    size = options.facts / options.banks
    cpu = interpolated(figures, size) * figures["spread_ratio"]
    vectors = figures["fact_bytes"] + 2 * max(0, options.dimensions - DIMENSIONS)
    rate = options.banks * options.recalls_per_bank_day / 86_400
    peak = rate * options.peak
    of_server = options.cores * USED / (cpu / 1000)
    by_room = options.facts * vectors / (options.disk_tb * 1e12 * USED)
    by_memory = options.facts * vectors * options.hot / (options.memory_gb * 1e9 * USED)
    count = max(1, math.ceil(max(by_room, by_memory)))
    replicas = max(0, math.ceil(peak / count / of_server) - 1)
    servers = count * (1 + replicas)
    routers = max(1, math.ceil(peak * figures["hop_router_ms"] / 1000 / (options.cores * USED)))
    waiting = peak * cpu * figures["hop_ratio"] / 1000
    return [
        ("facts a bank", "facts / banks", size),
        ("processor ms a recall", "measured at that size, x spread_ratio", cpu),
        ("bytes a fact", "measured in the largest bank, + 2 a dimension above 64", vectors),
        ("recalls a second, mean", "banks x recalls a bank a day / 86,400", rate),
        ("recalls a second, peak", "mean x peak", peak),
        ("recalls a second a server", "cores x 0.6 / processor s a recall", of_server),
        ("shards by room", "facts x bytes / (disk x 0.6)", by_room),
        ("shards by memory", "facts x bytes x hot share / (memory x 0.6)", by_memory),
        ("N shards", "the larger, rounded up", count),
        ("R standbys a shard", "peak / N / recalls a server, rounded up, - 1", replicas),
        ("servers", "N x (1 + R)", servers),
        ("recalls a second that they serve", "servers x recalls a server", servers * of_server),
        ("routers", "peak x hop_router_ms / (cores x 0.6)", routers),
        ("cost a month a million facts", "servers x price / (facts / 1e6)",
         (servers + routers) * options.price / (options.facts / 1e6)),
        ("GB of the directory", "banks x bytes a row", options.banks
         * figures["directory_bytes"] / 1e9),
        ("recalls under way at peak", "peak x processor s x hop_ratio", waiting),
        ("connections a shard", "sessions: each keeps one to every shard", options.sessions),
        ("GB of connections a shard", "sessions x MB of a connection",
         options.sessions * figures["connection_mb"] / 1000),
        ("banks a shard", "banks / N", options.banks / count),
        ("vector indexes a shard", "banks above the threshold / N",
         options.banks * options.indexed / count),
        ("hours to dump a shard", "facts x bytes / N / measured MB a second",
         options.facts * vectors / count / 1e6 / figures["dump_mb_per_s"] / 3600),
        ("MB of log a second a shard", "facts x new a day x log bytes / N / 86,400",
         options.facts * options.new_per_day * figures["log_bytes"] / count / 86_400 / 1e6),
    ]  # fmt: skip


# Assumed limits. What exceeds its limit by most breaks first.
LIMITS = {
    "GB of the directory": ("of memory on the router: look-ups read the disk", 64.0),
    "connections a shard": ("take smaller pools before the routers", 500.0),
    "vector indexes a shard": ("rows of pg_class and pg_index; each plan reads a partition's", 1e5),
    "hours to dump a shard": ("pg_dump does not end in a night: back up files and log", 8.0),
    "MB of log a second a shard": ("what a standby replays with one process", 50.0),
}


def main() -> int:
    """Measure, compute and print."""
    parser = harness.arguments(__doc__)
    parser.add_argument("--router", type=Path, help="programs of a PostgreSQL with PL/Proxy")
    for name, default, text in (
        ("banks", 1e7, "banks"),
        ("facts", 1e10, "facts"),
        ("recalls-per-bank-day", 20.0, "recalls of a bank a day"),
        ("peak", 3.0, "busiest hour over the mean"),
        ("new-per-day", 0.002, "share of the facts that is new each day"),
        ("hot", 0.1, "share of the bytes that is asked for often enough to stay in memory"),
        ("indexed", 0.001, "share of the banks that has a vector index"),
        ("dimensions", 384, "of an embedding"),
        ("sessions", 400, "sessions on the routers, of all pools together"),
        ("cores", 32, "of a server"),
        ("memory-gb", 256.0, "of a server"),
        ("disk-tb", 8.0, "of a server"),
        ("price", 1500.0, "of a server, a month"),
    ):
        parser.add_argument(f"--{name}", type=float, default=default, help=f"{text}; {default:g}")
    options = parser.parse_args()
    with harness.database() as dsn:
        figures = measured(dsn, is_smoke=options.smoke)
        figures |= routed(dsn, options.router, is_smoke=options.smoke) if options.router else HOP
        print("measured" + ("" if options.router else " (hop and spread: see README.md)"))
        harness.show(figures)
        lines = plan(figures, options)
        print(f"\n{options.banks:,.0f} banks, {options.facts:,.0f} facts")
        for name, formula, number in lines:
            print(f"  {name:34} {number:14,.2f}   {formula}")
        found = {name: number for name, _, number in lines}
        breaks = sorted(LIMITS, key=lambda name: found[name] / LIMITS[name][1], reverse=True)
        print("\nwhat breaks first: value over where it does")
        for name in breaks:
            text, limit = LIMITS[name]
            print(f"  {name:34} {found[name] / limit:14,.2f}   above {limit:,.0f}: {text}")
        figures |= {f"plan.{name}": number for name, number in found.items()}
        given = {name: one for name, one in vars(options).items() if isinstance(one, int | float)}
        harness.write(options, figures, given | {"used": USED}, dsn)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
