"""Measure what row security costs a recall: the same recall by the owner and by a tenant.

    python -m bench.speed.fenced --smoke
    python -m bench.speed.fenced --full

A bank of generated facts, with words by Zipf's law, beside a bank of a tenth of its size. Each
question goes to both roles in turn, on one connection. Figures:

* open.cpu_p50_ms, fenced.cpu_p50_ms: of the server's process on a processor, per recall.
* cpu_ratio, cpu_ratio_p95: fenced / open, over all pairs.
* arm.ARM.open, arm.ARM.fenced: median milliseconds of each arm, by the wall.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Any

import psycopg
from bench import harness

TENANT = "tenant"
DIMENSIONS = 32
VOCABULARY = 20_000
BATCH = 1000
SETUP = (
    "select pgrecall.create_roles('bench')",
    f"create role {TENANT} in role bench_writer",
    "select pgrecall.enable_row_security()",
    "vacuum analyze",
)
RECALL = "from pgrecall.{}(%(bank)s, %(query)s, %(embedding)s, %(during)s)"
Connection = psycopg.Connection[Any]


def word(chance: random.Random) -> str:
    return f"w{int(VOCABULARY ** chance.random()) - 1}"


def vector(chance: random.Random) -> str:
    return json.dumps([round(chance.gauss(0, 1), 3) for _ in range(DIMENSIONS)])


def facts(chance: random.Random, count: int) -> Iterator[dict[str, object]]:
    for n in range(count):
        year, month, day = (chance.randrange(*range_) for range_ in ((10, 26), (1, 13), (1, 29)))
        yield {
            "text": " ".join(word(chance) for _ in range(12)) + f" {n}",
            "fact_type": chance.choice(["world", "event"]),
            "entities": [f"Name{chance.randrange(count // 10 + 1)}"],
            "occurred": f"20{year}-{month:02}-{day:02}",
            "embedding": vector(chance),
            **({"fact_key": f"key.{n}"} if n % 10 == 0 else {}),
        }


def fill(connection: Connection, bank: str, count: int) -> None:
    chance = random.Random(bank)
    connection.execute("select pgrecall.create_bank(%s)", [bank])
    batch: list[dict[str, object]] = []
    for fact in facts(chance, count):
        batch.append(fact)
        if len(batch) == BATCH:
            retain(connection, bank, batch)
            batch.clear()
    retain(connection, bank, batch)


def retain(connection: Connection, bank: str, batch: list[dict[str, object]]) -> None:
    connection.execute(
        "select count(*) from pgrecall.retain(%s, %s, link => 'deferred')",
        [bank, json.dumps(batch)],
    )


def questions(count: int) -> list[dict[str, str | None]]:
    chance = random.Random(7)
    asked = []
    for n in range(count):
        words = " ".join(word(chance) for _ in range(5))
        during = "[2020-03-01,2020-04-01)" if n % 3 == 0 else None
        query = f"{words} Name{chance.randrange(50)} key.{10 * n}?"
        asked.append(
            {"bank": TENANT, "query": query, "embedding": vector(chance), "during": during}
        )
    return asked


def recall(connection: Connection, question: dict[str, Any], is_fenced: bool) -> tuple[float, Any]:
    """Return the milliseconds on a processor, and the hits."""
    connection.execute(f"set role {TENANT}" if is_fenced else "reset role")
    return harness.timed(
        connection, "select memory_id, score " + RECALL.format("hybrid_recall"), question
    )


def arms(connection: Connection, question: dict[str, Any], is_fenced: bool) -> dict[str, float]:
    connection.execute(f"set role {TENANT}" if is_fenced else "reset role")
    found = connection.execute(
        "select arm, milliseconds " + RECALL.format("explain_recall") + " where status = 'ran'",
        question,
    )
    return dict(found.fetchall())


def measure(connection: Connection, count: int) -> harness.Figures:
    asked = questions(count)
    pairs = []
    by_arm: dict[str, list[float]] = defaultdict(list)
    for n, question in enumerate(asked):
        taken: dict[bool, tuple[float, Any]] = {}
        for is_fenced in (False, True) if n % 2 else (True, False):
            recall(connection, question, is_fenced)
            taken[is_fenced] = recall(connection, question, is_fenced)
            side = "fenced" if is_fenced else "open"
            for arm, milliseconds in arms(connection, question, is_fenced).items():
                by_arm[f"arm.{arm}.{side}"].append(milliseconds)
        if taken[True][1] != taken[False][1]:
            raise SystemExit(f"the tenant is answered otherwise: {question}")
        pairs.append((taken[True][0], taken[False][0]))
    connection.execute("reset role")
    ratios = [fenced / open_ for fenced, open_ in pairs]
    figures = {
        "open.cpu_p50_ms": median(open_ for _, open_ in pairs),
        "fenced.cpu_p50_ms": median(fenced for fenced, _ in pairs),
        "cpu_ratio": median(ratios),
        "cpu_ratio_p95": harness.percentile(ratios, 95),
        **{name: median(values) for name, values in sorted(by_arm.items())},
    }
    return {name: round(value, 3) for name, value in figures.items()}


def main() -> None:
    options = harness.arguments(__doc__).parse_args()
    count = 2_000 if options.smoke else 100_000
    with harness.database() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        for bank, size in ((TENANT, count), ("other", count // 10)):
            fill(connection, bank, size)
        for statement in SETUP:
            connection.execute(statement.encode())
        figures = measure(connection, 10 if options.smoke else 60)
        harness.show(figures)
        harness.write(options, figures, {"facts": count}, dsn)


if __name__ == "__main__":
    main()
