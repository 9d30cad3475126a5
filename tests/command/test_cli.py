"""The command: what it prints, which files it refuses, how it exits."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import traceback
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.rows import scalar_row

from pgrecall import Hit, InvalidArgument, OnnxReranker, PackagedEmbedder, Recall
from pgrecall.calls.call import Call
from pgrecall.command import actions, main, render
from pgrecall.command.demo import ARMS, SHOWN
from pgrecall.doctor import checks as doctor
from pgrecall.doctor import queries
from pgrecall.embedders import DEFAULT_EMBEDDER
from pgrecall.inference import rerankers
from sqlcalls import waiting
from toys import shorten_demo

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(database: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str, dsn: str = database) -> tuple[int, str, str]:
        code = main([*arguments, "--dsn", dsn])
        return code, *capsys.readouterr()

    return run


def write(path: Path, *rows: object) -> str:
    path.write_text(
        "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)
    )
    return str(path)


@pytest.fixture
def facts(tmp_path: Path) -> str:
    return write(
        tmp_path / "facts.jsonl",
        {"text": "Ana leads Atlas", "occurred": "2026-03-05", "tags": ["team"]},
        "",
        {"text": "Ben leads Borealis", "fact_type": "opinion"},
    )


@pytest.fixture
def bank(run: Run, facts: str) -> str:
    assert run("retain", facts, "--bank", "b", "--create", "--no-embed")[0] == 0
    return "b"


def test_a_file_is_retained_and_asked(run: Run, facts: str) -> None:
    retained = run("retain", facts, "--bank", "b", "--create", "--no-embed")
    asked = run("recall", "b", "who leads Atlas?", "--no-embed")

    assert retained[:2] == (0, 'retained 2 facts in bank "b"\n')
    assert asked[0] == 0
    assert "Ana leads Atlas" in asked[1]
    assert "2026-03-05" in asked[1]
    assert "lexical" in asked[1]
    assert re.search(r"dates [\d.]+, embedding 0.0, connection [\d.]+, database [\d.]+", asked[1])


def test_a_line_may_be_just_a_text(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "facts.jsonl", '"Ana leads Atlas"', {"text": "Ben leads Borealis"})

    run("retain", file, "--bank", "b", "--create", "--no-embed")

    listed = json.loads(run("list", "b", "--json")[1])
    assert [memory["text"] for memory in listed] == ["Ben leads Borealis", "Ana leads Atlas"]


def test_long_texts_leave_ids_and_days_whole(run: Run, tmp_path: Path) -> None:
    bank = "tenant-" * 10
    fact = {"fact_key": "atlas.lead", "occurred": "2026-03-05", "fact_type": "preference"}
    file = write(
        tmp_path / "facts.jsonl",
        fact | {"text": f"Ana leads Atlas{', she says' * 30}."},
        fact | {"text": f"Ana leads Atlas{', they say' * 30}."},
    )
    run("retain", file, "--bank", bank, "--create", "--no-embed")
    ids = [memory["memory_id"] for memory in json.loads(run("list", bank, "--json")[1])]

    listed = run("list", bank)[1]
    ended = run("supersede", bank, ids[0], "--by", ids[1], "--dry-run")[1]
    banks = run("bank", "list")[1]

    assert re.findall(r"^(\d+) .* (2026-03-05) +preference ", listed, re.MULTILINE) == [
        (one, "2026-03-05") for one in ids
    ]
    assert re.search(rf"^{ids[0]} ", ended, re.MULTILINE)
    assert re.search(r" none yet +\d{4}-\d\d-\d\d *$", banks, re.MULTILINE)


def test_a_line_to_import_that_is_nested_too_deeply_is_left_out(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "facts.jsonl", "[" * 100_000, {"text": "Ana leads Atlas"})

    code, out, _ = run("import", file, "--bank", "b", "--create", "--no-embed")

    assert code == 1
    assert out.startswith('imported 1 facts into bank "b"\n  line 1: not JSON: ')


def test_the_day_of_storing_is_not_shown_as_when_it_happened(run: Run, bank: str) -> None:
    asked = run("recall", bank, "who leads Borealis?", "--no-embed")

    assert re.search(r"Ben leads Borealis +said \d{4}-\d\d-\d\d ", asked[1])


def test_what_is_known_already_is_counted(run: Run, bank: str, facts: str) -> None:
    code, out, _ = run("retain", facts, "--bank", bank, "--no-embed")

    said = "2 were already known and keep their tags, metadata and confidence"
    assert (code, out) == (0, f'retained 0 facts in bank "b"; {said}\n')


def test_an_import_says_that_known_facts_keep_their_tags(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "facts.jsonl", {"text": "Ana leads Atlas", "tags": ["old"]})
    run("import", file, "--bank", "b", "--create", "--no-embed")
    write(tmp_path / "facts.jsonl", {"text": "Ana leads Atlas", "tags": ["new"]})

    again = run("import", file, "--bank", "b", "--no-embed")

    assert again[1].endswith(
        "; 1 were already known and keep their tags, metadata and confidence\n"
    )
    assert [one["tags"] for one in json.loads(run("list", "b", "--json")[1])] == [["old"]]


def test_links_are_written_later(run: Run, facts: str) -> None:
    run("retain", facts, "--bank", "b", "--create", "--no-embed", "--no-link")
    warned = run("doctor")[1]

    linked = run("link", "b", "--batch-size", "1")

    assert "2 facts have no links yet" in warned
    assert "Run: pgrecall link b" in warned
    assert linked[:2] == (0, 'linked 2 facts in bank "b"\n')
    assert "have no links" not in run("doctor")[1]
    assert run("link", "b")[1] == 'linked 0 facts in bank "b"\n'


def test_pending_work_is_done_in_batches(run: Run, facts: str) -> None:
    for bank in ("b", "c"):
        run("retain", facts, "--bank", bank, "--create", "--no-embed", "--no-link")

    one = run("maintain", "b", "--batch-size", "1")
    none = run("maintain", "--max-seconds", "0")
    rest = run("maintain", "--json")

    assert one[:2] == (0, 'linked 2 memories of bank "b"\n')
    assert none[:2] == (0, "nothing was pending\n")
    assert json.loads(rest[1]) == [
        {"bank_id": "c", "task": "link", "kind": "memory", "documents": 2}
    ]
    assert run("maintain", "nowhere")[0] == 1


def test_messages_are_retained(run: Run, bank: str, tmp_path: Path) -> None:
    file = write(tmp_path / "messages.jsonl", {"text": "the code is 4471", "speaker": "Ana"})

    code, out, _ = run("retain-messages", file, "--bank", bank)

    assert (code, out) == (0, 'retained 1 message in bank "b"\n')


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("{oops", "not JSON at column 2: Expecting property name enclosed in double quotes"),
        ("[1]", "not an object"),
        ('{"text": ""}', "text: it is empty"),
        ('{"text": "a", "confidence": 2}', "confidence: expected a number from 0 to 1, not 2"),
        ('{"text": "a\\u0000"}', "text contains a NUL character"),
        ('{"text": "a\\ud800"}', "text contains a lone surrogate"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_bad_line_is_named_with_file_and_line(
    run: Run, tmp_path: Path, row: str, problem: str
) -> None:
    file = write(tmp_path / "bad.jsonl", {"text": "good"}, "", row)

    code, _, err = run("retain", str(file), "--bank", "b", "--create", "--no-embed")

    assert code == 1
    assert f"error: {file}, line 3: {problem}\n" in err
    assert "hint: " in err
    assert "Traceback" not in err


def test_a_line_that_is_not_utf_8_is_named(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "latin.jsonl"
    file.write_bytes('{"text": "café"}\n'.encode("latin-1"))

    code, _, err = run("retain", str(file), "--bank", "b", "--create", "--no-embed")

    assert code == 1
    assert f"error: {file}, line 1: not UTF-8 at byte 14\n" in err


def test_a_file_that_is_not_there_is_an_error(run: Run) -> None:
    code, _, err = run("retain", "nowhere.jsonl", "--bank", "b")

    assert (code, err) == (1, "error: nowhere.jsonl: No such file or directory\n")


def test_a_bank_that_is_not_there_is_an_error_with_a_hint(run: Run) -> None:
    code, _, err = run("recall", "no", "x", "--no-embed")

    assert code == 1
    assert err == (
        'error: bank "no" does not exist\nhint: Create it with: pgrecall bank create NAME\n'
    )


def test_a_server_that_is_not_there_is_an_error_with_a_hint(run: Run) -> None:
    code, _, err = run("bank", "list", dsn="host=/nowhere dbname=x")

    assert code == 1
    assert err.startswith("error: cannot reach the server: ")
    assert "hint: Check --dsn and PGRECALL_DSN" in err


def test_the_hint_of_the_server_is_said(run: Run, bank: str, tenant: str) -> None:
    run("bank", "create", "diary")
    near = run("recall", "diarys", "x", "--no-embed")[2]
    fenced = run("recall", bank, "x", "--no-embed", dsn=tenant)[2]
    found = json.loads(run("doctor", "--json", dsn=tenant)[1])

    assert 'hint: Did you mean "diary"? Create it with: pgrecall bank create NAME' in near
    assert 'hint: Row security shows role "hint_tenant" only its own banks' in fenced
    assert {
        "status": "good",
        "about": "banks",
        "found": "row security shows this role none",
        "advice": "Connect as a role that has banks.",
    } in found


def test_stats_says_of_how_many_banks_recalls_are_logged(run: Run, bank: str, tenant: str) -> None:
    assert run("bank", "create", "diary")[0] == 0

    assert "50.00% of the driver's recalls are logged, of 2 banks, not of" in " ".join(
        run("stats", "--share", "0.5")[1].split()
    )
    assert 'logged, of bank "diary".' in run("stats", "diary", "--share", "0")[1]
    assert run("stats", "--share", "0.5", dsn=tenant) == (
        1,
        "",
        "error: nothing was set: this role sees no bank\n",
    )


def test_who_does_not_own_the_tables_is_told_who_builds_indexes(
    run: Run, database: str, tenant: str
) -> None:
    with psycopg.connect(database, autocommit=True) as admin:
        owner = admin.info.user
        memory = Recall(admin, embedder=None)
        memory.create_bank("hint_tenant")
        memory.configure_bank("hint_tenant", {"hnsw_threshold": 2})
        facts = [{"text": f"fact {n}", "embedding": [1, n]} for n in range(4)]
        memory.retain("hint_tenant", facts, model="toy")

    found = json.loads(run("doctor", "--json", dsn=tenant)[1])

    assert f'Run: pgrecall index --apply, as "{owner}", who owns the tables' in [
        one["advice"] for one in found
    ]
    assert run("index", "--apply", dsn=tenant)[::2] == (
        1,
        f'error: only the owner of the tables may build indexes\nhint: Connect as "{owner}".\n',
    )


@pytest.fixture
def tenant(database: str) -> Iterator[str]:
    """The DSN of a role that sees no bank."""
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute("select pgrecall.create_roles('hint')")
        admin.execute("select pgrecall.enable_row_security()")
        admin.execute("create role hint_tenant login in role hint_writer")
        try:
            yield make_conninfo(database, user="hint_tenant")
        finally:
            names = "hint_tenant, hint_reader, hint_writer, hint_admin, hint_searcher"
            admin.execute(f"drop owned by {names} cascade".encode())
            admin.execute(f"drop role {names}".encode())


def test_what_a_server_said_is_no_lost_connection(run: Run, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute(
            "create or replace function pgrecall.bank_statistics(bank text)"
            " returns setof pgrecall.bank_statistic language plpgsql as $$ begin"
            " raise exception using errcode = '08006', message = 'shard \"two\" does not answer',"
            " hint = 'Its banks come back with it.'; end $$"
        )

    assert run("bank", "show", "b") == (
        1,
        "",
        'error: shard "two" does not answer\nhint: Its banks come back with it.\n',
    )


def test_wrong_usage_exits_with_2(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run("recall", "b", "x", "--at", "tomorrow-ish")

    assert caught.value.code == 2
    assert "not a time: 'tomorrow-ish'" in capsys.readouterr().err


def test_a_recall_can_be_narrowed_down(run: Run, bank: str) -> None:
    def found(*options: str) -> list[str]:
        _, out, _ = run("recall", bank, "who leads?", "--no-embed", "--json", *options)
        return sorted(hit["text"][:3] for hit in json.loads(out)["hits"])

    assert found() == ["Ana", "Ben"]
    assert found("--fact-type", "opinion") == ["Ben"]
    assert found("--tag", "team") == ["Ana"]
    assert found("--filter", "occurred is null") == ["Ben"]
    assert len(found("--top-k", "1")) == 1
    pages = found("--top-k", "1") + found("--top-k", "1", "--set", "skip=1")
    assert sorted(pages) == ["Ana", "Ben"]


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        (["min_relevance=1"], []),
        (["fusion=linear", "collapse=true", "diversity=0.5"], ["Ana", "Ben"]),
        (['weights={"lexical": 2}', 'arms=["lexical"]'], ["Ana", "Ben"]),
        (["arms=key"], []),
        (["recency_half_life=30 days", "fusion=linear"], ["Ana", "Ben"]),
    ],
)
def test_any_option_of_a_recall_can_be_set(
    run: Run, bank: str, settings: list[str], found: list[str]
) -> None:
    given = [word for setting in settings for word in ("--set", setting)]

    _, out, _ = run("recall", bank, "who leads?", "--no-embed", "--json", *given)

    assert sorted(hit["text"][:3] for hit in json.loads(out)["hits"]) == found


@pytest.fixture
def family(run: Run, tmp_path: Path) -> str:
    """A bank in which a chain of relations leads from Ana to Oslo, and a cause from rain to Ben."""
    file = write(
        tmp_path / "family.jsonl",
        {
            "text": "Ana takes her orders from Ben.",
            "entities": ["Ana", "Ben"],
            "relations": [{"from": "Ana", "kind": "reports_to", "to": "Ben"}],
        },
        {
            "text": "Ben keeps a cabin by the fjord.",
            "entities": ["Ben", "Oslo"],
            "relations": [{"from": "Ben", "kind": "lives_in", "to": "Oslo"}],
        },
        {"text": "The ferry was cancelled."},
        {
            "text": "A gale blew.",
            "links": [{"kind": "causes", "to_index": 2}],
        },
    )
    assert run("retain", file, "--bank", "family", "--create", "--no-embed")[0] == 0
    return "family"


@pytest.mark.parametrize(
    ("question", "answer", "path"),
    [
        (
            "Where does the boss of Ana live?",
            "Ben keeps a cabin by the fjord.",
            "Ana → reports_to → Ben → lives_in → Oslo",
        ),
        ("Why was the ferry cancelled?", "A gale blew.", "The ferry was cancelled."),
    ],
)
def test_a_recall_tells_the_path_that_led_to_an_answer(
    run: Run, family: str, question: str, answer: str, path: str
) -> None:
    _, table, _ = run("recall", family, question, "--no-embed")
    _, explained, _ = run("recall", family, question, "--no-embed", "--explain")
    _, out, _ = run("recall", family, question, "--no-embed", "--json")

    hit = next(hit for hit in json.loads(out)["hits"] if hit["text"] == answer)
    assert path in (hit["via"].get("path"), hit["via"]["text"])
    assert all(isinstance(fact, str) for fact in hit["via"]["facts"])  # as all ids for machines
    for shown in (table, explained):
        assert f"via {path}" in " ".join(shown.split())


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_path_is_told_whatever_the_encoding_of_the_client(
    run: Run, family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", encoding)

    _, told, _ = run("recall", family, "Where does the boss of Ana live?", "--no-embed")
    assert "via Ana → reports_to → Ben" in " ".join(told.split())
    for words in (["doctor"], ["export", family, str(tmp_path / "out")], ["migrate", "--dry-run"]):
        assert run(*words)[0] == 0


def test_an_option_that_there_is_not_is_refused_by_name(run: Run, bank: str) -> None:
    code, _, err = run("recall", bank, "who leads?", "--no-embed", "--set", "diversty=1")

    assert code == 1
    assert 'error: unknown option "diversty"' in err
    assert "diversity" in err


@pytest.mark.parametrize("setting", ["skip=x", "arms=5", "depth=x", "hypothetical=5", "budget=1"])
def test_a_value_that_no_option_takes_is_an_error(run: Run, bank: str, setting: str) -> None:
    code, _, err = run("recall", bank, "who leads?", "--no-embed", "--set", setting)

    assert code == 1
    assert setting.partition("=")[0] in err


def test_what_is_no_option_cannot_be_set(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["recall", "b", "who?", "--set", "query=x"])

    assert "not an option of a recall: query" in capsys.readouterr().err


def test_help_lists_the_options_that_can_be_set(
    connection: psycopg.Connection[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = connection.execute("select name from pgrecall.recall_options()").fetchall()

    assert main(["recall", "--help"]) == 0

    words = set(re.findall(r"\w+", capsys.readouterr().out))
    assert {name for (name,) in rows} <= words


def test_a_recall_is_explained(run: Run, bank: str) -> None:
    code, out, _ = run("recall", bank, "Atlas", "--no-embed", "--explain")

    assert code == 0
    assert re.search(r"lexical #1 \+0\.\d{4}", out)
    assert re.search(r"temporal +skipped +0 +[\d.]+ +no time window given", out)


def test_a_recall_can_be_asked_as_of_another_time(run: Run, bank: str) -> None:
    _, out, _ = run("recall", bank, "yesterday", "--no-embed", "--at", "2026-03-06T10:00Z")

    assert "yesterday = 2026-03-05" in out


def test_ids_are_text_in_json(run: Run, bank: str, database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("select setval('pgrecall.id_seq', %s)", [2**60])
        (row,) = Recall(connection, embedder=None).retain(bank, ["Cem leads Cygnus"])

    _, out, _ = run("recall", bank, "Cygnus", "--no-embed", "--json", "--top-k", "1")

    assert json.loads(out)["hits"][0]["memory_id"] == str(row.memory_id)


def test_a_memory_is_forgotten(run: Run, bank: str) -> None:
    _, out, _ = run("recall", bank, "Atlas", "--no-embed", "--json", "--top-k", "1")

    code, out, _ = run("forget", bank, json.loads(out)["hits"][0]["memory_id"], "12345")

    assert (code, out) == (0, "forgot 1 of 2 memories\n")


def test_a_memory_is_superseded_with_its_copies_and_restored(run: Run, database: str) -> None:
    with psycopg.connect(database) as connection:
        memory = Recall(connection, embedder=None)
        memory.create_bank("b")
        sources = [{"text": "Atlas is late", "source_id": source} for source in "abc"]
        old, _, new = (str(row.memory_id) for row in memory.retain("b", sources))
    arguments = ("b", old, "--by", new, "--copies", "--at", "2999-01-01")

    listed = run("supersede", *arguments, "--dry-run", "--json")[1]
    done = run("supersede", *arguments, "--json")[1]
    restored = run("unsupersede", "b", old)

    assert listed == done
    ended = json.loads(done)
    assert [(row["memory_id"], row["superseded_by"]) for row in ended] == [(old, new)]
    assert restored[0] == 0
    assert re.search(rf"^ *{old} +Atlas is late +2\d", restored[1], re.MULTILINE)
    assert run("unsupersede", "b", old)[0] == 1


def test_near_duplicates_are_listed_merged_and_parted(run: Run, database: str) -> None:
    with psycopg.connect(database) as connection:
        memory = Recall(connection, embedder=None)
        memory.create_bank("b")
        memory.retain("b", [{"text": "Atlas is late", "source_id": n} for n in ("x", "y")])

    listed = run("consolidate", "b")[1]
    merged = json.loads(run("consolidate", "b", "--apply", "--json")[1])

    assert re.search(r"Atlas is late +\d+ +Atlas is late +1\.00 +2 *$", listed, re.MULTILINE)
    assert "--apply" in listed
    assert merged[0]["proof_count"] == 2
    assert run("consolidate", "b")[1] == "there are no near duplicates\n"
    assert run("consolidate", "b", "--undo")[1].count("Atlas is late") == 2
    assert run("consolidate", "b", "--undo")[1] == "there is nothing to undo\n"


def test_facts_of_a_file_replace_one_another_when_asked(
    run: Run, tmp_path: Path, database: str
) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_text('{"text": "a", "fact_key": "k"}\n{"text": "b", "fact_key": "k"}\n')

    run("retain", str(file), "--bank", "b", "--create", "--no-embed", "--replace", "key")
    _, out, _ = run("recall", "b", "k", "--no-embed", "--json")

    assert [hit["text"] for hit in json.loads(out)["hits"]] == ["b"]


def test_a_contradiction_is_shown(run: Run, tmp_path: Path, database: str) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_text('{"text": "a", "fact_key": "k"}\n{"text": "b", "fact_key": "k"}\n')
    run("retain", str(file), "--bank", "b", "--create", "--no-embed")

    _, out, _ = run("recall", "b", "k", "--no-embed")
    hits = json.loads(run("recall", "b", "k", "--no-embed", "--json")[1])["hits"]

    assert out.count("contradicted by") == 2
    assert hits[0]["conflicts_with"] == [hits[1]["memory_id"]]


def test_a_state_names_the_latest_by_its_id(run: Run, tmp_path: Path, database: str) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_text(
        '{"text": "k is 1", "embedding": [1, 0], "occurred": "2025-01-01"}\n'
        '{"text": "k is 2", "embedding": [1, 0], "occurred": "2026-01-01"}\n'
    )
    run("retain", str(file), "--bank", "b", "--create", "--no-embed")

    hits = json.loads(run("recall", "b", "k", "--no-embed", "--json")[1])["hits"]

    assert [hit["text"] for hit in hits] == ["k is 2", "k is 1"]
    assert [hit["variant_of"] for hit in hits] == [None, hits[0]["memory_id"]]


def test_banks_are_created_listed_shown_and_dropped(run: Run) -> None:
    assert run("bank", "list")[1].startswith("There is no bank yet.")
    assert run("bank", "create", "b", "--fact-type", "rumour")[1] == 'created bank "b"\n'
    assert re.search(r"^b +0 +0 +0 +none yet", run("bank", "list")[1], re.MULTILINE)
    assert "none yet" in run("bank", "show", "b")[1]
    shown = json.loads(run("bank", "show", "b", "--json")[1])
    assert (shown["bank"]["bank_id"], shown["statistics"]) == ("b", [])
    assert run("bank", "create", "b")[0] == 1
    assert run("bank", "drop", "b", "--yes")[1] == 'dropped bank "b" with 0 memories\n'


def test_a_bank_is_not_dropped_without_a_yes(
    run: Run, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())

    code, _, err = run("bank", "drop", bank)

    assert (code, err) == (
        1,
        "error: dropping a bank erases everything in it\nhint: Add --yes if you mean it.\n",
    )


def test_migrate_says_what_it_did(run: Run, empty_database: str) -> None:
    assert run("migrate", dsn=empty_database)[1].startswith("installed pgrecall ")
    assert run("migrate", dsn=empty_database)[1].endswith(" is up to date\n")
    assert json.loads(run("migrate", "--json", dsn=empty_database)[1])["after"]


def test_doctor_finds_nothing_bad_in_a_good_place(run: Run, bank: str) -> None:
    code, out, _ = run("doctor")

    assert code == 0
    assert re.search(r"^ok   server: PostgreSQL 1\d", out, re.MULTILINE)
    assert re.search(r"^ok   pgvector: ", out, re.MULTILINE)
    assert 'bank "b": 2 memories, 0 messages, 0 not counted' in out


ODD = "\x1b]0;title\x07\x1b[2J"
"""Names a terminal and clears it."""


def test_no_name_or_value_controls_the_terminal(run: Run, database: str, tmp_path: Path) -> None:
    bank = f"[/x] {ODD}"
    with Recall.connect(database, embedder=None) as memory:
        memory.create_bank(bank)
        [row] = memory.retain(bank, [{"text": "Ana leads.", "entities": [f"Ana{ODD}"]}])
    wrong = write(tmp_path / "wrong.jsonl", {"text": "Ana", f"{ODD}": 1})

    said = [
        run(*words)
        for words in (
            ("doctor",),
            ("recall", ODD, "x", "--no-embed"),
            ("update", bank, str(row.memory_id), "text=Nobody leads.", "--no-embed"),
            ("retain", wrong, "--bank", bank, "--no-embed"),
            ("maintain", bank),
            ("bank", "list"),
        )
    ]

    assert [code for code, *_ in said] == [0, 1, 0, 1, 0, 0]
    assert 'bank "[/x] ' in said[0][1]
    assert "no longer said: Ana" in said[2][1]
    assert not {"\x1b", "\x07"} & {*"".join(out + err for _, out, err in said)}


def test_token_vectors_are_printed_as_json(run: Run, bank: str) -> None:
    run("embed", bank)

    code, out, _ = run("recall", bank, "Atlas", "--no-embed", "--set", "with_tokens=true", "--json")

    assert (code, len(json.loads(out)["hits"][0]["tokens"]) > 10) == (0, True)


def test_what_is_no_dsn_is_said_with_how_one_is_written(run: Run) -> None:
    code, _, said = run("bank", "list", dsn="memory")

    assert code == 1
    assert 'missing "=" after "memory"' in said
    assert "hint: Write a DSN: postgresql://user@host/database" in said


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresqll://u:{}@127.0.0.1/db",
        "postgresql://u:{}@[::1/db",
        "postgresql://u:{}%zz@127.0.0.1/db",
        'postgresql://u:{}"x@[::1/db',
        "host=h password=a {} user=u",
        "host=h password='{}",
    ],
)
def test_the_error_for_a_malformed_dsn_does_not_tell_its_password(run: Run, dsn: str) -> None:
    password = uuid.uuid4().hex

    code, _, said = run("bank", "list", dsn=dsn.format(password))
    with pytest.raises(InvalidArgument) as caught:
        Recall.connect(dsn.format(password))

    told = "".join(traceback.format_exception(caught.value))
    assert (code, "hint: Write a DSN: postgresql://" in said) == (1, True)
    assert password not in said + told


def test_doctor_leaves_a_connection_the_settings_that_it_has(dsn: str) -> None:
    strict = make_conninfo(dsn, options="-c quote_all_identifiers=on")
    with psycopg.connect(strict, autocommit=True) as connection:
        found = doctor.examine_connected(connection)

        assert "bad" not in {finding.status for finding in found}
        assert connection.execute("show quote_all_identifiers").fetchone() == ("on",)


def test_doctor_names_the_model_that_comes_with_the_driver(run: Run, database: str) -> None:
    def advice() -> set[str]:
        return {x["advice"] for x in json.loads(run("doctor", "--json")[1]) if x["advice"]}

    with Recall.connect(database) as recall:
        recall.create_bank(
            "old", embedding_model=DEFAULT_EMBEDDER.earlier.model, embedding_dimensions=384
        )
    expected = f"Run: pgrecall reembed old --model {DEFAULT_EMBEDDER.model}"
    assert expected in advice()

    run("reembed", "old", "--model", DEFAULT_EMBEDDER.model)
    assert expected not in advice()


@pytest.mark.skipif(os.name == "nt", reason="commands are quoted for a POSIX shell")
def test_what_doctor_says_can_be_run_whatever_the_name_of_a_bank(run: Run, database: str) -> None:
    name = "Ben's notes"
    with Recall.connect(database, embedder=None) as recall:
        recall.create_bank(
            name, embedding_model=DEFAULT_EMBEDDER.earlier.model, embedding_dimensions=384
        )
        recall.retain(name, ["Ben leads Atlas", "Ana leads Borealis"], link="deferred")

    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("delete from pgrecall_internal.statistics")
        rows = json.loads(run("doctor", "--json")[1])
        advice = [row["advice"] for row in rows if name in row["about"] and row["advice"]]
        for statement in (text[5:] for text in advice if text.startswith("Run: select ")):
            connection.execute(statement)
    commands = [shlex.split(text[5:].partition(";")[0]) for text in advice if "pgrecall " in text]

    assert {tuple(command[1:3]) for command in commands} == {
        (action, name) for action in ("embed", "link", "reembed")
    }
    assert all(run(*command[1:])[0] == 0 for command in commands)
    last = [row for row in json.loads(run("doctor", "--json")[1]) if name in row["about"]]
    assert {row["status"] for row in last} == {"good"}


def test_doctor_names_a_text_search_configuration_that_is_gone(run: Run, database: str) -> None:
    with Recall.connect(database, embedder=None) as recall:
        recall.create_bank("gone")
        recall.retain("gone", ["Ana sails."])
    with psycopg.connect(database) as connection:
        connection.execute("update pgrecall.bank set text_search_config = 'klingon'")

    findings = json.loads(run("doctor", "--json")[1])

    (found,) = [one for one in findings if "klingon" in one["found"]]
    assert (found["status"], found["about"]) == ("bad", 'bank "gone"')
    with psycopg.connect(database) as connection:
        connection.execute(found["advice"].partition(": ")[2].encode())
    assert "klingon" not in run("doctor", "--json")[1]


def test_doctor_notices_words_that_are_stemmed_in_another_language(run: Run, database: str) -> None:
    def advice() -> str:
        rows = json.loads(run("doctor", "--json")[1])
        return "".join(row["advice"] for row in rows if "stop words" in row["found"])

    german = "Der Bote war mit der Post in das Dorf gekommen, und sie haben ihn dort nicht gesehen."
    english = "The boy had come to the village with the mail, and they have not seen him there."
    with Recall.connect(database, embedder=None) as recall:
        for bank, text, config in [
            ("de", german, "english"), ("en", english, "english"), ("plain", german, "simple"),
        ]:  # fmt: skip
            recall.create_bank(bank, text_search_config=config)
            recall.retain(bank, [f"{text} Nr. {n}" for n in range(10)])

    statement = """select pgrecall.configure_bank('de', '{"text_search_config": "german"}');"""
    assert advice() == f"If its texts are in that language, run: {statement}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(statement)
    assert advice() == ""


def test_doctor_says_what_to_do_in_an_empty_database(run: Run, bare_database: str) -> None:
    code, out, _ = run("doctor", dsn=bare_database)

    assert code == 1
    assert "bad  pgvector: not installed\n     Run: create extension vector;\n" in out
    assert "Run: pgrecall migrate\n" in out


def test_doctor_warns_of_an_old_pgvector(
    run: Run, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old: Call[Any, Any] = Call("select '0.8.1'", {}, scalar_row, lambda rows: rows[0])
    monkeypatch.setattr(queries, "vector_version", lambda: old)

    findings = json.loads(run("doctor", "--json")[1])

    (vector,) = [finding for finding in findings if finding["about"] == "pgvector"]
    assert (vector["status"], vector["found"]) == ("warning", "0.8.1, which has known faults")
    assert vector["advice"].endswith("alter extension vector update;")


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ("delete from pgrecall.embedding", "2 of 2 memories have no embedding"),
        ("delete from pgrecall.memory", "2 of pgrecall.embedding belong to no row of "),
        ("delete from pgrecall.entity", "1 of pgrecall.mention belong to no row of "),
        ("delete from pgrecall.fact_type", "2 of pgrecall.memory belong to no row of "),
        ("delete from pgrecall.bank", "1 of pgrecall.entity belong to no row of pgrecall.bank"),
        (
            "delete from pgrecall_internal.statistics",
            "there are no statistics for 2 memory texts",
        ),
        (
            "drop index pgrecall.memory_bank_id_source_id_idx",
            "missing: memory_bank_id_source_id_idx",
        ),
        (
            "alter table pgrecall.mention drop constraint mention_pkey",
            "missing: mention_pkey",
        ),
        (
            "alter table pgrecall.memory drop constraint memory_bank_id_fact_type_fkey",
            "missing: memory_bank_id_fact_type_fkey",
        ),
        (
            "drop function pgrecall_internal._searched_recall",
            "missing: pgrecall_internal._searched_recall",
        ),
        ("select setval('pgrecall.id_seq', 1)", "pgrecall.id_seq is at 1, below the greatest id"),
        ("drop view pgrecall.fact", "missing: pgrecall.fact"),
        ("drop table pgrecall.recall_log", "missing: pgrecall.recall_log"),
        (
            "drop table pgrecall.attached_change cascade",
            "missing: pgrecall.attached_change",
        ),
        (
            "drop function pgrecall.bank_statistics",
            "missing: pgrecall.bank_statistics",
        ),
        (
            "do $$ begin for n in 0 .. 31 loop"
            " execute format('drop table pgrecall_internal.embedding_%s', n); end loop; end $$",
            "without partitions: pgrecall.embedding",
        ),
        (
            "drop table pgrecall_internal.embedding_7",
            "not among the partitions of pgrecall.embedding: pgrecall_internal.embedding_7",
        ),
        (
            "alter table pgrecall.embedding detach partition pgrecall_internal.embedding_7",
            "not among the partitions of pgrecall.embedding: pgrecall_internal.embedding_7",
        ),
        (
            "alter table pgrecall.mention disable trigger all",
            "disabled, so that no foreign key is checked, on: pgrecall.mention",
        ),
        ("alter extension vector set schema pgrecall", "they look in pg_catalog, public, pg_temp"),
    ],
)
def test_doctor_notices_what_a_restore_left_out(
    run: Run, database: str, damage: str, found: str
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        recall = Recall(connection, embedder=None)
        recall.create_bank("b")
        facts = [
            {"text": "Ana leads Atlas", "embedding": [1, 0], "entities": ["Atlas"]},
            {"text": "Ben sails", "embedding": [0, 1]},
        ]
        recall.retain("b", facts, model="toy")
        connection.execute("set session_replication_role = replica")
        connection.execute(damage.encode())

    code, out, _ = run("doctor", "--json", dsn=database)

    assert any(found in finding["found"] for finding in json.loads(out)), out
    assert code == 1


@pytest.mark.parametrize("setting", ["statement_timeout", "transaction_timeout"])
def test_a_statement_timeout_says_how_to_get_more_time(
    run: Run, database: str, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    # Not until the end of the test, when the database is dropped.
    with psycopg.connect(database) as connection, monkeypatch.context() as limited:
        if setting == "transaction_timeout" and connection.info.server_version < 170000:
            pytest.skip("PostgreSQL 16 has no transaction_timeout")
        connection.execute("lock table pgrecall.bank")
        limited.setenv("PGOPTIONS", f"-c {setting}=500")
        code, _, err = run("bank", "list")

    assert code == 1
    assert f"due to {setting.replace('_', ' ')}" in err
    assert f"PGOPTIONS='-c {setting}=10min'" in err


def found_by_doctor(run: Run, database: str) -> dict[str, str]:
    """What is bad, and the advice."""
    rows = json.loads(run("doctor", "--json", dsn=database)[1])
    return {row["found"]: row["advice"] for row in rows if row["status"] == "bad"}


@pytest.mark.parametrize(
    "damage",
    [
        "drop index pgrecall.memory_bank_id_source_id_idx",
        "drop table pgrecall_internal.embedding_7",
        "alter table pgrecall.embedding detach partition pgrecall_internal.embedding_7",
        "alter table pgrecall.mention disable trigger all",
        "update pg_index set indisvalid = false"
        " where indexrelid = 'pgrecall.memory_bank_id_source_id_idx'::regclass",
        "update pg_index set indisvalid = false"
        " where indexrelid = 'pgrecall.embedding_bank_id_text_idx'::regclass",
    ],
)
def test_what_doctor_says_mends_what_is_gone(run: Run, database: str, damage: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(damage.encode())
        [advice] = found_by_doctor(run, database).values()
        for statement in advice.removeprefix("Run: ").split("; "):
            connection.execute(statement.encode())

    assert found_by_doctor(run, database) == {}


@pytest.mark.parametrize(
    ("damage", "column"),
    [
        ("drop extension vector cascade", "pgrecall.embedding.embedding"),
        (
            "alter table pgrecall.memory drop column written_by cascade",
            "pgrecall.memory.written_by",
        ),
    ],
)
def test_a_column_that_is_gone_is_restored_from_a_backup(
    run: Run, bank: str, database: str, damage: str, column: str
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(damage.encode())

    bad = found_by_doctor(run, database)
    code, _, err = run("migrate")

    assert any(
        column in found and advice.startswith("Restore a backup") for found, advice in bad.items()
    )
    assert (code == 1 and "Restore a backup" in err) == ("vector" in damage)


def test_doctor_says_nothing_else_of_a_table_that_is_gone(run: Run, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("drop table pgrecall.attached_change")

    assert list(found_by_doctor(run, database)) == ["missing: pgrecall.attached_change"]


def test_doctor_notices_what_a_rebuild_of_an_index_left(run: Run, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        Recall(connection, embedder=None).create_bank("b")
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute(
                "create unique index concurrently one on pgrecall.fact_type (bank_id)"
            )
        found = found_by_doctor(run, database)

    assert found == {
        "left invalid by a build that was interrupted: pgrecall.one": (
            "Run: drop index concurrently pgrecall.one;"
        )
    }


def test_doctor_does_not_call_a_build_of_another_role_interrupted(run: Run, database: str) -> None:
    with (
        psycopg.connect(database, autocommit=True) as admin,
        psycopg.connect(database) as reader,
        psycopg.connect(database, autocommit=True) as builder,
        ThreadPoolExecutor(1) as pool,
    ):
        admin.execute("select pgrecall.create_roles('doc')")
        admin.execute("create role doc_login login in role doc_reader")
        try:
            reader.execute("lock table pgrecall.fact_type in row exclusive mode")
            building = pool.submit(
                builder.execute, "create index concurrently one on pgrecall.fact_type (bank_id)"
            )
            waiting(admin, builder.info.backend_pid)
            found = found_by_doctor(run, make_conninfo(database, user="doc_login"))
            reader.rollback()
            building.result(30)
        finally:
            reader.rollback()
            roles = "doc_login, doc_reader, doc_writer, doc_admin, doc_searcher"
            admin.execute(f"drop owned by {roles}".encode())
            admin.execute(f"drop role {roles}".encode())

    assert found == {}


def test_doctor_notices_an_attached_table_that_no_change_leaves(run: Run, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select pgrecall.create_bank('b')")
        connection.execute("create table note (id int primary key, body text)")
        connection.execute("select pgrecall.attach_table('b', 'note', 'id', 'body')")
        connection.execute("alter table note disable trigger user")

        [(found, advice)] = found_by_doctor(run, database).items()
        connection.execute("select pgrecall.create_roles('doc')")
        connection.execute("create role doc_login login in role doc_reader")
        try:
            as_reader = found_by_doctor(run, make_conninfo(database, user="doc_login"))
        finally:
            roles = "doc_login, doc_reader, doc_writer, doc_admin, doc_searcher"
            connection.execute(f"drop owned by {roles}".encode())
            connection.execute(f"drop role {roles}".encode())

    assert found == "the triggers of table public.note are gone or disabled"
    assert "Attach the table again" in advice
    assert as_reader == {}


def test_a_role_without_rights_is_told_who_grants_them(run: Run, database: str) -> None:
    commands = (["doctor"], ["bank", "list"], ["recall", "b", "Atlas", "--no-embed"])
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create role cli_stranger login")
        try:
            stranger = make_conninfo(database, user="cli_stranger")
            said = {run(*words, dsn=stranger)[::2] for words in commands}
        finally:
            connection.execute("drop role cli_stranger")

    [(code, error)] = said
    assert code == 1
    assert error.startswith("error: permission denied for schema pgrecall\nhint: Have its owner")
    assert "grant pgrecall_reader to you;" in error


def test_doctor_says_whose_the_function_of_the_searcher_is(run: Run, database: str) -> None:
    def found() -> list[tuple[str, str]]:
        return [
            (what, how) for what, how in found_by_doctor(run, database).items() if "oles" in how
        ]

    roles = "stray_reader, stray_writer, stray_admin, stray_searcher"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select pgrecall.create_roles('stray')")
        connection.execute("reassign owned by stray_searcher to current_user")
        [(stray, advice)] = found()
        connection.execute(f"drop owned by {roles}".encode())
        connection.execute(f"drop role {roles}".encode())
        [(_, without_roles)] = found()

    assert "as after a restore without the roles" in stray
    assert advice == "Run: select pgrecall.create_roles('stray');"
    assert without_roles == (
        "Run: select pgrecall.create_roles(); with the prefix that was used, if any."
    )


def test_doctor_calls_grants_without_row_security_bad(run: Run, database: str) -> None:
    def found() -> list[tuple[str, str]]:
        return [
            (finding["status"], finding["found"])
            for finding in json.loads(run("doctor", "--json", dsn=database)[1])
            if finding["about"] == "row security"
        ]

    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select pgrecall.create_bank('first')")
        connection.execute("grant select on pgrecall.memory to pg_monitor")
        alone = found()
        connection.execute("select pgrecall.create_bank('second')")
        shared = found()
        connection.execute("select pgrecall.enable_row_security()")
        fenced = found()
        connection.execute("alter table pgrecall.memory disable row level security")
        torn = found()

    assert alone == []
    assert fenced == [("good", "on")]
    assert (
        shared
        == torn
        == [
            (
                "bad",
                "missing from 1 tables (pgrecall.memory), so that these roles reach every bank:"
                " pg_monitor",
            )
        ]
    )


def test_doctor_names_who_may_create_functions_beside_pgvector(run: Run, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("grant create on schema public to pg_monitor")
        named = json.loads(run("doctor", "--json", dsn=database)[1])
        connection.execute("grant create on schema public to public")
        everybody = json.loads(run("doctor", "--json", dsn=database)[1])

    found = 'its schema "public" lets others create functions there, which pgrecall could call: '
    assert ("warning", found + "pg_monitor") in {(x["status"], x["found"]) for x in named}
    assert ("bad", found + "pg_monitor, public") in {(x["status"], x["found"]) for x in everybody}


def test_doctor_names_members_of_the_owner_of_pgvectors_schema(run: Run, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute("create role pgrecall_test_owner login")
        try:
            connection.execute(f"alter database {name} owner to pgrecall_test_owner".encode())
            findings = json.loads(run("doctor", "--json", dsn=database)[1])
        finally:
            connection.execute(f"alter database {name} owner to current_user".encode())
            connection.execute("drop role pgrecall_test_owner")
        user = connection.info.user

    (vector,) = [x for x in findings if 'its schema "public" lets' in x["found"]]
    assert vector["found"].endswith(" call: pgrecall_test_owner")
    assert vector["advice"] == f"Run: alter schema public owner to {user};"


def test_doctor_notices_connections_that_run_out_and_sessions_that_are_stuck(
    run: Run, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> set[str]:
        return {x["found"] for x in json.loads(run("doctor", "--json", dsn=database)[1])}

    monkeypatch.setattr(doctor, "_STUCK_SECONDS", 0.0)
    with psycopg.connect(database) as connection, psycopg.connect(database) as other:
        pids = [one.info.backend_pid for one in (connection, other)]
        connection.execute("create table held ()")
        quiet = found()
        waiter = threading.Thread(target=other.execute, args=[b"create table held ()"])
        waiter.start()
        while f"waiting for a lock for 0 minutes or longer: {pids[1]}" not in found():
            assert waiter.is_alive()
        connection.rollback()
        waiter.join()

    assert f"idle in a transaction for 0 minutes or longer: {pids[0]}" in quiet
    assert not any(re.search("are used|waiting", text) for text in quiet)
    monkeypatch.setattr(doctor, "_CROWDED", 0.0)
    assert any(text.endswith(" are used") for text in found())


def test_doctor_calls_a_server_that_is_too_old_bad() -> None:
    class Info:
        server_version = 150012

    class Old:
        info = Info()

    finding = doctor._server(cast("Any", Old()))

    assert (finding.status, finding.advice) == ("bad", "Use PostgreSQL 16 or newer.")


def test_doctor_says_when_the_reranker_cannot_be_loaded(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGRECALL_RERANKER", "/nowhere")

    code, out, _ = run("doctor")

    assert code == 1
    assert 'bad  reranker: cannot load the reranker "/nowhere": ' in out


def test_doctor_names_the_reranker_that_comes_with_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGRECALL_RERANKER")

    _, out, _ = run("doctor")

    assert "ok   reranker: late interaction, or else a cross-encoder of MiniLM, packaged\n" in out


def test_doctor_warns_where_no_packaged_reranker_can_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGRECALL_RERANKER")
    monkeypatch.setattr(rerankers, "DEFAULT_RERANKER", OnnxReranker())
    monkeypatch.setitem(sys.modules, "onnxruntime", None)

    code, out, _ = run("doctor")

    assert code == 0
    assert "warn reranker: cannot rerank: package onnxruntime is missing\n" in out


def test_doctor_warns_where_the_packaged_embedder_cannot_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "ok   embedder: pgrecall-small-2, packaged\n" in run("doctor")[1]
    monkeypatch.setattr(doctor, "DEFAULT_EMBEDDER", PackagedEmbedder())
    monkeypatch.setitem(sys.modules, "tokenizers", None)

    code, out, _ = run("doctor")

    assert code == 0
    assert "warn embedder: cannot embed texts: package tokenizers is missing\n" in out
    assert "Run: pip install 'pgrecall[embed]'" in out


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        (["console"], "uvicorn", "console"),
        (["console"], "starlette.applications", "console"),
        (["mcp", "--bank", "b"], "mcp.types", "mcp"),
    ],
)
def test_a_package_that_a_command_lacks_is_named(
    database: str, words: list[str], package: str, extra: str
) -> None:
    program = (
        f"import sys; sys.modules[{package!r}] = None; from pgrecall.command import main;"
        f" sys.exit(main({[*words, '--dsn', database]}))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    hint = f"hint: Run: pip install 'pgrecall[{extra}]'\n"
    assert (done.returncode, done.stderr) == (1, f"error: package {package} is missing\n{hint}")


def test_facts_that_cannot_be_embedded_are_stored_and_counted(
    run: Run, facts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "DEFAULT_EMBEDDER", PackagedEmbedder())
    monkeypatch.setitem(sys.modules, "tokenizers", None)

    code, out, _ = run("retain", facts, "--bank", "b", "--create")
    asked = run("recall", "b", "who leads Atlas?")[1]

    assert code == 0
    assert "2 have no embedding, since the embedder failed" in " ".join(out.split())
    assert "Ana leads Atlas" in asked
    assert "nothing was searched by embedding" in asked


def test_the_command_ends_quietly_when_its_reader_does(database: str) -> None:
    command = f'"{sys.executable}" -m pgrecall bank list --dsn "{database}" | true'

    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)

    assert done.stderr == ""


def test_stored_text_cannot_drive_the_terminal(run: Run, bank: str, tmp_path: Path) -> None:
    fact = {"text": "Zoe \u001b[31m[red]leads[/red]\u0007 Zenith", "context": "[bold]"}
    run("retain", write(tmp_path / "odd.jsonl", fact), "--bank", bank, "--no-embed")

    _, out, _ = run("recall", bank, "Zenith", "--no-embed", "--top-k", "1")

    assert "\x1b" not in out
    assert "Zoe [31m[red]leads[/red] Zenith" in out


def test_no_line_is_wider_than_100_columns(run: Run, bank: str, tmp_path: Path) -> None:
    fact = {"text": "Zenith " + "long " * 2000}
    run("retain", write(tmp_path / "long.jsonl", fact), "--bank", bank, "--no-embed")

    _, out, _ = run("recall", bank, "Zenith", "--no-embed", "--explain")

    assert max(len(line) for line in out.splitlines()) <= render.WIDTH
    assert "…" in out


def test_arms_are_named_in_the_order_of_their_say() -> None:
    from pgrecall import ArmHit

    names = ("rank", "memory_id", "kind", "fact_type", "text", "context", "fact_key", "source_id")
    rest = ("tags", "metadata", "occurred", "mentioned_at", "confidence", "score")
    columns: dict[str, Any] = dict.fromkeys((*names, *rest))
    arms = {"graph": ArmHit(1, 9.0, 0.1), "key": ArmHit(2, 1.0, 0.3)}
    hit = Hit(**columns, arms=arms, fused_rank=1, rerank_score=None, final_score=0.4)

    assert render.found_by(hit) == "key, graph"


def test_the_demo_answers_nine_questions_of_ten_and_says_what_to_try(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PGRECALL_RERANKER")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    code, out, err = run("demo")

    assert (code, err) == (0, "")
    *answered, unanswered = re.split(r"^\d+\. ", out.partition("Each arm alone")[0], flags=re.M)[1:]
    assert len(answered) == 9
    for told in answered:  # in the first four
        assert re.search(r"✓ [1-4] ", told)
        assert re.search(r"\d+% sure; dates [\d.]+, embedding", told)
    assert re.search(r"I do not know: the confidence is \d+%, below 22%\.", unanswered)
    assert "via On 1 February 2026 we changed the pricing of Lantern" in answered[2]
    assert "via Rui Tavora → reports_to → Graça Monteverde → lives_in → Ilha do Pardal" in (
        " ".join(answered[3].split())
    )
    assert "✓ 1 Jun-ho moved from Utrecht to Leeuwarden" in answered[8]
    (failed,) = re.findall(r"^failed at +(.*)$", out, re.MULTILINE)
    *alone, together = (int(count) for count in failed.split())
    assert len(alone) == len(ARMS)
    assert min(alone) >= 1
    assert together < min(alone)
    assert "retain FILE.jsonl --bank mine --create" in out
    assert 'recall mine "Who leads Atlas?"' in out
    assert SHOWN == 3
    (page,) = tmp_path.glob("pgrecall-demo-*.html")
    assert page.as_uri() in out
    assert "Rui Tavora → reports_to → Graça Monteverde" in page.read_text(encoding="utf-8")


def test_the_demo_can_be_run_again(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shorten_demo(monkeypatch)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert run("demo", "--bank", "d")[0] == 0
    assert run("demo", "--bank", "d")[0] == 0


def test_the_demo_leaves_a_bank_of_the_users_alone(run: Run, bank: str) -> None:
    code, _, err = run("demo", "--bank", bank)

    assert code == 1
    assert err == (
        'error: bank "b" exists and is not the demo\'s\n'
        "hint: Give the demo's bank another name: pgrecall demo --bank NAME\n"
    )


def test_the_tables_show_the_ids_that_other_commands_take(run: Run, bank: str) -> None:
    def ids(*arguments: str) -> list[str]:
        return re.findall(r"^\s*(?:\d\s+)?(\d+) +A", run(*arguments)[1], re.MULTILINE)

    [listed] = ids("list", bank, "--tag", "team")
    [found] = ids("recall", bank, "who leads Atlas?", "--no-embed", "--top-k", "1")
    code, out, _ = run("update", bank, listed, "text=Ana left Atlas", "tags=[]", "--no-embed")
    [former, present] = ids("history", bank, listed)

    assert found == listed == former
    assert code == 0
    assert f"update, by {present}" in " ".join(out.split())
    assert "Ana left Atlas" in run("get", bank, present)[1]
    assert run("forget", bank, former, present)[1] == "forgot 2 of 2 memories\n"
    assert run("get", bank, present)[0] == 1


def test_an_update_says_what_the_new_text_no_longer_names(
    run: Run, bank: str, database: str
) -> None:
    with psycopg.connect(database) as connection:
        (row,) = connection.execute(
            "select memory_id from pgrecall.retain(%s, %s)",
            [bank, '[{"text": "Maya leads Atlas.", "entities": ["Maya", "Atlas"]}]'],
        ).fetchall()

    _, out, _ = run("update", bank, str(row[0]), "text=Ines leads Atlas.")

    assert "no longer said: Maya" in out


def test_memories_are_forgotten_by_what_they_are(run: Run, bank: str) -> None:
    where = ("--filter", "fact_type = 'opinion'")

    assert run("forget", bank, *where, "--dry-run")[1] == "would forget 1 memory\n"
    assert run("forget", bank, *where)[1] == "forgot 1 memory\n"
    assert run("forget", bank, *where)[1] == "forgot 0 memories\n"
    assert "no condition says what to forget" in run("forget", bank)[2]
    assert "memory_ids alone, not with filter" in run("forget", bank, "1", *where)[2]
    listed = json.loads(run("list", bank, "--since", "2026-03-01", "--json")[1])
    assert [row["text"] for row in listed] == ["Ana leads Atlas"]
    assert isinstance(listed[0]["memory_id"], str)


def test_messages_are_forgotten_by_session_and_time(run: Run, bank: str, tmp_path: Path) -> None:
    said = [
        {"session": f"s{n}", "text": f"Hour {n}", "sent_at": f"2026-03-05T{n:02}:00Z"}
        for n in range(4)
    ]
    run("retain-messages", write(tmp_path / "messages.jsonl", *said), "--bank", bank)
    early = ("--until", "2026-03-05T02:00Z")

    assert run("forget-messages", bank, *early, "--dry-run")[1] == "would forget 2 messages\n"
    assert run("forget-messages", bank, *early)[1] == "forgot 2 messages\n"
    assert run("forget-messages", bank, "--session", "s3")[1] == "forgot 1 message\n"
    assert run("forget-messages", bank, "--since", "2026-03-05")[1] == "forgot 1 message\n"
    assert "no condition says what to forget" in run("forget-messages", bank)[2]


def test_what_was_retained_without_an_embedding_gets_one(
    run: Run, bank: str, database: str
) -> None:
    first = run("embed", bank)
    with psycopg.connect(database) as connection:
        connection.execute("""select pgrecall.retain('b', '["", {"text": "x"}]'::jsonb - 0)""")

    assert first[:2] == (0, 'embedded 2 facts in bank "b"\n')
    assert run("embed", bank)[1] == 'embedded 1 facts in bank "b"\n'
    assert run("embed", bank, "--again")[1] == 'embedded 3 facts in bank "b"\n'
    assert "semantic" in run("recall", bank, "who is in charge of Atlas?")[1]


def test_watching_goes_on_until_it_is_stopped(
    run: Run, bank: str, monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            raise KeyboardInterrupt
        with psycopg.connect(database) as connection:
            fact = json.dumps([{"text": f"boat {len(naps)}"}])
            connection.execute("select pgrecall.retain('b', %s)", [fact])

    monkeypatch.setattr("time.sleep", sleep)

    assert run("embed", bank, "--watch", "--interval", "0.5")[1] == (
        'embedded 4 facts in bank "b"\n'
    )
    assert naps == [0.5] * 3


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
@pytest.mark.parametrize("command", ["retain", "import"])
def test_what_is_piped_in_is_retained(database: str, name: str, command: str) -> None:
    run = [sys.executable, "-m", "pgrecall", command, name, "--bank", "b", "--create"]
    facts = '{"text": "Ana leads Atlas"}\n\n{"text": "Bo left"}\n'

    def piped(given: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*run, "--no-embed", "--dsn", database], input=given, text=True, capture_output=True,
            check=False,
        )  # fmt: skip

    done, again, empty = piped(facts), piped(facts), piped("")

    assert (done.returncode, re.findall(r"\d+", done.stdout)) == (0, ["2"])
    assert (again.returncode, re.findall(r"\d+", again.stdout)) == (0, ["0", "2"])
    assert empty.returncode == 1
    assert "there is nothing" in empty.stderr


def test_an_export_is_imported_as_it_was(run: Run, bank: str, tmp_path: Path) -> None:
    file = tmp_path / "bank.jsonl"

    exported = run("export", bank, str(file))
    printed = run("export", bank)
    piped = run("export", bank, "-")
    imported = run("import", str(file), "--bank", "copy")

    count = len(file.read_text().splitlines())
    assert exported[:2] == (0, f'exported {count} rows of bank "b"\n')
    assert printed[1] == piped[1] == file.read_text()
    assert imported[:2] == (0, f'imported {count} rows into bank "copy"\n')
    assert run("import", str(file), "--bank", "copy")[1] == 'imported 0 rows into bank "copy"\n'
    again = run("export", "copy")[1].splitlines()
    assert [json.loads(line) for line in again] == [
        json.loads(line) for line in printed[1].splitlines()
    ]
    assert run("export", "nowhere", str(file))[0] == 1
    assert len(file.read_text().splitlines()) == count


def test_an_export_that_was_cut_is_refused_whole(run: Run, bank: str, tmp_path: Path) -> None:
    file = tmp_path / "bank.jsonl"
    run("export", bank, str(file))
    whole = file.read_text().splitlines(keepends=True)
    file.write_text("".join(whole[:-1]))

    status, _, error = run("import", str(file), "--bank", "copy")

    assert status == 1
    assert f"bank.jsonl was cut: it has {len(whole) - 1} of {len(whole)} rows" in error
    assert run("export", "copy")[2].startswith('error: bank "copy" does not exist')
    # An export of before does not say how many rows it has.
    file.write_text("".join([whole[0].replace(f'"rows": {len(whole)}, ', ""), *whole[1:-1]]))
    assert run("import", str(file), "--bank", "copy")[0] == 0


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="pipes have no names here")
def test_an_export_goes_into_a_pipe_that_has_a_name(run: Run, bank: str) -> None:
    reading, writing = os.pipe()

    code, _, err = run("export", bank, f"/dev/fd/{writing}")

    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        written = pipe.read()
    assert (code, err) == (0, "")
    assert written == run("export", bank)[1]


def test_an_export_into_no_directory_names_the_file(run: Run, bank: str, tmp_path: Path) -> None:
    file = tmp_path / "missing" / "out.jsonl"

    code, _, said = run("export", bank, str(file))

    assert (code, said) == (1, f"error: {file}: No such file or directory\n")


def test_an_export_that_fails_leaves_the_former_file(
    run: Run, bank: str, database: str, tmp_path: Path
) -> None:
    file, link = tmp_path / "bank.jsonl", tmp_path / "latest.jsonl"
    link.symlink_to(file)
    run("export", bank, str(link))
    former = file.read_text()
    file.chmod(0o640)
    with psycopg.connect(database) as connection:
        connection.execute(
            "select pgrecall.retain_messages('b', jsonb_agg(jsonb_build_object('text', n::text)))"
            " from generate_series(1, 1500) as n"
        )
        connection.execute("alter table pgrecall_internal.vocabulary rename to lost")

    failed = run("export", bank, str(link))

    assert failed[0] == 1
    assert file.read_text() == former
    assert sorted(tmp_path.glob("bank.jsonl*")) == [file]
    with psycopg.connect(database) as connection:
        connection.execute("alter table pgrecall_internal.lost rename to vocabulary")
    assert run("export", bank, str(link))[0] == 0
    assert len(file.read_text().splitlines()) > 1500
    assert (link.is_symlink(), file.stat().st_mode & 0o777) == (True, 0o640)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda line: line[:20], "not JSON at column 21: "),
        (lambda line: line + line, "not JSON at column "),
        (lambda _: b"7", "not an exported row: 7"),
        (lambda line: line.replace(b'"row": {', b'"row": {"colour": 1, '), "row.colour: unknown"),
        (lambda line: line.replace(b'"row": {', b'"row": {"x": NaN, '), "row.x is nan, which"),
        (lambda line: line.replace(b'": "', b'": "\xff', 2), "not UTF-8 at byte "),
        (
            lambda line: re.sub(rb'("memory_id": )\d+', rb'\1"x"', line),
            'unusable row: invalid input syntax for type bigint: "x"',
        ),
        (
            lambda line: re.sub(rb'("confidence": )[\d.]+', rb"\g<1>7", line),
            'unusable row: new row for relation "memory" violates check constraint',
        ),
    ],
)
def test_a_damaged_line_of_an_export_is_named(
    run: Run, bank: str, tmp_path: Path, damage: Callable[[bytes], bytes], problem: str
) -> None:
    file = tmp_path / "bank.jsonl"
    run("export", bank, str(file))
    lines = file.read_bytes().splitlines()
    place = next(n for n, line in enumerate(lines) if b'"table": "memory"' in line)
    lines[place] = damage(lines[place])
    file.write_bytes(b"\n" + b"\n".join(lines))

    status, _, error = run("import", str(file), "--bank", "copy")

    assert status == 1
    assert f"{file}, line {place + 2}: {problem}" in error
    assert run("export", "copy")[2].startswith('error: bank "copy" does not exist')
