"""Format values for the command, the console and the doctor."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence

from pgrecall.rows import Hit

TEXT_LENGTH = 240


def plain(text: str) -> str:
    """Replace control characters, which a terminal would obey, by spaces; line ends stay."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def line(text: str, length: int = TEXT_LENGTH) -> str:
    """Return a text as one line without control characters, truncated if it is long."""
    clean = " ".join(plain(text[: 4 * length]).split())
    return clean if len(clean) <= length else f"{clean[: length - 1].rstrip()}…"


def path(hit: Hit) -> str:
    """Return the path to a hit as one line; empty if there is none."""
    via = hit.via or {}
    entities = via.get("entities")
    names = entities if isinstance(entities, list) else []
    told = via.get("path") or " → ".join(map(str, filter(None, [via.get("text"), *names])))
    return line(str(told or via.get("direction", "")))


def size(count: int) -> str:
    """Format a number of bytes."""
    amount, unit = float(count), ""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if amount < 1024 or unit == "TB":
            break
        amount /= 1024
    return f"{amount:.1f} {unit}" if unit != "bytes" and amount < 10 else f"{amount:,.0f} {unit}"


def known(count: int, what: str = "facts") -> str:
    """Say how many facts or messages a bank had already; nothing for none."""
    kept = " and keep their tags, metadata and confidence" if what == "facts" else ""
    return f"; {count:,} were already known{kept}" if count > 0 else ""


def command_line(words: Sequence[str]) -> str:
    """Quote a command for a shell."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def own_command(*words: str) -> str:
    """Return a command line of this program, for advice that can be run as it is."""
    return command_line(["pgrecall", *words])
