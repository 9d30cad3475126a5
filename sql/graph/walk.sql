-- The entity walk: from the entities that a query names along typed relations, to the facts about
-- the entities reached.
--
-- Weights fall with each hop (1.0, 0.6, 0.35, 0.15), and for unspecific or ended relations. At each
-- hop the newest relations of the strongest entities are followed, so that the cost of a hub is
-- bounded. query_hops() derives the number of hops from the question.
create or replace function pgrecall_internal._type_prior(kind text)
returns double precision
language sql immutable parallel safe
return case
  when replace(lower(kind), ' ', '_') in (
    'related_to', 'relates_to', 'related', 'associated_with', 'connected_to', 'linked_to',
    'similar_to', 'similar', 'like', 'resembles', 'mentions', 'mentioned_with', 'co_occurs_with',
    'about', 'see_also') then 0.9
  else 1
end;
comment on function pgrecall_internal._type_prior is
'Weight of a relation by its kind: 1.0 for a specific one (structural: reports_to), 0.9 for an '
'unspecific one (semantic: related_to).';

create or replace function pgrecall.query_hops(query text)
returns integer
language sql immutable parallel safe
return (
  select case
           when (select count(*) from regexp_matches(t.words, '[[:alnum:]]''s? [[:alnum:]]', 'g'))
                + (select count(*) from regexp_matches(t.words, '\mof\M', 'g'))
                + (select count(*) from regexp_matches(t.words, ' (who|whom|whose)\M', 'g')) >= 2
                or t.words ~ '^(who|whom|whose) .* (who|whom|whose)\M'
             then 3
           else 2
         end
  from (values (
    regexp_replace(regexp_replace(
      replace(lower(trim(left(query, 500))), '’', ''''),
      '\m(it|that|there|here|what|who|where|when|how|why|let|he|she)''s\M', '', 'g'),
      '\m(because|instead|out|kinds?|sorts?|types?|names?|numbers?|lots?|part|one|some|all|any|none'
      '|most|many|much|each|both|end|start|beginning|middle|speaking|think|thinks|thought|hear'
      '|heard|know|of course) of\M', '', 'g')
  )) as t(words)
);
comment on function pgrecall.query_hops is
'How many hops the walk for an English question takes: 3 where two or more are chained in it ("the '
'captain of Ana''s team", "who hired the man who ..."), counted by possessives, by "of" and by '
'who, whom and whose inside the question, or by two of these words in a question that begins with '
'one; else 2. Reads the first 500 characters.';

create or replace function pgrecall_internal._hop(
  request pgrecall_internal.request, entity_ids bigint[], strengths double precision[])
returns table (entity_id bigint, memory_id bigint, strength double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  bank text := (request.bank).bank_id;
begin
  return query
  select n.entity_id, n.memory_id, w.strength * n.strength
  from   unnest(entity_ids, strengths) as w(entity_id, strength)
  cross  join lateral (
    -- A relation that has ended by then, or whose fact has, counts 0.3.
    select case when r.from_id = w.entity_id then r.to_id else r.from_id end as entity_id,
           r.memory_id,
           r.confidence * pgrecall_internal._type_prior(r.kind)
           * case when r.valid_to <= request.as_of or m.valid_to <= request.as_of then 0.3
                  else 1 end as strength
    from (
      -- "between" rather than "=", so that only the index with this prefix provides the order.
      (select * from pgrecall.relation o
       where  o.bank_id = bank and o.from_id between w.entity_id and w.entity_id
       order  by o.from_id desc, o.relation_id desc
       limit  50)
      union all
      (select * from pgrecall.relation i
       where  i.bank_id = bank and i.to_id between w.entity_id and w.entity_id
       order  by i.to_id desc, i.relation_id desc
       limit  50)
    ) as r
    cross  join lateral (
      select x.valid_to
      from   pgrecall.memory x
      where  x.bank_id = bank and x.memory_id = r.memory_id and x.valid_from <= request.as_of
      limit  1
    ) as m
    where  r.valid_from is null or r.valid_from <= request.as_of
  ) as n;
end;
$$;
comment on function pgrecall_internal._hop is
'The relations of entities, the newest 50 in each direction: where each leads, the fact that '
'states it, and the strength there.';

create or replace function pgrecall_internal._walked(
  request pgrecall_internal.request, hops integer)
returns table (memory_id bigint, score double precision)
language plpgsql stable parallel safe rows 1000
set search_path from current
set jit = off
as $$
declare
  -- Of what is reached by no hop, one, two, three.
  shares    constant double precision[] := '{1,0.6,0.35,0.15}';
  ids       bigint[];
  strengths double precision[];
  -- What is reached by any hop, and the facts that state a followed relation, each with its weight.
  entity_ids  bigint[];
  reached     double precision[];
  stating_ids bigint[] := '{}';
  stated      double precision[] := '{}';
  step      record;
begin
  -- Starts from the entity with confidence 0.7 or more; else from all, weighted by confidence.
  select array_agg(s.entity_id), array_agg(s.confidence)
  into   ids, strengths
  from (
    select q.entity_id, q.confidence,
           max(q.confidence) over (partition by q.matched) as best
    from   unnest(request.named) as q
  ) as s
  where  s.best < 0.7 or s.confidence >= 0.7;
  if ids is null then
    return;
  end if;
  entity_ids := ids;
  reached := strengths;
  -- A path with a loop is weaker than the one without: visited entities need not be tracked.
  for hop in 1 .. hops loop
    select array_agg(h.entity_id) as entity_ids, array_agg(h.memory_id) as memory_ids,
           array_agg(h.strength) as strengths
    into   step
    from   pgrecall_internal._hop(request, ids, strengths) as h;
    exit when step.entity_ids is null;
    stating_ids := stating_ids || step.memory_ids;
    stated := stated || array(
      select shares[hop] * x from unnest(step.strengths) with ordinality as u(x, n) order by n);
    select array_agg(t.entity_id), array_agg(t.strength)
    into   ids, strengths
    from (
      select u.id as entity_id, max(u.strength) as strength
      from   unnest(step.entity_ids, step.strengths) as u(id, strength)
      group  by u.id
      order  by 2 desc, 1 desc
      limit  100
    ) as t;
    entity_ids := entity_ids || ids;
    reached := reached || array(
      select shares[hop + 1] * x from unnest(strengths) with ordinality as u(x, n) order by n);
  end loop;
  select array_agg(t.entity_id), array_agg(t.strength)
  into   entity_ids, reached
  from (
    select u.id as entity_id, max(u.strength) as strength
    from   unnest(entity_ids, reached) as u(id, strength)
    group  by u.id
  ) as t;
  return query
  select f.memory_id, tanh(sum(f.weight))
  from (
    select m.memory_id, m.weight
    from   pgrecall_internal._mentioning(request, entity_ids, reached) as m
    union all
    -- The facts that state a followed relation are the most direct evidence.
    select s.id, max(s.strength)
    from   unnest(stating_ids, stated) as s(id, strength)
    group  by s.id
  ) as f
  group  by f.memory_id;
end;
$$;
comment on function pgrecall_internal._walked is
'Worker of entity_walk(), from the entities that a query names: what it reaches, whether visible '
'or not, in no order.';

create or replace function pgrecall.entity_walk(
  bank       text,
  query      text,
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  hops       integer default null)
returns setof pgrecall.ranked
language plpgsql stable parallel safe rows 100
set search_path from current
as $$
declare
  request pgrecall_internal.request := pgrecall_internal._request(
    bank, query, fact_types => fact_types, filter => filter, as_of => as_of,
    options => jsonb_build_object('depth', depth), arm => 'graph');
  memory_ids bigint[];
  scores     double precision[];
begin
  hops := coalesce(hops, pgrecall.query_hops(query), 2);
  perform pgrecall_internal._check_range('hops', hops, 0, 3);
  select array_agg(w.memory_id order by w.score desc, w.memory_id desc),
         array_agg(w.score order by w.score desc, w.memory_id desc)
  into   memory_ids, scores
  from   pgrecall_internal._walked(request, hops) as w;
  return query
  select memory_ids[u.p], u.n::integer, scores[u.p]
  from   unnest(pgrecall_internal._visible_places(request, memory_ids, request.depth))
           with ordinality as u(p, n)
  order  by u.n;
end;
$$;
comment on function pgrecall.entity_walk is
'Memories about the entities named in a query and about those up to hops relations away (0 to 3; '
'query_hops() when null). It starts from the entity that a name means with a confidence of 0.7 or '
'more, else from all with the name. The weight of an entity is 1.0 / 0.6 / 0.35 / 0.15 by hop x '
'that confidence x, for each relation on the way, its confidence, 0.9 where its kind is semantic '
'(related_to) and 0.3 once it, or the fact that states it, has ended; x rarity. score = tanh(sum), '
'0 to 1. Each hop follows the newest 50 relations in each direction of the 100 strongest entities '
'of the one before. Errors: RC001, RC008, RC011, 22023.';
