"""A primary with a standby, which dies at a moment of the test's choice, and is succeeded.

Servers of their own: here they are killed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import servers
from pgrecall import schema
from pgrecall.server import EmbeddedServer, embedded_server
from sqlcalls import Connection, value

DEADLINE_S = 60
SETTINGS = {**servers.TEST_SETTINGS, "fsync": "on", "full_page_writes": "on"}


@contextmanager
def primary_in(folder: Path, **settings: str) -> Iterator[EmbeddedServer]:
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


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def owner(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid


@dataclass(frozen=True)
class Pair:
    """A primary and its synchronous standby: what is acknowledged is on both."""

    dsn: str
    """Leads to the one of the two that may be written."""
    data: Path
    standby: str

    def lose(self) -> None:
        """Lose the primary; the standby can be read."""
        kill(self.data)

    def promote(self) -> None:
        """Let the standby be written, on a new timeline."""
        with psycopg.connect(self.standby, autocommit=True) as connection:
            assert value(connection, "select pg_promote()")
            # It waits for no standby of its own.
            connection.execute("alter system reset synchronous_standby_names")
            connection.execute("select pg_reload_conf()")

    def timeline(self) -> str:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            return str(value(connection, "select pg_walfile_name(pg_current_wal_lsn())"))[:8]


@contextmanager
def pair_in(folder: Path, level: str = "remote_apply") -> Iterator[Pair]:
    data = folder / "primary"
    with (
        primary_in(folder) as primary,
        servers.standby_of(data, primary.binaries, folder / "standby") as standby,
    ):
        with psycopg.connect(primary.dsn, autocommit=True) as connection:
            synchronous(connection, level)
        yield Pair(either(primary.dsn, standby), data, standby)
