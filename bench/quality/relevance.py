"""Measure whether relevance distinguishes answerable questions from others.

    python -m bench.quality.relevance --smoke
    python -m bench.quality.relevance --full
    python -m bench.quality.relevance --data /path/to/conversations.json

The data are those of bench/conversations.py. Every question is asked of its own conversation, of
another one that holds no answer (`other`), and of the other one with the names in the question
replaced by those of its speakers (`renamed`), so that words and persons fit and only the content
does not. The confidence of an answer is the greatest relevance among its ten rows. All questions
are asked with and without their embedding.

* answer_auc: the probability that an answerable question gets a higher confidence than one of the
  others, half of them renamed (area under the ROC curve).
* answer_ece: expected calibration error of the confidence as the probability that the question is
  answerable, half of them being so: the mean distance between confidence and share, in ten bins.
* kept, rejected: the share of the answerable questions with a confidence of 0.5 or more, and of the
  others with less.
* words.*: the same without an embedding.

    python -m bench.quality.relevance --full --fit

fits the formula of relevance (sql/recall/relevance.sql) again: its direction by logistic regression
on rows (relevant or not), its scale on answers (answerable or not). Every conversation is scored by
a formula fitted to the others. This needs scipy.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import psycopg
from bench import conversations, harness
from bench.conversations import Conversation, Question

from pgrecall import Hit, Recall

TOP_K = 10
# No public function returns the sum of IDFs to which a relevance is relative.
IDF_SUM = "select ((pgrecall_internal._request(%s, %s)).memory_terms).idf_sum"
KINDS = ("own", "other", "renamed")


@dataclass(frozen=True)
class Asked:
    """A question as it is put to a bank."""

    text: str
    conversation: Conversation
    kind: str
    about: Question


@dataclass(frozen=True)
class Answer:
    """The evidence of each row, whether it is relevant, and its relevance."""

    asked: Asked
    evidence: np.ndarray
    is_relevant: np.ndarray
    relevance: np.ndarray

    @property
    def confidence(self) -> float:
        return float(self.relevance.max(initial=0.0))


def variants(given: Sequence[Conversation]) -> list[Asked]:
    """Ask every question of its own conversation and, in two ways, of another one."""
    chance = random.Random(7)
    asked = []
    for conversation in given:
        for question in conversation.questions:
            other = chance.choice([c for c in given if c is not conversation])
            renamed = question.text
            for ours, theirs in zip(conversation.speakers, other.speakers, strict=False):
                literal = theirs.replace("\\", r"\\")
                renamed = re.sub(rf"\b{re.escape(ours)}\b", literal, renamed)
            asked.append(Asked(question.text, conversation, "own", question))
            asked.append(Asked(question.text, other, "other", question))
            if renamed != question.text:
                asked.append(Asked(renamed, other, "renamed", question))
    return asked


def evidence(hit: Hit, idf_sum: float) -> tuple[float, float, float]:
    """Return the input of pgrecall_internal._relevance(): similarity, words, nearness in time."""
    arms = hit.arms
    return (
        arms["semantic"].score if "semantic" in arms else 0.2,
        arms["lexical"].score / idf_sum if "lexical" in arms and idf_sum else 0.0,
        arms["temporal"].score if "temporal" in arms else 0.0,
    )


def beginning(conversation: Conversation) -> Conversation:
    """Keep the first turns of a conversation, and a few questions that they answer."""
    turns = conversation.turns[:150]
    known = {turn.turn_id for turn in turns}
    asked = [question for question in conversation.questions if question.relevant <= known]
    return replace(conversation, turns=turns, questions=asked[:15])


def answers(recall: Recall, asked: Sequence[Asked], dsn: str) -> Iterator[Answer]:
    """Ask each question at the time of the last turn of its bank."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for one in asked:
            hits = recall.recall(
                one.conversation.bank,
                one.text,
                reference_time=one.conversation.asked_at,
                top_k=TOP_K,
                rerank=False,
            )
            (idf_sum,) = harness.one(connection, IDF_SUM, (one.conversation.bank, one.text))
            idf_sum = float(idf_sum or 0)
            yield Answer(
                one,
                np.array([evidence(hit, idf_sum) for hit in hits]).reshape(-1, 3),
                np.array(
                    [one.kind == "own" and hit.source_id in one.about.relevant for hit in hits],
                    dtype=bool,
                ),
                np.array([hit.relevance for hit in hits]),
            )


def weights(kinds: Sequence[str]) -> np.ndarray:
    """Give half of the weight to answerable questions, and equal shares to the other kinds."""
    counts = {kind: kinds.count(kind) for kind in KINDS if kind in kinds}
    others = len(counts) - 1
    shares: np.ndarray = np.array(
        [(1 if kind == "own" else 1 / others) / counts[kind] / 2 for kind in kinds]
    )
    return shares


def auc(confidence: np.ndarray, is_own: np.ndarray, weight: np.ndarray) -> float:
    ours, theirs = confidence[is_own], confidence[~is_own]
    wins = (ours[:, None] > theirs) + 0.5 * (ours[:, None] == theirs)
    return float(np.average(wins.mean(axis=0), weights=weight[~is_own]))


def calibration_error(confidence: np.ndarray, is_own: np.ndarray, weight: np.ndarray) -> float:
    bins = np.minimum((confidence * 10).astype(int), 9)
    return sum(
        float(abs(np.sum((weight * (confidence - is_own))[bins == b])) / weight.sum())
        for b in range(10)
    )


def figures_of(
    given: Sequence[Answer], confidence: np.ndarray, prefix: str = ""
) -> harness.Figures:
    kinds = [answer.asked.kind for answer in given]
    is_own = np.array([kind == "own" for kind in kinds])
    weight = weights(kinds)
    found = {
        "answer_auc": auc(confidence, is_own, weight),
        "answer_ece": calibration_error(confidence, is_own, weight),
        "kept": float((confidence[is_own] >= 0.5).mean()),
    }
    for kind in sorted(set(kinds) - {"own"}):
        chosen = np.array([k in ("own", kind) for k in kinds])
        found[f"{kind}.answer_auc"] = auc(confidence[chosen], is_own[chosen], weight[chosen])
        found[f"{kind}.rejected"] = float(
            (confidence[np.array([k == kind for k in kinds])] < 0.5).mean()
        )
    rows = [a for a in given if a.asked.kind == "own" and a.is_relevant.any()]
    found["row_auc"] = float(
        np.mean(
            [
                np.mean(a.relevance[a.is_relevant][:, None] > a.relevance[~a.is_relevant])
                for a in rows
                if not a.is_relevant.all()
            ]
        )
    )
    return {f"{prefix}{name}": round(value, 4) for name, value in found.items()}


def fit_logistic(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the coefficients of a logistic regression, the constant last."""
    from scipy.optimize import minimize

    design = np.column_stack([x, np.ones(len(x))])
    sign = np.where(y, 1.0, -1.0)

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        margin = sign * (design @ b)
        value = float(np.sum(weight * np.logaddexp(0, -margin)))
        slope = -weight * sign / (1 + np.exp(margin))
        return value, design.T @ slope

    start = np.zeros(design.shape[1])
    found: np.ndarray = minimize(loss, start, jac=True, method="BFGS").x
    return found


def fit(given: Sequence[Answer]) -> np.ndarray:
    """Fit direction and scale; returns a factor for each evidence and the constant."""
    kinds = [answer.asked.kind for answer in given]
    per_answer = weights(kinds)
    x = np.concatenate([answer.evidence for answer in given])
    y = np.concatenate([answer.is_relevant for answer in given])
    per_row: np.ndarray = np.repeat(per_answer, [len(answer.evidence) for answer in given])
    direction = fit_logistic(x, y, per_row * len(given))[:-1]
    best = np.array([(a.evidence @ direction).max(initial=-20) for a in given])
    is_own = np.array([kind == "own" for kind in kinds])
    scale, constant = fit_logistic(best[:, None], is_own, per_answer * len(given))
    return np.append(direction * scale, constant)


def held_out(given: Sequence[Answer]) -> np.ndarray:
    """Return the confidence of each answer by a formula fitted to the other conversations."""
    confidence = np.zeros(len(given))
    banks = [answer.asked.about.bank for answer in given]
    for bank in sorted(set(banks)):
        formula = fit([a for a, b in zip(given, banks, strict=True) if b != bank])
        for i, answer in enumerate(given):
            if banks[i] == bank:
                best = (answer.evidence @ formula[:-1]).max(initial=-20) + formula[-1]
                confidence[i] = 1 / (1 + np.exp(-best))
    return confidence


def main() -> None:
    parser = harness.arguments(__doc__, "locomo_dev.json", "{program}-{data.stem}")
    parser.add_argument("--fit", action="store_true", help="also fit the formula")
    options = parser.parse_args()
    path = options.data
    given = conversations.read(path)
    if options.smoke:
        given = [beginning(conversation) for conversation in given[:2]]
    if len(given) < 2:
        sys.exit(f"{path} has one conversation: questions are asked of another one, too")
    asked = variants(given)
    figures: harness.Figures = {}
    embedder = conversations.caching_embedder()
    embedder.embed_query([one.text for one in asked])
    with harness.database() as dsn:
        with Recall.connect(dsn, embedder=embedder) as recall:
            for conversation in given:
                conversations.fill_plain(recall, conversation)
        for prefix, chosen in (("", embedder), ("words.", None)):
            with Recall.connect(dsn, embedder=chosen) as recall:
                rows = list(answers(recall, asked, dsn))
            found = figures_of(rows, np.array([a.confidence for a in rows]), prefix)
            print(f"{path.stem}, {len(asked)} questions")
            harness.show(found)
            figures |= found
            if options.fit:
                print("fitted:", fit(rows).round(2))
                harness.show(figures_of(rows, held_out(rows), f"{prefix}held_out."))
        settings = {"questions": len(asked)}
        harness.write(options, figures, settings, dsn)


if __name__ == "__main__":
    main()
