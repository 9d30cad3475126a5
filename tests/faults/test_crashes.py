"""Processes of the server are killed: nothing acknowledged is lost, nothing is stored twice.

A few rounds run with the other tests; ``make test-faults`` runs 100. Each round prints its seed;
PGRECALL_FAULT_SEED repeats it, as far as the timing of processes can be repeated.
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

import servers
from pgrecall import Recall, RecallError, schema
from pgrecall._version import __version__
from pgrecall.errors import InstallError
from pgrecall.server import VERSION_VARIABLE, EmbeddedServer, embedded_server

ROUNDS = int(os.environ.get("PGRECALL_FAULT_ROUNDS", "2"))
# The processes of pytest-xdist must agree on the names of the tests.
RUN = random.Random(os.environ.get("PYTEST_XDIST_TESTRUNUID"))
SEED = int(os.environ.get("PGRECALL_FAULT_SEED", str(RUN.randrange(10**6))))
SEEDS = range(SEED, SEED + ROUNDS)
VICTIMS = ("postmaster", "everything", "backend")
BATCH = 5
WRITERS = 2
BANK = "b"

# A page that the kernel has outlives a killed process; what is not written at commit does not.
SETTINGS = {"fsync": "off", "full_page_writes": "on", "synchronous_commit": "on", "jit": "off"}

pytestmark = [
    pytest.mark.skipif("PGRECALL_DSN" in os.environ, reason="somebody else's server"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def data() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pgrecall-", ignore_cleanup_errors=True) as directory:
        Path(directory).chmod(0o711)
        yield Path(directory) / "data"


@pytest.fixture
def server(data: Path) -> Iterator[EmbeddedServer]:
    server = started(data)
    yield server
    server.stop()


def started(data: Path) -> EmbeddedServer:
    """Start the server, as soon as the processes of a killed one are gone."""
    version = int(os.environ.get(VERSION_VARIABLE) or 18)
    for _ in range(200):
        with contextlib.suppress(InstallError):
            server = embedded_server(version, data, settings=SETTINGS)
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(server.dsn):
                return server
            server.stop()
        time.sleep(0.1)
    raise AssertionError("the server does not start again")


def kill(data: Path, victim: str, chance: random.Random) -> None:
    postmaster = psutil.Process(int((data / "postmaster.pid").read_text().split()[0]))
    children = postmaster.children()
    if victim == "backend":
        backends = []
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):  # some end of themselves
                if "[local]" in " ".join(child.cmdline()):
                    backends.append(child)
        doomed = [chance.choice(backends or children)]
    else:
        doomed = [postmaster, *(children if victim == "everything" else [])]
    for process in doomed:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    # A server that lost a backend takes connections until it notices; then it ends all others.
    psutil.wait_procs([*doomed, *children], timeout=10)


class Writer(threading.Thread):
    """Retains batches until told to stop, each one until it is acknowledged."""

    def __init__(self, dsn: str, name: str) -> None:
        super().__init__()
        self.dsn = dsn
        self.word = name
        self.is_over = False
        self.acknowledged: list[str] = []

    def run(self) -> None:
        number = 0
        while not self.is_over:
            texts = [f"{self.word} saw thing {number + n}" for n in range(BATCH)]
            facts = [
                {"text": text, "entities": [self.word, f"thing {n}"], "embedding": [1, n + 1]}
                for n, text in enumerate(texts)
            ]
            try:
                with psycopg.connect(self.dsn, autocommit=True) as connection:
                    memory = Recall(connection, embedder=None)
                    memory.retain(BANK, facts)
                self.acknowledged += texts
                number += BATCH
            except (psycopg.Error, RecallError):
                time.sleep(0.02)


CHECKS = {
    "stored twice": "select text from pgrecall.memory group by bank_id, text having count(*) > 1",
    "without embedding": "select m.text from pgrecall.memory m where not exists (select from"
    " pgrecall.embedding e where e.bank_id = m.bank_id and e.memory_id = m.memory_id)",
    "without mention": "select m.text from pgrecall.memory m where not exists (select from"
    " pgrecall.mention x where x.bank_id = m.bank_id and x.memory_id = m.memory_id)",
    "one name, two entities": "select name from pgrecall.entity group by bank_id, name"
    " having count(*) > 1",
    "embedding of nothing": "select e.memory_id from pgrecall.embedding e where not exists (select"
    " from pgrecall.memory m where m.bank_id = e.bank_id and m.memory_id = e.memory_id)",
}


def missing(dsn: str, acknowledged: list[str]) -> list[str]:
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            "select t from unnest(%s::text[]) as t where not exists"
            " (select from pgrecall.memory m where m.text = t)",
            [acknowledged],
        )
        return [text for (text,) in found]


def damage(dsn: str) -> dict[str, object]:
    with psycopg.connect(dsn) as connection:
        found = {
            name: connection.execute(query.encode()).fetchall() for name, query in CHECKS.items()
        }
    return {name: rows for name, rows in found.items() if rows}


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_acknowledged_outlives_a_kill(
    server: EmbeddedServer, data: Path, seed: int, victim: str
) -> None:
    print(f"seed {seed}, {victim}")
    chance = random.Random(f"{seed} {victim}")
    with psycopg.connect(server.dsn) as connection:
        if schema.installed_version(connection) is None:
            schema.migrate(connection)
            Recall(connection).create_bank(BANK)
    writers = [Writer(server.dsn, f"w{seed}{victim}{n}") for n in range(WRITERS)]
    for writer in writers:
        writer.start()

    time.sleep(chance.uniform(0.1, 1.5))
    kill(data, victim, chance)
    again = started(data)
    for writer in writers:
        before = len(writer.acknowledged)
        while writer.is_alive() and len(writer.acknowledged) == before:
            time.sleep(0.01)  # what was not acknowledged is sent again
        writer.is_over = True
    for writer in writers:
        writer.join()

    acknowledged = [text for writer in writers for text in writer.acknowledged]
    assert missing(again.dsn, acknowledged) == []
    assert damage(again.dsn) == {}
    again.stop()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_migration_leaves_all_or_nothing(
    server: EmbeddedServer, data: Path, seed: int
) -> None:
    print(f"seed {seed}, migration")
    chance = random.Random(f"{seed} migration")
    name = f"migrated_{seed}"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"create database {name}".encode())
    dsn = psycopg.conninfo.make_conninfo(server.dsn, dbname=name)
    with psycopg.connect(dsn) as connection:
        connection.execute("create extension vector")
        connection.execute(servers.frozen_script("0.1.0").encode())
        connection.execute("select set_config('search_path', 'public', false)")
        connection.execute("select pgrecall.create_bank('b')")
        connection.execute("""select pgrecall.retain('b', '[{"text": "Ana sails"}]')""")

    def migrate() -> None:
        with (
            contextlib.suppress(psycopg.Error, InstallError),
            psycopg.connect(dsn) as connection,
        ):
            schema.migrate(connection)

    migration = threading.Thread(target=migrate)
    migration.start()
    time.sleep(chance.uniform(0.05, 2))
    kill(data, chance.choice(VICTIMS), chance)
    migration.join()
    again = started(data)
    with psycopg.connect(dsn) as connection:
        left = schema.installed_version(connection)
        schema.migrate(connection)
        after = schema.installed_version(connection)
        found = connection.execute("select text from pgrecall.hybrid_recall('b', 'Ana')").fetchall()

    assert left in {"0.1.0", __version__}
    assert after == __version__
    assert found == [("Ana sails",)]
    again.stop()
