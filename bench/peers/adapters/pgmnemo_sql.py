"""pgmnemo: `ingest()` and `recall_hybrid()`, its functions in SQL.

A bank is a project. Its vectors have 1,024 dimensions: ours are padded with zeros, as in its own
benchmark, which does not change cosines. Each lesson has a commit, which is required; the time is
in the metadata, because it stores only the time of the write. It filters projects after the search,
so five times as many results are requested, as its documentation advises. Texts that it refuses are
left out: those under 20 characters, and those that repeat one word.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from threading import local
from typing import Any

import psycopg

DIMENSIONS = 1024
INGEST = """
select pgmnemo.ingest(
  p_role => 'agent', p_project_id => %s, p_topic => %s, p_lesson_text => %s,
  p_embedding => %s::vector, p_commit_sha => %s, p_metadata => %s::jsonb)
"""
ASK = """
select r.metadata ->> 'source_id'
from   pgmnemo.recall_hybrid(%s::vector, %s, %s, null, %s) as r
order  by r.score desc
limit  %s
"""
OVERSAMPLING = 5


class Peer:
    def __init__(self, dsn: str, vectors: Any, threads: int) -> None:
        self._dsn = dsn
        self._vectors = vectors
        self._local = local()

    @property
    def connection(self) -> psycopg.Connection[Any]:
        if not hasattr(self._local, "connection"):
            self._local.connection = psycopg.connect(self._dsn, autocommit=True)
        connection: psycopg.Connection[Any] = self._local.connection
        return connection

    @staticmethod
    def _project(bank: str) -> int:
        return int(hashlib.sha256(bank.encode()).hexdigest()[:7], 16)

    def _vector(self, text: str) -> str:
        vector = self._vectors(text)
        return str(vector + [0.0] * (DIMENSIONS - len(vector)))

    def setup(self) -> None:
        self.connection.execute("create extension if not exists pgmnemo cascade")

    def versions(self) -> dict[str, str]:
        return dict(self.connection.execute("select extname, extversion from pg_extension"))

    def load(self, bank: str, facts: Sequence[dict[str, Any]]) -> None:
        refused = sum(not self._ingest(bank, fact) for fact in facts)
        print(f"{bank}: {refused} of {len(facts)} texts refused")

    def _ingest(self, bank: str, fact: dict[str, Any]) -> bool:
        """Store a fact, unless it is refused for its text."""
        about = {"source_id": fact["id"], "at": fact["at"], "entities": fact["entities"]}
        given = [
            self._project(bank),
            bank,
            fact["text"],
            self._vector(fact["text"]),
            hashlib.sha1(fact["id"].encode(), usedforsecurity=False).hexdigest(),
            json.dumps(about),
        ]
        try:
            self.connection.execute(INGEST, given)
        except psycopg.errors.RaiseException as error:
            if "ingest: lesson_text" not in str(error):
                raise
            return False
        return True

    def finish(self) -> None:
        """The indexes are there from the beginning."""

    def ask(
        self, bank: str, text: str, asked_at: str | None, top_k: int
    ) -> tuple[list[str], float | None]:
        given = [self._vector(text), text, OVERSAMPLING * top_k, self._project(bank), top_k]
        return [row[0] for row in self.connection.execute(ASK, given)], None
