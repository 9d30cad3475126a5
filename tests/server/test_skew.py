"""Driver and schema of different releases: each answers as it did, or says which side is older.

0.1.0 stands for what is older: its schema is the frozen script, its driver the statements that it
sent and the columns that it read, written down here with null for what was not given.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import psycopg
import pytest

import pgrecall as package
import servers
from pgrecall import InstallError, Recall
from servers import Server
from sqlcalls import value

RECALL = (
    "(bank => %(bank)s, query => %(query)s,"
    " embedding => pgrecall.to_embedding(null::real[]),"
    " during => null::tstzrange, fact_types => null::text[],"
    " tags => null::text[], filter => null::jsonb, arms => null::text[],"
    " weights => null::jsonb, top_k => %(ten)s, depth => %(ten)s,"
    " as_of => coalesce(null::timestamptz, now()),"
    " hypothetical => pgrecall.to_embedding(null::real[]), model => null,"
    " time_mode => 'boost', fusion => null, k => null,"
    " time_basis => 'occurred', use_hints => false, budget => 'mid')"
)
PARAMETERS = {
    "bank": "b",
    "new": "c",
    "query": "Ana",
    "ten": 10,
    "facts": '[{"text": "Ana sails", "entities": ["Ana"]}, {"text": "Bo sails"}]',
    "messages": '[{"session": "s", "text": "Ana sails"}]',
    "settings": "{}",
    "yes": True,
}
# What 0.1.0's driver sends, in an order in which it works, and the columns that it reads.
OLD_DRIVER: dict[str, list[str]] = {
    "select pgrecall.create_bank(bank => %(new)s, text_search_config => 'english',"
    " embedding_model => null, embedding_dimensions => null,"
    " fact_types => null::text[], settings => %(settings)s)": [],
    "select pgrecall.configure_bank(bank => %(bank)s, settings => %(settings)s)": [],
    "select pgrecall.add_fact_type(bank => %(bank)s, fact_type => 'plan', description => null)": [],
    "select * from pgrecall.retain(bank => %(bank)s, facts => %(facts)s, model => null,"
    " link => 'now')": ["index", "memory_id", "is_new"],
    "select * from pgrecall.retain_messages(bank => %(bank)s, messages => %(messages)s)": [
        *("index", "message_id", "is_new")
    ],
    "select * from pgrecall.bank_overview order by bank_id": [
        *("bank_id", "memories", "messages", "entities", "embedding_model"),
        *("embedding_dimensions", "text_search_config", "created_at"),
    ],
    "select pgrecall.log_session(bank => %(bank)s, session => 's',"
    " started_at => coalesce(null::timestamptz, now()), ended_at => null)": [],
    "select pgrecall.last_session_end(bank => %(bank)s,"
    " before => coalesce(null::timestamptz, now()))": [],
    "select pgrecall.refresh_statistics(bank => %(bank)s, is_full => %(yes)s)": [],
    "select * from pgrecall.bank_statistics(bank => %(bank)s)": [
        *("kind", "document_count", "average_length", "lexeme_count", "waiting", "refreshed_at")
    ],
    "select pgrecall.highlight(bank => %(bank)s, memory_id => (select min(memory_id) from"
    " pgrecall.memory), query => %(query)s, start_mark => '<', end_mark => '>')": [],
    "select pgrecall.vocabulary_drift(bank => %(bank)s)": [],
    "select pgrecall.snapshot_vocabulary(bank => %(bank)s)": [],
    "select pgrecall.link_pending(bank => %(bank)s, batch_size => %(ten)s)": [],
    "select * from pgrecall.query_entities(bank => %(bank)s, query => %(query)s)": [
        *("entity_id", "name", "kind", "matched", "confidence")
    ],
    "select pgrecall.supersede(bank => %(bank)s, memory_id => (select min(memory_id) from"
    " pgrecall.memory), superseded_by => null, at => coalesce(null::timestamptz, now()))": [],
    "select pgrecall.forget(bank => %(bank)s, memory_ids => (select array_agg(memory_id) from"
    " pgrecall.memory)::bigint[])": [],
    "select pgrecall.drop_bank(bank => %(new)s)": [],
    "select * from pgrecall.hybrid_recall" + RECALL: ["rank", "memory_id", "text", "score", "arms"],
    "select * from pgrecall.explain_recall" + RECALL: ["arm", "status", "reason"],
}
# The release after 0.1.0 changed their arguments, once and for all.
CHANGED = ("hybrid_recall", "explain_recall")


@pytest.fixture
def old_database(server: Server, empty_database: str) -> str:
    servers.run_script(server, empty_database, servers.frozen_script("0.1.0"))
    with psycopg.connect(empty_database) as connection:
        connection.execute("select pgrecall.create_bank('b')")
        connection.execute("""select pgrecall.retain('b', '[{"text": "Ana sails"}]')""")
    return empty_database


def outcomes(dsn: str) -> dict[str, str]:
    """What each statement of the old driver comes to: an SQLSTATE, or whether it is understood."""
    found = {}
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement, read in OLD_DRIVER.items():
            try:
                cursor = connection.execute(statement.encode(), PARAMETERS)
                sent = [column.name for column in cursor.description or []]
                cursor.fetchall()
                found[statement] = "works" if set(read) <= set(sent) else str(sent)
            except psycopg.Error as error:
                found[statement] = str(error.sqlstate)
    return found


def test_the_old_driver_works_on_the_old_schema(old_database: str) -> None:
    """So that what fails on the new one fails for being new."""
    assert {what: how for what, how in outcomes(old_database).items() if how != "works"} == {}


def test_on_a_new_schema_an_old_driver_works_or_is_refused_as_a_whole(old_database: str) -> None:
    with psycopg.connect(old_database) as connection:
        package.schema.migrate(connection)

    found = outcomes(old_database)

    assert {
        statement: outcome
        for statement, outcome in found.items()
        if outcome != ("42883" if any(name in statement for name in CHANGED) else "works")
    } == {}


CALLS: dict[str, Callable[[Recall], object]] = {
    "recall": lambda r: r.recall("b", "Ana"),
    "recall_report": lambda r: r.recall_report("b", "Ana", explain=True),
    "explain": lambda r: r.explain("b", "Ana"),
    "retain": lambda r: r.retain("b", ["Bo sails"]),
    "retain_messages": lambda r: r.retain_messages("b", [{"text": "x", "session": "s"}]),
    "create_bank": lambda r: r.create_bank("c"),
    "banks": lambda r: r.banks(),
    "list_memories": lambda r: r.list_memories("b"),
    "get": lambda r: r.get("b", 1),
    "history": lambda r: r.history("b", 1),
    "update": lambda r: r.update("b", 1, text="x"),
    "forget": lambda r: r.forget("b", [1]),
    "forget by a filter": lambda r: r.forget("b", filter="text = 'x'"),
    "supersede": lambda r: r.supersede("b", 1),
    "consolidate": lambda r: r.consolidate("b"),
    "query_entities": lambda r: r.query_entities("b", "Ana"),
    "index_plan": lambda r: r.index_plan(),
    "bank_statistics": lambda r: r.bank_statistics("b"),
    "export": lambda r: list(r.export("b")),
    "clone_bank": lambda r: r.clone_bank("b", "c"),
    "context": lambda r: r.context("b", "Ana"),
    "recall_options": lambda r: r.recall_options(),
}


@pytest.mark.parametrize("method", CALLS)
def test_on_an_old_schema_a_new_driver_works_or_names_both_versions(
    old_database: str, method: str
) -> None:
    with psycopg.connect(old_database, autocommit=True) as connection:
        memory = Recall(connection, embedder=None)
        before = value(connection, "select count(*) from pgrecall.memory")
        refusal = None
        try:
            CALLS[method](memory)
        except InstallError as error:
            refusal = error
        after = value(connection, "select count(*) from pgrecall.memory")

    said = f"the database has pgrecall 0.1.0, this driver is {package.__version__}: "
    assert refusal is None or refusal.message.startswith(said)
    assert refusal is None or refusal.hint == "Upgrade the schema with: pgrecall migrate --dsn ..."
    assert refusal is None or after == before


def test_most_of_a_new_driver_needs_the_new_schema(old_database: str) -> None:
    """Otherwise the test above proves nothing."""
    with psycopg.connect(old_database, autocommit=True) as connection:
        for method in ("recall", "list_memories", "consolidate"):
            with pytest.raises(InstallError):
                CALLS[method](Recall(connection, embedder=None))


def test_what_an_upgrade_makes_of_a_bank_a_connection_sees_that_was_open_before(
    old_database: str,
) -> None:
    """The driver is upgraded first: its open connections go on when the schema follows."""
    with (
        psycopg.connect(old_database, autocommit=True) as open_before,
        psycopg.connect(old_database) as upgrade,
    ):
        memory = Recall(open_before, embedder=None)
        for _ in range(8):  # psycopg prepares a statement that it has seen five times
            with pytest.raises(InstallError):
                memory.recall("b", "Ana")
            memory.banks()

        package.schema.migrate(upgrade)
        upgrade.commit()

        assert [hit.text for hit in memory.recall("b", "Ana")] == ["Ana sails"]
        assert [bank.memories for bank in memory.banks()] == [1]


# Many migrations at once


def test_of_many_processes_that_migrate_one_works_and_the_others_find_it_done(
    old_database: str,
) -> None:
    command = [sys.executable, "-m", "pgrecall.command", "migrate", "--dsn", old_database]

    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(10)
    ]
    said = [process.communicate()[0] for process in started]

    assert [process.returncode for process in started] == [0] * 10
    assert sorted("0.1.0" in text for text in said) == [False] * 9 + [True]
    with psycopg.connect(old_database) as connection:
        assert package.schema.installed_version(connection) == package.__version__
