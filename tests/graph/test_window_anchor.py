"""A window as the anchor of the graph, where a question names nobody."""

from __future__ import annotations

from sqlcalls import Connection, call, create, retain

FACTS = [
    {"text": f"The {thing} was repaired.", "entities": ["Workshop"], "occurred": f"2025-{month}-03"}
    for thing, month in [("pump", "01"), ("winch", "02"), ("crane", "03")]
]


def graph_scores(connection: Connection, query: str, **arguments: object) -> dict[int, float]:
    rows = call(connection, "arm_hits", **{"bank": "b", "query": query, **arguments})
    return {row.memory_id: row.score for row in rows if row.arm == "graph"}


def test_what_lies_outside_a_window_counts_less_where_nobody_is_named(
    connection: Connection,
) -> None:
    create(connection)
    pump, winch, crane = retain(connection, FACTS)
    during = "[2025-02-01,2025-03-01)"

    alone = graph_scores(connection, "repaired", during=during)
    assert alone[winch] > 5 * max(alone[pump], alone[crane])

    named = graph_scores(connection, "repaired by Workshop", during=during)
    assert named[winch] < 5 * max(named[pump], named[crane])


def test_causes_of_a_crowd_of_hits_do_not_outvote_what_has_none(connection: Connection) -> None:
    create(connection)
    things = ["pump", "winch", "crane", "lathe", "drill", "saw", "press", "forge", "kiln", "loom"]
    facts = [
        {
            "text": f"The {thing} was repaired.",
            "fact_key": thing,
            "entities": ["Workshop"],
            "occurred": "2025-02-03",
            "links": [{"kind": "caused_by", "to_key": "pump"}] if thing == "winch" else [],
        }
        for thing in things
    ]
    pump, winch, *others = retain(connection, facts)

    crowd = graph_scores(connection, "repaired", during="[2025-02-01,2025-03-01)")
    assert max(crowd[pump], crowd[winch]) < 1.2 * max(crowd[other] for other in others)

    clear = graph_scores(connection, "pump")
    assert clear[winch] > 2 * max(clear[other] for other in others)
