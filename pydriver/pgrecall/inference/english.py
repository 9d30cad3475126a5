"""Detect queries in another language than English, the one the packaged reranker reads.

The evidence is the script and the words that the date grammars of seven languages know. Names,
identifiers and words of several languages are no evidence.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from pgrecall.temporal.languages import KNOWN, Language, language

_WORD = re.compile(r"[^\W\d_]+'?")
_NAME = re.compile(r"(?:[^\W\d_a-z]\w+ )+(?:[a-z]+ ){1,2}[^\W\d_a-z]\w+")  # "Ana de la Cruz"
_ODD = 0.25  # above it are 0.6% of the English questions of XQuAD, 89% of the German
_ONE_IN = 4  # one letter in so many may be of another script


def is_of_another_language(query: str, odd: float) -> bool:
    """Return whether a query is certainly not English.

    It is not if more than a quarter of its letters are of another script; if it has at least two
    words of another language and fewer of English; or if it has a function word of another
    language, none of English, and many words that the model does not know.

    Args:
        query: The query.
        odd: The share of the query's words that the model does not know.

    """
    letters = [letter for letter in query if letter.isalpha()]
    strange = [one for one in letters if not unicodedata.name(one, "").startswith("LATIN")]
    if len(strange) * _ONE_IN > len(letters):
        return True
    if _NAME.fullmatch(query):
        return False
    english, others = _words()
    words = {
        word.lower()
        for place, word in enumerate(_WORD.findall(query))
        if word[0].islower() or (place == 0 and not word[1:].isupper())
    }
    words |= {word.removesuffix("'") for word in words}
    known = len(words & english)
    little = max(len(words & few) for few, _ in others)
    found = max(len(words & many) for _, many in others)
    return found > max(known, 1) or (little > 0 and known == 0 and odd > _ODD)


@cache
def _words() -> tuple[frozenset[str], list[tuple[frozenset[str], frozenset[str]]]]:
    """Return the words of English, and the function words and all words of other languages."""
    english = _all(language("en"))
    others = [language(code) for code in KNOWN if code != "en"]
    return english, [(_little(table) - english, _all(table) - english) for table in others]


def _little(table: Language) -> frozenset[str]:
    return table.little | table.articles | table.possessives | table.past | table.habitual


def _all(table: Language) -> frozenset[str]:
    nouns = table.general | table.measures | table.things
    return _little(table) | nouns | table.toward | table.every | table.lexicon.keys()
