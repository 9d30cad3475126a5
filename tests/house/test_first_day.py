"""The first day of an application developer, an analyst and a DBA: ten commands, twenty lines.

Each starts in an empty home with what the README says, and must get on without a stop.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

import servers
from pgrecall._version import __version__

Command = Callable[..., str]

FACTS = """\
"Maya works from Porto."
{"text": "Maya leads Atlas.", "relations": [{"from": "Maya", "kind": "leads", "to": "Atlas"}]}
{"text": "The padlock code is 4471.", "fact_key": "padlock.code", "source_id": "mail-7"}
{"text": "Atlas went live.", "fact_type": "event", "occurred": "2026-03-05", "entities": ["Atlas"]}
"""

PROGRAM = """\
from pgrecall import Recall

with Recall.connect() as memory:
    bank = memory.bank("agent")
    bank.create(exist_ok=True)
    first, *_ = bank.retain(
        [
            "Maya works from Porto.",
            {
                "text": "Maya leads Atlas.",
                "relations": [{"from": "Maya", "kind": "leads", "to": "Atlas"}],
            },
        ]
    )
    report = bank.recall_report("Who leads Atlas?", filter="confidence > 0.5", top_k=1)
    print(report.hits[0].text, report.degradations)
    print(bank.context("Where does Maya work?", max_tokens=200).text)
    new = bank.update(first.memory_id, text="Maya works from Faro.")
    print([version.text for version in bank.history(new.memory_id)])
    print(bank.forget(new.memory_id))
"""

QUESTIONS = """\
select bank_id, memories from pgrecall.bank_overview;
select rank, text, relevance from pgrecall.hybrid_recall('team', 'Who leads Atlas?');
select rank from pgrecall.hybrid_recall('team', 'went live', during => '[2026-03-01, 2026-04-01)');
select rank from pgrecall.hybrid_recall('team', 'live', filter => 'entity = ''Atlas''');
select rank from pgrecall.hybrid_recall('team', 'live', options => '{"entity": "Atlas"}');
select * from pgrecall.windows();
select rank from pgrecall.hybrid_recall('team', 'live', options => '{"window": "this year"}');
select arm, status, reason from pgrecall.explain_recall('team', 'Who leads Atlas?');
select name, range, description from pgrecall.recall_options();
select fact_type, count(*) from pgrecall.fact where bank_id = 'team' group by 1;
select memory_id, text from pgrecall.list_memories('team', tags => null, top_k => 5);
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "facts.jsonl").write_text(FACTS)
    return tmp_path


def starter(home: Path, dsn: str) -> Command:
    """Return what starts Python, or the command, in an empty home."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PGRECALL_DSN": dsn}

    def start(*words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            env=environment,
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"{words}: {done.stderr}"
        return done.stdout if code == 0 else done.stderr

    return start


def test_the_first_day_of_an_application_developer(home: Path, database: str) -> None:
    start = starter(home, database)

    def run(*words: str) -> str:
        return start("-m", "pgrecall", *words)

    assert run("retain", "facts.jsonl", "--bank", "mine", "--create") == (
        'retained 4 facts in bank "mine"\n'
    )
    [first] = json.loads(run("recall", "mine", "padlock code", "--top-k", "1", "--json"))["hits"]
    assert first["text"] == "The padlock code is 4471."
    assert "English" not in run("recall", "mine", "padlock code")
    assert "2026-03-05" in run("recall", "mine", "What happened in March 2026?", "--explain")
    listed = json.loads(run("list", "mine", "--json"))
    maya = next(one["memory_id"] for one in listed if one["text"] == "Maya leads Atlas.")
    changed = run("update", "mine", str(maya), "text=Ines leads Atlas.")
    assert "no longer said: Maya; Maya leads Atlas" in changed
    assert "Ines leads Atlas." in run("recall", "mine", "Who leads Atlas?")
    assert run("forget", "mine", "--source", "mail-7") == "forgot 1 memory\n"
    assert '"done": "wrote' in run("init", "cursor", "--bank", "mine", "--json").replace("\n", "")
    (home / "agent.py").write_text(PROGRAM)

    said = start("agent.py")

    assert said.startswith("Maya leads Atlas. ()\n")
    assert "[1] Maya works from Porto." in said
    assert said.endswith("['Maya works from Porto.', 'Maya works from Faro.']\n1\n")
    assert start("-m", "pgrecall", "recall", "nowhere", "x", code=1) == (
        'error: bank "nowhere" does not exist\nhint: Create it with: pgrecall bank create NAME\n'
    )


@pytest.mark.slow
def test_the_first_day_of_coding_agents_that_start_at_once() -> None:
    mcp = pytest.importorskip("mcp", reason="the MCP SDK is not installed")

    async def agent(home: Path, fact: str) -> Any:
        environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
        words = ["-m", "pgrecall", "mcp", "--bank", "mine", "--create"]
        server = mcp.StdioServerParameters(
            command=sys.executable, args=words, env=environment, cwd=home
        )
        async with mcp.stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
            await session.initialize()
            await session.call_tool("retain", {"facts": fact})
            return await session.call_tool("recall", {"question": fact})

    async def agents(home: Path) -> list[Any]:
        facts = ("Maya leads Atlas.", "Boats are blue.", "The shop is closed.")
        return await asyncio.gather(*(agent(home, fact) for fact in facts))

    with servers.folder_of_servers() as home:
        answers = asyncio.run(agents(home))

    said = [answer.content[0].text for answer in answers]
    assert ["Maya leads Atlas." in said[0], "Boats are blue." in said[1]] == [True, True]
    assert "The shop is closed." in said[2]


def test_the_first_day_of_an_analyst(home: Path, database: str) -> None:
    starter(home, database)("-m", "pgrecall", "retain", "facts.jsonl", "--bank", "team", "--create")
    asked = QUESTIONS.splitlines()

    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select pgrecall.create_roles('first_day')")
        connection.execute("set role first_day_reader")
        answered = {query: connection.execute(query.encode()).fetchall() for query in asked}
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(
                "select * from pgrecall.hybrid_recall('team', 'x', options => '{"
                '"window": "last autumn"}\')'
            )
        connection.execute("reset role")
        for group in ("reader", "writer", "admin"):
            connection.execute(f"drop owned by first_day_{group}".encode())
            connection.execute(f"drop role first_day_{group}".encode())

    assert [query for query, rows in answered.items() if not rows] == []
    assert answered[asked[1]][0][1] == "Maya leads Atlas."
    assert "last quarter" in str(caught.value.diag.message_hint)


def test_the_first_day_of_a_dba(home: Path, bare_database: str) -> None:
    start = starter(home, bare_database)

    def run(*words: str) -> str:
        return start("-m", "pgrecall", *words)

    assert "would install" in run("migrate", "--dry-run")
    assert "create schema pgrecall" in run("migrate", "--sql")
    assert run("migrate") == f"installed pgrecall {__version__}\n"
    assert run("migrate") == f"pgrecall {__version__} is up to date\n"
    assert "bad " not in run("doctor")
    assert run("bank", "create", "team") == 'created bank "team"\n'
    assert "team" in run("bank", "list")
    assert run("index", "team") == "no vector index is due\n"
    assert run("maintain", "team") == "nothing was pending\n"
    assert "--share" in run("stats")

    with psycopg.connect(bare_database, autocommit=True) as connection:

        def value(query: str) -> Any:
            row = connection.execute(query.encode()).fetchone()
            return row[0] if row else None

        try:
            connection.execute("select pgrecall.create_roles('first_dba')")
            connection.execute("create role first_dba_team in role first_dba_reader")
            connection.execute("select pgrecall.enable_row_security()")
            connection.execute("set role first_dba_team")
            assert value("select count(*) from pgrecall.bank") == 0
            with pytest.raises(psycopg.Error) as caught:
                connection.execute("select pgrecall.create_bank('mine')")
        finally:
            connection.execute("reset role")
            for group in ("team", "reader", "writer", "admin"):
                connection.execute(f"drop owned by first_dba_{group}".encode())
                connection.execute(f"drop role first_dba_{group}".encode())

    assert 'may not create bank "mine"' in str(caught.value.diag.message_primary)
    assert "first_dba_admin" in str(caught.value.diag.message_hint)
