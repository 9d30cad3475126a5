"""The rules of the house that a machine can check. A rule that matters is a test."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import psycopg
import pytest
import sqlglot

from pgrecall.server import build

FILES = build.sources()
STATE = [path for path in FILES if build.is_state(path)]
LOGIC = [path for path in FILES if not build.is_state(path)]

BODY = re.compile(r"(\$\w*\$).*?\1", re.DOTALL)
COMMENT = re.compile(r"--[^\n]*")
STRING = re.compile(r"'(?:[^']|'')*'")

FORBIDDEN = {
    "a transaction of its own": r"^\s*(begin(?!\s+atomic)|commit|rollback|savepoint)\b[^;]*;",
    "create role": r"^\s*create\s+(role|user)\b",
    "create extension": r"^\s*create\s+extension\b",
    "if not exists": r"\b(table|index|schema|column|sequence|type|view)\s+if\s+not\s+exists\b",
    "drop": r"^\s*drop\b",
    "a psql command": r"^\\",
    "a tab": r"\t",
}


def all_sql() -> list[Path]:
    return [*FILES, build.MIGRATIONS / "next.sql"]


def outer(path: Path) -> str:
    """Return a file without comments, strings and function bodies."""
    text = COMMENT.sub("", path.read_text())
    return STRING.sub("''", BODY.sub("''", text))


def functions(path: Path) -> list[tuple[str, str]]:
    """Return the name and the head, up to the body, of each function that a file makes."""
    head = r"create (?:or replace )?function pgrecall(?:_internal)?\.(\w+)(.*?)"
    body = r"(?:\nas \$|\nreturn\b|\nbegin atomic)"
    pattern = re.compile(head + body, re.DOTALL)
    return pattern.findall(COMMENT.sub("", path.read_text()))


def parsed(path: Path) -> list[object]:
    """Parse a file with sqlglot, past the two things in `comment on` that it does not read."""
    text = re.sub(r"'[ ]*\n\s*'", "", path.read_text())  # a literal that goes on in the next line
    text = re.sub(r"^(comment on function [\w.]+)\([^;']*\) is$", r"\1 is", text, flags=re.M)
    return list(sqlglot.parse(text, dialect="postgres"))


def by_name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def broken_rules(connection: psycopg.Connection, query: str) -> list[tuple[str, str]]:
    return connection.execute(Path(__file__).with_name(query).read_bytes()).fetchall()


def test_functions_keep_the_house_rules(connection: psycopg.Connection) -> None:
    assert broken_rules(connection, "check_functions.sql") == []


def test_tables_keep_the_house_rules(connection: psycopg.Connection) -> None:
    assert broken_rules(connection, "check_tables.sql") == []


def test_a_function_that_breaks_the_rules_is_named(connection: psycopg.Connection) -> None:
    connection.execute(
        "create function pgrecall.sloppy(text) returns bigint language sql security definer"
        " as 'select count(*) from pgrecall.memory'"
    )

    rules = {r for r, name in broken_rules(connection, "check_functions.sql") if "sloppy" in name}

    assert rules == {
        "has a comment",
        "is no security definer",
        "names every argument",
        "reads tables, so it fixes its search_path",
        "reads tables, so it is plpgsql: Citus cannot plan the others",
    }


def test_a_table_that_breaks_the_rules_is_named(connection: psycopg.Connection) -> None:
    connection.execute("create table pgrecall.sloppy (id bigint primary key, seen timestamp)")

    rules = {r for r, name in broken_rules(connection, "check_tables.sql") if "sloppy" in name}

    assert rules == {
        "has a comment",
        "has a primary key that begins with bank_id",
        "has a time zone in every time, and _at in its name",
        "is unique within a bank only",
    }


def test_a_second_index_that_lists_a_whole_bank_is_named(connection: psycopg.Connection) -> None:
    connection.execute("create index sloppy on pgrecall.memory (bank_id, text)")

    assert ("lets only the primary key list a whole bank", "pgrecall.sloppy") in broken_rules(
        connection, "check_tables.sql"
    )


@pytest.mark.parametrize("path", all_sql(), ids=by_name)
def test_sql_is_read_by_another_parser(path: Path) -> None:
    assert parsed(path)


def test_lines_have_at_most_100_columns() -> None:
    too_long = [
        f"{by_name(path)}:{number}"
        for path in all_sql()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 100
    ]

    assert too_long == []


@pytest.mark.parametrize("path", FILES, ids=by_name)
def test_a_script_leaves_out_what_no_script_may_do(path: Path) -> None:
    text = outer(path)

    found = [
        what
        for what, pattern in FORBIDDEN.items()
        if re.search(pattern, text, re.IGNORECASE | re.MULTILINE)
    ]

    assert found == []


@pytest.mark.parametrize("path", FILES, ids=by_name)
def test_a_script_holds_nothing_that_create_extension_would_replace(path: Path) -> None:
    assert re.findall(r"@ext\w+(?::\w+)?@|MODULE_PATHNAME", path.read_text()) == []


@pytest.mark.parametrize("path", FILES, ids=by_name)
def test_a_file_is_named_by_a_noun(path: Path) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*\.sql", path.name)


@pytest.mark.parametrize("path", LOGIC, ids=by_name)
def test_logic_is_replaced_never_made_anew(path: Path) -> None:
    made = re.findall(r"^\s*(create\s+(?!or\s+replace\b)\w+[^;(]*)", outer(path), re.M | re.I)

    assert made == []


@pytest.mark.parametrize("path", LOGIC, ids=by_name)
def test_every_function_states_volatility_and_parallel_safety(path: Path) -> None:
    silent = [
        name
        for name, head in functions(path)
        if not re.search(r"\b(immutable|stable|volatile)\b", head)
        or not re.search(r"\bparallel (safe|restricted|unsafe)\b", head)
    ]

    assert silent == []


@pytest.mark.parametrize("path", LOGIC, ids=by_name)
def test_the_text_rules_see_every_function(path: Path) -> None:
    made = re.findall(
        r"^create or replace function pgrecall(?:_internal)?\.(\w+)", path.read_text(), re.M
    )

    assert [name for name, _ in functions(path)] == made


def calls(path: Path) -> set[str]:
    """Return the names of ours that a file calls, past what stands in strings."""
    return set(re.findall(r"pgrecall(?:_internal)?\.(\w+)\s*\(", uncommented(path)))


def uncommented(path: Path) -> str:
    return STRING.sub("''", COMMENT.sub("", path.read_text()))


def test_the_rooms_stand_in_the_order_of_the_readme() -> None:
    rooms = list(dict.fromkeys(path.parent.name for path in FILES))

    drawn = re.findall(r"^    sql/(\w+)/ ", (build.ROOT / "README.md").read_text(), re.M)

    assert rooms == drawn
    assert [path.parent.name for path in FILES] == sorted(
        (path.parent.name for path in FILES), key=rooms.index
    )


def test_a_room_uses_only_the_rooms_before_it() -> None:
    homes = {name: path for path in LOGIC for name, _ in functions(path)}
    rooms = list(dict.fromkeys(path.parent.name for path in FILES))

    upwards = [
        f"{by_name(path)}: {name}() of {by_name(homes[name])}"
        for path in LOGIC
        for name in sorted(calls(path) & set(homes))
        if rooms.index(homes[name].parent.name) > rooms.index(path.parent.name)
    ]

    assert upwards == []


def test_the_rooms_of_the_driver_are_those_it_says() -> None:
    rooms = {path.parent.name for path in build.PACKAGE.glob("*/__init__.py")}

    drawn = re.findall(r"^    (\w+)/ ", (build.PACKAGE / "__init__.py").read_text(), re.M)

    assert rooms == set(drawn)


def used_modules() -> dict[str, set[str]]:
    """Return the modules of the driver that each imports, at its head or within a function."""
    paths = build.PACKAGE.rglob("*.py")
    files = {str(path.relative_to(build.PACKAGE.parent).with_suffix("")): path for path in paths}
    names = {name.replace("/", ".").removesuffix(".__init__"): files[name] for name in files}
    lazy = names.pop("pgrecall")  # imports all others, when they are asked for
    assert lazy.name == "__init__.py"
    return {
        name: {
            whole if (whole := f"{node.module}.{part.name}") in names else node.module
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and node.module
            for part in node.names
        }
        & set(names) - {name}
        for name, path in names.items()
    }


def test_no_two_modules_of_the_driver_use_each_other() -> None:
    used = used_modules()

    assert len([*TopologicalSorter(used).static_order()]) == len(used)


def test_a_room_of_the_driver_uses_only_those_above_it() -> None:
    said = re.findall(r"^    (\w+)/ ", (build.PACKAGE / "__init__.py").read_text(), re.M)
    used = used_modules()

    def room(module: str) -> str:
        return module.split(".")[1]

    by_room: dict[str, set[str]] = {}
    for name, modules in used.items():
        by_room.setdefault(room(name), set()).update({room(one) for one in modules} - {room(name)})
    downwards = [
        f"{name}: {other}"
        for name, others in by_room.items()
        for other in sorted(others & set(said))
        if name in said and said.index(other) > said.index(name)
    ]

    assert downwards == []
    # Modules beside the rooms, each taken as one, make no circle either.
    assert len([*TopologicalSorter(by_room).static_order()]) == len(by_room)


def test_tests_stand_in_the_rooms_of_what_they_test() -> None:
    tests = build.ROOT / "tests"
    rooms = {path.parent.name for path in [*FILES, *build.PACKAGE.glob("*/__init__.py")]}

    elsewhere = [
        str(path.relative_to(tests))
        for path in tests.rglob("test_*.py")
        if path.parent.name not in rooms | {"client", "house", "faults"}
    ]

    assert elsewhere == []


def test_the_page_for_contributors_names_the_rooms_in_their_order() -> None:
    rooms = list(dict.fromkeys(path.parent.name for path in FILES))

    text = (build.ROOT / "CONTRIBUTING.md").read_text()

    assert f"in rooms: {', '.join(rooms)}." in text
