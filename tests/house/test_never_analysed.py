"""What a call reads does not grow with a bank that the planner knows nothing of.

A bulk load is over before autovacuum looks at its tables, and until then every index that begins
with the bank looks equally good. So it does in a large bank among many small ones, because cached
plans are made for a bank of average size. Counted are the blocks and index entries that a call
reads, in a bank of 250 facts and in one of eight times as many, on a server that nobody has tuned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest

from sqlcalls import Connection, build_planned, call, create, retain, value

FACTS, FACTOR = 250, 8
MOST = 2  # times as much: a tree is one level higher
BATCH = 250
READ = """
select sum(pg_stat_get_xact_blocks_fetched(c.oid) + pg_stat_get_xact_tuples_returned(c.oid))::bigint
from   pg_class c
where  c.relnamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
  and  c.relkind in ('r', 'i')
"""


def fact(n: int) -> dict[str, Any]:
    return {
        "text": f"note{n} of subject{n % 97} in room{n}",
        "occurred": f"2026-01-{1 + n // 1000:02} {n // 60 % 24:02}:{n % 60:02}",
        "mentioned_at": f"2026-02-{1 + n // 1000:02} {n // 60 % 24:02}:{n % 60:02}",
        "entities": [f"Person{n}", f"Person{n + 1}", f"Group{n // 10}"],
        "relations": [{"from": f"Person{n}", "kind": "lives in", "to": f"Town{n // 10}"}],
        "fact_key": f"key{n}",
        "source_id": f"source{n}",
        "embedding": [n % 7, 1],
    }


def retains(**changes: Any) -> tuple[str, dict[str, Any]]:
    return "retain", {"facts": [{**fact(9_999), **changes}], "model": "m"}


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "a new fact": retains(),
    "a known fact": retains(**fact(7)),
    "a known fact that expires": retains(**{**fact(7), "expires_at": "2100-01-01"}),
    "a fact of no time": retains(occurred=None, mentioned_at=None),
    "a known name": retains(entities=["Person7"]),
    "a known key": retains(fact_key="key7"),
    "a replaced fact": ("retain", {**retains(fact_key="key7")[1], "replace": "key"}),
    "a replaced relation": (
        "retain",
        {
            **retains(relations=[{"from": "Person7", "kind": "lives in", "to": "Rome"}])[1],
            "replace": "relation",
        },
    ),
    "a cause": retains(links=[{"kind": "causes", "to_key": "key7"}]),
    "a message": ("retain_messages", {"messages": [{"text": "Hello", "session": "s"}]}),
    "another text": ("update_memory", {"memory_id": 7, "changes": '{"text": "elsewhere"}'}),
    "an end": ("supersede", {"memory_id": 7}),
    "a loss": ("forget", {"memory_ids": [7]}),
    "a loss of a source": ("forget_where", {"source_id": "source7"}),
    "a vector": ("embed_store", {"embeddings": [], "model": "m"}),
    "another name": ("rename_entity", {"entity_id": 7, "name": "Ana"}),
    "one entity of two": ("merge_entities", {"entity_id": 7, "others": [9]}),
    "two entities of one": ("split_entity", {"entity_id": 7, "memory_ids": [7], "name": "Ana"}),
    "details": ("memory_details", {"memory_id": 7}),
    "history": ("memory_history", {"memory_id": 7}),
    "a page": ("list_memories", {"entity": "Person7"}),
    "names": ("query_entities", {"query": "Does Person7 know Person8?"}),
    "a neighbourhood": ("neighbourhood", {"entity_id": 7}),
    "a path": ("path", {"entity_a": 7, "entity_b": 9}),
    "a walk": ("entity_walk", {"query": "Where does Person7 live?"}),
    "a question": ("prepare_recall", {"query": "Where does Person7 live?"}),
    "words": ("hybrid_recall", {"query": "note7"}),
    "a key": ("key_arm", {"query": "What is key7?"}),
    "a window": ("temporal_arm", {"during": "[2026-01-01 00:07, 2026-01-01 00:08)"}),
    "a window by vectors": (
        "temporal_arm",
        {"during": "[2026-01-01 00:07, 2026-01-01 00:08)", "embedding": [1, 1], "model": "m"},
    ),
    "a reason": ("why_not", {"query": "note7", "memory_id": 7}),
    "found words": ("find_memories", {"words": "note7 "}),
    "facts to link": ("link_pending", {}),
    "a conversation": ("message_context", {"message_id": 7}),
    "a loss of a message": ("forget_messages", {"message_ids": [7]}),
    "a loss of a session": ("forget_messages", {"session": "session7"}),
}


def read(connection: Connection, function: str, arguments: dict[str, Any]) -> int:
    """The blocks and entries that a call reads, the second time a session makes it."""
    counts = []
    for _ in range(2):
        with connection.transaction(force_rollback=True):
            before = value(connection, READ)
            call(connection, function, bank="b", **arguments)
            counts.append(value(connection, READ) - before)
    return int(counts[-1])


def fill(connection: Connection, numbers: Sequence[int]) -> None:
    for start in range(0, len(numbers), BATCH):
        batch = numbers[start : start + BATCH]
        retain(connection, [fact(n) for n in batch], model="m")
        messages = [{"text": f"message{n}", "session": f"session{n}"} for n in batch]
        call(connection, "retain_messages", bank="b", messages=messages)
        for n in batch:
            call(connection, "log_session", bank="b", session=f"session{n}", ended_at="now")


@pytest.fixture
def connection(database: str) -> Iterator[Connection]:
    """A database of its own: what analyze counts outlives the tests of others."""
    with psycopg.connect(database, autocommit=True) as connection:
        if connection.info.server_version < 170000:
            pytest.skip("before 17 the planner takes an array for ten searches, and reads the bank")
        connection.execute("set random_page_cost = 4")
        create(connection, embedding_model="m", embedding_dimensions=2)
        yield connection


def one(connection: Connection, column: str, table: str, condition: str) -> int:
    return int(
        value(connection, f"select {column} from {table} where bank_id = 'b' and {condition}")
    )


def grown(connection: Connection) -> dict[str, tuple[int, int]]:
    """What calls read in a bank of FACTS, and FACTOR times as many, where it grows."""
    fill(connection, range(FACTS))
    memory = one(connection, "memory_id", "pgrecall.memory", "fact_key = 'key7'")
    entity = one(connection, "entity_id", "pgrecall.entity", "name = 'Person7'")
    other = one(connection, "entity_id", "pgrecall.entity", "name = 'Person9'")
    message = one(connection, "message_id", "pgrecall.message", "text = 'message7'")
    known = {
        "message_id": message,
        "message_ids": [message],
        "memory_id": memory,
        "memory_ids": [memory],
        "embeddings": json.dumps([{"memory_id": memory, "embedding": [0, 1]}]),
        "entity_id": entity,
        "entity_a": entity,
        "entity_b": other,
        "others": [other],
    }
    calls = {
        name: (function, {k: known.get(k, v) for k, v in arguments.items()})
        for name, (function, arguments) in CALLS.items()
    }
    small = {name: read(connection, *each) for name, each in calls.items()}

    fill(connection, range(FACTS, FACTS * FACTOR))
    large = {name: read(connection, *each) for name, each in calls.items()}

    return {n: (small[n], large[n]) for n in small if large[n] > MOST * small[n]}


def test_facts_about_whom_a_question_names_are_read_one_by_one(connection: Connection) -> None:
    fill(connection, range(FACTS * FACTOR))
    call(connection, "configure_bank", bank="b", settings={"hnsw_threshold": 100})
    build_planned(connection)

    asked = {"embedding": [1, 1], "options": {"arms": ["semantic"]}}
    some, nobody = (
        read(connection, "arm_hits", {"query": query, **asked})
        for query in ("Does Person7 know Person8?", "Does he know her?")
    )

    assert some < nobody + FACTS


@pytest.mark.slow
def test_no_call_reads_more_of_a_larger_bank(connection: Connection) -> None:
    assert grown(connection) == {}


@pytest.mark.slow
def test_no_call_reads_more_of_a_larger_bank_among_small_ones(connection: Connection) -> None:
    for n in range(40):
        create(connection, f"b{n}", embedding_model="m", embedding_dimensions=2)
        retain(connection, [fact(k) for k in range(5)], f"b{n}", model="m")
    connection.execute("analyze")

    assert grown(connection) == {}
