"""Make bench/README.md from bench/report.md and the files of bench/results: ``make readme``.

bench/report.md is the prose; figures stand in it as ``{FILE: NAME FORMAT}``:

* ``{floor: scale.1m_over_10k .2f}`` is that figure of results/floor.json.
* ``{quality-locomo_dev: locomo_dev.fused.(ndcg10,recall10) .3f}`` are two, for two cells of a table.
* ``{at: floor}`` says of which commit they are and what they were measured on.

Nothing else may be a figure of today, so none can outlive the run that it is from.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
README, TEMPLATE, RESULTS = HERE / "README.md", HERE / "report.md", HERE / "results"
NOTICE = "<!-- Written by make readme from report.md and results/; edit those. -->\n\n"
MARKER = re.compile(r"\{([\w-]+): ([^{}]+?)(?: ([+,]?\.\d[fg%]))?\}")


def read(file: str) -> dict[str, Any]:
    """Read the file of results of that name."""
    result: dict[str, Any] = json.loads((RESULTS / f"{file}.json").read_text(encoding="utf-8"))
    return result


def source(file: str) -> str:
    """Say of which commit the figures of a file are, and on what they were measured."""
    result = read(file)
    others: dict[str, list[str]] = {}
    for name, commit in result.get("other_commits", {}).items():
        others.setdefault(commit, []).append(f"`{name}`")
    said = "".join(f" ({', '.join(parts)}: {commit[:7]})" for commit, parts in others.items())
    if result["commit"].endswith("-dirty"):
        said = " with changes" + said
    versions = result["versions"]
    servers = [
        f"{label} {versions[key]}"
        for key, label in (("postgresql", "PostgreSQL"), ("pgvector", "pgvector"))
        if versions.get(key)
    ]
    where = ", ".join([result["machine"], *servers])
    load = result["settings"].get("load")
    return f"commit {result['commit'][:7]}{said}; {where}" + (f"; {load}" if load else "")


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
    if file == "at":
        return source(text)
    return " | ".join(value(file, name, form or ",g") for name in names(text))


def written() -> str:
    """Return the text of bench/README.md."""
    return NOTICE + MARKER.sub(filled, TEMPLATE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    README.write_text(written(), encoding="utf-8")
