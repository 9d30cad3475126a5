"""Make the functions of a router from the catalog of a shard. See shards.py and router.sql.

Each public function becomes two. One in schema pgrecall_router, in PL/Proxy, runs it on the shard
named by its first argument. One in schema pgrecall, with the signature of the shard's, finds the
shard, calls the first, and raises errors with the shard's message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import psycopg
from psycopg import sql
from psycopg.rows import namedtuple_row

from pgrecall.connection.connecting import value_of

Connection = psycopg.Connection[Any]

# Functions about one server rather than its banks, to be called on each shard; so are functions
# that write without naming a bank.
PER_SERVER = frozenset(("index_plan", "lexical_index_plan", "row_security_status", "to_embedding"))
_BEFORE = {  # a new bank is recorded first
    "create_bank": "perform pgrecall_router.placed(create_bank.bank);",
    "import_rows": "perform pgrecall_router.placed(import_rows.bank);",
    "clone_bank": "perform pgrecall_router.placed(clone_bank.new_bank, clone_bank.bank);",
}
_AFTER = {"drop_bank": "perform pgrecall_router.unplaced(drop_bank.bank);"}
_NOW = "'4714-11-24 00:00:00+00 BC'::pg_catalog.timestamptz"  # the default now(), of the shard
_ATTEMPTS = 20
# PL/Proxy sends and reads values as texts, which the session must not write in its own way.
_STYLE = " set datestyle = 'ISO, MDY' set intervalstyle = 'postgres'"

_FUNCTIONS = """
select p.proname as name, p.proretset as is_set, p.provolatile = 'v' as is_volatile,
       p.proargnames as names,
       array(select pgrecall_type(a.type) from unnest(p.proargtypes) with ordinality as a(type, n)
             order by a.n) as types,
       array(select pg_get_function_arg_default(p.oid, n::integer)
             from generate_series(1, p.pronargs) as n order by n) as defaults,
       pgrecall_type(p.prorettype) as result,
       array(select quote_ident(a.attname)
             from   pg_type t join pg_attribute a on a.attrelid = t.typrelid
             where  t.oid = p.prorettype and a.attnum > 0 and not a.attisdropped
             order by a.attnum) as columns,
       obj_description(p.oid, 'pg_proc') as comment
from   pg_proc p
where  p.pronamespace = 'pgrecall'::regnamespace and p.prokind = 'f'
order  by p.proname
"""
_TYPES = """
select t.oid::regtype::text as name, t.typtype = 'c' as is_composite,
       array(select format('%I %s', a.attname, pgrecall_type(a.atttypid)) from pg_attribute a
             where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
             order by a.attnum) as attributes,
       (select pgrecall_type(r.rngsubtype) from pg_range r where r.rngtypid = t.oid) as subtype
from   pg_type t
left   join pg_class c on c.oid = t.typrelid
where  t.typnamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
  and  (c.relkind = 'c' and t.typnamespace = 'pgrecall'::regnamespace or t.typtype = 'r')
order  by t.typtype = 'c', t.oid
"""
_CASTS = """
select c.castsource::regtype::text as source, c.casttarget::regtype::text as target,
       c.castfunc::regprocedure::text as function, pg_get_functiondef(c.castfunc) as definition
from   pg_cast c
join   pg_proc p on p.oid = c.castfunc
where  p.pronamespace = 'pgrecall_internal'::regnamespace
order  by c.oid
"""
# The name of a type on the router, which has no pgvector; its types are sent as text.
_TYPE_NAME = """
create or replace function pg_temp.pgrecall_type(type oid) returns text language sql stable
return case when exists (select from pg_depend d join pg_extension x on x.oid = d.refobjid
                         where d.classid = 'pg_type'::regclass and d.objid = type
                           and x.extname = 'vector')
            then 'text' else format_type(type, null) end
"""


class _Function(NamedTuple):
    name: str
    is_set: bool
    is_volatile: bool
    names: list[str] | None
    types: list[str]
    defaults: list[str | None]
    result: str
    columns: list[str]
    comment: str


def statements(router: Connection, shard: Connection) -> Iterator[str]:
    """Return the statements that make the router's types, functions and views equal a shard's."""
    with shard.transaction(), shard.cursor(row_factory=namedtuple_row) as cursor:
        cursor.execute(_TYPE_NAME)
        cursor.execute("set local search_path = pg_catalog, pg_temp")
        types = cursor.execute(_named(_TYPES)).fetchall()
        casts: list[Any] = cursor.execute(_named(_CASTS)).fetchall()
        functions = [_Function(*one) for one in cursor.execute(_named(_FUNCTIONS)).fetchall()]
        overview = cursor.execute(
            _named(
                "select quote_ident(attname) as name, pgrecall_type(atttypid) as type"
                " from pg_attribute where attrelid = 'pgrecall.bank_overview'::regclass"
                " and attnum > 0 order by attnum"
            )
        ).fetchall()
    for one in types:
        yield from _type(router, one)
    for cast in casts:
        if not value_of(router, "select to_regprocedure(%s) is not null", cast.function):
            yield cast.definition
        has_cast = (
            "select exists (select from pg_cast where castsource = to_regtype(%s)"
            " and casttarget = to_regtype(%s))"
        )
        if not value_of(router, has_cast, cast.source, cast.target):
            yield (
                f"create cast ({cast.source} as {cast.target})"
                f" with function {cast.function} as implicit"
            )
    for function in functions:
        if is_routed(function):
            yield from _function(function)
    yield from _overview(overview)


def _named(statement: str) -> bytes:
    return statement.replace("pgrecall_type(", "pg_temp.pgrecall_type(").encode()


def _type(router: Connection, one: Any) -> Iterator[str]:
    known = value_of(router, "select to_regtype(%s)::oid", one.name)
    if known is None and one.is_composite:
        yield f"create type {one.name} as ({', '.join(one.attributes)})"
    elif known is None:
        yield f"create type {one.name} as range (subtype = {one.subtype})"
    elif one.is_composite:
        count = value_of(
            router,
            "select count(*) from pg_type t join pg_attribute a on a.attrelid = t.typrelid"
            " where t.oid = %s and a.attnum > 0 and not a.attisdropped",
            known,
        )
        for attribute in one.attributes[count:]:  # attributes are only added, at the end
            yield f"alter type {one.name} add attribute {attribute}"


def is_routed(one: _Function) -> bool:
    """Return whether the router has a function: it is about a bank, or equal on all shards."""
    is_of_bank = (one.names or [])[:1] == ["bank"]
    return one.name not in PER_SERVER and (is_of_bank or not one.is_volatile)


def _function(one: _Function) -> Iterator[str]:
    """Return the PL/Proxy function and the public one that calls it."""
    names = one.names or []
    is_now = [default == "now()" for default in one.defaults]
    is_vector = [kind == "anycompatible" for kind in one.types]
    result = f"setof {one.result}" if one.is_set else one.result
    sent = [f"a{n}" for n in range(len(names))]
    sent_types = [
        "text" if vector else kind for kind, vector in zip(one.types, is_vector, strict=True)
    ]
    arguments = ", ".join(
        f"case when {arg} = {_NOW} then pg_catalog.now() else {arg} end" if now else arg
        for arg, now in zip(sent, is_now, strict=True)
    )
    call = f"pgrecall.{one.name}({arguments})"
    columns = ", ".join(one.columns) or "*"
    asked = f"select {columns} from {call}" if one.is_set or one.columns else f"select {call}"
    declared = ", ".join(["shard text", *map(" ".join, zip(sent, sent_types, strict=True))])
    yield (
        f"create or replace function pgrecall_router.{one.name}({declared}) returns {result}"
        f" language plproxy volatile{_STYLE} as {_proxied(asked)}"
    )
    given = [f"{one.name}.{_ident(name)}" for name in names]
    passed = ", ".join(
        f"case when {arg} = now() then {_NOW} else {arg} end"
        if now
        else f"pgrecall_router.vector_text({arg})"
        if vector
        else arg
        for arg, now, vector in zip(given, is_now, is_vector, strict=True)
    )
    inner = f"pgrecall_router.{one.name}({', '.join(filter(None, ['_shard', passed]))})"
    signature = ", ".join(
        f"{_ident(name)} {kind}" + (f" default {default}" if default is not None else "")
        for name, kind, default in zip(names, one.types, one.defaults, strict=True)
    )
    yield (
        f"create or replace function pgrecall.{one.name}({signature}) returns {result}"
        f" language plpgsql volatile as {_quoted(_body(one, inner))}"
    )
    yield f"comment on function pgrecall.{one.name} is {_literal(one.comment)}"


def _body(one: _Function, inner: str) -> str:
    """Return the body of a public function, which looks the bank up again if it has moved."""
    bank = f"{one.name}.bank" if (one.names or [])[:1] == ["bank"] else "null"
    attempt, end = "_attempt", "return;"
    declared = ""
    if one.is_set:
        run = f"return query select * from {inner};"
    elif one.result == "void":
        run = f"perform {inner};"
    else:
        declared = f"_result {one.result};"
        run = f"select * into _result from {inner};"
        end = "return _result;"
    if bank != "null" and one.defaults[0] is not None:  # null: all banks, of all shards
        attempt = "1000"
        is_last = f"{bank} is not null or _attempt >= pgrecall_router.shard_count()"
        end = f"if {is_last} then return; end if; continue;"
    return f"""
declare
  _shard text; _state text; _message text; _detail text; _hint text; {declared}
begin
  for _attempt in 1..{_ATTEMPTS} loop
    begin
      {_BEFORE.get(one.name, "")}
      _shard := pgrecall_router.place_of({bank}, _attempt);
      {run}
      {_AFTER.get(one.name, "")}
      {end}
    exception when others then
      get stacked diagnostics _state = returned_sqlstate, _message = message_text,
        _detail = pg_exception_detail, _hint = pg_exception_hint;
    end;
    perform pgrecall_router.raised(
      {bank}, _shard, {attempt}, _state, _message, _detail, _hint);
  end loop;
  raise exception using
    errcode = 'serialization_failure',
    message = 'the bank is being moved',
    hint    = 'Run the statement again.';
end;
"""


def _overview(columns: Iterable[Any]) -> Iterator[str]:
    """Return the view of all banks; with a condition on bank_id it asks only one shard."""
    listed = list(columns)
    names = [one.name for one in listed]
    declared = ", ".join(f"{one.name} {one.type}" for one in listed)
    asked = f"select {', '.join(names)} from pgrecall.bank_overview where bank_id = a0"
    yield (
        "create or replace function pgrecall_router.bank_overview(shard text, a0 text)"
        f" returns table ({declared}) language plproxy{_STYLE} as {_proxied(asked)}"
    )
    one = _Function("overview", True, True, ["bank"], ["text"], [None], "", names, "")
    body = _body(one, "pgrecall_router.bank_overview(_shard, overview.bank)")
    yield (
        f"create or replace function pgrecall_router.overview(bank text) returns table ({declared})"
        f" language plpgsql volatile as {_quoted(body)}"
    )
    shown = ", ".join("b.bank_id" if name == "bank_id" else f"o.{name}" for name in names)
    yield (
        f"create or replace view pgrecall.bank_overview as select {shown}"
        " from pgrecall_router.bank b cross join lateral pgrecall_router.overview(b.bank_id) as o"
    )


def _ident(name: str) -> str:
    return sql.Identifier(name).as_string(None)


def _literal(text: str) -> str:
    return sql.Literal(text).as_string(None)


def _proxied(asked: str) -> str:
    return _quoted(f"connect pgrecall_router.dsn_of(shard); {asked};")


def _quoted(body: str) -> str:
    return f"$router${body}$router$"
