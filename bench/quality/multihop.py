"""Measure questions that need several texts: MuSiQue, with entities and relations from a model.

    python -m bench.quality.multihop --smoke
    python -m bench.quality.multihop --full
    python -m bench.quality.multihop --data /path/to/musique.json

The file is {facts: what retain() takes, questions: [{id, question, relevant: [fact_key], hops}]}:
paragraphs of Wikipedia with the triples that a language model found in them, as published by
HippoRAG. Each paragraph is a fact. The same questions are asked of three banks: `text` without
entities and relations, `entities` without relations, and `relations` with both.

musique.<bank>.fused.<measure>, and the same without the graph arm (`without_graph`):

* recall2, recall5, recall10, recall20: the share of the relevant paragraphs among the first.
* ms: median of the milliseconds of a recall, the question's embedding included; the banks are
  asked in turn, question by question. time_ratio: of `relations` over `text`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from time import perf_counter
from typing import Any

from bench import conversations, harness

from pgrecall import Recall

DEPTHS = (2, 5, 10, 20)
WITHOUT: dict[str, tuple[str, ...]] = {
    "text": ("entities", "relations"),
    "entities": ("relations",),
    "relations": (),
}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "fused": {},
    "without_graph": {"weights": {"graph": 0}},
}
SMOKE_FACTS, SMOKE_QUESTIONS = 120, 4


def fill(recall: Recall, bank: str, facts: Sequence[Mapping[str, Any]]) -> None:
    """Fill a bank with the facts, without the fields that it is to lack."""
    harness.new_bank(recall, bank)
    left_out = WITHOUT[bank]
    recall.retain_many(
        bank, ({k: v for k, v in fact.items() if k not in left_out} for fact in facts)
    )


def main() -> None:
    options = harness.arguments(__doc__, "musique_dev.json").parse_args()
    data = json.loads(harness.require(options.data).read_text(encoding="utf-8"))
    facts, questions = data["facts"], data["questions"]
    if options.smoke:
        questions = questions[:SMOKE_QUESTIONS]
        wanted = {key for question in questions for key in question["relevant"]}
        others = [fact for fact in facts if fact["fact_key"] not in wanted]
        facts = [f for f in facts if f["fact_key"] in wanted] + others[:SMOKE_FACTS]
    found: dict[str, list[tuple[float, ...]]] = {}
    times: dict[str, list[float]] = {}
    embedder = conversations.caching_embedder()
    with (
        harness.database() as dsn,
        Recall.connect(dsn, embedder=embedder, reranker=None) as recall,
    ):
        for bank in WITHOUT:
            fill(recall, bank, facts)
        for question in questions:
            relevant = set(question["relevant"])
            begin = perf_counter()
            list(embedder.embed_query([question["question"]]))  # kept: recalls find it made
            embedding = perf_counter() - begin
            for bank in WITHOUT:
                for name, asked in CONFIGURATIONS.items():
                    begin = perf_counter()
                    hits = recall.recall(bank, question["question"], top_k=DEPTHS[-1], **asked)
                    spent = embedding + perf_counter() - begin
                    times.setdefault(f"{bank}.{name}", []).append(spent)
                    keys = [hit.fact_key for hit in hits]
                    found.setdefault(f"{bank}.{name}", []).append(
                        tuple(len(relevant & set(keys[:n])) / len(relevant) for n in DEPTHS)
                    )
        figures: harness.Figures = {}
        for what, rows in found.items():
            for depth, column in zip(DEPTHS, zip(*rows, strict=True), strict=True):
                figures[f"musique.{what}.recall{depth}"] = round(fmean(column), 4)
            figures[f"musique.{what}.ms"] = round(1000 * median(times[what]), 2)
        ratio = figures["musique.relations.fused.ms"] / figures["musique.text.fused.ms"]
        figures["musique.time_ratio"] = round(ratio, 3)
        harness.show(figures)
        settings = {"facts": len(facts), "questions": len(questions)}
        harness.write(options, figures, settings, dsn)


if __name__ == "__main__":
    main()
