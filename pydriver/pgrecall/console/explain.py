"""Look up what ``pgrecall recall --html`` shows besides the answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from pgrecall import calls
from pgrecall.client import Recall
from pgrecall.console.drawing import ids_of
from pgrecall.console.html import Told
from pgrecall.errors import MemoryNotFound
from pgrecall.report import RecallReport
from pgrecall.rows import ArmFinding, RecallOption, RecallStep

if TYPE_CHECKING:
    from pgrecall.asking.recall_options import RecallOptions

FIRST = 5  # hits shown for each arm


def gathered(
    recall: Recall,
    bank: str,
    question: str,
    given: RecallOptions,
    report: RecallReport,
    steps: Mapping[int, Sequence[RecallStep]],
    model: str | None,
) -> Told:
    """Look up what the page shows.

    Args:
        recall: The client.
        bank: Name of the bank.
        question: The question.
        given: The options of the recall.
        report: The answer.
        steps: Steps of the memories that the user asked about, by id.
        model: Name of the embedding model; None for none.

    """
    marks = uuid4().hex, uuid4().hex  # no memory can contain these
    marked = {
        hit.memory_id: recall.highlight(
            bank, hit.memory_id, question, start_mark=marks[0], end_mark=marks[1]
        )
        for hit in report.hits
        if hit.kind == "memory"
    }
    texts = {hit.memory_id: hit.text for hit in report.hits}
    for one in {fact for hit in report.hits for fact in ids_of(hit)} | steps.keys():
        if one not in texts:
            texts[one] = _text(recall, bank, one)
    found = _found(recall, bank, question, given, report)
    unknown = {hit.memory_id for hits in found.values() for hit in hits} - texts.keys()
    for memory in recall._read(calls.memories.stored_memories(bank, unknown)):
        texts[memory.memory_id] = memory.text
    for one in unknown - texts.keys():
        texts[one] = _text(recall, bank, one)
    values = recall.bank_options(bank)
    for name, value in given.items():
        own = values.get(name)
        if isinstance(value, Mapping) and isinstance(own, Mapping):  # arm by arm, like weights
            value = {**own, **value}
        if value is not None and name != "explain":
            values[name] = value
    values["model"] = model or "none"
    return Told(
        entities=recall.query_entities(bank, question),
        marked=marked,
        marks=marks,
        texts=texts,
        found=found,
        settings=changed(recall.recall_options(), values),
        missed=[(one, texts[one], found) for one, found in steps.items()],
    )


def _found(
    recall: Recall, bank: str, question: str, given: RecallOptions, report: RecallReport
) -> dict[str, list[ArmFinding]]:
    """Return the first hits of each arm, as in the recall."""
    found: dict[str, list[ArmFinding]] = {}
    # Unlike the recall, this fails without the embedder; the report already says that it is
    # missing.
    if all(one.what != "embedder" for one in report.degradations):
        for hit in recall.arm_hits(bank, question, **given):
            found.setdefault(hit.arm, []).append(hit)
    return {arm: sorted(hits, key=lambda hit: hit.rank)[:FIRST] for arm, hits in found.items()}


def _text(recall: Recall, bank: str, one: int) -> str:
    with suppress(MemoryNotFound):
        return recall.get(bank, one).text
    return recall.message_context(bank, one, before=0, after=0)[0].text


def changed(
    options: Iterable[RecallOption], values: Mapping[str, object]
) -> list[tuple[str, str, str]]:
    """List name, value and default of options that differ from their default.

    Depth and budget are always listed.

    Args:
        options: The options of a recall.
        values: Their values, and other arguments of the recall.

    """
    defaults = {option.name: option.default_value for option in options}
    changed = []
    for name, value in values.items():
        default = defaults.get(name)
        if isinstance(value, Mapping) and isinstance(default, Mapping):
            value = {key: part for key, part in value.items() if part != default.get(key)}
            default = {key: default.get(key) for key in value}
        if value != default or name in ("depth", "budget"):
            changed.append((name, _value(value), _value(default)))
    return changed


def _value(value: object) -> str:
    """Write a setting."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)
