"""Measure the semantic arm: exact search and its indexes, filters, many banks, a cold server.

    python -m bench.speed.semantic --smoke
    python -m bench.speed.semantic --full --cache DIRECTORY
    python -m bench.speed.semantic --sizes 1000 30000 --data facts.txt.xz --questions questions.txt

Real sentences and questions, embedded with the default embedder; --cache keeps the vectors, which
take longest to compute. Facts are copied into the tables, because retain() is not measured.

For each size there is a bank, and each method is asked all questions (60 from 30,000 facts on) with
warm caches. Every method finds 500 candidates and ranks them by whole vectors. The exact method
reads all vectors; an index of each kind is built as index_plan() says. Times are processor times of
the server's process where the system reports them (Linux), so that other work on the machine does
not count. Cold is the wall time of the first question after a restart, with the files of the server
removed from the system's cache where that is possible. Figures per size and method
({1k}.{hnsw}.p50_ms):

* p50_ms, cold_ms, recall20 against exact search outside the database, megabytes of the index or of
  the vectors.

And overall, those about one bank for the largest:

* recall20_hnsw: of semantic_arm(); recall20_exact: at the largest size up to 10,000, no index;
* recall20_filter_50, _10, _1, _0_1: the same with a tag that this percentage of the facts has;
* floor_ratio: p50 of semantic_arm() over that of the index scan alone, a statement that fetches as
  many rows with the same ef_search; both are asked each question, in alternating order;
* plan_ratio_5000_banks, insert_ratio_5000_banks: planning of the statement of the arm, and one row
  inserted into embedding, for a bank above its threshold among 5,000 banks, 200 of them above it
  with all three types, over the same in a database that holds one bank; medians of many, in turn.
  The banks are small, and so is their threshold: only the number of indexes matters.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from typing import Any, TypeAlias

import numpy as np
import psycopg
from bench import harness
from psycopg.conninfo import make_conninfo

from pgrecall import schema
from pgrecall.embedders import DEFAULT_EMBEDDER
from pgrecall.server import SETTINGS as SERVER_SETTINGS
from pgrecall.server import embedded_server

Array: TypeAlias = Any  # of numpy
Connection = psycopg.Connection[Any]

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
SMOKE_SIZES = (1_000, 2_000)
METHODS = ("exact", "exact binary", "exact leading", "hnsw binary", "hnsw leading", "hnsw")
SHARES = {"50": 0.5, "10": 0.1, "1": 0.01, "0_1": 0.001}
LEADING = 128  # elements; the model was not trained for it
CANDIDATES = 500
DIMENSIONS = DEFAULT_EMBEDDER.dimensions
SETTINGS = {**SERVER_SETTINGS, "shared_buffers": "1GB", "maintenance_work_mem": "512MB"}
TYPES = ("world", "opinion", "event")

KEYS = {
    "exact": ("{}", "<=>"),
    "exact binary": (f"binary_quantize({{}})::bit({DIMENSIONS})", "<~>"),
    "exact leading": (f"subvector({{}}, 1, {LEADING})", "<=>"),
    "hnsw": (f"{{}}::halfvec({DIMENSIONS})", "<=>"),
    "hnsw binary": (f"binary_quantize({{}})::bit({DIMENSIONS})", "<~>"),
    "hnsw leading": (f"subvector({{}}, 1, {LEADING})::halfvec({LEADING})", "<=>"),
}
TWO_STAGES = """
select n.memory_id from (
  select e.memory_id, e.embedding from pgrecall.embedding e
  where  {scope}
  order  by {order}
  limit  {candidates}
) as n
order  by n.embedding <=> {question}
"""
# What semantic_arm() plans for a bank with an index.
BY_INDEX = """
select array_agg(n.memory_id), array_agg(n.embedding <=> {question})
from (
  select e.memory_id, e.embedding from pgrecall.embedding e
  where  {scope}
  order  by {order}
  limit  120
) as n
"""
FLOOR = """
select e.memory_id from pgrecall.embedding e
where  {scope}
order  by {order}
limit  {candidates}
"""
EXACT_SCOPE = "e.bank_id = '{bank}' and e.fact_type = 'world' and e.model = 'made'"
INDEX_SCOPE = """
e.bank_id = '{bank}' and e.model = 'made' and e.fact_type <> ''
and hashtextextended(e.bank_id, 0) = hashtextextended('{bank}', 0)
and hashtextextended(e.model, 0) = hashtextextended('made', 0)
"""
ARM = """
select a.memory_id from pgrecall.semantic_arm('{bank}', {question}{filter}) as a order by a.rank
"""
INSERT = """
insert into pgrecall.embedding (bank_id, memory_id, model, fact_type, embedding)
select '{bank}', %s, 'made', 'world', {question}
"""


def embedded(texts: Sequence[str], cache: Path | None, name: str) -> Array:
    """Embed texts, or read their vectors from the cache; of shape (texts, dimensions), float16."""
    path = cache / f"{DEFAULT_EMBEDDER.model}_{name}.npy" if cache else None
    if path and path.is_file() and len(stored := np.load(path)) >= len(texts):
        return stored[: len(texts)]
    vectors = np.asarray(list(DEFAULT_EMBEDDER.embed(texts)), dtype=np.float16)
    if path:
        np.save(path, vectors)
    return vectors


def literal(vector: Array) -> str:
    return "'[" + ",".join(f"{float(x):.6g}" for x in vector) + "]'::halfvec"


def copy(connection: Connection, table: str, rows: Iterable[Sequence[bytes]]) -> None:
    """Copy rows of binary values into a table."""
    with connection.cursor().copy(f"copy {table} from stdin (format binary)".encode()) as target:
        target.write(b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0))
        for row in rows:
            values = b"".join(struct.pack("!i", len(value)) + value for value in row)
            target.write(struct.pack("!h", len(row)) + values)
        target.write(struct.pack("!h", -1))


def load(
    connection: Connection,
    bank: str,
    texts: Sequence[str],
    vectors: Array,
    tags: Sequence[list[str]] | None = None,
    fact_type: str = "world",
) -> int:
    """Copy facts into a bank. Returns the id of the first; the others follow it."""
    connection.execute(
        "select pgrecall.create_bank(%s, embedding_model => 'made', embedding_dimensions => %s,"
        " settings => '{\"similarity_floor\": -1}')"
        " where not exists (select from pgrecall.bank where bank_id = %s)",
        [bank, vectors.shape[1], bank],
    )
    (first,) = harness.one(connection, "select nextval('pgrecall.id_seq')")
    connection.execute("select setval('pgrecall.id_seq', %s)", [first + len(texts)])
    with connection.cursor().copy(
        "copy pgrecall.memory (bank_id, memory_id, fact_type, text, tags, content_hash, is_linked)"
        " from stdin"
    ) as target:
        for n, text in enumerate(texts):
            content_hash = b"%32d" % (first + n)
            own = tags[n] if tags else []
            target.write_row([bank, first + n, fact_type, text, own, content_hash, True])
    copy(
        connection,
        "pgrecall.embedding (bank_id, memory_id, model, fact_type, embedding)",
        (
            (
                bank.encode(),
                struct.pack("!q", first + n),
                b"made",
                fact_type.encode(),
                struct.pack("!hh", len(vector), 0) + vector.astype(">f2").tobytes(),
            )
            for n, vector in enumerate(vectors)
        ),
    )
    return int(first)


def timed(connection: Connection, query: str) -> tuple[float, list[int]]:
    """Return the milliseconds that a statement takes, planning included, and its first column."""
    began = harness.clock(connection)
    rows = connection.execute(query.encode(), prepare=False).fetchall()
    return harness.clock(connection) - began, [row[0] for row in rows]


def nearest(vectors: Array, questions: Array, allowed: Array | None = None) -> list[set[int]]:
    """Find the 20 nearest to each question, outside the database."""
    whole = vectors.astype(np.float32)
    whole /= np.linalg.norm(whole, axis=1, keepdims=True)
    at = np.arange(len(whole)) if allowed is None else np.flatnonzero(allowed)
    found = []
    for question in questions.astype(np.float32):
        scores = whole[at] @ question
        found.append({int(n) for n in at[np.argsort(-scores)[:20]]})
    return found


def recall(found: Sequence[Sequence[int]], best: Sequence[set[int]], first: int) -> float:
    """Mean share of the best, by position, among the first 20 ids found."""
    return fmean(
        len(truth & {i - first for i in ids[:20]}) / len(truth)
        for ids, truth in zip(found, best, strict=True)
    )


def statement(method: str, bank: str, question: str, template: str = TWO_STAGES) -> str:
    key, operator = KEYS[method]
    scope = INDEX_SCOPE if method.startswith("hnsw") else EXACT_SCOPE
    return template.format(
        scope=scope.format(bank=bank),
        bank=bank,
        order=f"{key.format('e.embedding')} {operator} {key.format(question)}",
        question=question,
        candidates=CANDIDATES,
    )


def build(connection: Connection, bank: str, settings: str) -> tuple[str, float, float]:
    """Build the index that is due under these settings. Returns its name, bytes and seconds."""
    connection.execute("select pgrecall.configure_bank(%s, %s)", [bank, settings])
    name, create = harness.one(
        connection,
        "select index_name, statement from pgrecall.index_plan(%s) where action = 'create'",
        [bank],
    )
    began = time.perf_counter()
    connection.execute(create.encode())
    taken = time.perf_counter() - began
    (size,) = harness.one(connection, f"select pg_relation_size('pgrecall_internal.{name}')")
    return name, float(size), taken


class Server:
    """An embedded server whose caches can be emptied."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.is_dropped = True
        self._start()
        with psycopg.connect(self.dsn) as connection:
            schema.migrate(connection)

    def _start(self) -> None:
        self.server = embedded_server(path=self.data, settings=SETTINGS)
        self.dsn = self.server.dsn

    def connect(self, database: str = "postgres") -> Connection:
        connection = psycopg.connect(make_conninfo(self.dsn, dbname=database), autocommit=True)
        # The same for all: parallel workers would hide the cost of a search.
        connection.execute("set max_parallel_workers_per_gather = 0")
        connection.execute("set jit = off")
        return connection

    def forget(self) -> None:
        """Restart with empty buffers, and remove the files from the system's cache if possible."""
        self.server.stop()
        for path in self.data.rglob("*"):
            if path.is_file():
                try:
                    descriptor = os.open(path, os.O_RDONLY)
                    os.fsync(descriptor)
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                    os.close(descriptor)
                except (AttributeError, OSError):
                    self.is_dropped = False
        self._start()


@contextmanager
def running() -> Iterator[Server]:
    with harness.directory() as directory:
        server = Server(directory)
        try:
            yield server
        finally:
            server.server.stop()


def cold(server: Server, method: str, bank: str, questions: Sequence[str], times: int) -> float:
    """Return the median milliseconds of the first question after a restart."""
    taken = []
    for question in questions[:times]:
        server.forget()
        with closing(server.connect()) as connection:
            # This reads the catalogs, but no vector of the bank.
            prepare(connection, method)
            timed(connection, statement(method, "tiny", question))
            began = time.perf_counter()
            timed(connection, statement(method, bank, question))
            taken.append((time.perf_counter() - began) * 1000)
    return median(taken)


def prepare(connection: Connection, method: str) -> None:
    connection.execute(f"set hnsw.ef_search = {CANDIDATES}".encode())
    is_index = method.startswith("hnsw")
    connection.execute("set enable_seqscan = off")
    connection.execute(f"set enable_sort = {'off' if is_index else 'on'}".encode())


def compare(
    server: Server,
    size: int,
    texts: Sequence[str],
    vectors: Array,
    asked: Array,
    restarts: int,
    is_last: bool,
) -> tuple[harness.Figures, str, int]:
    """Ask one bank by each method; returns the figures, the bank, and its first id.

    The last bank keeps the index over whole vectors.
    """
    bank = harness.label(size)
    asked = asked[: 200 if size <= 10_000 else 60]
    questions = [literal(vector) for vector in asked]
    best = nearest(vectors[:size], asked)
    random = np.random.default_rng(7).random(size)
    tags = [[name for name, share in SHARES.items() if x < share] for x in random]
    found: harness.Figures = {}
    with closing(server.connect()) as connection:
        first = load(connection, bank, texts[:size], vectors[:size], tags)
        connection.execute("vacuum analyze pgrecall.embedding")
        connection.execute("vacuum analyze pgrecall.memory")
        (heap,) = harness.one(
            connection,
            "select sum(pg_column_size(e.*)) from pgrecall.embedding e where e.bank_id = %s",
            [bank],
        )
    for method in METHODS:
        name = f"{bank}.{method.replace(' ', '_')}"
        megabytes = float(heap)
        with closing(server.connect()) as connection:
            if method.startswith("hnsw"):
                search = method.partition(" ")[2] or "full"
                settings = (
                    f'{{"hnsw_threshold": {size}, "vector_search": "{search}",'
                    f' "leading_dimensions": {LEADING}}}'
                )
                index, megabytes, found[f"{name}.build_s"] = build(connection, bank, settings)
            prepare(connection, method)
            taken, ids = [], []
            for question in questions[:20]:
                timed(connection, statement(method, bank, question))
            for question in questions:
                milliseconds, rows = timed(connection, statement(method, bank, question))
                taken.append(milliseconds)
                ids.append(rows)
        found[f"{name}.p50_ms"] = harness.percentile(taken, 50)
        found[f"{name}.recall20"] = recall(ids, best, first)
        found[f"{name}.megabytes"] = megabytes / 1e6
        if restarts and method in ("exact", "hnsw", "hnsw binary"):
            found[f"{name}.cold_ms"] = cold(server, method, bank, questions, restarts)
        if method.startswith("hnsw") and not (is_last and method == "hnsw"):
            with closing(server.connect()) as connection:
                connection.execute(f"drop index pgrecall_internal.{index}".encode())
        print(
            f"{size:7} {method:14} {found[f'{name}.p50_ms']:8.2f}"
            f" {found.get(f'{name}.cold_ms', float('nan')):8.2f}"
            f" {found[f'{name}.recall20']:7.4f} {found[f'{name}.megabytes']:8.2f}"
            f" {found.get(f'{name}.build_s', float('nan')):8.1f}",
            flush=True,
        )
    return found, bank, first


def arm(bank: str, question: str, tag: str | None = None) -> str:
    condition = f""", filter => '["contains", "tags", ["{tag}"]]'""" if tag else ""
    return ARM.format(bank=bank, question=question, filter=condition)


def exact(server: Server, bank: str, first: int, vectors: Array, asked: Array) -> float:
    """Return recall@20 of semantic_arm() on a bank without an index."""
    with closing(server.connect()) as connection:
        ids = [timed(connection, arm(bank, literal(vector)))[1] for vector in asked]
    return recall(ids, nearest(vectors, asked), first)


def product(server: Server, bank: str, first: int, vectors: Array, asked: Array) -> harness.Figures:
    """Measure semantic_arm() itself on a bank: recall, with filters, and over the index scan."""
    size = len(vectors)
    questions = [literal(vector) for vector in asked]
    random = np.random.default_rng(7).random(size)
    best = nearest(vectors, asked)
    found: harness.Figures = {}
    with closing(server.connect()) as connection:
        connection.execute(f"set hnsw.ef_search = {CANDIDATES}".encode())

        whole: list[float] = []
        floor: list[float] = []
        ids: list[list[int]] = []
        for round_at in range(3):  # the first warms the caches
            for n, question in enumerate(questions):
                scan = statement("hnsw", bank, question, FLOOR)
                pair = [(whole, arm(bank, question)), (floor, scan)]
                for times, query in pair if n % 2 else pair[::-1]:
                    milliseconds, rows = timed(connection, query)
                    if round_at:
                        times.append(milliseconds)
                    if times is whole and round_at == 0:
                        ids.append(rows)
        found["recall20_hnsw"] = recall(ids, best, first)
        found["arm_p50_ms"] = median(whole)
        found["floor_p50_ms"] = median(floor)
        found["floor_ratio"] = median(whole) / median(floor)
        for name, share in SHARES.items():
            some = questions[:50]
            allowed = random < share
            if not allowed.any():
                continue
            answers = [timed(connection, arm(bank, question, name)) for question in some]
            found[f"recall20_filter_{name}"] = recall(
                [ids for _, ids in answers], nearest(vectors, asked[:50], allowed), first
            )
            found[f"filter_{name}_p50_ms"] = median(taken for taken, _ in answers)
    return found


def many_banks(server: Server, texts: Sequence[str], vectors: Array, banks: int) -> harness.Figures:
    """Compare one bank above its threshold with the same among many banks."""
    above = max(1, banks // 25)
    rows = {"one": 1, "many": banks}
    with closing(server.connect()) as connection:
        for database in rows:
            connection.execute(f"create database {database}".encode())
    for database, count in rows.items():
        with closing(server.connect(database)) as connection:
            connection.execute("create extension if not exists vector")
            schema.migrate(connection)
            with connection.transaction():
                for n in range(count):
                    large = n < above
                    for number, fact_type in enumerate(TYPES):
                        at = (n * 37 + number * 11) % (len(texts) - 120)
                        size = 120 if large else 5
                        part = slice(at, at + size)
                        load(connection, f"b{n}", texts[part], vectors[part], fact_type=fact_type)
            connection.execute("update pgrecall.bank set hnsw_threshold = 100")
            connection.execute("vacuum analyze")
            for (create,) in connection.execute(
                "select statement from pgrecall.index_plan()"
            ).fetchall():
                connection.execute(create.replace(" concurrently", "").encode())

    plans: dict[str, list[float]] = {name: [] for name in rows}
    inserts: dict[str, list[float]] = {name: [] for name in rows}
    connections = {name: server.connect(name) for name in rows}
    chosen = {"one": ["b0"], "many": [f"b{n}" for n in range(0, above, max(1, above // 20))]}
    for n in range(400):
        question = literal(vectors[n % len(vectors)])
        for name, connection in connections.items():
            bank = chosen[name][n % len(chosen[name])]
            connection.execute("set enable_sort = off")
            planned = timed(connection, "explain " + statement("hnsw", bank, question, BY_INDEX))[0]
            (memory_id,) = harness.one(
                connection,
                f"select min(memory_id) from pgrecall.memory where bank_id = '{bank}'",
            )
            with connection.transaction(force_rollback=True):
                connection.execute(
                    "delete from pgrecall.embedding where bank_id = %s and memory_id = %s",
                    [bank, memory_id],
                )
                began = harness.clock(connection)
                connection.execute(
                    INSERT.format(bank=bank, question=question).encode(),
                    [memory_id],
                    prepare=False,
                )
                taken = harness.clock(connection) - began
            if n >= 40:
                plans[name].append(planned)
                inserts[name].append(taken)
    for connection in connections.values():
        connection.close()
    return {
        "plan_ratio_5000_banks": median(plans["many"]) / median(plans["one"]),
        "insert_ratio_5000_banks": median(inserts["many"]) / median(inserts["one"]),
        "plan_ms_one_bank": median(plans["one"]),
        "plan_ms_5000_banks": median(plans["many"]),
        "insert_ms_one_bank": median(inserts["one"]),
        "insert_ms_5000_banks": median(inserts["many"]),
    }


def main() -> None:
    parser = harness.arguments(__doc__, "sentences.txt.xz")
    parser.add_argument("--questions", type=Path, help="default: questions.txt beside the data")
    parser.add_argument("--sizes", type=int, nargs="+", help="facts in the banks that are compared")
    parser.add_argument("--cache", type=Path, help="directory to keep the embeddings in")
    parser.add_argument("--banks", type=int, help="banks in the database with many of them")
    options = parser.parse_args()
    path = harness.require(options.data)
    asked_path = harness.require(options.questions or path.with_name("questions.txt"))
    sizes = sorted(options.sizes or (SMOKE_SIZES if options.smoke else SIZES))
    banks = options.banks or (300 if options.smoke else 5_000)

    texts = list(islice(harness.lines(path), sizes[-1]))
    lines = list(islice(harness.lines(asked_path), 30 if options.smoke else 200))
    vectors = embedded(texts, options.cache, "sentences")
    asked = embedded(lines, options.cache, "questions")

    figures: harness.Figures = {}
    with running() as server:
        with closing(server.connect()) as connection:
            load(connection, "tiny", texts[:10], vectors[:10])
        print(f"{'facts':>7} {'method':14} {'p50 ms':>8} {'cold ms':>8} {'recall':>7} {'MB':>8} s")
        for size in sizes:
            found, bank, first = compare(
                server, size, texts, vectors, asked, 0 if options.smoke else 3, size == sizes[-1]
            )
            figures |= found
            if size <= 10_000:  # without its index again
                figures["recall20_exact"] = exact(server, bank, first, vectors[:size], asked)
        figures |= product(server, bank, first, vectors[: sizes[-1]], asked)
        figures |= many_banks(server, texts, vectors, banks)
        harness.show({name: value for name, value in figures.items() if "." not in name})
        settings = {
            "facts": sizes,
            "questions": len(lines),
            "banks": banks,
            "files out of the system's cache": server.is_dropped,
        }
        rounded = {key: round(value, 4) for key, value in figures.items()}
        harness.write(options, rounded, settings, server.dsn)


if __name__ == "__main__":
    main()
