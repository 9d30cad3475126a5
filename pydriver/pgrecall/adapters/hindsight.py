"""Hindsight: answer its recalls by pgrecall, in Hindsight's own database.

``HINDSIGHT_API_MEMORIES_EXTENSION`` names this store. Hindsight goes on to read and write its own
tables; the store only answers the arms of its recalls. Before each recall it copies what has
changed into a bank of pgrecall, within the database. Hits are joined with Hindsight's own rows and
conditions, so memories that were deleted, or that the caller may not see, are not returned.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import defaultdict
from datetime import datetime, timedelta, timezone
from typing import Any

from pgrecall.adapters import missing

try:
    from hindsight_api.engine.db_utils import acquire_with_retry
    from hindsight_api.engine.memories.base import RecallArms
    from hindsight_api.engine.memories.postgres import PostgresMemories
    from hindsight_api.engine.schema import fq_store_table
    from hindsight_api.engine.search.tags import (
        build_tag_groups_where_clause,
        build_tags_where_clause_simple,
    )
    from hindsight_api.engine.search.types import RetrievalResult
except ImportError as error:
    raise missing("hindsight", error) from error

from pgrecall.importing.databases import CAUSAL

logger = logging.getLogger(__name__)

# Hindsight fuses four lists. Arms that are not named here go into its list "graph".
LISTS = {
    "semantic": "semantic",
    "hypothetical": "semantic",
    "lexical": "bm25",
    "key": "bm25",
    "temporal": "temporal",
}
_SCORES = {
    "semantic": "similarity",
    "bm25": "bm25_score",
    "graph": "activation",
    "temporal": "temporal_score",
}
_BATCH = 500
# A transaction may commit rows whose updated_at is before that of rows already copied.
_OVERLAP = timedelta(minutes=1)
_MOST = 10_000  # hits per arm

# $1 bank of pgrecall, $2 of Hindsight, $3 since when, $4 rows copied since then, $5 batch size.
_COPY = f"""
with changed as materialized (
  select u.* from {{units}} u
  where  u.bank_id = $2 and u.updated_at >= $3::timestamptz - interval '{_OVERLAP.seconds} seconds'
    and  u.id::text || ' ' || u.updated_at::text <> all ($4::text[])
    and  u.text ~ '\\S'
  order  by u.updated_at, u.id
  limit  $5
),
fact as (
  select c.updated_at, c.id, jsonb_strip_nulls(jsonb_build_object(
           'text', left(c.text, 100000), 'fact_type', c.fact_type,
           'context', case when c.context ~ '\\S' then left(c.context, 100000) end,
           'fact_key', c.id, 'source_id', nullif(c.document_id, ''),
           'tags', (select jsonb_agg(t) from unnest(c.tags) as t where t ~ '\\S'),
           'metadata', jsonb_build_object('updated_at', c.updated_at),
           'occurred', case
             when c.occurred_end > c.occurred_start
               then jsonb_build_array(c.occurred_start, c.occurred_end)
             else to_jsonb(c.occurred_start) end,
           'mentioned_at', coalesce(c.mentioned_at, c.event_date),
           'proof_count', greatest(c.proof_count, 1),
           'embedding', c.embedding::text,
           'entities', (
             select jsonb_agg(e.canonical_name)
             from   {{mentions}} x join {{entities}} e on e.id = x.entity_id
             where  x.unit_id = c.id
               and  e.canonical_name ~ '[[:alnum:]]' and length(e.canonical_name) <= 500),
           'links', (
             select jsonb_agg(jsonb_build_object('kind', l.link_type, 'to_key', l.to_unit_id))
             from   {{links}} l
             where  l.from_unit_id = c.id
               and  l.link_type in {CAUSAL}
               and (exists (select from changed t where t.id = l.to_unit_id)
                    or exists (select from pgrecall.memory m
                               where  m.bank_id = $1 and m.fact_key = l.to_unit_id::text)))
         )) as fact
  from   changed c
)
select array_agg(f.id::text || ' ' || f.updated_at::text) as copied,
       array_agg(f.updated_at) as times,
       (select count(*) from pgrecall.retain(
          $1, (select jsonb_agg(o.fact order by o.updated_at, o.id) from fact o),
          replace => 'key')) as stored
from   fact f
having count(*) > 0
"""
# $1 and $2 as before, $3 query, $4 embedding, $5 window, $6 types, $7 options.
_RECALL = """
select h.arm, h.score, u.id, u.text, u.context, u.event_date, u.occurred_start, u.occurred_end,
       u.mentioned_at, u.fact_type, u.document_id, u.chunk_id, u.tags, u.metadata, u.proof_count,
       1 - (u.embedding <=> $4::text::vector) as similarity
from   pgrecall.arm_hits($1, $3, $4::text, during => $5::text::pgrecall_internal.period,
                         fact_types => $6::text[], options => $7::text::jsonb) as h
join   pgrecall.memory m on m.bank_id = $1 and m.memory_id = h.memory_id
join   {units} u on u.id = m.fact_key::uuid and u.bank_id = $2
where  u.fact_type = any ($6) {conditions}
order  by h.rank, h.score desc, h.arm
"""
_BEGIN = """
select b.bank_id is not null as is_there, u.dimensions,
       (select (m.metadata ->> 'updated_at')::timestamptz from pgrecall.memory m
        where  m.bank_id = $1
        order  by m.memory_id desc
        limit  1) as until
from   (select 1) as one
left   join pgrecall.bank b on b.bank_id = $1
left   join lateral (
  select vector_dims(x.embedding) as dimensions from {units} x
  where  x.bank_id = $2 and x.embedding is not null
  limit  1
) as u on true
"""


class PgrecallMemories(PostgresMemories):
    """Hindsight's PostgreSQL store, with recalls answered by pgrecall.

    Configuration: ``HINDSIGHT_API_MEMORIES_OPTIONS`` holds options of recall_options() as JSON.
    ``HINDSIGHT_API_MEMORIES_PREFIX`` is the prefix of pgrecall's bank names, by default
    "hindsight/". The schema follows the prefix unless it is public and the name has no slash.
    """

    name = "pgrecall"

    def __init__(self, config: dict[str, str]) -> None:
        """Read the configuration.

        Raises:
            ValueError: the options are not a JSON object.

        """
        super().__init__(config)
        options = json.loads(config.get("options") or "{}")
        if not isinstance(options, dict):
            raise ValueError(
                f"HINDSIGHT_API_MEMORIES_OPTIONS must be a JSON object, not {options!r}"
            )
        self._options: dict[str, Any] = options
        self._prefix = config.get("prefix", "hindsight/")
        self._copied: defaultdict[str, dict[str, datetime]] = defaultdict(dict)
        self._until: dict[str, datetime] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def recall_unified(
        self,
        *,
        conn: Any,
        bank_id: str,
        fact_types: list[str],
        query_embedding: str,
        query_text: str,
        limit: int,
        temporal_window: tuple[datetime, datetime] | None = None,
        temporal_semantic_threshold: float = 0.1,
        tags: list[str] | None = None,
        tags_match: Any = "any",
        tag_groups: list[Any] | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        min_semantic: float | None = None,
        min_keyword: float | None = None,
        enable_text_search: bool = True,
        enable_graph: bool = True,
    ) -> dict[str, RecallArms]:
        """Answer the arms of a recall, as PostgresMemories does.

        min_keyword is compared with pgrecall's BM25 score. temporal_semantic_threshold is not used,
        since the temporal arm weighs similarity itself.

        Raises:
            RuntimeError: the database has no schema pgrecall.

        """
        found = {name: RecallArms() for name in fact_types}
        values: list[Any] = []
        conditions = _conditions(
            values, tags, tags_match, tag_groups, created_after, created_before
        )
        # More than the limit, since the conditions below may remove hits.
        depth = limit * len(fact_types) * (4 if conditions else 1)
        options = {**self._options, "depth": min(max(depth, 20), _MOST)}
        async with acquire_with_retry(conn) as connection:
            bank = await self._follow(connection, bank_id)
            if bank is None:
                return found
            units = fq_store_table("memory_units")
            rows = await connection.fetch(
                _RECALL.format(units=units, conditions=conditions),
                bank,
                bank_id,
                query_text,
                query_embedding,
                temporal_window and "[{}, {})".format(*(at.isoformat() for at in temporal_window)),
                fact_types,
                json.dumps(options),
                *values,
            )
        is_wanted = {
            "semantic": True,
            "bm25": enable_text_search,
            "graph": enable_graph,
            "temporal": temporal_window is not None,
        }
        seen: set[tuple[str, str]] = set()
        for row in map(dict, rows):
            name = LISTS.get(row["arm"], "graph")
            score = row["score"]
            least = {"semantic": min_semantic, "bm25": min_keyword}.get(name)
            hits = getattr(found[row["fact_type"]], name)
            key = (name, str(row["id"]))
            if (
                not is_wanted[name]
                or key in seen
                or len(hits) >= limit
                or (least is not None and score < least)
            ):
                continue
            seen.add(key)
            hit = RetrievalResult.from_db_row(row)
            setattr(hit, _SCORES[name], score)
            if name == "temporal":
                hit.temporal_proximity = score
            hits.append(hit)
        return found

    async def _follow(self, connection: Any, bank_id: str) -> str | None:
        """Copy what has changed in a bank; return its name in pgrecall, None if it is empty."""
        bank = self._prefix + _bank_name(fq_store_table("").rstrip("."), bank_id)
        tables = {
            "units": fq_store_table("memory_units"),
            "mentions": fq_store_table("unit_entities"),
            "entities": fq_store_table("entities"),
            "links": fq_store_table("memory_links"),
        }
        async with self._locks[bank]:
            if bank not in self._until:
                begun = await self._begin(connection, bank, bank_id, tables["units"])
                if begun is None:
                    return None
                self._until[bank] = begun
            known = self._copied[bank]
            while True:
                row = await connection.fetchrow(
                    _COPY.format(**tables), bank, bank_id, self._until[bank], [*known], _BATCH
                )
                if row is None:
                    return bank
                known.update(zip(row["copied"], row["times"], strict=True))
                self._until[bank] = max(self._until[bank], *row["times"])
                for name, at in list(known.items()):
                    if at < self._until[bank] - _OVERLAP:
                        del known[name]
                logger.debug("copied %d memories of bank %s", len(row["copied"]), bank_id)

    async def _begin(self, connection: Any, bank: str, bank_id: str, units: str) -> datetime | None:
        """Return up to when a bank has been copied; create it if it is missing."""
        if await connection.fetchval("select to_regnamespace('pgrecall') is null"):
            raise RuntimeError(
                "Hindsight's database lacks the schema pgrecall. Run: pgrecall migrate --dsn URL"
            )
        row = await connection.fetchrow(_BEGIN.format(units=units), bank, bank_id)
        if row["dimensions"] is None:
            return None
        if not row["is_there"]:
            await connection.fetchval(
                "select pgrecall.create_bank($1, embedding_model => 'hindsight',"
                " embedding_dimensions => $2)",
                bank,
                row["dimensions"],
            )
        return row["until"] or datetime(1970, 1, 1, tzinfo=timezone.utc)


def _bank_name(schema: str, bank_id: str) -> str:
    """Return a name that no bank of another schema has: what precedes a slash is the schema."""
    return bank_id if schema == "public" and "/" not in bank_id else f"{schema}/{bank_id}"


def _conditions(
    values: list[Any],
    tags: list[str] | None,
    tags_match: Any,
    tag_groups: list[Any] | None,
    created_after: datetime | None,
    created_before: datetime | None,
) -> str:
    """Return Hindsight's conditions on its rows as SQL; append their parameters to values."""
    first = 8  # after the seven parameters of _RECALL
    conditions: str = build_tags_where_clause_simple(tags, first, "u.", match=tags_match)
    if tags:
        values.append(tags)
    groups = build_tag_groups_where_clause(tag_groups, first + len(values), "u.")
    values.extend(groups.params)
    conditions += f" {groups.sql}"
    # Despite their names these bound the time of the last change, as in Hindsight itself.
    for at, operator in ((created_after, ">"), (created_before, "<")):
        if at is not None:
            conditions += f" and u.updated_at {operator} ${first + len(values)}"
            values.append(at)
    return conditions.strip()
