"""The report of a recall: its answer, and how it came about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timezone, tzinfo

from pgrecall.context import make_context
from pgrecall.rows import ArmReport, Degradation, Hit, Timings
from pgrecall.temporal import TemporalConstraint


@dataclass(frozen=True, slots=True)
class RecallReport:
    """The answer to a recall, and a report of the run.

    Attributes:
        hits: The answer, best first.
        timings: Where the time went.
        temporal: The time that was read out of the query, or None.
        facts: Plain statements for a prompt, such as which dates "last week" stands for.
        degradations: What was left out and why; empty if nothing was.
        arms: Report on each arm of this recall.
        confidence: How likely the best of the hits answers the question: their greatest
            relevance, 0 to 1; 0 without hits.
        reranked: How many hits the reranker read. Where that is fewer than candidates and nothing
            was left out, no other one could have come among the first three.
        reranking: How much late interaction counted on this question, or why it kept out; None
            where it did not rerank.
        timezone: The client's time zone, in which a prompt writes days.

    """

    hits: tuple[Hit, ...]
    timings: Timings
    temporal: TemporalConstraint | None
    facts: tuple[str, ...]
    degradations: tuple[Degradation, ...]
    arms: tuple[ArmReport, ...]
    confidence: float = 0.0
    reranked: int = 0
    reranking: str | None = None
    timezone: tzinfo = timezone.utc

    def prompt(
        self, *, max_tokens: int = 2000, count_tokens: Callable[[str], int] | None = None
    ) -> str:
        """Write the answer for a language model: see :meth:`pgrecall.Recall.context`."""
        return make_context(self, max_tokens=max_tokens, count_tokens=count_tokens).text
