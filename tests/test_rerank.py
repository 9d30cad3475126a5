"""Reranking: the real loading code on a tiny cross-encoder, the boosts, and doing without."""

from __future__ import annotations

import locale
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgrecall import (
    CrossEncoderReranker,
    Hit,
    Recall,
    RerankerUnavailable,
)
from pgrecall.models import Period
from pgrecall.rerankers import (
    FunctionReranker,
    dated_text,
    period_boost,
    recency_boost,
    reranked,
)
from toys import save_cross_encoder, toy_embed

NOW = datetime(2026, 6, 30, 12, tzinfo=timezone.utc)
DAY = timedelta(days=1)


def make_hit(
    text: str = "Maya leads Atlas",
    *,
    rank: int = 1,
    context: str | None = None,
    occurred: Period | None = None,
    mentioned_at: datetime | None = None,
) -> Hit:
    return Hit(
        rank=rank,
        memory_id=rank,
        kind="memory",
        fact_type="world",
        text=text,
        context=context,
        fact_key=None,
        source_id=None,
        tags=(),
        metadata={},
        occurred=occurred,
        mentioned_at=mentioned_at,
        confidence=1.0,
        score=1 / (60 + rank),
        arms={},
        fused_rank=rank,
        rerank_score=None,
        final_score=1 / (60 + rank),
    )


def score_by_length(_query: str, texts: Sequence[str]) -> list[float]:
    return [1 / (1 + len(text)) for text in texts]


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_cross_encoder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def connection_with_bank(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    recall = Recall(connection, embedder=toy_embed)
    recall.create_bank("b")
    recall.retain("b", ["Atlas is a long project with many people", "Maya leads Atlas"])
    return connection


def test_a_saved_cross_encoder_scores_each_text_from_0_to_1(cross_encoder: Path) -> None:
    reranker = CrossEncoderReranker(cross_encoder)

    scores = reranker.scores("who leads atlas", ["maya leads atlas", "ana", "the date"])

    assert len(set(scores)) == 3
    assert all(0 < score < 1 for score in scores)


def test_a_score_is_the_sigmoid_of_what_the_model_says(cross_encoder: Path) -> None:
    from sentence_transformers import CrossEncoder
    from torch.nn import Sigmoid

    model = CrossEncoder(str(cross_encoder), local_files_only=True)
    expected = model.predict([("who", "maya leads")], activation_fn=Sigmoid())

    scores = CrossEncoderReranker(cross_encoder).scores("who", ["maya leads"])

    assert scores == pytest.approx([float(score) for score in expected], abs=1e-6)


def test_loading_prints_nothing(cross_encoder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    CrossEncoderReranker(cross_encoder).scores("who", ["maya"])

    assert capfd.readouterr() == ("", "")


def test_a_model_with_several_outputs_is_refused(tmp_path: Path) -> None:
    path = save_cross_encoder(tmp_path / "three", outputs=3)

    with pytest.raises(RerankerUnavailable) as caught:
        CrossEncoderReranker(path).load()

    assert caught.value.message == f'the reranker "{path}" has 3 outputs, not 1'
    assert caught.value.hint == "Give a cross-encoder that was trained to score relevance."


def test_a_recall_is_reranked_by_the_model_that_the_environment_names(
    connection_with_bank: psycopg.Connection[Any],
    cross_encoder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGRECALL_RERANKER", str(cross_encoder))

    report = Recall(connection_with_bank, embedder=toy_embed).recall_report("b", "who leads atlas")

    assert report.degradations == ()
    assert report.timings.rerank > 0
    assert [hit.rank for hit in report.hits] == [1, 2]
    assert all(hit.rerank_score is not None for hit in report.hits)
    assert report.hits[0].final_score >= report.hits[1].final_score


def test_without_a_reranker_the_fused_order_is_kept_and_the_report_says_so(
    connection_with_bank: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGRECALL_RERANKER", raising=False)

    report = Recall(connection_with_bank, embedder=toy_embed).recall_report("b", "Maya")

    assert [(hit.rank, hit.final_score) for hit in report.hits] == [
        (hit.fused_rank, hit.score) for hit in report.hits
    ]
    assert [(d.what, d.why, d.hint) for d in report.degradations] == [
        (
            "reranker",
            "no reranker is set: the fused order was kept",
            "Pass reranker=..., or set PGRECALL_RERANKER to the directory of a cross-encoder.",
        )
    ]


def test_a_wrong_path_degrades_with_the_reason(
    connection_with_bank: psycopg.Connection[Any], tmp_path: Path
) -> None:
    path = tmp_path / "nothing"
    recall = Recall(connection_with_bank, embedder=toy_embed, reranker=path)

    report = recall.recall_report("b", "Maya", top_k=1)

    assert [hit.rerank_score for hit in report.hits] == [None]
    (degradation,) = report.degradations
    assert degradation.why.startswith(f'cannot load the reranker "{path}": ')
    assert degradation.hint == (
        "Set PGRECALL_RERANKER to the directory of a cross-encoder, or download it first."
    )


def test_a_missing_package_degrades_with_the_command(
    connection_with_bank: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    recall = Recall(connection_with_bank, embedder=toy_embed, reranker="some-model")

    report = recall.recall_report("b", "Maya")

    assert [(d.why, d.hint) for d in report.degradations] == [
        (
            "cannot rerank: package sentence_transformers is missing",
            "Run: pip install 'pgrecall[embed]'",
        )
    ]


def test_a_recall_that_wants_no_reranking_reports_none(
    connection_with_bank: psycopg.Connection[Any],
) -> None:
    recall = Recall(connection_with_bank, embedder=toy_embed, reranker=score_by_length)

    report = recall.recall_report("b", "Maya", rerank=False)

    assert report.degradations == ()
    assert [hit.rerank_score for hit in report.hits] == [None, None]


def test_more_candidates_are_reranked_than_are_returned(
    connection_with_bank: psycopg.Connection[Any],
) -> None:
    recall = Recall(connection_with_bank, embedder=toy_embed, reranker=score_by_length)

    hits = recall.recall("b", "Atlas is a long project with many people", top_k=1)

    assert [(hit.text, hit.rank, hit.fused_rank) for hit in hits] == [("Maya leads Atlas", 1, 2)]


def test_the_reranker_reads_date_context_and_text() -> None:
    hit = make_hit(context="standup", occurred=(datetime(2022, 6, 5, tzinfo=timezone.utc), None))

    assert dated_text(hit) == "[Date: June 05, 2022 (2022-06-05)] standup: Maya leads Atlas"


def test_the_date_is_when_it_was_said_where_nobody_knows_when_it_happened() -> None:
    assert dated_text(make_hit(mentioned_at=NOW)) == (
        "[Date: June 30, 2026 (2026-06-30)] Maya leads Atlas"
    )


def test_a_hit_without_date_and_context_is_read_as_it_is() -> None:
    assert dated_text(make_hit()) == "Maya leads Atlas"


def test_months_are_english_in_every_locale() -> None:
    before = locale.setlocale(locale.LC_TIME)
    try:
        locale.setlocale(locale.LC_TIME, "")
        assert dated_text(make_hit(mentioned_at=NOW)).startswith("[Date: June 30, 2026")
    finally:
        locale.setlocale(locale.LC_TIME, before)


@pytest.mark.parametrize(
    ("age", "boost"),
    [
        (timedelta(0), 1.1),
        (-30 * DAY, 1.1),
        (182.5 * DAY, 1.0),
        (365 * DAY, 0.9),
        (3650 * DAY, 0.9),
    ],
)
def test_recency_falls_linearly_over_a_year(age: timedelta, boost: float) -> None:
    assert recency_boost(make_hit(mentioned_at=NOW - age), NOW) == pytest.approx(boost)


def test_a_hit_without_a_date_is_neither_boosted_nor_held_back() -> None:
    during = (NOW - DAY, NOW)

    assert recency_boost(make_hit(), NOW) == 1.0
    assert period_boost(make_hit(), during) == 1.0


@pytest.mark.parametrize(
    ("during", "start", "end", "boost"),
    [
        ((NOW - 10 * DAY, NOW), NOW - 5 * DAY, NOW - 4 * DAY, 1.1),
        ((NOW - 10 * DAY, NOW), NOW - 50 * DAY, NOW - 9 * DAY, 1.1),  # reaches into it
        ((NOW - 10 * DAY, NOW), NOW - 16 * DAY, NOW - 15 * DAY, 1.0),  # half its length away
        ((NOW - 10 * DAY, NOW), NOW + 10 * DAY, NOW + 11 * DAY, 0.9),
        ((NOW - DAY, NOW), NOW + 3.5 * DAY, NOW + 4 * DAY, 1.0),  # a week at least
        ((NOW, None), NOW + 400 * DAY, NOW + 401 * DAY, 1.1),
        ((None, NOW), NOW + 7 * DAY, NOW + 8 * DAY, 0.9),
    ],
)
def test_nearness_to_the_period_falls_linearly_outside_it(
    during: Period, start: datetime, end: datetime, boost: float
) -> None:
    assert period_boost(make_hit(occurred=(start, end)), during) == pytest.approx(boost)


def test_boosts_move_only_what_is_about_equally_relevant() -> None:
    old, new = make_hit("old", rank=1, mentioned_at=NOW - 400 * DAY), make_hit("new", rank=2)
    new = make_hit("new", rank=2, mentioned_at=NOW)

    def order(old_score: float, new_score: float) -> list[str]:
        reranker = FunctionReranker(lambda _query, _texts: [old_score, new_score])
        hits = reranked([old, new], "q", reranker, reference_time=NOW, during=None)
        return [hit.text for hit in hits]

    assert order(0.5, 0.45) == ["new", "old"]
    assert order(0.5, 0.4) == ["old", "new"]


def test_what_lies_behind_the_candidates_keeps_its_order_behind_them() -> None:
    hits = [make_hit("x" * (9 - rank), rank=rank) for rank in range(1, 6)]
    reranker = FunctionReranker(score_by_length)

    found = reranked(hits, "q", reranker, reference_time=NOW, during=None, candidates=3)

    assert [hit.fused_rank for hit in found] == [3, 2, 1, 4, 5]
    assert [hit.rank for hit in found] == [1, 2, 3, 4, 5]


def test_equal_scores_keep_the_fused_order() -> None:
    hits = [make_hit(str(rank), rank=rank) for rank in range(1, 5)]
    reranker = FunctionReranker(lambda _query, texts: [0.5] * len(texts))

    found = reranked(hits, "q", reranker, reference_time=NOW, during=None)

    assert [hit.fused_rank for hit in found] == [1, 2, 3, 4]
