"""Convert the filters of other libraries to conditions of pgrecall."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

Condition = list[object]

_OPERATORS = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


def all_of(conditions: list[Condition]) -> Condition | None:
    """Join conditions by "and"; None if there are none."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return ["and", *conditions]


def any_of(name: str, values: Iterable[object]) -> Condition:
    """Make a condition for any of several values, of mixed types.

    Raises:
        ValueError: values is a string.

    """
    if isinstance(values, str):
        raise ValueError(f"a filter for any of some values needs a list, not {values!r}")
    each: list[Condition] = [["=", name, plain(value)] for value in values]
    if len(each) > 1:
        return ["or", *each]
    return each[0] if each else ["in", name, []]


def unless(name: str, condition: Condition) -> Condition:
    """Negate a condition on a field; a missing value meets the negation."""
    return ["or", ["is null", name], ["not", condition]]


def plain(value: object) -> object:
    """Convert a value to what metadata is compared with: booleans are compared as text."""
    return json.dumps(value) if isinstance(value, bool) else value


def of_mapping(given: Mapping[str, object], place: str) -> list[Condition]:
    """Convert {"field": value} and {"field": {"$gt": value}} to conditions.

    Args:
        given: The filter.
        place: Where the fields are, such as "metadata".

    Raises:
        ValueError: an operator is unknown, or a string is given for a list.

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
    """Convert a mapping as of_mapping() does; pass a filter of pgrecall through."""
    return all_of(of_mapping(given, place)) if isinstance(given, Mapping) else given
