"""Every way to install or upgrade pgrecall ends in the same database."""

from __future__ import annotations

import datetime
import json
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import servers
from pgrecall import schema
from pgrecall._version import __version__
from pgrecall.command import main
from pgrecall.errors import InstallError
from pgrecall.server import build
from servers import ROUTES, Server

OLD_RELEASES = [
    release
    for release in build.frozen_releases()
    if build.version_key(release) < build.version_key(__version__)
]

# What the made-up release 0.1.0 below adds to 0.0.9, and how an existing database gets it.
NEW_STATE = """\
alter table pgrecall.bank add column colour text;
comment on column pgrecall.bank.colour is 'How it is shown.';
create table pgrecall.shelf (bank_id text not null, constraint shelf_pkey primary key (bank_id));
comment on table pgrecall.shelf is 'Where it stands.';
"""
NEW_LOGIC = """\
create or replace function pgrecall.shelf_count(bank text)
returns bigint
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return (select count(*) from pgrecall.shelf s where s.bank_id = shelf_count.bank);
end;
$$;
comment on function pgrecall.shelf_count(text) is 'Shelves of a bank.';
"""
GONE = """\
create function pgrecall.gone() returns integer language sql immutable parallel safe return 1;
"""
DELTA = "-- drop public: gone\n\n-- phase: swap\n\n" + NEW_STATE


@pytest.fixture
def made_up_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make today's sql/ the frozen release 0.0.9, and add to sql/ what comes after it."""
    old = build.full_script().replace(f"'{__version__}'", "'0.0.9'")
    shutil.copytree(build.SQL, tmp_path / "sql")
    (tmp_path / "sql" / "state" / "shelf.sql").write_text(NEW_STATE)
    (tmp_path / "sql" / "operations" / "shelf.sql").write_text(NEW_LOGIC)
    order = (build.SQL / build.ORDER).read_text()
    first_of_values = order.index("values/")
    (tmp_path / "sql" / build.ORDER).write_text(
        f"{order[:first_of_values]}state/shelf.sql\n{order[first_of_values:]}operations/shelf.sql\n"
    )
    migrations = tmp_path / "migrations"
    migrations.mkdir()
    (migrations / "pgrecall--0.0.9.sql").write_text(old + GONE)
    (migrations / "next.sql").write_text(DELTA)
    monkeypatch.setattr(build, "SQL", tmp_path / "sql")
    monkeypatch.setattr(build, "MIGRATIONS", migrations)
    return migrations


def everything(dsn: str) -> set[tuple[str, str]]:
    """Return type and name of what a database holds beside PostgreSQL and pgvector."""
    catalogs = ("namespace", "class", "proc", "type", "cast", "operator", "extension")
    objects = " union all ".join(f"select 'pg_{c}'::regclass, oid from pg_{c}" for c in catalogs)
    with psycopg.connect(dsn) as connection:
        return set(
            connection.execute(
                f"select o.type, o.identity from ({objects}) as x(class_id, id)"
                " cross join pg_identify_object(x.class_id, x.id, 0) as o"
                " where x.id >= 16384 and o.identity !~ 'vector|pg_toast'"
            ).fetchall()
        )


@pytest.fixture
def second_database(server: Server, empty_database: str) -> Iterator[str]:
    with psycopg.connect(empty_database) as connection:
        template = connection.info.dbname
    with server.database(template) as dsn:
        yield dsn


@pytest.mark.parametrize("other", ["extension", "psql"])
def test_every_route_installs_the_same(
    server: Server, empty_database: str, second_database: str, other: str
) -> None:
    servers.install("driver", server, empty_database)
    servers.install(other, server, second_database)

    assert servers.fingerprint(second_database) == servers.fingerprint(empty_database)


def upgrade(server: Server, dsn: str, before: str, route: str) -> None:
    """Install a frozen release, and upgrade it to the current version by a route."""
    frozen = (build.MIGRATIONS / f"pgrecall--{before}.sql").read_text()
    if route == "extension":
        servers.install_old_extension(server, dsn, before)
        with server.extension_files(build.assemble()), psycopg.connect(dsn) as connection:
            connection.execute("alter extension pgrecall update")
            connection.execute("select pgrecall_setup.install()")
        return
    servers.run_script(server, dsn, frozen)
    if route == "psql":
        servers.run_script(server, dsn, build.upgrade_script(before))
    else:
        with psycopg.connect(dsn) as connection:
            schema.migrate(connection)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("before", OLD_RELEASES)
def test_an_upgraded_release_equals_a_fresh_install(
    server: Server, empty_database: str, second_database: str, before: str, route: str
) -> None:
    # An upgrade keeps the partitions that were chosen when there was nothing yet.
    for dsn in (empty_database, second_database):
        with psycopg.connect(dsn) as connection:
            name = connection.info.dbname
            connection.execute(f'alter database "{name}" set pgrecall.partitions = 16'.encode())
    servers.install("driver", server, empty_database)
    upgrade(server, second_database, before, route)

    assert servers.fingerprint(second_database) == servers.fingerprint(empty_database)


@pytest.mark.parametrize("before", [None, *OLD_RELEASES])
def test_settings_of_the_server_change_no_install_and_no_upgrade(
    server: Server,
    empty_database: str,
    second_database: str,
    before: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    partitions = "-c pgrecall.partitions=16"
    settings = f"{partitions} -c quote_all_identifiers=on -c plpgsql.extra_errors=all"
    strict = make_conninfo(second_database, options=settings)
    servers.install("driver", server, make_conninfo(empty_database, options=partitions))
    if before is not None:
        frozen = servers.frozen_script(before)
        servers.run_script(server, make_conninfo(second_database, options=partitions), frozen)

    assert main(["migrate", "--dry-run", "--dsn", strict]) == 0
    assert main(["migrate", "--dsn", strict]) == 0
    capsys.readouterr()
    assert main(["migrate", "--dry-run", "--dsn", strict]) == 0
    assert "is up to date" in capsys.readouterr().out
    assert main(["doctor", "--json", "--dsn", strict]) == 0

    assert "bad" not in {row["status"] for row in json.loads(capsys.readouterr().out)}
    assert servers.fingerprint(second_database) == servers.fingerprint(empty_database)


@pytest.mark.usefixtures("made_up_release")
@pytest.mark.parametrize("route", ROUTES)
def test_an_upgrade_adds_and_removes_what_the_delta_says(
    server: Server, empty_database: str, second_database: str, route: str
) -> None:
    servers.install("psql", server, empty_database)
    upgrade(server, second_database, "0.0.9", route)

    fresh = servers.fingerprint(empty_database)
    assert servers.fingerprint(second_database) == fresh
    assert {"pgrecall.bank.colour", "pgrecall.shelf", "pgrecall.shelf_count(text)"} <= {
        name for _, name, _ in fresh
    }


def test_a_forgotten_delta_is_noticed(
    server: Server, empty_database: str, second_database: str, made_up_release: Path
) -> None:
    (made_up_release / "next.sql").write_text(
        "-- drop public: gone\n-- phase: swap\n"
        "alter table pgrecall.bank add column colour integer;\n"
        "create table pgrecall.shelf (bank_id text not null);\n"
    )
    servers.install("psql", server, empty_database)
    upgrade(server, second_database, "0.0.9", "psql")

    missing = set(servers.fingerprint(empty_database)) - set(servers.fingerprint(second_database))

    assert {"pgrecall.bank.colour", "pgrecall.shelf_pkey"} <= {name for _, name, _ in missing}


@pytest.mark.usefixtures("made_up_release")
def test_an_upgrade_goes_through_every_release_between() -> None:
    (build.MIGRATIONS / "pgrecall--0.0.8.sql").write_text("")
    (build.MIGRATIONS / "pgrecall--0.0.8--0.0.9.delta.sql").write_text(
        "-- drop public: older\n-- phase: build\nselect 'from 8 to 9';\n"
    )

    script = build.upgrade_script("0.0.8")

    assert build.frozen_releases() == ["0.0.8", "0.0.9"]
    assert script.index("from 8 to 9") < script.index("alter table pgrecall.bank add column colour")
    assert "'{gone,older}'" in script
    assert "from 8 to 9" not in build.upgrade_script("0.0.9")


def test_a_migrated_database_is_left_alone(database: str) -> None:
    with psycopg.connect(database) as connection:
        result = schema.migrate(connection)

    assert (result.before, result.after, result.is_changed) == (__version__, __version__, False)


def test_functions_that_are_missing_are_created_again(database: str) -> None:
    names = ("pgrecall_internal._occurred_near", "pgrecall_internal._searched_recall")
    before = servers.fingerprint(database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"drop function {', '.join(names)}".encode())
        connection.execute("drop view pgrecall.fact")
        said = schema.describe(connection, schema.plan(connection))
        result = schema.migrate(connection)

    assert set(result.restored) == {*names, "pgrecall.fact"}
    assert said == f"would create again what is missing: {', '.join(result.restored)}\n"
    assert result.is_changed
    assert servers.fingerprint(database) == before


def test_functions_whose_types_are_of_another_state_are_not_created_again(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("drop type pgrecall_internal.arm_found cascade")

        with pytest.raises(InstallError, match=r"arm_found.* does not exist") as raised:
            schema.migrate(connection)

    assert "an earlier, unreleased state" in (raised.value.hint or "")


def test_migrate_says_what_it_did(empty_database: str) -> None:
    with psycopg.connect(empty_database) as connection:
        result = schema.migrate(connection)

        assert result == schema.MigrationResult(None, __version__, "script")
        assert schema.installed_version(connection) == __version__


def test_migrate_stays_inside_the_transaction_of_the_caller(empty_database: str) -> None:
    with psycopg.connect(empty_database) as connection:
        path = connection.execute("show search_path").fetchone()
        schema.migrate(connection)
        assert connection.execute("show search_path").fetchone() == path
        connection.rollback()

        assert schema.installed_version(connection) is None


def test_migrate_provides_pgvector(bare_database: str) -> None:
    with psycopg.connect(bare_database) as connection:
        schema.migrate(connection)

        assert connection.execute("select '[1,2]'::halfvec(2)").fetchone() is not None


def test_migrate_refuses_a_newer_database(connection: psycopg.Connection) -> None:
    connection.execute(
        "create or replace function pgrecall.version() returns text"
        " language sql immutable parallel safe return '99.1.0'"
    )

    with pytest.raises(InstallError, match=r"has pgrecall 99\.1\.0, which is newer") as raised:
        schema.migrate(connection)

    assert raised.value.hint == "Upgrade the package: pip install 'pgrecall>=99.1.0'"


def test_migrate_refuses_a_release_that_no_script_leads_from(
    empty_database: str,
) -> None:
    old = build.full_script().replace(f"'{__version__}'", "'0.0.1'")
    with psycopg.connect(empty_database) as connection:
        connection.execute(old.encode())

        with pytest.raises(InstallError) as raised:
            schema.migrate(connection)

    assert (
        raised.value.message
        == f'this package has no script "pgrecall-0.0.1-{__version__}.upgrade.sql"'
    )


def test_one_schema_without_the_other_is_named(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("drop schema pgrecall_internal cascade")
        connection.execute("drop function if exists pgrecall.version()")
        version = f"create function pgrecall.version() returns text return '{__version__}'"
        connection.execute(version.encode())

        with pytest.raises(InstallError, match='without schema "pgrecall_internal"') as caught:
            schema.installed_version(connection)

        connection.rollback()
    assert "pg_dump -n 'pgrecall*'" in str(caught.value.hint)


def test_a_second_install_is_refused(connection: psycopg.Connection) -> None:
    with pytest.raises(psycopg.Error) as raised:
        connection.execute(build.full_script().encode())

    assert raised.value.sqlstate == "RC012"
    assert raised.value.diag.message_primary == 'schema "pgrecall" already exists in this database'
    assert "pgrecall migrate" in str(raised.value.diag.message_hint)


def test_an_install_creates_pgvector_where_it_is_missing(bare_database: str) -> None:
    with psycopg.connect(bare_database) as connection:
        connection.execute(build.full_script().encode())

        schemas = (
            "select extnamespace::regnamespace::text from pg_extension where extname = 'vector'"
        )
        assert connection.execute(schemas).fetchall() == [("public",)]
        assert schema.installed_version(connection) == __version__


def test_an_install_by_a_role_that_may_not_create_pgvector_says_what_to_do(
    bare_database: str,
) -> None:
    with psycopg.connect(bare_database) as connection:
        connection.execute("create role pgrecall_guest")
        connection.execute("set local role pgrecall_guest")

        with pytest.raises(psycopg.Error) as raised:
            connection.execute(build.full_script().encode())

        assert raised.value.sqlstate == "RC012"
        assert (raised.value.diag.message_primary or "").startswith(
            "pgvector is not installed in this database: permission denied"
        )
        assert (
            raised.value.diag.message_hint
            == "Have it installed by a role that may: create extension vector;"
        )


def test_an_install_without_partitions_is_refused(empty_database: str) -> None:
    with psycopg.connect(empty_database) as connection:
        connection.execute("set pgrecall.partitions = 0")
        with pytest.raises(InstallError, match=r"pgrecall\.partitions must be at least 1, not 0"):
            schema.migrate(connection)


def test_pgvector_without_a_schema_to_be_in_says_what_to_do(bare_database: str) -> None:
    with psycopg.connect(bare_database) as connection:
        connection.execute("set search_path = nowhere")
        with pytest.raises(InstallError, match="names no schema for the extension") as raised:
            schema.migrate(connection)

    assert str(raised.value.hint).startswith("Run: create extension vector schema public;")


@pytest.mark.parametrize(
    ("statements", "message", "hint"),
    [
        (
            "create schema elsewhere; alter extension vector set schema elsewhere",
            'may not use schema "elsewhere", where pgvector is',
            "Run as its owner: grant usage on schema elsewhere to",
        ),
        (
            "revoke create on database {database} from {role}",
            "may not create schemas in database",
            "Run as its owner: grant create on database",
        ),
    ],
)
def test_an_install_by_a_role_without_a_right_names_it(
    server: Server, empty_database: str, statements: str, message: str, hint: str
) -> None:
    role = "pgrecall_test_installer"
    names = {"role": role, "database": conninfo_to_dict(empty_database)["dbname"]}
    with psycopg.connect(empty_database, autocommit=True) as admin:
        admin.execute(f"create role {role}".encode())
        try:
            admin.execute("grant create on database {database} to {role}".format(**names).encode())
            admin.execute(statements.format(**names).encode())
            admin.execute(f"set role {role}".encode())
            with pytest.raises(InstallError, match=message) as raised:
                schema.migrate(admin)
            assert str(raised.value.hint).startswith(hint)
        finally:
            admin.execute("reset role")
            admin.execute(f"drop owned by {role}".encode())
            admin.execute(f"drop role {role}".encode())


def test_an_install_that_citus_cannot_distribute_is_refused_whole(empty_database: str) -> None:
    with psycopg.connect(empty_database) as connection:
        with pytest.raises(InstallError, match="does not have Citus") as raised:
            schema.migrate(connection, citus=True)

        assert "create extension citus" in str(raised.value.hint)
        assert schema.installed_version(connection) is None


def test_an_install_where_everybody_may_create_functions_is_refused(
    empty_database: str,
) -> None:
    with psycopg.connect(empty_database) as connection:
        connection.execute("grant create on schema public to public")
        connection.commit()

        with pytest.raises(InstallError) as raised:
            schema.migrate(connection)
        connection.execute("revoke create on schema public from public")

        assert raised.value.message == (
            'everybody may create functions in schema "public", where pgvector is'
        )
        assert "revoke create on schema public from public" in str(raised.value.hint)
        assert schema.migrate(connection).is_changed


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "EUC_JP"])
def test_a_database_of_another_encoding_is_refused(server: Server, encoding: str) -> None:
    name = f"pgrecall_{encoding.lower()}_{uuid.uuid4().hex[:12]}"
    create = f"create database {{}} encoding '{encoding}' locale 'C' template template0"
    server.execute(sql.SQL(create).format(sql.Identifier(name)))
    try:
        with psycopg.connect(server.dsn_of(name)) as connection:
            with pytest.raises(InstallError) as foreseen:
                schema.plan(connection)
            with pytest.raises(InstallError) as raised:
                schema.migrate(connection)
            assert schema.installed_version(connection) is None
    finally:
        server.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    assert foreseen.value.message == raised.value.message
    assert raised.value.message == f'the encoding of database "{name}" is {encoding}'
    assert "encoding 'UTF8'" in str(raised.value.hint)


def test_an_old_pgvector_is_refused(empty_database: str) -> None:
    with psycopg.connect(empty_database) as connection:
        connection.execute("update pg_extension set extversion = '0.7.4' where extname = 'vector'")

        with pytest.raises(
            InstallError, match=r"pgvector 0\.8\.\d or newer is needed, not 0\.7\.4"
        ):
            schema.migrate(connection)


@pytest.mark.usefixtures("made_up_release")
def test_an_upgrade_script_refuses_another_version(database: str) -> None:
    with psycopg.connect(database) as connection, pytest.raises(psycopg.Error) as raised:
        connection.execute(build.upgrade_script("0.0.9").encode())

    assert raised.value.sqlstate == "RC012"
    assert raised.value.diag.message_primary == (
        f'expected pgrecall version "0.0.9", not "{__version__}"'
    )


def test_an_upgrade_script_refuses_to_run_in_pieces(
    server: Server, empty_database: str, made_up_release: Path, tmp_path: Path
) -> None:
    servers.run_script(
        server, empty_database, (made_up_release / "pgrecall--0.0.9.sql").read_text()
    )
    script = tmp_path / "upgrade.sql"
    script.write_text(build.upgrade_script("0.0.9"))

    with pytest.raises(RuntimeError, match="this script was not run in one transaction"):
        server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", empty_database, "-f", script)


@pytest.mark.usefixtures("made_up_release")
def test_an_upgrade_script_refuses_a_database_without_pgrecall(empty_database: str) -> None:
    with psycopg.connect(empty_database) as connection, pytest.raises(psycopg.Error) as raised:
        connection.execute(build.upgrade_script("0.0.9").encode())

    assert raised.value.sqlstate == "RC012"
    assert raised.value.diag.message_primary == "pgrecall is not installed in this database"
    assert "pgrecall_setup.install()" in str(raised.value.diag.message_hint)


def members(dsn: str) -> list[str]:
    """Return what belongs to the extension."""
    query = (
        "select o.type || ' ' || o.identity from pg_extension x"
        " join pg_depend d on d.refclassid = 'pg_extension'::regclass and d.refobjid = x.oid"
        " and d.deptype = 'e', pg_identify_object(d.classid, d.objid, 0) o"
        " where x.extname = 'pgrecall' order by 1"
    )
    with psycopg.connect(dsn) as connection:
        return [name for (name,) in connection.execute(query).fetchall()]


def test_the_extension_owns_nothing_but_its_installer(server: Server, empty_database: str) -> None:
    servers.install("extension", server, empty_database)

    assert members(empty_database) == [
        "function pgrecall_setup.install()",
        "schema pgrecall_setup",
    ]


def test_the_installer_says_what_it_did(server: Server, empty_database: str) -> None:
    with (
        server.extension_files(build.assemble()),
        psycopg.connect(empty_database) as connection,
    ):
        connection.execute("create extension pgrecall")
        path = connection.execute("show search_path").fetchone()
        said = [connection.execute("select pgrecall_setup.install()").fetchone() for _ in range(2)]

        assert said == [
            (f"installed pgrecall {__version__}",),
            (f"pgrecall {__version__} is up to date",),
        ]
        assert connection.execute("show search_path").fetchone() == path


@pytest.mark.parametrize("route", ["psql", "driver"])
@pytest.mark.parametrize("before", OLD_RELEASES[:1])
def test_a_script_upgrades_an_old_extension(
    server: Server, empty_database: str, before: str, route: str
) -> None:
    servers.install_old_extension(server, empty_database, before)
    assert len(members(empty_database)) > 100

    if route == "psql":
        servers.run_script(server, empty_database, build.upgrade_script(before))
    else:
        with psycopg.connect(empty_database) as connection:
            assert schema.migrate(connection).route == "script"

    with psycopg.connect(empty_database) as connection:
        assert schema.installed_version(connection) == __version__
        extensions = connection.execute("select extname from pg_extension").fetchall()
    assert ("pgrecall",) not in extensions


@pytest.mark.parametrize("before", OLD_RELEASES[:1])
def test_the_update_of_the_extension_alone_leaves_the_data_alone(
    server: Server, empty_database: str, before: str
) -> None:
    servers.install_old_extension(server, empty_database, before)

    with (
        server.extension_files(build.assemble()),
        psycopg.connect(empty_database) as connection,
    ):
        connection.execute("alter extension pgrecall update")

        assert schema.installed_version(connection) == before
        assert connection.execute("select pgrecall_setup.install()").fetchone() == (
            f"upgraded pgrecall from {before} to {__version__}",
        )
    assert members(empty_database) == [
        "function pgrecall_setup.install()",
        "schema pgrecall_setup",
    ]


def test_dropping_the_extension_keeps_the_memories(server: Server, empty_database: str) -> None:
    servers.install("extension", server, empty_database)
    with psycopg.connect(empty_database) as connection:
        connection.execute("select pgrecall.create_bank('diary')")
        connection.execute("drop extension pgrecall")

        banks = connection.execute("select bank_id from pgrecall.bank").fetchall()

    assert banks == [("diary",)]


@pytest.mark.parametrize("route", ROUTES)
def test_what_is_removed_as_the_reference_says_is_gone_and_can_be_installed_again(
    server: Server, empty_database: str, route: str
) -> None:
    text = (build.SQL / "reference.md").read_text(encoding="utf-8")
    [removal] = re.findall(r"^\*\*Removal\.\*\* `(.+?)`", text, re.MULTILINE)
    before = everything(empty_database)
    servers.install(route, server, empty_database)

    with psycopg.connect(empty_database) as connection:
        connection.execute("select pgrecall.create_bank('diary')")
        connection.execute(removal)

    assert everything(empty_database) == before
    servers.install(route, server, empty_database)


def test_migrate_upgrades_a_script_that_the_extension_ran(
    server: Server, empty_database: str
) -> None:
    servers.install("extension", server, empty_database)

    with psycopg.connect(empty_database) as connection:
        result = schema.migrate(connection)

    assert (result.route, result.is_changed) == ("extension", False)


@pytest.mark.parametrize("script", ["install", "upgrade"])
def test_an_old_server_is_refused(empty_database: str, made_up_release: Path, script: str) -> None:
    text = build.full_script() if script == "install" else build.upgrade_script("0.0.9")
    from_the_future = text.replace("160000", "990000", 1)
    assert from_the_future != text

    with psycopg.connect(empty_database) as connection, pytest.raises(psycopg.Error) as raised:
        connection.execute(from_the_future.encode())

    assert raised.value.sqlstate == "RC012"
    assert str(raised.value.diag.message_primary).startswith("PostgreSQL 16 or newer is needed")


@pytest.fixture
def plain_owner(empty_database: str) -> Iterator[str]:
    """Connect to a database with pgvector as its owner, who is no superuser."""
    role = sql.Identifier("pgrecall_test_owner")
    with psycopg.connect(empty_database, autocommit=True) as admin:
        database = sql.Identifier(admin.info.dbname)
        admin.execute(sql.SQL("drop role if exists {}").format(role))
        admin.execute(sql.SQL("create role {} login password 'owner'").format(role))
        admin.execute(sql.SQL("alter database {} owner to {}").format(database, role))
        try:
            yield make_conninfo(empty_database, user="pgrecall_test_owner", password="owner")
        finally:
            admin.execute(sql.SQL("alter database {} owner to current_user").format(database))
            admin.execute(sql.SQL("drop owned by {} cascade").format(role))
            admin.execute(sql.SQL("drop role {}").format(role))


@pytest.mark.parametrize("route", ROUTES)
def test_the_owner_of_a_database_needs_no_superuser(
    server: Server, plain_owner: str, route: str
) -> None:
    servers.install(route, server, plain_owner)

    with psycopg.connect(plain_owner) as connection:
        connection.execute("select pgrecall.create_bank('diary')")
        banks = connection.execute("select bank_id from pgrecall.bank").fetchall()

    assert banks == [("diary",)]


@pytest.mark.parametrize("before", OLD_RELEASES[:1])
@pytest.mark.parametrize("route", ["psql", "driver", "extension"])
def test_the_owner_of_a_database_upgrades_it_without_a_superuser(
    server: Server, plain_owner: str, before: str, route: str
) -> None:
    upgrade(server, plain_owner, before, route)

    with psycopg.connect(plain_owner) as connection:
        assert schema.installed_version(connection) == __version__


def test_what_stands_on_a_column_that_goes_is_named(
    server: Server, empty_database: str, made_up_release: Path
) -> None:
    (made_up_release / "next.sql").write_text("-- drop column: bank.created_at\n" + DELTA)
    servers.run_script(
        server, empty_database, (made_up_release / "pgrecall--0.0.9.sql").read_text()
    )
    with psycopg.connect(empty_database) as connection:
        connection.execute("create view age as select created_at from pgrecall.bank")
        connection.execute("create view bank_ids as select bank_id from pgrecall.bank")
        connection.commit()

        with pytest.raises(InstallError) as raised:
            schema.migrate(connection)

    assert raised.value.hint == "Drop them, upgrade, and create them again: view public.age."


@pytest.mark.usefixtures("made_up_release")
def test_a_release_freezes_the_script_and_the_delta() -> None:
    (build.MIGRATIONS / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n* Added.\n")
    notes = build.MIGRATIONS / "NOTES.md"
    notes.write_text("# Notes\n")
    with pytest.raises(ValueError, match=rf'NOTES.md has no line "## {__version__} \(not'):
        build.release(__version__, datetime.date(2026, 3, 1))
    notes.write_text(f"# Notes\n\n## {__version__} (not released yet)\n")
    script = build.full_script()

    build.release(__version__, datetime.date(2026, 3, 1))

    names = {path.name for path in build.MIGRATIONS.iterdir()}
    delta = f"pgrecall--0.0.9--{__version__}.delta.sql"
    assert {f"pgrecall--{__version__}.sql", delta, "next.sql"} < names
    assert (build.MIGRATIONS / f"pgrecall--{__version__}.sql").read_text() == script
    assert (build.MIGRATIONS / delta).read_text() == DELTA
    assert (build.MIGRATIONS / "next.sql").read_text() == build.NEXT
    assert (
        f"## Unreleased\n\n## {__version__}, 2026-03-01\n\n* Added."
        in (build.MIGRATIONS / "CHANGELOG.md").read_text()
    )
    assert notes.read_text() == f"# Notes\n\n## {__version__}, 2026-03-01\n"
