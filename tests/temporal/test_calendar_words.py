"""Dates in languages of which only calendar words are known, asked on Friday, 20 November 2026."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from growth import MOST, grows_by
from pgrecall.temporal import extract_temporal_constraint, languages_of
from pgrecall.temporal.languages import KNOWN, general, language
from pgrecall.temporal.scan import Scan

NOW = datetime(2026, 11, 20, 12)
FILES = Path(__file__).parent / "cases"
CODES = tuple(code for code in general.codes() if code not in KNOWN)
SAMPLE = ("ru", "pl", "fi", "tr", "hi", "ar", "th", "zh", "ko", "my")
MAY, THIRD = ("2023-05-01", "2023-06-01"), ("2023-05-03", "2023-05-04")
YESTERDAY, LAST_WEEK = ("2026-11-19", "2026-11-20"), ("2026-11-09", "2026-11-16")
LAST_MONTH, LAST_YEAR = ("2026-10-01", "2026-11-01"), ("2025-01-01", "2026-01-01")
THREE_DAYS_AGO = ("2026-11-17", "2026-11-18")


def days(text: str, *codes: str) -> tuple[str | None, str | None] | None:
    """Return the days of the first language that reads them: those given, or as a recall does."""
    for code in codes or ("en", *languages_of(text)):
        found = extract_temporal_constraint(text, NOW, language=code)
        if found is not None:
            last = found.end - timedelta(microseconds=1) if found.end else None
            end = str(last.date() + timedelta(days=1)) if last else None
            return str(found.start.date()) if found.start else None, end
    return None


CASES = json.loads((FILES / "calendar_words.json").read_text(encoding="utf-8"))
WINDOWS = {
    "may": MAY,
    "third": THIRD,
    "yesterday": YESTERDAY,
    "last week": LAST_WEEK,
    "last month": LAST_MONTH,
    "last year": LAST_YEAR,
    "three days ago": THREE_DAYS_AGO,
}


@pytest.mark.parametrize("code", sorted(CASES))
def test_a_time_is_read_whether_the_language_is_known_or_not(code: str) -> None:
    missed = [
        (text, days(text), days(text, code))
        for name, texts in CASES[code].items()
        for text in texts
        if not days(text) == days(text, code) == WINDOWS[name]
    ]

    assert missed == []


@pytest.mark.parametrize(
    ("text", "code", "window"),
    [
        ("Что было в мае?", "ru", ("2026-05-01", "2026-06-01")),
        ("Co się działo w maju?", "pl", ("2026-05-01", "2026-06-01")),
        ("Mitä Anna teki toukokuussa?", "fi", ("2026-05-01", "2026-06-01")),
        ("Где Анна была в прошлый вторник?", "ru", ("2026-11-17", "2026-11-18")),
        ("Что было с мая по июнь 2023?", "ru", ("2023-05-01", "2023-07-01")),
        ("Что было между 3 и 7 мая 2023?", "ru", ("2023-05-03", "2023-05-08")),
        ("Co jsme dělali od 3. do 7. května 2023?", "cs", ("2023-05-03", "2023-05-08")),
        ("ماذا حدث في مايو من عام 2023؟", "ar", MAY),
        ("2004年到2014年发生了什么?", "zh", ("2004-01-01", "2015-01-01")),
        ("Co się działo w 2019 roku?", "pl", ("2019-01-01", "2020-01-01")),
        (
            "请告诉我安娜和她的朋友们在里斯本的新公司里从今年初一直到年底都做了些什么，特别是2023年5月？",
            "zh",
            MAY,
        ),
        ("Năm 2019 Ana đã làm gì?", "vi", ("2019-01-01", "2020-01-01")),
        ("แอนนาทำอะไรในเดือนพฤษภาคม 2566", "th", MAY),
        ("ماذا فعلت آنا في ٣ مايو ٢٠٢٣؟", "ar", THIRD),
        ("Mayıs 2023'te ne oldu?", "tr", MAY),
        ("Co se stalo 3. 5. 2023?", "cs", THIRD),
    ],
)
def test_further_forms_are_read(text: str, code: str, window: tuple[str, str]) -> None:
    assert days(text, code) == window


@pytest.mark.parametrize(
    "line", (FILES / "plain_calendar_words.txt").read_text("utf-8").split("\n")
)
def test_no_plain_question_has_a_window(line: str) -> None:
    code, _, text = line.partition(" ")

    assert days(text) is None
    assert not code or days(text, code) is None


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("¿Qué pasó con Abril y su perro?", None),
        ("What is Bihar known for?", None),  # tomorrow in Basque
        ("Où est cet homme ?", None),  # tomorrow in Estonian
        ("Which rover landed on Mars 2021?", None),
        ("The phone that came out 2021?", None),  # October in Galician
        ("Martin 2023", None),  # of March in Turkish
        ("Eurovision Junior 2023", None),
        ("listopad 2023", None),  # November in Czech and Polish, October in Croatian
        ("Co se stalo v listopadu 2023?", ("2023-11-01", "2023-12-01")),
        ("Vad gjorde Anna i maj 2023?", MAY),
        ("3 mars 2023", ("2023-03-03", "2023-03-04")),
    ],
)
def test_a_word_of_several_languages_is_read_only_beside_what_tells_the_meaning(
    text: str, window: tuple[str, str] | None
) -> None:
    assert days(text) == window


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Care este cea mai mare pădure?", "ro"),  # "mai" is also "more"
        ("Кто стоит среди гостей?", "ru"),
        ("Ai được giao thiết kế kế hoạch thứ hai?", "vi"),  # Monday, or the second
        ("Ποιος ήταν ο Πέρσι Σέλλεϋ;", "el"),  # "πέρσι" is last year
    ],
)
def test_a_known_language_does_not_make_a_date_of_a_word(text: str, code: str) -> None:
    assert days(text, code) is None


def test_a_language_is_told_by_the_words_that_name_a_time() -> None:
    said = {
        "Что было на прошлой неделе?": ["ru"],
        "Was hat Ana letzte Woche gemacht?": ["de"],
        "O que a Ana fez em maio de 2023?": ["pt"],
        "先週は何をした?": ["ja", "zh"],
        "Where does Ana live?": [],
    }

    assert {text: languages_of(text) for text in said} == said


def test_a_japanese_text_has_words_of_chinese() -> None:
    assert days("アナは去年どこにいましたか?") == LAST_YEAR


def test_a_long_text_tells_its_language_at_both_ends() -> None:
    middle = "Анна гуляет. " * 200

    assert languages_of(f"{middle}Что было вчера?") == ["ru"]
    assert languages_of(f"{middle}Что было вчера? {middle}") == []


@pytest.mark.parametrize("code", CODES)
def test_the_values_of_a_lexicon_fit_their_letters(code: str) -> None:
    for phrase, (letters, value) in language(code).lexicon.items():
        scan = Scan(phrase, NOW, language(code), True, False, "US", 30, 3)

        assert scan.items, phrase
        if len(letters) > 1:
            assert isinstance(value, tuple), phrase
            assert len(value) == len(letters), phrase


@pytest.mark.parametrize("code", CODES)
def test_every_month_has_a_name(code: str) -> None:
    months = {value for letters, value in language(code).lexicon.values() if letters == "M"}

    assert months == {*range(1, 13)}


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["ru", "cs", "tr", "vi", "zh", "ko"]), st.dates(date(1950, 1, 1)))
def test_every_date_is_read_back(code: str, day: date) -> None:
    months = {
        "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
        "cs": "ledna února března dubna května června července srpna září října listopadu prosince",
        "tr": "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",
    }
    if day.year > 2900:
        day = day.replace(year=2900, day=1)
    written = {
        "vi": "ngày {d} tháng {m} năm {y}",
        "zh": "{y}年{m}月{d}日",
        "ko": "{y}년 {m}월 {d}일",
    }
    name = months.get(code, "").split()[day.month - 1 :][:1]
    dot = "." if code == "cs" else ""
    long = written.get(code, f"{{d}}{dot} {''.join(name)} {{y}}")

    found = days(long.format(d=day.day, m=day.month, y=day.year), code)

    assert found == (day.isoformat(), (day + timedelta(days=1)).isoformat())


@pytest.mark.parametrize("code", ["ru", "zh", "my"])
@pytest.mark.parametrize("piece", ["1", "5月", "3 мая ", "в ", "мая", "昨天", "1.", "2020-01-"])
def test_texts_are_read_in_at_most_n_log_n(code: str, piece: str) -> None:
    def read(text: str) -> None:
        languages_of(text)
        extract_temporal_constraint(text, NOW, language=code)

    assert grows_by(read, piece) < MOST


WORDS = {
    code: sorted({word for phrase in language(code).lexicon for word in phrase.split()})
    for code in SAMPLE
}
MARKS = ["0", "1", "31", "99", "1999", "2566", "2023", "1.", "-", "/", ".", ",", ":", "'", "?", "в"]


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(st.data(), st.sampled_from(SAMPLE), st.sampled_from(["", " "]), st.datetimes())
def test_no_input_raises_and_windows_are_not_empty(
    data: st.DataObject, code: str, space: str, now: datetime
) -> None:
    word = st.one_of(st.sampled_from(WORDS[code]), st.sampled_from(MARKS), st.text(max_size=4))
    text = space.join(data.draw(st.lists(word, max_size=14)))

    for known in (code, *languages_of(text)):
        found = extract_temporal_constraint(text, now, language=known)

        assert found is None or found.start is not None or found.end is not None
        if found and found.start and found.end:
            assert found.start < found.end
