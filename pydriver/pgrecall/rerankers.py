"""Rerankers, for programs."""

from pgrecall.inference.endpoints import HttpReranker
from pgrecall.inference.interfaces import PunctualReranker, Reranker, ScoreFunction
from pgrecall.inference.rerankers import (
    DEFAULT_RERANKER,
    PACKAGED,
    CrossEncoderReranker,
    FunctionReranker,
    OnnxReranker,
    as_reranker,
    chosen_reranker,
)

__all__ = [
    "DEFAULT_RERANKER",
    "PACKAGED",
    "CrossEncoderReranker",
    "FunctionReranker",
    "HttpReranker",
    "OnnxReranker",
    "PunctualReranker",
    "Reranker",
    "ScoreFunction",
    "as_reranker",
    "chosen_reranker",
]
