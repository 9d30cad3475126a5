"""Spans and metrics of OpenTelemetry, as the SDK's exporter in memory sees them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from pgrecall import AsyncRecall, BankNotFound, Recall

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

SECRET = "zanzibar"


class Listener:
    """What an application hears."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider(metric_readers=[self.reader])

    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Listener:
    listener = Listener()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: listener.tracers)
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: listener.meters)
    return listener


def by_name(spans: Sequence[ReadableSpan]) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans}


def told(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def embed(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


def score(query: str, texts: Sequence[str]) -> list[float]:
    return [0.5 for _ in texts]


@pytest.fixture
def memory(connection: psycopg.Connection[Any], listener: Listener) -> Recall:
    memory = Recall(connection, embedder=embed, model="toy", reranker=score)
    memory.create_bank("b")
    memory.retain("b", [f"The secret is {SECRET}.", "Ben sails."])
    return memory


def test_a_recall_has_children_for_each_stage(memory: Recall, listener: Listener) -> None:
    listener.exporter.clear()

    memory.recall("b", f"What is {SECRET}?")

    spans = by_name(listener.spans())
    top = spans["pgrecall.recall"]
    assert list(spans) == [
        "pgrecall.prepare_recall",
        "pgrecall.embed",
        "pgrecall.recall_report",
        "pgrecall.rerank",
        "pgrecall.recall",
    ]
    for span in listener.spans()[:-1]:
        assert span.parent is not None
        assert span.parent.span_id == top.context.span_id
        times = (top.start_time, span.start_time, span.end_time, top.end_time)
        assert sorted(time for time in times if time is not None) == list(times)
    assert told(top)["pgrecall.hits"] == 2
    assert told(top)["pgrecall.reranked"] == 2
    assert told(top)["pgrecall.degradations"] == ()


def test_retaining_has_a_span_with_its_embedding(memory: Recall, listener: Listener) -> None:
    names = [span.name for span in listener.spans()]

    assert names[-3:] == ["pgrecall.embed", "pgrecall.retain", "pgrecall.retain"]
    top = listener.spans()[-1]
    assert told(top)["db.operation.name"] == "retain"
    assert told(top)["pgrecall.bank"] == "b"


def test_statements_are_named_as_the_conventions_say(
    memory: Recall, listener: Listener, connection: psycopg.Connection[Any]
) -> None:
    memory.recall("b", "sails?")

    span = by_name(listener.spans())["pgrecall.recall_report"]
    assert span.kind is trace.SpanKind.CLIENT
    assert told(span) == {
        "db.system.name": "postgresql",
        "db.stored_procedure.name": "pgrecall.recall_report",
        "db.namespace": connection.info.dbname,
        "server.address": connection.info.host,
        "server.port": connection.info.port,
    }


def test_an_error_is_told_by_type_and_code_and_never_by_text(
    memory: Recall, listener: Listener
) -> None:
    listener.exporter.clear()

    with pytest.raises(BankNotFound):
        memory.recall(f"no {SECRET}", SECRET, temporal=False, embedding=[1.0, 1.0])

    statement, top = listener.spans()
    assert told(statement)["db.response.status_code"] == "RC001"
    assert told(top)["error.type"] == "pgrecall.errors.BankNotFound"
    assert all(not span.status.is_ok and not span.status.description for span in (statement, top))
    assert all(span.events == () for span in (statement, top))
    (point,) = listener.points("pgrecall.recall.duration")
    assert dict(point.attributes) == {"error.type": "pgrecall.errors.BankNotFound"}


def test_no_span_and_no_metric_holds_a_text(memory: Recall, listener: Listener) -> None:
    memory.recall("b", f"What is {SECRET}?", filter=f"text <> '{SECRET}'", top_k=1)

    said = "".join(span.to_json() for span in listener.spans())
    data = listener.reader.get_metrics_data()

    assert SECRET not in said
    assert data is not None
    assert SECRET not in data.to_json()


def test_durations_and_degradations_are_measured(
    connection: psycopg.Connection[Any], listener: Listener
) -> None:
    def broken(texts: Sequence[str]) -> list[list[float]]:
        raise RuntimeError(SECRET)

    memory = Recall(connection, embedder=broken, model="toy")
    memory.create_bank("b")

    memory.recall("b", "who?")
    memory.recall("b", "who else?")

    (degradation,) = listener.points("pgrecall.recall.degradations")
    (duration,) = listener.points("pgrecall.recall.duration")
    assert (degradation.value, dict(degradation.attributes)) == (
        2,
        {"pgrecall.degradation": "embedder"},
    )
    assert (duration.count, dict(duration.attributes)) == (2, {})
    assert 0 < duration.sum < 60
    assert duration.explicit_bounds[0] < 0.01


def test_an_async_recall_is_a_child_of_what_called_it(database: str, listener: Listener) -> None:
    async def ask(memory: AsyncRecall, name: str) -> None:
        with listener.tracers.get_tracer("app").start_as_current_span(name):
            await memory.recall("b", "who?")

    async def main() -> None:
        async with await AsyncRecall.connect(database, embedder=None, pool_size=2) as memory:
            await memory.create_bank("b")
            await asyncio.gather(ask(memory, "first"), ask(memory, "second"))

    asyncio.run(main())

    spans = listener.spans()
    callers = {span.context.span_id for span in spans if span.name in ("first", "second")}
    asked = [span.parent for span in spans if span.name == "pgrecall.recall"]
    assert {parent.span_id for parent in asked if parent} == callers
    assert len(callers) == 2


def test_nobody_is_told_who_does_not_listen(
    memory: Recall, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener.exporter.clear()
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")

    hits = memory.recall("b", "who sails?")

    assert len(hits) == 2
    assert listener.spans() == []


def test_a_recall_imports_nothing_of_it(database: str) -> None:
    code = f"""
import sys
from pgrecall import Recall
with Recall.connect({database!r}, embedder=None) as memory:
    memory.create_bank("b")
    memory.retain("b", ["x"])
    memory.recall("b", "x")
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert done.stdout == "[]\n"
