"""Write the graph of all-MiniLM-L6-v2, without its weights, as ONNX model.

Run by ``make generate``. The weights are named as in the model's ``model.safetensors``, and the
embedder binds them when it loads the graph. So a file of some 20 kB is all that git holds, and
neither torch nor the package ``onnx`` is needed to embed.

The graph takes the tokens of texts of equal length: there is no mask, for texts are not padded. It
returns the mean over the tokens, of length 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

MODEL = Path(__file__).with_name("pgrecall") / "minilm" / "model.onnx"

LAYERS, HEADS, WIDTH, INNER = 6, 12, 384, 1536
WORDS, POSITIONS, SEGMENTS = 30522, 512, 2
OPSET, IR_VERSION = 20, 9  # the first with Gelu; onnxruntime 1.17 reads both


class Graph:
    """A graph in the making: an operation's result is known by its name."""

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._tensors: list[TensorProto] = []

    def run(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation; return the name of its result."""
        result = f"{operation}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operation, inputs, [result], **attributes))
        return result

    def constant(self, name: str, value: object) -> str:
        """Add a constant."""
        self._tensors.append(numpy_helper.from_array(np.array(value), name))
        return name

    def weight(self, name: str, *shape: int) -> str:
        """Add a tensor that stands in another file."""
        tensor = TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="model.safetensors")
        self._tensors.append(tensor)
        return name

    def dense(self, x: str, name: str, size: int, width: int) -> str:
        """Add a linear layer from width to size."""
        weight = self.run("Transpose", self.weight(f"{name}.weight", size, width), perm=[1, 0])
        return self.run("Add", self.run("MatMul", x, weight), self.weight(f"{name}.bias", size))

    def normed(self, x: str, name: str) -> str:
        """Add a layer normalisation."""
        scale, shift = (self.weight(f"{name}.{part}", WIDTH) for part in ("weight", "bias"))
        return self.run("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-12)

    def embedded(self, ids: str) -> str:
        """Add the embeddings of words, positions and the first segment."""
        name = "embeddings"
        words = self.weight(f"{name}.word_embeddings.weight", WORDS, WIDTH)
        positions = self.weight(f"{name}.position_embeddings.weight", POSITIONS, WIDTH)
        segments = self.weight(f"{name}.token_type_embeddings.weight", SEGMENTS, WIDTH)
        word = self.run("Gather", words, ids)
        segment = self.run("Gather", segments, "zero")
        position = self.run("Slice", positions, "zero", self.run("Shape", ids, start=1, end=2))
        total = self.run("Add", self.run("Add", word, segment), position)
        return self.normed(total, f"{name}.LayerNorm")

    def layer(self, x: str, name: str) -> str:
        """Add a layer of the encoder: self-attention, then two dense layers."""
        query, key, value = (
            self.run(
                "Transpose",
                self.run(
                    "Reshape", self.dense(x, f"{name}.attention.self.{part}", *SQUARE), "split"
                ),
                perm=order,
            )
            for part, order in (
                ("query", [0, 2, 1, 3]),
                ("key", [0, 2, 3, 1]),
                ("value", [0, 2, 1, 3]),
            )
        )
        scores = self.run("Mul", self.run("MatMul", query, key), "scale")
        seen = self.run("MatMul", self.run("Softmax", scores, axis=-1), value)
        joined = self.run("Reshape", self.run("Transpose", seen, perm=[0, 2, 1, 3]), "join")
        attended = self.dense(joined, f"{name}.attention.output.dense", *SQUARE)
        x = self.normed(self.run("Add", attended, x), f"{name}.attention.output.LayerNorm")
        inner = self.run("Gelu", self.dense(x, f"{name}.intermediate.dense", INNER, WIDTH))
        outer = self.dense(inner, f"{name}.output.dense", WIDTH, INNER)
        return self.normed(self.run("Add", outer, x), f"{name}.output.LayerNorm")

    def model(self, result: str) -> ModelProto:
        """Return the model that computes a result of input_ids."""
        graph = helper.make_graph(
            self._nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, ["texts", WIDTH])],
            self._tensors,
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )


SQUARE = (WIDTH, WIDTH)


def model() -> ModelProto:
    """Return the graph of all-MiniLM-L6-v2."""
    graph = Graph()
    graph.constant("zero", np.array([0], np.int64))
    graph.constant("tokens", np.array([1], np.int64))
    graph.constant("split", np.array([0, 0, HEADS, WIDTH // HEADS], np.int64))
    graph.constant("join", np.array([0, 0, WIDTH], np.int64))
    graph.constant("scale", np.float32((WIDTH / HEADS) ** -0.5))
    x = graph.embedded("input_ids")
    for number in range(LAYERS):
        x = graph.layer(x, f"encoder.layer.{number}")
    # A sum has the direction of the mean.
    total = graph.run("ReduceSum", x, "tokens", keepdims=0)
    return graph.model(graph.run("LpNormalization", total, axis=-1, p=2))


if __name__ == "__main__":
    MODEL.write_bytes(model().SerializeToString())
