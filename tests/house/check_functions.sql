-- House rules for functions, in one query: (rule, function) for each that breaks one.
with own as (
  select p.*,
         p.oid::regprocedure::text as name,
         l.lanname as language,
         exists (
           select from unnest(p.proconfig) setting where setting like 'search_path=%'
         ) as has_path,
         exists (
           select
           from   pg_class c
           where  c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')
           and    c.relkind in ('r', 'p', 'v')
           and    pg_get_functiondef(p.oid)
                    ~ ('\m(from|join|into|update|using)\s+(only\s+)?'
                       || c.relnamespace::regnamespace || '\.' || c.relname || '\M')
         ) as reads_tables,
         -- Past comments and strings, which may name functions.
         regexp_replace(pg_get_functiondef(p.oid), '--[^\n]*|''[^'']*''', '', 'g') as code
  from   pg_proc p
  join   pg_language l on l.oid = p.prolang
  where  p.pronamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')
  and    p.prokind in ('f', 'p', 'w')
  -- Constructors that a range type brings along are not ours.
  and    not exists (
           select
           from   pg_depend d
           where  d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'i'
         )
)
select 'has a comment' as rule, name
from   own
where  obj_description(oid, 'pg_proc') is null

union all
select 'is written in plpgsql or sql', name
from   own
where  language not in ('plpgsql', 'sql')

union all
select 'is no security definer', name
from   own
where  prosecdef

union all
select 'reads tables, so it is plpgsql: Citus cannot plan the others', name
from   own
where  reads_tables
and    language <> 'plpgsql'

union all
select 'reads tables, so it fixes its search_path', name
from   own
where  reads_tables
and    not has_path

union all
select 'reads tables, so it is not immutable', name
from   own
where  reads_tables
and    provolatile = 'i'

union all
select 'fixes pg_catalog first on its search_path, and pg_temp last', name
from   own
where  has_path
and    not exists (
         select
         from   unnest(proconfig) setting
         where  setting ~ '^search_path=pg_catalog, .*pg_temp$'
       )

union all
select 'is parallel safe, so it has no exception block: PostgreSQL 16 starts none there', name
from   own
where  proparallel = 's'
and    code ~* '\mexception\s+when\M'

union all
select 'is parallel safe, so what it calls is', caller.name
from   own as caller
where  caller.proparallel = 's'
and    exists (
         select
         from   own as called
         where  called.proparallel <> 's'
         and    caller.code ~ ('\m' || called.pronamespace::regnamespace || '\.'
                               || called.proname || '\s*\(')
       )

union all
select 'computes without tables, so it is inlined: no set, no strict', name
from   own
where  language = 'sql'
and    (proconfig is not null or proisstrict)

union all
select 'has defaults instead of overloads', proname::text
from   own
group  by pronamespace, proname
having count(*) > 1

union all
select 'names every argument', name
from   own
where  pronargs > 0
and    (proargnames is null or '' = any (proargnames[1:pronargs]))

union all
select 'names no argument p_, v_ or _', name
from   own
where  exists (select from unnest(proargnames) argument where argument ~ '^(p_|v_|_)')

union all
select 'takes the bank first', name
from   own
where  'bank' = any (proargnames)
and    proargnames[1] <> 'bank'
and    proname not like '\_%'

order  by 1, 2;
