"""Small models for the tests: quick to make, and the same on every machine."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest

from pgrecall import Hit
from pgrecall.command import demo
from pgrecall.inference.calibration import LEAST_TEXTS
from pgrecall.rows import Period
from pgrecall.server.build import PACKAGE

DIMENSIONS = 16


def toy_embed(texts: Sequence[str]) -> list[list[float]]:
    """Embed texts so that those with common words are near each other."""
    return [_embed(text) for text in texts]


def _embed(text: str) -> list[float]:
    vector = [0.01] * DIMENSIONS
    for word in text.lower().split():
        vector[zlib.crc32(word.strip(".,?").encode()) % DIMENSIONS] += 1.0
    return vector


def make_hit(
    text: str = "Maya leads Atlas",
    *,
    rank: int = 1,
    context: str | None = None,
    occurred: Period | None = None,
    mentioned_at: datetime | None = None,
    proof_count: int | None = 1,
) -> Hit:
    return Hit(
        rank=rank,
        memory_id=rank,
        kind="memory",
        fact_type="world",
        text=text,
        context=context,
        fact_key=None,
        source_id=None,
        tags=(),
        metadata={},
        occurred=occurred,
        mentioned_at=mentioned_at,
        confidence=1.0,
        score=1 / (60 + rank),
        arms={},
        fused_rank=rank,
        rerank_score=None,
        final_score=1 / (60 + rank),
        proof_count=proof_count,
    )


def shorten_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the demo its first facts, and no table of the arms: to embed a fact takes long."""
    rows = demo._rows
    monkeypatch.setattr(demo, "ARMS", ())
    monkeypatch.setattr(demo, "_rows", lambda name: rows(name)[:30])


def sample_file(folder: Path) -> Path:
    """Write the least sample of texts to calibrate with."""
    lines = (PACKAGE / "demo" / "facts.jsonl").read_text().splitlines()
    path = folder / "sample.jsonl"
    path.write_text("\n".join(lines[:LEAST_TEXTS]))
    return path


def save_cross_encoder(path: Path, *, outputs: int = 1) -> Path:
    """Save an untrained cross-encoder of two layers, as a directory that libraries can load."""
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast, set_seed

    path.mkdir()
    words = "[PAD] [UNK] [CLS] [SEP] [MASK] who leads atlas maya ana the date : in".split()
    vocabulary = path / "vocab.txt"
    vocabulary.write_text("\n".join(words))
    set_seed(7)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=192,
        num_labels=outputs,
    )
    BertForSequenceClassification(config).save_pretrained(path)
    BertTokenizerFast(vocab_file=str(vocabulary), model_max_length=192).save_pretrained(path)
    return path


def save_onnx_cross_encoder(source: Path, path: Path) -> Path:
    """Save what save_cross_encoder() made as ONNX model."""
    import torch
    from transformers import BertForSequenceClassification

    names = ["input_ids", "attention_mask", "token_type_ids"]
    path.mkdir()
    torch.onnx.export(
        BertForSequenceClassification.from_pretrained(source).eval(),
        tuple(torch.ones((1, 8), dtype=torch.int64) for _ in names),
        str(path / "model.onnx"),
        input_names=names,
        dynamic_axes={name: {1: "tokens"} for name in names},
        dynamo=False,
    )
    (path / "tokenizer.json").write_bytes((source / "tokenizer.json").read_bytes())
    return path


def save_embedder(path: Path, *, seed: int = 7) -> Path:
    """Save an untrained embedding model of 16 dimensions, as a directory that libraries can load.

    Words are whole, so that texts with common words are near each other.
    """
    from transformers import BertConfig, BertModel, BertTokenizerFast, set_seed

    path.mkdir()
    words = "[PAD] [UNK] [CLS] [SEP] [MASK] who leads atlas maya ana ben borealis tea the".split()
    vocabulary = path / "vocab.txt"
    vocabulary.write_text("\n".join(words))
    set_seed(seed)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=DIMENSIONS,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(path)
    BertTokenizerFast(vocab_file=str(vocabulary), model_max_length=64).save_pretrained(path)
    return path
