"""Keep one current memory for each source_id, for stores whose items have a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from pgrecall.client import Recall
from pgrecall.errors import InvalidArgument, MemoryNotFound
from pgrecall.rows import Memory

LIMIT = 100_000
"""The most that list_memories() returns at once."""


def current(memory: Recall, bank: str, names: Iterable[str]) -> dict[str, Memory]:
    """Return the current memory of each source_id that has one, of several the latest."""
    return {name: copies[0] for name, copies in _held(memory, bank, names).items()}


def put(
    memory: Recall,
    bank: str,
    names: Iterable[str],
    fact_of: Callable[[str, Memory | None], dict[str, Any] | None],
) -> None:
    """Store a fact for each source_id, as a new version of its current memory.

    Others may put facts of the same source_ids meanwhile: then the fact of one of them is current.

    Args:
        memory: The client.
        bank: Name of an existing bank.
        names: The source_ids.
        fact_of: Makes the fact of a source_id, given its current memory; None: nothing changes.

    """
    names = [*names]
    while names:
        former = _settled(memory, bank, names)
        new = []
        outrun = []
        for name in names:
            old = former.get(name)
            fact = fact_of(name, old)
            if fact is None:
                continue
            if old is None:
                new.append({**fact, "source_id": name})
                continue
            try:
                memory.update(bank, old.memory_id, **fact)
            except (InvalidArgument, MemoryNotFound):
                latest = current(memory, bank, [name]).get(name)
                if latest is not None and latest.memory_id == old.memory_id:
                    raise
                outrun.append(name)  # another writer has replaced or erased it
        if new:
            memory.retain(bank, new)
            _settled(memory, bank, [fact["source_id"] for fact in new])
        names = outrun


def _settled(memory: Recall, bank: str, names: Iterable[str]) -> dict[str, Memory]:
    """Return current(), after ending all but the latest of what writers found new at once."""
    while True:
        held = _held(memory, bank, names)
        copies = [(latest, one) for latest, *others in held.values() for one in others]
        if not copies:
            return {name: one for name, [one] in held.items()}
        for latest, one in copies:
            with suppress(MemoryNotFound):  # one of them was erased meanwhile
                memory.supersede(bank, one.memory_id, superseded_by=latest.memory_id)


def _held(memory: Recall, bank: str, names: Iterable[str]) -> dict[str, list[Memory]]:
    """Return the current memories of each source_id, latest stored first."""
    found: dict[str, list[Memory]] = {}
    names = [*names]
    if names:
        for one in memory.list_memories(bank, filter=["in", "source_id", names], top_k=LIMIT):
            found.setdefault(str(one.source_id), []).append(one)
    return found
