"""LlamaIndex: PGVectorStore with hybrid search, fused by QueryFusionRetriever, as in its guide.

A vector retriever and a sparse one, forty candidates each, `relative_score` as in the guide, and no
further queries generated from the question (num_queries = 1, which needs no language model). A bank
is a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import TextNode
from llama_index.vector_stores.postgres import PGVectorStore
from pydantic import PrivateAttr

HNSW = {
    "hnsw_m": 16,
    "hnsw_ef_construction": 64,
    "hnsw_ef_search": 40,
    "hnsw_dist_method": "vector_cosine_ops",
}


class Given(BaseEmbedding):
    """The prepared vectors."""

    _vectors: Any = PrivateAttr()

    def __init__(self, vectors: Any) -> None:
        super().__init__(model_name="all-MiniLM-L6-v2")
        self._vectors = vectors

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self._vectors(query)
        return vector

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_query_embedding(text)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class Peer:
    def __init__(self, dsn: str, vectors: Any, threads: int) -> None:
        self._dsn = dsn
        self._vectors = vectors
        self._threads = threads
        self._embedding = Given(vectors)
        self._store = cache(self._opened)
        self._retriever = cache(self._fused)

    def setup(self) -> None:
        """Tables are made with the banks."""

    def versions(self) -> dict[str, str]:
        names = ("llama-index-vector-stores-postgres", "llama-index-core")
        return {name: version(name) for name in names}

    def _opened(self, bank: str) -> PGVectorStore:
        return PGVectorStore.from_params(
            connection_string=self._dsn.replace("postgresql://", "postgresql+psycopg2://"),
            async_connection_string=self._dsn.replace("postgresql://", "postgresql+asyncpg://"),
            table_name=f"fact_{bank}".lower(),
            embed_dim=384,
            hybrid_search=True,
            text_search_config="english",
            hnsw_kwargs=HNSW,
            create_engine_kwargs={"pool_size": self._threads},
        )

    def _fused(self, bank: str, top_k: int) -> QueryFusionRetriever:
        index = VectorStoreIndex.from_vector_store(self._store(bank), embed_model=self._embedding)
        return QueryFusionRetriever(
            [
                index.as_retriever(vector_store_query_mode=mode, similarity_top_k=40)
                for mode in ("default", "sparse")
            ],
            llm=MockLLM(),
            similarity_top_k=top_k,
            num_queries=1,
            mode="relative_score",
            use_async=False,
        )

    def load(self, bank: str, facts: Sequence[dict[str, Any]]) -> None:
        store = self._store(bank)
        for start in range(0, len(facts), 500):
            store.add(
                [
                    TextNode(
                        text=fact["text"],
                        metadata={"source_id": fact["id"], "at": fact["at"]},
                        embedding=self._vectors(fact["text"]),
                    )
                    for fact in facts[start : start + 500]
                ]
            )

    def finish(self) -> None:
        """The indexes are there from the beginning."""

    def ask(
        self, bank: str, text: str, asked_at: str | None, top_k: int
    ) -> tuple[list[str], float | None]:
        found = self._retriever(bank, top_k).retrieve(text)
        return [one.node.metadata["source_id"] for one in found], None
