"""A world as who reads one message at a time extracts it.

Worlds name everybody in full, with a first name as alias, and word a kind of entity or of relation
always alike. A language model that extracts facts from messages does neither: it knows what the one
message says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

KINDS: Mapping[str, tuple[str, ...]] = {
    "born_in": ("birthplace", "native_of", "was born at"),
    "knows": ("friend_of", "acquainted with", "befriended"),
    "leads": ("heads", "is in charge of", "runs", "< led_by"),
    "lives_in": ("resides_in", "has_home_in", "inhabitant_of"),
    "located_in": ("is_in", "situated_at", "part_of", "< contains"),
    "made_by": ("manufactured_by", "built by", "produced_by", "< produces"),
    "manages": ("boss_of", "supervises", "oversees", "< reports_to"),
    "married_to": ("spouse_of", "wed", "is husband or wife of"),
    "member_of": ("belongs_to_team", "in_team", "is part of", "< has_member"),
    "mentors": ("teaches", "coaches", "guides", "< mentored_by"),
    "owns": ("has", "possesses", "owner_of", "< belongs_to"),
    "parent_of": ("father_or_mother_of", "has_child", "< child_of"),
    "reports_to": ("works_for", "has_manager", "takes orders from", "< manages"),
    "sibling_of": ("brother_or_sister_of", "has sibling", "same parents as"),
    "works_on": ("assigned_to", "contributes_to", "working on project"),
}
"""Other words for a kind of relation; behind < those for the relation turned round."""

ENTITY_KINDS: Mapping[str, tuple[str, ...]] = {
    "identifier": ("code", "id", "batch"),
    "machine": ("device", "equipment", "vehicle"),
    "organisation": ("company", "client", "business", "vendor"),
    "person": ("colleague", "engineer", "friend", "human"),
    "place": ("city", "destination", "location"),
    "project": ("initiative", "program"),
    "team": ("department", "group"),
}
"""Other words for a kind of entity, of which one is used for every second mention."""


def extracted(facts: Iterable[Mapping[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Name entities as the text of each fact does, without aliases, and word each kind anew."""
    random = Random(seed)
    return [_extracted(fact, random) for fact in facts]


def _extracted(fact: Mapping[str, Any], random: Random) -> dict[str, Any]:
    entities = [
        {"name": one} if isinstance(one, str) else dict(one) for one in fact.get("entities", ())
    ]
    names = {
        one["name"]: next(
            (name for name in (one["name"], *one.pop("aliases", ())) if name in fact["text"]),
            one["name"],
        )
        for one in entities
    }
    for one in entities:
        if random.random() < 0.5 and one.get("kind") in ENTITY_KINDS:
            one["kind"] = random.choice(ENTITY_KINDS[one["kind"]])
    found = {**fact, "entities": [{**one, "name": names[one["name"]]} for one in entities]}
    if "relations" in fact:
        found["relations"] = [_worded(one, names, random) for one in fact["relations"]]
    return found


def _worded(
    relation: Mapping[str, Any], names: Mapping[str, str], random: Random
) -> dict[str, Any]:
    kind = random.choice((relation["kind"], *KINDS.get(relation["kind"], ())))
    ends = [names.get(relation[end], relation[end]) for end in ("from", "to")]
    if kind.startswith("< "):
        kind = kind[2:]
        ends.reverse()
    return {**relation, "kind": kind, "from": ends[0], "to": ends[1]}
