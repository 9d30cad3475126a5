"""The workflow runs targets that there are, and the papers beside it link to what there is."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pgrecall.server import build

GITHUB = build.ROOT / ".github"
WORKFLOW = (GITHUB / "workflows" / "check.yml").read_text(encoding="utf-8")
PAPERS = sorted(GITHUB.glob("*.md"))
TARGETS = re.findall(r"^([a-z-]+):", (build.ROOT / "Makefile").read_text(encoding="utf-8"), re.M)


def test_the_workflow_runs_targets_of_the_makefile() -> None:
    run = re.findall(r"- run: (.*)", WORKFLOW)

    assert {command.split()[0] for command in run} == {"make"}
    assert {command.split()[1] for command in run} <= set(TARGETS)
    assert {"lint", "test", "release-check"} <= {command.split()[1] for command in run}


def test_the_workflow_tests_each_version_that_is_promised() -> None:
    [versions] = re.findall(r"postgres: \[(.*)\]", WORKFLOW)

    promised = re.search(r"PostgreSQL (\d+) to (\d+)", (build.ROOT / "README.md").read_text())
    assert promised
    first, last = map(int, promised.groups())
    assert re.findall(r"\d+", versions) == [str(n) for n in range(first, last + 1)]


def test_the_workflow_is_sound() -> None:
    linter = shutil.which("actionlint")
    if linter is None:
        pytest.skip("actionlint is not here: go install github.com/rhysd/actionlint/cmd/actionlint")

    done = subprocess.run([linter], cwd=build.ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("paper", PAPERS, ids=lambda path: path.name)
def test_links_lead_to_what_there_is(paper: Path) -> None:
    text = paper.read_text(encoding="utf-8")

    for link in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (paper.parent / link).exists(), link
    for file in re.findall(r"`((?:pydriver|sql|tests|bench|migrations)/[^`*]*)`", text):
        assert (build.ROOT / file).exists(), file


def test_every_form_says_what_it_wants() -> None:
    for form in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml"):
        text = form.read_text(encoding="utf-8")
        if form.name != "config.yml":
            assert re.search(r"^name: .+\ndescription: .+", text, re.M)
            assert "required: true" in text
