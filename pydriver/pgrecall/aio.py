"""AsyncRecall, the client for asyncio. client.py is generated from it: see pydriver/generate.py."""

from __future__ import annotations

import asyncio
from asyncio import Lock
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import datetime, tzinfo
from functools import partial
from math import ceil
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import psycopg
from psycopg.conninfo import make_conninfo

from pgrecall import calls
from pgrecall.arguments import check_type
from pgrecall.asking.embedding import Pending
from pgrecall.asking.question import MOST_QUERIES, Question, embed_together
from pgrecall.asking.recall_options import RecallOptions
from pgrecall.calls.call import Call, adapt, together
from pgrecall.calls.recall import Answer
from pgrecall.connection import telemetry
from pgrecall.connection.concurrency import AsyncBoundedWork
from pgrecall.connection.connecting import check_alive, is_alive, named_dsn, owns_transaction
from pgrecall.connection.recall_log_writer import RecallLogWriter
from pgrecall.connection.replicas import MAX_LAG, REPLICA_SECONDS, Replicas, replica_dsn
from pgrecall.connection.retries import is_transient, retry_delays
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
from pgrecall.inference.vectors import embedded
from pgrecall.inference.worker import on_own_thread
from pgrecall.of_bank import OfBank
from pgrecall.report import RecallReport
from pgrecall.retaining import bulk
from pgrecall.retaining.changes import embedded_changes
from pgrecall.retaining.facts import EMBED_BATCH, Fact, FactBatch, relation_vectors, several
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
    Hit,
    IndexStep,
    Maintained,
    Memory,
    NearCopy,
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
    """A source of connections, such as psycopg_pool.AsyncConnectionPool."""

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        """Lend a connection; it is committed when it comes back without an error."""
        ...


class AsyncRecall:
    """The memory of AI agents in PostgreSQL.

    Works on a connection, inside the transaction that the caller has open on it; or on a
    pool, and then each method is a transaction of its own, and is repeated when it fails for a
    passing reason, such as a deadlock.
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
        """Keep the connection; nothing is sent, loaded or created yet.

        Args:
            connection: An open connection, or a pool.
            embedder: Makes the embeddings; can be a function from texts to vectors, or the URL of
                an endpoint with the API of OpenAI, of which model is the model. None to do without:
                then only facts and queries that bring an embedding are searched by it.
            reranker: "late-interaction", which compares token vectors where the embedder makes
                them; "cross-encoder" for the packaged one; another cross-encoder: its directory or
                name, the URL of a ``/rerank`` endpoint, an object, or a function from query and
                texts to relevances from 0 to 1. None or "none" to keep the fused order. Default:
                what PGRECALL_RERANKER names, or else late interaction, and the packaged
                cross-encoder with an embedder without token vectors.
            timezone: Where "today" is, and what times without a zone are in. Default: UTC.
            model: Name of the model of embeddings that are handed over, or of the function.
            next_embedder: Of the model that banks are re-embedded with: facts are then embedded
                with both, and questions with the one that the bank has, before and after the
                switch. A bank is asked for its models before each call.
            replicas: Standbys to read from in turn: connection strings, to be opened when they
                are needed, or pools. The primary answers where none is near enough or reachable,
                and inside a transaction of the caller. It does all that writes.
            max_lag: Seconds that a standby may be behind. None: however many.
            read_your_writes: Whether a standby must have replayed what this client wrote.

        Raises:
            InvalidArgument: there is no such time zone; the model of the embedder has no name; or
                replicas or max_lag are unusable.

        """
        self._source = connection
        self._settings = Settings.of(embedder, reranker, timezone, model, next_embedder)
        self._dsn: str | None = None  # of a source that connect() opened
        self._log: RecallLogWriter | None = None  # the same
        self._turn = Lock()  # of the callers that share a connection
        self._replicas = Replicas(replicas, max_lag, read_your_writes)
        self._standbys: dict[int, AsyncRecall] = {}
        self._pool_size: int | None = None
        self._is_closed = False

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
        """Open a connection in autocommit mode, to be closed by :meth:`close` or ``with``.

        A connection that was lost is opened again.

        Args:
            dsn: Connection string. Default: PGRECALL_DSN, or else the embedded server, in which
                pgrecall is installed where it is missing.
            embedder: As for the class.
            reranker: As for the class.
            timezone: As for the class.
            model: As for the class.
            next_embedder: As for the class.
            pool_size: Open a pool of at most so many connections instead, for calls that run at
                once, and one for each replica; needs the extra ``pool``.
            replicas: As for the class.
            max_lag: As for the class.
            read_your_writes: As for the class.

        Raises:
            InstallError: the embedded server is needed and cannot be started, or the package for
                a pool is missing.
            InvalidArgument: pool_size is below 1, or as for the class.

        """
        from pgrecall.server import ready_dsn

        check_type("pool_size", pool_size, int | None)
        server = named_dsn(await _compute(ready_dsn, dsn))
        source = await _connected(server) if pool_size is None else await _pool(server, pool_size)
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
        recall._dsn, recall._log = server, RecallLogWriter(server)
        recall._pool_size = pool_size
        return recall

    async def close(self) -> None:
        """Close what was opened here: by :meth:`connect`, and for replicas."""
        while self._standbys:
            _, standby = self._standbys.popitem()
            await standby.close()
        if self._dsn is not None:
            self._dsn = None
            if self._log is not None:
                await _compute(self._log.close)
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
        """Close what was opened here."""
        await self.close()

    async def position(self) -> str:
        """Return a position in the log of the primary, past everything committed so far.

        A client elsewhere that passes it to :meth:`read_after` reads all that was written before.
        """
        return await self._answered(calls.operations.log_position())

    def read_after(self, position: str) -> None:
        """Read from replicas only once they have replayed the log up to a position.

        Args:
            position: As :meth:`position` of any client of the same primary returned it.

        Raises:
            InvalidArgument: it is not such a position.

        """
        self._replicas.require(position)

    def bank(self, bank: str) -> AsyncBankHandle:
        """Return a handle for a bank, whose methods are those of this client without its name.

        Nothing is sent, and there need be no such bank yet: ``bank.create()`` creates it.

        Args:
            bank: Its name.

        """
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
            bank: Its name, 1 to 200 characters.
            text_search_config: Such as "english", the default; "simple" for mixed languages and
                identifiers.
            embedding_model: The one model it accepts. Default: that of the first embedding.
            embedding_dimensions: Length of each embedding. Default: that of the first one.
            fact_types: Kinds of fact beside the six that every bank has.
            settings: Defaults of the bank, as for :meth:`configure_bank`.
            exist_ok: Whether to leave a bank of that name as it is instead of raising.

        Raises:
            BankExists: a bank has that name.
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
        except BankExists:  # somebody else was creating it
            if not (exist_ok and self._is_outside_transaction()):
                raise

    async def configure_bank(self, bank: str, settings: Mapping[str, object]) -> None:
        """Change defaults of a bank; those not named stay.

        Args:
            bank: Name of an existing bank.
            settings: Any option of a recall that a bank can have a default for, such as weights,
                fusion or budget, and the columns of the table pgrecall.bank, such as bm25_k1.

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
            How many memories it held.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._run(calls.bank.drop_bank(bank))

    async def clone_bank(self, bank: str, new_bank: str) -> int:
        """Copy a bank with all it holds, ids and history included; the two are then independent.

        Returns:
            How many memories it holds.

        Raises:
            BankNotFound: no bank has that name.
            BankExists: a bank has the new name.
            InvalidArgument: the new name is unusable.

        """
        return await self._run(calls.bank.clone_bank(bank, new_bank))

    async def export(self, bank: str, *, batch_size: int = STREAM_BATCH) -> AsyncIterator[str]:
        """Give all rows of a bank, each as a line of JSON, for :meth:`import_rows`.

        In a transaction of isolation level repeatable read the copy of a bank that is being
        written is consistent.

        Args:
            bank: Name of an existing bank.
            batch_size: Rows that are read at once, 1 to 100,000.

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
        """Store the rows of an export under the name of a bank: every column as it was.

        What is there already is left out, so an import that broke off can be sent again.

        Args:
            bank: Name of the bank, which does not exist, or holds a part of this export.
            rows: What :meth:`export` gave, in that order.
            batch_size: Rows that are stored at once, at least 1.
            progress: Called with how many more rows have been sent.

        Returns:
            How many rows were stored.

        Raises:
            BankExists: the bank holds something else.
            BankNotFound: no bank has that name, and the rows do not begin with its own.
            InvalidFact: a row is not of an export.
            InvalidArgument: the name is unusable, or batch_size below 1.

        """
        stored = 0
        for batch in Stream().batches(rows, batch_size):
            stored += await self._run(calls.bank.import_rows(bank, batch))
            if progress:
                progress(len(batch))
        return stored

    async def banks(self) -> list[Bank]:
        """List all banks by name."""
        return await self._read(calls.bank.banks())

    async def bank_options(self, bank: str) -> dict[str, object]:
        """Return every option of a recall with its default in a bank.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._read(calls.bank.bank_options(bank))

    async def recall_options(self) -> list[RecallOption]:
        """List the options of a recall: type, default, range and what each does."""
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
        """Remember facts: all of them or, when one is malformed, none. Known ones stay as they are.

        Args:
            bank: Name of an existing bank.
            facts: Mappings in the documented format, or texts; one alone will do. Facts without
                embedding are embedded here, unless the bank knows the fact. Times without a zone
                are UTC.
            model: Name of the model of the embeddings that are handed over.
            link: "now", or "deferred" to leave the links to :meth:`link_pending`.
            replace: Which older facts these end from when they were said: "key" those of the same
                fact_key, "relation" those that lead the same relation of the same entity
                elsewhere, "both", or "none". Default: as the bank has it.
            progress: Called with how many more facts have been embedded.
            strict: Whether to raise what the embedder raises, and store nothing. Default: where it
                fails, facts are stored without embedding, and their rows say so.

        Returns:
            One row a fact, in order.

        Raises:
            BankNotFound: no bank has that name.
            InvalidFact: a fact is malformed; the message says which one and which field.
            UnknownFactType: the bank has no such fact type.
            DimensionMismatch: an embedding does not have the bank's number of dimensions.
            ModelMismatch: the embeddings are not of the bank's model.
            InvalidEmbedding: an embedding is empty, all zeros, or not finite.
            InvalidArgument: link or replace is not among these words.
            Exception: what the embedder raised, such as EmbedderUnavailable, and strict was given.

        """
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
            if batch.has_relations:
                await self._embed_relations(settings, bank, strict)
            return rows

    async def _embed_relations(self, settings: Settings, bank: str, is_strict: bool) -> None:
        """Embed the words of relations that have no embedding yet; questions find them by it."""
        if settings.embedder is None:
            return
        model = settings.embedder.model
        texts = await self._run(calls.retain.relations_pending(bank, model=model))
        vectors = await _compute(relation_vectors, settings.embedder, texts, is_strict)
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
        """Remember a long stream of facts, batch by batch.

        When a batch is refused, the batches before it stay; since known facts are skipped, the
        whole stream can be sent again.

        Args:
            bank: As for :meth:`retain`.
            facts: As for :meth:`retain`; `to_index` of a link counts from the start of the stream.
            model: As for :meth:`retain`.
            link: As for :meth:`retain`.
            replace: As for :meth:`retain`.
            batch_size: Facts in one call, at least 1.
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
        """Load a bank: several batches at once, then indexes and links once all facts are stored.

        A batch is kept, and found by every arm, as soon as it is written. A load that broke off is
        started again as it was: what is stored is neither embedded nor written twice, and indexes
        and links go on from where they were. Needs a client of :meth:`connect`, or a pool.

        Args:
            bank: As for :meth:`retain`.
            facts: As for :meth:`retain_many`. In memory are a batch for each worker and one more.
            model: As for :meth:`retain`.
            link: "now", or "deferred" to leave vector indexes to :meth:`index_plan` and links to
                :meth:`link_pending`, such as between the files of a load.
            replace: As for :meth:`retain`. Unless "none" is given, batches with facts that have
                a key or relations are written in order, one at a time.
            workers: Connections that write at once, at most the size of the pool.
                Default: 4.
            batch_size: As for :meth:`retain_many`.
            progress: Called with "retain", "index", "link" or "maintain", and of how many more that
                is done.
            refused: Called with the position of a fact that is refused, and with the error, which
                :meth:`retain` would have raised. The fact is left out. Default: it is raised.
            strict: As for :meth:`retain`.

        Raises:
            RecallError: as :meth:`retain_many`.
            InvalidArgument: workers or batch_size is below 1, or the client has one connection
                which the caller opened.

        """
        load = bulk.Load(
            model=model,
            replace=replace,
            batch_size=batch_size,
            progress=progress,
            refused=refused,
        )
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
                        if batch.start == 0:  # it fixes the model, and how long texts are
                            await work.idle()
                await self._embed_relations(await self._settings_for(bank), bank, strict)
                due = [] if link == "deferred" else await self._index_and_link(load, clients, bank)
            return load.retention(due)
        finally:
            self._replicas.wrote()
            for client in clients:
                if client is not self:
                    await client.close()

    async def _bulk_clients(self, workers: int | None) -> list[AsyncRecall]:
        """Make clients that send at the same time."""
        check_type("workers", workers, int | None)
        if workers is not None and workers < 1:
            raise InvalidArgument(f"workers must be at least 1, not {workers}")
        if not isinstance(self._source, psycopg.AsyncConnection):
            most = getattr(self._source, "max_size", None) or bulk.WORKERS
            return [self] * min(workers or bulk.WORKERS, most)
        if self._dsn is None:
            raise InvalidArgument(
                "a bulk load opens connections of its own, and this client has one of the caller",
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
        """Embed and write a batch; of one with a fact that is refused what is before and behind."""
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
        """Build indexes, then write links by them, then count; return what could not be built."""
        # Links without an index would compare each fact with all others.
        while True:
            steps = await self._run(calls.operations.index_plan(bank))
            if not steps and not await self._run(calls.operations.index_builds()):
                break
            try:
                for step in steps:
                    await clients[0]._build(step.statement)
                    load.note("index", 1)
            except psycopg.errors.InsufficientPrivilege:
                return [
                    step.statement for step in await self._run(calls.operations.index_plan(bank))
                ]
            except (psycopg.errors.DuplicateTable, psycopg.errors.DeadlockDetected):
                steps = []  # another load was faster
            if not steps:
                await asyncio.sleep(bulk.POLL_SECONDS)
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
        return []

    async def _build(self, statement: str) -> None:
        """Run a statement that needs a transaction of its own, however long it takes."""
        async with self._connection(Trace()) as connection:
            was_autocommit = connection.autocommit
            await connection.set_autocommit(True)
            try:
                for before in calls.operations.UNLIMITED:
                    await connection.execute(before)
                await connection.execute(statement.encode())
            finally:
                if not connection.closed:
                    for after in calls.operations.LIMITED:
                        await connection.execute(after)
                    await connection.set_autocommit(was_autocommit)

    async def retain_messages(
        self, bank: str, messages: Iterable[Mapping[str, object]]
    ) -> list[RetainedMessage]:
        """Store raw messages: all of them or, when one is malformed, none.

        Args:
            bank: Name of an existing bank.
            messages: Mappings in the documented format.

        Returns:
            One row a message, in order.

        Raises:
            BankNotFound: no bank has that name.
            InvalidFact: a message is malformed; the message says which one and which field.

        """
        return await self._run(calls.retain.retain_messages(bank, messages))

    async def retain_many_messages(
        self,
        bank: str,
        messages: Iterable[Mapping[str, object]],
        *,
        batch_size: int = STREAM_BATCH,
        progress: Progress | None = None,
    ) -> Retention:
        """Store a long stream of raw messages, batch by batch.

        Args:
            bank: Name of an existing bank.
            messages: As for :meth:`retain_messages`.
            batch_size: Messages in one call, at least 1.
            progress: Called with how many more messages have been stored.

        Raises:
            RecallError: as :meth:`retain_messages`; the position counts from the start.

        """
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
    ) -> Extraction:
        """Store messages, and the facts that an extractor makes of them.

        The messages are stored first: what no fact is made of is still found among them. An
        extractor that fails is called three times more; a fact that is malformed is left out alone.
        Run it again with the same messages: what is known is not stored again.

        Args:
            bank: Name of an existing bank.
            messages: As for :meth:`retain_messages`.
            extract: Makes facts in retain's format of messages: any function, a
                :class:`~pgrecall.extraction.RuleExtractor`, which needs no model, or an
                :class:`~pgrecall.extraction.OpenAIExtractor`. Facts get the session as source_id
                and the time of the last message as mentioned_at where they name none.
            messages_at_once: How many messages, of one session, it is given at most.
            replace: As for :meth:`retain`.
            progress: Called with how many more messages were read.

        Raises:
            BankNotFound: no bank has that name.
            InvalidFact: a message is malformed; then nothing is stored.
            InvalidArgument: messages_at_once is below 1, or replace is not among its words.

        """
        if messages_at_once < 1:
            raise InvalidArgument(f"messages_at_once must be at least 1, not {messages_at_once}")
        all_messages = list(messages)
        stored = await self.retain_messages(bank, all_messages)
        kept: list[Retained] = []
        failures: list[ExtractionFailure] = []
        for first, batch in talk.batches(all_messages, messages_at_once):
            facts, problem = await _compute(talk.extracted, extract, batch)
            if problem is not None:
                failures.append(talk.failure(first, batch, problem, None))
            while facts:
                try:
                    kept += await self._retain_apart(bank, facts, replace)
                    break
                except (InvalidFact, UnknownFactType) as error:
                    # One at a time, until those are left that can be stored.
                    bad = facts.pop(error.position or 0)
                    failures.append(talk.failure(first, batch, str(error), bad))
            if progress:
                progress(len(batch))
        return Extraction(stored, kept, failures)

    async def _retain_apart(
        self, bank: str, facts: Iterable[Fact], replace: str | None
    ) -> list[Retained]:
        """Retain facts so that the caller's transaction can go on if they are refused."""
        if self._is_outside_transaction():
            return await self.retain(bank, facts, replace=replace)
        async with cast("Connection", self._source).transaction():
            return await self.retain(bank, facts, replace=replace)

    async def get(self, bank: str, memory_id: int) -> Memory:
        """Return a memory, also one that no longer holds.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such memory.

        """
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
        """List the memories that meet all conditions given, latest stored first.

        Args:
            bank: Name of an existing bank.
            filter: A condition, as of a recall.
            fact_types: Only facts of these types.
            tags: Only facts with any of these tags.
            during: Only what occurred in (start, end) or, without a time of occurrence, was said
                then; either may be None.
            entity: Only what mentions an entity of this name.
            as_of: Only what holds at that time. Default: now.
            is_ended_too: Whether to list what no longer holds as well.
            before_id: For the next page, the last memory_id of the page before.
            top_k: Upper bound on the number of memories, 1 to 100,000. Default: 50.

        Raises:
            BankNotFound: no bank has that name.
            UnknownFactType: the bank has no such fact type.
            InvalidFilter: the filter is not understood.
            InvalidArgument: an argument is out of its range.

        """
        check_type("during", during, Period | None)
        if during is not None:
            during = (self._settings.moment(during[0]), self._settings.moment(during[1]))
        return await self._read(
            calls.memories.list_memories(
                bank,
                filter=filter,
                fact_types=fact_types,
                tags=tags,
                during=during,
                entity=entity,
                as_of=self._settings.moment(as_of),
                is_ended_too=is_ended_too,
                before_id=before_id,
                top_k=top_k,
            )
        )

    async def history(self, bank: str, memory_id: int, *, top_k: int | None = None) -> list[Memory]:
        """List the versions of a fact, oldest first, whichever correction made them.

        Args:
            bank: Name of an existing bank.
            memory_id: Any version of it.
            top_k: Upper bound on their number, 1 to 1000. Default: 100.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such memory.
            InvalidArgument: top_k is out of its range.

        """
        return await self._read(calls.memories.memory_history(bank, memory_id, top_k=top_k))

    async def update(
        self, bank: str, memory_id: int, *, model: str | None = None, **changes: object
    ) -> Memory:
        """Replace a memory by a version of it with other fields; the old one is its history.

        A new text is embedded and linked. What is not given stays, but of entities and relations
        only those that a new text still names; the result tells which have ended.

        Args:
            bank: Name of an existing bank.
            memory_id: The memory.
            model: Name of the model of an embedding that is handed over.
            changes: Fields of a fact, as for :meth:`retain`; None takes one away.

        Returns:
            The new version, or the memory itself where nothing changes.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such memory.
            InvalidFact: a field is unknown or malformed.
            InvalidArgument: no field is given, or the memory no longer holds.
            RecallError: as :meth:`retain`.

        """
        settings = await self._settings_for(bank)
        fact, named = await _compute(embedded_changes, settings, changes, model)
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
        """Erase memories, with their embeddings, mentions and links, by id or by what they are.

        Args:
            bank: Name of an existing bank.
            memory_ids: The memories; or else all that meet the conditions below.
            filter: A condition, as of a recall.
            fact_key: Their key; what no longer holds under it is erased as well.
            source_id: The document or conversation they came from.
            dry_run: True to only count what meets the conditions. Default: False.

        Returns:
            How many were erased.

        Raises:
            BankNotFound: no bank has that name.
            InvalidFilter: the filter is not understood.
            InvalidArgument: there are ids and conditions, or neither.

        """
        if memory_ids is None:
            return await self._run(
                calls.memories.forget_where(
                    bank, filter=filter, fact_key=fact_key, source_id=source_id, dry_run=dry_run
                )
            )
        if (filter, fact_key, source_id, dry_run) != (None, None, None, None):
            raise InvalidArgument(
                "forget() takes memory_ids or conditions, not both",
                hint='Name the ids in the filter: "memory_id in (5, 7)".',
            )
        ids = [memory_ids] if isinstance(memory_ids, int) else memory_ids
        return await self._run(calls.memories.forget(bank, ids))

    async def forget_messages(
        self,
        bank: str,
        message_ids: Iterable[int] | int | None = None,
        *,
        session: str | None = None,
        during: Period | None = None,
        dry_run: bool | None = None,
    ) -> int:
        """Erase the raw messages that meet all conditions given; facts made of them stay.

        A session that is left without messages is erased, too.

        Args:
            bank: Name of an existing bank.
            message_ids: Only these.
            session: Only those of this session.
            during: Only those sent in [start, end); None leaves a side open. Times without a zone
                are in the client's.
            dry_run: True to only count them. Default: False.

        Returns:
            How many were erased.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: no condition is given.

        """
        check_type("during", during, Period | None)
        if during is not None:
            during = (self._settings.moment(during[0]), self._settings.moment(during[1]))
        ids = [message_ids] if isinstance(message_ids, int) else message_ids
        return await self._run(
            calls.memories.forget_messages(
                bank, ids, session=session, during=during, dry_run=dry_run
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
        """End a memory's validity, keeping it for questions about the time before.

        Args:
            bank: Name of an existing bank.
            memory_id: The memory that no longer holds.
            superseded_by: The memory that takes its place.
            at: When it ends. Default: now.
            reach: "copies" to end what :meth:`near_copies` lists, too. Default: "memory".
            dry_run: True to only say what would end. Default: False.

        Returns:
            What ended, this memory first.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such memory.
            InvalidArgument: the memory would supersede itself, or reach is not among these words.

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
        """List the memories that say nearly the same as one, nearest first.

        Args:
            bank: Name of an existing bank.
            memory_id: The memory.
            superseded_by: Its successor; memories nearer to that are left out.
            min_similarity: Least similarity, 0 to 1. Default: 0.85.
            as_of: Only those that hold at that time. Default: now.

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
        """Revert the last correction of a memory, and of those corrected with it.

        Args:
            bank: Name of an existing bank.
            memory_id: A memory that was superseded, replaced or merged.

        Returns:
            What was restored, this memory first.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such memory.
            InvalidArgument: nothing corrected it, or another memory says the same by now.

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
            min_similarity: Least similarity of different texts, 0 to 1. Default: 0.95.
            top_k: How many to merge at most, 1 to 100,000. Default: 1000.

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
        """Undo the latest :meth:`consolidate` that still stands.

        Returns:
            What was restored; nothing where there is nothing to undo.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: another memory says the same as one of them by now.

        """
        return await self._run(calls.memories.unconsolidate(bank))

    async def quarantine(
        self, bank: str, source: str, *, dry_run: bool | None = None
    ) -> list[Corrected]:
        """Take the facts of a source out of every recall, and take no more of it.

        What they had ended holds again. :meth:`release` undoes it.

        Args:
            bank: Name of an existing bank.
            source: A source_id, or a prefix with an asterisk, "web:*".
            dry_run: Only lists what would change. Default: False.

        Returns:
            The memories that change, as they are then.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: source names none.

        """
        return await self._run(calls.memories.quarantine(bank, source, dry_run=dry_run))

    async def release(self, bank: str, source: str) -> list[Corrected]:
        """Undo :meth:`quarantine`, row for row.

        Args:
            bank: Name of an existing bank.
            source: As it was given.

        Returns:
            What was restored; memories that were corrected again since stay as they are.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: the source is not in quarantine, or another memory says by now what one
                of them says.

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
        """List who stored, ended and replaced which memories, the latest first.

        Forgotten memories and reverted corrections are not in it.

        Args:
            bank: Name of an existing bank.
            since: Only what was done from then on. Default: all.
            source: Only memories of it: a source_id, or a prefix with an asterisk,
                "web:*". Default: all.
            top_k: How many at most. Default: 1000.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: an argument is out of its range.

        """
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
            session: The conversation's name.
            started_at: Default: now.
            ended_at: None while it goes on.

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
        """Return when the last conversation ended; None where there was none.

        Args:
            bank: Name of an existing bank.
            before: The moment to look back from. Default: now.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._read(
            calls.retain.last_session_end(bank, before=self._settings.moment(before))
        )

    async def refresh_statistics(self, bank: str, *, is_full: bool | None = None) -> None:
        """Refresh the word counts of a bank, on which BM25 weights are based.

        Args:
            bank: Name of an existing bank.
            is_full: Count everything, not only documents stored since the last refresh.

        Raises:
            BankNotFound: no bank has that name.

        """
        await self._run(calls.operations.refresh_statistics(bank, is_full=is_full))

    async def bank_statistics(self, bank: str) -> list[BankStatistics]:
        """Return the BM25 statistics of a bank, and how many documents they do not count yet.

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
            start_mark: Put before each word or run of words that matches. Default: <mark>.
            end_mark: Put after it. Default: </mark>.

        Returns:
            The text, with nothing else changed and nothing escaped.

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
        """Write links of facts that were retained with ``link="deferred"``.

        Args:
            bank: Name of an existing bank.
            batch_size: How many facts to link at most, 1 to 100,000. Default: 1000.

        Returns:
            How many facts were linked; 0 when none is left.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: batch_size is out of its range.

        """
        return await self._run(calls.retain.link_pending(bank, batch_size=batch_size))

    async def maintain(
        self, bank: str | None = None, *, batch_size: int | None = None
    ) -> list[Maintained]:
        """Do work that ``retain`` left pending: count, weigh and link documents.

        One bounded piece; call it until it returns nothing.

        Args:
            bank: Name of an existing bank; all banks in turn where it is left out.
            batch_size: How many documents of each task at most, 1 to 100,000. Default: 500.

        Returns:
            What was done; empty when nothing is left.

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
        """Make the rows of a table of your own memories of a bank.

        Triggers note its changes from now on. Nothing is copied yet: call :meth:`sync_table`.

        Args:
            bank: Name of an existing bank.
            relation: The table, which the role of the connection owns.
            key: The column that tells rows apart: an integer, a text or a uuid.
            text: The column with the text; rows without one have no memory.
            fact_type: Fact type of its memories. Default: "world".
            occurred: A column of times, dates or ranges of them.
            entities: Columns with a name, with several, or with JSON as ``retain`` takes it.
            fields: Columns for other fields: ``{"context": "title", "tags": ["labels"]}``.
            apply: "later" for changes to wait for ``sync_table``, "commit" for them to reach the
                bank as their transaction commits, alone in the bank meanwhile. Default: "later".
            is_history_kept: Whether the former text of a changed row is kept as history, for
                recalls as of an earlier time. Default: true.

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
        """Bring changed rows of attached tables, and those not copied yet, into a bank.

        Afterwards it holds what was committed before. On a pool or in autocommit mode each batch
        is kept. New texts have no embedding: call :meth:`embed_pending`.

        Args:
            bank: Name of an existing bank.
            relation: An attached table, with or without its schema. Default: all of the bank.
            batch_size: Rows and changes of a table that are read at once. Default: 1000.
            progress: Called with how many more rows have been looked at.

        Returns:
            What was done to each table.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: batch_size is out of its range.
            RecallError: the table is not attached, or cannot be read as it was.

        """
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
        """List the tables that are attached to a bank, and how far behind each is.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._read(calls.operations.attached_tables(bank))

    async def detach_table(
        self, bank: str, relation: str, *, is_forgotten: bool | None = None
    ) -> int:
        """Take the triggers off a table; its memories stay as ordinary ones.

        Args:
            bank: Name of an existing bank.
            relation: An attached table, with or without its schema; it may be gone.
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
        """Say how many recalls banks had, and how long they took, from a sample of them.

        Recalls are sampled where the bank says so: ``configure_bank(bank, {"log_share": 0.01})``.
        Those of a client that :meth:`connect` opened are written to the table recall_log, a few
        seconds later, on another connection; those of :meth:`recall_many` are not.

        Args:
            bank: Name of an existing bank. Default: all banks.
            since: Only recalls from then on. Default: those of the last day.

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
        progress: Progress | None = None,
    ) -> int:
        """Embed the memories that have no embedding, such as those retained in SQL.

        With an embedder that makes token vectors also those that have none of these. Goes on where
        it was interrupted. On a pool or in autocommit mode each batch is kept.

        Args:
            bank: Name of an existing bank.
            batch_size: Texts that are embedded and stored at once, at least 1.
            from_id: Only memories from this id on.
            progress: Called with how many more texts have been embedded.

        Returns:
            How many embeddings or token vectors were stored.

        Raises:
            BankNotFound: no bank has that name.
            ModelMismatch: the bank is embedded with another model.
            InvalidArgument: the client has no embedder, or batch_size is out of its range.
            EmbedderUnavailable: the embedder's package or model is missing.

        """
        embedder = (await self._settings_for(bank)).embedder
        if embedder is None:
            raise InvalidArgument(
                "the client has no embedder", hint="Make it with embedder=..., not None."
            )
        done = 0
        lists = [calls.retain.embed_pending]
        lists += [calls.retain.tokens_pending] if makes_tokens(embedder) else []
        for pending in lists:
            start = from_id
            while texts := await self._run(pending(bank, from_id=start, batch_size=batch_size)):
                vectors = await _compute(embedded, embedder, [text.text for text in texts])
                call = calls.retain.embed_store(
                    bank, model=embedder.model, texts=texts, vectors=vectors
                )
                done += await self._run(call)
                start = texts[-1].memory_id + 1
                if progress:
                    progress(len(texts))
        return done

    async def calibrate_bank(
        self, bank: str, calibration: Calibration | Mapping[str, object] | None
    ) -> int:
        """Give the model of a bank, or its next one, constants for its similarities.

        What :func:`pgrecall.calibrate` measured: then floors, links and relevance mean the same as
        with the packaged model. Stored embeddings are rewritten in place.

        Args:
            bank: Name of an existing bank.
            calibration: The constants; None to take them back.

        Returns:
            How many facts :meth:`maintain` has to link again.

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
        """Make a second set of embeddings with another model, beside the one that is searched.

        Begins, or continues after an interruption, until nothing is pending; then the bank can be
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
                is under way; or this one was cancelled meanwhile.
            DimensionMismatch: the embedder changed the length of its embeddings.
            InvalidArgument: batch_size or rate is out of its range.
            EmbedderUnavailable: the embedder's package or model is missing.

        """
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
        """Return the progress of the re-embedding of a bank; counts its embeddings.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._run(calls.reembed.reembed_status(bank))

    async def reembed_finish(self, bank: str, *, is_lossy: bool | None = None) -> None:
        """Make the next model the bank's own, atomically.

        Args:
            bank: Name of an existing bank.
            is_lossy: Whether questions that were retained without their text may be lost.

        Raises:
            BankNotFound: no bank has that name.
            ReembedRefused: something is pending or would be lost, or nothing is under way.

        """
        await self._run(calls.reembed.reembed_finish(bank, is_lossy=is_lossy))

    async def reembed_clean(self, bank: str, *, batch_size: int | None = None) -> int:
        """Remove embeddings of models other than the bank's own, and relink their memories.

        Args:
            bank: Name of an existing bank.
            batch_size: How many memories to process at most, 1 to 100,000. Default: 100.

        Returns:
            How many memories had such embeddings; 0 when none is left.

        Raises:
            BankNotFound: no bank has that name.
            InvalidArgument: batch_size is out of its range.

        """
        return await self._run(calls.reembed.reembed_clean(bank, batch_size=batch_size))

    async def reembed_cancel(self, bank: str) -> None:
        """Cancel re-embedding a bank, which keeps its model.

        Raises:
            BankNotFound: no bank has that name.
            ReembedRefused: nothing is under way.

        """
        await self._run(calls.reembed.reembed_cancel(bank))

    async def index_plan(self, bank: str | None = None) -> list[IndexStep]:
        """List the statements that create and drop vector indexes and are due, in order.

        Each runs outside a transaction block; ``pgrecall index --apply`` runs them.

        Args:
            bank: Name of an existing bank. Default: all banks, and dropped ones.

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
            sample: How many of the bank's own vectors to search with, 1 to 10,000. Default: 100.
            k: How many nearest vectors to compare, 1 to 1000. Default: 20.
            depth: How deep to search, from k to 10,000. Default: 100.
            is_next: Whether to search by the model that the bank is being re-embedded with.

        Raises:
            BankNotFound: no bank has that name.
            ReembedRefused: the bank is not being re-embedded, and is_next was given.
            InvalidArgument: an argument is out of its range.

        """
        return await self._run(
            calls.operations.recall_check(bank, sample=sample, k=k, depth=depth, is_next=is_next)
        )

    async def query_entities(self, bank: str, query: str) -> list[QueryEntity]:
        """List the people, places, projects, ... that a query names.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._read(calls.graph.query_entities(bank, query))

    async def type_hints(self, bank: str, query: str) -> list[TypeHint]:
        """List the fact types that the words of a query ask for.

        Raises:
            BankNotFound: no bank has that name.

        """
        return await self._read(calls.recall.type_hints(bank, query))

    async def message_context(
        self, bank: str, message_id: int, *, before: int | None = None, after: int | None = None
    ) -> list[Turn]:
        """Return a message with those said before and after it in its conversation.

        Args:
            bank: Name of an existing bank.
            message_id: The memory_id of a hit of kind "message".
            before: At most how many of those before, 0 to 1000. Default: 2.
            after: At most how many of those after, 0 to 1000. Default: 2.

        Raises:
            BankNotFound: no bank has that name.
            MemoryNotFound: the bank has no such message.
            InvalidArgument: an argument is out of its range.

        """
        return await self._read(
            calls.retain.message_context(bank, message_id, before=before, after=after)
        )

    async def merge_entities(self, bank: str, entity_id: int, others: Iterable[int]) -> int:
        """Merge other entities into an entity, which takes over their names as aliases.

        Args:
            bank: Name of an existing bank.
            entity_id: The entity that stays.
            others: Entities to merge into it; missing ones are skipped.

        Returns:
            How many were merged.

        Raises:
            BankNotFound: no bank has that name.
            EntityNotFound: the bank has no such entity.

        """
        return await self._run(calls.graph.merge_entities(bank, entity_id, others))

    async def split_entity(
        self, bank: str, entity_id: int, memory_ids: Iterable[int], name: str
    ) -> int:
        """Split an entity: these memories then mention a new one instead.

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
        """List pairs of entities that may be the same, likeliest first.

        Args:
            bank: Name of an existing bank.
            top_k: Upper bound on the number of pairs, 1 to 10,000. Default: 50.

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
            OutOfTime: the timeout passed before the database had answered.
            ArmFailed: an arm failed, and strict was given.
            Exception: what the embedder, the reranker or the function of a hypothetical answer
                raised, such as EmbedderUnavailable or RerankerUnavailable, and strict was given.
            InstallError: the database has no pgrecall, or another version than the driver needs.

        """
        return list((await self.recall_report(bank, query, **options)).hits)

    async def recall_report(
        self, bank: str, query: str, **options: Unpack[RecallOptions]
    ) -> RecallReport:
        """Find what answers a query, and report on the same run: arms, times, what was left out.

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
            # The bank was switched to its next model between the two statements.
            return done(await self._answer(bank, query, options, began))

    async def recall_many(
        self, bank: str, queries: Iterable[str], **options: Unpack[RecallOptions]
    ) -> list[RecallReport]:
        """Find what answers many queries, with as many round trips as one query takes.

        They are embedded in one go, and asked in one statement, in one snapshot of the bank.

        Args:
            bank: Name of an existing bank.
            queries: The questions, at most 1,000.
            options: As for :meth:`recall`, the same for each; timeout is that of all.

        Returns:
            A report on each, in order; the times of embedding and of the database are those of all.

        Raises:
            RecallError: as :meth:`recall`; what is wrong with one fails all.

        """
        began = perf_counter()
        questions = [
            Question(self._settings, bank, query, options, on_own_thread, began)
            for query in queries
        ]
        if not questions:
            return []
        if len(questions) > MOST_QUERIES:
            raise InvalidArgument(
                f"there are {len(questions)} queries, more than {MOST_QUERIES}",
                hint="Ask them in several calls.",
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
            await _settled(pending)
        for question in questions:
            for pending in question.embed():
                await _settled(pending)
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
        """Find what answers a query, written for a language model within a budget.

        Facts are dated, numbered for citation and marked where another contradicts them; the text
        ends where the scores say that nothing more helps. The best hit is always in it.

        Args:
            bank: Name of an existing bank.
            query: The question, at most 100,000 characters.
            max_tokens: The budget, for the whole text.
            count_tokens: Counts the tokens of a text, as the model does. Default: an estimate on
                the high side.
            options: As for :meth:`recall`; top_k is by default as many as the budget may hold.

        Raises:
            InvalidArgument: the budget is too small for a line of the best hit.
            RecallError: as :meth:`recall`.

        """
        check_type("max_tokens", max_tokens, int)
        options.setdefault("top_k", likely_hits(max_tokens))
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
            is_run: False to only plan the recall: which arms would run, and why. Default: True.
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
        """List what each arm finds before fusion, whatever its weight.

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
        """Say why a memory is not in an answer, or where in it.

        Args:
            bank: Name of an existing bank.
            query: The question, at most 100,000 characters.
            memory_id: A memory or message of that bank.
            options: As for :meth:`recall`.

        Returns:
            A row for each step of the recall, in order; the last is the answer.

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
        """Make a question: read its time and embed its texts."""
        question = Question(self._settings, bank, query, options, on_own_thread, began)
        if question.needs_preparation:
            call = question.preparation_call()
            question.prepare(await self._read(call, question.trace))
        for pending in question.embed(is_strict=is_strict):
            await _settled(pending)
        return question

    async def _rerank(self, questions: Sequence[Question], answers: Sequence[Answer]) -> None:
        """Rerank answers; what late interaction says of them is ordered in one statement."""
        for question, answer in zip(questions, answers, strict=True):
            for pending in question.rerank(answer):
                await _settled(pending)
        late = {question: question.ordering for question in questions if question.ordering}
        if not late:
            return
        try:
            found = await self._read(together([*late.values()]), questions[0].trace)
        except Exception as error:  # whatever it is, the fused order is an answer
            for question in late:
                question.keep_order(error)
            return
        for question, rows in zip(late, found, strict=True):
            question.order(rows)

    async def _settings_for(self, bank: str) -> Settings:
        """Choose between two embedders, where there are two, by what the bank needs."""
        if not self._settings.depends_on_bank:
            return self._settings
        models = await self._run(calls.bank.bank_models(bank))
        return self._settings.for_bank(models)

    def _is_outside_transaction(self) -> bool:
        """Tell whether statements can be sent after one that failed."""
        connection = self._source
        return not isinstance(connection, psycopg.AsyncConnection) or (owns_transaction(connection))

    async def _run(self, call: Call[Row, T], trace: Trace | None = None) -> T:
        """Send a call that may write."""
        try:
            return await self._answered(call, trace)
        finally:
            self._replicas.wrote()

    async def _read(self, call: Call[Row, T], trace: Trace | None = None) -> T:
        """Send a call that only reads: to a replica that is near enough, else to the primary."""
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
                if isinstance(error, psycopg.errors.QueryCanceled):
                    raise  # it would take too long elsewhere, too
                self._replicas.note(place, error, trace)
        return await self._answered(call, trace)

    async def _standby(self, place: int, trace: Trace) -> AsyncRecall:
        """Return a replica, opened when it is first read from."""
        if place not in self._standbys:
            source = self._replicas.sources[place]
            dsn = replica_dsn(source) if isinstance(source, str) else None
            if dsn is not None and self._pool_size is not None:
                source = await _pool(dsn, self._pool_size)
            elif dsn is not None:
                source = await _connected(dsn, trace.left)
            opened = AsyncRecall(cast("AsyncPool", source), embedder=None, reranker=None)
            opened._dsn = dsn
            if self._standbys.setdefault(place, opened) is not opened:
                await opened.close()  # another caller was faster
        return self._standbys[place]

    async def _answered(self, call: Call[Row, T], trace: Trace | None = None) -> T:
        """Send a call to the primary, and retry it after a delay where that may help."""
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
                    ours = from_database(error) or await self._version_error(error)
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
        """Send a call, behind a gate that may refuse it, within what is left of the time."""
        with telemetry.statement(call.sql, connection), trace.timing(connection):
            cursor = connection.cursor(row_factory=call.row_factory)
            adapt(cursor.adapters)
            # Never prepared: a pooler hands the next statement to another server process.
            text = call.sql.encode()
            limit, unlimit = trace.limits()
            before = [one for one in (limit, gate) if one is not None]
            if not before:
                await cursor.execute(text, call.parameters, prepare=False)
            else:
                async with connection.pipeline():  # one round trip
                    for one in before:
                        await connection.execute(one.sql.encode(), one.parameters, prepare=False)
                    await cursor.execute(text, call.parameters, prepare=False)
                    if limit is not None:
                        await connection.execute(unlimit.sql.encode(), prepare=False)
            return call.result(await cursor.fetchall())

    @asynccontextmanager
    async def _connection(
        self, trace: Trace, at_most: float | None = None
    ) -> AsyncIterator[Connection]:
        """Lend a connection; wait for one of a pool at_most so many seconds."""
        if self._is_closed:
            raise ClientClosed("this client is closed", hint="Make another: Recall.connect().")
        start = perf_counter()
        trace.is_sent = False
        source = self._source
        if isinstance(source, psycopg.AsyncConnection):
            async with self._turn:  # a pipeline would take in what others send meanwhile
                source = cast("Connection", self._source)
                if self._dsn is not None and not is_alive(source):
                    self._source = await _connected(self._dsn, trace.left)
                    await source.close()
                    trace.acquired(start)
                yield cast("Connection", self._source)
            return
        limit = trace.pool_arguments(source.connection, at_most)
        async with source.connection(**limit) as connection:
            trace.acquired(start, source)
            yield connection
            start = perf_counter()
        trace.returned(start)


class AsyncBankHandle:
    """One bank of a client: the client's methods without the name of the bank.

    What a method does stands there: ``bank.retain(facts)`` is ``memory.retain("agent", facts)``.
    Names lose the word bank: ``bank.create()`` is ``memory.create_bank("agent")``.

    Attributes:
        memory: The client.
        name: The name of the bank.

    """

    def __init__(self, memory: AsyncRecall, name: str) -> None:
        """Keep both; nothing is sent."""
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
    forget = OfBank(AsyncRecall.forget)
    forget_messages = OfBank(AsyncRecall.forget_messages)
    get = OfBank(AsyncRecall.get)
    highlight = OfBank(AsyncRecall.highlight)
    history = OfBank(AsyncRecall.history)
    import_rows = OfBank(AsyncRecall.import_rows)
    index_plan = OfBank(AsyncRecall.index_plan)
    last_session_end = OfBank(AsyncRecall.last_session_end)
    link_pending = OfBank(AsyncRecall.link_pending)
    list_memories = OfBank(AsyncRecall.list_memories)
    log_session = OfBank(AsyncRecall.log_session)
    maintain = OfBank(AsyncRecall.maintain)
    merge_entities = OfBank(AsyncRecall.merge_entities)
    message_context = OfBank(AsyncRecall.message_context)
    near_copies = OfBank(AsyncRecall.near_copies)
    options = OfBank(AsyncRecall.bank_options)
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


async def _connected(dsn: str, seconds: float | None = None) -> Connection:
    """Open a connection, within a time limit that libpq counts in seconds."""
    limited = dsn if seconds is None else make_conninfo(dsn, connect_timeout=ceil(seconds))
    return await psycopg.AsyncConnection.connect(limited, autocommit=True)


async def _pool(dsn: str, size: int) -> AsyncPool:
    """Open a pool, whose connections are looked at before each use."""
    try:
        from psycopg_pool import AsyncConnectionPool
    except ImportError as error:
        raise InstallError(
            f"package {error.name} is missing", hint="Run: pip install 'pgrecall[pool]'"
        ) from error
    if size < 1:
        raise InvalidArgument(
            f"pool_size must be at least 1, not {size}", hint="Leave it out for one connection."
        )

    async def look(connection: Connection) -> None:
        check_alive(connection)

    await (await _connected(dsn)).close()  # what is wrong is said at once, not after a time limit
    pool = AsyncConnectionPool(
        dsn, min_size=1, max_size=size, kwargs={"autocommit": True}, check=look, open=False
    )
    await pool.open()
    return pool


async def _settled(pending: Pending[Any]) -> None:
    """Wait until it has come to a result, an error or its time limit; it keeps that."""
    try:
        with suppress(Exception):
            await asyncio.wait_for(asyncio.wrap_future(pending.future), pending.seconds)
    finally:
        pending.future.cancel()  # the worker need not go on with what nobody waits for


async def _compute(function: Callable[..., T], *arguments: object) -> T:
    """Run a long computation that sends nothing."""
    return await asyncio.to_thread(function, *arguments)
