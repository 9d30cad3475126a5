"""What a caller can ask of the order of an answer: pages, sources, variety, recency, relevance."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from pgrecall import Recall
from servers import kept_fixture
from sqlcalls import Connection, call, create, retain

NOW = datetime(2026, 6, 1, tzinfo=timezone.utc)
QUERY = "kraken deploy"
EMBEDDING = [1.0, 0.4, 0.2]
ASKED: dict[str, Any] = {"query": QUERY, "embedding": EMBEDDING, "as_of": NOW}
SIZE = 24


def facts() -> list[dict[str, Any]]:
    """Facts that differ in words, direction, source and age; every eighth has no embedding."""
    rows = []
    for n in range(SIZE):
        angle = n * 0.37
        row: dict[str, Any] = {
            "text": " ".join(["kraken"] * (1 + n % 3) + ["deploy"] * (n % 2) + [f"note{n}"]),
            "embedding": [1, math.cos(angle), math.sin(angle)] if n % 8 else None,
            "source_id": f"doc{n % 5}" if n % 6 else None,
            "mentioned_at": (NOW - timedelta(days=7 * (n % 9) + 1)).isoformat(),
            "occurred": (NOW - timedelta(days=3 * n + 2)).isoformat() if n % 4 else None,
        }
        rows.append({key: value for key, value in row.items() if value is not None})
    return rows


@kept_fixture
def bank(connection: Connection) -> dict[int, dict[str, Any]]:
    """The facts of a bank by their ids."""
    create(connection, embedding_dimensions=3)
    return dict(zip(retain(connection, facts()), facts(), strict=True))


def recall(connection: Connection, **arguments: Any) -> list[Any]:
    return call(connection, "hybrid_recall", **{"bank": "b", **ASKED, "top_k": 100, **arguments})


def ids(rows: list[Any]) -> list[int]:
    return [row.memory_id for row in rows]


def cosine(first: list[float], second: list[float]) -> float:
    product = sum(a * b for a, b in zip(first, second, strict=True))
    return product / math.hypot(*first) / math.hypot(*second)


examples = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.slow
@examples
@given(
    top_k=st.integers(1, 9),
    options=st.fixed_dictionaries(
        {},
        optional={
            "fusion": st.sampled_from(["rrf", "score_rrf", "linear"]),
            "collapse": st.booleans(),
            "diversity": st.sampled_from([0, 0.3, 1]),
            "min_relevance": st.sampled_from([0, 0.3]),
        },
    ),
)
def test_pages_are_cut_from_one_order(
    connection: Connection, bank: dict[int, Any], top_k: int, options: dict[str, Any]
) -> None:
    whole = recall(connection, **options)

    pages = [
        recall(connection, **options, top_k=top_k, skip=skip)
        for skip in range(0, len(whole) + top_k, top_k)
    ]

    assert [row for page in pages for row in page] == whole
    assert [row.rank for row in whole] == list(range(1, len(whole) + 1))
    assert pages[-1] == []


@pytest.mark.parametrize("fusion", ["rrf", "score_rrf", "linear"])
def test_collapse_keeps_the_best_of_each_source_and_fills_the_page(
    connection: Connection, bank: dict[int, Any], fusion: str
) -> None:
    whole = recall(connection, fusion=fusion)
    expected, seen = [], set()
    for row in whole:
        if row.source_id not in seen:
            expected.append(row.memory_id)
        seen |= {row.source_id} - {None}

    collapsed = recall(connection, fusion=fusion, collapse=True)

    assert len(expected) < len(whole)
    assert ids(collapsed) == expected
    assert ids(recall(connection, fusion=fusion, collapse=True, top_k=6)) == expected[:6]
    assert {row[1:-1] for row in map(_hashable, collapsed)} <= {
        row[1:-1] for row in map(_hashable, whole)
    }


def _hashable(row: Any) -> tuple[str, ...]:
    return tuple(map(str, row))


def test_messages_of_a_session_collapse_too(connection: Connection) -> None:
    create(connection)
    texts = ["kraken deploy broke", "kraken deploy again", "kraken came back"]
    call(connection, "retain_messages", bank="b", messages=[
        {"text": text, "session": "s" if n else None} for n, text in enumerate(texts)
    ])  # fmt: skip

    rows = call(connection, "hybrid_recall", bank="b", query=QUERY, collapse=True)

    assert sorted(row.source_id or "" for row in rows) == ["", "s"]


@examples
@given(diversity=st.sampled_from([0.05, 0.3, 0.5, 0.7, 1.0]), collapse=st.booleans())
def test_variety_takes_the_greatest_marginal_relevance_each_time(
    connection: Connection, bank: dict[int, Any], diversity: float, collapse: bool
) -> None:
    plain = recall(connection, collapse=collapse)
    score = {row.memory_id: row.score for row in plain}

    varied = recall(connection, collapse=collapse, diversity=diversity)

    def similarity(first: int, second: int) -> float:
        vectors = [bank[memory].get("embedding") for memory in (first, second)]
        return max(0.0, cosine(*vectors)) if all(vectors) else 0.0

    def worth(memory: int, before: list[int]) -> Any:
        nearest = max((similarity(memory, other) for other in before), default=0.0)
        return (1 - diversity) * score[memory] / plain[0].score - diversity * nearest

    left = ids(plain)
    for n, row in enumerate(varied):
        best = max(worth(memory, ids(varied)[:n]) for memory in left)
        # Vectors are stored with eleven bits.
        assert worth(row.memory_id, ids(varied)[:n]) == pytest.approx(best, abs=2e-3)
        left.remove(row.memory_id)
    assert left == []
    assert {row.memory_id: row.score for row in varied} == score
    assert varied[0] == plain[0]
    assert ids(varied) != ids(plain) or diversity < 0.1


@pytest.mark.parametrize("decay", ["exponential", "linear"])
@pytest.mark.parametrize("days", [10, 40])
def test_recency_lifts_and_lowers_by_a_tenth_at_most(
    connection: Connection, bank: dict[int, Any], decay: str, days: int
) -> None:
    plain = {row.memory_id: row for row in recall(connection, fusion="linear")}

    rows = recall(
        connection, fusion="linear", recency_half_life=f"{days} days", recency_decay=decay
    )

    def boost(row: Any) -> Any:
        if row.occurred is None:  # when it was said is not when it happened
            return 1
        half_lives = (NOW - row.occurred.lower) / timedelta(days=days)
        new = 0.5**half_lives if decay == "exponential" else max(0, 1 - half_lives / 2)
        return 0.9 + 0.2 * new

    for row in rows:
        assert row.score == pytest.approx(plain[row.memory_id].score * boost(row))
        parts = [part["contribution"] for part in row.arms.values()]
        assert row.score == pytest.approx(sum(parts))
        assert {arm: part["rank"] for arm, part in row.arms.items()} == {
            arm: part["rank"] for arm, part in plain[row.memory_id].arms.items()
        }
    assert [row.score for row in rows] == sorted((row.score for row in rows), reverse=True)
    assert ids(rows) != list(plain)


def test_recency_of_the_bank_goes_with_linear_alone(
    connection: Connection, bank: dict[int, Any]
) -> None:
    half_life = {"recency_half_life": "20 days", "recency_decay": "linear"}
    boosted = recall(connection, fusion="linear", **half_life)
    plain = {fusion: recall(connection, fusion=fusion) for fusion in ("rrf", "linear")}

    with (
        pytest.raises(psycopg.Error, match='does not go with fusion "score_rrf"'),
        connection.transaction(),
    ):
        call(connection, "configure_bank", bank="b", settings=half_life)
    call(connection, "configure_bank", bank="b", settings={"fusion": "linear", **half_life})

    assert recall(connection) == boosted != plain["linear"]
    assert recall(connection, fusion="rrf") == plain["rrf"]
    call(connection, "configure_bank", bank="b", settings={"recency_half_life": None})
    assert recall(connection) == plain["linear"]


@pytest.mark.parametrize(("nearness", "texts"), [(0.7, "old new"), (0.9, "new old")])
def test_the_latest_comes_first_of_what_is_nearly_the_same_only(
    connection: Connection, nearness: float, texts: str
) -> None:
    create(connection, embedding_dimensions=3)
    beside = [nearness, math.sqrt(1 - nearness**2), 0]
    facts = [
        {"text": "old", "embedding": [1, 0, 0], "mentioned_at": "2025-01-01"},
        {"text": "new", "embedding": beside, "mentioned_at": "2026-01-01"},
    ]
    retain(connection, facts)

    rows = recall(
        connection, query="", embedding=[1, 0, 0], options={"prefer": "latest", "rrf_k": 60}
    )

    assert [row.text for row in rows] == texts.split()


def test_the_latest_without_a_beginning_is_what_was_said_last(connection: Connection) -> None:
    create(connection, embedding_dimensions=2)
    facts: list[dict[str, Any]] = [
        {"text": "early", "mentioned_at": "2025-01-01"},
        {"text": "late", "mentioned_at": "2026-01-01", "occurred": [None, "2024-01-01"]},
    ]
    retain(connection, [{**fact, "embedding": [1, 0]} for fact in facts])

    texts = connection.execute(
        "select text from pgrecall.hybrid_recall('b', '', '[1, 0]',"
        """ options => '{"prefer": "latest"}')"""
    ).fetchall()

    assert texts == [("late",), ("early",)]


@pytest.mark.parametrize(
    ("occurred", "as_of"),
    [("[-infinity, infinity)", "now"), ("[2026-01-01, 2026-01-02)", "infinity")],
)
def test_what_has_no_bounds_is_of_no_age(connection: Connection, occurred: str, as_of: str) -> None:
    create(connection)
    retain(connection, ["kraken"])
    connection.execute("update pgrecall.memory set occurred = %s", [occurred])

    scores = connection.execute(
        "select score from pgrecall.hybrid_recall('b', 'kraken', as_of => %s, options => "
        """ '{"fusion": "linear", "weights": {"lexical": 2}, "recency_half_life": "1 day"}')""",
        [as_of],
    ).fetchall()

    assert scores == [(2,)]


def test_a_gate_leaves_an_arm_out_and_says_so(connection: Connection, bank: dict[int, Any]) -> None:
    gates = {"semantic": 0.999999}
    others = recall(connection, arms=["lexical"])

    rows = recall(connection, arms=["semantic", "lexical"], gates=gates)
    report = {
        row.arm: row for row in call(connection, "explain_recall", bank="b", **ASKED, gates=gates)
    }

    assert [row[:-1] for row in rows] == [row[:-1] for row in others]
    assert report["lexical"].status == "ran"
    assert report["semantic"].status == "gated"
    assert report["semantic"].rows > 0
    best = round(report["semantic"].best_score, 4)
    assert report["semantic"].reason == f"best score {best} is below the gate 0.999999"


@pytest.mark.parametrize(
    ("doubt", "weight", "is_hinted"), [(0.9, "10%", True), (0.6, "40%", False), (0.2, None, False)]
)
def test_an_arm_that_words_outdo_says_what_it_counts(
    connection: Connection, doubt: float, weight: str | None, is_hinted: bool
) -> None:
    create(connection, embedding_dimensions=3)
    retain(connection, [{"text": f"crate {n}", "embedding": [1, n / 100, 0]} for n in range(60)])
    asked = {"bank": "b", "query": "crate 7", "embedding": [1, 0, 0], "options": {"doubt": doubt}}

    arms = {row.arm: row for row in call(connection, "explain_recall", **asked)}

    assert arms["semantic"].status == "ran"
    if weight is None:
        assert "weight" not in arms["semantic"].reason
    else:
        assert f"counts {weight} of its weight" in arms["semantic"].reason
    assert (arms["semantic"].hint is not None) is is_hinted
    assert arms["lexical"].hint is None


def test_words_that_embeddings_outdo_say_what_they_count(connection: Connection) -> None:
    create(connection, embedding_dimensions=3)
    retain(connection, [{"text": f"crate {n}", "embedding": [1, n * 0.3, 0]} for n in range(60)])
    asked = {"bank": "b", "query": "crate", "embedding": [1, 0, 0]}

    arms = {row.arm: row for row in call(connection, "explain_recall", **asked)}

    assert arms["lexical"].reason == (
        "counts 10% of its weight: embeddings tell these memories apart, words hardly do"
    )
    assert arms["lexical"].hint is None
    assert "weight" not in arms["semantic"].reason


@pytest.mark.parametrize(
    ("known", "share", "status", "is_hinted"),
    [
        (1, 1, "ran", False),
        (0.75, 1, "ran", False),
        (0.5, 0.5, "ran", False),
        (0.3, 0.1, "ran", True),
        (0.25, 0, "skipped", True),
        (0, 0, "skipped", True),
    ],
)
def test_an_arm_counts_as_much_as_its_model_knows_of_the_words(
    connection: Connection, known: float, share: float, status: str, is_hinted: bool
) -> None:
    create(connection, embedding_dimensions=3)
    retain(connection, [{"text": f"crate {n}", "embedding": [1, n / 100, 0]} for n in range(9)])
    asked = {"bank": "b", "query": "crate 7", "embedding": [1, 0, 0]}

    def contributions(**options: float) -> dict[int, float]:
        hits = call(connection, "hybrid_recall", **asked, options={"doubt": 0, **options})
        return {
            hit.memory_id: hit.arms["semantic"]["contribution"]
            for hit in hits
            if "semantic" in hit.arms
        }

    whole, part = contributions(), contributions(known_words=known)
    arms = {
        row.arm: row
        for row in call(connection, "explain_recall", **asked, options={"known_words": known})
    }

    assert part == pytest.approx({hit: share * one for hit, one in whole.items() if share})
    assert arms["semantic"].status == status
    assert (arms["semantic"].hint is not None) is is_hinted
    assert (f"knows {100 * known:g}% of the words" in (arms["semantic"].reason or "")) is (
        known < 0.75
    )
    assert arms["lexical"].status == "ran"


@pytest.mark.parametrize(
    ("known", "share"), [(1, 1), (0.75, 1), (0.7, 0.9 * 0.64), (0.625, 0.75 * 0.1)]
)
def test_vague_embeddings_of_unknown_words_are_doubted_beside_any_words(
    connection: Connection, known: float, share: float
) -> None:
    create(connection, embedding_dimensions=3)
    retain(connection, [{"text": f"crate {n}", "embedding": [1, 0, n / 999]} for n in range(60)])
    call(connection, "refresh_statistics", bank="b")
    asked = {"bank": "b", "query": "crate", "embedding": [1, 0, 0]}

    def best(**options: float) -> float:
        hits = call(connection, "hybrid_recall", **asked, options=options)
        return max(float(h.arms.get("semantic", {}).get("contribution", 0)) for h in hits)

    assert best(known_words=known) == pytest.approx(share * best())
    known_words = {"known_words": known}
    fused = dict(
        connection.execute(
            "select f.memory_id, f.score from pgrecall.fuse((select array_agg(h)"
            " from pgrecall.arm_hits(bank => 'b', query => 'crate', embedding => '[1,0,0]',"
            " options => %(options)s) as h), %(options)s) as f",
            {"options": Jsonb(known_words)},
        ).fetchall()
    )
    found = call(connection, "hybrid_recall", **asked, options=known_words)
    assert {h.memory_id: fused[h.memory_id] for h in found} == pytest.approx(
        {h.memory_id: h.score for h in found}
    )


def test_gates_of_the_bank_and_the_call_never_empty_an_answer(
    connection: Connection, bank: dict[int, Any]
) -> None:
    semantic, lexical = (recall(connection, arms=[arm]) for arm in ("semantic", "lexical"))
    call(connection, "configure_bank", bank="b", settings={"gates": {"semantic": 2}})

    def answered_by(**gates: float) -> list[Any]:
        return recall(connection, arms=["semantic", "lexical"], gates=gates)

    assert ids(answered_by()) == ids(lexical)
    assert ids(answered_by(lexical=1000000)) == ids(semantic)
    assert any(len(row.arms) == 2 for row in answered_by(semantic=0))


def test_relevance_tells_an_answer_from_what_is_beside_the_point(
    connection: Connection, bank: dict[int, Any]
) -> None:
    def confidence(query: str, embedding: list[float] | None) -> float:
        rows = recall(connection, query=query, embedding=embedding)
        assert all(0 <= row.relevance <= 1 for row in rows)
        return max((row.relevance for row in rows), default=0)

    assert confidence("kraken deploy note3", None) > 0.3
    assert confidence("kraken weather in Lisbon tomorrow", None) < 0.1
    assert confidence("kraken deploy note3", EMBEDDING) > confidence("note3 zebra", [-0.5, 1, 0])


def test_a_floor_leaves_out_what_is_less_relevant_and_may_leave_nothing(
    connection: Connection, bank: dict[int, Any]
) -> None:
    whole = recall(connection)
    floor = sorted(row.relevance for row in whole)[SIZE // 2]

    kept = recall(connection, min_relevance=floor)

    assert ids(kept) == ids([row for row in whole if row.relevance >= floor])
    assert 0 < len(kept) < len(whole)
    assert recall(connection, min_relevance=1) == []


def test_the_driver_passes_them_on_and_reports_its_confidence(
    pgrecall: Recall, connection: Connection, bank: dict[int, Any]
) -> None:
    def report(**options: Any) -> Any:
        options = {"rerank": False, "embedding": EMBEDDING, "as_of": NOW, "top_k": 5, **options}
        return pgrecall.recall_report("b", QUERY, **options)

    first, second, both = report(), report(skip=5), report(top_k=10)
    linear = report(fusion="linear", recency_half_life=timedelta(days=10), recency_decay="linear")
    gated = report(gates={"semantic": 0.999999}, explain=True)
    varied = report(collapse=True, diversity=0.5)
    nothing = report(min_relevance=1.0)

    assert [*first.hits, *second.hits] == list(both.hits)
    assert first.confidence == max(hit.relevance for hit in first.hits) > 0
    assert linear.hits[0].score > 0.5
    assert {arm.arm: arm.status for arm in gated.arms}["semantic"] == "gated"
    assert ids(varied.hits) == ids(recall(connection, collapse=True, diversity=0.5, top_k=5))
    assert (nothing.hits, nothing.confidence) == ((), 0.0)


def test_pages_of_a_reranked_answer_are_cut_from_the_reranked_order(
    connection: Connection, bank: dict[int, Any]
) -> None:
    def by_length(_query: str, texts: Any) -> list[float]:
        return [1 / len(text) for text in texts]

    recalls = Recall(connection, reranker=by_length)

    def hits(**options: Any) -> list[int]:
        return ids(recalls.recall("b", QUERY, embedding=EMBEDDING, as_of=NOW, candidates=12,
                                  **options))  # fmt: skip

    whole = hits(top_k=20)
    assert [*hits(top_k=5), *hits(top_k=5, skip=5), *hits(top_k=10, skip=10)] == whole


@pytest.mark.parametrize("embedding", [EMBEDDING, None])
@pytest.mark.parametrize("query", [QUERY, "deploy zebra", ""])
@pytest.mark.parametrize("during", ["[2026-05-01,2026-05-20)", None])
def test_relevance_is_the_formula_of_its_comment(
    connection: Connection,
    bank: dict[int, Any],
    embedding: list[float] | None,
    query: str,
    during: str | None,
) -> None:
    if not query and not embedding and not during:
        return
    call(connection, "refresh_statistics", bank="b", is_full=True)
    holding = {word: sum(word in fact["text"] for fact in bank.values()) for word in query.split()}
    idfs = [math.log(1 + (SIZE - n + 0.5) / (n + 0.5)) for n in holding.values()]

    rows = recall(connection, query=query, embedding=embedding, during=during)

    def expected(arms: dict[str, Any]) -> float:
        similarity, lexical, nearness = (
            arms.get(arm, {"score": missing})["score"]
            for arm, missing in (("semantic", 0.2), ("lexical", 0), ("temporal", 0))
        )
        if not query and not embedding:
            return float(nearness)
        words = lexical / sum(idfs) if query else 0
        z = 10.4 * similarity + 10.5 * words + 3 * nearness - 6.2
        if not embedding:
            z = 15 * words + 3 * nearness - 3
        elif not query:
            z = 16 * similarity + 3 * nearness - 8.5
        return 1 / (1 + math.exp(-z))

    assert rows
    assert [row.relevance for row in rows] == pytest.approx([expected(row.arms) for row in rows])
