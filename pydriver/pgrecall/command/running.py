"""Run a command; turn errors into a message, a hint and an exit status."""

from __future__ import annotations

import codecs
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TextIO

import psycopg
from psycopg.errors import Diagnostic
from rich.console import Console

from pgrecall.command import render
from pgrecall.connection.retries import is_outage
from pgrecall.errors import BankNotFound, ModelMismatch, RecallError
from pgrecall.server import DSN_VARIABLE

_MAKES = "Create it with: "  # in a hint, before a statement
_GRANT = (
    "Have its owner run: select pgrecall.create_roles(); and then, with the name of your role:"
    " grant pgrecall_reader to you;"
)
_ESCAPE = "pgrecall.escape"
# Which setting ended a statement or a connection, by the SQLSTATE that the server gave.
_LIMITS = {
    "57014": "statement_timeout",
    "25P03": "idle_in_transaction_session_timeout",
    "25P04": "transaction_timeout",
}


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Escape characters that a stream cannot encode, such as arrows in a pipe on Windows."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error(_ESCAPE, _escape)


def fail(message: str, hint: str | None) -> int:
    """Print an error and its hint."""
    console = render.make_console(stderr=True)
    console.print("error:", message, style="red", markup=False, soft_wrap=True)
    if hint:
        console.print("hint:", hint, markup=False, soft_wrap=True)
    return 1


def warn(said: Diagnostic) -> None:
    """Print a warning of the server and its hint."""
    if said.severity_nonlocalized == "WARNING":
        console = render.make_console(stderr=True)
        console.print("warning:", said.message_primary, markup=False, soft_wrap=True)
        if said.message_hint:
            console.print("hint:", said.message_hint, markup=False, soft_wrap=True)


def watch(step: Callable[[], None], options: SimpleNamespace, console: Console) -> None:
    """Run a step once or, with --watch, again and again until it is interrupted.

    Then it also waits for a server that is away.
    """
    is_away = False
    try:
        while True:
            try:
                step()
                is_away = False
            except psycopg.Error as error:
                if not options.watch or not is_outage(error):
                    raise
                if not is_away:
                    said = f"waiting for the server: {str(error).strip()}"
                    console.print(said, style="yellow", markup=False, soft_wrap=True)
                is_away = True
            if not options.watch:
                break
            time.sleep(options.interval)
    except KeyboardInterrupt:
        pass


@contextmanager
def written_whole(path: Path) -> Iterator[TextIO]:
    """Open a file for writing that replaces the one of that name once it is whole."""
    # A device or a pipe; the link /dev/stdout may lead to one that has no path.
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="\n") as out:
            yield out
        return
    target = path.resolve()
    beside = target.with_name(f"{target.name}.{os.getpid()}.part")
    mode = target.stat().st_mode & 0o777 if target.exists() else None

    def made(name: str, flags: int) -> int:  # nobody reads it who may not read the other
        try:
            return os.open(name, flags, 0o666 if mode is None else mode)
        except OSError as error:
            error.filename = str(path)  # as it was asked for
            raise

    try:
        with open(beside, "w", encoding="utf-8", newline="\n", opener=made) as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        if mode is not None:
            beside.chmod(mode)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def run(action: str, options: SimpleNamespace) -> int:
    """Run a function of a module of the command, and return its exit status."""
    module, name = action.split(".")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ESCAPE)
    try:
        function = getattr(import_module(f"pgrecall.command.{module}"), name)
        return int(function(options, render.make_console()))
    except BankNotFound as error:
        said, makes, _ = (error.hint or "").partition(_MAKES)
        return fail(error.message, said + (f"{makes}pgrecall bank create NAME" if makes else ""))
    except ModelMismatch as error:
        return fail(
            error.message,
            "Name the model of the bank with --model, or pass --no-embed to do without.",
        )
    except RecallError as error:
        detail = getattr(getattr(error.__cause__, "diag", None), "message_detail", None)
        return fail(error.message + (f"\n{detail}" if detail else ""), error.hint)
    except psycopg.errors.LockNotAvailable as error:
        return fail(
            error.diag.message_primary or str(error),
            error.diag.message_hint
            or "Another session holds a lock. See who: select pid, query from pg_stat_activity"
            " where state <> 'idle';",
        )
    except psycopg.Error as error:
        if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
            # Nothing that the server said.
            return fail(
                f"cannot reach the server: {str(error).strip()}",
                f"Check --dsn and {DSN_VARIABLE}; without either the embedded server is used.",
            )
        said, hint = (error.diag.message_primary or str(error)).strip(), error.diag.message_hint
        limit = _LIMITS.get(error.sqlstate or "")
        if limit:
            hint = hint or (
                f"Where {limit} is set, give the command more time:"
                f" PGOPTIONS='-c {limit}=10min' pgrecall ..."
            )
        elif error.sqlstate == "42501" and said.endswith("pgrecall"):  # the schema, any language
            hint = hint or _GRANT
        return fail(said, hint)
    except BrokenPipeError:  # closed pipe, as in: pgrecall ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except ImportError as error:
        said, _, remedy = str(error).partition(". Run: ")
        if not remedy:
            raise
        return fail(said, f"Run: {remedy}")
    except OSError as error:
        return fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), None)
    except (KeyboardInterrupt, EOFError):
        return fail("interrupted", None)
