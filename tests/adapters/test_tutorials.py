"""The tutorials of the site run, block after block, and print what they say they print.

A block of Python runs in the process, one of SQL in psql, one of a shell in bash. A line of a block
``text`` is one that the blocks since the last such block have printed. No model takes part: where
a tutorial calls one, an endpoint here plays it, which calls the tools that it is offered.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import servers
from pgrecall.server import build, embedded_server
from servers import Server

PAGES = build.ROOT / "pydriver" / "site" / "pages" / "tutorials"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NEEDS = {
    "agent": [],
    "analyst": ["click", "onnxruntime"],
    "claude": ["mcp", "click"],
    "langgraph": ["langgraph.graph"],
    "openai-agents": ["agents", "psycopg_pool"],
    "dba": ["click"],
}
pytestmark = pytest.mark.slow


def is_missing(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is None
    except ModuleNotFoundError:  # of the package around it
        return True


def needs(page: str) -> None:
    missing = [package for package in NEEDS[page] if is_missing(package)]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed: make test-adapters")


@pytest.fixture
def play(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Callable[..., None]:
    """Return what runs a tutorial."""
    monkeypatch.chdir(tmp_path)
    programs = [str(Path(sys.executable).parent), str(server.binaries), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(programs))
    # pgrecall may run from a checkout that is not installed.
    command = tmp_path / "bin" / "pgrecall"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pgrecall "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")

    def play(page: str, database: str, before: Callable[[str], str] = str) -> None:
        names: dict[str, Any] = {"__name__": "tutorial"}
        printed = ""
        for language, code in FENCE.findall((PAGES / f"{page}.md").read_text(encoding="utf-8")):
            if language == "text":
                printed += capfd.readouterr().out
                missing = [line for line in code.splitlines() if line not in printed]
                assert missing == [], printed
                printed = ""
            elif language == "python":
                exec(compile(before(code), f"{page}.md", "exec"), names)
            else:
                run = ["bash", "-euo", "pipefail", "-c", before(code)]
                if language == "sql":
                    run = ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-d", database, "-f", "-"]
                done = subprocess.run(
                    run,
                    input=before(code) if language == "sql" else None,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert done.returncode == 0, f"{code}\n{done.stdout}{done.stderr}"
                printed += done.stdout

    return play


def test_each_tutorial_is_run_here() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == set(NEEDS)
    for page in PAGES.glob("*.md"):
        languages = {language for language, _ in FENCE.findall(page.read_text(encoding="utf-8"))}
        assert languages <= {"python", "sql", "sh", "text"}


@pytest.mark.parametrize("page", ["agent", "analyst", "claude", "langgraph"])
def test_a_tutorial_does_what_it_says(
    database: str, page: str, play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    needs(page)
    monkeypatch.setenv("PGRECALL_DSN", database)

    play(page, database)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """An endpoint that recalls what is asked and remembers what is told; yields the calls."""
    called: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            message: dict[str, Any] = {"role": "assistant", "content": None}
            last = asked["messages"][-1]
            if last["role"] == "tool":
                message["content"] = last["content"]
            else:
                is_asked = last["content"].endswith("?")
                name, key = ("recall", "question") if is_asked else ("remember", "fact")
                assert name in {tool["function"]["name"] for tool in asked["tools"]}
                called.append(name)
                call = {"name": name, "arguments": json.dumps({key: last["content"]})}
                message["tool_calls"] = [{"id": "1", "type": "function", "function": call}]
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
            data = json.dumps(answer | {"choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None: ...

    endpoint = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{endpoint.server_port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    yield called
    endpoint.shutdown()
    endpoint.server_close()


def test_the_tutorial_with_openais_agents_calls_its_tools(
    database: str, play: Callable[..., None], monkeypatch: pytest.MonkeyPatch, model: list[str]
) -> None:
    needs("openai-agents")
    monkeypatch.setenv("PGRECALL_DSN", database)

    play("openai-agents", database)

    assert model == ["remember", "recall"]


@pytest.mark.parametrize("release", [None, *build.frozen_releases()])
def test_the_day_of_a_dba_passes_on_a_new_database_and_on_one_of_each_release(
    server: Server, play: Callable[..., None], monkeypatch: pytest.MonkeyPatch, release: str | None
) -> None:
    needs("dba")
    if not server.is_embedded:
        pytest.skip("the standby is one of an embedded server")
    if shutil.which("bash") is None:
        pytest.skip("bash is not here")
    version = servers.embedded_version()
    with (
        servers.folder_of_servers() as folder,
        embedded_server(version, folder / "primary", settings=servers.TEST_SETTINGS) as primary,
        servers.standby_of(folder / "primary", primary.binaries, folder / "standby") as standby,
    ):
        place = conninfo_to_dict(primary.dsn)
        monkeypatch.setenv("PGHOST", str(place["host"]))
        monkeypatch.setenv("PGUSER", str(place["user"]))
        monkeypatch.setenv("STANDBY_DSN", make_conninfo(standby, dbname="memory"))
        memory = make_conninfo(primary.dsn, dbname="memory")
        if release:
            with psycopg.connect(primary.dsn, autocommit=True) as connection:
                connection.execute("create database memory")
            with psycopg.connect(memory, autocommit=True) as connection:
                connection.execute("create extension vector")
            servers.run_script(server, memory, servers.frozen_script(release))

        def before(code: str) -> str:
            if "STANDBY_DSN" in code:
                wait_for_replay(primary.dsn, standby)
            return code.replace("createdb memory\n", "") if release else code

        play("dba", memory, before)


def wait_for_replay(primary: str, standby: str) -> None:
    """Wait until a standby has replayed what the primary has written."""
    with psycopg.connect(primary) as connection:
        written = connection.execute("select pg_current_wal_insert_lsn()::text").fetchone()
    assert written
    until = time.monotonic() + 30
    with psycopg.connect(standby, autocommit=True) as connection:
        query = "select pg_last_wal_replay_lsn() >= %s::pg_lsn"
        while connection.execute(query, written).fetchone() != (True,):
            assert time.monotonic() < until
