"""The arguments of the command."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from rich.console import Console

from pgrecall._version import __version__
from pgrecall.command import actions, agents, doctor, memories, transfer
from pgrecall.core import RecallOptions
from pgrecall.embedders import DEFAULT_MODEL
from pgrecall.evaluation.measure import ID_FIELDS
from pgrecall.importing import READERS, SOURCES
from pgrecall.options import TOP_K, SqlOptions
from pgrecall.server import DSN_VARIABLE

_MODEL_HELP = f"embedding model, by name or directory; {DEFAULT_MODEL}"
OPTIONS = SqlOptions.__annotations__
_ARGUMENTS = {"bank", "query", *RecallOptions.__annotations__} - OPTIONS.keys()

Command = Callable[[argparse.Namespace, Console], int]


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"not a time: {text!r}; write 2026-03-05 or 2026-03-05T14:00Z"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _setting(text: str) -> tuple[str, object]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise argparse.ArgumentTypeError(f"not NAME=VALUE: {text!r}; write fusion=linear")
    if name in _ARGUMENTS:
        raise argparse.ArgumentTypeError(f"not an option of a recall: {name}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _field(text: str) -> tuple[str, object]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise argparse.ArgumentTypeError(f'not FIELD=VALUE: {text!r}; write text="Maya leads it."')
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _add_filter(to: argparse.ArgumentParser) -> None:
    to.add_argument(
        "--filter",
        metavar="CONDITION",
        help="only facts that meet it: \"confidence > 0.8 and metadata->>'team' = 'core'\"",
    )


def parser() -> argparse.ArgumentParser:
    """Make the parser."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--dsn", help=f"server and database; default: {DSN_VARIABLE}, else the embedded server"
    )
    machine = argparse.ArgumentParser(add_help=False)
    machine.add_argument("--json", action="store_true", help="print JSON, for machines")

    top = argparse.ArgumentParser(
        prog="pgrecall", description="PostgreSQL as the memory of AI agents."
    )
    top.add_argument("--version", action="version", version=f"pgrecall {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)

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

    new = add(
        commands, "migrate", actions.migrate, "install pgrecall in the database, or upgrade it"
    )
    only = new.add_mutually_exclusive_group()
    only.add_argument(
        "--dry-run",
        action="store_true",
        help="say what would be locked, for how long, and what can be done by hand before",
    )
    only.add_argument("--sql", action="store_true", help="print the script instead of running it")
    new.add_argument(
        "--lock-timeout",
        type=float,
        default=2.0,
        metavar="SECONDS",
        help="how long to wait for a table that is in use; 2",
    )
    new.add_argument(
        "--retries",
        type=int,
        default=5,
        metavar="N",
        help="how often to try again when a table was in use; 5",
    )

    bank = commands.add_parser("bank", help="create, list, show and drop banks")
    banks = bank.add_subparsers(metavar="COMMAND", required=True)
    new = add(banks, "create", actions.bank_create, "create an empty bank", has_json=False)
    new.add_argument("bank")
    new.add_argument(
        "--text-search-config",
        default="english",
        metavar="NAME",
        help='such as english; "simple" for mixed languages and identifiers',
    )
    new.add_argument("--fact-type", action="append", metavar="NAME", help="one more kind of fact")
    add(banks, "list", actions.bank_list, "list all banks")
    add(banks, "show", actions.bank_show, "show one bank").add_argument("bank")
    new = add(banks, "drop", actions.bank_drop, "erase a bank and all it holds", has_json=False)
    new.add_argument("bank")
    new.add_argument("--yes", action="store_true", help="do not ask")

    for name, command, what in (
        ("retain", actions.retain_facts, "facts"),
        ("retain-messages", actions.retain_messages, "raw messages"),
    ):
        new = add(commands, name, command, f"retain {what} from a JSONL file")
        new.add_argument("file", type=Path, metavar="FILE.jsonl")
        new.add_argument("--bank", required=True)
        new.add_argument("--create", action="store_true", help="create the bank if there is none")
        if command is actions.retain_facts:
            new.add_argument("--no-embed", action="store_true", help="store no embeddings")
            new.add_argument("--model", metavar="NAME", help=_MODEL_HELP)
            new.add_argument(
                "--no-link", action="store_true", help="leave links to the command link"
            )
            new.add_argument(
                "--replace",
                choices=("none", "key", "relation", "both"),
                help="end older facts of the same key, or relation; default: as the bank has it",
            )

    new = add(
        commands, "link", actions.link, "link what was retained without links", has_json=False
    )
    new.add_argument("bank")
    new.add_argument(
        "--batch-size", type=int, default=1000, metavar="N", help="facts a transaction; 1000"
    )

    new = add(
        commands, "maintain", actions.maintain, "do what is pending: counts, weights and links"
    )
    new.add_argument("bank", nargs="?", help="default: every bank")
    new.add_argument(
        "--batch-size", type=int, default=500, metavar="N", help="documents a transaction; 500"
    )
    new.add_argument(
        "--max-seconds", type=float, metavar="S", help="begin no batch after that long"
    )

    new = add(commands, "embed", transfer.embed, "embed what was retained without", has_json=False)
    new.add_argument("bank")
    new.add_argument("--model", metavar="NAME", help=_MODEL_HELP)
    new.add_argument(
        "--batch-size", type=int, default=64, metavar="N", help="texts embedded at once; 64"
    )
    new.add_argument("--watch", action="store_true", help="go on with what comes, until stopped")
    new.add_argument(
        "--interval", type=float, default=5.0, metavar="SECONDS", help="between two looks; 5"
    )

    new = add(commands, "import", transfer.import_all, "import facts from elsewhere, or an export")
    new.add_argument(
        "source",
        metavar="SOURCE",
        help="a file (.jsonl, .csv, .parquet), - for standard input, or the DSN of another store",
    )
    new.add_argument("--bank", required=True)
    new.add_argument(
        "--from",
        dest="origin",
        choices=(*READERS, *SOURCES),
        help="what the source is; default: by the name of the file, else jsonl",
    )
    new.add_argument("--text", metavar="COLUMN", help="the column of a file with the text")
    new.add_argument("--table", metavar="NAME", help="the table of the store, if not the usual one")
    new.add_argument("--part", metavar="NAME", help="only this collection, user or bank of it")
    new.add_argument(
        "--vectors-of",
        metavar="MODEL",
        help="take its embeddings along, which this model made; default: embed anew",
    )
    new.add_argument("--create", action="store_true", help="create the bank if there is none")
    new.add_argument("--no-embed", action="store_true", help="store no embeddings")
    new.add_argument("--model", metavar="NAME", help=_MODEL_HELP)

    new = add(
        commands,
        "export",
        transfer.export,
        "write all rows of a bank as JSON lines",
        has_json=False,
    )
    new.add_argument("bank")
    new.add_argument("file", type=Path, nargs="?", metavar="FILE.jsonl", help="default: print them")

    new = add(commands, "recall", actions.ask, "ask a bank a question")
    new.epilog = f"Options that --set takes: {', '.join(sorted(OPTIONS))}."
    new.add_argument("bank")
    new.add_argument("question")
    new.add_argument("--top-k", type=int, metavar="N", help=f"answers at most; {TOP_K}")
    new.add_argument(
        "--set",
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        help="set an option, as JSON or bare text; can be repeated; the options are below",
    )
    _add_filter(new)
    new.add_argument("--fact-type", action="append", metavar="NAME", help="only facts of this type")
    new.add_argument("--tag", action="append", help="only facts with this tag")
    new.add_argument("--at", type=_moment, metavar="TIME", help="ask as if it were that time")
    new.add_argument("--explain", action="store_true", help="say what each arm did")
    new.add_argument("--html", type=Path, metavar="FILE", help="write the explanation as a page")
    new.add_argument("--no-embed", action="store_true", help="do without the query's embedding")
    new.add_argument("--model", metavar="NAME", help=_MODEL_HELP)

    for name, command, what in (
        (
            "eval",
            actions.measure,
            "measure answers by questions with known ones",
        ),
        (
            "tune",
            actions.tune_bank,
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
        if command is actions.measure:
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

    new = add(commands, "list", memories.list_them, "list memories, latest stored first")
    new.add_argument("bank")
    _add_filter(new)
    new.add_argument("--fact-type", action="append", metavar="NAME", help="only facts of this type")
    new.add_argument("--tag", action="append", help="only facts with this tag")
    new.add_argument("--entity", metavar="NAME", help="only what mentions it")
    new.add_argument(
        "--since", type=_moment, metavar="TIME", help="only what occurred from then on"
    )
    new.add_argument("--until", type=_moment, metavar="TIME", help="only what occurred before")
    new.add_argument("--all", action="store_true", help="what no longer holds as well")
    new.add_argument("--before", type=int, metavar="ID", help="the next page: from the last id on")
    new.add_argument("--top-k", type=int, metavar="N", help="memories at most; 50")

    new = add(commands, "get", memories.get, "show memories by id")
    new.add_argument("bank")
    new.add_argument("memory_id", type=int, nargs="+")

    new = add(commands, "history", memories.history, "list the versions of a fact")
    new.add_argument("bank")
    new.add_argument("memory_id", type=int)

    new = add(commands, "update", memories.update, "change fields of a memory, and keep the old")
    new.add_argument("bank")
    new.add_argument("memory_id", type=int)
    new.add_argument(
        "changes",
        type=_field,
        nargs="+",
        metavar="FIELD=VALUE",
        help='as JSON or bare text: text="Maya leads Borealis." tags=\'["team"]\' context=null',
    )
    new.add_argument("--no-embed", action="store_true", help="store no embedding of a new text")
    new.add_argument("--model", metavar="NAME", help=_MODEL_HELP)

    new = add(commands, "forget", memories.forget, "erase memories", has_json=False)
    new.add_argument("bank")
    new.add_argument("memory_id", type=int, nargs="*")
    _add_filter(new)
    new.add_argument("--key", metavar="KEY", help="all facts of this key, former ones too")
    new.add_argument("--source", metavar="ID", help="all facts from this source")
    new.add_argument("--dry-run", action="store_true", help="only say how many would go")

    new = add(commands, "supersede", actions.supersede, "end a memory that no longer holds")
    new.add_argument("bank")
    new.add_argument("memory_id", type=int)
    new.add_argument("--by", type=int, metavar="ID", help="the memory that takes its place")
    new.add_argument("--at", type=_moment, metavar="TIME", help="from when on; now")
    new.add_argument("--copies", action="store_true", help="end its near copies, too")
    new.add_argument("--dry-run", action="store_true", help="only say what would end")

    new = add(commands, "unsupersede", actions.unsupersede, "take back what ended a memory")
    new.add_argument("bank")
    new.add_argument("memory_id", type=int)

    new = add(commands, "consolidate", actions.consolidate, "list or merge near duplicates")
    new.add_argument("bank")
    new.add_argument(
        "--min-similarity",
        type=float,
        metavar="SHARE",
        help="least similarity of different texts; 0.95",
    )
    which = new.add_mutually_exclusive_group()
    which.add_argument("--apply", action="store_true", help="merge them")
    which.add_argument("--undo", action="store_true", help="undo the latest merge")

    new = add(commands, "reembed", actions.reembed_bank, "give a bank another embedding model")
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
        default=doctor.LEAST_RECALL,
        metavar="SHARE",
        help="share of the nearest that the new indexes have to find; 0.9",
    )
    new.add_argument(
        "--lossy", action="store_true", help="do without questions whose text nobody knows"
    )

    new = add(commands, "index", actions.index, "say which vector indexes are due, or build them")
    new.add_argument("bank", nargs="?", help="only of this bank")
    new.add_argument("--apply", action="store_true", help="run the statements")

    asked = f"default: {agents.BANK_VARIABLE}"
    new = add(commands, "mcp", agents.serve, "serve a bank to MCP clients", has_json=False)
    new.add_argument("--bank", metavar="NAME", help=f"the one bank of all tools; {asked}")
    new.add_argument("--create", action="store_true", help="create the bank if there is none")
    new.add_argument("--read-only", action="store_true", help="offer recall and list alone")
    new.add_argument(
        "--http", action="store_true", help="streamable HTTP at /mcp; default: standard input"
    )
    new.add_argument(
        "--host", default="127.0.0.1", help="address to listen at, whoever reaches it may use it"
    )
    new.add_argument("--port", type=int, default=8000, metavar="N", help="8000")
    new.add_argument("--no-embed", action="store_true", help="do without embeddings")
    new.add_argument("--model", metavar="NAME", help=_MODEL_HELP)

    new = add(
        commands, "init", agents.init, "enter a bank at coding agents, by MCP", has_json=False
    )
    new.add_argument("agent", nargs="+", choices=agents.AGENTS, metavar="AGENT")
    new.epilog = f"Agents: {', '.join(agents.AGENTS)}."
    new.add_argument(
        "--bank", metavar="NAME", help=f"{asked}, else the name of the directory; made when served"
    )
    new.add_argument(
        "--directory", type=Path, default=Path(), metavar="PATH", help="of the project; this one"
    )
    new.add_argument("--hooks", action="store_true", help="ask the bank before each prompt, too")
    new.add_argument("--dry-run", action="store_true", help="only say what would be written")

    new = add(
        commands,
        "hook",
        agents.hook,
        "print what a bank knows about the prompt that a coding agent hands to its hooks",
        has_json=False,
    )
    new.add_argument("--bank", metavar="NAME", help=asked)
    new.add_argument(
        "--max-tokens",
        type=int,
        default=agents.HOOK_TOKENS,
        metavar="N",
        help=f"length of what is printed at most; {agents.HOOK_TOKENS}",
    )
    new.add_argument(
        "--timeout",
        type=float,
        default=agents.HOOK_SECONDS,
        metavar="SECONDS",
        help=f"time for the answer; {agents.HOOK_SECONDS:g}",
    )
    new.add_argument("--no-embed", action="store_true", help="do without the prompt's embedding")
    new.add_argument("--model", metavar="NAME", help=_MODEL_HELP)

    new = add(
        commands, "demo", actions.run_demo, "fill a bank and ask it ten questions", has_json=False
    )
    new.add_argument("--bank", default="demo", help="name of the demo's bank")

    add(commands, "doctor", actions.run_doctor, "check server, extensions, models and banks")
    return top
