"""Rerankers: cross-encoders, which read the question and a candidate together.

They return a calibrated relevance from 0 to 1.
"""

from __future__ import annotations

import logging
import math
import os
import threading
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pgrecall.errors import InvalidArgument, RerankerUnavailable
from pgrecall.inference import packaged
from pgrecall.inference.endpoints import HttpReranker
from pgrecall.inference.english import is_of_another_language
from pgrecall.inference.interfaces import Reranker, ScoreFunction
from pgrecall.inference.known_words import known_share
from pgrecall.inference.runtime import (
    LoadedOnce,
    bounded,
    limit_torch,
    onnx_session,
    quiet_loading,
    settled,
)
from pgrecall.inference.worker import WORKER, Model, Reading

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

logger = logging.getLogger(__name__)

SETTING = "PGRECALL_RERANKER"
NONE = "none"
"""Keep the fused order."""
LATE_INTERACTION = "late-interaction"
"""The default: compare token vectors, if the embedder makes them."""
CROSS_ENCODER = "cross-encoder"
"""Read question and text together with the packaged cross-encoder."""
PACKAGED = packaged.directory("reranker")
"""The directory of the packaged model."""

_MODEL = "model.onnx"
_REMEMBERED = 10_000
_TOKENS = 192
_CHARACTERS = 16 * _TOKENS  # enough for that many tokens
_PARTS = 3  # maximum parts of a long text
_OVERLAP = 24  # tokens shared by two parts
CONTEXT = " (context: "

T = TypeVar("T")
Pair = tuple[str, str]
"""A query and a text."""


class FunctionReranker:
    """A reranker made from a function."""

    def __init__(self, function: ScoreFunction) -> None:
        """Wrap a function."""
        self._function = function

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one relevance per text, in order, each from 0 to 1."""
        return settled(self._function(query, texts))


class _Model(LoadedOnce[T]):
    """A cross-encoder, loaded on first use, with a cache of its last answers.

    It reads question and text together, so nothing can be cached for a text alone.
    """

    def __init__(self, name_or_path: str | Path, batch_size: int, at_once: int | None) -> None:
        super().__init__()
        self.name_or_path = name_or_path
        self._reader = Model(self._read, batch_size=batch_size, at_once=at_once)
        self._memory_lock = threading.Lock()
        self._remembered: OrderedDict[bytes, float] = OrderedDict()

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one relevance per text, in order: the sigmoid of the model's answer.

        Raises:
            RerankerUnavailable: a package or the model is missing, or the model does not have one
                output.

        """
        return self.scores_within(query, texts, math.inf)

    def scores_within(self, query: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        """Return the relevance of the first texts, as many as time allows.

        Args:
            query: The question.
            texts: The texts, most promising first.
            seconds: Time limit, including the wait for other callers but not loading the model.

        Raises:
            RerankerUnavailable: as scores().

        """
        return self.submit(query, texts, seconds=seconds).result().found

    def submit(
        self,
        query: str,
        texts: Sequence[str],
        *,
        seconds: float = math.inf,
        is_enough: Callable[[float], bool] | None = None,
    ) -> Future[Reading[float]]:
        """Let the worker of the process read texts.

        Args:
            query: The question.
            texts: The texts, most promising first.
            seconds: Time limit, including the wait for other callers.
            is_enough: Called with each relevance, in order; returns true if no more are needed.

        """
        pairs = [(query, text) for text in texts]
        known = {}
        with self._memory_lock:
            for place, key in enumerate(map(_key, pairs)):
                if key in self._remembered:
                    known[place] = self._remembered[key]
                    self._remembered.move_to_end(key)
        return WORKER.submit(
            self._reader,
            pairs,
            known=known,
            begin=partial(self._begin, query),
            seconds=seconds,
            is_enough=is_enough,
        )

    def _begin(self, query: str) -> None:
        """Load the model; raise an error for a query that it cannot read."""
        self.load()

    def _read(self, pairs: list[Pair]) -> list[float]:
        scores = [*map(sigmoid, self._answers(pairs))]
        with self._memory_lock:
            for pair, score in zip(pairs, scores, strict=True):
                self._remembered[_key(pair)] = score
            while len(self._remembered) > _REMEMBERED:
                self._remembered.popitem(last=False)
        return scores

    @abstractmethod
    def _answers(self, pairs: list[Pair]) -> list[float]:
        """Return the model's outputs for pairs of query and text."""

    def _cannot_load(self, reason: str) -> RerankerUnavailable:
        return RerankerUnavailable(
            f'cannot load the reranker "{self.name_or_path}": {reason}',
            hint=f"Set {SETTING} to the directory of a cross-encoder, or download it first.",
        )

    def _outputs(self, number: int) -> RerankerUnavailable:
        return RerankerUnavailable(
            f'the reranker "{self.name_or_path}" has {number} outputs, not 1',
            hint="Use a cross-encoder that was trained to score relevance.",
        )


class CrossEncoderReranker(_Model["CrossEncoder"]):
    """A sentence-transformers cross-encoder, loaded on first use and never from the network."""

    def __init__(self, name_or_path: str | Path, *, batch_size: int = 16) -> None:
        """Choose a model; import and load nothing.

        Args:
            name_or_path: A directory, or the name of a downloaded model.
            batch_size: Candidates per forward pass, of all callers together, at least 1.

        """
        super().__init__(name_or_path, batch_size, at_once=1)

    def _answers(self, pairs: list[Pair]) -> list[float]:
        from torch.nn import Identity

        answers = self.load().predict(
            pairs, batch_size=len(pairs), activation_fn=Identity(), show_progress_bar=False
        )
        return [*map(float, answers)]

    def _load(self) -> CrossEncoder:
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise RerankerUnavailable(
                f"cannot rerank: package {error.name} is missing",
                hint="Run: pip install 'pgrecall[sentence-transformers]'",
            ) from error
        try:
            with quiet_loading():
                model = CrossEncoder(str(self.name_or_path), local_files_only=True)
        except (OSError, ValueError) as error:
            raise self._cannot_load(str(error).strip().partition("\n")[0]) from error
        if model.num_labels != 1:
            raise self._outputs(model.num_labels)
        limit_torch()
        logger.debug("loaded reranker %s", self.name_or_path)
        return model


class OnnxReranker(_Model[tuple[Any, Any]]):
    """A cross-encoder as an ONNX model on onnxruntime; by default the packaged one.

    The packaged model reads English and refuses queries that are certainly in another language.

    The worker runs pairs one by one on several threads. That is as fast as batches, needs no
    padding, can stop after any pair, and the score of a quantised model does not depend on other
    texts.

    A text that is too long for the model is read in up to three parts, and its odds are the mean of
    theirs. Its context is read as far as it fits.
    """

    def __init__(self, path: str | Path = PACKAGED, *, threads: int | None = None) -> None:
        """Choose a model; import and load nothing.

        Args:
            path: A directory with model.onnx and tokenizer.json.
            threads: How many pairs are read at once, at least 1. Default: the threads of the
                worker, one for each available core, at most 8.

        """
        super().__init__(path, 1, threads)

    def _begin(self, query: str) -> None:
        _, tokenizer = self.load()
        asked = query[:_CHARACTERS]
        if self.name_or_path == PACKAGED and is_of_another_language(
            asked, 1 - known_share(tokenizer, asked)
        ):
            raise RerankerUnavailable(
                "the packaged reranker reads English, and the query is in another language",
                hint=f"Set {SETTING} to a cross-encoder for that language, or to {NONE}.",
            )

    def _answers(self, pairs: list[Pair]) -> list[float]:
        from numpy import array, int64, logaddexp

        session, tokenizer = self.load()
        ((query, text),) = pairs
        answers = []
        for pair in _parts(tokenizer, query[:_CHARACTERS], text[:_CHARACTERS]):
            values = {
                "input_ids": pair.ids,
                "attention_mask": pair.attention_mask,
                "token_type_ids": pair.type_ids,
            }
            feed = {put.name: array([values[put.name]], int64) for put in session.get_inputs()}
            answers.append(float(session.run(None, feed)[0].item()))
        return [float(logaddexp.reduce(answers)) - math.log(len(answers))]

    def _load(self) -> tuple[Any, Any]:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise RerankerUnavailable(
                f"cannot rerank: package {error.name} is missing",
                hint="Run: pip install 'pgrecall[rerank]'",
            ) from error
        directory = Path(self.name_or_path)
        options = onnxruntime.SessionOptions()
        try:
            tokenizer = Tokenizer.from_file(str(bounded(directory / "tokenizer.json")))
            session = onnx_session(str(bounded(directory / _MODEL)), options)
        except Exception as error:  # the packages do not document their errors
            raise self._cannot_load(str(error).strip().partition("\n")[0]) from error
        shape = session.get_outputs()[0].shape
        if len(shape) > 1 and shape[-1] != 1:
            raise self._outputs(shape[-1])
        tokenizer.no_padding()
        limit = (tokenizer.truncation or {}).get("max_length", _TOKENS)
        tokenizer.enable_truncation(min(limit, _TOKENS))
        logger.debug("loaded reranker %s", self.name_or_path)
        return session, tokenizer


class LateInteractionReranker:
    """Compares the token vectors of the question with those stored beside each memory.

    A recall does this if the embedder makes token vectors, as the packaged one does. Otherwise, and
    for texts that are not stored, the cross-encoder reads the texts.
    """

    def __init__(self, otherwise: Reranker) -> None:
        """Choose the reranker for texts without token vectors."""
        self.otherwise = otherwise

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one relevance per text, in order, by the cross-encoder.

        Raises:
            RerankerUnavailable: the cross-encoder cannot be used.

        """
        return self.otherwise.scores(query, texts)


PACKAGED_CROSS_ENCODER = OnnxReranker()
"""The packaged model, shared by all clients of a process, so that it is loaded once."""
DEFAULT_RERANKER = LateInteractionReranker(PACKAGED_CROSS_ENCODER)
"""Late interaction, or the packaged cross-encoder if there are no token vectors."""
_NAMED: dict[object, Reranker] = {
    LATE_INTERACTION: DEFAULT_RERANKER,
    CROSS_ENCODER: PACKAGED_CROSS_ENCODER,
}


def as_reranker(reranker: Reranker | ScoreFunction | str | Path) -> Reranker:
    """Return a reranker for a URL, a name, a path, a function or a reranker.

    Raises:
        InvalidArgument: it is none of these.

    """
    if isinstance(reranker, str) and reranker in _NAMED:
        return _NAMED[reranker]
    if isinstance(reranker, str) and reranker.startswith(("http://", "https://")):
        return HttpReranker(reranker)
    if isinstance(reranker, str | Path):
        is_onnx = Path(reranker, _MODEL).is_file()
        return OnnxReranker(reranker) if is_onnx else CrossEncoderReranker(reranker)
    if isinstance(reranker, Reranker):
        return reranker
    if not callable(reranker):
        raise InvalidArgument(
            f"reranker must be a reranker, a function, text or a path, not {reranker!r}",
            hint=f'Pass "{LATE_INTERACTION}", "{CROSS_ENCODER}", or a function from query and texts'
            " to relevances.",
        )
    return FunctionReranker(reranker)


def chosen_reranker(
    reranker: Reranker | ScoreFunction | str | Path | bool | None,
) -> Reranker | None:
    """Return the reranker of a client: the one given, else the one the environment names.

    Args:
        reranker: DEFAULT_RERANKER or True for the one the environment names, else late interaction.
            None, False or "none" for none.

    """
    if reranker is DEFAULT_RERANKER or reranker is True:
        named = os.environ.get(SETTING)
        if named == NONE:
            return None
        return as_reranker(named) if named else DEFAULT_RERANKER
    if reranker is None or isinstance(reranker, bool) or reranker == NONE:
        return None
    return as_reranker(reranker)


def in_context(text: str, context: str) -> str:
    """Append the context to the text, so that truncation cuts the context first."""
    return f"{text}{CONTEXT}{context})" if context else text


def _key(pair: Pair) -> bytes:
    return blake2b("\0".join(pair).encode(errors="surrogatepass"), digest_size=16).digest()


def _parts(tokenizer: Any, query: str, text: str) -> Iterator[Any]:
    """Encode the query with the text, then with the parts of it that did not fit."""
    text = text.rstrip()
    end = text.rfind(CONTEXT) if CONTEXT in text else len(text)
    start = 0
    for _ in range(_PARTS):
        pair = tokenizer.encode(query, text[start:])
        yield pair
        read = [
            place for place, part in zip(pair.offsets, pair.sequence_ids, strict=True) if part == 1
        ]
        if len(read) <= _OVERLAP or start + read[-1][1] >= end:
            return
        start += read[-_OVERLAP][0]


def sigmoid(value: float) -> float:
    """Return the probability that a logit stands for."""
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    return math.exp(value) / (1 + math.exp(value))
