"""Filters as the server understands them: which facts a condition keeps."""

from __future__ import annotations

import json

import pytest

from statements import Connection, column, retain

FACTS: list[dict[str, object]] = [
    {
        "text": "a",
        "fact_type": "event",
        "context": "word Standup",
        "fact_key": "k.a",
        "source_id": "100%",
        "tags": ["x", "y"],
        "metadata": {"team": "core", "n": 10, "flag": True},
        "occurred": "2026-03-05",
        "mentioned_at": "2026-03-05",
        "confidence": 0.7,
    },
    {
        "text": "b",
        "context": "word",
        "tags": ["y"],
        "metadata": {"team": "infra", "n": 9, "none": None},
        "occurred": ["2026-03-06", None],
        "mentioned_at": "2026-03-06T12:00+09:00",
        "confidence": 0.1,
    },
    {"text": "c", "context": "word", "mentioned_at": "2026-03-07", "metadata": {"n": "10"}},
]


@pytest.fixture
def bank(connection: Connection) -> Connection:
    connection.execute("select pgrecall.create_bank('b', 'simple')")
    retain(connection, *FACTS)
    return connection


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        (["=", "text", "a"], "a"),
        (["<>", "text", "a"], "bc"),
        (["<", "text", "b"], "a"),
        (["=", "fact_type", "world"], "bc"),
        (["in", "fact_key", ["k.a", "none"]], "a"),
        (["in", "text", []], ""),
        (["not", ["=", "fact_key", "k.a"]], "bc"),  # what is null is not equal
        (["is null", "occurred"], "c"),
        (["is not null", "source_id"], "a"),
        # stored as real: the same number in decimal must still compare as equal
        (["=", "confidence", 0.7], "a"),
        ([">=", "confidence", 0.7], "ac"),
        (["<=", "confidence", 0.1], "b"),
        (["=", "proof_count", 1], "abc"),
        (["like", "context", "%stand%"], ""),
        (["ilike", "context", "%STAND%"], "a"),
        (["like", "source_id", "100\\%"], "a"),
        (["like", "source_id", "1\\%"], ""),
        (["contains", "tags", ["y"]], "ab"),
        (["contains", "tags", ["x", "y"]], "a"),
        (["contains", "tags", []], "abc"),
        (["overlaps", "tags", ["x", "z"]], "a"),
        (["overlaps", "tags", []], ""),
        (["=", "metadata.team", "core"], "a"),
        (["=", "metadata.n", 10], "a"),
        ([">", "metadata.n", 9.5], "a"),
        (["=", "metadata.n", "10"], "ac"),
        ([">", "metadata.team", 1], ""),
        (["=", "metadata.flag", "true"], "a"),
        (["is null", "metadata.none"], "abc"),
        (["in", "metadata.team", ["core", "infra"]], "ab"),
        (["<", "mentioned_at", "2026-03-06"], "a"),
        ([">=", "mentioned_at", "2026-03-06T03:00Z"], "bc"),
        ([">", "created_at", "2020-01-01"], "abc"),
        (["overlaps", "occurred", ["2026-03-05", "2026-03-06"]], "a"),
        (["overlaps", "occurred", ["2026-03-06", "2026-03-07"]], "b"),
        (["overlaps", "occurred", [None, "2026-03-05"]], ""),
        (["overlaps", "occurred", ["2030-01-01", None]], "b"),
        (["overlaps", "occurred", [None, None]], "ab"),
        (["and", ["=", "text", "a"], ["=", "text", "b"]], ""),
        (["or", ["=", "text", "a"], ["=", "text", "b"]], "ab"),
        (["not", ["or", ["=", "text", "a"], ["not", ["=", "text", "b"]]]], "b"),
        (["and", ["or", ["=", "text", "a"], ["=", "text", "c"]], ["is null", "fact_key"]], "c"),
    ],
    ids=str,
)
@pytest.mark.parametrize("timezone", ["UTC", "Asia/Tokyo"])
def test_a_condition_keeps_what_passes_in_every_time_zone(
    bank: Connection, timezone: str, condition: list[object], kept: str
) -> None:
    bank.execute(f"set local timezone = '{timezone}'")

    found = column(
        bank,
        "select text from pgrecall.lexical_arm('b', 'word', filter => %s)"
        " join pgrecall.memory using (memory_id) order by text",
        json.dumps(condition),
    )

    assert "".join(found) == kept
