"""How many words of a question a model knows, by how its tokenizer takes them apart.

A vocabulary holds the words of the languages that the model was trained on. Others come out in
pieces, as unknown, or, in scripts without spaces, letter by letter: the model then has little to
say about the question, whatever it answers.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pgrecall.inference.interfaces import Embedder

_UNKNOWN = "[UNK]"


@runtime_checkable
class KnowsWords(Protocol):
    """An embedder that says how much of a question it can read."""

    def known_words(self, text: str) -> float:
        """Return the share of the words of a question that the model knows, 0 to 1."""
        ...


def known_words(embedder: Embedder, text: str) -> float:
    """Return what an embedder says; 1 for one that says nothing."""
    return embedder.known_words(text) if isinstance(embedder, KnowsWords) else 1.0


def known_share(tokenizer: Any, text: str) -> float:
    """Return the share of the words, without names, that are one known piece of ASCII."""
    read = tokenizer.encode(text, add_special_tokens=False)
    words = [list(pieces) for _, pieces in groupby(range(len(read)), read.word_ids.__getitem__)]
    odd: list[bool] = []
    for first, *rest in words:
        start, piece = read.offsets[first][0], read.tokens[first]
        if text[start].isalpha() and (start == 0 or not text[start].isupper()):
            odd.append(rest != [] or piece == _UNKNOWN or not piece.isascii())
    # As if one more were known: one rare word does not make another language.
    return 1 - sum(odd) / (1 + len(odd))
