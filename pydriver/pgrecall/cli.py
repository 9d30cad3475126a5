"""The command: pgrecall."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

import psycopg

try:
    from rich.console import Console
except ImportError as error:  # pragma: no cover
    raise SystemExit(
        f"pgrecall: package {error.name} is missing. Run: pip install 'pgrecall[cli]'"
    ) from error

from pgrecall import _doctor, _html, _indexes, _reembed, _render, calls, schema
from pgrecall._demo import run_demo
from pgrecall._version import __version__
from pgrecall.client import Recall
from pgrecall.embedders import (
    DEFAULT_EMBEDDER,
    DEFAULT_MODEL,
    Embedder,
    SentenceTransformerEmbedder,
)
from pgrecall.errors import BankExists, BankNotFound, InvalidFact, RecallError
from pgrecall.evaluate import ID_FIELDS, Judged, evaluate, judged_questions, trec_questions
from pgrecall.models import Degradation, Retention
from pgrecall.server import DSN_VARIABLE, resolve_dsn
from pgrecall.tune import tune

_MODEL_HELP = f"embedding model, by name or directory; {DEFAULT_MODEL}"

Command = Callable[[argparse.Namespace, Console], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: Its words without the first; default: those it was called with.

    Returns:
        0 when it went well, 1 when it did not; wrong usage exits with 2.

    """
    options = _parser().parse_args(arguments)
    command: Command = options.command
    try:
        return command(options, _render.make_console())
    except BankNotFound as error:
        return _fail(error.message, "Create it with: pgrecall bank create NAME")
    except RecallError as error:
        return _fail(error.message, error.hint)
    except psycopg.OperationalError as error:
        return _fail(
            f"cannot reach the server: {str(error).strip()}",
            f"Check --dsn and {DSN_VARIABLE}; without either the embedded server is used.",
        )
    except psycopg.Error as error:
        return _fail(error.diag.message_primary or str(error), error.diag.message_hint)
    except BrokenPipeError:  # the reader has seen enough, as in: pgrecall ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), None)
    except KeyboardInterrupt:
        return _fail("interrupted", None)


def _fail(message: str, hint: str | None) -> int:
    console = _render.make_console(stderr=True)
    console.print("error:", message, style="red", markup=False, soft_wrap=True)
    if hint:
        console.print("hint:", hint, markup=False, soft_wrap=True)
    return 1


def _migrate(options: argparse.Namespace, console: Console) -> int:
    with psycopg.connect(resolve_dsn(options.dsn)) as connection:
        result = schema.migrate(connection)
    if options.json:
        _print_json(console, result)
    elif result.before is None:
        console.print(f"installed pgrecall {result.after}")
    elif result.is_changed:
        console.print(f"upgraded pgrecall from {result.before} to {result.after}")
    else:
        console.print(f"pgrecall {result.after} is up to date")
    return 0


def _bank_create(options: argparse.Namespace, console: Console) -> int:
    with Recall.connect(options.dsn) as recall:
        recall.create_bank(
            options.bank,
            text_search_config=options.text_search_config,
            fact_types=options.fact_type,
        )
    console.print(f'created bank "{options.bank}"', markup=False)
    return 0


def _bank_list(options: argparse.Namespace, console: Console) -> int:
    with Recall.connect(options.dsn) as recall:
        banks = recall.banks()
    if options.json:
        _print_json(console, banks)
    elif banks:
        console.print(_render.banks_table(banks))
    else:
        console.print("There is no bank yet. Create one with: pgrecall bank create NAME")
    return 0


def _bank_show(options: argparse.Namespace, console: Console) -> int:
    with Recall.connect(options.dsn) as recall:
        statistics = recall.bank_statistics(options.bank)
        banks = [bank for bank in recall.banks() if bank.bank_id == options.bank]
    if options.json:
        _print_json(console, {"bank": banks[0], "statistics": statistics})
    else:
        console.print(_render.banks_table(banks))
        console.print(_render.statistics_table(statistics))
    return 0


def _bank_drop(options: argparse.Namespace, console: Console) -> int:
    if not options.yes:
        if not sys.stdin.isatty():
            return _fail("dropping a bank erases all it holds", "Add --yes if you mean it.")
        answer = console.input(
            f'Erase bank "{options.bank}" and all it holds? [y/N] ', markup=False
        )
        if answer.strip().lower() not in ("y", "yes"):
            return _fail("nothing was dropped", None)
    with Recall.connect(options.dsn) as recall:
        removed = recall.drop_bank(options.bank)
    console.print(f'dropped bank "{options.bank}" with {removed:,} memories', markup=False)
    return 0


def _retain(options: argparse.Namespace, console: Console) -> int:
    return _retain_file(options, console, is_messages=False)


def _retain_messages(options: argparse.Namespace, console: Console) -> int:
    return _retain_file(options, console, is_messages=True)


def _retain_file(options: argparse.Namespace, console: Console, *, is_messages: bool) -> int:
    lines = JsonLines(options.file)
    total = lines.count()
    with (
        Recall.connect(options.dsn, embedder=_embedder(options)) as recall,
        _render.progress_bar(_render.make_console(stderr=True)) as progress,
    ):
        if options.create:
            with suppress(BankExists):
                recall.create_bank(options.bank)
        task = progress.add_task("retaining", total=total)

        def advance(count: int) -> None:
            progress.advance(task, count)

        try:
            if is_messages:
                done = recall.retain_many_messages(options.bank, lines, progress=advance)
            else:
                link = "deferred" if options.no_link else "now"
                done = recall.retain_many(options.bank, lines, link=link, progress=advance)
        except RecallError as error:
            raise lines.located(error) from error
    _print_retention(options, console, done, "messages" if is_messages else "facts")
    return 0


def _print_retention(
    options: argparse.Namespace, console: Console, done: Retention, what: str
) -> None:
    if options.json:
        _print_json(console, done)
    else:
        known = done.total - done.new
        also = f"; {known:,} were known already" if known else ""
        what = what if done.new != 1 else what.removesuffix("s")
        console.print(f'retained {done.new:,} {what} in bank "{options.bank}"{also}', markup=False)


def _recall(options: argparse.Namespace, console: Console) -> int:
    with Recall.connect(options.dsn, embedder=_embedder(options)) as recall:
        report = recall.recall_report(
            options.bank,
            options.question,
            top_k=options.top_k,
            skip=options.skip,
            fusion=options.fusion,
            collapse=options.collapse,
            diversity=options.diversity,
            min_relevance=options.min_relevance,
            filter=options.filter,
            fact_types=options.fact_type,
            tags=options.tag,
            reference_time=options.at,
            explain=options.explain or options.html is not None,
        )
        if options.html is not None:
            entities = recall.query_entities(options.bank, options.question)
            page = _html.page(options.bank, options.question, report, entities)
            options.html.write_text(page, encoding="utf-8")
    if options.json:
        _print_json(console, report)
        return 0
    if report.hits:
        console.print(_render.hits_table(report.hits, is_long=options.explain))
        console.print(f"confidence {report.confidence:.2f}", style="dim")
    else:
        console.print("nothing found")
    if report.arms:
        console.print(_render.arms_table(report.arms))
    for fact in report.facts:
        console.print(fact, style="dim", markup=False)
    for degradation in report.degradations:
        console.print(_render.left_out(degradation), style="dim", markup=False)
    console.print(_render.times(report.timings), style="dim")
    return 0


def _eval(options: argparse.Namespace, console: Console) -> int:
    with (
        Recall.connect(options.dsn, embedder=_embedder(options)) as recall,
        _render.progress_bar(_render.make_console(stderr=True)) as progress,
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
            progress=lambda n: progress.advance(task, n),
        )
    if options.json:
        _print_json(console, found)
        return 0
    console.print(_render.evaluation_table(found))
    console.print(_render.verdict(found))
    _print_notes(console, found.left_out, found.unknown_ids, found.by, found.degradations)
    return 0


def _tune(options: argparse.Namespace, console: Console) -> int:
    with Recall.connect(options.dsn, embedder=_embedder(options)) as recall:
        questions = _judged(options)
        with _render.progress_bar(_render.make_console(stderr=True)) as progress:
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
                progress=lambda n: progress.advance(task, n),
            )
        is_applied = options.apply and (found.is_gain or options.force)
        if is_applied:
            recall.configure_bank(options.bank, found.settings)
    if options.json:
        _print_json(console, {"tuning": found, "is_applied": is_applied})
    else:
        console.print(_render.ranking_table(found))
        console.print(_render.gains_table(found.gains))
        cut = "" if found.is_complete else "; the budget ended the search early"
        console.print(f"{found.tried:,} rankings tried, {found.folds} folds{cut}.", style="dim")
        if found.boosting is not None:
            console.print(_render.gains_table(found.boosting.gains))
            boosts = ", ".join(f"{name} {alpha:g}" for name, alpha in found.boosting.boosts.items())
            console.print(f"Reranked, with boosts {boosts}: for each recall, no bank keeps them.")
        _print_notes(console, found.left_out, found.unknown_ids, found.by, found.degradations)
        if is_applied:
            console.print(f'These are now the defaults of bank "{options.bank}".', markup=False)
        elif not options.apply:
            console.print("Nothing was changed: add --apply to make these the bank's defaults.")
    if options.apply and not is_applied:
        return _fail(
            "nothing was changed: the interval of the held-out gain includes 0",
            "Bring more questions, or add --force.",
        )
    return 0


def _judged(options: argparse.Namespace) -> list[Judged]:
    if options.topics is not None:
        return trec_questions(options.qrels, options.topics)
    lines = JsonLines(options.qrels, '{"question": "Who leads Atlas?", "relevant": ["atlas.lead"]}')
    try:
        return judged_questions(lines)
    except RecallError as error:
        raise lines.located(error) from error


def _print_notes(
    console: Console,
    left_out: int,
    unknown_ids: Sequence[str],
    by: str,
    degradations: Sequence[Degradation],
) -> None:
    if left_out:
        console.print(f"{left_out:,} questions were not asked: nothing is relevant to them.")
    if unknown_ids:
        console.print(_render.unknown(unknown_ids, by), style="yellow", markup=False)
    for degradation in degradations:
        console.print(_render.left_out(degradation), style="dim", markup=False)


def _link(options: argparse.Namespace, console: Console) -> int:
    with (
        Recall.connect(options.dsn, embedder=None) as recall,
        _render.progress_bar(_render.make_console(stderr=True)) as progress,
    ):
        task = progress.add_task("linking", total=recall.pending_links(options.bank))
        linked = 0
        while done := recall.link_pending(options.bank, batch_size=options.batch_size):
            linked += done
            progress.advance(task, done)
    console.print(f'linked {linked:,} facts in bank "{options.bank}"', markup=False)
    return 0


def _forget(options: argparse.Namespace, console: Console) -> int:
    with Recall.connect(options.dsn) as recall:
        removed = recall.forget(options.bank, options.memory_id)
    console.print(f"forgot {removed:,} of {len(options.memory_id):,} memories")
    return 0


def _reembed_bank(options: argparse.Namespace, console: Console) -> int:
    if options.cancel:
        with Recall.connect(options.dsn, embedder=None) as recall:
            recall.reembed_cancel(options.bank)
            while recall.reembed_clean(options.bank, batch_size=1000):
                pass
            state = recall.reembed_status(options.bank)
        console.print(f'bank "{options.bank}" stays with model "{state.model}"', markup=False)
        return 0
    if options.model is None:
        return _fail("no model was named", "Name it with --model, or give up with --cancel.")
    embedder = _named_embedder(options.model)
    dsn = resolve_dsn(options.dsn)
    try:
        state = _reembed.change_model(
            dsn,
            options.bank,
            embedder,
            _render.make_console(stderr=True),
            batch_size=options.batch_size,
            rate=options.rate,
            is_lossy=options.lossy,
            least_recall=options.min_recall,
        )
    except KeyboardInterrupt:
        with Recall.connect(dsn, embedder=None) as recall:
            state = recall.reembed_status(options.bank)
        return _fail(
            f'interrupted; bank "{options.bank}" is searched by model "{state.model or ""}"',
            f"Go on with: pgrecall reembed {options.bank} --model {options.model}",
        )
    if options.json:
        _print_json(console, state)
    else:
        console.print(
            f'bank "{options.bank}" is embedded with model "{state.model}":'
            f" {state.vectors:,} embeddings of {state.dimensions} dimensions",
            markup=False,
        )
    return 0


def _index(options: argparse.Namespace, console: Console) -> int:
    dsn = resolve_dsn(options.dsn)
    with Recall.connect(dsn, embedder=None) as recall:
        steps = recall.index_plan(options.bank)
        advice = _indexes.memory_advice(steps, recall._run(calls.maintenance_memory()))
    if options.json:
        _print_json(console, steps)
    elif not steps:
        console.print("vector indexes are as they should be")
    else:
        console.print(_render.index_table(steps))
        if advice:
            console.print(advice, style="dim", markup=False)
    if options.apply:
        try:
            done = _indexes.apply(dsn, steps, _render.make_console(stderr=True))
        except KeyboardInterrupt:
            return _fail("interrupted; every bank is usable", "Run it again to go on.")
        if done and not options.json:
            console.print(f"{done:,} of {len(steps):,} statements were run")
    elif steps and not options.json:
        console.print("Run them with --apply; each keeps its bank usable.", style="dim")
    return 0


def _demo(options: argparse.Namespace, console: Console) -> int:
    run_demo(resolve_dsn(options.dsn), options.bank, console)
    return 0


def _run_doctor(options: argparse.Namespace, console: Console) -> int:
    findings = _doctor.examine(resolve_dsn(options.dsn))
    if options.json:
        _print_json(console, findings)
    else:
        _doctor.show(findings, console)
    return 1 if any(finding.status == "bad" for finding in findings) else 0


class JsonLines:
    """The objects of a JSONL file, one a line, which can say on which line each stood."""

    def __init__(self, path: Path, example: str = '{"text": "Maya leads Atlas."}') -> None:
        """Keep the path, and what a line looks like; blank lines are passed over."""
        self._path = path
        self._example = example
        self._numbers: list[int] = []

    def count(self) -> int:
        """Count the objects."""
        with self._path.open("rb") as file:
            return sum(1 for line in file if line.strip())

    def __iter__(self) -> Iterator[dict[str, object]]:
        """Read the objects.

        Raises:
            InvalidFact: a line is not a JSON object; the message names file and line.

        """
        self._numbers.clear()
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                self._numbers.append(number)
                yield self._parsed(line, number)

    def _parsed(self, line: bytes, number: int) -> dict[str, object]:
        try:
            value = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError as error:
            problem = f"not UTF-8 at byte {error.start + 1}"
        except json.JSONDecodeError as error:
            problem = f"not JSON at column {error.colno}: {error.msg}"
        except RecursionError:
            problem = "nested too deeply"
        else:
            if isinstance(value, dict):
                return value
            problem = "not an object"
        raise InvalidFact(
            f"{self._path}, line {number}: {problem}",
            hint=f"Each line is one JSON object, such as {self._example}.",
        )

    def located(self, error: RecallError) -> RecallError:
        """Name file and line in an error that speaks of the n-th fact."""
        if error.position is None or error.position >= len(self._numbers):
            return error
        place = f"{self._path}, line {self._numbers[error.position]}"
        problem = re.sub(r"^\w+\[\d+\]\.?(: )?", "", error.message)
        return type(error)(f"{place}: {problem}", hint=error.hint)


def _embedder(options: argparse.Namespace) -> Embedder | None:
    if getattr(options, "no_embed", False):
        return None
    return _named_embedder(getattr(options, "model", None) or DEFAULT_MODEL)


def _named_embedder(name: str) -> Embedder:
    return DEFAULT_EMBEDDER if name == DEFAULT_MODEL else SentenceTransformerEmbedder(name)


def _print_json(console: Console, value: object) -> None:
    console.file.write(_render.to_json(value) + "\n")


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"not a time: {text!r}; write 2026-03-05 or 2026-03-05T14:00Z"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--dsn", help=f"server and database; default: {DSN_VARIABLE}, else the embedded server"
    )
    machine = argparse.ArgumentParser(add_help=False)
    machine.add_argument("--json", action="store_true", help="print JSON, for machines")

    parser = argparse.ArgumentParser(
        prog="pgrecall", description="PostgreSQL as the memory of AI agents."
    )
    parser.add_argument("--version", action="version", version=f"pgrecall {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(
        to: argparse._SubParsersAction[argparse.ArgumentParser],
        name: str,
        command: Command,
        about: str,
        *,
        has_json: bool = True,
    ) -> argparse.ArgumentParser:
        parents = [common, machine] if has_json else [common]
        new = to.add_parser(name, help=about, description=f"{about}.", parents=parents)
        new.set_defaults(command=command)
        return new

    add(commands, "migrate", _migrate, "install pgrecall in the database, or upgrade it")

    bank = commands.add_parser("bank", help="create, list, show and drop banks")
    banks = bank.add_subparsers(metavar="COMMAND", required=True)
    new = add(banks, "create", _bank_create, "create an empty bank", has_json=False)
    new.add_argument("bank")
    new.add_argument(
        "--text-search-config",
        default="english",
        metavar="NAME",
        help='such as english; "simple" for mixed languages and identifiers',
    )
    new.add_argument("--fact-type", action="append", metavar="NAME", help="one more kind of fact")
    add(banks, "list", _bank_list, "list all banks")
    add(banks, "show", _bank_show, "show one bank").add_argument("bank")
    new = add(banks, "drop", _bank_drop, "erase a bank and all it holds", has_json=False)
    new.add_argument("bank")
    new.add_argument("--yes", action="store_true", help="do not ask")

    for name, command, what in (
        ("retain", _retain, "facts"),
        ("retain-messages", _retain_messages, "raw messages"),
    ):
        new = add(commands, name, command, f"retain {what} from a JSONL file")
        new.add_argument("file", type=Path, metavar="FILE.jsonl")
        new.add_argument("--bank", required=True)
        new.add_argument("--create", action="store_true", help="create the bank if there is none")
        if command is _retain:
            new.add_argument("--no-embed", action="store_true", help="store no embeddings")
            new.add_argument("--model", metavar="NAME", help=_MODEL_HELP)
            new.add_argument(
                "--no-link", action="store_true", help="leave links to the command link"
            )

    new = add(commands, "link", _link, "link what was retained without links", has_json=False)
    new.add_argument("bank")
    new.add_argument(
        "--batch-size", type=int, default=1000, metavar="N", help="facts a transaction; 1000"
    )

    new = add(commands, "recall", _recall, "ask a bank a question")
    new.add_argument("bank")
    new.add_argument("question")
    new.add_argument("--top-k", type=int, default=10, metavar="N", help="answers at most; 10")
    new.add_argument(
        "--skip", type=int, default=0, metavar="N", help="leave out the first, to page"
    )
    new.add_argument("--fusion", metavar="NAME", help="score_rrf, rrf or linear")
    new.add_argument("--collapse", action="store_true", help="only the best of each source")
    new.add_argument("--diversity", type=float, default=0.0, metavar="X", help="variety, 0 to 1")
    new.add_argument(
        "--min-relevance", type=float, default=0.0, metavar="X", help="nothing less likely, 0 to 1"
    )
    new.add_argument(
        "--filter",
        metavar="CONDITION",
        help="only facts that meet it: \"confidence > 0.8 and metadata->>'team' = 'core'\"",
    )
    new.add_argument("--fact-type", action="append", metavar="NAME", help="only facts of this type")
    new.add_argument("--tag", action="append", help="only facts with this tag")
    new.add_argument("--at", type=_moment, metavar="TIME", help="ask as if it were that time")
    new.add_argument("--explain", action="store_true", help="say what each arm did")
    new.add_argument("--html", type=Path, metavar="FILE", help="write the explanation as a page")
    new.add_argument("--no-embed", action="store_true", help="do without the query's embedding")
    new.add_argument("--model", metavar="NAME", help=_MODEL_HELP)

    for name, command, what in (
        ("eval", _eval, "measure answers to questions with known ones, by arm and together"),
        (
            "tune",
            _tune,
            "search for the weights, k, fusion, gates and boosts that answer such questions best",
        ),
    ):
        new = add(commands, name, command, what)
        new.add_argument("bank")
        new.add_argument(
            "qrels",
            type=Path,
            metavar="QRELS",
            help='a JSONL file of {"question": "...", "relevant": ["id", ...]}, with "category" and'
            ' "asked_at" where known; or qrels as TREC has them',
        )
        new.add_argument(
            "--topics", type=Path, metavar="FILE", help="the questions of TREC qrels: id, tab, text"
        )
        new.add_argument("--by", choices=ID_FIELDS, help="what the ids are; default: what most are")
        new.add_argument("--no-embed", action="store_true", help="do without embeddings")
        if command is _eval:
            new.add_argument("--k", type=int, default=10, metavar="N", help="of recall@k; 10")
            new.add_argument("--rerank", action="store_true", help="measure reranking, too")
        else:
            new.add_argument("--rerank", action="store_true", help="boosts of reranking, too")
            new.add_argument("--folds", type=int, default=5, metavar="N", help="parts held out; 5")
            new.add_argument(
                "--budget", type=float, default=300, metavar="SECONDS", help="to search for; 300"
            )
            new.add_argument("--apply", action="store_true", help="make it the bank's default")
            new.add_argument("--force", action="store_true", help="apply also an uncertain gain")

    new = add(commands, "forget", _forget, "erase memories", has_json=False)
    new.add_argument("bank")
    new.add_argument("memory_id", type=int, nargs="+")

    new = add(commands, "reembed", _reembed_bank, "give a bank another embedding model")
    new.add_argument("bank")
    new.add_argument("--model", metavar="NAME", help="name or directory of the new model")
    new.add_argument("--cancel", action="store_true", help="give up what was begun")
    new.add_argument(
        "--batch-size", type=int, default=64, metavar="N", help="texts embedded at once; 64"
    )
    new.add_argument("--rate", type=float, metavar="N", help="texts a second at most")
    new.add_argument(
        "--min-recall",
        type=float,
        default=_doctor.LEAST_RECALL,
        metavar="SHARE",
        help="share of the nearest that the new indexes have to find; 0.9",
    )
    new.add_argument(
        "--lossy", action="store_true", help="do without questions whose text nobody knows"
    )

    new = add(commands, "index", _index, "say which vector indexes are due, or build them")
    new.add_argument("bank", nargs="?", help="only of this bank")
    new.add_argument("--apply", action="store_true", help="run the statements")

    new = add(commands, "demo", _demo, "fill a bank and ask it eight questions", has_json=False)
    new.add_argument("--bank", default="demo", help="name of the demo's bank")

    add(commands, "doctor", _run_doctor, "check server, extensions, models and banks")
    return parser


if __name__ == "__main__":
    sys.exit(main())
