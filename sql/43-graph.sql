-- A fresh table has no statistics, and the planner then takes any join for a small one. Lateral
-- subqueries with a limit keep it to looking things up, a few at a time, by their ids; so does
-- "is not distinct from" to a type, for which it cannot use the index that begins with the type.

create or replace function pgrecall.link_expansion(
  bank       text,
  seeds      bigint[],
  fact_types text[] default null,
  filter     jsonb default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  strengths  double precision[] default null)
returns table (memory_id bigint, rank integer, score double precision,
               entity_score double precision, semantic_score double precision,
               causal_score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
set jit = off
as $$
declare
  documents bigint;
begin
  perform pgrecall._bank(bank);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  select s.document_count into documents
  from   pgrecall.statistics s
  where  s.bank_id = link_expansion.bank and s.kind = 'memory';

  return query execute format(
    $sql$
      with seed as (
        select s.memory_id, max(coalesce(s.strength, 1)) as strength
        from   unnest($5, $7) as s(memory_id, strength)
        group  by s.memory_id
      ),
      -- Entities of the seeds, each weighted by how rare it is; counting stops where it no longer
      -- matters.
      entity as (
        select e.entity_id, e.strength * pgrecall._rarity(c.mentions, $6) as weight
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
    pgrecall._union_all(
      $sql$
        select x.memory_id, x.entity_weight, x.semantic_score, x.causal_score
        from (
          -- Of those that share the same, the newest come first.
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
            and  $sql$ || pgrecall._visible_sql(filter) || $sql$
          limit  1
        ) as visible
      $sql$,
      pgrecall._fact_types(bank, fact_types))
  )
  using bank, as_of, filter, depth, seeds, coalesce(documents, 1), strengths;
end;
$$;
comment on function pgrecall.link_expansion(
  text, bigint[], text[], jsonb, timestamptz, integer, double precision[]) is
'Memories one step from the seeds; strengths, 0 to 1, says how much each seed counts (1 when '
'null): entity_score = tanh(0.5 n) with n the rarity-weighted number of shared entities, '
'semantic_score the similarity of a semantic link in either direction, causal_score the weight of '
'a causal one; score is their sum, 0 to 3. An entity leads to its newest 50 facts of each type, of '
'which the newest counts 1 and the last 0.9; links to a seed are the 100 strongest of 1,000. '
'Errors: RC001, RC008, RC011, 22023.';

create or replace function pgrecall._type_prior(kind text)
returns double precision
language sql immutable parallel safe
return case
  when replace(lower(kind), ' ', '_') in (
    'related_to', 'relates_to', 'related', 'associated_with', 'connected_to', 'linked_to',
    'similar_to', 'similar', 'like', 'resembles', 'mentions', 'mentioned_with', 'co_occurs_with',
    'about', 'see_also') then 0.9
  else 1
end;
comment on function pgrecall._type_prior(text) is
'How much a relation of a kind counts: 1.0 for one that says what it is (structural: reports_to), '
'0.9 for one that only says that there is one (semantic: related_to).';

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
comment on function pgrecall.query_hops(text) is
'How many relations the walk for an English question goes: 3 where two or more are chained in it '
'("the captain of Ana''s team", "who hired the man who ..."), counted by possessives, by "of" and '
'by who, whom and whose inside the question, or where two of these words stand in one that begins '
'with one; else 2. Looks at the first 500 characters.';

create or replace function pgrecall._walk(
  bank text, named pgrecall.named_entity[], fact_types text[], filter jsonb, as_of timestamptz,
  depth integer, hops integer)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
set jit = off
as $$
declare
  starts      bigint[];
  confidences real[];
  documents   bigint;
  -- A way that comes back is weaker than the one without the loop: none needs to remember where it
  -- has been.
  hop constant text := $sql$
      -- A relation that has ended by then, or its fact, still hints at something: 0.3 of it.
      edge%1$s as materialized (
        select n.entity_id, n.memory_id, w.strength * n.strength as strength
        from   hop%2$s w
        cross  join lateral (
          select case when r.from_id = w.entity_id then r.to_id else r.from_id end as entity_id,
                 r.memory_id,
                 r.confidence * pgrecall._type_prior(r.kind)
                 * case when r.valid_to <= $2 or m.valid_to <= $2 then 0.3 else 1 end as strength
          from (
            -- "between" rather than "=", so that only the index that begins so has this order.
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
  -- Who is likely meant by a name is taken for it; else it starts from all, as likely as they are.
  select array_agg(s.entity_id), array_agg(s.confidence)
  into   starts, confidences
  from (
    select q.entity_id, q.confidence,
           max(q.confidence) over (partition by q.matched) as best
    from   unnest(named) as q
  ) as s
  where  s.best < 0.7 or s.confidence >= 0.7;
  if starts is null then
    return;
  end if;
  select s.document_count into documents
  from   pgrecall.statistics s
  where  s.bank_id = _walk.bank and s.kind = 'memory';

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
      -- The facts that state an edge walked over speak of it most directly.
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
        select r.entity_id, r.strength * pgrecall._rarity(c.mentions, $8) as weight
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
    pgrecall._union_all(
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
            and  $sql$ || pgrecall._visible_sql(filter) || $sql$
          limit  1
        ) as visible
      $sql$,
      pgrecall._fact_types(bank, fact_types))
  )
  using bank, as_of, filter, depth, starts, confidences, hops, coalesce(documents, 1);
end;
$$;
comment on function pgrecall._walk(
  text, pgrecall.named_entity[], text[], jsonb, timestamptz, integer, integer) is
'Worker of entity_walk(), from the entities that a query names.';

create or replace function pgrecall.entity_walk(
  bank       text,
  query      text,
  fact_types text[] default null,
  filter     jsonb default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  hops       integer default null)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
as $$
begin
  perform pgrecall._bank(bank);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  hops := coalesce(hops, pgrecall.query_hops(query), 2);
  perform pgrecall._check_range('hops', hops, 0, 3);
  return query
  select *
  from   pgrecall._walk(
           bank, pgrecall._named_entities(bank, query), fact_types, filter, as_of, depth, hops);
end;
$$;
comment on function pgrecall.entity_walk(
  text, text, text[], jsonb, timestamptz, integer, integer) is
'Memories about the entities named in a query and about those up to hops relations away (0 to 3; '
'query_hops() when null). It starts from whom a name means with a confidence of 0.7 or more, else '
'from all that go by it. An entity weighs 1.0 / 0.6 / 0.35 / 0.15 by hop x that confidence x, for '
'each relation on the way, its confidence, 0.9 where its kind is semantic (related_to) and 0.3 '
'once it, or the fact that states it, has ended; x rarity. score = tanh(sum), 0 to 1. Each hop '
'follows the newest 50 relations in each direction of the 100 strongest entities of the one '
'before. '
'Errors: RC001, RC008, RC011, 22023.';

create or replace function pgrecall._seed_strengths(seeds pgrecall.arm_hit[])
returns table (memory_id bigint, strength double precision)
language sql immutable parallel safe
begin atomic
  select s.memory_id, max(10.0 / (9 + s.rank))::double precision
  from   unnest(seeds) as s
  where  s.arm in ('semantic', 'lexical') and s.rank <= 20
  group  by s.memory_id;
end;
comment on function pgrecall._seed_strengths(pgrecall.arm_hit[]) is
'Where the graph starts from and how strongly: the 20 best of the semantic and of the lexical arm, '
'the first at full strength, the eleventh at half of it.';

create or replace function pgrecall._graph_score(
  entity_score double precision, semantic_score double precision, causal_score double precision)
returns double precision
language sql immutable parallel safe
-- A neighbour in meaning of what was found is mostly more of the same: it supports, but does not
-- lead.
return entity_score + 0.3 * semantic_score + causal_score;
comment on function pgrecall._graph_score(
  double precision, double precision, double precision) is
'What link_expansion() contributes to the score of the graph arm.';

create or replace function pgrecall._graph_floor()
returns double precision
language sql immutable parallel safe
return 0.5;
comment on function pgrecall._graph_floor() is
'Below this score in the graph arm a memory shares little more than a name that stands everywhere.';

create or replace function pgrecall._around(
  bank text, named pgrecall.named_entity[], seeds pgrecall.arm_hit[], fact_types text[],
  filter jsonb, as_of timestamptz)
returns table (memory_id bigint, score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
set jit = off
-- Its plans are kept, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  memory_ids bigint[];
  scores     double precision[];
begin
  if named = '{}' then
    return;
  end if;

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
       where  o.bank_id = _around.bank and o.from_id = w.memory_id and o.kind = 'temporal'
       limit  1)
      union all
      (select t.from_id, t.weight
       from  (select i.from_id, i.weight
              from   pgrecall.link i
              where  i.bank_id = _around.bank and i.to_id = w.memory_id and i.kind = 'temporal'
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
  select array_agg(r.memory_id), array_agg(r.strength * e.confidence)
  into   memory_ids, scores
  from   reached r
  cross  join lateral (
    select max(q.confidence) as confidence
    from   unnest(named) as q
    cross  join lateral (
      select from pgrecall.mention x
      where  x.bank_id = _around.bank and x.memory_id = r.memory_id
        and  x.entity_id = q.entity_id
      limit  1
    ) as stated
  ) as e
  where  r.strength * e.confidence >= 0.1;

  return query execute format(
    $sql$
      select u.memory_id, u.score
      from   unnest($5, $6) as u(memory_id, score)
      cross  join lateral (
        select from pgrecall.memory m
        where  m.bank_id = $1 and m.memory_id = u.memory_id
          and  array_position($4, m.fact_type) is not null and %s
        limit  1
      ) as visible
    $sql$,
    pgrecall._visible_sql(filter)
  )
  using bank, as_of, filter, pgrecall._fact_types(bank, fact_types), memory_ids, scores;
end;
$$;
comment on function pgrecall._around(
  text, pgrecall.named_entity[], pgrecall.arm_hit[], text[], jsonb, timestamptz) is
'What names an entity of the query and is one of the 20 best of the semantic and lexical arms, or '
'up to two links in time from it: the answer is often what was said next. score = confidence of '
'the entity x strength of the seed (its scores over the best of each arm, the mean) x 0.5 for the '
'seed itself, 1 and 0.5 for one and two links x their weights; 0.1 to 1, less is left out.';

create or replace function pgrecall._expansion_bound(
  bank text, named pgrecall.named_entity[], seeds pgrecall.arm_hit[])
returns double precision
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- Its plans are kept, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  documents    bigint;
  walk_weight  double precision;
  has_relation boolean;
  entity_weight double precision;
  similarity   double precision;
  has_cause    boolean;
begin
  select s.document_count into documents
  from   pgrecall.statistics s
  where  s.bank_id = _expansion_bound.bank and s.kind = 'memory';
  documents := coalesce(documents, 1);

  select coalesce(sum(q.confidence * pgrecall._rarity(c.mentions, documents)), 0),
         coalesce(bool_or(r.is_there), false)
  into   walk_weight, has_relation
  from   unnest(named) as q
  cross  join lateral (
    select count(*) as mentions from (
      select from pgrecall.mention x
      where  x.bank_id = _expansion_bound.bank and x.entity_id = q.entity_id
      limit  1000
    ) as bounded
  ) as c
  left   join lateral (
    (select true from pgrecall.relation o
     where o.bank_id = _expansion_bound.bank and o.from_id = q.entity_id limit 1)
    union all
    (select true from pgrecall.relation i
     where i.bank_id = _expansion_bound.bank and i.to_id = q.entity_id limit 1)
  ) as r(is_there) on true;
  if has_relation then
    return 'infinity';
  end if;

  with seed as materialized (
    select s.memory_id, s.strength from pgrecall._seed_strengths(seeds) as s
  ),
  edge as (
    select l.kind, l.weight * s.strength as weight
    from   seed s
    cross  join lateral (
      (select o.kind, o.weight from pgrecall.link o
       where  o.bank_id = _expansion_bound.bank and o.from_id = s.memory_id and o.kind <> 'temporal'
       limit  100)
      union all
      (select i.kind, i.weight from pgrecall.link i
       where  i.bank_id = _expansion_bound.bank and i.to_id = s.memory_id and i.kind <> 'temporal'
       limit  1000)
    ) as l
  )
  select (
    select coalesce(sum(e.strength * pgrecall._rarity(c.mentions, documents)), 0)
    from (
      select x.entity_id, max(s.strength) as strength
      from   seed s
      cross  join lateral (
        select i.entity_id from pgrecall.mention i
        where  i.bank_id = _expansion_bound.bank and i.memory_id = s.memory_id
        limit  100
      ) as x
      group  by x.entity_id
    ) as e
    cross join lateral (
      select count(*) as mentions from (
        select from pgrecall.mention x
        where  x.bank_id = _expansion_bound.bank and x.entity_id = e.entity_id
        limit  1000
      ) as bounded
    ) as c
  ),
  (select max(e.weight) from edge e where e.kind = 'semantic'),
  exists (select from edge e where e.kind <> 'semantic' and e.weight > 0)
  into entity_weight, similarity, has_cause;
  if has_cause then
    return 'infinity';
  end if;
  return pgrecall._graph_score(tanh(0.5 * entity_weight), coalesce(similarity, 0), 0)
         + tanh(walk_weight);
end;
$$;
comment on function pgrecall._expansion_bound(
  text, pgrecall.named_entity[], pgrecall.arm_hit[]) is
'No memory can score higher than this by link_expansion() from these seeds and entity_walk() '
'together; infinity where relations or causes lead on. A small part of their work.';

create or replace function pgrecall._graph(
  bank text, query text, named pgrecall.named_entity[], seeds pgrecall.arm_hit[],
  fact_types text[], filter jsonb, as_of timestamptz, depth integer)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
as $$
declare
  ids       bigint[];
  strengths double precision[];
begin
  -- Seeds and names that cannot lead anywhere are found out at a small part of the cost.
  if pgrecall._expansion_bound(bank, named, seeds) >= pgrecall._graph_floor() then
    select array_agg(s.memory_id), array_agg(s.strength)
    into   ids, strengths
    from   pgrecall._seed_strengths(seeds) as s;
  end if;

  return query
  select t.memory_id, row_number() over (order by t.score desc, t.memory_id desc)::integer, t.score
  from (
    select u.memory_id, sum(u.score) as score
    from (
      select l.memory_id, sum(l.score) as score
      from (
        select e.memory_id,
               pgrecall._graph_score(e.entity_score, e.semantic_score, e.causal_score) as score
        from   pgrecall.link_expansion(bank, ids, fact_types, filter, as_of, depth, strengths) as e
        where  ids is not null
        union all
        select w.memory_id, w.score
        from   pgrecall._walk(bank, named, fact_types, filter, as_of, depth,
                              pgrecall.query_hops(query)) as w
        where  ids is not null
      ) as l
      group  by l.memory_id
      having sum(l.score) >= pgrecall._graph_floor()
      union all
      select a.memory_id, a.score
      from   pgrecall._around(bank, named, seeds, fact_types, filter, as_of) as a
    ) as u
    group  by u.memory_id
  ) as t
  order  by t.score desc, t.memory_id desc
  limit  depth;
end;
$$;
comment on function pgrecall._graph(
  text, text, pgrecall.named_entity[], pgrecall.arm_hit[], text[], jsonb, timestamptz, integer) is
'Worker of the graph arm: link expansion from the best of the semantic and lexical arms, the walk '
'from the entities of the query, and what names those around the best.';

create or replace function pgrecall._seeds(
  searched pgrecall.bank, query text, embedding halfvec, fact_types text[], filter jsonb,
  as_of timestamptz)
returns pgrecall.arm_hit[]
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  return array(
    select ('semantic', s.memory_id, s.rank, s.score)::pgrecall.arm_hit
    from   pgrecall._semantic(searched, embedding, fact_types, filter, as_of, 20) as s
    where  embedding is not null
    union all
    select ('lexical', l.memory_id, l.rank, l.score)::pgrecall.arm_hit
    from   pgrecall.lexical_arm(searched.bank_id, query, fact_types, filter, as_of, 20) as l
  );
end;
$$;
comment on function pgrecall._seeds(
  pgrecall.bank, text, halfvec, text[], jsonb, timestamptz) is
'Where link expansion starts: the 20 best of the semantic and of the lexical arm.';

create or replace function pgrecall.graph_arm(
  bank       text,
  query      text,
  embedding  halfvec default null,
  fact_types text[] default null,
  filter     jsonb default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
declare
  searched pgrecall.bank := pgrecall._bank(bank);
begin
  perform pgrecall._check_embedding(searched, 'embedding', embedding, model);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  return query
  select * from pgrecall._graph(
    bank, query, pgrecall._named_entities(bank, query),
    pgrecall._seeds(searched, query, embedding, pgrecall._fact_types(bank, fact_types), filter,
                    as_of),
    fact_types, filter, as_of, depth);
end;
$$;
comment on function pgrecall.graph_arm(
  text, text, halfvec, text[], jsonb, timestamptz, integer, text) is
'Memories that relations lead to: link_expansion() from the 20 best of the semantic and lexical '
'arms each, entity_walk(), and what names an entity of the query and is one of those best or '
'stands up to two links in time beside it. score = entity_score + 0.3 semantic_score + '
'causal_score + the walk, less than 0.5 being noise that is left out, + 0.1 to 1 for what stands '
'beside. Errors: RC001, RC004, RC005, RC006, RC008, RC011, 22023.';
