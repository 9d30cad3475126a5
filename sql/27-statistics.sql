-- Statistics of the documents of a bank: for BM25 how many there are, their mean length, and in how
-- many each lexeme occurs; for the graph how many mention each entity.
--
-- Memories and messages are two collections with statistics of their own. They are a summary like
-- that of ANALYZE: writing a document does not change them. retain() refreshes them once a tenth of
-- the documents is new (_refresh_when_due()), and only counts documents above the watermark.
-- Scores between two refreshes use slightly old counts, which BM25 tolerates.
-- A full refresh counts everything again, with the current settings of the bank.
-- The vocabulary is a snapshot of the most frequent lexemes: vocabulary_drift() compares with it.

create or replace function pgrecall_internal._documents(bank text, kind text, after bigint)
returns table (id bigint, content text, context text, fact_key text)
language plpgsql stable parallel safe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  owner pgrecall.bank := pgrecall_internal._bank(bank);
begin
  if kind = 'memory' then
    return query
    select m.memory_id, m.text, m.context, m.fact_key
    from   pgrecall.memory m
    where  m.bank_id = _documents.bank and m.memory_id > _documents.after;
  else
    return query
    select m.message_id, m.text, pgrecall_internal._message_context(owner, m), null::text
    from   pgrecall.message m
    where  m.bank_id = _documents.bank and m.message_id > _documents.after;
  end if;
end;
$$;
comment on function pgrecall_internal._documents is
'The texts that the lexical arm (memory) or the message arm (message) indexes, of documents with '
'ids above after.';

create or replace function pgrecall_internal._top_lexemes(bank text)
returns text[]
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return array(
    select l.lexeme
    from   pgrecall_internal.lexeme l
    where  l.bank_id = _top_lexemes.bank and l.kind = 'memory'
    order  by l.document_count desc, l.lexeme
    limit  5000
  );
end;
$$;
comment on function pgrecall_internal._top_lexemes is
'The 5,000 lexemes that occur in the most memories of a bank.';

create or replace function pgrecall_internal._snapshot_vocabulary(bank text, is_automatic boolean)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  insert into pgrecall_internal.vocabulary as v (bank_id, lexemes, is_automatic, taken_at)
  values (_snapshot_vocabulary.bank, pgrecall_internal._top_lexemes(bank), is_automatic, now())
  on conflict on constraint vocabulary_pkey do update
  set lexemes      = excluded.lexemes,
      is_automatic = excluded.is_automatic,
      taken_at     = excluded.taken_at
  where not excluded.is_automatic or v.is_automatic;
end;
$$;
comment on function pgrecall_internal._snapshot_vocabulary is
'Stores the vocabulary of a bank. An automatic snapshot does not replace a manual one.';

create or replace function pgrecall_internal._refresh_lengths(bank pgrecall.bank, kind text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  if kind = 'memory' then
    -- Only documents whose length can differ: field weights may have changed, and 0.1.0 did not
    -- normalise texts that are not ASCII.
    update pgrecall.memory m
    set    lexical_length = (
             pgrecall_internal._document_weights(bank, m.text, m.context, m.fact_key, 1)).length
    where  m.bank_id = bank.bank_id
      and  (coalesce(m.context, m.fact_key) is not null or octet_length(m.text) > length(m.text));
  else
    update pgrecall.message m
    set    lexical_length = (pgrecall_internal._message_weights(bank, m, 1)).length
    where  m.bank_id = bank.bank_id;
  end if;
end;
$$;
comment on function pgrecall_internal._refresh_lengths is
'Recounts the lexemes of all documents of a kind.';

create or replace function pgrecall_internal._refresh_weights(
  bank pgrecall.bank, kind text, average_length double precision, is_full boolean)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  if kind = 'memory' then
    update pgrecall.memory m
    set    lexical_weights = (pgrecall_internal._document_weights(
             bank, m.text, m.context, m.fact_key, average_length)).weights,
           lexical_document = case
             when is_full
               then pgrecall_internal._lexical_document(bank, m.text, m.context, m.fact_key)
             else m.lexical_document
           end
    where  m.bank_id = bank.bank_id;
  else
    update pgrecall.message m
    set    lexical_weights =
             (pgrecall_internal._message_weights(bank, m, average_length)).weights
    where  m.bank_id = bank.bank_id;
  end if;
end;
$$;
comment on function pgrecall_internal._refresh_weights is
'Recomputes the BM25 weights of all documents of a kind; is_full: also their lexical_document.';

create or replace function pgrecall_internal._count_lexemes(
  bank pgrecall.bank, kind text, after bigint)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  insert into pgrecall_internal.lexeme as l (bank_id, kind, lexeme, document_count)
  select bank.bank_id, _count_lexemes.kind, x.lexeme, count(*)
  from   pgrecall_internal._documents(bank.bank_id, _count_lexemes.kind, after) as d
  cross  join lateral pgrecall_internal._field_lexemes(
           bank.text_search_config::regconfig, d.content, d.context,
           case _count_lexemes.kind when 'memory'
             then bank.context_weight else bank.message_context_weight end,
           d.fact_key, bank.key_weight) as x
  group  by x.lexeme
  order  by pgrecall_internal._dimension(x.lexeme), x.lexeme
  on conflict on constraint lexeme_pkey do update
  set document_count = l.document_count + excluded.document_count;
end;
$$;
comment on function pgrecall_internal._count_lexemes is
'Adds the documents with ids above after to the counts of their lexemes.';

create or replace function pgrecall_internal._count_mentions(bank text, after bigint)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  insert into pgrecall_internal.entity_count as c (bank_id, entity_id, mention_count)
  select _count_mentions.bank, x.entity_id, count(*)
  from   pgrecall.mention x
  where  x.bank_id = _count_mentions.bank and x.memory_id > after
  group  by x.entity_id
  order  by x.entity_id
  on conflict on constraint entity_count_pkey do update
  set mention_count = c.mention_count + excluded.mention_count;
end;
$$;
comment on function pgrecall_internal._count_mentions is
'Adds the memories with ids above after to the counts of the entities that they mention.';

create or replace function pgrecall_internal._refresh_collection(
  bank pgrecall.bank, kind text, is_full boolean)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  known        pgrecall_internal.statistics;
  old_count    bigint := 0;
  old_length   double precision := 0;
  weighted     double precision := 0;
  after        bigint := 0;
  added_count  bigint;
  added_length double precision;
  last_id      bigint;
  average      double precision;
begin
  select s.* into known from pgrecall_internal.statistics s
  where  s.bank_id = bank.bank_id and s.kind = _refresh_collection.kind;
  if found then
    weighted := known.weighted_length;
  end if;
  if found and not is_full then
    after := known.watermark;
    old_count := known.document_count;
    old_length := known.average_length * known.document_count;
  else
    delete from pgrecall_internal.lexeme l
    where  l.bank_id = bank.bank_id and l.kind = _refresh_collection.kind;
    delete from pgrecall_internal.entity_count c
    where  c.bank_id = bank.bank_id and _refresh_collection.kind = 'memory';
  end if;
  if is_full then
    perform pgrecall_internal._refresh_lengths(bank, kind);
  end if;

  if kind = 'memory' then
    select count(*), sum(m.lexical_length::double precision), max(m.memory_id)
    into   added_count, added_length, last_id
    from   pgrecall.memory m
    where  m.bank_id = bank.bank_id and m.memory_id > after;
    perform pgrecall_internal._count_mentions(bank.bank_id, after);
  else
    select count(*), sum(m.lexical_length), max(m.message_id)
    into   added_count, added_length, last_id
    from   pgrecall.message m
    where  m.bank_id = bank.bank_id and m.message_id > after;
  end if;
  perform pgrecall_internal._count_lexemes(bank, kind, after);

  average := (old_length + coalesce(added_length, 0)) / greatest(old_count + added_count, 1);
  -- Weights are recomputed when the mean used for them is more than 5 % off, and by every full
  -- refresh, which may follow a change of k1 or b.
  if average > 0 and (is_full or abs(weighted / average - 1) > 0.05) then
    weighted := average;
    perform pgrecall_internal._refresh_weights(bank, kind, average, is_full);
  end if;

  insert into pgrecall_internal.statistics as s
         (bank_id, kind, document_count, average_length, weighted_length, watermark, refreshed_at)
  values (bank.bank_id, _refresh_collection.kind, old_count + added_count, average,
          case when weighted > 0 then weighted else 1 end, coalesce(last_id, after), now())
  on conflict on constraint statistics_pkey do update
  set document_count  = excluded.document_count,
      average_length  = excluded.average_length,
      weighted_length = excluded.weighted_length,
      watermark       = excluded.watermark,
      refreshed_at    = excluded.refreshed_at;
  -- The vocabulary of the first facts is not yet typical of a bank: for texts of one kind the
  -- similarity between the first 10,000 and 50,000 is 0.70, between 1,000 and 50,000 0.42.
  if kind = 'memory' and coalesce(known.document_count, 0) < 10000 then
    perform pgrecall_internal._snapshot_vocabulary(bank.bank_id, true);
  end if;
end;
$$;
comment on function pgrecall_internal._refresh_collection is
'Brings the statistics of one kind, memory or message, up to date; the bank must be locked.';

create or replace function pgrecall_internal._refresh_when_due(bank pgrecall.bank, kind text)
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
  from   pgrecall_internal.statistics s
  where  s.bank_id = bank.bank_id and s.kind = _refresh_when_due.kind;
  threshold := coalesce(counted, 0) / 10;
  -- Counting stops at the threshold, so it costs less than storing those documents did.
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
    perform pgrecall_internal._refresh_collection(bank, kind, false);
  end if;
end;
$$;
comment on function pgrecall_internal._refresh_when_due is
'Refreshes the statistics when uncounted documents exceed a tenth of those counted.';

create or replace function pgrecall.refresh_statistics(bank text, is_full boolean default false)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  locked pgrecall.bank := pgrecall_internal._locked_bank(bank);
begin
  perform pgrecall_internal._refresh_collection(locked, 'memory', is_full);
  perform pgrecall_internal._refresh_collection(locked, 'message', is_full);
end;
$$;
comment on function pgrecall.refresh_statistics is
'Counts the documents stored since the last refresh; is_full counts all of them again, after many '
'were forgotten or a setting of BM25 was changed. retain() refreshes on its own once a tenth of '
'the documents is new. Errors: RC001.';

create or replace function pgrecall.bank_statistics(bank text)
returns setof pgrecall.bank_statistic
language plpgsql stable parallel safe rows 2
set search_path from current
as $$
begin
  perform pgrecall_internal._bank(bank);
  return query
  select s.kind, s.document_count, s.average_length,
         (select count(*) from pgrecall_internal.lexeme l
          where  l.bank_id = bank_statistics.bank and l.kind = s.kind),
         case s.kind
           when 'memory' then (select count(*) from pgrecall.memory m
                               where m.bank_id = bank_statistics.bank and m.memory_id > s.watermark)
           else (select count(*) from pgrecall.message m
                 where m.bank_id = bank_statistics.bank and m.message_id > s.watermark)
         end,
         s.refreshed_at
  from   pgrecall_internal.statistics s
  where  s.bank_id = bank_statistics.bank
  order  by s.kind;
end;
$$;
comment on function pgrecall.bank_statistics is
'The statistics of a bank that BM25 uses, for memories and for messages, and how many documents '
'they do not count yet (waiting). Errors: RC001.';

create or replace function pgrecall.snapshot_vocabulary(bank text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._snapshot_vocabulary(bank, false);
end;
$$;
comment on function pgrecall.snapshot_vocabulary is
'Stores the 5,000 most frequent lexemes of the memories of a bank: vocabulary_drift() compares '
'with them from now on. Errors: RC001.';

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
  perform pgrecall_internal._bank(bank);
  select v.lexemes into old_lexemes
  from   pgrecall_internal.vocabulary v where v.bank_id = vocabulary_drift.bank;
  new_lexemes := pgrecall_internal._top_lexemes(bank);
  select count(*) into shared
  from   unnest(old_lexemes) as o(lexeme) join unnest(new_lexemes) as n(lexeme) using (lexeme);
  return shared::double precision
         / nullif(cardinality(old_lexemes) + cardinality(new_lexemes) - shared, 0);
end;
$$;
comment on function pgrecall.vocabulary_drift is
'Jaccard similarity, 0 to 1, of the 5,000 most frequent lexemes of the memories of a bank as '
'counted now and at its snapshot. Below 0.7 the subject of the bank has changed. Null before the '
'first count. The snapshot is that of the first 10,000 memories, or of snapshot_vocabulary(). '
'Errors: RC001.';
