"""The command: pgrecall."""

from __future__ import annotations

from collections.abc import Sequence

try:
    import click
    import rich  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise SystemExit(
        f"pgrecall: package {error.name} is missing. Run: pip install 'pgrecall[cli]'"
    ) from error

from pgrecall.command.arguments import PROGRAM, top


def main(words: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        words: The arguments. Default: those of the command line.

    Returns:
        0 for success, 1 for an error; wrong usage exits with 2.

    """
    try:
        # Click would expand wildcards in questions on Windows.
        done = top.main(
            None if words is None else list(words),
            prog_name=PROGRAM,
            standalone_mode=False,
            windows_expand_args=False,
        )
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    except click.Abort:
        return 1
    return int(done)
