"""Filters and metadata that mean harm, as adapters pass them on: values and keys are data.

Adapters write filters of metadata by adapters/conditions.py, in the notation of pgrecall. The list
goes through that, and through each adapter whose library is there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pgrecall import InvalidFilter, Recall
from pgrecall.adapters.conditions import as_condition
from servers import kept_fixture
from sqlcalls import Connection, contents

HOSTILE = [
    "'; drop table pgrecall.memory; --",
    "' or '1'='1",
    "x' or true) --",
    '"; drop schema pgrecall cascade; --',
    "\\'; select pg_sleep(100); --",
    "$$; delete from pgrecall.memory; $$",
    "$sql$ or true $sql$",
    "%s %(bank)s {0} {}",
    "%",
    "_",
    "\\",
    "'",
    '"',
    "''",
    "a.b",
    "a->>'b'",
    "metadata.x",
    "{a,b}",
    "(select 1)",
    "/* comment",
    "-- comment",
    "line\nbreak",
    "tab\tbed",
    "\u202eright to left",
    "ＦＵＬＬ width",
    "é" * 200,
    "null",
    "true",
    "1e999",
    "[]",
    "and",
    "not",
    "is null",
    "pg_catalog.version()",
]


@kept_fixture
def filled(connection: Connection) -> None:
    memory = Recall(connection)
    memory.create_bank("b")
    memory.create_bank("other")
    memory.retain("other", [{"text": "Nobody else's.", "metadata": {"team": "core"}}])
    memory.retain(
        "b",
        [
            {"text": f"Fact {n}.", "metadata": {"value": text, "nested": {text: n}, text: n}}
            for n, text in enumerate(HOSTILE)
            if text not in ("value", "nested")
        ],
    )


@pytest.fixture
def memory(filled: Connection) -> Recall:
    return Recall(filled)


def found(memory: Recall, given: Any) -> list[str]:
    condition: Any = as_condition(given)
    return sorted(one.text for one in memory.list_memories("b", filter=condition, top_k=200))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_value_is_a_value(memory: Recall, text: str) -> None:
    own = [f"Fact {HOSTILE.index(text)}."]
    others = sorted(f"Fact {n}." for n, one in enumerate(HOSTILE) if one != text)
    before = contents(memory._source)  # type: ignore[arg-type]

    assert found(memory, {"value": text}) == own
    assert found(memory, {"value": {"$in": [text]}}) == own
    assert found(memory, {"value": {"$ne": text}}) == others
    assert found(memory, {"value": {"$nin": [text]}}) == others
    assert [
        hit.text for hit in memory.recall("b", "fact", filter=["=", "metadata.value", text])
    ] == own
    assert contents(memory._source) == before  # type: ignore[arg-type]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_key_is_a_key_or_refused(memory: Recall, text: str) -> None:
    own = [f"Fact {HOSTILE.index(text)}."]
    before = contents(memory._source)  # type: ignore[arg-type]

    try:
        answer = found(memory, {text: HOSTILE.index(text)})
    except InvalidFilter:
        answer = []
    assert answer in (own, [])
    assert contents(memory._source) == before  # type: ignore[arg-type]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_stored_comes_back_as_it_was(memory: Recall, text: str) -> None:
    (one,) = memory.list_memories("b", filter=["=", "metadata.value", text])

    assert one.metadata["value"] == text
    assert json.dumps(one.metadata["nested"]) == json.dumps({text: HOSTILE.index(text)})


Asked = Callable[[str, str, Any], list[str]]
"""From a key, an operator ("=" or "!=") and a value, to the texts found."""


def by_langchain(memory: Recall) -> Asked:
    pytest.importorskip("langchain_core", reason="LangChain is not installed: make test-adapters")
    from pgrecall.adapters.langchain import PgrecallVectorStore

    store = PgrecallVectorStore(memory, "b")

    def asked(key: str, operator: str, value: Any) -> list[str]:
        given = {key: {"$eq" if operator == "=" else "$ne": value}}
        found = store.similarity_search("fact", k=100, filter=given)
        return [one.page_content for one in found]

    return asked


def by_llama_index(memory: Recall) -> Asked:
    reason = "LlamaIndex is not installed: make test-adapters"
    types = pytest.importorskip("llama_index.core.vector_stores.types", reason=reason)
    from pgrecall.adapters.llama_index import PgrecallVectorStore

    store = PgrecallVectorStore(memory, "b")

    def asked(key: str, operator: str, value: Any) -> list[str]:
        sign = types.FilterOperator.EQ if operator == "=" else types.FilterOperator.NE
        one = types.MetadataFilter(key=key, value=value, operator=sign)
        query = types.VectorStoreQuery(
            query_str="fact", similarity_top_k=100, filters=types.MetadataFilters(filters=[one])
        )
        listed = store.get_nodes(filters=query.filters)
        assert {node.node_id for node in listed} == set(store.query(query).ids)
        return [node.get_content() for node in listed]

    return asked


def by_langgraph(memory: Recall) -> Asked:
    pytest.importorskip("langgraph.store", reason="LangGraph is not installed: make test-adapters")
    from pgrecall.adapters.langgraph import PgrecallStore

    memory.create_bank("items")
    store = PgrecallStore(memory, "items")
    for n, text in enumerate(HOSTILE):
        store.put(("b",), text, {"said": f"Fact {n}.", "value": text, text: n})

    def asked(key: str, operator: str, value: Any) -> list[str]:
        given = {key: {"$eq" if operator == "=" else "$ne": value}}
        found = store.search(("b",), filter=given, limit=100)
        return [str(one.value["said"]) for one in found]

    return asked


def by_agno(memory: Recall) -> Asked:
    pytest.importorskip("agno.knowledge", reason="agno is not installed: make test-adapters")
    from pgrecall.adapters.agno import PgrecallKnowledge

    knowledge = PgrecallKnowledge(memory, "b")

    def asked(key: str, operator: str, value: Any) -> list[str]:
        given = {key: value if operator == "=" else {"$ne": value}}
        found = knowledge.retrieve("fact", max_results=100, filters=given)
        return [one.content for one in found]

    return asked


@pytest.mark.parametrize("by", [by_langchain, by_llama_index, by_langgraph, by_agno])
def test_through_each_adapter_values_and_keys_are_data(
    memory: Recall, by: Callable[[Recall], Asked]
) -> None:
    asked = by(memory)
    facts = {f"Fact {n}." for n in range(len(HOSTILE))}
    before = contents(memory._source)  # type: ignore[arg-type]

    for n, text in enumerate(HOSTILE):
        own = f"Fact {n}."
        assert asked("value", "=", text) == [own]
        assert set(asked("value", "!=", text)) == facts - {own}
        try:
            answer = asked(text, "=", n)
        except InvalidFilter:
            answer = []
        assert answer in ([own], [])
    assert contents(memory._source) == before  # type: ignore[arg-type]


def test_a_text_is_no_list_of_values() -> None:
    with pytest.raises(ValueError, match="needs a list, not 'abc'"):
        as_condition({"value": {"$in": "abc"}})


@pytest.mark.parametrize("operator", ["$where", "$regex", "$eq; drop", "$or", "$$"])
def test_an_operator_that_there_is_not_is_named(operator: str) -> None:
    with pytest.raises(ValueError, match="unknown operator"):
        as_condition({"value": {operator: "x"}})
