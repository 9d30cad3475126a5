"""Statements to send, and how their rows are read.

A :class:`Call` does no I/O: both clients send the same ones, and a test can read them. Arguments
have the names they have in SQL. Only what was given is sent, so SQL's defaults are the only ones.
Columns are read by name; columns of a newer schema that the driver does not know are ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from psycopg.errors import UndefinedColumn
from psycopg.rows import BaseRowFactory, scalar_row, tuple_row
from psycopg.types.range import Range

from pgrecall.calls.values import checked
from pgrecall.rows import Period

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Row = TypeVar("Row")
Result = TypeVar("Result")
Value = TypeVar("Value")
Record = TypeVar("Record", bound="DataclassInstance")
# An empty list has no type. Rows of an export are text, so that no number is rounded.
_CASTS = {"embedding": "::real[]", "rows": "::pg_catalog.jsonb"}


@dataclass(frozen=True, slots=True)
class Call(Generic[Row, Result]):
    """A statement to send.

    Attributes:
        sql: The statement, with named placeholders.
        parameters: A value for each placeholder.
        row_factory: Makes a row of the result's columns.
        result: Makes the answer of all rows.
        is_repeatable: Whether it may be sent again when the connection was lost and it is not
            known whether the statement had arrived.

    """

    sql: str
    parameters: Mapping[str, object]
    row_factory: BaseRowFactory[Row]
    result: Callable[[list[Row]], Result]
    is_repeatable: bool = True


def limit_time(seconds: float) -> Call[Any, None]:
    """Limit the time of the following statements, unless they have a lower limit.

    Until unlimit_time() or the end of the transaction.
    """
    return Call(
        "select set_config('pgrecall.statement_timeout', old.value, true) as former,"
        " set_config('statement_timeout', least(nullif(extract(epoch from old.value::interval)"
        " * 1000.0, 0.0), %(milliseconds)s)::bigint::pg_catalog.text, true) as used"
        " from (select current_setting('statement_timeout')) as old(value)",
        {"milliseconds": math.ceil(seconds * 1000)},
        tuple_row,
        nothing,
    )


def unlimit_time() -> Call[Any, None]:
    """Restore the time limit from before limit_time()."""
    return Call(
        "select set_config('statement_timeout',"
        " current_setting('pgrecall.statement_timeout'), true)",
        {},
        tuple_row,
        nothing,
    )


def then(call: Call[Row, Result], change: Callable[[Result], Result]) -> Call[Row, Result]:
    """Return a call whose result is changed by a function."""
    return replace(call, result=lambda rows: change(call.result(rows)))


def together(several: Sequence[Call[Row, Result]]) -> Call[tuple[int, Row], list[Result]]:
    """Join calls with the same columns to one statement, for one round trip."""
    parts: list[str] = []
    parameters: dict[str, object] = {}
    for n, call in enumerate(several):
        text = re.sub(r"%\((\w+)\)s", rf"%(\1__{n})s", call.sql)
        parts.append(f"select {n} as call_n, row_number() over () as row_n, c.* from ({text}) as c")
        parameters |= {f"{name}__{n}": value for name, value in call.parameters.items()}

    def row_factory(cursor: Any) -> Callable[[Sequence[Any]], tuple[int, Row]]:
        row = several[0].row_factory(cursor)
        return lambda values: (values[0], row(values))

    def result(rows: list[tuple[int, Row]]) -> list[Result]:
        found: list[list[Row]] = [[] for _ in several]
        for n, row in rows:
            found[n].append(row)
        return [call.result(own) for call, own in zip(several, found, strict=True)]

    sql = f"{' union all '.join(parts)} order by call_n, row_n"
    return Call(sql, parameters, row_factory, result, all(call.is_repeatable for call in several))


def call_value(
    function: str,
    needed: Mapping[str, object] | None = None,
    *,
    is_repeatable: bool = True,
    **given: object,
) -> Call[Any, Any]:
    """Call a function that returns one value."""
    listing, parameters = named_arguments(needed, **given)
    return Call(
        f"select pgrecall.{function}({listing})", parameters, scalar_row, single, is_repeatable
    )


def call_command(
    function: str, needed: Mapping[str, object], *, is_repeatable: bool = True, **given: object
) -> Call[Any, None]:
    """Call a function that returns nothing."""
    call = call_value(function, needed, is_repeatable=is_repeatable, **given)
    return replace(call, result=nothing)


def call_records(
    kind: type[Record],
    function: str,
    needed: Mapping[str, object] | None = None,
    /,
    *,
    is_repeatable: bool = True,
    **given: object,
) -> Call[Record, list[Record]]:
    """Call a function that returns rows."""
    listing, parameters = named_arguments(needed, **given)
    sql = f"select * from pgrecall.{function}({listing})"
    return Call(sql, parameters, row_of(kind), list, is_repeatable)


def call_record(
    kind: type[Record], function: str, needed: Mapping[str, object], **given: object
) -> Call[Record, Record]:
    """Call a function that returns one row."""
    listing, parameters = named_arguments(needed, **given)
    return Call(f"select * from pgrecall.{function}({listing})", parameters, row_of(kind), single)


def named_arguments(
    needed: Mapping[str, object] | None = None, **given: object
) -> tuple[str, dict[str, object]]:
    """Return the required and the given arguments, and their values."""
    sent = {name: value for name, value in given.items() if value is not None and value != {}}
    sent = {**(needed or {}), **sent}
    listing = ", ".join(f"{name} => %({name})s{_CASTS.get(name, '')}" for name in sent)
    return listing, checked(**sent)


def row_of(kind: type[Record]) -> BaseRowFactory[Record]:
    """Make objects from the columns that a class has fields for.

    One that an older schema does not return is missed like one of a table: a caller is told both
    versions.
    """
    needed = {
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    }

    def factory(cursor: Any) -> Callable[[Sequence[Any]], Record]:
        known = _names(kind)
        columns = [each for each in enumerate(column_names(cursor)) if each[1] in known]
        missing = needed.difference(name for _, name in columns)
        if missing:
            raise UndefinedColumn(f"pgrecall returned no {', '.join(sorted(missing))}")
        return lambda values: kind(**{name: values[place] for place, name in columns})

    return factory


def column_names(cursor: Any) -> list[str]:
    """Return the names of a result's columns; its description would look up their types too."""
    found = cursor.pgresult
    return [found.fname(place).decode() for place in range(found.nfields)] if found else []


@cache
def _names(kind: type[DataclassInstance]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def period_of(occurred: Range[datetime] | None) -> Period | None:
    """Return the bounds of a range."""
    return None if occurred is None else (occurred.lower, occurred.upper)


def made_of(kind: type[Record], values: Mapping[str, Any]) -> Record:
    """Make an object from the values that its class has fields for."""
    return kind(**{name: values[name] for name in _names(kind) if name in values})


def single(rows: list[Value]) -> Value:
    """Return the only row."""
    return rows[0]


def nothing(_rows: list[Any]) -> None:
    """Return None."""
    return
