"""Check and convert values for PostgreSQL."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from numbers import Integral
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from psycopg.types.range import TimestamptzRange

from pgrecall.arguments import check_given, check_type
from pgrecall.errors import (
    InvalidArgument,
    InvalidFact,
    InvalidFilter,
    RecallError,
)
from pgrecall.inference.late_interaction import parts_of, tokens_of, tokens_text
from pgrecall.inference.vectors import to_floats
from pgrecall.rows import Period

_TEXT_HINT = "PostgreSQL stores neither NUL characters nor half a surrogate pair: remove them."
_HAS_EMBEDDING = re.compile(r"facts\[\d+\](\.questions\[\d+\])?")
_IS_EMBEDDINGS = re.compile(_HAS_EMBEDDING.pattern + r"\.embeddings")
_MOST_DIGITS = 1000
_DEEPEST = 100  # levels of JSON that are read
_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]')


def plain_facts(facts: Iterable[object], zone: tzinfo | None = None) -> list[object]:
    """Convert facts to JSON values; embeddings become compact text.

    Args:
        facts: Mappings in the documented format, or bare texts. They are left as they are.
        zone: The zone of datetimes without one, except in metadata.

    Raises:
        InvalidFact: a fact holds what JSON or PostgreSQL cannot, such as a NUL character.
        InvalidEmbedding: an embedding is not a list of numbers.

    """
    return [
        jsonable(
            {"text": fact} if isinstance(fact, str) else fact, f"facts[{i}]", InvalidFact, zone
        )
        for i, fact in enumerate(facts)
    ]


def vector_text(embedding: object, where: str = "embedding") -> str:
    """Format an embedding as short text, with the precision of a halfvec: ``[0.1,0.2]``."""
    if isinstance(embedding, str):
        return embedding
    return f"[{','.join(format(number, '.6g') for number in to_floats(embedding, where))}]"


def vector_fields(vector: object, is_whole: bool = True) -> dict[str, Any]:
    """Return the JSON fields of an embedding; of a fact (is_whole) also "tokens" and "parts"."""
    fields: dict[str, Any] = {"embedding": vector_text(vector)}
    tokens = tokens_of(vector) if is_whole else None
    if tokens and (stored := tokens.stored()):
        fields["tokens"] = tokens_text(stored)
    if is_whole and (parts := parts_of(vector)):
        fields["parts"] = [*map(vector_text, parts)]
    return fields


def array_text(numbers: Sequence[float]) -> str:
    """Format numbers as an array, with the precision of a halfvec; psycopg is slow at this."""
    return "{" + ("%.6g," * len(numbers) % tuple(numbers))[:-1] + "}"


def to_range(during: Period | None) -> TimestamptzRange | None:
    """Convert a period to a range.

    Raises:
        InvalidArgument: it is not a pair of times, or ends before it starts.

    """
    if during is None:
        return None
    check_type("during", during, Period)
    start, end = during
    if start is not None and end is not None and end < start:
        raise InvalidArgument(
            f"during ends before it starts: {end.isoformat()} is before {start.isoformat()}",
            hint="Give (start, end); None leaves a side open.",
        )
    return TimestamptzRange(start, end)


def filter_text(condition: object) -> str | None:
    """Convert a filter of nested lists to JSON; expressions are already text."""
    if condition is None or isinstance(condition, str):
        return condition
    return json.dumps(jsonable(condition, "filter", InvalidFilter))


def listed(given: object) -> object:
    """Return a list; a text or a number becomes a list of one."""
    if isinstance(given, str | Integral):
        return [given]
    return list(given) if isinstance(given, Iterable) else given


def checked(**parameters: object) -> dict[str, object]:
    """Reject text that PostgreSQL cannot store; wrap JSON values."""
    checked: dict[str, object] = {}
    for name, value in parameters.items():
        check_given(**{name: value})
        error = InvalidFilter if name == "filter" else InvalidArgument
        if isinstance(value, str):
            _check_text(value, name, error)
        elif isinstance(value, Integral) and not isinstance(value, bool):  # also numpy's
            # An untyped literal, so that the argument's type refuses numbers out of range.
            _check_digits(int(value), name, error)
            value = str(int(value))
        elif isinstance(value, Mapping):
            value = Jsonb(jsonable(value, name, error))
        elif isinstance(value, list):
            for position, element in enumerate(value):
                if isinstance(element, str):
                    _check_text(element, f"{name}[{position}]", error)
        checked[name] = value
    return checked


def _check_digits(number: int, where: str, error: type[RecallError]) -> None:
    if abs(number) >= 10**_MOST_DIGITS:
        raise error(f"{where} is a number of more than {_MOST_DIGITS} digits")


def _check_text(text: str, where: str, error: type[RecallError]) -> None:
    if "\0" in text:
        raise error(f"{where} contains a NUL character", hint=_TEXT_HINT)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise error(f"{where} contains a lone surrogate", hint=_TEXT_HINT) from None


def read_json(text: str) -> Any:
    """Read what PostgreSQL holds: numbers of more digits and deeper nesting than Python reads.

    Whoever stored such metadata must not keep others from the answers that it is in.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError):
        return shallow_json(text)


def shallow_json(text: str) -> Any:
    """Read JSON; numbers of many digits, and what is nested deeply, stay texts."""
    parts: list[str] = []
    depth = at = 0
    for found in _BRACKETS.finditer(text):
        if found[0] in "[{":
            depth += 1
            if depth == _DEEPEST + 1:
                parts.append(text[at : found.start()])
                at = found.start()
        elif found[0] in "]}":
            if depth == _DEEPEST + 1:
                parts.append(json.dumps(text[at : found.end()]))
                at = found.end()
            depth -= 1
    return json.loads(
        "".join([*parts, text[at:]]),
        parse_int=lambda digits: int(digits) if len(digits) <= _MOST_DIGITS else digits,
    )


def jsonable(
    value: object, where: str, error: type[RecallError], zone: tzinfo | None = None
) -> object:
    """Copy a value as JSON; `where` names the part in an error."""
    try:
        return _plain(value, where, error, zone)
    except RecursionError:
        raise error(f"{where} is nested too deeply") from None


def _plain(value: object, where: str, error: type[RecallError], zone: tzinfo | None) -> object:
    match value:
        case str():
            _check_text(value, where, error)
            return value
        case None | bool():
            return value
        case int():
            _check_digits(value, where, error)
            return value
        case float():
            if not math.isfinite(value):
                raise error(f"{where} is {value}, which is not a finite number")
            return value
        case datetime() if value.tzinfo is None and zone is not None:
            return value.replace(tzinfo=zone).isoformat()
        case date() | time():
            return value.isoformat()
        case UUID():
            return str(value)
        case Decimal():
            return _plain(json_number(value), where, error, zone)
        case timedelta():
            return f"{value.days} days {value.seconds + value.microseconds / 1e6} seconds"
        case Mapping():
            return {
                _key(key, where, error): (
                    vector_text(part, f"{where}.{key}")
                    if part is not None
                    and (
                        (key == "embedding" and _HAS_EMBEDDING.fullmatch(where))
                        or _IS_EMBEDDINGS.fullmatch(where)
                    )
                    else _plain(part, f"{where}.{key}", error, None if key == "metadata" else zone)
                )
                for key, part in value.items()
            }
        case list() | tuple() | set() | frozenset():
            return [_plain(part, f"{where}[{i}]", error, zone) for i, part in enumerate(value)]
    if hasattr(value, "tolist"):  # numpy
        return _plain(value.tolist(), where, error, zone)
    raise error(
        f"{where} is a value of type {type(value).__name__}, which JSON cannot hold",
        hint="Use text, numbers, true, false, null, dates, lists and objects.",
    )


def json_number(value: Decimal) -> int | float:
    """Convert a decimal; a whole number, such as an id, may have more digits than a float."""
    is_whole = value.is_finite() and value == value.to_integral_value()
    return int(value) if is_whole and value.adjusted() < _MOST_DIGITS else float(value)


def _key(key: object, where: str, error: type[RecallError]) -> str:
    if not isinstance(key, str):
        raise error(f"{where} has the key {key!r}, which is not text")
    _check_text(key, f"a key of {where}", error)
    return key
