-- House rules for tables, in one query: (rule, object) for each that breaks one.
with tables as (
  select c.*, c.oid::regclass::text as name
  from   pg_class c
  where  c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')
  and    c.relkind in ('r', 'p')
),
constraints as (
  select o.*,
         t.relname,
         t.name || '.' || o.conname as name,
         array(
           select a.attname::text
           from   unnest(o.conkey) with ordinality k (attnum, position)
           join   pg_attribute a on a.attrelid = o.conrelid and a.attnum = k.attnum
           order  by k.position
         ) as columns,
         array(
           select a.attname::text
           from   unnest(o.confkey) with ordinality k (attnum, position)
           join   pg_attribute a on a.attrelid = o.confrelid and a.attnum = k.attnum
           order  by k.position
         ) as referenced
  from   pg_constraint o
  join   tables t on t.oid = o.conrelid
)
select 'has a comment' as rule, c.oid::regclass::text as name
from   pg_class c
where  c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')
and    c.relkind in ('r', 'p', 'v', 'm', 'S')
and    obj_description(c.oid, 'pg_class') is null

union all
select 'has a primary key that begins with bank_id', t.name
from   tables t
where  not exists (
         select from constraints o
         where  o.conrelid = t.oid and o.contype = 'p' and o.columns[1] = 'bank_id'
       )

union all
-- Where a publication has the table, PostgreSQL 18 refuses to change its rows.
select 'has no generated column in its primary key', t.name || '.' || a.attname
from   tables t
join   constraints o on o.conrelid = t.oid and o.contype = 'p'
join   pg_attribute a on a.attrelid = t.oid and a.attnum = any (o.conkey)
where  a.attgenerated <> ''

union all
select 'is unique within a bank only', i.indexrelid::regclass::text
from   pg_index i
join   tables t on t.oid = i.indrelid
where  i.indisunique
and    not exists (
         select from pg_attribute a
         where  a.attrelid = t.oid and a.attnum = any (i.indkey) and a.attname = 'bank_id'
       )

union all
select 'lets only the primary key list a whole bank', i.indexrelid::regclass::text
from   pg_index i
join   tables t on t.oid = i.indrelid
join   pg_attribute a on a.attrelid = t.oid and a.attnum = i.indkey[0]
where  a.attname = 'bank_id' and not i.indisprimary and i.indpred is null

union all
select 'references rows of the same bank', o.name
from   constraints o
where  o.contype = 'f'
and    (o.columns[1] is distinct from 'bank_id' or o.referenced[1] is distinct from 'bank_id')

union all
select 'neither sets null nor follows an update', o.name
from   constraints o
where  o.contype = 'f'
and    (o.confdeltype in ('n', 'd') or o.confupdtype <> 'a')

union all
select 'has no trigger', t.name || '.' || g.tgname
from   pg_trigger g
join   tables t on t.oid = g.tgrelid
where  not g.tgisinternal

union all
select 'has no rule', t.name || '.' || r.rulename
from   pg_rewrite r
join   tables t on t.oid = r.ev_class

union all
select 'is named as PostgreSQL would', o.name
from   constraints o
where  o.contype in ('p', 'f', 'c', 'u')
and    not exists (select from tables t where t.oid = o.conrelid and t.relispartition)
and    not starts_with(o.conname::text, o.relname || '_')

union all
select 'is named as PostgreSQL would', o.name
from   constraints o
where  (o.contype = 'p' and o.conname <> o.relname || '_pkey')
or     (o.contype = 'f' and o.conname !~ '_fkey$')
or     (o.contype = 'c' and o.conname !~ '_check$')
or     (o.contype = 'u' and o.conname !~ '_key$')

union all
select 'is named as PostgreSQL would', i.indexrelid::regclass::text
from   pg_index i
join   tables t on t.oid = i.indrelid
join   pg_class x on x.oid = i.indexrelid
where  not t.relispartition
and    (not starts_with(x.relname::text, t.relname || '_') or x.relname !~ '_(idx|key|pkey)$')

union all
select 'has a time zone in every time, and _at in its name', t.name || '.' || a.attname
from   tables t
join   pg_attribute a on a.attrelid = t.oid
where  a.attnum > 0
and    (
         a.atttypid = 'timestamp'::regtype
         or (a.atttypid = 'timestamptz'::regtype and a.attname !~ '_(at|from|to)$')
       )

union all
select 'begins with is_', t.name || '.' || a.attname
from   tables t
join   pg_attribute a on a.attrelid = t.oid
where  a.attnum > 0
and    a.atttypid = 'boolean'::regtype
and    a.attname !~ '^is_'

union all
-- Ids, names, and what says everything by itself need no comment.
select 'has a comment', t.name || '.' || a.attname
from   tables t
join   pg_attribute a on a.attrelid = t.oid
where  a.attnum > 0
and    not a.attisdropped
and    not t.relispartition
and    col_description(t.oid, a.attnum) is null
and    a.attname !~ '_id$'
and    a.attname <> t.relname
and    a.attname <> all (
         '{name,text,context,fact_type,tags,metadata,description,role,speaker,
           created_at,refreshed_at,started_at,ended_at,sent_at}'
       )

union all
-- BI tools show them beside the columns.
select 'has a comment', c.relname || '.' || a.attname
from   pg_class c
join   pg_attribute a on a.attrelid = c.oid
where  c.relnamespace = 'pgrecall'::regnamespace
and    c.relkind = 'v'
and    a.attnum > 0
and    col_description(c.oid, a.attnum) is null
and    a.attname <> all ('{bank_id,memory_id,fact_type,text,tags,created_at}')

order  by 1, 2;
