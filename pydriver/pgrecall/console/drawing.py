"""Drawings for ``pgrecall recall --html``: bars, and the path to an answer.

They are SVG without scripts. The colours come from the page's style, for dark and light mode.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgrecall.rows import Hit
from pgrecall.wording import line

_WIDTH = 360
_NODE_HEIGHT = 28
_GAP = 34
_LETTERS = 46  # letters that fit into a node


@dataclass(frozen=True, slots=True)
class Path:
    """The path to an answer: nodes, beginning at the question, and the edges between them.

    Attributes:
        nodes: Names of entities or texts of facts, and whether the node is a fact.
        edges: Label of the edge to the next node, and whether the edge points to that node.

    """

    nodes: Sequence[tuple[str, bool]]
    edges: Sequence[tuple[str, bool]]


def path_of(hit: Hit, texts: Mapping[int, str]) -> Path | None:
    """Return the path of a hit; None if no path led to it.

    Args:
        hit: The hit.
        texts: Texts of the facts on paths, by id.

    """
    via = hit.via or {}
    facts = [(texts.get(fact, f"fact {fact}"), True) for fact in ids_of(hit)]
    entities, kinds, told = via.get("entities"), via.get("relations"), via.get("path")
    if isinstance(told, str) and isinstance(kinds, list):
        return _chain(told, [str(kind) for kind in kinds])
    if len(facts) < 2:
        return None
    if isinstance(entities, list) and entities:
        middle = (str(entities[0]), False)
        return Path([facts[0], middle, facts[-1]], [("names", True), ("names", False)])
    forth = via.get("direction") not in ("cause", "root")
    return Path(facts, [("causes", forth)] * (len(facts) - 1))


def ids_of(hit: Hit) -> list[int]:
    """Return the ids of the facts on the path of a hit."""
    facts = (hit.via or {}).get("facts")
    return [int(fact) for fact in facts] if isinstance(facts, list) else []


def _chain(told: str, kinds: Sequence[str]) -> Path | None:
    """Parse a chain of relations: Ana ← mentors ← Bo → reports_to → Cy."""
    nodes, edges = [], []
    for kind in kinds:
        arrows = {told.find(f" {arrow} {kind} {arrow} "): arrow for arrow in "→←"}
        arrows.pop(-1, None)
        if not arrows:
            return None
        place = min(arrows)
        nodes.append((told[:place], False))
        edges.append((kind, arrows[place] == "→"))
        told = told[place + len(kind) + 6 :]
    return Path([*nodes, (told, False)], edges)


def draw_path(path: Path) -> str:
    """Draw a path from top to bottom, so that it fits any width."""
    drawn = []
    for n, (text, is_fact) in enumerate(path.nodes):
        top = n * (_NODE_HEIGHT + _GAP)
        radius = 3 if is_fact else _NODE_HEIGHT / 2
        drawn.append(
            f'<g class="node"><title>{escaped(text)}</title>'
            f'<rect x="1" y="{top + 1}" width="{_WIDTH - 2}" height="{_NODE_HEIGHT}"'
            f' rx="{radius}"/>'
            f'<text x="{_WIDTH / 2}" y="{top + 20}" text-anchor="middle">'
            f"{escaped(line(text, _LETTERS))}</text></g>"
        )
    for n, (label, is_forth) in enumerate(path.edges):
        start = n * (_NODE_HEIGHT + _GAP) + _NODE_HEIGHT + 4
        end = start + _GAP - 6
        tip, tail = (end, start) if is_forth else (start, end)
        back = tip - 7 if is_forth else tip + 7
        x = _WIDTH / 2
        drawn.append(
            f'<g class="edge"><line x1="{x}" y1="{tail}" x2="{x}" y2="{back}"/>'
            f'<polygon points="{x},{tip} {x - 4},{back} {x + 4},{back}"/>'
            f'<text x="{x + 10}" y="{(start + end) / 2 + 4}">'
            f"{escaped(line(label, _LETTERS // 2))}</text></g>"
        )
    height = len(path.nodes) * (_NODE_HEIGHT + _GAP) - _GAP + 2
    words = " ".join(
        part
        for n, (text, _) in enumerate(path.nodes)
        for part in (text, *(_arrow(*edge) for edge in path.edges[n : n + 1]))
    )
    return (
        f'<svg class="path" role="img" aria-label="{escaped(words)}" width="{_WIDTH}"'
        f' height="{height}" viewBox="0 0 {_WIDTH} {height}">{"".join(drawn)}</svg>'
    )


def _arrow(label: str, is_forth: bool) -> str:
    return f"→ {label} →" if is_forth else f"← {label} ←"


def bar(parts: Sequence[tuple[str, float, str]], whole: float, label: str) -> str:
    """Draw a bar of parts side by side; the whole bar has the width of the page."""
    drawn = []
    left = 0.0
    for name, value, colour in parts:
        width = 100 * value / whole if whole > 0 else 0.0
        drawn.append(
            f'<rect x="{left:.3f}" y="0" width="{width:.3f}" height="1" fill="{colour}">'
            f"<title>{escaped(name)} {value:.4f}</title></rect>"
        )
        left += width
    return (
        f'<svg class="bar" role="img" aria-label="{escaped(label)}" viewBox="0 0 100 1"'
        f' preserveAspectRatio="none">{"".join(drawn)}</svg>'
    )


def escaped(text: str) -> str:
    """Escape a text for HTML; control characters become spaces."""
    return html.escape("".join(c if c.isprintable() or c == "\n" else " " for c in text))
