"""Filters and metadata that mean harm, as adapters pass them on: values and keys are data.

Every adapter writes its filters by adapters/conditions.py, in the notation of pgrecall.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pgrecall import InvalidFilter, Recall
from pgrecall.adapters.conditions import as_condition
from sqlcalls import contents

HOSTILE = [
    "'; drop table pgrecall.memory; --",
    "' or '1'='1",
    "x' or true) --",
    '"; drop schema pgrecall cascade; --',
    "\\'; select pg_sleep(100); --",
    "$$; delete from pgrecall.memory; $$",
    "$sql$ or true $sql$",
    "%s %(bank)s {0} {}",
    "%",
    "_",
    "\\",
    "'",
    '"',
    "''",
    "a.b",
    "a->>'b'",
    "metadata.x",
    "{a,b}",
    "(select 1)",
    "/* comment",
    "-- comment",
    "line\nbreak",
    "tab\tbed",
    "\u202eright to left",
    "ＦＵＬＬ width",
    "é" * 200,
    "null",
    "true",
    "1e999",
    "[]",
    "and",
    "not",
    "is null",
    "pg_catalog.version()",
]


@pytest.fixture
def memory(pgrecall: Recall) -> Recall:
    pgrecall.create_bank("b")
    pgrecall.create_bank("other")
    pgrecall.retain("other", [{"text": "Nobody else's.", "metadata": {"team": "core"}}])
    pgrecall.retain(
        "b",
        [
            {"text": f"Fact {n}.", "metadata": {"value": text, "nested": {text: n}, text: n}}
            for n, text in enumerate(HOSTILE)
            if text not in ("value", "nested")
        ],
    )
    return pgrecall


def found(memory: Recall, given: Any) -> list[str]:
    condition: Any = as_condition(given)
    return sorted(one.text for one in memory.list_memories("b", filter=condition, top_k=200))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_value_is_a_value(memory: Recall, text: str) -> None:
    own = [f"Fact {HOSTILE.index(text)}."]
    others = sorted(f"Fact {n}." for n, one in enumerate(HOSTILE) if one != text)
    before = contents(memory._source)  # type: ignore[arg-type]

    assert found(memory, {"value": text}) == own
    assert found(memory, {"value": {"$in": [text]}}) == own
    assert found(memory, {"value": {"$ne": text}}) == others
    assert found(memory, {"value": {"$nin": [text]}}) == others
    assert [
        hit.text for hit in memory.recall("b", "fact", filter=["=", "metadata.value", text])
    ] == own
    assert contents(memory._source) == before  # type: ignore[arg-type]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_key_is_a_key_or_refused(memory: Recall, text: str) -> None:
    own = [f"Fact {HOSTILE.index(text)}."]
    before = contents(memory._source)  # type: ignore[arg-type]

    try:
        answer = found(memory, {text: HOSTILE.index(text)})
    except InvalidFilter:
        answer = []
    assert answer in (own, [])
    assert contents(memory._source) == before  # type: ignore[arg-type]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_stored_comes_back_as_it_was(memory: Recall, text: str) -> None:
    (one,) = memory.list_memories("b", filter=["=", "metadata.value", text])

    assert one.metadata["value"] == text
    assert json.dumps(one.metadata["nested"]) == json.dumps({text: HOSTILE.index(text)})


@pytest.mark.parametrize("operator", ["$where", "$regex", "$eq; drop", "$or", "$$"])
def test_an_operator_that_there_is_not_is_named(operator: str) -> None:
    with pytest.raises(ValueError, match="unknown operator"):
        as_condition({"value": {operator: "x"}})
