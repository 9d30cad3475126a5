-- Links between facts: the edges that the graph arm follows.
--
-- A fact gets a bounded number of links when it is written, whatever the size of the bank: causal
-- links as given by the caller, semantic links to the 5 most similar facts (a similarity of 0.7 or
-- more, on the scale of the bank), and one temporal link to the preceding fact. retain() writes
-- causal links at once. _link_memories() writes the others: called by retain(), or later by
-- link_pending() for facts that were retained with link => 'deferred'. A bank without HNSW index is
-- linked by comparing all its vectors, a hundred facts at a time; a bank with indexes, by index for
-- the fact types that have one.

create or replace function pgrecall_internal._store_causal_links(
  bank text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  link    record;
  from_id bigint;
  target  bigint;
begin
  for link in
    select f.n, l.position, l.kind, l.weight, l.to_id, l.to_index, l.to_key, l.target
    from   unnest(facts) as f
    cross  join lateral unnest(f.links) with ordinality
             as l(kind, weight, to_id, to_index, to_key, target, position)
    order  by f.n, l.position
  loop
    from_id := memory_ids[link.n];
    target := case
      when link.to_index is not null then memory_ids[link.to_index + 1]
      when link.to_id is not null then (
        select m.memory_id from pgrecall.memory m
        where  m.bank_id = _store_causal_links.bank and m.memory_id = link.to_id)
      else (
        select m.memory_id from pgrecall.memory m
        where  m.bank_id = _store_causal_links.bank
          and  lower(pgrecall_internal._normalised(m.fact_key))
                 = lower(pgrecall_internal._normalised(link.to_key))
          and  m.memory_id <> from_id
        order  by m.valid_to desc nulls first, m.memory_id desc
        limit  1)
    end;
    if target is null then
      perform pgrecall_internal._raise_invalid_field(
        format('facts[%s].links[%s]', link.n - 1, link.position - 1),
        format('no memory of bank "%s" answers to %s', bank, link.target),
        'Retain the fact that it leads to first, or in the same call.');
    end if;
    insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
    select _store_causal_links.bank, from_id, link.kind, target, link.weight
    where  target <> from_id
    on conflict on constraint link_pkey do nothing;
  end loop;
end;
$$;
comment on function pgrecall_internal._store_causal_links is
'Writes the causal links of facts. Errors: RC003 the target of a link does not exist.';

create or replace function pgrecall_internal._link_all_pairs(
  bank pgrecall.bank, memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set jit = off
set plan_cache_mode = force_custom_plan
as $$
declare
  model_name text := coalesce(bank.embedding_model, '');
  farthest   double precision := coalesce(1 - bank.high_cosine, 0.3);
begin
  -- Each vector of the bank is read once per hundred facts rather than once per fact. Few pairs are
  -- similar enough; they are sorted afterwards. Order by id makes a planner without statistics use
  -- the primary key, the only index with that order.
  for start in 1 .. cardinality(memory_ids) by 100 loop
    insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
    with fresh as materialized (
      select v.memory_id, v.embedding
      from   unnest(memory_ids[start : start + 99]) as u(memory_id)
      cross  join lateral (
        select e.memory_id, e.embedding
        from   pgrecall.embedding e
        where  e.bank_id = bank.bank_id and e.memory_id >= u.memory_id and e.model = model_name
          and  e.kind = 'text'
        order  by e.memory_id
        limit  1
      ) as v
      where  v.memory_id = u.memory_id
    )
    select bank.bank_id, n.from_id, 'semantic', n.to_id,
           least(pgrecall_internal._similarity(
                   1 - n.distance, bank.low_cosine, bank.high_cosine), 1)
    from (
      select f.memory_id as from_id, e.memory_id as to_id, f.distance,
             row_number() over (
               partition by f.memory_id order by f.distance, e.memory_id desc) as position
      from   pgrecall.embedding e
      cross  join lateral (
        select v.memory_id, e.embedding <=> v.embedding as distance
        from   fresh v
        where  v.memory_id <> e.memory_id and e.embedding <=> v.embedding <= farthest
        offset 0
      ) as f
      where  e.bank_id = bank.bank_id and e.model = model_name and e.kind = 'text'
    ) as n
    where  n.position <= 5
    on conflict on constraint link_pkey do nothing;
  end loop;
end;
$$;
comment on function pgrecall_internal._link_all_pairs is
'Links facts of a bank without HNSW index to the 5 most similar, similarity 0.7 or more, by '
'comparing them with all its vectors.';

create or replace function pgrecall_internal._link_by_type(
  bank pgrecall.bank, fact_types text[], hnsw_types text[], memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set jit = off
-- Each branch has one right plan, which must not depend on statistics.
set enable_seqscan = off
set enable_sort = off
set hnsw.ef_search = 40
set hnsw.iterative_scan = relaxed_order
as $$
begin
  -- An index over whole vectors returns the nearest in order. An index over signs or leading
  -- elements yields 50 candidates, compared again by their whole vectors. PostgreSQL uses a partial
  -- index only where the statement contains its constants and its expression literally.
  if bank.vector_search <> 'full' then
    perform set_config('hnsw.ef_search', '100', true);
  end if;
  execute format(
    $sql$
      insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
      select $1, v.memory_id, 'semantic', n.memory_id, least(n.similarity, 1)
      from   unnest($2) as f(memory_id)
      cross  join lateral (
        select e.memory_id, e.embedding
        from   pgrecall.embedding e
        where  e.bank_id = $1 and e.memory_id >= f.memory_id and e.model = $3 and e.kind = 'text'
        order  by e.memory_id
        limit  1
      ) as v
      cross  join lateral (
        select u.memory_id, pgrecall_internal._similarity(1 - u.distance, $4, $5) as similarity
        from   (%s) as u
        order  by u.distance, u.memory_id desc
        limit  5
      ) as n
      where  v.memory_id = f.memory_id and n.similarity >= 0.7
      on conflict on constraint link_pkey do nothing
    $sql$,
    concat_ws(
      E'\nunion all\n',
      pgrecall_internal._union_all(
        format(
          $sql$
            select x.memory_id, x.embedding <=> v.embedding as distance
            from (
              select e.memory_id, e.embedding
              from   pgrecall.embedding e
              where  e.bank_id = $1 and e.fact_type = {fact_type} and e.model = $3
                and  e.kind = 'text' and e.memory_id <> v.memory_id and %s
              order  by %s %s %s
              limit  %s
            ) as x
          $sql$,
          pgrecall_internal._hnsw_scope('hashtextextended($1, 0)',
                                        'hashtextextended({fact_type}, 0)',
                                        'hashtextextended($3, 0)'),
          pgrecall_internal._vector_key(bank, bank.embedding_dimensions, 'e.embedding'),
          case bank.vector_search when 'binary' then '<~>' else '<=>' end,
          pgrecall_internal._vector_key(bank, bank.embedding_dimensions, 'v.embedding'),
          case bank.vector_search when 'full' then 5 else 50 end),
        hnsw_types),
      pgrecall_internal._union_all(
        $sql$
          select e.memory_id, e.embedding <=> v.embedding as distance
          from   pgrecall.embedding e
          where  e.bank_id = $1 and e.fact_type = {fact_type} and e.model = $3
            and  e.kind = 'text' and e.memory_id <> v.memory_id
          order  by 2
          limit  5
        $sql$,
        array(select t from unnest(fact_types) as t where t <> all (hnsw_types))))
  )
  using bank.bank_id, memory_ids, coalesce(bank.embedding_model, ''), bank.low_cosine,
        bank.high_cosine;
end;
$$;
comment on function pgrecall_internal._link_by_type is
'Links facts to the 5 most similar, similarity 0.7 or more, with a search per fact type: by HNSW '
'index in hnsw_types, exact in the others.';

create or replace function pgrecall_internal._link_memories(bank text, memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  linked     pgrecall.bank := pgrecall_internal._bank(bank);
  fact_types text[];
  hnsw_types text[];
begin
  if linked.embedding_dimensions is not null then
    fact_types := pgrecall_internal._fact_types(_link_memories.bank, null);
    hnsw_types := (pgrecall_internal._indexed_types(linked, fact_types)).indexed;
    if hnsw_types = '{}' then
      perform pgrecall_internal._link_all_pairs(linked, memory_ids);
    else
      perform pgrecall_internal._link_by_type(linked, fact_types, hnsw_types, memory_ids);
    end if;
  end if;

  -- The fact that happened just before, at most a day earlier: one link per fact, which chains the
  -- facts of a day. Among facts of the same time it is the one stored just before, searched among
  -- the last 20 only: sorting all facts of a day would cost more with each fact.
  insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
  select _link_memories.bank, v.memory_id, 'temporal', n.memory_id,
         1 - extract(epoch from v.started_at - n.started_at) / 86400
  from   unnest(memory_ids) as u(memory_id)
  cross  join lateral (
    select m.memory_id, lower(m.occurred) as started_at
    from   pgrecall.memory m
    where  m.bank_id = _link_memories.bank and m.memory_id = u.memory_id
    limit  1
  ) as v
  cross  join lateral (
    select b.memory_id, b.started_at
    from (
      (select s.memory_id, s.started_at
       from (
         select m.memory_id, lower(m.occurred) as started_at
         from   pgrecall.memory m
         where  m.bank_id = _link_memories.bank and m.memory_id < v.memory_id
         order  by m.memory_id desc
         limit  20
       ) as s
       where  s.started_at = v.started_at
       order  by s.memory_id desc
       limit  1)
      union all
      select p.memory_id, p.started_at
      from   pgrecall.fact_type t
      cross  join lateral (
        select m.memory_id, lower(m.occurred) as started_at
        from   pgrecall.memory m
        where  m.bank_id = _link_memories.bank and m.fact_type = t.fact_type
          and  m.occurred is not null
          and  lower(m.occurred) > v.started_at - interval '1 day'
          and  lower(m.occurred) < v.started_at
        order  by lower(m.occurred) desc
        limit  1
      ) as p
      where  t.bank_id = _link_memories.bank
    ) as b
    order  by b.started_at desc, b.memory_id desc
    limit  1
  ) as n
  where  isfinite(v.started_at)
  on conflict on constraint link_pkey do nothing;
end;
$$;
comment on function pgrecall_internal._link_memories is
'Writes semantic links (to the 5 nearest, from a similarity of 0.7 on) and temporal ones (to the '
'fact before, within a day).';

create or replace function pgrecall.link_pending(bank text, batch_size integer default 1000)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  memory_ids bigint[];
begin
  perform pgrecall_internal._shared_bank(bank);
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  memory_ids := array(
    select p.memory_id
    from (
      select m.memory_id from pgrecall.memory m
      where  m.bank_id = link_pending.bank and not m.is_linked
      order  by m.memory_id
      limit  batch_size
      -- Another call links those.
      for    no key update skip locked
    ) as p
  );
  perform pgrecall_internal._link_memories(bank, memory_ids);
  -- The range is what the index is searched by, whatever the statistics say.
  update pgrecall.memory m
  set    is_linked = true
  where  m.bank_id = link_pending.bank and m.memory_id = any (memory_ids)
    and  m.memory_id between memory_ids[1] and memory_ids[cardinality(memory_ids)]
    and  not m.is_linked;
  return cardinality(memory_ids);
end;
$$;
comment on function pgrecall.link_pending is
'Links up to batch_size facts that were retained with link => ''deferred''; returns how many. Call '
'it until it returns 0; pending_links() counts the rest. Errors: RC001, 22023.';

create or replace function pgrecall.pending_links(bank text)
returns bigint
language plpgsql stable parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall_internal._bank(bank);
  return (
    select count(*) from pgrecall.memory m
    where  m.bank_id = pending_links.bank and not m.is_linked
  );
end;
$$;
comment on function pgrecall.pending_links is
'How many facts of a bank were retained with link => ''deferred'' and wait for link_pending(). '
'Errors: RC001.';
