"""Check the vectors that an embedder returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

from pgrecall.errors import InvalidEmbedding
from pgrecall.inference.interfaces import Embedder
from pgrecall.inference.late_interaction import Embedded, parts_of, tokens_of
from pgrecall.inference.prompts import embed_passages


def embedded(
    embedder: Embedder, texts: Sequence[str], contexts: Sequence[str] = ()
) -> list[Embedded]:
    """Embed passages, in their contexts if these are given, and check the vectors.

    Raises:
        InvalidEmbedding: the embedder did not give one usable vector for each text.
        Exception: what the embedder raised.

    """
    return checked(embedder.model, [*embed_passages(embedder, texts, contexts)], len(texts))


def checked(model: str, vectors: Sequence[object], wanted: int) -> list[Embedded]:
    """Check vectors; errors name the embedder.

    Raises:
        InvalidEmbedding: there are too few or too many vectors, they differ in length, or one is
            empty, all zeros or has a number that is not finite.

    """
    name = f'the embedder "{model}"'
    hint = "Return one list of numbers for each text, all of the same length."
    if len(vectors) != wanted:
        raise InvalidEmbedding(f"{name} gave {len(vectors)} vectors for {wanted} texts", hint=hint)
    read: list[Embedded] = []
    for n, vector in enumerate(vectors):
        numbers = to_floats(vector, f"vector {n} of {name}")
        size = sum(map(abs, numbers))
        if not isfinite(size):
            raise InvalidEmbedding(f"{name} gave a number that is not finite", hint=hint)
        if size == 0:
            raise InvalidEmbedding(f"{name} gave a vector that is empty or all zeros", hint=hint)
        if read and len(numbers) != len(read[0]):
            raise InvalidEmbedding(
                f"{name} gave vectors of {len(read[0])} and of {len(numbers)} dimensions", hint=hint
            )
        read.append(Embedded(numbers, tokens_of(vector), parts_of(vector)))
    return read


def to_floats(embedding: object, where: str = "embedding") -> list[float]:
    """Convert a list, a tuple, a numpy array, a torch tensor or a pgvector value to floats.

    Args:
        embedding: Shape (dimensions,).
        where: The name of the embedding in errors.

    Raises:
        InvalidEmbedding: the embedding is not a flat list of numbers.

    """
    for method in ("tolist", "to_list"):  # numpy and torch; pgvector
        if hasattr(embedding, method):
            embedding = getattr(embedding, method)()
    if isinstance(embedding, Iterable) and not isinstance(embedding, str | bytes | Mapping):
        try:
            return [float(number) for number in embedding]
        except (TypeError, ValueError, OverflowError):
            pass
    raise InvalidEmbedding(
        f"{where} is not a flat list of numbers",
        hint="Give one number per dimension: [0.1, 0.2, ...]",
    )
