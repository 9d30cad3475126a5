"""Measure whether a hub in the best hit slows down or hides what a rare shared entity leads to.

    python -m bench.speed.shared --smoke
    python -m bench.speed.shared --full

A bank without embeddings has hubs: entities that 10, 100, ... facts mention. For each hub there are
presses that broke. The fact that says so mentions the hub and a batch. One other fact mentions the
batch; it answers, and shares no word with the question about the press. As all hubs are in one
bank, the questions differ in nothing else. They are asked in turn, with the graph arm (default
weight) and without it (weight 0).

Figures of each hub, N its facts:

* hub_N.found, hub_N.found_without: share of the questions whose answer is among the first ten.
* hub_N.arm_ms: median milliseconds of the graph arm, from the report of the recall.
* hub_N.recall_ms, hub_N.recall_without_ms: median processor milliseconds of a recall of ten rows.
* hub_N.arm_ratio, hub_N.recall_ratio: arm_ms and recall_ms over those of the smallest hub.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import Any

import psycopg
from bench import harness

BANK = "bench shared"
HUBS = {False: (10, 100, 1_000, 10_000, 100_000), True: (10, 100, 1_000)}
PRESSES = {False: 10, True: 5}  # of each hub
ROUNDS = {False: 5, True: 2}
TYPE = "world"
DEFAULT, WITHOUT = "{}", '{"weights": {"graph": 0}}'

Connection = psycopg.Connection[Any]

# Plain rows, because retain() would take minutes.
FILL = """
with fact as (
  insert into pgrecall.memory (
    bank_id, fact_type, text, content_hash, is_linked, lexical_length, lexical_weights)
  select %(bank)s, %(type)s,
         format('Delivery %%s left yard %%s for %%s', n, n %% 97, %(hub)s::text),
         sha256(convert_to(%(hub)s || n, 'utf8')), true, 4,
         format('{%%s:0.5,%%s:0.5}/1000000000', 1 + n %% 97, 1000 + n)::sparsevec
  from   generate_series(1, %(facts)s::integer) as n
  returning memory_id
)
insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id)
select %(bank)s, e.entity_id, %(type)s, f.memory_id
from   fact f
join   pgrecall.entity e on e.bank_id = %(bank)s and e.name = %(hub)s
"""
BROKEN = """
select count(*) from pgrecall.retain(%(bank)s, (
  select jsonb_agg(f.fact)
  from   generate_series(1, %(presses)s::integer) as n
  cross  join lateral (values
    (jsonb_build_object('text', format('Press %%s broke.', %(hub)s || 'zq' || n),
                        'entities', jsonb_build_array(%(hub)s::text, %(batch)s || n))),
    (jsonb_build_object('text', format('%%s crates were sent to Oslo.', %(hub)s || 'oq' || n),
                        'entities', jsonb_build_array(%(batch)s || n)))) as f(fact)))
"""
ASK = """
select text from pgrecall.hybrid_recall(%(bank)s, %(query)s, options => %(options)s::jsonb)
"""
EXPLAIN = """
select milliseconds from pgrecall.explain_recall(%(bank)s, %(query)s) where arm = 'graph'
"""


def fill(connection: Connection, hubs: tuple[int, ...], presses: int) -> None:
    """Make the bank: the facts of each hub, and the presses with the facts of their batches."""
    connection.execute("select pgrecall.create_bank(%s)", [BANK])
    for facts in hubs:
        hub = {"bank": BANK, "hub": f"Hub{facts}", "batch": f"Batch{facts}x", "presses": presses}
        connection.execute(BROKEN, hub)
        connection.execute(FILL, hub | {"type": TYPE, "facts": facts - presses})
    connection.execute("select pgrecall.refresh_statistics(%s)", [BANK])
    connection.execute("vacuum analyze")


def ask(
    connection: Connection, hubs: tuple[int, ...], presses: int, rounds: int
) -> harness.Figures:
    """Ask for every press in turn, with and without the arm, and return the figures."""
    taken: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for press in range(1, presses + 1):
            for facts in hubs:
                answer = f"Hub{facts}oq{press} crates were sent to Oslo."
                given = {"bank": BANK, "query": f"What about the broken press Hub{facts}zq{press}?"}
                for name, options in (("", DEFAULT), ("_without", WITHOUT)):
                    spent, rows = harness.timed(connection, ASK, given | {"options": options})
                    taken[f"hub_{facts}.recall{name}_ms"].append(spent)
                    taken[f"hub_{facts}.found{name}"].append(float((answer,) in rows))
                [(milliseconds,)] = connection.execute(EXPLAIN, given).fetchall()
                taken[f"hub_{facts}.arm_ms"].append(milliseconds)
    figures = {
        name: sum(values) / len(values) if ".found" in name else median(values)
        for name, values in taken.items()
    }
    for facts in hubs:
        for name in ("arm", "recall"):
            least = figures[f"hub_{hubs[0]}.{name}_ms"]
            figures[f"hub_{facts}.{name}_ratio"] = figures[f"hub_{facts}.{name}_ms"] / least
    return figures


def table(hubs: tuple[int, ...], figures: harness.Figures) -> None:
    """Print a line for each hub."""
    columns = [name.split(".")[1] for name in figures if name.startswith(f"hub_{hubs[0]}.")]
    print(f"{'facts of the hub':>16}" + "".join(f" {column:>17}" for column in columns))
    for facts in hubs:
        values = [figures[f"hub_{facts}.{column}"] for column in columns]
        print(f"{facts:16,}" + "".join(f" {value:17.2f}" for value in values))


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = harness.arguments(__doc__)
    options = parser.parse_args()
    hubs, presses, rounds = HUBS[options.smoke], PRESSES[options.smoke], ROUNDS[options.smoke]
    with harness.database() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        fill(connection, hubs, presses)
        try:
            figures = ask(connection, hubs, presses, rounds)
        finally:
            connection.execute("delete from pgrecall.memory where bank_id = %s", [BANK])
            connection.execute("delete from pgrecall.bank where bank_id = %s", [BANK])
        table(hubs, figures)
        harness.write(options, figures, {"presses": presses, "rounds": rounds}, dsn)


if __name__ == "__main__":
    main()
