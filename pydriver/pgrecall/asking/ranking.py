"""The order of hits that a reranker read, and when enough of them were.

Their relevance is blended with the fused order, as the two err differently: the fused score gives
the prior odds before the text is read. Only such a relevance is multiplied by the bounded boosts
for recency, for proximity to the time asked about, and for the number of sources that state it; a
fused score, a sum of 1 / (k + rank), is not.

This order decides, between two runs of a cross-encoder, whether another hit is read, so it stands
here. That of late interaction, which reads all in one go, is pgrecall.rerank().
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from heapq import heappush, heappushpop
from itertools import accumulate, pairwise

from pgrecall.asking.dated_text import began_at, dated_text, extent
from pgrecall.inference.interfaces import PunctualReranker, Reranker
from pgrecall.inference.rerankers import sigmoid
from pgrecall.rows import Hit, Period

CANDIDATES = 50
SECONDS = 2.0
MODES = ("blend", "replace")
BOOSTS: Mapping[str, float] = {"recency": 0.0, "period": 0.0, "proof": 0.0}
"""Alpha of each boost, at most half of which a score gains or loses: 0.2 is ten percent. None by
default: the reranker reads the dates, and no alpha improved on that (bench/README.md)."""

_LEAST = 12  # hits that are read at least, and of those returned
_DEEP = 0.09  # times the square of those returned are read at least: 36 of twenty
_PLACES = 3  # first places that are settled, where no other hit would come even with
_HIGH = 0.88  # this relevance: see bench/README.md
_PRIOR = 6.0  # power of the share of the best fused score
_UNSEEN = ("graph", "key")  # arms that use evidence outside the text
_ONE_OF_MANY = 0.5  # what a doubt counts where a source has rows that are not read
_SESSION = 4.0  # what a session's share of all that is likely adds to the logit of its hits
_PAUSE = timedelta(hours=1)  # between two sessions, at least
_NEVER = datetime.min.replace(tzinfo=timezone.utc)  # when what has no time was said
_SURE = 1e-6  # probabilities are kept within this and 1 minus this
_RECENCY_DAYS = 365.0
_SLACK = timedelta(days=7)
_DAY = timedelta(days=1)


class Order:
    """How hits are ordered by the relevance that a reranker gives them.

    The order is that of the relevance times its boosts, in "replace" times the trust of the source,
    too, which the fused score has already. Before, "blend" multiplies the odds of the relevance,
    r / (1 - r), with (fused score / best fused score) ^ 6, as a prior. And it takes
    doubts (odds below 1) the less seriously the more of the fused score came from the graph and
    from keys: what they know of a text does not stand in it. What answers a question is often said
    together, so the odds are multiplied by e ^ (4 x (share of the hit's session - largest share)):
    a session is what was said without a pause of an hour, and its share is of the sum of all such
    relevances. Hits of unknown time are one session.

    A hit that a path led to (via) is read with what the facts on it say. In "blend" it may rise by
    that, and never falls below the place that fusion gave it, for most cross-encoders never saw a
    path; to the packaged one, which did, it makes no difference (bench/README.md). It then takes
    the final score of the best hit behind it.
    """

    def __init__(
        self,
        hits: Sequence[Hit],
        *,
        reference_time: datetime,
        during: Period | None,
        mode: str = "blend",
        boosts: Mapping[str, float] = BOOSTS,
        is_collapsed: bool = False,
    ) -> None:
        """Weigh the hits before they are read.

        Args:
            hits: In fused order.
            reference_time: The moment of asking, which recency counts back from.
            during: The time the question is about, or None.
            mode: "blend" with the fused order, or "replace" it.
            boosts: Alpha of "recency", "period" and "proof", 0 to 1 each; as in BOOSTS where not
                named.
            is_collapsed: Whether each hit is the best row of its source.

        """
        self._hits = hits
        self._is_blend = mode == "blend"
        self._doubt = _ONE_OF_MANY if is_collapsed else 1.0
        self._best = max((hit.score for hit in hits), default=0.0)
        # In a blend the prior, which is the fused score, knows the trust.
        self._boosts = [
            boost * (1.0 if self._is_blend else hit.trust)
            for boost, hit in zip(
                boosts_of(hits, reference_time, during, boosts), hits, strict=True
            )
        ]

    def final(self, place: int, relevance: float) -> float:
        """Return the final score of the hit at a place, from 0; whatever its session says."""
        return self._likely(place, relevance) * self._boosts[place]

    def hits(self, scores: Sequence[float]) -> list[Hit]:
        """Order the hits.

        Args:
            scores: The relevance of the first ones. The others keep their order behind them.

        Returns:
            All hits; those that were read have a rerank_score.

        """
        read = self._hits[: len(scores)]
        likely = [self._likely(place, score) for place, score in enumerate(scores)]
        if self._is_blend:
            likely = _by_session(read, likely)
        head = [
            replace(hit, rerank_score=score, boost=boost, final_score=final * boost)
            for hit, score, final, boost in zip(read, scores, likely, self._boosts, strict=False)
        ]
        head.sort(key=_by_score)
        if self._is_blend:
            head = _with_paths_held(read, head)
        tail = [replace(hit, final_score=0.0) for hit in self._hits[len(read) :]]
        return [replace(hit, rank=rank) for rank, hit in enumerate([*head, *tail], 1)]

    def _likely(self, place: int, relevance: float) -> float:
        if not self._is_blend:
            return relevance
        return _blended(self._hits[place], relevance, self._best, self._doubt)


class FirstPlaces:
    """Tells when the first places are settled, so that no further hit needs to be read.

    That is where a high relevance would lead none of the hits that are left to the first three: the
    fused score of a hit bounds how high it can come, its session aside. Where the first ones answer
    the question twelve are read of ten that are returned, 36 of twenty, and all where none does.

    Attributes:
        are_settled: Whether they are.

    """

    def __init__(self, order: Order, candidates: int, returned: int | None) -> None:
        """Start with nothing read.

        Args:
            order: How the hits are ordered.
            candidates: How many of them may be read.
            returned: How many of them are returned; None for all.

        """
        self.are_settled = False
        self._order = order
        most = candidates if returned is None else returned
        self._least = max(_LEAST, _DEEP * most**2)
        self._first: list[float] = []
        self._read = 0
        highest = (order.final(place, _HIGH) for place in reversed(range(candidates)))
        self._left = [*accumulate(highest, max)][::-1]

    def __call__(self, relevance: float) -> bool:
        """Note the relevance of the next hit; tells whether the places are settled."""
        final = self._order.final(self._read, relevance)
        change = heappush if self._read < _PLACES else heappushpop
        change(self._first, final)
        self._read += 1
        self.are_settled = (
            self._least <= self._read < len(self._left) and self._first[0] >= self._left[self._read]
        )
        return self.are_settled


def reranked(
    hits: Sequence[Hit],
    query: str,
    reranker: Reranker,
    *,
    reference_time: datetime,
    during: Period | None,
    asked: str = "",
    candidates: int = CANDIDATES,
    seconds: float = SECONDS,
    mode: str = "blend",
    boosts: Mapping[str, float] = BOOSTS,
) -> list[Hit]:
    """Order the first hits by the reranker, as :class:`Order` does; the others stay behind them.

    Args:
        hits: In fused order.
        query: The question as the user asked it.
        reranker: Scores from 0 to 1.
        reference_time: As for Order.
        during: As for Order.
        asked: The words of the question for that time.
        candidates: How many hits the reranker reads, at least 1.
        seconds: Time limit; hits that it does not reach are not reranked.
        mode: As for Order.
        boosts: As for Order.

    Raises:
        RerankerUnavailable: the reranker cannot be used.

    """
    texts = [dated_text(hit, during, asked) for hit in hits[:candidates]]
    if not texts:
        return []
    order = Order(hits, reference_time=reference_time, during=during, mode=mode, boosts=boosts)
    if isinstance(reranker, PunctualReranker):
        return order.hits(reranker.scores_within(query, texts, seconds))
    return order.hits(reranker.scores(query, texts))


def _with_paths_held(fused: Sequence[Hit], ordered: Sequence[Hit]) -> list[Hit]:
    """Keep hits with a path from falling below their place in fused order."""
    waiting = {hit.memory_id: hit for hit in ordered}
    held = []
    for hit in fused:
        is_due = hit.via is not None and hit.memory_id in waiting
        held.append(waiting.pop(hit.memory_id if is_due else next(iter(waiting))))
    scores = [*accumulate((hit.final_score for hit in reversed(held)), max)]
    return [
        replace(hit, final_score=score) for hit, score in zip(held, reversed(scores), strict=True)
    ]


def boosts_of(
    hits: Sequence[Hit],
    reference_time: datetime,
    during: Period | None,
    boosts: Mapping[str, float],
) -> list[float]:
    """Return what the final score of each hit is multiplied by."""
    alpha = {**BOOSTS, **boosts}
    return [
        recency_boost(hit, reference_time, alpha["recency"])
        * period_boost(hit, during, alpha["period"])
        * proof_boost(hit, alpha["proof"])
        for hit in hits
    ]


def recency_boost(hit: Hit, reference_time: datetime, alpha: float) -> float:
    """Favour recent hits, falling linearly from today to an age of a year.

    Returns:
        1 + alpha / 2 to 1 - alpha / 2; 1.0 for a hit without a date.

    """
    start = began_at(hit)
    if start is None:
        return 1.0
    return _boost(1 - (reference_time - start) / _DAY / _RECENCY_DAYS, alpha)


def period_boost(hit: Hit, during: Period | None, alpha: float) -> float:
    """Favour hits in the period asked about, falling linearly outside it.

    It reaches its minimum at a distance of the length of the period, at least a week.

    Returns:
        1 + alpha / 2 to 1 - alpha / 2; 1.0 without a period or for a hit without a date.

    """
    first, last = extent(hit)
    if during is None or first is None or last is None:
        return 1.0
    start, end = during
    distance = max(
        start - last if start is not None else timedelta(0),
        first - end if end is not None else timedelta(0),
        timedelta(0),
    )
    reach = max(end - start, _SLACK) if start is not None and end is not None else _SLACK
    return _boost(1 - distance / reach, alpha)


def proof_boost(hit: Hit, alpha: float) -> float:
    """Favour hits with several sources: half of the boost for two, three quarters for four.

    Returns:
        1.0 for one source, and for a message, to 1 + alpha / 2.

    """
    return _boost(1 - 0.5 / (hit.proof_count or 1), alpha)


def _boost(nearness: float, alpha: float) -> float:
    return 1 + alpha * (min(max(nearness, 0.0), 1.0) - 0.5)


def _blended(hit: Hit, score: float, best: float, doubt: float) -> float:
    """Return the score of the best hit in fused order unchanged, and less for all others."""
    logit = _logit(min(max(score, _SURE), 1 - _SURE))
    if logit < 0 and hit.score > 0:
        unseen = sum(hit.arms[arm].contribution for arm in _UNSEEN if arm in hit.arms)
        logit *= doubt * (1 - unseen / hit.score)
    prior = max(hit.score / best, _SURE) if best > 0 else 1.0
    return sigmoid(logit + _PRIOR * math.log(prior))


def _by_session(hits: Sequence[Hit], likely: Sequence[float]) -> list[float]:
    """Lower what stands alone beside sessions with much that is likely."""
    sessions = _sessions(hits)
    sums = [0.0] * len(hits)
    for session, score in zip(sessions, likely, strict=True):
        sums[session] += score
    most, total = max(sums, default=0.0), sum(sums)
    return [
        sigmoid(_logit(score) - _SESSION * (most - sums[session]) / total)
        for session, score in zip(sessions, likely, strict=True)
    ]


def _sessions(hits: Sequence[Hit]) -> list[int]:
    """Number the sessions of hits, from 0: between two of them nothing was said for an hour."""
    said = sorted((hit.mentioned_at or _NEVER, place) for place, hit in enumerate(hits))
    sessions = [0] * len(hits)
    for (before, last), (moment, place) in pairwise(said):
        sessions[place] = sessions[last] + (moment - before >= _PAUSE)
    return sessions


def _by_score(hit: Hit) -> tuple[float, int]:
    return -hit.final_score, hit.fused_rank


def _logit(probability: float) -> float:
    return math.log(probability) - math.log1p(-probability)
