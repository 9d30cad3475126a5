create or replace function pgrecall._hnsw_state(bank pgrecall.bank, index_name text)
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
    where  c.relnamespace = 'pgrecall'::regnamespace and c.relname = index_name
  );
end;
$$;
comment on function pgrecall._hnsw_state(pgrecall.bank, text) is
'building, invalid, ready, or other: built with another m or ef_construction than the bank wants. '
'Null: there is none.';

create or replace function pgrecall._hnsw_seconds(
  bank pgrecall.bank, dimensions integer, elements bigint)
returns double precision
language sql immutable parallel safe
return elements * ln(elements + 1) / 1e6 * bank.hnsw_ef_construction / 64
       * (9 + 0.03 * dimensions * case bank.vector_search when 'binary' then 0.1 else 1 end);
comment on function pgrecall._hnsw_seconds(pgrecall.bank, integer, bigint) is
'About how long an HNSW index of so many vectors takes to build on one core, in '
'maintenance_work_mem that holds it.';

create or replace function pgrecall.index_plan(bank text default null)
returns table (
  bank_id text, fact_type text, action text, statement text, reason text, index_name text,
  estimated_bytes bigint, estimated_seconds double precision)
language plpgsql stable parallel unsafe rows 10
set search_path from current
-- Look-ups in the order of an index, whatever the statistics say or do not say.
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
  prefix   text := (select format('%I.', n.nspname)
                    from   pg_type t join pg_namespace n on n.oid = t.typnamespace
                    where  t.oid = 'halfvec'::regtype);
  searched pgrecall.bank;
  held     record;
  existing record;
  owner    text[];
  kept     text[] := '{}';
  state    text;
  fresh    text;
  name     text;
  key      text;
  elements bigint;
  is_due   boolean;
  is_built boolean;
begin
  if bank is not null then
    perform pgrecall._bank(bank);
  end if;
  for searched in
    select b.* from pgrecall.bank b
    where  index_plan.bank is null or b.bank_id = index_plan.bank
    order  by b.bank_id
  loop
    -- From one pair of fact type and model to the next; of a large one no more is counted than
    -- tells whether an index is due.
    for held in
      with recursive pair as (
        (select e.fact_type, e.model, e.tableoid as partition,
                vector_dims(e.embedding) as dimensions
         from   pgrecall.embedding e
         where  e.bank_id = searched.bank_id
         order  by e.fact_type, e.model
         limit  1)
        union all
        select n.*
        from   pair p
        cross  join lateral (
          select e.fact_type, e.model, e.tableoid, vector_dims(e.embedding)
          from   pgrecall.embedding e
          where  e.bank_id = searched.bank_id
            and  (e.fact_type, e.model) > (p.fact_type, p.model)
          order  by e.fact_type, e.model
          limit  1
        ) as n
      )
      select p.*, c.count
      from   pair p
      cross  join lateral (
        select count(*) from (
          select from pgrecall.embedding e
          where  e.bank_id = searched.bank_id and e.fact_type = p.fact_type and e.model = p.model
          limit  searched.hnsw_threshold
        ) as counted
      ) as c
      where  c.count >= searched.hnsw_threshold / 2.0
        -- Its own model, and the one that is to replace it: what others left behind is cleaned.
        and  p.model in (coalesce(searched.embedding_model, ''), searched.next_model)
    loop
      key   := pgrecall._vector_key(searched, held.dimensions, 'embedding', prefix);
      name  := pgrecall._hnsw_name(searched, held.fact_type, held.model, held.dimensions);
      kept  := kept || array[name, name || '_new'];
      state := pgrecall._hnsw_state(searched, name);
      fresh := pgrecall._hnsw_state(searched, name || '_new');
      continue when state = 'building' or fresh = 'building';
      is_due   := coalesce(state, '') in ('ready', 'other')
                  or held.count >= searched.hnsw_threshold;
      is_built := is_due and state is distinct from 'ready' and coalesce(fresh, '') = 'ready';
      elements := held.count;
      if is_due and state is distinct from 'ready' then
        select count(*) into elements
        from   pgrecall.embedding e
        where  e.bank_id = searched.bank_id and e.fact_type = held.fact_type
          and  e.model = held.model;
      end if;

      -- An index with other settings serves until its successor is there to take its name.
      return query
      select searched.bank_id, held.fact_type, s.action, s.statement,
             case
               when state = 'other' then format(
                 'hnsw_m or hnsw_ef_construction changed, now %s and %s',
                 searched.hnsw_m, searched.hnsw_ef_construction)
               when state = 'invalid' or fresh = 'invalid' then 'a build was interrupted'
               when is_due then format('%s vectors, hnsw_threshold is %s', elements,
                                       searched.hnsw_threshold)
               else format('%s vectors are fewer than hnsw_threshold %s', elements,
                           searched.hnsw_threshold)
             end,
             s.index_name,
             case s.action when 'create' then
               pgrecall._hnsw_bytes(searched, held.dimensions, elements) end,
             case s.action when 'create' then
               pgrecall._hnsw_seconds(searched, held.dimensions, elements) end
      from (
        values
          (1, fresh is not null and not is_built, 'drop', name || '_new',
           format('drop index concurrently pgrecall.%I', name || '_new')),
          (2, state = 'invalid', 'drop', name,
           format('drop index concurrently pgrecall.%I', name)),
          (3, is_due and state is distinct from 'ready' and not is_built, 'create',
           case state when 'other' then name || '_new' else name end,
           -- On the partition: PostgreSQL builds none concurrently on a partitioned table.
           format('create index concurrently %I on %s using hnsw ((%s) %s) '
                  'with (m = %s, ef_construction = %s) '
                  'where bank_id = %L and fact_type = %L and model = %L',
                  case state when 'other' then name || '_new' else name end,
                  (select format('pgrecall.%I', c.relname) from pg_class c
                   where c.oid = held.partition),
                  key,
                  prefix || case searched.vector_search
                              when 'binary' then 'bit_hamming_ops' else 'halfvec_cosine_ops' end,
                  searched.hnsw_m, searched.hnsw_ef_construction,
                  searched.bank_id, held.fact_type, held.model)),
          (4, is_due and state = 'other', 'drop', name,
           format('drop index concurrently pgrecall.%I', name)),
          (5, is_built or (is_due and state = 'other'), 'rename', name,
           format('alter index pgrecall.%I rename to %I', name || '_new', name))
      ) as s(n, is_wanted, action, index_name, statement)
      where  s.is_wanted
      order  by s.n;
    end loop;
  end loop;

  -- What is left serves nobody: the bank is gone, its vectors are few or of another model, or it
  -- searches in another way.
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
    owner := array(
      select replace(v.value[1], '''''', '''')
      from   regexp_matches(existing.predicate, '= ''((?:[^'']|'''')*)''::text', 'g')
               with ordinality as v(value, n)
      order  by v.n
    );
    continue when owner[1] <> bank;
    select b.* into searched from pgrecall.bank b where b.bank_id = owner[1];
    -- A bank that row security hides is not gone.
    continue when not found and row_security_active('pgrecall.bank');
    bank_id           := owner[1];
    fact_type         := owner[2];
    action            := 'drop';
    statement         := format('drop index concurrently pgrecall.%I', existing.relname);
    index_name        := existing.relname;
    estimated_bytes   := null;
    estimated_seconds := null;
    select count(*) into elements from (
      select from pgrecall.embedding e
      where  e.bank_id = owner[1] and e.fact_type = owner[2] and e.model = owner[3]
      limit  searched.hnsw_threshold
    ) as counted;
    reason := case
      when searched.bank_id is null then 'the bank is gone'
      when owner[3] <> coalesce(searched.embedding_model, '')
           and owner[3] is distinct from searched.next_model then format(
        'the bank is embedded with model "%s" now, not "%s"',
        coalesce(searched.embedding_model, ''), owner[3])
      when elements < searched.hnsw_threshold / 2.0 then format(
        '%s vectors are fewer than half of hnsw_threshold %s', elements, searched.hnsw_threshold)
      else 'the bank searches in another way now'
    end;
    return next;
  end loop;
end;
$$;
comment on function pgrecall.index_plan(text) is
'Statements that create and drop HNSW indexes, due now, in the order to run them; all banks where '
'none is given. It runs none itself; in psql: select statement from pgrecall.index_plan() \gexec. '
'Each runs outside a transaction block and keeps the bank usable meanwhile. An index is due from '
'hnsw_threshold vectors of one fact type and model on, until they are fewer than half; anew when '
'hnsw_m, hnsw_ef_construction or vector_search changed or a build was interrupted. On the '
'partition of the bank, for PostgreSQL cannot build one concurrently on embedding itself. '
'estimated_bytes is its size, what maintenance_work_mem should hold; estimated_seconds on one '
'core. Errors: RC001.';

create or replace function pgrecall.recall_check(
  bank text, sample integer default 100, k integer default 20, depth integer default 100,
  is_next boolean default false)
returns table (
  fact_type text, path text, questions integer, recall double precision, milliseconds real,
  exact_milliseconds real)
language plpgsql volatile parallel unsafe rows 3
set search_path from current
as $$
declare
  searched pgrecall.bank := pgrecall._bank(bank);
  question halfvec;
  found    record;
  exact    record;
  began    timestamptz;
  between_at timestamptz;
begin
  perform pgrecall._check_range('sample', sample, 1, 10000);
  perform pgrecall._check_range('k', k, 1, 1000);
  perform pgrecall._check_range('depth', depth, k, 10000);
  searched.similarity_floor := -1;
  if is_next then
    perform pgrecall._check_reembedding(searched);
    searched.embedding_model := searched.next_model;
    searched.embedding_dimensions := searched.next_dimensions;
  end if;

  foreach fact_type in array pgrecall._fact_types(bank, null) loop
    path := null;
    questions := 0;
    recall := 0;
    milliseconds := 0;
    exact_milliseconds := 0;
    -- Always the same ones, so that two settings can be told apart.
    for question in
      select e.embedding from pgrecall.embedding e
      where  e.bank_id = recall_check.bank and e.fact_type = recall_check.fact_type
        and  e.model = coalesce(searched.embedding_model, '')
      order  by hashint8extended(e.memory_id, 0), e.kind, e.ordinal
      limit  sample
    loop
      began := clock_timestamp();
      found := pgrecall._semantic_search(
        searched, question, array[fact_type], null, now(), depth);
      between_at := clock_timestamp();
      exact := pgrecall._semantic_search(
        searched, question, array[fact_type], null, now(), k, '{}');
      milliseconds := milliseconds + extract(epoch from between_at - began) * 1000;
      exact_milliseconds :=
        exact_milliseconds + extract(epoch from clock_timestamp() - between_at) * 1000;
      -- What is as near as the farthest of the exact ones is as good.
      recall := recall + (
        select least(1, count(*)::double precision / cardinality(exact.scores))
        from   unnest(found.scores[1:k]) as s
        where  s >= exact.scores[cardinality(exact.scores)] - 1e-6);
      path := found.note;
      questions := questions + 1;
    end loop;
    continue when questions = 0;
    recall := recall / questions;
    milliseconds := milliseconds / questions;
    exact_milliseconds := exact_milliseconds / questions;
    return next;
  end loop;
end;
$$;
comment on function pgrecall.recall_check(text, integer, integer, integer, boolean) is
'What the semantic arm finds of the k nearest (recall, 0 to 1), per fact type: it asks by vectors '
'of the bank itself, sample of them and always the same, and compares with exact search. path '
'names the index that answered, or says that the search was exact; milliseconds are the mean of '
'one search to this depth, and of an exact one for k. Low recall: raise ef_search, or hnsw_m and '
'hnsw_ef_construction, and do what index_plan() says. is_next asks the vectors of the model that '
'the bank is being re-embedded with. Errors: RC001, 22023, with is_next those of '
'reembed_pending().';
