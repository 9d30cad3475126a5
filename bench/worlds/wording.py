"""The wordings of a world: its names, the sentences of its facts, and its questions.

make.py builds every world; a wording only says it. Each is a file of wordings/:

* dev: for development and tuning.
* held: held back, to tell a kind of question that is solved from a template that is known. Anyone
  who develops arms, lexicons or rerankers measures with it and does not read it.
* third: people who talk to an assistant as they please. Relations often go without their word.
* fourth: a trust with wards, a stage, a yard and a school. It was written without knowledge of the
  product and its figures, and is not mended against them. Others have newer facts, the same trouble
  and the same failures as those who are asked for.

No two share a name or a sentence. Placeholders: {a} and {b} are the two ends of a relation, {x} is
what a question starts from; the others are explained where they occur.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

WORDINGS = ("dev", "held", "third", "fourth")
FOLDER = Path(__file__).with_name("wordings")

Texts = Sequence[str]
Rivals = tuple[str, str, Sequence[Texts]]
"""What befalls {c}, its noun phrase, and for each company a chain of events of its own."""


@dataclass(frozen=True)
class Wording:
    female: Texts
    male: Texts
    surnames: Texts
    cities: Texts
    countries: Texts
    teams: Texts
    projects: Texts
    things: Texts
    companies: Texts
    hub: str
    """The company that everybody works for."""
    jobs: Texts
    facts: Mapping[str, Texts]
    """By kind of relation."""
    phrases: Mapping[str, Texts]
    """A step as a noun phrase. ".f" and ".m" are for steps to women and to men."""
    asks: Mapping[str, Texts]
    """A step as a question. A step to a person is also asked with `who` and its phrase.

    "team lead" asks for the leader of somebody's team."""
    who: Texts
    stories: Sequence[Sequence[tuple[str, str]]]
    """Chains of four events, each with the noun phrase that a question uses for it."""
    cause: Texts
    root: Texts
    consequence: Texts
    prevented: Sequence[tuple[str, str, str]]
    """What prevents, what does not happen, and the noun phrase of the latter."""
    prevention: Texts
    failures: Sequence[tuple[str, str, str]]
    """What failed, what is known of {code}, and the question; they share only {code}."""
    affected: Sequence[tuple[str, Texts]]
    """A fault of {code}, and what it did to {c} in {city}."""
    others: Texts
    """Who else was affected by the fault {e} that {c} had."""
    topics: Texts
    decided: Sequence[tuple[str, Texts]]
    """Decisions about {t}, each with values for {v}."""
    latest: Texts
    month: Texts
    moves: Mapping[str, Texts]
    """Facts about {a} and {b}, by relation; the newest one holds."""
    now: Mapping[str, Texts]
    still: Mapping[str, Texts]
    past: Mapping[str, Texts]
    first: Mapping[str, Texts]
    no_longer: Mapping[str, Texts]
    events: Texts
    week: Texts
    standing: Texts
    noise: Texts
    attributes: Sequence[tuple[str, str]]
    """Facts about {hub} with their questions."""
    breakdowns: Sequence[tuple[str, str]]
    """How {thing} broke down in {city}, and the question about its owner."""
    terms: Sequence[tuple[str, Texts]]
    """Terms of the contract with {c}, each with values for {v}."""
    changed: Texts
    """What changed about {c} between {day1} and {day2}."""
    through: Texts
    contradictions: Sequence[tuple[str, str, Texts, str]]
    """Two wordings of one statement about {x}, values for {v}, and the question."""
    chained: Mapping[str, Texts] = field(default_factory=dict)
    """Like `phrases`, where {x} is a clause that no "'s" may follow."""
    changing: Sequence[tuple[Texts, Texts, Texts, Texts]] = ()
    """What changes about {a}, values for {v}, questions for what holds now, and for the latest."""
    rivals: Sequence[Rivals] = ()
    """The chain leads to what befalls {c}."""
    aftermaths: Sequence[Rivals] = ()
    """The chain follows from what befalls {c}."""
    batches: Sequence[tuple[str, Texts, Texts, Texts]] = ()
    """What failed in {city}, with {code}; the questions; what is known of each {code}; a chain of
    causes of the same failure elsewhere."""


def read(name: str) -> Wording:
    """Read a wording, one of WORDINGS."""
    return Wording(**json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))
