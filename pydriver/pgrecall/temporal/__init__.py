"""Read dates in questions, by rules and arithmetic.

Questions to a memory are about the past unless they say otherwise: a bare "May" is the last May
that has begun, "on Friday" is the last Friday.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from datetime import timezone as _timezone

from . import calendar as cal
from . import grammar
from .languages import Language
from .languages import language as _language
from .languages.general import languages_of
from .scan import Scan

Anchors = Mapping[str, datetime] | Callable[[str], "datetime | None"]


@dataclass(frozen=True, slots=True)
class TemporalConstraint:
    """A window of time that a question names.

    Attributes:
        start: First instant of the window, with a time zone; None if open.
        end: First instant after the window, with a time zone; None if open.
        kind: The unit that the question names ("day", "week", "weekend", "month", "quarter",
            "half", "season", "year", "decade", "century"; "hours" for a part of a day) or how the
            window was made ("range", "open", "rolling", "part", "fuzzy", "anchor", "month ago",
            "year ahead" and the like).
        matched: The words of the question that name the window.
        confidence: 0 to 1; 1 for a full date, 0.6 for a fuzzy word.

    """

    start: datetime | None
    end: datetime | None
    kind: str
    matched: str
    confidence: float

    def fact(self) -> str:
        """Return a statement for a prompt, such as 'last Tuesday = 2026-11-17'.

        The last day is inclusive. Hours have an exclusive end: 'at noon = 2026-11-20 12:00 to
        2026-11-20 13:00'.
        """
        if self.kind == "hours" and self.start and self.end:
            return f"{self.matched} = {self.start:%Y-%m-%d %H:%M} to {self.end:%Y-%m-%d %H:%M}"
        first = self.start and self.start.date().isoformat()
        last = self.end and (self.end - timedelta(microseconds=1)).date().isoformat()
        if first and last:
            days = first if first == last else f"{first} to {last}"
        else:
            days = f"from {first} on" if first else f"up to {last}"
        return f"{self.matched} = {days}"


def extract_temporal_constraint(
    text: str,
    reference_time: datetime,
    *,
    timezone: tzinfo | None = None,
    language: str = "en",
    anchors: Anchors | None = None,
    day_first: bool | None = None,
    southern: bool = False,
    country: str = "US",
    recent_days: int = 30,
    few: int = 3,
) -> TemporalConstraint | None:
    """Return the window of time that a question names, or None if it names none.

    Bounds are local midnights, or hours for parts of a day and clock times: a clock time is the
    hour that begins then, and a night ends at midnight. The bound of an anchor is the instant
    itself.

    Args:
        text: The question. Of a text of more than 1,000 characters only 200 at each end are read.
        reference_time: When it was asked; a naive time is in ``timezone``.
        timezone: Time zone of the question. Default: that of ``reference_time``, else UTC.
        language: Code of the language: "en", "de", "es", "fr", "it", "nl" or "pt", or one of those
            of which only calendar words are known, such as "ru"; :func:`languages_of` tells it.
        anchors: Times of events that a question may refer to: a mapping, or a function from a name
            to a time or None. The name is "last_session" for "since we last talked" and similar
            clauses, otherwise the clause in lower case ("i joined").
        day_first: Whether 05/06 is 5 June. Default: by language; only in English it is May 6. A
            number above 12 is always the day.
        southern: Whether summer begins in December.
        country: ISO 3166 code, for holidays that differ by country.
        recent_days: Days that "recently" covers.
        few: Maximum of "a few": "a few months ago" is so many months ago to one month ago.

    Raises:
        ValueError: the language is unknown.

    """
    table = _language(language)
    zone = timezone or reference_time.tzinfo or _timezone.utc
    try:
        if reference_time.tzinfo is None:
            local = reference_time.replace(tzinfo=zone)
        else:
            local = reference_time.astimezone(zone)
        first = table.day_first if day_first is None else day_first
        scan = Scan(text, local, table, first, southern, country, recent_days, few)
        found = grammar.read(scan)
        if found is None:
            return _anchored(text, zone, table, anchors) if anchors is not None else None
        span, item = found
        matched = text[scan.spots[item.first][0] : scan.spots[item.last - 1][1]]
        (opens, closes), last = span.hours, span.end
        if last is not None and closes < cal.WHOLE_DAY[1]:
            last -= cal.DAY
        else:
            closes = 0
        start, end = _instant(span.start, opens, zone), _instant(last, closes, zone)
        is_part = span.kind == "day" and span.hours != cal.WHOLE_DAY
        kind = "hours" if is_part else span.kind
        return TemporalConstraint(start, end, kind, matched, span.confidence)
    except (OverflowError, ValueError):  # years before 1 or after 9999
        return None


def _instant(day: date | None, minutes: int, zone: tzinfo) -> datetime | None:
    """Return a time of a day; a change of clocks can shift it, even midnight."""
    if day is None:
        return None
    moment = datetime.combine(day, time(minutes // 60, minutes % 60), zone)
    try:
        return moment.astimezone(_timezone.utc).astimezone(zone)
    except OverflowError:
        return moment


def _anchored(
    text: str, zone: tzinfo, table: Language, anchors: Anchors
) -> TemporalConstraint | None:
    """Read "since we last talked", "before I joined", with the times from the caller."""
    find = anchors if callable(anchors) else anchors.get
    words = text[:1000].replace("’", "'")
    low = words.lower() if len(words.lower()) == len(words) else words
    for match in re.finditer(r"[^\W\d_]+", low):
        letter, value = table.lexicon.get(match[0], ("", None))
        if letter not in ("s", "a", "b", "t") or value == "to":
            continue
        clause = re.match(r"\s+([\w' ]+)", low[match.end() : match.end() + 120])
        if clause is None:
            continue
        begin = match.end() + clause.start(1)
        session = re.match(rf"(?:{table.session})\b", clause[1])
        if session:
            names = [("last_session", session[0])]
        elif clause[1].split(" ")[0] in table.clause_openers:
            parts = clause[1].split()[:8]
            names = [(" ".join(parts[:n]),) * 2 for n in range(len(parts), 1, -1)]
        else:
            continue
        for name, said in names:
            moment = find(name)
            if moment is None:
                continue
            moment = moment.replace(tzinfo=zone) if moment.tzinfo is None else moment
            moment = moment.astimezone(zone)
            matched = text[match.start() : begin + len(said)]
            after = letter in ("s", "a")
            return TemporalConstraint(
                moment if after else None, None if after else moment, "anchor", matched, 0.8
            )
    return None


__all__ = ["TemporalConstraint", "extract_temporal_constraint", "languages_of"]
