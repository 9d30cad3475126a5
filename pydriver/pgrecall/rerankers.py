"""Rerankers, for programs."""

from pgrecall.inference.endpoints import HttpReranker
from pgrecall.inference.interfaces import PunctualReranker, Reranker, ScoreFunction
from pgrecall.inference.rerankers import (
    CROSS_ENCODER,
    DEFAULT_RERANKER,
    LATE_INTERACTION,
    PACKAGED,
    CrossEncoderReranker,
    FunctionReranker,
    LateInteractionReranker,
    OnnxReranker,
    as_reranker,
    chosen_reranker,
)

__all__ = [
    "CROSS_ENCODER",
    "DEFAULT_RERANKER",
    "LATE_INTERACTION",
    "PACKAGED",
    "CrossEncoderReranker",
    "FunctionReranker",
    "HttpReranker",
    "LateInteractionReranker",
    "OnnxReranker",
    "PunctualReranker",
    "Reranker",
    "ScoreFunction",
    "as_reranker",
    "chosen_reranker",
]
