"""The MCP server, as a client of the official SDK sees it, and what enters it at coding agents."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest

from pgrecall import Recall
from pgrecall._version import __version__
from pgrecall.command import agents, main
from pgrecall.server import build

REASON = "the MCP SDK is not installed: pip install 'pgrecall[mcp]'"
mcp = pytest.importorskip("mcp", reason=REASON)
transport = pytest.importorskip("mcp.client.streamable_http", reason=REASON)
mcp_server = pytest.importorskip("pgrecall.adapters.mcp_server", reason=REASON)

T = TypeVar("T")
Session = Any
TOKEN = "t" * 43
ACCEPTING = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}
HELLO = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
).encode()
PROGRAM = [sys.executable, "-m", "pgrecall", "mcp", "--no-embed"]
FACTS: list[Mapping[str, object]] = [
    {"text": "Maya leads Atlas.", "entities": ["Maya", "Atlas"], "tags": ["team"]},
    {"text": "The deploy window is Tuesday.", "fact_key": "deploy.window"},
]


def environment(**more: str) -> dict[str, str]:
    kept = ("PATH", "PYTHONPATH", "HOME", "PGRECALL_RERANKER")
    return {name: os.environ[name] for name in kept if name in os.environ} | more


@asynccontextmanager
async def over_stdio(database: str, *words: str) -> AsyncIterator[Session]:
    command, *arguments = PROGRAM
    server = mcp.StdioServerParameters(
        command=command, args=[*arguments, *words], env=environment(PGRECALL_DSN=database)
    )
    async with mcp.stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
        await session.initialize()
        yield session


@asynccontextmanager
async def over_http(database: str, *words: str) -> AsyncIterator[Session]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [*PROGRAM, "--http", "--port", str(port), *words],
        env=environment(PGRECALL_DSN=database),
        stderr=subprocess.DEVNULL,
    )
    try:
        await listening(port)
        connect = getattr(transport, "streamable_http_client", None)
        connect = connect or transport.streamablehttp_client
        async with (
            connect(f"http://127.0.0.1:{port}/mcp") as streams,
            mcp.ClientSession(*streams[:2]) as session,
        ):
            await session.initialize()
            yield session
    finally:
        server.terminate()
        server.wait(30)


@contextmanager
def served(database: str, *words: str, **more: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Serve over HTTP; gives the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [*PROGRAM, "--http", "--port", str(port), *words],
        env=environment(PGRECALL_DSN=database, **more),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        asyncio.run(listening(port))
        yield port, server
    finally:
        server.terminate()
        server.communicate(timeout=30)


def status(port: int, body: bytes = b"{}", **headers: str) -> int:
    """Return the status of a request that no client of the SDK would send."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/mcp", body, headers={**ACCEPTING, **headers})
        return connection.getresponse().status
    finally:
        connection.close()


async def listening(port: int) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise AssertionError("the server does not listen")


async def called(session: Session, tool: str, **arguments: object) -> Any:
    """Call a tool; returns what a program reads of its answer."""
    answer = await session.call_tool(tool, arguments)
    assert not failed(answer), answer.content[0].text
    return member(answer, "structured_content", "structuredContent")


async def refused(session: Session, tool: str, **arguments: object) -> str:
    """Call a tool that fails; returns what the model reads."""
    answer = await session.call_tool(tool, arguments)
    assert failed(answer)
    return str(answer.content[0].text)


def failed(answer: object) -> bool:
    return bool(member(answer, "is_error", "isError"))


def member(of: object, name: str, former: str) -> Any:
    """Return an attribute, which had another name in version 1 of the SDK."""
    return getattr(of, name) if hasattr(of, name) else getattr(of, former)


def run(test: Callable[[], Awaitable[T]]) -> T:
    async def limited() -> T:
        return await asyncio.wait_for(test(), 60)

    return asyncio.run(limited())


def test_an_id_that_a_double_cannot_hold_is_text(database: str) -> None:
    """As JSON.parse of JavaScript would make another number of it."""
    first = 2**53 + 1
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select setval('pgrecall.id_seq', %s)", [first])

    async def body() -> tuple[Any, ...]:
        async with over_stdio(database, "--bank", "b", "--create") as session:
            stored = await called(session, "retain", facts=FACTS)
            found = await called(session, "recall", question="Who leads Atlas?")
            listed = await called(session, "list", before_id=str(first + 100))
            gone = await called(session, "forget", memory_ids=[listed["result"][0]["memory_id"]])
            why = await refused(session, "forget", memory_ids=["1; drop"])
        return stored, found, listed, gone, why

    stored, found, listed, gone, why = run(body)

    ids = {row["memory_id"] for row in stored["result"]}
    assert all(isinstance(one, str) and int(one) > first for one in ids)
    assert set(found["memory_ids"].values()) <= ids
    assert {row["memory_id"] for row in listed["result"]} == ids
    assert gone["result"] == 1
    assert "pattern" in why


def test_a_number_in_the_text_is_that_of_the_id_where_a_long_memory_is_left_out(
    database: str,
) -> None:
    said = "The blue boat is far out at sea."
    facts = [said, f"{said} {'Nobody knows why. ' * 150}", "A boat is red."]

    async def body() -> tuple[Any, Any]:
        async with over_stdio(database, "--bank", "b", "--create", "--no-embed") as session:
            stored = await called(session, "retain", facts=facts)
            asked = {"question": "Is the blue boat far out at sea?", "max_tokens": 150}
            return stored, await called(session, "recall", **asked)

    stored, found = run(body)

    texts = {row["memory_id"]: text for row, text in zip(stored["result"], facts, strict=True)}
    lines = dict(re.findall(r"^\[(\d+)\] (.*)$", found["text"], re.MULTILINE))
    assert {n: texts[one] for n, one in found["memory_ids"].items()} == lines
    assert lines == {"1": facts[0], "3": facts[2]}


def test_a_window_is_that_of_when_an_agent_retained_what_has_no_time(database: str) -> None:
    old = {"text": "We decided about the queue.", "mentioned_at": "2020-03-05"}

    async def body() -> Any:
        async with over_stdio(database, "--bank", "b", "--create", "--no-embed") as session:
            await called(session, "retain", facts=["The queue has five retries."])
            with Recall.connect(database, embedder=None) as memory:
                memory.retain("b", [old])
            asked = "What was decided about the queue in the last 7 days?"
            return await called(session, "recall", question=asked)

    assert "[1] The queue has five retries." in run(body)["text"]


@pytest.mark.parametrize("connect", [over_stdio, over_http])
def test_a_client_retains_recalls_lists_and_forgets(database: str, connect: Any) -> None:
    async def body() -> tuple[Any, Any, Any, Any, Any]:
        async with connect(database, "--bank", "b", "--create") as session:
            stored = await called(session, "retain", facts=FACTS)
            found = await called(session, "recall", question="Who leads Atlas?", max_tokens=200)
            listed = await called(session, "list", entity="Maya")
            gone = await called(session, "forget", memory_ids=[*found["memory_ids"].values()][:1])
            again = await called(session, "list")
        return stored, found, listed, gone, again

    stored, found, listed, gone, again = run(body)

    assert [row["is_new"] for row in stored["result"]] == [True, True]
    assert "[1] Maya leads Atlas." in found["text"]
    assert found["memory_ids"]["1"] == stored["result"][0]["memory_id"]
    assert 0 < found["confidence"] <= 1
    assert [row["text"] for row in listed["result"]] == ["Maya leads Atlas."]
    assert listed["result"][0]["tags"] == ["team"]
    assert gone["result"] == 1
    assert [row["fact_key"] for row in again["result"]] == ["deploy.window"]


def test_calls_at_once_are_answered_each(database: str) -> None:
    async def body() -> list[Any]:
        async with over_stdio(database, "--bank", "b", "--create") as session:
            await called(session, "retain", facts=FACTS)
            asked = (called(session, "recall", question="Who leads Atlas?") for _ in range(12))
            return await asyncio.gather(*asked)

    assert len({answer["text"] for answer in run(body)}) == 1


def test_a_text_is_a_fact(database: str) -> None:
    async def body() -> Any:
        async with over_stdio(database, "--bank", "b", "--create") as session:
            await called(session, "retain", facts=["Maya leads Atlas.", {"text": "Ben rows."}])
            await called(session, "retain", facts="Cem sails.")
            return await called(session, "list")

    listed = run(body)["result"]

    assert [one["text"] for one in listed] == ["Cem sails.", "Ben rows.", "Maya leads Atlas."]


def test_an_empty_argument_is_none(database: str) -> None:
    """Models fill in arguments that they have nothing for."""

    async def body() -> tuple[Any, Any]:
        async with over_stdio(database, "--bank", "b", "--create") as session:
            await called(session, "retain", facts=FACTS)
            asked: dict[str, Any] = {"question": "Who leads Atlas?", "tags": [], "filter": ""}
            listed = await called(session, "list", tags=[], filter="", entity="")
            return await called(session, "recall", **asked), listed

    found, listed = run(body)

    assert "Maya leads Atlas." in found["text"]
    assert len(listed["result"]) == len(FACTS)


def test_no_field_of_a_fact_is_lost(database: str) -> None:
    told = {"text": "Maya leads Atlas.", "source_id": "handbook.md", "metadata": {"page": 3}}
    leads = {"from": "Maya", "kind": "leads", "to": "Atlas"}

    async def body() -> tuple[str, Any]:
        async with over_stdio(database, "--bank", "b", "--create") as session:
            why = await refused(session, "retain", facts=[{**told, "page": 3}])
            await called(session, "retain", facts=[{**told, "relations": [leads]}])
            return why, await called(session, "recall", question="Who leads Atlas?")

    why, found = run(body)

    assert "facts[0].page: unknown field" in why
    with Recall.connect(database, embedder=None) as memory:
        (stored,) = memory.list_memories("b")
        assert stored.metadata == {"page": 3}
        assert set(stored.entities) == {"Maya", "Atlas"}
    assert found["sources"] == {"1": "handbook.md"}


def test_an_agent_says_who_is_a_person(database: str) -> None:
    full = {"name": "Maya Okonkwo", "kind": "person", "aliases": []}
    facts = [
        {"text": "Maya Okonkwo leads Atlas.", "entities": [full, "Atlas"]},
        {"text": "Maya sails.", "entities": [{"name": "Maya", "kind": "person"}]},
    ]

    async def body() -> None:
        async with over_stdio(database, "--bank", "b", "--create") as session:
            await called(session, "retain", facts=facts)

    run(body)

    with Recall.connect(database, embedder=None) as memory:
        stored = {one.text: set(one.entities) for one in memory.list_memories("b")}
    assert stored == {
        "Maya Okonkwo leads Atlas.": {"Maya Okonkwo", "Atlas"},
        "Maya sails.": {"Maya Okonkwo"},
    }


def test_an_argument_that_a_tool_does_not_take_is_refused(database: str) -> None:
    async def body() -> tuple[str, str]:
        async with over_stdio(database, "--bank", "b", "--create") as session:
            unknown = await refused(session, "recall", question="Who?", fact_types=["event"])
            return unknown, await refused(session, "nothing", question="Who?")

    unknown, nothing = run(body)

    assert 'recall takes no argument "fact_types"' in unknown
    assert "question, max_tokens, filter, tags, as_of" in unknown
    assert "nothing" in nothing


def test_a_client_reads_that_the_bank_is_missing_and_what_creates_it(database: str) -> None:
    async def body() -> str:
        async with over_stdio(database, "--bank", "nowhere") as session:
            return await refused(session, "recall", question="Who leads Atlas?")

    said = run(body)

    assert 'bank "nowhere" does not exist' in said
    assert "--create" in said


def test_a_client_reads_that_pgrecall_is_not_installed_and_what_installs_it(
    empty_database: str,
) -> None:
    async def body() -> str:
        async with over_stdio(empty_database, "--bank", "b", "--create") as session:
            return await refused(session, "recall", question="Who leads Atlas?")

    said = run(body)

    assert "pgrecall is not installed" in said
    assert "pgrecall migrate" in said


def test_a_server_says_its_version_and_nothing_else_on_standard_error(
    database: str, tmp_path: Path
) -> None:
    async def body() -> Any:
        command, *arguments = [*PROGRAM, "--bank", "b", "--create"]
        # The oldest mcp makes the newest pydantic-settings warn.
        env = environment(PGRECALL_DSN=database, PYTHONWARNINGS="ignore")
        server = mcp.StdioServerParameters(command=command, args=arguments, env=env)
        with (tmp_path / "err").open("w") as err:
            async with (
                mcp.stdio_client(server, err) as streams,
                mcp.ClientSession(*streams) as session,
            ):
                started = await session.initialize()
                await session.call_tool("retain", {"facts": 5})
                return member(started, "server_info", "serverInfo").version

    version = run(body)

    assert mcp_server.IS_FIRST or version == __version__
    assert (tmp_path / "err").read_text() == ""


def test_a_read_only_server_offers_nothing_that_writes(database: str) -> None:
    async def body() -> dict[str, Any]:
        async with over_stdio(database, "--bank", "b", "--create", "--read-only") as session:
            tools = (await session.list_tools()).tools
            return {
                tool.name: member(tool.annotations, "read_only_hint", "readOnlyHint")
                for tool in tools
            }

    assert run(body) == {"recall": True, "list": True}


def test_tools_say_what_they_do_and_never_name_a_bank(database: str) -> None:
    async def body() -> Any:
        async with over_stdio(database, "--bank", "b", "--create") as session:
            return (await session.list_tools()).tools

    tools = {tool.name: tool for tool in run(body)}

    assert set(tools) == {"recall", "list", "retain", "forget"}
    assert all(tool.description for tool in tools.values())
    schemas = {name: member(tool, "input_schema", "inputSchema") for name, tool in tools.items()}
    assert not any("bank" in schema["properties"] for schema in schemas.values())
    hints = {
        name: member(tool.annotations, "destructive_hint", "destructiveHint")
        for name, tool in tools.items()
    }
    assert (hints["forget"], hints["retain"]) == (True, False)


def test_a_message_is_not_offered_to_be_forgotten(database: str) -> None:
    with Recall.connect(database, embedder=None) as memory:
        memory.create_bank("b")
        memory.retain_messages("b", [{"role": "user", "content": "Atlas needs a lead."}])

    async def body() -> Any:
        async with over_stdio(database, "--bank", "b") as session:
            return await called(session, "recall", question="Who leads Atlas?")

    found = run(body)

    assert "Atlas needs a lead." in found["text"]
    assert found["memory_ids"] == {}


def test_errors_say_what_to_mend_and_leave_the_server_running(database: str) -> None:
    async def body() -> tuple[str, str, Any]:
        async with over_stdio(database, "--bank", "b", "--create") as session:
            fact = await refused(session, "retain", facts=[{"text": "a", "fact_type": "no"}])
            condition = await refused(session, "recall", question="a", filter="size > 3")
            return fact, condition, await called(session, "list")

    fact, condition, listed = run(body)

    assert '"no"' in fact
    assert "hint: " in fact
    assert '"size"' in condition
    assert listed["result"] == []


def test_the_reasons_of_the_server_stay_there(database: str) -> None:
    async def body() -> str:
        async with over_stdio(database, "--bank", "b", "--create") as session:
            with Recall.connect(database) as memory:
                memory._source.execute("drop table pgrecall.memory cascade")  # type: ignore
            return await refused(session, "list")

    said = run(body)

    assert "the memory is not available now" in said
    assert "relation" not in said


def test_the_log_of_the_server_has_them(caplog: pytest.LogCaptureFixture) -> None:
    async def recall() -> None:
        raise psycopg.OperationalError("the disk is full")

    with pytest.raises(mcp_server.ToolError, match="see the server's log"):
        asyncio.run(mcp_server._refusing(recall)())

    assert [one.getMessage() for one in caplog.records] == ["recall failed: the disk is full"]


def test_without_the_name_of_a_bank_nothing_is_served(
    database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PGRECALL_BANK", raising=False)

    code = main(["mcp", "--dsn", database])

    said = capsys.readouterr()
    assert code == 1
    assert "Add --bank, or set PGRECALL_BANK." in said.err
    assert said.out == ""


# The manifest of the registry


def test_the_manifest_is_of_this_version_and_starts_the_server() -> None:
    manifest = json.loads((build.PACKAGE.parent / "server.json").read_text())
    [package] = manifest["packages"]
    variables = {variable["name"] for variable in package["environmentVariables"]}
    words = [argument.get("value") or argument["name"] for argument in package["packageArguments"]]

    assert manifest["version"] == package["version"] == __version__
    assert package["identifier"] == "pgrecall"
    assert len(manifest["description"]) <= 100
    assert variables == {"PGRECALL_BANK", "PGRECALL_DSN"}
    assert words == ["mcp", "--create"]
    readme = (build.PACKAGE.parent / "README.md").read_text()
    assert f"<!-- mcp-name: {manifest['name']} -->" in readme  # what the registry looks for


# Entering it at coding agents


def servers(path: Path, key: str = "mcpServers") -> Any:
    return json.loads(path.read_text())[key]


def test_init_enters_the_bank_at_every_agent(tmp_path: Path) -> None:
    names = [*agents.AGENTS]

    code = main(["init", *names, "--bank", "b", "--directory", str(tmp_path), "--hooks"])

    expected = ["mcp", "--bank", "b", "--create"]
    assert code == 0
    for file in (".mcp.json", ".cursor/mcp.json", ".gemini/settings.json"):
        assert servers(tmp_path / file)["pgrecall"]["args"][-4:] == expected
    code_entry = servers(tmp_path / ".vscode/mcp.json", "servers")["pgrecall"]
    assert (code_entry["type"], code_entry["args"][-4:]) == ("stdio", expected)
    toml = (tmp_path / ".codex/config.toml").read_text()
    assert toml.startswith("[mcp_servers.pgrecall]\ncommand = ")
    for file in (".claude/settings.json", ".codex/hooks.json"):
        [group] = json.loads((tmp_path / file).read_text())["hooks"]["UserPromptSubmit"]
        assert group["hooks"][0]["command"].endswith("hook --bank b")


@pytest.mark.parametrize(
    ("found", "words", "command"),
    [
        (["pgrecall", "uvx"], [], ["pgrecall", "mcp"]),
        (["uvx", "pipx"], [], ["uvx", "--from", "pgrecall[all,mcp]", "pgrecall", "mcp"]),
        (["pipx"], [], ["pipx", "run", "--spec", "pgrecall[all,mcp]", "pgrecall", "mcp"]),
        ([], [], ["pgrecall", "mcp"]),
        (["pgrecall"], ["--run", "uvx"], ["uvx", "--from", "pgrecall[all,mcp]", "pgrecall", "mcp"]),
        (["pgrecall"], ["--run", "python"], [sys.executable, "-m", "pgrecall", "mcp"]),
    ],
)
def test_init_writes_what_other_machines_have_too(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    found: list[str],
    words: list[str],
    command: list[str],
) -> None:
    for name in found:
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert main(["init", "cursor", "--bank", "b", "--directory", str(tmp_path), *words]) == 0

    entry = servers(tmp_path / ".cursor/mcp.json")["pgrecall"]
    assert [entry["command"], *entry["args"]] == [*command, "--bank", "b", "--create"]


@pytest.mark.parametrize(
    ("found", "words", "warned"),
    [
        ([], [], f'"pgrecall", which is not on PATH\nhint: Add {Path(sys.executable).parent} to'),
        (["uvx"], ["--run", "pipx"], '"pipx", which is not on PATH\nhint: Put "pipx" on PATH, or'),
        (["pgrecall"], [], ""),
        ([], ["--run", "python"], ""),
    ],
)
def test_init_warns_where_agents_could_not_start_the_server(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    found: list[str],
    words: list[str],
    warned: str,
) -> None:
    for name in found:
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert main(["init", "cursor", "--bank", "b", "--directory", str(tmp_path), *words]) == 0

    errors = capsys.readouterr().err
    assert warned in errors
    assert bool(errors) == bool(warned)


def test_what_init_writes_starts_the_server(database: str, tmp_path: Path) -> None:
    where = ["--bank", "b", "--directory", str(tmp_path), "--run", "python"]
    assert main(["init", "claude-code", *where]) == 0
    entry = servers(tmp_path / ".mcp.json")["pgrecall"]

    async def body() -> Any:
        server = mcp.StdioServerParameters(
            command=entry["command"], args=entry["args"], env=environment(PGRECALL_DSN=database)
        )
        async with mcp.stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
            await session.initialize()
            return await called(session, "list")

    assert run(body)["result"] == []


def test_init_keeps_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = {"theme": "dark", "mcpServers": {"other": {"command": "x"}}}
    (tmp_path / ".mcp.json").write_text(json.dumps(own))
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").write_text('model = "o"\n\n[mcp_servers.x]\ncommand = "y"\n')
    words = ["init", "claude-code", "codex", "--bank", "b", "--directory", str(tmp_path)]

    assert main(words) == 0
    first = capsys.readouterr().out
    written = {path: path.read_text() for path in (tmp_path / ".mcp.json",)}
    assert main(words) == 0
    second = capsys.readouterr().out

    content = json.loads((tmp_path / ".mcp.json").read_text())
    assert content["theme"] == "dark"
    assert [*content["mcpServers"]] == ["other", "pgrecall"]
    toml = (tmp_path / ".codex/config.toml").read_text()
    assert toml.startswith('model = "o"\n\n[mcp_servers.x]\ncommand = "y"\n\n[mcp_servers.pgrecall')
    assert toml.count("[mcp_servers.pgrecall]") == 1
    assert "added to" in first
    assert second.count('already has an entry "pgrecall"') == 2
    assert {path: path.read_text() for path in written} == written


def test_init_leaves_a_file_that_it_cannot_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '{\n  // mine\n  "mcpServers": {}\n}\n'
    (tmp_path / ".mcp.json").write_text(text)

    code = main(["init", "claude-code", "--bank", "b", "--directory", str(tmp_path)])

    assert code == 1
    assert "was not changed" in capsys.readouterr().err
    assert (tmp_path / ".mcp.json").read_text() == text


@pytest.mark.parametrize("content", ["[]", '{"mcpServers": []}'])
def test_init_leaves_a_file_of_another_form(tmp_path: Path, content: str) -> None:
    (tmp_path / ".mcp.json").write_text(content)

    assert main(["init", "claude-code", "--bank", "b", "--directory", str(tmp_path)]) == 1
    assert (tmp_path / ".mcp.json").read_text() == content


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["init", *agents.AGENTS, "--bank", "b", "--directory", str(tmp_path), "--hooks"]

    assert main([*words, "--dry-run"]) == 0

    assert [*tmp_path.iterdir()] == []
    assert '"mcpServers"' in capsys.readouterr().out


def test_init_writes_no_password(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--bank", "b", "--directory", str(tmp_path)]

    code = main(["init", "cursor", *where, "--dsn", "postgresql://u:secret@h/d"])
    fine = main(["init", "cursor", *where, "--dsn", "postgresql://u@h/d"])

    said = capsys.readouterr()
    assert (code, fine) == (1, 0)
    assert "PGRECALL_DSN" in said.err
    assert "secret" not in said.err
    assert servers(tmp_path / ".cursor/mcp.json")["pgrecall"]["args"][-1] == "postgresql://u@h/d"


def test_init_writes_no_password_of_a_key(tmp_path: Path) -> None:
    dsn = "host=h dbname=d sslkey=/k sslpassword=hidden"

    assert main(["init", "cursor", "--bank", "b", "--directory", str(tmp_path), "--dsn", dsn]) == 1
    assert [*tmp_path.iterdir()] == []


def test_init_makes_no_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "projct"

    with pytest.raises(SystemExit) as caught:
        main(["init", "cursor", "--bank", "b", "--directory", str(missing)])

    assert caught.value.code == 2
    assert "does not exist" in capsys.readouterr().err
    assert not missing.exists()


# The hook


def hooked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, *words: str
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    code = main(["hook", "--no-embed", *words])
    return code, *capsys.readouterr()


def test_a_hook_prints_what_the_bank_knows(
    database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Recall.connect(database, embedder=None) as memory:
        memory.create_bank("b")
        memory.retain("b", FACTS)
    where = ["--bank", "b", "--dsn", database]

    asked = hooked(monkeypatch, capsys, '{"prompt": "Who leads Atlas?"}', *where)
    other = hooked(monkeypatch, capsys, '{"prompt": "Please write a haiku"}', *where)
    few = ["--max-tokens", "3"]
    short = hooked(monkeypatch, capsys, '{"prompt": "Who leads Atlas?"}', *where, *few)

    assert asked[0] == 0
    assert "Maya leads Atlas." in asked[1]
    assert other[:2] == short[:2] == (0, "")
    assert short[2].startswith("pgrecall: no memories, max_tokens is 3, too few")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"prompt": 5}', '{"prompt": "a"}', '{"prompt": ' + "[" * 100_000]
)
def test_a_hook_that_cannot_answer_is_in_nobodys_way(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    lost = "host=127.0.0.1 port=1 dbname=x connect_timeout=2"

    code, out, err = hooked(monkeypatch, capsys, text, "--bank", "b", "--dsn", lost)

    assert (code, out) == (0, "")
    assert err.startswith("pgrecall: no memories")


# Who is let in over HTTP


@pytest.fixture
def filled(database: str) -> str:
    with Recall.connect(database, embedder=None) as memory:
        memory.create_bank("b")
    return database


def test_beyond_this_machine_a_request_needs_the_token_that_is_printed(filled: str) -> None:
    with served(filled, "--bank", "b", "--host", "0.0.0.0") as (port, server):
        assert server.stderr is not None
        header, token = server.stderr.readline().strip().split(": Bearer ")

        assert header == "Authorization"
        assert status(port, HELLO) == 401
        assert status(port, HELLO, Authorization=f"Bearer {TOKEN}") == 401
        assert status(port, HELLO, Authorization=f"Bearer {token}") == 200


def test_a_token_may_be_given_and_asked_for_on_this_machine(filled: str) -> None:
    words = ("--bank", "b", "--token")
    with served(filled, *words, PGRECALL_MCP_TOKEN=TOKEN) as (port, _):
        assert status(port, HELLO) == 401
        assert status(port, HELLO, Authorization=f"Bearer {TOKEN}") == 200


def test_names_and_pages_of_others_are_refused_and_so_is_too_much(filled: str) -> None:
    words = ("--bank", "b", "--name", "memory.example.com", "--origin", "https://app.example.com")
    with served(filled, *words) as (port, _):
        assert status(port, HELLO) == 200
        assert status(port, HELLO, Host="memory.example.com") == 200
        assert status(port, HELLO, Host="evil.example") == 421
        assert status(port, HELLO, Origin="https://app.example.com") == 200
        assert status(port, HELLO, Origin="https://evil.example") == 403
        assert status(port, b"", **{"Content-Length": str(10**9)}) == 413


@pytest.mark.parametrize(
    ("words", "token", "message"),
    [
        (
            ["--host", "0.0.0.0", "--no-token"],
            "",
            "without a token anybody who can reach 0.0.0.0 could use the memory",
        ),
        (["--token"], "short", "PGRECALL_MCP_TOKEN has 5 characters, not 32 or more"),
    ],
)
def test_a_server_that_anybody_could_use_is_not_started(
    filled: str, words: list[str], token: str, message: str
) -> None:
    done = subprocess.run(
        [*PROGRAM, "--http", "--bank", "b", *words],
        env=environment(PGRECALL_DSN=filled, PGRECALL_MCP_TOKEN=token),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode != 0
    assert message in " ".join(done.stderr.split())
