"""Databases of other locales than the one that the other tests run in."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import sql

import servers
from pgrecall import Recall, schema
from pgrecall.command import main
from servers import Server

TURKISH = (
    "locale_provider libc locale 'tr_TR.UTF-8'",
    "locale_provider icu icu_locale 'tr-TR' locale 'C'",
)
VERSIONED = (
    "locale_provider builtin builtin_locale 'C.UTF-8'",
    "locale_provider libc locale 'en_US.UTF-8'",
)


@contextmanager
def database_of(server: Server, *locales: str) -> Iterator[str]:
    """Make a database of the first locale that the server has; yields its dsn."""
    name = f"pgrecall_test_{uuid.uuid4().hex[:12]}"
    for locale in locales:
        try:
            server.execute(sql.SQL(f"create database {name} template template0 {locale}").format())
            break
        except (
            psycopg.errors.SyntaxError,
            psycopg.errors.WrongObjectType,
            psycopg.errors.FeatureNotSupported,
            psycopg.errors.InvalidParameterValue,
        ) as error:
            said = str(error)
    else:
        pytest.skip(f"the server has no such locale: {said}")
    try:
        yield server.dsn_of(name)
    finally:
        server.execute(sql.SQL(f"drop database {name} with (force)").format())


@pytest.mark.parametrize(
    ("locale", "is_told"),
    [
        ("locale_provider libc locale 'C'", True),
        ("locale_provider builtin builtin_locale 'C.UTF-8' locale 'C'", True),
        ("locale_provider icu icu_locale 'de-DE' locale 'C'", True),
        ("locale 'C.UTF-8'", False),
    ],
)
def test_who_installs_where_letters_are_none_is_told(
    server: Server, capsys: pytest.CaptureFixture[str], locale: str, is_told: bool
) -> None:
    with database_of(server, locale) as dsn:
        assert main(["migrate", "--dsn", dsn]) == 0
        at_install = capsys.readouterr().err
        main(["doctor", "--json", "--dsn", dsn])
        found = {row["about"]: row for row in json.loads(capsys.readouterr().out)}

    assert ("knows no letters but a to z\nhint: Names and words" in at_install) is is_told
    assert ("locale" in found) is is_told
    assert not is_told or "locale 'C.UTF-8'" in found["locale"]["advice"]


def test_doctor_reads_a_database_of_another_encoding(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    with database_of(server, "encoding 'EUC_JP' locale_provider libc locale 'C'") as dsn:
        main(["doctor", "--json", "--dsn", dsn])
        found = {row["about"]: row["found"] for row in json.loads(capsys.readouterr().out)}

    assert found["pgrecall"] == "not installed in this database"


def test_windows_have_the_same_names_in_a_turkish_database(server: Server) -> None:
    with database_of(server, *TURKISH) as dsn:
        servers.install("driver", server, dsn)
        with Recall.connect(dsn, embedder=None) as memory:
            memory.create_bank("b")
            memory.retain("b", [{"text": "Ana sails.", "occurred": "2026-03-05"}])

            hits = memory.recall("b", "sails", window="THIS YEAR")

    assert [hit.text for hit in hits] == ["Ana sails."]


def test_who_may_not_write_is_told_who_may_in_a_turkish_database(server: Server) -> None:
    with database_of(server, *TURKISH) as dsn, psycopg.connect(dsn) as connection:
        connection.execute("create extension vector")
        schema.migrate(connection)
        connection.execute("select pgrecall.create_roles('locale')")
        connection.execute("set role locale_reader")

        with pytest.raises(psycopg.errors.InsufficientPrivilege) as raised:
            connection.execute("select pgrecall.create_bank('b')")

    assert "grant locale_admin to" in str(raised.value.diag.message_hint)


def test_doctor_says_what_to_do_where_the_system_sorts_anew(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    def found(dsn: str) -> list[dict[str, str]]:
        main(["doctor", "--json", "--dsn", dsn])
        rows = json.loads(capsys.readouterr().out)
        return [row for row in rows if row["about"] == "locale"]

    with database_of(server, *VERSIONED) as dsn:
        with psycopg.connect(dsn, autocommit=True) as admin:
            before = found(dsn)
            admin.execute(
                "update pg_database set datcollversion = '0' where datname = current_database()"
            )
            [ill] = found(dsn)
            for statement in ill["advice"].removeprefix("Run: ").split("; "):
                admin.execute(statement.encode())

        assert "indexes of texts may miss rows" in ill["found"]
        assert (before, found(dsn)) == ([], [])
