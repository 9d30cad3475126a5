"""Agno: a bank as the knowledge base of an agent, to read from and write to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from pgrecall.adapters import missing

try:
    from agno.knowledge.document import Document
except ImportError as error:
    raise missing("agno", error) from error

from pgrecall.adapters.conditions import all_of, narrowed, of_mapping
from pgrecall.client import Recall


class PgrecallKnowledge:
    """A bank behind agno's knowledge protocol: ``Agent(knowledge=PgrecallKnowledge(...))``.

    The agent gets two tools, recall_memories and retain_memory. With
    ``add_knowledge_to_context=True`` agno also puts what the bank knows about a question into the
    prompt.
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
        self._memory = memory
        self._bank = bank
        self._max_tokens = max_tokens
        self._may_retain = may_retain
        self._options = options
        self.max_results = top_k  # agno passes it to retrieve()

    def build_context(self, **_kwargs: Any) -> str:
        """Tell the agent about its tools."""
        told = "You have a memory. Call recall_memories before you answer from it."
        if self._may_retain:
            told += " Call retain_memory for what will matter later, one fact at a time."
        return told

    def get_tools(self, **_kwargs: Any) -> list[Callable[..., str]]:
        """Return the tools."""
        tools: list[Callable[..., str]] = [self.recall_memories]
        return [*tools, self.retain_memory] if self._may_retain else tools

    async def aget_tools(self, **kwargs: Any) -> list[Callable[..., str]]:
        """Return the tools."""
        return self.get_tools(**kwargs)

    def recall_memories(self, query: str) -> str:
        """Find what is known about a question.

        Args:
            query: The question, in full, with names and times.

        """
        return self._memory.context(
            self._bank, query, max_tokens=self._max_tokens, **self._options
        ).text

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
        if filters is not None and not isinstance(filters, Mapping):
            raise ValueError(f"filters must be a mapping of metadata, not {filters!r}")
        condition = all_of(of_mapping(filters or {}, "metadata"))
        options = {**self._options, "filter": narrowed(self._options.get("filter"), condition)}
        hits = self._memory.recall(
            self._bank, query, top_k=max_results or self.max_results, **options
        )
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
