"""Code of others in schemas that everybody writes to never runs with the rights of a superuser.

PostgreSQL calls the function whose arguments fit best, wherever it is on the path: format(text,
name) of schema public rather than its own format(text, "any"). Here public holds one such function
and operator for every call that a script, the driver or the command could make, and pg_temp has
types and tables of PostgreSQL's names. Each of them advances a sequence before it fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

import servers
from pgrecall import Recall, schema
from pgrecall.command import main
from pgrecall.doctor import checks
from pgrecall.errors import InstallError
from pgrecall.server import build
from servers import ROUTES, Server
from sqlcalls import READS, column, fill, found_by, rows, value

ATTACKER = "pgrecall_attacker"
TYPES = ("text", "name", "integer", "bigint", "numeric", "oid", '"char"', "jsonb", "text[]", "real")
OPERATORS = ("=", "<>", "<", ">", "<=", ">=", "||", "+", "-", "*", "/", "->", "->>", "~", "~~")
TABLES = ("pg_extension", "pg_proc", "pg_class", "pg_namespace", "memory", "bank")

BODY = """
language plpgsql as $$ begin
  perform pg_catalog.nextval('public.hijacks'); raise exception 'hijacked';
end $$
"""
HIJACKS = "select is_called from public.hijacks"


def called_names(connection: psycopg.Connection) -> list[str]:
    """The functions of PostgreSQL that any SQL of pgrecall calls."""
    files = [*build.SQL.glob("*/*.sql"), *build.FRAME.glob("*.sql")]
    files += Path(schema.__file__).parent.rglob("*.py")
    words = {word for file in files for word in re.findall(r"\b([a-z_0-9]+)\(", file.read_text())}
    return column(
        connection,
        "select distinct proname::text from pg_proc where pronamespace = 'pg_catalog'::regnamespace"
        " and proname::text = any (%s)",
        sorted(words),
    )


def hostile_statements(names: list[str]) -> Iterator[str]:
    few = TYPES[:3]
    signatures = [*product(TYPES), *product(TYPES, TYPES), *product(few, few, few)]
    for name, signature in product(names, signatures):
        yield f'create function public."{name}"({", ".join(signature)}) returns text {BODY}'
    for left, right in product(TYPES, TYPES):
        for operator in OPERATORS:
            returns = "text" if operator in ("||", "->", "->>") else "boolean"
            name = f'public."f_{re.sub(r"[^a-z]", "", left + right + returns)}"'
            yield f"create or replace function {name}({left}, {right}) returns {returns} {BODY}"
            yield (
                f"create operator public.{operator}"
                f" (leftarg = {left}, rightarg = {right}, function = {name})"
            )


def make_hostile(dsn: str) -> None:
    """Let a role without rights fill public, to which everybody may write."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        names = called_names(connection)
        connection.execute("grant create on schema public to public")
        connection.execute("create sequence public.hijacks")
        connection.execute("grant usage on sequence public.hijacks to public")
        connection.execute(f"set role {ATTACKER}")
        connection.execute("; ".join(hostile_statements(names)).encode())


def make_temporary(connection: psycopg.Connection) -> None:
    """Give the session types and tables with the names of PostgreSQL's and ours."""
    connection.execute("create function pg_temp.bad(text) returns boolean " + BODY.strip())
    for name in ("text", "name", "jsonb", "oid"):
        connection.execute(
            f'create domain pg_temp."{name}" as pg_catalog.text check (pg_temp.bad(value))'.encode()
        )
    for name in TABLES:
        connection.execute(f"create temp table {name} (extname pg_catalog.text)".encode())


@pytest.fixture(scope="module")
def hostile_template(server: Server) -> Iterator[str]:
    """Name of a database with pgvector in a schema of its own, and a hostile public."""
    role = sql.Identifier(ATTACKER)
    server.execute(sql.SQL("create role {}").format(role))
    with server.database() as dsn:
        with psycopg.connect(dsn) as connection:
            connection.execute("create schema vectors")
            connection.execute("create extension vector schema vectors")
            name = connection.info.dbname
        make_hostile(dsn)
        yield name
    server.execute(sql.SQL("drop role {}").format(role))


@pytest.fixture
def hostile(server: Server, hostile_template: str) -> Iterator[str]:
    with server.database(hostile_template) as dsn:
        yield dsn


def install(route: str, server: Server, dsn: str, before: str | None = None) -> None:
    if route == "driver":
        with psycopg.connect(dsn) as connection:
            make_temporary(connection)
            connection.commit()
            schema.migrate(connection)
    elif route == "psql" and before:
        servers.run_script(server, dsn, build.upgrade_script(before))
    else:
        servers.install(route, server, dsn)


def hijacks(dsn: str) -> bool:
    with psycopg.connect(dsn) as connection:
        return bool(value(connection, HIJACKS))


def test_the_hostile_functions_are_called_where_nobody_takes_care(hostile: str) -> None:
    with psycopg.connect(hostile) as connection:
        for call in ("format('x%s', 'y'::name)", "hashtextextended('x', 0)", "2::real < 1"):
            with pytest.raises(psycopg.errors.RaiseException, match="hijacked"):
                connection.execute(f"select {call}".encode())
            connection.rollback()

    assert hijacks(hostile)


@pytest.mark.parametrize("route", ROUTES)
def test_an_install_runs_no_code_of_others(server: Server, hostile: str, route: str) -> None:
    install(route, server, hostile)

    assert not hijacks(hostile)


@pytest.mark.parametrize("route", ROUTES)
def test_an_upgrade_runs_no_code_of_others(
    server: Server, empty_database: str, hostile_template: str, route: str
) -> None:
    """0.1.0 itself, which is frozen, is installed before the others come."""
    with psycopg.connect(empty_database) as connection:
        connection.execute("create schema vectors")
        connection.execute("alter extension vector set schema vectors")
    servers.run_script(server, empty_database, servers.frozen_script("0.1.0"))
    make_hostile(empty_database)

    install(route, server, empty_database, "0.1.0")

    assert not hijacks(empty_database)
    with psycopg.connect(empty_database) as connection:
        assert schema.installed_version(connection) == build.version()


def test_no_call_of_a_superuser_runs_code_of_others(
    server: Server, hostile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    install("psql", server, hostile)
    with psycopg.connect(hostile, autocommit=True) as connection:
        make_temporary(connection)
        connection.execute("set search_path = pg_catalog")
        fill(connection, "b")
        found = {}
        for path in ("pg_catalog, vectors", '"$user", public, vectors'):
            connection.execute("select pg_catalog.set_config('search_path', %s, false)", [path])
            found[path] = {function: found_by(connection, function, "b") for function in READS}
        memory = Recall(connection, embedder=None)
        memory.retain("b", ["Ana sails to Lisbon"])
        hits = memory.recall("b", "Where does Ana sail?", timeout=60)
        rows(connection, "select * from pgrecall.bank_overview")
        rows(connection, "select * from pgrecall.fact")
    codes = [
        main([*words, "--dsn", hostile])
        for words in (["doctor"], ["index"], ["list", "b"], ["recall", "b", "Ana", "--no-embed"])
    ]

    assert not hijacks(hostile)
    assert len({str(answers) for answers in found.values()}) == 1
    assert hits
    assert codes == [0, 0, 0, 0]


def test_the_caller_gets_its_path_back(server: Server, hostile: str) -> None:
    with psycopg.connect(make_conninfo(hostile, options="-c search_path=public")) as connection:
        schema.migrate(connection)

        assert value(connection, "show search_path") == "public"


@pytest.mark.parametrize("route", ["extension", "driver"])
def test_a_superuser_runs_nothing_of_a_schema_that_belongs_to_another(
    server: Server, hostile: str, route: str
) -> None:
    with psycopg.connect(hostile, autocommit=True) as connection:
        connection.execute(f"create schema pgrecall authorization {ATTACKER}")
        connection.execute(f"set role {ATTACKER}")
        connection.execute(
            "create function pgrecall.version() returns text language plpgsql as $$"
            " begin raise 'hijacked'; end $$"
        )

    with pytest.raises((psycopg.Error, InstallError), match=f'belongs to "{ATTACKER}"'):
        install(route, server, hostile)
    with psycopg.connect(hostile, autocommit=True) as connection:
        found = {one.about: one for one in checks.examine_connected(connection)}
        assert f'belongs to "{ATTACKER}"' in found["pgrecall"].found
