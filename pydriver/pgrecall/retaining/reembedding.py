"""Change the embedding model of a bank."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from pgrecall import calls
from pgrecall.arguments import check_type
from pgrecall.calls.call import Call
from pgrecall.errors import InvalidArgument
from pgrecall.inference.embedders import as_embedder
from pgrecall.inference.interfaces import Embedder, EmbedFunction
from pgrecall.inference.vectors import embedded
from pgrecall.retaining.facts import pending_vectors
from pgrecall.rows import PendingText


class Refill:
    """The progress of a change of model: what to embed next, and how fast.

    Attributes:
        from_id: The memory to continue from.
        is_done: Whether nothing is pending.
        stored: Number of embeddings made.

    """

    def __init__(
        self, bank: str, embedder: Embedder | EmbedFunction, batch_size: int, rate: float | None
    ) -> None:
        """Choose the model.

        Raises:
            InvalidArgument: batch_size or rate is out of its range.

        """
        check_type("batch_size", batch_size, int)
        check_type("rate", rate, float | None)
        if batch_size < 1 or (rate is not None and not rate > 0):
            raise InvalidArgument(
                f"batch_size must be at least 1 and rate above 0, not {batch_size} and {rate}"
            )
        self.from_id = 0
        self.is_done = False
        self.stored = 0
        self._bank = bank
        self._embedder = as_embedder(embedder, None)
        self._batch_size = batch_size
        self._rate = rate
        self._began = 0.0

    def start_call(self) -> Call[object, None]:
        """Return the call that begins. Slow: embeds a word to learn the dimensions."""
        (vector,) = embedded(self._embedder, ["dimensions"])
        self._began = perf_counter()
        return calls.reembed.reembed_start(
            self._bank, model=self._embedder.model, dimensions=len(vector)
        )

    def pending_call(self) -> Call[PendingText, list[PendingText]]:
        """Return the call that lists what to embed next."""
        return calls.reembed.reembed_pending(
            self._bank, from_id=self.from_id, batch_size=self._batch_size
        )

    def store_call(self, texts: Sequence[PendingText]) -> Call[int, int]:
        """Embed texts and return the call that stores the embeddings. Slow; sends nothing."""
        return calls.reembed.reembed_store(
            self._bank,
            model=self._embedder.model,
            texts=texts,
            vectors=pending_vectors(self._embedder, texts) if texts else (),
        )

    def advance(self, texts: Sequence[PendingText]) -> float:
        """Record what was stored; return the seconds to wait before the next batch.

        It is done when nothing is pending from the beginning either, since facts of writers that
        committed late have lower ids.
        """
        self.is_done = not texts and self.from_id == 0
        self.from_id = texts[-1].memory_id if texts else 0
        self.stored += len(texts)
        ahead = self.stored / self._rate - (perf_counter() - self._began) if self._rate else 0.0
        return max(0.0, ahead)
