"""The adapter for LangChain passes LangChain's own standard tests, and keeps what makes recall."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from pgrecall import AsyncRecall, InvalidArgument, Recall
from toys import toy_embed

REASON = "LangChain is not installed: make test-adapters"
pytest.importorskip("langchain_core", reason=REASON)
standard = pytest.importorskip("langchain_tests.integration_tests", reason=REASON)

from langchain_core.documents import Document  # noqa: E402
from langchain_core.embeddings import DeterministicFakeEmbedding  # noqa: E402

from pgrecall.adapters.langchain import (  # noqa: E402
    PgrecallRetriever,
    PgrecallVectorStore,
    embedder_of,
)


@pytest.fixture
def memory(pgrecall: Recall) -> Recall:
    """A client whose changes are rolled back, with an embedder of its own."""
    memory = Recall(pgrecall._source, embedder=toy_embed, model="toy")
    memory.create_bank("b")
    return memory


@pytest.fixture
def store(memory: Recall) -> PgrecallVectorStore:
    return PgrecallVectorStore(memory, "b")


class TestVectorStore(standard.VectorStoreIntegrationTests):  # type: ignore[misc]
    @pytest.fixture
    def vectorstore(self, pgrecall: Recall) -> PgrecallVectorStore:
        embedder = embedder_of(self.get_embeddings(), "fake")
        memory = Recall(pgrecall._source, embedder=embedder)
        memory.create_bank("standard")
        return PgrecallVectorStore(memory, "standard")


class TestRetriever(standard.RetrieversIntegrationTests):  # type: ignore[misc]
    @pytest.fixture(autouse=True)
    def _bank(self, memory: Recall) -> None:
        memory.retain("b", [f"Boat {n} is blue." for n in range(5)])
        self.memory = memory

    @property
    def retriever_constructor(self) -> type[PgrecallRetriever]:
        return PgrecallRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory, "bank": "b"}

    @property
    def retriever_query_example(self) -> str:
        return "Which boat is blue?"


def test_a_retriever_tells_what_the_bank_knows(memory: Recall) -> None:
    fact = {"text": "Maya leads Atlas.", "occurred": "2026-03-05", "metadata": {"team": "core"}}
    memory.retain("b", [fact])
    retriever = PgrecallRetriever(memory=memory, bank="b", options={"min_relevance": 0.1})

    [found] = retriever.invoke("Who leads Atlas?", filter={"team": "core"})

    known = found.metadata["pgrecall"]
    assert found.page_content == "Maya leads Atlas."
    assert found.metadata["team"] == "core"
    assert known["occurred"][0].startswith("2026-03-05")
    assert known["relevance"] > 0.1
    assert retriever.invoke("Who leads Atlas?", filter={"team": "other"}) == []


def test_a_document_that_is_added_again_keeps_its_history(
    store: PgrecallVectorStore, memory: Recall
) -> None:
    store.add_texts(["Maya leads Atlas."], [{"n": 1}], ids=["a"])
    store.add_texts(["Bo leads Atlas."], [{"n": 2}], ids=["a"])
    store.add_texts(["Bo leads Atlas."], [{"n": 3}], ids=["a"])

    [now] = memory.list_memories("b")
    assert [one.text for one in memory.history("b", now.memory_id)] == [
        "Maya leads Atlas.",
        "Bo leads Atlas.",
        "Bo leads Atlas.",
    ]
    assert now.metadata == {"n": 3}


def test_a_document_whose_metadata_json_writes_otherwise_is_known(
    store: PgrecallVectorStore, memory: Recall
) -> None:
    metadata = {"day": date(2026, 3, 5), "place": (1, 2)}
    for _ in range(2):
        store.add_texts(["Maya leads Atlas."], [metadata], ids=["a"])

    [only] = memory.list_memories("b", is_ended_too=True)
    assert only.metadata == {"day": "2026-03-05", "place": [1, 2]}


def test_of_two_documents_with_an_id_the_last_counts(
    store: PgrecallVectorStore, memory: Recall
) -> None:
    for n in range(2):  # new, and known
        texts = [f"Maya leads {n}.", f"Bo leads {n}."]
        assert store.add_texts(texts, ids=["a", "a"]) == ["a", "a"]

        assert [one.text for one in memory.list_memories("b")] == [f"Bo leads {n}."]


def test_writers_at_once_leave_one_document_of_an_id(database: str) -> None:
    with Recall.connect(database, embedder=None, pool_size=4) as memory:
        memory.create_bank("b")
        store = PgrecallVectorStore(memory, "b")

        def write(writer: int) -> None:
            for n in range(4):
                store.add_texts([f"Version {writer}.{n}."], ids=["a"])

        with ThreadPoolExecutor(4) as threads:
            [*threads.map(write, range(4))]

        [kept] = store.memory.list_memories("b")
        assert kept.text in {f"Version {writer}.3." for writer in range(4)}


def test_blank_texts_are_left_out(store: PgrecallVectorStore) -> None:
    store.add_texts(["Boats.", "", " \n"], ids=["a", "b", "c"])
    before = store.get_by_ids(["a", "b", "c"])
    store.add_texts([""], ids=["a"])

    assert [document.id for document in before] == ["a"]
    assert store.get_by_ids(["a", "b", "c"]) == []


def test_deleting_erases_the_history_as_well(store: PgrecallVectorStore, memory: Recall) -> None:
    store.add_texts(["Maya leads Atlas."], ids=["a"])
    store.add_texts(["Bo leads Atlas."], ids=["a"])
    store.add_texts(["Cy leads Borealis."], ids=["c"])

    store.delete(["a"])

    left = memory.list_memories("b", is_ended_too=True)
    assert [one.text for one in left] == ["Cy leads Borealis."]
    store.delete([])
    assert len(memory.list_memories("b")) == 1
    store.delete()
    assert memory.list_memories("b") == []


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"n": 2}, {"b"}),
        ({"n": {"$gte": 2}}, {"b", "c"}),
        ({"n": {"$in": [1, 3]}}, {"a", "c"}),
        ({"n": {"$gt": 1, "$lt": 3}}, {"b"}),
        ({"n": {"$nin": [1, 3]}}, {"b"}),
        ({"$or": [{"n": 1}, {"n": {"$gt": 2}}]}, {"a", "c"}),
        ({"$and": [{"n": {"$gt": 1}}, {"$not": {"n": 3}}]}, {"b"}),
        ({"$or": [{"n": 3}], "n": {"$gt": 1}}, {"c"}),
        ("metadata->>'n' = '1'", {"a"}),
    ],
)
def test_documents_are_filtered(
    store: PgrecallVectorStore, condition: object, expected: set[str]
) -> None:
    store.add_texts(
        ["one boat", "two boats", "three boats"], [{"n": n} for n in (1, 2, 3)], ids=["a", "b", "c"]
    )

    found = store.similarity_search("boats", filter=condition)

    assert {document.id for document in found} == expected


def test_an_unknown_operator_is_named(store: PgrecallVectorStore) -> None:
    with pytest.raises(ValueError, match=r"unknown operator '\$near'"):
        store.similarity_search("boats", filter={"n": {"$near": 1}})
    with pytest.raises(ValueError, match=r"\$or in a filter needs a list of filters, not {}"):
        store.similarity_search("boats", filter={"$or": {}})
    with pytest.raises(ValueError, match=r"\$and in a filter joins filters of fields, not 1"):
        store.similarity_search("boats", filter={"$and": [1]})


def test_scores_are_relevances(store: PgrecallVectorStore) -> None:
    store.add_texts(["Maya leads Atlas.", "Boats are blue."])

    found = store.similarity_search_with_relevance_scores("Who leads Atlas?", k=2)

    assert found[0][0].page_content == "Maya leads Atlas."
    assert all(0 <= score <= 1 for _, score in found)


def test_vectors_and_variety_are_searched_by(store: PgrecallVectorStore) -> None:
    store.add_texts(["Maya leads Atlas.", "Boats are blue."])
    [vector] = toy_embed(["Boats are blue."])

    [nearest] = store.similarity_search_by_vector(vector, k=1, model="toy")
    varied = store.max_marginal_relevance_search("Who leads Atlas?", k=2, lambda_mult=0.3)
    both = store.max_marginal_relevance_search_by_vector(vector, k=2, model="toy")

    assert nearest.page_content == "Boats are blue."
    assert (len(varied), len(both)) == (2, 2)
    assert both[0].page_content == "Boats are blue."


def test_a_store_is_made_of_texts(memory: Recall, database: str) -> None:
    documents = [Document(page_content="Maya leads Atlas.", id="a")]
    embedding = DeterministicFakeEmbedding(size=6)

    given = PgrecallVectorStore.from_documents(documents, None, bank="made", memory=memory)
    own = PgrecallVectorStore.from_documents(
        documents, embedding, bank="own", dsn=database, model="fake"
    )

    assert [one.id for one in given.get_by_ids(["a"])] == ["a"]
    assert [one.id for one in own.similarity_search("Atlas")] == ["a"]
    assert own.memory.banks()[0].embedding_model == "fake"
    own.memory.close()
    with pytest.raises(ValueError, match="do not name their model"):
        PgrecallVectorStore.from_texts(["a"], embedding, dsn=database)


def test_async_calls_find_the_same(database: str) -> None:
    with Recall.connect(database, embedder=toy_embed, model="toy") as memory:
        memory.create_bank("b")
        store = PgrecallVectorStore(memory, "b")

        async def body() -> Any:
            await store.aadd_texts(["Maya leads Atlas."], ids=["a"])
            return [
                await store.asimilarity_search("Who leads Atlas?"),
                *[
                    await store.as_retriever(search_type=kind, search_kwargs=more).ainvoke("Atlas?")
                    for kind, more in (
                        ("similarity", {}),
                        ("mmr", {"lambda_mult": 0.5}),
                        ("similarity_score_threshold", {"score_threshold": 0.01}),
                    )
                ],
            ]

        assert [[one.id for one in found] for found in asyncio.run(body())] == [["a"]] * 4


def test_a_client_of_the_other_kind_is_refused() -> None:
    other: Any = AsyncRecall(SimpleNamespace(connection=list))  # type: ignore[arg-type]

    with pytest.raises(InvalidArgument, match="memory must be a client of class Recall, not "):
        PgrecallVectorStore(other, "b")

    with pytest.raises(InvalidArgument, match="memory must be a client of class Recall, not "):
        PgrecallRetriever(memory=other, bank="b")
