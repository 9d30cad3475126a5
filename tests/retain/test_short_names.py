"""Short names of entities of unknown kind: embeddings of the names tell who is one person."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timezone
from typing import Any

import pytest

from pgrecall import Recall
from pgrecall.retaining.facts import LISTINGS, FactBatch
from pgrecall.settings import Settings
from sqlcalls import Connection, call, counted_scans, create, retain, rows, value

MODEL, DIMENSIONS = "pgrecall-small-2", 768
NOTHING = [1.0] + (DIMENSIONS - 1) * [0.0]


def about(text: str, *entities: Any, **fields: Any) -> dict[str, Any]:
    return {"text": text, "entities": list(entities), "embedding": NOTHING, **fields}


def known(connection: Connection) -> list[str]:
    return [name for (name,) in rows(connection, "select name from pgrecall.entity order by 1")]


def pending(connection: Connection, *memory_ids: int, **arguments: Any) -> list[str]:
    if memory_ids:
        arguments["memory_ids"] = list(memory_ids)
    return [row.text for row in call(connection, "names_pending", bank="b", **arguments)]


def judge(connection: Connection, odds: Mapping[str, float]) -> None:
    """Store embeddings of the names that are pending, by the logarithms of their odds."""
    direction = json.loads(
        value(
            connection,
            "select pgrecall_internal._person_direction(b)::text from pgrecall.bank b",
        )
    )
    length = sum(x * x for x in direction) ** 0.5
    axis = [x / length for x in direction]
    # Any vector at right angles.
    other = [-axis[1], axis[0], *(0 for _ in axis[2:])]
    other_length = sum(x * x for x in other) ** 0.5

    def vector(name: str) -> list[float]:
        cosine = (odds[name] + 8.05) / 66.9
        sine = (1 - cosine * cosine) ** 0.5 / other_length
        return [cosine * a + sine * o for a, o in zip(axis, other, strict=True)]

    names = call(connection, "names_pending", bank="b")
    assert {row.text for row in names} == odds.keys()
    given = [{**row._asdict(), "embedding": vector(row.text)} for row in names]
    assert (
        value(connection, "select pgrecall.embed_store('b', %s, %s)", json.dumps(given), MODEL) == 0
    )


@pytest.fixture
def bank(connection: Connection) -> Connection:
    create(connection)
    retain(connection, [about("first")], model=MODEL)
    return connection


@pytest.mark.parametrize(
    "names", [["Ana", "Ana Silva"], ["Ana Silva", "Ana"], ["Silva", "Ana Silva"]]
)
def test_names_of_one_person_become_one_entity(bank: Connection, names: list[str]) -> None:
    for n, name in enumerate(names):
        retain(bank, [about(f"fact {n}", name)])
    short = min(names, key=len)

    judge(bank, {short: 3, "Ana Silva": 3})

    assert known(bank) == ["Ana Silva"]
    assert value(bank, "select count(*) from pgrecall.mention") == 2
    for name in names:
        (found,) = call(bank, "query_entities", bank="b", query=f"Where is {name}?")
        assert (found.name, found.confidence) == ("Ana Silva", 1)
    # From now on nothing is in doubt.
    (memory_id,) = retain(bank, [about("later", short)])
    assert pending(bank) == pending(bank, memory_id) == []
    assert known(bank) == ["Ana Silva"]


@pytest.mark.parametrize(
    ("short", "full", "is_one"),
    [
        (1.1, 1, True),
        (0.9, 1, False),
        (-0.4, 2.5, True),
        (-0.6, 9, False),
        (2.5, -0.4, True),
        (9, -0.6, False),
    ],
)
def test_both_have_to_be_names_of_a_person(
    bank: Connection, short: float, full: float, is_one: bool
) -> None:
    retain(bank, [about("a", "Ana"), about("b", "Ana Silva")])

    judge(bank, {"Ana": short, "Ana Silva": full})

    assert known(bank) == (["Ana Silva"] if is_one else ["Ana", "Ana Silva"])


def test_a_name_that_two_people_have_stays_apart(bank: Connection) -> None:
    retain(bank, [about("a", "Ana"), about("b", "Ana Silva"), about("c", "Ana Costa")])

    judge(bank, {"Ana": 3, "Ana Silva": 3, "Ana Costa": 3})

    assert known(bank) == ["Ana", "Ana Costa", "Ana Silva"]


def test_what_is_no_person_takes_no_name_away(bank: Connection) -> None:
    retain(bank, [about("a", "Ana"), about("b", "Ana Silva"), about("c", "Ana Castle")])

    judge(bank, {"Ana": 3, "Ana Silva": 3, "Ana Castle": -3})

    assert known(bank) == ["Ana Castle", "Ana Silva"]


def test_of_a_person_only_the_short_name_is_in_doubt(bank: Connection) -> None:
    retain(bank, [about("a", "Ana"), about("b", "Ana Silva")])
    retain(bank, [about("c", {"name": "Ana Silva", "kind": "person"})])

    judge(bank, {"Ana": 0})

    assert known(bank) == ["Ana Silva"]


def test_the_kind_of_a_full_name_may_be_in_any_words(bank: Connection) -> None:
    retain(bank, [about("a", "Ana"), about("b", {"name": "Ana Silva", "kind": "author"})])

    judge(bank, {"Ana": 3, "Ana Silva": 3})

    assert known(bank) == ["Ana Silva"]


# of kinds in any words


def named(name: str, kind: str) -> dict[str, str]:
    return {"name": name, "kind": kind}


@pytest.mark.parametrize(("odds", "is_one"), [(1.1, True), (0.9, False)])
@pytest.mark.parametrize("is_short_first", [True, False])
def test_full_names_of_a_kind_tell_whether_it_is_of_people(
    bank: Connection, odds: float, is_one: bool, is_short_first: bool
) -> None:
    retain(bank, [about("a", named("Bo Lind", "Mate")), about("b", named("Cy Roe", "mate"))])
    names = [named("Ana", "mate"), named("Ana Silva", "person")]
    for n, name in enumerate(names if is_short_first else names[::-1]):
        retain(bank, [about(f"fact {n}", name)])

    judge(bank, {"Ana": 3, "Bo Lind": odds + 5, "Cy Roe": odds - 5})

    assert known(bank) == [*([] if is_one else ["Ana"]), "Ana Silva", "Bo Lind", "Cy Roe"]


def test_a_kind_without_full_names_is_of_no_people(bank: Connection) -> None:
    retain(bank, [
        about("a", named("Ana", "mate")),
        about("b", named("Ana Silva", "person")),
        about("c", named("Bo", "mate"), named("Ana 2", "mate"), named("Ana Lind", "captain")),
    ])  # fmt: skip

    judge(bank, {"Ana": 9, "Ana Lind": -3})

    assert known(bank) == ["Ana", "Ana 2", "Ana Lind", "Ana Silva", "Bo"]


def test_a_full_name_tells_its_own_kind(bank: Connection) -> None:
    retain(bank, [about("a", named("Ana", "mate")), about("b", named("Ana Silva", "mate"))])

    judge(bank, {"Ana": 3, "Ana Silva": 3})

    assert known(bank) == ["Ana Silva"]


def test_five_full_names_of_a_kind_are_enough(bank: Connection) -> None:
    retain(bank, [about("a", named("Ana", "mate")), about("b", named("Ana Silva", "person"))])
    retain(bank, [about("c", *(named(f"Bo {x}ind", "mate") for x in "ABCDEF"))])

    assert pending(bank) == ["Ana", "Bo Bind", "Bo Cind", "Bo Dind", "Bo Eind", "Bo Find"]


def test_beside_a_boat_a_person_is_meant_by_the_short_name(bank: Connection) -> None:
    retain(bank, [about("a", named("Ana", "boat")), about("b", named("Sea Lily", "boat"))])
    retain(bank, [about("c", named("Ana Silva", "person"))])
    retain(bank, [about("d", named("Ana", "person"))])

    judge(bank, {"Ana": 3, "Sea Lily": -3})

    assert rows(bank, "select name, kind from pgrecall.entity order by 1") == [
        ("Ana", "boat"), ("Ana Silva", "person"), ("Sea Lily", "boat"),
    ]  # fmt: skip


def test_relations_lead_on_from_a_short_name(bank: Connection) -> None:
    retain(bank, [
        about("a", relations=[{"from": "Bo", "kind": "knows", "to": "Ana Silva"}]),
        about("b", relations=[{"from": "Ana", "kind": "knows", "to": "Cy"}]),
    ])  # fmt: skip

    judge(bank, {"Ana": 3, "Ana Silva": 3})

    ends = rows(
        bank,
        "select f.name, t.name from pgrecall.relation r"
        " join pgrecall.entity f on f.entity_id = r.from_id"
        " join pgrecall.entity t on t.entity_id = r.to_id order by r.relation_id",
    )
    assert ends == [("Bo", "Ana Silva"), ("Ana Silva", "Cy")]


@pytest.mark.parametrize(
    "facts",
    [
        # Of known kind, which retain() has decided.
        [["Ana"], [{"name": "Ana Castle", "kind": "place"}]],
        [[{"name": "Ana", "kind": "place"}], ["Ana Silva"]],
        # A fact that names both tells them apart.
        [["Ana", "Ana Silva"]],
        # Neither begins nor ends with it, nor is it a name.
        [["Ana"], ["Marie Ana Silva"]],
        [["Ana"], ["Anabel Silva"]],
        [["ana"], ["Ana Silva"]],
        [["Mom"], ["Ana's Mom"]],
        [["Ana"], ["Ana boss"]],
        # Numbers and dates.
        [["1999"], ["May 1999"]],
        [["May"], ["May 1999"]],
        # Many have the name.
        [["Ana"], ["Ana Lee"], ["Ana Roe"], ["Ana Sato"], ["Ana Diaz"]],
    ],
)
def test_nothing_is_asked_about_others(bank: Connection, facts: Sequence[Sequence[Any]]) -> None:
    memory_ids = retain(bank, [about(f"fact {n}", *names) for n, names in enumerate(facts)])

    assert pending(bank) == pending(bank, *memory_ids) == []


def test_only_new_names_are_listed_after_a_retain(bank: Connection) -> None:
    first, second = retain(bank, [about("a", "Ana"), about("b", "Ana Silva")])
    assert pending(bank, first) == ["Ana", "Ana Silva"]

    (third,) = retain(bank, [about("c", "Ana", "Ana Roe")])
    (fourth,) = retain(bank, [about("d", "Ana")])

    # The first two were listed with themselves; the third names both.
    assert pending(bank, third) == pending(bank, fourth) == []
    assert pending(bank, second) == pending(bank) == ["Ana", "Ana Silva"]


def test_a_name_is_at_a_fact_that_mentions_it(bank: Connection) -> None:
    first, second = retain(bank, [about("a", "Ana"), about("b", "Ana Silva")])

    listed = call(bank, "names_pending", bank="b")

    assert [(row.memory_id, row.kind, row.ordinal, row.text, row.context) for row in listed] == [
        (first, "name", 0, "Ana", None),
        (second, "name", 0, "Ana Silva", None),
    ]


def test_nothing_is_asked_where_the_embeddings_say_nothing(connection: Connection) -> None:
    create(connection)
    retain(connection, [{**about("a", "Ana"), "embedding": [1, 0]}], model="other")
    retain(connection, [{**about("b", "Ana Silva"), "embedding": [1, 0]}], model="other")

    assert pending(connection) == []


def test_nothing_is_asked_where_a_mean_is_subtracted(bank: Connection) -> None:
    retain(bank, [about("a", "Ana"), about("b", "Ana Silva")])
    bank.execute(
        "update pgrecall.bank set calibrations = jsonb_build_object(embedding_model,"
        " jsonb_build_object('mean', %s::text))",
        [json.dumps(NOTHING)],
    )

    assert pending(bank) == []


def test_nothing_is_asked_in_words_of_another_model(bank: Connection) -> None:
    retain(bank, [about("a", "Ana"), about("b", "Ana Silva")])

    assert pending(bank, model="other") == []
    assert pending(bank, model=MODEL) == ["Ana", "Ana Silva"]


def test_a_role_that_may_only_add_is_asked_nothing(bank: Connection) -> None:
    bank.execute("create role adder")
    bank.execute("grant usage on schema pgrecall, pgrecall_internal to adder")
    bank.execute("grant select, insert, update on all tables in schema pgrecall to adder")
    bank.execute("grant select, insert, update on all tables in schema pgrecall_internal to adder")
    bank.execute("grant usage, select on all sequences in schema pgrecall to adder")
    bank.execute("set local role adder")
    retain(bank, [about("a", "Ana"), about("b", "Ana Silva")])

    assert pending(bank) == []
    bank.execute("reset role")
    assert pending(bank) == ["Ana", "Ana Silva"]


def test_names_are_found_by_indexes(bank: Connection) -> None:
    (memory_id, *_) = retain(bank, [
        about("a", named("Ana", "mate")),
        about("b", "Ana Silva"),
        about("c", named("Bo Lind", "mate")),
    ])  # fmt: skip

    with counted_scans(bank) as scans:
        assert pending(bank, memory_id) == ["Ana", "Ana Silva", "Bo Lind"]

    tables = {"entity", "entity_alias", "mention", "memory"}
    assert tables.isdisjoint(scans), scans


@pytest.mark.parametrize(
    ("entities", "relations", "listings"),
    [
        ([], [], ()),
        (["Ana"], [], LISTINGS[1:]),
        ([{"name": "Ana"}], [], LISTINGS[1:]),
        ([{"name": "Ana", "kind": "person"}], [], LISTINGS[1:]),
        ([], [{"from": "Ana", "kind": "knows", "to": "Bo"}], LISTINGS),
    ],
)
def test_the_client_asks_only_where_there_are_names(
    entities: list[Any], relations: list[Any], listings: Any
) -> None:
    settings = Settings(None, None, timezone.utc, None)
    facts = [{"text": "a", "entities": entities, "relations": relations}]

    assert FactBatch(settings, facts, None).listings == listings


# from strangers


@pytest.fixture
def guarded(bank: Connection) -> Connection:
    call(bank, "configure_bank", bank="b", settings={"source_trust": {"web:*": 0.2}})
    return bank


@pytest.mark.parametrize(
    ("source", "names"), [("web:x", ["Ana", "Ana Fox"]), ("handbook", ["Ana Fox"])]
)
def test_a_stranger_renames_nobody(guarded: Connection, source: str, names: list[str]) -> None:
    retain(guarded, [about("a", {"name": "Ana", "kind": "person"})])

    retain(guarded, [about("b", {"name": "Ana Fox", "kind": "person"}, source_id=source)])

    assert known(guarded) == names


@pytest.mark.parametrize(
    ("short", "full", "names"),
    [
        ("handbook", "web:x", ["Ana", "Ana Fox"]),
        ("web:x", "handbook", ["Ana Fox"]),
        ("web:x", "web:x", ["Ana", "Ana Fox"]),
    ],
)
def test_a_stranger_renames_nobody_of_unknown_kind(
    guarded: Connection, short: str, full: str, names: list[str]
) -> None:
    retain(guarded, [
        about("a", "Ana", source_id=short), about("b", "Ana Fox", source_id=full),
    ])  # fmt: skip

    judge(guarded, {"Ana": 3, "Ana Fox": 3})

    assert known(guarded) == names


@pytest.mark.parametrize(
    ("source", "meant"), [("web:x", {"Ana Silva"}), ("handbook", {"Ana Silva", "Mallory"})]
)
def test_an_alias_from_a_stranger_is_not_taken(
    guarded: Connection, source: str, meant: set[str]
) -> None:
    mallory = {"name": "Mallory", "aliases": ["Ana Silva"]}
    retain(guarded, [about("a", "Ana Silva"), about("b", "Mallory")])

    retain(guarded, [about("c", mallory, source_id=source)])

    found = call(guarded, "query_entities", bank="b", query="Where is Ana Silva?")
    assert {row.name for row in found} == meant
    assert value(guarded, "select count(*) from pgrecall.mention") == 3


# with the packaged model


@pytest.fixture
def recall(connection: Connection) -> Recall:
    recall = Recall(connection, reranker=None)
    recall.create_bank("b")
    return recall


TOLD: list[dict[str, Any]] = [
    {"text": "Malcolm went sailing.", "entities": ["Malcolm"]},
    {"text": "Malcolm Dunmore has a boat.", "entities": ["Malcolm Dunmore"]},
    {"text": "Rome is hot in August.", "entities": ["Rome"]},
    {"text": "Ancient Rome had a senate.", "entities": ["Ancient Rome"]},
    {"text": "The Rossi house is for sale.", "relations": [
        {"from": "Greta", "kind": "sells", "to": "the house"}]},
    {"text": "Greta Rossi is a notary.", "entities": [{"name": "Greta Rossi"}]},
]  # fmt: skip
NAMES = ["Ancient Rome", "Greta Rossi", "Malcolm Dunmore", "Rome", "the house"]


@pytest.mark.parametrize("size", [1, len(TOLD)])
def test_the_client_judges_names_as_it_retains(
    recall: Recall, connection: Connection, size: int
) -> None:
    for start in range(0, len(TOLD), size):
        recall.retain("b", TOLD[start : start + size])

    assert known(connection) == NAMES


def test_names_stored_in_sql_are_judged_with_what_is_pending(
    recall: Recall, connection: Connection
) -> None:
    retain(connection, TOLD)

    recall.embed_pending("b")

    assert known(connection) == NAMES


def test_a_failing_embedder_leaves_names_as_they_are(
    connection: Connection, recall: Recall
) -> None:
    recall.retain("b", TOLD[:1])

    def fail(texts: Sequence[str]) -> list[list[float]]:
        if "Malcolm" in texts:
            raise OSError("gone")
        return [NOTHING for _ in texts]

    Recall(connection, embedder=fail, model=MODEL, reranker=None).retain("b", TOLD[1:2])

    assert known(connection) == ["Malcolm", "Malcolm Dunmore"]
