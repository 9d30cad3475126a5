"""Make a world for worlds.py: facts as retain() takes them, and questions with answers.

generate() is all that others use. A world is a company with its hierarchy, families, homes and
machines, chains of causes, decisions, moves, events of last week among standing facts, and notes
about the company itself, a hub. Everything follows from the seed. Facts come in random order, so
that neither ids nor the order of loading tell which is the newest; `source_id` is the judge's id.

The templates "fourth" have a wording for more: newer facts of the same kind about others, the same
trouble of several companies, each with causes or an outcome of its own, and the same failure in
several towns, of parts with numbers of their own, and in one town for a cause that is linked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

from bench.worlds.build import ASKED_AT, STEPS, Builder, Question
from bench.worlds.fourth import FOURTH
from bench.worlds.held import HELD
from bench.worlds.third import THIRD
from bench.worlds.wording import DEV

TEMPLATES = {"dev": DEV, "held": HELD, "third": THIRD, "fourth": FOURTH}
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
    world.newcomers()
    world.changing()
    world.rivals()
    world.batches()
    world.hub(hub)
    return world.finished(), world.questions


def _is_clause(phrase: str, place: str) -> bool:
    """Tell a description, such as "whoever X serves", from a name and from "X's boss"."""
    return not place.startswith(phrase) and phrase.startswith(("the ", "who", "what"))


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
            asks = [t.format(e=said[3]) for t in wording.cause]
            self.ask("cause", asks, [ids[1]], [ids[2]], about)
            asks = [t.format(e=said[3]) for t in wording.root]
            self.ask("root_cause", asks, [ids[0]], about=about)
            asks = [t.format(e=said[0]) for t in wording.consequence]
            self.ask("consequence", asks, ids[1:], about=about)
        for preventer, danger, noun in self.wording.prevented:
            at = self.day(400, 120)
            first = self.event(*self.fill(preventer), at)
            second = self.event(*self.fill(danger), at + timedelta(days=1))
            self._link([(first, "prevents", second)])
            self.tell("prevented", noun, first, second)
            asks = [t.format(e=noun) for t in self.wording.prevention]
            self.ask("prevented", asks, [first], about=("prevented", noun))

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
            asks = [question.format(city=city)]
            self.ask("shared_entity", asks, [found], about=("failure", failure))
        for fault, texts in wording.affected:
            code, hit = self.code(), random.sample(wording.companies, len(texts))
            ids = [
                self.event(*self.fill(text, code=code, c=company), self.day(90, 60))
                for text, company in zip(texts, hit, strict=True)
            ]
            self.tell("affected", fault, *ids)
            asks = [t.format(e=fault, c=hit[0]) for t in wording.others]
            self.ask("affected", asks, ids[1:], about=("affected", fault))
        things = random.sample(wording.things, len(wording.breakdowns))
        cities = random.sample(wording.cities, len(wording.breakdowns))
        for (text, question), thing, city in zip(wording.breakdowns, things, cities, strict=True):
            self.event(*self.fill(text, thing=thing, city=city), self.day(90, 20))
            owns = self._graph["owner", thing][1]
            asks = [question.format(city=city)]
            self.ask("owner_of_broken", asks, [owns], about=("owner", thing))

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
            asks = [t.format(t=topic) for t in self.wording.latest]
            self.ask("latest", asks, [newest], about=("decided", topic))
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
            self.tell(STEPS[kind][0], name, *ids)
            for asked, ways, relevant in (
                ("now", wording.now, ids[2:]),
                ("still", wording.still, ids[2:]),
                ("used_to", wording.past, ids[:2]),
                ("first", wording.first, ids[:1]),
                ("no_longer", wording.no_longer, ids[:2]),
            ):
                said = {"x": self.short(name), "old": chosen[1]}
                asks = [way.format(**said) for way in ways[kind]]
                self.ask(asked, asks, relevant, about=(STEPS[kind][0], name))

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
            asks = [t.format(c=company, day1=day1, day2=day2) for t in self.wording.changed]
            self.ask("changed", asks, ids[1:4], about=("terms", company))

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
            self._entities[name] = {"name": name, "kind": "person", "aliases": [first]}
            found = self.relate("lives_in", name, random.choice(wording.cities))
            asks = [t.format(x=name) for t in wording.asks["home"]]
            self.ask("same_name", asks, [found], about=("home", name))
        name = f"{self._names.pop(0)} {self._surnames.pop()}"
        self._entities[name] = {"name": name, "kind": "person"}
        for job in (job1, job2):
            said, city = f"{name} the {job}", random.choice(wording.cities)
            text = random.choice(wording.facts["lives_in"]).format(a=said, b=city)
            found = self.fact(text, (name, city))
            self.tell("home", said, found)
            asks = [t.format(x=said) for t in wording.asks["home"]]
            self.ask("same_name", asks, [found], about=("home", said))

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
                asks = [t.format(e=said) for t in wording.cause]
                self.ask("cause_whose", asks, ids[:-1], about=about)
                asks = [t.format(e=said) for t in wording.root]
                self.ask("root_whose", asks, ids[:1], about=about)
        for trouble, noun, chains in wording.aftermaths:
            hit = self.random.sample(wording.companies, len(chains))
            for texts, company in zip(chains, hit, strict=True):
                ids = self._chain((trouble, *texts), c=company)
                asks = [t.format(e=noun.format(c=company)) for t in wording.consequence]
                self.ask("consequence_whose", asks, ids[1:], about=("chain", ids[0]))

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
                asks = [question.format(city=city) for question in questions]
                self.ask("shared_batch", asks, [found], about=(failure, city))
            self.tell(failure, cities[0], *self._chain(elsewhere, city=cities[0]))

    def hub(self, count: int) -> None:
        for text, question in self.wording.attributes:
            found = self.fact(*self.fill(text))
            self.ask("hub", [question.format(hub=self.wording.hub)], [found])
        for _ in range(count):
            self.fact(*self.fill(self.random.choice(self.wording.noise)))
