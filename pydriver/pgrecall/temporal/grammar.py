"""The grammar: tokens become classes, and patterns over classes become spans of days.

A question is split into tokens. Each token or known phrase becomes an item, whose class is one
letter. Rules are regular expressions over the string of these letters. They are applied in the
order of this file; each replaces its match by fewer items, until spans are left. The letters:

    M month     W weekday    U unit       S season     H holiday    D today, yesterday ...
    n 0 to 99   N larger     y year       o ordinal    A a, an      v few, several
    R last, this, next ...   V after next, before last  E early, end of ...  P part of day
    g ago       l hence      L time       i in, on     I within     F from   t to, until
    T the       m my         O of    w between    & and        s since      a after  b before  k by
    G starting  p or later   d or earlier q quarter, half        Y "calendar year", cy
    J now       j to date    @ year to date            * this time  f fuzzy word
    e eom, eoy  r recent     h all        # week beginning           c clock  u hour, minute
    K ago, said before the time           Z a decade, by name
    > more than     < less than           x the same
    | or        - / . ,      themselves   ; and " other punctuation  z any other word
    C a Cycle   X a Span
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from functools import cache
from itertools import product

from . import calendar as cal
from .calendar import DAY, Cycle, Span
from .languages import AMOUNT, LUNCH, NOON
from .scan import Group, Item, Scan

Value = Span | Cycle | list[Item] | None
Builder = Callable[[Scan, Group], Value]
_RULES: list[tuple[str, Builder]] = []


def rule(pattern: str) -> Callable[[Builder], Builder]:
    """Register a rule: a pattern over class letters, and a function of the matched items."""

    def add(build: Builder) -> Builder:
        _RULES.append((pattern, build))
        return build

    return add


@cache
def compiled() -> list[tuple[re.Pattern[str], Builder]]:
    """Compile the rules on first use."""
    return [(re.compile(pattern), build) for pattern, build in _RULES]


def reduce(scan: Scan) -> None:
    """Apply all rules in order, each wherever it matches."""
    for pattern, build in compiled():
        match = pattern.search(scan.letters)
        while match:
            start, end = match.span()
            try:
                built = build(scan, Group(match, scan.items))
            except (ValueError, OverflowError):  # outside the calendar
                built = None
            if built is None or (isinstance(built, Span) and built.is_empty):
                match = pattern.search(scan.letters, start + 1)
                continue
            if not isinstance(built, list):
                letter = "C" if isinstance(built, Cycle) else "X"
                first, last = scan.items[start].first, scan.items[end - 1].last
                built = [Item(letter, built, first, last)]
            scan.items[start:end] = built
            made = "".join([item.letter for item in built])
            scan.letters = scan.letters[:start] + made + scan.letters[end:]
            match = pattern.search(scan.letters, start + (len(built) > 1) * len(built))


@rule(r"(?P<v>V)(?=[WMUSHn])")
def _not_after_next(scan: Scan, got: Group) -> Value:
    """Split "after next Friday" into "after" and "next Friday"."""
    item = got.all()[0]
    after = item.value > 0
    shift = (1, "next") if after else (-1, "last")
    middle = item.first + 1
    return [
        Item("a" if after else "b", None, item.first, middle),
        Item("R", shift, middle, item.last),
    ]


@rule(r"w(?P<a>n)(?P<s>&)(?P<b>n)(?=[Uu])")
def _between_counts(scan: Scan, got: Group) -> Value:
    """Read "between two and three weeks" as "two or three weeks"."""
    _, a, s, b = got.all()
    return [a, Item("|", None, s.first, s.last), b]


@rule(r"(?P<p>[pd])(?=T?[MWHDSqXCynoR])")
def _not_or_later(scan: Scan, got: Group) -> Value:
    """Split "and before June" into "and" and "before"."""
    item, lexicon = got.all()[0], scan.language.lexicon
    middle = item.first + 1
    joins, _ = lexicon.get(scan.words[item.first], ("", None))
    side, value = lexicon.get(" ".join(scan.words[middle : item.last]), ("", None))
    if joins not in ("&", "|") or side not in ("a", "b", "s"):
        return None
    return [Item(joins, None, item.first, middle), Item(side, value, middle, item.last)]


# Times of day --------------------------------------------------------------------------------


@rule(r"(?<![MC/.-])[wF]?T?(?P<a>[nc])(?P<s>[-t&])T?(?P<b>c)")
def _clock_range(scan: Scan, got: Group) -> Value:
    """Read "2 to 5 pm", "between 9:00 and 11:30"; a later rule adds the day."""
    a, b, items = got.item("a"), got.item("b"), got.all()
    if a is None or b is None or a.value is None or b.value is None:
        return None
    if got.match["s"] == "&" and items[0].letter != "w":
        return None
    (closes, _), is_sure = b.value
    if a.letter == "c":
        opens, is_sure = a.value[0][0], is_sure and a.value[1]
        starts = [opens] if a.value[1] else [opens + 720, opens]
    elif a.value > 23:
        return None
    else:
        opens = a.value * 60
        starts = [opens] if scan.language.day_first else [opens % 720 + 720, opens % 720]
    opens = next((one for one in starts if one < closes), -1)
    if opens < 0:
        return None
    return [Item("c", ((opens, closes), is_sure or closes >= 720), items[0].first, b.last)]


@rule(r"[wF]T?(?P<a>n)[-t&]T?(?P<b>n)[iO]{0,2}T?(?P<d>i?[DRWXC])?(?P<p>P)")
def _hours_within_part(scan: Scan, got: Group) -> Value:
    """Read the hours of "between 9 and 11 this morning", "from 2 to 4 on Tuesday afternoon"."""
    item, part, hours = got.item("p"), got["p"], (got["a"], got["b"])
    if item is None or part is None or not all(0 < hour < 13 for hour in hours):
        return None
    opens, closes = (
        next((at for at in (hour % 12 * 60, hour % 12 * 60 + 720) if part[0] <= at <= part[1]), -1)
        for hour in hours
    )
    if not 0 <= opens < closes:
        return None
    return [*got.all("d"), Item("P", (opens, closes), item.first, item.last)]


@rule(r"(?<![MC])(?:(?P<n>n)i(?=T)|(?P<c>c)i?)T?(?P<p>P)")
def _hour_of_part(scan: Scan, got: Group) -> Value:
    """Read "10 in the morning", "5 o'clock in the afternoon"."""
    item, part = got.item("n") or got.item("c"), got["p"]
    if item is None or item.value is None or part is None:
        return None
    hour = item.value[0][0] if item.letter == "c" else item.value * 60
    if not 0 < hour < 13 * 60:
        return None
    halves = (hour % 720, hour % 720 + 720)
    opens = next((one for one in halves if part[0] <= one < part[1]), None)
    if opens is None:
        return None
    return [Item("c", ((opens, opens + 60), True), item.first, got.all()[-1].last)]


@rule(r"(?<=[isabktF])(?P<n>[nc])(?P<d>[RD])(?P<p>P)|(?P<d2>[RD])(?P<p2>P)i(?P<n2>[nc])(?![UuO-])")
def _hour_of_this_part(scan: Scan, got: Group) -> Value:
    """Read "at 9 this morning", "last night at 8"."""
    day, part, hour = (got.item(name) or got.item(f"{name}2") for name in "dpn")
    if day is None or part is None or hour is None or hour.value is None or part.value is None:
        return None
    if got["n2"] is not None and scan.continued(hour):
        return None
    at = hour.value[0][0] if hour.letter == "c" else hour.value * 60
    opens, closes = part.value
    found = next((one for one in (at % 720, at % 720 + 720) if opens <= one < closes), None)
    if found is None or not 0 < at < 24 * 60:
        return None
    items = got.all()
    first, last = items[0].first, items[-1].last
    return [
        Item(day.letter, day.value, first, first + 1),
        Item("P", (found, found + 60), first + 1, last),
    ]


@rule(r"(?<![nc])(?P<t>t)T?(?P<c>c)")
def _at_the_hour(scan: Scan, got: Group) -> Value:
    """Read "a las 17:30", "à 17h", where "at" and "to" are the same word."""
    word, clock = got.item("t"), got.item("c")
    if not scan.language.day_first or word is None or clock is None or word.value != "to":
        return None
    return [Item("i", "at", word.first, clock.first), clock]


def _hours_of(item: Item | None) -> cal.Hours:
    """Return the hours of a part of the day or a clock time; the whole day if unknown."""
    if item is None or item.value is None:
        return cal.WHOLE_DAY
    hours: cal.Hours = item.value
    if item.letter == "c":
        hours, is_sure = item.value
        return hours if is_sure else cal.WHOLE_DAY
    return hours


# Numeric notations ---------------------------------------------------------------------------


@rule(r"(?P<u>U)(?P<a>n)[-t&|](?P<b>n)(?!U)")
def _numbered_weeks(scan: Scan, got: Group) -> Value:
    """Read "weeks 40 to 42"."""
    first, last = (cal.week_of_year(got[name]) for name in "ab")
    if got["u"] != "week" or not 0 < got["a"] < got["b"] < 54:
        return None

    def at(year: int) -> cal.Days | None:
        start, end = first.at(year), last.at(year)
        return (start[0], end[1]) if start and end else None

    return Cycle("year", at, "range")


@rule(r"(?P<u>U)(?P<n>n)(?=O?M|[-t&])")
def _numbered_day(scan: Scan, got: Group) -> Value:
    """Read the number of "el día 3 de mayo"."""
    item = got.item("n")
    is_day = got["u"] == "day" and scan.language.has_numbered_day
    return [item] if is_day and item else None


@rule(r"(?P<a>[no])(?P<s>[-t&|])T?(?P<b>[no])[-O]?(?P<m>M)(?!')")
def _days_then_month(scan: Scan, got: Group) -> Value:
    """Read "3 to 7 May", "the 3rd and 4th of May" and, after between or on, "3 and 7 May"."""
    start = got.match.start()
    both_ordinal = got.match["a"] == got.match["b"] == "o"
    before = scan.letters[max(0, start - 2) : start]
    if got.match["s"] in "&|" and not both_ordinal and {*"wiT"}.isdisjoint(before):
        return None
    first, last = (cal.day_of_year(got["m"], got[name]) for name in "ab")
    a, b, s = got.items[start], got.item("b"), got.item("s")
    if not (first and last and b and s):
        return None
    whole = Item("t", "to", s.first, s.last)
    return [Item("C", first, a.first, a.last), whole, Item("C", last, b.first, got.all()[-1].last)]


@rule(r"(?P<a>[no])(?P<s>[-t&])T?(?P<b>[no])(?=(?=[iOTR])[iO]{0,2}T?R?(?P<u>U))")
def _days_then_container(scan: Scan, got: Group) -> Value:
    """Read "4 to 22 this month"."""
    a, s, b = (got.item(name) for name in "asb")
    unit = got.item("u")
    if (
        unit is None
        or not (a and s and b)
        or unit.value != "month"
        or not 0 < a.value < b.value < 32
    ):
        return None
    return [
        Item("C", cal.day_of_month(a.value), a.first, a.last),
        Item("t", "to", s.first, s.last),
        Item("C", cal.day_of_month(b.value), b.first, b.last),
    ]


@rule(r"(?<!n[-/.])(?P<y>y)(?P<s>[-/.])(?P<m>n)(?P=s)(?P<d>n)")
def _year_month_day(scan: Scan, got: Group) -> Value:
    if not scan.tight(got.all()):
        return None
    days = cal.one_day(got["y"], got["m"], got["d"]) or cal.one_day(got["y"], got["d"], got["m"])
    return days and Span(*days, "day", 1)


_DATE_WITH_NAME = (
    r"(?P<y>y)(?P<s>[-/.])(?P<m>M)(?P=s)(?P<d>[no])"
    r"|(?P<d2>[no])(?P<s2>[-/.])(?P<m2>M)(?P=s2)(?P<y2>[yn])"
    r"|(?P<m3>M)(?P<s3>[-/])(?P<d3>[no])(?P=s3)(?P<y3>[yn])"
)


@rule(_DATE_WITH_NAME)
def _date_with_name(scan: Scan, got: Group) -> Value:
    """Read "2019/aug/01", "1.aug.2019", "aug-01-19"."""
    if not scan.tight(got.all()):
        return None
    year = got.item("y") or got.item("y2") or got.item("y3")
    month, day = got["m"] or got["m2"] or got["m3"], got["d"] or got["d2"] or got["d3"]
    if year is None:
        return None
    number = year.value
    if year.letter == "n":
        if len(scan.words[year.first]) != 2:
            return None
        number = scan.full_year(number)
    days = cal.one_day(number, month, day or 0)
    return days and Span(*days, "day", 1)


@rule(r"(?P<y>y)(?P<p>\.)?,?T?(?P<m>M)(?(p)\.?)(?P<d>[no])(?:(?P<s>[-t])T?(?P<e>[no]))?(?![,.]?y)")
def _year_then_day(scan: Scan, got: Group) -> Value:
    """Read "2019 aug 1", and "2019 May 3 to 7" as if the year came last.

    A dot behind the year ends a sentence, but for a month in lower case: "2019. aug. 1."
    """
    items, month = got.all(), got.item("m")
    if got.item("p") and month and scan.text[scan.spots[month.first][0]].isupper():
        return None
    if month is None or scan.is_verb(month) or scan.counted(items[-1]):
        return None
    if got["e"] is None:
        days = cal.one_day(got["y"], got["m"], got["d"])
        return days and Span(*days, "day", 1)
    first, last = items[0].first, items[-1].last
    moved = [*items[items.index(month) :], items[0]]
    return [Item(item.letter, item.value, first, last) for item in moved]


@rule(r"(?P<a>n)(?P<s>[-/.])(?P<b>n)(?P=s)(?P<y>[yn])")
def _day_month_year(scan: Scan, got: Group) -> Value:
    items = got.all()
    is_spaced = scan.language.is_general and items[1].letter == "."  # "3. 5. 2023"
    if not scan.tight(items) and not is_spaced:
        return None
    year, written = got["y"], scan.words[items[-1].first]
    short = items[-1].letter == "n"
    if short and (len(written) != 2 or not written.isdecimal()):
        return None
    year = scan.full_year(year) if short else year
    a, b = got["a"], got["b"]
    order = [(a, b), (b, a)]
    if scan.day_first or items[1].letter == ".":
        order.reverse()
    days = cal.one_day(year, *order[0]) or cal.one_day(year, *order[1])
    weak = "numeric" if short and items[1].letter != "/" else ""
    return days and Span(*days, "day", 0.9 if a < 13 and b < 13 else 1, weak)


@rule(r"(?<![-/.M])(?<!M[.,])(?P<a>n)(?P<s>[-/.])(?P<b>[no])(?![/.:-][nyN]|[Uu])")
def _day_month(scan: Scan, got: Group) -> Value:
    items = got.all()
    if not scan.tight(items) or not scan.words[items[0].first].isdecimal():
        return None
    return _numeric(scan, got)


@rule(r"(?P<a>n)(?P<s>/)(?P<b>n)(?=-[nC])")
def _numeric(scan: Scan, got: Group) -> Value:
    a, b, mark = got["a"], got["b"], got["s"]
    if (a, b) == (24, 7):  # round the clock
        return None
    readings = [c for c in (cal.day_of_year(a, b), cal.day_of_year(b, a)) if c]
    if not readings:
        return None
    if scan.day_first:
        readings.reverse()
    cycle = readings[0]
    cycle.other = readings[-1]
    dotted = "numeric" if "." in scan.language.ordinal_suffixes else "container"
    cycle.weak = {"/": "numeric", "-": "dashed"}.get(mark, dotted)
    return cycle


@rule(r"(?<=C-)(?P<a>n)(?P<s>/)(?P<b>n)")
def _numeric_after_dash(scan: Scan, got: Group) -> Value:
    return _numeric(scan, got)


@rule(r"(?P<y>y)[-/](?P<m>n)|(?P<m2>n)[-/](?P<y2>y)")
def _month_and_year(scan: Scan, got: Group) -> Value:
    year, month = got["y"] or got["y2"], got["m"] or got["m2"]
    if not (scan.tight(got.all()) and 1900 <= year <= 2100 and 0 < (month or 0) < 13):
        return None
    span = cal.months(month, 1, "month").span(year)
    if span:
        span.weak = "" if got["y"] else "year"
    return span


# Words for days, months, quarters ... -----------------------------------------------------------


@rule(r"(?P<m>M)[-/](?P<y>y)[-/](?P<d>n)")
def _month_year_day(scan: Scan, got: Group) -> Value:
    days = cal.one_day(got["y"], got["m"], got["d"])
    return days and Span(*days, "day", 1)


_FIRST_OF_MONTH = (
    r"(?P<m>M)T?(?P<o>o)(?P<n>n)(?P<u>U)?(?![,.]?y)|(?P<o2>o)(?P<n2>n)[Oi]T?(?P<m2>M)(?P<y>y)?"
)


@rule(_FIRST_OF_MONTH)
def _first_of_month(scan: Scan, got: Group) -> Value:
    """Read "January first 12" and "the first 12 of January" as its first twelve days."""
    month, first = got.item("m") or got.item("m2"), got.item("o") or got.item("o2")
    number = got.item("n") or got.item("n2")
    if month is None or first is None or number is None or first.value != 1 or number.value < 2:
        return None
    if scan.is_verb(month) or scan.words[first.first][0].isdigit() or scan.continued(got.all()[-1]):
        return None
    cycle = cal.months(month.value, 1, "month")
    whole = cycle.span(got["y"]) if got["y"] else cycle.latest(scan.today)
    span = whole and cal.nth(whole, got["u"] or "day", 1, number.value)
    return span if whole and span and span.after <= whole.after + 6 * DAY else None


@rule(r"(?<!M)(?<!M[,.])(?P<d>[no])(?:[-/]|\.(?=M\.?y))?T?(?:z?O)?T?(?P<m>M)")
def _day_of_month(scan: Scan, got: Group) -> Value:
    item = got.item("m")
    if item is None or scan.is_verb(item) or "z" in scan.letters[slice(*got.match.span())]:
        return None
    return cal.day_of_year(item.value, got["d"])


@rule(r"(?P<m>M)[-/.,]{0,2}T?(?P<d>[no])(?![/Uu])")
def _month_day(scan: Scan, got: Group) -> Value:
    last = got.all()[-1]
    if last.letter == "n" and scan.language.day_first and scan.continued(last):
        return None
    if scan.counted(last) or "," in scan.letters[slice(*got.match.span())] and last.letter == "n":
        return None
    return cal.day_of_year(got["m"], got["d"])


@rule(r"M")
def _month(scan: Scan, got: Group) -> Value:
    item = got.all()[0]
    if scan.is_verb(item) and scan.word(item.first - 1) not in scan.language.bare["month"]:
        if not scan.letters[got.match.end() :].startswith("y"):
            return None
    cycle = cal.months(item.value, 1, "month")
    cycle.weak, cycle.word = "month", scan.words[item.first]
    return cycle


@rule(r"(?P<q>q)|(?P<o>o)(?P<u>U)")
def _quarter(scan: Scan, got: Group) -> Value:
    name, number = got["q"] or (got["u"], got["o"])
    if name == "century":
        if not 1 < number < 30:
            return None
        return Span(date(number * 100 - 100, 1, 1), date(number * 100, 1, 1), "century", 1)
    if name not in ("q", "quarter", "h", "half") or not 0 < number <= 4:
        return None
    size, kind = (6, "half") if name in ("h", "half") else (3, "quarter")
    cycle = cal.months((number - 1) * size + 1, size, kind)
    in_match = got["o"] and (kind == "half" or scan.language.has_other_quarter)
    cycle.weak = "container" if in_match else "quarter"  # "the fourth quarter" of a match
    return cycle


@rule(r"H")
def _holiday(scan: Scan, got: Group) -> Value:
    return cal.holiday(got.all()[0].value, scan.country)


@rule(r"S")
def _season(scan: Scan, got: Group) -> Value:
    item = got.all()[0]
    if scan.is_verb(item):
        return None
    number = (item.value + 2 * scan.south) % 4
    cycle = cal.months(3 * number + 3, 3, "season")
    cycle.weak, cycle.word = "season", scan.words[item.first]
    return cycle


@rule(r"D")
def _deictic(scan: Scan, got: Group) -> Value:
    return cal.period("day", scan.today, got.all()[0].value)


@rule(r"(?P<r>R)(?P<n>n)?(?P<y>Y)|(?P<y2>Y)(?P<r2>R)|(?P<n3>y)(?P<y3>Y)")
def _calendar_unit(scan: Scan, got: Group) -> Value:
    """Read "this calendar year", "the last 2 calendar months", "2019 calendar year"."""
    if got["n3"] is not None:
        return None if got["y3"] else cal.period("year", date(got["n3"], 1, 1))
    shift, unit = (got["r"] or got["r2"])[0], got["y"] or got["y2"] or "year"
    count = got["n"] or 1
    near = cal.period(unit, scan.today, shift)
    if count == 1 or shift == 0:
        return near if count == 1 else None
    far = cal.period(unit, scan.today, shift * count)
    first, last = (far, near) if shift < 0 else (near, far)
    return Span(first.start, last.end, "range", 0.9)


@rule(r"Y(?P<y>y(?![-/]n)|n)|(?P<u>U)O?T?(?P<n>y(?![-/]n)|n(?!U))")
def _numbered_unit(scan: Scan, got: Group) -> Value:
    """Read "the year 2012", "cy18", "week 27", "los años 80", "el día 5"."""
    unit, language = got["u"], scan.language
    number = got["y"] if unit is None else got["n"]
    if language.is_general and number < 100:
        return None
    if unit is None and got.all()[0].value:
        is_week = got.all()[0].value == "week" and 0 < number < 54
        return cal.week_of_year(number) if is_week else None  # "calendar month 3"
    if unit == "decade" or scan.words[got.all()[0].first] in language.decade_words:
        if number % 10 == 0 and number:
            return scan.decade(number, "")
    if unit == "day" and language.has_numbered_day and 0 < number < 32:
        return cal.day_of_month(number)
    if unit == "week" and 0 < number < 54 and "O" not in got.match[0]:
        return cal.week_of_year(number)
    if unit not in (None, "year") or (unit and number < 100):
        return None
    return cal.period("year", date(scan.full_year(number) if number < 100 else number, 1, 1))


@rule(r"(?P<c>C)(?:(?:,T?[no])*,?(?P<s>[&|])|(?P<s2>[-t]))T?(?P<d>[no])(?![A-Zu])")
def _days_after_month(scan: Scan, got: Group) -> Value:
    """Read the last day of "May 3 to 7", "May 3, 4 and 6" and "between May 3 and 7"."""
    c, *between, d = got.all()
    start, end = c.value.at(2000) or c.value.at(2004) or (None, None), d.value
    if c.value.unit != "year" or c.value.kind != "day" or c.value.weak or not 0 < end < 32:
        return None
    first = start[0] if isinstance(start, tuple) else start
    if first is None or scan.counted(d):
        return None
    if got.item("s") and d.letter == "n" and scan.continued(d):
        return None
    last = cal.day_of_year(first.month, end) if end > first.day else cal.day_of_month(end)
    if last is None:
        return None
    t = between[0]
    return [c, Item("t", "to", t.first, t.last), Item("C", last, d.first, d.last)]


def _in_year(cycle: Cycle, year: int, confidence: float | None = None) -> Span | None:
    """Return the days of a cycle in a year, which makes them a date."""
    span = cycle.span(year)
    if span:
        span.weak, span.confidence = "", confidence or span.confidence
    return span


@rule(r"(?P<c>C)O?(?P<y>y)[-/][yn]")
def _winter(scan: Scan, got: Group) -> Value:
    """Read "winter 2019/20"."""
    return _in_year(got["c"], got["y"]) if got["c"].kind == "season" else None


@rule(r"(?<![CO/-])(?P<y>y)[-/](?P<n>n)(?![/-])")
def _years(scan: Scan, got: Group) -> Value:
    """Read "2024/25", "2014-18"; up to 12 it is a month."""
    year, last = got["y"], got.all()[-1]
    after = year // 100 * 100 + last.value
    if not (scan.tight(got.all()) and len(scan.words[last.first]) == 2 and after > year):
        return None
    return Span(date(year, 1, 1), date(after + 1, 1, 1), "range", 0.9, "year")


@rule(r"(?P<c>C)(?P<s>[,./-]{0,2}|O|i|,i)T?(?P<y>y)")
def _with_year(scan: Scan, got: Group) -> Value:
    cycle = got["c"]
    if cycle.unit != "year" or ("i" in got.match["s"] and got["s"] == "on"):
        return None
    if scan.counted(got.all()[-1]):
        return None
    return _in_year(cycle, got["y"], 1)


@rule(r"(?P<c>C)(?P<s>O?)(?P<y>n)(?!U)")
def _with_short_year(scan: Scan, got: Group) -> Value:
    cycle, year, last = got["c"], got["y"], got.all()[-1]
    if cycle.unit != "year" or cycle.weak not in ("", "month", "quarter") or scan.counted(last):
        return None
    if cycle.weak == "quarter" and (len(scan.words[last.first]) != 2 or scan.continued(last)):
        return None
    if (
        year < 32
        and cycle.weak != "quarter"
        and (
            cycle.kind != "day"
            or scan.follows(last)
            or not scan.glued(last.first)
            and len(scan.words[last.first]) != 2
        )
    ):
        return None
    return _in_year(cycle, scan.full_year(year))


@rule(r"(?P<y>y)[-/]?T?(?P<c>C)(?![,.]?y)")
def _year_first(scan: Scan, got: Group) -> Value:
    cycle = got["c"]
    if cycle.kind not in ("week", "month", "quarter", "half"):
        return None
    return _in_year(cycle, got["y"], 1)


@rule(r"R?(?P<w>W)[,.]?[-;/]?(?:T|iT)?(?P<c>[CX])")
def _weekday_and_date(scan: Scan, got: Group) -> Value:
    value = got["c"]
    if value.kind != "day":
        return None
    if not isinstance(value, Cycle):
        dated: Span = value
        return None if dated.weak else dated
    if value.weak == "holiday":
        return None
    readings = [value, value.other] if value.other else [value]
    for reading in readings:
        past, future = reading.latest(scan.today), reading.earliest(scan.today)
        for span in (past, future):
            if span and span.first.weekday() == got["w"]:
                span.weak = ""
                return span
    value.weak = ""
    return value


@rule(r"(?P<w>W)[,.]?T?(?P<d>[no])(?![/Uu])")
def _weekday_and_day(scan: Scan, got: Group) -> Value:
    """Read "Thursday the 21st": in this month if it is one, else the last one before."""
    d = got.all()[-1]
    if not 0 < d.value < 32 or scan.counted(d):
        return None
    if d.letter == "n" and (
        scan.continued(d) or scan.words[got.all()[0].first] in scan.language.ambiguous
    ):
        return None
    cycle = cal.day_of_month(d.value, got["w"])
    month = cycle.span(cal.index("month", scan.today))
    return month or cycle.latest(scan.today)


# Relative to today -------------------------------------------------------------------------------


@rule(r"(?P<r>R)(?P<p>P)")
def _this_morning(scan: Scan, got: Group) -> Value:
    if got["r"][0] > 0:
        return None
    span = cal.period("day", scan.today, got["r"][0])
    span.hours = _hours_of(got.item("p"))
    return span


@rule(rf"(?:(?P<r>R)|x)(?P<d>U)(?:O?T?(?P<r2>R)(?P<u>U)|(?P<l>{AMOUNT})g)")
def _same_unit(scan: Scan, got: Group) -> Value:
    """Read "this day last year", "the same month two years ago"."""
    unit, other = got["d"], got["u"] or got.all("l")[-1].value
    units = cal.SIZES
    if got["r"] not in (None, (0, "this")) or unit == "weekend":
        return None
    if units.index(unit) >= units.index(other):
        return None
    if got["r2"] is None:
        day = _shift(scan.today, got.all("l"), -1)
    else:
        day = cal.add(scan.today, other, got["r2"][0])
    return cal.period(unit, day)


@rule(r"(?P<s>\*)(?P<r>R)(?P<u>U)|(?P<r2>R)(?P<u2>U)(?P<s2>\*)")
def _this_time(scan: Scan, got: Group) -> Value:
    """Read "this time last year": around the same day."""
    (shift, _), unit = got["r"] or got["r2"], got["u"] or got["u2"]
    if unit in ("week", "day", "weekend"):
        return cal.period(unit, scan.today, shift)
    day, slack = cal.add(scan.today, unit, shift), 15 if unit == "year" else 3
    return Span(day - slack * DAY, day + (slack + 1) * DAY, "fuzzy", 0.7)


@rule(r"T?(?P<u>U)(?P<v>V)|(?P<c>[WC])(?P<v2>V)")
def _after_next(scan: Scan, got: Group) -> Value:
    shift = got["v"] or got["v2"]
    if got["u"]:
        return cal.period(got["u"], scan.today, shift)
    cycle = cal.weekday_cycle(got["c"]) if isinstance(got["c"], int) else got["c"]
    near = cycle.earliest(scan.today + DAY) if shift > 0 else cycle.ended(scan.today)
    if near is None:
        return None
    far: Span | None = cycle.earliest(near.first + DAY) if shift > 0 else cycle.ended(near.first)
    if far:
        far.weak = ""
    return far


@rule(r"(?P<r>R)(?P<c>[WC])(?![Oi]T?[XCy])")
def _relative_day(scan: Scan, got: Group) -> Value:
    """Read "last Tuesday", "next June", "this Christmas"."""
    (shift, word), item, today = got["r"], got.item("c"), scan.today
    if item is None or scan.is_verb(item):
        return None
    cycle = cal.weekday_cycle(item.value) if item.letter == "W" else item.value
    if not isinstance(cycle, Cycle) or cycle.weak in ("quarter",) and cycle.kind == "half":
        return None
    here = cal.index(cycle.unit, today)
    span: Span | None
    if cycle.unit == "week" and word in ("this", "previous", "next", "current"):
        span = cycle.span(here + shift)
    elif shift == 0:
        span = cycle.latest(today)
        if span is None or span.after <= today:
            span = cycle.span(here)
    elif shift > 0:
        span = cycle.earliest(today + DAY)
    else:
        span = cycle.ended(today)
        # In November, "last September" is a year before "in September".
        if span and cycle.kind == "month" and word == "last":
            if today - span.first < timedelta(days=92) and span.first.year == today.year:
                span = cycle.ended(span.first)
    if span:
        span.weak, span.confidence = "", 0.9
    return span


def _rolling(scan: Scan, shift: int, unit: str, count: int) -> Span:
    today = scan.today
    if unit in ("quarter", "decade", "century", "weekend"):
        near = cal.period(unit, today, -1 if shift < 0 else 1)
        far = cal.period(unit, today, shift * count)
        first, last = (far, near) if shift < 0 else (near, far)
        return Span(first.start, last.end, "rolling", 0.8)
    if shift < 0:
        return Span(cal.add(today, unit, -count), today + DAY, "rolling", 0.8)
    tomorrow = today + DAY
    return Span(tomorrow, cal.add(tomorrow, unit, count), "rolling", 0.8)


@rule(r"(?:(?P<r>R)(?P<n>[nvNy]|Av|An|n[-|t]n)|(?P<n2>[nN])(?P<r2>R))(?P<u>U)(?!O)")
def _rolling_units(scan: Scan, got: Group) -> Value:
    """Read "the past two weeks", "last 10 days", "the 5 upcoming years"."""
    shift = (got["r"] or got["r2"])[0]
    numbers = got.all("n") or got.all("n2")
    if shift == 0:
        if got["r2"]:
            return None
        shift = -1
    return _rolling(scan, shift, got["u"], numbers[-1].value)


@rule(r"(?P<r>R)(?P<u>U)(?P<b>B)(?!U)")
def _rolling_and_a_half(scan: Scan, got: Group) -> Value:
    """Read "the past year and a half"."""
    half = got.item("b")
    if half is None or got["r"][0] >= 0:
        return None
    if scan.language.lexicon.get(scan.words[half.first], ("", None))[0] != "&":
        return None  # "last year half of them"
    one = Item("n", 1, half.first, half.last)
    return Span(_shift(scan.today, [one, *got.all()[1:]], -1), scan.today + DAY, "rolling", 0.8)


@rule(
    r"(?<=[Ti])(?P<r>R)A?(?P<n>[nNvy])(?P<h>u)(?!O)|(?:A?(?P<a>[nNvyA])|A?B)(?P<h2>u)(?P<b>B)?g"
    r"|(?<=T)(?P<r2>R)(?P<h3>u)(?!O)"
)
def _hours(scan: Scan, got: Group) -> Value:
    """Read "the past 48 hours", "20 minutes ago", "half an hour ago" as whole days."""
    if got["r"] or got["r2"]:
        minutes = (got["h"] or got["h3"] or 0) * (got["n"] or 1)
        if (got["r"] or got["r2"])[0] >= 0 or minutes == 0:
            return None
        first = (scan.now - timedelta(minutes=minutes)).date()
        return Span(first, scan.today + DAY, "rolling", 0.8)
    is_half = got["a"] is None or got.item("b") is not None
    minutes = got["h2"] * ((got["a"] or 0) + 0.5 * is_half)
    day = (scan.now - timedelta(minutes=minutes)).date()
    return Span(day, day + DAY, "day", 0.9)


@rule(r"(?<=i)T(?P<r>R)(?P<u>U)(?![OW])")
def _over_the_past(scan: Scan, got: Group) -> Value:
    """Read "over the past year" as the year up to now."""
    word = scan.words[scan.items[got.match.start() - 1].first]
    if got["r"][1] not in ("last", "past") or word not in scan.language.spanning:
        return None
    if got["u"] not in ("week", "month", "year", "fortnight"):
        return None
    return _rolling(scan, -1, got["u"], 1)


@rule(r"R(?P<u>U)b(?P<x>[XC])")
def _last_before(scan: Scan, got: Group) -> Value:
    """Read "last weekend before April 10"."""
    day = scan.closed(got["x"])
    if day is None:
        return None
    span = cal.period(got["u"], day.first)
    return span if span.after <= day.first else cal.period(got["u"], day.first, -1)


@rule(r"(?:r|(?P<r>R))(?P<u>U)(?!O)(?=(?P<y>y)?)")
def _relative_unit(scan: Scan, got: Group) -> Value:
    """Read "last week", "this month"; "past weeks" is a few weeks."""
    unit, item, year = got["u"], got.item("u"), got.item("y")
    assert item is not None
    is_of_year = year is not None and not scan.counted(year) and unit in ("quarter", "half")
    if is_of_year and got["r"] and got["r"][1] in ("last", "previous"):
        return None  # "the last quarter 2020" is left to _nth_of
    plural = not scan.language.plurals.isdisjoint(scan.words[item.first : item.last])
    if got["r"] is None or (got["r"][1] in ("past", "last") and plural):
        return _rolling(scan, -1, unit, 3) if plural else None
    shift, word = got["r"]
    if plural and word == "coming" and unit != "weekend":
        return _rolling(scan, 1, unit, 3)
    if unit == "day" and word not in ("this", "past"):
        return None
    span = cal.period(unit, scan.today, shift)
    if unit == "weekend" and word in ("past", "last"):
        while span.after <= scan.today - 7 * DAY:
            span = Span(span.first + 7 * DAY, span.after + 7 * DAY, "weekend")
    return span


@rule(r"(?:(?<=O)[Tm]?(?P<u>U)|(?<=[Eh])i?[Tm]?(?P<u2>U))(?!OT?[CX])")
def _unit_as_whole(scan: Scan, got: Group) -> Value:
    """Read the month in "the end of the month"; alone it is not a date."""
    unit = got["u"] or got["u2"]
    span = cal.period(unit, scan.today)
    span.weak = "container"
    return span


@rule(r"h(?P<x>X)")
def _whole_unit(scan: Scan, got: Group) -> Value:
    span: Span = got["x"]
    if span.weak == "container" and span.kind in ("week", "month", "year", "weekend"):
        span.weak = ""
    return span


@rule(r"m(?P<u>U)(?![zO])|(?<=i)[Tm](?P<w>U)(?!O)")
def _my_week(scan: Scan, got: Group) -> Value:
    """Read "my week", "over the weekend"."""
    unit, item = got["u"] or got["w"], got.all()[-1]
    mine = got.all()[0].letter == "m"
    plural = not scan.language.plurals.isdisjoint(scan.words[item.first : item.last])
    if unit != "weekend" and not (mine and unit in ("week", "month", "year")):
        return None
    if not mine and not scan.letters[: got.match.start()].endswith("i"):
        return None
    if plural or scan.continued(item):
        return None
    span = cal.period(unit, scan.today)
    return span if span.first <= scan.today else cal.period(unit, scan.today, -1)


def _shift(day: date, parts: list[Item], sign: int) -> date:
    """Shift a day by "1 month 21 days", "two and a half weeks"."""
    count, unit, half, before = 0, "day", False, ""
    for item in parts:
        if item.letter in "nNyA":
            count = item.value
        elif item.letter == "B":
            half = True
            count -= before == "A"  # "a half year"
        elif item.letter == "U":
            unit = item.value
            day = cal.add(day, unit, sign * count)
            count = 0
        before = item.letter
    if half and unit in cal.MONTHS and cal.MONTHS[unit] > 1:
        return cal.add_months(day, sign * cal.MONTHS[unit] // 2)
    halves = 15 if unit == "month" else (cal.LENGTHS.get(unit, 7) + 1) // 2
    return day + sign * halves * DAY if half else day


def _either(parts: list[Item]) -> tuple[list[Item], list[Item]] | None:
    """Return the larger and the smaller of "two or three weeks", "a day or two"."""
    counts = [item for item in parts if item.letter in "nNyA"]
    units = [item for item in parts if item.letter == "U"]
    if len(units) > 1 or not any(item.letter in "-|t" for item in parts):
        return None
    return [counts[-1], *units], [counts[-2], *units]


def _coarse(parts: list[Item]) -> bool:
    return any(item.letter == "U" and item.value not in ("day", "week") for item in parts)


@rule(rf"(?P<l>{AMOUNT})gi?(?:(?P<w>W)|(?P<x>X))|(?:(?P<w2>W)|(?P<x2>X)),?(?P<l2>{AMOUNT})g")
def _day_and_ago(scan: Scan, got: Group) -> Value:
    """Read "a week ago Tuesday", "Tuesday two weeks ago", "on this day a year ago"."""
    parts, weekday = got.all("l") or got.all("l2"), got.item("w") or got.item("w2")
    units = {item.value for item in parts if item.letter == "U"}
    day: Span | None = got["x"] or got["x2"]
    if weekday is not None:
        day = cal.weekday_cycle(weekday.value).latest(scan.today) if units == {"week"} else None
    if day is None or day.kind != "day" or day.start is None:
        return None
    if abs(day.start - scan.today) > (7 if weekday else 2) * DAY:  # "yesterday", "today"
        return None
    start = _shift(day.start, parts, -1)
    return Span(start, start + DAY, "day", 0.9, hours=day.hours)


@rule(rf"(?<!UO)(?P<m>[<>i])?(?P<l>{AMOUNT})g")
def _ago(scan: Scan, got: Group) -> Value:
    """Read "three weeks ago", "more than two years ago"."""
    parts = got.all("l")
    units = [item.value for item in parts if item.letter == "U"]
    count = next((item.value for item in parts if item.letter in "nNyA"), 1)
    bound = got.item("m")
    if bound is not None and (bound.letter != "i" or bound.value == "over"):
        either = _either(parts)
        day = _shift(scan.today, either[0] if either else parts, -1)
        if bound.letter == "<":
            return Span(day, scan.today + DAY, "range", 0.7)
        return Span(None, day + DAY if bound.value == "least" else day, "open", 0.7)
    if bound is not None:
        return None
    if units == ["weekend"]:
        return cal.period("weekend", _last_weekend(scan), 1 - count)
    if units == ["quarter"]:
        return cal.period("quarter", scan.today, -count)
    if either := _either(parts):
        far, near = (_shift(scan.today, one, -1) for one in either)
        return Span(far, near + DAY, "range", 0.7) if far < near else None
    day = _shift(scan.today, parts, -1)
    coarse = _coarse(parts) and len(units) == 1
    kind = f"{units[0]} ago" if coarse and units[0] in ("month", "year", "decade") else "day"
    return Span(day, day + DAY, kind, 0.7 if coarse else 0.95)


def _last_weekend(scan: Scan) -> date:
    return cal.period("weekend", scan.today, -1).first


@rule(r"A?v(?P<u>U)O?g")
def _few_ago(scan: Scan, got: Group) -> Value:
    """Read "a few months ago": three months ago, or the caller's few, to one month ago."""
    unit, today, few = got["u"], scan.today, scan.few
    if unit == "month":
        return Span(today - few * 30 * DAY, today - 30 * DAY, "fuzzy", 0.6)
    if unit == "day":
        return Span(today - few * DAY, today - (few - 1) * DAY, "fuzzy", 0.6)
    return Span(cal.add(today, unit, -few), cal.add(today, unit, -1), "fuzzy", 0.6)


@rule(r"(?P<n>[nA])(?P<p>P)g")
def _nights_ago(scan: Scan, got: Group) -> Value:
    """Read "two nights ago"."""
    span = cal.period("day", scan.today, -got["n"])
    span.hours = _hours_of(got.item("p"))
    return span


@rule(r"(?P<n>[nA])(?P<c>[WC])g")
def _cycles_ago(scan: Scan, got: Group) -> Value:
    """Read "two Thursdays ago", "three summers ago"."""
    cycle = cal.weekday_cycle(got["c"]) if isinstance(got["c"], int) else got["c"]
    span: Span | None = cycle.ended(scan.today)
    for _ in range(min(got["n"], 200) - 1):
        span = span and cycle.ended(span.first)
    if span:
        span.weak = ""
    return span


@rule(rf"(?P<i>i)(?P<l>{AMOUNT})L?|(?P<l2>{AMOUNT})l")
def _ahead(scan: Scan, got: Group) -> Value:
    """Read "in two weeks", "three days from now"."""
    if got["i"] and got["i"] != "in":
        return None
    parts = got.all("l") or got.all("l2")
    if scan.letters[got.match.end() :][:1] in tuple("OabFgE") and got["i"]:
        return None
    spot = scan.spots[got.all()[-1].last - 1][1] + 1
    if scan.text[spot : spot + 1].isupper():  # "in Seven Years War"
        return None
    lasted = any(word in scan.language.past for word in scan.words)  # may be a duration
    if got["i"] and not lasted and any(word in scan.language.general for word in scan.words):
        return None  # "how much can it eat in a day"
    if either := _either(parts):
        far, near = (_shift(scan.today, one, 1) for one in either)
        return Span(near, far + DAY, "range", 0.4 if lasted else 0.7) if near < far else None
    day = _shift(scan.today, parts, 1)
    kind = f"{parts[-1].value} ahead" if _coarse(parts) else "day"
    return Span(day, day + DAY, kind, 0.4 if lasted else 0.7)


@rule(rf"IT?(?P<l>{AMOUNT})(?P<s>[Oab])T?(?P<x>[XC])")
def _near(scan: Scan, got: Group) -> Value:
    """Read "within a week of May 3", "within two days after Christmas"."""
    day, side = scan.closed(got["x"]), got.match["s"]
    if day is None:
        return None
    before, after = _shift(day.first, got.all("l"), -1), _shift(day.after, got.all("l"), 1)
    return Span(
        day.after if side == "a" else before, day.first if side == "b" else after, "range", 0.8
    )


@rule(rf"IT?(?:(?P<r>R)|A)?(?P<l>{AMOUNT})(?:FX)?|I(?P<x>X)")
def _within(scan: Scan, got: Group) -> Value:
    """Read "within two weeks", "within the last month"."""
    if got["x"]:
        span: Span = got["x"]
        return span
    parts = got.all("l")
    if got["r"] and got["r"][0] < 0:
        return Span(_shift(scan.today, parts, -1), scan.today + DAY, "rolling", 0.8)
    return Span(scan.today, _shift(scan.today, parts, 1), "rolling", 0.8)


@rule(
    r"(?P<x>[XCy])[,O]?(?:(?P<w>w)|F)[TFi]*(?P<a>[CWno])(?P<s>[-t&])[TFi]*(?P<b>[CWno])"
    r"(?!c|[-/]?[MU])"
)
def _range_in_span(scan: Scan, got: Group) -> Value:
    """Read "last week between Friday and Sunday", "November between 19 and 20"."""
    value, a, b = got["x"], got.item("a"), got.item("b")
    if a is None or b is None or scan.counted(b):
        return None
    if got.match["s"] == "&" and got.item("w") is None:
        return None
    if isinstance(value, int):
        value = cal.period("year", date(value, 1, 1))
    whole = scan.closed(value)
    return whole and _between(whole, a, b)


def _between(whole: Span, a: Item, b: Item) -> Span | None:
    """Return a range with both ends in one span."""
    ends: list[Span] = []
    for item in (a, b):
        if item.letter == "W" and whole.kind == "week":
            day = cal.period("day", cal.monday(whole.first), item.value)
            if ends and day.first < ends[0].first:
                day = cal.period("day", day.first, 7)
            ends.append(day)
            continue
        cycle = item.value
        if item.letter == "W":
            return None
        if item.letter in "no":
            if whole.kind != "month":
                return None
            cycle = cal.day_of_month(item.value)
        end = _smaller_within(cycle, whole)
        if end is None:
            return None
        ends.append(end)
    first, last = ends
    return Span(first.start, last.end, "range", 0.9) if first.first < last.after else None


def _smaller_within(cycle: Cycle, whole: Span) -> Span | None:
    """Return the first occurrence of a cycle in a span of a larger unit."""
    sizes = cal.SIZES
    if cycle.kind not in sizes or whole.kind not in sizes:
        return None
    is_smaller = sizes.index(cycle.kind) < sizes.index(whole.kind)
    return cycle.within(whole) if is_smaller else None


@rule(r"(?P<c>C)(?P<x>X)(?<!tX)|(?P<c2>C)[iO,]T?(?P<x2>X)|(?P<x3>X)iT?(?P<c3>C)")
def _cycle_in_span(scan: Scan, got: Group) -> Value:
    """Read "June last year", "MLK day of last year", "Thanksgiving 3 months ago"."""
    cycle, whole = got["c"] or got["c2"] or got["c3"], got["x"] or got["x2"] or got["x3"]
    if got["x3"] and (whole.kind != "year" or cycle.kind == "day"):
        return None
    if whole.start is None or whole.end is None:
        return None
    if " a" in whole.kind:
        if whole.kind.startswith("year"):
            span = cycle.within(cal.period("year", whole.first))
        else:
            near = [cycle.latest(whole.first), cycle.earliest(whole.first)]
            spans = [span for span in near if span]
            span = min(spans, key=lambda s: abs(s.first - whole.first)) if spans else None
    else:
        span = _smaller_within(cycle, whole)
    if span:
        span.weak, span.confidence = "", 0.95
    result: Span | None = span
    return result


@rule(r"(?<![oR])(?P<d>[no])U?[Oi]?T?(?P<x>X)")
def _day_in_month(scan: Scan, got: Group) -> Value:
    """Read "the 20th of next month"."""
    whole, number, item = got["x"], got["d"], got.item("d")
    unit = [i.value for i in got.all() if i.letter == "U"]
    if whole.kind != "month" or unit not in ([], ["day"]) or not 0 < number < 32 or item is None:
        return None
    if "O" not in got.match[0] and "i" not in got.match[0] and item.letter == "n":
        return None
    return cal.day_of_month(number).within(whole)


# Parts of larger spans -----------------------------------------------------------------------


@rule(
    r"(?P<h>C)(?:O?T?)(?P<w>U)(?:(?P<y>y)|(?P<x>X))?|(?P<w2>U)OT?(?P<h2>[CX])|(?P<w3>U)OT?(?P<d>o)(?![A-Zz])"
)
def _week_of(scan: Scan, got: Group) -> Value:
    """Read "halloween weekend", "the week of April 10th", "the month of May"."""
    unit = got["w"] or got["w2"] or got["w3"]
    if got["d"] and unit == "month":
        return None
    value = got["h"] or got["h2"] or cal.day_of_month(got["d"])
    if got["h"] and (
        unit not in ("weekend", "week") or value.kind != "day" or value.weak != "holiday"
    ):
        return None
    day = value.span(got["y"]) if got["y"] else scan.closed(value)
    if got["x"]:
        day = value.within(got["x"]) if got["x"].kind == "year" else None
    if day is None or unit not in ("week", "weekend", "month", "day", "quarter", "year"):
        return None
    if unit == "weekend" and day.kind == "day":
        weekday = day.first.weekday()
        near = cal.period("weekend", day.first, -1 if weekday < 2 else 0)
        if day.word == "holiday":  # a long weekend
            near.start, near.end = min(near.first, day.first), max(near.after, day.after)
        return near
    if day.kind not in cal.SIZES:
        return None
    if cal.SIZES.index(unit) < cal.SIZES.index(day.kind):
        return None
    return cal.period(unit, day.first)


@rule(r"#i?T?(?P<x>[XC])")
def _week_beginning(scan: Scan, got: Group) -> Value:
    day = scan.closed(got["x"])
    return day and Span(day.first, day.first + 7 * DAY, "week", 0.95)


@rule(
    r"(?:(?P<o>[oA])?(?P<r>R)|(?P<f>o))(?P<n>[nv])?(?P<u>[UW])(?P<p>P)?[,.]?"
    r"(?:(?P<x>X)|[Oi]T?(?P<c>[XCy])|(?P<y>y))"
)
def _nth_of(scan: Scan, got: Group) -> Value:
    """Read "the last week of July", "the first Monday of next month", "the last quarter 2020"."""
    value, unit = got["x"] or got["c"] or got["y"], got["u"]
    if got["y"] and scan.counted(got.all()[-1]):
        return None
    whole = scan.closed(cal.period("year", date(value, 1, 1)) if isinstance(value, int) else value)
    if whole is None or whole.kind == "day":
        return None
    number = got["f"] or 1
    if got["r"]:
        if got["r"][1] not in ("last", "previous"):
            return None
        number = -(got["o"] or 1)
    if isinstance(unit, int):
        if whole.kind not in ("month", "year", "season", "quarter") or got["n"]:
            return None
        if number > 0:
            start = whole.first + timedelta(days=(unit - whole.first.weekday()) % 7)
        else:
            last = whole.after - DAY
            start = last - timedelta(days=(last.weekday() - unit) % 7)
        start += 7 * DAY * (number - 1 if number > 0 else number + 1)
        if not whole.first <= start < whole.after:
            return None
        return Span(start, start + DAY, "day", hours=_hours_of(got.item("p")))
    if whole.kind in cal.SIZES and cal.SIZES.index(unit) >= cal.SIZES.index(whole.kind):
        return None
    item = got.item("u")
    assert item is not None
    plural = not scan.language.plurals.isdisjoint(scan.words[item.first : item.last])
    count = got["n"] or (3 if plural and got.match["o"] is None else 1)  # "the first days of May"
    if number < 0 and count > 1:
        number = -count
    return cal.nth(whole, unit, number, count)


@rule(r"(?P<w>W)(?:[OFi,]?T?)(?P<x>X)|(?P<x2>X)[,.]?i?T?(?P<w2>W)")
def _weekday_in_week(scan: Scan, got: Group) -> Value:
    """Read "tuesday of next week", "last week on Friday"."""
    whole = got["x"] or got["x2"]
    if whole.kind not in ("week", "weekend") or whole.start is None:
        return None
    weekday = got["w"] if got["x"] else got["w2"]
    return cal.period("day", cal.monday(whole.first), weekday)


@rule(r"(?P<o>o)?(?P<w>W)(?P<s>[ab])T?(?P<c>[XC])")
def _nth_after(scan: Scan, got: Group) -> Value:
    """Read "the third Tuesday after Christmas", "the Monday before Easter"."""
    day = scan.closed(got["c"])
    cycle = cal.weekday_cycle(got["w"])
    near = day and (cycle.earliest(day.after) if got.match["s"] == "a" else cycle.ended(day.first))
    if not near:
        return None
    step = 7 * DAY * ((got["o"] or 1) - 1)
    start = near.first + (step if got.match["s"] == "a" else -step)
    return Span(start, start + DAY, "day")


@rule(r"e|(?P<e>E)[-Oi]*T?(?P<p>[XC]|W|U)")
def _part(scan: Scan, got: Group) -> Value:
    """Read "early next week", "the end of 2012", "mid-May", "eom"."""
    if got["e"] is None:
        name, unit = got.all()[0].value
        return cal.part(cal.period(unit, scan.today), name, scan.today)
    name, value, item = got["e"], got["p"], got.item("p")
    if item is not None and item.letter == "W":
        value = cal.weekday_cycle(value)
    if item is not None and item.letter == "U":
        return None
    if isinstance(value, Cycle) and value.weak == "container":
        return None  # "late in the fourth quarter" of a match
    whole = scan.closed(value)
    if whole and whole.kind == "day" and name == "begin" and "O" not in got.match[0]:
        return None  # "beginning January 7th"
    return whole and cal.part(whole, name, scan.today)


@rule(r"(?P<e>E)[Oi]?T?(?P<y>y)|(?P<e2>E)-(?P<y2>y)")
def _part_of_year(scan: Scan, got: Group) -> Value:
    whole = cal.period("year", date(got["y"] or got["y2"], 1, 1))
    return cal.part(whole, got["e"] or got["e2"], scan.today)


@rule(
    rf"T?(?:(?P<l>{AMOUNT})|(?P<u>U)|(?<![WDRXC])(?P<p>P)(?=[ab]))"
    r"(?:(?P<s>[abFs])T?(?P<x>[XCy])|(?P<s2>[abF])(?P<w>W)(?!T?[no]))"
)
def _offset(scan: Scan, got: Group) -> Value:
    """Read "three days before May 5", "the day after Christmas", "two weeks from tomorrow"."""
    value, side = got["x"], got.match["s"] or got.match["s2"]
    if value is None:
        value = cal.weekday_cycle(got["w"])
    elif isinstance(value, int):
        value = cal.period("year", date(value, 1, 1))
    day = scan.closed(value)
    if side == "F" and isinstance(value, Cycle) and scan.language.past.isdisjoint(scan.words):
        day = value.earliest(scan.today + DAY)  # "3 days from Tuesday" is ahead
    sign = -1 if side == "b" else 1
    unit = "day" if got.item("p") else got["u"]
    if day is None or (unit and side in "Fs") or got.item("p") and day.kind != "day":
        return None
    if unit and unit != "day":
        if unit == "weekend":
            return cal.period("weekend", day.first if sign > 0 else day.first - 6 * DAY)
        start = day.after if sign > 0 else cal.add(day.first, unit, -1)
        return Span(start, cal.add(start, unit, 1), "range", 0.8)
    if unit:
        start = day.after if sign > 0 else day.first - DAY
    else:
        base = day.after - DAY if sign > 0 and day.kind != "year" else day.first
        base = base if day.kind == "day" else day.edge or day.first
        start = _shift(base, got.all("l"), sign)
        if got.match[0].startswith("Tn") and side in "ab":  # "the three days before Christmas"
            if sign < 0:
                return Span(start, base, "range", 0.9)
            return Span(day.after, max(start + DAY, day.after), "range", 0.9)
    return Span(start, start + DAY, "day", 0.9, hours=_hours_of(got.item("p")))


@rule(r"(?P<r>R)(?P<n>[nv])(?P<u>U)")
def _rolling_rest(scan: Scan, got: Group) -> Value:
    """Read "the last two weeks of work", left over by the rules for parts."""
    shift = got["r"][0]
    return _rolling(scan, shift, got["u"], got["n"]) if shift else None


# Leftovers become weak: they need a word before them ---------------------------------------------


@rule(r"(?P<o>o)(?P<w>W)(?![Oi])")
def _nth_weekday(scan: Scan, got: Group) -> Value:
    """Read "the third Tuesday": of this month."""
    start = cal.nth_weekday(scan.today.year, scan.today.month, got["w"], got["o"])
    return Span(start, start + DAY, "day", 0.6, "weekday") if 0 < got["o"] < 6 else None


@rule(r"(?P<a>W)(?P<p>iT?P|P|,?i?c)?")
def _weekday(scan: Scan, got: Group) -> Value:
    item = got.all()[0]
    word = scan.words[item.first]
    if word in scan.language.plurals:
        return None
    cycle = cal.weekday_cycle(item.value)
    cycle.word = word
    before, language = scan.word(item.first - 1), scan.language
    usual = before in language.articles and before not in language.bare["weekday"]
    if got.item("p") and not usual and before not in language.every:
        cycle.weak = ""
    if got.item("p"):
        cycle.hours = _hours_of(got.all()[-1])
    return cycle


@rule(r"y")
def _year(scan: Scan, got: Group) -> Value:
    span = cal.period("year", date(got.all()[0].value, 1, 1))
    span.weak, span.confidence = "year", 0.9
    return span


@rule(
    r"(?:(?<=[sabktF])|(?<=PO))T(?P<o>o)(?!\w)"
    r"|(?P<i>[isabktFR])T?(?P<d>o)(?!(?!iT?P|i?c)[A-Za-y])|i(?P<n>n)(?=$|[.;]+$)"
)
def _bare_day(scan: Scan, got: Group) -> Value:
    """Read "on the 18th", and "on 18" at the end."""
    items = got.all()
    number = items[-1]
    first = items[0]
    if got["n"] is not None and (got["n"] < 10 or first.value != "on"):
        return None
    word, language = scan.words[number.first], scan.language
    if word in language.articles and word != language.date_article:
        return None  # "los 20"
    is_written = any(word[0].isdigit() for word in scan.words[number.first : number.last])
    if not 0 < number.value < 32 or not is_written:
        return None
    if first.letter == "i" and first.value not in ("on", "for"):
        return None
    if scan.continued(number) or first.letter == "R":
        return None
    cycle = cal.day_of_month(number.value)
    kept = items[:-1]
    return [*kept, Item("C", cycle, number.first, number.last)]


@rule(r"(?P<x>[XC])[,-]?i?T?(?P<p>[Pc])|(?P<p2>[Pc])[.,]?[Oi]?T?(?P<x2>[XC])")
def _hours_of_day(scan: Scan, got: Group) -> Value:
    """Read "yesterday evening", "May 3 at 5 pm", "the morning of the 3rd", "5 pm on Tuesday"."""
    value: Span | Cycle = got["x"] or got["x2"]
    hours = _hours_of(got.item("p") or got.item("p2"))
    if value.kind != "day" or hours == cal.WHOLE_DAY or value.hours != cal.WHOLE_DAY:
        return None
    weak, language = value.weak, scan.language
    if got["x2"]:
        before = scan.word(got.all()[0].first - 1)
        if weak and (before in language.every or _is_habit(scan)):
            return None
        weak = ""
    return replace(value, hours=hours, weak=weak)


@rule(r"(?P<x>[XC]),?(?P<s>[abs])T?(?P<c>[cP])(?![XCWDO])")
def _since_hour_of_day(scan: Scan, got: Group) -> Value:
    """Read "yesterday after 5 pm", "on Tuesday before noon"."""
    value: Span | Cycle = got["x"]
    opens, closes = hours = _hours_of(got.item("c"))
    if value.kind != "day" or hours == cal.WHOLE_DAY or value.hours != cal.WHOLE_DAY:
        return None
    side, last = got.match["s"], cal.WHOLE_DAY[1]
    if side == "b":
        return replace(value, hours=(0, opens)) if opens else None
    return replace(value, hours=(opens if side == "s" else min(_moment(hours), closes), last))


def _is_habit(scan: Scan) -> bool:
    """Whether a question is about what is usual, not about what was."""
    language = scan.language
    if not language.past.isdisjoint(scan.words):
        return False
    return not language.habitual.isdisjoint(scan.words)


@rule(r"(?P<i>[it])?T?(?P<p>P)(?![XCWDO])")
def _at_noon(scan: Scan, got: Group) -> Value:
    """Read "at noon" in a question about the past: the last noon that has begun."""
    part, item = got["p"], got.item("p")
    if part not in (NOON, LUNCH) or item is None or scan.language.past.isdisjoint(scan.words):
        return None
    if got["i"] == "until" or scan.continued(item):
        return None
    if got["i"] is None and item.last - item.first < 2:
        return None
    if not (scan.language.habitual - {"does", "do"}).isdisjoint(scan.words):
        return None
    minute = scan.now.hour * 60 + scan.now.minute
    span = cal.period("day", scan.today, 0 if minute >= part[0] else -1)
    span.hours, span.confidence = part, 0.7
    return span


# Ranges and open sides ----------------------------------------------------------------------------


@rule(r"(?:l|(?P<w>w)?[FT]*J)(?P<s>[t&-])[TFi]*(?P<b>[XC])")
def _from_now(scan: Scan, got: Group) -> Value:
    """Read "between now and Friday": ahead, unless the question is put into the past."""
    b, value = got.item("b"), got["b"]
    if b is None or got.match["s"] != "t" and not got.item("w"):
        return None
    if value.weak == "container" or scan.counted(b) or isinstance(value, Span) and not value.end:
        return None
    past = not scan.language.past.isdisjoint(scan.words)
    day: Span | None = value if isinstance(value, Span) else None
    if isinstance(value, Cycle):
        day = value.latest(scan.today) if past else value.earliest(scan.today + DAY)
    if day is None or day.start is None:
        return None
    if (day.edge or day.first) > scan.today:
        return Span(scan.today, day.edge or day.end, "range", 0.9, hours=(0, day.hours[1]))
    return Span(
        day.edge or day.start, scan.today + DAY, "range", 0.9, hours=(day.hours[0], 24 * 60)
    )


@rule(r"(?<![XCno])(?P<t>t)[TF]*(?P<j>J)")
def _until_now(scan: Scan, got: Group) -> Value:
    """Read "till current date" as it reads "until today"."""
    if got["j"] != "date" or got["t"] != "until":
        return None
    return Span(None, scan.today + DAY, "open", 0.9)


@rule(
    r"(?:(?P<w>w)|(?P<f>[Fs]))?[TFi]*(?P<a>[XCno])[,.P]?(?:(?P<j>j)|(?P<s>[t&-])-?[TFi]*(?P<b>[XCJno]))"
)
def _range(scan: Scan, got: Group) -> Value:
    """Read "from March to June", "between May 3 and May 7", "2014-2018"."""
    a, b, mark = got.item("a"), got.item("b"), got.item("s")
    assert a is not None
    if mark and mark.letter == "&" and not got.item("w"):
        return None
    if got.item("j"):
        start = scan.closed(a.value)
        return start and Span(start.start, scan.today + DAY, "range", 0.9)
    assert b is not None
    if b.letter == "J":
        start = scan.closed(a.value) if a.letter in "XC" else None
        return start and Span(start.start, scan.today + DAY, "range", 0.9)
    first, last = a.value, b.value
    if a.letter in "no":
        if not (got.item("w") or got.item("f") or a.letter == "o"):
            return None
        if b.letter == "n" or b.letter != "o" and last.kind != "day":
            return None
        first = cal.day_of_month(a.value)
        if not 0 < a.value < 32:
            return None
    if b.letter in "no":
        if b.letter == "n" or first.kind != "day" or not 0 < b.value < 32:
            return None
        last = cal.day_of_month(b.value)
    if scan.counted(b) or (first.weak == "container" or last.weak == "container"):
        return None
    years = first.weak == "year" and last.weak == "year"
    if years and scan.word(got.all()[0].first - 1) in scan.language.things:
        return None
    if isinstance(first, Span):
        low: Span | None = first
        high = last.earliest(first.first) if isinstance(last, Cycle) else last
    elif isinstance(last, Span):
        high = last
        low = first.latest(last.after - DAY) if last.end else None
    else:
        low = first.latest(scan.today)
        high = low and last.earliest(low.first)
    if low is None or high is None or low.start is None or high.end is None:
        return None
    begins, ends = low.edge or low.start, high.edge or high.end
    if not begins < ends:
        return None
    hours = low.hours[0], _moment(high.hours)
    return Span(begins, ends, "range", min(low.confidence, high.confidence), hours=hours)


@rule(r"(?P<a>[XC])(?:(?:,[iT]{0,2}[XC])*(?:,?[&|])[iT]{0,2}|(?P<s>/|\.\.))(?P<b>[XC])")
def _several(scan: Scan, got: Group) -> Value:
    """Read "March and April", "on Monday or Tuesday", "2024-05-03/2024-05-07" from end to end."""
    a, b = got.item("a"), got.item("b")
    assert a is not None
    assert b is not None
    first, last, today = a.value, b.value, scan.today
    if got["s"] and not scan.tight(got.all()) or first.kind != last.kind:
        return None
    whole = Item(a.letter, first, a.first, b.last)
    if last.kind not in cal.SIZES or not scan.sound(whole) or last.weak and scan.continued(b):
        return None
    highs, lows = [scan.closed(last)], [scan.closed(first)]
    if isinstance(last, Cycle) and isinstance(first, Span):
        highs.append(last.earliest(first.first))
    if isinstance(first, Cycle):
        lows += [first.latest(high.after - DAY) for high in highs if high]
    hulls = [
        (max(low, high, key=_end), min(low, high, key=_start))
        for low, high in product(lows, highs)
        if low and high and (high.first <= today or today < low.first)
    ]
    if not hulls:
        return None
    high, low = min(hulls, key=lambda hull: _end(hull[0]) - _start(hull[1]))
    hours = low.hours[0], high.hours[1]
    return Span(low.start, high.end, "range", min(low.confidence, high.confidence), hours=hours)


def _start(span: Span) -> date:
    return span.first


def _end(span: Span) -> date:
    return span.after


def _moment(hours: cal.Hours) -> int:
    """Return the end of a part of a day; for a clock time, the time itself."""
    return hours[0] if hours[1] - hours[0] == 60 else hours[1]


@rule(rf"(?P<l>{AMOUNT})(?:G|E(?=i?X|C))i?F?T?(?P<x>[XC])")
def _for_starting(scan: Scan, got: Group) -> Value:
    """Read "2 weeks starting May 20th"."""
    day = scan.closed(got["x"])
    return day and Span(day.first, _shift(day.first, got.all("l"), 1), "range", 0.9)


@rule(
    r"(?P<op>[sabtkG])[-TFi]*(?P<p>[XC])(?P<q>[pd])?|F?T?(?P<p2>[XC]),?(?P<q2>[pd])|(?P<e>E)(?P<p3>[XC])|F(?P<p4>[XC])(?P<on>i)(?=$|[;,.])"
)
def _open(scan: Scan, got: Group) -> Value:
    """Read "since March", "before 2020", "until Friday", "2012 or later"."""
    item = got.item("p") or got.item("p2") or got.item("p3") or got.item("p4")
    mark = got.item("op") or got.item("q2") or got.item("e")
    op = mark.letter if mark else "s"  # "from 2019 on"
    if got["on"] is not None and got["on"] != "on":
        return None
    if item is None or (op == "t" and got["op"] != "until"):
        return None
    if op == "E" and got["e"] != "begin":
        return None
    value = item.value
    if value.weak == "container" or (op in "abk" and value.weak == "season"):
        return None
    if value.weak in ("holiday", "dashed", "decade", "ages") and not scan.sound(item):
        return None
    if value.weak == "year" and not 1500 <= value.first.year <= scan.today.year + 20:
        return None
    if value.weak in ("year", "numeric", "month") and scan.counted(item):
        return None
    if (
        value.weak == "year"
        and scan.word(item.first - 1) in scan.language.articles
        and scan.continued(item)
    ):  # "by the 2010 drought"
        return None
    if value.weak == "month" and op == "k" and value.word in scan.language.names:
        return None
    whole = scan.closed(value)
    if whole is None:
        return None
    start, after = whole.edge or whole.start, whole.edge or whole.end
    confidence = min(whole.confidence, 0.9)
    opens, closes = whole.hours[0], _moment(whole.hours)
    if op in "sGpE":
        return Span(whole.start, None, "open", confidence, hours=(opens, closes))
    if op == "a" and closes < cal.WHOLE_DAY[1]:
        return Span(whole.start, None, "open", confidence, hours=(closes, closes))
    if op == "a":
        return Span(after, None, "open", confidence)
    if op == "b" and opens:
        return Span(None, whole.end, "open", confidence, hours=(0, opens))
    if op == "b":
        return Span(None, start, "open", confidence)
    return Span(None, whole.end, "open", confidence, hours=(0, closes))


@rule(r"(?P<a>X)[&,z]{0,2}(?P<b>X)")
def _both_sides(scan: Scan, got: Group) -> Value:
    """Read "after March 3 and before June 1"."""
    low, high = sorted((got["a"], got["b"]), key=lambda span: span.start is None)
    if not low.kind == high.kind == "open" or low.end or high.start:
        return None
    hours = low.hours[0], high.hours[1]
    confidence = min(low.confidence, high.confidence)
    return Span(low.start, high.end, "range", confidence, hours=hours)


@rule(r"@|f")
def _fuzzy(scan: Scan, got: Group) -> Value:
    """Read "recently", "the other day", "year to date"."""
    (item,), today = got.all(), scan.today
    if item.letter == "@":
        start = cal.period(item.value, today).first
        return Span(start, max(today, start + DAY), "range", 0.9)
    if item.value == "recent":
        if scan.word(item.first - 1) in scan.language.not_recent:
            return None
        return Span(today - timedelta(days=scan.recent_days), today + DAY, "fuzzy", 0.6)
    days = {"other day": 7, "other week": 21, "other month": 60}[item.value]
    return Span(today - days * DAY, today, "fuzzy", 0.6)


def read(scan: Scan) -> tuple[Span, Item] | None:
    """Return the best span of a question and its item."""
    if not re.search("[MWUuSHDynoeRfj@X*EqPJ]", scan.letters):
        return None
    reduce(scan)
    best: tuple[int, Span, Item] | None = None
    for item in scan.items:
        if item.letter not in "XC" or not scan.sound(item):
            continue
        span = scan.closed(item.value) if item.letter == "C" else item.value
        if span is None or (span.start is None and span.end is None):
            continue
        rank = 0 if item.value.weak or span.kind == "fuzzy" else 1 + (span.confidence == 1)
        if best is None or rank > best[0]:
            best = rank, span, item
    return best and (best[1], best[2])
