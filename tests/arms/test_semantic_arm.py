"""The semantic arm against exact cosine similarity, and the indexes it goes through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import psycopg
import pytest

from servers import kept_fixture
from sqlcalls import Connection, apply_plan, build_planned, call, counted_scans, create, ids, retain

Array: TypeAlias = Any  # of numpy

EXACT = {"similarity_floor": -1}
BTREE = "_bank_id_fact_type_model_idx"


def vectors(count: int, dimensions: int = 8, seed: int = 7) -> Array:
    return np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float16)


def cosine(rows: Array, query: Array) -> Array:
    products = rows.astype(float) @ query.astype(float)
    return products / (
        np.linalg.norm(rows.astype(float), axis=1) * np.linalg.norm(query.astype(float))
    )


def facts(rows: Array, **fields: Any) -> list[dict[str, Any]]:
    return [
        {"text": f"fact {fields} {n}", "embedding": [float(x) for x in row], **fields}
        for n, row in enumerate(rows)
    ]


def nearest(
    rows: Array, query: Array, memory_ids: list[int], depth: int
) -> list[tuple[int, int, Any]]:
    """Rank exactly, as the arm should: (memory_id, rank, score)."""
    scores = cosine(rows, query)
    best = np.argsort(-scores)[:depth]
    return [
        (memory_ids[at], rank, pytest.approx(scores[at], abs=1e-5))
        for rank, at in enumerate(best, start=1)
    ]


def partition(connection: Connection, bank: str) -> str:
    row = connection.execute(
        "select c.relname from pgrecall.embedding e join pg_class c on c.oid = e.tableoid"
        " where e.bank_id = %s limit 1",
        [bank],
    ).fetchone()
    assert row is not None
    return str(row[0])


def collect_notices(connection: Connection) -> list[Any]:
    """(SQLSTATE, hint) of what is raised from now on."""
    notices: list[Any] = []
    connection.add_notice_handler(
        lambda notice: notices.append((notice.sqlstate, notice.message_hint))
    )
    return notices


@pytest.mark.parametrize("arm", ["semantic_arm", "hypothetical_arm"])
@pytest.mark.parametrize("depth", [1, 7, 300, 400])
def test_equals_the_exact_cosine_order(connection: Connection, arm: str, depth: int) -> None:
    create(connection, settings=EXACT)
    rows, query = vectors(300), vectors(1, seed=8)[0]
    memory_ids = retain(connection, facts(rows), link="deferred")

    found = call(connection, arm, bank="b", embedding=query, depth=depth)

    assert found == nearest(rows, query, memory_ids, depth)


def test_asks_each_fact_type_so_that_none_crowds_out_another(connection: Connection) -> None:
    create(connection, settings=EXACT)
    rows, query = vectors(200), vectors(1, seed=8)[0]
    near = np.tile(query, (150, 1)) + vectors(150, seed=9) / np.float16(50)
    retain(connection, facts(near.astype(np.float16)), link="deferred")
    opinions = retain(connection, facts(rows, fact_type="opinion"), link="deferred")

    one = call(
        connection, "semantic_arm", bank="b", embedding=query, depth=20, fact_types=["opinion"]
    )
    both = call(
        connection,
        "semantic_arm",
        bank="b",
        embedding=query,
        depth=200,
        fact_types=["opinion", "world"],
    )
    others = call(connection, "semantic_arm", bank="b", embedding=query, fact_types=["event"])

    assert one == nearest(rows, query, opinions, 20)
    assert [row for row in ids(both) if row in opinions] == ids(nearest(rows, query, opinions, 50))
    assert others == []


@pytest.mark.parametrize("floor", [-0.5, 0.0, 0.25, 0.6])
def test_returns_nothing_below_the_floor_of_the_bank(connection: Connection, floor: float) -> None:
    create(connection, settings={"similarity_floor": floor})
    rows, query = vectors(200), vectors(1, seed=8)[0]
    retain(connection, facts(rows), link="deferred")

    found = call(connection, "semantic_arm", bank="b", embedding=query, depth=1000)

    assert len(found) == int((cosine(rows, query) >= floor).sum())
    assert found[-1].score >= floor - 1e-6


FILTERS: list[tuple[list[Any], Any]] = [
    (["contains", "tags", ["rare"]], lambda n: n % 100 == 0),
    (["=", "metadata.team", "core"], lambda n: n % 100 == 1),
    ([">=", "metadata.size", 1980], lambda n: n >= 1980),
    (["overlaps", "occurred", ["2026-03-05", "2026-03-06"]], lambda n: n % 100 == 2),
    (["and", ["contains", "tags", ["rare"]], ["<", "confidence", 0.5]], lambda n: n % 200 == 0),
]


@kept_fixture
def crowd(connection: Connection) -> tuple[Array, Array, list[int]]:
    """2,000 facts of which a filter lets 1 % pass; their vectors, a query, their ids."""
    create(connection, settings=EXACT)
    rows, query = vectors(2000), vectors(1, seed=8)[0]
    given = facts(rows)
    for n, fact in enumerate(given):
        fact |= {
            "tags": ["rare"] if n % 100 == 0 else ["usual"],
            "metadata": {"team": "core" if n % 100 == 1 else "other", "size": n},
            "occurred": "2026-03-05" if n % 100 == 2 else "2026-01-01",
            "confidence": 0.1 if n % 200 == 0 else 0.9,
        }
    return rows, query, retain(connection, given, link="deferred")


@pytest.mark.parametrize(("condition", "passes"), FILTERS)
def test_a_filter_that_few_pass_leaves_the_nearest_of_those(
    connection: Connection, crowd: Any, condition: list[Any], passes: Any
) -> None:
    rows, query, memory_ids = crowd
    kept = [n for n in range(len(rows)) if passes(n)]

    found = call(connection, "semantic_arm", bank="b", embedding=query, depth=15, filter=condition)

    assert found == nearest(rows[kept], query, [memory_ids[n] for n in kept], 15)


SIZE = 3000
WIDE = 16


@pytest.fixture(scope="module")
def large(server: Any, installed_template: str) -> Iterator[Any]:
    """Give a bank of 3,000 facts and 200 opinions with an index, never analysed."""
    with (
        server.database(installed_template) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        create(connection, settings={**EXACT, "hnsw_threshold": 1000})
        given = facts(vectors(SIZE, WIDE))
        for n, fact in enumerate(given):
            fact |= {
                "tags": [f"every {every}" for every in (2, 10, 100) if n % every == 0],
                "occurred": "2026-03-05" if n % 100 == 2 else "2026-01-01",
            }
        world = retain(connection, given, link="deferred")
        opinions = retain(
            connection, facts(vectors(200, WIDE, seed=9), fact_type="opinion"), link="deferred"
        )
        apply_plan(connection)
        yield dsn, world, opinions


def within(dsn: str) -> Any:
    return psycopg.connect(dsn)


def report(connection: Connection, **arguments: Any) -> Any:
    """What explain_recall says of the semantic arm."""
    rows = call(connection, "explain_recall", bank="b", query="", arms=["semantic"], **arguments)
    return next(row for row in rows if row.arm == "semantic")


def hnsw(connection: Connection) -> str:
    row = connection.execute(
        "select relname from pg_class where relname like 'embedding\\_hnsw\\_%%'"
    ).fetchone()
    assert row is not None
    return str(row[0])


def overlap(found: list[Any], rows: Array, query: Array, memory_ids: list[int], k: int) -> float:
    best = {memory_ids[n] for n in np.argsort(-cosine(rows, query))[:k]}
    return len(best & set(ids(found[:k]))) / k


@pytest.mark.parametrize("every", [1, 2])
def test_a_large_bank_is_searched_by_its_index_also_when_a_filter_lets_half_pass(
    large: Any, every: int
) -> None:
    dsn, world, _ = large
    rows, query = vectors(SIZE, WIDE), vectors(1, WIDE, seed=8)[0]
    condition = ["contains", "tags", [f"every {every}"]] if every > 1 else None
    arguments = {"embedding": query, "fact_types": ["world"], "filter": condition, "depth": 20}

    with within(dsn) as connection:
        index, sampled = hnsw(connection), partition(connection, "b") + BTREE
        with counted_scans(connection) as scans:
            found = call(connection, "semantic_arm", bank="b", **arguments)
            said = report(connection, **arguments)

    assert said.reason == f"by {index}"
    touched = {name: n for name, n in scans.items() if n and name.startswith("embedding")}
    assert touched == {index: 2, sampled: 2}
    assert set(ids(found)) <= set(world)
    assert overlap(found, rows[::every], query, world[::every], 20) >= 0.95
    assert [row.score for row in found] == sorted((row.score for row in found), reverse=True)


def test_what_has_ended_does_not_displace_others_in_an_index(large: Any) -> None:
    dsn, world, _ = large
    rows, query = vectors(SIZE, WIDE), vectors(1, WIDE, seed=8)[0]
    order = np.argsort(-cosine(rows, query))
    ended, living = order[:150], order[150:250]

    with within(dsn) as connection:
        connection.execute(
            "update pgrecall.memory set valid_from = now() - interval '2 hours',"
            " valid_to = now() - interval '1 hour' where memory_id = any (%s)",
            [[world[n] for n in ended]],
        )
        index = hnsw(connection)
        with counted_scans(connection) as scans:
            found = call(
                connection, "semantic_arm", bank="b", embedding=query, fact_types=["world"]
            )
        said = report(connection, embedding=query, fact_types=["world"])
        connection.rollback()

    assert said.reason == f"by {index}"
    assert scans[index] == 3  # for 120, 240 and 480 vectors
    assert len(found) == 100
    assert len({world[n] for n in living}.intersection(ids(found))) >= 95


SELECTIVE: list[tuple[list[Any], int]] = [
    (["contains", "tags", ["every 100"]], 0),
    (["overlaps", "occurred", ["2026-03-05", "2026-03-06"]], 2),
]


@pytest.mark.parametrize(("condition", "rest"), SELECTIVE)
def test_a_filter_that_few_pass_is_answered_exactly_in_a_large_bank_too(
    large: Any, condition: list[Any], rest: int
) -> None:
    dsn, world, _ = large
    query = vectors(1, WIDE, seed=8)[0]
    arguments = {"embedding": query, "fact_types": ["world"], "filter": condition, "depth": 20}

    with within(dsn) as connection:
        notices = collect_notices(connection)
        found = call(connection, "semantic_arm", bank="b", **arguments)
        said = report(connection, **arguments)

    assert said.reason == "exactly"
    assert found == nearest(vectors(SIZE, WIDE)[rest::100], query, world[rest::100], 20)
    assert notices == []


def test_all_types_are_searched_by_one_scan_and_few_facts_of_a_type_exactly(large: Any) -> None:
    dsn, world, opinions = large
    rows = np.concatenate([vectors(SIZE, WIDE), vectors(200, WIDE, seed=9)])
    query = vectors(1, WIDE, seed=8)[0]
    scanned = []

    with within(dsn) as connection:
        index = hnsw(connection)
        for types in (None, ["opinion"]):
            with counted_scans(connection) as scans:
                found = call(
                    connection, "semantic_arm", bank="b", embedding=query, fact_types=types
                )
            scanned.append((scans[index], found))
        said = [
            report(connection, embedding=query, fact_types=types).reason
            for types in (None, ["opinion"])
        ]

    (once, whole), (never, alone) = scanned
    assert (once, never) == (1, 0)
    assert overlap(whole, rows, query, world + opinions, 20) >= 0.95
    assert set(ids(whole)) & set(opinions)
    assert alone == nearest(rows[SIZE:], query, opinions, 100)
    assert said[0] == f"by {index}"
    assert said[1].startswith("exactly; by index from ")


def test_a_deep_search_of_a_large_bank_is_exact_because_that_is_quicker(large: Any) -> None:
    query = vectors(1, WIDE, seed=8)[0]

    with within(large[0]) as connection:
        said = report(connection, embedding=query, depth=1000)

    assert (said.reason, said.rows) == ("exactly; by index from 20000 vectors on", 1000)


def test_an_index_keeps_as_many_candidates_as_it_is_told(large: Any) -> None:
    query = vectors(1, WIDE, seed=8)[0]
    read = []
    for kept in (1, None, 1000):
        with within(large[0]) as connection:
            said = report(
                connection, embedding=query, depth=20, fact_types=["world"], ef_search=kept
            )
            index = (said.reason or "").removeprefix("by ")
            ((blocks,),) = connection.execute(
                "select pg_stat_get_xact_blocks_fetched(to_regclass('pgrecall_internal.' || %s))",
                [index],
            ).fetchall()
            read.append(blocks)

    few, usual, many = read
    assert 0 < few < usual < many


@pytest.mark.parametrize(
    ("limit", "tag", "warns"),
    [(0, "every 100", True), (0, "every 2", False), (5000, "none", False)],
)
def test_a_search_that_gives_up_short_of_what_passes_the_filter_says_so(
    large: Any, limit: int, tag: str, warns: bool
) -> None:
    with within(large[0]) as connection:
        call(connection, "configure_bank", bank="b", settings={"exact_limit": limit})
        notices = collect_notices(connection)
        found = call(
            connection,
            "semantic_arm",
            bank="b",
            embedding=vectors(1, WIDE, seed=8)[0],
            filter=["contains", "tags", [tag]],
            fact_types=["world"],
            depth=20,
        )
        connection.rollback()

    assert [code for code, _ in notices] == ["01RC2"] * warns
    assert all('"exact_limit"' in hint for _, hint in notices)
    assert (len(found) < 20) == (tag != "every 2")


def test_what_is_below_the_floor_is_not_missed_by_a_filtered_search(large: Any) -> None:
    with within(large[0]) as connection:
        settings = {"exact_limit": 0, "similarity_floor": 0.9}
        call(connection, "configure_bank", bank="b", settings=settings)
        notices = collect_notices(connection)
        call(
            connection,
            "semantic_arm",
            bank="b",
            embedding=vectors(1, WIDE, seed=8)[0],
            filter=["contains", "tags", ["every 10"]],
            fact_types=["world"],
            depth=20,
        )
        connection.rollback()

    assert notices == []


@pytest.mark.parametrize("search", ["binary", "leading"])
def test_a_search_in_two_stages_ranks_by_whole_vectors(large: Any, search: str) -> None:
    dsn, world, _ = large
    settings = {"vector_search": search, "leading_dimensions": 12}
    query = vectors(1, WIDE, seed=8)[0]
    arguments = {"bank": "b", "embedding": query, "fact_types": ["world"], "depth": 20}

    with within(dsn) as connection:
        call(connection, "configure_bank", bank="b", settings=settings)
        exactly = call(connection, "semantic_arm", **arguments)
        build_planned(connection)
        with counted_scans(connection) as scans:
            found = call(connection, "semantic_arm", **arguments)
        connection.rollback()

    assert exactly == nearest(vectors(SIZE, WIDE), query, world, 20)
    assert sum(scans[name] for name in scans if name.startswith("embedding_hnsw_")) == 1
    assert overlap(found, vectors(SIZE, WIDE), query, world, 5) >= (
        0.8 if search == "leading" else 0.2
    )
    scores = dict(zip(world, cosine(vectors(SIZE, WIDE), query), strict=True))
    assert [row.score for row in found] == [
        pytest.approx(scores[row.memory_id], abs=1e-5) for row in found
    ]


def test_a_reader_fenced_into_its_bank_is_answered_by_the_index_too(large: Any) -> None:
    arguments = {"bank": "b", "embedding": vectors(1, WIDE, seed=8)[0], "depth": 20}

    with within(large[0]) as connection:
        free = call(connection, "semantic_arm", **arguments)
        # Before the grant: autovacuum holds one lock and waits for the other.
        for table in ("bank", "fact_type", "memory", "embedding"):
            connection.execute(f"lock table pgrecall.{table} in access exclusive mode")
        connection.execute("create role b")
        connection.execute("grant usage on schema pgrecall, pgrecall_internal to b")
        connection.execute("grant select on all tables in schema pgrecall to b")
        for table in ("bank", "fact_type", "memory", "embedding"):
            connection.execute(f"alter table pgrecall.{table} enable row level security")
            connection.execute(
                f"create policy own on pgrecall.{table} using (bank_id = current_user)"
            )
        connection.execute("set local role b")
        fenced = call(connection, "semantic_arm", **arguments)
        said = report(connection, embedding=arguments["embedding"], depth=20)
        connection.rollback()

    assert fenced == free
    assert said.reason.startswith("by embedding_hnsw_")


def test_a_small_bank_is_searched_through_the_btree_of_its_one_partition(
    connection: Connection,
) -> None:
    create(connection)
    retain(connection, facts(vectors(50)))

    with counted_scans(connection) as scans:
        call(connection, "semantic_arm", bank="b", embedding=vectors(1)[0], fact_types=["world"])

    touched = {index: n for index, n in scans.items() if index.startswith("embedding")}
    assert touched == {partition(connection, "b") + BTREE: 2}  # the search and the sample


@pytest.mark.parametrize("how", ["superseded", "not yet known", "has many questions"])
def test_what_cannot_be_returned_does_not_displace_what_can(
    connection: Connection, how: str
) -> None:
    create(connection, settings={"similarity_floor": 0})
    query = [1.0, 0.0]
    if how == "has many questions":
        near = [{"text": "near", "questions": [{"text": "?", "embedding": query}] * 700}]
        retain(connection, [{"text": "pins", "embedding": query}, *near])
    else:
        retain(
            connection,
            [{"text": f"near {n}", "embedding": query} for n in range(700)],
            link="deferred",
        )
        ends = "valid_from" if how == "not yet known" else "valid_to"
        connection.execute(f"update pgrecall.memory set {ends} = now() + interval '1 day'")
    far = retain(connection, [{"text": f"far {n}", "embedding": [1, 1]} for n in range(3)])

    as_of = connection.execute(
        "select now() + case when %s = 'superseded' then interval '2 days' else '1 hour' end", [how]
    ).fetchall()[0][0]
    found = call(connection, "semantic_arm", bank="b", embedding=query, depth=5, as_of=as_of)

    assert [row.memory_id for row in found if row.score < 0.9] == far[::-1]


def test_as_of_returns_what_was_held_true_then(connection: Connection) -> None:
    create(connection)
    old, new = retain(
        connection,
        [
            {"text": text, "embedding": [1, 0], "mentioned_at": at}
            for text, at in [("old", "2026-01-01"), ("new", "2026-02-01")]
        ],
    )
    call(connection, "supersede", bank="b", memory_id=old, superseded_by=new, at="2026-02-01")

    found = {
        as_of: ids(call(connection, "semantic_arm", bank="b", embedding=[1, 0], as_of=as_of))
        for as_of in ["2025-12-31", "2026-01-31", "2026-02-01"]
    }

    assert found == {"2025-12-31": [], "2026-01-31": [old], "2026-02-01": [new]}


def test_a_memory_counts_once_by_its_best_question(connection: Connection) -> None:
    create(connection, settings=EXACT)
    questions = [{"text": "?", "embedding": e} for e in ([0, 1], [1, 0.1], [-1, 0])]
    asked, plain = retain(
        connection,
        [
            {"text": "asked", "embedding": [0, 1], "questions": questions},
            {"text": "plain", "embedding": [1, 0.5]},
        ],
    )

    found = call(connection, "semantic_arm", bank="b", embedding=[1, 0])

    best = [cosine(np.array([row]), np.array([1, 0]))[0] for row in ([1, 0.1], [1, 0.5])]
    assert found == [
        (asked, 1, pytest.approx(best[0], abs=1e-4)),
        (plain, 2, pytest.approx(best[1], abs=1e-4)),
    ]


@pytest.mark.parametrize("how", ["exactly", "with a filter", "by index", "where it is named"])
def test_a_long_memory_is_found_by_the_part_that_is_near(connection: Connection, how: str) -> None:
    """A part loses 0.05 to a text, so that many parts are not near by chance."""
    create(connection, settings={**EXACT, "hnsw_threshold": 100 if how == "by index" else 10_000})
    far = [-0.9, 0.1, 0.1]
    parts = [[0, 1, 0], [1, 0.3, 0], [-1, 0, 0]]  # the second with a cosine of 0.958
    better, long, worse, other = retain(
        connection,
        [
            {"text": "better", "embedding": [1, 0.4, 0], "entities": ["Ana"]},  # 0.928
            {"text": "long", "embedding": far, "parts": parts, "entities": ["Ana"]},
            {"text": "worse", "embedding": [1, 0.5, 0], "entities": ["Ana"]},  # 0.894
            {"text": "other", "embedding": far, "entities": ["Ana"]},
        ],
    )
    retain(connection, facts(vectors(150, 3) * [0.1, 1, 1] - [2, 0, 0]), link="deferred")
    asked: dict[str, Any] = {"embedding": [1, 0, 0]}
    if how == "by index":
        assert build_planned(connection) != []
    if how == "with a filter":
        asked["filter"] = "memory_id > 0"
    if how == "where it is named":
        asked |= {"query": "Ana", "options": {"arms": ["semantic"]}, "top_k": 4}
        named = [row.memory_id for row in call(connection, "hybrid_recall", bank="b", **asked)]
        assert named[:3] == [better, long, worse]
        return

    found = call(connection, "semantic_arm", bank="b", **asked)

    scores = [cosine(np.array([row]), np.array([1, 0, 0]))[0] for row in ([1, 0.4, 0], parts[1])]
    assert [row.memory_id for row in found[:3]] == [better, long, worse]
    assert [row.score for row in found[:2]] == pytest.approx(
        [scores[0], scores[1] - 0.05], abs=1e-3
    )
    assert ids(found).count(long) == 1
    assert other not in ids(found[:3])


@pytest.mark.parametrize(
    "expression",
    [
        "%s::vector",
        "%s::halfvec",
        "pgrecall.to_embedding(translate(%s, '[]', '{}')::real[])",
        "pgrecall.to_embedding(translate(%s, '[]', '{}')::float8[]::real[])",
    ],
)
def test_takes_vectors_of_every_type(connection: Connection, expression: str) -> None:
    create(connection)
    (memory,) = retain(connection, [{"text": "a", "embedding": [0.6, 0.8]}])

    found = connection.execute(
        f"select memory_id, rank, score from pgrecall.semantic_arm('b', {expression})",
        ["[0.6,0.8]"],
    ).fetchall()

    assert found == [(memory, 1, pytest.approx(1))]


def test_banks_of_different_dimensions_stand_side_by_side(connection: Connection) -> None:
    sizes = [2, 3, 17, 384, 4000]
    stored = {}
    for size in sizes:
        create(connection, f"b{size}", settings=EXACT)
        rows = vectors(5, size)
        stored[size] = rows, retain(connection, facts(rows), bank=f"b{size}")

    for size, (rows, memory_ids) in stored.items():
        query = vectors(1, size, seed=8)[0]
        found = call(connection, "semantic_arm", bank=f"b{size}", embedding=query)
        assert found == nearest(rows, query, memory_ids, 5)


def test_a_hnsw_index_of_one_bank_leaves_others_of_its_partition_alone(
    connection: Connection,
) -> None:
    big = "big"
    create(connection, big, settings=EXACT)
    retain(connection, facts(vectors(500)), bank=big, link="deferred")
    for small in (f"b{n}" for n in range(200)):
        create(connection, small, settings=EXACT)
        rows = vectors(20, 5)
        memory_ids = retain(connection, facts(rows), bank=small)
        if partition(connection, small) == partition(connection, big):
            break
    call(connection, "configure_bank", bank=big, settings={"hnsw_threshold": 100})
    (index,) = build_planned(connection)
    query = vectors(1, 5, seed=8)[0]

    with counted_scans(connection) as scans:
        found = call(connection, "semantic_arm", bank=small, embedding=query)

    assert scans[index] == 0
    assert found == nearest(rows, query, memory_ids, 20)


@pytest.mark.parametrize("embedding", [None, [1, 0]])
def test_finds_nothing_without_vectors(
    connection: Connection, embedding: list[float] | None
) -> None:
    create(connection, embedding_dimensions=2)
    retain(connection, ["no vector"])

    assert call(connection, "semantic_arm", bank="b", embedding=embedding) == []


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ({"embedding": [1, 0, 0]}, "RC004", "embedding: expected 2 dimensions, not 3"),
        ({"embedding": [0, 0]}, "RC006", "embedding: unusable embedding: all elements are zero"),
        (
            {"model": "other"},
            "RC005",
            'bank "b" is embedded with model "mini", not "other"',
        ),
        ({"fact_types": ["rumour"]}, "RC008", 'bank "b" has no fact type "rumour"'),
        ({"depth": 0}, "22023", "depth must be between 1 and 10000, not 0"),
        ({"filter": ["=", "nope", 1]}, "RC011", 'filter: unknown column "nope"'),
        ({"bank": "c"}, "RC001", 'bank "c" does not exist'),
    ],
)
def test_bad_input_is_an_error_that_says_what(
    connection: Connection, arguments: dict[str, Any], code: str, message: str
) -> None:
    create(connection)
    retain(connection, [{"text": "a", "embedding": [1, 0]}], model="mini")

    with pytest.raises(psycopg.Error) as caught:
        call(connection, "semantic_arm", **{"bank": "b", "embedding": [1, 0], **arguments})

    assert (caught.value.sqlstate, caught.value.diag.message_primary) == (code, message)
    assert caught.value.diag.message_hint


@pytest.mark.parametrize(
    ("model", "copies", "is_kept"),
    [("pgrecall-small-2", 1, False), ("pgrecall-small-2", 12, False), ("another", 1, True)],
)
def test_vectors_near_all_questions_are_no_hits(
    connection: Connection, model: str, copies: int, is_kept: bool
) -> None:
    """Many of them in the sample do not move the bound. Of another model nobody knows what its
    questions have in common."""
    (text,) = connection.execute(
        "select pgrecall_internal._question_direction('pgrecall-small-2', 768)::text"
    ).fetchone() or ("",)
    direction = np.array(json.loads(text)) / np.linalg.norm(json.loads(text))
    answers = vectors(60, 768)
    questions = [0.7 * one / np.linalg.norm(one) + 0.5 * direction for one in answers.astype(float)]
    hub = np.mean(questions, axis=0)
    create(connection)
    stored = retain(connection, facts([*[hub] * copies, *answers]), model=model)
    hubs, honest = set(stored[:copies]), stored[copies:]

    for place, question in enumerate(questions):
        found = ids(
            call(connection, "semantic_arm", bank="b", embedding=question.tolist(), model=model)
        )
        assert found[:1] == honest[place : place + 1]
        assert bool(hubs & set(found)) == is_kept


@pytest.mark.parametrize(("count", "is_known"), [(49, False), (50, True), (400, True)])
def test_hits_say_what_a_quarter_of_the_bank_has(
    connection: Connection, count: int, is_known: bool
) -> None:
    rows = vectors(count)
    query = vectors(1, seed=8)[0]
    create(connection, settings={"similarity_floor": -1})
    retain(connection, facts(rows), link="deferred")

    hits = call(
        connection, "arm_hits", bank="b", query="", embedding=query.tolist(), arms=["semantic"]
    )

    (background,) = {hit.background for hit in hits}
    if is_known:
        sample = np.quantile(cosine(rows, query)[:100], 0.75)
        assert background == pytest.approx(sample, abs=1e-3)
    else:
        assert background is None


def test_a_background_is_not_below_the_floor(connection: Connection) -> None:
    rows = vectors(60)
    create(connection, settings={"similarity_floor": 0.5})
    retain(connection, facts(rows), link="deferred")

    hits = call(
        connection, "arm_hits", bank="b", query="", embedding=rows[0].tolist(), arms=["semantic"]
    )

    assert {hit.background for hit in hits} == {0.5}


def test_a_background_is_of_the_types_that_are_asked_for(connection: Connection) -> None:
    create(connection, settings={"similarity_floor": -1})
    retain(connection, facts(vectors(30), fact_type="event") + facts(vectors(60)), link="deferred")

    hits = call(
        connection, "arm_hits", bank="b", query="", embedding=vectors(1, seed=8)[0].tolist(),
        fact_types=["event"], arms=["semantic"],
    )  # fmt: skip

    assert {hit.background for hit in hits} == {None}
