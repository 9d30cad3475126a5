-- Facts that contradict one another, marked in the rows of a recall.
--
-- Two memories conflict if both hold at the time asked about, and either share a fact_key but not a
-- text, or state the same relation of one entity to different entities. A relation conflicts only
-- if the bank says that an entity has only one of its kind at a time: by single_relations, or by a
-- replace that ends all others. Where times are known, they must overlap: occurred of both
-- memories, and valid_from to valid_to of both relations. Only returned rows are checked, each by
-- an index lookup of at most 20 others.
create or replace function pgrecall_internal._with_conflicts(
  request pgrecall_internal.request, hits pgrecall.recalled[])
returns pgrecall.recalled[]
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  bank   pgrecall.bank := request.bank;
  kinds  text[] := bank.single_relations;  -- empty: every kind that the bank's replace ends
  place  integer;
  others bigint[];
begin
  for place, others in
    select h.ordinality, array_agg(distinct o.memory_id)
    from   unnest(hits) with ordinality as h
    cross  join lateral (
      -- Those with the same key and another text. Only one index provides this range in this order.
      (select m.memory_id
       from   pgrecall.memory m
       where  h.fact_key is not null and m.bank_id = bank.bank_id and m.fact_key is not null
         and  lower(pgrecall_internal._normalised(m.fact_key))
                between lower(pgrecall_internal._normalised(h.fact_key))
                and     lower(pgrecall_internal._normalised(h.fact_key))
         -- As of infinity, too, an open end is later.
         and  coalesce(m.valid_to, 'infinity'::timestamptz)
                > least(request.as_of, '294276-12-31')
         and  m.valid_from <= request.as_of and m.memory_id <> h.memory_id
         and  lower(pgrecall_internal._normalised(m.text))
                <> lower(pgrecall_internal._normalised(h.text))
         and  (m.occurred && h.occurred) is not false
       order  by lower(pgrecall_internal._normalised(m.fact_key))
       limit  20)
      union all
      -- Those that state a relation of the row to another entity.
      select m.memory_id
      from (
        select x.from_id, x.kind, x.to_id, x.valid_from, x.valid_to
        from   pgrecall.relation x
        where  (kinds <> '{}' or bank.replace in ('relation', 'both')) and h.kind = 'memory'
          and  x.bank_id = bank.bank_id and x.memory_id = h.memory_id
          and  (kinds = '{}' or x.kind = any (kinds))
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
        select y.memory_id
        from   pgrecall.memory y
        where  y.bank_id = bank.bank_id and y.memory_id = x.memory_id
          and  y.valid_from <= request.as_of
          and  (y.valid_to is null or y.valid_to > request.as_of)
          and  (y.occurred && h.occurred) is not false
        limit  1
      ) as m
      where  x.to_id <> r.to_id and x.memory_id <> h.memory_id
        and  tstzrange(x.valid_from, x.valid_to) && tstzrange(r.valid_from, r.valid_to)
    ) as o
    group  by h.ordinality
  loop
    hits[place].conflicts_with := others;
  end loop;
  return hits;
end;
$$;
comment on function pgrecall_internal._with_conflicts is
'The rows of an answer, each with the memories that it conflicts with: those that as of the recall '
'have its key and another text, or state a relation of it to another entity, of the kinds in '
'single_relations, or of every kind where the bank names none and replaces by relation.';
