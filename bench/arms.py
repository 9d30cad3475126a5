"""Measure what choosing arms saves: each question with all arms, and with those of arm_plan().

    python bench/arms.py --smoke
    python bench/arms.py --full --json arms.json
    python bench/arms.py --data /path/to/conversations.json

The data are those of bench/quality.py. Each question is asked with every arm that the call has
something for (`arms` names them all), and with the budgets low, mid (the default) and high, one
after the other, so that whatever else the machine does falls on all alike. Dates are asked about
too: what happened in each month of a conversation.

* arm_plan_time_saved: the share of the database time of all arms that mid does without.
* arm_plan_ndcg10_delta: nDCG@10 of mid less that of all arms.
* arm_plan_date_time: database time of mid over that of all arms, asked for nothing but a date.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import harness
import quality

from pgrecall import Recall

ARMS = ["key", "semantic", "lexical", "graph", "temporal", "message"]
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "everything": {"arms": ARMS},
    "low": {"budget": "low"},
    "mid": {},
    "high": {"budget": "high"},
    "hints": {"use_hints": True},
}


def dates(conversation: Mapping[str, Any]) -> list[quality.Question]:
    """Make a question for each month of a conversation; every turn of the month is relevant."""
    months: dict[str, set[str]] = defaultdict(set)
    for turn in conversation["turns"]:
        if turn.get("at"):
            month = datetime.fromisoformat(turn["at"]).strftime("%B %Y")
            months[month].add(str(turn["id"]))
    asked_at = max((q.asked_at for q in quality.questions(conversation)), default=None)
    if asked_at is None:
        return []
    bank = str(conversation["conversation_id"])
    return [
        quality.Question(bank, f"What happened in {month}?", "date", frozenset(turns), asked_at)
        for month, turns in months.items()
    ]


def ask(recall: Recall, asked: Iterable[quality.Question]) -> dict[str, tuple[float, ...]]:
    """Ask each question in each configuration; returns the mean measures and milliseconds."""
    rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for question in asked:
        for name, options in CONFIGURATIONS.items():
            report = recall.recall_report(
                question.bank,
                question.text,
                reference_time=question.asked_at,
                top_k=20,
                rerank=False,
                **options,
            )
            found = quality.measures(
                [hit.source_id or "" for hit in report.hits], question.relevant
            )
            rows[name].append((*found, report.timings.database))
    return {
        name: tuple(fmean(column) for column in zip(*of_one, strict=True))
        for name, of_one in rows.items()
    }


def table(title: str, means: Mapping[str, Sequence[float]]) -> None:
    print(title)
    print(f"{'':12}" + "".join(f" {name:>9}" for name in (*quality.MEASURES, "mean ms")))
    for name, row in means.items():
        print(f"{name:12}" + "".join(f" {value:9.4f}" for value in row), flush=True)


def measure(path: Path, is_smoke: bool, dsn: str) -> harness.Figures:
    """Ask the questions of a file of conversations with each budget, and with every arm."""
    conversations = json.loads(path.read_text(encoding="utf-8"))
    if is_smoke:
        conversations = conversations[:1]
    asked = [question for c in conversations for question in quality.questions(c)]
    about_dates = [question for c in conversations for question in dates(c)]
    if is_smoke:
        asked, about_dates = asked[:30], about_dates[:5]
    with Recall.connect(dsn, embedder=quality.CachingEmbedder()) as recall:
        for conversation in conversations:
            quality.load(recall, conversation)
        ask(recall, asked[:10])  # first plans of a connection are not what is measured
        means = ask(recall, asked)
        table(f"{path.stem}, {len(asked)} questions", means)
        date_means = ask(recall, about_dates)
        table(f"{len(about_dates)} questions that are only a date", date_means)
    figures = {
        "arm_plan_time_saved": round(1 - means["mid"][-1] / means["everything"][-1], 4),
        "arm_plan_ndcg10_delta": round(means["mid"][0] - means["everything"][0], 4),
        "arm_plan_date_time": round(date_means["mid"][-1] / date_means["everything"][-1], 4),
    }
    for name, figure in figures.items():
        print(f"{name} {figure:.4f}")
    for name, row in means.items():
        figures[f"{name}.ndcg10"] = round(row[0], 4)
        figures[f"{name}.database_mean_ms"] = round(row[-1], 3)
    return figures


def main() -> None:
    parser = harness.arguments(__doc__, "locomo_dev.json")
    options = parser.parse_args()
    path: Path = harness.require(options.data)
    with harness.database() as dsn:
        figures = measure(path, options.smoke, dsn)
        harness.write(options.json, figures, {"data": path.name, "smoke": options.smoke}, dsn)


if __name__ == "__main__":
    main()
