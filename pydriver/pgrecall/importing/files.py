"""Read rows to import from JSON lines, CSV with a header, and Parquet."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from io import TextIOWrapper
from typing import BinaryIO

from pgrecall.errors import InvalidArgument
from pgrecall.importing.rows import Row, fact_of

_LONGEST_CELL = 2**31 - 1  # of a CSV file; the default of 131,072 would end the import


def read_file(file: BinaryIO, kind: str, *, text: str | None = None) -> Iterator[Row]:
    """Read the rows of a file.

    Args:
        file: An open file; Parquet needs one that can seek.
        kind: "jsonl", "csv" or "parquet".
        text: Name of the column with the text. Default: see fact_of().

    Raises:
        InvalidArgument: the file is of another kind, or a package is missing.

    """
    for place, columns in READERS[kind](file):
        if isinstance(columns, str):
            yield Row(place, None, columns)
            continue
        try:
            yield Row(place, fact_of(columns, text))
        except ValueError as error:
            yield Row(place, None, str(error))


def _lines(file: BinaryIO) -> Iterator[tuple[str, Mapping[str, object] | str]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except (ValueError, RecursionError) as error:
            yield f"line {number}", f"not JSON: {str(error)[:80]}"
            continue
        if isinstance(value, str):
            value = {"text": value}
        yield f"line {number}", value if isinstance(value, dict) else "not an object"


def _table(file: BinaryIO) -> Iterator[tuple[str, Mapping[str, object] | str]]:
    reader = csv.DictReader(TextIOWrapper(file, "utf-8-sig", newline=""))
    limit = csv.field_size_limit(_LONGEST_CELL)
    try:
        if not reader.fieldnames:
            raise InvalidArgument(
                "the CSV file has no header",
                hint="Name the columns in its first line.",
            )
        twice = [name for name, count in Counter(reader.fieldnames).items() if count > 1]
        if twice:
            raise InvalidArgument(
                f'the header of the CSV file has the column "{twice[0]}" twice',
                hint="Give each column a name of its own.",
            )
        for columns in reader:
            place = f"line {reader.line_num}"
            rest = columns.pop(None, None)
            if rest:
                yield place, f"it has {len(rest)} more cells than the header"
            else:
                yield place, columns
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidArgument(
            f"line {reader.line_num + 1} is not CSV in UTF-8: {error}",
            hint="Save the file as UTF-8 with commas between the cells.",
        ) from error
    finally:
        csv.field_size_limit(limit)


def _parquet(file: BinaryIO) -> Iterator[tuple[str, Mapping[str, object] | str]]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise InvalidArgument(
            "package pyarrow is missing", hint="Run: pip install 'pgrecall[parquet]'"
        ) from error
    number = 0
    try:
        for batch in ParquetFile(file).iter_batches(1000):
            for columns in batch.to_pylist():
                number += 1
                yield f"row {number}", columns
    except (ArrowException, OSError, ValueError) as error:  # ValueError: a time in nanoseconds
        raise InvalidArgument(
            f"the file is not Parquet that can be read after row {number}: {error}",
            hint="Correct the file, or name its kind with --from.",
        ) from error


READERS: dict[str, Callable[[BinaryIO], Iterator[tuple[str, Mapping[str, object] | str]]]] = {
    "jsonl": _lines,
    "csv": _table,
    "parquet": _parquet,
}
