"""Measure whether long use changes a bank: sizes, times, memory, statistics.

    python -m bench.scale.soak --smoke
    python -m bench.scale.soak --full
    python -m bench.scale.soak --minutes 10

A month is compressed into an hour (a minute with --smoke), on one server that runs all the time
unless it is killed. It begins with the oldest release, 0.1.0, which is upgraded in the middle of
the month while facts are retained and questions asked. On each of the 30 days facts are retained,
replace those of their keys, and are updated; as many are ended or forgotten as are added, so that
the bank keeps its size. Near copies are consolidated, questions are asked over one connection that
stays open, then maintain() and vacuum run. What 0.1.0 lacks (replace, update, consolidate,
maintain) begins after the upgrade. From then on the bank is re-embedded with another model on every
sixth day. On every seventh day of the month a process of the server is killed with SIGKILL while it
writes.

Figures of growth are the last six days over the six before, when all should have levelled off:
growth.<table> and growth.indexes in bytes (the indexes that grew most are printed), growth.backend
in memory of the open connection, growth.p99 of a recall in processor time. At the end:
statistics.idf_error, the largest difference between the IDF of a frequent word and that of a copy
counted again; lost, acknowledged facts that are missing; twice, facts stored twice; doctor,
problems that pgrecall doctor finds. Then all statistics are counted again, and the bank is exported
into a fresh installation. fingerprint.schema are the functions, tables, columns, indexes and grants
that differ between the two; fingerprint.rows the rows, with statistics; fingerprint.answers the
questions, of 50, with another answer. upgrade.refused is how often a call had to be repeated during
the upgrade; facts are all facts that were written.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil
import psycopg
from bench import harness
from psycopg.types.json import Jsonb

from pgrecall import Recall, RecallError, schema
from pgrecall.command import main as command
from pgrecall.server import build, embedded_server

DAYS = 30
UPGRADED = 15  # on which of them
SPAN = 6  # days that are compared
BEFORE = "0.1.0"
KEPT = 2000  # facts that the bank holds
BATCH = 10
BATCHES = 30  # a day, or one each second where a day takes longer
ASKED = 40  # questions a day
KEYS = 200
LENGTH = 64
TABLES = ("memory", "embedding", "entity", "mention", "link", "lexeme", "entity_count")
SIZES = """
select c.relname, c.relkind = 'i', pg_table_size(c.oid)
from   pg_class c
join   pg_namespace n on n.oid = c.relnamespace
where  n.nspname in ('pgrecall', 'pgrecall_internal') and c.relkind in ('r', 'i')
"""
FINGERPRINT = harness.ROOT / "tests" / "fingerprint.sql"
RETAIN = "select memory_id from pgrecall.retain(bank => 'soak', facts => %s, model => %s)"
RECALL = """
select memory_id, text
from   pgrecall.hybrid_recall(bank => %s, query => %s, embedding => %s, model => %s, top_k => 10)
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


def timeless(line: str) -> str:
    """Return a row of an export without the time at which it was counted."""
    given = json.loads(line)
    for name in ("refreshed_at", "taken_at"):
        given["row"].pop(name, None)
    return json.dumps(given)


class Month:
    """A bank in use, and what was measured each day."""

    def __init__(self, path: Path, minutes: float) -> None:
        self.path = path
        self.dice = random.Random(7)
        self.day_seconds = minutes * 60 / DAYS
        self.model = "model 0"
        self.stored: dict[str, list[int]] = {}  # the versions of each fact
        self.count = 0
        self.refused = 0
        self.is_old = True
        self.notes: dict[str, list[float]] = defaultdict(list)
        self.index_sizes: dict[str, list[float]] = defaultdict(list)
        self.server = embedded_server(path=path)

    def connect(self) -> psycopg.Connection[Any]:
        """Connect as soon as the server accepts connections."""
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

    def facts(self) -> list[dict[str, Any]]:
        return [self.fact() for _ in range(BATCH)]

    def write(self, connection: psycopg.Connection[Any], facts: list[dict[str, Any]]) -> None:
        if self.is_old:
            found = connection.execute(RETAIN, [Jsonb(facts), self.model]).fetchall()
            keys = [key for (key,) in found]
        else:
            memory = Recall(connection, embedder=None)
            rows = memory.retain("soak", facts, model=self.model, replace="key")
            keys = [row.memory_id for row in rows]
        for fact, key in zip(facts, keys, strict=True):
            self.stored[fact["text"]] = [key]

    def surplus(self) -> list[int]:
        """Remove and return the surplus of the oldest facts."""
        texts = list(self.stored)[: max(0, len(self.stored) - KEPT)]
        return [key for text in texts for key in self.stored.pop(text)]

    def change_old(self, connection: psycopg.Connection[Any]) -> None:
        """End some facts and forget the oldest, as 0.1.0 did."""
        for (key,) in list(self.stored.values())[-5:]:
            connection.execute("select pgrecall.supersede('soak', %s)", [key])
        connection.execute("select pgrecall.forget('soak', %s)", [self.surplus()])
        connection.execute("select pgrecall.refresh_statistics('soak')")

    def change(self, memory: Recall) -> None:
        """Update and end some facts, and forget the oldest."""
        alive = memory.list_memories("soak", top_k=20)
        for one in alive[:5]:
            version = memory.update("soak", one.memory_id, tags=[f"day {self.count}"])
            self.stored[one.text].append(version.memory_id)
        for one in alive[5:10]:
            memory.supersede("soak", one.memory_id)
        if keys := self.surplus():
            memory.forget("soak", keys)

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
        """Kill a process of the server, which restarts by itself or is restarted."""
        postmaster = psutil.Process(int((self.path / "postmaster.pid").read_text().split()[0]))
        children = postmaster.children()
        victim = self.dice.choice([postmaster, *children])
        victim.kill()
        psutil.wait_procs([victim, *children], timeout=30)
        if victim == postmaster:
            self.server = embedded_server(path=self.path)

    def upgrade(self) -> None:
        """Upgrade to the current release while facts are retained and questions asked."""
        is_over = threading.Event()
        worker = threading.Thread(target=self.go_on, args=[is_over])
        worker.start()
        time.sleep(1)
        with self.connect() as connection:
            schema.migrate(connection)
            # 0.1.0 kept counting the words of forgotten memories: see migrations/NOTES.md.
            connection.execute("select pgrecall.refresh_statistics('soak', is_full => true)")
        time.sleep(1)
        is_over.set()
        worker.join()
        self.is_old = False

    def go_on(self, is_over: threading.Event) -> None:
        batch = self.facts()
        with self.connect() as connection:
            while not is_over.is_set():
                try:
                    self.write(connection, batch)
                    self.answer(connection, "soak", self.question(), self.vector())
                    batch = self.facts()
                except psycopg.Error:
                    self.refused += 1

    def day(self, number: int) -> None:
        ends = time.monotonic() + self.day_seconds
        is_killed = number % 7 == 6
        batches = max(BATCHES, int(self.day_seconds))
        batch = self.facts()
        with self.connect() as connection:
            for n in range(batches):
                late = ends - time.monotonic()
                if late < 0 and n > 2:
                    break
                if is_killed and n == batches // 2 or late < 0 and n == 2:
                    self.kill()
                    break
                self.write(connection, batch)
                batch = self.facts()
                time.sleep(max(0.0, 0.8 * late / (batches - n)))
        if is_killed:  # facts that were not acknowledged are sent again, as by an application
            self.reader = self.connect()
            with self.connect() as connection:
                self.write(connection, batch)
        if number == UPGRADED:
            self.upgrade()
        with self.connect() as connection:
            if self.is_old:
                self.change_old(connection)
            else:
                memory = Recall(connection, embedder=None)
                self.change(memory)
                memory.consolidate("soak", dry_run=False)
                if number % SPAN == SPAN - 1:
                    self.reembed(memory, number)
                while memory.maintain("soak"):
                    pass
            connection.execute("vacuum analyze")
        self.ask()
        self.note()
        time.sleep(max(0.0, ends - time.monotonic()))

    def question(self) -> str:
        return f"What did Person {self.dice.randrange(300)} see at place 7?"

    def answer(
        self, connection: psycopg.Connection[Any], bank: str, question: str, vector: list[float]
    ) -> list[tuple[Any, ...]]:
        values = [bank, question, str(vector), self.model]
        return connection.execute(RECALL, values).fetchall()

    def ask(self) -> None:
        times = []
        for _ in range(ASKED):
            question, vector = self.question(), self.vector()
            before = harness.clock(self.reader)
            self.answer(self.reader, "soak", question, vector)
            times.append(harness.clock(self.reader) - before)
        self.notes["p99"].append(harness.percentile(times, 99))

    def note(self) -> None:
        tables: dict[str, int] = defaultdict(int)
        indexes = 0
        for name, is_index, size in self.reader.execute(SIZES):
            if is_index:
                indexes += size
                self.index_sizes[name].append(size)
            else:
                tables["embedding" if name.startswith("embedding") else name] += size
        for name in TABLES:
            self.notes[name].append(tables[name])
        self.notes["indexes"].append(indexes)
        memory = psutil.Process(self.reader.info.backend_pid).memory_full_info()
        self.notes["backend"].append(memory.uss)

    def growth(self) -> harness.Figures:
        last = {
            name: spans(sizes) for name, sizes in self.index_sizes.items() if len(sizes) >= 2 * SPAN
        }
        most = sorted(last, key=lambda name: last[name][0] - last[name][1])[:3]
        print("grew most:", {name: [round(size) for size in last[name]] for name in most})
        return {
            f"growth.{name}": round(after / before, 3)
            for name, values in self.notes.items()
            for before, after in [spans(values)]
        }

    def run(self) -> harness.Figures:
        with self.connect() as connection:
            connection.execute("create extension vector")
            frozen = (build.MIGRATIONS / f"pgrecall--{BEFORE}.sql").read_text(encoding="utf-8")
            with connection.transaction():
                connection.execute(frozen.encode())
            connection.execute("select pgrecall.create_bank('soak')")
            while len(self.stored) < KEPT:
                self.write(connection, self.facts())
        self.reader = self.connect()
        for number in range(DAYS):
            self.day(number)
            if number % 5 == 4:
                shown = {name: round(values[-1]) for name, values in self.notes.items()}
                print(f"day {number + 1}: {shown}", flush=True)
        return self.growth() | self.checked() | self.compared()

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
            "upgrade.refused": float(self.refused),
            "facts": float(self.count),
        }

    def compared(self) -> harness.Figures:
        """Compare with the same rows in a fresh installation."""
        with self.connect() as soaked:
            soaked.execute("create database fresh")
            soaked.execute("alter database fresh set pgrecall.partitions = 16")  # as 0.1.0 had
            with psycopg.connect(self.server.dsn, dbname="fresh", autocommit=True) as fresh:
                schema.migrate(fresh)
                kinds = [Counter(one.execute(FINGERPRINT.read_bytes())) for one in (soaked, fresh)]
                memories = [Recall(one, embedder=None) for one in (soaked, fresh)]
                memories[0].refresh_statistics("soak", is_full=True)
                memories[1].import_rows("soak", memories[0].export("soak"))
                memories[1].refresh_statistics("soak", is_full=True)
                rows = [Counter(map(timeless, memory.export("soak"))) for memory in memories]
                asked = [(self.question(), self.vector()) for _ in range(50)]
                answers = [
                    Counter({str(self.answer(one, "soak", *question)): 1 for question in asked})
                    for one in (soaked, fresh)
                ]
        figures = {}
        for name, (here, there) in {"schema": kinds, "rows": rows, "answers": answers}.items():
            missing, more = list(here - there), list(there - here)
            figures[f"fingerprint.{name}"] = float(max(len(missing), len(more)))
            for one in (*missing[:3], *more[:3]):
                print(f"{name} differ: {str(one)[:300]}")
        return figures


def spans(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of the SPAN days before the last SPAN, and that of the last."""
    return fmean(values[-2 * SPAN : -SPAN]), fmean(values[-SPAN:])


def soaked(minutes: float) -> harness.Figures:
    """Use a bank for a month, compressed into the given minutes."""
    with harness.directory() as path:
        month = Month(path / "data", minutes)
        try:
            return month.run()
        finally:
            with contextlib.suppress(AttributeError, psycopg.Error):
                month.reader.close()
            month.server.stop()


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--minutes", type=float, help="for the month; default: 60, smoke: 1")
    options = parser.parse_args()
    minutes = options.minutes or (1 if options.smoke else 60)
    try:
        figures = soaked(minutes)
    except (psycopg.Error, RecallError) as error:
        raise SystemExit(f"the month broke off: {error}") from error
    harness.show(figures)
    settings = {"minutes": minutes, "facts": KEPT}
    harness.write(options, figures, settings | {"load": f"a month in {minutes:g} minutes"})


if __name__ == "__main__":
    main()
