create or replace function pgrecall._cjk()
returns text
language sql immutable parallel safe
return '\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u318f'
       '\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff'
       '\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff';
comment on function pgrecall._cjk() is
'The letters of Chinese, Japanese and Korean, for the inside of a bracket expression.';

create or replace function pgrecall._spaced(content text)
returns text
language sql immutable parallel safe
return regexp_replace(
  regexp_replace(content, '[' || pgrecall._cjk() || ']+', ' ', 'g'),
  '[-_./@:+#]+(?=[[:alnum:]])', ' ', 'g'
);
comment on function pgrecall._spaced(text) is
'A text without Chinese, Japanese and Korean, the parts of identifiers apart: max_client_conn is '
'also max, client and conn.';

create or replace function pgrecall.lexemes(config regconfig, content text)
returns table (lexeme text, frequency integer)
language sql immutable parallel safe
begin atomic
  with normalised as materialized (select pgrecall._normalised(lexemes.content) as content)
  select u.lexeme, sum(u.frequency)::integer
  from   normalised as t
  cross  join lateral (
    select w.lexeme, cardinality(w.positions)
    from   unnest(to_tsvector(config, pgrecall._spaced(t.content))) as w
    union all
    -- Identifiers, codes, dates, addresses as typed.
    select lower(i.match[1]), 1
    from   regexp_matches(
             regexp_replace(t.content, '[' || pgrecall._cjk() || ']+', ' ', 'g'),
             '[[:alnum:]]+(?:[-_./@:+#]+[[:alnum:]]+)+', 'g'
           ) as i(match)
    where  length(i.match[1]) <= 200
    union all
    -- Chinese, Japanese and Korean, which put no space between words: each two letters in a row.
    select p.letter || coalesce(p.next, ''), 1
    from (
      select c.letter, c.n, lead(c.letter) over (partition by r.n order by c.n) as next
      from   regexp_matches(t.content, '[' || pgrecall._cjk() || ']+', 'g')
               with ordinality as r(match, n),
             string_to_table(r.match[1], null) with ordinality as c(letter, n)
    ) as p
    where  p.next is not null or p.n = 1
  ) as u(lexeme, frequency)
  group by u.lexeme;
end;
comment on function pgrecall.lexemes(regconfig, text) is
'The lexemes of a text and how often each stands in it: words as the configuration stems them, '
'identifiers as typed, Chinese, Japanese and Korean by pairs of letters. The text is read in '
'Unicode form NFKC. Letters with accents stay others than those without, unless the configuration '
'takes the accents away, as one with the dictionary unaccent does.';

create or replace function pgrecall._field_lexemes(
  config regconfig, content text, context text, context_weight double precision,
  fact_key text, key_weight double precision)
returns table (lexeme text, frequency double precision)
language sql immutable parallel safe
begin atomic
  select u.lexeme, sum(u.frequency)
  from (
    select l.lexeme, l.frequency::double precision
    from   pgrecall.lexemes(config, content) as l
    union all
    select l.lexeme, l.frequency * context_weight
    from   pgrecall.lexemes(config, context) as l
    where  context <> '' and context_weight > 0
    union all
    select l.lexeme, l.frequency * key_weight
    from   pgrecall.lexemes(config, fact_key) as l
    where  fact_key <> '' and key_weight > 0
  ) as u(lexeme, frequency)
  group by u.lexeme;
end;
comment on function pgrecall._field_lexemes(
  regconfig, text, text, double precision, text, double precision) is
'The lexemes of a memory and how often each stands in it, fields weighted: that of the text is 1.';

create or replace function pgrecall._document_word(bank_id text, dimension integer)
returns text
language sql immutable parallel safe
return (hashint8extended(dimension, hashtextextended(bank_id, 0)) & 9223372036854775807)::text;
comment on function pgrecall._document_word(text, integer) is
'A lexeme of a bank, by its dimension, as it stands in lexical_document: no other bank shares it.';

create or replace function pgrecall._lexical_document(
  bank pgrecall.bank, content text, context text, fact_key text)
returns text
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  if bank.lexical_backend <> 'pg_textsearch' then
    return null;
  end if;
  return (
    select coalesce(string_agg(
             repeat(pgrecall._document_word(bank.bank_id, pgrecall._dimension(l.lexeme)) || ' ',
                    greatest(round(l.frequency), 1)::integer), ''), '')
    from   pgrecall._field_lexemes(bank.text_search_config::regconfig, content,
                                   context, bank.context_weight, fact_key, bank.key_weight) as l
  );
end;
$$;
comment on function pgrecall._lexical_document(pgrecall.bank, text, text, text) is
'What pg_textsearch indexes of a memory: the words of its lexemes, each as often as it counts, '
'rounded, once at least. Null where the bank has another lexical_backend.';

create or replace function pgrecall._to_sparsevec(dimensions integer[], weights double precision[])
returns sparsevec
language sql immutable parallel safe
return (
  select ('{' || coalesce(string_agg(t.d || ':' || t.w, ',' order by t.d), '')
          || '}/1000000000')::sparsevec
  from (
    -- 16,000 elements are the most that the type holds.
    select u.d, sum(u.w)::real
    from   unnest(dimensions, weights) as u(d, w)
    group  by u.d
    order  by sum(u.w) desc
    limit  16000
  ) as t(d, w)
);
comment on function pgrecall._to_sparsevec(integer[], double precision[]) is
'Weights by dimension as a vector; weights of one dimension add up.';

create or replace function pgrecall._lexical(
  bank pgrecall.bank, content text, context text, fact_key text, average_length double precision,
  out length real, out weights sparsevec)
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  dimensions  integer[];
  frequencies double precision[];
begin
  if coalesce(context, fact_key) is null then
    select coalesce(array_agg(pgrecall._dimension(l.lexeme)), '{}'),
           coalesce(array_agg(l.frequency), '{}')
    into   dimensions, frequencies
    from   pgrecall.lexemes(bank.text_search_config::regconfig, content) as l;
  else
    select coalesce(array_agg(pgrecall._dimension(l.lexeme)), '{}'),
           coalesce(array_agg(l.frequency), '{}')
    into   dimensions, frequencies
    from   pgrecall._field_lexemes(bank.text_search_config::regconfig, content,
                                   context, bank.context_weight, fact_key, bank.key_weight) as l;
  end if;
  length := coalesce((select sum(tf) from unnest(frequencies) as tf), 0);
  weights := pgrecall._to_sparsevec(dimensions, array(
    select tf / (tf + bank.bm25_k1 * (1 - bank.bm25_b + bank.bm25_b * length / average_length))
    from   unnest(frequencies) with ordinality as u(tf, position)
    order  by position
  ));
end;
$$;
comment on function pgrecall._lexical(pgrecall.bank, text, text, text, double precision) is
'Length of a document in lexemes and its BM25 weights tf / (tf + k1 (1 - b + b length / average)), '
'without the IDF (Robertson and Zaragoza 2009, eq. 3.15; the constant factor k1 + 1 left out). tf '
'and length are sums over the fields, each times its weight (BM25F of Robertson, Zaragoza and '
'Taylor 2004, with one b for all fields).';

create or replace function pgrecall._message_context(bank pgrecall.bank, message pgrecall.message)
returns text
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  if bank.message_context_weight = 0 or message.session_id is null then
    return null;
  end if;
  return (
    select string_agg(b.text, ' ')
    from (
      (select t.text
       from   pgrecall.message t
       where  t.bank_id = bank.bank_id and t.session_id = message.session_id
         and  t.sent_at <= message.sent_at
         and  (t.sent_at, t.message_id) < (message.sent_at, message.message_id)
       order  by t.sent_at desc, t.message_id desc
       limit  1)
      union all
      (select t.text
       from   pgrecall.message t
       where  t.bank_id = bank.bank_id and t.session_id = message.session_id
         and  t.sent_at >= message.sent_at
         and  (t.sent_at, t.message_id) > (message.sent_at, message.message_id)
       order  by t.sent_at, t.message_id
       limit  1)
    ) as b
  );
end;
$$;
comment on function pgrecall._message_context(pgrecall.bank, pgrecall.message) is
'What was said right before and after a message, where that counts by message_context_weight.';

create or replace function pgrecall._message_lexical(
  bank pgrecall.bank, message pgrecall.message, average_length double precision,
  out length real, out weights sparsevec)
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  bank.context_weight := bank.message_context_weight;
  select x.length, x.weights into length, weights
  from   pgrecall._lexical(
           bank, message.text, pgrecall._message_context(bank, message), null, average_length) as x;
end;
$$;
comment on function pgrecall._message_lexical(
  pgrecall.bank, pgrecall.message, double precision) is
'Length and weights of a message, those beside it counted, as _lexical() has them.';

create or replace function pgrecall._documents(bank text, kind text, after bigint)
returns table (id bigint, content text, context text, fact_key text)
language plpgsql stable parallel safe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  owner pgrecall.bank := pgrecall._bank(bank);
begin
  if kind = 'memory' then
    return query
    select m.memory_id, m.text, m.context, m.fact_key
    from   pgrecall.memory m
    where  m.bank_id = _documents.bank and m.memory_id > _documents.after;
  else
    return query
    select m.message_id, m.text, pgrecall._message_context(owner, m), null::text
    from   pgrecall.message m
    where  m.bank_id = _documents.bank and m.message_id > _documents.after;
  end if;
end;
$$;
comment on function pgrecall._documents(text, text, bigint) is
'Texts that the lexical arm (memory) or the message arm (message) indexes, with ids above after.';

create or replace function pgrecall._top_lexemes(bank text)
returns text[]
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return array(
    select l.lexeme
    from   pgrecall.lexeme l
    where  l.bank_id = _top_lexemes.bank and l.kind = 'memory'
    order  by l.document_count desc, l.lexeme
    limit  5000
  );
end;
$$;
comment on function pgrecall._top_lexemes(text) is
'The 5,000 lexemes that stand in most memories of a bank.';

create or replace function pgrecall._snapshot_vocabulary(bank text, is_automatic boolean)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  insert into pgrecall.vocabulary as v (bank_id, lexemes, is_automatic, taken_at)
  values (_snapshot_vocabulary.bank, pgrecall._top_lexemes(bank), is_automatic, now())
  on conflict on constraint vocabulary_pkey do update
  set lexemes      = excluded.lexemes,
      is_automatic = excluded.is_automatic,
      taken_at     = excluded.taken_at
  where not excluded.is_automatic or v.is_automatic;
end;
$$;
comment on function pgrecall._snapshot_vocabulary(text, boolean) is
'Keeps the vocabulary of a bank; automatically not over one that was asked for.';

create or replace function pgrecall._refresh(
  bank pgrecall.bank, kind text, is_full boolean)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  known    pgrecall.statistics;
  old_count   bigint := 0;
  old_length  double precision := 0;
  weighted    double precision := 0;
  after       bigint := 0;
  added_count bigint;
  added_length double precision;
  last_id     bigint;
  average     double precision;
begin
  select s.* into known from pgrecall.statistics s
  where  s.bank_id = bank.bank_id and s.kind = _refresh.kind;
  if found then
    weighted := known.weighted_length;
  end if;
  if found and not is_full then
    after := known.watermark;
    old_count := known.document_count;
    old_length := known.average_length * known.document_count;
  else
    delete from pgrecall.lexeme l where l.bank_id = bank.bank_id and l.kind = _refresh.kind;
  end if;

  -- The weights of the fields may have changed, and 0.1.0 did not normalise what is not ASCII.
  if is_full and kind = 'memory' then
    update pgrecall.memory m
    set    lexical_length = (pgrecall._lexical(bank, m.text, m.context, m.fact_key, 1)).length
    where  m.bank_id = bank.bank_id
      and  (coalesce(m.context, m.fact_key) is not null or octet_length(m.text) > length(m.text));
  elsif is_full then
    update pgrecall.message m
    set    lexical_length = (pgrecall._message_lexical(bank, m, 1)).length
    where  m.bank_id = bank.bank_id;
  end if;
  if kind = 'memory' then
    select count(*), sum(m.lexical_length::double precision), max(m.memory_id)
    into   added_count, added_length, last_id
    from   pgrecall.memory m
    where  m.bank_id = bank.bank_id and m.memory_id > after;
  else
    select count(*), sum(m.lexical_length), max(m.message_id)
    into   added_count, added_length, last_id
    from   pgrecall.message m
    where  m.bank_id = bank.bank_id and m.message_id > after;
  end if;

  insert into pgrecall.lexeme as l (bank_id, kind, lexeme, document_count)
  select bank.bank_id, _refresh.kind, x.lexeme, count(*)
  from   pgrecall._documents(bank.bank_id, _refresh.kind, after) as d,
         pgrecall._field_lexemes(bank.text_search_config::regconfig, d.content,
                                 d.context, case _refresh.kind when 'memory'
                                   then bank.context_weight else bank.message_context_weight end,
                                 d.fact_key, bank.key_weight) as x
  group  by x.lexeme
  order  by pgrecall._dimension(x.lexeme), x.lexeme
  on conflict on constraint lexeme_pkey do update
  set document_count = l.document_count + excluded.document_count;

  average := (old_length + coalesce(added_length, 0)) / greatest(old_count + added_count, 1);
  -- Weights made with a mean that is more than 5 % off are made anew; a full refresh, which may
  -- follow a change of k1 or b, leaves none.
  if average > 0 and (is_full or abs(weighted / average - 1) > 0.05) then
    weighted := average;
    if kind = 'memory' then
      update pgrecall.memory m
      set    lexical_weights = (pgrecall._lexical(
               bank, m.text, m.context, m.fact_key, average)).weights,
             lexical_document = case
               when is_full then pgrecall._lexical_document(bank, m.text, m.context, m.fact_key)
               else m.lexical_document
             end
      where  m.bank_id = bank.bank_id;
    else
      update pgrecall.message m
      set    lexical_weights = (pgrecall._message_lexical(bank, m, average)).weights
      where  m.bank_id = bank.bank_id;
    end if;
  end if;

  insert into pgrecall.statistics as s
         (bank_id, kind, document_count, average_length, weighted_length, watermark, refreshed_at)
  values (bank.bank_id, _refresh.kind, old_count + added_count, average,
          case when weighted > 0 then weighted else 1 end, coalesce(last_id, after), now())
  on conflict on constraint statistics_pkey do update
  set document_count  = excluded.document_count,
      average_length  = excluded.average_length,
      weighted_length = excluded.weighted_length,
      watermark       = excluded.watermark,
      refreshed_at    = excluded.refreshed_at;
  -- The words of the first facts say little of what the bank is about: of texts of one kind those
  -- of the first 10,000 and of 50,000 have a similarity of 0.70, those of 1,000 and 50,000 of 0.42.
  if kind = 'memory' and coalesce(known.document_count, 0) < 10000 then
    perform pgrecall._snapshot_vocabulary(bank.bank_id, true);
  end if;
end;
$$;
comment on function pgrecall._refresh(pgrecall.bank, text, boolean) is
'Brings the statistics of one kind up to date; the bank must be locked.';

create or replace function pgrecall._refresh_when_due(bank pgrecall.bank, kind text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  counted   bigint;
  after     bigint;
  threshold bigint;
  waiting   bigint;
begin
  select s.document_count, s.watermark into counted, after
  from   pgrecall.statistics s
  where  s.bank_id = bank.bank_id and s.kind = _refresh_when_due.kind;
  threshold := coalesce(counted, 0) / 10;
  -- Counting stops at the threshold, so that it costs no more than the batch did.
  select count(*) into waiting from (
    select from pgrecall.memory m
    where  _refresh_when_due.kind = 'memory'
      and  m.bank_id = bank.bank_id and m.memory_id > coalesce(after, 0)
    union all
    select from pgrecall.message m
    where  _refresh_when_due.kind = 'message'
      and  m.bank_id = bank.bank_id and m.message_id > coalesce(after, 0)
    limit threshold + 1
  ) as fresh;
  if waiting > threshold then
    perform pgrecall._refresh(bank, kind, false);
  end if;
end;
$$;
comment on function pgrecall._refresh_when_due(pgrecall.bank, text) is
'Refreshes the statistics once more than a tenth as many documents as they count are new.';

create or replace function pgrecall.refresh_statistics(bank text, is_full boolean default false)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  locked pgrecall.bank := pgrecall._locked_bank(bank);
begin
  perform pgrecall._refresh(locked, 'memory', is_full);
  perform pgrecall._refresh(locked, 'message', is_full);
end;
$$;
comment on function pgrecall.refresh_statistics(text, boolean) is
'Counts the documents retained since the last refresh; is_full counts all anew, after many were '
'forgotten or k1 or b was changed. '
'retain() does it by itself once a tenth is new. Errors: RC001.';

create or replace function pgrecall.bank_statistics(bank text)
returns table (kind text, document_count bigint, average_length double precision,
               lexeme_count bigint, waiting bigint, refreshed_at timestamptz)
language plpgsql stable parallel safe rows 2
set search_path from current
as $$
begin
  perform pgrecall._bank(bank);
  return query
  select s.kind, s.document_count, s.average_length,
         (select count(*) from pgrecall.lexeme l
          where  l.bank_id = bank_statistics.bank and l.kind = s.kind),
         case s.kind
           when 'memory' then (select count(*) from pgrecall.memory m
                               where m.bank_id = bank_statistics.bank and m.memory_id > s.watermark)
           else (select count(*) from pgrecall.message m
                 where m.bank_id = bank_statistics.bank and m.message_id > s.watermark)
         end,
         s.refreshed_at
  from   pgrecall.statistics s
  where  s.bank_id = bank_statistics.bank
  order  by s.kind;
end;
$$;
comment on function pgrecall.bank_statistics(text) is
'What BM25 knows of a bank and how many documents it has not counted yet (waiting). Errors: RC001.';

create or replace function pgrecall.snapshot_vocabulary(bank text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall._locked_bank(bank);
  perform pgrecall._snapshot_vocabulary(bank, false);
end;
$$;
comment on function pgrecall.snapshot_vocabulary(text) is
'Keeps the 5,000 most frequent lexemes of the memories of a bank: vocabulary_drift() compares with '
'them from now on. Errors: RC001.';

create or replace function pgrecall.vocabulary_drift(bank text)
returns double precision
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  old_lexemes text[];
  new_lexemes text[];
  shared      integer;
begin
  perform pgrecall._bank(bank);
  select v.lexemes into old_lexemes
  from   pgrecall.vocabulary v where v.bank_id = vocabulary_drift.bank;
  new_lexemes := pgrecall._top_lexemes(bank);
  select count(*) into shared
  from   unnest(old_lexemes) as o(lexeme) join unnest(new_lexemes) as n(lexeme) using (lexeme);
  return shared::double precision
         / nullif(cardinality(old_lexemes) + cardinality(new_lexemes) - shared, 0);
end;
$$;
comment on function pgrecall.vocabulary_drift(text) is
'Jaccard similarity, 0 to 1, of the 5,000 most frequent lexemes of the memories of a bank as '
'counted now and at its snapshot; below 0.7 the bank has come to be about something else. Null '
'before anything was counted. The snapshot is that of the first 10,000 memories, or of '
'snapshot_vocabulary(). Errors: RC001.';
