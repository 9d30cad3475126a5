"""Make the head that gives the packaged embedder its token vectors: embedder/tokens.onnx.

    python -m bench.training.token_head
    python -m bench.training.token_head --steps 0 --dimensions 32

The head is a small ONNX model without inputs of its own. Two ONNX files, one after the other, are
one model, because protobuf merges messages: the driver loads model.onnx followed by this file, and
the embedder has three more outputs. The head takes the last layer of the embedder, subtracts the
mean, and projects to a few dimensions. A second projection to one number gives the weight of a
token.

1. The last layer of 3,000 sentences of --data: its mean and 128 principal directions. The weight of
   a token starts as the root of its inverse document frequency in 100,000 sentences, as far as a
   linear function of the last layer gives it.
2. Both are trained on --groups, questions with one answer and hard negatives, none of them from the
  sets that we measure on: cross-entropy of MaxSim over all answers of 16 questions. The embedder is
  not trained, so that embeddings do not change.
3. The projection is the mean of the first principal directions and the trained ones: on texts
  unlike the training data, half of the way is better than all of it.

bench/quality/late.py measures what reranking gains with a head.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from bench import harness
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from torch.nn import functional

PACKAGED = harness.ROOT / "pydriver" / "pgrecall" / "embedder"
SENTENCES, COUNTED, VOCABULARY = 3000, 100_000, 30_522
GROUPS = {"squad-sent": 1100, "squad-para": 1000, "fairytale": 1000, "friends": 1000, "qmsum": 300}
NEGATIVES, TOKENS, DIRECTIONS = 4, 160, 128
BATCH, QUESTION, TEXT, USED = 16, 40, 128, 3  # lengths in tokens; negatives of each question used
HELD, RATE, SHARE = 150, 2e-3, 0.5
BEFORE_TEXT = 3
LEAST_IDF = 0.3

Array = np.ndarray[Any, Any]
Group = tuple[str, int, list[int]]
Read = Callable[[str], tuple[Array, Array]]


def last_layer(model: ModelProto) -> str:
    """Return the name of what the embedding is the mean of."""
    return str(next(node.input[0] for node in model.graph.node if node.op_type == "ReduceSum"))


def reader() -> tuple[Read, Tokenizer]:
    """Return a function from a text to its last layer and its token ids, without the prompt."""
    model = onnx.load(PACKAGED / "model.onnx")
    name = last_layer(model)
    model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    tokenizer = Tokenizer.from_file(str(PACKAGED / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(TOKENS)

    def read(text: str) -> tuple[Array, Array]:
        ids = np.array(tokenizer.encode(text).ids, np.int64)
        [found] = session.run([name], {"input_ids": ids[None]})
        return found[0], ids

    return read, tokenizer


def principal(sentences: Sequence[str], read: Read, tokenizer: Tokenizer) -> dict[str, Array]:
    """Return mean and principal directions of the last layer, and the sentences with each token.

    Prompts and end tokens count here, as they do in the embedding.
    """
    layers = np.concatenate([read(f"passage: {text}")[0] for text in sentences[:SENTENCES]])
    mean = layers.astype(np.float64).mean(0)
    centred = layers - mean
    directions = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :DIRECTIONS]
    counts: Counter[int] = Counter()
    for one in tokenizer.encode_batch(list(sentences)):
        counts.update(set(one.ids))
    document = np.array([counts[n] for n in range(VOCABULARY)])
    return {
        "mean": mean.astype(np.float32),
        "directions": directions.astype(np.float32),
        "idf": np.log((len(sentences) + 1) / (document + 1)).astype(np.float32),
    }


def layers_of(path: Path, read: Read, most: int) -> tuple[list[Group], list[Array], list[Array]]:
    """Read the groups: source, number of the question, numbers of its texts, the answer first."""
    by_source: dict[str, list[dict[str, Any]]] = {}
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            by_source.setdefault(row["src"], []).append(row)
    random = Random(5)
    rows = [row for source, n in GROUPS.items() for row in random.sample(by_source[source], n)]
    random.shuffle(rows)
    numbers: dict[str, int] = {}
    layers: list[Array] = []
    ids: list[Array] = []

    def number(text: str) -> int:
        if text not in numbers:
            layer, tokens = read(text)
            numbers[text] = len(layers)
            layers.append(layer[BEFORE_TEXT:-1].astype(np.float16))
            ids.append(tokens[BEFORE_TEXT:-1].astype(np.int32))
        return numbers[text]

    groups = []
    for row in rows[:most]:
        texts = [row["pos"], *row["neg"][:NEGATIVES]]
        groups.append(
            (
                row["src"],
                number(f"query: {row['q']}"),
                [number(f"passage: {text}") for text in texts],
            )
        )
    return groups, layers, ids


def weight_of(layers: Sequence[Array], ids: Sequence[Array], idf: Array) -> tuple[Array, float]:
    """Return the linear function of a layer that best fits half the logarithm of the IDF."""
    chosen = np.random.default_rng(3).choice(len(layers), min(3000, len(layers)), replace=False)
    seen = np.concatenate([layers[n] for n in chosen])
    wanted = np.log(np.maximum(idf[np.concatenate([ids[n] for n in chosen])], LEAST_IDF)) / 2
    mean = float(wanted.mean())
    ridge = seen.T @ seen + 10 * np.eye(seen.shape[1])
    return np.linalg.solve(ridge, seen.T @ (wanted - mean)).astype(np.float32), mean


class Head(torch.nn.Module):  # type: ignore[misc]
    """Projects to token vectors and to the logarithm of their weights."""

    def __init__(self, dimensions: int, weight: Array, mean: float) -> None:
        super().__init__()
        self.projection = torch.nn.Parameter(torch.eye(DIRECTIONS)[:, :dimensions].clone())
        self.shift = torch.nn.Parameter(torch.zeros(dimensions))
        self.weight = torch.nn.Parameter(torch.tensor(weight))
        self.scale = torch.nn.Parameter(torch.tensor(math.log(20.0)))
        self.mean = mean

    def forward(self, questions: Sequence[Array], texts: Sequence[Array]) -> torch.Tensor:
        asked, is_asked = padded(questions, QUESTION)
        given, is_given = padded(texts, TEXT)
        queries, vectors = (
            functional.normalize(x @ self.projection + self.shift, dim=-1) for x in (asked, given)
        )
        weights = torch.exp(asked @ self.weight + self.mean) * is_asked
        weights = weights / weights.sum(1, keepdim=True).clamp_min(1e-6)
        cosines = torch.einsum("qid,tjd->qitj", queries, vectors)
        nearest = cosines.masked_fill(~is_given[None, None], -1).amax(-1)
        return (nearest * weights[:, :, None]).sum(1)


def padded(layers: Sequence[Array], most: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Join layers of different lengths; the second result says which tokens exist."""
    length = min(most, max(len(layer) for layer in layers))
    joined = torch.zeros(len(layers), length, DIRECTIONS)
    is_there = torch.zeros(len(layers), length, dtype=torch.bool)
    for n, layer in enumerate(layers):
        part = torch.from_numpy(layer[:length])
        joined[n, : len(part)] = part
        is_there[n, : len(part)] = True
    return joined, is_there


def train(head: Head, groups: Sequence[Group], layers: Sequence[Array], steps: int) -> None:
    """Train the head; print how often the answer of the held groups comes first."""
    rng = np.random.default_rng(3)
    held, rest = groups[-HELD:], groups[:-HELD]
    slow = [head.projection, head.shift, head.weight]
    optimizer = torch.optim.AdamW(
        [{"params": slow, "lr": RATE}, {"params": [head.scale], "lr": 5e-3}], weight_decay=0
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda n: min(1.0, (n + 1) / 20) * (1 - n / steps)
    )
    print(f"right at first before: {right(head, held, layers):.3f}")
    order: list[int] = []
    for step in range(steps):
        if len(order) < BATCH:
            order = rng.permutation(len(rest)).tolist()
        batch = [rest[order.pop()] for _ in range(BATCH)]
        texts = [text for _, _, own in batch for text in own[: USED + 1]]
        places = np.cumsum([0, *(len(own[: USED + 1]) for _, _, own in batch)])[:-1]
        logits = head([layers[q] for _, q, _ in batch], [layers[n] for n in texts])
        logits = logits * head.scale.exp()
        for row, (_, _, own) in enumerate(batch):  # the answer of another question, too
            same = [n for n, text in enumerate(texts) if text == own[0] and n != places[row]]
            logits[row, same] = -1e4
        loss = functional.cross_entropy(logits, torch.tensor(places))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    print(f"right at first after: {right(head, held, layers):.3f}")


@torch.no_grad()  # type: ignore[untyped-decorator]
def right(head: Head, groups: Sequence[Group], layers: Sequence[Array]) -> float:
    first = [head([layers[q]], [layers[n] for n in own])[0].argmax() for _, q, own in groups]
    return float(np.mean([int(place) == 0 for place in first]))


def model_of(head: Head, known: dict[str, Array], number: int) -> ModelProto:
    """Write the head as the part of a model that follows the embedder's."""
    layer = last_layer(onnx.load(PACKAGED / "model.onnx", load_external_data=False))
    dimensions = head.projection.shape[1]
    first = torch.eye(DIRECTIONS)[:, :dimensions]
    projection = ((1 - SHARE) * first + SHARE * head.projection).detach().numpy()
    shift = SHARE * head.shift.detach().numpy()
    tensors = {
        "token_mean": known["mean"],
        "token_directions": known["directions"] @ projection,
        "token_shift": shift,
        "token_weight_directions": (known["directions"] @ head.weight.detach().numpy())[:, None],
        "token_weight_shift": np.float32(head.mean),
        "token_axis": np.array([-1]),
        "token_projection": np.array([number]),
    }
    node = helper.make_node
    graph = GraphProto(
        initializer=[numpy_helper.from_array(np.asarray(v), k) for k, v in tensors.items()],
        node=[
            node("Sub", [layer, "token_mean"], ["token_centred"]),
            node("MatMul", ["token_centred", "token_directions"], ["token_projected"]),
            node("Add", ["token_projected", "token_shift"], ["token_shifted"]),
            node("LpNormalization", ["token_shifted"], ["token_vectors"], axis=-1, p=2),
            node("MatMul", ["token_centred", "token_weight_directions"], ["token_weighed"]),
            node("Add", ["token_weighed", "token_weight_shift"], ["token_logarithms"]),
            node("Squeeze", ["token_logarithms", "token_axis"], ["token_squeezed"]),
            node("Exp", ["token_squeezed"], ["token_weights"]),
        ],
        output=[
            helper.make_tensor_value_info(
                "token_vectors", TensorProto.FLOAT, ["batch", "tokens", dimensions]
            ),
            helper.make_tensor_value_info("token_weights", TensorProto.FLOAT, ["batch", "tokens"]),
            helper.make_tensor_value_info("token_projection", TensorProto.INT64, [1]),
        ],
    )
    return ModelProto(graph=graph)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=harness.DATA / "sentences.txt.xz")
    parser.add_argument("--groups", type=Path, default=harness.DATA / "rerank_train.jsonl.xz")
    parser.add_argument("--dimensions", type=int, default=48, help="an even number")
    parser.add_argument("--most", type=int, default=2001, help="groups that are read")
    parser.add_argument("--steps", type=int, default=400, help="0: principal directions alone")
    parser.add_argument("--number", type=int, default=1, help="1 to 255, another for each head")
    parser.add_argument("--out", type=Path, default=PACKAGED / "tokens.onnx")
    options = parser.parse_args()
    torch.manual_seed(3)
    read, tokenizer = reader()
    sentences = list(islice(harness.lines(harness.require(options.data)), COUNTED))
    known = principal(sentences, read, tokenizer)
    groups, layers, ids = layers_of(harness.require(options.groups), read, options.most)
    directions, mean = known["directions"], known["mean"]
    layers = [(layer.astype(np.float32) - mean) @ directions for layer in layers]
    head = Head(options.dimensions, *weight_of(layers, ids, known["idf"]))
    if options.steps:
        train(head, groups, layers, options.steps)
    options.out.write_bytes(
        model_of(head, known, options.number).SerializeToString(deterministic=True)
    )
    print(f"{options.out}: {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
