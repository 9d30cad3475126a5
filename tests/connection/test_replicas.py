"""Recalls on a streaming standby, and a client that reads from standbys and writes to the primary.

Replay on the standby is paused and resumed, so that what it has not seen yet is no matter of time.
"""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import Mock

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import failover
import servers
from pgrecall import AsyncRecall, BankNotFound, InvalidArgument, MemoryNotFound, Recall, schema
from pgrecall.server import embedded_server
from sqlcalls import READS, Connection, contents, fill, found_by, refused, retain, rows, value
from toys import toy_embed

needs_pool = pytest.mark.skipif(
    importlib.util.find_spec("psycopg_pool") is None,
    reason="psycopg_pool is not installed: pip install 'pgrecall[pool]'",
)
NOWHERE = "host=/nonexistent dbname=postgres"
FACTS = ["Ana leads Atlas.", "Boats are blue."]


class Server:
    """A server that lends connections, and counts what it is asked."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.asked = 0
        self.is_up = True

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        if not self.is_up:
            raise psycopg.OperationalError("connection refused")
        self.asked += 1
        with psycopg.connect(self.dsn) as connection:
            yield connection


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[str, str]]:
    """The DSNs of a primary with the banks a and b, and of its standby."""
    version = servers.embedded_version()
    settings = {**servers.TEST_SETTINGS, "synchronous_commit": "on"}  # what is committed was sent
    with (
        servers.folder_of_servers() as folder,
        embedded_server(version, folder / "primary", settings=settings) as primary,
    ):
        with psycopg.connect(primary.dsn, autocommit=True) as connection:
            connection.execute("create extension vector")
            schema.migrate(connection)
            fill(connection, "b")
            client = Recall(connection, embedder=toy_embed, model="toy")
            client.create_bank("a")
            client.retain("a", FACTS)
        data, copy = folder / "primary", folder / "standby"
        with servers.standby_of(data, primary.binaries, copy) as standby:
            yield primary.dsn, standby


@pytest.fixture
def primary(pair: tuple[str, str]) -> Iterator[Connection]:
    with psycopg.connect(pair[0], autocommit=True) as connection:
        yield connection


@pytest.fixture
def standby(pair: tuple[str, str], primary: Connection) -> Iterator[Connection]:
    with psycopg.connect(pair[1], autocommit=True) as connection:
        catch_up(primary, connection)
        yield connection
        resume(connection)


@pytest.fixture
def both(pair: tuple[str, str]) -> tuple[Server, Server]:
    return Server(pair[0]), Server(pair[1])


def catch_up(primary: Connection, standby: Connection) -> None:
    """Wait until the standby has replayed all."""
    position = value(primary, "select pg_current_wal_flush_lsn()")
    until = time.monotonic() + 30
    while not value(standby, "select pg_last_wal_replay_lsn() >= %s::pg_lsn", position):
        assert time.monotonic() < until
        time.sleep(0.01)


def pause(standby: Connection) -> None:
    standby.execute("select pg_wal_replay_pause()")
    until = time.monotonic() + 30
    while value(standby, "select pg_get_wal_replay_pause_state()") != "paused":
        assert time.monotonic() < until
        time.sleep(0.01)


def resume(standby: Connection) -> None:
    """Let the standby replay on, which may cancel the very statement that says so."""
    with (
        suppress(psycopg.errors.SerializationFailure),
        psycopg.connect(standby.info.dsn, autocommit=True) as connection,
    ):
        connection.execute("select pg_wal_replay_resume()")


def client(both: tuple[Server, Server], **arguments: Any) -> Recall:
    return Recall(both[0], embedder=None, replicas=[both[1]], **arguments)


def texts(memory: Recall, bank: str) -> list[str]:
    return sorted(one.text for one in memory.list_memories(bank))


# SQL and the driver on a standby


@pytest.mark.parametrize("function", READS)
def test_a_standby_finds_what_the_primary_finds(
    primary: Connection, standby: Connection, function: str
) -> None:
    assert found_by(standby, function, "b") == found_by(primary, function, "b") != []


def test_a_standby_explains_and_prepares_as_the_primary_does(
    primary: Connection, standby: Connection
) -> None:
    _, arguments = READS["hybrid_recall"]

    for call in (
        f"arm, status, rows from pgrecall.explain_recall('b', {arguments})",
        "* from pgrecall.prepare_recall('b', 'Annie atlas.lead late', '2026-04-01')",
    ):
        assert rows(standby, f"select {call}") == rows(primary, f"select {call}") != []


def test_every_method_that_reads_runs_on_a_standby(standby: Connection) -> None:
    memory = Recall(standby, embedder=toy_embed, model="toy")
    [first, *_] = memory.recall("a", "who leads Atlas?")
    report = memory.recall_report("a", "who leads Atlas?", explain=True)
    many = memory.recall_many("a", ["who leads Atlas?", "what is blue?"])

    assert first.text == "Ana leads Atlas."
    assert report.hits[0] == many[0].hits[0] == first
    assert many[1].hits[0].text == "Boats are blue."
    assert memory.context("a", "who leads Atlas?").text.count("Ana leads Atlas.") == 1
    assert {arm.status for arm in memory.explain("a", "who leads Atlas?")} >= {"ran"}
    assert memory.arm_hits("a", "who leads Atlas?")
    assert memory.get("a", first.memory_id).text == first.text
    assert texts(memory, "a") == FACTS
    assert len([*memory.export("a")]) > 2
    assert memory.history("a", first.memory_id)[0].text == first.text


@pytest.mark.parametrize(
    "call",
    ["retain('a', '[\"Cy keeps bees.\"]')", "forget('a', '{1}')", "create_bank('z')", "maintain()"],
)
def test_a_standby_writes_nothing_and_says_where_to(standby: Connection, call: str) -> None:
    with refused(
        standby,
        "25006",
        "this server is a standby: nothing can be written here",
        "target_session_attrs=read-write",
    ):
        standby.execute(f"select pgrecall.{call}".encode())


def test_a_read_only_transaction_is_named(primary: Connection) -> None:
    with refused(
        primary,
        "25006",
        "the transaction is read-only: nothing can be written in it",
        "begin read write",
    ):
        primary.execute("set transaction read only")
        primary.execute("select pgrecall.forget('a', '{1}')")


def test_a_recall_that_replay_cancels_is_repeated(
    pair: tuple[str, str], primary: Connection, standby: Connection
) -> None:
    primary.execute("create role replay_reader login")
    for place in ("pgrecall", "pgrecall_internal"):
        primary.execute(f"grant usage on schema {place} to replay_reader".encode())
        primary.execute(f"grant select on all tables in schema {place} to replay_reader".encode())
    primary.execute(
        "create function public.doze() returns boolean language sql volatile"
        " as 'select pg_sleep(120) is not null'"
    )
    primary.execute("alter table pgrecall.memory enable row level security")
    primary.execute("create policy doze on pgrecall.memory as restrictive using (public.doze())")
    primary.execute("create policy wake on pgrecall.memory using (true)")
    catch_up(primary, standby)
    asleep = (
        "select count(*) from pg_stat_activity where usename = 'replay_reader'"
        " and wait_event = 'PgSleep'"
    )
    began = time.monotonic()
    try:
        with (
            Recall.connect(make_conninfo(pair[1], user="replay_reader"), embedder=None) as memory,
            ThreadPoolExecutor(1) as threads,
        ):
            answer = threads.submit(memory.recall, "a", "who leads Atlas?")
            while value(standby, asleep) == 0:
                assert time.monotonic() < began + 60
            primary.execute("drop policy doze on pgrecall.memory")  # locks what the recall reads

            assert answer.result(60)[0].text == "Ana leads Atlas."
        assert time.monotonic() < began + 100
    finally:
        primary.execute("drop policy if exists doze on pgrecall.memory")
        primary.execute("drop policy wake on pgrecall.memory")
        primary.execute("alter table pgrecall.memory disable row level security")
        primary.execute("drop owned by replay_reader; drop role replay_reader")
        primary.execute("drop function public.doze()")


# How far a standby is behind


def test_a_primary_is_not_behind(primary: Connection) -> None:
    position = value(primary, "select pgrecall.log_position()")

    assert value(primary, "select pgrecall.replica_lag(0, %s)", position) == 0


def test_a_standby_that_has_replayed_all_is_not_behind(
    primary: Connection, standby: Connection
) -> None:
    catch_up(primary, standby)

    assert value(standby, "select pgrecall.replica_lag()") == 0
    assert value(standby, "select pgrecall.log_position() <= pg_last_wal_replay_lsn()")


def test_a_standby_that_has_not_is_behind_and_says_how_far(
    primary: Connection, standby: Connection
) -> None:
    Recall(primary, embedder=None).configure_bank("a", {"rrf_k": 61})
    catch_up(primary, standby)  # the lag is the age of what was replayed last
    pause(standby)
    Recall(primary, embedder=None).configure_bank("a", {"rrf_k": 60})
    received = "select pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn()"
    until = time.monotonic() + 30
    while not value(standby, received):
        assert time.monotonic() < until

    assert value(standby, "select pgrecall.replica_lag()") > 0
    for call, message in (
        ("0", r"the standby is [\d.]+ s behind its primary, more than 0 s"),
        (f"null, '{value(primary, 'select pgrecall.log_position()')}'", "has replayed the log up"),
    ):
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match=message) as caught:
            standby.execute(f"select pgrecall.replica_lag({call})".encode())
        assert str(caught.value.diag.message_hint).startswith("Ask the primary")


@pytest.mark.parametrize("at_most", ["-1", "'nan'"])
def test_a_limit_is_at_least_0(primary: Connection, at_most: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="at_most must be at least 0"):
        primary.execute(f"select pgrecall.replica_lag({at_most})".encode())


# A client with replicas


def test_reads_go_to_the_replica_and_writes_to_the_primary(
    both: tuple[Server, Server], standby: Connection
) -> None:
    memory = client(both)

    memory.recall("a", "who leads Atlas?")
    memory.recall_many("a", ["who leads Atlas?"])
    memory.banks()
    read = both[0].asked, both[1].asked
    memory.configure_bank("a", {"rrf_k": 60})

    assert read == (0, 5)  # a recall prepares its question first
    assert (both[0].asked, both[1].asked) == (1, 5)


def test_without_replicas_all_goes_to_the_primary(both: tuple[Server, Server]) -> None:
    Recall(both[0], embedder=None).recall("a", "who leads Atlas?")

    assert (both[0].asked, both[1].asked) == (2, 0)


def test_replicas_take_turns(both: tuple[Server, Server], pair: tuple[str, str]) -> None:
    other = Server(pair[1])
    memory = Recall(both[0], embedder=None, replicas=[both[1], other])

    for _ in range(4):
        memory.banks()

    assert (both[0].asked, both[1].asked, other.asked) == (0, 2, 2)


def test_a_client_reads_what_it_wrote(
    both: tuple[Server, Server], primary: Connection, standby: Connection
) -> None:
    memory = client(both, max_lag=None)
    memory.create_bank("own")
    catch_up(primary, standby)
    pause(standby)

    memory.retain("own", ["Cy keeps bees."])
    seen, asked = texts(memory, "own"), both[1].asked
    stale = texts(client(both, max_lag=None, read_your_writes=False), "own")
    resume(standby)
    catch_up(primary, standby)
    primary_asked = both[0].asked
    again = texts(memory, "own")
    memory.drop_bank("own")

    assert seen == again == ["Cy keeps bees."]
    assert stale == []
    assert both[0].asked == primary_asked + 1  # the last read came from the replica
    assert both[1].asked == asked + 2


def test_a_position_at_the_end_of_a_page_is_reached_without_another_record(
    primary: Connection,
) -> None:
    def written(length: int) -> int:
        emit = "select pg_logical_emit_message(false, '', repeat('x', %s))"
        position = "select pg_current_wal_insert_lsn() - '0/0'"
        before = int(value(primary, position))
        primary.execute(emit, [length])
        return int(value(primary, position)) - before

    at_end = "select mod(pg_current_wal_insert_lsn() - '0/0', 8192) in (24, 40)"
    for _ in range(100):
        around = written(1000) - 1000
        left = 8192 - int(value(primary, "select mod(pg_current_wal_insert_lsn() - '0/0', 8192)"))
        if left > 1000:
            written(left - around)
        if value(primary, at_end):
            break

    assert value(primary, at_end + " and mod(pgrecall.log_position() - '0/0', 8192) = 0")


def test_a_client_reads_after_what_another_wrote(
    both: tuple[Server, Server], standby: Connection
) -> None:
    writer, reader = client(both), client(both, max_lag=None)
    pause(standby)
    writer.retain("a", ["Di dives."])
    before = texts(reader, "a")

    reader.read_after(writer.position())
    reader.read_after("0/0")  # asks for less, and takes nothing back

    assert before == FACTS
    assert texts(reader, "a") == [*FACTS, "Di dives."]
    writer.forget("a", filter="text = 'Di dives.'")


def test_a_replica_that_is_too_far_behind_is_not_read(
    both: tuple[Server, Server], primary: Connection, standby: Connection
) -> None:
    pause(standby)
    Recall(primary, embedder=None).retain("a", ["Ed eats."])
    while not value(standby, "select pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn()"):
        pass

    near, far = texts(client(both, max_lag=0), "a"), texts(client(both, max_lag=None), "a")

    assert near == [*FACTS, "Ed eats."]
    assert far == FACTS
    Recall(primary, embedder=None).forget("a", filter="text = 'Ed eats.'")


def test_what_a_replica_does_not_know_yet_the_primary_is_asked_for(
    both: tuple[Server, Server], primary: Connection, standby: Connection
) -> None:
    pause(standby)
    Recall(primary, embedder=None).create_bank("new")

    assert client(both).list_memories("new") == []
    with pytest.raises(BankNotFound):
        client(both).recall("nowhere", "q")
    Recall(primary, embedder=None).drop_bank("new")


def test_a_replica_that_is_down_is_left_out_for_a_while(
    both: tuple[Server, Server], caplog: pytest.LogCaptureFixture
) -> None:
    memory = Recall(both[0], embedder=None, replicas=[NOWHERE, both[1]])
    gone = Recall(both[0], embedder=None, replicas=[NOWHERE])

    with caplog.at_level("WARNING", "pgrecall"):
        for _ in range(6):
            assert memory.banks()
        asked = both[0].asked
        assert gone.banks()

    assert (asked, both[0].asked, both[1].asked) == (0, 1, 6)
    assert sum(said.startswith("replica 0 did not answer") for said in caplog.messages) == 2


def test_reads_go_on_while_the_primary_is_down(both: tuple[Server, Server]) -> None:
    memory = client(both)
    both[0].is_up = False

    assert memory.recall("a", "who leads Atlas?")[0].text == "Ana leads Atlas."
    with pytest.raises(psycopg.OperationalError):
        memory.drop_bank("nowhere")


def test_an_error_of_the_caller_is_that_of_the_primary(both: tuple[Server, Server]) -> None:
    memory = client(both)

    with pytest.raises(InvalidArgument, match="top_k"):
        memory.recall("a", "q", top_k=0)
    with pytest.raises(MemoryNotFound):
        memory.get("a", -5)


def test_inside_a_transaction_of_the_caller_the_primary_answers(
    both: tuple[Server, Server], primary: Connection
) -> None:
    memory = Recall(primary, embedder=None, replicas=[both[1]])
    memory.banks()
    with primary.transaction(force_rollback=True):
        memory.retain("a", ["Flo flies."])
        inside = texts(memory, "a")

    assert inside == [*FACTS, "Flo flies."]
    assert both[1].asked == 1


@pytest.mark.parametrize("pool_size", [None, pytest.param(2, marks=needs_pool)])
def test_replicas_are_opened_by_their_dsn_and_closed(
    pair: tuple[str, str], primary: Connection, standby: Connection, pool_size: int | None
) -> None:
    named = make_conninfo(pair[1], application_name=f"reader_{pool_size}")
    count = "select count(*) from pg_stat_activity where application_name = %s"
    with Recall.connect(pair[0], embedder=None, pool_size=pool_size, replicas=[named]) as memory:
        found = memory.recall("a", "who leads Atlas?", timeout=20)
        opened = value(standby, count, f"reader_{pool_size}")

    assert found[0].text == "Ana leads Atlas."
    assert opened > 0
    until = time.monotonic() + 30
    while value(standby, count, f"reader_{pool_size}"):
        assert time.monotonic() < until


def test_tasks_read_from_a_replica_too(pair: tuple[str, str], standby: Connection) -> None:
    pause(standby)

    async def body() -> tuple[list[str], list[str]]:
        async with await AsyncRecall.connect(
            pair[0], embedder=None, replicas=[pair[1]], max_lag=None
        ) as memory:
            asked = (memory.recall("a", "who leads Atlas?", top_k=1) for _ in range(8))
            found = [hits[0].text for hits in await asyncio.gather(*asked)]
            await memory.retain("a", ["Gus gets it."])
            return found, [one.text for one in await memory.list_memories("a", top_k=1)]

    assert asyncio.run(body()) == (["Ana leads Atlas."] * 8, ["Gus gets it."])
    Recall.connect(pair[0], embedder=None).forget("a", filter="text = 'Gus gets it.'")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"replicas": "host=a"}, "replicas is a string, not a list"),
        ({"replicas": 5}, "replicas must be a list"),
        ({"max_lag": -1}, "max_lag must be at least 0, not -1"),
        ({"max_lag": float("nan")}, "max_lag must be at least 0, not nan"),
        ({"max_lag": "5 s"}, "max_lag must be a number"),
        ({"read_your_writes": 1}, "read_your_writes must be True or False"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Recall(Mock(), embedder=None, **arguments)


@pytest.mark.parametrize("position", ["", "5", "0/", "x/5", "0/3000060\n", "123456789/0"])
def test_a_wrong_position_is_named(position: str) -> None:
    with pytest.raises(InvalidArgument, match="is not a position in the log"):
        Recall(Mock(), embedder=None).read_after(position)


# libpq's own choice


@pytest.mark.parametrize(
    ("wanted", "is_standby"), [("primary", False), ("read-write", False), ("prefer-standby", True)]
)
def test_a_dsn_of_several_hosts_chooses_by_target_session_attrs(
    pair: tuple[str, str], standby: Connection, wanted: str, is_standby: bool
) -> None:
    hosts = ",".join(str(conninfo_to_dict(dsn)["host"]) for dsn in reversed(pair))
    dsn = make_conninfo(pair[0], host=hosts, target_session_attrs=wanted)

    with Recall.connect(dsn, embedder=None) as memory:
        connection: Any = memory._source
        assert value(connection, "select pg_is_in_recovery()") == is_standby
        assert memory.recall("a", "who leads Atlas?")[0].text == "Ana leads Atlas."


# A subscriber of logical replication


@pytest.mark.slow
def test_a_subscriber_has_every_row_and_gives_the_same_answers() -> None:
    question = "select text, score from pgrecall.hybrid_recall('b', 'Are boats blue?')"
    with (
        servers.folder_of_servers() as folder,
        failover.primary_in(folder, wal_level="logical") as server,
        psycopg.connect(server.dsn, autocommit=True) as publisher,
    ):
        publisher.execute("create database copy")
        publisher.execute("create publication everything for all tables")
        publisher.execute("select pg_create_logical_replication_slot('copied', 'pgoutput')")
        source = make_conninfo(dbname="postgres", host=publisher.info.host, user="postgres")
        copy = make_conninfo(server.dsn, dbname="copy")
        with psycopg.connect(copy, autocommit=True) as subscriber:
            subscriber.execute("create extension vector")
            schema.migrate(subscriber)
            subscriber.execute(
                f"create subscription copied connection '{source}' publication everything"
                " with (create_slot = false)".encode()
            )

            fill(publisher, "full")
            (first, *_) = retain(publisher, [*FACTS, *(f"Fact {n} of many" for n in range(40))])
            tags = '{"tags": ["x"]}'
            publisher.execute("select pgrecall.update_memory('b', %s, %s)", [first, tags])
            publisher.execute("select pgrecall.forget_where('b', fact_key => 'none')")
            publisher.execute("select pgrecall.forget('b', %s)", [[first]])
            publisher.execute("select pgrecall.refresh_statistics('b', true)")
            publisher.execute("select pgrecall.drop_bank('full')")
            failover.until(lambda: contents(subscriber) == contents(publisher))

            assert rows(subscriber, question) == rows(publisher, question)
            assert rows(subscriber, question) != []
            # A table whose copy begins meanwhile would wait for the drop, and the drop for it.
            unready = "select count(*) from pg_subscription_rel where srsubstate <> 'r'"
            failover.until(lambda: value(subscriber, unready) == 0)
            for statement in ("disable", "set (slot_name = none)"):
                subscriber.execute(f"alter subscription copied {statement}".encode())
            subscriber.execute("drop subscription copied")
