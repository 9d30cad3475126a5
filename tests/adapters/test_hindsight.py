"""Hindsight's recalls through pgrecall: its own engine runs, on its own tables."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, timezone
from typing import Any, TypeVar
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

pytest.importorskip("hindsight_api", reason="Hindsight is not installed: make test-adapters")

os.environ |= {  # read when the package is imported
    "HINDSIGHT_API_LLM_PROVIDER": "none",
    "HINDSIGHT_API_MEMORIES_EXTENSION": "pgrecall.adapters.hindsight:PgrecallMemories",
}

from hindsight_api import MemoryEngine, RequestContext
from hindsight_api.engine.cross_encoder import CrossEncoderModel
from hindsight_api.engine.embeddings import Embeddings
from hindsight_api.engine.memories import get_memories, set_memories

from pgrecall.adapters import hindsight
from pgrecall.adapters.hindsight import PgrecallMemories
from servers import Server

T = TypeVar("T")
WORDS = ("maya", "atlas", "boat", "blue", "porto", "fuse", "shop", "closed")
CALLER = RequestContext()
MARCH = (datetime(2026, 3, 1, tzinfo=timezone.utc), datetime(2026, 4, 1, tzinfo=timezone.utc))


class ToyEmbeddings(Embeddings):
    """One dimension for each word."""

    provider_name = "toy"
    dimension = len(WORDS)

    async def initialize(self) -> None:
        pass

    async def encode(self, texts: list[str]) -> list[list[float]]:
        return [[0.01 + (word in text.lower()) for word in WORDS] for text in texts]


class Unchanged(CrossEncoderModel):
    """Reranks nothing."""

    provider_name = "toy"

    async def initialize(self) -> None:
        pass

    async def predict(self, pairs: list[tuple[str, str]]) -> list[float]:
        return [0.5] * len(pairs)


def run(database: str, test: Callable[[Any], Awaitable[T]], *, is_new: bool = False) -> T:
    place = conninfo_to_dict(database)
    name = place.pop("dbname")

    async def body() -> T:
        engine = MemoryEngine(
            db_url=f"postgresql:///{name}?{urlencode(place)}",
            memory_llm_provider="none",
            embeddings=ToyEmbeddings(),
            cross_encoder=Unchanged(),
            skip_llm_verification=True,
            run_migrations=is_new,
        )
        await engine.initialize()
        try:
            return await test(engine)
        finally:
            await engine.close()

    set_memories(None)
    try:
        return asyncio.run(body())
    finally:
        set_memories(None)


@pytest.fixture(scope="module")
def migrated(server: Server, installed_template: str) -> Iterator[str]:
    """Name of a database with the tables of pgrecall and of Hindsight, to be copied."""
    with server.database(installed_template) as dsn:
        with psycopg.connect(dsn) as connection:
            trigrams = connection.execute(
                "select from pg_available_extensions where name = 'pg_trgm'"
            )
            if not trigrams.rowcount:
                pytest.skip(
                    "Hindsight needs pg_trgm, which this server lacks: name another by PGRECALL_DSN"
                )

        async def nothing(_engine: Any) -> None:
            pass

        run(dsn, nothing, is_new=True)
        yield str(conninfo_to_dict(dsn)["dbname"])


@pytest.fixture
def database(server: Server, migrated: str) -> Iterator[str]:
    with server.database(migrated) as dsn:
        yield dsn


async def retain(engine: Any, *texts: str, **given: Any) -> list[str]:
    """Store texts, each as a document of its own; returns the ids of the memories."""
    ids: list[str] = []
    for text in texts:
        ids += await engine.retain_async("agent", text, request_context=CALLER, **given)
    return ids


async def recall(engine: Any, question: str, **given: Any) -> list[str]:
    found = await engine.recall_async("agent", question, request_context=CALLER, **given)
    return [fact.text for fact in found.results]


async def arms(engine: Any, question: str, **given: Any) -> dict[str, list[str]]:
    """Ask the store alone; returns the texts of each list."""
    [embedding] = await ToyEmbeddings().encode([question])
    found = await get_memories().recall_unified(
        conn=await engine._get_pool(),
        bank_id="agent",
        fact_types=["world", "experience"],
        query_embedding=str(embedding),
        query_text=question,
        limit=10,
        **given,
    )
    names = ("semantic", "bm25", "graph", "temporal")
    return {n: [h.text for arm in found.values() for h in getattr(arm, n)] for n in names}


def execute(database: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(database, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []


def copied(database: str) -> list[str]:
    """Return the current texts of the bank in pgrecall."""
    rows = execute(
        database,
        "select text from pgrecall.fact where bank_id = 'hindsight/agent' and is_current"
        " order by memory_id",
    )
    return [text for (text,) in rows]


def test_a_recall_of_hindsight_is_answered_by_pgrecall(database: str) -> None:
    async def body(engine: Any) -> list[str]:
        assert isinstance(get_memories(), PgrecallMemories)
        await retain(engine, "Maya leads Atlas.", "The boat is blue.", "Nobody closed the shop.")
        return await recall(engine, "Who leads Atlas?")

    assert run(database, body)[0] == "Maya leads Atlas."
    assert copied(database) == [
        "Maya leads Atlas.",
        "The boat is blue.",
        "Nobody closed the shop.",
    ]


def test_each_list_holds_what_its_arms_found(database: str) -> None:
    async def body(engine: Any) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        fuse, shop = await retain(engine, "A fuse blew in Porto.", "Nobody could enter.")
        execute(
            database,
            "insert into memory_links (bank_id, from_unit_id, to_unit_id, link_type, weight)"
            " values ('agent', %s::uuid, %s::uuid, 'caused_by', 1)",
            shop,
            fuse,
        )
        execute(
            database, "update memory_units set occurred_start = '2026-03-05' where id = %s", shop
        )
        question = "What followed from the fuse?"
        return await arms(engine, question), await arms(
            engine, question, enable_text_search=False, enable_graph=False, temporal_window=MARCH
        )

    found, timed = run(database, body)

    assert found["bm25"] == ["A fuse blew in Porto."]
    assert found["semantic"][0] == "A fuse blew in Porto."
    assert "Nobody could enter." in found["graph"]
    assert found["temporal"] == []
    assert timed["bm25"] == timed["graph"] == []
    assert timed["temporal"][0] == "Nobody could enter."


def test_what_changes_is_copied_and_what_is_gone_is_not_returned(database: str) -> None:
    async def body(engine: Any) -> list[dict[str, list[str]]]:
        maya, boat = await retain(engine, "Maya leads Atlas.", "The boat is blue.")
        answers = [await arms(engine, "Atlas boat")]
        execute(
            database,
            "update memory_units set text = 'Maya left Atlas.', updated_at = clock_timestamp()"
            " where id = %s",
            maya,
        )
        execute(database, "delete from memory_units where id = %s", boat)
        answers.append(await arms(engine, "Atlas boat"))
        return answers

    before, after = run(database, body)

    assert sorted(before["bm25"]) == ["Maya leads Atlas.", "The boat is blue."]
    assert after["bm25"] == ["Maya left Atlas."]
    assert "Maya leads Atlas." not in copied(database)


def test_nothing_is_copied_twice_also_by_another_process(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hindsight, "_BATCH", 2)

    def writes() -> list[tuple[Any, ...]]:
        return execute(
            database,
            "select count(*), max(m.memory_id), count(m.valid_to) from pgrecall.memory m",
        )

    async def body(engine: Any) -> list[Any]:
        await retain(engine, *(f"Boat {n} is blue." for n in range(5)))
        seen = []
        for _ in range(2):
            await arms(engine, "boat")
            seen.append(writes())
        store = get_memories()
        assert len(store._copied["hindsight/agent"]) == 5
        return seen

    async def later(engine: Any) -> None:
        await arms(engine, "boat")

    first, second = run(database, body)
    run(database, later)

    assert first == second == writes()
    assert first[0][0] == 5


def test_tags_are_those_of_hindsight(database: str) -> None:
    async def body(engine: Any) -> list[list[str]]:
        for text, tag in (("Maya has a boat.", "maya"), ("Ben has a boat.", "ben")):
            await engine.retain_batch_async(
                "agent", [{"content": text}], document_tags=[tag], request_context=CALLER
            )
        await retain(engine, "A boat is blue.")
        asked: list[dict[str, Any]] = [
            {"tags": ["maya"], "tags_match": "any_strict"},
            {"tags": ["maya"]},
            {"created_after": datetime(2999, 1, 1, tzinfo=timezone.utc)},
            {"min_semantic": 1.1},
        ]
        return [sorted((await arms(engine, "boat", **one))["semantic"]) for one in asked]

    assert run(database, body) == [
        ["Maya has a boat."],
        ["A boat is blue.", "Maya has a boat."],
        [],
        [],
    ]


def test_options_are_passed_on(database: str) -> None:
    async def body(engine: Any) -> list[dict[str, list[str]]]:
        await retain(engine, "Maya leads Atlas.")
        answers = []
        for options in ("{}", '{"arms": ["lexical"]}'):
            set_memories(PgrecallMemories({"options": options}))
            answers.append(await arms(engine, "Atlas"))
        return answers

    usual, lexical = run(database, body)

    assert usual["semantic"] == usual["bm25"] == lexical["bm25"] == ["Maya leads Atlas."]
    assert lexical["semantic"] == []


def test_banks_of_two_schemas_never_share_a_name() -> None:
    banks = [(schema, name) for schema in ("public", "a", "b") for name in ("x", "a/x", "public/x")]

    named = [hindsight._bank_name(*bank) for bank in banks]

    assert len(set(named)) == len(banks)
    assert named[0] == "x"


def test_wrong_options_and_a_missing_schema_are_named(database: str) -> None:
    with pytest.raises(ValueError, match="HINDSIGHT_API_MEMORIES_OPTIONS must be a JSON object"):
        PgrecallMemories({"options": "[]"})

    async def body(engine: Any) -> None:
        await retain(engine, "Maya leads Atlas.")
        execute(database, "drop schema pgrecall, pgrecall_internal cascade")
        await arms(engine, "Atlas")

    with pytest.raises(RuntimeError, match="Run: pgrecall migrate"):
        run(database, body)
