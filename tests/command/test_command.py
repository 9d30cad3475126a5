"""The command line: what its help teaches, what it completes, JSON everywhere, any terminal."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path, PureWindowsPath
from typing import cast

import click
import psycopg
import pytest

from pgrecall import FunctionEmbedder
from pgrecall.command import actions, agents, arguments, main
from pgrecall.command.parameters import Command
from pgrecall.embedders import DEFAULT_EMBEDDER
from pgrecall.evaluation import measure
from pgrecall.importing import READERS, SOURCES
from toys import sample_file, shorten_demo

FACT = {"text": "Ana leads Atlas → Borealis", "source_id": "mail", "fact_key": "lead"}
EXTRAS = "numpy onnxruntime psycopg psycopg_pool tokenizers torch mcp openai".split()


def walk(group: click.Group, *before: str) -> Iterator[tuple[str, Command]]:
    """Return each command with its words."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from walk(command, *before, name)
        else:
            yield " ".join([*before, name]), cast("Command", command)


COMMANDS = dict(walk(arguments.top))


def words_of(example: str) -> list[str]:
    """Return the words of an example, less the program and a redirection."""
    program, *words = shlex.split(example)
    assert program == "pgrecall"
    return words[: words.index(">")] if ">" in words else words


def parse(example: str) -> str:
    """Parse a command line without running it, and return the name of its command."""
    words = words_of(example)
    name = " ".join(words[: 2 if words[0] in ("bank", "shard") else 1])
    COMMANDS[name].make_context(name, words[len(name.split()) :])
    return name


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "pgrecall", *words],
        env=os.environ | environment,
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_examples_that_parse(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*name.split(), "--help"])

    shown = re.findall(r"^ +(pgrecall .*)", capsys.readouterr().out.split("Examples:")[1], re.M)
    assert shown == list(COMMANDS[name].examples) != []
    assert {parse(example) for example in shown} == {name}


def test_an_example_that_does_not_parse_is_noticed() -> None:
    with pytest.raises(click.NoSuchOption):
        parse("pgrecall recall mine x --top 5")
    with pytest.raises(click.BadParameter):
        parse("pgrecall recall mine x --set fusion")


def test_help_says_how_to_begin_and_what_the_exit_status_means(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["--help"])

    shown = capsys.readouterr().out
    assert code == 0
    assert "pgrecall retain facts.jsonl --bank mine --create" in shown
    assert "Exit status: 0 for success, 1 for an error" in shown
    assert all(re.search(rf"^  {name.split()[0]} ", shown, re.M) for name in COMMANDS)
    assert "..." not in shown.split("Commands:")[1]  # no summary is cut


def test_choices_and_defaults_are_those_of_the_code() -> None:
    assert (*READERS, *SOURCES) == arguments.KINDS
    assert arguments.ID_FIELDS == measure.ID_FIELDS
    assert tuple(agents.AGENTS) == arguments.AGENTS
    assert f"default: {agents.BANK_VARIABLE}" in str(COMMANDS["mcp"].params[0].to_info_dict())


@pytest.mark.parametrize(
    "words",
    [
        ["consolidate", "b", "--apply", "--undo"],
        ["migrate", "--sql", "--dry-run"],
        ["recall", "b"],
        ["get", "b"],
        ["update", "b", "5", "bank=c"],
        ["sync", "b", "--interval", "-1"],
        ["migrate", "--lock-timeout", "inf"],
        ["migrate", "--retries", "-1"],
        ["console", "--port", "99999"],
        ["mcp", "--bank", "b", "--http", "--port", "-1"],
        ["init", "emacs"],
        ["nothing"],
    ],
)
def test_wrong_usage_names_what_is_wrong_and_exits_with_2(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)

    said = capsys.readouterr().err
    assert caught.value.code == 2
    assert "Error: " in said
    assert "' for help." in said


@pytest.mark.parametrize("words", [["--help"], ["recall", "--help"], ["--version"]])
def test_help_needs_nothing_that_a_recall_needs(words: list[str]) -> None:
    code = f"""
import sys
from pgrecall.command import main
main({words})
print(*sys.modules, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

    assert set(EXTRAS).isdisjoint(done.stderr.decode().split())


def test_input_that_ends_is_no_consent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())

    assert main(["bank", "drop", "b"]) == 1
    assert "error: interrupted" in capsys.readouterr().err


def test_completion_is_as_cheap_as_help() -> None:
    code = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from pgrecall.command import main
main()
"""
    asked = {"_PGRECALL_COMPLETE": "bash_complete", "COMP_WORDS": "pgrecall re", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, env=os.environ | asked
    )

    offered = done.stdout.decode().split()
    assert {"plain,recall", "plain,retain", "plain,reembed"} <= set(offered)
    assert set(EXTRAS).isdisjoint(done.stderr.decode().split())


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("pgrecall bank ", {"create", "list", "show", "drop"}),
        ("pgrecall recall mine x --ex", {"--explain"}),
        ("pgrecall init co", {"codex"}),
        ("pgrecall import x --from m", {"mem0"}),
        ("pgrecall recall mine x --js", {"--json"}),
    ],
)
def test_commands_options_and_choices_are_completed(line: str, offered: set[str]) -> None:
    done = run(
        _PGRECALL_COMPLETE="bash_complete",
        COMP_WORDS=line,
        COMP_CWORD=str(len(line.split(" ")) - 1),
    )

    assert {entry.partition(",")[2] for entry in done.stdout.decode().split()} == offered


@pytest.mark.parametrize("shell", arguments.SHELLS)
def test_the_completion_of_a_shell_is_a_script_of_it(shell: str) -> None:
    done = run("completion", shell)

    assert done.returncode == 0
    assert f"_PGRECALL_COMPLETE={shell}_complete" in done.stdout.decode()
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=done.stdout, check=True)


def test_every_command_that_prints_results_prints_json(
    database: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shorten_demo(monkeypatch)
    facts, out = tmp_path / "facts.jsonl", tmp_path / "out.jsonl"
    facts.write_text(json.dumps(FACT) + "\n" + json.dumps({"text": "Ben sails."}) + "\n")
    (tmp_path / "chat.jsonl").write_text('{"text": "hello", "speaker": "Ana"}\n')
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"question": "Who leads Atlas?", "relevant": ["lead"]}\n' * 5)
    sample = sample_file(tmp_path)
    seen: set[str] = set()
    printed: dict[str, object] = {}

    def asked(line: str) -> object:
        words = shlex.split(line)
        (name,) = (name for name in COMMANDS if f"{line} ".startswith(f"{name} "))
        code = main([*words, "--json", "--dsn", database])
        text = capsys.readouterr().out
        assert code == 0, text
        seen.add(name)
        printed[line] = json.loads(text)
        return printed[line]

    with psycopg.connect(database) as connection:
        connection.execute("create table public.filed (id int primary key, body text)")
    for line in (
        "migrate --dry-run",
        "migrate --sql",
        "migrate --retries 1",
        "demo --bank tour",
        "bank create b",
        f"retain '{facts}' --bank b --no-embed --no-link",
        f"retain-messages '{tmp_path / 'chat.jsonl'}' --bank b",
        "link b",
        "maintain b",
        "embed b",
        "recall b 'who leads Atlas?'",
        "list b",
        "bank list --dsn x",
        "bank show b",
        f"export b '{out}'",
        f"import '{out}' --bank copy",
        f"import '{facts}' --bank other --create --no-embed",
        f"calibrate pgrecall-small-2 '{sample}' --bank b",
        "index b",
        "stats b --share 1",
        "consolidate b",
        f"eval b '{questions}' --no-embed",
        f"tune b '{questions}' --no-embed --budget 1 --folds 2",
        "doctor",
        "attach other filed --key id --text body",
        "sync other",
        "detach other filed --forget",
        f"init claude-code --bank b --directory '{tmp_path}' --hooks",
    ):
        asked(line)
    (first, second) = (row["memory_id"] for row in cast("list[dict[str, str]]", printed["list b"]))
    with psycopg.connect(database) as connection:
        connection.execute("select pgrecall.reembed_start('b', model => 'toy', dimensions => 2)")
    for line in (
        f"get b {first}",
        f"supersede b {first} --by {second}",
        f"unsupersede b {first}",
        f"update b {second} context=null tags=[] --no-embed",
        f"history b {second}",
        f"forget b {first} 12345",
        "forget-messages b --session s1",
        "reembed b --cancel",
        "bank drop b --yes",
    ):
        asked(line)

    takes = {name for name, command in COMMANDS.items() if "json" in _names(command)}
    assert seen == {name for name in takes if not name.startswith("shard ")}  # test_shards.py
    assert set(COMMANDS) - takes == {"mcp", "hook", "completion", "console", "schema"}
    assert printed["bank drop b --yes"] == {"bank_id": "b", "memories": 2}
    assert len(cast("list[object]", printed["demo --bank tour"])) == 10


def _names(command: click.Command) -> set[str]:
    return {name for parameter in command.params if (name := parameter.name)}


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_what_a_terminal_cannot_write_is_escaped(
    database: str, tmp_path: Path, encoding: str
) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_text(json.dumps(FACT | {"text": "Ana → 😀"}) + "\n")
    given = {"PYTHONIOENCODING": encoding, "PGRECALL_DSN": database}
    run("retain", str(file), "--bank", "b", "--create", "--no-embed", PGRECALL_DSN=database)

    table, rows, whole = (
        run("list", "b", **given),
        run("list", "b", "--json", **given),
        run("export", "b", **given),
    )

    assert (table.returncode, rows.returncode, whole.returncode) == (0, 0, 0), table.stderr
    assert b"Ana" in table.stdout
    assert json.loads(rows.stdout.decode(encoding))[0]["text"] == "Ana → 😀"
    exported = [json.loads(line) for line in whole.stdout.decode(encoding).splitlines()]
    assert "Ana → 😀" in {row["row"].get("text") for row in exported}


@pytest.mark.parametrize("word", ["C:\\data\\facts *.jsonl", "~\\facts.jsonl", "%TEMP%\\x.jsonl"])
def test_paths_of_windows_reach_a_command_as_they_are(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: list[object] = []

    def keep(options: object, console: object) -> int:
        files.append(vars(options)["file"])
        return 0

    monkeypatch.setattr(actions, "retain_facts", keep)
    monkeypatch.setattr("os.name", "nt")  # there click expands what looks like a pattern
    monkeypatch.setattr("sys.argv", ["pgrecall", "retain", word, "--bank", "b"])
    monkeypatch.setattr("pgrecall.command.arguments._FILE.coerce_path_result", lambda path: path)

    assert main() == 0

    assert files == [word]
    assert str(PureWindowsPath(word)) == word


def test_an_entry_of_a_windows_program_is_read_back_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 reads TOML")
    program = "C:\\Program Files\\Python\\python.exe"
    monkeypatch.setattr(agents, "_program", lambda _: [program, "-m", "pgrecall"])

    main(["init", "claude-code", "codex", "--bank", "b", "--directory", str(tmp_path)])

    servers = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]
    config = tomllib.loads((tmp_path / ".codex" / "config.toml").read_text())
    assert servers["pgrecall"]["command"] == program
    assert config["mcp_servers"]["pgrecall"]["command"] == program


def test_a_model_is_calibrated_on_a_sample(
    database: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The packaged one, with a large component that is the same for all texts."""

    @cache
    def vector(text: str) -> list[float]:
        (embedding,) = DEFAULT_EMBEDDER.embed([text])
        return [*embedding, 2.0]

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [vector(text) for text in texts]

    flat = FunctionEmbedder(embed, "flat")
    for module in ("actions", "calibrate"):
        monkeypatch.setattr(f"pgrecall.command.{module}.named_embedder", lambda name: flat)
    sample, questions = str(sample_file(tmp_path)), tmp_path / "questions.jsonl"
    questions.write_text(
        "".join(f'{{"question": "What does Maya think of number {n}?"}}\n' for n in range(30))
    )
    bank = ["--bank", "b", "--dsn", database]
    assert main(["retain", sample, "--create", "--model", "flat", *bank]) == 0
    capsys.readouterr()

    assert main(["calibrate", "flat", sample, "--questions", str(questions)]) == 0
    printed = json.loads(capsys.readouterr().out)
    code = main(["calibrate", "flat", sample, *bank])

    assert (printed["model"], len(printed["mean"])) == ("flat", DEFAULT_EMBEDDER.dimensions + 1)
    assert -0.2 < printed["low_cosine"] < 0.2 < printed["high_cosine"] < 0.7
    assert (code, capsys.readouterr().out[:17]) == (0, 'bank "b": cosines')
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "select calibrations ? 'flat', (select count(*) from pgrecall.memory"
            " where not is_linked) from pgrecall.bank"
        ).fetchall()
    assert rows == [(True, 0)]


def test_a_sample_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = tmp_path / "sample.jsonl"
    sample.write_text('{"text": "one"}\n{"title": "two"}\n')

    assert main(["calibrate", "all-MiniLM-L6-v2", str(sample)]) == 1
    assert f'{sample}, line 2: "text" is missing' in capsys.readouterr().err
