-- What callers rely on, one row each: (kind, name, definition as JSON, in which only `columns` may
-- grow, at its end).
with own as (
  select n.oid from pg_namespace n where n.nspname = 'pgrecall'
)
select 'function' as kind,
       p.oid::regprocedure::text as name,
       jsonb_build_object(
         'arguments', pg_get_function_arguments(p.oid),
         'result', pg_get_function_result(p.oid),
         'grants', array(
           select format('%s %s', x.grantee, x.privilege_type)
           from   aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) x
           where  x.grantee <> p.proowner
           order  by 1
         ),
         'columns', '[]'::jsonb
       ) as definition
from   pg_proc p
join   own on own.oid = p.pronamespace
where  p.proname not like '\_%'

union all

select case c.relkind when 'c' then 'type' when 'v' then 'view' else 'table' end,
       c.oid::regclass::text,
       jsonb_build_object(
         'grants', array(
           select format('%s %s', x.grantee, x.privilege_type)
           from   aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) x
           where  x.grantee <> c.relowner
           order  by 1
         ),
         'columns', coalesce(
           (
             select jsonb_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
                              order by a.attnum)
             from   pg_attribute a
             where  a.attrelid = c.oid
             and    a.attnum > 0
             and    not a.attisdropped
           ),
           '[]'
         )
       )
from   pg_class c
join   own on own.oid = c.relnamespace
where  c.relkind in ('c', 'r', 'p', 'v')
and    not c.relispartition

order  by 1, 2;
