-- Bringing the rows of attached tables into their banks.
--
-- sync_table() works in batches. It locks the bank, takes notes of changes out of attached_change,
-- and only then reads the rows of these keys: each row as it is now, however often it changed.
-- Another transaction notes its own changes, and its notes become visible together with its rows,
-- so that nothing is lost, and a row that is read twice gives the same memory. The first pass over
-- all rows is in order of the key. Rows that cannot be stored (a text that is too long, an unknown
-- fact type, a source in quarantine) do not hold up others: they are noted with the reason, until
-- they change, and have no memory meanwhile, since that of their former content is not what they
-- say. sync_table() reads the table with the rights of its caller, and calls no cast of a
-- user-defined type.
create or replace function pgrecall_internal._attached_facts(
  attachment pgrecall.attachment, relation regclass, keys text[])
returns setof pgrecall_internal.attached_fact
language plpgsql stable parallel safe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  key_type text := pgrecall_internal._key_type(relation, attachment.key);
begin
  return query execute format(
    'select format(''%%s'', r.%1$I), x.fact, sha256(convert_to(x.fact::text, ''UTF8'')), '
    '       null::bigint, null::text '
    'from   %2$s as r '
    'cross  join lateral (select %3$s as fact) as x '
    'where  r.%1$I = any ($1::%4$s[]) and trim(x.fact ->> ''text'') <> ''''',
    attachment.key, relation,
    pgrecall_internal._row_expression(
      relation, attachment.relation, attachment.key, attachment.fact_type, attachment.columns),
    key_type) using keys;
end;
$$;
comment on function pgrecall_internal._attached_facts is
'The facts made of the rows with these keys of an attached table; none for a row without a text.';

create or replace function pgrecall_internal._memories_of_rows(
  attachment pgrecall.attachment, keys text[])
returns table (key text, memory_id bigint, row_hash bytea)
language plpgsql stable parallel safe rows 100
set search_path from current
-- An index whose order is asked for is used, whatever the planner assumes.
set enable_sort = off
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select k.key, w.memory_id, w.row_hash
  from   unnest(keys) as k(key)
  cross  join lateral (
    -- Only one index provides this range in this order.
    select x.memory_id, x.row_hash
    from   pgrecall.attached_row x
    where  x.bank_id = attachment.bank_id
      and  x.relation between attachment.relation and attachment.relation
      and  x.key between k.key and k.key
    order  by x.relation, x.key
    offset 0
  ) as w;
end;
$$;
comment on function pgrecall_internal._memories_of_rows is
'The memories that were made of the rows with these keys, from former contents too.';

create or replace function pgrecall_internal._compared_rows(
  attachment pgrecall.attachment, relation regclass, keys text[])
returns pgrecall_internal.attached_fact[]
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return array(
    select row(k.key, f.fact, f.row_hash, w.memory_id,
               case
                 when f.fact is null and w.memory_id is null then 'same'
                 when f.fact is null then 'gone'
                 when f.row_hash = w.row_hash then 'same'
                 when w.is_current then 'changed'
                 else 'new' end)::pgrecall_internal.attached_fact
    from   unnest(keys) as k(key)
    left   join pgrecall_internal._attached_facts(attachment, relation, keys) as f
           on f.key = k.key
    left   join (
      select distinct on (x.key) x.key, x.memory_id, x.row_hash, c.is_current
      from   pgrecall_internal._memories_of_rows(attachment, keys) as x
      cross  join lateral (
        select exists (
          select from pgrecall.memory m
          where  m.bank_id = attachment.bank_id and m.memory_id = x.memory_id
            and  (m.valid_to is null or m.valid_to > clock_timestamp())) as is_current
      ) as c
      -- That which holds, where an update by hand was taken back.
      order  by x.key, c.is_current desc, x.memory_id desc
    ) as w on w.key = k.key
    order  by k.key
  );
end;
$$;
comment on function pgrecall_internal._compared_rows is
'The rows with these keys as they are now, compared with what the bank holds of them.';

create or replace function pgrecall_internal._retain_rows(
  attachment pgrecall.attachment, compared pgrecall_internal.attached_fact[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  insert into pgrecall.attached_row (bank_id, memory_id, relation, key, row_hash)
  select distinct on (r.memory_id)
         attachment.bank_id, r.memory_id, attachment.relation, c.key, c.row_hash
  from   pgrecall.retain(
           attachment.bank_id,
           (select jsonb_agg(u.fact order by u.n)
            from   unnest(compared) with ordinality
                     as u(key, fact, row_hash, memory_id, status, n)),
           replace => 'none') as r
  join   unnest(compared) with ordinality as c(key, fact, row_hash, memory_id, status, n)
         on c.n = r.index + 1
  order  by r.memory_id, c.n
  -- Known from an attachment that was detached.
  on conflict on constraint attached_row_pkey do update
  set    relation = excluded.relation, key = excluded.key, row_hash = excluded.row_hash;
end;
$$;
comment on function pgrecall_internal._retain_rows is
'Retains rows of an attached table. Errors: those of retain().';

create or replace function pgrecall_internal._sync_rows(
  attachment pgrecall.attachment, relation regclass, keys text[])
returns pgrecall.synced_table
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  compared   pgrecall_internal.attached_fact[] :=
    pgrecall_internal._compared_rows(attachment, relation, keys);
  added      pgrecall_internal.attached_fact[] := array(
    select c from unnest(compared) as c where c.status = 'new' order by c.key);
  failed     bigint[] := array(
    select x.change_id
    from   unnest(keys) as k(key)
    cross  join lateral (
      -- One lookup for each key.
      select c.change_id from pgrecall.attached_change c
      where  c.bank_id = attachment.bank_id and c.relation = attachment.relation
        and  c.key = k.key and c.problem is not null
      offset 0
    ) as x);
  versions   bigint[] := '{}';
  gone       bigint[];
  one        pgrecall_internal.attached_fact;
  version_id bigint;
  done       pgrecall.synced_table;
begin
  if failed <> '{}' then
    delete from pgrecall.attached_change c
    where  c.bank_id = attachment.bank_id and c.change_id = any (failed);
  end if;
  done.bank_id := attachment.bank_id;
  done.relation := attachment.relation;
  done.failed := 0;
  -- Errors in the data are kept with the row; all others end the call.
  begin
    if added <> '{}' then
      perform pgrecall_internal._retain_rows(attachment, added);
    end if;
  exception when sqlstate 'RC003' or sqlstate 'RC008' or sqlstate 'RC015' then
    foreach one in array added loop
      begin
        perform pgrecall_internal._retain_rows(attachment, array[one]);
      exception when sqlstate 'RC003' or sqlstate 'RC008' or sqlstate 'RC015' then
        insert into pgrecall.attached_change (bank_id, relation, key, problem)
        values (attachment.bank_id, attachment.relation, one.key, sqlerrm);
        done.failed := done.failed + 1;
      end;
    end loop;
  end;
  done.added := cardinality(added) - done.failed;
  done.changed := 0;
  for one in select c.* from unnest(compared) as c where c.status = 'changed' loop
    begin
      select u.memory_id into version_id
      from   pgrecall.update_memory(
               attachment.bank_id, one.memory_id,
               -- A column that is null now takes its field away.
               (select jsonb_object_agg(e.key, null) from jsonb_each(attachment.columns) as e)
               || one.fact) as u;
      update pgrecall.attached_row w
      set    row_hash = one.row_hash
      where  w.bank_id = attachment.bank_id and w.memory_id = version_id;
      done.changed := done.changed + 1;
      versions := versions || version_id;
    exception when sqlstate 'RC003' or sqlstate 'RC008' or sqlstate 'RC015' then
      insert into pgrecall.attached_change (bank_id, relation, key, problem)
      values (attachment.bank_id, attachment.relation, one.key, sqlerrm);
      done.failed := done.failed + 1;
      perform pgrecall_internal._end_memories(
        attachment.bank_id, 'update', nextval('pgrecall.id_seq'), array[one.memory_id],
        array[now()], array[null::bigint]);
      -- The hash of no row: should the row have its former content again, it is added.
      update pgrecall.attached_row w
      set    row_hash = sha256('')
      where  w.bank_id = attachment.bank_id and w.relation = attachment.relation
        and  w.key = one.key;
    end;
  end loop;
  -- What the table no longer has is erased, with its former contents.
  gone := array(
    select w.memory_id
    from   unnest(compared) as c
    join   pgrecall_internal._memories_of_rows(
             attachment,
             array(select u.key from unnest(compared) as u where u.status in ('gone', 'changed'))
           ) as w on w.key = c.key
    where  c.status = 'gone'
       or  c.status = 'changed' and not attachment.is_history_kept
           and w.memory_id <> all (versions));
  if gone <> '{}' then
    perform pgrecall.forget(attachment.bank_id, gone);
  end if;
  select count(*) filter (where c.status = 'gone'), count(*) filter (where c.status = 'same')
  into   done.removed, done.unchanged
  from   unnest(compared) as c;
  return done;
end;
$$;
comment on function pgrecall_internal._sync_rows is
'Brings the memories of the rows with these keys up to date. The bank must be locked.';

create or replace function pgrecall_internal._taken_keys(
  attachment pgrecall.attachment, batch_size integer)
returns text[]
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  ids   bigint[] := array(
    select c.change_id from pgrecall.attached_change c
    where  c.bank_id = attachment.bank_id and c.relation = attachment.relation
      and  c.problem is null
    order  by c.change_id
    limit  _taken_keys.batch_size);
  noted text[];
begin
  with taken as (
    -- The range is what an index is searched by, whatever the statistics say.
    delete from pgrecall.attached_change c
    where  c.bank_id = attachment.bank_id and c.relation = attachment.relation
      and  c.change_id between ids[1] and ids[cardinality(ids)] and c.change_id = any (ids)
    returning c.key
  )
  select array_agg(distinct t.key) into noted from taken t;
  if array_position(noted, null) is not null then
    -- The table was emptied: every row that the bank knows is checked again, in later batches.
    insert into pgrecall.attached_change (bank_id, relation, key)
    select distinct attachment.bank_id, attachment.relation, w.key
    from   pgrecall.attached_row w
    where  w.bank_id = attachment.bank_id and w.relation = attachment.relation;
    noted := array_remove(noted, null);
  end if;
  return coalesce(noted, '{}');
end;
$$;
comment on function pgrecall_internal._taken_keys is
'Removes the oldest notes of changes to an attached table; returns the keys that they name.';

create or replace function pgrecall_internal._copied_keys(
  attachment pgrecall.attachment, relation regclass, batch_size integer)
returns text[]
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  next_keys text[];
  key_type  text := pgrecall_internal._key_type(relation, attachment.key);
begin
  execute format(
    'select array_agg(format(''%%s'', n.key) order by n.key) '
    'from (select r.%1$I as key from %2$s as r where $1 is null or r.%1$I > $1::%3$s '
    '      order by r.%1$I limit $2) as n',
    attachment.key, relation, key_type)
  into next_keys using attachment.copied_key, batch_size;
  update pgrecall.attachment a
  set    copied_key = coalesce(next_keys[cardinality(next_keys)], a.copied_key),
         is_copied = coalesce(cardinality(next_keys), 0) < batch_size
  where  a.bank_id = attachment.bank_id and a.relation = attachment.relation;
  return coalesce(next_keys, '{}');
end;
$$;
comment on function pgrecall_internal._copied_keys is
'The next keys of the first pass over an attached table, which it marks as done.';

create or replace function pgrecall_internal._is_behind(attachment pgrecall.attachment)
returns boolean
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return exists (
    select from pgrecall.attached_change c
    where  c.bank_id = attachment.bank_id and c.relation = attachment.relation
      and  c.problem is null);
end;
$$;
comment on function pgrecall_internal._is_behind is
'Whether changes of an attached table wait.';

create or replace function pgrecall_internal._sync_batch(
  attachment pgrecall.attachment, batch_size integer, is_copying boolean)
returns pgrecall.synced_table
language plpgsql volatile parallel unsafe
set search_path from current
-- A row is compared by its values as text, and types by their names.
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
set intervalstyle = 'postgres'
set bytea_output = 'hex'
set extra_float_digits = 1
set quote_all_identifiers = off
as $$
declare
  keys     text[];
  done     pgrecall.synced_table;
begin
  -- Another session may have synced it while this one waited for the bank.
  perform pgrecall_internal._locked_bank(attachment.bank_id);
  attachment := pgrecall_internal._attachment(attachment.bank_id, attachment.relation);
  keys := pgrecall_internal._taken_keys(attachment, batch_size);
  if is_copying and not attachment.is_copied and cardinality(keys) < batch_size then
    keys := array(
      select u.key from unnest(keys || pgrecall_internal._copied_keys(
        attachment, attachment.relation::regclass, batch_size - cardinality(keys))) as u(key)
      group  by u.key);
  end if;
  done := pgrecall_internal._sync_rows(attachment, attachment.relation::regclass, keys);
  done.is_complete :=
    (select a.is_copied from pgrecall.attachment a
     where  a.bank_id = attachment.bank_id and a.relation = attachment.relation)
    and not pgrecall_internal._is_behind(attachment);
  return done;
end;
$$;
comment on function pgrecall_internal._sync_batch is
'Syncs one batch of an attached table, which can be read as it was attached.';

create or replace function pgrecall.sync_table(
  bank       text,
  relation   text default null,
  batch_size integer default 1000,
  is_copying boolean default true)
returns setof pgrecall.synced_table
language plpgsql volatile parallel unsafe rows 1
set search_path from current
as $$
declare
  attached  pgrecall.attachment;
  is_behind boolean;
  has_begun boolean := false;
  problem   text;
  broken    text;
  done      pgrecall.synced_table;
begin
  -- In a subscription, which cannot write into a bank, triggers that fire always leave it to later.
  if not is_copying and current_setting('session_replication_role') = 'replica' then
    return;
  end if;
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  if relation is not null then
    attached := pgrecall_internal._attachment(bank, relation);
    relation := attached.relation;
  end if;
  for attached in
    select a.* from pgrecall.attachment a
    where  a.bank_id = sync_table.bank
      and  (sync_table.relation is null or a.relation = sync_table.relation)
    order  by a.relation
  loop
    is_behind := not attached.is_copied or pgrecall_internal._is_behind(attached);
    problem := case
      -- Without its triggers nothing waits, whatever has changed.
      when is_behind or relation is not null or pgrecall_internal._is_unnoted(attached)
      then pgrecall_internal._attachment_problem(attached) end;
    done := row(bank, attached.relation, 0, 0, 0, 0, 0, problem is null);
    if problem is not null then
      broken := coalesce(broken, attached.relation);
    elsif is_behind then
      -- With nothing to do the bank is not locked.
      done := pgrecall_internal._sync_batch(attached, batch_size, is_copying);
      has_begun := true;
    end if;
    return next done;
  end loop;
  -- What the call did for other tables would be undone.
  if broken is not null and not has_begun then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = pgrecall_internal._attachment_problem(
                  pgrecall_internal._attachment(bank, broken)),
      hint    = format('%s, or take it away: select pgrecall.detach_table(%L, %L);', case
        when not has_table_privilege(to_regclass(broken), 'select')
             or row_security_active(to_regclass(broken))
          then 'Sync as a role that reads all rows'
        else 'If its name or its columns are others now, attach the table again, which reads all '
             'rows'
        end, bank, broken);
  end if;
end;
$$;
comment on function pgrecall.sync_table is
'Brings changed rows of an attached table, and those that were not copied yet, into the bank: at '
'most batch_size notes of changes and rows, a row for each table. Call it until is_complete, each '
'call in a transaction of its own; then the bank holds what was committed before the last call. '
'relation: the name of the table, with or without its schema; null: all of the bank. Of these one '
'that cannot be synced does not keep others waiting: it is not complete, and the call that has '
'nothing to do for others refuses it; a table that is gone or not to be read only if changes of it '
'wait. is_copying => false leaves the first pass over all rows alone. New texts have no embedding: '
'embed_pending() lists them. Needs rights to read the table, all of its rows, and to write into '
'the bank, which no other writer does meanwhile. Errors: RC001, 22023 not attached, gone, renamed, '
'without its triggers or a column, or not to be read.';
