"""Measure the reranker: how long it takes, and what the int8 ONNX model loses against torch.

    python -m bench.quality.rerank --smoke
    python -m bench.quality.rerank --full --torch /path/to/run/model

--torch names the directory of the model that the packaged one was made from (train_reranker.py
leaves it in its --out). It does not come with the driver. Without it, the encoder that training
started from, which is as large, replaces it for the speed, and quality is not measured.

Figures, of the packaged reranker as the driver uses it:

* p50_ms_50, p50_ms_300: milliseconds for 50 and 300 candidates of 40 words, without cached scores.
* onnx_speedup: the time that torch in fp32 takes for the same 50 pairs, sorted by length and in one
  batch, divided by that of ONNX; asked in turn, the median of the ratios.
* ndcg10_delta: nDCG@10 of ONNX minus that of torch over the first 50 hits of hybrid_recall, ordered
  by the reranker alone; over every fourth question that it does not decline.
* rerank.time_ratio: processor time of reranking with its defaults, for ten hits, over that of
  reading all 50 candidates; the median over all questions. rerank.read: candidates that are read,
  on average; rerank.read_p50: the median.
* rerank.ndcg10_delta: nDCG@10 of that order, minus that of reading all. rerank.recall20_delta: the
  same of recall@20, for twenty hits.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from itertools import cycle, islice
from pathlib import Path
from statistics import fmean, median
from time import process_time

from bench import conversations, harness
from bench.conversations import Conversation, Question

from pgrecall import (
    CrossEncoderReranker,
    OnnxReranker,
    Recall,
    Reranker,
    RerankerUnavailable,
)
from pgrecall.asking.dated_text import dated_text
from pgrecall.asking.ranking import FirstPlaces, Order
from pgrecall.embedders import packaged_model

WORDS = 40
CANDIDATES = 50
MANY = 300
EVERY = 4

Pairs = tuple[str, list[str]]


def texts_of(given: Sequence[Conversation]) -> list[str]:
    """Cut all turns into texts of 40 words."""
    words = [word for c in given for turn in c.turns for word in turn.text.split()]
    texts = (" ".join(words[n : n + WORDS]) for n in range(0, len(words) - WORDS + 1, WORDS))
    return list(dict.fromkeys(texts))


def timed_pairs(texts: Sequence[str], asked: Sequence[Question], count: int) -> Iterator[Pairs]:
    """Yield questions without end, each with texts that it did not have before."""
    for n, question in enumerate(cycle(asked)):
        first = n * count % (len(texts) - count + 1)
        yield question.text, list(texts[first : first + count])


def times(
    onnx: Reranker, torch: Reranker, given: Sequence[Conversation], rounds: int
) -> harness.Figures:
    texts, asked = texts_of(given), conversations.questions(given)
    if len(texts) < CANDIDATES:
        sys.exit(
            f"too little is said: {CANDIDATES} texts of {WORDS} words are needed, not {len(texts)}"
        )
    few = timed_pairs(texts, asked, CANDIDATES)
    for reranker in (onnx, torch):
        harness.seconds(reranker.scores, *next(few))
    both = [
        (harness.seconds(onnx.scores, *pairs), harness.seconds(torch.scores, *pairs))
        for pairs in islice(few, rounds)
    ]
    figures = {
        "p50_ms_50": round(1000 * median(time for time, _ in both), 1),
        "onnx_speedup": round(median(slow / fast for fast, slow in both), 2),
    }
    if len(texts) < MANY:
        print(f"no p50_ms_300: {len(texts)} texts of {WORDS} words are too few")
    else:
        many = islice(timed_pairs(texts, asked, MANY), max(1, rounds // 4))
        all_300 = [harness.seconds(onnx.scores, *pairs) for pairs in many]
        figures["p50_ms_300"] = round(1000 * median(all_300), 1)
    return figures


def difference(onnx: Reranker, torch: Reranker, given: Sequence[Conversation]) -> harness.Figures:
    gains = []
    with (
        harness.database() as dsn,
        Recall.connect(dsn, embedder=conversations.caching_embedder()) as recall,
    ):
        for conversation in given:
            conversations.fill_in_context(recall, conversation)
            for question in conversation.questions[::EVERY]:
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
                    found.append(conversations.measures(ranking, question.relevant)[0])
                gains.append(found)
    if not gains:
        print("no ndcg10_delta: the model declines every question")
        return {}
    ndcg = [fmean(column) for column in zip(*gains, strict=True)]
    print(f"nDCG@10 of {len(gains)} questions: ONNX {ndcg[0]:.4f}, torch {ndcg[1]:.4f}")
    return {"ndcg10_delta": round(ndcg[0] - ndcg[1], 4)}


def economy(given: Sequence[Conversation], every: int) -> harness.Figures:
    """Compare reading until the first places are settled with reading everything."""
    all_of_them, as_it_comes = OnnxReranker(), OnnxReranker()
    ratios, read = [], []
    measured: list[tuple[float, ...]] = []
    with (
        harness.database() as dsn,
        Recall.connect(dsn, embedder=conversations.caching_embedder()) as recall,
    ):
        for conversation in given:
            conversations.fill_in_context(recall, conversation)
        for question in conversations.questions(given)[::every]:
            now = question.asked_at or datetime.now(timezone.utc)
            hits = recall.recall(
                question.bank, question.text, reference_time=now, top_k=CANDIDATES, rerank=False
            )
            texts = [dated_text(hit) for hit in hits]
            order = Order(hits, reference_time=now, during=None)

            def scores(
                reranker: OnnxReranker,
                first: FirstPlaces | None = None,
                query: str = question.text,
                texts: Sequence[str] = texts,
            ) -> tuple[Sequence[float], float]:
                start = process_time()
                found = reranker.submit(query, texts, is_enough=first).result().found
                return found, process_time() - start

            try:
                few, short = scores(as_it_comes, FirstPlaces(order, len(hits), 10))
                many, long = scores(all_of_them)
            except RerankerUnavailable:  # does not look English
                continue
            ratios.append(short / long)
            read.append(len(few))
            twenty = FirstPlaces(order, len(hits), 20)
            most = next((n for n, score in enumerate(many, 1) if twenty(score)), len(many))
            measured.append(
                tuple(
                    conversations.measures(
                        [hit.source_id or "" for hit in order.hits(some)], question.relevant
                    )[place]
                    for some, place in ((few, 0), (many, 0), (many[:most], 2), (many, 2))
                )
            )
    ndcg, ndcg_all, recall20, recall20_all = map(fmean, zip(*measured, strict=True))
    return {
        "rerank.time_ratio": round(median(ratios[1:] or ratios), 3),  # the first one loads
        "rerank.read": round(fmean(read), 1),
        "rerank.read_p50": median(read),
        "rerank.ndcg10_delta": round(ndcg - ndcg_all, 4),
        "rerank.recall20_delta": round(recall20 - recall20_all, 4),
    }


def main() -> None:
    parser = harness.arguments(__doc__, "locomo_dev.json", "{program}-{data.stem}")
    parser.add_argument("--torch", type=Path, help="directory of the same model in fp32")
    parser.add_argument("--every", type=int, default=1, help="of the questions for rerank.*")
    options = parser.parse_args()
    path = options.data
    given = conversations.read(path)
    onnx = OnnxReranker()
    torch = CrossEncoderReranker(options.torch or packaged_model(), batch_size=CANDIDATES)
    figures = times(onnx, torch, given, 5 if options.smoke else 30)
    if options.torch:
        figures |= difference(onnx, torch, given[:1] if options.smoke else given)
    else:
        print("no ndcg10_delta: the model in fp32 does not come with the driver; pass --torch")
    every = 8 if options.smoke else options.every
    figures |= economy(given[:1] if options.smoke else given, every)
    harness.show(figures)
    settings = {"words": WORDS, "every": every}
    harness.write(options, figures, settings)


if __name__ == "__main__":
    main()
