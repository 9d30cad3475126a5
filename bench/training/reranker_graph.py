"""Rewrite the graph of an exported model, so that onnxruntime has less to compute.

    python -m bench.training.reranker_graph exported.onnx model.onnx
    python -m bench.training.reranker_graph --rows model.onnx model.onnx

Takes a BERT with one output, quantised by train_reranker.py, and keeps its weights. What changes:

* Attention is one operation without a mask, because each pair is read alone and has no padding.
* Queries, keys and values come from one product, with their matrices side by side.
* The last layer computes only the first token, which the answer is read from.

* Layers are normalised by an addition and LayerNormalization, because onnxruntime's operation for
  both, SkipLayerNormalization, takes four times as long.
* The inputs of feed-forward layers are quantised row by row (by_row).

A pair of 141 tokens takes 13.3 ms, as exported 20.0. With only the first token, other activations
are quantised, so that answers differ by 0.06 on average (logits).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

HEADS = 12
OPSET, IR_VERSION = 18, 8
FUSED = "com.microsoft"
ENCODER = "bert.encoder.layer"
WIDE = re.compile(r"\.layer\.\d+\.(intermediate|output)\.dense\.")  # feed-forward layers' matrices
INPUTS = 5  # of a quantised layer: x, matrix, scale, zero point and bias


class Graph:
    """A graph under construction, with the tensors of an exported one."""

    def __init__(self, exported: ModelProto) -> None:
        tensors = exported.graph.initializer
        self._given = {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}
        # The exporter names the matrices of the encoder by numbers, and products by their layer.
        self._matrices = {
            node.name: node.input[1].removesuffix("_quantized")
            for node in exported.graph.node
            if node.op_type == "MatMulInteger"
        }
        self._nodes: list[NodeProto] = []
        self._tensors: dict[str, np.ndarray[Any, Any]] = {}
        self.layers = sum("/intermediate/" in name for name in self._matrices)

    def run(self, operation: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operation and return the name of its result."""
        (result,) = self.split(operation, 1, *inputs, domain=domain, **attributes)
        return result

    def split(
        self, operation: str, results: int, *inputs: str, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Add an operation with several results and return their names."""
        names = [f"{operation}_{len(self._nodes)}_{n}" for n in range(results)]
        self._nodes.append(helper.make_node(operation, inputs, names, domain=domain, **attributes))
        return names

    def constant(self, name: str, value: np.ndarray[Any, Any]) -> str:
        self._tensors[name] = value
        return name

    def given(self, name: str) -> str:
        """Copy a tensor from the exported model."""
        return self.constant(name, self._given[name])

    def dequantised(self, name: str, operation: str, *inputs: str) -> str:
        """Look up rows of a quantised table."""
        rows = self.run(operation, self.given(f"{name}_quantized"), *inputs)
        parts = (self.given(f"{name}_{part}") for part in ("scale", "zero_point"))
        return self.run("DequantizeLinear", rows, *parts)

    def dense(self, x: str, *names: str) -> str:
        """Add linear layers of one input side by side, with dynamic quantisation."""
        found = [self._matrix(name) for name in names]
        columns = [self._given[f"{matrix}_quantized"].shape[1] for matrix in found]

        def joined(suffix: str) -> str:
            parts = [self._given[f"{matrix}_{suffix}"] for matrix in found]
            if suffix != "quantized":
                parts = [np.broadcast_to(p, n) for p, n in zip(parts, columns, strict=True)]
            return self.constant(f"{names[0]}.{suffix}", np.concatenate(parts, axis=-1))

        bias = np.concatenate([self._given[f"{name}.bias"] for name in names])
        return self.run(
            "DynamicQuantizeMatMul",
            x,
            *(joined(suffix) for suffix in ("quantized", "scale", "zero_point")),
            self.constant(f"{names[0]}.bias", bias),
            domain=FUSED,
        )

    def _matrix(self, name: str) -> str:
        path = f"/{name.replace('.', '/')}/".replace("/layer/", "/layer.")
        found: list[str] = [m for place, m in self._matrices.items() if path in place]
        (matrix,) = found
        return matrix

    def normed(self, x: str, skipped: str, name: str) -> str:
        """Add a layer normalisation of a sum."""
        total = self.run("Add", x, skipped)
        parts = (self.given(f"{name}.{part}") for part in ("weight", "bias"))
        return self.run("LayerNormalization", total, *parts, axis=-1, epsilon=1e-12)

    def embedded(self, segments: str = "token_type_ids") -> str:
        """Add the embeddings of words, segments and positions."""
        name = "bert.embeddings"
        word = self.dequantised(f"{name}.word_embeddings.weight", "Gather", "input_ids")
        segment = self.dequantised(f"{name}.token_type_embeddings.weight", "Gather", segments)
        length = self.run("Shape", "input_ids", start=1, end=2)
        position = self.dequantised(
            f"{name}.position_embeddings.weight", "Slice", "zero", length, "zero"
        )
        return self.normed(
            self.run("Add", word, segment),
            self.run("Expand", position, self.run("Shape", word)),
            f"{name}.LayerNorm",
        )

    def layer(self, x: str, name: str, *, is_last: bool) -> str:
        """Add a layer of the encoder; the last one for the first token alone."""
        query, key, value = (f"{name}.attention.self.{n}" for n in ("query", "key", "value"))
        if is_last:
            pair = self.dense(x, key, value)
            x = self.run("Slice", x, "zero", "one", "one")
            parts = [
                self.dense(x, query),
                *self.split("Split", 2, pair, axis=-1, num_outputs=2),
            ]
        else:
            all_three = self.dense(x, query, key, value)
            parts = self.split("Split", 3, all_three, axis=-1, num_outputs=3)
        seen = self.run("MultiHeadAttention", *parts, domain=FUSED, num_heads=HEADS)
        attended = self.dense(seen, f"{name}.attention.output.dense")
        x = self.normed(attended, x, f"{name}.attention.output.LayerNorm")
        inner = self.run("Gelu", self.dense(x, f"{name}.intermediate.dense"), domain=FUSED)
        outer = self.dense(inner, f"{name}.output.dense")
        return self.normed(outer, x, f"{name}.output.LayerNorm")

    def model(self, result: str, inputs: Sequence[str], output: str, width: int) -> ModelProto:
        """Return the model, whose answer is a result."""
        self._nodes.append(helper.make_node("Identity", [result], [output]))
        graph = helper.make_graph(
            self._nodes,
            "bert",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
                for name in inputs
            ],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", width])],
            [
                numpy_helper.from_array(np.array(value, order="C"), name)
                for name, value in self._tensors.items()
            ],
        )
        domains = [helper.make_opsetid("", OPSET), helper.make_opsetid(FUSED, 1)]
        return by_row(helper.make_model(graph, opset_imports=domains, ir_version=IR_VERSION))


def by_row(model: ModelProto) -> ModelProto:
    """Return a model whose feed-forward layers quantise each row of their input by itself.

    onnxruntime quantises an input by its least and its greatest element, and a few tokens have
    elements far beyond those of all others. So each row is divided by its greatest element before
    the product, and multiplied by it afterwards.
    """
    nodes: list[NodeProto] = []
    for node in model.graph.node:
        if len(node.input) < INPUTS or not WIDE.search(node.input[1]):
            nodes.append(node)
            continue
        x, *parts, bias = node.input
        size, greatest, unit, product, scaled = (f"{node.output[0]}_{n}" for n in range(INPUTS))
        nodes += [
            helper.make_node("Abs", [x], [size]),
            helper.make_node("ReduceMax", [size, "last"], [greatest], keepdims=1),
            helper.make_node("Div", [x, greatest], [unit]),
            helper.make_node("DynamicQuantizeMatMul", [unit, *parts], [product], domain=FUSED),
            helper.make_node("Mul", [product, greatest], [scaled]),
            helper.make_node("Add", [scaled, bias], node.output),
        ]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1]), "last"))
    return model


def fused(exported: ModelProto) -> ModelProto:
    """Return a reranker with fewer operations; its pairs must not be padded."""
    graph = Graph(exported)
    graph.constant("zero", np.array([0], np.int64))
    graph.constant("one", np.array([1], np.int64))
    x = graph.embedded()
    for number in range(graph.layers):
        x = graph.layer(x, f"{ENCODER}.{number}", is_last=number == graph.layers - 1)
    first = graph.run("Squeeze", x, "one")
    pooled = graph.run("Tanh", graph.dense(first, "bert.pooler.dense"))
    answer = graph.dense(pooled, "classifier")
    return graph.model(answer, ("input_ids", "token_type_ids"), "logits", 1)


def fused_embedder(exported: ModelProto, mean: np.ndarray[Any, Any]) -> ModelProto:
    """Return an embedder with fewer operations; its texts must not be padded.

    A vector is the mean over the tokens less the mean of all texts, at length 1.

    Args:
        exported: An encoder, whose last layer is its answer.
        mean: What is subtracted from each direction, shape (width,).

    """
    graph = Graph(exported)
    graph.constant("zero", np.array([0], np.int64))
    graph.constant("tokens", np.array([1], np.int64))
    graph.constant("mean", mean.astype(np.float32))
    x = graph.embedded("zero")
    for number in range(graph.layers):
        x = graph.layer(x, f"{ENCODER}.{number}", is_last=False)
    # A sum has the direction of the mean.
    direction = graph.run(
        "LpNormalization", graph.run("ReduceSum", x, "tokens", keepdims=0), axis=-1, p=2
    )
    centred = graph.run("LpNormalization", graph.run("Sub", direction, "mean"), axis=-1, p=2)
    return graph.model(centred, ("input_ids",), "embedding", len(mean))


if __name__ == "__main__":
    source, target = map(Path, sys.argv[-2:])
    change = by_row if sys.argv[1] == "--rows" else fused
    onnx.save(change(onnx.load(source)), target)
