"""What a world of worlds.py is made of: facts, entities, relations, links and questions.

A fact is what retain() takes; `source_id` is the judge's id. finished() shuffles the facts, so that
neither ids nor the order of loading tell which is the newest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any

from bench.worlds.wording import Wording

ASKED_AT = datetime(2026, 5, 14, 12, tzinfo=timezone.utc)  # a Thursday
# What a relation tells of its first end, and of its second.
STEPS = {
    "reports_to": ("boss", ""),
    "manages": ("", "boss"),
    "mentors": ("", "mentor"),
    "married_to": ("spouse", "spouse"),
    "parent_of": ("child", "parent"),
    "sibling_of": ("sibling", "sibling"),
    "works_on": ("project", ""),
    "member_of": ("team", ""),
    "leads": ("", "lead"),
    "lives_in": ("home", ""),
    "born_in": ("birthplace", ""),
    "located_in": ("place", ""),
    "owns": ("thing", "owner"),
    "made_by": ("maker", ""),
    "knows": ("friend", "friend"),
}


@dataclass(frozen=True)
class Question:
    kind: str
    text: str
    relevant: frozenset[str]
    """source_id of each fact that answers."""
    also: frozenset[str] = frozenset()
    """Facts that may come before, neither wanted nor wrong: nearer causes of what was asked."""
    asked_at: datetime = ASKED_AT
    wrong: frozenset[str] = frozenset()
    """Facts of the kind that is asked for, but about others than the question leads to."""


class Builder:
    """Adds facts, entities and questions to a world, and knows which relations lead where."""

    def __init__(self, random: Random, wording: Wording) -> None:
        self.random = random
        self.wording = wording
        self._asked: list[tuple[Question, Sequence[str]]] = []
        self._facts: list[dict[str, Any]] = []
        self._entities: dict[str, dict[str, Any]] = {}
        self._female: set[str] = set()
        self._graph: dict[tuple[str, str], tuple[str, str]] = {}
        self._told: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._staff: list[str] = []
        self._codes: set[str] = set()
        self._surnames = random.sample(wording.surnames, len(wording.surnames))
        female = random.sample(wording.female, len(wording.female))
        male = random.sample(wording.male, len(wording.male))
        self._names = [name for pair in zip(female, male, strict=True) for name in pair]
        for kind, names in (
            ("place", (*wording.cities, *wording.countries)),
            ("team", wording.teams),
            ("project", wording.projects),
            ("machine", wording.things),
            ("organisation", (*wording.companies, wording.hub)),
        ):
            self._entities |= {name: {"name": name, "kind": kind} for name in names}

    def fact(
        self,
        text: str,
        names: Iterable[str] = (),
        occurred: object = None,
        said: datetime | None = None,
        **more: Any,
    ) -> str:
        """Add a fact; returns its id. Not said when: some day before last winter."""
        source_id = f"f{len(self._facts):04}"
        said = said or self.day(500, 160)
        fact = {
            "text": text[0].upper() + text[1:],
            "source_id": source_id,
            "fact_type": "event" if isinstance(occurred, str) else "world",
            "entities": [self._entities.get(name, name) for name in names],
            "occurred": occurred,
            "mentioned_at": said.isoformat(),
            **more,
        }
        self._facts.append({key: value for key, value in fact.items() if value})
        return source_id

    def event(self, text: str, names: Iterable[str], at: datetime, **more: Any) -> str:
        return self.fact(text, names, at.date().isoformat(), at, **more)

    def tell(self, what: str, subject: str, *source_ids: str) -> None:
        """Note that facts tell something of somebody: wrong for who asks it of others."""
        self._told[what][subject].update(source_ids)

    def ask(
        self,
        kind: str,
        texts: Sequence[str],
        relevant: Iterable[str],
        also: Iterable[str] = (),
        about: Sequence[str] = (),
    ) -> None:
        """Ask in one of the ways.

        Args:
            kind: Kind of question.
            texts: The ways.
            relevant: Facts that answer.
            also: Neither wanted nor wrong.
            about: What is asked, as tell() was given it, and of whom.

        """
        text = self.random.choice(texts)
        question = Question(kind, text[0].upper() + text[1:], frozenset(relevant), frozenset(also))
        self._asked.append((question, about))

    @property
    def questions(self) -> list[Question]:
        """All questions; what is wrong is known when all facts are."""
        return [
            replace(question, wrong=self._about_others(*about) - question.relevant - question.also)
            if about
            else question
            for question, about in self._asked
        ]

    def _about_others(self, what: str, *subjects: str) -> frozenset[str]:
        told = self._told[what]
        of_others = (ids for subject, ids in told.items() if subject not in subjects)
        return frozenset().union(*of_others).difference(*(told[subject] for subject in subjects))

    def day(self, most: int, least: int) -> datetime:
        """Choose a day, so many days ago."""
        return ASKED_AT - timedelta(days=self.random.randint(least, most))

    def person(self) -> str:
        first = self._names.pop()
        name = f"{first} {self._surnames.pop()}"
        if first in self.wording.female:
            self._female.add(name)
        self._entities[name] = {"name": name, "kind": "person", "aliases": [first]}
        return name

    def short(self, name: str, share: float = 0.4) -> str:
        """Call a person by the first name, now and then."""
        if self._entities[name]["kind"] == "person" and self.random.random() < share:
            return name.split()[0]
        return name

    def relate(self, kind: str, a: str, b: str, **more: Any) -> str:
        """Add a fact about a relation; the steps that it makes possible are kept for questions."""
        text = self.random.choice(self.wording.facts[kind])
        text = text.format(a=self.short(a, 0.25), b=self.short(b, 0.25))
        relation = {"from": a, "kind": kind, "to": b}
        source_id = self.fact(text, (a, b), relations=[relation], **more)
        for step, start, end in zip(STEPS.get(kind, ("", "")), (a, b), (b, a), strict=True):
            if step:
                self._graph.setdefault((step, start), (end, source_id))
                self.tell(step, start, source_id)
        return source_id

    def fill(self, text: str, **given: object) -> tuple[str, list[str]]:
        """Fill a template with what it asks for; returns the names that it holds, too."""
        choices: dict[str, object] = {
            "city": self.random.choice(self.wording.cities),
            "company": self.random.choice(self.wording.companies),
            "person": self.random.choice(self._staff),
            "hub": self.wording.hub,
            "n": self.random.randint(100, 99999),
            **given,
        }
        names = [
            str(value) for key, value in choices.items() if f"{{{key}}}" in text and key != "n"
        ]
        return text.format(**choices), [name for name in names if name in self._entities]

    def code(self) -> str:
        """Make a number that nothing else has, and an entity of it."""
        letters = "".join(self.random.sample("BCDFGHJKLMNPQRSTVWXZ", 2))
        code = f"{letters}-{len(self._codes)}{self.random.randint(100, 999)}"
        self._codes.add(code)
        self._entities[code] = {"name": code, "kind": "identifier"}
        return code

    def finished(self) -> list[dict[str, Any]]:
        """Shuffle the facts, and let links lead to positions."""
        facts = self.random.sample(self._facts, len(self._facts))
        places = {fact["source_id"]: place for place, fact in enumerate(facts)}
        for fact in facts:
            for link in fact.get("links", ()):
                link["to_index"] = places[link.pop("to")]
        return facts
