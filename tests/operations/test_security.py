"""Roles, row-level security, and input that tries to become SQL."""

from __future__ import annotations

import json

import psycopg
import pytest

from servers import kept_fixture
from sqlcalls import (
    READS,
    Connection,
    attach_filed,
    column,
    contents,
    fill,
    found_by,
    recalled,
    refused,
    retain,
    retained,
    rows,
    value,
)

SCHEMAS = "pgrecall, pgrecall_internal"
TENANT = "pgrecall_tenant"
READER = "pgrecall_reader"
WRITES = {
    "retain": """('{}', '[{{"text": "x", "entities": ["Ana"], "embedding": [1, 0]}}]')""",
    "forget": "('{}', '{{1}}')",
    "supersede": "('{0}', (select max(memory_id) from pgrecall.memory where bank_id = '{0}'))",
    "unsupersede": "('{0}', (select max(memory_id) from pgrecall.memory where bank_id = '{0}'"
    " and corrections is not null))",
    "consolidate": "('{}', false)",
    "unconsolidate": "('{}')",
    "retain_messages": """('{}', '[{{"text": "x", "session": "u"}}]')""",
    "log_session": "('{}', 'u')",
    "configure_bank": "('{}', '{{}}')",
    "add_fact_type": "('{}', 'decision')",
    "refresh_statistics": "('{}', true)",
    "link_pending": "('{}')",
    "merge_entities": "('{0}', (select min(entity_id) from pgrecall.entity"
    " where bank_id = '{0}'), array(select entity_id from pgrecall.entity))",
    "split_entity": "('{0}', (select entity_id from pgrecall.mention where bank_id = '{0}'"
    " group by 1 having count(*) > 1), array(select min(memory_id) from pgrecall.mention"
    " where bank_id = '{0}'), 'New')",
    "rename_entity": "('{0}', (select min(entity_id) from pgrecall.entity"
    " where bank_id = '{0}'), 'New')",
    "log_recalls": """('{}', '[{{"asked_at": "2026-03-05", "share": 1, "total_ms": 1, "wait_ms": 0,
 "embed_ms": 0, "database_ms": 1, "rerank_ms": 0, "hits": 1}}]')""",
    "drop_bank": "('{}')",
}


def tables(connection: Connection) -> list[str]:
    return list(contents(connection))


@kept_fixture
def reader(connection: Connection) -> None:
    """The connection as a role that may read, and a bank b to read from."""
    fill(connection, "b")
    connection.execute(f"create role {READER}")
    connection.execute(f"grant usage on schema {SCHEMAS} to {READER}")
    connection.execute(f"grant select on all tables in schema {SCHEMAS} to {READER}")
    connection.execute(f"set local role {READER}")


@kept_fixture
def both(connection: Connection) -> None:
    """Two banks, and a role that may do all in SQL."""
    for bank in (TENANT, "b"):
        fill(connection, bank)
        attach_filed(connection, bank)
    # Before their rows in pg_class change: autovacuum holds one lock and waits for the other.
    every = ", ".join(tables(connection))
    connection.execute(f"lock table {every} in access exclusive mode")
    connection.execute(f"create role {TENANT}")
    connection.execute(f"grant usage on schema {SCHEMAS} to {TENANT}")
    connection.execute(f"grant all on all tables in schema {SCHEMAS} to {TENANT}")
    connection.execute(f"grant usage on sequence pgrecall.id_seq to {TENANT}")


@pytest.fixture(params=["bank_id = current_setting('app.bank')", "bank_id = current_user"])
def tenant(both: Connection, request: pytest.FixtureRequest) -> Connection:
    """The connection as that role, which sees the bank of its own name alone."""
    for table in tables(both):
        both.execute(f"alter table {table} enable row level security")
        both.execute(f"create policy own on {table} using ({request.param})")
    both.execute(f"set local app.bank = '{TENANT}'")
    both.execute(f"set local role {TENANT}")
    return both


# Least privilege


@pytest.mark.parametrize("function", READS)
def test_a_reader_finds_what_the_owner_finds(reader: Connection, function: str) -> None:
    as_reader = found_by(reader, function, "b")

    reader.execute("reset role")
    assert as_reader == found_by(reader, function, "b") != []


def test_all_arms_run_for_a_reader(reader: Connection) -> None:
    _, arguments = READS["hybrid_recall"]

    found = rows(
        reader,
        f"select arm, status from pgrecall.explain_recall('b', {arguments},"
        """ options => '{"hypothetical": [1, 0]}')""",
    )

    # The weight of source is 0.
    assert {arm for arm, status in found if status != "ran"} == {"source"}
    assert len(found) == 8


@pytest.mark.parametrize("function", [*WRITES, "create_bank"])
def test_a_reader_writes_nothing(reader: Connection, function: str) -> None:
    before = contents(reader)
    arguments = WRITES.get(function, "('{}')").format("c" if function == "create_bank" else "b")

    with pytest.raises(psycopg.errors.InsufficientPrivilege), reader.transaction():
        rows(reader, f"select * from pgrecall.{function}{arguments}")

    assert contents(reader) == before


@pytest.mark.parametrize(
    "call",
    [
        "near_copies('b', (select max(memory_id) from pgrecall.memory))",
        "supersede('b', (select max(memory_id) from pgrecall.memory), dry_run => true)",
        "consolidate('b')",
    ],
)
def test_a_reader_may_see_what_a_correction_would_do(reader: Connection, call: str) -> None:
    before = contents(reader)

    found = rows(reader, f"select * from pgrecall.{call}")

    assert bool(found) != call.startswith("consolidate")
    assert contents(reader) == before


def test_who_may_not_use_the_schema_may_do_nothing(connection: Connection) -> None:
    fill(connection, "b")
    connection.execute("create role pgrecall_stranger")
    connection.execute("set local role pgrecall_stranger")

    with refused(connection, "42501", "permission denied for schema pgrecall"):
        recalled(connection, "Ana")


def test_reading_writes_nothing_and_locks_nothing(database: str) -> None:
    with psycopg.connect(database) as connection:
        fill(connection, "b")
    with psycopg.connect(database) as connection:
        connection.read_only = True
        found = {function: found_by(connection, function, "b") for function in READS}
        _, arguments = READS["hybrid_recall"]
        rows(connection, f"select * from pgrecall.explain_recall('b', {arguments})")
        rows(connection, "select * from pgrecall.bank_overview")
        rows(connection, "select * from pgrecall.bank_statistics('b')")
        rows(connection, "select pgrecall.last_session_end('b')")

        transaction_id = value(connection, "select pg_current_xact_id_if_assigned()")
        locks = column(
            connection,
            "select distinct mode from pg_locks where pid = pg_backend_pid()"
            " and locktype = 'relation'",
        )

    assert all(found.values())
    assert transaction_id is None
    assert locks == ["AccessShareLock"]


# Row-level security


@pytest.mark.parametrize("function", READS)
def test_a_tenant_finds_its_own_and_nothing_else(tenant: Connection, function: str) -> None:
    own = found_by(tenant, function, TENANT)
    message = 'bank "b" does not exist'
    with refused(tenant, "RC001", message, "Row security"):
        found_by(tenant, function, "b")

    tenant.execute("reset role")
    assert own == found_by(tenant, function, TENANT) != []


def test_a_tenant_sees_no_rows_of_others_in_any_table(tenant: Connection) -> None:
    found = {
        table: column(tenant, f"select distinct bank_id from {table}") for table in tables(tenant)
    }

    assert set(map(tuple, found.values())) == {(TENANT,)}
    assert column(tenant, "select bank_id from pgrecall.bank_overview") == [TENANT]


@pytest.mark.parametrize("function", WRITES)
def test_a_tenant_writes_its_own_and_nothing_else(tenant: Connection, function: str) -> None:
    rows(tenant, f"select * from pgrecall.{function}{WRITES[function].format(TENANT)}")
    tenant.execute("reset role")
    before = contents(tenant)
    others = contents(tenant, "bank_id = 'b'")
    tenant.execute(f"set local role {TENANT}")

    with refused(tenant, "RC001", 'bank "b" does not exist', "Row security"):
        rows(tenant, f"select * from pgrecall.{function}{WRITES[function].format('b')}")

    tenant.execute("reset role")
    assert contents(tenant) == before
    assert all(others.values())


def test_a_tenant_retains_what_another_has_too_and_names_its_own_entities(
    tenant: Connection,
) -> None:
    shared = {"text": "x", "entities": ["Zoe"], "fact_key": "k"}
    tenant.execute("reset role")
    retain(tenant, [shared])
    tenant.execute(f"set local role {TENANT}")

    ((_, _, is_new),) = retained(tenant, [shared], bank=TENANT)

    assert is_new
    assert value(tenant, "select count(*) from pgrecall.entity where name = 'Zoe'") == 1


@pytest.mark.parametrize("bank", ["b", "c"])
def test_a_tenant_creates_no_bank_for_others(tenant: Connection, bank: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="may not create bank"):
        tenant.execute("select pgrecall.create_bank(%s)", [bank])


# Names and words that are not what they seem

HOSTILE = [
    *(
        f"create function hostile.{signature} language plpgsql"
        " as $$ begin raise exception 'hijacked'; end $$"
        for signature in [
            "now() returns timestamptz",
            "lower(text) returns text",
            "length(text) returns integer",
            "trim(text) returns text",
            "format(text, variadic text[]) returns text",
            "replace(text, text, text) returns text",
            "to_jsonb(anyelement) returns jsonb",
            "jsonb_typeof(jsonb) returns text",
            "jsonb_array_elements(jsonb) returns setof jsonb",
            "hashtextextended(text, bigint) returns bigint",
            "to_tsvector(regconfig, text) returns tsvector",
            "cardinality(anyarray) returns integer",
            "quote_literal(text) returns text",
            "vector_dims(public.halfvec) returns integer",
            "texts_equal(text, text) returns boolean",
            "ids_equal(bigint, bigint) returns boolean",
            "nearness(public.halfvec, public.halfvec) returns double precision",
            "concat(text, text) returns text",
        ]
    ),
    "create operator hostile.= (leftarg = text, rightarg = text, function = hostile.texts_equal)",
    "create operator hostile.= (leftarg = bigint, rightarg = bigint, function = hostile.ids_equal)",
    "create operator hostile.|| (leftarg = text, rightarg = text, function = hostile.concat)",
    "create operator hostile.<=> (leftarg = public.halfvec, rightarg = public.halfvec,"
    " function = hostile.nearness)",
    *(f"create table hostile.{name} (like pgrecall.{name})" for name in ("memory", "bank")),
    *(
        f"create function pg_temp.{signature} language plpgsql"
        " as $$ begin raise exception 'hijacked'; end $$"
        for signature in [
            "jsonb_build_array(jsonb) returns jsonb",
            "lower(text) returns text",
            "jsonb_array_length(jsonb) returns integer",
        ]
    ),
    "create type pg_temp.terms as (x integer)",
    "create temp table memory (like pgrecall.memory)",
    "create temp table entity (like pgrecall.entity)",
    "create temp table lexeme (like pgrecall_internal.lexeme)",
]


def test_a_hostile_search_path_changes_nothing(connection: Connection) -> None:
    # READS name tables and functions that the path must not lead astray while they are prepared.
    fill(connection, "b")
    fill(connection, "c")
    before = {function: found_by(connection, function, "b") for function in READS}
    connection.execute("create schema hostile")
    for statement in HOSTILE:
        connection.execute(statement.encode())
    connection.execute("set local search_path = hostile, pg_temp, public, pg_catalog")

    with pytest.raises(psycopg.errors.RaiseException, match="hijacked"), connection.transaction():
        connection.execute("select now()")
    assert {function: found_by(connection, function, "b") for function in READS} == before
    for bank in ("b", "c"):
        (kept,) = retain(connection, [{"text": "new", "occurred": "2026-01-01"}], bank=bank)
        connection.execute("select pgrecall.supersede(%s, %s)", [bank, kept])
        connection.execute("select pgrecall.forget(%s, %s)", [bank, [kept]])
        for function, arguments in WRITES.items():
            # What the arguments look up is the test's own SQL, which the path may well hijack.
            connection.execute("set local search_path = pg_catalog")
            (values,) = rows(connection, f"select {arguments.format(bank)[1:-1]}")
            connection.execute("set local search_path = hostile, pg_temp, public, pg_catalog")
            places = ", ".join(["%s"] * len(values))
            rows(connection, f"select * from pgrecall.{function}({places})", *values)
    connection.execute("select pgrecall.create_bank('d')")
    assert rows(connection, "select bank_id from pgrecall.bank_overview") == [("d",)]


NASTY = [
    "'",
    "''; drop table pgrecall.memory; --",
    '"',
    "%",
    "%s %1$s %L",
    "{fact_type}",
    "$1 $2 $sql$ $$",
    "back\\slash \\' \\",
    "*/ /* --",
    '["or", true] {1,2}',
    "line\nbreak\ttab",
    "ünïcödé 日本語 🙂",
]


@pytest.mark.parametrize("nasty", NASTY)
def test_no_text_becomes_sql(connection: Connection, nasty: str) -> None:
    bank = f"bank {nasty}"
    connection.execute("select pgrecall.create_bank(%s)", [bank])
    fact = {
        "text": f"word {nasty}",
        "context": nasty,
        "fact_key": nasty,
        "source_id": nasty,
        "tags": [nasty],
        "metadata": {nasty: nasty},
        "entities": [{"name": f"Ana {nasty}", "kind": nasty, "aliases": [f"Bo {nasty}"]}],
        "relations": [{"from": f"Ana {nasty}", "kind": nasty, "to": "Sam"}],
        "embedding": [1, 0],
        "occurred": "2026-03-05",
    }
    other = {"text": "other", "tags": ["t"], "metadata": {"k": "v"}, "fact_key": "other"}
    (kept, _) = retain(connection, [fact, other], bank=bank, model=nasty)
    values = ("text", fact["text"]), ("context", nasty), ("fact_key", nasty), ("source_id", nasty)
    conditions: list[list[object]] = [["=", name, text] for name, text in values]
    conditions += [["in", name, [text]] for name, text in values]
    conditions += [["contains", "tags", [nasty]], ["=", f"metadata.{nasty}", nasty]]
    conditions += [["is not null", f"metadata.{nasty}"], ["in", f"metadata.{nasty}", [nasty]]]

    for condition in conditions:
        assert column(
            connection,
            "select memory_id from pgrecall.lexical_arm(%s, 'word other', filter => %s)",
            bank,
            json.dumps(condition),
        ) == [kept], condition
    found = rows(
        connection,
        "select memory_id, arms ? 'key' from pgrecall.hybrid_recall(%s, %s, '[1,0]',"
        " '[2026-03-01,2026-04-01)', tags => %s, model => %s)",
        bank,
        nasty,
        [nasty],
        nasty,
    )
    assert found == [(kept, True)]
    assert "failed" not in column(
        connection,
        "select status from pgrecall.explain_recall(%s, %s, '[1,0]', '[2026-03-01,2026-04-01)')",
        bank,
        f"Ana {nasty}",
    )
    assert column(
        connection, "select entity_id from pgrecall.query_entities(%s, %s)", bank, f"bo {nasty}"
    ) == column(connection, "select entity_id from pgrecall.entity where kind = %s", nasty)
