"""Browsing: counts, entities, the graph."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from psycopg.rows import scalar_row, tuple_row

from pgrecall.calls.call import Call, call_record, call_records, single
from pgrecall.calls.values import filter_text, listed
from pgrecall.rows import (
    GraphEdge,
    ListedEntity,
    MemoryCount,
    MemoryDetail,
    Neighbour,
)


def memory_counts(
    bank: str,
    *,
    unit: str | None = None,
    basis: str | None = None,
    filter: str | Sequence[object] | None = None,
) -> Call[MemoryCount, list[MemoryCount]]:
    """Count memories by time and type."""
    return call_records(
        MemoryCount,
        "memory_counts",
        {"bank": bank},
        unit=unit,
        basis=basis,
        filter=filter_text(filter),
    )


def list_entities(
    bank: str,
    *,
    name: str | None = None,
    kind: str | None = None,
    entity_ids: Sequence[int] | None = None,
    before_id: int | None = None,
    top_k: int | None = None,
) -> Call[ListedEntity, list[ListedEntity]]:
    """Return a page of the entities, most mentioned first."""
    return call_records(
        ListedEntity,
        "list_entities",
        {"bank": bank},
        name=name,
        kind=kind,
        entity_ids=listed(entity_ids),
        before_id=before_id,
        top_k=top_k,
    )


def memory_details(bank: str, memory_id: int) -> Call[MemoryDetail, MemoryDetail]:
    """Return everything that refers to a memory."""
    return call_record(MemoryDetail, "memory_details", {"bank": bank, "memory_id": memory_id})


def neighbours(bank: str, memory_id: int, *, top_k: int | None) -> Call[Neighbour, list[Neighbour]]:
    """Return the neighbours of a memory in the graph."""
    return call_records(
        Neighbour, "neighbours", {"bank": bank, "memory_id": memory_id}, top_k=top_k
    )


def neighbourhood(
    bank: str,
    *,
    entity_id: int | None = None,
    memory_id: int | None = None,
    hops: int | None = None,
    as_of: datetime | None = None,
    top_k: int | None = None,
) -> Call[GraphEdge, list[GraphEdge]]:
    """Return the graph around an entity or a memory."""
    return call_records(
        GraphEdge,
        "neighbourhood",
        {"bank": bank},
        entity_id=entity_id,
        memory_id=memory_id,
        hops=hops,
        as_of=as_of,
        top_k=top_k,
    )


def fact_types(bank: str) -> Call[Any, list[str]]:
    """List the fact types of a bank."""
    return Call(
        "select t.fact_type from pgrecall.fact_type t where t.bank_id = %(bank)s order by 1",
        {"bank": bank},
        scalar_row,
        list,
    )


def role() -> Call[Any, tuple[str, str]]:
    """Return the role and the database of the connection."""
    return Call(
        "select current_user::pg_catalog.text, current_database()::pg_catalog.text",
        {},
        tuple_row,
        single,
    )
