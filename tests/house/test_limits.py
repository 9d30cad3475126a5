"""Ids, times and clocks at their ends, through every route."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone

import pytest

from pgrecall import InvalidFact, Recall
from pgrecall.asking.context import make_context
from sqlcalls import Connection, value

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
    value(connection, "select setval('pgrecall.id_seq', %s)", first - 1)

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
