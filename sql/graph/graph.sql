-- The graph arm: memories reached by entities, relations and links from the best hits of other
-- arms.
--
-- It adds up three parts: link expansion from the 20 best hits of the semantic and lexical arms
-- each (graph/expansion.sql), the walk along relations from the entities that the query names
-- (graph/walk.sql), and the temporal neighbours of the best hits that mention a named entity: the
-- answer often follows them. What scores below the floor by the first two is left out.
create or replace function pgrecall_internal._seed_strengths(seeds pgrecall.arm_hit[])
returns table (memory_id bigint, strength double precision)
language sql immutable parallel safe
begin atomic
  select s.memory_id, max(10.0 / (9 + s.rank))::double precision
  from   unnest(seeds) as s
  where  s.arm in ('semantic', 'lexical') and s.rank <= 20
  group  by s.memory_id;
end;
comment on function pgrecall_internal._seed_strengths is
'Seeds of the graph and their strengths: the 20 best hits of the semantic and of the lexical arm, '
'the first with strength 1, the eleventh with half of it.';

create or replace function pgrecall_internal._graph_score(
  entity_score double precision, semantic_score double precision, causal_score double precision)
returns double precision
language sql immutable parallel safe
-- A semantic neighbour of a hit is mostly redundant: it supports other evidence, with a low weight.
return entity_score + 0.3 * semantic_score + causal_score;
comment on function pgrecall_internal._graph_score is
'Contribution of link_expansion() to the score of the graph arm.';

create or replace function pgrecall_internal._graph_floor()
returns double precision
language sql immutable parallel safe
return 0.5;
comment on function pgrecall_internal._graph_floor is
'Score threshold of the graph arm: memories below it share little more than a frequent name.';

create or replace function pgrecall_internal._temporal_neighbours(
  request pgrecall_internal.request, seeds pgrecall.arm_hit[])
returns table (memory_id bigint, score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
set jit = off
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  bank text := (request.bank).bank_id;
begin
  if request.named = '{}' then
    return;
  end if;

  return query
  with recursive seed as materialized (
    select s.memory_id, sum(s.score / a.best) / max(a.arms) as strength
    from   unnest(seeds) as s
    join  (select h.arm, max(h.score) as best, count(*) over () as arms
           from   unnest(seeds) as h
           where  h.arm in ('semantic', 'lexical')
           group  by h.arm) as a on a.arm = s.arm
    where  s.rank <= 20 and s.score > 0
    group  by s.memory_id
  ),
  walk (memory_id, strength, step) as (
    select s.memory_id, s.strength, 0 from seed s
    union all
    select n.memory_id, w.strength * n.weight * (array[1, 0.5])[w.step + 1], w.step + 1
    from   walk w
    cross  join lateral (
      (select o.to_id as memory_id, o.weight
       from   pgrecall.link o
       where  o.bank_id = bank and o.from_id = w.memory_id and o.kind = 'temporal'
       limit  1)
      union all
      (select t.from_id, t.weight
       from  (select i.from_id, i.weight
              from   pgrecall.link i
              where  i.bank_id = bank and i.to_id = w.memory_id and i.kind = 'temporal'
              limit  20) as t
       order  by t.weight desc, t.from_id
       limit  1)
    ) as n
    where  w.step < 2
  ),
  reached as (
    select w.memory_id, max(w.strength * (array[0.5, 1, 1])[w.step + 1]) as strength
    from   walk w
    group  by w.memory_id
  )
  select r.memory_id, r.strength * e.confidence
  from   (select x.* from reached x where x.strength >= 0.1) as r
  cross  join lateral (
    select max(q.confidence) as confidence
    from   unnest(request.named) as q
    cross  join lateral (
      select from pgrecall.mention x
      where  x.bank_id = bank and x.memory_id = r.memory_id
        and  x.entity_id = q.entity_id
      limit  1
    ) as stated
  ) as e
  where  r.strength * e.confidence >= 0.1;
end;
$$;
comment on function pgrecall_internal._temporal_neighbours is
'Memories that mention an entity of the query and are among the 20 best of the semantic and '
'lexical arms, or up to two temporal links from one: the answer often follows them. score = '
'confidence of the entity x strength of the seed (its scores over the best of each arm, the mean) '
'x 0.5 for the seed itself, 1 and 0.5 for one and two links x their weights; scores below 0.1 are '
'left out.';

create or replace function pgrecall_internal._graph_seeds(request pgrecall_internal.request)
returns pgrecall.arm_hit[]
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  semantic pgrecall_internal.arm_result;
  lexical  pgrecall_internal.arm_result;
begin
  request.depth := 20;
  semantic := pgrecall_internal._semantic_arm(request, '{}', false);
  lexical := pgrecall_internal._lexical_arm(request, '{}', false);
  return pgrecall_internal._arm_hits('semantic', semantic)
         || pgrecall_internal._arm_hits('lexical', lexical);
end;
$$;
comment on function pgrecall_internal._graph_seeds is
'Seeds of the graph arm where it runs without the arms that find them: the 20 best of the semantic '
'and of the lexical arm.';

create or replace function pgrecall_internal._graph_search(
  request pgrecall_internal.request, seeds pgrecall.arm_hit[],
  out memory_ids bigint[], out scores double precision[])
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  ids       bigint[];
  strengths double precision[];
  places    integer[];
begin
  select array_agg(s.memory_id), array_agg(s.strength)
  into   ids, strengths
  from   pgrecall_internal._seed_strengths(seeds) as s;

  select array_agg(t.memory_id order by t.score desc, t.memory_id desc),
         array_agg(t.score order by t.score desc, t.memory_id desc)
  into   memory_ids, scores
  from (
    select u.memory_id, sum(u.score) as score
    from (
      select l.memory_id, sum(l.score) as score
      from (
        select e.memory_id,
               pgrecall_internal._graph_score(
                 e.entity_score, e.semantic_score, e.causal_score) as score
        from   pgrecall_internal._expanded(request, ids, strengths) as e
        union all
        select w.memory_id, w.score
        from   pgrecall_internal._walked(request, pgrecall.query_hops(request.query)) as w
      ) as l
      group  by l.memory_id
      having sum(l.score) >= pgrecall_internal._graph_floor()
      union all
      select a.memory_id, a.score
      from   pgrecall_internal._temporal_neighbours(request, seeds) as a
    ) as u
    group  by u.memory_id
  ) as t;
  places := pgrecall_internal._visible_places(request, memory_ids, request.depth);
  select coalesce(array_agg(memory_ids[u.p] order by u.n), '{}'),
         coalesce(array_agg(scores[u.p] order by u.n), '{}')
  into   memory_ids, scores
  from   unnest(places) with ordinality as u(p, n);
end;
$$;
comment on function pgrecall_internal._graph_search is
'Hits of expansion, walk and temporal neighbours together, best first.';

create or replace function pgrecall_internal._has_edge(bank text)
returns boolean
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return coalesce(
    (select true from pgrecall.link l
     where  l.bank_id = _has_edge.bank
     order  by l.from_id, l.kind, l.to_id
     limit  1),
    (select true from pgrecall.mention x
     where  x.bank_id = _has_edge.bank
     order  by x.entity_id, x.fact_type, x.memory_id
     limit  1),
    false);
end;
$$;
comment on function pgrecall_internal._has_edge is 'Whether a bank holds an entity or a link.';

create or replace function pgrecall_internal._graph_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  result pgrecall_internal.arm_result;
  seeds  pgrecall.arm_hit[];
begin
  result.is_run := false;
  if request.query = '' and request.embedding is null then
    result.reason := 'there is nothing to start from';
  elsif not pgrecall_internal._has_edge((request.bank).bank_id) then
    result.reason := 'the bank holds neither entities nor links';
  elsif is_planned then
    result.is_run := true;
    result.reason := 'entities and links may lead on from what the arms before find';
  else
    seeds := case when request.arms is null or request.arms && '{semantic,lexical}' then before
                  else pgrecall_internal._graph_seeds(request) end;
    select true, s.memory_ids, s.scores
    into   result.is_run, result.memory_ids, result.scores
    from   pgrecall_internal._graph_search(request, seeds) as s;
    if result.memory_ids = '{}' and request.arms is null
       and request.options ->> 'budget' <> 'high'
    then
      result.is_run := false;
      result.reason := 'no entity or link leads on from what the arms before found';
    end if;
  end if;
  return result;
end;
$$;
comment on function pgrecall_internal._graph_arm is 'Worker of the graph arm.';

create or replace function pgrecall.graph_arm(
  bank       text,
  query      text,
  embedding  anycompatible default null::text,
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null)
returns setof pgrecall.ranked
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select * from pgrecall_internal._ranked('graph', pgrecall_internal._request(
    bank, query, pgrecall_internal._to_halfvec(embedding), fact_types => fact_types,
    filter => filter, as_of => as_of, model => model,
    options => jsonb_build_object('depth', depth), arm => 'graph'));
end;
$$;
comment on function pgrecall.graph_arm is
'Memories that relations lead to: link_expansion() from the 20 best of the semantic and lexical '
'arms each, entity_walk(), and memories that mention an entity of the query and are among those '
'best or up to two temporal links from one. score = entity_score + 0.3 semantic_score + '
'causal_score + the walk, left out below 0.5 as noise, + 0.1 to 1 for temporal neighbours. Errors: '
'RC001, RC004, RC005, RC006, RC008, RC011, 22023.';
