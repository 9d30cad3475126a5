-- Row security and roles, for databases in which several tenants have banks.
--
-- enable_row_security() fences every table that has a bank_id, and the partitions of embedding,
-- with one policy named pgrecall_bank. row_security_status() says what is fenced, and who may read
-- what is not. create_roles() creates roles for tenants. Nothing here runs unasked: an install
-- grants nothing and fences nothing. All of it can be run again, and should be after an upgrade,
-- which may add tables. For a role under row security PostgreSQL uses no index whose operators are
-- not leakproof, so that several arms would read the whole bank. Therefore a recall of such a role
-- is passed on to _searched_recall(), which create_roles() makes security definer, owned by a role
-- that may only read and sees every bank. It answers a caller that passes the fence_key of the
-- bank, which row security hides from all others. A role that must see every bank has bypassrls, or
-- is the admin role of create_roles(), which policy pgrecall_admin lets through.

create or replace function pgrecall_internal._fenced_tables()
returns setof oid
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return query
  select c.oid
  from   pg_class c
  join   pg_attribute a on a.attrelid = c.oid and a.attname = 'bank_id'
  where  c.relnamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
    and  c.relkind in ('r', 'p')
  -- A fixed order, so that two calls at once do not deadlock.
  order  by c.oid;
end;
$$;
comment on function pgrecall_internal._fenced_tables is
'The tables that have a column bank_id, the partitions of embedding too.';

create or replace function pgrecall_internal._lock_rights()
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('pgrecall', 0));
end;
$$;
comment on function pgrecall_internal._lock_rights is
'Waits for who changes rights at the same time, installs or upgrades, until the transaction ends.';

create or replace function pgrecall_internal._member_banks()
returns text[]
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return array(
    select r.rolname::text from pg_roles r
    where  pg_has_role(current_user, r.oid, 'usage') and not r.rolsuper
  );
end;
$$;
comment on function pgrecall_internal._member_banks is
'The roles whose rights the current role has, itself included: the banks that a role sees under '
'enable_row_security(''membership'').';

create or replace function pgrecall.enable_row_security(
  by text default 'role', setting text default 'pgrecall.bank')
returns integer
language plpgsql volatile parallel unsafe
set search_path from current
set client_min_messages = warning
as $$
declare
  condition text;
  relation  regclass;
  fenced    integer := 0;
begin
  perform pgrecall_internal._check_choice(
    'by', by, '{role,membership,setting}', 'With "role" a role sees the bank of its own name.');
  if setting is null or setting !~ '^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('"%s" cannot name a setting', setting),
      hint    = 'Use two words with a dot between them, such as app.bank.';
  end if;
  condition := case by
    -- In the collation of bank_id: else no index would be searched with it, and a role could tell
    -- from a plan how many rows of another bank a condition of its own finds.
    when 'role' then 'bank_id = current_user::text collate "default"'
    -- In a subquery it runs once a statement, and an index can be searched with its result.
    when 'membership' then
      'bank_id = any ((select pgrecall_internal._member_banks())::text[])'
    else format('bank_id = current_setting(%L, true)', setting)
  end;
  perform pgrecall_internal._lock_rights();
  -- Statements that define objects take no parameters; the names come from the catalog.
  for relation in select t from pgrecall_internal._fenced_tables() as t loop
    execute format('alter table %s enable row level security', relation);
    execute format('drop policy if exists pgrecall_bank on %s', relation);
    execute format('create policy pgrecall_bank on %s using (%s)', relation, condition);
    fenced := fenced + 1;
  end loop;
  update pgrecall.bank b set fence_key = gen_random_uuid();
  return fenced;
end;
$$;
comment on function pgrecall.enable_row_security is
'Restricts every role but the owner of the tables to its own banks, by row security on each table; '
'returns how many tables. by => ''role'': the bank that has the name of the role. ''membership'': '
'the banks that have the names of roles of which it is a member, itself included. ''setting'': the '
'bank that the setting names, as in: alter role app set pgrecall.bank = ''acme''; whoever can send '
'SQL can change that, so it fits only where no SQL comes from users. Policies of yours stay. Only '
'the owner of the tables may call it; a call replaces what the one before it set up. Locks every '
'table for a moment. Errors: 22023, 42501 not the owner.';

create or replace function pgrecall.disable_row_security()
returns integer
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  relation regclass;
  opened   integer := 0;
begin
  perform pgrecall_internal._lock_rights();
  for relation in
    select t
    from   pgrecall_internal._fenced_tables() as t
    join   pg_policy p on p.polrelid = t and p.polname = 'pgrecall_bank'
    order  by t
  loop
    execute format('drop policy pgrecall_bank on %s', relation);
    if not exists (
      select from pg_policy p where p.polrelid = relation
        and p.polname not in ('pgrecall_admin', 'pgrecall_searcher')
    ) then
      execute format('alter table %s disable row level security', relation);
    end if;
    opened := opened + 1;
  end loop;
  return opened;
end;
$$;
comment on function pgrecall.disable_row_security is
'Undoes enable_row_security(); returns on how many tables. A table with a policy of yours stays '
'under row security. Errors: 42501 not the owner.';

create or replace function pgrecall.row_security_status()
returns setof pgrecall.table_security
language plpgsql stable parallel safe rows 50
set search_path from current
as $$
begin
  return query
  select x.relation,
         case
           when x.is_enabled and x.policies <> '{}' then 'fenced'
           when x.is_enabled then 'closed'
           when x.open_to <> '{}' then 'open'
           else 'private'
         end,
         x.policies,
         x.open_to
  from (
    select format('%s.%I', c.relnamespace::regnamespace, c.relname) as relation,
           c.relrowsecurity as is_enabled,
           array(
             select p.polname::text from pg_policy p where p.polrelid = c.oid order by 1
           ) as policies,
           -- Without roles that row security does not restrict.
           array(
             select distinct coalesce(r.rolname::text, 'public')
             from (
               select a.grantee
               from   aclexplode(c.relacl) as a
               where  a.privilege_type in ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
               union
               select a.grantee
               from   pg_attribute k
               cross  join lateral aclexplode(k.attacl) as a
               where  k.attrelid = c.oid
             ) as g
             left   join pg_roles r on r.oid = g.grantee
             where  not c.relrowsecurity and g.grantee <> c.relowner
               and  not coalesce(r.rolsuper or r.rolbypassrls, false)
             order  by 1
           ) as open_to
    from   pgrecall_internal._fenced_tables() as t
    join   pg_class c on c.oid = t
  ) as x
  order  by x.relation;
end;
$$;
comment on function pgrecall.row_security_status is
'The tables with rows of banks, and whether row security keeps roles to theirs. status is fenced: '
'with policies; closed: without any, so that only the owner sees rows; open: roles in open_to have '
'rights on all its rows; private: only the owner has rights. open_to leaves out superusers and '
'roles with bypassrls. What the policies say is not checked.';

create or replace function pgrecall.create_roles(prefix text default 'pgrecall')
returns text[]
language plpgsql volatile parallel unsafe
set search_path from current
set client_min_messages = warning
as $$
declare
  reader   name := prefix || '_reader';
  writer   name := prefix || '_writer';
  admin    name := prefix || '_admin';
  searcher name := prefix || '_searcher';
  searched regprocedure;
  admins   text;
  new_role name;
  relation regclass;
  called   regprocedure;
begin
  if prefix is null or prefix !~ '^[a-z][a-z0-9_]{0,39}$' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('"%s" cannot begin the names of roles', prefix),
      hint    = 'Use a word of 1 to 40 small letters, digits and underscores.';
  end if;
  searched := to_regproc('pgrecall_internal._searched_recall')::oid::regprocedure;
  if searched is null then
    raise exception using
      errcode = 'undefined_function',
      message = 'function pgrecall_internal._searched_recall() is missing',
      hint    = 'It was dropped with its owner, a searcher. Create it again with: pgrecall migrate';
  end if;
  perform pgrecall_internal._lock_rights();
  -- Statements about roles take no parameters.
  foreach new_role in array array[reader, writer, admin, searcher] loop
    if to_regrole(quote_ident(new_role)) is null then
      execute format('create role %I nologin', new_role);
    elsif not pg_has_role(new_role, 'member with admin option') then
      raise exception using
        errcode = 'insufficient_privilege',
        message = format('role "%s" exists already, and role "%s" may not grant it', new_role,
                         current_user),
        hint    = 'Roles belong to the whole server, so another database may use it. Choose '
                  'another prefix: select pgrecall.create_roles(''other'');';
    end if;
  end loop;
  execute format('grant usage on schema pgrecall, pgrecall_internal to %I', reader);
  execute format('grant select on all tables in schema pgrecall, pgrecall_internal to %I', reader);
  -- A reader may log how long its recalls took.
  execute format('grant insert on pgrecall.recall_log to %I', reader);
  execute format('grant %I to %I', reader, writer);
  execute format('grant insert, update, delete on all tables in schema pgrecall, '
                 'pgrecall_internal to %I', writer);
  execute format('grant usage on sequence pgrecall.id_seq to %I', writer);
  execute format('grant %I to %I', writer, admin);
  -- Only the admin creates and drops banks.
  execute format('revoke insert, delete on pgrecall.bank from %I', writer);
  execute format('grant insert, delete on pgrecall.bank to %I', admin);
  -- The admins of other prefixes go on seeing every bank.
  select string_agg(quote_ident(r.rolname), ', ')
  into   admins
  from   pg_roles r
  where  r.rolname = admin or r.oid = any (
           select unnest(p.polroles) from pg_policy p
           where  p.polrelid = 'pgrecall.bank'::regclass and p.polname = 'pgrecall_admin');
  for relation in select t from pgrecall_internal._fenced_tables() as t loop
    execute format('drop policy if exists pgrecall_admin on %s', relation);
    execute format('create policy pgrecall_admin on %s to %s using (true)', relation, admins);
    execute format('drop policy if exists pgrecall_searcher on %s', relation);
    execute format('create policy pgrecall_searcher on %s for select to %I using (true)',
                   relation, searcher);
  end loop;
  -- Default privileges may keep functions from everybody, those of pgvector too.
  for called in
    select p.oid
    from   pg_proc p
    where  (p.pronamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
            or exists (
              select
              from   pg_depend d
              join   pg_extension x on x.oid = d.refobjid and x.extname = 'vector'
              where  d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
                and  d.refclassid = 'pg_extension'::regclass))
      and  pg_has_role(p.proowner, 'usage')
      and  not has_function_privilege(reader, p.oid, 'execute')
      -- What they do not keep back an administrator has.
      and  exists (
             select from pg_default_acl d
             where  d.defaclrole = p.proowner and d.defaclnamespace = 0 and d.defaclobjtype = 'f'
               and  not exists (select from aclexplode(d.defaclacl) a where a.grantee = 0))
  loop
    execute format('grant execute on function %s to %I', called, reader);
  end loop;
  execute format('grant %I to %I', reader, searcher);
  if not (select r.rolsuper from pg_roles r where r.rolname = current_user) then
    -- A role that is not a superuser can give a function only to a role of which it is a member and
    -- that could have created it. An upgrade takes it back.
    execute format('grant %I to current_user with inherit true, set true', searcher);
    execute format('grant create on schema pgrecall_internal to %I', searcher);
  end if;
  execute format('revoke execute on function %s from public', searched);
  execute format('grant execute on function %s to %I', searched, reader);
  execute format('alter function %s security definer', searched);
  execute format('alter function %s owner to %I', searched, searcher);
  return array[reader, writer, admin]::text[];
end;
$$;
comment on function pgrecall.create_roles is
'Creates the roles <prefix>_reader, _writer and _admin, which cannot log in, where they are '
'missing, gives each its rights, and returns their names: grant them to those who log in. The '
'reader may call what reads, the writer also what writes within a bank, the admin also create and '
'drop banks; after enable_row_security() it still sees every bank, and the others only theirs. A '
'further role, <prefix>_searcher, is granted to no one: with its rights, which only read, fenced '
'roles recall as fast as others. Run it again after an upgrade, which may add tables. Roles belong '
'to the whole server: a second database with tenants of its own takes another prefix. Roles of '
'another prefix in the same database stay as they are. Building indexes stays with the owner of '
'the tables. Errors: 22023, 42501 the caller may not create roles or does not own the tables, '
'42883 drop owned by removed a function.';
