"""Several writers at once. Databases of their own: here things commit."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

from pgrecall import Recall
from sqlcalls import (
    Connection,
    column,
    contents,
    refused,
    retain,
    retained,
    rows,
    value,
    waiting,
)

T = TypeVar("T")
WRITERS = 16
DEADLINE_S = 30


@pytest.fixture
def bank(database: str) -> Iterator[Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select pgrecall.create_bank('b')")
        yield connection


def together(dsn: str, work: Callable[[Connection, int], T], workers: int = WRITERS) -> list[T]:
    """Run work on as many connections, all starting at once; raises what any of them raised."""
    barrier = Barrier(workers, timeout=DEADLINE_S)

    def run(n: int) -> T:
        with psycopg.connect(dsn, autocommit=True) as connection:
            barrier.wait()
            return work(connection, n)

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(run, range(workers)))


def fact(n: int) -> dict[str, object]:
    return {
        "text": f"fact {n}",
        "fact_key": f"key.{n}",
        "entities": [f"Person {n % 5}", {"name": f"Place {n % 3}", "aliases": [f"P{n % 3}"]}],
        "relations": [{"from": f"Person {n % 5}", "kind": "in", "to": f"Place {n % 3}"}],
        "embedding": [n % 7 + 1, n % 3, 1],
        "occurred": f"2026-01-{n % 28 + 1:02}T00:00Z",
    }


def assert_is_whole(bank: Connection) -> None:
    """Nothing twice, nothing dangling, and the statistics count what is there."""
    assert (
        rows(bank, "select alias from pgrecall.entity_alias group by 1 having count(*) > 1") == []
    )
    assert (
        rows(
            bank,
            "select lower(name) from pgrecall.entity group by 1 having count(*) > 1",
        )
        == []
    )
    assert (
        rows(
            bank,
            "select content_hash from pgrecall.memory where valid_to is null"
            " group by 1 having count(*) > 1",
        )
        == []
    )
    assert (
        rows(
            bank,
            "select entity_id from pgrecall.entity e where not exists"
            " (select from pgrecall.mention x where x.entity_id = e.entity_id)",
        )
        == []
    )
    bank.execute("select pgrecall.refresh_statistics('b', true)")
    assert value(
        bank, "select document_count from pgrecall.bank_statistics('b') where kind = 'memory'"
    ) == value(bank, "select count(*) from pgrecall.memory")


def test_writers_into_one_bank_lose_nothing_and_write_nothing_twice(
    database: str, bank: Connection
) -> None:
    def work(connection: Connection, n: int) -> list[tuple[int, int, bool]]:
        # Half of each batch overlaps with the next writer's, and each in an order of its own.
        batch = [fact(k) for k in range(6 * n, 6 * n + 12)]
        random.Random(n).shuffle(batch)
        return [row for half in (batch[:6], batch[6:]) for row in retained(connection, half)]

    results = together(database, work)

    distinct = 6 * WRITERS + 6
    assert value(bank, "select count(*) from pgrecall.memory") == distinct
    assert sum(is_new for result in results for *_, is_new in result) == distinct
    assert value(bank, "select count(*) from pgrecall.entity") == 8
    assert_is_whole(bank)


def test_equal_batches_in_opposite_orders_do_not_deadlock(database: str, bank: Connection) -> None:
    batch = [fact(n) for n in range(20)]

    results = together(
        database,
        lambda connection, n: retained(connection, batch if n % 2 else reversed(batch)),
        workers=6,
    )

    assert [sum(row[2] for row in result) for result in sorted(results, key=str)].count(20) == 1
    by_text = {tuple(sorted(row[1] for row in result)) for result in results}
    assert len(by_text) == 1
    assert_is_whole(bank)


def test_many_transactions_of_each_kind_leave_a_bank_whole(database: str, bank: Connection) -> None:
    for n in range(40):
        retain(bank, [fact(n)])

    def work(connection: Connection, n: int) -> int:
        choose = random.Random(n)
        for _ in range(6):
            known = column(connection, "select memory_id from pgrecall.memory order by 1")
            a, b = choose.sample(known, 2)
            action = choose.choice(["retain", "forget", "supersede", "refresh", "message"])
            try:
                if action == "retain":
                    retain(connection, (fact(choose.randrange(60)) for _ in range(4)))
                elif action == "forget":
                    connection.execute("select pgrecall.forget('b', %s)", [[a, b]])
                elif action == "supersede":
                    connection.execute("select pgrecall.supersede('b', %s, %s)", [a, b])
                elif action == "refresh":
                    connection.execute("select pgrecall.refresh_statistics('b', true)")
                else:
                    connection.execute(
                        "select pgrecall.retain_messages('b', %s)",
                        [f'[{{"text": "{choose.randrange(9)}", "session": "s"}}]'],
                    )
            except psycopg.Error as error:
                if error.sqlstate != "RC010":  # forgotten meanwhile
                    raise
        return n

    assert together(database, work) == list(range(WRITERS))
    assert_is_whole(bank)


def test_a_bank_is_created_once(database: str) -> None:
    def work(connection: Connection, n: int) -> str | None:
        try:
            connection.execute("select pgrecall.create_bank('new')")
        except psycopg.Error as error:
            return error.sqlstate
        return None

    results = together(database, work, workers=8)

    assert sorted(results, key=str) == [None] + ["RC002"] * 7


def test_copies_of_two_banks_do_not_get_one_name(database: str, bank: Connection) -> None:
    bank.execute("select pgrecall.create_bank('other')")
    with (
        psycopg.connect(database) as first,
        psycopg.connect(database, autocommit=True) as second,
        ThreadPoolExecutor(1) as pool,
    ):
        first.execute("select pgrecall.clone_bank('b', 'new')")
        copied = pool.submit(second.execute, "select pgrecall.clone_bank('other', 'new')")
        waiting(bank, second.info.backend_pid)
        first.commit()

        with refused(bank, "RC002", 'bank "new" already exists', "Choose another name"):
            copied.result(DEADLINE_S)


@pytest.mark.parametrize("call", ["create_roles('at_once')", "disable_row_security()"])
def test_rights_are_changed_by_one_after_the_other(
    database: str, bank: Connection, call: str
) -> None:
    bank.execute("select pgrecall.enable_row_security()")
    try:
        together(database, lambda one, n: one.execute(f"select pgrecall.{call}"), workers=4)
    finally:
        for role in column(bank, "select rolname from pg_roles where rolname ~ '^at_once_'"):
            bank.execute(f"drop owned by {role} cascade; drop role {role}".encode())


def test_writers_meet_a_dropped_bank_as_one_that_does_not_exist(
    database: str, bank: Connection
) -> None:
    def work(connection: Connection, n: int) -> set[str | None]:
        codes: set[str | None] = set()
        for k in range(5):
            try:
                if n == 0:
                    connection.execute("select pgrecall.drop_bank('b')")
                else:
                    retain(connection, [fact(10 * n + k)])
            except psycopg.Error as error:
                codes.add(error.sqlstate)
        return codes

    results = together(database, work, workers=8)

    assert set().union(*results) <= {"RC001"}
    assert not any(contents(bank).values())


# One waits for the other


CALLS: dict[str, str] = {
    "retain": """retain('b', '[{"text": "x", "entities": ["Ana"]}]')""",
    "forget": "forget('b', '{1}')",
    "forget_messages": "forget_messages('b', '{1}')",
    "supersede": "supersede('b', (select min(memory_id) from pgrecall.memory))",
    "consolidate": "consolidate('b', false)",
    "unconsolidate": "unconsolidate('b')",
    "refresh_statistics": "refresh_statistics('b', true)",
    "configure_bank": "configure_bank('b', '{}')",
    "add_fact_type": "add_fact_type('b', 'decision')",
    "reembed_clean": "reembed_clean('b')",
    "drop_bank": "drop_bank('b')",
}


# These only add, and go on beside a writer that has not committed.
BESIDE: dict[str, str] = {
    "retain": """retain('b', '[{"text": "beside", "entities": ["Bo"], "embedding": [1, 2, 3]}]')""",
    "known": """retain('b', '[{"text": "fact 3", "fact_key": "key.3", "entities": ["Bea"]}]')""",
    "retain_messages": """retain_messages('b', '[{"text": "x"}]')""",
    "log_session": "log_session('b', 's')",
    "link_pending": "link_pending('b')",
    "maintain": "maintain('b')",
}


@pytest.mark.parametrize("call", CALLS)
def test_who_changes_a_bank_waits_for_its_writers(
    database: str, bank: Connection, call: str
) -> None:
    retain(bank, ["known"])
    with (
        psycopg.connect(database) as first,
        psycopg.connect(database) as second,
        ThreadPoolExecutor(1) as pool,
    ):
        retain(first, [{"text": "x", "entities": ["Ana"]}])
        result: Future[Any] = pool.submit(
            second.execute, f"select * from pgrecall.{CALLS[call]}".encode()
        )
        waiting(bank, second.info.backend_pid)
        first.commit()
        result.result(DEADLINE_S)
        second.commit()

    assert column(bank, "select name from pgrecall.entity") == (
        [] if call == "drop_bank" else ["Ana"]
    )


def test_a_bank_that_another_is_creating_may_be_left_as_it_is(database: str) -> None:
    with (
        psycopg.connect(database) as first,
        psycopg.connect(database, autocommit=True) as second,
        psycopg.connect(database, autocommit=True) as looked,
        ThreadPoolExecutor(1) as pool,
    ):
        first.execute("select pgrecall.create_bank('new')")
        result: Future[Any] = pool.submit(Recall(second).create_bank, "new", exist_ok=True)
        waiting(looked, second.info.backend_pid)
        first.commit()
        result.result(DEADLINE_S)

        assert column(looked, "select bank_id from pgrecall.bank") == ["new"]


@pytest.mark.parametrize("call", BESIDE)
def test_who_only_adds_goes_on_beside_an_idle_transaction(
    database: str, bank: Connection, call: str
) -> None:
    retain(bank, (fact(n) for n in range(40)))
    bank.execute("update pgrecall.memory set is_linked = false where text = 'fact 7'")
    with psycopg.connect(database) as idle:
        retain(idle, [{"text": "idle", "entities": ["Ana", "Person 1"], "embedding": [3, 2, 1]}])
        bank.execute("set lock_timeout = '2s'")

        bank.execute(f"select * from pgrecall.{BESIDE[call]}".encode())
        idle.commit()

    assert "Ana" in column(bank, "select name from pgrecall.entity")
    assert_is_whole(bank)


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (
            {"text": "same"},
            {"text": "same"},
            "select count(*) = 1 from pgrecall.memory where text = 'same'",
        ),
        (
            {"text": "x", "entities": ["Ana"]},
            {"text": "y", "entities": ["ana"]},
            "select count(*) = 1 from pgrecall.entity where lower(name) = 'ana'",
        ),
        (
            {"text": "x", "entities": [{"name": "Ana Paul", "aliases": ["Ana"]}]},
            {"text": "y", "entities": ["Ana"]},
            "select count(*) = 1 from pgrecall.entity where name like 'Ana%'",
        ),
        (
            {"text": "x", "entities": [{"name": "Ana Paul", "kind": "person"}]},
            {"text": "y", "entities": [{"name": "Ana", "kind": "person"}]},
            "select array_agg(name) = '{Ana Paul}' from pgrecall.entity where name like 'Ana%'",
        ),
        (
            {"text": "x", "entities": [{"name": "Paul", "kind": "person"}]},
            {"text": "y", "entities": [{"name": "Ana Paul", "kind": "person"}]},
            "select array_agg(name) = '{Ana Paul}' from pgrecall.entity where name like '%Paul'",
        ),
        (
            {"text": "x", "fact_key": "k"},
            {"text": "y", "fact_key": "K"},
            "select array_agg(text) = '{y}' from pgrecall.memory"
            " where lower(fact_key) = 'k' and valid_to is null",
        ),
    ],
    ids=["fact", "name", "alias", "first name", "last name", "key"],
)
def test_writers_of_one_fact_name_or_key_take_turns(
    database: str, bank: Connection, first: object, second: object, found: str
) -> None:
    retain(bank, (fact(n) for n in range(40)))
    with (
        psycopg.connect(database) as one,
        psycopg.connect(database, autocommit=True) as two,
        ThreadPoolExecutor(1) as pool,
    ):
        retain(one, [first], replace="key")
        result = pool.submit(retain, two, [second], replace="key")
        waiting(bank, two.info.backend_pid)
        one.commit()
        result.result(DEADLINE_S)

    assert value(bank, found)
    assert_is_whole(bank)


def test_what_another_has_ended_since_a_transaction_began_is_not_updated(
    database: str, bank: Connection
) -> None:
    (first,) = retain(bank, ["Ana likes tea"])
    changed = "select memory_id from pgrecall.update_memory('b', %s, %s)"
    with psycopg.connect(database) as older:
        older.execute("select now()")
        second = value(bank, changed, first, '{"text": "Ana likes milk"}')

        ended_at = value(
            bank, "select valid_to::text from pgrecall.memory order by memory_id limit 1"
        )
        with refused(older, "22023", f"memory {first} ended at {ended_at}", f"memory {second},"):
            older.execute(changed, [first, '{"tags": ["x"]}'])
        older.execute(changed, [second, '{"tags": ["x"]}'])

    overlaps = (
        "select x.memory_id, y.memory_id from pgrecall.memory x join pgrecall.memory y"
        " on x.memory_id < y.memory_id"
        " and tstzrange(x.valid_from, x.valid_to) && tstzrange(y.valid_from, y.valid_to)"
    )
    assert rows(bank, overlaps) == []


def test_transactions_over_two_banks_in_opposite_order_do_not_deadlock(
    database: str, bank: Connection
) -> None:
    bank.execute("select pgrecall.create_bank('c')")
    for name in ("b", "c"):
        retain(bank, (fact(n) for n in range(40)), bank=name)
    with psycopg.connect(database) as one, psycopg.connect(database) as two:
        for connection in (one, two):
            connection.execute("set lock_timeout = '2s'")
        retain(one, ["one"], bank="b")
        retain(two, ["two"], bank="c")

        retain(one, ["one"], bank="c")
        retain(two, ["two"], bank="b")
        one.commit()
        two.commit()

    for name in ("b", "c"):
        assert value(bank, "select count(*) from pgrecall.memory where bank_id = %s", name) == 42


@pytest.mark.parametrize("words", ["names", "relations"])
def test_transactions_that_bring_new_words_do_not_deadlock(
    database: str, bank: Connection, words: str
) -> None:
    recall = Recall(bank, reranker=None)
    recall.retain("b", [f"Known {n}" for n in range(40)])  # enough not to be counted anew
    barrier = Barrier(2, timeout=DEADLINE_S)

    def writer(connection: Connection, n: int) -> None:
        short, full = ("Malcolm", "Malcolm Dunmore") if n else ("Greta", "Greta Rossi")
        relation = {"from": short, "kind": f"sails_with_{n}", "to": "Cy"}
        second: dict[str, Any] = (
            {"entities": [full]} if words == "names" else {"relations": [relation]}
        )
        with connection.transaction():
            inside = Recall(connection, reranker=None)
            inside.retain("b", [f"first {n}"])
            barrier.wait()  # both have written before one wants the bank for itself
            inside.retain("b", [{"text": f"second {n}", "entities": [short]}])
            inside.retain("b", [{"text": f"third {n}", **second}])

    together(database, writer, 2)

    recall.embed_pending("b")
    assert rows(bank, "select text from pgrecall.names_pending('b')") == []
    assert rows(bank, "select text from pgrecall.relations_pending('b')") == []


def test_a_fact_that_commits_late_is_counted_and_found(database: str, bank: Connection) -> None:
    retain(bank, (fact(n) for n in range(40)))
    counted = "select document_count, waiting from pgrecall.bank_statistics('b')"
    with psycopg.connect(database) as late:
        ((_, late_id, _),) = retained(late, ["the xylophone"])
        for n in range(100, 120):
            retain(bank, [fact(n)])
        before = rows(bank, counted)
        late.commit()

    watermark = value(bank, "select watermark from pgrecall_internal.statistics")
    assert watermark < late_id
    assert before[0][0] < 60
    assert rows(bank, counted)[0] == (before[0][0], before[0][1] + 1)
    assert column(bank, "select text from pgrecall.hybrid_recall('b', 'xylophone')") == [
        "the xylophone"
    ]
    assert rows(bank, "select task, documents from pgrecall.maintain('b')")[0][0] == "count"
    assert rows(bank, counted) == [(61, 0)]


def test_a_fact_that_commits_while_others_are_counted_is_counted(
    database: str, bank: Connection
) -> None:
    retain(bank, (fact(n) for n in range(40)))
    bank.execute("alter function pgrecall_internal._settled_id rename to settled_id")
    bank.execute(
        "create function pgrecall_internal._settled_id(bank pgrecall.bank) returns bigint"
        " language plpgsql as $$begin perform pg_advisory_xact_lock(77);"
        " return pgrecall_internal.settled_id(bank); end$$"
    )
    bank.execute("select pg_advisory_lock(77)")
    with (
        psycopg.connect(database) as late,
        psycopg.connect(database, autocommit=True) as counting,
        ThreadPoolExecutor(1) as pool,
    ):
        retain(late, ["late"])
        result = pool.submit(retain, counting, [fact(n) for n in range(40, 60)])
        waiting(bank, counting.info.backend_pid)
        late.commit()
        bank.execute("select pg_advisory_unlock(77)")
        result.result(DEADLINE_S)

    assert column(bank, "select document_count + waiting from pgrecall.bank_statistics('b')") == [
        61
    ]


def mention_counts(bank: Connection) -> dict[str, int]:
    return dict(
        rows(
            bank,
            "select e.name, c.mention_count from pgrecall_internal.entity_count c"
            " join pgrecall.entity e using (bank_id, entity_id)",
        )
    )


@pytest.mark.parametrize("is_first", [True, False])
def test_what_a_known_fact_mentions_more_is_counted_beside_who_counts_the_fact(
    database: str, bank: Connection, is_first: bool
) -> None:
    retain(bank, (fact(n) for n in range(40)))
    bank.execute("select pgrecall.refresh_statistics('b', true)")
    retain(bank, ["known"])
    with psycopg.connect(database) as knowing, psycopg.connect(database) as counting:

        def know() -> None:
            retain(knowing, [{"text": "known", "entities": ["Ana"]}])

        def count() -> None:
            retain(counting, (fact(n) for n in range(40, 60)))

        if is_first:
            know()
            count()
            knowing.commit()
            counting.commit()
        else:
            count()
            with ThreadPoolExecutor(1) as pool:
                result = pool.submit(know)
                waiting(bank, knowing.info.backend_pid)
                counting.commit()
                result.result(DEADLINE_S)
            knowing.commit()
    bank.execute("select pgrecall.refresh_statistics('b')")

    kept = mention_counts(bank)
    assert kept["Ana"] == 1
    bank.execute("select pgrecall.refresh_statistics('b', true)")
    assert kept == mention_counts(bank)


def test_what_a_known_fact_mentions_more_is_not_counted_by_an_old_snapshot(
    database: str, bank: Connection
) -> None:
    retain(bank, (fact(n) for n in range(40)))
    bank.execute("select pgrecall.refresh_statistics('b', true)")
    retain(bank, ["known"])
    more = [{"text": "known", "entities": ["Ana"]}]
    with psycopg.connect(database) as late:
        late.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        late.execute("select 1 from pgrecall.bank")
        retain(bank, (fact(n) for n in range(40, 60)))

        with pytest.raises(psycopg.errors.SerializationFailure):
            retain(late, more)
        late.rollback()
        retain(late, more)

    assert mention_counts(bank)["Ana"] == 1


def test_an_old_snapshot_stores_nothing_with_the_mean_length_before_all_were_weighed(
    database: str, bank: Connection
) -> None:
    retain(bank, (f"fact {n}" for n in range(40)))
    bank.execute("select pgrecall.refresh_statistics('b', true)")
    weights = "select lexical_weights::text from pgrecall.memory where text = 'late'"
    with psycopg.connect(database) as late:
        late.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        late.execute("select 1 from pgrecall.bank")
        retain(bank, (" ".join(f"word{m}" for m in range(n, n + 60)) for n in range(40)))

        with pytest.raises(psycopg.errors.SerializationFailure):
            retain(late, ["late"])
        late.rollback()
        retain(late, ["late"])

    kept = value(bank, weights)
    bank.execute("update pgrecall_internal.statistics set weighed_to = 0")
    bank.execute("select pgrecall.maintain('b')")
    assert kept == value(bank, weights)


@pytest.mark.parametrize("call", ["refresh_statistics('b')", "maintain()", "reembed_finish('b')"])
def test_who_must_see_all_commits_says_so(bank: Connection, call: str) -> None:
    bank.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ

    with pytest.raises(psycopg.errors.ActiveSqlTransaction) as caught, bank.transaction():
        bank.execute(f"select pgrecall.{call}".encode())

    assert caught.value.diag.message_primary == (
        f"{call.partition('(')[0]}() must see what others commit,"
        ' so not at isolation level "repeatable read"'
    )


def test_maintenance_gives_way_to_writers(database: str, bank: Connection) -> None:
    retain(bank, (fact(n) for n in range(40)))
    bank.execute("update pgrecall_internal.statistics set weighted_length = 100")
    with psycopg.connect(database) as idle:
        retain(idle, ["idle"])

        assert rows(bank, "select task from pgrecall.maintain('b')") == []

        idle.commit()
    assert rows(bank, "select task from pgrecall.maintain('b')") == [("weigh",)]


@pytest.mark.parametrize("call", [name for name in CALLS if name != "drop_bank"])
def test_who_waited_for_a_bank_that_was_dropped_is_told(
    database: str, bank: Connection, call: str
) -> None:
    retain(bank, ["known"])
    with (
        psycopg.connect(database) as first,
        psycopg.connect(database) as second,
        ThreadPoolExecutor(1) as pool,
    ):
        first.execute("select pgrecall.drop_bank('b')")
        result: Future[Any] = pool.submit(
            second.execute, f"select * from pgrecall.{CALLS[call]}".encode()
        )
        waiting(bank, second.info.backend_pid)
        first.commit()
        with pytest.raises(psycopg.Error) as caught:
            result.result(DEADLINE_S)

    assert caught.value.sqlstate == "RC001"
    assert caught.value.diag.message_primary == 'bank "b" does not exist'
    assert not any(contents(bank).values())


def test_who_waited_for_a_bank_that_was_replaced_may_try_again(
    database: str, bank: Connection
) -> None:
    with (
        psycopg.connect(database) as first,
        psycopg.connect(database) as second,
        ThreadPoolExecutor(1) as pool,
    ):
        first.execute("select pgrecall.drop_bank('b')")
        first.execute("select pgrecall.create_bank('b')")
        result = pool.submit(retain, second, "x")
        waiting(bank, second.info.backend_pid)
        first.commit()
        with pytest.raises(psycopg.errors.SerializationFailure) as caught:
            result.result(DEADLINE_S)
        second.rollback()
        ((_, _, is_new),) = retained(second, ["x"])

    assert caught.value.diag.message_primary == (
        'bank "b" was replaced meanwhile, or may not be written'
    )
    assert caught.value.diag.message_hint == "Run the statement again."
    assert is_new


def test_readers_and_writers_of_other_banks_do_not_wait(database: str, bank: Connection) -> None:
    bank.execute("select pgrecall.create_bank('other')")
    retain(bank, ["known"])
    with psycopg.connect(database) as first:
        retain(first, ["uncommitted", "known"])
        first.execute("select pgrecall.drop_bank('b')")
        bank.execute("set lock_timeout = '1s'")

        retain(bank, [fact(1)], bank="other")
        found = column(bank, "select text from pgrecall.hybrid_recall('b', 'known uncommitted')")
        first.rollback()

    assert found == ["known"]


@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
def test_a_writer_with_an_old_snapshot_fails_rather_than_names_an_entity_twice(
    database: str, bank: Connection, level: str
) -> None:
    retain(bank, (fact(5 * n) for n in range(30)))  # so many that two more refresh nothing
    late_fact = {"text": "late", "entities": ["Person 1"]}
    with psycopg.connect(database) as late:
        late.isolation_level = psycopg.IsolationLevel[level]
        late.execute("select 1 from pgrecall.bank")
        retain(bank, [fact(1)])

        with pytest.raises(psycopg.errors.SerializationFailure):
            retain(late, [late_fact])
        late.rollback()
        retain(late, [late_fact])

    assert_is_whole(bank)


def test_writers_at_repeatable_read_meet_only_in_the_same_thing(
    database: str, bank: Connection
) -> None:
    retain(bank, (fact(n) for n in range(40)))

    def work(connection: Connection, n: int) -> int:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        failed = 0
        for k in range(10):
            number = 1000 + 10 * n + k
            try:
                retain(connection, [{**fact(number), "fact_key": None}])
            except psycopg.errors.SerializationFailure:
                failed += 1
        return failed

    failures = together(database, work, workers=8)

    assert sum(failures) == 0
    assert value(bank, "select count(*) from pgrecall.memory") == 120
    assert_is_whole(bank)


@pytest.mark.parametrize("pool_size", [None, 1])
def test_the_driver_sends_what_must_see_commits_at_read_committed(
    database: str, bank: Connection, pool_size: int | None
) -> None:
    options = "-c default_transaction_isolation=serializable"
    with Recall.connect(
        make_conninfo(database, options=options), embedder=None, pool_size=pool_size
    ) as memory:
        memory.retain("b", [f"fact {n}" for n in range(40)])
        uncounted = memory.bank_statistics("b")

        done = memory.maintain("b")
        memory.refresh_statistics("b", is_full=True)

    assert uncounted == []
    assert [(one.task, one.documents) for one in done] == [("count", 40)]
    assert column(bank, "select document_count from pgrecall.bank_statistics('b')") == [40, 0]
    with (
        psycopg.connect(database, options=options) as own,  # in a transaction of the caller
        pytest.raises(psycopg.errors.ActiveSqlTransaction),
    ):
        Recall(own, embedder=None).maintain("b")


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_the_driver_sends_again_what_failed_for_what_others_committed(
    database: str, bank: Connection, level: str
) -> None:
    retain(bank, (fact(n) for n in range(40)))
    dsn = make_conninfo(
        database, options=f"-c default_transaction_isolation={level.replace(' ', chr(92) + ' ')}"
    )

    def work(n: int) -> None:
        with Recall.connect(dsn, embedder=None) as memory:
            for k in range(5):  # each names somebody new, whom others name as well
                memory.retain("b", [{"text": f"{n} met {k}", "entities": [f"New {k}"]}])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))

    assert value(bank, "select count(*) from pgrecall.memory") == 60
    assert_is_whole(bank)


@pytest.mark.parametrize("call", ["configure_bank", "forget", "supersede"])
def test_a_snapshot_from_before_a_writer_that_was_alone_adds_nothing(
    database: str, bank: Connection, call: str
) -> None:
    (memory,) = retain(bank, ["known"])
    arguments = {"configure_bank": "'{}'", "forget": f"'{{{memory}}}'", "supersede": f"{memory}"}
    with psycopg.connect(database) as late:
        late.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        late.execute("select 1 from pgrecall.bank")
        bank.execute(f"select pgrecall.{call}('b', {arguments[call]})".encode())

        with pytest.raises(psycopg.errors.SerializationFailure):
            retain(late, ["late"])


OLD = {"text": "old", "fact_key": "k", "mentioned_at": "2026-01-01"}
NEW = {"text": "new", "fact_key": "k", "mentioned_at": "2026-02-01", "source_id": "web:1"}
KNOWN = {"text": "known", "entities": ["Ana", "Bo"]}
LED = [[{"from": name, "kind": "leads", "to": "Cy"}] for name in ("Ana", "Bo")]


def supersede_old(bank: Connection) -> None:
    bank.execute("select pgrecall.supersede('b', %s)", retain(bank, [OLD]))


def replace_old(bank: Connection) -> None:
    retain(bank, [OLD])
    retain(bank, [NEW], replace="key")


def say(bank: Connection) -> None:
    said = [{"text": "Ahoy.", "session": "s"}, {"text": f"{value(bank, 'select random()')}"}]
    bank.execute("select pgrecall.retain_messages('b', %s)", [Jsonb(said)])


def say_more(bank: Connection) -> None:
    said = [{"text": "More.", "session": "s"}]
    bank.execute("select pgrecall.retain_messages('b', %s)", [Jsonb(said)])


@pytest.mark.parametrize(
    ("before", "meanwhile", "call"),
    [
        (
            supersede_old,
            lambda bank: retain(bank, [OLD]),
            "unsupersede('b', (select min(memory_id) from pgrecall.memory where text = 'old'))",
        ),
        (replace_old, lambda bank: retain(bank, [OLD]), "quarantine('b', 'web:1')"),
        (
            lambda bank: retain(bank, [NEW]),
            lambda bank: retain(bank, [OLD], replace="key"),
            "forget('b', (select array_agg(memory_id) from pgrecall.memory where text = 'new'))",
        ),
        (
            lambda bank: retain(bank, [KNOWN | {"relations": LED[1]}]),
            lambda bank: retain(bank, [KNOWN | {"relations": LED[0]}]),
            "merge_entities('b', (select entity_id from pgrecall.entity where name = 'Ana'),"
            " (select array_agg(entity_id) from pgrecall.entity where name = 'Bo'))",
        ),
        (say, say_more, "forget_messages('b', session => 's')"),
    ],
    ids=["unsupersede", "quarantine", "forget", "merge_entities", "messages"],
)
def test_a_change_that_meets_what_its_snapshot_hides_is_to_be_run_again(
    database: str,
    bank: Connection,
    before: Callable[[Connection], Any],
    meanwhile: Callable[[Connection], Any],
    call: str,
) -> None:
    retain(bank, (f"fact {n}" for n in range(40)))
    for _ in range(40):
        say(bank)
    for statistics in ("memory", "message"):
        assert value(
            bank,
            "select document_count > 20 from pgrecall.bank_statistics('b') where kind = %s",
            statistics,
        )
    before(bank)
    with psycopg.connect(database) as late:
        late.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        late.execute("select 1 from pgrecall.bank")
        meanwhile(bank)

        with pytest.raises(psycopg.errors.SerializationFailure):
            late.execute(f"select pgrecall.{call}".encode())
        late.rollback()
        with contextlib.suppress(psycopg.errors.InvalidParameterValue):  # the same is said again
            late.execute(f"select pgrecall.{call}".encode())


# Writers whose locks cross


EMBEDDING = [1, 0, 1]
BOTH_MODELS = {"m1": EMBEDDING, "m2": EMBEDDING}


def anew(*memory_ids: int) -> str:
    """Return the call that stores embeddings of the next model."""
    embeddings = json.dumps([{"memory_id": one, "embedding": EMBEDDING} for one in memory_ids])
    return f"select pgrecall.reembed_store('b', 'm2', '{embeddings}')"


def people(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "kind": "person"} for name in names]


def in_turn(
    dsn: str,
    bank: Connection,
    first: Callable[[Connection], Any],
    *others: Callable[[Connection], Any],
) -> None:
    """Run a transaction that is open until each of the others, started in turn, waits."""
    with ExitStack() as stack:
        one = stack.enter_context(psycopg.connect(dsn))
        pool = stack.enter_context(ThreadPoolExecutor(len(others)))
        first(one)
        results = []
        for other in others:
            connection = stack.enter_context(psycopg.connect(dsn, autocommit=True))
            results.append(pool.submit(other, connection))
            waiting(bank, connection.info.backend_pid)
        one.commit()
        for result in results:
            result.result(DEADLINE_S)


@pytest.mark.parametrize(
    ("setting", "call"),
    [
        (
            {"replace": "relation"},
            """retain('b', '[{{"text": "{}",'
            ' "relations": [{{"from": "Ana", "kind": "leads", "to": "Bo"}}]}}]')""",
        ),
        ({"message_context_weight": 0.5}, """retain_messages('b', '[{{"text": "{}"}}]')"""),
    ],
    ids=["retain", "retain_messages"],
)
def test_writers_that_waited_for_a_setting_and_then_want_the_bank_alone_do_not_deadlock(
    database: str, bank: Connection, setting: dict[str, Any], call: str
) -> None:
    in_turn(
        database,
        bank,
        lambda one: one.execute("select pgrecall.configure_bank('b', %s)", [Jsonb(setting)]),
        *(
            lambda one, text=text: one.execute(f"select * from pgrecall.{call.format(text)}")
            for text in ("x", "y")
        ),
    )

    assert sum(len(contents(bank)[f"pgrecall.{name}"]) for name in ("memory", "message")) == 2


def test_samples_for_a_bank_that_is_being_dropped_meet_one_that_does_not_exist(
    database: str, bank: Connection
) -> None:
    sample = {"asked_at": "2026-03-05T14:00Z", "share": 1, "hits": 1}
    sample |= {f"{part}_ms": 1 for part in ("total", "wait", "embed", "database", "rerank")}
    with refused(bank, "RC001", 'bank "b" does not exist', "create_bank"):
        in_turn(
            database,
            bank,
            lambda one: one.execute("select pgrecall.drop_bank('b')"),
            lambda one: one.execute("select pgrecall.log_recalls('b', %s)", [Jsonb([sample])]),
        )


def test_embedding_known_facts_anew_and_retaining_them_do_not_deadlock(
    database: str, bank: Connection
) -> None:
    known = [{"text": f"fact {n}", "embeddings": {"m1": EMBEDDING}} for n in range(40)]
    ids = retain(bank, known, model="m1")
    bank.execute("select pgrecall.reembed_start('b', 'm2', 3)")
    again = [fact | {"embeddings": BOTH_MODELS} for fact in (known[2], known[0])]

    in_turn(
        database,
        bank,
        lambda one: one.execute(anew(ids[1]).encode()),
        lambda one: one.execute(anew(*ids[:3]).encode()),
        lambda one: retain(one, again, model="m1"),
    )

    assert value(bank, "select count(*) from pgrecall.embedding where model = 'm2'") == 3


def test_who_counts_and_known_facts_that_mention_more_do_not_deadlock(
    database: str, bank: Connection
) -> None:
    retain(bank, ({"text": f"fact {n}", "entities": ["Ana", "Bo"]} for n in range(40)))
    retain(bank, ["one", "two"])
    bank.execute("select pgrecall.refresh_statistics('b', true)")
    new = [{"text": f"new {n}", "entities": ["Ana"]} for n in range(20)]

    in_turn(
        database,
        bank,
        lambda one: one.execute(
            "select from pgrecall_internal.entity_count c join pgrecall.entity e"
            " using (bank_id, entity_id) where e.name = 'Bo' for update of c"
        ),
        lambda one: retain(one, [{"text": "one", "entities": ["Bo"]}, *new]),
        lambda one: retain(one, [{"text": "two", "entities": ["Ana", "Bo"]}]),
    )
    bank.execute("select pgrecall.refresh_statistics('b')")

    assert mention_counts(bank) == {"Ana": 61, "Bo": 42}


def test_writers_that_give_a_kind_and_a_full_name_do_not_deadlock(
    database: str, bank: Connection
) -> None:
    retain(bank, (fact(n) for n in range(40)))
    retain(bank, [{"text": "one", "entities": ["Bo"]}, {"text": "two", "entities": ["Ana"]}])

    in_turn(
        database,
        bank,
        lambda one: retain(one, [{"text": "a", "entities": people("Bo")}]),
        lambda one: retain(one, [{"text": "b", "entities": people("Bo", "Ana")}]),
        lambda one: retain(one, [{"text": "c", "entities": people("Bo", "Ana Silva")}]),
    )

    assert rows(
        bank, "select name, kind from pgrecall.entity where name ~ 'Ana|Bo' order by 1"
    ) == [
        ("Ana Silva", "person"),
        ("Bo", "person"),
    ]
    assert_is_whole(bank)


def test_a_kind_that_another_has_given_is_not_overwritten(database: str, bank: Connection) -> None:
    retain(bank, (fact(n) for n in range(40)))
    retain(bank, [{"text": "one", "entities": ["Jordan"]}])
    place = {"name": "Jordan", "kind": "place"}

    in_turn(
        database,
        bank,
        lambda one: retain(one, [{"text": "a", "entities": people("Jordan")}]),
        lambda one: retain(one, [{"text": "b", "entities": [place]}]),
    )

    assert column(
        bank, "select kind from pgrecall.entity where name = 'Jordan' order by entity_id"
    ) == ["person", "place"]


def test_writers_of_earlier_messages_lock_sessions_in_order(
    database: str, bank: Connection
) -> None:
    def said(one: Connection, day: str, *sessions: str) -> None:
        given = [{"text": day, "session": name, "sent_at": day} for name in sessions]
        one.execute("select count(*) from pgrecall.retain_messages('b', %s)", [Jsonb(given)])

    for name in "zma":
        said(bank, "2026-01-02", name)
    with (
        psycopg.connect(database) as blocker,
        psycopg.connect(
            # As the planner may choose, where rows come as they lie.
            database,
            autocommit=True,
            options="-c enable_sort=off -c enable_nestloop=off -c enable_indexscan=off"
            " -c enable_bitmapscan=off",
        ) as writer,
        ThreadPoolExecutor(1) as pool,
    ):
        blocker.execute("select from pgrecall.session where session_id = 'a' for update")
        done = pool.submit(said, writer, "2026-01-01", *"zma")
        waiting(bank, writer.info.backend_pid)
        free = column(bank, "select session_id from pgrecall.session for update skip locked")
        blocker.commit()
        done.result(DEADLINE_S)

    assert sorted(free) == ["m", "z"]
    assert set(column(bank, "select started_at::date::text from pgrecall.session")) == {
        "2026-01-01"
    }


def test_retaining_known_facts_and_replacing_them_do_not_deadlock(
    database: str, bank: Connection
) -> None:
    kept = {"text": "kept", "embeddings": {"m1": EMBEDDING}}
    retain(bank, (f"fact {n}" for n in range(40)))
    old, other = retain(bank, [{"text": "old", "fact_key": "k"}, kept], model="m1")
    bank.execute("select pgrecall.reembed_start('b', 'm2', 3)")
    again = kept | {"embeddings": BOTH_MODELS}
    new = {"text": "new", "fact_key": "k"}

    in_turn(
        database,
        bank,
        lambda one: one.execute(anew(other).encode()),
        lambda one: retain(one, [again, new], model="m1", replace="key"),
        lambda one: retain(one, [{"text": "old", "fact_key": "k"}, kept], replace="none"),
    )

    assert value(bank, "select text from pgrecall.memory where memory_id = %s", old) == "old"
    assert column(
        bank, "select text from pgrecall.memory where fact_key = 'k' and valid_to is null"
    ) == ["new"]
