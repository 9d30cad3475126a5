"""Import rows in batches; rows that do not fit are reported and skipped.

Known facts are neither stored nor embedded again, so an interrupted import can be run again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from pgrecall.client import Recall
from pgrecall.errors import RecallError
from pgrecall.importing.rows import Row
from pgrecall.retaining.streams import Progress

BATCH = 500
_KEPT = 1000  # misfits that are kept for the report
_PLACE = re.compile(r"^facts\[\d+\]\.?(: )?")

Links = Mapping[str, Sequence[tuple[str, str, float]]]


@dataclass(frozen=True, slots=True)
class Misfit:
    """A row or link that was not imported.

    Attributes:
        place: Its position in the source.
        problem: Why it does not fit.

    """

    place: str
    problem: str


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import.

    Attributes:
        total: Number of rows.
        new: Number of new facts.
        misfit_count: Number of rows and links that did not fit.
        misfits: The first 1,000 of them.

    """

    total: int
    new: int
    misfit_count: int
    misfits: tuple[Misfit, ...]


class _Run:
    def __init__(self, recall: Recall, bank: str, model: str | None, link: str) -> None:
        self.ids: dict[str, int] = {}
        self.new = self.misfit_count = 0
        self.misfits: list[Misfit] = []
        self._recall, self._bank, self._model, self._link = recall, bank, model, link

    def report(self, place: str, problem: str) -> None:
        self.misfit_count += 1
        if len(self.misfits) < _KEPT:
            self.misfits.append(Misfit(place, problem))

    def retain(self, rows: Iterable[Row]) -> None:
        """Retain facts; after a misfit, retain those before it and those after it."""
        good = []
        for row in rows:
            if row.fact is None:
                self.report(row.place, row.problem or "not a fact")
            else:
                good.append(row)
        parts = [good]
        while parts:
            if not (part := parts.pop(0)):
                continue
            try:
                self._send(part)
            except RecallError as error:
                place = error.position
                if place is None or place >= len(part):
                    raise
                self.report(part[place].place, _PLACE.sub("", error.message))
                parts[:0] = [part[:place], part[place + 1 :]]

    def _send(self, rows: Sequence[Row]) -> None:
        facts = [row.fact for row in rows if row.fact is not None]
        found = self._recall.retain(self._bank, facts, model=self._model, link=self._link)
        for row, stored in zip(rows, found, strict=True):
            self.new += stored.is_new
            if row.key is not None:
                self.ids[row.key] = stored.memory_id

    def linked(self, rows: Iterable[Row], links: Links) -> Iterator[Row]:
        """Yield the rows that have links, with the links whose both ends are imported."""
        for row in rows:
            if row.fact is None or row.key not in self.ids or row.key not in links:
                continue
            leads = []
            for kind, to_key, weight in links[row.key]:
                if to_key in self.ids:
                    leads.append({"kind": kind, "to_id": self.ids[to_key], "weight": weight})
                else:
                    self.report(row.place, f"its link {kind} leads to {to_key}, not imported")
            if leads:
                yield replace(row, fact={**row.fact, "links": leads})


def import_rows(
    recall: Recall,
    bank: str,
    rows: Iterable[Row],
    *,
    model: str | None = None,
    link: str = "now",
    links: Links | None = None,
    again: Iterable[Row] = (),
    progress: Progress | None = None,
) -> Imported:
    """Retain rows from elsewhere.

    Args:
        recall: A client; with a pool or in autocommit mode each batch is committed.
        bank: Name of an existing bank.
        rows: What to import.
        model: Name of the model of the rows' embeddings.
        link: As for retain().
        links: Causal links between rows, by key: kind, key of the target and weight of each.
        again: The rows again, if there are links, since both ends must be stored first.
        progress: Called with the number of further rows done.

    Raises:
        RecallError: an error that concerns all rows, such as a missing bank.

    """
    run = _Run(recall, bank, model, link)
    total = 0
    for batch in _batches(rows):
        run.retain(batch)
        total += len(batch)
        if progress:
            progress(len(batch))
    new = run.new
    if links:
        for batch in _batches(run.linked(again, links)):
            run.retain(batch)
    return Imported(total, new, run.misfit_count, tuple(run.misfits))


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    remaining = iter(rows)
    while batch := list(islice(remaining, BATCH)):
        yield batch
