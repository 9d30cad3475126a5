"""A hit as the reranker reads it: its date, its path, its text, its context."""

from __future__ import annotations

import re
from datetime import date, datetime, timezone

from pgrecall.inference.rerankers import in_context
from pgrecall.rows import Hit, Period

_PATH_LENGTH = 320  # characters of a path, so that the fact behind it is not cut off
_MONTHS = (  # of the models' English, whatever the locale
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DATE_WORDS = re.compile(
    rf"\b(?:{'|'.join(_MONTHS)}|\d+(?:st|nd|rd|th)?|the|of|in|on|from|to|between|and|until|since"
    r"|before|after|during)\b|[^\w\s]",
    re.IGNORECASE,
)


def dated_text(hit: Hit, during: Period | None = None, asked: str = "") -> str:
    """Write a hit as input of the reranker: its date, its path, its text, its context.

    Args:
        hit: The hit. Without a known time it gets no date; a message has that of sending.
        during: The time the question is about, or None.
        asked: The words of the question for it, such as "last week", which stand beside the date of
            facts that began or ended then: a reranker cannot compute dates. Not where they are a
            date themselves, "in May 2026": said twice, it costs LoCoMo more than it gains.

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
    """Return the period that a hit is about, if known.

    The time when a fact was said does not say when it happened; a message has its own time.
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
    """Return when what a hit is about began, if known."""
    return extent(hit)[0]
