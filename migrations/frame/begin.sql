-- How every upgrade script begins. The database must hold release {before}, and everything happens
-- in one transaction, one upgrade at a time. Objects that a former release installed as members of
-- the extension are released from it. The functions that the deltas remove, and all private
-- functions, are dropped; the script creates the private ones again. If objects of users depend on
-- a function that is dropped, an error names them, with the statements that create them again,
-- before anything is lost. Where pgrecall.recreate_dependents is on, views are dropped here and
-- created again by end.sql. Owners and grants of all functions are stored here; end.sql applies
-- them to the functions of the same names. The schema pgrecall_upgrade holds the helpers, and the
-- last statement drops it.
-- This comes first: where others may create functions in a schema of the caller's path, a function
-- whose arguments fit better would be called instead of that of PostgreSQL, with the caller's
-- rights.
do $upgrade$
begin
  perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  -- Names of schemas are compared as text.
  perform pg_catalog.set_config('quote_all_identifiers', 'off', true);
end;
$upgrade$;

do $upgrade$
declare
  owner text;
begin
  if current_setting('server_version_num')::integer < 160000 then
    raise exception using
      errcode = 'RC012',
      message = format('PostgreSQL 16 or newer is needed, not %s',
                       current_setting('server_version')),
      hint    = 'Upgrade the server first, with pg_upgrade or by dump and restore.';
  end if;

  perform pg_advisory_xact_lock(hashtextextended('pgrecall', 0));

{owner}
  if to_regprocedure('pgrecall.version()') is null then
    raise exception using
      errcode = 'RC012',
      message = 'pgrecall is not installed in this database',
      hint    = 'Install it with: pgrecall migrate, or: create extension pgrecall; '
                'select pgrecall_setup.install();';
  end if;
  if pgrecall.version() <> '{before}' then
    raise exception using
      errcode = 'RC012',
      message = format('expected pgrecall version "{before}", not "%s"', pgrecall.version()),
      hint    = 'Run pgrecall migrate: it picks the script for the installed version.';
  end if;

  perform set_config('search_path', format('pg_catalog, %I, pg_temp', n.nspname), true)
  from    pg_extension x
  join    pg_namespace n on n.oid = x.extnamespace
  where   x.extname = 'vector';
end;
$upgrade$;

do $upgrade$
declare
  broken text;
begin
  if current_setting('search_path') not like 'pg_catalog, %, pg_temp' then
    raise exception using
      errcode = 'RC012',
      message = 'this script was not run in one transaction',
      hint    = 'Run it with: psql -1 -v ON_ERROR_STOP=1 -f';
  end if;

  -- The deltas take an existing index for one that was created beforehand.
  select i.indexrelid::regclass::text
  into   broken
  from   pg_index i
  join   pg_class c on c.oid = i.indrelid
  join   pg_namespace n on n.oid = c.relnamespace
  where  not i.indisvalid
  and    n.nspname in ('pgrecall', 'pgrecall_internal')
  and    c.relkind in ('r', 'p')
  limit  1;

  if found then
    raise exception using
      errcode = 'RC012',
      message = format('index "%s" is invalid: its build failed, or goes on', broken),
      hint    = format('Wait for the build to end, or drop the index: drop index %s;', broken);
  end if;

  -- Loads the library of pgvector. Without it, only a superuser may create a function that sets
  -- hnsw.*.
  execute 'select ''[1]''::halfvec';

  create schema pgrecall_upgrade;
end;
$upgrade$;

-- Bodies were checked when the release was tested. Without checks they are stored in half the time,
-- during which tables are locked.
set local check_function_bodies = off;

-- Members of the extension outside pgrecall_setup become ordinary objects: a member table is dumped
-- without its definition, indexes and policies.
do $upgrade$
declare
  extension constant oid := (select x.oid from pg_extension x where x.extname = 'pgrecall');
  member record;
begin
  loop
    -- One at a time: the row type and the array type of a table may go with it.
    select o.type, o.identity
    into   member
    from   pg_depend d
    cross  join lateral pg_identify_object(d.classid, d.objid, d.objsubid) o
    where  d.refclassid = 'pg_extension'::regclass
    and    d.refobjid = extension
    and    d.deptype = 'e'
    and    o.schema is distinct from 'pgrecall_setup'
    and    (o.type, o.identity) is distinct from ('schema', 'pgrecall_setup')
    order  by o.identity like '%[]', d.classid <> 'pg_class'::regclass
    limit  1;
    exit when not found;

    execute format(
      'alter extension pgrecall drop %s %s',
      case member.type when 'composite type' then 'type' else member.type end, member.identity
    );
  end loop;

  if extension is not null
     and not exists (
       select
       from   pg_depend d
       where  d.refclassid = 'pg_extension'::regclass
       and    d.refobjid = extension
       and    d.deptype = 'e'
     )
  then
    drop extension pgrecall;
  end if;
end;
$upgrade$;

-- Every function as it was, except those that PostgreSQL created with a type, such as the
-- constructor of a range. place distinguishes a row of the catalog that is rewritten from one that
-- is left alone.
create table pgrecall_upgrade.former as
select p.oid as function_id, p.proname as name, p.proowner as owner, p.proacl as acl,
       p.ctid as place, n.nspname = 'pgrecall_internal' or p.proname like '\_%' as is_private
from   pg_proc p
join   pg_namespace n on n.oid = p.pronamespace
where  n.nspname in ('pgrecall', 'pgrecall_internal')
and    not exists (
         select
         from   pg_depend d
         where  d.classid = 'pg_proc'::regclass
         and    d.objid = p.oid
         and    d.deptype = 'i'
       );

-- Every table, view and sequence as it was: end.sql gives those that come new the rights of these.
create table pgrecall_upgrade.former_relation as
select c.oid as relation_id
from   pg_class c
where  c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')
and    c.relkind in ('r', 'p', 'v', 'S');

-- What is concerned: functions that are removed, functions that stay because tables, types, casts or
-- views of pgrecall use them, and objects of users that depend on what is removed, directly or
-- indirectly. A view can be created again unless a column of it is dropped, or it has parts that
-- would have to be created, too. pgrecall migrate --dry-run runs the query alone.
create table pgrecall_upgrade.concerned as
with recursive
former (function_id, is_dropped) as (
  select p.oid, n.nspname = 'pgrecall_internal' or p.proname like '\_%'
                or p.proname = any ('{public_functions}')
  from   pg_proc p
  join   pg_namespace n on n.oid = p.pronamespace
  where  n.nspname in ('pgrecall', 'pgrecall_internal')
  and    not exists (
           select
           from   pg_depend d
           where  d.classid = 'pg_proc'::regclass
           and    d.objid = p.oid
           and    d.deptype = 'i'
         )
),
edge as not materialized (
  select d.*, r.ev_class,
         case d.classid
           when 'pg_proc'::regclass then false
           when 'pg_policy'::regclass then false
           when 'pg_cast'::regclass then true
           else coalesce(case d.classid
             when 'pg_rewrite'::regclass then (
               select c.relnamespace::regnamespace::text from pg_class c where c.oid = r.ev_class)
             when 'pg_attrdef'::regclass then (
               select c.relnamespace::regnamespace::text
               from   pg_attrdef a join pg_class c on c.oid = a.adrelid where a.oid = d.objid)
             when 'pg_constraint'::regclass then (
               select o.connamespace::regnamespace::text from pg_constraint o where o.oid = d.objid)
             else (select o.schema from pg_identify_object(d.classid, d.objid, 0) o)
           end in ('pgrecall', 'pgrecall_internal'), false)
         end as is_state
  from   pg_depend d
  left   join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
),
kept (function_id) as (
  select e.refobjid
  from   edge e
  join   former f on f.function_id = e.refobjid
  where  e.refclassid = 'pg_proc'::regclass
  and    e.is_state
  union
  select d.refobjid
  from   kept k
  join   pg_depend d
  on     d.classid = 'pg_proc'::regclass
  and    d.objid = k.function_id
  and    d.refclassid = 'pg_proc'::regclass
),
dropped (function_id) as (
  select f.function_id from former f where f.is_dropped
  except
  select k.function_id from kept k
),
dependent (class_id, object_id, column_number, is_theirs, is_of_column) as (
  select 'pg_proc'::regclass::oid, d.function_id, 0, false, false from dropped d
  union
  select 'pg_class'::regclass, a.attrelid, a.attnum::integer, false, true
  from   unnest('{columns}'::text[]) as c (name)
  join   pg_attribute a
  on     a.attrelid = to_regclass('pgrecall.' || split_part(c.name, '.', 1))
  and    a.attname = split_part(c.name, '.', 2)
  union
  select case when e.ev_class is not null then 'pg_class'::regclass else e.classid end,
         coalesce(e.ev_class, e.objid), 0, true, x.is_of_column
  from   dependent x
  join   edge e
  on     e.refclassid = x.class_id
  and    e.refobjid = x.object_id
  and    (x.column_number = 0 or e.refobjsubid = x.column_number)
  -- The row type of a view depends on the view internally; this finds what depends on the type.
  where  (e.deptype = 'n' or (e.classid = 'pg_type'::regclass and e.deptype = 'i'))
  and    not e.is_state
  and    not exists (
           select
           from   former f
           where  e.classid = 'pg_proc'::regclass
           and    f.function_id = e.objid
         )
)
select 'kept' as what, k.function_id as object_id, null as name, false as is_recreated
from   kept k
union  all
select 'dropped', d.function_id, null, false
from   dropped d
union  all
select 'dependent', d.object_id, format('%s %s', o.type, o.identity),
       d.class_id = 'pg_class'::regclass
       and not bool_or(d.is_of_column)
       and exists (select from pg_class c where c.oid = d.object_id and c.relkind in ('v', 'm'))
       and not exists (select from pg_trigger t where t.tgrelid = d.object_id)
       and not exists (select from pg_attrdef a where a.adrelid = d.object_id)
       and not exists (select from pg_rewrite r
                       where r.ev_class = d.object_id and r.rulename <> '_RETURN')
       and not exists (select from pg_depend e
                       where e.classid = 'pg_class'::regclass and e.objid = d.object_id
                       and   e.deptype = 'e')
from   dependent d
cross  join lateral pg_identify_object(d.class_id, d.object_id, 0) o
where  d.is_theirs
and    d.class_id <> 'pg_type'::regclass
group  by d.class_id, d.object_id, o.type, o.identity;

-- The statements that create views and materialized views again, in the order of dependence.
create table pgrecall_upgrade.recreation (
  n         integer generated always as identity,
  view_id   oid,
  statement text
);

insert into pgrecall_upgrade.recreation (view_id, statement)
with recursive view as (
  select c.oid as view_id, i.type, i.identity, c.relowner, c.relacl, c.reloptions,
         c.relispopulated
  from   pgrecall_upgrade.concerned n
  join   pg_class c on c.oid = n.object_id
  cross  join lateral pg_identify_object('pg_class'::regclass, c.oid, 0) i
  where  n.is_recreated
),
above (view_id, level) as (
  select v.view_id, 0 from view v
  union
  select r.ev_class, a.level + 1
  from   above a
  join   pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = a.view_id
  join   pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
  join   view v on v.view_id = r.ev_class
  where  r.ev_class <> a.view_id
),
made as (
  select v.view_id, 1 as place, null::text as object,
         format('create %s %s%s as %s%s', v.type, v.identity,
                ' with (' || array_to_string(v.reloptions, ', ') || ')',
                rtrim(pg_get_viewdef(v.view_id), ';'),
                case when not v.relispopulated then ' with no data' end) as statement
  from   view v
  union all
  select v.view_id, 2, null, format('alter %s %s owner to %s', v.type, v.identity,
                                    v.relowner::regrole)
  from   view v
  union all
  select v.view_id, 3, i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
  from   view v
  join   pg_index i on i.indrelid = v.view_id
  union all
  select v.view_id, 4, a.attname,
         format('comment on %s %s is %L', case when d.objsubid = 0 then v.type else 'column' end,
                v.identity || coalesce('.' || quote_ident(a.attname), ''), d.description)
  from   view v
  join   pg_description d on d.classoid = 'pg_class'::regclass and d.objoid = v.view_id
  left   join pg_attribute a
    on   a.attrelid = v.view_id and a.attnum = d.objsubid and d.objsubid > 0
  union all
  select v.view_id, 5, g.attname,
         format('grant %s%s on table %s to %s%s', x.privilege_type,
                ' (' || quote_ident(g.attname) || ')', v.identity,
                case x.grantee when 0 then 'public' else x.grantee::regrole::text end,
                case when x.is_grantable then ' with grant option' end)
  from   view v
  cross  join lateral (
    select null::name as attname, v.relacl as acl
    union all
    select a.attname, a.attacl from pg_attribute a
    where  a.attrelid = v.view_id and a.attacl is not null
  ) as g
  cross  join lateral aclexplode(g.acl) as x
  where  x.grantee <> v.relowner
)
select m.view_id, m.statement
from   made m
order  by (select max(a.level) from above a where a.view_id = m.view_id), m.view_id, m.place,
         m.object nulls first, m.statement;

do $upgrade$
declare
  dropped constant oid[] := array(
    select c.object_id from pgrecall_upgrade.concerned c where c.what = 'dropped'
  );
  kept constant oid[] := array(
    select c.object_id from pgrecall_upgrade.concerned c where c.what = 'kept'
  );
  theirs constant text[] := array(
    select c.name from pgrecall_upgrade.concerned c where c.what = 'dependent' order by 1
  );
  are_views constant boolean := not exists (
    select from pgrecall_upgrade.concerned c where c.what = 'dependent' and not c.is_recreated
  );
  part record;
begin
  if are_views and current_setting('pgrecall.recreate_dependents', true) = 'on' then
    for part in
      select r.view_id, c.relkind, max(r.n) as n
      from   pgrecall_upgrade.recreation r
      join   pg_class c on c.oid = r.view_id
      group  by 1, 2
      order  by n desc
    loop
      execute format(
        'drop %s %s', case part.relkind when 'm' then 'materialized view' else 'view' end,
        part.view_id::regclass
      );
    end loop;
  elsif theirs <> '{}' then
    raise exception using
      errcode = 'RC012',
      message = format('%s of your objects depend on what this release changes',
                       cardinality(theirs)),
      detail  = coalesce((select 'These make the views again:' || string_agg(
                            E'\n' || r.statement || ';', '' order by r.n)
                          from   pgrecall_upgrade.recreation r), ''),
      hint    = format('Drop them, upgrade, and create them again: %s.%s',
                       array_to_string(theirs, ', '),
                       case when are_views then ' Or let the upgrade do it: pgrecall migrate '
                         '--recreate-dependents, or: set pgrecall.recreate_dependents = on;' end);
  end if;

  -- A function that stays no longer uses what is dropped: the script gives it its new body.
  for part in
    select p.oid::regprocedure as function, p.pronamespace::regnamespace as schema, p.proname,
           pg_get_function_arguments(p.oid) as arguments, pg_get_function_result(p.oid) as result
    from   pg_proc p
    join   pgrecall_upgrade.former f on f.function_id = p.oid
    where  p.prosqlbody is not null
    and    p.oid <> all (dropped || kept)
    and    exists (
             select
             from   pg_depend d
             where  d.classid = 'pg_proc'::regclass
             and    d.objid = p.oid
             and    d.refclassid = 'pg_proc'::regclass
             and    d.refobjid = any (dropped)
           )
  loop
    execute format(
      'create or replace function %s.%I(%s) returns %s language plpgsql as %L',
      part.schema, part.proname, part.arguments, part.result, 'begin /* in an upgrade */ end'
    );
  end loop;

  -- One statement drops them in any order that they need.
  if dropped <> '{}' then
    execute 'drop function ' || array_to_string(dropped::regprocedure[], ', ');
  end if;
end;
$upgrade$;
