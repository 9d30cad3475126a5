"""Which of several states a question asks for: the latest, a former one, or it does not say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from growth import MOST, grows_by
from pgrecall.temporal.languages import KNOWN
from pgrecall.temporal.latest_or_former import read_latest_or_former

FILES = Path(__file__).parent / "cases"
CASES = json.loads((FILES / "currency.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", ["latest", "former", "neither"])
@pytest.mark.parametrize("code", KNOWN)
def test_every_case_is_read(code: str, kind: str) -> None:
    expected = ("neither", None) if kind == "neither" else (kind,)

    read = {text: read_latest_or_former(text, language=code) for text in CASES[code][kind]}

    assert len(read) >= 15
    assert {text: one for text, one in read.items() if one not in expected} == {}


def test_a_phrase_that_only_looks_like_one_is_told_from_none() -> None:
    assert read_latest_or_former("What does he say now and then?") == "neither"
    assert read_latest_or_former("What does he say now, and then?") == "latest"
    assert read_latest_or_former("What does he say?") is None


def test_a_former_state_wins_over_the_latest_unless_still_is_said() -> None:
    contrast = "Where did she previously work, before the shop she runs now?"

    assert read_latest_or_former(contrast) == "former"
    assert read_latest_or_former("Is her former boss still in Bonn?") == "latest"


def test_words_of_the_caller_count_as_whole_words() -> None:
    def read(text: str) -> str | None:
        return read_latest_or_former(text, latest=["as ratified"], former=["B.C."])

    assert read("What is the fee as ratified?") == "latest"
    assert read("What was the fee as ratifieds?") is None
    assert read("What was the fee B.C.?") == "former"


def test_words_of_the_caller_are_no_names_and_few_are_too_many() -> None:
    def read(text: str, latest: list[str]) -> str | None:
        return read_latest_or_former(text, language="de", latest=latest)

    asked = "Wie hoch ist Stand Heute die Miete\u2019s?"

    assert read(asked, []) is None
    assert read(asked, [" STAND HEUTE ", ""]) == "latest"
    assert read(asked, ["die miete\u2019s"]) == "latest"
    assert read(asked, [f"{n} " * 300 for n in range(1000)]) is None


def test_an_adjective_says_it_only_of_the_thing_that_is_asked_for() -> None:
    assert read_latest_or_former("What was the last offer?") == "latest"
    assert read_latest_or_former("Which is Ana\u2019s old address?") == "former"
    assert read_latest_or_former("What was the last day?") is None
    assert read_latest_or_former("What was the Last Supper?") is None
    assert read_latest_or_former("Who wrote the last offer?") is None


def test_an_unknown_language_is_an_error() -> None:
    with pytest.raises(ValueError, match='language "tlh" is not known'):
        read_latest_or_former("now", language="tlh")


@pytest.mark.parametrize("piece", ["now ", "n' ", "used to be ", "is a ", "ever a ", "İ"])
def test_a_text_is_read_in_at_most_n_log_n(piece: str) -> None:
    assert grows_by(read_latest_or_former, piece) < MOST


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200), st.sampled_from(KNOWN))
def test_no_text_raises(text: str, code: str) -> None:
    assert read_latest_or_former(text, language=code) in ("latest", "former", "neither", None)
