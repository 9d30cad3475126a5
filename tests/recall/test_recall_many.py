"""Many questions at once: the answers of one each, with the round trips of one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from pgrecall import AsyncRecall, EmptyQuery, InvalidArgument, OutOfTime, Recall
from sqlcalls import sent_statements
from toys import toy_embed

QUERIES = ["Who leads Atlas?", "What happened in March 2026?", "Which boats are blue?", "Xyzzy?"]


class Counting:
    """An embedder that counts how often it is asked."""

    model = "toy"
    dimensions = None

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked.append([*texts])
        return toy_embed(texts)


class Broken(Counting):
    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        super().embed(texts)
        raise ConnectionError("no route to host")


def by_length(_query: str, texts: Sequence[str]) -> list[float]:
    return [len(text) / 1000 for text in texts]


@pytest.fixture
def bank(pgrecall: Recall) -> str:
    pgrecall.create_bank("b")
    Recall(pgrecall._source, embedder=toy_embed, model="toy").retain(
        "b",
        [
            "Ana leads Atlas.",
            {"text": "Atlas went live.", "occurred": "2026-03-05"},
            "Boats are blue.",
            "Boats are slow in March.",
        ],
    )
    return "b"


@pytest.mark.parametrize("reranker", [None, by_length])
@pytest.mark.parametrize("options", [{}, {"top_k": 1}, {"filter": "confidence > 0.5"}])
def test_each_answer_is_that_of_one_question(
    pgrecall: Recall, bank: str, reranker: Any, options: dict[str, Any]
) -> None:
    memory = Recall(pgrecall._source, embedder=toy_embed, model="toy", reranker=reranker)

    many = memory.recall_many(bank, QUERIES, **options)
    single = [memory.recall_report(bank, query, **options) for query in QUERIES]

    assert [report.hits for report in many] == [report.hits for report in single]
    assert [report.facts for report in many] == [report.facts for report in single]
    assert [[arm.arm for arm in report.arms] for report in many] == [
        [arm.arm for arm in report.arms] for report in single
    ]


def test_they_take_two_statements_and_one_embedding(
    pgrecall: Recall, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = sent_statements(monkeypatch)
    embedder = Counting()
    memory = Recall(pgrecall._source, embedder=embedder)

    memory.recall_many(bank, QUERIES * 10)

    assert len(sent) == 2
    assert len(embedder.asked) == 1
    assert len(embedder.asked[0]) == len(QUERIES)


def test_an_embedder_that_fails_is_asked_once(pgrecall: Recall, bank: str) -> None:
    embedder = Broken()
    memory = Recall(pgrecall._source, embedder=embedder)

    reports = memory.recall_many(bank, QUERIES[:2])

    assert reports[0].hits[0].text == "Ana leads Atlas."
    assert [report.degradations[0].what for report in reports] == ["embedder", "embedder"]
    assert len(embedder.asked) == 1
    with pytest.raises(ConnectionError):
        memory.recall_many(bank, QUERIES[:2], strict=True)


def test_no_question_has_no_answer(pgrecall: Recall, bank: str) -> None:
    assert pgrecall.recall_many(bank, []) == []


@pytest.mark.parametrize(
    ("queries", "error"),
    [
        (["Atlas", ""], EmptyQuery),
        (["Atlas", None], InvalidArgument),
        (["Atlas"] * 1001, InvalidArgument),
    ],
)
def test_what_is_wrong_with_one_fails_all(
    pgrecall: Recall, bank: str, queries: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        Recall(pgrecall._source, embedder=None).recall_many(bank, queries)


def test_the_timeout_is_that_of_all(pgrecall: Recall, bank: str) -> None:
    memory = Recall(pgrecall._source, embedder=None)

    with pytest.raises(OutOfTime):
        memory.recall_many(bank, QUERIES * 100, timeout=0.01)


def test_tasks_ask_many(database: str) -> None:
    async def body() -> list[str]:
        async with await AsyncRecall.connect(database, embedder=toy_embed) as memory:
            await memory.create_bank("b")
            await memory.retain("b", ["Ana leads Atlas.", "Boats are blue."])
            reports = await memory.recall_many("b", [QUERIES[0], QUERIES[2]], top_k=1)
            return [report.hits[0].text for report in reports]

    assert asyncio.run(body()) == ["Ana leads Atlas.", "Boats are blue."]


def test_lateral_asks_many_in_sql(pgrecall: Recall, bank: str) -> None:
    connection: Any = pgrecall._source

    rows = connection.execute(
        "select q.query, h.text from unnest(%s::text[]) as q(query)"
        " cross join lateral pgrecall.hybrid_recall(%s, q.query, top_k => 1) as h",
        [[QUERIES[0], QUERIES[2]], bank],
    ).fetchall()

    assert dict(rows) == {QUERIES[0]: "Ana leads Atlas.", QUERIES[2]: "Boats are blue."}
