"""Statistics follow what is erased or mentions other entities: as if all were counted anew."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from sqlcalls import Connection, call, column, create, retain, rows, value

NAMES = ("Ana", "Bo", "Cy")
WORDS = ("sail", "anchor", "harbour", "lighthouse")


def facts(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {
            "text": f"{NAMES[n % 3]} says {' '.join(WORDS[: n % 5])}, number {n}.",
            "context": f"Day {n % 7}" if n % 2 else None,
            "fact_key": f"key.{n % 6}" if n % 3 == 0 else None,
            "source_id": f"web:{n % 4}",
            "entities": [NAMES[n % 3], f"Place {n % 5}"],
        }
        for n in range(first, first + count)
    ]


def counted(connection: Connection) -> dict[str, Any]:
    """Return what BM25 and the graph know of the memories: counts and mean length."""
    ((documents, average),) = rows(
        connection,
        "select document_count, average_length from pgrecall_internal.statistics"
        " where kind = 'memory'",
    )
    return {
        "documents": documents,
        "average": pytest.approx(average, abs=1e-6),
        "lexemes": dict(
            rows(
                connection,
                "select lexeme, document_count from pgrecall_internal.lexeme where kind = 'memory'",
            )
        ),
        "mentions": dict(
            rows(
                connection,
                "select e.name, c.mention_count from pgrecall_internal.entity_count c"
                " join pgrecall.entity e using (bank_id, entity_id)",
            )
        ),
    }


def entity(connection: Connection, name: str) -> int:
    return int(value(connection, "select entity_id from pgrecall.entity where name = %s", name))


def forget(connection: Connection, ids: list[int]) -> None:
    assert value(connection, "select pgrecall.forget('b', %s)", ids[::2]) == 20


def forget_twice(connection: Connection, ids: list[int]) -> None:
    forget(connection, ids)
    assert value(connection, "select pgrecall.forget('b', %s)", ids[:3]) == 1


def forget_all(connection: Connection, ids: list[int]) -> None:
    value(connection, "select pgrecall.forget('b', %s)", ids)
    retain(connection, ["Ana sails."])
    connection.execute("select pgrecall.refresh_statistics('b')")


def forget_where(connection: Connection, ids: list[int]) -> None:
    assert value(connection, "select pgrecall.forget_where('b', source_id => 'web:1')") == 10


def forget_uncounted(connection: Connection, ids: list[int]) -> None:
    (late,) = retain(connection, facts(99, 1))
    value(connection, "select pgrecall.forget('b', %s)", [*ids[:2], late])


def replace(connection: Connection, ids: list[int]) -> None:
    rows(connection, "select * from pgrecall.retain('b', %s, replace => 'key')", sent(99, 7))
    connection.execute("select pgrecall.refresh_statistics('b')")


def update(connection: Connection, ids: list[int]) -> None:
    change = '{"text": "Ana anchors at Place 2."}'
    rows(connection, "select * from pgrecall.update_memory('b', %s, %s)", ids[0], change)
    connection.execute("select pgrecall.refresh_statistics('b')")
    value(connection, "select pgrecall.forget('b', %s)", ids[:1])


def update_often(connection: Connection, ids: list[int]) -> None:
    for memory_id in ids[:12]:  # several are counted as they are stored
        change = '{"tags": ["x"]}'
        rows(connection, "select * from pgrecall.update_memory('b', %s, %s)", memory_id, change)
    connection.execute("select pgrecall.refresh_statistics('b')")


def retain_again(connection: Connection, ids: list[int]) -> None:
    again = [fact | {"entities": [*fact["entities"], "Cy", "Dee"]} for fact in facts(0, 60)]
    assert retain(connection, again)[:40] == ids
    connection.execute("select pgrecall.refresh_statistics('b')")


def quarantine(connection: Connection, ids: list[int]) -> None:
    rows(connection, "select * from pgrecall.quarantine('b', 'web:2')")
    value(connection, "select pgrecall.forget('b', %s)", ids[:8])
    rows(connection, "select * from pgrecall.release('b', 'web:2')")


def expire(connection: Connection, ids: list[int]) -> None:
    rows(connection, "select * from pgrecall.supersede('b', %s)", ids[0])
    value(connection, "select pgrecall.forget('b', %s)", ids[:2])


def merge(connection: Connection, ids: list[int]) -> None:
    others = [entity(connection, "Bo"), entity(connection, "Place 2")]
    value(
        connection,
        "select pgrecall.merge_entities('b', %s, %s)",
        entity(connection, "Ana"),
        others,
    )


def split(connection: Connection, ids: list[int]) -> None:
    value(
        connection,
        "select pgrecall.split_entity('b', %s, %s, 'Anna')",
        entity(connection, "Ana"),
        ids[:10],
    )


def weigh_no_context(connection: Connection, ids: list[int]) -> None:
    configure(connection, context_weight=0)
    value(connection, "select pgrecall.forget('b', %s)", ids[:20])


def weigh_keys_again(connection: Connection, ids: list[int]) -> None:
    for weight in (0, 2):
        configure(connection, key_weight=weight)
        value(connection, "select pgrecall.forget('b', %s)", ids[weight : weight + 2])


def stem_in_german(connection: Connection, ids: list[int]) -> None:
    configure(connection, text_search_config="german")
    value(connection, "select pgrecall.forget('b', %s)", ids[:3])


def configure(connection: Connection, **settings: float | str) -> None:
    connection.execute("select pgrecall.configure_bank('b', %s)", [Jsonb(settings)])


def sent(first: int, count: int) -> Any:
    return Jsonb(facts(first, count))


@pytest.mark.parametrize(
    "change",
    [
        forget,
        forget_twice,
        forget_all,
        forget_where,
        forget_uncounted,
        replace,
        update,
        update_often,
        retain_again,
        quarantine,
        expire,
        merge,
        split,
        weigh_no_context,
        weigh_keys_again,
        stem_in_german,
    ],
)
def test_statistics_are_those_of_a_bank_that_is_counted_anew(
    connection: Connection, change: Any
) -> None:
    create(connection, settings={"context_weight": 0.5})
    ids = retain(connection, facts(0, 40))
    connection.execute("select pgrecall.refresh_statistics('b', true)")

    change(connection, ids)

    kept = counted(connection)
    connection.execute("select pgrecall.refresh_statistics('b', true)")
    assert kept == counted(connection)


@pytest.mark.parametrize(("before", "after"), [(0, 1), (1, 0)])
def test_messages_leave_the_counts_with_what_they_were_counted_with(
    connection: Connection, before: int, after: int
) -> None:
    create(connection, settings={"message_context_weight": before})
    said = Jsonb([{"text": f"{word} {n}", "session": "s"} for n in range(9) for word in WORDS])
    stored = "select message_id from pgrecall.retain_messages('b', %s)"
    ids = column(connection, stored, said)
    connection.execute("select pgrecall.refresh_statistics('b')")

    configure(connection, message_context_weight=after)
    value(connection, "select pgrecall.forget_messages('b', %s)", ids[:7])

    counts = "select lexeme, document_count from pgrecall_internal.lexeme where kind = 'message'"
    kept = dict(rows(connection, counts))
    connection.execute("select pgrecall.refresh_statistics('b', true)")
    assert kept == dict(rows(connection, counts))


def test_messages_that_nobody_has_counted_are_weighed_with_what_is_beside_them_from_now_on(
    connection: Connection,
) -> None:
    said = Jsonb([{"text": f"{word} {'on and ' * 9}{word}", "session": "s"} for word in WORDS])
    weights = "select lexical_length, lexical_weights::text from pgrecall.message order by text"
    create(connection)
    rows(connection, "select pgrecall.retain_messages('b', %s)", said)
    # As at isolation levels where retaining counts nothing.
    connection.execute("delete from pgrecall_internal.statistics")
    connection.execute("delete from pgrecall_internal.lexeme")

    configure(connection, message_context_weight=0.5)

    kept = rows(connection, weights)
    connection.execute("select pgrecall.refresh_statistics('b', true)")
    assert kept == rows(connection, weights)


def test_a_field_that_is_weighed_from_now_on_is_found(connection: Connection) -> None:
    create(connection, settings={"context_weight": 0})
    retain(connection, facts(0, 40))
    found = (
        "select count(*) from pgrecall.hybrid_recall('b', 'Day', top_k => 50,"
        """ options => '{"arms": ["lexical"]}')"""
    )
    assert value(connection, found) == 0

    configure(connection, context_weight=1)

    assert value(connection, found) == 20


@pytest.mark.parametrize("is_counted", [False, True])
def test_a_bank_is_searched_in_another_language_from_now_on(
    connection: Connection, is_counted: bool
) -> None:
    said = ["Die Häuser stehen am Hafen.", "Ana repariert Boote.", "Der Hafen ist alt."]
    weights = (
        "select text, lexical_length, lexical_weights::text from pgrecall.memory"
        " where bank_id = %s union all"
        " select text, lexical_length, lexical_weights::text from pgrecall.message"
        " where bank_id = %s order by 1, 2, 3"
    )
    for bank, config in ("b", "english"), ("other", "german"):
        create(connection, bank, text_search_config=config)
        retain(connection, said, bank=bank)
        messages = Jsonb([{"text": text, "session": "s"} for text in said])
        rows(connection, "select pgrecall.retain_messages(%s, %s)", bank, messages)
        if is_counted or bank == "other":
            connection.execute("select pgrecall.refresh_statistics(%s, true)", [bank])
    found = (
        "select text from pgrecall.hybrid_recall('b', 'Haus', top_k => 1,"
        """ options => '{"arms": ["lexical"]}')"""
    )
    assert column(connection, found) == []

    configure(connection, text_search_config="german")

    assert column(connection, found) == said[:1]
    assert rows(connection, weights, "b", "b") == rows(connection, weights, "other", "other")
    (prepared,) = call(connection, "prepare_recall", bank="b", query="wer kam?")
    assert prepared.time_settings == {"language": "de"}


def test_who_forgets_changes_the_statistics_of_its_bank_alone(connection: Connection) -> None:
    for bank in ("b", "other"):
        create(connection, bank)
        ids = retain(connection, facts(0, 40), bank=bank)
        connection.execute("select pgrecall.refresh_statistics(%s)", [bank])
    counts = (
        "select lexeme, document_count from pgrecall_internal.lexeme where bank_id = 'b' order by 1"
    )
    before = rows(connection, counts)

    # These are facts of the other bank.
    value(connection, "select pgrecall.forget('b', %s)", ids)
    value(connection, "select pgrecall.forget('other', %s)", ids[:20])

    assert rows(connection, counts) == before
    assert column(
        connection,
        "select document_count from pgrecall_internal.statistics"
        " where kind = 'memory' order by bank_id",
    ) == [40, 20]


def test_no_word_of_a_forgotten_memory_stays_in_the_vocabulary(connection: Connection) -> None:
    create(connection)
    retain(
        connection, [{"text": "Ana sails.", "source_id": "kept"}, "Code Zyx4711 opens Ana's door."]
    )
    connection.execute("select pgrecall.refresh_statistics('b')")
    connection.execute("select pgrecall.snapshot_vocabulary('b')")

    connection.execute("select pgrecall.forget_where('b', 'source_id is null')")

    left = value(connection, "select lexemes from pgrecall_internal.vocabulary")
    assert {*left} == {"ana", "sail", ""}
