"""An upgrade keeps what users made and granted, says what it cannot keep, and lets readers read."""

from __future__ import annotations

import re
import threading
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

import servers
from pgrecall import Recall, command, schema
from pgrecall._version import __version__
from pgrecall.errors import InstallError
from pgrecall.server import build
from servers import Server

OLDEST = "0.1.0"
FROZEN = build.frozen_releases()

# 0.1.0 is not compared: the release after it changed the API once and for all.
COMPARED = [release for release in FROZEN if release != OLDEST][-1:]

Api = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture
def old_database(server: Server, empty_database: str) -> str:
    """A database with 0.1.0, as its script installs it."""
    servers.run_script(server, empty_database, servers.frozen_script(OLDEST))
    return empty_database


@pytest.fixture
def analyst(server: Server) -> Iterator[str]:
    """The name of a role that may do nothing yet."""
    name = "pgrecall_test_analyst"
    role = sql.Identifier(name)
    server.execute(sql.SQL("drop role if exists {}").format(role))
    server.execute(sql.SQL("create role {}").format(role))
    try:
        yield name
    finally:
        server.execute(sql.SQL("drop role if exists {}").format(role))


def execute(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def value(dsn: str, query: str) -> Any:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]


def migrate(dsn: str) -> schema.MigrationResult:
    with psycopg.connect(dsn) as connection:
        return schema.migrate(connection)


# What users granted


def may_execute(dsn: str, role: str, function: str) -> bool:
    query = (
        f"select has_function_privilege('{role}', p.oid, 'execute') from pg_proc p"
        f" where p.oid::regproc::text = '{function}'"
    )
    return bool(value(dsn, query))


def test_grants_on_a_function_that_changes_are_kept(old_database: str, analyst: str) -> None:
    execute(
        old_database,
        f"create role {analyst}_other",
        "revoke execute on function pgrecall.hybrid_recall from public",
        f"grant execute on function pgrecall.hybrid_recall to {analyst} with grant option",
    )
    try:
        migrate(old_database)

        assert may_execute(old_database, analyst, "pgrecall.hybrid_recall")
        assert may_execute(old_database, f"{analyst}_other", "pgrecall.explain_recall")
        assert not may_execute(old_database, f"{analyst}_other", "pgrecall.hybrid_recall")
        assert (
            "X*"
            in value(
                old_database,
                "select proacl::text from pg_proc where oid = 'pgrecall.hybrid_recall'::regproc",
            )
            .split(f"{analyst}=")[1]
            .split("/")[0]
        )
    finally:
        execute(
            old_database,
            f"drop owned by {analyst} cascade",
            f"drop role {analyst}_other",
        )


def test_grants_on_a_private_function_are_kept(old_database: str, analyst: str) -> None:
    execute(old_database, "revoke execute on function pgrecall._bank from public")

    migrate(old_database)

    assert not may_execute(old_database, analyst, "pgrecall_internal._bank")


def test_the_owner_of_a_function_that_changes_is_kept(old_database: str, analyst: str) -> None:
    execute(
        old_database,
        f"grant create, usage on schema pgrecall to {analyst}",
        f"alter function pgrecall.hybrid_recall owner to {analyst}",
    )
    try:
        migrate(old_database)

        assert analyst == value(
            old_database,
            "select proowner::regrole::text from pg_proc"
            " where oid = 'pgrecall.hybrid_recall'::regproc",
        )
    finally:
        execute(
            old_database,
            f"reassign owned by {analyst} to current_user",
            f"drop owned by {analyst}",
        )


def test_usage_on_the_schema_holds_for_the_internal_one(old_database: str, analyst: str) -> None:
    execute(
        old_database,
        f"grant usage on schema pgrecall to {analyst}",
        f"grant select on all tables in schema pgrecall to {analyst}",
    )
    try:
        migrate(old_database)

        with psycopg.connect(old_database) as connection:
            connection.execute("select pgrecall.create_bank('diary')")
            connection.execute(f"set role {analyst}".encode())
            assert connection.execute("select count(*) from pgrecall.memory").fetchone() == (0,)
            assert connection.execute(
                "select has_schema_privilege('pgrecall_internal', 'usage')"
            ).fetchone() == (True,)
            connection.execute("select pgrecall.bank_statistics('diary')")
    finally:
        execute(old_database, f"drop owned by {analyst} cascade")


@pytest.fixture
def granted(old_database: str, analyst: str) -> Iterator[str]:
    """The same role, with rights on all that 0.1.0 has, and a bank "diary"."""
    execute(
        old_database,
        f"grant usage on schema pgrecall to {analyst}",
        f"grant select, insert, update, delete on all tables in schema pgrecall to {analyst}",
        f"grant usage on all sequences in schema pgrecall to {analyst}",
        "select pgrecall.create_bank('diary')",
    )
    try:
        yield analyst
    finally:
        execute(old_database, f"drop owned by {analyst} cascade")


def test_who_could_use_all_tables_can_use_the_new_ones(old_database: str, granted: str) -> None:
    migrate(old_database)

    with psycopg.connect(old_database) as connection:
        connection.execute(f"set role {granted}".encode())
        recall = Recall(connection)
        recall.retain("diary", [{"text": "Ana leads Atlas.", "entities": ["Ana", "Atlas"]}])
        recall.refresh_statistics("diary")
        [hit] = recall.recall("diary", "Who leads Atlas?")
        lacking = connection.execute(
            "select oid::regclass::text, privilege from pg_class,"
            " unnest(array['select', 'insert', 'update', 'delete']) as privilege"
            " where relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
            " and relkind in ('r', 'p', 'v') and not has_table_privilege(oid, privilege)"
        ).fetchall()

    assert hit.text == "Ana leads Atlas."
    assert lacking == []


def test_who_could_only_read_can_read_the_new_tables(old_database: str, granted: str) -> None:
    execute(
        old_database,
        f"revoke insert, update, delete on all tables in schema pgrecall from {granted}",
        "select pgrecall.retain('diary', '[{\"text\": \"Ana leads Atlas.\"}]')",
    )

    migrate(old_database)

    with psycopg.connect(old_database) as connection:
        connection.execute(f"set role {granted}".encode())
        assert [hit.text for hit in Recall(connection).recall("diary", "Who leads Atlas?")] == [
            "Ana leads Atlas."
        ]
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("delete from pgrecall_internal.entity_count")


def test_rights_by_bank_hold_on_the_new_tables(old_database: str, granted: str) -> None:
    execute(
        old_database,
        "alter table pgrecall.memory enable row level security",
        f"create policy mine on pgrecall.memory to {granted} using (bank_id = 'diary')",
        f"create policy hidden on pgrecall.memory as restrictive to {granted}"
        " using (fact_type <> 'hidden')",
    )

    migrate(old_database)

    policies = value(
        old_database,
        "select jsonb_object_agg(tablename, policyname) from pg_policies"
        " where tablename in ('entity_count', 'recall_log') and qual like '%diary%'",
    )
    assert policies == {"entity_count": "mine", "recall_log": "mine"}
    assert value(old_database, "select count(*) from pg_policies where policyname = 'hidden'") == 1
    assert value(
        old_database,
        "select bool_and(relrowsecurity) from pg_class"
        " where relname in ('entity_count', 'name_lock', 'recall_log', 'attached_change')",
    )


def test_who_had_no_rights_gets_none(old_database: str, analyst: str) -> None:
    migrate(old_database)

    assert not value(
        old_database,
        "select bool_or(relacl is not null) from pg_class where relname in"
        " ('entity_count', 'name_lock', 'recall_log', 'attachment', 'fact')",
    )


# What users built on it


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        (
            "create view best as select text from pgrecall.hybrid_recall('b', 'q')",
            "view public.best",
        ),
        (
            "create materialized view best as"
            " select text from pgrecall.hybrid_recall('b', 'q') with no data",
            "materialized view public.best",
        ),
        (
            "create function best() returns setof text language sql begin atomic"
            " select h.text from pgrecall.hybrid_recall('b', 'q') h; end",
            "function public.best()",
        ),
        (
            "create view best as select pgrecall._scope('b', 'fact') as scope",
            "view public.best",
        ),
    ],
    ids=["view", "materialised view", "function", "on a private function"],
)
def test_what_stands_on_a_function_that_changes_is_named(
    old_database: str, statement: str, name: str
) -> None:
    execute(old_database, statement)

    with pytest.raises(InstallError) as raised:
        migrate(old_database)

    assert raised.value.message == "1 of your objects depend on what this release changes"
    hint = str(raised.value.hint)
    assert hint.startswith(f"Drop them, upgrade, and create them again: {name}.")
    assert hint.endswith("= on;") == ("view" in name)
    assert value(old_database, "select pgrecall.version()") == OLDEST


def test_what_stands_on_what_stands_on_it_is_named_too(old_database: str) -> None:
    execute(
        old_database,
        "create view best as select text from pgrecall.hybrid_recall('b', 'q')",
        "create view worst as select * from best",
    )

    with pytest.raises(InstallError) as raised:
        migrate(old_database)

    assert ": view public.best, view public.worst. " in str(raised.value.hint)


VIEWS = (
    "create role analyst",
    "create view best with (security_barrier=true) as"
    " select text, score from pgrecall.hybrid_recall('b', 'q')",
    "create materialized view a_copy as select text from best",
    "create unique index on a_copy (text)",
    "comment on view best is 'What it''s about'",
    "comment on column best.text is 'The fact'",
    "grant select on best to analyst with grant option",
    "grant select (text) on a_copy to public",
)
AS_THEY_ARE = r"""
select jsonb_agg(jsonb_build_array(
         c.relname, c.relkind, c.relowner::regrole, c.relacl::text,
         -- Without the columns that the function had, of which it may have more now.
         regexp_replace(pg_get_viewdef(c.oid), 'hybrid_recall\([a-z_, ]+\)', ''),
         c.reloptions, c.relispopulated, obj_description(c.oid, 'pg_class'),
         (select array_agg(col_description(c.oid, a.attnum) || '' order by a.attnum)
          from pg_attribute a where a.attrelid = c.oid and a.attnum > 0),
         (select array_agg(a.attacl::text order by a.attnum)
          from pg_attribute a where a.attrelid = c.oid and a.attnum > 0),
         (select array_agg(pg_get_indexdef(i.indexrelid)) from pg_index i
          where i.indrelid = c.oid)) order by c.relname)
from   pg_class c
where  c.relname in ('best', 'a_copy')
"""


@pytest.fixture
def old_database_with_views(old_database: str) -> Iterator[str]:
    execute(old_database, "select pgrecall.create_bank('b')", *VIEWS)
    yield old_database
    execute(old_database, "drop owned by analyst", "drop role analyst")


def test_views_are_made_again_as_they_were_when_asked(old_database_with_views: str) -> None:
    before = value(old_database_with_views, AS_THEY_ARE)

    with psycopg.connect(old_database_with_views) as connection:
        schema.migrate(connection, recreate_dependents=True)

    assert value(old_database_with_views, "select pgrecall.version()") == __version__
    assert value(old_database_with_views, AS_THEY_ARE) == before


def test_the_statements_that_make_views_again_are_said_and_can_be_run(
    old_database_with_views: str,
) -> None:
    before = value(old_database_with_views, AS_THEY_ARE)
    with pytest.raises(InstallError) as raised:
        migrate(old_database_with_views)
    cause = raised.value.__cause__
    assert isinstance(cause, psycopg.Error)
    heading, _, statements = str(cause.diag.message_detail).partition("\n")

    execute(old_database_with_views, "drop view best cascade")
    migrate(old_database_with_views)
    execute(old_database_with_views, statements)

    assert heading == "These make the views again:"
    assert value(old_database_with_views, AS_THEY_ARE) == before


def test_what_is_no_view_is_refused_even_when_views_are_made_again(old_database: str) -> None:
    execute(
        old_database,
        "create function best() returns setof text language sql begin atomic"
        " select h.text from pgrecall.hybrid_recall('b', 'q') h; end",
    )

    with psycopg.connect(old_database) as connection, pytest.raises(InstallError):
        schema.migrate(connection, recreate_dependents=True)


def test_what_stands_on_a_function_that_stays_is_left_alone(old_database: str) -> None:
    execute(
        old_database,
        "create view weights as select pgrecall.default_weights() as weights",
        "create view facts as select text from pgrecall.memory",
    )

    migrate(old_database)

    assert value(old_database, "select weights ? 'graph' from weights")
    assert value(old_database, "select count(*) from facts") == 0


def test_a_public_function_made_of_private_ones_keeps_what_stands_on_it(old_database: str) -> None:
    execute(
        old_database,
        "create or replace function pgrecall.normalised_name(name text) returns text"
        " language sql immutable parallel safe return name || pgrecall._cjk()",
        "create view ana as select pgrecall.normalised_name('Ana') as name",
    )

    migrate(old_database)

    assert value(old_database, "select name from ana") == "ana"


def test_nothing_of_the_upgrade_is_left_behind(old_database: str) -> None:
    migrate(old_database)

    left = value(
        old_database,
        "select count(*) from pg_proc where proname like '\\_%'"
        " and pronamespace = 'pgrecall'::regnamespace",
    )
    assert left == 0
    assert value(old_database, "select to_regnamespace('pgrecall_upgrade') is null")


@pytest.mark.parametrize("name", ["C#", "Ａｎａ"])
def test_names_of_before_are_found(old_database: str, name: str) -> None:
    execute(
        old_database,
        "select pgrecall.create_bank('b')",
        f"""select pgrecall.retain('b', '[{{"text": "a", "entities": ["{name}"]}}]')""",
    )

    migrate(old_database)

    question = f"who knows {unicodedata.normalize('NFKC', name)}?"
    assert value(old_database, f"select name from pgrecall.query_entities('b', '{question}')")


# Many at once, and tables in use


def test_of_many_migrations_at_once_one_does_the_work(old_database: str) -> None:
    results: list[schema.MigrationResult | Exception] = []
    ready = threading.Barrier(4)

    def run() -> None:
        try:
            ready.wait()
            results.append(migrate(old_database))
        except Exception as error:
            results.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(getattr(result, "before", str(result)) for result in results) == [
        OLDEST,
        *[__version__] * 3,
    ]


def test_of_many_installs_at_once_one_does_the_work(empty_database: str) -> None:
    results: list[object] = []
    threads = [
        threading.Thread(target=lambda: results.append(migrate(empty_database).before))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(map(str, results)) == [*[__version__] * 3, "None"]


def wait_for_lock(connection: psycopg.Connection[Any]) -> None:
    query = (
        "select exists (select from pg_stat_activity where wait_event_type = 'Lock'"
        " and wait_event = 'relation' and datname = current_database())"
    )
    while connection.execute(query.encode()).fetchone() != (True,):
        time.sleep(0.01)


def test_a_migration_that_waits_does_not_hold_up_readers(old_database: str) -> None:
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(migrate(old_database)))
    with (
        psycopg.connect(old_database) as slow,
        psycopg.connect(old_database, autocommit=True) as watch,
        psycopg.connect(old_database, autocommit=True) as reader,
    ):
        slow.execute("select count(*) from pgrecall.memory")  # and its transaction stays open
        thread.start()
        wait_for_lock(watch)
        slowest = 0.0
        for _ in range(50):
            begun = time.perf_counter()
            reader.execute("select count(*) from pgrecall.memory")
            reader.execute("select count(*) from pgrecall.bank")
            slowest = max(slowest, time.perf_counter() - begun)
            time.sleep(0.01)
        slow.rollback()
        thread.join()

    assert results == [schema.MigrationResult(OLDEST, __version__, "script")]
    assert slowest < 0.2


def test_a_migration_gives_way_to_a_writer_and_then_locks_before_it_builds(
    old_database: str,
) -> None:
    execute(old_database, "select pgrecall.create_bank('a')")
    results: list[object] = []

    def run() -> None:
        with psycopg.connect(old_database) as connection:
            results.append(schema.migrate(connection, retries=1))

    thread = threading.Thread(target=run)
    slowest = 0.0
    with (
        psycopg.connect(old_database) as writer,
        psycopg.connect(old_database, autocommit=True) as watch,
    ):
        for attempt in range(2):
            writer.rollback()
            writer.execute("select count(*) from pgrecall.memory")
            if attempt == 0:
                thread.start()
            wait_for_lock(watch)
            begun = time.perf_counter()
            writer.execute("""select * from pgrecall.retain('a', '[{"text": "new"}]')""")
            slowest = max(slowest, time.perf_counter() - begun)
        writer.commit()
        thread.join()

    assert results == [schema.MigrationResult(OLDEST, __version__, "script")]
    assert slowest < 3
    assert value(old_database, "select count(*) from pgrecall.memory") == 1


def test_a_migration_gives_up_on_a_table_that_stays_in_use(old_database: str) -> None:
    with (
        psycopg.connect(old_database) as writer,
        psycopg.connect(old_database, autocommit=True) as connection,
    ):
        writer.execute("lock table pgrecall.memory in row exclusive mode")

        with pytest.raises(errors.LockNotAvailable):
            schema.migrate(connection, lock_timeout=0.05, retries=1)

        writer.rollback()
        assert schema.installed_version(connection) == OLDEST
        assert connection.execute("show lock_timeout").fetchone() == ("0",)


def test_a_migration_in_a_transaction_of_the_caller_is_tried_once(
    old_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgrecall.server.schema._PAUSE", -1.0)  # waiting to try again is an error
    with (
        psycopg.connect(old_database) as writer,
        psycopg.connect(old_database) as connection,
    ):
        writer.execute("lock table pgrecall.memory in row exclusive mode")
        connection.execute("select 1")

        with pytest.raises(errors.LockNotAvailable):
            schema.migrate(connection, lock_timeout=0.05, retries=100)

        assert schema.installed_version(connection) == OLDEST


# What an upgrade would do


def test_a_plan_changes_nothing(old_database: str) -> None:
    before = servers.fingerprint(old_database)
    with psycopg.connect(old_database) as connection:
        assert schema.plan(connection)
        locks = connection.execute(
            "select count(*) from pg_locks where pid = pg_backend_pid()"
            " and relation in (select oid from pg_class"
            "   where relnamespace = 'pgrecall'::regnamespace and relkind in ('r', 'p'))"
        ).fetchone()

    assert locks == (0,)
    assert servers.fingerprint(old_database) == before


def test_a_plan_is_empty_where_nothing_is_to_do(database: str, empty_database: str) -> None:
    for dsn in (database, empty_database):
        with psycopg.connect(dsn) as connection:
            assert schema.plan(connection) == []


def test_a_plan_names_the_locks_that_are_taken(old_database: str) -> None:
    """Each statement is run, and what it locks is compared with what the plan says."""
    query = (
        "select relation::regclass::text, replace(lower(mode), 'lock', '') from pg_locks"
        " where pid = pg_backend_pid() and relation in (select oid from pg_class"
        "   where relnamespace::regnamespace::text like 'pgrecall%%' and relkind in ('r', 'p')"
        "   and not relispartition)"
        " and mode not in ('AccessShareLock', 'RowShareLock')"
    )
    with psycopg.connect(old_database) as connection:
        planned = {statement.statement: statement for statement in schema.plan(connection)}
        # Without the locks taken beforehand, which hide what each statement asks for.
        script = re.sub(
            r"^-- frame/lock\.sql.*?(?=^-- delta)",
            "",
            build.upgrade_script(OLDEST),
            flags=re.DOTALL | re.MULTILINE,
        )
        # What the upgrade makes nobody else sees.
        made = set(re.findall(r"create table (\S+\.\w+)", script))
        held: set[tuple[str, str]] = set()
        wrong = []
        for statement in map(build.bare, build.statements(script)):
            connection.execute(statement.encode())
            now = {lock for lock in connection.execute(query).fetchall() if lock[0] not in made}
            new, held = now - held, held | now
            plan = planned.pop(statement, None)
            if plan is None or not new:
                continue
            said = (plan.table, (plan.lock or "").replace(" ", ""))
            # What rewrites a table also takes a weaker lock, for its indexes.
            new |= held & {(table, "accessexclusive") for table, _ in new}
            moved = {(table.replace("_internal", ""), mode) for table, mode in new}
            if said not in moved:
                wrong.append((statement, said, new))
        connection.rollback()

    assert planned == {}
    assert wrong == []


def test_what_can_be_made_by_hand_is_taken_by_the_upgrade(old_database: str) -> None:
    with psycopg.connect(old_database, autocommit=True) as connection:
        by_hand = [step.by_hand for step in schema.plan(connection) if step.by_hand]
        assert len(by_hand) == 12
        for statement in by_hand:
            connection.execute(statement.encode())
        assert [step.by_hand for step in schema.plan(connection) if step.by_hand] == []
        schema.migrate(connection)

        sizes = connection.execute(
            "select count(*) from pg_indexes where schemaname = 'pgrecall'"
            " and indexname in ('memory_bank_id_fact_type_occurred_idx',"
            " 'relation_bank_id_from_id_relation_id_idx',"
            " 'relation_bank_id_to_id_relation_id_idx',"
            " 'entity_alias_bank_id_entity_id_idx')"
        ).fetchone()
    assert sizes == (4,)


def test_an_index_whose_build_failed_is_named(old_database: str) -> None:
    execute(
        old_database,
        "update pg_index set indisvalid = false"
        " where indexrelid = 'pgrecall.memory_bank_id_source_id_idx'::regclass",
    )

    with pytest.raises(InstallError) as raised:
        migrate(old_database)

    assert raised.value.hint == (
        "Wait for the build to end, or drop the index: "
        "drop index pgrecall.memory_bank_id_source_id_idx;"
    )


def test_the_command_shows_the_plan_and_the_script(
    old_database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["migrate", "--dry-run", "--dsn", old_database]) == 0
    plan = capsys.readouterr().out
    assert command.main(["migrate", "--sql", "--dsn", old_database]) == 0
    script = capsys.readouterr().out

    assert plan.startswith(f"would upgrade pgrecall from {OLDEST} to {__version__}")
    assert "   pgrecall.memory: access exclusive lock" in plan
    assert "None" not in plan
    assert "create index concurrently if not exists" in plan
    assert script == build.upgrade_script(OLDEST)
    assert value(old_database, "select pgrecall.version()") == OLDEST


@pytest.mark.parametrize(
    ("statement", "name", "is_recreated"),
    [
        (
            "create view best as select text from pgrecall.hybrid_recall('b', 'q')",
            "view public.best",
            True,
        ),
        (
            "create view best as select rrf_k from pgrecall.bank",
            "view public.best",
            False,
        ),
        (
            "create function best() returns setof text language sql begin atomic"
            " select h.text from pgrecall.hybrid_recall('b', 'q') h; end",
            "function public.best()",
            False,
        ),
    ],
    ids=["view", "view over a dropped column", "function"],
)
def test_the_plan_names_what_stops_the_upgrade(
    old_database: str,
    capsys: pytest.CaptureFixture[str],
    statement: str,
    name: str,
    is_recreated: bool,
) -> None:
    execute(old_database, statement)
    read_only = f"{old_database} options='-c default_transaction_read_only=on'"
    again = ["migrate", "--dry-run", "--recreate-dependents", "--dsn", read_only]

    assert command.main(["migrate", "--dry-run", "--dsn", read_only]) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith("would upgrade pgrecall")
    assert f"stop the upgrade: {name}\n" in shown.err
    assert ("--recreate-dependents" in shown.err) == is_recreated
    assert command.main(again) == (0 if is_recreated else 1)


def test_a_view_over_a_dropped_column_is_not_said_to_be_made_again(old_database: str) -> None:
    execute(
        old_database,
        "create view best as select text from pgrecall.hybrid_recall('b', 'q')",
        "create view ranks as select rrf_k from pgrecall.bank",
    )

    with pytest.raises(InstallError) as raised:
        migrate(old_database)

    detail = raised.value.__cause__.diag.message_detail  # type: ignore[union-attr]
    assert "create view public.best" in detail
    assert "ranks" not in detail
    assert "view public.best, view public.ranks" in str(raised.value.hint)


def signatures(dsn: str) -> dict[str, object]:
    """Return, by name, what a public function cannot change without being dropped."""
    query = (
        "select proname::text, concat_ws(' ', proargtypes::regtype[], proallargtypes::regtype[],"
        " proargmodes, proargnames, prorettype::regtype, proretset) from pg_proc"
        " where pronamespace = 'pgrecall'::regnamespace and proname !~ '^_'"
    )
    with psycopg.connect(dsn) as connection:
        return dict(connection.execute(query.encode()).fetchall())


def test_the_delta_names_every_public_function_that_changes(
    server: Server, empty_database: str, database: str
) -> None:
    servers.run_script(server, empty_database, servers.frozen_script(FROZEN[-1]))
    old, new = signatures(empty_database), signatures(database)

    named = re.findall(r"^-- drop public: (.*)$", (build.MIGRATIONS / "next.sql").read_text(), re.M)

    assert sorted(name.strip() for line in named for name in line.split(",")) == sorted(
        name for name in old if old[name] != new.get(name)
    )


# The API from one release to the next


def public_api(dsn: str) -> Api:
    query = Path(__file__).with_name("public_api.sql").read_bytes()
    with psycopg.connect(dsn) as connection:
        return {(kind, name): what for kind, name, what in connection.execute(query).fetchall()}


def broken_promises(old: Api, new: Api) -> list[str]:
    """Name what was removed or changed, other than by columns added at the end."""
    broken = []
    for key, before in old.items():
        now = new.get(key)
        if now is None:
            broken.append(f"{key[0]} {key[1]} is gone")
            continue
        added = now["columns"][: len(before["columns"])]
        if before != now | {"columns": added}:
            broken.append(f"{key[0]} {key[1]} has changed")
    return broken


@pytest.fixture
def api_database(server: Server, empty_database: str) -> str:
    servers.install("psql", server, empty_database)
    return empty_database


@pytest.mark.parametrize("before", COMPARED)
def test_the_public_api_only_grows(
    server: Server, empty_database: str, database: str, before: str
) -> None:
    servers.run_script(server, empty_database, servers.frozen_script(before))

    assert broken_promises(public_api(empty_database), public_api(database)) == []


def test_a_new_function_and_a_new_last_column_break_no_promise(api_database: str) -> None:
    old = public_api(api_database)
    execute(
        api_database,
        "alter type pgrecall.recalled add attribute colour text",
        "alter table pgrecall.bank add column colour text",
        "create function pgrecall.colour() returns text language sql return 'red'",
    )

    assert broken_promises(old, public_api(api_database)) == []


@pytest.mark.parametrize(
    ("statements", "promise"),
    [
        (
            ["drop function pgrecall.snapshot_vocabulary"],
            "function pgrecall.snapshot_vocabulary(text) is gone",
        ),
        (
            ["alter type pgrecall.turn drop attribute place"],
            "type pgrecall.turn has changed",
        ),
        (
            ["alter type pgrecall.turn rename attribute place to position"],
            "type pgrecall.turn has changed",
        ),
        (
            ["alter table pgrecall.session rename column ended_at to over_at"],
            "table pgrecall.session has changed",
        ),
        (
            ["revoke execute on function pgrecall.default_weights from public"],
            "function pgrecall.default_weights() has changed",
        ),
        (
            ["alter function pgrecall.default_weights rename to all_weights"],
            "function pgrecall.default_weights() is gone",
        ),
    ],
)
def test_a_change_of_the_public_api_is_noticed(
    api_database: str, statements: list[str], promise: str
) -> None:
    old = public_api(api_database)
    execute(api_database, *statements)

    assert broken_promises(old, public_api(api_database)) == [promise]
