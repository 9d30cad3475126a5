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
