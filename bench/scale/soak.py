"""Measure whether a bank that is used for long stays as it was: sizes, times, memory, statistics.

    python -m bench.scale.soak --smoke
    python -m bench.scale.soak --full
    python -m bench.scale.soak --minutes 10

A month is compressed into an hour (a minute with --smoke). Each of the 30 days, on one server that
stays up unless it is killed: facts are retained, replace those of their keys, are updated, ended
and forgotten, as many as come, so that the bank keeps its size; near copies are consolidated;
questions are asked, over one connection that lasts; then maintain() and vacuum run. On every tenth
day the bank is re-embedded with another model, on every seventh a process of the server is killed
with SIGKILL while it writes.

Figures, from the last third of the days over the second, where all should have levelled off:
growth.<table> and growth.indexes in bytes, growth.backend in memory of the connection that lasts,
growth.p99 of a recall in processor time. In the end: statistics.idf_error, the largest difference
of the IDF of a frequent word from that of a copy counted anew; lost, acknowledged facts that are
gone; twice, facts stored twice; doctor, problems that pgrecall doctor finds.
"""

from __future__ import annotations

import contextlib
import io
import random
import time
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil
import psycopg
from bench import harness
from psycopg.types.json import Jsonb

from pgrecall import Recall, RecallError, schema
from pgrecall.command import main as command
from pgrecall.server import embedded_server

DAYS = 30
KEPT = 2000  # facts that the bank holds
A_DAY = 300  # that come, at most
ASKED = 40  # questions a day
KEYS = 200
LENGTH = 64
TABLES = ("memory", "embedding", "entity", "mention", "link", "lexeme", "entity_count")
SIZES = """
select c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid)
from   pg_class c
where  c.relnamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
  and  c.relkind = 'r'
"""
PENDING = "select memory_id from pgrecall.reembed_pending('soak')"
IDF = """
with counted as (
  select l.bank_id, l.lexeme, ln(s.document_count::float8 / l.document_count) as idf,
         l.document_count
  from   pgrecall_internal.lexeme l
  join   pgrecall_internal.statistics s on s.bank_id = l.bank_id and s.kind = l.kind
  where  l.kind = 'memory'
)
select coalesce(max(abs(a.idf - b.idf)), 0)
from   counted a
join   counted b on b.lexeme = a.lexeme and b.bank_id = 'copy'
where  a.bank_id = 'soak' and b.document_count >= 20
"""


class Month:
    """A bank that is used, and what was noted of it each day."""

    def __init__(self, path: Path, minutes: float) -> None:
        self.path = path
        self.dice = random.Random(7)
        self.day_seconds = minutes * 60 / DAYS
        self.model = "model 0"
        self.stored: dict[str, list[int]] = {}  # the versions of each fact
        self.count = 0
        self.notes: dict[str, list[float]] = defaultdict(list)
        self.server = embedded_server(path=path)

    def connect(self) -> psycopg.Connection[Any]:
        """Connect, as soon as the server takes connections again."""
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                return psycopg.connect(self.server.dsn, autocommit=True)
            time.sleep(0.1)

    def vector(self) -> list[float]:
        return [self.dice.gauss(0, 1) for _ in range(LENGTH)]

    def fact(self) -> dict[str, Any]:
        self.count += 1
        who, what = self.dice.randrange(300), int(self.dice.paretovariate(0.8)) % 5000
        fact = {
            "text": f"Person {who} saw thing {what} at place {what % 90}, {self.count}.",
            "entities": [f"Person {who}", f"Thing {what}"],
            "embedding": self.vector(),
        }
        if self.dice.random() < 0.3:
            fact["fact_key"] = f"key.{self.dice.randrange(KEYS)}"
        return fact

    def write(self, memory: Recall, facts: list[dict[str, Any]]) -> None:
        rows = memory.retain("soak", facts, model=self.model, replace="key")
        for fact, row in zip(facts, rows, strict=True):
            self.stored[fact["text"]] = [row.memory_id]

    def change(self, memory: Recall) -> None:
        """Update and end some facts, and forget the oldest."""
        alive = memory.list_memories("soak", top_k=20)
        for one in alive[:5]:
            version = memory.update("soak", one.memory_id, tags=[f"day {self.count}"])
            self.stored[one.text].append(version.memory_id)
        for one in alive[5:10]:
            memory.supersede("soak", one.memory_id)
        surplus = len(self.stored) - KEPT
        if surplus > 0:
            texts = list(self.stored)[:surplus]
            memory.forget("soak", [key for text in texts for key in self.stored.pop(text)])

    def reembed(self, memory: Recall, day: int) -> None:
        self.model = f"model {day}"
        with self.connect() as connection:
            connection.execute(
                "select pgrecall.reembed_start('soak', %s, %s)", [self.model, LENGTH]
            )
            while rows := connection.execute(PENDING).fetchall():
                given = [
                    {"memory_id": memory_id, "embedding": self.vector()} for (memory_id,) in rows
                ]
                connection.execute(
                    "select pgrecall.reembed_store('soak', %s, %s)", [self.model, Jsonb(given)]
                )
        memory.reembed_finish("soak")
        while memory.reembed_clean("soak"):
            pass

    def kill(self) -> None:
        """Kill a process of the server; it starts again by itself, or is started."""
        postmaster = psutil.Process(int((self.path / "postmaster.pid").read_text().split()[0]))
        children = postmaster.children()
        victim = self.dice.choice([postmaster, *children])
        victim.kill()
        psutil.wait_procs([victim, *children], timeout=30)
        if victim == postmaster:
            self.server = embedded_server(path=self.path)

    def day(self, number: int, reader: psycopg.Connection[Any]) -> None:
        ends = time.monotonic() + self.day_seconds
        is_killed = number % 7 == 6
        batch = [self.fact() for _ in range(10)]
        with self.connect() as connection:
            memory = Recall(connection, embedder=None)
            for n in range(A_DAY // len(batch)):
                if time.monotonic() > ends and n > 2:
                    break
                if is_killed and n == 2:
                    self.kill()
                    break
                self.write(memory, batch)
                batch = [self.fact() for _ in range(10)]
        if is_killed:  # what was not acknowledged is sent again, as an application would
            reader = self.reader = self.connect()
            with self.connect() as connection:
                self.write(Recall(connection, embedder=None), batch)
        with self.connect() as connection:
            memory = Recall(connection, embedder=None)
            self.change(memory)
            memory.consolidate("soak", dry_run=False)
            if number % 10 == 9:
                self.reembed(memory, number)
            while memory.maintain("soak"):
                pass
            connection.execute("vacuum analyze")
        self.ask(reader)
        self.note(reader)
        time.sleep(max(0.0, ends - time.monotonic()))

    def ask(self, reader: psycopg.Connection[Any]) -> None:
        memory = Recall(reader, embedder=None)
        times = []
        for _ in range(ASKED):
            question = f"What did Person {self.dice.randrange(300)} see at place 7?"
            before = harness.clock(reader)
            memory.recall("soak", question, embedding=self.vector(), model=self.model, top_k=10)
            times.append(harness.clock(reader) - before)
        self.notes["p99"].append(harness.percentile(times, 99))

    def note(self, reader: psycopg.Connection[Any]) -> None:
        tables: dict[str, int] = defaultdict(int)
        indexes = 0
        for name, size, index_size in reader.execute(SIZES):
            tables["embedding" if name.startswith("embedding") else name] += size
            indexes += index_size
        for name in TABLES:
            self.notes[name].append(tables[name])
        self.notes["indexes"].append(indexes)
        memory = psutil.Process(reader.info.backend_pid).memory_full_info()
        self.notes["backend"].append(memory.uss)

    def growth(self) -> harness.Figures:
        third = DAYS // 3
        return {
            f"growth.{name}": round(fmean(values[-third:]) / fmean(values[-2 * third : -third]), 3)
            for name, values in self.notes.items()
        }

    def run(self) -> harness.Figures:
        with self.connect() as connection:
            schema.migrate(connection)
            memory = Recall(connection, embedder=None)
            memory.create_bank("soak")
            while len(self.stored) < KEPT:
                self.write(memory, [self.fact() for _ in range(100)])
        self.reader = self.connect()
        for number in range(DAYS):
            self.day(number, self.reader)
            if number % 5 == 4:
                shown = {name: round(values[-1]) for name, values in self.notes.items()}
                print(f"day {number + 1}: {shown}", flush=True)
        return self.growth() | self.checked()

    def checked(self) -> harness.Figures:
        with self.connect() as connection:
            memory = Recall(connection, embedder=None)
            memory.clone_bank("soak", "copy")
            memory.refresh_statistics("copy", is_full=True)
            (error,) = connection.execute(IDF).fetchone() or (0,)
            (lost,) = connection.execute(
                "select count(*) from unnest(%s::bigint[]) as u(id) where not exists (select from"
                " pgrecall.memory m where m.bank_id = 'soak' and m.memory_id = u.id)",
                [[key for versions in self.stored.values() for key in versions]],
            ).fetchone() or (0,)
            (twice,) = connection.execute(
                "select count(*) from (select text from pgrecall.memory where bank_id = 'soak' and"
                " valid_to is null group by text having count(*) > 1) as t"
            ).fetchone() or (0,)
            memory.drop_bank("copy")
            connection.execute("vacuum analyze")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status = command(["doctor", "--dsn", self.server.dsn])
        if status:
            print(said.getvalue())
        return {
            "statistics.idf_error": round(float(error), 4),
            "lost": float(lost),
            "twice": float(twice),
            "doctor": float(status),
        }


def soaked(minutes: float) -> harness.Figures:
    """Use a bank for a month, compressed into so many minutes."""
    with harness.directory() as path:
        month = Month(path / "data", minutes)
        try:
            return month.run()
        finally:
            with contextlib.suppress(AttributeError, psycopg.Error):
                month.reader.close()
            month.server.stop()


def main() -> None:
    parser = harness.arguments(__doc__, "")
    parser.add_argument("--minutes", type=float, help="for the month; default: 60, smoke: 1")
    options = parser.parse_args()
    minutes = options.minutes or (1 if options.smoke else 60)
    try:
        figures = soaked(minutes)
    except (psycopg.Error, RecallError) as error:
        raise SystemExit(f"the month broke off: {error}") from error
    for name, value in figures.items():
        print(f"{name:24} {value:8.3f}")
    harness.write(options, figures, {"minutes": minutes, "facts": KEPT, "smoke": options.smoke})


if __name__ == "__main__":
    main()
