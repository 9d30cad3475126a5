"""Compare the answers that two settings gave to the same questions."""

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
    """A measure of both settings over the same questions.

    Attributes:
        measure: "nDCG@10", "recall@10" or "MRR".
        first: Of the first settings.
        second: Of the second ones.
        gain: The second minus the first, question by question.

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
    """Measure two answers to each question; asks nothing again.

    Args:
        recall: A client.
        bank: Name of the bank that was asked.
        questions: With what is relevant to each.
        first: The answer to each question by the first settings, at least 10 hits where there are.
        second: By the second settings.
        by: As for :func:`pgrecall.evaluation.evaluate`.

    Raises:
        BankNotFound: no bank has that name.
        InvalidArgument: nothing is relevant to a question, or the bank holds none of it.
        InstallError: the package that measures is missing.

    """
    asking = Asking(recall, bank, questions, by=by)
    if asking.left_out:
        raise InvalidArgument(
            f"nothing is relevant to {asking.left_out} of {len(questions)} questions",
            hint="Leave these out.",
        )
    sides = [[asking.named(hits)[:CUTOFF] for hits in side] for side in (first, second)]
    a, b = measure(asking.judged, sides)
    names = (f"recall@{CUTOFF}", f"nDCG@{CUTOFF}", "MRR")
    return tuple(
        Difference(name, *intervals([a[row], b[row], b[row] - a[row]]))
        for row, name in enumerate(names)
    )
