"""What pgrecall returns: frozen rows, without behaviour beyond reading them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

Period = tuple[datetime | None, datetime | None]
"""A half-open stretch of time, [start, end); None leaves a side open."""


@dataclass(frozen=True, slots=True)
class ArmHit:
    """Rank and score of a hit in one arm.

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
        occurred: When it happened, half-open; None where unknown.
        mentioned_at: When it was said.
        confidence: 0 to 1.
        score: The fused score; the contributions of the arms add up to it.
        arms: Rank and score in each arm that found it, by name of the arm.
        fused_rank: Place in the fused ranking, before any reranking.
        rerank_score: Score of the reranker, 0 to 1; None where it was not reranked.
        final_score: What the answer is ordered by. Reranked: the rerank score, which "blend" lowers
            by the fused score and for what likelier sessions say, times its boosts, or what the
            best hit behind it has, where its path holds it in its place; 0 behind the candidates
            that were reranked. Else the fused score.
        relevance: How likely it answers the question, by the arms' scores, 0 to 1.
        boost: What reranking multiplied by, for recency, for proximity to the time asked about and
            for the number of sources.
        proof_count: How many independent sources state it; None for a message.
        via: The path of relations, causes or a rare entity that led to it: names of entities, kinds
            of relations, ids of facts, "path" (names and relations as one line), "text" (what the
            facts before it say); None where no arm followed one.
        conflicts_with: Keys of memories, found or not, that contradict it: under the same key, or
            by a relation of which there can be but one.
        written_by: Role of the database that stored it; None for a message, and where not known.
        stored_at: When that was.
        trust: That of its source, 0 to 1; see source_trust of the bank.
        tokens: The vectors of the text's tokens where with_tokens asks for them, as for late
            interaction; else None.

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


@dataclass(frozen=True, slots=True)
class Reranked:
    """The place of a hit after reranking.

    Attributes:
        memory_id: Key of the memory or message.
        rank: Its place, 1 is best.
        relevance: That which counted; None where none did.
        final_score: What the order is by.
        boost: What the final score was multiplied by.
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
        is_new: False where the bank held the fact already.
        is_embedded: False where it has no embedding, or where the embedder failed at a question of
            it. Retain the same fact again, with an embedder, to give it one.

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
        similarity: How similar the two are, 0 to 1.
        shared_entities: Names of the entities that both mention.
        is_same_source: Whether both came from one source.

    """

    memory_id: int
    text: str
    similarity: float
    shared_entities: Sequence[str]
    is_same_source: bool


@dataclass(frozen=True, slots=True)
class Corrected:
    """A memory after a correction, or after its undoing.

    Attributes:
        memory_id: Key of the memory.
        text: What it says.
        valid_from: Known from then on.
        valid_to: It no longer holds from then on; None where it holds.
        superseded_by: Key of the memory in its place, or None.

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
        fact_type: Kind of fact, such as "world" or "preference".
        text: The remembered text.
        context: Where it came from, or None.
        fact_key: Exact key under which it can be looked up, or None.
        source_id: Document or conversation it came from, or None.
        tags: Tags as given.
        metadata: Metadata as given.
        occurred: When it happened, half-open; None where unknown.
        mentioned_at: When it was said.
        confidence: 0 to 1.
        proof_count: How many independent sources state it.
        valid_from: Known from then on.
        valid_to: It no longer holds from then on; None where it holds.
        superseded_by: Key of the memory in its place, or None.
        entities: Names of the entities that it mentions.
        created_at: When it was stored.
        ended_by: What ended it: "supersede", "update", "consolidate", "quarantine" or "retain";
            None where it holds, or has expired.
        ended_entities: Of update() alone: the entities that the version before mentioned and
            this one does not.
        ended_relations: Of update() alone: the relations that it no longer states, as
            "Maya leads Atlas".
        written_by: Role of the database that stored it; None where not known.

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
    """What was done to a memory.

    Attributes:
        at: When; None where not known.
        by: Role of the database that did it; None where not known.
        action: "retain" (stored), "supersede", "update", "replace" or "consolidate" (ended so), or
            "quarantine".
        memory_id: Key of the memory.
        source_id: Document or conversation it came from, or None.
        other_id: Key of the memory that it was ended for, or None.
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
        kept_text: What stays.
        text: What ends.
        similarity: How similar the two are, 0 to 1; 1 for the same text.
        proof_count: Number of sources of the one that stays, those of all merged ones included.

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
        unembedded: How many facts have no embedding, or lack one of a question.

    """

    total: int
    new: int
    unembedded: int = 0


@dataclass(frozen=True, slots=True)
class BulkRetention:
    """How a bulk load went.

    Attributes:
        total: How many facts were given.
        new: How many of them the bank did not hold before.
        known: How many it held, or were given twice.
        refused: How many were refused.
        unembedded: How many have no embedding, or lack one of a question.
        linked: How many facts were linked, those of an earlier load that broke off included.
        indexed: How many statements were run that build vector indexes.
        due: Those that could not be, since the role does not own the tables. The facts are linked
            once they were run.

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
class BankModels:
    """The embedding models of a bank.

    Attributes:
        embedding_model: The model it is searched by; None where it has no name yet.
        embedding_dimensions: Length of each embedding; None while there are none.
        next_model: The model it is being re-embedded with; None while it is not.

    """

    embedding_model: str | None
    embedding_dimensions: int | None
    next_model: str | None


@dataclass(frozen=True, slots=True)
class RecallOption:
    """An option of a recall, as the database declares it.

    Attributes:
        name: Its name.
        type: boolean, integer, number, text, interval, text[], object or embedding.
        default_value: Its value when it is not given.
        range: The values it takes, in words; None where any do.
        description: What it does.
        choices: The values of a text option; None where any do.
        is_bank_default: Whether a bank can have a default of its own for it.

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
    """A retrieval arm, as the database registers it.

    Attributes:
        arm: Its name.
        place: Its position in the order of running, 1 is first.
        weight: Its weight in the fusion, unless a bank or a recall sets another.
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
        model: The model the bank is searched by; None where it has no name.
        dimensions: Length of each of its embeddings; None while there are none.
        next_model: The model it is being re-embedded with; None while it is not.
        next_dimensions: Length of that model's embeddings.
        previous_model: The model before, while its embeddings are still to be removed.
        vectors: How many embeddings the bank is searched by.
        pending: How many of them the next model lacks.
        textless: How many questions it cannot get, since they were retained without text.
        leftover: How many memories have embeddings of yet another model.

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
    """One statement that is due for the vector indexes of a bank.

    Attributes:
        bank_id: The bank's name; None where the index is left over of one which is gone.
        fact_type: The kind of fact whose vectors the index holds; None where that is gone.
        action: "create", "drop" or "rename".
        statement: What to run, outside a transaction block.
        reason: Why it is due.
        index_name: Name of the index.
        estimated_bytes: About how large it will be, where it is to be created.
        estimated_seconds: About how long that takes on one core.

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
        fact_type: The kind of fact.
        path: The index used, or that the search was exact.
        questions: How many vectors were searched with.
        recall: The share of the nearest that was found, 0 to 1.
        milliseconds: What one search took.
        exact_milliseconds: What it took to compare with every vector.

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
        index: Position of the fact among those that were asked about, from 0.
        kind: "text", or "question" for one that the fact answers.
        ordinal: Which question, from 0.
        model: Name of the model; empty when that is not known.
        embedding: As the connection reads it: a vector's text, or an object of pgvector's.
        tokens: The vectors of the text's tokens, or None.

    """

    index: int
    kind: str
    ordinal: int
    model: str
    embedding: object
    tokens: bytes | None = None


@dataclass(frozen=True, slots=True)
class PendingText:
    """A text that has still to be embedded with the next model.

    Attributes:
        memory_id: Key of the memory.
        kind: "text", or "question" for one that the memory answers.
        ordinal: Which question, from 0.
        text: What to embed.

    """

    memory_id: int
    kind: str
    ordinal: int
    text: str


@dataclass(frozen=True, slots=True)
class BankStatistics:
    """BM25 statistics of a bank's memories, or of its messages.

    Attributes:
        kind: "memory" or "message".
        document_count: How many of them are counted.
        average_length: Their average number of words.
        lexeme_count: How many different words they hold.
        waiting: How many are not counted yet.
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
    """Pending work of a bank that was done.

    Attributes:
        bank_id: Name of the bank.
        task: "count", "weigh", "link" or "prune".
        kind: "memory", "message" or "recall".
        documents: How many were counted, weighed, linked, or deleted from the log.

    """

    bank_id: str
    task: str
    kind: str
    documents: int


@dataclass(frozen=True, slots=True)
class AttachedTable:
    """A table of your own whose rows are memories of a bank.

    Attributes:
        bank_id: Name of the bank.
        relation: Schema and name of the table.
        status: "copying" while the first pass over the rows is not done, "current", "behind" while
            changes wait, or "broken".
        key: The column that tells rows apart.
        columns: The columns by field of a fact.
        apply: "later" or "commit": when changes reach the bank.
        memories: How many were made of its rows.
        table_rows: How many rows the server reckons it has; None when not known.
        pending: How many changes wait.
        failed: How many rows cannot be stored.
        problem: Why it is broken, or one of the rows cannot be stored.
        pending_for: How long the oldest change waits.

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
    """What was done to bring a table's rows into a bank.

    Attributes:
        bank_id: Name of the bank.
        relation: Schema and name of the table.
        added: Rows that have a memory now.
        changed: Rows whose memory says something else now.
        removed: Rows that are gone, or have no text any more.
        unchanged: Rows that the bank held as they are, or that have no text.
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
        """How many rows that were."""
        return self.added + self.changed + self.removed + self.unchanged + self.failed

    def after(self, other: SyncedTable | None) -> SyncedTable:
        """Return what was done with what had been done before."""
        if other is None:
            return self
        names = ("added", "changed", "removed", "unchanged", "failed")
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True, slots=True)
class RecallTimes:
    """How long the recalls of a bank took, from a sample of them; all times in milliseconds.

    Attributes:
        bank_id: Name of the bank.
        samples: How many recalls were logged.
        recalls: How many they stand for.
        p50_ms: Median of the whole time, from the call to its return.
        p95_ms: 95th percentile of it.
        p99_ms: 99th percentile of it.
        max_ms: The longest.
        wait_p95_ms: 95th percentile of waiting for a connection.
        embed_p95_ms: Of embedding the question.
        database_p95_ms: Of the answer of the database, network included.
        rerank_p95_ms: Of reranking.
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
        kind: person, place, project, ...; None where unknown.
        matched: The words of the query that named it.
        confidence: Certainty that they do, 0 to 1.

    """

    entity_id: int
    name: str
    kind: str | None
    matched: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Preparation:
    """What is needed of a bank before a query is embedded.

    Attributes:
        embedded_text: The query without the names of entities, unless the bank embeds them.
        time_settings: Arguments of extract_temporal_constraint(), by name, that the bank sets.
        last_session_end: When the last conversation ended; None when there was none.
        latest_words: Words of the bank that ask for the latest state.
        former_words: Words of the bank that ask for a former state.
        log_share: The share of its recalls that is to be logged, 0 to 1.
        embedding_model: The model it is searched by; None where it has no name yet.
        next_model: The model it is being re-embedded with; None while it is not.

    """

    embedded_text: str
    time_settings: Mapping[str, Any]
    last_session_end: datetime | None
    latest_words: Sequence[str]
    former_words: Sequence[str]
    log_share: float
    embedding_model: str | None
    next_model: str | None


@dataclass(frozen=True, slots=True)
class DuplicateEntities:
    """Two entities that may be the same.

    Attributes:
        entity_id: Key of the one that facts name more often.
        name: Its name.
        other_id: Key of the other.
        other_name: The other's name.
        score: How likely they are the same, 0 to 1.
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
        status: "ran", "gated", "skipped" or "failed"; "planned" where it would run.
        reason: Why it was skipped, gated or failed, or which path it took.
        rows: Number of rows it found.
        best_score: Its best score, on its own scale; None without rows.
        milliseconds: Time it took; None where it did not run.
        indexes: Names of the indexes it scanned, with commas between; None for none, and where
            the option explain was not set.
        hint: What to do where something was left out or failed; None where nothing was.

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
        named: Confidence, 0 to 1, that the memory mentions an entity named in the query; None where
            it mentions none.

    """

    arm: str
    memory_id: int
    rank: int
    score: float
    named: float | None


@dataclass(frozen=True, slots=True)
class RecallStep:
    """Where a step of a recall has one memory or message, or why it has not.

    Attributes:
        step: "reach" (whether the recall may find it at all), the name of an arm, "fusion",
            "candidates" where a reranker reads them, or "answer".
        status: "found", "missed", "left out" or "returned"; of an arm also "skipped", "gated" or
            "failed".
        rank: Its place in the step, 1 is best; None where it has none.
        score: Its score there; of an arm that missed it the one that it gets alone.
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
        fact_type: The type; None where the answer may be of any.
        matched: The first word that implies it.

    """

    fact_type: str | None
    matched: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A raw message beside another.

    Attributes:
        place: 0 is the message asked for, -1 the one before, 1 the one after.
        message_id: Key of the message.
        session_id: Its conversation; None for none.
        role: user, assistant, system or tool.
        speaker: Who said it; None where unknown.
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
    """Messages that no fact was made of, or a fact that could not be stored.

    Attributes:
        first: Position of the first of the messages, from 0.
        last: Position of the last of them.
        problem: What the extractor raised, or what is wrong with the fact.
        fact: The fact; None where the extractor failed.

    """

    first: int
    last: int
    problem: str
    fact: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Extraction:
    """What came of a conversation.

    Attributes:
        messages: A row for each message; all are stored.
        facts: A row for each fact that was made of them.
        failures: What no fact was made of; the messages are found all the same.

    """

    messages: Sequence[RetainedMessage]
    facts: Sequence[Retained]
    failures: Sequence[ExtractionFailure]


@dataclass(frozen=True, slots=True)
class Degradation:
    """Part of a recall that was left out; the answer was made without it.

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
        queue: Waiting for models, which read the texts of other callers.
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
        """All stages together: from the call to its return, in milliseconds."""
        return float(sum(getattr(self, stage.name) for stage in fields(self)))


@dataclass(frozen=True, slots=True)
class Context:
    """An answer as it is written for a language model.

    Attributes:
        text: What to send: facts under the day they are about, numbered, marks of what is outdated.
        tokens: How many tokens it has, as they were counted.
        citations: The memory or message that each number stands for.
        left_out: How many hits are not in it: repetitions, what helps no more, what the budget did
            not suffice for.
        is_shortened: Whether the budget did not even suffice for the text of the best hit, of
            which only the beginning is in it.
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
    """How many memories of a type belong to a stretch of time.

    Attributes:
        starts_at: When it begins.
        fact_type: The type.
        memories: How many there are.
        current_memories: How many of them hold now.

    """

    starts_at: datetime
    fact_type: str
    memories: int
    current_memories: int


@dataclass(frozen=True, slots=True)
class ListedEntity:
    """An entity at a glance.

    Attributes:
        entity_id: Key of the entity.
        name: Its name.
        kind: person, place, project, ...; None where unknown.
        aliases: All its names, in normalised form.
        mention_count: How many memories mention it.
        created_at: When it was first named.

    """

    entity_id: int
    name: str
    kind: str | None
    aliases: Sequence[str]
    mention_count: int
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class MemoryDetail:
    """What hangs on a memory.

    Attributes:
        mentions: The entities that it mentions: entity_id, name, kind, confidence.
        relations: Those that it states: from_id, from, kind, to_id, to, confidence, valid_from,
            valid_to.
        embeddings: model, kind, dimensions and text of each.
        corrections: Those that can be undone, the latest last.
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
        hop: How far from the beginning it was met.
        from_kind: "entity" or "memory".
        from_id: Key of that.
        from_name: Its name, or the beginning of its text.
        from_mentions: Of an entity, how many memories mention it at least.
        kind: That of a relation or link, or "mentions".
        to_kind: As from_kind.
        to_id: As from_id.
        to_name: As from_name.
        to_mentions: As from_mentions.
        weight: 0 to 1.
        memory_id: The memory that states a relation or mentions an entity; None for a link.
        from_rarity: Of an entity, how much it tells, 0 to 1.
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
class RelationSize:
    """How large a table is.

    Attributes:
        relation: Its name.
        live_rows: About how many rows it has.
        dead_rows: About how many of them wait for vacuum.
        table_bytes: Its size.
        index_bytes: That of its indexes.
        vacuumed_at: When it was vacuumed last; None for never.
        analysed_at: When it was analysed last; None for never.

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
    """A build of a vector index that runs.

    Attributes:
        index_name: Its name; None until it is in the catalog.
        relation: The table.
        phase: What the build does now.
        done: What part of the table has been read, 0 to 1; None in phases that do not tell.
        rows_done: How many rows are in the index.
        started_at: When the build began; None where the role may not see it.
        waits_for: Number of the process that the build waits for; None for none.

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
        state: What its connection does; None where the role may not see it.
        behind_bytes: How much of the log it has not replayed.
        behind_seconds: How far it is behind in time; None where nothing was written lately.

    """

    name: str
    state: str | None
    behind_bytes: int | None
    behind_seconds: float | None


@dataclass(frozen=True, slots=True)
class LoggedRecall:
    """A recall of the log; times are milliseconds.

    Attributes:
        bank_id: Name of the bank.
        asked_at: When it began.
        total_ms: From the call to its return.
        wait_ms: Of these, waiting for a connection.
        embed_ms: Embedding the question.
        database_ms: The answer of the database, network included.
        rerank_ms: Reranking.
        hits: How many rows were returned.
        left_out: What failed or was left out; empty for a whole recall.

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
