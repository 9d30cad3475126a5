"""The commands that look after vectors: index, reembed, and what doctor says of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from rich.console import Console

from failover import until
from pgrecall import IndexStep, Recall, SentenceTransformerEmbedder, wording
from pgrecall.command import indexes, main, reembed, render
from pgrecall.doctor import queries
from sqlcalls import Connection, column, create, retain, similar, value, waiting
from toys import save_embedder

Run = Callable[..., tuple[int, str, str]]
SMALL = '{"hnsw_threshold": 2, "similarity_floor": -1}'
VALID = (
    "select c.relname from pg_index x join pg_class c on c.oid = x.indexrelid"
    " where c.relname like 'embedding\\_hnsw%' and x.indisvalid"
)
INVALID = VALID.replace("x.indisvalid", "not x.indisvalid")
DEADLINE_S = 30


@pytest.fixture
def run(database: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str, dsn: str = database) -> tuple[int, str, str]:
        code = main([*arguments, "--dsn", dsn])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def bank(database: str) -> Iterator[Connection]:
    """A bank with as many vectors as want an index."""
    with psycopg.connect(database, autocommit=True) as connection:
        create(connection)
        connection.execute("select pgrecall.configure_bank('b', %s)", [SMALL])
        for n in range(4):
            retain(connection, [{"text": f"fact {n}", "embedding": [1, n]}])
        yield connection


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    directory = tmp_path_factory.mktemp("models")
    return (
        str(save_embedder(directory / "old-model", seed=7)),
        str(save_embedder(directory / "new-model", seed=8)),
    )


def findings(run: Run, about: str) -> list[tuple[str, str]]:
    """What doctor finds amiss with something, and its advice."""
    return [
        (finding["found"], finding["advice"])
        for finding in json.loads(run("doctor", "--json")[1])
        if finding["about"] == about and finding["status"] != "good"
    ]


def nearest(connection: Connection) -> list[str]:
    return column(
        connection,
        "select m.text from pgrecall.semantic_arm('b', '[1,0]') a join pgrecall.memory m"
        " on m.bank_id = 'b' and m.memory_id = a.memory_id order by a.rank",
    )


FACTS = ["fact 0", "fact 1", "fact 2", "fact 3"]


# index


def test_indexes_that_are_due_are_shown_and_built(run: Run, bank: Connection) -> None:
    code, shown, _ = run("index")
    assert (code, column(bank, VALID)) == (0, [])
    assert "4 vectors, hnsw_threshold is 2" in shown
    assert "--apply" in shown

    code, applied, _ = run("index", "b", "--apply")

    assert (code, len(column(bank, VALID))) == (0, 1)
    assert "1 of 1 statements were run" in applied
    assert nearest(bank) == FACTS
    assert run("index")[:2] == (0, "no vector index is due\n")


def test_a_plan_is_json_for_machines(run: Run, bank: Connection) -> None:
    (step,) = json.loads(run("index", "--json")[1])

    assert (step["bank_id"], step["fact_type"], step["action"]) == ("b", None, "create")
    assert step["statement"].startswith("create index concurrently embedding_hnsw_")


def test_a_bank_that_is_gone_loses_its_indexes(run: Run, bank: Connection) -> None:
    run("index", "--apply")
    bank.execute("select pgrecall.drop_bank('b')")
    assert "the bank is gone" in run("index")[1]
    assert findings(run, "a dropped bank") == [
        (
            "1 statements for its vector indexes are due: the bank is gone",
            "Run: pgrecall index --apply",
        )
    ]

    assert run("index", "--apply")[0] == 0

    assert column(bank, VALID) == []


def test_a_bank_that_there_is_not_is_an_error(run: Run, bank: Connection) -> None:
    code, _, err = run("index", "nowhere")

    assert code == 1
    assert err.startswith('error: bank "nowhere" does not exist\n')


@pytest.mark.parametrize("how", ["cancelled", "timed out"])
def test_an_index_left_half_built_is_built_anew(
    run: Run, database: str, bank: Connection, how: str
) -> None:
    # An open transaction that has written keeps a concurrent build waiting.
    with (
        psycopg.connect(database) as writer,
        psycopg.connect(database, autocommit=True) as builder,
        ThreadPoolExecutor(1) as pool,
    ):
        retain(writer, [{"text": "uncommitted", "embedding": [1, 9]}])
        if how == "timed out":
            builder.execute("set statement_timeout = '300ms'")
        statement = value(bank, "select statement from pgrecall.index_plan('b')")
        building = pool.submit(builder.execute, statement)
        if how == "cancelled":
            waiting(bank, builder.info.backend_pid)
            bank.execute("select pg_cancel_backend(%s)", [builder.info.backend_pid])
        with pytest.raises(psycopg.errors.QueryCanceled):
            building.result(DEADLINE_S)
        writer.rollback()
    assert len(column(bank, INVALID)) == 1
    assert nearest(bank) == FACTS
    assert findings(run, 'bank "b"') == [
        (
            "2 statements for its vector indexes are due: a build was interrupted",
            "Run: pgrecall index --apply",
        )
    ]

    code, out, _ = run("index", "--apply")

    assert code == 0
    assert "2 of 2 statements were run" in out
    assert (len(column(bank, VALID)), column(bank, INVALID)) == (1, [])
    assert nearest(bank) == FACTS
    assert findings(run, 'bank "b"') == []


def test_of_two_that_build_at_once_both_end_well(
    run: Run, database: str, bank: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = [Recall(bank, embedder=None).index_plan("b")]
    plan = Recall.index_plan
    monkeypatch.setattr(Recall, "index_plan", lambda *given: stale.pop() if stale else plan(*given))
    both_wait = (
        "select count(*) = 2 from pg_stat_activity"
        " where query like 'create index concurrently%%' and wait_event_type = 'Lock'"
    )
    with (
        psycopg.connect(database) as writer,
        psycopg.connect(database, autocommit=True) as builder,
        ThreadPoolExecutor(2) as pool,
    ):
        retain(writer, [{"text": "uncommitted", "embedding": [1, 9]}])
        building = pool.submit(builder.execute, stale[0][0].statement.encode())
        waiting(bank, builder.info.backend_pid)
        applying = pool.submit(indexes.apply, database, Recall(bank), "b", Console(quiet=True))
        until(lambda: value(bank, both_wait))
        writer.rollback()
        with suppress(psycopg.errors.DeadlockDetected):
            building.result(DEADLINE_S)
        applying.result(DEADLINE_S)

    assert (len(column(bank, VALID)), column(bank, INVALID)) == (1, [])


def test_a_build_that_fails_each_time_is_an_error(
    run: Run, bank: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    [step] = Recall(bank, embedder=None).index_plan("b")
    plans = [[replace(step, estimated_bytes=n)] for n in range(4)]  # others write
    bank.execute(step.statement.encode())
    monkeypatch.setattr(Recall, "index_plan", lambda *given: plans.pop())
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)

    code, _, err = run("index", "b", "--apply")

    assert code == 1
    assert "already exists" in err
    assert (len(plans), len(pauses)) == (1, 1)


def test_a_bank_whose_vectors_fit_no_index_keeps_no_other_from_its_own(
    run: Run, bank: Connection
) -> None:
    # Whoever may write to the tables of one bank may say so.
    create(bank, "a")
    bank.execute("select pgrecall.configure_bank('a', %s)", [SMALL])
    retain(bank, [{"text": f"fact {n}", "embedding": [1, n]} for n in range(4)], bank="a")
    bank.execute("update pgrecall.bank set embedding_dimensions = 3 where bank_id = 'a'")

    code, _, err = run("index", "--apply")

    assert code == 1
    assert 'warning: no index of bank "a"' in err
    assert "error: expected 3 dimensions, not 2" in err
    assert len(column(bank, VALID)) == 1
    bank.execute("update pgrecall.bank set embedding_dimensions = null where bank_id = 'a'")
    assert {step["action"] for step in json.loads(run("index", "--json")[1])} <= {"drop"}


def test_who_interrupts_the_command_can_run_it_again(
    run: Run, database: str, bank: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[str, int]] = []
    phases = indexes._phases

    def interrupting(watcher: Connection, worker: int) -> list[tuple[str, int]]:
        shown.extend(phases(watcher, worker))
        if shown:
            raise KeyboardInterrupt
        return []

    monkeypatch.setattr(indexes, "_phases", interrupting)
    with psycopg.connect(database) as writer:
        retain(writer, [{"text": "uncommitted", "embedding": [1, 9]}])
        code, _, err = run("index", "--apply")
        writer.rollback()
    monkeypatch.undo()

    assert code == 1
    assert "error: interrupted; all banks can be used\nhint: Run it again to continue.\n" in err
    assert shown[0][0].startswith("waiting for writers")
    assert nearest(bank) == FACTS
    assert run("index", "--apply")[0] == 0
    assert (len(column(bank, VALID)), column(bank, INVALID)) == (1, [])


@pytest.mark.parametrize("name", ["statement_timeout", "lock_timeout", "transaction_timeout"])
def test_a_limit_for_questions_does_not_stop_a_build(
    run: Run, bank: Connection, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name == "transaction_timeout" and bank.info.server_version < 170000:
        pytest.skip("PostgreSQL 16 has no transaction_timeout")
    bank.execute(
        sql.SQL("alter database {} set {} = '20s'").format(
            sql.Identifier(value(bank, "select current_database()")), sql.Identifier(name)
        )
    )
    limits: list[str] = []
    build = indexes._run

    def note(worker: Connection, *given: Any) -> None:
        limits.append(value(worker, f"show {name}"))
        build(worker, *given)

    monkeypatch.setattr(indexes, "_run", note)
    run("index", "--apply")

    assert limits == ["0"]


def test_the_memory_an_index_needs_is_said(run: Run, bank: Connection) -> None:
    step = IndexStep("b", "world", "create", "", "", "i", 300 * 2**20, 1.0)

    advice = indexes.memory_advice([step], 64 * 2**20)

    assert advice == (
        "The largest index takes about 300 MB, maintenance_work_mem is 64 MB: it is built faster"
        " with PGOPTIONS='-c maintenance_work_mem=300MB'."
    )
    assert indexes.memory_advice([step], 2**30) is None


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 bytes"), (1023, "1,023 bytes"), (1536, "1.5 kB"), (300 * 2**20, "300 MB")],
)
def test_sizes_are_written_for_people(number: int, text: str) -> None:
    assert wording.size(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "under 1 s"), (90, "90 s"), (600, "10 min"), (9000, "2 h")]
)
def test_durations_are_written_for_people(seconds: float, text: str) -> None:
    assert render.duration(seconds) == text


# reembed


@pytest.fixture
def embedded(run: Run, database: str, models: tuple[str, str], tmp_path: Path) -> Connection:
    """A bank made with the old model, large enough for an index."""
    file = tmp_path / "facts.jsonl"
    texts = ["Ana leads Atlas", "Ben leads Borealis", "Maya the tea"]
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    assert run("retain", str(file), "--bank", "b", "--create", "--model", models[0])[0] == 0
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select pgrecall.configure_bank('b', %s)", [SMALL])
    assert run("index", "--apply")[0] == 0
    return connection


def answer(run: Run, model: str) -> tuple[int, str, str]:
    return run("recall", "b", "who leads Atlas", "--model", model, "--top-k", "1")


def test_a_bank_gets_another_model_and_its_indexes(
    run: Run, database: str, embedded: Connection, models: tuple[str, str]
) -> None:
    old, new = models
    code, out, _ = run("reembed", "b", "--model", new)

    assert (code, out) == (
        0,
        'bank "b" is embedded with model "new-model": 3 embeddings of 16 dimensions\n',
    )
    assert "Ana leads Atlas" in answer(run, new)[1]
    assert answer(run, old)[2] == (
        'error: bank "b" is embedded with model "new-model", not "old-model"\n'
        "hint: Name the model of the bank with --model, or pass --no-embed to do without.\n"
    )
    with psycopg.connect(database) as connection:
        assert column(connection, "select distinct model from pgrecall.embedding") == ["new-model"]
        predicates = column(
            connection,
            "select indexdef like '%' || hashtextextended('new-model', 0) || '%' from pg_indexes"
            " where indexname like 'embedding\\_hnsw%'",
        )
    assert predicates == [True]
    assert run("index")[1] == "no vector index is due\n"
    assert run("reembed", "b", "--model", new)[:2] == (0, out)


def test_of_two_that_reembed_at_once_both_end_well(
    run: Run, bank: Connection, models: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check = reembed._check

    def switched_by_another(*given: Any) -> None:
        check(*given)
        bank.execute("select pgrecall.reembed_finish('b')")

    monkeypatch.setattr(reembed, "_check", switched_by_another)
    code, _, err = run("reembed", "b", "--model", models[1])

    assert (code, err.count("error")) == (0, 0)
    assert value(bank, "select embedding_model from pgrecall.bank") == "new-model"
    assert value(bank, "select leftover from pgrecall.reembed_status('b')") == 0


def test_who_interrupts_reembed_is_told_how_to_go_on(
    run: Run, embedded: Connection, models: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = models
    embedded_texts: list[str] = []
    embed = SentenceTransformerEmbedder.embed_documents

    def interrupted(self: SentenceTransformerEmbedder, texts: Any) -> Any:
        if len(embedded_texts) >= 2:
            raise KeyboardInterrupt
        embedded_texts.extend(texts)
        return embed(self, texts)

    monkeypatch.setattr(SentenceTransformerEmbedder, "embed_documents", interrupted)
    code, _, err = run("reembed", "b", "--model", new, "--batch-size", "1")
    monkeypatch.undo()

    assert code == 1
    assert err.endswith(
        'error: interrupted; bank "b" is searched by model "old-model"\n'
        f"hint: Go on with: pgrecall reembed b --model {new}\n"
    )
    assert "Ana leads Atlas" in answer(run, old)[1]
    assert findings(run, 'bank "b"') == [
        (
            'being re-embedded with "new-model": 2 of 3 embeddings to go',
            "Go on with: pgrecall reembed b --model new-model; or give up with:"
            " pgrecall reembed b --cancel",
        )
    ]
    assert run("reembed", "b", "--model", new)[0] == 0
    assert findings(run, 'bank "b"') == []
    assert "Ana leads Atlas" in answer(run, new)[1]


def test_a_reembedding_can_be_given_up(
    run: Run, database: str, embedded: Connection, models: tuple[str, str]
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select pgrecall.reembed_start('b', 'new-model', 16)")

    code, out, _ = run("reembed", "b", "--cancel")

    assert (code, out) == (0, 'bank "b" keeps model "old-model"\n')
    assert "Ana leads Atlas" in answer(run, models[0])[1]
    assert run("reembed", "b", "--cancel")[2].startswith(
        'error: bank "b" is not being re-embedded\n'
    )
    assert run("reembed", "b")[2] == (
        "error: no model was given\nhint: Give it with --model, or cancel with --cancel.\n"
    )


def test_questions_without_text_are_not_lost_unasked(
    run: Run, database: str, models: tuple[str, str]
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        create(connection)
        fact = {"text": "Ana leads Atlas", "embedding": [1], "questions": [{"embedding": [1]}]}
        retain(connection, [fact], model="old")

    code, _, err = run("reembed", "b", "--model", models[1])
    assert code == 1
    assert err.startswith(
        'error: 1 questions of bank "b" were retained without their text and would be lost\n'
        "hint: Add --lossy"
    )

    code, out, _ = run("reembed", "b", "--model", models[1], "--lossy")
    assert (code, out) == (
        0,
        'bank "b" is embedded with model "new-model": 1 embeddings of 16 dimensions\n',
    )


def bad_recall(connection: Connection) -> None:
    """Let searches find half of what is nearest, as those of a bad index would."""
    connection.execute(
        "create or replace function pgrecall.recall_check(bank text, sample integer default 100,"
        " k integer default 20, depth integer default 100, is_next boolean default false)"
        " returns setof pgrecall.recall_checked"
        " language sql as $$ select 'world', 'world by an index', sample, 0.5, 1.0, 2.0 $$"
    )


def test_a_bank_is_not_switched_to_indexes_that_find_too_little(
    run: Run, database: str, embedded: Connection, models: tuple[str, str]
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        bad_recall(connection)

    code, _, err = run("reembed", "b", "--model", models[1])

    assert code == 1
    assert "world: recall 50% (world by an index)\n" in err
    assert err.endswith(
        'error: searches of world in bank "b" would find 50% of what is nearest, less than 90%\n'
        "hint: Raise ef_search, or hnsw_m and hnsw_ef_construction, by configure_bank()"
        " and run it again; or lower --min-recall.\n"
    )
    assert "Ana leads Atlas" in answer(run, models[0])[1]
    assert run("reembed", "b", "--model", models[1], "--min-recall", "0.4")[0] == 0
    assert "Ana leads Atlas" in answer(run, models[1])[1]


# doctor


def test_doctor_names_searches_that_find_too_little(run: Run, bank: Connection) -> None:
    bad_recall(bank)
    assert findings(run, 'bank "b"')[1:] == []  # without an index nothing is checked
    run("index", "--apply")

    assert findings(run, 'bank "b"') == [
        (
            "searches of world find 50% of the nearest",
            """Run: select pgrecall.configure_bank('b', '{"ef_search": 400}');"""
            " or raise hnsw_m and hnsw_ef_construction and run: pgrecall index --apply",
        )
    ]


def test_doctor_names_what_another_model_left_behind(run: Run, bank: Connection) -> None:
    run("index", "--apply")
    bank.execute("select pgrecall.reembed_start('b', 'new', 2)")
    bank.execute(
        "select pgrecall.reembed_store('b', 'new', jsonb_agg(jsonb_build_object("
        "'memory_id', memory_id, 'embedding', '[1,2]'))) from pgrecall.memory"
    )
    run("index", "--apply")
    bank.execute("select pgrecall.reembed_finish('b')")

    assert findings(run, 'bank "b"') == [
        (
            '4 memories still have embeddings of another model than "new"',
            "Call until it returns 0: select pgrecall.reembed_clean('b');",
        ),
        (
            "1 statements for its vector indexes are due: the bank is embedded with model"
            ' "new" now',
            "Run: pgrecall index --apply",
        ),
    ]


def test_doctor_names_tables_that_were_never_analysed(run: Run, bank: Connection) -> None:
    assert findings(run, "statistics") == []
    bank.execute("alter table pgrecall_internal.lexeme set (autovacuum_enabled = off)")
    for n in range(3):
        text = " ".join(f"{n}word{k}" for k in range(9000))
        retain(bank, (f"{text} {k}" for k in range(10)))

    found = findings(run, "statistics")
    bank.execute("analyze pgrecall_internal.lexeme")

    assert found == [
        ("never analysed: pgrecall_internal.lexeme", "Run: analyze pgrecall_internal.lexeme;"),
    ]
    assert findings(run, "statistics") == []


def test_doctor_compares_vector_indexes_with_memory(
    run: Run, bank: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert findings(run, "memory") == []
    run("index", "--apply")
    assert findings(run, "memory") == []
    large = replace(
        queries.vector_index_memory(), sql="select 3221225472::bigint, 268435456::bigint"
    )
    monkeypatch.setattr(queries, "vector_index_memory", lambda: large)

    ((found, advice),) = findings(run, "memory")

    assert found == "vector indexes take 3.0 GB, more than shared_buffers, 256 MB"
    assert advice.startswith("Raise shared_buffers")


# Similar facts


@pytest.mark.parametrize("search", ["full", "binary", "leading"])
def test_what_is_similar_in_a_large_bank_is_asked_of_its_index(
    run: Run, bank: Connection, search: str
) -> None:
    settings = {"vector_search": search, "leading_dimensions": 1}
    bank.execute("select pgrecall.configure_bank('b', %s)", [json.dumps(settings)])
    run("index", "--apply")
    with bank.transaction():
        scans = (
            "select sum(pg_stat_get_xact_numscans(c.oid)) from pg_class c"
            " where c.relname like 'embedding\\_hnsw%'"
        )
        near, far = retain(
            bank,
            [
                {"text": "near", "embedding": [1, 2.1]},
                {"text": "another kind", "fact_type": "event", "embedding": [-1, -2.1]},
            ],
        )
        before = value(bank, scans)
        found = similar(bank, near)
        assert value(bank, scans) > before

    assert sorted(found) == column(
        bank,
        "select memory_id from pgrecall.memory where text in ('fact 1', 'fact 2', 'fact 3')"
        " order by 1",
    )
    assert similar(bank, far) == []
