"""The log of recalls: who switches it on, what is in it, what it never does."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import psycopg
import pytest

from pgrecall import AsyncRecall, BankNotFound, Recall, RecallTimes
from pgrecall.connection import recall_log_writer
from sqlcalls import SAMPLE, Connection, call, column, create, log_recalls, rows, value


@pytest.fixture
def memory(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recall]:
    monkeypatch.setattr(recall_log_writer, "SECONDS", 1.0)
    with Recall.connect(database, embedder=None) as recall:
        recall.create_bank("b", settings={"log_share": 1})
        recall.retain("b", ["Ana leads Atlas.", "Ben sails."])
        yield recall


def logged(dsn: str) -> list[Any]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            "select bank_id, share, hits, left_out, total_ms >= database_ms, asked_at <= now()"
            " from pgrecall.recall_log order by asked_at"
        ).fetchall()


def test_recalls_of_a_bank_that_asks_for_it_are_logged(memory: Recall, database: str) -> None:
    memory.create_bank("silent")
    memory.recall("b", "Who leads Atlas?")
    memory.recall("silent", "Who leads Atlas?")
    memory.recall("b", "Who knows nothing of it?", filter="confidence > 2")

    memory.close()

    assert logged(database) == [
        ("b", 1.0, 1, [], True, True),
        ("b", 1.0, 0, [], True, True),
    ]


def test_nothing_is_logged_unasked(database: str) -> None:
    with Recall.connect(database, embedder=None) as recall:
        recall.create_bank("b")
        recall.recall("b", "Who leads Atlas?")
        assert recall._log is not None
        assert recall._log._thread is None

    assert logged(database) == []


async def _ask(dsn: str) -> None:
    async with await AsyncRecall.connect(dsn, embedder=None, pool_size=2) as recall:
        await recall.recall("b", "Who leads Atlas?")


def test_an_async_client_logs_as_well(memory: Recall, database: str) -> None:
    asyncio.run(_ask(database))

    assert len(logged(database)) == 1


def test_a_share_of_the_recalls_is_kept_and_stands_for_all(
    memory: Recall, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.configure_bank("b", {"log_share": 0.25})
    drawn = iter([0.1, 0.3, 0.9, 0.2])
    monkeypatch.setattr(random, "random", lambda: next(drawn))

    for _ in range(4):
        memory.recall("b", "Who leads Atlas?")
    memory.close()

    (found,) = Recall.connect(database, embedder=None).recall_stats("b")
    assert (found.samples, found.recalls) == (2, 8)


def test_what_was_left_out_is_logged_and_no_text_of_the_question(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(texts: object) -> list[list[float]]:
        raise RuntimeError("the secret is 4711")

    with Recall.connect(database, embedder=broken, model="toy") as recall:
        recall.create_bank("b", settings={"log_share": 1})
        recall.recall("b", "the secret is 4711")

    with psycopg.connect(database) as connection:
        ((left_out, text),) = connection.execute(
            "select left_out, l::text from pgrecall.recall_log l"
        ).fetchall()
    assert left_out == ["embedder"]
    assert "4711" not in text


def test_samples_of_a_dropped_bank_do_not_take_others_along(memory: Recall, database: str) -> None:
    memory.create_bank("a", settings={"log_share": 1})
    for bank in ("a", "b"):
        memory.recall(bank, "Who leads Atlas?")
    memory.drop_bank("a")

    memory.close()

    assert [row[0] for row in logged(database)] == ["b"]


def test_a_client_that_is_closed_waits_for_what_is_being_written(
    memory: Recall, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_log_writer, "SECONDS", 0.1)
    waits = "select from pg_locks where relation = 'pgrecall.recall_log'::regclass and not granted"
    with psycopg.connect(database) as connection:
        connection.execute("lock table pgrecall.recall_log")
        memory.recall("b", "Who leads Atlas?")
        deadline = time.monotonic() + 30
        while not rows(connection, waits):
            assert time.monotonic() < deadline, "it does not wait"
        assert memory._log is not None
        writing = memory._log._thread

    memory.close()

    assert writing is not None
    assert not writing.is_alive()
    assert len(logged(database)) == 1


def test_a_log_that_cannot_be_written_fails_no_recall(memory: Recall, database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("alter table pgrecall.recall_log rename to gone")

    hits = memory.recall("b", "Who leads Atlas?")
    memory.close()

    assert [hit.text for hit in hits] == ["Ana leads Atlas."]


def test_a_read_only_transaction_writes_nothing(connection: Connection) -> None:
    create(connection)
    connection.execute("set transaction_read_only = on")

    assert log_recalls(connection, SAMPLE) == 0


def test_a_recall_in_sql_writes_nothing(connection: Connection) -> None:
    create(connection)
    call(connection, "configure_bank", bank="b", settings={"log_share": 1})

    call(connection, "hybrid_recall", bank="b", query="x")

    assert rows(connection, "select from pgrecall.recall_log") == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"share": 0}, "samples[0]: asked_at and a share above 0 are needed"),
        ({"share": 2}, "samples[0].share: expected a number from 0 to 1, not 2"),
        ({"asked_at": None}, "samples[0]: asked_at and a share above 0 are needed"),
        ({"total_ms": -1}, "samples[0].total_ms: expected a number from 0 to 1000000000, not -1"),
        ({"embed_ms": "1"}, 'samples[0].embed_ms: expected a number from 0 to 1000000000, not "1"'),
        ({"hits": None}, "samples[0].hits: expected a number from 0 to 1000000000, not null"),
        ({"query": "x"}, "samples[0].query: unknown field"),
    ],
)
def test_a_bad_sample_is_refused_by_name(
    connection: Connection, change: dict[str, object], said: str
) -> None:
    create(connection)

    with pytest.raises(psycopg.Error) as caught:
        log_recalls(connection, SAMPLE | change)

    assert (caught.value.sqlstate, caught.value.diag.message_primary) == ("RC003", said)


@pytest.mark.parametrize("share", [-0.1, 1.1, "much"])
def test_a_share_is_from_0_to_1(connection: Connection, share: object) -> None:
    create(connection)

    with pytest.raises(psycopg.Error):
        call(connection, "configure_bank", bank="b", settings={"log_share": share})


def test_percentiles_are_those_of_the_samples(connection: Connection) -> None:
    create(connection)
    create(connection, "other")
    log_recalls(
        connection,
        *(SAMPLE | {"total_ms": n, "database_ms": n / 2, "left_out": []} for n in range(1, 101)),
    )
    log_recalls(connection, SAMPLE | {"hits": 0, "left_out": ["arm"]}, bank="other")

    found = rows(
        connection,
        "select bank_id, samples, recalls, p50_ms, p95_ms, max_ms, database_p95_ms, without_hits,"
        " degraded from pgrecall.recall_stats(since => '2026-03-05')",
    )

    assert [tuple(row) for row in found] == [
        ("b", 100, 200, 50.5, 95.05, 100.0, 47.525, 0, 0),
        ("other", 1, 2, 10.0, 10.0, 10.0, 5.5, 1, 1),
    ]
    assert rows(connection, "select from pgrecall.recall_stats(since => '2026-03-06')") == []
    assert len(rows(connection, "select from pgrecall.recall_stats('other', null)")) == 1


def test_small_shares_of_one_bank_keep_no_statistics_from_others(connection: Connection) -> None:
    create(connection)
    create(connection, "other")
    log_recalls(connection, SAMPLE | {"share": 1e-30})
    log_recalls(connection, SAMPLE | {"share": 0.5}, bank="other")

    found = rows(connection, "select bank_id, recalls from pgrecall.recall_stats(since => null)")

    assert [tuple(row) for row in found] == [("b", 2**63 - 1), ("other", 2)]


def test_statistics_of_an_unknown_bank_are_an_error(memory: Recall) -> None:
    with pytest.raises(BankNotFound):
        memory.recall_stats("no")


def test_maintain_deletes_what_is_older_than_30_days(connection: Connection) -> None:
    create(connection)
    new = value(connection, "select now() - interval '29 days'").isoformat()
    old = value(connection, "select now() - interval '31 days'").isoformat()
    log_recalls(connection, *(SAMPLE | {"asked_at": at} for at in (old, old, old, new)))

    first, second, third = (
        [tuple(row) for row in call(connection, "maintain", bank="b", batch_size=2)]
        for _ in range(3)
    )

    assert first == [("b", "prune", "recall", 2)]
    assert second == [("b", "prune", "recall", 1)]
    assert third == []
    assert len(column(connection, "select sample_id from pgrecall.recall_log")) == 1


def test_a_reader_may_log_its_recalls_and_those_of_no_other_bank(connection: Connection) -> None:
    for bank in ("log_mine", "log_other"):
        create(connection, bank)
        log_recalls(connection, SAMPLE, bank=bank)
    call(connection, "create_roles", prefix="logged")
    call(connection, "enable_row_security")
    connection.execute("create role log_mine in role logged_reader")
    connection.execute("set local role log_mine")

    assert log_recalls(connection, SAMPLE, bank="log_mine") == 1
    assert column(connection, "select distinct bank_id from pgrecall.recall_log") == ["log_mine"]
    with pytest.raises(psycopg.errors.DatabaseError):
        log_recalls(connection, SAMPLE, bank="log_other")


def test_rows_are_read_as_they_are_declared(memory: Recall) -> None:
    with psycopg.connect(memory._dsn or "") as connection:
        log_recalls(connection, SAMPLE | {"asked_at": datetime.now(timezone.utc).isoformat()})

    assert memory.recall_stats() == [
        RecallTimes("b", 1, 2, 10.0, 10.0, 10.0, 10.0, 1.0, 2.0, 5.5, 1.0, 0, 1)
    ]
