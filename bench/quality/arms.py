"""Measure what the choice of arms saves: all arms beside those of each budget.

    python -m bench.quality.arms --smoke
    python -m bench.quality.arms --full
    python -m bench.quality.arms --data /path/to/conversations.json

The data are those of bench/conversations.py. Each question is asked with every arm that has input
(`arms` names them all), and with the budgets low, mid (the default) and high, one after the other.
Other questions ask what happened in each month of a conversation. Times are the least of three, of
the server's process on a processor where the system reports them (Linux).

* arm_plan_time_saved: the share of the time of all arms that mid saves.
* arm_plan_ndcg10_delta: nDCG@10 of mid less that of all arms.
* date.ndcg10: nDCG@10 of mid for questions that only name a month.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import psycopg
from bench import conversations, harness
from bench.conversations import Conversation, Question

from pgrecall import Embedder, Recall

ARMS = ["key", "semantic", "lexical", "graph", "temporal", "message"]
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "everything": {"arms": ARMS},
    "low": {"budget": "low"},
    "mid": {},
    "high": {"budget": "high"},
    "hints": {"use_hints": True},
}
TIMES = 3
Connection = psycopg.Connection[Any]


def dates(conversation: Conversation) -> list[Question]:
    """Make a question for each month of a conversation; every turn of the month is relevant."""
    months: dict[str, set[str]] = defaultdict(set)
    for turn in conversation.turns:
        if turn.at:
            months[turn.at.strftime("%B %Y")].add(turn.turn_id)
    return [
        Question(
            conversation.bank,
            f"What happened in {month}?",
            "date",
            frozenset(turns),
            frozenset(),
            conversation.asked_at,
        )
        for month, turns in months.items()
    ]


def ask(
    connection: Connection, embedder: Embedder, asked: Iterable[Question]
) -> dict[str, tuple[float, ...]]:
    """Ask each question in each configuration; returns the mean measures and milliseconds."""
    recall = Recall(connection, embedder=embedder)
    rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for question in asked:
        for name, options in CONFIGURATIONS.items():
            taken = []
            for _ in range(TIMES):
                began = harness.clock(connection)
                report = recall.recall_report(
                    question.bank,
                    question.text,
                    reference_time=question.asked_at,
                    top_k=20,
                    rerank=False,
                    **options,
                )
                taken.append(harness.clock(connection) - began)
            found = conversations.measures(
                [hit.source_id or "" for hit in report.hits], question.relevant
            )
            rows[name].append((*found, min(taken)))
    return {
        name: tuple(fmean(column) for column in zip(*of_one, strict=True))
        for name, of_one in rows.items()
    }


def table(title: str, means: Mapping[str, Sequence[float]]) -> None:
    print(title)
    print(f"{'':12}" + "".join(f" {name:>9}" for name in (*conversations.MEASURES, "mean ms")))
    for name, row in means.items():
        print(f"{name:12}" + "".join(f" {value:9.4f}" for value in row), flush=True)


def measure(path: Path, is_smoke: bool, dsn: str) -> harness.Figures:
    """Ask the questions of a file of conversations with each budget, and with every arm."""
    given = conversations.read(path, 1 if is_smoke else None)
    asked = conversations.questions(given)
    about_dates = [question for conversation in given for question in dates(conversation)]
    if is_smoke:
        asked, about_dates = asked[:30], about_dates[:5]
    if not about_dates:
        sys.exit(f"no turn in {path} has a time (at): its months cannot be asked about")
    embedder = conversations.caching_embedder()
    with Recall.connect(dsn, embedder=embedder) as recall:
        for conversation in given:
            conversations.fill_in_context(recall, conversation)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("vacuum analyze")  # as autovacuum does soon
        ask(connection, embedder, asked[:10])  # plans are made now, and not measured
        means = ask(connection, embedder, asked)
        table(f"{path.stem}, {len(asked)} questions", means)
        date_means = ask(connection, embedder, about_dates)
        table(f"{len(about_dates)} questions that are only a date", date_means)
    mid = means["mid"]
    figures = {
        "arm_plan_time_saved": 1 - mid[-1] / means["everything"][-1],
        "arm_plan_ndcg10_delta": mid[0] - means["everything"][0],
        "date.ndcg10": date_means["mid"][0],
    }
    figures = {name: round(figure, 4) for name, figure in figures.items()}
    harness.show(figures)
    for name, row in means.items():
        figures[f"{name}.ndcg10"] = round(row[0], 4)
        figures[f"{name}.server_mean_ms"] = round(row[-1], 3)
    return figures


def main() -> None:
    parser = harness.arguments(__doc__, "locomo_dev.json", "{program}-{data.stem}")
    options = parser.parse_args()
    with harness.database() as dsn:
        figures = measure(options.data, options.smoke, dsn)
        harness.write(options, figures, {}, dsn)


if __name__ == "__main__":
    main()
