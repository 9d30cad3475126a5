"""A release is frozen by a program, and what comes after it upgrades from it and from all before.

The program runs on a copy of the checkout, which then gets a change and the next version. Each
route leads a database of the oldest release, with tenants, grants and views, over the release that
was frozen to the next one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

import servers
from pgrecall._version import __version__
from pgrecall.server import build
from servers import ROUTES, Server

FROZEN = build.frozen_releases()
MODELS = ("embedder", "reranker", "minilm")
CHANGE = """\
alter table pgrecall.bank add column colour text;
comment on column pgrecall.bank.colour is 'How it is shown.';
"""


def later(version: str) -> str:
    major, minor, _ = version.split(".")
    return f"{major}.{int(minor) + 1}.0"


# Where the version of the checkout is frozen already, the next one is.
RELEASED = later(__version__) if __version__ in FROZEN else __version__
NEXT = later(RELEASED)
MADE = ("pgrecall_reader", "pgrecall_writer", "pgrecall_admin", "pgrecall_searcher")
TENANTS = ("freeze_acme", "freeze_bolt")


class Tree:
    """A copy of the checkout."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = root / "pydriver" / "pgrecall"

    def build(self, *words: str) -> None:
        program = self.package / "server" / "build.py"
        subprocess.run(
            [sys.executable, "-I", program, *words], check=True, capture_output=True, text=True
        )

    def scripts(self) -> dict[str, str]:
        files = (self.package / "extension").iterdir()
        return {path.name: path.read_text(encoding="utf-8") for path in files}

    def migrate(self, server: Server, dsn: str, before: str, to: str, route: str) -> None:
        """Lead a database from one version to another."""
        if route == "psql":
            servers.run_script(server, dsn, self.scripts()[build.upgrade_name(before, to)])
        elif route == "extension":
            with server.extension_files(self.scripts()), psycopg.connect(dsn) as connection:
                connection.execute("alter extension pgrecall update")
                connection.execute("select pgrecall_setup.install()")
        else:
            path = str(self.package.parent)
            subprocess.run(
                [sys.executable, "-m", "pgrecall", "migrate", "--dsn", dsn],
                env=os.environ | {"PYTHONPATH": path},
                check=True,
                capture_output=True,
                cwd=self.root,
            )


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy in which the release is frozen."""
    tree = Tree(tmp_path_factory.mktemp("released"))
    for name in ("sql", "migrations"):
        shutil.copytree(build.ROOT / name, tree.root / name)
    shutil.copytree(
        build.PACKAGE, tree.package, ignore=shutil.ignore_patterns(*MODELS, "__pycache__")
    )
    shutil.copy(build.ROOT / "pydriver" / "server.json", tree.root / "pydriver")
    notes = tree.root / "migrations" / "NOTES.md"
    if __version__ != RELEASED:
        notes.write_text(f"{notes.read_text()}\n## {RELEASED} (not released yet)\n")
    tree.build("--set-version", RELEASED, "--release", RELEASED)
    return tree


@pytest.fixture(scope="module")
def following(released: Tree, tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy of that with a change of the state, and the next version."""
    tree = Tree(tmp_path_factory.mktemp("following") / "tree")
    shutil.copytree(released.root, tree.root)
    delta = tree.root / "migrations" / "next.sql"
    assert delta.read_text() == build.NEXT
    delta.write_text(delta.read_text() + "\n" + CHANGE)
    state = tree.root / "sql" / "state" / "bank.sql"
    state.write_text(state.read_text() + "\n" + CHANGE)
    tree.build("--set-version", NEXT)
    return tree


def rows(dsn: str, query: str, role: str | None = None) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        if role:
            connection.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
        return connection.execute(query.encode()).fetchall()


def execute(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.fixture
def tenants(server: Server) -> Iterator[tuple[str, str]]:
    """Two roles, named as their banks."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        for tenant in TENANTS:
            connection.execute(f"drop role if exists {tenant}".encode())
            connection.execute(f"create role {tenant}".encode())
        yield TENANTS
        for tenant in TENANTS:
            connection.execute(f"drop role {tenant}".encode())


def test_what_was_frozen_is_what_was_there(released: Tree) -> None:
    migrations = released.root / "migrations"
    frozen = migrations / f"pgrecall--{RELEASED}.sql"

    assert frozen.read_text() == released.scripts()[build.install_name(RELEASED)]
    assert (migrations / f"pgrecall--{FROZEN[-1]}--{RELEASED}.delta.sql").read_text() == (
        build.MIGRATIONS / "next.sql"
    ).read_text()
    assert f"## {RELEASED}, 20" in (migrations / "NOTES.md").read_text()
    assert f"## {RELEASED}, 20" in (migrations / "CHANGELOG.md").read_text()
    assert f'"{RELEASED}"' in (migrations / "META.json").read_text()


def test_the_next_version_upgrades_from_each_release(following: Tree) -> None:
    names = following.scripts().keys()

    assert {build.upgrade_name(before, NEXT) for before in [*FROZEN, RELEASED]} < names
    assert {f"pgrecall--{before}--{NEXT}.sql" for before in [*FROZEN, RELEASED]} < names


@pytest.mark.parametrize("route", ROUTES)
def test_what_people_have_stays_from_the_oldest_release_to_the_next(
    server: Server,
    empty_database: str,
    tenants: tuple[str, str],
    released: Tree,
    following: Tree,
    route: str,
) -> None:
    dsn, oldest = empty_database, FROZEN[0]
    if route == "extension":
        servers.install_old_extension(server, dsn, oldest)
    else:
        servers.run_script(server, dsn, servers.frozen_script(oldest))
    for tenant in tenants:
        execute(
            dsn,
            f"select pgrecall.create_bank('{tenant}')",
            f"select pgrecall.retain('{tenant}', '[{{\"text\": \"{tenant} ships boats.\"}}]')",
            f"grant usage on schema pgrecall to {tenant}",
            f"grant select, insert, update on all tables in schema pgrecall to {tenant}",
        )
    execute(dsn, "create view boats as select bank_id, text from pgrecall.memory")
    facts = "select memory_id, bank_id, text, created_at from pgrecall.memory order by 1"
    kept = rows(dsn, facts)

    released.migrate(server, dsn, oldest, RELEASED, route)
    after_first = rows(dsn, facts)
    execute(
        dsn,
        "select pgrecall.create_roles()",
        "select pgrecall.enable_row_security()",
        f"grant pgrecall_writer to {tenants[0]}, {tenants[1]}",
        "create view found as select text from pgrecall.hybrid_recall('freeze_acme', 'boats')",
        f"revoke execute on function pgrecall.forget from {tenants[0]}, public",
    )
    following.migrate(server, dsn, RELEASED, NEXT, route)

    try:
        assert after_first == kept == rows(dsn, facts)
        assert rows(dsn, "select pgrecall.version()") == [(NEXT,)]
        assert rows(dsn, "select colour from pgrecall.bank") == [(None,), (None,)]
        assert [text for (text,) in rows(dsn, "select text from found")] == [kept[0][2]]
        assert len(rows(dsn, "select from boats")) == 2
        for tenant in tenants:
            seen = rows(dsn, "select bank_id from pgrecall.memory", tenant)
            assert seen == [(tenant,)]
            found = rows(
                dsn, f"select text from pgrecall.hybrid_recall('{tenant}', 'boats')", tenant
            )
            assert found == [(f"{tenant} ships boats.",)]
        with pytest.raises(psycopg.Error, match='bank "freeze_bolt" does not exist'):
            rows(dsn, "select pgrecall.hybrid_recall('freeze_bolt', 'boats')", tenants[0])
        assert rows(dsn, "select distinct status from pgrecall.row_security_status()") == [
            ("fenced",)
        ]
        assert rows(
            dsn,
            f"select has_function_privilege('{tenants[0]}', p.oid, 'execute') from pg_proc p"
            " where p.oid::regproc::text = 'pgrecall.forget'",
        ) == [(False,)]
    finally:
        execute(dsn, "drop view found, boats")
        for role in (*tenants, *MADE):
            execute(dsn, f"drop owned by {role} cascade")
        execute(dsn, *(f"drop role {role}" for role in MADE))


@pytest.mark.parametrize("before", [*FROZEN, RELEASED])
def test_the_next_version_is_that_of_a_fresh_install(
    server: Server, empty_database: str, released: Tree, following: Tree, before: str
) -> None:
    with server.database(rows(empty_database, "select current_database()")[0][0]) as fresh:
        for dsn in (empty_database, fresh):
            [(name,)] = rows(dsn, "select current_database()")
            execute(dsn, f'alter database "{name}" set pgrecall.partitions = 16')
        servers.run_script(server, fresh, following.scripts()[build.install_name(NEXT)])
        script = released.root / "migrations" / f"pgrecall--{before}.sql"
        servers.run_script(server, empty_database, script.read_text())
        following.migrate(server, empty_database, before, NEXT, "psql")

        assert servers.fingerprint(empty_database) == servers.fingerprint(fresh)
