"""Dates in questions. It is Friday, 20 November 2026, noon, unless a test says otherwise."""

from __future__ import annotations

import ast
import json
from datetime import date, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgrecall import temporal
from pgrecall.temporal import TemporalConstraint, extract_temporal_constraint
from pgrecall.temporal.calendar import easter, orthodox_easter
from pgrecall.temporal.languages import language

NOW = datetime(2026, 11, 20, 12)
BERLIN = ZoneInfo("Europe/Berlin")
CASES = Path(__file__).resolve().parents[3] / "shared" / "data" / "temporal_dev.json"


def days(text: str, now: datetime = NOW) -> tuple[str | None, str | None] | None:
    """Return the days a question names, hours rounded to them."""
    found = extract_temporal_constraint(text, now)
    if found is None:
        return None
    last = found.end - timedelta(microseconds=1) if found.end else None
    end = str(last.date() + timedelta(days=1)) if last else None
    return str(found.start.date()) if found.start else None, end


def only(text: str, **options: object) -> TemporalConstraint:
    found = extract_temporal_constraint(text, NOW, **options)  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize(
    "written",
    [
        "What did Ana say on 2023-05-07?",
        "What did Ana say on 2023-05-07T09:30:00Z?",
        "What did Ana say on 7 May 2023?",
        "What did Ana say on 7th May, 2023?",
        "What did Ana say on the 7th of May 2023?",
        "What did Ana say on May 7, 2023?",
        "What did Ana say on May 7th 2023?",
        "What did Ana say on Sunday, May 7, 2023?",
        "What did Ana say on 05/07/2023?",
        "What did Ana say on 5/7/23?",
        "What did Ana say on 7.5.2023?",
        "What did Ana say on 7-May-2023?",
        "What did Ana say on 7. May 2023?",
        "What did Ana say on 2023. may 7.?",
        "What did Ana say on 20230507?",
        "What did Ana say on the seventh of May twenty twenty-three?",
    ],
)
def test_a_full_date_is_read_in_every_usual_notation(written: str) -> None:
    assert days(written) == ("2023-05-07", "2023-05-08")


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("Which plants did I buy in May 2023?", "2023-05-01", "2023-06-01"),
        ("Which plants did I buy in Q3 2019?", "2019-07-01", "2019-10-01"),
        ("Which plants did I buy in the second quarter of 2021?", "2021-04-01", "2021-07-01"),
        ("Which plants did I buy in H2 2021?", "2021-07-01", "2022-01-01"),
        ("Which plants did I buy in 2023?", "2023-01-01", "2024-01-01"),
        ("Which songs of the 90s do I like?", "1990-01-01", "2000-01-01"),
        ("Which songs of the 1970s do I like?", "1970-01-01", "1980-01-01"),
        ("Which songs of the seventies do I like?", "1970-01-01", "1980-01-01"),
        ("Which kings reigned in the 18th century?", "1700-01-01", "1800-01-01"),
        ("What did I note in week 12 of 2024?", "2024-03-18", "2024-03-25"),
        ("What did I plant in nineteen ninety-eight?", "1998-01-01", "1999-01-01"),
        ("What did I plant in the summer of '98?", "1998-06-01", "1998-09-01"),
    ],
)
def test_a_month_quarter_year_or_decade_is_its_days(text: str, start: str, end: str) -> None:
    assert days(text) == (start, end)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("Where was Leo from 3 to 7 May?", "2026-05-03", "2026-05-08"),
        ("Where was Leo from the 3rd to the 7th of May?", "2026-05-03", "2026-05-08"),
        ("Where was Leo on May 3-7, 2022?", "2022-05-03", "2022-05-08"),
        ("Where was Leo between March and June 2023?", "2023-03-01", "2023-07-01"),
        ("Where was Leo between November and February 2023?", "2022-11-01", "2023-03-01"),
        ("Where was Leo from Dec 20 to Jan 5?", "2025-12-20", "2026-01-06"),
        ("Where was Leo from 2014-2018?", "2014-01-01", "2019-01-01"),
        ("Where was Leo from Monday to Wednesday?", "2026-11-16", "2026-11-19"),
        ("Where was Leo from Tuesday to Thursday of last week?", "2026-11-10", "2026-11-13"),
        ("Where was Leo between 2 March and now?", "2026-03-02", "2026-11-21"),
        ("Where was Leo from the middle of 2019 to the end of 2020?", "2019-07-02", "2021-01-01"),
        ("Where was Leo for 2 weeks starting May 20th?", "2026-05-20", "2026-06-03"),
    ],
)
def test_a_range_inherits_what_its_ends_leave_out(text: str, start: str, end: str) -> None:
    assert days(text) == (start, end)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("What have I said since March?", "2026-03-01", None),
        ("What have I said since last Tuesday?", "2026-11-17", None),
        ("Where did I work before 2020?", None, "2020-01-01"),
        ("Where did I work after February 2018?", "2018-03-01", None),
        ("Where did I work until the end of 2019?", None, "2020-01-01"),
        ("Where did I work from 2019 onwards?", "2019-01-01", None),
        ("Where did I work in 2018 or earlier?", None, "2019-01-01"),
        ("What was done by 3 June 2024?", None, "2024-06-04"),
        ("What did we hear before the end of last year?", None, "2026-01-01"),
    ],
)
def test_since_before_after_and_until_leave_a_side_open(
    text: str, start: str | None, end: str | None
) -> None:
    assert days(text) == (start, end)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("What did I eat today?", "2026-11-20", "2026-11-21"),
        ("What did I eat yesterday evening?", "2026-11-19", "2026-11-20"),
        ("What did I eat last night?", "2026-11-19", "2026-11-20"),
        ("What did I eat the day before yesterday?", "2026-11-18", "2026-11-19"),
        ("What did I eat last Tuesday?", "2026-11-17", "2026-11-18"),
        ("What did I eat on Tuesday?", "2026-11-17", "2026-11-18"),
        ("What did I eat last week?", "2026-11-09", "2026-11-16"),
        ("What did I eat the week before last?", "2026-11-02", "2026-11-09"),
        ("What did I eat on Monday of last week?", "2026-11-09", "2026-11-10"),
        ("What did I eat this month?", "2026-11-01", "2026-12-01"),
        ("What did I eat two weekends ago?", "2026-11-07", "2026-11-09"),
        ("What did I eat over the weekend?", "2026-11-14", "2026-11-16"),
        ("What did I eat two Thursdays ago?", "2026-11-12", "2026-11-13"),
        ("What did I eat three days before May 5?", "2026-05-02", "2026-05-03"),
        ("What did I eat the day after Christmas?", "2025-12-26", "2025-12-27"),
        ("What did I eat on the Monday after Easter?", "2026-04-06", "2026-04-07"),
        ("What did I eat 10 days ago?", "2026-11-10", "2026-11-11"),
        ("What did I eat 1 month and 3 days ago?", "2026-10-17", "2026-10-18"),
        ("What did I eat on the 5th?", "2026-11-05", "2026-11-06"),
        ("What did I eat on the 28th?", "2026-10-28", "2026-10-29"),
        ("What did I eat on the first Monday of last month?", "2026-10-05", "2026-10-06"),
        ("What did I eat the Christmas before last?", "2024-12-25", "2024-12-26"),
        ("What did I eat two summers ago?", "2025-06-01", "2025-09-01"),
        ("What did I eat in winter 2019/20?", "2019-12-01", "2020-03-01"),
        ("What did I eat the last weekend before April 10?", "2026-04-04", "2026-04-06"),
        ("What did I eat the night before Christmas?", "2025-12-24", "2025-12-25"),
        ("What did I eat two and a half weeks ago?", "2026-11-02", "2026-11-03"),
        ("What did I eat on the last day of October?", "2026-10-31", "2026-11-01"),
        ("What will I eat tomorrow?", "2026-11-21", "2026-11-22"),
        ("What will I eat next week?", "2026-11-23", "2026-11-30"),
        ("What will I eat in two weeks?", "2026-12-04", "2026-12-05"),
    ],
)
def test_relative_words_are_counted_from_the_reference_time(
    text: str, start: str, end: str
) -> None:
    assert days(text) == (start, end)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("Who called in May?", "2026-05-01", "2026-06-01"),
        ("Who called in December?", "2025-12-01", "2026-01-01"),
        ("Who called in Q4?", "2026-10-01", "2027-01-01"),
        ("Who called on 3 December?", "2025-12-03", "2025-12-04"),
        ("Who called on Friday?", "2026-11-20", "2026-11-21"),
        ("Who called at Christmas?", "2025-12-25", "2025-12-26"),
        ("Who called on Feb 29th?", "2024-02-29", "2024-03-01"),
    ],
)
def test_a_bare_name_means_the_last_one_that_has_begun(text: str, start: str, end: str) -> None:
    assert days(text) == (start, end)


@pytest.mark.parametrize(
    ("text", "start", "end", "kind"),
    [
        ("Plans of early next week", "2026-11-23", "2026-11-26", "part"),
        ("Plans of mid-May", "2026-05-11", "2026-05-21", "part"),
        ("Plans of late last month", "2026-10-16", "2026-11-01", "part"),
        ("Plans at the end of 2012", "2012-09-01", "2013-01-01", "part"),
        ("Plans in the first half of 2022", "2022-01-01", "2022-07-01", "part"),
        ("Plans of last summer", "2026-06-01", "2026-09-01", "season"),
        ("Plans over the summer", "2026-06-01", "2026-09-01", "season"),
        ("Plans of last winter", "2025-12-01", "2026-03-01", "season"),
        ("Plans of the past two weeks", "2026-11-06", "2026-11-21", "rolling"),
        ("Plans of the past two weeks of work", "2026-11-06", "2026-11-21", "rolling"),
        ("Plans of the last 3 months", "2026-08-20", "2026-11-21", "rolling"),
        ("Plans over the past year", "2025-11-20", "2026-11-21", "rolling"),
        ("Plans in the last 48 hours", "2026-11-18", "2026-11-21", "rolling"),
        ("Plans for the next 3 days", "2026-11-21", "2026-11-24", "rolling"),
        ("What did I plan recently?", "2026-10-21", "2026-11-21", "fuzzy"),
        ("What did I plan a few months ago?", "2026-08-22", "2026-10-21", "fuzzy"),
        ("What did I plan the other day?", "2026-11-13", "2026-11-20", "fuzzy"),
        ("What did I plan this time last year?", "2025-11-05", "2025-12-06", "fuzzy"),
        ("What did I plan three months ago?", "2026-08-20", "2026-08-21", "month ago"),
    ],
)
def test_vague_words_keep_to_the_documented_windows(
    text: str, start: str, end: str, kind: str
) -> None:
    assert days(text) == (start, end)
    assert only(text).kind == kind


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("What did I cook at Thanksgiving?", "2025-11-27"),
        ("What did I cook on New Year's Eve?", "2025-12-31"),
        ("What did I cook on Mother's Day 2024?", "2024-05-12"),
        ("What did I cook on Good Friday?", "2026-04-03"),
        ("What did I cook at orthodox Easter 2018?", "2018-04-08"),
        ("What did I cook on MLK day of last year?", "2025-01-20"),
        ("What did I cook on the 4th of July?", "2026-07-04"),
        ("What did I cook on Labor Day weekend last year?", "2025-08-30"),
    ],
)
def test_holidays_are_known(text: str, start: str) -> None:
    found = days(text)

    assert found is not None
    assert found[0] == start


@pytest.mark.parametrize(
    ("year", "western", "eastern"),
    [(2000, (4, 23), (4, 30)), (2019, (4, 21), (4, 28)), (2024, (3, 31), (5, 5))],
)
def test_easter_is_computed(year: int, western: tuple[int, int], eastern: tuple[int, int]) -> None:
    assert (easter(year), orthodox_easter(year)) == (date(year, *western), date(year, *eastern))


PLAIN = """
May I borrow your notes?
It may rain and it may not, what then?
This may take longer than I thought
Who led the march for cleaner rivers?
We 'll see what comes of it
Give me a second, which runner came second?
The server listens on port 9077
What changed between v1.2.3 and v1.2.4?
Does the library run on Python 3.11 or 3.12?
Where does the sun rise?
What does June like to drink?
What did April say about Jan?
Who is Wednesday Addams?
Who sings Ruby Tuesday?
Call me on 555-0134 or (030) 901-8200
Our budget is $2000, not 2000 dollars
We have 2019 users in room 2020
What is on page 12 of 30?
Is ticket E-47821 closed?
What is in Q4_results_v2.xlsx?
Read section 7.3 at 10.2.14.20:8080
Is support there 24/7?
How many days does the trip take?
Book a table for two nights
My daughter is a 3-year-old
What do I do every Friday?
What does she do on Mondays?
What does she give at Christmas?
What is left in the middle of the room?
What comes first in the second half of the match?
Which floor, the 2nd or the 3rd?
Who joined more recently?
How long ago was that?
What did we do before we met?
What was the score in the fourth quarter?
Who fumbled late in the fourth quarter?
How much can a bear eat in a day?
Does the phone really last 28 hours?
Who is the boy in the picture?
What is in the BOM of the pump?
""".strip().splitlines()


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_question_has_no_window(text: str) -> None:
    assert extract_temporal_constraint(text, NOW) is None


def test_a_fact_states_the_dates_with_inclusive_days() -> None:
    facts = [
        only(f"What did I do {said}?").fact()
        for said in ("last Tuesday", "last week", "since March", "before 2020")
    ]

    assert facts == [
        "last Tuesday = 2026-11-17",
        "last week = 2026-11-09 to 2026-11-15",
        "since March = from 2026-03-01 on",
        "before 2020 = up to 2019-12-31",
    ]


def test_the_fact_of_hours_states_them_with_an_exclusive_end() -> None:
    assert only("Who called at 5 pm on Tuesday?").fact() == (
        "5 pm on Tuesday = 2026-11-17 17:00 to 2026-11-17 18:00"
    )


@pytest.mark.parametrize(
    ("text", "opens", "closes"),
    [
        ("Who called this morning?", 4, 12),
        ("Who called at noon today?", 12, 13),
        ("Who called yesterday afternoon?", 12, 18),
        ("Who called last night?", 18, 0),
        ("Who called between 9 and 11 am on Monday?", 9, 11),
    ],
)
def test_a_part_of_a_day_is_its_hours(text: str, opens: int, closes: int) -> None:
    found = only(text, timezone=BERLIN)

    assert found.kind == "hours"
    assert found.start is not None
    assert found.end is not None
    assert (found.start.hour, found.end.hour) == (opens, closes)


def test_noon_alone_is_the_last_one_that_has_begun_and_only_asked_of_the_past() -> None:
    early = datetime(2026, 11, 20, 9)

    assert days("Who called at noon? What did she say?", early) == ("2026-11-19", "2026-11-20")
    assert days("Who usually calls at noon?", early) is None


def test_the_matched_words_are_as_written() -> None:
    assert only("And  between\tMay 3 and MAY 7 – where?").matched == "between\tMay 3 and MAY 7"


def test_a_full_date_is_surer_than_a_bare_month_and_that_than_a_fuzzy_word() -> None:
    sure = [only(text).confidence for text in ("on 7 May 2023", "in May", "what came lately")]

    assert sure == sorted(sure, reverse=True)
    assert len(set(sure)) == 3
    assert all(0 <= one <= 1 for one in sure)


def test_a_dated_question_prefers_the_date_to_a_vague_word() -> None:
    assert days("What did she recently finish, as said on 3 June 2023?") == (
        "2023-06-03",
        "2023-06-04",
    )


def test_bounds_are_local_midnights_on_both_sides_of_a_clock_change() -> None:
    found = only("What did I do in October 2026?", timezone=BERLIN)

    assert found.start is not None
    assert found.end is not None
    assert found.start.utcoffset() == timedelta(hours=2)
    assert found.end.utcoffset() == timedelta(hours=1)
    assert (found.start.hour, found.end.hour) == (0, 0)


def test_a_day_without_midnight_begins_when_its_clocks_do() -> None:
    found = only("What did I do on 4 November 2018?", timezone=ZoneInfo("America/Sao_Paulo"))

    assert found.start == datetime(2018, 11, 4, 3, tzinfo=timezone.utc)


def test_an_aware_reference_time_is_moved_to_the_time_zone() -> None:
    late = datetime(2026, 11, 20, 23, 30, tzinfo=timezone.utc)

    found = extract_temporal_constraint("today", late, timezone=BERLIN)

    assert found is not None
    assert found.start == datetime(2026, 11, 21, tzinfo=BERLIN)


def test_a_naive_reference_time_counts_as_utc() -> None:
    assert only("today").start == datetime(2026, 11, 20, tzinfo=timezone.utc)


def test_day_first_turns_ambiguous_numbers_around_and_no_others() -> None:
    starts = [
        only(f"on {written}", day_first=True).start for written in ("05/06/2023", "05/13/2023")
    ]

    assert starts == [
        datetime(2023, 6, 5, tzinfo=timezone.utc),
        datetime(2023, 5, 13, tzinfo=timezone.utc),
    ]


def test_the_seasons_of_the_south_are_half_a_year_off() -> None:
    assert only("last summer", southern=True).start == datetime(2025, 12, 1, tzinfo=timezone.utc)


def test_a_holiday_falls_where_the_country_has_it() -> None:
    british = only("on Mother's Day 2024", country="GB").start
    canadian = only("at Thanksgiving 2024", country="CA").start

    assert british == datetime(2024, 3, 10, tzinfo=timezone.utc)
    assert canadian == datetime(2024, 10, 14, tzinfo=timezone.utc)


def test_recently_is_as_long_as_the_caller_says() -> None:
    assert only("lately", recent_days=7).start == datetime(2026, 11, 13, tzinfo=timezone.utc)


TALKED = datetime(2026, 11, 18, 17, 5, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "text",
    [
        "What has changed since we last talked?",
        "What has changed since our last conversation?",
        "Anything new since last time?",
        "What came in after our last session?",
    ],
)
def test_an_anchor_opens_the_window_at_its_instant(text: str) -> None:
    found = only(text, anchors={"last_session": TALKED})

    assert (found.start, found.end, found.kind) == (TALKED, None, "anchor")


def test_an_anchor_of_the_caller_goes_by_the_words_of_its_clause() -> None:
    asked: list[str] = []

    def resolve(name: str) -> datetime | None:
        asked.append(name)
        return TALKED if name == "i joined" else None

    found = only("Who left before I joined the team?", anchors=resolve)

    assert (found.start, found.end, found.matched) == (None, TALKED, "before I joined")
    assert asked == ["i joined the team", "i joined the", "i joined"]


@pytest.mark.parametrize("anchors", [None, {}, {"other": TALKED}])
def test_an_unknown_anchor_gives_no_window(anchors: dict[str, datetime] | None) -> None:
    text = "What has changed since we last talked?"

    assert extract_temporal_constraint(text, NOW, anchors=anchors) is None


def test_an_unknown_language_is_an_error() -> None:
    with pytest.raises(ValueError, match='has no language "tlh"'):
        extract_temporal_constraint("today", NOW, language="tlh")


def test_a_long_text_is_read_at_both_ends() -> None:
    padding = " lorem ipsum" * 1000

    assert days("yesterday" + padding) == ("2026-11-19", "2026-11-20")
    assert days(padding + " yesterday") == ("2026-11-19", "2026-11-20")
    assert days(padding + " yesterday" + padding) is None


WORDS = sorted({word for phrase in language("en").lexicon for word in phrase.split()})
NUMBERS = ["0", "1", "2", "7", "29", "31", "99", "100", "1999", "2023", "99999", "1st", "31st"]
MORE = ["first", "second", "twenty", "thousand", "hundred", "-", "/", ".", ",", ":", "'s", "?"]
SENTENCES = st.lists(
    st.one_of(st.sampled_from(WORDS), st.sampled_from(NUMBERS + MORE), st.text(max_size=4)),
    max_size=14,
)
ZONES = st.sampled_from([None, timezone.utc, BERLIN, ZoneInfo("America/Sao_Paulo")])


@settings(max_examples=600, deadline=None)
@given(SENTENCES, st.sampled_from(["", " "]), st.datetimes(), ZONES)
def test_no_input_raises_and_windows_are_not_empty(
    words: list[str], space: str, now: datetime, zone: tzinfo | None
) -> None:
    found = extract_temporal_constraint(
        space.join(words), now, timezone=zone, anchors=lambda _: TALKED
    )

    assert found is None or found.start is not None or found.end is not None
    if found and found.start and found.end:
        assert found.start < found.end


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300), st.datetimes(timezones=st.timezones()))
def test_no_text_at_all_raises(text: str, now: datetime) -> None:
    extract_temporal_constraint(text, now)


@settings(max_examples=200, deadline=None)
@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)))
def test_every_date_is_read_back(day: date) -> None:
    for written in (f"{day:%Y-%m-%d}", f"{day.day} {day:%B %Y}", f"{day:%B} {day.day}, {day.year}"):
        found = days(f"What happened on {written}?")

        assert found == (day.isoformat(), (day + timedelta(days=1)).isoformat())


def test_the_development_cases_stay_above_the_bars() -> None:
    if not CASES.exists():
        pytest.skip(f"no cases at {CASES}")
    counts = {"core": [0, 0], "plain": [0, 0]}
    for case in json.loads(CASES.read_text()):
        tags = case["tags"]
        expected = (case["expected_start"], case["expected_end"])
        found = days(case["text"], datetime.fromisoformat(case["reference_time"]))
        if expected == (None, None):
            counts["plain"][0] += found is not None
            counts["plain"][1] += 1
        elif not any(tag.startswith("conv:") for tag in tags) and not (
            {"holiday", "spelled-year", "odd", "future"} & set(tags)
        ):
            counts["core"][0] += found == expected
            counts["core"][1] += 1

    assert counts["core"][0] >= 0.95 * counts["core"][1]
    assert counts["plain"][0] <= 0.01 * counts["plain"][1]


def test_the_package_imports_nothing_of_the_rest() -> None:
    folder = Path(temporal.__file__).parent

    for file in folder.rglob("*.py"):
        depth = len(file.relative_to(folder).parts)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                name = node.module or ""
                assert node.level <= depth, f"{file.name}: from {'.' * node.level}{name}"
                assert node.level or name.split(".")[0] != "pgrecall", file.name
            if isinstance(node, ast.Import):
                assert all(alias.name.split(".")[0] != "pgrecall" for alias in node.names)
