-- Finding memories while their words are being typed.
--
-- find_memories() is list_memories() with words: whole ones are stemmed as in a recall, the last
-- one may be only begun. Nothing is ranked: the latest come first, and the key of a page is an id.
-- The vocabulary of the bank tells how many memories have the words. Rare ones are looked up in the
-- lexical index; common ones are soon met by reading backwards, or among the memories of an entity
-- or a window.
create or replace function pgrecall_internal._typed_words(
  bank pgrecall.bank, words text,
  out required integer[], out begun integer[], out recheck text, out share double precision,
  out documents bigint)
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  config  regconfig := bank.text_search_config::regconfig;
  typed   text := pgrecall_internal._normalised(words);
  last    text := substring(typed from '\S+$');
  -- No lexeme begins with a sign: @len begins lena.
  part    text := case when length(last) <= 200 then substring(last from format(
    '[[:alnum:]%1$s][[:alnum:]%1$s_./@:+#-]*$', pgrecall_internal._marks(last))) end;
  whole   integer[];
  longer  integer[];
  written text;
  terms   pgrecall_internal.terms;
  known   bigint;
  is_over boolean;
  most    constant integer := 200;
begin
  -- What follows an apostrophe or a quote may be begun; the s of Ana's is no word.
  if exists (select from pgrecall.lexemes(config, part)) then
    last := part;
  elsif part is null and length(last) <= 200
        and (last !~ '[[:alnum:]]' and typed ~ '[[:alnum:]]'
             or exists (select from pgrecall.lexemes(config, last))) then
    last := null;  -- Punctuation ends a word as a space does.
  end if;
  -- Scripts without spaces have no words that could be begun.
  if last ~ ('[' || pgrecall_internal._unspaced() || ']') then
    last := null;
  end if;
  terms := pgrecall_internal._terms(bank.bank_id, 'memory', array(
    select l.lexeme
    from   pgrecall.lexemes(config, left(typed, length(typed) - coalesce(length(last), 0))) as l));
  -- Each word is required as it is typed, not in all of its spellings.
  select array_agg(t.dimension), array_agg(t.count)
  into   terms.dimensions, terms.counts
  from   unnest(terms.dimensions, terms.counts) as t(dimension, count)
  where  t.dimension <> all (array(
           select pgrecall_internal._dimension(s) from unnest(terms.spellings) as s));
  required := coalesce(terms.dimensions, '{}');
  documents := coalesce(terms.documents, 0);
  -- As if words stood together by chance.
  share := case when required = '{}' then 1
                when 0 = any (terms.counts) or documents = 0 then 0
                else (select exp(sum(ln(c::double precision / terms.documents)))
                      from   unnest(terms.counts) as c)
           end;
  if last is null then
    return;
  end if;
  -- Of a long word the beginning: the time of a pattern grows by more than its length.
  written := '\m' || replace(replace(
    nullif(pgrecall.normalised_name(left(last, 200)), ''), '+', '\+'), ' ', '[^[:alnum:]]+');
  -- A word that is typed further than its stem begins like that, but for a letter: movi, move.
  select array_agg(x.dimension) filter (where x.is_longer),
         array_agg(x.dimension) filter (where not x.is_longer), coalesce(sum(x.documents), 0),
         count(*) > most
  into   begun, longer, known, is_over
  from (
    select v.dimension, v.documents, starts_with(v.lexeme, lower(last)) as is_longer
    from (
      select l.dimension, l.lexeme, l.document_count
      from   pgrecall_internal.lexeme l
      where  l.bank_id = bank.bank_id and l.kind = 'memory'
      union  all
      -- Facts that are not counted yet may hold other words.
      select pgrecall_internal._dimension(l.lexeme), l.lexeme, 1
      from   pgrecall.memory m
      cross  join lateral (select concat_ws(' ', m.text, m.context, m.fact_key)) as d(content)
      cross  join lateral pgrecall.lexemes(config, d.content) as l
      where  m.bank_id = bank.bank_id and m.memory_id > coalesce(terms.watermark, 0)
        and  pgrecall_internal._normalised(d.content) ~* written
    ) as v(dimension, lexeme, documents)
    where  starts_with(v.lexeme, lower(last))
       or  length(v.lexeme) > 2 and starts_with(lower(last), left(v.lexeme, -1))
    order  by v.documents desc, v.lexeme
    limit  most + 1
  ) as x;
  -- As typed, and stemmed where it is one word: facts that are not counted yet have it too.
  whole := array(select pgrecall_internal._dimension(l.lexeme)
                 from   pgrecall.lexemes(config, last) as l);
  begun := begun || pgrecall_internal._dimension(lower(last))
           || case when cardinality(whole) = 1 then whole end;
  -- Nothing but the text tells whether such a word goes on so, or begins one of too many, and a
  -- stop word has no lexeme.
  if written <> '' and (longer is not null or whole = '{}' or is_over) then
    recheck := format(
      'pgrecall_internal._normalised(concat_ws('' '', m.text, m.context, m.fact_key)) ~* %L',
      written);
    if whole = '{}' then
      begun := null;
    else
      recheck := format(
        '(%s or pgrecall_internal._lexical_keys(m.bank_id, m.fact_type, m.lexical_weights)
                  && pgrecall_internal._scoped_keys($1, m.fact_type, %L))', recheck, begun);
      begun := case when not is_over then begun || longer end;
    end if;
  end if;
  share := case when begun is null then share
                else share * least(1, known / greatest(documents, 1)::double precision) end;
end;
$$;
comment on function pgrecall_internal._typed_words is
'Words that are being typed, as dimensions: those that a memory must have, and of those that begin '
'like the last one any; null where the last one is complete. recheck: a condition on memory m that '
'tells whether it has the last one; null: these dimensions tell. share: what part of so many '
'documents has them, by estimate.';

create or replace function pgrecall_internal._has_words_sql(is_indexed boolean)
returns text
language sql immutable parallel safe
return replace(case when is_indexed then
  '{keys} @> pgrecall_internal._scoped_keys($1, {fact_type}, $10)
   and ($11 is null or {keys} && pgrecall_internal._scoped_keys($1, {fact_type}, $11))'
  else
  -- Where the expression is not compared itself its index is not used; it is computed once.
  '(select ($10 = ''{}'' or k.keys @> pgrecall_internal._scoped_keys($1, m.fact_type, $10))
       and ($11 is null or k.keys && (
              select array_agg(s)
              from   unnest($9) as t, unnest(pgrecall_internal._scoped_keys($1, t, $11)) as s))
    from (select {keys} offset 0) as k(keys))'
  end, '{keys}', 'pgrecall_internal._lexical_keys(m.bank_id, m.fact_type, m.lexical_weights)');
comment on function pgrecall_internal._has_words_sql is
'The condition that memory m, of a type in $9, has all dimensions of $10 and one of $11: by the '
'lexical index, for a constant fact type, or by anything but that.';

create or replace function pgrecall_internal._worded_ids(
  bank text, visible text, condition jsonb, fact_types text[], entity_ids bigint[],
  as_of timestamptz, before_id bigint, top_k integer, required integer[], begun integer[],
  is_common boolean)
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
-- A page of common words is read in the order of the primary key, not sorted.
set enable_sort = off
set enable_seqscan = off
as $$
declare
  branch text;
  ids    bigint[];
begin
  if is_common then
    -- Without the lexical index, so that the primary key is read backwards until a page is full.
    branch := '
      select m.memory_id
      from (
        select x.*
        from   pgrecall.memory x
        where  x.bank_id = $1 and x.memory_id < $5
        order  by x.memory_id desc
        offset 0
      ) as m
      where  m.fact_type = any ($9)
        and  ' || visible || ' and ' || pgrecall_internal._has_words_sql(false) || ' limit $4';
  else
    -- As in _lexical_search(): another collation rules out every index but the lexical one.
    branch := pgrecall_internal._union_all('
      select m.memory_id
      from   pgrecall.memory m
      where  m.bank_id collate "C" = $1 and m.fact_type is not distinct from {fact_type}
        and  m.memory_id < $5
        and  ($6 is null or exists (
               select from pgrecall.mention x
               where  x.bank_id = $1 and x.memory_id = m.memory_id and x.entity_id = any ($6)))
        and  ' || visible || ' and ' || pgrecall_internal._has_words_sql(true) || '
      order  by m.memory_id desc limit $4',
      fact_types);
  end if;
  -- The branches hold names and operators of ours, and literals of fact types: see filter.sql.
  execute format('select array(select f.memory_id from (%s) as f order by 1 desc limit $4)', branch)
  into    ids
  using   bank, as_of, condition, top_k, coalesce(before_id, 9223372036854775807), entity_ids,
          null, null, fact_types, required, begun;
  return ids;
end;
$$;
comment on function pgrecall_internal._worded_ids is
'Ids of the latest memories before before_id that have words and meet condition, whose SQL is '
'visible, latest first: by the primary key where the words are common, else by the lexical index.';

create or replace function pgrecall.find_memories(
  bank       text,
  words      text,
  filter     text default null,
  fact_types text[] default null,
  during     pgrecall_internal.period default null,
  as_of      timestamptz default now(),
  before_id  bigint default null,
  top_k      integer default 50,
  entity     text default null)
returns setof pgrecall.stored_memory
language plpgsql stable parallel unsafe rows 50
set search_path from current
as $$
declare
  found_bank pgrecall.bank;
  span       tstzrange;
  condition  jsonb;
  visible    text;
  typed      record;
  is_common  boolean;
  entity_ids bigint[];
  ids        bigint[];
begin
  found_bank := pgrecall_internal._bank(bank);
  span := pgrecall_internal._range_of_period(during);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 100000);
  typed := pgrecall_internal._typed_words(found_bank, coalesce(words, ''));
  condition := pgrecall_internal._whole_filter(
    pgrecall_internal._parsed_filter(filter), null, span,
    '{"time_mode": "filter", "time_basis": "mentioned"}');
  visible := case when as_of is null then pgrecall_internal._filter_sql(condition)
                  else pgrecall_internal._visible_sql(condition) end
             || coalesce(' and ' || typed.recheck, '');
  fact_types := pgrecall_internal._fact_types(bank, fact_types);
  if entity is not null then
    entity_ids := pgrecall_internal._entities_named(bank, array[entity]);
  end if;
  is_common := 20 * typed.share > 1
    or (select sum(c.mention_count) < typed.share * typed.documents
        from   pgrecall_internal.entity_count c
        where  c.bank_id = find_memories.bank and c.entity_id = any (entity_ids));
  if is_common and (entity_ids is not null or span is not null) then
    visible := visible || ' and ' || pgrecall_internal._has_words_sql(false);
    ids := pgrecall_internal._listed_ids(
      bank, visible, condition, fact_types, span, entity_ids, as_of, before_id, top_k,
      typed.required, typed.begun);
  else
    ids := pgrecall_internal._worded_ids(
      bank, visible, condition, fact_types, entity_ids, as_of, before_id, top_k,
      typed.required, typed.begun, is_common);
  end if;
  return query
  select s.* from pgrecall.stored_memories(bank, ids) as s;
end;
$$;
comment on function pgrecall.find_memories is
'Memories that have all of these words in their text, context or key, latest stored first, for a '
'search while somebody types: words are compared as in a recall, but accents as typed, and the '
'last one may be only begun, unless a space follows it. A stop word counts while it is the last. '
'Without words: all. Other arguments, pages and errors are those of list_memories().';
