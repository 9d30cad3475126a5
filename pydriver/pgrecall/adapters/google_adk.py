"""Google ADK: a memory service with one bank for each user of an app."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

from pgrecall.adapters import LONGEST, checked, missing

try:
    from google.adk.memory import BaseMemoryService
    from google.adk.memory.base_memory_service import SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai.types import Content, Part
except ImportError as error:
    raise missing("google-adk", error) from error

from pgrecall.aio import AsyncRecall
from pgrecall.errors import BankNotFound, EmptyQuery
from pgrecall.rows import Hit


class PgrecallMemoryService(BaseMemoryService):
    """Stores sessions as raw messages; searches these and the facts of the same bank.

    The bank of a user is "APP/USER". It is created with the first session. Facts that the
    application retains in it are found as well.
    """

    def __init__(self, memory: AsyncRecall, *, top_k: int = 10) -> None:
        """Keep the client.

        Args:
            memory: The client. Give connect() a pool_size so that it can answer calls concurrently.
            top_k: Maximum number of memories in an answer.

        """
        self._memory = checked(memory, AsyncRecall)
        self._top_k = top_k

    async def add_session_to_memory(self, session: Any) -> None:
        """Store the messages of a session; known ones are not stored again.

        Args:
            session: The session.

        """
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Iterable[Any],
        session_id: str | None = None,
        custom_metadata: Any = None,
    ) -> None:
        """Store the messages of events.

        Args:
            app_name: The app.
            user_id: The user.
            events: The events; those without text are skipped.
            session_id: Their session.
            custom_metadata: Not used.

        """
        messages = []
        for event in events:
            parts = (event.content.parts if event.content else None) or []
            text = "\n".join(part.text for part in parts if part.text)
            if text.strip():
                said = datetime.fromtimestamp(event.timestamp, timezone.utc)
                message = {"speaker": event.author, "sent_at": said.isoformat()}
                if session_id:
                    message["session"] = session_id
                # A longer text is stored as several messages.
                pieces = [text[n : n + LONGEST] for n in range(0, len(text), LONGEST)]
                messages += [{**message, "text": piece} for piece in pieces if piece.strip()]
        bank = bank_of(app_name, user_id)
        await self._memory.create_bank(bank, exist_ok=True)
        if messages:
            await self._memory.retain_messages(bank, messages)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Find what answers a question, best first; nothing if it is blank or the user is new.

        Args:
            app_name: The app.
            user_id: The user.
            query: The question.

        """
        bank = bank_of(app_name, user_id)
        try:
            hits = await self._memory.recall(bank, query, top_k=self._top_k)
        except (BankNotFound, EmptyQuery):
            return SearchMemoryResponse(memories=[])
        return SearchMemoryResponse(memories=[_entry(hit) for hit in hits])


def _entry(hit: Hit) -> MemoryEntry:
    happened = (hit.occurred and hit.occurred[0]) or hit.mentioned_at
    return MemoryEntry(
        content=Content(role="user", parts=[Part(text=hit.text)]),
        author=hit.context if hit.kind == "message" else None,
        timestamp=happened.isoformat() if happened else None,
    )


def bank_of(app_name: str, user_id: str) -> str:
    """Name the bank of a user; slashes are escaped, so that no two users share a bank."""
    return f"{app_name.replace('%', '%25').replace('/', '%2F')}/{user_id}"
