"""The design that several memory services publish: an arm, a statement and a connection each.

Four arms run at once on four connections of a pool, and the client fuses them by rank, k = 60: the
nearest vectors (HNSW), full text (`ts_rank_cd` over GIN, any of the words), facts that share the
most entities with the five nearest, and the nearest facts in a month or year that the question
names. Where it names none, the fourth arm does not run.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool

SCHEMA = """
create table fact (
  bank text not null, id text not null, content text not null, at timestamptz,
  words tsvector not null generated always as (to_tsvector('english', content)) stored,
  embedding vector(384) not null, primary key (bank, id)
);
create table mention (
  bank text not null, entity text not null, id text not null, primary key (bank, entity, id)
);
create index on mention (bank, id);
create index on fact (bank, at);
create index on fact using gin (words);
"""
INDEX = """
create index if not exists fact_embedding_idx on fact using hnsw (embedding vector_cosine_ops);
"""
DEPTH, K = 50, 60
SEMANTIC = """
select id from fact where bank = %(bank)s order by embedding <=> %(embedding)s::vector limit 50
"""
LEXICAL = """
select f.id
from   fact f,
       to_tsquery('english', (select string_agg(quote_literal(w.lexeme), ' | ')
                              from unnest(to_tsvector('english', %(text)s)) as w)) as query
where  f.bank = %(bank)s and f.words @@ query
order  by ts_rank_cd(f.words, query) desc
limit  50
"""
GRAPH = """
with seed as (
  select id from fact where bank = %(bank)s order by embedding <=> %(embedding)s::vector limit 5
)
select o.id
from   seed s
join   mention m on m.bank = %(bank)s and m.id = s.id
join   mention o on o.bank = m.bank and o.entity = m.entity
group  by o.id
order  by count(*) desc, o.id
limit  50
"""
TEMPORAL = """
select id from fact
where  bank = %(bank)s and at >= %(since)s::timestamptz
  and  at < %(since)s::timestamptz + %(span)s::interval
order  by embedding <=> %(embedding)s::vector
limit  50
"""
MONTHS = "january february march april may june july august september october november december"
WINDOW = re.compile(rf"\b(?:({MONTHS.replace(' ', '|')})\w*,? )?((?:19|20)\d\d)\b", re.IGNORECASE)


class Peer:
    def __init__(self, dsn: str, vectors: Any, threads: int) -> None:
        self._vectors = vectors
        connections = 4 * threads
        self._pool = ConnectionPool(
            dsn, min_size=4, max_size=connections, kwargs={"autocommit": True}, open=True
        )
        self._threads = ThreadPoolExecutor(connections)

    def setup(self) -> None:
        with self._pool.connection() as connection:
            connection.execute("create extension if not exists vector")
            if connection.execute("select to_regclass('fact')").fetchone() == (None,):
                connection.execute(SCHEMA)

    def versions(self) -> dict[str, str]:
        return {"psycopg": psycopg.__version__}

    def load(self, bank: str, facts: Sequence[dict[str, Any]]) -> None:
        with self._pool.connection() as connection, connection.cursor() as cursor:
            with cursor.copy("copy fact (bank, id, content, at, embedding) from stdin") as copy:
                for fact in facts:
                    vector = str(self._vectors(fact["text"]))
                    copy.write_row([bank, fact["id"], fact["text"], fact["at"], vector])
            with cursor.copy("copy mention (bank, entity, id) from stdin") as copy:
                for fact in facts:
                    for entity in set(fact["entities"]):
                        copy.write_row([bank, entity, fact["id"]])

    def finish(self) -> None:
        with self._pool.connection() as connection:
            connection.execute(INDEX)
            connection.execute("analyze")

    def _arm(self, statement: str, given: dict[str, Any]) -> list[str]:
        with self._pool.connection() as connection:
            return [row[0] for row in connection.execute(statement.encode(), given)]

    def ask(
        self, bank: str, text: str, asked_at: str | None, top_k: int
    ) -> tuple[list[str], float | None]:
        given = {"bank": bank, "text": text, "embedding": str(self._vectors(text))}
        statements = [SEMANTIC, LEXICAL, GRAPH]
        if window := WINDOW.search(text):
            month, year = window.groups()
            number = MONTHS.split().index(month.lower()) + 1 if month else 1
            span = "1 month" if month else "1 year"
            given |= {"since": f"{year}-{number:02}-01", "span": span}
            statements.append(TEMPORAL)
        scores: dict[str, float] = defaultdict(float)
        for ids in [self._threads.submit(self._arm, one, given) for one in statements]:
            for rank, one in enumerate(ids.result(), 1):
                scores[one] += 1 / (K + rank)
        return sorted(scores, key=lambda one: -scores[one])[:top_k], None
