"""Files of JSON lines, as the command reads them."""

from __future__ import annotations

import json
import re
import shutil
import sys
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

from pgrecall.errors import InvalidFact, RecallError


@contextmanager
def opened(path: Path, *, is_copied: bool = True) -> Iterator[BinaryIO]:
    """Open a file for reading, from its start; a dash is standard input.

    What can be read only once, such as a pipe, is copied first, where that is wanted.
    """
    with ExitStack() as stack:
        file = sys.stdin.buffer if str(path) == "-" else stack.enter_context(path.open("rb"))
        if is_copied and not file.seekable():
            copy = stack.enter_context(SpooledTemporaryFile(1 << 24))
            shutil.copyfileobj(file, copy)
            copy.seek(0)
            file = cast("BinaryIO", copy)
        yield file


class JsonLines:
    """The objects of a JSONL file, one a line, which can say on which line each stood.

    A line that is a text stands for an object with that text.
    """

    def __init__(
        self,
        path: Path,
        example: str = '{"text": "Maya leads Atlas."}',
        refused: Callable[[InvalidFact], None] | None = None,
    ) -> None:
        """Say what to read.

        Args:
            path: The file, or a dash for standard input. Blank lines are skipped.
            example: Of a line, for errors.
            refused: Called with the error about a line that is not an object; it is then left out.
                A pipe can then be read only once, and is not copied. Default: it is raised.

        """
        self._path = path
        self._example = example
        self._refused = refused
        self._numbers = array("q")  # of the lines, in order
        self._file: BinaryIO | None = None

    @contextmanager
    def counted(self) -> Iterator[int]:
        """Open the file and count its objects; they are read while it is open."""
        with opened(self._path) as file:
            self._file = file
            yield sum(1 for line in file if line.strip())

    def __iter__(self) -> Iterator[dict[str, object]]:
        """Read the objects.

        Raises:
            InvalidFact: a line is not a JSON object; the message names file and line.

        """
        del self._numbers[:]
        with ExitStack() as stack:
            file = self._file
            if file is None or file.closed:
                file = stack.enter_context(opened(self._path, is_copied=self._refused is None))
            if file.seekable():
                file.seek(0)
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    parsed = self._parsed(line, number)
                except InvalidFact as error:
                    if self._refused is None:
                        raise
                    self._refused(error)
                else:
                    self._numbers.append(number)
                    yield parsed

    def _parsed(self, line: bytes, number: int) -> dict[str, object]:
        try:
            value = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError as error:
            problem = f"not UTF-8 at byte {error.start + 1}"
        except json.JSONDecodeError as error:
            problem = f"not JSON at column {error.colno}: {error.msg}"
        except ValueError:
            problem = "a number with too many digits"
        except RecursionError:
            problem = "nested too deeply"
        else:
            if isinstance(value, dict):
                return value
            if isinstance(value, str):
                return {"text": value}
            problem = "not an object"
        raise InvalidFact(
            f"{self._path}, line {number}: {problem}",
            hint=f"Each line is one JSON object, such as {self._example}.",
        )

    def located(self, error: RecallError) -> RecallError:
        """Name file and line in an error about the n-th fact."""
        if error.position is None or error.position >= len(self._numbers):
            return error
        place = f"{self._path}, line {self._numbers[error.position]}"
        problem = re.sub(r"^\w+\[\d+\]\.?(: )?", "", error.message)
        return type(error)(f"{place}: {problem}", hint=error.hint)
