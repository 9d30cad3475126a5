"""Filters as other libraries write them, as conditions of pgrecall."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

Condition = list[object]

_OPERATORS = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


def all_of(conditions: list[Condition]) -> Condition | None:
    """Join conditions; None for none."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return ["and", *conditions]


def any_of(name: str, values: Iterable[object]) -> Condition:
    """Ask for any of some values, of whatever kinds.

    Raises:
        ValueError: values is a text.

    """
    if isinstance(values, str):
        raise ValueError(f"a filter for any of some values needs a list, not {values!r}")
    each: list[Condition] = [["=", name, plain(value)] for value in values]
    if len(each) > 1:
        return ["or", *each]
    return each[0] if each else ["in", name, []]


def unless(name: str, condition: Condition) -> Condition:
    """Ask for what does not meet a condition; where there is no value, it does not."""
    return ["or", ["is null", name], ["not", condition]]


def plain(value: object) -> object:
    """Write a value as metadata are compared: numbers as such, all else as text."""
    return json.dumps(value) if isinstance(value, bool) else value


def of_mapping(given: Mapping[str, object], place: str) -> list[Condition]:
    """Read {"field": value} and {"field": {"$gt": value}}.

    Args:
        given: The filter.
        place: Where the fields are, such as "metadata".

    Raises:
        ValueError: an operator is unknown, or a list is a text.

    """
    found: list[Condition] = []
    for field, wanted in given.items():
        name = f"{place}.{field}"
        is_operator = isinstance(wanted, Mapping) and any(key.startswith("$") for key in wanted)
        if not is_operator:
            wanted = {"$eq": wanted}
        assert isinstance(wanted, Mapping)
        for operator, value in wanted.items():
            if operator in ("$eq", "$ne") and value is None:
                found.append(["is null" if operator == "$eq" else "is not null", name])
            elif operator == "$ne":
                found.append(unless(name, ["=", name, plain(value)]))
            elif operator == "$in":
                found.append(any_of(name, value))
            elif operator == "$nin":
                found.append(unless(name, any_of(name, value)))
            elif operator in _OPERATORS:
                found.append([_OPERATORS[operator], name, plain(value)])
            else:
                raise ValueError(f"unknown operator {operator!r} in a filter; known: {KNOWN}")
    return found


KNOWN = ", ".join([*_OPERATORS, "$ne", "$in", "$nin"])


def as_condition(given: object, place: str = "metadata") -> object:
    """Read a mapping as above; what is in the notation of pgrecall stays as it is."""
    return all_of(of_mapping(given, place)) if isinstance(given, Mapping) else given
