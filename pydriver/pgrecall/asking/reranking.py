"""Rerank an answer: what is read, for how long, and which page is returned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import datetime
from functools import partial
from numbers import Integral
from typing import Any

from pgrecall import calls
from pgrecall.arguments import check_type
from pgrecall.asking.dated_text import dated_text
from pgrecall.asking.ranking import (
    BOOSTS,
    CANDIDATES,
    MODES,
    SECONDS,
    FirstPlaces,
    Order,
    boosts_of,
)
from pgrecall.calls.call import Call
from pgrecall.errors import InvalidArgument, RerankerUnavailable
from pgrecall.inference.interfaces import PunctualReranker, WorkedReranker
from pgrecall.inference.late_interaction import Tokens, makes_tokens
from pgrecall.inference.rerankers import LateInteractionReranker
from pgrecall.inference.worker import Start, on_this_thread
from pgrecall.options import TOP_K
from pgrecall.rows import Degradation, Hit, Period, Reranked
from pgrecall.settings import Settings

_MOST = 1000  # rows of a recall
_SLOW = "Allow more time with rerank_seconds=..., or ask for fewer candidates=..."
_CROWDED = (
    "All callers in a process share its models. Use several processes, let a server rerank"
    ' (Recall(..., reranker="https://...")), or turn reranking off: rerank=False.'
)


class Reranking:
    """How an answer is reranked, and which page of it is returned.

    Attributes:
        reranker: The reranker; None to keep the fused order.
        page: The slice of the ordered candidates that is returned.
        degradation: What was not reranked, for lack of time or of token vectors.
        is_late: Whether token vectors are compared, instead of a model reading the candidates.
        tokens: The token vectors of the question, once it is embedded.
        note: How much late interaction counted; None without late interaction.

    """

    def __init__(self, settings: Settings, given: dict[str, Any]) -> None:
        """Read the options of reranking, and ask the database for all candidates.

        Raises:
            InvalidArgument: an option of reranking is out of its range.

        """
        self.page = slice(None)
        self.degradation: Degradation | None = None
        self.is_late = False
        self.tokens: Tokens | None = None
        self.note: str | None = None
        self.reranker = settings.reranker if given.pop("rerank", True) else None
        self._is_open = "candidates" not in given
        self._candidates: int = given.pop("candidates", CANDIDATES)
        self._mode: str = given.pop("rerank_mode", MODES[0])
        self._seconds: float = given.pop("rerank_seconds", SECONDS)
        self._boosts: Mapping[str, float] = given.pop("boosts", {})
        self._is_collapsed = bool(given.get("collapse"))
        self._check()
        if self.reranker is not None:
            skip, top_k = given.get("skip", 0), given.get("top_k", TOP_K)
            is_known = isinstance(skip, Integral) and isinstance(top_k, Integral)
            if is_known and skip >= self._candidates:
                self.reranker = None  # what lies behind the candidates keeps the fused order
            elif is_known and skip >= 0 and 1 <= top_k <= _MOST:
                # The page is cut from the reranked order.
                if skip + top_k > _MOST:
                    raise InvalidArgument(
                        f"skip + top_k is {skip + top_k}, more than {_MOST}, from which a reranked"
                        " page is cut",
                        hint="Ask for fewer, or pass rerank=False.",
                    )
                given.pop("skip", None)
                given["top_k"] = max(skip + top_k, self._candidates)
                self.page = slice(skip, skip + top_k)

    def _check(self) -> None:
        if not 1 <= self._candidates <= _MOST:
            limit = "not 1 or more" if self._candidates < 1 else f"more than {_MOST}"
            raise InvalidArgument(
                f"candidates is {self._candidates}, {limit}",
                hint="Pass rerank=False to rerank none.",
            )
        if self._mode not in MODES:
            raise InvalidArgument(
                f'there is no rerank_mode "{self._mode}"', hint=f"Use one of: {', '.join(MODES)}."
            )
        if not self._seconds >= 0:
            raise InvalidArgument(
                f"rerank_seconds is {self._seconds}, not 0 or more",
                hint="Pass a time in seconds, such as 2.",
            )
        for name, alpha in self._boosts.items():
            if name not in BOOSTS:
                raise InvalidArgument(
                    f'there is no boost "{name}"', hint=f"Use one of: {', '.join(BOOSTS)}."
                )
            check_type(f'the boost "{name}"', alpha, float)
            if not 0 <= alpha <= 1:
                raise InvalidArgument(
                    f'the boost "{name}" is {alpha}, not 0 to 1',
                    hint="0.2 is ten percent either way.",
                )

    def choose(self, settings: Settings, *, embeds_query: bool) -> None:
        """Choose late interaction if the question gets token vectors. May be called again."""
        if isinstance(self.reranker, LateInteractionReranker):
            self.is_late = embeds_query and makes_tokens(settings.embedder)

    def begin(
        self,
        hits: list[Hit],
        query: str,
        reference_time: datetime,
        during: Period | None,
        asked: str,
        left: float | None,
        start: Start,
    ) -> Callable[[], Future[Any]]:
        """Return a function that starts reading the candidates."""
        assert self.reranker is not None
        reranker = self.reranker
        if self.is_late:
            self._hits = hits
            self._boost_of = boosts_of(hits, reference_time, during, self._boosts)
            return partial(on_this_thread, self._relevances, hits[: self._candidates])
        if isinstance(reranker, LateInteractionReranker):
            self.reranker = reranker = reranker.otherwise
        self._texts = [dated_text(hit, during, asked) for hit in hits[: self._candidates]]
        self._order = Order(
            hits,
            reference_time=reference_time,
            during=during,
            mode=self._mode,
            boosts=self._boosts,
            is_collapsed=self._is_collapsed,
        )
        self._first = (
            FirstPlaces(self._order, len(self._texts), self.page.stop) if self._is_open else None
        )
        # A tenth of the time is kept for returning the results.
        self._limit = self._seconds if left is None else min(self._seconds, 0.9 * left)
        if isinstance(reranker, WorkedReranker):
            return partial(
                reranker.submit,
                query,
                self._texts,
                seconds=self._limit,
                is_enough=self._first,
            )
        return partial(start, self._scores, query)

    def _relevances(self, hits: Sequence[Hit]) -> list[float | None]:
        """Compare the tokens of the hits with those of the question.

        Raises:
            RerankerUnavailable: the question has none.

        """
        if self.tokens is None:
            raise RerankerUnavailable(
                "the question was not embedded, so its tokens cannot be compared"
            )
        found = self.tokens.relevances([hit.tokens for hit in hits])
        bare = sum(
            relevance is None and hit.kind == "memory"
            for hit, relevance in zip(hits, found, strict=True)
        )
        if bare:
            self.degradation = Degradation(
                "reranker",
                f"{bare} of {len(hits)} candidates have no token vectors of this model and keep"
                " their fused place",
                "Run: pgrecall embed BANK, or call embed_pending(), to give them some.",
            )
        return found

    def ordering(self, relevances: Sequence[float | None]) -> Call[Reranked, list[Reranked]]:
        """Return the call that orders the hits by late interaction."""
        return calls.recall.rerank(self._hits, relevances, boosts=self._boost_of, mode=self._mode)

    def ordered_late(self, rows: Sequence[Reranked]) -> list[Hit]:
        """Order the hits as the database says; note how much late interaction counted."""
        counted = f"trust {rows[0].trust:.2f}"
        if rows[0].trust == 0:
            counted = "kept out: the candidates are too much alike"
        self.note = f"late interaction, {counted}"
        hits = {hit.memory_id: hit for hit in self._hits}
        return [
            replace(
                hits[row.memory_id],
                rank=row.rank,
                rerank_score=row.relevance,
                final_score=row.final_score,
                boost=row.boost,
                tokens=None,
            )
            for row in rows
        ]

    def _scores(self, query: str) -> Sequence[float]:
        """Let the reranker score the texts.

        Raises:
            InvalidArgument: a score is not a relevance from 0 to 1, such as a logit.
            ValueError: the number of scores is not that of the texts.

        """
        if isinstance(self.reranker, PunctualReranker):
            scores = [*self.reranker.scores_within(query, self._texts, self._limit)]
        else:
            assert self.reranker is not None
            scores = [*self.reranker.scores(query, self._texts)]
            if len(scores) != len(self._texts):
                raise ValueError(f"it gave {len(scores)} scores for {len(self._texts)} texts")
        for score in scores:
            if not 0 <= score <= 1:
                raise InvalidArgument(
                    f"the reranker gave {score:g}, not a relevance from 0 to 1",
                    hint="Make relevances of logits first, by 1 / (1 + exp(-logit)).",
                )
        return scores

    def ordered(self, scores: Sequence[float], limit: float) -> list[Hit]:
        """Order the hits; note which were not read in time.

        Args:
            scores: The scores of the first hits.
            limit: The time limit that the worker applied.

        """
        wanted, read = len(self._texts), len(scores)
        if read < wanted and not (self._first and self._first.are_settled):
            is_crowded = limit < self._limit
            crowd = f" of {self._limit:.3g}, since many callers wait" if is_crowded else ""
            self.degradation = Degradation(
                "reranker",
                f"{read} of {wanted} candidates were read in {min(limit, self._limit):.3g} s"
                f"{crowd}; the others follow in fused order",
                _CROWDED if is_crowded else _SLOW,
            )
        return self._order.hits(scores)
