"""The contract of the recall family: what it takes, what it says, and how it can be extended."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql

import servers
from pgrecall.server import build
from servers import Server, kept_fixture
from sqlcalls import (
    Connection,
    build_planned,
    call,
    called,
    column,
    create,
    fill,
    planned,
    refused,
    retain,
    rows,
    value,
)

NOW = "2026-06-01T00:00Z"
MARCH = "[2026-03-01,2026-04-01)"

FACTS: list[dict[str, Any]] = [
    {
        "text": "Ana prefers to deploy Kraken on Thursdays",
        "fact_key": "deploy.window",
        "fact_type": "preference",
        "embedding": [1, 0, 0],
        "entities": ["Ana", "Kraken"],
        "source_id": "doc:1",
        "mentioned_at": "2026-05-30",
    },
    {
        "text": "Kraken broke during the deploy",
        "fact_type": "event",
        "embedding": [0.9, 0.4, 0],
        "occurred": "2026-03-05",
        "entities": ["Kraken"],
        "source_id": "doc:1",
        "tags": ["ops"],
        "metadata": {"team": "core"},
        "mentioned_at": "2026-03-06",
    },
    {
        "text": "Kraken deploys are quick",
        "fact_type": "opinion",
        "embedding": [0.85, 0.5, 0.1],
        "source_id": "doc:2",
        "confidence": 0.4,
        "mentioned_at": "2026-03-10",
    },
    {
        "text": "Boats break often",
        "fact_type": "opinion",
        "embedding": [0.1, 0.2, 1],
        "links": [{"kind": "causes", "to_index": 1, "weight": 0.8}],
        "source_id": "doc:2",
        "mentioned_at": "2026-01-01",
    },
]
# In UTC these are the 5th and the 4th of March, in Auckland the 5th and the 5th.
DAYS = [("on the fifth", "2026-03-05"), ("the day before", "2026-03-04")]


@kept_fixture
def bank(connection: Connection) -> None:
    """Bank b, in which every arm finds something."""
    create(connection, embedding_dimensions=3)
    retain(connection, FACTS)
    message = {"text": "the deploy of Kraken broke", "session": "s", "speaker": "Bo"}
    call(connection, "retain_messages", bank="b", messages=[message])


ASKED: dict[str, Any] = {
    "bank": "b",
    "query": "How does Ana deploy Kraken, see deploy.window",
    "embedding": [1, 0.1, 0],
    "during": MARCH,
    "as_of": NOW,
}


# What is taken


@pytest.mark.parametrize(
    "embedding",
    [
        "'[1,0,0]'",
        "'[1,0,0]'::text",
        "'[1,0,0]'::varchar",
        "'[1,0,0]'::halfvec",
        "'[1,0,0]'::vector",
        "array[1,0,0]::real[]",
        "array[1,0,0]::double precision[]",
        "array[1.0,0,0]",
    ],
)
@pytest.mark.parametrize("function", ["hybrid_recall", "recall_report", "arm_hits"])
def test_an_embedding_is_taken_in_every_type(
    bank: Connection, function: str, embedding: str
) -> None:
    options = """options => '{"arms": ["semantic"]}'"""

    found = rows(bank, f"select * from pgrecall.{function}('b', '', {embedding}, {options})")

    given = rows(bank, f"select * from pgrecall.{function}('b', '', '[1,0,0]'::halfvec, {options})")
    assert len(found) == len(given) > 0
    if function != "recall_report":
        assert found == given


@pytest.mark.parametrize(
    "during",
    [
        "'[2026-03-05,2026-03-06)'",
        "'[2026-03-05,2026-03-06)'::text",
        "'[2026-03-05,2026-03-06)'::varchar",
        "'[2026-03-05,2026-03-06)'::tstzrange",
        "'[2026-03-05,2026-03-05]'::daterange",
        "daterange('2026-03-05', '2026-03-06')",
    ],
)
def test_a_window_is_taken_in_every_type(connection: Connection, during: str) -> None:
    connection.execute("set local timezone = 'UTC'")
    create(connection)
    retain(connection, [{"text": text, "occurred": day} for text, day in DAYS])

    found = column(
        connection,
        f"select text from pgrecall.hybrid_recall('b', '', during => {during},"
        """ options => '{"time_mode": "filter"}')""",
    )

    assert found == ["on the fifth"]


def test_a_range_of_dates_means_days_in_utc(connection: Connection) -> None:
    connection.execute("set local timezone = 'Pacific/Auckland'")
    create(connection)
    retain(connection, [{"text": text, "occurred": day} for text, day in DAYS])

    found = column(
        connection,
        "select text from pgrecall.hybrid_recall('b', '',"
        " during => daterange('2026-03-05', '2026-03-06'),"
        """ options => '{"time_mode": "filter"}')""",
    )

    assert found == ["on the fifth"]


@pytest.mark.parametrize("during", ["'empty'::daterange", "'(,)'::daterange", "'[2026-03-05,)'"])
def test_a_window_may_be_empty_or_open(bank: Connection, during: str) -> None:
    found = column(
        bank,
        f"select text from pgrecall.hybrid_recall('b', 'Kraken', during => {during},"
        """ options => '{"time_mode": "filter"}')""",
    )

    assert found == ([] if "empty" in during else ["Kraken broke during the deploy"])


@pytest.mark.parametrize("kind", ["text", "varchar"])
@pytest.mark.parametrize(
    "condition",
    [
        "confidence < 0.5",
        "fact_type = 'opinion' and not (text like 'Boats%')",
        '["<", "confidence", 0.5]',
        ' ["and", ["=", "fact_type", "opinion"], ["not", ["like", "text", "Boats%"]]]',
    ],
)
def test_a_filter_is_an_expression_or_json(bank: Connection, condition: str, kind: str) -> None:
    found = column(
        bank,
        f"select text from pgrecall.hybrid_recall('b', 'Kraken boats', filter => %s::{kind})",
        condition,
    )

    assert found == ["Kraken deploys are quick"]


def test_an_expression_and_its_json_keep_the_same(bank: Connection) -> None:
    expression = "metadata->>'team' = 'core' and tags && array['ops']"
    conditions = ["and", ["=", "metadata.team", "core"], ["overlaps", "tags", ["ops"]]]

    found = call(bank, "hybrid_recall", bank="b", query="Kraken", filter=expression)

    assert [row.text for row in found] == ["Kraken broke during the deploy"]
    assert found == call(bank, "hybrid_recall", bank="b", query="Kraken", filter=conditions)


def test_parameters_of_java_are_taken(bank: Connection) -> None:
    """The JDBC driver sends strings as varchar, and whole numbers as bigint or integer."""
    bank.execute(
        "prepare asked (varchar, varchar, varchar, varchar, varchar[], varchar[], varchar, bigint,"
        " timestamptz, varchar) as select text from pgrecall.hybrid_recall("
        "$1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
    )

    found = column(
        bank,
        "execute asked('b', 'Kraken', '[1,0,0]', '[2026-03-01,2026-04-01)', '{event,opinion}',"
        " '{ops}', 'confidence > 0.5', 5, '2026-06-01Z', null)",
    )

    assert found == ["Kraken broke during the deploy"]


@pytest.mark.parametrize("kind", ["smallint", "integer", "bigint"])
def test_top_k_is_any_whole_number(bank: Connection, kind: str) -> None:
    found = rows(bank, f"select from pgrecall.hybrid_recall('b', 'Kraken', top_k => 2::{kind})")

    assert len(found) == 2


def test_ten_rows_come_unless_asked_otherwise(connection: Connection) -> None:
    create(connection)
    retain(connection, [f"boat {n}" for n in range(12)])

    assert len(call(connection, "hybrid_recall", bank="b", query="boat")) == 10
    assert len(call(connection, "hybrid_recall", bank="b", query="boat", top_k=11)) == 11


def test_the_family_takes_the_same_arguments_and_each_name_is_one_function(
    connection: Connection,
) -> None:
    signatures = dict(
        rows(
            connection,
            "select proname, pg_get_function_arguments(oid) from pg_proc"
            " where pronamespace = 'pgrecall'::regnamespace",
        )
    )
    count = value(
        connection, "select count(*) from pg_proc where pronamespace = 'pgrecall'::regnamespace"
    )

    family = {signatures[name] for name in ("hybrid_recall", "recall_report", "arm_hits")}
    assert len(family) == 1
    assert signatures["explain_recall"].startswith(*family)
    assert len(signatures) == count, "overloads"


# What is returned


def test_the_bounds_of_a_time_come_flat_too(connection: Connection) -> None:
    create(connection)
    times: list[Any] = ["2026-03-05", ["2026-03-05T10:00Z", None], [None, "2026-03-01"], None]
    retain(connection, [{"text": f"boat {n}", "occurred": at} for n, at in enumerate(times)])

    found = rows(
        connection,
        "select occurred is null,"
        " occurred_start is not distinct from coalesce(lower(occurred), case"
        "   when occurred is not null then '-infinity'::timestamptz end),"
        " occurred_end is not distinct from coalesce(upper(occurred), case"
        "   when occurred is not null then 'infinity'::timestamptz end)"
        " from pgrecall.hybrid_recall('b', 'boat')",
    )

    assert sorted(found) == [(False, True, True)] * 3 + [(True, True, True)]


def test_rows_are_of_named_types(connection: Connection) -> None:
    unnamed = column(
        connection,
        "select oid::regprocedure::text from pg_proc"
        " where pronamespace = 'pgrecall'::regnamespace"
        " and (proargmodes is not null and '{o,b,t}' && proargmodes::text[]"
        "      or prorettype = 'record'::regtype)",
    )

    assert unnamed == []


def test_private_things_are_out_of_sight(connection: Connection) -> None:
    functions = column(
        connection,
        r"select proname from pg_proc where pronamespace = 'pgrecall'::regnamespace"
        r" and proname like '\_%%'",
    )
    relations = column(
        connection,
        "select relname from pg_class where relnamespace = 'pgrecall'::regnamespace"
        " and relkind in ('r', 'p') order by relname",
    )

    assert functions == []
    assert relations == [
        *("attached_change", "attached_row", "attachment"),
        *("bank", "embedding", "entity", "entity_alias", "fact_type", "link", "memory", "mention"),
        *("message", "recall_log", "relation", "session"),
    ]


def test_the_view_fact_shows_facts_and_nothing_internal(connection: Connection) -> None:
    old, _ = fill(connection, "b")

    names = column(
        connection,
        "select attname from pg_attribute where attrelid = 'pgrecall.fact'::regclass"
        " and attnum > 0 order by attnum",
    )
    facts = rows(
        connection,
        "select text, occurred_start, entities, is_current from pgrecall.fact order by memory_id",
    )

    assert names == [
        *("memory_id", "bank_id", "fact_type", "text", "context", "fact_key", "source_id", "tags"),
        *("metadata", "occurred_start", "occurred_end", "mentioned_at", "confidence"),
        *("proof_count", "entities", "is_current", "valid_from", "valid_to", "superseded_by"),
    ]
    assert [(text, entities, current) for text, _, entities, current in facts] == [
        ("Ana leads Atlas", ["Ana", "Atlas"], True),
        ("Atlas was late", ["Atlas"], False),
    ]
    assert facts[0][1].isoformat()[:10] == "2026-03-05"
    assert old in column(connection, "select memory_id from pgrecall.fact where is_current")


def test_the_view_fact_says_which_facts_held_on_a_day(connection: Connection) -> None:
    connection.execute("select pgrecall.create_bank('b', settings => '{\"replace\": \"key\"}')")
    facts = [
        {"text": f"Deploys on {day}.", "fact_key": "day", "mentioned_at": f"2026-0{month}-01"}
        for month, day in enumerate(("Monday", "Friday"), 1)
    ]
    _, new = retain(connection, facts, bank="b")

    held = rows(
        connection,
        "select text, superseded_by from pgrecall.fact where bank_id = 'b'"
        " and valid_from <= '2026-01-15' and (valid_to is null or valid_to > '2026-01-15')",
    )

    assert held == [("Deploys on Monday.", new)]


# Options


def declared(connection: Connection) -> dict[str, Any]:
    return {row.name: row for row in call(connection, "recall_options")}


def test_every_option_is_declared_with_the_default_that_holds(connection: Connection) -> None:
    create(connection)

    options = declared(connection)
    ((held,),) = call(connection, "bank_options", bank="b")

    assert {name: option.default_value for name, option in options.items()} == held
    assert all(option.description and option.range for option in options.values())
    kinds = {"boolean", "integer", "number", "text", "interval", "text[]", "object", "embedding"}
    assert {option.type for option in options.values()} == kinds
    assert [name for name, option in options.items() if not option.is_bank_default] == [
        *(
            "known_words",
            "about_embedding",
            "hypothetical",
            "explain",
            "with_tokens",
            "keys",
            "terms",
            "entity",
        ),
        "window",
    ]


def out_of_range(option: Any) -> tuple[Any, str]:
    """A value that an option does not take, and what the error says it should be."""
    if option.type in ("integer", "number"):
        lowest, highest = int(option.lowest), int(option.highest)
        return lowest - 1, f"{option.name} must be between {lowest} and {highest}, not {lowest - 1}"
    if option.choices:
        *first, last = (f'"{choice}"' for choice in option.choices)
        return "?", f'{option.name} must be {", ".join(first)} or {last}, not "?"'
    if option.lowest is not None:
        number = f"a number from {int(option.lowest)} to {int(option.highest)}, not -1"
        return {"key": -1}, f'{option.name.rstrip("s")} of arm "key" must be {number}'
    names = "names" if option.name == "arms" else "texts"
    return {
        "boolean": (1, f"{option.name} must be true or false, not 1"),
        "text": (1, f"{option.name} must be a text, not 1"),
        "interval": ("0", f'{option.name} must be an interval longer than 0, not "0"'),
        "text[]": (1, f"{option.name} must be an array of {names}, not 1"),
        "embedding": (1, f"{option.name} must be an array of numbers, not 1"),
        "object": ([], f"{option.name} must be an object, not []"),
    }[option.type]


def test_a_value_out_of_range_is_refused_with_the_name_and_the_range(
    connection: Connection,
) -> None:
    create(connection)

    for name, option in declared(connection).items():
        bad, message = out_of_range(option)
        with refused(connection, "22023", message, "."):
            call(connection, "hybrid_recall", bank="b", query="q", options={name: bad})
        if option.is_bank_default:
            with refused(connection, "22023", message, "."):
                call(connection, "configure_bank", bank="b", settings={name: bad})


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("diversty", "diversity"), ("weight", "weights"), ("rrfk", "rrf_k"), ("skips", "skip")],
)
def test_an_unknown_option_is_refused_naming_the_nearest(
    connection: Connection, name: str, nearest: str
) -> None:
    create(connection)

    with refused(connection, "22023", f'unknown option "{name}"', f'"{nearest}"'):
        call(connection, "hybrid_recall", bank="b", query="q", options={name: 1})


# For each option a value, the call in which it alone makes a difference, and the bank asked.
OPTIONS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "arms": (["lexical"], {}, "b"),
    "weights": ({"key": 0}, {}, "b"),
    "gates": ({"semantic": 1.1}, {}, "b"),
    "fusion": ("linear", {}, "b"),
    "rrf_k": (1, {}, "b"),
    "depth": (1, {}, "b"),
    "budget": ("low", {}, "b"),
    "skip": (1, {}, "b"),
    "collapse": (True, {}, "b"),
    "diversity": (1, {}, "b"),
    "min_relevance": (1, {}, "b"),
    "use_hints": (True, {"query": "What does Ana prefer?", "options": {"widen_below": 0}}, "b"),
    "widen_below": (0, {"query": "What does Ana prefer?", "options": {"use_hints": True}}, "b"),
    "type_hints": (
        {"opinion": ["deploy"]},
        {"options": {"use_hints": True, "widen_below": 0}},
        "b",
    ),
    "time_mode": ("filter", {}, "b"),
    "time_basis": ("mentioned", {"options": {"time_mode": "filter"}}, "b"),
    "recency_half_life": ("10 days", {"options": {"fusion": "linear"}}, "b"),
    "recency_decay": (
        "linear",
        {"options": {"fusion": "linear", "recency_half_life": "10 days"}},
        "b",
    ),
    "named_boost": (5, {}, "b"),
    "arm_timeout": ("1 microsecond", {}, "b"),
    "doubt": (0, {"query": "crate 7", "embedding": [1, 0, 0]}, "alike"),
    "with_tokens": (True, {"query": "crate 7", "embedding": [1, 0, 0]}, "alike"),
    "known_words": (0.5, {"query": "crate 7", "embedding": [1, 0, 0]}, "alike"),
    "similarity_floor": (0.94, {}, "b"),
    "about_embedding": (
        [0, 1, 0],
        {"query": "Which crate is Kai's?", "embedding": [1, 0, 0]},
        "alike",
    ),
    "hypothetical": ([0, 0, 1], {}, "b"),
    "explain": (True, {}, "b"),
    "candidate_limit": (100, {"query": "seldom boat", "options": {"depth": 1000}}, "many"),
    "ef_search": (1000, {"options": {"arms": ["semantic"], "depth": 10}}, "many"),
    "exact_limit": (
        0,
        {"options": {"arms": ["semantic"], "depth": 10}, "filter": "tags && array['rare']"},
        "many",
    ),
    "relation_words": (
        {"skipper": ["noun>reports_to"]},
        {"query": "Where does the skipper of Bo live?"},
        "reach",
    ),
    "graph_steps": (1, {"query": "What about the cracked valve in the press?"}, "reach"),
    "keys": (["depot.9"], {"query": "Who is Cy?"}, "reach"),
    "terms": (["gondola"], {"query": "Who is Cy?"}, "reach"),
    "entity": ("Ana", {}, "b"),
    "window": ("[2020-01-01, 2020-02-01)", {}, "b"),
    "prefer": ("former", {"query": "what did we decide for the canteen?"}, "reach"),
    "untrusted_rows": (0, {"query": "Is the window open?"}, "strangers"),
    "source_rows": (1, {"query": "Is the window open?"}, "strangers"),
}
# What a driver reads before it calls a recall, which then ignores it: see recall/test_prepare.py.
READ_BEFORE = {"latest_words", "former_words"}
# Bank reach: causes, a chain of relations, a rare entity in common, and two that say the same.
REACH: list[dict[str, Any]] = [
    {"text": "The shop stayed shut on Monday."},
    {"text": "A fuse had blown.", "links": [{"kind": "causes", "to_index": 0}]},
    {"text": "Rain dripped through the roof.", "links": [{"kind": "causes", "to_index": 1}]},
    {
        "text": "Bo's day begins with a call to Cy.",
        "entities": ["Bo", "Cy"],
        "relations": [{"from": "Bo", "kind": "reports_to", "to": "Cy"}],
    },
    {
        "text": "Cy keeps a houseboat in Porto.",
        "entities": ["Cy", "Porto"],
        "relations": [{"from": "Cy", "kind": "lives_in", "to": "Porto"}],
    },
    {"text": "The valve in the press cracked.", "entities": ["VX-77"]},
    {"text": "Thirty crates went to Oslo.", "entities": ["VX-77"]},
    {"text": "A gondola waits.", "fact_key": "depot.9"},
    {"text": "We decided on plan 1 for the canteen", "occurred": "2026-01-01"},
    {"text": "We decided on plan 2 for the canteen", "occurred": "2026-02-01"},
]


@pytest.fixture(scope="module")
def asked_bank(server: Server, installed_template: str) -> Any:
    """Banks b, reach, strangers; many: 3,000 vectors, a poor index; alike: 60 nearly one."""
    vectors = np.random.default_rng(5).normal(size=(3000, 8))
    with server.database(installed_template) as dsn:
        with psycopg.connect(dsn) as connection:
            create(connection, embedding_dimensions=3)
            retain(connection, FACTS)
            create(connection, "reach")
            said = [{**fact, "mentioned_at": "2026-05-01"} for fact in REACH]
            retain(connection, said, "reach")
            poor = {"hnsw_threshold": 100, "hnsw_m": 2, "hnsw_ef_construction": 4}
            create(connection, "many", settings={**poor, "similarity_floor": -1})
            facts = [
                {
                    "text": f"boat {n}" + " seldom" * (n % 60 == 0),
                    "embedding": row.tolist(),
                    "tags": ["rare"] * (n % 500 == 0),
                    "mentioned_at": "2026-01-01",
                }
                for n, row in enumerate(vectors)
            ]
            retain(connection, facts, "many", link="deferred")
            build_planned(connection)
            create(connection, "strangers", settings={"source_trust": {"web:*": 0.9}})
            windows = [
                {"text": "The window is open.", "source_id": "web:1", "mentioned_at": "2026-01-01"},
                {"text": "The window is open!", "source_id": "chat", "mentioned_at": "2026-01-01"},
                {"text": "A window, open.", "source_id": "chat", "mentioned_at": "2026-01-01"},
                {"text": "A window.", "source_id": "handbook", "mentioned_at": "2026-01-01"},
            ]
            retain(connection, windows, "strangers")
            create(connection, "alike")
            crates = [
                {
                    "text": f"crate {n}",
                    "embedding": [1, n / 100, 0],
                    "entities": ["Kai"] * (n < 4),
                    "tokens": "AQI=",
                    "mentioned_at": "2026-01-01",
                }
                for n in range(60)
            ]
            retain(connection, crates, "alike")
            connection.execute("analyze")
        yield dsn


def outcome(connection: Connection, bank: str, arguments: dict[str, Any]) -> Any:
    """What a recall says: its rows and its report, of bank many for twenty embeddings.

    Of bank reach its rows alone: what an option does to the report of an arm is not enough.
    """
    asked = {**ASKED, "bank": bank}
    embeddings: list[Any] = [ASKED["embedding"]]
    if bank == "alike":
        asked.pop("during")
    elif bank == "many":
        asked.pop("during")
        embeddings = np.random.default_rng(6).normal(size=(20, 8)).tolist()
    elif bank in ("reach", "strangers"):
        asked.pop("during")
        embeddings = [None]
    said = []
    for embedding in embeddings:
        (report,) = called(
            connection, "recall_report", **{**asked, "embedding": embedding, **arguments}
        )
        for arm in report["arms"]:
            arm.pop("milliseconds")
        said.append(report["hits"] if bank == "reach" else report)
    return said


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_changes_what_a_recall_says(asked_bank: str, option: str) -> None:
    given, arguments, bank = OPTIONS[option]
    options = arguments.get("options", {})
    with psycopg.connect(asked_bank) as connection:
        before = outcome(connection, bank, arguments)
        after = outcome(connection, bank, {**arguments, "options": {**options, option: given}})

    assert before != after


def test_no_option_is_left_out_of_these_tests(connection: Connection) -> None:
    assert declared(connection).keys() == OPTIONS.keys() | READ_BEFORE


def test_a_bank_sets_any_default(asked_bank: str) -> None:
    with psycopg.connect(asked_bank) as connection:
        for name, option in declared(connection).items():
            if name in READ_BEFORE:
                continue
            given, arguments, bank = OPTIONS[name]
            options = dict(arguments.get("options", {}))
            with connection.transaction(force_rollback=True):
                if not option.is_bank_default:
                    with pytest.raises(psycopg.Error) as caught, connection.transaction():
                        call(connection, "configure_bank", bank=bank, settings={name: given})
                    assert caught.value.sqlstate == "22023"
                    continue
                asked = outcome(
                    connection, bank, {**arguments, "options": {**options, name: given}}
                )
                if name == "recency_half_life":
                    # A half-life that only the bank sets is for the bank's own fusion.
                    settings = {**options, name: given}
                else:
                    settings = {name: given}
                call(connection, "configure_bank", bank=bank, settings=settings)
                assert outcome(connection, bank, arguments) == asked, name


def test_a_bank_of_low_budget_asks_fewer_arms(bank: Connection) -> None:
    call(bank, "configure_bank", bank="b", settings={"budget": "low"})

    reasons = {row.arm: row.reason for row in call(bank, "explain_recall", **ASKED)}

    assert reasons["graph"] == "the budget is low"
    assert {row.arm for row in call(bank, "explain_recall", **ASKED, budget="mid")
            if row.status == "ran"} >= {"graph", "message"}  # fmt: skip


def test_a_bank_uses_hints_by_itself(bank: Connection) -> None:
    call(bank, "configure_bank", bank="b", settings={"use_hints": True, "widen_below": 0})
    query = "what does Ana prefer of Kraken"

    found = call(bank, "hybrid_recall", bank="b", query=query)
    wide = call(bank, "hybrid_recall", bank="b", query=query, use_hints=False)

    assert {row.fact_type for row in found if row.kind == "memory"} == {"preference"}
    assert len({row.fact_type for row in wide}) > 2


def test_a_bank_leaves_out_what_is_hardly_relevant(bank: Connection) -> None:
    everything = call(bank, "hybrid_recall", **ASKED)
    floor = sorted(row.relevance for row in everything)[1]

    call(bank, "configure_bank", bank="b", settings={"min_relevance": floor})

    assert [row.memory_id for row in call(bank, "hybrid_recall", **ASKED)] == [
        row.memory_id for row in everything if row.relevance >= floor
    ]
    assert call(bank, "hybrid_recall", **ASKED, min_relevance=0) == everything


def test_a_bank_collapses_sources(bank: Connection) -> None:
    call(bank, "configure_bank", bank="b", settings={"collapse": True})

    sources = [row.source_id for row in call(bank, "hybrid_recall", **ASKED)]

    assert sorted(sources) == sorted(set(sources))
    whole = [row.source_id for row in call(bank, "hybrid_recall", **ASKED, collapse=False)]
    assert len(whole) > len(sources)


def test_a_null_stands_for_the_default_below_it(bank: Connection) -> None:
    call(bank, "configure_bank", bank="b", settings={"rrf_k": 7, "skip": 1})
    as_the_bank_says = call(bank, "hybrid_recall", **ASKED)

    asked = call(bank, "hybrid_recall", **ASKED, rrf_k=None, skip=None)
    call(bank, "configure_bank", bank="b", settings={"rrf_k": None, "skip": None})

    assert asked == as_the_bank_says
    ((held,),) = call(bank, "bank_options", bank="b")
    assert (held["rrf_k"], held["skip"]) == (60, 0)


# One run, several views


CALLS = (
    "select funcname, sum(calls)::integer from pg_stat_xact_user_functions"
    " where schemaname in ('pgrecall', 'pgrecall_internal') group by 1"
)


def entered(connection: Connection, function: str, **arguments: Any) -> dict[str, int]:
    """How often one call enters each function."""
    call(connection, function, **arguments)
    with connection.transaction(force_rollback=True):
        connection.execute("set local track_functions = 'all'")
        before = dict(rows(connection, CALLS))
        call(connection, function, **arguments)
        after = dict(rows(connection, CALLS))
    return {name: n - before.get(name, 0) for name, n in after.items() if n > before.get(name, 0)}


def test_the_report_is_that_of_the_run(bank: Connection) -> None:
    (report,) = called(bank, "recall_report", **ASKED)
    explained = called(bank, "explain_recall", **ASKED)
    hits = called(bank, "hybrid_recall", **ASKED)

    for arm in [*report["arms"], *explained]:
        arm.pop("milliseconds")
        arm.pop("indexes")
    assert report["hits"] == hits
    assert report["arms"] == explained
    assert {arm["arm"] for arm in explained if arm["status"] == "ran"} == {
        *("key", "semantic", "lexical", "graph", "temporal", "message"),
    }


def test_the_settings_of_a_stock_server_change_neither_indexes_nor_answers(
    bank: Connection,
) -> None:
    facts = [
        {
            "text": f"Boat {n} was seen at pier {n % 50}",
            "entities": [f"Pier {n % 50}"],
            "embedding": [n % 7 + 1, n % 11, n % 13],  # of few, any index is as good as another
        }
        for n in range(2000)
    ]
    call(bank, "retain", bank="b", facts=facts)
    bank.execute("analyze")

    def asked() -> Any:
        (report,) = called(bank, "recall_report", **ASKED, options={"explain": True})
        for arm in report["arms"]:
            arm.pop("milliseconds")
        return report

    tuned = asked()
    bank.execute("set jit = on; set random_page_cost = 4; set work_mem = '4MB'")
    bank.execute("set effective_cache_size = '4GB'; set max_parallel_workers_per_gather = 2")
    stock = asked()

    assert stock["hits"] == tuned["hits"]
    assert stock["arms"] == tuned["arms"]
    assert all(arm["indexes"] for arm in stock["arms"] if arm["status"] == "ran")


def test_what_the_arms_found_fused_is_what_a_recall_returns(bank: Connection) -> None:
    found = call(bank, "arm_hits", **ASKED)
    report = {row.arm: row for row in call(bank, "explain_recall", **ASKED)}

    joined = rows(
        bank,
        "select f.memory_id, f.score from pgrecall.fuse(array("
        "select h from pgrecall.arm_hits(%s, %s, %s, %s, as_of => %s) as h)) as f"
        " order by f.score desc",
        *("b", ASKED["query"], json.dumps(ASKED["embedding"]), MARCH, NOW),
    )

    # arm_hits() runs an arm of weight 0 as well.
    ran = {arm: row.rows or 0 for arm, row in report.items() if row.reason != "its weight is 0"}
    assert {arm: sum(hit.arm == arm for hit in found) for arm in ran} == ran
    assert dict(joined) == {
        row.memory_id: pytest.approx(row.score) for row in call(bank, "hybrid_recall", **ASKED)
    }
    assert {hit.named is not None for hit in found} == {True, False}
    assert all(hit.named is None or 0 <= hit.named <= 1 for hit in found)


def test_a_plan_runs_no_arm(bank: Connection) -> None:
    ran = {row.arm for row in call(bank, "explain_recall", **ASKED) if row.status == "ran"}

    calls = entered(bank, "explain_recall", **ASKED, is_run=False)
    chosen = planned(bank, **ASKED)

    assert {row.arm for row in chosen if row.status == "planned"} >= ran
    assert {row.status for row in chosen} <= {"planned", "skipped"}
    assert all(row.reason for row in chosen)
    assert {(row.rows, row.best_score, row.milliseconds) for row in chosen} == {(None, None, None)}
    assert [name for name in calls if name.endswith("_search")] == []
    assert "_lexical_search" in entered(bank, "explain_recall", **ASKED)


ONCE = ["_request", "_fact_types", "_parsed_filter", "_filter_sql", "_resolved_options"]
ONCE += ["_parsed_request", "_query_names", "_type_hints"]


def test_nothing_is_looked_up_parsed_or_compiled_twice(bank: Connection) -> None:
    arguments = {
        **ASKED,
        "filter": "confidence > 0.1",
        "tags": None,
        "options": {"use_hints": True, "widen_below": 0, "hypothetical": [0, 1, 0]},
    }

    calls = entered(bank, "hybrid_recall", **arguments)

    print(f"functions {len(calls)}, calls {sum(calls.values())}: {calls}")
    assert {name: calls.get(name) for name in ONCE} == dict.fromkeys(ONCE, 1)


def test_a_recall_enters_few_functions(bank: Connection) -> None:
    calls = entered(bank, "hybrid_recall", **ASKED)

    print(f"functions {len(calls)}, calls {sum(calls.values())}: {calls}")
    # Every arm runs. It was 125 before requests were resolved once, and 73 before checks, filter
    # and hits were inlined.
    assert sum(calls.values()) <= 60


def test_a_plain_recall_enters_few_functions_and_runs_few_statements(bank: Connection) -> None:
    plain = {"bank": "b", "query": "How does Ana deploy", "embedding": [1, 0.1, 0]}
    bank.execute("select pgrecall.refresh_statistics('b')")

    calls = entered(bank, "hybrid_recall", **plain)

    print(f"functions {len(calls)}, calls {sum(calls.values())}: {calls}")
    # Of them 50, and what a plan made anew evaluates.
    assert sum(calls.values()) <= 52
    began: list[str] = []
    bank.add_notice_handler(lambda notice: began.append(str(notice.message_primary)))
    try:
        with bank.transaction():
            bank.execute("load 'auto_explain'")
    except psycopg.errors.UndefinedFile:
        pytest.skip("the server brings no auto_explain, which counts statements")
    bank.execute("set auto_explain.log_min_duration = 0; set auto_explain.log_level = notice")
    bank.execute("set auto_explain.log_nested_statements = on; set client_min_messages = notice")
    call(bank, "hybrid_recall", **plain)
    # A recall of a bank without keys, messages and names runs 31.
    assert 0 < len([text for text in began if text.startswith("duration: ")]) <= 55


def test_a_warm_recall_plans_no_statement_of_its_functions_anew(bank: Connection) -> None:
    plain = {"bank": "b", "query": "How does Ana deploy", "embedding": [1, 0.1, 0]}
    for _ in range(7):
        call(bank, "hybrid_recall", **plain)
        call(bank, "prepare_recall", bank="b", query=plain["query"])
    contexts: list[str] = []
    bank.add_notice_handler(lambda notice: contexts.append(notice.context or ""))
    bank.execute("set client_min_messages = log; set log_planner_stats = on")

    call(bank, "hybrid_recall", **plain)
    call(bank, "prepare_recall", bank="b", query=plain["query"])

    inside = [re.findall(r"^PL/pgSQL function .*", context, re.M) for context in contexts]
    assert len(inside) >= 2  # the statements of the caller
    assert [calls[0] for calls in inside if calls and not calls[0].endswith("EXECUTE")] == []


# Adding to it


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of sql/ that the builder takes for the original."""
    shutil.copytree(build.SQL, tmp_path / "sql")
    monkeypatch.setattr(build, "SQL", tmp_path / "sql")
    return tmp_path / "sql"


def edit(path: Path, before: str, after: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, before
    path.write_text(text.replace(before, after), encoding="utf-8")


def test_an_option_is_added_by_two_edits(server: Server, empty_database: str, copied: Path) -> None:
    edit(
        copied / "bank" / "option.sql",
        "      ('skip', 'integer',",
        "      ('at_most', 'integer', '1000', '1 to 1000', 'How many rows come at most.',\n"
        "       1, 1000, null, true),\n"
        "      ('skip', 'integer',",
    )
    edit(
        copied / "request" / "request.sql",
        "  request.top_k := top_k;\n",
        "  request.top_k := least(top_k, (request.options ->> 'at_most')::integer);\n",
    )
    servers.run_script(server, empty_database, build.full_script())

    with psycopg.connect(empty_database) as connection:
        create(connection)
        retain(connection, [f"boat {n}" for n in range(5)])
        whole = call(connection, "hybrid_recall", bank="b", query="boat")
        cut = call(connection, "hybrid_recall", bank="b", query="boat", at_most=2)
        with refused(connection, "22023", "at_most must be between 1 and 1000, not 0", "1000"):
            call(connection, "hybrid_recall", bank="b", query="boat", at_most=0)
        call(connection, "configure_bank", bank="b", settings={"at_most": 3})
        by_bank = call(connection, "hybrid_recall", bank="b", query="boat")

    assert [len(found) for found in (whole, cut, by_bank)] == [5, 2, 3]


NEWEST = """\
-- The newest arm: what was said last.
create or replace function pgrecall_internal._newest_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  result pgrecall_internal.arm_result;
begin
  result.is_run := true;
  result.reason := 'something was said last';
  if not is_planned then
    select array_agg(m.memory_id order by m.memory_id desc),
           array_agg(m.memory_id::double precision order by m.memory_id desc)
    into   result.memory_ids, result.scores
    from  (select x.memory_id from pgrecall.memory x
           where  x.bank_id = (request.bank).bank_id
           order  by x.memory_id desc limit 3) as m;
  end if;
  return result;
end;
$$;
comment on function pgrecall_internal._newest_arm is 'Worker of the newest arm.';
"""


def test_an_arm_is_added_by_a_file_and_a_row(
    server: Server, empty_database: str, copied: Path
) -> None:
    (copied / "arms" / "newest.sql").write_text(NEWEST)
    order = copied / build.ORDER
    order.write_text(order.read_text().replace("graph/", "arms/newest.sql\ngraph/", 1))
    registry = (copied / "values" / "arm.sql").read_text(encoding="utf-8")
    last = max(int(place) for place in re.findall(r"\('\w+', (\d+), ", registry))
    assert last >= 8
    rows_of_arms, rest = registry.split(";\nend;", 1)
    row = f"\n    ('newest', {last + 1}, 2, '{{}}', 'low', 'memory', 'The newest.', null)"
    (copied / "values" / "arm.sql").write_text(
        f"{rows_of_arms},{row};\nend;{rest}", encoding="utf-8"
    )
    servers.run_script(server, empty_database, build.full_script())

    with psycopg.connect(empty_database) as connection:
        create(connection)
        memory_ids = retain(connection, [f"boat {n}" for n in range(9)])
        asked: dict[str, Any] = {"bank": "b", "query": "boat"}
        plan = {row.arm: row for row in planned(connection, **asked)}
        found = call(connection, "hybrid_recall", **asked, fusion="rrf")
        report = {row.arm: row for row in call(connection, "explain_recall", **asked)}
        left_out = {
            row.arm: row
            for row in call(connection, "explain_recall", **asked, weights={"newest": 0})
        }
        hits = call(connection, "arm_hits", **asked, arms=["newest"])

    assert (plan["newest"].status, plan["newest"].reason) == ("planned", "something was said last")
    contributions = {
        row.memory_id: row.arms["newest"]["contribution"] for row in found if "newest" in row.arms
    }
    assert contributions == pytest.approx(
        {memory: 2 / (60 + rank) for rank, memory in enumerate(reversed(memory_ids[-3:]), start=1)}
    )
    assert (report["newest"].status, report["newest"].rows) == ("ran", 3)
    assert (left_out["newest"].status, left_out["newest"].reason) == ("skipped", "its weight is 0")
    assert [hit.memory_id for hit in hits] == memory_ids[:-4:-1]


# The source arm


def from_sources(connection: Connection, **arguments: Any) -> list[tuple[str, float]]:
    asked: dict[str, Any] = {"bank": "b", "query": "kraken", "arms": ["lexical", "source"]}
    found = call(connection, "arm_hits", **{**asked, "weights": {"source": 1}, **arguments})
    texts = dict(rows(connection, "select memory_id, text from pgrecall.memory"))
    return [(texts[hit.memory_id], hit.score) for hit in found if hit.arm == "source"]


def test_other_memories_of_the_sources_of_the_best_are_found(connection: Connection) -> None:
    create(connection)
    create(connection, "c")
    facts = [
        {"text": "kraken kraken", "source_id": "first"},
        {"text": "squid", "source_id": "first"},
        {"text": "tentacle", "source_id": "first", "fact_type": "opinion"},
        {"text": "kraken and a good deal more that makes it long", "source_id": "second"},
        {"text": "octopus", "source_id": "second"},
        {"text": "boat", "source_id": "third"},
        {"text": "sail"},
    ]
    retain(connection, facts)
    retain(connection, [{"text": "another bank's", "source_id": "first"}], "c")
    lexical = call(connection, "lexical_arm", bank="b", query="kraken")

    assert len(lexical) == 2
    assert from_sources(connection) == [("tentacle", 1), ("squid", 1), ("octopus", 0.5)]
    assert from_sources(connection, depth=2) == [("tentacle", 1), ("squid", 1)]
    assert from_sources(connection, fact_types=["world"]) == [("squid", 1), ("octopus", 0.5)]
    assert from_sources(connection, filter="text <> 'squid'") == [
        *[("tentacle", 1), ("octopus", 0.5)],
    ]
    assert from_sources(connection, as_of="2020-01-01") == []


def test_a_message_leads_to_the_facts_of_its_session(connection: Connection) -> None:
    create(connection)
    retain(connection, [{"text": "squid", "source_id": "talk"}])
    connection.execute(
        """select pgrecall.retain_messages('b', '[{"text": "A kraken!", "session": "talk"}]')"""
    )

    assert from_sources(connection, arms=["message", "source"]) == [("squid", 1)]


def test_sources_are_asked_only_where_they_weigh_something(bank: Connection) -> None:
    def status(**options: Any) -> tuple[str, str | None]:
        report = call(bank, "explain_recall", **ASKED, **options)
        return next((row.status, row.reason) for row in report if row.arm == "source")

    assert status() == ("skipped", "its weight is 0")
    assert status(weights={"source": 0.5})[0] == "ran"
    call(bank, "configure_bank", bank="b", settings={"weights": {"source": 0.5}})
    assert status()[0] == "ran"


# What depends on it outlives an upgrade

DEPENDENT = """\
create view public.answers as select * from pgrecall.hybrid_recall('b', 'boat');
create materialized view public.kept as select * from pgrecall.hybrid_recall('b', 'boat');
create function public.ask(question text) returns setof pgrecall.recalled
begin atomic
  select * from pgrecall.hybrid_recall('b', question, top_k => 5);
end;
create view public.facts as select memory_id, text from pgrecall.fact;
revoke execute on function pgrecall.hybrid_recall from public;
grant execute on function pgrecall.hybrid_recall to pg_read_all_data;
grant select on pgrecall.fact to pg_read_all_data;
"""


def test_what_depends_on_a_recall_and_its_grants_outlive_a_rerun_of_the_logic(
    server: Server, database: str
) -> None:
    """All files but those of state are what every upgrade runs again."""
    logic = [path for path in build.sources() if not build.is_state(path)]
    grants = (
        "select p.oid, p.proacl::text, c.relacl::text from pg_proc p, pg_class c"
        " where p.oid = 'pgrecall.hybrid_recall'::regproc and c.oid = 'pgrecall.fact'::regclass"
    )
    with psycopg.connect(database) as connection:
        create(connection)
        retain(connection, ["a boat"])
        connection.execute(DEPENDENT)
        before = rows(connection, grants)
        namespace = value(
            connection,
            "select n.nspname from pg_extension x join pg_namespace n on n.oid = x.extnamespace"
            " where x.extname = 'vector'",
        )

    with psycopg.connect(database) as connection:
        connection.execute(
            sql.SQL("set local search_path = pg_catalog, {}, pg_temp").format(
                sql.Identifier(namespace)
            )
        )
        for path in logic:
            connection.execute(path.read_bytes())

    with psycopg.connect(database) as connection:
        assert rows(connection, grants) == before
        assert column(connection, "select text from public.answers") == ["a boat"]
        assert column(connection, "select text from public.kept") == ["a boat"]
        assert column(connection, "select text from public.ask('boat')") == ["a boat"]
        assert column(connection, "select text from public.facts") == ["a boat"]
        connection.execute("refresh materialized view public.kept")
