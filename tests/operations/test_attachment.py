"""attach_table(), sync_table(), detach_table(): a table of one's own as memories."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from pgrecall import InvalidArgument, Recall
from servers import kept_fixture
from sqlcalls import Connection, call, column, recalled, refused, retain, rows, value, waiting

TICKETS = """
create table ticket (
  id        bigint primary key,
  title     text,
  body      text,
  author    text,
  watchers  text[] not null default '{}',
  labels    jsonb not null default '[]',
  opened_at timestamptz,
  kind      text,
  weight    numeric);
insert into ticket values
  (1, 'Pool', 'Raised max_client_conn to 1200.', 'Ana Silva', '{Bo,Cy}', '["ops"]', '2026-03-05',
   null, 0.5),
  (2, 'Shop', 'The shop was open again.', 'Bo', '{}', '[]', null, 'event', null),
  (3, null, null, 'Cy', '{}', '[]', null, null, null)
"""
ATTACHED: dict[str, Any] = {
    "bank": "b",
    "relation": "ticket",
    "key": "id",
    "text": "body",
    "occurred": "opened_at",
    "entities": ["author", "watchers"],
}
FIELDS = (
    '{"context": "title", "tags": "labels", "fact_type": "kind", "confidence": "weight",'
    ' "metadata": ["author"]}'
)
# What the bank should hold, from the table itself.
SAID = "select id::text, body from ticket where trim(body) <> '' order by 1"
HELD = (
    "select w.key, m.text from pgrecall.attached_row w"
    " join pgrecall.memory m using (bank_id, memory_id)"
    " where m.bank_id = 'b' and m.valid_to is null order by 1"
)


@kept_fixture
def bank(connection: Connection) -> None:
    connection.execute("select pgrecall.create_bank('b')")
    connection.execute(TICKETS)


@pytest.fixture
def committed(database: str) -> Iterator[Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select pgrecall.create_bank('b')")
        connection.execute(TICKETS)
        yield connection


def attach(connection: Connection, **arguments: Any) -> Any:
    (state,) = call(connection, "attach_table", **(ATTACHED | arguments))
    return state


def sync(connection: Connection, **arguments: Any) -> dict[str, int]:
    """Sync until complete; returns what was done in all, without zeros."""
    done = dict.fromkeys(("added", "changed", "removed", "unchanged", "failed"), 0)
    while True:
        (batch,) = call(connection, "sync_table", bank="b", relation="ticket", **arguments)
        for name in done:
            done[name] += getattr(batch, name)
        if batch.is_complete:
            return {name: count for name, count in done.items() if count}


def state(connection: Connection) -> Any:
    (found,) = call(connection, "attached_tables", bank="b")
    return found


READ_NOTES = """
select sum(pg_stat_get_xact_blocks_fetched(c.oid) + pg_stat_get_xact_tuples_returned(c.oid))::bigint
from   pg_class c
where  c.oid in (
         select 'pgrecall.attached_change'::regclass union all
         select i.indexrelid from pg_index i
         where  i.indrelid = 'pgrecall.attached_change'::regclass)
"""


def test_a_batch_reads_neither_all_that_waits_nor_all_that_failed(bank: Connection) -> None:
    attach(bank)
    sync(bank)
    read = []
    for notes in (200, 8000):
        bank.execute(
            "insert into pgrecall.attached_change (bank_id, relation, key, problem)"
            " select 'b', 'public.ticket', case mod(n, 2) when 0 then n else -n end,"
            " case mod(n, 2) when 0 then 'too long' end from generate_series(1, %s) as n",
            [notes],
        )
        before = value(bank, READ_NOTES)

        call(bank, "sync_table", bank="b", relation="ticket", batch_size=10)

        read.append(value(bank, READ_NOTES) - before)
    assert read[1] < 2 * read[0]


def test_settings_of_the_session_change_neither_names_nor_rows(bank: Connection) -> None:
    bank.execute(
        "create table note (id uuid primary key default gen_random_uuid(), body text,"
        " size float8 default 1.0 / 3, took interval default '1 day 2 hours',"
        r" mark bytea default '\xabcd')"
    )
    bank.execute("insert into note (body) values ('one')")
    fields = {"metadata": ["size", "took", "mark"]}
    synced = []
    for given in (("on", -9, "iso_8601", "escape"), ("off", 1, "postgres", "hex")):
        names = ("quote_all_identifiers", "extra_float_digits", "intervalstyle", "bytea_output")
        for name, setting in zip(names, given, strict=True):
            bank.execute(f"set local {name} = {setting}".encode())
        call(
            bank,
            "attach_table",
            bank="b",
            relation="note",
            key="id",
            text="body",
            fields=Jsonb(fields),
        )
        synced += rows(
            bank, "select relation, added, unchanged from pgrecall.sync_table('b', 'note')"
        )

    assert synced == [("public.note", 1, 0), ("public.note", 0, 1)]


def test_rows_become_memories_with_their_fields(bank: Connection) -> None:
    attach(bank, fields=FIELDS)

    done = sync(bank)

    assert done == {"added": 2, "unchanged": 1}
    (memory,) = call(bank, "list_memories", bank="b", filter="source_id = 'public.ticket:1'")
    assert (memory.text, memory.context, memory.tags) == (
        "Raised max_client_conn to 1200.",
        "Pool",
        ["ops"],
    )
    assert memory.metadata == {"id": 1, "author": "Ana Silva"}
    assert memory.confidence == 0.5
    assert memory.occurred.lower.isoformat()[:10] == "2026-03-05"
    assert column(bank, "select name from pgrecall.entity order by 1") == ["Ana Silva", "Bo", "Cy"]
    assert column(bank, "select fact_type from pgrecall.memory order by 1") == ["event", "world"]


def test_a_row_is_found_by_the_column_that_gives_its_key(bank: Connection) -> None:
    def found(query: str) -> list[str]:
        options = {"arms": ["key"]}
        hits = call(bank, "hybrid_recall", bank="b", query=query, options=options)
        return [hit.text for hit in hits]

    call(bank, "configure_bank", bank="b", settings={"replace": "key"})
    bank.execute("update ticket set title = 'OPS-' || id where id < 3")
    attach(bank, fields='{"fact_key": "title"}')
    sync(bank)
    once = found("What about OPS-1?")
    bank.execute("update ticket set body = 'Lowered it.' where id = 1")
    sync(bank)
    then = found("What about OPS-1?")
    bank.execute("update ticket set title = null where id = 1")
    sync(bank)

    assert once == ["Raised max_client_conn to 1200."]
    assert then == ["Lowered it."]
    assert found("What about OPS-1?") == []


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_the_first_pass_copies_every_row_in_batches(bank: Connection, size: int) -> None:
    bank.execute(
        "insert into ticket (id, body) select n, 'Row ' || n from generate_series(10, 25) n"
    )
    attach(bank)
    assert state(bank).status == "copying"

    sync(bank, batch_size=size)

    assert rows(bank, HELD) == rows(bank, SAID)
    assert (state(bank).status, state(bank).memories) == ("current", 18)


def test_a_row_of_a_recall_joins_back_by_key(bank: Connection) -> None:
    attach(bank)
    sync(bank)

    by_source = rows(
        bank,
        "select t.id, t.title from pgrecall.hybrid_recall('b', 'max_client_conn') h"
        " join ticket t on h.source_id = 'public.ticket:' || t.id where h.rank = 1",
    )
    by_metadata = rows(
        bank,
        "select t.id, t.title from pgrecall.hybrid_recall('b', 'max_client_conn') h"
        " join ticket t on t.id = (h.metadata ->> 'id')::bigint where h.rank = 1",
    )

    assert by_source == by_metadata == [(1, "Pool")]


@pytest.mark.parametrize(
    ("statement", "done"),
    [
        ("insert into ticket (id, body) values (7, 'New one.')", {"added": 1}),
        ("insert into ticket (id) values (7)", {"unchanged": 1}),
        ("update ticket set body = 'Lowered it.' where id = 1", {"changed": 1}),
        ("update ticket set author = 'Dee' where id = 1", {"changed": 1}),
        ("update ticket set weight = 1 where id = 1", {"unchanged": 1}),
        ("update ticket set body = null where id = 1", {"removed": 1}),
        ("update ticket set body = '   ' where id = 1", {"removed": 1}),
        ("update ticket set body = 'Now said.' where id = 3", {"added": 1}),
        ("update ticket set id = 9 where id = 1", {"added": 1, "removed": 1}),
        ("update ticket set id = -id", {"added": 2, "removed": 2, "unchanged": 2}),
        ("delete from ticket where id = 1", {"removed": 1}),
        ("truncate ticket", {"removed": 2}),
        ("insert into ticket (id, body) values (1, 'x') on conflict (id) do update"
         " set body = excluded.body", {"changed": 1}),
        ("copy", {"added": 1}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_history_kept", [True, False])
def test_the_bank_follows_what_a_statement_does(
    bank: Connection, statement: str, done: dict[str, int], is_history_kept: bool
) -> None:
    attach(bank, is_history_kept=is_history_kept)
    sync(bank)

    if statement == "copy":
        with bank.cursor().copy("copy ticket (id, body) from stdin") as rows_in:
            rows_in.write_row((7, "Copied."))
    else:
        bank.execute(statement.encode())

    assert state(bank).status == "behind"
    assert sync(bank) == done
    assert rows(bank, HELD) == rows(bank, SAID)
    if not is_history_kept:
        assert value(bank, "select count(*) from pgrecall.memory where valid_to is not null") == 0


def test_a_former_content_is_found_as_of_its_time_and_gone_with_its_row(
    committed: Connection,
) -> None:
    attach(committed)
    sync(committed)
    before = value(committed, "select clock_timestamp()")
    committed.execute("update ticket set body = 'Lowered max_client_conn again.' where id = 1")
    sync(committed)

    assert recalled(committed, "max_client_conn", top_k=1) == ["Lowered max_client_conn again."]
    assert recalled(committed, "max_client_conn", as_of=before, top_k=1) == [
        "Raised max_client_conn to 1200."
    ]
    committed.execute("delete from ticket where id = 1")
    sync(committed)
    assert value(committed, "select count(*) from pgrecall.memory where text ~ 'conn'") == 0


def test_what_is_rolled_back_reaches_no_bank(bank: Connection) -> None:
    attach(bank)
    sync(bank)

    with bank.transaction(force_rollback=True):
        bank.execute("update ticket set body = 'Never said.'")

    assert state(bank).pending == 0
    assert sync(bank) == {}


def test_an_unchanged_text_keeps_its_embedding(bank: Connection) -> None:
    attach(bank)
    sync(bank)
    pending = call(bank, "embed_pending", bank="b")
    bank.execute(
        "select pgrecall.embed_store('b', jsonb_agg(jsonb_build_object("
        "'memory_id', memory_id, 'embedding', '[1, 0]'::jsonb)), 'm')"
        " from pgrecall.embed_pending('b')"
    )

    bank.execute("update ticket set author = 'Dee' where id = 1")
    bank.execute("update ticket set body = 'Closed.' where id = 2")
    sync(bank)

    assert len(pending) == 2
    assert [row.text for row in call(bank, "embed_pending", bank="b")] == ["Closed."]


def test_a_row_that_cannot_be_stored_keeps_no_other_waiting(bank: Connection) -> None:
    attach(bank, fields='{"fact_type": "kind"}')
    bank.execute("update ticket set kind = 'rumour' where id = 1")

    assert sync(bank) == {"added": 1, "failed": 1, "unchanged": 1}
    found = state(bank)
    assert (found.pending, found.failed) == (0, 1)
    assert found.problem == 'row 1: facts[0].fact_type: bank "b" has no fact type "rumour"'
    assert sync(bank) == {}

    bank.execute("update ticket set kind = 'opinion' where id = 1")
    assert sync(bank) == {"added": 1}
    bank.execute("update ticket set body = repeat('x ', 60000) where id = 1")
    assert sync(bank) == {"failed": 1}
    bank.execute("delete from ticket where id = 1")
    assert sync(bank) == {"removed": 1}
    assert state(bank).failed == 0


def test_json_that_jsonb_cannot_hold_is_read_as_text(bank: Connection) -> None:
    held = ['{"a": [1.50, null]}', '{"a": "\\u0000"}', None]
    bank.execute("create table note (id int primary key, body text default 'Said.', more json)")
    for n, more in enumerate(held):
        bank.execute("insert into note values (%s, default, %s)", [n, more])
    fields = '{"metadata": ["more"]}'
    attach(bank, relation="note", text="body", occurred=None, entities=[], fields=fields)

    (done,) = call(bank, "sync_table", bank="b", relation="note")

    assert done.added == 3
    stored = "select metadata ->> 'more' from pgrecall.memory order by source_id"
    assert column(bank, stored) == held


def test_open_ends_and_arrays_of_any_shape_are_read(bank: Connection) -> None:
    bank.execute(
        """
        create table note (id int primary key, body text, tags text[], until date, at tstzrange);
        insert into note values
          (1, 'Nested.', '{{a,b},{c,d}}', 'infinity', '[-infinity,infinity]'),
          (2, 'Holes.', '{e,null,""}', '-infinity', '[2026-03-05,infinity)'),
          (3, 'None.', null, null, null)
        """
    )
    fields = '{"tags": "tags", "expires_at": "until"}'
    attach(bank, relation="note", text="body", occurred="at", entities=[], fields=fields)

    (done,) = call(bank, "sync_table", bank="b", relation="note")

    assert (done.added, done.failed) == (3, 0)
    stored = "select tags, lower(occurred)::text, upper(occurred)::text, valid_to"
    assert rows(bank, f"{stored} from pgrecall.memory order by source_id") == [
        (["a", "b", "c", "d"], "-infinity", "infinity", None),
        (["e"], "2026-03-05 00:00:00+00", "infinity", None),
        ([], None, None, None),
    ]


@pytest.mark.parametrize("is_history_kept", [True, False])
def test_a_row_that_can_no_longer_be_stored_has_no_memory(
    bank: Connection, is_history_kept: bool
) -> None:
    attach(bank, fields='{"confidence": "weight"}', is_history_kept=is_history_kept)
    sync(bank)
    bank.execute("update ticket set weight = 5 where id = 1")

    assert sync(bank) == {"failed": 1}
    assert column(bank, "select key from pgrecall.attached_row where key = '1'") == (
        ["1"] if is_history_kept else []
    )
    assert [key for key, _ in rows(bank, HELD)] == ["2"]

    bank.execute("update ticket set weight = 0.5 where id = 1")
    assert sync(bank) == {"added": 1}
    assert rows(bank, HELD) == rows(bank, SAID)


def test_a_version_made_by_hand_follows_its_row(bank: Connection) -> None:
    attach(bank)
    sync(bank)
    for key in ("1", "2"):
        bank.execute(
            "select pgrecall.update_memory('b', memory_id, '{\"tags\": [\"checked\"]}')"
            " from pgrecall.attached_row where key = %s",
            [key],
        )

    bank.execute("update ticket set body = 'Closed.' where id = 1")
    bank.execute("delete from ticket where id = 2")

    assert sync(bank) == {"changed": 1, "removed": 1}
    assert rows(bank, HELD) == rows(bank, SAID)
    assert column(bank, "select text from pgrecall.memory where valid_to is null") == ["Closed."]


def test_no_former_version_is_left_where_no_history_is_kept(bank: Connection) -> None:
    attach(bank, is_history_kept=False)
    sync(bank)
    bank.execute(
        "select pgrecall.update_memory('b', memory_id, '{\"tags\": [\"checked\"]}')"
        " from pgrecall.attached_row where key = '1'"
    )

    bank.execute("update ticket set body = 'Closed.' where id = 1")

    assert sync(bank) == {"changed": 1}
    assert column(bank, "select text from pgrecall.memory order by memory_id desc") == [
        "Closed.",
        "The shop was open again.",
    ]


def test_a_version_brought_back_by_hand_follows_its_row(bank: Connection) -> None:
    attach(bank)
    sync(bank)
    bank.execute("update ticket set body = 'Closed.' where id = 1")
    sync(bank)
    bank.execute(
        "select pgrecall.unsupersede('b', min(memory_id)) from pgrecall.attached_row"
        " where key = '1'"
    )

    bank.execute("update ticket set body = 'Open again.' where id = 1")

    assert sync(bank) == {"changed": 1}
    assert rows(bank, HELD) == rows(bank, SAID)


def test_a_row_of_a_source_in_quarantine_waits_for_its_release(bank: Connection) -> None:
    attach(bank)
    sync(bank)
    call(bank, "quarantine", bank="b", source="public.ticket:1")
    bank.execute("update ticket set body = 'Closed.'")

    assert sync(bank) == {"added": 1, "changed": 1, "failed": 1}
    assert state(bank).problem.endswith('source "public.ticket:1" is in quarantine')
    call(bank, "release", bank="b", source="public.ticket:1")

    assert sync(bank) == {"changed": 1}
    assert rows(bank, HELD) == rows(bank, SAID)


def test_rows_that_say_the_same_are_not_merged(bank: Connection) -> None:
    bank.execute("update ticket set body = 'Same.', author = null, watchers = '{}'")
    bank.execute("update ticket set opened_at = null")
    attach(bank)
    sync(bank)

    assert call(bank, "consolidate", bank="b") == []


def test_attached_again_by_another_key_is_refused(bank: Connection) -> None:
    bank.execute(
        "alter table ticket add code text not null unique generated always as (id::text) stored"
    )
    attach(bank)

    with refused(
        bank,
        "22023",
        'table ticket is attached by column "id", not "code"',
        r"select pgrecall.detach_table\('b', 'public.ticket', true\);$",
    ):
        attach(bank, key="code")


def test_attached_again_with_other_columns_changes_what_differs(bank: Connection) -> None:
    attach(bank)
    sync(bank)

    attach(bank, fields='{"context": "title"}')

    assert sync(bank) == {"changed": 2, "unchanged": 1}
    assert column(
        bank, "select context from pgrecall.memory where valid_to is null order by 1"
    ) == ["Pool", "Shop"]


def test_detached_its_rows_stay_or_go_and_the_table_is_as_before(bank: Connection) -> None:
    retain(bank, ["Something else."])
    attach(bank)
    sync(bank)

    stayed = value(bank, "select pgrecall.detach_table('b', 'ticket')")
    attach(bank)
    known = sync(bank)
    forgotten = value(bank, "select pgrecall.detach_table('b', 'public.ticket', true)")
    bank.execute("delete from ticket")

    assert (stayed, known, forgotten) == (2, {"added": 2, "unchanged": 1}, 2)
    assert column(bank, "select text from pgrecall.memory") == ["Something else."]
    assert rows(bank, "select from pg_trigger where tgrelid = 'ticket'::regclass") == []
    assert rows(bank, "select from pg_proc where proname like 'pgrecall\\_%%'") == []


@pytest.mark.parametrize("gone", ["bank", "table", "schema"])
def test_what_is_dropped_breaks_nothing_else(bank: Connection, gone: str) -> None:
    attach(bank)
    sync(bank)

    if gone == "table":
        bank.execute("drop table ticket")
        assert state(bank).problem == "table public.ticket is gone, or has another name now"
        with refused(bank, "22023", "table public.ticket is gone, or has another name now"):
            bank.execute("update pgrecall.attachment set is_copied = false")
            sync(bank)
        assert value(bank, "select pgrecall.detach_table('b', 'ticket', true)") == 2
    else:
        bank.execute(
            "select pgrecall.drop_bank('b')"
            if gone == "bank"
            else "drop schema pgrecall, pgrecall_internal cascade"
        )
        bank.execute("update ticket set body = 'Still written.'")
        assert value(bank, "select count(*) from ticket where body = 'Still written.'") == 3


def test_who_writes_the_table_needs_no_right_in_pgrecall(bank: Connection) -> None:
    for apply in ("later", "commit"):
        attach(bank, apply=apply)
        sync(bank)
        bank.execute("drop role if exists clerk")
        bank.execute("create role clerk")
        bank.execute("grant select, update on ticket to clerk")
        with bank.transaction():
            bank.execute("set local role clerk")
            bank.execute("update ticket set body = %s where id = 1", [apply])
            bank.execute("set constraints all immediate")  # as at commit
            bank.execute("set constraints all deferred")
            bank.execute("reset role")

        assert state(bank).status == ("behind" if apply == "later" else "current")
        sync(bank)
        assert rows(bank, HELD) == rows(bank, SAID)
        bank.execute("drop owned by clerk")


def test_a_tenant_attaches_its_table_behind_its_fence(bank: Connection) -> None:
    bank.execute("select pgrecall.create_roles()")
    bank.execute("create role b in role pgrecall_writer")
    bank.execute("create role other in role pgrecall_writer")
    bank.execute("select pgrecall.create_bank('other')")
    bank.execute("select pgrecall.enable_row_security()")
    bank.execute("create schema b authorization b")
    bank.execute("grant create on schema public to b")
    bank.execute("alter table ticket owner to b")

    bank.execute("set local role b")
    attach(bank)
    sync(bank)
    held = rows(bank, HELD)
    bank.execute("set local role other")
    hidden = rows(bank, "select from pgrecall.attachment"), rows(bank, HELD)
    bank.execute("reset role")

    assert held == rows(bank, SAID)
    assert hidden == ([], [])


@pytest.mark.parametrize(
    ("claim", "by"),
    [
        (
            "insert into pgrecall.attachment"
            " (bank_id, relation, key, columns, fact_type, note_name)"
            " select 'other', a.relation, a.key, a.columns, a.fact_type, {}"
            " from pgrecall.attachment a",
            "a.note_name",
        ),
        ('update pgrecall.attachment a set columns = \'{{"text": ["author"]}}\', {}', ""),
    ],
)
def test_who_writes_into_a_bank_claims_no_table_that_its_owner_has_not_attached(
    bank: Connection, claim: str, by: str
) -> None:
    # Else whoever syncs with rights to the table, such as an administrator, would copy it.
    bank.execute("select pgrecall.create_bank('other')")
    attach(bank)
    named = "pgrecall_internal._attachment_name('{}', 'public.ticket', 'id', '{}')"
    other = (
        named.format(
            "other",
            '{"text": ["body"], "occurred": ["opened_at"], "entities": ["author", "watchers"]}',
        )
        if by
        else "note_name = " + named.format("b", '{"text": ["author"]}')
    )

    with pytest.raises(psycopg.errors.CheckViolation), bank.transaction():
        bank.execute(claim.format(by or "apply = 'later'").encode())
    bank.execute(claim.format(other).encode())
    with refused(bank, "22023", "the triggers of table public.ticket are gone or disabled"):
        call(bank, "sync_table", bank="other" if by else "b")


def test_a_change_is_refused_where_row_security_hides_the_bank(bank: Connection) -> None:
    bank.execute("select pgrecall.create_roles()")
    bank.execute("create role app in role pgrecall_writer")
    bank.execute("select pgrecall.enable_row_security('setting')")
    bank.execute("grant create on schema public to app")
    bank.execute("alter table ticket owner to app")
    bank.execute("set local role app")
    bank.execute("set local pgrecall.bank = 'b'")
    attach(bank)
    sync(bank)

    for hidden in ("", "other"):
        bank.execute(f"set local pgrecall.bank = '{hidden}'")
        with refused(
            bank,
            "42501",
            'row security hides the bank of table public.ticket from role "app"',
            r"^Set the setting .* drop function public\.pgrecall_\w+ cascade;$",
        ):
            bank.execute("update ticket set body = 'Never noted.'")
    bank.execute("set local pgrecall.bank = 'b'")
    bank.execute("update ticket set body = 'Noted.' where id = 1")
    sync(bank)

    assert rows(bank, HELD) == rows(bank, SAID)


def test_a_dropped_bank_keeps_no_change_of_a_table_behind_its_fence(bank: Connection) -> None:
    bank.execute("select pgrecall.create_roles()")
    bank.execute("create role b in role pgrecall_writer")
    bank.execute("select pgrecall.enable_row_security()")
    bank.execute("grant create on schema public to b")
    bank.execute("alter table ticket owner to b")
    bank.execute("set local role b")
    attach(bank)
    bank.execute("reset role")

    bank.execute("select pgrecall.drop_bank('b')")
    bank.execute("set local role b")
    bank.execute("update ticket set body = 'Still written.'")

    assert rows(bank, "select from pg_proc where proname like 'pgrecall\\_%%'") == []


def test_what_an_upgrade_replaces_decides_whether_a_change_is_noted(bank: Connection) -> None:
    attach(bank)
    sync(bank)
    bank.execute(
        "create or replace function pgrecall_internal._noted_attachment("
        "name text, relation text) returns pgrecall.attachment"
        " language plpgsql as $$begin return null; end$$"
    )

    bank.execute("update ticket set body = 'Not noted.'")

    assert state(bank).pending == 0


def test_who_does_not_see_all_rows_is_refused(bank: Connection) -> None:
    bank.execute("select pgrecall.create_roles()")
    bank.execute("create role narrow in role pgrecall_writer")
    attach(bank)
    problem = 'row security hides rows of table public.ticket from role "narrow"'

    for grant in ("select 1", "grant select on ticket to narrow"):
        bank.execute(grant.encode())
        bank.execute("set local role narrow")
        if grant == "select 1":
            with refused(bank, "22023", 'role "narrow" may not read table public.ticket'):
                sync(bank)
        else:
            sync(bank)
        bank.execute("reset role")
    bank.execute("alter table ticket enable row level security")
    bank.execute("update ticket set body = 'x'")
    bank.execute("set local role narrow")

    with refused(bank, "22023", problem, "as a role that reads all rows"):
        sync(bank)
    bank.execute("reset role")
    assert sync(bank) == {"changed": 2, "added": 1}


def test_types_of_users_run_nothing_of_theirs(bank: Connection) -> None:
    bank.execute(
        "create type mood as enum ('glad', 'sad');"
        "create function run(mood) returns text language plpgsql as"
        " $$begin raise exception 'run'; end$$;"
        "create function run_json(mood) returns json language plpgsql as"
        " $$begin raise exception 'run'; end$$;"
        "create cast (mood as text) with function run(mood);"
        "create cast (mood as json) with function run_json(mood);"
        "alter table ticket add mood mood default 'glad'"
    )

    attach(bank, fields='{"metadata": ["mood"], "tags": ["mood"], "context": "mood"}')
    sync(bank)

    assert column(bank, "select distinct metadata ->> 'mood' from pgrecall.memory") == ["glad"]
    assert column(bank, "select distinct tags[1] || context from pgrecall.memory") == ["gladglad"]


def test_no_definition_in_the_catalog_tells_the_name_of_a_bank(bank: Connection) -> None:
    bank.execute("select pgrecall.create_bank('acme_secret')")
    attach(bank, bank="acme_secret", apply="commit")

    assert rows(bank, "select from pg_proc where prosrc || proname ~ 'acme_secret'") == []
    assert rows(bank, "select from pg_trigger where tgname ~ 'acme_secret'") == []


def test_a_superuser_runs_nothing_of_the_owner_of_a_table(bank: Connection) -> None:
    bank.execute(
        "select pgrecall.create_roles(); create role owning in role pgrecall_writer;"
        "grant create on schema public to owning; alter table ticket owner to owning"
    )
    attach(bank)
    assert (
        value(
            bank,
            "select distinct proowner::regrole::text from pg_proc where prosecdef"
            " and proname like 'pgrecall\\_%%'",
        )
        == "owning"
    )
    sync(bank)
    bank.execute("set local role owning")
    bank.execute(
        "create function who() returns boolean language plpgsql as"
        " $$begin if current_user <> 'owning' then raise exception 'run'; end if; return true;"
        " end$$;update ticket set body = 'x' where id = 1;"
        "create domain trap as bigint check (who());"
        "alter table ticket add trap trap null;"
        "alter table ticket drop constraint ticket_pkey;"
        "alter table ticket rename id to was; alter table ticket rename trap to id"
    )
    bank.execute("reset role")

    with refused(
        bank, "22023", 'column "id" of table ticket is of type trap, which cannot be a key'
    ):
        sync(bank)


def test_names_are_never_read_as_sql(bank: Connection) -> None:
    hostile = "x'); drop table ticket; --"
    bank.execute(
        """create table "Ti""ck'et" ("k;--" text primary key, "b'o""dy" text, "t$1" date);
           insert into "Ti""ck'et" values ('1''; drop table ticket', 'Said.', '2026-03-05')"""
    )
    bank.execute("select pgrecall.create_bank(%s)", [hostile])

    attach(
        bank,
        bank=hostile,
        relation='"Ti""ck\'et"',
        key="k;--",
        text="b'o\"dy",
        occurred="t$1",
        entities=[],
    )
    bank.execute("insert into \"Ti\"\"ck'et\" values ('2', '$$ said $body$')")
    (done,) = call(bank, "sync_table", bank=hostile)

    assert (done.added, done.is_complete) == (2, True)
    assert value(bank, "select count(*) from ticket") == 3


@pytest.mark.parametrize(
    ("changes", "code", "message", "hint"),
    [
        ({"bank": "none"}, "RC001", 'bank "none" does not exist', "create_bank"),
        ({"relation": None}, "22004", "relation must not be null", "Name the table"),
        ({"relation": "v"}, "22023", "v cannot be attached", "ordinary table"),
        ({"relation": "parted"}, "22023", "parted cannot be attached", "partition"),
        ({"relation": "pgrecall.memory"}, "22023", "pgrecall.memory cannot be attached", "your"),
        ({"key": "body"}, "22023", 'column "body" of table ticket is not a key', "unique index"),
        ({"key": "nope"}, "22023", 'table ticket has no column "nope"', "^It has id, title, body"),
        ({"text": "nope"}, "22023", 'table ticket has no column "nope"', "generated always as"),
        ({"occurred": "weight"}, "22023",
         'column "weight" of table ticket is of type numeric, which cannot be occurred', "dates"),
        ({"fields": '{"confidence": "body"}'}, "22023",
         'column "body" of table ticket is of type text, which cannot be confidence', "0 to 1"),
        ({"fields": '{"colour": "body"}'}, "22023", 'fields cannot have "colour"', "They are"),
        ({"fields": '{"context": ["body", "title"]}'}, "22023",
         'fields.context cannot be ["body", "title"]', "Name a column"),
        ({"fields": "[]"}, "22023", "fields must be an object, not []", "columns by field"),
        ({"fact_type": "rumour"}, "RC008", 'bank "b" has no fact type "rumour"', "add_fact_type"),
        ({"apply": "never"}, "22023", 'apply must be "later" or "commit", not "never"', "sync"),
    ],
)  # fmt: skip
def test_what_cannot_be_attached_is_said(
    bank: Connection, changes: dict[str, Any], code: str, message: str, hint: str
) -> None:
    bank.execute("create view v as select * from ticket")
    bank.execute("create table parted (id int primary key, body text) partition by range (id)")

    with refused(bank, code, message, hint):
        attach(bank, **changes)


def test_only_its_owner_attaches_a_table(bank: Connection) -> None:
    bank.execute("select pgrecall.create_roles()")
    bank.execute("create role guest in role pgrecall_writer")
    bank.execute("grant all on ticket to guest")
    bank.execute("set local role guest")

    with refused(bank, "42501", 'role "guest" does not own table ticket', "set role"):
        attach(bank)


def test_a_table_that_is_not_attached_is_named(bank: Connection) -> None:
    with refused(bank, "22023", 'table "ticket" is not attached to bank "b"', "attach_table"):
        call(bank, "sync_table", bank="b", relation="ticket")
    attach(bank)
    with refused(bank, "22023", 'table "order" is not attached to bank "b"', "public.ticket"):
        call(bank, "detach_table", bank="b", relation="order")


def test_a_table_is_known_by_its_name_as_it_was_attached(bank: Connection) -> None:
    bank.execute('create table "My ""Notes""" (like ticket including all)')
    memory = Recall(bank, embedder=None)
    names = ['"My ""Notes"""', 'public."My ""Notes"""', 'My "Notes"', "Ticket", "PUBLIC.ticket"]
    names += ['"ticket"', "ticket", '"public"."ticket"']

    for name in names:
        if name != 'My "Notes"':
            memory.attach_table("b", name, key="id", text="body")
        assert memory.sync_table("b", name)
    for name in ('"Ticket"', "a.b.c", "public.", "1 = 1", ""):
        unknown = pytest.raises(InvalidArgument, match="is not attached to bank")
        with unknown, bank.transaction():
            memory.sync_table("b", name)

    assert memory.detach_table("b", '"My ""Notes"""') == 0
    assert [one.relation for one in memory.attached_tables("b")] == ["public.ticket"]


@pytest.mark.parametrize("name", ["My Notes", "nowhere.notes", "public.notes"])
def test_a_table_that_does_not_exist_is_refused_with_a_hint(bank: Connection, name: str) -> None:
    refusal = "does not exist|invalid name syntax"

    with pytest.raises(InvalidArgument, match=refusal) as caught, bank.transaction():
        Recall(bank, embedder=None).attach_table("b", name, key="id", text="body")

    assert "with its schema" in str(caught.value.hint)


def test_the_hint_for_a_changed_column_says_what_to_do(bank: Connection) -> None:
    attach(bank)
    bank.execute("alter table ticket rename body to words")

    with refused(bank, "22023", 'table public.ticket has no column "body"', "^If its name or its"):
        sync(bank)


@pytest.mark.parametrize("is_copied", [False, True])
def test_renamed_or_without_its_triggers_it_is_not_synced(
    bank: Connection, is_copied: bool
) -> None:
    attach(bank)
    if is_copied:
        sync(bank)
    bank.execute("alter table ticket disable trigger user")
    with refused(bank, "22023", "the triggers of table public.ticket are gone or disabled"):
        sync(bank)
    bank.execute("alter table ticket enable trigger user")
    bank.execute("alter table ticket rename to issue")
    # Still noted, though under the former name.
    bank.execute("update issue set body = 'Renamed.' where id = 1")
    with refused(bank, "22023", "table public.ticket is gone, or has another name now", "detach"):
        sync(bank)
    bank.execute("alter table issue rename to ticket")
    sync(bank)

    assert rows(bank, HELD) == rows(bank, SAID)


BROKEN = "select relation, is_complete from pgrecall.sync_table('b')"


@pytest.fixture
def beside(bank: Connection) -> Connection:
    """Two attached and synced tables, of which the second has a change that waits."""
    bank.execute("create table another (id int primary key, body text)")
    bank.execute("insert into another values (1, 'One.')")
    for name in ("another", "ticket"):
        attach(bank, relation=name, occurred=None, entities=[])
    call(bank, "sync_table", bank="b")
    bank.execute("update ticket set body = 'Changed.' where id = 1")
    return bank


def test_a_table_that_is_gone_keeps_no_other_waiting(beside: Connection) -> None:
    beside.execute("drop table another")

    for _ in range(2):
        assert rows(beside, BROKEN) == [("public.another", True), ("public.ticket", True)]
    assert value(beside, "select count(*) from pgrecall.memory where text = 'Changed.'") == 1
    with refused(
        beside, "22023", "table public.another is gone, or has another name now", "detach"
    ):
        call(beside, "sync_table", bank="b", relation="another")


@pytest.mark.parametrize(
    ("breaks", "problem"),
    [
        ("disable trigger user", "the triggers of table public.another are gone or disabled"),
        ("drop column body", 'table public.another has no column "body"'),
        ("rename to other", "table public.another is gone, or has another name now"),
    ],
)
def test_a_broken_table_is_refused_once_the_others_are_synced(
    beside: Connection, breaks: str, problem: str
) -> None:
    beside.execute("update another set body = 'Two.'")
    beside.execute(f"alter table another {breaks}".encode())

    done = rows(beside, BROKEN)
    (state, _) = call(beside, "attached_tables", bank="b")

    assert done == [("public.another", False), ("public.ticket", True)]
    assert value(beside, "select count(*) from pgrecall.memory where text = 'Changed.'") == 1
    assert (state.status, state.problem) == ("broken", problem)
    with refused(beside, "22023", problem, "attach the table again"):
        rows(beside, BROKEN)


def test_a_table_that_its_caller_may_not_read_keeps_no_other_waiting(beside: Connection) -> None:
    beside.execute("create role keeper")
    beside.execute("select pgrecall.create_roles()")
    beside.execute("grant pgrecall_writer to keeper; grant select on ticket to keeper")
    beside.execute("set role keeper")

    assert rows(beside, BROKEN) == [("public.another", True), ("public.ticket", True)]
    assert value(beside, "select count(*) from pgrecall.memory where text = 'Changed.'") == 1


def work(dsn: str, seed: int, stop: Event) -> None:
    """Change rows at random, in transactions of up to five statements, some rolled back."""
    chance = random.Random(seed)
    with psycopg.connect(dsn) as connection:
        while not stop.is_set():
            try:
                for _ in range(chance.randint(1, 5)):
                    one, other = chance.randint(1, 40), chance.randint(1, 40)
                    statement = chance.choice(
                        [
                            "insert into ticket (id, body) values (%(one)s, %(said)s)"
                            " on conflict (id) do update set body = excluded.body",
                            "update ticket set body = %(said)s where id = %(one)s",
                            "update ticket set body = null where id = %(one)s",
                            "update ticket set id = %(other)s where id = %(one)s",
                            "delete from ticket where id between %(one)s and %(one)s + 2",
                        ]
                    )
                    said = f"Said {chance.randint(1, 99)} times."
                    connection.execute(
                        statement.encode(), {"one": one, "other": other, "said": said}
                    )
                if chance.random() < 0.2:
                    connection.rollback()
                else:
                    connection.commit()
            except (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
                connection.rollback()


def test_in_a_subscription_rows_are_noted_and_copied_later(bank: Connection) -> None:
    attach(bank, apply="commit")
    sync(bank)
    for name in column(bank, "select tgname from pg_trigger where tgrelid = 'ticket'::regclass"):
        bank.execute(f"alter table ticket enable always trigger {name}".encode())
    bank.execute("set session_replication_role = replica")
    bank.execute("delete from ticket where id = 1")
    bank.execute("set constraints all immediate")  # as at commit
    bank.execute("set session_replication_role = origin")
    behind = state(bank).status

    done = sync(bank)

    assert (behind, done) == ("behind", {"removed": 1})
    stray = "select count(*) from pgrecall.mention where memory_id not in (%s)"
    assert value(bank, stray % "select memory_id from pgrecall.memory") == 0


@pytest.mark.parametrize("apply", ["later", "commit"])
def test_under_load_nothing_is_lost_and_nothing_stale(
    committed: Connection, database: str, apply: str
) -> None:
    committed.execute(
        "insert into ticket (id, body) select n, 'Row ' || n from generate_series(10, 40) n"
    )
    stop = Event()
    attach(committed, apply=apply)
    with ThreadPoolExecutor(6) as pool:
        writers = [pool.submit(work, database, seed, stop) for seed in range(4)]
        with psycopg.connect(database, autocommit=True) as beside:
            for _ in range(60):
                call(committed, "sync_table", bank="b", batch_size=7)
                call(beside, "sync_table", bank="b", batch_size=3)
        stop.set()
        for writer in writers:
            writer.result()

    if apply == "later":
        sync(committed)
    else:
        assert state(committed).pending == 0
        while not call(committed, "sync_table", bank="b")[0].is_complete:
            pass
    assert rows(committed, HELD) == rows(committed, SAID)
    assert state(committed).failed == 0
    assert value(committed, "select count(*) > 0 from ticket where body ~ 'times'")


def test_a_writer_waits_for_no_sync_and_no_bank(committed: Connection, database: str) -> None:
    attach(committed)
    sync(committed)
    with psycopg.connect(database) as syncing:
        committed.execute("update ticket set body = 'First.' where id = 1")
        call(syncing, "sync_table", bank="b")  # holds the bank

        committed.execute("set lock_timeout = '1s'")
        committed.execute("update ticket set body = 'Second.' where id = 1")
        syncing.commit()

    sync(committed)
    assert rows(committed, HELD) == rows(committed, SAID)


def test_at_commit_the_bank_is_locked_only_when_all_rows_are(
    committed: Connection, database: str
) -> None:
    attach(committed, apply="commit")
    sync(committed)
    with psycopg.connect(database) as first, psycopg.connect(database) as second:
        first.execute("update ticket set body = 'First.' where id = 1")
        second.execute("update ticket set body = 'Second.' where id = 2")
        # Each waits for a row of the other: with the bank locked at once, this would be a deadlock.
        with ThreadPoolExecutor(1) as pool:
            crossing = pool.submit(first.execute, "update ticket set body = 'Both.' where id = 2")
            waiting(committed, first.info.backend_pid)
            second.commit()
            crossing.result()
        first.commit()

    assert state(committed).status == "current"
    assert rows(committed, HELD) == rows(committed, SAID)


@pytest.mark.parametrize(
    "change",
    ["attach_table('b', 'ticket', 'id', 'title')", "detach_table('b', 'ticket')", "drop_bank('b')"],
)
def test_who_changes_the_triggers_waits_for_writers_without_the_bank(
    committed: Connection, database: str, change: str
) -> None:
    attach(committed, apply="commit")
    sync(committed)
    with psycopg.connect(database) as writer, psycopg.connect(database, autocommit=True) as owner:
        writer.execute("update ticket set body = 'Changed.' where id = 1")
        with ThreadPoolExecutor(1) as pool:
            changing = pool.submit(owner.execute, f"select * from pgrecall.{change}".encode())
            waiting(committed, owner.info.backend_pid)
            writer.commit()  # takes the bank
            changing.result()

    assert column(committed, "select body from ticket where id = 1") == ["Changed."]
