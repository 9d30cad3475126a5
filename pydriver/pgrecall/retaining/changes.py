"""Prepare changes of a fact: embed a new text and new questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from pgrecall.retaining.facts import FactBatch

if TYPE_CHECKING:
    from pgrecall.rows import Memory
    from pgrecall.settings import Settings


def embedded_changes(
    settings: Settings,
    changes: Mapping[str, object],
    model: str | None,
    known: Memory | None,
    is_strict: bool = False,
) -> tuple[dict[str, object], str | None]:
    """Copy changes as JSON, with embeddings of a new text and of new questions.

    Slow; sends nothing. If the embedder fails, a new text has no embedding, and the questions stay
    as they are.

    Args:
        settings: The client's settings.
        changes: Fields of a fact.
        model: Name of the model of a given embedding.
        known: The fact, if the changes have a text: what has the same text in the same context is
            not embedded again.
        is_strict: Whether to raise errors of the embedder.

    Returns:
        The changes, and the name of the model of their embeddings; None if unknown.

    Raises:
        InvalidFact: JSON or PostgreSQL cannot hold a value.
        Exception: what the embedder raised, where that is wanted.

    """
    context = known.context if known else None
    to_embed = {"context": context, **changes}
    is_same = known is not None and (to_embed["text"], to_embed["context"]) == (known.text, context)
    if is_same:
        del to_embed["text"]
    batch = FactBatch(settings, [to_embed], model, is_strict)
    batch.embed(batch.facts)
    [fact] = cast("list[dict[str, object]]", batch.facts)
    if is_same:
        fact["text"] = changes["text"]
    if "context" not in changes:
        del fact["context"]
    if fact != batch.to_send[0]:
        del fact["questions"]
    return fact, batch.model
