"""Measure what is found in worlds: relations, causes, changes and weeks with known answers.

    python -m bench.worlds.worlds --smoke
    python -m bench.worlds.worlds --full
    python -m bench.worlds.worlds --templates held
    python -m bench.worlds.worlds --templates third
    python -m bench.worlds.worlds --templates fourth
    python -m bench.worlds.worlds --explain two_relations
    python -m bench.worlds.worlds --hub 3000

bench/worlds/make.py makes a world from a seed and a wording; each becomes a bank. Questions are
asked on the day that the worlds end on. "dev" alone is for tuning: the other wordings share no name
and no sentence with it, and what solves a kind of question, rather than a template, is as good on
all. "fourth" was written without knowledge of the product, and adds facts that may be taken for the
answer: newer ones about others, and the same trouble with causes of its own.

Figures are means over the questions of a kind, or over all:

* recall5, recall10: the share of the facts that answer among the first 5 and 10.
* mrr: 1 / rank of the first that answers, 0 behind the tenth. Nearer causes of what was asked,
  which may stand before the one that is asked for, do not count against it.
* first: how often the first fact answers, or is such a nearer cause.
* wrong_subject: how often the first fact is of the kind that is asked for, but about others than
  those the question leads to, such as X's home where that of X's boss is asked for. Over the
  questions that such facts exist for.

worlds.<kind>.<measure> is the fused order, worlds.reranked.<kind>.<measure> the reranked one,
worlds.arm.<arm>.<kind>.<measure> each arm alone, worlds.extracted.<kind>.<measure> the fused order
where facts name and word everything as who reads one message at a time (extracted.py);
worlds.fused.<measure>, worlds.reranked.<measure>, worlds.extracted.<measure> and
worlds.arm.<arm>.<measure> are over all questions. All but "dev" have each figure as
worlds.<templates>.*, too.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any

from bench import harness
from bench.conversations import caching_embedder
from bench.worlds.extracted import extracted
from bench.worlds.make import ASKED_AT, HUB, Question, generate
from bench.worlds.wording import WORDINGS

from pgrecall import Hit, Recall

__all__ = ["Question", "generate"]

MEASURES = ("recall5", "recall10", "mrr", "first", "wrong_subject")
SMOKE_QUESTIONS = 2  # of each kind
TOP_K = 10

World = tuple[list[dict[str, Any]], list[Question]]
Rows = dict[str, dict[str, list[tuple[float, ...]]]]
"""The measures of each question, by kind, by who ranked."""


def measures(ranking: Sequence[str], question: Question) -> tuple[float, ...]:
    """Return the figures of MEASURES for one question; NaN where nothing can be wrong."""
    relevant = question.relevant
    recall5, recall10 = (len(relevant & set(ranking[:n])) / len(relevant) for n in (5, 10))
    wanted = [fact in relevant for fact in ranking[:TOP_K] if fact not in question.also]
    mrr = 1 / (wanted.index(True) + 1) if True in wanted else 0.0
    first = bool(ranking) and ranking[0] in relevant | question.also
    wrong_subject = float(ranking[:1] != [] and ranking[0] in question.wrong)
    return recall5, recall10, mrr, float(first), wrong_subject if question.wrong else nan


def bank_name(seed: int, templates: str) -> str:
    return f"world-{templates}-{seed}"


def fill(recall: Recall, bank: str, facts: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Fill a bank anew; returns the judge's id of each memory."""
    harness.new_bank(recall, bank)
    stored = recall.retain(bank, [dict(fact) for fact in facts])
    recall.refresh_statistics(bank)
    return {row.memory_id: fact["source_id"] for row, fact in zip(stored, facts, strict=True)}


def ask(recall: Recall, bank: str, text: str, **options: Any) -> list[Hit]:
    return recall.recall(
        bank, text, reference_time=ASKED_AT, top_k=TOP_K, **{"rerank": False, **options}
    )


def arm_rankings(
    recall: Recall, bank: str, text: str, judged: Mapping[int, str]
) -> dict[str, list[str]]:
    """Return what each arm finds, as the judge calls it, best first."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for hit in recall.arm_hits(bank, text, reference_time=ASKED_AT, top_k=TOP_K):
        found[hit.arm].append((hit.rank, hit.memory_id))
    return {
        arm: [judged[memory] for _, memory in sorted(rows)[:TOP_K] if memory in judged]
        for arm, rows in found.items()
    }


def measure(
    recall: Recall, worlds: Mapping[str, World], is_reranked: bool, is_by_arm: bool
) -> Rows:
    """Fill a bank with each world and ask every question."""
    rankings: dict[str, list[list[str]]] = defaultdict(list)
    by_arm: list[dict[str, list[str]]] = []
    for bank, (facts, questions) in worlds.items():
        start = perf_counter()
        judged = fill(recall, bank, facts)
        print(f"{bank}: {len(facts)} facts retained in {perf_counter() - start:.1f} s", flush=True)
        start = perf_counter()
        for question in questions:
            hits = ask(recall, bank, question.text)
            rankings["fused"].append([hit.source_id or "" for hit in hits])
            if is_reranked:  # the machine's haste is not measured
                hits = ask(recall, bank, question.text, rerank=True, rerank_seconds=60)
                rankings["reranked"].append([hit.source_id or "" for hit in hits])
            if is_by_arm:
                by_arm.append(arm_rankings(recall, bank, question.text, judged))
        fill(recall, f"{bank}-extracted", extracted(facts, len(judged)))
        for question in questions:
            hits = ask(recall, f"{bank}-extracted", question.text)
            rankings["extracted"].append([hit.source_id or "" for hit in hits])
        print(f"{bank}: {len(questions)} questions in {perf_counter() - start:.1f} s", flush=True)
    for arm in sorted({arm for found in by_arm for arm in found}):
        rankings[f"arm.{arm}"] = [found.get(arm, []) for found in by_arm]
    asked = [question for _, questions in worlds.values() for question in questions]
    rows: Rows = defaultdict(lambda: defaultdict(list))
    for who, ranked in rankings.items():
        for question, ranking in zip(asked, ranked, strict=True):
            rows[who][question.kind].append(measures(ranking, question))
    return rows


def means(rows: Iterable[tuple[float, ...]]) -> dict[str, float]:
    """Return the mean of each measure, without those that no question has."""
    columns = zip(*rows, strict=True)
    known = {
        name: [value for value in column if not isnan(value)]
        for name, column in zip(MEASURES, columns, strict=True)
    }
    return {name: round(fmean(values), 4) for name, values in known.items() if values}


def figures_of(rows: Rows, templates: str = "dev") -> harness.Figures:
    found: harness.Figures = {}
    for who, by_kind in rows.items():
        prefix = "worlds." if who == "fused" else f"worlds.{who}."
        for kind, of_kind in by_kind.items():
            found |= {f"{prefix}{kind}.{name}": value for name, value in means(of_kind).items()}
        total = means(row for of_kind in by_kind.values() for row in of_kind)
        found |= {f"worlds.{who}.{name}": value for name, value in total.items()}
    if templates != "dev":
        prefix = f"worlds.{templates}."
        found |= {name.replace("worlds.", prefix, 1): value for name, value in found.items()}
    return found


def table(rows: Rows) -> None:
    """Print a line a kind: each order in full, of each arm recall@10."""
    whole = [who for who in ("fused", "reranked", "extracted") if who in rows]
    arms = [  # those that found anything
        who
        for who, by_kind in rows.items()
        if who.startswith("arm.") and any(row[1] for of_kind in by_kind.values() for row in of_kind)
    ]
    print(f"\n{'':17} {'':>4}" + "".join(f"   {who:34}" for who in whole), end="")
    print("   recall@10 of each arm alone" if arms else "")
    heads = "".join(f" {name:>6}" for name in ("r@5", "r@10", "mrr", "first", "wrong"))
    print(f"{'kind':17} {'n':>4}" + heads.join(["  "] * len(whole) + [""]), end="")
    print("".join(f" {arm[4:][:9]:>9}" for arm in arms))
    kinds = list(rows["fused"])
    for kind in [*kinds, "all"]:
        chosen = kinds if kind == "all" else [kind]
        cells = {who: means(r for k in chosen for r in rows[who][k]) for who in (*whole, *arms)}
        count = sum(len(rows["fused"][k]) for k in chosen)
        print(f"{kind:17} {count:4}", end="")
        for who in whole:
            values = [f"{cells[who][name]:6.2f}" if name in cells[who] else "" for name in MEASURES]
            print("  " + "".join(f" {value:>6}" for value in values), end="")
        print("".join(f" {cells[arm]['recall10']:9.2f}" for arm in arms))


def explain(recall: Recall, worlds: Mapping[str, World], kind: str, is_reranked: bool) -> None:
    """Print the questions of a kind that are not answered in full, or not first, and why."""
    options = {"rerank": True, "rerank_seconds": 60} if is_reranked else {}
    failed = count = 0
    for bank, (facts, questions) in worlds.items():
        judged = fill(recall, bank, facts)
        texts = {fact["source_id"]: fact["text"] for fact in facts}
        for question in questions:
            if question.kind != kind:
                continue
            hits = ask(recall, bank, question.text, **options)
            count += 1
            _, recall10, _, first, _ = measures([h.source_id or "" for h in hits], question)
            if recall10 == first == 1:
                continue
            failed += 1
            ranks = {h.source_id: h.rank for h in hits}
            by_arm = arm_rankings(recall, bank, question.text, judged)
            print(f"\n{bank}: {question.text}")
            for wanted in sorted(question.relevant):
                arms = [
                    f"{arm} {ranking.index(wanted) + 1}"
                    for arm, ranking in by_arm.items()
                    if wanted in ranking
                ]
                rank = ranks.get(wanted, "-")
                print(f"  wanted, at {rank:>2}: {texts[wanted]}  ({', '.join(arms) or 'no arm'})")
            for hit in hits[:5]:
                arms = [f"{arm} {found.rank}" for arm, found in hit.arms.items()]
                mark = "*" if hit.source_id in question.relevant else " "
                mark = "!" if hit.source_id in question.wrong else mark
                print(f"  {mark} {hit.rank} {hit.final_score:.4f} {hit.text}  ({', '.join(arms)})")
    print(f"\n{kind}: {failed} of {count} not answered in full, or not first")


def dump(path: Path, worlds: Mapping[str, World]) -> None:
    """Write facts and questions as lines of JSON."""
    with path.open("w", encoding="utf-8") as file:
        for bank, (facts, questions) in worlds.items():
            for fact in facts:
                print(json.dumps({"bank": bank, "fact": fact}), file=file)
            for q in questions:
                row = {
                    "kind": q.kind,
                    "text": q.text,
                    "relevant": sorted(q.relevant),
                    "wrong": sorted(q.wrong),
                }
                print(json.dumps({"bank": bank, "question": row}), file=file)


def arguments() -> argparse.Namespace:
    parser = harness.arguments(__doc__, result="{program}-{templates}")
    parser.add_argument("--templates", choices=WORDINGS, default="dev", help="default: dev")
    parser.add_argument("--seeds", type=int, default=3, help="how many worlds; default: 3")
    parser.add_argument("--hub", type=int, default=HUB, help="facts of noise about the company")
    parser.add_argument("--no-rerank", action="store_true", help="the fused order only")
    parser.add_argument("--no-arms", action="store_true", help="not each arm alone")
    parser.add_argument("--explain", metavar="KIND", help="print the failures of a kind instead")
    parser.add_argument("--bank-dump", type=Path, metavar="FILE", help="write facts and questions")
    return parser.parse_args()


def make_worlds(options: argparse.Namespace) -> dict[str, World]:
    start = perf_counter()
    worlds = {}
    for seed in range(1, 2 if options.smoke else options.seeds + 1):
        facts, questions = generate(seed, options.templates, options.hub)
        if options.smoke:
            kinds = defaultdict(list)
            for question in questions:
                kinds[question.kind].append(question)
            questions = [q for of_kind in kinds.values() for q in of_kind[:SMOKE_QUESTIONS]]
        worlds[bank_name(seed, options.templates)] = facts, questions
    print(f"{len(worlds)} worlds made in {perf_counter() - start:.1f} s")
    return worlds


def main() -> None:
    options = arguments()
    worlds = make_worlds(options)
    if options.bank_dump:
        dump(options.bank_dump, worlds)
    is_reranked = not (options.no_rerank or options.smoke)
    with harness.database() as dsn, Recall.connect(dsn, embedder=caching_embedder()) as recall:
        if options.explain:
            explain(recall, worlds, options.explain, is_reranked)
            return
        rows = measure(recall, worlds, is_reranked, not options.no_arms)
        table(rows)
        settings = {
            "templates": options.templates,
            "seeds": len(worlds),
            "hub": options.hub,
            "questions": sum(len(questions) for _, questions in worlds.values()),
        }
        harness.write(options, figures_of(rows, options.templates), settings, dsn)


if __name__ == "__main__":
    main()
