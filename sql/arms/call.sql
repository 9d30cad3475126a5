-- How an arm is called: by name, from the run of a recall or alone.
create or replace function pgrecall_internal._call_arm(
  arm text, request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean,
  out result pgrecall_internal.arm_result, out hits pgrecall.arm_hit[])
language plpgsql stable parallel unsafe
set search_path from current
as $$
begin
  -- Dynamic, so that nothing here names an arm; the name is that of a row of the registry.
  execute format('select * from pgrecall_internal.%I($1, $2, $3)', format('_%s_arm', arm))
  into    result
  using   request, before, is_planned;
  hits := '{}';
  if result.is_run and not is_planned then
    hits := array(
      -- Equal scores share a rank: the order of storing is no evidence.
      select (arm, u.id, rank() over (order by u.score desc)::integer, u.score, null,
              u.via, result.background)::pgrecall.arm_hit
      from   unnest(result.memory_ids, result.scores, result.vias)
               with ordinality as u(id, score, via, n)
      order  by u.n
    );
  end if;
end;
$$;
comment on function pgrecall_internal._call_arm is
'Calls the worker of an arm; returns its result, and its hits with ranks.';

create or replace function pgrecall_internal._ranked(
  arm text, request pgrecall_internal.request)
returns setof pgrecall.ranked
language plpgsql stable parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select h.memory_id, h.rank, h.score
  from   unnest((pgrecall_internal._call_arm(arm, request, '{}', false)).hits) as h;
end;
$$;
comment on function pgrecall_internal._ranked is 'The rows of an arm that is called alone.';

create or replace function pgrecall_internal._named_hits(
  request pgrecall_internal.request, hits pgrecall.arm_hit[])
returns pgrecall.arm_hit[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  ids         bigint[];
  confidences real[];
begin
  if request.named = '{}' then
    return hits;
  end if;
  with entity as materialized (
    -- The graph leads on from a rare name; from a common one its mass spreads too thin.
    select q.entity_id,
           q.confidence * (1 - pgrecall_internal._rarity(
             m.count, coalesce((request.memory_terms).documents, 1))) as confidence
    from   unnest(request.named) as q
    cross  join lateral pgrecall_internal._mentions((request.bank).bank_id, q.entity_id) as m
  )
  select array_agg(n.memory_id), array_agg(n.confidence)
  into   ids, confidences
  from (
    select m.memory_id, max(e.confidence)::real as confidence
    from   entity e
    cross  join lateral (
      -- Asked of each hit: one search for all reads every mention of a hub in a fresh bank.
      select h.memory_id
      from   (select distinct x.memory_id from unnest(hits) as x) as h
      where  coalesce(
               (select true from pgrecall.mention x
                where  x.bank_id = (request.bank).bank_id and x.memory_id = h.memory_id
                  and  x.entity_id between e.entity_id and e.entity_id
                limit  1), false)
    ) as m
    group  by m.memory_id
  ) as n;
  if ids is null then
    return hits;
  end if;
  return array(
    select (h.arm, h.memory_id, h.rank, h.score, n.confidence, h.via,
            h.background)::pgrecall.arm_hit
    from   unnest(hits) with ordinality
             as h(arm, memory_id, rank, score, named, via, background, place)
    left   join unnest(ids, confidences) as n(memory_id, confidence) on n.memory_id = h.memory_id
    order  by h.place
  );
end;
$$;
comment on function pgrecall_internal._named_hits is
'The hits, each with the confidence that its memory mentions an entity named in the query, times '
'how common the entity is: 1 less its rarity.';

create or replace function pgrecall_internal._doubted_weights(
  weights jsonb, hits pgrecall.arm_hit[], doubt double precision)
returns jsonb
language plpgsql immutable parallel safe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
declare
  words     double precision[] := array(
    select h.score from unnest(hits) as h where h.arm = 'lexical' order by h.score desc limit 11);
  sureness  double precision;
  certainty double precision;
  doubted   record;
begin
  if doubt = 0 or coalesce(words[1], 0) <= 0 then
    return weights;
  end if;
  sureness := (1 - coalesce(words[11], 0) / words[1] - 0.5) / 0.2;
  for doubted in
    select h.arm, max(h.score) as best, max(h.background) as background
    from   unnest(hits) as h
    where  h.background is not null
    group  by h.arm
    having max(h.score) > 0
  loop
    certainty := (1 - doubted.background / doubted.best - 0.3) / 0.3;
    weights := weights || jsonb_build_object(
      doubted.arm,
      coalesce((weights ->> doubted.arm)::double precision, 1)
      * (1 - doubt * greatest(0, least(1, sureness)) * (1 - greatest(0, least(1, certainty)))));
  end loop;
  -- The graph votes once more for what others found, but leads to no message: those keep a share.
  return weights || coalesce((
    select jsonb_object_agg(m.arm, (weights ->> m.arm)::double precision * (1 + g.weight))
    from   pgrecall.arms() as m
    cross  join (select max((weights ->> a.arm)::double precision) as weight
                 from   pgrecall.arms() as a
                 where  a.needs = '{names}'
                   and  exists (select from unnest(hits) as h where h.arm = a.arm)) as g
    where  m.finds = 'message' and g.weight > 0 and weights ? m.arm), '{}');
end;
$$;
comment on function pgrecall_internal._doubted_weights is
'The weights, less of an arm that compares embeddings where it can hardly tell memories apart and '
'words can. Certainty falls from 1 to 0 as the best similarity, less its background, falls from '
'0.6 to 0.3 of itself; sureness of words rises as the lexical score falls by 0.5 to 0.7 of itself '
'up to the eleventh hit. A weight is multiplied by 1 - doubt * sureness * (1 - certainty).';
