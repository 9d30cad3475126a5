"""pgrecall, as a Python program uses it: retain_bulk(), and recall() without the reranker.

PGRECALL_BENCH_MODEL names the model. Vectors of the texts that the driver embeds are looked up. For
some questions that is not the whole text, because the driver leaves out names that the bank knows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import psycopg

from pgrecall import Recall, schema
from pgrecall.embedders import MiniLMEmbedder, PackagedEmbedder

MODELS = {one.model: one for one in (MiniLMEmbedder, PackagedEmbedder)}


class Given:
    """The prepared vectors; those of questions are stored with the prompt of the model."""

    prompts: Mapping[str, str] = {}

    def __init__(self, vectors: Any) -> None:
        embedder: Any = MODELS[os.environ["PGRECALL_BENCH_MODEL"]](threads=1)
        self.model = embedder.model
        self.dimensions = embedder.dimensions
        self._prefix = getattr(embedder, "prompts", self.prompts).get("query", "")
        self._vectors = vectors

        def embed(keys: Sequence[str]) -> list[Any]:
            return [
                *(
                    next(iter(embedder.embed_query([key.removeprefix(self._prefix)])))
                    if self._prefix and key.startswith(self._prefix)
                    else next(iter(embedder.embed([key])))
                    for key in keys
                )
            ]

        vectors.embed = embed

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return self.embed_documents(texts)

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        found: list[list[float]] = self._vectors.many(texts)
        return found

    def embed_query(self, texts: Sequence[str]) -> list[list[float]]:
        return self.embed_documents([self._prefix + text for text in texts])


class Peer:
    def __init__(self, dsn: str, vectors: Any, threads: int) -> None:
        self._dsn = dsn
        self._vectors = vectors
        self._threads = threads

    def setup(self) -> None:
        with psycopg.connect(self._dsn) as connection:
            connection.execute("create extension if not exists vector")
            schema.migrate(connection)
        self._recall = Recall.connect(
            self._dsn, embedder=Given(self._vectors), reranker=None, pool_size=self._threads
        )

    def versions(self) -> dict[str, str]:
        with psycopg.connect(self._dsn) as connection:
            row = connection.execute("select pgrecall.version()").fetchone()
        assert row is not None
        return {"pgrecall": row[0]}

    def load(self, bank: str, facts: Sequence[dict[str, Any]]) -> None:
        self._recall.create_bank(bank)
        given = (
            {
                "text": fact["text"],
                "source_id": fact["id"],
                "fact_type": fact["type"],
                "entities": fact["entities"],
                **({"occurred": fact["at"], "mentioned_at": fact["at"]} if fact["at"] else {}),
            }
            for fact in facts
        )
        self._recall.retain_bulk(bank, given, workers=1)

    def finish(self) -> None:
        """Indexes and links are part of retain_bulk()."""

    def ask(
        self, bank: str, text: str, asked_at: str | None, top_k: int
    ) -> tuple[list[str], float | None]:
        report = self._recall.recall_report(
            bank,
            text,
            reference_time=datetime.fromisoformat(asked_at) if asked_at else None,
            rerank=False,
            top_k=top_k,
            strict=not self._vectors.is_lost,
        )
        return [hit.source_id or "" for hit in report.hits], report.timings.database
