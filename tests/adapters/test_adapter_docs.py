"""What the page on other libraries shows runs, where the library is installed."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys

import pytest
from psycopg.conninfo import conninfo_to_dict

from pgrecall.server import build

PAGE = build.PACKAGE / "adapters" / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")
CHAPTERS = dict(
    re.findall(
        r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE
    )
)
PACKAGES = {
    "LangChain": "langchain_core",
    "LangGraph": "langgraph",
    "LlamaIndex": "llama_index",
    "Google ADK": "google.adk",
    "Agno": "agno",
    "SQLAlchemy": "sqlalchemy",
    "asyncpg": "asyncpg",
}
SAYS = {"Google ADK": "memories=[]"}


def is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def test_every_chapter_shows_a_block() -> None:
    assert CHAPTERS.keys() == PACKAGES.keys()
    assert TEXT.count("```python") == len(CHAPTERS)


@pytest.mark.parametrize("heading", PACKAGES)
def test_a_block_can_be_read(heading: str) -> None:
    compile(CHAPTERS[heading], f"{PAGE.name}: {heading}", "exec")


@pytest.mark.parametrize("heading", PACKAGES)
def test_a_block_runs(
    database: str,
    heading: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not is_installed(PACKAGES[heading]):
        pytest.skip(f"{PACKAGES[heading]} is not installed: make test-adapters")
    place = conninfo_to_dict(database)
    where = f"host={place['host']}&user={place['user']}"
    monkeypatch.setenv("PGRECALL_DSN", database)
    monkeypatch.setenv("SQLALCHEMY_URL", f"postgresql+psycopg:///{place['dbname']}?{where}")
    monkeypatch.setenv("ASYNCPG_DSN", f"postgresql:///{place['dbname']}?{where}")

    exec(compile(CHAPTERS[heading], PAGE.name, "exec"), {"__name__": "__main__"})

    assert SAYS.get(heading, "Maya leads Atlas.") in capsys.readouterr().out


def test_the_commands_run(database: str) -> None:
    [commands] = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    run = commands.replace("pgrecall migrate", f'"{sys.executable}" -m pgrecall migrate')

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{run}env"],
        env=os.environ | {"HINDSIGHT_API_DATABASE_URL": database},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert 'HINDSIGHT_API_MEMORIES_OPTIONS={"depth": 200}' in done.stdout
