"""Measure hybrid_recall() on the bank of the demo, beside that of an older checkout.

    python -m bench.speed.recall --smoke
    python -m bench.speed.recall --full --against /path/to/older/checkout
    python -m bench.speed.recall --plain --against /path/to/older/checkout

Each checkout installs its own SQL in a database of its own on one server, and both hold the demo
with the same embeddings. Each question goes to both in turn; its embedding and time are computed
before. --plain leaves out questions that name somebody. Figures of `now` and, with --against, of
`before`:

* p50_ms, p95_ms: wall time; cpu_p50_ms, cpu_p95_ms: processor time of the server's process.
* functions, calls: functions of pgrecall that a recall enters, and calls of them, as
  track_functions counts them: without those that the planner inlines. The mean over the questions.
* ratio, cpu_ratio: now / before, the median over all pairs.
* driver.added_ms: the time of Recall.recall() with the same vector and window, less that of psycopg
  for all columns of the rows; in turn on one connection, the median over all pairs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from statistics import fmean, median
from typing import Any

import psycopg
from bench import harness
from psycopg.conninfo import make_conninfo

from pgrecall import Recall
from pgrecall.embedders import DEFAULT_EMBEDDER as MODEL
from pgrecall.temporal import extract_temporal_constraint

DEMO = harness.ROOT / "pydriver" / "pgrecall" / "demo"
REFERENCE_TIME = datetime(2026, 6, 30, 12, tzinfo=timezone.utc)  # as in the demo
INSTALL = "import sys, psycopg; from pgrecall import schema\n"
INSTALL += "with psycopg.connect(sys.argv[1]) as connection: schema.migrate(connection)"
FILL = (
    "select pgrecall.create_bank('demo')",
    "select count(*) from pgrecall.retain('demo', %(facts)s::jsonb, model => %(model)s)",
    "select count(*) from pgrecall.retain_messages('demo', %(messages)s::jsonb)",
    "vacuum analyze",
)
RECALL = """
select h.memory_id from pgrecall.hybrid_recall(
  bank => 'demo', query => %(query)s, embedding => %(embedding)s::halfvec,
  during => %(during)s::tstzrange, top_k => 10) as h
"""
WHOLE = RECALL.replace("h.memory_id", "h.*")
EMBEDDED = "select embedded_text from pgrecall.prepare_recall('demo', %s)"
IS_PLAIN = """
select not exists (select from pgrecall.query_entities('demo', %(query)s))
"""
CALLS = "select funcid, calls from pg_stat_xact_user_functions where schemaname ~ '^pgrecall'"
WARMING = 5  # rounds that do not count
Connection = psycopg.Connection[Any]


@contextmanager
def database(dsn: str, name: str, checkout: Path) -> Iterator[Connection]:
    """Make a database with the SQL of a checkout, and drop it in the end."""
    package, own = checkout / "pydriver", make_conninfo(dsn, dbname=name)
    if not (package / "pgrecall").is_dir():
        sys.exit(f"no checkout of pgrecall at {checkout}")
    environment = {**os.environ, "PYTHONPATH": str(package)}
    with psycopg.connect(dsn, autocommit=True) as server:
        server.execute(f"create database {name}".encode())
        try:
            subprocess.run([sys.executable, "-c", INSTALL, own], env=environment, check=True)
            with psycopg.connect(own, autocommit=True) as connection:
                yield connection
        finally:
            server.execute(f"drop database {name} with (force)".encode())


def embedded(texts: Iterable[str]) -> list[list[float]]:
    return [[float(x) for x in vector] for vector in MODEL.embed(list(texts))]


def demo() -> dict[str, str]:
    """Read the facts of the demo, embedded, and its messages: the values of FILL."""
    facts = [json.loads(line) for line in harness.lines(DEMO / "facts.jsonl")]
    messages = [json.loads(line) for line in harness.lines(DEMO / "messages.jsonl")]
    for fact, vector in zip(facts, embedded(fact["text"] for fact in facts), strict=True):
        fact["embedding"] = vector
    return {"facts": json.dumps(facts), "messages": json.dumps(messages), "model": MODEL.model}


def questions(connection: Connection) -> list[dict[str, Any]]:
    """Read the questions of the demo, as the driver sends them."""
    asked = []
    for row in json.loads((DEMO / "questions.json").read_text(encoding="utf-8")):
        query = row["question"]
        (vector,) = embedded(connection.execute(EMBEDDED, [query]).fetchone() or ())
        found = extract_temporal_constraint(query, REFERENCE_TIME)
        during = found and f"[{found.start or ''},{found.end or ''})"
        period = found and (found.start, found.end)
        asked.append({"query": query, "embedding": str(vector), "during": during, "period": period})
    return asked


def timed(connection: Connection, question: dict[str, Any]) -> tuple[float, float]:
    """Return the milliseconds of one recall, by the wall and on a processor."""
    on_processor, began = harness.clock(connection), time.perf_counter()
    connection.execute(RECALL, question).fetchall()
    ended = time.perf_counter()
    return (ended - began) * 1000, harness.clock(connection) - on_processor


def entered(connection: Connection, question: dict[str, Any]) -> tuple[int, int]:
    """Return how many functions one recall enters, and in how many calls."""
    with connection.transaction():
        connection.execute("set local track_functions = 'all'")
        before = dict(connection.execute(CALLS).fetchall())  # counted, not yet reported
        connection.execute(RECALL, question)
        counts = [n - before.get(f, 0) for f, n in connection.execute(CALLS).fetchall()]
    return sum(count > 0 for count in counts), sum(counts)


def is_plain(connection: Connection, question: dict[str, Any]) -> bool:
    """Return whether a question names nobody."""
    return (connection.execute(IS_PLAIN, question).fetchone() or (False,))[0] is True


def measure(sides: dict[str, Connection], rounds: int, only_plain: bool = False) -> harness.Figures:
    now = sides["now"]
    asked = [q for q in questions(now) if not only_plain or is_plain(now, q)]
    print(f"{len(asked)} questions")
    taken: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
    for n in range(WARMING + rounds):
        for question in asked:
            for side in list(sides)[:: 1 if n % 2 else -1]:
                taken[side].append(timed(sides[side], question))
    figures: harness.Figures = {}
    for side, connection in sides.items():
        del taken[side][: WARMING * len(asked)]
        for name, values in zip(("", "cpu_"), zip(*taken[side], strict=True), strict=True):
            figures[f"{side}.{name}p50_ms"] = harness.percentile(values, 50)
            figures[f"{side}.{name}p95_ms"] = harness.percentile(values, 95)
        counts = zip(*(entered(connection, question) for question in asked), strict=True)
        figures[f"{side}.functions"], figures[f"{side}.calls"] = map(fmean, counts)
    if "before" in sides:
        pairs = list(zip(taken["now"], taken["before"], strict=True))
        figures["ratio"] = median(now / before for (now, _), (before, _) in pairs)
        figures["cpu_ratio"] = median(now / before for (_, now), (_, before) in pairs)
    return {name: round(value, 3) for name, value in figures.items()}


def added(connection: Connection, rounds: int) -> float:
    """Return the milliseconds that the driver adds to the call."""
    recall = Recall(connection, embedder=None, reranker=None)
    pairs = [
        (question, json.loads(question["embedding"])) for question in questions(connection)
    ] * (WARMING + rounds)
    taken = []
    for question, vector in pairs:
        began = time.perf_counter()
        connection.execute(WHOLE, question).fetchall()
        between = time.perf_counter()
        recall.recall(
            "demo",
            question["query"],
            embedding=vector,
            during=question["period"],
            temporal=False,
        )
        taken.append((time.perf_counter() - between - (between - began)) * 1000)
    return round(median(taken[len(pairs) // 10 :]), 3)


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--against", type=Path, help="an older checkout to compare with")
    parser.add_argument("--plain", action="store_true", help="only questions without names")
    options = parser.parse_args()
    values = demo()
    with harness.database() as dsn, ExitStack() as stack:
        sides = {
            side: stack.enter_context(database(dsn, f"pgrecall_bench_{side}", checkout))
            for side, checkout in (("now", harness.ROOT), ("before", options.against))
            if checkout
        }
        for connection in sides.values():
            for statement in FILL:
                connection.execute(statement, values)
        rounds = 5 if options.smoke else 60
        figures = measure(sides, rounds, options.plain)
        figures["driver.added_ms"] = added(sides["now"], rounds)
        harness.show(figures)
        harness.write(options, figures, {"plain": options.plain}, dsn)


if __name__ == "__main__":
    main()
