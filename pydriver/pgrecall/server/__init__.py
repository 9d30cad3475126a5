"""The server and the schema in it: the embedded server, and how pgrecall gets into any server."""

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
