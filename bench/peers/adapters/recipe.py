"""The hybrid search of pgvector's documentation: full text and vectors, fused by rank in SQL.

A table with an HNSW index and a GIN index, `ts_rank_cd` over `plainto_tsquery`, forty candidates of
each, reciprocal rank fusion with k = 60. A bank is a table, because the recipe has no banks.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import local
from typing import Any

import psycopg
from psycopg import sql

TABLE = """
create table {table} (
  id bigint generated always as identity primary key,
  source_id text not null,
  content text not null,
  embedding vector(384) not null
)
"""
INDEXES = """
create index on {table} using hnsw (embedding vector_cosine_ops);
create index on {table} using gin (to_tsvector('english', content));
analyze {table}
"""
ASK = """
with semantic_search as (
  select id, rank() over (order by embedding <=> %(embedding)s::vector) as rank
  from   {table}
  order  by embedding <=> %(embedding)s::vector
  limit  40
),
keyword_search as (
  select id, rank() over (order by ts_rank_cd(to_tsvector('english', content), query) desc) as rank
  from   {table}, plainto_tsquery('english', %(text)s) query
  where  to_tsvector('english', content) @@ query
  order  by ts_rank_cd(to_tsvector('english', content), query) desc
  limit  40
)
select t.source_id
from   semantic_search
full   outer join keyword_search using (id)
join   {table} t using (id)
order  by coalesce(1.0 / (60 + semantic_search.rank), 0.0)
        + coalesce(1.0 / (60 + keyword_search.rank), 0.0) desc
limit  %(top_k)s
"""


class Tables:
    """Banks as tables, a connection for each thread."""

    table = TABLE
    indexes = INDEXES
    extensions: Sequence[str] = ("vector",)

    def __init__(self, dsn: str, vectors: Any, threads: int) -> None:
        self._dsn = dsn
        self.vectors = vectors
        self._local = local()

    @property
    def connection(self) -> psycopg.Connection[Any]:
        if not hasattr(self._local, "connection"):
            self._local.connection = psycopg.connect(self._dsn, autocommit=True)
        connection: psycopg.Connection[Any] = self._local.connection
        return connection

    def setup(self) -> None:
        for extension in self.extensions:
            self.connection.execute(
                sql.SQL("create extension if not exists {}").format(sql.Identifier(extension))
            )

    def versions(self) -> dict[str, str]:
        return dict(self.connection.execute("select extname, extversion from pg_extension"))

    def statement(self, text: str, bank: str) -> sql.Composed:
        name = sql.Identifier(f"fact_{bank}")
        return sql.SQL(text).format(table=name, index=sql.Identifier(f"fact_{bank}_words"))

    def load(self, bank: str, facts: Sequence[dict[str, Any]]) -> None:
        self.connection.execute(self.statement(self.table, bank))
        into = self.statement("copy {table} (source_id, content, embedding) from stdin", bank)
        with self.connection.cursor().copy(into) as copy:
            for fact in facts:
                copy.write_row([fact["id"], fact["text"], str(self.vectors(fact["text"]))])
        for statement in self.indexes.split(";"):
            self.connection.execute(self.statement(statement, bank))

    def finish(self) -> None:
        """Nothing is left to do."""


class Peer(Tables):
    def ask(
        self, bank: str, text: str, asked_at: str | None, top_k: int
    ) -> tuple[list[str], float | None]:
        given = {"embedding": str(self.vectors(text)), "text": text, "top_k": top_k}
        rows = self.connection.execute(self.statement(ASK, bank), given)
        return [row[0] for row in rows], None
