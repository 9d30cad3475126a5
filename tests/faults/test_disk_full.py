"""The disk is full in the midst of each kind of write: that is said, nothing is half done, and the
same write succeeds as soon as there is room.

The database lies in a tablespace of a few megabytes, which only root can mount.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

import failover
import servers
from pgrecall import Recall, schema
from pgrecall.cluster import shards
from pgrecall.server import embedded_server
from sqlcalls import Connection, rows
from toys import toy_embed

SIZE = "128m"
STORED, MORE = 600, 1500

pytestmark = [
    pytest.mark.skipif("PGRECALL_DSN" in os.environ, reason="somebody else's server"),
    pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may mount"),
    pytest.mark.slow,
]


class Other:
    """A model to re-embed with, of long vectors."""

    model = "other"
    dimensions = None

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [vector * 40 for vector in toy_embed(texts)]


def facts(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {"text": f"Person {n % 7} saw boat {n} on day {n % 50}", "entities": [f"Person {n % 7}"]}
        for n in range(first, first + count)
    ]


@dataclass
class Disk:
    """A small disk, and a database on it."""

    dsn: str
    folder: Path

    def fill(self) -> None:
        with (self.folder / "ballast").open("wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(65536))
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(4096))

    def clear(self) -> None:
        (self.folder / "ballast").unlink()

    def memory(self) -> Recall:
        connection = psycopg.connect(self.dsn, autocommit=True)
        return Recall(connection, embedder=toy_embed, model="toy", reranker=None)


@pytest.fixture(scope="module")
def disk() -> Iterator[Disk]:
    with servers.folder_of_servers() as folder:
        small = folder / "small"
        small.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(small)]
        if (got := subprocess.run(mount, capture_output=True, text=True)).returncode:
            pytest.skip(f"nothing can be mounted here: {got.stderr.strip()}")
        try:
            with embedded_server(
                servers.embedded_version(), folder / "data", settings=servers.TEST_SETTINGS
            ) as server:
                (small / "space").mkdir()
                os.chown(small / "space", *failover.owner(folder / "data"))
                with psycopg.connect(server.dsn, autocommit=True) as connection:
                    connection.execute(f"create tablespace small location '{small}/space'".encode())
                    connection.execute("create database small tablespace small")
                dsn = psycopg.conninfo.make_conninfo(server.dsn, dbname="small")
                with psycopg.connect(dsn, autocommit=True) as connection:
                    connection.execute("create extension vector")
                    schema.migrate(connection)
                yield Disk(dsn, small)
        finally:
            subprocess.run(["umount", "--lazy", str(small)], check=True)


def load(memory: Recall, disk: Disk) -> None:
    with Recall.connect(disk.dsn, embedder=toy_embed, model="toy") as pooled:
        pooled.retain_bulk("b", facts(STORED, MORE), batch_size=100, workers=2)


def index(memory: Recall, disk: Disk) -> None:
    with psycopg.connect(disk.dsn, autocommit=True) as connection:
        memory.configure_bank("b", {"hnsw_threshold": 10})
        for (statement,) in rows(connection, "select statement from pgrecall.index_plan('b')"):
            connection.execute(statement.encode())


def update(memory: Recall, disk: Disk) -> None:
    for one in memory.list_memories("b", top_k=STORED + MORE):
        if not one.text.endswith(" again"):
            memory.update("b", one.memory_id, text=f"{one.text} again")


def maintain(memory: Recall, disk: Disk) -> None:
    while memory.maintain("b"):
        pass


WRITES: dict[str, Callable[[Recall, Disk], object]] = {
    "retain": lambda memory, _: memory.retain("b", facts(STORED, MORE)),
    "bulk": load,
    "messages": lambda memory, _: memory.retain_messages(
        "b", [{"text": f"Message {n} of {'many words ' * 20}"} for n in range(MORE)]
    ),
    "clone": lambda memory, _: memory.clone_bank("b", "copy"),
    "count": lambda memory, _: memory.refresh_statistics("b", is_full=True),
    "reembed": lambda memory, _: memory.reembed_fill("b", Other()),
    "replace": lambda memory, _: memory.retain(
        "b", [{**fact, "fact_key": f"key.{n}"} for n, fact in enumerate(facts(STORED, MORE))]
    ),
    "index": index,
    "update": update,
    "consolidate": lambda memory, _: memory.consolidate("b", dry_run=False, top_k=2 * STORED),
    "import": lambda memory, _: memory.import_rows("copy", memory.export("b"), batch_size=5000),
    "maintain": maintain,
}
BEFORE: dict[str, Callable[[Recall], object]] = {
    "maintain": lambda memory: memory.retain("b", facts(STORED, MORE), link="deferred"),
    "consolidate": lambda memory: memory.retain(
        "b", [{**fact, "text": fact["text"].upper()} for fact in facts(0, STORED)]
    ),
}
COUNTS = "select count(*), count(distinct (bank_id, text)) from pgrecall.memory"
HALF_DONE = (
    "select m.text from pgrecall.memory m where not exists (select from pgrecall.embedding e"
    " where e.bank_id = m.bank_id and e.memory_id = m.memory_id) or not exists (select from"
    " pgrecall.mention x where x.bank_id = m.bank_id and x.memory_id = m.memory_id)"
)


@contextlib.contextmanager
def filled(disk: Disk, kind: str = "") -> Iterator[tuple[Recall, Connection]]:
    """Give a bank on a disk without room; both are taken away afterwards."""
    memory = disk.memory()
    with psycopg.connect(disk.dsn, autocommit=True) as looked:
        memory.create_bank("b")
        try:
            memory.retain("b", facts(0, STORED))
            if kind in BEFORE:
                BEFORE[kind](memory)
            looked.execute("vacuum full")
            psycopg.connect(disk.dsn).close()  # writes what later sessions begin with
            disk.fill()
            yield memory, looked
        finally:
            (disk.folder / "ballast").unlink(missing_ok=True)
            for bank in ("b", "copy"):
                looked.execute(
                    "select pgrecall.drop_bank(b.bank_id) from pgrecall.bank b where bank_id = %s",
                    [bank],
                )
            looked.execute("vacuum full")


@pytest.mark.parametrize("kind", WRITES)
def test_a_write_that_finds_the_disk_full_is_undone_and_succeeds_later(
    disk: Disk, kind: str
) -> None:
    with filled(disk, kind) as (memory, looked):
        with pytest.raises(psycopg.errors.DiskFull):
            WRITES[kind](memory, disk)
        found = memory.recall("b", "Person 3 saw boat 3", top_k=1)
        damaged = rows(looked, HALF_DONE)
        disk.clear()

        WRITES[kind](memory, disk)

        assert found[0].text.lower().startswith("person 3 saw boat ")
        assert damaged == rows(looked, HALF_DONE) == []
        assert stored(looked) == stored_by(kind)
        if kind == "consolidate":
            assert len(memory.list_memories("b", top_k=2 * STORED)) == STORED
        if kind == "maintain":
            assert memory.pending_links("b") == 0


def test_what_is_forgotten_needs_no_room(disk: Disk) -> None:
    with filled(disk) as (memory, looked):
        kept = memory.list_memories("b", top_k=1)[0].memory_id

        assert memory.forget("b", filter=["<>", "text", memory.get("b", kept).text]) == STORED - 1
        assert memory.forget("b", [kept]) == 1
        assert stored(looked) == [(0, 0)]


def test_a_bank_that_finds_no_room_on_another_shard_stays_where_it_is(disk: Disk) -> None:
    servers.router_programs()
    place = psycopg.conninfo.conninfo_to_dict(disk.dsn)
    place.pop("user")
    dsns = {
        name: psycopg.conninfo.make_conninfo("", **{**place, "dbname": name})
        for name in ("roomy", "small")
    }
    with (
        filled(disk) as (memory, looked),
        servers.folder_of_servers() as folder,
        servers.router_server(folder / "router") as router_dsn,
        psycopg.connect(router_dsn, autocommit=True) as routed,
    ):
        disk.clear()
        looked.execute("create database roomy tablespace pg_default")
        with psycopg.connect(disk.dsn, dbname="roomy", autocommit=True) as connection:
            connection.execute("create extension vector")
            schema.migrate(connection)
            source = Recall(connection, embedder=None)
            source.import_rows("moved", memory.export("b"))
        shards.init(routed)
        for name, dsn in dsns.items():
            shards.add(routed, name, dsn)
        asked = Recall(routed, embedder=None)
        before = [*asked.export("moved")]
        disk.fill()

        with pytest.raises(psycopg.errors.DiskFull):
            shards.move(routed, "moved", "small")
        held = (dict(shards.banks(routed))["moved"], [*asked.export("moved")] == before)
        disk.clear()
        shards.move(routed, "moved", "small")

        assert held == ("roomy", True)
        assert dict(shards.banks(routed))["moved"] == "small"
        assert [*asked.export("moved")] == before
        asked.drop_bank("moved")
        looked.execute("drop database roomy with (force)")


def stored(connection: Connection) -> list[tuple[Any, ...]]:
    return rows(connection, COUNTS)


def stored_by(kind: str) -> list[tuple[int, int]]:
    more = {"consolidate": STORED, "import": STORED, "clone": STORED, "update": STORED}
    more |= dict.fromkeys(("retain", "bulk", "replace", "maintain"), MORE)
    return [(STORED + more.get(kind, 0),) * 2]
