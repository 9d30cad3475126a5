"""The errors of pgrecall and their SQLSTATEs.

Every error of pgrecall is a :class:`RecallError` with a message that says what is wrong with
which value and, mostly, a hint that says what to do. Other errors of the database (a
lost connection, a privilege that PostgreSQL itself finds missing) pass unchanged as psycopg errors.
"""

# ruff: noqa: N818  names say what is wrong, without the suffix Error

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import psycopg

from pgrecall._version import __version__

_POSITION = re.compile(r"^(facts|messages|questions|rows)\[(\d+)\]")


class RecallError(Exception):
    """Base of every error of pgrecall; ``str()`` gives the message and, on a line below, the hint.

    Attributes:
        message: What is wrong, with which value.
        hint: What to do about it, or None.

    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        """Keep message and hint apart."""
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message

    @property
    def position(self) -> int | None:
        """Position (from 0) of the fact, message or row that is at fault, or None."""
        found = _POSITION.match(self.message)
        return int(found[2]) if found else None


class BankNotFound(RecallError):
    """No bank has that name."""


class BankExists(RecallError):
    """A bank with that name already exists."""


class InvalidFact(RecallError):
    """A fact or message is malformed; the message names it and the field."""


class DimensionMismatch(RecallError):
    """An embedding does not have the bank's number of dimensions."""


class ModelMismatch(RecallError):
    """An embedding was made with another model than the bank's."""


class InvalidEmbedding(RecallError):
    """An embedding is empty, all zeros, or holds NaN or infinity."""


class EmptyQuery(RecallError):
    """There is neither a query text nor an embedding to search with."""


class UnknownFactType(RecallError):
    """The bank has no fact type of that name."""


class UnknownArm(RecallError):
    """No retrieval arm has that name."""


class MemoryNotFound(RecallError):
    """The bank holds no memory with that id."""


class EntityNotFound(RecallError):
    """The bank holds no entity with that id."""


class ReembedRefused(RecallError):
    """The bank is not ready for this step of re-embedding."""


class UntrustedSource(RecallError):
    """A source is in quarantine, or its fact would end one of a more trusted source."""


class InvalidFilter(RecallError):
    """A filter cannot be parsed; the message names the part."""


class InstallError(RecallError):
    """pgrecall is not installed, is already installed, or has another version."""


class InvalidArgument(RecallError):
    """An argument is out of its range."""


class NotPermitted(RecallError):
    """The role may not write or not create the bank; the hint names roles that may."""


class ReadOnly(RecallError):
    """The server is a standby, or the transaction is read-only; the hint says where to write."""


class ClientClosed(RecallError):
    """The client is closed."""


class EmbedderUnavailable(RecallError):
    """Texts cannot be embedded: a package or a model is missing."""


class RerankerUnavailable(RecallError):
    """The reranker cannot be used; a recall keeps the fused order instead and reports it."""


class ArmFailed(RecallError):
    """An arm failed in a strict recall."""


class OutOfTime(RecallError):
    """The timeout of a recall passed before the database answered."""


_BY_SQLSTATE: dict[str, type[RecallError]] = {
    "RC001": BankNotFound,
    "RC002": BankExists,
    "RC003": InvalidFact,
    "RC004": DimensionMismatch,
    "RC005": ModelMismatch,
    "RC006": InvalidEmbedding,
    "RC007": EmptyQuery,
    "RC008": UnknownFactType,
    "RC009": UnknownArm,
    "RC010": MemoryNotFound,
    "RC011": InvalidFilter,
    "RC012": InstallError,
    "RC013": EntityNotFound,
    "RC014": ReembedRefused,
    "RC015": UntrustedSource,
    "22003": InvalidArgument,  # a number out of its type's range
    "22004": InvalidArgument,  # null for a required value
    "22023": InvalidArgument,
    "25006": ReadOnly,  # these two are ours if they have a hint
    "42501": NotPermitted,
}
_OUT_OF_RANGE = re.compile(r'value "(-?\d+)" is out of range for type')
_NOT_INSTALLED = {  # messages of a database without pgrecall
    "3F000": 'schema "pgrecall" does not exist',
    "42P01": 'relation "pgrecall.bank_overview" does not exist',
}
_MISSING = ("42883", "42703", "42P01", "3F000")  # undefined function, column, table, schema
_NO_TABLE = ("42P01", "3F000", "42602")  # undefined table, schema, invalid name
_BEGIN = "Begin with: begin read write;"  # psycopg begins transactions itself
_OTHER_MODEL = "Pass an embedder= of that model to the client, or embedder=None to do without."

_Error = TypeVar("_Error", bound=RecallError)


def from_database(
    error: psycopg.Error, parameters: Mapping[str, object] | None = None
) -> RecallError | None:
    """Convert an error of the database to one of ours.

    Args:
        error: The error.
        parameters: The values of the statement, to name the one that its argument cannot hold.

    Returns:
        The error with the database's message and hint, or None if it is not one of ours.

    """
    message = error.diag.message_primary or str(error)
    state = error.sqlstate or ""
    if _NOT_INSTALLED.get(state) == message:
        return not_installed()
    found = _OUT_OF_RANGE.match(message)
    for name, value in (parameters or {}).items():
        if found is not None and value == found[1]:
            return InvalidArgument(f"{name}: {message}", hint="Pass a smaller number.")
    if state in _NO_TABLE and "relation" in (parameters or {}) and "pgrecall." not in message:
        return InvalidArgument(
            message,
            hint="Name your table with its schema, unless that is on the search_path, and in double"
            ' quotes if it has capitals or spaces: public."My Notes".',
        )
    kind = _BY_SQLSTATE.get(state)
    if kind in (ReadOnly, NotPermitted) and not error.diag.message_hint:
        return None
    return kind(message, hint=_hint(error.diag.message_hint)) if kind else None


def _hint(hint: str | None) -> str | None:
    """Return a hint of the database with arguments as Python has them; statements stay."""
    if hint is None or re.search(r"\bselect\b", hint):
        return hint
    hint = re.sub(r"(?<=\w) => (\d|'|null\b|true\b|false\b)", _assigned, hint)
    hint = hint.replace(" =>", "=").replace(_BEGIN, "Set connection.read_only = False;")
    is_other = hint.startswith("Embed the ")
    return f"{hint} {_OTHER_MODEL}" if is_other else hint


def _assigned(found: re.Match[str]) -> str:
    values = {"null": "None", "true": "True", "false": "False"}
    return f"={values.get(found[1], found[1])}"


def not_installed() -> InstallError:
    """Make the error of a database without pgrecall."""
    return InstallError(
        "pgrecall is not installed in this database",
        hint="Install it with: pgrecall migrate --dsn ... (or create extension pgrecall).",
    )


def may_be_version(error: psycopg.Error) -> bool:
    """Return whether an error can come from a driver and a schema of different versions."""
    return error.sqlstate in _MISSING


def other_version(error: psycopg.Error, schema: str | None) -> InstallError | None:
    """Name the side to upgrade if a statement failed because the versions differ.

    Args:
        error: An error for which :func:`may_be_version` is true.
        schema: Version of the schema; None if unknown.

    Returns:
        The error to raise; None if the versions are equal, so that they are not the cause.

    """
    message = error.diag.message_primary or str(error)
    if schema is None:
        if "pgrecall" not in message:
            return None
        return InstallError(
            f"the schema of this database does not fit this driver, {__version__}: {message}",
            hint="See which is older with: select pgrecall.version(); then upgrade it, the schema"
            " with: pgrecall migrate --dsn ..., the driver with: pip install --upgrade pgrecall",
        )
    if schema == __version__:
        return None
    before, now = ([int(part) for part in text.split(".")] for text in (schema, __version__))
    problem = f"the database has pgrecall {schema}, this driver is {__version__}: {message}"
    if before < now:
        return InstallError(problem, hint="Upgrade the schema with: pgrecall migrate --dsn ...")
    return InstallError(problem, hint=f"Upgrade the driver with: pip install 'pgrecall>={schema}'")


@contextmanager
def translated() -> Iterator[None]:
    """Convert psycopg errors to ours where there is one."""
    try:
        yield
    except psycopg.Error as error:
        ours = from_database(error)
        if ours is None:
            raise
        raise ours from error


def moved(error: _Error, offset: int) -> _Error:
    """Copy an error about a batch, with the position counted from the first batch.

    Args:
        error: An error whose message may start with ``facts[3]``.
        offset: How many facts or messages came before the batch.

    """
    message = _POSITION.sub(lambda found: f"{found[1]}[{int(found[2]) + offset}]", error.message)
    copy = type(error)(message, hint=error.hint)
    copy.__cause__ = error.__cause__
    return copy


def said(error: Exception) -> tuple[str, str | None]:
    """Return what an error says, and its hint."""
    if isinstance(error, RecallError):
        return error.message, error.hint
    return f"it failed with {type(error).__name__}: {error}", None
