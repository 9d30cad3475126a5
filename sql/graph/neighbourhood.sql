-- The graph around an entity or a memory, for drawing it: neighbourhood().
--
-- The graph is read hop by hop. Each node adds a bounded number of edges, the newest, and all nodes
-- together at most top_k, so that a hub of any size is drawn as quickly as a small one. An edge has
-- its stored direction, from whichever end it was reached.
create or replace function pgrecall_internal._hop(
  bank pgrecall.bank, entity_ids bigint[], memory_ids bigint[], as_of timestamptz, hop integer)
returns setof pgrecall.graph_edge
language plpgsql stable parallel unsafe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  with edge as (
    select 'entity' as from_kind, r.from_id, r.kind, 'entity' as to_kind, r.to_id,
           r.confidence as weight, r.memory_id
    from   pgrecall_internal._relations_of(
             (_hop.bank).bank_id, entity_ids, _hop.as_of, 25) as r
    union all
    select 'memory', x.memory_id, 'mentions', 'entity', x.entity_id, x.confidence, x.memory_id
    from   pgrecall_internal._facts_about(
             (_hop.bank).bank_id, entity_ids, _hop.as_of, 10) as x
    union all
    select 'memory', f.id, 'mentions', 'entity', x.entity_id, x.confidence, f.id
    from   unnest(memory_ids) as f(id)
    cross  join lateral (
      select m.entity_id, m.confidence
      from   pgrecall.mention m
      where  m.bank_id = (_hop.bank).bank_id and m.memory_id = f.id
      limit  20
    ) as x
    union all
    select 'memory', x.from_id, x.kind, 'memory', x.to_id, x.weight, null
    from   unnest(memory_ids) as f(id)
    cross  join lateral (
      (select o.from_id, o.kind, o.to_id, o.weight
       from   pgrecall.link o
       where  o.bank_id = (_hop.bank).bank_id and o.from_id = f.id
         and  (select pgrecall_internal._holds(m.valid_from, m.valid_to, _hop.as_of)
               from   pgrecall.memory m
               where  m.bank_id = (_hop.bank).bank_id and m.memory_id = o.to_id)
       limit  25)
      union all
      (select i.from_id, i.kind, i.to_id, i.weight
       from   pgrecall.link i
       where  i.bank_id = (_hop.bank).bank_id and i.to_id = f.id
         and  (select pgrecall_internal._holds(m.valid_from, m.valid_to, _hop.as_of)
               from   pgrecall.memory m
               where  m.bank_id = (_hop.bank).bank_id and m.memory_id = i.from_id)
       limit  25)
    ) as x
    union all
    -- Only of the memory where the graph begins: a search for each of many nodes would be slow.
    -- Its former versions, which are the most similar, are left out first.
    select 'memory', s.from_id, 'semantic', 'memory', s.to_id, s.similarity::real, null
    from (
      select u.*
      from   pgrecall_internal._similar_memories(
               bank, case when hop = 1 then memory_ids else '{}' end, 0.7, 50) as u
      where  (select pgrecall_internal._holds(m.valid_from, m.valid_to, _hop.as_of)
              from   pgrecall.memory m
              where  m.bank_id = (_hop.bank).bank_id and m.memory_id = u.to_id)
      order  by u.similarity desc, u.to_id desc
      limit  5
    ) as s
  )
  select distinct _hop.hop, e.from_kind, e.from_id, null::text, null::bigint, e.kind, e.to_kind,
         e.to_id, null::text, null::bigint, e.weight, e.memory_id, null::real, null::real
  from   edge e;
end;
$$;
comment on function pgrecall_internal._hop is
'The edges of entities and memories, without names: of an entity the newest 25 relations in each '
'direction and the newest 10 facts of each type, of a memory its entities, 25 links in each '
'direction and, in the first hop, the 5 most similar memories. Only edges whose facts hold as of '
'the given time are returned.';

create or replace function pgrecall.neighbourhood(
  bank      text,
  entity_id bigint default null,
  memory_id bigint default null,
  hops      integer default 1,
  as_of     timestamptz default now(),
  top_k     integer default 150)
returns setof pgrecall.graph_edge
language plpgsql stable parallel unsafe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  edges      pgrecall.graph_edge[] := '{}';
  added      pgrecall.graph_edge[];
  entity_ids bigint[] := array_remove(array[entity_id], null);
  memory_ids bigint[] := array_remove(array[memory_id], null);
  seen       text[];
  documents  bigint := (
    select s.document_count from pgrecall_internal.statistics s
    where  s.bank_id = bank and s.kind = 'memory');
  owner      pgrecall.bank := pgrecall_internal._bank(bank);
begin
  as_of := coalesce(as_of, now());
  perform pgrecall_internal._check_range('hops', hops, 1, 3);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 2000);
  if num_nonnulls(entity_id, memory_id) <> 1 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'either entity_id or memory_id says where the graph begins',
      hint    = 'Pass entity_id =>, as query_entities() or list_entities() returns it, or '
                'memory_id =>.';
  elsif entity_id is not null then
    perform pgrecall_internal._check_entity(bank, entity_id);
  else
    perform pgrecall_internal._check_memory(bank, memory_id);
    memory_ids := array(
      select m.memory_id
      from   pgrecall.memory m
      where  m.bank_id = neighbourhood.bank and m.memory_id = neighbourhood.memory_id
        and  pgrecall_internal._holds(m.valid_from, m.valid_to, as_of));
  end if;

  seen := array(select 'entity' || u from unnest(entity_ids) as u
                union all select 'memory' || u from unnest(memory_ids) as u);
  for n in 1 .. hops loop
    added := array(
      select x
      from   pgrecall_internal._hop(owner, entity_ids, memory_ids, as_of, n) as x
      where  not exists (
               select from unnest(edges) as y
               where  (y.from_kind, y.from_id, y.kind, y.to_kind, y.to_id)
                        = (x.from_kind, x.from_id, x.kind, x.to_kind, x.to_id))
      -- Relations and causes say more than mentions, and mentions more than similarity.
      order  by case when x.from_kind = 'entity' then 0
                     when x.kind = 'semantic' then 3
                     when x.kind = 'temporal' then 4
                     when x.kind = 'mentions' then 2
                     else 1 end,
                x.weight desc, x.from_id desc, x.to_id desc, x.kind
      limit  top_k - cardinality(edges)
    );
    edges := edges || added;
    entity_ids := array(
      select x.from_id from unnest(added) as x
      where  x.from_kind = 'entity' and 'entity' || x.from_id <> all (seen)
      union
      select x.to_id from unnest(added) as x
      where  x.to_kind = 'entity' and 'entity' || x.to_id <> all (seen));
    memory_ids := array(
      select x.from_id from unnest(added) as x
      where  x.from_kind = 'memory' and 'memory' || x.from_id <> all (seen)
      union
      select x.to_id from unnest(added) as x
      where  x.to_kind = 'memory' and 'memory' || x.to_id <> all (seen));
    seen := seen || array(select 'entity' || u from unnest(entity_ids) as u
                          union all select 'memory' || u from unnest(memory_ids) as u);
    exit when cardinality(edges) >= top_k;
  end loop;

  return query
  with node as materialized (
    select n.kind, n.id,
           case n.kind
             when 'entity' then (
               select e.name from pgrecall.entity e
               where  e.bank_id = neighbourhood.bank and e.entity_id = n.id)
             else (
               select left(m.text, 200) from pgrecall.memory m
               where  m.bank_id = neighbourhood.bank and m.memory_id = n.id)
           end as name,
           case n.kind
             when 'entity' then greatest(
               (select x.count from pgrecall_internal._mentions(neighbourhood.bank, n.id) as x),
               (select c.mention_count from pgrecall_internal.entity_count c
                where  c.bank_id = neighbourhood.bank and c.entity_id = n.id))
           end as mentions
    from (
      select x.from_kind as kind, x.from_id as id from unnest(edges) as x
      union
      select x.to_kind, x.to_id from unnest(edges) as x
    ) as n
  )
  select e.hop, e.from_kind, e.from_id, f.name, f.mentions, e.kind, e.to_kind, e.to_id, t.name,
         t.mentions, e.weight, e.memory_id,
         pgrecall_internal._rarity(f.mentions, coalesce(documents, 1))::real,
         pgrecall_internal._rarity(t.mentions, coalesce(documents, 1))::real
  from   unnest(edges) with ordinality as e(
           hop, from_kind, from_id, from_name, from_mentions, kind, to_kind, to_id, to_name,
           to_mentions, weight, memory_id, from_rarity, to_rarity, place)
  join   node f on f.kind = e.from_kind and f.id = e.from_id
  join   node t on t.kind = e.to_kind and t.id = e.to_id
  order  by e.place;
end;
$$;
comment on function pgrecall.neighbourhood is
'The graph around an entity or a memory, up to 3 hops, as edges: those of nearer hops first, and '
'within a hop relations, then causes, mentions, and similar facts. It contains only what holds as '
'of as_of. At most top_k edges, 1 to 2,000: of an entity the newest 25 relations in each direction '
'and 10 facts of each type, of a memory 20 entities and 25 links in each direction, and of the '
'memory where the graph begins the 5 most similar. Errors: RC001, RC010 unknown memory, RC013 '
'unknown entity, 22023.';
