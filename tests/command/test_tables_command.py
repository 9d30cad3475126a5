"""pgrecall attach, sync and detach: tables of one's own, by the command and the driver."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from pgrecall import InvalidArgument, Recall
from pgrecall.command import main

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
