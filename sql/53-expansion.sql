-- Link expansion: from seeds to memories one hop away in the graph.
--
-- A hop is a shared entity, a semantic link in either direction, or a causal link. Entities are
-- weighted by rarity, so that one in every fact adds nothing; the newest facts of each entity and
-- the strongest links of each seed are followed, so that a hub costs no more than another. Without
-- statistics the planner underestimates joins: lateral subqueries with a limit force lookups by id,
-- a few at a time; so does "is not distinct from" on a type, which rules out the index that begins
-- with the type.
create or replace function pgrecall_internal._link_expansion(
  request pgrecall_internal.request, seeds bigint[], strengths double precision[])
returns setof pgrecall.expanded
language plpgsql stable parallel safe rows 100
set search_path from current
set jit = off
as $$
begin
  return query execute format(
    $sql$
      with seed as (
        select s.memory_id, max(coalesce(s.strength, 1)) as strength
        from   unnest($5, $7) as s(memory_id, strength)
        group  by s.memory_id
      ),
      -- Entities of the seeds, each weighted by rarity; counting stops where it has no effect.
      entity as (
        select e.entity_id, e.strength * pgrecall_internal._rarity(c.mentions, $6) as weight
        from (
          select x.entity_id, max(s.strength) as strength
          from   seed s
          cross  join lateral (
            select i.entity_id
            from   pgrecall.mention i
            where  i.bank_id = $1 and i.memory_id = s.memory_id
            limit  100
          ) as x
          group  by x.entity_id
        ) as e
        cross join lateral (
          select count(*) as mentions from (
            select from pgrecall.mention x
            where  x.bank_id = $1 and x.entity_id = e.entity_id
            limit  1000
          ) as bounded
        ) as c
      ),
      edge as (
        select l.memory_id, l.kind, l.weight * s.strength as weight
        from   seed s
        cross  join lateral (
          (select o.to_id as memory_id, o.kind, o.weight
           from   pgrecall.link o
           where  o.bank_id = $1 and o.from_id = s.memory_id and o.kind <> 'temporal'
           limit  100)
          union all
          (select t.from_id, t.kind, t.weight
           from  (select i.from_id, i.kind, i.weight
                  from   pgrecall.link i
                  where  i.bank_id = $1 and i.to_id = s.memory_id and i.kind <> 'temporal'
                  limit  1000) as t
           order  by t.weight desc, t.from_id desc
           limit  100)
        ) as l
      ),
      edge_score as (
        select e.memory_id,
               coalesce(max(e.weight) filter (where e.kind = 'semantic'), 0) as semantic_score,
               coalesce(max(e.weight) filter (where e.kind <> 'semantic'), 0) as causal_score
        from   edge e
        group  by e.memory_id
      ),
      found as (%s)
      select f.memory_id,
             row_number() over (order by f.total desc, f.memory_id desc)::integer,
             f.total, f.entity_score, f.semantic_score, f.causal_score
      from (
        select u.memory_id, tanh(0.5 * sum(u.entity_weight)) as entity_score,
               max(u.semantic_score) as semantic_score,
               max(u.causal_score) as causal_score,
               tanh(0.5 * sum(u.entity_weight)) + max(u.semantic_score) + max(u.causal_score)
                 as total
        from   found u
        group  by u.memory_id
      ) as f
      order  by f.total desc, f.memory_id desc
      limit  $4
    $sql$,
    pgrecall_internal._union_all(
      $sql$
        select x.memory_id, x.entity_weight, x.semantic_score, x.causal_score
        from (
          -- Among equal shares the newest come first.
          select t.memory_id, e.weight * (1 - 0.002 * (t.place - 1)) as entity_weight,
                 0::double precision as semantic_score, 0::double precision as causal_score
          from   entity e
          cross  join lateral (
            select y.memory_id, row_number() over (order by y.memory_id desc) as place
            from   pgrecall.mention y
            where  y.bank_id = $1 and y.entity_id = e.entity_id and y.fact_type = {fact_type}
            order  by y.memory_id desc
            limit  50
          ) as t
          union all
          select s.memory_id, 0, s.semantic_score, s.causal_score from edge_score s
        ) as x
        cross  join lateral (
          select from pgrecall.memory m
          where  m.bank_id = $1 and m.memory_id = x.memory_id
            and  m.fact_type is not distinct from {fact_type}
            and  $sql$ || request.visible_sql || $sql$
          limit  1
        ) as visible
      $sql$,
      request.fact_types)
  )
  using (request.bank).bank_id, request.as_of, request.filter, request.depth, seeds,
        coalesce((request.memory_terms).documents, 1), strengths;
end;
$$;
comment on function pgrecall_internal._link_expansion is
'Worker of link_expansion(). It is longer than 100 lines since it is one statement, a common table '
'expression per step.';

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
begin
  return query
  select * from pgrecall_internal._link_expansion(
    request, seeds, strengths);
end;
$$;
comment on function pgrecall.link_expansion is
'Memories one hop from the seeds; strengths, 0 to 1, are the weights of the seeds (1 when null): '
'entity_score = tanh(0.5 n) with n the rarity-weighted number of shared entities, semantic_score '
'the similarity of a semantic link in either direction, causal_score the weight of a causal one; '
'score is their sum, 0 to 3. An entity leads to its newest 50 facts of each type, of which the '
'newest counts 1 and the last 0.9; links to a seed are the 100 strongest of 1,000. Errors: RC001, '
'RC008, RC011, 22023.';
