"""PostgreSQL as the memory of AI agents: the functions of pgrecall, from Python."""

from pgrecall._version import __version__
from pgrecall.aio import AsyncRecall
from pgrecall.client import Recall
from pgrecall.core import Fact, Progress, RecallOptions
from pgrecall.embedders import Embedder, FunctionEmbedder, SentenceTransformerEmbedder
from pgrecall.errors import (
    BankExists,
    BankNotFound,
    DimensionMismatch,
    EmbedderUnavailable,
    EmptyQuery,
    InstallError,
    InvalidArgument,
    InvalidEmbedding,
    InvalidFact,
    InvalidFilter,
    MemoryNotFound,
    ModelMismatch,
    RecallError,
    RerankerUnavailable,
    UnknownArm,
    UnknownFactType,
)
from pgrecall.models import (
    ArmHit,
    ArmReport,
    Bank,
    BankStatistics,
    Degradation,
    Hit,
    QueryEntity,
    RecallReport,
    Retained,
    RetainedMessage,
    Retention,
    Timings,
)
from pgrecall.rerankers import CrossEncoderReranker, FunctionReranker, OnnxReranker, Reranker

connect = Recall.connect
connect_async = AsyncRecall.connect

__all__ = [
    "ArmHit",
    "ArmReport",
    "AsyncRecall",
    "Bank",
    "BankExists",
    "BankNotFound",
    "BankStatistics",
    "CrossEncoderReranker",
    "Degradation",
    "DimensionMismatch",
    "Embedder",
    "EmbedderUnavailable",
    "EmptyQuery",
    "Fact",
    "FunctionEmbedder",
    "FunctionReranker",
    "Hit",
    "InstallError",
    "InvalidArgument",
    "InvalidEmbedding",
    "InvalidFact",
    "InvalidFilter",
    "MemoryNotFound",
    "ModelMismatch",
    "OnnxReranker",
    "Progress",
    "QueryEntity",
    "Recall",
    "RecallError",
    "RecallOptions",
    "RecallReport",
    "Reranker",
    "RerankerUnavailable",
    "Retained",
    "RetainedMessage",
    "Retention",
    "SentenceTransformerEmbedder",
    "Timings",
    "UnknownArm",
    "UnknownFactType",
    "__version__",
    "connect",
    "connect_async",
]
