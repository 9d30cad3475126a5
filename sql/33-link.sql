create or replace function pgrecall._retain_links(bank text, facts jsonb, memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  fact_index integer;
  link_index integer;
  link       jsonb;
  target     bigint;
begin
  for fact_index, link_index, link in
    select f.n - 1, l.n - 1, l.value
    from   jsonb_array_elements(facts) with ordinality as f(fact, n),
           jsonb_array_elements(coalesce(nullif(f.fact -> 'links', 'null'), '[]'))
             with ordinality as l(value, n)
  loop
    target := case
      when link ->> 'to_index' is not null then memory_ids[(link ->> 'to_index')::integer + 1]
      when link ->> 'to_id' is not null then (
        select m.memory_id from pgrecall.memory m
        where  m.bank_id = _retain_links.bank and m.memory_id = (link ->> 'to_id')::bigint)
      else (
        select m.memory_id from pgrecall.memory m
        where  m.bank_id = _retain_links.bank
          and  lower(pgrecall._normalised(m.fact_key))
                 = lower(pgrecall._normalised(link ->> 'to_key'))
          and  m.memory_id <> memory_ids[fact_index + 1]
        order  by m.valid_to desc nulls first, m.memory_id desc
        limit  1)
    end;
    if target is null then
      perform pgrecall._invalid_fact(
        format('facts[%s].links[%s]', fact_index, link_index),
        format('no memory of bank "%s" answers to %s', bank, link - 'kind' - 'weight'),
        'Retain the fact it leads to before, or in the same call.');
    end if;
    insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
    select _retain_links.bank, memory_ids[fact_index + 1], link ->> 'kind', target,
           coalesce((link ->> 'weight')::real, 1)
    where  target <> memory_ids[fact_index + 1]
    on conflict on constraint link_pkey do nothing;
  end loop;
end;
$$;
comment on function pgrecall._retain_links(text, jsonb, bigint[]) is
'Writes the causal links of checked facts. Errors: RC003 when one leads to no memory.';

create or replace function pgrecall._link_semantic(
  bank pgrecall.bank, memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set jit = off
set plan_cache_mode = force_custom_plan
as $$
declare
  model_name text := coalesce(bank.embedding_model, '');
begin
  -- Each vector of the bank is read once for a hundred facts rather than once for each. What is
  -- similar enough is little, and sorted afterwards. The order by id is for a planner that does
  -- not know the bank yet: of all indexes the primary key alone has it.
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
    select bank.bank_id, n.from_id, 'semantic', n.to_id, least(1 - n.distance, 1)
    from (
      select f.memory_id as from_id, e.memory_id as to_id, f.distance,
             row_number() over (
               partition by f.memory_id order by f.distance, e.memory_id desc) as position
      from   pgrecall.embedding e
      cross  join lateral (
        select v.memory_id, e.embedding <=> v.embedding as distance
        from   fresh v
        where  v.memory_id <> e.memory_id and e.embedding <=> v.embedding <= 0.3
        offset 0
      ) as f
      where  e.bank_id = bank.bank_id and e.model = model_name and e.kind = 'text'
    ) as n
    where  n.position <= 5
    on conflict on constraint link_pkey do nothing;
  end loop;
end;
$$;
comment on function pgrecall._link_semantic(pgrecall.bank, bigint[]) is
'Links facts of a small bank to the 5 most similar, similarity 0.7 or more: all its vectors are '
'compared.';

create or replace function pgrecall._link_by_type(
  bank pgrecall.bank, fact_types text[], hnsw_types text[], memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set jit = off
-- Each branch has one right path, which statistics, or that there are none, must not change.
set enable_seqscan = off
set enable_sort = off
set hnsw.ef_search = 40
set hnsw.iterative_scan = relaxed_order
as $$
begin
  -- An index over whole vectors gives the nearest themselves; of one over signs or leading elements
  -- 50 are compared again. The constants of an index and of its expression must stand in the
  -- statement.
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
        select u.memory_id, 1 - u.distance as similarity
        from   (%s) as u
        order  by u.distance, u.memory_id desc
        limit  5
      ) as n
      where  v.memory_id = f.memory_id and n.similarity >= 0.7
      on conflict on constraint link_pkey do nothing
    $sql$,
    concat_ws(
      E'\nunion all\n',
      pgrecall._union_all(
        format(
          $sql$
            select x.memory_id, x.embedding <=> v.embedding as distance
            from (
              select e.memory_id, e.embedding
              from   pgrecall.embedding e
              where  e.bank_id = $1 and e.fact_type = {fact_type} and e.model = $3
                and  e.kind = 'text' and e.memory_id <> v.memory_id
              order  by %s %s %s
              limit  %s
            ) as x
          $sql$,
          pgrecall._vector_key(bank, bank.embedding_dimensions, 'e.embedding'),
          case bank.vector_search when 'binary' then '<~>' else '<=>' end,
          pgrecall._vector_key(bank, bank.embedding_dimensions, 'v.embedding'),
          case bank.vector_search when 'full' then 5 else 50 end),
        hnsw_types),
      pgrecall._union_all(
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
  using bank.bank_id, memory_ids, coalesce(bank.embedding_model, '');
end;
$$;
comment on function pgrecall._link_by_type(pgrecall.bank, text[], text[], bigint[]) is
'Links facts to the 5 most similar, similarity 0.7 or more, sought per fact type: by HNSW index in '
'hnsw_types, exactly in the others.';

create or replace function pgrecall._link(bank text, memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  linked     pgrecall.bank := pgrecall._bank(bank);
  fact_types text[];
  hnsw_types text[];
begin
  if linked.embedding_dimensions is not null then
    fact_types := pgrecall._fact_types(_link.bank, null);
    hnsw_types := (pgrecall._indexed_types(linked, fact_types)).indexed;
    if hnsw_types = '{}'
       and coalesce((select s.document_count from pgrecall.statistics s
                     where  s.bank_id = _link.bank and s.kind = 'memory'), 0) <= 10000
    then
      perform pgrecall._link_semantic(linked, memory_ids);
    elsif fact_types <> '{}' then
      perform pgrecall._link_by_type(linked, fact_types, hnsw_types, memory_ids);
    end if;
  end if;

  -- The fact that happened just before, at most a day earlier: chains of a day, one link a fact. Of
  -- the same time it is the one stored just before, sought among the last 20: to sort all of a day
  -- would take longer with each fact.
  insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
  select _link.bank, v.memory_id, 'temporal', n.memory_id,
         1 - extract(epoch from v.started_at - n.started_at) / 86400
  from   unnest(memory_ids) as u(memory_id)
  cross  join lateral (
    select m.memory_id, lower(m.occurred) as started_at
    from   pgrecall.memory m
    where  m.bank_id = _link.bank and m.memory_id = u.memory_id
    limit  1
  ) as v
  cross  join lateral (
    select b.memory_id, b.started_at
    from (
      (select s.memory_id, s.started_at
       from (
         select m.memory_id, lower(m.occurred) as started_at
         from   pgrecall.memory m
         where  m.bank_id = _link.bank and m.memory_id < v.memory_id
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
        where  m.bank_id = _link.bank and m.fact_type = t.fact_type and m.occurred is not null
          and  lower(m.occurred) > v.started_at - interval '1 day'
          and  lower(m.occurred) < v.started_at
        order  by lower(m.occurred) desc
        limit  1
      ) as p
      where  t.bank_id = _link.bank
    ) as b
    order  by b.started_at desc, b.memory_id desc
    limit  1
  ) as n
  where  isfinite(v.started_at)
  on conflict on constraint link_pkey do nothing;

  update pgrecall.memory m
  set    is_linked = true
  where  m.bank_id = _link.bank and m.memory_id = any (_link.memory_ids) and not m.is_linked;
end;
$$;
comment on function pgrecall._link(text, bigint[]) is
'Writes semantic links (5 nearest, similarity 0.7 or more) and temporal ones (the fact before, '
'within a day).';

create or replace function pgrecall.link_pending(bank text, batch_size integer default 1000)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  memory_ids bigint[];
begin
  perform pgrecall._locked_bank(bank);
  perform pgrecall._check_range('batch_size', batch_size, 1, 100000);
  memory_ids := array(
    select m.memory_id from pgrecall.memory m
    where  m.bank_id = link_pending.bank and not m.is_linked
    order  by m.memory_id
    limit  batch_size
  );
  perform pgrecall._link(bank, memory_ids);
  return cardinality(memory_ids);
end;
$$;
comment on function pgrecall.link_pending(text, integer) is
'Links up to batch_size facts that were retained with link => ''deferred''; returns how many. Call '
'it until it returns 0; pending_links() says how many are left. '
'Errors: RC001, 22023.';

create or replace function pgrecall.pending_links(bank text)
returns bigint
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  perform pgrecall._bank(bank);
  return (
    select count(*) from pgrecall.memory m
    where  m.bank_id = pending_links.bank and not m.is_linked
  );
end;
$$;
comment on function pgrecall.pending_links(text) is
'How many facts of a bank were retained with link => ''deferred'' and wait for link_pending(). '
'Errors: RC001.';
