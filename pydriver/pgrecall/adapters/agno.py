"""Agno: a bank as the knowledge base of an agent, to read from and write to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from pgrecall.adapters import checked, missing

try:
    from agno.knowledge.document import Document
except ImportError as error:
    raise missing("agno", error) from error

from pgrecall.adapters.conditions import all_of, narrowed, of_mapping
from pgrecall.client import Recall


class PgrecallKnowledge:
    """A bank behind agno's knowledge protocol: ``Agent(knowledge=PgrecallKnowledge(...))``.

    Agno gives the agent its own tool for searching. ``tools=knowledge.get_tools()`` gives it
    recall_memories and retain_memory instead, with ``search_knowledge=False``. With
    ``add_knowledge_to_context=True`` agno also puts what the bank knows about a question into the
    prompt. All users of the agent share the bank.
    """

    def __init__(
        self,
        memory: Recall,
        bank: str,
        *,
        top_k: int = 10,
        max_tokens: int = 2000,
        may_retain: bool = True,
        **options: Any,
    ) -> None:
        """Keep the client, the bank and the options.

        Args:
            memory: The client. Give connect() a pool_size so that it can answer calls concurrently.
            bank: Name of an existing bank.
            top_k: Maximum number of documents for a question.
            max_tokens: Maximum length of what the tool recall_memories returns.
            may_retain: Whether the agent gets the tool retain_memory.
            options: Further arguments of every recall, such as min_relevance=0.2.

        """
        self._memory = checked(memory, Recall)
        self._bank = bank
        self._max_tokens = max_tokens
        self._may_retain = may_retain
        self._options = options
        self.max_results = top_k  # agno passes it to retrieve()

    def build_context(self, **_kwargs: Any) -> str:
        """Tell the agent about its memory; which tools it has depends on the version of agno."""
        told = "You have a memory. Search it before you answer from it."
        if self._may_retain:
            told += " If a tool adds to it, add what will matter later, one fact at a time."
        return told

    def get_tools(self, knowledge_filters: Any = None, **_kwargs: Any) -> list[Callable[..., str]]:
        """Return the tools.

        Args:
            knowledge_filters: Metadata that recalled facts must have, as for retrieve().

        Raises:
            ValueError: as retrieve().

        """
        options = self._narrowed(knowledge_filters)

        @wraps(self.recall_memories)
        def recall_memories(query: str) -> str:
            return self._recalled(query, options)

        return [recall_memories, self.retain_memory] if self._may_retain else [recall_memories]

    async def aget_tools(self, **kwargs: Any) -> list[Callable[..., str]]:
        """Return the tools."""
        return self.get_tools(**kwargs)

    def recall_memories(self, query: str) -> str:
        """Find what is known about a question.

        Args:
            query: The question, in full, with names and times.

        """
        return self._recalled(query, self._options)

    def retain_memory(self, text: str) -> str:
        """Keep a fact.

        Args:
            text: One fact, with names and dates rather than "he" and "yesterday".

        """
        stored = self._memory.retain(self._bank, [text])
        return "Kept." if stored[0].is_new else "That was known already."

    def retrieve(
        self, query: str, max_results: int | None = None, filters: Any = None, **_kwargs: Any
    ) -> list[Document]:
        """Find what answers a question, best first.

        Args:
            query: The question.
            max_results: Maximum number of documents. Default: top_k.
            filters: Metadata that the documents must have, as a mapping of names to values.

        Raises:
            ValueError: filters is not a mapping, or cannot be joined with option filter.

        """
        top_k = max_results or self.max_results
        hits = self._memory.recall(self._bank, query, top_k=top_k, **self._narrowed(filters))
        return [
            Document(
                content=hit.text,
                id=str(hit.memory_id),
                name=hit.source_id,
                meta_data=dict(hit.metadata),
                reranking_score=hit.relevance,
            )
            for hit in hits
        ]

    async def aretrieve(self, query: str, **kwargs: Any) -> list[Document]:
        """Run retrieve() on another thread."""
        return await asyncio.to_thread(self.retrieve, query, **kwargs)

    def validate_filters(self, filters: Any, **_kwargs: Any) -> tuple[Any, list[str]]:
        """Return the filters, and which of their names are unknown: none, since any may be."""
        return filters, []

    async def avalidate_filters(self, filters: Any, **_kwargs: Any) -> tuple[Any, list[str]]:
        """Do what validate_filters() does."""
        return filters, []

    def _recalled(self, query: str, options: Mapping[str, Any]) -> str:
        return self._memory.context(self._bank, query, max_tokens=self._max_tokens, **options).text

    def _narrowed(self, filters: Any) -> dict[str, Any]:
        """Return the options of a recall of what has this metadata."""
        if filters is not None and not isinstance(filters, Mapping):
            raise ValueError(f"filters must be a mapping of metadata, not {filters!r}")
        condition = all_of(of_mapping(filters or {}, "metadata"))
        return {**self._options, "filter": narrowed(self._options.get("filter"), condition)}
