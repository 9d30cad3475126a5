-- How an arm is called: by name, from the run of a recall or alone.
create or replace function pgrecall_internal._arm_hits(
  arm text, result pgrecall_internal.arm_result)
returns setof pgrecall.arm_hit
language sql immutable parallel safe rows 100
begin atomic
  -- Called in a from clause, so that it is inlined. Equal scores share a rank, because the order of
  -- storing is no evidence.
  select arm, u.id, (rank() over (order by u.score desc))::integer, u.score, null::real,
         -- A path of one element is the hit itself.
         case when u.path like E'%\x1f%' then to_jsonb(u.path) end, (result).background
  from   unnest((result).memory_ids, (result).scores, (result).paths)
           with ordinality as u(id, score, path, n)
  order  by u.n;
end;
comment on function pgrecall_internal._arm_hits is 'The hits of an arm with their ranks.';

create or replace function pgrecall_internal._call_arm(
  arm text, request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean,
  out result pgrecall_internal.arm_result, out hits pgrecall.arm_hit[])
language plpgsql stable parallel unsafe
set search_path from current
as $$
begin
  -- Dynamic, so that no arm is named here. The name is that of a row of the registry.
  execute format('select * from pgrecall_internal.%I($1, $2, $3)', format('_%s_arm', arm))
  into    result
  using   request, before, is_planned;
  hits := '{}';
  if result.is_run and not is_planned then
    hits := array(select h from pgrecall_internal._arm_hits(arm, result) as h);
  end if;
end;
$$;
comment on function pgrecall_internal._call_arm is
'Calls the worker of an arm. Returns its result, and its hits with ranks.';

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
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  -- A search costs as much as ten mentions read.
  most constant integer := least(10 * cardinality(hits), 999);
begin
  if request.named = '{}' or hits = '{}' then
    return hits;
  end if;
  return array(
    with hit as materialized (
      select *
      from   unnest(hits) with ordinality
               as h(arm, memory_id, rank, score, named, via, background, place)
    ),
    entity as materialized (
      select n.entity_id, n.mentions, n.weight from pgrecall_internal._name_weights(request) as n
    ),
    named as materialized (
      select m.memory_id, least(2 / 3.0, sum(e.weight))::real as weight
      from   entity e
      cross  join lateral (
        -- The mentions of the entity, or if these are many more than the hits, one search for each
        -- hit.
        select x.memory_id
        from   pgrecall.mention x
        where  e.mentions <= most and x.bank_id = (request.bank).bank_id
          and  x.entity_id = e.entity_id
        union  all
        select h.memory_id
        from   (select distinct x.memory_id from hit x) as h
        where  e.mentions > most and coalesce(
                 (select true
                  from   pgrecall.mention x
                  where  x.bank_id = (request.bank).bank_id and x.memory_id = h.memory_id
                    and  x.entity_id between e.entity_id and e.entity_id
                  limit  1), false)
      ) as m
      group  by m.memory_id
    )
    select (h.arm, h.memory_id, h.rank, h.score,
            greatest(n.weight, f.weight, case when h.via is not null then (
              select max(e.weight) from entity e
              where  'e' || e.entity_id = o.element) end)::real,
            h.via, h.background)::pgrecall.arm_hit
    from   hit h
    left   join named n on n.memory_id = h.memory_id
    -- A path is about whom its origin names; what was only said before or after need not be.
    cross  join lateral (
      select case when h.via #>> '{}' !~ E'f[0-9]+\x1ff'
                  then split_part(h.via #>> '{}', E'\x1f', 1) end as element
    ) as o
    left   join named f
      on   f.memory_id = case when o.element like 'f%' then substr(o.element, 2)::bigint end
    order  by h.place
  );
end;
$$;
comment on function pgrecall_internal._named_hits is
'The hits, each with the weights of the names whose entities its memory mentions, summed, at most '
'1, or those of a memory or an entity from which a path of mentions, relations and causes leads to '
'it.';

create or replace function pgrecall_internal._doubted_weights(
  options jsonb, arms pgrecall_internal.arm_found[])
returns jsonb
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  weights  constant jsonb := options -> 'weights';
  doubt    constant double precision := (options ->> 'doubt')::double precision;
  arm      pgrecall_internal.arm_found;
  apart    double precision;
  words    double precision;
  meaning  double precision;
  sureness double precision;
  graph    double precision := 0;
  changed  jsonb := '{}';
begin
  foreach arm in array arms loop
    apart := 1 - arm.eleventh / nullif(arm.best, 0);
    if arm.arm = 'lexical' then
      words := apart;
      -- Beside embeddings that know few words of the question, words are surer.
      sureness := greatest(0, least(1, greatest(
        (apart - 0.5) / 0.2, 8 * (0.75 - (options ->> 'known_words')::double precision))));
    elsif arm.background < 'infinity' and arm.eleventh > 0 then
      meaning := greatest(meaning, apart);
    elsif arm.is_graph then
      graph := (weights ->> arm.arm)::double precision * least(1, arm.best / arm.certain_at);
    end if;
  end loop;
  if doubt = 0 or sureness is null then
    return weights;
  end if;
  foreach arm in array arms loop
    if arm.arm = 'lexical' and arm.eleventh > 0 and words < 2 * meaning then
      changed := changed || jsonb_build_object(
        arm.arm,
        (weights ->> arm.arm)::double precision * (1 - doubt * (1 - words / (2 * meaning))));
    elsif arm.background is not null and arm.best > 0 then
      changed := changed || jsonb_build_object(
        arm.arm,
        (weights ->> arm.arm)::double precision
        * (1 - doubt * case arm.background when 'infinity' then 1 else sureness * (
            1 - greatest(0, least(1, (1 - arm.background / arm.best - 0.3) / 0.3))) end));
    elsif arm.finds = 'message' and graph > 0 then
      -- The graph votes again for what others found, as far as it is certain, but leads to no
      -- message. Therefore messages get a share of its weight.
      changed := changed || jsonb_build_object(
        arm.arm, (weights ->> arm.arm)::double precision * (1 + graph));
    end if;
  end loop;
  return weights || changed;
end;
$$;
comment on function pgrecall_internal._doubted_weights is
'The weights in options, lowered for words or embeddings where they can hardly distinguish '
'memories and the '
'others can. Certainty of embeddings falls from 1 to 0 as the best similarity, less its '
'background, falls from 0.6 to 0.3 of itself. Sureness of words rises from 0 to 1 as the lexical '
'score falls by 0.5 to 0.7 of itself up to the eleventh hit, or as the share of the words of the '
'query that its embedding knows falls from 0.75 to 0.625. The weight of an arm that compares '
'embeddings is multiplied by 1 - doubt * sureness * (1 - certainty), by 1 - doubt where its '
'background is infinite. That of the lexical arm is multiplied by 1 - doubt * (1 - w / (2 m)) '
'where that is less than 1: w and m are by how much of themselves the lexical score and the '
'similarity fall up to the eleventh hit, of eleven at least; m is not known beside an infinite '
'background.';

create or replace function pgrecall_internal._arms_found(hits pgrecall.arm_hit[])
returns pgrecall_internal.arm_found[]
language sql immutable parallel safe
return array(
  select (h.arm, a.finds, a.needs = '{names}', a.certain_at, h.best, h.worst, h.eleventh,
          h.background)::pgrecall_internal.arm_found
  from (
    select x.arm, max(x.score) as best, min(x.score) as worst,
           case when count(*) > 10 then min(x.score) filter (where x.rank <= 11) else 0 end
             as eleventh,
           max(x.background) as background
    from   unnest(hits) as x
    group  by x.arm
  ) as h
  left   join pgrecall.arms() as a on a.arm = h.arm
);
comment on function pgrecall_internal._arms_found is 'The arms that have any of the hits.';
