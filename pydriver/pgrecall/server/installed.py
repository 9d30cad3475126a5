"""What a version installs, read from its script, for comparison with a database."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pgrecall.server import build

_FUNCTION = re.compile(
    r"(?:create or replace|comment on) (?:function|view) ([\w.]+)|create (?=cast)(cast \(.+?\))"
)
_COLUMN = re.compile(r"comment on column (\w+\.\w+)\.")
_INDEX = re.compile(r"create (?:unique )?index (\w+)\s+on ")
_TABLE = re.compile(r"create table ([\w.]+) \(")
_TABLE_COLUMN = re.compile(r"^  (?!constraint )(\w+)\s", re.MULTILINE)
# A line that goes on with the one before it is indented by more than two.
_CONSTRAINT = re.compile(r"^  constraint (\w+)\s+(.+?),?$(?!\n   )", re.MULTILINE | re.DOTALL)
_KEY = re.compile(r"foreign key \((.+?)\) references ([\w.]+) \((.+?)\)")


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint.

    Attributes:
        table: Its table, with the schema.
        name: Its name.
        definition: What follows its name in a statement.

    """

    table: str
    name: str
    definition: str

    @property
    def reference(self) -> tuple[list[str], str, list[str]] | None:
        """Columns of a foreign key, the table that it refers to, and the columns there."""
        found = _KEY.match(self.definition)
        return (found[1].split(", "), found[2], found[3].split(", ")) if found else None


@dataclass(frozen=True, slots=True)
class Installed:
    """What a script installs.

    Attributes:
        functions: The statements that create functions, views and casts and comment on them, by
            name with schema; a cast as ``cast (text as pgrecall_internal.period)``.
        tables: The columns of tables by name with schema, without partitions.
        indexes: The statements that create indexes, by name, without those of constraints.
        constraints: The constraints, in the order of their tables.

    """

    functions: dict[str, list[str]]
    tables: dict[str, list[str]]
    indexes: dict[str, str]
    constraints: list[Constraint]


@lru_cache(maxsize=2)
def installed_by(script: str) -> Installed:
    """Read what a script of the whole schema installs."""
    result = Installed({}, {}, {}, [])
    block = ""
    for statement in map(build.bare, build.statements(script)):
        if statement.startswith("do "):
            block = statement
        elif function := _FUNCTION.match(statement):
            # What a block creates is commented right after it.
            first = [block] if statement.startswith("comment") else []
            result.functions.setdefault(function[1] or function[2], first).append(statement)
        elif (column := _COLUMN.match(statement)) and column[1] in result.functions:
            result.functions[column[1]].append(statement)
        elif index := _INDEX.match(statement):
            result.indexes[index[1]] = " ".join(statement.split()).rstrip(";") + ";"
        elif table := _TABLE.match(statement):
            result.tables[table[1]] = _TABLE_COLUMN.findall(statement)
            for name, definition in _CONSTRAINT.findall(statement):
                flat = " ".join(definition.split())
                result.constraints.append(Constraint(table[1], name, flat))
    return result
