"""Compare the answers of two settings to the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgrecall.errors import InvalidArgument
from pgrecall.evaluation.measure import CUTOFF, Asking, Figure, Judged, intervals, measure
from pgrecall.rows import Hit

if TYPE_CHECKING:
    from pgrecall.client import Recall


@dataclass(frozen=True, slots=True)
class Difference:
    """A measure of both settings on the same questions.

    Attributes:
        measure: "nDCG@10", "recall@10" or "MRR".
        first: The figure of the first settings.
        second: The figure of the second settings.
        gain: Mean difference per question, second minus first.

    """

    measure: str
    first: Figure
    second: Figure
    gain: Figure


def compare(
    recall: Recall,
    bank: str,
    questions: Sequence[Judged],
    first: Sequence[Sequence[Hit]],
    second: Sequence[Sequence[Hit]],
    *,
    by: str | None = None,
) -> tuple[Difference, ...]:
    """Measure two given answers to each question; ask nothing.

    Args:
        recall: A client.
        bank: Name of the bank that was asked.
        questions: The questions, with the relevant memories.
        first: The answer to each question by the first settings, at least 10 hits if possible.
        second: The same by the second settings.
        by: As for :func:`pgrecall.evaluation.evaluate`.

    Raises:
        BankNotFound: no bank has that name.
        InvalidArgument: a question has no relevant memories, or the bank holds none of them.
        InstallError: package ir-measures is missing.

    """
    asking = Asking(recall, bank, questions, by=by)
    if asking.left_out:
        raise InvalidArgument(
            f"nothing is relevant to {asking.left_out} of {len(questions)} questions",
            hint="Remove these questions.",
        )
    sides = [[asking.named(hits)[:CUTOFF] for hits in side] for side in (first, second)]
    a, b = measure(asking.judged, sides)
    names = (f"recall@{CUTOFF}", f"nDCG@{CUTOFF}", "MRR")
    return tuple(
        Difference(name, *intervals([a[row], b[row], b[row] - a[row]]))
        for row, name in enumerate(names)
    )
