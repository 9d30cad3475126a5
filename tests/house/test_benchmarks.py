"""The benchmarks whose banks are plain rows still fill them: ``make bench`` runs them seldom."""

from __future__ import annotations

import psycopg
from bench.speed import console, floor, graph


def test_a_recall_is_measured_beside_its_floor(database: str) -> None:
    with psycopg.connect(
        database, autocommit=True, cursor_factory=psycopg.ClientCursor
    ) as connection:
        graph.fill(connection, "b", 200, graph.USUAL)
        found = floor.ask(connection, "b", 4)
        graph.fill(connection, "c", 200, graph.USUAL, console.FILL)
        filled = connection.execute(
            "select bank_id, count(*) from pgrecall.memory group by 1 order by 1"
        ).fetchall()

    assert {f"{arm}_ms" for arm in floor.PREPARED} | {"sum_ms", "recall_ms", "ratio"} == set(found)
    assert filled == [("b", 200), ("c", 200)]
