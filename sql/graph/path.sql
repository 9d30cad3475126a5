-- Explanations from the graph, in words: neighbours() of a memory, path() between two entities.
--
-- Both serve people and agents that show why facts are connected. A recall does not use them.
-- path() searches from both ends, the smaller frontier first, and stops when one side has more than
-- 2,000 entities, so that a hub does not make it read the whole bank.
create or replace function pgrecall.neighbours(
  bank text, memory_id bigint, top_k integer default 50)
returns setof pgrecall.neighbour
language plpgsql stable parallel unsafe rows 50
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  owner     pgrecall.bank := pgrecall_internal._bank(bank);
  silent    constant jsonb := pgrecall_internal._silent_sources(owner);
  documents bigint;
begin
  perform pgrecall_internal._check_memory(bank, memory_id);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 10000);
  select s.document_count into documents
  from   pgrecall_internal.statistics s
  where  s.bank_id = neighbours.bank and s.kind = 'memory';
  return query
  with linked as (
    (select o.to_id as id, o.kind, o.weight, true as is_forth
     from   pgrecall.link o
     where  o.bank_id = neighbours.bank and o.from_id = neighbours.memory_id
     limit  1000)
    union all
    (select i.from_id, i.kind, i.weight, false
     from   pgrecall.link i
     where  i.bank_id = neighbours.bank and i.to_id = neighbours.memory_id
     limit  1000)
    union all
    (select s.to_id, 'semantic', s.similarity::real, true
     from   pgrecall_internal._similar_memories(
              owner, array[neighbours.memory_id], 0.7,
              case when silent = '{}' then 5 else 50 end) as s
     where  silent = '{}' or pgrecall_internal._is_heard(owner, silent, s.to_id)
     order  by s.similarity desc, s.to_id desc
     limit  5)
  ),
  named as materialized (
    select x.entity_id, e.name,
           pgrecall_internal._rarity(n.count, coalesce(documents, 1)) as rarity
    from (
      select m.entity_id
      from   pgrecall.mention m
      where  m.bank_id = neighbours.bank and m.memory_id = neighbours.memory_id
      limit  100
    ) as x
    cross  join lateral (
      select y.name
      from   pgrecall.entity y
      where  y.bank_id = neighbours.bank and y.entity_id = x.entity_id
      limit  1
    ) as e
    cross  join lateral pgrecall_internal._mentions(neighbours.bank, x.entity_id) as n
  ),
  shared as (
    select o.memory_id as id, n.name, n.rarity
    from   named n
    cross  join pgrecall.fact_type t
    cross  join lateral (
      select m.memory_id
      from   pgrecall.mention m
      where  m.bank_id = neighbours.bank and m.entity_id = n.entity_id
        and  m.fact_type between t.fact_type and t.fact_type
        and  (silent = '{}' or pgrecall_internal._is_heard(owner, silent, m.memory_id))
      order  by m.fact_type desc, m.memory_id desc
      limit  50
    ) as o
    where  t.bank_id = neighbours.bank
  ),
  found as (
    (select distinct on (l.id, why)
           l.id, l.kind as via, l.weight::double precision as weight,
           case l.kind
             when 'semantic' then format('means nearly the same: similarity %s',
                                         round(l.weight::numeric, 2))
             when 'temporal' then 'happened at about the same time'
             when 'causes' then
               case when l.is_forth then 'is caused by this' else 'causes this' end
             when 'caused_by' then
               case when l.is_forth then 'causes this' else 'is caused by this' end
             when 'enables' then
               case when l.is_forth then 'is enabled by this' else 'enables this' end
             else case when l.is_forth then 'is prevented by this' else 'prevents this' end
           end as why
     from   linked l
     where  silent = '{}' or pgrecall_internal._is_heard(owner, silent, l.id)
     order  by l.id, why, l.weight desc)
    union all
    select s.id, 'entity', tanh(0.5 * sum(s.rarity)),
           'names ' || string_agg(s.name, ', ' order by s.rarity desc, s.name) || ' too'
    from   shared s
    where  s.id <> neighbours.memory_id
    group  by s.id
  )
  select f.id, m.text, f.via, f.weight, f.why
  from (
    select u.* from found u order by u.weight desc, u.id desc, u.via limit neighbours.top_k
  ) as f
  cross  join lateral (
    select x.text
    from   pgrecall.memory x
    where  x.bank_id = neighbours.bank and x.memory_id = f.id
    limit  1
  ) as m
  order  by f.weight desc, f.id desc, f.via;
end;
$$;
comment on function pgrecall.neighbours is
'Neighbours of a memory in the graph, strongest first, with a row for each reason. via is the kind '
'of the link, semantic for the 5 most similar memories with a similarity of 0.7 or more, or entity '
'where both memories name the same entity. weight, 0 to 1, is that of the link, the similarity, or '
'tanh(0.5 n) with n the rarity-weighted number of shared entities. why says it in words. Only the '
'latest 50 memories of each type per entity are considered. Superseded memories are included, '
'those of sources in quarantine or with a trust of 0 are not. Errors: RC001, RC010 unknown memory, '
'22023.';

create or replace function pgrecall_internal._relations_of(
  bank text, entity_ids bigint[], at timestamptz, most integer)
returns table (
  from_id bigint, kind text, to_id bigint, confidence real, memory_id bigint, is_forth boolean)
language plpgsql stable parallel safe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select r.*
  from   unnest(entity_ids) as u(id)
  cross  join lateral (
    (select o.from_id, o.kind, o.to_id, o.confidence, o.memory_id, true
     from   pgrecall.relation o
     -- "between" rather than "=", so that only one index provides this order. A relation that does
     -- not hold must not take the place of one that does. Not exists(): a join could read all
     -- memories of a bank that was never analysed.
     where  o.bank_id = _relations_of.bank and o.from_id between u.id and u.id
       and  pgrecall_internal._holds(o.valid_from, o.valid_to, at)
       and  (select pgrecall_internal._holds(m.valid_from, m.valid_to, at)
             from   pgrecall.memory m
             where  m.bank_id = _relations_of.bank and m.memory_id = o.memory_id)
     order  by o.from_id desc, o.relation_id desc
     limit  most)
    union all
    (select i.from_id, i.kind, i.to_id, i.confidence, i.memory_id, false
     from   pgrecall.relation i
     where  i.bank_id = _relations_of.bank and i.to_id between u.id and u.id
       and  pgrecall_internal._holds(i.valid_from, i.valid_to, at)
       and  (select pgrecall_internal._holds(m.valid_from, m.valid_to, at)
             from   pgrecall.memory m
             where  m.bank_id = _relations_of.bank and m.memory_id = i.memory_id)
     order  by i.to_id desc, i.relation_id desc
     limit  most)
  ) as r;
end;
$$;
comment on function pgrecall_internal._relations_of is
'The newest relations of entities that hold at a time, as do the facts that state them: at most '
'most of an entity in each direction. is_forth: from_id is one of the entities.';

create or replace function pgrecall_internal._facts_about(
  bank text, entity_ids bigint[], at timestamptz, most integer)
returns table (entity_id bigint, memory_id bigint, confidence real)
language plpgsql stable parallel safe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select u.id, x.memory_id, x.confidence
  from   unnest(entity_ids) as u(id)
  cross  join pgrecall.fact_type t
  cross  join lateral (
    select m.memory_id, m.confidence
    from   pgrecall.mention m
    where  m.bank_id = _facts_about.bank and m.entity_id = u.id
      and  m.fact_type between t.fact_type and t.fact_type
      and  (select pgrecall_internal._holds(f.valid_from, f.valid_to, at)
            from   pgrecall.memory f
            where  f.bank_id = _facts_about.bank and f.memory_id = m.memory_id)
    order  by m.fact_type desc, m.memory_id desc
    limit  most
  ) as x
  where  t.bank_id = _facts_about.bank;
end;
$$;
comment on function pgrecall_internal._facts_about is
'The newest facts that mention entities and hold at a time: at most most of each type for an '
'entity.';

create or replace function pgrecall_internal._steps(bank text, entity_ids bigint[])
returns table (from_id bigint, to_id bigint, via text, memory_id bigint, is_forth boolean)
language plpgsql stable parallel safe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select distinct on (n.to_id) n.from_id, n.to_id, n.via, n.memory_id, n.is_forth
  from (
    select case when r.is_forth then r.from_id else r.to_id end,
           case when r.is_forth then r.to_id else r.from_id end, r.kind, r.memory_id, r.is_forth, 0
    from   pgrecall_internal._relations_of(_steps.bank, entity_ids, now(), 50) as r
    union all
    select f.entity_id, x.entity_id, 'mentioned with', f.memory_id, true, 1
    from   pgrecall_internal._facts_about(_steps.bank, entity_ids, now(), 50) as f
    cross  join lateral (
      select o.entity_id
      from   pgrecall.mention o
      where  o.bank_id = _steps.bank and o.memory_id = f.memory_id and o.entity_id <> f.entity_id
      limit  20
    ) as x
  ) as n(from_id, to_id, via, memory_id, is_forth, place)
  where  n.to_id <> all (entity_ids)
  -- A relation precedes a mention, and a newer fact precedes an older one.
  order  by n.to_id, n.place, n.memory_id desc, n.via, n.from_id;
end;
$$;
comment on function pgrecall_internal._steps is
'Entities one step from any of these entities, and the step: a relation in either direction, or '
'else a fact that names both. Only what holds now counts. Per entity the newest 50 relations in '
'each direction and 50 facts of each type are followed.';

create or replace function pgrecall.path(
  bank text, entity_a bigint, entity_b bigint, longest integer default 6)
returns setof pgrecall.path_step
language plpgsql stable parallel unsafe rows 5
set search_path from current
as $$
declare
  -- From each end, by entity: the steps that reached those visited, and the last of these.
  steps   jsonb[];
  rims    jsonb[];
  side    integer;
  sizes   bigint[];
  meeting bigint;
  place   bigint;
  taken   jsonb;
  way     jsonb[] := '{}';
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_entity(bank, entity_a);
  perform pgrecall_internal._check_entity(bank, entity_b);
  perform pgrecall_internal._check_range('longest', longest, 1, 10);
  if entity_a = entity_b then
    return;
  end if;

  steps := array[jsonb_build_object(entity_a, null), jsonb_build_object(entity_b, null)];
  rims := steps;
  -- The smaller frontier is expanded until the two meet, or a side has more than 2,000 entities.
  for n in 1 .. longest loop
    sizes := array(select (select count(*) from jsonb_object_keys(u.entities))
                   from   unnest(rims || steps) with ordinality as u(entities, n)
                   order  by u.n);
    exit when 0 = any (sizes) or 2000 < any (sizes);
    side := case when sizes[1] <= sizes[2] then 1 else 2 end;
    rims[side] := (
      select coalesce(jsonb_object_agg(s.to_id, to_jsonb(s)), '{}')
      from   pgrecall_internal._steps(
               bank, array(select k::bigint from jsonb_object_keys(rims[side]) as k)) as s
      where  not steps[side] ? s.to_id::text);
    steps[side] := steps[side] || rims[side];
    meeting := (
      select min(k::bigint) from jsonb_object_keys(rims[side]) as k where steps[3 - side] ? k);
    exit when meeting is not null;
  end loop;
  if meeting is null then
    return;
  end if;

  place := meeting;
  while place <> entity_a loop
    taken := steps[1] -> place::text;
    way := taken || way;
    place := (taken ->> 'from_id')::bigint;
  end loop;
  place := meeting;
  while place <> entity_b loop
    taken := steps[2] -> place::text;
    -- Found from b, so its direction is reversed.
    way := way || (taken || jsonb_build_object(
      'from_id', taken -> 'to_id', 'to_id', taken -> 'from_id',
      'is_forth', not (taken ->> 'is_forth')::boolean));
    place := (taken ->> 'from_id')::bigint;
  end loop;

  return query
  select w.n::integer, f.name, s.via, t.name, s.memory_id,
         case
           when s.via = 'mentioned with' then format('%s and %s: %s', f.name, t.name, m.text)
           when s.is_forth then format('%s %s %s: %s', f.name, s.via, t.name, m.text)
           else format('%s %s %s: %s', t.name, s.via, f.name, m.text)
         end,
         s.from_id, s.to_id
  from   unnest(way) with ordinality as w(taken, n)
  cross  join lateral jsonb_to_record(w.taken) as s(
    from_id bigint, to_id bigint, via text, memory_id bigint, is_forth boolean)
  cross  join lateral (
    select e.name from pgrecall.entity e
    where  e.bank_id = path.bank and e.entity_id = s.from_id
    limit  1
  ) as f
  cross  join lateral (
    select e.name from pgrecall.entity e
    where  e.bank_id = path.bank and e.entity_id = s.to_id
    limit  1
  ) as t
  cross  join lateral (
    select x.text from pgrecall.memory x
    where  x.bank_id = path.bank and x.memory_id = s.memory_id
    limit  1
  ) as m
  order  by w.n;
end;
$$;
comment on function pgrecall.path is
'A shortest path between two entities, of at most longest steps (1 to 10), in order; no row where '
'there is none. A step is a relation in either direction, or else a fact that names both '
'("mentioned with"); only facts that hold now count. memory_id is the fact, and why says the step '
'in words, with the relation in the direction in which it holds. Per entity the newest 50 '
'relations in each direction and 50 facts of each type are followed, and the search stops when '
'either side has more than 2,000 entities, so that it may miss a path through a hub. Ids: '
'query_entities(). Errors: RC001, RC013 unknown entity, 22023.';
