-- Facts that contradict one another, marked in the rows of a recall.
--
-- Two memories conflict where both hold as of the time asked about, and either have one fact_key
-- and different texts, or lead one relation of one entity to different ones. A relation conflicts
-- only where the bank says that its kind leads to one other at a time: by single_relations, or by
-- replace that ends all others. What is known of when they hold must overlap: occurred of both, and
-- valid_from and valid_to of both relations. Only the rows that are returned are looked at, each by
-- an index and at most 20 others.
create or replace function pgrecall_internal._conflicts(
  bank pgrecall.bank, memory_ids bigint[], as_of timestamptz)
returns table (memory_id bigint, others bigint[])
language plpgsql stable parallel safe rows 1
set search_path from current
-- Its plans are kept, also those made while a table was small: in the order of an index.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  with asked as materialized (
    select m.*
    from   unnest(memory_ids) as i(id)
    cross  join lateral (
      select y.memory_id, y.fact_key, y.text, y.occurred
      from   pgrecall.memory y
      where  y.bank_id = bank.bank_id and y.memory_id = i.id
      limit  1
    ) as m
  ),
  pair as (
    select a.memory_id, o.memory_id as other_id
    from   asked a
    cross  join lateral (
      select m.memory_id
      from   pgrecall.memory m
      where  m.bank_id = bank.bank_id and m.fact_key is not null
        and  lower(pgrecall_internal._normalised(m.fact_key))
               = lower(pgrecall_internal._normalised(a.fact_key))
        and  coalesce(m.valid_to, 'infinity'::timestamptz) > _conflicts.as_of
        and  m.valid_from <= _conflicts.as_of and m.memory_id <> a.memory_id
        and  lower(pgrecall_internal._normalised(m.text))
               <> lower(pgrecall_internal._normalised(a.text))
        and  (m.occurred && a.occurred) is not false
      limit  20
    ) as o
    where  a.fact_key is not null
    union
    select a.memory_id, o.memory_id as other_id
    from   asked a
    cross  join lateral (
      select r.from_id, r.kind, r.to_id, r.valid_from, r.valid_to
      from   pgrecall.relation r
      where  r.bank_id = bank.bank_id and r.memory_id = a.memory_id
        and  (r.kind = any (bank.single_relations)
              or bank.single_relations = '{}' and bank.replace in ('relation', 'both'))
      limit  20
    ) as r
    cross  join lateral (
      -- The newest hundred of that kind: what came before was mostly replaced.
      select x.memory_id, x.to_id, x.valid_from, x.valid_to
      from   pgrecall.relation x
      where  x.bank_id = bank.bank_id and x.from_id = r.from_id and x.kind = r.kind
      order  by x.relation_id desc
      limit  100
    ) as x
    cross  join lateral (
      select m.memory_id
      from   pgrecall.memory m
      where  m.bank_id = bank.bank_id and m.memory_id = x.memory_id
        and  m.valid_from <= _conflicts.as_of
        and  coalesce(m.valid_to, 'infinity'::timestamptz) > _conflicts.as_of
        and  (m.occurred && a.occurred) is not false
      limit  1
    ) as o
    where  x.to_id <> r.to_id and x.memory_id <> a.memory_id
      and  tstzrange(x.valid_from, x.valid_to) && tstzrange(r.valid_from, r.valid_to)
  )
  select p.memory_id, array_agg(p.other_id order by p.other_id)
  from   pair p
  group  by p.memory_id;
end;
$$;
comment on function pgrecall_internal._conflicts is
'Of these memories, those that conflict with others as of a time, and with which.';
