"""Hindsight: its memory engine in the process, `retain_batch_async()` and `recall_async()`.

No language model runs: the mock provider answers with the prepared facts, one for each document,
found by its text. The reranker leaves the fused order as it is (`rrf`), observations and the worker
are off, tasks run at once. Its vectors are from the same model as those of the other peers, run by
onnxruntime, for the texts that it makes of facts with dates and entities. The time of the database
is its phase `parallel_retrieval`. The budget is mid, its default.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Coroutine, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

os.environ.update(
    {
        "HINDSIGHT_API_RERANKER_PROVIDER": "rrf",
        "HINDSIGHT_API_ENABLE_OBSERVATIONS": "false",
        "HINDSIGHT_API_ENABLE_AUTO_CONSOLIDATION": "false",
        "HINDSIGHT_API_WORKER_ENABLED": "false",
        "HINDSIGHT_API_LOG_LEVEL": "warning",
    }
)
sys.path.append(str(Path(__file__).resolve().parents[3] / "pydriver"))

from hindsight_api.engine.embeddings import Embeddings
from hindsight_api.engine.memory_engine import Budget, MemoryEngine
from hindsight_api.engine.retain.embedding_processing import augment_texts_with_dates
from hindsight_api.engine.task_backend import SyncTaskBackend
from hindsight_api.models import RequestContext

from pgrecall.embedders import MiniLMEmbedder

BATCH = 100
KEY = re.compile(r"prepared fact (\d+)")
NOTHING = dict.fromkeys(("when", "where", "who", "why"), "N/A")


class Given(Embeddings):
    """The prepared vectors, and those of texts that Hindsight adds words to."""

    def __init__(self, vectors: Any) -> None:
        self._vectors = vectors

    @property
    def provider_name(self) -> str:
        return "local"

    @property
    def dimension(self) -> int:
        return 384

    async def initialize(self) -> None:
        """There is nothing to load."""

    async def encode(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = await asyncio.to_thread(self._vectors.many, texts)
        return vectors


class Peer:
    def __init__(self, dsn: str, vectors: Any, threads: int) -> None:
        self._vectors = vectors
        vectors.embed = MiniLMEmbedder(threads=1).embed
        self._facts: list[dict[str, Any]] = []
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, daemon=True).start()
        self._engine = MemoryEngine(
            db_url=dsn,
            memory_llm_provider="mock",
            memory_llm_api_key="none",
            memory_llm_model="mock",
            embeddings=Given(vectors),
            pool_min_size=4,
            pool_max_size=6 * threads,
            task_backend=SyncTaskBackend(),
            skip_llm_verification=True,
        )
        self._context = RequestContext(internal=True)

    def _run(self, what: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()

    def setup(self) -> None:
        self._run(self._engine.initialize())
        for llm in (self._engine._llm_config, self._engine._retain_llm_config):
            llm.set_response_callback(self._extracted)

    def versions(self) -> dict[str, str]:
        return {name: version(name) for name in ("hindsight-api-slim", "dateparser")}

    def _extracted(self, messages: list[dict[str, Any]], scope: str) -> Any:
        """Return what a model would find in a document: its prepared fact."""
        if scope != "retain_extract_facts":
            raise ValueError(f"a language model was asked for {scope}")
        found = [key for message in messages[1:] for key in KEY.findall(str(message["content"]))]
        fact = self._facts[int(found[-1])]
        times = {"occurred_start": fact["at"], "occurred_end": fact["at"]} if fact["at"] else {}
        return {
            "facts": [
                {
                    **NOTHING,
                    **times,
                    "what": fact["text"],
                    "fact_kind": "event" if times else "conversation",
                    "fact_type": "world",
                    "entities": fact["entities"],
                }
            ]
        }

    def prepare(self, facts: Sequence[dict[str, Any]]) -> None:
        """Embed facts with their dates and entities, as retain will do."""
        made = [
            SimpleNamespace(
                fact_text=fact["text"],
                occurred_start=(at := datetime.fromisoformat(fact["at"]) if fact["at"] else None),
                occurred_end=at,
                mentioned_at=at,
                entities=fact["entities"],
            )
            for fact in facts
        ]
        texts = augment_texts_with_dates(made, self._engine._format_readable_date)
        for start in range(0, len(texts), BATCH):
            self._vectors.many(texts[start : start + BATCH])

    def load(self, bank: str, facts: Sequence[dict[str, Any]]) -> None:
        first = len(self._facts)
        self._facts += facts
        for start in range(0, len(facts), BATCH):
            contents = [
                {
                    "content": f"prepared fact {first + n}",
                    "document_id": facts[n]["id"],
                    "event_date": datetime.fromisoformat(at) if (at := facts[n]["at"]) else None,
                }
                for n in range(start, min(start + BATCH, len(facts)))
            ]
            self._run(
                self._engine.retain_batch_async(
                    bank_id=bank, contents=contents, request_context=self._context
                )
            )

    def finish(self) -> None:
        """Links and indexes are written with the facts."""

    def ask(
        self, bank: str, text: str, asked_at: str | None, top_k: int
    ) -> tuple[list[str], float | None]:
        found = self._run(
            self._engine.recall_async(
                bank_id=bank,
                query=text,
                budget=Budget.MID,
                enable_trace=True,
                fact_type=["world"],
                question_date=datetime.fromisoformat(asked_at) if asked_at else None,
                request_context=self._context,
            )
        )
        phases = {one["phase_name"]: one["duration_seconds"] for one in _phases(found.trace)}
        ids = [one.document_id or "" for one in found.results[:top_k]]
        return ids, phases["parallel_retrieval"] * 1000


def _phases(trace: dict[str, Any]) -> list[dict[str, Any]]:
    summary: list[dict[str, Any]] = trace["summary"]["phase_metrics"]
    return summary
