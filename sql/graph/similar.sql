-- The facts nearest in meaning to given ones: similar facts of neighbours() and neighbourhood(),
-- and what consolidate() compares.
--
-- They are searched for on request. As stored links they cost more than everything else that is
-- written for a fact, and a recall does not follow them (bench/TRIED.md).
create or replace function pgrecall_internal._similar_memories(
  bank pgrecall.bank, memory_ids bigint[], min_similarity double precision,
  most integer default 5, among bigint[] default null)
returns table (from_id bigint, to_id bigint, similarity double precision)
language plpgsql stable parallel unsafe rows 5
set search_path from current
set jit = off
-- Each branch has one right plan, which must not depend on statistics.
set enable_seqscan = off
set enable_sort = off
set hnsw.ef_search = 40
set hnsw.iterative_scan = relaxed_order
as $$
declare
  is_indexed boolean;
begin
  if bank.embedding_dimensions is null or memory_ids = '{}' then
    return;
  end if;
  is_indexed := (pgrecall_internal._hnsw_index(bank)).index_name is not null;
  -- An index over whole vectors returns the nearest in order. An index over signs or leading
  -- elements yields 50 candidates, compared again by their whole vectors. PostgreSQL uses a partial
  -- index only where the statement contains its constants and its expression literally.
  if bank.vector_search <> 'full' then
    perform set_config('hnsw.ef_search', '100', true);
  end if;
  return query execute format(
    $sql$
      select v.memory_id, n.memory_id, least(n.similarity, 1)
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
        limit  $7
      ) as n
      where  v.memory_id = f.memory_id and n.similarity >= $6
    $sql$,
    case when is_indexed then format(
      $sql$
        select x.memory_id, x.embedding <=> v.embedding as distance
        from (
          select e.memory_id, e.embedding
          from   pgrecall.embedding e
          where  e.bank_id = $1 and e.model = $3 and e.kind = 'text'
            and  e.memory_id <> v.memory_id and %s
            and  ($8 is null or e.memory_id = any ($8))
          order  by %s %s %s
          limit  %s
        ) as x
      $sql$,
      pgrecall_internal._hnsw_scope('hashtextextended($1, 0)', 'hashtextextended($3, 0)'),
      pgrecall_internal._vector_key(bank, bank.embedding_dimensions, 'e.embedding'),
      case bank.vector_search when 'binary' then '<~>' else '<=>' end,
      pgrecall_internal._vector_key(bank, bank.embedding_dimensions, 'v.embedding'),
      case bank.vector_search when 'full' then most else greatest(50, most) end)
    else
      pgrecall_internal._union_all(
        $sql$
          select e.memory_id, e.embedding <=> v.embedding as distance
          from   pgrecall.embedding e
          where  e.bank_id = $1 and e.fact_type = {fact_type} and e.model = $3
            and  e.kind = 'text' and e.memory_id <> v.memory_id
            and  ($8 is null or e.memory_id = any ($8))
          order  by 2
          limit  $7
        $sql$, pgrecall_internal._fact_types(bank.bank_id, null))
    end
  )
  using bank.bank_id, memory_ids, coalesce(bank.embedding_model, ''), bank.low_cosine,
        bank.high_cosine, min_similarity, most, among;
end;
$$;
comment on function pgrecall_internal._similar_memories is
'The most memories that are most similar to each memory, from min_similarity on: by HNSW index '
'where there is one, else exactly. among: only these are searched for.';
