"""Mem0 with pgvector: `add(infer=False)`, which needs no language model, and `search()`.

Its defaults: HNSW, full text beside it, and the owner of a memory as filter; a bank is a user_id.
Without a model of spaCy, which no package registry has, it neither lemmatises words nor finds
entities.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["MEM0_TELEMETRY"] = "False"

from mem0 import Memory
from mem0.embeddings.base import EmbeddingBase


class Given(EmbeddingBase):
    """The prepared vectors."""

    def __init__(self, vectors: Any) -> None:
        super().__init__()
        self._vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector: list[float] = self._vectors(text)
        return vector


class Peer:
    def __init__(self, dsn: str, vectors: Any, threads: int) -> None:
        nobody = {"provider": "openai", "config": {"api_key": "none"}}  # is never called
        store = {
            "connection_string": dsn,
            "collection_name": "memories",
            "embedding_model_dims": 384,
            "maxconn": threads,
        }
        history = Path(f"history-{dsn.rpartition('/')[2]}.db").resolve()
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "pgvector", "config": store},
                "llm": nobody,
                "embedder": nobody,
                "history_db_path": str(history),
            }
        )
        self._memory.embedding_model = Given(vectors)

    def setup(self) -> None:
        """The table is made with the first memory."""

    def versions(self) -> dict[str, str]:
        return {"mem0ai": version("mem0ai")}

    def load(self, bank: str, facts: Sequence[dict[str, Any]]) -> None:
        for fact in facts:
            metadata = {"source_id": fact["id"], "at": fact["at"]}
            self._memory.add(fact["text"], user_id=bank, metadata=metadata, infer=False)

    def finish(self) -> None:
        """The indexes are there from the beginning."""

    def ask(
        self, bank: str, text: str, asked_at: str | None, top_k: int
    ) -> tuple[list[str], float | None]:
        found = self._memory.search(text, filters={"user_id": bank}, top_k=top_k)
        return [one["metadata"]["source_id"] for one in found["results"]], None
