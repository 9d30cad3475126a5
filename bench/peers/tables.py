"""Tables and plots of bench/results/peers.json: for peers/README.md and sql/README.md."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from bench.peers.sets import OF_A_BANK

OURS = "pgrecall"
NONE = "–"
SERVER_MS = "processor ms of the server a recall"
QUALITY = {
    "locomo": "LoCoMo",
    "beam": "BEAM",
    "xquad": "XQuAD",
    "fiqa": "FiQA",
    "musique": "MuSiQue",
    "entities": "MuSiQue, entities",
    "worlds": "worlds",
}
WIDTH, HEIGHT, LEFT, BOTTOM, RIGHT, TOP = 720, 420, 60, 50, 200, 20
COLOURS = (
    "#1b6ca8",
    "#d1495b",
    "#3a7d44",
    "#8d5a97",
    "#c77f1a",
    "#4a4a4a",
    "#008080",
    "#7a5230",
    "#00b3d6",
    "#e377c2",
    "#9a9a00",
    "#000000",
)

Result = Mapping[str, Any]
Line = tuple[str, Sequence[tuple[float, float]]]


def sizes(result: Result) -> list[int]:
    """Return the sizes that were measured, in facts."""
    names = {name.split(".")[2] for name in result["figures"] if name.endswith(".p50_ms")}
    return sorted(int(name) for name in names if name.isdigit())


def axes(result: Result) -> dict[str, str]:
    """Return what was timed: sizes of one bank, then numbers of banks."""
    names = {name.split(".")[2] for name in result["figures"] if name.endswith(".p50_ms")}
    banks = sorted(int(n.removeprefix("banks")) for n in names if n.startswith("banks"))
    one = {str(size): f"{size:,} facts in one bank" for size in sizes(result)}
    return one | {f"banks{n}": f"{n:,} banks of {OF_A_BANK} facts" for n in banks}


def value(result: Result, peer: str, name: str) -> float | None:
    figure: float | None = result["figures"].get(f"peers.{peer}.{name}")
    return figure


def shown(result: Result, peer: str, name: str, form: str = ".3g", best: float = math.nan) -> str:
    """Return a figure as a cell of a table, bold if it is the best."""
    figure = value(result, peer, name)
    if figure is None:
        return NONE
    text = f"{figure:,.0f}" if figure >= 100 else format(figure, form)
    return f"**{text}**" if figure == best else text


def rows(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def asked(result: Result, suffix: str) -> Iterator[tuple[str, str]]:
    """Yield the peers that have a figure with this ending, and their titles."""
    for peer, about in result["peers"].items():
        if any(n.startswith(f"peers.{peer}.") and n.endswith(suffix) for n in result["figures"]):
            yield peer, about["title"]


def speed(result: Result) -> str:
    """Return a table for each number of facts, and for many banks."""
    head = ["", "ms p50", "p95", "over ours", "database", "over ours", "server ms", "over ours"]
    head += ["client ms", "first answer, ms", "MB, client", "server"]
    names = ["p50_ms", "p95_ms", "ratio", "database_ms", "database_ratio", "server_ms"]
    names += ["server_ratio", "client_ms", "first_ms", "client_mb", "server_mb"]
    parts = []
    for axis, said in axes(result).items():
        body = [
            [title, *(shown(result, peer, f"{axis}.{name}") for name in names)]
            for peer, title in asked(result, f".{axis}.p50_ms")
        ]
        parts.append(f"{said}:\n\n{rows(head, body)}")
    return "\n\n".join(parts)


def throughput(result: Result) -> str:
    """Return a table of recalls a second by clients, and how many times as many ours are."""
    many = [n for n in result["settings"]["clients"] if n > 1]
    axis = str(min(sizes(result)))
    head = ["", *(f"{n} clients" for n in many), *(f"ours over it, {n}" for n in many)]
    names = [f"{axis}.clients_{n}.{what}" for what in ("per_s", "ratio") for n in many]
    body = [
        [title, *(shown(result, peer, name) for name in names)]
        for peer, title in asked(result, f"{axis}.clients_{many[0]}.per_s")
    ]
    return rows(head, body)


def quality(result: Result) -> str:
    """Return a table of quality."""
    known = [one for one in QUALITY if value(result, OURS, f"{one}.ndcg10") is not None]
    names = [f"{one}.ndcg10" for one in known] + [f"{one}.recall10" for one in known[:2]]
    names.append(f"{known[0]}.no_embedder.ndcg10")
    head = [QUALITY[one] for one in known] + [f"{QUALITY[one]} recall@10" for one in known[:2]]
    head.append(f"{QUALITY[known[0]]}, no embedder")
    peers = list(asked(result, ".ndcg10"))
    best = {
        name: max((v for p, _ in peers if (v := value(result, p, name)) is not None), default=0)
        for name in names
    }
    body = [
        [title, *(shown(result, peer, name, ".3f", best[name]) for name in names)]
        for peer, title in peers
    ]
    counts = ", ".join(f"{QUALITY[s]} {value(result, OURS, f'{s}.questions'):,.0f}" for s in known)
    return f"Questions: {counts}.\n\n{rows(['', *head], body)}"


def loading(result: Result) -> str:
    """Return a table of loads."""
    names, head = [], [""]
    for size in sizes(result):
        names += [f"{size}.{what}" for what in ("load_per_s", "load_server_ms", "megabytes")]
        head += [f"{size:,}: facts a second", "server ms a fact", "MB"]
    body = [
        [title, *(shown(result, peer, name) for name in names)]
        for peer, title in asked(result, ".load_per_s")
    ]
    return rows(head, body)


def setup(result: Result) -> str:
    """Return a table of the peers: versions, set-up, and why one was left out."""
    body = []
    for about in result["peers"].values():
        versions = ", ".join(f"{k} {v}" for k, v in about["versions"].items() if k != "plpgsql")
        why = f" **Left out:** {about['not_run']}" if "not_run" in about else ""
        body.append([about["title"], versions or NONE, about["how"] + why.replace("|", "\\|")])
    return rows(["", "versions", "set up"], body)


def compared(result: Result) -> str:
    """Return a short table for the reference, of the largest bank that all peers were asked in."""
    peers = list(asked(result, ".p50_ms"))
    size = max(n for n in sizes(result) if all(value(result, p, f"{n}.p50_ms") for p, _ in peers))
    found = [f"{one}.ndcg10" for one in QUALITY]
    taken = [f"{size}.{what}" for what in ("p50_ms", "server_ms", "load_server_ms", "megabytes")]
    head = ["", *QUALITY.values(), f"{size:,} facts: ms", "processor ms", "of a write", "MB"]
    body = [
        [
            title,
            *(shown(result, peer, name, ".3f") for name in found),
            *(shown(result, peer, name) for name in taken),
        ]
        for peer, title in peers
    ]
    return rows(head, body)


TABLES = {each.__name__: each for each in (speed, throughput, quality, loading, setup, compared)}


def latency_plot(result: Result) -> str:
    """Return a plot of processor time against facts."""
    named = {str(size): size for size in sizes(result)}
    return lines_plot(result, named, "server_ms", "facts in the bank", SERVER_MS)


def banks_plot(result: Result) -> str:
    """Return a plot of processor time against banks."""
    named = {axis: int(axis.removeprefix("banks")) for axis in axes(result) if "banks" in axis}
    return lines_plot(result, named, "server_ms", f"banks of {OF_A_BANK} facts", SERVER_MS)


def throughput_plot(result: Result) -> str:
    """Return a plot of recalls a second against clients."""
    smallest = min(sizes(result))
    named = {f"{smallest}.clients_{n}": n for n in result["settings"]["clients"] if n > 1}
    return lines_plot(
        result, named, "per_s", f"clients, a bank of {smallest:,} facts", "recalls a second"
    )


def lines_plot(result: Result, named: Mapping[str, int], figure: str, across: str, up: str) -> str:
    """Return a plot with a line for each peer: one figure of several axes."""
    lines = []
    for peer, title in result["peers"].items():
        points = [
            (n, v) for axis, n in named.items() if (v := value(result, peer, f"{axis}.{figure}"))
        ]
        if points:
            lines.append((title["title"], points))
    return plot(lines, across, up)


def quality_plot(result: Result) -> str:
    """Return a plot of quality against the time of a recall."""
    smallest = min(sizes(result))
    lines = []
    for peer, title in asked(result, ".locomo.ndcg10"):
        taken = value(result, peer, f"{smallest}.server_ms")
        found = value(result, peer, "locomo.ndcg10")
        if taken and found:
            lines.append((title, [(taken, found)]))
    return plot(lines, f"{SERVER_MS}, {smallest:,} facts", "LoCoMo nDCG@10")


PLOTS = {
    "latency": latency_plot,
    "banks": banks_plot,
    "throughput": throughput_plot,
    "quality": quality_plot,
}


def plot(lines: Sequence[Line], across: str, up: str) -> str:
    """Draw lines or dots as SVG: x is logarithmic, y begins at 0."""
    points = [point for _, line in lines for point in line]
    low, high = (math.log10(f(x for x, _ in points)) for f in (min, max))
    low, high = low - 0.1, high + 0.1
    top = max(y for _, y in points) * 1.1

    def place(x: float, y: float) -> tuple[float, float]:
        share = (math.log10(x) - low) / (high - low)
        right = LEFT + share * (WIDTH - LEFT - RIGHT)
        return right, HEIGHT - BOTTOM - y / top * (HEIGHT - BOTTOM - TOP)

    end, ground = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<path d="M{LEFT} {TOP}V{ground}H{end}" fill="none" stroke="#444"/>',
        f'<text x="{(LEFT + end) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{across}</text>',
        f'<text transform="translate(14 {ground / 2}) rotate(-90)" text-anchor="middle">',
        f"{up}</text>",
    ]
    marks = [m * 10.0**e for e in range(math.floor(low), math.ceil(high)) for m in (1, 2, 5)]
    for x in marks:
        if low <= math.log10(x) <= high:
            right, _ = place(x, 0)
            parts.append(
                f'<text x="{right:.0f}" y="{ground + 16}" text-anchor="middle">{x:,g}</text>'
            )
    for n in range(1, 5):
        _, height = place(10**low, top * n / 4.4)
        parts.append(f'<text x="{LEFT - 6}" y="{height:.0f}" text-anchor="end">')
        parts.append(f"{top * n / 4.4:.2g}</text>")
    for n, (title, line) in enumerate(lines):
        colour = COLOURS[n % len(COLOURS)]
        drawn = [place(*point) for point in line]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in drawn)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in drawn]
        key = TOP + 18 * n
        parts.append(f'<circle cx="{end + 15}" cy="{key}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{end + 24}" y="{key + 4}">{escape(title)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
