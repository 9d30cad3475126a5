"""AsyncRecall, the client for asyncio. client.py is generated from it: see pydriver/generate.py."""

from __future__ import annotations

import asyncio
import os
from asyncio import Lock
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast
from weakref import WeakSet

import psycopg

from pgrecall import calls
from pgrecall.arguments import check_given, check_type
from pgrecall.asking.question import MOST_QUERIES, Question, embed_together, repeated
from pgrecall.asking.recall_options import RecallOptions
from pgrecall.calls.call import Call, together
from pgrecall.calls.recall import Answer
from pgrecall.connection import telemetry
from pgrecall.connection.concurrency import AsyncBoundedWork
from pgrecall.connection.connecting import (
    MOST_LOST,
    async_entered,  # async only: see there
    async_held,
    async_pipeline,
    check_alive,  # async only: see _pool()
    is_alive,
    limited_dsn,
    named_dsn,
    owns_transaction,
)
from pgrecall.connection.cursors import AsyncOwnCursor
from pgrecall.connection.recall_log_writer import RecallLogWriter
from pgrecall.connection.replicas import MAX_LAG, REPLICA_SECONDS, Replicas, replica_dsn
from pgrecall.connection.retries import is_cut, is_transient, retry_delays
from pgrecall.connection.tracing import Trace
from pgrecall.context import MAX_TOKENS, CountTokens, likely_hits, make_context
from pgrecall.errors import (
    BankExists,
    ClientClosed,
    InstallError,
    InvalidArgument,
    InvalidFact,
    MemoryNotFound,
    ModelMismatch,
    RecallError,
    UnknownFactType,
    UntrustedSource,
    from_database,
    may_be_version,
    not_installed,
    other_version,
)
from pgrecall.extraction import talk
from pgrecall.extraction.talk import Extractor
from pgrecall.inference.calibration import Calibration
from pgrecall.inference.embedders import DEFAULT_EMBEDDER
from pgrecall.inference.interfaces import Embedder, EmbedFunction, Reranker, ScoreFunction
from pgrecall.inference.late_interaction import makes_tokens
from pgrecall.inference.rerankers import DEFAULT_RERANKER
from pgrecall.inference.worker import on_own_thread
from pgrecall.of_bank import OfBank
from pgrecall.report import RecallReport
from pgrecall.retaining import bulk
from pgrecall.retaining.changes import embedded_changes
from pgrecall.retaining.facts import (
    EMBED_BATCH,
    LISTINGS,
    Fact,
    FactBatch,
    Listing,
    pending_vectors,
    several,
    word_vectors,
)
from pgrecall.retaining.reembedding import Refill
from pgrecall.retaining.streams import STREAM_BATCH, Progress, Stream
from pgrecall.rows import (
    Arm,
    ArmFinding,
    ArmReport,
    AttachedTable,
    Audited,
    Bank,
    BankStatistics,
    BulkRetention,
    Consolidated,
    Context,
    Corrected,
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
    Period,
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
    Turn,
    TypeHint,
)
from pgrecall.settings import Settings

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

T = TypeVar("T")
Row = TypeVar("Row")
Connection = psycopg.AsyncConnection[Any]


class AsyncPool(Protocol):
    """A connection pool, such as psycopg_pool.AsyncConnectionPool."""

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        """Lend a connection, which is committed when it is returned without an error."""
        ...


class AsyncRecall:
    """The memory of AI agents in PostgreSQL.

    Works on a connection, inside the caller's open transaction, or on a pool. On a pool each method
    is a transaction of its own, and is retried after a transient failure such as a deadlock.
    """

    def __init__(
        self,
        connection: Connection | AsyncPool,
        *,
        embedder: Embedder | EmbedFunction | str | None = DEFAULT_EMBEDDER,
        reranker: Reranker | ScoreFunction | str | Path | bool | None = DEFAULT_RERANKER,
        timezone: str | tzinfo | None = None,
        model: str | None = None,
        next_embedder: Embedder | EmbedFunction | None = None,
        replicas: Sequence[str | AsyncPool] = (),
        max_lag: float | None = MAX_LAG,
        read_your_writes: bool = True,
    ) -> None:
        """Keep the connection; send, load and create nothing.

        Args:
            connection: An open connection, or a pool.
            embedder: Makes the embeddings. May be a function from texts to vectors, or the URL of
                an endpoint with the OpenAI API, with its model in model. With None only facts and
                queries that you pass with an embedding have one.
            reranker: "late-interaction" compares token vectors; "cross-encoder" is the packaged
                one. Another cross-encoder is given by its directory or name, the URL of a
                ``/rerank`` endpoint, an object, or a function from query and texts to relevances
                from 0 to 1. None or "none" keeps the fused order. Default: PGRECALL_RERANKER, else
                late interaction, or the packaged cross-encoder if the embedder makes no token
                vectors.
            timezone: Time zone of "today", of each datetime without one, also in facts and
                messages, and of the days in :meth:`context`. Default: UTC.
            model: Name of the model of given embeddings, or of the embedder function.
            next_embedder: Embedder of the model that banks are re-embedded with. Facts are embedded
                with both models, questions with the bank's current one. The bank is asked for its
                models before each call.
            replicas: Standbys to read from in turn: connection strings, opened when needed, or
                pools. The primary answers if none is reachable and recent enough, inside a
                transaction of the caller, and for all writes.
            max_lag: Maximum lag of a standby in seconds; None for no limit.
            read_your_writes: Whether a standby must have replayed what this client wrote.

        Raises:
            InvalidArgument: an argument is of a wrong type, the time zone is unknown, the
                embedder's model has no name, or max_lag is below 0.

        """
        _check_source(connection)
        self._source = connection
        self._settings = Settings.of(embedder, reranker, timezone, model, next_embedder)
        self._dsn: str | None = None  # DSN of a source opened by connect()
        self._log: RecallLogWriter | None = None  # the same
        self._turn = Lock()  # for callers that share one connection
        self._replicas = Replicas(replicas, max_lag, read_your_writes)
        self._standbys: dict[int, AsyncRecall] = {}
        self._pool_size: int | None = None
        self._is_closed = False
        self._inherited: object = None  # in the child of a fork, the source of its parent
        _CLIENTS.add(self)

    @classmethod
    async def connect(
        cls,
        dsn: str | None = None,
        *,
        embedder: Embedder | EmbedFunction | str | None = DEFAULT_EMBEDDER,
        reranker: Reranker | ScoreFunction | str | Path | bool | None = DEFAULT_RERANKER,
        timezone: str | tzinfo | None = None,
        model: str | None = None,
        next_embedder: Embedder | EmbedFunction | None = None,
        pool_size: int | None = None,
        replicas: Sequence[str | AsyncPool] = (),
        max_lag: float | None = MAX_LAG,
        read_your_writes: bool = True,
    ) -> Self:
        """Open a connection in autocommit mode; :meth:`close` or ``with`` closes it.

        A lost connection is reopened. The child of a fork opens connections of its own.

        Args:
            dsn: Connection string. Default: PGRECALL_DSN, else the embedded server, with pgrecall
                installed.
            embedder: As for the class.
            reranker: As for the class.
            timezone: As for the class.
            model: As for the class.
            next_embedder: As for the class.
            pool_size: Maximum size of a pool to open instead, for concurrent calls, and of one for
                each replica. Needs the extra ``pool``.
            replicas: As for the class.
            max_lag: As for the class.
            read_your_writes: As for the class.

        Raises:
            InstallError: the embedded server cannot be started, or the package for a pool is
                missing.
            InvalidArgument: pool_size is below 1, or as for the class.

        """
        from pgrecall.server import ready_dsn

        check_type("pool_size", pool_size, int | None)
        server = named_dsn(await _compute(ready_dsn, dsn))
        source = await _opened(server, pool_size)
        try:
            recall = cls(
                source,
                embedder=embedder,
                reranker=reranker,
                timezone=timezone,
                model=model,
                next_embedder=next_embedder,
                replicas=replicas,
                max_lag=max_lag,
                read_your_writes=read_your_writes,
            )
        except BaseException:
            await cast("Connection", source).close()
            raise
        recall._dsn, recall._log = server, RecallLogWriter(server)
        recall._pool_size = pool_size
        return recall

    async def close(self) -> None:
        """Close what the client opened: by :meth:`connect`, and for replicas."""
        while self._standbys:
            _, standby = self._standbys.popitem()
            await standby.close()
        if self._dsn is not None:
            self._dsn = None
            if self._log is not None:
                await _compute(self._log.close)
            if self._source is not self._inherited:
                await cast("Connection", self._source).close()
            self._is_closed = True

    async def __aenter__(self) -> Self:
        """Return the client itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close what the client opened."""
        await self.close()

    async def position(self) -> str:
        """Return a position in the log of the primary, past everything committed so far.

        Another client that passes it to :meth:`read_after` sees everything written before.
        """
        return await self._answered(calls.operations.log_position())

    def read_after(self, position: str) -> None:
        """Read from replicas only once they have replayed the log up to a position.

        Args:
            position: Result of :meth:`position`, from any client of the same primary.

        Raises:
            InvalidArgument: position is not such a result.

        """
        self._replicas.require(position)

    def bank(self, bank: str) -> AsyncBankHandle:
        """Return a handle for a bank, with the client's methods without the bank's name.

        Sends nothing. The bank need not exist yet: ``bank.create()`` creates it.

        Args:
            bank: Name of the bank.

        """
        check_given(bank=bank)
        return AsyncBankHandle(self, bank)

    async def create_bank(
        self,
        bank: str,
        *,
        text_search_config: str | None = None,
        embedding_model: str | None = None,
        embedding_dimensions: int | None = None,
        fact_types: Sequence[str] | None = None,
        settings: Mapping[str, object] | None = None,
        exist_ok: bool = False,
    ) -> None:
        """Create an empty bank.

        Args:
            bank: Name of the bank, 1 to 200 characters.
            text_search_config: Such as "english", the default; "simple" for mixed languages and
                identifiers.
            embedding_model: The only model that the bank accepts. Default: that of the first
                embedding.
            embedding_dimensions: Length of each embedding. Default: that of the first one.
            fact_types: Fact types besides the six that every bank has.
            settings: Defaults of the bank, as for :meth:`configure_bank`.
            exist_ok: Whether an existing bank with that name is accepted and not changed.

        Raises:
            BankExists: a bank with that name exists.
            InvalidArgument: an argument is out of its range.

        """
        call = calls.bank.create_bank(
            bank,
            text_search_config=text_search_config,
            embedding_model=embedding_model,
            embedding_dimensions=embedding_dimensions,
            fact_types=fact_types,
            settings=settings,
            exist_ok=exist_ok,
        )
        try:
            await self._run(call)
        except BankExists:  # created concurrently
            if not (exist_ok and self._is_outside_transaction()):
                raise

    async def configure_bank(self, bank: str, settings: Mapping[str, object]) -> None:
        """Change settings of a bank; others stay as they are.

        Args:
            bank: Name of an existing bank.
            settings: Defaults of options of a recall, such as weights, fusion or budget, and
                columns of table pgrecall.bank, such as bm25_k1.

        Raises:
            BankNotFound: no bank has that name.
            UnknownArm: a weight is for an unknown arm.
            InvalidArgument: a setting is unknown or out of its range.

        """
        await self._run(calls.bank.configure_bank(bank, settings))

    async def add_fact_type(
        self, bank: str, fact_type: str, *, description: str | None = None
    ) -> None:
        """Add a fact type to a bank, or change its description.

        Args:
            bank: Name of an existing bank.
            fact_type: A lower-case word.
            description: What it is for.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: the word is not valid for a fact type.

        """
        await self._run(calls.bank.add_fact_type(bank, fact_type, description=description))

    async def drop_bank(self, bank: str) -> int:
        """Drop a bank with everything in it.

        Returns:
            Number of its memories.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._run(calls.bank.drop_bank(bank))

    async def clone_bank(self, bank: str, new_bank: str) -> int:
        """Copy a bank with everything in it, including ids and history; the copy is independent.

        Returns:
            Number of its memories.

        Raises:
            BankNotFound: no bank has that name.
            BankExists: a bank with the new name exists.
            InvalidArgument: the new name is invalid.

        """
        return await self._run(calls.bank.clone_bank(bank, new_bank))

    async def export(self, bank: str, *, batch_size: int = STREAM_BATCH) -> AsyncIterator[str]:
        """Yield all rows of a bank, each as a line of JSON, for :meth:`import_rows`.

        For a consistent copy while the bank is written, use a repeatable read transaction.

        Args:
            bank: Name of an existing bank.
            batch_size: Rows per batch, 1 to 100,000.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: batch_size is out of its range.

        """
        last: str | None = None
        is_done = False
        while not is_done:
            call = calls.bank.exported_rows(bank, after=last, batch_size=batch_size)
            rows = await self._run(call)
            is_done = not rows
            for last in rows:
                yield last

    async def import_rows(
        self,
        bank: str,
        rows: Iterable[str | Mapping[str, object]],
        *,
        batch_size: int = STREAM_BATCH,
        progress: Progress | None = None,
    ) -> int:
        """Store the rows of an export in a bank, with all columns unchanged.

        Existing rows are skipped, so an interrupted import can be repeated.

        Args:
            bank: Name of a bank that does not exist yet, or that holds a part of this export.
            rows: The rows of :meth:`export`, in order.
            batch_size: Rows per batch, at least 1.
            progress: Called with the number of further rows sent.

        Returns:
            Number of rows stored.

        Raises:
            BankExists: the bank holds other data.
            BankNotFound: no bank has that name, and the rows do not begin with the row of a bank.
            InvalidFact: a row does not come from an export; its position counts from the start. No
                row of its batch is stored.
            InvalidArgument: the name is invalid, or batch_size is below 1.

        """
        check_type("rows", rows, Iterable[object])
        check_given(progress=progress)
        stored = 0
        stream = Stream()
        for batch in stream.batches(rows, batch_size):
            with stream.positions():
                stored += await self._run(calls.bank.import_rows(bank, batch))
            stream.sent(batch)
            if progress:
                progress(len(batch))
        return stored

    async def banks(self) -> list[Bank]:
        """List all banks by name."""
        return await self._read(calls.bank.banks())

    async def bank_options(self, bank: str) -> dict[str, object]:
        """Return all options of a recall with their defaults in a bank.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._read(calls.bank.bank_options(bank))

    async def recall_options(self) -> list[RecallOption]:
        """List the options of a recall with type, default, range and description."""
        return await self._read(calls.recall.recall_options())

    async def arms(self) -> list[Arm]:
        """List the retrieval arms, in the order in which they run."""
        return await self._read(calls.recall.arms())

    async def retain(
        self,
        bank: str,
        facts: Iterable[Fact] | Fact,
        *,
        model: str | None = None,
        link: str | None = None,
        replace: str | None = None,
        progress: Progress | None = None,
        strict: bool = False,
    ) -> list[Retained]:
        """Store facts: all of them or, if one is malformed, none.

        Known facts are not stored again, and keep their tags, metadata and confidence, whatever is
        given; entities, relations, links, questions and an embedding are added to them.

        Args:
            bank: Name of an existing bank.
            facts: One or more mappings in the documented format, or texts. Facts without an
                embedding are embedded, unless the bank knows them. A datetime without a zone is in
                the client's; dates, and times as text without a zone, are in UTC.
            model: Name of the model of given embeddings.
            link: "now", or "deferred" to leave the links to :meth:`link_pending`.
            replace: Which older facts end when these were mentioned: "key" for those with the same
                fact_key, "relation" for those whose same relation leads from the same entity to
                another one, "both", or "none". Default: the bank's setting.
            progress: Called with the number of further facts embedded.
            strict: Whether to raise errors of the embedder and store nothing. Default: if it fails,
                facts are stored without embedding, and their rows say so.

        Returns:
            One row per fact, in order.

        Raises:
            BankNotFound: no bank has that name.
            InvalidFact: a fact is malformed; the message names the fact and the field.
            UnknownFactType: the bank has no such fact type.
            DimensionMismatch: an embedding does not have the bank's number of dimensions.
            ModelMismatch: the embeddings are not of the bank's model.
            InvalidEmbedding: an embedding is empty, all zeros, or not finite.
            InvalidArgument: link or replace has another value.
            Exception: with strict, what the embedder raised, such as EmbedderUnavailable.

        """
        check_given(model=model, link=link, replace=replace, progress=progress, strict=strict)
        with telemetry.operation("retain", bank):
            settings = await self._settings_for(bank)
            batch = await _compute(FactBatch, settings, facts, model, strict)
            if batch.needs_embeddings:
                batch.add_stored(await self._run(batch.stored_call(bank)))
            for chunk in batch.chunks():
                start = perf_counter()
                await _compute(batch.embed, chunk)
                telemetry.stage("embed", perf_counter() - start)
                if progress:
                    progress(len(chunk))
            rows = await self._run(batch.call(bank, link, replace))
            memory_ids = [row.memory_id for row in rows]
            await self._embed_words(settings, bank, strict, batch.listings, memory_ids)
            return rows

    async def _embed_words(
        self,
        settings: Settings,
        bank: str,
        is_strict: bool,
        listings: Iterable[Listing],
        memory_ids: list[int] | None = None,
    ) -> None:
        """Embed words of relations, by which questions find them, and names that may be short."""
        if settings.embedder is None:
            return
        model = settings.embedder.model
        texts = [
            text
            for pending in listings
            for text in await self._run(pending(bank, model=model, memory_ids=memory_ids))
        ]
        vectors = await _compute(word_vectors, settings.embedder, texts, is_strict)
        if vectors:
            await self._run(
                calls.retain.embed_store(bank, model=model, texts=texts, vectors=vectors)
            )

    async def retain_many(
        self,
        bank: str,
        facts: Iterable[Fact] | Fact,
        *,
        model: str | None = None,
        link: str | None = None,
        replace: str | None = None,
        batch_size: int = STREAM_BATCH,
        progress: Progress | None = None,
        strict: bool = False,
    ) -> Retention:
        """Store a stream of facts, batch by batch.

        If a batch is refused, earlier batches stay. Since known facts are skipped, the whole stream
        can be sent again.

        Args:
            bank: As for :meth:`retain`.
            facts: As for :meth:`retain`; `to_index` of a link counts from the start of the stream.
            model: As for :meth:`retain`.
            link: As for :meth:`retain`.
            replace: As for :meth:`retain`.
            batch_size: Facts per batch, at least 1.
            progress: As for :meth:`retain`.
            strict: As for :meth:`retain`.

        Raises:
            RecallError: as :meth:`retain`; the position counts from the start of the stream.

        """
        stream = Stream()
        for batch in stream.batches(several(facts), batch_size):
            with stream.positions():
                relinked = stream.relinked(batch)
                rows = await self.retain(
                    bank,
                    relinked,
                    model=model,
                    link=link,
                    replace=replace,
                    progress=progress,
                    strict=strict,
                )
            stream.add(rows)
        return stream.retention()

    async def retain_bulk(
        self,
        bank: str,
        facts: Iterable[Fact] | Fact,
        *,
        model: str | None = None,
        link: str | None = None,
        replace: str | None = None,
        workers: int | None = None,
        batch_size: int = STREAM_BATCH,
        progress: bulk.BulkProgress | None = None,
        refused: bulk.Refused | None = None,
        strict: bool = False,
    ) -> BulkRetention:
        """Load many facts: several batches concurrently, then indexes and links.

        Each batch is committed, and all arms find its facts at once. An interrupted load can be run
        again: stored facts are neither embedded nor written again, and indexes and links continue.
        Needs a client from :meth:`connect`, or a pool.

        Args:
            bank: As for :meth:`retain`.
            facts: As for :meth:`retain_many`. One batch per worker and one more are held in memory.
            model: As for :meth:`retain`.
            link: "now", or "deferred" to leave vector indexes to :meth:`index_plan` and links to
                :meth:`link_pending`, such as between several files.
            replace: As for :meth:`retain`. Unless it is "none", batches with keys or relations are
                written in order, one at a time.
            workers: Concurrent connections, at most the size of the pool. Default: 4.
            batch_size: As for :meth:`retain_many`.
            progress: Called with the task, "retain", "index", "link" or "maintain", and the number
                done.
            refused: Called with the position of a refused fact and its error; the fact is skipped.
                Default: the error is raised.
            strict: As for :meth:`retain`.

        Raises:
            RecallError: as :meth:`retain_many`.
            InvalidArgument: workers or batch_size is below 1, or the client uses the caller's
                connection.

        """
        load = bulk.Load(
            model=model,
            replace=replace,
            batch_size=batch_size,
            progress=progress,
            refused=refused,
        )
        check_given(strict=strict)
        if link not in (None, "now", "deferred"):
            raise InvalidArgument(f'link must be "now" or "deferred", not "{link}"')
        clients = await self._bulk_clients(workers)
        try:
            with telemetry.operation("retain_bulk", bank):
                async with AsyncBoundedWork(len(clients)) as work:

                    async def write(batch: bulk.Part, number: int) -> None:
                        client = clients.pop()
                        try:
                            await client._load(load, work, number, bank, batch, replace, strict)
                        finally:
                            clients.append(client)

                    for batch in load.batches(facts):
                        await work.start(partial(write, batch))
                        if batch.start == 0:  # the first batch fixes the model and the mean length
                            await work.idle()
                await self._embed_words(await self._settings_for(bank), bank, strict, LISTINGS)
                due = [] if link == "deferred" else await self._index_and_link(load, clients, bank)
            return load.retention(due)
        finally:
            self._replicas.wrote()
            for client in clients:
                if client is not self:
                    await client.close()

    async def _bulk_clients(self, workers: int | None) -> list[AsyncRecall]:
        """Make clients for concurrent work."""
        check_type("workers", workers, int | None)
        if workers is not None and workers < 1:
            raise InvalidArgument(f"workers must be at least 1, not {workers}")
        if not isinstance(self._source, psycopg.AsyncConnection):
            most = getattr(self._source, "max_size", None) or bulk.WORKERS
            return [self] * min(workers or bulk.WORKERS, most)
        if self._dsn is None:
            raise InvalidArgument(
                "a bulk load opens its own connections, but this client uses the caller's",
                hint="Make the client with Recall.connect(dsn), or on a pool.",
            )
        clients: list[AsyncRecall] = []
        try:
            for _ in range(workers or bulk.WORKERS):
                client = AsyncRecall(await _connected(self._dsn), embedder=None, reranker=None)
                client._settings, client._dsn = self._settings, self._dsn
                clients.append(client)
        except BaseException:
            for client in clients:
                await client.close()
            raise
        return clients

    async def _load(
        self,
        load: bulk.Load,
        work: AsyncBoundedWork,
        number: int,
        bank: str,
        batch: bulk.Part,
        replace: str | None,
        strict: bool,
    ) -> None:
        """Embed and write a batch; if a fact is refused, write those before and after it."""
        settings = await self._settings_for(bank)
        parts = [batch]
        while parts:
            part = parts.pop(0)
            try:
                facts = await _compute(FactBatch, settings, part.facts, part.model, strict)
                if facts.needs_embeddings:
                    facts.add_stored(await self._run(facts.stored_call(bank)))
                for chunk in facts.chunks():
                    work.check()
                    await _compute(facts.embed, chunk)
                part = part.embedded(facts)
                if load.is_ordered(part):
                    await work.first(number)
                facts.facts = [*load.relinked(part)]
                work.check()
                rows = await self._run(facts.call(bank, "deferred", replace))
            except RecallError as error:
                parts[:0] = load.refuse(part, error)
            else:
                load.stored(part, rows)

    async def _index_and_link(
        self, load: bulk.Load, clients: Sequence[AsyncRecall], bank: str
    ) -> list[str]:
        """Build indexes, write links, then count; return the statements that could not be run."""

        async def build(steps: Sequence[IndexStep]) -> None:
            for step in steps:
                await clients[0]._build(step.statement)
                load.note("index", 1)

        due: list[str] = []
        try:
            await self._build_indexes(bank, build)
        except psycopg.errors.InsufficientPrivilege:
            due = [step.statement for step in await self.index_plan(bank)]
        async with AsyncBoundedWork(len(clients)) as work:

            async def write(client: AsyncRecall, number: int) -> None:
                call = calls.retain.link_pending(bank, batch_size=bulk.LINKED_AT_ONCE)
                while linked := await client._run(call):
                    load.note("link", linked)
                    work.check()

            for client in clients:
                await work.start(partial(write, client))
        while done := await self._run(
            calls.operations.maintain(bank, batch_size=10 * bulk.LINKED_AT_ONCE)
        ):
            load.note("maintain", sum(row.documents for row in done))
        return due

    async def _build_indexes(
        self, bank: str | None, build: Callable[[Sequence[IndexStep]], Any]
    ) -> None:
        """Have the vector indexes built that are due, until none is and nobody builds any more.

        Args:
            bank: Name of an existing bank; None for all.
            build: Runs the statements of these steps, in order.

        """
        failed: list[str] = []
        is_done = False
        while not is_done:
            steps = await self.index_plan(bank)
            is_done = not steps
            try:
                await build(steps)
            except bulk.RACES:
                # Another session does the same, unless this fails when nobody builds any more.
                statements = [step.statement for step in steps]  # estimates change with the rows
                if statements == failed and not await self._run(calls.operations.index_builds()):
                    raise
                failed = statements
                await asyncio.sleep(bulk.POLL_SECONDS)  # a build of another role may be hidden
            while await self._run(calls.operations.index_builds()):
                is_done = False
                await asyncio.sleep(bulk.POLL_SECONDS)

    async def _build(self, statement: str) -> None:
        """Run a statement outside a transaction, without a time limit."""
        async with self._connection(Trace()) as connection:
            was_autocommit = connection.autocommit
            await connection.set_autocommit(True)
            try:
                await connection.execute(calls.operations.UNLIMITED)
                await connection.execute(statement.encode())
            finally:
                if not connection.closed:
                    await connection.execute(calls.operations.LIMITED)
                    await connection.set_autocommit(was_autocommit)

    async def retain_messages(
        self, bank: str, messages: Iterable[Mapping[str, object]]
    ) -> list[RetainedMessage]:
        """Store raw messages: all of them or, if one is malformed, none.

        Args:
            bank: Name of an existing bank.
            messages: Mappings in the documented format.

        Returns:
            One row per message, in order.

        Raises:
            BankNotFound: no bank has that name.
            InvalidFact: a message is malformed; the error names the message and the field.

        """
        zone = self._settings.timezone
        return await self._run(calls.retain.retain_messages(bank, messages, zone=zone))

    async def retain_many_messages(
        self,
        bank: str,
        messages: Iterable[Mapping[str, object]],
        *,
        batch_size: int = STREAM_BATCH,
        progress: Progress | None = None,
    ) -> Retention:
        """Store a stream of raw messages, batch by batch.

        Args:
            bank: Name of an existing bank.
            messages: As for :meth:`retain_messages`.
            batch_size: Messages per batch, at least 1.
            progress: Called with how many more messages have been stored.

        Raises:
            RecallError: as :meth:`retain_messages`; the position counts from the start.

        """
        check_type("messages", messages, Iterable[object])
        check_given(progress=progress)
        stream = Stream()
        for batch in stream.batches(messages, batch_size):
            with stream.positions():
                rows = await self.retain_messages(bank, batch)
            stream.add(rows)
            if progress:
                progress(len(rows))
        return stream.retention()

    async def retain_conversation(
        self,
        bank: str,
        messages: Iterable[Mapping[str, object]],
        *,
        extract: Extractor,
        messages_at_once: int = talk.MESSAGES_AT_ONCE,
        replace: str | None = None,
        progress: Progress | None = None,
        again: bool = False,
    ) -> Extraction:
        """Store messages, and the facts that an extractor makes of them.

        Facts are made of messages that the bank does not have yet, so a conversation can be sent
        again, or as a window that slides: known messages are only read as the context of new ones,
        and what was forgotten stays so. A message without ``sent_at`` that repeats another one of
        its session is stored once, and facts are made of it where it follows a new one. Batch by
        batch, the facts are stored and then their messages, each in a transaction of its own unless
        the caller has one: after an error or a crash, send the same messages, and it goes on where
        it stopped.

        An extractor that fails is called three times more; a fact that is refused is left out
        alone. Both are listed in the result. Their messages are stored and found nevertheless, and
        therefore known: pass ``again`` to make facts of them.

        Args:
            bank: Name of an existing bank.
            messages: As for :meth:`retain_messages`.
            extract: A function from messages to facts in retain's format, such as a
                :class:`~pgrecall.extraction.RuleExtractor`, which needs no model, or an
                :class:`~pgrecall.extraction.OpenAIExtractor`. It may be a coroutine function. The
                session and the time of the last message are the defaults of source_id and
                mentioned_at, for null too. It is given new messages; one with a method
                ``extract_new`` is also given the known ones among them.
            messages_at_once: Maximum number of messages per call, all of one session.
            replace: As for :meth:`retain`.
            progress: Called with the number of further messages read.
            again: Whether facts are made of known messages, too. Known facts are not stored again,
                but forgotten ones are.

        Raises:
            BankNotFound: no bank has that name.
            InvalidFact: a message is malformed; then nothing is stored.
            InvalidArgument: messages_at_once is below 1, or replace has another value.

        """
        check_type("messages_at_once", messages_at_once, int)
        check_given(extract=extract, replace=replace, progress=progress, again=again)
        if messages_at_once < 1:
            raise InvalidArgument(f"messages_at_once must be at least 1, not {messages_at_once}")
        check_type("messages", messages, Iterable[object])
        all_messages = list(messages)
        zone = self._settings.timezone
        is_new = await self._run(calls.retain.are_new_messages(bank, all_messages, zone=zone))
        wanted = [again or one for one in talk.to_extract(all_messages, is_new)]
        zoned = [talk.zoned(message, zone) for message in all_messages]
        stored: list[RetainedMessage] = []
        kept: list[Retained] = []
        failures: list[ExtractionFailure] = []
        for first, batch in talk.batches(zoned, messages_at_once):
            chosen = wanted[first : first + len(batch)]
            facts, problem = await _compute(talk.extracted, extract, batch, chosen)
            if problem is not None:
                failures.append(talk.failure(first, batch, problem, None))
            while facts:
                try:
                    kept += await self._retain_apart(bank, facts, replace)
                    break
                except (InvalidFact, UnknownFactType, UntrustedSource) as error:
                    # One at a time, to find those that can be stored.
                    place = error.position or 0
                    failures.append(talk.failure(first, batch, str(error), facts[place]))
                    facts = talk.without(facts, place)
            rows = await self.retain_messages(bank, batch)
            stored += [talk.placed(first, row) for row in rows]
            if progress:
                progress(len(batch))
        talk.warn(failures)
        return Extraction(stored, kept, failures)

    async def _retain_apart(
        self, bank: str, facts: Iterable[Fact], replace: str | None
    ) -> list[Retained]:
        """Retain facts so that a refusal does not abort the caller's transaction."""
        if self._is_outside_transaction():
            return await self.retain(bank, facts, replace=replace)
        async with cast("Connection", self._source).transaction():
            return await self.retain(bank, facts, replace=replace)

    async def get(self, bank: str, memory_id: int) -> Memory:
        """Return a memory, even one that has ended.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such memory.

        """
        check_type("memory_id", memory_id, int)
        found = await self._read(calls.memories.stored_memories(bank, [memory_id]))
        if not found:
            raise MemoryNotFound(
                f'bank "{bank}" has no memory {memory_id}',
                hint="Pass ids that retain() or a recall on the same bank returned.",
            )
        return found[0]

    async def list_memories(
        self,
        bank: str,
        *,
        filter: str | Sequence[object] | None = None,
        fact_types: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        during: Period | None = None,
        entity: str | None = None,
        as_of: datetime | None = None,
        is_ended_too: bool = False,
        before_id: int | None = None,
        top_k: int | None = None,
    ) -> list[Memory]:
        """List the memories that meet all given conditions, latest stored first.

        Args:
            bank: Name of an existing bank.
            filter: A filter, as for a recall.
            fact_types: Only facts of these types.
            tags: Only facts with any of these tags.
            during: Only what occurred in (start, end) or, if that is unknown, was mentioned then.
                Either may be None.
            entity: Only memories that mention an entity with this name.
            as_of: Only memories valid at that time. Default: now.
            is_ended_too: Whether to list ended memories as well; no effect beside as_of.
            before_id: For the next page, the last memory_id of the page before.
            top_k: Maximum number of memories, 1 to 100,000. Default: 50.

        Raises:
            BankNotFound: no bank has that name.
            UnknownFactType: the bank has no such fact type.
            InvalidFilter: the filter is not understood.
            InvalidArgument: an argument is out of its range.

        """
        return await self._read(
            calls.memories.page(
                "list_memories",
                {"bank": bank},
                filter=filter,
                fact_types=fact_types,
                tags=tags,
                during=self._settings.period(during),
                entity=entity,
                as_of=self._settings.moment(as_of),
                is_ended_too=is_ended_too,
                before_id=before_id,
                top_k=top_k,
            )
        )

    async def find_memories(
        self,
        bank: str,
        words: str,
        *,
        filter: str | Sequence[object] | None = None,
        fact_types: Sequence[str] | None = None,
        during: Period | None = None,
        entity: str | None = None,
        as_of: datetime | None = None,
        is_ended_too: bool = False,
        before_id: int | None = None,
        top_k: int | None = None,
    ) -> list[Memory]:
        """List the memories with all of these words, latest stored first, for a search box.

        Args:
            bank: Name of an existing bank.
            words: Words of their text, context or key, compared as in a recall, but accents as
                typed. The last one may be only begun, unless a space follows it.
            filter: As for :meth:`list_memories`, as are the other arguments.
            fact_types: Likewise.
            during: Likewise.
            entity: Likewise.
            as_of: Likewise.
            is_ended_too: Likewise.
            before_id: Likewise.
            top_k: Likewise.

        Raises:
            RecallError: as :meth:`list_memories`.

        """
        return await self._read(
            calls.memories.page(
                "find_memories",
                {"bank": bank, "words": words},
                filter=filter,
                fact_types=fact_types,
                during=self._settings.period(during),
                entity=entity,
                as_of=self._settings.moment(as_of),
                is_ended_too=is_ended_too,
                before_id=before_id,
                top_k=top_k,
            )
        )

    async def memory_counts(
        self,
        bank: str,
        *,
        unit: str | None = None,
        basis: str | None = None,
        filter: str | Sequence[object] | None = None,
    ) -> list[MemoryCount]:
        """Count the memories of each type by time, in order.

        Args:
            bank: Name of an existing bank.
            unit: "hour", "day", "week", "month", "quarter" or "year", in UTC. Default: "month".
            basis: When they were "stored", "said" or "occurred"; those without that time are not
                counted. Default: "stored".
            filter: A filter, as for a recall.

        Raises:
            BankNotFound: no bank has that name.
            InvalidFilter: the filter is not understood.
            InvalidArgument: unit or basis has another value.

        """
        return await self._read(
            calls.browsing.memory_counts(bank, unit=unit, basis=basis, filter=filter)
        )

    async def memory_details(self, bank: str, memory_id: int) -> MemoryDetail:
        """Return what belongs to a memory: entities, relations, embeddings and corrections.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such memory.

        """
        return await self._read(calls.browsing.memory_details(bank, memory_id))

    async def history(self, bank: str, memory_id: int, *, top_k: int | None = None) -> list[Memory]:
        """List all versions of a fact, oldest first.

        Args:
            bank: Name of an existing bank.
            memory_id: Any version of the fact.
            top_k: Maximum number of versions, 1 to 1000. Default: 100.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such memory.
            InvalidArgument: top_k is out of its range.

        """
        return await self._read(calls.memories.memory_history(bank, memory_id, top_k=top_k))

    async def update(
        self,
        bank: str,
        memory_id: int,
        *,
        model: str | None = None,
        strict: bool = False,
        **changes: object,
    ) -> Memory:
        """Replace a memory by a new version with other fields; the old one stays in the history.

        A new text is embedded, in its context; a new context alone, or the same text again, leaves
        the embedding as it is.
        Other fields are kept, except entities and relations that a new text no longer names; the
        result lists these.

        Args:
            bank: Name of an existing bank.
            memory_id: The memory.
            model: Name of the model of a given embedding.
            strict: Whether to raise errors of the embedder and change nothing. Default: if it
                fails, a new text has no embedding until :meth:`embed_pending`, and the questions
                stay as they are.
            changes: Fields of a fact, as for :meth:`retain`; None removes a field.

        Returns:
            The new version, or the memory itself if nothing changes.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such memory.
            InvalidFact: a field is unknown or malformed.
            InvalidArgument: no field is given, or the memory has ended.
            RecallError: as :meth:`retain`.

        """
        check_given(model=model, strict=strict)
        settings = await self._settings_for(bank)
        known = None
        if "text" in changes and settings.embeds:
            [known, *_] = [
                *await self._run(calls.memories.stored_memories(bank, [memory_id])),
                None,
            ]
        fact, named = await _compute(embedded_changes, settings, changes, model, known, strict)
        return await self._run(calls.memories.update_memory(bank, memory_id, fact, model=named))

    async def forget(
        self,
        bank: str,
        memory_ids: Iterable[int] | int | None = None,
        *,
        filter: str | Sequence[object] | None = None,
        fact_key: str | None = None,
        source_id: str | None = None,
        dry_run: bool | None = None,
    ) -> int:
        """Erase memories with their embeddings, mentions and links, by id or by conditions.

        The message that a fact was extracted from stays, and still answers. Erase it as well, with
        :meth:`forget_messages`: by its id, which :meth:`retain_conversation` and recalls return, or
        by ``session=``, the source_id of the fact. Do not send it again, since it is new then.
        Other facts stay with what their context repeats of it, as those of a
        :class:`~pgrecall.extraction.RuleExtractor`: the filter "context ilike '%...%'" finds them.

        Args:
            bank: Name of an existing bank.
            memory_ids: The memories, if no conditions are given.
            filter: A filter, as for a recall.
            fact_key: Their key; ended memories with this key are erased as well.
            source_id: The document or conversation they came from.
            dry_run: True to only count the memories that meet the conditions. Default: False.

        Returns:
            Number of memories erased.

        Raises:
            BankNotFound: no bank has that name.
            InvalidFilter: the filter is not understood.
            InvalidArgument: conditions or dry_run are given beside ids, or neither is given.

        """
        if memory_ids is None:
            return await self._run(
                calls.memories.forget_where(
                    bank, filter=filter, fact_key=fact_key, source_id=source_id, dry_run=dry_run
                )
            )
        beside: dict[str, object] = {"filter": filter, "fact_key": fact_key, "source_id": source_id}
        beside["dry_run"] = dry_run or None  # false is what it does
        if given := [name for name, value in beside.items() if value is not None]:
            raise InvalidArgument(
                f"forget() takes memory_ids alone, not with {', '.join(given)}",
                hint='Name the ids in the filter: "memory_id in (5, 7)".',
            )
        return await self._run(calls.memories.forget(bank, memory_ids))

    async def forget_messages(
        self,
        bank: str,
        message_ids: Iterable[int] | int | None = None,
        *,
        session: str | None = None,
        during: Period | None = None,
        dry_run: bool | None = None,
    ) -> int:
        """Erase the raw messages that meet all given conditions; facts made of them stay.

        A session without remaining messages is erased as well.

        Args:
            bank: Name of an existing bank.
            message_ids: Only these messages.
            session: Only messages of this session.
            during: Only messages sent in [start, end), either of which may be None. Times without a
                zone are in the client's.
            dry_run: True to only count them. Default: False.

        Returns:
            Number of messages erased.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: no condition is given.

        """
        return await self._run(
            calls.memories.forget_messages(
                bank,
                message_ids,
                session=session,
                during=self._settings.period(during),
                dry_run=dry_run,
            )
        )

    async def supersede(
        self,
        bank: str,
        memory_id: int,
        *,
        superseded_by: int | None = None,
        at: datetime | None = None,
        reach: str | None = None,
        dry_run: bool | None = None,
    ) -> list[Corrected]:
        """End a memory; it still answers questions about earlier times.

        Args:
            bank: Name of an existing bank.
            memory_id: The memory to end.
            superseded_by: The memory that replaces it.
            at: When it ends. Default: now.
            reach: "copies" to also end what :meth:`near_copies` lists. Default: "memory".
            dry_run: True to only return what would end. Default: False.

        Returns:
            The ended memories, this one first.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such memory.
            InvalidArgument: the memory would supersede itself, or reach has another value.

        """
        at = self._settings.moment(at)
        return await self._run(
            calls.memories.supersede(
                bank, memory_id, superseded_by=superseded_by, at=at, reach=reach, dry_run=dry_run
            )
        )

    async def near_copies(
        self,
        bank: str,
        memory_id: int,
        *,
        superseded_by: int | None = None,
        min_similarity: float | None = None,
        as_of: datetime | None = None,
    ) -> list[NearCopy]:
        """List the memories that say nearly the same as a memory, nearest first.

        Args:
            bank: Name of an existing bank.
            memory_id: The memory.
            superseded_by: Its successor; memories nearer to the successor are left out.
            min_similarity: Minimum similarity, 0 to 1. Default: 0.85.
            as_of: Only memories valid at that time. Default: now.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such memory.
            InvalidArgument: min_similarity is out of its range.

        """
        as_of = self._settings.moment(as_of)
        return await self._read(
            calls.memories.near_copies(
                bank,
                memory_id,
                superseded_by=superseded_by,
                min_similarity=min_similarity,
                as_of=as_of,
            )
        )

    async def unsupersede(self, bank: str, memory_id: int) -> list[Corrected]:
        """Revert the last correction of a memory, and of the memories corrected with it.

        Args:
            bank: Name of an existing bank.
            memory_id: A memory that was superseded, replaced, merged or updated; of an update the
                new version ends.

        Returns:
            The restored memories, this one first.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such memory.
            InvalidArgument: the memory was not corrected, or another one says the same now.

        """
        return await self._run(calls.memories.unsupersede(bank, memory_id))

    async def consolidate(
        self,
        bank: str,
        *,
        dry_run: bool | None = None,
        min_similarity: float | None = None,
        top_k: int | None = None,
    ) -> list[Consolidated]:
        """Merge memories that say the same into the most confident of them.

        Args:
            bank: Name of an existing bank.
            dry_run: False to merge them. Default: True, which only lists what would be merged.
            min_similarity: Minimum similarity of different texts, 0 to 1. Default: 0.95.
            top_k: Maximum number of memories to merge, 1 to 100,000. Default: 1000.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: an argument is out of its range.

        """
        return await self._run(
            calls.memories.consolidate(
                bank, dry_run=dry_run, min_similarity=min_similarity, top_k=top_k
            )
        )

    async def unconsolidate(self, bank: str) -> list[Corrected]:
        """Undo the latest :meth:`consolidate` that is not undone yet.

        Returns:
            The restored memories; empty if there is nothing to undo.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: another memory says the same as one of them now.

        """
        return await self._run(calls.memories.unconsolidate(bank))

    async def quarantine(
        self, bank: str, source: str, *, dry_run: bool | None = None
    ) -> list[Corrected]:
        """Remove the facts of a source from all recalls, and refuse new ones.

        Memories that they had ended are valid again. :meth:`release` undoes it.

        Args:
            bank: Name of an existing bank.
            source: A source_id, or a prefix with an asterisk, such as "web:*".
            dry_run: True to only list what would change. Default: False.

        Returns:
            The changed memories.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: source is not a source_id or prefix.

        """
        return await self._run(calls.memories.quarantine(bank, source, dry_run=dry_run))

    async def release(self, bank: str, source: str) -> list[Corrected]:
        """Undo :meth:`quarantine`, row for row.

        Args:
            bank: Name of an existing bank.
            source: The source, as given to :meth:`quarantine`.

        Returns:
            The restored memories; those corrected again since are not changed.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: the source is not in quarantine, or another memory says the same as one
                of them now.

        """
        return await self._run(calls.memories.release(bank, source))

    async def audit(
        self,
        bank: str,
        *,
        since: datetime | None = None,
        source: str | None = None,
        top_k: int | None = None,
    ) -> list[Audited]:
        """List who stored, ended and replaced which memories, latest first.

        Forgotten memories and reverted corrections are not listed.

        Args:
            bank: Name of an existing bank.
            since: Only actions from this time on. Default: all.
            source: Only memories of this source: a source_id, or a prefix with an asterisk, such as
                "web:*". Default: all.
            top_k: Maximum number of rows. Default: 1000.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: an argument is out of its range.

        """
        since = self._settings.moment(since)
        return await self._run(calls.memories.audit(bank, since=since, source=source, top_k=top_k))

    async def log_session(
        self,
        bank: str,
        session: str,
        *,
        started_at: datetime | None = None,
        ended_at: datetime | None = None,
    ) -> None:
        """Record when a conversation took place, for "since we last talked".

        Args:
            bank: Name of an existing bank.
            session: Name of the conversation.
            started_at: Default: now.
            ended_at: None while the conversation goes on.

        Raises:
            BankNotFound: no bank has that name.

        """
        started_at, ended_at = self._settings.moment(started_at), self._settings.moment(ended_at)
        await self._run(
            calls.retain.log_session(bank, session, started_at=started_at, ended_at=ended_at)
        )

    async def last_session_end(
        self, bank: str, *, before: datetime | None = None
    ) -> datetime | None:
        """Return when the last conversation ended; None if there was none.

        Args:
            bank: Name of an existing bank.
            before: The time to look back from. Default: now.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._read(
            calls.retain.last_session_end(bank, before=self._settings.moment(before))
        )

    async def refresh_statistics(self, bank: str, *, is_full: bool | None = None) -> None:
        """Refresh the word counts of a bank, on which BM25 is based.

        Args:
            bank: Name of an existing bank.
            is_full: Count everything, not only documents stored since the last refresh.

        Raises:
            BankNotFound: no bank has that name.

        """
        await self._run(calls.operations.refresh_statistics(bank, is_full=is_full))

    async def bank_statistics(self, bank: str) -> list[BankStatistics]:
        """Return the BM25 statistics of a bank, and the number of documents not counted yet.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._read(calls.operations.bank_statistics(bank))

    async def highlight(
        self,
        bank: str,
        memory_id: int,
        query: str,
        *,
        start_mark: str | None = None,
        end_mark: str | None = None,
    ) -> str:
        """Mark the words in a memory's text that match a query.

        Args:
            bank: Name of an existing bank.
            memory_id: A memory of that bank.
            query: The query.
            start_mark: Inserted before each matching word or run of words. Default: <mark>.
            end_mark: Inserted after it. Default: </mark>.

        Returns:
            The text, otherwise unchanged and not escaped.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such memory.

        """
        return await self._read(
            calls.recall.highlight(bank, memory_id, query, start_mark=start_mark, end_mark=end_mark)
        )

    async def vocabulary_drift(self, bank: str) -> float | None:
        """Compare a bank's most frequent words with those of its snapshot.

        Returns:
            Their Jaccard similarity, 0 to 1; None before the first count.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._read(calls.operations.vocabulary_drift(bank))

    async def snapshot_vocabulary(self, bank: str) -> None:
        """Store the bank's most frequent words, the baseline of ``vocabulary_drift``.

        Raises:
            BankNotFound: no bank has that name.

        """
        await self._run(calls.operations.snapshot_vocabulary(bank))

    async def link_pending(self, bank: str, *, batch_size: int | None = None) -> int:
        """Link facts that were retained with ``link="deferred"``.

        Args:
            bank: Name of an existing bank.
            batch_size: Maximum number of facts to link, 1 to 100,000. Default: 1000.

        Returns:
            Number of facts linked; 0 if none is left.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: batch_size is out of its range.

        """
        return await self._run(calls.retain.link_pending(bank, batch_size=batch_size))

    async def maintain(
        self, bank: str | None = None, *, batch_size: int | None = None
    ) -> list[Maintained]:
        """Do work that ``retain`` left pending: count, weigh and link documents.

        The work per call is bounded; call it until the result is empty.

        Args:
            bank: Name of an existing bank. Default: all banks in turn.
            batch_size: Maximum number of documents per task, 1 to 100,000. Default: 500.

        Returns:
            What was done; empty if nothing is left.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: batch_size is out of its range.

        """
        return await self._run(calls.operations.maintain(bank, batch_size=batch_size))

    async def attach_table(
        self,
        bank: str,
        relation: str,
        *,
        key: str,
        text: str,
        fact_type: str | None = None,
        occurred: str | None = None,
        entities: Sequence[str] = (),
        fields: Mapping[str, str | Sequence[str]] | None = None,
        apply: str | None = None,
        is_history_kept: bool | None = None,
    ) -> AttachedTable:
        """Attach your own table to a bank, whose memories its rows become.

        From now on triggers record its changes. Call :meth:`sync_table` to copy rows.

        Args:
            bank: Name of an existing bank.
            relation: The table, owned by the role of the connection.
            key: The column that identifies rows: an integer, a text or a uuid.
            text: The column with the text; rows without text have no memory.
            fact_type: Fact type of the memories. Default: "world".
            occurred: A column with times, dates or ranges.
            entities: Columns with one or more names, or with JSON as for ``retain``.
            fields: Columns for other fields, such as ``{"context": "title", "tags": ["labels"]}``.
            apply: "later" leaves changes to ``sync_table``; "commit" applies them when their
                transaction commits, with exclusive access to the bank. Default: "later".
            is_history_kept: Whether the old text of a changed row stays in the history, for recalls
                as of an earlier time. Default: true.

        Raises:
            BankNotFound: no bank has that name.
            NotPermitted: the role does not own the table, or may not write into the bank.
            InvalidArgument: a column is missing or does not fit.

        """
        return await self._run(
            calls.operations.attach_table(
                bank,
                relation,
                key=key,
                text=text,
                fact_type=fact_type,
                occurred=occurred,
                entities=entities,
                fields=fields,
                apply=apply,
                is_history_kept=is_history_kept,
            )
        )

    async def sync_table(
        self,
        bank: str,
        relation: str | None = None,
        *,
        batch_size: int | None = None,
        progress: Progress | None = None,
    ) -> list[SyncedTable]:
        """Copy new and changed rows of attached tables to a bank.

        Afterwards the bank holds everything committed before the call. On a pool or in autocommit
        mode each batch is committed. New texts have no embedding: call :meth:`embed_pending`.

        Args:
            bank: Name of an existing bank.
            relation: An attached table, with or without its schema. Default: all tables of the
                bank.
            batch_size: Rows and changes of a table per batch. Default: 1000.
            progress: Called with the number of further rows read.

        Returns:
            What was done to each table.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: batch_size is out of its range.
            RecallError: the table is not attached, or has changed so that it cannot be read; of all
                tables of the bank the others are synced before.

        """
        check_given(progress=progress)
        done: dict[str, SyncedTable] = {}
        while True:
            batch = await self._run(
                calls.operations.sync_table(bank, relation, batch_size=batch_size)
            )
            for table in batch:
                done[table.relation] = table.after(done.get(table.relation))
                if progress:
                    progress(table.looked_at)
            if all(table.is_complete for table in batch):
                return list(done.values())

    async def attached_tables(self, bank: str) -> list[AttachedTable]:
        """List the tables attached to a bank, and how far behind each one is.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._read(calls.operations.attached_tables(bank))

    async def detach_table(
        self, bank: str, relation: str, *, is_forgotten: bool | None = None
    ) -> int:
        """Detach a table; its memories stay as ordinary ones.

        Args:
            bank: Name of an existing bank.
            relation: An attached table, with or without its schema; it may be dropped already.
            is_forgotten: Whether to erase its memories as well.

        Returns:
            How many memories were made of it.

        Raises:
            BankNotFound: no bank has that name.
            NotPermitted: the role does not own the table.
            RecallError: the table is not attached.

        """
        return await self._run(
            calls.operations.detach_table(bank, relation, is_forgotten=is_forgotten)
        )

    async def recall_stats(
        self, bank: str | None = None, *, since: datetime | None = None
    ) -> list[RecallTimes]:
        """Return the number and the times of recalls of banks, from a sample.

        ``configure_bank(bank, {"log_share": 0.01})`` turns sampling on. A client from
        :meth:`connect` writes its sample to the table recall_log a few seconds later, over another
        connection. Recalls of :meth:`recall_many` are not sampled.

        Args:
            bank: Name of an existing bank. Default: all banks.
            since: Only recalls from this time on. Default: the last day.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._read(
            calls.operations.recall_stats(bank, since=self._settings.moment(since))
        )

    async def pending_links(self, bank: str) -> int:
        """Count the facts that wait for ``link_pending``.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._run(calls.retain.pending_links(bank))

    async def embed_pending(
        self,
        bank: str,
        *,
        batch_size: int = EMBED_BATCH,
        from_id: int = 0,
        again: bool = False,
        progress: Progress | None = None,
    ) -> int:
        """Embed memories without an embedding, such as those retained in SQL.

        If the embedder makes token vectors, also embed memories without token vectors. Names that
        may be short for others are embedded to tell, and not counted. On a pool or in autocommit
        mode each batch is committed, so an interrupted call can be repeated.

        Args:
            bank: Name of an existing bank.
            batch_size: Texts per batch, at least 1.
            from_id: Only memories from this id on.
            again: Embed what has an embedding anew, too, as when a later version of the embedder
                reads more of a text, such as the end of a long one. The bank stays searchable.
            progress: Called with the number of further texts embedded.

        Returns:
            Number of embeddings or token vectors stored.

        Raises:
            BankNotFound: no bank has that name.
            ModelMismatch: the bank is embedded with another model.
            InvalidArgument: the client has no embedder, or batch_size is out of its range.
            EmbedderUnavailable: the embedder's package or model is missing.

        """
        check_given(progress=progress)
        check_type("again", again, bool)
        settings = await self._settings_for(bank)
        embedder = settings.embedder
        if embedder is None:
            raise InvalidArgument(
                "the client has no embedder", hint="Make it with embedder=..., not None."
            )
        done = 0
        lists = [(calls.retain.embedded_texts, calls.retain.embed_again)] if again else []
        lists += [(calls.retain.embed_pending, calls.retain.embed_store)]
        if makes_tokens(embedder):
            lists += [(calls.retain.tokens_pending, calls.retain.embed_store)]
        for pending, store in lists:
            start = from_id
            while texts := await self._run(pending(bank, from_id=start, batch_size=batch_size)):
                vectors = await _compute(pending_vectors, embedder, texts)
                call = store(bank, model=embedder.model, texts=texts, vectors=vectors)
                done += await self._run(call)
                start = texts[-1].memory_id + 1
                if progress:
                    progress(len(texts))
        await self._embed_words(settings, bank, True, [calls.retain.names_pending])
        return done

    async def calibrate_bank(
        self, bank: str, calibration: Calibration | Mapping[str, object] | None
    ) -> int:
        """Set the constants of the model of a bank, or of its next model.

        With the constants that :func:`pgrecall.calibrate` measures, floors and relevance
        mean the same as with the packaged model. Stored embeddings are rewritten in place.

        Args:
            bank: Name of an existing bank.
            calibration: The constants; None to remove them.

        Returns:
            Number of embeddings that were rewritten.

        Raises:
            BankNotFound: no bank has that name.
            DimensionMismatch: the mean does not have the bank's number of dimensions.
            ModelMismatch: the bank is embedded with another model, or one without a name.
            InvalidEmbedding: the mean is not a vector.
            InvalidArgument: a constant is out of its range.

        """
        given = calibration.as_json() if isinstance(calibration, Calibration) else calibration
        return await self._run(calls.operations.calibrate_bank(bank, given))

    async def reembed_fill(
        self,
        bank: str,
        embedder: Embedder | EmbedFunction,
        *,
        batch_size: int = EMBED_BATCH,
        rate: float | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Make a second set of embeddings with another model, beside the current one.

        Begins, or continues after an interruption, until nothing is pending. Then
        :meth:`reembed_finish` can switch the bank. On a pool or in autocommit mode each batch is
        committed.

        Args:
            bank: Name of an existing bank.
            embedder: Makes the new embeddings; its model is the bank's next model.
            batch_size: Texts per batch, at least 1.
            rate: Maximum texts per second. Default: no limit.
            progress: Called with the number of further texts embedded.

        Returns:
            Number of embeddings made.

        Raises:
            BankNotFound: no bank has that name.
            ReembedRefused: the bank already has that model, has no embeddings, or is changing to
                another model; or this change was cancelled meanwhile.
            DimensionMismatch: the embedder changed the length of its embeddings.
            InvalidArgument: batch_size or rate is out of its range.
            EmbedderUnavailable: the embedder's package or model is missing.

        """
        check_given(progress=progress)
        refill = Refill(bank, embedder, batch_size, rate)
        await self._run(await _compute(refill.start_call))
        while not refill.is_done:
            texts = await self._run(refill.pending_call())
            if texts:
                await self._run(await _compute(refill.store_call, texts))
            pause = refill.advance(texts)
            if progress:
                progress(len(texts))
            await asyncio.sleep(pause)
        return refill.stored

    async def reembed_status(self, bank: str) -> Reembedding:
        """Return the progress of re-embedding a bank; this counts its embeddings.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._run(calls.reembed.reembed_status(bank))

    async def reembed_finish(self, bank: str, *, is_lossy: bool | None = None) -> None:
        """Make the next model the bank's own, atomically.

        Args:
            bank: Name of an existing bank.
            is_lossy: Whether hypothetical questions without text may be lost.

        Raises:
            BankNotFound: no bank has that name.
            ReembedRefused: something is pending or would be lost, or the bank is not being
                re-embedded.

        """
        await self._run(calls.reembed.reembed_finish(bank, is_lossy=is_lossy))

    async def reembed_clean(self, bank: str, *, batch_size: int | None = None) -> int:
        """Remove embeddings of models other than the bank's own.

        Args:
            bank: Name of an existing bank.
            batch_size: Maximum number of memories to process, 1 to 100,000. Default: 100.

        Returns:
            Number of memories that had such embeddings; 0 if none is left.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: batch_size is out of its range.

        """
        return await self._run(calls.reembed.reembed_clean(bank, batch_size=batch_size))

    async def reembed_cancel(self, bank: str) -> None:
        """Cancel re-embedding a bank, which keeps its model.

        Raises:
            BankNotFound: no bank has that name.
            ReembedRefused: the bank is not being re-embedded.

        """
        await self._run(calls.reembed.reembed_cancel(bank))

    async def index_plan(self, bank: str | None = None) -> list[IndexStep]:
        """List the statements that are due to create or drop vector indexes, in order.

        Each runs outside a transaction block; ``pgrecall index --apply`` runs them.

        Args:
            bank: Name of an existing bank. Default: all banks, including dropped ones.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._run(calls.operations.index_plan(bank))

    async def recall_check(
        self,
        bank: str,
        *,
        sample: int | None = None,
        k: int | None = None,
        depth: int | None = None,
        is_next: bool | None = None,
    ) -> list[RecallCheck]:
        """Measure the recall of vector indexes against exact search, per fact type.

        Args:
            bank: Name of an existing bank.
            sample: Number of the bank's own vectors to search with, 1 to 10,000. Default: 100.
            k: Number of nearest vectors to compare, 1 to 1000. Default: 20.
            depth: Depth of the search, from k to 10,000. Default: 100.
            is_next: Whether to search by the bank's next model.

        Raises:
            BankNotFound: no bank has that name.
            ReembedRefused: is_next is given, but the bank is not being re-embedded.
            InvalidArgument: an argument is out of its range.

        """
        return await self._run(
            calls.operations.recall_check(bank, sample=sample, k=k, depth=depth, is_next=is_next)
        )

    async def query_entities(self, bank: str, query: str) -> list[QueryEntity]:
        """List the entities that a query names.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._read(calls.graph.query_entities(bank, query))

    async def list_entities(
        self,
        bank: str,
        *,
        name: str | None = None,
        kind: str | None = None,
        entity_ids: Sequence[int] | None = None,
        before_id: int | None = None,
        top_k: int | None = None,
    ) -> list[ListedEntity]:
        """List the entities that meet all given conditions, those first that most memories mention.

        Args:
            bank: Name of an existing bank.
            name: A part of any of their names.
            kind: Their kind, such as "person".
            entity_ids: Only these.
            before_id: For the next page, the last entity_id of the page before.
            top_k: Maximum number of entities. Default: 50.

        Raises:
            BankNotFound: no bank has that name.
            EntityNotFound: the bank has no entity before_id.
            InvalidArgument: an argument is out of its range.

        """
        return await self._read(
            calls.browsing.list_entities(
                bank, name=name, kind=kind, entity_ids=entity_ids, before_id=before_id, top_k=top_k
            )
        )

    async def path(
        self, bank: str, entity_a: int, entity_b: int, *, longest: int | None = None
    ) -> list[PathStep]:
        """Return a shortest path between two entities, in order; empty if there is none.

        Args:
            bank: Name of an existing bank.
            entity_a: Where it begins. :meth:`query_entities` and :meth:`list_entities` find the ids
                of names.
            entity_b: Where it ends.
            longest: Maximum number of steps, 1 to 10. Default: 6.

        Raises:
            BankNotFound: no bank has that name.
            EntityNotFound: the bank has no such entity.
            InvalidArgument: an id is a name, or longest is out of its range.

        """
        return await self._read(calls.graph.path(bank, entity_a, entity_b, longest=longest))

    async def neighbours(
        self, bank: str, memory_id: int, *, top_k: int | None = None
    ) -> list[Neighbour]:
        """List the neighbours of a memory in the graph, strongest first, with the reason for each.

        Args:
            bank: Name of an existing bank.
            memory_id: The memory.
            top_k: Maximum number of rows. Default: 50.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such memory.
            InvalidArgument: top_k is out of its range.

        """
        return await self._read(calls.browsing.neighbours(bank, memory_id, top_k=top_k))

    async def neighbourhood(
        self,
        bank: str,
        *,
        entity_id: int | None = None,
        memory_id: int | None = None,
        hops: int | None = None,
        as_of: datetime | None = None,
        top_k: int | None = None,
    ) -> list[GraphEdge]:
        """Return the graph around an entity or a memory, nearest edges first.

        Args:
            bank: Name of an existing bank.
            entity_id: The entity where it begins; or else a memory.
            memory_id: The memory where it begins.
            hops: How far it goes, 1 to 3. Default: 1.
            as_of: Only what was valid at that time. Default: now.
            top_k: Maximum number of edges, 1 to 2,000. Default: 150.

        Raises:
            BankNotFound: no bank has that name.
            EntityNotFound: the bank has no such entity.
            MemoryNotFound: the bank has no such memory.
            InvalidArgument: not one of both is given, or an argument is out of its range.

        """
        return await self._read(
            calls.browsing.neighbourhood(
                bank,
                entity_id=entity_id,
                memory_id=memory_id,
                hops=hops,
                as_of=self._settings.moment(as_of),
                top_k=top_k,
            )
        )

    async def type_hints(self, bank: str, query: str) -> list[TypeHint]:
        """List the fact types that the words of a query ask for.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._read(calls.recall.type_hints(bank, query))

    async def message_context(
        self, bank: str, message_id: int, *, before: int | None = None, after: int | None = None
    ) -> list[Turn]:
        """Return a message with the messages before and after it in its session.

        Args:
            bank: Name of an existing bank.
            message_id: The memory_id of a hit of kind "message".
            before: Maximum number of messages before it, 0 to 1000. Default: 2.
            after: Maximum number of messages after it, 0 to 1000. Default: 2.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such message.
            InvalidArgument: an argument is out of its range.

        """
        return await self._read(
            calls.retain.message_context(bank, message_id, before=before, after=after)
        )

    async def merge_entities(self, bank: str, entity_id: int, others: Iterable[int]) -> int:
        """Merge other entities into an entity, which gets their names as aliases.

        Args:
            bank: Name of an existing bank.
            entity_id: The entity to keep.
            others: Entities to merge into it; missing ones are skipped.

        Returns:
            Number of entities merged.

        Raises:
            BankNotFound: no bank has that name.
            EntityNotFound: the bank has no such entity.

        """
        return await self._run(calls.graph.merge_entities(bank, entity_id, others))

    async def split_entity(
        self, bank: str, entity_id: int, memory_ids: Iterable[int], name: str
    ) -> int:
        """Split an entity: some memories then mention a new entity instead.

        Args:
            bank: Name of an existing bank.
            entity_id: The entity to split.
            memory_ids: Memories about the new entity; others must still mention the old one.
            name: Name of the new entity.

        Returns:
            Key of the new entity, even if it was split before.

        Raises:
            BankNotFound: no bank has that name.
            EntityNotFound: the bank has no such entity.
            InvalidArgument: none of the memories mentions the entity, no other does, or the name is
                invalid.

        """
        return await self._run(calls.graph.split_entity(bank, entity_id, memory_ids, name))

    async def rename_entity(self, bank: str, entity_id: int, name: str) -> None:
        """Rename an entity; the old name stays an alias.

        Raises:
            BankNotFound: no bank has that name.
            EntityNotFound: the bank has no such entity.
            InvalidArgument: the name has no letter or digit, or more than 500 characters.

        """
        await self._run(calls.graph.rename_entity(bank, entity_id, name))

    async def duplicate_entities(
        self, bank: str, *, top_k: int | None = None
    ) -> list[DuplicateEntities]:
        """List pairs of possible duplicate entities, likeliest first.

        Args:
            bank: Name of an existing bank.
            top_k: Maximum number of pairs, 1 to 10,000. Default: 50.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: top_k is out of its range.

        """
        return await self._read(calls.graph.duplicate_entities(bank, top_k=top_k))

    async def recall(self, bank: str, query: str, **options: Unpack[RecallOptions]) -> list[Hit]:
        """Find what answers a query, best first.

        Args:
            bank: Name of an existing bank.
            query: The question, at most 100,000 characters.
            options: See :class:`pgrecall.RecallOptions`. Default: those of the bank.

        Returns:
            At most top_k hits.

        Raises:
            BankNotFound: no bank has that name.
            EmptyQuery: there is neither a query nor an embedding.
            UnknownFactType: the bank has no such fact type.
            UnknownArm: an arm or weight has no such name.
            InvalidFilter: the filter is not understood.
            InvalidArgument: an option is unknown or out of its range.
            DimensionMismatch: the embedding does not have the bank's number of dimensions.
            ModelMismatch: the embedding is not of the bank's model.
            InvalidEmbedding: the embedding is empty, all zeros, or not finite.
            OutOfTime: the timeout passed before the database answered.
            ArmFailed: with strict, an arm failed.
            Exception: with strict, what the embedder, the reranker or the function of a
                hypothetical answer raised, such as EmbedderUnavailable or RerankerUnavailable.
            InstallError: the database has no pgrecall, or another version.

        """
        return list((await self.recall_report(bank, query, **options)).hits)

    async def recall_report(
        self, bank: str, query: str, **options: Unpack[RecallOptions]
    ) -> RecallReport:
        """Find what answers a query, with a report on the run: arms, times, what was left out.

        Args:
            bank: Name of an existing bank.
            query: The question, at most 100,000 characters.
            options: As for :meth:`recall`; ``explain=True`` adds the indexes that were scanned.

        Raises:
            RecallError: as :meth:`recall`.

        """
        began = perf_counter()
        with telemetry.recall(bank) as done:
            try:
                return done(await self._answer(bank, query, options, began))
            except ModelMismatch:
                if not self._settings.depends_on_bank or not self._is_outside_transaction():
                    raise
            # The bank switched to its next model between two statements.
            return done(await self._answer(bank, query, options, began))

    async def recall_many(
        self, bank: str, queries: Iterable[str], **options: Unpack[RecallOptions]
    ) -> list[RecallReport]:
        """Find what answers many queries, with the round trips of one.

        They are embedded in one batch and asked in one statement, in one snapshot of the bank.

        Args:
            bank: Name of an existing bank.
            queries: The questions, at most 1,000.
            options: As for :meth:`recall`, for every query; timeout is for all together.

        Returns:
            One report per query, in order; times of embedding and of the database are for all
            together.

        Raises:
            RecallError: as :meth:`recall`; an error in one query fails all.

        """
        began = perf_counter()
        check_type("queries", queries, Iterable[object])
        options = repeated(options)
        questions = [
            Question(self._settings, bank, query, options, on_own_thread, began)
            for query in queries
        ]
        if not questions:
            return []
        if len(questions) > MOST_QUERIES:
            raise InvalidArgument(
                f"there are {len(questions)} queries, more than {MOST_QUERIES}",
                hint="Split them into several calls.",
            )
        trace = questions[0].trace
        for question in questions:
            question.trace = trace
        unprepared = [question for question in questions if question.needs_preparation]
        if unprepared:
            call = together([question.preparation_call() for question in unprepared])
            prepared = await self._read(call, trace)
            for question, found in zip(unprepared, prepared, strict=True):
                question.prepare(found)
        for pending in embed_together(questions):
            await pending.async_settle()
        for question in questions:
            for pending in question.embed():
                await pending.async_settle()
        answers = await self._read(together([one.call() for one in questions]), trace)
        await self._rerank(questions, answers)
        return [question.report() for question in questions]

    async def context(
        self,
        bank: str,
        query: str,
        *,
        max_tokens: int = MAX_TOKENS,
        count_tokens: CountTokens | None = None,
        **options: Unpack[RecallOptions],
    ) -> Context:
        """Write what answers a query for a language model, within a budget.

        Facts are dated, numbered for citation, and marked if another contradicts them. Before a
        text stands who said it: the speaker of a message, or ``speaker`` in the metadata of a fact;
        else its context, if that is a heading. The text ends when the scores show that more would
        not help. The best hit is always in it.

        Args:
            bank: Name of an existing bank.
            query: The question, at most 100,000 characters.
            max_tokens: Maximum number of tokens of the whole text.
            count_tokens: Counts the tokens of a text as the model does. Default: a high estimate.
            options: As for :meth:`recall`. The default of top_k is what the budget can hold.

        Raises:
            InvalidArgument: the budget is too small for one line.
            RecallError: as :meth:`recall`.

        """
        check_type("max_tokens", max_tokens, int)
        check_given(count_tokens=count_tokens)
        if options.get("top_k") is None:
            options["top_k"] = likely_hits(max_tokens)
        report = await self.recall_report(bank, query, **options)
        return make_context(report, max_tokens=max_tokens, count_tokens=count_tokens)

    async def explain(
        self,
        bank: str,
        query: str,
        *,
        is_run: bool | None = None,
        **options: Unpack[RecallOptions],
    ) -> list[ArmReport]:
        """Report on each arm of a recall.

        Args:
            bank: Name of an existing bank.
            query: The question, at most 100,000 characters.
            is_run: False to only report which arms would run, and why. Default: True.
            options: As for :meth:`recall`.

        Raises:
            RecallError: as :meth:`recall`.

        """
        check_type("is_run", is_run, bool | None)
        question = await self._question(bank, query, options, is_strict=True)
        return await self._read(question.explain_call(is_run))

    async def arm_hits(
        self, bank: str, query: str, **options: Unpack[RecallOptions]
    ) -> list[ArmFinding]:
        """List the hits of each arm before fusion, regardless of weights.

        Args:
            bank: Name of an existing bank.
            query: The question, at most 100,000 characters.
            options: As for :meth:`recall`.

        Raises:
            RecallError: as :meth:`recall`.

        """
        question = await self._question(bank, query, options, is_strict=True)
        return await self._read(question.arm_hits_call())

    async def why_not(
        self, bank: str, query: str, memory_id: int, **options: Unpack[RecallOptions]
    ) -> list[RecallStep]:
        """Explain why a memory is not in an answer, or its place in it.

        Args:
            bank: Name of an existing bank.
            query: The question, at most 100,000 characters.
            memory_id: A memory or message of that bank.
            options: As for :meth:`recall`.

        Returns:
            One row per step of the recall, in order; the last one is the answer.

        Raises:
            MemoryNotFound: the bank has no such memory.
            RecallError: as :meth:`recall`.

        """
        check_type("memory_id", memory_id, int)
        question = await self._question(bank, query, options, is_strict=True)
        steps = await self._read(question.why_not_call(memory_id))
        if not question.is_reranked:
            return steps
        if steps[-1].status == "returned":
            await self._rerank([question], [await self._run(question.call(), question.trace)])
        return question.reranked_steps(steps, memory_id)

    async def _answer(
        self, bank: str, query: str, options: RecallOptions, began: float
    ) -> RecallReport:
        question = await self._question(bank, query, options, began=began)
        await self._rerank([question], [await self._read(question.call(), question.trace)])
        report = question.report()
        if self._log is not None:
            self._log.add(bank, question.log_share, report)
        return report

    async def _question(
        self,
        bank: str,
        query: str,
        options: RecallOptions,
        *,
        is_strict: bool = False,
        began: float | None = None,
    ) -> Question:
        """Prepare a question: read its time and embed its texts."""
        question = Question(self._settings, bank, query, options, on_own_thread, began)
        if question.needs_preparation:
            call = question.preparation_call()
            question.prepare(await self._read(call, question.trace))
        for pending in question.embed(is_strict=is_strict):
            await pending.async_settle()
        return question

    async def _rerank(self, questions: Sequence[Question], answers: Sequence[Answer]) -> None:
        """Rerank answers; one statement orders all that used late interaction."""
        for question, answer in zip(questions, answers, strict=True):
            for pending in question.rerank(answer):
                await pending.async_settle()
        late = {question: question.ordering for question in questions if question.ordering}
        if not late:
            return
        try:
            found = await self._read(together([*late.values()]), questions[0].trace)
        except Exception as error:  # the fused order is still an answer
            for question in late:
                question.keep_order(error)
            return
        for question, rows in zip(late, found, strict=True):
            question.order(rows)

    async def _settings_for(self, bank: str) -> Settings:
        """Return the settings with the embedders that the bank needs."""
        if not self._settings.depends_on_bank:
            return self._settings
        models = await self._run(calls.bank.bank_models(bank))
        return self._settings.for_bank(models)

    def _is_outside_transaction(self) -> bool:
        """Return whether a failed statement does not abort a transaction of the caller."""
        connection = self._source
        # A statement of another task or thread is no transaction on a connection of the client.
        is_theirs = isinstance(connection, psycopg.AsyncConnection) and self._dsn is None
        return not is_theirs or owns_transaction(cast("Connection", connection))

    async def _run(self, call: Call[Row, T], trace: Trace | None = None) -> T:
        """Send a call that may write."""
        try:
            return await self._answered(call, trace)
        finally:
            self._replicas.wrote()

    async def _read(self, call: Call[Row, T], trace: Trace | None = None) -> T:
        """Send a call that only reads, to a recent enough replica or else to the primary."""
        trace = trace or Trace()
        order = self._replicas.order() if self._is_outside_transaction() else []
        if order and (unseen := self._replicas.unseen()):
            self._replicas.require(
                await self._answered(calls.operations.log_position(), trace), unseen
            )
        for place in order:
            trace.is_sent = False
            try:
                standby = await self._standby(place, trace)
                async with standby._connection(trace, REPLICA_SECONDS) as connection:
                    return await self._send(call, connection, trace, self._replicas.gate())
            except psycopg.Error as error:
                late = trace.too_late(error)
                if late is not None:
                    raise late from error
                if is_cut(error):
                    raise  # it would take as long elsewhere
                self._replicas.note(place, error, trace)
        return await self._answered(call, trace)

    async def _standby(self, place: int, trace: Trace) -> AsyncRecall:
        """Return a replica, opened on first use."""
        if place not in self._standbys:
            source = self._replicas.sources[place]
            dsn = replica_dsn(source) if isinstance(source, str) else None
            if dsn is not None:
                source = await _opened(dsn, self._pool_size, trace.left)
            opened = AsyncRecall(cast("AsyncPool", source), embedder=None, reranker=None)
            opened._dsn, opened._pool_size = dsn, self._pool_size
            if self._standbys.setdefault(place, opened) is not opened:
                await opened.close()  # another caller has opened it
        return self._standbys[place]

    async def _answered(self, call: Call[Row, T], trace: Trace | None = None) -> T:
        """Send a call to the primary, and retry it if that may help."""
        trace = trace or Trace()
        for repetitions, delay in enumerate(retry_delays()):
            owner = True
            try:
                async with self._connection(trace) as connection:
                    owner = self._source is not connection or owns_transaction(connection)
                    return await self._send(call, connection, trace)
            except psycopg.Error as error:
                late = trace.too_late(error)
                if late is not None:
                    raise late from error
                is_passing = is_transient(error, call.is_repeatable, trace, repetitions)
                if not (owner and is_passing):
                    ours = from_database(error, call.parameters)
                    ours = ours or await self._version_error(error)
                    if ours is None:
                        raise
                    raise ours from error
            await asyncio.sleep(delay)
        raise AssertionError("there is always another delay")

    async def _version_error(self, error: psycopg.Error) -> InstallError | None:
        """Compare the versions of driver and schema, if an error may come from a difference."""
        if not may_be_version(error):
            return None
        trace = Trace()
        try:
            async with self._connection(trace) as connection:
                schema = await self._send(calls.operations.version(), connection, trace)
        except psycopg.Error as second:
            if may_be_version(second):
                return not_installed()
            return other_version(error, None)
        return other_version(error, schema)

    async def _send(
        self,
        call: Call[Row, T],
        connection: Connection,
        trace: Trace,
        gate: Call[Any, Any] | None = None,
    ) -> T:
        """Send a call within the time left, after a gate that may refuse it."""
        with telemetry.statement(call.sql, connection), trace.timing(connection):
            limit, unlimit = trace.limits()
            before = [one for one in (limit, gate) if one is not None]
            if not before:
                cursor = await _sent_alone(call, connection)
            else:
                async with async_pipeline(connection, trace.left):  # one round trip
                    for one in before:
                        await _sent(one, connection)
                    cursor = await _sent(call, connection)
                    if limit is not None:
                        await _sent(unlimit, connection)
            return call.result(await cursor.fetchall())

    @asynccontextmanager
    async def _connection(
        self, trace: Trace, at_most: float | None = None
    ) -> AsyncIterator[Connection]:
        """Lend a connection; wait at_most so many seconds for one of a pool."""
        if self._is_closed:
            raise ClientClosed("this client is closed", hint="Make another: Recall.connect().")
        start = perf_counter()
        trace.is_sent = False
        if self._source is self._inherited:
            await self._leave_parent(trace)
        source = self._source
        if isinstance(source, psycopg.AsyncConnection):
            # Otherwise a pipeline would include statements of others.
            async with async_held(self._turn, trace.left):
                source = cast("Connection", self._source)
                if self._dsn is not None and not is_alive(source):
                    self._source = await _connected(self._dsn, trace.left)
                    await source.close()
                    trace.acquired(start)
                yield cast("Connection", self._source)
            return
        for left in range(MOST_LOST, -1, -1):
            lending = source.connection(**trace.pool_arguments(source.connection, at_most))
            lending = async_entered(lending)  # async only: or else a cancellation may be lost
            async with lending as connection:
                if left and self._dsn is not None and not is_alive(connection):
                    continue  # the pool opens another one
                trace.acquired(start, source)
                yield connection
                start = perf_counter()
            trace.returned(start)
            return

    async def _leave_parent(self, trace: Trace) -> None:
        """Open what the parent of a fork had opened, and do not close that."""
        async with self._turn:
            if self._source is self._inherited and self._dsn is not None:
                self._source = await _opened(self._dsn, self._pool_size, trace.left)


class AsyncBankHandle:
    """One bank of a client: the client's methods without the name of the bank.

    ``bank.retain(facts)`` is ``memory.retain("agent", facts)``; see there. The word bank is dropped
    from names: ``bank.create()`` is ``memory.create_bank("agent")``.

    Attributes:
        memory: The client.
        name: The name of the bank.

    """

    def __init__(self, memory: AsyncRecall, name: str) -> None:
        """Keep client and name; send nothing."""
        self.memory = memory
        self.name = name

    # Generated by pydriver/generate.py from the methods of AsyncRecall; do not edit.
    add_fact_type = OfBank(AsyncRecall.add_fact_type)
    arm_hits = OfBank(AsyncRecall.arm_hits)
    attach_table = OfBank(AsyncRecall.attach_table)
    attached_tables = OfBank(AsyncRecall.attached_tables)
    audit = OfBank(AsyncRecall.audit)
    calibrate = OfBank(AsyncRecall.calibrate_bank)
    clone = OfBank(AsyncRecall.clone_bank)
    configure = OfBank(AsyncRecall.configure_bank)
    consolidate = OfBank(AsyncRecall.consolidate)
    context = OfBank(AsyncRecall.context)
    create = OfBank(AsyncRecall.create_bank)
    detach_table = OfBank(AsyncRecall.detach_table)
    drop = OfBank(AsyncRecall.drop_bank)
    duplicate_entities = OfBank(AsyncRecall.duplicate_entities)
    embed_pending = OfBank(AsyncRecall.embed_pending)
    explain = OfBank(AsyncRecall.explain)
    export = OfBank(AsyncRecall.export)
    find_memories = OfBank(AsyncRecall.find_memories)
    forget = OfBank(AsyncRecall.forget)
    forget_messages = OfBank(AsyncRecall.forget_messages)
    get = OfBank(AsyncRecall.get)
    highlight = OfBank(AsyncRecall.highlight)
    history = OfBank(AsyncRecall.history)
    import_rows = OfBank(AsyncRecall.import_rows)
    index_plan = OfBank(AsyncRecall.index_plan)
    last_session_end = OfBank(AsyncRecall.last_session_end)
    link_pending = OfBank(AsyncRecall.link_pending)
    list_entities = OfBank(AsyncRecall.list_entities)
    list_memories = OfBank(AsyncRecall.list_memories)
    log_session = OfBank(AsyncRecall.log_session)
    maintain = OfBank(AsyncRecall.maintain)
    memory_counts = OfBank(AsyncRecall.memory_counts)
    memory_details = OfBank(AsyncRecall.memory_details)
    merge_entities = OfBank(AsyncRecall.merge_entities)
    message_context = OfBank(AsyncRecall.message_context)
    near_copies = OfBank(AsyncRecall.near_copies)
    neighbourhood = OfBank(AsyncRecall.neighbourhood)
    neighbours = OfBank(AsyncRecall.neighbours)
    options = OfBank(AsyncRecall.bank_options)
    path = OfBank(AsyncRecall.path)
    pending_links = OfBank(AsyncRecall.pending_links)
    quarantine = OfBank(AsyncRecall.quarantine)
    query_entities = OfBank(AsyncRecall.query_entities)
    recall = OfBank(AsyncRecall.recall)
    recall_check = OfBank(AsyncRecall.recall_check)
    recall_many = OfBank(AsyncRecall.recall_many)
    recall_report = OfBank(AsyncRecall.recall_report)
    recall_stats = OfBank(AsyncRecall.recall_stats)
    reembed_cancel = OfBank(AsyncRecall.reembed_cancel)
    reembed_clean = OfBank(AsyncRecall.reembed_clean)
    reembed_fill = OfBank(AsyncRecall.reembed_fill)
    reembed_finish = OfBank(AsyncRecall.reembed_finish)
    reembed_status = OfBank(AsyncRecall.reembed_status)
    refresh_statistics = OfBank(AsyncRecall.refresh_statistics)
    release = OfBank(AsyncRecall.release)
    rename_entity = OfBank(AsyncRecall.rename_entity)
    retain = OfBank(AsyncRecall.retain)
    retain_bulk = OfBank(AsyncRecall.retain_bulk)
    retain_conversation = OfBank(AsyncRecall.retain_conversation)
    retain_many = OfBank(AsyncRecall.retain_many)
    retain_many_messages = OfBank(AsyncRecall.retain_many_messages)
    retain_messages = OfBank(AsyncRecall.retain_messages)
    snapshot_vocabulary = OfBank(AsyncRecall.snapshot_vocabulary)
    split_entity = OfBank(AsyncRecall.split_entity)
    statistics = OfBank(AsyncRecall.bank_statistics)
    supersede = OfBank(AsyncRecall.supersede)
    sync_table = OfBank(AsyncRecall.sync_table)
    type_hints = OfBank(AsyncRecall.type_hints)
    unconsolidate = OfBank(AsyncRecall.unconsolidate)
    unsupersede = OfBank(AsyncRecall.unsupersede)
    update = OfBank(AsyncRecall.update)  # type: ignore[arg-type]
    vocabulary_drift = OfBank(AsyncRecall.vocabulary_drift)
    why_not = OfBank(AsyncRecall.why_not)


_CLIENTS: WeakSet[AsyncRecall] = WeakSet()


def _after_fork() -> None:
    """Keep clients in the child of a fork off locks, threads and connections of the parent."""
    for client in [*_CLIENTS]:
        client._turn = Lock()
        if client._dsn is not None:
            client._inherited = client._source
            client._log = client._log and RecallLogWriter(client._dsn)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _check_source(connection: object) -> None:
    if not isinstance(connection, psycopg.AsyncConnection) and not callable(
        getattr(connection, "connection", None)
    ):
        raise InvalidArgument(  # without the value, which may hold a password
            f"connection must be a connection or a pool, not {type(connection).__name__}",
            hint="Pass a psycopg.AsyncConnection or a pool of them, or call"
            " AsyncRecall.connect(dsn) for a connection string.",
        )


async def _opened(
    dsn: str, pool_size: int | None, seconds: float | None = None
) -> Connection | AsyncPool:
    """Open a connection or, of a given size, a pool."""
    return await (_connected(dsn, seconds) if pool_size is None else _pool(dsn, pool_size))


async def _connected(dsn: str, seconds: float | None = None) -> Connection:
    """Open a connection, within a time limit."""
    limited = dsn if seconds is None else limited_dsn(dsn, seconds)
    return await psycopg.AsyncConnection.connect(limited, autocommit=True)


async def _pool(dsn: str, size: int) -> AsyncPool:
    """Open a pool."""
    try:
        from psycopg_pool import AsyncConnectionPool
    except ImportError as error:
        raise InstallError(
            f"package {error.name} is missing", hint="Run: pip install 'pgrecall[pool]'"
        ) from error
    if size < 1:
        raise InvalidArgument(
            f"pool_size must be at least 1, not {size}", hint="Omit it for a single connection."
        )

    await (await _connected(dsn)).close()  # raise an error now rather than after a time limit
    pool = AsyncConnectionPool(
        dsn,
        min_size=1,
        max_size=size,
        kwargs={"autocommit": True},
        reset=check_alive,  # async only: by a task of the pool: a cancelled one loses nothing
        open=False,
    )
    await pool.open()
    return pool


async def _sent(call: Call[Row, Any], connection: Connection) -> AsyncOwnCursor[Row]:
    """Send the statement of a call, whose rows the cursor then has.

    Never prepared, since a pooler may send the next statement to another server process.
    """
    cursor = AsyncOwnCursor(connection, row_factory=call.row_factory)
    await cursor.execute(call.sql.encode(), call.parameters, prepare=False, binary=True)
    return cursor


async def _sent_alone(call: Call[Row, Any], connection: Connection) -> AsyncOwnCursor[Row]:
    """Send a call; again at read committed, if it must see commits and the default is another."""
    is_own = owns_transaction(connection)
    try:
        return await _sent(call, connection)
    except psycopg.errors.ActiveSqlTransaction:
        if not is_own:
            raise
    async with connection.transaction():
        await _sent(calls.operations.read_committed(), connection)
        return await _sent(call, connection)


async def _compute(function: Callable[..., T], *arguments: object) -> T:
    """Run a slow computation that sends nothing."""
    return await asyncio.to_thread(function, *arguments)
