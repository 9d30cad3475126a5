create or replace function pgrecall._check_entity(bank text, entity_id bigint)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  perform 1 from pgrecall.entity e
  where  e.bank_id = _check_entity.bank and e.entity_id = _check_entity.entity_id;
  if not found then
    raise exception using
      errcode = 'RC013',
      message = format('bank "%s" has no entity %s', bank, coalesce(entity_id::text, 'null')),
      hint    = format('Look for it with: select * from pgrecall.query_entities(%L, ''its name'');',
                       bank);
  end if;
end;
$$;
comment on function pgrecall._check_entity(text, bigint) is
'Raises RC013 unless a bank has an entity.';

create or replace function pgrecall._check_entity_name(name text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if coalesce(pgrecall.normalised_name(name), '') = '' or length(name) > 500 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s cannot name an entity', coalesce('"' || left(name, 80) || '"', 'null')),
      hint    = 'A name has a letter or digit and at most 500 characters.';
  end if;
end;
$$;
comment on function pgrecall._check_entity_name(text) is 'Raises 22023 unless a name can name.';

create or replace function pgrecall.merge_entities(bank text, entity_id bigint, others bigint[])
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  gone bigint[];
begin
  perform pgrecall._locked_bank(bank);
  perform pgrecall._check_entity(bank, entity_id);
  gone := array(
    select e.entity_id
    from   pgrecall.entity e
    where  e.bank_id = merge_entities.bank and e.entity_id = any (others)
      and  e.entity_id <> merge_entities.entity_id
    order  by e.entity_id
  );

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

  -- Edges between them, and those that a fact states already, have no place any more.
  with edge as (
    select r.relation_id, r.kind, r.memory_id, r.confidence,
           case when r.from_id = any (gone) then merge_entities.entity_id else r.from_id end
             as from_id,
           case when r.to_id = any (gone) then merge_entities.entity_id else r.to_id end as to_id
    from   pgrecall.relation r
    where  r.bank_id = merge_entities.bank
      and  (r.from_id = any (gone || merge_entities.entity_id)
            or r.to_id = any (gone || merge_entities.entity_id))
  ),
  copy as (
    select e.relation_id, e.from_id = e.to_id as is_loop,
           row_number() over (partition by e.memory_id, e.from_id, e.kind, e.to_id
                              order by e.confidence desc, e.relation_id) as n
    from   edge e
  )
  delete from pgrecall.relation r
  using  copy c
  where  r.bank_id = merge_entities.bank and r.relation_id = c.relation_id
    and  (c.is_loop or c.n > 1);
  update pgrecall.relation r
  set    from_id = case when r.from_id = any (gone) then merge_entities.entity_id
                        else r.from_id end,
         to_id   = case when r.to_id = any (gone) then merge_entities.entity_id else r.to_id end
  where  r.bank_id = merge_entities.bank and (r.from_id = any (gone) or r.to_id = any (gone));

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
  return cardinality(gone);
end;
$$;
comment on function pgrecall.merge_entities(text, bigint, bigint[]) is
'Makes other entities one with an entity that keeps its name: it goes by their names, and what '
'facts say of them they say of it. Of two equal edges from one fact the better believed in stays. '
'Returns how many became one with it; those that are gone already do not count. Errors: RC001, '
'RC013 unknown entity.';

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
  perform pgrecall._locked_bank(bank);
  perform pgrecall._check_entity(bank, entity_id);
  perform pgrecall._check_entity_name(name);
  select e.* into old_entity from pgrecall.entity e
  where  e.bank_id = split_entity.bank and e.entity_id = split_entity.entity_id;
  moved := array(
    select distinct m.memory_id from pgrecall.mention m
    where  m.bank_id = split_entity.bank and m.entity_id = split_entity.entity_id
      and  m.memory_id = any (split_entity.memory_ids)
  );
  if moved = '{}' then
    -- Done before?
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
  -- It goes by what the facts call it; by the old name if they call it nothing.
  insert into pgrecall.entity_alias (bank_id, alias, entity_id)
  with called as (
    select a.alias
    from   pgrecall.entity_alias a
    where  a.bank_id = split_entity.bank and a.entity_id = split_entity.entity_id
      and  exists (
        select from pgrecall.memory m
        where  m.bank_id = split_entity.bank and m.memory_id = any (moved)
          and  strpos(' ' || pgrecall.normalised_name(m.text) || ' ', ' ' || a.alias || ' ') > 0)
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

  update pgrecall.mention m
  set    entity_id = new_id, confidence = 1
  where  m.bank_id = split_entity.bank and m.entity_id = split_entity.entity_id
    and  m.memory_id = any (moved);
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
comment on function pgrecall.split_entity(text, bigint, bigint[], text) is
'Parts an entity in two: what these memories say of it they say of a new one of that name from now '
'on, of the same kind. The new one also goes by those names of the old one that stand in the '
'memories, so that later facts are weighed between the two; the new name is no longer one of the '
'old entity''s. Returns the new id, also when it was done before. Errors: RC001, RC013 unknown '
'entity, 22023 unusable name, no memory or every memory that names it.';

create or replace function pgrecall.rename_entity(bank text, entity_id bigint, name text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall._locked_bank(bank);
  perform pgrecall._check_entity(bank, entity_id);
  perform pgrecall._check_entity_name(name);
  insert into pgrecall.entity_alias (bank_id, alias, entity_id)
  values (rename_entity.bank, pgrecall.normalised_name(rename_entity.name),
          rename_entity.entity_id)
  on conflict on constraint entity_alias_pkey do nothing;
  update pgrecall.entity e
  set    name = rename_entity.name
  where  e.bank_id = rename_entity.bank and e.entity_id = rename_entity.entity_id;
end;
$$;
comment on function pgrecall.rename_entity(text, bigint, text) is
'Gives an entity another name; it still goes by the old one. Errors: RC001, RC013 unknown entity, '
'22023 unusable name.';

create or replace function pgrecall._trigrams(name text)
returns text[]
language sql immutable parallel safe
return array(
  select distinct substr('  ' || w.word || ' ', g.n, 3)
  from   string_to_table(name, ' ') as w(word),
         generate_series(1, length(w.word) + 1) as g(n)
  order  by 1
);
comment on function pgrecall._trigrams(text) is
'Runs of three letters of a normalised name, each word with two spaces before and one behind.';

create or replace function pgrecall.duplicate_entities(bank text, top_k integer default 50)
returns table (entity_id bigint, name text, other_id bigint, other_name text,
               score double precision, reason text)
language plpgsql stable parallel safe rows 50
set search_path from current
set jit = off
set plan_cache_mode = force_custom_plan
as $$
begin
  perform pgrecall._bank(bank);
  perform pgrecall._check_range('top_k', top_k, 1, 10000);
  return query
  with named as materialized (
    select a.entity_id, a.alias, pgrecall._kind(e.kind) as kind,
           array(select w from string_to_table(a.alias, ' ') as w order by w) as words,
           pgrecall._trigrams(a.alias) as trigrams,
           row_number() over (order by a.entity_id, a.alias) as n
    from (
      select x.entity_id, x.kind
      from   pgrecall.entity x
      where  x.bank_id = duplicate_entities.bank
      order  by x.entity_id desc
      limit  10000
    ) as e
    cross  join lateral (
      select y.entity_id, y.alias
      from   pgrecall.entity_alias y
      where  y.bank_id = duplicate_entities.bank and y.entity_id = e.entity_id
      limit  20
    ) as a
  ),
  -- What stands in many names tells none apart.
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
    -- A shared name that many go by has no rare letters.
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
           x.words <@ y.words or y.words <@ x.words as is_part,
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
    where  x.entity_id <> y.entity_id and not pgrecall._differ(x.kind, y.kind)
  ),
  pair as materialized (
    select b.*
    from (
      select distinct on (l.one, l.other) l.*
      from   likeness l
      where  l.likeness >= 0.4
      order  by l.one, l.other, l.likeness desc, l.reason
    ) as b
    order  by b.likeness desc, b.one, b.other
    limit  4 * top_k
  ),
  company as materialized (
    select e.entity_id, array_agg(c.companion_id) as companions
    from   (select p.one from pair p union select p.other from pair p) as e(entity_id)
    cross  join lateral pgrecall._companions(duplicate_entities.bank, e.entity_id) as c
    group  by e.entity_id
  ),
  judged as (
    select p.one, p.other, p.likeness, p.is_part, p.reason, s.shared,
           coalesce(p.other = any (x.companions), false) as is_apart,
           coalesce(s.shared::double precision
                    / nullif(least(cardinality(x.companions), cardinality(y.companions)), 0), 0)
             as company
    from   pair p
    left   join company x on x.entity_id = p.one
    left   join company y on y.entity_id = p.other
    cross  join lateral (
      select count(*) as shared from unnest(x.companions) as c where c = any (y.companions)
    ) as s
  ),
  scored as (
    select j.*,
           j.likeness * (0.5 + 0.5 * j.company) * case when j.is_apart then 0.5 else 1 end as score,
           pgrecall._mentions(duplicate_entities.bank, j.one) as mentions,
           pgrecall._mentions(duplicate_entities.bank, j.other) as other_mentions
    from   judged j
    -- Alike alone is thin evidence: they also keep the same company, or are all but equal.
    where  j.likeness >= 0.95 or (j.likeness >= 0.6 and not j.is_part) or j.shared > 0
    order  by score desc, j.one, j.other
    limit  duplicate_entities.top_k
  )
  select k.entity_id, k.name, o.entity_id, o.name, s.score,
         s.reason
         || case when s.shared > 0
              then format(', and stand together with %s of the same', s.shared) else '' end
         || case when s.is_apart then ', but also with each other' else '' end
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
comment on function pgrecall.duplicate_entities(text, integer) is
'Pairs of entities that may be one, likeliest first: merge_entities(bank, entity_id, '
'array[other_id]) makes them so; entity_id is the one named more often. Kinds that differ are left '
'out. score = likeness x (0.5 + 0.5 company), half of that where a fact names both. likeness: 1 '
'where both go by a name, 0.95 for the same words in another order, 0.7 where one name has the '
'words of the other, else the Jaccard similarity of their trigrams, from 0.4; company: the share '
'of entities that latest facts name with both. Below 0.6, and for a part of a name, some company '
'must be shared. '
'Looks at the newest 10,000 entities and 20 names of each, and at trigrams that stand in at most '
'50 names. Errors: RC001, 22023.';
