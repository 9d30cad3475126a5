-- How every upgrade script ends: private functions that the new release no longer has are dropped,
-- each function gets the owner and grants of the former function of its name, new tables, views and
-- sequences get the grants and the row security of their like, the views that begin.sql dropped are
-- created again, and the helpers are dropped.
do $upgrade$
declare
  part record;
  change record;
begin
  loop
    -- One at a time: functions that depended on it may be dropped next.
    select p.oid::regprocedure as function
    into   part
    from   pg_proc p
    join   pgrecall_upgrade.former f on f.function_id = p.oid
    where  f.is_private
    and    p.ctid = f.place
    and    not exists (
             select
             from   pg_depend d
             where  d.refclassid = 'pg_proc'::regclass
             and    d.refobjid = p.oid
           )
    limit  1;
    exit when not found;

    execute format('drop function %s', part.function);
  end loop;

  if exists (
    select
    from   pg_proc p
    join   pgrecall_upgrade.former f on f.function_id = p.oid
    where  p.prosrc = 'begin /* in an upgrade */ end'
  ) then
    raise exception 'the upgrade left a function without its body: this is a bug of pgrecall';
  end if;

  for part in
    select distinct on (p.oid)
           p.oid::regprocedure as function,
           f.owner::regrole as owner,
           p.proowner <> f.owner as is_other_owner,
           coalesce(f.acl, acldefault('f', f.owner)) as acl,
           p.oid as function_id
    from   pg_proc p
    join   pgrecall_upgrade.former f
    on     f.name = p.proname
    and    f.is_private = (p.pronamespace = 'pgrecall_internal'::regnamespace)
    where  p.pronamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
    and    (f.acl is not null or p.proacl is not null or p.proowner <> f.owner)
    order  by p.oid, f.function_id
  loop
    if part.is_other_owner then
      execute format('alter function %s owner to %s', part.function, part.owner);
    end if;
    for change in
      with now as (
        select x.grantee, x.is_grantable
        from   pg_proc p
        cross  join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) x
        where  p.oid = part.function_id
      ),
      former as (
        select x.grantee, bool_or(x.is_grantable) as is_grantable
        from   aclexplode(part.acl) x
        group  by x.grantee
      )
      select case coalesce(now.grantee, former.grantee)
               when 0 then 'public'
               else coalesce(now.grantee, former.grantee)::regrole::text
             end as grantee,
             former.grantee is not null as is_granted,
             coalesce(former.is_grantable, false) as is_grantable
      from   now
      full   join former on former.grantee = now.grantee
      where  (now.grantee, now.is_grantable) is distinct from (former.grantee, former.is_grantable)
    loop
      if change.is_granted then
        execute format(
          'grant execute on function %s to %s%s', part.function, change.grantee,
          case when change.is_grantable then ' with grant option' else '' end
        );
      else
        execute format('revoke execute on function %s from %s', part.function, change.grantee);
      end if;
    end loop;
  end loop;
end;
$upgrade$;

-- Who could use all tables can use the new ones: a recall or a retain needs them. Policies that ask
-- for more than the bank cannot hold for another table, and are left out.
do $upgrade$
declare
  part record;
  statement text;
begin
  for part in
    select c.oid::regclass as relation, c.relkind as kind, m.oid as model_id, m.relacl as acl,
           m.relrowsecurity as is_fenced
    from   pg_class c
    join   pg_class m
    on     m.oid = case c.relkind when 'S' then 'pgrecall.id_seq'::regclass
                                  when 'v' then 'pgrecall.bank_overview'::regclass
                                  else 'pgrecall.memory'::regclass end
    where  c.relnamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
    and    c.relkind in ('r', 'p', 'v', 'S')
    and    not exists (
             select from pgrecall_upgrade.former_relation f where f.relation_id = c.oid
           )
  loop
    for statement in
      select format(
               'grant %s on %s %s to %s%s', string_agg(x.privilege_type, ', '),
               case part.kind when 'S' then 'sequence' else 'table' end, part.relation,
               case x.grantee when 0 then 'public' else x.grantee::regrole::text end,
               case when x.is_grantable then ' with grant option' else '' end)
      from   aclexplode(part.acl) x
      join   pg_class m on m.oid = part.model_id
      where  x.grantee <> m.relowner
      group  by x.grantee, x.is_grantable
      union  all
      select format('alter table %s enable row level security', part.relation)
      where  part.is_fenced
      union  all
      select format(
               'create policy %I on %s as %s for %s to %s%s%s', p.polname, part.relation,
               case when p.polpermissive then 'permissive' else 'restrictive' end,
               case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update'
                             when 'd' then 'delete' else 'all' end,
               (select string_agg(case r when 0 then 'public' else r::regrole::text end, ', ')
                from   unnest(p.polroles) as r),
               ' using (' || o.using_sql || ')', ' with check (' || o.check_sql || ')')
      from   pg_policy p
      cross  join lateral (
               select pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)
             ) as o (using_sql, check_sql)
      where  part.is_fenced
      and    p.polrelid = part.model_id
      and    concat_ws(' ', o.using_sql, o.check_sql) !~ '\mmemory\.'
      and    not exists (
               select
               from   pg_depend d
               join   pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
               where  d.classid = 'pg_policy'::regclass
               and    d.objid = p.oid
               and    d.refobjid = part.model_id
               and    d.refobjsubid > 0
               and    a.attname <> 'bank_id'
             )
    loop
      execute statement;
    end loop;
  end loop;
end;
$upgrade$;

do $upgrade$
declare
  made text;
begin
  for made in
    select r.statement from pgrecall_upgrade.recreation r order by r.n
  loop
    execute made;
  end loop;
end;
$upgrade$;

drop table pgrecall_upgrade.recreation;
drop table pgrecall_upgrade.concerned;
drop table pgrecall_upgrade.former_relation;
drop table pgrecall_upgrade.former;
drop schema pgrecall_upgrade;
set local check_function_bodies to default;
