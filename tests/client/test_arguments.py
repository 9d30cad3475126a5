"""Errors that a caller can make from Python: named and explained before anything is sent."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psycopg
import pytest

from pgrecall import AsyncRecall, FunctionEmbedder, InvalidArgument, Recall
from pgrecall.asking.recall_options import RecallOptions
from toys import toy_embed

METHODS = [
    name
    for name, method in inspect.getmembers(Recall, inspect.isfunction)
    if not name.startswith("_") and "bank" in inspect.signature(method).parameters
]


class Nothing:
    """A pool that must not be asked for a connection."""

    def connection(self) -> Any:
        raise AssertionError("something was sent")


@pytest.fixture
def recall() -> Recall:
    return Recall(Nothing(), embedder=None)


@pytest.mark.parametrize("reranker", [None, lambda _query, texts: [0.5] * len(texts)])
@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ({"query": None}, "query must be text, not None", "text"),
        ({"query": 5}, "query must be text, not 5", "text"),
        ({"bank": None}, "bank must be text, not None", "text"),
        ({"bank": b"b"}, "bank must be text, not b'b'", "text"),
        ({"topk": 3}, 'unknown option "topk"', "Did you mean top_k?"),
        ({"filters": "a = 1"}, 'unknown option "filters"', "Did you mean filter?"),
        ({"top_k": "5"}, "top_k must be a whole number, not '5'", "whole number"),
        ({"top_k": 5.0}, "top_k must be a whole number, not 5.0", "whole number"),
        ({"top_k": True}, "top_k must be a whole number, not True", "whole number"),
        ({"skip": "1"}, "skip must be a whole number, not '1'", "whole number"),
        ({"candidates": "9"}, "candidates must be a whole number, not '9'", "whole number"),
        ({"rerank_seconds": "2"}, "rerank_seconds must be a number, not '2'", "0.5"),
        ({"diversity": "much"}, "diversity must be a number, not 'much'", "0.5"),
        ({"collapse": 1}, "collapse must be True or False, not 1", "True or False"),
        ({"rerank": "no"}, "rerank must be True or False, not 'no'", "True or False"),
        ({"budget": 1}, "budget must be text, not 1", "text"),
        ({"weights": ["graph"]}, "weights must be a mapping, not ['graph']", '{"graph": 0.5}'),
        ({"boosts": 0.2}, "boosts must be a mapping, not 0.2", "dict"),
        ({"boosts": {"recency": "x"}}, "the boost \"recency\" must be a number, not 'x'", "0.5"),
        ({"tags": 5}, "tags must be a list of texts, not 5", "list"),
        ({"tags": ["a", 5]}, "tags must be a list of texts, not ['a', 5]", "list"),
        ({"tags": ["a", None]}, "tags must be a list of texts, not ['a', None]", "list"),
        (
            {"fact_types": {"event": 1}},
            "fact_types must be a list of texts, not {'event': 1}",
            "list",
        ),
        ({"as_of": "2026-03-05"}, "as_of must be a datetime, not '2026-03-05'", "fromisoformat"),
        ({"as_of": date(2026, 3, 5)}, "as_of must be a datetime, not", "fromisoformat"),
        ({"reference_time": "today"}, "reference_time must be a datetime, not 'today'", "datetime"),
        ({"during": "2026"}, "during must be a pair (start, end), not '2026'", "datetimes or None"),
        ({"during": ("2026-01-01", None)}, "during must be a pair (start, end), not", "datetimes"),
        ({"during": (None,)}, "during must be a pair (start, end), not (None,)", "datetimes"),
        ({"anchors": 5}, "anchors must be a mapping or a function, not 5", "dict"),
        ({"recency_half_life": 5}, "recency_half_life must be a timedelta or text, not 5", "Pass"),
        ({"model": 5}, "model must be text, not 5", "text"),
        ({"top_k": 2**63}, "top_k must be from -2^63 to 2^63 - 1, not 922337203685477", "smaller"),
        ({"timeout": math.inf}, "timeout is inf, not above 0 and at most 2147483", "no limit"),
        ({"timeout": math.nan}, "timeout is nan, not above 0 and at most", "no limit"),
        ({"timeout": -1}, "timeout is -1, not above 0 and at most", "no limit"),
        ({"timeout": 1e7}, "timeout is 10000000.0, not above 0 and at most", "no limit"),
        ({"top_k": "9" * 500}, "top_k must be a whole number, not '99999", "whole number"),
    ],
)
def test_a_wrong_argument_of_a_recall_is_named(
    arguments: dict[str, Any], message: str, hint: str, reranker: Any
) -> None:
    client = Recall(Nothing(), embedder=None, reranker=reranker)

    with pytest.raises(InvalidArgument) as caught:
        client.recall(**{"bank": "b", "query": "q", **arguments})

    assert caught.value.message.startswith(message)
    assert len(caught.value.message) < 200
    assert hint in str(caught.value.hint)


def test_every_option_is_checked_by_its_type(recall: Recall) -> None:
    for name in RecallOptions.__annotations__:
        if name not in ("embedding", "hypothetical", "filter"):  # with errors of their own class
            given: Any = {name: object()}
            with pytest.raises(InvalidArgument, match=f"^{name} must be "):
                recall.recall("b", "q", **given)


@pytest.mark.parametrize(
    "options",
    [
        {"top_k": np.int64(3), "diversity": np.float32(0.5), "depth": 5},
        {"tags": {"a"}, "fact_types": "world", "terms": ("x",), "keys": np.array(["k"])},
        {"as_of": datetime.now(timezone.utc), "during": [None, datetime(2026, 1, 1)]},
        {"recency_half_life": timedelta(3), "anchors": lambda _name: None, "min_relevance": 0},
        {"top_k": None, "collapse": None, "budget": None},
    ],
)
def test_what_is_right_is_sent(options: Any, recall: Recall) -> None:
    with pytest.raises(AssertionError, match="something was sent"):
        recall.recall("b", "q", **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.supersede("b", "5"), "memory_id must be a whole number, not '5'"),
        (lambda r: r.supersede("b", 5, at="now"), "at must be a datetime, not 'now'"),
        (lambda r: r.supersede("b", 5, dry_run="no"), "dry_run must be True or False, not 'no'"),
        (lambda r: r.history("b", 5, top_k="all"), "top_k must be a whole number, not 'all'"),
        (lambda r: r.get("b", "5"), "memory_id must be a whole number, not '5'"),
        (lambda r: r.forget("b", ["5"]), "memory_ids must be a list of whole numbers, not ['5']"),
        (lambda r: r.forget("b", source_id=7), "source_id must be text, not 7"),
        (lambda r: r.forget_messages("b", session=7), "session must be text, not 7"),
        (lambda r: r.why_not("b", "q", "5"), "memory_id must be a whole number, not '5'"),
        (lambda r: r.list_memories("b", during="May"), "during must be a pair (start, end), not"),
        (lambda r: r.list_memories("b", as_of="May"), "as_of must be a datetime, not 'May'"),
        (lambda r: r.list_memories("b", entity=5), "entity must be text, not 5"),
        (lambda r: r.update("b", "5", text="x"), "memory_id must be a whole number, not '5'"),
        (lambda r: r.retain("b", ["x"], link=True), "link must be text, not True"),
        (lambda r: r.log_session("b", "s", ended_at="6"), "ended_at must be a datetime, not '6'"),
        (lambda r: r.configure_bank("b", ["x"]), "settings must be a mapping, not ['x']"),
        (lambda r: r.drop_bank(5), "bank must be text, not 5"),
        (lambda r: r.link_pending("b", batch_size="5"), "batch_size must be a whole number"),
        (lambda r: r.explain("b", "q", is_run="no"), "is_run must be True or False, not 'no'"),
        (lambda r: r.context("b", "q", max_tokens="5"), "max_tokens must be a whole number"),
        (lambda r: r.retain("b", None), "facts must be a list, not None"),
        (lambda r: r.retain_many("b", 5), "facts must be a list, not 5"),
        (lambda r: r.retain_many("b", [], batch_size="5"), "batch_size must be a whole number"),
        (lambda r: r.retain_bulk("b", None), "facts must be a list, not None"),
        (lambda r: r.retain_messages("b", {"text": "x"}), "messages must be a list, not {"),
        (lambda r: r.retain_many_messages("b", None), "messages must be a list, not None"),
        (lambda r: r.import_rows("b", "{}"), "rows must be a list, not '{}'"),
        (lambda r: r.recall_many("b", "which?"), "queries must be a list, not 'which?'"),
        (lambda r: r.history("b", 2**63), "memory_id must be from -2^63 to 2^63 - 1, not 9223"),
        (lambda r: r.forget("b", [1, -(2**64)]), "memory_ids must be from -2^63 to 2^63 - 1, not"),
        (lambda r: r.forget_messages("b", 2**63), "message_ids must be from -2^63 to 2^63 - 1"),
        (lambda r: r.merge_entities("b", 1, [2**63]), "others must be from -2^63 to 2^63 - 1"),
        (lambda r: r.merge_entities("b", 1, "2"), "others must be a list of whole numbers, not"),
        (lambda r: r.audit("b", since="May"), "since must be a datetime, not 'May'"),
        (lambda r: r.last_session_end("b", before="May"), "before must be a datetime, not 'May'"),
        (lambda r: r.quarantine("b", 5), "source must be text, not 5"),
    ],
)
def test_a_wrong_argument_of_another_call_is_named(
    recall: Recall, call: Callable[[Recall], Any], message: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call(recall)

    assert caught.value.message.startswith(message)
    assert caught.value.hint


VALID: dict[str, Any] = {
    **dict.fromkeys(("bank", "new_bank", "query", "name", "session", "fact_type", "source"), "b"),
    **dict.fromkeys(("relation", "key", "text", "words"), "b"),
    **dict.fromkeys(("memory_id", "entity_id", "message_id", "entity_a", "entity_b"), 1),
    **dict.fromkeys(("facts", "messages", "rows", "others", "memory_ids"), ()),
    "queries": ["q"],
    "settings": {},
    "calibration": {},
    "extract": list,
    "embedder": toy_embed,
}


@pytest.mark.parametrize("method", METHODS)
def test_every_argument_is_checked_before_anything_is_sent(method: str) -> None:
    client = Recall(Nothing(), embedder=toy_embed, model="toy")
    call = getattr(client, method)
    parameters = inspect.signature(call).parameters.values()
    named = [one for one in parameters if one.kind is not one.VAR_KEYWORD]
    needed = {one.name: VALID[one.name] for one in named if one.default is one.empty}

    for name in {one.name for one in named} - {"filter"}:  # with errors of its own class
        with pytest.raises(InvalidArgument, match=f"^{name} must be "):
            list(call(**{**needed, name: object()}))  # an export sends nothing before


def test_a_memory_that_is_none_is_named(recall: Recall) -> None:
    with pytest.raises(InvalidArgument, match="memory_id must be a whole number, not None"):
        recall.get("b", None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"connection": "postgres://ana:secret@host/db"}, "connection must be a connection or"),
        ({"connection": None}, "connection must be a connection or a pool, not NoneType"),
        ({"timezone": "Mars/Olympus"}, 'unknown time zone "Mars/Olympus"'),
        ({"timezone": 5}, 'unknown time zone "5"'),
        ({"timezone": "Europe"}, 'unknown time zone "Europe"'),
        ({"reranker": 5}, "reranker must be a reranker, a function, text or a path, not 5"),
        ({"embedder": 5, "model": "m"}, "embedder must be an embedder, a function or a URL, not 5"),
        ({"next_embedder": 5}, "embedder must be an embedder, a function or a URL, not 5"),
        ({"embedder": FunctionEmbedder}, "embedder is the class FunctionEmbedder, not an object"),
        (
            {"embedder": SimpleNamespace(embed=list)},
            "the attribute model of the embedder must be text, not None",
        ),
        ({"model": 5}, "model must be text, not 5"),
    ],
)
def test_a_wrong_argument_of_a_client_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Recall(**{"connection": Nothing(), "embedder": None, **arguments})

    assert caught.value.message.startswith(message)
    assert caught.value.hint
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("dsn", [5, b"dbname=postgres", Path("postgres"), psycopg.Connection])
@pytest.mark.parametrize("kind", ["Recall", "AsyncRecall"])
def test_a_connection_string_that_is_none_is_named(kind: str, dsn: Any) -> None:
    def connect() -> None:
        if kind == "Recall":
            Recall.connect(dsn)
        else:
            asyncio.run(AsyncRecall.connect(dsn))

    with pytest.raises(InvalidArgument, match="dsn must be text, not ") as caught:
        connect()

    assert "Recall(connection) takes a connection" in str(caught.value.hint)
