-- Facts that contradict one another, marked in the rows of a recall.
--
-- Two memories conflict if both hold at the time asked about, and either share a fact_key but not a
-- text, or state the same relation of one entity to different entities. A relation conflicts only
-- if the bank says that an entity has only one of its kind at a time: by single_relations, or by a
-- replace that ends all others. Where times are known, they must overlap: occurred of both
-- memories, and valid_from to valid_to of both relations. Only returned rows are checked, each by
-- an index lookup of at most 20 others.
create or replace function pgrecall_internal._key_conflicts(
  bank text, hits pgrecall.recalled[], as_of timestamptz)
returns table (memory_id bigint, other_id bigint)
language plpgsql stable parallel safe rows 1
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select h.memory_id, o.memory_id
  from   unnest(hits) as h
  cross  join lateral (
    -- Only one index provides this range in this order.
    select m.memory_id
    from   pgrecall.memory m
    where  m.bank_id = _key_conflicts.bank and m.fact_key is not null
      and  lower(pgrecall_internal._normalised(m.fact_key))
             between lower(pgrecall_internal._normalised(h.fact_key))
             and     lower(pgrecall_internal._normalised(h.fact_key))
      and  coalesce(m.valid_to, 'infinity'::timestamptz) > _key_conflicts.as_of
      and  m.valid_from <= _key_conflicts.as_of and m.memory_id <> h.memory_id
      and  lower(pgrecall_internal._normalised(m.text))
             <> lower(pgrecall_internal._normalised(h.text))
      and  (m.occurred && h.occurred) is not false
    order  by lower(pgrecall_internal._normalised(m.fact_key))
    limit  20
  ) as o
  where  h.fact_key is not null;
end;
$$;
comment on function pgrecall_internal._key_conflicts is
'Memories with the key of a row and another text, as of a time.';

create or replace function pgrecall_internal._relation_conflicts(
  bank pgrecall.bank, hits pgrecall.recalled[], as_of timestamptz)
returns table (memory_id bigint, other_id bigint)
language plpgsql stable parallel safe rows 1
set search_path from current
-- As above.
set jit = off
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select h.memory_id, o.memory_id
  from   unnest(hits) as h
  cross  join lateral (
    select x.from_id, x.kind, x.to_id, x.valid_from, x.valid_to
    from   pgrecall.relation x
    where  x.bank_id = bank.bank_id and x.memory_id = h.memory_id
      and  (bank.single_relations = '{}' or x.kind = any (bank.single_relations))
    limit  20
  ) as r
  cross  join lateral (
    -- The newest hundred of that kind: earlier ones were mostly replaced.
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
      and  m.valid_from <= _relation_conflicts.as_of
      and  coalesce(m.valid_to, 'infinity'::timestamptz) > _relation_conflicts.as_of
      and  (m.occurred && h.occurred) is not false
    limit  1
  ) as o
  where  h.kind = 'memory' and x.to_id <> r.to_id and x.memory_id <> h.memory_id
    and  tstzrange(x.valid_from, x.valid_to) && tstzrange(r.valid_from, r.valid_to);
end;
$$;
comment on function pgrecall_internal._relation_conflicts is
'Memories that state a relation of a row to another entity, as of a time; for kinds in '
'single_relations, or for every kind where the bank names none.';

create or replace function pgrecall_internal._with_conflicts(
  request pgrecall_internal.request, hits pgrecall.recalled[])
returns pgrecall.recalled[]
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  bank   pgrecall.bank := request.bank;
  ids    bigint[] := array(select h.memory_id from unnest(hits) as h);
  place  integer;
  others bigint[];
begin
  for place, others in
    select i.place, array_agg(distinct c.other_id)
    from (
      select k.memory_id, k.other_id
      from   pgrecall_internal._key_conflicts(bank.bank_id, hits, request.as_of) as k
      where  exists (select from unnest(hits) as h where h.fact_key is not null)
      union all
      select r.memory_id, r.other_id
      from   pgrecall_internal._relation_conflicts(bank, hits, request.as_of) as r
      where  bank.single_relations <> '{}' or bank.replace in ('relation', 'both')
    ) as c
    join   unnest(ids) with ordinality as i(memory_id, place) on i.memory_id = c.memory_id
    group  by i.place
  loop
    hits[place].conflicts_with := others;
  end loop;
  return hits;
end;
$$;
comment on function pgrecall_internal._with_conflicts is
'The rows of an answer, each with the memories that it conflicts with.';
