"""Measure late interaction: what it gains over the fused order, how long it takes, what it stores.

    python -m bench.quality.late --smoke
    python -m bench.quality.late --full
    python -m bench.quality.late --sets locomo fiqa --reranker cross-encoder

Every set is asked fused and reranked, with the defaults of a recall: LoCoMo with and without
neighbouring turns as context, and as sentences that rules find, BEAM and XQuAD in English without,
FiQA, MuSiQue (text alone) and the worlds `dev` and `third`. The head was not trained on any of
them. --smoke asks twelve questions of each of two sets.

late.<set>.<measure>, of ten hits:

* fused, reranked: nDCG@10; recall10 of LoCoMo, BEAM, XQuAD and FiQA; recall5 of MuSiQue and worlds.
* gain, gain_low, gain_high: reranked minus fused, with the 95% interval of a bootstrap.
* out: the share of questions whose fused order late interaction left as it was.
* p50_ms: the median of what reranking adds to a recall: token vectors are read and compared, and
  the database computes the order. bytes, bytes_max: size of the token vectors of a fact.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from statistics import fmean, median

import psycopg
from bench import conversations, harness
from bench.conversations import Conversation
from bench.quality import multihop
from bench.worlds import worlds
from bench.worlds.make import ASKED_AT

from pgrecall import Recall
from pgrecall.evaluation import intervals
from pgrecall.extraction import RuleExtractor

Asked = tuple[str, str, datetime | None, frozenset[str]]
"""A bank, a question, the time at which it is asked, and the ids of its answers."""
TOP_K = 20
SMOKE = 12
SMOKE_SETS = ("locomo_context", "worlds_dev")


def of_conversations(
    recall: Recall,
    path: Path,
    fill: Callable[[Recall, Conversation], None],
    is_wanted: Callable[[str], bool] = lambda _bank: True,
) -> Iterator[Asked]:
    for conversation in conversations.read(path):
        if is_wanted(conversation.bank):
            fill(recall, conversation)
            for question in conversation.questions:
                yield question.bank, question.text, question.asked_at, question.relevant


def fill_by_rules(recall: Recall, conversation: Conversation) -> None:
    """Retain the sentences of turns as facts, each with what is said around it as context."""
    messages = [
        {
            "text": f"{turn.text} {turn.caption}".strip(),
            "speaker": turn.speaker,
            "session": turn.session,
            "sent_at": turn.at,
        }
        for turn in conversation.turns
    ]
    by_turn = zip(conversation.turns, RuleExtractor().by_message(messages), strict=True)
    facts = (fact | {"source_id": turn.turn_id} for turn, found in by_turn for fact in found)
    conversations.fill(recall, conversation, facts)


def of_musique(recall: Recall, path: Path) -> Iterator[Asked]:
    data = json.loads(harness.require(path).read_text(encoding="utf-8"))
    multihop.fill(recall, "text", data["facts"])
    for question in data["questions"]:
        yield "text", question["question"], None, frozenset(question["relevant"])


def of_worlds(recall: Recall, templates: str) -> Iterator[Asked]:
    for seed in (1, 2, 3):
        facts, questions = worlds.generate(seed, templates)
        bank = worlds.bank_name(seed, templates)
        worlds.fill(recall, bank, facts)
        for question in questions:
            yield bank, question.text, ASKED_AT, frozenset(question.relevant)


SETS: dict[str, Callable[[Recall, Path], Iterator[Asked]]] = {
    "locomo": lambda recall, data: of_conversations(
        recall, data / "locomo_dev.json", conversations.fill_plain
    ),
    "locomo_context": lambda recall, data: of_conversations(
        recall, data / "locomo_dev.json", conversations.fill_in_context
    ),
    "locomo_rules": lambda recall, data: of_conversations(
        recall, data / "locomo_dev.json", fill_by_rules
    ),
    "beam": lambda recall, data: of_conversations(
        recall, data / "beam_dev.json", conversations.fill_plain
    ),
    "xquad": lambda recall, data: of_conversations(
        recall, data / "xquad_dev.json", conversations.fill_plain, lambda bank: bank.endswith("en")
    ),
    "fiqa": lambda recall, data: of_conversations(
        recall, data / "fiqa_dev.json", conversations.fill_plain
    ),
    "musique": lambda recall, data: of_musique(recall, data / "musique_dev.json"),
    "worlds_dev": lambda recall, _data: of_worlds(recall, "dev"),
    "worlds_third": lambda recall, _data: of_worlds(recall, "third"),
}


def measure(recall: Recall, name: str, asked: Sequence[Asked]) -> harness.Figures:
    """Ask every question of a set twice."""
    depth = 5 if name.startswith(("musique", "worlds")) else 10
    rows: list[tuple[float, ...]] = []
    times: list[float] = []
    out = 0
    for bank, text, at, relevant in asked:
        row: list[float] = []
        took: list[float] = []
        for is_reranked in (False, True):
            report = recall.recall_report(
                bank,
                text,
                top_k=TOP_K,
                rerank=is_reranked,
                rerank_seconds=60,
                reference_time=at,
            )
            found_ids = (
                (hit.fact_key if name == "musique" else hit.source_id) or "" for hit in report.hits
            )
            ranking = [*dict.fromkeys(found_ids)]
            found = len(relevant & set(ranking[:depth])) / len(relevant)
            row += [conversations.ndcg(ranking, relevant, 10), found]
            took.append(report.timings.database + report.timings.rerank)
        if report.reranking is not None or report.reranked:
            times.append(took[1] - took[0])
        out += "kept out" in (report.reranking or "")
        rows.append(tuple(row))
    fused, found, reranked, found_then = map(fmean, zip(*rows, strict=True))
    gain = intervals([[after - before for before, _, after, _ in rows]])[0]
    return {
        "questions": len(rows),
        "fused": round(fused, 4),
        "reranked": round(reranked, 4),
        "gain": round(gain.mean, 4),
        "gain_low": round(gain.low, 4),
        "gain_high": round(gain.high, 4),
        f"fused_recall{depth}": round(found, 4),
        f"reranked_recall{depth}": round(found_then, 4),
        "out": round(out / len(rows), 3),
        "p50_ms": round(median(times), 2) if times else 0.0,
    }


def stored(dsn: str) -> harness.Figures:
    """Return how many bytes the token vectors of a fact take."""
    with psycopg.connect(dsn) as connection:
        mean, most = harness.one(
            connection,
            "select avg(octet_length(e.tokens)), max(octet_length(e.tokens))"
            " from pgrecall.embedding e where e.kind = 'text'",
        )
    return {"bytes": round(float(mean or 0), 0), "bytes_max": float(most or 0)}


def main() -> None:
    parser = harness.arguments(__doc__, "")
    parser.add_argument("--sets", nargs="+", choices=SETS)
    parser.add_argument("--reranker", default="late-interaction", help="or cross-encoder")
    options = parser.parse_args()
    embedder = conversations.caching_embedder()
    figures: harness.Figures = {}
    for name in options.sets or (SMOKE_SETS if options.smoke else SETS):
        with (
            harness.database() as dsn,
            Recall.connect(dsn, embedder=embedder, reranker=options.reranker) as recall,
        ):
            questions = SETS[name](recall, options.data)
            asked = list(islice(questions, SMOKE if options.smoke else None))
            found = measure(recall, name, asked) | stored(dsn)
        named = {f"late.{name}.{what}": value for what, value in found.items()}
        harness.show(named)
        figures |= named
    harness.write(options, figures, {"reranker": options.reranker})


if __name__ == "__main__":
    main()
