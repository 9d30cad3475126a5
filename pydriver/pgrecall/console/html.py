"""What ``pgrecall recall --html`` and the console's page Ask show of an answer.

This module fills the template. The page has no scripts or external resources. Its colours are Okabe
and Ito's, which people with any colour vision can distinguish, and whatever a colour shows is also
written beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from pgrecall.console import templates
from pgrecall.console.drawing import bar, draw_path, escaped, path_of
from pgrecall.console.templates import moment, period
from pgrecall.report import RecallReport
from pgrecall.rows import ArmFinding, ArmReport, Hit, QueryEntity, RecallStep, Timings
from pgrecall.wording import path

COLOURS = (  # .hue-0 and so on in answer.css, for the arms in the order in which they run
    "#D55E00",
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#F0E442",
    "#000000",
    "#882255",
    "#117733",
    "#999933",
    "#999999",
)
STAGES = {
    "temporal": ("dates", 4),
    "embed": ("embedding", 1),
    "wait": ("connection", 2),
    "database": ("database", 3),
    "rerank": ("reranking", 5),
    "queue": ("queue", 0),
    "driver": ("driver", 11),
}
_OTHER = 11


@dataclass(frozen=True, slots=True)
class Told:
    """What the page shows besides the answer.

    Attributes:
        entities: Entities that the question names.
        marked: Texts of hits by id, with marks before and after each matching word.
        marks: The mark before and the mark after a word.
        texts: Texts of the facts on paths and of the arms' hits, by id.
        found: The first hits of each arm.
        settings: Name, value and default of options that are not at their default.
        missed: Texts of memories that the user asked about, with their steps through the recall.

    """

    entities: Iterable[QueryEntity] = ()
    marked: Mapping[int, str] = field(default_factory=dict)
    marks: tuple[str, str] = ("", "")
    texts: Mapping[int, str] = field(default_factory=dict)
    found: Mapping[str, Sequence[ArmFinding]] = field(default_factory=dict)
    settings: Sequence[tuple[str, str, str]] = ()
    missed: Sequence[tuple[int, str, Sequence[RecallStep]]] = ()


@dataclass(frozen=True, slots=True)
class ShownHit:
    """A hit as it is shown.

    Attributes:
        hit: The hit.
        text: Its text, with matching words marked.
        bars: Its bars.
        arms: Name, colour and result of each arm that found it.
        place: Explanation of its place.
        path: Drawing of its path; empty for none.
        origin: Names and values of its other fields.

    """

    hit: Hit
    text: Markup
    bars: Markup
    arms: Sequence[tuple[str, int, str]]
    place: str
    path: Markup
    origin: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer as template answer.html shows it.

    Attributes:
        understood: What was recognised in the question.
        note: What the bars mean.
        confidence: Probability that the answer is among the hits.
        arms_found: Name and colour of the arms that found something.
        hits: The hits.
        missed: Memories that the user asked about, with their steps through the recall.
        arms: Report and colour of each arm.
        found: Name and colour of each arm that found something; its first hits, with their texts
            and their places in the answer.
        settings: Name, value and default of options that are not at their default.
        time_bar: Drawing of the stages' times.
        stages: Name, colour and milliseconds of each stage.
        total: Milliseconds of all stages.
        left_out: What was left out, and what to do about it.

    """

    understood: Sequence[tuple[str, str]]
    note: str
    confidence: str
    arms_found: Sequence[tuple[str, int, str]]
    hits: Sequence[ShownHit]
    missed: Sequence[tuple[int, str, Sequence[RecallStep]]]
    arms: Sequence[tuple[ArmReport, int]]
    found: Sequence[tuple[str, int, Sequence[tuple[ArmFinding, str, int | None]]]]
    settings: Sequence[tuple[str, str, str]]
    time_bar: Markup
    stages: Sequence[tuple[str, int, str]]
    total: str
    left_out: Sequence[str]


def page(bank: str, question: str, report: RecallReport, told: Told) -> str:
    """Write an answer and its explanation as a self-contained HTML page.

    Args:
        bank: Name of the bank.
        question: The question.
        report: The answer, with a report for each arm if it was explained.
        told: What the page shows besides the answer.

    """
    style = templates.style("colours.css", "answer.css", "alone.css")
    template = templates.environment().get_template("explained.html")
    return template.render(
        bank=bank, question=question, style=style, shown=shown(report, told)
    ).lstrip()


def shown(report: RecallReport, told: Told) -> Shown:
    """Return what the template shows."""
    hues = {arm.arm: min(n, _OTHER) for n, arm in enumerate(report.arms)}
    is_reranked = any(hit.rerank_score is not None for hit in report.hits)
    best = max((hit.score for hit in report.hits), default=0.0)
    first = max((hit.final_score for hit in report.hits), default=0.0) if is_reranked else None
    fused = "the fused score, divided into the contributions of the arms."
    places = {hit.memory_id: hit.rank for hit in report.hits}
    stages = [(name, getattr(report.timings, field), hue) for field, (name, hue) in STAGES.items()]
    return Shown(
        understood=list(_understood(report, told.entities)),
        note=(
            f"The upper bar is the final score, which orders the hits; the lower is {fused}"
            if is_reranked
            else f"The length of a bar is {fused}"
        ),
        confidence=f"{report.confidence:.0%}",
        arms_found=[
            (name, hues.get(name, _OTHER), "")
            for name in _sorted({name for hit in report.hits for name in hit.arms}, hues)
        ],
        hits=[_shown_hit(hit, best, first, told, hues) for hit in report.hits],
        missed=told.missed,
        arms=[(arm, hues[arm.arm]) for arm in report.arms],
        found=[
            (
                name,
                hues.get(name, _OTHER),
                [(hit, told.texts[hit.memory_id], places.get(hit.memory_id)) for hit in hits],
            )
            for name, hits in told.found.items()
        ],
        settings=told.settings,
        time_bar=_time_bar(report.timings, stages),
        stages=[(name, hue, f"{spent:.1f} ms") for name, spent, hue in stages],
        total=f"{report.timings.total:.1f}",
        left_out=[
            " ".join(filter(None, (f"{item.why}.", item.hint))) for item in report.degradations
        ],
    )


def _understood(report: RecallReport, entities: Iterable[QueryEntity]) -> Iterable[tuple[str, str]]:
    yield from (("time", fact) for fact in report.facts)
    for entity in entities:
        kind = f", {entity.kind}" if entity.kind else ""
        sure = f"by “{entity.matched}”, {entity.confidence:.0%} sure"
        yield "entity", f"{entity.name}{kind}: {sure}"


def _shown_hit(
    hit: Hit, best: float, first: float | None, told: Told, hues: Mapping[str, int]
) -> ShownHit:
    arms = [(name, hues.get(name, _OTHER), hit.arms[name]) for name in _sorted(hit.arms, hues)]
    parts = [(name, said.contribution, COLOURS[hue]) for name, hue, said in arms]
    shares = ", ".join(f"{name} {part:.4f}" for name, part, _ in parts)
    bars = bar(parts, best, f"Score {hit.score:.4f}: {shares}")
    if first is not None:
        order = [("final score", hit.final_score, "var(--order)")]
        bars = bar(order, first, f"Final score {hit.final_score:.4f}") + bars
    path = path_of(hit, told.texts)
    return ShownHit(
        hit=hit,
        text=Markup(_marked(hit, told)),
        bars=Markup(bars),
        arms=[
            (name, hue, f"+{said.contribution:.4f}, its #{said.rank} at {said.score:.3f}")
            for name, hue, said in arms
        ],
        place=_place(hit),
        path=Markup(draw_path(path)) if path else Markup(),
        origin=list(_origin(hit)),
    )


def _marked(hit: Hit, told: Told) -> str:
    """Return the text of a hit with matching words marked."""
    text = escaped(told.marked.get(hit.memory_id, hit.text))
    for mark, tag in zip(told.marks, ("<mark>", "</mark>"), strict=True):
        text = text.replace(mark, tag) if mark else text
    return text


def _place(hit: Hit) -> str:
    """Explain the place of a hit."""
    if hit.rerank_score is None:
        moved = "" if hit.rank == hit.fused_rank else f", then #{hit.rank}"
        return f"score {hit.score:.4f}, #{hit.fused_rank} of the fused order{moved}"
    return (
        f"#{hit.fused_rank} fused at {hit.score:.4f}, #{hit.rank} reranked:"
        f" the reranker says {hit.rerank_score:.3f}, times boosts {hit.boost:.3f},"
        f" in the end {hit.final_score:.3f}"
    )


def _origin(hit: Hit) -> Iterable[tuple[str, str]]:
    if told := path(hit):
        yield "via", told
    yield "relevance", f"{hit.relevance:.0%}"
    yield "type", hit.fact_type or hit.kind
    if hit.occurred is not None:
        yield "happened", period(hit.occurred)
    if hit.mentioned_at is not None:
        yield "said", moment(hit.mentioned_at)
    for name, value in (
        ("source", hit.source_id),
        ("key", hit.fact_key),
        ("context", hit.context),
        ("tags", ", ".join(hit.tags)),
        ("confidence", "" if hit.confidence in (None, 1) else f"{hit.confidence:.2f}"),
        ("sources", "" if hit.proof_count in (None, 1) else str(hit.proof_count)),
        ("id", str(hit.memory_id)),
        ("contradicted by", ", ".join(map(str, hit.conflicts_with))),
        ("another state of", str(hit.variant_of or "")),
    ):
        if value:
            yield name, value


def _time_bar(timings: Timings, stages: Sequence[tuple[str, float, int]]) -> Markup:
    said = ", ".join(f"{name} {spent:.1f} ms" for name, spent, _ in stages)
    parts = [(name, spent, COLOURS[hue]) for name, spent, hue in stages]
    return Markup(bar(parts, timings.total, f"{timings.total:.1f} ms: {said}"))


def _sorted(arms: Iterable[str], hues: Mapping[str, int]) -> list[str]:
    """Sort arms in the order in which they run, so that every bar has the same order."""
    places = {name: place for place, name in enumerate(hues)}
    return sorted(arms, key=lambda name: (places.get(name, len(places)), name))
