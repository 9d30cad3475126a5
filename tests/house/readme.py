"""The reference, sql/README.md: written from sql/reference.md, the database and errors.py.

sql/reference.md holds the chapters and what is said in prose. Its markers, such as
``<!-- functions: create_bank reembed_* -->``, stand where something generated goes.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import psycopg
from bench import report

from pgrecall import errors

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
TEMPLATE = ROOT / "sql" / "reference.md"
REFERENCE = ROOT / "sql" / "README.md"

MARKER = re.compile(r"^<!-- (\w+)(?:: ([^>]*?))? -->\n", re.MULTILINE)
NOTICE = "<!-- Written by make readme from reference.md and the database; edit those. -->\n\n"
COLUMNS = 92  # a signature that is longer gets a line for each argument

# So that pgvector's types are named without their schema, and nothing else is.
PATH = """
select set_config('search_path', n.nspname, true)
from   pg_extension x join pg_namespace n on n.oid = x.extnamespace
where  x.extname = 'vector'
"""
NAMES = """
select distinct proname::text from pg_proc
where  pronamespace = 'pgrecall'::regnamespace and proname not like '\\_%'
order  by 1
"""
FUNCTION = """
select array(select format('%%s %%s', p.proargnames[n], format_type(p.proargtypes[n - 1], null))
             from   generate_series(1, p.pronargs) as n order by n),
       array(select pg_get_function_arg_default(p.oid, n)
             from   generate_series(1, p.pronargs) as n order by n),
       pg_get_function_result(p.oid),
       obj_description(p.oid, 'pg_proc')
from   pg_proc p
where  p.pronamespace = 'pgrecall'::regnamespace and p.proname = %s
"""
RELATIONS = """
select c.relname::text,
       coalesce(obj_description(c.oid, 'pg_class'), obj_description(c.reltype, 'pg_type'))
from   pg_class c
where  c.relnamespace = 'pgrecall'::regnamespace and not c.relispartition
and    c.relkind::text = any (%s)
order  by c.relname
"""
ATTRIBUTES = """
select a.attname::text, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid),
       col_description(a.attrelid, a.attnum)
from   pg_attribute a
left   join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where  a.attrelid = to_regclass('pgrecall.' || %s) and a.attnum > 0 and not a.attisdropped
order  by a.attnum
"""

Connection = psycopg.Connection[Any]


def public_functions(connection: Connection) -> list[str]:
    """Return the names of the functions of schema pgrecall."""
    return [name for (name,) in connection.execute(NAMES)]


def chapters(template: str, names: list[str]) -> dict[str, list[str]]:
    """Return the public functions of each chapter of a template, in the order of its markers."""
    found: dict[str, list[str]] = {}
    for chapter in re.split(r"^## ", template, flags=re.MULTILINE)[1:]:
        title, text = chapter.split("\n", 1)
        patterns = " ".join(
            argument for kind, argument in MARKER.findall(text) if kind == "functions"
        )
        found[title] = _matching(patterns, names)
    return found


def reference(connection: Connection) -> str:
    """Return the text of sql/README.md for a database that has pgrecall."""
    names = public_functions(connection)
    parts: dict[str, Callable[[str], Iterator[str]]] = {
        "functions": lambda wanted: _functions(connection, _matching(wanted, names)),
        "options": lambda _: _options(connection),
        "arms": lambda _: _arms(connection),
        "settings": lambda table: _settings(connection, table),
        "relations": lambda _: _relations(connection),
        "types": lambda _: _types(connection),
        "errors": lambda _: _errors(),
        "contents": lambda _: _contents(template),
        "peers": lambda name: iter([report.filled_table(name)]),
    }
    template = TEMPLATE.read_text(encoding="utf-8")
    with connection.transaction(force_rollback=True):
        connection.execute(PATH)
        return NOTICE + MARKER.sub(
            lambda found: "\n".join(parts[found[1]](found[2] or "")).rstrip() + "\n", template
        )


def _matching(patterns: str, names: list[str]) -> list[str]:
    """Return the names that match, in the order of the patterns; a name itself goes before *."""
    wanted = patterns.split()
    found: list[str] = []
    for pattern in wanted:
        matches = [name for name in names if fnmatch(name, pattern)]
        found += [n for n in matches if n == pattern or (n not in found and n not in wanted)]
    return found


def _contents(template: str) -> Iterator[str]:
    for title in re.findall(r"^## (.*)$", template, re.MULTILINE):
        yield f"* [{title}](#{title.lower().replace(' ', '-')})"


def _functions(connection: Connection, names: list[str]) -> Iterator[str]:
    for name in names:
        row = connection.execute(FUNCTION, [name]).fetchone()
        assert row is not None
        arguments, defaults, result, comment = row
        yield from (f"### {name}", "", "```text", _signature(name, arguments, defaults, result))
        yield from ("```", "", *_described(comment), "")
        for kind in re.findall(r"pgrecall\.(\w+)$", result):
            yield from (f"Columns: [{kind}](#type-{kind}).", "")


def _signature(name: str, arguments: list[str], defaults: list[str | None], result: str) -> str:
    with_defaults = [
        _lower(argument) + (f" default {_default(default)}" if default else "")
        for argument, default in zip(arguments, defaults, strict=True)
    ]
    end = f") returns {_lower(result)}"
    line = f"{name}({', '.join(with_defaults)}{end}"
    if len(line) <= COLUMNS:
        return line
    return f"{name}(\n  " + ",\n  ".join(with_defaults) + f"\n{end}"


def _default(expression: str) -> str:
    """Return a default without the casts that PostgreSQL adds."""
    return _lower(re.sub(r"::[a-z_. ]+(\[\])?", "", expression))


def _lower(text: str) -> str:
    text = text.replace("timestamp with time zone", "timestamptz")
    return re.sub(r"\b(NULL|SETOF|TABLE|ARRAY)\b", lambda found: found[0].lower(), text)


def _described(comment: str) -> Iterator[str]:
    """Yield a comment as paragraphs: the first sentence, the details, the errors."""
    text, _, codes = _one_line(comment).partition("Errors: ")
    first, *details = re.split(r"(?<=\.)(?<!et al\.) ", text.strip(), maxsplit=1)
    yield _escaped(first)
    if details:
        yield from ("", _escaped(details[0]))
    if codes:
        yield from ("", f"Errors: {_escaped(codes)}")


def _options(connection: Connection) -> Iterator[str]:
    yield from _table("option", "type", "default", "range", "what it does")
    for name, kind, default, choices, text, is_default in connection.execute(
        "select name, type, case when default_value = pgrecall.default_weights()"
        " then 'default_weights()' else default_value::text end, range, description,"
        " is_bank_default from pgrecall.recall_options()"
    ):
        note = text if is_default else f"{text} Of a call only."
        yield _row(f"`{name}`", kind, f"`{default or 'null'}`", choices or "", _escaped(note))


def _arms(connection: Connection) -> Iterator[str]:
    yield from _table("arm", "finds", "needs", "weight", "least budget")
    for arm, weight, needs, budget, text in connection.execute(
        "select arm, weight, needs, least_budget, description from pgrecall.arms() order by place"
    ):
        yield _row(f"`{arm}`", _escaped(text), ", ".join(needs) or "-", f"{weight:g}", budget)


def _settings(connection: Connection, table: str) -> Iterator[str]:
    """Yield the columns of a table that configure_bank() sets."""
    ((settable,),) = connection.execute("select pgrecall_internal._settings()")
    yield from _table("setting", "type", "default", "what it is")
    for name, kind, default, comment in connection.execute(ATTRIBUTES, [table]):
        if name in settable:
            value = f"`{_default(default)}`"
            yield _row(f"`{name}`", kind, value, _escaped(_one_line(comment)))


def _relations(connection: Connection) -> Iterator[str]:
    yield from _table("relation", "what it holds")
    for name, comment in connection.execute(RELATIONS, [["r", "p"]]):
        yield _row(f"table `{name}`", _escaped(_one_line(comment)))
    for name, comment in connection.execute(RELATIONS, [["v"]]):
        columns = connection.execute(ATTRIBUTES, [name])
        listed = ", ".join(f"`{column}`" for column, *_ in columns)
        yield _row(f"view `{name}`", f"{_escaped(_one_line(comment))} Columns: {listed}.")


def _types(connection: Connection) -> Iterator[str]:
    for name, comment in connection.execute(RELATIONS, [["c"]]):
        yield from (f"### type {name}", "", _escaped(_one_line(comment)), "")
        yield from _table("attribute", "type")
        for attribute, kind, *_ in connection.execute(ATTRIBUTES, [name]):
            yield _row(f"`{attribute}`", _lower(kind))
        yield ""


def _errors() -> Iterator[str]:
    yield from _table("code", "meaning", "class in Python")
    codes = errors._BY_SQLSTATE.items()
    for code, kind in sorted(codes, key=lambda item: (not item[0].startswith("RC"), item[0])):
        text = _one_line(inspect.getdoc(kind) or "")
        yield _row(f"`{code}`", _escaped(text), f"`{kind.__name__}`")


def _table(*titles: str) -> Iterator[str]:
    yield _row(*titles)
    yield "|" + "---|" * len(titles)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    """Return text in which Markdown finds nothing to read, and HTML no tags."""
    return re.sub(r"([|*\\<])|(?<!\w)(_)", r"\\\1\2", text)


def main(dsn: str) -> None:
    """Write sql/README.md from a database that has pgrecall."""
    with psycopg.connect(dsn) as connection:
        REFERENCE.write_text(reference(connection), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        import servers

        with servers.server_under_test() as server, server.database() as dsn:
            with psycopg.connect(dsn) as connection:
                connection.execute("create extension vector")
            servers.install("driver", server, dsn)
            main(dsn)
