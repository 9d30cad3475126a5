"""Measure the answers of a bank by questions with known answers, and tune it by them."""

from pgrecall.evaluation.measure import (
    Evaluation,
    Figure,
    Judged,
    Ranking,
    Score,
    evaluate,
    intervals,
    judged_questions,
    trec_questions,
)
from pgrecall.evaluation.tuning import Boosting, Gain, Tuning, tune

__all__ = [
    "Boosting",
    "Evaluation",
    "Figure",
    "Gain",
    "Judged",
    "Ranking",
    "Score",
    "Tuning",
    "evaluate",
    "intervals",
    "judged_questions",
    "trec_questions",
    "tune",
]
