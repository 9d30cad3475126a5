"""Changing the embedding model of a bank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pgrecall.calls.call import Call, call_command, call_record, call_records, call_value
from pgrecall.calls.retain import embeddings_of
from pgrecall.rows import PendingText, Reembedding


def reembed_start(bank: str, *, model: str, dimensions: int) -> Call[Any, None]:
    """Begin to re-embed a bank, or continue."""
    return call_command("reembed_start", {"bank": bank, "model": model, "dimensions": dimensions})


def reembed_pending(
    bank: str, *, from_id: int, batch_size: int
) -> Call[PendingText, list[PendingText]]:
    """List texts that are not embedded with the next model yet."""
    return call_records(
        PendingText, "reembed_pending", {"bank": bank, "from_id": from_id, "batch_size": batch_size}
    )


def reembed_store(
    bank: str, *, model: str, texts: Sequence[PendingText], vectors: Iterable[object]
) -> Call[int, int]:
    """Store embeddings of the next model."""
    embeddings = embeddings_of(texts, vectors)
    return call_value("reembed_store", {"bank": bank, "model": model, "embeddings": embeddings})


def reembed_status(bank: str) -> Call[Reembedding, Reembedding]:
    """Return the progress of re-embedding a bank."""
    return call_record(Reembedding, "reembed_status", {"bank": bank})


def reembed_finish(bank: str, *, is_lossy: bool | None) -> Call[Any, None]:
    """Make the next model the bank's own."""
    return call_command("reembed_finish", {"bank": bank}, is_repeatable=False, is_lossy=is_lossy)


def reembed_clean(bank: str, *, batch_size: int | None) -> Call[int, int]:
    """Remove embeddings of other models."""
    return call_value("reembed_clean", {"bank": bank}, batch_size=batch_size)


def reembed_cancel(bank: str) -> Call[Any, None]:
    """Cancel re-embedding a bank."""
    return call_command("reembed_cancel", {"bank": bank}, is_repeatable=False)
