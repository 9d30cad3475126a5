"""Late interaction: token vectors made, stored, compared, and where it keeps out."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg.types.json import Jsonb

from pgrecall import ArmHit, FunctionReranker, Hit, InvalidFact, Recall, RecallReport, calls
from pgrecall.embedders import DEFAULT_EMBEDDER, PackagedEmbedder
from pgrecall.inference.late_interaction import MOST_BYTES, Embedded, Tokens
from pgrecall.rows import Reranked
from toys import make_hit, toy_embed

FACTS = [
    "The museum of Porto opened a new wing for paintings",
    "Maya leads Atlas",
    "Atlas is a project in Porto with many people who paint",
    "Bo repairs bicycles in winter",
    "Lunch is at noon in the canteen",
]
QUESTION = "Who leads Atlas?"


class TokenEmbedder:
    """Gives each word a vector of its own; every embedding is the same, so that it says nothing."""

    model = "toy-tokens"
    makes_tokens = True
    dimensions = None

    def __init__(self, projection: int = 7) -> None:
        self._projection = projection

    def embed(self, texts: Sequence[str]) -> list[Embedded]:
        return [Embedded([1.0, 0.5, *toy_embed(["same"])[0]], self._tokens(text)) for text in texts]

    def _tokens(self, text: str) -> Tokens:
        words = [word.strip(".,?") for word in text.lower().split()]
        vectors = np.stack(
            [
                np.random.default_rng(zlib.crc32(word.encode())).standard_normal(128)
                for word in words
            ]
        )
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        weights = np.ones(len(words))
        spans = [match.span() for match in re.finditer(r"\S+", text)]
        vectors, weights = vectors.astype(np.float32), weights.astype(np.float32)
        return Tokens(self._projection, vectors, weights, spans)


@pytest.fixture
def recall(connection: psycopg.Connection[Any]) -> Recall:
    recall = Recall(connection, embedder=TokenEmbedder(), reranker="late-interaction")
    recall.create_bank("b")
    recall.retain("b", FACTS)
    return recall


def asked(recall: Recall, **options: Any) -> RecallReport:
    return recall.recall_report("b", QUESTION, **{"arms": ["semantic"], **options})


def tokens_of(connection: psycopg.Connection[Any]) -> dict[str, bytes]:
    rows = connection.execute(
        "select m.text, e.tokens from pgrecall.embedding e"
        " join pgrecall.memory m using (bank_id, memory_id)"
        " where e.tokens is not null and m.valid_to is null"
    ).fetchall()
    return dict(rows)


def read_by_cosine(one: Tokens, other: Tokens) -> float:
    nearest = (one.vectors @ other.vectors.T).max(axis=1)
    return float((nearest * one.weights).sum() / one.weights.sum())


def test_the_packaged_embedder_gives_a_vector_for_each_token_of_the_text_alone() -> None:
    [text] = DEFAULT_EMBEDDER.embed_documents(["Maya leads Atlas"])
    [question] = DEFAULT_EMBEDDER.embed_query(["Maya leads Atlas"])

    for embedded in (text, question):
        assert isinstance(embedded, Embedded)
        assert embedded.tokens is not None
        assert embedded.tokens.vectors.shape[0] == len(embedded.tokens.weights) == 3
        assert np.allclose(np.linalg.norm(embedded.tokens.vectors, axis=1), 1, atol=1e-4)


def test_rare_tokens_weigh_more() -> None:
    [embedded] = DEFAULT_EMBEDDER.embed_query(["the bicycles of the plumber"])

    assert isinstance(embedded, Embedded)
    assert embedded.tokens is not None
    the, bicycles, of = embedded.tokens.weights[:3]
    assert bicycles > 1.5 * max(the, of)


def test_a_text_of_many_tokens_must_be_nearer() -> None:
    def relevances(tokens: int) -> list[float | None]:
        vectors = np.random.default_rng(1).standard_normal((tokens, 48)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        texts = (np.tile(vectors, (times, 1)) for times in (1, 2))
        stored = [Tokens(7, text, np.ones(len(text))).stored() for text in texts]
        return Tokens(7, vectors[:5], np.ones(5)).relevances(stored)

    once, twice = relevances(60)
    assert once is not None
    assert twice is not None
    assert twice == pytest.approx(once - 0.02 * np.log(2), abs=1e-6)
    once, twice = relevances(24)
    assert twice == pytest.approx(once)


def test_token_vectors_tell_an_answer_from_a_text_about_the_same() -> None:
    [question] = DEFAULT_EMBEDDER.embed_query(["When did Maya move to Porto?"])
    texts = ["Maya moved to Porto in March.", "Maya likes the food of Porto."]
    answers = [*DEFAULT_EMBEDDER.embed_documents(texts)]

    assert isinstance(question, Embedded)
    assert question.tokens is not None
    answer, other = question.tokens.relevances(
        [one.tokens.stored() for one in answers if isinstance(one, Embedded) and one.tokens]
    )
    assert answer is not None
    assert other is not None
    assert answer > other


def test_what_is_stored_compares_as_what_was_made() -> None:
    [question], texts = TokenEmbedder().embed([QUESTION]), TokenEmbedder().embed(FACTS)
    assert question.tokens is not None

    found = question.tokens.relevances([one.tokens.stored() for one in texts if one.tokens])

    exact = [read_by_cosine(question.tokens, one.tokens) for one in texts if one.tokens]
    assert [one or 0.0 for one in found] == pytest.approx(
        [max(0.0, one) for one in exact], abs=0.06
    )


# How often each other thread was given a processor, before and after fifty texts are compared.
WOKEN = """
import os, time, numpy
from pathlib import Path
from pgrecall.inference.late_interaction import Tokens

def tokens(count):
    vectors = numpy.random.default_rng(count).standard_normal((count, 48)).astype(numpy.float32)
    return Tokens(1, vectors, numpy.ones(count, numpy.float32))

def turns():
    tasks = [task for task in Path("/proc/self/task").iterdir() if task.name != str(os.getpid())]
    return {task.name: (task / "schedstat").read_text().split()[2] for task in tasks}

texts = [tokens(60).stored()] * 50
time.sleep(1)  # new threads look for work first
before = turns()
tokens(20).relevances(texts)
print(before == turns())
"""


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not say")
def test_comparing_leaves_the_other_threads_of_the_process_asleep() -> None:
    done = subprocess.run([sys.executable, "-c", WOKEN], capture_output=True, text=True, check=True)

    assert done.stdout == "True\n"


def test_a_long_text_keeps_its_heaviest_tokens_in_3072_bytes() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((400, 48)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    weights = np.linspace(1, 2, 400, dtype=np.float32)
    text = Tokens(1, vectors, weights)

    stored = text.stored()

    assert stored is not None
    assert MOST_BYTES - 24 < len(stored) <= MOST_BYTES
    light, heavy = (
        Tokens(1, vectors[n : n + 1], weights[:1]).relevances([stored])[0] for n in (0, 399)
    )
    assert heavy is not None
    assert light is not None
    assert heavy > 0.95 > light


def test_tokens_of_another_projection_are_not_compared() -> None:
    [question], [text] = TokenEmbedder(7).embed([QUESTION]), TokenEmbedder(8).embed([FACTS[1]])

    assert question.tokens is not None
    assert text.tokens is not None
    assert question.tokens.relevances([text.tokens.stored(), None]) == [None, None]


def test_a_recall_is_reranked_by_the_tokens_of_the_question(recall: Recall) -> None:
    report = asked(recall)

    assert report.hits[0].text == "Maya leads Atlas"
    assert report.hits[0].fused_rank > 1
    assert report.reranked == len(FACTS)
    assert report.reranking is not None
    assert report.reranking.startswith("late interaction, trust ")
    assert report.degradations == ()
    assert [hit.text for hit in asked(recall, rerank=False).hits] != [
        hit.text for hit in report.hits
    ]


def test_a_page_is_cut_from_the_reranked_order(recall: Recall) -> None:
    hits = asked(recall).hits

    assert asked(recall, top_k=2, skip=1).hits == hits[1:3]


def test_many_questions_at_once_are_reranked_as_one_by_one(recall: Recall) -> None:
    [alone] = recall.recall_many("b", [QUESTION], arms=["semantic"])

    assert [hit.text for hit in alone.hits] == [hit.text for hit in asked(recall).hits]
    assert alone.reranked == len(FACTS)


def test_hits_carry_tokens_only_where_they_are_asked_for(
    connection: psycopg.Connection[Any], recall: Recall
) -> None:
    assert all(hit.tokens is None for hit in asked(recall).hits)
    assert all(hit.tokens is None for hit in asked(recall, rerank=False).hits)
    assert {hit.text: hit.tokens for hit in asked(recall, rerank=False, with_tokens=True).hits} == (
        tokens_of(connection)
    )


def test_an_embedder_without_tokens_keeps_the_cross_encoder(
    connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    recall = Recall(connection, embedder=toy_embed, reranker="late-interaction")
    recall.create_bank("b")
    recall.retain("b", FACTS)
    monkeypatch.setattr(
        recall._settings.reranker,
        "otherwise",
        FunctionReranker(lambda _query, texts: [float("bicycles" in text) for text in texts]),
    )

    report = asked(recall, rerank_mode="replace")

    assert report.hits[0].text == "Bo repairs bicycles in winter"
    assert report.reranking is None


def test_a_client_may_take_the_cross_encoder_instead(
    connection: psycopg.Connection[Any], recall: Recall
) -> None:
    other = Recall(connection, embedder=TokenEmbedder(), reranker="cross-encoder")

    report = other.recall_report("b", QUESTION)

    assert report.reranking is None
    assert report.reranked > 0
    assert report.hits[0].rerank_score != asked(recall).hits[0].rerank_score


def test_memories_without_tokens_keep_their_fused_place_and_the_report_says_so(
    connection: psycopg.Connection[Any], recall: Recall
) -> None:
    fused = asked(recall, rerank=False).hits
    bare = fused[0]
    connection.execute(
        "update pgrecall.embedding set tokens = null where memory_id = %s", [bare.memory_id]
    )

    report = asked(recall, strict=True)

    assert report.hits[0].memory_id == bare.memory_id
    assert report.hits[0].rerank_score is None
    assert report.hits[1].text == "Maya leads Atlas"
    [degradation] = report.degradations
    assert degradation.what == "reranker"
    assert degradation.why == (
        "1 of 5 candidates have no token vectors of this model and keep their fused place"
    )
    assert degradation.hint is not None
    assert "pgrecall embed" in degradation.hint
    scores = [hit.final_score for hit in report.hits]
    assert scores == sorted(scores, reverse=True)


def test_pending_embeddings_fill_tokens_in_and_change_no_vector(
    connection: psycopg.Connection[Any], recall: Recall
) -> None:
    before = tokens_of(connection)
    select = "select memory_id, embedding::text from pgrecall.embedding order by 1"
    vectors = connection.execute(select).fetchall()
    connection.execute("update pgrecall.embedding set tokens = null where memory_id % 2 = 0")

    done = recall.embed_pending("b", batch_size=1)

    assert 0 < done < len(FACTS)
    assert tokens_of(connection) == before
    assert connection.execute(select).fetchall() == vectors
    assert recall.embed_pending("b") == 0


def test_a_fact_written_in_sql_gets_its_tokens_with_its_embedding(
    connection: psycopg.Connection[Any], recall: Recall
) -> None:
    connection.execute("select pgrecall.retain('b', %s)", [Jsonb([{"text": "Ana paints"}])])

    assert "Ana paints" not in tokens_of(connection)
    assert recall.embed_pending("b") == 1
    assert "Ana paints" in tokens_of(connection)


def test_tokens_follow_a_fact_through_an_update(
    connection: psycopg.Connection[Any], recall: Recall
) -> None:
    memory = next(hit for hit in asked(recall).hits if hit.text == "Maya leads Atlas")
    tokens = tokens_of(connection)["Maya leads Atlas"]

    tagged = recall.update("b", memory.memory_id, tags=["lead"])
    assert tokens_of(connection)["Maya leads Atlas"] == tokens
    recall.update("b", tagged.memory_id, text="Maya left Atlas")

    [new] = TokenEmbedder().embed(["Maya left Atlas"])
    assert new.tokens is not None
    assert tokens_of(connection)["Maya left Atlas"] == new.tokens.stored()


def test_a_bank_takes_its_tokens_along(connection: psycopg.Connection[Any], recall: Recall) -> None:
    lines = connection.execute("select pgrecall.exported_rows('b')").fetchall()
    before = tokens_of(connection)
    recall.drop_bank("b")

    connection.execute("select pgrecall.import_rows('b', %s)", [Jsonb([line for (line,) in lines])])

    assert tokens_of(connection) == before


def test_re_embedding_makes_tokens(connection: psycopg.Connection[Any]) -> None:
    recall = Recall(connection, embedder=toy_embed)
    recall.create_bank("b")
    recall.retain("b", FACTS)
    assert tokens_of(connection) == {}

    recall.reembed_fill("b", TokenEmbedder())

    assert tokens_of(connection).keys() == set(FACTS)


def test_a_fact_retained_while_its_bank_is_re_embedded_has_tokens_of_the_next_model(
    connection: psycopg.Connection[Any],
) -> None:
    old = Recall(connection, embedder=toy_embed)
    old.create_bank("b")
    old.retain("b", FACTS)
    old.reembed_fill("b", TokenEmbedder())

    Recall(connection, embedder=toy_embed, next_embedder=TokenEmbedder()).retain(
        "b", ["Ana paints"]
    )

    rows = connection.execute(
        "select model, tokens is not null from pgrecall.embedding e"
        " join pgrecall.memory m using (bank_id, memory_id) where m.text = 'Ana paints' order by 1"
    ).fetchall()
    assert rows == [("toy-tokens", True), ("toy_embed", False)]


def test_a_known_fact_is_sent_with_the_tokens_it_has(
    connection: psycopg.Connection[Any], recall: Recall
) -> None:
    before = tokens_of(connection)

    class Broken(TokenEmbedder):
        def embed(self, texts: Sequence[str]) -> list[Embedded]:
            raise AssertionError(f"embedded again: {texts}")

    rows = Recall(connection, embedder=Broken()).retain("b", FACTS)

    assert not any(row.is_new for row in rows)
    assert tokens_of(connection) == before


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ("no base64!", 'facts[0].tokens: it is not base64: "no base64!"'),
        (5, "facts[0].tokens: expected a string, not 5"),
        (
            base64.b64encode(bytes(3073)).decode(),
            "facts[0].tokens: 3073 bytes are more than 3072",
        ),
    ],
)
def test_tokens_that_are_none_are_refused(recall: Recall, tokens: object, message: str) -> None:
    [vector] = TokenEmbedder().embed(["Ana paints"])

    with pytest.raises(InvalidFact) as caught:
        recall.retain("b", [{"text": "Ana paints", "embedding": list(vector), "tokens": tokens}])

    assert caught.value.message == message
    assert caught.value.hint


def hits_of(count: int) -> list[Hit]:
    return [make_hit(f"hit {rank}", rank=rank) for rank in range(1, count + 1)]


def reranked(
    connection: psycopg.Connection[Any],
    hits: list[Hit],
    relevances: Sequence[float | None],
    boosts: Sequence[float] = (),
    mode: str = "blend",
) -> list[Reranked]:
    call = calls.recall.rerank(hits, relevances, boosts=boosts, mode=mode)
    with connection.cursor(row_factory=call.row_factory) as cursor:
        return call.result(cursor.execute(call.sql, call.parameters).fetchall())


def order_of(
    connection: psycopg.Connection[Any], hits: list[Hit], *arguments: Any, **named: Any
) -> list[int]:
    return [row.memory_id for row in reranked(connection, hits, *arguments, **named)]


def test_relevances_that_lie_close_together_keep_the_fused_order(
    connection: psycopg.Connection[Any],
) -> None:
    alike = reranked(connection, hits_of(4), [0.50, 0.52, 0.54, 0.56])
    spread = reranked(connection, hits_of(4), [0.2, 0.4, 0.6, 0.8])

    assert [row.memory_id for row in alike] == [1, 2, 3, 4]
    assert {(row.trust, row.relevance) for row in alike} == {(0, None)}
    assert [row.final_score for row in alike] == [hit.score for hit in hits_of(4)]
    assert [row.memory_id for row in spread] == [4, 3, 2, 1]
    assert {row.trust for row in spread} == {1}


def test_relevances_that_nobody_gave_keep_the_fused_order(
    connection: psycopg.Connection[Any],
) -> None:
    for mode in ("blend", "replace"):
        assert order_of(connection, hits_of(3), [None, None], mode=mode) == [1, 2, 3]
        assert order_of(connection, hits_of(3), [], mode=mode) == [1, 2, 3]


def test_a_little_spread_moves_hits_a_little(connection: psycopg.Connection[Any]) -> None:
    hits = [replace(hit, score=score) for hit, score in zip(hits_of(3), (1, 0.9, 0.3), strict=True)]

    assert order_of(connection, hits, [0.45, 0.55, 0.60]) == [2, 1, 3]
    assert order_of(connection, hits, [0.25, 0.55, 0.80]) == [3, 2, 1]


def test_the_score_falls_by_the_trust_and_the_distance_from_the_best_relevance(
    connection: psycopg.Connection[Any],
) -> None:
    hits = [replace(hit, score=score) for hit, score in zip(hits_of(3), (2, 1.8, 0.6), strict=True)]
    relevances = [0.43, 0.56, 0.49]
    trust = (np.std(relevances) - 0.05) / 0.01

    rows = reranked(connection, hits, relevances)

    assert [row.trust for row in rows] == pytest.approx([trust] * 3)
    assert {row.memory_id: row.final_score for row in rows} == pytest.approx(
        {
            hit.memory_id: hit.score / 2 * np.exp(6 * trust * (relevance - 0.56))
            for hit, relevance in zip(hits, relevances, strict=True)
        }
    )


@pytest.mark.parametrize("arm", ["key", "temporal"])
def test_what_a_key_or_a_time_gave_is_not_lowered(
    connection: psycopg.Connection[Any], arm: str
) -> None:
    first, second = hits_of(2)
    found = replace(first, score=1.0, arms={arm: ArmHit(1, 1.0, 1.0)})
    worded = replace(first, score=1.0, arms={"lexical": ArmHit(1, 1.0, 1.0)})
    second = replace(second, score=0.9)

    assert order_of(connection, [found, second], [0.2, 0.8]) == [1, 2]
    assert order_of(connection, [worded, second], [0.2, 0.8]) == [2, 1]


def test_a_hit_that_a_path_led_to_never_falls_below_its_fused_place(
    connection: psycopg.Connection[Any],
) -> None:
    first, *others = hits_of(3)
    relevances = [0.1, 0.5, 0.9]
    led = replace(first, via={"path": "a"})

    rows = reranked(connection, [led, *others], relevances, [0.2, 1.0, 1.0])

    assert [row.memory_id for row in rows] == [1, 3, 2]
    assert rows[0].final_score == rows[1].final_score
    assert order_of(connection, [first, *others], relevances, [0.2, 1.0, 1.0])[-1] == 1


@pytest.mark.parametrize(
    ("relevances", "mode", "expected"),
    [
        ([0.1, 0.5, 0.6, 0.9], "blend", [2, 3, 4, 1]),
        ([0.55, 0.5, 0.6, 0.9], "blend", [2, 3, 1, 4]),
        ([0.1, 0.5, 0.6, None], "blend", [2, 3, 1, 4]),
        ([0.1, 0.5, 0.6, 0.9], "replace", [4, 3, 2, 1]),
    ],
)
def test_states_keep_their_order_whatever_their_relevances(
    connection: psycopg.Connection[Any],
    relevances: list[float | None],
    mode: str,
    expected: list[int],
) -> None:
    first, second, third, fourth = (replace(hit, score=1.0) for hit in hits_of(4))
    states = [replace(third, variant_of=2), replace(fourth, variant_of=2)]

    rows = reranked(connection, [first, second, *states], relevances, mode=mode)

    assert [row.memory_id for row in rows] == expected
    scores = [row.final_score for row in rows]
    assert scores == sorted(scores, reverse=True)


def test_a_boost_multiplies_the_final_score(connection: psycopg.Connection[Any]) -> None:
    assert order_of(connection, hits_of(2), [0.6, 0.4]) == [1, 2]
    assert order_of(connection, hits_of(2), [0.6, 0.4], [0.2, 1.8]) == [2, 1]


def test_replace_orders_by_the_tokens_alone(connection: psycopg.Connection[Any]) -> None:
    rows = reranked(connection, hits_of(3), [0.50, 0.51, 0.52], mode="replace")

    assert [row.memory_id for row in rows] == [3, 2, 1]
    assert [row.final_score for row in rows] == [0.52, 0.51, 0.50]


def test_what_has_no_relevance_keeps_its_place_and_what_lies_behind_stays_there(
    connection: psycopg.Connection[Any],
) -> None:
    rows = reranked(connection, hits_of(5), [0.2, None, 0.8])

    assert [row.memory_id for row in rows] == [3, 2, 1, 4, 5]
    assert [row.rank for row in rows] == [1, 2, 3, 4, 5]
    assert [row.relevance for row in rows] == [0.8, None, 0.2, None, None]
    assert rows[1].final_score == rows[2].final_score > 0
    assert rows[3].final_score == rows[4].final_score == 0


def test_another_mode_of_reranking_is_refused(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.Error, match='mode must be "blend" or "replace", not "sum"'):
        reranked(connection, hits_of(1), [0.5], mode="sum")


def test_a_relevance_outside_its_range_is_refused(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.Error, match="a relevance must be between 0 and 1, not -2"):
        reranked(connection, hits_of(2), [0.5, -2.0])


@pytest.mark.parametrize("boost", ["NaN", "-1", "inf"])
def test_a_boost_that_orders_nothing_is_refused(
    connection: psycopg.Connection[Any], boost: str
) -> None:
    with pytest.raises(psycopg.Error, match="a boost must be between 0 and 1000000, not "):
        reranked(connection, hits_of(2), [0.5, 0.9], [1.0, float(boost)])


def test_rows_of_a_recall_are_reranked_in_plain_sql(
    connection: psycopg.Connection[Any], recall: Recall
) -> None:
    found = connection.execute(
        "with h as (select array(select h from pgrecall.hybrid_recall('b', 'Porto museum') as h)"
        " as hits)"
        " select r.rank, (h.hits)[3 - r.rank].memory_id = r.memory_id"
        " from h cross join pgrecall.rerank(h.hits, array[0.1, 0.9]) as r"
    ).fetchall()

    assert found == [(1, True), (2, True)]


def test_an_order_that_cannot_be_had_fails_no_recall(
    recall: Recall, monkeypatch: pytest.MonkeyPatch
) -> None:
    fused = [hit.text for hit in asked(recall, rerank=False).hits]
    monkeypatch.setattr(
        calls.recall, "rerank", lambda *_, **__: calls.call.call_value("no_such_function")
    )

    report = asked(recall)

    assert [hit.text for hit in report.hits] == fused
    assert [left_out.what for left_out in report.degradations] == ["reranker"]


def test_a_question_without_names_in_it_is_embedded_once_for_both_it_is_needed_for(
    recall: Recall, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded: list[list[str]] = []
    embed = TokenEmbedder.embed

    def counted(self: TokenEmbedder, texts: Sequence[str]) -> list[Embedded]:
        embedded.append([*texts])
        return embed(self, texts)

    monkeypatch.setattr(TokenEmbedder, "embed", counted)

    report = asked(recall)

    assert embedded == [[QUESTION]]
    assert all(hit.rerank_score is not None for hit in report.hits)


@pytest.mark.parametrize("at_once", [False, True])
def test_what_is_about_whom_a_question_names_is_compared_without_names(
    recall: Recall, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    notes = [{"text": f"note {n}", "entities": ["Kai"] * (n < 4)} for n in range(100)]
    recall.retain("b", [*notes, {"text": "Ben led Atlas", "occurred": "2026-03-05"}])
    embedded: list[list[str]] = []
    read: list[int] = []
    embed, relevances = TokenEmbedder.embed, Tokens.relevances

    def counted(self: TokenEmbedder, texts: Sequence[str]) -> list[Embedded]:
        embedded.append([*texts])
        return embed(self, texts)

    def noted(self: Tokens, texts: Sequence[bytes | None]) -> list[float | None]:
        read.append(len(self.spans))
        return relevances(self, texts)

    monkeypatch.setattr(TokenEmbedder, "embed", counted)
    monkeypatch.setattr(Tokens, "relevances", noted)
    question = "What in March 2026 did Kai note about Atlas?"

    if at_once:
        recall.recall_many("b", [question])
    else:
        recall.recall("b", question)

    (texts,) = embedded
    assert sorted(texts) == [question, "What in March 2026 did note about Atlas?"]
    assert read == [6]  # without "March 2026"


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(
    ("question", "compared"),
    [
        ("Who led Atlas in March 2026 ?", "Who led Atlas in ?"),
        ("March 2026 ?", "March 2026 ?"),
        ("Who led Atlas in March 2020 ?", "Who led Atlas in March 2020 ?"),
        ("What did March do in March ?", "What did March do in March ?"),
        ("Who leads Atlas ?", "Who leads Atlas ?"),
    ],
)
def test_the_time_of_a_question_is_compared_with_texts_unless_the_window_says_when(
    recall: Recall,
    monkeypatch: pytest.MonkeyPatch,
    question: str,
    compared: str,
    at_once: bool,
) -> None:
    recall.retain("b", [{"text": "Ben led Atlas", "occurred": "2026-03-05"}])
    read: list[str] = []
    relevances = Tokens.relevances

    def noted(self: Tokens, texts: Sequence[bytes | None]) -> list[float | None]:
        read.append(" ".join(question[start:end] for start, end in self.spans))
        return relevances(self, texts)

    monkeypatch.setattr(Tokens, "relevances", noted)

    if at_once:
        recall.recall_many("b", [question])
    else:
        recall.recall("b", question)

    assert read == [compared]


def test_the_packaged_embedder_says_where_the_tokens_of_a_question_stand() -> None:
    question = " Où étiez-vous in March\t2026?"
    [embedded] = DEFAULT_EMBEDDER.embed_query([question])
    assert isinstance(embedded, Embedded)
    assert embedded.tokens is not None

    start = question.index("March")
    left = embedded.tokens.without(start, start + len("March\t2026"))

    said = [question[begin:end] for begin, end in embedded.tokens.spans]
    assert "".join(said) == "".join(question.split())
    assert said[-4:] == ["March", "202", "6", "?"]
    assert [question[begin:end] for begin, end in left.spans] == [*said[:-4], "?"]
    assert np.array_equal(left.vectors[-1], embedded.tokens.vectors[-1])
    assert len(left.weights) == len(left.vectors) == len(said) - 3


@pytest.mark.parametrize("at_once", [False, True])
def test_where_a_name_is_left_out_half_of_the_model_reads_the_question_for_its_tokens(
    connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    read: list[tuple[str, bool]] = []
    inputs = PackagedEmbedder._inputs

    def noted(self: PackagedEmbedder, tokenizer: Any, one: Any) -> dict[str, Any]:
        read.append((one.text, one.is_whole))
        return inputs(self, tokenizer, one)

    recall = Recall(connection, reranker="late-interaction")
    recall.create_bank("b")
    recall.retain("b", [{"text": text, "entities": ["Atlas"]} for text in FACTS])
    monkeypatch.setattr(PackagedEmbedder, "_inputs", noted)

    if at_once:
        recall.recall_many("b", [QUESTION])
    else:
        recall.recall("b", QUESTION)

    assert sorted(read) == [("query: Who leads Atlas?", False), ("query: Who leads?", True)]


def test_token_vectors_are_the_same_if_nothing_else_is_read() -> None:
    prompted = "query: Who leads Atlas?"
    embedder = PackagedEmbedder()

    whole, half = embedder.submit_some_for_tokens([prompted] * 2, [False, True]).result().found

    assert isinstance(whole, Embedded)
    assert isinstance(half, Embedded)
    assert whole.tokens is not None
    assert half.tokens is not None
    assert half.tokens.stored() == whole.tokens.stored()
    assert any(whole[384:])
    assert len(half) == len(whole) == 768
    assert not any(half[384:])
