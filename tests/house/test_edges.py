"""What used to end in an error of PostgreSQL, a traceback, or an answer that was not true."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgrecall import BankNotFound, InvalidArgument, InvalidFact, Recall
from pgrecall.command import main
from sqlcalls import Connection, column, create, refused, retain, rows, value

VECTOR = "[1, 0]"
ARMS = """
select arm from pgrecall.explain_recall(
  'b', 'Why did Ana sail to Lisbon?', '[1, 0]', '[2026-01-01, 2026-02-01)', {},
  options => '{{"hypothetical": [1, 0], "keys": ["k"], "budget": "high",
                "weights": {{"source": 1}}}}')
where status = 'failed'
"""


@pytest.mark.parametrize("state", ["new", "messages", "forgotten", "unindexed"])
@pytest.mark.parametrize("types", ["null", "'{}'", "'{world}'"])
def test_no_arm_fails_on_an_empty_bank(connection: Connection, state: str, types: str) -> None:
    create(connection, settings={"hnsw_threshold": 1})
    if state == "messages":
        connection.execute("""select pgrecall.retain_messages('b', '[{"text": "Ana sails"}]')""")
    elif state != "new":
        facts = [{"text": "Ana sails", "embedding": [1, 0], "entities": ["Ana"], "fact_key": "k"}]
        ids = retain(connection, facts)
        if state == "forgotten":
            connection.execute("select pgrecall.forget('b', %s)", [ids])

    assert column(connection, ARMS.format(types)) == []


@pytest.mark.parametrize(
    "during",
    [
        "[294276-12-31, 294276-12-31 23:59:59)",
        "[294276-12-31, infinity)",
        "[-infinity, infinity)",
        "[4713-01-01 BC, 4713-01-02 BC)",
        "[4713-01-01 BC, 294276-12-31)",
    ],
)
def test_a_window_may_lie_at_either_end_of_time(connection: Connection, during: str) -> None:
    create(connection)
    retain(connection, [{"text": "Ana", "occurred": ["2026-01-01", "2026-02-01"]}])

    for basis in ("occurred", "mentioned"):
        rows(
            connection,
            "select * from pgrecall.temporal_arm('b', %s::text, time_basis => %s)",
            during,
            basis,
        )


@pytest.mark.parametrize("text", ["记忆数据库" * 16_000, "ab-" * 26_000, "a" * 80_000], ids=len)
def test_a_long_run_without_spaces_is_highlighted_at_once(
    connection: Connection, text: str
) -> None:
    create(connection)
    (memory,) = retain(connection, [text])
    connection.execute("set local statement_timeout = '30s'")  # quadratic, it took minutes

    marked = value(connection, "select pgrecall.highlight('b', %s, '记忆 ab')", memory)

    assert marked.replace("<mark>", "").replace("</mark>", "") == text


def letters(count: int, seed: int) -> str:
    chance = random.Random(seed)
    return "".join(chr(chance.randrange(0x20000, 0x2A000)) for _ in range(count))


def test_the_longest_names_and_keys_fit_into_every_index(connection: Connection) -> None:
    bank = letters(150, 0)
    names = [letters(500, n) for n in range(1, 6)]
    create(connection, bank)

    retain(
        connection,
        [
            {
                "text": "x",
                "fact_key": names[0],
                "source_id": names[1],
                "entities": names[2:4],
                "relations": [{"from": names[2], "kind": names[4], "to": names[3]}],
            }
        ],
        bank=bank,
    )
    connection.execute("select pgrecall.log_session(%s, %s)", [bank, names[0]])


def test_questions_of_a_fact_are_counted(connection: Connection) -> None:
    create(connection)
    question = {"text": "q", "embedding": [1, 0]}

    with refused(
        connection, "RC003", "facts[0].questions: 1001 questions are more than 1000", "Keep"
    ):
        retain(connection, [{"text": "x", "questions": [question] * 1001}])


# The driver


@pytest.fixture
def memory(connection: Connection) -> Recall:
    memory = Recall(connection, embedder=None)
    memory.create_bank("b")
    return memory


def len_(number: int) -> str:
    return f"{number.bit_length()} bits"


@pytest.mark.parametrize("number", [2**31, 2**63, 10**30, -(2**70), 10**5000], ids=len_)
def test_a_number_out_of_range_is_an_argument_out_of_range(memory: Recall, number: int) -> None:
    ((key,),) = [memory.retain("b", ["Ana"])]
    calls: list[Callable[[], object]] = [
        lambda: memory.recall("b", "Ana", top_k=number),
        lambda: memory.link_pending("b", batch_size=number),
        lambda: memory.recall("b", "Ana", skip=number),
    ]

    for call in calls:
        with pytest.raises(InvalidArgument), memory._source.transaction():  # type: ignore[union-attr]
            call()
    with pytest.raises(InvalidFact):
        memory.retain("b", [{"text": "x", "metadata": {"n": 10**5000}}])
    assert memory.recall("b", "Ana", top_k=5)[0].memory_id == key.memory_id


def test_a_negative_position_in_a_stream_leads_nowhere(memory: Recall) -> None:
    facts: list[Any] = ["a", "b", {"text": "c", "links": [{"kind": "causes", "to_index": -1}]}]

    with pytest.raises(InvalidFact, match="it leads nowhere") as caught:
        memory.retain_many("b", facts, batch_size=2)

    assert "from 0" in str(caught.value.hint)


@pytest.mark.parametrize("many", ["retain_many", "retain_many_messages"])
def test_an_empty_stream_needs_a_bank_too(memory: Recall, many: str) -> None:
    assert getattr(memory, many)("b", []).total == 0
    with pytest.raises(BankNotFound):
        getattr(memory, many)("nowhere", [])


def test_threads_that_share_a_connection_get_their_own_degradations(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        memory = Recall(connection, embedder=None)
        memory.create_bank("b")
        memory.retain("b", ["Ana sails."])
        connection.execute(
            "create or replace function pgrecall_internal._key_arm("
            " request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)"
            " returns pgrecall_internal.arm_result language plpgsql as"
            " $$ begin if request.query like '%bad%' then raise 'broken'; end if;"
            " return (true, null, null, '{}', '{}', '{}', null)::pgrecall_internal.arm_result;"
            " end $$"
        )
        found: dict[str, set[bool]] = {"bad": set(), "good": set()}

        def ask(word: str) -> None:
            for _ in range(15):
                report = memory.recall_report("b", f"Ana {word}")
                found[word].add(any("key" in str(d) for d in report.degradations))

        threads = [threading.Thread(target=ask, args=[word]) for word in found]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert found == {"bad": {True}, "good": {False}}


# The command


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(list(words))
    return code, capsys.readouterr().err


def test_a_file_with_an_endless_number_is_refused(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_text('{"text": "x", "metadata": {"n": ' + "9" * 5000 + "}}\n")

    code, error = said(capsys, "retain", str(file), "--bank", "b", "--create", "--dsn", database)

    assert code == 1
    assert "line 1: a number with too many digits" in " ".join(error.split())


def test_an_empty_file_into_no_bank_is_refused(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "facts.jsonl"
    file.touch()

    code, error = said(capsys, "retain", str(file), "--bank", "nowhere", "--dsn", database)

    assert code == 1
    assert f"there is nothing in {file}" in " ".join(error.split())


def test_a_lock_timeout_is_not_a_server_out_of_reach(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with psycopg.connect(database) as holder:
        holder.execute("select pgrecall.create_bank('b')")
        holder.commit()
        holder.execute("select pgrecall.configure_bank('b', '{}')")
        dsn = f"{database} options='-c lock_timeout=200'"

        code, error = said(capsys, "link", "b", "--dsn", dsn)

    assert code == 1
    assert "lock timeout" in error
    assert "pg_stat_activity" in error
    assert "cannot reach" not in error


def test_a_row_of_what_is_sent_is_json(memory: Recall) -> None:
    """Whole numbers travel without a type, and are still numbers in the database."""
    memory.retain("b", [{"text": "x", "metadata": {"n": 7}}])

    assert memory.recall("b", "x", filter="metadata->>'n' = '7'", top_k=1)
    assert value(memory._source, "select metadata from pgrecall.memory") == {"n": 7}  # type: ignore[arg-type]
