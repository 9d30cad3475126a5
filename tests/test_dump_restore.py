"""A dump holds everything that was remembered, however pgrecall was installed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import scalar_row

import servers
from pgrecall import build
from servers import Server

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


@pytest.fixture(params=["extension", "psql"])
def filled(server: Server, empty_database: str, request: pytest.FixtureRequest) -> str:
    """A database in which every table has rows."""
    servers.install(request.param, server, empty_database)
    with psycopg.connect(empty_database) as connection:
        for bank in ("first", "second"):
            connection.execute(
                "select pgrecall.create_bank(bank => %s, embedding_model => 'm')", [bank]
            )
            retain(connection, bank, FACTS)
            connection.execute(
                "select pgrecall.retain_messages(%s, %s)", [bank, json.dumps(MESSAGES)]
            )
            connection.execute("select pgrecall.log_session(%s, 'standup')", [bank])
            connection.execute("select pgrecall.refresh_statistics(%s)", [bank])
        connection.execute(
            "select pgrecall.supersede('first', %s, %s)", retain(connection, "first", FACTS)
        )
    return empty_database


@pytest.fixture(params=["custom", "plain"])
def restored(
    server: Server, filled: str, bare_database: str, request: pytest.FixtureRequest, tmp_path: Path
) -> str:
    """What pg_dump of ``filled`` restores."""
    dump = tmp_path / "dump"
    server.run("pg_dump", f"--format={request.param}", f"--file={dump}", filled)
    if request.param == "custom":
        server.run("pg_restore", "--exit-on-error", f"--dbname={bare_database}", dump)
    else:
        server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", bare_database, "-f", dump)
    return bare_database


def retain(connection: psycopg.Connection, bank: str, facts: Sequence[object]) -> list[int]:
    query = "select memory_id from pgrecall.retain(%s, %s, model => 'm') order by index"
    with connection.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(query, [bank, json.dumps(facts)]).fetchall()


def table_rows(dsn: str) -> dict[str, list[str]]:
    """Return every row of every table, as text."""
    tables = (
        "select c.oid::regclass::text from pg_class c"
        " where c.relnamespace = 'pgrecall'::regnamespace and c.relkind in ('r', 'p')"
        " and not c.relispartition"
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


def test_a_restore_is_a_whole_install(filled: str, restored: str) -> None:
    assert servers.fingerprint(restored) == servers.fingerprint(filled)


def test_a_restore_hands_out_new_ids(restored: str) -> None:
    with psycopg.connect(restored) as connection:
        before = connection.execute("select max(memory_id) from pgrecall.memory").fetchone()

        [new] = retain(connection, "first", LATER)

    assert before is not None
    assert new > before[0]


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
