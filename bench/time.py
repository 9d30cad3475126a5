"""Measure how well dates in questions are read, and how fast.

    python bench/time.py --smoke
    python bench/time.py --full --json time.json
    python bench/time.py --full --data /path/to/cases.json --fails 20

A case is {text, reference_time, expected_start, expected_end, source, tags}: the end is exclusive,
null is an open side, both null says that the question names no time. What is counted:

* exact, near: both bounds are those expected, or within a day of them. An open side may also be
  closed far enough out: the end not before the reference time, the start not after 1900.
* overlap, covers: the window meets, or contains, the expected one; wide: contains it and is more
  than three times as long (and more than 31 days). none: nothing was read.
* fp: something was read where nothing is said.

Groups: core are the cases whose answer hangs on no convention, core-past those not in the future,
conv the others (rolling windows, seasons, holidays, parts, ...); neg-* are the cases without time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from pgrecall.temporal import extract_temporal_constraint

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data" / "temporal_dev.json"
SMOKE_EVERY = 8  # the cases of a smoke run: each eighth
LONG_AGO, FAR_AHEAD = date(1000, 1, 1), date(2999, 1, 1)
ADVERSARIAL = ("1", "1/", "1-", "12:", "9.", "1 ", "1/1/", "2020-", "1 day ", "May 1 ")

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
    name: str

    @property
    def is_negative(self) -> bool:
        return self.start is None and self.end is None

    @property
    def groups(self) -> list[str]:
        if self.is_negative:
            return [self.tags[0], "neg-all"]
        conventions = ("holiday", "spelled-year", "odd")
        is_core = not any(t.startswith("conv:") or t in conventions for t in self.tags)
        groups = ["pos-all", "core" if is_core else "conv"]
        if is_core and "future" not in self.tags:
            groups.append("core-past")
        if self.source == "hand":
            groups.append("hand")
        return groups


def read_cases(path: Path) -> list[Case]:
    def day(value: str | None) -> date | None:
        return None if value is None else date.fromisoformat(value)

    return [
        Case(
            raw["text"],
            datetime.fromisoformat(raw["reference_time"]),
            day(raw["expected_start"]),
            day(raw["expected_end"]),
            raw["source"],
            tuple(raw["tags"]),
            raw["name"],
        )
        for raw in json.loads(path.read_text())
    ]


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
    """Return each group's figures, in percent except n and fp, and what went wrong."""
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
    milliseconds.sort()
    figures["p50_ms"] = round(milliseconds[len(milliseconds) // 2], 3)
    figures["p95_ms"] = round(milliseconds[int(len(milliseconds) * 0.95)], 3)
    return figures, failures


def slowest_adversary(read: Reader) -> float:
    """Return the milliseconds of the worst of 8 KB texts of digits; the best of three runs each."""

    def once(text: str) -> float:
        began = time.perf_counter()
        read(text, datetime(2026, 11, 20))
        return (time.perf_counter() - began) * 1e3

    texts = [(piece * 8192)[:8192] for piece in ADVERSARIAL]
    return round(max(min(once(text) for _ in range(3)) for text in texts), 3)


def report(figures: dict[str, float], settings: dict[str, Any]) -> dict[str, Any]:
    git = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return {
        "commit": git.stdout.strip() if git.returncode == 0 else None,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": {"python": platform.python_version()},
        "settings": settings,
        "figures": figures,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--smoke", action="store_true", help=f"one case in {SMOKE_EVERY}")
    size.add_argument("--full", action="store_true", help="every case; the default")
    parser.add_argument("--data", type=Path, default=DATA, help="file of cases")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    parser.add_argument("--fails", type=int, default=0, help="how many misses to print")
    arguments = parser.parse_args()
    if not arguments.data.exists():
        sys.exit(f"no cases at {arguments.data}; pass another file with --data FILE")

    cases = read_cases(arguments.data)[:: SMOKE_EVERY if arguments.smoke else 1]
    figures, failures = score(cases, window)
    figures["adversarial_ms"] = slowest_adversary(window)

    for name, figure in figures.items():
        print(f"{name:24} {figure:>8}")
    for failure in failures[: arguments.fails]:
        print(failure)
    if arguments.json:
        settings = {"cases": arguments.data.name, "n": len(cases), "smoke": arguments.smoke}
        arguments.json.write_text(json.dumps(report(figures, settings), indent=2) + "\n")


if __name__ == "__main__":
    main()
