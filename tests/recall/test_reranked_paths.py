"""Rows that a path led to are joined with the relevance of their texts by rerank()."""

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
    connection: Connection, relevances: list[float], boosts: list[float], mode: str = "blend"
) -> dict[int, float]:
    """Final scores by id, in order."""
    found = rows(
        connection,
        "select r.memory_id, r.final_score from pgrecall.rerank(array(select h"
        " from jsonb_populate_recordset(null::pgrecall.recalled, %s) as h), %s, %s, %s) as r"
        " order by r.rank",
        json.dumps(HITS),
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


def test_where_the_relevance_replaces_the_order_a_path_holds_no_place(
    connection: Connection,
) -> None:
    assert list(reranked(connection, [0.5, 0, 1], [1, 1, 1], "replace")) == [3, 1, 2]
