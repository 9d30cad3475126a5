"""PostgreSQL as the memory of AI agents: the functions of pgrecall, from Python.

Names are imported on first use, so that the command's help and completion are fast.

Beside the clients (``aio.py``, and ``client.py`` made from it), rows, errors, reports and context
for a language model there are these rooms, each of which uses those above it:

    temporal/    dates in questions, in seven languages
    inference/   models, here and behind endpoints: embedders, rerankers, calibration
    calls/       every statement that is sent, and how its rows are read
    connection/  retries, replicas, time limits, telemetry, concurrency
    asking/      questions: embedding, answer, reranking
    retaining/   preparing facts: embedding, batches, links
    extraction/  facts from messages, by rules, an endpoint or any function
    server/      the embedded server, installation and upgrades, Citus
    doctor/      checks of a server, a database and packages
    evaluation/  measuring and tuning
    importing/   imports from other stores and files
    cluster/     a router and its shards
    console/     the console, and the pages of answers
    adapters/    other libraries
    command/     the command
"""

from importlib import import_module
from typing import TYPE_CHECKING

from pgrecall._version import __version__

if TYPE_CHECKING:
    from pgrecall import aio as aio
    from pgrecall import client as client
    from pgrecall import embedders as embedders
    from pgrecall import errors as errors
    from pgrecall import report as report
    from pgrecall import rerankers as rerankers
    from pgrecall import rows as rows
    from pgrecall.aio import AsyncBankHandle, AsyncRecall
    from pgrecall.asking.recall_options import RecallOptions
    from pgrecall.client import BankHandle, Recall
    from pgrecall.errors import (
        ArmFailed,
        BankExists,
        BankNotFound,
        ClientClosed,
        DimensionMismatch,
        EmbedderUnavailable,
        EmptyQuery,
        EntityNotFound,
        InstallError,
        InvalidArgument,
        InvalidEmbedding,
        InvalidFact,
        InvalidFilter,
        MemoryNotFound,
        ModelMismatch,
        NotPermitted,
        OutOfTime,
        ReadOnly,
        RecallError,
        ReembedRefused,
        RerankerUnavailable,
        UnknownArm,
        UnknownFactType,
        UntrustedSource,
    )
    from pgrecall.inference.calibration import Calibration, calibrate
    from pgrecall.inference.embedders import (
        FunctionEmbedder,
        MiniLMEmbedder,
        PackagedEmbedder,
        PromptedEmbedder,
        SentenceTransformerEmbedder,
    )
    from pgrecall.inference.endpoints import HttpReranker, OpenAIEmbedder
    from pgrecall.inference.interfaces import ContextEmbedder, Embedder, Reranker, RoleEmbedder
    from pgrecall.inference.rerankers import CrossEncoderReranker, FunctionReranker, OnnxReranker
    from pgrecall.report import RecallReport
    from pgrecall.retaining.bulk import BulkProgress, Refused
    from pgrecall.retaining.facts import Fact
    from pgrecall.retaining.streams import Progress
    from pgrecall.rows import (
        Arm,
        ArmFinding,
        ArmHit,
        ArmReport,
        AttachedTable,
        Audited,
        Bank,
        BankStatistics,
        BulkRetention,
        Consolidated,
        Context,
        Corrected,
        Degradation,
        DuplicateEntities,
        Extraction,
        ExtractionFailure,
        GraphEdge,
        Hit,
        IndexStep,
        ListedEntity,
        Maintained,
        Memory,
        MemoryCount,
        MemoryDetail,
        NearCopy,
        Neighbour,
        PathStep,
        QueryEntity,
        RecallCheck,
        RecallOption,
        RecallStep,
        RecallTimes,
        Reembedding,
        Retained,
        RetainedMessage,
        Retention,
        SyncedTable,
        Timings,
        Turn,
        TypeHint,
    )

    connect = Recall.connect
    connect_async = AsyncRecall.connect

__all__ = [
    "Arm",
    "ArmFailed",
    "ArmFinding",
    "ArmHit",
    "ArmReport",
    "AsyncBankHandle",
    "AsyncRecall",
    "AttachedTable",
    "Audited",
    "Bank",
    "BankExists",
    "BankHandle",
    "BankNotFound",
    "BankStatistics",
    "BulkProgress",
    "BulkRetention",
    "Calibration",
    "ClientClosed",
    "Consolidated",
    "Context",
    "ContextEmbedder",
    "Corrected",
    "CrossEncoderReranker",
    "Degradation",
    "DimensionMismatch",
    "DuplicateEntities",
    "Embedder",
    "EmbedderUnavailable",
    "EmptyQuery",
    "EntityNotFound",
    "Extraction",
    "ExtractionFailure",
    "Fact",
    "FunctionEmbedder",
    "FunctionReranker",
    "GraphEdge",
    "Hit",
    "HttpReranker",
    "IndexStep",
    "InstallError",
    "InvalidArgument",
    "InvalidEmbedding",
    "InvalidFact",
    "InvalidFilter",
    "ListedEntity",
    "Maintained",
    "Memory",
    "MemoryCount",
    "MemoryDetail",
    "MemoryNotFound",
    "MiniLMEmbedder",
    "ModelMismatch",
    "NearCopy",
    "Neighbour",
    "NotPermitted",
    "OnnxReranker",
    "OpenAIEmbedder",
    "OutOfTime",
    "PackagedEmbedder",
    "PathStep",
    "Progress",
    "PromptedEmbedder",
    "QueryEntity",
    "ReadOnly",
    "Recall",
    "RecallCheck",
    "RecallError",
    "RecallOption",
    "RecallOptions",
    "RecallReport",
    "RecallStep",
    "RecallTimes",
    "ReembedRefused",
    "Reembedding",
    "Refused",
    "Reranker",
    "RerankerUnavailable",
    "Retained",
    "RetainedMessage",
    "Retention",
    "RoleEmbedder",
    "SentenceTransformerEmbedder",
    "SyncedTable",
    "Timings",
    "Turn",
    "TypeHint",
    "UnknownArm",
    "UnknownFactType",
    "UntrustedSource",
    "__version__",
    "calibrate",
    "connect",
    "connect_async",
]

_HOMES = (
    "aio",
    "asking.recall_options",
    "client",
    "embedders",
    "errors",
    "inference.calibration",
    "report",
    "rerankers",
    "retaining.bulk",
    "retaining.facts",
    "retaining.streams",
    "rows",
)


if not TYPE_CHECKING:  # else type checkers take any name for one of this package

    def __getattr__(name: str) -> object:
        """Import a name or a module of this package on first use."""
        if name in _HOMES:
            return import_module(f"{__name__}.{name}")
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name == "connect":
            value = __getattr__("Recall").connect
        elif name == "connect_async":
            value = __getattr__("AsyncRecall").connect
        else:
            modules = (import_module(f"{__name__}.{home}") for home in _HOMES)
            value = next(getattr(module, name) for module in modules if hasattr(module, name))
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
