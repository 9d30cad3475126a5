"""Late interaction: the relevance of a text by the vectors of its tokens, and of the question's.

The packaged embedder gives them in the same forward pass as the embedding, projected to few
dimensions. Those of a text are stored beside its embedding, four bits a number, as many as 3072
bytes take: the rarer tokens, where there are more. For each token of the question the nearest token
of the text counts, by its cosine, and rare tokens of the question count more (MaxSim; Khattab and
Zaharia 2020). No model runs on a candidate.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

MOST_BYTES = 3072
"""What the schema takes of one text."""
_HEADER = 2  # the number of the projection, and its dimensions


class Embedded(list[float]):
    """An embedding, and the vectors of its tokens where the embedder makes them.

    Attributes:
        tokens: The vectors of the tokens; None where there are none.

    """

    def __init__(self, numbers: Sequence[float], tokens: Tokens | None = None) -> None:
        """Keep both."""
        super().__init__(numbers)
        self.tokens = tokens


@dataclass(frozen=True, slots=True)
class Tokens:
    """The vectors of the tokens of one text.

    Attributes:
        projection: The number of what made them: those of another cannot be compared.
        vectors: Shape (tokens, dimensions), each of length 1.
        weights: How much each token counts in a question, above 0; shape (tokens,).

    """

    projection: int
    vectors: NDArray[float32]
    weights: NDArray[float32]

    def stored(self) -> bytes | None:
        """Write them as they are stored; None where the text has no token."""
        from numpy import absolute, argsort, clip, floor, sort, uint8

        dimensions = self.vectors.shape[1]
        most = (MOST_BYTES - _HEADER) * 2 // dimensions
        kept = sort(argsort(-self.weights, kind="stable")[:most])
        vectors = self.vectors[kept]
        if not len(vectors):
            return None
        largest = absolute(vectors).max(axis=1, keepdims=True)
        codes = clip(floor(vectors / largest * 8) + 8, 0, 15).astype(uint8)
        pairs: bytes = (codes[:, 0::2] << 4 | codes[:, 1::2]).tobytes()
        return bytes((self.projection, dimensions)) + pairs

    def relevances(self, texts: Sequence[bytes | None]) -> list[float | None]:
        """Return the relevance of each text for this question, 0 to 1.

        Args:
            texts: Token vectors as they are stored.

        Returns:
            None for a text without token vectors of the same projection.

        """
        from numpy import concatenate, cumsum, einsum, frombuffer, maximum, sqrt, uint8

        dimensions = self.vectors.shape[1]
        header = bytes((self.projection, dimensions))
        found: list[float | None] = [None] * len(texts)
        places = [n for n, text in enumerate(texts) if text and text[:_HEADER] == header]
        if not places or not len(self.vectors):
            return found
        parts = [frombuffer(texts[n] or b"", uint8, offset=_HEADER) for n in places]
        sizes = [2 * len(part) // dimensions for part in parts]
        vectors = _values()[concatenate(parts)].reshape(-1, dimensions)
        cosines = vectors @ self.vectors.T
        cosines /= sqrt(einsum("ij,ij->i", vectors, vectors))[:, None]
        starts = cumsum([0, *sizes[:-1]])
        nearest = maximum.reduceat(cosines, starts, axis=0)
        weighed = nearest @ (self.weights / self.weights.sum())
        for place, relevance in zip(places, weighed.tolist(), strict=True):
            found[place] = min(max(relevance, 0.0), 1.0)
        return found


@cache
def _values() -> Any:
    """Return the two numbers that each byte stands for."""
    from numpy import arange, float32, stack

    byte = arange(256)
    return (stack((byte >> 4, byte & 15), axis=1) - 7.5).astype(float32)


def tokens_text(tokens: bytes) -> str:
    """Write token vectors as retain() takes them in JSON."""
    return b64encode(tokens).decode("ascii")


def stored_tokens(vector: object) -> dict[str, str]:
    """Return field tokens of what is stored with an embedding; nothing where there are none."""
    tokens = tokens_of(vector)
    stored = tokens.stored() if tokens else None
    return {"tokens": tokens_text(stored)} if stored else {}


def tokens_of(vector: object) -> Tokens | None:
    """Return the token vectors that came with an embedding."""
    return vector.tokens if isinstance(vector, Embedded) else None


def makes_tokens(embedder: object) -> bool:
    """Tell whether an embedder gives token vectors beside its embeddings."""
    return bool(getattr(embedder, "makes_tokens", False))
