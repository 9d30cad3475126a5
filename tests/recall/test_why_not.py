"""why_not() says of any memory where a recall has it, or what keeps it out."""

from __future__ import annotations

from typing import Any

import pytest

from servers import kept_fixture
from sqlcalls import Connection, call, create, refused, retain, value

Step = tuple[str, int | None, str | None]


def why_not(
    connection: Connection, memory_id: int, query: str, **arguments: Any
) -> dict[str, Step]:
    """Return status, rank and reason of each step."""
    steps = call(connection, "why_not", bank="b", query=query, memory_id=memory_id, **arguments)
    return {step.step: (step.status, step.rank, step.reason) for step in steps}


def out_of_reach(reason: str) -> dict[str, Step]:
    return {
        "reach": ("left out", None, reason),
        "answer": ("left out", None, reason),
    }


@kept_fixture
def harbour(connection: Connection) -> None:
    """Twenty boats, that lie ever farther from the embedding [1, 0]."""
    create(connection, settings={"similarity_floor": -1})
    facts = [
        {
            "text": f"boat {n} lies in the harbour",
            "embedding": [20 - n, n],
            "source_id": f"s{n // 2}",
            "occurred": f"2026-03-{n + 1:02}",
            "confidence": n / 20,
        }
        for n in range(20)
    ]
    retain(connection, facts, model="m")


ASKED: list[dict[str, Any]] = [
    {},
    {"embedding": [1, 0]},
    {"embedding": [1, 0], "top_k": 3, "skip": 2},
    {"embedding": [1, 0], "collapse": True},
    {"embedding": [1, 0], "diversity": 0.7},
    {"embedding": [1, 0], "fusion": "linear", "recency_half_life": "3 days"},
    {"embedding": [1, 0], "prefer": "latest"},
    {"embedding": [1, 0], "during": "[2026-03-10,2026-03-12)", "time_mode": "filter"},
    {"embedding": [1, 0], "filter": "confidence > 0.5", "weights": {"lexical": 0}},
    {"embedding": [1, 0], "depth": 5, "top_k": 5},
    {"embedding": [1, 0], "min_relevance": 0.99},
    {"embedding": [1, 0], "gates": {"lexical": 1000}},
]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_it_has_each_memory_where_the_recall_has_it(
    harbour: Connection, asked: dict[str, Any]
) -> None:
    everything = [row.memory_id for row in call(harbour, "list_memories", bank="b")]

    found = call(harbour, "hybrid_recall", bank="b", query="boat 7", **asked)
    steps = {one: why_not(harbour, one, "boat 7", **asked) for one in everything}

    skip = asked.get("skip", 0)
    assert {
        one: told["answer"][1] for one, told in steps.items() if told["answer"][0] == "returned"
    } == {row.memory_id: row.rank for row in found}
    assert all(told["answer"][2] for told in steps.values())
    assert found
    assert found[0].rank == skip + 1
    for row in found:
        ranks = {arm: part["rank"] for arm, part in row.arms.items()}
        told = steps[row.memory_id]
        assert {arm: told[arm][1] for arm in ranks} == ranks


def test_a_memory_beyond_the_end_of_the_answer_is_told_its_place(harbour: Connection) -> None:
    last = value(harbour, "select max(memory_id) from pgrecall.memory where bank_id = 'b'")

    told = why_not(harbour, last, "", embedding=[1, 0], top_k=5)

    assert told["semantic"] == ("found", 20, None)
    assert told["fusion"] == ("found", 20, "of 20")
    assert told["answer"] == ("left out", 20, "of 20; the answer ends at 5")


def test_a_memory_beyond_the_depth_of_an_arm_is_told_its_score(harbour: Connection) -> None:
    last = value(harbour, "select max(memory_id) from pgrecall.memory where bank_id = 'b'")

    asked = {"bank": "b", "query": "", "memory_id": last, "embedding": [1, 0], "depth": 5}
    steps = {step.step: step for step in call(harbour, "why_not", **asked)}

    missed = steps["semantic"]
    assert (missed.status, missed.rank) == ("missed", None)
    assert missed.score == pytest.approx(1 / 362**0.5, abs=1e-3)
    assert missed.reason == "the arm found 5 with a score of at least 0.9701"
    assert steps["fusion"].reason == "no arm found it"
    assert (steps["answer"].status, steps["answer"].rank) == ("left out", None)


def test_a_memory_below_the_floor_is_told_so(harbour: Connection) -> None:
    last = value(harbour, "select max(memory_id) from pgrecall.memory where bank_id = 'b'")

    told = why_not(harbour, last, "", embedding=[1, 0], similarity_floor=0.2)

    assert told["semantic"][2] == "its similarity is below similarity_floor, 0.2"


def test_what_ended_is_told_how(connection: Connection) -> None:
    create(connection)
    old, new, gone, coming, keyed = retain(
        connection,
        [
            {"text": "old boat", "mentioned_at": "2026-01-01"},
            {"text": "new boat", "mentioned_at": "2026-01-01"},
            {"text": "gone boat", "mentioned_at": "2026-01-01", "expires_at": "2026-02-01"},
            {"text": "late boat", "mentioned_at": "2026-06-01"},
            {"text": "boat key", "fact_key": "k", "mentioned_at": "2026-01-01"},
        ],
    )
    connection.execute("set local timezone = 'UTC'")
    connection.execute("select pgrecall.supersede('b', %s, %s, '2026-03-01')", [old, new])
    (newer,) = retain(
        connection,
        [{"text": "boat key again", "fact_key": "k", "mentioned_at": "2026-04-01"}],
        replace="key",
    )

    told = {
        one: why_not(connection, one, "boat", as_of="2026-05-01")
        for one in (old, gone, coming, keyed)
    }

    assert told == {
        old: out_of_reach(f"it ended at 2026-03-01 00:00:00+00: it was superseded by {new}"),
        gone: out_of_reach("it ended at 2026-02-01 00:00:00+00: it expired"),
        coming: out_of_reach(
            "it is known from 2026-06-01 00:00:00+00 on, when it was stored or, where that is"
            " earlier, its mentioned_at; the recall is as of 2026-05-01 00:00:00+00"
        ),
        keyed: out_of_reach(
            f"it ended at 2026-04-01 00:00:00+00: a newer fact replaced it by {newer}"
        ),
    }
    assert why_not(connection, old, "boat", as_of="2026-02-01")["answer"][0] == "returned"


def test_what_a_fact_replaced_that_is_gone_is_told_how_it_ended(connection: Connection) -> None:
    create(connection, settings={"replace": "key"})
    connection.execute("set local timezone = 'UTC'")
    first, spam, last = (
        retain(
            connection,
            [
                {
                    "text": f"{source} boat",
                    "fact_key": "k",
                    "source_id": source,
                    "mentioned_at": f"2026-0{month}-01",
                }
            ],
        )[0]
        for month, source in enumerate(("log", "spam", "book"), 1)
    )
    call(connection, "quarantine", bank="b", source="spam")

    by_last = why_not(connection, first, "boat")
    call(connection, "release", bank="b", source="spam")
    call(connection, "forget", bank="b", memory_ids=[spam])

    assert by_last == out_of_reach(
        f"it ended at 2026-03-01 00:00:00+00: a newer fact replaced it by {last}"
    )
    assert why_not(connection, first, "boat") == out_of_reach(
        "it ended at 2026-02-01 00:00:00+00: a newer fact replaced it"
    )


def test_what_a_source_of_no_trust_or_in_quarantine_says_is_told_so(connection: Connection) -> None:
    create(connection, settings={"source_trust": {"web:*": 0}})
    doubted, hidden = retain(
        connection,
        [
            {"text": "a red boat", "source_id": "web:x"},
            {"text": "a blue boat", "source_id": "spam"},
        ],
    )
    call(connection, "quarantine", bank="b", source="spam")

    assert why_not(connection, hidden, "boat") == out_of_reach(
        'its source, "spam", is in quarantine'
    )
    assert why_not(connection, doubted, "boat")["answer"] == (
        "left out",
        None,
        'the trust in its source, "web:x", is 0',
    )


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"fact_types": ["event"]}, "its type is world, and asked for is event"),
        ({"tags": ["a", "b"]}, 'it does not meet ["overlaps", "tags", ["a", "b"]]'),
        (
            {"filter": "fact_type = 'world' and (confidence > 0.5 and confidence < 0.9)"},
            'it does not meet ["<", "confidence", 0.9]',
        ),
        (
            {"during": "[2026-03-01Z,2026-03-02Z)", "time_mode": "filter"},
            'it does not meet ["overlaps", "occurred",'
            ' ["2026-03-01T00:00:00+00:00", "2026-03-02T00:00:00+00:00"]]',
        ),
        (
            {"use_hints": True, "type_hints": {"event": ["sank"]}, "widen_below": 0},
            'its type is world, and the recall was narrowed: only event, by the word "sank"',
        ),
    ],
    ids=["fact_types", "tags", "filter", "time_mode", "use_hints"],
)
def test_what_a_recall_leaves_out_is_told_the_condition(
    connection: Connection, asked: dict[str, Any], reason: str
) -> None:
    connection.execute("set local timezone = 'UTC'")
    create(connection)
    boat, _ = retain(
        connection,
        [
            {"text": "the boat sank", "occurred": "2026-03-05", "tags": ["c"]},
            {"text": "the cat came", "fact_type": "event"},
        ],
    )

    assert why_not(connection, boat, "which boat sank?", **asked) == out_of_reach(reason)


@pytest.mark.parametrize(
    ("query", "arm", "reason"),
    [
        ("a cat", "semantic", "it has no embedding of the model of the bank"),
        ("a cat", "lexical", "it has no word of the query"),
        (
            '"little boat"',
            "lexical",
            "a phrase that it lacks, or a word that it must not have, keeps it out",
        ),
        (
            "boat -sea",
            "lexical",
            "a phrase that it lacks, or a word that it must not have, keeps it out",
        ),
        ("boat", "key", "the arm found nothing"),
        ("boat k.other", "key", "it is none of the 1 that the arm leads to"),
    ],
)
def test_an_arm_that_misses_a_memory_says_why(
    connection: Connection, query: str, arm: str, reason: str
) -> None:
    create(connection)
    boat, *_ = retain(connection, [{"text": "a boat at sea"}])
    others = [
        {"text": "a cat", "fact_key": "k.other", "embedding": [1, 0]},
        {"text": "little boat"},
    ]
    retain(connection, others, model="m")

    told = why_not(connection, boat, query, embedding=[1, 0])

    assert told[arm] == ("missed", None, reason)


def test_an_arm_that_did_not_run_says_why(connection: Connection) -> None:
    create(connection)
    boat, _ = retain(connection, ["a boat at sea", "another boat"])

    told = why_not(connection, boat, "boat", weights={"lexical": 0})

    assert told["lexical"] == ("skipped", None, "its weight is 0")
    assert told["semantic"] == ("skipped", None, "no embedding given")
    assert told["fusion"] == ("missed", None, "no arm found it")


def test_a_gated_arm_does_not_count(connection: Connection) -> None:
    create(connection)
    boat, _ = retain(connection, ["a boat at sea", {"text": "a cat", "fact_key": "cat.key"}])

    told = why_not(connection, boat, "boat cat.key", gates={"lexical": 100})

    assert told["lexical"][:2] == ("gated", 2)
    assert "is below the gate 100" in str(told["lexical"][2])
    assert told["fusion"] == ("missed", None, "only arms below their gates found it")


def test_what_follows_the_fusion_is_told(connection: Connection) -> None:
    create(connection)
    first, second = retain(
        connection,
        [{"text": "boat boat", "source_id": "log"}, {"text": "a boat at sea", "source_id": "log"}],
    )

    collapsed = why_not(connection, second, "boat", collapse=True)
    unlikely = why_not(connection, second, "boat seal", min_relevance=0.99)
    paged = why_not(connection, first, "boat", skip=1)

    assert collapsed["answer"][2] == 'a better row has its source_id, "log", and collapse is set'
    assert str(unlikely["answer"][2]).startswith("its relevance is 0.")
    assert str(unlikely["answer"][2]).endswith(", and min_relevance 0.99")
    assert paged["answer"] == ("left out", 1, "an earlier page has it: skip is 1")


def test_a_message_is_followed_too(connection: Connection) -> None:
    create(connection)
    sent = {"text": "Is the boat back?", "sent_at": "2026-03-05T12:00Z"}
    ((_, message, _),) = call(connection, "retain_messages", bank="b", messages=[sent])
    connection.execute("set local timezone = 'UTC'")

    found = why_not(connection, message, "boat")
    filtered = why_not(connection, message, "boat", filter="confidence > 0")
    early = why_not(connection, message, "boat", as_of="2026-01-01")

    assert found == {
        "reach": ("found", None, None),
        "message": ("found", 1, None),
        "fusion": ("found", 1, "of 1"),
        "answer": ("returned", 1, "of 1"),
    }
    assert filtered["answer"] == (
        "left out",
        None,
        "a filter is about memories, and it is a message",
    )
    assert early["reach"][2] == (
        "it was sent at 2026-03-05 12:00:00+00, and the recall is as of 2026-01-01 00:00:00+00"
    )


def test_an_unknown_memory_is_refused(connection: Connection) -> None:
    create(connection)
    with refused(connection, "RC010", 'bank "b" has no memory 7', "retain"):
        call(connection, "why_not", bank="b", query="boat", memory_id=7)
    with refused(connection, "RC010", 'bank "b" has no memory null', "retain"):
        call(connection, "why_not", bank="b", query="boat", memory_id=None)
