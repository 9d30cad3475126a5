"""What retain() leaves over, and maintain(), which does it in batches."""

from __future__ import annotations

import psycopg
import pytest

from sqlcalls import Connection, call, column, create, retain, rows, value

SHORT = 620  # more than a bank may have whose weights retain() computes anew
LONG = 70


def changed(connection: Connection, bank: str = "b") -> list[int]:
    """Make a bank whose facts become longer, and leave the rest to maintain(); returns its ids."""
    create(connection, bank)
    found = retain(connection, (f"alpha beta number{n}" for n in range(SHORT)), bank=bank)
    found += retain(
        connection,
        (f"gamma delta {'many words of a long text ' * 9} number{n}" for n in range(LONG)),
        bank=bank,
    )
    return found


def weights(connection: Connection, bank: str = "b") -> list[str]:
    statement = "select lexical_weights::text from pgrecall.memory where bank_id = %s order by text"
    return column(connection, statement, bank)


def statistics(connection: Connection) -> tuple[float, float, int | None]:
    ((found),) = rows(
        connection,
        "select average_length, weighted_length, weighed_to from pgrecall_internal.statistics"
        " where bank_id = 'b' and kind = 'memory'",
    )
    return found


def maintain(connection: Connection, **given: object) -> list[tuple[str, str, str, int]]:
    return [tuple(row) for row in call(connection, "maintain", **given)]


def is_weighed(connection: Connection) -> bool:
    return bool(
        value(
            connection,
            "select is_weighed from pgrecall.bank_statistics('b') where kind = 'memory'",
        )
    )


def test_no_retain_computes_the_weights_of_a_large_bank(connection: Connection) -> None:
    create(connection)
    retain(connection, (f"alpha beta number{n}" for n in range(SHORT)))
    before = weights(connection)

    retain(connection, (f"{'many words of a long text ' * 9} number{n}" for n in range(LONG)))

    assert set(before) <= set(weights(connection))
    assert not is_weighed(connection)


def test_a_small_bank_weighs_its_facts_at_once(connection: Connection) -> None:
    create(connection)
    retain(connection, ["alpha"])
    before = weights(connection)

    retain(connection, ["beta " + "many words of a long text " * 9])

    assert not set(before) & set(weights(connection))
    assert is_weighed(connection)
    assert maintain(connection) == []


def test_maintain_weighs_in_batches_what_a_full_refresh_weighs_at_once(
    connection: Connection,
) -> None:
    changed(connection)
    changed(connection, "whole")
    connection.execute("select pgrecall.refresh_statistics('b')")

    done = []
    while batch := maintain(connection, bank="b", batch_size=400):
        done += batch

    connection.execute("select pgrecall.refresh_statistics('whole', true)")
    assert done == [("b", "weigh", "memory", size) for size in (400, 290)]
    assert weights(connection) == weights(connection, "whole")
    assert is_weighed(connection)


def test_two_means_stand_beside_each_other_while_weights_are_computed(
    connection: Connection,
) -> None:
    ids = changed(connection)
    connection.execute("select pgrecall.refresh_statistics('b')")
    average, old, _ = statistics(connection)
    weighed = "select memory_id, lexical_weights::text from pgrecall.memory order by 1"
    before = dict(rows(connection, weighed))

    maintain(connection, bank="b", batch_size=400)

    after = dict(rows(connection, weighed))
    assert statistics(connection) == (average, average, ids[399])
    assert {n for n in ids if before[n] != after[n]} == set(ids[:400])
    assert old / average < 0.95
    # What is retained meanwhile has the new mean.
    (late,) = retain(connection, ["alpha beta number0 late"])
    first = value(
        connection,
        "select lexical_weights <#> lexical_weights from pgrecall.memory where memory_id = %s",
        ids[0],
    )
    assert first < value(
        connection,
        "select lexical_weights <#> lexical_weights from pgrecall.memory where memory_id = %s",
        ids[500],
    )
    assert value(connection, "select text from pgrecall.hybrid_recall('b', 'number600')") == (
        "alpha beta number600"
    )
    assert late


def test_a_call_counts_a_bounded_number_of_documents(connection: Connection) -> None:
    create(connection)
    retain(connection, ["first"])
    # As many as another release, or a restore of single tables, may leave uncounted.
    connection.execute(
        "insert into pgrecall.memory (bank_id, fact_type, text, content_hash, lexical_length)"
        " select 'b', 'world', 'left ' || n, sha256(int4send(n)), 1"
        " from generate_series(1, 2000) as n"
    )

    retain(connection, ["one more"])

    counted = "select document_count from pgrecall.bank_statistics('b') where kind = 'memory'"
    assert value(connection, counted) == 1 + 500 + 1
    assert maintain(connection, bank="b", batch_size=1000)[0] == ("b", "count", "memory", 1000)
    assert value(connection, counted) == 1502


def test_maintain_goes_over_all_banks_until_the_batch_is_full(connection: Connection) -> None:
    for bank in ("a", "b", "c"):
        create(connection, bank)
        retain(connection, [f"fact {n}" for n in range(3)], bank=bank, link="deferred")

    first = maintain(connection, batch_size=4)
    rest = maintain(connection, batch_size=4)

    assert first == [("a", "link", "memory", 3), ("b", "link", "memory", 3)]
    assert rest == [("c", "link", "memory", 3)]
    assert maintain(connection) == []
    assert column(connection, "select pgrecall.pending_links(bank_id) from pgrecall.bank") == [
        0,
        0,
        0,
    ]


def test_messages_are_weighed_too(connection: Connection) -> None:
    create(connection)
    for texts in ([f"word {n}" for n in range(SHORT)], [f"{'long ' * 99}{n}" for n in range(LONG)]):
        call(connection, "retain_messages", bank="b", messages=[{"text": t} for t in texts])
    connection.execute("select pgrecall.refresh_statistics('b')")

    done = maintain(connection, bank="b", batch_size=2000)

    assert done == [("b", "weigh", "message", SHORT + LONG)]
    assert maintain(connection) == []


def test_maintain_that_is_stopped_keeps_what_calls_before_it_did(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        changed(connection)
        connection.execute("select pgrecall.refresh_statistics('b')")
        maintain(connection, bank="b", batch_size=400)
        reached = statistics(connection)
        connection.execute("set statement_timeout = '1ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            maintain(connection, bank="b", batch_size=100000)
        connection.execute("reset statement_timeout")

        stopped = statistics(connection)
        rest = maintain(connection, bank="b", batch_size=100000)

    assert stopped == reached
    assert rest == [("b", "weigh", "memory", SHORT + LONG - 400)]


def test_a_bank_that_another_transaction_holds_does_not_keep_the_others_from_their_turn(
    database: str,
) -> None:
    with psycopg.connect(database, autocommit=True) as connection, psycopg.connect(database) as one:
        for bank in ("a", "b", "c"):
            create(connection, bank)
            retain(connection, ["x"], bank=bank, link="deferred")
        one.execute("select pgrecall.configure_bank('b', '{}')")

        while done := maintain(connection):
            assert "b" not in {bank for bank, *_ in done}
        assert maintain(connection, bank="b") == []
        waiting = column(connection, "select bank_id from pgrecall.memory where not is_linked")
        one.rollback()

        assert waiting == ["b"]
        assert maintain(connection, bank="b") == [("b", "link", "memory", 1)]
