"""A primary that dies under writers, a standby that takes its place, and a moment that comes back.

Servers of their own: here they are killed.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import psycopg
import pytest

import failover
import servers
from pgrecall import Recall
from pgrecall.server import embedded_server
from sqlcalls import column, rows, value

WRITERS = 8
ARCHIVED = (
    "select archived_count > 0 and not exists"
    " (select from pg_ls_archive_statusdir() where name like '%.ready') from pg_stat_archiver"
)


def write(dsn: str, name: str, stop: Event) -> list[str]:
    """Retain facts one by one, each until that is acknowledged; returns them."""
    acknowledged: list[str] = []
    with Recall.connect(dsn, embedder=None) as memory:
        while not stop.is_set():
            text = f"{name} said {len(acknowledged)}."
            try:
                memory.retain("b", [{"text": text, "entities": [name]}])
            except psycopg.Error:  # nobody can be written just now: what a caller would do
                continue
            acknowledged.append(text)
    return acknowledged


@pytest.mark.slow
@pytest.mark.parametrize("level", ["on", "remote_apply"])
def test_a_standby_that_is_promoted_has_every_acknowledged_fact_once(level: str) -> None:
    with (
        servers.folder_of_servers() as folder,
        failover.pair_in(folder, level) as pair,
        ThreadPoolExecutor(WRITERS) as threads,
        Recall.connect(pair.standby, embedder=None) as reader,
    ):
        stop = Event()
        try:
            done = [threads.submit(write, pair.dsn, f"Writer {n}", stop) for n in range(WRITERS)]
            failover.until(lambda: len(reader.list_memories("b", top_k=200)) > 2 * WRITERS)
            pair.lose()
            # Reads go on while nobody can be written.
            before = len(reader.list_memories("b", top_k=1000))
            assert reader.recall("b", "Writer 1 said", top_k=1)
            pair.promote()
            failover.until(lambda: len(reader.list_memories("b", top_k=1000)) > before + WRITERS)
        finally:
            stop.set()
        acknowledged = [text for one in done for text in one.result(failover.DEADLINE_S)]
        timeline = pair.timeline()
        with psycopg.connect(pair.standby, autocommit=True) as connection:
            stored = column(connection, "select text from pgrecall.memory")
            names = column(connection, "select name from pgrecall.entity")

    assert timeline == "00000002"
    assert sorted(set(stored)) == sorted(stored)
    assert set(acknowledged) <= set(stored)
    assert len(stored) - len(acknowledged) <= WRITERS  # stored, but the answer did not come
    assert sorted(names) == [f"Writer {n}" for n in range(WRITERS)]


@pytest.mark.slow
def test_a_moment_between_two_retains_comes_back_whole() -> None:
    with servers.folder_of_servers() as folder:
        archive = folder / "archive"
        archive.mkdir()
        archive.chmod(0o777)
        data, copy = folder / "primary", folder / "copy"
        kept = {
            "archive_mode": "on",
            "archive_command": f"cp %p {archive}/%f",
            "wal_level": "replica",
        }
        with (
            failover.primary_in(folder, **kept) as primary,
            psycopg.connect(primary.dsn, autocommit=True) as connection,
        ):
            memory = Recall(connection, embedder=None)
            memory.retain("b", [{"text": "Before the copy.", "entities": ["Ana"]}])
            servers.base_backup(data, primary.binaries, copy)
            memory.retain("b", [{"text": "Before the moment.", "entities": ["Bo"]}])
            value(connection, "select pg_create_restore_point('moment')")
            memory.retain("b", [{"text": "Behind the moment.", "entities": ["Cy"]}])
            memory.drop_bank("b")
            connection.execute("select pg_switch_wal()")
            failover.until(lambda: value(connection, ARCHIVED))
        with (copy / "postgresql.auto.conf").open("a") as file:
            file.write(f"restore_command = 'cp {archive}/%f %p'\n")
            file.write("recovery_target_name = 'moment'\nrecovery_target_action = 'promote'\n")
            file.write("archive_mode = off\n")
        (copy / "recovery.signal").touch()
        shutil.chown(copy / "recovery.signal", *failover.owner(data))
        with (
            embedded_server(servers.embedded_version(), copy) as restored,
            psycopg.connect(restored.dsn, autocommit=True) as connection,
        ):
            failover.until(lambda: not value(connection, "select pg_is_in_recovery()"))
            texts = column(connection, "select text from pgrecall.memory order by memory_id")
            names = column(connection, "select name from pgrecall.entity order by name")
            memory = Recall(connection, embedder=None)
            found = memory.recall("b", "Bo moment", top_k=1)[0].text
            memory.retain("b", [{"text": "Another future.", "entities": ["Bo"]}])
            mentions = rows(
                connection,
                "select e.name, count(*) from pgrecall.mention x"
                " join pgrecall.entity e using (bank_id, entity_id) group by 1 order by 1",
            )

    assert texts == ["Before the copy.", "Before the moment."]
    assert names == ["Ana", "Bo"]
    assert found == "Before the moment."
    assert mentions == [("Ana", 1), ("Bo", 2)]
