"""Which version of pgrecall a database has, and how it gets this one.

What is run here is what ``psql -1 -f`` and ``create extension`` run: the same script, byte for
byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import psycopg
from psycopg import sql
from psycopg.rows import scalar_row

from pgrecall import build
from pgrecall._version import __version__
from pgrecall.errors import InstallError, translated

Connection = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True)
class MigrationResult:
    """What :func:`migrate` found and did.

    Attributes:
        before: Version that was installed, None where there was none.
        after: Version that is installed now.
        route: How pgrecall is installed: by ``create extension``, or by running its script.

    """

    before: str | None
    after: str
    route: Literal["extension", "script"]

    @property
    def is_changed(self) -> bool:
        """Whether anything was done."""
        return self.before != self.after


def script(name: str) -> str:
    """Read an install or upgrade script, such as ``pgrecall--0.1.0.sql``.

    Raises:
        InstallError: there is none of that name.

    """
    if build.is_checkout():  # always what sql/ says now
        scripts = build.assemble()
        if name in scripts:
            return scripts[name]
    else:
        path = build.EXTENSION / name
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise InstallError(
        f'this package has no script "{name}"',
        hint="Install another version of the package: pip install --upgrade pgrecall",
    )


def installed_version(connection: Connection) -> str | None:
    """Return the version of pgrecall that the database has, such as ``0.1.0``; None for none."""
    if not _scalar(connection, "select to_regprocedure('pgrecall.version()') is not null"):
        return None
    return str(_scalar(connection, "select pgrecall.version()"))


def migrate(connection: Connection) -> MigrationResult:
    """Install pgrecall, or upgrade it to the version of this package, in one transaction.

    Creates the extension ``vector`` where it is missing. Inside a transaction of the caller nothing
    is committed.

    Args:
        connection: To the database, as the role that shall own pgrecall.

    Raises:
        InstallError: pgvector is missing or too old, the database has a newer version than this
            package, or no script leads from its version to this one.

    """
    with translated(), connection.transaction():
        path = _scalar(connection, "select current_setting('search_path')")
        result = _migrate(connection)
        # The script sets it up to the end of the transaction, which may be the caller's.
        connection.execute("select set_config('search_path', %s, true)", [path])
    return result


def _migrate(connection: Connection) -> MigrationResult:
    before = installed_version(connection)
    is_extension = _scalar(
        connection, "select exists (select from pg_extension where extname = 'pgrecall')"
    )
    route: Literal["extension", "script"] = "extension" if is_extension else "script"
    if before is None:
        _provide_vector(connection)
        _run(connection, f"pgrecall--{__version__}.sql")
    elif before != __version__:
        _require_older(before)
        if route == "extension":
            _update_extension(connection, before)
        else:
            _run(connection, f"pgrecall--{before}--{__version__}.sql")
    return MigrationResult(before, __version__, route)


def _require_older(before: str) -> None:
    if build.version_key(before) > build.version_key(__version__):
        raise InstallError(
            f"the database has pgrecall {before}, which is newer than this package, {__version__}",
            hint=f"Upgrade the package: pip install 'pgrecall>={before}'",
        )


def _provide_vector(connection: Connection) -> None:
    if _scalar(connection, "select exists (select from pg_extension where extname = 'vector')"):
        return
    if not _scalar(
        connection, "select exists (select from pg_available_extensions where name = 'vector')"
    ):
        raise InstallError(
            "this server does not have pgvector",
            hint="Install pgvector 0.8.4 or newer on the server, then run: pgrecall migrate",
        )
    try:
        connection.execute("create extension vector")
    except psycopg.errors.InsufficientPrivilege as error:
        raise InstallError(
            f'this role may not create the extension "vector" in "{connection.info.dbname}"',
            hint="Ask an administrator to run there: create extension vector;",
        ) from error


def _update_extension(connection: Connection, before: str) -> None:
    is_there = (
        "select exists (select from pg_extension_update_paths('pgrecall')"
        " where source = %s and target = %s and path is not null)"
    )
    if not _scalar(connection, is_there, before, __version__):
        raise InstallError(
            f"the server has no extension script from pgrecall {before} to {__version__}",
            hint="Run make install on the server, then: pgrecall migrate",
        )
    connection.execute(
        sql.SQL("alter extension pgrecall update to {}").format(sql.Literal(__version__))
    )


def _run(connection: Connection, name: str) -> None:
    # As bytes: psycopg takes a str for a query only when it stands in the source.
    connection.execute(script(name).encode())


def _scalar(connection: Connection, query: str, *arguments: str) -> Any:
    with connection.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(query.encode(), arguments or None).fetchone()
