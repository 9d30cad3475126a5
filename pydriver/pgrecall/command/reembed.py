"""``pgrecall reembed``: change the embedding model of a bank that is in use."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pgrecall.client import Recall
from pgrecall.command import indexes, render
from pgrecall.errors import ReembedRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from pgrecall.inference.interfaces import Embedder
    from pgrecall.rows import Reembedding

_TRIES = 20
_SAMPLE = 50


def change_model(
    dsn: str,
    bank: str,
    embedder: Embedder,
    console: Console,
    *,
    batch_size: int,
    rate: float | None,
    is_lossy: bool,
    least_recall: float,
) -> Reembedding:
    """Re-embed a bank, build its indexes, switch the model, and remove the old embeddings.

    Every step can be interrupted; the next call continues there.

    Raises:
        ReembedRefused: questions without text would be lost, the recall of the new indexes is too
            low, or a change to another model is in progress.

    """
    with Recall.connect(dsn, embedder=None) as recall:
        state = recall.reembed_status(bank)
        if state.model != embedder.model:
            if state.textless and not is_lossy:
                raise ReembedRefused(
                    f'{state.textless:,} questions of bank "{bank}" were retained without their'
                    " text and would be lost",
                    hint="Add --lossy to drop them. Their facts stay and can be found by their own"
                    " text.",
                )
            fill = partial(_fill, recall, bank, embedder, console, batch_size, rate)
            try:
                fill()
                indexes.apply(dsn, recall, bank, console)
                _check(recall, bank, console, least_recall)
                _switch(recall, bank, fill, is_lossy=is_lossy)
            except ReembedRefused:
                # Unless another session that does the same has switched the bank.
                if recall.reembed_status(bank).model != embedder.model:
                    raise
        # Drop the old indexes first, since they slow the deletion of rows.
        indexes.apply(dsn, recall, bank, console)
        _clean(recall, bank, console)
        return recall.reembed_status(bank)


def _fill(
    recall: Recall,
    bank: str,
    embedder: Embedder,
    console: Console,
    batch_size: int,
    rate: float | None,
) -> None:
    state = recall.reembed_status(bank)
    total = state.pending if state.next_model else state.vectors - state.textless
    with render.progress_bar(console) as progress:
        task = progress.add_task("embedding", total=total)
        recall.reembed_fill(
            bank,
            embedder,
            batch_size=batch_size,
            rate=rate,
            progress=partial(progress.advance, task),
        )


def _check(recall: Recall, bank: str, console: Console, least_recall: float) -> None:
    """Measure the recall of the new vector indexes before they are used."""
    with console.status("comparing index searches with exact ones"):
        checks = recall.recall_check(bank, sample=_SAMPLE, is_next=True)
    for check in checks:
        found = f"{check.fact_type}: recall {check.recall:.0%} ({check.path})"
        console.print(found, markup=False, soft_wrap=True)
        if check.recall < least_recall:
            raise ReembedRefused(
                f'searches of {check.fact_type} in bank "{bank}" would find {check.recall:.0%} of'
                f" what is nearest, less than {least_recall:.0%}",
                hint="Raise ef_search, or hnsw_m and hnsw_ef_construction, by configure_bank()"
                " and run it again; or lower --min-recall.",
            )


def _switch(recall: Recall, bank: str, fill: Callable[[], None], *, is_lossy: bool) -> None:
    """Switch the bank's model; embed facts that writers stored with the old model meanwhile."""
    for last in (False,) * _TRIES + (True,):
        try:
            recall.reembed_finish(bank, is_lossy=is_lossy)
        except ReembedRefused:
            if last or not recall.reembed_status(bank).pending:
                raise
            fill()
        else:
            return


def _clean(recall: Recall, bank: str, console: Console) -> None:
    state = recall.reembed_status(bank)
    if state.previous_model is None:
        return
    with render.progress_bar(console) as progress:
        task = progress.add_task("removing the old", total=state.leftover)
        while done := recall.reembed_clean(bank):
            progress.advance(task, done)
