"""pgrecall, as a Python program uses it: retain_bulk(), and recall() without the reranker.

PGRECALL_BENCH_MODEL names the model whose vectors are handed over.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import psycopg

from pgrecall import Recall, schema

MODEL = os.environ.get("PGRECALL_BENCH_MODEL", "all-MiniLM-L6-v2")


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
            self._dsn, embedder=None, reranker=None, model=MODEL, pool_size=self._threads
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
                "embedding": self._vectors(fact["text"]),
                **({"occurred": fact["at"], "mentioned_at": fact["at"]} if fact["at"] else {}),
            }
            for fact in facts
        )
        self._recall.retain_bulk(bank, given, model=MODEL, workers=1)

    def finish(self) -> None:
        """Indexes and links are part of retain_bulk()."""

    def ask(
        self, bank: str, text: str, asked_at: str | None, top_k: int
    ) -> tuple[list[str], float | None]:
        report = self._recall.recall_report(
            bank,
            text,
            embedding=self._vectors(text),
            model=MODEL,
            reference_time=datetime.fromisoformat(asked_at) if asked_at else None,
            rerank=False,
            top_k=top_k,
        )
        return [hit.source_id or "" for hit in report.hits], report.timings.database
