"""Quality of answers: recall, nDCG and MRR on questions whose answers are known.

The measures are those of trec_eval, computed by ir-measures. Every figure has a 95% interval from a
bootstrap over the questions (Efron 1979). Differences are computed per question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgrecall.asking.embedding import EmbedderWrapper
from pgrecall.asking.recall_options import RecallOptions
from pgrecall.errors import EmbedderUnavailable, InstallError, InvalidArgument, RerankerUnavailable
from pgrecall.evaluation import queries
from pgrecall.inference.interfaces import Embedder, Role, Vector
from pgrecall.inference.late_interaction import Embedded
from pgrecall.inference.prompts import embed_as, embed_passages
from pgrecall.inference.rerankers import SETTING
from pgrecall.retaining.streams import Progress
from pgrecall.rows import Arm, ArmFinding, Degradation, Hit

if TYPE_CHECKING:
    import ir_measures

    from pgrecall.client import Recall

ID_FIELDS = ("fact_key", "source_id", "memory_id")
FUSED = "fused"
RERANKED = "reranked"
PLAIN = "rrf"
PLAIN_ARMS = ("semantic", "lexical")
CUTOFF = 10
AS_OF = "A question with asked_at sees only what had been mentioned by then (mentioned_at)."

_RESAMPLES = 2000
_SEED = 7
_MOST = 1000
_GRADE = re.compile(r"-?[0-9]{1,9}")
_FIELDS = ("id", "question", "relevant", "category", "asked_at")
_EXAMPLE = '{"question": "Who leads Atlas?", "relevant": ["atlas.lead"]}'


@dataclass(frozen=True, slots=True)
class Judged:
    """A question whose answers are known.

    Attributes:
        question: The question.
        relevant: Grade of each memory that answers it, at least 1, by id.
        category: Category of the question, or None.
        asked_at: When the question is asked. Relative dates count from then, and only what had been
            mentioned by then is found. None for now.

    """

    question: str
    relevant: Mapping[str, int]
    category: str | None = None
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """How a bank fuses the hits of its arms. The names are those of the options of a recall.

    Attributes:
        fusion: How the arms are fused, such as "score_rrf".
        rrf_k: Constant added to each rank.
        weights: Weight of each arm, by name.
        gates: Minimum best score of an arm, by name; an arm without a gate always counts.
        named_boost: Boost of memories that mention an entity named in the query.

    """

    fusion: str
    rrf_k: int
    weights: Mapping[str, float]
    gates: Mapping[str, float]
    named_boost: float

    @classmethod
    def of(cls, options: Mapping[str, Any], arms: Iterable[Arm]) -> Ranking:
        """Return the ranking in the options of a bank."""
        values = {name: options[name] for name in (field.name for field in fields(cls))}
        registered = {arm.arm: arm.weight for arm in arms}
        return cls(**{**values, "weights": {**registered, **(values["weights"] or {})}})

    @property
    def options(self) -> dict[str, object]:
        """The ranking as options of a recall or settings of a bank."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over questions, with the 95% interval of a bootstrap.

    Attributes:
        mean: The mean.
        low: Lower end of the interval.
        high: Upper end of the interval.

    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Score:
    """Scores of one ranking on one category of questions.

    Attributes:
        name: "fused" for the bank's own ranking, "reranked", "rrf" for plain reciprocal rank fusion
            of the semantic and lexical arm with k = 60, or the name of a single arm.
        category: The category; None for all questions.
        questions: Number of questions.
        recall: Share of the relevant memories among the first k.
        ndcg: nDCG at 10.
        mrr: 1 / place of the first relevant memory; 0 if it is after the first 10 or k.
        behind: nDCG of the fused answer minus that of this ranking.

    """

    name: str
    category: str | None
    questions: int
    recall: Figure
    ndcg: Figure
    mrr: Figure
    behind: Figure


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Quality of the answers of a bank.

    Attributes:
        bank: Name of the bank.
        by: What the relevant ids are: "fact_key", "source_id" or "memory_id".
        k: Number of answers for recall.
        questions: Number of questions asked.
        left_out: Number of questions skipped, since nothing is relevant to them.
        unknown_ids: Relevant ids that the bank does not hold; they count as not found.
        degradations: What was left out of the answers.
        scores: All questions first, then each category.

    """

    bank: str
    by: str
    k: int
    questions: int
    left_out: int
    unknown_ids: tuple[str, ...]
    degradations: tuple[Degradation, ...]
    scores: tuple[Score, ...]

    @property
    def best_arm(self) -> Score | None:
        """The best single arm on all questions; None if no arm found anything."""
        names = (FUSED, RERANKED, PLAIN)
        alone = [s for s in self.scores if s.category is None and s.name not in names]
        return max(alone, key=lambda score: score.ndcg.mean, default=None)


def judged_questions(rows: Iterable[Mapping[str, object]]) -> list[Judged]:
    """Parse questions with their answers.

    Args:
        rows: Mappings with `question` and `relevant`, a list of ids or an object with the grade of
            each; optionally `category`, `asked_at` and `id`.

    Raises:
        InvalidArgument: a row is malformed; the message names the row and the field.

    """
    return [_judged(row, f"questions[{i}]") for i, row in enumerate(rows)]


def _judged(row: Mapping[str, object], place: str) -> Judged:
    unknown = next((key for key in row if key not in _FIELDS), None)
    if unknown is not None:
        raise InvalidArgument(
            f'{place}: unknown field "{unknown}"', hint=f"Fields: {', '.join(_FIELDS)}."
        )
    for name in ("question", "relevant"):
        if name not in row:
            raise InvalidArgument(f"{place}: {name} is missing", hint=f"Write {_EXAMPLE}")
    question, category = row["question"], row.get("category")
    if not isinstance(question, str) or not question.strip():
        raise InvalidArgument(
            f"{place}.question: expected a text, not {question!r}", hint=f"Write {_EXAMPLE}"
        )
    return Judged(
        question,
        _grades(row["relevant"], f"{place}.relevant"),
        None if category is None else str(category),
        _moment(row.get("asked_at"), f"{place}.asked_at"),
    )


def _grades(relevant: object, place: str) -> dict[str, int]:
    if isinstance(relevant, Mapping):
        grades = dict(relevant)
    elif isinstance(relevant, list | tuple | set | frozenset):
        grades = {}
        for name in relevant:
            if isinstance(name, bool) or not isinstance(name, str | int):
                raise InvalidArgument(
                    f"{place}: expected ids, not {name!r}", hint=f"Write {_EXAMPLE}"
                )
            grades[str(name)] = 1
    else:
        raise InvalidArgument(
            f"{place}: expected a list of ids, not {relevant!r}", hint=f"Write {_EXAMPLE}"
        )
    for name, grade in grades.items():
        if isinstance(grade, bool) or not isinstance(grade, int) or not 0 <= grade <= 1000:
            raise InvalidArgument(
                f'{place}: the grade of "{name}" must be a whole number from 0 to 1000,'
                f" not {grade!r}",
                hint='Write {"atlas.lead": 2, "atlas.team": 1}, or a list of ids.',
            )
    return {name: grade for name, grade in grades.items() if grade}


def _moment(value: object, place: str) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(str(value).replace("Z", "+00:00").replace("z", "+00:00"))
    except ValueError:
        raise InvalidArgument(
            f"{place}: not a time: {value!r}", hint="Write 2026-03-05 or 2026-03-05T14:00Z."
        ) from None


def trec_questions(qrels: Path, topics: Path) -> list[Judged]:
    """Read questions with their answers from two files in TREC format.

    Args:
        qrels: One line per judgement: id of the question, an ignored field, id of the memory,
            grade.
        topics: One line per question: its id, a tab, the question.

    Raises:
        InvalidArgument: a line is malformed; the message names file and line.

    """
    texts: dict[str, str] = {}
    for place, line in _lines(topics):
        name, tab, text = line.partition("\t")
        if not tab or not text.strip():
            raise InvalidArgument(
                f"{place}: there is no tab and question",
                hint="A line is the id of a question, a tab and the question.",
            )
        texts[name.strip()] = text.strip()
    grades: dict[str, dict[str, int]] = {name: {} for name in texts}
    for place, line in _lines(qrels):
        hint = "A line has four fields: id of the question, 0, id of the memory, grade."
        parts = line.split()
        if len(parts) != 4:
            raise InvalidArgument(f"{place}: {len(parts)} fields, not 4", hint=hint)
        name, _, memory, grade = parts
        if not _GRADE.fullmatch(grade):
            raise InvalidArgument(f'{place}: the grade "{grade}" is not a number', hint=hint)
        if name not in grades:
            raise InvalidArgument(
                f'{place}: {topics} has no question "{name}"',
                hint="Add it there, or take it out.",
            )
        if int(grade) > 0:
            grades[name][memory] = int(grade)
    return [Judged(text, grades[name]) for name, text in texts.items()]


def _lines(path: Path) -> Iterable[tuple[str, str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgument(
            f"{path}: not UTF-8 at byte {error.start + 1}", hint="Save it as UTF-8."
        ) from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"{path}, line {number}", line.strip("\r\n")


def evaluate(
    recall: Recall,
    bank: str,
    questions: Iterable[Judged],
    *,
    k: int = 10,
    by: str | None = None,
    rerank: bool = False,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure the answers of a bank and of each arm alone.

    Args:
        recall: A client; its embedder embeds each question once.
        bank: Name of an existing bank.
        questions: Questions with their answers, from :func:`judged_questions`.
        k: Number of answers for recall, 1 to 1000.
        by: What the relevant ids are: "fact_key", "source_id" or "memory_id". Default: the field in
            which most are found.
        rerank: Whether to measure reranked answers as well.
        progress: Called with the number of further questions answered.

    Raises:
        BankNotFound: no bank has that name.
        InvalidArgument: there is nothing to measure, or an argument is out of its range.
        InstallError: the package that measures is missing.
        RerankerUnavailable: the reranker cannot be used.
        RecallError: as :meth:`pgrecall.Recall.recall`.

    """
    if not 1 <= k <= _MOST:
        raise InvalidArgument(f"k must be between 1 and {_MOST}, not {k}")
    if rerank:
        require_reranker(recall)
    asking = Asking(recall, bank, questions, by=by)
    top_k = max(k, CUTOFF)
    found: dict[str, list[list[str]]] = {FUSED: []}
    alone: dict[str, list[list[str]]] = {arm: [] for arm in asking.ranking.weights}
    plain: list[list[str]] = []
    weights = {arm: float(arm in PLAIN_ARMS) for arm in asking.ranking.weights}
    plain_ranking = Ranking("rrf", 60, weights, {}, named_boost=0.0)
    for position in range(len(asking.judged)):
        found[FUSED].append(asking.answer(position, top_k=top_k, rerank=False))
        if rerank:
            found.setdefault(RERANKED, []).append(asking.answer(position, top_k=top_k, rerank=True))
        pool = asking.pool(position)
        for arm, rankings in alone.items():
            rankings.append(pool.alone(arm)[:top_k])
        plain += pool.fused(recall, [plain_ranking], top_k=top_k)
        if progress:
            progress(1)
    found[PLAIN] = plain
    found |= {arm: rankings for arm, rankings in alone.items() if any(rankings)}
    return Evaluation(
        bank=bank,
        by=asking.by,
        k=k,
        questions=len(asking.judged),
        left_out=asking.left_out,
        unknown_ids=asking.unknown_ids,
        degradations=asking.degradations,
        scores=tuple(_scores(asking, found, k)),
    )


def _scores(asking: Asking, found: Mapping[str, list[list[str]]], k: int) -> Iterable[Score]:
    measured = measure(asking.judged, list(found.values()), k)
    for category, members in asking.categories():
        figures = intervals([rows[members] for way in measured for rows in way])
        behind = intervals([(measured[0][1] - way[1])[members] for way in measured])
        for i, name in enumerate(found):
            recall, ndcg, mrr = figures[3 * i : 3 * i + 3]
            yield Score(name, category, len(members), recall, ndcg, mrr, behind[i])


def require_reranker(recall: Recall) -> None:
    """Require that a client has a reranker.

    Raises:
        RerankerUnavailable: the client has no reranker.

    """
    if recall._settings.reranker is None:
        raise RerankerUnavailable(
            "no reranker is set",
            hint=f"Pass reranker=..., or set {SETTING} to the directory of a cross-encoder.",
        )


class Asking:
    """Asks questions of a bank; embeds each once, and names hits by the ids of the judgements.

    Attributes:
        judged: The questions that have relevant memories.
        left_out: The number of other questions.
        by: The field of a hit that the judgements name.
        unknown_ids: Relevant ids that the bank does not hold.
        ranking: How the bank ranks.

    """

    def __init__(
        self, recall: Recall, bank: str, questions: Iterable[Judged], *, by: str | None
    ) -> None:
        """Determine what the ids are."""
        evaluator([])  # fail before minutes of work
        everything = list(questions)
        self.judged = [judged for judged in everything if judged.relevant]
        self.left_out = len(everything) - len(self.judged)
        self.options = recall.bank_options(bank)
        self.ranking = Ranking.of(self.options, recall.arms())
        self._degradations: dict[tuple[str, str | None], Degradation] = {}
        self._recall = _remembering(recall)
        self._bank = bank
        self._asked_at = datetime.now(timezone.utc)
        if not self.judged:
            raise InvalidArgument("no question has relevant memories", hint=f"Write {_EXAMPLE}")
        self._name_ids(by)

    def _name_ids(self, by: str | None) -> None:
        if by is not None and by not in ID_FIELDS:
            raise InvalidArgument(
                f'by must be one of {", ".join(ID_FIELDS)}, not "{by}"',
                hint="Omit it to detect the field.",
            )
        wanted = list(dict.fromkeys(name for judged in self.judged for name in judged.relevant))
        known: dict[str, set[str]] = {field: set() for field in ID_FIELDS}
        for field, name in self._recall._run(queries.known_ids(self._bank, wanted)):
            known[field].add(name)
        self.by = by or max(ID_FIELDS, key=lambda field: len(known[field]))
        self.unknown_ids = tuple(name for name in wanted if name not in known[self.by])
        if len(self.unknown_ids) == len(wanted):
            kind = self.by if by else "fact_key, source_id or memory_id"
            raise InvalidArgument(
                f'bank "{self._bank}" holds none of the {len(wanted):,} relevant ids as {kind},'
                f' such as "{wanted[0]}"',
                hint="Check that the questions are about this bank.",
            )

    @property
    def degradations(self) -> tuple[Degradation, ...]:
        """What was left out of the answers so far; the first of each kind."""
        return tuple(self._degradations.values())

    def categories(self) -> Iterable[tuple[str | None, list[int]]]:
        """Return the positions of all questions, then of each category, by name."""
        yield None, list(range(len(self.judged)))
        names = sorted({judged.category for judged in self.judged if judged.category is not None})
        for name in names:
            yield name, [i for i, judged in enumerate(self.judged) if judged.category == name]

    def answer(
        self,
        position: int,
        *,
        top_k: int,
        rerank: bool,
        boosts: Mapping[str, float] | None = None,
    ) -> list[str]:
        """Ask a question as users do; return the ids, best first."""
        options: RecallOptions = {"top_k": top_k, "rerank": rerank, "boosts": boosts}
        return self.named(self._hits(position, options))

    def pool(self, position: int) -> Pool:
        """Fetch all hits of the arms, regardless of their weights in the bank."""
        judged = self.judged[position]
        found = self._recall.arm_hits(
            self._bank, judged.question, reference_time=judged.asked_at or self._asked_at
        )
        known = self._recall._run(
            queries.identities(self._bank, list({hit.memory_id for hit in found}))
        )
        place = ID_FIELDS.index(self.by)
        names = {
            memory_id: _name(memory_id, (fact_key, source_id, memory_id)[place])
            for memory_id, fact_key, source_id, _ in known
        }
        return Pool(found, names, {row[0]: row[3] for row in known})

    def _hits(self, position: int, options: RecallOptions) -> tuple[Hit, ...]:
        judged = self.judged[position]
        asked: RecallOptions = {"reference_time": judged.asked_at or self._asked_at}
        asked.update(options)
        report = self._recall.recall_report(self._bank, judged.question, **asked)
        for degradation in report.degradations:
            is_reranked = any(hit.rerank_score is not None for hit in report.hits)
            if degradation.what == "reranker" and report.hits and not is_reranked:
                raise RerankerUnavailable(degradation.why, hint=degradation.hint)
            if degradation.what == "embedder":
                raise EmbedderUnavailable(degradation.why, hint=degradation.hint)
            self._degradations.setdefault((degradation.what, degradation.hint), degradation)
        return report.hits

    def named(self, hits: Sequence[Hit]) -> list[str]:
        """Return the judgements' ids of hits, without duplicates."""
        return unique(_name(hit.memory_id, getattr(hit, self.by)) for hit in hits)


def _name(memory_id: int, name: object) -> str:
    """Return the id of a memory; one without the field still takes a place in the answer."""
    return f"\1{memory_id}" if name is None else str(name)


class CachedEmbedder(EmbedderWrapper):
    """An embedder that embeds each text once."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self._known: dict[tuple[Role, str, str], Vector] = {}
        earlier = getattr(embedder, "earlier", None)
        self.earlier = None if earlier is None else CachedEmbedder(earlier)

    def embed_documents(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per passage, in order."""
        return self._embed("document", texts, [""] * len(texts))

    def embed_in_context(self, texts: Sequence[str], contexts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per passage, in order, in its context if the embedder reads it."""
        return self._embed("document", texts, contexts)

    def embed_query(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per question, in order."""
        return self._embed("query", texts, [""] * len(texts))

    def _embed(self, role: Role, texts: Sequence[str], contexts: Sequence[str]) -> Iterable[Vector]:
        wanted = [(role, *both) for both in zip(texts, contexts, strict=True)]
        new = [key for key in dict.fromkeys(wanted) if key not in self._known]
        if new:
            _, bare, around = zip(*new, strict=True)
            made = (
                embed_as(self._embedder, role, bare)
                if role == "query"
                else embed_passages(self._embedder, bare, around)
            )
            vectors = (vector if isinstance(vector, Embedded) else list(vector) for vector in made)
            self._known.update(zip(new, vectors, strict=True))
        return [self._known[key] for key in wanted]


def _remembering(recall: Recall) -> Recall:
    """Return a copy of a client that caches embeddings."""
    twin = copy(recall)
    if recall._settings.embedder is not None:
        embedder = CachedEmbedder(recall._settings.embedder)
        twin._settings = replace(recall._settings, embedder=embedder)
    return twin


class Pool:
    """Hits of the arms for a question, to be fused in various ways.

    Attributes:
        hits: All hits of all arms.

    """

    def __init__(
        self,
        hits: Sequence[ArmFinding],
        names: Mapping[int, str],
        mentioned_at: Mapping[int, datetime | None],
    ) -> None:
        """Keep the hits, their ids in the judgements, and their times."""
        self.hits = hits
        self._names = names
        oldest = datetime.min.replace(tzinfo=timezone.utc)
        recent = sorted(names, key=lambda i: (mentioned_at[i] or oldest, i))
        self._recency = {memory_id: place for place, memory_id in enumerate(recent)}

    def alone(self, arm: str) -> list[str]:
        """Return the ids that one arm found, best first."""
        found = [hit for hit in self.hits if hit.arm == arm]
        found.sort(key=lambda hit: (hit.rank, -self._recency[hit.memory_id]))
        return unique(self._names[hit.memory_id] for hit in found)

    def fused(self, recall: Recall, rankings: Sequence[Ranking], *, top_k: int) -> list[list[str]]:
        """Fuse the hits on the server by each ranking; return the ids of each, best first."""
        ways = [ranking.options for ranking in rankings]
        answers = []
        for memory_ids, scores in recall._run(queries.fuse(self.hits, ways, top_k=top_k)):
            found = zip(scores, memory_ids, strict=True)
            best = sorted(found, key=lambda row: (-row[0], -self._recency[row[1]]))
            answers.append(unique(self._names[memory_id] for _, memory_id in best[:top_k]))
        return answers


def unique(ids: Iterable[str]) -> list[str]:
    """Return ids without duplicates, in order of first occurrence."""
    return list(dict.fromkeys(ids))


def evaluator(judged: Sequence[Judged], k: int = CUTOFF) -> ir_measures.Evaluator:
    """Make an evaluator for these questions.

    Raises:
        InstallError: the package is missing.

    """
    try:
        import ir_measures
        import numpy  # noqa: F401
    except ImportError as error:
        raise InstallError(
            f"cannot measure: package {error.name} is missing",
            hint="Run: pip install 'pgrecall[eval]'",
        ) from error
    names = (f"R@{k}", f"nDCG@{CUTOFF}", f"RR@{max(k, CUTOFF)}")
    measures = [ir_measures.parse_measure(name) for name in names]
    return ir_measures.evaluator(
        measures, {str(i): dict(question.relevant) for i, question in enumerate(judged)}
    )


def measure(judged: Sequence[Judged], found: Sequence[list[list[str]]], k: int = CUTOFF) -> Any:
    """Measure rankings.

    Args:
        judged: The questions.
        found: For each ranking and each question, the ids, best first.
        k: Number of answers for recall.

    Returns:
        Recall, nDCG and reciprocal rank: an array of shape (rankings, 3, questions).

    """
    import numpy as np

    by_question = evaluator(judged, k)
    figures = np.zeros((len(found), 3, len(judged)))
    row = {"R": 0, "nDCG": 1, "RR": 2}
    for way, rankings in enumerate(found):
        run = {
            str(i): {name: float(-place) for place, name in enumerate(ranking)}
            for i, ranking in enumerate(rankings)
            if ranking
        }
        for metric in by_question.iter_calc(run):
            figures[way, row[str(metric.measure.NAME)], int(metric.query_id)] = metric.value
    return figures


def intervals(rows: Sequence[Any]) -> list[Figure]:
    """Return the mean of each row with its interval; all rows are of the same questions."""
    import numpy as np

    values = np.asarray(rows)
    size = values.shape[1]
    counts = np.random.default_rng(_SEED).multinomial(size, np.full(size, 1 / size), _RESAMPLES)
    means = values @ counts.T / size
    low, high = np.percentile(means, (2.5, 97.5), axis=1)
    return [
        Figure(float(mean), float(start), float(end))
        for mean, start, end in zip(values.mean(axis=1), low, high, strict=True)
    ]
