"""Prepare facts for a bank: check them, and embed those without an embedding."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, cast

from pgrecall import calls
from pgrecall.arguments import check_type
from pgrecall.calls.call import Call, then
from pgrecall.calls.values import plain_facts, vector_fields
from pgrecall.errors import said
from pgrecall.inference.interfaces import Embedder, Vector
from pgrecall.inference.late_interaction import Embedded, tokens_text
from pgrecall.inference.vectors import embedded
from pgrecall.rows import PendingText, Retained, StoredEmbedding
from pgrecall.settings import Settings

logger = logging.getLogger(__name__)

Fact = Mapping[str, object] | str
"""A fact in the documented format, or its text."""

EMBED_BATCH = 64

Listing = Callable[..., Call[PendingText, list[PendingText]]]
"""What lists words to embed once the facts are stored."""

LISTINGS: tuple[Listing, ...] = (calls.retain.relations_pending, calls.retain.names_pending)


def several(facts: Iterable[Fact] | Fact) -> Iterable[Fact]:
    """Return a list of facts, also for a single one.

    Raises:
        InvalidArgument: it is neither a fact nor a list.

    """
    if isinstance(facts, str | Mapping):
        return [facts]
    check_type("facts", facts, Iterable[object])
    return facts


class FactBatch:
    """A batch of facts: checked for values that PostgreSQL cannot store, then embedded.

    Known facts are not embedded again but sent with their stored embedding, so that a fact that is
    forgotten meanwhile is not stored without one.

    Attributes:
        facts: The facts to send.
        model: Name of the model of their embeddings; None if unknown or without embeddings.
        needs_embeddings: Whether the bank must be asked for stored embeddings.

    """

    def __init__(
        self,
        settings: Settings,
        facts: Iterable[Fact] | Fact,
        model: str | None,
        is_strict: bool = False,
    ) -> None:
        """Copy the facts as JSON values.

        Raises:
            InvalidFact: a fact has a value that JSON or PostgreSQL cannot hold.

        """
        self.facts = plain_facts(several(facts), settings.timezone)
        self._settings = settings
        self.model = model or settings.model
        self._is_strict = is_strict
        self._failed: set[str] = set()
        self._whole = {id(fact) for fact in self.facts}  # questions are not looked up
        self._stored: dict[tuple[int, str], dict[str, Any]] = {}
        self.needs_embeddings = any(
            settings.next_embedder is not None
            or (settings.embedder is not None and place.get("embedding") is None)
            for fact in self.facts
            for place in _places(fact)
        )

    @property
    def listings(self) -> Sequence[Listing]:
        """Those of LISTINGS that the facts may need; none if the embedder failed."""
        facts = [] if self._failed else [fact for fact in self.facts if isinstance(fact, dict)]
        if any(fact.get("relations") for fact in facts):
            return LISTINGS
        has_names = any(fact.get("entities") for fact in facts)
        return (calls.retain.names_pending,) if has_names else ()

    @property
    def to_send(self) -> list[object]:
        """The facts, without questions that the embedder failed for: none could be found."""
        return [_without_bare_questions(f) for f in self.facts] if self._failed else self.facts

    def stored_call(self, bank: str) -> Call[StoredEmbedding, list[StoredEmbedding]]:
        """Return the call that asks for stored embeddings."""
        return calls.retain.stored_embeddings(bank, self.facts)

    def add_stored(self, embeddings: list[StoredEmbedding]) -> None:
        """Add stored embeddings."""
        for stored in embeddings:
            place: Any = self.facts[stored.index]
            if stored.kind == "question":
                place = place["questions"][stored.ordinal]
            fields = self._stored.setdefault((id(place), stored.model), {})
            if stored.kind == "part":
                fields.setdefault("parts", []).append(stored.embedding)
                continue
            fields["embedding"] = stored.embedding
            if stored.tokens:
                fields["tokens"] = tokens_text(stored.tokens)

    def chunks(self) -> Iterator[list[object]]:
        """Split the batch into chunks to embed."""
        facts = iter(self.facts)
        while chunk := list(islice(facts, EMBED_BATCH)):
            yield chunk

    def embed(self, chunk: Sequence[object]) -> None:
        """Embed facts and questions without a given or stored embedding. Slow; sends nothing.

        If the embedder fails, they get none, and it is not called again.

        Raises:
            Exception: what the embedder raised, where that is wanted.

        """
        places = [place for fact in chunk for place in _places(fact)]
        embedder, following = self._settings.embedder, self._settings.next_embedder
        bare = [place for place in places if place.get("embedding") is None]
        if embedder is not None and bare:
            name = embedder.model if following is not None else self.model or embedder.model
            for place, made in self._vectors(embedder, name, bare):
                if following is None:
                    place.update(made)
                    self.model = name
                else:  # by name, since the bank may switch models before this arrives
                    _add_by_name(place, embedder.model, made)
        # A fact without an embedding of the bank's model could not be found, so this is an error.
        own = [place for place in places if place.get("embedding") or place.get("embeddings")]
        if following is not None and own:
            for place, made in self._vectors(following, following.model, own):
                _add_by_name(place, following.model, made)

    def _vectors(
        self, embedder: Embedder, model: str, places: Sequence[dict[str, object]]
    ) -> Iterator[tuple[dict[str, object], dict[str, Any]]]:
        """Return the stored or new embedding, tokens and parts of each place."""
        new = [place for place in places if (id(place), model) not in self._stored]
        texts = [str(place["text"]) for place in new]
        contexts = [str(place.get("context") or "") for place in new]
        if texts and model not in self._failed:
            try:
                for place, vector in zip(new, embedded(embedder, texts, contexts), strict=True):
                    self._stored[id(place), model] = vector_fields(vector, id(place) in self._whole)
            except Exception as error:  # store the facts anyway
                if self._is_strict:
                    raise
                self._failed.add(model)
                logger.warning("facts are stored without embedding: %s", _told(error))
        for place in places:
            if (id(place), model) in self._stored:
                yield place, self._stored[id(place), model]

    def call(
        self, bank: str, link: str | None, replace: str | None
    ) -> Call[Retained, list[Retained]]:
        """Return the call that writes the batch."""
        call = calls.retain.retain(bank, self.to_send, model=self.model, link=link, replace=replace)
        return call if not self._failed else then(call, self._marked)

    def _marked(self, rows: list[Retained]) -> list[Retained]:
        """Mark facts that lack the embedding of a question because the embedder failed."""
        return [
            replace(row, is_embedded=all(map(_has_embedding, _places(fact, is_all=True))))
            for row, fact in zip(rows, self.facts, strict=True)
        ]


def pending_vectors(embedder: Embedder, texts: Sequence[PendingText]) -> list[Embedded]:
    """Embed pending texts, in their contexts, and check the vectors.

    Raises:
        Exception: what the embedder raised.

    """
    contexts = [text.context or "" for text in texts]
    return embedded(embedder, [text.text for text in texts], contexts)


def word_vectors(embedder: Embedder, texts: Sequence[PendingText], is_strict: bool) -> list[Vector]:
    """Embed relations and names; return none if the embedder fails, since the facts are stored.

    Raises:
        Exception: what the embedder raised, where that is wanted.

    """
    if not texts:
        return []
    try:
        return list(pending_vectors(embedder, texts))
    except Exception as error:  # embed_pending() adds them later
        if is_strict:
            raise
        logger.warning("relations and names are stored without embedding: %s", _told(error))
        return []


def _told(error: Exception) -> str:
    return ". ".join(part for part in said(error) if part)


def _places(fact: object, *, is_all: bool = False) -> Iterator[dict[str, object]]:
    """Return the places to embed in a fact: the fact and its questions.

    Places with an embedding are included, since the next model's may be missing. Places with
    embeddings by name are complete, and included only if is_all.
    """
    if not isinstance(fact, dict):
        return
    questions = fact.get("questions")
    for place in (fact, *(questions if isinstance(questions, list) else ())):
        if isinstance(place, dict) and (is_all or place.get("embeddings") is None):
            text = place.get("text")
            if isinstance(text, str) and text.strip():
                yield cast("dict[str, object]", place)


def _add_by_name(place: dict[str, object], model: str, made: Mapping[str, object]) -> None:
    """Add a model's embedding, tokens and parts to a place."""
    for field, by_model in (
        ("embedding", "embeddings"),
        ("tokens", "tokens"),
        ("parts", "parts"),
    ):
        if field in made:
            known = place.get(by_model)
            place[by_model] = {**(known if isinstance(known, dict) else {}), model: made[field]}


def _has_embedding(place: Mapping[str, object]) -> bool:
    return bool(place.get("embedding") or place.get("embeddings"))


def _without_bare_questions(fact: object) -> object:
    """Remove questions without an embedding, which could never be found."""
    if not isinstance(fact, dict) or not isinstance(fact.get("questions"), list):
        return fact
    bare = [place for place in _places(fact) if place is not fact and not _has_embedding(place)]
    return {**fact, "questions": [one for one in fact["questions"] if one not in bare]}
