"""Connections: lost and opened again, from a pool, behind a pooler, cut short by their callers."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
import math
import os
import pwd
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb
from psycopg.types.range import Range

from pgrecall import (
    AsyncRecall,
    BankNotFound,
    ClientClosed,
    InstallError,
    InvalidArgument,
    OutOfTime,
    Recall,
    calls,
    schema,
)
from pgrecall._version import __version__
from pgrecall.asking.embedding import Pending
from pgrecall.command import main
from pgrecall.connection import tracing
from pgrecall.connection.connecting import limited_dsn
from pgrecall.connection.deadlines import disconnected_after
from pgrecall.connection.tracing import SLOW_CONNECTION_SECONDS, Trace
from servers import Server
from toys import toy_embed

Connection = psycopg.Connection[Any]
needs_pool = pytest.mark.skipif(
    importlib.util.find_spec("psycopg_pool") is None,
    reason="psycopg_pool is not installed: pip install 'pgrecall[pool]'",
)


@pytest.fixture
def admin(database: str) -> Iterator[Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def bank(admin: Connection) -> str:
    memory = Recall(admin, embedder=toy_embed, model="toy")
    memory.create_bank("b")
    memory.retain("b", ["Ana leads Atlas.", "Boats are blue."])
    return "b"


def drop_connections(admin: Connection) -> int:
    """End every other connection to the database, and wait until each is gone."""
    ended = admin.execute(
        "select pid, pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
        " and backend_type = 'client backend'"
    ).fetchall()
    left = "select from pg_stat_activity where pid = any (%s)"
    wait_until(lambda: admin.execute(left, [[pid for pid, _ in ended]]).fetchall() == [])
    return len(ended)


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def slow_down(admin: Connection) -> None:
    """Make every recall of bank b take a minute."""
    admin.execute(
        "create function public.doze() returns boolean language sql volatile"
        " as 'select pg_sleep(60) is not null'"
    )
    admin.execute("alter table pgrecall.memory enable row level security")
    admin.execute("alter table pgrecall.memory force row level security")
    admin.execute("create policy doze on pgrecall.memory using (public.doze())")


def active(admin: Connection) -> int:
    row = admin.execute(
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and pid <> pg_backend_pid() and state = 'active' and query like '%pgrecall.%'"
        " and backend_type = 'client backend'"
    ).fetchone()
    assert row is not None
    return int(row[0])


# Lost connections


@pytest.mark.parametrize("pool_size", [None, pytest.param(2, marks=needs_pool)])
def test_a_lost_connection_is_opened_again(
    database: str, bank: str, admin: Connection, pool_size: int | None
) -> None:
    with Recall.connect(database, embedder=None, pool_size=pool_size) as memory:
        memory.banks()
        assert drop_connections(admin) >= 1

        row, *_ = memory.retain(bank, ["Cy keeps bees."])  # must not be sent twice: it was not
        assert drop_connections(admin) >= 1
        found = memory.recall(bank, "bees")

    assert row.is_new
    assert [hit.text for hit in found] == ["Cy keeps bees."]


def test_an_async_connection_is_opened_again(database: str, bank: str, admin: Connection) -> None:
    async def body() -> list[str]:
        async with await AsyncRecall.connect(database, embedder=None) as memory:
            await memory.banks()
            drop_connections(admin)
            return [hit.text for hit in await memory.recall(bank, "Atlas", top_k=1)]

    assert asyncio.run(body()) == ["Ana leads Atlas."]


@needs_pool
def test_a_pool_that_lost_all_its_connections_answers_at_once(
    database: str, bank: str, admin: Connection
) -> None:
    with Recall.connect(database, embedder=None, pool_size=8) as memory:
        with ExitStack() as lent:
            for _ in range(8):
                lent.enter_context(memory._connection(Trace()))
        assert drop_connections(admin) >= 8

        found = memory.recall(bank, "Atlas", top_k=1, timeout=10)

    assert [hit.text for hit in found] == ["Ana leads Atlas."]


@needs_pool
def test_what_the_server_ends_for_its_time_is_not_sent_again(
    database: str, bank: str, admin: Connection
) -> None:
    from psycopg_pool import ConnectionPool

    if admin.info.server_version < 170000:
        pytest.skip("PostgreSQL 16 has no transaction_timeout")
    limited = make_conninfo(database, options="-c transaction_timeout=500")
    with ConnectionPool(limited, min_size=1, max_size=2) as pool:
        memory = Recall(pool, embedder=None)
        with psycopg.connect(database) as locker:
            locker.execute("lock table pgrecall.memory")
            with pytest.raises(psycopg.Error, match="transaction timeout"):
                memory.recall(bank, "Atlas")

        assert pool.get_stats()["returns_bad"] == 1
        assert [one.bank_id for one in memory.banks()] == [bank]


def test_a_call_that_waited_for_an_upgrade_is_sent_again(
    database: str, bank: str, admin: Connection
) -> None:
    def body_of(function: str) -> str:
        row = admin.execute("select pg_get_functiondef(%s::regproc)", [function]).fetchone()
        assert row is not None
        return str(row[0])

    bodies = [
        body_of(f"pgrecall{name}") for name in ("_internal._without_names", ".prepare_recall")
    ]
    with (
        Recall.connect(database, embedder=None) as memory,
        psycopg.connect(database) as upgrade,
        ThreadPoolExecutor(1) as pool,
    ):
        memory.recall(bank, "Who leads Atlas?")  # its session has read the body
        upgrade.execute("lock table pgrecall.bank")
        found = pool.submit(memory.recall, bank, "Who leads Atlas?")
        waiting = "select from pg_locks where not granted"
        wait_until(lambda: admin.execute(waiting).fetchall() != [])
        upgrade.execute("drop function pgrecall_internal._without_names")
        for body in bodies:
            upgrade.execute(body.replace("_without_names", "_words_beside_names").encode())
        upgrade.commit()

        assert [hit.text for hit in found.result()] == ["Ana leads Atlas."]


def test_a_call_whose_function_was_just_replaced_is_sent_again(
    database: str, admin: Connection
) -> None:
    admin.execute("create sequence tried")
    admin.execute(
        "create or replace function pgrecall.pending_links(bank text) returns bigint"
        " language plpgsql as $$ begin if nextval('public.tried') = 1 then"
        " raise exception using errcode = 'XX000',"
        " message = 'cache lookup failed for function 16384'; end if; return 7; end $$"
    )

    with Recall.connect(database, embedder=None) as memory:
        assert memory.pending_links("b") == 7


def test_threads_that_share_a_lost_connection_open_one(
    database: str, bank: str, admin: Connection
) -> None:
    with Recall.connect(database, embedder=None) as memory:
        memory.banks()
        drop_connections(admin)
        with ThreadPoolExecutor(8) as threads:
            answers = [*threads.map(lambda _: len(memory.banks()), range(32))]

        assert answers == [1] * 32
        assert drop_connections(admin) == 1


def test_a_connection_that_another_thread_uses_is_in_no_transaction(database: str) -> None:
    with Recall.connect(database, embedder=None) as memory, ThreadPoolExecutor(1) as threads:
        connection: Any = memory._source
        slow = threads.submit(connection.execute, "select pg_sleep(0.5)")
        active = psycopg.pq.TransactionStatus.ACTIVE
        wait_until(lambda: connection.info.transaction_status == active)

        # Otherwise it would begin one, in which the writes of the thread would be too.
        assert memory._is_outside_transaction()
        slow.result()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("pool_size", [None, pytest.param(2, marks=needs_pool)])
def test_the_child_of_a_fork_has_connections_of_its_own(
    database: str, bank: str, admin: Connection, pool_size: int | None
) -> None:
    with Recall.connect(database, embedder=None, pool_size=pool_size) as memory:

        def session() -> int:
            with memory._connection(Trace()) as connection:
                return connection.info.backend_pid

        before = session()
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(30)
                is_own = session() != before and memory.recall(bank, "Atlas") != []
                memory.close()
                os._exit(0 if is_own else 1)
            finally:
                os._exit(2)

        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert memory.recall(bank, "Atlas")
        there = admin.execute("select from pg_stat_activity where pid = %s", [before])
        assert there.rowcount == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_the_child_of_a_fork_leaves_connections_that_it_does_not_use_open(database: str) -> None:
    with Recall.connect(database, embedder=None) as memory:
        connection: Any = memory._source
        child = os.fork()
        if child == 0:
            try:
                memory.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)

        assert connection.execute("select 1").fetchone() == (1,)


def test_a_caller_s_connection_is_not_replaced(database: str, bank: str, admin: Connection) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        memory = Recall(connection, embedder=None)
        drop_connections(admin)

        with pytest.raises(psycopg.OperationalError):
            memory.banks()


@pytest.mark.parametrize("pool_size", [None, pytest.param(2, marks=needs_pool)])
def test_what_is_closed_stays_closed(database: str, pool_size: int | None) -> None:
    memory = Recall.connect(database, embedder=None, pool_size=pool_size)
    memory.close()
    memory.close()

    with pytest.raises(ClientClosed) as caught:
        memory.banks()

    assert (caught.value.message, caught.value.hint) == (
        "this client is closed",
        "Make another: Recall.connect().",
    )


class Refusing:
    """A pool that gives no connection at first."""

    def __init__(self, dsn: str, *errors: psycopg.Error) -> None:
        self.dsn = dsn
        self.errors = [*errors]
        self.asked = 0

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        with psycopg.connect(self.dsn) as connection:
            yield connection


@pytest.mark.parametrize(
    "message",
    [
        "connection refused",
        "FATAL:  the database system is starting up",
        "FATAL:  sorry, too many clients already",
    ],
)
def test_a_connection_is_asked_for_again(database: str, bank: str, message: str) -> None:
    pool = Refusing(database, *[psycopg.OperationalError(message)] * 2)

    Recall(pool, embedder=None).drop_bank(bank)  # nothing was sent, so it may be repeated

    assert pool.asked == 3


@pytest.mark.parametrize("message", ['FATAL:  password authentication failed for user "u"'])
def test_who_is_not_let_in_does_not_ask_again(database: str, message: str) -> None:
    pool = Refusing(database, *[psycopg.OperationalError(message)] * 2)

    with pytest.raises(psycopg.OperationalError):
        Recall(pool, embedder=None).banks()

    assert pool.asked == 1


# Pools


@needs_pool
def test_many_callers_share_a_pool_and_nobody_starves(database: str, bank: str) -> None:
    with (
        Recall.connect(database, embedder=toy_embed, model="toy", pool_size=4) as memory,
        ThreadPoolExecutor(64) as threads,
    ):
        answers = [*threads.map(lambda _: memory.recall(bank, "who leads Atlas?"), range(192))]

        assert {hits[0].text for hits in answers} == {"Ana leads Atlas."}
        assert memory._source.get_stats()["pool_size"] <= 4  # type: ignore[union-attr]


@needs_pool
def test_tasks_share_a_pool(database: str, bank: str) -> None:
    async def body() -> list[str]:
        async with await AsyncRecall.connect(database, embedder=None, pool_size=4) as memory:
            asked = (memory.recall(bank, "who leads Atlas?") for _ in range(64))
            return [hits[0].text for hits in await asyncio.gather(*asked)]

    assert set(asyncio.run(body())) == {"Ana leads Atlas."}


def test_tasks_share_a_connection_within_a_timeout(database: str, bank: str) -> None:
    async def body() -> list[str]:
        async with await AsyncRecall.connect(database, embedder=None) as memory:
            asked = (memory.recall(bank, "who leads Atlas?", timeout=60) for _ in range(16))
            return [hits[0].text for hits in await asyncio.gather(*asked)]

    assert set(asyncio.run(body())) == {"Ana leads Atlas."}


@needs_pool
def test_a_busy_pool_is_named_in_one_warning(
    database: str, bank: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "_warned_at", -math.inf)
    memory = Recall.connect(database, embedder=None, pool_size=1)
    with memory, caplog.at_level(logging.WARNING, "pgrecall"), ThreadPoolExecutor(4) as threads:
        pool: Any = memory._source
        with pool.connection():
            asked = [threads.submit(memory.banks) for _ in range(4)]
            wait_until(lambda: pool.get_stats().get("requests_waiting") == 4)
            time.sleep(SLOW_CONNECTION_SECONDS)
        for one in asked:
            one.result(30)

    [message] = [said for said in caplog.messages if said.startswith("waited")]
    assert re.fullmatch(
        r"waited \d+ ms for a connection; the pool has 1, 0 idle, and \d callers wait", message
    )


@needs_pool
@pytest.mark.parametrize("size", [0, -1, True, "4"])
def test_a_pool_has_a_size(database: str, size: Any) -> None:
    with pytest.raises(InvalidArgument, match="pool_size must be"):
        Recall.connect(database, pool_size=size)


@pytest.mark.parametrize("pool_size", [None, 1])
def test_what_a_refused_client_had_opened_is_closed(
    database: str, admin: Connection, pool_size: int | None
) -> None:
    dsn = make_conninfo(database, application_name="refused")
    given: dict[str, Any] = {"timezone": "Mars/Olympus", "pool_size": pool_size}

    async def body() -> None:
        await AsyncRecall.connect(dsn, **given)

    for connect in (lambda: Recall.connect(dsn, **given), lambda: asyncio.run(body())):
        with pytest.raises(InvalidArgument) as caught:
            connect()
        frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
        [source] = [one.f_locals["source"] for one in frames if one.f_code.co_name == "connect"]
        assert source.closed


def test_without_the_package_the_extra_is_named(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg_pool", None)

    with pytest.raises(InstallError, match="psycopg_pool is missing") as caught:
        Recall.connect(database, pool_size=2)

    assert caught.value.hint == "Run: pip install 'pgrecall[pool]'"


def test_the_server_shows_who_is_connected(database: str) -> None:
    def name(dsn: str) -> str:
        with Recall.connect(dsn, embedder=None) as memory:
            return str(memory._source.info.parameter_status("application_name"))  # type: ignore[union-attr]

    assert re.fullmatch(r"pgrecall \d+\.\d+\.\d+", name(database))
    assert name(make_conninfo(database, application_name="mine")) == "mine"


@pytest.mark.parametrize("pool_size", [None, pytest.param(1, marks=needs_pool)])
@pytest.mark.parametrize("encoding", ["LATIN1", "WIN1252", "SQL_ASCII"])
def test_what_the_driver_opens_speaks_utf_8(
    database: str, monkeypatch: pytest.MonkeyPatch, encoding: str, pool_size: int | None
) -> None:
    name = conninfo_to_dict(database)["dbname"]
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"alter database {name} set client_encoding = '{encoding}'".encode())
    monkeypatch.setenv("PGCLIENTENCODING", encoding)

    with Recall.connect(
        database, embedder=toy_embed, model="toy", pool_size=pool_size, replicas=[database]
    ) as memory:
        memory.create_bank("b")
        memory.retain("b", ["Ana → Ωmega, 東京"])
        assert [hit.text for hit in memory.recall("b", "Ωmega")] == ["Ana → Ωmega, 東京"]


# Deadlines and cancellation


def restricted(database: str, admin: Connection) -> str:
    """Return the DSN of a role that policies are for."""
    name = conninfo_to_dict(database)["dbname"]
    role = f"{name}_reader"
    admin.execute(f"create role {role} login".encode())
    for place in ("pgrecall", "pgrecall_internal"):
        admin.execute(f"grant usage on schema {place} to {role}".encode())
        admin.execute(f"grant select on all tables in schema {place} to {role}".encode())
    return make_conninfo(database, user=role)


@pytest.fixture
def dozing(database: str, bank: str, admin: Connection) -> Iterator[str]:
    """The DSN of a role whose recalls take a minute."""
    dsn = restricted(database, admin)
    slow_down(admin)
    yield dsn
    role = conninfo_to_dict(dsn)["user"]
    admin.execute(f"drop owned by {role}".encode())
    admin.execute(f"drop role {role}".encode())


@pytest.mark.parametrize("pool_size", [None, pytest.param(1, marks=needs_pool)])
def test_a_cancelled_task_ends_its_statement(
    dozing: str, admin: Connection, pool_size: int | None
) -> None:
    async def body() -> str:
        async with await AsyncRecall.connect(dozing, embedder=None, pool_size=pool_size) as memory:
            asked = asyncio.create_task(memory.recall("b", "who leads Atlas?"))
            await asyncio.to_thread(wait_until, lambda: active(admin) == 1)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            await asyncio.to_thread(wait_until, lambda: active(admin) == 0)
            return await memory._run(calls.operations.version())  # the connection came back clean

    assert asyncio.run(body()) == __version__


@needs_pool
@pytest.mark.parametrize("steps", range(24))
def test_a_task_cancelled_as_it_gets_a_connection_ends(
    database: str, bank: str, steps: int
) -> None:
    async def body() -> None:
        async with await AsyncRecall.connect(database, embedder=None, pool_size=1) as memory:
            async with memory._connection(Trace()):
                asked = asyncio.create_task(memory.recall(bank, "Atlas"))
                await asyncio.sleep(0.01)
            for _ in range(steps):
                await asyncio.sleep(0)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            assert await memory.recall(bank, "Atlas", timeout=5)

    asyncio.run(body())


def test_a_task_cancelled_as_its_embedding_comes_ends() -> None:
    async def body(steps: int) -> bool:
        future: Future[None] = Future()
        waiting = asyncio.create_task(Pending(future, 5).async_settle())
        await asyncio.sleep(0.01)
        future.set_result(None)
        for _ in range(steps):
            await asyncio.sleep(0)
        if not waiting.cancel():
            return False  # it has ended
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return True

    assert True in [asyncio.run(body(steps)) for steps in range(12)]


@needs_pool
def test_a_task_cancelled_as_it_returns_a_connection_does_not_lose_it(
    database: str, bank: str
) -> None:
    async def body() -> None:
        async with await AsyncRecall.connect(database, embedder=None, pool_size=1) as memory:
            pool: Any = memory._source
            entered, leave = asyncio.Event(), asyncio.Event()

            async def borrow() -> None:
                async with memory._connection(Trace()):
                    entered.set()
                    await leave.wait()

            borrowing = asyncio.create_task(borrow())
            await entered.wait()
            async with pool._lock:
                leave.set()
                for _ in range(5):
                    await asyncio.sleep(0)
                borrowing.cancel()
                await asyncio.gather(borrowing, return_exceptions=True)
            assert await memory.recall(bank, "Atlas", timeout=5)

    asyncio.run(body())


def test_a_deadline_counts_the_wait_for_a_connection_that_others_use(
    database: str, bank: str
) -> None:
    passed = r"the timeout of 0\.1 s passed"
    memory = Recall.connect(database, embedder=None)
    with memory, memory._turn, pytest.raises(OutOfTime, match=passed):
        memory.recall(bank, "Atlas", timeout=0.1)

    async def body() -> None:
        async with await AsyncRecall.connect(database, embedder=None) as memory:
            async with memory._turn:
                with pytest.raises(OutOfTime, match=passed):
                    await memory.recall(bank, "Atlas", timeout=0.1)
            assert await memory.recall(bank, "Atlas", timeout=60)

    asyncio.run(body())


@pytest.mark.parametrize(
    ("dsn", "seconds", "limit"),
    [
        ("host=a", 0.0, "1"),
        ("host=a", 1.2, "2"),
        ("host=a connect_timeout=0", 5, "5"),
        ("host=a connect_timeout=3", 60, "3"),
    ],
)
def test_connecting_takes_no_longer_than_the_deadline_or_the_dsn_allows(
    dsn: str, seconds: float, limit: str
) -> None:
    assert conninfo_to_dict(limited_dsn(dsn, seconds))["connect_timeout"] == limit


def test_a_replica_that_does_not_answer_is_left_out_within_a_deadline(
    database: str, bank: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        replica = make_conninfo(database, host="127.0.0.1", hostaddr=None, port=port)
        with Recall.connect(database, embedder=None, replicas=[replica]) as memory:
            start = time.monotonic()

            assert memory.recall(bank, "Atlas", timeout=30)
            assert time.monotonic() - start < 20


@pytest.mark.parametrize("pool_size", [None, pytest.param(1, marks=needs_pool)])
def test_a_deadline_ends_the_statement_and_leaves_no_trace(
    dozing: str, admin: Connection, pool_size: int | None
) -> None:
    with Recall.connect(dozing, embedder=None, pool_size=pool_size) as memory:
        with pytest.raises(OutOfTime):
            memory.recall("b", "who leads Atlas?", timeout=0.3)
        assert active(admin) == 0
        source: Any = memory._source
        if pool_size is None:
            [timeout] = source.execute("show statement_timeout").fetchone()
        else:
            with source.connection() as connection:
                [timeout] = connection.execute("show statement_timeout").fetchone()

    assert timeout == "0"


@asynccontextmanager
async def ending(database: str, is_due: asyncio.Event) -> AsyncIterator[str]:
    """Yield a DSN whose server ends before its last answer, once, when that is due."""
    ready = b"Z\0\0\0\5I"
    fields = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0"
    ended = b"E" + (len(fields) + 4).to_bytes(4, "big") + fields
    server = conninfo_to_dict(database)

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = str(server.get("host", "localhost")), str(server.get("port", 5432))
        if host.startswith("/"):
            from_server, to_server = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            from_server, to_server = await asyncio.open_connection(host, int(port))

        async def ask() -> None:
            while data := await reader.read(65536):
                to_server.write(data)
            to_server.close()

        asking = asyncio.ensure_future(ask())
        while data := await from_server.read(65536):
            if is_due.is_set() and data.endswith(ready):
                is_due.clear()
                data = data[: -len(ready)] + ended  # and nothing more, not even the end
            writer.write(data)
        await asking
        writer.close()

    async with await asyncio.start_server(relay, "127.0.0.1", 0) as relays:
        port = relays.sockets[0].getsockname()[1]
        through = {"host": "127.0.0.1", "hostaddr": None, "port": port}
        yield make_conninfo(database, sslmode="disable", gssencmode="disable", **through)


def test_a_server_that_ends_before_its_last_answer_is_asked_again(database: str, bank: str) -> None:
    async def body() -> list[str]:
        is_due = asyncio.Event()
        async with (
            ending(database, is_due) as dsn,
            await AsyncRecall.connect(dsn, embedder=None) as memory,
        ):
            await memory.arms()
            is_due.set()
            return [hit.text for hit in await memory.recall(bank, "Atlas", timeout=60)]

    assert asyncio.run(body()) == ["Ana leads Atlas."]


@pytest.mark.parametrize("steps", range(8))
def test_a_task_cancelled_as_its_server_ends_leaves_no_pipeline(
    database: str, bank: str, steps: int
) -> None:
    async def body() -> None:
        is_due = asyncio.Event()
        async with (
            ending(database, is_due) as dsn,
            await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection,
        ):
            memory = AsyncRecall(connection, embedder=None)
            await memory.recall(bank, "warm")
            is_due.set()
            await asyncio.sleep(0.2)  # then psycopg lets others run as it enters a pipeline
            asked = asyncio.create_task(memory.recall(bank, "who leads Atlas?", timeout=30))
            for _ in range(steps):
                await asyncio.sleep(0)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            assert connection.pgconn.pipeline_status == psycopg.pq.PipelineStatus.OFF

    asyncio.run(body())


@pytest.mark.parametrize("pool_size", [None, pytest.param(1, marks=needs_pool)])
def test_a_server_that_is_silent_at_the_deadline_is_left(
    dozing: str, admin: Connection, pool_size: int | None
) -> None:
    # Like a server whose machine is gone, it does not end the statement.
    admin.execute(
        "create or replace function public.doze() returns boolean language plpgsql volatile"
        " as $$ begin perform pg_sleep(60); exception when query_canceled then"
        " perform pg_sleep(20); return true; end $$"
    )

    async def body() -> None:
        async with await AsyncRecall.connect(dozing, embedder=None, pool_size=pool_size) as memory:
            with pytest.raises(OutOfTime, match=passed):
                await memory.recall("b", "who leads Atlas?", timeout=0.3)
            assert await memory.arms() != []

    passed = r"the timeout of 0\.3 s passed"
    start = time.monotonic()
    with Recall.connect(dozing, embedder=None, pool_size=pool_size) as memory:
        with pytest.raises(OutOfTime, match=passed):
            memory.recall("b", "who leads Atlas?", timeout=0.3)
        assert memory.arms() != []
    asyncio.run(body())

    assert time.monotonic() - start < 15


def test_a_late_caller_of_a_server_that_answered_keeps_the_connection(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgrecall.connection.deadlines.SILENT_SECONDS", 0.1)
    with psycopg.connect(database) as connection:
        connection.pgconn.send_query(b"select 1")
        select.select([connection.fileno()], [], [])
        with disconnected_after(connection, 0):
            time.sleep(0.5)  # as one who computes, and reads the answer later
        while connection.pgconn.get_result() is not None:
            pass

        assert connection.execute("select 1").fetchone() == (1,)


def test_an_error_in_the_callers_pipeline_leaves_the_connection(database: str, bank: str) -> None:
    def ask(connection: Connection) -> None:
        with connection.pipeline():
            connection.execute("select 1 / 0")
            Recall(connection, embedder=None).recall(bank, "Atlas", timeout=5)

    with psycopg.connect(database, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            ask(connection)

        assert not connection.closed


# Behind PgBouncer


@pytest.fixture(scope="module")
def pgbouncer(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs PgBouncer: the one installed, else that of Debian, unpacked."""
    found = shutil.which("pgbouncer")
    if found:
        return [found]
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        pytest.skip("there is neither pgbouncer nor apt-get to get it with")
    folder = tmp_path_factory.mktemp("pgbouncer")
    folder.chmod(0o755)
    packages = ["pgbouncer", "libevent-2.1-7", "libc-ares2"]
    got = subprocess.run(
        ["apt-get", "download", *packages], cwd=folder, capture_output=True, text=True, timeout=120
    )
    if got.returncode != 0:
        pytest.skip(f"apt-get cannot download pgbouncer: {got.stderr.strip()[-200:]}")
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder / "root"], check=True)
    [libraries] = {path.parent for path in (folder / "root").rglob("libevent-2.1*.so*")}
    program = folder / "root" / "usr" / "sbin" / "pgbouncer"
    return ["env", f"LD_LIBRARY_PATH={libraries}", str(program)]


@contextmanager
def pooler(command: list[str], database: str, folder: Path) -> Iterator[str]:
    """Run PgBouncer in transaction mode with four connections to the server; yields its DSN."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    target = conninfo_to_dict(database)
    name = target["dbname"]
    place = {key: target[key] for key in ("host", "port", "user", "password") if target.get(key)}
    server = " ".join(f"{key}={value}" for key, value in place.items())
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"""[databases]
{name} = dbname={name} {server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 100
logfile = {folder / "log"}
""",
    )
    as_user = []
    if os.geteuid() == 0:  # then it must be another user, one that may reach the server
        for path in (folder, *folder.parents):
            if path == Path(tempfile.gettempdir()):
                break
            path.chmod(0o711)
        host = str(target["host"])
        owner = Path(host).stat().st_uid if host.startswith("/") else 65534
        os.chown(folder, owner, -1)
        as_user = ["-u", pwd.getpwuid(owner).pw_name]
    process = subprocess.Popen(
        [*command, *as_user, str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    dsn = make_conninfo(host="127.0.0.1", port=port, dbname=name, user=target["user"])
    try:
        until = time.monotonic() + 20
        while True:
            try:
                psycopg.connect(dsn).close()
                break
            except psycopg.OperationalError:
                if time.monotonic() > until or process.poll() is not None:
                    log = folder / "log"
                    raise AssertionError(log.read_text() if log.exists() else "no log") from None
                time.sleep(0.05)
        yield dsn
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.slow
def test_behind_pgbouncer_in_transaction_mode_nothing_fails(
    pgbouncer: list[str], database: str, bank: str, tmp_path: Path
) -> None:
    with pooler(pgbouncer, database, tmp_path) as dsn:

        def ask(client: int) -> list[str]:
            with Recall.connect(dsn, embedder=toy_embed, model="toy") as memory:
                memory.retain(bank, [f"Client {client} sails."])
                return [
                    memory.recall(bank, "who leads Atlas?", top_k=1, timeout=60)[0].text
                    for _ in range(25)
                ]

        with ThreadPoolExecutor(16) as threads:
            answers = [*threads.map(ask, range(16))]

    assert answers == [["Ana leads Atlas."] * 25] * 16
    with psycopg.connect(database) as connection:
        [stored] = Recall(connection).banks()
    assert stored.memories == 18


@pytest.mark.slow
def test_the_owner_of_schemas_alone_installs_and_asks_through_a_pooler(
    pgbouncer: list[str], server: Server, empty_database: str, tmp_path: Path
) -> None:
    """As on hosted databases: no superuser, no owner of the database, pgvector is there."""
    name = str(conninfo_to_dict(empty_database)["dbname"])
    role = f"{name}_app"
    with psycopg.connect(empty_database, autocommit=True) as admin:
        admin.execute(f"create role {role} login".encode())
        admin.execute(f"grant create on database {name} to {role}".encode())
        try:
            with pooler(pgbouncer, make_conninfo(empty_database, user=role), tmp_path) as dsn:
                with psycopg.connect(dsn, prepare_threshold=None) as connection:
                    schema.migrate(connection)
                with Recall.connect(dsn, embedder=toy_embed, model="toy") as memory:
                    memory.create_bank("b")
                    memory.retain("b", ["Ana leads Atlas."])
                    found = [memory.recall("b", "Who leads Atlas?")[0].text for _ in range(10)]
        finally:
            admin.execute(f"drop owned by {role} cascade".encode())
            admin.execute(f"drop role {role}".encode())

    assert found == ["Ana leads Atlas."] * 10


@pytest.mark.slow
def test_a_build_through_a_pooler_leaves_its_sessions_their_time_limit(
    pgbouncer: list[str], database: str, bank: str, tmp_path: Path
) -> None:
    name = conninfo_to_dict(database)["dbname"]
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute(f"alter database {name} set statement_timeout = '70s'".encode())
        Recall(admin).configure_bank(bank, {"hnsw_threshold": 1})
    with pooler(pgbouncer, database, tmp_path) as dsn:
        assert main(["index", "--apply", "--dsn", dsn]) == 0
        with psycopg.connect(dsn) as connection:
            [found] = connection.execute("show statement_timeout").fetchall()

    assert found == ("70s",)


def test_a_task_cancelled_as_it_begins_to_send_leaves_no_pipeline(database: str, bank: str) -> None:
    async def body() -> None:
        async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
            memory = AsyncRecall(connection, embedder=None)
            await memory.recall("b", "warm")
            for steps in range(4):
                await asyncio.sleep(0.2)  # then psycopg lets others run as it enters a pipeline
                asked = asyncio.create_task(memory.recall("b", "who leads Atlas?", timeout=30))
                for _ in range(steps):
                    await asyncio.sleep(0)
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)
                assert connection.pgconn.pipeline_status == psycopg.pq.PipelineStatus.OFF
            await connection.execute("create table kept ()")
        async with await psycopg.AsyncConnection.connect(database) as other:
            await other.execute("select from kept")

    asyncio.run(body())


@pytest.mark.parametrize("client", ["client", "aio"])
def test_a_refused_recall_with_a_deadline_logs_nothing(
    database: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    module = importlib.import_module(f"pgrecall.{client}")
    send = module._sent

    def late(call: Any, connection: Any) -> Any:
        time.sleep(0.05)  # until the refusal of the statement before is here
        return send(call, connection)

    monkeypatch.setattr(module, "_sent", late)

    async def ask_async() -> None:
        async with await AsyncRecall.connect(database, embedder=None) as memory:
            await memory.recall("none", "who leads Atlas?", timeout=30)

    def ask() -> None:
        with Recall.connect(database, embedder=None) as memory:
            memory.recall("none", "who leads Atlas?", timeout=30)

    with pytest.raises(BankNotFound):
        asyncio.run(ask_async()) if client == "aio" else ask()

    assert [record for record in caplog.records if record.name == "psycopg"] == []


class Shouted(Dumper):
    """Writes everything as text that nobody reads."""

    oid = 25

    def dump(self, obj: object) -> bytes:
        return f"{obj}!".encode()


class AsBytes(Loader):
    """Reads nothing."""

    def load(self, data: Buffer) -> bytes:
        return bytes(data)


def adapt_everything(connection: Connection) -> None:
    for kind in (str, list, float, Jsonb, Range):
        connection.adapters.register_dumper(kind, Shouted)
    for name in ("jsonb", "text", "int8", "float8", "timestamptz", "tstzrange"):
        connection.adapters.register_loader(name, AsBytes)


@pytest.mark.parametrize(
    "set_up",
    [
        "set datestyle = 'German'",
        "set intervalstyle = 'iso_8601'",
        "set client_encoding = 'LATIN1'",
        "set bytea_output = 'escape'",
        "set search_path = ''; set timezone = 'Asia/Tokyo'",
        adapt_everything,
        lambda connection: setattr(connection, "cursor_factory", psycopg.RawCursor),
        lambda connection: setattr(connection, "row_factory", namedtuple_row),
    ],
)
def test_what_a_caller_set_up_on_a_connection_does_not_matter(
    database: str, admin: Connection, bank: str, set_up: str | Callable[[Connection], None]
) -> None:
    admin.execute("create table note (id bigint primary key, body text)")
    fact = {
        "text": "Zoë leads Käse.",
        "tags": ["x"],
        "confidence": 0.8,
        "metadata": {"ort": "Köln"},
        "occurred": ["2026-03-01T00:00Z", "2026-03-02T00:00Z"],
    }

    def seen(connection: Connection) -> list[object]:
        memory = Recall(connection, embedder=toy_embed, model="toy")
        row, *_ = memory.retain(bank, [fact])
        (hit,) = memory.recall(bank, "Käse", tags=["x"], filter="confidence > 0.7", timeout=30)
        (table,) = memory.attached_tables(bank)
        return [
            hit,
            memory.get(bank, row.memory_id),
            memory.why_not(bank, "Käse", row.memory_id)[-1].status,
            memory.list_memories(bank, during=(datetime(2026, 3, 1), None), before_id=99),
            type(table.pending_for),
            memory.bank_options(bank),
        ]

    Recall(admin).attach_table(bank, "public.note", key="id", text="body")
    admin.execute("insert into note values (1, 'one')")
    plain = seen(admin)
    with psycopg.connect(database, autocommit=True) as connection:
        text = set_up if isinstance(set_up, str) else ""
        connection.execute(text)
        if not isinstance(set_up, str):
            set_up(connection)
        before = connection.execute("select '[1]'::jsonb, current_setting('datestyle')").fetchall()

        assert seen(connection) == plain
        assert (
            before
            == connection.execute("select '[1]'::jsonb, current_setting('datestyle')").fetchall()
        )
