"""Calibration: make the similarities of any embedding model comparable.

Options were fitted to all-MiniLM-L6-v2, where a similarity of 0.2 is low and facts of 0.7 are
similar. Other models have other cosines; e5 gives 0.7 to 0.9 for any two texts. So the
database subtracts the mean vector of a sample. Then two cosines are chosen so that as many pairs of
texts reach them as reach 0.2 and 0.7 with all-MiniLM-L6-v2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pgrecall.errors import EmbedderUnavailable, InvalidArgument
from pgrecall.inference.embedders import MINILM_EMBEDDER, as_embedder
from pgrecall.inference.interfaces import Embedder, EmbedFunction, Role
from pgrecall.inference.prompts import embed_as
from pgrecall.inference.vectors import checked

if TYPE_CHECKING:
    from numpy import ndarray

    Matrix = ndarray[Any, Any]

LEAST_TEXTS = 100
LEAST_QUESTIONS = 30
MOST = 2000
"""The maximum number of texts, since all pairs of texts are compared."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Constants of an embedding model.

    Attributes:
        model: Name of the model.
        mean: Mean of its embeddings of passages, shape (dimensions,).
        low_cosine: Cosine, after subtracting the mean, that counts as a similarity of 0.2.
        high_cosine: Cosine that counts as 0.7.

    """

    model: str
    mean: Sequence[float]
    low_cosine: float
    high_cosine: float

    def as_json(self) -> dict[str, object]:
        """Return the constants as the database takes them."""
        return {
            "model": self.model,
            "mean": [float(f"{x:.5g}") for x in self.mean],
            "low_cosine": round(self.low_cosine, 4),
            "high_cosine": round(self.high_cosine, 4),
        }


def calibrate(
    embedder: Embedder | EmbedFunction,
    texts: Iterable[str],
    *,
    questions: Iterable[str] = (),
    reference: Embedder | EmbedFunction = MINILM_EMBEDDER,
) -> Calibration:
    """Measure the constants of an embedding model.

    Args:
        embedder: The embedder of the model.
        texts: A sample of the texts to be stored, in a language that both models know. At least
            100; the first 2,000 are used.
        questions: A sample of questions, which need not be about the texts. At least 30; the first
            2,000 are used. Default: the texts, which is less exact.
        reference: The embedder to match. Default: all-MiniLM-L6-v2, to which the options are
            fitted.

    Raises:
        InvalidArgument: texts or questions are too few or too similar.
        EmbedderUnavailable: a package or a model is missing.
        InvalidEmbedding: an embedder did not give one usable vector for each text.

    """
    sample, asked = _sample("texts", texts, LEAST_TEXTS), _sample("questions", questions, 0)
    if asked:
        _sample("questions", asked, LEAST_QUESTIONS)
    own, known = as_embedder(embedder, None), as_embedder(reference, None)
    passages, known_passages = (_directions(one, "document", sample) for one in (own, known))
    mean, known_mean = passages.mean(axis=0), known_passages.mean(axis=0)
    if asked:
        # The reference is used without subtracting a mean.
        low = _as_many_reach(
            0.2,
            _cosines(_directions(known, "query", asked), known_passages),
            _cosines(_directions(own, "query", asked) - mean, passages - mean),
        )
    else:
        # Texts have more in common with one another than questions have with texts.
        low = _as_many_reach(
            0.2,
            _pairs(_directions(known, "query", sample) - known_mean, known_passages - known_mean),
            _pairs(_directions(own, "query", sample) - mean, passages - mean),
        )
    high = _as_many_reach(
        0.7, _pairs(known_passages, known_passages), _pairs(passages - mean, passages - mean)
    )
    if not -1 < low < high < 1:
        raise InvalidArgument(
            f"the cosines of the sample, {low:.3f} and {high:.3f}, are not -1 < low < high < 1",
            hint="Give more texts, including some that say nearly the same.",
        )
    return Calibration(own.model, mean.tolist(), low, high)


def _sample(name: str, texts: Iterable[str], least: int) -> list[str]:
    sample = list(dict.fromkeys(text for text in texts if text.strip()))[:MOST]
    if len(sample) < least:
        raise InvalidArgument(
            f"a sample of {len(sample)} different {name} is too small",
            hint=f"Give at least {least}, similar to those of the bank.",
        )
    return sample


def _directions(embedder: Embedder, role: Role, texts: Sequence[str]) -> Matrix:
    """Embed texts as vectors of length 1."""
    try:
        import numpy as np
    except ImportError as error:
        raise EmbedderUnavailable(
            "cannot calibrate: package numpy is missing", hint="Run: pip install 'pgrecall[embed]'"
        ) from error
    vectors = checked(embedder.model, [*embed_as(embedder, role, texts)], len(texts))
    return _units(np.array(vectors, dtype=np.float32))


def _units(vectors: Matrix) -> Matrix:
    return cast("Matrix", vectors / (vectors**2).sum(axis=1, keepdims=True) ** 0.5)


def _cosines(vectors: Matrix, others: Matrix) -> Matrix:
    return cast("Matrix", (_units(vectors) @ _units(others).T).ravel())


def _pairs(vectors: Matrix, others: Matrix) -> Matrix:
    """Compare each text with all others."""
    import numpy as np

    cosines = _units(vectors) @ _units(others).T
    return cast("Matrix", cosines[~np.eye(len(vectors), dtype=bool)])


def _as_many_reach(similarity: float, known: Matrix, own: Matrix) -> float:
    """Return the cosine reached by as many pairs of one model as reach a similarity of another."""
    import numpy as np

    return float(np.quantile(own, 1 - (known >= similarity).mean()))
