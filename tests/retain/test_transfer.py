"""Copies of banks, and embeddings of what was stored without: nothing is lost, nothing mixed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from pgrecall import BankExists, InvalidArgument, ModelMismatch, Recall
from servers import kept_fixture
from sqlcalls import (
    FULL,
    Connection,
    call,
    called,
    column,
    contents,
    create,
    fill,
    refused,
    retain,
    rows,
    similar,
    value,
)
from toys import toy_embed

LOCKS = "pgrecall_internal.name_lock"  # its rows are only locked, and belong to no copy
LOG = "pgrecall.recall_log"  # of what was asked, not of what is known
# Of tables that another database need not have; the memories of their rows are copied.
ATTACHED = {"pgrecall.attachment", "pgrecall.attached_row", "pgrecall.attached_change"}


def whole(connection: Connection, bank: str) -> dict[str, list[str]]:
    """Return every row of a bank in every table, without its name and the key of its fence."""
    key = value(connection, "select fence_key from pgrecall.bank where bank_id = %s", bank)
    return {
        table: sorted(row.replace(f"({bank},", "(,").replace(str(key), "") for row in found)
        for table, found in contents(connection, f"bank_id = '{bank}'").items()
        if table not in (LOCKS, LOG)
    }


def exported(connection: Connection, bank: str, size: int = 1000) -> Iterator[dict[str, Any]]:
    after = None
    while page := column(
        connection, "select pgrecall.exported_rows(%s, %s, %s)", bank, json.dumps(after), size
    ):
        yield from page
        after = page[-1]


def imported(connection: Connection, bank: str, lines: list[dict[str, Any]]) -> int:
    return int(value(connection, "select pgrecall.import_rows(%s, %s)", bank, json.dumps(lines)))


@kept_fixture
def bank(connection: Connection) -> None:
    """Bank b, with a row in every table and something in nearly every column."""
    connection.execute("select setseed(0.5)")
    fill(connection, "b")
    settings = {"rrf_k": 20, "replace": "key", "single_relations": ["leads"], "bm25_k1": 1.3}
    call(connection, "configure_bank", bank="b", settings=settings)
    times: list[Any] = ["2026-03-05", ["2026-03-05T01:02:03.000004Z", None], [None, "0999-01-01"]]
    extra = [
        {
            "text": f'said "{n}", of ü\n\\ 🚀',
            "occurred": occurred,
            "tags": ["a,b", '"c"'],
            "metadata": {"n": n, "deep": {"x": [None, 1.5, "é"]}},
            "expires_at": "2999-01-01",
            "confidence": 0.1,
            "embedding": [0.1 * (n + 1), 1 / 3],
            "context": "somewhere",
            "source_id": "s",
        }
        for n, occurred in enumerate(times)
    ]
    retain(connection, extra, model="m")
    retain(connection, [{"text": "not linked", "fact_key": "k"}], link="deferred")
    retain(connection, [{"text": "in its place", "fact_key": "k"}], replace="key")
    call(connection, "reembed_start", bank="b", model="next", dimensions=3)
    scale = {"low_cosine": 0.3, "high_cosine": 0.6}
    call(connection, "calibrate_bank", bank="b", calibration={"mean": [0.5, 0.25], **scale})
    call(connection, "calibrate_bank", bank="b", calibration={"model": "next", **scale})
    call(connection, "refresh_statistics", bank="b", is_full=True)
    call(connection, "snapshot_vocabulary", bank="b")


def test_every_table_of_a_bank_is_in_the_list(bank: Connection) -> None:
    listed = set(column(bank, "select of_table from pgrecall_internal._bank_tables()"))

    held = {table: found for table, found in whole(bank, "b").items() if found}

    assert listed == held.keys() == contents(bank).keys() - ATTACHED - {LOCKS, LOG}
    keys = rows(
        bank,
        "select t.of_table, '{bank_id}' || t.keys, array(select a.attname::text"
        " from pg_index i cross join unnest(i.indkey) with ordinality as k(n, place)"
        " join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.n"
        " where i.indrelid = t.of_table::regclass and i.indisprimary order by k.place)"
        " from pgrecall_internal._bank_tables() t",
    )
    assert all(given == primary for _, given, primary in keys), keys


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_an_export_and_import_lose_nothing(bank: Connection, size: int) -> None:
    before = whole(bank, "b")

    lines = json.loads(json.dumps(list(exported(bank, "b", size))))
    for start in range(0, len(lines), size):
        imported(bank, "c", lines[start : start + size])

    assert len(lines) == len({json.dumps(line) for line in lines})
    assert whole(bank, "c") == before
    assert whole(bank, "b") == before


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_an_export_of_one_state_says_how_many_rows_it_has(database: str, level: str) -> None:
    with psycopg.connect(database) as connection:
        create(connection)
        for text in ("Ana left.", "Ana came back."):
            retain(connection, [{"text": text, "fact_key": "ana"}], replace="key")
        connection.commit()
        connection.execute(f"set transaction isolation level {level}".encode())

        lines = list(exported(connection, "b", 3))

    assert "superseded" in {line["table"] for line in lines}
    told = {line["table"]: line["rows"] for line in lines if "rows" in line}
    assert told == ({} if level == "read committed" else {"bank": len(lines)})


def test_a_copy_is_behind_a_fence_of_its_own(bank: Connection) -> None:
    lines = list(exported(bank, "b"))

    imported(bank, "c", lines)
    call(bank, "clone_bank", bank="b", new_bank="d")

    keys = column(bank, "select fence_key::text from pgrecall.bank")
    assert len(set(keys)) == 3
    assert not any(key in json.dumps(lines) for key in keys)


def test_another_database_gives_the_same(bank: Connection, database: str) -> None:
    lines = list(exported(bank, "b"))
    before = whole(bank, "b")

    with psycopg.connect(database) as other:
        imported(other, "b", lines)
        after = whole(other, "b")
        (added,) = retain(other, ["something new"])
        ids = column(
            other,
            "select memory_id from pgrecall.memory union all select entity_id from pgrecall.entity"
            " union all select message_id from pgrecall.message"
            " union all select relation_id from pgrecall.relation",
        )

    assert after == before
    assert added == max(ids)


def test_settings_of_the_session_change_nothing(bank: Connection) -> None:
    lines = list(exported(bank, "b"))

    bank.execute(
        "set local extra_float_digits = 0; set local timezone = 'Pacific/Auckland';"
        " set local datestyle = 'German'"
    )

    assert list(exported(bank, "b")) == lines


def test_ids_of_corrections_and_quarantines_are_not_given_again(connection: Connection) -> None:
    create(connection)
    memory_id, _ = retain(connection, ["Said", {"text": "Else", "source_id": "b"}])
    far = value(connection, "select nextval('pgrecall.id_seq')") + 99
    copied = column(connection, "select pgrecall.exported_rows('b')")
    for row in copied:
        if row["table"] == "bank":
            row["row"]["quarantined"] = {"a": far + 1}
        elif row["table"] == "memory" and row["row"]["memory_id"] == memory_id:
            row["row"]["corrections"] = [{"correction_id": far}, {"correction_id": 1}]

    value(connection, "select pgrecall.import_rows('copy', %s)", json.dumps(copied))

    assert value(connection, "select nextval('pgrecall.id_seq')") == far + 2


def test_who_may_use_the_sequence_moves_it_past_imported_ids(connection: Connection) -> None:
    create(connection)
    connection.execute("select pgrecall.create_roles('t'); set local role t_writer")
    far = value(connection, "select nextval('pgrecall.id_seq')") + 99

    imported(connection, "b", [{"table": "entity", "row": {"entity_id": far, "name": "Ana"}}])

    assert value(connection, "select nextval('pgrecall.id_seq')") == far + 1


def test_an_import_goes_on_where_it_broke_off(bank: Connection) -> None:
    lines = list(exported(bank, "b"))
    imported(bank, "c", lines[:7])

    again = imported(bank, "c", lines)

    assert again == len(lines) - 7
    assert imported(bank, "c", lines) == 0
    assert whole(bank, "c") == whole(bank, "b")


def test_an_import_does_not_mix_two_banks(bank: Connection) -> None:
    lines = list(exported(bank, "b"))
    create(bank, "c")
    changed = json.loads(json.dumps(lines).replace("Ana leads Atlas", "Ana leads Borealis"))
    imported(bank, "d", lines)

    other = 'bank "c" holds another row of table bank already'
    with refused(bank, "RC002", other, "does not exist yet"):
        imported(bank, "c", lines)
    memory = next(line["row"] for line in lines if line["table"] == "memory")
    key = json.dumps({"memory_id": memory["memory_id"]})
    other = f'bank "d" holds another row of table memory already: {key}'
    with refused(bank, "RC002", other, "does not exist yet"):
        imported(bank, "d", changed)
    with refused(bank, "RC001", 'bank "e" does not exist', "create_bank"):
        imported(bank, "e", lines[1:])


def test_a_row_that_cannot_be_is_refused_whole(bank: Connection) -> None:
    lines = list(exported(bank, "b"))
    last = {"table": "session", "row": {"session_id": "x", "started_at": "soon"}}

    problem = (
        'rows[1]: unusable row: invalid input syntax for type timestamp with time zone: "soon"'
    )
    with refused(bank, "RC003", problem, "in their order and unchanged"):
        imported(bank, "c", [lines[0], last])

    assert value(bank, "select count(*) from pgrecall.bank") == 1


def test_pages_are_read_by_index(bank: Connection) -> None:
    retain(bank, [f"boat {n}" for n in range(500)], "b", link="deferred")
    bank.execute("analyze pgrecall.memory")
    page = [line for line in exported(bank, "b") if line["table"] == "memory"][400]
    scans = (
        "select pg_stat_get_xact_numscans('pgrecall.memory'::regclass),"
        " pg_stat_get_xact_tuples_returned('pgrecall.memory_pkey'::regclass)"
    )
    ((seq, read),) = rows(bank, scans)

    column(bank, "select pgrecall.exported_rows('b', %s, 10)", json.dumps(page))

    ((seq_after, read_after),) = rows(bank, scans)
    assert seq_after == seq
    assert read_after - read < 100


# Cloning


def test_a_clone_is_the_same_bank_under_another_name(bank: Connection) -> None:
    before = whole(bank, "b")

    copied = value(bank, "select pgrecall.clone_bank('b', 'c')")

    assert copied == value(bank, "select count(*) from pgrecall.memory where bank_id = 'b'")
    assert whole(bank, "c") == before
    query = "Annie atlas.lead late"
    found, cloned = (
        [
            (row["memory_id"], row["score"])
            for row in called(bank, "hybrid_recall", bank=name, query=query, embedding=[1, 0])
        ]
        for name in "bc"
    )
    assert found
    assert found == cloned


def test_a_clone_is_independent(bank: Connection) -> None:
    before = whole(bank, "b")
    call(bank, "clone_bank", bank="b", new_bank="c")
    retain(bank, FULL, "c", model="m")
    value(bank, "select pgrecall.forget_where('c', 'confidence >= 0')")
    call(bank, "drop_bank", bank="c")

    assert whole(bank, "b") == before


# Embeddings of what was stored without


def pending(connection: Connection, **arguments: Any) -> list[tuple[int, str]]:
    return [
        (row.memory_id, row.text)
        for row in call(connection, "embed_pending", bank="b", **arguments)
    ]


def store(connection: Connection, *embeddings: tuple[int, object], model: str = "m") -> int:
    given = [{"memory_id": memory, "embedding": vector} for memory, vector in embeddings]
    return int(
        value(connection, "select pgrecall.embed_store('b', %s, %s)", json.dumps(given), model)
    )


def test_what_has_no_embedding_is_listed_until_it_has(connection: Connection) -> None:
    create(connection)
    with_one, *without = retain(
        connection, [{"text": "a", "embedding": [1, 0]}, "b", "c", "d"], model="m"
    )

    assert pending(connection) == list(zip(without, "bcd", strict=True))
    assert pending(connection, from_id=without[1], batch_size=1) == [(without[1], "c")]
    assert store(connection, (without[0], [0.9, 0.1]), (without[1], "[0,1]"), (0, [1, 1])) == 2
    assert pending(connection) == [(without[2], "d")]
    assert store(connection, (without[0], [0.5, 0.5]), (without[2], [0, -1])) == 1
    assert pending(connection) == []
    vectors = "select embedding::text from pgrecall.embedding where memory_id = %s"
    assert value(connection, vectors, without[0]) == "[0.89990234,0.099975586]"
    assert similar(connection, without[0]) == [with_one]


def test_the_first_embedding_pins_the_model(connection: Connection) -> None:
    create(connection)
    first, second = retain(connection, ["a", "b"])

    store(connection, (first, [1, 0, 0]))

    models = call(connection, "bank_models", bank="b")
    assert [(row.embedding_model, row.embedding_dimensions) for row in models] == [("m", 3)]
    with refused(connection, "RC005", 'bank "b" is embedded with model "m", not "n"', '"m"'):
        store(connection, (second, [1, 0, 0]), model="n")
    wrong = "embeddings[0].embedding: expected 3 dimensions, not 2"
    with refused(connection, "RC004", wrong, "same model"):
        store(connection, (second, [1, 0]))


# From Python


@pytest.fixture
def recall(connection: Connection) -> Recall:
    return Recall(connection, embedder=toy_embed, model="toy")


def test_an_export_is_imported_line_by_line(bank: Connection, recall: Recall) -> None:
    seen: list[int] = []

    lines = list(recall.export("b", batch_size=4))
    stored = recall.import_rows("c", lines, batch_size=5, progress=seen.append)

    assert all(json.loads(line)["table"] and "\n" not in line for line in lines)
    assert stored == len(lines) == sum(seen)
    assert recall.import_rows("c", map(json.loads, lines)) == 0
    assert whole(bank, "c") == whole(bank, "b")
    assert recall.clone_bank("b", "d") == 7
    with pytest.raises(BankExists), bank.transaction():
        recall.clone_bank("b", "d")


def test_a_number_is_not_rounded_on_its_way(connection: Connection, recall: Recall) -> None:
    create(connection)
    number = "0.12345678901234567890123456789"
    fact = f'[{{"text": "a", "metadata": {{"n": {number}}}}}]'
    connection.execute("select pgrecall.retain('b', %s::jsonb)", [fact])

    recall.import_rows("c", recall.export("b"))

    held = "select metadata ->> 'n' from pgrecall.memory where bank_id = 'c'"
    assert value(connection, held) == number


def test_what_was_retained_in_sql_is_embedded(connection: Connection, recall: Recall) -> None:
    create(connection)
    retain(connection, [f"boat {n}" for n in range(7)])
    seen: list[int] = []

    assert recall.embed_pending("b", batch_size=3, progress=seen.append) == 7
    assert seen == [3, 3, 1]
    assert recall.embed_pending("b") == 0
    assert "semantic" in recall.recall("b", "boat 3")[0].arms
    retain(connection, ["late"])
    with pytest.raises(ModelMismatch), connection.transaction():
        Recall(connection, embedder=toy_embed, model="other").embed_pending("b")
    with pytest.raises(InvalidArgument, match="the client has no embedder"):
        Recall(connection, embedder=None).embed_pending("b")
