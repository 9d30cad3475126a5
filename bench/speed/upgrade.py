"""Measure how long readers wait during an upgrade from 0.1.0.

    python -m bench.speed.upgrade --smoke
    python -m bench.speed.upgrade --full

A database with 0.1.0 is filled by plain inserts: facts with lexemes, an entity and a vector each.
Readers then run a statement like those of a recall again and again: facts with their bank and their
mentions. Meanwhile pgrecall.schema.migrate upgrades the database.

* slowest_before_ms: the longest time that a reader waited for an answer before the upgrade.
* slowest_ms: the same while the upgrade ran, and up to a second after it.
* blocked_ms: the difference of the two, at least 0: what the upgrade cost the slowest reader.
* upgrade_s: how long the upgrade took.
* planned_s: the time that `pgrecall migrate --dry-run` announced.
* facts, reads: facts in the database, and answers while the upgrade ran.
"""

from __future__ import annotations

import threading
from time import perf_counter, sleep

import psycopg
from bench import harness

from pgrecall import schema
from pgrecall.server import SETTINGS, build, embedded_server

FACTS = {False: 300_000, True: 3_000}
READERS = 4
PAUSE = 0.005  # seconds: readers that take all processors would slow the upgrade down
BEFORE = "0.1.0"

FILL = """
set session_replication_role = replica;  -- the rows below reference one another as they should
insert into pgrecall.bank (bank_id) values ('bench');
insert into pgrecall.fact_type (bank_id, fact_type) values ('bench', 'fact');
insert into pgrecall.memory (
  bank_id, memory_id, fact_type, text, fact_key, occurred, content_hash, is_linked, lexical_length,
  lexical_weights)
select 'bench', n, 'fact', 'Person ' || n % 3000 || ' wrote report ' || n || ' about topic '
       || n % 997, case when n % 10 = 0 then 'report.' || n end,
       case when n % 2 = 0 then
         tstzrange(timestamptz '2020-01-01' + n * interval '1 minute',
                   timestamptz '2020-01-02' + n * interval '1 minute') end,
       sha256(n::text::bytea), true, 6,
       format('{%s:1,%s:1,%s:1,%s:1}/1000000000', 1 + n % 997, 1000 + n % 3000, 5000,
              10000 + n)::sparsevec
from   generate_series(1, {facts}) n;
insert into pgrecall.entity (bank_id, entity_id, name)
select 'bench', {facts} + n, 'Person ' || n from generate_series(0, 2999) n;
insert into pgrecall.entity_alias (bank_id, alias, entity_id)
select 'bench', 'person ' || n, {facts} + n from generate_series(0, 2999) n;
insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id)
select 'bench', {facts} + n % 3000, 'fact', n from generate_series(1, {facts}) n;
insert into pgrecall.relation (bank_id, relation_id, from_id, kind, to_id, memory_id)
select 'bench', 2 * {facts} + n, {facts} + n % 3000, 'knows', {facts} + (n + 7) % 3000, n
from   generate_series(1, {facts} / 10) n;
insert into pgrecall.embedding (bank_id, memory_id, model, fact_type, embedding)
select 'bench', n, '', 'fact',
       array[sin(n), cos(n), sin(n * 2), cos(n * 3), sin(n * 5), cos(n * 7)]::real[]::halfvec
from   generate_series(1, {facts}) n;
analyze;
"""

READ = """
select m.memory_id, m.text, n.entity_id, b.text_search_config
from   pgrecall.memory m
join   pgrecall.bank b on b.bank_id = m.bank_id
left   join pgrecall.mention n on n.bank_id = m.bank_id and n.memory_id = m.memory_id
where  m.bank_id = 'bench'
and    m.fact_type = 'fact'
and    m.memory_id between %(first)s and %(first)s + 20
and    m.valid_to is null
"""


class Reader(threading.Thread):
    """Asks again and again until it is told to stop, and keeps the time of every answer."""

    def __init__(self, dsn: str, facts: int) -> None:
        super().__init__()
        self._dsn, self._facts = dsn, facts
        self.answers: list[tuple[float, float]] = []  # (when it was asked, seconds)
        self.is_over = False
        self.error: psycopg.Error | None = None

    def run(self) -> None:
        """Read facts until told to stop. An error ends the reading and is kept."""
        try:
            self._read()
        except psycopg.Error as error:
            self.error = error

    def _read(self) -> None:
        first = 1
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self.is_over:
                asked = perf_counter()
                connection.execute(READ, {"first": first}).fetchall()
                self.answers.append((asked, perf_counter() - asked))
                first = (first + 7919) % self._facts
                sleep(PAUSE)


def measure(dsn: str, facts: int) -> harness.Figures:
    """Fill the database, upgrade it under readers, and return the figures."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create extension vector")
        frozen = (build.MIGRATIONS / f"pgrecall--{BEFORE}.sql").read_text(encoding="utf-8")
        with connection.transaction():
            connection.execute(frozen.encode())
        connection.execute(FILL.replace("{facts}", str(facts)).encode())
        connection.execute("set session_replication_role = origin")
        connection.execute("checkpoint")
        planned = sum(step.seconds for step in schema.plan(connection))

        readers = [Reader(dsn, facts) for _ in range(READERS)]
        for reader in readers:
            reader.start()
        sleep(2)
        begun = perf_counter()
        schema.migrate(connection)
        ended = perf_counter()
        sleep(1)
        for reader in readers:
            reader.is_over = True
            reader.join()
            if reader.error:
                raise reader.error

    answers = [answer for reader in readers for answer in reader.answers]
    before = max(seconds for asked, seconds in answers if asked + seconds < begun)
    during = [seconds for asked, seconds in answers if asked + seconds >= begun]
    return {
        "facts": facts,
        "reads": len(during),
        "slowest_before_ms": before * 1000,
        "slowest_ms": max(during) * 1000,
        "blocked_ms": max(0.0, max(during) - before) * 1000,
        "upgrade_s": ended - begun,
        "planned_s": planned,
    }


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = harness.arguments(__doc__)
    options = parser.parse_args()
    with (
        harness.directory() as path,
        embedded_server(path=path / "data") as server,
    ):
        figures = measure(server.dsn, FACTS[options.smoke])
        harness.show(figures)
        harness.write(options, figures, SETTINGS, server.dsn)


if __name__ == "__main__":
    main()
