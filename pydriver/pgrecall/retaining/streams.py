"""Split a stream of facts or messages into batches, with links that count from its start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

from pgrecall.arguments import check_type
from pgrecall.errors import InvalidArgument, InvalidFact, RecallError, moved
from pgrecall.retaining.facts import Fact
from pgrecall.rows import Retained, RetainedMessage, Retention

T = TypeVar("T")
Progress = Callable[[int], None]
"""Called with the number of further facts or messages done."""
STREAM_BATCH = 1000


class Stream:
    """The batches of one stream, each of which is written separately."""

    def __init__(self) -> None:
        """Start with nothing written."""
        self._ids: list[int] = []
        self._new = 0
        self._bare = 0

    def batches(self, rows: Iterable[T], size: int) -> Iterator[list[T]]:
        """Split a stream into batches."""
        check_type("batch_size", size, int)
        if size < 1:
            raise InvalidArgument(f"batch_size must be at least 1, not {size}")
        remaining = iter(rows)
        yield list(islice(remaining, size))  # also an empty one, so that a missing bank is an error
        while batch := list(islice(remaining, size)):
            yield batch

    @contextmanager
    def positions(self) -> Iterator[None]:
        """Change the position in an error to one from the start of the stream."""
        try:
            yield
        except RecallError as error:
            if error.position is None or not self._ids:
                raise
            raise moved(error, len(self._ids)) from error.__cause__

    def relinked(self, batch: Sequence[Fact]) -> list[Fact]:
        """Resolve links that count positions from the start of the stream.

        Raises:
            InvalidFact: a link leads to a fact of a later batch.

        """
        return relinked(batch, len(self._ids), self._ids)

    def add(self, rows: Sequence[Retained] | Sequence[RetainedMessage]) -> None:
        """Record written rows."""
        for row in rows:
            self._ids.append(row.memory_id if isinstance(row, Retained) else row.message_id)
            self._new += row.is_new
            self._bare += isinstance(row, Retained) and not row.is_embedded

    def sent(self, rows: Sequence[object]) -> None:
        """Record rows that get no ids."""
        self._ids.extend(0 for _ in rows)

    def retention(self) -> Retention:
        """Return the result."""
        return Retention(len(self._ids), self._new, self._bare)


def relinked(batch: Sequence[Fact], start: int, ids: Sequence[int]) -> list[Fact]:
    """Resolve links that count positions from the start of a stream.

    Args:
        batch: Facts, the first of which is at position start.
        start: Position of the first fact.
        ids: Ids of earlier memories, by position; 0 for one that was not stored.

    Raises:
        InvalidFact: a link leads to a fact of a later batch, or one that was not stored.

    """
    return [_relinked(fact, n, len(batch), start, ids) for n, fact in enumerate(batch)]


def _relinked(fact: Fact, position: int, size: int, start: int, ids: Sequence[int]) -> Fact:
    links = fact.get("links") if isinstance(fact, Mapping) else None
    if not isinstance(fact, Mapping) or not isinstance(links, list | tuple):
        return fact
    moved_links = []
    for number, link in enumerate(links):
        index = link.get("to_index") if isinstance(link, Mapping) else None
        # The database refuses a negative index, so it is passed on.
        if isinstance(index, int) and index >= 0 and start:
            others = {key: value for key, value in link.items() if key != "to_index"}
            place = index - start
            if place < 0 and not ids[index]:
                raise InvalidFact(
                    f"facts[{position}].links[{number}].to_index leads to a fact that was refused",
                    hint="Correct that fact, and send both again.",
                )
            link = {**others, "to_index": place} if place >= 0 else {**others, "to_id": ids[index]}
            index = place
        if isinstance(index, int) and index >= size:
            raise InvalidFact(
                f"facts[{position}].links[{number}].to_index leads to a later batch",
                hint="Link to earlier facts or by to_key, or use larger batches.",
            )
        moved_links.append(link)
    return {**fact, "links": moved_links}
