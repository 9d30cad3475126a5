"""The memory service for Google's ADK: sessions are kept by user, and found again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from pgrecall import AsyncRecall, InvalidArgument, Recall

pytest.importorskip("google.adk", reason="Google's ADK is not installed: make test-adapters")

from google.adk.events import Event
from google.adk.sessions import Session
from google.genai.types import Content, Part

from pgrecall.adapters.google_adk import PgrecallMemoryService, bank_of

T = TypeVar("T")


def session(name: str, *texts: str, user: str = "u") -> Any:
    events = [
        Event(author="user", timestamp=1_770_000_000 + n, content=Content(parts=[Part(text=text)]))
        for n, text in enumerate(texts)
    ]
    empty = [Event(author="agent"), Event(author="agent", content=Content(parts=[Part(text=" ")]))]
    return Session(id=name, app_name="app", user_id=user, events=[*events, *empty])


def run(database: str, test: Callable[[Any, AsyncRecall], Awaitable[T]]) -> T:
    async def body() -> T:
        async with await AsyncRecall.connect(database, embedder=None) as memory:
            return await test(PgrecallMemoryService(memory, top_k=5), memory)

    return asyncio.run(body())


def test_what_was_said_is_found_by_its_user(database: str) -> None:
    async def body(service: Any, memory: AsyncRecall) -> tuple[Any, Any, Any, int]:
        said = session("s1", "Maya leads Atlas.", "Boats are blue.")
        await service.add_session_to_memory(said)
        await service.add_session_to_memory(said)  # a session may be added again
        live = {"text": "Atlas went live.", "occurred": "2026-03-05"}
        await memory.retain(bank_of("app", "u"), [live])
        mine = await service.search_memory(app_name="app", user_id="u", query="Who leads Atlas?")
        other = await service.search_memory(app_name="app", user_id="v", query="Who leads Atlas?")
        [bank] = await memory.banks()
        return mine, other, bank.bank_id, bank.messages

    mine, other, bank, messages = run(database, body)

    texts = [one.content.parts[0].text for one in mine.memories]
    assert {"Maya leads Atlas.", "Atlas went live."} <= set(texts)
    assert mine.memories[texts.index("Maya leads Atlas.")].timestamp.startswith("2026-02-02T")
    assert {one.author for one in mine.memories if "leads" in one.content.parts[0].text} == {"user"}
    live = mine.memories[texts.index("Atlas went live.")]
    assert live.author is None
    assert live.timestamp.startswith("2026-03-05T")
    assert other.memories == []
    assert (bank, messages) == ("app/u", 2)


def test_a_long_text_is_stored_and_a_blank_question_finds_nothing(database: str) -> None:
    async def body(service: Any, memory: AsyncRecall) -> tuple[Any, Any]:
        await service.add_session_to_memory(session("s1", "boat " * 30_000 + "Maya leads Atlas."))
        asked = {"app_name": "app", "user_id": "u"}
        found = await service.search_memory(query="Who leads Atlas?", **asked)
        return found, await service.search_memory(query=" ", **asked)

    found, nothing = run(database, body)

    assert found.memories[0].content.parts[0].text.endswith("Maya leads Atlas.")
    assert nothing.memories == []


def test_no_two_users_share_a_bank() -> None:
    assert bank_of("a/b", "c") != bank_of("a", "b/c")
    assert bank_of("a%2Fb", "c") != bank_of("a/b", "c")


def test_a_client_of_the_other_kind_is_refused() -> None:
    other: Any = Recall(SimpleNamespace(connection=list))  # type: ignore[arg-type]

    with pytest.raises(InvalidArgument, match="memory must be a client of class AsyncRecall, not "):
        PgrecallMemoryService(other)
