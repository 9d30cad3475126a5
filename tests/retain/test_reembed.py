"""Giving a bank another embedding model while it is used: no recall ever sees both."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import psycopg
import pytest

from pgrecall import (
    AsyncRecall,
    FunctionEmbedder,
    InvalidArgument,
    ModelMismatch,
    Recall,
    ReembedRefused,
)
from servers import kept_fixture
from sqlcalls import (
    Connection,
    column,
    create,
    refused,
    retain,
    rows,
    sent_statements,
    similar,
    value,
    waiting,
)
from toys import DIMENSIONS, toy_embed

DEADLINE_S = 30
VECTORS = (
    "select memory_id, kind, ordinal from pgrecall.embedding where model = %s order by 1, 2, 3"
)


def start(connection: Connection, model: str = "new", dimensions: int = 2) -> None:
    connection.execute("select pgrecall.reembed_start('b', %s, %s)", [model, dimensions])


def pending(connection: Connection, from_id: int = 0, size: int = 1000) -> list[Any]:
    return rows(
        connection,
        "select memory_id, kind, ordinal, text from pgrecall.reembed_pending('b', %s, %s)",
        from_id,
        size,
    )


def store(connection: Connection, *embeddings: object, model: str = "new") -> int:
    text = json.dumps(embeddings)
    return int(value(connection, "select pgrecall.reembed_store('b', %s, %s)", model, text))


@pytest.mark.parametrize("model", ["old", "new"])
def test_parts_are_stored_beside_an_embedding_of_the_whole_alone(
    connection: Connection, model: str
) -> None:
    create(connection)
    facts = [{"text": "embedded", "embedding": [1, 0]}, "waiting"]
    given = [
        {"memory_id": memory_id, "embedding": [0, 1], "parts": [[1, 0], [0, 1]]}
        for memory_id in retain(connection, facts, model="old")
    ]
    start(connection)

    if model == "new":
        store(connection, *given)
    else:
        value(connection, "select pgrecall.embed_again('b', %s, 'old')", json.dumps(given))

    stored = "select kind, ordinal from pgrecall.embedding where model = %s and memory_id = %s"
    embedded, waiting_one = (one["memory_id"] for one in given)
    assert sorted(rows(connection, stored, model, embedded)) == [
        ("part", 0),
        ("part", 1),
        ("text", 0),
    ]
    assert rows(connection, stored, model, waiting_one) == []


def finish(connection: Connection, *, is_lossy: bool = False) -> None:
    connection.execute("select pgrecall.reembed_finish('b', %s)", [is_lossy])


def clean(connection: Connection, size: int = 100) -> int:
    return int(value(connection, "select pgrecall.reembed_clean('b', %s)", size))


def status(connection: Connection) -> Any:
    (row,) = rows(connection, "select * from pgrecall.reembed_status('b')")
    return row


def nearest(connection: Connection, embedding: str, model: str | None = None) -> list[str]:
    return column(
        connection,
        "select m.text from pgrecall.semantic_arm('b', %s, model => %s) a"
        " join pgrecall.memory m on m.bank_id = 'b' and m.memory_id = a.memory_id"
        " order by a.rank, a.memory_id desc",
        embedding,
        model,
    )


# To the old model even facts are [1, 0] and odd ones [0, 1]; to the new one it is the other way
# round. A recall that mixed them up would find the wrong ones.

EVEN = {"old": "[1,0]", "new": "[0,1]"}
ODD = {"old": "[0,1]", "new": "[1,0]"}


def fact(n: int) -> dict[str, object]:
    parity = ("even", "odd")[n % 2]
    return {"text": f"{parity} {n}", "embedding": (EVEN, ODD)[n % 2]["old"]}


def fill(connection: Connection) -> None:
    """Embed with the new model whatever is pending."""
    for memory_id, kind, ordinal, text in pending(connection):
        vector = (EVEN if text.startswith("even") else ODD)["new"]
        item = {"memory_id": memory_id, "kind": kind, "ordinal": ordinal, "embedding": vector}
        assert store(connection, item) == 1


@kept_fixture
def bank(connection: Connection) -> list[int]:
    create(connection)
    return retain(connection, map(fact, range(4)), model="old")


def test_the_bank_is_searched_by_one_model_and_then_by_the_other(
    connection: Connection, bank: list[int]
) -> None:
    start(connection)
    before = nearest(connection, EVEN["old"], "old")
    fill(connection)
    filled = nearest(connection, EVEN["old"], "old")
    finish(connection)
    after = nearest(connection, EVEN["new"], "new")
    while clean(connection, 1):
        pass
    cleaned = nearest(connection, EVEN["new"], "new")

    assert before == filled == after == cleaned == ["even 2", "even 0"]
    assert column(connection, "select distinct model from pgrecall.embedding") == ["new"]
    assert status(connection) == ("new", 2, None, None, None, 4, 0, 0, 0)


def test_another_models_query_is_refused_before_and_after(
    connection: Connection, bank: list[int]
) -> None:
    start(connection)
    fill(connection)
    with refused(
        connection,
        "RC005",
        'bank "b" is embedded with model "old", not "new"',
        r'It is being re-embedded; use "old" until reembed_finish\(\) is called\.',
    ):
        nearest(connection, EVEN["new"], "new")
    finish(connection)

    for function in ("semantic_arm", "hypothetical_arm"):
        with refused(
            connection,
            "RC005",
            'bank "b" is embedded with model "new", not "old"',
            'Embed the question with "new".',
        ):
            connection.execute(f"select pgrecall.{function}('b', '[1,0]', model => 'old')")


QUERIES = (
    "hybrid_recall('b', 'even', '[1,0]', model => 'other')",
    """hybrid_recall('b', 'even', model => 'other', options => '{"hypothetical": [1, 0]}')""",
    "explain_recall('b', 'even', '[1,0]', model => 'other')",
    "explain_recall('b', 'even', '[1,0]', model => 'other', is_run => false)",
    "recall_report('b', 'even', '[1,0]', model => 'other')",
    "arm_hits('b', 'even', '[1,0]', model => 'other')",
    "semantic_arm('b', '[1,0]', model => 'other')",
    "hypothetical_arm('b', '[1,0]', model => 'other')",
    "graph_arm('b', 'even', '[1,0]', model => 'other')",
    "temporal_arm('b', '[2026-01-01,2026-02-01)', '[1,0]', model => 'other')",
    """retain('b', '[{"text": "x", "embedding": [1, 0]}]', model => 'other')""",
    """retain('b', '[{"text": "x"}]', model => 'other')""",
)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_or_fact_of_another_model_names_both(
    connection: Connection, bank: list[int], query: str
) -> None:
    with refused(
        connection,
        "RC005",
        'bank "b" is embedded with model "old", not "other"',
        r'^Embed the \w+ with "old"\.$',
    ):
        connection.execute(f"select * from pgrecall.{query}".encode())


# What is pending


def test_texts_and_questions_are_pending_in_order(connection: Connection, bank: list[int]) -> None:
    (asked,) = retain(
        connection,
        [
            {
                "text": "even 4",
                "embedding": [1, 0],
                "questions": [
                    {"text": "even?", "embedding": [1, 0]},
                    {"embedding": [1, 1]},
                    {"text": "even 2?", "embedding": [1, 0]},
                ],
            }
        ],
    )
    retain(connection, ["without an embedding"])
    start(connection)

    found = pending(connection)

    assert found == [
        *((memory_id, "text", 0, str(fact(n)["text"])) for n, memory_id in enumerate(bank)),
        (asked, "question", 0, "even?"),
        (asked, "question", 2, "even 2?"),
        (asked, "text", 0, "even 4"),
    ]
    assert pending(connection, bank[2], 2) == found[2:4]
    assert status(connection) == ("old", 2, "new", 2, None, 8, 7, 1, 0)


def test_what_is_stored_is_pending_no_more(connection: Connection, bank: list[int]) -> None:
    start(connection)

    stored = store(connection, *({"memory_id": n, "embedding": [0, 1]} for n in (bank[1], bank[3])))

    assert stored == 2
    assert [row[0] for row in pending(connection)] == [bank[0], bank[2]]
    assert status(connection)[5:] == (4, 2, 0, 0)


def test_a_batch_is_found_by_look_ups_in_an_index(connection: Connection) -> None:
    create(connection)
    retain(connection, map(fact, range(400)), model="old", link="deferred")
    start(connection)
    connection.execute("set local enable_seqscan = on")
    reads = (
        "select coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid)), 0) from pg_class c"
        " where c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
        " and c.relkind = 'r'"
        " and (c.relispartition or c.relname = 'memory')"
    )
    before = value(connection, reads)
    pending(connection, 0, 10)

    assert value(connection, reads) == before  # tuples that sequential scans returned


# Facts that come meanwhile


def test_a_fact_with_both_embeddings_lands_in_both_sets(
    connection: Connection, bank: list[int]
) -> None:
    start(connection)
    fill(connection)
    both = {"old": [1, 0], "new": [0, 1], "third": [1, 2, 3]}

    found = retain(
        connection,
        [
            {
                "text": "even 6",
                "embeddings": both,
                "questions": [{"text": "even?", "embeddings": {**both, "new": "[0,1]"}}],
            },
            {"text": "even 8", "embedding": "[1,0]", "embeddings": {"new": [0, 1]}},
        ],
    )

    assert pending(connection) == []
    for model in ("old", "new"):
        assert [row for row in rows(connection, VECTORS, model) if row[0] in found] == [
            (found[0], "question", 0),
            (found[0], "text", 0),
            (found[1], "text", 0),
        ]
    assert rows(connection, VECTORS, "third") == []


def test_a_fact_with_the_old_embedding_only_is_pending(
    connection: Connection, bank: list[int]
) -> None:
    start(connection)
    fill(connection)

    (late,) = retain(connection, [fact(4)], model="old")

    assert [row[0] for row in pending(connection)] == [late]
    with refused(
        connection,
        "RC014",
        '1 of 5 embeddings of bank "b" are not made with model "new" yet',
        r"^select \* from pgrecall.reembed_pending\('b'\); says which ones\.$",
    ):
        finish(connection)


def test_embeddings_by_name_need_the_banks_own(connection: Connection, bank: list[int]) -> None:
    start(connection)

    with refused(
        connection,
        "RC005",
        'facts[0]: bank "b" is embedded with model "old", not "new", "third"',
        'Bring an embedding of "old" as well.',
    ):
        retain(connection, [{"text": "x", "embeddings": {"third": [1], "new": [1, 0]}}])
    with refused(
        connection,
        "RC005",
        'facts[0].questions[0]: bank "b" is embedded with model "old", not "new"',
    ):
        retain(
            connection,
            [
                {
                    "text": "x",
                    "embedding": [1, 0],
                    "questions": [{"text": "?", "embeddings": {"new": [1, 0]}}],
                }
            ],
        )


@pytest.mark.parametrize(
    ("embeddings", "code", "message"),
    [
        ([1, 0], "RC003", "facts[0].embeddings: expected an object, not [1, 0]"),
        (
            {"old": [1, 0], "new": [1]},
            "RC004",
            "facts[0].embeddings.new: expected 2 dimensions, not 1",
        ),
        (
            {"old": [1, 0], "new": [0, 0]},
            "RC006",
            "facts[0].embeddings.new: unusable embedding: all elements are zero",
        ),
        ({"old": [1]}, "RC004", "facts[0].embedding: expected 2 dimensions, not 1"),
    ],
)
def test_a_wrong_embedding_by_name_is_named(
    connection: Connection, bank: list[int], embeddings: object, code: str, message: str
) -> None:
    start(connection)

    with refused(connection, code, message):
        retain(connection, [{"text": "x", "embeddings": embeddings}])


def test_the_first_embedding_by_name_pins_the_model_that_is_named(connection: Connection) -> None:
    create(connection)
    several = {"text": "x", "embeddings": {"old": [1, 0], "new": [1]}}
    with refused(
        connection,
        "RC005",
        'facts[0]: bank "b" is embedded with model "", not "new", "old"',
        "Name the model that the bank is to have with model => as well.",
    ):
        retain(connection, [several])

    retain(connection, [several], model="old")

    assert status(connection)[:2] == ("old", 2)


def test_similar_are_those_of_the_banks_own_model(connection: Connection, bank: list[int]) -> None:
    start(connection)

    (new,) = retain(connection, [{"text": "x", "embeddings": {"old": [1, 0], "new": [1, 0]}}])

    assert sorted(similar(connection, new)) == [bank[0], bank[2]]


# The switch


def test_a_question_without_text_is_lost_only_when_told_so(connection: Connection) -> None:
    create(connection)
    even = {"text": "even 0", "embedding": [1, 0], "questions": [{"embedding": [1, 0]}]}
    (kept,) = retain(connection, [even], model="old")
    start(connection)
    fill(connection)

    with refused(
        connection,
        "RC014",
        '1 questions of bank "b" were retained without their text and would be lost',
        "is_lossy => true",
    ):
        finish(connection)
    finish(connection, is_lossy=True)
    while clean(connection):
        pass

    assert rows(connection, "select memory_id, kind, model from pgrecall.embedding") == [
        (kept, "text", "new")
    ]


def test_similar_are_those_of_the_new_model_once_it_is_searched(
    connection: Connection, bank: list[int]
) -> None:
    # To the new model all facts but the first are alike.
    before = [similar(connection, memory_id) for memory_id in bank]
    start(connection, "new", 3)
    store(connection, {"memory_id": bank[0], "embedding": [1, 0, 0]})
    store(connection, *({"memory_id": n, "embedding": [0, 0, 1]} for n in bank[1:]))
    meanwhile = [similar(connection, memory_id) for memory_id in bank]
    finish(connection)
    assert (status(connection)[4], status(connection)[8]) == ("old", 4)

    assert [clean(connection, 3), clean(connection, 3), clean(connection, 3)] == [3, 1, 0]

    assert before == meanwhile == [[bank[(n + 2) % 4]] for n in range(4)]
    after = [sorted(similar(connection, memory_id)) for memory_id in bank]
    assert after == [[], *([b for b in bank[1:] if a != b] for a in bank[1:])]


def test_a_bank_whose_model_has_no_name_gets_one(connection: Connection) -> None:
    create(connection)
    retain(connection, map(fact, range(4)))
    start(connection)
    with refused(connection, "RC005", 'bank "b" is embedded with model "", not "new"'):
        retain(connection, [{"text": "x", "embedding": [1, 0]}], model="new")
    fill(connection)
    finish(connection)
    assert status(connection)[4] == ""
    while clean(connection):
        pass

    assert nearest(connection, EVEN["new"], "new") == ["even 2", "even 0"]
    assert status(connection) == ("new", 2, None, None, None, 4, 0, 0, 0)


def test_the_recall_of_the_next_model_can_be_checked(
    connection: Connection, bank: list[int]
) -> None:
    with (
        pytest.raises(psycopg.Error, match=r'^bank "b" is not being re-embedded\n'),
        connection.transaction(),
    ):
        connection.execute("select pgrecall.recall_check('b', is_next => true)")
    start(connection)
    store(connection, {"memory_id": bank[0], "embedding": [0, 1]})

    checked = "select fact_type, questions, recall from pgrecall.recall_check('b', is_next => %s)"
    assert rows(connection, checked, False) == [("world", 4, 1.0)]
    assert rows(connection, checked, True) == [("world", 1, 1.0)]


# What is refused


def test_a_start_that_makes_no_sense_is_refused(connection: Connection, bank: list[int]) -> None:
    create(connection, "empty")
    refusals = [
        ("'b', 'old', 3", "RC014", 'bank "b" is embedded with model "old" already'),
        ("'empty', 'new', 3", "RC014", 'bank "empty" holds no embeddings'),
        ("'b', '', 3", "22023", "model must name the model to re-embed with"),
        ("'b', null, 3", "22023", "model must name the model to re-embed with"),
        ("'b', 'new', 0", "22023", "dimensions must be between 1 and 4000, not 0"),
        ("'b', 'new', null", "22023", "dimensions must be between 1 and 4000, not null"),
        ("'nowhere', 'new', 2", "RC001", 'bank "nowhere" does not exist'),
    ]
    for arguments, code, message in refusals:
        with refused(connection, code, message, "."):
            connection.execute(f"select pgrecall.reembed_start({arguments})".encode())


def test_one_model_at_a_time(connection: Connection, bank: list[int]) -> None:
    start(connection)
    start(connection)

    with refused(
        connection,
        "RC014",
        'bank "b" is being re-embedded with model "new", 2 dimensions, not "third", 2',
        r"select pgrecall.reembed_cancel\('b'\);",
    ):
        start(connection, "third")


@pytest.mark.parametrize(
    "step", ["pending('b')", "store('b', 'new', '[]')", "finish('b')", "cancel('b')"]
)
def test_no_step_goes_before_the_first(connection: Connection, bank: list[int], step: str) -> None:
    with refused(
        connection,
        "RC014",
        'bank "b" is not being re-embedded',
        r"^Begin with: select pgrecall.reembed_start\('b', 'name of the model', 384\);$",
    ):
        connection.execute(f"select pgrecall.reembed_{step}".encode())


@pytest.mark.parametrize(
    ("item", "code", "message"),
    [
        ({"embedding": [1]}, "RC004", "embeddings[1].embedding: expected 2 dimensions, not 1"),
        (
            {"embedding": [0, 0]},
            "RC006",
            "embeddings[1].embedding: unusable embedding: all elements are zero",
        ),
        ({}, "RC006", "embeddings[1].embedding: unusable embedding: invalid input syntax for type"),
        (
            {"memory_id": "x"},
            "RC003",
            'embeddings[1].memory_id: expected the id of a memory, not {"memory_id": "x"}',
        ),
        (
            {"embedding": [1, 0], "ordinal": 70000},
            "RC003",
            "embeddings[1].ordinal: expected a number up to 32767, not 70000",
        ),
    ],
)
def test_a_wrong_embedding_is_not_stored(
    connection: Connection, bank: list[int], item: dict[str, object], code: str, message: str
) -> None:
    start(connection)

    with pytest.raises(psycopg.Error) as caught, connection.transaction():
        store(
            connection,
            {"memory_id": bank[0], "embedding": [1, 0]},
            {"memory_id": bank[1], **item},
        )

    assert caught.value.sqlstate == code
    assert (caught.value.diag.message_primary or "").startswith(message)
    assert rows(connection, VECTORS, "new") == []


def test_embeddings_of_a_third_model_are_not_stored(
    connection: Connection, bank: list[int]
) -> None:
    start(connection)

    for model in ("old", "third"):
        with refused(
            connection,
            "RC005",
            f'bank "b" is being re-embedded with model "new", not "{model}"',
            'Embed what reembed_pending() returns with "new".'.replace("()", r"\(\)"),
        ):
            store(connection, {"memory_id": bank[0], "embedding": [1, 0]}, model=model)


def test_what_was_forgotten_meanwhile_is_passed_over(
    connection: Connection, bank: list[int]
) -> None:
    start(connection)
    connection.execute("select pgrecall.forget('b', %s)", [bank[:1]])

    assert store(connection, *({"memory_id": n, "embedding": [1, 0]} for n in bank)) == 3


# Giving up


def test_who_gives_up_can_go_on_or_clean(connection: Connection, bank: list[int]) -> None:
    start(connection)
    store(connection, {"memory_id": bank[0], "embedding": [0, 1]})
    connection.execute("select pgrecall.reembed_cancel('b')")
    assert nearest(connection, EVEN["old"], "old") == ["even 2", "even 0"]

    with refused(
        connection,
        "RC014",
        'bank "b" still holds embeddings of model "new" with 2 dimensions, not 3',
        r"Call this until it returns 0: select pgrecall.reembed_clean\('b'\);",
    ):
        start(connection, "new", 3)
    start(connection)
    assert len(pending(connection)) == 3
    connection.execute("select pgrecall.reembed_cancel('b')")

    assert [clean(connection), clean(connection)] == [1, 0]
    assert column(connection, "select distinct model from pgrecall.embedding") == ["old"]
    start(connection, "new", 3)


def state_kind(connection: Connection) -> int:
    """Retain a fact without an embedding whose relation has one; returns its id."""
    (memory_id,) = retain(
        connection,
        [{"text": "Ana leads Atlas",
          "relations": [{"from": "Ana", "kind": "leads", "to": "Atlas"}]}],
    )  # fmt: skip
    words = {"memory_id": memory_id, "kind": "relation", "text": "leads", "embedding": [1, 0]}
    connection.execute("select pgrecall.embed_store('b', %s, 'old')", [json.dumps([words])])
    return memory_id


def test_the_words_of_a_relation_are_embedded_once(connection: Connection, bank: list[int]) -> None:
    memory_id = state_kind(connection)
    start(connection)

    assert pending(connection, memory_id) == [(memory_id, "relation", 1, "leads")]
    fill(connection)
    finish(connection)

    kinds = [(memory_id, "relation", 1), (memory_id, "usage", 1)]
    assert rows(connection, VECTORS, "new")[-2:] == kinds


def test_cleaning_removes_what_relations_mean(connection: Connection, bank: list[int]) -> None:
    state_kind(connection)
    start(connection)
    fill(connection)
    finish(connection)

    while clean(connection):
        pass

    assert column(connection, "select distinct model from pgrecall.embedding") == ["new"]


def test_cleaning_leaves_both_sets_alone(connection: Connection, bank: list[int]) -> None:
    start(connection)
    fill(connection)

    assert clean(connection) == 0
    assert status(connection)[5:] == (4, 0, 0, 0)
    finish(connection)


def test_the_way_back_is_open_until_it_is_cleaned(connection: Connection, bank: list[int]) -> None:
    start(connection)
    fill(connection)
    finish(connection)

    start(connection, "old", 2)
    assert pending(connection) == []
    finish(connection)

    assert nearest(connection, EVEN["old"], "old") == ["even 2", "even 0"]


# Several at once. Databases of their own: here things commit.


@pytest.fixture
def shared(database: str) -> Iterator[Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        create(connection)
        links = [[{"kind": "causes", "to_index": (n + 2) % 20}] for n in range(20)]
        retain(connection, ({**fact(n), "links": links[n]} for n in range(20)), model="old")
        yield connection


def found_by_a_recall_that_waits(
    database: str, shared: Connection, asked: str, table: str, change: Callable[[], object]
) -> list[Any]:
    """What a recall finds that waits for a lock on a table while something changes."""
    start(shared)
    fill(shared)
    with (
        psycopg.connect(database) as blocker,
        psycopg.connect(database, autocommit=True) as reader,
        ThreadPoolExecutor(1) as pool,
    ):
        blocker.execute(f"lock table {table} in access exclusive mode")
        result = pool.submit(column, reader, f"select text from pgrecall.{asked}")
        waiting(shared, reader.info.backend_pid)
        change()
        blocker.commit()
        return result.result(DEADLINE_S)


@pytest.mark.parametrize(
    "asked",
    [
        "hybrid_recall('b', '', '[1,0]', model => 'old',"
        """ options => '{"arms": ["semantic"]}') as a""",
        "semantic_arm('b', '[1,0]', model => 'old') as a"
        " join pgrecall.memory m on m.bank_id = 'b' and m.memory_id = a.memory_id",
    ],
)
def test_a_recall_that_began_before_the_switch_ends_with_the_model_it_began_with(
    database: str, shared: Connection, asked: str
) -> None:
    # A recall looks up the fact types after it has checked the model, before it searches.
    found = found_by_a_recall_that_waits(
        database, shared, asked, "pgrecall.fact_type", lambda: finish(shared)
    )

    assert {text.split()[0] for text in found} == {"even"}


@pytest.mark.parametrize(
    "asked",
    [
        "hybrid_recall('b', 'nothing', '[1,0]', model => 'old')",
    ],
)
def test_a_recall_that_waits_while_the_old_embeddings_are_removed_still_finds_them(
    database: str, shared: Connection, asked: str
) -> None:
    def change() -> None:
        finish(shared)
        while clean(shared):
            pass

    # The words of the query are looked up after the model was checked, before the search.
    found = found_by_a_recall_that_waits(
        database, shared, asked, "pgrecall_internal.lexeme", change
    )

    assert {text.split()[0] for text in found} == {"even"}
    assert value(shared, "select count(*) from pgrecall.embedding where model = 'old'") == 0


def test_the_switch_waits_for_a_writer_and_then_sees_its_facts(
    database: str, shared: Connection
) -> None:
    start(shared)
    fill(shared)
    with (
        psycopg.connect(database) as writer,
        psycopg.connect(database, autocommit=True) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        retain(writer, [fact(20)], model="old")
        result = pool.submit(finish, other)
        waiting(shared, other.info.backend_pid)
        writer.commit()
        with pytest.raises(psycopg.Error) as caught:
            result.result(DEADLINE_S)

    assert caught.value.diag.message_primary == (
        '1 of 21 embeddings of bank "b" are not made with model "new" yet'
    )


def test_readers_and_writers_go_on_while_the_model_changes_to_and_fro(
    database: str, shared: Connection
) -> None:
    stop = Event()

    def read(n: int) -> tuple[int, set[str]]:
        found: set[str] = set()
        model, count = "old", 0
        with psycopg.connect(database, autocommit=True) as connection:
            while not stop.is_set() or count < 2:
                try:
                    texts = column(
                        connection,
                        "select text from pgrecall.hybrid_recall('b', '', %s, model => %s,"
                        """ top_k => 100, options => '{"arms": ["semantic", "graph"]}')""",
                        EVEN[model],
                        model,
                    )
                    assert len(texts) >= 10  # never less than there were
                    found |= {text.split()[0] for text in texts}
                    count += 1
                except psycopg.Error as error:
                    if error.sqlstate != "RC005":
                        raise
                    model = "new" if model == "old" else "old"
        return count, found

    def write(n: int) -> int:
        count = 0
        with psycopg.connect(database, autocommit=True) as connection:
            while not stop.is_set():
                number = 1000 * (n + 1) + count
                both = EVEN if number % 2 == 0 else ODD
                text = f"{('even', 'odd')[number % 2]} {number}"
                retain(connection, [{"text": text, "embeddings": both}])
                count += 1
        return count

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read, n) for n in range(2)]
        writers = [pool.submit(write, n) for n in range(2)]
        try:
            for model in ("new", "old", "new"):
                start(shared, model)
                for memory_id, kind, ordinal, text in pending(shared):
                    vector = (EVEN if text.startswith("even") else ODD)[model]
                    item = {"memory_id": memory_id, "kind": kind, "ordinal": ordinal}
                    store(shared, {**item, "embedding": vector}, model=model)
                finish(shared)
                while clean(shared, 10):
                    pass
        finally:
            stop.set()
        read_by = [reader.result(DEADLINE_S) for reader in readers]
        written = sum(writer.result(DEADLINE_S) for writer in writers)

    assert [found for _, found in read_by] == [{"even"}, {"even"}]
    assert written > 0
    assert column(shared, "select distinct model from pgrecall.embedding") == ["new"]
    assert value(shared, "select count(*) from pgrecall.embedding") == 20 + written


# The driver


def reversed_embed(texts: Sequence[str]) -> list[list[float]]:
    return [vector[::-1] for vector in toy_embed(texts)]


OLD = FunctionEmbedder(toy_embed, "old")
NEW = FunctionEmbedder(reversed_embed, "new")
TEXTS = ["Ana leads Atlas", "Ben likes tea", "Cleo drives trains"]


def found(recall: Recall, query: str) -> list[str]:
    return [hit.text for hit in recall.recall("b", query, arms=["semantic"], top_k=1)]


@pytest.fixture
def old(connection: Connection) -> Recall:
    recall = Recall(connection, embedder=OLD)
    recall.create_bank("b")
    recall.retain("b", [{"text": TEXTS[0], "questions": [{"text": "who leads?"}]}, *TEXTS[1:]])
    return recall


def test_the_driver_takes_a_bank_to_another_model(connection: Connection, old: Recall) -> None:
    done: list[int] = []

    made = old.reembed_fill("b", NEW, batch_size=3, progress=done.append)

    assert (made, sum(done)) == (4, 4)
    state = old.reembed_status("b")
    assert (state.model, state.next_model, state.next_dimensions) == ("old", "new", DIMENSIONS)
    assert (state.vectors, state.pending, state.textless) == (4, 0, 0)
    assert found(old, "who leads?") == TEXTS[:1]
    old.reembed_finish("b")
    assert old.reembed_status("b").previous_model == "old"
    while old.reembed_clean("b", batch_size=2):
        pass
    assert old.reembed_status("b").previous_model is None
    assert found(Recall(connection, embedder=NEW), "who leads?") == TEXTS[:1]


def test_the_driver_names_both_models(connection: Connection, old: Recall) -> None:
    other = Recall(connection, embedder=NEW)
    message = 'bank "b" is embedded with model "old", not "new"'

    for call in (lambda: other.recall("b", "who?"), lambda: other.retain("b", ["x"])):
        with pytest.raises(ModelMismatch) as caught, connection.transaction():
            call()
        choice = "Pass an embedder= of that model to the client, or embedder=None to do without."
        assert (caught.value.message, caught.value.hint) in [
            (message, f'Embed the question with "old". {choice}'),
            (message, f'Embed the facts with "old". {choice}'),
        ]


def test_an_interrupted_fill_goes_on_where_it_was(database: str) -> None:
    embedded: list[str] = []

    def failing(texts: Sequence[str]) -> list[list[float]]:
        if len(embedded) >= 6:
            raise KeyboardInterrupt
        embedded.extend(texts)
        return reversed_embed(texts)

    with Recall.connect(database, embedder=OLD) as recall:
        recall.create_bank("b")
        recall.retain("b", [f"word{n}" for n in range(10)])
        with pytest.raises(KeyboardInterrupt):
            recall.reembed_fill("b", FunctionEmbedder(failing, "new"), batch_size=2)
        assert recall.recall("b", "word3")[0].text == "word3"
        assert recall.reembed_status("b").pending == 4

        assert recall.reembed_fill("b", NEW, batch_size=2) == 4
        recall.reembed_finish("b")


def test_a_client_with_both_embedders_is_carried_over_the_switch(
    connection: Connection, old: Recall
) -> None:
    both = Recall(connection, embedder=OLD, next_embedder=NEW)
    both.retain("b", ["Dana plays chess"])
    assert found(both, "who leads?") == TEXTS[:1]

    old.reembed_fill("b", NEW)
    both.retain("b", [{"text": "Eva sings", "questions": [{"text": "who sings?"}]}])
    assert old.reembed_status("b").pending == 0
    assert found(both, "who sings?") == ["Eva sings"]

    old.reembed_finish("b")
    both.retain("b", ["Finn cooks"])
    assert found(both, "who sings?") == ["Eva sings"]
    assert found(both, "Finn cooks") == ["Finn cooks"]
    assert column(connection, "select count(*) from pgrecall.embedding where model = 'new'") == [8]


@pytest.mark.parametrize("given", [{}, {"embedding": [1.0] * 16}, {"hypothetical": "Eva sings"}])
def test_a_choice_between_embedders_takes_no_statement_of_its_own(
    connection: Connection,
    old: Recall,
    given: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = Recall(connection, embedder=OLD, next_embedder=NEW)
    old.reembed_fill("b", NEW)
    old.reembed_finish("b")
    sent = sent_statements(monkeypatch)

    (one_of_many,) = both.recall_many("b", ["who leads?"], **given)
    alone = both.recall_report("b", "who leads?", **given)

    assert len(sent) == 4
    for report in (one_of_many, alone):
        assert not report.degradations
        assert any("semantic" in hit.arms for hit in report.hits)


def test_a_model_without_a_name_gets_that_of_the_embedder(connection: Connection) -> None:
    nameless = Recall(connection, embedder=None)
    nameless.create_bank("b")
    nameless.retain("b", [{"text": TEXTS[0], "embedding": toy_embed(TEXTS[:1])[0]}])
    nameless.reembed_fill("b", NEW)

    Recall(connection, embedder=OLD, next_embedder=NEW).retain("b", TEXTS[1:])

    state = nameless.reembed_status("b")
    assert (state.model, state.vectors, state.pending) == ("old", 3, 0)


@pytest.mark.parametrize("is_successor", [False, True])
def test_a_recall_that_meets_the_switch_is_asked_again(database: str, is_successor: bool) -> None:
    with Recall.connect(database, embedder=OLD) as admin:
        admin.create_bank("b")
        admin.retain("b", TEXTS)
        admin.reembed_fill("b", NEW)

        def late(texts: Sequence[str]) -> list[list[float]]:
            admin.reembed_finish("b")
            return toy_embed(texts)

        class Successor(FunctionEmbedder):
            earlier = FunctionEmbedder(late, "old")

        if is_successor:
            both = Recall.connect(database, embedder=Successor(reversed_embed, "new"))
        else:
            both = Recall.connect(database, embedder=Successor.earlier, next_embedder=NEW)
        with both:
            assert found(both, "Ana leads") == TEXTS[:1]


def test_asyncio_takes_a_bank_to_another_model_too(database: str) -> None:
    async def body() -> tuple[int, list[str]]:
        async with await AsyncRecall.connect(database, embedder=OLD, next_embedder=NEW) as recall:
            await recall.create_bank("b")
            await recall.retain("b", TEXTS)
            made = await recall.reembed_fill("b", NEW, batch_size=2, rate=1000)
            await recall.retain("b", ["Dana plays chess"])
            await recall.reembed_finish("b")
            while await recall.reembed_clean("b"):
                pass
            hits = await recall.recall("b", "Dana plays", arms=["semantic"], top_k=1)
            return made, [hit.text for hit in hits]

    assert asyncio.run(body()) == (3, ["Dana plays chess"])


def test_a_rate_slows_the_fill_down(old: Recall, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("pgrecall.client.time.sleep", pauses.append)

    old.reembed_fill("b", NEW, batch_size=2, rate=0.1)

    assert 30 < max(pauses) <= 40


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"rate": 0.0}, {"rate": -1.0}])
def test_a_fill_needs_a_batch_and_a_rate(old: Recall, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="batch_size must be at least 1 and rate above 0"):
        old.reembed_fill("b", NEW, **options)


def test_the_driver_says_why_a_step_is_refused(connection: Connection, old: Recall) -> None:
    with pytest.raises(ReembedRefused) as caught, connection.transaction():
        old.reembed_cancel("b")
    assert caught.value.message == 'bank "b" is not being re-embedded'

    with pytest.raises(ReembedRefused) as caught, connection.transaction():
        old.reembed_fill("b", OLD)
    assert caught.value.message == 'bank "b" is embedded with model "old" already'
