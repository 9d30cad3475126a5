"""Measure the packaged embedders: against each other, from a cold start, and for known facts.

    python -m bench.speed.embed --smoke
    python -m bench.speed.embed --full

Figures; processor time is that of the process and its threads:

* embed.own_over_minilm: the time that the packaged model takes to embed a question, over that of
  all-MiniLM-L6-v2, both on onnxruntime; in turn, the median of the ratios. embed.one_ms: the
  former. embed.own_many_over_minilm: the same for all texts at once.
* embed.onnx_over_torch, embed.many_over_torch: the same of all-MiniLM-L6-v2 on onnxruntime and by
  sentence-transformers.
* embed.difference: the largest difference between elements of the vectors of these two.
* embed.cold_over_none: processor time of the command `pgrecall recall` on the bank of the demo,
  over that with --no-embed, in turn; embed.cold_s: the former.
* embed.known_ratio: the time spent embedding facts that were retained before, over that of the
  first time; embed.known_retain_ratio: the same for the whole call.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter

from bench import harness

import pgrecall
from pgrecall import MiniLMEmbedder, PackagedEmbedder, Recall, SentenceTransformerEmbedder
from pgrecall.embedders import Embedder, Vector

DEMO = Path(pgrecall.__file__).with_name("demo")
BANK = "bench-embed"


class Timed:
    """An embedder that adds up the time it takes."""

    model = PackagedEmbedder.model
    dimensions = PackagedEmbedder.dimensions

    def __init__(self) -> None:
        self.seconds = 0.0
        self._embedder = PackagedEmbedder()

    def embed(self, texts: Sequence[str]) -> Iterable[Vector]:
        self.seconds -= perf_counter()
        vectors = self._embedder.embed(texts)
        self.seconds += perf_counter()
        return vectors


def against_torch(texts: list[str], questions: list[str]) -> harness.Figures:
    own, onnx, torch = PackagedEmbedder(), MiniLMEmbedder(), SentenceTransformerEmbedder()
    embedders: tuple[Embedder, ...] = (own, onnx, torch)
    for embedder in embedders:
        embedder.embed(["loads the model"])
    taken = [
        [harness.seconds(embedder.embed, [question]) for embedder in embedders]
        for question in questions
    ]
    many = [harness.seconds(embedder.embed, texts) for embedder in embedders]
    numbers = (
        [x for vector in embedder.embed(texts) for x in vector] for embedder in (onnx, torch)
    )
    return {
        "embed.own_over_minilm": round(median(a / b for a, b, _ in taken), 3),
        "embed.own_many_over_minilm": round(many[0] / many[1], 3),
        "embed.one_ms": round(1000 * median(a for a, _, _ in taken), 2),
        "embed.onnx_over_torch": round(median(b / c for _, b, c in taken), 3),
        "embed.many_over_torch": round(many[1] / many[2], 3),
        "embed.difference": float(max(abs(x - y) for x, y in zip(*numbers, strict=True))),
    }


def cold_start(dsn: str, rounds: int) -> harness.Figures:
    facts = [json.loads(line) for line in (DEMO / "facts.jsonl").read_text().splitlines()]
    with Recall.connect(dsn) as recall:
        recall.create_bank(BANK)
        try:
            recall.retain(BANK, facts)
            taken = [(command(dsn), command(dsn, "--no-embed")) for _ in range(rounds)]
        finally:
            recall.drop_bank(BANK)
    return {
        "embed.cold_over_none": round(median(a / b for a, b in taken), 2),
        "embed.cold_s": round(median(a for a, _ in taken), 2),
    }


def command(dsn: str, *options: str) -> float:
    """Return the processor time of a recall by the command; the server's does not count."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "pgrecall", "recall", BANK, "Who fears flying?", *options],
        env={**os.environ, "PGRECALL_DSN": dsn},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def known_facts(dsn: str, texts: list[str]) -> harness.Figures:
    embedder = Timed()
    embedder.embed(["loads the model"])
    with Recall.connect(dsn, embedder=embedder) as recall:
        recall.create_bank(BANK)
        try:
            taken = []
            for _ in range(2):
                embedder.seconds = 0.0
                taken.append((harness.seconds(recall.retain, BANK, texts), embedder.seconds))
        finally:
            recall.drop_bank(BANK)
    (first, first_embedding), (again, again_embedding) = taken
    return {
        "embed.known_ratio": round(again_embedding / first_embedding, 4),
        "embed.known_retain_ratio": round(again / first, 3),
    }


def main() -> None:
    options = harness.arguments(__doc__, "sentences.txt.xz").parse_args()
    size, rounds = (50, 3) if options.smoke else (500, 15)
    data = harness.lines(harness.require(options.data))
    texts = list(dict.fromkeys(islice(data, size)))
    questions = [entry["question"] for entry in json.loads((DEMO / "questions.json").read_text())]

    figures = against_torch(texts, questions * rounds)
    with harness.database() as dsn:
        figures |= cold_start(dsn, rounds) | known_facts(dsn, texts)
        harness.show(figures)
        settings = {"texts": len(texts), "rounds": rounds}
        harness.write(options, figures, settings, dsn)


if __name__ == "__main__":
    main()
