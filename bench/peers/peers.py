"""Measure pgrecall beside its peers: the same facts, the same questions, one server, one run.

    make bench-peers
    python -m bench.peers.peers --smoke
    python -m bench.peers.peers --peers pgrecall hindsight --facts 1000 10000 --minutes 60

Each peer is a file in adapters/; worker.py runs it in an environment of its own (environments.py).
All use one PostgreSQL server, with a database for each set of facts (sets.py). Each peer is asked
beside pgrecall: every question goes to both before the next one, and every other question begins
with pgrecall, so that other work on the machine affects both, and no third system takes their pages
out of shared buffers. Judged questions go to all in turn. Vectors are given and cost no peer time.
Environments, vectors and loaded data are kept in --cache: a second run continues where the first
ended, was interrupted, or ran out of --minutes. After a SIGTERM, or --minutes, nothing new begins,
and the part of a load that is under way is kept. A peer that cannot run says why.

Figures, peers.<peer>.<axis>. (the axis is a number of facts, banksN or the name of a set):

* p50_ms, p95_ms: wall time of a recall, from the call in Python to its ids;
* database_ms: median of the part that the peer itself reports for the database;
* server_ms: mean processor time of all processes of the server for a recall; client_ms: of the
  process that asks;
* ratio, database_ratio, server_ratio: the same over those of pgrecall beside this peer, server_ms
  as means, the others as medians of the ratios question by question. Above 1 pgrecall is faster.
  The times of pgrecall are over its questions beside all peers;
* clients_N.per_s: recalls a second of N clients, in bursts in turn; clients_N.ratio: that of
  pgrecall over that of the peer;
* first_ms: from the start of a process until its first answer, imports included;
* client_mb, server_mb: the most memory of its process, and the private memory of its connections at
  the end;
* ndcg10, recall10, questions: of a judged set, for ten results; no_embedder.answered, .ndcg10: the
  share of questions that are answered while the embedder is down, and nDCG@10 of all of them then;
* load_per_s, load_server_ms: facts loaded a second, indexes and links included, and processor time
  of the server a fact; megabytes: of the database, less an empty one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from select import select
from signal import SIGTERM, signal
from statistics import fmean, median
from typing import Any

import psycopg
from bench import conversations, harness
from bench.peers import environments, sets
from bench.peers.environments import CannotRunError, Server
from bench.peers.sets import Set

from pgrecall.embedders import MiniLMEmbedder, PackagedEmbedder
from pgrecall.server import build

OURS = "pgrecall"
TOP_K = 10
BURSTS, BURST_SECONDS = 4, 2.0
SMOKE_FACTS = 120
LOAD_SHARE = 0.6  # of the time left
SCRIPT = hashlib.sha256(build.full_script().encode()).hexdigest()[:12]  # of the schema of pgrecall
MODELS: Mapping[str, Any] = {
    "all-MiniLM-L6-v2": MiniLMEmbedder,
    PackagedEmbedder.model: PackagedEmbedder,
}


@dataclass(frozen=True)
class Peer:
    """How a peer is run.

    Attributes:
        adapter: The file in adapters/.
        title: Its name in tables.
        how: How it is set up, for the reader.
        packages: What pip installs for it. Empty: it runs in the environment of this program.
        python: The lowest version that it needs.
        extension: What it needs on the server and no package registry has.
        model: The model whose vectors it gets.
        checkout: A built checkout of pgrecall at another commit, for its driver and schema.
        part: How many facts of a bank are loaded at a time, where it takes hours: the next run
            goes on where one ended. None: all of them.

    """

    adapter: str
    title: str
    how: str
    packages: Sequence[str] = ()
    python: str | None = None
    extension: str | None = None
    model: str = "all-MiniLM-L6-v2"
    checkout: Path | None = None
    part: int | None = None

    def key(self, one: Set) -> str:
        """Return a text that changes whenever this peer or the set does."""
        parts = [(environments.HERE / "adapters" / f"{self.adapter}.py").read_bytes()]
        parts.append(repr(self.packages).encode())
        if self.checkout is not None:
            built = self.checkout / "pydriver" / "pgrecall" / "extension"
            parts += [path.read_bytes() for path in sorted(built.glob("*.sql"))]
        elif not self.packages:
            parts.append(SCRIPT.encode())
        return hashlib.sha256(b"".join([*parts, one.key.encode()])).hexdigest()[:16]


PEERS = {
    OURS: Peer("ours", "pgrecall", "`retain_bulk()`, `recall()` as it comes, no reranker"),
    "pgrecall_own": Peer(
        "ours",
        "pgrecall, own model",
        f"the same with vectors of {PackagedEmbedder.model}",
        model=PackagedEmbedder.model,
    ),
    "pgvector": Peer(
        "recipe",
        "pgvector's recipe",
        "HNSW and `ts_rank_cd` over GIN, 40 candidates each, RRF in SQL, as in its documentation",
        ["psycopg[binary]==3.3.9"],
    ),
    "four": Peer(
        "four",
        "four connections",
        "an arm, a statement and a connection each, fused by the client",
        ["psycopg[binary,pool]==3.3.9"],
    ),
    "textsearch": Peer(
        "textsearch",
        "pg_textsearch and pgvector",
        "BM25 index and HNSW, 40 candidates each, RRF in SQL",
        ["psycopg[binary]==3.3.9"],
    ),
    "langchain": Peer(
        "langchain_store",
        "LangChain PGVectorStore",
        "hybrid search with a tsvector column, HNSW, RRF, 40 candidates each",
        ["langchain-postgres==0.0.19"],
    ),
    "llamaindex": Peer(
        "llamaindex_store",
        "LlamaIndex PGVectorStore",
        "QueryFusionRetriever over vectors (HNSW) and sparse search, relative scores",
        ["llama-index-core==0.14.25", "llama-index-vector-stores-postgres==0.9.0"],
    ),
    "pgmnemo": Peer(
        "pgmnemo_sql",
        "pgmnemo",
        "`ingest()`, `recall_hybrid()` in SQL, a bank a project",
        ["psycopg[binary]==3.3.9"],
        extension="pgmnemo",
    ),
    "ogham": Peer(
        "ogham_service",
        "Ogham",
        "what its MCP tools call, on its PostgreSQL backend, a bank a profile, no reranker",
        ["ogham-mcp[postgres]==0.19.0", "onnxruntime", "tokenizers"],
        python="3.13",
    ),
    "mem0": Peer(
        "mem0_store",
        "Mem0 with pgvector",
        "`add(infer=False)`, `search()`; no spaCy, so neither lemmas nor entities",
        ["mem0ai==2.2.1", "psycopg[binary,pool]==3.3.9"],
    ),
    "hindsight": Peer(
        "hindsight_engine",
        "Hindsight",
        "engine in the process, prepared facts, reranker passed through, observations off",
        [
            "hindsight-api-slim==1.1.0",
            "dateparser==1.4.2",
            "onnxruntime",
            "tokenizers",
            "psycopg[binary]==3.3.9",
        ],
        part=1000,
    ),
}


class PeerError(Exception):
    """A peer failed at a command."""


class WorkerError(PeerError):
    """A peer raised an error, but still runs."""


class Process:
    """A running peer."""

    def __init__(self, python: Path, peer: Peer, dsn: str, vectors: Path, log: Path) -> None:
        self._log = log.open("a", encoding="utf-8")
        worker = environments.HERE / "worker.py"
        self._process = subprocess.Popen(
            [python, worker, peer.adapter, vectors],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=log.parent,
            env={
                **os.environ,
                "PGRECALL_BENCH_DSN": dsn,  # an argument would show the password to others
                "PGRECALL_BENCH_MODEL": peer.model,
                "OMP_NUM_THREADS": "1",
                "HOME": str(log.parent),  # where some peers keep files of their own
                **({"PYTHONPATH": f"{peer.checkout}/pydriver"} if peer.checkout else {}),
            },
        )

    def tell(self, do: str, seconds: float = 120, **given: Any) -> dict[str, Any]:
        """Send a command to the peer and return its answer.

        Raises:
            WorkerError: the peer raised an error.
            PeerError: the peer took too long, or has ended.

        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            print(json.dumps({"do": do, **given}), file=self._process.stdin, flush=True)
        if not select([self._process.stdout], [], [], seconds)[0]:
            self._process.kill()
            raise PeerError(f"{do} took more than {seconds:.0f} seconds")
        line = self._process.stdout.readline()
        if not line:
            raise PeerError(f"the process ended with {self._process.wait()}; see {self._log.name}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"][:300])
        return answer

    def end(self) -> None:
        try:
            self._process.communicate(timeout=20)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
        self._log.close()


class State:
    """What is loaded and measured, in a file from which the next run continues."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def keep(self, name: str, row: Any) -> None:
        self.rows[name] = row
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(self.rows))
        part.rename(self._path)


class Run:
    """One run: the working peers, the sets, and the figures so far."""

    def __init__(self, options: argparse.Namespace, folder: Path, server: Server) -> None:
        self.options = options
        self.folder = folder
        self.server = server
        self.state = State(folder / f"state-{options.settings}.json")
        self.prefix = "smoke_" if options.smoke else ""
        self.figures: harness.Figures = {}
        self.not_run: dict[str, str] = {}
        self._left_out: set[str] = set()
        self.versions: dict[str, Any] = {}
        self.commit = harness.commit()
        self._earlier = self._read_earlier()
        self._until: float = time.monotonic() + options.minutes * 60
        self._pythons: dict[str, Path] = {}

    def is_over(self) -> bool:
        return self.seconds_left() <= 0

    def end(self) -> None:
        """Let nothing begin any more. A second call ends the program at once."""
        if self.is_over():
            sys.exit("ended by a signal")
        print("what has begun is finished; a second signal ends it at once", flush=True)
        self._until = time.monotonic()

    def seconds_left(self) -> float:
        return max(0.0, self._until - time.monotonic())

    def _load_seconds(self) -> float:
        """Return how long a load may take; some time is kept for what follows."""
        return self.seconds_left() * LOAD_SHARE

    def prepare(self) -> None:
        """Make the environments. A peer whose environment fails is left out, with the reason."""
        for name in self.options.peers:
            peer = PEERS[name]
            try:
                self._require_extension(peer.extension)
                self._pythons[name] = (
                    environments.environment(
                        self.folder / "environments" / peer.adapter, peer.packages, peer.python
                    )
                    if peer.packages
                    else Path(sys.executable)
                )
            except CannotRunError as error:
                self.leave_out(name, str(error))

    def _require_extension(self, name: str | None) -> None:
        if name is None:
            return
        with psycopg.connect(self.server.url("postgres")) as connection:
            found = connection.execute(
                "select from pg_available_extensions where name = %s", [name]
            ).rowcount
        if not found:
            raise CannotRunError(
                f"no registry of packages has the extension {name}; "
                f"{environments.PGMNEMO} can name a folder with its files"
            )

    def leave_out(self, name: str, why: str) -> None:
        self._say_why(name, why)
        self._left_out.add(name)

    def _say_why(self, name: str, why: str) -> None:
        print(f"{name} cannot run: {why}", flush=True)
        self.not_run[name] = why

    def keep(self, name: str, axis: str, found: Mapping[str, float]) -> None:
        for key, value in found.items():
            self.figures[f"peers.{name}.{axis}.{key}"] = float(f"{value:.4g}")
        shown = ", ".join(f"{key} {value:.4g}" for key, value in found.items())
        print(f"{axis:>8} {name:14} {shown}", flush=True)

    @contextmanager
    def peers(self, one: Set) -> Iterator[dict[str, Process]]:
        """Start all peers on a set, and load it into those that lack it."""
        running: dict[str, Process] = {}
        try:
            for name in self._pythons:
                if name in self._left_out:
                    continue
                try:
                    running[name] = self._started(name, one)
                except (PeerError, CannotRunError) as error:
                    self.leave_out(name, f"{one.name}: {error}")
            yield running
        finally:
            for process in running.values():
                process.end()

    def _started(self, name: str, one: Set) -> Process:
        """Start a peer on its database of a set, and fill that."""
        database = self._database(name, one)
        key = PEERS[name].key(one)
        known = self.state.rows.get(database, {})
        if known.get("key") != key or known.get("is_torn"):
            self._drop(database)
            self._execute(f'create database "{database}"')
            known = {"key": key, "parts": 0, "seconds": 0.0, "facts": 0, "spent": 0.0}
            known["empty"] = self._bytes(database)
        process = self._process(name, one)
        try:
            self.versions[name] = process.tell("setup")["versions"]
            if "figures" not in known:
                self._load(process, name, one, known)
        except PeerError:
            process.end()
            if known.get("is_torn"):
                self._drop(database)  # its connections may still be busy
            raise
        self.keep(name, one.name, known["figures"])
        return process

    def _drop(self, database: str) -> None:
        self._execute(f'drop database if exists "{database}" with (force)')

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.server.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def _load(self, process: Process, name: str, one: Set, known: dict[str, Any]) -> None:
        """Load what is not loaded yet."""
        database = self._database(name, one)
        most = PEERS[name].part or max(map(len, one.banks.values()))
        parts = [
            (bank, rows[start : start + most])
            for bank, rows in one.banks.items()
            for start in range(0, len(rows), most)
        ]
        for bank, rows in parts[known["parts"] :]:
            longest = 2 * known["seconds"] / max(known["parts"], 1)  # later parts take longer
            if self.is_over() or self._load_seconds() < longest:
                raise PeerError(f"{known['facts']:,} facts are loaded; the next run goes on")
            known["is_torn"] = True  # until all of the part is there
            self.state.keep(database, known)
            path = self.folder / "facts.jsonl"
            with path.open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(row)) + "\n" for row in rows)
            spent = self.server.processor_seconds()
            loaded = process.tell("load", self._load_seconds(), bank=bank, path=str(path))
            known["spent"] += self.server.processor_seconds() - spent
            known["seconds"] += loaded["seconds"]
            known["facts"] += loaded["facts"]
            known["parts"] += 1
            del known["is_torn"]
            self.state.keep(database, known)
        spent = self.server.processor_seconds()
        seconds = known["seconds"] + process.tell("finish", self._load_seconds())["seconds"]
        spent = known["spent"] + self.server.processor_seconds() - spent
        with psycopg.connect(self.server.url(database), autocommit=True) as connection:
            connection.execute("vacuum analyze")  # as autovacuum would soon do
        known["figures"] = {
            "load_per_s": known["facts"] / seconds,
            "load_server_ms": spent / known["facts"] * 1000,
            "megabytes": (self._bytes(database) - known["empty"]) / 1e6,
        }
        self.state.keep(database, known)

    def _bytes(self, database: str) -> int:
        with psycopg.connect(self.server.url("postgres")) as connection:
            row = connection.execute("select pg_database_size(%s)", [database]).fetchone()
        assert row is not None
        return int(row[0])

    def measure(self, one: Set) -> None:
        """Measure a set, unless all peers were measured on it in their present state."""
        if self.is_over():
            return
        asked = {
            "commit": self.commit,
            "key": one.key,
            "questions": len(one.questions),
            "clients": self.options.clients,
            "peers": {name: PEERS[name].key(one) for name in self.options.peers},
        }
        known = self.state.rows.get(f"measured {self.prefix}{one.name}", {})
        if known.get("asked") == asked:
            self.figures |= known["figures"]
            self.versions |= known["versions"]
            self.not_run |= known["not_run"]
        else:
            before = len(self.not_run)
            (self.quality if one.is_judged else self.speed)(one)
            figures = {k: v for k, v in self.figures.items() if k.split(".")[2] == one.name}
            if not self.is_over() and len(self.not_run) == before:
                found = {"figures": figures, "versions": self.versions, "not_run": self.not_run}
                self.state.keep(f"measured {self.prefix}{one.name}", {"asked": asked, **found})
        if self.options.json is not None:
            text = json.dumps(self.report(), indent=2)
            self.options.json.write_text(text + "\n", encoding="utf-8")

    def speed(self, one: Set) -> None:
        """Ask each peer beside pgrecall, then let several clients of all ask in turn."""
        questions = [asdict(question) for question in one.questions]
        with self.peers(one) as running:
            if not running:
                return
            for name in list(running):
                self._first(one, running, name, questions[0])
            beside = [name for name in running if name != OURS] or [OURS]
            all_ours: list[dict[str, float]] = []
            for name in beside:
                pair = [each for each in dict.fromkeys((OURS, name)) if each in running]
                taken = self._in_turn(running, pair, questions)
                all_ours += taken.get(OURS, [])
                if name != OURS and name in running and taken[name]:
                    self.keep(name, one.name, self._summary(taken[name], taken.get(OURS)))
            if all_ours:
                self.keep(OURS, one.name, self._summary(all_ours, all_ours))
            for clients in self.options.clients:
                if clients > 1 and not self.is_over():
                    self._throughput(one, running, questions, clients)
            for name, process in running.items():
                memory = {
                    "client_mb": process.tell("memory")["megabytes"],
                    "server_mb": self.server.megabytes(self._database(name, one)),
                }
                self.keep(name, one.name, memory)

    def _in_turn(
        self, running: dict[str, Process], pair: list[str], questions: Sequence[dict[str, Any]]
    ) -> dict[str, list[dict[str, float]]]:
        """Ask every question of each of the pair; return what each took."""
        taken: dict[str, list[dict[str, float]]] = defaultdict(list)
        for question in questions[:10]:  # caches, plans, connections
            for name in pair:
                if name in running:
                    self._ask(running, name, question)
        for n, question in enumerate(questions):
            if self.is_over() or not running.keys() >= set(pair):
                break
            for name in pair[n % len(pair) :] + pair[: n % len(pair)]:
                spent = self.server.processor_seconds()
                answer = self._ask(running, name, question)
                if answer is not None:
                    answer["server_ms"] = (self.server.processor_seconds() - spent) * 1000
                    taken[name].append(answer)
        return taken

    def _first(
        self, one: Set, running: dict[str, Process], name: str, question: dict[str, Any]
    ) -> None:
        """Restart a peer, and time its first answer."""
        running.pop(name).end()
        began = time.perf_counter()
        try:
            running[name] = self._process(name, one)
            running[name].tell("setup")
        except PeerError as error:
            self.leave_out(name, f"a second start: {error}")
            return
        if self._ask(running, name, question) is not None:
            self.keep(name, one.name, {"first_ms": (time.perf_counter() - began) * 1000})

    def _database(self, name: str, one: Set) -> str:
        return f"{self.prefix}{name}_{one.name}"

    def _process(self, name: str, one: Set) -> Process:
        peer = PEERS[name]
        log = self.folder / "logs" / name
        log.mkdir(parents=True, exist_ok=True)
        url = self.server.url(self._database(name, one))
        vectors = self.folder / f"{peer.model}.sqlite"
        return Process(self._pythons[name], peer, url, vectors, log / "log.txt")

    def _ask(
        self, running: dict[str, Process], name: str, question: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Ask a peer. A peer that fails is left out from then on."""
        try:
            return running[name].tell("ask", question=question, top_k=TOP_K)
        except PeerError as error:
            self.leave_out(name, str(error))
            running.pop(name).end()
            return None

    @staticmethod
    def _summary(
        rows: Sequence[Mapping[str, float]], ours: Sequence[Mapping[str, float]] | None
    ) -> dict[str, float]:
        times = [row["ms"] for row in rows]
        found = {
            "p50_ms": harness.percentile(times, 50),
            "p95_ms": harness.percentile(times, 95),
            "server_ms": fmean(row["server_ms"] for row in rows),
            "client_ms": fmean(row["client_ms"] for row in rows),
        }
        database = [row["database_ms"] for row in rows if row["database_ms"] is not None]
        if database:
            found["database_ms"] = median(database)
        if ours:
            found["ratio"] = median(a["ms"] / b["ms"] for a, b in zip(rows, ours, strict=False))
            spent = fmean(row["server_ms"] for row in ours)
            found["server_ratio"] = found["server_ms"] / spent
            if database and all(row["database_ms"] is not None for row in ours):
                found["database_ratio"] = median(
                    a["database_ms"] / b["database_ms"] for a, b in zip(rows, ours, strict=False)
                )
        return found

    def _throughput(
        self,
        one: Set,
        running: dict[str, Process],
        questions: Sequence[dict[str, Any]],
        clients: int,
    ) -> None:
        rates: dict[str, list[float]] = defaultdict(list)
        bursts = 1 if self.options.smoke else BURSTS
        for _ in range(bursts):
            for name in list(running):
                try:
                    got = running[name].tell(
                        "burst", questions=questions, clients=clients, burst_seconds=BURST_SECONDS
                    )
                except PeerError as error:
                    self._say_why(name, f"{clients} clients: {error}")
                    running.pop(name).end()  # other sets start it again
                    continue
                rates[name].append(got["asked"] / got["seconds"])
        ours = median(rates[OURS]) if OURS in running else None
        for name in running:
            rate = median(rates[name])
            found = {f"clients_{clients}.per_s": rate}
            if ours is not None:
                found[f"clients_{clients}.ratio"] = ours / rate
            self.keep(name, one.name, found)

    def quality(self, one: Set) -> None:
        """Ask questions with known answers, and again while no question can be embedded."""
        with self.peers(one) as running:
            found = self._judged(one, running)
            if found is None:
                return
            for name in running:  # those that answered all questions
                rows = found[name]
                ndcg, recall, _ = (fmean(column) for column in zip(*rows, strict=True))
                asked = len(rows)
                self.keep(name, one.name, {"ndcg10": ndcg, "recall10": recall, "questions": asked})
            if one.name == sets.QUALITY[0]:
                self._without_embedder(one, running)

    def _judged(
        self, one: Set, running: dict[str, Process]
    ) -> dict[str, list[tuple[float, ...]]] | None:
        rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
        for question in one.questions:
            for name in list(running):
                answer = self._ask(running, name, asdict(question))
                if answer is not None:
                    rows[name].append(
                        conversations.measures(answer["ids"], frozenset(question.relevant))
                    )
            if self.is_over():  # some of the questions do not represent all
                print(f"{one.name}: the time is up; the next run asks all of it")
                return None
        return rows

    def _without_embedder(self, one: Set, running: dict[str, Process]) -> None:
        """Ask while the embedder is down. A question that raises an error finds nothing."""
        for name, process in running.items():
            found: list[float] = []
            try:
                process.tell("lose_embedder")
                for question in one.questions:
                    try:
                        answer = process.tell("ask", question=asdict(question), top_k=TOP_K)
                    except WorkerError:
                        continue
                    relevant = frozenset(question.relevant)
                    found.append(conversations.measures(answer["ids"], relevant)[0])
            except PeerError as error:  # the peer ended, or took too long
                print(f"{name} without embedder: {error}", flush=True)
            lost = {"answered": len(found), "ndcg10": sum(found)}
            figures = {f"no_embedder.{k}": v / len(one.questions) for k, v in lost.items()}
            self.keep(name, one.name, figures)

    def _read_earlier(self) -> dict[str, Any]:
        """Return the results in the file with this schema and these settings, to add to them."""
        path: Path | None = self.options.json
        if path is None or not path.exists():
            return {}
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        was = found["settings"], found["versions"].get("script")
        return found if was == (self._settings(), SCRIPT) else {}

    def _settings(self) -> dict[str, Any]:
        options = self.options
        return {
            "server": options.settings,
            "clients": options.clients,
            "questions": options.questions,
            "judged": options.judged or "all",
            "load": options.load,
        }

    def report(self) -> dict[str, Any]:
        """Return what is written to a file of results."""
        with psycopg.connect(self.server.url("postgres")) as connection:
            row = connection.execute(
                "select current_setting('server_version'),"
                " (select default_version from pg_available_extensions where name = 'vector')"
            ).fetchone()
        assert row is not None
        return {
            "commit": self.commit,
            "machine": harness.machine(),
            "versions": {"postgresql": row[0], "pgvector": row[1], "script": SCRIPT},
            "settings": self._settings(),
            "peers": self._earlier.get("peers", {})
            | {
                name: {
                    "title": PEERS[name].title,
                    "how": PEERS[name].how,
                    "versions": self.versions.get(name, {}),
                    **({"not_run": self.not_run[name]} if name in self.not_run else {}),
                }
                for name in self.options.peers
            },
            "figures": self._earlier.get("figures", {}) | self.figures,
        }


def read_sets(options: argparse.Namespace) -> list[Set]:
    """Return the judged sets, and those for speed, the largest last."""
    speed = [sets.sentences(options.data, n, options.questions) for n in sorted(options.facts)]
    speed[1:1] = [sets.many_banks(options.data, n, options.questions) for n in options.banks]
    facts, questions = (SMOKE_FACTS, 5) if options.smoke else (None, options.judged)
    quality = [sets.judged(options.data, name, facts, questions) for name in options.sets]
    return [*speed[:1], *quality, *speed[1:]]


def embed(folder: Path, given: Sequence[Set], models: Iterable[str]) -> None:
    facts = {fact.text for one in given for bank in one.banks.values() for fact in bank}
    questions = {question.text for one in given for question in one.questions}
    questions |= {" ".join(text.split()) for text in questions}  # Mem0 joins spaces
    for model in dict.fromkeys(models):
        embedder = MODELS[model](threads=1)
        path = folder / f"{model}.sqlite"
        sets.embed_missing(path, facts, embedder.embed)
        prefix = sets.prompt(embedder)
        embed_query = embedder.embed_query if prefix else embedder.embed
        sets.embed_missing(path, questions, embed_query, prefix)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="little data, two minutes")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument(
        "--earlier",
        type=Path,
        metavar="FOLDER",
        help="pgrecall at another commit, after make build",
    )
    parser.add_argument("--facts", type=int, nargs="*", help="of a bank; default: 1000 10000")
    parser.add_argument("--banks", type=int, nargs="*", help="of 100 facts each; default: 100")
    parser.add_argument("--clients", type=int, nargs="+", help="default: 1 4 16 64")
    parser.add_argument("--sets", nargs="*", choices=sets.QUALITY, help="judged ones; default: all")
    parser.add_argument("--questions", type=int, default=100, help="for speed, of each size")
    parser.add_argument("--judged", type=int, help="questions of each judged set; default: all")
    parser.add_argument("--settings", choices=environments.SERVERS, default="stock")
    parser.add_argument("--minutes", type=float, default=180, help="nothing begins after these")
    parser.add_argument("--cache", type=Path, help="where environments and data are kept")
    parser.add_argument("--data", type=Path, default=harness.DATA, help="folder of the data")
    parser.add_argument("--load", help="what else ran on the machine, for the reader")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    if options.earlier is not None:
        checkout = options.earlier.resolve()
        how = f"the same at another commit, {checkout.name}"
        PEERS["earlier"] = replace(
            PEERS[OURS], title="pgrecall, earlier", how=how, checkout=checkout
        )
        options.peers.append("earlier")
    if options.facts is None:
        options.facts = [SMOKE_FACTS] if options.smoke else [1_000, 10_000]
    if options.clients is None:
        options.clients = [1, 4] if options.smoke else [1, 4, 16, 64]
    if options.banks is None:
        options.banks = [2] if options.smoke else [100]
    if options.sets is None:
        options.sets = sets.QUALITY[:1] if options.smoke else sets.QUALITY
    if options.smoke:
        options.questions = min(options.questions, 10)
    if options.json is None and not options.smoke:
        options.json = harness.RESULTS / "peers.json"
    return options


def main() -> None:
    options = arguments()
    signal(SIGTERM, lambda *_: sys.exit("ended by a signal"))  # the server is stopped
    folder = environments.place(options.cache)
    folder.mkdir(parents=True, exist_ok=True)
    given = read_sets(options)
    embed(folder, given, (PEERS[name].model for name in options.peers))
    with environments.only_one(folder), environments.server(folder, options.settings) as server:
        run = Run(options, folder, server)
        signal(SIGTERM, lambda *_: run.end())
        run.prepare()
        for one in given:
            run.measure(one)


if __name__ == "__main__":
    main()
