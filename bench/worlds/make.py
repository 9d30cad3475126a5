"""Make a world: facts as retain() takes them, and questions whose answers are known.

generate() is all that others use. A world is a company with its hierarchy, families, homes and
machines, chains of causes, decisions, moves, events of last week among standing facts, and notes
about the company itself, a hub. Everything follows from the seed and the wording. Facts come in
random order, so that neither ids nor the order of loading tell which is the newest; `source_id` is
the judge's id.

A wording may have sentences for traps; so far "fourth" does: newer facts of the same kind about
others, the same trouble at several companies with causes and outcomes of its own, and the same
failure in several towns, of parts with different numbers, and in one town for a cause that is
linked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from random import Random
from typing import Any

from bench.worlds.wording import Wording, read

ASKED_AT = datetime(2026, 5, 14, 12, tzinfo=timezone.utc)  # a Thursday
# The step that a relation allows from its first end, and from its second.
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
STANDING = 110
HUB = 40
PATHS = {
    "one_relation": (
        *(("boss",), ("boss",), ("mentor",), ("spouse",), ("parent",), ("child",), ("sibling",)),
        *(("team",), ("project",), ("lead",), ("thing",), ("owner",), ("maker",), ("home",)),
    ),
    "two_relations": (
        *(("boss", "home"), ("boss", "home"), ("mentor", "home"), ("spouse", "home")),
        *(("parent", "birthplace"), ("boss", "project"), ("mentor", "team"), ("sibling", "home")),
        *(("boss", "spouse"), ("team", "lead"), ("project", "lead"), ("thing", "maker")),
        *(("boss", "thing"), ("child", "birthplace"), ("owner", "home"), ("boss", "mentor")),
    ),
    "three_relations": (
        *(("mentor", "boss", "home"), ("boss", "boss", "birthplace"), ("boss", "spouse", "home")),
        *(("mentor", "boss", "thing"), ("team", "lead", "home"), ("project", "lead", "spouse")),
        *(("thing", "maker", "place"), ("boss", "home", "place"), ("owner", "boss", "home")),
        *(("spouse", "mentor", "project"), ("boss", "mentor", "home"), ("lead", "spouse", "home")),
    ),
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


def generate(
    seed: int, templates: str = "dev", hub: int = HUB
) -> tuple[list[dict[str, Any]], list[Question]]:
    """Make a world.

    Args:
        seed: Equal seeds give equal worlds.
        templates: Name of the wording, one of WORDINGS.
        hub: How many facts of noise about the company.

    """
    world = World(Random(f"{templates} {seed}"), read(templates))
    world.people()
    world.ask_relations()
    world.causes()
    world.rare()
    world.decisions()
    world.moves()
    world.last_week()
    world.contracts()
    world.acquaintances()
    world.same_names()
    world.statements()
    world.newcomers()
    world.changing()
    world.rivals()
    world.batches()
    world.hub(hub)
    return world.finished(), world.questions


def _is_clause(phrase: str, place: str) -> bool:
    """Tell a description, such as "whoever X serves", from a name and from "X's boss"."""
    return not place.startswith(phrase) and phrase.startswith(("the ", "who", "what"))


class World:
    """The facts, entities and questions of a world, and which relation leads where."""

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
        """Add a fact and return its id. Without `said`, it is told on a day before last winter."""
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
        """Note what facts tell about a subject: they are wrong where it is asked about others."""
        self._told[what][subject].update(source_ids)

    def ask(
        self,
        kind: str,
        ways: Sequence[str],
        relevant: Iterable[str],
        also: Iterable[str] = (),
        about: Sequence[str] = (),
        **said: str,
    ) -> None:
        """Ask a question in one of several ways.

        Args:
            kind: Kind of question.
            ways: Templates of the question, of which one is chosen.
            relevant: Facts that answer.
            also: Facts that are neither wanted nor wrong.
            about: What is asked, as tell() was given it, and of whom.
            said: What the placeholders of the template stand for.

        """
        text = self.random.choice(ways).format(**said)
        question = Question(kind, text[0].upper() + text[1:], frozenset(relevant), frozenset(also))
        self._asked.append((question, about))

    @property
    def questions(self) -> list[Question]:
        """All questions. Only once all facts are known is it known which of them are wrong."""
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
        """Choose a day, between least and most days ago."""
        return ASKED_AT - timedelta(days=self.random.randint(least, most))

    def person(self) -> str:
        first = self._names.pop()
        name = f"{first} {self._surnames.pop()}"
        if first in self.wording.female:
            self._female.add(name)
        self._know(name)
        return name

    def _know(self, name: str) -> None:
        """Keep a person as an entity whose alias is the first name."""
        self._entities[name] = {"name": name, "kind": "person", "aliases": [name.split()[0]]}

    def short(self, name: str, share: float = 0.4) -> str:
        """Return the first name of a person, now and then; else the whole name."""
        if self._entities[name]["kind"] == "person" and self.random.random() < share:
            return name.split()[0]
        return name

    def relate(self, kind: str, a: str, b: str, **more: Any) -> str:
        """Add a fact about a relation, and keep the steps that it allows for the questions."""
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
        """Fill the placeholders of a template. Returns the text and the entities that it names."""
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
        """Make a number that occurs nowhere else, and an entity of that name."""
        letters = "".join(self.random.sample("BCDFGHJKLMNPQRSTVWXZ", 2))
        code = f"{letters}-{len(self._codes)}{self.random.randint(100, 999)}"
        self._codes.add(code)
        self._entities[code] = {"name": code, "kind": "identifier"}
        return code

    def finished(self) -> list[dict[str, Any]]:
        """Return the facts in random order, with links to positions rather than to ids."""
        facts = self.random.sample(self._facts, len(self._facts))
        places = {fact["source_id"]: place for place, fact in enumerate(facts)}
        for fact in facts:
            for link in fact.get("links", ()):
                link["to_index"] = places[link.pop("to")]
        return facts

    # People, and what one asks about them.

    def people(self) -> None:
        random, wording = self.random, self.wording
        staff = self._staff = [self.person() for _ in range(20)]
        family = [self.person() for _ in range(12)]
        standing = {"occurred": ["2025-01-01", "2027-12-31"]}
        for n, name in enumerate(staff[1:], 1):
            boss = staff[(n - 1) // 3]
            if random.random() < 0.7:
                self.relate("reports_to", name, boss)
            else:
                self.relate("manages", boss, name)
            if n > 3:
                others = [p for p in staff if p not in (name, boss)]
                self.relate("mentors", random.choice(others), name)
        for name in staff:
            self.relate("lives_in", name, random.choice(wording.cities), **standing)
            self.relate("works_on", name, random.choice(wording.projects), **standing)
            self.relate("member_of", name, random.choice(wording.teams), **standing)
        for name in (*staff[:8], *family):
            self.relate("born_in", name, random.choice(wording.cities))
        for place in (*wording.projects, *wording.teams):
            self.relate("leads", random.choice(staff), place)
        for name in family:
            self.relate("lives_in", name, random.choice(wording.cities))
        for n, relative in enumerate(family[:6]):  # those of bosses, most of the time
            self.relate("married_to", staff[(0, 1, 2, 3, 5, 9)[n]], relative)
        for n, relative in enumerate(family[6:]):
            one = staff[n * 2 + 1]
            kind = ("parent_of", "sibling_of", "parent_of", "sibling_of")[n % 4]
            ends = (one, relative) if n % 4 == 2 else (relative, one)
            self.relate(kind, *ends)
        self.relate("married_to", staff[12], staff[17])
        owners = random.sample(staff[4:], len(wording.things))
        for n, thing in enumerate(wording.things):
            self.relate("owns", staff[n + 1] if n < 3 else owners[n], thing)
            self.relate("made_by", thing, random.choice(wording.companies))
        for company in wording.companies:
            self.relate("located_in", company, random.choice(wording.cities))
        for city in wording.cities:
            self.relate("located_in", city, random.choice(wording.countries))

    def ask_relations(self) -> None:
        for kind, paths in PATHS.items():
            asked: set[tuple[str, tuple[str, ...]]] = set()
            for path in paths:
                starts = [
                    x for step, x in self._graph if step == path[0] and (x, path) not in asked
                ]
                self.random.shuffle(starts)
                for start in starts:
                    if answer := self._follow(start, path):
                        place, source_id = answer
                        asked.add((start, path))
                        about = (path[-1], place)
                        self.ask(kind, self._worded(start, path), [source_id], about=about)
                        break

    def _follow(self, start: str, path: Sequence[str]) -> tuple[str, str] | None:
        """Return whom the fact at the end of a path is about, and the fact.

        None where the path breaks off or comes back.
        """
        seen, source_id = [start], ""
        for step in path:
            end, source_id = self._graph.get((step, seen[-1]), ("", ""))
            if not end or end in seen:
                return None
            seen.append(end)
        return seen[-2], source_id

    def _worded(self, start: str, path: Sequence[str]) -> list[str]:
        """Word the question for a path, in one way or in several."""
        if path == ("team", "lead") and self.random.random() < 0.4:
            return [ask.format(x=self.short(start)) for ask in self.wording.asks["team lead"]]
        phrase, place = self.short(start), start
        for step in path[:-1]:
            phrase, place = self._phrase(step, phrase, place), self._graph[step, place][0]
        is_clause = bool(self.wording.chained) and _is_clause(phrase, place)
        asks = [
            ask.format(x=phrase)
            for ask in self.wording.asks[path[-1]]
            if not (is_clause and "{x}'s" in ask)
        ]
        last = self._graph[path[-1], place][0]
        if self._entities[last]["kind"] == "person":
            said = self._phrase(path[-1], phrase, place)
            asks += [who.format(p=said) for who in self.wording.who]
        return asks

    def _phrase(self, step: str, phrase: str, place: str) -> str:
        end = self._graph[step, place][0]
        sexed = f"{step}.{'f' if end in self._female else 'm'}"
        phrases = self.wording.phrases.get(sexed) or self.wording.phrases[step]
        if _is_clause(phrase, place):
            phrases = self.wording.chained.get(sexed) or self.wording.chained.get(step, phrases)
        return self.random.choice(phrases).format(x=phrase)

    # Causes, and what shares a rare entity.

    def causes(self) -> None:
        wording = self.wording
        for story in self.random.sample(wording.stories, 5):
            ids = self._chain([text for text, _ in story])
            said = [noun for _, noun in story]
            about = ("chain", ids[0])
            self.ask("cause", wording.cause, ids[1:2], ids[2:3], about, e=said[3])
            self.ask("root_cause", wording.root, ids[:1], about=about, e=said[3])
            self.ask("consequence", wording.consequence, ids[1:], about=about, e=said[0])
        for preventer, danger, noun in self.wording.prevented:
            at = self.day(400, 120)
            first = self.event(*self.fill(preventer), at)
            second = self.event(*self.fill(danger), at + timedelta(days=1))
            self._link([(first, "prevents", second)])
            self.tell("prevented", noun, first, second)
            self.ask(
                "prevented", self.wording.prevention, [first], about=("prevented", noun), e=noun
            )

    def _chain(self, texts: Iterable[str], **given: object) -> list[str]:
        """Let each event cause the next; returns their ids. The first names the chain in tell()."""
        at, ids, links = self.day(400, 120), list[str](), []
        for text in texts:
            ids.append(self.event(*self.fill(text, **given), at))
            at += timedelta(days=self.random.randint(1, 9))
        for cause, effect in pairwise(ids):
            if self.random.random() < 0.6:
                links.append((effect, "caused_by", cause))
            else:
                links.append((cause, self.random.choice(("causes", "enables")), effect))
        self._link(links)
        self.tell("chain", ids[0], *ids)
        return ids

    def _link(self, links: Iterable[tuple[str, str, str]]) -> None:
        by_id = {fact["source_id"]: fact for fact in self._facts}
        for start, kind, end in links:
            by_id[start].setdefault("links", []).append({"kind": kind, "to": end})

    def rare(self) -> None:
        random, wording = self.random, self.wording
        for failure, known, question in wording.failures:
            code, city = self.code(), random.choice(wording.cities)
            self.event(*self.fill(failure, code=code, city=city), self.day(90, 60))
            found = self.fact(*self.fill(known, code=code))
            self.tell("failure", failure, found)
            self.ask("shared_entity", [question], [found], about=("failure", failure), city=city)
        for fault, texts in wording.affected:
            code, hit = self.code(), random.sample(wording.companies, len(texts))
            ids = [
                self.event(*self.fill(text, code=code, c=company), self.day(90, 60))
                for text, company in zip(texts, hit, strict=True)
            ]
            self.tell("affected", fault, *ids)
            about = ("affected", fault)
            self.ask("affected", wording.others, ids[1:], about=about, e=fault, c=hit[0])
        things = random.sample(wording.things, len(wording.breakdowns))
        cities = random.sample(wording.cities, len(wording.breakdowns))
        for (text, question), thing, city in zip(wording.breakdowns, things, cities, strict=True):
            self.event(*self.fill(text, thing=thing, city=city), self.day(90, 20))
            owns = self._graph["owner", thing][1]
            self.ask("owner_of_broken", [question], [owns], about=("owner", thing), city=city)

    # What changes.

    def decisions(self) -> None:
        by_month: dict[str, list[str]] = defaultdict(list)
        for topic in self.wording.topics:
            text, values = self.random.choice(self.wording.decided)
            days = sorted(self.random.sample(range(20, 300), len(values)), reverse=True)
            for value, days_ago in zip(values, days, strict=True):
                at = ASKED_AT - timedelta(days=days_ago)
                newest = self.event(text.format(t=topic, v=value), [topic], at)
                by_month[f"{at:%B %Y}"].append(newest)
                self.tell("decided", topic, newest)
            self.ask("latest", self.wording.latest, [newest], about=("decided", topic), t=topic)
        for month in self.random.sample(sorted(by_month), 4):
            self.ask("in_month", self.wording.month, by_month[month], month=month)

    def moves(self) -> None:
        """Let people move twice: people of whom nothing else is known."""
        random, wording = self.random, self.wording
        for n, (kind, texts) in enumerate([*wording.moves.items()] * 2):
            name = f"{self._names.pop(0)} {self._surnames.pop()}"
            self._know(name)
            places = wording.cities if kind == "lives_in" else wording.projects
            chosen = random.sample(places, 3)
            days = [random.randint(900, 1200), random.randint(400, 800), random.randint(60, 300)]
            times = [ASKED_AT - timedelta(days=d) for d in days]
            ids = []
            for place, since, until in zip(chosen, times, [*times[1:], None], strict=True):
                ends = {"valid_to": until.isoformat()} if until and n % 2 else {}
                relation = {
                    "from": name,
                    "kind": kind,
                    "to": place,
                    "valid_from": since.isoformat(),
                }
                text = random.choice(texts).format(a=self.short(name), b=place)
                dated = since.date().isoformat() if n < 2 else None
                more = {"relations": [{**relation, **ends}], "fact_type": "world"}
                ids.append(self.fact(text, (name, place), dated, since, **more))
            self.tell(STEPS[kind][0], name, *ids)
            for asked, ways, relevant in (
                ("now", wording.now, ids[2:]),
                ("still", wording.still, ids[2:]),
                ("used_to", wording.past, ids[:2]),
                ("first", wording.first, ids[:1]),
                ("no_longer", wording.no_longer, ids[:2]),
            ):
                said = {"x": self.short(name), "old": chosen[1]}
                self.ask(asked, ways[kind], relevant, about=(STEPS[kind][0], name), **said)

    def last_week(self) -> None:
        """Put events on its last four days, which lie in the last seven days, too."""
        events = self.random.sample(self.wording.events, len(self.wording.events))
        monday = ASKED_AT - timedelta(days=ASKED_AT.weekday())
        week = [
            self.event(*self.fill(text), monday - timedelta(days=self.random.randint(1, 4)))
            for text in events[:5]
        ]
        for text in events[5:]:
            self.event(*self.fill(text), self.day(60, 15))
        for text in self.wording.week:
            self.ask("last_week", [text], week)
        for _ in range(STANDING):
            since, until = self.day(400, 30), ASKED_AT + timedelta(self.random.randint(30, 400))
            span = [since.date().isoformat(), until.date().isoformat()]
            self.fact(*self.fill(self.random.choice(self.wording.standing)), span, since)

    def contracts(self) -> None:
        for company in self.random.sample(self.wording.companies, 3):
            first = ASKED_AT - timedelta(days=self.random.randint(150, 200))
            steps = [
                (first + timedelta(days=30 * n + 5), text.format(c=company, v=values[m]))
                for m in range(2)
                for n, (text, values) in enumerate(self.wording.terms, len(self.wording.terms) * m)
            ]
            ids = [self.event(text, [company], at) for at, text in steps[:5]]
            self.tell("terms", company, *ids)
            window = steps[1][0] - timedelta(days=3), steps[3][0] + timedelta(days=3)
            day1, day2 = (f"{d.day} {d:%B %Y}" for d in window)
            self.ask(
                "changed",
                self.wording.changed,
                ids[1:4],
                about=("terms", company),
                c=company,
                day1=day1,
                day2=day2,
            )

    # Who is who.

    def acquaintances(self) -> None:
        people = self.random.sample(self._staff, 12)
        for n in range(0, 12, 3):
            a, friend, b = people[n : n + 3]
            others = [p for p in self._staff if p not in people]
            ids = [self.relate("knows", a, friend), self.relate("knows", friend, b)]
            self.relate("knows", a, others[n % len(others)])
            self.relate("knows", b, others[(n + 1) % len(others)])
            asks = [t.format(a=self.short(a), b=self.short(b)) for t in self.wording.through]
            self.ask("through_whom", asks, ids, about=("friend", a, b))

    def same_names(self) -> None:
        """Let two people share a first name, and two a whole name but not the job."""
        wording, random = self.wording, self.random
        first, job1, job2 = self._names.pop(0), *random.sample(wording.jobs, 2)
        one, other = (f"{first} {self._surnames.pop()}" for _ in range(2))
        for name in (one, other):
            self._know(name)
            found = self.relate("lives_in", name, random.choice(wording.cities))
            self.ask("same_name", wording.asks["home"], [found], about=("home", name), x=name)
        name = f"{self._names.pop(0)} {self._surnames.pop()}"
        self._entities[name] = {"name": name, "kind": "person"}
        for job in (job1, job2):
            said, city = f"{name} the {job}", random.choice(wording.cities)
            text = random.choice(wording.facts["lives_in"]).format(a=said, b=city)
            found = self.fact(text, (name, city))
            self.tell("home", said, found)
            self.ask("same_name", wording.asks["home"], [found], about=("home", said), x=said)

    def statements(self) -> None:
        """Let two sources contradict each other; both are asked for."""
        people = self.random.sample(self._staff, len(self.wording.contradictions))
        for (one, other, values, question), name in zip(
            self.wording.contradictions, people, strict=True
        ):
            ids = [
                self.fact(text.format(x=name, v=value), [name])
                for text, value in zip((one, other), values, strict=True)
            ]
            self.ask("contradicted", [question], ids, x=self.short(name))

    # What is told of others, and what for some wordings only.

    def newcomers(self) -> None:
        """Let those whose names are left have newer homes and work than all who are asked for."""
        while self._names:
            name = self.person()
            for kind, texts in self.wording.moves.items():
                wording = self.wording
                places = wording.cities if kind == "lives_in" else wording.projects
                place, since = self.random.choice(places), self.day(50, 15)
                relation = {"from": name, "kind": kind, "to": place}
                text = self.random.choice(texts).format(a=self.short(name), b=place)
                dated = {"valid_from": since.isoformat()}
                found = self.fact(text, (name, place), said=since, relations=[relation | dated])
                self.tell(STEPS[kind][0], name, found)

    def changing(self) -> None:
        """Let colleagues have newer facts than the two who are asked for, of the same kind."""
        for n, (texts, values, now, latest) in enumerate(self.wording.changing):
            a, b, *others = self.random.sample(self._staff, 5)
            told = [(a, (900, 600)), (a, (500, 300)), (a, (250, 200))]
            told += [(b, (800, 400)), (b, (190, 150)), *((name, (140, 15)) for name in others)]
            newest = {}
            for (name, days), value in zip(
                told, self.random.sample(values, len(told)), strict=True
            ):
                text, at = self.random.choice(texts), self.day(*days)
                dated = at.date().isoformat() if n % 2 else None
                text = text.format(a=self.short(name), v=value)
                newest[name] = self.fact(text, [name], dated, at, fact_type="world")
                self.tell(texts[0], name, newest[name])
            for kind, name, ways in (("now_whose", a, now), ("latest_whose", b, latest)):
                asks = [way.format(x=self.short(name)) for way in ways]
                self.ask(kind, asks, [newest[name]], about=(texts[0], name))

    def rivals(self) -> None:
        """Let the same befall several companies, each with causes or an outcome of its own."""
        wording = self.wording
        for trouble, noun, chains in wording.rivals:
            hit = self.random.sample(wording.companies, len(chains))
            for texts, company in zip(chains, hit, strict=True):
                ids = self._chain((*texts, trouble), c=company)
                said, about = noun.format(c=company), ("chain", ids[0])
                self.ask("cause_whose", wording.cause, ids[:-1], about=about, e=said)
                self.ask("root_whose", wording.root, ids[:1], about=about, e=said)
        for trouble, noun, chains in wording.aftermaths:
            hit = self.random.sample(wording.companies, len(chains))
            for texts, company in zip(chains, hit, strict=True):
                ids = self._chain((trouble, *texts), c=company)
                self.ask(
                    "consequence_whose",
                    wording.consequence,
                    ids[1:],
                    about=("chain", ids[0]),
                    e=noun.format(c=company),
                )

    def batches(self) -> None:
        """Let the same fail in several towns: parts with numbers, and one for a linked cause."""
        wording = self.wording
        for failure, questions, known, elsewhere in wording.batches:
            cities = self.random.sample(wording.cities, len(known) + 1)
            for text, city in zip(known, cities[1:], strict=True):
                code = self.code()
                failed = self.event(*self.fill(failure, code=code, city=city), self.day(90, 60))
                found = self.fact(*self.fill(text, code=code))
                self.tell(failure, city, failed, found)
                self.ask("shared_batch", questions, [found], about=(failure, city), city=city)
            self.tell(failure, cities[0], *self._chain(elsewhere, city=cities[0]))

    def hub(self, count: int) -> None:
        for text, question in self.wording.attributes:
            found = self.fact(*self.fill(text))
            self.ask("hub", [question], [found], hub=self.wording.hub)
        for _ in range(count):
            self.fact(*self.fill(self.random.choice(self.wording.noise)))
