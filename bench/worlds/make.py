"""Make a world for worlds.py: facts as retain() takes them, and questions with answers.

generate() is all that others use. A world is a company with its hierarchy, families, homes and
machines, chains of causes, decisions, moves, events of last week among standing facts, and notes
about the company itself, a hub. Everything follows from the seed. Facts come in random order, so
that neither ids nor the order of loading tell which is the newest; `source_id` is the judge's id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

from bench.worlds.build import ASKED_AT, Builder, Question
from bench.worlds.held import HELD
from bench.worlds.third import THIRD
from bench.worlds.wording import DEV

TEMPLATES = {"dev": DEV, "held": HELD, "third": THIRD}
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


def generate(
    seed: int, templates: str = "dev", hub: int = HUB
) -> tuple[list[dict[str, Any]], list[Question]]:
    """Make a world.

    Args:
        seed: Equal seeds give equal worlds.
        templates: Key of TEMPLATES.
        hub: How many facts of noise about the company.

    """
    world = _World(Random(f"{templates} {seed}"), TEMPLATES[templates])
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
    world.hub(hub)
    return world.finished(), world.questions


class _World(Builder):
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
                        asked.add((start, path))
                        self.ask(kind, self._worded(start, path), [answer])
                        break

    def _follow(self, start: str, path: Sequence[str]) -> str | None:
        """Return the fact at the end of a path; None where it breaks off or comes back."""
        seen, source_id = [start], None
        for step in path:
            end, source_id = self._graph.get((step, seen[-1]), ("", ""))
            if not end or end in seen:
                return None
            seen.append(end)
        return source_id

    def _worded(self, start: str, path: Sequence[str]) -> list[str]:
        """Word the question for a path, in one way or in several."""
        if path == ("team", "lead") and self.random.random() < 0.4:
            return [ask.format(x=self.short(start)) for ask in self.wording.asks["team lead"]]
        phrase, place = self.short(start), start
        for step in path[:-1]:
            phrase, place = self._phrase(step, phrase, place), self._graph[step, place][0]
        asks = [ask.format(x=phrase) for ask in self.wording.asks[path[-1]]]
        last = self._graph[path[-1], place][0]
        if self._entities[last]["kind"] == "person":
            said = self._phrase(path[-1], phrase, place)
            asks += [who.format(p=said) for who in self.wording.who]
        return asks

    def _phrase(self, step: str, phrase: str, place: str) -> str:
        end = self._graph[step, place][0]
        sexed = f"{step}.{'f' if end in self._female else 'm'}"
        phrases = self.wording.phrases.get(sexed) or self.wording.phrases[step]
        return self.random.choice(phrases).format(x=phrase)

    # Causes, and what shares a rare entity.

    def causes(self) -> None:
        for story in self.random.sample(self.wording.stories, 5):
            at, ids = self.day(400, 120), list[str]()
            links = []
            for text, _ in story:
                ids.append(self.event(*self.fill(text), at))
                at += timedelta(days=self.random.randint(1, 9))
            for cause, effect in pairwise(ids):
                if self.random.random() < 0.6:
                    links.append((effect, "caused_by", cause))
                else:
                    links.append((cause, self.random.choice(("causes", "enables")), effect))
            self._link(links)
            said = [noun for _, noun in story]
            wording = self.wording
            self.ask("cause", [t.format(e=said[3]) for t in wording.cause], [ids[1]], [ids[2]])
            self.ask("root_cause", [t.format(e=said[3]) for t in wording.root], [ids[0]])
            self.ask("consequence", [t.format(e=said[0]) for t in wording.consequence], ids[1:])
        for preventer, danger, noun in self.wording.prevented:
            at = self.day(400, 120)
            first = self.event(*self.fill(preventer), at)
            second = self.event(*self.fill(danger), at + timedelta(days=1))
            self._link([(first, "prevents", second)])
            self.ask("prevented", [t.format(e=noun) for t in self.wording.prevention], [first])

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
            self.ask("shared_entity", [question.format(city=city)], [found])
        for fault, texts in wording.affected:
            code, hit = self.code(), random.sample(wording.companies, len(texts))
            ids = [
                self.event(*self.fill(text, code=code, c=company), self.day(90, 60))
                for text, company in zip(texts, hit, strict=True)
            ]
            self.ask("affected", [t.format(e=fault, c=hit[0]) for t in wording.others], ids[1:])
        things = random.sample(wording.things, len(wording.breakdowns))
        cities = random.sample(wording.cities, len(wording.breakdowns))
        for (text, question), thing, city in zip(wording.breakdowns, things, cities, strict=True):
            self.event(*self.fill(text, thing=thing, city=city), self.day(90, 20))
            owns = self._graph["owner", thing][1]
            self.ask("owner_of_broken", [question.format(city=city)], [owns])

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
            self.ask("latest", [t.format(t=topic) for t in self.wording.latest], [newest])
        for month in self.random.sample(sorted(by_month), 4):
            texts = [t.format(month=month) for t in self.wording.month]
            self.ask("in_month", texts, by_month[month])

    def moves(self) -> None:
        """Let people move twice: people of whom nothing else is known."""
        random, wording = self.random, self.wording
        for n, (kind, texts) in enumerate([*wording.moves.items()] * 2):
            name = f"{self._names.pop(0)} {self._surnames.pop()}"
            self._entities[name] = {"name": name, "kind": "person", "aliases": [name.split()[0]]}
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
            for asked, ways, relevant in (
                ("now", wording.now, ids[2:]),
                ("still", wording.still, ids[2:]),
                ("used_to", wording.past, ids[:2]),
                ("first", wording.first, ids[:1]),
                ("no_longer", wording.no_longer, ids[:2]),
            ):
                said = {"x": self.short(name), "old": chosen[1]}
                self.ask(asked, [way.format(**said) for way in ways[kind]], relevant)

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
            window = steps[1][0] - timedelta(days=3), steps[3][0] + timedelta(days=3)
            day1, day2 = (f"{d.day} {d:%B %Y}" for d in window)
            asks = [t.format(c=company, day1=day1, day2=day2) for t in self.wording.changed]
            self.ask("changed", asks, ids[1:4])

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
            self.ask("through_whom", asks, ids)

    def same_names(self) -> None:
        """Let two people share a first name, and two a whole name but not the job."""
        wording, random = self.wording, self.random
        first, job1, job2 = self._names.pop(0), *random.sample(wording.jobs, 2)
        one, other = (f"{first} {self._surnames.pop()}" for _ in range(2))
        for name in (one, other):
            self._entities[name] = {"name": name, "kind": "person", "aliases": [first]}
            found = self.relate("lives_in", name, random.choice(wording.cities))
            asks = [t.format(x=name) for t in wording.asks["home"]]
            self.ask("same_name", asks, [found])
        name = f"{self._names.pop(0)} {self._surnames.pop()}"
        self._entities[name] = {"name": name, "kind": "person"}
        for job in (job1, job2):
            said, city = f"{name} the {job}", random.choice(wording.cities)
            text = random.choice(wording.facts["lives_in"]).format(a=said, b=city)
            found = self.fact(text, (name, city))
            self.ask("same_name", [t.format(x=said) for t in wording.asks["home"]], [found])

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
            self.ask("contradicted", [question.format(x=self.short(name))], ids)

    def hub(self, count: int) -> None:
        for text, question in self.wording.attributes:
            found = self.fact(*self.fill(text))
            self.ask("hub", [question.format(hub=self.wording.hub)], [found])
        for _ in range(count):
            self.fact(*self.fill(self.random.choice(self.wording.noise)))
