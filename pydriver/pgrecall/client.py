"""Recall: the functions of pgrecall as methods, over a connection of the caller's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, tzinfo
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import psycopg

from pgrecall import calls, core
from pgrecall.calls import Call
from pgrecall.core import Fact, Progress, RecallOptions
from pgrecall.embedders import DEFAULT_EMBEDDER, Embedder, EmbedFunction
from pgrecall.errors import ModelMismatch, from_database
from pgrecall.models import (
    Bank,
    BankStatistics,
    DuplicateEntities,
    Hit,
    IndexStep,
    PlannedArm,
    QueryEntity,
    RecallCheck,
    RecallReport,
    Reembedding,
    Retained,
    RetainedMessage,
    Retention,
    Turn,
    TypeHint,
)
from pgrecall.rerankers import DEFAULT_RERANKER, Reranker, ScoreFunction

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

T = TypeVar("T")
Row = TypeVar("Row")
Connection = psycopg.Connection[Any]


class Pool(Protocol):
    """Anything that lends connections, such as psycopg_pool.ConnectionPool."""

    def connection(self) -> AbstractContextManager[Connection]:
        """Lend a connection; it is committed when it comes back without an error."""
        ...


class Recall:
    """The memory of AI agents in PostgreSQL.

    Works on a connection, and then inside whatever transaction the caller has open on it; or on a
    pool, and then each method is a transaction of its own, and is repeated when it fails for a
    passing reason such as a deadlock.
    """

    def __init__(
        self,
        connection: Connection | Pool,
        *,
        embedder: Embedder | EmbedFunction | None = DEFAULT_EMBEDDER,
        reranker: Reranker | ScoreFunction | str | Path | bool | None = DEFAULT_RERANKER,
        timezone: str | tzinfo | None = None,
        model: str | None = None,
        next_embedder: Embedder | EmbedFunction | None = None,
    ) -> None:
        """Keep the connection; nothing is sent, loaded or created yet.

        Args:
            connection: An open connection, or a pool.
            embedder: Makes the embeddings; a function from texts to vectors will do. None to do
                without: then only facts and queries that bring an embedding are searched by it.
            reranker: A cross-encoder: its directory or name, an object, or a function from query
                and texts to relevances from 0 to 1. None to keep the fused order. Default: what
                PGRECALL_RERANKER names ("none" for none), or else the one that comes with it.
            timezone: Where "today" is, and what times without a zone are in. Default: UTC.
            model: Name of the model of embeddings that are handed over, or of the function.
            next_embedder: The one that banks are being re-embedded with: facts are then embedded
                with both, and questions with the one that the bank has, before and after the
                switch. A bank is asked for its models before each call.

        Raises:
            InvalidArgument: there is no such time zone.

        """
        self._source = connection
        self._settings = core.Settings.of(embedder, reranker, timezone, model, next_embedder)
        self._owned: Connection | None = None

    @classmethod
    def connect(
        cls,
        dsn: str | None = None,
        *,
        embedder: Embedder | EmbedFunction | None = DEFAULT_EMBEDDER,
        reranker: Reranker | ScoreFunction | str | Path | bool | None = DEFAULT_RERANKER,
        timezone: str | tzinfo | None = None,
        model: str | None = None,
        next_embedder: Embedder | EmbedFunction | None = None,
    ) -> Self:
        """Open a connection in autocommit mode, to be closed by :meth:`close` or ``with``.

        Args:
            dsn: Connection string. Default: PGRECALL_DSN, or else the embedded server.
            embedder: As for the class.
            reranker: As for the class.
            timezone: As for the class.
            model: As for the class.
            next_embedder: As for the class.

        Raises:
            InstallError: the embedded server is needed and cannot be started.

        """
        from pgrecall.server import resolve_dsn

        server = _compute(resolve_dsn, dsn)
        connection = psycopg.connect(server, autocommit=True)
        recall = cls(
            connection,
            embedder=embedder,
            reranker=reranker,
            timezone=timezone,
            model=model,
            next_embedder=next_embedder,
        )
        recall._owned = connection
        return recall

    def close(self) -> None:
        """Close the connection, if :meth:`connect` opened it."""
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connection, if :meth:`connect` opened it."""
        self.close()

    def create_bank(
        self,
        bank: str,
        *,
        text_search_config: str = "english",
        embedding_model: str | None = None,
        embedding_dimensions: int | None = None,
        fact_types: Sequence[str] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Create an empty bank.

        Args:
            bank: Its name, 1 to 200 characters.
            text_search_config: Such as "english"; "simple" for mixed languages and identifiers.
            embedding_model: The one model it accepts. Default: the first one it meets.
            embedding_dimensions: Length of each embedding. Default: that of the first one.
            fact_types: Kinds of fact beside the six that every bank has.
            settings: Defaults of the bank, such as weights of arms.

        Raises:
            BankExists: a bank has that name.
            InvalidArgument: an argument is out of its range.

        """
        self._run(
            calls.create_bank(
                bank,
                text_search_config=text_search_config,
                embedding_model=embedding_model,
                embedding_dimensions=embedding_dimensions,
                fact_types=fact_types,
                settings=settings or {},
            )
        )

    def configure_bank(self, bank: str, settings: Mapping[str, object]) -> None:
        """Change defaults of a bank; those not named stay.

        Args:
            bank: Name of an existing bank.
            settings: Named as the columns of the table pgrecall.bank, whose comments say what they
                do: weights, fusion, rrf_k, named_boost, ef_search and so on.

        Raises:
            BankNotFound: no bank has that name.
            UnknownArm: a weight is for an arm that there is not.
            InvalidArgument: a setting is unknown or out of its range.

        """
        self._run(calls.configure_bank(bank, settings))

    def add_fact_type(self, bank: str, fact_type: str, *, description: str = "") -> None:
        """Add a kind of memory to a bank, or describe it anew.

        Args:
            bank: Name of an existing bank.
            fact_type: A lower-case word.
            description: What it is for.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: the word cannot name a fact type.

        """
        self._run(calls.add_fact_type(bank, fact_type, description=description))

    def drop_bank(self, bank: str) -> int:
        """Drop a bank with everything in it.

        Returns:
            How many memories it held.

        Raises:
            BankNotFound: no bank has that name.

        """
        return self._run(calls.drop_bank(bank))

    def banks(self) -> list[Bank]:
        """List all banks by name."""
        return self._run(calls.banks())

    def retain(
        self,
        bank: str,
        facts: Iterable[Fact],
        *,
        model: str | None = None,
        link: str = "now",
        progress: Progress | None = None,
    ) -> list[Retained]:
        """Remember facts: all of them or, when one is malformed, none. Known ones stay as they are.

        Args:
            bank: Name of an existing bank.
            facts: Mappings in the documented format, or bare texts. What has no embedding is
                embedded here. Times without a zone are UTC.
            model: Name of the model of the embeddings that are handed over.
            link: "now", or "deferred" to leave the links to :meth:`link_pending`.
            progress: Called with how many more facts have been embedded.

        Returns:
            One row a fact, in order.

        Raises:
            BankNotFound: no bank has that name.
            InvalidFact: a fact is malformed; the message says which one and which field.
            UnknownFactType: the bank has no such fact type.
            DimensionMismatch: an embedding has not the bank's number of dimensions.
            ModelMismatch: the embeddings are not of the bank's model.
            InvalidEmbedding: an embedding has no direction.
            EmbedderUnavailable: the embedder's package or model is missing.

        """
        settings = self._settings_for(bank)
        batch = _compute(core.FactBatch, settings, facts, model)
        _compute(batch.embed, progress)
        return self._run(batch.call(bank, link))

    def retain_many(
        self,
        bank: str,
        facts: Iterable[Fact],
        *,
        model: str | None = None,
        link: str = "now",
        batch_size: int = core.STREAM_BATCH,
        progress: Progress | None = None,
    ) -> Retention:
        """Remember a long stream of facts, batch by batch.

        When a batch is refused, the batches before it stay; since known facts are left alone, the
        whole stream can simply be given again.

        Args:
            bank: As for :meth:`retain`.
            facts: As for :meth:`retain`; `to_index` of a link counts from the start of the stream.
            model: As for :meth:`retain`.
            link: As for :meth:`retain`.
            batch_size: Facts in one call, at least 1.
            progress: As for :meth:`retain`.

        Raises:
            RecallError: as :meth:`retain`; the position counts from the start of the stream.

        """
        stream = core.Stream()
        for batch in stream.batches(facts, batch_size):
            with stream.positions():
                relinked = stream.relinked(batch)
                rows = self.retain(bank, relinked, model=model, link=link, progress=progress)
            stream.add(rows)
        return stream.retention()

    def retain_messages(
        self, bank: str, messages: Iterable[Mapping[str, object]]
    ) -> list[RetainedMessage]:
        """Keep raw messages, as a safety net: all of them or, when one is malformed, none.

        Args:
            bank: Name of an existing bank.
            messages: Mappings in the documented format.

        Returns:
            One row a message, in order.

        Raises:
            BankNotFound: no bank has that name.
            InvalidFact: a message is malformed; the message says which one and which field.

        """
        return self._run(calls.retain_messages(bank, messages))

    def retain_many_messages(
        self,
        bank: str,
        messages: Iterable[Mapping[str, object]],
        *,
        batch_size: int = core.STREAM_BATCH,
        progress: Progress | None = None,
    ) -> Retention:
        """Keep a long stream of raw messages, batch by batch.

        Args:
            bank: Name of an existing bank.
            messages: As for :meth:`retain_messages`.
            batch_size: Messages in one call, at least 1.
            progress: Called with how many more messages have been kept.

        Raises:
            RecallError: as :meth:`retain_messages`; the position counts from the start.

        """
        stream = core.Stream()
        for batch in stream.batches(messages, batch_size):
            with stream.positions():
                rows = self.retain_messages(bank, batch)
            stream.add(rows)
            if progress:
                progress(len(rows))
        return stream.retention()

    def forget(self, bank: str, memory_ids: Iterable[int]) -> int:
        """Erase memories for good, with their embeddings, mentions and links.

        Returns:
            How many there were.

        Raises:
            BankNotFound: no bank has that name.

        """
        return self._run(calls.forget(bank, memory_ids))

    def supersede(
        self,
        bank: str,
        memory_id: int,
        *,
        superseded_by: int | None = None,
        at: datetime | None = None,
    ) -> None:
        """End a memory's validity, keeping it for questions about the time before.

        Args:
            bank: Name of an existing bank.
            memory_id: The memory that no longer holds.
            superseded_by: The memory that takes its place.
            at: From when on. Default: now.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such memory.

        """
        at = self._settings.moment(at)
        self._run(calls.supersede(bank, memory_id, superseded_by=superseded_by, at=at))

    def log_session(
        self,
        bank: str,
        session: str,
        *,
        started_at: datetime | None = None,
        ended_at: datetime | None = None,
    ) -> None:
        """Write down when a conversation took place, for "since we last talked".

        Args:
            bank: Name of an existing bank.
            session: The conversation's name.
            started_at: Default: now.
            ended_at: None while it goes on.

        Raises:
            BankNotFound: no bank has that name.

        """
        started_at, ended_at = self._settings.moment(started_at), self._settings.moment(ended_at)
        self._run(calls.log_session(bank, session, started_at=started_at, ended_at=ended_at))

    def last_session_end(self, bank: str, *, before: datetime | None = None) -> datetime | None:
        """Say when the last conversation ended; None where there was none.

        Args:
            bank: Name of an existing bank.
            before: The moment to look back from. Default: now.

        Raises:
            BankNotFound: no bank has that name.

        """
        return self._run(calls.last_session_end(bank, before=self._settings.moment(before)))

    def refresh_statistics(self, bank: str, *, is_full: bool = False) -> None:
        """Count the words of a bank anew, which keyword search weighs by.

        Args:
            bank: Name of an existing bank.
            is_full: Count everything, not only what came since the last time.

        Raises:
            BankNotFound: no bank has that name.

        """
        self._run(calls.refresh_statistics(bank, is_full=is_full))

    def bank_statistics(self, bank: str) -> list[BankStatistics]:
        """Say what keyword search knows of a bank, and how much it has not counted yet.

        Raises:
            BankNotFound: no bank has that name.

        """
        return self._run(calls.bank_statistics(bank))

    def highlight(
        self,
        bank: str,
        memory_id: int,
        query: str,
        *,
        start_mark: str = "<mark>",
        end_mark: str = "</mark>",
    ) -> str:
        """Mark the words in a memory's text that keyword search finds it by.

        Args:
            bank: Name of an existing bank.
            memory_id: Of a memory in that bank.
            query: What was asked.
            start_mark: Put before each word or run of words that matches.
            end_mark: Put after it.

        Returns:
            The text, with nothing else changed and nothing escaped.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such memory.

        """
        return self._run(
            calls.highlight(bank, memory_id, query, start_mark=start_mark, end_mark=end_mark)
        )

    def vocabulary_drift(self, bank: str) -> float | None:
        """Compare a bank's most frequent words with those of its snapshot.

        Returns:
            Their Jaccard similarity, 0 to 1; None before anything was counted.

        Raises:
            BankNotFound: no bank has that name.

        """
        return self._run(calls.vocabulary_drift(bank))

    def snapshot_vocabulary(self, bank: str) -> None:
        """Keep the bank's most frequent words, for ``vocabulary_drift`` to compare with.

        Raises:
            BankNotFound: no bank has that name.

        """
        self._run(calls.snapshot_vocabulary(bank))

    def link_pending(self, bank: str, *, batch_size: int = 1000) -> int:
        """Write links of facts that were retained with ``link="deferred"``.

        Args:
            bank: Name of an existing bank.
            batch_size: How many facts to link at most, 1 to 100,000.

        Returns:
            How many facts were linked; 0 when none is left.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: batch_size is out of its range.

        """
        return self._run(calls.link_pending(bank, batch_size=batch_size))

    def pending_links(self, bank: str) -> int:
        """Count the facts that ``link_pending`` has still to link.

        Raises:
            BankNotFound: no bank has that name.

        """
        return self._run(calls.pending_links(bank))

    def reembed_fill(
        self,
        bank: str,
        embedder: Embedder | EmbedFunction,
        *,
        batch_size: int = core.EMBED_BATCH,
        rate: float | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Make a second set of embeddings with another model, beside the one that is searched.

        Begins, or goes on where it was interrupted, until nothing is pending; then the bank can be
        switched by :meth:`reembed_finish`. On a pool or in autocommit mode each batch is kept.

        Args:
            bank: Name of an existing bank.
            embedder: Makes the new embeddings; its name is the bank's next model.
            batch_size: Texts that are embedded and stored at once, at least 1.
            rate: Texts a second at most. Default: as many as it can.
            progress: Called with how many more texts have been embedded.

        Returns:
            How many embeddings were made.

        Raises:
            BankNotFound: no bank has that name.
            ReembedRefused: the bank has that model already, has no embeddings, or another model
                is under way; or this one was given up meanwhile.
            DimensionMismatch: the embedder changed the length of its embeddings.
            InvalidArgument: batch_size or rate is out of its range.
            EmbedderUnavailable: the embedder's package or model is missing.

        """
        refill = core.Refill(bank, embedder, batch_size, rate)
        self._run(_compute(refill.start_call))
        while not refill.is_done:
            texts = self._run(refill.pending_call())
            if texts:
                self._run(_compute(refill.store_call, texts))
            pause = refill.advance(texts)
            if progress:
                progress(len(texts))
            time.sleep(pause)
        return refill.stored

    def reembed_status(self, bank: str) -> Reembedding:
        """Say how far the re-embedding of a bank is; counts its embeddings.

        Raises:
            BankNotFound: no bank has that name.

        """
        return self._run(calls.reembed_status(bank))

    def reembed_finish(self, bank: str, *, is_lossy: bool = False) -> None:
        """Make the next model the bank's own, all at once.

        Args:
            bank: Name of an existing bank.
            is_lossy: Whether questions that were retained without their text may be lost.

        Raises:
            BankNotFound: no bank has that name.
            ReembedRefused: something is pending or would be lost, or nothing is under way.

        """
        self._run(calls.reembed_finish(bank, is_lossy=is_lossy))

    def reembed_clean(self, bank: str, *, batch_size: int = 100) -> int:
        """Remove embeddings of other models than the bank's own, and link anew what they linked.

        Args:
            bank: Name of an existing bank.
            batch_size: How many memories to look after at most, 1 to 100,000.

        Returns:
            How many memories had such embeddings; 0 when none is left.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: batch_size is out of its range.

        """
        return self._run(calls.reembed_clean(bank, batch_size=batch_size))

    def reembed_cancel(self, bank: str) -> None:
        """Give up re-embedding a bank, which stays as it is.

        Raises:
            BankNotFound: no bank has that name.
            ReembedRefused: nothing is under way.

        """
        self._run(calls.reembed_cancel(bank))

    def index_plan(self, bank: str | None = None) -> list[IndexStep]:
        """List the statements that create and drop vector indexes and are due, in order.

        Each runs outside a transaction block; ``pgrecall index --apply`` runs them.

        Args:
            bank: Name of an existing bank. Default: all banks, and those that are gone.

        Raises:
            BankNotFound: no bank has that name.

        """
        return self._run(calls.index_plan(bank))

    def recall_check(
        self,
        bank: str,
        *,
        sample: int = 100,
        k: int = 20,
        depth: int = 100,
        is_next: bool = False,
    ) -> list[RecallCheck]:
        """Compare what searches by vector index find with what is nearest, per kind of fact.

        Args:
            bank: Name of an existing bank.
            sample: How many of the bank's own vectors to ask with, 1 to 10,000.
            k: How many of the nearest have to be found, 1 to 1000.
            depth: How deep to search, from k to 10,000.
            is_next: Whether to ask the model that the bank is being re-embedded with.

        Raises:
            BankNotFound: no bank has that name.
            ReembedRefused: the bank is not being re-embedded, and is_next was asked.
            InvalidArgument: an argument is out of its range.

        """
        return self._run(calls.recall_check(bank, sample=sample, k=k, depth=depth, is_next=is_next))

    def query_entities(self, bank: str, query: str) -> list[QueryEntity]:
        """List the people, places, projects, ... that a query names.

        Raises:
            BankNotFound: no bank has that name.

        """
        return self._run(calls.query_entities(bank, query))

    def type_hints(self, bank: str, query: str) -> list[TypeHint]:
        """List the fact types that the words of a query ask for.

        Raises:
            BankNotFound: no bank has that name.

        """
        return self._run(calls.type_hints(bank, query))

    def message_context(
        self, bank: str, message_id: int, *, before: int = 2, after: int = 2
    ) -> list[Turn]:
        """Return a message with those said before and after it in its conversation.

        Args:
            bank: Name of an existing bank.
            message_id: The memory_id of a hit of kind "message".
            before: At most how many of those before, 0 to 1000.
            after: At most how many of those after, 0 to 1000.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such message.
            InvalidArgument: an argument is out of its range.

        """
        return self._run(calls.message_context(bank, message_id, before=before, after=after))

    def merge_entities(self, bank: str, entity_id: int, others: Iterable[int]) -> int:
        """Make other entities one with an entity, which keeps its name and goes by theirs.

        Args:
            bank: Name of an existing bank.
            entity_id: The entity that stays.
            others: Entities that become one with it; those gone already are passed over.

        Returns:
            How many became one with it.

        Raises:
            BankNotFound: no bank has that name.
            EntityNotFound: the bank has no such entity.

        """
        return self._run(calls.merge_entities(bank, entity_id, others))

    def split_entity(self, bank: str, entity_id: int, memory_ids: Iterable[int], name: str) -> int:
        """Part an entity in two: what these memories say of it they say of a new one.

        Args:
            bank: Name of an existing bank.
            entity_id: The entity that stands for two.
            memory_ids: Memories that are about the new one; some others must name the old.
            name: The name of the new one.

        Returns:
            Key of the new entity, also when this was done before.

        Raises:
            BankNotFound: no bank has that name.
            EntityNotFound: the bank has no such entity.
            InvalidArgument: none of the memories names it, or no other, or the name is unusable.

        """
        return self._run(calls.split_entity(bank, entity_id, memory_ids, name))

    def rename_entity(self, bank: str, entity_id: int, name: str) -> None:
        """Give an entity another name; it still goes by the old one.

        Raises:
            BankNotFound: no bank has that name.
            EntityNotFound: the bank has no such entity.
            InvalidArgument: the name has no letter or digit, or more than 500 characters.

        """
        self._run(calls.rename_entity(bank, entity_id, name))

    def duplicate_entities(self, bank: str, *, top_k: int = 50) -> list[DuplicateEntities]:
        """List pairs of entities that may be one, likeliest first.

        Args:
            bank: Name of an existing bank.
            top_k: Upper bound on the number of pairs, 1 to 10,000.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: top_k is out of its range.

        """
        return self._run(calls.duplicate_entities(bank, top_k=top_k))

    def recall(self, bank: str, query: str, **options: Unpack[RecallOptions]) -> list[Hit]:
        """Find what answers a query, best first.

        Args:
            bank: Name of an existing bank.
            query: The question, at most 100,000 characters.
            fact_types: Only facts of these types.
            tags: Only facts with any of these tags.
            filter: Only facts that meet a condition, such as ``"confidence > 0.8"``; or the same
                as nested lists.
            during: (start, end) the question is about; either may be None. Default: what is read
                out of the query.
            temporal: Whether to read a time out of the query.
            language: Of the query, for the times in it: en, de, es, fr, it, nl or pt. Default: that
                of the bank's time_settings, else English.
            anchors: Instants of what "since I joined" may refer to: a mapping from the clause in
                lower case ("i joined") to a datetime, or a function that may return None.
            time_mode: "boost" what lies in that time, or "filter" away what does not.
            time_basis: "occurred"; or "mentioned", to take the time of saying where it is not known
                when something happened.
            use_hints: Whether to search only the fact types that the query's words hint at, such as
                preferences for "prefer"; all types when too little is found.
            budget: "mid" asks the arms that can contribute; "low" leaves out graph, messages and
                the hypothetical answer and looks half as deep; "high" looks twice as deep.
            arms: Names of the only arms to ask: semantic, lexical, graph, temporal, key, message,
                hypothetical.
            weights: Weight of an arm in the fusion, by name, at least 0.
            fusion: "score_rrf", "rrf" or "linear", how the arms are joined. Default: the bank's.
            k: What ranks are added to in the fusion, 1 to 10000. Default: the bank's.
            gates: Least best score of an arm, by name, at least 0: one that stays below has no say,
                unless all do. Default: the bank's.
            collapse: Whether to keep only the best of the facts with the same source_id.
            diversity: 0 to 1: how much a hit is put off for being like those before it; 0 by
                default. A reranker orders anew.
            min_relevance: 0 to 1: leave out what is less likely to answer; 0 by default.
            recency_half_life: Age at which recency neither lifts nor lowers a hit; it does so by at
                most 10%, and only with fusion "linear". Default: the bank's.
            recency_decay: "exponential" or "linear". Default: the bank's.
            top_k: Upper bound on the number of hits, 1 to 1000; 10 by default.
            skip: How many of the best to leave out, 0 to 10000: the next page skips top_k more.
            depth: How many rows each arm gives, 1 to 10000; 100 by default.
            as_of: Answer from what was known at that time. Default: the reference time.
            reference_time: The moment of asking, which "yesterday" counts back from. Default: now.
            embedding: The query's embedding, shape (dimensions,), instead of the embedder's.
            model: Name of the model of that embedding.
            hypothetical: A text shaped like the answer to search with as well, or a function that
                makes one of the query.
            rerank: Whether to rerank.
            candidates: How many of the best to rerank, at least 1; 50 by default.
            rerank_mode: "blend" the reranker's order with the fused one, or "replace" the latter.
            rerank_seconds: Time for reranking; candidates it does not suffice for stay behind in
                fused order, and the report says so. 2 by default.
            boosts: Alpha of the boosts "recency", "period" and "proof" of what was reranked, 0 to 1
                each: a score is multiplied with 1 - alpha / 2 to 1 + alpha / 2. 0 by default.
            explain: Only for :meth:`recall_report`: ask how each arm fared, in a second call.

        Returns:
            At most top_k hits.

        Raises:
            BankNotFound: no bank has that name.
            EmptyQuery: there is neither a query nor an embedding.
            UnknownFactType: the bank has no such fact type.
            UnknownArm: an arm or weight has no such name.
            InvalidFilter: the filter is not understood.
            InvalidArgument: an argument is out of its range.
            DimensionMismatch: the embedding has not the bank's number of dimensions.
            ModelMismatch: the embedding is not of the bank's model.
            InvalidEmbedding: the embedding has no direction.
            EmbedderUnavailable: the embedder's package or model is missing.

        """
        return list(self.recall_report(bank, query, **options).hits)

    def recall_report(
        self, bank: str, query: str, **options: Unpack[RecallOptions]
    ) -> RecallReport:
        """Find what answers a query, and say how: times, what was left out, dates understood.

        Args:
            bank: Name of an existing bank.
            query: The question, at most 100,000 characters.
            options: As for :meth:`recall`.

        Raises:
            RecallError: as :meth:`recall`.

        """
        settings = self._settings_for(bank)
        try:
            return self._answer(core.Question(settings, bank, query, **options))
        except ModelMismatch:
            if settings.next_embedder is None or not self._may_go_on():
                raise
        # The bank was switched to its next model between the two statements.
        settings = self._settings_for(bank)
        return self._answer(core.Question(settings, bank, query, **options))

    def arm_plan(self, bank: str, query: str, **options: Unpack[RecallOptions]) -> list[PlannedArm]:
        """Say which arms a recall would ask, and why, without asking them.

        Args:
            bank: Name of an existing bank.
            query: The question, at most 100,000 characters.
            options: As for :meth:`recall`.

        Raises:
            RecallError: as :meth:`recall`.

        """
        question = core.Question(self._settings_for(bank), bank, query, **options)
        if question.needs_preparation:
            question.prepare(self._run(question.preparation_call()))
        _compute(question.embed)
        return self._run(question.plan_call())

    def _answer(self, question: core.Question) -> RecallReport:
        if question.needs_preparation:
            call = question.preparation_call()
            question.prepare(self._run(call, question.trace))
        _compute(question.embed)
        hits = self._run(question.call(), question.trace)
        arms = self._run(question.explain_call()) if question.explain else []
        return _compute(question.report, hits, arms)

    def _settings_for(self, bank: str) -> core.Settings:
        """Choose between two embedders, where there are two, by what the bank needs."""
        if self._settings.next_embedder is None:
            return self._settings
        return self._settings.for_bank(self._run(calls.bank_models(bank)))

    def _may_go_on(self) -> bool:
        """Say whether statements can be sent after one that failed."""
        connection = self._source
        return not isinstance(connection, psycopg.Connection) or (core.owns_transaction(connection))

    def _run(self, call: Call[Row, T], trace: core.Trace | None = None) -> T:
        """Send a call, again after a while where that may help."""
        trace = trace or core.Trace()
        delays = core.retry_delays()
        while True:
            owner = True
            try:
                with self._connection(trace) as connection:
                    owner = self._source is not connection or core.owns_transaction(connection)
                    return self._send(call, connection, trace)
            except psycopg.Error as error:
                may_help = owner and core.is_transient(error, call.is_repeatable, trace)
                delay = next(delays, None) if may_help else None
                if delay is None:
                    ours = from_database(error)
                    if ours is None:
                        raise
                    raise ours from error
            time.sleep(delay)

    def _send(self, call: Call[Row, T], connection: Connection, trace: core.Trace) -> T:
        with trace.listening(connection):
            cursor = connection.cursor(row_factory=call.row_factory)
            calls.adapt(cursor.adapters)
            cursor.execute(call.sql, call.parameters)
            return call.result(cursor.fetchall())

    @contextmanager
    def _connection(self, trace: core.Trace) -> Iterator[Connection]:
        if isinstance(self._source, psycopg.Connection):
            yield self._source
            return
        start = perf_counter()
        with self._source.connection() as connection:
            trace.acquired(start)
            yield connection


def _compute(function: Callable[..., T], *arguments: object) -> T:
    """Do what takes long but sends nothing."""
    return function(*arguments)
