create or replace function pgrecall._vector_key(
  bank pgrecall.bank, dimensions integer, vector text, prefix text default '')
returns text
language sql immutable parallel safe
return case bank.vector_search
  when 'full' then format('%s::%shalfvec(%s)', vector, prefix, dimensions)
  when 'binary' then format('%sbinary_quantize(%s)::bit(%s)', prefix, vector, dimensions)
  else format('%1$ssubvector(%2$s, 1, %3$s)::%1$shalfvec(%3$s)', prefix, vector,
              least(bank.leading_dimensions, dimensions))
end;
comment on function pgrecall._vector_key(pgrecall.bank, integer, text, text) is
'SQL of what a bank''s searches compare of a vector, by its vector_search: the expression that its '
'HNSW indexes are on. prefix goes before the names of pgvector.';

create or replace function pgrecall._hnsw_name(
  bank pgrecall.bank, fact_type text, model text, dimensions integer)
returns text
language sql immutable parallel safe
return 'embedding_hnsw_' || left(encode(sha256(convert_to(jsonb_build_array(
  bank.bank_id, fact_type, model, pgrecall._vector_key(bank, dimensions, '')
)::text, 'UTF8')), 'hex'), 24);
comment on function pgrecall._hnsw_name(pgrecall.bank, text, text, integer) is
'Name of the HNSW index over the vectors of a bank, fact type and model: always the same, and '
'another one where vector_search or the dimensions differ.';

create or replace function pgrecall._hnsw_bytes(
  bank pgrecall.bank, dimensions integer, elements bigint)
returns bigint
language sql immutable parallel safe
-- Of pgvector's pages: an element with its vector, and its neighbours, 2 m of them at the lowest
-- level and m at each of 1 / (m - 1) more.
return 8192 * ceil(elements / greatest(1, floor(8152 / (
  88 + case bank.vector_search when 'full' then 2 * dimensions
                               when 'binary' then dimensions / 8.0
                               else 2 * least(bank.leading_dimensions, dimensions) end
  + 6.0 * bank.hnsw_m * (2 + 1.0 / (bank.hnsw_m - 1))))))::bigint;
comment on function pgrecall._hnsw_bytes(pgrecall.bank, integer, bigint) is
'About how large an HNSW index of so many vectors is.';

create or replace function pgrecall._indexed_types(
  bank pgrecall.bank, fact_types text[], out indexed text[], out bytes bigint)
language plpgsql stable parallel safe
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  select coalesce(array_agg(t.fact_type), '{}'), max(pg_relation_size(t.index_id))
  into   indexed, bytes
  from (
    select f.fact_type,
           to_regclass('pgrecall.' || pgrecall._hnsw_name(
             bank, f.fact_type, coalesce(bank.embedding_model, ''), bank.embedding_dimensions))
             as index_id
    from   unnest(fact_types) as f(fact_type)
  ) as t
  where  (select x.indisvalid from pg_index x where x.indexrelid = t.index_id);
end;
$$;
comment on function pgrecall._indexed_types(pgrecall.bank, text[]) is
'Those of the fact types whose vectors have a valid HNSW index, as index_plan() makes them, and '
'the size of the largest.';

create or replace function pgrecall._semantic_search(
  bank       pgrecall.bank,
  embedding  halfvec,
  fact_types text[],
  filter     jsonb,
  as_of      timestamptz,
  depth      integer,
  hnsw_types text[] default null,
  out memory_ids bigint[],
  out scores     double precision[],
  out note       text)
language plpgsql volatile parallel unsafe
set search_path from current
set jit = off
-- Each branch has one right path, which statistics, or that there are none, must not change.
set enable_seqscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
set hnsw.ef_search = 100
set hnsw.iterative_scan = relaxed_order
set hnsw.max_scan_tuples = 20000
as $$
declare
  model       text := coalesce(bank.embedding_model, '');
  floor       double precision := bank.similarity_floor;
  -- Of so many an index chooses; fetched are enough for those no longer held true to be trimmed.
  -- What passes a filter needs no trimming; what is to be ranked anew is fetched whole.
  candidates  integer := greatest(100, 5 * depth);
  fetched     bigint := case
    when bank.vector_search <> 'full' then candidates
    else greatest(100, case when filter is null then 2 * depth else depth end)
  end;
  elements    bigint;
  exact_types text[];
  short_types text[];
  exact       text;
  hnsw        text;
  found_ids   bigint[];
  distances   double precision[];
  found_types text[];
  horizon     double precision;
  visible     bigint[];
  looked_up   integer;
begin
  memory_ids := '{}';
  scores := '{}';
  if bank.embedding_dimensions is null then
    return;
  end if;
  if hnsw_types is null then
    select i.indexed, i.bytes * 1000 / pgrecall._hnsw_bytes(bank, bank.embedding_dimensions, 1000)
    into   hnsw_types, elements
    from   pgrecall._indexed_types(bank, fact_types) as i;
    -- A step through an index costs about what 20 comparisons one after the other cost.
    if elements < 20 * candidates then
      hnsw_types := '{}';
    end if;
  end if;
  if hnsw_types <> '{}' then
    perform set_config('hnsw.ef_search',
                       least(1000, greatest(bank.ef_search, candidates))::text, true),
            set_config('hnsw.max_scan_tuples',
                       greatest(candidates, least(20000, elements / 20))::text, true);
  end if;

  -- Nearest first by whole vectors. Without a filter the few memories no longer held true are left
  -- out afterwards; with one, memory comes first and lends its vectors.
  exact := case when filter is null then
    $sql$
      select e.memory_id, e.embedding <=> $5 as distance, {fact_type} as fact_type
      from   pgrecall.embedding e
      where  e.bank_id = $1 and e.fact_type = {fact_type} and e.model = $6
      order  by 2
      limit  $7
    $sql$
  else format(
    $sql$
      select m.memory_id, e.embedding <=> $5 as distance, {fact_type} as fact_type
      from   pgrecall.memory m
      cross  join lateral (
        select v.embedding from pgrecall.embedding v
        where  v.bank_id = $1 and v.memory_id = m.memory_id and v.model = $6
      ) as e
      where  m.bank_id = $1 and m.fact_type = {fact_type} and %s
      order  by 2
      limit  $7
    $sql$, pgrecall._visible_sql(filter))
  end;
  -- The order is that of the expression the index is on, whose dimensions are a constant; the whole
  -- vectors rank what it finds.
  hnsw := case when hnsw_types <> '{}' then format(
    $sql$
      select n.memory_id, n.embedding <=> $5 as distance, {fact_type} as fact_type
      from (
        select e.memory_id, e.embedding
        from   pgrecall.embedding e
        where  e.bank_id = $1 and e.fact_type = {fact_type} and e.model = $6 %4$s
        order  by %1$s %2$s %3$s
        limit  $7
      ) as n
    $sql$,
    pgrecall._vector_key(bank, bank.embedding_dimensions, 'e.embedding'),
    case bank.vector_search when 'binary' then '<~>' else '<=>' end,
    pgrecall._vector_key(bank, bank.embedding_dimensions, '$5'),
    case when filter is not null then format(
      'and (select true from pgrecall.memory m
            where m.bank_id = $1 and m.memory_id = e.memory_id and %s)',
      pgrecall._visible_sql(filter)) end
  ) end;
  loop
    exact_types := array(select t from unnest(fact_types) as t where t <> all (hnsw_types));
    execute format(
      'select array_agg(f.memory_id), array_agg(f.distance), array_agg(f.fact_type) from (%s) as f',
      concat_ws(E'\nunion all\n',
        case when exact_types <> '{}' then pgrecall._union_all(exact, exact_types) end,
        case when hnsw_types <> '{}' then pgrecall._union_all(hnsw, hnsw_types) end))
    into  found_ids, distances, found_types
    using bank.bank_id, as_of, filter, depth, embedding, model, fetched;

    -- Beyond its farthest a type may hold more, unless there were fewer than asked for. Where an
    -- index gave fewer, it gave up; what a filter lets pass needs no trimming.
    select max(t.score) filter (where t.count >= fetched),
           array_agg(t.fact_type) filter (
             where t.fact_type = any (hnsw_types) and t.score >= floor
               and t.count < case when _semantic_search.filter is null then fetched else depth end)
    into   horizon, short_types
    from (
      select f.fact_type, count(*), 1 - max(f.distance) as score
      from   unnest(found_types, distances) as f(fact_type, distance)
      group  by f.fact_type
    ) as t;
    short_types := short_types || array(
      select t from unnest(hnsw_types) as t where t <> all (coalesce(found_types, '{}'))
    );
    -- All that pass are compared then, unless the bank would rather have its answer soon.
    if elements <= bank.exact_limit and short_types <> '{}' then
      hnsw_types := array(select t from unnest(hnsw_types) as t where t <> all (short_types));
      continue;
    end if;

    select coalesce(array_agg(f.memory_id), '{}'), coalesce(array_agg(f.score), '{}')
    into   memory_ids, scores
    from (
      select u.memory_id, 1 - min(u.distance) as score
      from   unnest(found_ids, distances) as u(memory_id, distance)
      group  by u.memory_id
      having 1 - min(u.distance) >= floor
      order  by 2 desc, 1 desc
    ) as f;
    if filter is null then
      -- Those to be returned are looked up first; nearly always that is all there is to do.
      foreach looked_up in array array[depth, cardinality(memory_ids)] loop
        visible := array(
          select m.memory_id from pgrecall.memory m
          where  m.bank_id = bank.bank_id and m.memory_id = any (memory_ids[1:looked_up])
            and  m.valid_from <= as_of and (m.valid_to is null or m.valid_to > as_of)
        );
        exit when cardinality(visible) = least(looked_up, cardinality(memory_ids));
      end loop;
      if cardinality(visible) < least(depth, cardinality(memory_ids))
         or looked_up > depth
      then
        select coalesce(array_agg(u.id order by u.n), '{}'),
               coalesce(array_agg(u.score order by u.n), '{}')
        into   memory_ids, scores
        from   unnest(memory_ids, scores) with ordinality as u(id, score, n)
        where  u.id = any (visible);
      end if;
    end if;
    memory_ids := memory_ids[1:depth];
    scores := scores[1:depth];
    -- Memories no longer held true, or many questions of one, took the place of others.
    exit when horizon is null or horizon <= coalesce(scores[depth], floor);
    fetched := 10 * fetched;
  end loop;

  note := concat_ws('; ',
    (select string_agg(format('%s by %s', t, pgrecall._hnsw_name(
       bank, t, model, bank.embedding_dimensions)), ', ') from unnest(hnsw_types) as t),
    'exactly ' || nullif(array_to_string(exact_types, ', '), ''),
    'short of ' || nullif(array_to_string(short_types, ', '), ''));
  if short_types <> '{}' then
    raise warning using
      errcode = '01RC2',
      message = format('the search of bank "%s" gave up before it had enough of %s', bank.bank_id,
                       array_to_string(short_types, ', ')),
      hint    = format('To compare all that pass the filter: select pgrecall.configure_bank(%L, '
                       '''{"exact_limit": %s}'');', bank.bank_id, 2 * elements);
  end if;
end;
$$;
comment on function pgrecall._semantic_search(
  pgrecall.bank, halfvec, text[], jsonb, timestamptz, integer, text[]) is
'What the semantic arms find, nearest first, and in note by which way. hnsw_types are those to '
'search by their index; null: where there is one and it pays. Warning 01RC2: an index gave up '
'before it had found enough that passes the filter.';

create or replace function pgrecall._semantic(
  bank pgrecall.bank, embedding halfvec, fact_types text[], filter jsonb, as_of timestamptz,
  depth integer)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
declare
  search record;
begin
  search := pgrecall._semantic_search(bank, embedding, fact_types, filter, as_of, depth);
  -- For the report of the recall, in which arms return nothing but what they find.
  perform set_config('pgrecall.note', coalesce(search.note, ''), true);
  return query
  select u.id, u.n::integer, u.score
  from   unnest(search.memory_ids, search.scores) with ordinality as u(id, score, n)
  order  by u.n;
end;
$$;
comment on function pgrecall._semantic(
  pgrecall.bank, halfvec, text[], jsonb, timestamptz, integer) is
'Worker of the semantic arms; its arguments are checked, the embedding against this very row of '
'the bank, which may be given another model meanwhile. Leaves in the setting pgrecall.note of the '
'transaction which way it went.';

create or replace function pgrecall.semantic_arm(
  bank       text,
  embedding  halfvec,
  fact_types text[] default null,
  filter     jsonb default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
declare
  searched pgrecall.bank := pgrecall._bank(bank);
begin
  perform pgrecall._check_embedding(searched, 'embedding', embedding, model);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  if embedding is null then
    return;
  end if;
  return query
  select * from pgrecall._semantic(searched, embedding, pgrecall._fact_types(bank, fact_types),
                                   filter, as_of, depth);
end;
$$;
comment on function pgrecall.semantic_arm(
  text, halfvec, text[], jsonb, timestamptz, integer, text) is
'Memories nearest in meaning. score is the cosine similarity, -1 to 1, not below the bank''s '
'similarity_floor. '
'A memory with anticipated questions counts once, by its best vector. A fact type with an index, '
'see index_plan(), is searched by it where that is quicker; warning 01RC2 says that it gave up '
'before it had found enough that passes the filter. Errors: RC001, RC004, RC005, RC006, RC008, '
'RC011, 22023.';

create or replace function pgrecall.hypothetical_arm(
  bank       text,
  embedding  halfvec,
  fact_types text[] default null,
  filter     jsonb default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select * from pgrecall.semantic_arm(bank, embedding, fact_types, filter, as_of, depth, model);
end;
$$;
comment on function pgrecall.hypothetical_arm(
  text, halfvec, text[], jsonb, timestamptz, integer, text) is
'The semantic arm for the embedding of a made-up answer (HyDE, Gao et al. 2022). Errors: as '
'semantic_arm().';
