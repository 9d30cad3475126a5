-- The other backend of the lexical arm: the index of the extension pg_textsearch, for banks whose
-- setting lexical_backend asks for it, where the extension is installed.
--
-- Facts of such banks carry lexical_document, their lexemes as numbers that the bank assigns, so
-- that words, fields and languages are treated as in the arm. There is one index for all these
-- banks; lexical_index_plan() returns the statements that create and drop it. The arm itself
-- answers phrases, exclusions and messages, and all queries while the index is missing.
create or replace function pgrecall_internal._textsearch(
  request pgrecall_internal.request,
  out ids bigint[], out scores double precision[])
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- The index returns rows in order. A sort would score each row of the bank separately.
set enable_sort = off
as $$
declare
  extension_schema name := (
    select n.nspname
    from   pg_extension x join pg_namespace n on n.oid = x.extnamespace
    where  x.extname = 'pg_textsearch'
  );
begin
  if not exists (
    select from pg_index i
    where  i.indexrelid = to_regclass('pgrecall.memory_lexical_document_idx') and i.indisvalid
  ) then
    raise notice using
      message = format('bank "%s" is to be searched by pg_textsearch, and its index is missing',
                       (request.bank).bank_id),
      hint    = 'Until it is there, the arm answers by itself: '
                'select statement from pgrecall.lexical_index_plan();';
    return;
  end if;
  -- Its scores include the factor k1 + 1.
  execute format(
    $sql$
      select coalesce(array_agg(t.id order by t.score desc, t.id desc), '{}'),
             coalesce(array_agg(t.score order by t.score desc, t.id desc), '{}')
      from (
        select m.memory_id as id, -(m.lexical_document operator(%1$I.<@>) %2$s) / 2.2 as score
        from   pgrecall.memory m
        where  m.bank_id = $1 and m.fact_type = any ($5) and %3$s
        order  by m.lexical_document operator(%1$I.<@>) %2$s
        limit  $4
      ) as t
      where  t.score > 0
    $sql$,
    extension_schema,
    format('%I.to_bm25query($6, %L)', extension_schema, 'pgrecall.memory_lexical_document_idx'),
    request.visible_sql
  )
  into  ids, scores
  using (request.bank).bank_id, request.as_of, request.filter, request.depth, request.fact_types,
        (select string_agg(pgrecall_internal._document_word((request.bank).bank_id, d), ' ')
         from   unnest((request.memory_terms).dimensions) as d);
end;
$$;
comment on function pgrecall_internal._textsearch is
'The memories of a bank that the index of pg_textsearch finds by lexemes, and their BM25 scores. '
'Null, with a notice, where the index is missing.';

create or replace function pgrecall.lexical_index_plan()
returns setof pgrecall.index_statement
language plpgsql stable parallel safe rows 1
set search_path from current
as $$
declare
  is_valid  boolean := (
    select i.indisvalid from pg_index i
    where  i.indexrelid = to_regclass('pgrecall.memory_lexical_document_idx')
  );
  is_wanted boolean := exists (
    select b.bank_id from pgrecall.bank b where b.lexical_backend = 'pg_textsearch'
  );
begin
  if not is_valid or is_valid and not is_wanted then
    return query values (
      'drop index concurrently pgrecall.memory_lexical_document_idx;',
      case when is_wanted then 'it was not built to the end'
           else 'no bank is searched by pg_textsearch' end
    );
  end if;
  if is_wanted and is_valid is not true then
    return query values (
      'create index concurrently memory_lexical_document_idx on pgrecall.memory '
      'using bm25 (lexical_document) with (text_config = ''pg_catalog.simple'');',
      'a bank is to be searched by pg_textsearch'
    );
  end if;
end;
$$;
comment on function pgrecall.lexical_index_plan is
'Statements that are due for the index of the banks whose lexical_backend is pg_textsearch, in '
'order. Run them outside a transaction, as a role that sees all banks. There is one index for all '
'such banks: k1 and b are 1.2 and 0.75 for each, and BM25 counts with the number of facts and the '
'mean length of all of them together; dead versions of facts count until they are vacuumed. The '
'index must be built concurrently: otherwise pg_textsearch 1.0.0 misses facts that were updated in '
'place.';
