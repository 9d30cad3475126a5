"""Rows that say nearly the same as the best one, in the order of time: the state of now first."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sqlcalls import Connection, call, create, retain

NOW = "2026-06-01"
OLD, MID, NEW, AHEAD, LATER = "2024-01-01", "2025-01-01", "2026-01-01", "2027-01-01", "2028-01-01"
BESIDE = ["the moon is far", "a stone is cold", "some bread is warm", "no cloud is square"]


def towards(angle: float) -> list[float]:
    """Return an embedding at an angle to that of the questions, 0."""
    return [math.cos(angle), math.sin(angle), 0]


def fact(colour: str, at: str, angle: float = 0.0, **fields: Any) -> dict[str, Any]:
    """Make a state of one thing, by default as near to the question as another."""
    text = f"the harbour is {colour}"
    return {"text": text, "occurred": at, "embedding": towards(angle), "mentioned_at": OLD} | fields


def fill(connection: Connection, *states: dict[str, Any], **settings: Any) -> list[int]:
    create(connection, embedding_dimensions=3)
    if settings:
        call(connection, "configure_bank", bank="b", settings=settings)
    beside = [{"text": text, "embedding": [0, 0, 1], "mentioned_at": OLD} for text in BESIDE]
    return retain(connection, [*states, *beside])


def rows(connection: Connection, query: str = "which harbour?", **arguments: Any) -> list[Any]:
    asked = {"embedding": towards(0), "as_of": NOW, **arguments}
    return call(connection, "hybrid_recall", bank="b", query=query, **asked)


def colours(connection: Connection, query: str = "which harbour?", **arguments: Any) -> str:
    """Return the colours of an answer, in its order."""
    found = rows(connection, query, **arguments)
    return " ".join(row.text.split()[3] for row in found if "harbour" in row.text)


# That which is asked for is the nearest to the question, so that the arms alone put it first.
STATES = [fact("red", OLD, 0), fact("blue", NEW, 0.2), fact("green", MID, 0.1)]


def test_the_latest_comes_first_of_what_the_question_does_not_tell_apart(
    connection: Connection,
) -> None:
    ids = fill(connection, *STATES)

    found = rows(connection)[:3]

    assert [row.memory_id for row in found] == [ids[1], ids[2], ids[0]]
    assert [row.variant_of for row in found] == [None, ids[1], ids[1]]


def test_each_state_takes_the_score_of_its_place_in_proportion(connection: Connection) -> None:
    fill(connection, *STATES)
    plain = rows(connection, arms=["semantic", "lexical"], weights={"temporal": 0}, prefer="former")

    found = rows(connection)

    assert [row.score for row in found] == sorted((row.score for row in found), reverse=True)
    assert len({row.score for row in found[:3]}) == 3
    for row in found:
        parts = [part["contribution"] for part in row.arms.values()]
        assert row.score == pytest.approx(sum(parts))
    assert {row.memory_id: row.arms["semantic"]["score"] for row in found[:3]} == {
        row.memory_id: row.arms["semantic"]["score"] for row in plain[:3]
    }


def test_states_of_equal_score_stand_by_time_too(connection: Connection) -> None:
    fill(connection, fact("red", NEW, source_id="s"), fact("green", OLD, source_id="s"))
    scores = {row.score for row in rows(connection, filter="text like '%harbour%'")}

    assert len(scores) == 1
    assert colours(connection) == "red green"
    assert colours(connection, diversity=0.001) == "red green"
    assert colours(connection, collapse=True) == "red"


def test_what_linear_fusion_gives_nothing_may_be_the_latest(connection: Connection) -> None:
    create(connection, embedding_dimensions=3)
    text = "the harbour of the small old town by the river in the north is {} these days"
    first = fact("", OLD, text=text.format("red"))
    latest = fact("", NEW, 0.2, text=text.format("blue") + " mate")
    retain(connection, [first, latest])

    best, last = rows(connection, "harbour", fusion="linear")

    assert (best.text, last.text) == (latest["text"], first["text"])
    assert last.score == 0
    assert best.score == pytest.approx(sum(arm["contribution"] for arm in best.arms.values()))


AHEAD_TOO = [*STATES, fact("grey", LATER, 0.05), fact("pink", AHEAD, 0.15)]


@pytest.mark.parametrize(
    ("during", "order"),
    [
        (None, "blue grey green pink red"),
        ("[2027-01-01, 2029-01-01)", "grey pink blue green red"),
        ("[2025-06-01, 2025-07-01)", "green red blue pink grey"),
        ("[2024-06-01, 2026-01-01)", "green red blue pink grey"),
        ("[2023-01-01, 2024-01-01)", "red green blue pink grey"),
        ("[2025-01-01,)", "blue green red pink grey"),
        ("(,2025-01-02)", "green red blue pink grey"),
    ],
)
def test_the_state_of_now_or_of_the_end_of_the_window_comes_first(
    connection: Connection, during: str | None, order: str
) -> None:
    fill(connection, *AHEAD_TOO)

    assert colours(connection, during=during) == order


def test_what_lies_ahead_is_no_state_of_what_lies_behind(connection: Connection) -> None:
    fill(connection, fact("grey", LATER, 0), fact("red", OLD, 0.1), fact("pink", AHEAD, 0.2))

    assert colours(connection) == "pink red grey"


def test_many_states_may_lie_further_apart_in_meaning(connection: Connection) -> None:
    fill(connection, fact("red", OLD, 0.6), fact("green", MID, 0.65), fact("blue", NEW, 0.7))

    assert colours(connection) == "blue green red"


def test_the_same_words_in_another_order_are_no_other_state(connection: Connection) -> None:
    create(connection, embedding_dimensions=3)
    old = fact("", OLD, text="Ana leads Ben")
    new = fact("", NEW, 0.05, text="Ben leads Ana")
    retain(connection, [old, new, fact("", MID, 0.1, text="Ana leads Bob")])

    found = [row.text for row in rows(connection, "who leads Ben?")]

    assert found[:2] == ["Ana leads Ben", "Ben leads Ana"]


def test_now_is_the_time_of_as_of(connection: Connection) -> None:
    fill(connection, *STATES)

    assert colours(connection, as_of="2025-06-01") == "green red blue"


def test_what_has_no_beginning_counts_from_when_it_was_said(connection: Connection) -> None:
    said = fact("blue", "2020-01-01", 0.2, mentioned_at=NEW)
    ids = fill(connection, fact("red", OLD), said, fact("green", MID, 0.3))
    connection.execute("update pgrecall.memory set occurred = null where memory_id = %s", [ids[1]])

    assert colours(connection) == "blue green red"


@pytest.mark.parametrize(("trusted", "order"), [("doc:*", "red blue"), ("web:*", "blue red")])
def test_trust_goes_before_time(connection: Connection, trusted: str, order: str) -> None:
    fill(
        connection,
        fact("red", OLD, 0.2, source_id="doc:1"),
        fact("blue", NEW, source_id="web:1"),
        source_trust={"doc:*": 0.98, "web:*": 0.98} | {trusted: 1},
    )

    assert colours(connection) == order


OWNERS = [("red", OLD, "Ana"), ("blue", NEW, "Bo")]


@pytest.mark.parametrize(
    ("old", "new", "query", "order"),
    [
        # By a word of the question, though it is as near.
        (fact("red", OLD), fact("blue", NEW), "harbour red?", "red blue"),
        (fact("red", OLD), fact("blue", NEW), "harbour?", "blue red"),
        # By the meaning, though they are near each other.
        (fact("red", OLD, 0.6), fact("blue", NEW, 1.0), "harbour?", "red blue"),
        (fact("red", OLD, 0.6), fact("blue", NEW, 0.7), "harbour?", "red blue"),
        (fact("red", OLD, 0.6), fact("blue", NEW, 0.65), "harbour?", "blue red"),
        # Or they say something else, though they are as near.
        (fact("red", OLD, 0.40), fact("blue", NEW, -0.45), "harbour?", "red blue"),
        (fact("red", OLD, 0.25), fact("blue", NEW, -0.30), "harbour?", "blue red"),
        # No word is common with the question.
        (fact("red", OLD), fact("blue", NEW, 0.2), "haven?", "red blue"),
        # By the key.
        (fact("red", OLD, fact_key="port.a"), fact("blue", NEW), "harbour port.a?", "red blue"),
        (
            fact("red", OLD, fact_key="port.a"),
            fact("blue", NEW, fact_key="port.b"),
            "harbour port.a port.b?",
            "blue red",
        ),
    ],
)
def test_what_the_question_tells_apart_keeps_its_order(
    connection: Connection, old: dict[str, Any], new: dict[str, Any], query: str, order: str
) -> None:
    fill(connection, old, new, key_weight=0)

    assert colours(connection, query) == order
    assert [row.variant_of is not None for row in rows(connection, query)[:2]] == [
        False,
        order == "blue red",
    ]


@pytest.mark.parametrize(("kind", "order"), [("caused_by", "red blue"), (None, "blue red")])
def test_what_a_path_led_to_is_told_apart(
    connection: Connection, kind: str | None, order: str
) -> None:
    rain = {"text": "rain fell in town", "embedding": [0.1, 0, 1], "mentioned_at": OLD}
    links = [{"kind": kind, "to_index": 0}] if kind else []
    create(connection, embedding_dimensions=3)
    retain(connection, [fact("red", OLD, 0.5), fact("blue", NEW, 0.53), rain | {"links": links}])

    assert colours(connection, "why did it rain over the harbour?") == order


@pytest.mark.parametrize(("kept", "first"), [("VX-77", "c8"), ("VX-78", "blue")])
def test_what_a_fact_about_who_is_named_led_to_is_told_apart(
    connection: Connection, kept: str, first: str
) -> None:
    keeper = {"text": "she keeps an old boat", "embedding": [0, 0, 1], "mentioned_at": OLD}
    create(connection, embedding_dimensions=3)
    retain(
        connection,
        [
            *(fact(f"c{n}", f"2024-01-0{n}", 0.5) for n in range(1, 9)),
            fact("blue", NEW, 0.53, entities=["VX-77"]),
            keeper | {"entities": ["Ana", kept]},
        ],
    )

    # Of the weight of the graph only so much that the states come before what led to them.
    found = colours(connection, "which harbour has Ana?", graph_steps=3, weights={"graph": 0.1})

    assert found.split()[0] == first


def test_a_name_that_no_text_has_tells_facts_apart(connection: Connection) -> None:
    she, he = (fact(of, at, entities=[who]) for of, at, who in OWNERS)
    fill(connection, she, he)

    assert colours(connection, "which harbour has Ana?") == "red blue"
    assert colours(connection, "which harbour has Bo?") == "blue red"
    assert colours(connection, "which harbour has he?") == "blue red"


@pytest.mark.parametrize(
    ("states", "order"), [(39, "blue c38 c37 c36 c35"), (40, "c39 c38 c37 c36 c35")]
)
def test_the_latest_may_lie_behind_what_is_asked_for_up_to_rank_40(
    connection: Connection, states: int, order: str
) -> None:
    facts = [fact(f"c{n}", f"2025-03-01T00:{n:02}Z", n / 1000) for n in range(states)]
    fill(connection, *facts, fact("blue", NEW, 0.2))

    assert colours(connection, top_k=5) == order
    assert colours(connection, top_k=100).startswith(order)


def test_surplus_rows_stay_behind(connection: Connection) -> None:
    fill(
        connection,
        *(state | {"source_id": "one"} for state in STATES),
        fact("pink", "2025-06-01", 0.3),
    )

    assert colours(connection, source_rows=2) == "pink green red blue"


def test_collapse_and_diversity_take_the_order_of_states(connection: Connection) -> None:
    sources = ["one", "one", "two"]
    fill(
        connection, *(state | {"source_id": of} for state, of in zip(STATES, sources, strict=True))
    )

    assert colours(connection, collapse=True) == "blue green"
    assert colours(connection, diversity=0.001) == "blue green red"


def test_a_message_is_no_state(connection: Connection) -> None:
    fill(connection, *STATES)
    messages = [{"text": "the harbour is pink", "sent_at": "2026-05-01"}]
    call(connection, "retain_messages", bank="b", messages=messages)

    found = [row for row in rows(connection) if "harbour" in row.text]

    assert [row.text.split()[3] for row in found if row.kind == "memory"] == [
        "blue",
        "green",
        "red",
    ]
    assert [row.variant_of for row in found if row.kind == "message"] == [None]


def test_without_an_embedding_words_alone_decide(connection: Connection) -> None:
    fill(connection, *STATES)

    assert colours(connection, embedding=None) == "blue green red"


@pytest.mark.parametrize(
    ("prefer", "order"), [("latest", "blue green red"), ("former", "red green blue")]
)
def test_prefer_has_an_order_of_its_own(connection: Connection, prefer: str, order: str) -> None:
    fill(connection, *STATES)

    assert colours(connection, prefer=prefer) == order
    assert {row.variant_of for row in rows(connection, prefer=prefer)} == {None}


@pytest.mark.parametrize(
    ("at", "names", "query", "order"),
    [
        # Loaded at once, and told apart by the question, or not.
        ("2024-01-01T00:10Z", [], "red harbour by the old mill now?", "red blue"),
        ("2024-01-01T00:10Z", [], "harbour by the old mill now?", "blue red"),
        ("2024-01-01T00:10Z", ["Ana"], "red harbour by the old mill now?", "blue red"),
        ("2024-01-01T02:00Z", [], "red harbour by the old mill now?", "blue red"),
        (NEW, [], "haven now?", "blue red"),
    ],
)
def test_without_entities_the_question_says_what_prefer_orders(
    connection: Connection, at: str, names: list[str], query: str, order: str
) -> None:
    red = fact("red", "2024-01-01T00:00Z", entities=names)
    blue = fact("blue", at, 0.1, entities=names)
    fill(connection, *({**one, "text": one["text"] + " by the old mill"} for one in (red, blue)))

    assert colours(connection, query, prefer="latest") == order


def test_the_latest_asked_for_is_that_up_to_the_end_of_the_window(connection: Connection) -> None:
    fill(connection, *STATES)

    found = colours(connection, prefer="latest", during="[2025-06-01, 2025-07-01)")

    assert found == "green red blue"


def test_behind_row_security_states_are_those_of_the_bank_of_the_role(
    connection: Connection,
) -> None:
    fill(connection, *STATES)
    create(connection, "other", embedding_dimensions=3)
    retain(connection, [fact("pink", "2026-05-01")], bank="other")
    connection.execute("create role b")
    connection.execute("grant usage on schema pgrecall, pgrecall_internal to b")
    connection.execute("grant select on all tables in schema pgrecall, pgrecall_internal to b")
    call(connection, "enable_row_security")

    connection.execute("set local role b")

    assert colours(connection) == "blue green red"
    connection.execute("reset role")
