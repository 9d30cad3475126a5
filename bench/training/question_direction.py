"""Print the direction that the embeddings of questions share, as sql/values/similarity.sql has it.

    python -m bench.training.question_direction

It is the mean embedding, by the packaged embedder, of 800 questions of the training data of the
reranker, 160 of each part. Elements are rounded to a third of their standard deviation. No question
of a benchmark is among them.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict

import numpy as np
from bench import harness

from pgrecall.embedders import DEFAULT_EMBEDDER, embed_as

OF_EACH = 160


def main() -> None:
    options = harness.arguments(__doc__, "rerank_train.jsonl.xz").parse_args()
    parts: dict[str, list[str]] = defaultdict(list)
    for line in harness.lines(harness.require(options.data)):
        group = json.loads(line)
        parts[group["src"]].append(group["q"])
    dice = random.Random(1)
    asked = [text for name in sorted(parts) for text in dice.sample(parts[name], OF_EACH)]
    vectors = np.array([[*one] for one in embed_as(DEFAULT_EMBEDDER, "query", asked)])
    mean = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).mean(axis=0)
    print(",".join(str(round(x)) for x in 3 * mean / mean.std()))


if __name__ == "__main__":
    main()
