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

create or replace function pgrecall._semantic(
  searched pgrecall.bank, embedding halfvec, fact_types text[], filter jsonb, as_of timestamptz,
  depth integer)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql volatile parallel unsafe rows 100
set search_path from current
set jit = off
set hnsw.ef_search = 100
set hnsw.iterative_scan = relaxed_order
as $$
declare
  nearest  text;
  fetched  bigint := greatest(100, 5 * depth);
  ids      bigint[];
  scores   double precision[];
  is_crowded boolean;
begin
  if searched.embedding_dimensions is null then
    return;
  end if;
  perform set_config('hnsw.ef_search', least(1000, greatest(100, fetched))::text, true);

  -- The cast is that of the partial HNSW indexes, whose dimensions are the bank's. Without a filter
  -- the few memories no longer held true are left out after the search, which is quicker.
  nearest := format(
    $sql$
      select n.memory_id, 1 - n.distance as score, {fact_type} as fact_type, %4$s as is_visible
      from (
        select e.memory_id, e.embedding::halfvec(%1$s) <=> $5::halfvec(%1$s) as distance
        from   pgrecall.embedding e %2$s
        where  e.bank_id = $1 and e.fact_type = {fact_type} and e.model = $6 %3$s
        order  by e.embedding::halfvec(%1$s) <=> $5::halfvec(%1$s)
        limit  $7
      ) as n %5$s
      where  n.distance <= 1 - $8
    $sql$,
    searched.embedding_dimensions,
    case when filter is not null
      then 'join pgrecall.memory m on m.bank_id = $1 and m.memory_id = e.memory_id' end,
    case when filter is not null then 'and ' || pgrecall._visible_sql(filter) end,
    case when filter is null then 'm.memory_id is not null' else 'true' end,
    case when filter is null
      then 'left join pgrecall.memory m on m.bank_id = $1 and m.memory_id = n.memory_id and '
           || pgrecall._visible_sql(null) end
  );
  loop
    execute format(
      $sql$
        with found as (%s),
        best as (
          select f.memory_id, max(f.score) as score
          from   found f
          where  f.is_visible
          group  by f.memory_id
          order  by 2 desc, 1 desc
          limit  $4
        )
        select coalesce(array_agg(b.memory_id order by b.score desc, b.memory_id desc), '{}'),
               coalesce(array_agg(b.score order by b.score desc, b.memory_id desc), '{}'),
               exists (
                 select from found f
                 group  by f.fact_type
                 having count(*) = $7
                   and  count(distinct f.memory_id) filter (where f.is_visible) < $4
               )
        from   best b
      $sql$,
      pgrecall._union_all(nearest, fact_types)
    )
    into  ids, scores, is_crowded
    using searched.bank_id, as_of, filter, depth, embedding, coalesce(searched.embedding_model, ''),
          fetched, searched.similarity_floor::double precision;
    -- Memories no longer held true, or many questions of one, took the place of others.
    exit when not is_crowded;
    fetched := 10 * fetched;
  end loop;

  return query
  select u.id, u.n::integer, u.score
  from   unnest(ids, scores) with ordinality as u(id, score, n)
  order  by u.n;
end;
$$;
comment on function pgrecall._semantic(
  pgrecall.bank, halfvec, text[], jsonb, timestamptz, integer) is
'Worker of the semantic arms. The embedding was checked against this very row of the bank: were it '
'read again, the bank could have been given another model in between.';

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
'A memory with anticipated questions counts once, by its best vector. Errors: RC001, RC004, RC005, '
'RC006, RC008, RC011, 22023.';

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
