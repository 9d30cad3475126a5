"""What pgrecall returns: frozen rows, without behaviour beyond reading them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pgrecall.temporal import TemporalConstraint

Period = tuple[datetime | None, datetime | None]
"""A half-open stretch of time, [start, end); None leaves a side open."""


@dataclass(frozen=True, slots=True)
class ArmHit:
    """What one retrieval arm said about a hit.

    Attributes:
        rank: Place in the arm's own ranking, 1 is best.
        score: The arm's own score, on its own scale; larger is better.
        contribution: The part of the fused score that came from this arm.

    """

    rank: int
    score: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory or message found by a recall.

    Attributes:
        rank: Place in the answer, 1 is best.
        memory_id: Key of the memory; of the message where kind is "message".
        kind: "memory" or "message".
        fact_type: Kind of fact, such as "world" or "preference"; None for a message.
        text: The remembered text, exactly as stored.
        context: Where it came from, or None.
        fact_key: Exact key under which it can be looked up, or None.
        source_id: Document or conversation it came from, or None.
        tags: Tags as given.
        metadata: Metadata as given.
        occurred: When it happened, half-open; None where nobody said.
        mentioned_at: When it was said.
        confidence: 0 to 1.
        score: The fused score; the contributions of the arms add up to it.
        arms: What each arm that found it said, by name of the arm.
        fused_rank: Place in the fused ranking, before any reranking.
        rerank_score: What the reranker said, 0 to 1; None where it was not asked.
        final_score: What the answer is ordered by. Reranked: the rerank score, which "blend" lowers
            by the fused score, times its boosts; 0 behind the candidates that were reranked. Else
            the fused score.

    """

    rank: int
    memory_id: int
    kind: str
    fact_type: str | None
    text: str
    context: str | None
    fact_key: str | None
    source_id: str | None
    tags: tuple[str, ...]
    metadata: Mapping[str, object]
    occurred: Period | None
    mentioned_at: datetime | None
    confidence: float | None
    score: float
    arms: Mapping[str, ArmHit]
    fused_rank: int
    rerank_score: float | None
    final_score: float


@dataclass(frozen=True, slots=True)
class Retained:
    """What became of one fact.

    Attributes:
        index: Position of the fact in the batch, from 0.
        memory_id: Key of the memory.
        is_new: False where the bank held the fact already.

    """

    index: int
    memory_id: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class RetainedMessage:
    """What became of one message.

    Attributes:
        index: Position of the message in the batch, from 0.
        message_id: Key of the message.
        is_new: False where the bank held the message already.

    """

    index: int
    message_id: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class Retention:
    """How a long stream of facts or messages was retained.

    Attributes:
        total: How many were given.
        new: How many of them the bank did not hold before.

    """

    total: int
    new: int


@dataclass(frozen=True, slots=True)
class Bank:
    """One bank at a glance.

    Attributes:
        bank_id: The bank's name.
        memories: Number of memories.
        messages: Number of raw messages.
        entities: Number of people, places, projects, ...
        embedding_model: The model all embeddings are made with; None until one is pinned.
        embedding_dimensions: Length of each embedding; None until one is pinned.
        text_search_config: Text search configuration, such as "english" or "simple".
        created_at: When the bank was created.

    """

    bank_id: str
    memories: int
    messages: int
    entities: int
    embedding_model: str | None
    embedding_dimensions: int | None
    text_search_config: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class BankStatistics:
    """What keyword search knows of a bank's memories, or of its messages.

    Attributes:
        kind: "memory" or "message".
        document_count: How many of them are counted.
        average_length: Their average number of words.
        lexeme_count: How many different words they hold.
        waiting: How many came since and are not counted yet.
        refreshed_at: When they were counted.

    """

    kind: str
    document_count: int
    average_length: float
    lexeme_count: int
    waiting: int
    refreshed_at: datetime


@dataclass(frozen=True, slots=True)
class QueryEntity:
    """An entity that a query names.

    Attributes:
        entity_id: Key of the entity.
        name: The entity's name.
        kind: person, place, project, ...; None where nobody said.
        matched: The words of the query that named it.
        confidence: How sure it is that they do, 0 to 1.

    """

    entity_id: int
    name: str
    kind: str | None
    matched: str
    confidence: float


@dataclass(frozen=True, slots=True)
class ArmReport:
    """How one retrieval arm fared.

    Attributes:
        arm: Name of the arm.
        status: "ran", "skipped" or "failed".
        reason: Why it was skipped or failed, or which path it took.
        rows: Number of rows it found.
        best_score: Its best score, on its own scale; None without rows.
        milliseconds: Time it took; None where it did not run.

    """

    arm: str
    status: str
    reason: str | None
    rows: int | None
    best_score: float | None
    milliseconds: float | None


@dataclass(frozen=True, slots=True)
class Degradation:
    """Something that was left out of a recall, which gave the best answer without it.

    Attributes:
        what: "arm", "filter" or "reranker".
        why: What happened.
        hint: What to do about it, or None.

    """

    what: str
    why: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Timings:
    """Where the time of a recall went, in milliseconds.

    Attributes:
        temporal: Reading a time out of the query.
        embed: Embedding the query.
        wait: Waiting for a connection.
        database: The database's answer, network included.
        rerank: Reranking.

    """

    temporal: float = 0.0
    embed: float = 0.0
    wait: float = 0.0
    database: float = 0.0
    rerank: float = 0.0

    @property
    def total(self) -> float:
        """All stages together, in milliseconds."""
        return self.temporal + self.embed + self.wait + self.database + self.rerank


@dataclass(frozen=True, slots=True)
class RecallReport:
    """The answer to a recall, and how it came about.

    Attributes:
        hits: The answer, best first.
        timings: Where the time went.
        temporal: The time that was read out of the query, or None.
        facts: Plain statements for a prompt, such as which dates "last week" stands for.
        degradations: What was left out and why; empty where nothing was.
        arms: How each arm fared; empty unless asked for with ``explain=True``.

    """

    hits: tuple[Hit, ...]
    timings: Timings
    temporal: TemporalConstraint | None
    facts: tuple[str, ...]
    degradations: tuple[Degradation, ...]
    arms: tuple[ArmReport, ...]
