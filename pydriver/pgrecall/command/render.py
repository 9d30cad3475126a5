"""Output of the command: tables and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timezone, tzinfo
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from pgrecall.evaluation.measure import (
    AS_OF,
    FUSED,
    PLAIN,
    RERANKED,
    Evaluation,
    Figure,
    Ranking,
)
from pgrecall.evaluation.tuning import Gain, Tuning
from pgrecall.inference.late_interaction import tokens_text
from pgrecall.rows import (
    ArmReport,
    Bank,
    BankStatistics,
    Consolidated,
    Corrected,
    Degradation,
    Hit,
    IndexStep,
    Maintained,
    Memory,
    RecallStep,
    RecallTimes,
    Timings,
)
from pgrecall.wording import line, path, plain, size

if TYPE_CHECKING:
    from pgrecall.cluster.shards import ShardStatus

WIDTH = 100
_IDS = ("superseded_by", "conflicts_with", "variant_of")


class _Console(Console):
    """A console on which no text of a memory, a name or a file controls the terminal."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects; control characters of texts become spaces. Cells of tables are lines."""
        super().print(*(plain(one) if isinstance(one, str) else one for one in objects), **options)


def make_console(*, stderr: bool = False) -> Console:
    """Return a console of at most 100 columns."""
    console = _Console(stderr=stderr, highlight=False)
    console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    return console


def progress_bar(console: Console | None = None) -> Progress:
    """Return a progress bar; on standard error unless another console is given."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
        console=console or make_console(stderr=True),
    )


def day(moment: datetime | None) -> str:
    """Format a day in UTC."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%d") if moment else ""


def when(fact: Hit | Memory) -> str:
    """Format when a fact happened or, if that is unknown, when it was mentioned."""
    start, end = fact.occurred or (None, None)
    if start or end:
        return day(start or end)
    return f"said {day(fact.mentioned_at)}" if fact.mentioned_at else ""


def contradicted(hit: Hit) -> str:
    """Return a line with the memories that contradict a hit."""
    others = ", ".join(map(str, hit.conflicts_with))
    return f"\ncontradicted by {others}" if others else ""


def found_by(hit: Hit, *, is_long: bool = False) -> str:
    """Name the arms that found a hit, the largest contribution first."""
    arms = sorted(hit.arms.items(), key=lambda item: -item[1].contribution)
    if is_long:
        said = [f"{name} #{arm.rank} +{arm.contribution:.4f}" for name, arm in arms]
        return "\n".join([*said, *reranked(hit)])
    return ", ".join(name for name, _ in arms)


def reranked(hit: Hit) -> list[str]:
    """Describe the reranking of a hit: its fused place, rerank score and final score."""
    if hit.rerank_score is None:
        return []
    return [
        f"fused #{hit.fused_rank}",
        f"reranker {hit.rerank_score:.3f} x{hit.boost:.3f}",
        f"final {hit.final_score:.3f}",
    ]


def answer(hit: Hit, style: str = "") -> Text:
    """Return the text of a hit, followed by lines with its path and its contradictions."""
    text = Text(line(hit.text), style=style)
    told = path(hit)
    if told:
        text.append(f"\nvia {told}", style="dim")
    return text.append(contradicted(hit))


def hits_table(hits: Sequence[Hit], *, is_long: bool = False) -> Table:
    """Make a table of an answer."""
    table = _table("", "id", "answer", "when", "type", "found by")
    table.columns[2].ratio = 1
    table.columns[5].max_width = 24
    for hit in hits:
        table.add_row(
            str(hit.rank),
            str(hit.memory_id),
            answer(hit),
            when(hit),
            Text(hit.fact_type or hit.kind),
            found_by(hit, is_long=is_long),
        )
    return table


def arms_table(arms: Sequence[ArmReport]) -> Table:
    """Make a table of the arm reports."""
    table = _table("arm", "status", "rows", "best score", "ms", "reason")
    for arm in arms:
        table.add_row(
            arm.arm,
            arm.status,
            str(arm.rows or 0),
            "" if arm.best_score is None else f"{arm.best_score:.3f}",
            "" if arm.milliseconds is None else f"{arm.milliseconds:.1f}",
            Text(line(arm.reason or "")),
        )
    return table


def steps_table(steps: Sequence[RecallStep]) -> Table:
    """Make a table of a memory's place in each step of a recall."""
    table = _table("step", "status", "place", "score", "reason")
    for step in steps:
        table.add_row(
            step.step,
            step.status,
            str(step.rank or ""),
            "" if step.score is None else f"{step.score:.3f}",
            Text(line(step.reason or "")),
        )
    return table


def banks_table(banks: Iterable[Bank]) -> Table:
    """Make a table of banks."""
    table = _table("bank", "memories", "messages", "entities", "embedding model", "created")
    for bank in banks:
        model = bank.embedding_model or "none yet"
        if bank.embedding_dimensions:
            model = f"{model} ({bank.embedding_dimensions})"
        table.add_row(
            Text(line(bank.bank_id, 30)),
            f"{bank.memories:,}",
            f"{bank.messages:,}",
            f"{bank.entities:,}",
            Text(line(model, 40)),
            day(bank.created_at),
        )
    return table


def statistics_table(statistics: Iterable[BankStatistics]) -> Table:
    """Make a table of the BM25 statistics of a bank."""
    table = _table("keyword search", "counted", "waiting", "words each", "vocabulary", "counted on")
    for row in statistics:
        table.add_row(
            row.kind,
            f"{row.document_count:,}",
            f"{row.waiting:,}",
            f"{row.average_length:.1f}",
            f"{row.lexeme_count:,}",
            day(row.refreshed_at),
        )
    return table


def maintained(done: Maintained) -> str:
    """Describe the pending work that was done in a bank."""
    tasks = {"count": "counted", "weigh": "weighed", "link": "linked", "prune": "deleted"}
    task = tasks[done.task]
    kind = {"memory": "memories", "message": "messages", "recall": "logged recalls"}[done.kind]
    return f'{task} {done.documents:,} {kind} of bank "{done.bank_id}"'


def times_table(times: Iterable[RecallTimes]) -> Table:
    """Make a table of how long the recalls of each bank took."""
    table = _table(
        "bank", "recalls", "p50", "p95", "p99", "max", "wait", "embed", "database", "rerank",
        "empty", "degraded",
    )  # fmt: skip
    table.columns[0].justify = "left"
    for row in times:
        figures = (row.p50_ms, row.p95_ms, row.p99_ms, row.max_ms)
        stages = (row.wait_p95_ms, row.embed_p95_ms, row.database_p95_ms, row.rerank_p95_ms)
        table.add_row(
            Text(line(row.bank_id, 24)),
            f"{row.recalls:,}",
            *(f"{milliseconds:.1f}" for milliseconds in (*figures, *stages)),
            f"{row.without_hits / row.samples:.1%}",
            f"{row.degraded / row.samples:.1%}",
        )
    return table


def evaluation_table(evaluation: Evaluation) -> Table:
    """Make a table of the scores of each ranking, on all questions and by category."""
    names = {FUSED: "all arms, fused", RERANKED: "the same, reranked", PLAIN: "plain RRF"}
    table = _table("", f"recall@{evaluation.k}", "nDCG@10", "MRR")
    table.columns[0].justify = "left"
    category: str | None = ""
    for score in evaluation.scores:
        if score.category != category:
            category = score.category
            what = "all questions" if category is None else line(category, 40)
            if table.row_count:
                table.add_section()
            table.add_row(Text(f"{what} ({score.questions:,})", style="bold"))
        table.add_row(
            f"  {names.get(score.name, f'{score.name} alone')}",
            figure(score.recall),
            figure(score.ndcg),
            figure(score.mrr),
        )
    return table


def verdict(evaluation: Evaluation) -> str:
    """Compare fusion with the best arm alone."""
    best = evaluation.best_arm
    if best is None:
        return f"No arm found anything. {AS_OF}"
    difference = best.behind
    word = "better than" if difference.low > 0 else "worse than" if difference.high < 0 else None
    said = (
        f"{word} the best arm alone, {best.name}"
        if word
        else (f"neither surely better nor worse than the best arm alone, {best.name}")
    )
    return f"Fusion is {said}: nDCG@10 {figure(difference, is_signed=True)}."


def ranking_table(tuning: Tuning) -> Table:
    """Make a table of the bank's ranking and the one found."""
    table = _table("setting", "present", "found")
    for name, present, best in _settings(tuning.present, tuning.best):
        table.add_row(name, present, Text(best, style="" if best == present else "bold"))
    return table


def _settings(present: Ranking, best: Ranking) -> Iterable[tuple[str, str, str]]:
    yield "fusion", present.fusion, best.fusion
    yield "k", str(present.rrf_k), str(best.rrf_k)
    for arm, weight in present.weights.items():
        yield f"weight of {arm}", f"{weight:g}", f"{best.weights[arm]:g}"
    for arm in present.weights:
        before, after = present.gates.get(arm, 0), best.gates.get(arm, 0)
        if before or after:
            yield f"gate of {arm}", f"{before:g}", f"{after:g}"
    yield "named_boost", f"{present.named_boost:g}", f"{best.named_boost:g}"


def gains_table(gains: Iterable[Gain]) -> Table:
    """Make a table of the gains on questions held out from the search."""
    table = _table("held-out nDCG@10", "questions", "present", "tuned", "gain")
    for gain in gains:
        table.add_row(
            Text("all questions" if gain.category is None else line(gain.category, 40)),
            f"{gain.questions:,}",
            f"{gain.present.mean:.3f}",
            f"{gain.tuned.mean:.3f}",
            figure(gain.gain, is_signed=True),
        )
    return table


def unknown(ids: Sequence[str], field: str) -> str:
    """List relevant ids that are not in the bank."""
    shown = ", ".join(line(name, 30) for name in ids[:5])
    more = ", ..." if len(ids) > 5 else ""
    return f"Not in the bank as {field}: {shown}{more} ({len(ids):,} ids)."


def figure(value: Figure, *, is_signed: bool = False) -> str:
    """Format a mean with its interval."""
    form = "+.3f" if is_signed else ".3f"
    return f"{value.mean:{form}} ({value.low:{form}} to {value.high:{form}})"


def shard_banks_table(banks: Iterable[tuple[str, str]]) -> Table:
    """Make a table of banks and their shards."""
    table = _table("bank", "shard")
    for bank, shard in banks:
        table.add_row(Text(line(bank)), shard)
    return table


def shards_table(shards: Iterable[ShardStatus]) -> Table:
    """Make a table of shards and their state."""
    table = _table("shard", "banks", "new banks", "version", "size", "problem")
    for one in shards:
        table.add_row(
            one.shard,
            f"{one.banks:,}",
            "yes" if one.is_open else "no",
            one.version or "-",
            "-" if one.bytes is None else size(one.bytes),
            "see below" if one.problem else "",
        )
    return table


def index_table(steps: Iterable[IndexStep]) -> Table:
    """Make a table of the statements for vector indexes that are due."""
    table = _table("bank", "type", "action", "reason", "size", "takes")
    table.columns[3].ratio = 1
    for step in steps:
        table.add_row(
            Text(line(step.bank_id or "", 24)),
            Text(step.fact_type or ""),
            step.action,
            Text(line(step.reason)),
            "" if step.estimated_bytes is None else size(step.estimated_bytes),
            "" if step.estimated_seconds is None else duration(step.estimated_seconds),
        )
    return table


def corrected_table(memories: Iterable[Corrected]) -> Table:
    """Make a table of memories that a correction changed."""
    table = _table("id", "memory", "from", "to", "superseded by")
    table.columns[1].ratio = 1
    for memory in memories:
        table.add_row(
            str(memory.memory_id),
            Text(line(memory.text)),
            day(memory.valid_from),
            day(memory.valid_to),
            str(memory.superseded_by or ""),
        )
    return table


def memories_table(memories: Iterable[Memory]) -> Table:
    """Make a table of stored memories."""
    table = _table("id", "memory", "when", "type", "key or source", "ended")
    table.columns[1].ratio = 1
    table.columns[4].max_width = 24
    for memory in memories:
        ended = f"{day(memory.valid_to)} {memory.ended_by or ''}".rstrip()
        table.add_row(
            str(memory.memory_id),
            Text(line(memory.text)),
            when(memory),
            Text(memory.fact_type),
            Text(line(memory.fact_key or memory.source_id or "", 40)),
            f"{ended}, by {memory.superseded_by}" if memory.superseded_by else ended,
        )
    return table


def merged_table(merged: Iterable[Consolidated]) -> Table:
    """Make a table of memories that are merged into others."""
    table = _table("stays", "text", "ends", "text", "similarity", "sources")
    table.columns[1].ratio = table.columns[3].ratio = 1
    for pair in merged:
        table.add_row(
            str(pair.kept_id),
            Text(line(pair.kept_text)),
            str(pair.memory_id),
            Text(line(pair.text)),
            f"{pair.similarity:.2f}",
            f"{pair.proof_count:,}",
        )
    return table


def duration(seconds: float) -> str:
    """Format a duration."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else "under 1 s"


def times(timings: Timings) -> str:
    """Format the timings in one line."""
    stages = (
        ("dates", timings.temporal),
        ("embedding", timings.embed),
        ("connection", timings.wait),
        ("database", timings.database),
        ("reranking", timings.rerank),
        ("queue", timings.queue),
        ("driver", timings.driver),
    )
    return ", ".join(f"{name} {value:.1f}" for name, value in stages) + " ms"


def left_out(degradation: Degradation) -> str:
    """Format a degradation: what was left out and what to do about it."""
    return " ".join(filter(None, (f"{degradation.why}.", degradation.hint)))


def to_json(value: object) -> str:
    """Convert rows to JSON; ids become text, since JSON readers may round large numbers."""
    return json.dumps(_jsonable(value), ensure_ascii=False, indent=2)


def _jsonable(value: object, name: str = "") -> object:
    if is_dataclass(value):
        return {f.name: _jsonable(getattr(value, f.name), f.name) for f in fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tzinfo):
        return str(value)
    if isinstance(value, bytes):
        return tokens_text(value)
    if isinstance(value, Mapping):
        if name == "via" and "facts" in value:
            value = {**value, "facts": [str(fact) for fact in value["facts"]]}
        return {str(key): _jsonable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(part, name) for part in value]
    if isinstance(value, int) and (name.endswith("_id") or name in _IDS):
        return str(value)
    return value


_NUMBERS = frozenset(
    {
        "",
        "rows",
        "ms",
        "best score",
        "counted",
        "waiting",
        "words each",
        "vocabulary",
        "memories",
        "messages",
        "entities",
        "questions",
    }
)


# All others keep their width: an id is of no use in part.
_WRAPPED = frozenset(
    {
        "answer",
        "bank",
        "embedding model",
        "ended",
        "found by",
        "key or source",
        "memory",
        "reason",
        "text",
    }
)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in _NUMBERS else "left",
            no_wrap=column not in _WRAPPED,
        )
    return table
