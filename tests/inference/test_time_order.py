"""Which state a question asks for, by its embedding."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from pgrecall import Recall
from pgrecall.embedders import DEFAULT_EMBEDDER, FunctionEmbedder, embed_as
from pgrecall.inference.time_order import read_time_order, time_order
from pgrecall.temporal.latest_or_former import read_latest_or_former

UNLISTED = "What did we end up with on the parking question after so much debate?"


@pytest.mark.parametrize(
    ("text", "direction"),
    [
        (UNLISTED, "latest"),
        ("Where does Tom live today?", "latest"),
        ("As things stand, when do we move?", "latest"),
        ("What did we last decide about the budget?", "latest"),
        ("Has Nora left Oslo?", "latest"),
        ("Hasn't Tom quit the band?", "latest"),
        ("Does Nora continue to run the shop?", "latest"),
        ("What did we first decide about the venue?", "former"),
        ("What did the shop once sell?", "former"),
        ("Which clubs has Nora left?", "former"),
        ("What was their earliest idea about the price?", "former"),
        ("Who is Ivo's landlord?", None),
        ("Why did Ivo sell the boat?", None),
    ],
)
def test_a_state_is_asked_for_in_words_that_no_list_has(text: str, direction: str | None) -> None:
    assert read_latest_or_former(text) is None
    (vector,) = embed_as(DEFAULT_EMBEDDER, "query", [text])

    assert time_order(DEFAULT_EMBEDDER, [*vector]) == direction


def test_the_newest_comes_first_where_the_embedding_asks_for_it(pgrecall: Recall) -> None:
    pgrecall.create_bank("b")
    for day, lot in [
        ("2025-01-05", "we end up with the mill"),
        ("2025-03-05", "we chose the river"),
    ]:
        pgrecall.retain("b", [{"text": f"On the parking question {lot}.", "occurred": day}])
    first = {
        temporal: pgrecall.recall("b", UNLISTED, temporal=temporal, rerank=False)[0].text
        for temporal in (False, True)
    }

    assert "mill" in first[False]
    assert "river" in first[True]


def test_a_model_without_planes_asks_for_no_state(tmp_path: Path) -> None:
    assert read_time_order(tmp_path, [1.0]) is None
    assert time_order(FunctionEmbedder(lambda texts: [[1.0] for _ in texts], "m", 1), [1]) is None


def test_the_embedding_is_not_asked_where_a_phrase_only_looks_like_a_state(
    pgrecall: Recall,
) -> None:
    text = "From now on, who pays for the lot at the mill?"
    (vector,) = embed_as(DEFAULT_EMBEDDER, "query", [text])
    assert time_order(DEFAULT_EMBEDDER, [*vector]) == "latest"
    pgrecall.create_bank("b")
    for day, lot in [("2025-01-05", "at the mill"), ("2025-03-05", "by the river")]:
        pgrecall.retain("b", [{"text": f"Tom pays for the lot {lot}.", "occurred": day}])

    def first(prefer: Literal["latest"] | None = None) -> str:
        return pgrecall.recall("b", text, rerank=False, prefer=prefer)[0].text

    assert "river" in first(prefer="latest")
    assert "mill" in first()
