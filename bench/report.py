"""Make the pages of bench/ from their report.md and the files of bench/results: ``make readme``.

A report.md is the prose; figures stand in it as ``{FILE: NAME FORMAT}``:

* ``{floor: floor.400.ratio .1f}`` is that figure of results/floor.json.
* ``{quality-locomo_dev: locomo_dev.fused.(ndcg10,recall10) .3f}`` are two, for cells of a table.
* ``{at: floor}`` says of which commit they are, and where on another machine than ``{at: usual}``.
* ``{table: speed}`` is that table of peers/tables.py, of results/peers.json; ``{table: tuned}`` the
  same of results/peers-tuned.json; ``{table: worlds}`` is made of the results of all wordings.

Nothing else may be a figure of today, so none can outlive the run that it is from.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import zip_longest
from pathlib import Path
from typing import Any

from bench.peers import tables
from bench.worlds.wording import WORDINGS

HERE = Path(__file__).resolve().parent
README, RESULTS = HERE / "README.md", HERE / "results"
PEERS = HERE / "peers"
PAGES = (README, PEERS / "README.md")
NOTICE = "<!-- Written by make readme from report.md and results/; edit those. -->\n\n"
MARKER = re.compile(r"\{([\w-]+): ([^{}]+?)(?: ([+,]?\.\d[fg%]))?\}")


def read(file: str) -> dict[str, Any]:
    """Read the file of results of that name."""
    result: dict[str, Any] = json.loads((RESULTS / f"{file}.json").read_text(encoding="utf-8"))
    return result


def machine(result: dict[str, Any]) -> str:
    """Say on what a result was measured."""
    versions = result["versions"]
    servers = [
        f"{label} {versions[key]}"
        for key, label in (("postgresql", "PostgreSQL"), ("pgvector", "pgvector"))
        if versions.get(key)
    ]
    return ", ".join([result["machine"], *servers])


def usual() -> str:
    """Return the machine of most of the results."""
    return Counter(machine(read(path.stem)) for path in RESULTS.glob("*.json")).most_common(1)[0][0]


def source(file: str) -> str:
    """Say of which commit the figures of a file are, and on what machine where it is not usual."""
    result = read(file)
    others: dict[str, list[str]] = {}
    for name, commit in result.get("other_commits", {}).items():
        others.setdefault(commit[:7], []).append(f"`{name}`")
    commits = "; ".join(f"{', '.join(parts)}: {commit}" for commit, parts in others.items())
    said = f"commit {result['commit'][:7]}"
    said += " with changes" if result["commit"].endswith("-dirty") else ""
    said += f" ({commits})" if commits else ""
    where = [machine(result)] if machine(result) not in usual() else []
    return "; ".join([said, *where, *filter(None, [result["settings"].get("load")])])


def names(text: str) -> list[str]:
    """Return the names of figures in a marker: a.(b,c).d is a.b.d and a.c.d."""
    before, _, rest = text.partition("(")
    inner, _, after = rest.partition(")")
    return [before + one + after for one in inner.split(",")]


def value(file: str, name: str, form: str) -> str:
    """Return a figure as it is to be printed.

    Raises:
        KeyError: the file has no figure of that name.

    """
    figures = read(file)["figures"]
    if name not in figures:
        raise KeyError(f"results/{file}.json has no figure {name}")
    return format(figures[name], form)


def filled(found: re.Match[str]) -> str:
    """Return what stands in the place of a marker."""
    file, text, form = found.groups()
    if file == "table":
        return filled_table(text)
    if file == "at":
        return usual() if text == "usual" else source(text)
    return " | ".join(value(file, name, form or ",g") for name in names(text))


def filled_table(name: str) -> str:
    """Return a table of peers/tables.py, also on a tuned server, or that of the worlds."""
    if name == "worlds":
        return worlds()
    return (
        tables.speed(read("peers-tuned")) if name == "tuned" else tables.TABLES[name](read("peers"))
    )


def worlds() -> str:
    """Return recall@10 / how often the first fact answers, by kind of question and wording."""
    results = [read(f"worlds-{wording}")["figures"] for wording in WORDINGS]
    found = (re.fullmatch(r"worlds\.(\w+)\.first", name) for name in results[0])
    rows = []
    for kind in (one[1] for one in found if one):
        label = f"**all, {kind}**" if kind in ("fused", "reranked") else kind
        pairs = ([of[f"worlds.{kind}.{what}"] for what in ("recall10", "first")] for of in results)
        rows.append(" | ".join([label, *(f"{among:.2f} / {first:.2f}" for among, first in pairs)]))
    half = (len(rows) + 1) // 2
    head = " | ".join(["kind", *WORDINGS])
    both = zip_longest(rows[:half], rows[half:], fillvalue=" | " * len(WORDINGS))
    lines = [f"| {left} | {right} |" for left, right in [(head, head), *both]]
    return "\n".join([lines[0], "|---" * 2 * (1 + len(WORDINGS)) + "|", *lines[1:]])


def written(page: Path = README) -> str:
    """Return the text of a page."""
    template = page.with_name("report.md")
    return NOTICE + MARKER.sub(filled, template.read_text(encoding="utf-8"))


def drawn(name: str) -> str:
    """Return the text of a plot."""
    return tables.PLOTS[name](read("peers"))


if __name__ == "__main__":
    for one in PAGES:
        one.write_text(written(one), encoding="utf-8")
    for plot in tables.PLOTS:
        (PEERS / f"{plot}.svg").write_text(drawn(plot), encoding="utf-8")
