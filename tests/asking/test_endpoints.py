"""Embedders and rerankers behind endpoints, and of functions: what they give is checked."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from typing import Any

import pytest

from pgrecall import (
    AsyncRecall,
    CrossEncoderReranker,
    EmbedderUnavailable,
    HttpReranker,
    InvalidArgument,
    InvalidEmbedding,
    OpenAIEmbedder,
    Recall,
    RerankerUnavailable,
    SentenceTransformerEmbedder,
)
from pgrecall.extraction import OpenAIExtractor
from pgrecall.rerankers import chosen_reranker
from toys import DIMENSIONS, toy_embed

needs_openai = pytest.mark.skipif(
    importlib.util.find_spec("openai") is None,
    reason="openai is not installed: pip install 'pgrecall[openai]'",
)
Answer = Callable[[dict[str, Any]], "tuple[int, object]"]


class Endpoint:
    """A server that answers as it is told, and notes what it was asked.

    Attributes:
        url: Where it is.
        asked: Path, headers and body of each request.
        answers: How to answer; the last one stays.

    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.answers: list[Answer] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append((self.path, dict(self.headers), body))
                answer = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                code, content = answer(body)
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                if code == 307:
                    self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    yield endpoint
    endpoint.server.shutdown()
    endpoint.server.server_close()


@pytest.fixture
def memory(pgrecall: Recall) -> Recall:
    pgrecall.create_bank("b")
    with_vectors(pgrecall).retain(
        "b", ["Ana leads Atlas.", "Boats are blue.", "Cy leads Borealis."]
    )
    return pgrecall


def with_vectors(memory: Recall, **arguments: Any) -> Recall:
    return Recall(memory._source, **{"embedder": toy_embed, "model": "toy", **arguments})


def always(code: int, content: object) -> Answer:
    return lambda _: (code, content)


# Embedders


def embeddings(body: dict[str, Any]) -> tuple[int, object]:
    """Answer as OpenAI does, in another order than it was asked."""
    rows = [
        {"object": "embedding", "index": n, "embedding": vector}
        for n, vector in enumerate(toy_embed(body["input"]))
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return 200, {"object": "list", "model": body["model"], "data": rows[::-1], "usage": usage}


@needs_openai
def test_any_endpoint_with_the_api_of_openai_embeds(endpoint: Endpoint, pgrecall: Recall) -> None:
    endpoint.answers = [embeddings]
    pgrecall.create_bank("b")
    memory = Recall(pgrecall._source, embedder=f"{endpoint.url}/v1", model="nomic")

    memory.retain("b", ["Ana leads Atlas.", "Boats are blue."], strict=True)
    [found] = memory.recall("b", "Who leads Atlas?", top_k=1, strict=True)

    assert found.text == "Ana leads Atlas."
    assert "semantic" in found.arms
    assert pgrecall.banks()[0].embedding_model == "nomic"
    assert endpoint.asked[0][0] == "/v1/embeddings"
    assert endpoint.asked[0][2]["model"] == "nomic"


@needs_openai
def test_texts_go_in_batches_and_the_rate_is_kept(endpoint: Endpoint) -> None:
    endpoint.answers = [embeddings]
    texts = [f"text {n}" for n in range(7)]
    embedder = OpenAIEmbedder("m", base_url=endpoint.url, batch_size=3, rate=20, dimensions=16)
    start = time.monotonic()

    vectors = [*embedder.embed(texts)]

    assert vectors == toy_embed(texts)
    assert [body["input"] for _, _, body in endpoint.asked] == [texts[:3], texts[3:6], texts[6:]]
    assert {body["dimensions"] for _, _, body in endpoint.asked} == {16}
    assert time.monotonic() - start >= 2 / 20


@needs_openai
def test_what_fails_for_a_passing_reason_is_tried_again(endpoint: Endpoint) -> None:
    endpoint.answers = [always(429, {"error": {"message": "slow"}}), always(503, {}), embeddings]
    embedder = OpenAIEmbedder("m", base_url=endpoint.url)

    assert [*embedder.embed(["a"])] == toy_embed(["a"])
    assert len(endpoint.asked) == 3


@needs_openai
def test_an_endpoint_that_refuses_is_named(endpoint: Endpoint, memory: Recall) -> None:
    endpoint.answers = [always(401, {"error": {"message": "no such key"}})]
    remote = with_vectors(memory, embedder=OpenAIEmbedder("toy", base_url=endpoint.url))

    report = remote.recall_report("b", "Who leads Atlas?")

    assert report.hits[0].text == "Ana leads Atlas."
    [left_out] = report.degradations
    assert left_out.what == "embedder"
    assert f'the embedder "toy" at {endpoint.url}' in left_out.why
    assert "no such key" in left_out.why
    with pytest.raises(EmbedderUnavailable):
        remote.recall("b", "Who leads Atlas?", strict=True)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openai", None)

    with pytest.raises(EmbedderUnavailable) as caught:
        OpenAIEmbedder("m", base_url="http://127.0.0.1:1").embed(["a"])

    assert caught.value.hint == "Run: pip install 'pgrecall[openai]'"


@needs_openai
def test_without_a_key_an_extractor_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    with pytest.raises(InvalidArgument, match='the extractor "m" cannot be used') as caught:
        OpenAIExtractor("m")([{"text": "Ana met Bo."}])

    assert "OPENAI_API_KEY" in str(caught.value.hint)


@pytest.mark.parametrize("arguments", [{"batch_size": 0}, {"rate": 0}, {"rate": -1}])
def test_limits_that_make_no_sense_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="batch_size must be at least 1 and rate above 0"):
        OpenAIEmbedder("m", **arguments)


@pytest.mark.parametrize(
    "make",
    [
        lambda: HttpReranker("http://localhost:1/rerank", batch_size=0),
        lambda: CrossEncoderReranker("any", batch_size=0),
        lambda: SentenceTransformerEmbedder("any", batch_size=-1),
    ],
)
def test_batches_of_nothing_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidArgument, match="batch_size must be at least 1, not ") as caught:
        make()

    assert caught.value.hint


class Nameless:
    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        return toy_embed(texts)


@pytest.mark.parametrize(
    "embedder", [lambda texts: toy_embed(texts), partial(toy_embed), Nameless(), "http://h/v1"]
)
def test_a_model_without_a_name_is_refused(pgrecall: Recall, embedder: Any) -> None:
    with pytest.raises(InvalidArgument, match="is not named") as caught:
        Recall(pgrecall._source, embedder=embedder)

    assert 'model="..."' in str(caught.value.hint)
    Recall(pgrecall._source, embedder=embedder, model="toy")


def test_a_text_that_is_no_url_is_no_embedder(pgrecall: Recall) -> None:
    with pytest.raises(InvalidArgument, match='embedder is "all-MiniLM", not the URL'):
        Recall(pgrecall._source, embedder="all-MiniLM")


async def async_embed(texts: Sequence[str]) -> list[list[float]]:
    await asyncio.sleep(0.001)
    return toy_embed(texts)


def test_an_async_function_embeds(pgrecall: Recall) -> None:
    pgrecall.create_bank("b")
    memory = Recall(pgrecall._source, embedder=async_embed)

    memory.retain("b", ["Ana leads Atlas."], strict=True)

    assert "semantic" in memory.recall("b", "Who leads Atlas?", strict=True)[0].arms


def test_an_async_function_embeds_for_an_async_client(database: str) -> None:
    loops = set()

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        loops.add(asyncio.get_running_loop())
        return await async_embed(texts)

    async def body() -> list[str]:
        async with await AsyncRecall.connect(database, embedder=embed) as memory:
            await memory.create_bank("b")
            await memory.retain("b", ["Ana leads Atlas."], strict=True)
            asked = (memory.recall("b", "Who leads Atlas?", strict=True) for _ in range(4))
            return [hits[0].text for hits in await asyncio.gather(*asked)]

    assert asyncio.run(body()) == ["Ana leads Atlas."] * 4
    assert len(loops) == 1


BAD = [
    ([[1.0] * DIMENSIONS] * 2, "gave 2 vectors for 1 texts"),
    ([], "gave 0 vectors for 1 texts"),
    ([[float("nan")] * DIMENSIONS], "gave a number that is not finite"),
    ([[1.0, float("inf")]], "gave a number that is not finite"),
    ([[0.0] * DIMENSIONS], "gave a vector that is empty or all zeros"),
    ([[]], "gave a vector that is empty or all zeros"),
    ([["a"]], 'vector 0 of the embedder "toy" is not a flat list of numbers'),
]


@pytest.mark.parametrize(("vectors", "problem"), BAD)
def test_bad_vectors_name_the_embedder(memory: Recall, vectors: Any, problem: str) -> None:
    bad = Recall(memory._source, embedder=lambda _: vectors, model="toy")

    with pytest.raises(InvalidEmbedding) as caught:
        bad.retain("b", ["Dee sails."], strict=True)
    with pytest.raises(InvalidEmbedding):
        bad.recall("b", "Who leads Atlas?", strict=True)
    with pytest.raises(InvalidEmbedding):
        bad.reembed_fill("b", bad._settings.embedder)  # type: ignore[arg-type]
    [left_out] = bad.recall_report("b", "Who leads Atlas?").degradations

    assert problem in caught.value.message
    assert '"toy"' in caught.value.message
    assert problem in left_out.why
    assert not bad.retain("b", ["Dee sails."])[0].is_embedded
    with pytest.raises(InvalidEmbedding):
        bad.embed_pending("b")


def test_vectors_of_different_lengths_name_the_embedder(pgrecall: Recall) -> None:
    pgrecall.create_bank("b")
    bad = Recall(
        pgrecall._source,
        embedder=lambda texts: [[1.0] * (n + 1) for n in range(len(texts))],
        model="mine",
    )

    with pytest.raises(InvalidEmbedding, match='"mine" gave vectors of 1 and of 2 dimensions'):
        bad.retain("b", ["a", "b"], strict=True)


# Rerankers


def tei(body: dict[str, Any]) -> tuple[int, object]:
    """Score as TEI does, best first: the longer the text, the better."""
    rows = [{"index": n, "score": len(text) / 100} for n, text in enumerate(body["texts"])]
    return 200, sorted(rows, key=lambda row: -row["score"])


def cohere(body: dict[str, Any]) -> tuple[int, object]:
    rows = [
        {"index": n, "relevance_score": len(text) / 100} for n, text in enumerate(body["documents"])
    ]
    return 200, {"results": rows[::-1]}


def test_an_endpoint_of_tei_reranks(endpoint: Endpoint, memory: Recall) -> None:
    endpoint.answers = [tei]
    remote = with_vectors(memory, reranker=f"{endpoint.url}/rerank")

    hits = remote.recall("b", "Who leads what?", rerank_mode="replace", strict=True)

    assert hits[0].text == "Cy leads Borealis."
    assert all(hit.rerank_score is not None for hit in hits)
    path, _, body = endpoint.asked[0]
    assert path == "/rerank"
    assert body["query"] == "Who leads what?"


def test_an_endpoint_like_that_of_cohere_reranks(endpoint: Endpoint) -> None:
    endpoint.answers = [cohere]
    reranker = HttpReranker(endpoint.url, model="rerank-3", api_key="secret", batch_size=2)

    scores = reranker.scores("q", ["a", "bbb", "cc"])

    assert scores == [0.01, 0.03, 0.02]
    assert [body["documents"] for _, _, body in endpoint.asked] == [["a", "bbb"], ["cc"]]
    assert endpoint.asked[0][1]["Authorization"] == "Bearer secret"
    assert endpoint.asked[0][2]["model"] == "rerank-3"


def test_a_busy_endpoint_is_asked_again(endpoint: Endpoint) -> None:
    endpoint.answers = [always(503, {}), always(429, {}), tei]

    assert HttpReranker(endpoint.url).scores("q", ["ab"]) == [0.02]
    assert len(endpoint.asked) == 3


@pytest.mark.parametrize(
    ("code", "content", "problem"),
    [
        (500, {"error": "out of memory"}, "HTTP 500.*out of memory"),
        (429, {}, "HTTP 429"),
        (307, {}, "HTTP 307"),
        (200, b"<html>", "Expecting value"),
        (200, [], "did not answer with a score for each text"),
        (200, {"data": []}, "did not answer with a score for each text"),
        (200, [{"index": 0}], "did not answer with a score for each text"),
        (200, [{"index": 5, "score": 0.5}], "did not answer with a score for each text"),
    ],
)
def test_an_endpoint_that_does_not_rerank_is_named(
    endpoint: Endpoint, code: int, content: object, problem: str
) -> None:
    endpoint.answers = [always(code, content)]

    with pytest.raises(RerankerUnavailable, match=problem) as caught:
        HttpReranker(endpoint.url).scores("q", ["a"])

    assert endpoint.url in caught.value.message


def test_an_endpoint_out_of_reach_leaves_the_fused_order(memory: Recall) -> None:
    remote = with_vectors(memory, reranker="http://127.0.0.1:1/rerank")

    report = remote.recall_report("b", "Who leads Atlas?")

    assert report.hits[0].text == "Ana leads Atlas."
    [left_out] = report.degradations
    assert "the reranker at http://127.0.0.1:1/rerank failed" in left_out.why


def test_a_slow_endpoint_reranks_what_time_allows(endpoint: Endpoint) -> None:
    def slow(body: dict[str, Any]) -> tuple[int, object]:
        time.sleep(0.3)
        return tei(body)

    endpoint.answers = [tei, slow]
    reranker = HttpReranker(endpoint.url, batch_size=1)

    assert reranker.scores_within("q", ["a", "bb", "ccc"], 0.15) == [0.01]


def test_no_reranker_is_one_of_that_name(pgrecall: Recall) -> None:
    assert chosen_reranker("none") is None
    assert Recall(pgrecall._source, reranker="none")._settings.reranker is None


@pytest.mark.parametrize("score", [3.2, -0.5, float("nan"), float("inf")])
def test_logits_are_refused(memory: Recall, score: float) -> None:
    def logits(_query: str, texts: Sequence[str]) -> list[float]:
        return [score] * len(texts)

    wrong = with_vectors(memory, reranker=logits)

    report = wrong.recall_report("b", "Who leads Atlas?")

    [left_out] = report.degradations
    assert f"the reranker gave {score:g}, not a relevance from 0 to 1" in left_out.why
    assert left_out.hint == "Make relevances of logits first, by 1 / (1 + exp(-logit))."
    assert all(hit.rerank_score is None for hit in report.hits)
    with pytest.raises(InvalidArgument, match="not a relevance from 0 to 1"):
        wrong.recall("b", "Who leads Atlas?", strict=True)


def test_an_async_function_reranks(memory: Recall) -> None:
    async def rerank(_query: str, texts: Sequence[str]) -> list[float]:
        return [len(text) / 100 for text in texts]

    asked = with_vectors(memory, reranker=rerank)

    assert asked.recall("b", "Who leads what?", strict=True)[0].rerank_score is not None


# Endpoints that mean harm


class Hostile:
    """A server that sends one answer, chunk by chunk, as long as somebody reads.

    Attributes:
        url: Where it is.
        asked: Number of requests.
        sent: Bytes of answers that were taken.

    """

    def __init__(self, head: str, chunks: Callable[[], Iterator[bytes]]) -> None:
        self.asked = self.sent = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                outer.asked += 1
                self.wfile.write(f"HTTP/1.1 {head}\r\nConnection: close\r\n\r\n".encode())
                with suppress(OSError):
                    for chunk in chunks():
                        self.wfile.write(chunk)
                        outer.sent += len(chunk)

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


JSON_HEAD = "200 OK\r\nContent-Type: application/json"


def drops() -> Iterator[bytes]:
    """Send a little, again and again, so that no single wait is long."""
    while True:
        yield b" "
        time.sleep(0.02)


def vector() -> Iterator[bytes]:
    yield b'{"object": "list", "model": "m", "data": [{"index": 0, "embedding": [0.5'
    for _ in range(1000):
        yield b",0.512345678" * 10_000
    yield b"]}]}"


ANSWERS: dict[str, tuple[str, Callable[[], Iterator[bytes]]]] = {
    "endless": (JSON_HEAD, lambda: repeat(b"[" + b" " * 65536)),
    "endless error": ("500 Error", lambda: repeat(b"no " * 20000)),
    "drops": (JSON_HEAD, drops),
    "drops of an error": ("500 Error", drops),
    "deep": (JSON_HEAD, lambda: iter([b"[" * 100_000 + b"]" * 100_000])),
    "no JSON": (JSON_HEAD, lambda: iter([b"<html>" * 100])),
    "wrong JSON": (JSON_HEAD, lambda: iter([b'{"data": [{"index": "x", "embedding": {}}]}'])),
    "a number": (JSON_HEAD, lambda: iter([b"9" * 5000])),
    "null": (JSON_HEAD, lambda: iter([b"null"])),
    "redirect": ("307 Moved\r\nLocation: http://127.0.0.1:1/", lambda: iter([])),
    "busy": ("429 Busy\r\nRetry-After: 0", lambda: iter([])),
    "10 million numbers": (JSON_HEAD, vector),
}


@pytest.fixture(params=ANSWERS)
def hostile(request: pytest.FixtureRequest) -> Iterator[Hostile]:
    server = Hostile(*ANSWERS[request.param])
    yield server
    server.server.shutdown()
    server.server.server_close()


def test_no_answer_of_a_reranker_does_harm(hostile: Hostile) -> None:
    reranker = HttpReranker(hostile.url, timeout=1)

    with pytest.raises(RerankerUnavailable, match=hostile.url):
        reranker.scores("q", ["a"])

    assert hostile.asked <= 3
    assert hostile.sent < 40 * 2**20  # what was read, and what the sockets held


@needs_openai
def test_no_answer_of_an_embedder_does_harm(hostile: Hostile) -> None:
    embedder = OpenAIEmbedder("m", base_url=hostile.url, timeout=1, max_retries=1)

    with pytest.raises(EmbedderUnavailable, match=hostile.url):
        embedder.embed(["a"])

    assert hostile.asked <= 2
    assert hostile.sent < 2 * 100 * 2**20


@needs_openai
def test_no_answer_of_an_extractor_does_harm(hostile: Hostile) -> None:
    extract = OpenAIExtractor("m", base_url=hostile.url, timeout=1, max_retries=1)

    refused = importlib.import_module("openai").OpenAIError
    with pytest.raises((refused, ValueError, TimeoutError)):
        extract([{"text": "Ana sails."}])

    assert hostile.asked <= 2
    assert hostile.sent < 2 * 100 * 2**20
