"""Convert a row to a fact: columns named like fields become fields, others metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from uuid import UUID

from pgrecall.calls.values import json_number

FIELDS = frozenset(
    "text fact_type context fact_key source_id tags metadata occurred mentioned_at confidence"
    " proof_count entities relations links questions embedding embeddings expires_at".split()
)
# Other names of the text column, in order of preference.
TEXTS = ("text", "content", "page_content", "document", "memory", "body")
_LISTS = frozenset(("tags", "entities"))
_JSON = frozenset(("metadata", "relations", "links", "questions", "embeddings", "occurred"))
_NAMES = frozenset(("fact_key", "source_id"))  # only if the values are texts, not numbers
_NUMBERS = {"confidence": float, "proof_count": int}


@dataclass(frozen=True, slots=True)
class Row:
    """One row to import.

    Attributes:
        place: Its position in the source, for the report: "line 7", "mem0 1a2b...".
        fact: The fact; None if the row is not a valid fact.
        problem: Why it is not a valid fact.
        key: Its id in the source, the target of links; None for none.

    """

    place: str
    fact: Mapping[str, object] | None
    problem: str | None = None
    key: str | None = None


def fact_of(columns: Mapping[str, object], text: str | None = None) -> dict[str, object]:
    """Convert the columns of a row to a fact.

    Text cells are parsed as JSON if the field requires it; tags and entities may also be separated
    by semicolons. Empty cells are skipped.

    Args:
        columns: The values by column name.
        text: Name of the column with the text. Default: "text", or the first of TEXTS that exists.

    Raises:
        ValueError: there is no text, or a cell does not fit its field.

    """
    source = text or next((name for name in TEXTS if columns.get(name)), "text")
    content = columns.get(source)
    if not isinstance(content, str) or not content.strip():
        raise ValueError(f'there is no text in column "{source}"')
    fact: dict[str, object] = {"text": content}
    others: dict[str, object] = {}
    for name, value in columns.items():
        if name == source or value is None or value == "":
            continue
        if name in FIELDS and name != "text":
            fact[name] = _field(name, value)
        else:
            others[name] = plain(value)
    known = fact.get("metadata", {})
    if others and isinstance(known, Mapping):  # otherwise the bank refuses it
        fact["metadata"] = {**others, **known}
    return fact


def plain(value: object) -> object:
    """Convert a value for JSON; a time without a zone is in UTC."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Decimal):
        return json_number(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value


def _field(name: str, value: object) -> object:
    if not isinstance(value, str):
        value = plain(value)
        return str(value) if name in _NAMES and isinstance(value, int) else value
    if name in _NUMBERS:
        try:
            return _NUMBERS[name](value)
        except ValueError:
            raise ValueError(f"{name} is not a number: {value[:80]!r}") from None
    if name in _LISTS and not value.lstrip().startswith("["):
        return [part.strip() for part in value.split(";") if part.strip()]
    if name in _LISTS or (name in _JSON and value.lstrip()[:1] in ("{", "[")):
        try:
            return json.loads(value)
        except ValueError:
            raise ValueError(f"{name} is not JSON: {value[:80]!r}") from None
    return value
