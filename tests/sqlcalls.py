"""Calls of pgrecall's SQL, and what they do on the server, for the tests that speak SQL."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

Connection = psycopg.Connection[Any]

JSON = {"facts", "messages", "weights", "gates", "settings", "options", "calibration"}
VECTORS = {"embedding", "hypothetical"}

# The recall family takes these by name, and everything else as a key of its argument options.
FAMILY = {"hybrid_recall", "explain_recall", "recall_report", "arm_hits", "why_not"}
ARGUMENTS = {
    *("bank", "query", "embedding", "during", "fact_types", "tags", "filter"),
    *("top_k", "as_of", "model", "is_run", "options", "memory_id"),
}


def rows(connection: Connection, statement: str, *values: object) -> list[tuple[Any, ...]]:
    return connection.execute(statement, values or None).fetchall()


def column(connection: Connection, statement: str, *values: object) -> list[Any]:
    return [row[0] for row in rows(connection, statement, *values)]


def value(connection: Connection, statement: str, *values: object) -> Any:
    ((only,),) = rows(connection, statement, *values)
    return only


def call(connection: Connection, function: str, **arguments: Any) -> list[Any]:
    """Call a function by named arguments; its rows are named tuples.

    Of the recall family the options may be given like arguments.
    """
    query, values = _call(sql.SQL("*"), function, arguments)
    with connection.cursor(row_factory=namedtuple_row) as cursor:
        return list(cursor.execute(query, values).fetchall())


def called(connection: Connection, function: str, **arguments: Any) -> list[dict[str, Any]]:
    """Call a function by named arguments; its rows are read as JSON, rows in rows too."""
    whole_row = sql.SQL("to_jsonb({})").format(sql.Identifier(function))
    query, values = _call(whole_row, function, arguments)
    return [row[0] for row in connection.execute(query, values).fetchall()]


def _call(
    columns: sql.Composable, function: str, arguments: dict[str, Any]
) -> tuple[sql.Composed, dict[str, Any]]:
    if function in FAMILY:
        arguments = _with_options(arguments)
    if function == "why_not":
        arguments = {"memory_id": None, **arguments}
    query = sql.SQL("select {} from pgrecall.{}({})").format(
        columns,
        sql.Identifier(function),
        sql.SQL(", ").join(
            sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name))
            for name in arguments
        ),
    )
    return query, {name: _to_server(name, value) for name, value in arguments.items()}


def _with_options(arguments: dict[str, Any]) -> dict[str, Any]:
    named = {name: value for name, value in arguments.items() if name in ARGUMENTS}
    options = {
        "rrf_k" if name == "k" else name: _in_json(value)
        for name, value in arguments.items()
        if name not in ARGUMENTS
    }
    if options:
        named["options"] = {**named.get("options", {}), **options}
    return named


def _in_json(value: Any) -> Any:
    """What an option is in JSON."""
    if isinstance(value, timedelta):
        return f"{value.total_seconds()} seconds"
    return value.tolist() if hasattr(value, "tolist") else value


def _to_server(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name == "filter" and not isinstance(value, str):
        return json.dumps(value)
    if name in JSON and not isinstance(value, str):
        return Jsonb(value)
    if name in VECTORS and not isinstance(value, str):
        return json.dumps([float(x) for x in value])
    return value


def create(connection: Connection, bank: str = "b", **arguments: Any) -> None:
    call(connection, "create_bank", bank=bank, **arguments)


def retained(
    connection: Connection, facts: Iterable[object], bank: str = "b", **arguments: Any
) -> list[Any]:
    """Retain facts, a text or an object each. Returns index, memory_id, is_new of each."""
    objects = [{"text": fact} if isinstance(fact, str) else fact for fact in facts]
    found = call(connection, "retain", bank=bank, facts=objects, **arguments)
    return [(row.index, row.memory_id, row.is_new) for row in found]


def retain(
    connection: Connection, facts: Iterable[object], bank: str = "b", **arguments: Any
) -> list[int]:
    """Retain facts, a text or an object each; returns their ids in order."""
    return [memory_id for _, memory_id, _ in retained(connection, facts, bank, **arguments)]


def planned(connection: Connection, **arguments: Any) -> list[Any]:
    """What explain_recall says without running an arm."""
    return call(connection, "explain_recall", **arguments, is_run=False)


def recalled(connection: Connection, query: str, bank: str = "b", **arguments: Any) -> list[str]:
    """Texts that hybrid_recall finds, best first."""
    found = call(connection, "hybrid_recall", bank=bank, query=query, **arguments)
    return [row.text for row in found]


def build_planned(connection: Connection) -> list[str]:
    """Build the indexes that index_plan says are due, in the transaction; returns their names."""
    due = [row for row in call(connection, "index_plan") if row.action == "create"]
    for row in due:
        connection.execute(row.statement.replace(" concurrently", "").encode())
    return [row.index_name for row in due]


def apply_plan(connection: Connection, bank: str | None = None) -> list[str]:
    """Run what index_plan says, one statement after the other; returns the actions."""
    due = call(connection, "index_plan", bank=bank)
    for row in due:
        connection.execute(row.statement.encode())
    return [row.action for row in due]


def ids(rows: Sequence[Any]) -> list[int]:
    return [row[0] for row in rows]


def similar(connection: Connection, memory_id: int, bank: str = "b") -> list[int]:
    """Return the facts that neighbours() calls similar, the most similar first."""
    found = call(connection, "neighbours", bank=bank, memory_id=memory_id)
    return [row.neighbour_id for row in found if row.via == "semantic"]


def shared_ranks(rows: Sequence[Any]) -> list[int]:
    """Return the ranks that rows in order must have, where equal scores share one."""
    scores = [row.score for row in rows]
    return [1 + scores.index(score) for score in scores]


@contextmanager
def counted_scans(connection: Connection) -> Iterator[Counter[str]]:
    """Count the scans that the block makes of each index, and of each table as a whole.

    So are seen the plans of statements inside functions.
    """
    scans: Counter[str] = Counter()
    before = _scans(connection)
    yield scans
    scans.update(_scans(connection) - before)


def _scans(connection: Connection) -> Counter[str]:
    rows = connection.execute(
        "select c.relname, pg_stat_get_xact_numscans(c.oid)"
        " from pg_class c where c.relkind in ('r', 'i')"
        " and c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
    ).fetchall()
    return Counter(dict(rows))


def sent_statements(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list to which each statement is added that a client sends from now on."""
    sent: list[Any] = []
    execute = psycopg.Cursor.execute

    def counting(self: Any, query: Any, *arguments: Any, **named: Any) -> Any:
        sent.append(query)
        return execute(self, query, *arguments, **named)

    monkeypatch.setattr(psycopg.Cursor, "execute", counting)
    return sent


def contents(connection: Connection, where: str = "true") -> dict[str, list[str]]:
    """Rows of every table of pgrecall, as text; where is over bank_id."""
    tables = column(
        connection,
        "select format('%I.%I', relnamespace::regnamespace, relname) from pg_class"
        " where relkind in ('r', 'p') and not relispartition"
        " and relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal') order by 1",
    )
    return {
        table: column(connection, f"select t::text from {table} t where {where} order by 1")
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
SAMPLE = {
    "asked_at": "2026-03-05T12:00:00+00:00",
    "share": 0.5,
    "total_ms": 10,
    "wait_ms": 1,
    "embed_ms": 2,
    "database_ms": 5.5,
    "rerank_ms": 1,
    "hits": 3,
    "left_out": ["arm"],
}
MESSAGES = '[{"session": "s", "speaker": "Maya", "text": "Atlas is late", "sent_at": "2026-03-05"}]'


def log_recalls(connection: Connection, *samples: object, bank: str = "b") -> int:
    text = json.dumps(samples)
    return int(value(connection, "select pgrecall.log_recalls(%s, %s)", bank, text))


def fill(connection: Connection, bank: str) -> list[int]:
    create(connection, bank)
    connection.execute("select pgrecall.log_session(%s, 't', '2026-01-01', '2026-01-02')", [bank])
    connection.execute("select pgrecall.retain_messages(%s, %s)", [bank, MESSAGES])
    log_recalls(connection, SAMPLE, bank=bank)
    found = retain(connection, FULL, bank, model="m")
    connection.execute("select pgrecall.supersede(%s, %s, %s)", [bank, found[1], found[0]])
    return found


def attach_filed(connection: Connection, bank: str) -> None:
    """Attach a table of two rows: one is copied, the other and a change wait."""
    table = sql.Identifier("public", f"filed_{bank}")
    connection.execute(sql.SQL("create table {} (id int primary key, body text)").format(table))
    connection.execute(sql.SQL("insert into {} values (1, 'Kept.'), (2, 'Too.')").format(table))
    connection.execute(
        "select pgrecall.attach_table(%s, %s, 'id', 'body')", [bank, f"public.filed_{bank}"]
    )
    connection.execute("select pgrecall.sync_table(%s, batch_size => 1)", [bank])
    connection.execute(sql.SQL("update {} set body = 'Changed.' where id = 1").format(table))


# Every function that reads, with arguments that find something in a filled bank
READS: dict[str, tuple[str, str]] = {
    "hybrid_recall": ("memory_id", "'Annie atlas.lead late', '[1,0]', '[2026-03-01,2026-04-01)'"),
    "arm_hits": ("memory_id", "'Annie atlas.lead late', '[1,0]', '[2026-03-01,2026-04-01)'"),
    "recall_report": (
        "(unnest(hits)).memory_id",
        "'Annie atlas.lead late', '[1,0]', '[2026-03-01,2026-04-01)'",
    ),
    "semantic_arm": ("memory_id", "'[1,0]'"),
    "hypothetical_arm": ("memory_id", "'[1,0]'"),
    "lexical_arm": ("memory_id", "'atlas'"),
    "key_arm": ("memory_id", "'atlas.lead'"),
    "graph_arm": ("memory_id", "'Annie', '[1,0]'"),
    "entity_walk": ("memory_id", "'Annie'"),
    "temporal_arm": ("memory_id", "'[2026-03-01,2026-04-01)'"),
    "message_arm": ("memory_id", "'atlas'"),
    "query_entities": ("entity_id", "'Annie'"),
    "link_expansion": (
        "memory_id",
        "array(select memory_id from pgrecall.memory)",  # those of both banks
    ),
}


def found_by(connection: Connection, function: str, bank: str) -> list[Any]:
    key, arguments = READS[function]
    return column(connection, f"select {key} from pgrecall.{function}('{bank}', {arguments})")


def waiting(bank: Connection, pid: int) -> None:
    """Return when a process of the server waits for a lock."""
    deadline = time.monotonic() + 30
    while (
        value(
            bank,
            "select count(*) from pg_stat_activity where pid = %s and wait_event_type = 'Lock'",
            pid,
        )
        != 1
    ):
        assert time.monotonic() < deadline, "it does not wait"
