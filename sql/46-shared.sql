-- The shared arm: facts that have only a rare entity in common with the best hits.
--
-- A batch number, a ticket, a licence plate ties facts together that share no other word. The arm
-- takes the five best hits of the arms before it, keeps those of their entities that few facts
-- mention (option rare_mentions; counted up to that limit, so that a hub costs no more than a rare
-- entity) and that the query does not name, and returns the other facts that mention them.
-- The best of the arms that search by the query itself is taken too, where neighbours that the
-- graph lifts keep it out of the five.
--
-- A hit counts by how much of the query it answers. A similarity counts 0 at option
-- similarity_floor and 1 at three quarters of the way from there to 1: by default 0 at 0.2 and 1 at
-- 0.8. A floor below 0 counts as 0, for what has nothing in common answers nothing.
create or replace function pgrecall_internal._shared_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel safe
set search_path from current
set jit = off
as $$
declare
  result pgrecall_internal.arm_result;
  rare   integer := (request.options ->> 'rare_mentions')::integer;
  floor  double precision := (request.options ->> 'similarity_floor')::double precision;
begin
  result.is_run := rare > 0;
  if not result.is_run then
    result.reason := 'no entity counts as rare';
    return result;
  elsif is_planned then
    result.reason := 'rare entities of what the arms before find may lead on';
    return result;
  end if;
  execute format(
    $sql$
      with best as materialized (
        select b.memory_id, b.strength from pgrecall_internal._best_seeds($4, 5) as b
      ),
      seed as materialized (
        -- A hit of low relevance is not a seed.
        select s.memory_id, s.strength * q.quality as strength
        from (
          select b.memory_id, b.strength from best b
          union all
          select o.memory_id, o.strength from pgrecall_internal._best_seeds($10, 1) as o
          where  not exists (select from best b where b.memory_id = o.memory_id)
        ) as s
        cross  join lateral (
          select max(case h.arm
                       when 'lexical' then h.score / $8
                       when 'key' then 1
                       when 'semantic' then (h.score - $9) / nullif(0.75 * (1 - $9), 0)
                     end) as quality
          from   unnest($4) as h
          where  h.memory_id = s.memory_id
        ) as q
      ),
      entity as materialized (
        select x.entity_id, max(s.strength) as strength,
               (array_agg(s.memory_id order by s.strength desc))[1] as seed_id
        from   seed s
        cross  join lateral (
          select i.entity_id from pgrecall.mention i
          where  i.bank_id = $1 and i.memory_id = s.memory_id
          limit  100
        ) as x
        where  x.entity_id <> all ($5)
        group  by x.entity_id
      ),
      counted as (
        select e.entity_id, e.strength, e.seed_id, c.memory_ids
        from   entity e
        cross  join lateral (
          select array_agg(l.memory_id) as memory_ids from (
            select x.memory_id from pgrecall.mention x
            where  x.bank_id = $1 and x.entity_id = e.entity_id
            limit  $6 + 1
          ) as l
        ) as c
        where  cardinality(c.memory_ids) between 2 and $6
      )
      select array_agg(t.memory_id order by t.score desc, t.memory_id desc),
             array_agg(t.score order by t.score desc, t.memory_id desc),
             array_agg(jsonb_build_object('entities', jsonb_build_array(n.name),
                                          'facts', jsonb_build_array(t.seed_id, t.memory_id))
                       order by t.score desc, t.memory_id desc)
      from (
        select u.memory_id, sum(c.strength / cardinality(c.memory_ids)) as score,
               (array_agg(c.entity_id order by c.strength / cardinality(c.memory_ids) desc))[1]
                 as entity_id,
               (array_agg(c.seed_id order by c.strength / cardinality(c.memory_ids) desc))[1]
                 as seed_id
        from   counted c
        cross  join unnest(c.memory_ids) as u(memory_id)
        cross  join lateral (
          select from pgrecall.memory m
          where  m.bank_id = $1 and m.memory_id = u.memory_id
            and  array_position($7, m.fact_type) is not null and %s
          limit  1
        ) as visible
        where  not exists (select from seed s where s.memory_id = u.memory_id)
        group  by u.memory_id
        having sum(c.strength / cardinality(c.memory_ids)) >= 0.1
        order  by 2 desc, 1 desc
        limit  20
      ) as t
      cross  join lateral (
        select e.name from pgrecall.entity e
        where  e.bank_id = $1 and e.entity_id = t.entity_id
        limit  1
      ) as n
    $sql$,
    request.visible_sql)
  into  result.memory_ids, result.scores, result.vias
  using (request.bank).bank_id, request.as_of, request.filter, before,
        array(select n.entity_id from unnest(request.named) as n), rare, request.fact_types,
        nullif((request.memory_terms).idf_sum, 0), greatest(floor, 0),
        array(select h from unnest(before) as h where h.arm in ('key', 'semantic', 'lexical'));
  return result;
end;
$$;
comment on function pgrecall_internal._shared_arm is
'Worker of the shared arm. score: for each rare entity in common the strength of the hit, times '
'how much of the query it answers, over the number of mentions, added up; 0.1 at least. via: the '
'entity that adds most, and the hit that mentions it.';
