-- The lexical arm: memories that share words with the query, ranked by true BM25.
--
-- Each memory stores the BM25 weights of its lexemes as a sparse vector. A GIN index on lexemes,
-- hashed with bank and fact type, finds candidates by the rarest words and sets of words
-- (request/term.sql), and one inner product with the IDFs of the query ranks them. Phrases must
-- occur in the text, excluded words must not (values/phrase.sql). The message arm uses the same
-- search over raw messages. A bank may use pg_textsearch for its memories instead
-- (arms/textsearch.sql).
create or replace function pgrecall_internal._lexical_search(
  request pgrecall_internal.request, kind text, terms pgrecall_internal.terms,
  out memory_ids bigint[], out scores double precision[])
language plpgsql stable parallel safe
set search_path from current
-- The weights of the query become a vector as text.
set extra_float_digits = 1
set jit = off
-- To start a parallel worker takes longer than its work.
set max_parallel_workers_per_gather = 0
-- The cached plan must use the index of keys, even if it was made while the table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  bank     pgrecall.bank := request.bank;
  depth    integer := request.depth;
  limits   integer := (request.options ->> 'candidate_limit')::integer;
  config   regconfig := bank.text_search_config::regconfig;
  weights  sparsevec := (
    select v from pgrecall_internal._to_sparsevec(terms.dimensions, terms.idfs) as v);
  has_phrase boolean := request.phrases <> '{}' or request.excluded <> '{}';
  chosen   record;
  part     integer;
  required integer[];
  matches  text;
  ids      bigint[];
  doubtful bigint[];
  is_built boolean := true;
  checked  bigint[];
  branch   text;
begin
  if terms.dimensions is null then
    return;
  end if;
  -- The other backend supports neither phrases nor messages.
  if kind = 'memory' and bank.lexical_backend = 'pg_textsearch' and not has_phrase then
    select t.ids, t.scores into ids, scores
    from   pgrecall_internal._textsearch(request) as t;
  end if;
  if ids is null then
    if request.phrases <> '{}' then
      -- Candidates have all words of the phrases, and all parts of their identifiers. A single
      -- letter of a script without spaces is not indexed inside a word, nor are two of Thai.
      required := array(
        select distinct pgrecall_internal._dimension(l.lexeme)
        from   unnest(request.phrases) as p,
               pgrecall.lexemes(config, regexp_replace(
                 p, '[' || pgrecall_internal._joints() || ']+', ' ', 'g')) as l
        where  l.lexeme !~ ('^(?:[' || pgrecall_internal._cjk() || ']|['
                            || pgrecall_internal._syllabic() || ']{1,2})$')
      );
    end if;
    -- A quarter of the limit finds nearly all of the best. The whole limit follows where that
    -- yields too few.
    foreach part in array array[limits / 4, limits] loop
      if required <> '{}' then
        matches := format(
          '{keys} @> pgrecall_internal._scoped_keys($1, {fact_type}, %L)', required);
      else
        chosen := pgrecall_internal._candidates(
          terms.dimensions, terms.idfs, terms.counts, terms.documents, part);
        continue when chosen.singles = '{}' and chosen.sets = '{}' and part < limits;
        if chosen.sets = '{}' and chosen.singles = terms.dimensions
           and request.filter is null and not has_phrase
        then
          -- The usual search of a bank that is not large: a static statement, planned once a
          -- session. One scan reads all types.
          select array_agg(t.id order by t.score desc, t.id desc),
                 array_agg(t.score order by t.score desc, t.id desc),
                 array_agg(t.id) filter (
                   where terms.is_shared or t.id > coalesce(terms.watermark, 0))
          into   ids, scores, doubtful
          from (
            select m.memory_id as id, -(m.lexical_weights <#> weights) as score
            from   pgrecall.memory m
            where  kind = 'memory' and m.bank_id collate "C" = bank.bank_id
              and  array_position(request.fact_types, m.fact_type) is not null
              and  m.valid_from <= request.as_of
              and  (m.valid_to is null or m.valid_to > request.as_of)
              and  pgrecall_internal._lexical_keys(m.bank_id, m.fact_type, m.lexical_weights)
                   && array(
                     -- The same as _scoped_keys(), which would be called for each type.
                     select hashint8extended(
                              d::bigint, pgrecall_internal._scope(bank.bank_id, f.fact_type))
                     from   unnest(request.fact_types) as f(fact_type), unnest(chosen.singles) as d)
            union all
            select m.message_id,
                   -(m.lexical_weights <#> weights)
                   * pgrecall_internal._nearness(m.sent_at, request.during)
            from   pgrecall.message m
            where  kind = 'message' and m.bank_id collate "C" = bank.bank_id
              and  m.sent_at <= request.as_of
              and  pgrecall_internal._lexical_keys(m.bank_id, 'message', m.lexical_weights)
                   && array(
                     select hashint8extended(
                              d::bigint, pgrecall_internal._scope(bank.bank_id, 'message'))
                     from   unnest(chosen.singles) as d)
            order  by 2 desc, 1 desc
            limit  depth
          ) as t
          where  t.score > 0;
          is_built := false;
          exit;
        end if;
        -- Sets that differ only in the last word share a scan, which reads the posting lists of the
        -- other words once.
        select string_agg(c.condition, ' or ')
        into   matches
        from (
          select format('{keys} && pgrecall_internal._scoped_keys($1, {fact_type}, %L)',
                        case when chosen.singles = '{}' and chosen.sets = '{}'
                          then terms.dimensions[1:1] else chosen.singles end)
          where  chosen.singles <> '{}' or chosen.sets = '{}'
          union all
          select format('{keys} @> pgrecall_internal._scoped_keys($1, {fact_type}, %L) and '
                        '{keys} && pgrecall_internal._scoped_keys($1, {fact_type}, %L)',
                        trim_array(w.words, 1), array_agg(w.words[cardinality(w.words)]))
          from   (select s::integer[] from unnest(chosen.sets) as s) as w(words)
          group  by trim_array(w.words, 1)
        ) as c(condition);
      end if;
      -- Only generated names and numbers are written into the statement.
      matches := replace(matches, '{keys}', format(
        'pgrecall_internal._lexical_keys(m.bank_id, %s, m.lexical_weights)',
        case kind when 'memory' then 'm.fact_type' else quote_literal('message') end));

      -- The keys belong to one bank and type, so their index alone finds the candidates. Without
      -- statistics the planner might choose an index that begins with the bank and compute every
      -- key again; another collation and "is not distinct from" rule that index out.
      branch := case kind
        when 'memory' then
          $sql$
            select m.memory_id as id, -(m.lexical_weights <#> $5) as score {fields}
            from   pgrecall.memory m
            where  m.bank_id collate "C" = $1 and m.fact_type is not distinct from {fact_type}
              and  $sql$ || request.visible_sql
        else
          $sql$
            select m.message_id as id,
                   -(m.lexical_weights <#> $5) * pgrecall_internal._nearness(m.sent_at, $9) as score
                   {fields}
            from   pgrecall.message m
            where  m.bank_id collate "C" = $1 and m.sent_at <= $2
          $sql$
      end || format(' and (%s) order by 2 desc, 1 desc', matches);
      if not has_phrase then
        branch := replace(branch, '{fields}', '') || ' limit $4';
      else
        -- Phrases are checked in score order until there are enough hits.
        branch := format(
          'select c.id, c.score from (%s offset 0) as c '
          'where pgrecall_internal._matches_phrases($6, $7, $8, c.fields) limit $4',
          replace(branch, '{fields}', format(', array[%s] as fields', concat_ws(', ', 'm.text',
            case when kind = 'memory' and bank.context_weight > 0 then 'm.context' end,
            case when kind = 'memory' and bank.key_weight > 0 then 'm.fact_key' end))));
      end if;
      execute format(
        $sql$
          select coalesce(array_agg(t.id order by t.score desc, t.id desc), '{}'),
                 coalesce(array_agg(t.score order by t.score desc, t.id desc), '{}')
          from   (select u.* from (%s) as u order by u.score desc, u.id desc limit $4) as t
          where  t.score > 0
        $sql$,
        pgrecall_internal._union_all(
          branch, case kind when 'memory' then request.fact_types else '{message}' end)
      )
      into  ids, scores
      using bank.bank_id, request.as_of, request.filter, depth,
            weights, config,
            request.phrases, request.excluded, request.during;
      exit when required <> '{}' or cardinality(ids) >= depth;
      exit when cardinality(chosen.singles) = cardinality(terms.dimensions);
    end loop;
  end if;

  -- A score may stem from another lexeme of the same dimension. The text is rechecked where the
  -- bank has such a pair, and in documents that are not counted yet.
  if is_built then
    doubtful := array(
      select u from unnest(ids) as u where terms.is_shared or u > coalesce(terms.watermark, 0)
    );
  end if;
  if doubtful <> '{}' then
    checked := pgrecall_internal._recheck_lexemes(bank, kind, doubtful, request.lexemes);
    select array_agg(u.id order by u.n), array_agg(u.score order by u.n)
    into   ids, scores
    from   unnest(ids, scores) with ordinality as u(id, score, n)
    where  u.id <> all (doubtful) or u.id = any (checked);
  end if;
  memory_ids := coalesce(ids, '{}');
  scores := coalesce(scores, '{}');
end;
$$;
comment on function pgrecall_internal._lexical_search is
'Hits of the lexical arm (kind = memory) or of the message arm (kind = message), best first. It is '
'longer than 100 lines because its statement is built from the chosen candidates.';

create or replace function pgrecall_internal._has_word(
  request pgrecall_internal.request, kind text, terms pgrecall_internal.terms)
returns boolean
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  if terms.dimensions is null then
    return false;
  elsif 0 < any (terms.counts) then
    return true;
  end if;
  -- Documents that are not counted yet may hold any word.
  return coalesce(case kind when 'memory' then (
    select m.memory_id from pgrecall.memory m
    where  m.bank_id = (request.bank).bank_id
    order  by m.memory_id desc
    limit  1)
  else (
    select m.message_id from pgrecall.message m
    where  m.bank_id = (request.bank).bank_id
    order  by m.message_id desc
    limit  1) end, 0) > coalesce(terms.watermark, 0);
end;
$$;
comment on function pgrecall_internal._has_word is
'Whether the memories or messages of a bank may hold a word of the query.';

create or replace function pgrecall_internal._lexical_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  result pgrecall_internal.arm_result;
  search record;
begin
  result.is_run := case when 0 < any ((request.memory_terms).counts) then true
                        else pgrecall_internal._has_word(
                          request, 'memory', request.memory_terms) end;
  if not result.is_run then
    result.reason := 'the bank knows no word of the query';
  elsif is_planned then
    result.reason := 'the bank knows words of the query';
  else
    search := pgrecall_internal._lexical_search(request, 'memory', request.memory_terms);
    result.memory_ids := search.memory_ids;
    result.scores := search.scores;
  end if;
  return result;
end;
$$;
comment on function pgrecall_internal._lexical_arm is 'Worker of the lexical arm.';

create or replace function pgrecall.lexical_arm(
  bank       text,
  query      text,
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100)
returns setof pgrecall.ranked
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select * from pgrecall_internal._ranked('lexical', pgrecall_internal._request(
    bank, query, fact_types => fact_types, filter => filter, as_of => as_of,
    options => jsonb_build_object('depth', depth), arm => 'lexical'));
end;
$$;
comment on function pgrecall.lexical_arm is
'Memories that share words with the query. The words of a "phrase in quotes" must be adjacent in a '
'memory; a -word must not occur in it, unless with its minus. score is BM25 (Robertson and '
'Zaragoza 2009, IDF as in Lucene), above 0. About candidate_limit memories at most are scored, '
'those with the rarest words, and fewer where these are enough. The first 16,000 characters of a '
'query are read. Errors: RC001, RC008, RC011, 22023.';
