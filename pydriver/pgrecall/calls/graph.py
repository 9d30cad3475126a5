"""Entities: named by a query, joined by a path, merged, split, renamed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pgrecall.calls.call import Call, call_command, call_records, call_value
from pgrecall.calls.values import listed
from pgrecall.rows import DuplicateEntities, PathStep, QueryEntity


def query_entities(bank: str, query: str) -> Call[QueryEntity, list[QueryEntity]]:
    """List the entities that a query names."""
    return call_records(QueryEntity, "query_entities", {"bank": bank, "query": query})


def path(
    bank: str, entity_a: int, entity_b: int, *, longest: int | None
) -> Call[PathStep, list[PathStep]]:
    """Return a shortest path between two entities."""
    return call_records(
        PathStep,
        "path",
        {"bank": bank, "entity_a": entity_a, "entity_b": entity_b},
        longest=longest,
    )


def merge_entities(bank: str, entity_id: int, others: Iterable[int]) -> Call[int, int]:
    """Merge entities into one."""
    return call_value(
        "merge_entities", {"bank": bank, "entity_id": entity_id, "others": listed(others)}
    )


def split_entity(bank: str, entity_id: int, memory_ids: Iterable[int], name: str) -> Call[int, int]:
    """Split an entity in two."""
    return call_value(
        "split_entity",
        {"bank": bank, "entity_id": entity_id, "memory_ids": listed(memory_ids), "name": name},
    )


def rename_entity(bank: str, entity_id: int, name: str) -> Call[Any, None]:
    """Rename an entity."""
    return call_command("rename_entity", {"bank": bank, "entity_id": entity_id, "name": name})


def duplicate_entities(
    bank: str, *, top_k: int | None
) -> Call[DuplicateEntities, list[DuplicateEntities]]:
    """List pairs of possible duplicate entities."""
    return call_records(DuplicateEntities, "duplicate_entities", {"bank": bank}, top_k=top_k)
