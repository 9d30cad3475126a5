"""The embedded server, and the installation of pgrecall in any server."""

from pgrecall.server.embedded import (
    DSN_VARIABLE,
    SETTINGS,
    SETTINGS_FILE,
    VERSION_VARIABLE,
    EmbeddedServer,
    embedded_server,
    ready_dsn,
    resolve_dsn,
)

__all__ = [
    "DSN_VARIABLE",
    "SETTINGS",
    "SETTINGS_FILE",
    "VERSION_VARIABLE",
    "EmbeddedServer",
    "embedded_server",
    "ready_dsn",
    "resolve_dsn",
]
