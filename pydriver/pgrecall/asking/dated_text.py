"""Text of a hit for the reranker: its date, path, text and context."""

from __future__ import annotations

import re
from datetime import date, datetime, timezone

from pgrecall.inference.rerankers import in_context
from pgrecall.rows import Hit, Period

_PATH_LENGTH = 320  # characters of a path, so that the fact after it is not cut off
_MONTHS = (  # English, as the models were trained on, whatever the locale
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DATE_WORDS = re.compile(
    rf"\b(?:{'|'.join(_MONTHS)}|\d+(?:st|nd|rd|th)?|the|of|in|on|from|to|between|and|until|since"
    r"|before|after|during)\b|[^\w\s]",
    re.IGNORECASE,
)


def dated_text(hit: Hit, during: Period | None = None, asked: str = "") -> str:
    """Write a hit for the reranker: its date, path, text and context.

    Args:
        hit: The hit. It gets no date if its time is unknown; a message has the date it was sent.
        during: The time the question is about, or None.
        asked: The question's words for that time, such as "last week". They are written beside the
            date of hits that began or ended then, since a reranker cannot compute dates. A date
            such as "in May 2026" is not repeated: that costs LoCoMo more than it gains.

    """
    text = in_context(hit.text, hit.context or "")
    path = (hit.via or {}).get("text")
    if isinstance(path, str):
        text = f"{path[:_PATH_LENGTH]} → {text}"
    start = began_at(hit)
    if start is None:
        return text
    day = start.astimezone(timezone.utc)
    is_reckoned = _DATE_WORDS.sub("", asked).strip() != ""
    words = f", {asked}" if is_reckoned and during and _is_within(hit, during) else ""
    return f"[Date: {written_date(day)} ({day:%Y-%m-%d}){words}] {text}"


def written_date(day: date) -> str:
    """Write a date in words, as "June 05, 2022"."""
    return f"{_MONTHS[day.month - 1]} {day:%d, %Y}"


def extent(hit: Hit) -> Period:
    """Return the period of a hit; (None, None) if it is unknown.

    The time when a fact was mentioned is not the time when it happened. Only for a message they are
    the same.
    """
    start, end = hit.occurred or (hit.mentioned_at if hit.kind == "message" else None, None)
    return start or end, end or start


def _is_within(hit: Hit, during: Period) -> bool:
    """Tell whether a hit began or ended in a period."""
    first, last = hit.occurred or (began_at(hit), None)
    start, end = during
    began = first is not None and (start or first) <= first and (end is None or first < end)
    ended = last is not None and (start is None or start < last) and last <= (end or last)
    return began or ended


def began_at(hit: Hit) -> datetime | None:
    """Return when the period of a hit began, if known."""
    return extent(hit)[0]
