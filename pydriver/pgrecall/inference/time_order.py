"""Whether a question asks for the latest or a former state, by its embedding.

No list of words knows all that people say: "after all the back and forth", "the earliest lodgings".
Questions that mean one of them lie on one side of a plane in the space of the packaged embedder;
bench/training/train_time_order.py finds these planes, and a file beside the model has them.
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
_SURE = 0.15  # questions that ask for neither are thirty times as many where this is learnt


@runtime_checkable
class ReadsTimeOrder(Protocol):
    """An embedder that says which state a question asks for."""

    def time_order(self, vector: Sequence[float]) -> Direction | None:
        """Return what a question with this embedding asks for; None: neither, or unsure."""
        ...


def time_order(embedder: Embedder, vector: Sequence[float]) -> Direction | None:
    """Return what an embedder says; None for one that says nothing."""
    return embedder.time_order(vector) if isinstance(embedder, ReadsTimeOrder) else None


def read_time_order(directory: Path, vector: Sequence[float]) -> Direction | None:
    """Return what the planes of a model say; None where it has none."""
    # What the planes divide comes first, also where another model's vector stands beside it.
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
    """Read bias and weights of the log odds against neither."""
    if not path.is_file():
        return {}
    found: dict[Direction, tuple[float, list[float]]] = json.loads(path.read_text("ascii"))
    return found
