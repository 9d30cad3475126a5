"""The JSON schema of extracted facts, a part of retain's format.

It is strict, as structured output requires: all properties are required, unknown ones are null, and
no others are allowed. ``plain`` removes the nulls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}


def _object(**properties: object) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


FACTS_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Facts extracted from a conversation",
    **_object(
        facts={
            "type": "array",
            "items": _object(
                text={
                    **_TEXT,
                    "description": "One statement that is understood alone: names in place of"
                    " pronouns, dates in place of words such as yesterday.",
                },
                fact_type={
                    **_TEXT,
                    "enum": ["world", "experience", "opinion", "preference", "event"],
                    "description": "world: about people and things; experience: what the assistant"
                    " did; opinion: a judgement; preference: how somebody wants things to be;"
                    " event: what happened at a time.",
                },
                occurred={
                    "type": ["array", "null"],
                    "items": _TEXT_OR_NULL,
                    "description": "Start and exclusive end, ISO 8601, of what happened at a time;"
                    " a side that is not known is null.",
                },
                confidence={"type": ["number", "null"], "description": "0 to 1."},
                entities={
                    "type": "array",
                    "items": _object(
                        name=_TEXT,
                        kind={
                            **_TEXT_OR_NULL,
                            "description": "person for people, whatever they are or do; place,"
                            " organization, product or another word.",
                        },
                        aliases={"type": "array", "items": _TEXT},
                    ),
                    "description": "People, places, organizations and things that it names.",
                },
                relations={
                    "type": "array",
                    "items": _object(
                        **{
                            "from": {**_TEXT, "description": "Name of an entity."},
                            "kind": {**_TEXT, "description": "A verb, such as works_at."},
                            "to": {**_TEXT, "description": "Name of an entity."},
                        }
                    ),
                },
            ),
        }
    ),
}
"""The schema of an extractor's result; ``pgrecall schema facts`` prints it."""


def plain(value: object) -> Any:
    """Return a value without nulls and empty lists in its objects."""
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items() if part is not None and part != []}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(part) for part in value]
    return value
