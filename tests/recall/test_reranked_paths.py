"""What is not in a text is joined with the relevance of the text by rerank()."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sqlcalls import Connection, rows

HITS: list[dict[str, Any]] = [
    {"memory_id": 1, "score": 1.0, "arms": {}},
    {"memory_id": 2, "score": 0.9, "arms": {}, "via": {"facts": [1]}},
    {"memory_id": 3, "score": 0.8, "arms": {}},
]


def reranked(
    connection: Connection,
    relevances: list[float],
    boosts: list[float],
    mode: str = "blend",
    hits: list[dict[str, Any]] = HITS,
) -> dict[int, float]:
    """Final scores by id, in order."""
    found = rows(
        connection,
        "select r.memory_id, r.final_score from pgrecall.rerank(array(select h"
        " from jsonb_populate_recordset(null::pgrecall.recalled, %s) as h), %s, %s, %s) as r"
        " order by r.rank",
        json.dumps(hits),
        [float(one) for one in relevances],
        [float(one) for one in boosts],
        mode,
    )
    return dict(found)


def test_a_row_with_a_path_is_not_lowered_by_its_text(connection: Connection) -> None:
    found = reranked(connection, [1, 0, 0], [1, 1, 1])

    assert list(found) == [1, 2, 3]
    assert found[2] == pytest.approx(0.9)
    assert found[3] < 0.01


def test_a_row_with_a_path_never_falls_below_its_fused_place(connection: Connection) -> None:
    assert list(reranked(connection, [1, 0, 1], [1, 0.5, 1])) == [1, 2, 3]


def test_a_row_with_a_path_may_rise(connection: Connection) -> None:
    assert list(reranked(connection, [0, 1, 1], [1, 2, 1])) == [2, 3, 1]


@pytest.mark.parametrize(
    ("via", "named", "is_lowered"),
    [
        ({"entities": ["Ana"]}, 0, True),
        ({"entities": ["Ana"]}, 0.2, False),
        ({"entities": ["Ana", "Atlas"], "relations": ["leads"]}, 0, False),
        ({"entities": ["Ana"], "direction": "cause"}, 0, False),
    ],
)
def test_an_entity_that_nobody_asked_about_holds_no_place(
    connection: Connection, via: dict[str, Any], named: float, is_lowered: bool
) -> None:
    hits = [dict(one) for one in HITS]
    hits[0]["arms"] = {"lexical": {"contribution": 1.0, "named": named}}
    hits[1] |= {"via": via, "arms": {"graph": {"contribution": 0.9}}}

    found = reranked(connection, [1, 0, 0.9], [1, 1, 1], hits=hits)

    assert list(found) == ([1, 3, 2] if is_lowered else [1, 2, 3])


def test_where_the_relevance_replaces_the_order_a_path_holds_no_place(
    connection: Connection,
) -> None:
    assert list(reranked(connection, [0.5, 0, 1], [1, 1, 1], "replace")) == [3, 1, 2]


@pytest.mark.parametrize(
    ("arms", "kept"),
    [
        ({"lexical": {"contribution": 0.5}, "graph": {"contribution": 0.3}}, 0.0),
        ({"lexical": {"contribution": 0.5}, "key": {"contribution": 0.3}}, 0.3),
        ({"lexical": {"contribution": 0.5}, "temporal": {"contribution": 0.3}}, 0.3),
        ({"lexical": {"contribution": 0.5, "named": 0.6}, "graph": {"contribution": 0.3}}, 0.3),
        (
            {
                "lexical": {"contribution": 0.5, "named": 0.6},
                "temporal": {"contribution": 0.3, "named": 0.6},
            },
            0.6,
        ),
    ],
)
def test_what_a_key_a_window_or_a_rare_name_gave_is_not_lowered_by_a_text(
    connection: Connection, arms: dict[str, Any], kept: float
) -> None:
    hits = [HITS[0], {"memory_id": 3, "score": 0.8, "arms": arms}]

    found = reranked(connection, [1, 0], [1, 1], hits=hits)

    assert found[3] == pytest.approx(kept, abs=0.01)


def test_rows_without_an_id_or_with_the_same_one_are_no_states_of_each_other(
    connection: Connection,
) -> None:
    hits: list[dict[str, Any]] = [
        {"memory_id": of, "score": 1.0, "arms": {}} for of in (None, 2, 3)
    ]

    assert list(reranked(connection, [0.1, 0.2, 0.9], [1, 1, 1], hits=hits)) == [3, 2, None]
    hits[0]["memory_id"] = 2
    assert reranked(connection, [0.1, 0.2, 0.9], [1, 1, 1], hits=hits)[2] < 0.01
