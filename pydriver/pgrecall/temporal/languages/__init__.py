"""The languages of the temporal grammar, each a table of words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import product

KNOWN = ("de", "en", "es", "fr", "it", "nl", "pt")
UNITS_OF_TIME = "day week fortnight weekend month quarter half year decade century".split()

MORNING, NOON, LUNCH = (4 * 60, 12 * 60), (12 * 60, 13 * 60), (11 * 60, 14 * 60)
EARLY, FORENOON = (4 * 60, 8 * 60), (8 * 60, 12 * 60)
AFTERNOON, LONG_AFTERNOON, LATE_AFTERNOON = (12 * 60, 18 * 60), (12 * 60, 20 * 60), (960, 1140)
EVENING, NIGHT, LATE = (17 * 60, 24 * 60), (18 * 60, 24 * 60), (21 * 60, 24 * 60)
SMALL_HOURS = (0, 6 * 60)

_Entry = tuple[str, object]
_NONE: frozenset[str] = frozenset()
_ROMAN = ("i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx xxi").split()
_ONE = r"(?:AU\|n|(?:(?:A\|n|A?n(?:[-|t]n)?|[ANy])B?|B)UB?)"
# "two weeks", "1 month and 3 days", "2 or 3 weeks", "a day or two"
AMOUNT = rf"(?:{_ONE}(?:[,&]|,&)?){{0,3}}{_ONE}"
_LENGTH = rf"(?:{AMOUNT}|A?v[UWS]|[nA][WS]|(?:A?[nNvyA]|A?B)uB?)"
SINCE = (rf"(s)({_LENGTH})(?!g)", "1 2 g")  # "seit drei Tagen" is since three days ago
AGO_FIRST = (rf"K([<>]?{_LENGTH})g?", "1 g")  # "hace tres días"
BEFORE_AS_AGO = (rf"(?<!U)b([<>i]?{_LENGTH})(?!g)", "1 g")  # "vor drei Tagen"
SKIPPING_FIRST = (r"(V)([UWS])", "2 1")  # "vorletzte Woche"
# "los 3 días siguientes", "semana pasada", "les six premiers mois"
ADJECTIVE_LAST = (
    (r"([nv])(U)(R)(?![UWMSHnv])", "3 1 2"),
    (r"([UWMSH])(R)(?![UWMSHnv])", "2 1"),
    (r"(n)(o)(U)", "2 1 3"),
)
THE_FIFTEENTH = (r"T(n)(?=[;.]*$)", "i=on 1")  # "el 15", at the end
THE_WEEKEND = (r"(?<![iOsabkwEh])(T)(U)(?![VORMn])", "i=at 1 2")  # "el fin de semana"


def words(text: str) -> frozenset[str]:
    """Split words at spaces."""
    return frozenset(text.split())


def variants(phrase: str) -> list[str]:
    """Expand the alternatives of a phrase: "pasad(o/a)" is "pasado" and "pasada"."""
    if "(" not in phrase:
        return [" ".join(phrase.split())]
    parts = re.split(r"\(([^)]*)\)", phrase.strip())
    options = [part.split("/") if n % 2 else [part] for n, part in enumerate(parts)]
    return [" ".join("".join(chosen).split()) for chosen in product(*options)]


def contexts(around: str, inside: str, on: str, season: str) -> dict[str, frozenset[str]]:
    """Return the words that may precede each kind of date word.

    Args:
        around: Words before any kind, such as "since", "before", "until".
        inside: Words before a month or a year, such as "in", "of".
        on: Words before a day, such as "on".
        season: Words before a season without an article.

    """
    any_kind, in_words, on_words = words(around), words(inside), words(on)
    whole = any_kind | in_words
    return {
        **dict.fromkeys(("year", "quarter", "month"), whole),
        **dict.fromkeys(("holiday", "numeric"), whole | on_words),
        **dict.fromkeys(("weekday", "dayofmonth"), any_kind | on_words),
        "season": whole | words(season),
        "season alone": words(season),
        "dashed": on_words,
    }


class Lexicon(dict[str, _Entry]):
    """Phrases, in lower case with one space between tokens, with their classes and values.

    Phrases are given as one text, separated by commas. Alternatives within a word are in
    parentheses, separated by slashes.
    """

    def put(self, letters: str, value: object, phrases: str) -> None:
        """Add phrases of a class; for several letters the value is a tuple with one value each."""
        for phrase in phrases.split(","):
            for variant in variants(phrase):
                self[variant] = (letters, value)

    def count(self, letters: str, first: int, lists: str) -> None:
        """Add numbered names; commas separate numbers, bars separate names of one number."""
        for number, names in enumerate(lists.split(",")):
            self.put(letters, number + first, names.replace("|", ","))

    def units(self, *names: str) -> frozenset[str]:
        """Add "singular, ... ; plural, ..." for each unit of time, and return the plurals."""
        plurals: set[str] = set()
        for unit, forms in zip(UNITS_OF_TIME, names, strict=True):
            singular, _, plural = (
                [v for phrase in part.split(",") if phrase.strip() for v in variants(phrase)]
                for part in forms.partition(";")
            )
            for phrase in (*singular, *plural):
                self[phrase] = ("U", unit)
            plurals |= words(" ".join(plural)) - words(" ".join(singular))
        return frozenset(plurals)

    def holidays(self, table: Mapping[str, object]) -> None:
        """Add holidays: (month, day), (month, weekday, nth), days from Easter, or by country."""
        for phrases, rule in table.items():
            self.put("H", rule, phrases)

    def numbers(self, said: Mapping[int, str], years: Mapping[int, str]) -> None:
        """Add the numbers below one hundred in words, and the years with these beginnings."""
        for number, word in said.items():
            self.put("n", number, word)
            for century, begins in years.items():
                self.put("y", century + number, f"{begins}{word}")
        for century, begins in years.items():
            self.put("y", century, begins)

    def centuries(self, *patterns: str) -> None:
        """Add centuries in Roman numerals; "{}" in a pattern is the numeral."""
        for number, roman in enumerate(_ROMAN, 1):
            self.put("q", ("century", number), ",".join(p.format(roman) for p in patterns))


@dataclass(frozen=True, slots=True)
class Language:
    """The words of one language, with the classes that the grammar's patterns use.

    Attributes:
        lexicon: Phrases with their classes; the letters are listed in ``grammar``.
        bare: Words that may precede an ambiguous date word, by kind of word.
        little: Words that may follow a date without forming a name or a compound.
        articles: Words for "the".
        order: Rewritings of word order before the rules: a pattern over letters and its
            replacement, which consists of group numbers, letters (``R``) and letters with a value
            (``i=on``).
        plurals: Units of time in the plural.
        decade_words: Plurals that make a number a decade ("los años 90").
        date_article: The article before a day of the month ("el 15").
        ordinal_suffixes: Suffixes that make a number an ordinal.
        decade_suffixes: Suffixes that make a number a decade.
        quarters: Letters of "Q1", "H2" to "q" or "h".
        ambiguous: Date words that are also common verbs or nouns.
        names: Month names that are also names of people, or words of another kind.
        toward: Words before the name of a person ("for April").
        possessives: Words that make a decade an age, and a weekday a habit.
        ages: Words that make the decade before them an age.
        every: Words before a date word that make it a habit.
        habitual: Words that make a whole question about habits.
        general: Words that make a span of time a rate ("how much can it eat in a day").
        spanning: Words before "the past year" that make it the year up to now.
        past: Words that put a question into the past, even about a habit.
        after_modal: Words that may follow both the verb "may" and a date.
        not_recent: Words before "recently" that make it a comparison.
        things: Nouns with a number or name that looks like a date ("room 2019").
        streets: Nouns that are named after a date ("calle 2 de Mayo").
        measures: Nouns that are counted ("2000 users").
        clock: Words that make the number before them a time of day.
        session: Pattern of clauses that mean the end of the last conversation.
        clause_openers: Words that can begin an anchor clause, after "since" and similar words.
        day_first: Whether 05/06 is 5 June.
        has_capital_nouns: Whether all nouns are capitalised.
        has_bare_weekday: Whether a weekday needs no preposition.
        has_numbered_day: Whether "day 5" is the fifth of a month.
        has_other_quarter: Whether the word for a quarter also means a part of a match.
        has_elision: Whether an apostrophe ends a word ("l'", "dell'").
        word: Pattern of a word, if not the usual one.
        stems: Beginnings of the names of months and weekdays, with the names.
        has_cases: Whether these names have cases, and are written small.
        years_ahead: Years that the calendar of the language is ahead of the usual one.
        is_general: Whether the table has calendar words alone.

    """

    lexicon: Lexicon
    bare: Mapping[str, frozenset[str]]
    little: frozenset[str]
    articles: frozenset[str]
    order: tuple[tuple[str, str], ...] = ()
    plurals: frozenset[str] = _NONE
    decade_words: frozenset[str] = _NONE
    date_article: str = ""
    ordinal_suffixes: frozenset[str] = _NONE
    decade_suffixes: frozenset[str] = _NONE
    quarters: Mapping[str, str] = field(default_factory=lambda: {"q": "q", "h": "h"})
    ambiguous: frozenset[str] = _NONE
    names: frozenset[str] = _NONE
    toward: frozenset[str] = _NONE
    possessives: frozenset[str] = _NONE
    ages: frozenset[str] = _NONE
    every: frozenset[str] = _NONE
    habitual: frozenset[str] = _NONE
    general: frozenset[str] = _NONE
    spanning: frozenset[str] = _NONE
    past: frozenset[str] = _NONE
    after_modal: frozenset[str] = _NONE
    not_recent: frozenset[str] = _NONE
    things: frozenset[str] = _NONE
    streets: frozenset[str] = _NONE
    measures: frozenset[str] = _NONE
    clock: frozenset[str] = _NONE
    session: str = "(?!)"
    clause_openers: frozenset[str] = _NONE
    day_first: bool = True
    has_capital_nouns: bool = False
    has_bare_weekday: bool = False
    has_numbered_day: bool = False
    has_other_quarter: bool = False
    has_elision: bool = False
    word: str = ""
    stems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    has_cases: bool = False
    years_ahead: int = 0
    is_general: bool = False
    phrases: dict[str, list[tuple[int, dict[tuple[str, ...], _Entry]]]] = field(init=False)
    token: re.Pattern[str] = field(init=False)
    rewritings: tuple[tuple[re.Pattern[str], list[str]], ...] = field(init=False)

    def __post_init__(self) -> None:
        """Index the lexicon by first word and length, and compile the patterns."""
        lexicon = dict(self.lexicon)
        for phrase, entry in self.lexicon.items():  # accents are often left out
            if len(phrase) > 2 and not phrase.isascii():
                lexicon.setdefault(plain(phrase), entry)
        index: dict[str, dict[int, dict[tuple[str, ...], _Entry]]] = {}
        for phrase, entry in lexicon.items():
            first, *rest = phrase.split()
            index.setdefault(first, {}).setdefault(len(rest), {})[tuple(rest)] = entry
        phrases = {word: sorted(found.items(), reverse=True) for word, found in index.items()}
        tail = r"(?:'(?=[^\W\d_]))?" if self.has_elision else r"(?:'[^\W\d_]+)*"
        word = self.word or rf"[^\W\d_]+{tail}"
        token = rf"{word}|\d+(?:'?s(?![^\W\d_]))?|\S"
        object.__setattr__(self, "phrases", phrases)
        object.__setattr__(self, "token", re.compile(token))
        rewritings = tuple((re.compile(was), becomes.split()) for was, becomes in self.order)
        object.__setattr__(self, "rewritings", rewritings)


def plain(phrase: str) -> str:
    """Return a phrase without its accents."""
    marks = unicodedata.normalize("NFD", phrase.replace("ß", "ss"))
    return "".join(letter for letter in marks if not unicodedata.combining(letter))


@cache
def language(code: str) -> Language:
    """Return the table of a language.

    Raises:
        ValueError: there is no table for this code.

    """
    if code in KNOWN:
        table: Language = import_module(f".{code}", __name__).LANGUAGE
        return table
    general = import_module(".general", __name__)
    if code in general.codes():
        made: Language = general.table(code)
        return made
    known = ", ".join(f'"{one}"' for one in sorted({*KNOWN, *general.codes()}))
    raise ValueError(f'the temporal grammar has no language "{code}", only {known}')


__all__ = [
    "ADJECTIVE_LAST",
    "AFTERNOON",
    "AGO_FIRST",
    "AMOUNT",
    "BEFORE_AS_AGO",
    "EARLY",
    "EVENING",
    "FORENOON",
    "KNOWN",
    "LATE",
    "LATE_AFTERNOON",
    "LONG_AFTERNOON",
    "LUNCH",
    "MORNING",
    "NIGHT",
    "NOON",
    "SINCE",
    "SKIPPING_FIRST",
    "SMALL_HOURS",
    "THE_FIFTEENTH",
    "THE_WEEKEND",
    "Language",
    "Lexicon",
    "contexts",
    "language",
    "plain",
    "words",
]
