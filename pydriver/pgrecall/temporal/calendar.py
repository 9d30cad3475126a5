"""Calendar arithmetic: spans of days, recurring days, holidays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta

Days = tuple[date, date]
Hours = tuple[int, int]  # minutes from midnight: first, and first after the end
DAY = timedelta(days=1)
WHOLE_DAY: Hours = (0, 24 * 60)
LENGTHS = {"day": 1, "week": 7, "fortnight": 14}
MONTHS = {"month": 1, "quarter": 3, "half": 6, "year": 12, "decade": 120, "century": 1200}
SIZES = "day weekend week fortnight month season quarter half year decade century".split()


@dataclass(slots=True)
class Span:
    """Days from start, inclusive, to end, exclusive; None if open.

    Attributes:
        kind: The unit that the question names, or how the span was made ("range", "rolling", ...).
        confidence: 0 to 1.
        weak: Kind of the word that it was read from, if the word alone does not show a date.
        word: That word, as written.
        edge: The day that a part means at the end of a range ("the end of March").
        hours: Start in the first day and end in the last day.

    """

    start: date | None
    end: date | None
    kind: str
    confidence: float = 0.95
    weak: str = ""
    word: str = ""
    edge: date | None = None
    hours: Hours = WHOLE_DAY

    @property
    def is_empty(self) -> bool:
        """Whether the span has no day."""
        if self.start is None:
            return self.end is None or self.end == date.min
        return self.end is not None and self.end <= self.start

    @property
    def first(self) -> date:
        """The first day of a closed span."""
        if self.start is None:
            raise ValueError("open span")
        return self.start

    @property
    def after(self) -> date:
        """The day after a closed span."""
        if self.end is None:
            raise ValueError("open span")
        return self.end


@dataclass(slots=True)
class Cycle:
    """Days that recur each week, month or year, without a certain one.

    Attributes:
        unit: "week", "month" or "year", the unit that ``at`` counts.
        at: Function from the number of a unit to the days in it; None if there are none (29
            February).
        kind, confidence, weak, word: As for Span.
        other: The second reading of a numeric date ("5/6").
        hours: As for Span.

    """

    unit: str
    at: Callable[[int], Days | None]
    kind: str
    confidence: float = 0.8
    weak: str = ""
    word: str = ""
    other: Cycle | None = None
    hours: Hours = WHOLE_DAY

    def span(self, number: int) -> Span | None:
        """Return the days in the unit with this number."""
        days = self.at(number)
        if days is None:
            return None
        return Span(*days, self.kind, self.confidence, self.weak, self.word, None, self.hours)

    def _each(self, day: date, step: int) -> Iterator[Span]:
        number = index(self.unit, day)
        for there in range(number - step, number + 130 * step, step):
            if span := self.span(there):
                yield span

    def latest(self, day: date) -> Span | None:
        """Return the last occurrence that begins on a day or before."""
        return next((span for span in self._each(day, -1) if span.first <= day), None)

    def ended(self, day: date) -> Span | None:
        """Return the last occurrence that has ended on a day."""
        return next((span for span in self._each(day, -1) if span.after <= day), None)

    def earliest(self, day: date) -> Span | None:
        """Return the first occurrence that begins on a day or later."""
        return next((span for span in self._each(day, 1) if span.first >= day), None)

    def within(self, whole: Span) -> Span | None:
        """Return the first occurrence that begins in a span."""
        if whole.kind == "year" and self.unit == "year":
            return self.span(whole.first.year)
        span = self.earliest(whole.first)
        return span if span and span.first < whole.after else None


def index(unit: str, day: date) -> int:
    """Return the number of the week, month or year of a day."""
    if unit == "year":
        return day.year
    if unit == "month":
        return day.year * 12 + day.month - 1
    return (day.toordinal() - 1) // 7


def one_day(year: int, month: int, day: int) -> Days | None:
    """Return a date as a pair of bounds; None if the date does not exist."""
    try:
        start = date(year, month, day)
        return start, start + DAY
    except (ValueError, OverflowError):
        return None


def add_months(day: date, count: int) -> date:
    """Add calendar months; a day that the month lacks becomes its last day."""
    year, month = divmod(day.year * 12 + day.month - 1 + count, 12)
    for last in (day.day, 30, 29, 28):
        if last <= day.day and (days := one_day(year, month + 1, last)):
            return days[0]
    raise OverflowError("date out of range")


def add(day: date, unit: str, count: int) -> date:
    """Add a number of units to a day."""
    if unit == "weekend":
        unit = "week"
    if unit in LENGTHS:
        return day + timedelta(days=count * LENGTHS[unit])
    return add_months(day, count * MONTHS[unit])


def monday(day: date) -> date:
    """Return the Monday of the day's week."""
    return day - timedelta(days=day.weekday())


def period(unit: str, day: date, shift: int = 0) -> Span:
    """Return the calendar unit of a day, shifted by a number of units."""
    if unit == "day":
        start = day
    elif unit in ("week", "fortnight"):
        start = monday(day)
    elif unit == "weekend":
        start = monday(day) + 5 * DAY
    elif unit == "month":
        start = day.replace(day=1)
    elif unit == "quarter":
        start = date(day.year, (day.month - 1) // 3 * 3 + 1, 1)
    elif unit == "half":
        start = date(day.year, (day.month - 1) // 6 * 6 + 1, 1)
    elif unit == "decade":
        start = date(max(day.year // 10 * 10, 1), 1, 1)
    elif unit == "century":
        start = date(max(day.year // 100 * 100, 1), 1, 1)
    else:
        start = date(day.year, 1, 1)
    start = add(start, unit, shift)
    return Span(start, start + 2 * DAY if unit == "weekend" else add(start, unit, 1), unit)


def nth_weekday(year: int, month: int, weekday: int, nth: int) -> date:
    """Return the nth such weekday of a month; a negative nth counts from the end."""
    if nth > 0:
        first = date(year, month, 1)
        return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (nth - 1))
    last = add_months(date(year, month, 1), 1) - DAY
    return last - timedelta(days=(last.weekday() - weekday) % 7 + 7 * (-nth - 1))


def easter(year: int) -> date:
    """Return Easter Sunday of the western churches (Gregorian computus)."""
    golden, century, rest = year % 19, year // 100, year % 100
    leap = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - century // 4 - leap + 15) % 30
    lag = (32 + 2 * (century % 4) + 2 * (rest // 4) - epact - rest % 4) % 7
    late = (golden + 11 * epact + 22 * lag) // 451
    month, day = divmod(epact + lag - 7 * late + 114, 31)
    return date(year, month, day + 1)


def orthodox_easter(year: int) -> date:
    """Return Easter Sunday of the eastern churches (Julian computus), 1900 to 2099."""
    moon = (19 * (year % 19) + 15) % 30
    lag = (2 * (year % 4) + 4 * (year % 7) - moon + 34) % 7
    month, day = divmod(moon + lag + 114, 31)
    return date(year, month, day + 1) + 13 * DAY


def holiday(rule: object, country: str) -> Cycle:
    """Return the cycle of a holiday, from its rule in a language table."""
    if isinstance(rule, dict):
        rule = rule.get(country, rule[""])

    def at(year: int) -> Days | None:
        try:
            if isinstance(rule, int):
                start = easter(year) + timedelta(days=rule)
            elif isinstance(rule, tuple):
                start = (
                    date(year, *rule)
                    if len(rule) == 2
                    else nth_weekday(year, *rule[:3]) + timedelta(days=sum(rule[3:]))
                )
            else:
                start = orthodox_easter(year)
            return start, start + DAY
        except (ValueError, OverflowError):
            return None

    return Cycle("year", at, "day", 0.8, "holiday", "holiday")


def months(first: int, count: int, kind: str) -> Cycle:
    """Return consecutive months of each year, such as a month, a quarter or a season."""

    def at(year: int) -> Days | None:
        try:
            start = date(year, first, 1)
            return start, add_months(start, count)
        except (ValueError, OverflowError):
            return None

    return Cycle("year", at, kind)


def day_of_year(month: int, day: int) -> Cycle | None:
    """Return a date of each year; None if no year has it."""
    if one_day(2000, month, day) is None:
        return None
    return Cycle("year", lambda year: one_day(year, month, day), "day", 0.9)


def day_of_month(day: int, weekday: int | None = None) -> Cycle:
    """Return a day of each month; with a weekday, only of months where the day is that weekday."""

    def at(number: int) -> Days | None:
        days = one_day(number // 12, number % 12 + 1, day)
        return days if days and weekday in (None, days[0].weekday()) else None

    return Cycle("month", at, "day")


def weekday_cycle(weekday: int) -> Cycle:
    """Return a weekday of each week."""

    def at(number: int) -> Days | None:
        try:
            start = date.fromordinal(number * 7 + 1 + weekday)
            return start, start + DAY
        except (ValueError, OverflowError):
            return None

    return Cycle("week", at, "day", 0.8, "weekday")


def week_of_year(number: int) -> Cycle:
    """Return an ISO week of each year."""

    def at(year: int) -> Days | None:
        try:
            start = date.fromisocalendar(year, number, 1)
            return start, start + 7 * DAY
        except (ValueError, OverflowError):
            return None

    return Cycle("year", at, "week")


def nth(whole: Span, unit: str, number: int, count: int = 1) -> Span | None:
    """Return count units of a span from the nth on; a negative number counts from the end.

    A week belongs to the span with its Thursday, as in ISO 8601; a weekend to the span with its
    Saturday.
    """
    if unit in ("week", "weekend"):
        day = 3 if unit == "week" else 5
        if number > 0:
            start = whole.first + timedelta(days=(day - whole.first.weekday()) % 7 + 7 * number - 7)
        else:
            last = whole.after - DAY
            start = last - timedelta(days=(last.weekday() - day) % 7 + 7 * (-number - 1))
        inside = whole.first <= start < whole.after
        start = monday(start) + (5 * DAY if unit == "weekend" else 0 * DAY)
        end = start + (2 * DAY if unit == "weekend" else 7 * DAY) + 7 * (count - 1) * DAY
        return Span(start, end, unit) if inside else None
    if number > 0:
        start = add(period(unit, whole.first).first, unit, number - 1)
    else:
        start = add(period(unit, whole.after - DAY).first, unit, number + 1)
    end = add(start, unit, count)
    return Span(start, end, unit) if whole.first <= start < whole.after else None


def part(whole: Span, name: str, today: date) -> Span | None:
    """Return the early, middle, late ... part of a span.

    Early and late are halves. The beginning and the end are thirds: ten days of a month, three or
    four days of a week; but the beginning of a year is a quarter.
    """
    start, end = whole.first, whole.after
    days = (end - start).days
    half = start + timedelta(days=days // 2)
    if whole.kind == "year":
        half, cuts = add_months(start, 6), [add_months(start, n) for n in (3, 4, 8)]
    elif whole.kind == "month":
        half, cuts = start + 15 * DAY, [start + n * DAY for n in (10, 10, 20)]
    elif whole.kind == "week":
        half, cuts = start + 3 * DAY, [start + n * DAY for n in (3, 1, 5)]
    elif whole.kind == "decade":
        half = add_months(start, 60)
        cuts = [add_months(start, n) for n in (48, 36, 84)]
    else:
        cuts = [start + timedelta(days=days * n // 3) for n in (1, 1, 2)]
    if days == 1:
        return Span(start, end, "day", 0.9, hours=whole.hours)
    spans = {
        "early": (start, half),
        "earlier": (start, min(half, today) if today > start else half),
        "half1": (start, half),
        "begin": (start, cuts[0]),
        "mid": (cuts[1], cuts[2]),
        "late": (half, end),
        "later": (max(half, today) if today < end - DAY else half, end),
        "half2": (half, end),
        "end": (start + 4 * DAY if whole.kind == "week" else cuts[2], end),
        "rest": (max(start, today), end),
    }
    edges = {"begin": start, "early": start, "mid": start + timedelta(days=days // 2)}
    bounds = spans[name]
    if bounds[0] >= bounds[1]:
        return None
    edge = edges.get(name, end if name in ("end", "late") else None)
    return Span(*bounds, "part", 0.8, edge=edge)
