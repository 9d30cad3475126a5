"""Split texts into sentences, and tell headings from them."""

from __future__ import annotations

import re

_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[^\Wa-z_])|\n+")
# "Dr.", "J.", "U.S.": short and capitalised, or with a period inside; no sentence ends there.
_ABBREVIATED = re.compile(r"(?:^|[\s(])(?:[^\W\d_a-z]\w?|(?:\w\.)+\w)\.$")
_LONGEST = 40  # characters of an abbreviation
_HEADING = re.compile(r"\S.{0,148}[^\s.?!…。？！]")


def sentences(text: str) -> list[str]:
    """Split a text into sentences."""
    found: list[str] = []
    start = 0
    for end in _END.finditer(text):
        tail = text[max(start, end.start() - _LONGEST) : end.start()]
        if "\n" not in end.group() and _ABBREVIATED.search(tail):
            continue
        found.append(text[start : end.start()].strip())
        start = end.end()
    return [piece for piece in [*found, text[start:].strip()] if piece]


def heading_of(context: str) -> str:
    """Return a context of one line, at most 150 characters, that ends no sentence; else nothing."""
    line = context.strip().rstrip(" :")
    return line if _HEADING.fullmatch(line) else ""
