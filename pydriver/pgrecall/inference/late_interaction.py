"""Late interaction: relevance by comparing the token vectors of a question and a text.

The packaged embedder makes token vectors in the same forward pass as the embedding, projected to
few dimensions. Those of a text, and of its context as far as the embedder reads it, are stored
beside its embedding in four bits a number, at most 3072 bytes; of a longer text the rarer tokens
are kept. The relevance is the weighted mean over the question's tokens of the cosine to the nearest
token of the text, and rare tokens weigh more (MaxSim; Khattab and Zaharia 2020). Among many tokens
the nearest is near by chance, so a text of n tokens, more than 48, loses 0.02 * ln(n / 48). No
model runs on a candidate.
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
"""Maximum size of one text's token vectors in the schema."""
_HEADER = 2  # number of the projection, dimensions
_MANY = 48  # tokens of a text above which the nearest is near by chance
_CHANCE = 0.02  # cosine that e times as many tokens gain by chance
_ALONE = 2**18
"""Multiplications that OpenBLAS does on the calling thread. For more it wakes the others, which
then wait for work busily, each 20 ms long."""


class Embedded(list[float]):
    """An embedding, with token vectors if the embedder makes them.

    Attributes:
        tokens: The token vectors; None if there are none.
        parts: Embeddings of what follows in a text that is longer than the model reads at once, or
            of the text with its heading.

    """

    def __init__(
        self,
        numbers: Sequence[float],
        tokens: Tokens | None = None,
        parts: Sequence[Sequence[float]] = (),
    ) -> None:
        """Keep the numbers, the token vectors and the parts."""
        super().__init__(numbers)
        self.tokens = tokens
        self.parts = parts


@dataclass(frozen=True, slots=True)
class Tokens:
    """The token vectors of one text.

    Attributes:
        projection: Number of the projection; vectors of different projections cannot be compared.
        vectors: Shape (tokens, dimensions), each of length 1.
        weights: Weight of each token in a question, above 0; shape (tokens,).
        spans: Where each token of a question begins and ends in it; empty if that is unknown.

    """

    projection: int
    vectors: NDArray[float32]
    weights: NDArray[float32]
    spans: Sequence[tuple[int, int]] = ()

    def without(self, start: int, end: int) -> Tokens:
        """Return the tokens outside a part of the question; all of them if none would be left."""
        kept = [n for n, (begin, stop) in enumerate(self.spans) if stop <= start or end <= begin]
        if not kept:
            return self
        spans = [self.spans[n] for n in kept]
        return Tokens(self.projection, self.vectors[kept], self.weights[kept], spans)

    def stored(self) -> bytes | None:
        """Return the stored form; None if the text has no token."""
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
            texts: Token vectors of the texts in stored form.

        Returns:
            None for a text without token vectors of the same projection.

        """
        from numpy import concatenate, cumsum, einsum, frombuffer, log, maximum, sqrt, take, uint8

        dimensions = self.vectors.shape[1]
        header = bytes((self.projection, dimensions))
        found: list[float | None] = [None] * len(texts)
        places = [n for n, text in enumerate(texts) if text and text[:_HEADER] == header]
        if not places or not len(self.vectors):
            return found
        parts = [frombuffer(texts[n] or b"", uint8, offset=_HEADER) for n in places]
        sizes = [2 * len(part) // dimensions for part in parts]
        vectors = take(_values(), concatenate(parts), axis=0).reshape(-1, dimensions)
        rows = max(1, _ALONE // self.vectors.size)
        cosines = concatenate(
            [vectors[n : n + rows] @ self.vectors.T for n in range(0, len(vectors), rows)]
        )
        cosines /= sqrt(einsum("ij,ij->i", vectors, vectors))[:, None]
        starts = cumsum([0, *sizes[:-1]])
        nearest = maximum.reduceat(cosines, starts, axis=0)
        weighed = nearest @ (self.weights / self.weights.sum())
        weighed -= _CHANCE * log(maximum(sizes, _MANY) / _MANY)
        for place, relevance in zip(places, weighed.tolist(), strict=True):
            found[place] = min(max(relevance, 0.0), 1.0)
        return found


@cache
def _values() -> Any:
    """Return the two numbers that each byte encodes."""
    from numpy import arange, float32, stack

    byte = arange(256)
    return (stack((byte >> 4, byte & 15), axis=1) - 7.5).astype(float32)


def tokens_text(tokens: bytes) -> str:
    """Encode token vectors for the JSON of retain()."""
    return b64encode(tokens).decode("ascii")


def tokens_of(vector: object) -> Tokens | None:
    """Return the token vectors that came with an embedding."""
    return vector.tokens if isinstance(vector, Embedded) else None


def parts_of(vector: object) -> Sequence[Sequence[float]]:
    """Return the embeddings of parts of the text that came with an embedding."""
    return vector.parts if isinstance(vector, Embedded) else ()


def makes_tokens(embedder: object) -> bool:
    """Return whether an embedder makes token vectors."""
    return bool(getattr(embedder, "makes_tokens", False))
