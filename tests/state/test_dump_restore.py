"""A dump holds everything that was remembered, however pgrecall was installed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import scalar_row

import servers
from pgrecall import schema
from pgrecall.server import build
from servers import Server
from sqlcalls import SAMPLE, attach_filed, log_recalls

pytestmark = pytest.mark.usefixtures("extension_on_server")

FACTS = [
    {
        "text": "Maya moved the deploy window to Tuesday because of INC-2041.",
        "fact_type": "event",
        "fact_key": "deploy.window",
        "occurred": "2026-03-05",
        "tags": ["deploy"],
        "metadata": {"team": "core"},
        "entities": [{"name": "Maya Lindqvist", "kind": "person", "aliases": ["Maya"]}],
        "relations": [{"from": "Maya Lindqvist", "kind": "works_on", "to": "Gateway"}],
        "links": [{"kind": "caused_by", "to_index": 1}],
        "embedding": [0.1, 0.2, 0.3],
        "questions": [{"text": "When do we deploy?", "embedding": [0.2, 0.1, 0.3]}],
    },
    {
        "text": "INC-2041 took the gateway down for an hour.",
        "fact_type": "event",
        "entities": ["Gateway"],
        "embedding": [0.3, 0.2, 0.1],
    },
]
MESSAGES = [{"session": "standup", "speaker": "Maya", "text": "Tuesday it is.", "role": "user"}]
LATER = [{"text": "The gateway runs in two regions now.", "embedding": [0.2, 0.2, 0.2]}]


@pytest.fixture(scope="module")
def extension_on_server(server: Server) -> Iterator[None]:
    """Keep the extension's files in place: a restore runs create extension again."""
    with server.extension_files(build.assemble()):
        yield


# How a dump is taken and restored: arguments of pg_dump, and of pg_restore or None for psql.
MODES: dict[str, tuple[list[str], list[str] | None]] = {
    "plain": (["--format=plain"], None),
    "custom": (["--format=custom"], ["--exit-on-error"]),
    "one transaction": (["--format=custom"], ["--single-transaction"]),
    "parallel": (["--format=directory", "--jobs=4"], ["--exit-on-error", "--jobs=4"]),
    "data only": (
        ["--format=custom", "--data-only"],
        ["--exit-on-error", "--single-transaction"],
    ),
    # A whole dump does not order tables by their foreign keys.
    "data only of a whole dump": (
        ["--format=custom"],
        ["--exit-on-error", "--data-only", "--disable-triggers"],
    ),
    "schemas alone": (["--format=custom", "--schema=pgrecall*"], ["--exit-on-error"]),
}

# What an administrator adds after the install.
LATER_STATE = """
create index embedding_first_hnsw_idx on {partition}
  using hnsw ((embedding::halfvec(3)) halfvec_cosine_ops)
  where bank_id = 'first' and fact_type = 'event';
create policy own_bank on pgrecall.memory
  using (bank_id = current_setting('app.bank', true));
select pgrecall.create_roles('dumped');
select pgrecall.enable_row_security();
"""
TENANT = "first"


@pytest.fixture(scope="module")
def roles(server: Server) -> Iterator[None]:
    """The roles of LATER_STATE, and a tenant."""
    names = ("dumped_reader", "dumped_writer", "dumped_admin", TENANT)
    for name in names:
        server.execute(sql.SQL("create role {}").format(sql.Identifier(name)))
    server.execute(sql.SQL("grant dumped_writer to {}").format(sql.Identifier(TENANT)))
    yield
    for name in names:
        server.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


@pytest.fixture(scope="module", params=servers.ROUTES)
def filled(
    server: Server, vector_template: Any, roles: None, request: pytest.FixtureRequest
) -> Iterator[str]:
    """A database in which every table has rows, with an HNSW index, policies and grants."""
    with server.database(vector_template.template_dbname) as dsn:
        servers.install(request.param, server, dsn)
        with psycopg.connect(dsn) as connection:
            fill(connection)
            partition = connection.execute(
                "select tableoid::regclass::text from pgrecall.embedding where bank_id = 'first'"
            ).fetchone()
            assert partition is not None
            connection.execute(LATER_STATE.format(partition=partition[0]).encode())
        yield dsn


def fill(connection: psycopg.Connection) -> None:
    for bank in ("first", "second"):
        connection.execute(
            "select pgrecall.create_bank(bank => %s, embedding_model => 'm')", [bank]
        )
        retain(connection, bank, FACTS)
        connection.execute("select pgrecall.retain_messages(%s, %s)", [bank, json.dumps(MESSAGES)])
        connection.execute("select pgrecall.log_session(%s, 'standup')", [bank])
        connection.execute("select pgrecall.refresh_statistics(%s)", [bank])
        log_recalls(connection, SAMPLE, bank=bank)
        attach_filed(connection, bank)
        # What is known of a table is restored without it, too.
        connection.execute(sql.SQL("drop table {}").format(sql.Identifier(f"filed_{bank}")))
    scale = {"mean": [0.1, 0.1, 0.2], "low_cosine": 0.3, "high_cosine": 0.6}
    connection.execute("select pgrecall.calibrate_bank('second', %s)", [json.dumps(scale)])
    connection.execute(
        "select pgrecall.supersede('first', %s, %s)", retain(connection, "first", FACTS)
    )


@pytest.fixture(scope="module", params=MODES)
def restored(
    server: Server,
    vector_template: Any,
    filled: str,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """What pg_dump of ``filled`` restores."""
    dump, restore = MODES[request.param]
    file = tmp_path_factory.mktemp("dump") / "dump"
    server.run("pg_dump", *dump, f"--file={file}", filled)
    is_data_only, is_part = "data only" in request.param, request.param == "schemas alone"
    template = vector_template.template_dbname if is_data_only or is_part else "template1"
    with server.database(template) as dsn:
        if is_data_only:
            servers.install("psql", server, dsn)
        if restore is None:
            server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", dsn, "-f", file)
        else:
            server.run("pg_restore", *restore, f"--dbname={dsn}", file)
        if is_part:  # it has no casts
            with psycopg.connect(dsn) as connection:
                assert schema.migrate(connection).restored
        yield dsn


def retain(connection: psycopg.Connection, bank: str, facts: Sequence[object]) -> list[int]:
    query = "select memory_id from pgrecall.retain(%s, %s, model => 'm') order by index"
    with connection.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(query, [bank, json.dumps(facts)]).fetchall()


def table_rows(dsn: str) -> dict[str, list[str]]:
    """Return every row of every table, as text."""
    tables = (
        "select c.oid::regclass::text from pg_class c"
        " where c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
        " and c.relkind in ('r', 'p') and not c.relispartition"
    )
    with (
        psycopg.connect(dsn) as connection,
        connection.cursor(row_factory=scalar_row) as cursor,
    ):
        return {
            table: cursor.execute(f"select t::text from {table} t order by 1".encode()).fetchall()
            for table in cursor.execute(tables).fetchall()
        }


def test_every_table_is_filled(filled: str) -> None:
    assert [table for table, rows in table_rows(filled).items() if not rows] == []


def test_a_restore_has_every_row(filled: str, restored: str) -> None:
    assert table_rows(restored) == table_rows(filled)


def test_a_restore_is_a_whole_install(
    filled: str, restored: str, request: pytest.FixtureRequest
) -> None:
    if "data only" in request.node.name:
        pytest.skip("what was added to the schema is not data")

    rows = servers.fingerprint(restored)

    assert rows == servers.fingerprint(filled)
    assert any(name.endswith("embedding_first_hnsw_idx") for _, name, _ in rows)
    assert ("policy", "pgrecall.memory.own_bank") in {(kind, name) for kind, name, _ in rows}


def test_a_restore_keeps_tenants_apart(
    filled: str, restored: str, request: pytest.FixtureRequest
) -> None:
    def security(dsn: str) -> list[tuple[object, ...]]:
        with psycopg.connect(dsn) as connection:
            return connection.execute("select * from pgrecall.row_security_status()").fetchall()

    if "data only" in request.node.name:
        # The schema was installed anew, without grants: nobody but the owner has any rights.
        assert {status for _, status, _, _ in security(restored)} == {"private"}
        return

    assert {status for _, status, _, _ in security(restored)} == {"fenced"}
    assert security(restored) == security(filled)
    with psycopg.connect(restored) as connection:
        connection.execute(f"set role {TENANT}")
        for table in table_rows(restored):
            query = f"select distinct bank_id from {table}"
            assert connection.execute(query.encode()).fetchall() == [(TENANT,)]
        assert retain(connection, TENANT, LATER)
        connection.rollback()


def test_a_restore_hands_out_new_ids(restored: str) -> None:
    with psycopg.connect(restored) as connection:
        before = connection.execute("select max(memory_id) from pgrecall.memory").fetchone()

        [new] = retain(connection, "first", LATER)
        connection.rollback()

    assert before is not None
    assert new > before[0]


def test_a_restore_still_has_an_installer_where_there_was_one(
    filled: str, restored: str, request: pytest.FixtureRequest
) -> None:
    def installers(dsn: str) -> list[tuple[object, ...]]:
        with psycopg.connect(dsn) as connection:
            return connection.execute(
                "select extversion, to_regprocedure('pgrecall_setup.install()') is not null"
                " from pg_extension where extname = 'pgrecall'"
            ).fetchall()

    if "data only" in request.node.name or "schemas alone" in request.node.name:
        pytest.skip("the extension is neither data nor in a schema")

    assert installers(restored) == installers(filled)


def test_a_restore_answers_as_before(filled: str, restored: str) -> None:
    def answers(dsn: str) -> list[tuple[object, ...]]:
        with psycopg.connect(dsn) as connection:
            return connection.execute(
                "select rank, memory_id, text, arms from pgrecall.hybrid_recall("
                "  'second', 'why was the deploy window moved?', '[0.1,0.2,0.3]'::halfvec)"
            ).fetchall()

    assert answers(restored) == answers(filled) != []


def test_a_restored_script_install_is_no_extension(server: Server, bare_database: str) -> None:
    with psycopg.connect(bare_database) as connection:
        connection.execute("create extension vector")
    servers.install("psql", server, bare_database)

    dump = server.run("pg_dump", "--schema-only", bare_database)

    assert "CREATE EXTENSION IF NOT EXISTS pgrecall" not in dump
    assert "CREATE TABLE pgrecall.memory" in dump
