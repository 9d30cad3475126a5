"""Measure how fast the console answers: its first page, and the list of facts of a large bank.

    python -m bench.speed.console --smoke
    python -m bench.speed.console --full
    python -m bench.speed.console --facts 100000

The facts are those of bench.speed.graph with three entities each, without vectors and links. Pages
are requested from the ASGI application, so that templates are included. Milliseconds are wall time;
figures that end in _cpu_ms are processor time of client and server, for a shared machine.

* console.first_page_ms, .bank_page_ms: the list of banks, and the demo bank at a glance; median.
* console.facts.KIND_ms: 95th percentile of a kind of list: first, deep, rare, begun, common, many
  (of these), type, entity, time, words_entity, words_time; console.facts_p95_ms: that of all lists
  together.
* console.fill_s: seconds to fill the bank; missing if it existed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from statistics import median
from typing import Any

import psycopg
from bench import harness
from bench.speed import graph
from rich.console import Console
from starlette.testclient import TestClient

from pgrecall import Recall
from pgrecall.command import demo
from pgrecall.console import application

FACTS = {False: 1_000_000, True: 20_000}
ROUNDS = {False: 50, True: 5}
BANK, DEMO = "bench", "demo"
FILL = [
    part
    for part in graph.FILL
    if "into pgrecall.embedding" not in part and "into pgrecall.link" not in part
]
Asked = Mapping[str, str | int]


def fill(connection: graph.Connection, facts: int) -> harness.Figures:
    """Fill the bank, unless it exists."""
    there = connection.execute("select from pgrecall.bank where bank_id = %s", [BANK]).rowcount
    began = time.perf_counter()
    graph.fill(connection, BANK, facts, entities=2, statements=FILL)
    connection.execute("vacuum analyze")
    return {} if there else {"console.fill_s": time.perf_counter() - began}


def lists(connection: graph.Connection, facts: int, rounds: int) -> Mapping[str, list[Asked]]:
    """Return the searches in the list of facts. Words with low numbers are common."""
    first, last = harness.one(
        connection,
        "select min(memory_id), max(memory_id) from pgrecall.memory where bank_id = %s",
        [BANK],
    )
    now = datetime.now(timezone.utc)
    each: Iterable[int] = range(rounds)

    def day(n: int, more: int) -> Asked:
        """Return a day, or the days up to the next place."""
        since, until = (
            now - timedelta(minutes=facts * place // (rounds + 1))
            for place in (n + 1, n + 1 - more)
        )
        return {"since": f"{since:%Y-%m-%d}", "until": f"{until:%Y-%m-%d}"}

    return {
        "first": [{} for _ in each],
        "deep": [{"before": last - (last - first) * (n + 1) // (rounds + 1)} for n in each],
        "rare": [{"words": f"w{graph.WORDS - 1 - n} "} for n in each],
        "begun": [{"words": f"w{10 + n}"} for n in each],
        "common": [{"words": f"w{1 + n % 3} "} for n in each],
        "many": [{"words": f"w{1 + n % 3} w{4 + n % 3} w{7 + n}"} for n in each],
        "words_entity": [{"words": f"w{3 + n}", "entity": f"Name{150 - n}"} for n in each],
        "words_time": [{"words": f"w{3 + n}", **day(n, 0)} for n in each],
        "type": [{"type": ("world", "experience", "opinion")[n % 3]} for n in each],
        "entity": [{"entity": f"Name{1 + n * 3}"} for n in each],
        "time": [day(n, 1) for n in each],
    }


def taken(
    client: TestClient, server: graph.Connection, path: str, bank: str, asked: Asked
) -> tuple[float, float]:
    """Open a page. Returns milliseconds by the wall and on a processor."""
    began, busy = time.perf_counter(), time.process_time() * 1000 + harness.clock(server)
    answered = client.get(path, params={"bank": bank, **asked})
    spent = (time.perf_counter() - began) * 1000
    assert answered.status_code == 200, answered.text
    return spent, time.process_time() * 1000 + harness.clock(server) - busy


def measure(
    memory: Recall, connection: graph.Connection, facts: int, rounds: int
) -> harness.Figures:
    """Open all pages, each once before it is measured."""
    client: Any = TestClient(application(memory), base_url="http://127.0.0.1")
    server: Any = memory._source
    figures: harness.Figures = {}
    for name, path in (("first_page", "/"), ("bank_page", "/bank")):
        taken(client, server, path, DEMO, {})
        spent = [taken(client, server, path, DEMO, {}) for _ in range(rounds)]
        figures[f"console.{name}_ms"] = median(wall for wall, _ in spent)
        figures[f"console.{name}_cpu_ms"] = median(busy for _, busy in spent)
    everything = []
    for kind, asked in lists(connection, facts, rounds).items():
        taken(client, server, "/facts", BANK, asked[0])
        spent = [taken(client, server, "/facts", BANK, one) for one in asked]
        everything += spent
        figures[f"console.facts.{kind}_ms"] = harness.percentile([wall for wall, _ in spent], 95)
        figures[f"console.facts.{kind}_cpu_ms"] = harness.percentile(
            [busy for _, busy in spent], 95
        )
    figures["console.facts_p95_ms"] = harness.percentile([wall for wall, _ in everything], 95)
    figures["console.facts_p95_cpu_ms"] = harness.percentile([busy for _, busy in everything], 95)
    return figures


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = harness.arguments(__doc__)
    parser.add_argument("--facts", type=int, help="facts of the bank")
    options = parser.parse_args()
    facts, rounds = options.facts or FACTS[options.smoke], ROUNDS[options.smoke]
    with (
        harness.database(graph.MEMORY) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
        Recall.connect(dsn) as memory,
    ):
        demo._fill(memory, DEMO, Console(quiet=True))
        figures = fill(connection, facts)
        figures |= measure(memory, connection, facts, rounds)
        harness.show(figures)
        harness.write(options, figures, {"facts": facts, "rounds": rounds}, dsn)


if __name__ == "__main__":
    main()
