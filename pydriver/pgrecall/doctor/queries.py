"""SQL statements about the server and its catalogs.

Functions that take any type are called with their schema, since a schema on the caller's path may
have one that matches better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg.rows import scalar_row, tuple_row

from pgrecall.calls.call import Call, single


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        is_readable: Whether the caller may read it.
        lacks_partitions: Whether it consists of partitions, of which there are none.

    """

    is_readable: bool
    lacks_partitions: bool


def vector_version() -> Call[Any, str | None]:
    """Return the version of pgvector in the database; None if it is missing."""
    return _value(
        "select (select x.extversion from pg_catalog.pg_extension x where x.extname = 'vector')"
    )


def knows_letters() -> Call[Any, bool]:
    """Return whether the locale of a database in UTF8, unlike C, has other letters than a to z.

    Text search has those of LC_CTYPE, which may be C although the locale is another.
    """
    return _value(
        # The planner would compute the letter of a constant, which other encodings may lack.
        "select getdatabaseencoding() <> 'UTF8' or exists ("
        " select from generate_series(233, 233) as n where chr(n) ~ '[[:alpha:]]'"
        " and to_tsvector('pg_catalog.simple'::regconfig, chr(n + 7987) || chr(n - 32))"
        " = to_tsvector('pg_catalog.simple'::regconfig, chr(n)))"
    )


def collation_versions() -> Call[Any, tuple[str, str, str] | None]:
    """Return the database, the version of its locale and that of the system, where they differ."""
    return Call(
        "select quote_ident(d.datname), d.datcollversion, v.version from pg_catalog.pg_database d"
        " cross join lateral pg_database_collation_actual_version(d.oid) as v(version)"
        " where d.datname = current_database() and d.datcollversion <> v.version",
        {},
        tuple_row,
        lambda rows: rows[0] if rows else None,
    )


def maintenance_memory() -> Call[Any, int]:
    """Return maintenance_work_mem in bytes."""
    return _value("select pg_size_bytes(current_setting('maintenance_work_mem'))")


def vector_index_memory() -> Call[Any, tuple[int, int]]:
    """Return the sizes of the vector indexes and of shared_buffers in bytes."""
    return _row(
        "select coalesce(sum(pg_catalog.pg_relation_size(c.oid)), 0)::bigint,"
        " pg_size_bytes(current_setting('shared_buffers'))"
        " from pg_catalog.pg_class c join pg_catalog.pg_am a on a.oid = c.relam"
        " where c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
        " and c.relkind = 'i' and a.amname = 'hnsw'"
    )


def is_fenced() -> Call[Any, bool]:
    """Return whether row security restricts the banks that the role sees."""
    return _value("select row_security_active('pgrecall.bank'::regclass)")


def open_tables() -> Call[Any, tuple[list[str], list[str], bool]]:
    """Return tables without row security on which other roles than the owner have privileges.

    Also return these roles, and whether any table is under row security.
    """
    return _row(
        "select coalesce(pg_catalog.array_agg(s.relation order by s.relation)"
        " filter (where s.status = 'open'), '{}'),"
        " array(select distinct r from pgrecall.row_security_status() x,"
        " pg_catalog.unnest(x.open_to) as r order by r),"
        " coalesce(bool_or(s.status in ('fenced', 'closed')), false)"
        " from pgrecall.row_security_status() as s"
    )


def stray_searcher() -> Call[Any, str | None]:
    """Return who owns the security definer function of the searcher; None if a searcher does."""
    return _value(
        "select (select pg_get_userbyid(p.proowner)::text from pg_catalog.pg_proc p"
        " where p.oid = to_regproc('pgrecall_internal._searched_recall') and p.prosecdef"
        " and not exists (select from pg_catalog.pg_policy y"
        " where y.polname = 'pgrecall_searcher' and p.proowner = any (y.polroles)))"
    )


def role_prefix() -> Call[Any, str | None]:
    """Return how the names of the roles begin that may see every bank, those made last first."""
    return _value(
        "select (select pg_catalog.regexp_replace(r.rolname, '_[a-z]+$', '')"
        " from pg_catalog.pg_policy y join pg_catalog.pg_roles r on r.oid = any (y.polroles)"
        " where y.polname in ('pgrecall_searcher', 'pgrecall_admin')"
        " order by y.polname desc, r.oid desc limit 1)"
    )


def creators_in_vector_schema() -> Call[Any, tuple[str, str, list[str], list[str]]]:
    """Return the schema of pgvector, the owner of pgrecall, and who else can create in the former.

    That are, first, roles with the privilege, and then those that log in and are members of its
    owner, as the owner of the database is of pg_database_owner. The caller and the owner of
    pgrecall are left out, with whoever has their rights.
    """
    return _row(
        "select n.nspname::text, pg_get_userbyid(o.nspowner)::text,"
        " array(select coalesce(r.rolname::text, 'public')"
        " from pg_catalog.aclexplode(n.nspacl) as a"
        " left join pg_catalog.pg_roles r on r.oid = a.grantee"
        " where a.privilege_type = 'CREATE' and a.grantee <> n.nspowner"
        " and not coalesce(r.rolsuper, false) and r.rolname is distinct from current_user"
        " order by 1),"
        " array(select r.rolname::text from pg_catalog.pg_roles r"
        " where r.rolcanlogin and not r.rolsuper and r.rolname <> current_user"
        " and pg_has_role(r.oid, n.nspowner, 'usage')"
        " and not pg_has_role(r.oid, o.nspowner, 'usage') order by 1)"
        " from pg_catalog.pg_extension x"
        " join pg_catalog.pg_namespace n on n.oid = x.extnamespace"
        " join pg_catalog.pg_namespace o on o.nspname = 'pgrecall' where x.extname = 'vector'"
    )


def _kept(config: str) -> str:
    """Return SQL that counts the words of a sample that a text search configuration keeps."""
    return (
        "(select coalesce(sum(cardinality(w.positions)), 0)::float8"
        f" from unnest(to_tsvector({config}::regconfig, s.content)) as w)"
    )


def lost_configuration(bank: str) -> Call[Any, str | None]:
    """Return the text search configuration of a bank if there is none of that name."""
    return Call(
        "select b.text_search_config from pgrecall.bank b where b.bank_id = %(bank)s"
        " and not pg_catalog.pg_input_is_valid(b.text_search_config, 'regconfig')",
        {"bank": bank},
        scalar_row,
        lambda rows: rows[0] if rows else None,
    )


def better_configuration(bank: str) -> Call[Any, tuple[str, str, float, float] | None]:
    """Return a text search configuration that fits the texts of a bank better than its own.

    Of the words in its latest facts, that of their language drops the largest part as stop words.

    Returns:
        Its own configuration, the better one, and the share of words that each drops; None where
        no other drops a fifth and 1.7 times what its own does, its own is simple, or they have
        less than 100 words.

    """
    all_words, of_own, of_other = map(_kept, ("'pg_catalog.simple'", "s.own", "t.oid"))
    return Call(
        "with sample as materialized ("
        " select b.text_search_config as own, left(string_agg(m.text, ' '), 8000) as content"
        " from pgrecall.bank b cross join lateral ("
        "  select x.text from pgrecall.memory x where x.bank_id = b.bank_id"
        "  order by x.memory_id desc limit 100) as m"
        " where b.bank_id = %(bank)s and b.text_search_config::regconfig"
        "  <> 'pg_catalog.simple'::regconfig group by b.bank_id)"
        " select s.own, d.config, o.share, d.share"
        " from sample s cross join lateral ("
        f"  select {all_words} as words) as a"
        " cross join lateral ("
        f"  select 1 - {of_own} / nullif(a.words, 0) as share) as o"
        " cross join lateral ("
        f"  select t.cfgname::text as config, 1 - {of_other} / a.words as share"
        "  from pg_catalog.pg_ts_config t"
        # Texts in the language of its own have more stop words than this.
        "  where t.cfgnamespace = 'pg_catalog'::regnamespace and o.share < 0.27"
        "  order by 2 desc limit 1) as d"
        " where a.words >= 100 and d.share >= greatest(0.2, 1.7 * o.share)",
        {"bank": bank},
        tuple_row,
        lambda rows: rows[0] if rows else None,
    )


def unanalysed_tables() -> Call[Any, list[str]]:
    """List tables of more than a megabyte that PostgreSQL has never analysed."""
    return Call(
        "select pg_catalog.format('%%s.%%s', c.relnamespace::regnamespace, c.relname)"
        " from pg_catalog.pg_class c"
        " where c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
        " and c.relkind = 'r' and c.reltuples < 0::real"
        " and pg_catalog.pg_relation_size(c.oid) > 1048576"
        " order by c.relname",
        {},
        scalar_row,
        list,
    )


def other_owner() -> Call[Any, str | None]:
    """Return who owns the tables with vectors, if the caller does not have their rights."""
    return _value(
        "select (select pg_get_userbyid(c.relowner)::text from pg_catalog.pg_class c"
        " where c.oid = to_regclass('pgrecall.embedding')"
        " and not pg_has_role(c.relowner, 'usage'))"
    )


def has_vector_indexes() -> Call[Any, bool]:
    """Return whether there is any vector index."""
    return _value(
        "select exists (select from pg_catalog.pg_class c"
        " join pg_catalog.pg_am a on a.oid = c.relam"
        " where c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
        " and c.relkind = 'i' and a.amname = 'hnsw')"
    )


def former_vector_schema() -> Call[Any, str | None]:
    """Return in which schema functions look for pgvector, if it is not there any more."""
    return _value(
        "select (select x.path from (select (select pg_catalog.substr(s, 13)"
        " from pg_catalog.unnest(p.proconfig) as s where s like 'search_path=%%') as path"
        " from pg_catalog.pg_proc p where p.oid = to_regproc('pgrecall.hybrid_recall')) as x"
        " join pg_catalog.pg_extension e on e.extname = 'vector'"
        " join pg_catalog.pg_namespace n on n.oid = e.extnamespace"
        " where x.path is distinct from"
        " pg_catalog.format('pg_catalog, %%I, pg_temp', n.nspname))"
    )


def tables() -> Call[Any, dict[str, Table]]:
    """Return the tables of the schema by name."""
    return Call(
        "select pg_catalog.format('%%s.%%s', c.relnamespace::regnamespace, c.relname),"
        " has_table_privilege(c.oid, 'select'), c.relkind = 'p' and not exists"
        " (select from pg_catalog.pg_inherits i where i.inhparent = c.oid)"
        " from pg_catalog.pg_class c"
        " where c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
        " and c.relkind in ('r', 'p')",
        {},
        tuple_row,
        lambda rows: {name: Table(*about) for name, *about in rows},
    )


def columns() -> Call[Any, set[tuple[str, str]]]:
    """Return the columns of the schema, each with its table."""
    return Call(
        "select pg_catalog.format('%%s.%%s', c.relnamespace::regnamespace, c.relname), a.attname"
        " from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid"
        " where c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
        " and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped",
        {},
        tuple_row,
        set,
    )


def missing_partitions() -> Call[Any, list[tuple[str, str]]]:
    """Return the partitions that embedding lacks beside others: name and bound."""
    return Call(
        "select pg_catalog.format('pgrecall_internal.embedding_%%s', r),"
        " pg_catalog.format('for values with (modulus %%s, remainder %%s)', m.modulus, r)"
        " from (select pg_catalog.max(b.bound[1]::integer) as modulus,"
        " pg_catalog.array_agg(b.bound[2]::integer) as there"
        " from pg_catalog.pg_inherits i join pg_catalog.pg_class c on c.oid = i.inhrelid"
        " cross join lateral regexp_match(pg_get_expr(c.relpartbound, c.oid),"
        " 'modulus (\\d+), remainder (\\d+)') as b(bound)"
        " where i.inhparent = to_regclass('pgrecall.embedding')) as m"
        " cross join lateral pg_catalog.generate_series(0, m.modulus - 1) as r"
        " where r <> all (m.there) order by r",
        {},
        tuple_row,
        list,
    )


def disabled_triggers() -> Call[Any, list[str]]:
    """Return the tables of which triggers are disabled, those of foreign keys included."""
    return Call(
        "select distinct pg_catalog.format('%%s.%%s', c.relnamespace::regnamespace, c.relname)"
        " as name from pg_catalog.pg_trigger t join pg_catalog.pg_class c on c.oid = t.tgrelid"
        " where c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
        " and t.tgenabled = 'D' order by name",
        {},
        scalar_row,
        list,
    )


def sees_all_rows(relation: str) -> Call[Any, bool]:
    """Return whether the caller could sync a table; true for one that is gone."""
    return _value(
        "select coalesce(has_table_privilege(t.id, 'select') and not row_security_active(t.id),"
        " true) from (select to_regclass(%(relation)s)) as t(id)",
        relation=relation,
    )


def invalid_indexes() -> Call[Any, dict[str, str | None]]:
    """Return the invalid indexes by name, and how to drop each; null for one of a constraint.

    Left out are vector indexes, which are in the plan, and those of tables where indexes are being
    built. On which table another role builds is null for who may not see it.
    """
    return Call(
        "select pg_catalog.format('%%I.%%I', n.nspname, c.relname),"
        " case when exists (select from pg_catalog.pg_constraint k where k.conindid = c.oid)"
        " then null when c.relkind = 'I' then 'drop index' else 'drop index concurrently' end"
        " from pg_catalog.pg_index x join pg_catalog.pg_class c on c.oid = x.indexrelid"
        " join pg_catalog.pg_namespace n on n.oid = c.relnamespace"
        " join pg_catalog.pg_am a on a.oid = c.relam"
        " where n.nspname in ('pgrecall', 'pgrecall_internal') and a.amname <> 'hnsw'"
        " and not x.indisvalid and not c.relispartition and not exists (select"
        " from pg_catalog.pg_stat_progress_create_index b where b.datname = current_database()"
        " and coalesce(b.relid = x.indrelid, true))"
        " order by c.relname",
        {},
        tuple_row,
        dict,
    )


def indexes() -> Call[Any, set[str]]:
    """Return the names of the indexes of the schema."""
    return Call(
        "select c.relname from pg_catalog.pg_class c"
        " where c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
        " and c.relkind in ('i', 'I')",
        {},
        scalar_row,
        set,
    )


def constraints() -> Call[Any, dict[tuple[str, str], bool]]:
    """Return the constraints of the schema by table and name, and whether each is validated."""
    return Call(
        "select pg_catalog.format('%%s.%%s', c.relnamespace::regnamespace, c.relname), k.conname,"
        " k.convalidated"
        " from pg_catalog.pg_constraint k join pg_catalog.pg_class c on c.oid = k.conrelid"
        " where c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')",
        {},
        tuple_row,
        lambda rows: {(table, name): is_validated for table, name, is_validated in rows},
    )


def count(rows: str) -> Call[Any, int]:
    """Count rows, given as what follows ``from``."""
    return _value(f"select count(*) from {rows}")


def sequences() -> Call[Any, list[str]]:
    """Return a statement for each sequence of the schema that the caller may read.

    The statement returns the name of the sequence, its last value, and the greatest value in the
    columns that it numbers.
    """
    return Call(
        "select pg_catalog.format('select %%L, s.last_value, greatest(%%s) from %%s s', q.name,"
        " string_agg(pg_catalog.format('(select max(%%I) from %%s)', a.attname, c.oid::regclass),"
        " ', '), q.name)"
        " from (select s.oid, s.oid::regclass::text as name from pg_catalog.pg_class s where"
        " case when s.relkind = 'S' then has_sequence_privilege(s.oid, 'select') end) as q"
        " join pg_catalog.pg_depend d on d.refclassid = 'pg_catalog.pg_class'::regclass"
        " and d.refobjid = q.oid and d.classid = 'pg_catalog.pg_attrdef'::regclass"
        " join pg_catalog.pg_attrdef f on f.oid = d.objid"
        " join pg_catalog.pg_class c on c.oid = f.adrelid and has_table_privilege(c.oid, 'select')"
        " join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = f.adnum"
        " where c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
        " group by q.name",
        {},
        scalar_row,
        list,
    )


def sequence_state(statement: str) -> Call[Any, tuple[str, int, int | None]]:
    """Return what a statement of :func:`sequences` returns."""
    return _row(statement.replace("%", "%%"))


def without_embedding(bank: str) -> Call[Any, int]:
    """Count memories without an embedding."""
    return _value(
        "select count(*) from pgrecall.memory m where m.bank_id = %(bank)s"
        " and not exists (select from pgrecall.embedding e"
        " where e.bank_id = m.bank_id and e.memory_id = m.memory_id)",
        bank=bank,
    )


def sessions(seconds: float) -> Call[Any, tuple[int, int, list[int], list[int]]]:
    """Return the number of connections and its limit for ordinary roles.

    Also return the processes of this database that have been idle in a transaction, or waiting for
    a lock, for at least so many seconds; none if the caller may not see them.
    """
    return _row(
        "select count(*) filter (where a.backend_type = 'client backend'),"
        " current_setting('max_connections')::integer"
        " - current_setting('superuser_reserved_connections')::integer"
        " - current_setting('reserved_connections')::integer,"
        " coalesce(pg_catalog.array_agg(a.pid order by a.pid) filter (where s.is_here"
        " and a.state like 'idle in transaction%%' and a.state_change <= s.since), '{}'),"
        " coalesce(pg_catalog.array_agg(a.pid order by a.pid) filter (where s.is_here"
        " and a.wait_event_type = 'Lock' and a.query_start <= s.since), '{}')"
        " from pg_catalog.pg_stat_activity a cross join lateral"
        " (select a.datname = current_database() as is_here,"
        " clock_timestamp() - pg_catalog.make_interval(secs => %(seconds)s) as since) as s",
        seconds=seconds,
    )


def _value(sql: str, **parameters: object) -> Call[Any, Any]:
    return Call(sql, parameters, scalar_row, single)


def _row(sql: str, **parameters: object) -> Call[Any, Any]:
    return Call(sql, parameters, tuple_row, single)
