"""Measure questions about what changes: versions of dependencies in the history of a project.

    python -m bench.quality.states --repository /path/to/repository --smoke
    python -m bench.quality.states --repository /path/to/repository --full

The facts are the subjects of commits: all that say "Upgrade NAME to VERSION" (or Update, Bump), and
every fourth other one. Author and NAME are entities; the time of the commit is when it happened and
when it was said. The facts about one NAME differ in the version alone, which the questions do not
name, except in `when`:

* plain: which version do we use? current: what is our current version?
* in_month: which did we use in a month without an upgrade of it? The last before that month.
* when: when did we move to a version? year: how did it change in a year? All upgrades of that year.

states.<kind>.<fused or reranked>.<measure>, reranked by late interaction: ndcg10; first: how often
the first fact is an answer; hit10: how often one is among the first ten.
"""

from __future__ import annotations

import calendar
import random
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from bench import conversations, harness

from pgrecall import Recall

UPGRADE = re.compile(
    r"(?:upgrade|update|bump) (?!versions? )([a-z_][\w.-]+) (?:from .* )?to v?(\d[\w.]*)", re.I
)
OTHERS = 4  # of the other commits each fourth is a fact
LEAST = 4  # upgrades of a name that is asked about
ASKED = 60  # questions of a kind, at most
SMOKE_FACTS, SMOKE_ASKED = 150, 2
BANK = "states"
MEASURES = ("ndcg10", "first", "hit10")


@dataclass(frozen=True)
class Commit:
    commit_id: str
    author: str
    at: datetime
    subject: str
    name: str | None
    """What is upgraded; None: nothing."""
    version: str | None

    @property
    def month(self) -> int:
        """The number of its month since the year 0."""
        return 12 * self.at.year + self.at.month - 1

    @property
    def fact(self) -> dict[str, Any]:
        """The fact that retain() takes."""
        time = self.at.isoformat()
        names = [{"name": self.author, "kind": "person"}]
        if self.name is not None:
            names.append({"name": self.name, "kind": "package"})
        return {
            "text": self.subject,
            "fact_type": "event",
            "source_id": self.commit_id,
            "entities": names,
            "occurred": time,
            "mentioned_at": time,
        }


@dataclass(frozen=True)
class Question:
    kind: str
    text: str
    relevant: frozenset[str]


def history(repository: Path) -> list[Commit]:
    """Read the commits that become facts, oldest first."""
    log = ["log", "--no-merges", "--format=%h%x1f%an%x1f%aI%x1f%s"]
    read = subprocess.run(
        ["git", "-C", str(repository), *log], capture_output=True, text=True, check=False
    )
    if read.returncode:
        sys.exit(f"no history in {repository}: {read.stderr.strip()}")
    found = []
    for n, line in enumerate(read.stdout.splitlines()):
        commit_id, author, at, subject = line.split("\x1f", 3)
        upgrade = UPGRADE.match(subject)
        name = upgrade and upgrade[1].lower().replace("-", "_")
        if name or n % OTHERS == 0:
            moment = datetime.fromisoformat(at)
            version = upgrade and upgrade[2]
            found.append(Commit(commit_id, author, moment, subject, name, version))
    return sorted(found, key=lambda commit: commit.at)


def questions(commits: Sequence[Commit], most: int) -> list[Question]:
    """Make the questions: of each kind as many at most, the same in each run."""
    upgrades: dict[str, list[Commit]] = defaultdict(list)
    for commit in commits:
        if commit.name is not None:
            upgrades[commit.name].append(commit)
    made: dict[str, list[Question]] = defaultdict(list)
    for name, of_name in upgrades.items():
        if len(of_name) >= LEAST:
            for question in _about(name, of_name):
                made[question.kind].append(question)
    dice = random.Random(11)
    return [
        one for of_kind in made.values() for one in dice.sample(of_kind, min(most, len(of_kind)))
    ]


def _about(name: str, upgrades: Sequence[Commit]) -> Iterator[Question]:
    last = frozenset([upgrades[-1].commit_id])
    yield Question("plain", f"Which version of {name} do we use?", last)
    yield Question("current", f"What is our current version of {name}?", last)
    for before, after in pairwise(upgrades):
        held = frozenset([before.commit_id])
        for month in range(before.month + 1, after.month):
            said = f"{calendar.month_name[month % 12 + 1]} {month // 12}"
            yield Question("in_month", f"Which version of {name} did we use in {said}?", held)
    versions = Counter(upgrade.version for upgrade in upgrades)
    for upgrade in upgrades:
        if versions[upgrade.version] == 1:
            text = f"When did we move {name} to {upgrade.version}?"
            yield Question("when", text, frozenset([upgrade.commit_id]))
    for year in sorted({upgrade.at.year for upgrade in upgrades}):
        of_year = frozenset(u.commit_id for u in upgrades if u.at.year == year)
        yield Question("year", f"How did {name} change in {year}?", of_year)


def measures(ranking: Sequence[str], relevant: frozenset[str]) -> tuple[float, ...]:
    """Return the figures of MEASURES for one question."""
    return (
        conversations.ndcg(ranking, relevant, 10),
        float(ranking[0] in relevant) if ranking else 0.0,
        float(not relevant.isdisjoint(ranking)),
    )


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--repository", type=Path, help="a git repository with such commits")
    options = parser.parse_args()
    if not options.repository:
        print("left out: it needs --repository, a git repository")
        return
    commits = history(options.repository)
    asked = questions(commits, SMOKE_ASKED if options.smoke else ASKED)
    if options.smoke:
        relevant = {commit_id for question in asked for commit_id in question.relevant}
        commits = commits[:SMOKE_FACTS] + [
            commit for commit in commits[SMOKE_FACTS:] if commit.commit_id in relevant
        ]
    found: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    with (
        harness.database() as dsn,
        Recall.connect(dsn, embedder=conversations.caching_embedder()) as recall,
    ):
        harness.new_bank(recall, BANK)
        recall.retain_many(BANK, (commit.fact for commit in commits))
        for question in asked:
            for name in ("fused", "reranked"):
                hits = recall.recall(BANK, question.text, top_k=10, rerank=name == "reranked")
                ranking = [hit.source_id or "" for hit in hits]
                found[f"{question.kind}.{name}"].append(measures(ranking, question.relevant))
        figures = {
            f"states.{what}.{measure}": round(fmean(column), 4)
            for what, rows in found.items()
            for measure, column in zip(MEASURES, zip(*rows, strict=True), strict=True)
        }
        figures |= {"states.facts": len(commits), "states.questions": len(asked)}
        harness.show(figures)
        harness.write(options, figures, {"asked": ASKED}, dsn)


if __name__ == "__main__":
    main()
