"""pgrecall attach, sync and detach: tables of one's own, by the command and the driver."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

import failover
import servers
from pgrecall import InvalidArgument, Recall
from pgrecall.command import main
from pgrecall.server import embedded_server

Run = Callable[..., Any]


@pytest.fixture
def table(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create table note (id int primary key, body text, by text)")
        connection.execute(
            "insert into note select n, 'Note ' || n, 'Ana' from generate_series(1, 7) n"
        )
        yield connection


@pytest.fixture
def run(database: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> Any:
        assert main([*words, "--dsn", database, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_attach_copies_sync_follows_and_detach_ends_it(
    table: psycopg.Connection[Any], run: Run
) -> None:
    (copied,) = run(
        *("attach", "mine", "note", "--create", "--key", "id", "--text", "body"),
        *("--entity", "by", "--field", "context=by", "--batch-size", "2", "--no-history"),
    )
    table.execute("delete from note where id = 1")
    table.execute("update note set body = 'Changed.' where id = 2")
    (synced,) = run("sync", "mine")
    detached = run("detach", "mine", "note", "--forget")

    assert (copied["relation"], copied["added"], copied["is_complete"]) == ("public.note", 7, True)
    assert (synced["changed"], synced["removed"], synced["added"]) == (1, 1, 0)
    assert detached == {"bank_id": "mine", "memories": 6}
    assert run("sync", "mine") == []


def test_the_driver_attaches_syncs_in_batches_and_says_how_far_it_is(
    table: psycopg.Connection[Any], database: str
) -> None:
    seen: list[int] = []
    with Recall.connect(database, embedder=None) as recall:
        recall.create_bank("b")
        attached = recall.attach_table(
            "b", "note", key="id", text="body", entities=["by"], fields={"tags": ["by"]}
        )
        (done,) = recall.sync_table("b", batch_size=3, progress=seen.append)
        (state,) = recall.attached_tables("b")
        (hit,) = recall.recall("b", "note 5", top_k=1)

        assert (attached.status, state.status, state.memories) == ("copying", "current", 7)
        assert (done.added, seen) == (7, [3, 3, 1])
        assert (hit.text, hit.metadata["id"]) == ("Note 5", 5)
        with pytest.raises(InvalidArgument, match='table "bill" is not attached to bank "b"'):
            recall.sync_table("b", "bill")
        assert recall.detach_table("b", "note") == 7


@pytest.mark.slow
def test_watching_goes_on_when_the_server_is_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interval, naps, nap = 0.123, [0.0], time.sleep
    with servers.folder_of_servers() as folder, ExitStack() as stack:
        dsn = stack.enter_context(failover.primary_in(folder, synchronous_commit="on")).dsn
        write(dsn, "create table note (id int primary key, body text)")
        assert main(["attach", "b", "note", "--key", "id", "--text", "body", "--dsn", dsn]) == 0

        def sleep(seconds: float) -> None:
            if seconds != interval:  # between the retries of a call
                return nap(seconds)
            naps.append(seconds)
            if len(naps) == 2:
                failover.kill(folder / "primary")
            elif len(naps) == 4:
                version = servers.embedded_version()
                stack.enter_context(embedded_server(version, folder / "primary"))
                write(dsn, "insert into note values (1, 'Back again')")
            elif len(naps) == 6:
                raise KeyboardInterrupt
            return None

        monkeypatch.setattr("time.sleep", sleep)
        code = main(["sync", "b", "--watch", "--interval", str(interval), "--dsn", dsn])

    said = capsys.readouterr()
    assert (code, said.err.count("waiting for the server: ")) == (0, 1)
    assert "public.note: 1 added" in said.out


def write(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute(statement.encode())
