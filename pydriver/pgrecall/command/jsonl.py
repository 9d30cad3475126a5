"""Read files of JSON lines."""

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
from typing import BinaryIO, TypeVar, cast

from pgrecall.errors import InvalidFact, RecallError

T = TypeVar("T")


@contextmanager
def opened(path: Path, *, is_copied: bool = True) -> Iterator[BinaryIO]:
    """Open a file for reading; a dash is standard input.

    With is_copied, a file that can be read only once, such as a pipe, is copied first.
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
    """The objects of a JSONL file, one per line, with their line numbers.

    A string is short for an object with that text.
    """

    def __init__(
        self,
        path: Path,
        example: str = '{"text": "Maya leads Atlas."}',
        refused: Callable[[InvalidFact], None] | None = None,
    ) -> None:
        """Choose what to read.

        Args:
            path: The file, or a dash for standard input. Blank lines are skipped.
            example: Example of a line, for errors.
            refused: Called with the error for a line that is not an object, which is then skipped.
                A pipe is then not copied, so it can be read only once. Default: raise the error.

        """
        self._path = path
        self._example = example
        self._refused = refused
        self._numbers = array("q")  # line numbers of the objects, in order
        self._file: BinaryIO | None = None

    @contextmanager
    def counted(self) -> Iterator[int]:
        """Open the file, count its objects, and keep it open to read them."""
        with opened(self._path) as file:
            self._file = file
            yield sum(1 for line in file if line.strip())

    def __iter__(self) -> Iterator[dict[str, object]]:
        """Read the objects.

        Raises:
            InvalidFact: a line is not a JSON object; the message names file and line.

        """
        return self._read(self._parsed)

    def texts(self, file: BinaryIO) -> Iterator[str]:
        """Read the lines of the file, opened already, as they are.

        Raises:
            InvalidFact: a line is not UTF-8; the message names file and line.

        """
        self._file = file
        return self._read(self._decoded)

    def _read(self, parse: Callable[[bytes, int], T]) -> Iterator[T]:
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
                    parsed = parse(line, number)
                except InvalidFact as error:
                    if self._refused is None:
                        raise
                    self._refused(error)
                else:
                    self._numbers.append(number)
                    yield parsed

    def _decoded(self, line: bytes, number: int) -> str:
        try:
            return line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise self._unusable(number, f"not UTF-8 at byte {error.start + 1}") from None

    def _parsed(self, line: bytes, number: int) -> dict[str, object]:
        text = self._decoded(line, number)
        try:
            value = json.loads(text)
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
        raise self._unusable(number, problem)

    def _unusable(self, number: int, problem: str) -> InvalidFact:
        return InvalidFact(
            f"{self._path}, line {number}: {problem}",
            hint=f"Each line is one JSON object, such as {self._example}.",
        )

    def located(self, error: RecallError) -> RecallError:
        """Add file and line to an error about the n-th fact."""
        if error.position is None or error.position >= len(self._numbers):
            return error
        place = f"{self._path}, line {self._numbers[error.position]}"
        problem = re.sub(r"^\w+\[\d+\]\.?(: )?", "", error.message)
        return type(error)(f"{place}: {problem}", hint=error.hint)
