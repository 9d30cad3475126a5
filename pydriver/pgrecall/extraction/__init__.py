"""Extractors, which turn messages into facts, and the schema of their results.

An extractor is any callable that takes messages and returns facts, in the formats of
``retain_messages`` and ``retain``. Two come with the driver: :class:`RuleExtractor`, which needs no
model, and :class:`OpenAIExtractor`, for endpoints with the OpenAI API. ``talk.py`` calls them and
records failures.
"""

from pgrecall.extraction.endpoint import OpenAIExtractor
from pgrecall.extraction.rules import RuleExtractor, gliner_names, spacy_names
from pgrecall.extraction.schema import FACTS_SCHEMA
from pgrecall.extraction.talk import Extractor, Message

__all__ = [
    "FACTS_SCHEMA",
    "Extractor",
    "Message",
    "OpenAIExtractor",
    "RuleExtractor",
    "gliner_names",
    "spacy_names",
]
