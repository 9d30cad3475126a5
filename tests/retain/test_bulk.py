"""Bulk loads: the same bank as retain makes, from a stream, over several connections."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from pgrecall import AsyncRecall, BankNotFound, InvalidArgument, InvalidFact, Recall, RecallError
from pgrecall.command import main
from sqlcalls import Connection, rows, value
from toys import toy_embed

NAMES = ("Ana", "Ben", "Cy", "Dora")


@pytest.fixture
def recall(database: str) -> Iterator[Recall]:
    with Recall.connect(database, embedder=toy_embed, model="toy", reranker=None) as recall:
        recall.create_bank("b")
        yield recall


@pytest.fixture
def looked(database: str) -> Iterator[Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


def fact(n: int, **fields: object) -> dict[str, Any]:
    return {
        "text": f"{NAMES[n % 4]} saw boat {n} on day {n % 50}",
        "entities": [NAMES[n % 4], f"boat {n % 10}"],
        "occurred": f"2026-01-{n % 28 + 1:02}",
        **fields,
    }


def state(connection: Connection, bank: str) -> dict[str, list[tuple[Any, ...]]]:
    """Return what a bank holds, by texts instead of ids."""
    queries = {
        "memory": "select m.text, m.occurred::text, m.fact_key, m.content_hash, m.valid_to"
        " from pgrecall.memory m where m.bank_id = %s order by 1",
        "weights": "select m.text, m.lexical_weights::text from pgrecall.memory m"
        " where m.bank_id = %s order by 1",
        "embedding": "select m.text, e.model, e.embedding::text from pgrecall.embedding e"
        " join pgrecall.memory m using (bank_id, memory_id) where e.bank_id = %s order by 1",
        "mention": "select m.text, e.name from pgrecall.mention x"
        " join pgrecall.memory m using (bank_id, memory_id)"
        " join pgrecall.entity e using (bank_id, entity_id) where x.bank_id = %s order by 1, 2",
        "link": "select f.text, l.kind, t.text from pgrecall.link l"
        " join pgrecall.memory f on f.bank_id = l.bank_id and f.memory_id = l.from_id"
        " join pgrecall.memory t on t.bank_id = l.bank_id and t.memory_id = l.to_id"
        " where l.bank_id = %s and l.kind not in ('temporal', 'semantic') order by 1, 2, 3",
    }
    return {name: rows(connection, query, bank) for name, query in queries.items()}


def stored(connection: Connection, bank: str = "b") -> int:
    return int(value(connection, "select count(*) from pgrecall.memory where bank_id = %s", bank))


# What is stored


def test_a_bulk_load_stores_what_retain_stores(recall: Recall, looked: Connection) -> None:
    # Of an hour each, so that there are links whichever worker comes first.
    facts = [fact(n, fact_key=f"k{n}", occurred=f"2026-01-05T{n % 24:02}:00Z") for n in range(60)]
    recall.create_bank("one by one")
    recall.retain_many("one by one", facts, batch_size=7)
    recall.maintain("one by one", batch_size=1000)

    done = recall.retain_bulk("b", iter(facts), batch_size=7, workers=3, replace="none")

    assert (done.total, done.new, done.known, done.refused, done.due) == (60, 60, 0, 0, ())
    assert done.linked == 60
    assert recall.pending_links("b") == 0
    assert state(looked, "b") == state(looked, "one by one")
    assert value(looked, "select count(*) from pgrecall.link where bank_id = 'b'") > 0


def test_every_arm_finds_a_fact_when_the_load_is_done(recall: Recall) -> None:
    planted = fact(500, text="Zoe hid the zyxogram", entities=["Zoe"], fact_key="zyx.place")
    recall.retain_bulk("b", [*map(fact, range(300)), planted], batch_size=50, workers=3)

    (hit,) = recall.recall("b", "zyx.place zyxogram of Zoe", during=None, top_k=1)

    assert hit.text == "Zoe hid the zyxogram"
    assert {"semantic", "lexical", "key"} <= set(hit.arms)


def test_a_text_is_a_fact_and_an_empty_stream_is_none(recall: Recall) -> None:
    assert recall.retain_bulk("b", ["Ana leads Atlas", "Ana leads Atlas"]).known == 1
    assert recall.retain_bulk("b", []).total == 0
    with pytest.raises(BankNotFound):
        recall.retain_bulk("nowhere", [])


def test_links_lead_back_to_any_earlier_fact(recall: Recall, looked: Connection) -> None:
    facts: list[Any] = [fact(n) for n in range(40)]
    for n in range(10, 40, 3):
        facts[n]["links"] = [{"kind": "caused_by", "to_index": n - 9}]
    facts[5]["fact_key"] = "five"
    facts[39]["links"] = [{"kind": "causes", "to_key": "five"}]

    recall.retain_bulk("b", facts, batch_size=4, workers=4)

    led = state(looked, "b")["link"]
    wanted = [(facts[n]["text"], "caused_by", facts[n - 9]["text"]) for n in range(10, 40, 3)]
    assert sorted(led) == sorted([*wanted, (facts[39]["text"], "causes", facts[5]["text"])])


def test_facts_of_a_key_replace_one_another_in_order(recall: Recall, looked: Connection) -> None:
    facts = [fact(n, fact_key="place") for n in range(30)]

    recall.retain_bulk("b", facts, batch_size=2, workers=4, replace="key")

    current = "select text from pgrecall.memory where bank_id = 'b' and valid_to is null"
    assert rows(looked, current) == [(facts[-1]["text"],)]


def test_batches_are_written_beside_each_other(
    database: str, recall: Recall, looked: Connection
) -> None:
    first_is_stored = threading.Event()
    together = threading.Barrier(3, timeout=20)

    def embed(texts: Sequence[str]) -> list[list[float]]:
        if first_is_stored.is_set():
            together.wait()  # fails unless three batches are under way
        first_is_stored.set()
        return toy_embed(texts)

    with Recall.connect(database, embedder=embed, model="toy") as beside:
        done = beside.retain_bulk("b", [fact(n) for n in range(4)], batch_size=1, workers=3)

    assert done.new == stored(looked) == 4


def test_two_loads_of_the_same_facts_store_each_once(
    database: str, recall: Recall, looked: Connection
) -> None:
    facts = [fact(n) for n in range(120)]
    new: list[int] = []

    def load(given: list[Any]) -> None:
        with Recall.connect(database, embedder=toy_embed, model="toy") as own:
            new.append(own.retain_bulk("b", given, batch_size=10, workers=2).new)

    threads = [threading.Thread(target=load, args=[given]) for given in (facts, facts[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(new) == stored(looked) == 120
    assert recall.pending_links("b") == 0


# The stream


def test_a_load_does_not_hold_the_stream_in_memory(recall: Recall) -> None:
    size = 20_000
    ahead = 0
    most_ahead = 0

    def stream() -> Iterator[dict[str, Any]]:
        nonlocal ahead, most_ahead
        for n in range(40):
            ahead += 1
            most_ahead = max(most_ahead, ahead)
            yield {"text": f"{n} " + "x" * size, "embedding": [n, 1]}

    def done(what: str, count: int) -> None:
        nonlocal ahead
        ahead -= count if what == "retain" else 0

    tracemalloc.start()
    recall.retain_bulk("b", stream(), batch_size=1, workers=2, progress=done)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most_ahead <= 4  # a batch for each worker, one that waits, one that was just stored
    assert peak < 20 * size


def test_progress_is_told_by_phase(recall: Recall) -> None:
    told: dict[str, int] = {}

    def progress(what: str, count: int) -> None:
        told[what] = told.get(what, 0) + count

    recall.retain_bulk("b", map(fact, range(25)), batch_size=10, progress=progress)

    assert (told["retain"], told["link"]) == (25, 25)


# What is refused


def test_the_first_fact_refused_ends_the_load(recall: Recall, looked: Connection) -> None:
    facts = [fact(n) for n in range(40)]
    facts[23]["confidence"] = 7

    with pytest.raises(InvalidFact, match=r"^facts\[23\]\.confidence: expected a number") as caught:
        recall.retain_bulk("b", facts, batch_size=10, workers=2)

    assert caught.value.position == 23
    assert 10 <= stored(looked) <= 30
    assert recall.retain_bulk("b", facts[:23] + facts[24:], batch_size=10).total == stored(looked)


def test_refused_facts_are_told_and_left_out(recall: Recall, looked: Connection) -> None:
    facts: list[Any] = [fact(n) for n in range(30)]
    facts[0]["fact_type"] = "nonsense"  # found before anything is embedded
    facts[11]["entities"] = [""]
    facts[12]["text"] = "a\0b"  # before anything is sent
    facts[17]["links"] = [{"kind": "causes", "to_index": 12}]
    facts[18]["links"] = [{"kind": "causes", "to_index": 29}]
    facts[29]["embedding"] = [1, 2]
    told: dict[int, RecallError] = {}

    done = recall.retain_bulk("b", facts, batch_size=10, workers=2, refused=told.__setitem__)

    assert (done.total, done.new, done.known, done.refused) == (30, 24, 0, 6)
    assert sorted(told) == [0, 11, 12, 17, 18, 29]
    assert all(error.position == place for place, error in told.items())
    assert "has no fact type" in told[0].message
    assert "leads to a fact that was refused" in told[17].message
    assert stored(looked) == 24
    embedded = "select count(*) from pgrecall.embedding where bank_id = 'b'"
    assert value(looked, embedded) == 24


@pytest.mark.parametrize(
    ("field", "count"),
    [({"links": [{"kind": "nonsense"}]}, 20), ({"entities": [""]}, 19)],  # found before embedding
)
def test_facts_beside_a_refused_one_are_embedded_once(
    database: str, recall: Recall, field: dict[str, Any], count: int
) -> None:
    texts: list[str] = []

    def embed(given: Sequence[str]) -> list[list[float]]:
        texts.extend(given)
        return toy_embed(given)

    facts: list[Any] = [fact(n) for n in range(20)]
    facts[7] |= field
    with Recall.connect(database, embedder=embed, model="toy") as own:
        own.retain_bulk("b", facts, refused=lambda *_: None)

    assert len(texts) == len(set(texts)) == count


def test_what_all_facts_lack_ends_the_load(recall: Recall) -> None:
    with pytest.raises(BankNotFound):
        recall.retain_bulk("nowhere", ["Ana"], refused=lambda *_: None)
    with pytest.raises(InvalidArgument, match="workers must be at least 1, not 0"):
        recall.retain_bulk("b", ["Ana"], workers=0)
    with pytest.raises(InvalidArgument, match="batch_size must be at least 1, not 0"):
        recall.retain_bulk("b", ["Ana"], batch_size=0)
    with pytest.raises(InvalidArgument, match='link must be "now" or "deferred", not "soon"'):
        recall.retain_bulk("b", ["Ana"], link="soon")


def test_a_connection_of_the_caller_cannot_be_multiplied(looked: Connection) -> None:
    with pytest.raises(InvalidArgument, match=r"Recall\.connect") as caught:
        Recall(looked, embedder=None).retain_bulk("b", ["Ana"])

    assert "opens its own connections" in caught.value.message


# Going on


def test_a_load_that_broke_off_goes_on(database: str, recall: Recall, looked: Connection) -> None:
    facts = [fact(n) for n in range(50)]

    def broken() -> Iterator[dict[str, Any]]:
        yield from facts[:35]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        recall.retain_bulk("b", broken(), batch_size=5, workers=2)
    before = stored(looked)
    found = recall.recall("b", facts[0]["text"], top_k=1)

    embedded: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        embedded.extend(texts)
        return toy_embed(texts)

    with Recall.connect(database, embedder=embed, model="toy") as again:
        done = again.retain_bulk("b", facts, batch_size=5, workers=2)

    assert 20 <= before <= 35
    assert found[0].text == facts[0]["text"]  # what is stored is found meanwhile
    assert (done.new, done.known, done.linked) == (50 - before, before, 50)
    assert len(embedded) == 50 - before
    assert stored(looked) == 50


def test_links_and_indexes_can_wait(recall: Recall, looked: Connection) -> None:
    done = recall.retain_bulk("b", map(fact, range(20)), link="deferred")
    assert (done.linked, recall.pending_links("b")) == (0, 20)

    done = recall.retain_bulk("b", [])

    assert (done.linked, recall.pending_links("b")) == (20, 0)


def indexes(connection: Connection) -> int:
    return int(
        value(connection, "select count(*) from pg_class where relname like 'embedding_hnsw_%%'")
    )


def test_the_vector_index_is_built_before_the_links(recall: Recall, looked: Connection) -> None:
    recall.configure_bank("b", {"hnsw_threshold": 50})
    told: list[str] = []

    done = recall.retain_bulk(
        "b", map(fact, range(80)), batch_size=20, progress=lambda what, _: told.append(what)
    )

    assert (done.indexed, done.linked, indexes(looked)) == (1, 80, 1)
    assert told.index("index") < told.index("link")
    assert recall.index_plan("b") == []


def test_a_load_waits_for_the_index_that_another_one_builds(
    database: str, recall: Recall, looked: Connection
) -> None:
    recall.configure_bank("b", {"hnsw_threshold": 50})
    told: dict[str, list[str]] = {"one": [], "two": []}
    done: dict[str, Any] = {}

    def load(name: str) -> None:
        given = [fact(n, source_id=name) for n in range(80)]
        with Recall.connect(database, embedder=toy_embed, model="toy") as own:
            done[name] = own.retain_bulk(
                "b", given, workers=1, progress=lambda what, _: told[name].append(what)
            )

    asked = "select count(*) from pg_stat_activity where query ~ %s and state = %s"
    threads = {name: threading.Thread(target=load, args=[name]) for name in told}
    with psycopg.connect(database) as blocking:
        blocking.execute("set transaction isolation level repeatable read")
        blocking.execute("select 1")  # a build waits for this snapshot
        threads["one"].start()
        while not value(looked, asked, "^create index concurrently", "active"):
            assert threads["one"].is_alive()
        threads["two"].start()
        while not value(looked, asked, r"pgrecall\.index_builds\(\)", "idle"):
            assert threads["two"].is_alive()
        assert "link" not in told["one"] + told["two"]
    for thread in threads.values():
        thread.join()

    assert [done[name].indexed for name in threads] == [1, 0]
    assert sum(one.linked for one in done.values()) == 160
    assert recall.pending_links("b") == 0


def test_a_build_that_fails_each_time_ends_the_load(recall: Recall, looked: Connection) -> None:
    recall.configure_bank("b", {"hnsw_threshold": 50})
    recall.retain_bulk("b", map(fact, range(80)), link="deferred")
    [step] = recall.index_plan("b")
    name = sql.Identifier("pgrecall_internal", step.index_name)
    looked.execute(sql.SQL("create view {} as select 1").format(name))

    with pytest.raises(psycopg.errors.DuplicateTable, match=step.index_name):
        recall.retain_bulk("b", [])

    looked.execute(sql.SQL("drop view {}").format(name))
    assert recall.retain_bulk("b", []).linked == 80


def test_a_load_goes_on_where_another_session_drops_an_index_first(
    database: str, recall: Recall, looked: Connection
) -> None:
    recall.configure_bank("b", {"hnsw_threshold": 50})
    recall.retain_bulk("b", map(fact, range(80)))
    recall.configure_bank("b", {"hnsw_threshold": 10_000})
    [step] = recall.index_plan("b")
    wait = (
        "select count(*) from pg_stat_activity where query ~ '^drop' and wait_event_type = 'Lock'"
    )
    with psycopg.connect(database) as other, ThreadPoolExecutor(1) as pool:
        index = sql.Identifier("pgrecall_internal", str(step.index_name))
        other.execute(sql.SQL("alter index {} rename to gone").format(index))
        done = pool.submit(recall.retain_bulk, "b", [fact(80)])
        while not value(looked, wait):
            assert not done.done()
        other.commit()

        assert done.result().linked == 1
    assert "drop index" in step.statement


def test_who_does_not_own_the_tables_is_told_what_is_due(
    database: str, recall: Recall, looked: Connection
) -> None:
    recall.configure_bank("b", {"hnsw_threshold": 50})
    looked.execute("select pgrecall.create_roles()")
    looked.execute("create role loader login in role pgrecall_writer")
    try:
        dsn = psycopg.conninfo.make_conninfo(database, user="loader")
        with Recall.connect(dsn, embedder=toy_embed, model="toy") as writer:
            done = writer.retain_bulk("b", map(fact, range(80)))

        assert (done.new, done.indexed, done.linked, indexes(looked)) == (80, 0, 80, 0)
        assert "create index concurrently" in done.due[0]
        assert recall.pending_links("b") == 0
    finally:
        looked.execute("drop role loader")


# Other clients


def test_the_async_client_loads_likewise(database: str) -> None:
    async def body() -> tuple[Any, ...]:
        async with await AsyncRecall.connect(database, embedder=toy_embed, model="toy") as recall:
            await recall.create_bank("b")
            facts: list[Any] = [fact(n) for n in range(40)]
            facts[21]["links"] = [{"kind": "caused_by", "to_index": 2}]
            facts[33]["confidence"] = 7
            with pytest.raises(InvalidFact):
                await recall.retain_bulk("b", facts, batch_size=5, workers=3)
            told: list[int] = []
            done = await recall.retain_bulk(
                "b", facts, batch_size=5, workers=3, refused=lambda place, _: told.append(place)
            )
            return done.total, done.refused, done.new + done.known, told

    assert asyncio.run(body()) == (40, 1, 39, [33])


def test_a_pool_lends_the_connections(database: str) -> None:
    with Recall.connect(database, embedder=toy_embed, model="toy", pool_size=2) as recall:
        recall.create_bank("b", settings={"hnsw_threshold": 10})
        done = recall.retain_bulk("b", map(fact, range(30)), batch_size=5)

    assert (done.new, done.indexed, done.linked) == (30, 1, 30)


def test_a_failing_embedder_leaves_facts_to_be_embedded_later(
    database: str, recall: Recall
) -> None:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        raise OSError("no model")

    with Recall.connect(database, embedder=embed, model="toy") as failing:
        done = failing.retain_bulk("b", map(fact, range(10)))
        with pytest.raises(OSError, match="no model"):
            failing.retain_bulk("b", map(fact, range(10, 20)), strict=True)

    assert (done.new, done.unembedded) == (10, 10)
    assert recall.embed_pending("b") == 10


# The command


def jsonl(path: Path, given: Sequence[object]) -> str:
    path.write_text(
        "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in given)
    )
    return str(path)


def test_the_command_loads_a_file(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = jsonl(tmp_path / "facts.jsonl", [fact(n) for n in range(12)])
    command = ["retain", file, "--bank", "b", "--create", "--bulk", "--no-embed", "--dsn", database]

    assert main([*command, "--workers", "2"]) == 0
    assert capsys.readouterr().out == 'retained 12 facts in bank "b"\n'
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "total": 12,
        "new": 0,
        "known": 12,
        "refused": 0,
        "unembedded": 12,
        "linked": 0,
        "indexed": 0,
        "due": [],
    }


def test_the_command_says_which_lines_are_refused(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [fact(0), "", "{not json}", fact(1, confidence=7), fact(2), "[]", fact(3, text="")]
    file = jsonl(tmp_path / "facts.jsonl", lines)

    code = main(
        ["retain", file, "--bank", "b", "--create", "--bulk", "--no-embed", "--dsn", database]
    )

    out, err = capsys.readouterr()
    assert code == 1
    assert out == 'retained 2 facts in bank "b"\n'
    told = err.splitlines()
    for place, problem in (
        (3, "not JSON at column 2"),
        (4, "expected a number from 0 to 1, not 7"),
        (6, "not an object"),
        (7, "it is empty"),
    ):
        assert any(f"line {place}: " in line and problem in line for line in told), err
    assert "4 of 6 lines were refused" in err


def test_the_command_reads_a_pipe_as_it_comes(database: str) -> None:
    command = [sys.executable, "-m", "pgrecall.command", "retain", "-", "--bank", "b", "--create"]
    with (
        subprocess.Popen(
            [*command, "--bulk", "--no-embed", "--json", "--dsn", database],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process,
        psycopg.connect(database, autocommit=True) as looked,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        for n in range(5000):
            process.stdin.write(json.dumps(fact(n)) + "\n")
        process.stdin.flush()
        while stored(looked) < 1000:  # the end of the input is not waited for
            assert process.poll() is None
        process.stdin.close()
        done = json.loads(process.stdout.read())

    assert (done["total"], done["new"], done["linked"]) == (5000, 5000, 5000)


def heed_interrupts() -> None:
    """Undo what a shell does to its background jobs: they ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.skipif(os.name == "nt", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_command_that_is_killed_goes_on_when_it_is_run_again(
    database: str, tmp_path: Path, number: signal.Signals
) -> None:
    file = jsonl(tmp_path / "facts.jsonl", [fact(n) for n in range(8000)])
    command = [sys.executable, "-m", "pgrecall.command", "retain", file, "--bank", "b", "--create"]
    command += ["--bulk", "--no-embed", "--json", "--dsn", database]
    with psycopg.connect(database, autocommit=True) as looked:
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts
        ) as process:
            while stored(looked) < 2000:
                assert process.poll() is None
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
        active = "select count(*) from pg_stat_activity where application_name like 'pgrecall%'"
        while value(looked, active):
            pass
        before = stored(looked)
        again = subprocess.run(command, capture_output=True, text=True, check=True)
        done = json.loads(again.stdout)

        assert process.returncode not in (0, None)
        assert number is signal.SIGKILL or "interrupted" in said
        assert 2000 <= before < 8000
        assert (done["known"], done["new"]) == (before, 8000 - before)
        assert (done["linked"], stored(looked)) == (8000, 8000)


def test_workers_are_for_a_bulk_load(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = jsonl(tmp_path / "facts.jsonl", [fact(0)])

    code = main(["retain", file, "--bank", "b", "--create", "--workers", "2", "--dsn", database])

    assert code == 1
    assert "--workers is for a bulk load" in capsys.readouterr().err
