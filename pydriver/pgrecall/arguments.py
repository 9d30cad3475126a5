"""Check the types of arguments, as declared by the signatures, before they are sent.

The database checks values and ranges. Without these checks, a wrong type or a misspelt option would
raise an error that names neither the argument nor what to do.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, Union

from pgrecall.errors import InvalidArgument

_WORDS = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    datetime: "a datetime",
    timedelta: "a timedelta",
    Mapping: "a mapping",
    Sequence: "a list",
    Sequence[str]: "a list of texts",
    Sequence[int]: "a list of whole numbers",
    tuple: "a pair (start, end)",
    Callable: "a function",
}
_HINTS: dict[Any, str] = {
    datetime: "Pass a datetime such as datetime.fromisoformat('2026-03-05T14:00+00:00').",
    tuple: 'Pass (start, end), two datetimes or None. For a name use window="this year".',
    bool: "Pass True or False.",
    int: "Pass a whole number such as 10.",
    float: "Pass a number such as 0.5.",
    str: 'Pass text, such as "agent".',
    Mapping: 'Pass a dict, such as {"graph": 0.5}.',
    Sequence: "Pass a list, also for a single one.",
    Sequence[str]: 'Pass a list, such as ["event"].',
    Sequence[int]: "Pass a list, such as [1, 2].",
    # Of arguments, by name.
    **dict.fromkeys(
        ("entity_id", "entity_a", "entity_b", "entity_ids", "others"),
        "query_entities() and list_entities() find the ids of names.",
    ),
    "dsn": 'Pass text, such as "host=... dbname=...". Recall(connection) takes a connection.',
}
# These have more specific errors.
_UNCHECKED = frozenset(("embedding", "hypothetical", "filter"))
# Arguments of all functions; a name means the same in each.
_GIVEN: dict[str, Any] = {
    **dict.fromkeys(
        ("bank", "new_bank", "query", "fact_key", "source_id", "entity", "name", "session"), str
    ),
    **dict.fromkeys(("model", "link", "replace", "reach", "start_mark", "end_mark"), str),
    **dict.fromkeys(("fact_type", "source", "relation", "key", "text", "occurred", "apply"), str),
    **dict.fromkeys(("description", "text_search_config", "embedding_model"), str),
    **dict.fromkeys(("words", "kind", "unit", "basis"), str),
    **dict.fromkeys(("entity_a", "entity_b", "longest", "hops"), int),
    **dict.fromkeys(("memory_id", "entity_id", "message_id", "superseded_by", "before_id"), int),
    **dict.fromkeys(("top_k", "batch_size", "k", "depth", "sample", "from_id", "after_id"), int),
    **dict.fromkeys(("embedding_dimensions", "max_tokens", "messages_at_once"), int),
    **dict.fromkeys(("at", "as_of", "since", "started_at", "ended_at"), datetime),
    **dict.fromkeys(("dry_run", "is_full", "is_lossy", "is_next", "is_run", "exist_ok"), bool),
    **dict.fromkeys(("is_ended_too", "is_forgotten", "is_history_kept", "strict", "again"), bool),
    **dict.fromkeys(("min_similarity", "rate"), float),
    **dict.fromkeys(("settings", "fields"), Mapping[str, object]),
    **dict.fromkeys(("fact_types", "tags", "entities"), Sequence[str]),
    **dict.fromkeys(("memory_ids", "message_ids", "entity_ids", "others"), Sequence[int]),
    **dict.fromkeys(("progress", "refused", "extract", "count_tokens"), Callable),
}
_MOST = 2**63  # whole numbers of the database are below it


def check_recall(bank: object, query: object, options: Mapping[str, object], kind: type) -> None:
    """Check the arguments of a recall.

    Args:
        bank: As passed.
        query: As passed.
        options: As passed, by name.
        kind: The TypedDict that declares the options.

    Raises:
        InvalidArgument: an option is misspelt, or the type of an argument is wrong.

    """
    for name, value in (("bank", bank), ("query", query)):
        if value is None:
            raise InvalidArgument(f"{name} must be text, not None", hint=_HINTS[str])
        check_type(name, value, str)
    known = _declared(kind)
    for name, value in options.items():
        if name not in known:
            near = get_close_matches(name, known, 1, 0.75)
            if near:
                raise InvalidArgument(
                    f'unknown option "{name}"',
                    hint=f"Did you mean {near[0]}? recall_options() lists them.",
                )
            continue  # a newer database may know it; otherwise the database refuses it
        if value is not None and name not in _UNCHECKED:
            check_type(name, value, known[name])


def check_given(**given: object) -> None:
    """Check arguments of any function by their names; None is the same as not given.

    Raises:
        InvalidArgument: the type of one is wrong.

    """
    for name, value in given.items():
        if value is not None and name in _GIVEN:
            check_type(name, value, _GIVEN[name])


def check_type(name: str, value: object, hint: Any) -> None:
    """Check the type of a value.

    Raises:
        InvalidArgument: the value is of another type; the message names the argument.

    """
    if not _is_a(value, hint):
        kinds = [kind for kind in _kinds(hint) if kind is not types.NoneType]
        words = " or ".join(dict.fromkeys(_WORDS.get(kind, "a value") for kind in kinds))
        raise InvalidArgument(
            f"{name} must be {words}, not {_shown(value)}",
            hint=_HINTS.get(name) or _HINTS.get(kinds[0], f"Pass {words}."),
        )
    for number in value if isinstance(value, list | tuple) else (value,):
        if isinstance(number, Integral) and not -_MOST <= int(number) < _MOST:
            raise InvalidArgument(
                f"{name} must be from -2^63 to 2^63 - 1, not {_shown(number)}",
                hint="Pass a number that pgrecall returned, or a smaller one.",
            )


def _shown(value: object) -> str:
    try:
        shown = repr(value)
    except ValueError:  # as Python writes none of more than 4,300
        return "a number of too many digits"
    return shown if len(shown) <= 80 else shown[:79] + "…"


@cache
def _declared(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _kinds(hint: Any) -> list[Any]:
    """Return the classes that a type allows, in the terms of _WORDS."""
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        return [kind for part in typing.get_args(hint) for kind in _kinds(part)]
    if origin is Literal:
        return [str]
    if origin in (Sequence, Iterable):
        of_texts, of_numbers = Sequence[str], Sequence[int]
        return [{str: of_texts, int: of_numbers}.get(typing.get_args(hint)[0], Sequence)]
    return [origin or hint]


def _is_a(value: object, hint: Any) -> bool:
    """Return whether a value is of a type, for the types that options use."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_is_a(value, part) for part in parts)
    if origin is Literal:
        return isinstance(value, str)
    if origin is tuple:
        if not isinstance(value, tuple | list) or len(value) != len(parts):
            return False
        return all(map(_is_a, value, parts))
    if origin is Callable:
        return callable(value)
    if origin in (Sequence, Iterable):
        if isinstance(value, str):
            return bool(parts == (str,))  # a text is accepted as a list of one
        is_list = isinstance(value, Iterable) and not isinstance(value, Mapping | bytes)
        return is_list and (
            not isinstance(value, Sequence) or all(_is_a(item, parts[0]) for item in value)
        )
    if hint in (int, float):  # also numpy's
        number = Integral if hint is int else Real
        return isinstance(value, number) and not isinstance(value, bool)
    return hint is object or isinstance(value, origin or hint)
