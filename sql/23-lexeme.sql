create or replace function pgrecall.lexemes(config regconfig, content text)
returns table (lexeme text, frequency integer)
language sql immutable parallel safe
begin atomic
  select u.lexeme, sum(u.frequency)::integer
  from (
    -- Words, those inside identifiers included: max_client_conn is also max, client and conn.
    select w.lexeme, cardinality(w.positions)
    from   unnest(to_tsvector(
             config, regexp_replace(content, '[-_./@:+#]+(?=[[:alnum:]])', ' ', 'g')
           )) as w
    union all
    -- Identifiers, codes, dates, addresses as typed.
    select lower(i.match[1]), 1
    from   regexp_matches(content, '[[:alnum:]]+(?:[-_./@:+#]+[[:alnum:]]+)+', 'g') as i(match)
    where  length(i.match[1]) <= 200
  ) as u(lexeme, frequency)
  group by u.lexeme;
end;
comment on function pgrecall.lexemes(regconfig, text) is
'The lexemes of a text and how often each stands in it: words as the configuration stems them, and '
'identifiers as typed.';

create or replace function pgrecall._dimension(lexeme text)
returns integer
language sql immutable parallel safe
return (hashtextextended(lexeme, 0) & 9223372036854775807) % 1000000000 + 1;
comment on function pgrecall._dimension(text) is
'Dimension of a lexeme in lexical_weights, 1 to 1,000,000,000.';

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
  bank pgrecall.bank, content text, average_length double precision,
  out length integer, out weights sparsevec)
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  dimensions  integer[];
  frequencies integer[];
begin
  select coalesce(array_agg(pgrecall._dimension(l.lexeme)), '{}'),
         coalesce(array_agg(l.frequency), '{}'),
         coalesce(sum(l.frequency), 0)
  into   dimensions, frequencies, _lexical.length
  from   pgrecall.lexemes(bank.text_search_config::regconfig, content) as l;

  weights := pgrecall._to_sparsevec(dimensions, array(
    select tf / (tf + bank.bm25_k1 * (1 - bank.bm25_b + bank.bm25_b * length / average_length))
    from   unnest(frequencies) with ordinality as u(tf, position)
    order  by position
  ));
end;
$$;
comment on function pgrecall._lexical(pgrecall.bank, text, double precision) is
'Length of a text in lexemes and its BM25 weights tf / (tf + k1 (1 - b + b length / average)), '
'without the IDF (Robertson and Zaragoza 2009, eq. 3.15; the constant factor k1 + 1 left out).';

create or replace function pgrecall._lexical_content(content text, context text, fact_key text)
returns text
language sql immutable parallel safe
return concat_ws(' ', content, context, fact_key);
comment on function pgrecall._lexical_content(text, text, text) is
'What the lexical arm finds a memory by.';

create or replace function pgrecall._documents(bank text, kind text, after bigint)
returns table (id bigint, content text)
language plpgsql stable parallel safe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  if kind = 'memory' then
    return query
    select m.memory_id, pgrecall._lexical_content(m.text, m.context, m.fact_key)
    from   pgrecall.memory m
    where  m.bank_id = _documents.bank and m.memory_id > _documents.after;
  else
    return query
    select m.message_id, m.text
    from   pgrecall.message m
    where  m.bank_id = _documents.bank and m.message_id > _documents.after;
  end if;
end;
$$;
comment on function pgrecall._documents(text, text, bigint) is
'Texts that the lexical arm (memory) or the message arm (message) indexes, with ids above after.';

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
  added_length bigint;
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

  if kind = 'memory' then
    select count(*), sum(m.lexical_length), max(m.memory_id)
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
         pgrecall.lexemes(bank.text_search_config::regconfig, d.content) as x
  group  by x.lexeme
  order  by x.lexeme
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
               bank, pgrecall._lexical_content(m.text, m.context, m.fact_key), average)).weights
      where  m.bank_id = bank.bank_id;
    else
      update pgrecall.message m
      set    lexical_weights = (pgrecall._lexical(bank, m.text, average)).weights
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
