"""How the work of a function of a text grows with the text, whatever machine it runs on."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

FACTOR = 8
MOST = 20  # times the work of an eighth: n log n would be about 10, the square 64


def grows_by(read: Callable[[str], object], piece: str, size: int = 1_000) -> float:
    """Processor time for ``piece`` repeated to ``size`` characters over that for an eighth of it,
    each the least of twenty, taken in turn."""
    texts = [(piece * size)[: size // FACTOR], (piece * size)[:size]]
    least = [float("inf")] * len(texts)
    for _ in range(20):
        for n, text in enumerate(texts):
            began = process_time()
            read(text)
            least[n] = min(least[n], process_time() - began)
    return least[1] / least[0]
