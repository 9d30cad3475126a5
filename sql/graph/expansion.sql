-- Link expansion: from seeds to memories one hop away in the graph.
--
-- A hop is a shared entity, a semantic link in either direction, or a causal link. Entities are
-- weighted by rarity, which statistics count (bank/statistics.sql), so that one in every fact adds
-- nothing and is not followed; of the others the newest facts, and the strongest links of each
-- seed, so that a hub costs no more than another. Rows of memory are read last, for those returned.
-- Without statistics of PostgreSQL the planner underestimates joins: lateral subqueries with a
-- limit force lookups by id, a few at a time.
create or replace function pgrecall_internal._mentioning(
  request pgrecall_internal.request, entity_ids bigint[], strengths double precision[])
returns table (memory_id bigint, weight double precision, place double precision)
language plpgsql stable parallel safe rows 1000
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  bank      text := (request.bank).bank_id;
  documents bigint := coalesce((request.memory_terms).documents, 1);
begin
  return query
  with followed as materialized (
    select u.id as entity_id, u.strength, c.mention_count
    from   unnest(entity_ids, strengths) as u(id, strength)
    cross  join lateral (
      select coalesce(max(y.mention_count), 0) as mention_count
      from   pgrecall_internal.entity_count y
      where  y.bank_id = bank and y.entity_id = u.id
    ) as c
    order  by u.strength * pgrecall_internal._rarity(c.mention_count, documents) desc, u.id desc
    limit  24
  ),
  newest as (
    select f.entity_id, f.strength, f.mention_count,
           array(select x.memory_id
                 from   pgrecall.mention x
                 where  x.bank_id = bank and x.entity_id = f.entity_id
                   and  x.fact_type = t.fact_type
                 order  by x.memory_id desc
                 limit  50) as memory_ids
    from   followed f
    cross  join unnest(request.fact_types) as t(fact_type)
  ),
  weighted as materialized (
    -- Mentions since the last count are seen here.
    select e.memory_ids,
           e.strength * pgrecall_internal._rarity(greatest(e.mention_count, e.seen), documents)
             as weight
    from (
      select n.*, sum(cardinality(n.memory_ids)) over (partition by n.entity_id) as seen
      from   newest n
    ) as e
  )
  select u.id, w.weight, u.place::double precision
  from   weighted w
  cross  join unnest(w.memory_ids) with ordinality as u(id, place);
end;
$$;
comment on function pgrecall_internal._mentioning is
'The newest 50 facts of each type about the 24 entities that weigh most. weight: strength of the '
'entity x rarity; place: among the facts of the entity and type, the newest 1.';

create or replace function pgrecall_internal._expanded(
  request pgrecall_internal.request, seeds bigint[], strengths double precision[])
returns table (memory_id bigint, entity_score double precision, semantic_score double precision,
               causal_score double precision)
language plpgsql stable parallel safe rows 1000
set search_path from current
set jit = off
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  bank text := (request.bank).bank_id;
begin
  return query
  with seed as materialized (
    select s.memory_id, max(coalesce(s.strength, 1)) as strength
    from   unnest(seeds, strengths) as s(memory_id, strength)
    group  by s.memory_id
  ),
  entity as (
    select array_agg(e.entity_id) as entity_ids, array_agg(e.strength) as strengths
    from (
      select x.entity_id, max(s.strength) as strength
      from   seed s
      cross  join lateral (
        select i.entity_id
        from   pgrecall.mention i
        where  i.bank_id = bank and i.memory_id = s.memory_id
        limit  100
      ) as x
      group  by x.entity_id
    ) as e
  ),
  edge as (
    select l.memory_id, l.kind, l.weight * s.strength as weight
    from   seed s
    cross  join lateral (
      (select o.to_id as memory_id, o.kind, o.weight
       from   pgrecall.link o
       where  o.bank_id = bank and o.from_id = s.memory_id and o.kind <> 'temporal'
       limit  100)
      union all
      (select t.from_id, t.kind, t.weight
       from  (select i.from_id, i.kind, i.weight
              from   pgrecall.link i
              where  i.bank_id = bank and i.to_id = s.memory_id and i.kind <> 'temporal'
              limit  1000) as t
       order  by t.weight desc, t.from_id desc
       limit  100)
    ) as l
  )
  select f.memory_id, tanh(0.5 * sum(f.entity_weight)), max(f.semantic_weight),
         max(f.causal_weight)
  from (
    -- Among equal shares the newest come first.
    select m.memory_id, m.weight * (1 - 0.002 * (m.place - 1)) as entity_weight,
           0::double precision as semantic_weight, 0::double precision as causal_weight
    from   entity e
    cross  join lateral pgrecall_internal._mentioning(request, e.entity_ids, e.strengths) as m
    union all
    select d.memory_id, 0,
           case when d.kind = 'semantic' then d.weight else 0 end,
           case when d.kind = 'semantic' then 0 else d.weight end
    from   edge d
  ) as f
  group  by f.memory_id;
end;
$$;
comment on function pgrecall_internal._expanded is
'Worker of link_expansion(): what it reaches, whether visible or not, in no order.';

create or replace function pgrecall.link_expansion(
  bank       text,
  seeds      bigint[],
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  strengths  double precision[] default null)
returns setof pgrecall.expanded
language plpgsql stable parallel safe rows 100
set search_path from current
as $$
declare
  request pgrecall_internal.request := pgrecall_internal._request(
    bank, '', fact_types => fact_types, filter => filter, as_of => as_of,
    options => jsonb_build_object('depth', depth), arm => 'graph');
  reached pgrecall.expanded[];
  places  integer[];
begin
  reached := array(
    select (e.memory_id, null, e.entity_score + e.semantic_score + e.causal_score, e.entity_score,
            e.semantic_score, e.causal_score)::pgrecall.expanded
    from   pgrecall_internal._expanded(request, seeds, strengths) as e
    order  by e.entity_score + e.semantic_score + e.causal_score desc, e.memory_id desc
  );
  places := pgrecall_internal._visible_places(
    request, array(select r.memory_id from unnest(reached) as r), request.depth);
  return query
  select (reached[p]).memory_id, n::integer, (reached[p]).score, (reached[p]).entity_score,
         (reached[p]).semantic_score, (reached[p]).causal_score
  from   unnest(places) with ordinality as u(p, n)
  order  by n;
end;
$$;
comment on function pgrecall.link_expansion is
'Memories one hop from the seeds; strengths, 0 to 1, are the weights of the seeds (1 when null): '
'entity_score = tanh(0.5 n) with n the rarity-weighted number of shared entities, semantic_score '
'the similarity of a semantic link in either direction, causal_score the weight of a causal one; '
'score is their sum, 0 to 3. The 24 entities that weigh most lead on, each to its newest 50 facts '
'of each type, of which the newest counts 1 and the last 0.9; links to a seed are the 100 '
'strongest of 1,000. Errors: RC001, RC008, RC011, 22023.';
