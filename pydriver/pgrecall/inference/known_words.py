"""The share of a question's words that a model knows, by its tokenizer.

A vocabulary holds the words of the languages that the model was trained on. Other words are split
into pieces or letters, or are unknown: then the model's vectors say little about the question.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pgrecall.inference.interfaces import Embedder

_UNKNOWN = "[UNK]"
_LEAST_LETTERS = 3  # of a known word that says something about the language
_SENTENCE = 4  # words that make capital letters a way of writing, not names


@runtime_checkable
class KnowsWords(Protocol):
    """An embedder that reports how much of a question its model knows."""

    def known_words(self, text: str) -> float:
        """Return the share of the words that the model knows, 0 to 1."""
        ...


def known_words(embedder: Embedder, text: str) -> float:
    """Return the share that an embedder reports; 1 if it reports none."""
    return embedder.known_words(text) if isinstance(embedder, KnowsWords) else 1.0


def known_share(tokenizer: Any, text: str) -> float:
    """Return the share of the words that are a single known token in ASCII.

    Names do not count, as capital letters tell them, nor words of one or two letters: a vocabulary
    holds "de" and "la" as abbreviations and names.
    """
    read = tokenizer.encode(text, add_special_tokens=False)
    words = [list(pieces) for _, pieces in groupby(range(len(read)), read.word_ids.__getitem__)]
    starts = [read.offsets[first][0] for first, *_ in words]
    letters = sum(text[start].isalpha() for start in starts)
    has_names = letters < _SENTENCE or not all(c.isupper() for c in text if c.isalpha())
    odd: list[bool] = []
    for start, (first, *rest) in zip(starts, words, strict=True):
        piece = read.tokens[first]
        if not text[start].isalpha() or (has_names and start > 0 and text[start].isupper()):
            continue
        is_odd = rest != [] or piece == _UNKNOWN or not piece.isascii()
        if is_odd or len(piece) >= _LEAST_LETTERS:
            odd.append(is_odd)
    # One more counts as known, since one rare word does not make another language.
    return 1 - sum(odd) / (1 + len(odd))
