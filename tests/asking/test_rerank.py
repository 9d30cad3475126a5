"""Reranking: the real loading code on a tiny cross-encoder, the boosts, and doing without."""

from __future__ import annotations

import locale
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgrecall import (
    ArmHit,
    CrossEncoderReranker,
    FunctionReranker,
    Hit,
    InvalidArgument,
    OnnxReranker,
    Recall,
    RecallReport,
    Reranker,
    RerankerUnavailable,
)
from pgrecall.asking.dated_text import dated_text
from pgrecall.asking.ranking import (
    FirstPlaces,
    Order,
    period_boost,
    proof_boost,
    recency_boost,
)
from pgrecall.inference import rerankers
from pgrecall.inference.rerankers import (
    DEFAULT_RERANKER,
    PACKAGED,
    PACKAGED_CROSS_ENCODER,
    as_reranker,
    chosen_reranker,
    in_context,
)
from pgrecall.inference.runtime import FILE_BYTES
from pgrecall.rows import Period
from toys import make_hit, save_cross_encoder, save_onnx_cross_encoder, toy_embed

NOW = datetime(2026, 6, 30, 12, tzinfo=timezone.utc)
DAY = timedelta(days=1)


def reranked(
    hits: Sequence[Hit],
    query: str,
    reranker: Reranker,
    *,
    candidates: int = 40,
    during: Period | None,
    **arguments: Any,
) -> list[Hit]:
    """Order the first hits by a reranker, as Order does; the others follow."""
    texts = [dated_text(hit, during) for hit in hits[:candidates]]
    return Order(hits, during=during, **arguments).hits(reranker.scores(query, texts))


class Punctual:
    """Reads as many as it is told to, whatever the time."""

    def __init__(self, read: int) -> None:
        self._read = read

    def scores(self, _query: str, texts: Sequence[str]) -> Sequence[float]:
        return [0.5] * len(texts)

    def scores_within(self, _query: str, texts: Sequence[str], _seconds: float) -> Sequence[float]:
        return [0.5] * min(self._read, len(texts))


def score_by_length(_query: str, texts: Sequence[str]) -> list[float]:
    return [1 / (1 + len(text)) for text in texts]


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_cross_encoder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def onnx(cross_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_onnx_cross_encoder(cross_encoder, tmp_path_factory.mktemp("models") / "onnx")


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
    assert caught.value.hint == "Use a cross-encoder that was trained to score relevance."


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


@pytest.mark.parametrize("reranker", [None, False])
def test_without_a_reranker_the_fused_order_is_kept(
    connection_with_bank: psycopg.Connection[Any], reranker: bool | None
) -> None:
    recall = Recall(connection_with_bank, embedder=toy_embed, reranker=reranker)

    report = recall.recall_report("b", "Maya")

    assert report.degradations == ()
    assert report.timings.rerank == 0
    assert [(hit.rank, hit.final_score) for hit in report.hits] == [
        (hit.fused_rank, hit.score) for hit in report.hits
    ]


@pytest.mark.parametrize(
    ("given", "named", "expected"),
    [
        (DEFAULT_RERANKER, None, DEFAULT_RERANKER),
        (True, "", DEFAULT_RERANKER),
        (DEFAULT_RERANKER, "none", None),
        (None, "some-model", None),
    ],
)
def test_a_client_takes_the_packaged_reranker_where_nothing_else_is_said(
    given: Reranker | bool | None,
    named: str | None,
    expected: Reranker | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PGRECALL_RERANKER")
    if named is not None:
        monkeypatch.setenv("PGRECALL_RERANKER", named)

    assert chosen_reranker(given) is expected


def test_the_packaged_reranker_knows_an_answer_from_a_question_of_the_same_words() -> None:
    answer, other, off = DEFAULT_RERANKER.scores(
        "When did Maya go to the support group?",
        [
            "[Date: June 05, 2022 (2022-06-05)] Maya: I went to a support group yesterday.",
            "[Date: June 05, 2022 (2022-06-05)] Ana: Do they have a group for support, Maya?",
            "[Date: June 05, 2022 (2022-06-05)] Ana: The cake was lovely.",
        ],
    )

    assert answer > 0.5 > off
    assert answer > other


@pytest.mark.parametrize(
    "query",
    [
        "Wer leitet das Atlas-Projekt in Norddeutschland?",
        "wo ist der Schlüssel?",
        "¿Dónde está la llave?",
        "谁负责 Atlas 项目？",
        "Кто это?",
    ],
)
def test_the_packaged_reranker_declines_what_it_cannot_read(query: str) -> None:
    with pytest.raises(RerankerUnavailable) as caught:
        OnnxReranker().scores(query, ["Maya leitet Atlas"])

    assert caught.value.message == (
        "the packaged reranker reads English, and the query is in another language"
    )


@pytest.mark.parametrize(
    "query",
    [
        "Where does Siobhan Brzezinski live?",
        "What impresses John about Japan?",
        "café?",
        "PG-1200 🙂",
        "",
        "padlock code",
        "Kvalvik",
        "release checklist",
        "ops.runbook.7",
        "ORA-00942",
        "hat size",
        "Zwaluwdiep hydrologist",
        "Ana de la Cruz",
        "Who is Ana de la Cruz?",
    ],
)
def test_the_packaged_reranker_reads_names_it_does_not_know(query: str) -> None:
    assert len(OnnxReranker().scores(query, ["Maya leads Atlas"])) == 1


@pytest.mark.parametrize(
    ("language", "least"),
    [("de", 0.84), ("es", 0.94), ("fr", 0.97), ("it", 0.95), ("nl", 0.92), ("pt", 0.95)],
)
def test_most_questions_of_another_language_are_declined(language: str, least: float) -> None:
    cases = Path(__file__).parents[1] / "temporal" / "cases" / f"plain_{language}.txt"
    questions = cases.read_text(encoding="utf-8").splitlines()

    declined = [*map(is_declined, questions)]

    assert sum(declined) / len(questions) >= least


def test_no_question_in_english_is_declined_not_even_a_few_of_its_words() -> None:
    cases = Path(__file__).parents[1] / "temporal" / "cases" / "plain_en.txt"
    words = [question.split() for question in cases.read_text(encoding="utf-8").splitlines()]
    asked = [
        " ".join(part) for all_ in words for n in range(1, 9) for part in (all_[:n], all_[-n:])
    ]

    assert [query for query in asked if is_declined(query)] == []


def is_declined(query: str) -> bool:
    try:
        PACKAGED_CROSS_ENCODER.scores_within(query, ["Maya leads Atlas"], 0)
    except RerankerUnavailable:
        return True
    return False


def test_the_packaged_reranker_reads_a_long_text_in_parts() -> None:
    asked, answer = "Where does Mira live?", "Mira lives in a small flat in Lisbon."
    idle = [f"The committee of ward {n} met, heard a report, and adjourned." for n in range(40)]
    late, never = " ".join([*idle[:14], answer]), " ".join(idle[:15])
    beyond = " ".join([*idle, answer])

    found, nothing, unread, rest = DEFAULT_RERANKER.scores(
        asked, [late, never, beyond, " ".join(idle)]
    )

    assert found > 20 * nothing
    assert unread == rest  # three parts at most, however long a text is


def test_a_context_is_read_as_far_as_it_fits() -> None:
    asked, context = "Where does Mira live?", "Mira lives in a small flat in Lisbon. "
    idle = "The committee of the ward met, heard a report, and adjourned. " * 7

    plain, far = DEFAULT_RERANKER.scores(asked, [idle, in_context(idle, idle + 3 * context)])

    assert far == pytest.approx(plain, abs=0.01)


def test_the_packaged_reranker_weighs_25_megabytes_at_most() -> None:
    files = list(PACKAGED.iterdir())

    assert {file.name for file in files} == {"MODEL_CARD.md", "model.onnx", "tokenizer.json"}
    assert sum(file.stat().st_size for file in files) <= 25 * 2**20


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


@pytest.mark.parametrize(
    ("reranker", "package", "extra"),
    [
        ("some-model", "sentence_transformers", "sentence-transformers"),
        (OnnxReranker(), "onnxruntime", "rerank"),
    ],
)
def test_a_missing_package_degrades_with_the_command(
    reranker: Reranker | str,
    package: str,
    extra: str,
    connection_with_bank: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    recall = Recall(connection_with_bank, embedder=toy_embed, reranker=reranker)

    report = recall.recall_report("b", "Maya")

    assert [hit.rank for hit in report.hits] == [hit.fused_rank for hit in report.hits] == [1, 2]
    assert [(d.what, d.why, d.hint) for d in report.degradations] == [
        (
            "reranker",
            f"cannot rerank: package {package} is missing",
            f"Run: pip install 'pgrecall[{extra}]'",
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

    hits = recall.recall(
        "b", "Atlas is a long project with many people", top_k=1, rerank_mode="replace"
    )

    assert [(hit.text, hit.rank, hit.fused_rank) for hit in hits] == [("Maya leads Atlas", 1, 2)]


@pytest.mark.parametrize(
    ("of_bank", "options", "is_reranked"),
    [
        ({}, {"prefer": "latest"}, False),
        ({}, {"diversity": 0.2}, False),
        ({"prefer": "former"}, {}, False),
        ({"diversity": 0.2}, {}, False),
        ({"prefer": "former", "diversity": 0.2}, {"prefer": "relevant", "diversity": 0}, True),
        ({}, {"prefer": "relevant"}, True),
    ],
)
def test_what_prefer_or_diversity_orders_is_not_reranked(
    connection_with_bank: psycopg.Connection[Any],
    of_bank: dict[str, Any],
    options: dict[str, Any],
    is_reranked: bool,
) -> None:
    recall = Recall(connection_with_bank, embedder=toy_embed, reranker=score_by_length)
    recall.configure_bank("b", of_bank)
    query = "Atlas is a long project with many people"

    alone = recall.recall_report("b", query, rerank_mode="replace", **options)
    [together] = recall.recall_many("b", [query], rerank_mode="replace", **options)

    assert alone.hits == together.hits
    assert [hit.fused_rank for hit in alone.hits] == ([2, 1] if is_reranked else [1, 2])
    assert alone.reranked == (2 if is_reranked else 0)


def test_a_page_behind_the_candidates_is_that_of_the_fused_order(
    connection: psycopg.Connection[Any],
) -> None:
    asked: list[Sequence[str]] = []

    def score(_: str, texts: Sequence[str]) -> list[float]:
        asked.append(texts)
        return [n / 100 for n, _ in enumerate(texts)]

    recall = Recall(connection, embedder=toy_embed, model="toy", reranker=score)
    recall.create_bank("b")
    recall.retain("b", [f"boat {n} is at sea" for n in range(30)])

    whole = recall.recall("b", "boat", top_k=30, candidates=10, depth=50)
    page = recall.recall("b", "boat", top_k=5, skip=20, candidates=10, depth=50)

    assert [(hit.rank, hit.text) for hit in page] == [(n, whole[n - 1].text) for n in range(21, 26)]
    assert len(asked) == 1
    assert recall.recall("b", "boat", skip=5000) == []


def test_the_reranker_reads_date_text_and_context() -> None:
    hit = make_hit(context="standup", occurred=(datetime(2022, 6, 5, tzinfo=timezone.utc), None))

    assert dated_text(hit) == (
        "[Date: June 05, 2022 (2022-06-05)] Maya leads Atlas (context: standup)"
    )


def test_what_nobody_knows_the_time_of_has_no_date() -> None:
    assert dated_text(make_hit(mentioned_at=NOW)) == "Maya leads Atlas"


def test_a_message_is_of_the_day_when_it_was_sent() -> None:
    hit = replace(make_hit(mentioned_at=NOW), kind="message")

    assert dated_text(hit) == "[Date: June 30, 2026 (2026-06-30)] Maya leads Atlas"


@pytest.mark.parametrize(
    ("occurred", "is_marked"),
    [
        ((NOW - 2 * DAY, NOW - DAY), True),
        ((NOW - 9 * DAY, NOW - DAY), True),  # ended then
        ((NOW - DAY, None), True),
        ((NOW - 9 * DAY, NOW + 9 * DAY), False),  # only spans it
        ((NOW - 9 * DAY, NOW - 3 * DAY), False),  # ended as it began
        ((NOW, None), False),
    ],
)
def test_the_words_for_a_time_stand_at_what_began_or_ended_then(
    occurred: Period, is_marked: bool
) -> None:
    text = dated_text(make_hit(occurred=occurred), (NOW - 3 * DAY, NOW), "last week")

    assert (", last week] Maya" in text) == is_marked


@pytest.mark.parametrize("asked", ["in 2026", "on the 29th of June", "from June 1, 2026 to july"])
def test_a_date_in_the_question_is_not_said_twice(asked: str) -> None:
    hit = make_hit(occurred=(NOW - DAY, None))

    text = dated_text(hit, (NOW - 3 * DAY, NOW), asked)

    assert text == "[Date: June 29, 2026 (2026-06-29)] Maya leads Atlas"


@pytest.mark.parametrize("during", [(None, NOW), (NOW - 3 * DAY, None)])
def test_a_time_asked_about_may_be_open(during: Period) -> None:
    hit = make_hit(occurred=(NOW - DAY, None))

    assert "(2026-06-29), lately] " in dated_text(hit, during, "lately")


def test_the_reranker_reads_the_path_before_the_fact() -> None:
    hit = replace(make_hit(context="standup"), via={"text": "Ana reports to Maya.", "facts": [1]})

    assert dated_text(hit) == "Ana reports to Maya. → Maya leads Atlas (context: standup)"


def test_a_long_path_is_cut_and_not_the_fact() -> None:
    hit = replace(make_hit(), via={"text": "x" * 900})

    assert dated_text(hit) == f"{'x' * 320} → Maya leads Atlas"


def test_a_hit_without_date_and_context_is_read_as_it_is() -> None:
    assert dated_text(make_hit()) == "Maya leads Atlas"


def test_months_are_english_in_every_locale() -> None:
    before = locale.setlocale(locale.LC_TIME)
    try:
        locale.setlocale(locale.LC_TIME, "")
        assert dated_text(make_hit(occurred=(NOW, None))).startswith("[Date: June 30, 2026")
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
    hit = make_hit(occurred=(NOW - age, None))

    assert recency_boost(hit, NOW, 0.2) == pytest.approx(boost)


def test_a_hit_without_a_date_is_neither_boosted_nor_held_back() -> None:
    during = (NOW - DAY, NOW)

    hit = make_hit(mentioned_at=NOW)

    assert recency_boost(hit, NOW, 0.2) == 1.0
    assert period_boost(hit, during, 0.2) == 1.0


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
    assert period_boost(make_hit(occurred=(start, end)), during, 0.2) == pytest.approx(boost)


@pytest.mark.parametrize(
    ("count", "boost"), [(None, 1), (1, 1), (2, 1.05), (4, 1.075), (10**9, 1.1)]
)
def test_each_further_proof_counts_less(count: int | None, boost: float) -> None:
    assert proof_boost(make_hit(proof_count=count), 0.2) == pytest.approx(boost)


def test_boosts_are_multiplied_with_one_another() -> None:
    hit = make_hit(mentioned_at=NOW, occurred=(NOW - DAY, NOW), proof_count=2)

    (found,) = reranked(
        [hit],
        "q",
        FunctionReranker(lambda _query, _texts: [0.5]),
        reference_time=NOW,
        during=(NOW - DAY, NOW),
        boosts={"recency": 0.2, "period": 0.1, "proof": 0.4},
    )

    assert found.boost == pytest.approx(recency_boost(hit, NOW, 0.2) * 1.05 * 1.1)
    assert found.final_score == pytest.approx(0.5 * found.boost)


def test_boosts_move_only_what_is_about_equally_relevant() -> None:
    old = make_hit("old", rank=1, occurred=(NOW - 400 * DAY, None))
    new = make_hit("new", rank=2, occurred=(NOW, None))

    def order(old_score: float, new_score: float) -> list[str]:
        hits = reranked(
            [old, new],
            "q",
            FunctionReranker(lambda _query, _texts: [old_score, new_score]),
            reference_time=NOW,
            during=None,
            mode="replace",
            boosts={"recency": 0.2},
        )
        return [hit.text for hit in hits]

    assert order(0.5, 0.45) == ["new", "old"]
    assert order(0.5, 0.4) == ["old", "new"]


def test_what_lies_behind_the_candidates_keeps_its_order_behind_them() -> None:
    hits = [make_hit("x" * (9 - rank), rank=rank) for rank in range(1, 6)]
    reranker = FunctionReranker(score_by_length)

    found = reranked(
        hits, "q", reranker, reference_time=NOW, during=None, candidates=3, mode="replace"
    )

    assert [hit.fused_rank for hit in found] == [3, 2, 1, 4, 5]
    assert [hit.rank for hit in found] == [1, 2, 3, 4, 5]
    assert [hit.final_score for hit in found[3:]] == [0, 0]
    assert [hit.rerank_score for hit in found[3:]] == [None, None]


def test_blending_takes_the_fused_score_for_the_odds_beforehand() -> None:
    hits = [
        replace(make_hit(str(rank), rank=rank), score=score)
        for rank, score in enumerate([0.8, 0.6, 0.4, 0.0], 1)
    ]
    reranker = FunctionReranker(lambda _query, _texts: [0.5, 0.95, 0.95, 0.95])

    found = reranked(hits, "q", reranker, reference_time=NOW, during=None)

    odds = [19 * 0.75**6, 1, 19 * 0.5**6, 0]
    assert [hit.fused_rank for hit in found] == [2, 1, 3, 4]
    assert [hit.final_score for hit in found] == pytest.approx(
        [o / (1 + o) for o in odds], abs=1e-9
    )


def test_hits_of_no_fused_score_go_by_their_relevance() -> None:
    hits = [replace(make_hit(str(rank), rank=rank), score=0.0) for rank in (1, 2)]
    reranker = FunctionReranker(lambda _query, _texts: [0.2, 0.4])

    found = reranked(hits, "q", reranker, reference_time=NOW, during=None)

    assert {hit.fused_rank: hit.final_score for hit in found} == pytest.approx({1: 0.2, 2: 0.4})


@pytest.mark.parametrize(
    ("arm", "score", "expected"),
    [("graph", 0.2, 1 / 3), ("key", 0.2, 1 / 3), ("lexical", 0.2, 0.2), ("graph", 0.8, 0.8)],
)
def test_a_doubt_counts_half_where_half_is_not_in_the_text(
    arm: str, score: float, expected: float
) -> None:
    arms = {arm: ArmHit(1, 1.0, 0.1), "semantic": ArmHit(1, 1.0, 0.1)}
    hit = replace(make_hit(), score=0.2, arms=arms)
    reranker = FunctionReranker(lambda _query, _texts: [score])

    (found,) = reranked([hit], "q", reranker, reference_time=NOW, during=None)

    assert found.final_score == pytest.approx(expected)


def test_a_doubt_counts_half_where_one_row_of_a_source_is_read(
    connection: psycopg.Connection[Any],
) -> None:
    recall = Recall(
        connection, embedder=None, reranker=lambda _query, texts: [0.2] * (len(texts) - 1) + [0.8]
    )
    recall.create_bank("b")
    recall.retain(
        "b",
        [
            {"text": "Maya leads Atlas with Ana", "source_id": "report"},
            {"text": "Maya and Ben saw a film on Friday", "source_id": "diary"},
        ],
    )

    alone = recall.recall("b", "Maya leads Atlas")
    best = recall.recall("b", "Maya leads Atlas", collapse=True)

    assert [hit.rerank_score for hit in alone if hit.source_id == "report"] == [0.2]
    scores = [
        next(hit.final_score for hit in hits if hit.source_id == "report") for hits in (alone, best)
    ]
    assert scores == pytest.approx([0.2, 1 / 3])


@pytest.mark.parametrize(
    ("minutes", "mode", "expected"),
    [
        ((0, 1000, 1059), "blend", [2, 3, 1]),
        ((1059, 0, 59), "blend", [2, 3, 1]),
        ((0, 1000, 1060), "blend", [1, 2, 3]),
        ((0, 59, 118), "blend", [1, 2, 3]),
        ((0, None, None), "blend", [2, 3, 1]),
        ((None, None, None), "blend", [1, 2, 3]),
        ((0, 1000, 1059), "replace", [1, 2, 3]),
    ],
)
def test_what_was_said_in_the_likeliest_session_comes_first(
    minutes: Sequence[int | None], mode: str, expected: Sequence[int]
) -> None:
    hits = [
        replace(
            make_hit(str(rank), rank=rank),
            score=0.1,
            mentioned_at=None if after is None else NOW + after * timedelta(minutes=1),
        )
        for rank, after in enumerate(minutes, 1)
    ]
    reranker = FunctionReranker(lambda _query, _texts: [0.6, 0.5, 0.5])

    found = reranked(hits, "q", reranker, reference_time=NOW, during=None, mode=mode)

    assert [hit.fused_rank for hit in found] == expected


def test_a_session_weighs_by_its_share_of_what_is_likely() -> None:
    hits = [
        replace(make_hit(str(rank), rank=rank, mentioned_at=NOW + days * DAY), score=0.1)
        for rank, days in enumerate([0, 1, 1], 1)
    ]
    reranker = FunctionReranker(lambda _query, _texts: [0.6, 0.5, 0.5])

    found = reranked(hits, "q", reranker, reference_time=NOW, during=None)

    odds = 1.5 * math.exp(4 * (0.6 / 1.6 - 1 / 1.6))
    assert [hit.final_score for hit in found] == pytest.approx([0.5, 0.5, odds / (1 + odds)])


def test_a_reranker_that_is_quite_sure_outdoes_the_fused_order() -> None:
    hits = [make_hit(str(rank), rank=rank) for rank in range(1, 41)]
    reranker = FunctionReranker(lambda _query, texts: [0.0] * (len(texts) - 1) + [1.0])

    found = reranked(hits, "q", reranker, reference_time=NOW, during=None)

    assert [hit.fused_rank for hit in found] == [40, *range(1, 40)]
    assert 0 < found[-1].final_score < found[0].final_score < 1


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30),
    st.integers(1, 40),
    st.sampled_from(["blend", "replace"]),
)
def test_the_order_is_that_of_the_final_score(
    scores: list[float], candidates: int, mode: str
) -> None:
    hits = [
        replace(
            make_hit(str(n), rank=n + 1, occurred=(NOW - n * DAY, None)),
            mentioned_at=n % 4 and NOW + n % 7 * timedelta(minutes=40) or None,
            via=n % 3 and {} or None,
        )
        for n in range(len(scores))
    ]
    reranker = FunctionReranker(
        lambda _query, texts: [scores[int(text.rpartition(" ")[2])] for text in texts]
    )

    found = reranked(
        hits,
        "q",
        reranker,
        reference_time=NOW,
        during=(NOW - 3 * DAY, NOW),
        candidates=candidates,
        mode=mode,
        boosts={"recency": 0.3},
    )

    final = [hit.final_score for hit in found]
    assert final == sorted(final, reverse=True)
    assert all(0 <= score <= 1.3 for score in final)
    assert [hit.rank for hit in found] == list(range(1, len(hits) + 1))
    assert sorted(hit.fused_rank for hit in found) == list(range(1, len(hits) + 1))


def test_candidates_there_is_no_time_for_stay_behind_in_fused_order(
    connection_with_bank: psycopg.Connection[Any],
) -> None:
    recall = Recall(connection_with_bank, embedder=toy_embed, reranker=Punctual(read=1))

    report = recall.recall_report("b", "Maya", rerank_seconds=0.25)

    assert [hit.fused_rank for hit in report.hits] == [1, 2]
    assert [hit.rerank_score for hit in report.hits] == [0.5, None]
    assert [(d.what, d.why, d.hint) for d in report.degradations] == [
        (
            "reranker",
            "1 of 2 candidates were read in 0.25 s; the others follow in fused order",
            "Allow more time with rerank_seconds=..., or ask for fewer candidates=...",
        )
    ]


def test_no_time_at_all_keeps_the_fused_order(onnx: Path) -> None:
    hits = [make_hit("x" * (9 - rank), rank=rank) for rank in range(1, 6)]

    scores = OnnxReranker(onnx).scores_within("q", [hit.text for hit in hits], 0)
    found = Order(hits, reference_time=NOW, during=None).hits(scores)

    assert [hit.fused_rank for hit in found] == [1, 2, 3, 4, 5]
    assert [hit.rerank_score for hit in found] == [None] * 5


def test_batches_that_no_longer_fit_are_not_read(cross_encoder: Path) -> None:
    reranker = CrossEncoderReranker(cross_encoder, batch_size=2)

    assert reranker.scores_within("who", ["maya", "ana", "atlas", "leads", "in"], 0) == []


def test_nothing_is_read_once_the_first_places_are_settled() -> None:
    hits = [replace(make_hit(str(n), rank=n), score=0.97**n) for n in range(1, 51)]
    order = Order(hits, reference_time=NOW, during=None)

    def read(relevance: float, returned: int) -> int:
        first = FirstPlaces(order, 50, returned)
        return next((n for n in range(1, 51) if first(relevance)), 50)

    assert [read(0.9, 5), read(0.9, 10), read(0.9, 40)] == [12, 12, 50]
    assert read(0.9, 20) == 36
    assert 12 < read(0.1, 10) < read(0.03, 10) < 50


def test_more_is_read_where_none_of_the_first_answers(
    connection: psycopg.Connection[Any], onnx: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def report(relevance: float, **options: Any) -> RecallReport:
        reranker = OnnxReranker(onnx)
        monkeypatch.setattr(
            reranker,
            "_answers",
            lambda pairs: [math.log(relevance / (1 - relevance)) for _ in pairs],
        )
        recall = Recall(connection, embedder=toy_embed, reranker=reranker)
        recall.create_bank("many", exist_ok=True)
        recall.retain("many", [f"Maya {'leads ' * n}Atlas" for n in range(40)])
        return recall.recall_report("many", "who leads Atlas", **options)

    sure, unsure, exact = report(0.99), report(0.001), report(0.99, candidates=30)

    assert (sure.reranked, unsure.reranked, exact.reranked) == (12, 40, 30)
    assert sure.degradations == unsure.degradations == ()
    assert all(hit.rerank_score for hit in sure.hits)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"candidates": 0}, "candidates is 0, not 1 or more"),
        ({"candidates": 1001}, "candidates is 1001, more than 1000"),
        ({"rerank_mode": "mix"}, 'there is no rerank_mode "mix"'),
        ({"rerank_seconds": -1}, "rerank_seconds is -1, not 0 or more"),
        ({"rerank_seconds": float("nan")}, "rerank_seconds is nan, not 0 or more"),
        ({"boosts": {"age": 0.2}}, 'there is no boost "age"'),
        ({"boosts": {"period": 2}}, 'the boost "period" is 2, not 0 to 1'),
    ],
)
def test_what_cannot_be_reranked_with_is_refused(
    pgrecall: Recall, option: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        pgrecall.recall("b", "q", **option)

    assert caught.value.message == message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (
            {"skip": 30, "top_k": 980},
            "skip + top_k is 1010, more than 1000, from which a reranked page is cut",
        ),
        ({"top_k": 1001}, "top_k must be between 1 and 1000, not 1001"),
    ],
)
def test_a_page_that_cannot_be_reranked_is_named_as_it_was_asked_for(
    pgrecall: Recall, page: dict[str, Any], message: str
) -> None:
    pgrecall.create_bank("b")
    reranking = Recall(
        pgrecall._source, embedder=None, reranker=lambda _, texts: [0.5] * len(texts)
    )

    with pytest.raises(InvalidArgument) as caught:
        reranking.recall("b", "q", temporal=False, **page)

    assert caught.value.message == message
    assert caught.value.hint


def test_an_onnx_model_says_what_the_same_model_says_in_torch(
    cross_encoder: Path, onnx: Path
) -> None:
    texts = ["maya leads atlas", "ana", "the date in atlas " * 100]

    torch, onnxruntime = (
        as_reranker(path).scores("who leads", texts) for path in (cross_encoder, onnx)
    )

    assert onnxruntime == pytest.approx(torch, abs=1e-5)


def test_an_onnx_score_does_not_depend_on_what_is_scored_beside_it(onnx: Path) -> None:
    texts = ["maya leads atlas", "ana", "the date in atlas"]

    together = OnnxReranker(onnx, threads=3).scores("who", texts)

    assert together == [OnnxReranker(onnx).scores("who", [text])[0] for text in texts]


def test_a_pair_is_scored_once(onnx: Path) -> None:
    reranker = OnnxReranker(onnx)
    first = reranker.scores("who", ["maya", "ana"])

    assert reranker.scores_within("who", ["ana", "maya", "atlas"], 0) == [first[1], first[0]]
    assert reranker.scores_within("who leads", ["ana"], 0) == []


def test_the_oldest_of_what_is_remembered_goes_first(
    onnx: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerankers, "_REMEMBERED", 2)
    reranker = OnnxReranker(onnx)
    reranker.scores("who", ["maya", "ana"])
    reranker.scores("who", ["maya"])

    reranker.scores("who", ["atlas"])

    assert [len(reranker.scores_within("who", [text], 0)) for text in ("maya", "ana")] == [1, 0]


def test_an_onnx_model_with_several_outputs_is_refused(tmp_path: Path) -> None:
    source = save_cross_encoder(tmp_path / "three", outputs=3)
    path = save_onnx_cross_encoder(source, tmp_path / "onnx")

    with pytest.raises(RerankerUnavailable) as caught:
        OnnxReranker(path).load()

    assert caught.value.message == f'the reranker "{path}" has 3 outputs, not 1'


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_broken_onnx_model_cannot_be_loaded(onnx: Path, tmp_path: Path, name: str) -> None:
    for file in onnx.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / name).write_bytes(b"x")

    with pytest.raises(RerankerUnavailable) as caught:
        OnnxReranker(tmp_path).load()

    assert caught.value.message.startswith(f'cannot load the reranker "{tmp_path}": ')


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_file_of_a_model_that_is_too_large_is_not_read(
    onnx: Path, tmp_path: Path, name: str
) -> None:
    for file in onnx.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    os.truncate(tmp_path / name, FILE_BYTES + 1)  # takes no room on the disk

    with pytest.raises(RerankerUnavailable) as caught:
        OnnxReranker(tmp_path).load()

    assert caught.value.message == (
        f'cannot load the reranker "{tmp_path}": {name} has 2,147,483,649 bytes, more than'
        " 2,147,483,648"
    )


@pytest.mark.parametrize(
    ("scores", "mode", "expected"),
    [
        ([0.1, 0.2, 0.3, 0.9], "blend", [4, 2, 3, 1]),  # 2 keeps its place
        ([0.1, 0.99, 0.3, 0.4], "blend", [2, 4, 3, 1]),  # and may rise
        ([0.1, 0.2, 0.3, 0.9], "replace", [4, 3, 2, 1]),
    ],
)
def test_a_hit_with_a_path_never_falls_behind_its_fused_place(
    scores: list[float], mode: str, expected: list[int]
) -> None:
    hits = [make_hit(str(rank), rank=rank) for rank in range(1, 5)]
    hits[1] = replace(hits[1], via={"facts": [1]})
    reranker = FunctionReranker(lambda _query, _texts: scores)

    found = reranked(hits, "q", reranker, reference_time=NOW, during=None, mode=mode)

    assert [hit.fused_rank for hit in found] == expected


@pytest.mark.parametrize(
    ("scores", "mode", "expected"),
    [
        ([0.1, 0.2, 0.3, 0.9], "blend", [2, 3, 4, 1]),
        ([0.4, 0.2, 0.3, 0.9], "blend", [2, 1, 3, 4]),
        ([0.1, 0.2, 0.3, 0.9], "replace", [4, 3, 2, 1]),
    ],
)
def test_states_of_a_hit_share_their_places_in_fused_order(
    scores: list[float], mode: str, expected: list[int]
) -> None:
    hits = [replace(make_hit(str(rank), rank=rank), score=0.1) for rank in range(1, 5)]
    hits[2:] = [replace(hit, variant_of=2) for hit in hits[2:]]
    reranker = FunctionReranker(lambda _query, _texts: scores)

    found = reranked(hits, "q", reranker, reference_time=NOW, during=None, mode=mode)

    assert [hit.memory_id for hit in found] == expected
    assert [hit.final_score for hit in found] == pytest.approx(sorted(scores, reverse=True))
    assert {hit.memory_id: hit.rerank_score for hit in found} == dict(enumerate(scores, 1))


def test_a_hit_that_is_held_takes_the_final_score_of_the_best_behind_it() -> None:
    hits = [replace(make_hit(str(rank), rank=rank), score=0.1) for rank in (1, 2, 3)]
    hits[1] = replace(hits[1], via={"facts": [1]})
    reranker = FunctionReranker(lambda _query, _texts: [0.4, 0.2, 0.6])

    found = reranked(hits, "q", reranker, reference_time=NOW, during=None)

    assert [hit.fused_rank for hit in found] == [3, 2, 1]
    assert [hit.final_score for hit in found] == pytest.approx([0.6, 0.4, 0.4])


def test_equal_scores_keep_the_fused_order() -> None:
    hits = [make_hit(str(rank), rank=rank) for rank in range(1, 5)]
    reranker = FunctionReranker(lambda _query, texts: [0.5] * len(texts))

    found = reranked(hits, "q", reranker, reference_time=NOW, during=None)

    assert [hit.fused_rank for hit in found] == [1, 2, 3, 4]
