"""Measuring answers, and tuning a bank by them."""

from __future__ import annotations

import json
import math
import random
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from pgrecall import (
    BankNotFound,
    FunctionEmbedder,
    InstallError,
    InvalidArgument,
    Recall,
    RerankerUnavailable,
)
from pgrecall.command import main
from pgrecall.evaluation import Ranking, tune
from pgrecall.evaluation.measure import (
    CUTOFF,
    Asking,
    Evaluation,
    Score,
    evaluate,
    intervals,
    judged_questions,
    trec_questions,
)
from toys import toy_embed

Run = Callable[..., tuple[int, str, str]]

SIZE = 40
PLACES = ("harbour", "tower", "garden", "market")
# No identifiers, beside which embeddings are doubted whatever weight a bank gives them.
THINGS = [f"thing{one}{other}" for one in "bcdfg" for other in "bcdfgkmp"]


def noise(texts: Sequence[str]) -> list[list[float]]:
    """Embed texts so that nearness means nothing."""
    return [
        [random.Random(zlib.crc32(f"{text} {i}".encode())).gauss(0, 1) for i in range(16)]
        for text in texts
    ]


USELESS = FunctionEmbedder(noise, "noise", 16)
TRUSTING = {"weights": {"semantic": 5, "lexical": 0.5}, "similarity_floor": -1}
FACTS = [
    {
        "text": f"{THINGS[i]} lies in the {PLACES[i % 4]}",
        "fact_key": f"thing.{i}",
        "source_id": f"doc-{i}",
    }
    for i in range(SIZE)
]
ROWS: list[dict[str, Any]] = [
    {"question": f"Where is {THINGS[i]}?", "relevant": [f"thing.{i}"], "category": PLACES[i % 4]}
    for i in range(SIZE)
]


@pytest.fixture
def misled(connection: psycopg.Connection[Any]) -> Recall:
    """A bank whose embeddings say nothing, and which trusts them most of all."""
    recall = Recall(connection, embedder=USELESS)
    recall.create_bank("b", settings=TRUSTING)
    recall.retain("b", FACTS)
    return recall


@pytest.fixture
def run(database: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("PGRECALL_RERANKER", raising=False)
    monkeypatch.setattr("pgrecall.command.actions.DEFAULT_EMBEDDER", USELESS)
    with Recall.connect(database, embedder=USELESS) as recall:
        recall.create_bank("b", settings=TRUSTING)
        recall.retain("b", FACTS)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments, "--dsn", database])
        return code, *capsys.readouterr()

    return run


def write(path: Path, *rows: object) -> str:
    path.write_text("".join(f"{r if isinstance(r, str) else json.dumps(r)}\n" for r in rows))
    return str(path)


@pytest.fixture
def qrels(tmp_path: Path) -> str:
    return write(tmp_path / "qrels.jsonl", *ROWS)


def score(evaluation: Evaluation, name: str, category: str | None = None) -> Score:
    (found,) = [s for s in evaluation.scores if (s.name, s.category) == (name, category)]
    return found


def settings(recall: Recall) -> Ranking:
    return Ranking.of(recall.bank_options("b"), recall.arms())


def test_the_measures_are_those_of_the_books(pgrecall: Recall) -> None:
    pgrecall = Recall(pgrecall._source, embedder=None)
    pgrecall.create_bank("b")
    pgrecall.retain("b", [{"text": "apple apple", "fact_key": "first"}, "apple pear plum cherry"])
    pgrecall.retain("b", [{"text": f"apple and {w} and more", "fact_key": w} for w in ("x", "yy")])
    order = [hit.fact_key for hit in pgrecall.recall("b", "apple", arms=["lexical"])]
    (second, last) = (order[1], order[3])
    graded = {str(second or "none"): 2, str(last or "none"): 1, "nowhere": 1}

    found = evaluate(
        pgrecall, "b", judged_questions([{"question": "apple", "relevant": graded}]), k=3
    )

    gain = graded_gain(order, graded)
    alone = score(found, "lexical")
    assert alone.ndcg.mean == pytest.approx(gain)
    assert alone.recall.mean == pytest.approx(sum(k in graded for k in order[:3]) / 3)
    assert alone.mrr.mean == pytest.approx(
        1 / next(i for i, k in enumerate(order, 1) if k in graded)
    )
    assert found.unknown_ids == tuple(k for k in graded if k not in order)


def graded_gain(order: Sequence[str | None], graded: dict[str, int]) -> float:
    """nDCG as Jarvelin and Kekalainen 2002 have it, with the grade itself as gain."""
    gain = sum(graded.get(k or "", 0) / math.log2(i + 2) for i, k in enumerate(order))
    best = sorted(graded.values(), reverse=True)
    return gain / sum(grade / math.log2(i + 2) for i, grade in enumerate(best))


def test_a_useless_arm_is_seen_to_be_useless(misled: Recall) -> None:
    found = evaluate(misled, "b", judged_questions(ROWS))

    assert found.by == "fact_key"
    assert found.best_arm is not None
    assert found.best_arm.name == "lexical"
    assert score(found, "lexical").ndcg.mean == 1
    assert score(found, "semantic").ndcg.high < 0.5
    assert score(found, "fused").ndcg.mean < 1
    assert score(found, "lexical").behind.high < 0
    assert {s.category for s in found.scores} == {None, *PLACES}
    assert sum(s.questions for s in found.scores if s.name == "fused" and s.category) == SIZE


def test_the_fused_row_is_what_recall_answers(misled: Recall) -> None:
    answers = [misled.recall("b", row["question"], top_k=CUTOFF) for row in ROWS]
    hits = [
        any(hit.fact_key in row["relevant"] for hit in answer)
        for row, answer in zip(ROWS, answers, strict=True)
    ]

    found = evaluate(misled, "b", judged_questions(ROWS))

    assert score(found, "fused").recall.mean == pytest.approx(sum(hits) / SIZE)


def test_an_interval_holds_the_mean_and_the_same_questions_give_the_same_one() -> None:
    rows = [[0.0, 1.0, 0.5, 0.25, 1.0, 0.0], [1.0] * 6]

    first, certain = intervals(rows)

    assert first.low < first.mean < first.high
    assert (certain.low, certain.mean, certain.high) == (1, 1, 1)
    assert intervals(rows)[0] == first


def test_a_difference_is_taken_question_by_question() -> None:
    import numpy as np

    values = np.random.default_rng(1).random(50)

    (difference,) = intervals([(values + 0.1) - values])

    assert difference.low == pytest.approx(difference.high)


@pytest.mark.parametrize("field", ["fact_key", "source_id", "memory_id"])
def test_what_the_ids_are_is_found_out(misled: Recall, field: str) -> None:
    hit = misled.recall("b", THINGS[7], arms=["lexical"], top_k=1)[0]
    rows = [{"question": THINGS[7], "relevant": [str(getattr(hit, field))]}]

    found = evaluate(misled, "b", judged_questions(rows))

    assert found.by == field
    assert score(found, "lexical").mrr.mean == 1


def test_ids_the_bank_does_not_hold_are_named_and_count_as_not_found(misled: Recall) -> None:
    rows = [{"question": THINGS[1], "relevant": ["thing.1", "gone"]}]

    found = evaluate(misled, "b", judged_questions(rows))

    assert found.unknown_ids == ("gone",)
    assert score(found, "lexical").recall.mean == 0.5


def test_an_id_of_more_digits_than_python_reads_is_one_that_the_bank_does_not_hold(
    misled: Recall,
) -> None:
    rows = [{"question": THINGS[1], "relevant": ["thing.1", "9" * 5000]}]

    assert evaluate(misled, "b", judged_questions(rows)).unknown_ids == ("9" * 5000,)


def test_questions_without_an_answer_are_left_out_and_counted(misled: Recall) -> None:
    rows = [*ROWS[:2], {"question": "Who is nobody?", "relevant": []}]

    found = evaluate(misled, "b", judged_questions(rows))

    assert (found.questions, found.left_out) == (2, 1)


def test_each_question_is_embedded_once(connection: psycopg.Connection[Any]) -> None:
    embedded: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        embedded.extend(texts)
        return toy_embed(texts)

    recall = Recall(connection, embedder=FunctionEmbedder(embed, "toy"))
    recall.create_bank("b")
    recall.retain("b", FACTS[:3])
    embedded.clear()

    evaluate(recall, "b", judged_questions([*ROWS[:3], ROWS[0]]))

    assert embedded == [str(row["question"]) for row in ROWS[:3]]


def test_reranking_is_measured_beside_the_fused_order(misled: Recall) -> None:
    def by_words(query: str, texts: Sequence[str]) -> list[float]:
        words = set(query.lower().strip("?").split())
        return [len(words & set(text.lower().split())) / len(words) for text in texts]

    recall = Recall(misled._source, embedder=USELESS, reranker=by_words)

    found = evaluate(recall, "b", judged_questions(ROWS), rerank=True)

    assert score(found, "reranked").ndcg.low > score(found, "fused").ndcg.high


def test_a_reranker_that_is_not_there_is_an_error(misled: Recall) -> None:
    with pytest.raises(RerankerUnavailable, match="no reranker is set"):
        evaluate(misled, "b", judged_questions(ROWS[:1]), rerank=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k must be between 1 and 1000, not 0"),
        ({"by": "name"}, 'by must be one of fact_key, source_id, memory_id, not "name"'),
        ({"by": "source_id"}, 'bank "b" holds none of the 1 relevant ids as source_id, such as'),
    ],
)
def test_wrong_arguments_are_refused(
    misled: Recall, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        evaluate(misled, "b", judged_questions(ROWS[:1]), **arguments)

    assert caught.value.message.startswith(message)


def test_a_bank_that_is_not_there_is_an_error(misled: Recall) -> None:
    with pytest.raises(BankNotFound):
        evaluate(misled, "no", judged_questions(ROWS[:1]))


def test_a_missing_package_is_named_with_what_to_run(
    misled: Recall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)

    with pytest.raises(InstallError) as caught:
        evaluate(misled, "b", judged_questions(ROWS[:1]))

    assert caught.value.message == "cannot measure: package ir_measures is missing"
    assert caught.value.hint == "Run: pip install 'pgrecall[eval]'"


def test_other_rankings_are_joined_as_recall_would(connection: psycopg.Connection[Any]) -> None:
    recall = Recall(connection, embedder=FunctionEmbedder(toy_embed, "toy"))
    recall.create_bank("b", settings={"weights": {"graph": 0}, "similarity_floor": -1})
    hour = "2026-03-0{}T{:02}:00Z"  # of its own, for hits with the same score are in any order
    facts = [
        {**fact, "occurred": hour.format(1 + i % 9, i % 24), "entities": [THINGS[i], PLACES[i % 4]]}
        for i, fact in enumerate(FACTS)
    ]
    recall.retain("b", facts)
    rows = [{**row, "question": f"{row['question']} garden on 2026-03-05"} for row in ROWS[:8]]
    asking = Asking(recall, "b", judged_questions(rows), by=None)
    weights = dict(asking.ranking.weights)
    ways = [
        # The graph starts from what the other arms found, as they are weighed.
        Ranking(fusion, k, {**weights, "graph": 0.0, "key": 0.0}, gates, boost)
        for boost in (0.5, 0.0, 2.0)
        for fusion in ("linear", "rrf", "score_rrf")
        for k in (2, 60)
        for gates in ({}, {"semantic": 0.9, "lexical": 1.0}, dict.fromkeys(weights, 1000.0))
    ]

    pools = [asking.pool(position) for position in range(len(rows))]
    assert all(any(hit.named for hit in pool.hits) for pool in pools)
    for position, pool in enumerate(pools):
        for way, ids in zip(ways, pool.fused(recall, ways, top_k=CUTOFF), strict=True):
            hits = recall.recall(
                "b",
                str(rows[position]["question"]),
                weights=dict(way.weights),
                gates=dict(way.gates),
                fusion=cast("Any", way.fusion),
                rrf_k=way.rrf_k,
                named_boost=way.named_boost,
                top_k=CUTOFF,
            )
            assert ids == [hit.fact_key for hit in hits]


def test_tuning_finds_out_that_an_arm_is_useless(misled: Recall) -> None:
    before = settings(misled)

    found = tune(misled, "b", judged_questions(ROWS))

    assert found.is_gain
    assert found.gains[0].gain.mean == pytest.approx(
        found.gains[0].tuned.mean - found.gains[0].present.mean
    )
    assert found.best.weights["semantic"] < found.best.weights["lexical"]
    assert {gain.category for gain in found.gains} == {None, *PLACES}
    assert found.present == before == settings(misled)
    assert found.is_complete


def test_tuning_finds_out_that_names_mislead(connection: psycopg.Connection[Any]) -> None:
    recall = Recall(connection, embedder=None)
    recall.create_bank("b", settings={"named_boost": 2, "weights": {"graph": 0}})
    for i in range(SIZE):
        told: dict[str, Any] = {"text": f"Ana likes {THINGS[i]}", "entities": ["Ana"]}
        recall.retain(
            "b", [told, {"text": f"{THINGS[i]} lies in a dark cellar", "fact_key": f"k{i}"}]
        )
    rows = [
        {"question": f"Ana asks which dark cellar {THINGS[i]} lies in", "relevant": [f"k{i}"]}
        for i in range(SIZE)
    ]

    found = tune(recall, "b", judged_questions(rows))

    assert found.is_gain
    assert found.present.named_boost == 2
    assert found.best == replace(found.present, named_boost=found.best.named_boost)
    recall.configure_bank("b", found.settings)
    assert settings(recall) == found.best


def test_tuning_finds_out_that_proofs_count(connection: psycopg.Connection[Any]) -> None:
    recall = Recall(connection, embedder=None, reranker=lambda _query, texts: [0.5 for _ in texts])
    recall.create_bank("b")
    for i in range(SIZE):
        told = {"text": f"{THINGS[i]} lies in a cellar", "mentioned_at": "2026-03-05"}
        recall.retain("b", [{**told, "source_id": f"s{i}", "proof_count": 9}])
        recall.retain("b", [{**told, "source_id": "hearsay", "mentioned_at": "2026-03-06"}])
    rows = [{"question": THINGS[i], "relevant": [f"s{i}"]} for i in range(SIZE)]
    questions = judged_questions(rows)

    found = tune(recall, "b", questions, rerank=True)

    assert found.boosting is not None
    assert found.boosting.boosts["proof"] > 0
    assert found.boosting.tried == 13
    (gain,) = found.boosting.gains
    assert gain.gain.low > 0
    assert gain.tuned.mean == 1
    assert tune(recall, "b", questions).boosting is None


def test_boosts_cannot_be_tuned_without_a_reranker(misled: Recall) -> None:
    with pytest.raises(RerankerUnavailable, match="no reranker is set"):
        tune(misled, "b", judged_questions(ROWS), rerank=True)


def test_tuning_is_the_same_each_time(misled: Recall) -> None:
    questions = judged_questions(ROWS[:12])

    assert tune(misled, "b", questions, folds=3) == tune(misled, "b", questions, folds=3)


def test_tuning_ends_with_its_budget(misled: Recall) -> None:
    found = tune(misled, "b", judged_questions(ROWS[:6]), folds=2, budget=0)

    assert not found.is_complete
    assert 1 < found.tried < 60


def test_nothing_is_gained_where_nothing_can_be(misled: Recall) -> None:
    misled.configure_bank("b", {"weights": {"semantic": 0}})

    found = tune(misled, "b", judged_questions(ROWS))

    assert not found.is_gain
    assert found.best == found.present


@pytest.mark.parametrize("folds", [1, 5])
def test_there_must_be_a_question_for_each_fold(misled: Recall, folds: int) -> None:
    with pytest.raises(InvalidArgument, match="folds must be between 2 and 4") as caught:
        tune(misled, "b", judged_questions(ROWS[:4]), folds=folds)

    assert caught.value.hint


def test_the_command_measures(run: Run, qrels: str) -> None:
    code, out, _ = run("eval", "b", qrels)

    assert code == 0
    assert "all questions (40)" in out
    assert "harbour (10)" in out
    assert "lexical alone" in out
    assert "plain RRF" in out
    assert "Fusion is worse than the best arm alone, lexical: nDCG@10 -0." in out
    assert max(len(line) for line in out.splitlines()) <= 100


def test_questions_from_before_anything_was_said_find_nothing_and_say_why(
    run: Run, tmp_path: Path
) -> None:
    rows = [{**row, "asked_at": "2001-01-01"} for row in ROWS[:3]]
    file = write(tmp_path / "early.jsonl", *rows)

    _, out, _ = run("eval", "b", file)
    code, _, err = run("tune", "b", file, "--folds", "2")

    assert "sees only what had been mentioned by then" in " ".join(out.split())
    assert code == 1
    assert "error: no arm finds anything for any of the questions\nhint: A question with" in err


def test_the_command_measures_for_machines(run: Run, qrels: str) -> None:
    code, out, _ = run("eval", "b", qrels, "--json", "--k", "5")

    found = json.loads(out)
    assert code == 0
    assert (found["k"], found["by"], found["questions"]) == (5, "fact_key", SIZE)
    assert {"mean", "low", "high"} == set(found["scores"][0]["ndcg"])


def test_the_command_names_ids_that_are_not_there(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "q.jsonl", {"question": THINGS[1], "relevant": ["thing.1", "gone"]})

    _, out, _ = run("eval", "b", file)

    assert "Not in the bank as fact_key: gone (1 ids)." in out


def test_the_command_reads_what_trec_has(run: Run, tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.tsv", *(f"q{n}\tWhere is {THINGS[n]}?" for n in (1, 2)))
    qrels = write(tmp_path / "qrels.txt", "q1 0 doc-1 2", "q2 0 doc-2 1", "q2 0 doc-9 0")

    code, out, _ = run("eval", "b", qrels, "--topics", topics, "--json")

    found = json.loads(out)
    assert (code, found["by"], found["questions"]) == (0, "source_id", 2)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("{oops", "not JSON at column 2: Expecting property name enclosed in double quotes"),
        ({"relevant": ["a"]}, "question is missing"),
        ({"question": "a"}, "relevant is missing"),
        ({"question": " ", "relevant": ["a"]}, "question: expected a text, not ' '"),
        ({"question": "a", "relevant": "b"}, "relevant: expected a list of ids, not 'b'"),
        ({"question": "a", "relevant": [None]}, "relevant: expected ids, not None"),
        (
            {"question": "a", "relevant": {"b": "very"}},
            "relevant: the grade of \"b\" must be a whole number from 0 to 1000, not 'very'",
        ),
        (
            {"question": "a", "relevant": ["b"], "asked_at": "soon"},
            "asked_at: not a time: 'soon'",
        ),
        ({"question": "a", "relevants": ["b"]}, 'unknown field "relevants"'),
    ],
)
def test_a_bad_line_is_named_with_file_and_line(
    run: Run, tmp_path: Path, row: object, problem: str
) -> None:
    file = write(tmp_path / "bad.jsonl", ROWS[0], "", row)

    code, _, err = run("eval", "b", file)

    assert code == 1
    assert f"error: {file}, line 3: {problem}\n" in err
    assert "hint: " in err


@pytest.mark.parametrize(
    ("topic", "line", "problem"),
    [
        ("q2 no tab", "q1 0 a 1", "topics.tsv, line 2: there is no tab and question"),
        ("q2\ttext", "q1 0 a", "qrels.txt, line 2: 3 fields, not 4"),
        ("q2\ttext", "q1 0 a x", 'qrels.txt, line 2: the grade "x" is not a number'),
        ("q2\ttext", "q1 0 a --3", 'qrels.txt, line 2: the grade "--3" is not a number'),
        ("q2\ttext", "q3 0 a 1", 'topics.tsv has no question "q3"'),
    ],
)
def test_a_bad_line_of_trec_is_named_with_file_and_line(
    tmp_path: Path, topic: str, line: str, problem: str
) -> None:
    topics = write(tmp_path / "topics.tsv", "q1\ttext", topic)
    qrels = write(tmp_path / "qrels.txt", "q1 0 b 1", line)

    with pytest.raises(InvalidArgument) as caught:
        trec_questions(Path(qrels), Path(topics))

    assert problem in caught.value.message
    assert caught.value.hint


def test_the_command_tunes_and_changes_nothing_unless_told_to(
    run: Run, qrels: str, database: str
) -> None:
    code, out, _ = run("tune", "b", qrels)

    assert code == 0
    assert "held-out nDCG@10" in out
    assert "Nothing was changed: add --apply" in out
    with Recall.connect(database) as recall:
        assert settings(recall).weights["semantic"] == 5


def test_the_command_tunes_boosts(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("tune", "b", write(tmp_path / "few.jsonl", *ROWS[:6]), "--rerank")

    assert code == 0
    assert out.count("held-out nDCG@10") == 2
    assert "Reranked, with boosts recency 0, period 0, proof 0 in each recall" in out


def test_what_was_found_is_applied_when_asked_for(run: Run, qrels: str, database: str) -> None:
    code, out, _ = run("tune", "b", qrels, "--apply", "--json")

    found = json.loads(out)
    assert (code, found["is_applied"]) == (0, True)
    with Recall.connect(database) as recall:
        now = settings(recall)
    assert now.weights == found["tuning"]["best"]["weights"]
    assert (now.fusion, now.rrf_k) == (
        found["tuning"]["best"]["fusion"],
        found["tuning"]["best"]["rrf_k"],
    )
    assert now.weights["semantic"] < now.weights["lexical"]


def test_an_uncertain_gain_is_applied_only_by_force(
    run: Run, tmp_path: Path, database: str
) -> None:
    file = write(tmp_path / "few.jsonl", *ROWS[:2])
    with Recall.connect(database) as recall:
        recall.configure_bank("b", {"weights": {"semantic": 0, "lexical": 2}})

    code, _, err = run("tune", "b", file, "--folds", "2", "--apply")

    assert code == 1
    assert "error: nothing was changed: the interval of the held-out gain includes 0\n" in err
    assert "hint: Add more questions, or --force.\n" in err
    with Recall.connect(database) as recall:
        assert settings(recall).weights["lexical"] == 2
    code, out, _ = run("tune", "b", file, "--folds", "2", "--apply", "--force")
    assert code == 0
    assert 'These are now the defaults of bank "b".' in out
