"""What is loaded and asked: facts with time and entities, questions, and vectors of all texts.

They are the same for every peer. A set becomes a database on the server. Sets of sentences are for
speed: each fact has three of 200 made names, by Zipf's law, and is a minute newer than the one
before; they lie in one bank or in many. The other sets are for quality: those of
bench/conversations.py, MuSiQue as bare text and with entities, and worlds. No peer is told about
relations or causes.
"""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from bench import conversations, harness
from bench.worlds.make import generate

NAMES, OF_A_FACT = 200, 3
QUALITY = ("locomo", "beam", "xquad", "fiqa", "musique", "entities", "worlds")
FILES = {"entities": "musique"}  # names of files that differ from that of the set
LANGUAGE = "xquad-en"  # the peers are set up for English
WORLDS = ("third", range(3))
OF_A_BANK = 100  # facts, where there are many banks
IN_BANKS = 100_000  # sentences; further banks hold the same again
BEGAN = datetime(2025, 1, 1, tzinfo=timezone.utc)

Embed = Callable[[Sequence[str]], Iterable[Sequence[float]]]


@dataclass(frozen=True)
class Fact:
    id: str
    text: str
    entities: list[str]
    at: str | None
    type: str = "world"


@dataclass(frozen=True)
class Asked:
    bank: str
    text: str
    asked_at: str | None
    relevant: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Set:
    """One set. Names of banks consist of letters, digits and underscores."""

    name: str
    banks: dict[str, list[Fact]]
    questions: list[Asked]

    @property
    def is_judged(self) -> bool:
        return any(question.relevant for question in self.questions)

    @property
    def key(self) -> str:
        """A text that differs from that of every other set."""
        text = json.dumps(
            [(bank, [asdict(f) for f in facts]) for bank, facts in self.banks.items()]
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def sentences(folder: Path, facts: int, questions: int) -> Set:
    """Make a set of sentences, all in one bank."""
    return Set(str(facts), *_sentences(folder, {"all": facts}, questions))


def many_banks(folder: Path, banks: int, questions: int) -> Set:
    """Make a set of banks with OF_A_BANK sentences each; questions go to all in turn."""
    sizes = {f"bank{n}": OF_A_BANK for n in range(banks)}
    return Set(f"banks{banks}", *_sentences(folder, sizes, questions))


def _sentences(
    folder: Path, sizes: Mapping[str, int], questions: int
) -> tuple[dict[str, list[Fact]], list[Asked]]:
    made = random.Random(11)
    lines = harness.lines(harness.require(folder / "sentences.txt.xz"))
    if len(sizes) > 1:
        lines = cycle(islice(lines, IN_BANKS))
    banks: dict[str, list[Fact]] = {}
    for bank, facts in sizes.items():
        banks[bank] = rows = []
        for n, text in enumerate(islice(lines, facts)):
            names = {f"Name{int((NAMES + 1) ** made.random())}" for _ in range(OF_A_FACT)}
            at = BEGAN + timedelta(minutes=n)
            rows.append(Fact(f"s{n}", text, sorted(names), at.isoformat()))
    asked = list(harness.lines(harness.require(folder / "questions.txt")))
    chosen = random.Random(7).sample(asked, min(questions, len(asked)))
    end = (BEGAN + timedelta(minutes=max(sizes.values()))).isoformat()
    return banks, [Asked(bank, text, end) for bank, text in zip(cycle(sizes), chosen, strict=False)]


def judged(folder: Path, name: str, facts: int | None, questions: int | None) -> Set:
    """Read a set with questions whose answers are known.

    Args:
        folder: Where its file is.
        name: One of QUALITY.
        facts: Read the first so many of each bank, and their questions. Default: all.
        questions: Keep so many, at even distances. Default: all.

    """
    path = folder / f"{FILES.get(name, name)}_dev.json"
    if name == "worlds":
        found = _worlds()
    elif path.stem == "musique_dev":
        found = _paragraphs(path, has_entities=name == "entities")
    else:
        found = _conversations(path)
    if facts is not None:
        bank = next(iter(found.banks))
        kept = found.banks[bank][:facts]
        known = {fact.id for fact in kept}
        asked = [q for q in found.questions if q.bank == bank and known.issuperset(q.relevant)]
        found = Set(name, {bank: kept}, asked)
    every = max(1, len(found.questions) // questions) if questions else 1
    return Set(name, found.banks, found.questions[::every][:questions])


def _conversations(path: Path) -> Set:
    banks, asked = {}, []
    for conversation in conversations.read(path):
        if path.stem == "xquad_dev" and conversation.bank != LANGUAGE:
            continue
        bank = "".join(c if c.isalnum() else "_" for c in conversation.bank)
        banks[bank] = [
            Fact(
                turn.turn_id,
                turn.said[: harness.LONGEST],
                [turn.speaker] if turn.speaker else [],
                turn.at.isoformat() if turn.at else None,
                "experience" if turn.speaker else "world",
            )
            for turn in conversation.turns
        ]
        for question in conversation.questions:
            at = question.asked_at.isoformat() if question.asked_at else None
            asked.append(Asked(bank, question.text, at, sorted(question.relevant)))
    return Set(path.stem.removesuffix("_dev"), banks, asked)


def _paragraphs(path: Path, *, has_entities: bool) -> Set:
    data: dict[str, Any] = json.loads(harness.require(path).read_text(encoding="utf-8"))
    facts = [
        Fact(row["fact_key"], row["text"], row["entities"] if has_entities else [], None)
        for row in data["facts"]
    ]
    asked = [Asked("all", row["question"], None, row["relevant"]) for row in data["questions"]]
    return Set("entities" if has_entities else "musique", {"all": facts}, asked)


def _worlds() -> Set:
    templates, seeds = WORLDS
    banks, asked = {}, []
    for seed in seeds:
        facts, questions = generate(seed, templates)
        banks[f"world{seed}"] = [
            Fact(
                fact["source_id"],
                fact["text"],
                [
                    entity["name"] if isinstance(entity, dict) else entity
                    for entity in fact.get("entities", ())
                ],
                fact["mentioned_at"],
                fact["fact_type"],
            )
            for fact in facts
        ]
        asked += [
            Asked(f"world{seed}", one.text, one.asked_at.isoformat(), sorted(one.relevant))
            for one in questions
        ]
    return Set("worlds", banks, asked)


def prompt(embedder: Any) -> str:
    """Return the prompt of a model for questions, which their vectors are stored with."""
    prompts: Mapping[str, str] = getattr(embedder, "prompts", {})
    return prompts.get("query", "")


def embed_missing(path: Path, texts: Iterable[str], embed: Embed, prefix: str = "") -> None:
    """Add the vectors of the texts that a SQLite file lacks.

    Args:
        path: The file.
        texts: What to embed.
        embed: Embeds them.
        prefix: What comes before the texts under which vectors are stored.

    """
    with sqlite3.connect(path) as database:
        database.execute("create table if not exists vector (text text primary key, vector blob)")
        known = {text for (text,) in database.execute("select text from vector")}
        missing = sorted(text for text in set(texts) if prefix + text not in known)
        for start in range(0, len(missing), 256):
            batch = missing[start : start + 256]
            rows = zip(batch, embed(batch), strict=True)
            database.executemany(
                "insert or ignore into vector values (?, ?)",
                [(prefix + text, array("f", vector).tobytes()) for text, vector in rows],
            )
            database.commit()
            print(f"embedded {start + len(batch):,} of {len(missing):,} texts", flush=True)
