"""Measure questions that name a time, asked of documents about many things.

    python -m bench.quality.timeqa --data human_annotated_test.json --smoke
    python -m bench.quality.timeqa --data human_annotated_test.json --full

The file is that of TimeQA (Chen, Wang and Wang 2021): articles of Wikipedia and questions that
people wrote, such as "What team had Steve Sidwell on it from 2002 to 2003?". A paragraph is a fact,
the title of its article an entity. In one bank facts have no time, in the other `occurred` spans
the years that stand in the paragraph.

timeqa.<undated or dated>.<unread, fused or reranked>.<measure>, unread: without reading the time,
fused; reranked by late interaction. ndcg10, recall10 and recall20.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from bench import conversations, harness

from pgrecall import Recall

YEAR = re.compile(r"\b(1[5-9]\d\d|20[0-2]\d)\b")
LEAST = 25  # characters of a paragraph that is no heading
ARTICLES, ASKED = 140, 400
SMOKE_ARTICLES, SMOKE_ASKED = 4, 6
ORDERS: dict[str, dict[str, Any]] = {
    "unread": {"rerank": False, "temporal": False},
    "fused": {"rerank": False},
    "reranked": {"rerank_seconds": 60},
}


@dataclass(frozen=True)
class Question:
    text: str
    relevant: frozenset[str]


def read(text: str, articles: int) -> tuple[list[dict[str, Any]], list[Question]]:
    """Return the facts and the questions of the first articles.

    Raises:
        ValueError: the text is no file of TimeQA.

    """
    by_link: dict[str, list[Mapping[str, Any]]] = {}
    try:
        for one in json.loads(text):
            if one["link"] in by_link or len(by_link) < articles:
                by_link.setdefault(one["link"], []).append(one)
        facts = [
            _fact(link, number, paragraph)
            for link, (one, *_) in by_link.items()
            for number, paragraph in enumerate(one["paras"])
            if len(paragraph) >= LEAST
        ]
        asked = [
            Question(question, frozenset(f"{link}#{found['para']}" for found in answers))
            for link, of_link in by_link.items()
            for one in of_link
            for question, answers in one["questions"]
            if answers and all(found.get("answer") for found in answers)
        ]
    except (KeyError, TypeError) as error:
        raise ValueError(f"it misses {error}") from error
    known = {fact["source_id"] for fact in facts}
    return facts, [question for question in asked if question.relevant <= known]


def _fact(link: str, number: int, paragraph: str) -> dict[str, Any]:
    years = [int(year) for year in YEAR.findall(paragraph)]
    return {
        "text": paragraph[: harness.LONGEST],
        "source_id": f"{link}#{number}",
        "entities": [link.rpartition("/")[2].replace("_", " ")],
        "occurred": [f"{min(years)}-01-01", f"{max(years) + 1}-01-01"] if years else None,
    }


def ask(recall: Recall, bank: str, asked: Sequence[Question]) -> harness.Figures:
    figures: harness.Figures = {}
    for order, options in ORDERS.items():
        rows = []
        for question in asked:
            hits = recall.recall(bank, question.text, top_k=20, **options)
            ranking = [hit.source_id or "" for hit in hits]
            rows.append(conversations.measures(ranking, question.relevant))
        for measure, column in zip(conversations.MEASURES, zip(*rows, strict=True), strict=True):
            figures[f"timeqa.{bank}.{order}.{measure}"] = round(fmean(column), 4)
    return figures


def main() -> None:
    parser = harness.arguments(__doc__, "human_annotated_test.json")
    options = parser.parse_args()
    if not options.data.is_file():
        print("left out: it needs --data, a file of TimeQA")
        return
    try:
        facts, asked = read(
            options.data.read_text(encoding="utf-8"),
            SMOKE_ARTICLES if options.smoke else ARTICLES,
        )
    except ValueError as error:
        sys.exit(f"{options.data} is no file of TimeQA: {error}")
    random.Random(3).shuffle(asked)
    asked = asked[: SMOKE_ASKED if options.smoke else ASKED]
    with (
        harness.database() as dsn,
        Recall.connect(dsn, embedder=conversations.caching_embedder()) as recall,
    ):
        figures: harness.Figures = {"timeqa.facts": len(facts), "timeqa.questions": len(asked)}
        undated = [{**fact, "occurred": None} for fact in facts]
        for bank, of_bank in (("undated", undated), ("dated", facts)):
            harness.new_bank(recall, bank)
            recall.retain_many(bank, of_bank)
            figures |= ask(recall, bank, asked)
        harness.show(figures)
        harness.write(options, figures, {"articles": ARTICLES, "asked": ASKED}, dsn)


if __name__ == "__main__":
    main()
