"""Reranking: a cross-encoder reads the question and each candidate together.

Its answer is a calibrated relevance from 0 to 1. It is blended with the fused order, as the two
err differently: the fused score gives the prior odds before the text is read. Only such a
relevance is multiplied by the bounded boosts for recency, for proximity to the time asked about,
and for the number of sources that state it; a fused score, a sum of 1 / (k + rank), is not.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from functools import partial
from hashlib import blake2b
from heapq import heappush, heappushpop
from http.client import HTTPException
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pgrecall._version import __version__
from pgrecall.errors import RerankerUnavailable
from pgrecall.inference.runtime import limit_torch, quiet_loading, settled
from pgrecall.inference.worker import WORKER, Model, Reading
from pgrecall.rows import Hit, Period

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

logger = logging.getLogger(__name__)

SETTING = "PGRECALL_RERANKER"
KEY_SETTING = "PGRECALL_RERANKER_KEY"
NONE = "none"
"""The value of the setting that keeps the fused order."""
PACKAGED = Path(__file__).parents[1] / "reranker"
"""The directory of the model that comes with the driver."""
CANDIDATES = 50
SECONDS = 2.0
MODES = ("blend", "replace")
BOOSTS: Mapping[str, float] = {"recency": 0.0, "period": 0.0, "proof": 0.0}
"""Alpha of each boost, at most half of which a score gains or loses: 0.2 is ten percent. None by
default: the reranker reads the dates, and no alpha improved on that (bench/README.md)."""

_MODEL = "model.onnx"
_REMEMBERED = 10_000
_TOKENS = 192
_CHARACTERS = 16 * _TOKENS  # enough characters for that many tokens
_PARTS = 3  # in which a text is read that is longer than what is read at once
_OVERLAP = 24  # tokens of a part that the next one begins with
_LEAST = 12  # hits that are read at least, and of those returned
_DEEP = 0.09  # times the square of those returned are read at least: 36 of twenty
_PLACES = 3  # first places that are settled, where no other hit would come even with
_HIGH = 0.88  # this relevance: see bench/README.md
_PRIOR = 6.0  # power of the share of the best fused score
_UNSEEN = ("graph", "key")  # arms that use evidence outside the text
_ONE_OF_MANY = 0.5  # what a doubt counts where a source has rows that are not read
_SESSION = 4.0  # what a session's share of all that is likely adds to the logit of its hits
_PAUSE = timedelta(hours=1)  # between two sessions, at least
_NEVER = datetime.min.replace(tzinfo=timezone.utc)  # when what has no time was said
_PATH_LENGTH = 320  # characters of a path, so that the fact behind it is not cut off
_FOREIGN = 0.25  # over it are 0.6% of XQuAD's questions in English, 89% in German, all in Chinese
_UNKNOWN = "[UNK]"
_CONTEXT = " (context: "
_SURE = 1e-6  # probabilities are kept within this and 1 minus this
_RECENCY_DAYS = 365.0
_SLACK = timedelta(days=7)
_DAY = timedelta(days=1)
_MONTHS = (  # of the models' English, whatever the locale
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DATE_WORDS = re.compile(
    rf"\b(?:{'|'.join(_MONTHS)}|\d+(?:st|nd|rd|th)?|the|of|in|on|from|to|between|and|until|since"
    r"|before|after|during)\b|[^\w\s]",
    re.IGNORECASE,
)

Pair = tuple[str, str]
"""A query and a text."""
ScoreFunction = Callable[[str, Sequence[str]], "Sequence[float] | Awaitable[Sequence[float]]"]
"""A function from a query and texts to one relevance each, 0 to 1; may be async."""


@runtime_checkable
class Reranker(Protocol):
    """Scores the relevance of each text for a query."""

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one relevance per text, in order, each from 0 to 1."""
        ...


@runtime_checkable
class PunctualReranker(Reranker, Protocol):
    """A reranker that can stop at a deadline; others have no limit."""

    def scores_within(self, query: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        """Return the relevance of the first texts, as many as time allows."""
        ...


@runtime_checkable
class WorkedReranker(Protocol):
    """A reranker that the worker of the process runs."""

    def submit(
        self,
        query: str,
        texts: Sequence[str],
        *,
        seconds: float = math.inf,
        is_enough: Callable[[float], bool] | None = None,
    ) -> Future[Reading[float]]:
        """Let it read texts, as many as time allows and as are needed."""
        ...


class FunctionReranker:
    """A reranker made of any function from a query and texts to relevances."""

    def __init__(self, function: ScoreFunction) -> None:
        """Wrap a function."""
        self._function = function

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one relevance per text, in order, each from 0 to 1."""
        return settled(self._function(query, texts))


class _Model(ABC):
    """A cross-encoder, loaded when first used, with a cache of its last answers.

    It reads question and text together: nothing of a text alone could be kept for other questions.
    """

    def __init__(self, name_or_path: str | Path, batch_size: int, at_once: int | None) -> None:
        self.name_or_path = name_or_path
        self._reader = Model(self._read, batch_size=batch_size, at_once=at_once)
        self._lock = threading.Lock()
        self._memory_lock = threading.Lock()  # of its own: loading takes long
        self._remembered: OrderedDict[bytes, float] = OrderedDict()

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one relevance per text, in order: the sigmoid of the model's answer.

        Raises:
            RerankerUnavailable: a package or the model is missing, or it is not a cross-encoder
                with one output.

        """
        return self.scores_within(query, texts, math.inf)

    def scores_within(self, query: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        """Return the relevance of the first texts, as many as time allows.

        Args:
            query: The question.
            texts: The more promising first.
            seconds: Time to read them, waiting for other callers included; loading the model does
                not count.

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
            texts: The more promising first.
            seconds: Time to read them, waiting for other callers included.
            is_enough: Called with each relevance, in order; true where no further one is needed.

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

    @abstractmethod
    def load(self) -> object:
        """Load the model, unless it is loaded."""

    def _begin(self, query: str) -> None:
        """Load the model; refuse a query that it cannot read."""
        self.load()

    def _read(self, pairs: list[Pair]) -> list[float]:
        scores = [*map(_sigmoid, self._answers(pairs))]
        with self._memory_lock:
            for pair, score in zip(pairs, scores, strict=True):
                self._remembered[_key(pair)] = score
            while len(self._remembered) > _REMEMBERED:
                self._remembered.popitem(last=False)
        return scores

    @abstractmethod
    def _answers(self, pairs: list[Pair]) -> list[float]:
        """Return the model's answers to queries and texts."""

    def _cannot_load(self, reason: str) -> RerankerUnavailable:
        return RerankerUnavailable(
            f'cannot load the reranker "{self.name_or_path}": {reason}',
            hint=f"Set {SETTING} to the directory of a cross-encoder, or download it first.",
        )

    def _outputs(self, number: int) -> RerankerUnavailable:
        return RerankerUnavailable(
            f'the reranker "{self.name_or_path}" has {number} outputs, not 1',
            hint="Give a cross-encoder that was trained to score relevance.",
        )


class CrossEncoderReranker(_Model):
    """A sentence-transformers cross-encoder, loaded when first used, never from the network."""

    def __init__(self, name_or_path: str | Path, *, batch_size: int = 16) -> None:
        """Choose a model; nothing is imported or loaded yet.

        Args:
            name_or_path: A directory, or the name of a model that has been downloaded before.
            batch_size: Candidates per forward pass, of all callers, at least 1.

        """
        super().__init__(name_or_path, batch_size, at_once=1)
        self._loaded: CrossEncoder | None = None

    def load(self) -> CrossEncoder:
        """Load the model, unless it is loaded.

        Raises:
            RerankerUnavailable: as scores().

        """
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

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


class OnnxReranker(_Model):
    """A cross-encoder as ONNX model, run by onnxruntime; without a path the packaged one.

    The packaged one reads English, and declines a query with too many words it does not know.

    Each pair runs alone, several at a time, on the threads of the worker: that costs no more than
    batches, needs no padding, can stop after any pair, and the score of a quantised model does not
    depend on the other texts.

    A text longer than what the model reads at once is read in up to three parts, and its odds are
    the mean of theirs. What stands behind it as context is read as far as it fits.
    """

    def __init__(self, path: str | Path = PACKAGED, *, threads: int | None = None) -> None:
        """Choose a model; nothing is imported or loaded yet.

        Args:
            path: A directory with model.onnx and tokenizer.json.
            threads: How many pairs are read at a time, at least 1. Default: as many as the worker
                of the process has threads: one for each core that it may use, 8 at most.

        """
        super().__init__(path, 1, threads)
        self._loaded: tuple[Any, Any] | None = None

    def load(self) -> tuple[Any, Any]:
        """Load the session and the tokenizer, unless they are loaded.

        Raises:
            RerankerUnavailable: as scores().

        """
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _begin(self, query: str) -> None:
        _, tokenizer = self.load()
        if self.name_or_path == PACKAGED and _foreign_share(tokenizer, query) > _FOREIGN:
            raise RerankerUnavailable(
                "the packaged reranker reads English, and the query does not look like it",
                hint=f"Set {SETTING} to a cross-encoder of that language, or to {NONE}.",
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
        options.intra_op_num_threads = 1
        try:
            tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
            session = onnxruntime.InferenceSession(
                str(directory / _MODEL), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # neither package documents what it raises
            raise self._cannot_load(str(error).strip().partition("\n")[0]) from error
        shape = session.get_outputs()[0].shape
        if len(shape) > 1 and shape[-1] != 1:
            raise self._outputs(shape[-1])
        tokenizer.no_padding()
        limit = (tokenizer.truncation or {}).get("max_length", _TOKENS)
        tokenizer.enable_truncation(min(limit, _TOKENS))
        logger.debug("loaded reranker %s", self.name_or_path)
        return session, tokenizer


class HttpReranker:
    """A reranker behind an endpoint: that of TEI or, where a model is named, one like Cohere's."""

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        batch_size: int = 32,
        timeout: float = 30.0,
    ) -> None:
        """Choose an endpoint; nothing is sent yet.

        Args:
            url: Of the endpoint with its path, such as "http://localhost:8080/rerank".
            model: Its model, for an API like Cohere's.
            api_key: Sent as bearer token. Default: PGRECALL_RERANKER_KEY.
            batch_size: Texts in one request, at least 1; TEI takes 32 by default.
            timeout: Seconds for one request.

        """
        self.url = url
        self._model = model
        self._key = api_key or os.environ.get(KEY_SETTING)
        self._batch_size = batch_size
        self._timeout = timeout

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one relevance per text, in order.

        Raises:
            RerankerUnavailable: the endpoint refuses, is out of reach, or answers something else.

        """
        return self.scores_within(query, texts, math.inf)

    def scores_within(self, query: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        """Return the relevance of the first texts, as many as time allows.

        Args:
            query: The question.
            texts: The more promising first.
            seconds: Time for all requests.

        Raises:
            RerankerUnavailable: as scores().

        """
        end = time.monotonic() + seconds
        scores: list[float] = []
        while len(scores) < len(texts) and (left := end - time.monotonic()) > 0:
            batch = texts[len(scores) : len(scores) + self._batch_size]
            try:
                scores += self._batch_scores(query, batch, end)
            except TimeoutError as error:
                if left < self._timeout:
                    break  # the caller's time was up, not that of the request
                raise self._failed("it does not answer") from error
        return scores

    def _batch_scores(self, query: str, texts: Sequence[str], end: float) -> list[float]:
        body: dict[str, object] = {"query": query, "texts": [*texts], "truncate": True}
        if self._model is not None:
            body = {"query": query, "documents": [*texts], "model": self._model}
            body["top_n"] = len(texts)
        answer = self._sent(json.dumps(body).encode(), end)
        try:
            rows = answer["results"] if isinstance(answer, dict) else answer
            found = {
                int(row["index"]): float(row.get("relevance_score", row.get("score")))
                for row in rows
            }
            return [found[n] for n in range(len(texts))]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._failed("it did not answer with a score for each text") from error

    def _sent(self, body: bytes, end: float) -> Any:
        """Send a request; again, a little later, where the endpoint is busy."""
        headers = {"Content-Type": "application/json", "User-Agent": f"pgrecall/{__version__}"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        for pause in (*_PAUSES, None):
            limit = max(min(self._timeout, end - time.monotonic()), 0.001)
            request = Request(self.url, body, headers)
            try:
                with _OPENER.open(request, timeout=limit) as response:
                    return json.load(response)
            except HTTPError as error:
                with error:
                    said = error.read(500).decode(errors="replace").strip()
                if error.code not in _BUSY or pause is None or time.monotonic() + pause > end:
                    raise self._failed(f"HTTP {error.code} {error.reason}: {said}") from error
                time.sleep(pause)
            except TimeoutError:
                raise
            except (OSError, ValueError, HTTPException) as error:
                if isinstance(getattr(error, "reason", None), TimeoutError):
                    raise TimeoutError from error
                raise self._failed(str(error)) from error
        raise AssertionError("the last try returns or raises")

    def _failed(self, reason: str) -> RerankerUnavailable:
        return RerankerUnavailable(
            f"the reranker at {self.url} failed: {reason}",
            hint=f"Check the URL with its path, and {KEY_SETTING} where it needs a key.",
        )


class _NoRedirects(HTTPRedirectHandler):
    """Sends no text and no key to another place than the one that was named."""

    def redirect_request(self, *_: object) -> None:
        """Follow nothing: the answer is an error then."""


_OPENER = build_opener(_NoRedirects)
_BUSY = (429, 502, 503, 504)
_PAUSES = (0.1, 0.4)


DEFAULT_RERANKER = OnnxReranker()
"""The packaged model, shared by all clients of a process so that it is loaded once."""


def as_reranker(reranker: Reranker | ScoreFunction | str | Path) -> Reranker:
    """Make a reranker of a URL, a name or path, a function, or a reranker."""
    if isinstance(reranker, str) and reranker.startswith(("http://", "https://")):
        return HttpReranker(reranker)
    if isinstance(reranker, str | Path):
        is_onnx = Path(reranker, _MODEL).is_file()
        return OnnxReranker(reranker) if is_onnx else CrossEncoderReranker(reranker)
    return reranker if isinstance(reranker, Reranker) else FunctionReranker(reranker)


def chosen_reranker(
    reranker: Reranker | ScoreFunction | str | Path | bool | None,
) -> Reranker | None:
    """Return the reranker that a client uses: the one given, else what the environment names.

    Args:
        reranker: DEFAULT_RERANKER or True for what the environment names, or else the packaged
            one; None, False or "none" for none.

    """
    if reranker is DEFAULT_RERANKER or reranker is True:
        named = os.environ.get(SETTING)
        if named == NONE:
            return None
        return as_reranker(named) if named else DEFAULT_RERANKER
    if reranker is None or isinstance(reranker, bool) or reranker == NONE:
        return None
    return as_reranker(reranker)


def dated_text(hit: Hit, during: Period | None = None, asked: str = "") -> str:
    """Write a hit as input of the reranker: its date, its path, its text, its context.

    Args:
        hit: The hit. Without a known time it gets no date; a message has that of sending.
        during: The time the question is about, or None.
        asked: The words of the question for it, such as "last week", which stand beside the date of
            facts that began or ended then: a reranker cannot compute dates. Not where they are a
            date themselves, "in May 2026": said twice, it costs LoCoMo more than it gains.

    """
    text = in_context(hit.text, hit.context or "")
    path = (hit.via or {}).get("text")
    if isinstance(path, str):
        text = f"{path[:_PATH_LENGTH]} → {text}"
    start = _when(hit)
    if start is None:
        return text
    day = start.astimezone(timezone.utc)
    is_reckoned = _DATE_WORDS.sub("", asked).strip() != ""
    words = f", {asked}" if is_reckoned and during and _is_within(hit, during) else ""
    return f"[Date: {written_date(day)} ({day:%Y-%m-%d}){words}] {text}"


def in_context(text: str, context: str) -> str:
    """Put the context behind the text, where a limit of length cuts it first."""
    return f"{text}{_CONTEXT}{context})" if context else text


def written_date(day: date) -> str:
    """Write a date in words, as "June 05, 2022"."""
    return f"{_MONTHS[day.month - 1]} {day:%d, %Y}"


class Order:
    """How hits are ordered by the relevance that a reranker gives them.

    The order is that of the relevance times its boosts. Before, "blend" multiplies the odds of the
    relevance, r / (1 - r), with (fused score / best fused score) ^ 6, as a prior. And it takes
    doubts (odds below 1) the less seriously the more of the fused score came from the graph and
    from keys: what they know of a text does not stand in it. What answers a question is often said
    together, so the odds are multiplied by e ^ (4 x (share of the hit's session - largest share)):
    a session is what was said without a pause of an hour, and its share is of the sum of all such
    relevances. Hits of unknown time are one session.

    A hit that a path led to (via) is read with what the facts on it say. In "blend" it may rise by
    that, and never falls below the place that fusion gave it, for most cross-encoders never saw a
    path; to the packaged one, which did, it makes no difference (bench/README.md). It then takes
    the final score of the best hit behind it.
    """

    def __init__(
        self,
        hits: Sequence[Hit],
        *,
        reference_time: datetime,
        during: Period | None,
        mode: str = "blend",
        boosts: Mapping[str, float] = BOOSTS,
        is_collapsed: bool = False,
    ) -> None:
        """Weigh the hits before they are read.

        Args:
            hits: In fused order.
            reference_time: The moment of asking, which recency counts back from.
            during: The time the question is about, or None.
            mode: "blend" with the fused order, or "replace" it.
            boosts: Alpha of "recency", "period" and "proof", 0 to 1 each; as in BOOSTS where not
                named.
            is_collapsed: Whether each hit is the best row of its source.

        """
        self._hits = hits
        self._is_blend = mode == "blend"
        self._doubt = _ONE_OF_MANY if is_collapsed else 1.0
        self._best = max((hit.score for hit in hits), default=0.0)
        alpha = {**BOOSTS, **boosts}
        self._boosts = [
            recency_boost(hit, reference_time, alpha["recency"])
            * period_boost(hit, during, alpha["period"])
            * proof_boost(hit, alpha["proof"])
            for hit in hits
        ]

    def final(self, place: int, relevance: float) -> float:
        """Return the final score of the hit at a place, from 0; whatever its session says."""
        return self._likely(place, relevance) * self._boosts[place]

    def hits(self, scores: Sequence[float]) -> list[Hit]:
        """Order the hits.

        Args:
            scores: The relevance of the first ones. The others keep their order behind them.

        Returns:
            All hits; those that were read have a rerank_score.

        """
        read = self._hits[: len(scores)]
        likely = [self._likely(place, score) for place, score in enumerate(scores)]
        if self._is_blend:
            likely = _by_session(read, likely)
        head = [
            replace(hit, rerank_score=score, boost=boost, final_score=final * boost)
            for hit, score, final, boost in zip(read, scores, likely, self._boosts, strict=False)
        ]
        head.sort(key=_by_score)
        if self._is_blend:
            head = _with_paths_held(read, head)
        tail = [replace(hit, final_score=0.0) for hit in self._hits[len(read) :]]
        return [replace(hit, rank=rank) for rank, hit in enumerate([*head, *tail], 1)]

    def _likely(self, place: int, relevance: float) -> float:
        if not self._is_blend:
            return relevance
        return _blended(self._hits[place], relevance, self._best, self._doubt)


class FirstPlaces:
    """Tells when the first places are settled, so that no further hit needs to be read.

    That is where a high relevance would lead none of the hits that are left to the first three: the
    fused score of a hit bounds how high it can come, its session aside. Where the first ones answer
    the question twelve are read of ten that are returned, 36 of twenty, and all where none does.

    Attributes:
        are_settled: Whether they are.

    """

    def __init__(self, order: Order, candidates: int, returned: int | None) -> None:
        """Start with nothing read.

        Args:
            order: How the hits are ordered.
            candidates: How many of them may be read.
            returned: How many of them are returned; None for all.

        """
        self.are_settled = False
        self._order = order
        most = candidates if returned is None else returned
        self._least = max(_LEAST, _DEEP * most**2)
        self._first: list[float] = []
        self._read = 0
        highest = (order.final(place, _HIGH) for place in reversed(range(candidates)))
        self._left = [*accumulate(highest, max)][::-1]

    def __call__(self, relevance: float) -> bool:
        """Note the relevance of the next hit; tells whether the places are settled."""
        final = self._order.final(self._read, relevance)
        change = heappush if self._read < _PLACES else heappushpop
        change(self._first, final)
        self._read += 1
        self.are_settled = (
            self._least <= self._read < len(self._left) and self._first[0] >= self._left[self._read]
        )
        return self.are_settled


def reranked(
    hits: Sequence[Hit],
    query: str,
    reranker: Reranker,
    *,
    reference_time: datetime,
    during: Period | None,
    asked: str = "",
    candidates: int = CANDIDATES,
    seconds: float = SECONDS,
    mode: str = "blend",
    boosts: Mapping[str, float] = BOOSTS,
) -> list[Hit]:
    """Order the first hits by the reranker, as :class:`Order` does; the others stay behind them.

    Args:
        hits: In fused order.
        query: The question as the user asked it.
        reranker: Scores from 0 to 1.
        reference_time: As for Order.
        during: As for Order.
        asked: The words of the question for that time.
        candidates: How many hits the reranker reads, at least 1.
        seconds: Time limit; hits that it does not reach are not reranked.
        mode: As for Order.
        boosts: As for Order.

    Raises:
        RerankerUnavailable: the reranker cannot be used.

    """
    texts = [dated_text(hit, during, asked) for hit in hits[:candidates]]
    if not texts:
        return []
    order = Order(hits, reference_time=reference_time, during=during, mode=mode, boosts=boosts)
    if isinstance(reranker, PunctualReranker):
        return order.hits(reranker.scores_within(query, texts, seconds))
    return order.hits(reranker.scores(query, texts))


def _with_paths_held(fused: Sequence[Hit], ordered: Sequence[Hit]) -> list[Hit]:
    """Keep hits with a path from falling below their place in fused order."""
    waiting = {hit.memory_id: hit for hit in ordered}
    held = []
    for hit in fused:
        is_due = hit.via is not None and hit.memory_id in waiting
        held.append(waiting.pop(hit.memory_id if is_due else next(iter(waiting))))
    scores = [*accumulate((hit.final_score for hit in reversed(held)), max)]
    return [
        replace(hit, final_score=score) for hit, score in zip(held, reversed(scores), strict=True)
    ]


def recency_boost(hit: Hit, reference_time: datetime, alpha: float) -> float:
    """Favour recent hits, falling linearly from today to an age of a year.

    Returns:
        1 + alpha / 2 to 1 - alpha / 2; 1.0 for a hit without a date.

    """
    start = _when(hit)
    if start is None:
        return 1.0
    return _boost(1 - (reference_time - start) / _DAY / _RECENCY_DAYS, alpha)


def period_boost(hit: Hit, during: Period | None, alpha: float) -> float:
    """Favour hits in the period asked about, falling linearly outside it.

    It reaches its minimum at a distance of the length of the period, at least a week.

    Returns:
        1 + alpha / 2 to 1 - alpha / 2; 1.0 without a period or for a hit without a date.

    """
    first, last = _extent(hit)
    if during is None or first is None or last is None:
        return 1.0
    start, end = during
    distance = max(
        start - last if start is not None else timedelta(0),
        first - end if end is not None else timedelta(0),
        timedelta(0),
    )
    reach = max(end - start, _SLACK) if start is not None and end is not None else _SLACK
    return _boost(1 - distance / reach, alpha)


def proof_boost(hit: Hit, alpha: float) -> float:
    """Favour hits with several sources: half of the boost for two, three quarters for four.

    Returns:
        1.0 for one source, and for a message, to 1 + alpha / 2.

    """
    return _boost(1 - 0.5 / (hit.proof_count or 1), alpha)


def _boost(nearness: float, alpha: float) -> float:
    return 1 + alpha * (min(max(nearness, 0.0), 1.0) - 0.5)


def _blended(hit: Hit, score: float, best: float, doubt: float) -> float:
    """Return the score of the best hit in fused order unchanged, and less for all others."""
    logit = _logit(min(max(score, _SURE), 1 - _SURE))
    if logit < 0 and hit.score > 0:
        unseen = sum(hit.arms[arm].contribution for arm in _UNSEEN if arm in hit.arms)
        logit *= doubt * (1 - unseen / hit.score)
    prior = max(hit.score / best, _SURE) if best > 0 else 1.0
    return _sigmoid(logit + _PRIOR * math.log(prior))


def _by_session(hits: Sequence[Hit], likely: Sequence[float]) -> list[float]:
    """Lower what stands alone beside sessions with much that is likely."""
    sessions = _sessions(hits)
    sums = [0.0] * len(hits)
    for session, score in zip(sessions, likely, strict=True):
        sums[session] += score
    most, total = max(sums, default=0.0), sum(sums)
    return [
        _sigmoid(_logit(score) - _SESSION * (most - sums[session]) / total)
        for session, score in zip(sessions, likely, strict=True)
    ]


def _sessions(hits: Sequence[Hit]) -> list[int]:
    """Number the sessions of hits, from 0: between two of them nothing was said for an hour."""
    said = sorted((hit.mentioned_at or _NEVER, place) for place, hit in enumerate(hits))
    sessions = [0] * len(hits)
    for (before, last), (moment, place) in pairwise(said):
        sessions[place] = sessions[last] + (moment - before >= _PAUSE)
    return sessions


def _by_score(hit: Hit) -> tuple[float, int]:
    return -hit.final_score, hit.fused_rank


def _extent(hit: Hit) -> Period:
    """Return the period that a hit is about, if known.

    The time when a fact was said does not say when it happened; a message has its own time.
    """
    start, end = hit.occurred or (hit.mentioned_at if hit.kind == "message" else None, None)
    return start or end, end or start


def _is_within(hit: Hit, during: Period) -> bool:
    """Tell whether a hit began or ended in a period."""
    first, last = hit.occurred or (_when(hit), None)
    start, end = during
    began = first is not None and (start or first) <= first and (end is None or first < end)
    ended = last is not None and (start is None or start < last) and last <= (end or last)
    return began or ended


def _when(hit: Hit) -> datetime | None:
    return _extent(hit)[0]


def _key(pair: Pair) -> bytes:
    return blake2b("\0".join(pair).encode(errors="surrogatepass"), digest_size=16).digest()


def _parts(tokenizer: Any, query: str, text: str) -> Iterator[Any]:
    """Encode the query with the text, and with what did not fit, up to its context."""
    text = text.rstrip()
    end = text.rfind(_CONTEXT) if _CONTEXT in text else len(text)
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


def _foreign_share(tokenizer: Any, query: str) -> float:
    """Return the share of a query's words, without names, that the model does not know."""
    read = tokenizer.encode(query[:_CHARACTERS], add_special_tokens=False)
    words = [list(pieces) for _, pieces in groupby(range(len(read)), read.word_ids.__getitem__)]
    odd: list[bool] = []
    for first, *rest in words:
        start, piece = read.offsets[first][0], read.tokens[first]
        if query[start].isalpha() and (start == 0 or not query[start].isupper()):
            odd.append(rest != [] or piece == _UNKNOWN or not piece.isascii())
    # As if one more were known: one rare word does not make another language.
    return sum(odd) / (1 + len(odd))


def _logit(probability: float) -> float:
    return math.log(probability) - math.log1p(-probability)


def _sigmoid(value: float) -> float:
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    return math.exp(value) / (1 + math.exp(value))
