"""enable_row_security(), row_security_status() and create_roles()."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from pgrecall import NotPermitted, Recall, schema
from pgrecall.server import build
from servers import kept_fixture
from sqlcalls import Connection, column, fill, recalled, refused, retain, rows, value

SCHEMAS = "pgrecall, pgrecall_internal"
Become = Callable[[str], None]


@kept_fixture
def tenants(connection: Connection) -> None:
    """The owner's connection, with banks and roles acme and bolt, which may do all in SQL."""
    for name in ("acme", "bolt"):
        fill(connection, name)
        connection.execute(f"create role {name}")
    connection.execute("create role both_tenants in role acme, bolt")
    for name in ("acme", "bolt", "both_tenants"):
        connection.execute(f"grant usage on schema {SCHEMAS} to {name}")
        connection.execute(f"grant all on all tables in schema {SCHEMAS} to {name}")
        connection.execute(f"grant usage on sequence pgrecall.id_seq to {name}")


@pytest.fixture
def become(tenants: Connection) -> Iterator[Become]:
    def switch(role: str) -> None:
        tenants.execute("reset role")
        tenants.execute(f"set local role {role}")

    yield switch
    tenants.execute("reset role")


def banks(connection: Connection) -> set[str]:
    """The banks of which any row of any table is seen."""
    return {
        bank
        for table in column(connection, "select relation from pgrecall.row_security_status()")
        for bank in column(connection, f"select distinct bank_id from {table}")
    }


def statuses(connection: Connection) -> set[str]:
    return set(column(connection, "select distinct status from pgrecall.row_security_status()"))


@pytest.mark.parametrize(
    ("by", "role", "seen"),
    [
        ("role", "acme", {"acme"}),
        ("role", "both_tenants", set()),
        ("membership", "acme", {"acme"}),
        ("membership", "both_tenants", {"acme", "bolt"}),
    ],
)
def test_a_role_sees_its_banks_in_every_table(
    tenants: Connection, become: Become, by: str, role: str, seen: set[str]
) -> None:
    tenants.execute("select pgrecall.enable_row_security(%s)", [by])
    become(role)

    assert banks(tenants) == seen
    for bank in seen:
        assert recalled(tenants, "Ana", bank=bank)
    for bank in {"acme", "bolt"} - seen:
        with refused(tenants, "RC001", f'bank "{bank}" does not exist', "Row security shows role"):
            recalled(tenants, "Ana", bank=bank)


@pytest.mark.parametrize("by", ["role", "membership", "setting"])
def test_no_plan_tells_what_another_bank_holds(
    tenants: Connection, become: Become, by: str
) -> None:
    tables = column(tenants, "select relation from pgrecall.row_security_status()")
    tenants.execute("select pgrecall.enable_row_security(%s)", [by])
    tenants.execute("set local enable_seqscan = off")
    tenants.execute("set local pgrecall.bank = 'acme'")
    become("acme")

    for table in tables:
        for condition in ("bank_id = 'bolt'", "bank_id > 'b'", "true"):
            plan = column(tenants, f"explain analyze select from {table} where {condition}")
            assert "Rows Removed" not in "\n".join(plan)


def test_a_setting_of_the_role_names_its_bank(database: str) -> None:
    with psycopg.connect(database) as owner:
        for bank in ("acme", "bolt"):
            fill(owner, bank)
        owner.execute("create role pgrecall_app login")
        owner.execute(f"grant usage on schema {SCHEMAS} to pgrecall_app")
        owner.execute(f"grant select on all tables in schema {SCHEMAS} to pgrecall_app")
        owner.execute("alter role pgrecall_app set app.bank = 'acme'")
        owner.execute("select pgrecall.enable_row_security('setting', 'app.bank')")
    try:
        with psycopg.connect(database, user="pgrecall_app") as app:
            assert banks(app) == {"acme"}
            assert recalled(app, "Ana", bank="acme")
    finally:
        with psycopg.connect(database) as owner:
            owner.execute("drop owned by pgrecall_app")
            owner.execute("drop role pgrecall_app")


def test_who_has_no_setting_sees_nothing(tenants: Connection, become: Become) -> None:
    tenants.execute("select pgrecall.enable_row_security('setting')")
    become("acme")

    assert banks(tenants) == set()


def test_it_can_be_run_again_and_taken_back(tenants: Connection, become: Become) -> None:
    before = rows(tenants, "select * from pgrecall.row_security_status()")
    first = value(tenants, "select pgrecall.enable_row_security('membership')")
    again = value(tenants, "select pgrecall.enable_row_security()")
    tenants.execute("create policy mine on pgrecall.memory using (false)")
    become("both_tenants")
    seen = banks(tenants)
    tenants.execute("reset role")

    taken_back = value(tenants, "select pgrecall.disable_row_security()")
    mine = column(
        tenants, "select relation from pgrecall.row_security_status() where status = 'fenced'"
    )
    tenants.execute("drop policy mine on pgrecall.memory")
    tenants.execute("alter table pgrecall.memory disable row level security")

    assert first == again == taken_back == len(before)
    assert seen == set()
    assert mine == ["pgrecall.memory"]
    assert rows(tenants, "select * from pgrecall.row_security_status()") == before


def test_the_status_tells_what_is_open_and_to_whom(tenants: Connection) -> None:
    open_tables = rows(
        tenants, "select distinct status, policies, open_to from pgrecall.row_security_status()"
    )
    tenants.execute("create role pgrecall_auditor bypassrls")
    tenants.execute(f"grant usage on schema {SCHEMAS} to pgrecall_auditor")
    tenants.execute("grant select on pgrecall.memory to pgrecall_auditor")
    tenants.execute("grant select (text) on pgrecall.memory to public")
    [memory] = rows(
        tenants,
        "select status, open_to from pgrecall.row_security_status()"
        " where relation = 'pgrecall.memory'",
    )
    tenants.execute("select pgrecall.enable_row_security()")
    fenced = statuses(tenants)
    tenants.execute("drop policy pgrecall_bank on pgrecall.memory")

    assert open_tables == [("open", [], ["acme", "bolt", "both_tenants"])]
    assert memory == ("open", ["acme", "bolt", "both_tenants", "public"])
    assert fenced == {"fenced"}
    assert column(
        tenants, "select relation from pgrecall.row_security_status() where status = 'closed'"
    ) == ["pgrecall.memory"]


def test_an_install_is_private(connection: Connection) -> None:
    assert statuses(connection) == {"private"}


def test_only_the_owner_opens_and_closes_the_fence(tenants: Connection, become: Become) -> None:
    tenants.execute("select pgrecall.enable_row_security()")
    become("acme")

    for call in ("enable_row_security('setting')", "disable_row_security()", "create_roles()"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege), tenants.transaction():
            tenants.execute(f"select pgrecall.{call}".encode())


# Roles

DENIED = r"role .* may not .*\nHINT:  These roles and their members may: t_"


def test_the_roles_read_write_and_administer(connection: Connection) -> None:
    fill(connection, "b")
    names = value(connection, "select pgrecall.create_roles('t')")

    for role, may in (("t_reader", 1), ("t_writer", 2), ("t_admin", 3)):
        for least, statement in (
            (1, "select * from pgrecall.hybrid_recall('b', 'Ana')"),
            (2, "select pgrecall.retain('b', '[{\"text\": \"y\"}]')"),
            (2, "select pgrecall.configure_bank('b', '{\"budget\": \"low\"}')"),
            (2, "select pgrecall.link_pending('b')"),
            (3, "select pgrecall.create_bank('c')"),
            (3, "select pgrecall.drop_bank('b')"),
        ):
            with connection.transaction(force_rollback=True):
                connection.execute(f"set local role {role}")
                if may >= least:
                    connection.execute(statement.encode())
                else:
                    with pytest.raises(psycopg.errors.InsufficientPrivilege, match=DENIED):
                        connection.execute(statement.encode())
    assert names == ["t_reader", "t_writer", "t_admin"]


def test_who_may_not_create_a_bank_is_told_who_may(connection: Connection) -> None:
    connection.execute("select pgrecall.create_roles('t')")
    connection.execute("select pgrecall.enable_row_security()")
    connection.execute("create role acme in role t_writer")
    connection.execute("grant insert on pgrecall.bank to acme")
    owner = value(connection, "select current_user")
    may = f"These roles and their members may: t_admin, {owner}. For example: grant t_admin to"

    connection.execute("set local role t_reader")
    with refused(
        connection, "42501", 'role "t_reader" may not create bank "c"', f"{may} t_reader;"
    ):
        connection.execute("select pgrecall.create_bank('c')")
    connection.execute("set local role acme")
    with refused(connection, "42501", 'role "acme" may not create bank "c"', f"{may} acme;"):
        connection.execute("select pgrecall.create_bank('c')")
    connection.execute("select pgrecall.create_bank('acme')")
    with pytest.raises(NotPermitted, match='role "acme" may not create bank "c"') as caught:
        Recall(connection).create_bank("c")
    assert "t_admin" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("clone_bank('acme', 'c')", 'create bank "c"'),
        (
            "import_rows('acme', (select jsonb_agg(r) from pgrecall.exported_rows('acme') as r))",
            'import bank "acme"',
        ),
    ],
)
def test_who_may_not_copy_a_bank_is_told_who_may(
    connection: Connection, call: str, what: str
) -> None:
    connection.execute("select pgrecall.create_roles('t')")
    connection.execute("select pgrecall.enable_row_security()")
    connection.execute("create role acme in role t_writer")
    fill(connection, "acme")
    connection.execute("set local role acme")

    with refused(connection, "42501", f'role "acme" may not {what}', "t_admin"):
        connection.execute(f"select pgrecall.{call}")


def test_the_admin_sees_every_bank_and_a_tenant_its_own(connection: Connection) -> None:
    for bank in ("acme", "bolt"):
        fill(connection, bank)
    connection.execute("select pgrecall.create_roles('t')")
    connection.execute("select pgrecall.enable_row_security()")
    connection.execute("create role acme in role t_writer")
    connection.execute("create role chief in role t_admin")

    connection.execute("set local role acme")
    tenant = banks(connection)
    own = retain(connection, [{"text": "new"}], bank="acme")
    connection.execute("set local role none")
    connection.execute("set local role chief")
    chief = banks(connection)
    connection.execute("select pgrecall.create_bank('third')")

    assert own
    assert (tenant, chief) == ({"acme"}, {"acme", "bolt"})


def test_roles_of_a_second_prefix_take_nothing_from_those_of_the_first(
    connection: Connection,
) -> None:
    for bank in ("acme", "bolt"):
        fill(connection, bank)
    for prefix in ("t", "u", "t"):
        connection.execute("select pgrecall.create_roles(%s)", [prefix])
    connection.execute("select pgrecall.enable_row_security()")
    for prefix in ("t", "u"):
        connection.execute(f"create role {prefix}_chief in role {prefix}_admin")

        connection.execute(f"set local role {prefix}_chief")

        assert banks(connection) == {"acme", "bolt"}
        assert rows(connection, SEARCHED, "bolt", "bolt")[0][0]
        connection.execute("set local role none")


def test_roles_can_be_removed(database: str) -> None:
    roles = "gone_reader, gone_writer, gone_admin, gone_searcher"
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute("select pgrecall.create_roles('gone')")
        owner.execute(f"drop owned by {roles}".encode())
        with refused(
            owner,
            "42883",
            "function pgrecall_internal._searched_recall() is missing",
            "pgrecall migrate",
        ):
            owner.execute("select pgrecall.create_roles('gone')")
        owner.execute(f"drop role {roles}".encode())
    with psycopg.connect(database) as owner:
        schema.migrate(owner)
        owner.execute("select pgrecall.create_roles('gone')")
        owner.rollback()


@kept_fixture
def fast(connection: Connection) -> None:
    """Two banks behind the fence, and the roles; acme is a reader."""
    for bank in ("acme", "bolt"):
        fill(connection, bank)
    connection.execute("select pgrecall.create_roles('t')")
    connection.execute("select pgrecall.enable_row_security()")
    connection.execute("create role acme in role t_reader")


def test_row_security_ends_where_there_are_roles_too(fast: Connection) -> None:
    fast.execute("select pgrecall.disable_row_security()")
    fast.execute("set local role acme")

    assert value(fast, "select count(*) from pgrecall.hybrid_recall('bolt', 'Ana')") > 0


SEARCHED = """
select searched.arms is not null, (searched.hits)[1].text
from   pgrecall_internal._searched_recall(
         (select b.fence_key from pgrecall.bank b where b.bank_id = %s), %s, 'Ana', null, null,
         null, null, null, 5, now(), null, '{}', true) as searched
"""


def test_a_fenced_recall_runs_with_the_rights_of_the_searcher(fast: Connection) -> None:
    recall = "select memory_id, score from pgrecall.hybrid_recall('acme', 'Ana')"
    plan = "select sum(calls) from pg_stat_xact_user_functions where funcname = '_searched_recall'"
    as_owner = rows(fast, recall)
    fast.execute("set local track_functions = 'pl'")
    fast.execute("set local role acme")

    assert rows(fast, recall) == as_owner != []
    assert value(fast, plan) == 1
    assert rows(fast, SEARCHED, "acme", "acme")[0][0]


def test_the_searcher_answers_an_admin_and_who_sets_the_bank(fast: Connection) -> None:
    fast.execute("create role chief in role t_admin")
    fast.execute("set local role chief")
    as_admin = rows(fast, SEARCHED, "bolt", "bolt")
    fast.execute("reset role")
    fast.execute("select pgrecall.enable_row_security('setting', 'app.bank')")
    fast.execute("set local role acme")
    fast.execute("set local app.bank = 'bolt'")

    assert as_admin[0][0]
    assert rows(fast, SEARCHED, "bolt", "bolt")[0][0]


def test_who_sees_a_bank_not_gets_nothing_from_the_searcher(fast: Connection) -> None:
    fast.execute("set local role acme")

    assert rows(fast, SEARCHED, "bolt", "bolt") == [(False, None)]
    assert rows(fast, SEARCHED, "acme", "bolt") == [(False, None)]
    with refused(fast, "RC001", 'bank "bolt" does not exist', "only its own banks; t_admin"):
        recalled(fast, "Ana", bank="bolt")


@pytest.mark.parametrize(
    "change",
    [
        "create policy mine on pgrecall.message as restrictive using (false)",
        "alter table pgrecall.bank disable row level security",
        "drop policy pgrecall_bank on pgrecall.bank",
        "reassign owned by t_searcher to current_user",
    ],
)
def test_the_searcher_answers_behind_its_own_fence_only(fast: Connection, change: str) -> None:
    key = value(fast, "select fence_key from pgrecall.bank where bank_id = 'acme'")
    fast.execute(change.encode())
    fast.execute("set local role acme")

    query = SEARCHED.replace("(select b.fence_key from pgrecall.bank b where b.bank_id = %s)", "%s")
    assert rows(fast, query, key, "acme") == [(False, None)]


@pytest.mark.parametrize("by", ["role", "membership"])
def test_a_kept_key_opens_nothing_to_who_may_not_read_the_bank(fast: Connection, by: str) -> None:
    fast.execute("select pgrecall.enable_row_security(%s)", [by])
    fast.execute("create role guest in role acme")
    key = value(fast, "select fence_key from pgrecall.bank where bank_id = 'acme'")
    query = SEARCHED.replace("(select b.fence_key from pgrecall.bank b where b.bank_id = %s)", "%s")
    fast.execute("set local role guest")
    as_member = rows(fast, query, key, "acme")
    fast.execute("reset role")

    fast.execute("revoke acme from guest")
    fast.execute("grant t_reader to guest")
    fast.execute("set local role guest")

    assert as_member[0][0] is (by == "membership")
    assert rows(fast, query, key, "acme") == [(False, None)]


def test_a_new_fence_has_new_keys(fast: Connection) -> None:
    keys = set(column(fast, "select fence_key from pgrecall.bank"))

    fast.execute("select pgrecall.enable_row_security('membership')")

    assert keys.isdisjoint(column(fast, "select fence_key from pgrecall.bank"))


def test_the_searcher_may_only_read(fast: Connection) -> None:
    fast.execute("grant t_searcher to acme")
    fast.execute("set local role t_searcher")

    for statement in (
        "update pgrecall.memory set text = 'x'",
        "delete from pgrecall.memory",
        "select nextval('pgrecall.id_seq')",
        "select pgrecall.create_bank('c')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege), fast.transaction():
            fast.execute(statement.encode())


def test_strangers_may_not_call_the_searcher(fast: Connection) -> None:
    fast.execute("create role stranger")
    fast.execute(f"grant usage on schema {SCHEMAS} to stranger")
    fast.execute("grant select on pgrecall.bank to stranger")
    fast.execute("set local role stranger")

    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="_searched_recall"):
        rows(fast, SEARCHED, "acme", "acme")


def test_roles_are_made_again_without_harm(connection: Connection) -> None:
    connection.execute("select pgrecall.create_roles('t')")
    rights = (
        "select oid, relacl::text from pg_class union all"
        " select oid, proacl::text from pg_proc order by 1"
    )
    before = rows(connection, rights)

    connection.execute("select pgrecall.create_roles('t')")

    assert rows(connection, rights) == before


def test_the_roles_call_functions_that_the_server_keeps_from_everybody(bare_database: str) -> None:
    with psycopg.connect(bare_database) as connection:
        connection.execute("alter default privileges revoke execute on functions from public")
        connection.execute("create extension vector")
        connection.execute(build.full_script().encode())
        connection.execute("set local search_path = public")
        connection.execute("select pgrecall.create_roles('d'), pgrecall.enable_row_security()")
        connection.execute("create role acme in role d_admin")
        connection.execute("set role acme")
        fill(connection, "acme")
        found = rows(connection, SEARCHED, "acme", "acme")
        connection.rollback()

    assert found[0][0]


def test_what_was_taken_from_everybody_is_not_given_to_the_roles(connection: Connection) -> None:
    connection.execute("select pgrecall.create_roles('t')")
    connection.execute("revoke execute on function pgrecall.quarantine from public")

    connection.execute("select pgrecall.create_roles('t')")

    may = "select has_function_privilege('t_admin', 'pgrecall.quarantine'::regproc, 'execute')"
    assert not value(connection, may)


def test_an_owner_who_is_no_superuser_makes_the_roles(empty_database: str) -> None:
    with psycopg.connect(empty_database) as connection:
        name = connection.info.dbname
        connection.execute("create role p_reader")  # of another database
        connection.execute("create role pgrecall_owner createrole")
        connection.execute(f"grant create on database {name} to pgrecall_owner".encode())
        connection.execute("set role pgrecall_owner")
        connection.execute(build.full_script().encode())
        connection.execute("set local search_path = public")
        fill(connection, "alone")

        for _ in range(2):
            connection.execute("select pgrecall.create_roles('o')")
        with refused(
            connection,
            "42501",
            'role "p_reader" exists already, and role "pgrecall_owner" may not grant it',
            "another prefix",
        ):
            connection.execute("select pgrecall.create_roles('p')")
        connection.execute("select pgrecall.enable_row_security()")
        connection.execute("create role alone in role o_reader")
        connection.execute("grant alone to pgrecall_owner")
        connection.execute("set role alone")
        found = rows(connection, SEARCHED, "alone", "alone")
        connection.rollback()

    assert found[0][0]
