"""Embedders, for programs."""

from pgrecall.inference.embedders import (
    DEFAULT_EMBEDDER,
    DEFAULT_MODEL,
    PACKAGED,
    PACKAGED_EMBEDDERS,
    FunctionEmbedder,
    MiniLMEmbedder,
    PackagedEmbedder,
    PromptedEmbedder,
    SentenceTransformerEmbedder,
    as_embedder,
    packaged_model,
)
from pgrecall.inference.endpoints import OpenAIEmbedder
from pgrecall.inference.interfaces import (
    ContextEmbedder,
    Embedder,
    EmbedFunction,
    Role,
    RoleEmbedder,
    Vector,
)
from pgrecall.inference.prompts import embed_as, read_prompts

__all__ = [
    "DEFAULT_EMBEDDER",
    "DEFAULT_MODEL",
    "PACKAGED",
    "PACKAGED_EMBEDDERS",
    "ContextEmbedder",
    "EmbedFunction",
    "Embedder",
    "FunctionEmbedder",
    "MiniLMEmbedder",
    "OpenAIEmbedder",
    "PackagedEmbedder",
    "PromptedEmbedder",
    "Role",
    "RoleEmbedder",
    "SentenceTransformerEmbedder",
    "Vector",
    "as_embedder",
    "embed_as",
    "packaged_model",
    "read_prompts",
]
