-- Spreading activation: what the graph leads to from hits and from the entities that a query names.
--
-- Facts and entities are nodes; mentions, relations, causal and temporal links are edges. Mass
-- starts at the best hits and at the named entities, and moves along the edges of a node in
-- proportion to their weights. No mass is added, so that a hub spreads thin by itself, and nothing
-- is cut off by its id. An entity that the question does not name, with n edges, gives a fact that
-- mentions it 1 / n of its mass, from four edges on 4 / n of that: that facts share what many
-- mention says little. Where it names nobody, an entity that one of several hits mentions alone
-- leads nowhere: what else the author of a message has said is seldom an answer. A flow below
-- least_flow is not followed, nor are the edges of a node that holds less than two (forward push:
-- Andersen, Chung and Lang 2006), which bounds a step to 1 / least_flow flows in a bank of any
-- size. The score of a fact is the mass that arrives in it, weighted by its path.
--
-- What a question asks for conditions edges: a causal link in the direction that it asks for weighs
-- a hundred times as much and costs no step of option graph_steps, and the relations that it asks
-- for are walked (walk.sql). Where it asks for no cause, a path of causal links is as short as any
-- other, and such a link weighs ten times a mention behind one clear hit and less behind a crowd:
-- of the events of a month, those with causes would outvote the others. What prevents something is
-- no cause of it: beside causes it counts a tenth, unless it is asked for. Where it names somebody,
-- causes are those of hits about them: of other hits with causal links a twentieth counts. So
-- chains of relations, causes and their roots, facts that share a rare entity, and what was said
-- just before or after come from one graph.
-- Likeness is no edge: what it leads to, the semantic arm finds, and spreading over it costs
-- answers (bench/TRIED.md).
--
-- What a source says that is in no answer, by its trust or in quarantine, leads nowhere.
--
-- A path is a text of elements: fID for a fact, eID for an entity, >KIND:ID and <KIND:ID for a
-- relation along and against its direction with the fact that states it, *cause and *effect for
-- causal links.
create or replace function pgrecall_internal._has_cause(bank text, memory_ids bigint[])
returns boolean
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  -- A search for each memory: with an array of ids the planner may prefer to read all links.
  return exists (
    select from unnest(memory_ids) as u(id)
    where  coalesce(
             (select true from pgrecall.link o
              where  o.bank_id = _has_cause.bank and o.from_id = u.id
                and  o.kind between 'caused_by' and 'prevents'
              limit  1),
             (select true from pgrecall.link i
              where  i.bank_id = _has_cause.bank and i.to_id = u.id
                and  i.kind between 'caused_by' and 'prevents'
              limit  1),
             false)
  );
end;
$$;
comment on function pgrecall_internal._has_cause is
'Whether a causal link begins or ends at any of the memories.';

create or replace function pgrecall_internal._least_flow()
returns double precision
language sql immutable parallel safe
return 0.002;
comment on function pgrecall_internal._least_flow is
'The share of all mass below which a flow is not followed.';

create or replace function pgrecall_internal._activated(
  request pgrecall_internal.request,
  hit_ids bigint[], hit_masses double precision[],
  entity_ids bigint[], entity_masses double precision[],
  steps integer,
  out memory_ids bigint[], out scores double precision[], out paths text[])
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  least_flow constant double precision := pgrecall_internal._least_flow();
  decay      constant double precision := 0.7;
  -- Seeds that a caller gives are no hits of a question.
  is_crowd   constant boolean := entity_ids = '{}' and cardinality(hit_ids) > 1
                                 and (request.query <> '' or request.embedding is not null);
  bank       constant text := (request.bank).bank_id;
  silent     constant jsonb := pgrecall_internal._silent_sources(request.bank);
  asked      record := pgrecall_internal._asked_edges(request);
  walked     record := pgrecall_internal._walked(
    request, asked.keys, asked.bits, hit_ids, hit_masses, entity_ids, entity_masses);
  -- The nodes that hold mass now: one for each way of having come there.
  ids          bigint[] := hit_ids || entity_ids;
  are_entities boolean[] := array_fill(false, array[cardinality(hit_ids)])
                            || array_fill(true, array[cardinality(entity_ids)]);
  are_caused   boolean[] := array_fill(false, array[cardinality(ids)]);  -- by links asked for
  unasked      integer[] := array_fill(0, array[cardinality(ids)]);  -- steps nobody asked for
  masses       double precision[] := hit_masses || entity_masses;
  ways         text[] := array_fill(null::text, array[cardinality(ids)]);  -- null: begins there
  -- Of all steps.
  all_ids      bigint[] := coalesce(walked.memory_ids, '{}');
  all_scores   double precision[] := coalesce(walked.scores, '{}');
  all_ways     text[] := coalesce(walked.paths, '{}');
  -- Of one step.
  fact_ids     bigint[];
  fact_scores  double precision[];
  fact_ways    text[];
begin
  if asked.causes is not null and entity_ids <> '{}'
     and pgrecall_internal._has_cause(bank, hit_ids)
  then
    -- Where a hit is about an entity that the question names, the causes of other hits matter
    -- little.
    masses := array(
      select case when bool_or(h.is_anchored) over () and not h.is_anchored then 0.05 * h.mass
                  else h.mass end
      from (
        select u.mass, u.n, coalesce(
                 (select true from pgrecall.mention m
                  where  m.bank_id = bank and m.memory_id = u.id
                    and  m.entity_id = any (entity_ids)
                  limit  1), false) as is_anchored
        from   unnest(hit_ids, hit_masses) with ordinality as u(id, mass, n)
      ) as h
      order  by h.n) || entity_masses;
  end if;
  all_ids := all_ids || hit_ids;
  all_scores := all_scores || masses[:cardinality(hit_ids)];
  all_ways := all_ways || ways[:cardinality(hit_ids)];
  for step in 0 .. steps + 1 loop
    -- Where all steps are taken, causal links alone lead on, where the question asks for causes;
    -- steps is at least 1.
    if step >= steps and not asked.is_root then
      exit when asked.causes is null;
      exit when not steps > any (unasked)
            and not pgrecall_internal._has_cause(bank, coalesce(fact_ids, '{}'));
    end if;

    with node as materialized (
      select u.id, u.is_entity, u.is_caused, u.unasked, u.mass,
             coalesce(u.way, case when u.is_entity then 'e' else 'f' end || u.id) as way,
             (ceil(u.mass / least_flow))::integer as most
      from   unnest(ids, are_entities, are_caused, unasked, masses, ways)
               as u(id, is_entity, is_caused, unasked, mass, way)
      where  u.mass >= 2 * least_flow
    ),
    -- The sum of the weights is computed for each node: over all sorted edges, the step took a
    -- tenth longer.
    edge as (
      -- Of facts. A fact keeps a share: one with a single edge passes on half.
      select n.is_caused or x.is_caused as is_caused, n.unasked, n.mass, n.way, x.id,
             x.is_entity, x.label, null::bigint as memory_id, x.is_asked, x.weight,
             x.total + 1 as total
      from   node n
      cross  join lateral (select y.*, sum(y.weight) over () as total from (
        (select m.entity_id, true, null, false, false, 1::double precision
         from   pgrecall.mention m
         where  n.unasked < steps and m.bank_id = bank and m.memory_id = n.id
         limit  100)
        union all
        select l.id, false, l.label,
               coalesce(l.label = '*' || asked.causes, false), l.label is not null,
               l.weight * case when l.label is null then 3
                               when l.label = '*' || asked.causes then 100
                               when asked.causes is not null then 3
                               else 10 * coalesce((
                                 -- 1 for one hit, 1 / n for n alike.
                                 select sum(m ^ 2) / nullif(sum(m) ^ 2, 0)
                                 from   unnest(hit_masses) as m), 1) end
               * case when l.is_prevention and not asked.is_prevention and bool_or(
                             l.label = '*' || asked.causes and not l.is_prevention) over ()
                      then 0.1 else 1 end
        from (
          -- An update has the causes of what it updated, which would take a share of them, or
          -- its place.
          (select o.to_id as id, o.weight, o.kind = 'prevents' as is_prevention,
                  case o.kind when 'temporal' then null when 'caused_by' then '*cause'
                              else '*effect' end as label
           from   pgrecall.link o
           where  o.bank_id = bank and o.from_id = n.id
             and  case when o.kind = 'temporal' then n.unasked < steps else (
                    select true from pgrecall.memory m
                    where  m.bank_id = bank and m.memory_id = o.to_id
                      and  m.valid_from <= request.as_of
                      and  (m.valid_to is null or m.valid_to > request.as_of
                            or m.corrections -> -1 ->> 'kind' is distinct from 'update')
                    limit  1) end
           limit  100)
          union all
          (select i.from_id, i.weight, i.kind = 'prevents',
                  case i.kind when 'temporal' then null when 'caused_by' then '*effect'
                              else '*cause' end
           from   pgrecall.link i
           where  i.bank_id = bank and i.to_id = n.id
             and  case when i.kind = 'temporal' then n.unasked < steps else (
                    select true from pgrecall.memory m
                    where  m.bank_id = bank and m.memory_id = i.from_id
                      and  m.valid_from <= request.as_of
                      and  (m.valid_to is null or m.valid_to > request.as_of
                            or m.corrections -> -1 ->> 'kind' is distinct from 'update')
                    limit  1) end
           limit  100)
        ) as l
        union all
        -- A root has nothing behind it: the mass that arrives there stays.
        select n.id, false, 'stay', true, true, 10
        where  asked.is_root and n.is_caused
      ) as y(id, is_entity, label, is_caused, is_asked, weight)) as x
      where  not n.is_entity
      union all
      -- Of entities.
      select n.is_caused, n.unasked, n.mass, n.way, x.id, x.is_entity, x.label, x.memory_id, false,
             x.weight,
             x.total * case when step > 0 and x.label is null then greatest(1, x.total / 4)
                            else 1 end
      from   node n
      cross  join lateral (select y.*, sum(y.weight) over () as total from (
        (select m.memory_id, false, null, null::bigint, 1::double precision
         from   pgrecall.mention m
         where  m.bank_id = bank and m.entity_id = n.id
         order  by m.fact_type desc, m.memory_id desc
         -- Beside hits, what is too little for each is followed nowhere.
         limit  n.most + (hit_ids <> '{}')::integer)
        union all
        select r.id, true, r.label, r.memory_id, r.confidence
        from (
          (select o.to_id as id, '>' || o.kind as label, o.memory_id, o.confidence, o.valid_from
           from   pgrecall.relation o
           where  o.bank_id = bank and o.from_id between n.id and n.id
           order  by o.from_id desc, o.relation_id desc
           limit  n.most)
          union all
          (select i.from_id, '<' || i.kind, i.memory_id, i.confidence, i.valid_from
           from   pgrecall.relation i
           where  i.bank_id = bank and i.to_id between n.id and n.id
           order  by i.to_id desc, i.relation_id desc
           limit  n.most)
        ) as r
        cross  join lateral (
          select from pgrecall.memory x
          where  x.bank_id = bank and x.memory_id = r.memory_id and x.valid_from <= request.as_of
            and  pgrecall_internal._trust(silent, x.source_id) > 0
          limit  1
        ) as known
        where  r.valid_from is null or r.valid_from <= request.as_of
      ) as y(id, is_entity, label, memory_id, weight)) as x
      where  n.is_entity
    )
    select array_agg(t.id), array_agg(t.is_entity), array_agg(t.is_caused),
           array_agg(t.unasked), array_agg(t.mass), array_agg(t.way),
           array_agg(t.id) filter (where not t.is_entity) as fact_ids,
           array_agg(t.way) filter (where not t.is_entity) as fact_ways,
           array_agg(
             t.mass * case when t.is_caused then 10
                           when t.unasked < steps then 0.3 * decay ^ t.unasked
                           else decay ^ steps end)
             filter (where not t.is_entity) as fact_scores
    into   ids, are_entities, are_caused, unasked, masses, ways, fact_ids, fact_ways, fact_scores
    from (
      select f.id, f.is_entity, f.is_caused, f.unasked,
             -- Of n equal flows 1 - 1 / n counts.
             sum(f.flow) * case when f.is_entity and is_crowd
                                then 1 - sum(f.flow ^ 2) / sum(f.flow) ^ 2 else 1 end as mass,
             (array_agg(f.way order by f.flow desc))[1] as way
      from (
        select e.id, e.is_entity, e.is_caused, e.unasked + (not e.is_asked)::integer as unasked,
               e.mass * e.weight / e.total as flow,
               -- A path begins with the named entity, and ends with what a fact states.
               case when e.label = 'stay' then e.way
                    when e.is_entity and e.label is null and e.id = any (entity_ids)
                      then 'e' || e.id
                    else concat_ws(E'\x1f', e.way, e.label || coalesce(':' || e.memory_id, ''),
                                   case when e.is_entity then 'e' else 'f' end || e.id) end
                 as way
        from   edge e
        where  e.mass * e.weight / e.total >= least_flow
          and  (silent = '{}' or e.is_entity
                or pgrecall_internal._is_heard(request.bank, silent, e.id))
          -- An entity reached by the last step would lead nowhere.
          and  e.unasked + (not e.is_asked)::integer <= steps - e.is_entity::integer
      ) as f
      group  by f.id, f.is_entity, f.is_caused, f.unasked
    ) as t;
    exit when ids is null;
    all_ids := all_ids || fact_ids;
    all_ways := all_ways || fact_ways;
    all_scores := all_scores || fact_scores;
  end loop;

  select array_agg(t.id order by t.score desc, t.id desc),
         array_agg(sqrt(t.score) order by t.score desc, t.id desc),
         array_agg(t.way order by t.score desc, t.id desc)
  into   memory_ids, scores, paths
  from (
    select u.id, sum(u.score) as score, (array_agg(u.way order by u.score desc))[1] as way
    from (
      -- The start of a path took no step.
      select x.id, x.score * case when x.way is null then 0.3 else 1 end,
             coalesce(x.way, 'f' || x.id)
      from   unnest(all_ids, all_scores, all_ways) as x(id, score, way)
    ) as u(id, score, way)
    group  by u.id
  ) as t;
end;
$$;
comment on function pgrecall_internal._activated is
'Facts that hold mass after spreading from hits and entities, whose masses add up to about 1, best '
'first. score is the square root of the mass that passed through: 0.3 x 0.7 ^ n of it after n '
'steps that the question did not ask for (0.7 ^ n after the last), ten times all of it along '
'causes asked for, and what _walked() gives. paths: the heaviest path to each. steps: how many '
'steps that the question did not ask for a path may have. It is longer than 100 lines because it '
'is one statement and its loop.';
