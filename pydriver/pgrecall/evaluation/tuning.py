"""Search for the best ranking, evaluated on held-out questions.

The hits of the arms are fetched once per question and fused on the server for every ranking, so a
ranking costs about as much as one fusion. The gain is cross-validated: each fold is answered by the
ranking that was best on the other folds, and compared with the bank's own ranking.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any

from pgrecall.asking.ranking import BOOSTS
from pgrecall.errors import InvalidArgument
from pgrecall.evaluation.measure import (
    AS_OF,
    CUTOFF,
    Asking,
    Figure,
    Judged,
    Pool,
    Ranking,
    intervals,
    measure,
    require_reranker,
)
from pgrecall.retaining.streams import Progress
from pgrecall.rows import Degradation

if TYPE_CHECKING:
    from pgrecall.client import Recall

_SEED = 7
_RANDOM = 150
_ROUNDS = 4
_SURE = 3.0  # standard errors; among hundreds of rankings some reach two by chance
_BATCH = 50  # rankings per statement
_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
_FACTORS = (0.0, 0.5, 0.8, 1.25, 2.0)
_RETURNS = (0.25, 0.5, 1.0)
_SHARES = (0.1, 0.25, 0.5)
_BOOSTS = (0.0, 1.5, 3.0, 4.5, 6.0, 9.0)
_ALPHAS = (0.1, 0.2, 0.4)
_WITHOUT_K = "linear"
_KS = (1, 2, 5, 10, 20, 40, 60, 100, 200, 500)


@dataclass(frozen=True, slots=True)
class Gain:
    """Gain of the search on questions that it did not see.

    Attributes:
        category: The category; None for all questions.
        questions: Number of questions.
        present: nDCG@10 of the bank's own ranking.
        tuned: nDCG@10 of the rankings found, each on its held-out questions.
        gain: Mean difference per question.

    """

    category: str | None
    questions: int
    present: Figure
    tuned: Figure
    gain: Figure


@dataclass(frozen=True, slots=True)
class Boosting:
    """Result of a search for better boosts of reranked answers.

    Attributes:
        boosts: Alpha of each boost, an option of a recall; banks do not store them.
        tried: Number of combinations tried.
        gains: Gains over reranked answers with the default boosts; all questions first, then each
            category.

    """

    boosts: Mapping[str, float]
    tried: int
    gains: tuple[Gain, ...]


@dataclass(frozen=True, slots=True)
class Tuning:
    """Result of a search for a better ranking.

    Attributes:
        bank: Name of the bank.
        by: What the relevant ids are: "fact_key", "source_id" or "memory_id".
        folds: Number of folds.
        tried: Number of rankings tried.
        is_complete: False if the search ran out of time.
        left_out: Number of questions skipped, since nothing is relevant to them.
        unknown_ids: Relevant ids that the bank does not hold; they count as not found.
        degradations: What was left out of the answers.
        present: The bank's own ranking.
        best: The ranking that is best on all questions, which would be applied.
        gains: All questions first, then each category.
        boosting: The search for boosts of reranked answers; None if it was not requested.

    """

    bank: str
    by: str
    folds: int
    tried: int
    is_complete: bool
    left_out: int
    unknown_ids: tuple[str, ...]
    degradations: tuple[Degradation, ...]
    present: Ranking
    best: Ranking
    gains: tuple[Gain, ...]
    boosting: Boosting | None

    @property
    def is_gain(self) -> bool:
        """Whether the interval of the gain on all questions lies above 0."""
        return self.gains[0].gain.low > 0

    @property
    def settings(self) -> dict[str, object]:
        """The arguments for :meth:`pgrecall.Recall.configure_bank`."""
        return self.best.options


def tune(
    recall: Recall,
    bank: str,
    questions: Iterable[Judged],
    *,
    by: str | None = None,
    folds: int = 5,
    budget: float = 300.0,
    rerank: bool = False,
    progress: Progress | None = None,
) -> Tuning:
    """Search for the best ranking. Changes nothing.

    The result is reproducible unless the search runs out of time. The age of memories is ignored,
    even if it counts in the bank. Unlike in the bank, hits of an arm of weight 0 are still seeds of
    the graph arm.

    Args:
        recall: A client; its embedder embeds each question once.
        bank: Name of an existing bank.
        questions: Questions with their answers, from :func:`pgrecall.evaluation.judged_questions`.
        by: As for :func:`pgrecall.evaluation.evaluate`.
        folds: Number of folds, 2 to the number of questions.
        budget: Seconds after which no more rankings are tried.
        rerank: Whether to also search for boosts of reranked answers, with the bank's own ranking.
        progress: Called with the number of further questions fetched or reranked.

    Raises:
        BankNotFound: no bank has that name.
        InvalidArgument: there are too few questions, or an argument is out of its range.
        InstallError: package ir-measures is missing.
        RerankerUnavailable: the reranker cannot be used.
        RecallError: as :meth:`pgrecall.Recall.recall`.

    """
    if rerank:
        require_reranker(recall)
    until = monotonic() + budget
    asking = Asking(recall, bank, questions, by=by)
    size = len(asking.judged)
    if not 2 <= folds <= size:
        raise InvalidArgument(
            f"folds must be between 2 and {size}, the number of questions, not {folds}",
            hint="Add questions, or use fewer folds.",
        )
    trials = _Trials(recall, asking, progress)
    parts = _parts(asking, folds)
    everything = list(range(size))
    splits = [[i for i in everything if i not in set(part)] for part in parts] + [everything]

    is_complete = trials.run(trials.space.first(), until)
    known = [list(range(len(trials.figures))) for _ in splits]
    for _ in range(_ROUNDS):
        if not is_complete:
            break
        wanted = [
            trials.space.neighbours(trials.rankings[_surest(trials.figures, mine, split)])
            for mine, split in zip(known, splits, strict=True)
        ]
        is_complete = trials.run([ranking for near in wanted for ranking in near], until)
        # A fold compares only its own rankings; the others have seen its held-out questions.
        for mine, near in zip(known, wanted, strict=True):
            places = (trials.place(ranking) for ranking in near)
            mine += [place for place in places if place is not None and place not in mine]

    best = [_surest(trials.figures, *each) for each in zip(known, splits, strict=True)]
    return Tuning(
        bank=bank,
        by=asking.by,
        folds=folds,
        tried=len(trials.figures),
        is_complete=is_complete,
        left_out=asking.left_out,
        unknown_ids=asking.unknown_ids,
        degradations=asking.degradations,
        present=asking.ranking,
        best=trials.rankings[best[-1]],
        gains=tuple(_gains(asking, trials.figures, parts, best)),
        boosting=_boosting(asking, parts, splits, progress) if rerank else None,
    )


def _boosting(
    asking: Asking,
    parts: Sequence[Sequence[int]],
    splits: Sequence[Sequence[int]],
    progress: Progress | None,
) -> Boosting:
    """Try each boost alone and all together, on reranked answers."""
    ways: list[Mapping[str, float]] = [BOOSTS]
    ways += [{**BOOSTS, name: alpha} for name in BOOSTS for alpha in _ALPHAS]
    ways += [dict.fromkeys(BOOSTS, alpha) for alpha in _ALPHAS]
    answers: list[list[list[str]]] = [[] for _ in ways]
    for position in range(len(asking.judged)):
        for boosts, found in zip(ways, answers, strict=True):
            found.append(asking.answer(position, top_k=CUTOFF, rerank=True, boosts=boosts))
        if progress:
            progress(1)
    figures = measure(asking.judged, answers)[:, 1]
    best = [_surest(figures, range(len(ways)), split) for split in splits]
    return Boosting(ways[best[-1]], len(ways), tuple(_gains(asking, figures, parts, best)))


def _gains(
    asking: Asking, figures: Sequence[Any], parts: Sequence[Sequence[int]], best: Sequence[int]
) -> Iterable[Gain]:
    """Compare the first ranking with the best ones, each on its held-out part."""
    chosen = {i: place for part, place in zip(parts, best, strict=False) for i in part}
    for category, members in asking.categories():
        present = [figures[0][i] for i in members]
        tuned = [figures[chosen[i]][i] for i in members]
        gain = [after - before for before, after in zip(present, tuned, strict=True)]
        yield Gain(category, len(members), *intervals([present, tuned, gain]))


def _parts(asking: Asking, folds: int) -> list[list[int]]:
    """Split the questions into parts that have equal shares of each category."""
    randomly = random.Random(_SEED)
    order = list(range(len(asking.judged)))
    randomly.shuffle(order)
    order.sort(key=lambda i: asking.judged[i].category or "")
    return [order[first::folds] for first in range(folds)]


class _Space:
    """The rankings to try, for the arms that find anything for these questions."""

    def __init__(self, present: Ranking, fusions: Sequence[str], pools: Sequence[Pool]) -> None:
        self.present = present
        self.fusions = fusions
        best: dict[str, list[float]] = {}
        for pool in pools:
            tops: dict[str, float] = {}
            for hit in pool.hits:
                tops[hit.arm] = max(hit.score, tops.get(hit.arm, hit.score))
            for arm, top in tops.items():
                best.setdefault(arm, []).append(top)
        self.arms = [arm for arm in present.weights if arm in best]
        is_named = any(hit.named is not None for pool in pools for hit in pool.hits)
        self._boosts = _BOOSTS if is_named else ()
        # Gates that would close an arm for a tenth, a quarter or half of the questions.
        self._gates = {
            arm: [float(f"{sorted(tops)[int(len(tops) * share)]:.4g}") for share in _SHARES]
            for arm, tops in best.items()
        }

    def first(self) -> list[Ranking]:
        """Return the bank's own ranking, its neighbours and random ones."""
        randomly = random.Random(_SEED)
        wanted = [self.present, *self.neighbours(self.present)]
        for _ in range(_RANDOM):
            weights = {arm: randomly.choice(_WEIGHTS) for arm in self.arms}
            fusion, k = randomly.choice(sorted(self.fusions)), randomly.choice(_KS)
            ranking = replace(
                self.present,
                fusion=fusion,
                rrf_k=self._k(fusion, k),
                weights={**self.present.weights, **weights},
            )
            if any(weights.values()):
                wanted.append(ranking)
        return wanted

    def _k(self, fusion: str, k: int) -> int:
        return self.present.rrf_k if fusion == _WITHOUT_K else k

    def neighbours(self, ranking: Ranking) -> list[Ranking]:
        """Return the rankings that differ in one thing: fusion, k, boost, a weight or a gate."""
        found = [replace(ranking, fusion=name) for name in self.fusions if name != ranking.fusion]
        if ranking.fusion != _WITHOUT_K:
            below = [k for k in _KS if k < ranking.rrf_k]
            above = [k for k in _KS if k > ranking.rrf_k]
            found += [replace(ranking, rrf_k=k) for k in below[-2:] + above[:2]]
        found += [
            replace(ranking, named_boost=boost)
            for boost in self._boosts
            if boost != ranking.named_boost
        ]
        for arm in self.arms:
            weight = ranking.weights[arm]
            for new in [round(weight * factor, 3) for factor in _FACTORS] if weight else _RETURNS:
                weights = {**ranking.weights, arm: new}
                if any(weights[name] for name in self.arms):
                    found.append(replace(ranking, weights=weights))
            others = {name: gate for name, gate in ranking.gates.items() if name != arm}
            found += [
                replace(ranking, gates={**others, arm: gate} if gate > 0 else others)
                for gate in (0.0, *self._gates[arm])
                if weight
            ]
        return found


class _Trials:
    """The rankings tried, with their nDCG for each question; the bank's own is first."""

    def __init__(self, recall: Recall, asking: Asking, progress: Progress | None) -> None:
        self.rankings: list[Ranking] = []
        self.figures: list[Any] = []
        self._recall = recall
        self._asking = asking
        self._places: dict[str, int] = {}
        self._pools: list[Pool] = []
        for position in range(len(asking.judged)):
            self._pools.append(asking.pool(position))
            if progress:
                progress(1)
        self.space = _Space(asking.ranking, _fusions(recall, asking), self._pools)
        if not self.space.arms:
            raise InvalidArgument(
                "no arm finds anything for any of the questions",
                hint=AS_OF,
            )

    def run(self, rankings: Sequence[Ranking], until: float) -> bool:
        """Try new rankings, at least one batch; return whether there was time for all."""
        new = {_name(r): r for r in rankings if _name(r) not in self._places}
        for first in range(0, len(new), _BATCH):
            if self.figures and monotonic() > until:
                return False
            batch = list(new.values())[first : first + _BATCH]
            answers = [pool.fused(self._recall, batch, top_k=CUTOFF) for pool in self._pools]
            measured = measure(
                self._asking.judged, [list(found) for found in zip(*answers, strict=True)]
            )
            for ranking, figures in zip(batch, measured, strict=True):
                self._places[_name(ranking)] = len(self.rankings)
                self.rankings.append(ranking)
                self.figures.append(figures[1])
        return True

    def place(self, ranking: Ranking) -> int | None:
        """Return the position of a ranking; None if there was no time to try it."""
        return self._places.get(_name(ranking))


def _fusions(recall: Recall, asking: Asking) -> list[str]:
    """Return the fusions to try; only the bank's own if age counts."""
    if asking.options["recency_half_life"] is not None:
        return [asking.ranking.fusion]
    (fusion,) = (option for option in recall.recall_options() if option.name == "fusion")
    return list(fusion.choices or ())


def _surest(figures: Sequence[Any], places: Sequence[int], members: Sequence[int]) -> int:
    """Return the place with the most certain gain over the first one, on these questions.

    This is the one with the highest lower end of the gain's interval. The highest mean gain may be
    luck among hundreds. If no gain is certain, it is the first place.
    """

    def surely(place: int) -> tuple[float, int]:
        gain = figures[place][members] - figures[0][members]
        return float(gain.mean() - _SURE * gain.std() / len(members) ** 0.5), -place

    return max(places, key=surely)


def _name(ranking: Ranking) -> str:
    parts = (sorted(ranking.weights.items()), sorted(ranking.gates.items()))
    return f"{ranking.fusion} {ranking.rrf_k} {ranking.named_boost} {parts}"
