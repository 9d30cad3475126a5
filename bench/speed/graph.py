"""Measure the graph arm beside the semantic and lexical arms as a bank and its entities grow.

    python -m bench.speed.graph --smoke
    python -m bench.speed.graph --full
    python -m bench.speed.graph --sizes 1000 100000 --entities 3

Each fact mentions the given number of 200 entities, distributed by Zipf's law, and one of two hubs,
as a speaker is; each has a temporal link. Vectors lie in clusters, and have
64 dimensions so that a million fit; from 10,000 facts on they are indexed. Every other
question names an entity. A question runs the semantic, lexical and graph arms in turn on one
request, and each is timed inside the server: processor milliseconds of its process, or wall time
where the system does not report them. Figures are medians over the questions, of the least of three
rounds.

* graph.SIZE.semantic_ms, .lexical_ms, .graph_ms; graph.SIZE.entities_N.*: with another number of
  entities than 3.
* graph.SIZE.over_semantic_lexical: graph_ms over the sum of the other two.
* graph.1m_over_10k: graph_ms at 1,000,000 facts over that at 10,000.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import median
from typing import Any

import psycopg
from bench import harness

from pgrecall.server import SETTINGS

SIZES = (1_000, 10_000, 100_000, 1_000_000)
SMOKE_SIZES = (1_000, 2_000)
ENTITIES = (1, 3, 5)
USUAL = 3  # entities a fact, unless said otherwise
QUESTIONS = {False: 40, True: 5}
ROUNDS = 3
ARMS = ("semantic", "lexical", "graph")
NAMES, WORDS, DIMENSIONS = 200, 20_000, 64
MEMORY = {**SETTINGS, "shared_buffers": "1GB", "maintenance_work_mem": "1GB"}
Connection = psycopg.Connection[Any]

# Log-uniform: skewed to low numbers nearly as by Zipf's law.
ZIPF = "floor(exp(random() * ln({0} + 1)))::integer"
# Plain rows, because retain() would take hours. No foreign key is checked.
FILL = (
    """
    select pgrecall.create_bank(%(bank)s, embedding_model => 'made', embedding_dimensions => 64)
    """,
    "set session_replication_role = replica; select setseed(0.5)",
    """
    with made as (
      insert into pgrecall.entity (bank_id, name)
      select %(bank)s, case when n <= %(names)s then 'Name' || n else 'Hub' || n end
      from   generate_series(1, %(names)s::integer + 2) as n
      returning entity_id, name
    )
    insert into pgrecall.entity_alias (bank_id, alias, entity_id)
    select %(bank)s, pgrecall.normalised_name(name), entity_id from made
    """,
    f"""
    create temporary table fact as
    select n, nextval('pgrecall.id_seq') as memory_id,
           (array['world', 'experience', 'opinion'])[1 + n %% 3] as fact_type,
           (select string_agg('w' || {ZIPF.format(WORDS)}, ' ')
            from generate_series(1, 10 + 0 * n)) as text,
           array(select distinct {ZIPF.format(NAMES)}
                 from generate_series(1, %(entities)s + 0 * n))
             || %(names)s + 1 + n %% 2 as entities,
           floor(random() * 50)::integer as cluster
    from   generate_series(1, %(facts)s::integer) as n
    """,
    """
    insert into pgrecall.memory (bank_id, memory_id, fact_type, text, content_hash, is_linked,
                                 mentioned_at, valid_from, lexical_length, lexical_weights)
    select %(bank)s, f.memory_id, f.fact_type, f.text, sha256(int8send(f.memory_id)), true,
           t.at, t.at, w.length, w.weights
    from   fact f
    cross  join lateral (select now() - (%(facts)s - f.n) * interval '1 minute' as at) as t
    cross  join lateral pgrecall_internal._document_weights(
             pgrecall_internal._bank(%(bank)s), f.text, null, null, 10) as w
    """,
    """
    insert into pgrecall.embedding (bank_id, memory_id, model, fact_type, embedding)
    select %(bank)s, f.memory_id, 'made', f.fact_type,
           array(select case when d %% 50 = f.cluster then 2 else 0 end + random()
                 from   generate_series(1, 64 + 0 * f.n) as d)::real[]::halfvec
    from   fact f
    """,
    """
    insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id)
    select %(bank)s, e.entity_id, f.fact_type, f.memory_id
    from   fact f, unnest(f.entities) as u(name)
    join   pgrecall.entity e
           on e.bank_id = %(bank)s
          and e.name = case when u.name <= %(names)s then 'Name' else 'Hub' end || u.name
    """,
    """
    insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
    select %(bank)s, f.memory_id, 'temporal',
           f.memory_id - 1, 0.7 + 0.3 * random()
    from   fact f
    where  f.n > 1
    on     conflict do nothing
    """,
    "drop table fact; reset session_replication_role",
    # The mean length that the weights were computed with: else the first refresh would rewrite all.
    """
    insert into pgrecall_internal.statistics (bank_id, kind, document_count, average_length,
                                              weighted_length, watermark, refreshed_at)
    values (%(bank)s, 'memory', 0, 10, 10, 0, now())
    """,
    "select pgrecall.refresh_statistics(%(bank)s)",
)
TIMED = """
-- The system counts what a process has spent when it leaves the processor.
create function pg_temp.spent() returns double precision language plpgsql as $$
begin
  perform pg_sleep(0.001);
  return split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint / 1e6;
exception when others then
  return extract(epoch from clock_timestamp()) * 1000;
end;
$$;
create function pg_temp.arms(bank text, query text, embedding halfvec)
returns double precision[] language plpgsql as $$
declare
  request pgrecall_internal.request := pgrecall_internal._request(bank, query, embedding);
  hits    pgrecall.arm_hit[] := '{}';
  taken   double precision[] := '{}';
  began   double precision;
  arm     text;
  called  record;
begin
  foreach arm in array array['semantic', 'lexical', 'graph'] loop
    began := pg_temp.spent();
    called := pgrecall_internal._call_arm(arm, request, hits, false);
    taken := taken || pg_temp.spent() - began;
    hits := hits || called.hits;
  end loop;
  return taken;
end;
$$;
"""
ASK = "select pg_temp.arms(%(bank)s, %(query)s, %(embedding)s::real[]::halfvec)"
PLAN = "select statement from pgrecall.index_plan(%(bank)s) where action = 'create'"


def fill(
    connection: Connection,
    bank: str,
    facts: int,
    entities: int,
    statements: Sequence[str] = FILL,
) -> float:
    """Make a bank of facts with the given number of entities each, unless it exists.

    Returns:
        The seconds that building its HNSW indexes took; 0 where it existed.

    """
    found = connection.execute("select from pgrecall.bank where bank_id = %s", [bank])
    if found.rowcount:
        return 0.0
    given = {"bank": bank, "facts": facts, "entities": entities, "names": NAMES}
    for statement in statements:
        for part in statement.split(";") if "%(" not in statement else [statement]:
            connection.execute(part.encode(), given if "%(" in part else None)
    due = connection.execute(PLAN, given).fetchall()
    return sum(harness.seconds(connection.execute, create.encode()) for (create,) in due)


def questions(count: int) -> list[dict[str, Any]]:
    """Make questions of four words, every other one with a name, and a vector near a cluster."""
    made = random.Random(1)
    asked = []
    for n in range(count):
        words = [f"w{int((WORDS + 1) ** made.random())}" for _ in range(4)]
        name = [f"Name{int((NAMES + 1) ** made.random())}"] if n % 2 else []
        cluster = made.randrange(50)
        vector = [2 * ((d + 1) % 50 == cluster) + made.random() for d in range(DIMENSIONS)]
        asked.append({"query": " ".join(words + name), "embedding": vector})
    return asked


def ask(connection: Connection, bank: str, count: int) -> dict[str, float]:
    """Ask all questions of a bank; returns the milliseconds of each arm."""
    taken: dict[str, list[float]] = {arm: [] for arm in ARMS}
    for question in questions(count):
        rounds = []
        for _ in range(ROUNDS):
            rounds.append(harness.one(connection, ASK, {"bank": bank, **question})[0])
        for arm, values in zip(ARMS, zip(*rounds, strict=True), strict=True):
            taken[arm].append(min(values))
    return {f"{arm}_ms": median(values) for arm, values in taken.items()}


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = harness.arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", help="facts of the banks")
    parser.add_argument("--entities", type=int, nargs="+", default=ENTITIES, help="of a fact")
    options = parser.parse_args()
    sizes = options.sizes or (SMOKE_SIZES if options.smoke else SIZES)
    count = QUESTIONS[options.smoke]
    figures: harness.Figures = {}
    print(f"{'facts':>10} {'entities':>8}" + "".join(f" {arm:>9}" for arm in ARMS) + "     ratio")
    with harness.database(MEMORY) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(TIMED.encode())
        for facts in sizes:
            # Five million mentions would show no more than three.
            for entities in options.entities if facts < 1_000_000 else [USUAL]:
                bank = f"bench {facts} {entities}"
                fill(connection, bank, facts, entities)
                connection.execute("vacuum analyze")
                found = ask(connection, bank, count)
                found["over_semantic_lexical"] = found["graph_ms"] / (
                    found["semantic_ms"] + found["lexical_ms"]
                )
                name = f"graph.{harness.label(facts)}"
                name += "" if entities == USUAL else f".entities_{entities}"
                figures |= {f"{name}.{figure}": value for figure, value in found.items()}
                print(f"{facts:10,} {entities:8}" + "".join(f" {v:9.2f}" for v in found.values()))
        if {"graph.1m.graph_ms", "graph.10k.graph_ms"} <= figures.keys():
            figures["graph.1m_over_10k"] = (
                figures["graph.1m.graph_ms"] / figures["graph.10k.graph_ms"]
            )
            print(f"1,000,000 facts over 10,000: {figures['graph.1m_over_10k']:.2f}")
        harness.write(options, figures, {"questions": count, "rounds": ROUNDS}, dsn)


if __name__ == "__main__":
    main()
