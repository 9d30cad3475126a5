"""LangChain: a bank as a retriever and as a vector store."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pgrecall.adapters import checked, missing, sources

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
    from pydantic import field_validator
except ImportError as error:
    raise missing("langchain", error) from error

from pgrecall.adapters.conditions import as_condition
from pgrecall.client import Recall
from pgrecall.inference.embedders import FunctionEmbedder
from pgrecall.inference.interfaces import Vector
from pgrecall.rows import Hit, Memory

ALL = {"similarity_floor": -1.0}
"""A vector store returns k documents even if they hardly match the question."""


class PgrecallRetriever(BaseRetriever):
    """Finds documents in a bank, whether or not LangChain filled it.

    Attributes:
        memory: The client, which embeds the question and reranks.
        bank: Name of an existing bank.
        k: Maximum number of documents.
        options: Further arguments of every recall, such as {"min_relevance": 0.2}.

    """

    memory: Any
    bank: str
    k: int = 10
    options: dict[str, Any] = {}  # noqa: RUF012  pydantic copies it

    @field_validator("memory")
    @classmethod
    def _check(cls, memory: Any) -> Any:
        return checked(memory, Recall)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        given = {"top_k": options.pop("k", self.k), **self.options, **options}
        given["filter"] = as_condition(given.get("filter"))
        return [_described(hit) for hit in self.memory.recall(self.bank, query, **given)]


class PgrecallVectorStore(VectorStore):
    """Stores documents as facts of a bank; a search uses all arms, not vectors alone.

    The id of a document is the source_id of its fact, so nothing else should write to the bank. A
    document that is added again replaces the earlier version, which stays in the history.
    """

    def __init__(self, memory: Recall, bank: str) -> None:
        """Keep the client and the bank.

        Args:
            memory: The client, with the embedder that the store is to use.
            bank: Name of an existing bank.

        """
        self.memory = checked(memory, Recall)
        self.bank = bank

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        bank: str = "langchain",
        memory: Recall | None = None,
        dsn: str | None = None,
        model: str | None = None,
        **kwargs: Any,
    ) -> PgrecallVectorStore:
        """Store texts in a bank, which is created if it is missing.

        Args:
            texts: What to store.
            embedding: Embeds the texts if no client is given. Default: the packaged embedder.
            metadatas: One for each text.
            ids: One for each text.
            bank: Name of the bank.
            memory: The client. Default: a new one.
            dsn: What a new client connects to, as for Recall.connect().
            model: Name of the model of the embedding.
            kwargs: Not used.

        Raises:
            ValueError: the embedding does not name its model, and model is not given.

        """
        if memory is None:
            embedder = {} if embedding is None else {"embedder": embedder_of(embedding, model)}
            memory = Recall.connect(dsn, **embedder)  # type: ignore[arg-type]
        memory.create_bank(bank, exist_ok=True)
        store = cls(memory, bank)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Store texts and return their ids.

        Args:
            texts: What to store; blank ones, such as empty pages, are left out.
            metadatas: One for each text.
            ids: One for each text; existing documents are replaced.
            kwargs: Not used.

        """
        texts = [*texts]
        names = [given or str(uuid.uuid4()) for given in ids or [None] * len(texts)]
        documents = zip(texts, metadatas or [{}] * len(texts), strict=True)
        latest = dict(zip(names, documents, strict=True))  # of several with an id, the last counts
        blank = {name for name, (text, _) in latest.items() if not text.strip()}
        for one in sources.current(self.memory, self.bank, blank).values():
            self.memory.supersede(self.bank, one.memory_id)

        def fact_of(name: str, old: Memory | None) -> dict[str, Any] | None:
            text, metadata = latest[name]
            if old is not None and (old.text, old.metadata) == (text, metadata):
                return None
            return {"text": text, "metadata": metadata}

        told = [name for name in latest if name not in blank]
        sources.put(self.memory, self.bank, told, fact_of)
        return names

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Erase documents with their history.

        Args:
            ids: Their ids; unknown ones are skipped. Default: all documents.
            kwargs: Not used.

        """
        wanted = ["is not null", "source_id"] if ids is None else ["in", "source_id", [*ids]]
        if ids != []:
            self.memory.forget(self.bank, filter=wanted)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return documents in the order of the ids; unknown ids are skipped."""
        found = sources.current(self.memory, self.bank, ids)
        return [_document(found[name]) for name in ids if name in found]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Find documents for a question, best first.

        Args:
            query: The question.
            k: Maximum number of documents.
            kwargs: Any option of a recall; filter may also be a mapping of metadata.

        """
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Find documents for a question with their relevance, from 0 to 1, best first.

        Args:
            query: The question.
            k: Maximum number of documents.
            kwargs: As for similarity_search().

        """
        kwargs = {**ALL, **kwargs, "filter": as_condition(kwargs.get("filter"))}
        hits = self.memory.recall(self.bank, query, top_k=k, **kwargs)
        return [(_document(hit), hit.relevance) for hit in hits]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return float  # scores are relevances

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """Find the documents nearest to an embedding.

        Args:
            embedding: An embedding of the bank's model.
            k: Maximum number of documents.
            kwargs: As for similarity_search().

        """
        return self.similarity_search("", k, embedding=embedding, **kwargs)

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Find documents that differ from one another.

        Args:
            query: The question.
            k: Maximum number of documents.
            fetch_k: Not used: all candidates are compared.
            lambda_mult: 1 for relevance alone, 0 for the most diverse.
            kwargs: As for similarity_search().

        """
        return self.similarity_search(query, k, diversity=1 - lambda_mult, **kwargs)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        **kwargs: Any,
    ) -> list[Document]:
        """Find documents near an embedding that differ from one another.

        Args:
            embedding: An embedding of the bank's model.
            k: As for max_marginal_relevance_search().
            fetch_k: Likewise.
            lambda_mult: Likewise.
            kwargs: As for similarity_search().

        """
        return self.max_marginal_relevance_search(
            "", k, fetch_k, lambda_mult, embedding=embedding, **kwargs
        )


def embedder_of(embedding: Embeddings, model: str | None = None) -> FunctionEmbedder:
    """Wrap LangChain's embeddings as an embedder for a client.

    Args:
        embedding: The embeddings.
        model: Name of their model. Default: their own model or model_name.

    Raises:
        ValueError: the embeddings do not name their model, and model is not given.

    """
    name = model or getattr(embedding, "model", None) or getattr(embedding, "model_name", None)
    if not name:
        raise ValueError('the embeddings do not name their model: pass model="..."')
    return _LangChainEmbedder(embedding, str(name))


class _LangChainEmbedder(FunctionEmbedder):
    """LangChain's embeddings, which embed questions and documents separately."""

    prompts: Mapping[str, str] = {}

    def __init__(self, embedding: Embeddings, name: str) -> None:
        super().__init__(lambda texts: embedding.embed_documents([*texts]), name)
        self._embedding = embedding

    def embed_documents(self, texts: Sequence[str]) -> Iterable[Vector]:
        return self.embed(texts)

    def embed_query(self, texts: Sequence[str]) -> Iterable[Vector]:
        return [self._embedding.embed_query(text) for text in texts]


def _document(one: Hit | Memory) -> Document:
    return Document(page_content=one.text, metadata=dict(one.metadata), id=one.source_id)


def _described(hit: Hit) -> Document:
    """Make a document of a hit, with what the bank knows about it as metadata."""
    occurred = hit.occurred and [time and time.isoformat() for time in hit.occurred]
    known = {
        "memory_id": hit.memory_id,
        "kind": hit.kind,
        "fact_type": hit.fact_type,
        "source_id": hit.source_id,
        "occurred": occurred,
        "mentioned_at": hit.mentioned_at and hit.mentioned_at.isoformat(),
        "relevance": hit.relevance,
    }
    return Document(page_content=hit.text, metadata={**hit.metadata, "pgrecall": known})
