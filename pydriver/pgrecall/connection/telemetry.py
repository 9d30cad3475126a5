"""OpenTelemetry spans and metrics, for applications that use it.

Nothing is imported here that the application has not imported: if opentelemetry.trace is not
loaded, each function below returns at once. A span holds names, counts and times, never the text of
a question, a fact or an error.

Spans: recall and retain; within them embed, rerank, and one for each statement, with the attributes
of the semantic conventions for database clients. Metrics: the histogram pgrecall.recall.duration,
in seconds, and the counter pgrecall.recall.degradations.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Any

import psycopg

from pgrecall._version import __version__
from pgrecall.report import RecallReport

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram, MeterProvider
    from opentelemetry.trace import Span, Tracer, TracerProvider

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_FUNCTION = re.compile(r"\bpgrecall\.\w+")
_SYSTEM = "postgresql"


def is_used() -> bool:
    """Return whether the application has loaded the API of OpenTelemetry."""
    return "opentelemetry.trace" in sys.modules


@contextmanager
def operation(name: str, bank: str) -> Iterator[Span | None]:
    """Make a span of a driver call; None without OpenTelemetry."""
    if not is_used():
        yield None
        return
    from opentelemetry.trace import SpanKind

    about = {"db.system.name": _SYSTEM, "db.operation.name": name, "pgrecall.bank": bank}
    with _current(f"pgrecall.{name}", SpanKind.INTERNAL, about) as span:
        yield span


@contextmanager
def recall(bank: str) -> Iterator[Callable[[RecallReport], RecallReport]]:
    """Make a span of a recall; yield a function that records and returns its report."""
    start = perf_counter()
    with operation("recall", bank) as span:
        failed = "error"

        def done(report: RecallReport) -> RecallReport:
            nonlocal failed
            failed = ""
            left_out = [degradation.what for degradation in report.degradations]
            if span is not None:
                span.set_attribute("pgrecall.hits", len(report.hits))
                span.set_attribute("pgrecall.reranked", report.reranked)
                span.set_attribute("pgrecall.degradations", left_out)
                for what in left_out:
                    _metrics()[1].add(1, {"pgrecall.degradation": what})
            return report

        try:
            yield done
        except BaseException as error:
            failed = _type_of(error)
            raise
        finally:
            if span is not None:
                about = {"error.type": failed} if failed else {}
                _metrics()[0].record(perf_counter() - start, about)


def stage(name: str, seconds: float) -> None:
    """Make a span of a stage that has just ended."""
    if not is_used():
        return
    now = time_ns()
    span = _tracer().start_span(f"pgrecall.{name}", start_time=now - int(seconds * 1e9))
    span.end(end_time=now)


@contextmanager
def statement(sql: str, connection: psycopg.BaseConnection[Any]) -> Iterator[None]:
    """Make a span of a statement."""
    if not is_used():
        yield
        return
    from opentelemetry.trace import SpanKind

    found = _FUNCTION.search(sql)
    function = found.group() if found else "pgrecall"
    about: dict[str, str | int] = {"db.system.name": _SYSTEM, "db.stored_procedure.name": function}
    if not connection.closed:
        info = connection.info
        about |= {
            "db.namespace": info.dbname,
            "server.address": info.host,
            "server.port": info.port,
        }
    with _current(function, SpanKind.CLIENT, about):
        yield


@contextmanager
def _current(name: str, kind: Any, about: dict[str, Any]) -> Iterator[Span]:
    """Make a span and make it current; an error is recorded by type and code only."""
    from opentelemetry.trace import StatusCode

    with _tracer().start_as_current_span(
        name, kind=kind, attributes=about, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except BaseException as error:
            span.set_status(StatusCode.ERROR)
            span.set_attribute("error.type", _type_of(error))
            code = error.sqlstate if isinstance(error, psycopg.Error) else None
            if code:
                span.set_attribute("db.response.status_code", code)
            raise


def _type_of(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"


def _tracer() -> Tracer:
    from opentelemetry.trace import get_tracer_provider

    return _tracer_of(get_tracer_provider())


def _metrics() -> tuple[Histogram, Counter]:
    from opentelemetry.metrics import get_meter_provider

    return _metrics_of(get_meter_provider())


@lru_cache(maxsize=4)
def _tracer_of(provider: TracerProvider) -> Tracer:
    return provider.get_tracer("pgrecall", __version__)


@lru_cache(maxsize=4)
def _metrics_of(provider: MeterProvider) -> tuple[Histogram, Counter]:
    meter = provider.get_meter("pgrecall", __version__)
    duration = meter.create_histogram(
        "pgrecall.recall.duration",
        unit="s",
        description="How long recalls take, from the call to its return.",
        explicit_bucket_boundaries_advisory=_SECONDS,
    )
    degradations = meter.create_counter(
        "pgrecall.recall.degradations",
        unit="{degradation}",
        description="Parts that were left out of recalls.",
    )
    return duration, degradations
