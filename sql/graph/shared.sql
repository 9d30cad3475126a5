-- The shared arm: facts that have only a rare entity in common with the best hits.
--
-- A batch number, a ticket, a licence plate ties facts together that share no other word. The arm
-- takes the five best hits of the arms before it, keeps those of their entities that few facts
-- mention (option rare_mentions; counted up to that limit, so that a hub costs no more than a rare
-- entity) and that the query does not name, and returns the other facts that mention them, also a
-- weaker one of the five.
-- The best of the arms that search by the query itself is taken too, where neighbours that the
-- graph lifts keep it out of the five.
--
-- A hit counts by how much of the query it answers. A similarity counts 0 at option
-- similarity_floor and 1 at three quarters of the way from there to 1: by default 0 at 0.2 and 1 at
-- 0.8. A floor below 0 counts as 0, for what has nothing in common answers nothing. Where a
-- question asks for others ("who else was affected") the answer shares little with it, and a hit
-- that mentions somebody named counts 0.6 at least.
create or replace function pgrecall_internal._asks_for_others(query text)
returns boolean
language sql immutable parallel safe
return lower(left(query, 1000)) ~ (
  '\m(else|besides|apart from|aside from|other than|in addition to|the others|which other'
  '|what other|who other|any other|sonst|außer|abgesehen von|welche anderen|wer noch|noch wer'
  '|además|aparte de|quién más|qué más|qué otr[oa]s?|qui d''autre|quoi d''autre|à part|hormis'
  '|en dehors de|quel(le)?s autres|chi altro|cos''altro|oltre a|a parte|quali altr[ie]|wie nog'
  '|wat nog|behalve|wie anders|wat anders|welke andere|quem mais|o que mais|além d[eoa]'
  '|que outr[oa]s?)\M');
comment on function pgrecall_internal._asks_for_others is
'Whether a question asks for others of whom the same is true.';

create or replace function pgrecall_internal._shared_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  bank   text := (request.bank).bank_id;
  result pgrecall_internal.arm_result;
  rare   integer := (request.options ->> 'rare_mentions')::integer;
  floor  double precision :=
    greatest((request.options ->> 'similarity_floor')::double precision, 0);
  asks_for_others constant boolean := pgrecall_internal._asks_for_others(request.query);
  idfs   double precision := nullif((request.memory_terms).idf_sum, 0);
  entity_ids bigint[];
  seed_ids   bigint[];
  places     integer[];
begin
  result.is_run := rare > 0;
  if not result.is_run then
    result.reason := 'no entity counts as rare';
    return result;
  elsif is_planned then
    result.reason := 'rare entities of what the arms before find may lead on';
    return result;
  end if;
  with hit as materialized (
    select h.memory_id, sum(r.share) as rrf,
           sum(r.share) filter (where h.arm in ('key', 'semantic', 'lexical')) as own_rrf,
           max(case h.arm
                 when 'lexical' then h.score / idfs
                 when 'key' then 1
                 when 'semantic' then (h.score - floor) / nullif(0.75 * (1 - floor), 0)
               end) as quality
    from   unnest(before) as h
    cross  join lateral (
      select case when h.rank <= 20 then 1 / (5 + h.rank)::double precision end as share
    ) as r
    group  by h.memory_id
  ),
  best as materialized (
    select h.memory_id, h.quality, h.rrf / max(h.rrf) over () as share
    from   hit h
    where  h.rrf is not null
    order  by h.rrf desc, h.memory_id desc
    limit  5
  ),
  own as (
    select h.memory_id, h.quality, 1::double precision as share
    from   hit h
    where  h.own_rrf is not null
    order  by h.own_rrf desc, h.memory_id desc
    limit  1
  ),
  seed as materialized (
    select u.memory_id,
           u.share * case when asks_for_others and exists (
                            select from unnest(request.named) as n
                            cross  join lateral (
                              select from pgrecall.mention i
                              where  i.bank_id = bank and i.memory_id = u.memory_id
                                and  i.entity_id = n.entity_id
                              limit  1
                            ) as named)
                       then greatest(u.quality, 0.6) else u.quality end as strength
    from (
      select b.memory_id, b.quality, b.share from best b
      union all
      select o.memory_id, o.quality, o.share
      from   own o
      where  not exists (select from best b where b.memory_id = o.memory_id)
    ) as u
  ),
  entity as materialized (
    select x.entity_id, max(s.strength) as strength,
           (array_agg(s.memory_id order by s.strength desc))[1] as seed_id
    from   seed s
    cross  join lateral (
      select i.entity_id from pgrecall.mention i
      where  i.bank_id = bank and i.memory_id = s.memory_id
      limit  100
    ) as x
    where  not exists (select from unnest(request.named) as n where n.entity_id = x.entity_id)
    group  by x.entity_id
  ),
  shared as (
    select e.entity_id, e.seed_id, c.memory_ids, e.strength / cardinality(c.memory_ids) as share
    from   entity e
    cross  join lateral (
      select array(
        select x.memory_id from pgrecall.mention x
        where  x.bank_id = bank and x.entity_id = e.entity_id
        limit  rare + 1
      ) as memory_ids
    ) as c
    where  cardinality(c.memory_ids) between 2 and rare
  )
  select array_agg(t.memory_id order by t.score desc, t.memory_id desc),
         array_agg(t.score order by t.score desc, t.memory_id desc),
         array_agg(t.entity_id order by t.score desc, t.memory_id desc),
         array_agg(t.seed_id order by t.score desc, t.memory_id desc)
  into   result.memory_ids, result.scores, entity_ids, seed_ids
  from (
    select u.memory_id, sum(s.share) as score,
           (array_agg(s.entity_id order by s.share desc))[1] as entity_id,
           (array_agg(s.seed_id order by s.share desc))[1] as seed_id
    from   shared s
    cross  join unnest(s.memory_ids) as u(memory_id)
    where  u.memory_id <> s.seed_id
    group  by u.memory_id
    having sum(s.share) >= 0.1
  ) as t;

  places := pgrecall_internal._visible_places(request, result.memory_ids, 20);
  select array_agg(result.memory_ids[u.p] order by u.n), array_agg(result.scores[u.p] order by u.n),
         array_agg(
           jsonb_build_object('entities', jsonb_build_array(x.name),
                              'facts', jsonb_build_array(seed_ids[u.p], result.memory_ids[u.p]))
           order by u.n)
  into   result.memory_ids, result.scores, result.vias
  from   unnest(places) with ordinality as u(p, n)
  cross  join lateral (
    select e.name from pgrecall.entity e
    where  e.bank_id = bank and e.entity_id = entity_ids[u.p]
    limit  1
  ) as x;
  return result;
end;
$$;
comment on function pgrecall_internal._shared_arm is
'Worker of the shared arm. score: for each rare entity in common the strength of the hit, times '
'how much of the query it answers, over the number of mentions, added up; 0.1 at least. via: the '
'entity that adds most, and the hit that mentions it.';
