"""Order reranked hits, and decide when enough of them have been read.

The reranker's relevance is blended with the fused score, since the two make different errors: the
fused score gives the prior odds. The relevance is then multiplied by bounded boosts for recency,
for proximity to the time asked about, and for the number of sources. Fused scores are not boosted.

Between two runs of a cross-encoder this order decides whether another hit is read, so it is
computed here. Late interaction reads all hits at once and is ordered by pgrecall.rerank().
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from heapq import heappush, heappushpop
from itertools import accumulate, pairwise

from pgrecall.asking.dated_text import began_at, extent
from pgrecall.inference.rerankers import sigmoid
from pgrecall.rows import Hit, Period

CANDIDATES = 40
SECONDS = 2.0
MODES = ("blend", "replace")
BOOSTS: Mapping[str, float] = {"recency": 0.0, "period": 0.0, "proof": 0.0}
"""Default alpha of each boost; 0.2 changes a score by at most ten percent.

All are off: the reranker reads the dates, and no alpha improved on that."""

_LEAST = 12  # minimum number of hits that are read
_DEEP = 0.09  # the minimum as a share of the square of those returned: 36 for 20
_PLACES = 3  # places that must be settled: no hit left to read could reach them even if
_HIGH = 0.88  # its relevance were this
_PRIOR = 6.0  # exponent of fused score / best fused score
_UNSEEN = ("graph", "key")  # arms whose evidence is not in the text
_ONE_OF_MANY = 0.5  # how much a doubt counts if other rows of the source are not read
_SESSION = 4.0  # factor of a session's share of relevance in the logit of its hits
_PAUSE = timedelta(hours=1)  # minimum time between two sessions
_NEVER = datetime.min.replace(tzinfo=timezone.utc)  # time of hits without one
_SURE = 1e-6  # probabilities are clipped to this and 1 minus this
_RECENCY_DAYS = 365.0
_SLACK = timedelta(days=7)
_DAY = timedelta(days=1)


class Order:
    """The order of hits by the relevance that a reranker gives them.

    Mode "replace" orders hits by relevance times boosts times the trust of the source. Mode "blend"
    takes the trust from the fused score, and first changes the odds of the relevance, r / (1 - r),
    in three ways:

    * They are multiplied by the prior, (fused score / best fused score) ^ 6.
    * Odds below 1 count less, the more of the fused score came from the graph and from keys, since
      the evidence of these arms is not in the text that was read.
    * They are multiplied by e ^ (4 x (share of the hit's session - largest share)), since answers
      often stand together. A session is what was said without a pause of an hour; its share is of
      the sum of all relevances. Hits of unknown time are one session.

    Hits that are other states of one hit (variant_of) keep their order among themselves.

    A hit found by a path (via) is read together with the facts on the path. In "blend" it may rise,
    but never falls below its fused place, since most cross-encoders were not trained on paths. (For
    the packaged one, which was, this makes no difference.) A hit kept in its place gets the final
    score of the best hit behind it.
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
        """Compute what does not depend on the relevance.

        Args:
            hits: In fused order.
            reference_time: The time of asking, from which recency is counted.
            during: The time the question is about, or None.
            mode: "blend" the relevance with the fused order, or "replace" that order.
            boosts: Alpha of "recency", "period" and "proof", 0 to 1 each. Default: as in BOOSTS.
            is_collapsed: Whether each hit is the best row of its source.

        """
        self._hits = hits
        self._is_blend = mode == "blend"
        self._doubt = _ONE_OF_MANY if is_collapsed else 1.0
        self._best = max((hit.score for hit in hits), default=0.0)
        # In a blend the fused score already contains the trust.
        self._boosts = [
            boost * (1.0 if self._is_blend else hit.trust)
            for boost, hit in zip(
                boosts_of(hits, reference_time, during, boosts), hits, strict=True
            )
        ]

    def final(self, place: int, relevance: float) -> float:
        """Return the final score of the hit at a place, counted from 0, without its session."""
        return self._likely(place, relevance) * self._boosts[place]

    def hits(self, scores: Sequence[float]) -> list[Hit]:
        """Order the hits.

        Args:
            scores: The relevance of the first hits. The others follow in fused order.

        Returns:
            All hits; those that were read have a rerank_score, but for what untrusted_rows and
            source_rows put behind all others.

        """
        within = (n for n, hit in enumerate(self._hits) if hit.is_surplus)
        scores = scores[: next(within, None)]
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
            head = _with_paths_held(read, _with_states_in_order(head))
        tail = [replace(hit, final_score=0.0) for hit in self._hits[len(read) :]]
        return [replace(hit, rank=rank) for rank, hit in enumerate([*head, *tail], 1)]

    def _likely(self, place: int, relevance: float) -> float:
        if not self._is_blend:
            return relevance
        return _blended(self._hits[place], relevance, self._best, self._doubt)


class FirstPlaces:
    """Decides when the first three places are settled, so that reading can stop.

    They are settled when no hit that is left could reach them, even with a high relevance: sessions
    aside, the fused score bounds the final score. At least 12 hits are read, or 36 if 20 are
    returned; all of them if none is relevant.

    Attributes:
        are_settled: Whether the first places are settled.

    """

    def __init__(self, order: Order, candidates: int, returned: int | None) -> None:
        """Start with nothing read.

        Args:
            order: How the hits are ordered.
            candidates: How many hits may be read.
            returned: How many hits are returned; None for all.

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
        """Take the relevance of the next hit; return whether the places are settled."""
        final = self._order.final(self._read, relevance)
        change = heappush if self._read < _PLACES else heappushpop
        change(self._first, final)
        self._read += 1
        self.are_settled = (
            self._least <= self._read < len(self._left) and self._first[0] >= self._left[self._read]
        )
        return self.are_settled


def _with_states_in_order(ordered: Sequence[Hit]) -> list[Hit]:
    """Let other states of one hit share their places in fused order."""
    places: dict[int, list[int]] = {hit.variant_of: [] for hit in ordered if hit.variant_of}
    for place, hit in enumerate(ordered):
        if (state := hit.variant_of or hit.memory_id) in places:
            places[state].append(place)
    kept = [*ordered]
    for shared in places.values():
        states = sorted((ordered[place] for place in shared), key=lambda hit: hit.fused_rank)
        for place, hit in zip(shared, states, strict=True):
            kept[place] = replace(hit, final_score=ordered[place].final_score)
    return kept


def _with_paths_held(fused: Sequence[Hit], ordered: Sequence[Hit]) -> list[Hit]:
    """Keep hits that have a path at or above their fused place."""
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
    """Return the product of the boosts of each hit."""
    alpha = {**BOOSTS, **boosts}
    return [
        recency_boost(hit, reference_time, alpha["recency"])
        * period_boost(hit, during, alpha["period"])
        * proof_boost(hit, alpha["proof"])
        for hit in hits
    ]


def recency_boost(hit: Hit, reference_time: datetime, alpha: float) -> float:
    """Boost recent hits: linear from today to an age of one year.

    Returns:
        1 + alpha / 2 to 1 - alpha / 2; 1.0 for a hit without a date.

    """
    start = began_at(hit)
    if start is None:
        return 1.0
    return _boost(1 - (reference_time - start) / _DAY / _RECENCY_DAYS, alpha)


def period_boost(hit: Hit, during: Period | None, alpha: float) -> float:
    """Boost hits in the period asked about; linear outside it.

    The minimum is reached at a distance of the period's length, or of a week if that is longer.

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
    """Boost hits with several sources: half of the boost for two, three quarters for four.

    Returns:
        1.0 for one source or a message, up to 1 + alpha / 2.

    """
    return _boost(1 - 0.5 / (hit.proof_count or 1), alpha)


def _boost(nearness: float, alpha: float) -> float:
    return 1 + alpha * (min(max(nearness, 0.0), 1.0) - 0.5)


def _blended(hit: Hit, score: float, best: float, doubt: float) -> float:
    """Multiply the odds of a relevance by the prior, which is 1 for the best fused score."""
    logit = _logit(min(max(score, _SURE), 1 - _SURE))
    if logit < 0 and hit.score > 0:
        unseen = sum(hit.arms[arm].contribution for arm in _UNSEEN if arm in hit.arms)
        logit *= doubt * (1 - unseen / hit.score)
    prior = max(hit.score / best, _SURE) if best > 0 else 1.0
    return sigmoid(logit + _PRIOR * math.log(prior))


def _by_session(hits: Sequence[Hit], likely: Sequence[float]) -> list[float]:
    """Lower hits whose session has a smaller share of the relevance than the best session."""
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
    """Number the sessions of hits from 0; a pause of an hour separates two sessions."""
    said = sorted((hit.mentioned_at or _NEVER, place) for place, hit in enumerate(hits))
    sessions = [0] * len(hits)
    for (before, last), (moment, place) in pairwise(said):
        sessions[place] = sessions[last] + (moment - before >= _PAUSE)
    return sessions


def _by_score(hit: Hit) -> tuple[float, int]:
    return -hit.final_score, hit.fused_rank


def _logit(probability: float) -> float:
    return math.log(probability) - math.log1p(-probability)
