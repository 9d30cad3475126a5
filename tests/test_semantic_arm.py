"""The semantic arm against exact cosine similarity, and the indexes it goes through."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import psycopg
import pytest
from psycopg import sql

from banks import Connection, call, counted_scans, create, ids, retain

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


def create_hnsw(connection: Connection, bank: str, dimensions: int) -> None:
    connection.execute(
        sql.SQL(
            "create index hand_made on pgrecall.{} using hnsw"
            " ((embedding::halfvec({})) halfvec_cosine_ops)"
            " where bank_id = {} and fact_type = 'world' and model = ''"
        ).format(sql.Identifier(partition(connection, bank)), dimensions, bank)
    )


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


@pytest.fixture
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


@pytest.mark.parametrize("condition", [None, *(condition for condition, _ in FILTERS)])
def test_a_partial_hnsw_index_is_used_and_finds_nearly_all_there_is(
    connection: Connection, crowd: Any, condition: list[Any] | None
) -> None:
    arguments = {"bank": "b", "embedding": crowd[1], "depth": 15, "filter": condition}
    exact = call(connection, "semantic_arm", **arguments)
    create_hnsw(connection, "b", 8)

    with counted_scans(connection) as scans:
        found = call(connection, "semantic_arm", **arguments)

    assert scans["hand_made"] == 1
    assert not [index for index in scans if index.endswith(BTREE)]
    assert len(set(ids(found)) & set(ids(exact))) >= 0.9 * len(exact)


def test_a_small_bank_is_searched_through_the_btree_of_its_one_partition(
    connection: Connection,
) -> None:
    create(connection)
    retain(connection, facts(vectors(50)))

    with counted_scans(connection) as scans:
        call(connection, "semantic_arm", bank="b", embedding=vectors(1)[0], fact_types=["world"])

    touched = {index: n for index, n in scans.items() if index.startswith("embedding")}
    assert touched == {partition(connection, "b") + BTREE: 1}


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
    create_hnsw(connection, big, 8)
    query = vectors(1, 5, seed=8)[0]

    with counted_scans(connection) as scans:
        found = call(connection, "semantic_arm", bank=small, embedding=query)

    assert scans["hand_made"] == 0
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
