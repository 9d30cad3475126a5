"""Parts of the command line: its groups and commands, the options they share, how values are read.

Nothing here imports what a command needs to run: help and completion come at once.
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
    """Commands, listed in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)


class Command(click.Command):
    """A command that runs a function of another module, imported only then.

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
            name: Its name there.
            action: Module and function that does it, such as "actions.migrate"; the function
                takes the arguments as a namespace, and the console to print to.
            about: What it does; the first sentence stands in the list of commands.
            examples: At least one line that a reader can run.
            params: Its arguments and options; --dsn and --json are added.
            has_dsn: Whether it takes --dsn; all that ask a server do.
            has_json: Whether it takes --json; all that print results do.
            at_most_one: Names of options that exclude one another.

        """
        common = []
        if has_dsn:
            common.append(option("--dsn", help=DSN_HELP))
        if has_json:
            common.append(flag("--json", help="Print JSON, for machines."))
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
            raise click.UsageError(f"{names} exclude one another.")
        run = import_module("pgrecall.command.running").run
        return int(run(action, SimpleNamespace(**given)))


def write_examples(formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    """Write command lines as they are, never wrapped."""
    with formatter.section("Examples"):
        for example in examples:
            formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def argument(name: str, **settings: Any) -> click.Argument:
    """Return an argument that is given by its place."""
    return click.Argument([name], **settings)


def option(*names: str, **settings: Any) -> click.Option:
    """Return an option with a value."""
    return click.Option(names, **settings)


def flag(*names: str, help: str) -> click.Option:  # noqa: A002
    """Return an option without a value."""
    return click.Option(names, is_flag=True, help=help)


def several(*names: str, **settings: Any) -> click.Option:
    """Return an option that can be repeated: a list, or None where it was not given."""
    return click.Option(names, multiple=True, callback=lambda _, __, v: list(v) or None, **settings)


def moment(text: str) -> datetime:
    """Read a time; UTC where it names no zone."""
    try:
        found = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))
    except ValueError:
        raise click.BadParameter(
            f"not a time: {text!r}; write 2026-03-05 or 2026-03-05T14:00Z"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def setting(text: str) -> tuple[str, object]:
    """Read an option of a recall: NAME=VALUE."""
    name, value = _pair(text, "NAME", "fusion=linear")
    known = import_module("pgrecall.asking.recall_options").RecallOptions.__annotations__
    if name in {"bank", "query", *known} - OPTIONS.keys():
        raise click.BadParameter(f"not an option of a recall: {name}")
    return name, value


def field(text: str) -> tuple[str, object]:
    """Read a field of a memory: FIELD=VALUE."""
    return _pair(text, "FIELD", 'text="Maya leads it."')


def pair(text: str) -> tuple[str, str]:
    """Read a field and the column for it: FIELD=COLUMN."""
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
    """Return the options of what syncs tables."""
    return (
        option(
            "--batch-size", type=int, default=1000, metavar="N", help="Rows a transaction; 1000."
        ),
        flag("--watch", help="Go on with what changes, until stopped."),
        option(
            "--interval", type=float, default=5.0, metavar="SECONDS", help="Between two looks; 5."
        ),
    )


CREATE = partial(flag, "--create", help="Create the bank if there is none.")
NO_EMBED = partial(flag, "--no-embed", help="Store no embeddings.")
MODEL = partial(
    option,
    "--model",
    metavar="NAME",
    help="Embedding model, by name or directory; default: the packaged one.",
)
