"""Detect from its embedding whether a question asks for the latest or a former state.

No list of words covers all wordings, such as "after all the back and forth" or "the earliest
lodgings". In the space of the packaged embedder a plane separates the questions that ask for a
state. bench/training/train_time_order.py fits one plane for each state; a file beside the model
holds them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from math import exp, hypot
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pgrecall.inference.interfaces import Embedder

Direction = Literal["latest", "former"]
FILE = "time_order.json"
_SURE = 0.15  # in the training data thirty times as many questions ask for neither


@runtime_checkable
class ReadsTimeOrder(Protocol):
    """An embedder that detects which state a question asks for."""

    def time_order(self, vector: Sequence[float]) -> Direction | None:
        """Return which state a question asks for, by its embedding; None for neither or unsure."""
        ...


def time_order(embedder: Embedder, vector: Sequence[float]) -> Direction | None:
    """Return the state that an embedder detects; None if it detects none."""
    return embedder.time_order(vector) if isinstance(embedder, ReadsTimeOrder) else None


def read_time_order(directory: Path, vector: Sequence[float]) -> Direction | None:
    """Return the state by the planes of a model; None if the model has no planes."""
    # The planes apply to the first elements; those of another model may follow.
    planes = _planes(directory / FILE)
    own = vector[: max((len(weights) for _, weights in planes.values()), default=0)]
    length = hypot(*own) or 1.0
    odds = {
        direction: exp(bias + sum(w * x for w, x in zip(weights, own, strict=True)) / length)
        for direction, (bias, weights) in planes.items()
    }
    total = 1 + sum(odds.values())
    direction = max(odds, key=odds.__getitem__, default=None)
    return direction if direction is not None and odds[direction] / total > _SURE else None


@lru_cache
def _planes(path: Path) -> dict[Direction, tuple[float, list[float]]]:
    """Read the bias and weights of each state's log odds against neither."""
    if not path.is_file():
        return {}
    found: dict[Direction, tuple[float, list[float]]] = json.loads(path.read_text("ascii"))
    return found
