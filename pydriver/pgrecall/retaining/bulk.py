"""A bulk load on its way: what :meth:`Recall.retain_bulk` shares with the async client.

A stream of facts is cut into batches, of which a few are embedded and written at once, in
any order. A batch whose facts may lead to earlier ones, or end them, waits until those are stored.
Of what was stored only the ids are kept, 8 bytes a fact, for links that count from the start.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock

from pgrecall.errors import InvalidArgument, RecallError, moved
from pgrecall.retaining.facts import Fact, FactBatch, several
from pgrecall.retaining.streams import relinked
from pgrecall.rows import BulkRetention, Retained

WORKERS = 4
LINKED_AT_ONCE = 1000
POLL_SECONDS = 0.5  # while another load builds an index

BulkProgress = Callable[[str, int], None]
"""Called with what is done, "retain", "index", "link" or "maintain", and of how many more."""
Refused = Callable[[int, RecallError], None]
"""Called with the position of a fact that is refused, from 0, and why."""


@dataclass(frozen=True, slots=True)
class Part:
    """Facts that follow one another in a stream.

    Attributes:
        facts: The facts; with embeddings, once those are made.
        start: Position of the first in the stream.
        model: Name of the model of their embeddings, where it is known.

    """

    facts: Sequence[Fact]
    start: int
    model: str | None

    def embedded(self, batch: FactBatch) -> Part:
        """Return the same facts with the embeddings that were made of them."""
        return Part(batch.facts, self.start, batch.model)  # type: ignore[arg-type]

    def without(self, place: int) -> list[Part]:
        """Return what is before a fact and what is behind it."""
        before = Part(self.facts[:place], self.start, self.model)
        behind = Part(self.facts[place + 1 :], self.start + place + 1, self.model)
        return [part for part in (before, behind) if part.facts]


class Load:
    """What was given, stored and refused so far."""

    def __init__(
        self,
        *,
        model: str | None,
        replace: str | None,
        batch_size: int,
        progress: BulkProgress | None,
        refused: Refused | None,
    ) -> None:
        """Keep what holds for all facts.

        Raises:
            InvalidArgument: batch_size is below 1.

        """
        if batch_size < 1:
            raise InvalidArgument(f"batch_size must be at least 1, not {batch_size}")
        self._model = model
        self._replace = replace
        self._batch_size = batch_size
        self._progress = progress
        self._refused = refused
        self._lock = Lock()
        self._ids = array("q")  # by position; 0 where nothing is stored
        self._counts = dict.fromkeys(("new", "unembedded", "refused", "linked", "indexed"), 0)

    def batches(self, facts: Iterable[Fact] | Fact) -> Iterator[Part]:
        """Cut the stream, which is read as far as it is written."""
        remaining = iter(several(facts))
        # An empty one too: it is refused by a missing bank.
        batch = list(islice(remaining, self._batch_size))
        while batch or not self._ids:
            with self._lock:
                start = len(self._ids)
                self._ids.extend(0 for _ in batch)
            yield Part(batch, start, self._model)
            batch = list(islice(remaining, self._batch_size))
            if not batch:
                return

    def is_ordered(self, part: Part) -> bool:
        """Tell whether facts before these have to be stored first."""
        return any(
            fact.get("links")
            or fact.get("expires_at")
            or (self._replace != "none" and (fact.get("fact_key") or fact.get("relations")))
            for fact in part.facts
            if isinstance(fact, Mapping)
        )

    def relinked(self, part: Part) -> list[Fact]:
        """Let links count positions from the start of the stream.

        Raises:
            InvalidFact: a link leads to a fact that is not stored, or comes later.

        """
        return relinked(part.facts, part.start, self._ids)

    def stored(self, part: Part, rows: Sequence[Retained]) -> None:
        """Note what was stored."""
        with self._lock:
            for place, row in enumerate(rows, part.start):
                self._ids[place] = row.memory_id
            self._counts["new"] += sum(row.is_new for row in rows)
            self._counts["unembedded"] += sum(not row.is_embedded for row in rows)
        self.note("retain", len(rows))

    def refuse(self, part: Part, error: RecallError) -> list[Part]:
        """Leave out the fact that an error is about; return the rest.

        Raises:
            RecallError: the error, where it is about all facts or refusals are not wanted.

        """
        place = error.position
        if place is None or place >= len(part.facts):
            raise error
        error = moved(error, part.start)
        if self._refused is None:
            raise error
        with self._lock:
            self._counts["refused"] += 1
            self._refused(part.start + place, error)
        self.note("retain", 1)
        return part.without(place)

    def note(self, what: str, count: int) -> None:
        """Note that more is done."""
        with self._lock:
            if what == "link":
                self._counts["linked"] += count
            elif what == "index":
                self._counts["indexed"] += count
            if self._progress is not None:
                self._progress(what, count)

    def retention(self, due: Sequence[str]) -> BulkRetention:
        """Sum up; due are statements that could not be run."""
        known = len(self._ids) - self._counts["new"] - self._counts["refused"]
        return BulkRetention(total=len(self._ids), known=known, due=tuple(due), **self._counts)
