"""Convert the filters of other libraries to conditions of pgrecall."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import cast

Condition = list[object]

_OPERATORS = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_JOINS = ("$and", "$or", "$not")


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
    """Convert {"field": value}, {"field": {"$gt": value}} and {"$or": [...]} to conditions.

    Args:
        given: The filter.
        place: Where the fields are, such as "metadata".

    Raises:
        ValueError: an operator is unknown, what it joins is not a list of filters, or a value is a
            list or a mapping.

    """
    found: list[Condition] = []
    for field, wanted in given.items():
        if field in _JOINS:
            found.append(_joined(field, wanted, place))
            continue
        name = f"{place}.{field}"
        is_operator = isinstance(wanted, Mapping) and any(key.startswith("$") for key in wanted)
        if not is_operator:
            wanted = {"$eq": wanted}
        assert isinstance(wanted, Mapping)
        for operator, value in wanted.items():
            if operator not in ("$in", "$nin") and isinstance(value, Mapping | list | tuple):
                raise ValueError(
                    f"a filter compares {field!r} with one value, not {value!r}; $in takes several"
                )
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


def _joined(operator: str, wanted: object, place: str) -> Condition:
    parts = [wanted] if operator == "$not" else wanted
    if not isinstance(parts, list | tuple) or not parts:
        raise ValueError(f"{operator} in a filter needs a list of filters, not {wanted!r}")
    for part in parts:
        if not isinstance(part, Mapping) or not part:
            raise ValueError(f"{operator} in a filter joins filters of fields, not {part!r}")
    each: list[object] = [all_of(of_mapping(part, place)) for part in parts]
    if operator == "$not":
        return ["not", *each]
    return [operator.removeprefix("$"), *each] if len(each) > 1 else cast(Condition, each[0])


KNOWN = ", ".join([*_OPERATORS, "$ne", "$in", "$nin", *_JOINS])


def as_condition(given: object, place: str = "metadata") -> object:
    """Convert a mapping as of_mapping() does; pass a filter of pgrecall through."""
    return all_of(of_mapping(given, place)) if isinstance(given, Mapping) else given


def narrowed(given: object, condition: Condition | None) -> object:
    """Join a filter that was given, as for as_condition(), and a condition.

    Raises:
        ValueError: the filter is an expression, which cannot be joined with a condition.

    """
    given = as_condition(given)
    if given is None or condition is None:
        return condition if given is None else given
    if isinstance(given, str):
        raise ValueError(f"write the filter as a list to join it with others, not as {given!r}")
    return ["and", given, condition]
