"""Filter expressions: what is understood, what is refused, and what the server makes of it."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest

from filter_oracle import COLUMNS, HINT, MAX_LENGTH, parse_filter
from pgrecall import InvalidFilter, Recall
from sqlcalls import value

READ: list[tuple[str, list[object]]] = [
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
    ("entity = 'Ana'", ["=", "entity", "Ana"]),
    ("not entity in ('Ana', 'Bo')", ["not", ["in", "entity", ["Ana", "Bo"]]]),
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
]


@pytest.mark.parametrize(("expression", "expected"), READ)
def test_the_other_parser_reads_an_expression(expression: str, expected: list[object]) -> None:
    assert parse_filter(expression) == expected


REFUSED = [
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
]


@pytest.mark.parametrize(("expression", "message"), REFUSED)
def test_the_other_parser_refuses_all_else_by_name(expression: str, message: str) -> None:
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
        # Ben has no team: nothing compares with that, and the "not" of every comparison holds.
        ("not metadata->>'team' = 'core'", {"Ben"}),
        ("not metadata->>'team' <> 'core'", {"Ana", "Ben"}),
        ("not not metadata->>'team' = 'core'", {"Ana"}),
        ("metadata->>'team' not in ('core')", {"Ben"}),
        ("metadata->>'team' <> 'core'", set()),
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


# The same language, read by the server


def parsed(connection: psycopg.Connection[Any], expression: str | None) -> Any:
    return value(connection, "select pgrecall_internal._parsed_filter(%s)", expression)


def test_the_server_reads_an_expression_as_another_parser_does(
    connection: psycopg.Connection[Any],
) -> None:
    found = [(expression, parsed(connection, expression)) for expression, _ in READ]

    assert found == READ


# The other parser refuses these too: nothing, and more than it takes.
@pytest.mark.parametrize(
    "expression",
    [expression for expression, _ in REFUSED if 0 < len(expression) <= MAX_LENGTH],
    ids=lambda expression: expression[:60],
)
def test_the_server_refuses_what_another_parser_refuses(
    connection: psycopg.Connection[Any], expression: str
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        parsed(connection, expression)

    diagnosis = caught.value.diag
    assert diagnosis.sqlstate == "RC011"
    assert (diagnosis.message_primary or "").startswith("filter: ")
    assert [name for name in COLUMNS if name not in (diagnosis.message_hint or "")] == []


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("text = 'a' and bank_id = 'b'", 'unknown column "bank_id" at character 16'),
        ("é = 'a'", 'expected a column or a constant, not "é" at character 1'),
        ("text = 'é' && text", 'expected "and", "or" or the end, not "&&" at character 12'),
        ("m.text = 'a'", 'unknown column "m.text" at character 1'),
        ("text ~ 'a'", 'expected an operator, not "~" at character 6'),
        ("text = now()", 'function "now" is not allowed at character 8'),
        ("text =", "expected a column or a constant, not the end of the filter"),
        ("(text = 'a'", 'expected ")", not the end of the filter'),
        ("text = 'it''s", "the string that begins at character 8 does not end"),
        ("text = 'a' /* b", "the comment that begins at character 12 does not end"),
        ("\"text = 'a'", "the identifier that begins at character 1 does not end"),
        ("confidence > 1.2.3", 'expected a number, not "1.2.3" at character 14'),
        ("confidence > 1e999", 'expected a number, not "1e999" at character 14'),
        ("context", '"context" by itself is not a condition at character 1'),
        ("tags = 'a'", 'this operator does not take column "tags" at character 1'),
        ("tags @> '{a}'", "expected array['...', '...'], not '{a}' at character 9"),
        ("text @> array['a']", 'operator "@>" does not take "text" at character 1'),
        ("text = (text = 'value')", 'expected a column or a constant, not "(" at character 8'),
        ("metadata->>'n'::int > 1", 'expected parentheses around what is cast before "::" at'),
        ("(metadata->>'n')::text = 'a'", 'cannot cast to "text" at character 19'),
        ("confidence::int = 1", 'cannot cast "confidence" to a number at character 1'),
        ("text = null", 'compare "text" with null by: text is null at character 8'),
        ("not " * 51 + "text is null", "nested more than 50 deep at character 205"),
        ("(" * 52 + "text is null" + ")" * 52, "nested more than 50 deep at character 52"),
        (
            "text = '" + "a" * 100_000 + "'",
            "an expression has at most 100000 characters, not 100009",
        ),
        ('["=", "text"', "begins with [ and is not valid JSON: invalid input syntax"),
    ],
    ids=lambda text: text[:60],
)
def test_a_refusal_says_what_is_wrong_and_where(
    connection: psycopg.Connection[Any], expression: str, message: str
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        parsed(connection, expression)

    assert (caught.value.diag.message_primary or "").startswith(f"filter: {message}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("", None),
        (" \n\t", None),
        (' \n["=", "text", "a"]', ["=", "text", "a"]),
        ("[]", []),
        ("text = 'a'; ", ["=", "text", "a"]),
        ("text = /* x */ 'a' -- y", ["=", "text", "a"]),
        ("text = '-- é'' /* \\'", ["=", "text", "-- é' /* \\"]),
        ("\"tags\" @> array['a']", ["contains", "tags", ["a"]]),
        ("TAGS && (ARRAY['a'])", ["overlaps", "tags", ["a"]]),
        ("date '2026-01-01' <= mentioned_at", [">=", "mentioned_at", "2026-01-01"]),
        ("true = metadata->>'x'", ["=", "metadata.x", True]),
        ("'a' <> text", ["<>", "text", "a"]),
        ("(('a')) < ((text))", [">", "text", "a"]),
        ("(" * 50 + "text = 'a'" + ")" * 50, ["=", "text", "a"]),
        ("memory_id = " + "9" * 40, ["=", "memory_id", int("9" * 40)]),
    ],
    ids=lambda text: str(text)[:60],
)
def test_the_server_reads_more_than_another_parser(
    connection: psycopg.Connection[Any], text: str | None, expected: object
) -> None:
    assert parsed(connection, text) == expected


class Expressions:
    """Random expressions of the documented language."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def word(self, text: str) -> str:
        return self.random.choice([text, text, text.upper(), text.title()])

    def string(self) -> str:
        letters = "ab é%_'\"\\()-/*[],;.:1"
        text = "".join(self.random.choices(letters, k=self.random.randrange(6)))
        return "'" + text.replace("'", "''") + "'"

    def number(self) -> str:
        return self.random.choice(["0", "7", "-3", "+2", "- 5", ".5", "2.", "1.25", "1e3", "2E-2"])

    def date(self) -> str:
        day = f"'2026-0{self.random.randrange(1, 10)}-11'"
        zone = self.random.choice(["", " with time zone", " without time zone"])
        return self.random.choice(
            [
                day,
                f"{self.word('date')} {day}",
                f"timestamptz {day}",
                f"timestamp(3){zone} {day}",
                f"{day}::timestamptz",
                f"{day} :: timestamp{zone}",
                f"cast({day} as {self.word('date')})",
            ]
        )

    def constant(self) -> str:
        found = self.random.choice([self.string, self.string, self.number, self.date])()
        return self.random.choice([found, found, found, f"({found})", "true", "FALSE"])

    def column(self) -> str:
        key = self.random.choice(["'team'", "'a b.c'", "'it''s'", "'$.x'", "'0'", "'é'"])
        kind = self.random.choice(["int", "numeric(5, 2)", "double precision", "REAL", "float8"])
        return self.random.choice(
            [
                "text",
                self.word("confidence"),
                self.word("mentioned_at"),
                '"source_id"',
                "( fact_key )",
                f"metadata->>{key}",
                f"(metadata ->> {key})",
                f"(metadata->>{key})::{kind}",
                f"cast(metadata->>{key} as {kind})",
            ]
        )

    def some(self, one: Any) -> str:
        return ", ".join(one() for _ in range(self.random.randrange(1, 4)))

    def comparison(self) -> str:
        pick = self.random.choice
        column, negated = self.column(), pick(["", "", self.word("not") + " "])
        operator = pick(["=", "<>", "!=", "<", "<=", ">", ">="])
        period = pick(["'[2026-01-01,2026-02-01)'", "'( , \"2026-02-01\" )'", "' [2026,)'"])
        return pick(
            [
                f"{column} {operator} {self.constant()}",
                f"{column}{operator}{self.string()}",
                f"{self.string()} {operator} {column}",
                f"{self.number()} {operator} {column}",
                f"{column} {negated}between {self.constant()} {self.word('and')} {self.constant()}",
                f"{column} {negated}in ({self.some(self.constant)})",
                f"{column} {negated}{self.word('like')} {self.string()}",
                f"{column} {negated}ilike {self.string()}",
                f"{column} {self.word('is')} {negated}null",
                f"{pick(['tags', 'metadata', 'occurred'])} is {negated}null",
                f"tags {pick(['@>', '&&'])} array[{self.some(self.string)}]",
                f"tags && array[{self.some(self.string)}]::text[]",
                f"{self.string()} = any(tags)",
                f"occurred && {period}",
                f"occurred && tstzrange({self.date()}, null)",
            ]
        )

    def condition(self, depth: int = 3) -> str:
        kind = self.random.randrange(8 if depth else 1)
        if kind < 3:
            return self.comparison()
        if kind == 3:
            return f"{self.word('not')} {self.condition(depth - 1)}"
        if kind == 4:
            return f"({self.condition(depth - 1)})"
        joint = (
            f"{self.random.choice([' ', chr(10)])}{self.word(self.random.choice(['and', 'or']))} "
        )
        return joint.join(self.condition(depth - 1) for _ in range(self.random.randrange(2, 4)))

    def damaged(self) -> str:
        """Put a token somewhere that does not belong there, or take a character away."""
        text = self.condition(1)
        place = self.random.randrange(len(text))
        token = self.random.choice(
            [" and ", " = ", ")", "(", ",", "'", " like ", " 5 ", " text ", ""]
        )
        return text[:place] + token + text[place + (token == "") :]


def oracle(expression: str) -> object:
    try:
        return parse_filter(expression)
    except InvalidFilter:
        return "refused"


def server(connection: psycopg.Connection[Any], expression: str) -> object:
    try:
        with connection.transaction():
            return parsed(connection, expression)
    except psycopg.Error as error:
        return "refused" if error.sqlstate == "RC011" else error.sqlstate


def test_two_parsers_read_random_expressions_alike(
    connection: psycopg.Connection[Any],
) -> None:
    expressions = Expressions(seed=7)
    texts = [expressions.condition() for _ in range(400)]

    found = [(text, oracle(text)) for text in texts]

    assert [(text, server(connection, text)) for text in texts] == found
    assert sum(read != "refused" for _, read in found) > 300
    assert sum(read == "refused" for _, read in found) > 5


def test_the_server_reads_a_damaged_expression_as_another_parser_does_or_refuses_it(
    connection: psycopg.Connection[Any],
) -> None:
    expressions = Expressions(seed=11)
    texts = [expressions.damaged() for _ in range(400)]

    both = [(text, oracle(text), server(connection, text)) for text in texts]

    # sqlglot is lenient where commas are too many.
    assert [read for read in both if read[2] not in (read[1], "refused")] == []
    assert sum(read[1] == read[2] == "refused" for read in both) > 200
