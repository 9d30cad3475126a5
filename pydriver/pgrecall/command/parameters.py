"""Parts of the command line: groups, commands, shared options and types of values.

Nothing here imports what commands need to run, so help and completion are fast.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import click

from pgrecall.options import SqlOptions

OPTIONS = SqlOptions.__annotations__


class Group(click.Group):
    """A group that lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)


class Command(click.Command):
    """A command that runs a function of a module, which is imported only then.

    Attributes:
        examples: Command lines, shown in its help.

    """

    def __init__(
        self,
        group: click.Group,
        name: str,
        action: str,
        about: str,
        examples: Sequence[str],
        *params: click.Parameter,
        has_dsn: bool = True,
        has_json: bool = True,
        at_most_one: Sequence[str] = (),
    ) -> None:
        """Add the command to a group.

        Args:
            group: The group.
            name: Name of the command.
            action: Module and function to run, such as "actions.migrate". The function takes the
                arguments as a namespace, and the console to print to.
            about: What it does; the list of commands shows the first sentence.
            examples: At least one command line that works.
            params: Its arguments and options; --dsn and --json are added.
            has_dsn: Whether it takes --dsn, as all commands that use a server.
            has_json: Whether it takes --json, as all commands that print results.
            at_most_one: Names of mutually exclusive options.

        """
        common = []
        if has_dsn:
            common.append(option("--dsn", help=DSN_HELP))
        if has_json:
            common.append(flag("--json", help="Print JSON."))
        super().__init__(
            name,
            callback=partial(self._run, action, at_most_one),
            help=about,
            params=[*params, *common],
        )
        self.examples = examples
        group.add_command(self)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples below the options."""
        write_examples(formatter, self.examples)

    @staticmethod
    def _run(action: str, at_most_one: Sequence[str], **given: object) -> int:
        given_of_them = [name for name in at_most_one if given[name]]
        if len(given_of_them) > 1:
            names = " and ".join(f"--{name.replace('_', '-')}" for name in given_of_them)
            raise click.UsageError(f"{names} are mutually exclusive.")
        run = import_module("pgrecall.command.running").run
        return int(run(action, SimpleNamespace(**given)))


def write_examples(formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    """Write command lines without wrapping."""
    with formatter.section("Examples"):
        for example in examples:
            formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def argument(name: str, **settings: Any) -> click.Argument:
    """Return a positional argument."""
    return click.Argument([name], **settings)


def option(*names: str, **settings: Any) -> click.Option:
    """Return an option with a value."""
    return click.Option(names, **settings)


def flag(*names: str, help: str) -> click.Option:  # noqa: A002
    """Return an option without a value."""
    return click.Option(names, is_flag=True, help=help)


def several(*names: str, **settings: Any) -> click.Option:
    """Return an option that can be repeated: a list, or None if it is not given."""
    return click.Option(names, multiple=True, callback=lambda _, __, v: list(v) or None, **settings)


def moment(text: str) -> datetime:
    """Parse a time; UTC if it has no zone."""
    try:
        found = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))
    except ValueError:
        raise click.BadParameter(
            f"not a time: {text!r}; write 2026-03-05 or 2026-03-05T14:00Z"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def setting(text: str) -> tuple[str, object]:
    """Parse an option of a recall: NAME=VALUE."""
    name, value = _pair(text, "NAME", "fusion=linear")
    known = import_module("pgrecall.asking.recall_options").RecallOptions.__annotations__
    if name in {"bank", "query", *known} - OPTIONS.keys():
        raise click.BadParameter(f"not an option of a recall: {name}")
    return name, value


def field(text: str) -> tuple[str, object]:
    """Parse a field of a memory: FIELD=VALUE."""
    name, value = _pair(text, "FIELD", 'text="Maya leads it."')
    if name in ("self", "bank", "memory_id", "model"):  # arguments of update()
        raise click.BadParameter(f"not a field of a memory: {name}")
    return name, value


def pair(text: str) -> tuple[str, str]:
    """Parse a field and its column: FIELD=COLUMN."""
    name, sign, column = text.partition("=")
    if not (name and sign and column):
        raise click.BadParameter(f"not FIELD=COLUMN: {text!r}; write context=title")
    return name, column


def _pair(text: str, what: str, example: str) -> tuple[str, object]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise click.BadParameter(f"not {what}=VALUE: {text!r}; write {example}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


SECONDS = click.FloatRange(0, 86_400)
PORT = click.IntRange(0, 65_535)
DSN_HELP = "Server and database; default: PGRECALL_DSN, else the embedded server."

BANK = partial(argument, "bank")
FILTER = partial(
    option,
    "--filter",
    metavar="CONDITION",
    help="Only facts that meet it: \"confidence > 0.8 and metadata->>'team' = 'core'\".",
)
FACT_TYPE = partial(several, "--fact-type", metavar="NAME", help="Only facts of this type.")
TAG = partial(several, "--tag", help="Only facts with this tag.")


def SYNCING() -> tuple[click.Option, ...]:  # noqa: N802  named as the others
    """Return the options of commands that sync tables."""
    return (
        option(
            "--batch-size", type=int, default=1000, metavar="N", help="Rows per transaction; 1000."
        ),
        flag("--watch", help="Then follow changes, until stopped."),
        INTERVAL(),
    )


INTERVAL = partial(
    option,
    "--interval",
    type=SECONDS,
    default=5.0,
    metavar="SECONDS",
    help="Time between checks; 5.",
)
CREATE = partial(flag, "--create", help="Create the bank if it does not exist.")
NO_EMBED = partial(flag, "--no-embed", help="Store no embeddings.")
MODEL = partial(
    option,
    "--model",
    metavar="NAME",
    help="Embedding model, by name or directory; default: the packaged one.",
)
