"""What some models want written before a question and before a passage."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from hashlib import sha256
from pathlib import Path
from typing import Any

from pgrecall.errors import InvalidArgument
from pgrecall.inference.interfaces import Embedder, Role, RoleEmbedder, Vector, WorkedEmbedder
from pgrecall.inference.worker import Reading

_CONFIG = "config_sentence_transformers.json"
_PROMPT_NAMES = {"query": ("query",), "document": ("document", "passage", "corpus")}
"""What sentence-transformers calls the prompt of each role; the first that there is counts."""
_LONGEST = 120  # each row of an embedding holds the name of its model


def read_prompts(prompts: Mapping[str, str]) -> dict[str, str]:
    """Read the prompt of each role, by any of the names of sentence-transformers.

    Args:
        prompts: Prompts by name.

    Returns:
        The prompts of both roles; empty where there are none.

    Raises:
        InvalidArgument: a prompt is for neither role, or no text.

    """
    names = [name for role in _PROMPT_NAMES.values() for name in role]
    for name, prompt in prompts.items():
        if name not in names or not isinstance(prompt, str):
            raise InvalidArgument(
                f'prompts: "{name}" is not the name of a role, or its prompt no text: {prompt!r}',
                hint='Pass {"query": "query: ", "document": "passage: "}, for example.',
            )
    found = {
        role: next((prompts[name] for name in of_role if prompts.get(name)), "")
        for role, of_role in _PROMPT_NAMES.items()
    }
    return found if any(found.values()) else {}


def embed_as(embedder: Embedder, role: Role, texts: Sequence[str]) -> Iterable[Vector]:
    """Embed questions or passages; return one embedding per text, in order."""
    if not isinstance(embedder, RoleEmbedder):
        return embedder.embed(texts)
    return embedder.embed_query(texts) if role == "query" else embedder.embed_documents(texts)


def submit_as(
    embedder: WorkedEmbedder, role: Role, texts: Sequence[str]
) -> Future[Reading[Vector]]:
    """Let an embedder that the worker runs embed questions or passages."""
    prompts = embedder.prompts if isinstance(embedder, RoleEmbedder) else {}
    return embedder.submit(with_prompts(prompts, role, texts))


def with_prompts(prompts: Mapping[str, str], role: Role, texts: Sequence[str]) -> Sequence[str]:
    """Write the prompt of a role before texts."""
    prompt = prompts.get(role, "")
    return [prompt + text for text in texts] if prompt else texts


def prompted_name(model: str, prompts: Mapping[str, str]) -> str:
    """Name a model with its prompts, so that a bank does not take vectors made with others."""
    if not prompts:
        return model
    written = json.dumps([prompts["query"], prompts["document"]], ensure_ascii=False)
    if len(written) > _LONGEST:
        written = f"[{sha256(written.encode()).hexdigest()[:16]}]"
    return f"{model} {written}"


def own_prompts(name_or_path: str | Path) -> dict[str, str]:
    """Read the prompts that a model's configuration names, without loading it."""
    path: Any = Path(name_or_path) / _CONFIG
    if not Path(name_or_path).is_dir():
        try:
            from huggingface_hub import try_to_load_from_cache

            found = [
                try_to_load_from_cache(f"{owner}{name_or_path}", _CONFIG)
                for owner in ("", "sentence-transformers/")
            ]
        except (ImportError, ValueError):  # no name of a model there; loading will say so
            return {}
        path = next((one for one in found if isinstance(one, str)), None)
    try:
        config = json.loads(Path(path).read_text("utf-8")) if path else {}
    except (OSError, ValueError):
        return {}
    prompts = config.get("prompts") or {}
    known = [name for names in _PROMPT_NAMES.values() for name in names]
    return read_prompts({name: prompts[name] for name in known if prompts.get(name)})
