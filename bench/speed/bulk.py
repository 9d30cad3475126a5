"""Measure bulk loads of a bank, beside retaining the same facts in batches.

    python -m bench.speed.bulk --smoke
    python -m bench.speed.bulk --sizes 10000 100000 1000000 --json bulk.json

The facts are those of retain.py, with given embeddings: sentences with two entities, a time and a
vector of hashed words. They are written to a JSONL file, which is loaded as by `pgrecall retain
--bulk`. Ten planted facts have a word, a name and a key that occur nowhere else. By size:

* bulk.store_s, .index_s, .links_s: seconds until the facts are stored, then until the vector index
  is built, then until links are written and counts complete. .facts_per_s: facts stored a second;
  .all_per_s: facts a second of the whole load.
* bulk.store_server_ms, .store_client_ms, .server_ms, .client_ms: processor time a fact of all
  processes and threads, until the facts are stored, and of the whole load.
* bulk.first_s: from the start until each of the arms semantic, lexical, graph, temporal and key
  finds the planted facts. .first_ask_s: a recall of the last of them at that time, without an
  index; .ask_s: the same with the index.
* bulk.again_per_s: the same facts again, all known (of the smallest size).
* bulk.bytes: size of the database a fact.
* retain.facts_per_s, .server_ms, .client_ms: retain_many() in batches of 1,000 with links at once:
  all facts into an empty bank up to a size of 10,000, else a sample into the loaded bank.
* copy.server_ms: COPY of the lines into a table of jsonb and nothing else, as a staging table.
* embed.facts_per_s, .server_ms, .client_ms: a bulk load of facts without embeddings, with the
  packaged embedder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import psutil
import psycopg
from bench import harness
from bench.speed.retain import MODEL, Facts

from pgrecall import Recall
from pgrecall.embedders import DEFAULT_EMBEDDER
from pgrecall.server import SETTINGS

SIZES = {True: (1_000, 3_000), False: (10_000, 100_000, 1_000_000)}
MOST_RETAINED = 10_000  # into an empty bank
SAMPLE = {True: 500, False: 3_000}  # into a loaded one
EMBEDDED = {True: 200, False: 2_000}
PLANTED = 10
ARMS = {"semantic", "lexical", "graph", "temporal", "key"}
MEMORY = {"shared_buffers": "2GB", "maintenance_work_mem": "2GB"}
Connection = psycopg.Connection[Any]
Line = dict[str, Any]


def planted(fact: Line, n: int) -> Line:
    """Change a fact so that each arm can find it; the graph arm by an entity of all of them."""
    return {
        **fact,
        "text": f"{fact['text'][:80]} zyxogram{n}",
        "entities": [f"Zephyrine{n} Quill", "Zyxogram Guild"],
        "fact_key": f"planted.{n}",
        "occurred": f"19{70 + n}-01-05",
    }


def write(path: Path, facts: Facts, size: int, smallest: int) -> None:
    """Write the facts, with planted ones among the first of them."""
    with path.open("w", encoding="utf-8") as file:
        for n in range(size):
            (fact,) = facts.take(1)
            place, rest = divmod(n, smallest // PLANTED)
            if rest == 7 and place < PLANTED:
                fact = planted(fact, place)
            file.write(json.dumps(fact) + "\n")


def read(path: Path, count: int, start: int = 0) -> Iterator[Line]:
    with path.open("rb") as file:
        yield from map(json.loads, islice(file, start, start + count))


def bare(fact: Line) -> Line:
    return {name: value for name, value in fact.items() if name != "embedding"}


def server_seconds(connection: Connection) -> float:
    """Return the processor time of the whole server, ended processes included."""
    master = psutil.Process(connection.info.backend_pid).parent()
    assert master is not None
    while True:
        ended = master.cpu_times()
        running = 0.0
        try:
            for child in master.children():
                times = child.cpu_times()
                running += times.user + times.system
        except psutil.NoSuchProcess:
            continue
        if master.cpu_times()[2:4] == ended[2:4]:  # no process has ended meanwhile
            return running + float(sum(ended[:4]))


class Meter:
    """Wall time, and processor time of server and client, since the meter was created."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._began = perf_counter(), server_seconds(connection), self._client()

    @staticmethod
    def _client() -> float:
        times = os.times()
        return times.user + times.system

    def read(self) -> tuple[float, float, float]:
        now = perf_counter(), server_seconds(self._connection), self._client()
        seconds, server, client = (b - a for a, b in zip(self._began, now, strict=True))
        return seconds, server, client


def find(recall: Recall, bank: str, facts: Iterable[Line]) -> list[float]:
    """Ask for each planted fact, which each arm must find. Returns the seconds that each took."""
    taken = []
    for fact in facts:
        year = fact["occurred"][:4]
        name = fact["entities"][0]
        query = f"{fact['text']} {name} {fact['fact_key']} on January 5, {year}"
        began = perf_counter()
        hits = recall.recall(
            bank, query, embedding=fact["embedding"], model=MODEL, rerank=False, top_k=3
        )
        taken.append(perf_counter() - began)
        hit = next((one for one in hits if one.text == fact["text"]), None)
        missing = ARMS - set(hit.arms if hit else ())
        if missing:
            raise SystemExit(f"{fact['text']} was not found by {sorted(missing)}")
    return taken


def load(
    recall: Recall,
    looked: Connection,
    bank: str,
    path: Path,
    size: int,
    known: list[Line],
    workers: int,
) -> harness.Figures:
    """Load a bank in bulk."""
    recall.create_bank(bank)
    bytes_before = database_bytes(looked)
    meter = Meter(looked)
    load_facts = partial(recall.retain_bulk, bank, model=MODEL, workers=workers)
    stored = load_facts(read(path, size), link="deferred")
    store_s, server, client = meter.read()
    first = find(recall, bank, known)
    first_s = meter.read()[0]
    marks: dict[str, float] = {}

    def note(what: str, _: int) -> None:
        marks[what] = perf_counter()

    began = perf_counter()
    finished = load_facts([], progress=note)
    rest_s = perf_counter() - began
    _, all_server, all_client = meter.read()
    if (stored.new, finished.linked, len(finished.due)) != (size, size, 0):
        raise SystemExit(f"the load is not complete: {stored}, {finished}")
    index_s = marks.get("index", began) - began
    return {
        "store_s": store_s,
        "index_s": index_s,
        "links_s": rest_s - index_s,
        "facts_per_s": size / store_s,
        "all_per_s": size / (store_s + rest_s),
        "store_server_ms": server / size * 1000,
        "store_client_ms": client / size * 1000,
        "server_ms": all_server / size * 1000,
        "client_ms": all_client / size * 1000,
        "first_s": first_s,
        "first_ask_s": first[-1],
        "ask_s": median(find(recall, bank, known)),
        "bytes": (database_bytes(looked) - bytes_before) / size,
    }


def database_bytes(connection: Connection) -> int:
    return int(harness.one(connection, "select pg_database_size(current_database())")[0])


def retain(recall: Recall, looked: Connection, bank: str, given: list[Line]) -> harness.Figures:
    """Retain in batches, links at once."""
    meter = Meter(looked)
    recall.retain_many(bank, given, model=MODEL)
    seconds, server, client = meter.read()
    return {
        "facts_per_s": len(given) / seconds,
        "server_ms": server / len(given) * 1000,
        "client_ms": client / len(given) * 1000,
    }


def copy(connection: Connection, path: Path, size: int) -> harness.Figures:
    """Copy the lines into a table and do nothing with them."""
    connection.execute("create unlogged table public.staged (fact jsonb)")
    began = harness.clock(connection)
    with connection.cursor().copy("copy public.staged from stdin") as writer:
        for fact in read(path, size):
            writer.write_row([json.dumps(fact)])
    took = harness.clock(connection) - began
    connection.execute("drop table public.staged")
    return {"server_ms": took / size}


def embed(dsn: str, looked: Connection, path: Path, size: int, workers: int) -> harness.Figures:
    """Load facts that are embedded during the load."""
    with Recall.connect(dsn, embedder=DEFAULT_EMBEDDER) as recall:
        recall.create_bank("embedded")
        recall.retain_bulk("embedded", ["The model is loaded."], link="deferred")
        meter = Meter(looked)
        recall.retain_bulk(
            "embedded", map(bare, read(path, size)), link="deferred", workers=workers
        )
        seconds, server, client = meter.read()
    return {
        "facts_per_s": size / seconds,
        "server_ms": server / size * 1000,
        "client_ms": client / size * 1000,
    }


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = harness.arguments(__doc__, "sentences.txt.xz")
    parser.add_argument("--sizes", type=int, nargs="+", help="facts of the banks")
    parser.add_argument("--dimensions", type=int, default=128, help="of the embeddings")
    parser.add_argument("--workers", type=int, default=4, help="connections that write at once")
    parser.add_argument("--file", type=Path, help="the facts; written where it is not there")
    options = parser.parse_args()
    sizes = sorted(options.sizes or SIZES[options.smoke])
    sample = SAMPLE[options.smoke]
    figures: harness.Figures = {}

    def keep(name: str, found: harness.Figures) -> None:
        for key, value in found.items():
            figures[f"{name}.{key}"] = float(f"{value:.4g}")
            print(f"{name}.{key:32} {value:12.4g}", flush=True)

    with (
        harness.directory() as directory,
        harness.database({**SETTINGS, **MEMORY}) as dsn,
        psycopg.connect(dsn, autocommit=True) as looked,
        Recall.connect(dsn, embedder=None, reranker=None) as recall,
    ):
        path = options.file or directory / "facts.jsonl"
        if not path.exists():
            sentences = list(islice(harness.lines(harness.require(options.data)), sizes[-1]))
            facts = Facts(sentences, None, options.dimensions)
            write(path, facts, sizes[-1] + sample, sizes[0])
            del facts, sentences
            print(f"wrote {sizes[-1]:,} facts, {path.stat().st_size / 1e6:.0f} MB", flush=True)
        known = [fact for fact in read(path, sizes[0]) if "fact_key" in fact]
        keep("copy", copy(looked, path, sizes[0]))
        for size in sizes:
            keep(
                f"{size}.bulk",
                load(recall, looked, str(size), path, size, known, options.workers),
            )
            if size <= MOST_RETAINED:
                recall.create_bank(f"{size} retained")
                keep(
                    f"{size}.retain",
                    retain(recall, looked, f"{size} retained", list(read(path, size))),
                )
            else:
                given = list(read(path, sample, sizes[-1]))
                keep(f"{size}.retain", retain(recall, looked, str(size), given))
        began = perf_counter()
        recall.retain_bulk(str(sizes[0]), read(path, sizes[0]), model=MODEL, link="deferred")
        keep("again", {"facts_per_s": sizes[0] / (perf_counter() - began)})
        keep("embed", embed(dsn, looked, path, EMBEDDED[options.smoke], options.workers))
        settings = {**MEMORY, "dimensions": options.dimensions, "workers": options.workers}
        harness.write(options, figures, settings, dsn)


if __name__ == "__main__":
    main()
