"""LangGraph: a bank as the store of a graph, with search over its items."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

from pgrecall.adapters import LONGEST, checked, missing, sources

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
    )
    from langgraph.store.base.embed import get_text_at_path, tokenize_path
except ImportError as error:
    raise missing("langgraph", error) from error

from pgrecall.adapters.conditions import Condition, all_of, of_mapping
from pgrecall.client import Recall
from pgrecall.rows import Hit, Memory

PAGE = 10_000


class PgrecallStore(BaseStore):
    """Stores items as facts of a bank, to which nothing else should write.

    Each item is one fact: its text is searched, its metadata holds the value. An item that is put
    again replaces the earlier version, which stays in the history. In a batch, each put that
    changes an item is a transaction of its own. Time to live is not supported.
    """

    def __init__(self, memory: Recall, bank: str, *, fields: Sequence[str] = ("$",)) -> None:
        """Keep the client and the bank.

        Args:
            memory: The client, with the embedder that the store is to use.
            bank: Name of an existing bank.
            fields: Paths of the fields to search. Default: all.

        """
        self.memory = checked(memory, Recall)
        self.bank = bank
        self.fields = [*fields]

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: reads first, then the last write of each item."""
        ops = [*ops]
        results: list[Result] = [None] * len(ops)
        gets = {n: op for n, op in enumerate(ops) if isinstance(op, GetOp)}
        paths = [_path(op.namespace, op.key) for op in gets.values()]
        found = sources.current(self.memory, self.bank, paths)
        for n, op in gets.items():
            one = found.get(_path(op.namespace, op.key))
            results[n] = None if one is None else _item(one)
        for n, op in enumerate(ops):
            if isinstance(op, SearchOp):
                results[n] = self._search(op)
            elif isinstance(op, ListNamespacesOp):
                results[n] = self._namespaces(op)
        puts = {_path(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        if puts:
            self._put(puts)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run batch() on another thread."""
        return await asyncio.to_thread(self.batch, [*ops])

    def _put(self, puts: dict[str, PutOp]) -> None:
        gone = [path for path, op in puts.items() if op.value is None]
        if gone:
            self.memory.forget(self.bank, filter=["in", "source_id", gone])
        now = datetime.now(timezone.utc).isoformat()

        def fact_of(path: str, old: Memory | None) -> dict[str, Any]:
            op = puts[path]
            value = op.value or {}
            return {
                "text": self._text(op),
                "metadata": {
                    "namespace": [*op.namespace],
                    "key": op.key,
                    "value": value,
                    **{f"value.{name}": one for name, one in value.items()},  # for filters
                    "is_indexed": op.index is not False,
                    "created_at": old.metadata["created_at"] if old else now,
                    "updated_at": now,
                },
            }

        kept = [path for path, op in puts.items() if op.value is not None]
        sources.put(self.memory, self.bank, kept, fact_of)

    def _text(self, op: PutOp) -> str:
        """Return the text of the fields to search; the whole value if they are blank."""
        fields = op.index if isinstance(op.index, list) else self.fields
        said = [
            text for field in fields for text in get_text_at_path(op.value, tokenize_path(field))
        ]
        text = "\n".join(filter(None, said))
        return (text if text.strip() else json.dumps(op.value, ensure_ascii=False))[:LONGEST]

    def _search(self, op: SearchOp) -> list[SearchItem]:
        conditions = [_within(op.namespace_prefix), *of_mapping(op.filter or {}, "metadata.value")]
        top_k = op.limit + op.offset
        if op.query and op.query.strip():
            condition = all_of([*conditions, ["=", "metadata.is_indexed", "true"]])
            hits = self.memory.recall(
                self.bank, op.query, filter=condition, top_k=top_k, similarity_floor=-1.0
            )
            return [_found(hit, hit.relevance) for hit in hits[op.offset :]]
        stored = self.memory.list_memories(self.bank, filter=all_of(conditions), top_k=top_k)
        return [_found(one, None) for one in stored[op.offset :]]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found: set[tuple[str, ...]] = set()
        before: int | None = None
        condition = _within(_literal_prefix(op.match_conditions or ()))
        while page := self.memory.list_memories(
            self.bank, filter=condition, before_id=before, top_k=PAGE
        ):
            found |= {_fields(one)["namespace"] for one in page}
            before = page[-1].memory_id
        kept = {
            name[: op.max_depth]
            for name in found
            if all(_matches(condition, name) for condition in op.match_conditions or ())
        }
        return sorted(kept)[op.offset : op.offset + op.limit]


def _path(namespace: Sequence[str], key: str) -> str:
    """Return the source_id of an item, which begins with that of its namespace."""
    return json.dumps([*namespace, [key]], ensure_ascii=False)


def _within(namespace: Sequence[str]) -> Condition:
    prefix = json.dumps([*namespace], ensure_ascii=False)[:-1] + (", " if namespace else "")
    for sign in ("\\", "%", "_"):
        prefix = prefix.replace(sign, f"\\{sign}")
    return ["like", "source_id", f"{prefix}%"]


def _literal_prefix(conditions: Iterable[MatchCondition]) -> list[str]:
    for condition in conditions:
        if condition.match_type == "prefix":
            path = [*condition.path]
            return path[: path.index("*")] if "*" in path else path
    return []


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    if condition.match_type == "suffix":
        namespace = namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", one) for wanted, one in zip(path, namespace, strict=False))


def _fields(one: Memory | Hit) -> dict[str, Any]:
    """Return the fields of an item."""
    known: dict[str, Any] = dict(one.metadata)
    names = ("key", "value", "created_at", "updated_at")
    return {name: known[name] for name in names} | {"namespace": tuple(known["namespace"])}


def _item(one: Memory) -> Item:
    return Item(**_fields(one))


def _found(one: Memory | Hit, score: float | None) -> SearchItem:
    fields = _fields(one)
    for name in ("created_at", "updated_at"):
        fields[name] = datetime.fromisoformat(fields[name])
    return SearchItem(**fields, score=score)
