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

create or replace function pgrecall_internal._walk(
  request pgrecall_internal.request, hops integer)
returns setof pgrecall.ranked
language plpgsql stable parallel safe rows 100
set search_path from current
set jit = off
as $$
declare
  starts      bigint[];
  confidences real[];
  -- A path with a loop is weaker than the one without: visited entities need not be tracked.
  hop constant text := $sql$
      -- A relation that has ended by then, or whose fact has, counts 0.3.
      edge%1$s as materialized (
        select n.entity_id, n.memory_id, w.strength * n.strength as strength
        from   hop%2$s w
        cross  join lateral (
          select case when r.from_id = w.entity_id then r.to_id else r.from_id end as entity_id,
                 r.memory_id,
                 r.confidence * pgrecall_internal._type_prior(r.kind)
                 * case when r.valid_to <= $2 or m.valid_to <= $2 then 0.3 else 1 end as strength
          from (
            -- "between" rather than "=", so that only the index with this prefix provides the
            -- order.
            (select * from pgrecall.relation o
             where  o.bank_id = $1 and o.from_id between w.entity_id and w.entity_id
             order  by o.from_id desc, o.relation_id desc
             limit  50)
            union all
            (select * from pgrecall.relation i
             where  i.bank_id = $1 and i.to_id between w.entity_id and w.entity_id
             order  by i.to_id desc, i.relation_id desc
             limit  50)
          ) as r
          cross  join lateral (
            select x.valid_to
            from   pgrecall.memory x
            where  x.bank_id = $1 and x.memory_id = r.memory_id and x.valid_from <= $2
            limit  1
          ) as m
          where  r.valid_from is null or r.valid_from <= $2
        ) as n
        where  $7 >= %1$s
      ),
      hop%1$s as materialized (
        select e.entity_id, max(e.strength) as strength
        from   edge%1$s e
        group  by e.entity_id
        order  by max(e.strength) desc, e.entity_id desc
        limit  100
      ),
  $sql$;
begin
  -- Starts from the entity with confidence 0.7 or more; else from all, weighted by confidence.
  select array_agg(s.entity_id), array_agg(s.confidence)
  into   starts, confidences
  from (
    select q.entity_id, q.confidence,
           max(q.confidence) over (partition by q.matched) as best
    from   unnest(request.named) as q
  ) as s
  where  s.best < 0.7 or s.confidence >= 0.7;
  if starts is null then
    return;
  end if;

  return query execute format(
    $sql$
      with hop0 as materialized (
        select s.id as entity_id, s.confidence::double precision as strength
        from   unnest($5, $6) as s(id, confidence)
      ),
      %s
      reached as (
        select w.entity_id, max(w.strength) as strength
        from (
          select h.entity_id, h.strength from hop0 h
          union all
          select h.entity_id, 0.6 * h.strength from hop1 h
          union all
          select h.entity_id, 0.35 * h.strength from hop2 h
          union all
          select h.entity_id, 0.15 * h.strength from hop3 h
        ) as w
        group  by w.entity_id
        order  by max(w.strength) desc, w.entity_id desc
        limit  100
      ),
      -- The facts that state a followed edge are the most direct evidence.
      stated as (
        select w.memory_id, max(w.strength) as strength
        from (
          select e.memory_id, e.strength from edge1 e
          union all
          select e.memory_id, 0.6 * e.strength from edge2 e
          union all
          select e.memory_id, 0.35 * e.strength from edge3 e
        ) as w
        group  by w.memory_id
      ),
      entity as (
        select r.entity_id, r.strength * pgrecall_internal._rarity(c.mentions, $8) as weight
        from   reached r
        cross  join lateral (
          select count(*) as mentions from (
            select from pgrecall.mention x
            where  x.bank_id = $1 and x.entity_id = r.entity_id
            limit  1000
          ) as bounded
        ) as c
      ),
      found as (%s)
      select f.memory_id, row_number() over (order by f.score desc, f.memory_id desc)::integer,
             f.score
      from (
        select u.memory_id, tanh(sum(u.weight)) as score from found u group by u.memory_id
      ) as f
      order  by f.score desc, f.memory_id desc
      limit  $4
    $sql$,
    format(hop, 1, 0) || format(hop, 2, 1) || format(hop, 3, 2),
    pgrecall_internal._union_all(
      $sql$
        select x.memory_id, x.weight
        from (
          select t.memory_id, e.weight
          from   entity e
          cross  join lateral (
            select y.memory_id
            from   pgrecall.mention y
            where  y.bank_id = $1 and y.entity_id = e.entity_id and y.fact_type = {fact_type}
            order  by y.memory_id desc
            limit  50
          ) as t
          union all
          select s.memory_id, s.strength from stated s
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
  using (request.bank).bank_id, request.as_of, request.filter, request.depth, starts, confidences,
        hops, coalesce((request.memory_terms).documents, 1);
end;
$$;
comment on function pgrecall_internal._walk is
'Worker of entity_walk(), from the entities that a query names. It is longer than 100 lines since '
'it is one statement, so that the hops are planned together.';

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
begin
  hops := coalesce(hops, pgrecall.query_hops(query), 2);
  perform pgrecall_internal._check_range('hops', hops, 0, 3);
  return query
  select * from pgrecall_internal._walk(request, hops);
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
