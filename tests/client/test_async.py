"""AsyncRecall does what Recall does; that both have the same methods is tested in test_generate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
import pytest

import pgrecall as package
from pgrecall import AsyncRecall, BankNotFound
from toys import toy_embed

T = TypeVar("T")
Connection = psycopg.AsyncConnection[Any]


def run(database: str, test: Callable[[AsyncRecall], Awaitable[T]]) -> T:
    async def body() -> T:
        async with await package.connect_async(database, embedder=toy_embed) as recall:
            await recall.create_bank("b")
            return await test(recall)

    return asyncio.run(body())


def test_what_is_retained_is_recalled(database: str) -> None:
    async def body(recall: AsyncRecall) -> list[str]:
        await recall.retain("b", ["Ana leads Atlas", "Boats are blue"])
        return [hit.text for hit in await recall.recall("b", "who leads Atlas", top_k=1)]

    assert run(database, body) == ["Ana leads Atlas"]


def test_a_report_is_complete(database: str) -> None:
    async def body(recall: AsyncRecall) -> package.RecallReport:
        await recall.retain("b", ["Ana leads Atlas"])
        await recall.log_session("b", "s")
        return await recall.recall_report("b", "Atlas since we last talked", explain=True)

    report = run(database, body)

    assert report.timings.database > 0
    assert report.timings.embed > 0
    assert {"lexical", "semantic"} <= {arm.arm for arm in report.arms}


def test_a_long_stream_is_written(database: str) -> None:
    async def body(recall: AsyncRecall) -> tuple[package.Retention, package.Retention]:
        facts = await recall.retain_many("b", (f"fact {n}" for n in range(5)), batch_size=2)
        rows = ({"text": f"message {n}"} for n in range(5))
        return facts, await recall.retain_many_messages("b", rows, batch_size=2)

    facts, messages = run(database, body)

    assert (facts.total, facts.new) == (messages.total, messages.new) == (5, 5)


def test_errors_are_ours(database: str) -> None:
    async def body(recall: AsyncRecall) -> None:
        await recall.drop_bank("no")

    with pytest.raises(BankNotFound, match=r'^bank "no" does not exist'):
        run(database, body)


def test_embedding_does_not_hold_up_others(database: str) -> None:
    order: list[str] = []

    async def body() -> None:
        may_end = asyncio.Event()
        loop = asyncio.get_running_loop()

        def slow_embed(texts: Sequence[str]) -> list[list[float]]:
            asyncio.run_coroutine_threadsafe(may_end.wait(), loop).result(timeout=30)
            order.append("embedded")
            return toy_embed(texts)

        async def other() -> None:
            order.append("other")
            may_end.set()

        async with await package.connect_async(database, embedder=slow_embed) as recall:
            await recall.create_bank("b")
            await asyncio.gather(recall.retain("b", ["Ana leads Atlas"]), other())

    asyncio.run(body())

    assert order == ["other", "embedded"]


def test_a_pool_gives_each_call_a_connection(database: str) -> None:
    class FreshConnections:
        lent = 0

        @asynccontextmanager
        async def connection(self) -> AsyncIterator[Connection]:
            self.lent += 1
            async with await psycopg.AsyncConnection.connect(database) as connection:
                yield connection

    async def body(pool: FreshConnections) -> list[list[package.Bank]]:
        recall = AsyncRecall(pool, embedder=toy_embed)
        await recall.create_bank("b")
        return await asyncio.gather(*(recall.banks() for _ in range(4)))

    pool = FreshConnections()
    banks = asyncio.run(body(pool))

    assert [len(rows) for rows in banks] == [1, 1, 1, 1]
    assert pool.lent == 5
