"""A connection: its name on the server, whether it lives, and whose transaction is open on it."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from pgrecall._version import __version__


def named_dsn(dsn: str) -> str:
    """Let the server show whose connection it is, unless the DSN or PGAPPNAME says."""
    return make_conninfo(dsn, fallback_application_name=f"pgrecall {__version__}")


def is_alive(connection: psycopg.BaseConnection[Any]) -> bool:
    """Tell whether the server still holds a connection, as far as can be seen without asking.

    What it sent with its farewell is read first, and the end of the connection behind it.
    """
    if connection.closed:
        return False
    try:
        for _ in range(2):
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return False
    return connection.pgconn.status == psycopg.pq.ConnStatus.OK


def check_alive(connection: psycopg.BaseConnection[Any]) -> None:
    """Raise where :func:`is_alive` is false, as a pool wants it."""
    if not is_alive(connection):
        raise psycopg.OperationalError("the server closed the connection")


def owns_transaction(connection: psycopg.BaseConnection[object]) -> bool:
    """Tell whether a statement sent now is a transaction of its own."""
    idle = psycopg.pq.TransactionStatus.IDLE
    return connection.autocommit and connection.info.transaction_status == idle
