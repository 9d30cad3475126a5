-- HNSW indexes: their state, and the plan that creates and drops them.
--
-- A bank gets one partial index of the vectors of its model once there are hnsw_threshold of them;
-- below that an exact search is fast enough. One index of all fact types is searched in half of the
-- time of one for each of three; a search of one type skips the others. A function cannot build an
-- index without blocking the bank, so index_plan() only returns the statements, for a client to run
-- one by one.
-- An index whose settings changed keeps its name until the new one is built; then the new one is
-- renamed. recall_check() measures the recall of the indexes.
create or replace function pgrecall_internal._hnsw_state(bank pgrecall.bank, index_name text)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return (
    select case
             when exists (
               select from pg_stat_progress_create_index p where p.index_relid = x.indexrelid
             ) then 'building'
             when not x.indisvalid then 'invalid'
             when c.reloptions @> array['m=' || bank.hnsw_m,
                                        'ef_construction=' || bank.hnsw_ef_construction]
               then 'ready'
             else 'other'
           end
    from   pg_class c
    join   pg_index x on x.indexrelid = c.oid
    where  c.relnamespace = 'pgrecall_internal'::regnamespace and c.relname = index_name
  );
end;
$$;
comment on function pgrecall_internal._hnsw_state is
'building, invalid, ready, or other: the index was built with another m or ef_construction than '
'the bank sets. Null: there is no index.';

create or replace function pgrecall_internal._hnsw_seconds(
  bank pgrecall.bank, dimensions integer, elements bigint)
returns double precision
language sql immutable parallel safe
return elements * ln(elements + 1) / 1e6 * bank.hnsw_ef_construction / 64
       * (9 + 0.03 * dimensions * case bank.vector_search when 'binary' then 0.1 else 1 end);
comment on function pgrecall_internal._hnsw_seconds is
'Estimated seconds to build an HNSW index of so many vectors on one core, with '
'maintenance_work_mem that holds it.';

create or replace function pgrecall_internal._count_vectors(
  bank text, model text, most bigint default null)
returns bigint
language plpgsql stable parallel safe
set search_path from current
-- Forces the index, whatever the statistics.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return (
    select count(*) from (
      select from pgrecall.embedding e
      where  e.bank_id = _count_vectors.bank and e.fact_type > '' and e.model = _count_vectors.model
      limit  most
    ) as bounded
  );
end;
$$;
comment on function pgrecall_internal._count_vectors is
'How many vectors of facts and of their questions a bank has of a model, counted up to most.';

create or replace function pgrecall_internal._hnsw_definition(
  bank pgrecall.bank, index_name text, model text, dimensions integer)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  -- The statement may be run with another search_path.
  prefix text := (
    select format('%I.', n.nspname)
    from   pg_type t
    join   pg_namespace n on n.oid = t.typnamespace
    where  t.oid = 'halfvec'::regtype);
begin
  -- On the partition: PostgreSQL cannot build an index of a partitioned table concurrently. Where
  -- Citus distributes the table, no row of it tells the partition, for rows are in its shards.
  return format(
    'create index concurrently %I on %s using hnsw ((%s) %s) with (m = %s, ef_construction = %s) '
    'where %s',
    index_name,
    (select format('pgrecall_internal.%I', c.relname)
     from   pg_inherits h
     join   pg_class c on c.oid = h.inhrelid
     cross  join lateral regexp_match(
              pg_get_expr(c.relpartbound, c.oid), 'modulus (\d+), remainder (\d+)') as b(bound)
     where  h.inhparent = 'pgrecall.embedding'::regclass
       and  satisfies_hash_partition(
              h.inhparent, b.bound[1]::integer, b.bound[2]::integer, bank.bank_id)),
    pgrecall_internal._vector_key(bank, dimensions, 'embedding', prefix),
    prefix || case bank.vector_search
                when 'binary' then 'bit_hamming_ops' else 'halfvec_cosine_ops' end,
    bank.hnsw_m, bank.hnsw_ef_construction,
    pgrecall_internal._hnsw_scope(
      format('%L::bigint', hashtextextended(bank.bank_id, 0)),
      format('%L::bigint', hashtextextended(model, 0))));
end;
$$;
comment on function pgrecall_internal._hnsw_definition is
'The statement that creates an HNSW index of that name.';

create or replace function pgrecall_internal._hnsw_steps(
  bank pgrecall.bank, model text, dimensions integer, counted bigint)
returns setof pgrecall.index_step
language plpgsql stable parallel unsafe rows 2
set search_path from current
as $$
declare
  name      text := pgrecall_internal._hnsw_name(bank, model, dimensions);
  new_name  text := name || '_new';
  state     text := pgrecall_internal._hnsw_state(bank, name);
  new_state text := pgrecall_internal._hnsw_state(bank, new_name);
  elements  bigint := counted;
  is_due    boolean;
  is_built  boolean;
  reason    text;
begin
  if state = 'building' or new_state = 'building' then
    return;
  end if;
  is_due   := coalesce(state, '') in ('ready', 'other') or counted >= bank.hnsw_threshold;
  is_built := is_due and state is distinct from 'ready' and coalesce(new_state, '') = 'ready';
  if is_due and state is distinct from 'ready' then
    elements := pgrecall_internal._count_vectors(bank.bank_id, model);
  end if;
  reason := case
    when state = 'other' then format(
      'hnsw_m or hnsw_ef_construction changed, now %s and %s',
      bank.hnsw_m, bank.hnsw_ef_construction)
    when state = 'invalid' or new_state = 'invalid' then 'a build was interrupted'
    when is_due then format('%s vectors, hnsw_threshold is %s', elements, bank.hnsw_threshold)
    else format('%s vectors are fewer than hnsw_threshold %s', elements, bank.hnsw_threshold)
  end;

  -- An index with other settings is used until the new one is built and takes its name.
  return query
  select bank.bank_id, null::text, s.action, s.statement, reason, s.index_name,
         case s.action when 'create' then
           pgrecall_internal._hnsw_bytes(bank, dimensions, elements) end,
         case s.action when 'create' then
           pgrecall_internal._hnsw_seconds(bank, dimensions, elements) end
  from (
    values
      (1, new_state is not null and not is_built, 'drop', new_name,
       format('drop index concurrently pgrecall_internal.%I', new_name)),
      (2, state = 'invalid', 'drop', name,
       format('drop index concurrently pgrecall_internal.%I', name)),
      (3, is_due and state is distinct from 'ready' and not is_built, 'create',
       case state when 'other' then new_name else name end,
       pgrecall_internal._hnsw_definition(
         bank, case state when 'other' then new_name else name end, model, dimensions)),
      (4, is_due and state = 'other', 'drop', name,
       format('drop index concurrently pgrecall_internal.%I', name)),
      (5, is_built or (is_due and state = 'other'), 'rename', name,
       format('alter index pgrecall_internal.%I rename to %I', new_name, name))
  ) as s(n, is_wanted, action, index_name, statement)
  where  s.is_wanted
  order  by s.n;
end;
$$;
comment on function pgrecall_internal._hnsw_steps is
'Steps of index_plan() for the HNSW index of a bank and model, in order. None while it is being '
'built. counted: its vectors, up to hnsw_threshold.';

create or replace function pgrecall_internal._unused_hnsw_steps(bank text, kept text[])
returns setof pgrecall.index_step
language plpgsql stable parallel unsafe rows 5
set search_path from current
as $$
declare
  existing   record;
  hashes     bigint[];
  searched   pgrecall.bank;
  used_model text;
  elements   bigint;
  step       pgrecall.index_step;
begin
  for existing in
    select c.relname, pg_get_expr(x.indpred, x.indrelid) as predicate
    from   pg_inherits h
    join   pg_index x on x.indrelid = h.inhrelid
    join   pg_class c on c.oid = x.indexrelid
    where  h.inhparent = 'pgrecall.embedding'::regclass
      and  c.relname like 'embedding\_hnsw\_%' and c.relname <> all (kept)
      and  not exists (
             select from pg_stat_progress_create_index p where p.index_relid = c.oid)
    order  by c.relname
  loop
    -- Of bank and model, from the predicate of the index; of an index of 0.2.0, of one fact type,
    -- that between them.
    hashes := array(
      select v.value[1]::bigint
      from   regexp_matches(existing.predicate, '= ''(-?\d+)''::bigint', 'g')
               with ordinality as v(value, n)
      order  by v.n
    );
    continue when hashes[1] <> hashtextextended(bank, 0);
    select b.* into searched
    from   pgrecall.bank b
    where  hashtextextended(b.bank_id, 0) = hashes[1];
    -- A bank that row security hides still exists.
    continue when not found and row_security_active('pgrecall.bank');
    step := null;
    step.bank_id    := searched.bank_id;
    step.fact_type  := (
      select t.fact_type from pgrecall.fact_type t
      where  t.bank_id = searched.bank_id and hashtextextended(t.fact_type, 0) = hashes[2]
    );
    used_model := (
      select m
      from   unnest(array[coalesce(searched.embedding_model, ''), searched.next_model]) as m
      where  hashtextextended(m, 0) = hashes[cardinality(hashes)]
    );
    elements := pgrecall_internal._count_vectors(
      searched.bank_id, used_model, searched.hnsw_threshold);
    step.action     := 'drop';
    step.statement  := format('drop index concurrently pgrecall_internal.%I', existing.relname);
    step.index_name := existing.relname;
    step.reason     := case
      when searched.bank_id is null then 'the bank is gone'
      when used_model is null then format(
        'the bank is embedded with model "%s" now', coalesce(searched.embedding_model, ''))
      when elements < searched.hnsw_threshold / 2.0 then format(
        '%s vectors are fewer than half of hnsw_threshold %s', elements, searched.hnsw_threshold)
      else 'the bank searches in another way now'
    end;
    return next step;
  end loop;
end;
$$;
comment on function pgrecall_internal._unused_hnsw_steps is
'Steps that drop HNSW indexes that no search uses, other than those in kept: the bank was dropped, '
'its vectors are few or of another model, or its vector_search changed. bank null: of all banks.';

create or replace function pgrecall.index_plan(bank text default null)
returns setof pgrecall.index_step
language plpgsql stable parallel unsafe rows 10
set search_path from current
-- Forces lookups in index order, also in the functions it calls.
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
  searched pgrecall.bank;
  part     record;
  name     text;
  kept     text[] := '{}';
begin
  if bank is not null then
    perform pgrecall_internal._bank(bank);
  end if;
  for searched in
    select b.* from pgrecall.bank b
    where  index_plan.bank is null or b.bank_id = index_plan.bank
    order  by b.bank_id
  loop
    for part in
      select m.model, m.dimensions, c.counted
      from   (values (coalesce(searched.embedding_model, ''), searched.embedding_dimensions),
                     (searched.next_model, searched.next_dimensions)) as m(model, dimensions)
      cross  join lateral pgrecall_internal._count_vectors(
               searched.bank_id, m.model, searched.hnsw_threshold) as c(counted)
      -- Without dimensions, in a row that was changed by hand, nothing can be built.
      where  c.counted >= searched.hnsw_threshold / 2.0 and m.dimensions is not null
    loop
      name := pgrecall_internal._hnsw_name(searched, part.model, part.dimensions);
      kept := kept || array[name, name || '_new'];
      return query
      select s.* from pgrecall_internal._hnsw_steps(
        searched, part.model, part.dimensions, part.counted) as s;
    end loop;
  end loop;
  return query
  select s.* from pgrecall_internal._unused_hnsw_steps(bank, kept) as s;
end;
$$;
comment on function pgrecall.index_plan is
'Statements that create and drop HNSW indexes, due now, in the order to run them; of all banks '
'where none is given. It runs none itself; in psql: select statement from pgrecall.index_plan() '
'\gexec. Each runs outside a transaction block, and the bank can be used meanwhile. An index is '
'due from hnsw_threshold vectors of a bank and model on, until they are fewer than half; it is '
'built again when hnsw_m, hnsw_ef_construction or vector_search changed or a build was '
'interrupted. It is on the partition of the bank, since PostgreSQL cannot build one concurrently '
'on embedding itself. estimated_bytes is its size, which should fit into maintenance_work_mem; '
'estimated_seconds is on one core. Errors: RC001.';

create or replace function pgrecall.recall_check(
  bank text, sample integer default 100, k integer default 20, depth integer default 100,
  is_next boolean default false)
returns setof pgrecall.recall_checked
language plpgsql volatile parallel unsafe rows 3
set search_path from current
as $$
declare
  request       pgrecall_internal.request := pgrecall_internal._request(
    bank, '', options => '{"similarity_floor": -1}', arm => 'semantic');
  searched      pgrecall.bank := request.bank;
  searched_type text;
  question      halfvec;
  indexed       record;
  exact         record;
  started_at    timestamptz;
  found_at      timestamptz;
  result        pgrecall.recall_checked;
begin
  perform pgrecall_internal._check_range('sample', sample, 1, 10000);
  perform pgrecall_internal._check_range('k', k, 1, 1000);
  perform pgrecall_internal._check_range('depth', depth, k, 10000);
  if is_next then
    perform pgrecall_internal._check_reembedding(searched);
    searched := pgrecall_internal._as_next(searched);
    request.bank := searched;
  end if;

  foreach searched_type in array pgrecall_internal._fact_types(bank, null) loop
    result := (searched_type, null, 0, 0, 0, 0);
    -- A fixed sample, so that settings can be compared.
    for question in
      select e.embedding from pgrecall.embedding e
      where  e.bank_id = recall_check.bank and e.fact_type = searched_type
        and  e.model = coalesce(searched.embedding_model, '')
      order  by hashint8extended(e.memory_id, 0), e.kind, e.ordinal
      limit  sample
    loop
      request.fact_types := array[searched_type];
      request.depth := depth;
      started_at := clock_timestamp();
      indexed := pgrecall_internal._semantic_search(request, question);
      found_at := clock_timestamp();
      request.depth := k;
      exact := pgrecall_internal._semantic_search(
        request, question, is_exact => true);
      result.milliseconds :=
        result.milliseconds + extract(epoch from found_at - started_at) * 1000;
      result.exact_milliseconds :=
        result.exact_milliseconds + extract(epoch from clock_timestamp() - found_at) * 1000;
      -- A vector at the same distance as the farthest of the k nearest counts as one of them.
      result.recall := result.recall + (
        select least(1, count(*)::double precision / cardinality(exact.scores))
        from   unnest(indexed.scores[1:k]) as s
        where  s >= exact.scores[cardinality(exact.scores)] - 1e-6);
      result.path := indexed.note;
      result.questions := result.questions + 1;
    end loop;
    continue when result.questions = 0;
    result.recall := result.recall / result.questions;
    result.milliseconds := result.milliseconds / result.questions;
    result.exact_milliseconds := result.exact_milliseconds / result.questions;
    return next result;
  end loop;
end;
$$;
comment on function pgrecall.recall_check is
'What share of the k nearest vectors the semantic arm finds (recall, 0 to 1), per fact type: it '
'searches with a fixed sample of vectors of the bank and compares with exact search. path: the '
'index used, or that the search was exact. milliseconds is the mean of one search to this depth, '
'exact_milliseconds of an exact one for k. Low recall: raise ef_search, or hnsw_m and '
'hnsw_ef_construction, and run what index_plan() returns. is_next checks the vectors of the model '
'that the bank is being re-embedded with. Errors: RC001, 22023, with is_next those of '
'reembed_pending().';
