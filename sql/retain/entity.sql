-- Correcting entities by hand: merge, split, rename, and find duplicates.
--
-- The names in facts are resolved to entities when the facts are written (retain/mention.sql);
-- wrong resolutions are corrected here. Aliases, mentions and relations follow the entities.
-- duplicate_entities() proposes pairs to merge. It compares names by their trigrams, without an
-- extension, and confirms similar names by their co-mentions: two spellings of one person occur
-- with the same people and places. merge_entities() and split_entity() are idempotent.

create or replace function pgrecall.merge_entities(bank text, entity_id bigint, others bigint[])
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans of the cascades must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
declare
  gone         bigint[];
  affected     bigint[];
  relation_ids bigint[];
begin
  perform pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_entity(bank, entity_id);
  gone := array(
    select e.entity_id
    from   pgrecall.entity e
    where  e.bank_id = merge_entities.bank and e.entity_id = any (others)
      and  e.entity_id <> merge_entities.entity_id
    order  by e.entity_id
  );
  affected := array(
    select distinct m.memory_id from pgrecall.mention m
    where  m.bank_id = merge_entities.bank and m.entity_id = any (gone)
  );
  perform pgrecall_internal._recount_mentions(bank, affected, -1);

  insert into pgrecall.entity_alias as k (bank_id, alias, entity_id, confidence)
  select merge_entities.bank, a.alias, merge_entities.entity_id, max(a.confidence)
  from   pgrecall.entity_alias a
  where  a.bank_id = merge_entities.bank and a.entity_id = any (gone)
  group  by a.alias
  on conflict on constraint entity_alias_pkey do update
  set confidence = greatest(k.confidence, excluded.confidence);

  insert into pgrecall.mention as k (bank_id, entity_id, fact_type, memory_id, confidence)
  select merge_entities.bank, merge_entities.entity_id, m.fact_type, m.memory_id,
         max(m.confidence)
  from   pgrecall.mention m
  where  m.bank_id = merge_entities.bank and m.entity_id = any (gone)
  group  by m.fact_type, m.memory_id
  on conflict on constraint mention_pkey do update
  set confidence = greatest(k.confidence, excluded.confidence);

  -- Relations between the merged entities, and duplicates within a fact, are deleted.
  relation_ids := array(
    select distinct r.relation_id
    from   unnest(gone || merge_entities.entity_id) as g(id)
    cross  join lateral (
      select f.relation_id from pgrecall.relation f
      where  f.bank_id = merge_entities.bank and f.from_id = g.id
      union  all
      select t.relation_id from pgrecall.relation t
      where  t.bank_id = merge_entities.bank and t.to_id = g.id
    ) as r);
  with edge as (
    select r.relation_id, r.kind, r.memory_id, r.confidence,
           case when r.from_id = any (gone) then merge_entities.entity_id else r.from_id end
             as from_id,
           case when r.to_id = any (gone) then merge_entities.entity_id else r.to_id end as to_id
    from   pgrecall.relation r
    where  r.bank_id = merge_entities.bank and r.relation_id = any (relation_ids)
  ),
  copy as (
    select e.relation_id, e.from_id = e.to_id as is_loop,
           row_number() over (partition by e.memory_id, e.from_id, e.kind, e.to_id
                              order by e.confidence desc, e.relation_id) as n
    from   edge e
  )
  delete from pgrecall.relation r
  where  r.bank_id = merge_entities.bank
    and  r.relation_id = any (array(
           select c.relation_id from copy c where c.is_loop or c.n > 1));
  begin
    update pgrecall.relation r
    set    from_id = case when r.from_id = any (gone) then merge_entities.entity_id
                          else r.from_id end,
           to_id   = case when r.to_id = any (gone) then merge_entities.entity_id
                          else r.to_id end
    where  r.bank_id = merge_entities.bank and r.relation_id = any (relation_ids)
      and  (r.from_id = any (gone) or r.to_id = any (gone));
  exception when unique_violation then
    perform pgrecall_internal._check_snapshot(bank);
    raise;
  end;

  update pgrecall.entity e
  set    kind = (
           select o.kind from pgrecall.entity o
           where  o.bank_id = merge_entities.bank and o.entity_id = any (gone)
             and  o.kind is not null
           order  by o.entity_id
           limit  1)
  where  e.bank_id = merge_entities.bank and e.entity_id = merge_entities.entity_id
    and  e.kind is null and cardinality(gone) > 0;
  delete from pgrecall.entity e
  where  e.bank_id = merge_entities.bank and e.entity_id = any (gone);
  perform pgrecall_internal._recount_mentions(bank, affected, 1);
  return cardinality(gone);
end;
$$;
comment on function pgrecall.merge_entities is
'Merges other entities into an entity, which keeps its name and takes over their aliases, mentions '
'and relations. Among equal relations of one fact the one with the highest confidence stays. '
'Returns how many were merged; ids of missing entities are not counted. Errors: RC001, RC013 '
'unknown entity.';

create or replace function pgrecall.split_entity(
  bank text, entity_id bigint, memory_ids bigint[], name text)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  old_entity pgrecall.entity;
  moved      bigint[];
  new_id     bigint;
begin
  perform pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_entity(bank, entity_id);
  perform pgrecall_internal._check_entity_name(name);
  select e.* into old_entity from pgrecall.entity e
  where  e.bank_id = split_entity.bank and e.entity_id = split_entity.entity_id;
  moved := array(
    select distinct m.memory_id from pgrecall.mention m
    where  m.bank_id = split_entity.bank and m.entity_id = split_entity.entity_id
      and  m.memory_id = any (split_entity.memory_ids)
  );
  if moved = '{}' then
    -- A repeated call returns the entity of the first.
    select e.entity_id into new_id
    from   pgrecall.mention m
    join   pgrecall.entity e on e.bank_id = split_entity.bank and e.entity_id = m.entity_id
    where  m.bank_id = split_entity.bank and m.memory_id = any (split_entity.memory_ids)
      and  e.name = split_entity.name
    order  by e.entity_id desc
    limit  1;
    if new_id is not null then
      return new_id;
    end if;
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('none of the memories names entity %s', entity_id),
      hint    = format('Those that do: select * from pgrecall.mention where bank_id = %L and '
                       'entity_id = %s;', bank, entity_id);
  end if;
  perform 1 from pgrecall.mention m
  where  m.bank_id = split_entity.bank and m.entity_id = split_entity.entity_id
    and  m.memory_id <> all (moved)
  limit  1;
  if not found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('no other memory names entity %s', entity_id),
      hint    = format('Rename it instead: select pgrecall.rename_entity(%L, %s, %L);',
                       bank, entity_id, name);
  end if;

  insert into pgrecall.entity as e (bank_id, name, kind)
  values (split_entity.bank, split_entity.name, old_entity.kind)
  returning e.entity_id into new_id;
  -- It keeps the aliases that occur in its facts; the old name if none does.
  insert into pgrecall.entity_alias (bank_id, alias, entity_id)
  with said as materialized (
    select ' ' || pgrecall.normalised_name(m.text) || ' ' as text
    from   pgrecall.memory m
    where  m.bank_id = split_entity.bank and m.memory_id = any (moved)
  ),
  called as (
    select a.alias
    from   pgrecall.entity_alias a
    where  a.bank_id = split_entity.bank and a.entity_id = split_entity.entity_id
      and  exists (select from said s where strpos(s.text, ' ' || a.alias || ' ') > 0)
  )
  select split_entity.bank, n.alias, new_id
  from (
    select c.alias from called c
    union
    select pgrecall.normalised_name(split_entity.name)
    union
    select pgrecall.normalised_name(old_entity.name) where not exists (select from called)
  ) as n(alias);
  delete from pgrecall.entity_alias a
  where  a.bank_id = split_entity.bank and a.entity_id = split_entity.entity_id
    and  a.alias = pgrecall.normalised_name(split_entity.name)
    and  a.alias <> pgrecall.normalised_name(old_entity.name);

  perform pgrecall_internal._recount_mentions(bank, moved, -1);
  update pgrecall.mention m
  set    entity_id = new_id, confidence = 1
  where  m.bank_id = split_entity.bank and m.entity_id = split_entity.entity_id
    and  m.memory_id = any (moved);
  perform pgrecall_internal._recount_mentions(bank, moved, 1);
  update pgrecall.relation r
  set    from_id = new_id
  where  r.bank_id = split_entity.bank and r.from_id = split_entity.entity_id
    and  r.memory_id = any (moved);
  update pgrecall.relation r
  set    to_id = new_id
  where  r.bank_id = split_entity.bank and r.to_id = split_entity.entity_id
    and  r.memory_id = any (moved);
  return new_id;
end;
$$;
comment on function pgrecall.split_entity is
'Splits an entity in two: the mentions and relations of these memories move to a new entity of '
'that name and of the same kind. Aliases of the old entity that occur in these memories become '
'aliases of the new one too, so that later facts are resolved between the two; the new name is no '
'longer an alias of the old entity. Returns the new id, also when the same call was made before. '
'Errors: RC001, RC013 unknown entity, 22023 unusable name, no memory or every memory mentions it.';

create or replace function pgrecall.rename_entity(bank text, entity_id bigint, name text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_entity(bank, entity_id);
  perform pgrecall_internal._check_entity_name(name);
  insert into pgrecall.entity_alias (bank_id, alias, entity_id)
  values (rename_entity.bank, pgrecall.normalised_name(rename_entity.name),
          rename_entity.entity_id)
  on conflict on constraint entity_alias_pkey do nothing;
  update pgrecall.entity e
  set    name = rename_entity.name
  where  e.bank_id = rename_entity.bank and e.entity_id = rename_entity.entity_id;
end;
$$;
comment on function pgrecall.rename_entity is
'Gives an entity another name; the old one stays an alias. Errors: RC001, RC013 unknown entity, '
'22023 unusable name.';

create or replace function pgrecall_internal._similar_entities(bank text, top_k integer)
returns table (entity_id bigint, other_id bigint, likeness double precision, is_part boolean,
               reason text)
language plpgsql stable parallel safe rows 200
set search_path from current
set jit = off
-- Names are joined by hash, however few the planner takes them for.
set enable_nestloop = off
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  with named as materialized (
    select a.entity_id, a.alias, pgrecall_internal._kind_class(e.kind) as kind,
           array(select w from string_to_table(a.alias, ' ') as w order by w) as words,
           -- Of each word with two spaces before it and one after.
           array(select distinct substr('  ' || w.word || ' ', g.n, 3)
                 from   string_to_table(a.alias, ' ') as w(word),
                        generate_series(1, length(w.word) + 1) as g(n)
                 order  by 1) as trigrams,
           row_number() over (order by a.entity_id, a.alias) as n
    from (
      select x.entity_id, x.kind
      from   pgrecall.entity x
      where  x.bank_id = _similar_entities.bank
      order  by x.entity_id desc
      limit  10000
    ) as e
    cross  join lateral (
      select y.entity_id, y.alias
      from   pgrecall.entity_alias y
      where  y.bank_id = _similar_entities.bank and y.entity_id = e.entity_id
      limit  20
    ) as a
  ),
  -- A trigram of many names is not distinctive.
  gram as materialized (
    select g.gram, array_agg(n.n order by n.n) as numbers
    from   named n, unnest(n.trigrams) as g(gram)
    group  by g.gram
    having count(*) between 2 and 50
  ),
  near as materialized (
    select x.n, y.n as other
    from   gram g, unnest(g.numbers) as x(n), unnest(g.numbers) as y(n)
    where  x.n < y.n
    group  by x.n, y.n
    -- The names of many equally named entities consist of such trigrams: their pairs are added
    -- here.
    union
    select s.numbers[1], y.n
    from (
      select array_agg(n.n order by n.n) as numbers
      from   named n
      group  by n.alias
      having count(*) > 1
    ) as s
    cross  join lateral unnest(s.numbers[2:50]) as y(n)
  ),
  likeness as (
    select x.entity_id as one, y.entity_id as other,
           case
             when x.alias = y.alias then 1.0
             when x.words = y.words then 0.95
             when x.words <@ y.words or y.words <@ x.words then 0.7
             else t.shared::double precision
                  / (cardinality(x.trigrams) + cardinality(y.trigrams) - t.shared)
           end as likeness,
           (x.words <@ y.words or y.words <@ x.words)
             -- The first or last name of a person is enough.
             and not ('person' in (x.kind, y.kind) and (
               x.alias = any (pgrecall_internal._name_ends(y.alias))
               or y.alias = any (pgrecall_internal._name_ends(x.alias))))
             as is_part,
           case
             when x.alias = y.alias then format('both go by "%s"', x.alias)
             when x.words = y.words
               then format('"%s" and "%s" have the same words', x.alias, y.alias)
             when x.words <@ y.words then format('"%s" is a part of "%s"', x.alias, y.alias)
             when y.words <@ x.words then format('"%s" is a part of "%s"', y.alias, x.alias)
             else format('"%s" and "%s" are spelt alike', x.alias, y.alias)
           end as reason
    from   near p
    join   named x on x.n = p.n
    join   named y on y.n = p.other
    cross  join lateral (
      select count(*) as shared
      from   (select unnest(x.trigrams) intersect all select unnest(y.trigrams)) as i
    ) as t
    where  x.entity_id <> y.entity_id
      -- Of several words where either is.
      and  not pgrecall_internal._kinds_conflict(x.alias || y.alias, x.kind, y.kind)
  )
  select b.one, b.other, b.likeness::double precision, b.is_part, b.reason
  from (
    select distinct on (l.one, l.other) l.*
    from   likeness l
    where  l.likeness >= 0.4
    order  by l.one, l.other, l.likeness desc, l.reason
  ) as b
  order  by b.likeness desc, b.one, b.other
  limit  top_k;
end;
$$;
comment on function pgrecall_internal._similar_entities is
'The top_k pairs of entities with the most similar names, from a likeness of 0.4, of compatible '
'kinds. likeness: 1 for the same alias, 0.95 for the same words in another order, 0.7 where one '
'name has the words of the other (is_part, but for the first or last name of a person), else the '
'Jaccard similarity of their trigrams. Limits: the newest 10,000 entities, 20 names of each, '
'trigrams of at most 50 names.';

create or replace function pgrecall.duplicate_entities(bank text, top_k integer default 50)
returns setof pgrecall.duplicate_entity
language plpgsql stable parallel unsafe rows 50
set search_path from current
set jit = off
set plan_cache_mode = force_custom_plan
as $$
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 10000);
  return query
  with pair as materialized (
    select p.entity_id as one, p.other_id as other, p.likeness, p.is_part, p.reason
    from   pgrecall_internal._similar_entities(duplicate_entities.bank, 4 * top_k) as p
  ),
  neighbours as materialized (
    select e.entity_id, array_agg(c.other_id) as co_mentions
    from   (select p.one from pair p union select p.other from pair p) as e(entity_id)
    cross  join lateral pgrecall_internal._co_mentions(duplicate_entities.bank, e.entity_id) as c
    group  by e.entity_id
  ),
  judged as (
    select p.one, p.other, p.likeness, p.is_part, p.reason, s.shared,
           coalesce(p.other = any (x.co_mentions), false) as has_common_fact,
           coalesce(s.shared::double precision
                    / nullif(least(cardinality(x.co_mentions), cardinality(y.co_mentions)), 0), 0)
             as overlap
    from   pair p
    left   join neighbours x on x.entity_id = p.one
    left   join neighbours y on y.entity_id = p.other
    cross  join lateral (
      select count(*) as shared from unnest(x.co_mentions) as c where c = any (y.co_mentions)
    ) as s
  ),
  scored as (
    select j.*,
           j.likeness * (0.5 + 0.5 * j.overlap)
             * case when j.has_common_fact then 0.5 else 1 end as score,
           (select x.count from pgrecall_internal._mentions(duplicate_entities.bank, j.one) as x)
             as mentions,
           (select x.count from pgrecall_internal._mentions(duplicate_entities.bank, j.other) as x)
             as other_mentions
    from   judged j
    -- Similar names alone are weak evidence: they need shared co-mentions unless nearly equal.
    where  j.likeness >= 0.95 or (j.likeness >= 0.6 and not j.is_part) or j.shared > 0
    order  by score desc, j.one, j.other
    limit  duplicate_entities.top_k
  )
  select k.entity_id, k.name, o.entity_id, o.name, s.score,
         s.reason
         || case when s.shared > 0
              then format(', and stand together with %s of the same', s.shared) else '' end
         || case when s.has_common_fact then ', but also with each other' else '' end
  from   scored s
  cross  join lateral (
    select e.entity_id, e.name from pgrecall.entity e
    where  e.bank_id = duplicate_entities.bank
      and  e.entity_id = case when s.other_mentions > s.mentions then s.other else s.one end
    limit  1
  ) as k
  cross  join lateral (
    select e.entity_id, e.name from pgrecall.entity e
    where  e.bank_id = duplicate_entities.bank
      and  e.entity_id = case when s.other_mentions > s.mentions then s.one else s.other end
    limit  1
  ) as o
  order  by s.score desc, k.entity_id, o.entity_id;
end;
$$;
comment on function pgrecall.duplicate_entities is
'Pairs of entities that may be the same, likeliest first: merge_entities(bank, entity_id, '
'array[other_id]) merges them. entity_id is the one with more mentions. Pairs of kinds that differ '
'are left out. score = likeness x (0.5 + 0.5 overlap), half of that where a fact mentions both. '
'likeness: 1 where both have the same alias, 0.95 for the same words in another order, 0.7 where '
'one name has the words of the other, else the Jaccard similarity of their trigrams, from 0.4. '
'overlap: the share of their co-mentions (the entities that latest facts mention with each) that '
'they have in common; it must not be 0 where likeness is below 0.6, or where one name is a part of '
'the other that is not the first or last name of a person. Limits: the newest 10,000 entities, 20 '
'names of each, trigrams of at most 50 names. Errors: RC001, 22023.';
