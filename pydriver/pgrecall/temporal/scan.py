"""A question as a string of classes: tokens, numbers, phrases and their context."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any, cast

from . import calendar as cal
from .calendar import Cycle, Span
from .languages import Language
from .languages.general import is_unspaced, names_of, usual

_TIME_OF_ISO = re.compile(r"(?<=\d\d-\d\d)[Tt]\d\d:\d\d[\d:.,]*(?:Z|z|[+-]\d\d:?\d\d)?")
_LONGEST = 1_000  # longer texts are not read whole
_END = 200  # characters read at each end of a longer text
_NO_WORD = re.compile(r"\S{41,}")  # a path, a hash, a run of digits
_NO_WORD_OF_ASCII = re.compile(r"[!-~]{41,}")  # a sentence in Chinese has no spaces
_DIGITS = re.compile(r"(?![0-9])\d")
_ENDING = re.compile(
    r"(?:(?<=\d{4})['’:-][^\W\d_]|(?<=\d)['’:-](?:[^\W\d_a-z]|[^\W\d_]{2}))"
    r"[^\W\d_]{0,4}\b(?!-| сар)"
)
_PREFIX = re.compile(r"(?<!\w)[^\W\d_]-(?=\d)")
_PUNCTUATION = {",": ",", "/": "/", ".": ".", "-": "-", "–": "-", "—": "-", "~": "-"}
_OPENING = frozenset("([{\"',;:!?=<>—–“‘*|")
_CLOSING = frozenset(")]}\"',;:!?.=<>—–”*|")
_QUOTES = frozenset("\"'“”‘`")


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _of_one_length(text: str) -> str:
    """Return a text with usual digits, and numbers without what is glued to them ("2023'te")."""
    composed = usual(text)
    text = composed if len(composed) == len(text) else text
    text = _DIGITS.sub(lambda match: str(int(match[0])), text)
    return _PREFIX.sub(_blank, _ENDING.sub(_blank, text))


def _holds(sign: str) -> bool:
    """Return whether a letter or sign glued to a date may make another word of it."""
    return sign.isascii() or (sign.isalnum() and not is_unspaced(sign))


class Item:
    """One item of the sentence: its class, its value, and its tokens."""

    __slots__ = ("letter", "value", "first", "last")

    def __init__(self, letter: str, value: Any, first: int, last: int) -> None:
        self.letter = letter
        self.value = value
        self.first = first
        self.last = last


class Group:
    """The items that a rule matched, by the names of its groups."""

    __slots__ = ("match", "items")

    def __init__(self, match: re.Match[str], items: list[Item]) -> None:
        self.match = match
        self.items = items

    def item(self, name: str) -> Item | None:
        """Return the first item of a group; None if the group did not match."""
        start, end = self.match.span(name)
        return self.items[start] if end > start else None

    def __getitem__(self, name: str) -> Any:
        item = self.item(name)
        return item and item.value

    def all(self, name: str | int = 0) -> list[Item]:
        """Return every item of a group."""
        start, end = self.match.span(name)
        return self.items[start:end]


class Scan:
    """A question while the rules are applied."""

    __slots__ = (
        "text",
        "now",
        "today",
        "language",
        "day_first",
        "south",
        "country",
        "recent_days",
        "few",
        "spots",
        "words",
        "has_year",
        "items",
        "letters",
    )

    def __init__(
        self,
        text: str,
        now: datetime,
        language: Language,
        day_first: bool,
        south: bool,
        country: str,
        recent_days: int,
        few: int,
    ) -> None:
        self.text = text
        self.now = now
        self.today = now.date()
        self.language = language
        self.day_first = day_first
        self.south = south
        self.country = country
        self.recent_days = recent_days
        self.few = few
        self.spots: list[tuple[int, int]] = []
        self.words: list[str] = []
        self.items: list[Item] = []
        self._tokenise()
        self.has_year = any(len(word) == 4 and word.isdecimal() for word in self.words)
        self._classify()

    def _tokenise(self) -> None:
        text, cut = self.text, _END
        whole = len(text) <= _LONGEST
        ends = [(0, text)] if whole else [(0, text[:cut]), (len(text) - cut, text[-cut:])]
        for offset, part in ends:
            part = part.replace("’", "'")
            if len(part) > 40:
                no_word = _NO_WORD_OF_ASCII if self.language.is_general else _NO_WORD
                part = no_word.sub(_blank, part)
            if self.language.is_general:
                part = _of_one_length(part)
            if "-" in part:
                part = _TIME_OF_ISO.sub(_blank, part)
            for match in self.language.token.finditer(part):
                start, end = match.span()
                self.spots.append((start + offset, end + offset))
                self.words.append(match[0].lower())

    def glued(self, token: int) -> bool:
        """Return whether there is no space before a token."""
        return 0 < token < len(self.spots) and self.spots[token][0] == self.spots[token - 1][1]

    def tight(self, items: list[Item]) -> bool:
        """Return whether there is no space between the items."""
        return all(self.glued(item.first) for item in items[1:])

    def word(self, token: int) -> str:
        """Return a token in lower case, or "" outside the text."""
        return self.words[token] if 0 <= token < len(self.words) else ""

    # Tokens to classes ------------------------------------------------------------------------

    def _classify(self) -> None:
        token, count = 0, len(self.words)
        while token < count:
            found = self._phrase(token) or self._and_a_half(token) or [self._item(token)]
            self.items += found
            token = found[-1].last
        self.letters = "".join([item.letter for item in self.items])
        for pattern, becomes in self.language.rewritings:
            match = pattern.search(self.letters)
            while match:
                made = self._rewritten(match, becomes)
                self.items[match.start() : match.end()] = made
                letters = "".join([item.letter for item in made])
                start = match.start()
                self.letters = self.letters[:start] + letters + self.letters[match.end() :]
                match = pattern.search(self.letters, start + len(letters))

    def _rewritten(self, match: re.Match[str], becomes: list[str]) -> list[Item]:
        """Return items in another order, each with the position of the whole match."""
        first, last = self.items[match.start()].first, self.items[match.end() - 1].last
        made: list[Item] = []
        for piece in becomes:
            if piece.isdecimal():
                for item in self.items[match.start(int(piece)) : match.end(int(piece))]:
                    made.append(Item(item.letter, item.value, first, last))
            else:
                letter, _, value = piece.partition("=")
                made.append(Item(letter, value or None, first, last))
        return made

    def _phrase(self, token: int) -> list[Item] | None:
        """Read the longest phrase of the lexicon; "patrick's" and "patricks" are equal."""
        word = self.words[token]
        lengths = self.language.phrases.get(word)
        if lengths is None and word.endswith("'s"):
            lengths = self.language.phrases.get(word[:-2])
        if lengths is None and self.language.stems:
            has_cases = self.language.has_cases and not self._is_capital(token)
            names = names_of(word, self.language.stems, has_cases=has_cases)
            lengths = self.language.phrases.get(names[0]) if names else None
        for length, table in lengths or ():
            last = token + 1 + length
            rest = tuple(self.words[token + 1 : last])
            entry = table.get(rest)
            if entry is None and length and any("'" in after for after in rest):
                entry = table.get(tuple([after.replace("'", "") for after in rest])) or table.get(
                    tuple([after.removesuffix("'s") for after in rest])
                )
            if entry is None:
                continue
            letters, value = entry
            if self.language.is_general and letters[0] in "DR" and not length and token:
                if self._is_capital(token):
                    continue  # a name
            if letters == "Z":
                year, weak = cast("tuple[int, str]", value)
                return [self._decade(year, token, last, weak)]
            if len(letters) == 1:
                return [Item(letters, value, token, last)]
            values = cast("tuple[object, ...]", value)
            rest_from = token + 1 if length else token  # the first word belongs to the first letter
            return [
                Item(letter, one, rest_from if n else token, last if n or not length else token + 1)
                for n, (letter, one) in enumerate(zip(letters, values, strict=True))
            ]
        return None

    def _and_a_half(self, token: int) -> list[Item] | None:
        """Read "1.5 years" as "one and a half years"."""
        number, mark, half, unit = (self.word(token + n) for n in range(4))
        if mark not in (".", ",") or half != "5" or not number.isdecimal() or len(number) > 2:
            return None
        if not (self.glued(token + 1) and self.glued(token + 2)) or self.glued(token):
            return None
        if self.language.lexicon.get(unit, ("", None))[0] != "U":
            return None
        middle = token + 1
        return [Item("n", int(number), token, middle), Item("B", None, middle, token + 3)]

    def _item(self, token: int) -> Item:
        word = self.words[token]
        if word[0].isdigit():
            return self._digits(token, word)
        mark = _PUNCTUATION.get(word)
        if mark:
            return Item(mark, word, token, token + 1)
        if word == "'" and len(self.word(token + 1)) == 2 and self.glued(token + 1):
            year = self.words[token + 1]  # '98
            dated = not self.glued(token) or self.items and self.items[-1].letter in "qM"
            if year.isdecimal() and dated:
                return Item("y", self.full_year(int(year)), token, token + 2)
        if word == "w" and self.items and self.items[-1].letter in "y-":
            if self.glued(token + 1) and self.words[token + 1].isdecimal():
                return Item("U", "week", token, token + 1)  # "2025-W42"
        language = self.language
        unit = language.quarters.get(word)
        if unit and self.glued(token + 1) and self.words[token + 1] in "1234":
            count = int(self.words[token + 1])
            if unit == "q" or count < 3:
                return Item("q", (unit, count), token, token + 2)
        if not word[0].isalpha():
            return Item('"' if word in _QUOTES else ";", word, token, token + 1)
        is_name = len(word) > 1 and self.text[slice(*self.spots[token])].istitle()  # "Jun Li 2020"
        if language.is_general and len(word) < 4 and not is_name:
            return Item("Q", None, token, token + 1)  # before the rules it becomes another
        return Item("z", word, token, token + 1)

    def full_year(self, year: int) -> int:
        """Complete a two-digit year: at most ten years ahead, otherwise in the past."""
        now = self.today.year
        return year + (now + 10 - year) // 100 * 100

    def _digits(self, token: int, word: str) -> Item:
        language = self.language
        if word.endswith("s"):
            return self._digits_of_decade(word.rstrip("s'"), token, token + 1)
        if len(word) == 8 and word[:2] in ("19", "20"):
            days = cal.one_day(int(word[:4]), int(word[4:6]), int(word[6:]))
            if days:
                return Item("X", Span(*days, "day", 0.8, "dashed"), token, token + 1)
        if len(word) > 6:
            return Item(";", word, token, token + 1)
        value, after = int(word), self.word(token + 1)
        close = self.glued(token + 1)
        if close and after in language.ordinal_suffixes:
            if after != ".":
                return Item("o", value, token, token + 2)
            if len(word) < 3 and (  # "1.", "1.Mai", but neither "1.5" nor "1.x"
                not self.glued(token + 2) or self.words[token + 2].isalpha()
            ):
                return Item("o", value, token, token + 2)
        if close and after == "." and self.glued(token + 2):
            if self.words[token + 2] in language.ordinal_suffixes - {"."}:  # "1.º"
                return Item("o", value, token, token + 3)
        if len(word) in (2, 4) and (after == "s" or close and after in language.decade_suffixes):
            return self._digits_of_decade(word, token, token + 2)
        if len(word) <= 2:
            if close and language.quarters.get(after) == "q" and 0 < value < 5:
                return Item("q", ("q", value), token, token + 2)
            return self._clock(token, word) or Item("n", value, token, token + 1)
        if len(word) == 4 and 1000 <= value < 3000:
            if value > 1900 + language.years_ahead:
                value -= language.years_ahead
            return Item("y", value, token, token + 1)
        return Item("N", value, token, token + 1)

    def _clock(self, token: int, word: str) -> Item | None:
        """Read "17:30", "5 pm", "5:30 p.m.", "17 h 30" as the hour that begins then.

        The value is the hours and whether a.m. or p.m. is known; None if it is not a time.
        """
        clock, last, minutes = self.language.clock, token + 1, -1
        mark = self.word(last)
        is_dotted = mark == "." and self.word(token + 3) in clock
        if (mark == ":" or is_dotted) and self._glued_number(last, token + 2):
            minutes, last = int(self.words[token + 2]), token + 3
            if self.word(last) == ":" and self.glued(last + 1):
                last += 2
        after, half = self.word(last), ""
        if after in clock:
            half = after[:1] if after in ("am", "pm", "a.m", "p.m") else ""
            if minutes < 0 and self.glued(last) and self._glued_number(last, last + 1):
                minutes, last = int(self.words[last + 1]), last + 1  # "17h30"
            last += 1
        elif after in ("a", "p") and self.word(last + 1) == "." and self.word(last + 2) == "m":
            half, last = after, last + 3
        elif minutes < 0:
            return None
        hour, is_sure = int(word), bool(half) or self.language.day_first or word[0] == "0"
        if half and not 0 < hour < 13 or hour > 23 or minutes > 59:
            return Item("c", None, token, last)
        if half:
            hour = hour % 12 + 12 * (half == "p")
        opens = hour * 60 + max(minutes, 0)
        closes = min(opens + 60, cal.WHOLE_DAY[1])
        return Item("c", ((opens, closes), is_sure or opens >= 12 * 60), token, last)

    def _glued_number(self, mark: int, number: int) -> bool:
        """Return whether at most two digits follow a mark without spaces."""
        return (
            self.glued(mark)
            and self.glued(number)
            and self.words[number].isdecimal()
            and len(self.words[number]) < 3
        )

    def _digits_of_decade(self, digits: str, token: int, last: int) -> Item:
        if len(digits) not in (2, 4) or digits[-1] != "0" or digits[0] == "0" and len(digits) == 4:
            return Item(";", digits, token, last)
        return self._decade(int(digits), token, last, "decade")

    def _decade(self, year: int, token: int, last: int, weak: str) -> Item:
        span = self.decade(year, weak)
        return Item("X", span, token, last) if span else Item("z", "", token, last)

    def decade(self, year: int, weak: str) -> Span | None:
        """Return the decade from a year on; for two digits, the last one that has begun."""
        if year < 100:
            year += (self.today.year - year) // 100 * 100
            confidence = 0.9
        else:
            confidence, weak = 1, ""
        if not 1 <= year <= 9980:
            return None
        return Span(date(year, 1, 1), date(year + 10, 1, 1), "decade", confidence, weak)

    # What the rules ask ----------------------------------------------------------------------

    def closed(self, value: Any) -> Span | None:
        """Place a cycle in the calendar: its last occurrence that has begun."""
        if isinstance(value, Cycle):
            return value.latest(self.today)
        if isinstance(value, Span) and value.start and value.end:
            return value
        return None

    def follows(self, item: Item) -> str:
        """Return the word after an item; "" if there is none or punctuation comes first."""
        word = self.word(item.last)
        return word if word[:1].isalnum() else ""

    def continued(self, item: Item) -> bool:
        """Return whether the next word may form a name or a compound with an item."""
        word = self.follows(item)
        if not word or word in self.language.little:
            return False
        return not self.language.has_capital_nouns or self._is_capital(item.last)

    def is_verb(self, item: Item) -> bool:
        """Return whether an ambiguous word ("may", "march", "sat") is a verb or noun here."""
        spot = self.spots[item.first][0]
        return (
            self.words[item.first] in self.language.ambiguous
            and self.text[spot].islower()
            and (
                (self.continued(item) and not self.follows(item).isdecimal())
                or self.follows(item) in self.language.after_modal
            )
        )

    def counted(self, item: Item) -> bool:
        """Return whether a counted noun follows ("2000 users")."""
        return self.follows(item) in self.language.measures

    def sound(self, item: Item) -> bool:
        """Return whether a span is a date in its context."""
        before, after = self.word(item.first - 1), self.word(item.last)
        opens, closes = self.glued(item.first), self.glued(item.last)
        if self.language.is_general:
            opens, closes = opens and _holds(before[-1]), closes and _holds(after[0])
            if item.letter == "C" and item.value.unit == "year" and self.has_year:
                return False  # which belongs to the date, in words that are not known
        if opens and before not in _OPENING and before[-1] != "'":
            if not (before == "." and len(self.word(item.first - 2)) > 1):
                return False
        if closes:
            if after not in _CLOSING:
                return False
            following = self.word(item.last + 1)
            if self.glued(item.last + 1) and following[:1].isalnum() and after not in ')]},;"':
                return False
        if after == "%" or before in ("$", "€", "£", "#", "@"):
            return False
        if item.letter == "C" and self.language.streets:
            if not self.language.streets.isdisjoint(
                self.words[max(0, item.first - 2) : item.first]
            ):
                return False
        weak = item.value.weak
        return not weak or self._has_context(item, weak, before)

    def _is_capital(self, token: int) -> bool:
        return token < len(self.spots) and self.text[self.spots[token][0]].isupper()

    def _is_beside_no_noun(self, item: Item) -> bool:
        """Return whether no noun stands beside a year, in a text whose nouns are capitalised."""
        if item.first == 0 or self._is_capital(item.last):  # "mehr als 2019 Einwohner"
            return False
        start, end = self.spots[item.first - 1]
        has_capitals = any(self._is_capital(token) for token in range(1, len(self.spots)))
        return has_capitals and self.text[start:end].isalpha() and self.text[start:end].islower()

    def _is_in_short_context(self, item: Item, weak: str, before: str, following: str) -> bool:
        """Return whether a month or a year stands where a date stands.

        The calendar words of a language say nothing of its prepositions. They are short words or,
        where nouns have cases or words are not spaced, parts of the word.
        """
        is_short = 0 < len(before) < 4 and before.isalpha() and not self._is_capital(item.first - 1)
        if weak == "year":
            return is_short and not following
        word = item.value.word
        if weak != "month" or word in self.language.ambiguous or word in self.language.names:
            return False
        is_case = word[0].isalpha() and word not in self.language.phrases
        is_whole = word.isdecimal() or len(word) > 3  # 五月天 is a band
        return is_short or is_case or (is_whole and is_unspaced(self.words[item.last - 1][0]))

    def _has_context(self, item: Item, weak: str, before: str) -> bool:
        language = self.language
        following = self.follows(item)
        if weak == "container" or before in language.every or before in language.things:
            return False
        if following in language.measures or following in language.things:
            return False
        if weak == "year" and following and self.word(item.last + 1) in language.things:
            return False
        if before in _QUOTES and self.glued(item.first) and weak != "decade":
            return False
        article = before in language.articles
        leading = self.word(item.first - 2) if article else before
        alone = item.first == 0 and not following and item.last >= len(self.words) - 1
        if language.is_general:
            return alone or self._is_in_short_context(item, weak, before, following)
        in_context = not language.bare.get(weak, frozenset()).isdisjoint((before, leading))
        ends = not self.continued(item)
        if weak in ("decade", "ages"):
            if before in language.possessives or following in language.ages:
                return False
            written = self.text[slice(self.spots[item.first][0], self.spots[item.last - 1][1])]
            if weak == "ages" or article or alone or before == "'" or written[2:3] != "s":
                return True
            return (
                before in language.bare["year"] and written[0] in "789"
            )  # "in 30s" is half a minute
        if weak == "year":
            year = item.value.first.year
            is_recent = 1970 <= year <= self.today.year + 5 and year % 100 > 0
            if language.has_capital_nouns:
                # "was habe ich 2019 gemacht", "was kam 2021 dazu", but not "wer hat Office 2019"
                in_context = in_context or before in language.little and ends
                in_context = in_context or is_recent and self._is_beside_no_noun(item)
            elif (article or before in language.possessives or before.endswith("'s")) and not ends:
                # "the 2025 budget", but neither "the 2000 users" nor "the 2025 Corolla"
                in_context = in_context or is_recent and not self._is_capital(item.last)
            return (in_context and 1500 <= year <= self.today.year + 20) or alone
        if weak == "month":
            word = item.value.word
            if article and word in language.ambiguous:
                return False
            if word in language.names and leading in language.toward:
                return not self._is_capital(item.first) and in_context
            return in_context or alone
        if weak == "weekday":
            if item.value.word in language.ambiguous and not (leading == "on" and ends):
                return alone
            if before in language.possessives or (article and leading == "in"):
                return False
            if following and self.words[item.last - 1].endswith("'s"):
                return not self._is_capital(item.last)  # "Monday's report"
            if language.has_capital_nouns:
                return in_context or ends
            if in_context:
                return ends or not self._is_capital(item.last)
            if item.first > 1 and self._is_capital(item.first) and self._is_capital(item.first - 1):
                return False  # "Ruby Tuesday"
            if article or before == "called":
                return False
            return following == "" or (language.has_bare_weekday and ends)
        if weak in ("holiday", "season"):
            past = any(word in language.past for word in self.words)
            if not past and any(word in language.habitual for word in self.words):
                return False
            if weak == "season":
                alone = before in language.bare["season alone"]  # without an article
                return in_context and ends and (article or alone)
            return in_context or alone or item.first == 0
        if article and weak == "numeric" and not ends:
            return alone
        return in_context or alone
