-- One row for each thing that pgrecall consists of: (kind, name, definition). However it was
-- installed, and however old the release that it was upgraded from, the rows are the same.
-- Owners are left out. pgrecall_upgrade is what an upgrade must not leave behind.
with own as (
  select n.oid, n.nspname, n.nspacl
  from   pg_namespace n
  where  n.nspname in ('pgrecall', 'pgrecall_internal', 'pgrecall_upgrade')
),
relation as (
  select c.*, c.oid::regclass::text as name
  from   pg_class c
  join   own on own.oid = c.relnamespace
)
select 'schema' as kind,
       own.nspname::text as name,
       jsonb_build_object(
         'acl', array(select i::text from unnest(own.nspacl) i order by 1),
         'comment', obj_description(own.oid, 'pg_namespace')
       )::text as definition
from   own

union all

select 'relation',
       r.name,
       jsonb_build_object(
         'kind', r.relkind,
         'persistence', r.relpersistence,
         'access method', (select m.amname from pg_am m where m.oid = r.relam),
         'options', r.reloptions,
         'row security', array[r.relrowsecurity, r.relforcerowsecurity],
         'replica identity', r.relreplident,
         'partition key', pg_get_partkeydef(r.oid),
         'partition of', (
           select i.inhparent::regclass::text || ' ' || pg_get_expr(r.relpartbound, r.oid)
           from   pg_inherits i
           where  i.inhrelid = r.oid
         ),
         'view', case when r.relkind in ('v', 'm') then pg_get_viewdef(r.oid) end,
         'index', case when r.relkind in ('i', 'I') then pg_get_indexdef(r.oid) end,
         'index state', (
           select array[x.indisvalid, x.indisready, x.indisclustered, x.indisreplident]
           from   pg_index x
           where  x.indexrelid = r.oid
         ),
         'sequence', (
           select to_jsonb(s) - 'seqrelid' - 'seqtypid' || jsonb_build_object(
                    'type', s.seqtypid::regtype::text
                  )
           from   pg_sequence s
           where  s.seqrelid = r.oid
         ),
         'acl', array(select i::text from unnest(r.relacl) i order by 1),
         'comment', obj_description(r.oid, 'pg_class')
       )::text
from   relation r

union all

select 'column',
       r.name || '.' || a.attname,
       jsonb_build_object(
         'position', row_number() over (partition by r.oid order by a.attnum),
         'type', format_type(a.atttypid, a.atttypmod),
         'not null', a.attnotnull,
         'default', pg_get_expr(d.adbin, d.adrelid),
         'identity', a.attidentity,
         'generated', a.attgenerated,
         'storage', a.attstorage,
         'compression', a.attcompression,
         'collation', a.attcollation::regcollation::text,
         'statistics', coalesce(a.attstattarget, -1),
         -- PostgreSQL 17.12 keeps a number of its own there.
         'options', array(select o from unnest(a.attoptions) as o where o not like 'pg\_attver=%'),
         'acl', array(select i::text from unnest(a.attacl) i order by 1),
         'comment', col_description(r.oid, a.attnum)
       )::text
from   relation r
join   pg_attribute a on a.attrelid = r.oid
left   join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where  a.attnum > 0
and    not a.attisdropped

union all

select 'constraint',
       coalesce(r.name, o.contypid::regtype::text) || '.' || o.conname,
       jsonb_build_object(
         'type', o.contype,
         'definition', pg_get_constraintdef(o.oid),
         'validated', o.convalidated,
         'inherited', array[o.conislocal::text, o.coninhcount::text],
         'no inherit', o.contype = 'c' and o.connoinherit,
         'comment', obj_description(o.oid, 'pg_constraint')
       )::text
from   pg_constraint o
join   own on own.oid = o.connamespace
left   join relation r on r.oid = o.conrelid

union all

select 'function',
       p.oid::regprocedure::text,
       jsonb_build_object(
         'definition', case when p.prokind = 'a' then (
                         select (to_jsonb(g) - 'aggfnoid')::text from pg_aggregate g
                         where g.aggfnoid = p.oid
                       ) else pg_get_functiondef(p.oid) end,
         'acl', array(select i::text from unnest(p.proacl) i order by 1),
         'comment', obj_description(p.oid, 'pg_proc')
       )::text
from   pg_proc p
join   own on own.oid = p.pronamespace

union all

select 'type',
       t.oid::regtype::text,
       jsonb_build_object(
         'kind', t.typtype,
         'base', format_type(t.typbasetype, t.typtypmod),
         'range of', (
           select array[r.rngsubtype::regtype::text, r.rngsubdiff::regproc::text,
                        r.rngcanonical::regproc::text, r.rngmultitypid::regtype::text]
           from   pg_range r
           where  r.rngtypid = t.oid
         ),
         'labels', (
           select array_agg(e.enumlabel order by e.enumsortorder)
           from   pg_enum e
           where  e.enumtypid = t.oid
         ),
         'acl', array(select i::text from unnest(t.typacl) i order by 1),
         'comment', obj_description(t.oid, 'pg_type')
       )::text
from   pg_type t
join   own on own.oid = t.typnamespace

union all

select 'cast',
       format('%s as %s', k.castsource::regtype, k.casttarget::regtype),
       jsonb_build_object(
         'function', k.castfunc::regproc::text, 'context', k.castcontext, 'method', k.castmethod
       )::text
from   pg_cast k
join   pg_type f on f.oid = k.castsource
join   pg_type t on t.oid = k.casttarget
where  exists (select from own where own.oid in (f.typnamespace, t.typnamespace))

union all

select 'operator',
       p.oid::regoperator::text,
       jsonb_build_object(
         'function', p.oprcode::text, 'merge hash', array[p.oprcanmerge, p.oprcanhash]
       )::text
from   pg_operator p
join   own on own.oid = p.oprnamespace

union all

select 'trigger', format('%s.%s', r.name, t.tgname), pg_get_triggerdef(t.oid)
from   pg_trigger t
join   relation r on r.oid = t.tgrelid
where  not t.tgisinternal

union all

select 'policy',
       format('%s.%s', r.name, p.polname),
       jsonb_build_object(
         'for', p.polcmd,
         'permissive', p.polpermissive,
         'roles', p.polroles::regrole[]::text,
         'using', pg_get_expr(p.polqual, p.polrelid),
         'check', pg_get_expr(p.polwithcheck, p.polrelid)
       )::text
from   pg_policy p
join   relation r on r.oid = p.polrelid

union all

select 'statistics', x.stxname, pg_get_statisticsobjdef(x.oid)
from   pg_statistic_ext x
join   own on own.oid = x.stxnamespace

order  by 1, 2, 3;
