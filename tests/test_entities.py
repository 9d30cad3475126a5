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
