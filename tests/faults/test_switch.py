"""A standby takes over in the midst of long work: nothing is lost or half done, and it goes on."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import failover
import servers
from pgrecall import Recall, schema
from pgrecall.cluster import shards
from pgrecall.server import embedded_server
from sqlcalls import Connection, column, rows, value
from toys import toy_embed

FACTS = 200
WAITING = "select exists (select from pg_stat_activity where wait_event_type = 'Lock')"

pytestmark = [
    pytest.mark.skipif("PGRECALL_DSN" in os.environ, reason="somebody else's server"),
    pytest.mark.slow,
]


class Other:
    """A model to re-embed with, which does something at one of its calls."""

    model = "other"
    dimensions = None

    def __init__(self, at: int = 0, then: Callable[[], None] = lambda: None) -> None:
        self.calls, self.at, self.then = 0, at, then

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.calls += 1
        if self.calls == self.at:
            self.then()
        return [[*vector, 1.0] for vector in toy_embed(texts)]


def facts() -> list[dict[str, Any]]:
    return [
        {
            "text": f"Person {n % 7} saw boat {n} on day {n % 50}",
            "entities": [f"Person {n % 7}", f"boat {n % 10}"],
            "fact_key": f"key.{n % 60}",
            "mentioned_at": f"2026-01-01 {n // 60:02}:{n % 60:02}",
        }
        for n in range(FACTS)
    ]


@pytest.fixture
def folder() -> Iterator[Path]:
    with servers.folder_of_servers() as folder:
        yield folder


@pytest.fixture
def pair(folder: Path) -> Iterator[failover.Pair]:
    with failover.pair_in(folder) as pair:
        yield pair


def lost(pair: failover.Pair) -> None:
    pair.lose()
    pair.promote()


def connected(dsn: str, model: str = "toy") -> Recall:
    return Recall.connect(dsn, embedder=toy_embed, model=model, reranker=None)


def contents(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Return what bank b holds, by texts instead of ids."""
    return {
        "memory": rows(
            connection,
            "select text, fact_key, valid_to is null from pgrecall.memory"
            " where bank_id = 'b' order by text",
        ),
        "embedding": rows(
            connection,
            "select m.text, e.model, e.embedding::text from pgrecall.embedding e"
            " join pgrecall.memory m using (bank_id, memory_id)"
            " where e.bank_id = 'b' order by m.text, e.model",
        ),
        "mention": rows(
            connection,
            "select m.text, e.name from pgrecall.mention x"
            " join pgrecall.memory m using (bank_id, memory_id)"
            " join pgrecall.entity e using (bank_id, entity_id)"
            " where x.bank_id = 'b' order by 1, 2",
        ),
    }


@contextmanager
def striking(pair: failover.Pair) -> Iterator[Callable[[], None]]:
    """Give what locks bank b, and loses the primary as soon as somebody waits for that."""
    with (
        ThreadPoolExecutor(1) as threads,
        psycopg.connect(pair.dsn) as blocker,
        psycopg.connect(pair.dsn, autocommit=True) as watcher,
    ):

        def lose() -> None:
            try:
                failover.until(lambda: value(watcher, WAITING))
                lost(pair)
            finally:
                blocker.close()

        def strike() -> None:
            blocker.execute("select pgrecall.configure_bank('b', '{}')")
            begun.append(threads.submit(lose))

        begun: list[Future[None]] = []
        yield strike
        begun[0].result(failover.DEADLINE_S)


@pytest.mark.parametrize("replace", ["none", "key"])
def test_a_bulk_load_goes_on_after_the_primary_is_lost(
    pair: failover.Pair, database: str, replace: str
) -> None:
    given = facts()
    at = 145

    def broken(strike: Callable[[], None]) -> Iterator[dict[str, Any]]:
        for n, fact in enumerate(given):
            if n == at:
                strike()
            yield fact

    # The driver repeats a write that nobody answered, for as long as a second or so.
    with (
        striking(pair) as strike,
        connected(pair.dsn) as memory,
        contextlib.suppress(psycopg.OperationalError),
    ):
        memory.retain_bulk("b", broken(strike), batch_size=10, workers=2, replace=replace)
    with connected(pair.dsn) as again:
        done = again.retain_bulk("b", given, batch_size=10, workers=2, replace=replace)
        pending = again.pending_links("b")
    with connected(database) as undisturbed:
        undisturbed.create_bank("b")
        undisturbed.retain_bulk("b", given, batch_size=10, workers=2, replace=replace)

    assert (done.total, done.refused, done.due, pending) == (FACTS, 0, (), 0)
    assert at - 30 <= done.known
    with psycopg.connect(pair.dsn) as promoted, psycopg.connect(database) as other:
        assert contents(promoted) == contents(other)


@pytest.mark.parametrize("is_writing", [False, True])
def test_a_change_of_model_goes_on_after_the_primary_is_lost(
    pair: failover.Pair, is_writing: bool
) -> None:
    with connected(pair.dsn) as memory:
        memory.retain("b", facts())
    made = 0
    if is_writing:
        with (
            striking(pair) as strike,
            connected(pair.dsn) as memory,
            contextlib.suppress(psycopg.OperationalError),
        ):
            made = memory.reembed_fill("b", Other(4, strike), batch_size=20)
    else:  # nobody holds a connection: a new one leads to who took over
        with connected(pair.dsn) as memory:
            made = memory.reembed_fill("b", Other(4, lambda: lost(pair)), batch_size=20)
    with connected(pair.dsn) as memory:
        found = memory.recall("b", "Person 3 saw boat 3", top_k=1)[0].text
        half = memory.reembed_status("b")
        more = memory.reembed_fill("b", Other(), batch_size=20)
        memory.reembed_finish("b")
        while memory.reembed_clean("b"):
            pass
        status = memory.reembed_status("b")
    with psycopg.connect(pair.dsn) as connection:
        models = rows(connection, "select model, count(*) from pgrecall.embedding group by 1")

    assert found.startswith("Person 3 saw boat 3 ")
    assert (half.model, half.next_model) == ("toy", "other")
    assert more == half.pending == (0 if made == FACTS else FACTS - 40)
    assert (status.model, status.next_model) == ("other", None)
    assert models == [("other", FACTS)]


@pytest.mark.parametrize("step", ["_copy", "_drain"])
@pytest.mark.parametrize("who", ["source", "target"])
def test_a_bank_whose_shard_is_lost_while_it_moves_is_moved_again(
    folder: Path, pair: failover.Pair, who: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers.router_programs()
    with (
        embedded_server(
            servers.embedded_version(), folder / "other", settings=servers.TEST_SETTINGS
        ) as other,
        servers.router_server(folder / "router") as router_dsn,
        psycopg.connect(router_dsn, autocommit=True) as routed,
    ):
        with psycopg.connect(other.dsn, autocommit=True) as connection:
            connection.execute("create extension vector")
            schema.migrate(connection)
        with psycopg.connect(pair.dsn, autocommit=True) as connection:
            connection.execute("select pgrecall.drop_bank('b')")
        shards.init(routed)
        dsns = {"source": pair.dsn, "target": other.dsn}
        if who == "target":
            dsns = {"source": other.dsn, "target": pair.dsn}
        with psycopg.connect(dsns["source"], autocommit=True) as connection:
            memory = Recall(connection, embedder=None)
            memory.create_bank("b")
            memory.retain("b", facts())
            before = contents(connection)
        for name, dsn in dsns.items():
            shards.add(routed, name, without_user(dsn))
        work = getattr(shards, step)

        def broken(*given: object) -> object:
            done = work(*given)
            lost(pair)
            return done

        with monkeypatch.context() as patch:
            patch.setattr(shards, step, broken)
            with contextlib.suppress(psycopg.OperationalError):
                shards.move(routed, "b", "target")
        place = dict(shards.banks(routed))["b"]
        asked = Recall(routed, embedder=None)
        held = len(asked.list_memories("b", top_k=1000))
        shards.move(routed, "b", "target")
        [new] = asked.retain("b", ["Di dives."])
        asked.forget("b", [new.memory_id])
        problems = [one.problem for one in shards.status(routed)]
        with psycopg.connect(dsns["target"]) as connection:
            after = contents(connection)
        with psycopg.connect(dsns["source"]) as connection:
            left = column(connection, "select bank_id from pgrecall.bank")

    assert place == ("source" if step == "_copy" else "target")
    assert held == FACTS
    assert after == before
    assert left == []
    assert problems == [None, None]


def without_user(dsn: str) -> str:
    return make_conninfo("", **{k: v for k, v in conninfo_to_dict(dsn).items() if k != "user"})
