"""Prompts that some models need before a question or a passage."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from hashlib import sha256
from pathlib import Path
from typing import Any

from pgrecall.errors import InvalidArgument, InvalidEmbedding
from pgrecall.inference.interfaces import (
    ContextEmbedder,
    Embedder,
    HalvingEmbedder,
    Role,
    RoleEmbedder,
    Vector,
    WorkedEmbedder,
)
from pgrecall.inference.worker import Reading

_CONFIG = "config_sentence_transformers.json"
_PROMPT_NAMES = {"query": ("query",), "document": ("document", "passage", "corpus")}
"""Names of each role's prompt in sentence-transformers; the first one present counts."""
_LONGEST = 120  # every row of an embedding holds the name of its model


def read_prompts(prompts: Mapping[str, str]) -> dict[str, str]:
    """Read the prompt of each role, under any name that sentence-transformers uses.

    Args:
        prompts: Prompts by name.

    Returns:
        The prompts of both roles; empty if both are.

    Raises:
        InvalidArgument: a prompt is for neither role, or not a string.

    """
    names = [name for role in _PROMPT_NAMES.values() for name in role]
    for name, prompt in prompts.items():
        if name not in names or not isinstance(prompt, str):
            raise InvalidArgument(
                f'prompts: "{name}" is not a role, or its prompt is not a string: {prompt!r}',
                hint='Pass {"query": "query: ", "document": "passage: "}, for example.',
            )
    found = {
        role: next((prompts[name] for name in of_role if prompts.get(name)), "")
        for role, of_role in _PROMPT_NAMES.items()
    }
    return found if any(found.values()) else {}


def embed_as(embedder: Embedder, role: Role, texts: Sequence[str]) -> Iterable[Vector]:
    """Embed texts in a role; return one embedding per text, in order.

    Raises:
        InvalidEmbedding: the embedder returned no list.

    """
    if not isinstance(embedder, RoleEmbedder):
        return _listed(embedder, embedder.embed(texts))
    embed = embedder.embed_query if role == "query" else embedder.embed_documents
    return _listed(embedder, embed(texts))


def embed_passages(
    embedder: Embedder, texts: Sequence[str], contexts: Sequence[str]
) -> Iterable[Vector]:
    """Embed passages, each in its context where the embedder reads these.

    Raises:
        InvalidEmbedding: the embedder returned no list.

    """
    if any(contexts) and isinstance(embedder, ContextEmbedder):
        return _listed(embedder, embedder.embed_in_context(texts, contexts))
    return embed_as(embedder, "document", texts)


def _listed(embedder: Embedder, vectors: Iterable[Vector]) -> Iterable[Vector]:
    if not isinstance(vectors, Iterable):
        raise InvalidEmbedding(
            f'the embedder "{embedder.model}" gave {vectors!r}, not a list of vectors',
            hint="Return one list of numbers for each text.",
        )
    return vectors


def submit_as(
    embedder: WorkedEmbedder, role: Role, texts: Sequence[str], for_tokens: Collection[str] = ()
) -> Future[Reading[Vector]]:
    """Let the worker embed texts in a role, some of them for their token vectors alone."""
    prompts = embedder.prompts if isinstance(embedder, RoleEmbedder) else {}
    prompted = with_prompts(prompts, role, texts)
    if for_tokens and isinstance(embedder, HalvingEmbedder):
        return embedder.submit_some_for_tokens(prompted, [text in for_tokens for text in texts])
    return embedder.submit(prompted)


def with_prompts(prompts: Mapping[str, str], role: Role, texts: Sequence[str]) -> Sequence[str]:
    """Add the prompt of a role to texts."""
    prompt = prompts.get(role, "")
    return [prompt + text for text in texts] if prompt else texts


def prompted_name(model: str, prompts: Mapping[str, str]) -> str:
    """Add the prompts to a model's name, so that a bank refuses vectors made with others."""
    if not prompts:
        return model
    written = json.dumps([prompts["query"], prompts["document"]], ensure_ascii=False)
    if len(written) > _LONGEST:
        written = f"[{sha256(written.encode()).hexdigest()[:16]}]"
    return f"{model} {written}"


def own_prompts(name_or_path: str | Path) -> dict[str, str]:
    """Read the prompts in a model's configuration, without loading the model."""
    path: Any = Path(name_or_path) / _CONFIG
    if not Path(name_or_path).is_dir():
        try:
            from huggingface_hub import try_to_load_from_cache

            found = [
                try_to_load_from_cache(f"{owner}{name_or_path}", _CONFIG)
                for owner in ("", "sentence-transformers/")
            ]
        except (ImportError, ValueError):  # no such model; loading it will say so
            return {}
        path = next((one for one in found if isinstance(one, str)), None)
    try:
        config = json.loads(Path(path).read_text("utf-8")) if path else {}
    except (OSError, ValueError):
        return {}
    prompts = config.get("prompts") or {}
    known = [name for names in _PROMPT_NAMES.values() for name in names]
    return read_prompts({name: prompts[name] for name in known if prompts.get(name)})
