"""The command: pgrecall."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import psycopg

try:
    import rich  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise SystemExit(
        f"pgrecall: package {error.name} is missing. Run: pip install 'pgrecall[cli]'"
    ) from error

from pgrecall.command import arguments, render
from pgrecall.command.actions import fail
from pgrecall.errors import BankNotFound, RecallError
from pgrecall.server import DSN_VARIABLE

_LOST = ("08", "57P")


def main(words: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        words: Its arguments; default: those it was called with.

    Returns:
        0 when it went well, 1 when it did not; wrong usage exits with 2.

    """
    options = arguments.parser().parse_args(words)
    try:
        command: arguments.Command = options.command
        return command(options, render.make_console())
    except BankNotFound as error:
        return fail(error.message, "Create it with: pgrecall bank create NAME")
    except RecallError as error:
        return fail(error.message, error.hint)
    except psycopg.errors.LockNotAvailable as error:
        return fail(
            error.diag.message_primary or str(error),
            error.diag.message_hint
            or "Somebody else holds a lock. See who: select pid, query from pg_stat_activity"
            " where state <> 'idle';",
        )
    except psycopg.Error as error:
        # What the server refuses has a code; 08 and 57P are those of a connection that is lost.
        is_operational = isinstance(error, psycopg.OperationalError)
        if is_operational and (error.sqlstate or "08").startswith(_LOST):
            return fail(
                f"cannot reach the server: {str(error).strip()}",
                f"Check --dsn and {DSN_VARIABLE}; without either the embedded server is used.",
            )
        return fail(error.diag.message_primary or str(error), error.diag.message_hint)
    except BrokenPipeError:  # closed pipe, as in: pgrecall ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), None)
    except KeyboardInterrupt:
        return fail("interrupted", None)
