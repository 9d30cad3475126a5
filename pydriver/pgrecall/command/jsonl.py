"""Files of JSON lines, as the command reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from pgrecall.errors import InvalidFact, RecallError


class JsonLines:
    """The objects of a JSONL file, one a line, which can say on which line each stood."""

    def __init__(self, path: Path, example: str = '{"text": "Maya leads Atlas."}') -> None:
        """Keep the path, and an example of a line; blank lines are skipped."""
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
        except ValueError:
            problem = "a number with too many digits"
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
        """Name file and line in an error about the n-th fact."""
        if error.position is None or error.position >= len(self._numbers):
            return error
        place = f"{self._path}, line {self._numbers[error.position]}"
        problem = re.sub(r"^\w+\[\d+\]\.?(: )?", "", error.message)
        return type(error)(f"{place}: {problem}", hint=error.hint)
