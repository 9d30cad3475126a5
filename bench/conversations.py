"""What benchmarks over conversations share: the file, the banks and the measures.

A file holds conversations: {conversation_id, speakers, turns: [{id, speaker, text, caption,
session, at}], questions: [{id, question, relevant, category}]}. A conversation becomes a bank and
each turn a fact, `speaker: text [caption]`, with the speaker as its entity and the time of the
session as `occurred` and `mentioned_at`. A question is asked at the time of the last turn. Where
the file has no session, a message of speaker `user` and the answers to it are one.

Required are conversation_id, turns, the ids of turns, and questions. What cannot be stored or asked
is cut or left out, and read() prints how much that was: texts, contexts and questions are cut to
the length that the schema accepts; turns without text and questions that no turn answers are left
out.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import harness

from pgrecall import Recall
from pgrecall.embedders import DEFAULT_EMBEDDER, SentenceTransformerEmbedder

if TYPE_CHECKING:
    from pgrecall.evaluation.measure import CachedEmbedder

MEASURES = ("ndcg10", "recall10", "recall20")


@dataclass(frozen=True)
class Turn:
    turn_id: str
    speaker: str
    text: str
    caption: str
    session: str
    at: datetime | None

    @property
    def said(self) -> str:
        """The text with its speaker and the caption of what was shown, however long."""
        caption = f" [{self.caption}]" if self.caption else ""
        speaker = f"{self.speaker}: " if self.speaker else ""
        return f"{speaker}{self.text}{caption}"

    def fact(self, context: str = "") -> dict[str, Any]:
        """Return the fact that retain() takes, without empty fields."""
        time = self.at.isoformat() if self.at else None
        fact = {
            "text": self.said[: harness.LONGEST],
            "context": context[: harness.LONGEST],
            "fact_type": "experience" if self.speaker else "world",
            "source_id": self.turn_id,
            "entities": [self.speaker] if self.speaker else [],
            "occurred": time,
            "mentioned_at": time,
        }
        return {key: value for key, value in fact.items() if value}


@dataclass(frozen=True)
class Question:
    bank: str
    text: str
    category: str
    relevant: frozenset[str]
    sessions: frozenset[str]
    """The sessions of the relevant turns."""
    asked_at: datetime | None


@dataclass(frozen=True)
class Conversation:
    bank: str
    speakers: tuple[str, ...]
    text_search_config: str
    turns: Sequence[Turn]
    questions: Sequence[Question]
    asked_at: datetime | None
    """Time of the last turn. None, which means now, where no turn has a time."""

    def contexts(self) -> list[str]:
        """Join the turns before and after each turn, however long; none where nobody speaks.

        Paragraphs and answers of a file stand beside each other because they answer one question.
        """
        said = ["", *(turn.said for turn in self.turns), ""]
        return [
            f"{before} {after}".strip() if turn.speaker else ""
            for before, turn, after in zip(said, self.turns, said[2:], strict=False)
        ]


def caching_embedder(model: str | None = None) -> CachedEmbedder:
    """Return a model that embeds each text only once: embedding is not measured."""
    # Which other commits' drivers may lack.
    from pgrecall.embedders import PACKAGED_EMBEDDERS
    from pgrecall.evaluation.measure import CachedEmbedder

    if model is None:
        return CachedEmbedder(DEFAULT_EMBEDDER)
    return CachedEmbedder(PACKAGED_EMBEDDERS.get(model) or SentenceTransformerEmbedder(model))


def read(path: Path, at_most: int | None = None) -> list[Conversation]:
    """Read a file of conversations; end the program with the reason where it is invalid.

    Args:
        path: The file.
        at_most: How many conversations to return, the first that have questions. Default: all.

    """
    try:
        rows = json.loads(harness.require(path).read_text(encoding="utf-8"))
        found = [
            _conversation(row, f"conversation {n}")
            for n, row in enumerate(_objects(rows, "the whole"), 1)
        ]
        _check_banks(found)
    except ValueError as error:
        sys.exit(f"{path} is no file of conversations: {error}")
    _print_cuts(path, rows, found)
    if not any(conversation.questions for conversation in found):
        sys.exit(f"{path} has no question with a relevant turn: there is nothing to measure")
    return found if at_most is None else [c for c in found if c.questions][:at_most]


def _conversation(row: Mapping[str, Any], place: str) -> Conversation:
    bank = _id(row.get("conversation_id"), f"{place}: conversation_id")
    turns = [
        Turn(
            _id(turn.get("id"), f"{place}: turn {n}: id"),
            _text(turn.get("speaker"), f"{place}: turn {n}: speaker"),
            _text(turn.get("text"), f"{place}: turn {n}: text"),
            _text(turn.get("caption"), f"{place}: turn {n}: caption"),
            str(turn.get("session") or ""),
            _moment(turn.get("at"), f"{place}: turn {n}: at"),
        )
        for n, turn in enumerate(_objects(row.get("turns"), f"{place}: turns"), 1)
    ]
    turns = list(_in_rounds(turn for turn in turns if turn.text.strip()))
    session_of = {turn.turn_id: turn.session for turn in turns}
    asked_at = max((turn.at for turn in turns if turn.at is not None), default=None)
    questions = []
    for n, question in enumerate(_objects(row.get("questions"), f"{place}: questions"), 1):
        relevant = _relevant(question, f"{place}: question {n}") & session_of.keys()
        questions.append(
            Question(
                bank,
                _text(question.get("question"), f"{place}: question {n}")[: harness.LONGEST],
                _text(question.get("category"), f"{place}: question {n}: category") or "all",
                relevant,
                frozenset(session_of[turn] for turn in relevant),
                asked_at,
            )
        )
    return Conversation(
        bank,
        tuple(_text(name, f"{place}: speakers") for name in row.get("speakers") or ()),
        _text(row.get("text_search_config"), f"{place}: text_search_config") or "english",
        turns,
        [question for question in questions if question.text.strip() and question.relevant],
        asked_at,
    )


def _in_rounds(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Make each round of a chat with an assistant a session, named by its first turn."""
    first = ""
    for turn in turns:
        first = turn.turn_id if turn.speaker == "user" else first
        yield turn if turn.session else replace(turn, session=first)


def _objects(rows: Any, place: str) -> list[dict[str, Any]]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{place} is not a list of objects")
    return rows


def _id(value: Any, place: str) -> str:
    if value is None or value == "" or not isinstance(value, (str, int)):
        raise ValueError(f"{place} is {json.dumps(value)}, not a string")
    return _text(str(value), place)


def _text(value: Any, place: str) -> str:
    if not isinstance(value, (str, type(None))):
        raise ValueError(f"{place} is {json.dumps(value)[:80]}, not a string")
    # PostgreSQL stores neither NUL nor halves of UTF-16 pairs.
    return (value or "").replace("\0", "").encode(errors="ignore").decode()


def _moment(value: Any, place: str) -> datetime | None:
    text = _text(value, place)
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error
    return found.replace(tzinfo=timezone.utc) if found and found.tzinfo is None else found


def _relevant(question: Mapping[str, Any], place: str) -> frozenset[str]:
    ids = question.get("relevant") or []
    if not isinstance(ids, list):
        raise ValueError(f"{place}: relevant is not a list of ids of turns")
    return frozenset(_id(turn, f"{place}: relevant") for turn in ids)


def _check_banks(found: Sequence[Conversation]) -> None:
    banks = [conversation.bank for conversation in found]
    twice = next((bank for bank in banks if banks.count(bank) > 1), None)
    if twice is not None:
        raise ValueError(f'two conversations have the conversation_id "{twice}"')


def _print_cuts(
    path: Path, rows: Sequence[Mapping[str, Any]], found: Sequence[Conversation]
) -> None:
    """Print how much of a file was cut or left out."""
    limit = f"cut after {harness.LONGEST:,} characters, as many as the schema takes"
    asked = [question for row in rows for question in row["questions"]]
    counts = {
        f"texts {limit}": sum(len(t.said) > harness.LONGEST for c in found for t in c.turns),
        f"contexts {limit}": sum(len(x) > harness.LONGEST for c in found for x in c.contexts()),
        f"questions {limit}": sum(len(q.get("question") or "") > harness.LONGEST for q in asked),
        "turns without text left out": sum(
            len(row["turns"]) - len(c.turns) for row, c in zip(rows, found, strict=True)
        ),
        "questions without text or without a relevant turn left out": len(asked)
        - sum(len(c.questions) for c in found),
    }
    for what, count in counts.items():
        if count:
            print(f"{path.name}: {count} {what}")


def questions(conversations: Iterable[Conversation]) -> list[Question]:
    return [question for conversation in conversations for question in conversation.questions]


def fill(
    recall: Recall, conversation: Conversation, facts: Iterable[Mapping[str, Any]], suffix: str = ""
) -> None:
    """Fill a new bank with facts. Its name is that of the conversation with the suffix."""
    bank = f"{conversation.bank}{suffix}"
    harness.new_bank(recall, bank, text_search_config=conversation.text_search_config)
    recall.retain_many(bank, facts)


def fill_plain(recall: Recall, conversation: Conversation, suffix: str = "") -> None:
    """Fill a bank with the turns alone."""
    fill(recall, conversation, (turn.fact() for turn in conversation.turns), suffix)


def fill_in_context(recall: Recall, conversation: Conversation) -> None:
    """Fill a bank with the turns, each with the turns before and after it as context."""
    fill(recall, conversation, _in_context(conversation))


def fill_by_session(recall: Recall, conversation: Conversation, suffix: str) -> None:
    """Fill a bank with the turns in context; the source of a turn is its session."""
    facts = (
        {**fact, "source_id": turn.session}
        for turn, fact in zip(conversation.turns, _in_context(conversation), strict=True)
    )
    fill(recall, conversation, facts, suffix)


def _in_context(conversation: Conversation) -> Iterator[dict[str, Any]]:
    for turn, context in zip(conversation.turns, conversation.contexts(), strict=True):
        yield turn.fact(context)


def measures(ranking: Sequence[str], relevant: frozenset[str]) -> tuple[float, ...]:
    """Return the figures of MEASURES for one question."""
    found10, found20 = (len(relevant & set(ranking[:n])) / len(relevant) for n in (10, 20))
    return ndcg(ranking, relevant, 10), found10, found20


def ndcg(ranking: Sequence[str], relevant: frozenset[str], depth: int) -> float:
    """Return the nDCG of the first rows."""
    gain = sum(1 / math.log2(i + 2) for i, turn in enumerate(ranking[:depth]) if turn in relevant)
    return gain / sum(1 / math.log2(i + 2) for i in range(min(depth, len(relevant))))
