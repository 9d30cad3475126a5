"""Templates of the console and of ``pgrecall recall --html``, with their filters.

All values are escaped, except our own drawings. Needs only Jinja2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pgrecall.rows import Period

_DAY_LENGTH = len("2026-03-05")


@cache
def environment() -> Environment:
    """Return the Jinja2 environment."""
    made = Environment(
        loader=PackageLoader("pgrecall.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    made.filters.update(
        bytes=size_of, day=day, json=written, moment=moment, number="{:,}".format, period=period
    )
    return made


def style(*names: str) -> Markup:
    """Return the text of our CSS files, for a self-contained page."""
    found = files("pgrecall.console") / "static"
    return Markup("").join(Markup((found / name).read_text(encoding="utf-8")) for name in names)


def period(value: Period | None) -> str:
    """Format a period; one that ends at midnight ends with the day before."""
    if value is None:
        return ""
    start, end = value
    if end is not None and len(moment(end)) == _DAY_LENGTH:
        end -= timedelta(days=1)
    first, last = moment(start) or "open", moment(end) or "open"
    return first if first == last else f"{first} to {last}"


def moment(value: datetime | str | None) -> str:
    """Format a time in UTC; midnight is written as a day."""
    if not value:
        return ""
    if isinstance(value, str):  # from JSON, which may hold a time outside Python's range
        try:
            return moment(datetime.fromisoformat(value))
        except ValueError:
            return value
    there = value.astimezone(timezone.utc)
    is_day = not (there.hour or there.minute)
    return f"{there:%Y-%m-%d}" if is_day else f"{there:%Y-%m-%d %H:%M} UTC"


def day(seconds: float) -> str:
    """Format seconds since 1970 as a day in UTC."""
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d}"


def written(value: object) -> str:
    """Format a value as readable JSON."""
    if isinstance(value, Mapping):
        value = dict(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def size_of(count: float | None) -> str:
    """Format a number of bytes."""
    if count is None:
        return ""
    size, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if size >= 10 or unit == "bytes" else f"{size:.1f} {unit}"


def _printable(value: Any) -> Any:
    """Replace control characters, which a page cannot show, by spaces."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join(c if c.isprintable() or c == "\n" else " " for c in value)
