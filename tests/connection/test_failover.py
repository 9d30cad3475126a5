"""A primary that dies under writers, a standby that takes its place, and a moment that comes back.

Servers of their own: here they are killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import servers
from pgrecall import Recall, schema
from pgrecall.server import embedded_server
from sqlcalls import Connection, column, rows, value

WRITERS = 8
DEADLINE_S = 60
ARCHIVED = (
    "select archived_count > 0 and not exists"
    " (select from pg_ls_archive_statusdir() where name like '%.ready') from pg_stat_archiver"
)
SETTINGS = {**servers.TEST_SETTINGS, "fsync": "on", "full_page_writes": "on"}


@contextmanager
def primary_in(folder: Path, **settings: str) -> Iterator[Any]:
    with embedded_server(
        servers.embedded_version(), folder / "primary", settings={**SETTINGS, **settings}
    ) as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("create extension vector")
            schema.migrate(connection)
            connection.execute("select pgrecall.create_bank('b')")
        yield server


def either(*dsns: str) -> str:
    """Name both servers, of which the one that may be written is taken."""
    named = [conninfo_to_dict(dsn) for dsn in dsns]
    return make_conninfo(
        dsns[0],
        host=",".join(str(one["host"]) for one in named),
        port=",".join(str(one.get("port") or 5432) for one in named),
        target_session_attrs="read-write",
    )


def kill(data: Path) -> None:
    """End a server at once, as a loss of power would."""
    process = int((data / "postmaster.pid").read_text().splitlines()[0])
    os.kill(process, signal.SIGQUIT)
    until = time.monotonic() + DEADLINE_S
    while (data / "postmaster.pid").exists() and _runs(process):
        assert time.monotonic() < until
        time.sleep(0.01)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]


def synchronous(primary: Connection, level: str) -> None:
    """Wait for the standby with each commit from now on."""
    primary.execute("alter system set synchronous_standby_names = '*'")
    primary.execute(f"alter system set synchronous_commit = '{level}'".encode())
    primary.execute("select pg_reload_conf()")
    until = time.monotonic() + DEADLINE_S
    while value(primary, "select count(*) from pg_stat_replication where sync_state = 'sync'") != 1:
        assert time.monotonic() < until
        time.sleep(0.01)


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
    with servers.folder_of_servers() as folder:
        data, copy = folder / "primary", folder / "standby"
        with (
            primary_in(folder) as primary,
            servers.standby_of(data, primary.binaries, copy) as standby,
            ThreadPoolExecutor(WRITERS) as threads,
        ):
            with psycopg.connect(primary.dsn, autocommit=True) as connection:
                synchronous(connection, level)
            stop = Event()
            dsn = either(primary.dsn, standby)
            try:
                done = [threads.submit(write, dsn, f"Writer {n}", stop) for n in range(WRITERS)]
                reader = Recall.connect(standby, embedder=None)
                _until(lambda: len(reader.list_memories("b", top_k=200)) > 2 * WRITERS)
                kill(data)
                # Reads go on while nobody can be written.
                before = len(reader.list_memories("b", top_k=1000))
                assert reader.recall("b", "Writer 1 said", top_k=1)
                with psycopg.connect(standby, autocommit=True) as connection:
                    assert value(connection, "select pg_promote()")
                    # It waits for no standby of its own.
                    connection.execute("alter system reset synchronous_standby_names")
                    connection.execute("select pg_reload_conf()")
                _until(lambda: len(reader.list_memories("b", top_k=1000)) > before + WRITERS)
            finally:
                stop.set()
            acknowledged = [text for one in done for text in one.result(DEADLINE_S)]
            reader.close()
            with psycopg.connect(standby, autocommit=True) as connection:
                stored = column(connection, "select text from pgrecall.memory")
                timeline = value(connection, "select pg_walfile_name(pg_current_wal_lsn())")[:8]
                names = column(connection, "select name from pgrecall.entity")

    assert timeline == "00000002"
    assert sorted(set(stored)) == sorted(stored)
    assert set(acknowledged) <= set(stored)
    assert len(stored) - len(acknowledged) <= WRITERS  # stored, but the answer did not come
    assert sorted(names) == [f"Writer {n}" for n in range(WRITERS)]


def _until(holds: Any) -> None:
    until = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


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
            primary_in(folder, **kept) as primary,
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
            _until(lambda: value(connection, ARCHIVED))
        with (copy / "postgresql.auto.conf").open("a") as file:
            file.write(f"restore_command = 'cp {archive}/%f %p'\n")
            file.write("recovery_target_name = 'moment'\nrecovery_target_action = 'promote'\n")
            file.write("archive_mode = off\n")
        (copy / "recovery.signal").touch()
        shutil.chown(copy / "recovery.signal", *_owner(data))
        with (
            embedded_server(servers.embedded_version(), copy) as restored,
            psycopg.connect(restored.dsn, autocommit=True) as connection,
        ):
            _until(lambda: not value(connection, "select pg_is_in_recovery()"))
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


def _owner(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid
