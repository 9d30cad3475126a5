"""Entities: who is meant by a name, and what is done when that was taken wrongly."""

from __future__ import annotations

from typing import Any

import pytest

from banks import Connection, call, create, retain


def about(text: str, *entities: Any, **fields: Any) -> dict[str, Any]:
    return {"text": text, "entities": list(entities), **fields}


def without_names(connection: Connection, query: str | None) -> str | None:
    ((found,),) = call(connection, "without_names", bank="b", query=query)
    return found


def named(connection: Connection, query: str) -> dict[str, float]:
    """Confidence by name of the entities in a query."""
    found = call(connection, "query_entities", bank="b", query=query)
    return {row.name: pytest.approx(row.confidence) for row in found}


# without_names


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("what did Ana Silva say", "what did say"),
        ("What did ANA-silva say about Ana?", "What did say about?"),
        ("Did Caroline's prices change?", "Did prices change?"),
        ("Did Caroline’s prices change?", "Did prices change?"),  # noqa: RUF001
        ("James' boat sank", "boat sank"),
        ("Ana, where do you keep boats?", "where do you keep boats?"),
        ('does "Ana" (Caroline) travel', "does travel"),
        ("ask @Ana about #Caroline and boats", "ask about and boats"),
        ("Ana/Caroline travel", "/ travel"),
        # A name that is a common noun says what the question is about.
        ("how did pricing change", "how did pricing change"),
        ("did bo travel", "did travel"),
        # Parts of identifiers, and of words, are no names.
        ("kafka.retention.ms grew", "kafka.retention.ms grew"),
        ("set max_kafka", "set max_kafka"),
        ("does kafka_x grow", "does kafka_x grow"),
        ("Anabel travels", "Anabel travels"),
        # Only names, or nothing that could be meant without them.
        ("Ana", "Ana"),
        ("Ana and Caroline?", "Ana and Caroline?"),
        ("Who is Ana?", "Who is Ana?"),
        ("田中太郎は何を言いましたか", "は何を言いましたか"),
        ("  nobody   known ", "  nobody   known "),
        ("", ""),
        (None, None),
    ],
)
def test_names_are_taken_out_of_a_query(
    connection: Connection, query: str | None, rest: str | None
) -> None:
    create(connection)
    person = {"name": "bo", "kind": "person"}
    names = ["Ana", "Ana Silva", "Caroline", "James", "pricing", "Kafka", "田中太郎", person]
    retain(connection, [about("a", *names)])

    assert without_names(connection, query) == rest


def test_what_follows_a_long_beginning_stays(connection: Connection) -> None:
    create(connection)
    retain(connection, [about("a", "Ana")])
    filler = "word " * 2000

    assert without_names(connection, f"Ana {filler}Ana") == f"{filler}Ana"


def test_names_of_another_bank_stay(connection: Connection) -> None:
    create(connection)
    create(connection, "c")
    retain(connection, [about("a", "Ana")], bank="c")

    assert without_names(connection, "did Ana travel") == "did Ana travel"


# query_entities


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("the one two three four five six seven eight", {"one two three four five six seven eight"}),
        ("nine one two three four five six seven", set()),
        ("Caroline's boat", {"Caroline"}),
        ("Caroline’s boat", {"Caroline"}),  # noqa: RUF001
        ("ask @ana_silva", {"@ana_silva"}),
        ("is OPS-204 done", {"OPS-204"}),
        ("田中太郎は何を言いましたか", {"田中太郎"}),
        ("昨日田中太郎と会った", {"田中太郎"}),
        ("レオナルド・ダ・ヴィンチの絵", {"レオナルド・ダ・ヴィンチ"}),
        ("アナさんは", {"アナ"}),
        ("アナウンス", set()),
        ("안나는 어디에 살아요", {"안나"}),
        ("王小明说了什么", {"王小明"}),
        ("王国", set()),
        ("王 said", {"王"}),
        ("ask 王", {"王"}),
        ("東京のOPS-204は", {"OPS-204"}),
    ],
)  # fmt: skip
def test_names_are_found_as_they_are_written(
    connection: Connection, query: str, names: set[str]
) -> None:
    create(connection)
    known = [
        "one two three four five six seven eight", "Caroline", "@ana_silva", "OPS-204", "田中太郎",
        "田中", "レオナルド・ダ・ヴィンチ", "アナ", "안나", "王", "王小明",
    ]  # fmt: skip
    retain(connection, [about("a", *known)])

    assert named(connection, query).keys() == names


@pytest.fixture
def two_anas(connection: Connection) -> Connection:
    """Ana Silva works on Atlas with Ben, Ana Costa on Borealis; both go by Ana."""
    create(connection)
    silva = {"name": "Ana Silva", "aliases": ["Ana"]}
    costa = {"name": "Ana Costa", "aliases": ["Ana"]}
    retain(connection, [about("a", silva, "Atlas"), about("b", costa, "Borealis")])
    retain(connection, [about("c", "Ana Silva", "Ben")])
    return connection


@pytest.mark.parametrize(
    ("query", "silva", "costa"),
    [
        ("what did Ana say", 1 / 2, 1 / 2),
        ("what did Ana say about Atlas", 5 / 6, 1 / 6),
        ("what did Ana say about Borealis", 1 / 6, 5 / 6),
        ("what did Ana say about Atlas to Ben", 9 / 10, 1 / 10),
        ("what did Ana say about Atlas and Borealis", 1 / 2, 1 / 2),
        ("what did Ana say to Ana about Atlas", 5 / 6, 1 / 6),
    ],
)
def test_other_names_in_a_query_tell_who_is_meant(
    two_anas: Connection, query: str, silva: float, costa: float
) -> None:
    found = named(two_anas, query)

    assert {name: found[name] for name in ("Ana Silva", "Ana Costa")} == {
        "Ana Silva": silva,
        "Ana Costa": costa,
    }


def test_a_full_name_is_sure(two_anas: Connection) -> None:
    assert named(two_anas, "Ana Silva told Ana") == {"Ana Silva": 1, "Ana Costa": 1 / 2}


# Whom a fact means


def mentions(connection: Connection, memory_id: int) -> dict[str, Any]:
    """Confidence by name and kind of the entities that a memory mentions."""
    rows = connection.execute(
        "select e.name, e.kind, m.confidence from pgrecall.mention m"
        " join pgrecall.entity e using (bank_id, entity_id) where m.memory_id = %s",
        [memory_id],
    ).fetchall()
    return {f"{name} {kind}" if kind else name: pytest.approx(share) for name, kind, share in rows}


def entities(connection: Connection) -> list[str]:
    rows = connection.execute(
        "select concat_ws(' ', name, kind) from pgrecall.entity order by entity_id"
    ).fetchall()
    return [row[0] for row in rows]


PERSON = {"name": "Mercury", "kind": "person"}
PLANET = {"name": "Mercury", "kind": "planet"}


@pytest.mark.parametrize(
    ("others", "meant"),
    [
        # 1 + 4 for each shared entity + 1 for a mention just before.
        (["Atlas"], {"Ana Silva": 6 / 8}),
        (["Borealis"], {"Ana Costa": 6 / 8}),
        (["Atlas", "Ben"], {"Ana Silva": 10 / 12}),
        (["Atlas", "Ben", "Borealis"], {"Ana Silva": 10 / 16}),
        # Nothing speaks for one of them: the older.
        (["Zoe"], {"Ana Silva": 1 / 2}),
        # Named in full, she is not two people.
        (["Ana Costa", "Atlas"], {"Ana Costa": 1}),
    ],
)
def test_a_name_of_several_means_who_is_named_with_the_others(
    two_anas: Connection, others: list[str], meant: dict[str, float]
) -> None:
    (found,) = retain(two_anas, [about("d", "Ana", *others)])

    people = {name: share for name, share in mentions(two_anas, found).items() if "Ana" in name}
    assert people == meant


def test_a_name_of_several_means_the_one_spoken_of_lately(connection: Connection) -> None:
    create(connection)
    for name, day in [("Ana Silva", "2026-01-01"), ("Ana Costa", "2026-03-02")]:
        entity = {"name": name, "aliases": ["Ana"]}
        retain(connection, [about(name, entity, mentioned_at=day)])

    found = [
        *retain(connection, [about("x", "Ana", mentioned_at="2026-04-01")]),
        *retain(connection, [about("y", "Ana", mentioned_at="2025-12-02")]),
    ]

    # Silva is 90 and then 30 days away; Costa 30 and then, mentioned by x meanwhile, 120.
    assert [mentions(connection, memory_id) for memory_id in found] == [
        {"Ana Costa": 1.5 / (1.5 + 1.125)},
        {"Ana Silva": 1.5 / (1.5 + 1 + 1 / 16)},
    ]


def test_an_entitys_own_name_counts_double(connection: Connection) -> None:
    create(connection)
    retain(connection, [about("a", {"name": "Ana Silva"}, "Ana")])
    retain(connection, [about("b", {"name": "Ana Silva", "aliases": ["Ana"]})])

    (found,) = retain(connection, [about("c", "Ana")])

    assert mentions(connection, found) == {"Ana": 2 / 3}


@pytest.mark.parametrize("split", [False, True], ids=["in a batch", "across batches"])
def test_one_name_of_two_kinds_is_two_entities(connection: Connection, split: bool) -> None:
    create(connection)
    planet = {**PLANET, "aliases": ["First planet"]}
    facts = [about("a", PERSON, "Queen"), about("b", planet, "Queen"), about("c", PLANET)]

    found = (
        [memory_id for fact in facts for memory_id in retain(connection, [fact])]
        if split
        else retain(connection, facts)
    )

    assert entities(connection) == ["Mercury person", "Queen", "Mercury planet"]
    assert [sorted(mentions(connection, memory_id)) for memory_id in found] == [
        ["Mercury person", "Queen"],
        ["Mercury planet", "Queen"],
        ["Mercury planet"],
    ]
    assert named(connection, "first planet") == {"Mercury": 1}


def test_one_name_of_two_kinds_in_a_fact_is_two_entities(connection: Connection) -> None:
    create(connection)
    edge = {"from": "Mercury", "kind": "sang_in", "to": "Queen"}
    fact = about("a", PERSON, PLANET, relations=[edge])

    (found,) = retain(connection, [fact])
    (again,) = retain(connection, [fact])

    assert entities(connection) == ["Mercury person", "Queen", "Mercury planet"]
    assert mentions(connection, found) == {"Mercury person": 1, "Mercury planet": 1, "Queen": 1}
    assert again == found
    assert connection.execute("select count(*) from pgrecall.relation").fetchone() == (1,)


@pytest.mark.parametrize(
    ("first", "second"),
    [("company", "Organisation"), ("city", "place"), ("user", "person"), ("topic", "person"),
     ("gadget", "Gadget")],
)  # fmt: skip
def test_kinds_that_mean_the_same_do_not_part(
    connection: Connection, first: str, second: str
) -> None:
    create(connection)
    retain(connection, [about("a", {"name": "X", "kind": first})])
    retain(connection, [about("b", {"name": "x", "kind": second})])

    assert len(entities(connection)) == 1


def test_two_shared_entities_outweigh_another_kind(connection: Connection) -> None:
    create(connection)
    project, product = ({"name": "Atlas", "kind": kind} for kind in ("project", "product"))
    retain(connection, [about("a", project, "Ana"), about("b", project, "Ben")])

    one, both = [
        *retain(connection, [about("c", product, "Ana", "Ben")]),
        *retain(connection, [about("d", product, "Ana")]),
    ]

    assert mentions(connection, one) == {"Atlas project": 1, "Ana": 1, "Ben": 1}
    assert sorted(mentions(connection, both)) == ["Ana", "Atlas product"]


def test_a_kind_is_learnt_later(connection: Connection) -> None:
    create(connection)
    retain(connection, [about("a", "Mercury")])
    retain(connection, [about("b", PLANET)])
    retain(connection, [about("c", PERSON)])

    assert entities(connection) == ["Mercury planet", "Mercury person"]


def test_a_fact_retained_again_means_whom_it_meant(two_anas: Connection) -> None:
    fact = about("d", "Ana", "Atlas")
    (first,) = retain(two_anas, [fact])
    before = mentions(two_anas, first)
    retain(two_anas, [about(f"e{n}", "Ana Costa", "Atlas") for n in range(3)])

    (again,) = retain(two_anas, [fact])

    assert again == first
    assert mentions(two_anas, again) == before


def test_a_relation_is_between_those_meant_and_as_sure_as_they_are(two_anas: Connection) -> None:
    edge = {"from": "Ana", "kind": "leads", "to": "Borealis", "confidence": 0.5}
    retain(two_anas, [about("d", relations=[edge])])

    rows = two_anas.execute(
        "select f.name, t.name, r.confidence from pgrecall.relation r"
        " join pgrecall.entity f on f.entity_id = r.from_id"
        " join pgrecall.entity t on t.entity_id = r.to_id"
    ).fetchall()
    assert rows == [("Ana Costa", "Borealis", pytest.approx(0.5 * 6 / 8))]
