"""Prepare changes of a fact: embed a new text and new questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from pgrecall.calls.values import plain_facts, vector_fields
from pgrecall.inference.prompts import embed_passages
from pgrecall.retaining.facts import add_by_name

if TYPE_CHECKING:
    from pgrecall.settings import Settings


def embedded_changes(
    settings: Settings, changes: Mapping[str, object], model: str | None, context: str | None
) -> tuple[dict[str, object], str | None]:
    """Copy changes as JSON, with embeddings of a new text and of new questions.

    Slow; sends nothing.

    Args:
        settings: The client's settings.
        changes: Fields of a fact.
        model: Name of the model of a given embedding.
        context: The fact's context, if the changes do not name one.

    Returns:
        The changes, and the name of the model of their embeddings; None if unknown.

    Raises:
        InvalidFact: JSON or PostgreSQL cannot hold a value.
        EmbedderUnavailable: the embedder cannot work.

    """
    [fact] = cast("list[dict[str, object]]", plain_facts([changes], settings.timezone))
    model = model or settings.model
    embedder, following = settings.embedder, settings.next_embedder
    questions: Any = fact.get("questions")
    bare = [
        place
        for place in (fact, *(questions if isinstance(questions, list) else ()))
        if isinstance(place, dict)
        and isinstance(place.get("text"), str)
        and place.get("embedding") is None
        and place.get("embeddings") is None
    ]
    if embedder is None or not bare:
        return fact, model
    texts = [str(place["text"]) for place in bare]
    around = str(fact.get("context", context) or "")
    contexts = [around if place is fact else "" for place in bare]
    made = [*embed_passages(embedder, texts, contexts)]
    if following is None:
        for place, vector in zip(bare, made, strict=True):
            place.update(vector_fields(vector, place is fact))
        return fact, model or embedder.model
    # By name, since the bank may switch to the next model before this arrives.
    later = [*embed_passages(following, texts, contexts)]
    for place, vector, next_vector in zip(bare, made, later, strict=True):
        add_by_name(place, embedder.model, vector_fields(vector, place is fact))
        add_by_name(place, following.model, vector_fields(next_vector, place is fact))
    return fact, model
