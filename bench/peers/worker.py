"""Run one peer in an environment of its own: a line of JSON in, a line of JSON out.

    PGRECALL_BENCH_DSN=... ENVIRONMENT/bin/python bench/peers/worker.py ADAPTER VECTORS

peers.py starts it. It imports only the standard library and the adapter, so that it runs wherever
the peer does. An adapter is a file with a class Peer:

* Peer(dsn, vectors, threads) connects to an empty or a filled database;
* setup() prepares the database; versions() names what the peer runs;
* prepare(facts), if it exists, embeds what no other peer embeds; it is not measured;
* load(bank, facts) stores facts, `{id, text, entities, at}`; finish() does what the peer's
  documentation advises after a load;
* ask(bank, text, asked_at, top_k) returns the ids that it finds, best first, and the milliseconds
  of the database if the peer reports them. Several threads call it at once.

Vectors are looked up in the file where peers.py has stored those of all texts: embedding is not
measured.
"""

from __future__ import annotations

import importlib
import json
import os
import sqlite3
import sys
import time
import traceback
from array import array
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

MOST_THREADS, MOST_CLIENTS = 16, 64


class Vectors:
    """The vectors of all texts of the benchmark.

    Attributes:
        embed: Embeds other texts, such as those that a peer adds words to, once each; set by the
            adapter of such a peer.
        spent: Seconds that this took, by the wall and on a processor.
        is_lost: Whether the embedder is down, so that no text has a vector.

    """

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)
        self._lock = Lock()
        self.embed: Callable[[list[str]], Iterable[Iterable[float]]] | None = None
        self.spent = (0.0, 0.0)
        self.is_lost = False
        self._made: dict[str, list[float]] = {}

    def __call__(self, text: str) -> list[float]:
        return self.many([text])[0]

    def many(self, texts: Sequence[str]) -> list[list[float]]:
        if self.is_lost:
            raise ConnectionError("the embedder is down")
        found = {text: vector for text in texts if (vector := self._known(text)) is not None}
        if missing := [text for text in dict.fromkeys(texts) if text not in found]:
            if self.embed is None:
                raise KeyError(f"no vector of {missing[0][:80]!r}")
            began, spent = time.perf_counter(), time.process_time()
            made = [list(vector) for vector in self.embed(missing)]
            self._made |= zip(missing, made, strict=True)
            seconds, processor = self.spent
            self.spent = (
                seconds + time.perf_counter() - began,
                processor + time.process_time() - spent,
            )
            found |= {text: self._made[text] for text in missing}
        return [found[text] for text in texts]

    def _known(self, text: str) -> list[float] | None:
        if text in self._made:
            return self._made[text]
        with self._lock:
            row = self._database.execute(
                "select vector from vector where text = ?", [text]
            ).fetchone()
        return array("f", row[0]).tolist() if row is not None else None


class Worker:
    """Runs the commands of peers.py."""

    def __init__(self, adapter: str, dsn: str, vectors: Path) -> None:
        sys.path.append(str(Path(__file__).parent / "adapters"))
        self._vectors = Vectors(vectors)
        self._clients = ThreadPoolExecutor(MOST_CLIENTS)  # kept: some have a connection each
        self._peer = importlib.import_module(adapter).Peer(dsn, self._vectors, MOST_THREADS)

    def setup(self) -> Any:
        self._peer.setup()
        return {"versions": self._peer.versions()}

    def load(self, bank: str, path: str) -> Any:
        with Path(path).open(encoding="utf-8") as file:
            facts = [json.loads(line) for line in file]
        if hasattr(self._peer, "prepare"):
            self._peer.prepare(facts)
        began = time.perf_counter()
        self._peer.load(bank, facts)
        return {"seconds": time.perf_counter() - began, "facts": len(facts)}

    def finish(self) -> Any:
        began = time.perf_counter()
        self._peer.finish()
        return {"seconds": time.perf_counter() - began}

    def ask(self, question: dict[str, Any], top_k: int) -> Any:
        """Ask, without counting the time to embed parts of the question."""
        began, spent, embedding = time.perf_counter(), time.process_time(), self._vectors.spent
        ids, database_ms = self._peer.ask(
            question["bank"], question["text"], question["asked_at"], top_k
        )
        seconds = time.perf_counter() - began - (self._vectors.spent[0] - embedding[0])
        processor = time.process_time() - spent - (self._vectors.spent[1] - embedding[1])
        return {
            "ms": seconds * 1000,
            "client_ms": processor * 1000,
            "database_ms": database_ms,
            "ids": [str(one) for one in ids],
        }

    def burst(self, questions: list[dict[str, Any]], clients: int, burst_seconds: float) -> Any:
        """Let clients ask for the given seconds, and wait for the recalls that still run."""
        began = time.perf_counter()
        turn = count()

        def client(_: int) -> int:
            done = 0
            while time.perf_counter() - began < burst_seconds:
                self.ask(questions[next(turn) % len(questions)], 10)
                done += 1
            return done

        done = sum(self._clients.map(client, range(clients)))
        return {"asked": done, "seconds": time.perf_counter() - began}

    def lose_embedder(self) -> Any:
        """From now on no text has a vector."""
        self._vectors.is_lost = True
        return {}

    def memory(self) -> Any:
        # Not ru_maxrss: a process inherits that of its parent.
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return {"megabytes": int(status.partition("VmHWM:")[2].split()[0]) / 1000}


def main() -> None:
    # What libraries print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    worker: Worker | None = None
    for line in sys.stdin:
        try:
            told = json.loads(line)
            if worker is None:
                worker = Worker(
                    sys.argv[1], os.environ.pop("PGRECALL_BENCH_DSN"), Path(sys.argv[2])
                )
            answer = getattr(worker, told.pop("do"))(**told)
        except BaseException as error:  # peers.py raises it
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
    os._exit(0)  # even if the peer left threads running
