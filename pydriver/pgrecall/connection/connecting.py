"""Connections: their name on the server, whether they are alive, who owns their transaction."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from math import ceil
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import scalar_row

from pgrecall._version import __version__
from pgrecall.arguments import check_type
from pgrecall.connection.deadlines import disconnected_after
from pgrecall.errors import InvalidArgument

T = TypeVar("T")

MOST_LOST = 100
"""Lost connections that a call gives back to a pool, each for another one.

Not by the check of the pool, which waits after each, a second and then longer.
"""

_IN_USE = "another call uses the connection"
_HAS_SECRET = re.compile("@|password|secret")
_NAMES_OPTION = re.compile(r'invalid (connection option|URI query parameter:) "\w+"')


def checked_dsn(dsn: str) -> str:
    """Return a DSN that can be read.

    Raises:
        InvalidArgument: it cannot be read; the reason quotes it only if it has no password.

    """
    check_type("dsn", dsn, str)
    try:
        conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        reason = str(error).strip()
        if _HAS_SECRET.search(dsn) and not _NAMES_OPTION.fullmatch(reason):
            reason = re.sub('".*"', '"..."', reason.replace('"="', "="), flags=re.DOTALL)
        raise InvalidArgument(
            reason,
            hint="Write a DSN: postgresql://user@host/database, or: host=... dbname=...",
        ) from None
    return dsn


def named_dsn(dsn: str) -> str:
    """Add UTF-8 to a DSN and, unless the DSN or PGAPPNAME has one, an application_name."""
    return make_conninfo(
        checked_dsn(dsn),
        fallback_application_name=f"pgrecall {__version__}",
        client_encoding="UTF8",
    )


def connect(dsn: str, *, autocommit: bool = False) -> psycopg.Connection[Any]:
    """Connect in UTF-8, whatever PGCLIENTENCODING and the database say."""
    return psycopg.connect(dsn, autocommit=autocommit, client_encoding="UTF8")


def value_of(connection: psycopg.Connection[Any], query: str, *arguments: object) -> Any:
    """Return the first column of the first row of a query; None without a row."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(query.encode(), arguments or None).fetchone()


def limited_dsn(dsn: str, seconds: float) -> str:
    """Limit the time to connect to that of the DSN or, if that is less, to some seconds.

    libpq takes whole seconds, of which 0 would mean no limit.
    """
    known = int(float(conninfo_to_dict(dsn).get("connect_timeout") or 0))
    limit = max(1, ceil(seconds))
    return make_conninfo(dsn, connect_timeout=min(known, limit) if known > 0 else limit)


def is_alive(connection: psycopg.BaseConnection[Any]) -> bool:
    """Return whether a connection is open, as far as this is known without a round trip.

    Pending messages are read, since the end of the connection comes after them.
    """
    if connection.closed:
        return False
    try:
        for _ in range(2):
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return False
    return connection.pgconn.status == psycopg.pq.ConnStatus.OK


async def check_alive(connection: psycopg.BaseConnection[Any]) -> None:
    """Raise an error if :func:`is_alive` is false; a pool calls this."""
    if not is_alive(connection):
        raise psycopg.OperationalError("the server closed the connection")


def owns_transaction(connection: psycopg.BaseConnection[object]) -> bool:
    """Return whether a statement sent now is a transaction of its own."""
    idle = psycopg.pq.TransactionStatus.IDLE
    return connection.autocommit and connection.info.transaction_status == idle


@contextmanager
def held(lock: threading.Lock, seconds: float | None) -> Iterator[None]:
    """Hold a lock; wait so many seconds for it at most."""
    if not lock.acquire(timeout=-1 if seconds is None else seconds):
        raise psycopg.OperationalError(_IN_USE)
    try:
        yield
    finally:
        lock.release()


@asynccontextmanager
async def async_held(lock: asyncio.Lock, seconds: float | None) -> AsyncIterator[None]:
    """Hold a lock; wait so many seconds for it at most."""
    waiting = asyncio.ensure_future(lock.acquire())
    try:
        done, _ = await asyncio.wait((waiting,), timeout=seconds)
        if not done:
            raise psycopg.OperationalError(_IN_USE)
        yield
    finally:
        if not waiting.cancel():  # it has the lock
            lock.release()


@asynccontextmanager
async def async_entered(manager: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """Enter a context in a task of its own.

    Before Python 3.12 a pool that hands over a connection at the moment in which a task is
    cancelled may lose the cancellation, for ``asyncio.wait_for()`` does.
    """
    async with AsyncExitStack() as stack:
        entering = asyncio.ensure_future(stack.enter_async_context(manager))
        try:
            await asyncio.wait((entering,))
        except asyncio.CancelledError:
            entering.cancel()
            await asyncio.gather(entering, return_exceptions=True)
            raise
        yield entering.result()


@contextmanager
def _first_error(
    connection: psycopg.BaseConnection[Any],
) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Raise the error of an inner block, and not what follows from it in the outer one.

    A pipeline that is left by an error would log the errors of the statements after it, all of them
    "pipeline aborted". One that the server ends before its last answer cannot be left: psycopg then
    says only that, and the connection is of no more use.
    """
    first: list[BaseException] = []
    was_in_pipeline = connection.pgconn.pipeline_status != psycopg.pq.PipelineStatus.OFF
    handled = sys.exc_info()[1]  # by the caller; the context of every error here

    @contextmanager
    def inner() -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            first.append(error)

    try:
        yield inner
    except psycopg.Error as error:
        first.append(error)
    finally:  # also where the task is cancelled as it leaves the pipeline
        is_off = connection.pgconn.pipeline_status == psycopg.pq.PipelineStatus.OFF
        is_stuck = not (was_in_pipeline or is_off)
        if is_stuck:
            connection.pgconn.finish()
    if not first:
        return
    cause = first[0].__context__
    if is_stuck and isinstance(first[0], psycopg.Error) and isinstance(cause, psycopg.Error):
        raise first[0] if cause is handled else cause
    raise first[0]


@contextmanager
def pipeline(connection: psycopg.Connection[Any], seconds: float | None) -> Iterator[None]:
    """Send the statements of a block without waiting for the answer to each.

    A server that is silent although its statements end after so many seconds is disconnected.
    """
    with (
        disconnected_after(connection, seconds),
        _first_error(connection) as block,
        connection.pipeline(),
        block(),
    ):
        yield


@asynccontextmanager
async def async_pipeline(
    connection: psycopg.AsyncConnection[Any], seconds: float | None
) -> AsyncIterator[None]:
    """Send the statements of a block without waiting for the answer to each.

    A server that is silent although its statements end after so many seconds is disconnected.
    A connection whose task is cancelled while it enters the pipeline would never leave it, and
    lose what is written next. So it is entered by a task that is not cancelled.
    """
    with disconnected_after(connection, seconds), _first_error(connection) as block:
        async with AsyncExitStack() as stack:
            entering = asyncio.ensure_future(stack.enter_async_context(connection.pipeline()))
            try:
                await asyncio.shield(entering)
            except asyncio.CancelledError:
                await entering
                raise
            with block():
                yield
