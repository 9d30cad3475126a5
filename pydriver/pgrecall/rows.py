"""The rows that pgrecall returns: frozen classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

Period = tuple[datetime | None, datetime | None]
"""A half-open period, [start, end); either side may be None."""


@dataclass(frozen=True, slots=True)
class ArmHit:
    """Rank and score of a hit in one arm.

    Attributes:
        rank: Place in the arm's own ranking, 1 is best.
        score: The arm's own score, on its own scale; larger is better.
        contribution: The arm's part of the fused score.
        named: The share of the contribution that a rare name in the query gave, 0 to 1.

    """

    rank: int
    score: float
    contribution: float
    named: float = 0.0


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory or message found by a recall.

    Attributes:
        rank: Place in the answer, 1 is best.
        memory_id: Key of the memory, or of the message if kind is "message".
        kind: "memory" or "message".
        fact_type: Fact type, such as "world" or "preference"; None for a message.
        text: The remembered text, exactly as stored.
        context: Where it came from, or None.
        fact_key: Exact key of the fact, or None.
        source_id: Document or conversation it came from, or None.
        tags: Tags as given.
        metadata: Metadata as given.
        occurred: When it happened, half-open; None if unknown.
        mentioned_at: When it was said.
        confidence: 0 to 1.
        score: The fused score, the sum of the contributions of the arms.
        arms: Rank and score in each arm that found it, by name.
        fused_rank: Place in the fused ranking, before any reranking.
        rerank_score: Relevance from the reranker, 0 to 1; None if it was not reranked.
        final_score: The score that orders the answer. Without reranking it is the fused score. With
            reranking it is the rerank score, which "blend" changes by the fused score and the
            session, times the boosts; for a hit that its path keeps in place, the final score of
            the best hit behind it; and 0 for hits behind the reranked candidates.
        relevance: Probability that it answers the question, by the arms' scores, 0 to 1.
        boost: Product of the boosts for recency, proximity to the time asked about, and number of
            sources.
        proof_count: Number of independent sources; None for a message.
        via: The path of relations, causes or a rare entity that led to it: names of entities, kinds
            of relations, ids of facts, "path" (names and relations in one line), "text" (texts of
            the facts before it). None without a path.
        conflicts_with: Keys of memories, found or not, that contradict it: with the same fact_key,
            or by a relation that is possible only once.
        written_by: Database role that stored it; None for a message, or if unknown.
        stored_at: When it was stored.
        trust: Trust of its source, 0 to 1; see setting source_trust.
        tokens: Token vectors of the text if option with_tokens is set, as for late interaction;
            else None.
        is_surplus: Whether untrusted_rows or source_rows puts it behind all others; it is not
            reranked.
        variant_of: Key of a hit before it that says nearly the same, of which it is another state:
            an earlier one, one trusted less, or one from after now or the end of the time window.
            None without one.

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
    relevance: float = 0.0
    boost: float = 1.0
    proof_count: int | None = None
    via: Mapping[str, object] | None = None
    conflicts_with: tuple[int, ...] = ()
    written_by: str | None = None
    stored_at: datetime | None = None
    trust: float = 1.0
    tokens: bytes | None = field(default=None, repr=False)
    is_surplus: bool = False
    variant_of: int | None = None


@dataclass(frozen=True, slots=True)
class Reranked:
    """The place of a hit after reranking.

    Attributes:
        memory_id: Key of the memory or message.
        rank: Its place, 1 is best.
        relevance: The relevance that counted; None if none did.
        final_score: The score that determines the order.
        boost: The factor of the final score.
        trust: How much the relevances counted, 0 to 1; the same for all.

    """

    memory_id: int
    rank: int
    relevance: float | None
    final_score: float
    boost: float
    trust: float


@dataclass(frozen=True, slots=True)
class Retained:
    """Result of retaining one fact.

    Attributes:
        index: Position of the fact in the batch, from 0.
        memory_id: Key of the memory.
        is_new: False if the bank already had the fact, which then keeps the tags, metadata and
            confidence that it had: :meth:`~pgrecall.Recall.update` changes these.
        is_embedded: False if it has no embedding, or if the embedder failed for one of its
            questions. Retain the fact again with an embedder to add it.

    """

    index: int
    memory_id: int
    is_new: bool
    is_embedded: bool = False


@dataclass(frozen=True, slots=True)
class NearCopy:
    """A memory that says nearly the same as another.

    Attributes:
        memory_id: Key of the memory.
        text: What it says.
        similarity: Similarity of the two, 0 to 1.
        shared_entities: Names of the entities that both mention.
        is_same_source: Whether both have the same source.

    """

    memory_id: int
    text: str
    similarity: float
    shared_entities: Sequence[str]
    is_same_source: bool


@dataclass(frozen=True, slots=True)
class Corrected:
    """A memory after a correction or its undoing.

    Attributes:
        memory_id: Key of the memory.
        text: What it says.
        valid_from: When it became valid.
        valid_to: When it ended; None if it is valid.
        superseded_by: Key of the memory that replaced it, or None.

    """

    memory_id: int
    text: str
    valid_from: datetime | None
    valid_to: datetime | None
    superseded_by: int | None


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory as it is stored.

    Attributes:
        memory_id: Key of the memory.
        fact_type: Fact type, such as "world" or "preference".
        text: The remembered text.
        context: Where it came from, or None.
        fact_key: Exact key of the fact, or None.
        source_id: Document or conversation it came from, or None.
        tags: Tags as given.
        metadata: Metadata as given.
        occurred: When it happened, half-open; None if unknown.
        mentioned_at: When it was said.
        confidence: 0 to 1.
        proof_count: How many independent sources state it.
        valid_from: When it became valid.
        valid_to: When it ended; None if it is valid.
        superseded_by: Key of the memory that replaced it, or None.
        entities: Names of the entities that it mentions.
        created_at: When it was stored.
        ended_by: What ended it: "supersede", "update", "consolidate", "quarantine" or "retain";
            None if it is valid or has expired.
        ended_entities: Only from update(): entities of the earlier version that this one no longer
            mentions.
        ended_relations: Only from update(): relations that it no longer states, such as "Maya leads
            Atlas".
        written_by: Database role that stored it; None if unknown.

    """

    memory_id: int
    fact_type: str
    text: str
    context: str | None
    fact_key: str | None
    source_id: str | None
    tags: tuple[str, ...]
    metadata: Mapping[str, object]
    occurred: Period | None
    mentioned_at: datetime | None
    confidence: float
    proof_count: int
    valid_from: datetime | None
    valid_to: datetime | None
    superseded_by: int | None
    entities: tuple[str, ...]
    created_at: datetime | None
    ended_by: str | None
    ended_entities: tuple[str, ...] = ()
    ended_relations: tuple[str, ...] = ()
    written_by: str | None = None


@dataclass(frozen=True, slots=True)
class Audited:
    """An action on a memory.

    Attributes:
        at: Time of the action; None if unknown.
        by: Database role that did it; None if unknown.
        action: "retain", "supersede", "update", "replace", "consolidate" or "quarantine".
        memory_id: Key of the memory.
        source_id: Document or conversation it came from, or None.
        other_id: Key of the memory that replaced it, or None.
        text: What it says.

    """

    at: datetime | None
    by: str | None
    action: str
    memory_id: int
    source_id: str | None
    other_id: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Consolidated:
    """A memory that is merged into another.

    Attributes:
        kept_id: Key of the memory that stays.
        memory_id: Key of the one that ends.
        kept_text: Text of the memory that stays.
        text: Text of the memory that ends.
        similarity: How similar the two are, 0 to 1; 1 for the same text.
        proof_count: Number of sources of the one that stays, including those of merged memories.

    """

    kept_id: int
    memory_id: int
    kept_text: str
    text: str
    similarity: float
    proof_count: int


@dataclass(frozen=True, slots=True)
class RetainedMessage:
    """Result of retaining one message.

    Attributes:
        index: Position of the message in the batch, from 0.
        message_id: Key of the message.
        is_new: False if the bank already had the message.

    """

    index: int
    message_id: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class Retention:
    """The result of retaining a stream of facts or messages.

    Attributes:
        total: Number given.
        new: Number that the bank did not have.
        unembedded: Number of facts without an embedding, or without that of a question.

    """

    total: int
    new: int
    unembedded: int = 0


@dataclass(frozen=True, slots=True)
class BulkRetention:
    """The result of a bulk load.

    Attributes:
        total: Number of facts given.
        new: Number that the bank did not have.
        known: Number that it had, or that were given twice.
        refused: Number refused.
        unembedded: Number without an embedding, or without that of a question.
        linked: Number of facts linked, including those of an earlier, interrupted load.
        indexed: Number of statements run to build vector indexes.
        due: Statements that could not be run, since the role does not own the tables. Facts are
            linked after they have been run.

    """

    total: int
    new: int
    known: int
    refused: int
    unembedded: int
    linked: int
    indexed: int
    due: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bank:
    """An overview of a bank.

    Attributes:
        bank_id: The bank's name.
        memories: Number of memories.
        messages: Number of raw messages.
        entities: Number of entities.
        embedding_model: The model of all embeddings; None until it is fixed.
        embedding_dimensions: Length of each embedding; None until it is fixed.
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
class BankModels:
    """The embedding models of a bank.

    Attributes:
        embedding_model: The model of searches; None if it has no name yet.
        embedding_dimensions: Length of each embedding; None while there are none.
        next_model: The model that it is being re-embedded with; None otherwise.

    """

    embedding_model: str | None
    embedding_dimensions: int | None
    next_model: str | None


@dataclass(frozen=True, slots=True)
class RecallOption:
    """An option of a recall.

    Attributes:
        name: Its name.
        type: boolean, integer, number, text, interval, text[], object or embedding.
        default_value: Its default.
        range: Allowed values, in words; None for any.
        description: What it does.
        choices: Allowed values of a text option; None for any.
        is_bank_default: Whether a bank can have its own default.

    """

    name: str
    type: str
    default_value: object
    range: str | None
    description: str
    choices: Sequence[str] | None
    is_bank_default: bool


@dataclass(frozen=True, slots=True)
class Arm:
    """A retrieval arm in the registry.

    Attributes:
        arm: Its name.
        place: Its position in the order in which arms run, 1 is first.
        weight: Its default weight in the fusion.
        description: How it finds memories.

    """

    arm: str
    place: int
    weight: float
    description: str


@dataclass(frozen=True, slots=True)
class Reembedding:
    """Progress of the re-embedding of a bank.

    Attributes:
        model: The model of searches; None if it has no name.
        dimensions: Length of each of its embeddings; None while there are none.
        next_model: The model that it is being re-embedded with; None otherwise.
        next_dimensions: Length of that model's embeddings.
        previous_model: The previous model, while its embeddings are not removed yet.
        vectors: Number of embeddings of the current model.
        pending: Number of embeddings that the next model lacks.
        textless: Number of questions without text, which cannot be embedded.
        leftover: Number of memories with embeddings of another model.

    """

    model: str | None
    dimensions: int | None
    next_model: str | None
    next_dimensions: int | None
    previous_model: str | None
    vectors: int
    pending: int
    textless: int
    leftover: int


@dataclass(frozen=True, slots=True)
class IndexStep:
    """A statement that is due for the vector indexes of a bank.

    Attributes:
        bank_id: Name of the bank; None if the bank of the index was dropped.
        fact_type: None, as an index covers all; the fact type of one made by 0.2.0, to be dropped.
        action: "create", "drop" or "rename".
        statement: Statement to run outside a transaction block.
        reason: Why it is due.
        index_name: Name of the index.
        estimated_bytes: Estimated size of a new index.
        estimated_seconds: Estimated time of its build on one core.

    """

    bank_id: str | None
    fact_type: str | None
    action: str
    statement: str
    reason: str
    index_name: str
    estimated_bytes: int | None
    estimated_seconds: float | None


@dataclass(frozen=True, slots=True)
class RecallCheck:
    """Recall of vector searches against exact search, for one fact type.

    Attributes:
        fact_type: The fact type.
        path: The index used, or a note that the search was exact.
        questions: Number of searches.
        recall: Share of the nearest vectors that was found, 0 to 1.
        milliseconds: Time of one search.
        exact_milliseconds: Time of one exact search.

    """

    fact_type: str
    path: str
    questions: int
    recall: float
    milliseconds: float
    exact_milliseconds: float


@dataclass(frozen=True, slots=True)
class StoredEmbedding:
    """A stored embedding of a fact.

    Attributes:
        index: Position of the fact in the request, from 0.
        kind: "text", "part" for what follows in a longer text, or "question" for a hypothetical
            question.
        ordinal: Which part or question, from 0.
        model: Name of the model; empty if unknown.
        embedding: A vector as text.
        tokens: The vectors of the text's tokens, or None.

    """

    index: int
    kind: str
    ordinal: int
    model: str
    embedding: str
    tokens: bytes | None = None


@dataclass(frozen=True, slots=True)
class PendingText:
    """A text that is not embedded with the next model yet.

    Attributes:
        memory_id: Key of the memory.
        kind: "text", "question" for a hypothetical question, "relation" for the words of a kind of
            relation, or "name" for a name that may be short for another one.
        ordinal: Which question, from 0.
        text: What to embed.
        context: The context of the memory, if the text is its own and it has one.

    """

    memory_id: int
    kind: str
    ordinal: int
    text: str
    context: str | None = None


@dataclass(frozen=True, slots=True)
class BankStatistics:
    """BM25 statistics of a bank's memories, or of its messages.

    Attributes:
        kind: "memory" or "message".
        document_count: Number of documents counted.
        average_length: Their average number of words.
        lexeme_count: Number of different words.
        waiting: Number of documents not counted yet.
        refreshed_at: When they were counted.
        is_weighed: False while :meth:`~pgrecall.Recall.maintain` has weights to compute.

    """

    kind: str
    document_count: int
    average_length: float
    lexeme_count: int
    waiting: int
    refreshed_at: datetime
    is_weighed: bool = True


@dataclass(frozen=True, slots=True)
class Maintained:
    """Pending work that was done in a bank.

    Attributes:
        bank_id: Name of the bank.
        task: "count", "weigh", "link" or "prune".
        kind: "memory", "message" or "recall".
        documents: Number of documents counted, weighed, linked, or deleted from the log.

    """

    bank_id: str
    task: str
    kind: str
    documents: int


@dataclass(frozen=True, slots=True)
class AttachedTable:
    """An attached table, whose rows are memories of a bank.

    Attributes:
        bank_id: Name of the bank.
        relation: Schema and name of the table.
        status: "copying" while the first pass over the rows is not done, "current", "behind" while
            changes wait, or "broken".
        key: The column that identifies rows.
        columns: Columns by field of a fact.
        apply: "later" or "commit": when changes reach the bank.
        memories: Number of its memories.
        table_rows: Estimated number of its rows; None if unknown.
        pending: Number of waiting changes.
        failed: Number of rows that cannot be stored.
        problem: Why it is broken, or why one of the rows cannot be stored.
        pending_for: Age of the oldest waiting change.

    """

    bank_id: str
    relation: str
    status: str
    key: str
    columns: Mapping[str, Sequence[str]]
    apply: str
    memories: int
    table_rows: int | None
    pending: int
    failed: int
    problem: str | None
    pending_for: timedelta | None


@dataclass(frozen=True, slots=True)
class SyncedTable:
    """The result of copying changes of a table to a bank.

    Attributes:
        bank_id: Name of the bank.
        relation: Schema and name of the table.
        added: Rows with a new memory.
        changed: Rows whose memory has changed.
        removed: Rows that were deleted or have no text any more.
        unchanged: Rows that were already up to date, or that have no text.
        failed: Rows that could not be stored; :meth:`~pgrecall.Recall.attached_tables` says why.
        is_complete: Whether nothing is left to do.

    """

    bank_id: str
    relation: str
    added: int
    changed: int
    removed: int
    unchanged: int
    failed: int
    is_complete: bool

    @property
    def looked_at(self) -> int:
        """The number of rows read."""
        return self.added + self.changed + self.removed + self.unchanged + self.failed

    def after(self, other: SyncedTable | None) -> SyncedTable:
        """Return the sum of an earlier result and this one."""
        if other is None:
            return self
        names = ("added", "changed", "removed", "unchanged", "failed")
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True, slots=True)
class RecallTimes:
    """Times of the recalls of a bank in milliseconds, from a sample.

    Attributes:
        bank_id: Name of the bank.
        samples: Number of logged recalls.
        recalls: Estimated number of all recalls.
        p50_ms: Median of the whole time, from the call to its return.
        p95_ms: 95th percentile of it.
        p99_ms: 99th percentile of it.
        max_ms: The longest.
        wait_p95_ms: 95th percentile of waiting for a connection.
        embed_p95_ms: The same of embedding the question.
        database_p95_ms: The same of the database's answer, including the network.
        rerank_p95_ms: The same of reranking.
        without_hits: Samples that found nothing.
        degraded: Samples from which an arm, the embedder or the reranker was left out.

    """

    bank_id: str
    samples: int
    recalls: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    wait_p95_ms: float
    embed_p95_ms: float
    database_p95_ms: float
    rerank_p95_ms: float
    without_hits: int
    degraded: int


@dataclass(frozen=True, slots=True)
class QueryEntity:
    """An entity that a query names.

    Attributes:
        entity_id: Key of the entity.
        name: The entity's name.
        kind: person, place, project, ...; None if unknown.
        matched: The words of the query that name it.
        confidence: Certainty of that, 0 to 1.

    """

    entity_id: int
    name: str
    kind: str | None
    matched: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Preparation:
    """What a bank knows about a query before it is embedded.

    Attributes:
        embedded_text: The query without the names of entities, unless the bank embeds them.
        time_settings: The bank's arguments for extract_temporal_constraint(), by name.
        last_session_end: When the last conversation ended; None when there was none.
        latest_words: Words of the bank that ask for the latest state.
        former_words: Words of the bank that ask for a former state.
        log_share: Share of its recalls to log, 0 to 1.
        embedding_model: The model of searches; None if it has no name yet.
        next_model: The model that it is being re-embedded with; None otherwise.
        prefer: Option prefer of the bank; None where it has none.
        diversity: Option diversity of the bank; None where it has none.
        about_text: The query without any names of entities that several facts mention, for option
            about_embedding; None where that is not needed.

    """

    embedded_text: str
    time_settings: Mapping[str, Any]
    last_session_end: datetime | None
    latest_words: Sequence[str]
    former_words: Sequence[str]
    log_share: float
    embedding_model: str | None
    next_model: str | None
    prefer: str | None = None
    diversity: float | None = None
    about_text: str | None = None


@dataclass(frozen=True, slots=True)
class DuplicateEntities:
    """Two entities that may be duplicates.

    Attributes:
        entity_id: Key of the entity that is mentioned more often.
        name: Its name.
        other_id: Key of the other.
        other_name: The other's name.
        score: Probability that they are the same, 0 to 1.
        reason: The evidence, in words.

    """

    entity_id: int
    name: str
    other_id: int
    other_name: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class ArmReport:
    """Report on one retrieval arm in a recall.

    Attributes:
        arm: Name of the arm.
        status: "ran", "gated", "skipped" or "failed"; "planned" if it would run.
        reason: Why it was skipped, gated or failed, or which path it took.
        rows: Number of rows it found.
        best_score: Its best score, on its own scale; None without rows.
        milliseconds: Time it took; None if it did not run.
        indexes: Names of the indexes that it scanned, separated by commas; None for none, or
            without option explain.
        hint: What to do about a failure or something left out; None if there was none.

    """

    arm: str
    status: str
    reason: str | None
    rows: int | None
    best_score: float | None
    milliseconds: float | None
    indexes: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class ArmFinding:
    """A memory or message that one arm found, before fusion.

    Attributes:
        arm: Name of the arm.
        memory_id: Key of the memory or message.
        rank: Place in the arm's own ranking, 1 is best.
        score: The arm's own score, on its own scale; larger is better.
        named: How much the entities say that the query names and the memory mentions: the
            confidence in each, a sixth of it where half of the facts mention it, half where an
            eighth or fewer do, summed, at most 1. None where it mentions none.

    """

    arm: str
    memory_id: int
    rank: int
    score: float
    named: float | None


@dataclass(frozen=True, slots=True)
class RecallStep:
    """The place of a memory or message in a step of a recall, or why it has none.

    Attributes:
        step: "reach" (whether the recall may find it at all), the name of an arm, "fusion",
            "candidates" with a reranker, or "answer".
        status: "found", "missed", "left out" or "returned"; of an arm also "skipped", "gated" or
            "failed".
        rank: Its place in the step, 1 is best; None if it has none.
        score: Its score there; for an arm that missed it, the score that it would get.
        reason: Why, in words, or None.

    """

    step: str
    status: str
    rank: int | None
    score: float | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class TypeHint:
    """A fact type that the words of a query ask for.

    Attributes:
        fact_type: The type; None for any.
        matched: The first word that implies it.

    """

    fact_type: str | None
    matched: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A raw message in the context of another.

    Attributes:
        place: 0 for the message itself, -1 for the one before, 1 for the one after.
        message_id: Key of the message.
        session_id: Its conversation; None for none.
        role: user, assistant, system or tool.
        speaker: Who said it; None if unknown.
        text: What was said.
        sent_at: When.

    """

    place: int
    message_id: int
    session_id: str | None
    role: str
    speaker: str | None
    text: str
    sent_at: datetime | None


@dataclass(frozen=True, slots=True)
class ExtractionFailure:
    """Messages from which no facts were extracted, or a fact that could not be stored.

    Attributes:
        first: Position of the first of the messages, from 0.
        last: Position of the last of them.
        problem: The error of the extractor, or what is wrong with the fact.
        fact: The fact; None if the extractor failed.

    """

    first: int
    last: int
    problem: str
    fact: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Extraction:
    """The result of retaining a conversation.

    Attributes:
        messages: One row per message; all are stored.
        facts: One row per extracted fact.
        failures: Messages and facts that failed; the messages can still be found.

    """

    messages: Sequence[RetainedMessage]
    facts: Sequence[Retained]
    failures: Sequence[ExtractionFailure]


@dataclass(frozen=True, slots=True)
class Degradation:
    """A part that was left out of a recall.

    Attributes:
        what: "arm", "embedder", "reranker", or the option whose function failed, such as
            "hypothetical".
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
        queue: Waiting for models that other callers use.
        driver: Everything else.

    """

    temporal: float = 0.0
    embed: float = 0.0
    wait: float = 0.0
    database: float = 0.0
    rerank: float = 0.0
    queue: float = 0.0
    driver: float = 0.0

    @property
    def total(self) -> float:
        """All stages together, from the call to its return, in milliseconds."""
        return float(sum(getattr(self, stage.name) for stage in fields(self)))


@dataclass(frozen=True, slots=True)
class Context:
    """An answer written for a language model.

    Attributes:
        text: The text to send: facts grouped by day and numbered; outdated ones are marked.
        tokens: Its number of tokens, as counted.
        citations: The id of the memory or message for each number.
        left_out: Number of hits left out: repetitions, hits that would not help, and hits beyond
            the budget.
        is_shortened: Whether even the best hit was truncated to fit the budget.
        hits: The hits in it, in the order of their numbers.

    """

    text: str
    tokens: int
    citations: Mapping[int, int]
    left_out: int
    is_shortened: bool
    hits: Sequence[Hit] = ()


@dataclass(frozen=True, slots=True)
class MemoryCount:
    """The number of memories of a type in a period.

    Attributes:
        starts_at: Start of the period; None for one that Python has no datetime for.
        fact_type: The type.
        memories: Number of memories.
        current_memories: Number of those valid now.

    """

    starts_at: datetime
    fact_type: str
    memories: int
    current_memories: int


@dataclass(frozen=True, slots=True)
class ListedEntity:
    """An overview of an entity.

    Attributes:
        entity_id: Key of the entity.
        name: Its name.
        kind: person, place, project, ...; None if unknown.
        aliases: All its names, in normalised form.
        mention_count: Number of memories that mention it.
        created_at: When it was first mentioned.

    """

    entity_id: int
    name: str
    kind: str | None
    aliases: Sequence[str]
    mention_count: int
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class MemoryDetail:
    """Everything that refers to a memory.

    Attributes:
        mentions: The entities that it mentions: entity_id, name, kind, confidence.
        relations: The relations that it states: from_id, from, kind, to_id, to, confidence,
            valid_from, valid_to.
        embeddings: model, kind, dimensions and text of each.
        corrections: The corrections that can be undone, latest last.
        is_linked: Whether it has its links.

    """

    mentions: Sequence[Mapping[str, Any]]
    relations: Sequence[Mapping[str, Any]]
    embeddings: Sequence[Mapping[str, Any]]
    corrections: Sequence[Mapping[str, Any]]
    is_linked: bool


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A neighbour of a memory in the graph.

    Attributes:
        neighbour_id: Key of the memory.
        text: What it says.
        via: The kind of the link, or "entity".
        weight: 0 to 1.
        why: In words.

    """

    neighbour_id: int
    text: str
    via: str
    weight: float
    why: str


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An edge of the graph around an entity or a memory.

    Attributes:
        hop: Distance from the start.
        from_kind: "entity" or "memory".
        from_id: Key of the entity or memory.
        from_name: Its name, or the beginning of its text.
        from_mentions: Minimum number of memories that mention the entity.
        kind: Kind of the relation or link, or "mentions".
        to_kind: As from_kind.
        to_id: As from_id.
        to_name: As from_name.
        to_mentions: As from_mentions.
        weight: 0 to 1.
        memory_id: The memory that states a relation or mentions an entity; None for a link.
        from_rarity: Rarity of the entity, 0 to 1.
        to_rarity: As from_rarity.

    """

    hop: int
    from_kind: str
    from_id: int
    from_name: str
    from_mentions: int | None
    kind: str
    to_kind: str
    to_id: int
    to_name: str
    to_mentions: int | None
    weight: float
    memory_id: int | None
    from_rarity: float | None
    to_rarity: float | None


@dataclass(frozen=True, slots=True)
class PathStep:
    """A step of a path between two entities.

    Attributes:
        step: Its number, from 1.
        from_name: Name of the entity where it begins.
        via: Kind of the relation, in either direction, or "mentioned with".
        to_name: Name of the entity where it ends.
        memory_id: The memory that states it.
        why: The step in words, with the relation in the direction in which it holds.
        from_id: Key of the entity where it begins.
        to_id: Key of the entity where it ends.

    """

    step: int
    from_name: str
    via: str
    to_name: str
    memory_id: int
    why: str
    from_id: int
    to_id: int


@dataclass(frozen=True, slots=True)
class RelationSize:
    """Size of a table.

    Attributes:
        relation: Its name.
        live_rows: Estimated number of rows.
        dead_rows: Estimated number of dead rows, which wait for vacuum.
        table_bytes: Its size.
        index_bytes: Size of its indexes.
        vacuumed_at: Time of the last vacuum; None for never.
        analysed_at: Time of the last analyze; None for never.

    """

    relation: str
    live_rows: int
    dead_rows: int
    table_bytes: int
    index_bytes: int
    vacuumed_at: datetime | None
    analysed_at: datetime | None


@dataclass(frozen=True, slots=True)
class IndexBuild:
    """A running build of a vector index.

    Attributes:
        index_name: Its name; None until it is in the catalog.
        relation: The table.
        phase: Current phase.
        done: Share of the table that has been read, 0 to 1; None in phases without progress.
        rows_done: Number of rows in the index.
        started_at: Start of the build; None if the role may not see it.
        waits_for: Process id that the build waits for; None for none.

    """

    index_name: str | None
    relation: str
    phase: str
    done: float | None
    rows_done: int | None
    started_at: datetime | None
    waits_for: int | None


@dataclass(frozen=True, slots=True)
class Standby:
    """A standby that follows the server.

    Attributes:
        name: Its name.
        state: State of its connection; None if the role may not see it.
        behind_bytes: Bytes of the log that it has not replayed.
        behind_seconds: Its lag in seconds; None if nothing was written lately.

    """

    name: str
    state: str | None
    behind_bytes: int | None
    behind_seconds: float | None


@dataclass(frozen=True, slots=True)
class LoggedRecall:
    """A recall in the log; times are in milliseconds.

    Attributes:
        bank_id: Name of the bank.
        asked_at: Start of the recall.
        total_ms: From the call to its return.
        wait_ms: Waiting for a connection.
        embed_ms: Embedding the question.
        database_ms: The answer of the database, network included.
        rerank_ms: Reranking.
        hits: Number of rows returned.
        left_out: What failed or was left out; empty if nothing was.

    """

    bank_id: str
    asked_at: datetime
    total_ms: float
    wait_ms: float
    embed_ms: float
    database_ms: float
    rerank_ms: float
    hits: int
    left_out: tuple[str, ...]
