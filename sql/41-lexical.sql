create or replace function pgrecall._query_lexemes(
  bank pgrecall.bank, kind text, query text,
  out dimensions integer[], out idfs double precision[], out counts bigint[])
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  documents bigint;
begin
  select s.document_count into documents
  from   pgrecall.statistics s
  where  s.bank_id = bank.bank_id and s.kind = _query_lexemes.kind;

  -- Rarest first; a lexeme without statistics counts as rare.
  select array_agg(t.dimension order by t.count, t.dimension),
         array_agg(t.idf order by t.count, t.dimension),
         array_agg(t.count order by t.count, t.dimension)
  into   dimensions, idfs, counts
  from (
    select pgrecall._dimension(q.lexeme) as dimension,
           coalesce(l.document_count, 0)::bigint as count,
           ln(1 + (greatest(documents, l.document_count, 1) - coalesce(l.document_count, 0) + 0.5)
                  / (coalesce(l.document_count, 0) + 0.5)) as idf
    from   pgrecall.lexemes(bank.text_search_config::regconfig, query) as q
    left   join pgrecall.lexeme l
           on l.bank_id = bank.bank_id and l.kind = _query_lexemes.kind and l.lexeme = q.lexeme
  ) as t;
end;
$$;
comment on function pgrecall._query_lexemes(pgrecall.bank, text, text) is
'The lexemes of a query, rarest first: dimension, IDF ln(1 + (N - n + 0.5) / (n + 0.5)) as in '
'Lucene, and n.';

create or replace function pgrecall._scoped_keys(
  bank_id text, fact_type text, dimensions integer[])
returns bigint[]
language sql immutable parallel safe
return array(
  select hashint8extended(d::bigint, pgrecall._scope(_scoped_keys.bank_id, _scoped_keys.fact_type))
  from   unnest(dimensions) as d
);
comment on function pgrecall._scoped_keys(text, text, integer[]) is
'Keys of lexemes in the lexical index, as _lexical_keys() makes them of a document.';

create or replace function pgrecall._lexical_search(
  bank pgrecall.bank, kind text, query text, fact_types text[], filter jsonb, as_of timestamptz,
  depth integer)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
set jit = off
as $$
declare
  q           record;
  candidates  integer[] := '{}';
  total       bigint := 0;
  ids         bigint[];
  scores      double precision[];
  branch      text;
begin
  q := pgrecall._query_lexemes(bank, kind, query);
  -- Rarest words first until they bring enough candidates; the others only add to the score.
  for i in 1 .. coalesce(cardinality(q.dimensions), 0) loop
    exit when i > 1 and total + q.counts[i] > bank.candidate_limit;
    candidates := candidates || q.dimensions[i];
    total := total + q.counts[i];
  end loop;
  if cardinality(candidates) = 0 then
    return;
  end if;

  -- The keys are those of one bank and type, so their index alone finds the candidates. A collation
  -- other than the column's, and "is not distinct from", keep the planner, which knows nothing of a
  -- fresh table, from an index that begins with the bank and would make it compute every key anew.
  branch := case kind
    when 'memory' then
      $sql$
        select m.memory_id as id, -(m.lexical_weights <#> $6) as score
        from   pgrecall.memory m
        where  m.bank_id collate "C" = $1 and m.fact_type is not distinct from {fact_type}
          and  pgrecall._lexical_keys(m.bank_id, m.fact_type, m.lexical_weights)
               && pgrecall._scoped_keys($1, {fact_type}, $5)
          and  $sql$ || pgrecall._visible_sql(filter)
    else
      $sql$
        select m.message_id as id, -(m.lexical_weights <#> $6) as score
        from   pgrecall.message m
        where  m.bank_id collate "C" = $1 and m.sent_at <= $2
          and  pgrecall._lexical_keys(m.bank_id, 'message', m.lexical_weights)
               && pgrecall._scoped_keys($1, {fact_type}, $5)
      $sql$
  end || ' order by m.lexical_weights <#> $6 limit $4';
  execute format(
    $sql$
      select coalesce(array_agg(t.id order by t.score desc, t.id desc), '{}'),
             coalesce(array_agg(t.score order by t.score desc, t.id desc), '{}')
      from   (select u.* from (%s) as u order by u.score desc, u.id desc limit $4) as t
      where  t.score > 0
    $sql$,
    pgrecall._union_all(branch, fact_types)
  )
  into  ids, scores
  using bank.bank_id, as_of, filter, depth, candidates,
        pgrecall._to_sparsevec(q.dimensions, q.idfs);

  return query
  select u.id, u.n::integer, u.score
  from   unnest(ids, scores) with ordinality as u(id, score, n)
  order  by u.n;
end;
$$;
comment on function pgrecall._lexical_search(
  pgrecall.bank, text, text, text[], jsonb, timestamptz, integer) is
'Worker of the lexical and the message arm; its arguments are checked.';

create or replace function pgrecall.lexical_arm(
  bank       text,
  query      text,
  fact_types text[] default null,
  filter     jsonb default null,
  as_of      timestamptz default now(),
  depth      integer default 100)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
as $$
declare
  searched pgrecall.bank := pgrecall._bank(bank);
begin
  perform pgrecall._check_text('query', query);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  return query
  select * from pgrecall._lexical_search(
    searched, 'memory', query, pgrecall._fact_types(bank, fact_types), filter, as_of, depth);
end;
$$;
comment on function pgrecall.lexical_arm(text, text, text[], jsonb, timestamptz, integer) is
'Memories that share words with the query. score is BM25 (Robertson and Zaragoza 2009, IDF as in '
'Lucene), above 0. '
'At most candidate_limit memories per fact type are scored, those with the rarest words. Errors: '
'RC001, RC008, RC011, 22023.';

create or replace function pgrecall.message_arm(
  bank text, query text, as_of timestamptz default now(), depth integer default 100)
returns table (message_id bigint, rank integer, score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
as $$
declare
  searched pgrecall.bank := pgrecall._bank(bank);
begin
  perform pgrecall._check_text('query', query);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  return query
  select * from pgrecall._lexical_search(
    searched, 'message', query, array['message'], null, as_of, depth);
end;
$$;
comment on function pgrecall.message_arm(text, text, timestamptz, integer) is
'Raw messages that share words with the query, sent by as_of. score is BM25, above 0. Errors: '
'RC001, 22023.';
