"""The interfaces of embedders and rerankers."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Literal, Protocol, runtime_checkable

from pgrecall.inference.worker import Reading

Role = Literal["query", "document"]
"""Whether a text is embedded as a question or as a passage."""
Vector = Iterable[float]
"""One embedding: a list, a tuple, a numpy array, ..."""
EmbedFunction = Callable[[Sequence[str]], "Iterable[Vector] | Awaitable[Iterable[Vector]]"]
"""A function from texts to one embedding each; may be async."""


class Embedder(Protocol):
    """Turns texts into vectors with one model."""

    @property
    def model(self) -> str:
        """Name of the model; a bank accepts embeddings of one model only."""
        ...

    def embed(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per text, in order."""
        ...


@runtime_checkable
class RoleEmbedder(Protocol):
    """An embedder that embeds questions and passages differently.

    The name of the model must differ where the prompts do.
    """

    @property
    def prompts(self) -> Mapping[str, str]:
        """The prompts, by "query" and "document"; empty for none."""
        ...

    def embed_query(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per question, in order."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per passage, in order."""
        ...


@runtime_checkable
class ContextEmbedder(Protocol):
    """An embedder that reads what a passage says in its context."""

    def embed_in_context(self, texts: Sequence[str], contexts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per passage, in order; an empty context changes nothing."""
        ...


@runtime_checkable
class WorkedEmbedder(Protocol):
    """An embedder that the worker of the process runs."""

    def submit(self, texts: Sequence[str]) -> Future[Reading[Vector]]:
        """Let the worker embed texts that already have their prompts."""
        ...


@runtime_checkable
class HalvingEmbedder(WorkedEmbedder, Protocol):
    """An embedder that does less for a text whose token vectors alone are wanted."""

    def submit_some_for_tokens(
        self, texts: Sequence[str], are_for_tokens: Sequence[bool]
    ) -> Future[Reading[Vector]]:
        """Let the worker embed texts that already have their prompts, some for tokens alone."""
        ...


ScoreFunction = Callable[[str, Sequence[str]], "Sequence[float] | Awaitable[Sequence[float]]"]
"""A function from a query and texts to one relevance per text, 0 to 1; may be async."""


@runtime_checkable
class Reranker(Protocol):
    """Scores the relevance of each text for a query."""

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one relevance per text, in order, each from 0 to 1."""
        ...


@runtime_checkable
class PunctualReranker(Reranker, Protocol):
    """A reranker that can stop at a time limit."""

    def scores_within(self, query: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        """Return the relevance of the first texts, as many as time allows."""
        ...


@runtime_checkable
class WorkedReranker(Protocol):
    """A reranker that the worker of the process runs."""

    def submit(
        self,
        query: str,
        texts: Sequence[str],
        *,
        seconds: float = math.inf,
        is_enough: Callable[[float], bool] | None = None,
    ) -> Future[Reading[float]]:
        """Let the worker read as many texts as time allows and as are needed."""
        ...
