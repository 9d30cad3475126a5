"""The server under test, its databases, and the routes by which pgrecall gets into one."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgrecall import schema
from pgrecall.server import (
    DSN_VARIABLE,
    SETTINGS,
    VERSION_VARIABLE,
    EmbeddedServer,
    build,
    embedded_server,
)
from pgrecall.server.postmaster import Postmaster

ROOM = 2 * 2**30  # bytes; the servers of one process take a quarter of it
INTRANS = psycopg.pq.TransactionStatus.INTRANS
Make = Callable[[psycopg.Connection[Any]], object]
ROUTES = ("extension", "psql", "driver")
ROUTER_PACKAGES = ("postgresql-15", "postgresql-15-plproxy")

# Nothing that a test writes needs to outlive the machine, and a table that is analysed in the midst
# of a test has other plans than before.
TEST_SETTINGS = {
    **SETTINGS,
    "autovacuum": "off",
    "shared_buffers": "128MB",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "100",
}


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server; the plain attributes are what pytest-postgresql reads."""

    dsn: str
    host: str
    port: int
    user: str
    password: str | None
    binaries: Path
    is_embedded: bool
    options: str = ""
    dbname: str = "postgres"
    maintenance_dbname: str = "postgres"
    template_dbname: None = None

    def dsn_of(self, database: str) -> str:
        return make_conninfo(self.dsn, dbname=database)

    def execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(statement)

    @contextmanager
    def database(self, template: str = "template1") -> Iterator[str]:
        """Make a database for as long as the block runs; yields its dsn."""
        name = sql.Identifier(f"pgrecall_test_{uuid.uuid4().hex[:12]}")
        self.execute(
            sql.SQL("create database {} template {}").format(name, sql.Identifier(template))
        )
        try:
            yield self.dsn_of(name.as_string(None).strip('"'))
        finally:
            self.execute(sql.SQL("drop database {} with (force)").format(name))

    def run(self, program: str, *arguments: str | Path, text: str | None = None) -> str:
        """Run one of PostgreSQL's programs; what it says on stderr is in the error."""
        result = subprocess.run(
            [self.binaries / program, *arguments],
            input=text,
            text=True,
            capture_output=True,
            env=os.environ | {"PGOPTIONS": "-c client_min_messages=warning"},
        )
        if result.returncode != 0:
            raise RuntimeError(result.stderr)
        return result.stdout

    @contextmanager
    def extension_files(self, scripts: dict[str, str]) -> Iterator[None]:
        """Put an extension's files where the server looks for them, and take them away again."""
        if not self.is_embedded:
            pytest.skip("the extension files of a server of your own are yours to install")
        directory = Path(self.run("pg_config", "--sharedir").strip()) / "extension"
        paths = [directory / name for name in scripts]
        with _extension_lock(directory / "pgrecall.lock"):
            former = {path: path.read_bytes() for path in paths if path.exists()}
            for name, text in scripts.items():
                (directory / name).write_text(text, encoding="utf-8")
            try:
                yield
            finally:
                for path in paths:
                    path.unlink(missing_ok=True)
                for path, content in former.items():
                    path.write_bytes(content)


@contextmanager
def _extension_lock(path: Path) -> Iterator[None]:
    """Keep other processes that run tests on the same binaries from the extension's files.

    A process that holds the lock goes on.
    """
    if path in _held:
        yield
        return
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _held.add(path)
        try:
            yield
        finally:
            _held.remove(path)


_held: set[Path] = set()


@contextmanager
def server_under_test() -> Iterator[Server]:
    """Connect to the server of PGRECALL_DSN, or run one of version PGRECALL_PG for the session."""
    dsn = os.environ.get(DSN_VARIABLE)
    if dsn:
        psql = shutil.which("psql")
        yield _server(dsn, Path(psql).parent if psql else Path(), is_embedded=False)
        return
    with folder_of_servers() as folder, server_in(folder / "data", embedded_version()) as server:
        yield server


@contextmanager
def server_in(data: Path, version: int) -> Iterator[Server]:
    """Run an embedded server on a data directory."""
    with embedded_server(version, data, settings=TEST_SETTINGS) as embedded:
        yield _server(embedded.dsn, embedded.binaries, is_embedded=True)


def embedded_version() -> int:
    return int(os.environ.get(VERSION_VARIABLE) or 18)


def _memory() -> str | None:
    """Return a file system in memory with room for each process of the tests; None if none has."""
    place, processes = "/dev/shm", int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if os.access(place, os.W_OK) and shutil.disk_usage(place).free >= ROOM * processes:
        return place
    return None


@contextmanager
def folder_of_servers() -> Iterator[Path]:
    """Make a directory for data of embedded servers, in memory where there is room."""
    directory = Path(tempfile.mkdtemp(prefix="pgrecall-", dir=_memory()))
    directory.chmod(0o711)  # as root the server runs as another user, who must get through
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def base_backup(data: Path, binaries: Path, copy: Path, *more: str) -> None:
    """Copy the running embedded server in data, as a standby or to recover from."""
    program = binaries / "pg_basebackup"
    arguments = ["-d", _own_socket(data), "-D", str(copy), "-c", "fast", "-X", "stream", *more]
    got = subprocess.run([program, *arguments], capture_output=True, text=True, cwd="/")
    assert got.returncode == 0, got.stderr
    owner = data.stat()
    for path in (copy, *copy.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)


@contextmanager
def standby_of(data: Path, binaries: Path, copy: Path) -> Iterator[str]:
    """Run a streaming standby of the embedded server in data, in copy; yields its dsn."""
    base_backup(data, binaries, copy, "-R")
    with (copy / "postgresql.auto.conf").open("a") as file:
        file.write("max_standby_streaming_delay = 0\nhot_standby_feedback = off\n")
    with embedded_server(embedded_version(), copy) as standby:
        yield standby.dsn


def _own_socket(data: Path) -> str:
    lines = (data / "postmaster.pid").read_text().splitlines()
    return make_conninfo(host=lines[4], user="postgres", dbname="postgres")


def _server(dsn: str, binaries: Path, *, is_embedded: bool) -> Server:
    with psycopg.connect(dsn) as connection:
        info = connection.info
        return Server(
            dsn=dsn,
            host=info.host,
            port=info.port,
            user=info.user,
            password=info.password or None,
            binaries=binaries,
            is_embedded=is_embedded,
            maintenance_dbname=info.dbname,
        )


def install(route: str, server: Server, dsn: str) -> None:
    """Install the current pgrecall into a database that has pgvector, by one of ROUTES."""
    if route == "extension":
        with server.extension_files(build.assemble()), psycopg.connect(dsn) as connection:
            connection.execute("create extension pgrecall")
            connection.execute("select pgrecall_setup.install()")
    elif route == "psql":
        run_script(server, dsn, build.full_script())
    else:
        with psycopg.connect(dsn) as connection:
            schema.migrate(connection)


def frozen_script(release: str) -> str:
    """Return the whole script of a release."""
    return (build.MIGRATIONS / f"pgrecall--{release}.sql").read_text(encoding="utf-8")


def install_old_extension(server: Server, dsn: str, release: str) -> None:
    """Install a frozen release by its extension; 0.1.0 made everything a member of it."""
    script = frozen_script(release)
    has_installer = release != "0.1.0"
    if has_installer:
        script = build.setup_of(release, [("", script, f"installed pgrecall {release}")])
    files = {"pgrecall.control": build.CONTROL.format(version=release)}
    with (
        server.extension_files(files | {f"pgrecall--{release}.sql": script}),
        psycopg.connect(dsn) as connection,
    ):
        connection.execute(f"create extension pgrecall version '{release}'".encode())
        if has_installer:
            connection.execute("select pgrecall_setup.install()")


def run_script(server: Server, dsn: str, script: str) -> None:
    """Run a script as `psql -1 -f` does."""
    server.run("psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-d", dsn, "-f", "-", text=script)


def fingerprint(dsn: str) -> list[tuple[str, str, str]]:
    """Return one row for each thing that an installed pgrecall consists of."""
    query = Path(__file__).with_name("fingerprint.sql").read_bytes()
    with psycopg.connect(dsn) as connection:
        return connection.execute(query).fetchall()


def router_programs() -> Path:
    """Return the programs of a PostgreSQL with PL/Proxy: those of Debian, unpacked once."""
    own = platformdirs.user_cache_path("pgrecall", appauthor=False)
    # As root the server runs as another user, who must get through to it.
    cache = (Path("/var/cache/pgrecall") if os.geteuid() == 0 else own) / "plproxy"
    programs = cache / "usr" / "lib" / "postgresql" / "15" / "bin"
    if not (cache / "done").exists():
        if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
            pytest.skip("there is no apt-get to get PL/Proxy with")
        cache.mkdir(mode=0o755, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            got = subprocess.run(
                ["apt-get", "download", *ROUTER_PACKAGES],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=300,
            )
            if got.returncode != 0:
                pytest.skip(f"apt-get cannot download PL/Proxy: {got.stderr.strip()[-200:]}")
            for package in Path(folder).glob("*.deb"):
                subprocess.run(["dpkg-deb", "-x", package, cache], check=True)
        (cache / "done").touch()
    for binary in (programs / "postgres", programs.parent / "lib" / "plproxy.so"):
        needed = subprocess.run(["ldd", binary], capture_output=True, text=True).stdout
        missing = [line.strip() for line in needed.splitlines() if "not found" in line]
        if missing:
            pytest.skip(f"the PostgreSQL of Debian does not run here: {missing[0]}")
    return programs


@contextmanager
def router_server(data: Path) -> Iterator[str]:
    """Run a server with PL/Proxy, as the embedded one is run, never as root; yields its dsn."""
    postmaster = Postmaster(data, router_programs())
    postmaster.init()
    with EmbeddedServer(postmaster) as server:
        # Release 15 cannot map roles to "all"; the socket is in a directory of one user.
        (data / "pgrecall_hba.conf").write_text("local all all trust\n")
        os.kill(int((data / "postmaster.pid").read_text().split()[0]), signal.SIGHUP)
        until = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(server.dsn).close()
                break
            except psycopg.OperationalError:
                assert time.monotonic() < until
                time.sleep(0.05)
        yield server.dsn


class Session:
    """A session of the server that tests use one after the other, each by a connection of its own.

    What PostgreSQL keeps of functions and plans is made once, not in each test.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._owner = self._opened()
        self._kept: Make | None = None
        self._value: object = None

    @contextmanager
    def connection(self, kept: Make | None = None) -> Iterator[psycopg.Connection[Any]]:
        """Yield a new connection over the session, which is as it was after the block.

        With kept, it is in a transaction with what that made: the last one, where it was the same.
        """
        if self._owner.closed:
            self._owner, self._kept = self._opened(), None
        if self._kept is not kept:
            self.forget()
        connection = psycopg.Connection(self._owner.pgconn)
        try:
            if kept is not None and self._kept is None:
                connection.execute("select")  # begins a transaction
                self._kept, self._value = kept, kept(connection)
            with connection.transaction(force_rollback=True):
                yield connection
        finally:
            if not connection.closed:
                if self._kept is None:
                    self.forget()
                else:
                    self._owner.execute(_FORGET_IN_TRANSACTION)
            connection.pgconn = _CLOSED

    def value(self) -> object:
        """Return a copy of what the function returned that made what is kept."""
        return deepcopy(self._value)

    def close(self) -> None:
        self._owner.close()

    def forget(self) -> None:
        self._owner.rollback()
        self._owner.execute(_FORGET)
        self._kept = None

    def _opened(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self._dsn, autocommit=True, prepare_threshold=None)


def kept_fixture(make: Make) -> Any:
    """Make a fixture whose rows are written once for the tests of a module that follow one another.

    The function takes the connection alone, and a test may ask for one such fixture: it is a copy
    of what the function returned, or the connection where that is None.
    """

    @pytest.fixture(name=make.__name__)
    def fixture(connection: psycopg.Connection[Any], session: Session, kept_rows: None) -> object:
        value = session.value()
        return connection if value is None else value

    _made[make.__module__, make.__name__] = make
    return fixture


def kept_for(request: pytest.FixtureRequest) -> Make | None:
    """Return the function that makes what a test asks to be kept."""
    names = [(request.module.__name__, name) for name in request.fixturenames]
    return next((_made[name] for name in names if name in _made), None)


_made: dict[tuple[str, str], Make] = {}
_FORGET_IN_TRANSACTION = """
    deallocate all;
    unlisten *;
    select pg_advisory_unlock_all();
"""  # all that outlives a savepoint
_FORGET = (
    """
    reset session authorization;
    reset all;
    close all;
    discard temp;
    discard sequences;
"""
    + _FORGET_IN_TRANSACTION
)  # all that "discard all" does, but for the plans
_CLOSED = psycopg.pq.PGconn()
