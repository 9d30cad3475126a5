"""Distribute the tables and functions of an installed pgrecall over the workers of Citus.

All tables are distributed by bank_id and colocated, so that all rows of a bank are on one worker.
Each public function of a bank becomes two: the function itself moves to schema pgrecall_internal,
where Citus delegates it to the worker of the bank (force_delegation), and a wrapper with the same
signature in schema pgrecall, which is not distributed, calls it. Citus 14.0 does not delegate a
call in a view, in a common table expression or with a condition, and the server crashes on some of
these and on a null bank; in the wrapper the call always has a safe form.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg
from psycopg import sql
from psycopg.rows import namedtuple_row

from pgrecall.connection.connecting import value_of
from pgrecall.errors import InstallError

Connection = psycopg.Connection[Any]

# Functions that use more than one bank, or define objects, which only the coordinator can do.
UNDISTRIBUTED = frozenset(("clone_bank", "index_plan"))

_SETTINGS = {
    # Tables and functions change in one transaction.
    "citus.multi_shard_modify_mode": "sequential",
    "search_path": "pg_catalog, pg_temp",  # qualifies names in definitions
    "client_min_messages": "error",  # no warnings of functions not on workers yet
}
_TABLES = """
select c.oid::regclass::text as name, c.oid = 'pgrecall.bank'::regclass as is_first
from   pg_class c
join   pg_attribute a on a.attrelid = c.oid and a.attname = 'bank_id'
where  c.relnamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
  and  c.relkind in ('r', 'p') and not c.relispartition
order  by c.oid  -- what a foreign key refers to is older
"""
# Their bodies depend on a table, whose columns depend on them: a circle for Citus.
_OF_ROWS = """
select p.oid::regprocedure::text as name, pg_get_functiondef(p.oid) as definition,
       pg_get_function_sqlbody(p.oid) as body
from   pg_proc p
where  p.pronamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
  and  p.prosqlbody is not null
  and  exists (select from pg_depend d
               join   pg_class c on c.oid = d.refobjid and c.relkind in ('r', 'p')
               where  d.classid = 'pg_proc'::regclass and d.objid = p.oid
                 and  d.refclassid = 'pg_class'::regclass)
order  by p.oid
"""
# Citus needs the values of parameters to plan.
_GENERIC = """
select p.oid::regprocedure::text as name
from   pg_proc p
where  p.pronamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
  and  'plan_cache_mode=force_generic_plan' = any (p.proconfig)
"""
# On a worker the index of a shard is named like that of the empty table, with a number appended.
_SHARD_BYTES = """
create function pgrecall_internal._shard_bytes(index_id oid) returns bigint
language plpgsql stable as $$
begin
  return (
    select max(pg_relation_size(s.oid))
    from   pg_class x
    join   pg_class s on s.relnamespace = x.relnamespace and s.relkind = 'i'
                     and s.relname ~ format('^%s_[0-9]+$', x.relname)
    where  x.oid = index_id);
end;
$$
"""
_SIZE_OF = "select pg_get_functiondef('pgrecall_internal._hnsw_index'::regproc)"
# Citus cannot plan an insert that calls nextval() and reads tables.
_NEXT_ID = """
create function pgrecall_internal._next_id() returns bigint language plpgsql volatile as
$$ begin return pg_catalog.nextval('pgrecall.id_seq'); end; $$;
alter table pgrecall.entity alter column entity_id set default pgrecall_internal._next_id();
alter table pgrecall.relation alter column relation_id set default pgrecall_internal._next_id();
"""
# An update may call these of columns only if they are immutable. They are, but for the text search
# configuration and, the last, the neighbours of a message.
_OF_COLUMNS = """
select p.oid::regprocedure::text as name
from   pg_proc p
where  p.pronamespace = 'pgrecall_internal'::regnamespace
  and  p.proname in ('_corrections', '_document_weights', '_lexical_document', '_message_weights')
"""
_FUNCTIONS = """
select p.oid::regprocedure::text as name, p.proname, pg_get_functiondef(p.oid) as definition,
       n.nspname = 'pgrecall' as is_public,
       p.proargnames[1] is not distinct from 'bank' and p.proargtypes[0] = 'text'::regtype
         and p.prolang = (select l.oid from pg_language l where l.lanname = 'plpgsql')
         as is_of_bank,
       p.proretset as is_set, format_type(p.prorettype, null) as result,
       p.proargnames[:p.pronargs] as arguments,
       array(select p.proargnames[n] from generate_series(1, p.pronargs) as n
             where  pg_get_function_arg_default(p.oid, n) = 'now()') as now_by_default,
       p.pronargdefaults = p.pronargs as is_for_all,
       exists (select from pg_depend d join pg_type x on x.oid = d.refobjid
               where  d.classid = 'pg_proc'::regclass and d.objid = p.oid
                 and  d.refclassid = 'pg_type'::regclass
                 and  x.typtype in ('r', 'm')
                 and  x.typnamespace = 'pgrecall_internal'::regnamespace) as is_period
from   pg_proc p
join   pg_namespace n on n.oid = p.pronamespace
where  n.nspname in ('pgrecall', 'pgrecall_internal') and p.prokind = 'f'
order  by p.oid
"""
_GREATEST_ID = """
select greatest((select max(memory_id) from pgrecall.memory),
                (select max(message_id) from pgrecall.message),
                (select max(entity_id) from pgrecall.entity),
                (select max(relation_id) from pgrecall.relation), 0)
"""
_RAISE_IDS = """
select run_command_on_all_nodes($raise$
do $$
begin
  perform set_config('citus.enable_ddl_propagation', 'off', true);
  alter sequence pgrecall.id_seq maxvalue 9223372036854775807;
  if coalesce(pg_sequence_last_value('pgrecall.id_seq'), 0) < {greatest} then
    perform setval('pgrecall.id_seq',
                   (({greatest}::bigint >> 48) + 1
                    + (select groupid from pg_dist_local_group)) << 48);
  end if;
end;
$$
$raise$, give_warning_for_connection_errors => false)
"""
_PERIOD = "pgrecall_internal.period"


class _Function(NamedTuple):
    name: str
    proname: str
    definition: str
    is_public: bool
    is_of_bank: bool
    is_set: bool
    result: str
    arguments: list[str]
    now_by_default: list[str]
    is_for_all: bool
    is_period: bool


def is_distributed(connection: Connection) -> bool:
    """Return whether the tables of pgrecall in this database are distributed by Citus."""
    if not value_of(connection, "select to_regclass('pg_catalog.pg_dist_partition') is not null"):
        return False
    query = (
        "select exists (select from pg_dist_partition"
        " where logicalrelid = to_regclass('pgrecall.bank'))"
    )
    return bool(value_of(connection, query))


def distribute(connection: Connection) -> None:
    """Distribute an installed pgrecall within the caller's transaction.

    Raises:
        InstallError: the database does not have Citus, or is not its coordinator.

    """
    if not value_of(connection, "select to_regproc('citus_is_coordinator') is not null"):
        raise InstallError(
            "this database does not have Citus",
            hint="Run on all nodes: create extension citus; and on one of them: citus_add_node().",
        )
    if not value_of(connection, "select citus_is_coordinator()"):
        raise InstallError(
            "this server is not the coordinator of Citus",
            hint="Connect to the coordinator and retry.",
        )
    for name, setting in _SETTINGS.items():
        connection.execute("select set_config(%s, %s, true)", [name, setting])
    for one in _rows(connection, _OF_ROWS):
        connection.execute(_with_text_body(one.definition, one.body).encode())
    for one in _rows(connection, _GENERIC):
        connection.execute(f"alter function {one.name} reset plan_cache_mode".encode())
    for one in _rows(connection, _OF_COLUMNS):
        connection.execute(f"alter function {one.name} immutable".encode())
    connection.execute(_NEXT_ID)
    connection.execute(_SHARD_BYTES)
    indexed = str(value_of(connection, _SIZE_OF))
    connection.execute(
        indexed.replace("pg_relation_size(", "pgrecall_internal._shard_bytes(").encode()
    )
    for one in _rows(connection, _TABLES):
        connection.execute(
            "select create_distributed_table(%s, 'bank_id', colocate_with => %s)",
            [one.name, "none" if one.is_first else "pgrecall.bank"],
        )
    # Banks that were there are on the workers now; with them goes what refers to them.
    connection.execute("select truncate_local_data_after_distributing_table('pgrecall.bank')")
    functions = [_Function(*row) for row in _rows(connection, _FUNCTIONS)]
    of_banks = [
        one
        for one in functions
        if one.is_public and one.is_of_bank and one.proname not in UNDISTRIBUTED
    ]
    for one in of_banks:
        connection.execute(_moved(one.definition).encode())
        connection.execute(_wrapper(one).encode())
    for one in functions:
        if not (one.is_period or one.proname in UNDISTRIBUTED):
            connection.execute("select create_distributed_function(%s)", [one.name])
    for one in of_banks:
        connection.execute(
            "select create_distributed_function(%s, 'bank', colocate_with => 'pgrecall.bank',"
            " force_delegation => true)",
            [_moved(one.name)],
        )


def raise_ids(connection: Connection) -> None:
    """Let ids go on above all that are stored, on every node; to be called when banks have moved.

    Each node has its own block of ids, and ids must rise within a bank. This is not part of the
    caller's transaction, since Citus uses its own connections.
    """
    greatest = value_of(connection, _GREATEST_ID)
    connection.execute(_RAISE_IDS.format(greatest=int(greatest)).encode())


def _with_text_body(definition: str, body: str) -> str:
    """Return the definition of an SQL function with its body as a string, without dependencies."""
    text = body.strip()
    if text.startswith("RETURN"):
        text = "select " + text.removeprefix("RETURN")
    else:
        text = text.removeprefix("BEGIN ATOMIC").removesuffix("END")
    head = definition[: definition.rindex(body.strip())]
    return f"{head}AS $text${text}$text$"


def _moved(definition: str) -> str:
    """Return the definition or name of a public function, moved to schema pgrecall_internal.

    Citus does not create the type period on workers, so a window is sent as a tstzrange.
    """
    moved = definition.replace("pgrecall.", "pgrecall_internal.", 1)
    moved = moved.replace("pgrecall_internal._range_of_period(during)", "during")
    return moved.replace(_PERIOD, "tstzrange")


def _wrapper(one: _Function) -> str:
    """Return the definition of the wrapper that calls the moved function.

    Citus cannot send parameters of types whose oids differ between nodes, so vectors and windows
    are sent as built-in types.
    """
    head = one.definition[: one.definition.index("\nAS $")].replace("PARALLEL SAFE", "")
    given = {name: f"{one.proname}.{_ident(name)}" for name in one.arguments}
    declared = ""
    for name, to, kind in (
        ("embedding", "{}._to_halfvec({})::text", "text"),
        ("during", "{}._range_of_period({})", "tstzrange"),
    ):
        if name in given:
            declared += f"\n  _{name} {kind} := {to.format('pgrecall_internal', given[name])};"
            given[name] = f"_{name}"
    for name in one.now_by_default:  # the worker's now(): its last rows may be later than ours
        declared += f"\n  _is_now_{name} boolean := {given[name]} is not distinct from now();"
        given[name] = f"case when _is_now_{name} then now() else {given[name]} end"
    call = f"from pgrecall_internal.{one.proname}"
    arguments = list(given.values())
    if one.is_set:
        run = f"return query select * {call}({', '.join(arguments)});"
    elif one.result == "void":
        run = f"perform {call}({', '.join(arguments)});"
    else:
        declared += f"\n  _result {one.result};"
        run = f"select * into _result {call}({', '.join(arguments)});\n  return _result;"
    if one.is_for_all:
        declared += "\n  _bank text;"
        null = f"""for _bank in select b.bank_id from pgrecall.bank b order by b.bank_id loop
      return query select * {call}({", ".join(["_bank", *arguments[1:]])});
    end loop;
    return;"""
    else:
        null = "perform pgrecall_internal._bank(null);"
    return f"""{head}
AS $wrapper$
declare{declared}
begin
  if {one.proname}.bank is null then
    {null}
  end if;
  {run}
end;
$wrapper$"""


def _ident(name: str) -> str:
    return sql.Identifier(name).as_string(None)


def _rows(connection: Connection, query: str) -> list[Any]:
    with connection.cursor(row_factory=namedtuple_row) as cursor:
        return cursor.execute(query.encode()).fetchall()
