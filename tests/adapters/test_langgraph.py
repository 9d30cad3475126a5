"""The adapter for LangGraph does what LangGraph's own store does: each case runs on both."""

from __future__ import annotations

import asyncio
import random
import string
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from pgrecall import AsyncRecall, InvalidArgument, Recall
from toys import toy_embed

pytest.importorskip("langgraph.store", reason="LangGraph is not installed: make test-adapters")

from langgraph.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from pgrecall.adapters.langgraph import PgrecallStore

ODD = ["a", "b", "a%", "a_", "a\\", 'a"', "ä", "a, b", "1"]


@pytest.fixture
def store(pgrecall: Recall) -> PgrecallStore:
    memory = Recall(pgrecall._source, embedder=toy_embed, model="toy")
    memory.create_bank("b")
    return PgrecallStore(memory, "b")


def plain(result: Any) -> Any:
    """Return a result without times, in an order of its own."""
    if isinstance(result, list):
        return sorted((plain(one) for one in result), key=repr)
    return (result.namespace, result.key, result.value) if hasattr(result, "value") else result


def same(store: PgrecallStore, *batches: list[Any]) -> None:
    """Run batches on both stores, and compare what they return."""
    oracle = InMemoryStore()
    for ops in batches:
        expected = [plain(result) for result in oracle.batch(ops)]
        assert [plain(result) for result in store.batch(ops)] == expected


def test_items_are_put_got_and_deleted(store: PgrecallStore) -> None:
    place = ("users", "1")
    same(
        store,
        [GetOp(place, "k")],
        [PutOp(place, "k", {"n": 1}), PutOp(place, "empty", {})],
        [GetOp(place, "k"), GetOp(place, "empty"), GetOp(("users",), "k"), GetOp(place, "1")],
        [PutOp(place, "k", {"n": 2, "deep": {"list": [1, None, "x"]}})],
        [GetOp(place, "k")],
        [PutOp(place, "k", {"n": 2, "deep": {"list": [1, None, "x"]}})],
        [PutOp(place, "k", None), PutOp(place, "none", None)],
        [GetOp(place, "k"), GetOp(place, "empty")],
    )


def test_a_batch_reads_before_it_writes_and_its_last_put_counts(store: PgrecallStore) -> None:
    place = ("a",)
    same(
        store,
        [PutOp(place, "k", {"n": 1})],
        [PutOp(place, "k", {"n": 2}), GetOp(place, "k"), PutOp(place, "k", {"n": 3})],
        [GetOp(place, "k")],
        [PutOp(place, "k", {"n": 4}), PutOp(place, "k", None)],
        [GetOp(place, "k")],
    )


def test_names_may_hold_any_sign(store: PgrecallStore) -> None:
    puts: list[Any] = [PutOp((name, "x"), key, {"n": name}) for name in ODD for key in ODD[:4]]
    same(
        store,
        puts,
        [GetOp((name, "x"), key) for name in ODD for key in ODD[:4]],
        [SearchOp((name,), limit=100) for name in ODD],
        [SearchOp((), limit=1000), ListNamespacesOp(limit=100)],
    )


@pytest.mark.parametrize(
    "condition",
    [
        {"kind": "boat"},
        {"kind": {"$eq": "boat"}},
        {"kind": {"$ne": "boat"}},
        {"size": {"$gt": 9}},
        {"size": {"$gte": 9}},
        {"size": {"$lt": 10}},
        {"size": {"$lte": 9, "$gt": 2}},
        {"kind": "boat", "size": 10},
        {"is_new": True},
        {"kind": "none"},
    ],
)
def test_values_are_filtered(store: PgrecallStore, condition: dict[str, Any]) -> None:
    values: list[dict[str, Any]] = [
        {"kind": "boat", "size": 2, "is_new": True},
        {"kind": "boat", "size": 10, "is_new": False},
        {"kind": "car", "size": 9, "is_new": True},
        {"kind": "car", "size": 11, "is_new": False},
    ]
    same(
        store,
        [PutOp(("v",), str(n), value) for n, value in enumerate(values)],
        [SearchOp(("v",), filter=condition)],
    )


def test_namespaces_are_listed(store: PgrecallStore) -> None:
    names = [("t", "docs", "public"), ("t", "docs", "private"), ("t", "images", "public"), ("p",)]
    conditions = [
        None,
        (MatchCondition("prefix", ("t",)),),
        (MatchCondition("prefix", ("t", "*", "public")),),
        (MatchCondition("prefix", ("*", "docs")),),
        (MatchCondition("suffix", ("public",)),),
        (MatchCondition("prefix", ("t",)), MatchCondition("suffix", ("*", "public"))),
    ]
    same(
        store,
        [PutOp(name, key, {"n": 1}) for name in names for key in ("k", "l")],
        [ListNamespacesOp(match_conditions=one) for one in conditions],
        [ListNamespacesOp(max_depth=depth) for depth in (1, 2, 3)],
    )
    store.batch([PutOp(("p",), "k", None), PutOp(("p",), "l", None)])
    assert ("p",) not in store.list_namespaces()  # the oracle keeps what is empty


def test_pages_of_a_search_hold_everything_once(store: PgrecallStore) -> None:
    store.batch([PutOp(("v",), str(n), {"n": n}) for n in range(7)])

    pages = [store.search(("v",), limit=3, offset=offset) for offset in (0, 3, 6, 9)]

    assert [len(page) for page in pages] == [3, 3, 1, 0]
    assert {item.value["n"] for page in pages for item in page} == set(range(7))


def test_random_operations_have_the_results_of_the_oracle(store: PgrecallStore) -> None:
    rng = random.Random(7)
    places = [(a, b) for a in "xy" for b in "pq"] + [("x",)]

    def operation() -> Any:
        place, key = rng.choice(places), rng.choice(string.ascii_lowercase[:3])
        kinds: list[Callable[[], Any]] = [
            lambda: GetOp(place, key),
            lambda: PutOp(place, key, {"n": rng.randrange(4)}),
            lambda: PutOp(place, key, None),
            lambda: SearchOp(place[:1], filter={"n": rng.randrange(4)}, limit=50),
        ]
        return rng.choice(kinds)()

    same(store, *[[operation() for _ in range(rng.randrange(1, 5))] for _ in range(40)])


def test_a_question_finds_what_says_the_answer(store: PgrecallStore) -> None:
    place = ("users", "1", "memories")
    store.put(place, "a", {"text": "Maya leads Atlas.", "by": "Bo"})
    store.put(place, "b", {"text": "Boats are blue."})
    store.put(("users", "2", "memories"), "c", {"text": "Cy leads Atlas."})
    store.put(place, "hidden", {"text": "Atlas is led by nobody."}, index=False)

    found = store.search(place, query="Who leads Atlas?", limit=3)
    others = store.search(("users",), query="Who leads Atlas?", filter={"by": "Bo"})

    assert found[0].key == "a"
    assert 0 <= (found[0].score or 0) <= 1
    assert {item.key for item in found} <= {"a", "b"}
    assert [item.key for item in others] == ["a"]


@pytest.mark.parametrize("query", ["", " \n", None])
def test_a_blank_question_lists_what_there_is(store: PgrecallStore, query: str | None) -> None:
    same(
        store,
        [PutOp(("u",), name, {"text": name}) for name in "ab"],
        [SearchOp(("u",), query=query)],
    )


def test_only_the_fields_named_are_searched(store: PgrecallStore) -> None:
    store.put(("v",), "a", {"title": "Atlas", "body": "boats"}, index=["title"])

    [stored] = store.memory.list_memories("b")

    assert stored.text == "Atlas"


def test_an_item_may_be_longer_than_a_fact_and_its_fields_blank(store: PgrecallStore) -> None:
    values: list[dict[str, Any]] = [{"text": "boat " * 30_000}, {"text": " "}]
    for n, value in enumerate(values):
        store.put(("v",), str(n), value, index=["text"])
    store.put(("v",), "unsearched", values[0], index=False)

    found = [store.get(("v",), key) for key in ("0", "1", "unsearched")]

    assert [one and one.value for one in found] == [*values, values[0]]
    assert store.search(("v",), query="boat")[0].key == "0"


def test_a_filter_by_a_nested_value_is_named(store: PgrecallStore) -> None:
    with pytest.raises(ValueError, match=r"compares 'size' with one value, not \{'m': 9\}"):
        store.search(("v",), filter={"size": {"m": 9}})


def test_times_are_those_of_the_item(store: PgrecallStore) -> None:
    store.put(("v",), "a", {"n": 1})
    first = store.get(("v",), "a")
    store.put(("v",), "a", {"n": 2})
    second = store.get(("v",), "a")

    assert first is not None
    assert second is not None
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at


def test_writers_at_once_leave_one_item_of_a_key(database: str) -> None:
    with Recall.connect(database, embedder=None, pool_size=4) as memory:
        memory.create_bank("b")
        store = PgrecallStore(memory, "b")

        def write(writer: int) -> None:
            for n in range(4):
                store.put(("v",), "a", {"writer": writer, "n": n})
                if n == writer:
                    store.delete(("v",), "a")

        with ThreadPoolExecutor(4) as threads:
            [*threads.map(write, range(4))]
        store.put(("v",), "a", {"n": "last"})

        assert [item.value for item in store.search(("v",))] == [{"n": "last"}]


def test_copies_of_an_item_that_a_bank_already_has_are_ended(store: PgrecallStore) -> None:
    store.put(("v",), "a", {"n": 1})
    [first] = store.memory.list_memories("b")
    copy = {"text": "a copy", "source_id": first.source_id, "metadata": first.metadata}
    store.memory.retain("b", [copy])

    store.put(("v",), "a", {"n": 2})

    assert [item.value for item in store.search(("v",))] == [{"n": 2}]


def test_async_calls_do_the_same(database: str) -> None:
    with Recall.connect(database, embedder=None) as memory:
        memory.create_bank("b")
        store: BaseStore = PgrecallStore(memory, "b")

        async def body() -> Any:
            await store.aput(("v",), "a", {"n": 1})
            return await store.aget(("v",), "a")

        assert asyncio.run(body()).value == {"n": 1}


def test_a_client_of_the_other_kind_is_refused() -> None:
    other: Any = AsyncRecall(SimpleNamespace(connection=list))  # type: ignore[arg-type]

    with pytest.raises(InvalidArgument, match="memory must be a client of class Recall, not "):
        PgrecallStore(other, "b")
