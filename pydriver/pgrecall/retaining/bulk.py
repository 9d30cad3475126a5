"""Bulk loads: what both clients share of :meth:`Recall.retain_bulk`.

A stream of facts is split into batches, of which a few are embedded and written concurrently, in
any order. A batch whose facts may link to earlier ones, or end them, waits until those are stored.
Of stored facts only the ids are kept, 8 bytes each, for links that count from the start.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock

from psycopg import errors

from pgrecall.arguments import check_given, check_type
from pgrecall.errors import InvalidArgument, RecallError, moved
from pgrecall.retaining.facts import Fact, FactBatch, several
from pgrecall.retaining.streams import relinked
from pgrecall.rows import BulkRetention, Retained

WORKERS = 4
LINKED_AT_ONCE = 1000
POLL_SECONDS = 0.5  # wait while another session builds an index
RACES = (errors.DeadlockDetected, errors.DuplicateTable, errors.UndefinedObject)
"""Errors of a statement of an index plan that another session runs, too."""

BulkProgress = Callable[[str, int], None]
"""Called with the task, "retain", "index", "link" or "maintain", and the number done."""
Refused = Callable[[int, RecallError], None]
"""Called with the position of a refused fact, from 0, and the error."""


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive facts of a stream.

    Attributes:
        facts: The facts, with embeddings once these are made.
        start: Position of the first in the stream.
        model: Name of the model of their embeddings, if known.

    """

    facts: Sequence[Fact]
    start: int
    model: str | None

    def embedded(self, batch: FactBatch) -> Part:
        """Return the same facts with their embeddings."""
        return Part(batch.facts, self.start, batch.model)  # type: ignore[arg-type]

    def without(self, place: int) -> list[Part]:
        """Return the facts before and after a fact."""
        before = Part(self.facts[:place], self.start, self.model)
        behind = Part(self.facts[place + 1 :], self.start + place + 1, self.model)
        return [part for part in (before, behind) if part.facts]


class Load:
    """The state of a bulk load: what was given, stored and refused so far."""

    def __init__(
        self,
        *,
        model: str | None,
        replace: str | None,
        batch_size: int,
        progress: BulkProgress | None,
        refused: Refused | None,
    ) -> None:
        """Keep the settings of the load.

        Raises:
            InvalidArgument: batch_size is below 1.

        """
        check_given(model=model, replace=replace, progress=progress, refused=refused)
        check_type("batch_size", batch_size, int)
        if batch_size < 1:
            raise InvalidArgument(f"batch_size must be at least 1, not {batch_size}")
        self._model = model
        self._replace = replace
        self._batch_size = batch_size
        self._progress = progress
        self._refused = refused
        self._lock = Lock()
        self._ids = array("q")  # ids by position; 0 for facts that are not stored
        self._counts = dict.fromkeys(("new", "unembedded", "refused", "linked", "indexed"), 0)

    def batches(self, facts: Iterable[Fact] | Fact) -> Iterator[Part]:
        """Split the stream, which is read only as fast as it is written."""
        remaining = iter(several(facts))
        # Also an empty one, so that a missing bank is an error.
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
        """Return whether earlier facts must be stored first."""
        return any(
            fact.get("links")
            or fact.get("expires_at")
            or (self._replace != "none" and (fact.get("fact_key") or fact.get("relations")))
            for fact in part.facts
            if isinstance(fact, Mapping)
        )

    def relinked(self, part: Part) -> list[Fact]:
        """Resolve links that count positions from the start of the stream.

        Raises:
            InvalidFact: a link leads to a fact that is not stored or comes later.

        """
        return relinked(part.facts, part.start, self._ids)

    def stored(self, part: Part, rows: Sequence[Retained]) -> None:
        """Record stored facts."""
        with self._lock:
            for place, row in enumerate(rows, part.start):
                self._ids[place] = row.memory_id
            self._counts["new"] += sum(row.is_new for row in rows)
            self._counts["unembedded"] += sum(not row.is_embedded for row in rows)
        self.note("retain", len(rows))

    def refuse(self, part: Part, error: RecallError) -> list[Part]:
        """Remove the fact that an error is about; return the rest.

        Raises:
            RecallError: the error, if it is about all facts or there is no callback for refusals.

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
        """Report progress."""
        with self._lock:
            if what == "link":
                self._counts["linked"] += count
            elif what == "index":
                self._counts["indexed"] += count
            if self._progress is not None:
                self._progress(what, count)

    def retention(self, due: Sequence[str]) -> BulkRetention:
        """Return the result; due are statements that could not be run."""
        known = len(self._ids) - self._counts["new"] - self._counts["refused"]
        return BulkRetention(total=len(self._ids), known=known, due=tuple(due), **self._counts)
