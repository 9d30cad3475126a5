-- Links between facts: the edges that the graph arm follows.
--
-- A fact gets a bounded number of links when it is written, whatever the size of the bank: causal
-- links as given by the caller, and one temporal link to the preceding fact. retain() writes causal
-- links at once, and temporal ones unless they were deferred to link_pending() by link =>
-- 'deferred'. Facts with a similar meaning are not linked: graph/similar.sql searches for them.

create or replace function pgrecall_internal._store_causal_links(
  bank text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  link    record;
  from_id bigint;
  target  bigint;
begin
  for link in
    select f.n, l.position, l.kind, l.weight, l.to_id, l.to_index, l.to_key, l.target
    from   unnest(facts) as f
    cross  join lateral unnest(f.links) with ordinality
             as l(kind, weight, to_id, to_index, to_key, target, position)
    order  by f.n, l.position
  loop
    from_id := memory_ids[link.n];
    target := case
      when link.to_index is not null then memory_ids[link.to_index + 1]
      when link.to_id is not null then (
        select m.memory_id from pgrecall.memory m
        where  m.bank_id = _store_causal_links.bank and m.memory_id = link.to_id)
      else (
        select m.memory_id from pgrecall.memory m
        where  m.bank_id = _store_causal_links.bank
          and  lower(pgrecall_internal._normalised(m.fact_key))
                 = lower(pgrecall_internal._normalised(link.to_key))
          and  m.memory_id <> from_id
        order  by m.valid_to desc nulls first, m.memory_id desc
        limit  1)
    end;
    if target is null then
      perform pgrecall_internal._raise_invalid_field(
        format('facts[%s].links[%s]', link.n - 1, link.position - 1),
        format('no memory of bank "%s" answers to %s', bank, link.target),
        'Retain the fact that it leads to first, or in the same call.');
    end if;
    insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
    select _store_causal_links.bank, from_id, link.kind, target, link.weight
    where  target <> from_id
    on conflict on constraint link_pkey do nothing;
  end loop;
end;
$$;
comment on function pgrecall_internal._store_causal_links is
'Writes the causal links of facts. Errors: RC003 the target of a link does not exist.';

create or replace function pgrecall_internal._is_moment(occurred tstzrange)
returns boolean
language sql stable parallel safe
-- Not extract(), whose numbers are slower; by half a microsecond more, which a double rounds.
return date_part('epoch', upper(occurred)) - date_part('epoch', lower(occurred)) <= 90000.0000005;
comment on function pgrecall_internal._is_moment is
'Whether what occurred took at most a day, which has up to 25 hours.';

create or replace function pgrecall_internal._link_memories(bank text, memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index and its order, also those made while a table was small.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
begin
  -- The fact that happened just before, less than 24 hours earlier (a day of a time zone may have
  -- 25): one link per fact, which chains the facts of a day. Among facts of the same time it is the
  -- one stored just before. Only the last 20 are searched: sorting all facts of a day would cost
  -- more with each fact. What took longer than a day, such as a year, is next to nothing in time.
  insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
  select _link_memories.bank, v.memory_id, 'temporal', n.memory_id,
         1 - extract(epoch from v.started_at - n.started_at) / 86400
  from   unnest(memory_ids) as u(memory_id)
  cross  join lateral (
    select m.memory_id, lower(m.occurred) as started_at
    from   pgrecall.memory m
    where  m.bank_id = _link_memories.bank and m.memory_id = u.memory_id
      and  pgrecall_internal._is_moment(m.occurred)
    limit  1
  ) as v
  cross  join lateral (
    select b.memory_id, b.started_at
    from (
      (select s.memory_id, lower(s.occurred) as started_at
       from (
         select m.memory_id, m.occurred
         from   pgrecall.memory m
         where  m.bank_id = _link_memories.bank and m.memory_id < v.memory_id
         order  by m.memory_id desc
         limit  20
       ) as s
       where  lower(s.occurred) = v.started_at and pgrecall_internal._is_moment(s.occurred)
       order  by s.memory_id desc
       limit  1)
      union all
      select p.memory_id, lower(p.occurred)
      from   pgrecall.fact_type t
      cross  join lateral (
        select m.memory_id, m.occurred
        from   pgrecall.memory m
        where  m.bank_id = _link_memories.bank and m.fact_type = t.fact_type
          and  m.occurred is not null
          and  lower(m.occurred) > v.started_at - interval '24 hours'
          and  lower(m.occurred) < v.started_at
        order  by lower(m.occurred) desc
        limit  20
      ) as p
      where  t.bank_id = _link_memories.bank and pgrecall_internal._is_moment(p.occurred)
    ) as b
    order  by b.started_at desc, b.memory_id desc
    limit  1
  ) as n
  where  isfinite(v.started_at)
  on conflict on constraint link_pkey do nothing;
end;
$$;
comment on function pgrecall_internal._link_memories is
'Writes temporal links, from facts that took at most a day: to the one before, within a day.';

create or replace function pgrecall.link_pending(bank text, batch_size integer default 1000)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  memory_ids bigint[];
begin
  perform pgrecall_internal._shared_bank(bank);
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  memory_ids := array(
    select p.memory_id
    from (
      select m.memory_id from pgrecall.memory m
      where  m.bank_id = link_pending.bank and not m.is_linked
      order  by m.memory_id
      limit  batch_size
      -- Another call links those.
      for    no key update skip locked
    ) as p
  );
  perform pgrecall_internal._link_memories(bank, memory_ids);
  -- The range is what the index is searched by, whatever the statistics say.
  update pgrecall.memory m
  set    is_linked = true
  where  m.bank_id = link_pending.bank and m.memory_id = any (memory_ids)
    and  m.memory_id between memory_ids[1] and memory_ids[cardinality(memory_ids)]
    and  not m.is_linked;
  return cardinality(memory_ids);
end;
$$;
comment on function pgrecall.link_pending is
'Links up to batch_size facts that were retained with link => ''deferred''; returns how many. Call '
'it until it returns 0; pending_links() counts the rest. Errors: RC001, 22023.';

create or replace function pgrecall.pending_links(bank text)
returns bigint
language plpgsql stable parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall_internal._bank(bank);
  return (
    select count(*) from pgrecall.memory m
    where  m.bank_id = pending_links.bank and not m.is_linked
  );
end;
$$;
comment on function pgrecall.pending_links is
'How many facts of a bank were retained with link => ''deferred'' and wait for link_pending(). '
'Errors: RC001.';
