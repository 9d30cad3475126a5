"""LangChain's PGVectorStore with hybrid search, as its guide sets it up.

A tsvector column with GIN, an HNSW index, reciprocal rank fusion with k = 60. Forty candidates of
each search, where the default of four could not give ten results. A bank is a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_postgres import PGEngine, PGVectorStore
from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig, reciprocal_rank_fusion
from langchain_postgres.v2.indexes import HNSWIndex

COLUMN = "content_tsv"


class Given(Embeddings):
    """The prepared vectors."""

    def __init__(self, vectors: Any) -> None:
        self._vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._vectors(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self._vectors(text)
        return vector


def hybrid(bank: str) -> HybridSearchConfig:
    """Return a configuration: a search writes its question into it, so each needs its own."""
    return HybridSearchConfig(
        tsv_column=COLUMN,
        tsv_lang="pg_catalog.english",
        fusion_function=reciprocal_rank_fusion,
        fusion_function_parameters={"rrf_k": 60},
        primary_top_k=40,
        secondary_top_k=40,
        index_name=f"fact_{bank}_words",
    )


class Peer:
    def __init__(self, dsn: str, vectors: Any, threads: int) -> None:
        self._embeddings = Given(vectors)
        self._engine = PGEngine.from_connection_string(
            url=dsn.replace("postgresql://", "postgresql+asyncpg://"), pool_size=threads
        )
        self._store = cache(self._opened)

    def setup(self) -> None:
        """Tables are made with the banks."""

    def versions(self) -> dict[str, str]:
        return {name: version(name) for name in ("langchain-postgres", "langchain-core")}

    def _opened(self, bank: str) -> PGVectorStore:
        return PGVectorStore.create_sync(
            self._engine,
            embedding_service=self._embeddings,
            table_name=f"fact_{bank}",
            hybrid_search_config=hybrid(bank),
        )

    def load(self, bank: str, facts: Sequence[dict[str, Any]]) -> None:
        self._engine.init_vectorstore_table(
            f"fact_{bank}", vector_size=384, hybrid_search_config=hybrid(bank)
        )
        store = self._store(bank)
        for start in range(0, len(facts), 500):
            part = facts[start : start + 500]
            store.add_texts(
                [fact["text"] for fact in part],
                [{"source_id": fact["id"], "at": fact["at"]} for fact in part],
            )
        store.apply_hybrid_search_index()
        store.apply_vector_index(HNSWIndex(name=f"fact_{bank}_embedding"))

    def finish(self) -> None:
        """Indexes are made with the banks."""

    def ask(
        self, bank: str, text: str, asked_at: str | None, top_k: int
    ) -> tuple[list[str], float | None]:
        found = self._store(bank).similarity_search(
            text, k=top_k, hybrid_search_config=hybrid(bank)
        )
        return [document.metadata["source_id"] for document in found], None
