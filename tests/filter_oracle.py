"""A second reader of filter expressions, by sqlglot: what the one in SQL is compared with.

What is not listed in :data:`COLUMNS` and :data:`OPERATORS` is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from pgrecall.errors import InvalidFilter

COLUMNS = (
    "memory_id",
    "fact_type",
    "text",
    "context",
    "fact_key",
    "source_id",
    "tags",
    "metadata",
    "occurred",
    "mentioned_at",
    "created_at",
    "confidence",
    "proof_count",
    "entity",
)
OPERATORS = (
    "= <> < <= > >=",
    "between",
    "in (...)",
    "is [not] null",
    "[not] like",
    "[not] ilike",
    "and or not",
    "metadata->>'key'",
    "tags @> array[...]",
    "tags && array[...]",
    "occurred && '[start,end)'",
)
HINT = f"Columns: {', '.join(COLUMNS)}. Operators: {', '.join(OPERATORS)}."
MAX_LENGTH = 10_000

_PLAIN = frozenset(COLUMNS) - {"tags", "metadata", "occurred"}
_COMPARISONS: dict[type[exp.Expr], tuple[str, str]] = {  # and what it is read backwards
    exp.EQ: ("=", "="),
    exp.NEQ: ("<>", "<>"),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
}
_TIMES = (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPTZ)
_NUMBERS = (
    exp.DataType.Type.SMALLINT,
    exp.DataType.Type.INT,
    exp.DataType.Type.BIGINT,
    exp.DataType.Type.DECIMAL,
    exp.DataType.Type.FLOAT,
    exp.DataType.Type.DOUBLE,
)
_RANGE = re.compile(r"\s*(?:\[\s*([^\s,][^,]*?)|[\[(])\s*,\s*([^,]*?)\s*\)\s*")

Filter = list[object]
"""A filter as the database takes it: nested lists, operator first."""


def parse_filter(expression: str) -> Filter:
    """Read a user's filter expression.

    Args:
        expression: A condition over the documented columns, in PostgreSQL's notation.

    Raises:
        InvalidFilter: it is not a condition, or uses anything that is not documented.

    """
    if len(expression) > MAX_LENGTH:
        raise _refused(f"a filter has at most {MAX_LENGTH} characters, not {len(expression)}")
    try:
        statements = sqlglot.parse(expression, read="postgres")
        if len(statements) != 1 or statements[0] is None:
            raise _refused("a filter is one condition")
        return _condition(statements[0])
    except SqlglotError as error:
        reason = " ".join(re.sub(r"\x1b\[\d*m", "", str(error)).split())
        raise _refused(f"cannot read the filter: {reason}") from None
    except RecursionError:
        raise _refused("the filter is nested too deeply") from None


def _refused(message: str) -> InvalidFilter:
    return InvalidFilter(message, hint=HINT)


def _sql(node: exp.Expr) -> str:
    return node.sql(dialect="postgres", comments=False)


def _unknown(node: exp.Expr) -> InvalidFilter:
    return _refused(f"not allowed in a filter: {_sql(node)}")


def _only(node: exp.Expr, *known: str) -> None:
    """Refuse a node with a part that its reader does not look at."""
    if any(value and name not in known for name, value in node.args.items()):
        raise _unknown(node)


def _condition(node: exp.Expr) -> Filter:
    match node:
        case exp.Paren():
            return _condition(node.this)
        case exp.And() | exp.Or():
            word = "and" if isinstance(node, exp.And) else "or"
            return [word, *(_condition(part) for part in node.flatten(unnest=False))]
        case exp.Not():
            return ["not", _condition(node.this)]
        case exp.Is():
            return _is_null(node)
        case exp.In():
            _only(node, "this", "expressions")
            column = _column(node.this)
            return ["in", column, [_value(value, column) for value in node.expressions]]
        case exp.Between():
            _only(node, "this", "low", "high")
            column = _column(node.this)
            low, high = _value(node.args["low"], column), _value(node.args["high"], column)
            return ["and", [">=", column, low], ["<=", column, high]]
        case exp.Like() | exp.ILike():
            return _like(node)
        case exp.ArrayContainsAll() | exp.ArrayOverlaps():
            return _sets(node)
        case _ if type(node) in _COMPARISONS:
            return _comparison(node)
    raise _unknown(node)


def _is_null(node: exp.Is) -> Filter:
    _only(node, "this", "expression", "negate")
    if not isinstance(node.expression, exp.Null):
        raise _unknown(node)
    whole = [name for name in ("tags", "metadata", "occurred") if _is_column(node.this, name)]
    column = whole[0] if whole else _column(node.this)
    return ["is not null" if node.args.get("negate") else "is null", column]


def _like(node: exp.Like | exp.ILike) -> Filter:
    _only(node, "this", "expression", "negate")
    word = "like" if isinstance(node, exp.Like) else "ilike"
    column = _column(node.this)
    found: Filter = [word, column, _value(node.expression, column)]
    return ["not", found] if node.args.get("negate") else found


def _comparison(node: exp.Expr) -> Filter:
    _only(node, "this", "expression")
    left, right = node.args["this"], node.args["expression"]
    forwards, backwards = _COMPARISONS[type(node)]
    if isinstance(right, exp.Any):  # 'deploy' = any(tags)
        if forwards == "=" and _is_column(_bare(right.this), "tags"):
            return ["contains", "tags", [_value(left, "tags")]]
        raise _unknown(node)
    if isinstance(left, exp.Literal | exp.Neg):
        left, right, forwards = right, left, backwards
    column = _column(left)
    value = _value(right, column)
    if isinstance(_bare(left), exp.Cast) and isinstance(value, str):
        raise _refused(f"expected a number, not {_sql(right)}, in: {_sql(node)}")
    return [forwards, column, value]


def _sets(node: exp.ArrayContainsAll | exp.ArrayOverlaps) -> Filter:
    """Read ``@>`` and ``&&``, which compare tags with a set and occurred with a range."""
    _only(node, "this", "expression")
    overlaps = isinstance(node, exp.ArrayOverlaps)
    if _is_column(node.this, "tags"):
        return ["overlaps" if overlaps else "contains", "tags", _strings(node.expression)]
    if overlaps and _is_column(node.this, "occurred"):
        return ["overlaps", "occurred", _range(node.expression)]
    raise _unknown(node)


def _is_column(node: exp.Expr, name: str) -> bool:
    return isinstance(node, exp.Column) and _sql(node) == name


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _column(node: exp.Expr) -> str:
    """Name the column that is compared: a plain one, or ``metadata.key``."""
    node = _bare(node)
    if isinstance(node, exp.Cast) and node.to.this in _NUMBERS:
        inner = _bare(node.this)
        if isinstance(inner, exp.JSONExtractScalar):
            return _column(inner)
    if isinstance(node, exp.JSONExtractScalar) and _is_column(_bare(node.this), "metadata"):
        path = node.expression
        steps = path.expressions if isinstance(path, exp.JSONPath) else []
        if len(steps) == 2 and isinstance(steps[1], exp.JSONPathKey):
            return f"metadata.{steps[1].this}"
    if isinstance(node, exp.Column):
        name = _sql(node) if node.table else node.name if node.this.quoted else node.name.lower()
        if name in _PLAIN:
            return name
        if name in COLUMNS:
            raise _refused(f'column "{name}" cannot be used in: {_sql(node.parent or node)}')
        raise _refused(f'unknown column "{name}" in the filter')
    raise _unknown(node)


def _value(node: exp.Expr, column: str) -> str | int | float | bool:
    node = _bare(node)
    if isinstance(node, exp.Cast) and node.to.this in _TIMES:
        node = node.this
    sign = 1
    if isinstance(node, exp.Neg):
        sign, node = -1, node.this
    if isinstance(node, exp.Literal):
        if not node.is_string:
            return sign * _number(node.name)
        if sign == 1:
            return node.name
    if isinstance(node, exp.Boolean) and sign == 1:
        return bool(node.this)
    if isinstance(node, exp.Null):
        raise _refused(f'compare "{column}" with null by: {column} is null')
    raise _refused(f'expected a constant to compare "{column}" with, not {_sql(node)}')


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)


def _strings(node: exp.Expr) -> list[object]:
    if isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.ARRAY:
        node = node.this
    if not isinstance(node, exp.Array):
        raise _refused(f"expected array['...', '...'], not {_sql(node)}")
    return [_value(element, "tags") for element in node.expressions]


def _range(node: exp.Expr) -> list[object]:
    if isinstance(node, exp.Literal) and (found := _RANGE.fullmatch(node.name)):
        return [side.strip('"') if side else None for side in found.groups()]
    is_call = isinstance(node, exp.Anonymous) and node.name.lower() == "tstzrange"
    if is_call and len(node.expressions) == 2:
        return list(_sides(node.expressions))
    raise _refused(f"expected a period as '[start,end)', not {_sql(node)}")


def _sides(nodes: Iterable[exp.Expr]) -> Iterable[object]:
    for node in nodes:
        yield None if isinstance(node, exp.Null) else _value(node, "occurred")
