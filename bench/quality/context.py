"""Measure the context for a language model: the share of relevant turns in a budget of tokens.

    python -m bench.quality.context --smoke
    python -m bench.quality.context --full

The file and the banks are those of quality.py, with the turns before and after as `context`, which
is not sent. Each question is asked once, reranked, and its answer is written for every budget.

* found: the mean share of the relevant turns that are in the text.
* tokens, hits: means of what was sent, tokens by the estimate of pgrecall.context.
* over: how many texts exceeded their budget; without_best: how many lack the best hit.
"""

from __future__ import annotations

from statistics import fmean

from bench import conversations, harness

from pgrecall import Recall
from pgrecall.context import likely_hits, make_context

BUDGETS = (500, 1000, 2000, 4000)


def main() -> None:
    options = harness.arguments(__doc__, "locomo_dev.json", "{program}-{data.stem}").parse_args()
    given = conversations.read(options.data, 1 if options.smoke else None)
    asked = conversations.questions(given)[: 40 if options.smoke else None]
    figures: harness.Figures = {}
    embedder = conversations.caching_embedder()
    with harness.database() as dsn, Recall.connect(dsn, embedder=embedder) as recall:
        for conversation in given:
            conversations.fill_in_context(recall, conversation)
        reports = [
            recall.recall_report(
                question.bank,
                question.text,
                reference_time=question.asked_at,
                top_k=likely_hits(2000),
                rerank_seconds=60,  # time must not run out
            )
            for question in asked
        ]
        print(f"{options.data.stem}, {len(asked)} questions")
        print(f"{'budget':>10} {'found':>8} {'tokens':>8} {'hits':>8} {'over':>8} {'no best':>8}")
        for budget in BUDGETS:
            rows = []
            for question, report in zip(asked, reports, strict=True):
                context = make_context(report, max_tokens=budget)
                cited = set(context.citations.values())
                turns = {hit.source_id for hit in report.hits if hit.memory_id in cited}
                rows.append(
                    (
                        len(turns & question.relevant) / len(question.relevant),
                        context.tokens,
                        len(cited),
                        context.tokens > budget,
                        bool(report.hits) and report.hits[0].memory_id not in cited,
                    )
                )
            found, tokens, hits, over, without_best = zip(*rows, strict=True)
            shown = fmean(found), fmean(tokens), fmean(hits), sum(over), sum(without_best)
            print(f"{budget:10} {shown[0]:8.3f} {shown[1]:8.0f} {shown[2]:8.1f}", end="")
            print(f" {shown[3]:8} {shown[4]:8}")
            names = ("found", "tokens", "hits", "over", "without_best")
            for name, value in zip(names, shown, strict=True):
                figures[f"{options.data.stem}.{budget}.{name}"] = round(value, 4)
        settings = {"questions": len(asked)}
        harness.write(options, figures, settings, dsn)


if __name__ == "__main__":
    main()
