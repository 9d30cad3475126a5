"""Cursors that read and write alike on every connection.

A caller's connection may have adapters, a cursor_factory or settings such as DateStyle of its own.
These cursors use none of them, and change none: their adapters are psycopg's own, and results come
in binary, which is the same in all settings.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from typing import Any

from psycopg import AsyncCursor, Cursor, DataError
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.postgres import register_default_adapters, register_default_types
from psycopg.pq import Format
from psycopg.rows import Row
from psycopg.types.array import register_all_arrays
from psycopg.types.json import set_json_dumps

from pgrecall.calls.values import read_json

_ADAPTERS = AdaptersMap()
register_default_types(_ADAPTERS.types)
register_default_adapters(_ADAPTERS)
register_all_arrays(_ADAPTERS)
set_json_dumps(json.dumps, _ADAPTERS)


class _TimeLoader(Loader):
    """Reads a time; None for what Python has no datetime for: infinity, years before 1."""

    format = Format.BINARY
    # psycopg's own: where it is compiled it is several times as fast, and cannot be a base.
    kind = _ADAPTERS.get_loader(_ADAPTERS.types["timestamptz"].oid, Format.BINARY)

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        assert self.kind is not None
        self._read: Callable[[Buffer], datetime] = self.kind(oid, context).load

    def load(self, data: Buffer) -> datetime | None:
        try:
            return self._read(data)
        except DataError:
            return None


class _RealLoader(Loader):
    """Reads a float4 as the shortest number that is the same float4: 0.8, not 0.800000012."""

    format = Format.BINARY

    def load(self, data: Buffer) -> float:
        (number,) = struct.unpack("!f", data)
        short = (float(f"{number:.{digits}g}") for digits in range(6, 9))
        return next((one for one in short if struct.pack("!f", one) == data), number)


class _JsonLoader(Loader):
    """Reads a jsonb in the encoding of the connection."""

    format = Format.BINARY

    @cached_property
    def _encoding(self) -> str:
        found = self.connection.info.encoding if self.connection else "utf-8"
        return "utf-8" if found == "ascii" else found  # what SQL_ASCII is called

    def load(self, data: Buffer) -> Any:
        return read_json(str(data[1:], self._encoding))  # after the version of the format


_ADAPTERS.register_loader("timestamptz", _TimeLoader)
_ADAPTERS.register_loader("float4", _RealLoader)
_ADAPTERS.register_loader("jsonb", _JsonLoader)


class OwnCursor(Cursor[Row]):
    """The cursor of the client."""

    @property
    def adapters(self) -> AdaptersMap:
        """The driver's adapters, whatever those of the connection are."""
        return _ADAPTERS


class AsyncOwnCursor(AsyncCursor[Row]):
    """The cursor of the client for asyncio."""

    @property
    def adapters(self) -> AdaptersMap:
        """The driver's adapters, whatever those of the connection are."""
        return _ADAPTERS
