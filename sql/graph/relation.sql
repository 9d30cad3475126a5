-- The relation arm: a question that chains relations reaches its answer.
--
-- "Where does the boss of Ana's mentor live?" names Ana. The relation words around the name are
-- read as a chain: nouns after it ("Ana's mentor") from near to far, then nouns before it ("the
-- boss of") from near to far, then verbs ("live"). Each word stands for kinds of relations and a
-- direction (graph/relation-word.sql); the arm follows such edges from entity to entity, up to
-- four. It returns the facts that state the last edges and the facts about the entities reached,
-- ranked by similarity to the query. Words that match no edge are skipped unless the lexicon has
-- them; then there is no chain, and the arm returns nothing.
--
-- A word in the position of a relation ("Ana's gaffer", "the one Ana dotes on") that matches
-- neither the lexicon nor a kind may mean any relation: each kind is tried, those first whose facts
-- are most similar to the query, at a lower score. A query for a former state follows relations
-- that have ended too.
--
-- Chains also start from entities that the query describes (graph/description.sql).
create or replace function pgrecall_internal._chain_edges(
  request pgrecall_internal.request, entity_ids bigint[], word pgrecall_internal.chain_word,
  may_guess boolean)
returns setof pgrecall_internal.chain_edge
language plpgsql stable parallel safe rows 20
set search_path from current
set jit = off
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  is_former constant boolean := request.options ->> 'prefer' = 'former';
begin
  return query
  with edge as materialized (
    select r.to_id, r.kind, true as is_forth, r.memory_id, r.valid_to
    from   unnest(entity_ids) as f(id)
    cross  join lateral (
      select o.to_id, o.kind, o.memory_id, o.valid_to
      from   pgrecall.relation o
      -- As in entity_walk(): for the index.
      where  o.bank_id = (request.bank).bank_id and o.from_id between f.id and f.id
        and  (o.valid_from is null or o.valid_from <= request.as_of)
      order  by o.from_id desc, o.relation_id desc
      limit  200
    ) as r
    union all
    select r.from_id, r.kind, false, r.memory_id, r.valid_to
    from   unnest(entity_ids) as f(id)
    cross  join lateral (
      select i.from_id, i.kind, i.memory_id, i.valid_to
      from   pgrecall.relation i
      where  i.bank_id = (request.bank).bank_id and i.to_id between f.id and f.id
        and  (i.valid_from is null or i.valid_from <= request.as_of)
      order  by i.to_id desc, i.relation_id desc
      limit  200
    ) as r
  ),
  asked as materialized (
    select e.*,
           case
             when word.meanings = '{}'
               then pgrecall_internal._kind_means(e.kind, e.is_forth, word.word)
             else (word.is_noun and format('noun%s%s', case when e.is_forth then '>' else '<' end,
                                      k.kind) = any (word.meanings))
               -- A name after a verb is its object: "who manages Ana".
               or (word.is_verb
                   and format('verb%s%s',
                              case when e.is_forth <> word.is_before then '>' else '<' end,
                              k.kind) = any (word.meanings))
           end as fits,
           -- A word of the lexicon may mean a kind that the lexicon does not have.
           word.meanings = '{}'
             or k.kind <> all (pgrecall_internal._relation_kinds()) as is_possible
    from   edge e
    cross  join lateral (select replace(lower(e.kind), ' ', '_') as kind) as k
    where  (e.valid_to is null or e.valid_to > request.as_of or is_former)
  )
  select a.to_id, a.kind, a.is_forth, a.memory_id, not a.fits
  from   asked a
  where  (a.fits
          or word.is_open and may_guess and a.is_possible
             and not exists (select from asked x where x.fits))
    and  exists (
           select from pgrecall.memory m
           where  m.bank_id = (request.bank).bank_id and m.memory_id = a.memory_id
             and  m.valid_from <= request.as_of
             and  (m.valid_to is null or m.valid_to > request.as_of))
  limit  50;
end;
$$;
comment on function pgrecall_internal._chain_edges is
'The relations of any of the entities that a word asks for, now valid, or ended too where the '
'query is for a former state. Where none matches an open word and may_guess is set, those that it '
'might mean, is_guess.';

create or replace function pgrecall_internal._guess_certainty(
  request pgrecall_internal.request, memory_ids bigint[])
returns double precision
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return 0.1 + 0.4 * greatest(0, (
    select pgrecall_internal._similarity(
             max(1 - (e.embedding <=> request.embedding)), (request.bank).low_cosine,
             (request.bank).high_cosine)
    from   unnest(memory_ids[1:20]) as f(memory_id)
    cross  join lateral (
      select x.embedding
      from   pgrecall.embedding x
      where  x.bank_id = (request.bank).bank_id and x.memory_id = f.memory_id
        and  x.model = coalesce((request.bank).embedding_model, '')
        and  x.kind = 'text' and x.ordinal = 0
      limit  1
    ) as e
    where  request.embedding is not null));
end;
$$;
comment on function pgrecall_internal._guess_certainty is
'Certainty, 0.1 to 0.5, that an unknown word means a relation: by the similarity of the query to '
'the nearest of 20 facts that state it.';

create or replace function pgrecall_internal._about_reached(
  request pgrecall_internal.request, entity_ids bigint[])
returns table (memory_id bigint, similarity double precision)
language plpgsql stable parallel safe rows 50
set search_path from current
set jit = off
as $$
begin
  return query execute format(
    $sql$
      select m.memory_id,
             greatest(
               coalesce((
                 select pgrecall_internal._similarity(
                          max(1 - (e.embedding <=> $5)), $10, $11)
                 from   pgrecall.embedding e
                 where  e.bank_id = $1 and e.memory_id = m.memory_id and e.model = $6
                   and  $5 is not null), 0),
               coalesce(-(m.lexical_weights <#> $7) / $8, 0))
      from (
        select distinct x.memory_id
        from   unnest($4) as n(entity_id)
        cross  join unnest($9) as t(fact_type)
        cross  join lateral (
          select y.memory_id
          from   pgrecall.mention y
          where  y.bank_id = $1 and y.entity_id = n.entity_id
            and  y.fact_type between t.fact_type and t.fact_type
          order  by y.fact_type desc, y.memory_id desc
          limit  100
        ) as x
      ) as c
      cross  join lateral (
        select m.memory_id, m.lexical_weights
        from   pgrecall.memory m
        where  m.bank_id = $1 and m.memory_id = c.memory_id and %s
        limit  1
      ) as m
    $sql$, request.visible_sql)
  using (request.bank).bank_id, request.as_of, request.filter, entity_ids, request.embedding,
        coalesce((request.bank).embedding_model, ''),
        pgrecall_internal._to_sparsevec(
          coalesce((request.memory_terms).dimensions, '{}'),
          coalesce((request.memory_terms).idfs, '{}')),
        nullif((request.memory_terms).idf_sum, 0), request.fact_types,
        (request.bank).low_cosine, (request.bank).high_cosine;
end;
$$;
comment on function pgrecall_internal._about_reached is
'The newest 100 facts of each type about entities, with their similarity to the query: the '
'cosine, or the share of its IDFs, whichever is larger.';

create or replace function pgrecall_internal._told_path(
  request pgrecall_internal.request, entity_ids bigint[], steps integer[], kinds text[],
  forth boolean[])
returns jsonb
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return (
    select jsonb_build_object(
             'entities', jsonb_agg(e.name order by e.n),
             'relations', to_jsonb(kinds),
             'path', string_agg(
               case
                 when e.place > 3 then ''
                 when e.place > 1 then ', ' || left(e.name, 60)
                 when e.step = 0 then left(e.name, 60)
                 else format(case when forth[e.step] then ' → %s → %s' else ' ← %s ← %s' end,
                             kinds[e.step], left(e.name, 60))
               end
               || case when e.place = 3 and e.count > 3 then format(' (+%s)', e.count - 3)
                       else '' end, '' order by e.n))
    from (
      select p.n, p.step, x.name,
             row_number() over (partition by p.step order by p.n) as place,
             count(*) over (partition by p.step) as count
      from   unnest(entity_ids, steps) with ordinality as p(entity_id, step, n)
      cross  join lateral (
        select y.name from pgrecall.entity y
        where  y.bank_id = (request.bank).bank_id and y.entity_id = p.entity_id
        limit  1
      ) as x
    ) as e
  );
end;
$$;
comment on function pgrecall_internal._told_path is
'A chain as part of via: its entities, its relations, and both as one line, path, an arrow in the '
'direction of each relation. entity_ids: the entities reached by each step, 0 the start; three of '
'a step are named.';

create or replace function pgrecall_internal._chain(
  request pgrecall_internal.request, start_id bigint, words pgrecall_internal.chain_word[],
  out memory_ids bigint[], out scores double precision[], out vias jsonb[])
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  -- The words on both sides of the name bind in any order that keeps each side from near to far:
  -- "the boss of Ana lives", "the one Ana's boss is married to". The path that uses most words
  -- wins.
  with recursive word as materialized (
    select c.*, c as said, array(select substr(m, 6) from unnest(c.meanings) as m) as kinds
    from   unnest(words) as c
    where  c.entity_id = start_id and c.place <= 5
  ),
  walk (after, before, reached, stated, last, kinds, forth, path, steps, used, hops, missed, rest,
        cost, guesses, certainty) as (
    select 1, 1, array[start_id], '{}'::bigint[], '{}'::bigint[], '{}'::text[], '{}'::boolean[],
           array[start_id], array[0], '{}'::text[], 0, 0, 0, 0, 0, 1::double precision
    union all
    select w.after + (not n.is_before)::integer, w.before + n.is_before::integer,
           coalesce(e.to_ids, w.reached), case when e.ids is null then w.stated
                                               else w.stated || w.last end,
           coalesce(e.ids, w.last), w.kinds || e.kind, w.forth || e.is_forth,
           w.path || coalesce(e.to_ids, '{}'),
           w.steps || array_fill(w.hops + 1, array[coalesce(cardinality(e.to_ids), 0)]),
           case when e.ids is null then w.used else n.kinds end,
           w.hops + (e.ids is not null)::integer,
           -- Counts relations asked for and missing; not where two words ask for the same.
           w.missed + (e.ids is null and n.meanings <> '{}' and n.is_noun and not n.is_asked
                       and not n.kinds && w.used)::integer,
           w.rest + (e.ids is null and not n.kinds && w.used)::integer,
           w.cost + (w.hops = 0 and not n.is_bound
                     and exists (select from word b where b.is_bound))::integer,
           w.guesses + (e.certainty < 1)::integer, w.certainty * e.certainty
    from   walk w
    join   word n on n.place = case when n.is_before then w.before else w.after end
    cross  join lateral (
      select array(
        select x
        from   pgrecall_internal._chain_edges(
                 request, w.reached, n.said, w.guesses < 2) as x
        where  x.to_id <> all (w.path)) as found
    ) as f
    cross  join lateral (
      select (array_agg(distinct x.to_id))[1:20] as to_ids, array_agg(distinct x.memory_id) as ids,
             min(x.kind) as kind, bool_or(x.is_forth) as is_forth, 1 as certainty
      from   unnest(f.found) as x
      where  not x.is_guess
      union all
      (select (array_agg(distinct x.to_id))[1:20], array_agg(distinct x.memory_id), x.kind,
              x.is_forth,
              pgrecall_internal._guess_certainty(request, array_agg(x.memory_id)) as certainty
       from   unnest(f.found) as x
       where  x.is_guess
       group  by x.kind, x.is_forth
       order  by certainty desc, x.kind, x.is_forth
       limit  8)
    ) as e
    where  w.hops < 4
  ),
  complete as (
    select w.*,
           dense_rank() over (order by w.cost, w.hops desc, w.missed, w.rest, w.guesses) as class,
           row_number() over (order by w.cost, w.hops desc, w.missed, w.rest, w.guesses,
                              w.certainty desc, w.kinds) as place
    from   walk w
    where  w.hops > 0
      and  (w.hops = 4 or w.after + w.before = 2 + (select count(*) from word))
  ),
  -- The best path; with guesses the eight best of equal rank.
  way as materialized (
    select c.reached, c.stated, c.last, c.rest, v.via,
           -- Relations that fit confirm those guessed.
           c.certainty ^ (1.0 / (1 + c.hops - c.guesses)) as certainty
    from   complete c
    cross  join lateral (
      select pgrecall_internal._told_path(
               request, c.path, c.steps, array_remove(c.kinds, null), array_remove(c.forth, null))
             || jsonb_build_object('facts', to_jsonb(c.stated || c.last)) as via
    ) as v
    where  c.class = 1 and c.missed = 0 and c.place <= case when c.guesses > 0 then 8 else 1 end
  )
  select array_agg(f.id order by f.score desc, f.id desc),
         array_agg(f.score order by f.score desc, f.id desc),
         array_agg(f.via order by f.score desc, f.id desc)
  into   memory_ids, scores, vias
  from (
    select distinct on (u.id) u.id, u.score * w.certainty as score, w.via
    from   way w
    cross  join lateral (
      select l as id, case when w.rest > 0 then 0.7 else 1 end::double precision as score
      from   unnest(w.last) as l
      union all
      select s, 0.3 from unnest(w.stated) as s
      union all
      select a.memory_id,
             case when w.rest > 0 then 0.5 + 0.5 * a.similarity else 0.3 + 0.3 * a.similarity end
      from   pgrecall_internal._about_reached(request, w.reached) as a
    ) as u
    order  by u.id, 2 desc
  ) as f;
  memory_ids := memory_ids[1:20];
  scores := scores[1:20];
  vias := vias[1:20];
end;
$$;
comment on function pgrecall_internal._chain is
'Facts reached by a chain of relations from one entity: those about the entities reached, those '
'that state its last relation, those that state the others. A noun without a relation ends the '
'chain without result.';

create or replace function pgrecall_internal._has_relation(bank text, entity_id bigint)
returns boolean
language plpgsql stable parallel safe
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return coalesce(
    (select true from pgrecall.relation o
     where  o.bank_id = _has_relation.bank
       and  o.from_id between _has_relation.entity_id and _has_relation.entity_id
     order  by o.from_id, o.relation_id
     limit  1),
    (select true from pgrecall.relation i
     where  i.bank_id = _has_relation.bank
       and  i.to_id between _has_relation.entity_id and _has_relation.entity_id
     order  by i.to_id, i.relation_id
     limit  1),
    false);
end;
$$;
comment on function pgrecall_internal._has_relation is 'Whether an entity has a relation.';

create or replace function pgrecall_internal._relation_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  result pgrecall_internal.arm_result;
  starts bigint[];
  start  bigint;
  chain  record;
  words  pgrecall_internal.chain_word[];
  -- Whether the query may describe where a chain starts.
  is_described boolean;
begin
  starts := array(
    select n.entity_id from unnest(request.named) as n
    where  pgrecall_internal._has_relation((request.bank).bank_id, n.entity_id)
    order  by n.confidence desc, n.entity_id
    limit  5);
  is_described := pgrecall_internal._may_describe(request, starts <> '{}');
  result.is_run := starts <> '{}' or is_described;
  if not result.is_run then
    result.reason := 'no entity that the query names has a relation';
    return result;
  elsif is_planned then
    result.reason := case when starts <> '{}' then 'the query names an entity that has relations'
                          else 'the query may describe an entity that has relations' end;
    return result;
  end if;
  if starts <> '{}' then
    words := array(select w from pgrecall_internal._chain_words(request) as w);
  end if;
  result.memory_ids := '{}';
  result.scores := '{}';
  result.vias := '{}';
  foreach start in array starts loop
    chain := pgrecall_internal._chain(request, start, words);
    if chain.memory_ids is not null then
      result.memory_ids := result.memory_ids || chain.memory_ids;
      result.scores := result.scores || chain.scores;
      result.vias := result.vias || chain.vias;
    end if;
  end loop;
  if is_described then
    chain := pgrecall_internal._described_chains(request, before, result.memory_ids <> '{}');
    if chain.memory_ids <> '{}' then
      -- A description says more than a name within it: "what stalled in Bristol".
      result.scores := array(select s / 2 from unnest(result.scores) with ordinality as u(s, n)
                             order  by n);
    end if;
    result.memory_ids := result.memory_ids || chain.memory_ids;
    result.scores := result.scores || chain.scores;
    result.vias := result.vias || chain.vias;
  end if;
  select array_agg(u.id order by u.score desc, u.id desc),
         array_agg(u.score order by u.score desc, u.id desc),
         array_agg(u.via order by u.score desc, u.id desc)
  into   result.memory_ids, result.scores, result.vias
  from (
    select distinct on (x.id) x.id, x.score, x.via
    from   unnest(result.memory_ids, result.scores, result.vias) as x(id, score, via)
    order  by x.id, x.score desc
  ) as u;
  result.reason := result.vias[1] ->> 'path';
  return result;
end;
$$;
comment on function pgrecall_internal._relation_arm is
'Worker of the relation arm. score: 1 for a fact that states the last relation of the chain, or '
'0.7 where the query asks more about the entities reached, whose facts then get 0.5 + 0.5 '
'similarity.';
