"""Read tables of other memory stores: LangChain PGVector, Mem0, Hindsight.

A server-side cursor reads them in one read-only transaction. The id of a row is stored in the
fact's metadata under the name of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from pgrecall.errors import InvalidArgument
from pgrecall.importing.rows import Row, plain

Columns = Mapping[str, Any]
CAUSAL = ("causes", "caused_by", "enables", "prevents")
"""The kinds of Hindsight's links that are causal, which the bank has too."""

_EMPTY: tuple[object, ...] = (None, "", [], {})


@dataclass(frozen=True, slots=True)
class Source:
    """A store to read from.

    Attributes:
        connection: An open connection to its database, used only for reading.
        kind: "langchain", "mem0" or "hindsight".
        table: Its table, if not the default one.
        part: A collection, user or bank; None for all.
        has_embeddings: Whether to import its embeddings.

    """

    connection: psycopg.Connection[Any]
    kind: str
    table: str | None = None
    part: str | None = None
    has_embeddings: bool = False

    def rows(self) -> Iterator[Row]:
        """Read the rows of the store.

        Raises:
            InvalidArgument: the table does not exist or has other columns.

        """
        query, table, fact = SOURCES[self.kind](self.table)
        for columns in self._read(query, table):
            key = str(columns["id"])
            place = f"{self.kind} {key}"
            if not (columns["text"] or "").strip():
                yield Row(place, None, "it has no text", key)
                continue
            made = {
                **fact(columns),
                "text": columns["text"],
                "metadata": {
                    **plain_mapping(fact(columns).get("metadata")),
                    f"{self.kind}_id": key,
                },
            }
            if self.has_embeddings and columns["embedding"] is not None:
                made["embedding"] = columns["embedding"]
            yield Row(place, {k: v for k, v in made.items() if v not in _EMPTY}, None, key)

    def links(self) -> dict[str, list[tuple[str, str, float]]]:
        """Read causal links: kind, id of the target and weight, by id of the row.

        Only Hindsight has them.
        """
        found: dict[str, list[tuple[str, str, float]]] = {}
        if self.kind == "hindsight":
            query = sql.SQL(
                "select l.from_unit_id::text, l.link_type, l.to_unit_id::text,"
                " least(greatest(l.weight, 0), 1)::real from memory_links l"
                " where l.link_type = any (%(causal)s) order by 1, 3, 2"
            )
            for from_id, kind, to_id, weight in self.connection.execute(
                query, {"causal": list(CAUSAL)}
            ):
                found.setdefault(from_id, []).append((kind, to_id, weight))
        return found

    def _read(self, query: str, table: str) -> Iterator[Columns]:
        statement = sql.SQL(query).format(
            table=sql.Identifier(*table.split(".")),
        )
        try:
            with self.connection.cursor("pgrecall_import", row_factory=dict_row) as cursor:
                yield from cursor.execute(statement, {"part": self.part})
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as error:
            raise InvalidArgument(
                f"this is not a {self.kind} store: {error.diag.message_primary}",
                hint="Name its table with --table, and its schema: --table schema.name.",
            ) from error


def plain_mapping(value: object) -> dict[str, object]:
    """Return a mapping as JSON; an empty one for anything else."""
    return {str(k): plain(v) for k, v in value.items()} if isinstance(value, Mapping) else {}


Plan = tuple[str, str, Callable[[Columns], dict[str, object]]]


def _langchain(table: str | None) -> Plan:
    """Return how to read langchain_pg_embedding, or a given table of PGVectorStore."""

    def fact(columns: Columns) -> dict[str, object]:
        metadata = plain_mapping(columns["metadata"])
        source = metadata.get("source")
        return {"metadata": metadata, "source_id": source if isinstance(source, str) else None}

    if table is not None:
        query = (
            "select e.langchain_id as id, e.content as text, e.embedding::text as embedding,"
            " e.langchain_metadata as metadata from {table} e"
            " where %(part)s::text is null order by 1"
        )
        return query, table, fact
    query = (
        "select e.id, e.document as text, e.embedding::text as embedding, e.cmetadata as metadata"
        " from {table} e join langchain_pg_collection c on c.uuid = e.collection_id"
        " where %(part)s::text is null or c.name = %(part)s order by 1"
    )
    return query, "langchain_pg_embedding", fact


def _mem0(table: str | None) -> Plan:
    def fact(columns: Columns) -> dict[str, object]:
        payload = plain_mapping(columns["payload"])
        for name in ("data", "memory", "hash"):
            payload.pop(name, None)
        said = payload.pop("updated_at", None) or payload.get("created_at")
        payload.pop("created_at", None)
        return {"metadata": payload, "mentioned_at": said}

    query = (
        "select e.id, coalesce(e.payload ->> 'data', e.payload ->> 'memory') as text,"
        " e.vector::text as embedding, e.payload from {table} e"
        " where %(part)s::text is null or e.payload ->> 'user_id' = %(part)s order by 1"
    )
    return query, table or "mem0", fact


def _hindsight(table: str | None) -> Plan:
    def fact(columns: Columns) -> dict[str, object]:
        row = columns["row"]
        start, end = row.get("occurred_start"), row.get("occurred_end")
        occurred: object = start
        if start and end and end != start:
            occurred = [min(start, end), max(start, end)]
        return {
            "fact_type": row.get("fact_type"),
            "context": row.get("context"),
            "source_id": row.get("document_id"),
            "tags": row.get("tags"),
            "metadata": row.get("metadata"),
            "occurred": occurred,
            "mentioned_at": row.get("mentioned_at") or row.get("event_date"),
            "confidence": row.get("confidence_score"),
            "proof_count": row.get("proof_count") or None,
            "entities": columns["entities"],
        }

    query = (
        "select u.id, u.text, u.embedding::text as embedding, to_jsonb(u) - 'embedding' as row,"
        " array(select e.canonical_name from unit_entities x join entities e on e.id = x.entity_id"
        " where x.unit_id = u.id order by 1) as entities"
        " from {table} u where %(part)s::text is null or u.bank_id = %(part)s order by 1"
    )
    return query, table or "memory_units", fact


SOURCES: dict[str, Callable[[str | None], Plan]] = {
    "langchain": _langchain,
    "mem0": _mem0,
    "hindsight": _hindsight,
}
