"""What index_plan says is due, and that doing it leaves nothing due; what recall_check measures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest

from servers import Server
from sqlcalls import Connection, apply_plan, build_planned, call, create, retain

HOSTILE = """it's a "bank" \\ %s {fact_type} $1; drop table x -- ü"""
SETTINGS = {"hnsw_threshold": 40, "similarity_floor": -1}


@pytest.fixture
def committed(database: str) -> Iterator[Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


def fill(connection: Connection, bank: str = "b", count: int = 50, **settings: Any) -> list[int]:
    create(connection, bank, settings={**SETTINGS, **settings})
    return add(connection, bank, count)


def add(connection: Connection, bank: str, count: int, **fields: Any) -> list[int]:
    rows = np.random.default_rng(len(bank)).normal(size=(count, 8))
    facts = [
        {"text": f"{fields} {n}", "embedding": [float(x) for x in row], **fields}
        for n, row in enumerate(rows)
    ]
    return retain(connection, facts, bank=bank, link="deferred")


def plan(connection: Connection, bank: str | None = None) -> list[tuple[Any, ...]]:
    return [(row.bank_id, row.action) for row in due(connection, bank)]


def due(connection: Connection, bank: str | None = None) -> list[Any]:
    return call(connection, "index_plan", bank=bank)


def indexes(connection: Connection) -> dict[str, bool]:
    """HNSW indexes, and whether each is valid."""
    rows = connection.execute(
        "select c.relname, x.indisvalid from pg_index x join pg_class c on c.oid = x.indexrelid"
        " join pg_am a on a.oid = c.relam where a.amname = 'hnsw' order by 1"
    )
    return dict(rows.fetchall())


def test_an_index_is_due_from_the_threshold_on(connection: Connection) -> None:
    fill(connection, count=39)
    before = plan(connection)

    add(connection, "b", 1, fact_type="opinion")

    assert before == []
    assert plan(connection) == [("b", "create")]


@pytest.mark.parametrize("bank", ["b", HOSTILE, "x" * 200])
def test_doing_what_is_due_leaves_nothing_due(committed: Connection, bank: str) -> None:
    fill(committed, bank)
    (row,) = due(committed)

    assert apply_plan(committed) == ["create"]

    assert indexes(committed) == {row.index_name: True}
    assert due(committed) == []
    assert row.estimated_bytes > 0
    assert row.estimated_seconds > 0
    assert row.reason == "50 vectors, hnsw_threshold is 40"


def test_psql_runs_the_plan(committed: Connection, database: str, server: Server) -> None:
    fill(committed, HOSTILE)
    fill(committed, "b")

    server.run(
        "psql",
        *("-X", "-v", "ON_ERROR_STOP=1", "-d", database, "-f", "-"),
        text="select statement from pgrecall.index_plan() \\gexec",
    )

    assert list(indexes(committed).values()) == [True, True]
    assert due(committed) == []


def test_a_plan_can_be_for_one_bank(connection: Connection) -> None:
    fill(connection, "a")
    fill(connection, "b")

    assert plan(connection, "b") == [("b", "create")]
    assert plan(connection) == [("a", "create"), ("b", "create")]
    with pytest.raises(psycopg.Error) as caught:
        due(connection, "c")
    assert caught.value.sqlstate == "RC001"


def test_an_interrupted_build_is_dropped_and_begun_again(committed: Connection) -> None:
    fill(committed)
    apply_plan(committed)
    committed.execute(
        "update pg_index set indisvalid = false where indexrelid = %s::regclass",
        [f"pgrecall_internal.{next(iter(indexes(committed)))}"],
    )

    assert [row.reason for row in due(committed)] == ["a build was interrupted"] * 2
    assert apply_plan(committed) == ["drop", "create"]
    assert list(indexes(committed).values()) == [True]
    assert due(committed) == []


@pytest.mark.parametrize(("left", "actions"), [(20, []), (19, ["drop"])])
def test_a_bank_that_shrinks_below_half_the_threshold_loses_its_index(
    committed: Connection, left: int, actions: list[str]
) -> None:
    memory_ids = fill(committed)
    apply_plan(committed)

    call(committed, "forget", bank="b", memory_ids=memory_ids[left:])

    assert apply_plan(committed, "b") == actions
    assert len(indexes(committed)) == 1 - len(actions)
    assert due(committed) == []


def test_a_dropped_bank_loses_its_index(committed: Connection) -> None:
    fill(committed, HOSTILE)
    apply_plan(committed)

    call(committed, "drop_bank", bank=HOSTILE)

    assert [(row.bank_id, row.reason) for row in due(committed)] == [(None, "the bank is gone")]
    assert apply_plan(committed) == ["drop"]
    assert indexes(committed) == {}


def test_no_index_tells_the_names_of_banks(committed: Connection) -> None:
    """Everybody may read pg_indexes."""
    create(committed, "tenant-zq9", settings=SETTINGS)
    committed.execute("select pgrecall.add_fact_type('tenant-zq9', 'kind_zq9')")
    facts = [{"text": f"{n}", "embedding": [n, 1], "fact_type": "kind_zq9"} for n in range(50)]
    retain(committed, facts, bank="tenant-zq9", model="model-zq9")
    apply_plan(committed)

    catalog = committed.execute(
        "select c.relname, i.indexdef, s.attname, obj_description(c.oid)"
        " from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " left join pg_indexes i on i.indexname = c.relname and i.schemaname = n.nspname"
        " left join pg_attribute s on s.attrelid = c.oid"
        " where n.nspname in ('pgrecall', 'pgrecall_internal')"
    ).fetchall()

    assert len(indexes(committed)) == 1
    assert "zq9" not in str(catalog)


@pytest.mark.parametrize("done", range(4))
def test_other_settings_mean_a_new_index_while_the_old_one_serves(
    committed: Connection, done: int
) -> None:
    fill(committed)
    apply_plan(committed)
    (name,) = indexes(committed)
    call(committed, "configure_bank", bank="b", settings={"hnsw_m": 8})

    steps = due(committed)
    for row in steps[:done]:  # interrupted there
        committed.execute(row.statement.encode())
    rest = apply_plan(committed)

    assert [row.action for row in steps] == ["create", "drop", "rename"]
    assert rest == ["create", "drop", "rename"][done:]
    assert indexes(committed) == {name: True}
    assert due(committed) == []


@pytest.mark.parametrize("search", ["binary", "leading"])
def test_another_way_to_search_means_another_index(committed: Connection, search: str) -> None:
    fill(committed)
    apply_plan(committed)
    (name,) = indexes(committed)

    settings = {"vector_search": search, "leading_dimensions": 4}
    call(committed, "configure_bank", bank="b", settings=settings)

    assert apply_plan(committed) == ["create", "drop"]
    assert list(indexes(committed).values()) == [True]
    assert name not in indexes(committed)
    assert due(committed) == []


def test_a_bank_that_row_security_hides_is_not_taken_for_gone(committed: Connection) -> None:
    fill(committed, "a")
    apply_plan(committed)

    with committed.transaction(force_rollback=True):
        # Before the grant: autovacuum holds one lock and waits for the other.
        committed.execute("lock table pgrecall.bank in access exclusive mode")
        committed.execute(
            "create role pgrecall_fenced;"
            " grant usage on schema pgrecall, pgrecall_internal to public"
        )
        committed.execute("grant select on all tables in schema pgrecall to pgrecall_fenced")
        committed.execute("alter table pgrecall.bank enable row level security")
        committed.execute("set local role pgrecall_fenced")
        seen = due(committed)

    assert seen == []


def test_a_bank_counts_its_own_vectors_only(connection: Connection) -> None:
    for n in range(5):
        fill(connection, f"b{n}", 30)

    assert due(connection) == []


def test_settings_out_of_range_are_refused(connection: Connection) -> None:
    create(connection)

    for settings in (
        {"hnsw_threshold": 0},
        {"hnsw_m": 1},
        {"hnsw_ef_construction": 31},
        {"ef_search": 1001},
        {"vector_search": "fast"},
        {"leading_dimensions": 0},
        {"exact_limit": -1},
    ):
        with pytest.raises(psycopg.Error) as caught, connection.transaction():
            call(connection, "configure_bank", bank="b", settings=settings)
        assert caught.value.sqlstate == "22023"


@pytest.mark.slow
def test_recall_check_tells_a_good_index_from_a_bad_one(connection: Connection) -> None:
    fill(connection, count=2500)
    add(connection, "b", 30, fact_type="opinion")
    without = call(connection, "recall_check", bank="b", sample=10, depth=20)
    build_planned(connection)
    good = call(connection, "recall_check", bank="b", sample=10, depth=20)

    assert [(r.fact_type, r.path, r.questions, r.recall) for r in without] == [
        ("opinion", "exactly", 10, 1),
        ("world", "exactly", 10, 1),
    ]
    assert good[1].path.startswith("by embedding_hnsw_")
    assert good[1].recall >= 0.95

    (name,) = indexes(connection)
    connection.execute(f"drop index pgrecall_internal.{name}")
    settings = {"hnsw_m": 2, "hnsw_ef_construction": 4}
    call(connection, "configure_bank", bank="b", settings=settings)
    build_planned(connection)
    bad = call(connection, "recall_check", bank="b", sample=10, depth=20)

    assert bad[1].recall < good[1].recall


def test_recall_check_of_a_bank_without_vectors_measures_nothing(connection: Connection) -> None:
    create(connection)

    assert call(connection, "recall_check", bank="b") == []


def test_an_index_of_another_release_is_replaced(committed: Connection) -> None:
    fill(committed)
    (row,) = due(committed)
    (kind,) = committed.execute("select hashtextextended('world', 0)").fetchall()[0]
    old = row.statement.replace(row.index_name, "embedding_hnsw_old").replace(
        " and fact_type <> ''", ""
    )
    old = old.replace(
        " and hashtextextended(model",
        f" and hashtextextended(fact_type, 0) = '{kind}'::bigint and hashtextextended(model",
    )
    committed.execute(old.encode())

    step = due(committed)[-1]
    assert (step.bank_id, step.fact_type, step.action) == ("b", "world", "drop")
    assert step.reason == "the bank searches in another way now"
    assert apply_plan(committed) == ["create", "drop"]
    assert indexes(committed) == {row.index_name: True}
