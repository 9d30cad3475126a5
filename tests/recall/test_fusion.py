"""rrf(), score_rrf(), linear() and gates against references of a few lines."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql
from psycopg.rows import namedtuple_row

from sqlcalls import Connection, refused

ARMS = ["semantic", "lexical", "graph", "key"]
FUSIONS = ["rrf", "score_rrf", "linear"]
Via = dict[str, list[Any]]
Hit = (
    tuple[str, int, int, float]
    | tuple[str, int, int, float, float]  # the last: named
    | tuple[str, int, int, float, None, Via]
    | tuple[str, int, int, float, None, None, float]  # the last: background
)


def fused(connection: Connection, function: str, hits: list[Hit], **options: Any) -> list[Any]:
    if function == "linear":
        options.pop("k", None)
    statement = sql.SQL(
        "select * from pgrecall.{}(array(select (h ->> 0, (h ->> 1)::bigint, (h ->> 2)::integer,"
        " (h ->> 3)::double precision, (h ->> 4)::real, h -> 5,"
        " (h ->> 6)::double precision)::pgrecall.arm_hit"
        " from jsonb_array_elements(%(hits)s::jsonb) as h){})"
    ).format(
        sql.Identifier(function),
        sql.SQL("").join(
            sql.SQL(", {} => {}").format(sql.Identifier(name), sql.Placeholder(name))
            for name in options
        ),
    )
    values = {
        name: json.dumps(v) if name in ("weights", "options") and v is not None else v
        for name, v in options.items()
    }
    with connection.cursor(row_factory=namedtuple_row) as cursor:
        return cursor.execute(statement, {"hits": json.dumps(hits), **values}).fetchall()


def reference(
    hits: list[Hit], weights: dict[str, float], k: int, fusion: str
) -> dict[int, dict[str, float]]:
    """Contribution of each arm to each memory that gets any."""
    found: dict[int, dict[str, float]] = defaultdict(dict)
    for arm, memory, rank, score, *_ in hits:
        scores = [hit[3] for hit in hits if hit[0] == arm]
        best, worst = max(scores), min(scores)
        share = 1.0
        certain = max(best, 1) if arm == "graph" else best
        if fusion == "score_rrf" and certain > 0:
            share = max(score, 0) / certain
        elif fusion == "linear" and best > worst:
            share = (score - worst) / (best - worst)
        if weight := weights.get(arm, 1):
            found[memory][arm] = weight * share / (1 if fusion == "linear" else k + rank)
    return found


@st.composite
def rankings(draw: st.DrawFn) -> list[Hit]:
    hits: list[Hit] = []
    for arm in draw(st.lists(st.sampled_from(ARMS), unique=True)):
        memories = draw(st.lists(st.integers(1, 9), unique=True, max_size=8))
        values = [draw(st.integers(-20, 200)) / 8 for _ in memories]
        for rank, (memory, score) in enumerate(
            zip(memories, sorted(values, reverse=True), strict=True), start=1
        ):
            hits.append((arm, memory, rank, score))
    return hits


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    hits=rankings(),
    weights=st.dictionaries(st.sampled_from(ARMS), st.sampled_from([0, 0.5, 1, 3])),
    k=st.sampled_from([1, 20, 60, 1000]),
    function=st.sampled_from(FUSIONS),
)
def test_equals_the_formula(
    connection: Connection, hits: list[Hit], weights: dict[str, float], k: int, function: str
) -> None:
    rows = fused(connection, function, hits, weights=weights, k=k)

    expected = reference(hits, weights, k, function)
    contributions = {
        row.memory_id: {arm: part["contribution"] for arm, part in row.arms.items()} for row in rows
    }
    assert contributions.keys() == expected.keys()
    for memory, parts in expected.items():
        assert contributions[memory] == pytest.approx(parts, rel=1e-12)
    given_hits = {(memory, arm): (rank, score) for arm, memory, rank, score, *_ in hits}
    for row in rows:
        assert row.score == pytest.approx(sum(contributions[row.memory_id].values()), rel=1e-12)
        assert row.rank == 1 + sum(other.score > row.score for other in rows)
        for arm, part in row.arms.items():
            assert (part["rank"], part["score"]) == given_hits[row.memory_id, arm]
    assert rows == sorted(rows, key=lambda row: (-row.score, -row.memory_id))


def test_a_weight_is_one_and_k_sixty_unless_said(connection: Connection) -> None:
    hits: list[Hit] = [("key", 1, 1, 9.0), ("key", 2, 2, 3.0)]

    plain = {row.memory_id: row.score for row in fused(connection, "rrf", hits)}
    by_score = {row.memory_id: row.score for row in fused(connection, "score_rrf", hits)}

    assert plain == pytest.approx({1: 1 / 61, 2: 1 / 62})
    assert by_score == pytest.approx({1: 1 / 61, 2: 1 / 3 / 62})


@pytest.mark.parametrize("function", FUSIONS)
def test_equal_scores_share_a_rank_and_the_next_is_skipped(
    connection: Connection, function: str
) -> None:
    hits: list[Hit] = [("key", 1, 1, 5.0), ("graph", 2, 1, 7.0), ("key", 3, 2, 4.0)]

    rows = fused(connection, function, hits)

    assert [(row.memory_id, row.rank) for row in rows] == [(2, 1), (1, 1), (3, 3)]


@pytest.mark.parametrize("function", FUSIONS)
def test_an_arm_of_weight_zero_introduces_nothing(connection: Connection, function: str) -> None:
    hits: list[Hit] = [("key", 1, 1, 5.0), ("graph", 1, 2, 7.0), ("graph", 2, 1, 7.0)]

    rows = fused(connection, function, hits, weights={"graph": 0})

    assert [(row.memory_id, list(row.arms)) for row in rows] == [(1, ["key"])]


@pytest.mark.parametrize("function", [*FUSIONS, "fuse"])
def test_the_path_that_led_to_a_memory_is_told_by_its_arm_alone(
    connection: Connection, function: str
) -> None:
    via: Via = {"entities": ["Ana", "Bo"], "relations": ["mentors"], "facts": [7]}
    hits: list[Hit] = [
        *(("graph", 1, 1, 7.0, None, via), ("graph", 2, 2, 6.0)),
        ("key", 1, 1, 5.0),
    ]

    rows = fused(connection, function, hits)

    told = {(row.memory_id, arm): part for row in rows for arm, part in row.arms.items()}
    assert told.keys() == {(1, "graph"), (2, "graph"), (1, "key")}
    assert told[1, "graph"]["via"] == via
    assert [hit for hit, part in told.items() if "via" in part] == [(1, "graph")]


@pytest.mark.parametrize("function", FUSIONS)
@pytest.mark.parametrize("options", [{}, {"weights": None}])
def test_nothing_in_is_nothing_out_and_no_weights_are_ones(
    connection: Connection, function: str, options: dict[str, Any]
) -> None:
    one: list[Hit] = [("key", 1, 1, 1.0)]

    assert fused(connection, function, [], weights={}) == []
    assert [row.score for row in fused(connection, function, one, **options)] == [
        1 if function == "linear" else pytest.approx(1 / 61)
    ]


def test_an_arm_whose_scores_are_all_negative_counts_by_rank(connection: Connection) -> None:
    hits: list[Hit] = [("semantic", 1, 1, -0.1), ("semantic", 2, 2, -0.2)]

    assert {row.memory_id: row.score for row in fused(connection, "score_rrf", hits)} == (
        pytest.approx({1: 1 / 61, 2: 1 / 62})
    )


def test_linear_spreads_the_scores_of_an_arm_whatever_the_ranks(connection: Connection) -> None:
    hits: list[Hit] = [
        *(("key", 1, 1, 8.0), ("key", 2, 2, 7.0), ("key", 3, 3, 4.0)),
        ("graph", 2, 1, 0.5),
    ]

    rows = fused(connection, "linear", hits, weights={"graph": 0.2})

    assert {row.memory_id: row.score for row in rows} == pytest.approx({1: 1, 2: 0.95, 3: 0})


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        ("rrf", {"k": -1}, "k must be between 1 and 10000, not -1"),
        ("score_rrf", {"k": 0}, "k must be between 1 and 10000, not 0"),
        ("rrf", {"k": None}, "k must be between 1 and 10000, not null"),
        ("rrf", {"weights": [1]}, "weights must be an object, not [1]"),
        (
            "linear",
            {"weights": {"mine": -1}},
            'weight of arm "mine" must be a number from 0 to 1000000, not -1',
        ),
    ],
)
def test_a_fusion_refuses_what_it_cannot_reckon_with(
    connection: Connection, function: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        fused(connection, function, [("mine", 1, 1, 1.0)], **options)

    assert (caught.value.sqlstate, caught.value.diag.message_primary) == ("22023", message)
    assert caught.value.diag.message_hint


@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    hits=rankings(),
    gates=st.dictionaries(st.sampled_from(ARMS), st.sampled_from([0, 0.5, 4, 12.5, 100])),
)
def test_gates_leave_out_what_stays_below_and_never_all(
    connection: Connection, hits: list[Hit], gates: dict[str, float]
) -> None:
    rows = fused(connection, "fuse", hits, options={"gates": gates, "fusion": "rrf"})

    best = {arm: max(hit[3] for hit in hits if hit[0] == arm) for arm in {hit[0] for hit in hits}}
    nearness = {arm: best[arm] / gates[arm] if gates.get(arm) else math.inf for arm in best}
    below = {arm for arm, share in nearness.items() if share < 1}
    if below and below == set(best):
        below.remove(min(below, key=lambda arm: (-nearness[arm], arm)))
    assert {arm for row in rows for arm in row.arms} == best.keys() - below


@pytest.mark.parametrize("fusion", FUSIONS)
def test_fuse_is_the_fusion_that_is_asked_for(connection: Connection, fusion: str) -> None:
    hits: list[Hit] = [("key", 1, 1, 8.0), ("key", 2, 2, 7.0), ("graph", 2, 1, 0.5)]
    weights = {"key": 2, "graph": 0.5}
    k = {} if fusion == "linear" else {"k": 7}

    rows = fused(
        connection, "fuse", hits, options={"fusion": fusion, "rrf_k": 7, "weights": weights}
    )

    assert rows == fused(connection, fusion, hits, weights=weights, **k)


@pytest.mark.parametrize("boost", [0, 0.5, 3])
def test_who_is_named_counts_more_by_how_sure_that_is(connection: Connection, boost: float) -> None:
    hits: list[Hit] = [("key", 1, 1, 8.0, 0.5), ("key", 2, 2, 8.0)]

    rows = fused(connection, "fuse", hits, options={"named_boost": boost, "weights": {"key": 1}})

    assert {row.memory_id: row.score for row in rows} == pytest.approx(
        {1: (1 + boost * 0.5) / 61, 2: 1 / 62}
    )


@pytest.mark.parametrize(
    ("background", "eleventh", "doubt", "share"),
    [
        (0.36, 1.0, 1, 1.0),  # the best, 0.9, stands out by 0.6 of itself
        (0.63, 1.0, 1, 0.0),  # it does by 0.3 of itself
        (0.495, 1.0, 1, 0.5),
        (0.63, 3.0, 1, 0.0),  # words do by 0.7 of themselves
        (0.63, 5.0, 1, 1.0),  # they do by 0.5 of themselves
        (0.63, 4.0, 1, 0.5),
        (0.63, 1.0, 0.75, 0.25),
        (0.63, 1.0, 0, 1.0),
        (None, 1.0, 1, 1.0),
    ],
)
def test_doubt_takes_weight_from_similarities_that_hardly_differ(
    connection: Connection, background: Any, eleventh: float, doubt: float, share: float
) -> None:
    hits: list[Any] = [("semantic", 1, 1, 0.9, None, None, background)]
    hits += [("lexical", 100 + n, n, 10.0 if n < 11 else eleventh) for n in range(1, 12)]

    rows = fused(connection, "fuse", hits, options={"fusion": "rrf", "doubt": doubt})

    scores = {row.memory_id: row.score for row in rows}
    assert scores.get(1, 0) == pytest.approx(share / 61)
    assert scores[101] == pytest.approx(1 / 61)


@pytest.mark.parametrize(
    ("similarity", "words", "doubt", "share"),
    [
        (0.45, 5.0, 1, 0.5),  # both fall by half of themselves up to the eleventh hit
        (0.45, 8.0, 1, 0.2),
        (0.72, 6.0, 1, 1),  # words by twice the share
        (0.81, 4.0, 1, 1),
        (0.45, 10.0, 1, 0),
        (0.45, 5.0, 0.5, 0.75),
        (0.45, 5.0, 0, 1),
        (None, 5.0, 1, 1),  # ten hits are too few to tell
        (0.27, None, 1, 1),
    ],
)
def test_doubt_takes_weight_from_words_that_tell_less_apart_than_similarities(
    connection: Connection,
    similarity: float | None,
    words: float | None,
    doubt: float,
    share: float,
) -> None:
    def ranking(arm: str, before: int, best: float, eleventh: float | None) -> list[Any]:
        scores = [best] * 10 + ([] if eleventh is None else [eleventh])
        return [(arm, before + n, n, score, None, None, 0.1) for n, score in enumerate(scores, 1)]

    hits = ranking("semantic", 0, 0.9, similarity)
    hits += [(*hit[:6], None) for hit in ranking("lexical", 100, 10.0, words)]

    rows = fused(connection, "fuse", hits, options={"fusion": "rrf", "doubt": doubt})

    scores = {row.memory_id: row.score for row in rows}
    assert scores[1] == pytest.approx(1 / 61)
    assert scores.get(101, 0) == pytest.approx(share / 61)


def test_nothing_is_doubted_where_nothing_is_similar(connection: Connection) -> None:
    hits: list[Any] = [("semantic", 1, 1, 0.0, None, None, 0.0), ("lexical", 2, 1, 3.0)]

    rows = fused(connection, "fuse", hits, options={"fusion": "rrf", "doubt": 1})

    assert {row.memory_id: row.score for row in rows} == pytest.approx({1: 1 / 61, 2: 1 / 61})


def test_few_words_that_match_are_sure_and_none_are_not(connection: Connection) -> None:
    vague: Any = ("semantic", 1, 1, 0.9, None, None, 0.9)

    (alone,) = fused(connection, "fuse", [vague], options={"doubt": 0.5})
    rows = fused(connection, "fuse", [vague, ("lexical", 2, 1, 3.0)], options={"doubt": 0.5})

    assert alone.score == pytest.approx(1 / 61)
    assert {row.memory_id: row.score for row in rows} == pytest.approx({1: 0.5 / 61, 2: 1 / 61})


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"rrf_k": 0}, "22023", "rrf_k must be between 1 and 10000, not 0"),
        ({"named_bost": 1}, "22023", 'unknown option "named_bost"'),
        ({"weights": {"magic": 1}}, "RC009", 'unknown arm "magic" in weights'),
    ],
)
def test_fuse_checks_its_options(
    connection: Connection, options: dict[str, Any], code: str, message: str
) -> None:
    with refused(connection, code, message):
        fused(connection, "fuse", [("key", 1, 1, 1.0)], options=options)
