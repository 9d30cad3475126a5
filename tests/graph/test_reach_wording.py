"""Chains of relations in many wordings: what a question says, and the path that it asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlcalls import Connection, call, create, retain

# (from, kind, to); a name of two words is also known by its first.
RELATIONS = [
    ("Bo Lund", "mentors", "Ana Berg"),
    ("Bo Lund", "reports_to", "Cy Marsh"),
    ("Ana Berg", "reports_to", "Dot Vane"),
    ("Dot Vane", "lives_in", "Kiel"),
    ("Dot Vane", "born_in", "Graz"),
    ("Cy Marsh", "lives_in", "Porto"),
    ("Cy Marsh", "born_in", "Metz"),
    ("Cy Marsh", "owns", "the blue van"),
    ("Porto", "located_in", "Midland"),
    ("Kiel", "located_in", "Northmark"),
    ("Ana Berg", "owns", "Wagon"),
    ("Wagon", "made_by", "Nimbus"),
    ("Nimbus", "located_in", "Linz"),
    ("the blue van", "made_by", "Orlo Works"),
    ("Ana Berg", "member_of", "Otter team"),
    ("Eve Holt", "leads", "Otter team"),
    ("Eve Holt", "lives_in", "Cork"),
    ("Eve Holt", "works_on", "Project Juniper"),
    ("Flo Reed", "leads", "Project Juniper"),
    ("Ana Berg", "works_on", "Project Heron"),
    ("Gus Hall", "leads", "Project Heron"),
    ("Gus Hall", "owns", "the grey crane"),
    ("Ana Berg", "married_to", "Hal Oort"),
    ("Hal Oort", "works_on", "Project Juniper"),
    ("Iris Oort", "parent_of", "Hal Oort"),
    ("Iris Oort", "lives_in", "Turku"),
    ("Cy Marsh", "manages", "Jan van Dam"),
    ("Jan van Dam", "lives_in", "Delft"),
    ("Jan van Dam", "married_to", "Mia Kolb"),
    ("Mia Kolb", "mentors", "Lou Falk"),
]
CASES = json.loads((Path(__file__).parent / "chains.json").read_text(encoding="utf-8"))


@pytest.fixture
def world(connection: Connection) -> Connection:
    create(connection)
    names = {name for a, _, b in RELATIONS for name in (a, b)}
    kinds = {"the": "machine", "Project": "project", "Otter": "team"}
    entities = {
        name: {
            "name": name,
            "kind": kinds.get(name.split()[0], "person" if " " in name else "place"),
            "aliases": [name.split()[0]] if " " in name and name.split()[0] not in kinds else [],
        }
        for name in sorted(names)
    }
    retain(
        connection,
        [
            {
                "text": f"Note {n}.",
                "entities": [entities[a], entities[b]],
                "relations": [{"from": a, "kind": kind, "to": b}],
            }
            for n, (a, kind, b) in enumerate(RELATIONS)
        ],
    )
    return connection


@pytest.mark.parametrize("path", CASES)
def test_a_question_is_read_as_the_chain_that_it_asks_for(world: Connection, path: str) -> None:
    def read(query: str) -> str:
        hits = call(world, "arm_hits", bank="b", query=query, arms=["relation"])
        return str(hits[0].via["path"]) if hits else "none"

    found = {query: read(query) for query in CASES[path]}

    assert {query: one for query, one in found.items() if one != path} == {}
