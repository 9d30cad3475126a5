"""Ogham: what its MCP tools call, `store_memory_enriched()` and `search_memories_enriched()`.

Its PostgreSQL backend and schema, with a profile for each bank. Facts have their entities as tags;
it finds dates and further entities in texts itself, and links similar facts. There is no reranker,
as by default. A search also records what it found, which is part of its time. It refuses texts
under ten characters, which are left out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import psycopg

sys.path.append(str(Path(__file__).resolve().parents[3] / "pydriver"))

from pgrecall.embedders import MiniLMEmbedder

DIMENSIONS = 384


class Peer:
    def __init__(self, dsn: str, vectors: Any, threads: int) -> None:
        self._dsn = dsn
        self._vectors = vectors
        vectors.embed = MiniLMEmbedder(threads=1).embed
        os.environ.update(
            {
                "DATABASE_BACKEND": "postgres",
                "DATABASE_URL": dsn,
                "EMBEDDING_PROVIDER": "openai",  # is never called
                "OPENAI_API_KEY": "none",
                "EMBEDDING_DIM": str(DIMENSIONS),
            }
        )

    def setup(self) -> None:
        from ogham import embeddings, service
        from ogham.schema_apply import render_schema_sql

        with psycopg.connect(self._dsn) as connection:
            if connection.execute("select to_regclass('memories')").fetchone() == (None,):
                schema = files("ogham").joinpath("sql/schema_postgres.sql").read_text("utf-8")
                connection.execute(render_schema_sql(schema, DIMENSIONS).encode())

        def embed(text: str, usage_out: Any = None) -> Any:
            return self._vectors(text)

        embeddings.generate_embedding = embed
        service.generate_embedding = embed
        self._service = service

    def versions(self) -> dict[str, str]:
        return {"ogham-mcp": version("ogham-mcp")}

    def load(self, bank: str, facts: Sequence[dict[str, Any]]) -> None:
        refused = sum(not self._store(bank, fact) for fact in facts)
        print(f"{bank}: {refused} of {len(facts)} texts refused")

    def _store(self, bank: str, fact: dict[str, Any]) -> bool:
        """Store a fact, unless it is refused for being short."""
        try:
            self._service.store_memory_enriched(
                fact["text"],
                bank,
                tags=[f"entity:{name}" for name in fact["entities"]],
                metadata={"source_id": fact["id"], **({"at": fact["at"]} if fact["at"] else {})},
                embedding=self._vectors(fact["text"]),
            )
        except ValueError as error:
            if "too short" not in str(error):
                raise
            return False
        return True

    def finish(self) -> None:
        """Links are written with the memories."""

    def ask(
        self, bank: str, text: str, asked_at: str | None, top_k: int
    ) -> tuple[list[str], float | None]:
        found = self._service.search_memories_enriched(
            text, bank, limit=top_k, embedding=self._vectors(text)
        )
        return [one["metadata"]["source_id"] for one in found][:top_k], None
