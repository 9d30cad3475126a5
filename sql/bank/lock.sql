-- The lookups and locks that nearly every function begins with.
--
-- _bank() returns the row of a bank or raises RC001. Writers lock the bank until the end of their
-- transaction; readers never wait. A writer that only adds calls _shared_bank() and works beside
-- others that add; one that changes or removes calls _locked_bank() and is alone. These are
-- advisory locks, granted in the order of asking, so that nobody starves; their keys come from the
-- secret fence_key, so that no stranger computes them. Writers that share register the ids they may
-- use (_settled_id()). Which lock is taken when is in sql/reference.md.
create or replace function pgrecall_internal._roles_that_may(
  relation regclass, privilege text, is_any_bank boolean)
returns text[]
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return array(
    select r.rolname::text
    from   pg_class c
    cross  join lateral aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) as a
    join   pg_roles r on r.oid = a.grantee
    where  c.oid = relation and a.privilege_type = upper(privilege collate "C")
      and  (not is_any_bank or not c.relrowsecurity or r.oid = c.relowner or r.rolbypassrls
            or exists (select from pg_policy p
                       where  p.polrelid = c.oid and p.polname = 'pgrecall_admin'
                         and  r.oid = any (p.polroles)))
    order  by r.oid = c.relowner, r.rolname
  );
end;
$$;
comment on function pgrecall_internal._roles_that_may is
'The roles that were given a privilege on a table, its owner last. is_any_bank: only those that '
'row security keeps to no bank.';

create or replace function pgrecall_internal._raise_not_permitted(
  what text, relation regclass, privilege text, is_any_bank boolean default false)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  able text[] := pgrecall_internal._roles_that_may(relation, privilege, is_any_bank);
begin
  raise exception using
    errcode = 'insufficient_privilege',
    message = format('role "%s" may not %s', current_user, what),
    hint    = format('These roles and their members may: %s. For example: grant %I to %I;',
                     array_to_string(able, ', '), able[1], current_user);
end;
$$;
comment on function pgrecall_internal._raise_not_permitted is
'Raises 42501 naming the roles that may do it.';

create or replace function pgrecall_internal._bank(bank text)
returns pgrecall.bank
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  found_bank pgrecall.bank;
  nearest    text;
begin
  if current_setting('standard_conforming_strings') = 'off' then
    raise exception using
      errcode = 'object_not_in_prerequisite_state',
      message = 'standard_conforming_strings is off: functions and filters would be misread',
      hint    = 'Run: set standard_conforming_strings = on;';
  end if;
  if bank is null then
    raise exception using
      errcode = 'null_value_not_allowed',
      message = 'bank must not be null',
      hint    = 'Name the bank to look into; select * from pgrecall.bank_overview lists them.';
  end if;
  select b.* into found_bank from pgrecall.bank b where b.bank_id = _bank.bank;
  if not found then
    -- Among those that the role may see, and no more than can be compared at once.
    nearest := pgrecall_internal._nearest_name(
      bank, array(select b.bank_id from pgrecall.bank b limit 1000), 0.6);
    raise exception using
      errcode = 'RC001',
      message = format('bank "%s" does not exist', bank),
      hint    = coalesce('Did you mean "' || nearest || '"? ', '') || case
        when row_security_active('pgrecall.bank')
          then format(
            'Row security shows role "%s" only its own banks; %s may see and create any.',
            current_user, array_to_string(
              pgrecall_internal._roles_that_may('pgrecall.bank', 'insert', true), ', '))
        else format('Create it with: select pgrecall.create_bank(%L);', bank) end;
  end if;
  return found_bank;
end;
$$;
comment on function pgrecall_internal._bank is 'The row of a bank. Errors: RC001 unknown bank.';

create or replace function pgrecall_internal._lock_key(
  bank pgrecall.bank, purpose integer default 0)
returns bigint
language sql immutable parallel safe
return hashtextextended(bank.fence_key::text, purpose);
comment on function pgrecall_internal._lock_key is
'Key of an advisory lock of a bank. purpose 0: for writers, 1: for refreshing its statistics.';

create or replace function pgrecall_internal._sees_commits()
returns boolean
language sql stable parallel safe
return current_setting('transaction_isolation') in ('read committed', 'read uncommitted');
comment on function pgrecall_internal._sees_commits is
'Whether each statement of the transaction sees what others have committed.';

create or replace function pgrecall_internal._raise_replaced(bank text)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  -- The bank was dropped during the wait; a new one may have taken its name.
  perform pgrecall_internal._bank(bank);
  raise exception using
    errcode = 'serialization_failure',
    message = format('bank "%s" was replaced meanwhile, or may not be written', bank),
    hint    = 'Run the statement again.';
end;
$$;
comment on function pgrecall_internal._raise_replaced is
'Raises RC001 for a bank that is gone, 40001 for one that was replaced.';

create or replace function pgrecall_internal._check_snapshot(bank text)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  if not pgrecall_internal._sees_commits() then
    raise exception using
      errcode = 'serialization_failure',
      message = format('bank "%s" was written since the transaction began', bank),
      hint    = 'Run the transaction again.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_snapshot is
'Raises 40001 where a snapshot hides what a writer that shared the bank has stored since. Called '
'when a constraint fails, for constraints see more than the snapshot.';

create or replace function pgrecall_internal._check_writable()
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  if current_setting('transaction_read_only')::boolean then
    raise exception using
      errcode = 'read_only_sql_transaction',
      message = case when pg_is_in_recovery()
        then 'this server is a standby: nothing can be written here'
        else 'the transaction is read-only: nothing can be written in it' end,
      hint    = case when pg_is_in_recovery()
        then 'Connect to the primary: target_session_attrs=read-write finds it among the hosts of '
             'a DSN.'
        else 'Begin with: begin read write; where nothing was begun: set '
             'default_transaction_read_only = off;' end;
  end if;
  -- Foreign keys then erase nothing: what hangs on a forgotten memory, such as its embedding.
  if current_setting('session_replication_role') = 'replica' then
    raise exception using
      errcode = 'object_not_in_prerequisite_state',
      message = 'session_replication_role is replica: what hangs on a row would outlive it',
      hint    = 'Run: set session_replication_role = origin;';
  end if;
end;
$$;
comment on function pgrecall_internal._check_writable is
'Raises 25006 on a standby and in a read-only transaction, 55000 where no foreign key is followed.';

create or replace function pgrecall_internal._bank_to_write(
  bank text, relation regclass default 'pgrecall.bank', privilege text default 'update')
returns pgrecall.bank
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  found_bank pgrecall.bank := pgrecall_internal._bank(bank);
begin
  perform pgrecall_internal._check_writable();
  if not has_table_privilege(relation, privilege) then
    perform pgrecall_internal._raise_not_permitted(
      format('write into bank "%s"', bank), relation, privilege);
  end if;
  return found_bank;
end;
$$;
comment on function pgrecall_internal._bank_to_write is
'The row of a bank, for a role that has one privilege on a table. Errors: RC001 unknown bank, '
'25006 nothing can be written here, 42501 naming the roles that may write.';

create or replace function pgrecall_internal._locked_bank(bank text)
returns pgrecall.bank
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  found_bank pgrecall.bank := pgrecall_internal._bank_to_write(bank);
  key        uuid := found_bank.fence_key;
begin
  perform pg_advisory_xact_lock(pgrecall_internal._lock_key(found_bank));
  -- Not "for update": that would also block the foreign key checks of other writers.
  select b.* into found_bank from pgrecall.bank b where b.bank_id = _locked_bank.bank
  for no key update;
  if not found or found_bank.fence_key <> key then
    perform pgrecall_internal._raise_replaced(bank);
  end if;
  -- The row is also updated, once per transaction: a writer whose snapshot is older than this
  -- commit then fails (40001) instead of acting on old data.
  update pgrecall.bank b
  set    created_at = b.created_at
  where  b.bank_id = _locked_bank.bank and b.xmin <> pg_current_xact_id()::xid;
  return found_bank;
end;
$$;
comment on function pgrecall_internal._locked_bank is
'Locks a bank against all other writers until the transaction ends; returns its row. Errors: RC001 '
'unknown bank, 40001 replaced meanwhile, 42501 the role may only read.';

create or replace function pgrecall_internal._register_writer(bank pgrecall.bank)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  own      text := pg_current_xact_id()::text;
  first_id text := current_setting('pgrecall.first_id', true);
begin
  -- Once per transaction, so that many calls take one lock.
  if coalesce(first_id, '') not like own || ' %' then
    first_id := own || ' ' || coalesce(pg_sequence_last_value('pgrecall.id_seq'), 0);
    perform set_config('pgrecall.first_id', first_id, true);
  end if;
  perform pg_advisory_xact_lock_shared(
    hashtext(bank.fence_key::text), (split_part(first_id, ' ', 2)::bigint & 2147483647)::integer);
end;
$$;
comment on function pgrecall_internal._register_writer is
'Shows other sessions, by an advisory lock, above which id the transaction writes into a bank.';

create or replace function pgrecall_internal._settled_id(bank pgrecall.bank)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  -- Read before the locks: a writer that registers later writes above it.
  last_id bigint := coalesce(pg_sequence_last_value('pgrecall.id_seq'), 0);
begin
  return least(last_id, (
    -- A lock has room for 31 bits of the id.
    select min(last_id - ((last_id - l.objid::bigint) & 2147483647))
    from   pg_locks l
    where  l.locktype = 'advisory' and l.objsubid = 2 and l.granted
      and  l.database = (select d.oid from pg_database d where d.datname = current_database())
      and  l.classid::bigint = hashtext(bank.fence_key::text)::bigint & 4294967295
      and  l.pid is distinct from pg_backend_pid()
  ));
end;
$$;
comment on function pgrecall_internal._settled_id is
'The id up to which no running transaction adds documents to a bank: a later statement sees all of '
'them.';

create or replace function pgrecall_internal._shared_bank(bank text)
returns pgrecall.bank
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  found_bank pgrecall.bank :=
    pgrecall_internal._bank_to_write(bank, 'pgrecall.memory', 'insert');
  key        uuid := found_bank.fence_key;
begin
  perform pg_advisory_xact_lock_shared(pgrecall_internal._lock_key(found_bank));
  if pgrecall_internal._sees_commits() then
    select b.* into found_bank from pgrecall.bank b where b.bank_id = _shared_bank.bank;
  else
    -- Fails (40001) where a writer that had the bank for itself has committed since the snapshot.
    -- Writers that share meet where they must: at a name or key (name_lock), or an equal fact.
    select b.* into found_bank from pgrecall.bank b where b.bank_id = _shared_bank.bank
    for share;
  end if;
  if not found or found_bank.fence_key <> key then
    perform pgrecall_internal._raise_replaced(bank);
  end if;
  perform pgrecall_internal._register_writer(found_bank);
  return found_bank;
end;
$$;
comment on function pgrecall_internal._shared_bank is
'Locks a bank, shared with other writers that only add, until the transaction ends; returns its '
'row. Errors: RC001 unknown bank, 40001 replaced meanwhile, 42501 the role may only read.';

create or replace function pgrecall_internal._check_isolation(name text)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  if not pgrecall_internal._sees_commits() then
    raise exception using
      errcode = 'active_sql_transaction',
      message = format('%s() must see what others commit, so not at isolation level "%s"', name,
                       current_setting('transaction_isolation')),
      hint    = 'Begin with: begin isolation level read committed;';
  end if;
end;
$$;
comment on function pgrecall_internal._check_isolation is
'Raises 25001 unless the transaction is at isolation level read committed.';

create or replace function pgrecall_internal._fact_types(bank text, fact_types text[])
returns text[]
language plpgsql stable parallel safe
set search_path from current
-- Forces index lookups, whatever the statistics of the bank.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
  known   text[];
  unknown text;
begin
  if fact_types is null then
    -- Fact types without memories are left out: each adds a branch to plan.
    return array(
      select t.fact_type
      from   pgrecall.fact_type t
      cross  join lateral (
        -- One lookup each: index order keeps the planner from scanning the whole bank.
        (select true from pgrecall.memory m
         where  m.bank_id = _fact_types.bank and m.fact_type = t.fact_type
           and  m.occurred is not null
         order  by lower(m.occurred)
         limit  1)
        union all
        (select true from pgrecall.memory m
         where  m.bank_id = _fact_types.bank and m.fact_type = t.fact_type and m.occurred is null
         order  by m.mentioned_at
         limit  1)
        limit  1
      ) as held
      where  t.bank_id = _fact_types.bank
      order  by t.fact_type
    );
  end if;
  perform pgrecall_internal._check_elements('fact_types', fact_types, 'all types', 'RC008');
  select array_agg(t.fact_type order by t.fact_type)
  into   known
  from   pgrecall.fact_type t
  where  t.bank_id = _fact_types.bank;
  select u into unknown from unnest(fact_types) as u where u <> all (known) limit 1;
  if found then
    raise exception using
      errcode = 'RC008',
      message = format('bank "%s" has no fact type "%s"', bank, unknown),
      hint    = format('It has %s. Add one with: select pgrecall.add_fact_type(%L, %L);',
                       array_to_string(known, ', '), bank, unknown);
  end if;
  return array(select distinct u from unnest(fact_types) as u order by u);
end;
$$;
comment on function pgrecall_internal._fact_types is
'The fact types to search; null: all that hold a memory. Errors: RC008 unknown fact type, or '
'null.';

create or replace function pgrecall_internal._check_memory(bank text, memory_id bigint)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  perform 1 from pgrecall.memory m
  where  m.bank_id = _check_memory.bank and m.memory_id = _check_memory.memory_id;
  if not found then
    raise exception using
      errcode = 'RC010',
      message = format('bank "%s" has no memory %s', bank, coalesce(memory_id::text, 'null')),
      hint    = 'Pass ids that retain() or a recall on the same bank returned.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_memory is
'Raises RC010 unless the bank holds the memory.';

create or replace function pgrecall_internal._check_entity(bank text, entity_id bigint)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  perform 1 from pgrecall.entity e
  where  e.bank_id = _check_entity.bank and e.entity_id = _check_entity.entity_id;
  if not found then
    raise exception using
      errcode = 'RC013',
      message = format('bank "%s" has no entity %s', bank, coalesce(entity_id::text, 'null')),
      hint    = format('Look for it with: select * from pgrecall.query_entities(%L, ''its name'');',
                       bank);
  end if;
end;
$$;
comment on function pgrecall_internal._check_entity is
'Raises RC013 unless the bank holds the entity.';
