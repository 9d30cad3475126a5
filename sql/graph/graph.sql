-- The graph arm: what spreading activation finds from the best hits of the arms before it and from
-- the entities that the query names.
--
-- Six tenths of the mass start in hits, by the fifth power of their share of the best fused
-- score, so that a clear winner leads on and a crowd does not; the rest in the entities named, each
-- by its confidence over its number of mentions. Less starts there where many facts hold the words
-- of a name and few mention the entity, as with "album" or "first": then the question hardly means
-- it. Without one of the two the other gets all. Where an entity has more mentions than flows are
-- followed, as much starts in those facts about the named that fit the question best.
--
-- Only what a question asks for can reach a score of 1, at which arms() calls the arm certain.
-- Where the mass only stays in hits and spreads to their neighbours, less of the weight counts,
-- because the arm then adds little to the arms before it.
create or replace function pgrecall_internal._hit_masses(
  request pgrecall_internal.request, hits pgrecall.arm_hit[],
  arms pgrecall_internal.arm_found[], total double precision,
  out memory_ids bigint[], out masses double precision[])
language plpgsql immutable parallel safe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
declare
  boost   double precision := (request.options ->> 'named_boost')::double precision;
  k       integer := (request.options ->> 'rrf_k')::integer;
  weights jsonb := pgrecall_internal._doubted_weights(request.options, arms);
begin
  with arm as (
    select f.arm, f.best, (weights ->> f.arm)::double precision as weight
    from   unnest(arms) as f
    where  f.finds = 'memory'
  ),
  fused as (
    select h.memory_id,
           sum(a.weight * h.score / a.best
               * (1 + boost * coalesce(h.named, 0)) / (k + h.rank)) as score
    from   unnest(hits) as h
    join   arm a on a.arm = h.arm
    where  h.score > 0 and a.weight > 0
    group  by h.memory_id
  ),
  best as (
    select f.memory_id, (f.score / max(f.score) over ()) ^ 5 as share
    from   fused f
    order  by f.score desc, f.memory_id desc
    limit  50
  )
  select array_agg(s.memory_id order by s.share desc, s.memory_id desc),
         array_agg(total * (s.share / s.shares) order by s.share desc, s.memory_id desc)
  into   memory_ids, masses
  from   (select b.memory_id, b.share, sum(b.share) over () as shares from best b) as s;
end;
$$;
comment on function pgrecall_internal._hit_masses is
'The 50 best hits with the mass that each starts with, by the fifth power of its share of the best '
'score, by score-weighted RRF. total: the sum of the masses.';

create or replace function pgrecall_internal._entity_masses(
  request pgrecall_internal.request,
  out entity_ids bigint[], out masses double precision[], out sure double precision)
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
begin
  if request.named = '{}' then
    return;
  end if;
  with spelt as materialized (
    -- A word typed without accents stands for all its spellings.
    select pgrecall_internal._unaccented(s) as lexeme, pgrecall_internal._dimension(s) as dimension
    from   unnest((request.memory_terms).spellings) as s
  )
  select array_agg(e.entity_id), array_agg(e.mass / e.total), least(1, sum(e.sure))
  into   entity_ids, masses, sure
  from (
    select q.entity_id, q.confidence / n.facts as mass,
           sum(q.confidence / n.facts) over () as total,
           greatest(q.mentions, 1)::double precision / n.facts as sure
    from   unnest(request.named) as q
    cross  join lateral (
      select greatest(1, q.mentions, min(w.count)) as facts
      from (
        select sum(t.count)::bigint as count
        from   pgrecall.lexemes((request.bank).text_search_config::regconfig, q.matched) as l
        cross  join lateral (
          select pgrecall_internal._dimension(l.lexeme)
          union all
          select s.dimension from spelt s where s.lexeme = l.lexeme
        ) as d(dimension)
        join   unnest((request.memory_terms).dimensions, (request.memory_terms).counts)
                 as t(dimension, count)
          on   t.dimension = d.dimension
        group  by l.lexeme
      ) as w
    ) as n
  ) as e
  where  e.mass > 0;
end;
$$;
comment on function pgrecall_internal._entity_masses is
'The entities that a query names with the mass that each starts with, together 1: confidence over '
'the number of facts that mention it, or that hold the rarest word of its name, whichever is more. '
'sure: the share of those facts that mention it, summed, at most 1.';

create or replace function pgrecall_internal._named_masses(
  request pgrecall_internal.request, hits pgrecall.arm_hit[],
  entity_ids bigint[], entity_masses double precision[],
  inout memory_ids bigint[], inout masses double precision[], out is_added boolean)
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
declare
  thin double precision := (
    select sum(u.mass)
    from   unnest(entity_ids, entity_masses) as u(id, mass)
    join   unnest(request.named) as q on q.entity_id = u.id
    where  u.mass < q.mentions * pgrecall_internal._least_flow());
begin
  is_added := thin is not null and (request.about).memory_ids is not null;
  if not is_added then
    return;
  end if;
  select array_agg(m.id order by m.mass desc, m.id desc),
         array_agg(m.mass order by m.mass desc, m.id desc)
  into   memory_ids, masses
  from (
    select u.id, sum(u.mass) as mass
    from (
      select x.id, x.mass from unnest(memory_ids, masses) as x(id, mass)
      union all
      select b.id, thin * (b.score ^ 3 / sum(b.score ^ 3) over ())
      from (
        select f.id,
               f.named * (1 + f.similarity)
               -- Without the temporal arm, or any of its hits, the window says nothing.
               * case when max(f.proximity) over () > 0 then coalesce(f.proximity, 0) else 1 end
                 as score
        from (
          select h.memory_id as id, max(h.named)::double precision as named,
                 greatest(0, max(h.score) filter (where h.arm = 'semantic')) as similarity,
                 max(h.score) filter (where h.arm = 'temporal') as proximity
          from   unnest(hits) as h
          where  h.named > 0
          group  by h.memory_id
        ) as f
        order  by 2 desc, 1 desc
        limit  50
      ) as b
      where  b.score > 0
    ) as u
    group  by u.id
  ) as m;
end;
$$;
comment on function pgrecall_internal._named_masses is
'Memories and masses, and added to these, where an entity that a query names has too many mentions '
'for its mass to spread over, the 50 hits about the named that fit the question best, with that '
'mass: by the third power of the weights of the names, more for similarity, times the score in the '
'window.';

create or replace function pgrecall_internal._graph_search(
  request pgrecall_internal.request, hits pgrecall.arm_hit[],
  out memory_ids bigint[], out scores double precision[], out paths text[])
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
declare
  named_share constant double precision := 0.4;
  entity record := pgrecall_internal._entity_masses(request);
  share  double precision := case when entity.entity_ids is null then 1
                                  else 1 - named_share * entity.sure end;
  seed   record := pgrecall_internal._hit_masses(
    request, hits, coalesce(request.found, pgrecall_internal._arms_found(hits)), share);
  spread record;
  depth  integer;
begin
  if seed.memory_ids is null then
    share := 0;
  end if;
  for n in 1 .. coalesce(cardinality(entity.masses), 0) loop
    entity.masses[n] := (1 - share) * entity.masses[n];
  end loop;
  seed := pgrecall_internal._named_masses(
    request, hits, entity.entity_ids, entity.masses, seed.memory_ids, seed.masses);
  spread := pgrecall_internal._activated(
    request, coalesce(seed.memory_ids, '{}'), coalesce(seed.masses, '{}'),
    coalesce(entity.entity_ids, '{}'), coalesce(entity.masses, '{}'),
    (request.options ->> 'graph_steps')::integer);
  -- Where nothing leads on, the hits alone are no evidence from the graph.
  if not seed.is_added and position(E'\x1f' in array_to_string(spread.paths, '')) = 0 then
    memory_ids := '{}';
    return;
  end if;
  if request.during is not null and request.named = '{}' then
    -- Where nobody is named, the window anchors the question: memories outside it count less,
    -- whatever led to them.
    select array_agg(t.id order by t.score desc, t.id desc),
           array_agg(t.score order by t.score desc, t.id desc),
           array_agg(t.path order by t.score desc, t.id desc)
    into   spread.memory_ids, spread.scores, spread.paths
    from (
      select u.id, u.path,
             case when m.at && request.during then u.score else 0.1 * u.score end as score
      from   unnest(spread.memory_ids, spread.scores, spread.paths) as u(id, score, path)
      cross  join lateral (
        select coalesce(x.occurred, tstzrange(x.mentioned_at, x.mentioned_at, '[]')) as at
        from   pgrecall.memory x
        where  x.bank_id = (request.bank).bank_id and x.memory_id = u.id
        limit  1
      ) as m
    ) as t;
  end if;
  -- Beside other arms its second half changes no answer (bench/TRIED.md).
  depth := case when request.arms = '{graph}' then request.depth else (request.depth + 1) / 2 end;
  memory_ids := spread.memory_ids[:depth];
  scores := spread.scores[:depth];
  paths := spread.paths[:depth];
  if not pgrecall_internal._are_visible(request, memory_ids) then
    -- A join, because finding an element of an array of texts reads those before it.
    select array_agg(f.id order by f.n), array_agg(f.score order by f.n),
           array_agg(f.path order by f.n)
    into   memory_ids, scores, paths
    from   unnest(spread.memory_ids, spread.scores, spread.paths) with ordinality
             as f(id, score, path, n)
    join   unnest(pgrecall_internal._visible_places(request, spread.memory_ids, depth)) as p
      on   p = f.n;
  end if;
  memory_ids := coalesce(memory_ids, '{}');
end;
$$;
comment on function pgrecall_internal._graph_search is
'Hits of the graph arm, best first. paths: the path to each, as _activated() writes it.';

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
    (select true from pgrecall.mention x
     where  x.bank_id = _has_edge.bank
     order  by x.entity_id, x.fact_type, x.memory_id
     limit  1),
    (select true from pgrecall.link l
     where  l.bank_id = _has_edge.bank
     order  by l.from_id, l.kind, l.to_id
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
set plan_cache_mode = force_generic_plan
as $$
declare
  result pgrecall_internal.arm_result;
  silent constant jsonb := pgrecall_internal._silent_sources(request.bank);
  search record;
begin
  result.is_run := false;
  if request.query = '' and request.embedding is null then
    result.reason := 'there is nothing to start from';
  elsif coalesce((request.named[1]).mentions, 0) = 0
        and not pgrecall_internal._has_edge((request.bank).bank_id) then
    result.reason := 'the bank holds neither entities nor links';
  elsif is_planned then
    result.is_run := true;
    result.reason := 'entities and links may lead on from what the arms before find';
  else
    if before = '{}' and request.arms is not null then
      -- Alone, without the arms before it, the graph arm asks two itself.
      before := pgrecall_internal._named_hits(
        request,
        (pgrecall_internal._call_arm('semantic', request, '{}', false)).hits
        || (pgrecall_internal._call_arm('lexical', request, '{}', false)).hits);
    end if;
    if silent <> '{}' then
      before := array(
        select h from unnest(before) as h
        where  pgrecall_internal._is_heard(request.bank, silent, h.memory_id));
    end if;
    search := pgrecall_internal._graph_search(request, before);
    result.is_run := true;
    result.memory_ids := search.memory_ids;
    result.scores := search.scores;
    result.paths := search.paths;
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
'Memories that mentions, relations, causal and temporal links lead to, from the best of the '
'semantic and lexical arms and from the entities that the query names, by spreading activation in '
'option graph_steps steps. score: the square root of the mass that reached a memory, 0 upwards; '
'one on a path of relations or causes that the query asks for counts ten times for each. Errors: '
'RC001, RC004, RC005, RC006, RC008, RC011, 22023.';

create or replace function pgrecall.link_expansion(
  bank       text,
  seeds      bigint[],
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  strengths  double precision[] default null)
returns setof pgrecall.expanded
language plpgsql stable parallel unsafe rows 100
set search_path from current
as $$
declare
  request pgrecall_internal.request := pgrecall_internal._request(
    bank, '', fact_types => fact_types, filter => filter, as_of => as_of,
    options => jsonb_build_object('depth', depth), arm => 'graph');
  seed    record;
  spread  record;
begin
  if exists (select from unnest(strengths) as s(strength)
             where s.strength not between 0 and 1e100) then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'strengths must be numbers from 0 to 1e100',
      hint    = 'Pass one for each seed, such as the score of its hit.';
  end if;
  select array_agg(s.id) as ids, array_agg(s.strength / s.total) as masses
  into   seed
  from (
    select u.id, max(coalesce(u.strength, 1)) as strength,
           sum(max(coalesce(u.strength, 1))) over () as total
    from   unnest(seeds, strengths) as u(id, strength)
    where  u.id is not null
    group  by u.id
    having max(coalesce(u.strength, 1)) > 0
  ) as s;
  spread := pgrecall_internal._activated(
    request, coalesce(seed.ids, '{}'), coalesce(seed.masses, '{}'), '{}', '{}', 2);
  return query
  select spread.memory_ids[u.p], row_number() over (order by u.n)::integer, spread.scores[u.p],
         case when l.is_causal then 0 else spread.scores[u.p] end, 0::double precision,
         case when l.is_causal then spread.scores[u.p] else 0 end
  from   unnest(pgrecall_internal._visible_places(
           request, spread.memory_ids, request.depth)) with ordinality as u(p, n)
  cross  join lateral (
    select spread.paths[u.p] ~ E'\x1f[*](cause|effect)\x1ff[0-9]+$' as is_causal
  ) as l
  order  by u.n;
end;
$$;
comment on function pgrecall.link_expansion is
'The seeds, and memories that the graph leads to from them in two steps. strengths, 0 and more, '
'are the shares of the seeds (equal when null). score is that of graph_arm(). entity_score is the '
'score where the last step was an entity, a relation or a link in time, causal_score where it was '
'a causal link; semantic_score is 0. Errors: RC001, RC008, RC011, 22023.';

create or replace function pgrecall.entity_walk(
  bank       text,
  query      text,
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  hops       integer default null)
returns setof pgrecall.ranked
language plpgsql stable parallel unsafe rows 100
set search_path from current
as $$
declare
  request pgrecall_internal.request := pgrecall_internal._request(
    bank, query, fact_types => fact_types, filter => filter, as_of => as_of,
    options => jsonb_build_object('depth', depth), arm => 'graph');
  entity  record;
  spread  record;
begin
  hops := coalesce(hops, 2);
  perform pgrecall_internal._check_range('hops', hops, 0, 3);
  entity := pgrecall_internal._entity_masses(request);
  spread := pgrecall_internal._activated(
    request, '{}', '{}', coalesce(entity.entity_ids, '{}'), coalesce(entity.masses, '{}'),
    hops + 1);
  return query
  select spread.memory_ids[u.p], u.n::integer, spread.scores[u.p]
  from   unnest(pgrecall_internal._visible_places(request, spread.memory_ids, request.depth))
           with ordinality as u(p, n)
  order  by u.n;
end;
$$;
comment on function pgrecall.entity_walk is
'Memories about the entities named in a query and about entities up to hops relations away (0 to '
'3; 2 when null), best first. score is that of graph_arm(). Relations that the query asks for come '
'first. Errors: RC001, RC008, RC011, 22023.';
