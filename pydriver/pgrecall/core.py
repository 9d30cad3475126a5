"""Code shared by Recall and AsyncRecall: everything except sending and waiting.

Nothing here talks to a server. The clients fill a :class:`Question` or a :class:`FactBatch` step by
step and run the calls these make.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone, tzinfo
from functools import partial
from inspect import signature
from itertools import islice
from math import inf, isfinite
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, Literal, TypeVar, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgrecall import calls
from pgrecall._version import __version__
from pgrecall.arguments import check_recall, check_type
from pgrecall.asking.temporal import Anchors, TemporalConstraint, extract_temporal_constraint
from pgrecall.asking.temporal.latest_or_former import read_currency
from pgrecall.calls import Answer, Call
from pgrecall.connection import telemetry
from pgrecall.errors import (
    ArmFailed,
    InvalidArgument,
    InvalidEmbedding,
    InvalidFact,
    OutOfTime,
    RecallError,
    moved,
)
from pgrecall.inference.embedders import (
    Embedder,
    EmbedFunction,
    Role,
    RoleEmbedder,
    WorkedEmbedder,
    as_embedder,
    embed_as,
    submit_as,
)
from pgrecall.inference.rerankers import (
    BOOSTS,
    CANDIDATES,
    MODES,
    SECONDS,
    FirstPlaces,
    Order,
    PunctualReranker,
    Reranker,
    ScoreFunction,
    WorkedReranker,
    chosen_reranker,
    dated_text,
)
from pgrecall.inference.worker import Reading, on_own_thread, on_this_thread
from pgrecall.options import ARGUMENTS, EMBEDDINGS, TOP_K, SqlOptions
from pgrecall.rows import (
    ArmFinding,
    ArmReport,
    BankModels,
    Degradation,
    Hit,
    PendingText,
    Period,
    Preparation,
    RecallReport,
    RecallStep,
    Retained,
    RetainedMessage,
    Retention,
    StoredEmbedding,
    Timings,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")
Fact = Mapping[str, object] | str
"""A fact in the documented format, or just its text."""
Progress = Callable[[int], None]
"""Called with how many more facts or messages are done."""

Start = Callable[..., "Future[Any]"]
"""Calls a function with arguments, here or elsewhere."""
RerankMode = Literal["blend", "replace"]

EMBED_BATCH = 64
STREAM_BATCH = 1000
MOST_QUERIES = 1000
SLOW_CONNECTION_SECONDS = 0.05
WARN_EVERY_SECONDS = 60.0
MAX_LAG = 10.0
REPLICA_SECONDS = 2  # to wait for a connection to a replica; libpq takes no less
REST_SECONDS = 5.0  # of one that cannot be reached

_RETRY_SECONDS = (0.05, 0.2, 0.8)
_ROLLED_BACK = ("40001", "40P01", "57P03")  # nothing was done: always safe to repeat
_CONNECTION_LOST = ("08", "57P01", "57P02")
_NOT_YET = ("starting up", "shutting down", "recovery", "too many", "connection slots")
"""What a server says that takes connections again before long; it has no code for it then."""
_LAST_SESSION = "last_session"
_POSITION = re.compile(r"[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}")
_LEAST_SECONDS = 0.002  # a limit of 0 would be none, and the server counts milliseconds


@dataclass(frozen=True, slots=True)
class Settings:
    """How a client embeds, reranks and reads times.

    Attributes:
        embedder: Makes embeddings of texts; None to do without.
        reranker: Reorders the candidates; None to keep the fused order.
        timezone: Where "today" is, and what times without a zone are in.
        model: Name of the model of embeddings that callers bring along.
        next_embedder: The one that a bank is being re-embedded with; None for none.

    """

    embedder: Embedder | None
    reranker: Reranker | None
    timezone: tzinfo
    model: str | None
    next_embedder: Embedder | None = None

    @classmethod
    def of(
        cls,
        embedder: Embedder | EmbedFunction | str | None,
        reranker: Reranker | ScoreFunction | str | Path | bool | None,
        zone: str | tzinfo | None,
        model: str | None,
        next_embedder: Embedder | EmbedFunction | None = None,
    ) -> Settings:
        """Read the arguments of a client."""
        return cls(
            as_embedder(embedder, model) if embedder is not None else None,
            chosen_reranker(reranker),
            _zone(zone),
            model,
            as_embedder(next_embedder, None) if next_embedder is not None else None,
        )

    @property
    def depends_on_bank(self) -> bool:
        """Whether the models of a bank say which embedder there is for it."""
        return self.next_embedder is not None or self._earlier is not None

    @property
    def _earlier(self) -> Embedder | None:
        return cast("Embedder | None", getattr(self.embedder, "earlier", None))

    def for_bank(self, models: BankModels | Preparation) -> Settings:
        """Keep the embedders that fit a bank of this model and this next model.

        The next embedder becomes the embedder once the bank was switched to it, and is left out
        while the bank is not being re-embedded with it. A bank that was filled by the earlier one
        of an embedder, without its prompts or with the default of before, goes on with that.
        """
        current, following = models.embedding_model, models.next_model
        new, earlier = self.next_embedder, self._earlier
        if earlier is not None and earlier.model == current:
            return replace(self, embedder=earlier).for_bank(models)
        if new is None:
            return self
        if new.model == following:
            # A bank whose model has no name gets that of the embedder, as its first one does.
            name = self.embedder.model if self.embedder and current is None else None
            return replace(self, model=self.model or name)
        if new.model != current:
            return replace(self, next_embedder=None)
        is_old = self.embedder is not None and self.model == self.embedder.model
        return replace(self, embedder=new, next_embedder=None, model=None if is_old else self.model)

    def moment(self, time: datetime | None) -> datetime | None:
        """Give a time without a zone the client's; what is no time is left for calls to refuse."""
        if not isinstance(time, datetime) or time.tzinfo is not None:
            return time
        return time.replace(tzinfo=self.timezone)


class RecallOptions(SqlOptions, total=False):
    """The arguments of a recall, all optional; None is the same as not given.

    The options of :class:`pgrecall.options.SqlOptions` and, besides:

    Attributes:
        embedding: The query's embedding, shape (dimensions,), instead of the embedder's.
        during: (start, end) the query is about; either may be None. Default: the time that is read
            out of the query.
        fact_types: Only facts of these types.
        tags: Only facts with any of these tags.
        filter: Only facts that meet a condition, such as ``"confidence > 0.8"``; or the same as
            nested lists.
        top_k: Upper bound on the number of hits, 1 to 1000.
        as_of: Answer from what was known at that time. Default: the reference time.
        model: Name of the model of the embedding that is given.
        temporal: Whether to read a time out of the query. Default: True.
        language: Of the query, for the times in it: en, de, es, fr, it, nl or pt. Default: that of
            the bank's time_settings, else English.
        anchors: Instants of what "since I joined" may refer to: a mapping from the clause in lower
            case ("i joined") to a datetime, or a function that may return None.
        reference_time: The moment of asking, which "yesterday" counts back from. Default: now.
        rerank: Whether to rerank. Default: True, where the client has a reranker.
        candidates: How many of the best to rerank, at least 1. Default: as many of the best 50 as
            it takes to settle the first places, and half as many again as are returned, twice as
            many from 20 on.
        rerank_mode: "blend" the reranker's order with the fused one (the default), or "replace" the
            latter.
        rerank_seconds: Time for reranking, waiting for other callers included; candidates it does
            not suffice for stay behind in fused order, and the report says so. Where more than four
            callers a core wait, all get a part of it. Default: 2.
        boosts: Alpha of the boosts "recency", "period" and "proof" of what was reranked, 0 to 1
            each: a score is multiplied with 1 - alpha / 2 to 1 + alpha / 2. Default: 0.
        timeout: Seconds for the whole call, from its start. What precedes the database's answer,
            such as embedding, gets half of what is left each time and is left out after that; the
            database all that is left, and reranking what it leaves. Default: no limit.
        strict: Whether to raise where the embedder, the reranker, an arm or the function of a
            hypothetical answer fails, instead of answering without it. Default: False.

    """

    embedding: Iterable[float] | None
    during: Period | None
    fact_types: Sequence[str] | None
    tags: Sequence[str] | None
    filter: str | Sequence[object] | None
    top_k: int | None
    as_of: datetime | None
    model: str | None
    temporal: bool | None
    language: str | None
    anchors: Anchors | None
    reference_time: datetime | None
    rerank: bool | None
    candidates: int | None
    rerank_mode: RerankMode | None
    rerank_seconds: float | None
    boosts: Mapping[str, float] | None
    timeout: float | None
    strict: bool | None


@dataclass(slots=True)
class Trace:
    """Times of sending a call, in seconds, and its deadline."""

    wait: float = 0.0
    database: float = 0.0
    is_lost: bool = False
    is_sent: bool = False
    timeout: float | None = None
    start: float = field(default_factory=perf_counter)

    @property
    def left(self) -> float | None:
        """Seconds until the deadline, at least 0; None without one."""
        if self.timeout is None:
            return None
        return max(0.0, self.start + self.timeout - perf_counter())

    def pool_arguments(
        self, connection: Callable[..., object], at_most: float | None = None
    ) -> dict[str, float]:
        """Return the time limit for borrowing a connection, where the pool knows of one."""
        left = min((one for one in (self.left, at_most) if one is not None), default=None)
        if left is None or "timeout" not in signature(connection).parameters:
            return {}
        return {"timeout": max(left, _LEAST_SECONDS)}

    def limits(self) -> tuple[Call[Any, Any] | None, Call[Any, Any]]:
        """Return the calls that limit the time of a statement, and that restore the limit."""
        left = self.left
        limit = None if left is None else calls.limit_time(max(left, _LEAST_SECONDS))
        return limit, calls.unlimit_time()

    def too_late(self, error: psycopg.Error) -> OutOfTime | None:
        """Return the error to raise where a statement or a pool failed since time was up."""
        is_cut = isinstance(error, psycopg.errors.QueryCanceled) or error.sqlstate is None
        if not is_cut or self.left is None or self.left > _LEAST_SECONDS:
            return None
        return OutOfTime(
            f"the timeout of {self.timeout:g} s passed before the database had answered",
            hint="Allow more time with timeout=..., or ask for less with budget='low'.",
        )

    def acquired(self, since: float, source: object = None) -> None:
        """Note how long a connection took, and warn when that was long.

        Args:
            since: When it was asked for.
            source: The pool that it came from, where it says how it fares.

        """
        seconds = perf_counter() - since
        self.wait += seconds
        if seconds > SLOW_CONNECTION_SECONDS:
            _warn_of_wait(seconds, source)

    def returned(self, since: float) -> None:
        """Note how long it took to commit and to give the connection back."""
        self.database += perf_counter() - since

    @contextmanager
    def timing(self, connection: psycopg.BaseConnection[object]) -> Iterator[None]:
        """Measure a statement on the connection, and note whether that was lost."""
        self.is_lost = False
        self.is_sent = True
        start = perf_counter()
        try:
            yield
        except psycopg.Error:
            self.is_lost = connection.closed
            raise
        finally:
            self.database += perf_counter() - start


class Replicas:
    """The standbys of a client: whose turn it is, who rests, what they must have replayed.

    Attributes:
        sources: Their connection strings or pools.

    """

    def __init__(
        self, sources: Sequence[object], max_lag: float | None, reads_own_writes: bool
    ) -> None:
        """Open nothing yet.

        Raises:
            InvalidArgument: replicas is one text, or max_lag below 0.

        """
        check_type("replicas", sources, Sequence)
        check_type("max_lag", max_lag, float | None)
        check_type("read_your_writes", reads_own_writes, bool)
        if isinstance(sources, str):
            raise InvalidArgument("replicas is a text, not a list of them", hint="Give a list.")
        if max_lag is not None and not max_lag >= 0:
            raise InvalidArgument(
                f"max_lag must be at least 0, not {max_lag}", hint="Give seconds."
            )
        self.sources = [*sources]
        self._max_lag = max_lag
        self._reads_own_writes = reads_own_writes
        self._rest_until = [-inf] * len(self.sources)
        self._turn = 0
        self._written = self._seen = 0  # counts of writes
        self._after: str | None = None

    def order(self) -> list[int]:
        """List the places of those to ask, in the order of asking."""
        self._turn += 1
        count, now = len(self.sources), perf_counter()
        turns = ((self._turn + n) % count for n in range(count))
        return [place for place in turns if self._rest_until[place] <= now]

    def wrote(self) -> None:
        """Note that something may have been written."""
        self._written += 1

    def unseen(self) -> int | None:
        """Return the count of writes, where it is not known up to where they reach in the log."""
        is_needed = self._reads_own_writes and self._seen < self._written
        return self._written if is_needed else None

    def require(self, position: str, written: int = 0) -> None:
        """Keep reads behind a position, and so many writes before it.

        Raises:
            InvalidArgument: it is no position in a log.

        """
        check_type("position", position, str)
        if not _POSITION.fullmatch(position):
            raise InvalidArgument(
                f'"{position}" is no position in the log of a server',
                hint='Pass what position() returned, such as "0/3000060".',
            )
        self._after = max(self._after or position, position, key=_log_bytes)
        self._seen = max(self._seen, written)

    def gate(self) -> Call[Any, Any]:
        """Return the call that fails where a standby is not near enough."""
        return calls.replica_lag(at_most=self._max_lag, after=self._after)

    def note(self, place: int, error: psycopg.Error, trace: Trace) -> None:
        """Let one that cannot be reached rest; one that is behind may soon have caught up."""
        is_reached = trace.is_sent and not trace.is_lost
        level = logging.DEBUG if is_reached else logging.WARNING
        logger.log(level, "replica %d did not answer: %s", place, error)
        if not is_reached:
            self._rest_until[place] = perf_counter() + REST_SECONDS


def _log_bytes(position: str) -> int:
    high, low = position.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def replica_dsn(dsn: str) -> str:
    """Name the connection as :func:`named_dsn` does, and do not wait long for it."""
    named = named_dsn(dsn)
    if conninfo_to_dict(named).get("connect_timeout"):
        return named
    return make_conninfo(named, connect_timeout=REPLICA_SECONDS)


def retry_delays() -> Iterator[float]:
    """Give the seconds to wait before each repetition, a little at random."""
    for seconds in _RETRY_SECONDS:
        yield seconds * random.uniform(0.5, 1.5)


def is_transient(error: psycopg.Error, is_repeatable: bool, trace: Trace) -> bool:
    """Tell whether repeating a call may succeed and is safe."""
    state = error.sqlstate or ""
    if not trace.is_sent:
        return _may_connect(error)
    if state in _ROLLED_BACK:
        return True
    return is_repeatable and (trace.is_lost or state.startswith(_CONNECTION_LOST))


def _may_connect(error: psycopg.Error) -> bool:
    """Tell whether connecting again may succeed: nothing was refused for good, nothing waited for.

    A pool that gave no connection in time has waited long enough.
    """
    if type(error).__name__ in ("PoolTimeout", "PoolClosed"):
        return False
    said = str(error)
    return isinstance(error, psycopg.OperationalError) and (
        "FATAL" not in said or any(words in said for words in _NOT_YET)
    )


_warned_at = -inf


def _warn_of_wait(seconds: float, source: object) -> None:
    """Warn that a connection took long, at most once in a while."""
    global _warned_at
    if perf_counter() - _warned_at < WARN_EVERY_SECONDS:
        return
    _warned_at = perf_counter()
    state = ""
    if hasattr(source, "get_stats"):
        found = source.get_stats()
        size, idle, waiting = (
            found.get(name, 0) for name in ("pool_size", "pool_available", "requests_waiting")
        )
        state = f"; the pool has {size}, {idle} idle, and {waiting} callers wait"
    logger.warning("waited %.0f ms for a connection%s", seconds * 1000, state)


def named_dsn(dsn: str) -> str:
    """Let the server show whose connection it is, unless the DSN or PGAPPNAME says."""
    return make_conninfo(dsn, fallback_application_name=f"pgrecall {__version__}")


def is_alive(connection: psycopg.BaseConnection[Any]) -> bool:
    """Tell whether the server still holds a connection, as far as can be seen without asking.

    What it sent with its farewell is read first, and the end of the connection behind it.
    """
    if connection.closed:
        return False
    try:
        for _ in range(2):
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return False
    return connection.pgconn.status == psycopg.pq.ConnStatus.OK


def check_alive(connection: psycopg.BaseConnection[Any]) -> None:
    """Raise where :func:`is_alive` is false, as a pool wants it."""
    if not is_alive(connection):
        raise psycopg.OperationalError("the server closed the connection")


def owns_transaction(connection: psycopg.BaseConnection[object]) -> bool:
    """Tell whether a statement sent now is a transaction of its own."""
    idle = psycopg.pq.TransactionStatus.IDLE
    return connection.autocommit and connection.info.transaction_status == idle


@dataclass(frozen=True, slots=True)
class Step(Generic[T]):
    """Something to wait for.

    Attributes:
        future: What it will come to.
        seconds: How long to wait; None for as long as it takes.

    """

    future: Future[T]
    seconds: float | None

    def result(self) -> T:
        """Return what it came to.

        Raises:
            TimeoutError: it took too long.
            Exception: what it raised.

        """
        if self.future.cancelled():
            raise TimeoutError(f"it took longer than {self.seconds or 0:.3g} s")
        return self.future.result()


class Question:
    """One recall on its way: made, embedded, sent, reranked, then reported on.

    Attributes:
        trace: Times of the sending, and the deadline.
        needs_preparation: Whether the bank has to be asked before the query is embedded.
        log_share: The share of such questions that the bank wants logged; 0 if it was not asked.

    """

    log_share = 0.0

    def __init__(
        self,
        settings: Settings,
        bank: str,
        query: str,
        options: Mapping[str, Any],
        start: Start = on_this_thread,
        began: float | None = None,
    ) -> None:
        """Separate options of the driver from those of the database.

        Args:
            settings: Those of the client.
            bank: Name of the bank.
            query: The query.
            options: Those of a recall.
            start: Calls the functions of the user: here, or elsewhere where that must not wait.
            began: When the call began, by perf_counter(). Default: now.

        """
        check_recall(bank, query, options, RecallOptions)
        given = {name: value for name, value in options.items() if value is not None}
        self.trace = Trace(
            timeout=_timeout(given.pop("timeout", None)),
            start=perf_counter() if began is None else began,
        )
        self._start = start if self.trace.timeout is None else on_own_thread
        self._is_strict = bool(given.pop("strict", False))
        self._degradations: list[Degradation] = []
        self._hits: list[Hit] = []
        self._limit = inf
        self._settings = settings
        self._bank = bank
        self._query = self._embedded_text = query
        self._language: str | None = given.pop("language", None)
        self._anchors: Anchors | None = given.pop("anchors", None)
        self._reranking = _Reranking(settings, given)
        reference_time = settings.moment(given.pop("reference_time", None))
        self._reference_time = reference_time or datetime.now(timezone.utc)
        self._seconds = dict.fromkeys(("temporal", "embed", "queue", "rerank"), 0.0)
        self._constraint: TemporalConstraint | None = None
        during: Period | None = given.pop("during", None)
        self._during = during and (settings.moment(during[0]), settings.moment(during[1]))
        self._reads_time = given.pop("temporal", True) and during is None

        self._texts: dict[str, str | Callable[[str], str]] = {}
        for name in EMBEDDINGS & given.keys():
            value = given.pop(name)
            if isinstance(value, str) or callable(value):
                self._texts[name] = value
            else:
                given[name] = calls.to_floats(value, name)
        arguments = {name: given.pop(name) for name in ARGUMENTS if name in given}
        has_embedding = "embedding" in arguments
        if has_embedding:
            vector = calls.to_floats(arguments["embedding"])
            arguments["embedding"] = calls.array_text(vector)
        self._lacks_model = has_embedding and arguments.get("model") is None
        # A reference time in the past also sets what was known.
        arguments["as_of"] = settings.moment(arguments.get("as_of")) or reference_time
        arguments |= {"bank": bank, "query": query, "during": calls.to_range(self._during)}
        self._arguments = calls.recall_arguments(arguments, given)
        self._name_model()
        is_query = query.strip() != ""
        self._embeds_query = settings.embedder is not None and not has_embedding and is_query
        self.needs_preparation = (
            self._embeds_query
            or (self._reads_time and is_query)
            or (settings.depends_on_bank and (has_embedding or bool(self._texts)))
        )

    def _name_model(self) -> None:
        """Name the model of an embedding that the caller gave without one."""
        if self._lacks_model and self._settings.model is not None:
            self._arguments["model"] = self._settings.model
        elif self._lacks_model:
            self._arguments.pop("model", None)

    def preparation_call(self) -> Call[Preparation, Preparation]:
        """Return the call that says what the bank knows about the query."""
        return calls.prepare_recall(self._bank, self._query, before=self._reference_time)

    def prepare(self, preparation: Preparation) -> None:
        """Read the time out of the query, and keep what is to be embedded of it, and by what.

        Raises:
            InvalidArgument: the language is not known.

        """
        self._settings = self._settings.for_bank(preparation)
        self._name_model()
        self._embedded_text = preparation.embedded_text
        self.log_share = preparation.log_share
        if self._reads_time and self._query.strip():
            self._read_time(preparation)
            self._arguments["during"] = calls.to_range(self._during)
            self._read_currency(preparation)

    def _read_time(self, preparation: Preparation) -> None:
        arguments = dict(preparation.time_settings)
        if self._language is not None:
            arguments["language"] = self._language

        def anchor(name: str) -> datetime | None:
            if self._anchors is not None:
                find = self._anchors if callable(self._anchors) else self._anchors.get
                known = find(name)
                if known is not None:
                    return self._settings.moment(known)
            return preparation.last_session_end if name == _LAST_SESSION else None

        with self._timed("temporal"):
            try:
                found = extract_temporal_constraint(
                    self._query,
                    self._reference_time,
                    timezone=self._settings.timezone,
                    anchors=anchor,
                    **arguments,
                )
            except ValueError as error:
                raise InvalidArgument(
                    str(error), hint="Pass temporal=False to read no time out of the query."
                ) from error
        if found is not None:
            self._constraint = found
            self._during = found.start, found.end

    def _read_currency(self, preparation: Preparation) -> None:
        """Ask for the latest or a former state where the query does.

        Time then orders hits that say nearly the same, which a reranker would reorder.
        """
        options = cast("dict[str, object]", self._arguments["options"])
        language = self._language or preparation.time_settings.get("language", "en")
        direction = read_currency(
            self._query,
            language=language,
            latest=_texts(options.get("latest_words", preparation.latest_words)),
            former=_texts(options.get("former_words", preparation.former_words)),
        ).direction
        if direction is not None and "prefer" not in options:
            options["prefer"] = direction
            self._reranking.reranker = None

    def embed(self, *, is_strict: bool = False) -> Iterator[Step[Any]]:
        """Embed what has to be embedded, all in one go; wait for each step.

        Args:
            is_strict: Whether to raise what an embedder raises, whatever the option says.

        Raises:
            Exception: what the embedder or the function raised, where that is wanted.

        """
        embedder = self._settings.embedder
        if embedder is None:
            return
        self._is_strict |= is_strict
        texts: dict[str, str] = {}
        for name, text in self._texts.items():
            if not callable(text):
                texts[name] = text
                continue
            try:
                texts[name] = yield from self._waited(
                    "embed", partial(self._start, text, self._query), self._share()
                )
            except Exception as error:  # whatever it is, the other arms answer
                self._leave_out(name, f"{name} was left out: ", error)
        if self._embeds_query:
            texts["embedding"] = self._embedded_text
        options = cast("dict[str, object]", self._arguments["options"])
        try:
            for role, names in _by_role(embedder, texts):
                begin = partial(
                    self._begun_embedding, embedder, role, [texts[name] for name in names]
                )
                vectors = yield from self._waited("embed", begin, self._share())
                read = checked(embedder.model, [*vectors], len(names))
                for name, vector in zip(names, read, strict=True):
                    if name == "embedding":
                        self._arguments[name] = calls.array_text(vector)
                    else:
                        options[name] = vector
                self._arguments.setdefault("model", embedder.model)
        except Exception as error:  # whatever it is, the other arms answer
            self._leave_out("embedder", "nothing was searched by embedding: ", error)

    def _begun_embedding(self, embedder: Embedder, role: Role, texts: list[str]) -> Future[Any]:
        if isinstance(embedder, WorkedEmbedder):
            return submit_as(embedder, role, texts)
        return self._start(lambda: [*embed_as(embedder, role, texts)])

    def _share(self) -> float | None:
        left = self.trace.left
        return None if left is None else left / 2

    def _waited(
        self, stage: str, begin: Callable[[], Future[Any]], seconds: float | None
    ) -> Generator[Step[Any], None, Any]:
        """Begin something, have it waited for, and return what it came to.

        What the worker says it waited for others is counted apart from the stage.
        """
        start, waited = perf_counter(), 0.0
        try:
            step = Step(begin(), seconds)
            yield step
            found = step.result()
            if not isinstance(found, Reading):
                return found
            waited = max(0.0, perf_counter() - start - found.seconds)
            self._limit = found.limit
            return found.found
        finally:
            seconds = perf_counter() - start
            self._seconds["queue"] += waited
            self._seconds[stage] += seconds - waited
            telemetry.stage(stage, seconds)

    def _leave_out(self, what: str, why: str, error: Exception) -> None:
        """Report what failed and is left out, or raise it where that is wanted."""
        if self._is_strict:
            raise error
        reason, hint = said(error)
        self._degradations.append(Degradation(what, f"{why}{reason}", hint))

    def call(self) -> Call[Any, Answer]:
        """Return the one call that finds the candidates, and reports on the arms."""
        return calls.recall_report(self._arguments)

    def explain_call(self, is_run: bool | None) -> Call[ArmReport, list[ArmReport]]:
        """Return the call that only reports on the arms."""
        return calls.explain_recall(self._arguments, is_run=is_run)

    def arm_hits_call(self) -> Call[ArmFinding, list[ArmFinding]]:
        """Return the call that says what each arm finds."""
        return calls.arm_hits(self._arguments)

    def why_not_call(self, memory_id: int) -> Call[RecallStep, list[RecallStep]]:
        """Return the call that follows one memory through the recall."""
        return calls.why_not(self._arguments, memory_id)

    @property
    def is_reranked(self) -> bool:
        """Whether the answer of the database is a list of candidates for the reranker."""
        return self._reranking.reranker is not None

    def reranked_steps(self, steps: Sequence[RecallStep], memory_id: int) -> list[RecallStep]:
        """Add to the steps of a memory what became of the candidate."""
        candidate = replace(steps[-1], step="candidates")
        places = {hit.memory_id: place for place, hit in enumerate(self._hits, 1)}
        place = places.get(memory_id) if candidate.status == "returned" else None
        if place is None:
            reason = "it is not among the candidates that the reranker orders"
            return [*steps[:-1], candidate, RecallStep("answer", "left out", None, None, reason)]
        page, score = self._reranking.page, self._hits[place - 1].final_score
        reason, status = f"of {len(self._hits)}, reranked", "returned"
        if not page.start < place <= page.stop:
            reason += f"; the answer is {page.start + 1} to {page.stop}"
            status = "left out"
        return [*steps[:-1], candidate, RecallStep("answer", status, place, score, reason)]

    def rerank(self, answer: Answer) -> Iterator[Step[Any]]:
        """Rerank the hits; wait for each step.

        Raises:
            Exception: what the reranker raised, where that is wanted.

        """
        for arm in answer.arms:
            if self._is_strict and arm.status == "failed":
                raise ArmFailed(_degradation(arm).why, hint=arm.hint)
        self._arms = answer.arms
        self._hits = answer.hits
        reranking = self._reranking
        if reranking.reranker is None or not self._hits:
            return
        constraint = self._constraint
        # "recently" would be as vague beside a date as it is in the question.
        asked = constraint.matched if constraint and constraint.kind != "fuzzy" else ""
        begin = reranking.begin(
            self._hits,
            self._query,
            self._reference_time,
            self._during,
            asked,
            self.trace.left,
            self._start,
        )
        try:
            scores = yield from self._waited("rerank", begin, self.trace.left)
            self._hits = reranking.ordered(scores, self._limit)
        except Exception as error:  # whatever it is, the fused order is an answer
            self._leave_out("reranker", "", error)
            return
        degradation = reranking.degradation
        if degradation and self._is_strict:
            raise OutOfTime(degradation.why, hint=degradation.hint)
        self._degradations += [degradation] if degradation else []

    def report(self) -> RecallReport:
        """Make the report."""
        left_out = [_degradation(arm) for arm in self._arms if arm.hint or arm.status == "failed"]
        page = self._hits[self._reranking.page]
        constraint = self._constraint
        stages = {
            "temporal": self._seconds["temporal"],
            "embed": self._seconds["embed"],
            "wait": self.trace.wait,
            "database": self.trace.database,
            "rerank": self._seconds["rerank"],
            "queue": self._seconds["queue"],
        }
        rest = perf_counter() - self.trace.start - sum(stages.values())
        return RecallReport(
            hits=tuple(page),
            timings=Timings(
                **{stage: seconds * 1000 for stage, seconds in stages.items()},
                driver=max(0.0, rest) * 1000,
            ),
            temporal=constraint,
            facts=(constraint.fact(),) if constraint is not None else (),
            degradations=(*left_out, *self._degradations),
            arms=tuple(self._arms),
            confidence=max((hit.relevance for hit in page), default=0.0),
            reranked=sum(hit.rerank_score is not None for hit in self._hits),
        )

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        start = perf_counter()
        try:
            yield
        finally:
            self._seconds[stage] += perf_counter() - start


class _Known:
    """An embedder that has embedded the queries before, all in one go."""

    prompts: Mapping[str, str] = {}

    def __init__(
        self, embedder: Embedder, vectors: Mapping[str, list[float]], error: Exception | None
    ) -> None:
        self.model = embedder.model
        self.dimensions = None
        self._embedder = embedder
        self._vectors = vectors
        self._error = error

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return self.embed_documents(texts)

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        if self._error is not None:
            raise self._error
        return embedded(self._embedder, texts)

    def embed_query(self, texts: Sequence[str]) -> list[list[float]]:
        if self._error is not None:
            raise self._error
        return [self._vectors[text] for text in texts]


def _by_role(embedder: Embedder, texts: Mapping[str, str]) -> Iterator[tuple[Role, Sequence[str]]]:
    """Say which of the texts of a recall are embedded in one go, and as what.

    A made-up answer is a passage.
    """
    if not isinstance(embedder, RoleEmbedder):
        if texts:
            yield "query", [*texts]
        return
    if "embedding" in texts:
        yield "query", ["embedding"]
    if answers := [name for name in texts if name != "embedding"]:
        yield "document", answers


def embed_together(questions: Sequence[Question]) -> Iterator[Step[Any]]:
    """Embed the queries of questions in one go, for each to find its vector; wait for each step.

    What fails is an error of each question.
    """
    first = questions[0]
    embedder = first._settings.embedder
    texts = [*dict.fromkeys(one._embedded_text for one in questions if one._embeds_query)]
    if embedder is None or not texts:
        return
    vectors: dict[str, list[float]] = {}
    failed = None
    try:
        begin = partial(first._begun_embedding, embedder, "query", texts)
        found = yield from first._waited("embed", begin, first._share())
        vectors = dict(zip(texts, checked(embedder.model, [*found], len(texts)), strict=True))
    except Exception as error:  # whatever it is, the other arms answer
        failed = error
    for one in questions:
        one._settings = replace(one._settings, embedder=_Known(embedder, vectors, failed))


def _texts(words: object) -> list[str]:
    """Take the texts of a list; what else there is, the database refuses."""
    return [one for one in words if isinstance(one, str)] if isinstance(words, list) else []


class _Reranking:
    """How an answer is reranked, and which page of it is returned.

    Attributes:
        reranker: Reorders the candidates; None to keep the fused order.
        page: What is returned of the ordered candidates.
        degradation: What there was no time for.

    """

    def __init__(self, settings: Settings, given: dict[str, Any]) -> None:
        """Read the options of reranking, and ask the database for all candidates.

        Raises:
            InvalidArgument: an option of reranking is out of its range.

        """
        self.page = slice(None)
        self.degradation: Degradation | None = None
        self.reranker = settings.reranker if given.pop("rerank", True) else None
        self._is_open = "candidates" not in given
        self._candidates: int = given.pop("candidates", CANDIDATES)
        self._mode: str = given.pop("rerank_mode", MODES[0])
        self._seconds: float = given.pop("rerank_seconds", SECONDS)
        self._boosts: Mapping[str, float] = given.pop("boosts", {})
        self._is_collapsed = bool(given.get("collapse"))
        self._check()
        if self.reranker is not None:
            skip, top_k = given.get("skip", 0), given.get("top_k", TOP_K)
            is_known = isinstance(skip, int) and isinstance(top_k, int)
            if is_known and skip >= 0 and top_k >= 1:  # pages are cut from the reranked order
                given.pop("skip", None)
                given["top_k"] = max(skip + top_k, self._candidates)
                self.page = slice(skip, skip + top_k)

    def _check(self) -> None:
        if self._candidates < 1:
            raise InvalidArgument(
                f"candidates is {self._candidates}, not 1 or more",
                hint="Pass rerank=False to rerank none.",
            )
        if self._mode not in MODES:
            raise InvalidArgument(
                f'there is no rerank_mode "{self._mode}"', hint=f"Use one of: {', '.join(MODES)}."
            )
        if not self._seconds >= 0:
            raise InvalidArgument(
                f"rerank_seconds is {self._seconds}, not 0 or more",
                hint="Pass a time in seconds, such as 2.",
            )
        for name, alpha in self._boosts.items():
            if name not in BOOSTS:
                raise InvalidArgument(
                    f'there is no boost "{name}"', hint=f"Use one of: {', '.join(BOOSTS)}."
                )
            if not 0 <= alpha <= 1:
                raise InvalidArgument(
                    f'the boost "{name}" is {alpha}, not 0 to 1',
                    hint="0.2 is ten percent either way.",
                )

    def begin(
        self,
        hits: list[Hit],
        query: str,
        reference_time: datetime,
        during: Period | None,
        asked: str,
        left: float | None,
        start: Start,
    ) -> Callable[[], Future[Any]]:
        """Return what has the candidates read."""
        assert self.reranker is not None
        reranker = self.reranker
        self._texts = [dated_text(hit, during, asked) for hit in hits[: self._candidates]]
        self._order = Order(
            hits,
            reference_time=reference_time,
            during=during,
            mode=self._mode,
            boosts=self._boosts,
            is_collapsed=self._is_collapsed,
        )
        self._first = (
            FirstPlaces(self._order, len(self._texts), self.page.stop) if self._is_open else None
        )
        # A tenth is left for handing over what was read in the other nine.
        self._limit = self._seconds if left is None else min(self._seconds, 0.9 * left)
        if isinstance(reranker, WorkedReranker):
            return partial(
                reranker.submit,
                query,
                self._texts,
                seconds=self._limit,
                is_enough=self._first,
            )
        return partial(start, self._scores, query)

    def _scores(self, query: str) -> Sequence[float]:
        """Let the reranker score the texts.

        Raises:
            InvalidArgument: what it gives are no relevances, such as the logits of a model.
            ValueError: it does not give one for each text.

        """
        if isinstance(self.reranker, PunctualReranker):
            scores = [*self.reranker.scores_within(query, self._texts, self._limit)]
        else:
            assert self.reranker is not None
            scores = [*self.reranker.scores(query, self._texts)]
            if len(scores) != len(self._texts):
                raise ValueError(f"it gave {len(scores)} scores for {len(self._texts)} texts")
        for score in scores:
            if not 0 <= score <= 1:
                raise InvalidArgument(
                    f"the reranker gave {score:g}, not a relevance from 0 to 1",
                    hint="Make relevances of logits first, by 1 / (1 + exp(-logit)).",
                )
        return scores

    def ordered(self, scores: Sequence[float], limit: float) -> list[Hit]:
        """Order the hits; note what there was no time to read.

        Args:
            scores: Of the first of them.
            limit: What the worker made of the time limit.

        """
        wanted, read = len(self._texts), len(scores)
        if read < wanted and not (self._first and self._first.are_settled):
            crowd = f" of {self._limit:.3g}, since many callers wait" if limit < self._limit else ""
            self.degradation = Degradation(
                "reranker",
                f"{read} of {wanted} candidates were read in {min(limit, self._limit):.3g} s"
                f"{crowd}; the others keep their order behind them",
                "Allow more time with rerank_seconds=..., or ask for fewer candidates=...",
            )
        return self._order.hits(scores)


def _timeout(seconds: float | None) -> float | None:
    if seconds is not None and not seconds > 0:
        raise InvalidArgument(
            f"timeout is {seconds}, not above 0", hint="Give seconds for the whole call, such as 2."
        )
    return seconds


def said(error: Exception) -> tuple[str, str | None]:
    """Return what an error says, and its hint."""
    if isinstance(error, RecallError):
        return error.message, error.hint
    return f"it failed with {type(error).__name__}: {error}", None


def _degradation(arm: ArmReport) -> Degradation:
    problem = "the {} arm failed and was left out: {}" if arm.status == "failed" else "{}: {}"
    return Degradation("arm", problem.format(arm.arm, arm.reason or "no reason given"), arm.hint)


def embedded(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    """Embed passages, and check what came out.

    Raises:
        InvalidEmbedding: the embedder did not give one usable vector for each text.
        Exception: what it raised.

    """
    return checked(embedder.model, [*embed_as(embedder, "document", texts)], len(texts))


def checked(model: str, vectors: Sequence[object], wanted: int) -> list[list[float]]:
    """Refuse vectors that no bank can take, in the name of the embedder that made them.

    Raises:
        InvalidEmbedding: they are too few or too many, of different lengths, empty, all zeros, or
            hold what is not a finite number.

    """
    name = f'the embedder "{model}"'
    hint = "Let it return one list of numbers for each text, all of one length."
    if len(vectors) != wanted:
        raise InvalidEmbedding(f"{name} gave {len(vectors)} vectors for {wanted} texts", hint=hint)
    read: list[list[float]] = []
    for n, vector in enumerate(vectors):
        numbers = calls.to_floats(vector, f"vector {n} of {name}")
        size = sum(map(abs, numbers))
        if not isfinite(size):
            raise InvalidEmbedding(f"{name} gave a number that is not finite", hint=hint)
        if size == 0:
            raise InvalidEmbedding(f"{name} gave a vector that is empty or all zeros", hint=hint)
        if read and len(numbers) != len(read[0]):
            raise InvalidEmbedding(
                f"{name} gave vectors of {len(read[0])} and of {len(numbers)} dimensions", hint=hint
            )
        read.append(numbers)
    return read


class FactBatch:
    """Facts on their way into a bank: checked for what PostgreSQL cannot hold, then embedded.

    What the bank holds already is not embedded again, but sent with the embedding it has there:
    so a fact that is forgotten meanwhile is not stored without one.

    Attributes:
        facts: The facts, as they are sent.
        model: Name of the model of their embeddings; None where it has none, or there are none.
        needs_embeddings: Whether the bank has to be asked for those.

    """

    def __init__(
        self,
        settings: Settings,
        facts: Iterable[Fact],
        model: str | None,
        is_strict: bool = False,
    ) -> None:
        """Copy the facts into what JSON can hold.

        Raises:
            InvalidFact: a fact holds what it cannot.

        """
        if isinstance(facts, str | Mapping):
            facts = [facts]
        self.facts = calls.plain_facts(facts)
        self._settings = settings
        self.model = model or settings.model
        self._is_strict = is_strict
        self._failed: set[str] = set()
        self._stored: dict[tuple[int, str], str] = {}
        self.needs_embeddings = any(
            settings.next_embedder is not None
            or (settings.embedder is not None and place.get("embedding") is None)
            for fact in self.facts
            for place in _places(fact)
        )

    def stored_call(self, bank: str) -> Call[StoredEmbedding, list[StoredEmbedding]]:
        """Return the call that asks for the embeddings that the bank has."""
        return calls.stored_embeddings(bank, self.facts)

    def add_stored(self, embeddings: list[StoredEmbedding]) -> None:
        """Note embeddings that the bank has."""
        for stored in embeddings:
            place: Any = self.facts[stored.index]
            if stored.kind == "question":
                place = place["questions"][stored.ordinal]
            self._stored[id(place), stored.model] = calls.vector_text(stored.embedding)

    def chunks(self) -> Iterator[list[object]]:
        """Cut the batch into what is embedded in one go."""
        facts = iter(self.facts)
        while chunk := list(islice(facts, EMBED_BATCH)):
            yield chunk

    def embed(self, chunk: Sequence[object]) -> None:
        """Embed facts and questions that neither brought nor have one. Takes long, sends nothing.

        Where an embedder fails, they stay without, and it is not asked again.

        Raises:
            Exception: what the embedder raised, where that is wanted.

        """
        places = [place for fact in chunk for place in _places(fact)]
        embedder, following = self._settings.embedder, self._settings.next_embedder
        bare = [place for place in places if place.get("embedding") is None]
        if embedder is not None and bare:
            name = embedder.model if following is not None else self.model or embedder.model
            for place, vector in self._vectors(embedder, name, bare):
                if following is None:
                    place["embedding"] = vector
                    self.model = name
                else:  # by name: the bank may be switched before this arrives
                    place["embeddings"] = {embedder.model: vector}
        # A fact without an embedding of the bank's model cannot be found, so it is not retained.
        own = [place for place in places if place.get("embedding") or place.get("embeddings")]
        if following is not None and own:
            for place, vector in self._vectors(following, following.model, own):
                known = cast("dict[str, object]", place.get("embeddings") or {})
                place["embeddings"] = {**known, following.model: vector}

    def _vectors(
        self, embedder: Embedder, model: str, places: Sequence[dict[str, object]]
    ) -> Iterator[tuple[dict[str, object], str]]:
        """Give each place its embedding: the one that is stored, else a new one."""
        new = [place for place in places if (id(place), model) not in self._stored]
        texts = [str(place["text"]) for place in new]
        if texts and model not in self._failed:
            try:
                for place, vector in zip(new, embedded(embedder, texts), strict=True):
                    self._stored[id(place), model] = calls.vector_text(vector)
            except Exception as error:  # whatever it is, the facts are worth more
                if self._is_strict:
                    raise
                self._failed.add(model)
                logger.warning("facts are stored without embedding: %s", said(error)[0])
        for place in places:
            if (id(place), model) in self._stored:
                yield place, self._stored[id(place), model]

    def call(
        self, bank: str, link: str | None, replace: str | None
    ) -> Call[Retained, list[Retained]]:
        """Return the call that writes the batch."""
        facts = (
            [_without_bare_questions(fact) for fact in self.facts] if self._failed else self.facts
        )
        call = calls.retain(bank, facts, model=self.model, link=link, replace=replace)
        return call if not self._failed else calls.then(call, self._marked)

    def _marked(self, rows: list[Retained]) -> list[Retained]:
        """Mark the facts that lack an embedding since the embedder failed."""
        return [
            replace(row, is_embedded=all(map(_has_embedding, _places(fact, is_all=True))))
            for row, fact in zip(rows, self.facts, strict=True)
        ]


class Refill:
    """A bank on its way to another model: what to ask for next, and how fast.

    Attributes:
        from_id: The memory to continue from.
        is_done: Whether nothing is pending any more.
        stored: How many embeddings were made.

    """

    def __init__(
        self, bank: str, embedder: Embedder | EmbedFunction, batch_size: int, rate: float | None
    ) -> None:
        """Choose the model.

        Raises:
            InvalidArgument: batch_size or rate is out of its range.

        """
        if batch_size < 1 or (rate is not None and not rate > 0):
            raise InvalidArgument(
                f"batch_size must be at least 1 and rate above 0, not {batch_size} and {rate}"
            )
        self.from_id = 0
        self.is_done = False
        self.stored = 0
        self._bank = bank
        self._embedder = as_embedder(embedder, None)
        self._batch_size = batch_size
        self._rate = rate
        self._began = 0.0

    def start_call(self) -> Call[object, None]:
        """Return the call that begins. Embeds a word to learn the dimensions: takes long."""
        (vector,) = embedded(self._embedder, ["dimensions"])
        self._began = perf_counter()
        return calls.reembed_start(self._bank, model=self._embedder.model, dimensions=len(vector))

    def pending_call(self) -> Call[PendingText, list[PendingText]]:
        """Return the call that says what to embed next."""
        return calls.reembed_pending(self._bank, from_id=self.from_id, batch_size=self._batch_size)

    def store_call(self, texts: Sequence[PendingText]) -> Call[int, int]:
        """Embed texts and return the call that stores what came out. Takes long, sends nothing."""
        return calls.reembed_store(
            self._bank,
            model=self._embedder.model,
            texts=texts,
            vectors=embedded(self._embedder, [text.text for text in texts]) if texts else (),
        )

    def advance(self, texts: Sequence[PendingText]) -> float:
        """Note what was stored; say how many seconds to wait before the next batch.

        The end was reached when nothing is pending from the beginning either: facts of writers that
        committed late have lower ids.
        """
        self.is_done = not texts and self.from_id == 0
        self.from_id = texts[-1].memory_id if texts else 0
        self.stored += len(texts)
        ahead = self.stored / self._rate - (perf_counter() - self._began) if self._rate else 0.0
        return max(0.0, ahead)


class Stream:
    """Batches of facts or messages that belong together, though each is written by itself."""

    def __init__(self) -> None:
        """Start with nothing written."""
        self._ids: list[int] = []
        self._new = 0
        self._bare = 0

    def batches(self, rows: Iterable[T], size: int) -> Iterator[list[T]]:
        """Cut a long stream into batches."""
        if size < 1:
            raise InvalidArgument(f"batch_size must be at least 1, not {size}")
        remaining = iter(rows)
        yield list(islice(remaining, size))  # an empty one too: it is refused by a missing bank
        while batch := list(islice(remaining, size)):
            yield batch

    @contextmanager
    def positions(self) -> Iterator[None]:
        """Count the position in an error from the start of the stream."""
        try:
            yield
        except RecallError as error:
            if error.position is None or not self._ids:
                raise
            raise moved(error, len(self._ids)) from error.__cause__

    def relinked(self, batch: Sequence[Fact]) -> list[Fact]:
        """Let links count positions from the start of the stream.

        Raises:
            InvalidFact: a link leads to a fact of a later batch.

        """
        return relinked(batch, len(self._ids), self._ids)

    def add(self, rows: Sequence[Retained] | Sequence[RetainedMessage]) -> None:
        """Note what was written."""
        for row in rows:
            self._ids.append(row.memory_id if isinstance(row, Retained) else row.message_id)
            self._new += row.is_new
            self._bare += isinstance(row, Retained) and not row.is_embedded

    def retention(self) -> Retention:
        """Sum up."""
        return Retention(len(self._ids), self._new, self._bare)


def relinked(batch: Sequence[Fact], start: int, ids: Sequence[int]) -> list[Fact]:
    """Let links count positions from the start of a stream.

    Args:
        batch: Facts, the first of which is at position start.
        start: As above.
        ids: Ids of the memories before, by position; 0 for one that was not stored.

    Raises:
        InvalidFact: a link leads to a fact of a later batch, or one that was not stored.

    """
    return [_relinked(fact, n, len(batch), start, ids) for n, fact in enumerate(batch)]


def _relinked(fact: Fact, position: int, size: int, start: int, ids: Sequence[int]) -> Fact:
    links = fact.get("links") if isinstance(fact, Mapping) else None
    if not isinstance(fact, Mapping) or not isinstance(links, list | tuple):
        return fact
    moved_links = []
    for number, link in enumerate(links):
        index = link.get("to_index") if isinstance(link, Mapping) else None
        # The database refuses a negative one, as it was given.
        if isinstance(index, int) and index >= 0 and start:
            others = {key: value for key, value in link.items() if key != "to_index"}
            place = index - start
            if place < 0 and not ids[index]:
                raise InvalidFact(
                    f"facts[{position}].links[{number}].to_index leads to a fact that was refused",
                    hint="Correct that one, and send both again.",
                )
            link = {**others, "to_index": place} if place >= 0 else {**others, "to_id": ids[index]}
            index = place
        if isinstance(index, int) and index >= size:
            raise InvalidFact(
                f"facts[{position}].links[{number}].to_index leads to a later batch",
                hint="Link to what comes earlier, or by to_key, or make the batch larger.",
            )
        moved_links.append(link)
    return {**fact, "links": moved_links}


def _places(fact: object, *, is_all: bool = False) -> Iterator[dict[str, object]]:
    """Find the places in a plain fact to embed: itself and its questions.

    Those that bring an embedding come too, for it may be lacking the next model's; those that bring
    embeddings by name are complete, and come where all are wanted.
    """
    if not isinstance(fact, dict):
        return
    questions = fact.get("questions")
    for place in (fact, *(questions if isinstance(questions, list) else ())):
        if isinstance(place, dict) and (is_all or place.get("embeddings") is None):
            text = place.get("text")
            if isinstance(text, str) and text.strip():
                yield cast("dict[str, object]", place)


def _has_embedding(place: Mapping[str, object]) -> bool:
    return bool(place.get("embedding") or place.get("embeddings"))


def _without_bare_questions(fact: object) -> object:
    """Leave out questions without embedding, by which alone they would be found."""
    if not isinstance(fact, dict) or not isinstance(fact.get("questions"), list):
        return fact
    bare = [place for place in _places(fact) if place is not fact and not _has_embedding(place)]
    return {**fact, "questions": [one for one in fact["questions"] if one not in bare]}


def _zone(zone: str | tzinfo | None) -> tzinfo:
    if zone is None:
        return timezone.utc
    if isinstance(zone, tzinfo):
        return zone
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidArgument(
            f'unknown time zone "{zone}"', hint='Give a name such as "Europe/Vienna".'
        ) from error
