"""Filters as the server understands them: which facts a condition keeps."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from servers import kept_fixture
from sqlcalls import Connection, column, refused, retain, rows, value

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
        "entities": [{"name": "Ana Silva", "aliases": ["Ana"]}, "Atlas"],
    },
    {
        "text": "b",
        "context": "word",
        "tags": ["y"],
        "metadata": {"team": "infra", "n": 9, "none": None},
        "occurred": ["2026-03-06", None],
        "mentioned_at": "2026-03-06T12:00+09:00",
        "confidence": 0.1,
        "entities": ["Bo", "Atlas"],
    },
    {"text": "c", "context": "word", "mentioned_at": "2026-03-07", "metadata": {"n": "10"}},
]


@kept_fixture
def bank(connection: Connection) -> None:
    connection.execute("select pgrecall.create_bank('b', 'simple')")
    retain(connection, FACTS)


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
        (["in", "confidence", [0.7, 0.2]], "a"),
        (["in", "proof_count", [1, 2]], "abc"),
        (["in", "mentioned_at", ["2026-03-05", "2026-03-06T03:00Z", "2026-03-07 09:00+09"]], "abc"),
        (["not", ["in", "fact_key", ["k.a", "it's"]]], "bc"),
        (["overlaps", "tags", ["x", *map(str, range(200))]], "a"),
        (["not", ["overlaps", "tags", ["x", *map(str, range(200))]]], "bc"),
        (["contains", "tags", ["x", *map(str, range(200))]], ""),
        (["in", "metadata.team", ["core", *map(str, range(200))]], "a"),
        (["in", "metadata.team", ["core", "infra"]], "ab"),
        (["<", "mentioned_at", "2026-03-06"], "a"),
        ([">=", "mentioned_at", "2026-03-06T03:00Z"], "bc"),
        ([">", "created_at", "2020-01-01"], "abc"),
        (["overlaps", "occurred", ["2026-03-05", "2026-03-06"]], "a"),
        (["overlaps", "occurred", ["2026-03-06", "2026-03-07"]], "b"),
        (["overlaps", "occurred", [None, "2026-03-05"]], ""),
        (["overlaps", "occurred", ["2030-01-01", None]], "b"),
        (["overlaps", "occurred", [None, None]], "ab"),
        (["=", "entity", "ANA"], "a"),
        (["=", "entity", "ana-silva"], "a"),
        (["=", "entity", "Silva"], ""),
        (["in", "entity", ["Ana", "Bo", "it's"]], "ab"),
        (["in", "entity", []], ""),
        (["not", ["=", "entity", "Atlas"]], "c"),
        (["is null", "entity"], "c"),
        (["is not null", "entity"], "ab"),
        (["and", ["=", "entity", "Atlas"], ["=", "entity", "Bo"]], "b"),
        (["and", ["=", "text", "a"], ["=", "text", "b"]], ""),
        (["or", ["=", "text", "a"], ["=", "text", "b"]], "ab"),
        (["not", ["or", ["=", "text", "a"], ["not", ["=", "text", "b"]]]], "b"),
        (["and", ["or", ["=", "text", "a"], ["=", "text", "c"]], ["is null", "fact_key"]], "c"),
    ],
    ids=lambda condition: str(condition)[:80],
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


@pytest.mark.parametrize("condition", [["<>", "entity", "Ana"], ["like", "entity", "A%"],
                                       ["=", "entity", 5], ["=", "entity", ["Ana"]]])  # fmt: skip
def test_an_entity_is_compared_by_name_alone(bank: Connection, condition: list[object]) -> None:
    with pytest.raises(psycopg.Error) as caught:
        bank.execute("select pgrecall.lexical_arm('b', 'word', filter => %s)",
                     [json.dumps(condition)])  # fmt: skip

    assert caught.value.sqlstate == "RC011"
    assert caught.value.diag.message_hint


def test_an_entity_of_another_bank_has_no_facts_here(bank: Connection) -> None:
    bank.execute("select pgrecall.create_bank('other', 'simple')")
    retain(bank, [{"text": "d", "context": "word", "entities": ["Cy"]}], "other")

    assert column(bank, "select text from pgrecall.list_memories('b', $$entity = 'Cy'$$)") == []
    assert column(bank, "select text from pgrecall.list_memories('b', $$entity = 'Bo'$$)") == ["b"]


def test_an_option_keeps_to_an_entity_in_every_arm(bank: Connection) -> None:
    retain(
        bank,
        [
            {
                "text": "e",
                "context": "word",
                "entities": ["Ana"],
                "fact_type": "event",
                "occurred": "2026-03-05",
                "fact_key": "k.e",
            },
            {"text": "f", "context": "word", "entities": ["Cy"], "fact_key": "k.f"},
        ],
    )
    found = (
        "select text from pgrecall.hybrid_recall('b', 'word k.f k.e', during => '[2026-01-01,)',"
        " options => %s) order by text"
    )

    assert column(bank, found, '{"entity": "Ana"}') == ["a", "e"]
    assert column(bank, found.replace("options", "fact_types => '{event}', options"),
                  '{"entity": "Ana Silva", "time_mode": "filter"}') == ["a", "e"]  # fmt: skip
    assert column(bank, found, '{"entity": "Nobody"}') == []
    with refused(bank, "22023", "entity must be a text, not 5", "any of its names"):
        column(bank, found, '{"entity": 5}')


def compiled(connection: Connection, condition: object) -> str:
    statement = "select pgrecall_internal._filter_sql(%s::jsonb)"
    return str(value(connection, statement, json.dumps(condition)))


LISTS: dict[str, list[object]] = {
    "in": ["in", "source_id"],
    "overlaps": ["overlaps", "tags"],
    "contains": ["contains", "tags"],
    "metadata": ["in", "metadata.team"],
}


@pytest.mark.parametrize("head", LISTS.values(), ids=LISTS)
def test_the_statement_is_as_short_for_many_values_as_for_some(
    connection: Connection, head: list[object]
) -> None:
    few, many = ([*head, [f"s{i}" for i in range(count)]] for count in (101, 16_000))

    assert compiled(connection, many) == compiled(connection, few)


@pytest.mark.parametrize("head", LISTS.values(), ids=LISTS)
def test_a_hundred_thousand_values_are_a_filter(bank: Connection, head: list[object]) -> None:
    condition = json.dumps([*head, ["100%", "x", "core", *map(str, range(100_000))]])
    # Half a second; a term per value took minutes and gigabytes.
    bank.execute("set local statement_timeout = '30s'")

    found = column(
        bank,
        "select text from pgrecall.lexical_arm('b', 'word', filter => %s)"
        " join pgrecall.memory using (memory_id)",
        condition,
    )

    assert found == ([] if head[0] == "contains" else ["a"])


def test_a_list_is_a_constant_to_the_planner(bank: Connection) -> None:
    condition = json.dumps(["in", "source_id", ["100%", *map(str, range(50))]])
    statement = "select from pgrecall.memory m where m.bank_id = 'b' and " + compiled(
        bank, json.loads(condition)
    )
    bank.execute("set local enable_seqscan = off")
    bank.execute("set local plan_cache_mode = force_custom_plan")
    bank.execute(f"prepare p(text, text, jsonb) as {statement}")

    plan = "\n".join(column(bank, f"explain (costs off) execute p('', '', '{condition}')"))

    assert "source_id = ANY ('{100%,0,1,2," in plan
    assert "_texts" not in plan


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (["in", "source_id", ["a", 1, None]], "expected a string, not 1"),
        (["in", "source_id", ["a", None]], "expected a string, not null"),
        (["in", "memory_id", [1, "x"]], 'expected a number, not "x"'),
        (["in", "memory_id", [1, 1.5]], "1.5 is not a bigint"),
        (["in", "confidence", [0.5, 1e99]], f"1{'0' * 99} is not a real"),
        (["in", "mentioned_at", ["2026-01-01", "soon"]], '"soon" is not a timestamptz'),
        (["overlaps", "tags", ["a", ["b"]]], 'expected a string, not ["b"]'),
        (["contains", "tags", [True]], "expected a string, not true"),
        (["in", "text", [""] * 200_001], "a list of 200001 values is too long"),
        (["or", *[["in", "text", [""] * 70_000]] * 3], "more than 200000 values in lists"),
        (["and", *[["is null", "text"]] * 1000], "more than 1000 conditions"),
        (["or", *[["and", *[["is null", "text"]] * 99]] * 11], "more than 1000 conditions"),
        (["=", "text", ["a" * 1000]], 'expected a string, not ["' + "a" * 198),
    ],
    ids=lambda given: str(given)[:60],
)
def test_a_list_is_refused_naming_the_first_value_that_does_not_fit(
    connection: Connection, condition: list[object], message: str
) -> None:
    with refused(connection, "RC011", f"filter: {message}"):
        compiled(connection, condition)


def test_values_of_several_types_are_checked_each_as_its_own(connection: Connection) -> None:
    condition = ["and", ["=", "memory_id", 1], ["=", "confidence", 0.5], ["=", "text", "x"]]

    assert compiled(connection, [*condition, ["<", "created_at", "2026-01-01"]])
    with refused(connection, "RC011", "filter: 0.5 is not a bigint"):
        compiled(connection, [*condition, ["=", "proof_count", 0.5]])


# Expressions


def work(connection: Connection, expression: str) -> int:
    """Count the calls of functions that reading an expression takes."""
    count = (
        "select coalesce(sum(calls), 0) from pg_stat_xact_user_functions"
        " where schemaname = 'pgrecall_internal'"
    )
    before = value(connection, count)
    rows(connection, "select pgrecall_internal._parsed_filter(%s)", expression)
    return int(value(connection, count) - before)


EXPRESSIONS = {
    "and": lambda n: " and ".join(["text = 'a'"] * n),
    "or of and": lambda n: " or ".join(["(text = 'a' and not text = 'b')"] * (n // 2)),
    "strings": lambda n: f"text in ({', '.join(chr(39) + 'a' + chr(39) for _ in range(n))})",
    "numbers": lambda n: f"memory_id in ({','.join(['1'] * n)})",
    "dates": lambda n: f"text in ({','.join([chr(39) + 'a' + chr(39) + '::date'] * (n // 2))})",
    "array": lambda n: f"tags && array[{','.join(['(1)'] * n)}]",
}


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_the_work_of_reading_grows_with_the_length(connection: Connection, expression: Any) -> None:
    connection.execute("set local track_functions = 'all'")

    short, long = work(connection, expression(500)), work(connection, expression(5000))

    assert 0 < long <= 11 * short


HOSTILE = {
    name: (text * 100_000)[:100_000]
    for name, text in {
        "parentheses": "(",
        "not": "not ",
        "casts": "cast(",
        "casts after": "::int",
        "arrays": "array[",
        "quotes": "'a'\"",
        "comments": "/*",
        "comments with an end": "/**/",
        "signs": "- ",
        "dots": ".",
        "digits": "1",
        "exponents": "1e9",
        "letters": "a",
        "semicolons": ";",
        "in": "in(",
        "spaces": "x ",
    }.items()
}


@pytest.mark.parametrize("expression", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_is_refused_in_no_time(connection: Connection, expression: str) -> None:
    # All take under half a second; work that grows with the square of the length takes minutes.
    connection.execute("set local statement_timeout = '20s'")

    with pytest.raises(psycopg.Error) as caught:
        rows(connection, "select pgrecall_internal._parsed_filter(%s)", expression)

    assert caught.value.sqlstate == "RC011"
