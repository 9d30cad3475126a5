"""Install and upgrade pgrecall in a database.

This runs the same script, byte for byte, as ``psql -1 -f`` and ``pgrecall_setup.install()``.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from pgrecall._version import __version__
from pgrecall.connection.connecting import value_of
from pgrecall.errors import InstallError, translated
from pgrecall.server import build
from pgrecall.server.build import Phase
from pgrecall.server.citus import distribute, is_distributed, raise_ids
from pgrecall.server.installed import installed_by

Connection = psycopg.Connection[Any]

_PAUSE = 1.0  # seconds between attempts, so that other transactions can finish
_SCANNED = 200e6  # bytes per second to check or copy a table, a low estimate
_INDEXED = {"btree": 40e6, "gin": 10e6, "hnsw": 1e6}  # bytes of table per second

# One migration at a time per database; the scripts take the same lock.
_QUEUE = "select pg_advisory_xact_lock(hashtextextended('pgrecall', 0))"

# Hides functions in other schemas of the caller's path.
_PATH = "pg_catalog, pg_temp"
_WHOLE = re.DOTALL | re.MULTILINE
_SET = "select pg_catalog.set_config(%s, %s, true)"

# The owner of the schema, whose functions a superuser must not run.
_LESSER_OWNER = (
    "select r.rolname from pg_namespace n join pg_roles r on r.oid = n.nspowner"
    " where n.nspname = 'pgrecall' and not r.rolsuper"
    " and (select s.rolsuper from pg_roles s where s.rolname = current_user)"
)


@dataclass(frozen=True, slots=True)
class MigrationResult:
    """Result of :func:`migrate`.

    Attributes:
        before: Version that was installed; None if there was none.
        after: Version that is installed now.
        route: Whether the database has the extension, or the script was run without it.
        is_distributed: Whether Citus distributes its tables.
        restored: Functions of the version that were missing and were created again.

    """

    before: str | None
    after: str
    route: Literal["extension", "script"]
    is_distributed: bool = False
    restored: tuple[str, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether anything was done."""
        return self.before != self.after or bool(self.restored)


@dataclass(frozen=True, slots=True)
class PlannedStatement:
    """One statement of an upgrade, as listed by :func:`plan`.

    Attributes:
        phase: ``catalog`` locks no table, ``build`` blocks writers but no readers, ``swap`` blocks
            everybody until the upgrade commits.
        statement: The statement itself.
        lock: Lock mode that it takes, such as ``access exclusive``; None for no lock on a table.
        table: Table that is locked, with its schema.
        seconds: Estimate for an ordinary server, from the sizes of the tables.
        by_hand: Statement to run at any time before the upgrade, outside a transaction; the upgrade
            then skips this one. None if there is none.

    """

    phase: Phase
    statement: str
    lock: str | None
    table: str | None
    seconds: float
    by_hand: str | None


def script(name: str) -> str:
    """Read an install or upgrade script, such as ``pgrecall-0.1.0-0.2.0.upgrade.sql``.

    Raises:
        InstallError: no script has that name.

    """
    # In a checkout, assembled from the current sql/.
    found = build.assemble().get(name) if build.is_checkout() else build.packed_script(name)
    if found is not None:
        return found
    raise InstallError(
        f'this package has no script "{name}"',
        hint="Install another version of the package: pip install --upgrade pgrecall",
    )


def installed_version(connection: Connection) -> str | None:
    """Return the version of pgrecall in the database, such as ``0.1.0``; None if missing.

    Raises:
        InstallError: a superuser asks, and the schema belongs to a role that is none; the other
            schema is missing; or the database is a router.

    """
    refuse_router(connection)
    owner = value_of(connection, _LESSER_OWNER)
    if owner is not None:
        raise InstallError(
            f'schema "pgrecall" belongs to "{owner}", whose functions would run as superuser',
            hint=f'Connect as "{owner}"; or, if it is not yours: drop schema pgrecall cascade;',
        )
    if not value_of(connection, "select to_regprocedure('pgrecall.version()') is not null"):
        return None
    version = str(value_of(connection, "select pgrecall.version()"))
    has_internal = "select to_regnamespace('pgrecall_internal') is not null"
    if version == __version__ and not value_of(connection, has_internal):
        raise InstallError(
            'schema "pgrecall" is here without schema "pgrecall_internal"',
            hint="Restore a dump of both, as of: pg_dump -n 'pgrecall*', into another database.",
        )
    return version


def is_router(connection: Connection) -> bool:
    """Return whether the database is a router, whose shards hold the banks."""
    return bool(value_of(connection, "select to_regclass('pgrecall_router.shard') is not null"))


def refuse_router(connection: Connection) -> None:
    """Refuse what must be done on each shard.

    Raises:
        InstallError: the database is a router.

    """
    if is_router(connection):
        raise InstallError(
            "this database is a router: its shards hold the banks",
            hint="See and upgrade them with: pgrecall shard status, pgrecall shard migrate; for"
            " doctor and index pass the --dsn of a shard.",
        )


def pending_script(connection: Connection) -> str | None:
    """Return the script that :func:`migrate` would run; None if the database is up to date.

    Raises:
        InstallError: the database has a newer version than this package, or no script leads from
            its version to this one.

    """
    with translated():
        return _pending_script(installed_version(connection))


def plan(connection: Connection) -> list[PlannedStatement]:
    """List how an upgrade would change the state of the database; lock and change nothing.

    Functions, views and comments are not listed, since re-creating them locks no table. The list is
    empty if the database is up to date or has no pgrecall.

    Raises:
        InstallError: as :func:`pending_script`; or PostgreSQL is too old, the database has another
            encoding, or the server has no pgvector.

    """
    with translated():
        before = installed_version(connection)
        _refuse_server(connection, before)
        text = _pending_script(before)
        if before is None:
            _has_vector(connection)
        if before is None or text is None:
            return []
        made: dict[str, str] = {}  # tables and indexes of the upgrade, by name: the table
        return [
            _planned(connection, phase, statement, made)
            for phase, part in _delta_parts(text)
            for statement in build.statements(part)
        ]


def dependents(connection: Connection) -> dict[str, bool]:
    """Name your objects that depend on what an upgrade changes, such as ``view public.best``.

    For each, whether :func:`migrate` makes it again with ``recreate_dependents``. This only reads.

    Raises:
        InstallError: as :func:`pending_script`.

    """
    with translated(), connection.transaction(), _settings_kept(connection):
        connection.execute(_SET, ["search_path", _PATH])
        connection.execute(_SET, ["quote_all_identifiers", "off"])  # the query compares names
        text = _pending_script(installed_version(connection)) or ""
        query = re.search(r"^create table pgrecall_upgrade\.concerned as\n.*?;$", text, _WHOLE)
        if query is None:
            return {}
        found = connection.execute(query[0].partition(" as\n")[2].encode())
        return {name: again for what, _, name, again in found if what == "dependent"}


def describe(connection: Connection, steps: list[PlannedStatement]) -> str:
    """Describe the result of :func:`plan` as text.

    Statements of the swap are only counted, by table: they are many and take milliseconds each.
    """
    before = installed_version(connection)
    if before == __version__:
        missing = ", ".join(missing_functions(connection))
        if missing:
            return f"would create again what is missing: {missing}\n"
        return f"pgrecall {__version__} is up to date\n"
    if before is None:
        return f"would install pgrecall {__version__}; there is no table to lock\n"
    lines = [f"would upgrade pgrecall from {before} to {__version__}, in one transaction", ""]
    lines.append("1. Readers go on. Writers to these tables wait until the upgrade commits:")
    built = [step for step in steps if step.phase == "build" and step.lock]
    for step in built:
        first = " ".join(step.statement.split())
        lines.append(f"   {step.table}: {step.lock} lock, about {step.seconds:.1f} s")
        lines.append(f"     {first[:90]}{'...' if len(first) > 90 else ''}")
    swapped = [step for step in steps if step.phase == "swap"]
    lines += ["", "2. Everybody waits, readers too, until the upgrade commits:"]
    for table in dict.fromkeys(step.table for step in swapped if step.table):
        mine = [step for step in swapped if step.table == table]
        lines.append(
            f"   {table}: access exclusive lock, {len(mine)} statements,"
            f" about {sum(step.seconds for step in mine):.1f} s"
        )
    lines.append(
        "   All tables are locked at once or none, tried again when one is in use, so that"
    )
    lines.append("   nobody waits behind a lock that the upgrade itself still waits for.")
    lines.append("   If somebody writes during 1, it begins anew and locks all tables before 1.")
    by_hand = [step.by_hand for step in steps if step.by_hand]
    if by_hand:
        lines += ["", "Run beforehand, at any time, and the upgrade need not do it:", ""]
        lines += [str(statement) for statement in by_hand]
    return "\n".join(lines) + "\n"


def migrate(
    connection: Connection,
    *,
    lock_timeout: float = 2.0,
    retries: int = 5,
    citus: bool = False,
    recreate_dependents: bool = False,
) -> MigrationResult:
    """Install pgrecall, or upgrade it to the version of this package, in one transaction.

    In a database that has this version, functions that are missing are created again.

    Creates the extension ``vector`` if it is missing. If others write while indexes are built, the
    upgrade begins anew, and then readers wait for the indexes, too. Inside a transaction of the
    caller nothing is committed or retried. Concurrent migrations of one database wait for each
    other, and all but the first find it done.

    Args:
        connection: A connection with the role that is to own pgrecall.
        lock_timeout: Seconds to wait for a lock on a table. The wait for a lock that blocks readers
            is always at most 50 ms at a time.
        retries: How often the transaction is retried if a lock timed out.
        recreate_dependents: Whether to drop and recreate your views that depend on functions which
            the upgrade re-creates, with owner, grants, comments and indexes, in the same
            transaction. Other dependent objects are still an error.
        citus: Whether to also distribute it over the workers of Citus. Do this again after shards
            have moved, so that ids continue above those of the moved banks.

    Raises:
        InstallError: PostgreSQL or pgvector is too old or missing, the database has a newer version
            than this package, no script leads from its version to this one, objects of the
            user depend on what the upgrade changes: the hint names them; the database has no
            Citus, or what is to be upgraded is distributed by it.
        psycopg.errors.LockNotAvailable: a table was in use each time.

    """
    is_ours = connection.info.transaction_status == TransactionStatus.IDLE
    for attempt in range(retries + 1):
        try:
            with translated(), connection.transaction(), _settings_kept(connection) as path:
                connection.execute(_SET, ["search_path", _PATH])
                connection.execute(_QUEUE)  # wait for other migrations as long as they take
                patience = f"{max(1, round(lock_timeout * 1000))}ms"
                connection.execute(_SET, ["lock_timeout", patience])
                switch = "on" if recreate_dependents else "off"
                connection.execute(_SET, ["pgrecall.recreate_dependents", switch])
                if attempt:  # writers came while indexes were built
                    connection.execute(_SET, ["pgrecall.lock_first", "on"])
                result = _migrate(connection, path, citus=citus)
            if citus and is_ours:
                with translated(), connection.transaction():
                    raise_ids(connection)
            return result
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            if not is_ours or attempt == retries:
                raise
            time.sleep(_PAUSE)
    raise AssertionError("unreachable")


@contextlib.contextmanager
def _settings_kept(connection: Connection) -> Iterator[str]:
    """Restore the settings that a script changes for the transaction, which may be the caller's.

    Yields the search_path of the caller.
    """
    kept = (
        "search_path",
        "lock_timeout",
        "check_function_bodies",
        "client_min_messages",
        "quote_all_identifiers",
    )
    values = [value_of(connection, "select pg_catalog.current_setting(%s)", name) for name in kept]
    # In a SQL_ASCII database texts are bytes; the script refuses it.
    values = [value.decode() if isinstance(value, bytes) else value for value in values]
    yield values[0]
    for name, value in zip(kept, values, strict=True):
        connection.execute(_SET, [name, value])


def _migrate(connection: Connection, path: str, *, citus: bool) -> MigrationResult:
    before = installed_version(connection)
    _refuse_server(connection, before)
    if before is None:
        if not _has_vector(connection):
            _create_vector(connection, path)
        if citus:  # each shard has its own partitions
            connection.execute(
                "select set_config('pgrecall.partitions', coalesce(nullif("
                "current_setting('pgrecall.partitions', true), ''), '1'), true)"
            )
    text = _pending_script(before)
    was_distributed = is_distributed(connection)
    if text is not None and was_distributed:
        raise InstallError(
            f"pgrecall {before} is distributed by Citus here, and cannot be upgraded in place",
            hint="Install the new version in another database of the cluster, and move the banks"
            " there: pgrecall export, pgrecall import.",
        )
    restored: tuple[str, ...] = ()
    if text is not None:
        connection.execute(text.encode())  # psycopg's types accept only literal strings
    elif not was_distributed:
        restored = _restore_functions(connection)
    is_extension = value_of(
        connection, "select exists (select from pg_extension where extname = 'pgrecall')"
    )
    if is_extension:
        _update_extension(connection)
    if citus and not was_distributed:
        distribute(connection)
    route: Literal["extension", "script"] = "extension" if is_extension else "script"
    return MigrationResult(before, __version__, route, citus or was_distributed, restored)


def _refuse_server(connection: Connection, before: str | None) -> None:
    if connection.info.server_version < 160000:
        raise InstallError(
            "PostgreSQL 16 or newer is needed, not "
            + str(value_of(connection, "select current_setting('server_version')")),
            hint="Upgrade the server first, by pg_upgrade or by dump and restore.",
        )
    if before is None:
        # The script checks this, too, where the server can read it.
        encoding = value_of(connection, "select current_setting('server_encoding')::bytea").decode()
        if encoding != "UTF8":
            raise InstallError(
                f'the encoding of database "{connection.info.dbname}" is {encoding}',
                hint="Create one with another encoding: create database memory encoding 'UTF8'"
                " template template0;",
            )


def missing_functions(connection: Connection) -> dict[str, list[str]]:
    """Return the statements that create the missing functions, views and casts of this version.

    A dump of schemas has no casts.
    """
    query = (
        "select pg_catalog.array_agg(pg_catalog.format(case when x.source_id is null then '%s.%s'"
        " else 'cast (%3$s as %1$s.%2$s)' end, n.nspname, x.name,"
        # Quoted under quote_all_identifiers.
        " pg_catalog.replace(pg_catalog.format_type(x.source_id, null), '\"', '')))"
        " from (select p.proname, p.pronamespace, null::oid from pg_proc p union all"
        " select c.relname, c.relnamespace, null from pg_class c where c.relkind = 'v' union all"
        " select t.typname, t.typnamespace, k.castsource"
        " from pg_cast k join pg_type t on t.oid = k.casttarget)"
        " as x(name, schema_id, source_id) join pg_namespace n on n.oid = x.schema_id"
        " where n.nspname in ('pgrecall', 'pgrecall_internal')"
    )
    there = set(value_of(connection, query) or ())
    functions = installed_by(script(build.install_name(__version__))).functions
    return {name: made for name, made in functions.items() if name not in there}


def _restore_functions(connection: Connection) -> tuple[str, ...]:
    missing = missing_functions(connection)
    if missing:  # under the path that the install script sets for them
        query = (
            "select pg_catalog.format('pg_catalog, %I, pg_temp', n.nspname) from pg_extension x"
            " join pg_namespace n on n.oid = x.extnamespace where x.extname = 'vector'"
        )
        connection.execute(_SET, ["search_path", value_of(connection, query)])
        # Their bodies may name one another.
        connection.execute(_SET, ["check_function_bodies", "off"])
        try:
            for statement in chain.from_iterable(missing.values()):
                connection.execute(statement.encode())
        except (psycopg.errors.UndefinedObject, psycopg.errors.UndefinedColumn) as error:
            raise InstallError(
                f"functions of pgrecall {__version__} cannot be created again:"
                f" {error.diag.message_primary}",
                hint="Columns or types are missing, as after drop extension vector cascade, or in"
                " an earlier, unreleased state of this version; pgrecall doctor names the columns."
                " Restore a backup into an empty database; of an unreleased state, move the banks"
                " by pgrecall export and import.",
            ) from error
    return tuple(missing)


def _pending_script(before: str | None) -> str | None:
    if before == __version__:
        return None
    if before is None:
        return script(build.install_name(__version__))
    if build.version_key(before) > build.version_key(__version__):
        raise InstallError(
            f"the database has pgrecall {before}, which is newer than this package, {__version__}",
            hint=f"Upgrade the package: pip install 'pgrecall>={before}'",
        )
    return script(build.upgrade_name(before, __version__))


def _has_vector(connection: Connection) -> bool:
    if value_of(connection, "select exists (select from pg_extension where extname = 'vector')"):
        return True
    if not value_of(
        connection, "select exists (select from pg_available_extensions where name = 'vector')"
    ):
        raise InstallError(
            "this server does not have pgvector",
            hint="Install pgvector 0.8.4 or newer on the server, then run: pgrecall migrate",
        )
    return False


def _create_vector(connection: Connection, path: str) -> None:
    try:
        connection.execute(_SET, ["search_path", path])  # into its first schema
        connection.execute("create extension vector")
        connection.execute(_SET, ["search_path", _PATH])
    except psycopg.errors.InsufficientPrivilege as error:
        raise InstallError(
            f'this role may not create the extension "vector" in "{connection.info.dbname}"',
            hint="Ask an administrator to run there: create extension vector;",
        ) from error
    except psycopg.errors.InvalidSchemaName as error:
        raise InstallError(
            f'search_path, {path or "empty"}, names no schema for the extension "vector"',
            hint="Run: create extension vector schema public; or set search_path to a schema that"
            " exists.",
        ) from error


def _update_extension(connection: Connection) -> None:
    """Also upgrade pgrecall_setup.install(), if the server has the files."""
    is_there = (
        "select exists (select from pg_extension x, pg_extension_update_paths('pgrecall') p"
        " where x.extname = 'pgrecall' and x.extversion = p.source"
        " and p.target = %s and p.path is not null)"
    )
    has_files = "select exists (select from pg_available_extensions where name = 'pgrecall')"
    if value_of(connection, has_files) and value_of(connection, is_there, __version__):
        connection.execute(
            sql.SQL("alter extension pgrecall update to {}").format(sql.Literal(__version__))
        )


# Effects of statements of a delta on tables: (pattern, lock, rate in bytes a second of the named
# table, None for nothing to read).
_EFFECTS: tuple[tuple[str, str | None, float | None], ...] = (
    (
        r"create (?:unique )?index (?:if not exists )?(?P<made>\w+) on (?P<table>[\w.]+)",
        "share",
        _INDEXED["btree"],
    ),
    (r"(?:insert into|update|delete from) (?P<table>[\w.]+)", "row exclusive", _SCANNED / 10),
    (
        r"alter table (?P<table>[\w.]+) add (?:column .* )?constraint .* check",
        "access exclusive",
        _SCANNED,
    ),
    (r"alter table (?P<table>[\w.]+) validate", "share update exclusive", _SCANNED),
    (r"alter table (?P<table>[\w.]+) alter column \w+ (?:set data )?type", "access exclusive", 2e7),
    (
        r"alter table [\w.]+ add constraint .* foreign key .* references (?P<table>[\w.]+)",
        "share row exclusive",
        _SCANNED,
    ),
    (r"(?:alter|drop) table (?P<table>[\w.]+)", "access exclusive", None),
    (r"create table (?P<made>[\w.]+)", None, None),
    (r"drop index (?P<index>[\w.]+)", "access exclusive", None),
    (r"alter index (?P<index>[\w.]+)", "share update exclusive", None),
)


def _planned(
    connection: Connection, phase: Phase, commented: str, made: dict[str, str]
) -> PlannedStatement:
    statement = build.bare(commented)
    flat = " ".join(statement.split())
    lock, table, rate = None, None, None
    for pattern, mode, speed in _EFFECTS:
        found = re.match(pattern, flat)
        if found:
            lock, rate, parts = mode, speed, found.groupdict()
            table = parts.get("table")
            if "index" in parts:
                table = _table_of(connection, parts["index"], made)
            if "made" in parts:
                made[parts["made"]] = str(table)
            if table in made:  # not visible to others yet
                lock, table = None, None
            break
    else:  # a block cannot be analysed, so the delta declares its locks
        named = re.search(r"^-- locks: ([\w.]+)$", commented, re.MULTILINE)
        if named:
            lock, table = "access exclusive", named[1]
    method = re.search(r"\busing (\w+)", flat)
    if lock == "share" and method:
        rate = _INDEXED.get(method[1], rate)
    seconds = 0.0
    if rate and table:
        sources = {table, *re.findall(r"\bfrom (pgrecall\w*\.\w+)", flat)}
        seconds = sum(_bytes(connection, name) for name in sources) / rate
    by_hand = None
    if lock == "share" and "if not exists" in flat and _has_index(connection, flat):
        seconds = 0.0
    elif lock == "share" and "if not exists" in flat and _can_be_made(connection, flat):
        by_hand = statement.replace(" index if not exists", " index concurrently if not exists", 1)
    return PlannedStatement(phase, statement, lock, table, round(seconds, 1), by_hand)


def _delta_parts(text: str) -> Iterator[tuple[Phase, str]]:
    """Find the parts of an upgrade script that come from deltas, by the headings from build."""
    parts = re.split(r"^-- (delta .*, (?:catalog|build|swap)|end of delta)$", text, flags=re.M)
    for heading, part in zip(parts[1::2], parts[2::2], strict=True):
        for phase in build.PHASES:
            if heading.endswith(f", {phase}"):
                yield phase, part


def _table_of(connection: Connection, index: str, made: dict[str, str]) -> str | None:
    """Return the table of an index, which may be one that the upgrade makes."""
    query = "select indrelid::regclass::text from pg_index where indexrelid = to_regclass(%s)"
    table = value_of(connection, query, index)
    return str(table) if table else made.get(index.split(".")[-1])


def _bytes(connection: Connection, table: str) -> int:
    """Return the size of a table with all its partitions, without its indexes."""
    # pg_partition_tree() would lock each partition for as long as the transaction lasts.
    query = (
        "with given as (select to_regclass(%s)::oid as relid)"
        " select pg_table_size(g.relid) + coalesce((select sum(pg_table_size(i.inhrelid))"
        " from pg_inherits i where i.inhparent = g.relid), 0) from given g"
    )
    size = value_of(connection, query, table)
    return int(size or 0)


def _has_index(connection: Connection, statement: str) -> bool:
    """Return whether the index that a statement creates was created beforehand."""
    found = re.search(r"if not exists (\w+) on (pgrecall\w*)\.", statement)
    query = "select exists (select from pg_index where indexrelid = to_regclass(%s) and indisvalid)"
    return found is not None and bool(value_of(connection, query, f"{found[2]}.{found[1]}"))


def _can_be_made(connection: Connection, statement: str) -> bool:
    """Return whether the functions that an index uses exist before the upgrade."""
    functions = re.findall(r"\b(pgrecall\w*)\.(\w+)\(", statement)
    query = (
        "select exists (select from pg_proc where proname = %s"
        " and pronamespace = to_regnamespace(%s))"
    )
    return all(value_of(connection, query, name, schema) for schema, name in functions)
