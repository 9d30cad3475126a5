"""Ids, times and clocks at their ends, through every route."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest

from pgrecall import InvalidFact, Recall
from pgrecall.context import make_context
from pgrecall.importing import import_rows, read_file
from sqlcalls import Connection, column, value

BEYOND = 2**53 + 1  # what a double cannot hold
FACTS: list[Mapping[str, object]] = [
    {"text": "Ana leads Atlas.", "entities": ["Ana", "Atlas"], "fact_key": "atlas.lead"},
    {"text": "Ana sails.", "entities": ["Ana"], "links": [{"kind": "caused_by", "to_index": 0}]},
]


@pytest.fixture
def memory(pgrecall: Recall) -> Recall:
    pgrecall.create_bank("b")
    return pgrecall


@pytest.mark.parametrize("first", [BEYOND, 2**62 + 1])
def test_ids_beyond_those_of_a_double_stay_exact(
    memory: Recall, connection: Connection, first: int
) -> None:
    # Unlike setval(), this is rolled back.
    connection.execute(f"alter sequence pgrecall.id_seq restart with {first}".encode())

    one, two = memory.retain("b", FACTS)

    assert (one.memory_id, two.memory_id) == (first, first + 1)
    report = memory.recall_report("b", "Why does Ana sail? atlas.lead")
    assert {hit.memory_id for hit in report.hits} == {first, first + 1}
    assert set(make_context(report).citations.values()) == {first, first + 1}
    assert memory.get("b", first).memory_id == first
    for condition in (f"memory_id = {first}", ["=", "memory_id", first]):
        (listed,) = memory.list_memories("b", filter=condition)
        assert listed.memory_id == first
    memory.import_rows("copy", [json.loads(line) for line in memory.export("b")])
    assert {m.memory_id for m in memory.list_memories("copy")} == {first, first + 1}
    (ended,) = memory.supersede("b", first, superseded_by=first + 1)
    assert ended.superseded_by == first + 1
    (restored,) = memory.unsupersede("b", first)
    assert restored.memory_id == first
    assert memory.forget("b", [first, first + 1]) == 2


@pytest.mark.parametrize(
    "occurred",
    [
        "9999-12-31T23:59:59Z",
        ["9999-12-31T23:59:59Z", None],
        ["-infinity", "infinity"],
        ["0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z"],
        ["294276-12-31T00:00:00Z", None],
        "4713-01-01 BC",
    ],
)
def test_times_at_the_ends_are_stored_and_come_back_or_are_refused(
    memory: Recall, occurred: object
) -> None:
    try:
        memory.retain("b", [{"text": "It is so.", "occurred": occurred}])
    except InvalidFact:
        return

    (hit,) = memory.recall("b", "It is so")
    (listed,) = memory.list_memories("b")

    assert hit.occurred == listed.occurred
    assert make_context(memory.recall_report("b", "It is so")).citations
    assert memory.recall("b", "It is so", as_of=None)[0].text == "It is so."


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia"])
def test_a_day_is_the_same_in_every_zone_also_where_clocks_change(
    memory: Recall, connection: Connection, zone: str
) -> None:
    connection.execute("select set_config('timezone', %s, true)", [zone])
    for day in ("2026-03-29", "2026-10-25", "2011-12-30"):
        memory.retain("b", [{"text": f"On {day}.", "occurred": day}])

    days = {m.text: m.occurred for m in memory.list_memories("b")}

    for text, occurred in days.items():
        assert occurred is not None
        start, end = (at and at.astimezone(timezone.utc) for at in occurred)
        assert start is not None
        assert end is not None
        assert f"On {start:%Y-%m-%d}." == text
        assert end - start == timedelta(days=1)
    first = datetime(2026, 3, 29, tzinfo=timezone.utc)
    during = (first, first + timedelta(days=1))
    found = memory.recall("b", "?", during=during, time_mode="filter")
    assert [hit.text for hit in found] == ["On 2026-03-29."]


def test_what_was_said_later_than_now_holds_from_now(memory: Recall) -> None:
    """As where the clock of the server has jumped back."""
    memory.retain("b", [{"text": "Said tomorrow.", "mentioned_at": "2999-01-01"}])

    assert [hit.text for hit in memory.recall("b", "said")] == ["Said tomorrow."]


def test_what_is_written_after_the_clock_jumped_back_takes_the_place_of_what_was_there(
    memory: Recall, connection: Connection
) -> None:
    memory.retain("b", [{"text": "Ana leads Atlas.", "fact_key": "lead", "entities": ["Ana"]}])
    ahead = "update pgrecall.memory set {0} = {0} + interval '1 day'"
    for name in ("created_at", "valid_from"):  # as if it had been stored tomorrow
        connection.execute(ahead.format(name).encode())

    memory.retain("b", [{"text": "Bo leads Atlas.", "fact_key": "lead"}], replace="key")
    (current,) = memory.list_memories("b")
    version = memory.update("b", current.memory_id, text="Bo leads Atlas now.")

    assert [m.text for m in memory.list_memories("b")] == ["Bo leads Atlas now."]
    assert [hit.text for hit in memory.recall("b", "Who leads Atlas? lead")] == [version.text]
    every = memory.list_memories("b", is_ended_too=True)
    assert len(every) == 3
    inverted = "select memory_id from pgrecall.memory where valid_to < valid_from"
    assert column(connection, inverted) == []
    (restored,) = memory.unsupersede("b", current.memory_id)[:1]
    assert restored.text == "Bo leads Atlas."


def test_an_entity_of_100_million_mentions_is_counted_and_found(
    memory: Recall, connection: Connection
) -> None:
    """Statistics and the planner say so many; there are few."""
    many = 100_000_000
    memory.retain("b", [{"text": f"Ana saw boat {n}.", "entities": ["Ana"]} for n in range(30)])
    memory.retain("b", [{"text": "Ana met Zoe in Lisbon.", "entities": ["Ana", "Zoe"]}])
    memory.refresh_statistics("b")
    connection.execute(
        "update pgrecall_internal.statistics set document_count = %s, watermark = watermark", [many]
    )
    ana = value(connection, "select entity_id from pgrecall.entity where name = 'Ana'")
    for statement in (
        "update pgrecall_internal.entity_count set mention_count = {0} where entity_id = {1}",
        "update pgrecall_internal.lexeme set document_count = {0} where lexeme = 'ana'",
        "update pg_class set reltuples = {0}, relpages = {0} / 100 where oid ="
        " 'pgrecall.mention'::regclass or oid = 'pgrecall.memory'::regclass",
    ):
        connection.execute(statement.format(many, ana).encode())

    report = memory.recall_report("b", "Whom did Ana meet? Zoe", top_k=3)
    (mentions,) = column(connection, "select mention_count from pgrecall.list_entities('b', 'Ana')")
    [new] = memory.retain("b", [{"text": "Ana met Zoe again.", "entities": ["Ana", "Zoe"]}])

    assert report.hits[0].text == "Ana met Zoe in Lisbon."
    assert report.degradations == ()
    assert mentions >= 31
    memory.forget("b", [new.memory_id])
    assert (
        value(connection, "select max(mention_count) from pgrecall_internal.entity_count") == many
    )


def test_ids_beyond_those_of_a_double_come_whole_out_of_a_parquet_file(memory: Recall) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    file = io.BytesIO()
    ids = pyarrow.array([BEYOND, None, 2**63 - 1], pyarrow.int64())
    large = pyarrow.array([Decimal(BEYOND), None, Decimal(10**30)], pyarrow.decimal128(38))
    table = pyarrow.table({"text": ["a", "b", "c"], "source_id": ids, "order": ids, "n": large})
    parquet.write_table(table, file)

    import_rows(memory, "b", read_file(io.BytesIO(file.getvalue()), "parquet"))

    found = {m.text: (m.source_id, m.metadata) for m in memory.list_memories("b")}
    assert found == {
        "a": (str(BEYOND), {"order": BEYOND, "n": BEYOND}),
        "b": (None, {}),
        "c": (str(2**63 - 1), {"order": 2**63 - 1, "n": 10**30}),
    }
