"""Commands for coding agents: mcp serves a bank, init configures clients, hook asks the bank."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from rich.console import Console

from pgrecall.aio import AsyncRecall
from pgrecall.client import Recall
from pgrecall.command.actions import embedder_of, print_json
from pgrecall.command.running import fail, written_whole
from pgrecall.errors import BankNotFound, InstallError, InvalidArgument, RecallError
from pgrecall.server.doors import LOCAL_HOSTS
from pgrecall.wording import command_line

Change = Callable[[str], "str | None"]
"""Changes the text of a file; returns None if the file needs no change."""

BANK_VARIABLE = "PGRECALL_BANK"
NAME = "pgrecall"
POOL_SIZE = 4
TOKEN_SETTING = "PGRECALL_MCP_TOKEN"
LEAST_TOKEN = 32
SETTINGS = {"time_basis": "mentioned"}
"""Of a bank that agents fill: they retain what was just said, and seldom when it happened."""
HOOK_CONFIDENCE = 0.3
"""Minimum relevance; below it a memory is not worth its tokens."""


@dataclass(frozen=True, slots=True)
class Agent:
    """Where a coding agent reads its MCP servers and hooks in a project.

    Attributes:
        servers: The file with the servers.
        hooks: The file with the hooks, in the format of Claude Code and Codex; None for none.
        key: The member of the file that holds the servers; None if the file is TOML.
        typed: Whether an entry names its transport, stdio.

    """

    servers: str
    hooks: str | None = None
    key: str | None = "mcpServers"
    typed: bool = False


AGENTS: Mapping[str, Agent] = {
    "claude-code": Agent(".mcp.json", hooks=".claude/settings.json"),
    "codex": Agent(".codex/config.toml", hooks=".codex/hooks.json", key=None),
    "cursor": Agent(".cursor/mcp.json"),
    "gemini": Agent(".gemini/settings.json"),
    "vscode": Agent(".vscode/mcp.json", key="servers", typed=True),
}


RUNS: Mapping[str, Sequence[str]] = {
    "path": [NAME],
    "uvx": ["uvx", "--from", "pgrecall[all,mcp]", NAME],
    "pipx": ["pipx", "run", "--spec", "pgrecall[all,mcp]", NAME],
    "python": [sys.executable, "-m", NAME],
}
"""How an agent starts the command."""


def serve(options: SimpleNamespace, console: Console) -> int:
    """Serve a bank to MCP clients."""
    from pgrecall.adapters import mcp_server

    async def run(bank: str) -> None:
        async with await AsyncRecall.connect(
            options.dsn, embedder=embedder_of(options), pool_size=POOL_SIZE
        ) as memory:
            try:  # the tools report the error, since clients do not show a server's exit
                if options.create:
                    await memory.create_bank(bank, settings=SETTINGS, exist_ok=True)
                await memory.bank_options(bank)
            except BankNotFound as error:
                fail(error.message, mcp_server.CREATE)
            except InstallError as error:
                fail(error.message, error.hint)
            address = (options.host, options.port) if options.http else None
            await mcp_server.serve(
                memory, bank, is_read_only=options.read_only, address=address, **doors
            )

    doors = _doors_of(options) if options.http else {}
    asyncio.run(run(_bank_of(options)))
    return 0


def _doors_of(options: SimpleNamespace) -> dict[str, Any]:
    """Return the access rules for HTTP: a token is required beyond this machine.

    Raises:
        InvalidArgument: anybody who can reach the server could use it.

    """
    is_local = options.host in LOCAL_HOSTS
    token = os.environ.get(TOKEN_SETTING) or None
    if options.no_token and not is_local and not options.name:
        raise InvalidArgument(
            f"without a token anybody who can reach {options.host} could use the memory",
            hint="Omit --no-token. Behind a proxy that controls access, give the host names of"
            " requests with --name.",
        )
    if options.no_token:
        token = None
    elif token is not None and len(token) < LEAST_TOKEN:
        raise InvalidArgument(
            f"{TOKEN_SETTING} has {len(token)} characters, not {LEAST_TOKEN} or more",
            hint="Make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    elif token is None and (options.token or not is_local):
        token = secrets.token_urlsafe(32)
        print(f"Authorization: Bearer {token}", file=sys.stderr, flush=True)
    hosts = [*LOCAL_HOSTS, options.host, *(options.name or ())]
    # A wildcard address has no host name to check, only the token.
    is_any = options.host in ("0.0.0.0", "::", "") and not options.name
    return {"token": token, "hosts": None if is_any else hosts, "origins": options.origin or ()}


def hook(options: SimpleNamespace, console: Console) -> int:
    """Print what a bank knows about the prompt of a hook, for the model to read.

    Never fails, so that an unavailable memory does not block the user.
    """
    try:
        prompt = json.loads(sys.stdin.read())["prompt"]
        embedder = embedder_of(options)
        with Recall.connect(options.dsn, embedder=embedder, reranker=None) as memory:
            report = memory.recall_report(
                _bank_of(options), prompt, min_relevance=HOOK_CONFIDENCE, timeout=options.timeout
            )
        text = report.prompt(max_tokens=options.max_tokens) if report.hits else None
    except (
        *(ValueError, LookupError, TypeError, RecursionError),  # of the prompt
        *(RecallError, psycopg.Error, OSError),
    ) as error:
        print(f"pgrecall: no memories, {error}", file=sys.stderr)
        return 0
    if text is not None:
        console.file.write(f"{text}\n")
    return 0


def init(options: SimpleNamespace, console: Console) -> int:
    """Add a bank to the configuration files of coding agents, or print the changes."""
    bank = options.bank or os.environ.get(BANK_VARIABLE) or options.directory.resolve().name
    program = _program(options.run)
    if shutil.which(program[0]) is None:
        print(_not_found(program[0]), file=sys.stderr)
    where = ["--dsn", _safe_dsn(options.dsn)] if options.dsn else []
    words = ["mcp", "--bank", bank, "--create", *where]
    asks = command_line([*program, "hook", "--bank", bank, *where])
    done: list[dict[str, str | None]] = []
    for name in options.agent:
        agent = AGENTS[name]
        changes: dict[str, Change] = {
            agent.servers: partial(_with_server, agent=agent, program=program, words=words)
        }
        if options.hooks and agent.hooks:
            changes[agent.hooks] = partial(_with_hook, command=asks)
        elif options.hooks:
            said = "has no hooks"
            if not options.json:
                console.print(f"{name}: {said}", markup=False)
            done.append({"agent": name, "file": None, "done": said})
        for file, change in changes.items():
            path = options.directory / file
            try:
                said = _merge(path, change, is_dry_run=options.dry_run)
            except ValueError as error:
                said = ""
                fail(f"{path} was not changed: {error}", "Fix the file, or add the entry by hand.")
            if said and not options.json:
                console.print(f"{name}: {said}", markup=False, soft_wrap=True)
            done.append({"agent": name, "file": str(path), "done": said or None})
    if options.json:
        print_json(console, done)
    return int(any(entry["done"] is None for entry in done))


def _merge(path: Path, change: Change, *, is_dry_run: bool) -> str:
    """Change a file and keep its other contents.

    Raises:
        ValueError: the file does not have the expected format.

    """
    path = path.resolve()  # keep symbolic links
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    after = change(before)
    if after is None:
        return f'{path} already has an entry "{NAME}" and was not changed'
    if is_dry_run:
        return f"would write {path}:\n{after}"
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        file.write(after)
    if not before:
        path.chmod(0o644)
    return f"{'added to' if before else 'wrote'} {path}"


def _with_server(text: str, agent: Agent, program: list[str], words: list[str]) -> str | None:
    command, *before = program
    if agent.key is None:
        return _with_toml(text, command, [*before, *words])
    content = _object(text)
    servers = content.setdefault(agent.key, {})
    if not isinstance(servers, dict):
        raise ValueError(f'its "{agent.key}" is not an object')
    if NAME in servers:
        return None
    kind = {"type": "stdio"} if agent.typed else {}
    servers[NAME] = {**kind, "command": command, "args": [*before, *words]}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _with_toml(text: str, command: str, words: list[str]) -> str | None:
    if re.search(rf"""^\s*\[\s*mcp_servers\s*\.\s*["']?{NAME}["']?\s*[].]""", text, re.MULTILINE):
        return None
    if re.search(r"^\s*mcp_servers\b", text, re.MULTILINE):
        raise ValueError("its mcp_servers are not tables")
    # JSON strings are valid TOML strings.
    entry = f"[mcp_servers.{NAME}]\ncommand = {json.dumps(command)}\nargs = {json.dumps(words)}\n"
    return f"{text.rstrip()}\n\n{entry}" if text.strip() else entry


def _with_hook(text: str, command: str) -> str | None:
    content = _object(text)
    hooks = content.setdefault("hooks", {})
    if not isinstance(hooks, dict):
        raise ValueError('its "hooks" is not an object')
    groups = hooks.setdefault("UserPromptSubmit", [])
    if not isinstance(groups, list):
        raise ValueError('its "UserPromptSubmit" is not a list')
    if f"{NAME} hook" in json.dumps(groups):
        return None
    groups.append({"hooks": [{"type": "command", "command": command, "timeout": 10}]})
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _object(text: str) -> dict[str, object]:
    content = json.loads(text) if text.strip() else {}
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    return content


def _program(run: str | None) -> list[str]:
    """Return how agents start the command, for everybody who shares the files.

    Args:
        run: A key of RUNS. Default: the first whose program is found here, else "path". Never
            "python", whose path differs on other machines.

    """
    found = (name for name in ("path", "uvx", "pipx") if shutil.which(RUNS[name][0]))
    return [*RUNS[run or next(found, "path")]]


def _not_found(program: str) -> str:
    """Say that agents here cannot start a program, and what helps."""
    here = Path(sys.executable).parent
    is_here = program == NAME and shutil.which(NAME, path=str(here)) is not None
    remedy = f"Add {here} to the PATH of the agents" if is_here else f'Put "{program}" on PATH'
    return (
        f'warning: agents would start "{program}", which is not on PATH\n'
        f"hint: {remedy}, or choose another way with --run, such as --run python."
    )


def _safe_dsn(dsn: str) -> str:
    """Refuse to write a password to files of a project, which are shared."""
    if any("password" in name or "secret" in name for name in conninfo_to_dict(dsn)):
        raise InvalidArgument(
            "the DSN has a password, and the files of a project are shared",
            hint="Put the password into ~/.pgpass, or the whole DSN into PGRECALL_DSN, and leave it"
            " out here.",
        )
    return dsn


def _bank_of(options: SimpleNamespace) -> str:
    bank = options.bank or os.environ.get(BANK_VARIABLE)
    if not bank:
        raise InvalidArgument("no bank is given", hint=f"Add --bank, or set {BANK_VARIABLE}.")
    return str(bank)
