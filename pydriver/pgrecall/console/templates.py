"""The templates, of the console and of ``pgrecall recall --html``, and how values are written.

Everything that is put into a template is escaped; only drawings of ours come as markup. Needs
Jinja2 alone.
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
    """Return the templates."""
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
    """Return files of style, ours, for a page that stands alone."""
    found = files("pgrecall.console") / "static"
    return Markup("").join(Markup((found / name).read_text(encoding="utf-8")) for name in names)


def period(value: Period | None) -> str:
    """Write a period, its last day included where it ends at midnight."""
    if value is None:
        return ""
    start, end = value
    if end is not None and len(moment(end)) == _DAY_LENGTH:
        end -= timedelta(days=1)
    first, last = moment(start) or "open", moment(end) or "open"
    return first if first == last else f"{first} to {last}"


def moment(value: datetime | str | None) -> str:
    """Write a time in UTC; a day where it is midnight."""
    if not value:
        return ""
    if isinstance(value, str):  # of JSON, which may hold a time that Python cannot
        try:
            return moment(datetime.fromisoformat(value))
        except ValueError:
            return value
    there = value.astimezone(timezone.utc)
    is_day = not (there.hour or there.minute)
    return f"{there:%Y-%m-%d}" if is_day else f"{there:%Y-%m-%d %H:%M} UTC"


def day(seconds: float) -> str:
    """Write the day of a number of seconds since 1970, in UTC."""
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d}"


def written(value: object) -> str:
    """Write a value as JSON, for people."""
    if isinstance(value, Mapping):
        value = dict(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def size_of(count: float | None) -> str:
    """Write a number of bytes."""
    if count is None:
        return ""
    size, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if size >= 10 or unit == "bytes" else f"{size:.1f} {unit}"


def _printable(value: Any) -> Any:
    """Put spaces in place of control characters, which a page cannot show."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join(c if c.isprintable() or c == "\n" else " " for c in value)
