"""The languages the temporal grammar can read, each one a table of words."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache


@dataclass(frozen=True, slots=True)
class Language:
    """The words of one language, as classes that the grammar's patterns are written over.

    Attributes:
        lexicon: Phrase (lower case, one space between words) to its classes' letter and value;
            the letters are listed in ``grammar``.
        cardinals: Number words below one hundred, and their values.
        ordinals: Ordinal words up to the thirtieth, and their values.
        ordinal_suffixes: Letters that make a glued number an ordinal.
        hundred, thousand, and_word: Words that build larger numbers.
        zero_words: Words said for a zero inside a spelled year ("nineteen oh one").
        decades: Plural number words that name a decade, and its years within a century.
        bare: What may stand before a date word that could be something else, by kind of word.
        ambiguous: Date words that are also common verbs or nouns.
        names: Month names that people also bear.
        possessives: Words after which a decade is an age and a weekday somebody's habit.
        every: Words before a date word that make it a habit.
        habitual: Words that make a whole question about habits.
        general: Words that make a span of time a rate ("how much can it eat in a day").
        spanning: Words before "the past year" that make it the year up to now.
        past: Words that put a question into the past, habits or not.
        after_modal: Words that follow "may" the verb but could follow a date too.
        not_recent: Words before "recently" that make it a comparison.
        things: Nouns that carry a number or a name that looks like a date ("room 2019").
        measures: Nouns that are counted ("2000 users").
        little: Words that can follow a date without forming a name or a compound with it.
        clock: Words that make the number before them a time of day.
        session: Pattern of the clauses that mean the end of the last conversation.
        clause_openers: Words that can begin an anchor clause after "since" and the like.

    """

    lexicon: dict[str, tuple[str, object]]
    cardinals: dict[str, int]
    ordinals: dict[str, int]
    ordinal_suffixes: frozenset[str]
    hundred: str
    thousand: str
    and_word: str
    zero_words: frozenset[str]
    decades: dict[str, int]
    bare: dict[str, frozenset[str]]
    ambiguous: frozenset[str]
    names: frozenset[str]
    possessives: frozenset[str]
    every: frozenset[str]
    habitual: frozenset[str]
    general: frozenset[str]
    spanning: frozenset[str]
    past: frozenset[str]
    after_modal: frozenset[str]
    not_recent: frozenset[str]
    things: frozenset[str]
    measures: frozenset[str]
    little: frozenset[str]
    clock: frozenset[str]
    session: str
    clause_openers: frozenset[str]
    phrases: dict[str, list[tuple[tuple[str, ...], str, object]]] = field(init=False)

    def __post_init__(self) -> None:
        """Index the lexicon by first word, longest phrase first."""
        index: dict[str, list[tuple[tuple[str, ...], str, object]]] = {}
        for phrase, (letter, value) in self.lexicon.items():
            words = tuple(phrase.split())
            index.setdefault(words[0], []).append((words, letter, value))
        for entries in index.values():
            entries.sort(key=lambda entry: -len(entry[0]))
        object.__setattr__(self, "phrases", index)


@cache
def language(code: str) -> Language:
    """Return the table of a language.

    Raises:
        ValueError: no table for that code.

    """
    if code == "en":
        from . import en

        return en.ENGLISH
    raise ValueError(f'language "{code}" is not known to the temporal grammar, only "en"')


__all__ = ["Language", "language"]
