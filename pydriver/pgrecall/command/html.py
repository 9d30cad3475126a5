"""``pgrecall recall --html``: one page, without scripts or external resources.

Colours are those of Okabe and Ito, which people with any colour vision can tell apart; no bar says
by colour alone what the words beside it do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from pgrecall.command import render
from pgrecall.command.drawing import bar, draw_path, escaped, path_of
from pgrecall.report import RecallReport
from pgrecall.rows import ArmReport, Hit, Period, QueryEntity, RecallStep, Timings

COLOURS = (  # of the arms, in the order in which they run
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
)
STAGES = {
    "temporal": ("dates", "#CC79A7"),
    "embed": ("embedding", "#0072B2"),
    "wait": ("connection", "#E69F00"),
    "database": ("database", "#009E73"),
    "rerank": ("reranking", "#56B4E9"),
    "queue": ("queue", "#D55E00"),
    "driver": ("driver", "#999999"),
}
_NUMBERS = ("rows", "best score", "ms", "place", "score")
_OTHER = "#999999"
_DAY_LENGTH = len("2026-03-05")

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --faint: #5c5c5c; --line: #d5d5d5;
  --track: #efefef; --mark: #ffe69a; --order: #666; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececec; --paper: #161616; --faint: #a8a8a8; --line: #3d3d3d; --track: #2a2a2a;
    --mark: #5e4a00; --order: #9a9a9a; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem; color: var(--ink);
  background: var(--paper); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.3; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .25rem 0; }
.faint, dt, figcaption { color: var(--faint); font-size: .875rem; }
.text { margin: 0 0 .4rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
th[scope=row] { white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
ol { list-style: none; margin: 0; padding: 0; }
ol > li { display: grid; grid-template-columns: 2.2rem 1fr; border-top: 1px solid var(--line);
  padding: .9rem 0; break-inside: avoid; }
.rank { font-weight: 600; font-variant-numeric: tabular-nums; }
figure { margin: 0; }
.bar { display: block; width: 100%; height: 1rem; background: var(--track); border-radius: 2px;
  margin-bottom: 2px; }
.bar rect { stroke: var(--paper); stroke-width: 1px; vector-effect: non-scaling-stroke; }
.path { display: block; max-width: 100%; height: auto; margin: .5rem 0; font-size: 13px; }
.path text { fill: var(--ink); }
.path .edge text { fill: var(--faint); }
.node rect { fill: var(--track); stroke: var(--line); }
.edge line { stroke: var(--faint); }
.edge polygon { fill: var(--faint); }
mark { background: var(--mark); color: var(--ink); }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; margin: .3rem 0; padding: 0; }
.legend li { list-style: none; font-size: .875rem; font-variant-numeric: tabular-nums; }
.swatch { display: inline-block; width: .8em; height: .8em; margin-right: .4em; border-radius: 2px;
  border: 1px solid var(--faint); print-color-adjust: exact; -webkit-print-color-adjust: exact; }
dl { display: flex; flex-wrap: wrap; gap: 0 1.2rem; margin: .2rem 0; font-size: .875rem; }
dl div { display: flex; gap: .4rem; min-width: 0; }
dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
@media print {
  :root { --ink: #000; --paper: #fff; --faint: #444; --line: #bbb; --track: #eee;
    --mark: #ffe69a; --order: #666; }
  body { max-width: none; padding: 0; font-size: 11pt; }
}
"""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
<p class="faint">Asked of bank <bdi>{bank}</bdi></p>
<h1 dir="auto">{question}</h1>
</header>
<main>
{sections}
</main>
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class Told:
    """What the page tells besides the answer.

    Attributes:
        entities: Those that the question names.
        marked: Texts of hits by id, with a mark before and one after each word that matches.
        marks: These two.
        texts: Of the facts on the paths, by id.
        settings: Name, value and default of what was set otherwise.
        missed: Texts of memories that were asked about, and the steps of each through the recall.

    """

    entities: Iterable[QueryEntity] = ()
    marked: Mapping[int, str] = field(default_factory=dict)
    marks: tuple[str, str] = ("", "")
    texts: Mapping[int, str] = field(default_factory=dict)
    settings: Sequence[tuple[str, str, str]] = ()
    missed: Sequence[tuple[int, str, Sequence[RecallStep]]] = ()


def page(bank: str, question: str, report: RecallReport, told: Told) -> str:
    """Write an answer and its explanation as a page of HTML.

    Args:
        bank: Name of the bank.
        question: The question, as it was asked.
        report: The answer; with a table of the arms where it was explained.
        told: What else is known of it.

    """
    colours = dict(zip((arm.arm for arm in report.arms), COLOURS, strict=False))
    sections = [
        _understood(report, told.entities),
        _answers(report, told, colours),
        *(_missed(*one) for one in told.missed),
        _arms(report.arms, colours),
        _settings(told.settings),
        _timings(report.timings),
        _left_out(report),
    ]
    return _PAGE.format(
        title=escaped(f"{question[:80]} - pgrecall"),
        style=_STYLE,
        bank=escaped(bank),
        question=escaped(question),
        sections="\n".join(filter(None, sections)),
    )


def _understood(report: RecallReport, entities: Iterable[QueryEntity]) -> str:
    rows = [("time", fact) for fact in report.facts]
    for entity in entities:
        kind = f", {entity.kind}" if entity.kind else ""
        rows.append(
            ("entity", f"{entity.name}{kind}: by “{entity.matched}”, {entity.confidence:.0%} sure")
        )
    if not rows:
        return _section("Understood", "<p>No time and no known name in the question.</p>")
    return _section("Understood", _descriptions(rows))


def _answers(report: RecallReport, told: Told, colours: Mapping[str, str]) -> str:
    hits = report.hits
    if not hits:
        return _section("Answers", "<p>Nothing found.</p>")
    best = max(hit.score for hit in hits)
    is_reranked = any(hit.rerank_score is not None for hit in hits)
    first = max(hit.final_score for hit in hits) if is_reranked else None
    names = {name: None for hit in hits for name in hit.arms}
    legend = _legend((name, colours.get(name, _OTHER), "") for name in _sorted(names, colours))
    fused = "the fused score, its parts are what each arm gave to it."
    note = (
        '<p class="faint">'
        + (
            f"The upper bar is the final score, by which they are ordered; the lower is {fused}"
            if is_reranked
            else f"The length of a bar is {fused}"
        )
        + f" Confidence that the answer is among them: {report.confidence:.0%}.</p>"
    )
    items = "\n".join(_answer(hit, best, first, told, colours) for hit in hits)
    return _section("Answers", f"{note}\n{legend}\n<ol>\n{items}\n</ol>")


def _answer(
    hit: Hit, best: float, first: float | None, told: Told, colours: Mapping[str, str]
) -> str:
    arms = [(name, hit.arms[name]) for name in _sorted(hit.arms, colours)]
    parts = [(name, said.contribution, colours.get(name, _OTHER)) for name, said in arms]
    said = _legend(
        (
            name,
            colours.get(name, _OTHER),
            f"+{arm.contribution:.4f}, its #{arm.rank} at {arm.score:.3f}",
        )
        for name, arm in arms
    )
    shares = ", ".join(f"{name} {part:.4f}" for name, part, _ in parts)
    bars = bar(parts, best, f"Score {hit.score:.4f}: {shares}")
    if first is not None:
        order = [("final score", hit.final_score, "var(--order)")]
        bars = bar(order, first, f"Final score {hit.final_score:.4f}") + bars
    path = path_of(hit, told.texts)
    return (
        f'<li><div class="rank">{hit.rank}</div><div>\n'
        f'<p class="text" dir="auto">{_marked(hit, told)}</p>\n'
        f"<figure>{bars}{said}</figure>\n"
        f'<p class="faint">{escaped(_place(hit))}</p>\n'
        f"{draw_path(path) if path else ''}{_descriptions(_origin(hit))}\n</div></li>"
    )


def _marked(hit: Hit, told: Told) -> str:
    """Write the text of a hit with the words that match marked."""
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
    if path := render.path(hit):
        yield "via", path
    yield "relevance", f"{hit.relevance:.0%}"
    yield "type", hit.fact_type or hit.kind
    if hit.occurred is not None:
        yield "happened", _period(hit.occurred)
    if hit.mentioned_at is not None:
        yield "said", _moment(hit.mentioned_at)
    for name, value in (
        ("source", hit.source_id),
        ("key", hit.fact_key),
        ("context", hit.context),
        ("tags", ", ".join(hit.tags)),
        ("confidence", "" if hit.confidence in (None, 1) else f"{hit.confidence:.2f}"),
        ("sources", "" if hit.proof_count in (None, 1) else str(hit.proof_count)),
        ("id", str(hit.memory_id)),
        ("contradicted by", ", ".join(map(str, hit.conflicts_with))),
    ):
        if value:
            yield name, value


def _arms(arms: Sequence[ArmReport], colours: Mapping[str, str]) -> str:
    if not arms:
        return ""
    head = "".join(
        f'<th scope="col"{_number(name)}>{name}</th>'
        for name in ("arm", "status", "rows", "best score", "ms", "reason")
    )
    rows = "\n".join(
        f'<tr><th scope="row">{_swatch(colours.get(arm.arm, _OTHER))}{escaped(arm.arm)}</th>'
        f"<td>{escaped(arm.status)}</td>"
        f'<td class="number">{arm.rows or 0}</td>'
        f'<td class="number">{"" if arm.best_score is None else f"{arm.best_score:.3f}"}</td>'
        f'<td class="number">{"" if arm.milliseconds is None else f"{arm.milliseconds:.1f}"}</td>'
        f"<td>{escaped(arm.reason or '')}</td></tr>"
        for arm in arms
    )
    return _section("What each arm did", _table(head, rows))


def _missed(memory_id: int, text: str, steps: Sequence[RecallStep]) -> str:
    """Write what became of a memory in each step."""
    head = "".join(
        f'<th scope="col"{_number(name)}>{name}</th>'
        for name in ("step", "status", "place", "score", "reason")
    )
    rows = "\n".join(
        f'<tr><th scope="row">{escaped(step.step)}</th><td>{escaped(step.status)}</td>'
        f'<td class="number">{step.rank or ""}</td>'
        f'<td class="number">{"" if step.score is None else f"{step.score:.3f}"}</td>'
        f"<td>{escaped(step.reason or '')}</td></tr>"
        for step in steps
    )
    return _section(
        f"Where is {memory_id}?",
        f'<p class="text" dir="auto">{escaped(text)}</p>\n{_table(head, rows)}',
    )


def _settings(settings: Sequence[tuple[str, str, str]]) -> str:
    if not settings:
        return ""
    head = "".join(f'<th scope="col">{name}</th>' for name in ("setting", "value", "default"))
    rows = "\n".join(
        f'<tr><th scope="row">{escaped(name)}</th>'
        f'<td class="text">{escaped(value)}</td><td class="text">{escaped(default)}</td></tr>'
        for name, value, default in settings
    )
    return _section("Settings of this recall", _table(head, rows))


def _timings(timings: Timings) -> str:
    parts = [(name, getattr(timings, field), colour) for field, (name, colour) in STAGES.items()]
    said = ", ".join(f"{name} {spent:.1f} ms" for name, spent, _ in parts)
    drawn = bar(parts, timings.total, f"{timings.total:.1f} ms: {said}")
    legend = _legend((name, colour, f"{spent:.1f} ms") for name, spent, colour in parts)
    caption = f"<figcaption>{timings.total:.1f} ms together</figcaption>"
    return _section("Where the time went", f"<figure>{drawn}{legend}{caption}</figure>")


def _left_out(report: RecallReport) -> str:
    if not report.degradations:
        return ""
    rows = "\n".join(
        f"<p>{escaped(' '.join(filter(None, (f'{item.why}.', item.hint))))}</p>"
        for item in report.degradations
    )
    return _section("Left out", rows)


def _legend(rows: Iterable[tuple[str, str, str]]) -> str:
    items = "".join(
        f"<li>{_swatch(colour)}{escaped(' '.join(filter(None, (name, value))))}</li>"
        for name, colour, value in rows
    )
    return f'<ul class="legend">{items}</ul>'


def _swatch(colour: str) -> str:
    return f'<span class="swatch" style="background: {colour}" aria-hidden="true"></span>'


def _descriptions(rows: Iterable[tuple[str, str]]) -> str:
    items = "".join(
        f'<div><dt>{escaped(name)}</dt><dd dir="auto">{escaped(value)}</dd></div>'
        for name, value in rows
    )
    return f"<dl>{items}</dl>"


def _table(head: str, rows: str) -> str:
    """Make a table, which a narrow screen scrolls within itself."""
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
    return f'<div class="wide" tabindex="0">{table}</div>'


def _section(title: str, content: str) -> str:
    return f"<section>\n<h2>{title}</h2>\n{content}\n</section>"


def _number(column: str) -> str:
    return ' class="number"' if column in _NUMBERS else ""


def _sorted(arms: Iterable[str], colours: Mapping[str, str]) -> list[str]:
    """Give an arm the same place in every bar: that in which it runs."""
    places = {name: place for place, name in enumerate(colours)}
    return sorted(arms, key=lambda name: (places.get(name, len(places)), name))


def _period(period: Period) -> str:
    """Write a period, its last day included where it ends at midnight."""
    start, end = period
    if end is not None and len(_moment(end)) == _DAY_LENGTH:
        end -= timedelta(days=1)
    first, last = _moment(start) or "open", _moment(end) or "open"
    return first if first == last else f"{first} to {last}"


def _moment(moment: datetime | None) -> str:
    """Write a time in UTC; a day where it is midnight."""
    if moment is None:
        return ""
    there = moment.astimezone(timezone.utc)
    return (
        f"{there:%Y-%m-%d}" if not (there.hour or there.minute) else f"{there:%Y-%m-%d %H:%M} UTC"
    )
