"""SQL statements about the server and its catalogs.

Functions that take any type are called with their schema, since a schema on the caller's path may
have one that matches better.
"""

from __future__ import annotations

from typing import Any

from psycopg.rows import scalar_row, tuple_row

from pgrecall.calls.call import Call


def vector_version() -> Call[Any, str | None]:
    """Return the version of pgvector in the database; None if it is missing."""
    return _value(
        "select (select x.extversion from pg_catalog.pg_extension x where x.extname = 'vector')"
    )


def maintenance_memory() -> Call[Any, int]:
    """Return maintenance_work_mem in bytes."""
    return _value("select pg_size_bytes(current_setting('maintenance_work_mem'))")


def vector_index_memory() -> Call[Any, tuple[int, int]]:
    """Return the sizes of the vector indexes and of shared_buffers in bytes."""
    return Call(
        "select coalesce(sum(pg_catalog.pg_relation_size(c.oid)), 0)::bigint,"
        " pg_size_bytes(current_setting('shared_buffers'))"
        " from pg_catalog.pg_class c join pg_catalog.pg_am a on a.oid = c.relam"
        " where c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
        " and c.relkind = 'i' and a.amname = 'hnsw'",
        {},
        tuple_row,
        lambda rows: rows[0],
    )


def open_tables() -> Call[Any, tuple[list[str], list[str], bool]]:
    """Return tables without row security on which other roles than the owner have privileges.

    Also return these roles, and whether any table is under row security.
    """
    return Call(
        "select coalesce(pg_catalog.array_agg(s.relation order by s.relation)"
        " filter (where s.status = 'open'), '{}'),"
        " array(select distinct r from pgrecall.row_security_status() x,"
        " pg_catalog.unnest(x.open_to) as r order by r),"
        " coalesce(bool_or(s.status in ('fenced', 'closed')), false)"
        " from pgrecall.row_security_status() as s",
        {},
        tuple_row,
        lambda rows: rows[0],
    )


def creators_in_vector_schema() -> Call[Any, tuple[str, list[str]]]:
    """Return the schema of pgvector and the roles besides its owner that can create in it."""
    return Call(
        "select n.nspname::text,"
        " array(select coalesce(r.rolname::text, 'public')"
        " from pg_catalog.aclexplode(n.nspacl) as a"
        " left join pg_catalog.pg_roles r on r.oid = a.grantee"
        " where a.privilege_type = 'CREATE' and a.grantee <> n.nspowner"
        " and not coalesce(r.rolsuper, false) and r.rolname is distinct from current_user"
        " order by 1)"
        " from pg_catalog.pg_extension x"
        " join pg_catalog.pg_namespace n on n.oid = x.extnamespace where x.extname = 'vector'",
        {},
        tuple_row,
        lambda rows: rows[0],
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


def has_vector_indexes() -> Call[Any, bool]:
    """Return whether there is any vector index."""
    return _value(
        "select exists (select from pg_catalog.pg_class c"
        " join pg_catalog.pg_am a on a.oid = c.relam"
        " where c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
        " and c.relkind = 'i' and a.amname = 'hnsw')"
    )


def indexes() -> Call[Any, list[tuple[str, bool]]]:
    """List the indexes of the schema by name, and whether each is valid."""
    return Call(
        "select c.relname, x.indisvalid from pg_catalog.pg_index x"
        " join pg_catalog.pg_class c on c.oid = x.indexrelid"
        " where c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')",
        {},
        tuple_row,
        list,
    )


def keyless_tables() -> Call[Any, list[str]]:
    """List the tables of the schema without a primary key."""
    return Call(
        "select pg_catalog.format('%%s.%%s', c.relnamespace::regnamespace, c.relname)"
        " from pg_catalog.pg_class c"
        " where c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
        " and c.relkind in ('r', 'p') and not exists (select from pg_catalog.pg_constraint k"
        " where k.conrelid = c.oid and k.contype = 'p') order by 1",
        {},
        scalar_row,
        list,
    )


def orphans(bank: str) -> Call[Any, tuple[int, int, int]]:
    """Count memories without embedding, embeddings without memory, mentions without memory."""
    return Call(
        "select (select count(*) from pgrecall.memory m where m.bank_id = %(bank)s"
        " and not exists (select from pgrecall.embedding e"
        " where e.bank_id = m.bank_id and e.memory_id = m.memory_id)),"
        " (select count(*) from pgrecall.embedding e where e.bank_id = %(bank)s"
        " and not exists (select from pgrecall.memory m"
        " where m.bank_id = e.bank_id and m.memory_id = e.memory_id)),"
        " (select count(*) from pgrecall.mention n where n.bank_id = %(bank)s"
        " and not exists (select from pgrecall.memory m"
        " where m.bank_id = n.bank_id and m.memory_id = n.memory_id))",
        {"bank": bank},
        tuple_row,
        lambda rows: rows[0],
    )


def sessions(seconds: float) -> Call[Any, tuple[int, int, list[int], list[int]]]:
    """Return the number of connections and its limit for ordinary roles.

    Also return the processes of this database that have been idle in a transaction, or waiting for
    a lock, for at least so many seconds; none if the caller may not see them.
    """
    return Call(
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
        {"seconds": seconds},
        tuple_row,
        lambda rows: rows[0],
    )


def _value(sql: str) -> Call[Any, Any]:
    return Call(sql, {}, scalar_row, lambda rows: rows[0])
