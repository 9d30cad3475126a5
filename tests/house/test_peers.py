"""What the benchmark beside peers relies on, without running any of them."""

from __future__ import annotations

import ast
import lzma
import sqlite3
from array import array
from dataclasses import fields
from pathlib import Path

import pytest
from bench.peers import environments, peers, sets, worker

ADAPTERS = sorted((environments.HERE / "adapters").glob("*.py"))
METHODS = {"__init__", "setup", "versions", "load", "finish", "ask"}


def classes(path: Path) -> dict[str, ast.ClassDef]:
    found = ast.parse(path.read_text("utf-8")).body
    return {node.name: node for node in found if isinstance(node, ast.ClassDef)}


def test_every_adapter_is_run_and_every_peer_has_one() -> None:
    assert {path.stem for path in ADAPTERS} == {peer.adapter for peer in peers.PEERS.values()}


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.stem)
def test_an_adapter_has_what_the_worker_calls(path: Path) -> None:
    known = classes(environments.HERE / "adapters" / "recipe.py") | classes(path)
    parts = [known["Peer"], *(known[b.id] for b in known["Peer"].bases if isinstance(b, ast.Name))]

    names = {node.name for part in parts for node in part.body if isinstance(node, ast.FunctionDef)}

    assert names >= METHODS


def test_servers_listen_on_this_machine_alone() -> None:
    assert {one["listen_addresses"] for one in environments.SERVERS.values()} == {"127.0.0.1"}


def test_a_text_without_a_vector_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite"
    sets.embed_missing(path, ["known"], lambda texts: [[1.0, 0.5] for _ in texts])
    vectors = worker.Vectors(path)

    assert vectors("known") == [1.0, 0.5]
    with pytest.raises(KeyError, match="no vector of 'unknown'"):
        vectors("unknown")


def test_a_text_is_embedded_once(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite"
    sets.embed_missing(path, ["a"], lambda _: [[1.0]])

    def never(_: object) -> list[list[float]]:
        raise AssertionError

    sets.embed_missing(path, ["a"], never)

    with sqlite3.connect(path) as database:
        assert database.execute("select vector from vector").fetchall() == [
            (array("f", [1.0]).tobytes(),)
        ]


def test_ratios_are_medians_of_the_questions_and_ours_is_one() -> None:
    def rows(*times: float) -> list[dict[str, float]]:
        return [{"ms": t, "server_ms": t, "client_ms": 1.0, "database_ms": t} for t in times]

    ours, theirs = rows(1, 2, 100), rows(3, 6, 100)

    assert peers.Run._summary(ours, ours)["ratio"] == 1
    assert peers.Run._summary(theirs, ours)["ratio"] == 3


def test_a_lost_embedder_gives_no_vector(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite"
    sets.embed_missing(path, ["known"], lambda texts: [[1.0] for _ in texts])
    vectors = worker.Vectors(path)
    vectors.is_lost = True

    with pytest.raises(ConnectionError, match="the embedder is down"):
        vectors("known")


def test_questions_go_to_all_banks_in_turn(tmp_path: Path) -> None:
    text = "".join(f"Sentence {n}.\n" for n in range(300))
    with lzma.open(tmp_path / "sentences.txt.xz", "wt", encoding="utf-8") as file:
        file.write(text)
    (tmp_path / "questions.txt").write_text("One?\nTwo?\nThree?\n", encoding="utf-8")

    found = sets.many_banks(tmp_path, 2, 3)

    assert [len(facts) for facts in found.banks.values()] == [100, 100]
    assert [question.bank for question in found.questions] == ["bank0", "bank1", "bank0"]
    texts = {fact.text for facts in found.banks.values() for fact in facts}
    assert len(texts) == 200


def test_worlds_are_given_without_their_relations(tmp_path: Path) -> None:
    found = sets.judged(tmp_path, "worlds", None, 10)

    assert len(found.questions) == 10
    assert {field.name for field in fields(sets.Fact)} == {"id", "text", "entities", "at", "type"}
    assert any(fact.entities for facts in found.banks.values() for fact in facts)
