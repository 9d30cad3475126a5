"""``pgrecall calibrate``: measure the constants of an embedding model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from pgrecall.client import Recall
from pgrecall.command.actions import named_embedder, print_done, print_json
from pgrecall.command.jsonl import JsonLines
from pgrecall.errors import InvalidFact
from pgrecall.inference.calibration import calibrate

if TYPE_CHECKING:
    from rich.console import Console


def calibrate_model(options: SimpleNamespace, console: Console) -> int:
    """Measure a model on a sample; print the constants, or store them in a bank."""
    questions = _texts(options.questions, "question") if options.questions else ()
    found = calibrate(
        named_embedder(options.model), _texts(options.sample, "text"), questions=questions
    )
    if options.bank is None:
        print_json(console, found.as_json())
        return 0
    with Recall.connect(options.dsn, embedder=None) as recall:
        rewritten = recall.calibrate_bank(options.bank, found)
    print_done(
        options,
        console,
        f'bank "{options.bank}": cosines of {found.low_cosine:.3f} and {found.high_cosine:.3f}'
        f" count as 0.2 and 0.7; {rewritten:,} embeddings were rewritten",
        bank_id=options.bank,
        calibration=found.as_json(),
        rewritten=rewritten,
    )
    return 0


def _texts(path: Path, field: str) -> Iterator[str]:
    for number, row in enumerate(JsonLines(path, f'{{"{field}": "..."}}'), 1):
        text = row.get(field)
        if not isinstance(text, str):
            raise InvalidFact(
                f'{path}, line {number}: "{field}" is missing',
                hint=f'Each line is one JSON object, such as {{"{field}": "..."}}.',
            )
        yield text
