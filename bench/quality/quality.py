"""Measure what is found: nDCG and recall over questions whose answers are known.

    python -m bench.quality.quality --smoke
    python -m bench.quality.quality --full
    python -m bench.quality.quality --data /path/to/conversations.json
    python -m bench.quality.quality --ablate
    python -m bench.quality.quality --full --model /path/to/e5-small --calibrate

The file is that of bench/conversations.py, which reads it and fills the banks.

The turns before and after a turn are its `context`, where somebody speaks. Each arm alone and each
fusion are measured, also over banks without context (`no_context`), and both with the packaged
cross-encoder as reranker; late.py measures late interaction. Where a tenth of the turns are longer
than 100 words, these are also cut at ends of sentences into `passages` of about 100 words; each is
a fact, and of each turn the best is kept. Where conversations have sessions or rounds, `session`
looks for those: the source of a turn is its session, and the best turn of each is kept.

Figures are means over the questions, those without a relevant turn left out:

* ndcg10: binary gain, log2 discount (Jarvelin and Kekalainen 2002); recall10, recall20: the share
  of the relevant turns among the first 10 and 20.
* hit1, ndcg5: the share of questions whose first session is relevant, and nDCG@5 of sessions.
* database_p50_ms, database_p95_ms: of the one call, as the client sees it.
* gain, gain_low, gain_high: nDCG@10 of the reranked order minus that before, with the 95% interval
  of a bootstrap over the questions.

--model takes another embedding model of sentence-transformers. --calibrate gives its banks the
constants that pgrecall.calibrate() measures on the turns of the file.

--ablate instead measures the fused recall without each of its signals: an arm gets weight 0, a part
of the graph arm loses its rows. graph_gain.<category>.<measure> is what the graph arm adds,
graph_gain.worst the least that it adds to nDCG@10 or recall@10 of any category.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import psycopg
from bench import conversations, harness
from bench.conversations import MEASURES, Conversation, Question, Turn

from pgrecall import Embedder, Recall, calibrate
from pgrecall.evaluation import intervals

SIGNALS = {
    **dict.fromkeys(("semantic", "lexical", "graph", "temporal"), ""),
    "mentions": "delete from pgrecall.mention",
    "relations": "delete from pgrecall.relation",
    "causes": "delete from pgrecall.link where kind <> 'temporal'",
    "neighbours": "delete from pgrecall.link where kind = 'temporal'",
}
PLAIN_RRF = {"weights": {"semantic": 1, "lexical": 1}, "fusion": "rrf", "rrf_k": 60, "doubt": 0}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "semantic": {"arms": ["semantic"]},
    "lexical": {"arms": ["lexical"]},
    "graph": {"arms": ["graph"]},
    "temporal": {"arms": ["temporal"]},
    "rrf": {"arms": ["semantic", "lexical"], **PLAIN_RRF},
    "fused": {},
    "fused_rrf": {"fusion": "rrf"},
    "fused_linear": {"fusion": "linear"},
    "no_context": {},
    "passages": {"collapse": True},
    "reranked": {"rerank": True, "rerank_seconds": 60},  # time must not run out
    "reranked_no_context": {"rerank": True, "rerank_seconds": 60},
    "reranked_passages": {"collapse": True, "rerank": True, "rerank_seconds": 60},
    "fused_session": {"collapse": True},
    "session": {"collapse": True, "rerank": True, "rerank_seconds": 60},
}
# What was ranked before.
RERANKED = {
    "reranked": "fused",
    "reranked_no_context": "no_context",
    "reranked_passages": "passages",
    "session": "fused_session",
}
# Other contents of banks than turns in context: suffixes of the names of banks and configurations.
VARIANTS = {
    "no_context": " without context",
    "passages": " in passages",
    "session": " by session",
}
PASSAGE_WORDS = 100
SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")


def passages(turn: Turn) -> Iterator[dict[str, Any]]:
    """Cut a turn at ends of sentences, long sentences anywhere. All parts share its source_id."""
    words: list[str] = []
    for sentence in [*SENTENCE_END.split(turn.text), ""]:
        new = sentence.split()
        if words and (not sentence or len(words) + len(new) > PASSAGE_WORDS):
            yield replace(turn, text=" ".join(words)).fact()
            words = []
        words += new
        while len(words) > PASSAGE_WORDS:
            yield replace(turn, text=" ".join(words[:PASSAGE_WORDS])).fact()
            words = words[PASSAGE_WORDS:]


def is_long(given: Iterable[Conversation]) -> bool:
    lengths = [len(turn.text.split()) for c in given for turn in c.turns]
    tenth: float = harness.percentile(lengths, 90)
    return tenth > PASSAGE_WORDS


def has_sessions(given: Iterable[Conversation]) -> bool:
    """Tell whether each conversation has sessions that can be told apart."""
    return all(len({turn.session for turn in c.turns}) > 1 for c in given)


def load(recall: Recall, conversation: Conversation, variants: Iterable[str]) -> None:
    """Fill a bank with the turns in their context, and one for each variant."""
    conversations.fill_in_context(recall, conversation)
    for variant in variants:
        suffix = VARIANTS[variant]
        if variant == "passages":
            cut = (passage for turn in conversation.turns for passage in passages(turn))
            conversations.fill(recall, conversation, cut, suffix)
        elif variant == "session":
            conversations.fill_by_session(recall, conversation, suffix)
        else:
            conversations.fill_plain(recall, conversation, suffix)


def ask(
    recall: Recall, asked: Iterable[Question], options: Mapping[str, Any], suffix: str = ""
) -> tuple[harness.Figures, list[float]]:
    """Ask all questions. Returns figures by name, also by category, and the nDCG of each."""
    rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    firsts: list[tuple[bool, float]] = []
    milliseconds = []
    for question in asked:
        report = recall.recall_report(
            question.bank + suffix,
            question.text,
            reference_time=question.asked_at,
            top_k=20,
            **{"rerank": False, **options},
        )
        milliseconds.append(report.timings.database)
        ranking = [hit.source_id or "" for hit in report.hits]
        relevant = question.relevant
        if suffix == VARIANTS["session"]:
            relevant = question.sessions
            firsts.append(
                (not relevant.isdisjoint(ranking[:1]), conversations.ndcg(ranking, relevant, 5))
            )
        figures = conversations.measures(ranking, relevant)
        rows[""].append(figures)
        rows[f"{question.category}."].append(figures)
    found = {
        f"{category}{name}": round(fmean(column), 4)
        for category, figures in rows.items()
        for name, column in zip(MEASURES, zip(*figures, strict=True), strict=True)
    }
    if firsts:
        for name, column in zip(("hit1", "ndcg5"), zip(*firsts, strict=True), strict=True):
            found[name] = round(fmean(column), 4)
    found["database_p50_ms"] = round(harness.percentile(milliseconds, 50), 2)
    found["database_p95_ms"] = round(harness.percentile(milliseconds, 95), 2)
    return found, [ndcg for ndcg, *_ in rows[""]]


def ablate(dsn: str, embedder: Embedder, asked: Sequence[Question]) -> harness.Figures:
    """Ask all questions without each signal in turn; removed rows are restored."""
    with psycopg.connect(dsn) as connection:
        recall = Recall(connection, embedder=embedder)
        whole, _ = ask(recall, asked, {})
        table("fused", whole)
        figures = {f"fused.{key}": value for key, value in whole.items()}
        for name, taken_away in SIGNALS.items():
            if taken_away:
                connection.execute(taken_away)
            found, _ = ask(recall, asked, {} if taken_away else {"weights": {name: 0}})
            connection.rollback()
            table(f"- {name}", found)
            figures |= {f"without_{name}.{key}": value for key, value in found.items()}
            if name == "graph":
                gain = {
                    key: round(whole[key] - found[key], 4)
                    for key in whole
                    if key.endswith(("ndcg10", "recall10"))
                }
                figures |= {f"graph_gain.{key}": value for key, value in gain.items()}
                figures["graph_gain.worst"] = min(v for k, v in gain.items() if "." in k)
    return figures


def gain(
    asked: Iterable[Question], after: Sequence[float], before: Sequence[float]
) -> harness.Figures:
    """Return the mean gain over all questions, and by category, with its interval."""
    gains: dict[str, list[float]] = defaultdict(list)
    for question, new, old in zip(asked, after, before, strict=True):
        gains[""].append(new - old)
        gains[f"{question.category}."].append(new - old)
    figures = {}
    for category, rows in gains.items():
        (found,) = intervals([rows])
        name = f"{category}gain"
        print(f"{'':20} {name} {found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]")
        for part, value in (("", found.mean), ("_low", found.low), ("_high", found.high)):
            figures[f"{name}{part}"] = round(value, 4)
    return figures


def table(name: str, figures: harness.Figures) -> None:
    categories = sorted({key.rsplit(".", 1)[0] for key in figures if "." in key})
    print(f"{name:20}" + "".join(f" {figures[measure]:8.3f}" for measure in MEASURES), end="")
    print("".join(f" {figures[f'{category}.ndcg10']:11.3f}" for category in categories), end="")
    print(f" {figures['database_p50_ms']:7.1f} {figures['database_p95_ms']:7.1f}", flush=True)
    if "hit1" in figures:
        print(f"{'':20} hit1 {figures['hit1']:.3f}, ndcg5 {figures['ndcg5']:.3f}")


def main() -> None:
    parser = harness.arguments(__doc__, "locomo_dev.json", "{program}-{data.stem}")
    parser.add_argument("--model", metavar="NAME", help="name or directory of an embedding model")
    parser.add_argument(
        "--calibrate", action="store_true", help="calibrate the banks on their turns"
    )
    parser.add_argument("--ablate", action="store_true", help="measure without each signal")
    parser.add_argument(
        "--only", nargs="+", choices=CONFIGURATIONS, help="measure only these configurations"
    )
    options = parser.parse_args()
    path = options.data
    given = conversations.read(path, 1 if options.smoke else None)
    variants = ["no_context"]
    variants += ["passages"] if is_long(given) else []
    variants += ["session"] if has_sessions(given) else []
    if options.only:
        variants = [name for name in variants if any(one.endswith(name) for one in options.only)]
    left_out = tuple(VARIANTS.keys() - variants)
    configurations = {
        name: configuration
        for name, configuration in ({} if options.ablate else CONFIGURATIONS).items()
        if not (left_out and name.endswith(left_out)) and name in (options.only or CONFIGURATIONS)
    }
    figures: harness.Figures = {}
    embedder = conversations.caching_embedder(options.model)
    calibration = None
    if options.calibrate:
        texts = sorted(turn.said for conversation in given for turn in conversation.turns)
        random.Random(7).shuffle(texts)
        calibration = calibrate(embedder, texts)
        print(f"{embedder.model}: {calibration.low_cosine:.3f}, {calibration.high_cosine:.3f}")
    with (
        harness.database() as dsn,
        Recall.connect(dsn, embedder=embedder, reranker="cross-encoder") as recall,
    ):
        for conversation in given:
            load(recall, conversation, variants)
        for bank in recall.banks() if calibration else ():
            recall.calibrate_bank(bank.bank_id, calibration)
        while recall.maintain():
            pass
        asked = conversations.questions(given)
        if options.smoke:
            asked = asked[:40]
        categories = sorted({question.category for question in asked})
        head = "".join(f" {name:>8}" for name in MEASURES)
        head += "".join(f" {name[:11]:>11}" for name in categories)
        print(f"{path.stem}, {len(asked)} questions; by category: ndcg10")
        print(f"{'':20}{head} {'p50 ms':>7} {'p95 ms':>7}")
        if options.ablate:
            figures = ablate(dsn, embedder, asked)
        by_question: dict[str, list[float]] = {}
        for name, configuration in configurations.items():
            suffix = next((end for key, end in VARIANTS.items() if name.endswith(key)), "")
            found, by_question[name] = ask(recall, asked, configuration, suffix)
            table(name, found)
            if RERANKED.get(name) in by_question:
                found |= gain(asked, by_question[name], by_question[RERANKED[name]])
            figures |= {f"{path.stem}.{name}.{key}": value for key, value in found.items()}
        settings = {"model": embedder.model, "questions": len(asked)}
        harness.write(options, figures, settings, dsn)


if __name__ == "__main__":
    main()
