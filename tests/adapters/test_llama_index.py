"""The adapter for LlamaIndex: nodes come back as they were, found by an index and a retriever."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pgrecall import AsyncRecall, InvalidArgument, Recall
from toys import DIMENSIONS, toy_embed

REASON = "LlamaIndex is not installed: make test-adapters"
pytest.importorskip("llama_index.core", reason=REASON)

from llama_index.core import Document, StorageContext, VectorStoreIndex  # noqa: E402
from llama_index.core.base.embeddings.base import BaseEmbedding  # noqa: E402
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode  # noqa: E402
from llama_index.core.vector_stores.types import (  # noqa: E402
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from pgrecall.adapters.llama_index import PgrecallRetriever, PgrecallVectorStore  # noqa: E402


class ToyEmbedding(BaseEmbedding):  # type: ignore[misc]
    def _get_text_embedding(self, text: str) -> list[float]:
        return toy_embed([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


@pytest.fixture
def memory(pgrecall: Recall) -> Recall:
    memory = Recall(pgrecall._source, embedder=toy_embed, model="toy")
    memory.create_bank("b")
    return memory


@pytest.fixture
def store(memory: Recall) -> PgrecallVectorStore:
    return PgrecallVectorStore(memory, "b")


def node(name: str, text: str, document: str | None = None, **metadata: Any) -> TextNode:
    related = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)} if document else {}
    return TextNode(id_=name, text=text, metadata=metadata, relationships=related)


NODES = [
    node("a", "Maya leads Atlas.", "d1", team="core", n=1),
    node("b", "Boats are blue.", "d1", team="sea", n=2),
    node("c", "Cy leads Borealis.", "d2", team="core", n=3),
]


def names(found: Any) -> set[str]:
    return {one.node_id for one in found}


def test_an_index_finds_its_documents(store: PgrecallVectorStore, memory: Recall) -> None:
    documents = [
        Document(text="Maya leads Atlas.", metadata={"team": "core"}, id_="d1"),
        Document(text="Boats are blue.", id_="d2"),
    ]
    index = VectorStoreIndex.from_documents(
        documents,
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=ToyEmbedding(embed_batch_size=2),
    )

    found = index.as_retriever(similarity_top_k=1).retrieve("Who leads Atlas?")
    index.delete_ref_doc("d1")

    assert [one.node.get_content() for one in found] == ["Maya leads Atlas."]
    assert found[0].node.metadata == {"team": "core"}
    assert found[0].node.ref_doc_id == "d1"
    assert 0 <= found[0].score <= 1
    assert memory.banks()[0].embedding_dimensions == DIMENSIONS
    assert [one.source_id for one in memory.list_memories("b")] == ["d2"]


def test_an_index_over_a_bank_that_is_there(store: PgrecallVectorStore) -> None:
    store.add(NODES)
    index = VectorStoreIndex.from_vector_store(store, embed_model=ToyEmbedding())

    found = index.as_retriever(similarity_top_k=2).retrieve("Who leads Borealis?")

    assert found[0].node.node_id == "c"


def test_nodes_come_back_as_they_were(store: PgrecallVectorStore) -> None:
    assert store.add(NODES) == ["a", "b", "c"]
    store.add(NODES)  # once more is no change

    found = {one.node_id: one for one in store.get_nodes()}

    assert found.keys() == {"a", "b", "c"}
    assert [found[one.node_id].to_dict() for one in NODES] == [one.to_dict() for one in NODES]
    assert names(store.get_nodes(["a", "zzz"])) == {"a"}


def test_a_node_that_is_added_again_is_replaced(store: PgrecallVectorStore, memory: Recall) -> None:
    store.add(NODES)
    store.add([node("a", "Maya led Atlas.", "d1", n=4), node("b", "Boats are blue.", "d1", n=5)])

    found = {one.node_id: (one.get_content(), one.metadata) for one in store.get_nodes()}

    assert found["a"] == ("Maya led Atlas.", {"n": 4})
    assert found["b"] == ("Boats are blue.", {"n": 5})
    assert len(found) == len(memory.list_memories("b")) == 3


@pytest.mark.parametrize(
    ("moved", "held"),
    [
        ("Beta Alpha", "Beta Alpha Gamma"),
        ("Beta Gamma", "Beta Gamma"),
        ("Beta Gamma Alpha", "Beta Gamma Alpha"),
        ("New Alpha Beta", "New Alpha Beta"),
    ],
)
@pytest.mark.parametrize("is_interrupted", [False, True])
def test_a_text_that_moves_to_another_node_is_kept(
    store: PgrecallVectorStore,
    memory: Recall,
    monkeypatch: pytest.MonkeyPatch,
    moved: str,
    held: str,
    is_interrupted: bool,
) -> None:
    def nodes(texts: str) -> list[TextNode]:
        return [node(f"n{n}", text, "d") for n, text in enumerate(texts.split())]

    store.add(nodes("Alpha Beta Gamma"))
    update = Recall.update
    calls: list[Any] = []

    def fails_at_the_second(*given: Any, **more: Any) -> Any:
        calls.append(given)
        if len(calls) == 2:
            raise ConnectionError("interrupted")
        return update(*given, **more)

    if is_interrupted:
        with monkeypatch.context() as patch:
            patch.setattr(Recall, "update", fails_at_the_second)
            with pytest.raises(ConnectionError):
                store.add(nodes(moved))
        assert {*moved.split()} <= {one.text for one in memory.list_memories("b")}
    store.add(nodes(moved))
    ids = {one.memory_id for one in memory.list_memories("b")}
    store.add(nodes(moved))  # once more is no change

    found = sorted((one.node_id, one.get_content()) for one in store.get_nodes())
    assert found == [(one.node_id, one.get_content()) for one in nodes(held)]
    assert {one.memory_id for one in memory.list_memories("b")} == ids


def test_the_former_text_of_a_node_is_in_its_history(
    store: PgrecallVectorStore, memory: Recall
) -> None:
    store.add([node("a", "Maya leads Atlas.", "d")])
    store.add([node("a", "Maya led Atlas.", "d")])
    [now] = memory.list_memories("b")

    assert [one.text for one in memory.history("b", now.memory_id)] == [
        "Maya leads Atlas.",
        "Maya led Atlas.",
    ]


def test_a_document_that_is_parsed_again_has_the_ids_of_its_new_nodes(
    store: PgrecallVectorStore, memory: Recall
) -> None:
    twice = [node("p", "Same.", "d"), node("q", "Same.", "d"), node("r", "Other.", "d")]
    again = [node("x", "Same.", "d"), node("y", "Same.", "d"), node("z", "Other.", "d")]

    for nodes in (twice, twice, again, again):
        assert store.add(nodes) == [one.node_id for one in nodes]

    assert names(store.get_nodes()) == {"x", "z"}
    assert len(memory.list_memories("b")) == 2


def test_a_node_without_text_is_left_out(store: PgrecallVectorStore) -> None:
    node = TextNode(id_="a", text="Boats.")

    store.add([node, TextNode(id_="empty", text="", metadata={"file_name": "__init__.py"})])
    before = [one.node_id for one in store.get_nodes()]
    store.add([TextNode(id_="a", text=" ")])

    assert before == ["a"]
    assert store.get_nodes() == []


def test_options_of_a_query_join_its_filters_and_its_mode(store: PgrecallVectorStore) -> None:
    texts = ["Boats are blue.", "Blue are boats.", "Cars rust in rain."]
    store.add([TextNode(id_=str(n), text=text) for n, text in enumerate(texts)])
    query = VectorStoreQuery(query_str="Boats are blue.", similarity_top_k=2)
    varied = replace(query, mode=VectorStoreQueryMode.MMR)

    assert set(store.query(query, mmr_threshold=0).ids or []) == {"0", "1"}
    assert "2" in (store.query(varied, mmr_threshold=0).ids or [])
    both = store.query(replace(query, node_ids=["1", "2"]), filter=["like", "text", "B%"])
    assert both.ids == ["1"]


def test_nodes_are_deleted(store: PgrecallVectorStore) -> None:
    store.add(NODES)

    store.delete_nodes()
    assert len(store.get_nodes()) == 3
    store.delete_nodes(["b"])
    assert names(store.get_nodes()) == {"a", "c"}
    store.delete("d1")
    assert names(store.get_nodes()) == {"c"}
    store.clear()
    assert store.get_nodes() == []


def one(key: str, value: Any, operator: FilterOperator = FilterOperator.EQ) -> MetadataFilter:
    return MetadataFilter(key=key, value=value, operator=operator)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([one("team", "core")], {"a", "c"}),
        ([one("team", "core", FilterOperator.NE)], {"b"}),
        ([one("n", 1, FilterOperator.GT), one("n", 3, FilterOperator.LT)], {"b"}),
        ([one("n", [1, 3], FilterOperator.IN)], {"a", "c"}),
        ([one("n", [1, 3], FilterOperator.NIN)], {"b"}),
        ([one("team", "or", FilterOperator.TEXT_MATCH)], {"a", "c"}),
        ([one("team", "OR", FilterOperator.TEXT_MATCH_INSENSITIVE)], {"a", "c"}),
        ([one("gone", None, FilterOperator.IS_EMPTY)], {"a", "b", "c"}),
        (
            [
                MetadataFilters(filters=[one("n", 1), one("n", 2)], condition=FilterCondition.OR),
                one("team", "sea"),
            ],
            {"b"},
        ),
    ],
)
def test_nodes_are_filtered(
    store: PgrecallVectorStore, filters: list[Any], expected: set[str]
) -> None:
    store.add(NODES)
    given = MetadataFilters(filters=filters)

    listed = store.get_nodes(filters=given)
    query = VectorStoreQuery(query_str="Who leads what?", similarity_top_k=10, filters=given)

    assert names(listed) == expected
    assert set(store.query(query).ids) <= expected


def test_a_filter_that_there_is_not_is_named(store: PgrecallVectorStore) -> None:
    given = MetadataFilters(filters=[one("team", "x", FilterOperator.CONTAINS)])

    with pytest.raises(ValueError, match="no filter 'contains'"):
        store.get_nodes(filters=given)


def test_a_question_may_be_about_documents_and_nodes(store: PgrecallVectorStore) -> None:
    store.add(NODES)

    def asked(**more: Any) -> set[str]:
        query = VectorStoreQuery(query_str="Who leads?", similarity_top_k=10, **more)
        return set(store.query(query).ids)

    assert asked(doc_ids=["d2"]) == {"c"}
    assert asked(doc_ids=["d1"], node_ids=["a", "c"]) == {"a"}
    assert asked(doc_ids=[]) == set()
    assert asked(node_ids=[]) == {"a", "b", "c"}  # as an index asks that keeps no list of its nodes


def test_a_retriever_finds_facts_of_any_origin(memory: Recall) -> None:
    memory.retain("b", [{"text": "Maya leads Atlas.", "metadata": {"team": "core"}}])
    retriever = PgrecallRetriever(memory, "b", top_k=3)

    [found] = retriever.retrieve("Who leads Atlas?")

    assert found.node.get_content() == "Maya leads Atlas."
    assert found.node.metadata == {"team": "core"}


def test_a_question_by_words_needs_no_embedding(pgrecall: Recall) -> None:
    memory = Recall(pgrecall._source, embedder=None, model="toy")
    memory.create_bank("b")
    vectors = PgrecallVectorStore(memory, "b")
    context = StorageContext.from_defaults(vector_store=vectors)
    documents = [Document(text="Maya leads Atlas."), Document(text="Boats are blue.")]
    index = VectorStoreIndex.from_documents(
        documents, storage_context=context, embed_model=ToyEmbedding()
    )

    by_words = index.as_retriever(vector_store_query_mode="text_search")

    assert [one.text for one in by_words.retrieve("Who leads Atlas?")] == ["Maya leads Atlas."]


def test_async_calls_find_the_same(database: str) -> None:
    with Recall.connect(database, embedder=toy_embed, model="toy") as memory:
        memory.create_bank("b")
        store = PgrecallVectorStore(memory, "b")

        async def body() -> Any:
            await store.async_add(NODES)
            await store.adelete("d2")
            query = VectorStoreQuery(query_str="Who leads Atlas?", similarity_top_k=1)
            found = await store.aquery(query)
            listed = await PgrecallRetriever(memory, "b", top_k=1).aretrieve("Who leads Atlas?")
            return found.ids, [one.node.node_id for one in listed]

        assert asyncio.run(body()) == (["a"], ["a"])


def test_async_calls_run_beside_the_event_loop(
    store: PgrecallVectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    for name in ("add", "query", "delete", "delete_nodes", "get_nodes", "clear"):
        monkeypatch.setattr(
            PgrecallVectorStore, name, lambda *_, **__: threads.append(threading.get_ident())
        )

    async def body() -> None:
        await store.async_add(NODES)
        await store.aquery(VectorStoreQuery(query_str="Who?"))
        await store.adelete("d1")
        await store.adelete_nodes(["a"])
        await store.aget_nodes(["a"])
        await store.aclear()

    asyncio.run(body())

    assert len(threads) == 6
    assert threading.get_ident() not in threads


def test_a_client_of_the_other_kind_is_refused() -> None:
    other: Any = AsyncRecall(SimpleNamespace(connection=list))  # type: ignore[arg-type]

    with pytest.raises(InvalidArgument, match="memory must be a client of class Recall, not "):
        PgrecallVectorStore(other, "b")

    with pytest.raises(InvalidArgument, match="memory must be a client of class Recall, not "):
        PgrecallRetriever(other, "b")
