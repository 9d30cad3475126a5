"""A question as a string of classes: tokens, numbers, phrases, and what stands around them."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

from . import calendar as cal
from .calendar import Cycle, Span
from .languages import Language

_TOKEN = re.compile(r"\d+'?s(?![^\W\d_])|[^\W\d_]+(?:'[^\W\d_]+)*|\d+|\S")
_TIME_OF_ISO = re.compile(r"(?<=\d\d-\d\d)[Tt]\d\d:\d\d[\d:.,]*(?:Z|z|[+-]\d\d:?\d\d)?")
_LONGEST = 1_000  # characters looked at: half at each end of a longer text
_NO_WORD = re.compile(r"\S{41,}")  # a path, a hash, a run of digits
_PUNCTUATION = {",": ",", "/": "/", ".": ".", "-": "-", "–": "-", "—": "-", "~": "-"}
_OPENING = frozenset("([{\"',;:!?=<>—–“‘*|")
_CLOSING = frozenset(")]}\"',;:!?.=<>—–”*|")
_QUOTES = frozenset("\"'“”‘`")


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _same(word: str, listed: str) -> bool:
    """Whether a word is the listed one, its possessive or its plural possessive."""
    return word == listed or word.removesuffix("'s") == listed or word.replace("'", "") == listed


class Item:
    """One letter of the sentence: its class, its value, and the tokens it covers."""

    __slots__ = ("letter", "value", "first", "last")

    def __init__(self, letter: str, value: Any, first: int, last: int) -> None:
        self.letter = letter
        self.value = value
        self.first = first
        self.last = last


class Group:
    """The items a rule matched, by the names of its groups."""

    __slots__ = ("match", "items")

    def __init__(self, match: re.Match[str], items: list[Item]) -> None:
        self.match = match
        self.items = items

    def item(self, name: str) -> Item | None:
        """Return the first item of a group, or None when it took no part."""
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
    """A question on its way through the rules."""

    __slots__ = (
        "text",
        "now",
        "today",
        "language",
        "day_first",
        "south",
        "country",
        "recent_days",
        "spots",
        "words",
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
    ) -> None:
        self.text = text
        self.now = now
        self.today = now.date()
        self.language = language
        self.day_first = day_first
        self.south = south
        self.country = country
        self.recent_days = recent_days
        self.spots: list[tuple[int, int]] = []
        self.words: list[str] = []
        self.items: list[Item] = []
        self._tokenise()
        self._classify()
        self.letters = "".join([item.letter for item in self.items])

    def _tokenise(self) -> None:
        text = self.text.replace("’", "'")
        if len(text) > _LONGEST:
            cut = _LONGEST // 2
            text = text[:cut] + " " * (len(text) - _LONGEST) + text[-cut:]
        if len(text) > 40:
            text = _NO_WORD.sub(_blank, text)
        if "-" in text:
            text = _TIME_OF_ISO.sub(_blank, text)
        for match in _TOKEN.finditer(text):
            self.spots.append(match.span())
            self.words.append(match[0].lower())

    def glued(self, token: int) -> bool:
        """Whether a token follows the one before it without a space."""
        return 0 < token < len(self.spots) and self.spots[token][0] == self.spots[token - 1][1]

    def tight(self, items: list[Item]) -> bool:
        """Whether the items are written without a space between them."""
        return all(self.glued(item.first) for item in items[1:])

    def word(self, token: int) -> str:
        """Return a token in lower case, or "" outside the text."""
        return self.words[token] if 0 <= token < len(self.words) else ""

    # Tokens to classes ------------------------------------------------------------------------

    def _classify(self) -> None:
        token, count = 0, len(self.words)
        while token < count:
            item = self._item(token)
            self.items.append(item)
            token = item.last

    def _item(self, token: int) -> Item:
        word = self.words[token]
        if word[0].isdigit():
            return self._digits(token, word)
        mark = _PUNCTUATION.get(word)
        if mark:
            return Item(mark, word, token, token + 1)
        if word == "'" and len(self.word(token + 1)) == 2 and self.glued(token + 1):
            year = self.words[token + 1]  # '98
            if year.isdecimal() and not self.glued(token):
                return Item("y", self.full_year(int(year)), token, token + 2)
        phrase = self._phrase(token, word)
        if phrase:
            return phrase
        number = self._spelled(token)
        if number:
            return number
        if word in ("q", "h") and self.glued(token + 1) and self.words[token + 1] in "1234":
            count = int(self.words[token + 1])
            if word == "q" or count < 3:
                return Item("q", (word, count), token, token + 2)
        if not word[0].isalpha():
            return Item('"' if word in _QUOTES else ";", word, token, token + 1)
        return Item("z", word, token, token + 1)

    def _phrase(self, token: int, word: str) -> Item | None:
        phrases = self.language.phrases
        entries = phrases.get(word)
        if entries is None and word.endswith("'s"):
            entries = phrases.get(word[:-2])
        for words, letter, value in entries or ():
            last = token + len(words)
            if len(words) == 1 or all(map(_same, self.words[token + 1 : last], words[1:])):
                if last <= len(self.words):
                    return Item(letter, value, token, last)
        return None

    def full_year(self, year: int) -> int:
        """Complete a year of two digits: at most ten years ahead, otherwise past."""
        now = self.today.year
        return year + (now + 10 - year) // 100 * 100

    def _digits(self, token: int, word: str) -> Item:
        language = self.language
        if word.endswith("s"):
            return self._decade(word.rstrip("s'"), token, token + 1)
        if len(word) == 8 and word[:2] in ("19", "20"):
            days = cal.one_day(int(word[:4]), int(word[4:6]), int(word[6:]))
            if days:
                return Item("X", Span(*days, "day", 0.8, "dashed"), token, token + 1)
        if len(word) > 6:
            return Item(";", word, token, token + 1)
        value, after = int(word), self.word(token + 1)
        close = self.glued(token + 1)
        if close and after in language.ordinal_suffixes:
            return Item("o", value, token, token + 2)
        if after == "s" and len(word) in (2, 4):
            return self._decade(word, token, token + 2)
        if len(word) <= 2:
            if (
                after == ":"
                and close
                and self.glued(token + 2)
                and self.words[token + 2].isdecimal()
            ):
                last = token + 3
                if self.word(last) == ":" and self.glued(last + 1):
                    last += 2
                return Item("c", None, token, last)
            if after == "q" and close and 0 < value < 5:
                return Item("q", ("q", value), token, token + 2)
            if after in language.clock:
                return Item("c", None, token, token + 2)
            if after in ("a", "p") and self.word(token + 2) == "." and self.word(token + 3) == "m":
                return Item("c", None, token, token + 4)
            return Item("n", value, token, token + 1)
        if len(word) == 4 and 1000 <= value < 3000:
            return Item("y", value, token, token + 1)
        return Item("N", value, token, token + 1)

    def _decade(self, digits: str, token: int, last: int) -> Item:
        written = self.text[self.spots[token][0] : self.spots[last - 1][1]]
        if len(digits) not in (2, 4) or digits[-1] != "0" or digits[0] == "0" and len(digits) == 4:
            return Item(";", written, token, last)
        year = int(digits)
        if len(digits) == 4:
            return Item(
                "X", Span(date(year, 1, 1), date(year + 10, 1, 1), "decade", 1), token, last
            )
        return self._named_decade(year, token, last, weak="decade")

    def _named_decade(self, year: int, token: int, last: int, weak: str) -> Item:
        now = self.today.year
        year += (now - year) // 100 * 100
        if not 1 <= year <= 9980:
            return Item("z", "", token, last)
        span = Span(date(year, 1, 1), date(year + 10, 1, 1), "decade", 0.9, weak)
        return Item("X", span, token, last)

    def _small(self, token: int) -> tuple[int, bool, int] | None:
        """Read a number word below one hundred: its value, whether ordinal, the next token."""
        language, word = self.language, self.word(token)
        value = language.cardinals.get(word)
        if value is None:
            ordinal = language.ordinals.get(word)
            return None if ordinal is None else (ordinal, True, token + 1)
        if value >= 20:
            following = token + 1 + (self.word(token + 1) == "-" and self.glued(token + 1))
            unit = self.word(following)
            digit = language.cardinals.get(unit, 0)
            if 0 < digit < 10:
                return value + digit, False, following + 1
            digit = language.ordinals.get(unit, 0)
            if 0 < digit < 10:
                return value + digit, True, following + 1
        return value, False, token + 1

    def _spelled(self, token: int) -> Item | None:
        language = self.language
        decade = language.decades.get(self.words[token])
        if decade is not None:
            return self._named_decade(decade, token, token + 1, weak="ages")
        first = self._small(token)
        if first is None:
            return None
        value, is_ordinal, after = first
        if is_ordinal:
            return Item("o", value, token, after)
        word = self.word(after)
        if word in (language.thousand, language.hundred) and value:
            value *= 1000 if word == language.thousand else 100
            after += 1
            joined = after + (self.word(after) == language.and_word)
            if self.word(joined) == "tens" and value == 2000:
                return self._named_decade(10, token, joined + 1, weak="")
            second = self._small(joined)
            if second and not second[1]:
                value, after = value + second[0], second[2]
            return Item("y" if 1000 <= value < 3000 else "N", value, token, after)
        if value == 2 and word == language.thousand + "s":
            return self._named_decade(0, token, after + 1, weak="ages")
        if 10 <= value <= 20:
            dash = self.word(after) == "-" and self.glued(after)
            plural = self.word(after + dash)
            tens = 10 if plural == "tens" else language.decades.get(plural)
            if tens is not None:
                start = date(value * 100 + tens, 1, 1)
                span = Span(start, date(start.year + 10, 1, 1), "decade")
                return Item("X", span, token, after + dash + 1)
            second = self._small(after)
            if second and not second[1] and second[0] >= 10:
                return Item("y", value * 100 + second[0], token, second[2])
            if word in language.zero_words:
                second = self._small(after + 1)
                if second and not second[1] and second[0] < 10:
                    return Item("y", value * 100 + second[0], token, second[2])
        return Item("n", value, token, after)

    # What the rules ask ----------------------------------------------------------------------

    def closed(self, value: Any) -> Span | None:
        """Tie a value to the calendar by the past reading: the last one that has begun."""
        if isinstance(value, Cycle):
            return value.latest(self.today)
        if isinstance(value, Span) and value.start and value.end:
            return value
        return None

    def follows(self, item: Item) -> str:
        """Return the word after an item, "" when none or when punctuation comes first."""
        word = self.word(item.last)
        return word if word[:1].isalnum() else ""

    def is_verb(self, item: Item) -> bool:
        """Whether an ambiguous word ("may", "march", "sat") is followed like a verb or a noun."""
        spot = self.spots[item.first][0]
        return (
            self.words[item.first] in self.language.ambiguous
            and self.text[spot].islower()
            and (
                self.follows(item) not in ("", *self.language.little)
                or self.follows(item) in self.language.after_modal
            )
        )

    def counted(self, item: Item) -> bool:
        """Whether a counted noun follows ("2000 users")."""
        return self.follows(item) in self.language.measures

    def sound(self, item: Item) -> bool:
        """Whether a span may stand as an answer where it stands."""
        before, after = self.word(item.first - 1), self.word(item.last)
        if self.glued(item.first) and before not in _OPENING:
            if not (before == "." and len(self.word(item.first - 2)) > 1):
                return False
        if self.glued(item.last):
            if after not in _CLOSING:
                return False
            following = self.word(item.last + 1)
            if self.glued(item.last + 1) and following[:1].isalnum() and after not in ')]},;"':
                return False
        if after == "%" or before in ("$", "€", "£", "#", "@"):
            return False
        weak = item.value.weak
        return not weak or self._has_context(item, weak, before)

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
        article = before == "the"
        leading = self.word(item.first - 2) if article else before
        alone = item.first == 0 and not following and item.last >= len(self.words) - 1
        in_context = leading in language.bare.get(weak, frozenset())
        ends = following in ("", *language.little)
        if weak in ("decade", "ages"):
            if before in language.possessives or following in ("old", "years"):
                return False
            written = self.text[slice(self.spots[item.first][0], self.spots[item.last - 1][1])]
            if weak == "ages" or article or alone or before == "'" or written[2:3] != "s":
                return True
            return (
                before in language.bare["year"] and written[0] in "789"
            )  # "in 30s" is half a minute
        if weak == "year":
            year = item.value.first.year
            return (in_context and 1500 <= year <= self.today.year + 20) or alone
        if weak == "month":
            word = item.value.word
            if article and word in language.ambiguous:
                return False
            if word in language.names and leading in ("for", "by", "to", "with", "about", "from"):
                return False
            return in_context or alone
        if weak == "weekday":
            capital = self.text[self.spots[min(item.last, len(self.spots) - 1)][0]].isupper()
            if item.value.word in language.ambiguous and not (leading == "on" and ends):
                return alone
            if before in language.possessives or (article and leading == "in"):
                return False
            if in_context:
                return ends or not capital
            if item.first > 1 and self.text[self.spots[item.first - 1][0]].isupper():
                return False  # "Ruby Tuesday"
            return not article and before != "called" and following == ""
        if weak in ("holiday", "season"):
            past = any(word in language.past for word in self.words)
            if not past and any(word in language.habitual for word in self.words):
                return False
            if weak == "season":
                return (article and in_context and ends) or before == "since"
            return in_context or alone or item.first == 0
        return in_context or alone
