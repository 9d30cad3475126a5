"""``pgrecall demo``: fill a bank, ask it ten questions, show which arm found what.

For each question the first hits are shown, and the expected one if it comes later. Hits that answer
the question are marked and have their path below. If no hit is likely to answer the question, the
demo says so instead.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.resources import files
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import SimpleNamespace

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pgrecall import wording
from pgrecall.asking.recall_options import RecallOptions
from pgrecall.client import Recall
from pgrecall.command import render
from pgrecall.connection.connecting import connect
from pgrecall.console import explain, html
from pgrecall.errors import BankExists
from pgrecall.inference.embedders import DEFAULT_MODEL
from pgrecall.report import RecallReport
from pgrecall.rows import Hit
from pgrecall.server import resolve_dsn, schema

REFERENCE_TIME = datetime(2026, 6, 30, 12, tzinfo=timezone.utc)
ARMS = ("semantic", "lexical", "graph", "temporal", "key", "message")
DEPTH = 10
SHOWN = 3
ON_PAGE = 4
"""The question that is explained as a page; its answer is found by a path of two relations."""
SURE = 0.22
"""Minimum confidence for an answer.

The lowest of the demo's questions has 0.27. Of twelve questions about the world at large one has
0.35, since the bank mentions sourdough, and all others at most 0.17."""


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question, the exact texts that answer it, if any, and why it is hard."""

    question: str
    answers: Sequence[str]
    why: str
    arm: str


def show(options: SimpleNamespace, console: Console) -> int:
    """Run the demo; with --json the narration goes to standard error."""
    told = render.make_console(stderr=True) if options.json else console
    dsn = resolve_dsn(options.dsn)
    answers = run_demo(dsn, options.bank, told)
    if options.json:
        console.file.write(render.to_json(answers) + "\n")
    if options.open:
        from pgrecall.command.console import open_bank  # needs additional packages

        open_bank(dsn, options.bank, told)
    return 0


def run_demo(dsn: str, bank: str, console: Console) -> list[dict[str, object]]:
    """Fill the bank and ask it the questions.

    Returns:
        For each question: the question, its answers, and the report of the recall.

    Raises:
        BankExists: a bank with that name exists and is not the demo's.

    """
    with connect(dsn) as connection:
        schema.migrate(connection)
    told: list[dict[str, object]] = []
    with Recall.connect(dsn) as recall:
        _fill(recall, bank, console)
        questions = [DemoQuestion(**entry) for entry in json.loads(_read("questions.json"))]
        for number, question in enumerate(questions, 1):
            report = recall.recall_report(bank, question.question, reference_time=REFERENCE_TIME)
            _show_answers(number, question, report, console)
            told.append(
                {"question": question.question, "answers": question.answers, "report": report}
            )
        _show_arms(recall, bank, [question for question in questions if question.answers], console)
        page = _write_page(recall, bank, questions[ON_PAGE - 1].question)
    console.print()
    console.print(f"[bold]Why answer {ON_PAGE} is the answer[/], as a page for the browser:")
    console.print(f"  {page.as_uri()}", style="cyan", soft_wrap=True)
    _show_next(bank, console)
    return told


def _fill(recall: Recall, bank: str, console: Console) -> None:
    facts, messages = _rows("facts.jsonl"), _rows("messages.jsonl")
    _make_way(recall, bank, str(facts[0]["text"]), str(facts[0]["fact_key"]))
    recall.create_bank(bank)
    with render.progress_bar(console) as progress:
        task = progress.add_task("retaining facts", total=len(facts))
        recall.retain(bank, facts, progress=lambda n: progress.advance(task, n))
    recall.retain_messages(bank, messages)
    console.print(
        f'Bank "{bank}" holds {len(facts)} facts and {len(messages)} messages of a small company. '
        f"It is {REFERENCE_TIME:%d %B %Y} there.",
        markup=False,
    )


def _make_way(recall: Recall, bank: str, first_text: str, first_key: str) -> None:
    """Drop the bank if an earlier demo made it."""
    there = next((found for found in recall.banks() if found.bank_id == bank), None)
    if there is None:
        return
    if there.memories or there.messages:
        hits = recall.recall(bank, first_key, arms=["key"], embedding=None, rerank=False)
        if first_text not in (hit.text for hit in hits):
            raise BankExists(
                f'bank "{bank}" exists and is not the demo\'s',
                hint="Give the demo's bank another name: pgrecall demo --bank NAME",
            )
    recall.drop_bank(bank)


def _show_answers(
    number: int, question: DemoQuestion, report: RecallReport, console: Console
) -> None:
    console.print()
    console.print(Text(f"{number}. {question.question}", style="bold"))
    for fact in report.facts:
        console.print(Text(f"   {fact}", style="dim"))
    sure = report.confidence
    if sure < SURE:
        console.print(f"   I do not know: the confidence is {sure:.0%}, below {SURE:.0%}.")
        return
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(width=5, justify="right")
    table.add_column(ratio=1)
    table.add_column(width=28)
    answers = [hit for hit in report.hits if hit.text in question.answers]
    shown = list(report.hits[:SHOWN])
    if answers and answers[0] not in shown:
        shown.append(answers[0])
    for hit in shown:
        style = "green" if hit in answers else "dim"
        mark = "✓ " if hit in answers else ""
        table.add_row(
            Text(f"{mark}{hit.rank}", style=style),
            render.answer(hit, style="" if hit in answers else "dim"),
            Text(render.found_by(hit), style="cyan" if hit in answers else "dim"),
        )
    console.print(table)
    console.print(Text(f"   {sure:.0%} sure; {render.times(report.timings)}", style="dim"))


def _show_arms(
    recall: Recall, bank: str, questions: Sequence[DemoQuestion], console: Console
) -> None:
    """Ask each arm alone and show where its first answer is."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("", ratio=1, no_wrap=True)
    for arm in (*ARMS, "together"):
        table.add_column(arm, justify="center", no_wrap=True, min_width=len(arm))
    failed = dict.fromkeys((*ARMS, "together"), 0)
    for number, question in enumerate(questions, 1):
        cells = []
        for arm in (*ARMS, "together"):
            hits = recall.recall(
                bank,
                question.question,
                arms=None if arm == "together" else [arm],
                top_k=DEPTH,
                reference_time=REFERENCE_TIME,
            )
            place = _place(question, hits)
            failed[arm] += place is None
            cells.append(Text(str(place), style="green") if place else Text("-", style="red"))
        table.add_row(Text(wording.line(f"{number}. {question.question}", 33)), *cells)
    table.add_row(Text("failed at", style="bold"), *(str(count) for count in failed.values()))
    console.print()
    console.print(
        f"[bold]Each arm alone[/]: the place of an answer, - where not in the first {DEPTH}"
    )
    console.print(table)


def _write_page(recall: Recall, bank: str, question: str) -> Path:
    """Write the page that explains an answer to a temporary file."""
    given: RecallOptions = {"reference_time": REFERENCE_TIME, "explain": True}
    report = recall.recall_report(bank, question, **given)
    told = explain.gathered(recall, bank, question, given, report, {}, DEFAULT_MODEL)
    with NamedTemporaryFile(
        "w", encoding="utf-8", prefix="pgrecall-demo-", suffix=".html", delete=False
    ) as file:
        file.write(html.page(bank, question, report, told))
    return Path(file.name)


def _place(question: DemoQuestion, hits: Sequence[Hit]) -> int | None:
    return next((hit.rank for hit in hits if hit.text in question.answers), None)


def _show_next(bank: str, console: Console) -> None:
    command = _command()
    console.print()
    console.print(
        "[bold]See it in the browser[/]: facts, entities, the graph, and why it answers so:"
    )
    console.print(f"  {command} console {bank} --open", style="cyan", markup=False)
    console.print()
    console.print("[bold]Now your own facts.[/] One per line, such as", end=" ")
    console.print('{"text": "Maya leads Atlas.", "occurred": "2026-03-05"}:', markup=False)
    console.print(f"  {command} retain FILE.jsonl --bank mine --create", style="cyan")
    console.print(f'  {command} recall mine "Who leads Atlas?"', style="cyan")


def _command() -> str:
    """Return the words that call the command."""
    called = Path(sys.argv[0])
    if called.name != "pgrecall" or shutil.which("pgrecall") == str(called.absolute()):
        return "pgrecall"
    try:
        return str(called.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(called)


def _rows(name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in _read(name).splitlines() if line.strip()]


def _read(name: str) -> str:
    return (files("pgrecall") / "demo" / name).read_text(encoding="utf-8")
