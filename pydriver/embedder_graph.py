"""Write the graphs of all-MiniLM-L6-v2, without its weights, as ONNX models.

Run by ``make generate``. The weights are named as in the model's ``model.safetensors``, and the
embedder binds them when it loads the graph. So files of some 25 kB are all that git holds, and
neither torch nor the package ``onnx`` is needed to embed.

A graph takes the tokens of texts of equal length: there is no mask, for texts are not padded. It
returns the mean over the tokens, of length 1.

``joined.onnx`` is the part of pgrecall-small-2 that follows model.onnx and tokens.onnx of
pgrecall-small-1: it reads the same tokens without their prompt, multiplies in eight bits, and
returns the vectors of both models side by side, each times the root of its share. That of MiniLM is
SHARE for a question; for a passage it grows with the length, from LEAST to MOST (bench/TRIED.md):
the one model was trained on what people say, the other on passages. Its second input, ``own``, is 1
for each token of the text and 0 for those of its context: both models read the context, and the
mean is that of the text's tokens alone (late chunking; Günther et al. 2024). Where its third input,
``is_whole``, is false, MiniLM does not run, which is a third of the work: its half is zero.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

DIRECTORY = Path(__file__).with_name("pgrecall") / "minilm"

LAYERS, HEADS, WIDTH, INNER = 6, 12, 384, 1536
WORDS, POSITIONS, SEGMENTS = 30522, 512, 2
OPSET, IR_VERSION = 20, 9  # the first with Gelu; onnxruntime 1.17 reads both
FUSED = "com.microsoft"
SHARE = 0.25
LEAST, MOST = (0.1, 30), (0.35, 120)  # share, and the tokens of a passage that has it
QUESTION = 23032  # the word "query" of its prompt, as a token
PROMPT = 3  # tokens: [CLS], the word of the prompt and its colon
LAST_LAYER = "LayerNormalization_143_0"  # of model.onnx of pgrecall-small-1
CUT = 256  # tokens of a text, as sentence-transformers cuts it off


class Graph:
    """A graph in the making: an operation's result is known by its name."""

    prefix = ""

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._tensors: list[TensorProto] = []

    def run(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation; return the name of its result."""
        result = f"{self.prefix}{operation}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operation, inputs, [result], **attributes))
        return result

    def constant(self, name: str, value: object) -> str:
        """Add a constant."""
        self._tensors.append(numpy_helper.from_array(np.array(value), f"{self.prefix}{name}"))
        return f"{self.prefix}{name}"

    def weight(self, name: str, *shape: int, kind: int = TensorProto.FLOAT) -> str:
        """Add a tensor that stands in another file."""
        tensor = TensorProto(name=name, dims=shape, data_type=kind)
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
        segment = self.run("Gather", segments, f"{self.prefix}zero")
        length = self.run("Shape", ids, start=1, end=2)
        position = self.run("Slice", positions, f"{self.prefix}zero", length)
        total = self.run("Add", self.run("Add", word, segment), position)
        return self.normed(total, f"{name}.LayerNorm")

    def attention(self, query: str, key: str, value: str) -> str:
        """Add what each token takes from all others."""
        query, key, value = (
            self.run("Transpose", self.run("Reshape", part, "split"), perm=order)
            for part, order in ((query, [0, 2, 1, 3]), (key, [0, 2, 3, 1]), (value, [0, 2, 1, 3]))
        )
        scores = self.run("Mul", self.run("MatMul", query, key), "scale")
        seen = self.run("MatMul", self.run("Softmax", scores, axis=-1), value)
        return self.run("Reshape", self.run("Transpose", seen, perm=[0, 2, 1, 3]), "join")

    def gelu(self, x: str) -> str:
        """Add the activation of a layer."""
        return self.run("Gelu", x)

    def layer(self, x: str, name: str) -> str:
        """Add a layer of the encoder: self-attention, then two dense layers."""
        parts = (
            self.dense(x, f"{name}.attention.self.{part}", *SQUARE)
            for part in ("query", "key", "value")
        )
        joined = self.attention(*parts)
        attended = self.dense(joined, f"{name}.attention.output.dense", *SQUARE)
        x = self.normed(self.run("Add", attended, x), f"{name}.attention.output.LayerNorm")
        inner = self.gelu(self.dense(x, f"{name}.intermediate.dense", INNER, WIDTH))
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


class JoinedGraph(Graph):
    """The same in eight bits, in operations of onnxruntime, as part of another graph."""

    prefix = "minilm_"

    def dense(self, x: str, name: str, size: int, width: int) -> str:
        """Add a linear layer whose weights and inputs have eight bits.

        Each row of a feed-forward layer's input is divided by its greatest element before it is
        quantised: a few tokens have elements far beyond those of all others.
        """
        parts = (
            self.weight(f"{name}.weight", width, size, kind=TensorProto.INT8),
            self.weight(f"{name}.scale", size),
            self.weight(f"{name}.zero", size, kind=TensorProto.INT8),
        )
        bias = self.weight(f"{name}.bias", size)
        if "attention" in name:
            return self.run("DynamicQuantizeMatMul", x, *parts, bias, domain=FUSED)
        greatest = self.run("ReduceMax", self.run("Abs", x), f"{self.prefix}last", keepdims=1)
        unit = self.run("Div", x, greatest)
        product = self.run("DynamicQuantizeMatMul", unit, *parts, domain=FUSED)
        return self.run("Add", self.run("Mul", product, greatest), bias)

    def attention(self, query: str, key: str, value: str) -> str:
        """Add what each token takes from all others, as one operation."""
        return self.run("MultiHeadAttention", query, key, value, domain=FUSED, num_heads=HEADS)

    def gelu(self, x: str) -> str:
        """Add the activation of a layer."""
        return self.run("Gelu", x, domain=FUSED)

    def mean(self, x: str, own: str) -> str:
        """Add the direction of the mean of the text's own tokens."""
        kept = self.run("Mul", x, self.run("Unsqueeze", own, f"{self.prefix}last"))
        total = self.run("ReduceSum", kept, f"{self.prefix}one", keepdims=0)
        return self.run("LpNormalization", total, axis=-1, p=2)

    def share(self, number: str) -> str:
        """Add the share of MiniLM: that of a question, or of a passage by its tokens."""
        (low, short), (high, long) = LEAST, MOST
        slope = (high - low) / np.log(long / short)
        shares = {"slope": slope, "start": low - slope * np.log(short), "low": low, "high": high}
        names = [self.constant(name, np.float32(value)) for name, value in shares.items()]
        grown = self.run("Add", self.run("Mul", self.run("Log", number), names[0]), names[1])
        passage = self.run("Clip", grown, *names[2:])
        word = self.run(
            "Gather", "input_ids", self.constant("word", np.array([1], np.int64)), axis=1
        )
        question = self.constant("question", np.array([QUESTION], np.int64))
        of_question = self.constant("share", np.float32(SHARE))
        return self.run("Where", self.run("Equal", word, question), of_question, passage)

    def part(self, own: str, other: str, result: str) -> ModelProto:
        """Return the part that puts two directions side by side, of length 1 together.

        All operations so far run only where the input is_whole is true.
        """
        share = self.share(self.run("ReduceSum", "own", keepdims=0))
        rest = self.run("Sub", self.constant("whole", np.float32(1)), share)
        halves = [
            self.run("Mul", half, self.run("Sqrt", part))
            for half, part in ((own, rest), (other, share))
        ]
        both = self.run("Concat", *halves, axis=1)
        nothing = self.constant("nothing", np.zeros((1, WIDTH), np.float32))
        alone = helper.make_node("Concat", ["embedding", nothing], [f"{self.prefix}alone"], axis=1)

        def vector(name: str) -> ValueInfoProto:
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["texts", 2 * WIDTH])

        chosen = helper.make_node(
            "If",
            ["is_whole"],
            [result],
            then_branch=helper.make_graph(self._nodes, "then_branch", [], [vector(both)]),
            else_branch=helper.make_graph([alone], "else_branch", [], [vector(alone.output[0])]),
        )
        inputs = [
            helper.make_tensor_value_info("own", TensorProto.FLOAT, ["texts", "tokens"]),
            helper.make_tensor_value_info("is_whole", TensorProto.BOOL, []),
        ]
        graph = helper.make_graph([chosen], "joined", inputs, [vector(result)], self._tensors)
        # Operators and versions are those of the model before it.
        return ModelProto(graph=graph)


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


def joined() -> ModelProto:
    """Return the part of pgrecall-small-2 that follows pgrecall-small-1."""
    graph = JoinedGraph()
    zero, one, text, end = (
        graph.constant(name, np.array([place], np.int64))
        for name, place in (("zero", 0), ("one", 1), ("text", PROMPT), ("end", PROMPT + CUT - 1))
    )
    graph.constant("last", np.array([-1], np.int64))

    def without_prompt(tokens: str) -> str:
        parts = ((tokens, zero, one), (tokens, text, end))
        return graph.run("Concat", *(graph.run("Slice", *part, one) for part in parts), axis=1)

    x = graph.embedded(without_prompt("input_ids"))
    for number in range(LAYERS):
        x = graph.layer(x, f"encoder.layer.{number}")
    other = graph.mean(x, without_prompt("own"))
    centred = graph.run("Sub", graph.mean(LAST_LAYER, "own"), "mean")
    own = graph.run("LpNormalization", centred, axis=-1, p=2)
    return graph.part(own, other, "joined")


GRAPHS = {"model.onnx": model, "joined.onnx": joined}

if __name__ == "__main__":
    for name, graph_of in GRAPHS.items():
        (DIRECTORY / name).write_bytes(graph_of().SerializeToString())
