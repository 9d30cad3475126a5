"""pg_upgrade brings everything to the next PostgreSQL, however pgrecall was installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import servers
from pgrecall.server import DSN_VARIABLE, build
from pgrecall.server.postmaster import Postmaster
from sqlcalls import value
from state import test_dump_restore as dumped

BEFORE, AFTER = 16, 18
HITS = (
    "select text, round(score::numeric, 9), via from pgrecall.hybrid_recall("
    "'first', 'Why did Maya move the window?', embedding => '[0.1,0.2,0.3]')"
)

pytestmark = pytest.mark.skipif(
    servers.embedded_version() != AFTER or bool(os.environ.get(DSN_VARIABLE)),
    reason="the server to come from is the embedded one of the oldest version",
)


@pytest.fixture
def folder() -> Iterator[Path]:
    with servers.folder_of_servers() as folder:
        yield folder


def pg_upgrade(old: Path, new: Path, before: Path, after: Path) -> None:
    """Run initdb and pg_upgrade, with the programs of both versions, as the server's user."""
    Postmaster(new, after).init()
    options = []
    for data, option in ((old, "--old-options"), (new, "--new-options")):
        hba, ident = (data / f"pgrecall_{kind}.conf" for kind in ("hba", "ident"))
        for file in (hba, ident):
            if not file.exists():
                shutil.copy(old / file.name, file)
                file.chmod(0o644)
        options.append(f"{option}=-c hba_file={hba} -c ident_file={ident}")
    work = new.with_name("work")
    work.mkdir()
    work.chmod(0o777)
    as_owner: dict[str, Any] = {}
    if os.geteuid() == 0:
        owner = old.stat()
        as_owner = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
    places = ("-d", old, "-D", new, "-b", before, "-B", after, "-s", work)
    for program, arguments in (
        ("pg_checksums", ("--disable", "-D", new)),  # which are new in 18
        ("pg_upgrade", ("-U", "postgres", *places, *options)),
    ):
        command = [str(word) for word in (after / program, *arguments)]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, **as_owner)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("route", ["extension", "driver"])
def test_everything_is_there_in_the_next_postgresql(folder: Path, route: str) -> None:
    old, new = folder / "old", folder / "new"
    with servers.server_in(old, BEFORE) as server, psycopg.connect(server.dsn) as connection:
        connection.execute("create extension vector")
        connection.commit()
        servers.install(route, server, server.dsn)
        dumped.fill(connection)
        connection.execute("create role first")
        partition = value(
            connection,
            "select tableoid::regclass::text from pgrecall.embedding where bank_id = 'first'"
            " limit 1",
        )
        connection.execute(dumped.LATER_STATE.format(partition=partition).encode())
        connection.execute("create table note (id integer primary key, body text)")
        connection.execute(
            "select pgrecall.attach_table('second', 'note', 'id', 'body', apply => 'commit')"
        )
        connection.commit()
        hits = connection.execute(HITS).fetchall()
        before = server.binaries

    with (
        servers.server_in(folder / "any", AFTER) as server,
        server.extension_files(build.assemble()),
    ):
        pg_upgrade(old, new, before, server.binaries)

    with servers.server_in(new, AFTER) as server, psycopg.connect(server.dsn) as connection:
        assert connection.execute(HITS).fetchall() == hits != []
        connection.execute("insert into note values (1, 'Cy cycles')")
        connection.commit()
        assert value(connection, "select text from pgrecall.memory where text = 'Cy cycles'")
        assert value(connection, "select count(*) from pg_policies") > 0
