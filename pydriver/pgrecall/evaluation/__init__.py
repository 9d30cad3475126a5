"""Measure the answers of a bank with questions whose answers are known, and tune the bank."""

from pgrecall.evaluation.comparing import Difference, compare
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
    "Difference",
    "Evaluation",
    "Figure",
    "Gain",
    "Judged",
    "Ranking",
    "Score",
    "Tuning",
    "compare",
    "evaluate",
    "intervals",
    "judged_questions",
    "trec_questions",
    "tune",
]
