"""The process of the embedded server: its data directory, start, sharing and stop.

Only the user of this process can connect: the socket is in a directory of mode 0700, and the server
uses peer authentication. Since PostgreSQL does not run as root, root runs it as the user pgserver.
Directories above the data directory are not changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pwd
import shlex
import stat
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

SERVER_USER = "pgserver"
# Of a new data directory; the first that the system has. The locale of who starts the server may be
# missing here, of another encoding, or C, in which letters other than a to z are none.
LOCALES = ("C.UTF-8", "en_US.UTF-8")
_SOCKET = ".s.PGSQL.5432"
_LONGEST_SOCKET = 100  # maximum length of a socket's path; Linux allows 107, macOS 103
_HANDLES = ".handle_pids.json"
_users_here: Counter[Path] = Counter()


class Postmaster:
    """A server on a data directory; the caller holds a lock while it calls a method.

    Attributes:
        data: The data directory.
        binaries: Directory of the programs of PostgreSQL.
        log: Log file of the server.

    """

    def __init__(self, data: Path, binaries: Path) -> None:
        """Determine the user of the server; start nothing."""
        self.data = data
        self.binaries = binaries
        self.log = data / "log"
        self._owner = server_owner()

    def init(self) -> None:
        """Create the data directory if it is missing.

        Raises:
            PermissionError: the user of the server cannot reach a directory.
            OSError: initdb failed.

        """
        for path in (self.data, self.binaries / "postgres"):
            self._require_way_to(path)
        if (self.data / "PG_VERSION").exists():
            return
        with contextlib.suppress(FileExistsError):
            self.data.mkdir(mode=0o700)
        # What holds files initdb refuses; it stays whose it is.
        if os.geteuid() == 0 and not any(self.data.iterdir()):
            os.chown(self.data, self._owner.pw_uid, self._owner.pw_gid)
        for locale in LOCALES:
            try:
                self._run("initdb", "--auth=peer", f"--locale={locale}", "-Eutf8", "-Upostgres")
                return
            except OSError as error:
                if locale == LOCALES[-1] or "locale" not in str(error):
                    raise

    def start(self) -> Path:
        """Start the server or join it; return the directory of its socket."""
        socket = self._running_socket()
        if socket is None:
            socket = self._socket_directory()
            self._forget_original()
            self.write("pgrecall_hba.conf", "local all,replication all peer map=pgrecall\n")
            names = dict.fromkeys((pwd.getpwuid(os.geteuid()).pw_name, self._owner.pw_name))
            lines = (f'pgrecall "{name}" all\n' for name in names)
            self.write("pgrecall_ident.conf", "".join(lines))
            options = {
                "listen_addresses": "",
                "unix_socket_directories": f'"{socket}"',
                "unix_socket_permissions": "0700",
                "hba_file": self.data / "pgrecall_hba.conf",
                "ident_file": self.data / "pgrecall_ident.conf",
            }
            given = " ".join(f"-c {shlex.quote(f'{k}={v}')}" for k, v in options.items())
            self._run("pg_ctl", "-w", "-o", given, "-l", str(self.log), "start")
        self._change_handles(add=True)
        _users_here[self.data] += 1
        return socket

    def stop(self) -> None:
        """Stop the server, unless another user in this process or another process uses it."""
        _users_here[self.data] -= 1
        if _users_here[self.data] > 0 or not self.data.exists():
            return
        if not self._change_handles(add=False) and self._running_socket() is not None:
            self._run("pg_ctl", "-w", "-m", "fast", "stop")

    def _change_handles(self, *, add: bool) -> list[int]:
        """Add or remove this process among the users of the server; return the others.

        Killed processes, which could not remove themselves, are not counted.
        """
        file = self.data / _HANDLES
        known = json.loads(file.read_text() or "[]") if file.exists() else []
        others = [pid for pid in known if pid != os.getpid() and _is_alive(pid)]
        self.write(_HANDLES, json.dumps([*others, os.getpid()] if add else others))
        return others

    def _forget_original(self) -> None:
        """Remove what pg_basebackup copied of the server that it copied: its lock and users."""
        lock = self.data / f"{_SOCKET}.lock"
        if lock.exists() and lock.read_text().splitlines()[1:2] != [str(self.data)]:
            lock.unlink()
            (self.data / _HANDLES).unlink(missing_ok=True)

    def _running_socket(self) -> Path | None:
        """Return the directory of the running server's socket; None if it is not running."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            is_running = _is_alive(int(lines[0])) and (Path(lines[4]) / _SOCKET).exists()
        except (OSError, IndexError, ValueError):
            return None
        return Path(lines[4]) if is_running else None

    def _socket_directory(self) -> Path:
        """Return a directory for the socket that only the server's user can enter."""
        if len(str(self.data / _SOCKET)) <= _LONGEST_SOCKET:
            return self.data
        name = f"pgrecall-{hashlib.sha256(str(self.data).encode()).hexdigest()[:16]}"
        directory = _runtime_directory() / name
        try:
            directory.mkdir(mode=0o700)
            if os.geteuid() == 0:
                os.chown(directory, self._owner.pw_uid, self._owner.pw_gid)
        except FileExistsError:
            found = directory.lstat()
            is_ours = found.st_uid == self._owner.pw_uid and stat.S_ISDIR(found.st_mode)
            if not is_ours or stat.S_IMODE(found.st_mode) != 0o700:
                raise PermissionError(f"{directory} belongs to another user") from None
        return directory

    def _require_way_to(self, path: Path) -> None:
        if os.geteuid() != 0:
            return
        for parent in path.resolve().parents:
            if parent.exists() and not _can_enter(parent, self._owner):
                raise PermissionError(
                    f'the user "{self._owner.pw_name}", who runs the server, may not enter {parent}'
                )

    def write(self, name: str, text: str, *, is_appended: bool = False) -> None:
        """Write a file of the data directory, which belongs to the user of the server.

        A link is replaced: else that user could have root write, and give away, another file.
        """
        path = self.data / name
        with contextlib.suppress(FileNotFoundError):
            there = path.lstat()
            if not stat.S_ISREG(there.st_mode) or there.st_nlink > 1:
                path.unlink()
        how = os.O_APPEND if is_appended else os.O_TRUNC
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | how
        descriptor = os.open(path, flags, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            if os.geteuid() == 0:
                os.fchown(file.fileno(), self._owner.pw_uid, self._owner.pw_gid)
            file.write(text)

    def _run(self, program: str, *arguments: str) -> None:
        """Run a program on the data directory as the user of the server."""
        as_owner: dict[str, int | list[int]] = {}
        if os.geteuid() == 0:
            as_owner = {"user": self._owner.pw_uid, "group": self._owner.pw_gid, "extra_groups": []}
        # Output goes to a file: the server inherits it, and a pipe would never end.
        with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
            result = subprocess.run(
                [self.binaries / program, "-D", self.data, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd="/",
                **as_owner,  # type: ignore[call-overload]
            )
            said.seek(0)
            if result.returncode != 0:
                last = said.read().strip().splitlines()[-1:]
                raise OSError(f"{program} failed: {' '.join(last)}")


def server_owner() -> pwd.struct_passwd:
    """Return the user of the server: this user, or pgserver for root, created if missing."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(SERVER_USER)
    subprocess.run(["useradd", "--system", SERVER_USER], check=True, capture_output=True)
    return pwd.getpwnam(SERVER_USER)


def can_reach(path: Path) -> bool:
    """Return whether the user of the server can reach a path."""
    owner = server_owner()
    return all(_can_enter(parent, owner) for parent in path.parents if parent.exists())


def _can_enter(directory: Path, user: pwd.struct_passwd) -> bool:
    found = directory.stat()
    bit = stat.S_IXOTH
    if found.st_uid == user.pw_uid:
        bit = stat.S_IXUSR
    elif found.st_gid == user.pw_gid:
        bit = stat.S_IXGRP
    return bool(found.st_mode & bit)


def _runtime_directory() -> Path:
    own = Path("/run") if os.geteuid() == 0 else Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    return own if own.is_absolute() and own.is_dir() else Path(tempfile.gettempdir())


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
