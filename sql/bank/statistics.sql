-- Statistics of the documents of a bank: for BM25 how many there are, their mean length, and in how
-- many each lexeme occurs; for the graph how many mention each entity.
--
-- Memories and messages are two collections with statistics of their own. They are a summary like
-- that of ANALYZE: writing a document does not change them. retain() counts once a tenth of the
-- documents are new, or 500 (_refresh_when_due()), and only documents above the watermark. Scores
-- between two counts use slightly old counts, which BM25 tolerates. The weights of all documents
-- are computed with one mean length, weighted_length. When the true mean is more than 5 % off, they
-- are computed again: at once in a bank of up to 500 documents, in batches by maintain()
-- (operations/maintenance.sql) in a larger one, so that no retain() waits for that. Until then
-- scores are those of BM25 with slightly other k1 and b, the same for all documents. What is erased
-- is taken out at once (bank/recount.sql). A full refresh counts everything again, with the current
-- settings of the bank. The vocabulary is a snapshot of the most frequent lexemes:
-- vocabulary_drift() compares with it.

create or replace function pgrecall_internal._document_counts(
  bank pgrecall.bank, kind text, after bigint, upto bigint)
returns table (lexeme text, documents bigint)
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select x.lexeme, count(*)
  from (
    select m.text, m.context, m.fact_key, bank.context_weight
    from   pgrecall.memory m
    where  kind = 'memory' and m.bank_id = bank.bank_id
      and  m.memory_id > after and m.memory_id <= upto
    union all
    select m.text, pgrecall_internal._message_context(bank, row(m.*)::pgrecall.message), null,
           bank.message_context_weight
    from   pgrecall.message m
    where  kind = 'message' and m.bank_id = bank.bank_id
      and  m.message_id > after and m.message_id <= upto
  ) as d
  cross  join lateral pgrecall_internal._field_lexemes(
           bank.text_search_config::regconfig, d.text, d.context, d.context_weight, d.fact_key,
           bank.key_weight) as x
  group  by x.lexeme;
end;
$$;
comment on function pgrecall_internal._document_counts is
'In how many documents of a kind with ids above after, up to upto, each lexeme occurs.';

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
    update pgrecall.memory m
    set    lexical_length = (
             pgrecall_internal._document_weights(bank, m.text, m.context, m.fact_key, 1)).length
    where  m.bank_id = bank.bank_id
      and  m.lexical_length <> (pgrecall_internal._document_weights(
             bank, m.text, m.context, m.fact_key, 1)).length::real;
  else
    update pgrecall.message m
    set    lexical_length = (
             pgrecall_internal._message_weights(bank, row(m.*)::pgrecall.message, 1)).length
    where  m.bank_id = bank.bank_id;
  end if;
end;
$$;
comment on function pgrecall_internal._refresh_lengths is
'Recounts the lexemes of all documents of a kind.';

create or replace function pgrecall_internal._refresh_weights(
  bank pgrecall.bank, kind text, average_length double precision, is_full boolean,
  after bigint, upto bigint)
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
    where  m.bank_id = bank.bank_id and m.memory_id > after and m.memory_id <= upto;
  else
    update pgrecall.message m
    set    lexical_weights = (pgrecall_internal._message_weights(
             bank, row(m.*)::pgrecall.message, average_length)).weights
    where  m.bank_id = bank.bank_id and m.message_id > after and m.message_id <= upto;
  end if;
end;
$$;
comment on function pgrecall_internal._refresh_weights is
'Recomputes the BM25 weights of the documents of a kind with ids above after, up to upto; is_full: '
'also their lexical_document.';

create or replace function pgrecall_internal._count_mentions(
  bank text, after bigint, upto bigint, ids bigint[] default null,
  counted pgrecall.mention[] default '{}')
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  insert into pgrecall_internal.entity_count as c (bank_id, entity_id, mention_count)
  select _count_mentions.bank, x.entity_id, count(*)
  from   pgrecall.mention x
  where  x.bank_id = _count_mentions.bank and x.memory_id > after and x.memory_id <= upto
    and  (ids is null or x.memory_id = any (ids))
    and  not exists (select from unnest(counted) as k
                     where k.entity_id = x.entity_id and k.memory_id = x.memory_id)
  group  by x.entity_id
  order  by x.entity_id
  on conflict on constraint entity_count_pkey do update
  set mention_count = c.mention_count + excluded.mention_count;
end;
$$;
comment on function pgrecall_internal._count_mentions is
'Adds the memories with ids above after, up to upto, to the counts of the entities that they '
'mention; with ids only these. The mentions in counted are counted already.';

create or replace function pgrecall_internal._next_documents(
  bank text, kind text, after bigint, batch_size bigint, upto bigint,
  out documents bigint, out total_length double precision, out last_id bigint)
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  upto := coalesce(upto, 9223372036854775807);
  select count(*), sum(d.lexical_length::double precision), max(d.id)
  into   documents, total_length, last_id
  from (
    (select m.memory_id as id, m.lexical_length
     from   pgrecall.memory m
     where  kind = 'memory'
       and  m.bank_id = _next_documents.bank and m.memory_id > after and m.memory_id <= upto
     order  by m.memory_id
     limit  batch_size)
    union all
    (select m.message_id, m.lexical_length
     from   pgrecall.message m
     where  kind = 'message'
       and  m.bank_id = _next_documents.bank and m.message_id > after and m.message_id <= upto
     order  by m.message_id
     limit  batch_size)
  ) as d;
end;
$$;
comment on function pgrecall_internal._next_documents is
'The first batch_size documents of a kind with ids above after, up to upto: how many there '
'are, the sum of their lengths, and the last id. batch_size, upto null: all.';

create or replace function pgrecall_internal._is_weighed(known pgrecall_internal.statistics)
returns boolean
language sql immutable parallel safe
return (known).weighed_to is null
       and coalesce(
             abs((known).weighted_length / nullif((known).average_length, 0) - 1) <= 0.05, true);
comment on function pgrecall_internal._is_weighed is
'Whether all weights were computed with one mean length that is at most 5 % off.';

create or replace function pgrecall_internal._is_weighing_due(bank text, kind text)
returns boolean
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return exists (
    select from pgrecall_internal.statistics s
    where  s.bank_id = _is_weighing_due.bank and s.kind = _is_weighing_due.kind
      and  not pgrecall_internal._is_weighed(row(s.*)::pgrecall_internal.statistics)
  );
end;
$$;
comment on function pgrecall_internal._is_weighing_due is
'Whether the weights of the documents of a kind are to be computed anew, or not yet all of them.';

create or replace function pgrecall_internal._weigh_documents(
  bank pgrecall.bank, kind text, batch_size integer)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  known pgrecall_internal.statistics;
  batch record;
begin
  select s.* into known from pgrecall_internal.statistics s
  where  s.bank_id = bank.bank_id and s.kind = _weigh_documents.kind;
  if not found or pgrecall_internal._is_weighed(known) then
    return 0;
  end if;
  if known.weighed_to is null then
    known.weighted_length := known.average_length;
    known.weighed_to := 0;
  end if;
  batch := pgrecall_internal._next_documents(
    bank.bank_id, kind, known.weighed_to, batch_size, null);
  perform pgrecall_internal._refresh_weights(
    bank, kind, known.weighted_length, false, known.weighed_to, batch.last_id);
  update pgrecall_internal.statistics s
  set    weighted_length = known.weighted_length,
         weighed_to      = case when batch.documents = batch_size then batch.last_id end
  where  s.bank_id = bank.bank_id and s.kind = _weigh_documents.kind;
  return batch.documents;
end;
$$;
comment on function pgrecall_internal._weigh_documents is
'Computes the weights of the next batch_size documents with the current mean length, where that is '
'due; returns how many. Later documents get theirs with the same mean. The bank must be locked.';

create or replace function pgrecall_internal._refresh_collection(
  bank pgrecall.bank, kind text, is_full boolean, batch_size bigint, is_alone boolean)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  known      pgrecall_internal.statistics;
  after      bigint := 0;
  old_count  bigint := 0;
  old_length double precision := 0;
  settled    bigint;
  batch      record;
  average    double precision;
  -- The mean length that retain() assumes for the first documents of a bank.
  weighted   double precision := 20;
begin
  select s.* into known from pgrecall_internal.statistics s
  where  s.bank_id = bank.bank_id and s.kind = _refresh_collection.kind;
  weighted := coalesce(known.weighted_length, weighted);
  if known.bank_id is not null and not is_full then
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

  -- A statement of its own: the next one sees what has committed until here.
  settled := case when not is_alone then pgrecall_internal._settled_id(bank) end;
  batch := pgrecall_internal._next_documents(bank.bank_id, kind, after, batch_size, settled);
  if kind = 'memory' then
    perform pgrecall_internal._count_mentions(bank.bank_id, after, batch.last_id);
  end if;
  insert into pgrecall_internal.lexeme as l (bank_id, kind, lexeme, dimension, document_count)
  select bank.bank_id, _refresh_collection.kind, x.lexeme,
         pgrecall_internal._dimension(x.lexeme) as dimension, x.documents
  from   pgrecall_internal._document_counts(
           bank, _refresh_collection.kind, after, batch.last_id) as x
  order  by dimension, x.lexeme
  on conflict on constraint lexeme_pkey do update
  set document_count = l.document_count + excluded.document_count;
  average := (old_length + coalesce(batch.total_length, 0))
             / greatest(old_count + batch.documents, 1);
  -- k1 or b may have changed.
  if is_full and average > 0 then
    weighted := average;
    known.weighed_to := null;
    perform pgrecall_internal._refresh_weights(bank, kind, average, true, 0, batch.last_id);
  end if;

  insert into pgrecall_internal.statistics as s
         (bank_id, kind, document_count, average_length, weighted_length, watermark, refreshed_at,
          weighed_to)
  values (bank.bank_id, _refresh_collection.kind, old_count + batch.documents, average, weighted,
          coalesce(batch.last_id, after), now(), known.weighed_to)
  on conflict on constraint statistics_pkey do update
  set document_count  = excluded.document_count,
      average_length  = excluded.average_length,
      weighted_length = excluded.weighted_length,
      watermark       = excluded.watermark,
      refreshed_at    = excluded.refreshed_at,
      weighed_to      = excluded.weighed_to;
  -- The vocabulary of the first facts is not yet typical of a bank: for texts of one kind the
  -- similarity between the first 10,000 and 50,000 is 0.70, between 1,000 and 50,000 0.42.
  if kind = 'memory' and coalesce(known.document_count, 0) < 10000 then
    perform pgrecall_internal._snapshot_vocabulary(bank.bank_id, true);
  end if;
  -- Only a writer that has the bank for itself weighs: documents being stored get weights of the
  -- old mean.
  if old_count + batch.documents <= greatest(batch_size, 500)
     and pgrecall_internal._is_weighing_due(bank.bank_id, kind)
     and (is_alone or pg_try_advisory_xact_lock(pgrecall_internal._lock_key(bank)))
  then
    -- So that no snapshot from before is stored with: that would be with the old mean, too.
    perform pgrecall_internal._locked_bank(bank.bank_id);
    perform pgrecall_internal._weigh_documents(bank, kind, null);
  end if;
  return batch.documents;
end;
$$;
comment on function pgrecall_internal._refresh_collection is
'Counts the documents of one kind, memory or message, that are new, at most batch_size of them; '
'is_full: all, and computes their weights. Weights of up to batch_size documents, or 500, are '
'computed anew where that is due. is_alone: nobody else writes into the bank; otherwise the caller '
'is the only one that refreshes, and what others are storing is left out. Returns how many it '
'counted.';

create or replace function pgrecall_internal._is_refresh_due(bank text, kind text)
returns boolean
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  known     pgrecall_internal.statistics;
  threshold bigint;
begin
  select s.* into known from pgrecall_internal.statistics s
  where  s.bank_id = _is_refresh_due.bank and s.kind = _is_refresh_due.kind;
  threshold := least(coalesce(known.document_count, 0) / 10, 500);
  -- Counting stops at the threshold, so it costs less than storing those documents did.
  return threshold < (
    select count(*) from (
      select from pgrecall.memory m
      where  _is_refresh_due.kind = 'memory'
        and  m.bank_id = _is_refresh_due.bank and m.memory_id > coalesce(known.watermark, 0)
      union all
      select from pgrecall.message m
      where  _is_refresh_due.kind = 'message'
        and  m.bank_id = _is_refresh_due.bank and m.message_id > coalesce(known.watermark, 0)
      limit threshold + 1
    ) as fresh
  );
end;
$$;
comment on function pgrecall_internal._is_refresh_due is
'Whether the documents of a kind that are not counted exceed a tenth of those counted, or 500.';

create or replace function pgrecall_internal._refresh_when_due(
  bank pgrecall.bank, kind text, batch_size bigint)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  -- One session at a time; what it leaves is counted later. An old snapshot would miss documents.
  if pgrecall_internal._sees_commits()
     and pgrecall_internal._is_refresh_due(bank.bank_id, kind)
     and pg_try_advisory_xact_lock(pgrecall_internal._lock_key(bank, 1))
  then
    return pgrecall_internal._refresh_collection(bank, kind, false, batch_size, false);
  end if;
  return 0;
end;
$$;
comment on function pgrecall_internal._refresh_when_due is
'Counts at most batch_size new documents where that is due; returns how many.';

create or replace function pgrecall_internal._recount(bank pgrecall.bank, kind text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  -- Where none is counted, as a transaction that does not see what others commit counts none, each
  -- has weights all the same.
  if exists (select from pgrecall_internal.statistics s
             where  s.bank_id = bank.bank_id and s.kind = _recount.kind)
     or pgrecall_internal._is_refresh_due(bank.bank_id, kind)
  then
    perform pgrecall_internal._check_isolation('refresh_statistics');
    perform pgrecall_internal._refresh_collection(bank, kind, true, null, true);
  end if;
end;
$$;
comment on function pgrecall_internal._recount is
'Counts the documents of a kind anew, where there are any, and computes their weights. The bank '
'must be locked. Errors: 25001.';

create or replace function pgrecall.refresh_statistics(bank text, is_full boolean default false)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  locked pgrecall.bank;
begin
  perform pgrecall_internal._check_isolation('refresh_statistics');
  locked := pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._refresh_collection(locked, 'memory', is_full, null, true);
  perform pgrecall_internal._refresh_collection(locked, 'message', is_full, null, true);
end;
$$;
comment on function pgrecall.refresh_statistics is
'Counts the documents stored since the last refresh; is_full counts all of them again and computes '
'all weights, after a setting of BM25 was changed: in a large bank that holds the lock for '
'minutes. retain() counts on its own once a tenth of the documents are new, or 500; maintain() '
'does the rest. Errors: RC001, 25001 isolation level above read committed.';

create or replace function pgrecall.bank_statistics(bank text)
returns setof pgrecall.bank_statistic
language plpgsql stable parallel unsafe rows 2
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
         s.refreshed_at,
         pgrecall_internal._is_weighed(row(s.*)::pgrecall_internal.statistics)
  from   pgrecall_internal.statistics s
  where  s.bank_id = bank_statistics.bank
  order  by s.kind;
end;
$$;
comment on function pgrecall.bank_statistics is
'The statistics of a bank that BM25 uses, for memories and for messages, and how many documents '
'they do not count yet (waiting). is_weighed: the stored weights were all computed with that mean '
'length, or one within 5 %; otherwise maintain() has work. Errors: RC001.';

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
