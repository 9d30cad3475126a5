"""From talk to facts: extractors, and the schema of what they return.

An extractor is any callable that takes messages and returns facts, both in the format that
``retain_messages`` and ``retain`` take. Two come with the driver: :class:`RuleExtractor`, which
needs no model, and :class:`OpenAIExtractor`, for endpoints with the API of OpenAI. What they are
called with and how failures are kept is in ``talk.py``.
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
