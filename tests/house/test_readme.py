"""What the READMEs show runs, and the reference says what the database says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psycopg
import pytest

from house import readme
from pgrecall import command
from pgrecall.server import build
from toys import save_embedder

TEXT = readme.README.read_text(encoding="utf-8")
TEMPLATE = readme.TEMPLATE.read_text(encoding="utf-8")
TASKS_FILE = readme.ROOT / "pydriver" / "README.md"
TASKS = TASKS_FILE.read_text(encoding="utf-8")
TESTS = readme.ROOT / "tests"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FACT = '{"text": "Maya leads Atlas.", "source_id": "atlas"}\n'
QUESTION = '{"question": "Who leads Atlas?", "relevant": ["atlas"]}\n'


def blocks(language: str, text: str) -> list[str]:
    return [code for name, code in FENCE.findall(text) if name == language]


def results(connection: psycopg.Connection[Any], code: str) -> list[list[tuple[Any, ...]]]:
    """Run the statements of a block; returns the rows of those that have any."""
    cursor = connection.execute(code.encode(), prepare=False)
    found = []
    while True:
        if cursor.description:
            found.append(cursor.fetchall())
        if not cursor.nextset():
            return found


@pytest.mark.parametrize("text", [TEXT, TEMPLATE, TASKS], ids=["README", "reference", "tasks"])
def test_every_block_is_of_a_language_that_is_run_here(text: str) -> None:
    assert {name for name, _ in FENCE.findall(text)} <= {"sql", "python", "sh"}


def test_the_readme_is_short() -> None:
    assert len(TEXT.splitlines()) <= 210


def test_the_sql_of_the_readme_runs(connection: psycopg.Connection[Any]) -> None:
    first, analyst, _ = (results(connection, code) for code in blocks("sql", TEXT))

    assert [row[1] for row in first[-1]] == [
        "The shop was open again.",
        "Raised max_client_conn to 1200.",
    ]
    assert [row[1] for row in analyst[0]] == ["Raised max_client_conn to 1200."]
    assert [row[:2] for row in analyst[-1]] == [("world", 1)]


def test_the_sql_of_the_reference_runs(connection: psycopg.Connection[Any]) -> None:
    results(connection, blocks("sql", TEXT)[0])

    silent = [
        code.splitlines()[0]
        for code in blocks("sql", TEMPLATE)
        for rows in results(connection, code)
        if not rows
    ]

    # index_plan() and recall_check(): the bank has no vectors. recall_stats() and
    # slow_recalls(): SQL is not logged.
    plan = "select fact_type, action, statement, reason, estimated_bytes, estimated_seconds"
    log = """select pgrecall.configure_bank('team', '{"log_share": 0.01}');"""
    assert silent == [plan, plan, log, log]


def test_a_literal_without_a_type_is_read_as_a_range(connection: psycopg.Connection[Any]) -> None:
    results(connection, blocks("sql", TEXT)[0])

    with pytest.raises(psycopg.errors.DataError, match="malformed range literal"):
        connection.execute("select * from pgrecall.hybrid_recall('team', 'x', during => 'today')")


def test_the_python_runs(
    database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PGRECALL_DSN", database)
    names: dict[str, Any] = {}

    for code in blocks("python", TEXT):
        exec(compile(code, "README.md", "exec"), names)

    printed = capsys.readouterr().out
    assert printed.startswith("1 Maya prefers short meetings.")
    assert "March 2026 = 2026-03-01 to 2026-03-31" in printed
    assert "['Atlas went live.'" in printed


def test_the_python_is_typed(tmp_path: Path) -> None:
    files = {tmp_path / "readme.py": TEXT, tmp_path / "tasks.py": TASKS}
    for file, text in files.items():
        file.write_text("\n".join(blocks("python", text)), encoding="utf-8")

    for file in files:  # apart, and with the settings and the cache of the lint
        run = [sys.executable, "-m", "mypy", "--strict", str(file)]
        done = subprocess.run(run, cwd=readme.ROOT, capture_output=True, text=True, check=False)
        assert (done.stdout.splitlines()[-1:], done.returncode) == (
            ["Success: no issues found in 1 source file"],
            0,
        ), done.stdout


def test_the_tasks_of_the_driver_run(
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PGRECALL_DSN", database)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "facts.jsonl").write_text(FACT)
    names: dict[str, Any] = {}

    for code in blocks("python", TASKS):
        exec(compile(code, "pydriver/README.md", "exec"), names)
    printed = capsys.readouterr().out
    for line in "".join(blocks("sh", TASKS)).splitlines():
        words = shlex.split(line)
        assert words[0] == "pgrecall"
        assert command.main(words[1:]) == 0

    assert re.search(r"^\[1\] Maya leads Atlas\.$", printed, re.MULTILINE)
    assert "Maya leads Atlas. update" in printed
    assert "2 would go, former versions too" in printed


def test_the_commands_run(
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PGRECALL_DSN", database)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "facts.jsonl").write_text(FACT)
    (tmp_path / "questions.jsonl").write_text(5 * QUESTION)
    save_embedder(tmp_path / "new-model")
    lines = [
        shlex.split(line, comments=True)
        for text in (TEXT, TEMPLATE)
        for code in blocks("sh", text)
        for line in code.split("\n")
    ]

    for line in filter(None, lines):
        if line[0] == "make":
            run = ["make", "-C", str(readme.ROOT), "-n", line[1]]
            subprocess.run(run, check=True, capture_output=True)
        else:
            assert line[0] == "pgrecall"
            assert command.main(line[1:]) == 0

    assert "Maya leads Atlas." in capsys.readouterr().out


def test_the_reference_is_that_of_the_database(connection: psycopg.Connection[Any]) -> None:
    written = readme.REFERENCE.read_text(encoding="utf-8")

    assert written == readme.reference(connection), "sql/README.md is behind: run make readme"


def test_every_public_function_is_in_one_chapter(connection: psycopg.Connection[Any]) -> None:
    names = readme.public_functions(connection)

    listed = [name for found in readme.chapters(TEMPLATE, names).values() for name in found]

    assert sorted(listed) == names


def test_a_chapter_lists_functions_in_its_own_order() -> None:
    found = readme.chapters(
        "# R\n\n## A\n\n<!-- functions: c_arm *_arm b -->\n\n## B\n\ntext\n",
        ["a_arm", "b", "b_arm", "c_arm", "d"],
    )

    assert found == {"A": ["c_arm", "a_arm", "b_arm", "b"], "B": []}


@pytest.mark.parametrize(
    "place",
    [
        readme.README,
        readme.REFERENCE,
        TASKS_FILE,
        readme.ROOT / "CONTRIBUTING.md",
        readme.ROOT / "bench" / "README.md",
        readme.ROOT / "bench" / "TRIED.md",
    ],
    ids=["README", "reference", "tasks", "contributing", "benchmarks", "tried"],
)
def test_links_lead_to_a_file_and_a_heading(place: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", place.read_text(encoding="utf-8")):
        file, _, anchor = target.partition("#")
        path = place.parent / file if file else place
        if path.is_dir():
            continue
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(target)

    assert broken == []


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a file."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_picture_of_a_recall_names_every_arm(connection: psycopg.Connection[Any]) -> None:
    picture = (readme.ROOT / "sql" / "recall.svg").read_text(encoding="utf-8")
    words = [text.text or "" for text in ElementTree.fromstring(picture).iter() if text.text]
    drawn = re.findall(r'<rect class="arm".*\n<text[^>]*>([^<]*)<', picture)

    arms = {arm for (arm,) in connection.execute("select arm from pgrecall.arms()")}
    functions = re.findall(r"(\w+)\(\)", " ".join(words))

    assert sorted(drawn) == sorted(arms)
    assert set(functions) <= set(readme.public_functions(connection))
    assert "prefers-color-scheme: dark" in picture
    assert "![" in TEMPLATE.split("\n## How a recall works\n")[1].split("\n## ")[0]


def test_the_install_table_names_the_current_script() -> None:
    assert f"extension/{build.install_name(build.version())}`" in TEXT


def test_each_promise_names_a_test_that_there_is() -> None:
    promises = TEMPLATE.split("\n## Promises\n")[1].split("\n## ")[0]
    rows = [line for line in promises.splitlines() if line.startswith("| ")]
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", promises)

    missing = [
        f"{file}::{test}"
        for file, test in named
        if not re.search(
            rf"^def {test}\(", next(TESTS.rglob(file)).read_text("utf-8"), re.MULTILINE
        )
    ]

    assert missing == []
    assert len(named) > 20
    assert [row for row in rows if "`" not in row and not row.endswith("| test |")] == []
