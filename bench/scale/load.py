"""Measure many callers at once: recalls a second, and how long each takes.

    python -m bench.scale.load --smoke
    python -m bench.scale.load --full --against fbe6fd6

In "recall", the clients are threads of one process. They ask question after question over a pool of
4 connections, with the packaged embedder and reranker. In "mixed" each retains a fact after every
fourth question. In "sql" each calls hybrid_recall() on its own connection, with prepared
embeddings, as pgbench would. --against names another commit, which answers the same questions in
turn with this one: with its driver, its SQL, and its banks in a separate database.

Figures, N being the number of clients:

* recallN.rate, mixedN.rate, sqlN.rate: recalls a second; .per_core: the same for each core of the
  machine, which the server shares. .p50_ms, .p99_ms: of one recall.
* recallN.processor_ms: processor time of one call, in this process and the server; other work on
  the machine changes it little.
* recallN.reranked: mean of the candidates that the reranker read; of other commits, those in the
  answer. recallN.shed: share of the recalls in which time was too short for some.
* load64.speedup: the rate of 64 clients, over that of the other commit: the median of the rounds.
  load64.processor_ratio: processor time of a recall there, over that here.
* load64.p99_over_p50; load64.same_first_five: of the recalls in which nothing was left out, the
  share that has the same first five as when asked alone; load64.total_over_wall: reported time over
  measured time.
* burst64.seconds: 64 clients ask one question each at once: until the last has its answer.
* e2e.p50_ms, e2e.p95_ms: the whole call of one client; e2e.embed_ms, .database_ms, .rerank_ms,
  .driver_ms: medians of its parts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import psycopg
from bench import conversations, harness
from bench.conversations import Question
from psycopg_pool import ConnectionPool

from pgrecall import Recall, schema
from pgrecall.embedders import DEFAULT_EMBEDDER

CONNECTIONS = 4
CLIENTS = (1, 4, 16, 64)
EVERY = 4
STAGES = ("embed", "database", "rerank")

Installed = tuple[Path, str]
"""The directory of a driver, and the dsn of a database with its schema."""


class Pool(ConnectionPool[psycopg.Connection[Any]]):
    """A pool that can tell what its connections cost the server."""

    def __init__(self, dsn: str, size: int) -> None:
        self._all: list[psycopg.Connection[Any]] = []
        super().__init__(dsn, min_size=size, max_size=size, configure=self._all.append, open=True)
        self.wait()

    def processor_seconds(self) -> float:
        """Return the processor time of the server for these connections."""
        return sum(harness.clock(connection) for connection in self._all) / 1000


def asked_at_once(
    clients: int, seconds: float, ask: Callable[[int], dict[str, Any]]
) -> tuple[float, list[dict[str, Any]]]:
    """Let clients ask until time is up, at least once. Returns the seconds, and all results."""
    found: list[dict[str, Any]] = []
    numbers = count()
    start = perf_counter()

    def client(_: int) -> None:
        while True:
            began = perf_counter()
            row = ask(next(numbers))
            found.append({**row, "seconds": perf_counter() - began})
            if perf_counter() >= start + seconds:
                break

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, range(clients)))
    return perf_counter() - start, found


def driver(dsn: str, job: dict[str, Any]) -> dict[str, Any]:
    """Run clients with the driver that this interpreter imports, maybe that of another commit."""
    questions = [
        (bank, text, at and datetime.fromisoformat(at)) for bank, text, at in job["questions"]
    ]
    first = job["first"]
    pool = Pool(dsn, CONNECTIONS)
    recall = Recall(pool)

    def ask(number: int) -> dict[str, Any]:
        bank, question, asked_at = questions[(first + number) % len(questions)]
        if job["mixed"] and number % (EVERY + 1) == EVERY:
            recall.retain(bank, [f"{question} was asked as number {first + number}."])
            return {"retain": True}
        report = recall.recall_report(bank, question, reference_time=asked_at)
        return {
            "number": (first + number) % len(questions),
            "five": [hit.memory_id for hit in report.hits[:5]],
            "reranked": getattr(
                report, "reranked", sum(hit.rerank_score is not None for hit in report.hits)
            ),
            "shed": [1 for item in report.degradations if "rerank" in str(item)],
            "total": report.timings.total,
            "timings": {
                stage: getattr(report.timings, stage, 0.0) for stage in (*STAGES, "driver", "queue")
            },
        }

    ask(0)  # loads the models
    start = process_time() + pool.processor_seconds()
    seconds, found = asked_at_once(job["clients"], job["seconds"], ask)
    spent = process_time() + pool.processor_seconds() - start
    return {"seconds": seconds, "found": found, "processor": spent}


def fill(dsn: str, data: Path, at_most: int | None) -> list[conversations.Conversation]:
    """Retain the conversations of a file in a database with the schema."""
    given = conversations.read(data, at_most)
    with Recall.connect(dsn) as recall:
        for conversation in given:
            conversations.fill_in_context(recall, conversation)
    return given


def with_driver(package: Path, *arguments: str, given: str | None = None) -> str:
    """Run this program with the driver of a directory, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.scale.load", *arguments],
        input=given,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(package), str(harness.ROOT)])},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def run(installed: Installed, job: dict[str, Any]) -> dict[str, Any]:
    """Run clients in a process of their own, with the driver of a directory."""
    package, dsn = installed
    printed = with_driver(package, "--client", dsn, given=json.dumps(job))
    found: dict[str, Any] = json.loads(printed)
    return found


def sql(dsn: str, clients: int, seconds: float, questions: list[Question]) -> dict[str, Any]:
    """Run clients that only call hybrid_recall()."""
    texts = [question.text for question in questions]
    vectors = [str([*map(float, vector)]) for vector in DEFAULT_EMBEDDER.embed(texts)]
    free = [psycopg.connect(dsn, autocommit=True) for _ in range(clients)]

    def ask(number: int) -> dict[str, Any]:
        question = questions[number % len(questions)]
        connection = free.pop()
        try:
            connection.execute(
                "select * from pgrecall.hybrid_recall(%s, %s, %s::halfvec, as_of => %s)",
                [question.bank, question.text, vectors[number % len(vectors)], question.asked_at],
            ).fetchall()
        finally:
            free.append(connection)
        return {}

    took, found = asked_at_once(clients, seconds, ask)
    for connection in free:
        connection.close()
    return {"seconds": took, "found": found}


def rate(done: dict[str, Any]) -> float:
    return float(sum("retain" not in row for row in done["found"]) / done["seconds"])


def cost(done: dict[str, Any]) -> float:
    return float(done["processor"] / len(done["found"]))


def summed_up(name: str, done: dict[str, Any]) -> harness.Figures:
    recalls = [row for row in done["found"] if "retain" not in row]
    milliseconds = [1000 * row["seconds"] for row in recalls]
    figures = {
        f"{name}.rate": round(rate(done), 2),
        f"{name}.per_core": round(rate(done) / (os.cpu_count() or 1), 2),
        f"{name}.p50_ms": round(median(milliseconds), 1),
        f"{name}.p99_ms": round(harness.percentile(milliseconds, 99), 1),
    }
    if "reranked" in recalls[0]:
        figures[f"{name}.processor_ms"] = round(1000 * cost(done), 1)
        figures[f"{name}.reranked"] = round(fmean(row["reranked"] for row in recalls), 1)
        figures[f"{name}.shed"] = round(fmean(bool(row["shed"]) for row in recalls), 3)
    print(" ".join(f"{key} {value:g}" for key, value in figures.items()), flush=True)
    return figures


def of_many(done: dict[str, Any], alone: dict[int, list[int]]) -> harness.Figures:
    """Compare the recalls of many clients with the same questions asked alone."""
    milliseconds = [1000 * row["seconds"] for row in done["found"]]
    same = [
        row["five"] == alone[row["number"]]
        for row in done["found"]
        if not row["shed"] and row["number"] in alone
    ]
    ratio = harness.percentile(milliseconds, 99) / median(milliseconds)
    wall = median(row["total"] / 1000 / row["seconds"] for row in done["found"])
    figures = {"load64.p99_over_p50": round(ratio, 2), "load64.total_over_wall": round(wall, 3)}
    if same:
        figures["load64.same_first_five"] = round(fmean(same), 3)
    return figures


@contextmanager
def installed(commit: str | None, dsn: str, options: Any) -> Iterator[Installed | None]:
    """Yield the driver of another commit, and a database with its schema and banks."""
    if commit is None:
        yield None
        return
    database = "pgrecall_bench_other"
    with TemporaryDirectory(prefix="pgrecall-bench-") as directory:
        archive = subprocess.run(
            ["git", "-C", str(harness.ROOT), "archive", commit], capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", directory], input=archive.stdout, check=True)
        package = Path(directory) / "pydriver"
        [build] = (package / "pgrecall").rglob("build.py")  # not always in the same folder
        subprocess.run([sys.executable, "-I", build], check=True)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"create database {database}")
            try:
                its_dsn = psycopg.conninfo.make_conninfo(dsn, dbname=database)
                smoke = ["--smoke"] * options.smoke
                with_driver(package, "--fill", its_dsn, "--data", str(options.data), *smoke)
                yield package, its_dsn
            finally:
                connection.execute(f"drop database {database} with (force)")


def measured(
    dsn: str, given: list[Question], options: Any, other: Installed | None
) -> harness.Figures:
    own = (harness.ROOT / "pydriver", dsn)
    seconds, rounds = (1.0, 1) if options.smoke else (15.0, 3)
    rows = [[q.bank, q.text, q.asked_at and q.asked_at.isoformat()] for q in given]
    first = count(0, 211)  # no question is repeated soon: its answer would be cached
    figures: harness.Figures = {}

    def job(clients: int, *, mixed: bool = False, seconds: float = seconds) -> dict[str, Any]:
        return {
            "clients": clients,
            "seconds": seconds,
            "first": next(first),
            "mixed": mixed,
            "questions": rows,
        }

    for clients in CLIENTS[: 1 if options.smoke else None]:
        figures |= summed_up(f"sql{clients}", sql(dsn, clients, seconds, given))
        done = run(own, job(clients))
        figures |= summed_up(f"recall{clients}", done)
        if clients == 1:
            milliseconds = [1000 * row["seconds"] for row in done["found"]]
            figures |= {
                "e2e.p50_ms": round(median(milliseconds), 1),
                "e2e.p95_ms": round(harness.percentile(milliseconds, 95), 1),
            }
            for stage in (*STAGES, "driver"):
                times = [row["timings"][stage] for row in done["found"]]
                figures[f"e2e.{stage}_ms"] = round(median(times), 1)
        figures |= summed_up(f"mixed{clients}", run(own, job(clients, mixed=True)))
    ratios = []
    for _ in range(rounds if other else 0):
        one = job(64)
        assert other is not None
        theirs, ours = run(other, one), run(own, one)
        summed_up("other64", theirs)
        summed_up("recall64", ours)
        ratios.append((rate(ours) / rate(theirs), cost(theirs) / cost(ours)))
    if ratios:
        figures["load64.speedup"] = round(median(ratio for ratio, _ in ratios), 2)
        figures["load64.processor_ratio"] = round(median(ratio for _, ratio in ratios), 2)
    burst = run(own, job(64, seconds=0))
    figures |= summed_up("burst64", burst) | {"burst64.seconds": round(burst["seconds"], 1)}
    one = job(64)
    done = run(own, one)
    alone = run(own, {**one, "clients": 1})
    figures |= of_many(done, {row["number"]: row["five"] for row in alone["found"]})
    return figures


def main() -> None:
    if sys.argv[1:2] == ["--client"]:
        print(json.dumps(driver(sys.argv[2], json.load(sys.stdin))))
        return
    parser = harness.arguments(__doc__, "locomo_dev.json")
    parser.add_argument("--against", help="a commit to compare with this one")
    parser.add_argument("--fill", metavar="DSN", help=argparse.SUPPRESS)
    options = parser.parse_args()
    at_most = 1 if options.smoke else None
    if options.fill:
        with psycopg.connect(options.fill) as connection:
            schema.migrate(connection)
        fill(options.fill, options.data, at_most)
        return
    with harness.database() as dsn, installed(options.against, dsn, options) as other:
        given = fill(dsn, options.data, at_most)
        figures = measured(dsn, conversations.questions(given), options, other)
        harness.show(figures)
        settings = {"against": options.against, "connections": CONNECTIONS}
        harness.write(options, figures, settings, dsn)


if __name__ == "__main__":
    main()
