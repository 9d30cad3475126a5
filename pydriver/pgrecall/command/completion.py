"""``pgrecall completion``: shell completion."""

from __future__ import annotations

from types import SimpleNamespace

from click.shell_completion import get_completion_class
from rich.console import Console

from pgrecall.command.arguments import PROGRAM, top


def show(options: SimpleNamespace, console: Console) -> int:
    """Print the completion script for a shell."""
    kind = get_completion_class(options.shell)
    if kind is None:  # pragma: no cover: the choices are those of click
        raise NotImplementedError(options.shell)
    console.file.write(kind(top, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE").source() + "\n")
    return 0
