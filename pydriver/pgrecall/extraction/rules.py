"""Extract facts without a model: each sentence is a fact, and rules find its names and times.

Names are runs of capitalised words. A word at the start of a sentence is a name only if it is
capitalised elsewhere in the messages, is a speaker, or begins a run and is never in lower case. A
sentence in capitals has no names. The only list of words is that of particles within names. Times
are read as in questions, relative to when the message was sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import dropwhile
from typing import Any

from pgrecall.extraction.talk import Message, is_said, moment, speaker_of, text_of
from pgrecall.sentences import sentences
from pgrecall.temporal import TemporalConstraint, extract_temporal_constraint, languages_of

Names = Callable[[str], Iterable[str]]
"""Finds the names in a text."""

_PARTICLES = frozenset(
    "of the de del della di da do dos du la le les el van von der den al bin".split()
)
_WORD = re.compile(r"[^\W_][\w'’&.-]*[^\W_]|[^\W_]")
_PIECE = re.compile(r"\w+|[^\w\s]")
_LONGEST_NAME = 500  # characters that the schema takes
_LEAST_WORDS = 3
_LEAST_SURE = 0.7  # minimum confidence of a date; fuzzy words such as "recently" have less


class _Phrases:
    """Phrases to look for in texts, however many there are: a tree of their words and signs."""

    def __init__(self, meanings: Mapping[str, str]) -> None:
        self._tree: dict[str, Any] = {}
        for phrase, meaning in meanings.items():
            branch = self._tree
            for piece in _PIECE.findall(phrase):
                branch = branch.setdefault(piece, {})
            branch.setdefault("", {})[phrase] = meaning

    def within(self, text: str) -> Iterator[str]:
        """Return what the phrases mean that occur in a text as whole words."""
        pieces = [*_PIECE.finditer(text)]
        for first, begin in enumerate(pieces):
            branch = self._tree
            for n in range(first, len(pieces)):
                branch = branch.get(pieces[n].group(), {})
                if not branch:
                    break
                for phrase, meaning in branch.get("", {}).items():
                    whole = re.compile(rf"(?<!\w){re.escape(phrase)}(?!\w)")
                    if whole.match(text, begin.start()):
                        yield meaning


@dataclass(frozen=True, slots=True)
class _Known:
    """Names known without a rule, by their aliases in lower case.

    Those that were given are found in lower case, too, those of speakers as they are written.
    """

    names: Mapping[str, str]
    given: _Phrases
    written: _Phrases


@dataclass(frozen=True, slots=True)
class RuleExtractor:
    """Makes a fact of each sentence, with its speaker, names and time.

    Deterministic, without a model. Questions, sentences of one or two words and messages of the
    system are left out. The context of a fact has the speaker, the two sentences before, the one
    behind, and the last two of the message before in the same session; its metadata name the
    speaker, too.

    Attributes:
        aliases: Other names of entities, by name: ``{"Melanie": ["Mel"]}``. They are also found in
            lower case.
        names: Function that finds additional names in a text; see :func:`spacy_names` and
            :func:`gliner_names`.
        language: Code of the language of dates; what it does not read is read in a language whose
            words name a time in the sentence.

    """

    aliases: Mapping[str, Sequence[str]] | None = None
    names: Names | None = None
    language: str = "en"

    def __call__(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Return the facts in messages."""
        return [fact for facts in self.by_message(messages) for fact in facts]

    def extract_new(
        self, messages: Sequence[Message], is_new: Sequence[bool]
    ) -> list[dict[str, Any]]:
        """Return the facts in the new ones of some messages."""
        by_message = zip(self.by_message(messages), is_new, strict=True)
        return [fact for facts, is_wanted in by_message if is_wanted for fact in facts]

    def by_message(self, messages: Sequence[Message]) -> list[list[dict[str, Any]]]:
        """Return the facts in each message; names are recognised from all messages."""
        texts = [text_of(message) for message in messages]
        inner, small = _written(texts)
        # Speakers are names, also at the start of a sentence.
        known = self._known(filter(_is_name, map(speaker_of, messages)))
        found = []
        earlier: object = None
        asked: list[str] = []
        for message, text in zip(messages, texts, strict=True):
            said = sentences(text) if is_said(message) else []
            answered = asked[-2:] if message.get("session") == earlier else []
            found.append(
                [
                    self._fact(sentence, message, inner, small, known)
                    | _context(message, [*said[max(0, n - 2) : n], *said[n + 1 : n + 2], *answered])
                    for n, sentence in enumerate(said)
                    if not sentence.endswith("?") and len(_WORD.findall(sentence)) >= _LEAST_WORDS
                ]
            )
            earlier, asked = message.get("session"), said
        return found

    def names_in(self, text: str) -> list[str]:
        """Return the names in a text, in order."""
        inner, small = _written([text])
        known = self._known()
        return [
            name
            for sentence in sentences(text)
            for name in self._names_in(sentence, self._when(sentence, None), inner, small, known)
        ]

    def _known(self, speakers: Iterable[str] = ()) -> _Known:
        """Return the names that are known without a rule."""
        given = {
            alias.casefold(): name
            for name, others in (self.aliases or {}).items()
            for alias in (name, *others)
        }
        names = {name.casefold(): name for name in speakers} | given
        # A speaker is found as written: Will and Rose are words in lower case.
        written = {name: name for alias, name in names.items() if alias not in given}
        return _Known(names, _Phrases(given), _Phrases(written))

    def _fact(
        self,
        sentence: str,
        message: Message,
        inner: set[str],
        small: set[str],
        known: _Known,
    ) -> dict[str, Any]:
        sent = moment(message)
        when = self._when(sentence, sent)
        names = list(self._names_in(sentence, when, inner, small, known))
        speaker = speaker_of(message)
        if _is_name(speaker):
            names.insert(0, speaker)
        fact: dict[str, Any] = {
            "text": sentence,
            "entities": [self._entity(name) for name in dict.fromkeys(names)],
            "metadata": {"speaker": speaker or None},
        }
        if sent is not None:
            fact["mentioned_at"] = sent
        if when is not None and when.start is not None and when.end is not None:
            fact |= {"occurred": [when.start, when.end], "fact_type": "event"}
        return fact

    def _entity(self, name: str) -> object:
        aliases = (self.aliases or {}).get(name)
        return {"name": name, "aliases": list(aliases)} if aliases else name

    def _names_in(
        self,
        sentence: str,
        when: TemporalConstraint | None,
        inner: set[str],
        small: set[str],
        known: _Known,
    ) -> Iterator[str]:
        time = when.matched if when else ""
        found = {
            run: None
            for run in _runs(sentence, inner, small, known)
            if not re.search(rf"(?<!\w){re.escape(run)}(?!\w)", time)
        }
        found |= dict.fromkeys(known.written.within(sentence))
        found |= dict.fromkeys(known.given.within(sentence.casefold()))
        if self.names is not None:
            found |= dict.fromkeys(self.names(sentence))
        yield from dict.fromkeys(known.names.get(name.casefold(), name) for name in found)

    def _when(self, sentence: str, sent: datetime | None) -> TemporalConstraint | None:
        at = sent or datetime.now(timezone.utc)
        when = extract_temporal_constraint(sentence, at, language=self.language)
        for language in languages_of(sentence) if when is None else ():
            when = extract_temporal_constraint(sentence, at, language=language)
        return when if when is not None and when.confidence >= _LEAST_SURE else None


def _context(message: Message, around: Sequence[str]) -> dict[str, str]:
    """Return the context of a sentence: who says it, and what is said around it."""
    context = ": ".join(part for part in (speaker_of(message), " ".join(around)) if part)
    return {"context": context} if context else {}


def _is_name(speaker: str) -> bool:
    """Return whether an entity may have the name of a speaker, which an emoji is not."""
    return _WORD.search(speaker) is not None


def _written(texts: Iterable[str]) -> tuple[set[str], set[str]]:
    """Return the words that are capitalised within sentences, and the words in lower case."""
    inner: set[str] = set()
    small: set[str] = set()
    for text in texts:
        for sentence in sentences(text):
            for found in _WORD.finditer(sentence):
                word = found.group()
                if word[0].islower():
                    small.add(word)
                elif word[0].isupper() and not _begins(sentence, found):
                    inner.add(word)
    return inner, small


def _begins(sentence: str, word: re.Match[str]) -> bool:
    """Return whether a word may be capitalised because of its position."""
    for n in range(word.start() - 1, -1, -1):
        if sentence[n] in ':"“”‘([':
            return True
        if re.match(r"\w", sentence[n]):
            return False
    return True


def _runs(sentence: str, inner: set[str], small: set[str], known: _Known) -> Iterator[str]:
    """Return runs of capitalised words."""
    run: list[re.Match[str]] = []
    words = [*_WORD.finditer(sentence)]
    if sentence.isupper() and len(words) >= _LEAST_WORDS:  # capitals say nothing there
        return
    for n, word in enumerate(words):
        text = word.group()
        is_capital = text[0].isupper() and (bool(run) or not re.match(r"I\b(?!\.)", text))
        is_near = bool(run) and not re.search(
            r"[,;:.!?()\"“”]", sentence[run[-1].end() : word.start()]
        )
        if run and not (is_near and (is_capital or text in _PARTICLES or text.isdigit())):
            yield from _name(sentence, run, inner, small, known)
            run = []
        if is_capital or run:
            run.append(word)
        if n == len(words) - 1 and run:
            yield from _name(sentence, run, inner, small, known)


def _name(
    sentence: str,
    run: list[re.Match[str]],
    inner: set[str],
    small: set[str],
    known: _Known,
) -> Iterator[str]:
    while run and run[-1].group() in _PARTICLES:
        run.pop()
    if run and _begins(sentence, run[0]):
        first = run[0].group()
        rest = sentence[run[1].start() : run[-1].end()] if run[1:] else ""
        if rest.casefold() in known.names:  # "Hey Melanie"
            run = run[1:]
            first = rest
        is_sure = first in inner or first.casefold() in known.names or first.isupper()
        if not is_sure and (len(run) == 1 or first.lower() in small or first.lower() in _PARTICLES):
            run = [*dropwhile(lambda word: word.group() in _PARTICLES, run[1:])]
    if run:
        name = sentence[run[0].start() : run[-1].end()]
        name = re.sub(r"['’]s$", "", name)
        if 1 < len(name) <= _LONGEST_NAME:
            yield name


def spacy_names(pipeline: Any) -> Names:
    """Find names with a loaded spaCy pipeline, such as en_core_web_sm."""
    return lambda text: [entity.text for entity in pipeline(text).ents]


def gliner_names(
    model: Any, labels: Sequence[str] = ("person", "organization", "location", "product", "event")
) -> Names:
    """Find names with a loaded GLiNER model."""
    return lambda text: [entity["text"] for entity in model.predict_entities(text, list(labels))]
