"""Every function of the catalog with arguments that nobody would think of; a new one is covered.

Public functions answer or refuse in words of their own: never with an error of PostgreSQL, which
would say nothing to a caller. No function shows a tenant what another one has.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from pgrecall import Recall, RecallError
from pgrecall.command import main
from servers import kept_fixture
from sqlcalls import Connection, rows

SECRET = "zq9secret"
BANKS = ["acme", "bolt", "", "none such", "a'b\"c", None]
TEXTS = [
    "",
    " ",
    "Ana",
    f"{SECRET} sails",
    '"',
    '"open',
    "-",
    "%_\\",
    "'; drop table x; --",
    "日本語 テキスト",
    "e\u0301" * 20,
    "\U0001f600" * 9,
    "{1,2}",
    '{"a": 1}',
    '["and"]',
    '["=", "text", "x"]',
    "text = 'x'",
    "confidence > 1e400",
    "now",
    "infinity",
    "[2026-01-01,2026-02-01)",
    "empty",
    "[1, 0]",
    "none",
    "key",
    "event",
    "a" * 3000,
    None,
]
NUMBERS = [0, 1, -1, 2, 7, 1000, 32768, 2**31 - 1, -(2**31)]
BIG = [*NUMBERS, 2**63 - 1, -(2**63)]
REALS = [0, 1, -1, 0.5, 1e-45, 1e308, "NaN", "Infinity", "-Infinity"]
TIMES = ["2026-01-01", "infinity", "-infinity", "4713-01-01 BC", "294276-12-31"]
PERIODS = ["[2026-01-01,2026-02-01)", "empty", "(,)", "[infinity,]", "[294276-12-31,)"]
SPANS = ["0", "1 day", "-1 day", "178000000 years", "-178000000 years"]
VECTORS = ["[1, 0]", "[1]", "[]", "[0, 0]", "[1, 0, 0]", "{1,0}", "[NaN, 1]", "[1e400, 1]", "x", ""]
JSON: list[object] = [
    *([], {}, None, 1, "x", True, [[]], [{}], [None], [1], ["x"]),
    [{"text": "x"}],
    [{"text": "x", "embedding": [1, 0], "entities": ["Ana", {"name": ""}]}],
    [{"text": "x", "occurred": ["9999-01-01", "0001-01-01"]}],
    [{"text": "x", "links": [{"kind": "causes", "to_index": -1}]}],
    [{"text": "x", "mentioned_at": "infinity", "expires_at": "-infinity"}],
    [{"text": "x", "relations": [{"from": "a", "kind": "b", "to": "a"}]}],
    {"weights": {"lexical": -1}},
    {"rrf_k": 1e400},
    {"budget": "x", "nope": 1},
    {"fusion": "linear", "recency_half_life": "0"},
    {"text": "x", "role": "god"},
    {"hypothetical": "x", "keys": [1], "terms": [""]},
    {"type_hints": {"x": ["y"]}, "relation_words": {"a": 1}},
]
HITS = ["{}", None, '{"(lexical,1,1,1,,,)"}', '{"(x,1,0,NaN,,,)"}', '{"(lexical,1,,,,,)",NULL}']
_ROW = f"(1,7,memory{10 * ','},{{}}{13 * ','})"  # of a score
ROWS = ["{}", None, *(f'{{"{_ROW.format(score)}",NULL}}' for score in ("0.5", "NaN", ""))]
VALUES: dict[str, list[Any]] = {
    "text": TEXTS,
    "text[]": [None, [], ["Ana"], [""], [None], ["world", "world"], ["world"] * 300],
    "bigint": [*BIG, None],
    "integer": [*NUMBERS, None],
    "bigint[]": [None, [], [1, 2], [None], [2**63 - 1], list(range(3000))],
    "double precision": [*REALS, None],
    "double precision[]": [None, [], [1.0], ["NaN"], [None]],
    "real[]": [None, [], [1.0, 0.0], ["NaN"], [None]],
    "boolean": [True, False, None],
    "timestamp with time zone": [*TIMES, None],
    "interval": [*SPANS, None],
    "pgrecall_internal.period": [*PERIODS, None],
    "tstzrange": [*PERIODS, None],
    "anycompatible": [*VECTORS, None],
    "jsonb": [json.dumps(value).replace("Infinity", "1e400") for value in JSON] + [None],
    "regclass": ["pg_class", "pgrecall.memory", "pgrecall.fact", None],
    "regconfig": ["english", "simple", None],
    "pg_lsn": ["0/0", "FFFFFFFF/FFFFFFFF", None],
    "pgrecall.arm_hit[]": HITS,
    "pgrecall.recalled[]": ROWS,
}
# These define objects, and are for owners.
UNASKED = {"enable_row_security", "disable_row_security", "create_roles"}
# RC: ours. Others: null where a value is needed, out of range, and what is not there.
OURS = re.compile("RC...|22023|22004|0A000")

FUNCTIONS = """
select p.oid::regprocedure::text,
       n.nspname, p.proname, p.proargnames[1 : p.pronargs],
       array(select format_type(t, null)
             from   unnest(p.proargtypes::oid[]) with ordinality as u(t, n) order by n)
from   pg_proc p join pg_namespace n on n.oid = p.pronamespace
where  n.nspname in ('pgrecall', 'pgrecall_internal') and p.prokind = 'f'
  and  p.proname <> all (%s)
  and  not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'i')
order  by 1
"""
EXAMPLES = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@kept_fixture
def filled(connection: Connection) -> None:
    """A role acme that may do all to its own bank, and a bank bolt full of secrets."""
    memory = Recall(connection, embedder=None)
    for bank, word in (("acme", "plain"), ("bolt", SECRET)):
        memory.create_bank(bank, embedding_model=word, embedding_dimensions=2)
        memory.add_fact_type(bank, word)
        fact = {
            "text": f"Ana {word} sails",
            "context": word,
            "fact_type": word,
            "fact_key": word,
            "source_id": word,
            "tags": [word],
            "metadata": {word: word},
            "entities": [f"Ana {word}", "Bo"],
            "relations": [{"from": f"Ana {word}", "kind": word, "to": "Bo"}],
            "embedding": [1, 0],
            "questions": [{"text": word, "embedding": [1, 0]}],
            "occurred": "2026-01-05",
        }
        memory.retain(bank, [fact, {**fact, "text": f"Bo {word}", "fact_key": "k"}], model=word)
        memory.retain_messages(bank, [{"text": f"hello {word}", "session": word}])
    connection.execute("create role acme")
    connection.execute("select pgrecall.create_roles('fuzz')")
    connection.execute("grant fuzz_writer to acme")
    connection.execute("grant insert, delete on pgrecall.bank to acme")
    connection.execute("select pgrecall.enable_row_security()")
    connection.execute("set local statement_timeout = '20s'")


def functions(connection: Connection, schemas: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    for signature, schema, name, names, types in rows(connection, FUNCTIONS, list(UNASKED)):
        if schema in schemas:
            yield signature, schema, name, names or [], types


def call(
    connection: Connection, function: tuple[Any, ...], values: dict[str, Any]
) -> tuple[str | None, str]:
    """Call a function and undo it; returns the code of an error, and all that it said."""
    _, schema, name, names, types = function
    places = [
        sql.SQL("{} => cast({} as {})").format(
            sql.Identifier(argument), sql.Literal(values[argument]), sql.SQL(_cast(kind))
        )
        for argument, kind in zip(names, types, strict=True)
    ]
    statement = sql.SQL("select * from {}({})").format(
        sql.Identifier(schema, name), sql.SQL(", ").join(places)
    )
    try:
        with connection.transaction(force_rollback=True):
            return None, str(connection.execute(statement).fetchall())
    except psycopg.Error as error:
        diagnosis = error.diag
        parts = (diagnosis.message_primary, diagnosis.message_detail, diagnosis.message_hint)
        return error.sqlstate, " ".join(part for part in parts if part)


def _cast(kind: str) -> str:
    return "text" if kind.startswith("any") else kind


def values_of(function: tuple[Any, ...]) -> st.SearchStrategy[dict[str, Any]]:
    _, _, _, names, types = function
    return st.fixed_dictionaries(
        {
            name: st.sampled_from(BANKS if name == "bank" and kind == "text" else VALUES[kind])
            for name, kind in zip(names, types, strict=True)
        }
    )


def test_public_functions_answer_or_refuse_in_their_own_words(filled: Connection) -> None:
    raw: dict[str, str] = {}
    for function in functions(filled, ("pgrecall",)):
        fuzz(filled, function, raw)

    assert sorted(raw.items()) == []


def fuzz(connection: Connection, function: tuple[Any, ...], raw: dict[str, str]) -> None:
    @settings(EXAMPLES, max_examples=25)
    @given(values=values_of(function))
    def check(values: dict[str, Any]) -> None:
        code, said = call(connection, function, values)
        if code and not OURS.fullmatch(code):
            raw.setdefault(f"{function[2]}: {code} {said}", str(values)[:400])

    check()


def told(connection: Connection) -> list[str]:
    """The functions that show a secret of the bank bolt, asked for it without knowing it."""
    leaks = set()
    for function in functions(connection, ("pgrecall", "pgrecall_internal")):
        _, _, name, names, types = function
        for n in range(4):
            values = {
                argument: "bolt"
                if argument in ("bank", "bank_id") and kind == "text"
                else known[n % len(known)]
                for argument, kind in zip(names, types, strict=True)
                for known in [[v for v in VALUES.get(kind, [None]) if SECRET not in str(v)]]
            }
            if SECRET in call(connection, function, values)[1]:
                leaks.add(name)
    return sorted(leaks)


def test_no_function_of_the_catalog_shows_a_tenant_anothers_secrets(filled: Connection) -> None:
    as_owner = told(filled)

    filled.execute("set local role acme")

    assert told(filled) == []
    assert {"lexemes", "_bank", "bank_models", "stored_embeddings", "type_hints"} & set(as_owner)
    assert len(as_owner) > 10


@settings(EXAMPLES, max_examples=30)
@given(
    texts=st.lists(st.text(max_size=20), max_size=3),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=8), part),
        max_leaves=6,
    ),
)
def check_driver(memory: Recall, texts: list[str], value: Any) -> None:
    for call in (
        lambda: memory.retain("acme", [*texts, {"text": "x", "metadata": value}]),
        lambda: memory.retain("acme", [value]),
        lambda: memory.recall("acme", " ".join(texts), filter=value),
        lambda: memory.recall("acme", "Ana", weights=value),
        lambda: memory.recall("acme", "Ana", top_k=value if isinstance(value, int) else 5),
        lambda: memory.retain_messages("acme", [value]),
        lambda: memory.configure_bank("acme", {"budget": value}),
    ):
        try:
            with memory._source.transaction(force_rollback=True):  # type: ignore[union-attr]
                call()
        except RecallError:
            pass


def test_the_driver_answers_or_refuses_in_its_own_words(filled: Connection) -> None:
    check_driver(Recall(filled, embedder=None))


WORDS = st.sampled_from(
    [*(text for text in TEXTS if text and not text.startswith("-")), "acme", "0", "-1", "9" * 40]
)


def test_the_command_answers_or_refuses(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "facts.jsonl"
    dsn = ["--dsn", database]
    main(["bank", "create", "acme", *dsn])

    @settings(EXAMPLES, max_examples=15)
    @given(bank=WORDS, word=WORDS, line=st.sampled_from(JSON), content=st.binary(max_size=9))
    def check(bank: str, word: str, line: object, content: bytes) -> None:
        file.write_bytes(json.dumps(line).encode() + b"\n" + content)
        for words in (
            ["recall", bank, word, "--no-embed", "--filter", word],
            ["recall", "acme", word, "--no-embed", f"--set=weights={word}"],
            ["recall", "acme", word, "--no-embed", f"--set={word}={bank}"],
            ["retain", str(file), "--bank", bank, "--no-embed"],
            ["bank", "show", bank],
            ["supersede", bank, word],
        ):
            with contextlib.suppress(SystemExit):  # argparse: the words make no sense
                assert main([*words, *dsn]) in (0, 1)
            assert "Traceback" not in capsys.readouterr().err

    check()
