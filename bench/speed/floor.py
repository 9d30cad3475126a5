"""Measure a recall beside the bare index accesses that it cannot do without.

    python -m bench.speed.floor --smoke
    python -m bench.speed.floor --full
    python -m bench.speed.floor --sizes 400 10000 --banks 1 --stock

--stock leaves all settings of the server as PostgreSQL has them: jit on, random_page_cost 4, 128 MB
of shared buffers.

The banks are those of graph.py, three entities a fact. The floor of an arm is one prepared
statement that returns what the arm starts from, without scores of several sources, notes, checks
or fusion:

The bank and its types are constants of the statement, so that it is planned for them, once.

* semantic: the 100 nearest vectors, by the index of the bank or, of each fact type, without one;
* lexical: the same candidates by the same GIN index, scored, the 100 best of each type;
* graph: the newest 34 mentions in each type of the entity that is named and of those of ten hits,
  and the links of these;
* temporal: what was said in the hour that is asked about (every fourth question);
* rows: ten rows by their key.

Milliseconds of the server's process on a processor; of each question the least of three rounds,
floor and recall in turn, then the median of the questions:

* floor.SIZE.semantic_ms, .lexical_ms, .graph_ms, .temporal_ms, .rows_ms, .sum_ms; .recall_ms:
  hybrid_recall(), ten rows; .ratio: the median of recall over sum.
* scale.1m_over_10k: recall_ms at 1,000,000 facts over that at 10,000.
* banks.5000_over_1: recall_ms in a bank of 400 facts among 5,000 banks, over that before they came.
* cold.first_over_warm: the wall time of the first recall of a connection over that of a later one.
"""

from __future__ import annotations

import random
import time
from statistics import median
from typing import Any

import psycopg
from bench import harness
from bench.speed import graph
from bench.speed.graph import Connection

SIZES = (400, 10_000, 100_000, 1_000_000)
SMOKE_SIZES = (400, 2_000)
QUESTIONS = {False: 40, True: 4}
ROUNDS = 3
COLD_ROUNDS = {False: 15, True: 2}
BANKS = {False: 5_000, True: 20}
SMALL = 40  # facts of each of the other banks

TYPES = ("world", "experience", "opinion")
RECALL = """
select * from pgrecall.hybrid_recall(
  %(bank)s, %(query)s, %(embedding)s::real[]::halfvec, during => %(during)s::tstzrange,
  options => '{"time_basis": "mentioned"}')
"""
# What the statements below are written with, as the arms do: the key of the vectors, and the words
# and sets of words whose documents are candidates.
CHOSEN = """
select pgrecall_internal._vector_key(b, 64, 'e.embedding') as key,
       pgrecall_internal._vector_key(b, 64, '$1::real[]::halfvec') as given,
       case when b.vector_search = 'binary' then '<~>' else '<=>' end as operator,
       case when (pgrecall_internal._hnsw_index(b)).index_name is not null
         then pgrecall_internal._hnsw_scope(
                'hashtextextended({bank}, 0)', $$hashtextextended('made', 0)$$) end as scope,
       c.singles::text as singles, c.sets as sets, t.dimensions[1:1]::text as rarest,
       pgrecall_internal._to_sparsevec(t.dimensions, t.idfs)::text as idfs
from   pgrecall_internal._bank(%(bank)s) as b,
       pgrecall_internal._terms(%(bank)s, 'memory', array(
         select l.lexeme from pgrecall.lexemes(b.text_search_config::regconfig, %(query)s) as l
       )) as t,
       pgrecall_internal._candidates(t.dimensions, t.idfs, t.counts, t.documents, 2250) as c
"""
SEMANTIC = """
(select e.memory_id from pgrecall.embedding e
 where  e.bank_id = {bank} and e.model = 'made' and {scope}
 order  by {key} {operator} {given} limit 100)
"""
LEXICAL = """
(select m.memory_id, -(m.lexical_weights <#> '{idfs}'::sparsevec) as score
 from   pgrecall.memory m
 where  m.bank_id collate "C" = {bank} and m.fact_type is not distinct from '{type}' and ({matches})
 order  by 2 desc limit 100)
"""
KEYS = "pgrecall_internal._lexical_keys(m.bank_id, m.fact_type, m.lexical_weights)"
SCOPED = "pgrecall_internal._scoped_keys({bank}, '{type}', '{words}')"
GRAPH = """
with seed as (
  select a.entity_id from pgrecall.entity_alias a where a.bank_id = {bank} and a.alias = any ($1)
  union
  select n.entity_id from pgrecall.mention n where n.bank_id = {bank} and n.memory_id = any ($2)
)
select n.memory_id from seed s, unnest($3) as t(fact_type), lateral (
  select n.memory_id from pgrecall.mention n
  where  n.bank_id = {bank} and n.entity_id = s.entity_id and n.fact_type = t.fact_type
  order  by n.memory_id desc limit 34) as n
union all
select o.to_id from pgrecall.link o where o.bank_id = {bank} and o.from_id = any ($2)
union all
select i.from_id from pgrecall.link i where i.bank_id = {bank} and i.to_id = any ($2)
"""
TEMPORAL = """
(select m.memory_id from pgrecall.memory m
 where  m.bank_id = {bank} and m.fact_type = '{type}' and m.occurred is null
   and  m.mentioned_at >= lower($1) and m.mentioned_at < upper($1)
 order  by m.mentioned_at desc limit 1000)
"""
ROWS = "select m.* from pgrecall.memory m where m.bank_id = {bank} and m.memory_id = any ($1)"
PREPARED = ("semantic", "lexical", "graph", "temporal", "rows")


def of_each_type(statement: str, **given: str) -> str:
    for name, value in given.items():
        statement = statement.replace("{" + name + "}", value)
    return "\nunion all\n".join(statement.replace("{type}", t) for t in TYPES)


def matches(singles: str, sets: list[str], rarest: str) -> str:
    """Write the condition of candidates: with a rare word, or all words of a set."""
    found = [f"{KEYS} @> {SCOPED}".replace("{words}", words) for words in sets]
    if singles != "{}" or not sets:
        words = singles if singles != "{}" else rarest
        found.append(f"{KEYS} && {SCOPED}".replace("{words}", words))
    return " or ".join(found)


def prepare(
    connection: Connection, question: dict[str, Any], hits: list[int]
) -> dict[str, tuple[str, list[Any]]]:
    """Prepare the floor of each arm; returns how it is executed."""
    key, given, operator, scope, singles, sets, rarest, idfs = harness.one(
        connection, CHOSEN, question
    )
    vectors = SEMANTIC.format(
        bank="{bank}", key=key, operator=operator, given=given,
        scope=scope or "e.fact_type = '{type}'",
    )  # fmt: skip
    names = question["query"].lower().split()
    statements: dict[str, tuple[str, str, list[Any]]] = {
        "semantic": (
            "real[]",
            vectors if scope else of_each_type(vectors),
            [question["embedding"]],
        ),
        "graph": ("text[], bigint[], text[]", GRAPH, [names, hits, list(TYPES)]),
        "rows": ("bigint[]", ROWS, [hits]),
    }
    if rarest:
        condition = matches(singles, sets, rarest)
        statements["lexical"] = ("", of_each_type(LEXICAL, matches=condition, idfs=idfs), [])
    if question["during"]:
        statements["temporal"] = ("tstzrange", of_each_type(TEMPORAL), [question["during"]])
    for name, (types, text, _) in statements.items():
        given_types = f"({types})" if types else ""
        text = text.replace("{bank}", f"'{question['bank']}'")
        connection.execute(f"prepare {name} {given_types} as {text}".encode())
    return {
        name: (
            f"execute {name} ({', '.join(['%s'] * len(values))})" if values else f"execute {name}",
            values,
        )
        for name, (_, _, values) in statements.items()
    }


def ask(connection: Connection, bank: str, count: int) -> harness.Figures:
    """Ask all questions of a bank, beside their floors."""
    asked = random.Random(2)
    taken: dict[str, list[float]] = {name: [] for name in (*PREPARED, "sum", "recall", "ratio")}
    for n, question in enumerate(graph.questions(count)):
        question["bank"] = bank
        question["during"] = None
        if n % 4 == 3:
            back = asked.random()
            (question["during"],) = harness.one(
                connection,
                "select tstzrange(t, t + '1 hour') from (select min(m.mentioned_at) + %s * "
                "(max(m.mentioned_at) - min(m.mentioned_at)) as t from pgrecall.memory m "
                "where m.bank_id = %s) as x",
                [back, bank],
            )
        ids = RECALL.replace("*", "memory_id")
        hits = [row[0] for row in connection.execute(ids, question).fetchall()]
        floors = prepare(connection, question, hits)
        least = {name: float("inf") for name in (*floors, "recall")}
        for _ in range(ROUNDS):
            for name, (statement, values) in floors.items():
                least[name] = min(least[name], harness.timed(connection, statement, values)[0])
            least["recall"] = min(least["recall"], harness.timed(connection, RECALL, question)[0])
        least["sum"] = sum(value for name, value in least.items() if name != "recall")
        least["ratio"] = least["recall"] / least["sum"]
        for name, value in least.items():
            taken[name].append(value)
        for name in floors:
            connection.execute(f"deallocate {name}".encode())
    return {
        name if name == "ratio" else f"{name}_ms": median(values)
        for name, values in taken.items()
        if values
    }


def cold(dsn: str, bank: str, rounds: int) -> float:
    """Return how much longer the first recall of a connection takes than the fifth."""
    ratios = []
    for question in graph.questions(rounds):
        question |= {"bank": bank, "during": None}
        with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
            times = []
            for _ in range(5):
                began = time.perf_counter()
                connection.execute(RECALL, question).fetchall()
                times.append(time.perf_counter() - began)
        ratios.append(times[0] / times[-1])
    return median(ratios)


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = harness.arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", help="facts of the banks")
    parser.add_argument("--banks", type=int, help="how many banks there are in the end")
    parser.add_argument("--stock", action="store_true", help="PostgreSQL's own settings")
    options = parser.parse_args()
    sizes = options.sizes or (SMOKE_SIZES if options.smoke else SIZES)
    count = QUESTIONS[options.smoke]
    figures: harness.Figures = {}
    with (
        harness.database({} if options.stock else graph.MEMORY) as dsn,
        # EXECUTE takes no parameters of the protocol.
        psycopg.connect(dsn, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection,
    ):
        connection.execute(
            "set hnsw.ef_search = 100; set max_parallel_workers_per_gather = 0;"
            "set plan_cache_mode = force_generic_plan"
        )

        def measure(name: str, facts: int) -> None:
            bank = f"bench {facts} {graph.USUAL}"
            graph.fill(connection, bank, facts, graph.USUAL)
            connection.execute("vacuum analyze")
            found = ask(connection, bank, count)
            figures.update({f"{name}.{key}": round(value, 3) for key, value in found.items()})
            print(name, *(f"{key} {value:.2f}" for key, value in found.items()), flush=True)

        for facts in sizes:
            measure(f"floor.{harness.label(facts)}", facts)
        least = min(sizes)
        figures["cold.first_over_warm"] = cold(
            dsn, f"bench {least} {graph.USUAL}", COLD_ROUNDS[options.smoke]
        )
        if {"floor.1m.recall_ms", "floor.10k.recall_ms"} <= figures.keys():
            figures["scale.1m_over_10k"] = (
                figures["floor.1m.recall_ms"] / figures["floor.10k.recall_ms"]
            )
        banks = options.banks or BANKS[options.smoke]
        if banks > 1:
            for n in range(banks - len(sizes)):
                graph.fill(connection, f"bench other {n}", SMALL, graph.USUAL)
            measure(f"banks.{banks}", least)
            alone = figures[f"floor.{harness.label(least)}.recall_ms"]
            figures[f"banks.{banks}_over_1"] = figures[f"banks.{banks}.recall_ms"] / alone
        harness.show(figures)
        settings = {"questions": count, "rounds": ROUNDS, "stock": options.stock}
        harness.write(options, figures, settings, dsn)


if __name__ == "__main__":
    main()
