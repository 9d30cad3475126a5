"""Failing embedders, functions and rerankers, and too little time: a recall answers still."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

import pgrecall as package
from pgrecall import (
    ArmFailed,
    AsyncRecall,
    EmbedderUnavailable,
    Fact,
    InvalidArgument,
    InvalidEmbedding,
    OnnxReranker,
    OutOfTime,
    Recall,
    RecallReport,
    RerankerUnavailable,
)
from pgrecall.embedders import EmbedFunction, Vector
from servers import kept_fixture
from toys import toy_embed

Connection = psycopg.Connection[Any]
FACTS: list[Fact] = ["Ana leads Atlas", "Atlas has blue boats"]


def embed_badly(_texts: Sequence[str]) -> list[Vector]:
    raise ConnectionError("no route to host")


def embed_too_few(texts: Sequence[str]) -> list[list[float]]:
    return toy_embed(texts)[1:]


def fail(*_arguments: object) -> Any:
    raise ConnectionError("no route to host")


class Missing:
    """An embedder whose package is not installed."""

    model = "toy_embed"
    dimensions = None

    def embed(self, _texts: Sequence[str]) -> list[list[float]]:
        raise EmbedderUnavailable("package x is missing", hint="Run: pip install x")


class Hanging:
    """Stands for a service that does not answer, until the test is over."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.over.wait(60)
        return toy_embed(texts)

    def answer(self, query: str) -> str:
        self.over.wait(60)
        return query

    def score(self, _query: str, texts: Sequence[str]) -> list[float]:
        self.over.wait(60)
        return [0.5 for _ in texts]


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    hanging = Hanging()
    yield hanging
    hanging.over.set()


@kept_fixture
def filled(connection: Connection) -> None:
    recall = Recall(connection, embedder=toy_embed)
    recall.create_bank("b")
    recall.retain("b", FACTS)


def why(report: RecallReport) -> list[tuple[str, str, str | None]]:
    return [(item.what, item.why, item.hint) for item in report.degradations]


# The embedder


@pytest.mark.parametrize(
    ("embedder", "reason", "hint"),
    [
        (embed_badly, "it failed with ConnectionError: no route to host", None),
        (embed_too_few, 'the embedder "toy_embed" gave 0 vectors for 1 texts', ...),
        (Missing(), "package x is missing", "Run: pip install x"),
        (
            lambda texts: ["x" for _ in texts],
            'vector 0 of the embedder "toy_embed" is not a flat list of numbers',
            ...,
        ),
    ],
)
def test_without_embeddings_the_other_arms_answer(
    filled: Connection, embedder: Any, reason: str, hint: Any
) -> None:
    recall = Recall(filled, embedder=embedder, model="toy_embed")

    report = recall.recall_report("b", "who leads Atlas")

    assert [hit.text for hit in report.hits] == FACTS
    assert "semantic" not in report.hits[0].arms
    ((what, said, told),) = why(report)
    assert (what, said[: 35 + len(reason)]) == (
        "embedder",
        f"nothing was searched by embedding: {reason}",
    )
    assert hint in (..., told)


def test_an_embedder_that_does_not_answer_in_time_is_left_out(
    filled: Connection, hanging: Hanging
) -> None:
    recall = Recall(filled, embedder=hanging.embed, model="toy_embed")

    report = recall.recall_report("b", "who leads Atlas", timeout=6)

    assert [hit.text for hit in report.hits] == FACTS
    ((what, said, _),) = why(report)
    assert what == "embedder"
    assert "TimeoutError: it took longer than" in said
    assert report.timings.total < 6000


@pytest.mark.parametrize("is_hanging", [False, True])
def test_without_a_hypothetical_answer_the_query_is_searched_by_its_own(
    filled: Connection, hanging: Hanging, is_hanging: bool
) -> None:
    recall = Recall(filled, embedder=toy_embed)
    function: Callable[[str], str] = hanging.answer if is_hanging else fail

    report = recall.recall_report("b", "who leads Atlas", hypothetical=function, timeout=6)

    ((what, said, _),) = why(report)
    assert (what, said[:25]) == ("hypothetical", "hypothetical was left out")
    assert "semantic" in report.hits[0].arms
    assert "hypothetical" not in report.hits[0].arms


# The reranker


@pytest.mark.parametrize(
    ("reranker", "reason"),
    [
        (fail, "it failed with ConnectionError: no route to host"),
        (lambda _query, texts: [0.5] * (len(texts) - 1), "it failed with ValueError: it gave 1 "),
    ],
)
def test_without_a_reranker_the_fused_order_is_kept(
    filled: Connection, reranker: Any, reason: str
) -> None:
    recall = Recall(filled, embedder=toy_embed, reranker=reranker)

    report = recall.recall_report("b", "who leads Atlas")

    assert [hit.fused_rank for hit in report.hits] == [1, 2]
    assert [hit.final_score for hit in report.hits] == [hit.score for hit in report.hits]
    ((what, said, _),) = why(report)
    assert (what, said[: len(reason)]) == ("reranker", reason)


def test_a_reranker_that_does_not_answer_in_time_is_left_out(
    filled: Connection, hanging: Hanging
) -> None:
    recall = Recall(filled, embedder=toy_embed, reranker=hanging.score)

    report = recall.recall_report("b", "who leads Atlas", timeout=3)

    ((what, said, _),) = why(report)
    assert (what, report.reranked) == ("reranker", 0)
    assert "TimeoutError: it took longer than" in said


def test_the_timeout_leaves_less_time_for_reranking(filled: Connection) -> None:
    class Told:
        seconds = 0.0

        def scores(self, _query: str, texts: Sequence[str]) -> Sequence[float]:
            return [0.5 for _ in texts]

        def scores_within(
            self, query: str, texts: Sequence[str], seconds: float
        ) -> Sequence[float]:
            self.seconds = seconds
            return self.scores(query, texts)

    told = Told()
    recall = Recall(filled, embedder=toy_embed, reranker=told)

    recall.recall("b", "who leads Atlas", rerank_seconds=500, timeout=100)

    assert 50 < told.seconds < 90


# Raising instead


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"embedder": embed_badly}, ConnectionError),
        ({"embedder": Missing()}, EmbedderUnavailable),
        ({"embedder": toy_embed, "reranker": fail}, ConnectionError),
        ({"embedder": toy_embed, "reranker": "some-model"}, RerankerUnavailable),
    ],
)
def test_a_strict_recall_raises_what_failed(
    filled: Connection, options: dict[str, Any], error: type[Exception]
) -> None:
    recall = Recall(filled, model="toy_embed", **options)

    with pytest.raises(error):
        recall.recall("b", "who leads Atlas", strict=True)


def test_a_strict_recall_raises_what_a_function_raised(filled: Connection) -> None:
    with pytest.raises(ConnectionError):
        Recall(filled, embedder=toy_embed).recall("b", "Atlas", hypothetical=fail, strict=True)


def test_a_strict_recall_raises_where_an_arm_failed(filled: Connection) -> None:
    filled.execute("alter table pgrecall.link rename to elsewhere")

    with pytest.raises(ArmFailed) as caught:
        Recall(filled, embedder=toy_embed).recall("b", "who leads Atlas", strict=True)

    assert caught.value.message.startswith("the graph arm failed and was left out: ")
    assert caught.value.hint == "Run pgrecall.graph_arm() alone to see the error."


def test_a_strict_recall_raises_where_time_was_too_short_to_rerank(filled: Connection) -> None:
    recall = Recall(filled, embedder=toy_embed, reranker=OnnxReranker())

    with pytest.raises(OutOfTime, match="0 of 2 candidates were read in 0 s"):
        recall.recall("b", "who leads Atlas", rerank_seconds=0, strict=True)


@pytest.mark.parametrize("method", ["explain", "arm_hits"])
def test_what_has_no_report_raises(filled: Connection, method: str) -> None:
    with pytest.raises(ConnectionError):
        getattr(Recall(filled, embedder=embed_badly, model="toy_embed"), method)("b", "Atlas")


# Remembering


def test_facts_are_stored_without_embedding_and_get_it_with_the_next_retain(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    working = Recall(connection, embedder=toy_embed, model="toy")
    working.create_bank("b")
    working.retain("b", FACTS[:1])
    facts: list[Fact] = [*FACTS, {"text": "Cem sails", "questions": [{"text": "who sails?"}]}]

    with caplog.at_level(logging.WARNING, "pgrecall"):
        rows = Recall(connection, embedder=embed_badly, model="toy").retain("b", facts)
        done = Recall(connection, embedder=embed_badly, model="toy").retain_many("b", facts)

    assert [row.is_embedded for row in rows] == [True, False, False]
    assert (done.total, done.new, done.unembedded) == (3, 0, 2)
    assert caplog.messages[0] == (
        "facts are stored without embedding: it failed with ConnectionError: no route to host"
    )
    assert [row.is_embedded for row in working.retain("b", facts)] == [True] * 3
    (hit,) = working.recall("b", "Cem sails", arms=["semantic"], top_k=1)
    assert hit.text == "Cem sails"
    stored = connection.execute(
        "select count(*), count(*) filter (where kind = 'question') from pgrecall.embedding"
        " where bank_id = 'b'"
    ).fetchone()
    assert stored == (4, 1)


def test_a_warning_says_what_makes_the_embedder_work(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        raise EmbedderUnavailable("a package is missing", hint="Run: pip install it")

    recall = Recall(connection, embedder=embed, model="toy")
    recall.create_bank("b")
    with caplog.at_level(logging.WARNING, "pgrecall"):
        recall.retain("b", ["Cem sails"])

    assert caplog.messages == [
        "facts are stored without embedding: a package is missing. Run: pip install it"
    ]


@pytest.mark.parametrize("embed", [embed_badly, embed_too_few])
def test_a_correction_is_stored_without_embedding_if_the_embedder_fails(
    connection: Connection, caplog: pytest.LogCaptureFixture, embed: EmbedFunction
) -> None:
    working = Recall(connection, embedder=toy_embed, model="toy")
    working.create_bank("b")
    [row] = working.retain("b", [{"text": "Cem sails", "questions": [{"text": "who sails?"}]}])
    failing = Recall(connection, embedder=embed, model="toy")

    with pytest.raises((ConnectionError, InvalidEmbedding)):
        failing.update("b", row.memory_id, text="Cem rows", strict=True)
    with caplog.at_level(logging.WARNING, "pgrecall"):
        new = failing.update(
            "b", row.memory_id, text="Cem rows", questions=[{"text": "who rows?"}, {"text": "?"}]
        )

    assert (new.text, len(working.history("b", new.memory_id))) == ("Cem rows", 2)
    assert caplog.messages[0].startswith("facts are stored without embedding: ")
    assert working.embed_pending("b") == 1
    (hit,) = working.recall("b", "Cem rows", arms=["semantic"], top_k=1)
    assert hit.text == "Cem rows"
    questions = "select text from pgrecall.embedding where kind = 'question' and memory_id = %s"
    assert connection.execute(questions, [new.memory_id]).fetchall() == [("who sails?",)]


def test_a_client_without_an_embedder_says_that_facts_have_no_embedding(
    connection: Connection,
) -> None:
    bare, working = Recall(connection, embedder=None), Recall(connection, embedder=toy_embed)
    bare.create_bank("b")
    working.retain("b", ["Ana leads Atlas"])

    rows = bare.retain("b", ["Ana leads Atlas", "Ben leads Borealis"])

    assert [(row.is_new, row.is_embedded) for row in rows] == [(False, True), (True, False)]


def test_an_embedder_that_returns_nothing_is_named(filled: Connection) -> None:
    def forgets(_texts: Sequence[str]) -> Any: ...

    recall = Recall(filled, embedder=forgets, model="toy_embed")
    expected = 'the embedder "toy_embed" gave None, not a list of vectors'

    with pytest.raises(InvalidEmbedding, match=expected):
        recall.retain("b", "Dia sails.", strict=True)
    with pytest.raises(InvalidEmbedding, match=expected):
        recall.recall("b", "Who sails?", strict=True)
    with pytest.raises(InvalidEmbedding, match=expected):
        recall.embed_pending("b") if recall.retain("b", "Dia rows.") else None


def test_a_failing_embedder_is_asked_once_a_batch(connection: Connection) -> None:
    asked: list[int] = []

    def embed(texts: Sequence[str]) -> list[Vector]:
        asked.append(len(texts))
        raise ConnectionError

    recall = Recall(connection, embedder=embed)
    recall.create_bank("b")

    rows = recall.retain("b", [f"fact {n}" for n in range(200)])

    assert asked == [64]
    assert not any(row.is_embedded for row in rows)


def test_a_strict_retain_stores_nothing(connection: Connection) -> None:
    recall = Recall(connection, embedder=embed_badly)
    recall.create_bank("b")

    with pytest.raises(ConnectionError):
        recall.retain("b", FACTS, strict=True)
    with pytest.raises(ConnectionError):
        recall.retain_many("b", FACTS, strict=True)

    assert recall.banks()[0].memories == 0


# Time


@contextmanager
def slow_preparation(database: str, seconds: float) -> Iterator[Connection]:
    """Make the database take its time before each recall."""
    with psycopg.connect(database, autocommit=True) as connection:
        Recall(connection, embedder=None).create_bank("b")
        connection.execute("alter function pgrecall.prepare_recall rename to prepared")
        connection.execute(
            f"""create function pgrecall.prepare_recall(bank text, query text, before timestamptz)
            returns setof pgrecall.preparation language sql as $$
              select p.* from pg_sleep({seconds})
              cross join pgrecall.prepared(bank, query, before) as p
            $$""".encode()
        )
        yield connection


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_timeout_ends_the_statement_and_leaves_the_connection_clean(
    database: str, autocommit: bool
) -> None:
    with (
        slow_preparation(database, 30),
        psycopg.connect(database, autocommit=autocommit) as connection,
    ):
        recall = Recall(connection, embedder=None)

        with pytest.raises(OutOfTime) as caught, connection.transaction():
            recall.recall("b", "who leads Atlas", timeout=0.3)

        assert caught.value.message == ("the timeout of 0.3 s passed before the database answered")
        assert isinstance(caught.value.__cause__, psycopg.errors.QueryCanceled)
        assert connection.execute("select current_setting('statement_timeout')").fetchone() == (
            "0",
        )
        assert [bank.bank_id for bank in recall.banks()] == ["b"]


def test_a_timeout_changes_no_setting_of_the_caller(database: str) -> None:
    with psycopg.connect(database) as connection:
        recall = Recall(connection, embedder=None)
        recall.create_bank("b")
        connection.execute("set statement_timeout = '25s'")

        recall.recall("b", "who leads Atlas", timeout=10)

        assert connection.execute("show statement_timeout").fetchone() == ("25s",)


def test_a_lower_time_limit_of_the_caller_holds(database: str) -> None:
    with slow_preparation(database, 30), psycopg.connect(database) as connection:
        connection.execute("set statement_timeout = '200ms'")

        with pytest.raises(psycopg.errors.QueryCanceled):
            Recall(connection, embedder=None).recall("b", "who leads Atlas", timeout=20)


def test_a_timeout_counts_the_wait_for_a_connection() -> None:
    class Busy:
        @contextmanager
        def connection(self, timeout: float = 30.0) -> Iterator[Connection]:
            raise psycopg.OperationalError(f"no connection within {timeout:.2f} s")
            yield

    class Patient(Busy):
        @contextmanager
        def connection(self, timeout: float = 30.0) -> Iterator[Connection]:
            threading.Event().wait(timeout)
            with super().connection(timeout) as connection:
                yield connection

    with pytest.raises(OutOfTime):
        Recall(Patient(), embedder=None).recall("b", "who leads Atlas", timeout=0.2)
    with pytest.raises(psycopg.OperationalError, match=r"within \d\d\.\d\d s"):
        Recall(Busy(), embedder=None).recall("b", "who leads Atlas", timeout=60)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
def test_a_timeout_that_is_none_is_refused(pgrecall: Recall, timeout: float) -> None:
    with pytest.raises(InvalidArgument) as caught:
        pgrecall.recall("b", "x", timeout=timeout)

    assert caught.value.message == f"timeout is {timeout}, not above 0 and at most 2147483"
    assert caught.value.hint


def test_the_times_of_a_recall_add_up_to_all_of_it(filled: Connection) -> None:
    from time import perf_counter

    recall = Recall(filled, reranker=OnnxReranker(), embedder=toy_embed)
    recall.recall("b", "who leads Atlas")  # loads the model

    start = perf_counter()
    report = recall.recall_report("b", "who leads Atlas here")
    wall = 1000 * (perf_counter() - start)

    assert report.timings.total <= wall
    assert report.timings.rerank > 0
    assert report.timings.driver > 0


# asyncio


def test_a_cancelled_recall_leaves_the_connection_clean(database: str) -> None:
    async def body() -> list[package.Bank]:
        async with await package.connect_async(database, embedder=None) as recall:
            call = asyncio.create_task(recall.recall("b", "who leads Atlas"))
            async with await psycopg.AsyncConnection.connect(database, autocommit=True) as other:
                sql = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'"
                while (await (await other.execute(sql)).fetchall()) == [(0,)]:
                    await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            return await recall.banks()

    with slow_preparation(database, 60):
        banks = asyncio.run(asyncio.wait_for(body(), 30))

    assert [bank.bank_id for bank in banks] == ["b"]


def test_a_cancelled_recall_frees_the_worker(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, may_go_on = threading.Event(), threading.Event()
    read: list[str] = []
    reranker = OnnxReranker()

    def answers(pairs: list[tuple[str, str]]) -> list[float]:
        read.extend(query for query, _ in pairs)
        reading.set()
        assert may_go_on.wait(30)
        return [0.0 for _ in pairs]

    monkeypatch.setattr(reranker, "_answers", answers)

    async def body() -> RecallReport:
        async with await package.connect_async(
            database, embedder=toy_embed, reranker=reranker
        ) as recall:
            await recall.create_bank("b")
            await recall.retain("b", [f"Ana leads Atlas {n}" for n in range(40)])
            call = asyncio.create_task(recall.recall("b", "who leads Atlas", candidates=40))
            while not reading.is_set():
                await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            may_go_on.set()
            return await recall.recall_report("b", "who leads Atlas here", candidates=40)

    report = asyncio.run(body())

    assert report.reranked == 40
    assert read.count("who leads Atlas") <= 8  # those that threads had taken
    assert report.degradations == ()


def test_many_callers_do_not_block_the_event_loop(database: str) -> None:
    async def body() -> list[RecallReport]:
        async with await package.connect_async(database, reranker=OnnxReranker()) as recall:
            await recall.create_bank("b")
            await recall.retain("b", FACTS)

            async def ask(number: int) -> RecallReport:
                async with await psycopg.AsyncConnection.connect(database) as connection:
                    other = AsyncRecall(connection, reranker=recall._settings.reranker)
                    return await other.recall_report(
                        "b", f"who leads Atlas {number}?", rerank_seconds=60
                    )

            return await asyncio.gather(*(ask(number) for number in range(8)))

    reports = asyncio.run(body())

    assert [report.reranked for report in reports] == [2] * 8
    assert all(report.degradations == () for report in reports)


def test_an_arm_that_waits_for_a_lock_is_left_out_after_arm_timeout(database: str) -> None:
    with psycopg.connect(database) as blocker, Recall.connect(database, embedder=toy_embed) as own:
        own.create_bank("b")
        own.retain("b", FACTS)
        with psycopg.connect(database, autocommit=True) as caller:
            caller.execute("set statement_timeout = '3s'; set lock_timeout = '20s'")
            recall = Recall(caller, embedder=toy_embed, reranker=None)
            blocker.execute("lock table pgrecall.embedding in access exclusive mode")

            report = recall.recall_report("b", "Ana leads", arm_timeout="2 s")
            late = recall.recall_report("b", "Ana leads", arm_timeout="1 us")
            before = caller.execute("show lock_timeout").fetchone()
            with pytest.raises(psycopg.errors.QueryCanceled):
                recall.recall("b", "Ana leads", strict=True)

    by_arm = {arm.arm: arm for arm in report.arms}
    reasons = [arm.reason or "" for arm in late.arms]
    assert report.hits[0].text == "Ana leads Atlas"
    assert by_arm["semantic"].status == "failed"
    assert by_arm["lexical"].status == "ran"
    assert {arm.status for arm in late.arms} == {"skipped"}
    assert "the arms before it took longer than arm_timeout" in reasons
    assert before == ("20s",)
