create or replace function pgrecall._parsed_query(
  query text, out words text, out phrases text[], out excluded text[])
language plpgsql immutable parallel safe
as $$
declare
  quoted constant text := '(?<![[:alnum:]])"([^"]+)"(?![[:alnum:]])';
  minus  constant text := '(?:^| )-([[:alpha:]][[:alnum:]]*(?:[-_./@:+#'']+[[:alnum:]]+)*)';
  bare   text;
begin
  -- A pasted book asks about what it begins with.
  words := left(query, 16000);
  phrases := '{}';
  excluded := '{}';
  -- What is long was pasted: its quotes and dashes are not meant for us.
  if length(words) > 1000 then
    return;
  end if;
  bare := translate(pgrecall._normalised(query), '“”„', '"""');
  if bare !~ '"|(^| )-[[:alpha:]]' then
    return;
  end if;
  excluded := array(
    select p.match[1] from regexp_matches(bare, '(?:^| )-' || quoted, 'g') as p(match)
  );
  bare := regexp_replace(bare, '(^| )-' || quoted, ' ', 'g');
  phrases := array(
    select p.match[1]
    from   regexp_matches(bare, quoted, 'g') as p(match)
    -- One of no words says nothing.
    where  p.match[1] ~ '[[:alnum:]]'
  );
  bare := regexp_replace(bare, quoted, ' ', 'g');
  excluded := excluded || array(
    select p.match[1] from regexp_matches(bare, minus, 'g') as p(match)
  );
  words := concat_ws(' ', regexp_replace(bare, minus, ' ', 'g'), array_to_string(phrases, ' '));
end;
$$;
comment on function pgrecall._parsed_query(text) is
'What a query asks for: words of which some should stand in the text, phrases ("in quotes") that '
'must, and words and phrases (-word, -"in quotes") that must not, phrases and exclusions in '
'Unicode form NFKC.';

create or replace function pgrecall._stands_in(config regconfig, phrase text, fields text[])
returns boolean
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  typed text := '[' || pgrecall._cjk() || ']|[[:alnum:]][-_./@:+#]+[[:alnum:]]';
  words text;
begin
  if phrase ~ typed then
    -- As typed, and where it does not begin or end in a script without spaces, as whole words.
    typed := regexp_replace(lower(btrim(phrase)), '([^[:alnum:][:space:]])', '\\\1', 'g');
    typed := regexp_replace(typed, '[[:space:]]+', '\\s+', 'g');
    if btrim(phrase) ~ ('^(?![' || pgrecall._cjk() || '])[[:alnum:]]') then
      typed := '(?<![[:alnum:]])' || typed;
    end if;
    if btrim(phrase) ~ ('(?![' || pgrecall._cjk() || '])[[:alnum:]]$') then
      typed := typed || '(?![[:alnum:]])';
    end if;
    return exists (
      select from unnest(fields) as f
      where  lower(pgrecall._normalised(f)) ~ ('(?:' || typed || ')')
    );
  end if;
  words := pgrecall._spaced(phrase);
  if to_tsvector(config, words) = '' then
    -- A phrase of stop words alone: to be or not to be.
    config := 'simple';
    if to_tsvector(config, words) = '' then
      return false;
    end if;
  end if;
  return exists (
    select from unnest(fields) as f
    where  to_tsvector(config, pgrecall._spaced(pgrecall._normalised(f)))
             @@ phraseto_tsquery(config, words)
  );
end;
$$;
comment on function pgrecall._stands_in(regconfig, text, text[]) is
'Whether the words of a phrase, in Unicode form NFKC, stand next to one another in one of the '
'fields, stemmed as the configuration does; a phrase with an identifier or Chinese, Japanese or '
'Korean in it, as typed.';

create or replace function pgrecall._is_wanted(
  config regconfig, phrases text[], excluded text[], fields text[])
returns boolean
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  return (select bool_and(pgrecall._stands_in(config, p, fields)) from unnest(phrases) as p)
           is not false
     and (select bool_or(pgrecall._stands_in(config, x, fields)) from unnest(excluded) as x)
           is not true;
end;
$$;
comment on function pgrecall._is_wanted(regconfig, text[], text[], text[]) is
'Whether all the phrases stand in the fields, and nothing that is excluded.';

create or replace function pgrecall._query_lexemes(
  bank pgrecall.bank, kind text, query text,
  out dimensions integer[], out idfs double precision[], out counts bigint[], out documents bigint,
  out lexemes text[], out is_shared boolean, out watermark bigint)
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  select s.document_count, s.watermark into documents, watermark
  from   pgrecall.statistics s
  where  s.bank_id = bank.bank_id and s.kind = _query_lexemes.kind;

  -- Rarest first; a lexeme without statistics counts as rare.
  select array_agg(t.dimension), array_agg(t.idf), array_agg(t.count), array_agg(t.lexeme),
         bool_or(t.is_shared)
  into   dimensions, idfs, counts, lexemes, is_shared
  from (
    select pgrecall._dimension(q.lexeme) as dimension,
           coalesce(l.document_count, 0)::bigint as count,
           ln(1 + (greatest(documents, l.document_count, 1) - coalesce(l.document_count, 0) + 0.5)
                  / (coalesce(l.document_count, 0) + 0.5)) as idf,
           q.lexeme,
           l.is_shared
    from   pgrecall.lexemes(bank.text_search_config::regconfig, query) as q
    -- A lookup each, also while the planner takes the table for a small one.
    cross  join lateral (
      select max(x.document_count) filter (where x.lexeme = q.lexeme) as document_count,
             coalesce(bool_or(x.lexeme <> q.lexeme), false) as is_shared
      from   pgrecall.lexeme x
      where  x.bank_id = bank.bank_id and x.kind = _query_lexemes.kind
        and  x.dimension = pgrecall._dimension(q.lexeme)
    ) as l
    order  by 2, 1
  ) as t;
end;
$$;
comment on function pgrecall._query_lexemes(pgrecall.bank, text, text) is
'The lexemes of a query, rarest first: dimension, IDF ln(1 + (N - n + 0.5) / (n + 0.5)) as in '
'Lucene, and n; documents is N. lexemes are they in any order; is_shared when one has its '
'dimension in common with another lexeme of the bank; documents up to watermark are counted.';

create or replace function pgrecall._worded(
  bank pgrecall.bank, kind text, ids bigint[], lexemes text[])
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- Its plans are kept, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  config regconfig := bank.text_search_config::regconfig;
begin
  if kind = 'memory' then
    return array(
      select u.id
      from   unnest(ids) as u(id)
      cross  join lateral (
        select m.text, m.context, m.fact_key
        from   pgrecall.memory m
        where  m.bank_id = bank.bank_id and m.memory_id = u.id
        limit  1
      ) as d
      -- The words of the text alone are had sooner than all that may stand there.
      where  tsvector_to_array(to_tsvector(config, pgrecall._spaced(pgrecall._normalised(d.text))))
               && _worded.lexemes
         or  exists (
               select from pgrecall._field_lexemes(
                 config, d.text, d.context, bank.context_weight, d.fact_key, bank.key_weight) as l
               where  l.lexeme = any (_worded.lexemes))
    );
  end if;
  return array(
    select u.id
    from   unnest(ids) as u(id)
    cross  join lateral (
      select x as message
      from   pgrecall.message x
      where  x.bank_id = bank.bank_id and x.message_id = u.id
      limit  1
    ) as d
    where  exists (
             select from pgrecall._field_lexemes(
               config, (d.message).text, pgrecall._message_context(bank, d.message),
               bank.message_context_weight, null, 0) as l
             where  l.lexeme = any (_worded.lexemes))
  );
end;
$$;
comment on function pgrecall._worded(pgrecall.bank, text, bigint[], text[]) is
'Those of the documents in which one of the lexemes stands.';

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

create or replace function pgrecall._candidates(
  dimensions integer[], idfs double precision[], counts bigint[], documents bigint,
  candidate_limit integer,
  out singles integer[], out sets text[])
language plpgsql immutable parallel safe
as $$
declare
  first   integer := 1;
  counted double precision := 0;
begin
  -- A fifth of the limit goes to single words, rarest first.
  while first <= cardinality(dimensions) and counted + counts[first] <= candidate_limit / 5 loop
    counted := counted + counts[first];
    first := first + 1;
  end loop;

  -- Of the ten rarest of the others, sets are taken by the IDF they bring in together, while they
  -- fit: what has none of the singles must have one of them. Where a set is taken, those that have
  -- a word more stop counting. Words of one question go together some three times as often as
  -- chance has it; sets that few documents have need no further word.
  with recursive word as (
    select *
    from   unnest(dimensions[first : first + 9], idfs[first : first + 9], counts[first : first + 9])
             with ordinality as t(dimension, idf, count, position)
  ),
  word_set as (
    select array[w.dimension] as words, w.position as last, w.idf, w.count as most,
           w.count::double precision as chance, w.count::double precision as estimate
    from   word w
    union all
    select s.words || w.dimension, w.position, s.idf + w.idf, s.most, x.chance,
           least(s.most, x.chance)
    from   word_set s
    join   word w on w.position > s.last
    cross  join lateral (select s.chance * 3 * w.count / documents) as x(chance)
    where  s.estimate > candidate_limit / 25 and cardinality(s.words) < 5
  ),
  ranked as (
    select s.words, trim_array(s.words, 1) as shorter, s.estimate,
           row_number() over (order by s.idf desc, s.words) as rank
    from   word_set s
  ),
  running as (
    select r.words, r.shorter, r.rank,
           sum(r.estimate - coalesce(l.estimate, 0)) over (order by r.rank) as total
    from   ranked r
    left   join (select x.shorter, sum(x.estimate) from ranked x group by x.shorter)
                  as l(words, estimate) using (words)
  ),
  taken as (
    select b.words, b.shorter
    from   (select r.words, r.shorter, max(r.total) over (order by r.rank) as total
            from   running r) as b
    where  b.total <= candidate_limit - counted
  )
  select dimensions[1 : first - 1]
           || coalesce(array_agg(t.words[1]) filter (where cardinality(t.words) = 1), '{}'),
         coalesce(array_agg(t.words::text) filter (where cardinality(t.words) > 1), '{}')
  into   singles, sets
  from   taken t
  where  t.shorter not in (select x.words from taken x);
end;
$$;
comment on function pgrecall._candidates(
  integer[], double precision[], bigint[], bigint, integer) is
'Which documents to score, about candidate_limit: those with any of the singles, or with all of '
'any of the sets (arrays of dimensions, rarest first). Nothing where no set of words is that rare.';

create or replace function pgrecall._textsearch(
  bank pgrecall.bank, dimensions integer[], fact_types text[], filter jsonb, as_of timestamptz,
  depth integer,
  out ids bigint[], out scores double precision[])
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- The index hands its rows out in order: what sorts would score each row of the bank by itself.
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
                       bank.bank_id),
      hint    = 'Until it is there, the arm answers by itself: '
                'select statement from pgrecall.lexical_index_plan();';
    return;
  end if;
  -- Its scores have the factor k1 + 1.
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
    pgrecall._visible_sql(filter)
  )
  into  ids, scores
  using bank.bank_id, as_of, filter, depth, fact_types,
        (select string_agg(pgrecall._document_word(bank.bank_id, d), ' ')
         from   unnest(dimensions) as d);
end;
$$;
comment on function pgrecall._textsearch(
  pgrecall.bank, integer[], text[], jsonb, timestamptz, integer) is
'The memories of a bank that its index of pg_textsearch finds by lexemes, and their BM25 scores; '
'null, with a notice, where the index is missing.';

create or replace function pgrecall.lexical_index_plan()
returns table (statement text, reason text)
language plpgsql stable parallel safe rows 1
set search_path from current
as $$
declare
  is_valid  boolean := (
    select i.indisvalid from pg_index i
    where  i.indexrelid = to_regclass('pgrecall.memory_lexical_document_idx')
  );
  is_wanted boolean := exists (
    select from pgrecall.bank b where b.lexical_backend = 'pg_textsearch'
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
comment on function pgrecall.lexical_index_plan() is
'Statements that are due for the index of the banks whose lexical_backend is pg_textsearch, in '
'order; run them outside a transaction, by one who sees all banks. There is one index for all such '
'banks: k1 and b are 1.2 and 0.75 for each, and BM25 counts with the number of facts and the mean '
'length of all of them together; dead versions of facts count until they are vacuumed. It must be '
'built concurrently: built otherwise, pg_textsearch 1.0.0 misses facts that were updated in place.';

create or replace function pgrecall._lexical_search(
  bank pgrecall.bank, kind text, query text, fact_types text[], filter jsonb, as_of timestamptz,
  depth integer)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
set jit = off
-- Starting a worker takes longer than what it would do.
set max_parallel_workers_per_gather = 0
as $$
declare
  config   regconfig := bank.text_search_config::regconfig;
  asked    record := pgrecall._parsed_query(query);
  q        record := pgrecall._query_lexemes(bank, kind, asked.words);
  chosen   record;
  part     integer;
  required integer[];
  matches  text;
  ids      bigint[];
  scores   double precision[];
  doubtful bigint[];
  worded   bigint[];
  branch   text;
begin
  if q.dimensions is null then
    return;
  end if;
  -- The other backend knows no phrases, and nothing of messages.
  if kind = 'memory' and bank.lexical_backend = 'pg_textsearch'
     and asked.phrases = '{}' and asked.excluded = '{}'
  then
    select t.ids, t.scores into ids, scores
    from   pgrecall._textsearch(bank, q.dimensions, fact_types, filter, as_of, depth) as t;
  end if;
  if ids is null then
    if asked.phrases <> '{}' then
      -- Facts with all the words of the phrases, identifiers by their parts. Of Chinese, Japanese
      -- and Korean a single letter is not found inside a word.
      required := array(
        select distinct pgrecall._dimension(l.lexeme)
        from   unnest(asked.phrases) as p,
               pgrecall.lexemes(config, regexp_replace(p, '[-_./@:+#]+', ' ', 'g')) as l
        where  l.lexeme !~ ('^[' || pgrecall._cjk() || ']$')
      );
    end if;
    -- A quarter of the limit first: that finds as good as all of the best, and what it leaves out
    -- is looked at when there are too few.
    foreach part in array array[bank.candidate_limit / 4, bank.candidate_limit] loop
      if required <> '{}' then
        matches := format('%s @> pgrecall._scoped_keys($1, {fact_type}, %L)', '{keys}', required);
      else
        chosen := pgrecall._candidates(
          q.dimensions, q.idfs, q.counts, q.documents, part);
        continue when chosen.singles = '{}' and chosen.sets = '{}' and part < bank.candidate_limit;
        -- Sets that differ in the last word share a scan, which reads the lists of the others once.
        select string_agg(c.condition, ' or ')
        into   matches
        from (
          select format('{keys} && pgrecall._scoped_keys($1, {fact_type}, %L)',
                        case when chosen.singles = '{}' and chosen.sets = '{}'
                          then q.dimensions[1:1] else chosen.singles end)
          where  chosen.singles <> '{}' or chosen.sets = '{}'
          union all
          select format('{keys} @> pgrecall._scoped_keys($1, {fact_type}, %L) and '
                        '{keys} && pgrecall._scoped_keys($1, {fact_type}, %L)',
                        trim_array(w.words, 1), array_agg(w.words[cardinality(w.words)]))
          from   (select s::integer[] from unnest(chosen.sets) as s) as w(words)
          group  by trim_array(w.words, 1)
        ) as c(condition);
      end if;
      -- What is written into the statement are names and numbers that we made.
      matches := replace(matches, '{keys}', format(
        'pgrecall._lexical_keys(m.bank_id, %s, m.lexical_weights)',
        case kind when 'memory' then 'm.fact_type' else quote_literal('message') end));

      -- The keys are those of one bank and type, so their index alone finds the candidates. A
      -- collation other than the column's, and "is not distinct from", keep the planner, which
      -- knows nothing of a fresh table, from an index that begins with the bank and would make it
      -- compute every key anew.
      branch := case kind
        when 'memory' then
          $sql$
            select m.memory_id as id, -(m.lexical_weights <#> $5) as score {fields}
            from   pgrecall.memory m
            where  m.bank_id collate "C" = $1 and m.fact_type is not distinct from {fact_type}
              and  $sql$ || pgrecall._visible_sql(filter)
        else
          $sql$
            select m.message_id as id, -(m.lexical_weights <#> $5) as score {fields}
            from   pgrecall.message m
            where  m.bank_id collate "C" = $1 and m.sent_at <= $2
          $sql$
      end || format(' and (%s) order by 2 desc, 1 desc', matches);
      if asked.phrases = '{}' and asked.excluded = '{}' then
        branch := replace(branch, '{fields}', '') || ' limit $4';
      else
        -- Phrases are looked for in the best, one after the other, until there are enough.
        branch := format(
          'select c.id, c.score from (%s offset 0) as c '
          'where pgrecall._is_wanted($6, $7, $8, c.fields) limit $4',
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
        pgrecall._union_all(branch, fact_types)
      )
      into  ids, scores
      using bank.bank_id, as_of, filter, depth,
            pgrecall._to_sparsevec(q.dimensions, q.idfs), config, asked.phrases, asked.excluded;
      exit when required <> '{}' or cardinality(ids) >= depth;
      exit when cardinality(chosen.singles) = cardinality(q.dimensions);
    end loop;
  end if;

  -- A score may stem from another lexeme of the same dimension. Where the bank knows one, or for
  -- documents whose lexemes it has not counted, we look.
  doubtful := array(
    select u from unnest(ids) as u where q.is_shared or u > coalesce(q.watermark, 0)
  );
  if doubtful <> '{}' then
    worded := pgrecall._worded(bank, kind, doubtful, q.lexemes);
  end if;

  return query
  select u.id, row_number() over (order by u.n)::integer, u.score
  from   unnest(ids, scores) with ordinality as u(id, score, n)
  where  u.id <> all (doubtful) or u.id = any (worded)
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
'Memories that share words with the query, of which "phrases in quotes" must stand there, as '
'adjacent words, and -words must not. score is BM25 (Robertson and Zaragoza 2009, IDF as in '
'Lucene), above 0. '
'Up to about candidate_limit memories are scored, those with the rarest words, fewer where '
'enough are found; of a query the first 16,000 characters are read. Errors: '
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
'Raw messages that share words with the query, sent by as_of; quotes and minus as in '
'lexical_arm(). score is BM25, above 0. Errors: '
'RC001, 22023.';

create or replace function pgrecall._letters(content text)
returns table (letter text)
language plpgsql immutable parallel safe
as $$
begin
  if octet_length(content) = length(content) or getdatabaseencoding() <> 'UTF8' then
    return query select c.letter from string_to_table(content, null) as c(letter);
    return;
  end if;
  return query
  select string_agg(d.code, '' order by d.n)
  from (
    select c.code, c.n, count(*) filter (where not (
             octet_length(c.code) > 1
             -- A mark: put in order before the one that goes behind all others.
             and (left(normalize(chr(837) || c.code, nfkd), 1) <> chr(837)
                  -- A vowel or a last consonant of a Hangul syllable, and the like.
                  or normalize(c.before || c.code, nfkc)
                     <> normalize(c.before, nfkc) || normalize(c.code, nfkc)))
           ) over (order by c.n) as nth
    from (
      select s.code, s.n,
             concat(lag(s.code, 2) over (order by s.n), lag(s.code) over (order by s.n)) as before
      from   string_to_table(content, null) with ordinality as s(code, n)
    ) as c
  ) as d
  group  by d.nth
  order  by d.nth;
end;
$$;
comment on function pgrecall._letters(text) is
'The letters of a text as they are stored, in order, each with the marks that belong to it: the '
'forms NFKC of all, joined, are that of the text.';

create or replace function pgrecall.highlight(
  bank       text,
  memory_id  bigint,
  query      text,
  start_mark text default '<mark>',
  end_mark   text default '</mark>')
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  searched pgrecall.bank := pgrecall._bank(bank);
  config   regconfig := searched.text_search_config::regconfig;
  cjk      text := '[' || pgrecall._cjk() || ']';
  content  text;
  wanted   text[];
begin
  perform pgrecall._check_text('query', query);
  perform pgrecall._check_memory(bank, memory_id);
  select m.text into content
  from   pgrecall.memory m
  where  m.bank_id = highlight.bank and m.memory_id = highlight.memory_id;
  wanted := array(
    select l.lexeme
    from   pgrecall.lexemes(config, (pgrecall._parsed_query(query)).words) as l
  );

  return (
    with run as (
      select r.match[1] as run, r.n, r.match[1] ~ ('^' || cjk) as is_cjk
      from   regexp_matches(
               pgrecall._normalised(content), format('%s+|[^%s]+', cjk, pgrecall._cjk()), 'g')
               with ordinality as r(match, n)
    ),
    piece as (
      select array[r.n, c.n] as place, c.letter as piece,
             case when char_length(r.run) = 1 then c.letter = any (wanted)
                  else coalesce(lag(c.letter) over w || c.letter = any (wanted), false)
                    or coalesce(c.letter || lead(c.letter) over w = any (wanted), false)
             end as is_hit
      from   run r, string_to_table(r.run, null) with ordinality as c(letter, n)
      where  r.is_cjk
      window w as (partition by r.n order by c.n)
      union all
      -- An identifier is marked as a whole when it was asked for as a whole, or else in parts.
      select array[r.n, i.n, w.n], w.match[1],
             lower(i.match[1]) = any (wanted)
               or tsvector_to_array(to_tsvector(config, w.match[1])) && wanted
      from   run r,
             regexp_matches(
               r.run, '[[:alnum:]]+(?:[-_./@:+#]+[[:alnum:]]+)*|[^[:alnum:]]+', 'g'
             ) with ordinality as i(match, n),
             regexp_matches(
               i.match[1], '[[:alnum:]]+|[^[:alnum:]]+', 'g'
             ) with ordinality as w(match, n)
      where  not r.is_cjk
    ),
    -- What was read is the text in form NFKC, what is marked are the letters as they are stored.
    read as (
      select p.is_hit, row_number() over (order by p.place, c.n) as n
      from   piece p, string_to_table(p.piece, null) with ordinality as c(code, n)
    ),
    stored as (
      select l.letter, l.n as place, row_number() over (order by l.n, c.n) as n
      from   pgrecall._letters(content) with ordinality as l(letter, n),
             string_to_table(pgrecall._normalised(l.letter), null) with ordinality as c(code, n)
    ),
    letter as (
      select s.place, s.letter, bool_or(r.is_hit) as is_hit
      from   stored s join read r using (n)
      group  by s.place, s.letter
    ),
    -- Hits side by side share a mark.
    stretch as (
      select min(l.place) as place, l.is_hit, string_agg(l.letter, '' order by l.place) as stretch
      from (
        select *, row_number() over (order by place)
                  - row_number() over (partition by is_hit order by place) as island
        from   letter
      ) as l
      group  by l.is_hit, l.island
    )
    select string_agg(
             case when s.is_hit then concat(start_mark, s.stretch, end_mark) else s.stretch end,
             '' order by s.place)
    from   stretch s
  );
end;
$$;
comment on function pgrecall.highlight(text, bigint, text, text, text) is
'The text of a memory with the words that lexical_arm() finds it by between start_mark and '
'end_mark; all else is as it was stored, nothing is escaped. Errors: RC001, RC010 unknown memory, '
'22023.';
