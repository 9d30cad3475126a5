-- Entity resolution of the names in facts: writes entities, aliases, mentions and relations.
--
-- retain() calls four functions in turn. _store_short_names() (short-name.sql) finds who is meant
-- by a part of a name, _store_entities() creates an entity for each unknown name. _store_mentions()
-- then resolves every name to an entity: a name of one entity means that entity; a name of several,
-- or of an entity of a kind that excludes its own (_kinds_conflict()), is resolved by
-- _resolve_names(), which compares co-mentions, time and kind. _store_relations() connects the
-- resolved entities. New names are locked before (_lock_names()), so that two writers do not create
-- an entity of the same name; a writer that deletes or merges entities has the bank for itself. The
-- queries look up one alias or entity at a time, each in a lateral subquery with a limit, so that
-- they use the index also before the tables are analysed.

create or replace function pgrecall_internal._alias_candidates(bank text, aliases text[])
returns table (alias text, entity_id bigint, name text, confidence real, is_own_name boolean,
               kind_class text, last_mentioned_at timestamptz, co_mentions bigint[])
language plpgsql stable parallel safe rows 20
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select d.alias, c.entity_id, c.name, c.confidence, c.is_own_name, c.kind_class, l.mentioned_at,
         array(select x.other_id
               from   pgrecall_internal._co_mentions(_alias_candidates.bank, c.entity_id) as x)
  from   (select distinct u.alias from unnest(aliases) as u(alias)) as d
  cross  join lateral (
    select b.entity_id, e.name, b.confidence, pgrecall_internal._kind_class(e.kind) as kind_class,
           pgrecall.normalised_name(e.name) = b.alias as is_own_name
    from   pgrecall.entity_alias b
    cross  join lateral (
      select x.name, x.kind
      from   pgrecall.entity x
      where  x.bank_id = _alias_candidates.bank and x.entity_id = b.entity_id
      limit  1
    ) as e
    where  b.bank_id = _alias_candidates.bank and b.alias = d.alias
    order  by b.confidence desc, b.entity_id
    limit  10
  ) as c
  left   join lateral (
    select m.mentioned_at
    from (
      select max(y.memory_id) as memory_id
      from   pgrecall.fact_type t
      cross  join lateral (
        select x.memory_id
        from   pgrecall.mention x
        where  x.bank_id = _alias_candidates.bank and x.entity_id = c.entity_id
          and  x.fact_type between t.fact_type and t.fact_type
        order  by x.fact_type desc, x.memory_id desc
        limit  1
      ) as y
      where  t.bank_id = _alias_candidates.bank
    ) as latest
    cross  join lateral (
      select z.mentioned_at
      from   pgrecall.memory z
      where  z.bank_id = _alias_candidates.bank and z.memory_id = latest.memory_id
      limit  1
    ) as m
  ) as l on true;
end;
$$;
comment on function pgrecall_internal._alias_candidates is
'The entities that have each alias, at most the ten with the highest confidence. is_own_name: the '
'alias is the name of the entity. last_mentioned_at: time of its latest memory. co_mentions: '
'entities that its latest facts mention too.';

create or replace function pgrecall_internal._resolve_names(
  bank text, names pgrecall_internal.fact_mention[])
returns table (n integer, entity_id bigint, confidence real)
language plpgsql stable parallel safe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  with asked as materialized (
    select u.number, u.memory_id, u.alias, u.kind_class
    from   unnest(names) with ordinality
             as u(n, memory_id, fact_type, name, alias, kind, kind_class, number)
  ),
  candidate as materialized (
    select c.*
    from   pgrecall_internal._alias_candidates(
             _resolve_names.bank, array(select a.alias from asked a)) as c
  ),
  evidence as (
    select a.number, c.entity_id, c.confidence as alias_confidence, c.is_own_name, c.kind_class,
           a.kind_class as asked_kind,
           pgrecall_internal._kinds_conflict(c.name, c.kind_class, a.kind_class) as is_conflicting,
           (select count(*) from unnest(o.others) as x where x = any (c.co_mentions)) as shared,
           coalesce(power(0.5, least(abs(extract(epoch from m.mentioned_at)
                                         - extract(epoch from c.last_mentioned_at)) / 86400, 3000)
                               / 30.0)::double precision, 0) as recency,
           c.entity_id = any (o.others) as is_mentioned
    from   asked a
    join   candidate c on c.alias = a.alias
    cross  join lateral (
      select array(
        select x.entity_id from pgrecall.mention x
        where  x.bank_id = _resolve_names.bank and x.memory_id = a.memory_id
        limit  100
      ) as others
    ) as o
    cross  join lateral (
      select y.mentioned_at
      from   pgrecall.memory y
      where  y.bank_id = _resolve_names.bank and y.memory_id = a.memory_id
      limit  1
    ) as m
  ),
  weighted as (
    select e.number, e.entity_id, e.is_mentioned and not e.is_conflicting as is_mentioned,
           e.alias_confidence,
           e.alias_confidence * (1 + 4 * e.shared + e.recency)
           * case when e.is_own_name then 2 else 1 end
           * case
               when e.kind_class = e.asked_kind then 1
               when not e.is_conflicting then 0.5
               else 0.25
             end as weight
    from   evidence e
    where  e.shared >= 2 or not e.is_conflicting
  ),
  ranked as (
    select w.number, w.entity_id,
           (w.weight / nullif(sum(w.weight) over (partition by w.number), 0))::real as share,
           bool_or(w.is_mentioned) over (partition by w.number) as is_resolved,
           row_number() over (
             partition by w.number
             order by w.weight desc, w.alias_confidence desc, w.entity_id) as place
    from   weighted w
  )
  select a.number::integer, r.entity_id, coalesce(r.share, 0)
  from   asked a
  left   join ranked r on r.number = a.number and r.place = 1
  where  r.is_resolved is not true
  order  by a.number;
end;
$$;
comment on function pgrecall_internal._resolve_names is
'The entity that each name means, for names of several entities or of one of a kind that '
'excludes its own; n counts the names from 1. Among the candidates of _alias_candidates() the '
'one with the highest weight is taken: confidence in the alias x (1 + 4 s + r) x k, doubled '
'where it is the entity''s own name. s: number of other entities of the fact among its '
'co-mentions. r = 0.5 ^ (days / 30) between its latest mention and the fact. k: 1 for the same '
'kind, 0.25 for one that excludes it (_kinds_conflict()), which requires s >= 2, 0.5 for any '
'other. Ties: the higher confidence in the alias, then the older entity. confidence is the share '
'of the weights; entity_id is null where no candidate is left. A name is left out where the fact '
'already mentions one of the candidates: by its full name, or from an earlier retain().';

create or replace function pgrecall_internal._store_entities(
  bank text, facts pgrecall_internal.fact_row[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  -- A name becomes an entity unless it is an alias of an entity of the bank or batch. Where two
  -- names in the batch are aliases of each other, the first of them is the entity.
  with named as materialized (
    select e.name, e.alias, e.kind, e.kind_class, e.aliases, array[f.n, e.position] as position
    from   unnest(facts) as f
    cross  join lateral unnest(f.names) with ordinality
             as e(name, alias, kind, kind_class, aliases, position)
  ),
  alias as (
    select n.alias as owner, a.alias, min(n.kind_class) as kind_class, min(n.position) as position
    from   named n, unnest(n.aliases) as a(alias)
    group  by 1, 2
  ),
  first_alias as (
    select a.owner, a.alias
    from   alias a
    where  a.owner <> a.alias
      and  not exists (
             select from alias b
             where  b.owner = a.alias and (b.position, b.owner) < (a.position, a.owner))
  ),
  new_entity as (
    insert into pgrecall.entity as e (bank_id, name, kind)
    select _store_entities.bank, u.name, u.kind
    from (
      select distinct on (n.alias) n.name, n.kind,
             min(n.position) over (partition by n.alias) as position
      from   named n
      where  (select true from pgrecall.entity_alias a
              where  a.bank_id = _store_entities.bank and a.alias = n.alias
              limit  1) is null
        and  not exists (
               select from first_alias a
               where  a.alias = n.alias
                 and  not exists (select from first_alias o where o.alias = a.owner))
      order  by n.alias, n.kind is null, n.position
    ) as u
    -- The older of two entities with one name is preferred, so ids follow the order of the names.
    order  by u.position
    returning e.entity_id, e.name, e.kind
  ),
  known as (
    select e.entity_id, e.name, e.kind, pgrecall.normalised_name(e.name) as alias
    from   new_entity e
    union
    select a.entity_id, e.name, e.kind, a.alias
    from   (select distinct n.alias from named n) as d
    cross  join lateral (
      select x.entity_id, x.alias
      from   pgrecall.entity_alias x
      where  x.bank_id = _store_entities.bank and x.alias = d.alias
      offset 0
    ) as a
    cross  join lateral (
      select x.name, x.kind
      from   pgrecall.entity x
      where  x.bank_id = _store_entities.bank and x.entity_id = a.entity_id
      limit  1
    ) as e
  )
  insert into pgrecall.entity_alias (bank_id, alias, entity_id)
  select _store_entities.bank, k.alias, k.entity_id from known k
  union
  select _store_entities.bank, a.alias, k.entity_id
  from   alias a
  join   known k on k.alias = a.owner
  where  not pgrecall_internal._kinds_conflict(
           k.name, a.kind_class, pgrecall_internal._kind_class(k.kind))
  order  by 2, 3
  on conflict do nothing;
end;
$$;
comment on function pgrecall_internal._store_entities is
'Writes the entities and aliases of facts: afterwards every name in them is an alias.';

create or replace function pgrecall_internal._store_certain_mentions(
  bank text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns pgrecall_internal.fact_mention[]
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small; and join names by hash,
-- however few the planner takes them for.
set enable_seqscan = off
set enable_nestloop = off
set plan_cache_mode = force_generic_plan
as $$
declare
  ambiguous pgrecall_internal.fact_mention[];
begin
  with ranked as (
    select f.n, memory_ids[f.n] as memory_id, f.fact_type, e.name, e.alias, e.kind, e.kind_class,
           row_number() over (partition by f.n, e.alias, e.kind_class order by e.name) as copy,
           e.kind_class is null and count(e.kind_class) over (partition by f.n, e.alias) > 0
             as has_kind_elsewhere
    from   unnest(facts) as f
    cross  join lateral unnest(f.names) as e
  ),
  -- Each name once per fact; one with two kinds in a fact counts as two.
  named as materialized (
    select * from ranked r where r.copy = 1 and not r.has_kind_elsewhere
  ),
  candidate as materialized (
    select d.alias, c.entity_ids, c.names, c.kind_classes, c.confidence
    from   (select distinct n.alias from named n) as d
    cross  join lateral (
      select array_agg(x.entity_id) as entity_ids, array_agg(x.name) as names,
             array_agg(pgrecall_internal._kind_class(x.kind)) as kind_classes,
             min(x.confidence) as confidence
      from (
        select b.entity_id, e.name, b.confidence, e.kind
        from   pgrecall.entity_alias b
        cross  join lateral (
          select z.name, z.kind
          from   pgrecall.entity z
          where  z.bank_id = _store_certain_mentions.bank and z.entity_id = b.entity_id
          limit  1
        ) as e
        where  b.bank_id = _store_certain_mentions.bank and b.alias = d.alias
        limit  2
      ) as x
    ) as c
  ),
  judged as materialized (
    select n.*, c.entity_ids[1] as entity_id, c.confidence,
           c.kind_classes[1] is null as has_no_kind,
           cardinality(c.entity_ids) > 1
           or pgrecall_internal._kinds_conflict(c.names[1], n.kind_class, c.kind_classes[1])
           or (n.kind_class is null
               and bool_or(pgrecall_internal._kinds_conflict(
                             c.names[1], n.kind_class, c.kind_classes[1]))
                     over (partition by n.alias)) as is_ambiguous
    from   named n
    join   candidate c on c.alias = n.alias
  ),
  kind_found as materialized (
    select distinct on (j.entity_id) j.entity_id, j.kind
    from   judged j
    where  j.has_no_kind and j.kind_class is not null and not j.is_ambiguous
    order  by j.entity_id, j.n
  ),
  kind_stored as (
    update pgrecall.entity e
    set    kind = t.kind
    from   kind_found t
    -- The array keeps to the primary key, whatever is known of the bank.
    where  e.bank_id = _store_certain_mentions.bank and e.entity_id = t.entity_id
      and  e.entity_id = any (array(select x.entity_id from kind_found x))
  ),
  stored as (
    insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id, confidence)
    select _store_certain_mentions.bank, j.entity_id, j.fact_type, j.memory_id, max(j.confidence)
    from   judged j
    where  not j.is_ambiguous
    group  by 2, 3, 4
    on conflict on constraint mention_pkey do nothing
  )
  select array_agg(
           row(j.n, j.memory_id, j.fact_type, j.name, j.alias, j.kind, j.kind_class)
             ::pgrecall_internal.fact_mention
           order by j.n, j.alias, j.kind)
  into   ambiguous
  from   judged j
  where  j.is_ambiguous;
  return coalesce(ambiguous, '{}');
end;
$$;
comment on function pgrecall_internal._store_certain_mentions is
'Writes the mentions of the names in facts, those of relations too, that have one entity, of a '
'compatible kind; the entity takes over the kind where its own is unknown. Returns the other '
'names, which are ambiguous, in order. memory_ids are those of the facts, in order.';

create or replace function pgrecall_internal._store_ambiguous_mentions(
  bank text, names pgrecall_internal.fact_mention[], facts pgrecall_internal.fact_row[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  with resolved as materialized (
    select d.n, d.memory_id, d.fact_type, d.name, d.alias, d.kind, d.kind_class, d.position,
           r.entity_id, r.confidence
    from   pgrecall_internal._resolve_names(_store_ambiguous_mentions.bank, names) as r
    join   unnest(names) with ordinality
             as d(n, memory_id, fact_type, name, alias, kind, kind_class, position)
      on   d.position = r.n
  ),
  new_entity as (
    insert into pgrecall.entity as e (bank_id, name, kind)
    select _store_ambiguous_mentions.bank, u.name, u.kind
    from (
      select distinct on (r.alias, r.kind_class) r.name, r.kind, r.position
      from   resolved r
      where  r.entity_id is null
      order  by r.alias, r.kind_class, r.position
    ) as u
    order  by u.position
    returning e.entity_id, pgrecall.normalised_name(e.name) as alias,
              pgrecall_internal._kind_class(e.kind) as kind_class
  ),
  new_alias as (
    insert into pgrecall.entity_alias (bank_id, alias, entity_id)
    select _store_ambiguous_mentions.bank, n.alias, n.entity_id
    from   new_entity n
    union
    select _store_ambiguous_mentions.bank, a.alias, n.entity_id
    from   new_entity n
    join   resolved r on r.alias = n.alias and r.kind_class = n.kind_class
    join   unnest(facts) as f on f.n = r.n
    cross  join lateral unnest(f.names) as i
    cross  join lateral unnest(i.aliases) as a(alias)
    where  i.alias = n.alias and i.kind_class = n.kind_class
  )
  insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id, confidence)
  select _store_ambiguous_mentions.bank, u.entity_id, u.fact_type, u.memory_id, max(u.confidence)
  from (
    select coalesce(r.entity_id, n.entity_id) as entity_id, r.fact_type, r.memory_id,
           case when r.entity_id is null then 1 else r.confidence end as confidence
    from   resolved r
    left   join new_entity n on r.entity_id is null and n.alias = r.alias
                            and n.kind_class = r.kind_class
  ) as u
  group  by u.entity_id, u.fact_type, u.memory_id
  on conflict on constraint mention_pkey do nothing;
end;
$$;
comment on function pgrecall_internal._store_ambiguous_mentions is
'Writes the mentions of ambiguous names, as _resolve_names() resolves them. A name whose '
'candidates are all of another kind becomes a new entity, with the aliases that the fact gives for '
'it.';

create or replace function pgrecall_internal._mentions_of(bank text, memory_ids bigint[])
returns pgrecall.mention[]
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return array(
    select x
    from   unnest(memory_ids) as u(memory_id)
    cross  join lateral (
      select m.* from pgrecall.mention m
      where  m.bank_id = _mentions_of.bank and m.memory_id between u.memory_id and u.memory_id
      offset 0
    ) as x);
end;
$$;
comment on function pgrecall_internal._mentions_of is 'The entities that memories mention.';

create or replace function pgrecall_internal._store_mentions(
  bank pgrecall.bank, facts pgrecall_internal.fact_row[], memory_ids bigint[], known bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  counted   pgrecall.mention[];
  names     pgrecall_internal.fact_mention[];
  has_kind  boolean;
  watermark bigint;
begin
  if known <> '{}' then
    counted := pgrecall_internal._mentions_of(bank.bank_id, known);
  end if;
  names := pgrecall_internal._store_certain_mentions(bank.bank_id, facts, memory_ids);
  -- Names with a kind first: some become entities that are candidates for names without a kind.
  foreach has_kind in array case when names = '{}' then '{}' else array[true, false] end loop
    perform pgrecall_internal._store_ambiguous_mentions(
      bank.bank_id,
      array(select u from unnest(names) as u
            where (u.kind_class is not null) = has_kind
            order by u.n, u.alias, u.kind),
      facts);
  end loop;
  -- A fact that is known may mention more than when it was counted. Who counts it meanwhile does
  -- not see that: it is waited for, and the next one counts once this transaction has ended.
  if counted is not null
     and cardinality(pgrecall_internal._mentions_of(bank.bank_id, known)) > cardinality(counted)
  then
    perform pg_advisory_xact_lock_shared(pgrecall_internal._lock_key(bank, 1));
    -- With an old snapshot this fails (40001) where others have counted since.
    select s.watermark into watermark
    from   pgrecall_internal.statistics s
    where  s.bank_id = bank.bank_id and s.kind = 'memory'
    for    share;
    perform pgrecall_internal._count_mentions(bank.bank_id, 0, watermark, known, counted);
  end if;
end;
$$;
comment on function pgrecall_internal._store_mentions is
'Writes which entities facts mention, after _store_entities(); memory_ids are those of the facts, '
'in order, and known those of them that were stored before.';

create or replace function pgrecall_internal._store_relations(
  bank text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  insert into pgrecall.relation
         (bank_id, from_id, kind, to_id, memory_id, confidence, valid_from, valid_to)
  select _store_relations.bank, s.entity_id, r.kind, e.entity_id, s.memory_id,
         r.confidence * s.confidence * e.confidence, r.valid_from, r.valid_to
  from   unnest(facts) as f
  cross  join lateral unnest(f.relations) as r
  -- Its ends are entities that the fact mentions.
  cross  join lateral (
    select x.*
    from (
      select k.entity_id, k.confidence
      from   pgrecall.entity_alias k
      where  k.bank_id = _store_relations.bank and k.alias = r.from_alias
      offset 0
    ) as a
    cross  join lateral (
      select m.entity_id, m.memory_id, m.confidence
      from   pgrecall.mention m
      where  m.bank_id = _store_relations.bank and m.memory_id = memory_ids[f.n]
        and  m.entity_id = a.entity_id
      limit  1
    ) as x
    order  by x.confidence desc, a.confidence desc, x.entity_id
    limit  1
  ) as s
  cross  join lateral (
    select x.*
    from (
      select k.entity_id, k.confidence
      from   pgrecall.entity_alias k
      where  k.bank_id = _store_relations.bank and k.alias = r.to_alias
      offset 0
    ) as a
    cross  join lateral (
      select m.entity_id, m.confidence
      from   pgrecall.mention m
      where  m.bank_id = _store_relations.bank and m.memory_id = memory_ids[f.n]
        and  m.entity_id = a.entity_id
      limit  1
    ) as x
    order  by x.confidence desc, a.confidence desc, x.entity_id
    limit  1
  ) as e
  where  s.entity_id <> e.entity_id
  on conflict do nothing;
end;
$$;
comment on function pgrecall_internal._store_relations is
'Writes the relations of facts, between entities that they mention; after _store_mentions().';
