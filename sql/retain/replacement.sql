-- Replacement of facts with the same key, or the same relation of an entity.
--
-- A fact holds from when it was said (valid_from) until the next fact of its key, or the next that
-- gives its relation another end, was said: so a recall as of any time finds what was known last.
-- Only facts retained with replace end others, and are ended by others said later: one that arrives
-- late ends earlier ones, and itself ends where the next began. Facts said at the same time follow
-- in the order retained. A fact that states several relations ends as a whole. A relation that
-- ended by itself (valid_to) is history and replaces nothing. All replacements of a batch are found
-- at once, sorted by key or relation and time, in n log n. Facts of a key are read from the
-- earliest time in the batch on; of a relation, all are read.
create or replace function pgrecall_internal._end_memories(
  bank text, kind text, correction_id bigint, memory_ids bigint[], ends timestamptz[],
  successors bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- The array is read once, not for each memory, however few the planner takes them for.
set enable_nestloop = off
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
begin
  update pgrecall.memory m
  set    valid_to      = greatest(e.ends_at, m.valid_from),
         superseded_by = e.successor_id,
         corrections   = pgrecall_internal._corrections(
                           row(m.*)::pgrecall.memory, _end_memories.kind,
                           _end_memories.correction_id, e.successor_id,
                           case when e.successor_id is null then memory_ids end)
  from   unnest(memory_ids, ends, successors) as e(memory_id, ends_at, successor_id)
  -- The array keeps to the primary key, whatever is known of the bank.
  where  m.bank_id = _end_memories.bank and m.memory_id = e.memory_id
    and  m.memory_id = any (memory_ids);
end;
$$;
comment on function pgrecall_internal._end_memories is
'Ends memories, each at its time and by its successor, if any, and records their previous values.';

create or replace function pgrecall_internal._corrections(
  memory pgrecall.memory, kind text, correction_id bigint, replaced_by bigint, members bigint[])
returns jsonb
language sql stable parallel safe
return coalesce((memory).corrections, '[]') || jsonb_strip_nulls(jsonb_build_object(
  'kind', kind, 'correction_id', correction_id, 'replaced_by', replaced_by, 'members', members,
  'valid_to', (memory).valid_to, 'superseded_by', (memory).superseded_by,
  'proof_count', (memory).proof_count, 'by', current_user, 'at', now()));
comment on function pgrecall_internal._corrections is
'The corrections of a memory and one more, with the current values of the row, without nulls. '
'members: the memories corrected with it, where none replaced them.';

create or replace function pgrecall_internal._is_hidden(
  valid_from timestamptz, valid_to timestamptz, corrections jsonb)
returns boolean
language sql immutable parallel safe
return coalesce(valid_to = valid_from and corrections -> -1 ->> 'kind' = 'quarantine', false);
comment on function pgrecall_internal._is_hidden is
'Whether quarantine() has taken a memory out.';

create or replace function pgrecall_internal._ended_by(memory_id bigint, corrections jsonb)
returns text
language sql immutable parallel safe
return case when (corrections -> -1 ->> 'replaced_by')::bigint is distinct from memory_id
         then corrections -> -1 ->> 'kind' end;
comment on function pgrecall_internal._ended_by is
'The kind of correction that ended a memory. Null: none did, also where consolidate() merged '
'others into it.';

create or replace function pgrecall_internal._equal_memories(bank text, memory_ids bigint[])
returns table (memory_id bigint, other_id bigint)
language plpgsql stable parallel safe rows 10
set search_path from current
-- An index whose order is asked for is used, whatever the planner assumes.
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select u.memory_id, o.memory_id
  from (
    -- Many of them may be equal, and as many may have ended.
    select m.content_hash, array_agg(m.memory_id) as memory_ids
    from   pgrecall.memory m
    where  m.bank_id = _equal_memories.bank and m.memory_id = any (_equal_memories.memory_ids)
    group  by m.content_hash
  ) as h
  cross  join lateral (
    -- Only one index provides each range in its order.
    (select x.memory_id
     from   pgrecall.memory x
     where  x.bank_id = _equal_memories.bank and x.valid_to is null
       and  x.content_hash between h.content_hash and h.content_hash
     order  by x.content_hash
     limit  1)
    union all
    select y.memory_id
    from (
      select x.memory_id, x.valid_from, x.valid_to
      from   pgrecall.memory x
      where  x.bank_id = _equal_memories.bank and x.valid_to is not null
        and  x.content_hash between h.content_hash and h.content_hash
      order  by x.content_hash
      offset 0
    ) as y
    where  y.valid_to > greatest(now(), y.valid_from)
  ) as o
  cross  join lateral unnest(h.memory_ids) as u(memory_id)
  where  o.memory_id <> all (_equal_memories.memory_ids);
end;
$$;
comment on function pgrecall_internal._equal_memories is
'Other memories with the content of these that hold, without end or until later: of equal facts '
'only one does.';

create or replace function pgrecall_internal._batch_members(
  bank pgrecall.bank, mode text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns table (slot text, fact_key text, from_id bigint, kind text, memory_id bigint, value text,
               said_at timestamptz, n integer)
language plpgsql stable parallel safe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  with said as materialized (
    select memory_ids[f.n] as memory_id, max(f.n) as n,
           lower(pgrecall_internal._normalised(f.fact_key)) as fact_key,
           least(max(f.mentioned_at), now()) as said_at,
           bool_or(f.relations <> '{}') as has_relations
    from   unnest(facts) as f
    group  by 1, 3
  )
  select 'key ' || s.fact_key, s.fact_key, null::bigint, null::text, s.memory_id,
         s.memory_id::text, s.said_at, s.n
  from   said s
  where  mode in ('key', 'both') and s.fact_key is not null
  union all
  select format('%s %s', r.from_id, r.kind), null::text, r.from_id, r.kind, s.memory_id,
         string_agg(r.to_id::text, ' ' order by r.to_id), s.said_at, s.n
  from   said s
  cross  join lateral (
    select x.from_id, x.kind, x.to_id
    from   pgrecall.relation x
    where  x.bank_id = bank.bank_id and x.memory_id = s.memory_id
      and  (x.valid_to is null or x.valid_to > s.said_at)
    offset 0
  ) as r
  where  mode in ('relation', 'both') and s.has_relations
    and  (bank.single_relations = '{}' or r.kind = any (bank.single_relations))
  group  by s.memory_id, s.said_at, s.n, r.from_id, r.kind;
end;
$$;
comment on function pgrecall_internal._batch_members is
'The facts of a batch that replace others. slot: a key or a relation of an entity. value: a fact '
'with another value replaces it; for a key every fact is another value.';

create or replace function pgrecall_internal._slot_members(
  bank pgrecall.bank, mode text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns setof pgrecall_internal.slot_member
language plpgsql stable parallel safe rows 100
set search_path from current
-- Without statistics of the batch the planner would choose a nested loop.
set plan_cache_mode = force_generic_plan
set jit = off
set enable_nestloop = off
set enable_seqscan = off
as $$
begin
  return query
  with said as materialized (
    select * from pgrecall_internal._batch_members(bank, mode, facts, memory_ids)
  ),
  slot as materialized (
    select s.slot, s.fact_key, s.from_id, s.kind, min(s.said_at) as since
    from   said s
    group  by s.slot, s.fact_key, s.from_id, s.kind
  ),
  member as (
    select o.slot, m.memory_id, m.memory_id::text as value, m.valid_from, m.valid_to,
           m.source_id
    from   slot o
    cross  join lateral (
      -- Only one index provides this range in this order.
      select x.memory_id, x.valid_from, x.valid_to, x.source_id
      from   pgrecall.memory x
      where  x.bank_id = bank.bank_id and x.fact_key is not null
        and  lower(pgrecall_internal._normalised(x.fact_key)) between o.fact_key and o.fact_key
        and  coalesce(x.valid_to, 'infinity'::timestamptz) > o.since
        and  not pgrecall_internal._is_hidden(x.valid_from, x.valid_to, x.corrections)
      order  by lower(pgrecall_internal._normalised(x.fact_key))
      offset 0
    ) as m
    where  o.fact_key is not null
    union all
    select o.slot, m.memory_id, m.value, m.valid_from, m.valid_to, m.source_id
    from   slot o
    cross  join lateral (
      select r.memory_id, r.value, x.valid_from, x.valid_to, x.source_id
      from (
        select e.memory_id, string_agg(e.to_id::text, ' ' order by e.to_id) as value
        from   pgrecall.relation e
        where  e.bank_id = bank.bank_id and e.from_id = o.from_id and e.kind = o.kind
          and  (e.valid_to is null or e.valid_to > o.since)
        group  by e.memory_id
      ) as r
      cross  join lateral (
        select y.valid_from, y.valid_to, y.source_id
        from   pgrecall.memory y
        where  y.bank_id = bank.bank_id and y.memory_id = r.memory_id
          and  coalesce(y.valid_to, 'infinity'::timestamptz) > o.since
          and  not pgrecall_internal._is_hidden(y.valid_from, y.valid_to, y.corrections)
        limit  1
      ) as x
      offset 0
    ) as m
    where  o.from_id is not null
  )
  select m.slot, m.memory_id, m.value, coalesce(s.said_at, m.valid_from), m.valid_to,
         s.memory_id is not null, pgrecall_internal._trust(bank.source_trust, m.source_id)
  from   member m
  left   join said s on s.slot = m.slot and s.memory_id = m.memory_id
  order  by m.slot, coalesce(s.said_at, m.valid_from) desc, coalesce(s.n, 0) desc,
         m.memory_id desc;
end;
$$;
comment on function pgrecall_internal._slot_members is
'The facts of each slot that a batch has a value for, the last first, those of the batch with '
'their times in the batch. Facts that ended before are left out.';

create or replace function pgrecall_internal._replacements(
  members pgrecall_internal.slot_member[], at_least double precision,
  out ended bigint[], out ends timestamptz[], out successors bigint[])
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  member     pgrecall_internal.slot_member;
  later      pgrecall_internal.slot_member;  -- the next in time
  said       pgrecall_internal.slot_member;  -- and the next that the batch says
  other      pgrecall_internal.slot_member;  -- the next after a member with another value
  other_said pgrecall_internal.slot_member;  -- the same of what the batch says
  successor  pgrecall_internal.slot_member;
begin
  ended := '{}';
  ends := '{}';
  successors := '{}';
  foreach member in array members loop
    continue when member.trust < at_least;
    if later.slot is distinct from member.slot then
      later := null;
      said := null;
      other := null;
      other_said := null;
    end if;
    if later.value <> member.value then
      other := later;
    end if;
    if said.value <> member.value then
      successor := said;
    else
      successor := other_said;
    end if;
    if member.is_said then
      other_said := successor;
      said := member;
      successor := other;
    end if;
    later := member;
    if successor.said_at < coalesce(member.ends_at, 'infinity') then
      ended := ended || member.memory_id;
      ends := ends || successor.said_at;
      successors := successors || successor.memory_id;
    end if;
  end loop;
  select coalesce(array_agg(e.memory_id), '{}'), array_agg(e.ends_at), array_agg(e.successor_id)
  into   ended, ends, successors
  from (
    select distinct on (u.memory_id) u.memory_id, u.ends_at, u.successor_id
    from   unnest(ended, ends, successors) as u(memory_id, ends_at, successor_id)
    where  u.successor_id <> u.memory_id
    order  by u.memory_id, u.ends_at, u.successor_id
  ) as e;
end;
$$;
comment on function pgrecall_internal._replacements is
'Which members of slots are ended, when, and by which: a fact of the batch by the next of its slot '
'with another value, any other by the next of the batch. Only members with a trust of at_least '
'take part.';

create or replace function pgrecall_internal._trusted_replacements(
  members pgrecall_internal.slot_member[],
  out ended bigint[], out ends timestamptz[], out successors bigint[])
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  level double precision;
  chosen record;
begin
  ended := '{}';
  ends := '{}';
  successors := '{}';
  for level in select distinct m.trust from unnest(members) as m order by 1 desc loop
    chosen := pgrecall_internal._replacements(members, level);
    -- Those of this trust; those of other trusts end one another in their own pass.
    select ended || coalesce(array_agg(u.memory_id), '{}'),
           ends || coalesce(array_agg(u.ends_at), '{}'),
           successors || coalesce(array_agg(u.successor_id), '{}')
    into   ended, ends, successors
    from   unnest(chosen.ended, chosen.ends, chosen.successors)
             as u(memory_id, ends_at, successor_id)
    where  u.memory_id in (select m.memory_id from unnest(members) as m where m.trust = level);
  end loop;
end;
$$;
comment on function pgrecall_internal._trusted_replacements is
'As _replacements(), but a member is ended only by one that is trusted as much.';

create or replace function pgrecall_internal._replace(
  bank pgrecall.bank, mode text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  members pgrecall_internal.slot_member[];
  pairs   record;
begin
  if mode = 'none' then
    return;
  end if;
  members := array(
    select m from pgrecall_internal._slot_members(bank, mode, facts, memory_ids) as m);
  pairs := pgrecall_internal._replacements(members, 0);
  if bank.source_trust <> '{}' then
    -- The batch may not end a fact that is trusted more: an error. Nor do earlier facts end one
    -- that arrives late.
    perform pgrecall_internal._check_successors(
      bank.bank_id, array_agg(u.memory_id order by f.place),
      array_agg(u.successor_id order by f.place), array_agg(f.place order by f.place))
    from   unnest(pairs.ended, pairs.successors) as u(memory_id, successor_id)
    join  (select x.id, min(x.n)::integer - 1 as place
           from   unnest(memory_ids) with ordinality as x(id, n)
           group  by x.id) as f on f.id = u.successor_id;
    pairs := pgrecall_internal._trusted_replacements(members);
  end if;
  if pairs.ended <> '{}' then
    perform pgrecall_internal._end_memories(
      bank.bank_id, 'retain', nextval('pgrecall.id_seq'), pairs.ended, pairs.ends,
      pairs.successors);
  end if;
end;
$$;
comment on function pgrecall_internal._replace is
'Ends the facts replaced by a batch, once that is stored with its relations: _replacements(). '
'Errors: RC015 it would end a fact that is trusted more.';
