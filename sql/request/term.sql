-- The terms of a query with their IDFs, and the choice of candidates to score.
--
-- _terms() gives each lexeme its dimension, IDF and document count, rarest first. A query that is
-- typed without accents, or a word of it that the bank does not have, also means what the bank
-- spells with other accents: such spellings are one word, with one IDF. Scoring every
-- document with any word of a question would read most of a large bank; _candidates() chooses the
-- rarest words, and sets of the others, so that about candidate_limit documents are scored. A
-- lexeme shares its dimension with another one once in a billion pairs: where a bank holds such a
-- pair, and for documents that are not counted yet, _recheck_lexemes() reads the text again.
create or replace function pgrecall_internal._terms(
  bank_id text, kind text, lexemes text[], expanded text[] default '{}')
returns pgrecall_internal.terms
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  terms   pgrecall_internal.terms;
  is_bare boolean := octet_length(lexemes::text) = length(lexemes::text)
                     or pgrecall_internal._unaccented(lexemes::text) = lexemes::text;
begin
  -- Rarest first; a lexeme without statistics counts as rare.
  select array_agg(t.dimension) filter (where t.dimension is not null),
         array_agg(t.idf) filter (where t.dimension is not null),
         array_agg(t.count) filter (where t.dimension is not null),
         -- Expansion terms do not raise the highest possible score, nor do other spellings.
         coalesce(sum(t.idf) filter (where not t.is_expanded and t.spelling is null),
                  sum(t.idf) filter (where t.spelling is null)),
         coalesce(bool_or(t.is_shared), false), min(c.documents), min(c.watermark),
         coalesce(array_agg(t.spelling) filter (where t.spelling is not null), '{}')
  into   terms
  from (
    select max(s.document_count) as documents, max(s.watermark) as watermark
    from   pgrecall_internal.statistics s
    where  s.bank_id = _terms.bank_id and s.kind = _terms.kind
  ) as c
  left   join lateral (
    select w.dimension, w.count,
           case when q.n > cardinality(lexemes) then 0.5 else 1 end
           * ln(1 + (greatest(c.documents, w.total, 1) - w.total + 0.5) / (w.total + 0.5)) as idf,
           w.spelling, l.is_shared, q.n > cardinality(lexemes) as is_expanded
    from   unnest(lexemes || expanded) with ordinality as q(lexeme, n)
    -- One lookup each, also while the planner assumes a small table.
    cross  join lateral (
      select max(x.document_count) filter (where x.lexeme = q.lexeme) as document_count,
             coalesce(bool_or(x.lexeme <> q.lexeme), false) as is_shared
      from   pgrecall_internal.lexeme x
      where  x.bank_id = _terms.bank_id and x.kind = _terms.kind
        and  x.dimension = pgrecall_internal._dimension(q.lexeme)
    ) as l
    cross  join lateral (
      select case when is_bare then q.lexeme
                  when l.document_count is null then pgrecall_internal._unaccented(q.lexeme)
             end as bare
    ) as b
    cross  join lateral (
      select s.*, least(sum(s.count) over (), c.documents) as total
      from (
        select pgrecall_internal._dimension(q.lexeme), coalesce(l.document_count, 0), null
        union all
        select x.dimension, x.document_count, x.lexeme
        from   pgrecall_internal.lexeme x
        where  x.bank_id = _terms.bank_id and x.kind = _terms.kind
          and  pgrecall_internal._unaccented(x.lexeme) = b.bare
          and  pgrecall_internal._unaccented(x.lexeme) <> x.lexeme
          and  x.lexeme not in (select unnest(lexemes || expanded))
        union all
        select x.dimension, x.document_count, x.lexeme
        from   pgrecall_internal.lexeme x
        where  not is_bare and x.bank_id = _terms.bank_id and x.kind = _terms.kind
          and  x.dimension = pgrecall_internal._dimension(b.bare) and x.lexeme = b.bare
          and  x.lexeme not in (select unnest(lexemes || expanded))
      ) as s(dimension, count, spelling)
    ) as w
    order  by 2, 1
  ) as t on true;
  return terms;
end;
$$;
comment on function pgrecall_internal._terms is
'Lexemes of a query with their IDF ln(1 + (N - n + 0.5) / (n + 0.5)) as in Lucene, n being the '
'documents of N that hold the lexeme. kind is memory or message. Expansion terms have half their '
'IDF. Where no lexeme has an accent, and where the bank does not have one, those of the bank that '
'differ in accents alone count as it (spellings), n being the documents of all of them. idf_sum: '
'upper bound of the BM25 score of the query''s own lexemes. is_shared is never null, so that the '
'row as a whole is not null.';

create or replace function pgrecall_internal._candidates(
  dimensions integer[], idfs double precision[], counts bigint[], documents bigint,
  candidate_limit integer,
  out singles integer[], out sets text[])
language plpgsql immutable parallel safe
as $$
declare
  first   integer := 1;
  counted double precision := 0;
  others  bigint := 0;
  count   bigint;
begin
  -- A fifth of the limit goes to single words, rarest first.
  while first <= cardinality(dimensions) and counted + counts[first] <= candidate_limit / 5 loop
    counted := counted + counts[first];
    first := first + 1;
  end loop;
  -- Where few documents hold any of the words, it takes less time to score all of them than to
  -- choose.
  foreach count in array counts[first:] loop
    others := others + count;
  end loop;
  if counted + others <= candidate_limit / 2.5 then
    singles := dimensions;
    sets := '{}';
    return;
  end if;

  -- Sets are made of the ten rarest other words, and taken by their sum of IDFs while they fit: a
  -- document with none of the singles must contain all words of one set. A taken set makes its
  -- supersets redundant. Words of one question co-occur about three times as often as by chance. A
  -- set with few documents is not extended.
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
comment on function pgrecall_internal._candidates is
'Which documents to score, about candidate_limit: those with any of singles, or with all '
'dimensions of one of sets (arrays, rarest first). Both are empty where no set of words is rare '
'enough.';

create or replace function pgrecall_internal._scoped_keys(
  bank_id text, fact_type text, dimensions integer[])
returns bigint[]
language sql immutable parallel safe
return array(
  select hashint8extended(
           d::bigint, pgrecall_internal._scope(_scoped_keys.bank_id, _scoped_keys.fact_type))
  from   unnest(dimensions) as d
);
comment on function pgrecall_internal._scoped_keys is
'Keys of lexemes in the lexical index, as _lexical_keys() makes them from a document.';

create or replace function pgrecall_internal._recheck_lexemes(
  bank pgrecall.bank, kind text, ids bigint[], lexemes text[])
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- Cached plans must use an index, also those made while a table was small.
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
      -- Lexemes of the text alone are cheaper than those of all fields.
      where  tsvector_to_array(to_tsvector(
               config, pgrecall_internal._spaced(pgrecall_internal._normalised(d.text))))
               && _recheck_lexemes.lexemes
         or  exists (
               select from pgrecall_internal._field_lexemes(
                 config, d.text, d.context, bank.context_weight, d.fact_key, bank.key_weight) as l
               where  l.lexeme = any (_recheck_lexemes.lexemes))
    );
  end if;
  return array(
    select u.id
    from   unnest(ids) as u(id)
    cross  join lateral (
      select row(x.*)::pgrecall.message as message
      from   pgrecall.message x
      where  x.bank_id = bank.bank_id and x.message_id = u.id
      limit  1
    ) as d
    where  exists (
             select from pgrecall_internal._field_lexemes(
               config, (d.message).text, pgrecall_internal._message_context(bank, d.message),
               bank.message_context_weight, null, 0) as l
             where  l.lexeme = any (_recheck_lexemes.lexemes))
  );
end;
$$;
comment on function pgrecall_internal._recheck_lexemes is
'Those of the documents that really contain one of the lexemes. A score may stem from another '
'lexeme of the same dimension.';
