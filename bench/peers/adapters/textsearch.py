"""BM25 of pg_textsearch beside vectors of pgvector, fused by rank in SQL.

The recipe of pgvector's documentation with the ranking of pg_textsearch: an index `bm25` and `<@>`,
any of the words, forty candidates of each, reciprocal rank fusion with k = 60.
"""

from __future__ import annotations

from recipe import TABLE, Tables

INDEXES = """
create index on {table} using hnsw (embedding vector_cosine_ops);
create index {index} on {table} using bm25 (content) with (text_config = 'english');
analyze {table}
"""
ASK = """
with semantic_search as (
  select id, rank() over (order by embedding <=> %(embedding)s::vector) as rank
  from   {table}
  order  by embedding <=> %(embedding)s::vector
  limit  40
),
matched as (
  select id, content <@> to_bm25query(%(text)s, %(index)s) as score
  from   {table}
  order  by content <@> to_bm25query(%(text)s, %(index)s)
  limit  40
),
keyword_search as (
  select id, rank() over (order by score) as rank from matched where score < 0
)
select t.source_id
from   semantic_search
full   outer join keyword_search using (id)
join   {table} t using (id)
order  by coalesce(1.0 / (60 + semantic_search.rank), 0.0)
        + coalesce(1.0 / (60 + keyword_search.rank), 0.0) desc
limit  %(top_k)s
"""


class Peer(Tables):
    table = TABLE
    indexes = INDEXES
    extensions = ("vector", "pg_textsearch")

    def ask(
        self, bank: str, text: str, asked_at: str | None, top_k: int
    ) -> tuple[list[str], float | None]:
        given = {
            "embedding": str(self.vectors(text)),
            "text": text,
            "index": f"fact_{bank}_words",
            "top_k": top_k,
        }
        rows = self.connection.execute(self.statement(ASK, bank), given)
        return [row[0] for row in rows], None
