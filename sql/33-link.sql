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
        where  m.bank_id = _retain_links.bank and lower(m.fact_key) = lower(link ->> 'to_key')
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

create or replace function pgrecall._link_by_index(
  bank pgrecall.bank, fact_types text[], hnsw_types text[], memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set jit = off
-- Each branch has one right path, which statistics, or that there are none, must not change.
set enable_seqscan = off
set enable_sort = off
set hnsw.ef_search = 100
set hnsw.iterative_scan = relaxed_order
as $$
begin
  -- By index 50 of a type, for of those the whole vectors choose; the constants of an index and of
  -- its expression must stand in the statement.
  execute format(
    $sql$
      insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
      select $1, v.memory_id, 'semantic', n.memory_id, least(n.similarity, 1)
      from   pgrecall.embedding v
      cross  join lateral (
        select u.memory_id, 1 - u.distance as similarity
        from   (%s) as u
        order  by u.distance
        limit  5
      ) as n
      where  v.bank_id = $1 and v.memory_id = any ($2) and v.model = $3 and v.kind = 'text'
        and  n.similarity >= 0.7
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
              limit  50
            ) as x
          $sql$,
          pgrecall._vector_key(bank, bank.embedding_dimensions, 'e.embedding'),
          case bank.vector_search when 'binary' then '<~>' else '<=>' end,
          pgrecall._vector_key(bank, bank.embedding_dimensions, 'v.embedding')),
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
comment on function pgrecall._link_by_index(pgrecall.bank, text[], text[], bigint[]) is
'Writes the semantic links of memories of a bank whose hnsw_types have an HNSW index each.';

create or replace function pgrecall._link(bank text, memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  linked     pgrecall.bank := pgrecall._bank(bank);
  own_model  text := coalesce(linked.embedding_model, '');
  fact_types text[] := array(
    select t.fact_type from pgrecall.fact_type t where t.bank_id = _link.bank order by 1
  );
  hnsw_types text[] := (pgrecall._indexed_types(linked, fact_types)).indexed;
begin
  if hnsw_types <> '{}' then
    perform pgrecall._link_by_index(linked, fact_types, hnsw_types, memory_ids);
  else
    insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
    select _link.bank, v.memory_id, 'semantic', n.memory_id, least(n.similarity, 1)
    from   pgrecall.embedding v
    cross  join lateral (
      select e.memory_id, 1 - (e.embedding <=> v.embedding) as similarity
      from   pgrecall.embedding e
      where  e.bank_id = _link.bank and e.model = own_model and e.kind = 'text'
        and  e.memory_id <> v.memory_id
      order  by e.embedding <=> v.embedding
      limit  5
    ) as n
    where  v.bank_id = _link.bank and v.memory_id = any (_link.memory_ids) and v.kind = 'text'
      and  v.model = own_model and n.similarity >= 0.7
    on conflict on constraint link_pkey do nothing;
  end if;

  -- The fact that happened just before, at most a day earlier: chains of a day, one link a fact.
  insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
  select _link.bank, v.memory_id, 'temporal', n.memory_id,
         1 - extract(epoch from lower(v.occurred) - n.started_at) / 86400
  from   pgrecall.memory v
  cross  join lateral (
    select b.memory_id, b.started_at
    from   pgrecall.fact_type t
    cross  join lateral (
      select m.memory_id, lower(m.occurred) as started_at
      from   pgrecall.memory m
      where  m.bank_id = _link.bank and m.fact_type = t.fact_type and m.occurred is not null
        and  lower(m.occurred) > lower(v.occurred) - interval '1 day'
        and  lower(m.occurred) <= lower(v.occurred)
        and  (lower(m.occurred) < lower(v.occurred) or m.memory_id < v.memory_id)
      order  by lower(m.occurred) desc, m.memory_id desc
      limit  1
    ) as b
    where  t.bank_id = _link.bank
    order  by b.started_at desc, b.memory_id desc
    limit  1
  ) as n
  where  v.bank_id = _link.bank and v.memory_id = any (_link.memory_ids)
    and  v.occurred is not null and not lower_inf(v.occurred)
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
'it until it returns 0. '
'Errors: RC001, 22023.';
