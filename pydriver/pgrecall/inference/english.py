"""Whether a query is of another language than the English that the packaged reranker reads.

Its script and its words tell: the words are those by which dates are read in seven languages.
Names, identifiers and words that could be of any language are not evidence.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from pgrecall.temporal.languages import KNOWN, Language, language

_WORD = re.compile(r"[^\W\d_]+'?")
_NAME = re.compile(r"(?:[^\W\d_a-z]\w+ )+(?:[a-z]+ ){1,2}[^\W\d_a-z]\w+")  # "Ana de la Cruz"
_ODD = 0.25  # over it are 0.6% of XQuAD's questions in English, 89% in German, all in Chinese
_ONE_IN = 4  # letters of another script


def is_of_another_language(query: str, odd: float) -> bool:
    """Tell whether a query is certainly not English.

    That is where it has letters of another script, two words of another language and fewer of
    English, or, beside words that a model of English does not know, one such and none of English.

    Args:
        query: The query.
        odd: The share of its words that the model does not know.

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
    """Return the words of English, and for each other language the little ones and all it has."""
    english = _all(language("en"))
    others = [language(code) for code in KNOWN if code != "en"]
    return english, [(_little(table) - english, _all(table) - english) for table in others]


def _little(table: Language) -> frozenset[str]:
    return table.little | table.articles | table.possessives | table.past | table.habitual


def _all(table: Language) -> frozenset[str]:
    nouns = table.general | table.measures | table.things
    return _little(table) | nouns | table.toward | table.every | table.lexicon.keys()
