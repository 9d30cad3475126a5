-- Reordering after fusion, where options ask for it: recency, with fusion linear only
-- (recency_half_life), one row per source (collapse), diversity, and the latest or former state
-- first (prefer). Without prefer, and before the others, rows that say nearly the same as the best
-- one, and that the question does not tell apart from it, stand with the latest first, the state of
-- now or of the end of the window (_settled_states()).
--
-- Of equal scores the states come first, then the most recent, then the higher id. Maximal marginal
-- relevance covers the first 200 rows; the others follow unchanged.
create or replace function pgrecall_internal._diverse_order(
  bank pgrecall.bank, ids bigint[], scores double precision[], surplus boolean[],
  diversity double precision, top integer)
returns integer[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
as $$
declare
  window_size integer := least(cardinality(ids), 200);
  vectors     halfvec[];
  nearness    double precision[] := array_fill(0::double precision, array[window_size]);
  places      integer[] := '{}';
  chosen      integer;
begin
  vectors := array(
    select e.embedding
    from   unnest(ids[1 : window_size]) with ordinality as w(id, n)
    left   join lateral (
      select x.embedding from pgrecall.embedding x
      where  x.bank_id = bank.bank_id and x.memory_id = w.id
        and  x.model = coalesce(bank.embedding_model, '') and x.kind = 'text'
      limit  1
    ) as e on true
    order  by w.n
  );
  while cardinality(places) < least(top, window_size) loop
    select u.n into chosen
    from   unnest(scores[1 : window_size], nearness, surplus[1 : window_size])
             with ordinality as u(score, nearness, is_surplus, n)
    where  u.n <> all (places)
    order  by u.is_surplus is true,
              (1 - diversity) * u.score / scores[1] - diversity * u.nearness desc, u.n
    limit  1;
    places := places || chosen;
    nearness := array(
      select greatest(u.nearness, pgrecall_internal._similarity(
               1 - (u.vector <=> vectors[chosen]), bank.low_cosine, bank.high_cosine))
      from   unnest(vectors, nearness) with ordinality as u(vector, nearness, n)
      order  by u.n
    );
  end loop;
  return places || array(select generate_series(window_size + 1, least(top, cardinality(ids))));
end;
$$;
comment on function pgrecall_internal._diverse_order is
'Positions in ids, which are in order of falling scores, by maximal marginal relevance (Carbonell '
'and Goldstein 1998). The next row is that with the largest (1 - diversity) * score / best score - '
'diversity * cosine similarity, 0 to 1, to the nearest row before it; 0 without an embedding. '
'Covers the first 200 rows; the others follow unchanged, and so do those of surplus. Returns the '
'first top positions.';

create or replace function pgrecall_internal._reordered(
  bank pgrecall.bank, top integer, collapse boolean, diversity double precision,
  half_life interval, decay text, as_of timestamptz, states bigint[],
  inout ids bigint[], inout scores double precision[], inout arms jsonb[],
  inout surplus boolean[])
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
as $$
declare
  places integer[];
begin
  select array_agg(r.id order by r.place), array_agg(r.score order by r.place),
         array_agg(r.arms order by r.place), array_agg(r.is_surplus order by r.place)
  into   ids, scores, arms, surplus
  from (
    select b.*,
           row_number() over w as place,
           row_number() over (
             partition by b.source_id
             order by b.score desc, array_position(states, b.id), b.at desc, b.id desc)
             as place_in_source
    from (
      select f.id, f.score * coalesce(d.boost, 1) as score, d.at, d.source_id, f.is_surplus,
             case when d.boost is null then f.arms
                  else (select jsonb_object_agg(a.key, a.value || jsonb_build_object(
                                 'contribution',
                                 (a.value ->> 'contribution')::double precision * d.boost))
                        from   jsonb_each(f.arms) as a)
             end as arms
      from   unnest(ids, scores, arms, surplus) as f(id, score, arms, is_surplus)
      cross  join lateral (
        select s.at, s.source_id,
               -- A row without a time counts as neither new nor old.
               case when half_life is not null and isfinite(s.happened_at) and isfinite(as_of)
                 then pgrecall.recency_boost(as_of - s.happened_at, half_life, decay) end as boost
        from (
          select m.mentioned_at, m.source_id, coalesce(lower(m.occurred), upper(m.occurred))
          from   pgrecall.memory m
          where  m.bank_id = bank.bank_id and m.memory_id = f.id
          union  all
          select t.sent_at, t.session_id, t.sent_at
          from   pgrecall.message t
          where  t.bank_id = bank.bank_id and t.message_id = f.id
        ) as s(at, source_id, happened_at)
        limit  1
      ) as d
    ) as b
    window w as (order by b.is_surplus is true, b.score desc, array_position(states, b.id),
                          b.at desc, b.id desc)
  ) as r
  where  not collapse or r.source_id is null or r.place_in_source = 1;

  if diversity > 0 and ids is not null then
    places := pgrecall_internal._diverse_order(bank, ids, scores, surplus, diversity, top);
    select array_agg(ids[p.place] order by p.n), array_agg(scores[p.place] order by p.n),
           array_agg(arms[p.place] order by p.n), array_agg(surplus[p.place] order by p.n)
    into   ids, scores, arms, surplus
    from   unnest(places) with ordinality as p(place, n);
  end if;
end;
$$;
comment on function pgrecall_internal._reordered is
'The fused rows in the order of an answer. Scores are multiplied by recency_boost() where there '
'are a half-life and a time. Ties are ordered as in states, then by recency, then id. collapse '
'keeps the best row of each source_id. _diverse_order() comes last.';

create or replace function pgrecall_internal._began_at(
  occurred tstzrange, mentioned_at timestamptz)
returns timestamptz
language sql immutable parallel safe
return coalesce(case when isfinite(lower(occurred)) then lower(occurred) end, mentioned_at);
comment on function pgrecall_internal._began_at is
'From when a state holds: the beginning of what happened, or when it was said where that is '
'unknown.';

create or replace function pgrecall_internal._untold_places(
  place integer, first integer, shares jsonb[], surplus boolean[])
returns integer[]
language plpgsql immutable parallel safe
as $$
declare
  is_path constant text := E'[<>*]|\x1ff[0-9]+\x1fe';
  best    constant jsonb := shares[place];
  words   constant double precision := best #>> '{lexical,score}';
  means   constant double precision := best #>> '{semantic,score}';
begin
  return array(
    with alike as materialized (
      select u.n::integer as n, u.meaning,
             lag(u.meaning) over by_meaning - u.meaning > 0.05 as is_apart
      from (
        select x.*, (x.arms #>> '{semantic,score}')::double precision as meaning
        from   unnest(shares[1:first], surplus[1:first])
                 with ordinality as x(arms, is_surplus, n)
      ) as u
      where  abs((u.arms #>> '{lexical,score}')::double precision - words)
             <= least(0.3, words / 10)
        and  coalesce(abs(u.meaning - means) <= 0.15, num_nonnulls(u.meaning, means) = 0)
        and  u.arms ? 'key' = best ? 'key' and u.is_surplus is not true
        and  coalesce(u.arms #>> '{graph,via}', '') !~ is_path
      window by_meaning as (order by u.meaning desc, u.n)
    ),
    part as (
      select a.n, count(*) filter (where a.is_apart) over (order by a.meaning desc, a.n) as part
      from   alike a
    )
    select p.n
    from   part p
    where  p.part = (select b.part from part b where b.n = place)
    order  by p.n
  );
end;
$$;
comment on function pgrecall_internal._untold_places is
'Which of the first places have rows that the question does not tell apart from the row of a '
'place, which is one of them: by its words (BM25 within 0.3, and within a tenth; a word that half '
'of the facts have is worth 0.7), its meaning (similarities without a gap of 0.05, within 0.15), a '
'key or a path.';

create or replace function pgrecall_internal._preferred_order(
  request pgrecall_internal.request, sources jsonb, first integer, ids bigint[],
  scores double precision[], shares jsonb[], surplus boolean[])
returns integer[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
as $$
declare
  is_latest boolean := request.options ->> 'prefer' = 'latest';
  places    integer[];
  sorted    integer[];
  result    integer[] := array(select generate_series(1, cardinality(ids)));
begin
  -- Reorders, by trust and then by time, the rows about the same subject as the best row that state
  -- the same relation, or are similar to it by embedding or words. No other row moves.
  with row as materialized (
    select u.n::integer as n, m.lexical_weights, e.embedding,
           array(select x.entity_id
                 from   pgrecall.mention x
                 where  x.bank_id = (request.bank).bank_id and x.memory_id = u.id
                 limit  100) as entities,
           array(select x.from_id || lower(x.kind)
                 from   pgrecall.relation x
                 where  x.bank_id = (request.bank).bank_id and x.memory_id = u.id
                 limit  100) as relations,
           u.score >= 0.5 * scores[1] as is_good,
           pgrecall_internal._trust(sources, m.source_id) as trust,
           pgrecall_internal._began_at(m.occurred, m.mentioned_at) as at
    from   unnest(ids[1:50], scores[1:50], surplus[1:50])
             with ordinality as u(id, score, is_surplus, n)
    cross  join lateral (
      select x.lexical_weights, x.occurred, x.mentioned_at, x.source_id
      from   pgrecall.memory x
      where  x.bank_id = (request.bank).bank_id and x.memory_id = u.id
      limit  1
    ) as m
    left   join lateral (
      select x.embedding from pgrecall.embedding x
      where  x.bank_id = (request.bank).bank_id and x.memory_id = u.id
        and  x.model = coalesce((request.bank).embedding_model, '')
        and  x.kind = 'text'
      limit  1
    ) as e on true
    where  u.score >= 0.3 * scores[1] and u.is_surplus is not true
  ),
  best as (
    -- The subject: the entities that the query names, if a row mentions one of them; else all
    -- entities of the best row.
    select b.*, coalesce(nullif(k.known, '{}'), b.entities) as subject,
           case when b.entities = '{}' then
             pgrecall_internal._untold_places(b.n, first, shares, surplus) end as untold
    from   row b
    cross  join lateral (
      select array(select x from unnest(b.entities) as x
                   where  x = any (array(select q.entity_id from unnest(request.named) as q)))
    ) as k(known)
    order  by k.known = '{}', b.n
    limit  1
  ),
  near as (
    select r.n, r.at, r.trust
    from   row r
    cross  join best b
    where  (r.entities && b.subject
            -- The times of facts loaded at once say nothing.
            or b.entities = '{}'
               and (r.n = b.n or r.n = any (b.untold)
                    or r.at not between b.at - interval '1 hour' and b.at + interval '1 hour'))
      and  (r.relations && b.relations
            or r.is_good
               and pgrecall_internal._is_alike(
                     request.bank, r.embedding <=> b.embedding,
                     r.lexical_weights <=> b.lexical_weights))
  )
  select array_agg(r.n order by r.n),
         array_agg(r.n order by r.trust desc, is_latest and r.at >= upper(request.during),
                                case when is_latest then r.at end desc,
                                case when not is_latest then r.at end, r.n)
  into   places, sorted
  from   near r;
  for i in 1 .. coalesce(cardinality(places), 0) loop
    result[places[i]] := sorted[i];
  end loop;
  return result;
end;
$$;
comment on function pgrecall_internal._preferred_order is
'The order of an answer with option prefer: positions in ids, which are in order of falling '
'scores. The subject is the entities that the query names, or where no row mentions these, all '
'entities of the best row. Where it has none, all rows are about it, but of those from within an '
'hour of the best row, as facts loaded without times are, only what the question does not tell '
'apart from it. Of the rows about the subject, those that belong to the best of them are ordered '
'by trust, then by time: rows with three tenths of the best score that state the same relation '
'from the same entity, and rows with half of it that are similar (embeddings, on the scale of the '
'bank, 0.8; cosine of BM25 weights 0.4). The others keep their places.';

create or replace function pgrecall_internal._settled_states(
  request pgrecall_internal.request, sources jsonb, first integer, inout ids bigint[],
  scores double precision[], inout shares jsonb[], surplus boolean[], out states bigint[])
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  until   constant timestamptz := coalesce(upper(request.during), request.as_of);
  near    integer[];  -- places of rows that the question does not tell apart
  sorted  integer[];  -- of these, the states, in order
begin
  -- Most recalls end here: of rows that differ, the arms tell.
  near := pgrecall_internal._untold_places(1, first, shares, surplus);
  if cardinality(near) < 2 then
    return;
  end if;
  -- Vectors are read in one scan: one for each row takes several times as long.
  with alike as materialized (
    select e.memory_id
    from   pgrecall.embedding e
    where  e.bank_id = (request.bank).bank_id and e.kind = 'text'
      and  e.model = coalesce((request.bank).embedding_model, '')
      and  e.memory_id = any (array(select ids[n] from unnest(near) as n))
      and  pgrecall_internal._similarity(
             1 - (e.embedding <=> (
               select b.embedding from pgrecall.embedding b
               where  b.bank_id = (request.bank).bank_id and b.memory_id = ids[1]
                 and  b.model = coalesce((request.bank).embedding_model, '') and b.kind = 'text'
               limit  1)),
             (request.bank).low_cosine, (request.bank).high_cosine) >= 0.85
  ),
  row as materialized (
    select array_position(ids, a.memory_id) as n, m.source_id, m.lexical_weights,
           array(select x.entity_id
                 from   pgrecall.mention x
                 where  x.bank_id = (request.bank).bank_id and x.memory_id = a.memory_id
                   and  x.entity_id = any (array(
                          select q.entity_id from unnest(request.named) as q))
                 order  by x.entity_id) as names,
           pgrecall_internal._began_at(m.occurred, m.mentioned_at) as at
    from   alike a
    cross  join lateral (
      select x.occurred, x.mentioned_at, x.source_id, x.lexical_weights from pgrecall.memory x
      where  x.bank_id = (request.bank).bank_id and x.memory_id = a.memory_id
      limit  1
    ) as m
  )
  select array_agg(r.n order by r.n),
         array_agg(r.n order by pgrecall_internal._trust(sources, r.source_id) desc, r.at >= until,
                                case when r.at >= until then r.at end, r.at desc, r.n)
  into   near, sorted
  from   row r
  join   row b on b.n = 1 and b.names = r.names
  -- The same words in another order ("Ana manages Ben") are no other state; nor is what lies ahead
  -- one of what lies behind, unless a window says which is asked for.
  where  r.n = 1
     or  coalesce(r.lexical_weights <=> b.lexical_weights > 0.000001, true)
         and (request.during is not null or (r.at >= until) is not distinct from (b.at >= until));
  if cardinality(near) > 1 then
    states := array(
      select ids[s.n] from unnest(sorted) with ordinality as s(n, place) order by s.place);
    shares := (
      select array_agg(case when s.place is null then u.arms else (
               select jsonb_object_agg(a.key, a.value || jsonb_build_object(
                        'contribution', scores[u.n] * coalesce(
                          (a.value ->> 'contribution')::double precision / nullif(scores[s.was], 0),
                          1.0 / (select count(*) from jsonb_object_keys(shares[s.was])))))
               from   jsonb_each(shares[s.was]) as a) end order by u.n)
      from   unnest(shares) with ordinality as u(arms, n)
      left   join unnest(near, sorted) as s(place, was) on s.place = u.n);
    for n in 1 .. cardinality(near) loop
      ids[near[n]] := states[n];
    end loop;
  end if;
end;
$$;
comment on function pgrecall_internal._settled_states is
'The fused rows, with the best row and other states of it, of the first rows, in the order of an '
'answer; states holds their ids, or is null where the best row stands alone. Other states say '
'nearly the same (similarity of the embeddings on the scale of the bank at least 0.85), and the '
'question does not tell them apart, by a name or as _untold_places() says. The same words in '
'another order, and without a window what lies ahead beside what lies behind, are no states of one '
'thing. States are ordered by trust, then the latest first, up to now or the end of the window; '
'what lies before the window, and then what follows it, comes last. Each takes the place and the '
'score of one of them, with its own contributions in proportion, or equal ones where it had none.';
