"""The pages of the console: their queries and their templates.

A view takes a request and returns a page, a file, a redirect or a value for JSON. Nothing here
depends on HTTP. SQL decides; each page makes one or a few calls.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, timedelta, timezone
from itertools import accumulate
from typing import Any
from urllib.parse import urlencode

from pgrecall import evaluation
from pgrecall.asking.recall_options import RecallOptions
from pgrecall.calls import browsing
from pgrecall.calls import operations as calls
from pgrecall.client import Recall
from pgrecall.connection.tracing import Trace
from pgrecall.console import explain, html
from pgrecall.doctor.checks import examine_connected
from pgrecall.errors import EntityNotFound, InstallError, InvalidArgument
from pgrecall.evaluation import Judged
from pgrecall.report import RecallReport
from pgrecall.rows import GraphEdge, Hit, MemoryCount, Period

ON_A_PAGE = 50
UNITS = ("day", "week", "month", "quarter", "year")
BASES = ("occurred", "said", "stored")
MOST_QUESTIONS = 100
COMPARED = 5
ANSWERED = 10
TUNING_SECONDS = 60.0


class ReadOnlyError(Exception):
    """A form would write, but the console is read-only."""


@dataclass(frozen=True, slots=True)
class Page:
    """A template and its values."""

    template: str
    values: Mapping[str, object]
    status: int = 200


@dataclass(frozen=True, slots=True)
class File:
    """A file to download."""

    name: str
    content: str
    kind: str


@dataclass(frozen=True, slots=True)
class Moved:
    """A redirect to another page after a form."""

    place: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A request.

    Attributes:
        memory: The client.
        is_writable: Whether the console may write.
        given: Query parameters, by name.
        form: Fields of the form, by name.

    """

    memory: Recall
    is_writable: bool
    given: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """Return a text; None if it is empty or missing."""
        return (self.form.get(name) or self.given.get(name) or "").strip() or None

    def needed(self, name: str) -> str:
        """Return a text that is required."""
        found = self.text(name)
        if found is None:
            raise InvalidArgument(f"{name} is missing", hint="Open this page by a link.")
        return found

    @property
    def id(self) -> int:
        """The key of the fact or entity that the page is about; 0 if it is missing."""
        return self.whole("id") or 0

    @property
    def bank(self) -> str:
        """The bank that the page is about."""
        # Not stripped, since names of banks may have spaces.
        found = self.form.get("bank") or self.given.get("bank")
        if not found:
            raise InvalidArgument("no bank is selected", hint="Choose a bank on the first page.")
        return found

    def whole(self, name: str) -> int | None:
        """Return an integer; None if it is missing."""
        found = self.text(name)
        if found is None:
            return None
        try:
            number = int(found)
        except ValueError as error:
            raise InvalidArgument(
                f'{name} must be a whole number, not "{found[:80]}"', hint=f"Such as {name}=1."
            ) from error
        if abs(number) >= 2**63:
            raise InvalidArgument(f"{name} is out of range", hint="Ids have at most 19 digits.")
        return number

    def moment(self, name: str) -> datetime | None:
        """Return a time, or the start of a day; in UTC unless a zone is given."""
        found = self.text(name)
        if found is None:
            return None
        try:
            read = datetime.fromisoformat(found.replace("Z", "+00:00"))
        except ValueError as error:
            raise InvalidArgument(
                f'{name} must be a day, not "{found[:80]}"', hint="Such as 2026-03-05."
            ) from error
        if not 1 < read.year < 9999:  # its day may begin or end in another year elsewhere
            raise InvalidArgument(
                f"{name} must be a day of the years 2 to 9998, not of {read.year}",
                hint="Leave it empty for an open side.",
            )
        return read if read.tzinfo else read.replace(tzinfo=timezone.utc)

    def end_of(self, name: str) -> datetime | None:
        """Return a time, or the end of a day."""
        found = self.moment(name)
        if found is not None and found.hour == found.minute == 0:
            found += timedelta(days=1)
        return found

    def during(self) -> Period | None:
        """Return the period from since to the end of until."""
        since, until = self.moment("since"), self.end_of("until")
        return None if since is None and until is None else (since, until)

    def choice(self, name: str, among: Sequence[str]) -> str:
        """Return one of several values; the first if it is missing."""
        found = self.text(name) or among[0]
        if found not in among:
            raise InvalidArgument(
                f'{name} must be one of {", ".join(among)}, not "{found[:80]}"',
                hint=f"Such as {among[0]}.",
            )
        return found

    def write(self) -> Recall:
        """Return the client for writing.

        Raises:
            ReadOnlyError: the console is read-only.

        """
        if not self.is_writable:
            raise ReadOnlyError("This console is read-only")
        return self.memory


def banks(asked: Asked) -> Page:
    """Show the banks."""
    role, database = asked.memory._run(browsing.role())
    found = asked.memory.banks()
    return Page("banks.html", {"banks": found, "role": role, "database": database})


def bank(asked: Asked) -> Page:
    """Show an overview of a bank."""
    memory, name = asked.memory, asked.bank
    statistics = memory.bank_statistics(name)
    unit = asked.choice("unit", ("month", *UNITS))
    counts = memory.memory_counts(name, unit=unit, basis="said")
    options = memory.bank_options(name)
    found = next((one for one in memory.banks() if one.bank_id == name), None)
    types: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for count in counts:
        types[count.fact_type][0] += count.memories
        types[count.fact_type][1] += count.current_memories
    return Page(
        "bank.html",
        {
            "about": found,
            "types": dict(sorted(types.items())),
            "unit": unit,
            "units": UNITS,
            "plot": _plot(counts, is_sum=True),
            "statistics": statistics,
            "pending": memory.pending_links(name),
            "alike": memory.vocabulary_drift(name),
            "settings": explain.changed(memory.recall_options(), options),
            "reembedding": memory.reembed_status(name),
            "entities": memory.list_entities(name, top_k=8),
            "latest": memory.list_memories(name, top_k=5),
        },
    )


def facts(asked: Asked) -> Page:
    """List facts, and search them while the user types."""
    # Not stripped, since a space at the end completes the last word.
    words = asked.given.get("words", "").lstrip()
    kind = asked.text("type")
    state = asked.choice("state", ("current", "all"))
    kept: dict[str, Any] = {
        "filter": asked.text("filter"),
        "entity": asked.text("entity"),
        "during": asked.during(),
        "fact_types": [kind] if kind else None,
        "is_ended_too": state == "all",
        "before_id": asked.whole("before"),
        "top_k": ON_A_PAGE + 1,
    }
    if words:
        found = asked.memory.find_memories(asked.bank, words, **kept)
    else:
        found = asked.memory.list_memories(asked.bank, **kept)
    return Page(
        "facts.html",
        {
            "facts": found[:ON_A_PAGE],
            "next": found[ON_A_PAGE - 1].memory_id if len(found) > ON_A_PAGE else None,
            "words": words,
            "types": asked.memory._run(browsing.fact_types(asked.bank)),
            "state": state,
            "now": datetime.now(timezone.utc),
        },
    )


def fact(asked: Asked) -> Page:
    """Show one fact with everything that refers to it."""
    memory, name = asked.memory, asked.bank
    found = memory.get(name, asked.id)
    return Page(
        "fact.html",
        {
            "fact": found,
            "details": memory.memory_details(name, asked.id),
            "history": memory.history(name, asked.id),
            "neighbours": memory.neighbours(name, asked.id, top_k=30),
            "now": datetime.now(timezone.utc),
        },
    )


def entities(asked: Asked) -> Page:
    """List entities, and pairs that may be duplicates."""
    name, before = asked.text("name"), asked.whole("before")
    found = asked.memory.list_entities(
        asked.bank,
        name=name,
        kind=asked.text("kind"),
        before_id=before,
        top_k=ON_A_PAGE + 1,
    )
    is_first = name is None and before is None
    return Page(
        "entities.html",
        {
            "entities": found[:ON_A_PAGE],
            "next": found[ON_A_PAGE - 1].entity_id if len(found) > ON_A_PAGE else None,
            "duplicates": (
                asked.memory.duplicate_entities(asked.bank, top_k=20) if is_first else []
            ),
        },
    )


def entity(asked: Asked) -> Page:
    """Show one entity."""
    found = asked.memory.list_entities(asked.bank, entity_ids=[asked.id])
    if not found:
        raise EntityNotFound(
            f'bank "{asked.bank}" has no entity {asked.id}', hint="It may have been merged."
        )
    edges = asked.memory.neighbourhood(asked.bank, entity_id=asked.id)
    mentioning = [edge for edge in edges if edge.from_kind == "memory"]
    return Page(
        "entity.html",
        {
            "entity": found[0],
            "relations": [edge for edge in edges if edge.from_kind == "entity"],
            "mentions": sorted(mentioning, key=lambda edge: -edge.from_id),
        },
    )


def graph(asked: Asked) -> Page:
    """Show the graph around an entity or a fact; by default, the entity with most facts."""
    begin = _begin(asked)
    edges = _edges(asked, begin)
    nodes = _nodes(edges)
    # The slider covers the time from the first fact to the last.
    times = _times(asked.memory.memory_counts(asked.bank, basis="said"))
    return Page(
        "graph.html",
        {
            "edges": edges,
            "begin": begin,
            "around": nodes.get(begin) if begin else None,
            "hops": asked.choice("hops", ("1", "2", "3")),
            "first": times[0].date() if times else date.today(),
            "today": datetime.now(timezone.utc).date(),
        },
    )


def graph_elements(asked: Asked) -> object:
    """Return the graph for Cytoscape.js; keys are text, since JavaScript rounds large numbers."""
    begin = _begin(asked)
    edges = _edges(asked, begin)
    return {
        "nodes": [
            {
                "data": {
                    **asdict(node),
                    "key": str(key),
                    "id": f"{kind}-{key}",
                    "is_begin": (kind, key) == begin,
                }
            }
            for (kind, key), node in _nodes(edges).items()
        ],
        "edges": [
            {
                "data": {
                    "id": f"{source} {edge.kind} {target}",
                    "source": source,
                    "target": target,
                    "kind": edge.kind,
                    "weight": edge.weight,
                }
            }
            for edge in edges
            for source in [f"{edge.from_kind}-{edge.from_id}"]
            for target in [f"{edge.to_kind}-{edge.to_id}"]
        ],
    }


@dataclass(slots=True)
class Node:
    """An entity or a fact of a graph.

    Attributes:
        kind: "entity" or "memory".
        key: Its key.
        name: Its name, or the beginning of its text.
        rarity: Rarity of an entity, 0 to 1.
        more: Minimum number of facts that mention an entity and are not in the graph.

    """

    kind: str
    key: int
    name: str
    rarity: float
    more: int


def _nodes(edges: Sequence[GraphEdge]) -> dict[tuple[str, int], Node]:
    nodes: dict[tuple[str, int], Node] = {}
    for edge in edges:
        for kind, key, name, mentions, rarity in (
            (edge.from_kind, edge.from_id, edge.from_name, edge.from_mentions, edge.from_rarity),
            (edge.to_kind, edge.to_id, edge.to_name, edge.to_mentions, edge.to_rarity),
        ):
            nodes.setdefault((kind, key), Node(kind, key, name, rarity or 0.0, mentions or 0))
        if edge.kind == "mentions" and edge.to_kind == "entity":
            node = nodes[edge.to_kind, edge.to_id]
            node.more = max(0, node.more - 1)
    return nodes


def _begin(asked: Asked) -> tuple[str, int] | None:
    """Return the node at which the graph begins."""
    for kind in ("entity", "memory"):
        key = asked.whole(kind)
        if key is not None:
            return kind, key
    if name := asked.text("name"):
        named = asked.memory.list_entities(asked.bank, name=name, top_k=1)
        if not named:
            raise EntityNotFound(
                f'no entity has a name with "{name}" in it', hint="The page Entities lists them."
            )
        return "entity", named[0].entity_id
    largest = asked.memory.list_entities(asked.bank, top_k=1)
    return ("entity", largest[0].entity_id) if largest else None


def _edges(asked: Asked, begin: tuple[str, int] | None) -> list[GraphEdge]:
    if begin is None:
        return []
    kind, key = begin
    return asked.memory.neighbourhood(
        asked.bank,
        entity_id=key if kind == "entity" else None,
        memory_id=key if kind == "memory" else None,
        hops=int(asked.choice("hops", ("1", "2", "3"))),
        as_of=asked.end_of("as_of"),
        top_k=200,
    )


def timeline(asked: Asked) -> Page:
    """Show events on a timeline."""
    unit = asked.choice("unit", ("month", *UNITS))
    basis = asked.choice("basis", BASES)
    entity = asked.text("entity")
    condition = asked.text("filter")
    if entity:
        named = "entity = '{}'".format(entity.replace("'", "''"))
        condition = f"({condition}) and {named}" if condition else named
    counts = asked.memory.memory_counts(asked.bank, unit=unit, basis=basis, filter=condition)
    during = asked.during()
    if during is None and (times := _times(counts)):
        during = (times[-1], None)
    found = asked.memory.list_memories(
        asked.bank, filter=condition, during=during, is_ended_too=True, top_k=200
    )
    return Page(
        "timeline.html",
        {
            "plot": _plot(counts),
            "unit": unit,
            "units": UNITS,
            "basis": basis,
            "bases": BASES,
            "during": during,
            "facts": sorted(found, key=lambda one: _time_of(one.occurred, one.mentioned_at)),
            "now": datetime.now(timezone.utc),
        },
    )


def ask(asked: Asked) -> Page:
    """Ask a question and explain the answer."""
    question = asked.text("question")
    bank_weights = _weights(asked.memory, asked.bank)
    values: dict[str, object] = {
        "question": question or "",
        "weights": {
            name: (_weight(asked, name, weight), weight) for name, weight in bank_weights.items()
        },
        "top_k": asked.whole("top_k") or 10,
        "shown": None,
        "types": asked.memory._run(browsing.fact_types(asked.bank)),
    }
    if question:
        report, told = _explained(asked, question)
        values["shown"] = html.shown(report, told)
    return Page("ask.html", values)


def ask_file(asked: Asked) -> File:
    """Return the answer as a self-contained page that can be sent to others."""
    question = asked.needed("question")
    report, told = _explained(asked, question)
    return File("answer.html", html.page(asked.bank, question, report, told), "text/html")


def _explained(asked: Asked, question: str) -> tuple[RecallReport, html.Told]:
    memory, name = asked.memory, asked.bank
    given = _recall_options(asked)
    report = memory.recall_report(name, question, **given)
    steps = {}
    why = asked.whole("why")
    if why is not None:
        steps[why] = memory.why_not(name, question, why, **given)
    embedder = memory._settings.embedder
    model = embedder.model if embedder else None
    return report, explain.gathered(memory, name, question, given, report, steps, model)


def _recall_options(asked: Asked) -> RecallOptions:
    given: RecallOptions = {"explain": True}
    weights = {
        name: weight
        for name, default in _weights(asked.memory, asked.bank).items()
        if (weight := _weight(asked, name, default)) != default
    }
    if weights:
        given["weights"] = weights
    if top_k := asked.whole("top_k"):
        given["top_k"] = top_k
    if condition := asked.text("filter"):
        given["filter"] = condition
    if as_of := asked.moment("as_of"):
        given["as_of"] = as_of
    if moment := asked.moment("asked_at"):
        given["reference_time"] = moment
    if asked.text("no_rerank"):
        given["rerank"] = False
    return given


def _weights(memory: Recall, bank: str) -> dict[str, float]:
    """Return the weight of each arm in a bank."""
    own = memory.bank_options(bank).get("weights")
    own = own if isinstance(own, Mapping) else {}
    return {arm.arm: float(own.get(arm.arm, arm.weight)) for arm in memory.arms()}


def _weight(asked: Asked, arm: str, default: float) -> float:
    found = asked.text(f"weight-{arm}")
    try:
        return default if found is None else float(found)
    except ValueError as error:
        raise InvalidArgument(
            f'weight of {arm} must be a number, not "{found}"', hint="0 to 10, for example."
        ) from error


def compare(asked: Asked) -> Page:
    """Show the form that compares two settings."""
    return _comparison(asked, questions="", a="{}", b="")


def compared(asked: Asked) -> Page:
    """Ask questions with two settings and show where the answers differ; tune on request."""
    lines = [line for line in (asked.text("questions") or "").splitlines() if line.strip()]
    if not lines or len(lines) > MOST_QUESTIONS:
        raise InvalidArgument(
            f"{len(lines)} questions", hint=f"Write 1 to {MOST_QUESTIONS}, one per line."
        )
    memory, questions = asked.memory, [_question_of(line) for line in lines]
    judged = [n for n, question in enumerate(questions) if question.relevant]
    a, b = asked.text("a") or "{}", asked.text("b") or "{}"
    tuning = None
    if asked.text("do") == "tune":
        known = [questions[n] for n in judged]
        tuning = evaluation.tune(
            memory, asked.bank, known, folds=max(2, min(5, len(known))), budget=TUNING_SECONDS
        )
        b = json.dumps(tuning.settings)
    sides = [
        [_answer(asked, question, given) for question in questions]
        for given in (_settings_of("A", a), _settings_of("B", b))
    ]
    rows: list[dict[str, object]] = []
    sums = {"same": 0, "first": 0, "better": 0, "worse": 0}
    for question, *found in zip(questions, *sides, strict=True):
        ids = [[hit.memory_id for hit in hits] for hits in found]
        places = [_first_place(hits, question) for hits in found] if question.relevant else None
        sums["same"] += ids[0][:COMPARED] == ids[1][:COMPARED]
        sums["first"] += ids[0][:1] == ids[1][:1]
        if places:
            sums["better"] += places[1] < places[0]
            sums["worse"] += places[1] > places[0]
        rows.append(
            {
                "question": question.question,
                "places": [place if place <= ANSWERED else None for place in places or ()],
                "sides": [
                    [(hit, _moved(hit, other)) for hit in hits[:COMPARED]]
                    for hits, other in ((found[0], ids[1]), (found[1], ids[0]))
                ],
            }
        )
    given: dict[str, object] = {
        "questions": "\n".join(lines),
        "a": a,
        "b": b,
        "rows": rows,
        "sums": sums,
    }
    if judged:
        answers = [[side[n] for n in judged] for side in sides]
        known = [questions[n] for n in judged]
        try:
            given["measured"] = evaluation.compare(memory, asked.bank, known, *answers)
        except InstallError as error:
            given["unmeasured"] = error
    return _comparison(asked, **given, judged=len(judged), tuning=tuning)


def _comparison(asked: Asked, **values: object) -> Page:
    shown: dict[str, object] = dict.fromkeys(("rows", "sums", "measured", "unmeasured", "tuning"))
    return Page("compare.html", {**shown, "judged": 0, "bank": asked.bank, **values})


def _answer(asked: Asked, question: Judged, given: Mapping[str, Any]) -> list[Hit]:
    said = {"reference_time": question.asked_at} if question.asked_at else {}
    return list(
        asked.memory.recall(asked.bank, question.question, **{"top_k": ANSWERED, **said, **given})
    )


def _settings_of(side: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(
            f"settings {side} are not JSON: {error}", hint='Such as {"diversity": 0.3}.'
        ) from error
    if not isinstance(found, dict) or found.keys() & {"self", "bank", "query"}:
        raise InvalidArgument(
            f"settings {side} are not options of a recall", hint='Such as {"diversity": 0.3}.'
        )
    return found


def _question_of(line: str) -> Judged:
    """Parse a question, as plain text or as a JSON line of pgrecall eval."""
    if not line.lstrip().startswith("{"):
        return Judged(line.strip(), {})
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(
            f'"{line[:80]}" is not a question',
            hint='Write text or JSON: {"question": "Who leads Atlas?", "relevant": ["key"]}.',
        ) from error
    [judged] = evaluation.judged_questions([found])
    return judged


def _first_place(hits: Sequence[Hit], question: Judged) -> int:
    for hit in hits:
        if {hit.fact_key, hit.source_id, str(hit.memory_id)} & set(question.relevant):
            return hit.rank
    return 1000


def _moved(hit: Hit, other: Sequence[int]) -> int | None:
    """Return the place of a hit in the other answer; None if it is not there."""
    return other.index(hit.memory_id) + 1 if hit.memory_id in other else None


def operations(asked: Asked) -> Page:
    """Show what a DBA watches; slow parts come by requests of their own."""
    memory = asked.memory
    found = memory.banks()
    pending = []
    for one in found[:ON_A_PAGE]:
        statistics = memory.bank_statistics(one.bank_id)
        waiting = sum(s.waiting for s in statistics)
        unweighed = [s.kind for s in statistics if not s.is_weighed]
        pending.append((one.bank_id, waiting, unweighed, memory.pending_links(one.bank_id)))
    return Page(
        "operations.html",
        {
            "plan": memory.index_plan(),
            "pending": pending,
            "times": memory.recall_stats(),
            "builds": memory._run(calls.index_builds()),
            "slow": memory._run(calls.slow_recalls(top_k=10)),
            "sizes": memory._run(calls.relation_sizes(top_k=12)),
            "standbys": memory._run(calls.standbys()),
        },
    )


def health(asked: Asked) -> Page:
    """Show the findings of the doctor."""
    with asked.memory._connection(Trace()) as connection:
        return Page("doctor.html", {"findings": examine_connected(connection)})


def end(asked: Asked) -> Moved:
    """End a fact, and optionally name the one that replaces it."""
    asked.write().supersede(asked.bank, asked.id, superseded_by=asked.whole("superseded_by"))
    return _fact_page(asked)


def undo(asked: Asked) -> Moved:
    """Undo the last correction of a fact."""
    asked.write().unsupersede(asked.bank, asked.id)
    return _fact_page(asked)


def merge(asked: Asked) -> Moved:
    """Merge an entity into another."""
    other = asked.whole("other")
    asked.write().merge_entities(asked.bank, asked.id, [other] if other else [])
    return _entity_page(asked, asked.id)


def split(asked: Asked) -> Moved:
    """Move the selected facts from an entity to a new one."""
    chosen = [
        int(name[2:]) for name in asked.form if name.startswith("m-") and name[2:].isdecimal()
    ]
    new = asked.write().split_entity(asked.bank, asked.id, chosen, asked.needed("name"))
    return _entity_page(asked, new)


def rename(asked: Asked) -> Moved:
    """Rename an entity."""
    asked.write().rename_entity(asked.bank, asked.id, asked.needed("name"))
    return _entity_page(asked, asked.id)


def _fact_page(asked: Asked) -> Moved:
    return Moved(f"/fact?{_query(bank=asked.bank, id=asked.id)}")


def _entity_page(asked: Asked, entity_id: int) -> Moved:
    return Moved(f"/entity?{_query(bank=asked.bank, id=entity_id)}")


def _query(**values: object) -> str:
    return urlencode(values)


def _time_of(occurred: Period | None, said: datetime | None) -> datetime:
    start, finish = occurred or (None, None)
    return start or finish or said or datetime.min.replace(tzinfo=timezone.utc)


def _times(counts: Sequence[MemoryCount]) -> list[datetime]:
    """Return the times that a page can show; a fact may be of the year 20000."""
    return sorted({count.starts_at for count in counts if count.starts_at is not None})


def _plot(counts: Sequence[MemoryCount], *, is_sum: bool = False) -> dict[str, object]:
    """Convert counts for plot.js: times, and a series for each type."""
    times = _times(counts)
    kinds = sorted({count.fact_type for count in counts})
    by_kind: dict[str, dict[datetime, int]] = defaultdict(dict)
    for count in counts:
        by_kind[count.fact_type][count.starts_at] = count.memories
    series = []
    for kind in kinds:
        values = [by_kind[kind].get(time, 0) for time in times]
        if is_sum:
            values = list(accumulate(values))
        series.append({"name": kind, "values": values})
    return {"times": [time.timestamp() for time in times], "series": series, "is_sum": is_sum}


PAGES: Mapping[str, Callable[[Asked], object]] = {
    "/": banks,
    "/bank": bank,
    "/facts": facts,
    "/fact": fact,
    "/entities": entities,
    "/entity": entity,
    "/graph": graph,
    "/graph.json": graph_elements,
    "/timeline": timeline,
    "/ask": ask,
    "/answer.html": ask_file,
    "/compare": compare,
    "/operations": operations,
    "/doctor": health,
}
FORMS: Mapping[str, Callable[[Asked], object]] = {
    "/compare": compared,
    "/fact/end": end,
    "/fact/undo": undo,
    "/entity/merge": merge,
    "/entity/split": split,
    "/entity/rename": rename,
}
