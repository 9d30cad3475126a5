"""Embed the texts of a question, each in its role, and wait for the result."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from typing import Generic, TypeVar

from pgrecall.inference.interfaces import Embedder, Role, RoleEmbedder, Vector
from pgrecall.inference.known_words import known_words
from pgrecall.inference.late_interaction import Embedded, makes_tokens
from pgrecall.inference.prompts import embed_as
from pgrecall.inference.time_order import Direction, time_order
from pgrecall.inference.vectors import checked, embedded

T = TypeVar("T")
_OF_QUERY = ("embedding", "about_embedding", "tokens")


@dataclass(frozen=True, slots=True)
class Pending(Generic[T]):
    """A result to wait for.

    Attributes:
        future: The result.
        seconds: How long to wait; None for no limit.

    """

    future: futures.Future[T]
    seconds: float | None

    def settle(self) -> None:
        """Wait for a result, an error or the time limit; the worker then stops."""
        try:
            futures.wait((self.future,), self.seconds)
        finally:
            self.future.cancel()

    async def async_settle(self) -> None:
        """Wait as :meth:`settle`. ``asyncio.wait_for()`` may lose a cancellation before 3.12."""
        settled = asyncio.gather(asyncio.wrap_future(self.future), return_exceptions=True)
        try:
            await asyncio.wait((settled,), timeout=self.seconds)
        finally:
            self.future.cancel()

    def result(self) -> T:
        """Return the result.

        Raises:
            TimeoutError: it took too long.
            Exception: what the work raised.

        """
        if self.future.cancelled():
            raise TimeoutError(f"it took longer than {self.seconds or 0:.3g} s")
        return self.future.result()


class EmbedderWrapper:
    """An embedder made from another one, whose model, knowledge and prompts it has."""

    prompts: Mapping[str, str] = {}

    def __init__(self, embedder: Embedder) -> None:
        self.model = embedder.model
        self.makes_tokens = makes_tokens(embedder)
        self._embedder = embedder

    def embed(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Embed texts as passages."""
        return self.embed_documents(texts)

    def embed_documents(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per passage, in order."""
        raise NotImplementedError

    def known_words(self, text: str) -> float:
        """Return the share of the words that the model knows, 0 to 1."""
        return known_words(self._embedder, text)

    def time_order(self, vector: Sequence[float]) -> Direction | None:
        """Return which state a question asks for, by its embedding; None for neither or unsure."""
        return time_order(self._embedder, vector)


class EmbeddedBefore(EmbedderWrapper):
    """An embedder that returns embeddings of queries made before, in one batch."""

    def __init__(
        self, embedder: Embedder, vectors: Mapping[str, Embedded], error: Exception | None
    ) -> None:
        super().__init__(embedder)
        self._vectors = vectors
        self._error = error

    def embed_documents(self, texts: Sequence[str]) -> list[Embedded]:
        """Return one embedding per passage, in order; made now."""
        if self._error is not None:
            raise self._error
        return embedded(self._embedder, texts)

    def embed_query(self, texts: Sequence[str]) -> list[Embedded]:
        """Return one embedding per question, in order; made now if it was not made before."""
        if self._error is not None:
            raise self._error
        # What a function of the caller made of a question was not known then.
        new = [text for text in texts if text not in self._vectors]
        if not new:
            return [self._vectors[text] for text in texts]
        made = checked(self.model, [*embed_as(self._embedder, "query", new)], len(new))
        vectors = {**self._vectors, **dict(zip(new, made, strict=True))}
        return [vectors[text] for text in texts]


def by_role(embedder: Embedder, texts: Mapping[str, str]) -> Iterator[tuple[Role, Sequence[str]]]:
    """Group the texts of a recall by the role in which they are embedded.

    A hypothetical answer is embedded as a passage.
    """
    if not isinstance(embedder, RoleEmbedder):
        if texts:
            yield "query", [*texts]
        return
    if asked := [name for name in texts if name in _OF_QUERY]:
        yield "query", asked
    if answers := [name for name in texts if name not in _OF_QUERY]:
        yield "document", answers
