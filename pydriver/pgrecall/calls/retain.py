"""Writing to a bank: facts, messages, sessions, embeddings and deferred links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo
from typing import Any

from psycopg.types.json import Jsonb

from pgrecall.arguments import check_type
from pgrecall.calls.call import (
    Call,
    call_command,
    call_records,
    call_value,
    named_arguments,
    row_of,
)
from pgrecall.calls.values import jsonable, vector_fields
from pgrecall.errors import InvalidFact
from pgrecall.rows import PendingText, Retained, RetainedMessage, StoredEmbedding, Turn


def retain(
    bank: str,
    facts: Sequence[object],
    *,
    model: str | None,
    link: str | None,
    replace: str | None = None,
) -> Call[Retained, list[Retained]]:
    """Write a batch of facts, as made by :func:`plain_facts`."""
    return call_records(
        Retained,
        "retain",
        {"bank": bank, "facts": Jsonb(facts)},
        model=model,
        link=link,
        replace=replace,
    )


def stored_embeddings(
    bank: str, facts: Sequence[object]
) -> Call[StoredEmbedding, list[StoredEmbedding]]:
    """List the embeddings that a bank has for facts."""
    listing, parameters = named_arguments({"bank": bank, "facts": Jsonb(facts)})
    return Call(
        "select s.index, s.kind, s.ordinal, s.model, s.embedding::pg_catalog.text, s.tokens"
        f" from pgrecall.stored_embeddings({listing}) as s",
        parameters,
        row_of(StoredEmbedding),
        list,
    )


def retain_messages(
    bank: str, messages: Iterable[object], *, zone: tzinfo | None = None
) -> Call[RetainedMessage, list[RetainedMessage]]:
    """Write a batch of raw messages; zone is that of datetimes without one."""
    needed = {"bank": bank, "messages": _plain_messages(messages, zone)}
    return call_records(RetainedMessage, "retain_messages", needed)


def are_new_messages(
    bank: str, messages: Iterable[object], *, zone: tzinfo | None = None
) -> Call[RetainedMessage, list[bool]]:
    """Return which messages retain_messages() would store."""
    needed = {"bank": bank, "messages": _plain_messages(messages, zone)}
    found = call_records(RetainedMessage, "stored_messages", needed)
    return Call(
        found.sql, found.parameters, found.row_factory, lambda rows: [row.is_new for row in rows]
    )


def _plain_messages(messages: Iterable[object], zone: tzinfo | None) -> Jsonb:
    check_type("messages", messages, Iterable[object])
    return Jsonb(
        [jsonable(row, f"messages[{i}]", InvalidFact, zone) for i, row in enumerate(messages)]
    )


def log_session(
    bank: str, session: str, *, started_at: datetime | None, ended_at: datetime | None
) -> Call[Any, None]:
    """Record when a conversation took place."""
    return call_command(
        "log_session",
        {"bank": bank, "session": session},
        is_repeatable=False,
        started_at=started_at,
        ended_at=ended_at,
    )


def last_session_end(
    bank: str, *, before: datetime | None
) -> Call[datetime | None, datetime | None]:
    """Return when the last conversation ended."""
    check_type("before", before, datetime | None)
    return call_value("last_session_end", {"bank": bank}, before=before)


def link_pending(bank: str, *, batch_size: int | None) -> Call[int, int]:
    """Write deferred links."""
    return call_value("link_pending", {"bank": bank}, batch_size=batch_size)


def pending_links(bank: str) -> Call[int, int]:
    """Count the facts whose links were deferred."""
    return call_value("pending_links", {"bank": bank})


def embed_pending(
    bank: str, *, from_id: int, batch_size: int
) -> Call[PendingText, list[PendingText]]:
    """List texts of memories without an embedding."""
    return call_records(
        PendingText, "embed_pending", {"bank": bank, "from_id": from_id, "batch_size": batch_size}
    )


def relations_pending(
    bank: str, *, model: str, memory_ids: list[int] | None
) -> Call[PendingText, list[PendingText]]:
    """List the words of relations without an embedding; none if these facts state no such one."""
    needed = {"bank": bank, "model": model}
    return call_records(PendingText, "relations_pending", needed, memory_ids=memory_ids)


def names_pending(
    bank: str, *, model: str, memory_ids: list[int] | None
) -> Call[PendingText, list[PendingText]]:
    """List names of which one may be short for the other."""
    needed = {"bank": bank, "model": model}
    return call_records(PendingText, "names_pending", needed, memory_ids=memory_ids)


def tokens_pending(
    bank: str, *, from_id: int, batch_size: int
) -> Call[PendingText, list[PendingText]]:
    """List texts of memories with an embedding but without token vectors."""
    return call_records(
        PendingText, "tokens_pending", {"bank": bank, "from_id": from_id, "batch_size": batch_size}
    )


def embedded_texts(
    bank: str, *, from_id: int, batch_size: int
) -> Call[PendingText, list[PendingText]]:
    """List texts that have an embedding."""
    return call_records(
        PendingText, "embedded_texts", {"bank": bank, "from_id": from_id, "batch_size": batch_size}
    )


def embed_again(
    bank: str, *, model: str, texts: Sequence[PendingText], vectors: Iterable[object]
) -> Call[int, int]:
    """Replace embeddings by others of the same model."""
    embeddings = embeddings_of(texts, vectors)
    return call_value("embed_again", {"bank": bank, "embeddings": embeddings, "model": model})


def embed_store(
    bank: str, *, model: str, texts: Sequence[PendingText], vectors: Iterable[object]
) -> Call[int, int]:
    """Store embeddings of pending texts."""
    embeddings = embeddings_of(texts, vectors)
    return call_value("embed_store", {"bank": bank, "embeddings": embeddings, "model": model})


def embeddings_of(texts: Sequence[PendingText], vectors: Iterable[object]) -> Jsonb:
    """Join texts and their vectors for the database."""
    return Jsonb(
        [
            {
                "memory_id": text.memory_id,
                "kind": text.kind,
                "ordinal": text.ordinal,
                "text": text.text if text.kind in ("relation", "name") else None,
                **vector_fields(vector, text.kind == "text"),
            }
            for text, vector in zip(texts, vectors, strict=True)
        ]
    )


def message_context(
    bank: str, message_id: int, *, before: int | None, after: int | None
) -> Call[Turn, list[Turn]]:
    """Return a message with the messages before and after it."""
    check_type("before", before, int | None)
    check_type("after", after, int | None)
    return call_records(
        Turn,
        "message_context",
        {"bank": bank, "message_id": message_id},
        before=before,
        after=after,
    )
