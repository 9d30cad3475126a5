"""Reranking: a cross-encoder reads the question and each candidate together.

Its answer is a calibrated relevance from 0 to 1. Only such a score is multiplied with the bounded
boosts for recency and for nearness to the time asked about; a fused score, which is a sum of
1 / (k + rank), never is.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pgrecall._loading import quiet_loading
from pgrecall.errors import RerankerUnavailable
from pgrecall.models import Hit, Period

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

logger = logging.getLogger(__name__)

SETTING = "PGRECALL_RERANKER"
CANDIDATES = 50

_ALPHA = 0.2  # a boost is 1 + alpha * (nearness - 0.5): at most ten percent either way
_RECENCY_DAYS = 365.0
_SLACK = timedelta(days=7)
_DAY = timedelta(days=1)
_MONTHS = (  # of the models' English, whatever the locale
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

ScoreFunction = Callable[[str, Sequence[str]], Sequence[float]]
"""A function from a query and texts to one relevance each, 0 to 1."""


@runtime_checkable
class Reranker(Protocol):
    """Says how relevant each text is for a query."""

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one relevance per text, in order, each from 0 to 1."""
        ...


class FunctionReranker:
    """A reranker made of any function from a query and texts to relevances."""

    def __init__(self, function: ScoreFunction) -> None:
        """Wrap a function."""
        self._function = function

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one relevance per text, in order, each from 0 to 1."""
        return self._function(query, texts)


class CrossEncoderReranker:
    """A sentence-transformers cross-encoder, loaded when first used, never from the network."""

    def __init__(self, name_or_path: str | Path, *, batch_size: int = 16) -> None:
        """Choose a model; nothing is imported or loaded yet.

        Args:
            name_or_path: A directory, or the name of a model that has been downloaded before.
            batch_size: Candidates per forward pass, at least 1.

        """
        self.name_or_path = name_or_path
        self._batch_size = batch_size
        self._loaded: CrossEncoder | None = None
        self._lock = threading.Lock()

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one relevance per text, in order: the sigmoid of the model's answer.

        Raises:
            RerankerUnavailable: a package or the model is missing, or it is not a cross-encoder
                with one output.

        """
        from torch.nn import Identity

        answers = self.load().predict(
            [(query, text) for text in texts],
            batch_size=self._batch_size,
            activation_fn=Identity(),
            show_progress_bar=False,
        )
        return [_sigmoid(float(answer)) for answer in answers]

    def load(self) -> CrossEncoder:
        """Load the model, unless it is loaded.

        Raises:
            RerankerUnavailable: as scores().

        """
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> CrossEncoder:
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise RerankerUnavailable(
                f"cannot rerank: package {error.name} is missing",
                hint="Run: pip install 'pgrecall[embed]'",
            ) from error
        try:
            with quiet_loading():
                model = CrossEncoder(str(self.name_or_path), local_files_only=True)
        except (OSError, ValueError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise RerankerUnavailable(
                f'cannot load the reranker "{self.name_or_path}": {reason}',
                hint=f"Set {SETTING} to the directory of a cross-encoder, or download it first.",
            ) from error
        if model.num_labels != 1:
            raise RerankerUnavailable(
                f'the reranker "{self.name_or_path}" has {model.num_labels} outputs, not 1',
                hint="Give a cross-encoder that was trained to score relevance.",
            )
        logger.debug("loaded reranker %s", self.name_or_path)
        return model


def as_reranker(reranker: Reranker | ScoreFunction | str | Path) -> Reranker:
    """Make a reranker of whatever a user hands over: a name or path, a function, a reranker."""
    if isinstance(reranker, str | Path):
        return CrossEncoderReranker(reranker)
    return reranker if isinstance(reranker, Reranker) else FunctionReranker(reranker)


def dated_text(hit: Hit) -> str:
    """Write a hit the way the reranker reads it: its date, what it says, then its context."""
    start = _when(hit)
    text = in_context(hit.text, hit.context or "")
    if start is None:
        return text
    day = start.astimezone(timezone.utc)
    return f"[Date: {written_date(day)} ({day:%Y-%m-%d})] {text}"


def in_context(text: str, context: str) -> str:
    """Put the context behind the text, where a limit of length cuts it first."""
    return f"{text} (context: {context})" if context else text


def written_date(day: date) -> str:
    """Write a date in words, as "June 05, 2022"."""
    return f"{_MONTHS[day.month - 1]} {day:%d, %Y}"


def reranked(
    hits: Sequence[Hit],
    query: str,
    reranker: Reranker,
    *,
    reference_time: datetime,
    during: Period | None,
    candidates: int = CANDIDATES,
) -> list[Hit]:
    """Order the first hits by what the reranker says; the others keep their order behind them.

    Args:
        hits: In fused order.
        query: The question as the user asked it.
        reranker: Scores from 0 to 1.
        reference_time: The moment of asking, which recency counts back from.
        during: The time the question is about, or None.
        candidates: How many hits the reranker reads, at least 1.

    Raises:
        RerankerUnavailable: the reranker cannot be used.

    """
    head, tail = hits[:candidates], hits[candidates:]
    scores = reranker.scores(query, [dated_text(hit) for hit in head]) if head else []
    scored = [
        replace(
            hit,
            rerank_score=score,
            final_score=score * recency_boost(hit, reference_time) * period_boost(hit, during),
        )
        for hit, score in zip(head, scores, strict=True)
    ]
    scored.sort(key=lambda hit: (-hit.final_score, hit.fused_rank))
    ordered = [*scored, *(replace(hit, final_score=0.0) for hit in tail)]
    return [replace(hit, rank=rank) for rank, hit in enumerate(ordered, 1)]


def recency_boost(hit: Hit, reference_time: datetime) -> float:
    """Give 1.1 to what is of today, falling linearly to 0.9 for what is a year old or older.

    Returns:
        0.9 to 1.1; 1.0 for a hit without a date.

    """
    start = _when(hit)
    if start is None:
        return 1.0
    return _boost(1 - (reference_time - start) / _DAY / _RECENCY_DAYS)


def period_boost(hit: Hit, during: Period | None) -> float:
    """Give 1.1 to what lies in the period asked about, falling linearly to 0.9 outside it.

    It has fallen to 0.9 at a distance as long as the period itself, or a week where that is
    longer.

    Returns:
        0.9 to 1.1; 1.0 without a period or for a hit without a date.

    """
    first, last = _extent(hit)
    if during is None or first is None or last is None:
        return 1.0
    start, end = during
    distance = max(
        start - last if start is not None else timedelta(0),
        first - end if end is not None else timedelta(0),
        timedelta(0),
    )
    reach = max(end - start, _SLACK) if start is not None and end is not None else _SLACK
    return _boost(1 - distance / reach)


def _boost(nearness: float) -> float:
    return 1 + _ALPHA * (min(max(nearness, 0.0), 1.0) - 0.5)


def _extent(hit: Hit) -> Period:
    """Say from when to when a hit is about, as far as that is known."""
    start, end = hit.occurred or (hit.mentioned_at, None)
    return start or end, end or start


def _when(hit: Hit) -> datetime | None:
    return _extent(hit)[0]


def _sigmoid(value: float) -> float:
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    return math.exp(value) / (1 + math.exp(value))
