-- Short names: who is meant by a part of a name, "Ana" for Ana Silva.
--
-- Where kinds say that a name is one of a person, _store_short_names() decides, as part of
-- retain(). Where none do, "Ana" and "Ana Silva" look like "Rome" and "Ancient Rome"; nor do words
-- tell whether Ana, an engineer, is a person, or Ana, a boat. Two entities are stored. Embeddings
-- of names tell people from all else (_person_direction()), also for the full names of a kind, so
-- such pairs are decided afterwards: names_pending() lists the names, embed_store() takes their
-- embeddings, as it does those of facts, and _merge_short_names() merges the one with the other.
-- What it is not sure of stays two entities.

create or replace function pgrecall_internal._unknown_names(
  bank text, facts pgrecall_internal.fact_row[])
returns text[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return array(
    select distinct e.alias
    from   unnest(facts) as f
    cross  join lateral unnest(f.names) as e
    where  (select true from pgrecall.entity_alias a
            where  a.bank_id = _unknown_names.bank and a.alias = e.alias
            limit  1) is null);
end;
$$;
comment on function pgrecall_internal._unknown_names is
'The normalised names in facts that are no alias of an entity.';

create or replace function pgrecall_internal._store_short_names(
  bank text, facts pgrecall_internal.fact_row[], unknown text[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small; and join names by hash,
-- however few the planner takes them for.
set enable_seqscan = off
set enable_nestloop = off
set plan_cache_mode = force_generic_plan
as $$
declare
  fresh   pgrecall_internal.fact_name[];
  trusted text[];
begin
  with named as materialized (
    select f.n, e.name, e.alias, e.kind, e.kind_class, e.aliases
    from   unnest(facts) as f
    cross  join lateral unnest(f.names) as e
  ),
  used as materialized (
    select distinct n.n, n.alias from named n
  ),
  part as materialized (
    select u.n, u.alias, p.part
    from   used u
    cross  join lateral unnest(pgrecall_internal._name_ends(u.alias)) as p(part)
    where  strpos(u.alias, ' ') > 0
  ),
  -- A fact that names both tells them apart.
  apart as materialized (
    select unnest(array[p.alias, p.part]) as alias
    from   part p
    join   used s on s.n = p.n and s.alias = p.part
  )
  select array_agg(row(u.name, u.alias, u.kind, u.kind_class, u.aliases)
                     ::pgrecall_internal.fact_name)
  into   fresh
  from (
    select (array_agg(n.name order by n.n))[1] as name, n.alias, min(n.kind) as kind,
           case when min(n.kind_class) = max(n.kind_class) then min(n.kind_class)
                when min(n.kind_class) is not null then 'several' end as kind_class,
           coalesce(array_agg(distinct o.alias) filter (where o.alias <> n.alias), '{}') as aliases
    from   named n
    join   unnest(unknown) as k(alias) on k.alias = n.alias
    left   join lateral unnest(n.aliases) as o(alias) on true
    where  not exists (select from apart a where a.alias = n.alias)
    group  by n.alias
  ) as u;
  if fresh is null then
    return;
  end if;
  trusted := array(
    select distinct e.alias
    from   pgrecall.bank b
    cross  join unnest(facts) as f
    cross  join lateral unnest(f.names) as e
    where  b.bank_id = _store_short_names.bank
      and  pgrecall_internal._trust(b.source_trust, f.source_id) = 1);
  -- Who was known by a short name alone is now known by the full one.
  with short as (
    select f.alias, f.name, a.entity_id, p.part
    from   unnest(fresh) as f
    -- A stranger renames nobody.
    join   unnest(trusted) as t(alias) on t.alias = f.alias
    cross  join lateral unnest(pgrecall_internal._name_ends(f.alias)) as p(part)
    cross  join lateral (
      select x.entity_id
      from   pgrecall.entity_alias x
      where  x.bank_id = _store_short_names.bank and x.alias = p.part
      limit  10
    ) as a
    cross  join lateral (
      select x.name, pgrecall_internal._kind_class(x.kind) as kind_class
      from   pgrecall.entity x
      where  x.bank_id = _store_short_names.bank and x.entity_id = a.entity_id
      limit  1
    ) as e
    where  pgrecall_internal._has_full_name(f.name)
      and  pgrecall.normalised_name(e.name) = p.part and e.name !~ '^[[:lower:]]'
      and  not pgrecall_internal._kinds_part(e.kind_class, f.kind_class)
      and  ('person' in (e.kind_class, f.kind_class) or p.part = any (f.aliases))
  ),
  known as materialized (
    select o.entity_id, o.part, min(o.name) as name, min(o.alias) as alias
    from (
      select x.*, min(x.entity_id) over same = max(x.entity_id) over same as is_one
      from   short x
      window same as (partition by x.alias)
    ) as o
    where  o.is_one
    group  by o.entity_id, o.part
    having min(o.alias) = max(o.alias)
  ),
  renamed as (
    update pgrecall.entity e
    set    name = t.name
    from (
      -- Locked in order, for writers of the same names.
      select k.*
      from   (select x.* from known x order by x.entity_id offset 0) as k
      cross  join lateral (
        select x.entity_id
        from   pgrecall.entity x
        where  x.bank_id = _store_short_names.bank and x.entity_id = k.entity_id
        for    no key update
      ) as l
    ) as t
    where  e.bank_id = _store_short_names.bank and e.entity_id = t.entity_id
      -- The array keeps to the primary key, whatever is known of the bank.
      and  e.entity_id = any (array(select k.entity_id from known k))
      and  pgrecall.normalised_name(e.name) = t.part
    returning e.entity_id, t.alias
  )
  insert into pgrecall.entity_alias (bank_id, alias, entity_id)
  select _store_short_names.bank, r.alias, r.entity_id from renamed r
  on     conflict do nothing;
  -- Full names whose parts are new, too, become entities first.
  with other_name as materialized (
    select o.alias from unnest(fresh) as f cross join lateral unnest(f.aliases) as o(alias)
  ),
  part as materialized (
    select f.alias, f.name, f.kind, f.kind_class, p.part
    from   unnest(fresh) as f
    cross  join lateral unnest(pgrecall_internal._name_ends(f.alias)) as p(part)
    where  pgrecall_internal._has_full_name(f.name)
  ),
  full_name as (
    select f.alias, min(f.name) as name, min(f.kind) as kind
    from   part f
    join   unnest(fresh) as s on s.alias = f.part
    where  s.name !~ '^[[:lower:]]' and 'person' in (s.kind_class, f.kind_class)
      and  not pgrecall_internal._kinds_part(s.kind_class, f.kind_class)
      and  not exists (select from other_name o where o.alias = f.alias)
      and  (select true from pgrecall.entity_alias a
            where  a.bank_id = _store_short_names.bank and a.alias = f.alias
            limit  1) is null
    group  by f.alias
  ),
  stored as (
    insert into pgrecall.entity as e (bank_id, name, kind)
    select _store_short_names.bank, n.name, n.kind from full_name n order by n.alias
    returning e.entity_id, pgrecall.normalised_name(e.name) as alias
  )
  insert into pgrecall.entity_alias (bank_id, alias, entity_id)
  select _store_short_names.bank, s.alias, s.entity_id from stored s
  on     conflict do nothing;
  -- A short name means those whose names begin or end with it.
  insert into pgrecall.entity_alias (bank_id, alias, entity_id)
  select _store_short_names.bank, k.alias, k.entity_id
  from (
    select f.alias, e.entity_id, count(*) over (partition by f.alias) as sharers
    from   unnest(fresh) as f
    cross  join lateral (
      select distinct x.entity_id
      from   pgrecall_internal._full_names(_store_short_names.bank, f.alias) as x
      where  x.is_exact
    ) as a
    cross  join lateral (
      select x.entity_id, x.name, pgrecall_internal._kind_class(x.kind) as kind_class
      from   pgrecall.entity x
      where  x.bank_id = _store_short_names.bank and x.entity_id = a.entity_id
      limit  1
    ) as e
    where  strpos(f.alias, ' ') = 0 and f.name !~ '^[[:lower:]]'
      and  pgrecall_internal._has_full_name(e.name)
      and  'person' in (e.kind_class, f.kind_class)
      and  not pgrecall_internal._kinds_part(f.kind_class, e.kind_class)
  ) as k
  where  k.sharers <= 3
  on     conflict do nothing;
end;
$$;
comment on function pgrecall_internal._store_short_names is
'Makes short names of people aliases, before _store_entities(), where names in facts are unknown, '
'as _unknown_names() returns them. A new name of one word means those '
'persons, at most three, whose names begin or end with it; and whoever goes by such a word alone '
'takes over the new full name of a fact whose source is fully trusted, of other kinds only where '
'the fact gives the word as an alias. Not where a fact names both, kinds differ, or a word for a '
'person is no name (_has_full_name()); of two full names for one short name none is taken over.';

create or replace function pgrecall_internal._short_names_in_doubt(
  bank text, entity_ids bigint[])
returns table (
  short_id bigint, short_name text, short_kind text, entity_id bigint, name text, kind_class text)
language plpgsql stable parallel safe rows 10
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  with asked as materialized (
    select e.entity_id, e.name, e.kind_class, pgrecall.normalised_name(e.name) as alias
    from   unnest(entity_ids) as u(id)
    cross  join lateral (
      select x.entity_id, x.name, pgrecall_internal._kind_class(x.kind) as kind_class
      from   pgrecall.entity x
      where  x.bank_id = _short_names_in_doubt.bank and x.entity_id = u.id
      limit  1
    ) as e
    where  pgrecall_internal._may_be_person(e.kind_class) and e.name !~ '^[[:lower:]]'
  ),
  short as materialized (
    select a.entity_id, a.name, a.alias, a.kind_class
    from   asked a
    where  a.alias ~ '^[[:alpha:]]{2,}$'
    union
    select e.entity_id, e.name, p.part, e.kind_class
    from   asked a
    cross  join lateral unnest(pgrecall_internal._name_ends(a.alias)) as p(part)
    cross  join lateral (
      select x.entity_id
      from   pgrecall.entity_alias x
      where  x.bank_id = _short_names_in_doubt.bank and x.alias = p.part
      limit  10
    ) as k
    cross  join lateral (
      select x.entity_id, x.name, pgrecall_internal._kind_class(x.kind) as kind_class
      from   pgrecall.entity x
      where  x.bank_id = _short_names_in_doubt.bank and x.entity_id = k.entity_id
      limit  1
    ) as e
    where  pgrecall_internal._has_full_name(a.name) and p.part ~ '^[[:alpha:]]{2,}$'
      and  pgrecall.normalised_name(e.name) = p.part and e.name !~ '^[[:lower:]]'
      and  pgrecall_internal._may_be_person(e.kind_class)
  )
  select p.entity_id, p.name, p.short_kind, p.full_id, p.full_name, p.kind_class
  from (
    select s.entity_id, s.name, s.kind_class as short_kind, f.entity_id as full_id,
           f.name as full_name, f.kind_class, count(*) over (partition by s.entity_id) as sharers
    from   short s
    cross  join lateral (
      select distinct x.entity_id
      from   pgrecall_internal._full_names(_short_names_in_doubt.bank, s.alias) as x
      where  x.is_exact
    ) as k
    cross  join lateral (
      select x.entity_id, x.name, pgrecall_internal._kind_class(x.kind) as kind_class
      from   pgrecall.entity x
      where  x.bank_id = _short_names_in_doubt.bank and x.entity_id = k.entity_id
      limit  1
    ) as f
    where  pgrecall_internal._has_full_name(f.name) and f.name !~ '\d'
      and  pgrecall_internal._may_be_person(f.kind_class)
  ) as p
  where  p.sharers <= 3
    -- A fact that names both tells them apart.
    and  not exists (
      select
      from   pgrecall_internal._co_mentions(_short_names_in_doubt.bank, p.entity_id) as c
      where  c.other_id = p.full_id);
end;
$$;
comment on function pgrecall_internal._short_names_in_doubt is
'Entities that go by one word, each with those, at most three, whose names begin or end with it; '
'all may be people by their kinds, and are of entity_ids on either side. Not where a fact names '
'both.';

create or replace function pgrecall_internal._full_names_of_kind(bank text, kind_class text)
returns table (entity_id bigint, name text)
language sql stable parallel safe rows 5
begin atomic
  -- Called in a from clause, so that it is inlined.
  select e.entity_id, e.name
  from (
    select x.entity_id, x.name, x.kind
    from   pgrecall.entity x
    where  x.bank_id = _full_names_of_kind.bank
    order  by x.entity_id desc
    limit  1000
  ) as e
  where  pgrecall_internal._kind_class(e.kind) = _full_names_of_kind.kind_class
    and  pgrecall_internal._has_full_name(e.name) and e.name !~ '\d'
  order  by e.entity_id desc
  limit  5;
end;
comment on function pgrecall_internal._full_names_of_kind is
'Names of several words of a kind, as _kind_class() returns it, five of the newest thousand: they '
'tell whether it is one of people, an engineer, or not, a boat.';

create or replace function pgrecall.names_pending(
  bank text, model text default null, memory_ids bigint[] default null)
returns setof pgrecall.pending_text
language plpgsql stable parallel safe rows 20
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  searched pgrecall.bank := pgrecall_internal._bank(bank);
  asked    bigint[];
begin
  if model <> searched.embedding_model
     or pgrecall_internal._person_direction(searched) is null
     -- Who may only add, could not merge what it is told to embed.
     or not has_table_privilege('pgrecall.entity', 'delete')
  then
    return;
  end if;
  asked := case
    when memory_ids is null then array(
      select e.entity_id
      from   pgrecall.entity e
      where  e.bank_id = names_pending.bank
      order  by e.entity_id desc
      limit  10000)
    else array(
      select distinct m.entity_id
      from   unnest(memory_ids) as u(id)
      cross  join lateral (
        select x.entity_id
        from   pgrecall.mention x
        where  x.bank_id = names_pending.bank and x.memory_id = u.id
        limit  100
      ) as m
      -- Others were looked at with the facts that named them first.
      where  (select true
              from   pgrecall.mention o
              where  o.bank_id = names_pending.bank and o.entity_id = m.entity_id
                and  o.memory_id <> all (memory_ids)
              limit  1) is null)
  end;
  if asked = '{}' then
    return;
  end if;
  return query
  with pair as materialized (
    select p.*
    from (
      select d.*, bool_or(d.short_id = any (asked) or d.entity_id = any (asked))
                    over (partition by d.short_id) as is_new
      from   pgrecall_internal._short_names_in_doubt(names_pending.bank, asked) as d
    ) as p
    where  p.is_new
  )
  select m.memory_id, 'name'::text, 0::smallint, n.name, null::text
  from (
    select u.name, max(u.id) as entity_id
    from (
      select p.short_id, p.short_name from pair p
      union  all
      -- About whom it is known to be a person, nothing is in doubt.
      select p.entity_id, p.name from pair p where p.kind_class is distinct from 'person'
      union  all
      select w.entity_id, w.name
      from  (select distinct p.short_kind from pair p where p.short_kind <> 'person') as k
      cross  join lateral pgrecall_internal._full_names_of_kind(
                            names_pending.bank, k.short_kind) as w
    ) as u(id, name)
    group  by u.name
    order  by 2 desc
    limit  1000
  ) as n
  cross  join lateral (
    select x.memory_id
    from   pgrecall.mention x
    where  x.bank_id = names_pending.bank and x.entity_id = n.entity_id
    limit  1
  ) as m
  order  by 1, 4;
end;
$$;
comment on function pgrecall.names_pending is
'Names of entities of which one may be short for the other, "Ana" and "Ana Silva", where their '
'kinds do not say so, each at a fact that mentions it, at most 1,000. Pass embeddings of them to '
'embed_store(): where these say that both are names of a person, and of one person only, the short '
'name becomes an alias of the other, and the two entities one. Whether an engineer is a person, '
'and a boat is not, say up to five full names of the kind, which are listed, too. memory_ids: only '
'such with an entity that no other fact names; null: with one of the newest 10,000. None where '
'model is another one than that of the bank, where the role may not delete entities, nor where it '
'is not known how names of people look in the embeddings: it is of pgrecall-small-2. Errors: '
'RC001.';

create or replace function pgrecall_internal._merge_short_names(
  bank pgrecall.bank, names text[], embeddings halfvec[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  pair record;
begin
  for pair in
    with judged as materialized (
      select u.name, pgrecall.normalised_name(u.name) as alias,
             pgrecall_internal._person_odds(
               u.embedding, pgrecall_internal._person_direction(bank)) as odds
      from   unnest(names, embeddings) as u(name, embedding)
    ),
    -- Whether a kind is one of people, by the full names that have it.
    kind as materialized (
      select pgrecall_internal._kind_class(e.kind) as kind_class, avg(j.odds) as odds
      from   judged j
      join   pgrecall.entity_alias a on a.bank_id = bank.bank_id and a.alias = j.alias
      join   pgrecall.entity e on e.bank_id = bank.bank_id and e.entity_id = a.entity_id
      where  pgrecall_internal._has_full_name(j.name)
      group  by 1
    ),
    person as (
      select d.short_id, d.entity_id, count(*) over (partition by d.short_id) as meant
      from   pgrecall_internal._short_names_in_doubt(
               bank.bank_id,
               array(select a.entity_id
                     from   judged j
                     join   pgrecall.entity_alias a
                       on   a.bank_id = bank.bank_id and a.alias = j.alias)
             ) as d
      join   judged s on s.name = d.short_name
      left   join judged f on f.name = d.name
      left   join kind k on k.kind_class = d.short_kind
      where (coalesce(d.short_kind, 'person') = 'person' or k.odds > 1)
        and ('person' in (d.short_kind, d.kind_class) and s.odds > -0.5
             or s.odds + f.odds > 2 and least(s.odds, f.odds) > -0.5)
        -- A stranger renames nobody.
        and (bank.source_trust = '{}' or exists (
               select
               from   pgrecall.mention m
               join   pgrecall.memory y on y.bank_id = m.bank_id and y.memory_id = m.memory_id
               where  m.bank_id = bank.bank_id and m.entity_id = d.entity_id
                 and  pgrecall_internal._trust(bank.source_trust, y.source_id) = 1))
    )
    select p.entity_id, array_agg(p.short_id) as short_ids
    from   person p
    where  p.meant = 1
    group  by p.entity_id
    order  by p.entity_id
  loop
    perform pgrecall.merge_entities(bank.bank_id, pair.entity_id, pair.short_ids);
  end loop;
end;
$$;
comment on function pgrecall_internal._merge_short_names is
'Merges entities that go by a short name with the one person whom it means, of the names whose '
'embeddings are given: those for which the odds of both being names of people, multiplied, are '
'above e^2, and neither is below e^-0.5; and of the full names of their kind, if it is no known '
'one, in the mean above e. To a name that only strangers give nothing is merged. The bank must be '
'locked.';
