"""Languages without a table of their own, by the calendar words of the Unicode CLDR.

Known are names of months and weekdays, relative words ("yesterday", "last week"), counts ("3 days
ago") and full dates; not holidays, parts of the day or ranges in words. The words are data:
``calendar_words.json``, which ``pydriver/calendar_words.py`` writes. It is read at the first text
without a time in English or in the language of its bank.

The file gives for each phrase its meanings, and the codes of the languages that have them, such as
"M5 ru uk;W3 tr":

    M5 May    m5 May, abbreviated    W0 Monday    D-1 yesterday    R-1month last month    Y year
    gday "days ago", behind a number    K before the number, Uday then behind it
    n2gday "two days ago"    O a word between the parts of a date

A "?" before them marks a phrase that another language has for something else. Under "" are
languages: those whose words have cases, and those that put the month before the day.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from . import AGO_FIRST, KNOWN, Language, Lexicon, contexts, language, plain

_LETTER = r"[^\W\d_]"
_MARK = (
    "[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u200c]"
    "|(?![\\d\u0964\u0965])[\u0900-\u0dff\u0e31-\u0e4e\u0eb1-\u0ece\u102b-\u103e\u17b4-\u17d3]"
)
WORD = rf"{_LETTER}+(?:(?:{_MARK})+{_LETTER}*)*(?:'{_LETTER}+)*"
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_SCRIPTS = {
    "ja": "[\u3040-\u30ff]",
    "zh": "[\u3400-\u9fff]",
    "ko": "[\uac00-\ud7af]",
    "th": "[\u0e00-\u0e7f]",
    "lo": "[\u0e80-\u0eff]",
    "my": "[\u1000-\u109f]",
    "km": "[\u1780-\u17ff]",
}
_WEEKDAYS = "mon tue wed thu fri sat sun".split()
_KINDS = "MDRngYUKWmO"  # which of several meanings a phrase has
_LONGEST = 6  # words of a phrase
_ENDING = 4  # maximum letters of an ending
_ONE_IN = 4  # one letter in so many is unspaced in a text of these languages

_ORDER = (
    AGO_FIRST,
    (r"K(n)Y", "1 U=year g"),  # "před 1 rokem"
    (r"(n)R(U)L", "1 2 g"),  # "3 năm trước"
    (r"(?<=U)L", ""),
    (r"(y)[.,OYU]{0,3}(n)[.O]?(M)", "2 3 1"),  # "2023. gada 3. maijs"
    (r"(y)[.,OYU]{1,3}(?=M)", "1"),  # "2023年5月", "2023. május"
    (r"(M)\.(?=n)", "1"),  # "2023. máj. 3."
    (r"(n),(?=M,y)", "1"),  # "3, მაისი, 2023"
    (r"(?<=M)(n)O", "1"),  # "5月3日"
    (r"(n)\.(?=O?M)", "1"),  # "3. května"
    (r"(M)\.?O(?=[yn])", "1"),  # "мая г. 2023"
    (r"(?<=M)Q{1,2}Y?(?=y)", "O"),  # "Μάιο του 2023"
    (r"(y)Q(?=M(?!Q?y))", "1"),  # "2012 के मई"
    (r"(n)\.?Q(?=n\.?O?M)", "1 t=to"),  # "3 и 7 мая"
    (r"(?<=[yMY])Q{1,2}(?=Y?[yM]|n\.?O?M)", "t=to"),  # "с мая по июнь 2023", "2004年到2014年"
    (r"Q", "z"),
)
_VOWELS = frozenset("aeiouyаеиоуыіюяєїэαεηιουωաեէըիոօ")


@cache
def _phrases() -> dict[str, str]:
    """Return the file, read once."""
    path = Path(__file__).with_name("calendar_words.json")
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _meanings(said: str) -> Iterator[tuple[str, str]]:
    """Return the pairs of a kind and the code of a language."""
    for group in said.lstrip("?").split(";"):
        kinds, *codes = group.split(" ")
        for code in codes:
            for kind in kinds.split(","):
                yield kind, code


def _chosen(said: str) -> dict[str, str]:
    """Return the meaning of a phrase in each language."""
    ranked = sorted(_meanings(said), key=lambda one: _KINDS.index(one[0][0]), reverse=True)
    return {code: kind for kind, code in ranked}


def _is_shared(said: str) -> bool:
    return said.startswith("?")


@cache
def _languages(kind: str) -> dict[str, None]:
    """Return the languages that the file lists as a kind, those of most people first."""
    return {code: None for one, code in _meanings(_phrases()[""]) if one == kind}


def codes() -> dict[str, None]:
    """Return the codes of all languages in the file, those of most people first."""
    return _languages("all")


def table(code: str) -> Language:
    """Make the table of a language."""
    lexicon = Lexicon()
    names: dict[str, str] = {}
    abbreviated: set[str] = set()
    shared: set[str] = set()
    for phrase, said in _phrases().items():
        if not phrase or code not in said:
            continue
        kinds = sorted(
            (kind for kind, one in _meanings(said) if one == code),
            key=lambda kind: _KINDS.index(kind[0]),
        )
        if not kinds or [kind[0] for kind in kinds[:2]] in [[one] * 2 for one in "DRMUg"]:
            continue  # Hindi has one word for yesterday and tomorrow
        letters, value = _entry(kinds[0])
        if letters == "RU" and f"g{value[1]}" in kinds:  # "năm trước", a year ago and last year
            letters, value = "RUL", (*value, None)
        lexicon[phrase] = letters, value
        if kinds[0][0] == "m":
            abbreviated.add(phrase)
        elif kinds[0][0] in "MW" and " " not in phrase:
            names[phrase] = kinds[0]
        if _is_shared(said):
            shared.add(phrase)
    has_cases = code in _languages("cases")
    return Language(
        lexicon=lexicon,
        bare=contexts("", "", "", ""),
        little=frozenset(),
        articles=frozenset(),
        order=_ORDER,
        quarters={"q": "q"},
        ambiguous=frozenset(abbreviated),
        day_first=code not in _languages("monthfirst"),
        word=_word(lexicon),
        years_ahead=543 if code == "th" else 0,  # of the Buddhist era
        names=frozenset(shared),
        stems=_stems(names) if has_cases else {name: (name,) for name in names},
        has_cases=has_cases,
        is_general=True,
    )


def _entry(kind: str) -> tuple[str, Any]:
    """Return the letters and values of a meaning, as the grammar reads them."""
    letter, rest = kind[0], kind[1:]
    if letter in "MmWD":
        return letter.upper(), int(rest)
    if letter in "KYO":
        return letter, None
    if letter == "R":
        shift, name = _number_and_name(rest)
        word = {0: "this", 1: "next", -1: "last"}.get(shift, "last" if shift < 0 else "next")
        is_day = name in _WEEKDAYS
        value = _WEEKDAYS.index(name) if is_day else name
        return "RW" if is_day else "RU", ((shift, word), value)
    if letter == "n":
        count, name = _number_and_name(rest)
        return "nUg", (count, name.removeprefix("g"), None)
    return ("U", rest) if letter == "U" else ("Ug", (rest, None))


def _number_and_name(text: str) -> tuple[int, str]:
    name = text.lstrip("-0123456789")
    return int(text.removesuffix(name)), name


def _word(phrases: Iterable[str]) -> str:
    """Return the pattern of a word; where words are not spaced, those of the phrases are known."""
    within = {
        word for phrase in phrases for word in phrase.split() if re.match(f"[{_UNSPACED}]", word)
    }
    if not within:
        return WORD
    longest_first = sorted(within, key=len, reverse=True)
    spaced = WORD.replace(_LETTER, rf"[^\W\d_{_UNSPACED}]")
    return "|".join([*map(re.escape, longest_first), spaced])


def _stems(names: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the beginnings that names keep in other cases: "styczni" of "stycznia".

    A name whose other form does not begin with it loses a vowel in other cases: "červen", "června".
    """
    forms: dict[tuple[str, str], list[str]] = {}
    for name, kind in names.items():
        forms.setdefault((kind, name[0]), []).append(name)  # Serbian has two scripts
    stems: dict[str, list[tuple[str, ...]]] = {}
    for said in forms.values():
        for name in said:
            kept = [name] if all(one.startswith(name) for one in said) else []
            for stem in (*kept, name[:-1]):
                if len(stem) > 1 + stem.isascii():
                    stems.setdefault(stem, []).append((*said,))
    return {stem: found[0] for stem, found in stems.items() if len({*found}) == 1}


def names_of(
    word: str, stems: Mapping[str, tuple[str, ...]], *, has_cases: bool = True
) -> tuple[str, ...]:
    """Return the names that a word is a case of; without cases, names with an apostrophe."""
    form, apostrophe, _ = word.partition("'")
    if not has_cases:
        return (form,) if apostrophe and form in stems.get(form, ()) else ()  # "Mayıs'ta"
    for cut in range(min(_ENDING, len(form) - 2) + 1):
        stem, ending = form[: len(form) - cut], form[len(form) - cut :]
        names = stems.get(stem, ())
        is_long = len(stem) > 3
        if not ending:
            is_case = is_long or stem in names
        elif plain(ending[0]) in _VOWELS:
            is_case = is_long or cut == 1
        else:
            is_case = stem in names and len(stem) > 4
        if names and is_case:
            return names
    return ()


# Which language a text is in ---------------------------------------------------------------------


def languages_of(text: str) -> list[str]:
    """Return the languages in whose words a text names a time, as far as they tell.

    A word that other languages have, too, such as "mart" or "homme", counts beside a year, and so
    do abbreviations and cases. Languages that give the words different meanings are not returned.

    Args:
        text: The text; of more than 1,000 characters 200 at each end are read.

    """
    if len(text) > 1_000:
        text = f"{text[:200]} {text[-200:]}"
    unspaced = [] if text.isascii() else re.findall(f"[{_UNSPACED}]", text)
    if len(unspaced) * _ONE_IN > sum(map(str.isalpha, text)):
        return [code for code, script in _SCRIPTS.items() if re.search(script, text)]
    found = _Found(text)
    if not found.certain:
        return []
    most = max((n, found.every[code]) for code, n in found.certain.items())
    best = [code for code in codes() if (found.certain[code], found.every[code]) == most]
    if any(len({meant[code] for code in best if code in meant}) > 1 for meant in found.meant):
        return []
    little = {code: len(language(code).little & found.words) for code in best if code in KNOWN}
    spoken = max(little, key=lambda code: little[code], default="")
    if spoken and (little[spoken] > 1 or len(little) == len(best)):
        return [spoken]
    return [code for code in best if code not in KNOWN][:1]


def is_unspaced(sign: str) -> bool:
    """Return whether a letter is of a script whose words are not spaced."""
    return sign >= "\u0e00" and re.match(f"[{_UNSPACED}]", sign) is not None


def usual(text: str) -> str:
    """Return a text with its letters composed, and of the same length in lower case."""
    return unicodedata.normalize("NFC", text).replace("İ", "i")


class _Found:
    """The phrases of a text that name a time, by language.

    Attributes:
        words: The words of the text.
        certain: How many phrases of a language name a time for certain.
        every: How many phrases it has.
        meant: What those that are certain mean, by language.

    """

    def __init__(self, text: str) -> None:
        if not text.isascii():
            text = usual(text).replace("\u2019", "'")
        written = _token().findall(text)
        self.all = [word.lower() for word in written]
        self.words = frozenset(self.all)
        self.certain: Counter[str] = Counter()
        self.every: Counter[str] = Counter()
        self.meant: list[dict[str, str]] = []
        self.years = [n for n, word in enumerate(self.all) if len(word) == 4 and word.isdecimal()]
        self.is_english = not self.words.isdisjoint(_english())
        starts, stems, place = _starts(), _all_stems()[1], 0
        while place < len(self.all):
            word = self.all[place]
            if word in starts:
                place += self._phrase(place, is_small=written[place] == word)
            else:
                if word[:2] in stems and written[place] == word and not self.is_english:
                    self._case(place)
                place += 1

    def _phrase(self, place: int, *, is_small: bool) -> int:
        """Count the longest phrase at a place, and return its words, at least 1."""
        length, entry = self._phrase_at(place)
        meant = _chosen(entry) if entry else {}
        is_unique = not _is_shared(entry)
        if not is_small and place and length == 1:  # "Abril" is also a name
            is_unique &= meant.keys() <= _languages("capitals").keys()
        self._count(place, length, meant, is_unique, is_case=False)
        return length or 1

    def _case(self, place: int) -> None:
        names = names_of(self.all[place], _all_stems()[0])
        said = [_phrases()[name] for name in names]
        is_unique = all(len(name) > 5 for name in names) and not any(map(_is_shared, said))
        meant = {code: kind for one in said for kind, code in _meanings(one)}
        meant = {code: kind for code, kind in meant.items() if code in _languages("cases")}
        self._count(place, 1, meant, is_unique, is_case=True)

    def _count(
        self, place: int, length: int, meant: dict[str, str], is_unique: bool, is_case: bool
    ) -> None:
        self.every.update(meant.keys())
        certain = {
            code: kind.upper()
            for code, kind in meant.items()
            if self._is_certain(place, length, kind, code, is_unique, is_case)
        }
        if certain:
            self.certain.update(certain.keys())
            self.meant.append(certain)

    def _phrase_at(self, place: int) -> tuple[int, str]:
        for length in range(min(_LONGEST, len(self.all) - place), 0, -1):
            entry = _phrases().get(" ".join(self.all[place : place + length]))
            if entry:
                return length, entry
        return 0, ""

    def _is_certain(
        self, place: int, length: int, kind: str, code: str, is_unique: bool, is_case: bool
    ) -> bool:
        """Return whether a phrase names a time, and in this language."""
        before = self.all[place - 1] if place else ""
        is_near = any(place - 6 < year < place + length + 3 for year in self.years)
        if kind[0] in "Mm":
            is_day = self._is_day(place, code) and not (self.is_english or is_case)
            is_word = kind[0] == "M" and len(self.all[place]) > 2 and not self.is_english
            is_month = is_near and (is_unique or is_day or is_word)
            return (is_unique or is_day or is_month) if kind[0] == "M" else is_month
        if kind[0] in "DRn":
            return is_unique
        if kind[0] == "g":
            return before.isdecimal() and (is_unique or length > 1)
        if kind[0] == "U" and before.isdecimal():
            starts = range(max(0, place - 1 - _LONGEST), place - 1)
            said = (_phrases().get(" ".join(self.all[start : place - 1]), "") for start in starts)
            return any(("K", code) in _meanings(one) for one in said if one)
        return kind[0] == "Y" and is_unique and is_near

    def _is_day(self, place: int, code: str) -> bool:
        """Return whether a day stands before a month: "3 de maio", "3. mai"."""
        before = self.all[max(0, place - 2) : place]
        if before and (
            before[-1] == "." or ("O", code) in _meanings(_phrases().get(before[-1], ""))
        ):
            before.pop()
        return bool(before) and before[-1].isdecimal() and 0 < int(before[-1]) < 32


@cache
def _token() -> re.Pattern[str]:
    """Return the pattern of a token, which takes milliseconds to compile."""
    return re.compile(rf"{WORD}|\d+|\S")


@cache
def _english() -> frozenset[str]:
    """Return the function words of English, but for short ones and one that is German, too."""
    return frozenset(word for word in language("en").little if len(word) > 2) - {"was"}


@cache
def _starts() -> frozenset[str]:
    """Return the first words of all phrases that may tell a language."""
    telling = re.compile(r"(?:^\??|[;,])[DMRUYgmn]")
    return frozenset(
        phrase.partition(" ")[0] for phrase, said in _phrases().items() if telling.search(said)
    )


@cache
def _all_stems() -> tuple[dict[str, tuple[str, ...]], frozenset[str]]:
    """Return the beginnings of the names of months in languages with cases, and of these."""
    names: dict[str, dict[str, str]] = {code: {} for code in _languages("cases")}
    for phrase, said in _phrases().items():
        if " " not in phrase:
            for kind, code in _meanings(said):
                if kind[0] == "M" and code in names:
                    names[code][phrase] = kind
    stems: dict[str, tuple[str, ...]] = {}
    for own in names.values():
        for stem, found in _stems(own).items():
            stems[stem] = (*dict.fromkeys((*stems.get(stem, ()), *found)),)
    return stems, frozenset(stem[:2] for stem in stems)


__all__ = ["WORD", "codes", "is_unspaced", "languages_of", "names_of", "table", "usual"]
