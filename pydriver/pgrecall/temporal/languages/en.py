"""English."""

from __future__ import annotations

from collections.abc import Callable

from . import (
    AFTERNOON,
    EARLY,
    EVENING,
    LATE,
    LATE_AFTERNOON,
    LUNCH,
    MORNING,
    NIGHT,
    NOON,
    Language,
    Lexicon,
    words,
)

_MONTHS = (
    "january|jan, february|feb, march|mar, april|apr, may, june|jun, july|jul, august|aug, "
    "september|sep|sept, october|oct, november|nov, december|dec"
)
_WEEKDAYS = (
    "monday|mon, tuesday|tue|tues, wednesday|wed|weds, thursday|thu|thur|thurs, friday|fri, "
    "saturday|sat, sunday|sun"
)
_HOLIDAYS: dict[str, object] = {
    "christmas, christmases, christmas day, xmas, xmas day": (12, 25),
    "christmas eve, xmas eve": (12, 24),
    "boxing day": (12, 26),
    "new year(/s), new year(/s) day": (1, 1),
    "new year(/s) eve, nye": (12, 31),
    "epiphany": (1, 6),
    "mlk day, mlk, martin luther king(/s) day, martin luther king jr day, civil rights day": (
        1,
        0,
        3,
    ),
    "groundhog day": (2, 2),
    "valentine(/s) day, valentine(/s)": (2, 14),
    "president(/s) day": (2, 0, 3),
    "st patrick(/s) day, st . patrick(/s) day, saint patrick(/s) day": (3, 17),
    "international women(/s) day, women(/s) day": (3, 8),
    "april fool(/s) day, april fool(/s)": (4, 1),
    "earth day": (4, 22),
    "anzac day": (4, 25),
    "may day": (5, 1),
    "cinco de mayo": (5, 5),
    "mother(/s) day": {"": (5, 6, 2), "GB": -21, "IE": -21},
    "memorial day": (5, 0, -1),
    "juneteenth": (6, 19),
    "father(/s) day": {"": (6, 6, 3), "AU": (9, 6, 1), "NZ": (9, 6, 1)},
    "canada day": (7, 1),
    "independence day": (7, 4),
    "bastille day": (7, 14),
    "labor day, labour day": {"": (9, 0, 1), "GB": (5, 0, 1), "IE": (5, 0, 1), "NZ": (10, 0, 4)},
    "columbus day, indigenous people(/s) day": (10, 0, 2),
    "halloween, hallowe'en": (10, 31),
    "all saint(/s) day": (11, 1),
    "all soul(/s) day": (11, 2),
    "guy fawkes night, guy fawkes day, bonfire night": (11, 5),
    "veteran(/s) day, remembrance day, armistice day": (11, 11),
    "thanksgiving, thanksgiving day": {"": (11, 3, 4), "CA": (10, 0, 2)},
    "black friday": (11, 3, 4, 1),
    "cyber monday": (11, 3, 4, 4),
    "australia day": (1, 26),
    "mardi gras, shrove tuesday, pancake day": -47,
    "ash wednesday": -46,
    "palm sunday": -7,
    "maundy thursday": -3,
    "good friday": -2,
    "easter, easter sunday, easter day": 0,
    "easter monday": 1,
    "ascension day": 39,
    "pentecost, whit sunday": 49,
    "whit monday": 50,
    "orthodox easter": "orthodox",
}


_LEXICON = Lexicon()
_LEXICON.count("M", 1, _MONTHS)
_LEXICON.count("W", 0, _WEEKDAYS)
_DAYS = "monday, tuesday, wednesday, thursday, friday, saturday, sunday"
_LEXICON.count("W", 0, _DAYS.replace("day", "days"))
_PLURALS = _LEXICON.units(
    "day; days",
    "week, wk; weeks, wks",
    "fortnight; fortnights",
    "weekend, week - end; weekends, week - ends",
    "month, mo, mth; months, mos, mths",
    "quarter, qtr; quarters, qtrs",
    "; ",
    "year, yr; years, yrs",
    "decade; decades",
    "century; centuries",
)
_LEXICON.holidays(_HOLIDAYS)


def _fill(put: Callable[[str, object, str], None]) -> None:
    put("u", 60, "hour, hours, hr, hrs")
    put("u", 1, "minute, minutes, min, mins")
    put("u", 0, "seconds, sec, secs")
    for number, names in enumerate(
        ("spring", "summer, summers", "autumn, autumns, fall", "winter, winters")
    ):
        put("S", number, names)

    put("D", 0, "today")
    put("DP", (0, NIGHT), "tonight, tonite")
    put("DP", (-2, NIGHT), "night before last")
    put("DP", (-2, EVENING), "evening before last")
    put("D", -1, "yesterday, yday")
    put("D", 1, "tomorrow, tmrw, tmr, tmw, tomorow, tommorow")
    put("D", -2, "day before yesterday")
    put("D", 2, "day after tomorrow, day after tmrw, day after tmr")
    put("J", None, "now, right now, the present, present day")
    put("J", "date", "(/the )(current/present) (date/day/time/moment)")
    put("J", "date", "today's date, this moment, this very (day/moment)")
    put("j", None, "to date, to now, until now, till now, up to now, so far")
    for unit in ("year", "month", "quarter", "week"):
        put("@", unit, f"{unit} to date, {unit[0]}td")
    put("f", "recent", "recently, lately, as of late, these days")
    put("f", "other day", "the other day, the other night")
    put("f", "other week", "the other week")
    put("f", "other month", "the other month")
    put("*", None, "this time, around this time, about this time")
    put("*", None, "(/the/around the/about the) same time")
    put("x", None, "same, the same, the corresponding")

    put("R", (-1, "last"), "last, final")
    put("R", (-1, "past"), "past, this past, this last, the most recent, most recent")
    put("R", (-1, "previous"), "previous, prior, preceding")
    put("R", (0, "this"), "this, this whole, this entire")
    put("R", (0, "current"), "current, this current")
    put("R", (1, "next"), "next, following")
    put("R", (1, "coming"), "coming, upcoming, this coming, this upcoming, this next")
    put("r", None, "recent")
    put("V", 2, "after next, after the next")
    put("V", -2, "before last, before the last")
    put("h", None, "all, whole, entire")

    put("P", None, "midnight, am, pm")
    put("P", MORNING, "morning, mornings, late morning")
    put("P", EARLY, "early morning, early in the morning, dawn")
    put("P", NOON, "noon, midday, noontime")
    put("P", LUNCH, "lunchtime, lunch time")
    put("P", AFTERNOON, "afternoon, afternoons, early afternoon")
    put("P", LATE_AFTERNOON, "late afternoon")
    put("P", EVENING, "evening, evenings, early evening")
    put("P", NIGHT, "night")
    put("Pg", (NIGHT, None), "night(/s) ago")
    put("P", LATE, "late evening, late night, late at night")
    put("E", "early", "early, early on, early part of, earliest part of")
    put("E", "earlier", "earlier")
    put("E", "mid", "mid, middle, middle part of, mid part of")
    put("E", "late", "late, latter part of, late part of, later part of")
    put("E", "later", "later")
    put("E", "begin", "beginning, start, the very beginning")
    put("E", "end", "end, ending, close, tail end, very end")
    put("E", "half1", "first half, 1 st half")
    put("E", "half2", "second half, 2 nd half, last half, latter half")
    put("E", "rest", "rest, rest of, remainder, remainder of")
    for abbreviation, value in {
        "eod": ("end", "day"),
        "eow": ("end", "week"),
        "eom": ("end", "month"),
        "eoq": ("end", "quarter"),
        "eoy": ("end", "year"),
    }.items():
        put("e", value, abbreviation)

    put("g", None, "ago, back, before now, before today, previously")
    put("l", None, "hence, from now, from this day, from right now")
    put("L", None, "time, time from now")
    put("n", 2, "couple, couple of, pair of")
    put("n", 12, "dozen")
    put("v", 3, "few, several, some")
    put("A", 1, "a, an")
    put("B", None, "and a half, and half, half a, half an, half")
    put("T", None, "the")
    put("m", None, "my, our, your")
    put("O", None, "of")
    put("i", "in", "in")
    put("i", "on", "on, dated, as of")
    put("i", "for", "for")
    put("i", "at", "at, during, throughout, around, about, near, approximately, circa")
    put("i", "over", "over")
    put("i", "at", "(just/slightly/a little/a bit) (over/under/more than/less than)")
    put(">", None, "more than, longer than, upwards of")
    put(">", "least", "at least, no less than, not less than")
    put("<", None, "less than, under, at most, no more than, not more than, no longer than")
    put("I", None, "within, inside of")
    put("F", None, "from")
    put("t", "to", "to, through, thru, ~")
    put("t", "until", "until, till, til, 'til, up to, up until, up till, through to")
    put("w", None, "between")
    put("&", None, "and, &")
    put("|", None, "or")
    put("s", None, "since, ever since, as early as, not before, no earlier than, on or after")
    put("a", None, "after, later than, greater than, post, subsequent to")
    put("b", None, "before, prior to, ahead of, earlier than, pre")
    put("k", None, "by, no later than, as late as, not after, on or before")
    put(
        "G",
        None,
        "starting, beginning on, beginning from, commencing, begins, starts, onwards from",
    )
    put("p", None, "or later, or after, and later, and after, and onwards, and onward, onwards")
    put("p", None, "onward, or newer, and up, forward, on forward, and beyond, and since")
    put("d", None, "or earlier, or before, and earlier, and before, or older, and prior")
    put("Y", None, "calendar year, calendar years, cy, fy, fiscal, fiscal year, fiscal years")
    for unit in ("day", "week", "month", "quarter"):
        put("Y", unit, f"calendar {unit}, calendar {unit}s")
    put("Y", "week", "cw")
    put("#", "w/c", "week commencing, week beginning, week starting, w / c, wc")


_SMALL = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()


def _numbers(put: Callable[[str, object, str], None]) -> None:
    said = dict(enumerate(_SMALL, 1))
    for ten, word in enumerate(_TENS, 2):
        said[10 * ten] = word
        for unit, one in enumerate(_SMALL[:9], 1):
            said[10 * ten + unit] = f"{word} (- /){one}"
            put("o", 10 * ten + unit, f"{word} (- /){_ORDINALS[unit - 1]}")
        put("Z", (10 * ten, "ages"), f"{word[:-1]}ies")
    for number, word in enumerate(_ORDINALS, 1):
        put("o", number, word)
    put("o", 30, "thirtieth")
    put("Z", (0, "ages"), "noughties, aughts, two thousands")
    put("Z", (2010, ""), "twenty (- /)tens, two thousand (and /)tens")
    put("n", 0, "zero")
    for number, word in said.items():
        put("n", number, word)
        put("y", 2000 + number, f"two thousand (and /){word}")
        for century in range(15, 21):
            if number < 10:
                said_so = f"{said[century]} (- /)(o/oh/zero) (- /){word}"
            else:
                said_so = f"{said[century]} (- /){word}"
            put("y", century * 100 + number, said_so)
            put("y", century * 100 + number, f"{said[century]} hundred (and /){word}")
    for century in range(15, 20):
        put("y", century * 100, f"{said[century]} hundred")
        put("Z", (century * 100 + 10, ""), f"{said[century]} (- /)tens")
        for ten, word in enumerate(_TENS, 2):
            put("Z", (century * 100 + 10 * ten, ""), f"{said[century]} (- /){word[:-1]}ies")
    for number, word in enumerate(_SMALL[:9], 1):
        put("N", 100 * number, f"{word} hundred")
        put("y" if number < 3 else "N", 1000 * number, f"{word} thousand")


_fill(_LEXICON.put)
_numbers(_LEXICON.put)
_OPENERS = words("since before after until till by from during pre post prior")

LANGUAGE = Language(
    lexicon=_LEXICON,
    plurals=_PLURALS | words(_DAYS.replace("day,", "days ") + "s"),
    ordinal_suffixes=words("st nd rd th"),
    day_first=False,
    has_other_quarter=True,
    bare={
        "year": _OPENERS | words("in for around circa about throughout year through of"),
        "quarter": _OPENERS | words("in for of over at throughout"),
        "month": _OPENERS | words("in for of around throughout over through circa mid"),
        "weekday": _OPENERS | words("on for one this last next over past"),
        "holiday": _OPENERS | words("on at over for around of this last next in"),
        "season": _OPENERS | words("over in throughout through"),
        "season alone": words("since"),
        "numeric": _OPENERS | words("on dated for of in"),
        "dashed": words("on dated since until"),
        "dayofmonth": _OPENERS | words("on for"),
    },
    ambiguous=words("may march mar sat sun wed mon fall spring second"),
    names=words("april may june august jan march"),
    articles=words("the"),
    ages=words("old years"),
    toward=words("for by to with about from"),
    possessives=words("my your his her its our their 's"),
    every=words("every each any most many"),
    habitual=words("does do usually always typically often normally generally every each"),
    general=words("does do can could usually typically normally often average"),
    spanning=words("over within during throughout"),
    past=words("did was were had went"),
    after_modal=words("or be have not never ever so also well no"),
    not_recent=words("more most least how less so very"),
    things=words(
        "room rooms building port ports version number order ticket flight section chapter page "
        "pages line model apartment suite code id issue bug case column columns row cell table "
        "field sheet file folder novel movie film book album song game app called named level "
        "step channel error class figure unit bus train gate exit route extension zip pin windows "
        "office python java release build no grade lot item part version's seat"
    ),
    measures=words(
        "people users items rows tokens words lines bytes mb gb kb tb ms px pixels dollars euros "
        "pounds usd eur percent pct times miles mile km kilometers meters metres feet calories "
        "kcal steps points students employees customers context records documents files requests "
        "messages characters entries cases degrees hours hour minutes minute seconds watts volts "
        "rpm pages books units copies votes seats kg grams lbs liters litres questions"
    ),
    little=words(
        "a an the i we you he she it they me my our his her their your who what when where which "
        "why how did do does was were is are am be been have has had will would could can should "
        "and or but so if that this with in on at of for from to by about after before since "
        "until till between as than then there not no ever again together please s 'll'd "
        "going went happened said"
    ),
    clock=words("am pm a.m p.m o'clock oclock"),
    session=(
        r"(?:we|i|you)(?: (?:have|had|'ve))?(?: last| previously)? "
        r"(?:talked|spoke|chatted|met|discussed|conversed)(?: last)?"
        r"|(?:our|my|the) (?:last|previous) "
        r"(?:conversation|chat|session|talk|discussion|call|meeting|exchange)"
        r"|(?:the )?last time(?: (?:we|i) \w+)?|last session|last conversation"
    ),
    clause_openers=words("i we you he she they it my our the"),
)

__all__ = ["LANGUAGE"]
