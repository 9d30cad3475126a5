"""Write what is generated in the package: client.py and options.py. Run by ``make generate``.

``client.py`` is ``aio.py`` without waiting: each rule below replaces one pattern. ``options.py``
holds the arguments and options of a recall as the database declares them; it is read from a
database that is created for that and dropped again.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "pydriver" / "pgrecall"
CLIENT = PACKAGE / "client.py"
OPTIONS = PACKAGE / "options.py"

CLIENT_DOC = (
    '''"""Recall, the client. Generated from aio.py by pydriver/generate.py; do not edit."""'''
)
OPTIONS_DOC = '''"""Arguments and options of a recall, as the database declares them.

Generated from pgrecall.recall_options() by pydriver/generate.py; do not edit.
"""'''
RULES = (
    (r"await asyncio\.wait_for\(asyncio\.wrap_future\((.+?)\), (.+?)\)", r"\1.result(\2)"),
    (r"\bon_own_thread\b", "on_this_thread"),
    (r"await asyncio\.to_thread\(function, \*arguments\)", "function(*arguments)"),
    (r"from asyncio import Lock", "from threading import Lock"),
    (r"\basyncio\b", "time"),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\bAbstractAsync(\w+)", r"Abstract\1"),
    (r"\bAsync([A-Z]\w+)", r"\1"),
    (r"\basync (?=def|with|for)", ""),
    (r"\bawait ", ""),
)
TYPES = {
    "boolean": "bool",
    "integer": "int",
    "number": "float",
    "text": "str",
    "text[]": "Sequence[str]",
    "interval": "timedelta | str",
    "object": "Mapping[str, object]",
    "embedding": "Iterable[float] | str | Callable[[str], str]",
}
ARGUMENTS = """
select a.name, pg_get_function_arg_default(p.oid, a.place::integer)
from   pg_proc p
cross  join unnest(p.proargnames) with ordinality as a(name, place)
where  p.oid = 'pgrecall.hybrid_recall'::regproc
  and  (p.proargmodes is null or p.proargmodes[a.place] = 'i')
order  by a.place
"""


def client_source() -> str:
    """Return client.py as aio.py has it now."""
    source = (PACKAGE / "aio.py").read_text(encoding="utf-8")
    first = ast.parse(source).body[0]
    source = "\n".join(source.splitlines()[first.end_lineno :])
    for pattern, replacement in RULES:
        source = re.sub(pattern, replacement, source)
    return _formatted(f"{CLIENT_DOC}\n{source}\n")


def options_source(connection: psycopg.Connection[Any]) -> str:
    """Return options.py as a database with pgrecall has it now."""
    arguments = dict(connection.execute(ARGUMENTS).fetchall())
    options = connection.execute(
        "select name, type, default_value, range, description, choices, is_bank_default"
        " from pgrecall.recall_options() order by name"
    ).fetchall()
    described, fields = [], []
    for name, kind, default, extent, description, choices, is_bank_default in options:
        said = [f"{description.rstrip('.')}."]
        said += [f"One of: {', '.join(choices)}."] if choices else []
        is_plain = bool(choices) or kind == "boolean"
        said += [f"Range: {extent}."] if extent and not is_plain else []
        whose = "the bank's, else " if is_bank_default else ""
        said += [f"Default: {whose}{_plain(default)}."] if default is not None else []
        described.append((name, " ".join(" ".join(said).split())))
        hint = f"Literal[{', '.join(map(repr, choices))}]" if choices else TYPES[kind]
        hint = f"Sequence[{hint}]" if choices and kind == "text[]" else hint
        fields.append(f"    {name}: {hint} | None")
    names = [name for name in arguments if name not in ("bank", "query", "during", "options")]
    return _formatted(
        f"{OPTIONS_DOC}\n\nfrom __future__ import annotations\n\n"
        "from collections.abc import Callable, Iterable, Mapping, Sequence\n"
        "from datetime import timedelta\n"
        "from typing import Literal, TypedDict\n\n"
        f"ARGUMENTS = {tuple(names)!r}\n"
        f"TOP_K = {int(arguments['top_k'].split('::')[0].strip(chr(39)))}\n"
        f"EMBEDDINGS = frozenset({_of_type(options, 'embedding')})\n"
        f"LISTS = frozenset({_of_type(options, 'text[]')})\n\n\n"
        "class SqlOptions(TypedDict, total=False):\n"
        '    """Options of a recall.\n\n    Attributes:\n'
        + "\n".join(_wrapped(name, text) for name, text in described)
        + '\n\n    """\n\n'
        + "\n".join(fields)
        + "\n"
    )


def _of_type(options: list[Any], kind: str) -> str:
    return repr(tuple(option[0] for option in options if option[1] == kind))


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _wrapped(name: str, text: str) -> str:
    lines, line = [], f"        {name}:"
    for word in text.replace("\\", "\\\\").split():
        if len(line) + 1 + len(word) > 100:
            lines.append(line)
            line = "            " + word
        else:
            line = f"{line} {word}"
    return "\n".join([*lines, line])


def _formatted(source: str) -> str:
    """Format as ``ruff format`` and the import rules of this repository do."""
    ruff = [sys.executable, "-m", "ruff"]
    for command in (
        [*ruff, "check", "--select", "I,F401", "--fix", "--quiet", "--exit-zero"],
        [*ruff, "format", "--quiet"],
    ):
        source = subprocess.run(
            [*command, "--stdin-filename", str(CLIENT), "-"],
            input=source,
            text=True,
            capture_output=True,
            check=True,
            cwd=ROOT,
        ).stdout
    return source


def main() -> int:
    """Write both files."""
    sys.path.insert(0, str(PACKAGE.parent))
    if not OPTIONS.exists():
        raise SystemExit(f"{OPTIONS} is missing: take it from git, the package does not import")
    from pgrecall.server import resolve_dsn, schema

    dsn = resolve_dsn()
    name = sql.Identifier(f"pgrecall_generate_{os.getpid()}")
    with psycopg.connect(dsn, autocommit=True) as server:
        server.execute(sql.SQL("create database {}").format(name))
        try:
            own = make_conninfo(dsn, dbname=name.as_string(None).strip('"'))
            with psycopg.connect(own) as connection:
                schema.migrate(connection)
                OPTIONS.write_text(options_source(connection), encoding="utf-8")
        finally:
            server.execute(sql.SQL("drop database {} with (force)").format(name))
    CLIENT.write_text(client_source(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
