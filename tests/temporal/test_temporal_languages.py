"""Dates in questions in languages other than English, asked on Friday, 20 November 2026."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from growth import MOST, grows_by
from pgrecall.temporal import extract_temporal_constraint
from pgrecall.temporal.languages import KNOWN, general, language
from pgrecall.temporal.scan import Scan

NOW = datetime(2026, 11, 20, 12)
FILES = Path(__file__).parent / "cases"
OTHERS = tuple(code for code in KNOWN if code != "en")
MONTHS = {
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
    "diciembre",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
    "dicembre",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro "
    "dezembro",
}
WRITTEN = {"de": "{}. {} {}", "es": "{} de {} de {}", "pt": "{} de {} de {}"}
IN_MONTH = {"de": "im", "es": "en", "fr": "en", "it": "a", "nl": "in", "pt": "em"}


def days(text: str, code: str) -> tuple[str | None, str | None] | None:
    """Return the days a question names, hours rounded to them."""
    found = extract_temporal_constraint(text, NOW, language=code)
    if found is None:
        return None
    last = found.end - timedelta(microseconds=1) if found.end else None
    end = str(last.date() + timedelta(days=1)) if last else None
    return str(found.start.date()) if found.start else None, end


@pytest.mark.parametrize("code", OTHERS)
def test_every_case_is_read_exactly(code: str) -> None:
    cases = json.loads((FILES / f"cases_{code}.json").read_text(encoding="utf-8"))

    missed = [
        (case["text"], days(case["text"], code))
        for case in cases
        if days(case["text"], code) != (case["start"], case["end"])
    ]

    assert missed == []


def moment(bound: datetime | None) -> str | None:
    return f"{bound:%Y-%m-%dT%H:%M}".replace("T00:00", "") if bound else None


@pytest.mark.parametrize("code", KNOWN)
def test_every_further_case_of_a_class_is_read_to_the_hour(code: str) -> None:
    cases = json.loads((FILES / "classes.json").read_text(encoding="utf-8"))

    missed = []
    for case in cases:
        if case["language"] == code:
            found = extract_temporal_constraint(case["text"], NOW, language=code)
            read = found and (moment(found.start), moment(found.end))
            if read != (case["start"], case["end"]):
                missed.append((case["text"], read))

    assert missed == []


def test_no_plain_question_in_english_has_a_window() -> None:
    questions = (FILES / "plain_en.txt").read_text(encoding="utf-8").splitlines()

    assert [text for text in questions if days(text, "en")] == []


@pytest.mark.parametrize("code", OTHERS)
def test_no_plain_question_has_a_window(code: str) -> None:
    questions = (FILES / f"plain_{code}.txt").read_text(encoding="utf-8").splitlines()

    assert len(set(questions)) == 200
    assert [text for text in questions if days(text, code)] == []


@pytest.mark.parametrize(
    "text",
    [
        "Wer hat Office 2019 installiert?",
        "Was regelt § 2021 BGB?",
        "Wer nutzt Nummer 2018 noch?",
        "Kann sie 1999 Bilder speichern?",
        "Gibt es mehr als 2019 Einwohner?",
        "Wie lange braucht es für 2018 Punkte?",
        "wer hat office 2019 installiert?",
    ],
)
def test_a_number_behind_a_german_noun_or_of_things_is_no_year(text: str) -> None:
    assert days(text, "de") is None


@pytest.mark.parametrize("code", OTHERS)
def test_every_month_is_read_in_full(code: str) -> None:
    for number, name in enumerate(MONTHS[code].split(), 1):
        after = date(2019 + number // 12, number % 12 + 1, 1)

        found = days(f"{IN_MONTH[code]} {name} 2019", code)

        assert found == (date(2019, number, 1).isoformat(), after.isoformat())


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(OTHERS), st.dates(date(1950, 1, 1), date(2030, 12, 31)))
def test_every_date_is_read_back(code: str, day: date) -> None:
    name = MONTHS[code].split()[day.month - 1]
    long = WRITTEN.get(code, "{} {} {}").format(day.day, name, day.year)

    for written in (long, f"{day:%d/%m/%Y}", f"{day:%d.%m.%Y}", f"{day:%Y-%m-%d}"):
        assert days(written, code) == (day.isoformat(), (day + timedelta(days=1)).isoformat())


@pytest.mark.parametrize("code", OTHERS)
def test_the_day_comes_first_unless_the_caller_says_otherwise(code: str) -> None:
    text = "05/06/2023"
    starts = [
        extract_temporal_constraint(text, NOW, language=code, day_first=first)
        for first in (None, False)
    ]

    assert [found and found.start for found in starts] == [
        datetime(2023, 6, 5, tzinfo=timezone.utc),
        datetime(2023, 5, 6, tzinfo=timezone.utc),
    ]


@pytest.mark.parametrize(
    ("code", "said", "unaccented"),
    [
        ("de", "nächste Woche", "nachste Woche"),
        ("es", "el miércoles próximo", "el miercoles proximo"),
        ("fr", "en février", "en fevrier"),
        ("it", "venerdì scorso", "venerdi scorso"),
        ("pt", "no mês passado", "no mes passado"),
        ("nl", "op vóór 3 mei 2020", "op voor 3 mei 2020"),
    ],
)
def test_accents_may_be_left_out(code: str, said: str, unaccented: str) -> None:
    assert days(said, code) is not None
    assert days(unaccented, code) == days(said, code)


@pytest.mark.parametrize(
    ("code", "text", "matched"),
    [
        ("de", "Was war VORLETZTE  Woche los?", "VORLETZTE  Woche"),
        ("es", "¿Y la Semana\tpasada?", "Semana\tpasada"),
        ("fr", "Qui est venu l’été dernier ?", "été dernier"),
        ("it", "Chi è venuto tre giorni fa?", "tre giorni fa"),
        ("nl", "Wie kwam er 3 dagen geleden?", "3 dagen geleden"),
        ("pt", "Quem veio há 3 dias?", "há 3 dias"),
    ],
)
def test_the_matched_words_are_as_written_whatever_their_order(
    code: str, text: str, matched: str
) -> None:
    found = extract_temporal_constraint(text, NOW, language=code)

    assert found is not None
    assert found.matched == matched


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("de", "Was gibt es Neues seit unserem letzten Gespräch?"),
        ("es", "¿Qué hay de nuevo desde nuestra última conversación?"),
        ("fr", "Quoi de neuf depuis notre dernière conversation ?"),
        ("it", "Cosa c'è di nuovo dalla nostra ultima conversazione?"),
        ("nl", "Wat is er nieuw sinds ons laatste gesprek?"),
        ("pt", "O que há de novo desde a nossa última conversa?"),
    ],
)
def test_the_last_conversation_is_an_anchor(code: str, text: str) -> None:
    talked = datetime(2026, 11, 18, 17, 5, tzinfo=timezone.utc)

    found = extract_temporal_constraint(text, NOW, language=code, anchors={"last_session": talked})

    assert found is not None
    assert (found.start, found.end, found.kind) == (talked, None, "anchor")


def test_an_unknown_language_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="has no language") as caught:
        extract_temporal_constraint("heute", NOW, language="auto")

    known = ", ".join(f'"{code}"' for code in sorted({*KNOWN, *general.codes()}))
    assert '"de", "dsb", "el", "en", "es"' in known
    assert str(caught.value) == f'the temporal grammar has no language "auto", only {known}'


@pytest.mark.parametrize("code", KNOWN)
def test_the_values_of_a_lexicon_fit_their_letters(code: str) -> None:
    for phrase, (letters, value) in language(code).lexicon.items():
        scan = Scan(phrase, NOW, language(code), True, False, "US", 30, 3)

        assert phrase == phrase.lower()
        assert scan.items, phrase
        if len(letters) > 1:
            assert isinstance(value, tuple), phrase
            assert len(value) == len(letters), phrase


@pytest.mark.parametrize("code", KNOWN)
@pytest.mark.parametrize("piece", ["1", "1/", "12:", "1-", "9.", "1 ", "1/1/", "2020-01-"])
def test_digits_are_read_in_at_most_n_log_n(code: str, piece: str) -> None:
    def read(text: str) -> None:
        extract_temporal_constraint(text, NOW, language=code)

    assert grows_by(read, piece) < MOST


WORDS = {
    code: sorted({word for phrase in language(code).lexicon for word in phrase.split()})
    for code in OTHERS
}
OTHER = ["0", "1", "7", "29", "31", "99", "1999", "2023", "99999", "1.", "3º", "'80", "-", "/"]
MARKS = [".", ",", ":", "'", "?", "XVIII", "T3", "80er"]


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(st.data(), st.sampled_from(OTHERS), st.sampled_from(["", " "]), st.datetimes())
def test_no_input_raises_and_windows_are_not_empty(
    data: st.DataObject, code: str, space: str, now: datetime
) -> None:
    word = st.one_of(
        st.sampled_from(WORDS[code]), st.sampled_from(OTHER + MARKS), st.text(max_size=4)
    )
    words = data.draw(st.lists(word, max_size=14))

    found = extract_temporal_constraint(space.join(words), now, language=code)

    assert found is None or found.start is not None or found.end is not None
    if found and found.start and found.end:
        assert found.start < found.end
