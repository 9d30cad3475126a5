"""What the commands do; each returns its exit status."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from functools import partial
from time import monotonic
from types import SimpleNamespace
from typing import TYPE_CHECKING, TypeVar, cast

from rich.console import Console
from rich.table import Table

from pgrecall import wording
from pgrecall.client import Recall
from pgrecall.command import indexes, reembed, render
from pgrecall.command.jsonl import JsonLines
from pgrecall.command.running import fail, warn
from pgrecall.connection.connecting import connect
from pgrecall.console import explain, html
from pgrecall.doctor import checks, queries
from pgrecall.errors import RecallError
from pgrecall.evaluation import (
    Evaluation,
    Judged,
    Tuning,
    evaluate,
    judged_questions,
    trec_questions,
    tune,
)
from pgrecall.extraction import FACTS_SCHEMA
from pgrecall.inference.embedders import (
    DEFAULT_EMBEDDER,
    DEFAULT_MODEL,
    PACKAGED_EMBEDDERS,
    SentenceTransformerEmbedder,
)
from pgrecall.inference.interfaces import Embedder
from pgrecall.rows import BulkRetention, Maintained, Retention
from pgrecall.server import resolve_dsn, schema
from pgrecall.wording import own_command

if TYPE_CHECKING:
    from pgrecall.asking.recall_options import RecallOptions


_SHOWN = 20  # refused lines that are shown
_UNCHANGED = "there is nothing to undo"
_Row = TypeVar("_Row")


def migrate(options: SimpleNamespace, console: Console) -> int:
    """Install or upgrade pgrecall."""
    with connect(resolve_dsn(options.dsn)) as connection:
        if options.sql:
            script = schema.pending_script(connection) or "-- nothing to do\n"
            if options.json:
                print_json(console, {"script": script})
            else:
                console.file.write(script)
            return 0
        if options.dry_run:
            steps = schema.plan(connection)
            if options.json:
                print_json(console, steps)
            else:
                console.file.write(schema.describe(connection, steps))
            theirs = schema.dependents(connection)
            if theirs and not (options.recreate_dependents and all(theirs.values())):
                return fail(
                    "your objects that depend on what this release changes stop the upgrade: "
                    + ", ".join(sorted(theirs)),
                    "Drop them, upgrade, and create them again."
                    + (
                        " Or let the upgrade do it: pgrecall migrate --recreate-dependents"
                        if all(theirs.values())
                        else ""
                    ),
                )
            return 0
        connection.add_notice_handler(warn)
        result = schema.migrate(
            connection,
            lock_timeout=options.lock_timeout,
            retries=options.retries,
            citus=options.citus,
            recreate_dependents=options.recreate_dependents,
        )
    if options.json:
        print_json(console, result)
    elif result.before is None:
        console.print(f"installed pgrecall {result.after}")
    elif result.restored:
        console.print(f"created again what was missing: {', '.join(result.restored)}")
    elif result.is_changed:
        console.print(f"upgraded pgrecall from {result.before} to {result.after}")
    else:
        console.print(f"pgrecall {result.after} is up to date")
    if result.is_distributed and not options.json:
        console.print("Citus distributes its tables and functions")
    return 0


def bank_create(options: SimpleNamespace, console: Console) -> int:
    """Create a bank."""
    with Recall.connect(options.dsn) as recall:
        recall.create_bank(
            options.bank,
            text_search_config=options.text_search_config,
            fact_types=options.fact_type,
        )
    print_done(options, console, f'created bank "{options.bank}"', bank_id=options.bank)
    return 0


def bank_list(options: SimpleNamespace, console: Console) -> int:
    """List the banks."""
    with Recall.connect(options.dsn) as recall:
        banks = recall.banks()
    none = "There is no bank yet. Create one with: pgrecall bank create NAME"
    return print_rows(options, console, banks, render.banks_table, none)


def bank_show(options: SimpleNamespace, console: Console) -> int:
    """Show one bank."""
    with Recall.connect(options.dsn) as recall:
        statistics = recall.bank_statistics(options.bank)
        banks = [bank for bank in recall.banks() if bank.bank_id == options.bank]
    if options.json:
        print_json(console, {"bank": banks[0], "statistics": statistics})
    else:
        console.print(render.banks_table(banks))
        console.print(render.statistics_table(statistics))
    return 0


def bank_drop(options: SimpleNamespace, console: Console) -> int:
    """Drop a bank."""
    if not options.yes:
        if not sys.stdin.isatty():
            return fail("dropping a bank erases everything in it", "Add --yes if you mean it.")
        answer = console.input(
            f'Erase bank "{options.bank}" and everything in it? [y/N] ', markup=False
        )
        if answer.strip().lower() not in ("y", "yes"):
            return fail("nothing was dropped", None)
    with Recall.connect(options.dsn) as recall:
        removed = recall.drop_bank(options.bank)
    said = f'dropped bank "{options.bank}" with {removed:,} memories'
    print_done(options, console, said, bank_id=options.bank, memories=removed)
    return 0


def retain_facts(options: SimpleNamespace, console: Console) -> int:
    """Retain facts from a file."""
    if options.bulk:
        return _retain_bulk(options, console)
    if options.workers is not None:
        return fail("--workers is for a bulk load", "Add --bulk.")
    return _retain_file(options, console, is_messages=False)


def retain_messages(options: SimpleNamespace, console: Console) -> int:
    """Retain messages from a file."""
    return _retain_file(options, console, is_messages=True)


def _retain_file(options: SimpleNamespace, console: Console, *, is_messages: bool) -> int:
    lines = JsonLines(options.file)
    with (
        lines.counted() as total,
        Recall.connect(options.dsn, embedder=embedder_of(options)) as recall,
        render.progress_bar() as progress,
    ):
        if total == 0:
            return fail(f"there is nothing in {options.file}", "It has one JSON object a line.")
        if options.create:
            recall.create_bank(options.bank, exist_ok=True)
        task = progress.add_task("retaining", total=total)
        advance = partial(progress.advance, task)
        try:
            if is_messages:
                done = recall.retain_many_messages(options.bank, lines, progress=advance)
            else:
                link = "deferred" if options.no_link else "now"
                done = recall.retain_many(
                    options.bank, lines, link=link, replace=options.replace, progress=advance
                )
        except RecallError as error:
            raise lines.located(error) from error
    _print_retention(options, console, done, "messages" if is_messages else "facts")
    return 0


def _print_retention(
    options: SimpleNamespace, console: Console, done: Retention | BulkRetention, what: str
) -> None:
    if options.json:
        print_json(console, done)
    else:
        known = done.total - done.new - getattr(done, "refused", 0)
        also = wording.known(known, what)
        what = what if done.new != 1 else what.removesuffix("s")
        console.print(f'retained {done.new:,} {what} in bank "{options.bank}"{also}', markup=False)
        if done.unembedded and not options.no_embed:
            console.print(
                f"{done.unembedded:,} have no embedding, since the embedder failed. Retain the same"
                " file again once it works",
                markup=False,
            )


def _retain_bulk(options: SimpleNamespace, console: Console) -> int:
    """Load facts from a file, over several connections."""
    unread = told = 0

    def tell(error: RecallError) -> None:
        nonlocal told
        told += 1
        if told <= _SHOWN:
            said = wording.line(error.message, 300)
            progress.console.print(said, style="red", markup=False, soft_wrap=True)

    def leave_out(error: RecallError) -> None:
        nonlocal unread
        unread += 1
        tell(error)
        advance("retain", 1)

    lines = JsonLines(options.file, refused=leave_out)
    with (
        ExitStack() as stack,
        Recall.connect(options.dsn, embedder=embedder_of(options)) as recall,
        render.progress_bar() as progress,
    ):
        if options.create:
            recall.create_bank(options.bank, exist_ok=True)
        total = stack.enter_context(lines.counted()) if options.file.is_file() else None
        tasks = {"retain": progress.add_task("retain", total=total)}

        def advance(what: str, count: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=None)
            progress.advance(tasks[what], count)

        try:
            done = recall.retain_bulk(
                options.bank,
                lines,
                link="deferred" if options.no_link else "now",
                replace=options.replace,
                workers=options.workers,
                progress=advance,
                refused=lambda _, error: tell(lines.located(error)),
            )
        except RecallError as error:
            raise lines.located(error) from error
    done = replace(done, total=done.total + unread, refused=done.refused + unread)
    if done.total == 0:
        return fail(f"there is nothing in {options.file}", "It has one JSON object a line.")
    _print_retention(options, console, done, "facts")
    if done.due:
        fail(
            f"{len(done.due):,} indexes are due, which only the owner of the tables can build",
            f"Run as owner: {own_command('index', options.bank, '--apply')}",
        )
    if done.refused:
        return fail(
            f"{done.refused:,} of {done.total:,} lines were refused",
            "Correct them and run the same command again; the others are known then.",
        )
    return 0


def ask(options: SimpleNamespace, console: Console) -> int:
    """Ask a bank a question."""
    embedder = embedder_of(options)
    with Recall.connect(options.dsn, embedder=embedder) as recall:
        given = cast(
            "RecallOptions",
            dict(options.set)
            | {
                "top_k": options.top_k,
                "filter": options.filter,
                "fact_types": options.fact_type,
                "tags": options.tag,
                "reference_time": options.at,
            },
        )
        if options.explain or options.html is not None:
            given["explain"] = True
        report = recall.recall_report(options.bank, options.question, **given)
        steps = {
            one: recall.why_not(options.bank, options.question, one, **given)
            for one in options.why or ()
        }
        if options.html is not None:
            model = embedder.model if embedder else None
            told = explain.gathered(
                recall, options.bank, options.question, given, report, steps, model
            )
            page = html.page(options.bank, options.question, report, told)
            options.html.write_text(page, encoding="utf-8")
    if options.json:
        rows = {field.name: getattr(report, field.name) for field in fields(report)}
        print_json(console, rows | ({"why": steps} if steps else {}))
        return 0
    if report.hits:
        console.print(render.hits_table(report.hits, is_long=options.explain))
        console.print(f"confidence {report.confidence:.2f}", style="dim")
    else:
        console.print("nothing found")
    if options.explain:
        console.print(render.arms_table(report.arms))
    for one, where in steps.items():
        console.print(f"where {one} is:", style="bold")
        console.print(render.steps_table(where))
    for fact in report.facts:
        console.print(fact, style="dim", markup=False)
    for degradation in report.degradations:
        console.print(render.left_out(degradation), style="dim", markup=False)
    console.print(render.times(report.timings), style="dim")
    return 0


def measure(options: SimpleNamespace, console: Console) -> int:
    """Measure answers to questions with known answers."""
    with (
        Recall.connect(options.dsn, embedder=embedder_of(options)) as recall,
        render.progress_bar() as progress,
    ):
        questions = _judged(options)
        task = progress.add_task("asking", total=sum(1 for q in questions if q.relevant))
        found = evaluate(
            recall,
            options.bank,
            questions,
            k=options.k,
            by=options.by,
            rerank=options.rerank,
            progress=partial(progress.advance, task),
        )
    if options.json:
        print_json(console, found)
        return 0
    console.print(render.evaluation_table(found))
    console.print(render.verdict(found))
    _print_notes(console, found)
    return 0


def tune_bank(options: SimpleNamespace, console: Console) -> int:
    """Search for a better ranking of a bank."""
    with Recall.connect(options.dsn, embedder=embedder_of(options)) as recall:
        questions = _judged(options)
        with render.progress_bar() as progress:
            total = sum(1 for q in questions if q.relevant) * (1 + options.rerank)
            task = progress.add_task("asking", total=total)
            found = tune(
                recall,
                options.bank,
                questions,
                by=options.by,
                folds=options.folds,
                budget=options.budget,
                rerank=options.rerank,
                progress=partial(progress.advance, task),
            )
        is_applied = options.apply and (found.is_gain or options.force)
        if is_applied:
            recall.configure_bank(options.bank, found.settings)
    if options.json:
        print_json(console, {"tuning": found, "is_applied": is_applied})
    else:
        console.print(render.ranking_table(found))
        console.print(render.gains_table(found.gains))
        cut = "" if found.is_complete else "; the search ran out of time"
        console.print(f"{found.tried:,} rankings tried, {found.folds} folds{cut}.", style="dim")
        if found.boosting is not None:
            console.print(render.gains_table(found.boosting.gains))
            boosts = ", ".join(f"{name} {alpha:g}" for name, alpha in found.boosting.boosts.items())
            console.print(
                f"Reranked, with boosts {boosts} in each recall; banks do not store them."
            )
        _print_notes(console, found)
        if is_applied:
            console.print(f'These are now the defaults of bank "{options.bank}".', markup=False)
        elif not options.apply:
            console.print("Nothing was changed: add --apply to make these the bank's defaults.")
    if options.apply and not is_applied:
        return fail(
            "nothing was changed: the interval of the held-out gain includes 0",
            "Add more questions, or --force.",
        )
    return 0


def _judged(options: SimpleNamespace) -> list[Judged]:
    if options.topics is not None:
        return trec_questions(options.qrels, options.topics)
    lines = JsonLines(options.qrels, '{"question": "Who leads Atlas?", "relevant": ["atlas.lead"]}')
    try:
        return judged_questions(lines)
    except RecallError as error:
        raise lines.located(error) from error


def _print_notes(console: Console, found: Evaluation | Tuning) -> None:
    if found.left_out:
        skipped = f"{found.left_out:,} questions were skipped"
        console.print(f"{skipped}, since nothing is relevant to them.")
    if found.unknown_ids:
        console.print(render.unknown(found.unknown_ids, found.by), style="yellow", markup=False)
    for degradation in found.degradations:
        console.print(render.left_out(degradation), style="dim", markup=False)


def link(options: SimpleNamespace, console: Console) -> int:
    """Write deferred links."""
    with (
        Recall.connect(options.dsn, embedder=None) as recall,
        render.progress_bar() as progress,
    ):
        task = progress.add_task("linking", total=recall.pending_links(options.bank))
        linked = 0
        while done := recall.link_pending(options.bank, batch_size=options.batch_size):
            linked += done
            progress.advance(task, done)
    said = f'linked {linked:,} facts in bank "{options.bank}"'
    print_done(options, console, said, bank_id=options.bank, linked=linked)
    return 0


def maintain(options: SimpleNamespace, console: Console) -> int:
    """Do pending work, each batch in its own transaction."""
    begun = monotonic()
    done: Counter[tuple[str, str, str]] = Counter()
    with Recall.connect(options.dsn, embedder=None) as recall:
        for bank in [options.bank] if options.bank else [b.bank_id for b in recall.banks()]:
            while options.max_seconds is None or monotonic() - begun < options.max_seconds:
                batch = recall.maintain(bank, batch_size=options.batch_size)
                if not batch:
                    break
                for row in batch:
                    done[row.bank_id, row.task, row.kind] += row.documents
    rows = [Maintained(*key, documents) for key, documents in done.items()]
    if options.json:
        print_json(console, rows)
    elif rows:
        for row in rows:
            console.print(render.maintained(row), markup=False)
    else:
        console.print("nothing was pending")
    return 0


def stats(options: SimpleNamespace, console: Console) -> int:
    """Set the share of recalls that is logged; show how long recalls took."""
    with Recall.connect(options.dsn, embedder=None) as recall:
        if options.share is not None:
            banks = [options.bank] if options.bank else [b.bank_id for b in recall.banks()]
            if not banks:
                return fail("nothing was set: this role sees no bank", None)
            for bank in banks:
                recall.configure_bank(bank, {"log_share": options.share})
            those = (
                f'bank "{options.bank}"'
                if options.bank
                else f"{len(banks):,} banks, not of those created later"
            )
        times = recall.recall_stats(options.bank, since=options.since)
    if options.json:
        print_json(console, times)
        return 0
    if times:
        console.print(render.times_table(times))
        console.print("Milliseconds; wait to rerank are the 95th percentiles.", style="dim")
    if options.share is not None:
        share = f"{options.share:.2%} of the driver's recalls are logged"
        console.print(f"From now on {share}, of {those}.", markup=False)
    elif not times:
        console.print(
            "No recall was logged. Log one of a hundred with: pgrecall stats --share 0.01"
        )
    return 0


def supersede(options: SimpleNamespace, console: Console) -> int:
    """End a memory."""
    with Recall.connect(options.dsn, embedder=None) as recall:
        ended = recall.supersede(
            options.bank,
            options.memory_id,
            superseded_by=options.by,
            at=options.at,
            reach="copies" if options.copies else None,
            dry_run=options.dry_run,
        )
    return print_rows(options, console, ended, render.corrected_table, _UNCHANGED)


def unsupersede(options: SimpleNamespace, console: Console) -> int:
    """Restore a memory."""
    with Recall.connect(options.dsn, embedder=None) as recall:
        restored = recall.unsupersede(options.bank, options.memory_id)
    return print_rows(options, console, restored, render.corrected_table, _UNCHANGED)


def consolidate(options: SimpleNamespace, console: Console) -> int:
    """List or merge near duplicates, or undo a merge."""
    with Recall.connect(options.dsn, embedder=None) as recall:
        if options.undo:
            restored = recall.unconsolidate(options.bank)
            return print_rows(options, console, restored, render.corrected_table, _UNCHANGED)
        merged = recall.consolidate(
            options.bank, dry_run=not options.apply, min_similarity=options.min_similarity
        )
    if options.json:
        print_json(console, merged)
    elif not merged:
        console.print("there are no near duplicates")
    else:
        console.print(render.merged_table(merged))
        if not options.apply:
            console.print("Merge them with --apply; --undo undoes that.", style="dim")
    return 0


def reembed_bank(options: SimpleNamespace, console: Console) -> int:
    """Change the embedding model of a bank."""
    if options.cancel:
        with Recall.connect(options.dsn, embedder=None) as recall:
            recall.reembed_cancel(options.bank)
            while recall.reembed_clean(options.bank, batch_size=1000):
                pass
            state = recall.reembed_status(options.bank)
        if options.json:
            print_json(console, state)
        else:
            console.print(f'bank "{options.bank}" keeps model "{state.model}"', markup=False)
        return 0
    if options.model is None:
        return fail("no model was given", "Give it with --model, or cancel with --cancel.")
    embedder = named_embedder(options.model)
    dsn = resolve_dsn(options.dsn)
    try:
        state = reembed.change_model(
            dsn,
            options.bank,
            embedder,
            render.make_console(stderr=True),
            batch_size=options.batch_size,
            rate=options.rate,
            is_lossy=options.lossy,
            least_recall=options.min_recall,
        )
    except KeyboardInterrupt:
        with Recall.connect(dsn, embedder=None) as recall:
            state = recall.reembed_status(options.bank)
        return fail(
            f'interrupted; bank "{options.bank}" is searched by model "{state.model or ""}"',
            f"Go on with: {own_command('reembed', options.bank, '--model', options.model)}",
        )
    if options.json:
        print_json(console, state)
    else:
        console.print(
            f'bank "{options.bank}" is embedded with model "{state.model}":'
            f" {state.vectors:,} embeddings of {state.dimensions} dimensions",
            markup=False,
        )
    return 0


def index(options: SimpleNamespace, console: Console) -> int:
    """Show or build the vector indexes that are due."""
    dsn = resolve_dsn(options.dsn)
    with connect(dsn) as connection:
        schema.refuse_router(connection)
    with Recall.connect(dsn, embedder=None) as recall:
        steps = recall.index_plan(options.bank)
        advice = indexes.memory_advice(steps, recall._run(queries.maintenance_memory()))
        owner = recall._run(queries.other_owner())
    if options.json:
        print_json(console, steps)
    elif not steps:
        console.print("no vector index is due")
    else:
        console.print(render.index_table(steps))
        if advice:
            console.print(advice, style="dim", markup=False)
    if options.apply and steps and owner:
        return fail("only the owner of the tables may build indexes", f'Connect as "{owner}".')
    if options.apply:
        try:
            with Recall.connect(dsn, embedder=None) as recall:
                done = indexes.apply(dsn, recall, options.bank, render.make_console(stderr=True))
        except KeyboardInterrupt:
            return fail("interrupted; all banks can be used", "Run it again to continue.")
        if done and not options.json:
            console.print(f"{done:,} of {max(done, len(steps)):,} statements were run")
    elif steps and not options.json:
        console.print("Run them with --apply; banks can be used meanwhile.", style="dim")
    return 0


def print_schema(options: SimpleNamespace, console: Console) -> int:
    """Print a JSON schema."""
    schemas = {"facts": FACTS_SCHEMA}
    console.file.write(json.dumps(schemas[options.name], indent=2) + "\n")
    return 0


def run_doctor(options: SimpleNamespace, console: Console) -> int:
    """Check server, packages and banks."""
    findings = checks.examine(resolve_dsn(options.dsn))
    if options.json:
        print_json(console, findings)
    else:
        show_findings(findings, console)
    return 1 if any(finding.status == "bad" for finding in findings) else 0


def show_findings(findings: list[checks.Finding], console: Console) -> None:
    """Print findings, each with what to do about it."""
    marks = {"good": "[green]ok[/]  ", "warning": "[yellow]warn[/]", "bad": "[red]bad[/] "}
    for finding in findings:
        console.print(marks[finding.status], end=" ")
        console.print(f"{finding.about}: {finding.found}", markup=False)
        if finding.advice:
            console.print(f"     {finding.advice}", style="dim", markup=False)


def embedder_of(options: SimpleNamespace) -> Embedder | None:
    """Return the embedder that the arguments ask for."""
    if getattr(options, "no_embed", False):
        return None
    return named_embedder(getattr(options, "model", None) or DEFAULT_MODEL)


def named_embedder(name: str) -> Embedder:
    """Return an embedder by the name or directory of its model."""
    if name == DEFAULT_MODEL:
        return DEFAULT_EMBEDDER
    return PACKAGED_EMBEDDERS.get(name) or SentenceTransformerEmbedder(name)


def print_json(console: Console, value: object) -> None:
    """Print rows as JSON."""
    console.file.write(render.to_json(value) + "\n")


def print_rows(
    options: SimpleNamespace,
    console: Console,
    rows: Sequence[_Row],
    table: Callable[[Sequence[_Row]], Table],
    nothing: str = "nothing found",
) -> int:
    """Print rows as a table or as JSON; for no rows, print a note."""
    if options.json:
        print_json(console, rows)
    else:
        console.print(table(rows) if rows else nothing)
    return 0


def print_done(options: SimpleNamespace, console: Console, said: str, **done: object) -> None:
    """Print a result as a line or as JSON."""
    if options.json:
        print_json(console, done)
    else:
        console.print(said, markup=False)
