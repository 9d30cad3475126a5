"""Banks, memories and conversations from their beginning to their end."""

from __future__ import annotations

from collections import Counter

import pytest
from psycopg.types.json import Jsonb

from sqlcalls import (
    READS,
    Connection,
    attach_filed,
    column,
    contents,
    create,
    fill,
    found_by,
    recalled,
    refused,
    retain,
    retained,
    rows,
    value,
)

SIX = ["event", "experience", "observation", "opinion", "preference", "world"]


# Banks


def test_a_new_bank_has_six_fact_types_and_nothing_pinned(connection: Connection) -> None:
    create(connection)

    assert column(connection, "select fact_type from pgrecall.fact_type order by 1") == SIX
    assert rows(
        connection,
        """select bank_id, text_search_config, embedding_model, embedding_dimensions, options,
                  bm25_k1, bm25_b
           from pgrecall.bank""",
    ) == [("b", "english", None, None, {}, 1.2, 0.75)]
    assert rows(
        connection,
        "select bank_id, memories, messages, entities, created_at = now()"
        " from pgrecall.bank_overview",
    ) == [("b", 0, 0, 0, True)]


def test_a_bank_is_created_as_asked(connection: Connection) -> None:
    create(
        connection,
        text_search_config="simple",
        embedding_model="m",
        embedding_dimensions=2,
        fact_types=["decision", "world", "decision"],
        settings={"rrf_k": 20, "weights": {"graph": 0}},
    )

    assert column(connection, "select fact_type from pgrecall.fact_type order by 1") == sorted(
        [*SIX, "decision"]
    )
    assert rows(
        connection,
        "select text_search_config, embedding_model, embedding_dimensions, options"
        " from pgrecall.bank",
    ) == [("simple", "m", 2, {"rrf_k": 20, "weights": {"graph": 0}})]
    assert value(
        connection, "select description <> '' from pgrecall.fact_type where fact_type = 'world'"
    )


def test_an_empty_model_is_none(connection: Connection) -> None:
    create(connection, embedding_model="")

    assert value(connection, "select embedding_model from pgrecall.bank") is None


def test_settings_not_named_stay(connection: Connection) -> None:
    create(connection, settings={"rrf_k": 20, "bm25_b": 0.5})

    connection.execute("select pgrecall.configure_bank('b', '{\"bm25_b\": 0}')")

    assert value(connection, "select bm25_b from pgrecall.bank") == 0
    assert value(connection, "select pgrecall.bank_options('b') -> 'rrf_k'") == 20


def test_null_takes_an_option_of_a_bank_away(connection: Connection) -> None:
    create(connection, settings={"rrf_k": 20})

    connection.execute("select pgrecall.configure_bank('b', '{\"rrf_k\": null}')")

    assert value(connection, "select pgrecall.bank_options('b') -> 'rrf_k'") == 60


def test_weights_of_a_bank_weigh_its_recalls(connection: Connection) -> None:
    create(connection)
    keyed = "another matter altogether"
    retain(connection, ["about the harbour", {"text": keyed, "fact_key": "harbour"}])
    by_default = recalled(connection, "harbour")

    connection.execute("""select pgrecall.configure_bank('b', '{"weights": {"key": 0}}')""")

    assert by_default[0] == keyed
    assert recalled(connection, "harbour")[0] == "about the harbour"


def test_an_added_fact_type_can_be_retained_and_recalled(connection: Connection) -> None:
    create(connection)

    connection.execute("select pgrecall.add_fact_type('b', 'decision', 'What we chose.')")
    connection.execute("select pgrecall.add_fact_type('b', 'decision')")
    retain(connection, [{"text": "We chose Oslo", "fact_type": "decision"}, "Oslo is a city"])

    assert recalled(connection, "oslo", fact_types=["decision"]) == ["We chose Oslo"]
    assert column(
        connection, "select description from pgrecall.fact_type where fact_type = 'decision'"
    ) == ["What we chose."]


def test_dropping_a_bank_leaves_nothing_of_it_and_all_of_another(connection: Connection) -> None:
    for bank in ("a", "b"):
        fill(connection, bank)
        attach_filed(connection, bank)
    before = contents(connection, "bank_id = 'a'")

    removed = value(connection, "select pgrecall.drop_bank('b')")

    assert removed == 3
    assert all(before.values()), "every table is to be tested"
    assert contents(connection, "bank_id = 'b'") == {table: [] for table in before}
    assert contents(connection) == before


def test_a_dropped_bank_can_be_created_anew_and_is_empty(connection: Connection) -> None:
    fill(connection, "b")
    connection.execute("select pgrecall.drop_bank('b')")

    create(connection)

    assert recalled(connection, "Ana") == []
    assert value(connection, "select embedding_dimensions from pgrecall.bank") is None


# Memories that end


def test_a_superseded_fact_is_found_only_as_of_earlier_times(connection: Connection) -> None:
    create(connection)
    old, new = retain(
        connection,
        [
            {"text": "Ana leads Atlas", "mentioned_at": "2026-01-01"},
            {"text": "Sam leads Atlas", "mentioned_at": "2026-02-01"},
        ],
    )

    connection.execute("select pgrecall.supersede('b', %s, %s, '2026-02-01Z')", [old, new])

    assert recalled(connection, "atlas") == ["Sam leads Atlas"]
    assert recalled(connection, "atlas", as_of="2026-02-01Z") == ["Sam leads Atlas"]
    assert recalled(connection, "atlas", as_of="2026-01-31T23:59:59Z") == ["Ana leads Atlas"]
    assert recalled(connection, "atlas", as_of="2025-12-31") == []
    assert rows(
        connection, "select superseded_by from pgrecall.memory where memory_id = %s", old
    ) == [(new,)]


def test_a_fact_cannot_end_before_it_was_known(connection: Connection) -> None:
    create(connection)
    (old,) = retain(connection, [{"text": "x", "mentioned_at": "2026-01-01"}])

    connection.execute("select pgrecall.supersede('b', %s, null, '2025-01-01')", [old])

    assert value(connection, "select valid_to = valid_from from pgrecall.memory")
    assert recalled(connection, "x", as_of="2026-01-01") == []


def test_forgetting_takes_along_all_that_hangs_on_a_fact(connection: Connection) -> None:
    old, new = fill(connection, "b")
    (kept,) = retain(connection, [{"text": "Atlas is a project", "entities": ["Atlas"]}])

    removed = value(connection, "select pgrecall.forget('b', %s)", [old, -1, None])

    assert removed == 1
    for table in ("embedding", "mention", "relation"):
        assert old not in column(connection, f"select memory_id from pgrecall.{table}")
    assert rows(connection, "select * from pgrecall.link where %s in (from_id, to_id)", old) == []
    assert column(connection, "select name from pgrecall.entity") == ["Atlas"]
    assert column(connection, "select alias from pgrecall.entity_alias") == ["atlas"]
    assert rows(
        connection,
        "select memory_id, superseded_by, valid_to is null from pgrecall.memory order by 1",
    ) == [(new, None, False), (kept, None, True)]


def test_forgetting_twice_or_nothing_removes_nothing(connection: Connection) -> None:
    (old, _) = fill(connection, "b")

    counts = [
        value(connection, "select pgrecall.forget('b', %s::bigint[])", given)
        for given in ([old, old], [old], [], None)
    ]

    assert counts == [1, 0, 0, 0]


def test_a_forgotten_fact_can_be_retained_again(connection: Connection) -> None:
    create(connection)
    (old,) = retain(connection, ["x"])
    connection.execute("select pgrecall.forget('b', %s)", [[old]])

    ((_, new, is_new),) = retained(connection, ["x"])

    assert is_new
    assert new > old


# Conversations


def test_the_last_session_is_the_last_that_was_over_by_then(connection: Connection) -> None:
    create(connection)
    sessions = [("a", "2026-01-01", "2026-01-02"), ("b", "2026-01-01", "2026-01-04")]
    for session in [*sessions, ("open", "2026-01-05", None)]:
        connection.execute("select pgrecall.log_session('b', %s, %s, %s)", session)

    ends = [
        value(connection, "select pgrecall.last_session_end('b', %s)::date::text", before)
        for before in ("2026-02-01", "2026-01-04", "2026-01-02")
    ]

    assert ends == ["2026-01-04", "2026-01-02", None]


def test_a_second_note_of_a_session_fills_in_its_end_and_keeps_its_start(
    connection: Connection,
) -> None:
    create(connection)
    connection.execute("select pgrecall.log_session('b', 's', '2026-01-01')")

    connection.execute("select pgrecall.log_session('b', 's', '2026-01-02', '2026-01-03')")
    connection.execute("select pgrecall.log_session('b', 's', '2026-01-04')")

    assert rows(
        connection, "select started_at::date::text, ended_at::date::text from pgrecall.session"
    ) == [("2026-01-01", "2026-01-03")]


def test_the_end_of_a_session_can_be_told_later(connection: Connection) -> None:
    create(connection)
    connection.execute("select pgrecall.log_session('b', 's', '2026-01-01')")

    connection.execute("select pgrecall.log_session('b', 's', ended_at => '2026-01-02')")

    assert value(connection, "select ended_at::date::text from pgrecall.session") == "2026-01-02"


def test_a_session_began_with_its_first_message_whichever_is_stored_first(
    connection: Connection,
) -> None:
    create(connection)
    for day in (3, 1, 2):
        message = {"text": f"day {day}", "session": "s", "sent_at": f"2026-01-0{day}"}
        connection.execute("select pgrecall.retain_messages('b', %s)", [Jsonb([message])])

    started = value(connection, "select started_at::date::text from pgrecall.session")
    assert started == "2026-01-01"


def test_messages_are_stored_once(connection: Connection) -> None:
    create(connection)
    statement = "select index, is_new, message_id from pgrecall.retain_messages('b', %s)"
    batch = (
        '[{"text": "hello"}, {"text": "hello", "role": "assistant"}, {"text": "hello"},'
        ' {"text": "hello", "session": "s"}, {"text": "hello", "session": null, "role": "user"}]'
    )

    first = rows(connection, statement, batch)
    second = rows(connection, statement, batch)

    assert [row[:2] for row in first] == [(0, True), (1, True), (2, False), (3, True), (4, False)]
    assert [(row[0], row[2]) for row in second] == [(row[0], row[2]) for row in first]
    assert not any(row[1] for row in second)
    assert column(connection, "select session_id from pgrecall.session") == ["s"]


# Statistics


def counted(connection: Connection) -> tuple[dict[str, int], int, float]:
    """Return what the statistics should be, from the texts."""
    documents = [
        dict(rows(connection, "select * from pgrecall.lexemes('english', %s)", text))
        for text in column(
            connection, "select concat_ws(' ', text, context, fact_key) from pgrecall.memory"
        )
    ]
    total = sum(sum(document.values()) for document in documents)
    return (
        dict(Counter(w for d in documents for w in d)),
        len(documents),
        round(total / len(documents), 9),
    )


def stored(connection: Connection) -> tuple[dict[str, int], int, float]:
    lexemes = "select lexeme, document_count from pgrecall_internal.lexeme where kind = 'memory'"
    ((count, average),) = rows(
        connection,
        "select document_count, average_length from pgrecall_internal.statistics"
        " where kind = 'memory'",
    )
    return dict(rows(connection, lexemes)), count, round(average, 9)


def weights(connection: Connection) -> list[str]:
    return column(connection, "select lexical_weights::text from pgrecall.memory order by text")


def test_a_full_refresh_counts_exactly(connection: Connection) -> None:
    create(connection, settings={"context_weight": 1})
    found: list[int] = []
    for n in range(60):
        fact = {"text": f"number {n} " + "word " * (n % 7), "context": "log", "fact_key": f"k-{n}"}
        found += retain(connection, [fact])
    connection.execute("select pgrecall.forget('b', %s)", [found[::3]])
    drifted = stored(connection) != counted(connection)

    connection.execute("select pgrecall.refresh_statistics('b', is_full => true)")

    assert drifted
    assert stored(connection) == counted(connection)
    assert column(connection, "select waiting from pgrecall.bank_statistics('b')") == [0, 0]


def test_weights_after_a_full_refresh_do_not_depend_on_the_history(connection: Connection) -> None:
    facts = [f"fact {n} " + "word " * n for n in range(30)]
    create(connection, "at once")
    retain(connection, facts, bank="at once")
    create(connection)
    for fact in facts:
        retain(connection, [fact])

    for bank in ("b", "at once"):
        connection.execute("select pgrecall.refresh_statistics(%s, true)", [bank])

    by_bank = "select lexical_weights::text from pgrecall.memory where bank_id = %s order by text"
    assert column(connection, by_bank, "b") == column(connection, by_bank, "at once")


@pytest.mark.parametrize("setting", ['{"bm25_k1": 2}', '{"bm25_b": 0}'])
def test_a_full_refresh_takes_up_changed_settings(connection: Connection, setting: str) -> None:
    create(connection)
    retain(connection, (f"fact {n} " + "word " * n for n in range(1, 9)))
    connection.execute("select pgrecall.refresh_statistics('b', true)")
    before = weights(connection)

    connection.execute("select pgrecall.configure_bank('b', %s)", [setting])
    connection.execute("select pgrecall.refresh_statistics('b', true)")

    assert weights(connection) != before


def test_bank_statistics_tell_of_memories_and_messages(connection: Connection) -> None:
    fill(connection, "b")

    found = rows(
        connection,
        "select kind, document_count, average_length > 0, lexeme_count > 0, waiting,"
        " refreshed_at = now() from pgrecall.bank_statistics('b')",
    )

    assert found == [("memory", 2, True, True, 0, True), ("message", 1, True, True, 0, True)]


# Tenants


@pytest.mark.parametrize("function", READS)
def test_banks_of_equal_content_never_see_one_another(
    connection: Connection, function: str
) -> None:
    fill(connection, "a")
    fill(connection, "b")
    owner = {
        key: bank
        for table, name in (("memory", "memory"), ("message", "message"), ("entity", "entity"))
        for bank, key in rows(connection, f"select bank_id, {name}_id from pgrecall.{table}")
    }

    for bank in ("a", "b"):
        found = found_by(connection, function, bank)
        assert found
        assert {owner[key] for key in found} == {bank}


def test_ids_of_another_bank_do_nothing(connection: Connection) -> None:
    other, _ = fill(connection, "a")
    create(connection)
    (mine,) = retain(connection, ["x"])
    before = contents(connection)

    assert value(connection, "select pgrecall.forget('b', %s)", [other]) == 0
    for old, new in ((other, None), (mine, other)):
        with refused(connection, "RC010", f'bank "b" has no memory {other}', "retain"):
            connection.execute("select pgrecall.supersede('b', %s, %s)", [old, new])
    link = {"text": "y", "links": [{"kind": "causes", "to_id": other}]}
    with refused(
        connection,
        "RC003",
        f'facts[0].links[0]: no memory of bank "b" answers to {{"to_id": {other}}}',
        "Retain the fact",
    ):
        retain(connection, [link])
    assert contents(connection) == before
