"""Memories: listing, corrections, merging, forgetting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from pgrecall.arguments import check_given
from pgrecall.calls.call import (
    Call,
    call_records,
    call_value,
    column_names,
    made_of,
    named_arguments,
    period_of,
    single,
)
from pgrecall.calls.values import filter_text, listed, to_range
from pgrecall.rows import Audited, Consolidated, Corrected, Memory, NearCopy, Period


def forget(bank: str, memory_ids: Iterable[int] | int) -> Call[int, int]:
    """Erase memories."""
    return call_value(
        "forget", {"bank": bank, "memory_ids": listed(memory_ids)}, is_repeatable=False
    )


def forget_where(
    bank: str,
    *,
    filter: str | Sequence[object] | None,
    fact_key: str | None,
    source_id: str | None,
    dry_run: bool | None,
) -> Call[int, int]:
    """Erase the memories that meet conditions."""
    return call_value(
        "forget_where",
        {"bank": bank},
        is_repeatable=False,
        filter=filter_text(filter),
        fact_key=fact_key,
        source_id=source_id,
        dry_run=dry_run,
    )


def forget_messages(
    bank: str,
    message_ids: Iterable[int] | int | None,
    *,
    session: str | None,
    during: Period | None,
    dry_run: bool | None,
) -> Call[int, int]:
    """Erase raw messages."""
    return call_value(
        "forget_messages",
        {"bank": bank},
        is_repeatable=False,
        message_ids=listed(message_ids),
        session=session,
        during=to_range(during),
        dry_run=dry_run,
    )


def stored_memories(bank: str, memory_ids: Iterable[int]) -> Call[Memory, list[Memory]]:
    """Return memories by id."""
    return call_memories("stored_memories", {"bank": bank, "memory_ids": listed(memory_ids)})


def page(
    function: str,
    needed: Mapping[str, object],
    *,
    filter: str | Sequence[object] | None,
    fact_types: Sequence[str] | None,
    tags: Sequence[str] | None = None,
    during: Period | None,
    entity: str | None,
    as_of: datetime | None,
    is_ended_too: bool,
    before_id: int | None,
    top_k: int | None,
) -> Call[Memory, list[Memory]]:
    """Return a page of the memories that meet conditions, by list_memories() or find_memories()."""
    check_given(is_ended_too=is_ended_too)
    return call_memories(
        function,
        {**needed} | ({"as_of": None} if is_ended_too else {}),
        filter=filter_text(filter),
        fact_types=listed(fact_types),
        tags=listed(tags),
        during=to_range(during),
        entity=entity,
        as_of=as_of,
        before_id=before_id,
        top_k=top_k,
    )


def memory_history(bank: str, memory_id: int, *, top_k: int | None) -> Call[Memory, list[Memory]]:
    """Return the versions of a fact."""
    return call_memories("memory_history", {"bank": bank, "memory_id": memory_id}, top_k=top_k)


def update_memory(
    bank: str, memory_id: int, changes: object, *, model: str | None
) -> Call[Memory, Memory]:
    """Replace a memory by a new version with other fields."""
    call = call_memories(
        "update_memory",
        {"bank": bank, "memory_id": memory_id, "changes": Jsonb(changes)},
        model=model,
    )
    return Call(call.sql, call.parameters, call.row_factory, single, is_repeatable=False)


def supersede(
    bank: str,
    memory_id: int,
    *,
    superseded_by: int | None,
    at: datetime | None,
    reach: str | None,
    dry_run: bool | None,
) -> Call[Corrected, list[Corrected]]:
    """End a memory."""
    return call_records(
        Corrected,
        "supersede",
        {"bank": bank, "memory_id": memory_id},
        is_repeatable=False,
        superseded_by=superseded_by,
        at=at,
        reach=reach,
        dry_run=dry_run,
    )


def near_copies(
    bank: str,
    memory_id: int,
    *,
    superseded_by: int | None,
    min_similarity: float | None,
    as_of: datetime | None,
) -> Call[NearCopy, list[NearCopy]]:
    """List the memories that say nearly the same as a memory."""
    return call_records(
        NearCopy,
        "near_copies",
        {"bank": bank, "memory_id": memory_id},
        superseded_by=superseded_by,
        min_similarity=min_similarity,
        as_of=as_of,
    )


def unsupersede(bank: str, memory_id: int) -> Call[Corrected, list[Corrected]]:
    """Revert the last correction of a memory."""
    needed = {"bank": bank, "memory_id": memory_id}
    return call_records(Corrected, "unsupersede", needed, is_repeatable=False)


def consolidate(
    bank: str, *, dry_run: bool | None, min_similarity: float | None, top_k: int | None
) -> Call[Consolidated, list[Consolidated]]:
    """Merge near duplicates, or list them."""
    return call_records(
        Consolidated,
        "consolidate",
        {"bank": bank},
        dry_run=dry_run,
        min_similarity=min_similarity,
        top_k=top_k,
    )


def unconsolidate(bank: str) -> Call[Corrected, list[Corrected]]:
    """Undo the latest consolidation."""
    return call_records(Corrected, "unconsolidate", {"bank": bank}, is_repeatable=False)


def quarantine(bank: str, source: str, *, dry_run: bool | None) -> Call[Corrected, list[Corrected]]:
    """Remove the facts of a source from all recalls."""
    needed = {"bank": bank, "source": source}
    return call_records(Corrected, "quarantine", needed, is_repeatable=False, dry_run=dry_run)


def release(bank: str, source: str) -> Call[Corrected, list[Corrected]]:
    """Undo the quarantine of a source."""
    needed = {"bank": bank, "source": source}
    return call_records(Corrected, "release", needed, is_repeatable=False)


def audit(
    bank: str, *, since: datetime | None, source: str | None, top_k: int | None
) -> Call[Audited, list[Audited]]:
    """List who stored, ended and replaced what."""
    return call_records(Audited, "audit", {"bank": bank}, since=since, source=source, top_k=top_k)


def call_memories(
    function: str, needed: Mapping[str, object], **given: object
) -> Call[Memory, list[Memory]]:
    """Call a function that returns memories."""
    listing, parameters = named_arguments(needed, **given)
    return Call(f"select * from pgrecall.{function}({listing})", parameters, memory_row, list)


_MEMORY_LISTS = ("tags", "entities", "ended_entities", "ended_relations")


def memory_row(cursor: Any) -> Callable[[Sequence[Any]], Memory]:
    """Convert rows to memories."""
    names = column_names(cursor)

    def row(values: Sequence[Any]) -> Memory:
        column = dict(zip(names, values, strict=True))
        lists = {name: tuple(column.get(name) or ()) for name in _MEMORY_LISTS}
        return made_of(Memory, {**column, **lists, "occurred": period_of(column["occurred"])})

    return row
