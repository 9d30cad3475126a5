"""Entities: who is meant by a name, and what is done when that was taken wrongly."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from servers import kept_fixture
from sqlcalls import Connection, call, counted_scans, create, retain


def about(text: str, *entities: Any, **fields: Any) -> dict[str, Any]:
    return {"text": text, "entities": list(entities), **fields}


def without_names(connection: Connection, query: str | None) -> Any:
    ((found,),) = call(connection, "without_names", bank="b", query=query)
    return found


def named(connection: Connection, query: str) -> dict[str, Any]:
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
        ("Did Caroline’s prices change?", "Did prices change?"),
        ("James' boat sank", "boat sank"),
        ("What did he tell Ana?", "What did he tell?"),
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
        ("the one two three four five six 7 8", {"one two three four five six 7 8"}),
        ("nine one two three four five six 7", set()),
        ("Caroline's boat", {"Caroline"}),
        ("Caroline’s boat", {"Caroline"}),
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
        ("is C++, or C#, faster than C?", {"C++", "C#", "C"}),
        ("C++-code", {"C++"}),
        ("C+", set()),
        ("ร้านในเชียงใหม่อยู่ที่ไหน", {"เชียงใหม่"}),
        ("ใครเรียนที่มหาวิทยาลัยเกษตรศาสตร์บ้าง", {"มหาวิทยาลัยเกษตรศาสตร์"}),
        ("中华人民共和国全国人民代表大会何时开会", {"中华人民共和国全国人民代表大会"}),
    ],
)  # fmt: skip
def test_names_are_found_as_they_are_written(
    connection: Connection, query: str, names: set[str]
) -> None:
    create(connection)
    known = [
        "one two three four five six 7 8", "Caroline", "@ana_silva", "OPS-204", "田中太郎",
        "田中", "レオナルド・ダ・ヴィンチ", "アナ", "안나", "王", "王小明", "C", "C++", "C#",
        "เชียงใหม่", "มหาวิทยาลัยเกษตรศาสตร์", "中华人民共和国全国人民代表大会",
    ]  # fmt: skip
    retain(connection, [about("a", *known)])

    assert named(connection, query).keys() == names


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("What does Okonkwo do?", {"Keiko Okonkwo"}),
        ("Okonkwo’s boss, who is that?", {"Keiko Okonkwo"}),
        ("Did Keiko leave Lisbon?", {"Keiko Okonkwo"}),
        ("Keiko, where are you? I told Bo.", {"Keiko Okonkwo", "Bo Okafor"}),
        ("Wer ist Okonkwos Chefin?", {"Keiko Okonkwo"}),
        ("Who leads Quickstep?", {"Quickstep Logistics"}),
        # Beside another capital, or in an identifier, it is somebody else.
        ("Where is Maria Okonkwo?", set()),
        ("Where is Keiko Sato?", set()),
        ("Wo ist Maria Okonkwos Chefin?", set()),
        ("Where is Keiko-Sato?", set()),
        ("Where is Keiko O'Brien?", set()),
        # Common words are not written as in the name, or begin the names of many.
        ("How do logistics work?", set()),
        ("Will we see who is who?", set()),
        ("Who will?", set()),
        ("Have you read Walk?", set()),
        ("Who is Team?", set()),
        # One of two words is misspelt.
        ("Where is Keico Okonkwo?", {"Keiko Okonkwo"}),
        ("Where is Keiko Okonko?", {"Keiko Okonkwo"}),
        ("Tell Keikko Okonkwo that", {"Keiko Okonkwo"}),
        ("Where is Okonkwo Keico?", {"Keiko Okonkwo"}),
        ("Where is Keico Okonko?", set()),
        ("Where is Walt Who?", set()),
        # Where there are no capitals, they tell nothing.
        ("where is okonkwo", {"Keiko Okonkwo"}),
        ("WHERE IS OKONKWO?", {"Keiko Okonkwo"}),
        ("okonkwo's boss", {"Keiko Okonkwo"}),
        ("did keiko tell bo?", {"Keiko Okonkwo", "Bo Okafor"}),
        ("have you read walk", set()),
        ("who is team", set()),
        ("who will", set()),
        ("where is ana", {"Ana"}),
        # A word that is itself a name means whom it names.
        ("Where is Ana?", {"Ana"}),
        ("Where is Keiko Okonkwo?", {"Keiko Okonkwo"}),
    ],
)
def test_a_part_of_a_name_means_whom_no_other_name_means(
    connection: Connection, query: str, names: set[str]
) -> None:
    create(connection)
    teams = [f"Team {n}" for n in range(4)]
    known = [
        "Keiko Okonkwo", "Bo Okafor", "Quickstep Logistics", "Will Who", "a long walk",
        "Ana", "Ana Silva", *teams,
    ]  # fmt: skip
    retain(connection, [about("a", *known)])

    assert named(connection, query).keys() == names


@pytest.mark.parametrize(
    ("other", "names"),
    [
        ("Bo sings", {"Keiko Okonkwo"}),
        # Keika is somebody, or may be one of two.
        ("Keika sings", set()),
        (about("They sing", "Kaika Okonkwo"), set()),
        (about("They sing", "Keika"), {"Keika"}),
    ],
)
def test_a_word_that_a_fact_has_is_not_misspelt(
    connection: Connection, other: Any, names: set[str]
) -> None:
    create(connection)
    facts = [about("a", "Keiko Okonkwo"), other if isinstance(other, dict) else {"text": other}]
    retain(connection, facts)
    call(connection, "refresh_statistics", bank="b")

    assert named(connection, "Where is Keika Okonkwo?").keys() == names


def test_a_misspelt_name_is_taken_out_of_a_query(connection: Connection) -> None:
    create(connection)
    retain(connection, [about("a", "Keiko Okonkwo")])

    assert without_names(connection, "Did Keico Okonkwo’s boat sink?") == "Did boat sink?"


@pytest.mark.parametrize(("others", "names"), [(1, {"Quickstep Logistics"}), (2, set())])
def test_without_capitals_a_word_of_many_other_facts_is_no_name(
    connection: Connection, others: int, names: set[str]
) -> None:
    create(connection)
    said = [f"Logistics matter, part {n}" for n in range(others)]
    retain(connection, [about("Quickstep Logistics hires", "Quickstep Logistics"), *said])
    call(connection, "refresh_statistics", bank="b")

    assert named(connection, "how do logistics work").keys() == names


def test_a_part_of_several_names_means_who_occurs_with_the_others(connection: Connection) -> None:
    create(connection)
    retain(connection, [about("a", "Ana Silva", "Atlas"), about("b", "Ana Costa", "Borealis")])

    assert named(connection, "Did Ana join Atlas?") == {
        "Ana Silva": 5 / 6,
        "Ana Costa": 1 / 6,
        "Atlas": 1,
    }


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("Did Will call?", "Will Smith"),
        ("Was it so? Does Don know?", "Don Draper"),
        ("The meeting of Bob/Silva", "Ana Silva"),
        ("Is it a/Silva b?", "Ana Silva"),
    ],
)
def test_a_part_of_a_name_is_found_beside_stop_words_and_signs(
    connection: Connection, query: str, name: str
) -> None:
    create(connection)
    retain(connection, [about("a", "Will Smith", "Don Draper", "Ana Silva")])

    assert named(connection, query) == {name: 1}


def test_parts_of_names_are_found_by_indexes(connection: Connection) -> None:
    create(connection)
    letters = "bcdfghjklmnp"
    retain(connection, [about("a", f"Zo{x}{y}i Wu{x}{y}") for x in letters for y in letters])
    retain(connection, [about("b", "Zoë")])
    with connection.transaction(), counted_scans(connection) as scans:
        found = named(connection, "Where is Zokli?")

    assert found == {"Zokli Wukl": 1}
    # Before 17 the planner may take an array for ten searches. By the table as a whole: none.
    whole = 10 if connection.info.server_version < 170000 else 3
    counted = {name: n for name, n in scans.items() if name.startswith("entity_alias")}
    assert counted.pop("entity_alias_pkey") in (3, whole)
    # Whether there are any; six runs of words, then three phrases.
    assert counted.pop("entity_alias_unaccented_idx") == (10 if whole == 10 else 3)
    assert counted == {"entity_alias_bank_id_first_idx": 1, "entity_alias_bank_id_last_idx": 1}


@kept_fixture
def two_anas(connection: Connection) -> None:
    """Ana Silva works on Atlas with Ben, Ana Costa on Borealis; both go by Ana."""
    create(connection)
    silva = {"name": "Ana Silva", "aliases": ["Ana"]}
    costa = {"name": "Ana Costa", "aliases": ["Ana"]}
    retain(connection, [about("a", silva, "Atlas"), about("b", costa, "Borealis")])
    retain(connection, [about("c", "Ana Silva", "Ben")])


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


def person(name: str, *aliases: str) -> dict[str, Any]:
    return {"name": name, "kind": "person", "aliases": list(aliases)}


FULL, FIRST, LAST = person("Ana Silva"), person("Ana"), person("Silva")


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    ("names", "known"),
    [
        ([FULL, FIRST], ["Ana Silva person"]),
        ([FIRST, FULL], ["Ana Silva person"]),
        ([LAST, FULL], ["Ana Silva person"]),
        ([FULL, LAST, FIRST], ["Ana Silva person"]),
        ([person("Leonardo"), person("Leonardo da Vinci")], ["Leonardo da Vinci person"]),
        # Who is a person on one side may be one on the other.
        ([FIRST, "Ana Silva"], ["Ana Silva person"]),
        (["Ana Silva", FIRST], ["Ana Silva person"]),
        # Of whatever kind, where the fact says so.
        (["Ana", {"name": "Ana Silva", "aliases": ["Ana"]}], ["Ana Silva"]),
    ],
)
def test_a_short_name_and_a_full_one_are_one_entity(
    connection: Connection, names: list[Any], known: list[str], at_once: bool
) -> None:
    create(connection)
    facts = [about(f"fact {n}", name) for n, name in enumerate(names)]
    for batch in [facts] if at_once else [[fact] for fact in facts]:
        retain(connection, batch)

    assert entities(connection) == known
    (mentioned,) = connection.execute("select count(*) from pgrecall.mention").fetchall()
    assert mentioned == (len(facts),)
    for name in names:
        asked = name if isinstance(name, str) else name["name"]
        assert named(connection, f"Where is {asked}?") == {known[0].removesuffix(" person"): 1}


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    "names",
    [
        # Of nobody it is known that it is a person.
        ["Rome", "Ancient Rome"],
        ["Ancient Rome", "Rome"],
        ["260", "260 000"],
        # Kinds differ.
        [FIRST, {"name": "Ana Castle", "kind": "place"}],
        [{"name": "Ana", "kind": "boat"}, FULL],
        [{"name": "Silva", "kind": "town"}, FULL],
        # Words for a person are no names.
        [person("Mom"), person("Ana's Mom")],
        [person("Ana’s Mom"), person("Mom")],
        [person("boss"), person("Ana Boss")],
        [person("Boss"), person("my boss")],
        [person("Ana boss"), person("Boss")],
        # Neither begins nor ends with it.
        [person("Marie Ana Silva"), FIRST],
        [person("Anabel Silva"), FIRST],
        # Many have the name.
        [*(person(f"Ana {name}") for name in ("Lee", "Roe", "Sato", "Diaz")), FIRST],
    ],
)
def test_names_of_others_stay_apart(
    connection: Connection, names: list[Any], at_once: bool
) -> None:
    create(connection)
    facts = [about(f"fact {n}", name) for n, name in enumerate(names)]
    for batch in [facts] if at_once else [[fact] for fact in facts]:
        retain(connection, batch)

    assert len(entities(connection)) == len(names)


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("is_short_first", [True, False])
def test_a_person_may_be_of_another_kind_in_full(
    connection: Connection, is_short_first: bool, at_once: bool
) -> None:
    create(connection)
    facts = [about("a", FIRST), about("b", {"name": "Ana Silva", "kind": "engineer"})]
    facts = facts if is_short_first else facts[::-1]
    for batch in [facts] if at_once else [[fact] for fact in facts]:
        retain(connection, batch)

    assert list(named(connection, "Where is Ana?")) == ["Ana Silva"]
    assert len(entities(connection)) == 1


@pytest.mark.parametrize("known", [None, FIRST, FULL])
def test_a_fact_that_names_both_tells_them_apart(connection: Connection, known: Any) -> None:
    create(connection)
    if known:
        retain(connection, [about("first", known)])

    retain(connection, [about("both", FIRST, FULL), about("later", FULL)])

    assert sorted(entities(connection)) == ["Ana Silva person", "Ana person"]


def test_of_two_full_names_none_takes_a_short_one_over(connection: Connection) -> None:
    create(connection)
    retain(connection, [about("a", FIRST)])

    retain(connection, [about("b", FULL), about("c", person("Ana Costa"))])

    assert sorted(entities(connection)) == ["Ana Costa person", "Ana Silva person", "Ana person"]


def test_a_short_name_of_two_is_resolved_by_what_they_have_in_common(
    connection: Connection,
) -> None:
    create(connection)
    retain(connection, [about("a", FULL, "Atlas"), about("b", person("Ana Costa"), "Borealis")])

    (found,) = retain(connection, [about("c", FIRST, "Borealis")])

    assert mentions(connection, found) == {"Ana Costa person": 6 / 8, "Borealis": 1}


def test_once_known_in_full_a_name_is_not_taken_over(connection: Connection) -> None:
    create(connection)
    for name in [FIRST, FULL, person("Ana Costa", "Ana")]:
        retain(connection, [about(name["name"], name)])

    assert entities(connection) == ["Ana Silva person", "Ana Costa person"]


def test_what_is_known_by_another_name_keeps_it(connection: Connection) -> None:
    create(connection)
    retain(connection, [about("a", person("my boss"))])

    retain(connection, [about("b", person("Ana Silva", "my boss"))])

    assert entities(connection) == ["my boss person", "Ana Silva person"]


def test_relations_lead_on_from_a_short_name(connection: Connection) -> None:
    create(connection)
    keiko = person("Keiko Okonkwo")
    retain(
        connection,
        [
            about("a", FULL, keiko, relations=[
                {"from": "Ana Silva", "kind": "reports_to", "to": "Keiko Okonkwo"}]),
            about("b", person("Keiko"), person("Bo Roe"), relations=[
                {"from": "Keiko", "kind": "reports_to", "to": "Bo Roe"}]),
        ],
    )  # fmt: skip

    ends = connection.execute(
        "select f.name, t.name, r.confidence from pgrecall.relation r"
        " join pgrecall.entity f on f.entity_id = r.from_id"
        " join pgrecall.entity t on t.entity_id = r.to_id order by r.relation_id"
    ).fetchall()
    assert ends == [("Ana Silva", "Keiko Okonkwo", 1), ("Keiko Okonkwo", "Bo Roe", 1)]


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
     ("persona", "user"), ("person", "Personne"),
     ("gadget", "Gadget")],
)  # fmt: skip
def test_kinds_that_mean_the_same_do_not_part(
    connection: Connection, first: str, second: str
) -> None:
    create(connection)
    retain(connection, [about("a", {"name": "X", "kind": first})])
    retain(connection, [about("b", {"name": "x", "kind": second})])

    assert len(entities(connection)) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [("Firma", "Stadt"), ("lugar", "company"), ("produit", "ville"), ("product", "azienda")],
)
def test_kinds_that_exclude_each_other_part_in_any_language(
    connection: Connection, first: str, second: str
) -> None:
    create(connection)
    retain(connection, [about("a", {"name": "X", "kind": first})])
    retain(connection, [about("b", {"name": "x", "kind": second})])

    assert len(entities(connection)) == 2


def test_two_shared_entities_outweigh_another_kind(connection: Connection) -> None:
    create(connection)
    place, company = ({"name": "Phoenix", "kind": kind} for kind in ("place", "company"))
    retain(connection, [about("a", place, "Ana"), about("b", place, "Ben")])

    one, both = [
        *retain(connection, [about("c", company, "Ana", "Ben")]),
        *retain(connection, [about("d", company, "Ana")]),
    ]

    assert mentions(connection, one) == {"Phoenix place": 1, "Ana": 1, "Ben": 1}
    assert sorted(mentions(connection, both)) == ["Ana", "Phoenix company"]


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    ("name", "kinds", "count"),
    [
        # Kinds in other words: nobody keeps to a list.
        ("Atlas", ["project", "initiative"], 1),
        ("Atlas", ["project", "product"], 1),
        ("Lisbon", ["destination", "city"], 1),
        ("Keiko Okonkwo", ["person", "engineer"], 1),
        ("Keiko Okonkwo", ["friend", "engineer", "person"], 1),
        ("Golden Gate", ["place", "organisation"], 1),
        # Kinds that exclude each other, and beside a person any.
        ("Phoenix", ["place", "organisation"], 2),
        ("Jordan", ["person", "country"], 2),
        ("Mercury", ["person", "planet"], 2),
        ("Jordan Peak", ["person", "place"], 2),
        ("Virginia Slims", ["person", "product"], 2),
    ],
)
def test_only_kinds_that_exclude_each_other_part_a_name(
    connection: Connection, name: str, kinds: list[str], count: int, at_once: bool
) -> None:
    create(connection)
    facts = [about(kind, {"name": name, "kind": kind}) for kind in kinds]
    for batch in [facts] if at_once else [[fact] for fact in facts]:
        retain(connection, batch)

    assert len(entities(connection)) == count


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


# merge, split, rename


def id_of(connection: Connection, name: str) -> int:
    ((found,),) = connection.execute(
        "select entity_id from pgrecall.entity where name = %s", [name]
    ).fetchall()
    return int(found)


def edges(connection: Connection) -> list[tuple[str, str, str, float]]:
    return connection.execute(
        "select f.name, r.kind, t.name, round(r.confidence::numeric, 2)::float8"
        " from pgrecall.relation r join pgrecall.entity f on f.entity_id = r.from_id"
        " join pgrecall.entity t on t.entity_id = r.to_id order by 1, 2, 3, r.memory_id"
    ).fetchall()


def names_of(connection: Connection, entity_id: int) -> list[str]:
    rows = connection.execute(
        "select alias from pgrecall.entity_alias where entity_id = %s order by 1", [entity_id]
    ).fetchall()
    return [row[0] for row in rows]


def edge(start: str, end: str, confidence: float = 1, kind: str = "knows") -> dict[str, Any]:
    return {"from": start, "kind": kind, "to": end, "confidence": confidence}


def test_merged_entities_are_one_with_all_that_was_said_of_them(connection: Connection) -> None:
    create(connection)
    found = retain(
        connection,
        [
            about("a", "Bob", relations=[edge("Bob", "Ana")]),
            about("b", {"name": "Robert", "aliases": ["Rob"], "kind": "person"}),
            about("c", "Bob", "Robert", relations=[edge("Bob", "Robert"), edge("Robert", "Bob")]),
            about("d", relations=[edge("Bob", "Ana", 0.4), edge("Robert", "Ana", 0.8)]),
            about("e", relations=[edge("Robert", "Bobby"), edge("Ana", "Bobby")]),
        ],
    )
    bob = id_of(connection, "Bob")
    others = [id_of(connection, name) for name in ("Robert", "Bobby")]

    merges = [
        call(connection, "merge_entities", bank="b", entity_id=bob, others=[*others, bob, None])
        for _ in range(2)
    ]

    assert merges == [[(2,)], [(0,)]]
    assert entities(connection) == ["Bob person", "Ana"]
    assert names_of(connection, bob) == ["bob", "bobby", "rob", "robert"]
    assert all("Bob person" in mentions(connection, memory_id) for memory_id in found)
    assert edges(connection) == [
        ("Ana", "knows", "Bob", 1),
        ("Bob", "knows", "Ana", 1),
        ("Bob", "knows", "Ana", 0.8),
    ]
    assert retain(connection, [about("b", "Robert")]) == [found[1]]
    assert entities(connection) == ["Bob person", "Ana"]


def test_a_split_takes_along_what_the_memories_say(connection: Connection) -> None:
    create(connection)
    facts = [
        about("Ana went to sea", {"name": "Ana", "aliases": ["Annie"], "kind": "person"}),
        about("Ana works", "Ana", relations=[edge("Ana", "Atlas"), edge("Zoe", "Ana")]),
        about("She went home with Zoe", "Ana", "Zoe"),
    ]
    first, *moved = retain(connection, facts)
    old = id_of(connection, "Ana")

    split = {"bank": "b", "entity_id": old, "memory_ids": moved, "name": "Ana Costa"}
    ((new,),) = call(connection, "split_entity", **split)
    ((again,),) = call(connection, "split_entity", **split)

    assert new == again != old
    assert entities(connection) == ["Ana person", "Atlas", "Zoe", "Ana Costa person"]
    assert mentions(connection, first) == {"Ana person": 1}
    assert mentions(connection, moved[0]) == {"Ana Costa person": 1, "Atlas": 1, "Zoe": 1}
    assert edges(connection) == [
        ("Ana Costa", "knows", "Atlas", 1),
        ("Zoe", "knows", "Ana Costa", 1),
    ]
    assert names_of(connection, new) == ["ana", "ana costa"]
    assert names_of(connection, old) == ["ana", "annie"]
    # Facts that are retained again mean whom they mean now.
    retain(connection, facts)
    assert mentions(connection, moved[0]) == {"Ana Costa person": 1, "Atlas": 1, "Zoe": 1}
    # A later fact is about the one of the same company.
    (later,) = retain(connection, [about("x", "Ana", "Atlas", mentioned_at="2000-01-01")])
    assert "Ana Costa person" in mentions(connection, later)


def test_a_split_undoes_a_merge(connection: Connection) -> None:
    create(connection)
    silva, costa = retain(
        connection, [about("Ana Silva sails", "Ana Silva"), about("Ana Costa sings", "Ana Costa")]
    )
    old = id_of(connection, "Ana Silva")
    other = id_of(connection, "Ana Costa")
    call(connection, "merge_entities", bank="b", entity_id=old, others=[other])

    ((new,),) = call(
        connection, "split_entity", bank="b", entity_id=old, memory_ids=[costa], name="Ana Costa"
    )

    assert names_of(connection, old) == ["ana silva"]
    assert names_of(connection, new) == ["ana costa"]
    assert mentions(connection, silva) == {"Ana Silva": 1}
    assert mentions(connection, costa) == {"Ana Costa": 1}


def test_a_renamed_entity_still_goes_by_its_old_name(connection: Connection) -> None:
    create(connection)
    retain(connection, [about("a", "Twitter")])
    entity_id = id_of(connection, "Twitter")

    for _ in range(2):
        call(connection, "rename_entity", bank="b", entity_id=entity_id, name="X Corp.")

    assert entities(connection) == ["X Corp."]
    assert names_of(connection, entity_id) == ["twitter", "x corp"]
    assert named(connection, "who bought Twitter") == {"X Corp.": 1}


@pytest.mark.parametrize(
    ("function", "arguments", "code", "message", "hint"),
    [
        ("merge_entities", "{no}, '{{}}'", "RC013", "has no entity {no}", "query_entities"),
        ("merge_entities", "null, '{{}}'", "RC013", "has no entity null", "query_entities"),
        ("rename_entity", "{no}, 'x'", "RC013", "has no entity {no}", "query_entities"),
        ("rename_entity", "{id}, '!'", "22023", '"!" cannot name an entity', "letter"),
        ("rename_entity", "{id}, null", "22023", "null cannot name an entity", "letter"),
        ("split_entity", "{no}, '{{1}}', 'x'", "RC013", "has no entity {no}", "query_entities"),
        ("split_entity", "{id}, '{{1}}', ''", "22023", '"" cannot name an entity', "letter"),
        ("split_entity", "{id}, '{{0}}', 'x'", "22023", "none of the memories names", "mention"),
        ("split_entity", "{id}, null, 'x'", "22023", "none of the memories names", "mention"),
        ("split_entity", "{id}, '{{{memory}}}', 'x'", "22023", "no other memory names", "rename_"),
        ("duplicate_entities", "0", "22023", "top_k must be between 1", "top_k => 50"),
    ],
)
def test_what_cannot_be_done_to_entities_is_refused(
    connection: Connection, function: str, arguments: str, code: str, message: str, hint: str
) -> None:
    create(connection)
    create(connection, "c")
    (memory,) = retain(connection, [about("a", "Ana")])
    retain(connection, [about("a", "Bo")], bank="c")
    given = {"id": id_of(connection, "Ana"), "no": id_of(connection, "Bo"), "memory": memory}

    with pytest.raises(psycopg.Error) as caught, connection.transaction():
        connection.execute(
            f"select * from pgrecall.{function}('b', {arguments.format(**given)})".encode()
        )

    assert caught.value.sqlstate == code
    assert message.format(**given) in (caught.value.diag.message_primary or "")
    assert hint in (caught.value.diag.message_hint or "")
    assert entities(connection) == ["Ana", "Bo"]


def test_entities_of_another_bank_are_not_merged(connection: Connection) -> None:
    create(connection)
    create(connection, "c")
    retain(connection, [about("a", "Ana")])
    retain(connection, [about("a", "Bo")], bank="c")

    merged = call(
        connection,
        "merge_entities",
        bank="b",
        entity_id=id_of(connection, "Ana"),
        others=[id_of(connection, "Bo")],
    )

    assert merged == [(0,)]
    assert entities(connection) == ["Ana", "Bo"]


def test_writers_who_merge_split_and_rename_leave_a_bank_whole(database: str) -> None:
    people = [f"Person {n}" for n in range(12)]

    def fact(choose: random.Random) -> dict[str, Any]:
        one, two = choose.sample(people, 2)
        return about(f"{one} met {two}, {choose.random()}", one, two, relations=[edge(one, two)])

    def work(n: int) -> None:
        choose = random.Random(n)
        with psycopg.connect(database, autocommit=True) as connection:
            for _ in range(12):
                known = connection.execute("select entity_id from pgrecall.entity").fetchall()
                (one,), (two,) = choose.choices(known, k=2)
                memory_ids = [
                    row[0]
                    for row in connection.execute(
                        "select memory_id from pgrecall.mention where entity_id = %s limit 2", [one]
                    )
                ]
                try:
                    match choose.randrange(4):
                        case 0:
                            retain(connection, [fact(choose) for _ in range(3)])
                        case 1:
                            call(
                                connection, "merge_entities",
                                bank="b", entity_id=one, others=[two],
                            )  # fmt: skip
                        case 2:
                            call(
                                connection, "split_entity", bank="b", entity_id=one,
                                memory_ids=memory_ids, name=choose.choice(people),
                            )  # fmt: skip
                        case 3:
                            call(
                                connection, "rename_entity",
                                bank="b", entity_id=one, name=choose.choice(people),
                            )  # fmt: skip
                except psycopg.Error as error:
                    # Gone, or all of it taken, meanwhile.
                    if error.sqlstate not in ("RC013", "22023"):
                        raise

    with psycopg.connect(database, autocommit=True) as connection:
        create(connection)
        retain(connection, [fact(random.Random(100 + n)) for n in range(20)])
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))

        orphans = connection.execute(
            "select name from pgrecall.entity e where not exists (select from pgrecall.mention m"
            " where m.entity_id = e.entity_id) or not exists (select from pgrecall.entity_alias a"
            " where a.entity_id = e.entity_id and a.alias = pgrecall.normalised_name(e.name))"
        ).fetchall()
        unstated = connection.execute(
            "select relation_id from pgrecall.relation r cross join unnest(array[from_id, to_id])"
            " as u(entity_id) where not exists (select from pgrecall.mention m"
            " where m.entity_id = u.entity_id and m.memory_id = r.memory_id)"
        ).fetchall()
        stored = connection.execute("select memory_id from pgrecall.memory").fetchall()
    assert (orphans, unstated) == ([], [])
    assert len(stored) > 20


# duplicate_entities


def duplicates(connection: Connection, **arguments: Any) -> list[Any]:
    return call(connection, "duplicate_entities", bank="b", **arguments)


@pytest.mark.parametrize(
    ("named_together", "pair", "score", "reason"),
    [
        (
            [["Ana Silva"], ["Silva, Ana"]],
            ("Ana Silva", "Silva, Ana"),
            0.95 / 2,
            '"ana silva" and "silva ana" have the same words',
        ),
        (
            [["Ana Silva", "Atlas"], ["Ana", "Atlas"], ["Ana Silva"]],
            ("Ana Silva", "Ana"),
            0.7,
            '"ana" is a part of "ana silva", and stand together with 1 of the same',
        ),
        (
            [["Katherine Bell"], ["Catherine Bell"], ["Catherine Bell"]],
            ("Catherine Bell", "Katherine Bell"),
            12 / 18 / 2,  # of the 15 trigrams of each they share all but 3
            '"katherine bell" and "catherine bell" are spelt alike',
        ),
    ],
)
def test_likely_duplicates_are_told_with_the_reason(
    connection: Connection,
    named_together: list[list[str]],
    pair: tuple[str, str],
    score: float,
    reason: str,
) -> None:
    create(connection)
    retain(connection, [about(f"{n}", *names) for n, names in enumerate(named_together)])

    found = [(row.name, row.other_name, row.score, row.reason) for row in duplicates(connection)]

    assert found == [(*pair, pytest.approx(score), reason)]


@pytest.mark.parametrize(
    "named_together",
    [
        [["Ana"], ["Ana Silva"]],  # no company that they share
        [["Ana", "Ana Silva"]],
        [["Jonas", "Zoe"], ["Miriam", "Zoe"]],
        [[{"name": "Ana", "kind": "person"}], [{"name": "Ana", "kind": "ship"}]],
    ],
)
def test_the_unlike_are_no_duplicates(
    connection: Connection, named_together: list[list[Any]]
) -> None:
    create(connection)
    retain(connection, [about(f"{n}", *names) for n, names in enumerate(named_together)])

    assert duplicates(connection) == []


def test_a_first_name_of_a_person_needs_no_company(connection: Connection) -> None:
    create(connection)
    names = ["Ana", "Ana Silva", "Silva Ana Lee", "Rome", "Ancient Rome"]
    retain(connection, [about(name, name) for name in names])
    # As stored before short names were resolved.
    connection.execute("update pgrecall.entity set kind = 'person' where name like '%Ana%'")

    found = [(row.name, row.other_name, row.score) for row in duplicates(connection)]

    assert found == [("Ana", "Ana Silva", pytest.approx(0.35))]


def test_kinds_that_parted_a_name_once_part_no_duplicates(connection: Connection) -> None:
    create(connection)
    connection.execute(
        "with entity as (insert into pgrecall.entity (bank_id, name, kind)"
        " values ('b', 'Keiko Okonkwo', 'person'), ('b', 'Keiko Okonkwo', 'engineer'),"
        " ('b', 'Mercury', 'person'), ('b', 'Mercury', 'planet') returning *)"
        " insert into pgrecall.entity_alias (bank_id, alias, entity_id)"
        " select bank_id, lower(name), entity_id from entity"
    )

    (found,) = call(connection, "duplicate_entities", bank="b")

    assert (found.name, found.other_name) == ("Keiko Okonkwo", "Keiko Okonkwo")


def test_two_that_a_fact_tells_apart_are_less_likely_one(two_anas: Connection) -> None:
    retain(two_anas, [about("x", "Ana Silva", "Ana Costa", "Atlas")])

    (found,) = duplicates(two_anas)

    # Costa stands with Borealis, Atlas and Silva; Silva with Atlas, Ben and Costa.
    assert found.score == pytest.approx((0.5 + 0.5 / 3) / 2)
    assert found.reason == (
        'both go by "ana", and stand together with 1 of the same, but also with each other'
    )


def test_what_duplicate_entities_finds_can_be_merged(connection: Connection) -> None:
    create(connection)
    facts = [about(f"a{n}", name) for n in range(3) for name in ("Ana Silva", "Silva Ana")]
    retain(connection, facts)
    (pair,) = duplicates(connection)

    call(connection, "merge_entities", bank="b", entity_id=pair.entity_id, others=[pair.other_id])

    assert duplicates(connection) == []
