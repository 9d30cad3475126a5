"""Filter expressions: what is understood, what is refused, and what the server makes of it."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from pgrecall import InvalidFilter, Recall
from pgrecall.filters import COLUMNS, HINT, MAX_LENGTH, parse_filter


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("confidence > 0.8", [">", "confidence", 0.8]),
        ("0.8 <= confidence", [">=", "confidence", 0.8]),
        ("confidence > -1e-3", [">", "confidence", -0.001]),
        ("memory_id = 9007199254740993", ["=", "memory_id", 9007199254740993]),
        ("TEXT = 'it''s'", ["=", "text", "it's"]),
        ("source_id != 'a'", ["<>", "source_id", "a"]),
        ("metadata->>'team' = 'core'", ["=", "metadata.team", "core"]),
        ("metadata->>'a b.c' = 'x'", ["=", "metadata.a b.c", "x"]),
        ("(metadata->>'n')::numeric > 3", [">", "metadata.n", 3]),
        ("mentioned_at >= date '2026-01-01'", [">=", "mentioned_at", "2026-01-01"]),
        ("mentioned_at >= '2026-01-01'::timestamptz", [">=", "mentioned_at", "2026-01-01"]),
        ("source_id in ('a', 'b')", ["in", "source_id", ["a", "b"]]),
        ("source_id not in ('a')", ["not", ["in", "source_id", ["a"]]]),
        ("context is null", ["is null", "context"]),
        ("occurred is not null", ["is not null", "occurred"]),
        ("text like 'a%'", ["like", "text", "a%"]),
        ("text not ilike 'a%'", ["not", ["ilike", "text", "a%"]]),
        (
            "confidence between 0.1 and 1",
            ["and", [">=", "confidence", 0.1], ["<=", "confidence", 1]],
        ),
        ("tags @> array['a', 'b']", ["contains", "tags", ["a", "b"]]),
        ("tags && array['a']::text[]", ["overlaps", "tags", ["a"]]),
        ("'a' = any(tags)", ["contains", "tags", ["a"]]),
        (
            "occurred && '[2026-01-01,2026-02-01)'",
            ["overlaps", "occurred", ["2026-01-01", "2026-02-01"]],
        ),
        ("occurred && '(,2026-02-01)'", ["overlaps", "occurred", [None, "2026-02-01"]]),
        (
            "occurred && tstzrange('2026-01-01', null)",
            ["overlaps", "occurred", ["2026-01-01", None]],
        ),
        (
            "not (text = 'a' or text = 'b' or text = 'c') and confidence = 1",
            [
                "and",
                ["not", ["or", ["=", "text", "a"], ["=", "text", "b"], ["=", "text", "c"]]],
                ["=", "confidence", 1],
            ],
        ),
    ],
)
def test_reads_an_expression(expression: str, expected: list[object]) -> None:
    assert parse_filter(expression) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "a filter is one condition"),
        ("text = 'a'; drop table pgrecall.memory", "a filter is one condition"),
        ("drop table pgrecall.memory", "not allowed in a filter: DROP TABLE pgrecall.memory"),
        ("select 1", "not allowed in a filter: SELECT 1"),
        ("true", "not allowed in a filter: TRUE"),
        ("1 = 1", "not allowed in a filter: 1"),
        ("bank_id = 'other'", 'unknown column "bank_id" in the filter'),
        ("m.text = 'a'", 'unknown column "m.text" in the filter'),
        ("\"Text\" = 'a'", 'unknown column "Text" in the filter'),
        ("fact_type = text", 'expected a constant to compare "fact_type" with, not text'),
        (
            "text = (select 'a')",
            "expected a constant to compare \"text\" with, not (SELECT 'a')",
        ),
        ("text in (select 'a')", "not allowed in a filter: text IN (SELECT 'a')"),
        ("text ~ 'a'", "not allowed in a filter: text ~ 'a'"),
        ("lower(text) = 'a'", "not allowed in a filter: LOWER(text)"),
        ("pg_sleep(9) is null", "not allowed in a filter: PG_SLEEP(9)"),
        (
            "mentioned_at > now()",
            'expected a constant to compare "mentioned_at" with, not CURRENT_TIMESTAMP',
        ),
        ("source_id = null", 'compare "source_id" with null by: source_id is null'),
        ("text like 'a' escape '!'", "not allowed in a filter: text LIKE 'a' ESCAPE '!'"),
        ("metadata->'a' = 'x'", "not allowed in a filter: metadata -> 'a'"),
        ("tags = 'a'", "column \"tags\" cannot be used in: tags = 'a'"),
        ("tags @> '{a}'", "expected array['...', '...'], not '{a}'"),
        (
            "occurred && '[2026-01-01,2026-01-31]'",
            "expected a period as '[start,end)', not '[2026-01-01,2026-01-31]'",
        ),
        ("(metadata->>'n')::int > 'x'", "expected a number, not 'x', in: "),
        ("text = %s", 'expected a constant to compare "text" with, not %s'),
        ("text = 'a", "cannot read the filter: "),
        ("text = 'a' and (", "cannot read the filter: "),
        ("(" * 4000 + "text = 'a'" + ")" * 4000, "the filter is nested too deeply"),
        ("x" * (MAX_LENGTH + 1), f"a filter has at most {MAX_LENGTH} characters, not "),
    ],
)
def test_refuses_all_else_by_name(expression: str, message: str) -> None:
    with pytest.raises(InvalidFilter) as caught:
        parse_filter(expression)

    assert caught.value.message.startswith(message)
    assert caught.value.hint == HINT


def test_the_hint_lists_every_column() -> None:
    assert [column for column in COLUMNS if column not in HINT] == []


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("confidence > 0.8", {"Ana"}),
        ("confidence between 0.4 and 0.6", {"Ben"}),
        ("metadata->>'team' = 'core'", {"Ana"}),
        ("metadata->>'team' is null", {"Ben"}),
        ("(metadata->>'size')::int >= 3", {"Ana"}),
        ("metadata->>'size' in ('3', '4')", {"Ana"}),
        ("tags @> array['x', 'y']", {"Ana"}),
        ("tags && array['y', 'z']", {"Ana", "Ben"}),
        ("'z' = any(tags)", {"Ben"}),
        ("not tags @> array['x']", {"Ben"}),
        ("occurred && '[2026-03-01,2026-04-01)'", {"Ana"}),
        ("occurred && '[,2026-03-01)'", set()),
        ("occurred is null", {"Ben"}),
        ("mentioned_at < '2026-02-01' and mentioned_at >= '2026-01-01'", {"Ben"}),
        ("source_id in ('a', 'b') and fact_type = 'opinion'", {"Ben"}),
        ("source_id not in ('a')", {"Ben"}),
        ("text ilike 'ANA%' or text = 'nobody'", {"Ana"}),
        ("fact_key = 'ana.role' and context is null", {"Ana"}),
        ("proof_count >= 1 and created_at > '2020-01-01' and memory_id > 0", {"Ana", "Ben"}),
    ],
)
def test_the_server_finds_what_an_expression_says(
    connection: psycopg.Connection[Any], expression: str, found: set[str]
) -> None:
    ana: dict[str, object] = {
        "text": "Ana sails boats",
        "fact_key": "ana.role",
        "source_id": "a",
        "tags": ["x", "y"],
    }
    ben: dict[str, object] = {
        "text": "Ben sails boats",
        "fact_type": "opinion",
        "source_id": "b",
        "tags": ["z"],
    }
    ana |= {"metadata": {"team": "core", "size": 3}, "occurred": "2026-03-05"}
    ben |= {"confidence": 0.5, "context": "lunch", "mentioned_at": "2026-01-02"}
    recall = Recall(connection, embedder=None)
    recall.create_bank("b")
    recall.retain("b", [ana, ben])

    hits = recall.recall("b", "sails boats", filter=expression, arms=["lexical"])

    assert {hit.text.split()[0] for hit in hits} == found


def test_the_server_takes_the_same_filter_as_lists(connection: psycopg.Connection[Any]) -> None:
    recall = Recall(connection, embedder=None)
    recall.create_bank("b")
    recall.retain("b", ["Ana sails boats", "Ben sails boats"])

    hits = recall.recall("b", "sails boats", filter=["like", "text", "Ana%"])

    assert [hit.text for hit in hits] == ["Ana sails boats"]
