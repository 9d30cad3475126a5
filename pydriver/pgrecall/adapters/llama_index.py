"""LlamaIndex: a bank as a retriever and as a vector store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pgrecall.adapters import checked, missing

try:
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
    from llama_index.core.vector_stores.types import (
        BasePydanticVectorStore,
        FilterCondition,
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
        VectorStoreQuery,
        VectorStoreQueryMode,
        VectorStoreQueryResult,
    )
    from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
except ImportError as error:
    raise missing("llama-index", error) from error

from pgrecall.adapters.conditions import Condition, all_of, narrowed, of_mapping
from pgrecall.adapters.sources import LIMIT
from pgrecall.client import Recall
from pgrecall.rows import Hit, Memory

ALL = {"similarity_floor": -1.0}
"""A vector store returns top_k nodes even if they hardly match the question."""
_ID = "_node_id"
_BY_WORDS = (VectorStoreQueryMode.TEXT_SEARCH, VectorStoreQueryMode.SPARSE)
_OPERATORS = {
    FilterOperator.EQ: "$eq",
    FilterOperator.NE: "$ne",
    FilterOperator.GT: "$gt",
    FilterOperator.GTE: "$gte",
    FilterOperator.LT: "$lt",
    FilterOperator.LTE: "$lte",
    FilterOperator.IN: "$in",
    FilterOperator.NIN: "$nin",
}


class PgrecallRetriever(BaseRetriever):
    """Finds nodes in a bank, whether or not LlamaIndex filled it."""

    def __init__(self, memory: Recall, bank: str, *, top_k: int = 10, **options: Any) -> None:
        """Keep the client, the bank and the options.

        Args:
            memory: The client, which embeds the question and reranks.
            bank: Name of an existing bank.
            top_k: Maximum number of nodes.
            options: Further arguments of every recall, such as min_relevance=0.2.

        """
        super().__init__()
        self._memory = checked(memory, Recall)
        self._bank = bank
        self._options = {"top_k": top_k, **options}

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._memory.recall(self._bank, query_bundle.query_str, **self._options)
        return [NodeWithScore(node=_node(hit), score=hit.relevance) for hit in hits]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class PgrecallVectorStore(BasePydanticVectorStore):
    """Stores nodes as facts of a bank; a search uses all arms, not vectors alone.

    The document of a node is the source_id of its fact, so nothing else should write to the bank.
    The index makes the embeddings; the client names their model and makes none, which questions
    without an embedding would not fit: ``Recall(..., embedder=None, model="...")``. A text that
    occurs twice in a document is stored once, and a node without text not at all.
    """

    stores_text: bool = True
    flat_metadata: bool = False

    _memory: Recall = PrivateAttr()
    _bank: str = PrivateAttr()

    def __init__(self, memory: Recall, bank: str) -> None:
        """Keep the client and the bank.

        Args:
            memory: The client. Its embedder embeds nodes and questions that come without an
                embedding.
            bank: Name of an existing bank.

        """
        super().__init__()
        self._memory = checked(memory, Recall)
        self._bank = bank

    @property
    def client(self) -> Recall:
        """Return the client."""
        return self._memory

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Store nodes and return their ids.

        Args:
            nodes: What to store. A node of a document replaces the one with its id.
            kwargs: Not used.

        """
        former = {one.memory_id: one for one in self._stored(nodes)}
        facts = {node.node_id: _fact(node) for node in nodes if _text(node).strip()}
        # A text may be that of another node by now: nothing ends before all texts are stored, and
        # no memory does whose text is among them. After an interruption the next add() goes on.
        rows = self._memory.retain(self._bank, [*facts.values()])
        versions: dict[int, int] = {}
        for row, fact in zip(rows, facts.values(), strict=True):
            if row.memory_id in versions:
                continue
            versions[row.memory_id] = row.memory_id
            old = former.get(row.memory_id)
            if not row.is_new and (old is None or old.metadata != fact["metadata"]):
                changes = {name: fact[name] for name in ("metadata", "embedding") if name in fact}
                version = self._memory.update(self._bank, row.memory_id, **changes)
                versions[row.memory_id] = version.memory_id
        latest = {name: versions[row.memory_id] for name, row in zip(facts, rows, strict=True)}
        for memory_id, old in former.items():
            if memory_id not in versions:
                self._memory.supersede(
                    self._bank, memory_id, superseded_by=latest.get(old.metadata[_ID])
                )
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Erase the nodes of a document.

        Args:
            ref_doc_id: The document.
            delete_kwargs: Not used.

        """
        self._memory.forget(self._bank, source_id=ref_doc_id)

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Erase the nodes with these ids that meet the filters.

        Args:
            node_ids: Their ids; None for any.
            filters: What their metadata must meet; None for any.
            delete_kwargs: Not used.

        """
        condition = _condition(node_ids, filters)
        if condition is not None and node_ids != []:
            self._memory.forget(self._bank, filter=condition)

    def clear(self) -> None:
        """Erase all nodes."""
        self._memory.forget(self._bank, filter=["is not null", f"metadata.{_ID}"])

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Return the nodes with these ids that meet the filters, latest stored first.

        Args:
            node_ids: Their ids; None for any.
            filters: What their metadata must meet; None for any.

        """
        if node_ids == []:
            return []
        condition = _condition(node_ids, filters)
        stored = self._memory.list_memories(self._bank, filter=condition, top_k=LIMIT)
        return [_node(one) for one in stored]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Find nodes for a question with their relevance, from 0 to 1, best first.

        Args:
            query: The question: its text, its embedding, or both.
            kwargs: Any option of a recall; mmr_threshold for mode MMR: 1 for relevance alone, 0
                for the most diverse (0.5).

        Raises:
            ValueError: a filter is unknown, or cannot be joined with option filter.

        """
        condition = _condition(query.node_ids, query.filters)
        if query.doc_ids is not None:  # an empty list means none of them, unlike node_ids
            documents: Condition = ["in", "source_id", [*query.doc_ids]]
            condition = documents if condition is None else ["and", condition, documents]
        if query.query_embedding is not None and query.mode not in _BY_WORDS:
            kwargs["embedding"] = query.query_embedding
        threshold = kwargs.pop("mmr_threshold", query.mmr_threshold)
        if query.mode == VectorStoreQueryMode.MMR:
            kwargs["diversity"] = 1 - (0.5 if threshold is None else threshold)
        hits = self._memory.recall(
            self._bank,
            query.query_str or "",
            **{
                **ALL,
                "top_k": query.similarity_top_k,
                **kwargs,
                "filter": narrowed(kwargs.get("filter"), condition),
            },
        )
        nodes = [_node(hit) for hit in hits]
        return VectorStoreQueryResult(
            nodes=nodes,
            similarities=[hit.relevance for hit in hits],
            ids=[node.node_id for node in nodes],
        )

    def _stored(self, nodes: Sequence[BaseNode]) -> list[Memory]:
        documents = sorted({_source(node) for node in nodes})
        known: Condition = ["in", "source_id", documents]
        ids: Condition = ["in", f"metadata.{_ID}", [node.node_id for node in nodes]]
        return self._memory.list_memories(self._bank, filter=["and", known, ids], top_k=LIMIT)

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Run add() on another thread."""
        return await asyncio.to_thread(self.add, nodes, **kwargs)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Run query() on another thread."""
        return await asyncio.to_thread(self.query, query, **kwargs)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Run get_nodes() on another thread."""
        return await asyncio.to_thread(self.get_nodes, node_ids, filters)

    async def adelete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Run delete_nodes() on another thread."""
        await asyncio.to_thread(self.delete_nodes, node_ids, filters)

    async def aclear(self) -> None:
        """Run clear() on another thread."""
        await asyncio.to_thread(self.clear)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Run delete() on another thread."""
        await asyncio.to_thread(self.delete, ref_doc_id, **delete_kwargs)


def _fact(node: BaseNode) -> dict[str, Any]:
    metadata = node_to_metadata_dict(node, remove_text=True)
    fact = {
        "text": _text(node),
        "metadata": {**metadata, _ID: node.node_id},
        "source_id": _source(node),
    }
    return fact if node.embedding is None else {**fact, "embedding": node.embedding}


def _text(node: BaseNode) -> str:
    return str(node.get_content(metadata_mode=MetadataMode.NONE))


def _source(node: BaseNode) -> str:
    return str(node.ref_doc_id or node.node_id)


def _condition(node_ids: list[str] | None, filters: MetadataFilters | None) -> Condition | None:
    found: list[Condition] = []
    if node_ids:
        found.append(["in", f"metadata.{_ID}", [*node_ids]])
    if filters is not None and filters.filters:
        found.append(_joined(filters))
    return all_of(found)


def _joined(filters: MetadataFilters) -> Condition:
    each = [
        _joined(one) if isinstance(one, MetadataFilters) else _one(one) for one in filters.filters
    ]
    if filters.condition == FilterCondition.NOT:
        return ["not", ["or", *each] if len(each) > 1 else each[0]]
    if len(each) == 1:
        return each[0]
    return ["or" if filters.condition == FilterCondition.OR else "and", *each]


def _one(given: MetadataFilter) -> Condition:
    if given.operator in _OPERATORS:
        [condition] = of_mapping({given.key: {_OPERATORS[given.operator]: given.value}}, "metadata")
        return condition
    name = f"metadata.{given.key}"
    if given.operator == FilterOperator.IS_EMPTY:
        return ["is null", name]
    if given.operator in (FilterOperator.TEXT_MATCH, FilterOperator.TEXT_MATCH_INSENSITIVE):
        text = str(given.value)
        for sign in ("\\", "%", "_"):
            text = text.replace(sign, f"\\{sign}")
        is_exact = given.operator == FilterOperator.TEXT_MATCH
        return ["like" if is_exact else "ilike", name, f"%{text}%"]
    raise ValueError(f"pgrecall has no filter {given.operator.value!r}")


def _node(one: Hit | Memory) -> BaseNode:
    """Return the stored node; for a fact that was not stored as a node, make one."""
    if "_node_content" in one.metadata:
        return metadata_dict_to_node(dict(one.metadata), text=one.text)
    return TextNode(id_=str(one.memory_id), text=one.text, metadata=dict(one.metadata))
