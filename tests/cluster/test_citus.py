"""pgrecall distributed by Citus: the same calls, each on the worker of its bank.

PGRECALL_CITUS_DSN names the coordinator, as superuser, of a cluster with two workers or more that
can be reached from here; ``python -m bench.scale.citus --checkout DIR --serve`` starts one. The
tests make a database of their own on each node. What workers are asked shows in Citus' log.
"""

from __future__ import annotations

import json
import math
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pgrecall import BankExists, BankNotFound, InstallError, Recall, schema
from pgrecall.server import citus
from servers import Server
from sqlcalls import (
    READS,
    SAMPLE,
    Connection,
    call,
    column,
    create,
    fill,
    log_recalls,
    refused,
    retain,
    rows,
    value,
)
from toys import toy_embed

DSN = os.environ.get("PGRECALL_CITUS_DSN", "")
pytestmark = pytest.mark.skipif(
    not DSN,
    reason="PGRECALL_CITUS_DSN names no coordinator; python -m bench.scale.citus --serve",
)
DIMENSIONS = len(toy_embed(["any"])[0])
RECALL = "select text from pgrecall.hybrid_recall('a', 'Who leads Atlas?', '[1,0]')"


def connect(dsn: str) -> Connection:
    return psycopg.connect(dsn, autocommit=True)


def nodes_of(dsn: str) -> list[str]:
    """Return the DSNs of all nodes, the coordinator's first."""
    with connect(dsn) as connection:
        found = rows(
            connection, "select nodename, nodeport from pg_dist_node order by groupid, nodeid"
        )
    return [make_conninfo(dsn, host=host, port=port) for host, port in found]


@contextmanager
def distributed_database() -> Iterator[list[str]]:
    """Make a database with Citus on every node; yields its DSNs, the coordinator's first."""
    name = f"pgrecall_test_{uuid.uuid4().hex[:12]}"
    nodes = nodes_of(DSN)
    made = [make_conninfo(node, dbname=name) for node in nodes]
    with ExitStack() as stack:
        for node in nodes:
            admin = stack.enter_context(connect(node))
            admin.execute("set citus.enable_create_database_propagation = off")
            admin.execute(f"create database {name}".encode())
            stack.callback(admin.execute, f"drop database {name} with (force)".encode())
            stack.callback(admin.execute, "set citus.enable_create_database_propagation = off")
        for one in made:
            with connect(one) as connection:
                connection.execute("create extension citus")
        with connect(made[0]) as connection, connect(nodes[0]) as known:
            for n, (host, port) in enumerate(
                rows(known, "select nodename, nodeport from pg_dist_node order by groupid, nodeid")
            ):
                function = "citus_add_node" if n else "citus_set_coordinator_host"
                connection.execute(f"select {function}(%s, %s)".encode(), [host, port])
            connection.execute(f"alter database {name} set citus.shard_count = 4".encode())
        yield made


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[str]]:
    """A cluster with pgrecall and the full banks a and b, on different workers."""
    with distributed_database() as nodes:
        with connect(nodes[0]) as connection:
            result = schema.migrate(connection, citus=True)
            assert result.is_distributed
            fill(connection, "a")
            fill(connection, other_than_a(connection))
        yield nodes


def other_than_a(connection: Connection) -> str:
    """Return the name of a bank that another worker has."""
    home = place(connection, "a")
    return next(name for name in "bcdefghijklm" if place(connection, name) != home)


def place(connection: Connection, bank: str) -> int:
    """Return the group of the worker that has a bank, or would have it."""
    found = value(
        connection,
        "select groupid from pg_dist_placement"
        " where shardid = get_shard_id_for_distribution_column('pgrecall.bank', %s::text)",
        bank,
    )
    return int(found)


@pytest.fixture
def coordinator(nodes: list[str]) -> Iterator[Connection]:
    with connect(nodes[0]) as connection:
        yield connection


@pytest.fixture
def memory(coordinator: Connection) -> Recall:
    return Recall(coordinator, embedder=toy_embed, model="toy")


@pytest.fixture
def bank(memory: Recall) -> Iterator[str]:
    memory.create_bank("own")
    memory.retain("own", ["Ana leads Atlas.", "Boats are blue."])
    yield "own"
    memory.drop_bank("own")


@pytest.fixture(scope="module")
def plain_database(server: Server, installed_template: str) -> Iterator[str]:
    with server.database(installed_template) as dsn:
        with connect(dsn) as connection:
            fill(connection, "a")
        yield dsn


@pytest.fixture
def plain(plain_database: str) -> Iterator[Connection]:
    with connect(plain_database) as connection:
        yield connection


@contextmanager
def commands(connection: Connection) -> Iterator[list[str]]:
    """Collect what the coordinator asks of workers, but for transactions."""
    asked: list[str] = []

    def note(diagnosis: psycopg.errors.Diagnostic) -> None:
        found = re.match(r"issuing (?!BEGIN|COMMIT|PREPARE|ROLLBACK)(.*)", str(diagnosis), re.S)
        found = found or re.match(
            r"issuing (?!BEGIN|COMMIT|PREPARE|ROLLBACK)(.*)", diagnosis.message_primary or "", re.S
        )
        if found:
            asked.append(found[1])

    connection.add_notice_handler(note)
    connection.execute("set citus.log_remote_commands = on")
    try:
        yield asked
    finally:
        connection.execute("reset citus.log_remote_commands")
        connection.remove_notice_handler(note)


# Where everything is


def test_every_table_is_distributed_beside_its_bank(coordinator: Connection) -> None:
    tables = {
        str(name)
        for name in column(
            coordinator,
            "select c.oid::regclass::text from pg_class c join pg_attribute a"
            " on a.attrelid = c.oid and a.attname = 'bank_id'"
            " where c.relkind in ('r', 'p') and c.relnamespace in"
            " ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)",
        )
    }
    places = rows(
        coordinator,
        "select logicalrelid::text, colocationid, partmethod from pg_dist_partition",
    )

    assert {name for name, *_ in places} == tables
    assert len({(group, method) for _, group, method in places}) == 1


def test_every_function_of_a_bank_is_delegated_or_named_as_not(coordinator: Connection) -> None:
    public = column(
        coordinator,
        "select proname from pg_proc where pronamespace = 'pgrecall'::regnamespace"
        " and proargnames[1] = 'bank'",
    )
    delegated = column(
        coordinator,
        "select p.proname from pg_catalog.pg_dist_object o join pg_proc p on p.oid = o.objid"
        " where o.classid = 'pg_proc'::regclass and o.force_delegation"
        " and p.pronamespace = 'pgrecall_internal'::regnamespace",
    )

    assert set(delegated) == set(public) - citus.UNDISTRIBUTED
    assert set(public) >= citus.UNDISTRIBUTED


@pytest.mark.parametrize("function", sorted(set(READS) - {"link_expansion"}))
def test_a_whole_call_runs_on_the_worker_of_the_bank(
    coordinator: Connection, function: str
) -> None:
    key, arguments = READS[function]

    with commands(coordinator) as asked:
        coordinator.execute(f"select {key} from pgrecall.{function}('a', {arguments})".encode())

    assert len(asked) == 1
    assert f"FROM pgrecall_internal.{function}('a'::text" in asked[0]


def test_a_fact_is_stored_by_one_call_on_the_worker(coordinator: Connection, bank: str) -> None:
    with commands(coordinator) as asked:
        retain(coordinator, ["Cy cooks for Ana."], bank)

    assert [re.sub(r"\(.*", "", one, flags=re.S).split()[-1] for one in asked] == [
        "pgrecall_internal.retain"
    ]


# The same answers


def places_of(connection: Connection, function: str) -> list[int]:
    """Return what a function finds, as places in the order of what bank a holds."""
    known = column(
        connection,
        "select memory_id from pgrecall.memory where bank_id = 'a' union all"
        " select message_id from pgrecall.message where bank_id = 'a' union all"
        " select entity_id from pgrecall.entity where bank_id = 'a' order by 1",
    )
    key, arguments = READS[function]
    if function == "link_expansion":
        arguments = f"'{{{', '.join(map(str, known))}}}'"
    return [
        known.index(one)
        for one in column(connection, f"select {key} from pgrecall.{function}('a', {arguments})")
    ]


@pytest.mark.parametrize("function", sorted(READS))
def test_citus_finds_what_plain_postgresql_finds(
    coordinator: Connection, plain: Connection, function: str
) -> None:
    assert places_of(coordinator, function) == places_of(plain, function) != []


# The other functions of a bank, in an order in which they work: {m} is a fact, {e} and {f} are
# entities, {t} is a message
CALLS = (
    "create_bank('new', settings => '{{\"replace\": \"key\"}}')",
    "add_fact_type('new', 'rumour')",
    "configure_bank('new', '{{\"log_share\": 0.5}}')",
    "log_session('new', 's')",
    "log_recalls('new', '[]')",
    "import_rows('new', '[]')",
    'calibrate_bank(\'new\', \'{{"model": "m", "low_cosine": 0.3, "high_cosine": 0.7}}\')',
    "drop_bank('new')",
    "reembed_start('x', 'other', 2)",
    "reembed_pending('x')",
    "reembed_store('x', 'other', '{vectors}')",
    "reembed_status('x')",
    "reembed_finish('x', true)",
    "reembed_clean('x')",
    "reembed_start('x', 'm', 2)",
    "reembed_cancel('x')",
    "retain('x', '[{{\"text\": \"Cy cooks\"}}]')",
    "retain_messages('x', '[{{\"text\": \"Hello\"}}]')",
    "explain_recall('x', 'Ana', '[1,0]')",
    "why_not('x', 'Ana', {m})",
    "prepare_recall('x', 'Who is Annie?')",
    "type_hints('x', 'When?')",
    "without_names('x', 'Annie sings')",
    "highlight('x', {m}, 'Atlas')",
    "list_memories('x', during => '[2026-03-05,2026-03-06)')",
    "stored_memories('x', '{{{m}}}')",
    "stored_embeddings('x', '[{{\"text\": \"Ana leads Atlas\"}}]')",
    "memory_history('x', {m})",
    "neighbours('x', {m})",
    "near_copies('x', {m})",
    "path('x', {e}, {f})",
    "message_context('x', {t})",
    "last_session_end('x')",
    "exported_rows('x')",
    "embed_pending('x')",
    "relations_pending('x')",
    "names_pending('x')",
    "embed_store('x', '[]', 'other')",
    "pending_links('x')",
    "link_pending('x')",
    "index_plan('x')",
    "recall_check('x')",
    "recall_stats('x')",
    "bank_options('x')",
    "bank_models('x')",
    "bank_statistics('x')",
    "refresh_statistics('x', true)",
    "snapshot_vocabulary('x')",
    "vocabulary_drift('x')",
    "duplicate_entities('x')",
    "rename_entity('x', {e}, 'Anita')",
    "split_entity('x', {f}, '{{{m}}}', 'Other')",
    "merge_entities('x', {e}, '{{{f}}}')",
    "consolidate('x', false)",
    "unconsolidate('x')",
    "update_memory('x', {m}, '{{\"text\": \"Ana led Atlas\"}}')",
    "unsupersede('x', {m})",
    "supersede('x', {m})",
    "maintain('x')",
    "clone_bank('x', 'copy')",
    "forget_messages('x', '{{{t}}}')",
    "forget_where('x', fact_key => 'none')",
    "forget('x', '{{{m}}}')",
)


def test_every_other_function_of_a_bank_runs(coordinator: Connection) -> None:
    named = {one.partition("(")[0] for one in CALLS} | set(READS)
    m = fill(coordinator, "x")[0]
    e, f = column(
        coordinator, "select entity_id from pgrecall.entity where bank_id = 'x' order by name"
    )
    t = value(coordinator, "select message_id from pgrecall.message where bank_id = 'x'")
    vectors = json.dumps(
        [
            {"memory_id": memory_id, "kind": kind, "ordinal": ordinal, "embedding": [0, 1]}
            for memory_id, kind, ordinal in rows(
                coordinator,
                "select memory_id, kind, ordinal from pgrecall.embedding where bank_id = 'x'",
            )
        ]
    )
    try:
        for one in CALLS:
            statement = one.format(m=m, e=e, f=f, t=t, vectors=vectors)
            coordinator.execute(f"select * from pgrecall.{statement}".encode())
    finally:
        for name in column(coordinator, "select bank_id from pgrecall.bank_overview"):
            if name in ("x", "copy", "new"):
                call(coordinator, "drop_bank", bank=name)

    assert named == set(
        column(
            coordinator,
            "select proname from pg_proc where pronamespace = 'pgrecall'::regnamespace"
            " and proargnames[1] = 'bank'",
        )
    )


def test_signatures_and_comments_are_the_same(coordinator: Connection, plain: Connection) -> None:
    public = (
        "select p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),"
        " p.provolatile, obj_description(p.oid, 'pg_proc')"
        " from pg_proc p where p.pronamespace = 'pgrecall'::regnamespace order by 1"
    )

    assert rows(coordinator, public) == rows(plain, public)


def test_the_driver_works_on_citus(memory: Recall, bank: str) -> None:
    [first, *_] = memory.recall(bank, "who leads Atlas?", timeout=30)
    many = memory.recall_many(bank, ["who leads Atlas?", "what is blue?"])

    assert first.text == many[0].hits[0].text == "Ana leads Atlas."
    assert first.arms.keys() >= {"semantic", "lexical"}
    assert many[1].hits[0].text == "Boats are blue."
    assert [one.is_new for one in memory.retain(bank, ["Ana leads Atlas.", "Cy cooks."])] == [0, 1]
    assert memory.get(bank, first.memory_id).text == first.text
    assert memory.update(bank, first.memory_id, text="Ana led Atlas.").text == "Ana led Atlas."
    assert memory.forget(bank, filter="text = 'Cy cooks.'") == 1
    assert memory.bank_options(bank)["rrf_k"] == 60
    assert {one.status for one in memory.explain(bank, "Atlas")} >= {"ran"}
    assert len([*memory.export(bank)]) > 2
    assert bank in [one.bank_id for one in memory.banks()]


def test_errors_are_those_of_the_worker(coordinator: Connection, memory: Recall) -> None:
    with refused(
        coordinator, "RC001", 'bank "nobody" does not exist', r"select pgrecall\.create_bank"
    ):
        coordinator.execute("select pgrecall.retain('nobody', '[]')")
    with pytest.raises(BankNotFound):
        memory.recall("nobody", "anything")
    with pytest.raises(BankExists):
        memory.create_bank("a")


# Shapes of calls that crash the coordinator, or are not delegated, where the function is called
# that Citus delegates

SHAPES = {
    "a common table expression": f"with h as ({RECALL}) select text from h",
    "a materialised one": f"with h as materialized ({RECALL}) select text from h",
    "a subquery": f"select text from ({RECALL}) as h",
    "a subquery beside another": f"select text from ({RECALL}) as h, (select 1) as one",
    "a condition": f"{RECALL} where score > 0",
    "an argument": RECALL.replace("'a'", "(select min(x) from unnest(array['a', 'b']) as x)"),
    "lateral": RECALL.replace(
        "from ", "from (values ('a')) as v(bank) cross join lateral "
    ).replace("'a', 'Who", "v.bank, 'Who"),
    "a union": f"({RECALL}) union ({RECALL})",
    "exists": f"select 'Ana leads Atlas' where exists ({RECALL})",
    "a join": RECALL.replace("select text", "select h.text")
    + " as h join (values ('a')) as b(bank_id) on true",
    "the list of columns": "select (pgrecall.hybrid_recall('a', 'Who leads Atlas?', '[1,0]')).text",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_call_may_stand_anywhere(coordinator: Connection, shape: str) -> None:
    with commands(coordinator) as asked:
        found = column(coordinator, SHAPES[shape])

    assert "Ana leads Atlas" in found
    assert "FROM pgrecall_internal.hybrid_recall('a'::text" in "".join(asked)


def test_a_call_in_a_view_is_delegated(coordinator: Connection) -> None:
    coordinator.execute(f"create view public.asked as {RECALL}".encode())
    try:
        with commands(coordinator) as asked:
            assert "Ana leads Atlas" in column(coordinator, "select * from public.asked")
        assert len(asked) == 1
    finally:
        coordinator.execute("drop view public.asked")


def test_a_prepared_call_is_delegated_each_time(coordinator: Connection) -> None:
    statement = RECALL.replace("'a'", "%s::text").encode()

    with commands(coordinator) as asked:
        found = [coordinator.execute(statement, ["a"], prepare=True).fetchall() for _ in range(8)]

    assert all(one == found[0] != [] for one in found)
    assert len(asked) == 8


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("hybrid_recall", "'Who?'"),
        ("retain", "'[]'"),
        ("create_bank", None),
        ("bank_statistics", None),
        ("list_memories", None),
        ("forget", "'{1}'"),
    ],
)
@pytest.mark.parametrize("bank", ["null", "parameter"])
def test_no_bank_is_an_error_and_no_crash(
    coordinator: Connection, function: str, arguments: str | None, bank: str
) -> None:
    given = ", ".join(filter(None, ["null" if bank == "null" else "%s::text", arguments]))

    with refused(coordinator, "22004", "bank must not be null", "bank_overview"):
        coordinator.execute(
            f"select * from pgrecall.{function}({given})".encode(),
            None if bank == "null" else [None],
        )


# Transactions


def test_a_transaction_sees_what_it_stored_on_two_workers(
    coordinator: Connection, memory: Recall
) -> None:
    other = other_than_a(coordinator)
    with coordinator.transaction(force_rollback=True):
        for name in ("a", other):
            retain(coordinator, [f"The zyxogram of {name} is in order"], name)
            [found, *_] = call(coordinator, "hybrid_recall", bank=name, query="zyxogram")
            assert found.text == f"The zyxogram of {name} is in order"

    for name in ("a", other):
        assert call(coordinator, "hybrid_recall", bank=name, query="zyxogram") == []


def test_a_savepoint_takes_back_what_came_after_it(coordinator: Connection, bank: str) -> None:
    with coordinator.transaction():
        retain(coordinator, ["One stays"], bank)
        with coordinator.transaction(force_rollback=True):
            retain(coordinator, ["One goes"], bank)

    texts = [row.text for row in call(coordinator, "list_memories", bank=bank)]
    assert ("One stays" in texts, "One goes" in texts) == (True, False)


def test_a_recall_runs_in_a_read_only_transaction(coordinator: Connection) -> None:
    with coordinator.transaction():
        coordinator.execute("set transaction read only")
        assert "Ana leads Atlas" in column(coordinator, RECALL)


# What is about all banks


def test_maintenance_without_a_bank_goes_over_all(coordinator: Connection) -> None:
    other = other_than_a(coordinator)
    for name in ("a", other):
        retain(coordinator, [f"Linked later in {name}"], name, link="deferred")

    while call(coordinator, "maintain"):
        pass

    assert [value(coordinator, f"select pgrecall.pending_links('{b}')") for b in ("a", other)] == [
        0,
        0,
    ]


def test_times_of_recalls_are_those_of_all_banks(coordinator: Connection) -> None:
    banks = ["a", other_than_a(coordinator)]
    for name in banks:
        log_recalls(coordinator, {**SAMPLE, "asked_at": "2100-01-01T00:00:00Z"}, bank=name)

    found = call(coordinator, "recall_stats", since="2099-01-01")

    assert [(one.bank_id, one.samples) for one in found] == [(name, 1) for name in banks]


def test_views_show_all_banks(coordinator: Connection) -> None:
    banks = {"a", other_than_a(coordinator)}

    assert set(column(coordinator, "select bank_id from pgrecall.bank_overview")) >= banks
    assert set(column(coordinator, "select bank_id from pgrecall.fact")) >= banks


def test_an_index_is_planned_built_and_used(coordinator: Connection, bank: str) -> None:
    facts = [
        {"text": f"fact {n}", "embedding": [math.cos(n), math.sin(n), 0, *[0] * (DIMENSIONS - 3)]}
        for n in range(2500)
    ]
    retain(coordinator, facts, bank, link="deferred")
    call(coordinator, "configure_bank", bank=bank, settings={"hnsw_threshold": 500})

    [step] = call(coordinator, "index_plan", bank=bank)
    coordinator.execute(step.statement.encode())
    try:
        semantic = next(
            one
            for one in call(
                coordinator,
                "explain_recall",
                bank=bank,
                query="",
                embedding=facts[0]["embedding"],
                options={"depth": 5},
            )
            if one.arm == "semantic"
        )
        assert (step.action, semantic.status) == ("create", "ran")
        assert semantic.reason == f"by {step.index_name}"
        assert call(coordinator, "index_plan", bank=bank) == []
    finally:
        coordinator.execute(f"drop index pgrecall_internal.{step.index_name}".encode())


# Installing


def test_a_second_migration_changes_nothing(coordinator: Connection) -> None:
    again = schema.migrate(coordinator, citus=True)
    without = schema.migrate(coordinator)

    assert (again.is_changed, again.is_distributed) == (False, True)
    assert (without.is_changed, without.is_distributed) == (False, True)


def test_what_is_distributed_is_not_upgraded_in_place(coordinator: Connection) -> None:
    with coordinator.transaction(force_rollback=True):
        coordinator.execute(
            "create or replace function pgrecall.version() returns text language sql immutable"
            " as $$ select '0.1.0' $$"
        )
        with pytest.raises(InstallError, match="distributed by Citus") as caught:
            schema.migrate(coordinator)

    assert "pgrecall export" in str(caught.value.hint)


def test_an_installed_database_is_distributed_with_its_banks() -> None:
    with distributed_database() as nodes, connect(nodes[0]) as connection:
        connection.execute("create extension vector")
        schema.migrate(connection)
        create(connection, "a")
        retain(connection, ["Ana leads Atlas"], "a")
        log_recalls(connection, bank="a")

        assert schema.migrate(connection, citus=True).is_distributed

        retain(connection, ["Ana leads Boreas"], "a")
        assert sorted(column(connection, RECALL)) == ["Ana leads Atlas", "Ana leads Boreas"]
        assert value(connection, "select pg_relation_size('pgrecall.memory')") == 0


def test_a_database_without_citus_is_not_distributed(database: str) -> None:
    with connect(database) as connection, pytest.raises(InstallError) as caught:
        schema.migrate(connection, citus=True)

    assert "does not have Citus" in str(caught.value)


def test_a_worker_is_not_the_coordinator(nodes: list[str]) -> None:
    with connect(nodes[1]) as worker, pytest.raises(InstallError, match="not the coordinator"):
        citus.distribute(worker)


def test_a_bank_is_cloned_to_another_worker(coordinator: Connection) -> None:
    copy = other_than_a(coordinator) + "copy"
    copied = value(coordinator, "select pgrecall.clone_bank('a', %s::text)", copy)
    try:
        assert copied == value(
            coordinator, "select count(*) from pgrecall.memory where bank_id = 'a'"
        )
        found = [
            {
                row["table"]: row["row"]
                for row in column(coordinator, "select pgrecall.exported_rows(%s::text)", name)
            }
            for name in ("a", copy)
        ]
        assert found[0] == found[1]
    finally:
        call(coordinator, "drop_bank", bank=copy)


def test_a_bank_that_moved_goes_on_with_higher_ids(
    coordinator: Connection, memory: Recall, bank: str
) -> None:
    last = place(coordinator, bank)
    first = value(
        coordinator, "select min(groupid) from pg_dist_node where groupid > 0 and shouldhaveshards"
    )
    if last == first:
        last = value(coordinator, "select max(groupid) from pg_dist_node")
        move(coordinator, bank, last)
        schema.migrate(coordinator, citus=True)
        memory.retain(bank, ["Dora moved."])
    known = max(one.memory_id for one in memory.list_memories(bank))

    move(coordinator, bank, first)
    schema.migrate(coordinator, citus=True)
    [new] = memory.retain(bank, ["A zyxogram came later."])

    assert new.memory_id > known
    assert memory.recall(bank, "zyxogram")[0].text == "A zyxogram came later."
    assert "Ana leads Atlas." in [one.text for one in memory.recall(bank, "Who leads Atlas?")]


def move(connection: Connection, bank: str, group: int) -> None:
    connection.execute(
        "select citus_move_shard_placement(shardid, f.nodename, f.nodeport, t.nodename,"
        " t.nodeport, 'block_writes')"
        " from pg_dist_placement p join pg_dist_node f using (groupid), pg_dist_node t"
        " where shardid = get_shard_id_for_distribution_column('pgrecall.bank', %s::text)"
        " and t.groupid = %s",
        [bank, group],
    )
