"""Measure how well dates in questions are read, and how fast.

    python -m bench.quality.dates --smoke
    python -m bench.quality.dates --full
    python -m bench.quality.dates --full --data /path/to/cases.json --fails 20

A case is {text, reference_time, expected_start, expected_end, source, tags}. The end is exclusive,
null is an open side, and both are null if the question names no time. Counted are:

* exact, near: both bounds are those expected, or within a day of them. An open side may also be
  closed far enough out: the end not before the reference time, the start not after 1900.
* overlap, covers: the window meets, or contains, the expected one; wide: contains it and is more
  than three times as long (and more than 31 days). none: nothing was read.
* fp: a time was read where the question names none.

Groups: core are cases whose answer does not depend on a convention, core-past those of them that
are not in the future, conv the others (rolling windows, seasons, holidays, parts, ...), neg-* cases
without a time.

Other languages are measured on the project's own cases: de.exact is in percent, de.fp is the number
of questions without a time in which one was read.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

from bench import harness

from pgrecall.temporal import extract_temporal_constraint

SMOKE_EVERY = 8  # the cases of a smoke run: each eighth
LANGUAGES = ("de", "es", "fr", "it", "nl", "pt")
LANGUAGE_CASES = harness.ROOT / "tests" / "temporal" / "cases"  # described in its README
LANGUAGE_TIME = datetime(2026, 11, 20, 12)
LONG_AGO, FAR_AHEAD = date(1000, 1, 1), date(2999, 1, 1)
ADVERSARIAL = ("1", "1. ", "1/", "1-", "12:", "9.", "1 ", "1/1/", "2020-", "1 day ", "May 1 ")

Window = tuple["date | None", "date | None"]
Reader = Callable[[str, datetime], "tuple[datetime | None, datetime | None] | None"]


def window(text: str, reference_time: datetime) -> tuple[datetime | None, datetime | None] | None:
    """Return the bounds alone."""
    found = extract_temporal_constraint(text, reference_time)
    return None if found is None else (found.start, found.end)


@dataclass(frozen=True)
class Case:
    text: str
    reference_time: datetime
    start: date | None
    end: date | None
    source: str
    tags: tuple[str, ...]

    @property
    def is_negative(self) -> bool:
        return self.start is None and self.end is None

    @property
    def groups(self) -> list[str]:
        if self.is_negative:
            return [*self.tags[:1], "neg-all"]
        conventions = ("holiday", "spelled-year", "odd")
        is_core = not any(t.startswith("conv:") or t in conventions for t in self.tags)
        groups = ["pos-all", "core" if is_core else "conv"]
        if is_core and "future" not in self.tags:
            groups.append("core-past")
        if self.source == "hand":
            groups.append("hand")
        return groups


def read_cases(path: Path) -> list[Case]:
    """Read a file of cases; end the program with the first invalid case where there is one."""
    found: list[Case] = []
    try:
        for raw in json.loads(path.read_text(encoding="utf-8")):
            start, end = raw["expected_start"], raw["expected_end"]
            case = Case(
                raw["text"],
                datetime.fromisoformat(raw["reference_time"]),
                date.fromisoformat(start) if start is not None else None,
                date.fromisoformat(end) if end is not None else None,
                raw.get("source") or "",
                tuple(raw.get("tags") or ()),
            )
            found.append(case)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        sys.exit(f"{path} is no file of cases: case {len(found) + 1}: {error!r}")
    return found


def to_days(found: tuple[datetime | None, datetime | None]) -> Window:
    """Cut to days; an end inside a day counts as the end of that day."""
    start, end = found
    last = None
    if end is not None:
        last = end.date()
        if end.replace(hour=0, minute=0, second=0, microsecond=0) != end:
            last += timedelta(days=1)
    return start and start.date(), last


def judge(case: Case, found: tuple[datetime | None, datetime | None] | None) -> dict[str, bool]:
    """Compare a window with the expected one."""
    if case.is_negative:
        return {"fp": found is not None}
    if found is None:
        return {"none": True}
    start, end = to_days(found)
    asked = case.reference_time.date()

    def agree(days: int) -> bool:
        slack = timedelta(days=days)
        if case.start is None:
            first = start is None or start <= date(1900, 1, 1)
        else:
            first = start is not None and abs(start - case.start) <= slack
        if case.end is None:
            last = end is None or end >= max(asked, case.start or asked)
        else:
            last = end is not None and abs(end - case.end) <= slack
        return first and last

    low, high = start or LONG_AGO, end or FAR_AHEAD
    wanted_low, wanted_high = case.start or LONG_AGO, case.end or FAR_AHEAD
    if case.start is None and start and start <= date(1900, 1, 1):
        wanted_low = low
    if case.end is None and end and case.start and end >= max(asked, case.start) and high > low:
        wanted_high = high
    covers = low <= wanted_low and high >= wanted_high
    longest = max(31, 3 * (wanted_high - wanted_low).days)
    return {
        "exact": agree(0),
        "near": agree(1),
        "overlap": low < wanted_high and wanted_low < high,
        "covers": covers,
        "wide": covers and (high - low).days > longest,
    }


def score(cases: list[Case], read: Reader) -> tuple[dict[str, float], list[str]]:
    """Return the figures of each group, in percent except n and fp, and the failures."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    milliseconds: list[float] = []
    failures = []
    read("warm up on 3 May 2020", datetime(2021, 1, 1))
    for case in cases:
        began = time.perf_counter()
        found = read(case.text, case.reference_time)
        milliseconds.append((time.perf_counter() - began) * 1e3)
        verdict = judge(case, found)
        if verdict.get("fp") or not (case.is_negative or verdict.get("near")):
            said = found and " to ".join(str(bound)[:10] for bound in found)
            wanted = "nothing" if case.is_negative else f"{case.start} to {case.end}"
            failures.append(f"{case.text} [{case.reference_time:%F}]: {wanted}, not {said}")
        for group in case.groups:
            counts[group]["n"] += 1
            for name, is_so in verdict.items():
                counts[group][name] += is_so
    figures: dict[str, float] = {}
    for group, count in sorted(counts.items()):
        n = count["n"]
        figures[f"{group}.n"] = n
        if group.startswith("neg-"):
            figures[f"{group}.fp"] = count["fp"]
            figures[f"{group}.fp_percent"] = round(100 * count["fp"] / n, 1)
        else:
            for name in ("exact", "near", "overlap", "covers", "wide", "none"):
                figures[f"{group}.{name}"] = round(100 * count[name] / n, 1)
    for percent in (50, 95):
        figures[f"p{percent}_ms"] = round(harness.percentile(milliseconds, percent), 3)
    return figures, failures


def slowest_adversary(read: Reader) -> float:
    """Return the milliseconds for the slowest of some 8 kB texts of digits, the best of 3 runs."""

    def once(text: str) -> float:
        began = time.perf_counter()
        read(text, datetime(2026, 11, 20))
        return (time.perf_counter() - began) * 1e3

    texts = [(piece * 8192)[:8192] for piece in ADVERSARIAL]
    return round(max(min(once(text) for _ in range(3)) for text in texts), 3)


def score_language(code: str, every: int) -> tuple[dict[str, float], list[str]]:
    """Return the figures of one language, and the failures."""

    def read(text: str) -> tuple[str | None, str | None] | None:
        found = extract_temporal_constraint(text, LANGUAGE_TIME, language=code)
        if found is None:
            return None
        start, end = (str(bound)[:10] if bound else None for bound in (found.start, found.end))
        return start, end

    cases = json.loads((LANGUAGE_CASES / f"cases_{code}.json").read_text(encoding="utf-8"))
    plain = (LANGUAGE_CASES / f"plain_{code}.txt").read_text(encoding="utf-8").splitlines()
    cases, plain = cases[::every], plain[::every]
    failures, milliseconds = [], []
    read("2020")  # the first call loads the language
    for case in cases:
        began = time.perf_counter()
        found = read(case["text"])
        milliseconds.append((time.perf_counter() - began) * 1e3)
        if found != (case["start"], case["end"]):
            failures.append(f"{case['text']}: {case['start']} to {case['end']}, not {found}")
    exact = 100 * (1 - len(failures) / len(cases))
    wrong = [f"{text}: nothing, not {found}" for text in plain if (found := read(text))]
    figures = {
        f"{code}.n": len(cases),
        f"{code}.exact": round(exact, 1),
        f"{code}.plain_n": len(plain),
        f"{code}.fp": len(wrong),
        f"{code}.p95_ms": round(harness.percentile(milliseconds, 95), 3),
    }
    return figures, failures + wrong


def main() -> None:
    parser = harness.arguments(__doc__, "temporal_dev.json")
    parser.add_argument("--fails", type=int, default=0, help="how many misses to print")
    arguments = parser.parse_args()
    data = harness.require(arguments.data)
    every = SMOKE_EVERY if arguments.smoke else 1

    cases = read_cases(data)[::every]
    figures, failures = score(cases, window)
    figures["adversarial_ms"] = slowest_adversary(window)
    for code in LANGUAGES:
        measured, wrong = score_language(code, every)
        figures |= measured
        failures += wrong

    harness.show(figures)
    for failure in failures[: arguments.fails]:
        print(failure)
    harness.write(arguments, figures, {"n": len(cases)})


if __name__ == "__main__":
    main()
