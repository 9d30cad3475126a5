"""Measure how fast facts are written, and what their links cost.

    python -m bench.speed.retain --smoke
    python -m bench.speed.retain --full

Facts are sentences with a time, an embedding and two of a few thousand entities; every second fact
names one entity, the hub. The embeddings are given and not part of the time: words are hashed to
directions and averaged, so that sentences with common words are similar. With --vectors FILE.npy
they are read from a file, and at its end used again with noise of 0.1 of their length.

Banks of several sizes are filled without links, and get the HNSW indexes of index_plan(). Then,
through the driver, into each bank:

* <size>.facts_per_s_batch1, _batch100, _batch10000: facts retained a second, links written at once.
  Those without a size are of the largest bank.
* retain.<size>_over_<smallest>: facts a second into that bank over those into the smallest, batches
  of 100.
* cost_ratio_<large>_vs_<small>: time a fact in the largest bank over that in the smallest, batches
  of 100. _batch1, _batch10000 the same for other batches.
* writers16_lost: 16 writers into one bank at once, with facts and entities in common: facts that
  are missing afterwards or stored twice, entities stored twice, and errors.
* links_per_fact, link_bytes_per_fact, fact_bytes_per_fact: of the largest bank, indexes included;
  facts with their embeddings.
* hub.*: a recall from the largest bank of a question that names the hub, over one that does not,
  and a retain of facts that mention the hub, over others.
* entity_links.*: what links between facts of one entity, 50 at most an entity, would cost: their
  bytes a fact, the time to write them, and the time to expand them rather than the mentions.
* distinct_scores: of link_expansion(), the share of distinct scores in the first 100, mean.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import psycopg
from bench import harness

from pgrecall import Recall, RecallError
from pgrecall.server import SETTINGS

SIZES = {
    False: (1_000, 3_000, 10_000, 20_000, 50_000, 100_000, 1_000_000),
    True: (200, 1_000, 3_000),
}
ROUNDS = (1, 150), (100, 8), (10_000, 1)  # facts in a batch, and batches into each bank
SMOKE_ROUNDS = (1, 30), (100, 2), (1_000, 1)
BY_COPY = 10_000  # facts from here on are copies of those before, with other vectors
DIMENSIONS = 128
ENTITIES = 3_000
HUB = "Hub Corporation"
START = datetime(2000, 1, 1, tzinfo=timezone.utc)
WRITERS = 16
MODEL = "bench"
WORD = re.compile(r"\w+")
Fact = dict[str, Any]


class Facts:
    """An endless stream of different facts."""

    def __init__(self, sentences: Sequence[str], vectors: Path | None, dimensions: int) -> None:
        self._random = np.random.default_rng(1)
        self._sentences = sentences
        self.dimensions = dimensions
        self._vectors: np.ndarray | None = None
        self._words: dict[str, tuple[np.ndarray, int]] = {}
        self._made = 0
        if vectors is not None:
            given = np.load(vectors).astype(np.float32)
            # A random rotation; its first dimensions nearly keep the angles.
            turn, _ = np.linalg.qr(self._random.standard_normal((given.shape[1], dimensions)))
            self._vectors = given @ turn.astype(np.float32)

    def vector(self, n: int, text: str) -> np.ndarray:
        if self._vectors is not None:
            vector = self._vectors[n % len(self._vectors)]
            if n >= len(self._vectors):
                noise = self._random.standard_normal(self.dimensions)
                vector = vector + noise * (0.1 * np.linalg.norm(vector) / np.linalg.norm(noise))
        else:
            vector = self._random.standard_normal(self.dimensions) * 0.05
            for word in WORD.findall(text.lower()):
                direction, seen = self._words.get(
                    word, (self._random.standard_normal(self.dimensions), 0)
                )
                self._words[word] = direction, seen + 1
                vector = vector + direction / (seen + 1)
        found: np.ndarray = vector / np.linalg.norm(vector)
        return found

    def noise(self, count: int) -> np.ndarray:
        """Make vectors to be added to others, a tenth as long."""
        shape = count, self.dimensions
        found: np.ndarray = self._random.standard_normal(shape) * (0.1 / self.dimensions**0.5)
        return found

    def take(self, count: int, *, hub: bool | None = None) -> list[Fact]:
        """Make the next facts; every second one mentions the hub unless said otherwise."""
        return [self._fact(hub) for _ in range(count)]

    def _fact(self, hub: bool | None) -> Fact:
        n = self._made
        self._made += 1
        text = self._sentences[n % len(self._sentences)]
        if n >= len(self._sentences):
            text = f"{text} ({n // len(self._sentences)})"
        others = self._random.zipf(1.3, 2) % ENTITIES
        names = [f"Person {k}" for k in others]
        if hub if hub is not None else n % 2:
            names[0] = HUB
        return {
            "text": text,
            "entities": names,
            "occurred": (START + n * timedelta(minutes=10)).isoformat(),
            "embedding": self.vector(n, text).round(5).tolist(),
        }


def fill(recall: Recall, dsn: str, bank: str, facts: Facts, size: int) -> None:
    """Fill a bank without links, and create the vector indexes that index_plan() proposes."""
    recall.create_bank(bank)
    taken = min(size, BY_COPY)
    recall.retain_many(bank, _each(facts, taken), model=MODEL, link="deferred", batch_size=1000)
    with psycopg.connect(dsn, autocommit=True) as connection:
        if size > taken:
            for number in range(1, size // taken):
                copy(connection, bank, taken, number, facts)
            connection.execute(
                "update pgrecall_internal.statistics set document_count = %(size)s, watermark ="
                " (select max(memory_id) from pgrecall.memory where bank_id = %(bank)s)"
                " where bank_id = %(bank)s and kind = 'memory'",
                {"bank": bank, "size": size},
            )
            connection.execute(
                "update pgrecall_internal.lexeme set document_count = document_count * %s"
                " where bank_id = %s",
                [size // taken, bank],
            )
        connection.execute("update pgrecall.memory set is_linked = true where bank_id = %s", [bank])
        connection.execute("vacuum analyze pgrecall.memory, pgrecall.mention, pgrecall.embedding")
        connection.execute("set maintenance_work_mem = '2GB'")
        due = connection.execute("select statement from pgrecall.index_plan(%s)", [bank])
        for (statement,) in due.fetchall():
            connection.execute(statement)


def _each(facts: Facts, count: int) -> Iterator[Fact]:
    for _ in range(count):
        yield from facts.take(1)


def copy(
    connection: psycopg.Connection[Any], bank: str, taken: int, number: int, facts: Facts
) -> None:
    """Copy the first facts of a bank, with other hashes and vectors."""
    noise = ["[" + ",".join(f"{x:.5f}" for x in row) + "]" for row in facts.noise(1000)]
    with connection.transaction():
        connection.execute(
            "create temporary table noise on commit drop as"
            " select u.n - 1 as n, u.v::halfvec as v"
            " from unnest(%s::text[]) with ordinality as u(v, n)",
            [noise],
        )
        connection.execute(
            "create temporary table copied on commit drop as"
            " select m.memory_id, nextval('pgrecall.id_seq') as new_id,"
            "        row_number() over (order by m.memory_id) as n"
            " from (select memory_id from pgrecall.memory where bank_id = %s"
            "       order by memory_id limit %s) as m",
            [bank, taken],
        )
        connection.execute("analyze copied")
        connection.execute(
            "insert into pgrecall.memory (bank_id, memory_id, fact_type, text, occurred,"
            " mentioned_at, content_hash, lexical_length, lexical_weights)"
            " select m.bank_id, c.new_id, m.fact_type, m.text, m.occurred, m.mentioned_at,"
            "        sha256(m.content_hash || %s::text::bytea), m.lexical_length, m.lexical_weights"
            " from copied c join pgrecall.memory m on m.bank_id = %s and m.memory_id = c.memory_id",
            [number, bank],
        )
        connection.execute(
            "insert into pgrecall.embedding (bank_id, memory_id, model, fact_type, embedding)"
            " select e.bank_id, c.new_id, e.model, e.fact_type, e.embedding + noise.v"
            " from copied c"
            " join pgrecall.embedding e on e.bank_id = %s and e.memory_id = c.memory_id"
            " join noise on noise.n = c.n %% 1000",
            [bank],
        )
        connection.execute(
            "insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id)"
            " select x.bank_id, x.entity_id, x.fact_type, c.new_id"
            " from copied c"
            " join pgrecall.mention x on x.bank_id = %s and x.memory_id = c.memory_id",
            [bank],
        )


def rates(
    recall: Recall, facts: Facts, banks: Sequence[str], smoke: bool
) -> tuple[harness.Figures, dict[tuple[str, int], float]]:
    """Retain into the banks in turn, so that other work on the machine affects all of them."""
    figures: harness.Figures = {}
    cost = {}
    for batch, rounds in SMOKE_ROUNDS if smoke else ROUNDS:
        taken: dict[str, list[float]] = {bank: [] for bank in banks}
        for bank in list(banks) * rounds:
            given = facts.take(batch)
            taken[bank].append(harness.seconds(recall.retain, bank, given, model=MODEL) / batch)
        for bank in banks:
            cost[bank, batch] = median(taken[bank])
            name = f"{bank}.facts_per_s_batch{batch}"
            figures[name] = round(1 / cost[bank, batch], 1)
            print(f"{name:40} {figures[name]:10.1f}", flush=True)
    return figures, cost


def writers(recall: Recall, dsn: str, facts: Facts, rounds: int) -> float:
    """Count what goes wrong when 16 write at once."""
    recall.create_bank("writers")
    shared = facts.take(rounds * (WRITERS + 1))
    start = threading.Barrier(WRITERS)
    faults: list[RecallError | psycopg.Error] = []

    def write(n: int) -> None:
        with Recall.connect(dsn) as own:
            start.wait()
            for k in range(rounds):
                # Each fact is written by two of them.
                batch = shared[k * (WRITERS + 1) + n :][:2][:: 1 if n % 2 else -1]
                try:
                    own.retain("writers", batch, model=MODEL)
                except (RecallError, psycopg.Error) as error:
                    faults.append(error)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    with psycopg.connect(dsn) as connection:
        row = harness.one(
            connection,
            "select (select count(*) from pgrecall.memory where bank_id = 'writers'),"
            " (select count(*) - count(distinct pgrecall.normalised_name(name))"
            "  from pgrecall.entity where bank_id = 'writers'),"
            " (select count(*) from pgrecall.mention where bank_id = 'writers')",
        )
    mentions = sum(len(set(fact["entities"])) for fact in shared)
    lost: int = len(faults) + abs(row[0] - len(shared)) + row[1] + abs(row[2] - mentions)
    return lost


def sizes(connection: psycopg.Connection[Any]) -> harness.Figures:
    """Measure the size of the facts that were retained with links, and of the links."""
    bytes_of = (
        "select sum(pg_total_relation_size(c.oid)) from pg_class c"
        " where c.relkind = 'r' and c.relname ~ %s"
        " and c.relnamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)"
    )
    links, linked, link_bytes, fact_bytes, facts = harness.one(
        connection,
        f"""select (select count(*)::float8 from pgrecall.link),
                   (select count(distinct from_id)::float8 from pgrecall.link),
                   ({bytes_of})::float8, ({bytes_of})::float8,
                   (select count(*)::float8 from pgrecall.memory)""",
        ["^link$", "^(memory|embedding_[0-9]+)$"],
    )
    return {
        "links_per_fact": round(links / linked, 2),
        "link_bytes_per_fact": round(link_bytes / linked),
        "fact_bytes_per_fact": round(fact_bytes / facts),
    }


def hub(recall: Recall, facts: Facts, bank: str, rounds: int) -> harness.Figures:
    """Compare a question that names the hub with one that does not, and facts likewise."""
    taken: dict[bool, list[float]] = {False: [], True: []}
    written: dict[bool, list[float]] = {False: [], True: []}
    for n in range(2 * rounds):
        named = n % 2 == 1
        (fact,) = facts.take(1, hub=named)
        question = f"{fact['text'][:60]} at {HUB if named else 'the Corporation Hub'}"
        written[named].append(harness.seconds(recall.retain, bank, [fact], model=MODEL))
        taken[named].append(
            harness.seconds(
                recall.recall,
                bank,
                question,
                embedding=fact["embedding"],
                model=MODEL,
                rerank=False,
            )
        )
    return {
        "hub.recall_ms": round(median(taken[True]) * 1000, 2),
        "hub.recall_ratio": round(median(taken[True]) / median(taken[False]), 2),
        "hub.retain_ratio": round(median(written[True]) / median(written[False]), 2),
    }


EXPAND = {
    "mention": """
        select t.memory_id, count(*)
        from   unnest(%(seeds)s::bigint[]) as s(memory_id)
        cross  join lateral (select i.entity_id from pgrecall.mention i
                             where  i.bank_id = %(bank)s and i.memory_id = s.memory_id
                             limit  100) as e
        cross  join lateral (select y.memory_id from pgrecall.mention y
                             where  y.bank_id = %(bank)s and y.entity_id = e.entity_id
                               and  y.fact_type = 'world'
                             order  by y.memory_id desc limit 50) as t
        group  by 1 order by 2 desc, 1 desc limit 100""",
    "link": """
        select l.to_id, count(*)
        from   unnest(%(seeds)s::bigint[]) as s(memory_id)
        join   entity_link l on l.bank_id = %(bank)s and l.from_id = s.memory_id
        group  by 1 order by 2 desc, 1 desc limit 100""",
}


def entity_links(connection: psycopg.Connection[Any], bank: str, sample: int) -> harness.Figures:
    """Write links to the newest 50 facts of each entity of some facts, and expand both ways."""
    connection.execute(
        "create temporary table entity_link (bank_id text not null, from_id bigint not null,"
        " entity_id bigint not null, to_id bigint not null, weight real not null,"
        " primary key (bank_id, from_id, entity_id, to_id))"
    )
    newest = [
        row[0]
        for row in connection.execute(
            "select memory_id from pgrecall.memory where bank_id = %s"
            " order by memory_id desc limit %s",
            [bank, sample],
        )
    ]
    took = harness.seconds(
        connection.execute,
        """insert into entity_link
               select %(bank)s, s.memory_id, e.entity_id, t.memory_id, 1
               from   unnest(%(newest)s::bigint[]) as s(memory_id)
               cross  join lateral (select i.entity_id from pgrecall.mention i
                                    where  i.bank_id = %(bank)s and i.memory_id = s.memory_id
                                    limit  100) as e
               cross  join lateral (select y.memory_id from pgrecall.mention y
                                    where  y.bank_id = %(bank)s and y.entity_id = e.entity_id
                                      and  y.fact_type = 'world' and y.memory_id < s.memory_id
                                    order  by y.memory_id desc limit 50) as t""",
        {"bank": bank, "newest": newest},
    )
    row = harness.one(
        connection,
        "select count(*)::float8, pg_total_relation_size('entity_link')::float8 from entity_link",
    )
    figures = {
        "entity_links.links_per_fact": round(row[0] / len(newest), 1),
        "entity_links.bytes_per_fact": round(row[1] / len(newest)),
        "entity_links.write_ms_per_fact": round(took * 1000 / len(newest), 3),
    }
    for name, statement in EXPAND.items():
        taken = [
            harness.seconds(
                connection.execute,
                statement,
                {"bank": bank, "seeds": newest[k :: len(newest) // 20][:20]},
            )
            for k in range(len(newest) // 20)
        ]
        figures[f"entity_links.expand_by_{name}_ms"] = round(median(taken) * 1000, 2)
    return figures


def distinct(connection: psycopg.Connection[Any], bank: str, rounds: int) -> harness.Figures:
    """Share of distinct scores in the first 100 of an expansion from 20 seeds."""
    shares = []
    for _ in range(rounds):
        row = connection.execute(
            """select count(distinct e.score)::float8 / count(*)
               from   pgrecall.link_expansion(%(bank)s, array(
                        select memory_id from (
                          select memory_id from pgrecall.memory where bank_id = %(bank)s
                          order by memory_id desc limit 2000) as m
                        order by random() limit 20)) as e
               having count(*) > 0""",
            {"bank": bank},
        ).fetchone()
        if row is not None:
            shares.append(row[0])
    return {"distinct_scores": round(fmean(shares), 3)}


def main() -> None:
    parser = harness.arguments(__doc__, "sentences.txt.xz")
    parser.add_argument("--vectors", type=Path, help="embeddings of sentences, one row each")
    parser.add_argument("--dimensions", type=int, default=DIMENSIONS)
    parser.add_argument("--sizes", type=int, nargs="+", help="of the banks, smallest first")
    options = parser.parse_args()
    path: Path = harness.require(options.data)
    sentences = list(harness.lines(path))
    sizes_of = options.sizes or SIZES[options.smoke]
    banks = [harness.label(size) for size in sizes_of]
    small, *_, large = banks
    facts = Facts(sentences, options.vectors, options.dimensions)

    server_settings = SETTINGS if options.smoke else {**SETTINGS, "shared_buffers": "2GB"}
    with harness.database(server_settings) as dsn, Recall.connect(dsn) as recall:
        for bank, size in zip(banks, sizes_of, strict=True):
            took = harness.seconds(fill, recall, dsn, bank, facts, size)
            print(f"filled {bank} in {took:.0f} s", flush=True)
        figures, cost = rates(recall, facts, banks, options.smoke)
        for batch in sorted({batch for _, batch in cost}):
            figures[f"facts_per_s_batch{batch}"] = figures[f"{large}.facts_per_s_batch{batch}"]
            ratio = round(cost[large, batch] / cost[small, batch], 2)
            figures[f"cost_ratio_{large}_vs_{small}_batch{batch}"] = ratio
        figures[f"cost_ratio_{large}_vs_{small}"] = figures[
            f"cost_ratio_{large}_vs_{small}_batch100"
        ]
        for bank in banks[1:]:
            ratio = round(cost[small, 100] / cost[bank, 100], 2)
            figures[f"retain.{bank}_over_{small}"] = ratio
        with psycopg.connect(dsn, autocommit=True) as connection:
            figures |= sizes(connection)
            figures |= hub(recall, facts, large, 20 if options.smoke else 200)
            figures |= entity_links(connection, large, 500 if options.smoke else 2000)
            figures |= distinct(connection, large, 10 if options.smoke else 100)
        figures["writers16_lost"] = writers(recall, dsn, facts, 5 if options.smoke else 20)
        harness.show({name: figures[name] for name in figures if "facts_per_s" not in name})
        settings = {
            "sizes": list(sizes_of),
            "dimensions": options.dimensions,
            "vectors": options.vectors is not None,
        }
        harness.write(options, figures, settings, dsn)


if __name__ == "__main__":
    main()
