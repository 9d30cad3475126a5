"""Models behind an HTTP endpoint: embedders and rerankers.

An endpoint gets the texts but is not trusted otherwise: size and time of an answer are bounded
while it is read, redirects are not followed, and an unexpected answer is an error.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pgrecall._version import __version__
from pgrecall.errors import EmbedderUnavailable, InvalidArgument, RecallError, RerankerUnavailable
from pgrecall.inference.interfaces import Vector
from pgrecall.inference.runtime import cannot_embed
from pgrecall.inference.worker import check_batch_size

_ANSWER_BYTES = 64 * 1024 * 1024  # 128 embeddings of 4,000 numbers have 13 MB
_SCORES_BYTES = 4 * 1024 * 1024
_READ_BYTES = 65536
_SAID_BYTES = 500


def bounded(chunks: Iterable[bytes], most: int, seconds: float, *, is_cut: bool = False) -> bytes:
    """Read an answer to its end.

    Args:
        chunks: The parts of the answer, as they arrive.
        most: Maximum number of bytes.
        seconds: Maximum time for the whole answer.
        is_cut: Whether to cut a longer answer off, rather than raise an error.

    Raises:
        ValueError: the answer is longer.
        TimeoutError: the answer takes longer.

    """
    end = time.monotonic() + seconds
    read = bytearray()
    for chunk in chunks:
        read += chunk
        if len(read) > most and is_cut:
            break
        if len(read) > most:
            raise ValueError(f"its answer is longer than {most:,} bytes")
        if time.monotonic() > end:
            raise TimeoutError(f"its answer does not end within {seconds:g} s")
    return bytes(read[:most])


def bounded_client(timeout: float) -> Any:
    """Make an HTTP client with bounded answers for an OpenAI client."""
    import openai

    class Bounded(openai.DefaultHttpxClient):  # type: ignore[misc, unused-ignore]
        def send(self, request: Any, **given: Any) -> Any:
            """Send a request and read its whole answer."""
            response = super().send(request, **{**given, "stream": True})
            try:
                body = bounded(response.iter_bytes(), _ANSWER_BYTES, timeout)
            finally:
                response.close()
            coding = ("content-encoding", "content-length", "transfer-encoding")
            headers = [(k, v) for k, v in response.headers.items() if k.lower() not in coding]
            return type(response)(
                response.status_code, headers=headers, content=body, request=request
            )

    return Bounded(follow_redirects=False, timeout=timeout)


def openai_client(
    endpoint: Mapping[str, str | None],
    limits: Mapping[str, Any],
    user: str,
    unusable: type[RecallError],
) -> Any:
    """Make an OpenAI client whose answers are bounded.

    Args:
        endpoint: base_url and api_key; the client's own defaults replace empty ones.
        limits: Further arguments, with a timeout.
        user: Who needs it, for the error.
        unusable: Class of the error where it cannot be made, such as for a missing key.

    Raises:
        ImportError: a package is missing.
        RecallError: the one above.

    """
    import openai

    given = {name: value for name, value in endpoint.items() if value}
    if "base_url" in given and not os.environ.get("OPENAI_API_KEY"):
        given.setdefault("api_key", "none")
    try:
        return openai.OpenAI(**given, **limits, http_client=bounded_client(limits["timeout"]))
    except openai.OpenAIError as error:
        raise unusable(
            f"{user} cannot be used: {error}",
            hint="Set OPENAI_API_KEY, or name an endpoint that needs none.",
        ) from error


class OpenAIEmbedder:
    """A model behind an endpoint with the OpenAI API, by the official client.

    The client retries transient failures with growing delays, and waits as long as a rate limit of
    the endpoint asks for.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        batch_size: int = 128,
        rate: float | None = None,
        timeout: float = 30.0,
        max_retries: int = 5,
    ) -> None:
        """Choose a model; import and send nothing.

        Args:
            model: Name of the model at the endpoint; a bank stores it.
            base_url: The endpoint, such as "http://localhost:8080/v1". Default: OPENAI_BASE_URL,
                else OpenAI's own.
            api_key: Default: OPENAI_API_KEY. Not required with a base_url.
            dimensions: Length of each embedding, for models that support it.
            batch_size: Texts in one request, at least 1.
            rate: Maximum requests per second, of all callers together. Default: no limit.
            timeout: Seconds for one request.
            max_retries: How often a failed request is retried.

        Raises:
            InvalidArgument: batch_size is below 1, or rate not above 0.

        """
        if batch_size < 1 or (rate is not None and not rate > 0):
            raise InvalidArgument(
                f"batch_size must be at least 1 and rate above 0, not {batch_size} and {rate}"
            )
        self.model = model
        self.dimensions = dimensions
        self._endpoint = {"base_url": base_url, "api_key": api_key}
        self._limits: dict[str, Any] = {"timeout": timeout, "max_retries": max_retries}
        self._batch_size = batch_size
        self._pause = 1 / rate if rate else 0.0
        self._next = 0.0
        self._client: Any = None
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Iterable[Vector]:
        """Return one embedding per text, in order.

        Raises:
            EmbedderUnavailable: the package is missing, or the endpoint fails or cannot be reached.

        """
        client = self._connected()
        import openai

        size = {} if self.dimensions is None else {"dimensions": self.dimensions}
        vectors: list[Vector] = []
        for start in range(0, len(texts), self._batch_size):
            batch = [*texts[start : start + self._batch_size]]
            self._wait()
            try:
                answer = client.embeddings.create(
                    model=self.model, input=batch, encoding_format="float", **size
                )
                found = sorted(answer.data, key=lambda one: one.index)
                if not all(isinstance(one.embedding, list) for one in found):
                    raise TypeError
                vectors += [one.embedding for one in found]
            except openai.OpenAIError as error:
                why = f"{error} {error.__cause__ or ''}".strip()
                raise self._failed(client, why) from error
            except TimeoutError as error:
                raise self._failed(client, str(error)) from error
            except (AttributeError, TypeError, ValueError, RecursionError) as error:
                raise self._failed(client, "it did not answer with embeddings") from error
        return vectors

    def _failed(self, client: Any, why: str) -> EmbedderUnavailable:
        return EmbedderUnavailable(
            f'the embedder "{self.model}" at {client.base_url} failed: {why}',
            hint="Check the endpoint, the name of the model and OPENAI_API_KEY.",
        )

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                user = f'the embedder "{self.model}"'
                try:
                    self._client = openai_client(
                        self._endpoint, self._limits, user, EmbedderUnavailable
                    )
                except ImportError as error:
                    raise cannot_embed(error.name, "pip install 'pgrecall[openai]'") from error
            return self._client

    def _wait(self) -> None:
        """Wait until the rate limit allows this request."""
        with self._lock:
            turn = max(self._next, time.monotonic())
            self._next = turn + self._pause
        time.sleep(max(0.0, turn - time.monotonic()))


KEY_SETTING = "PGRECALL_RERANKER_KEY"


class HttpReranker:
    """A reranker behind an endpoint with the API of TEI or, if a model is named, of Cohere."""

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        batch_size: int = 32,
        timeout: float = 30.0,
    ) -> None:
        """Choose an endpoint; send nothing.

        Args:
            url: URL of the endpoint with its path, such as "http://localhost:8080/rerank".
            model: Name of the model, for an API like Cohere's.
            api_key: Bearer token. Default: PGRECALL_RERANKER_KEY.
            batch_size: Texts in one request, at least 1; TEI accepts 32 by default.
            timeout: Seconds for one request.

        Raises:
            InvalidArgument: batch_size is below 1.

        """
        check_batch_size(batch_size)
        self.url = url
        self._model = model
        self._key = api_key or os.environ.get(KEY_SETTING)
        self._batch_size = batch_size
        self._timeout = timeout

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one relevance per text, in order.

        Raises:
            RerankerUnavailable: the endpoint fails, cannot be reached, or answers something else.

        """
        return self.scores_within(query, texts, math.inf)

    def scores_within(self, query: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        """Return the relevance of the first texts, as many as time allows.

        Args:
            query: The question.
            texts: The texts, most promising first.
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
                    break  # the caller's time is up, not the request's
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
        """Send a request; retry it a little later if the endpoint is busy."""
        headers = {"Content-Type": "application/json", "User-Agent": f"pgrecall/{__version__}"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        for pause in (*_PAUSES, None):
            limit = max(min(self._timeout, end - time.monotonic()), 0.001)
            request = Request(self.url, body, headers)
            try:
                with _OPENER.open(request, timeout=limit) as response:
                    return json.loads(bounded(_chunks(response), _SCORES_BYTES, limit))
            except HTTPError as error:
                with error:
                    part = bounded(_chunks(error), _SAID_BYTES, limit, is_cut=True)
                    said = part.decode(errors="replace").strip()
                if error.code not in _BUSY or pause is None or time.monotonic() + pause > end:
                    raise self._failed(f"HTTP {error.code} {error.reason}: {said}") from error
                time.sleep(pause)
            except TimeoutError:
                raise
            except (OSError, ValueError, RecursionError, HTTPException) as error:
                if isinstance(getattr(error, "reason", None), TimeoutError):
                    raise TimeoutError from error
                raise self._failed(str(error)) from error
        raise AssertionError("the last try returns or raises")

    def _failed(self, reason: str) -> RerankerUnavailable:
        return RerankerUnavailable(
            f"the reranker at {self.url} failed: {reason}",
            hint=f"Check the URL with its path, and {KEY_SETTING} if it needs a key.",
        )


def _chunks(response: Any) -> Iterator[bytes]:
    """Yield the parts of an answer as they arrive."""
    return iter(lambda: response.read1(_READ_BYTES), b"")


class _NoRedirects(HTTPRedirectHandler):
    """Sends texts and keys to no other place than the named one."""

    def redirect_request(self, *_: object) -> None:
        """Follow no redirect, which makes it an error."""


_OPENER = build_opener(_NoRedirects)
_BUSY = (429, 502, 503, 504)
_PAUSES = (0.1, 0.4)
