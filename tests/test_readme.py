"""What the README shows runs, and what it says of the API is what the database says."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

import readme
from pgrecall import cli
from toys import save_embedder

TEXT = readme.README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
FACT = '{"text": "Maya leads Atlas.", "source_id": "atlas"}\n'
QUESTION = '{"question": "Who leads Atlas?", "relevant": ["atlas"]}\n'


def blocks(language: str) -> list[str]:
    return [code for name, code in BLOCKS if name == language]


def test_every_block_is_of_a_language_that_is_run_here() -> None:
    assert {name for name, _ in BLOCKS} == {"sql", "python", "sh"}


def test_the_sql_runs(connection: psycopg.Connection[Any]) -> None:
    found: list[list[Any]] = []
    for code in blocks("sql"):
        for statement in code.split(";\n"):
            if statement.strip():
                cursor = connection.execute(statement.encode())
                if cursor.description and "hybrid_recall" in statement:
                    found.append(cursor.fetchall())

    assert [row[1] for row in found[0]] == [
        "Raised max_client_conn to 1200.",
        "The shop was open again.",
    ]
    assert [row[1] for row in found[1]] == ["Raised max_client_conn to 1200."]


def test_the_python_runs(
    database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PGRECALL_DSN", database)
    names: dict[str, Any] = {}

    for code in blocks("python"):
        exec(compile(code, "README.md", "exec"), names)

    printed = capsys.readouterr().out
    assert printed.startswith("1 Maya prefers short meetings.")
    assert "March 2026 = 2026-03-01 to 2026-03-31" in printed
    assert "['Atlas went live.'" in printed


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
    lines = [shlex.split(line, comments=True) for code in blocks("sh") for line in code.split("\n")]

    for line in filter(None, lines):
        if line[0] == "make":
            makefile = readme.README.parent
            subprocess.run(["make", "-C", makefile, "-n", line[1]], check=True, capture_output=True)
        else:
            assert line[0] == "pgrecall"
            assert cli.main(line[1:]) == 0

    assert "Maya leads Atlas." in capsys.readouterr().out


def test_the_api_table_is_that_of_the_database(connection: psycopg.Connection[Any]) -> None:
    written = readme.with_table(TEXT, readme.api_table(connection))

    assert written == TEXT, "README.md is behind the comments in sql/: run make readme"


def test_the_install_table_names_the_current_version() -> None:
    from pgrecall import __version__

    assert f"pgrecall--{__version__}.sql" in TEXT
