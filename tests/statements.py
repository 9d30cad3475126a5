"""Shorthands for the tests that speak SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

Connection = psycopg.Connection[Any]


def rows(connection: Connection, statement: str, *values: object) -> list[tuple[Any, ...]]:
    return connection.execute(statement, values or None).fetchall()


def column(connection: Connection, statement: str, *values: object) -> list[Any]:
    return [row[0] for row in rows(connection, statement, *values)]


def value(connection: Connection, statement: str, *values: object) -> Any:
    ((only,),) = rows(connection, statement, *values)
    return only


def retain(
    connection: Connection, *facts: object, bank: str = "b", **options: str
) -> list[tuple[int, int, bool]]:
    """Retain facts; a string is a fact of that text. Returns index, memory_id, is_new of each."""
    full = [{"text": fact} if isinstance(fact, str) else fact for fact in facts]
    extra = "".join(f", {name} => %s" for name in options)
    return rows(
        connection,
        f"select * from pgrecall.retain(%s, %s::jsonb{extra})",
        bank,
        json.dumps(full),
        *options.values(),
    )


def ids(connection: Connection, *facts: object, bank: str = "b", **options: str) -> list[int]:
    """Retain facts; returns the memory_id of each."""
    return [row[1] for row in retain(connection, *facts, bank=bank, **options)]


def recalled(connection: Connection, query: str, bank: str = "b", **options: object) -> list[str]:
    """Texts that hybrid_recall finds, best first."""
    extra = "".join(f", {name} => %s" for name in options)
    return column(
        connection,
        f"select text from pgrecall.hybrid_recall(%s, %s{extra})",
        bank,
        query,
        *options.values(),
    )


def contents(connection: Connection, where: str = "true") -> dict[str, list[str]]:
    """Rows of every table of pgrecall, as text; where is over bank_id."""
    tables = column(
        connection,
        "select relname from pg_class where relnamespace = 'pgrecall'::regnamespace"
        " and relkind in ('r', 'p') and not relispartition order by 1",
    )
    return {
        table: column(
            connection, f"select t::text from pgrecall.{table} t where {where} order by 1"
        )
        for table in tables
    }


@contextmanager
def refused(connection: Connection, code: str, message: str, hint: str = "") -> Iterator[None]:
    """Assert that the block is refused with this SQLSTATE, message and hint."""
    with pytest.raises(psycopg.Error) as caught, connection.transaction():
        yield
    diagnosis = caught.value.diag
    assert (diagnosis.sqlstate, diagnosis.message_primary) == (code, message)
    assert re.search(hint, diagnosis.message_hint or "")


# Two facts and a message, with something in every table

FULL = [
    {
        "text": "Ana leads Atlas",
        "fact_key": "atlas.lead",
        "embedding": [1, 0],
        "occurred": "2026-03-05",
        "entities": [{"name": "Ana", "aliases": ["Annie"]}],
        "relations": [{"from": "Ana", "kind": "leads", "to": "Atlas"}],
        "questions": [{"text": "who?", "embedding": [0.9, 0.2]}],
    },
    {
        "text": "Atlas was late",
        "embedding": [0.9, 0.1],
        "occurred": "2026-03-05T12:00Z",
        "entities": ["Atlas"],
        "links": [{"kind": "caused_by", "to_index": 0}],
    },
]
MESSAGES = '[{"session": "s", "speaker": "Maya", "text": "Atlas is late", "sent_at": "2026-03-05"}]'


def create(connection: Connection, bank: str = "b", **options: object) -> None:
    extra = "".join(f", {name} => %s" for name in options)
    rows(connection, f"select pgrecall.create_bank(%s{extra})", bank, *options.values())


def fill(connection: Connection, bank: str) -> list[int]:
    create(connection, bank)
    connection.execute("select pgrecall.log_session(%s, 't', '2026-01-01', '2026-01-02')", [bank])
    connection.execute("select pgrecall.retain_messages(%s, %s)", [bank, MESSAGES])
    found = ids(connection, *FULL, bank=bank, model="m")
    connection.execute("select pgrecall.supersede(%s, %s, %s)", [bank, found[1], found[0]])
    return found


# Every function that reads, with arguments that find something in a filled bank
READS: dict[str, tuple[str, str]] = {
    "hybrid_recall": ("memory_id", "'Annie atlas.lead late', '[1,0]', '[2026-03-01,2026-04-01)'"),
    "semantic_arm": ("memory_id", "'[1,0]'"),
    "hypothetical_arm": ("memory_id", "'[1,0]'"),
    "lexical_arm": ("memory_id", "'atlas'"),
    "key_arm": ("memory_id", "'atlas.lead'"),
    "graph_arm": ("memory_id", "'Annie', '[1,0]'"),
    "entity_walk": ("memory_id", "'Annie'"),
    "temporal_arm": ("memory_id", "'[2026-03-01,2026-04-01)'"),
    "message_arm": ("message_id", "'atlas'"),
    "query_entities": ("entity_id", "'Annie'"),
    "link_expansion": (
        "memory_id",
        "array(select memory_id from pgrecall.memory)",  # those of both banks
    ),
}


def found_by(connection: Connection, function: str, bank: str) -> list[Any]:
    key, arguments = READS[function]
    return column(connection, f"select {key} from pgrecall.{function}('{bank}', {arguments})")
