-- What searches and indexes of vectors have in common.
--
-- The name of an index is a hash of the bank, model and expression: searches look it up by name
-- (_hnsw_index()). Everybody may read the definitions of indexes, so a predicate compares hashes,
-- and searches repeat it word for word (_hnsw_scope()). The expressions here (_vector_key()) must
-- be identical in searches and in indexes, or PostgreSQL does not match them.
create or replace function pgrecall_internal._vector_key(
  bank pgrecall.bank, dimensions integer, vector text, prefix text default '')
returns text
language sql stable parallel safe
return case bank.vector_search
  when 'full' then format('%s::%shalfvec(%s)', vector, prefix, dimensions)
  when 'binary' then format('%sbinary_quantize(%s)::bit(%s)', prefix, vector, dimensions)
  else format('%1$ssubvector(%2$s, 1, %3$s)::%1$shalfvec(%3$s)', prefix, vector,
              least(bank.leading_dimensions, dimensions))
end;
comment on function pgrecall_internal._vector_key is
'SQL of the part of a vector that searches of a bank compare, by its vector_search: the expression '
'that its HNSW indexes are on. prefix goes before the names of types and functions of pgvector.';

create or replace function pgrecall_internal._hnsw_name(
  bank pgrecall.bank, model text, dimensions integer)
returns text
language sql stable parallel safe
return 'embedding_hnsw_' || left(encode(sha256(convert_to(jsonb_build_array(
  bank.bank_id, model, pgrecall_internal._vector_key(bank, dimensions, '')
)::text, 'UTF8')), 'hex'), 24);
comment on function pgrecall_internal._hnsw_name is
'Name of the HNSW index over the vectors of a bank and model: deterministic, and different for '
'another vector_search or number of dimensions.';

create or replace function pgrecall_internal._hnsw_scope(bank text, model text)
returns text
language sql stable parallel safe
return format('hashtextextended(bank_id, 0) = %s and hashtextextended(model, 0) = %s '
              'and fact_type <> ''''', bank, model);
comment on function pgrecall_internal._hnsw_scope is
'SQL of the predicate of an HNSW index over embedding. The arguments are SQL for two hashes: '
'constants in the statement that creates the index; in a search, expressions that planning folds '
'to these constants.';

create or replace function pgrecall_internal._hnsw_bytes(
  bank pgrecall.bank, dimensions integer, elements bigint)
returns bigint
language sql immutable parallel safe
-- The layout of pgvector's pages: an element has its vector and its neighbours, 2 m of them at the
-- lowest level and m at each of 1 / (m - 1) further levels on average.
return 8192 * ceil(elements / greatest(1, floor(8152 / (
  88 + case bank.vector_search when 'full' then 2 * dimensions
                               when 'binary' then dimensions / 8.0
                               else 2 * least(bank.leading_dimensions, dimensions) end
  + 6.0 * bank.hnsw_m * (2 + 1.0 / (bank.hnsw_m - 1))))))::bigint;
comment on function pgrecall_internal._hnsw_bytes is
'Estimated bytes of an HNSW index of so many vectors.';

create or replace function pgrecall_internal._hnsw_index(
  bank pgrecall.bank, out index_name text, out elements bigint)
language plpgsql stable parallel safe
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  id regclass;
begin
  index_name := pgrecall_internal._hnsw_name(
    bank, coalesce(bank.embedding_model, ''), bank.embedding_dimensions);
  id := to_regclass('pgrecall_internal.' || index_name);
  if id is null then
    index_name := null;
    return;
  end if;
  if (select x.indisvalid from pg_index x where x.indexrelid = id) then
    elements := pg_relation_size(id) * 1000
                / pgrecall_internal._hnsw_bytes(bank, bank.embedding_dimensions, 1000);
  else
    index_name := null;
  end if;
end;
$$;
comment on function pgrecall_internal._hnsw_index is
'The HNSW index of index_plan() over the vectors of a bank, where it is valid, else null. '
'elements: about how many it holds.';
