-- Forgetting raw messages: by id, by session, by time.
--
-- forget_messages() erases, and takes what it erased out of the statistics that BM25 uses
-- (bank/recount.sql). Where a bank sets message_context_weight, the messages beside an erased one
-- lose its words, too.
create or replace function pgrecall_internal._forget_messages(
  bank pgrecall.bank, message_ids bigint[], sessions text[], is_guarded boolean default false)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  known      pgrecall_internal.statistics;
  beside     bigint[] := '{}';
  before     record;
  after      record;
  counted    bigint;
  removed    bigint;
begin
  if not (is_guarded or pgrecall_internal._sees_commits()) then
    begin
      return pgrecall_internal._forget_messages(bank, message_ids, sessions, true);
    exception when foreign_key_violation then
      perform pgrecall_internal._check_snapshot(bank.bank_id);
    end;
  end if;
  select s.* into known
  from   pgrecall_internal.statistics s
  where  s.bank_id = bank.bank_id and s.kind = 'message';
  -- The words of a message count for those beside it.
  if bank.message_context_weight > 0 then
    beside := array(
      select distinct c.message_id
      from   unnest(message_ids) as u(message_id)
      cross  join lateral pgrecall.message_context(bank.bank_id, u.message_id, 1, 1) as c
      where  c.message_id <> all (message_ids)
    );
  end if;
  before := pgrecall_internal._counted_messages(
    bank, message_ids || beside, known.watermark, -1);
  with gone as (
    delete from pgrecall.message m
    where  m.bank_id = bank.bank_id and m.message_id = any (message_ids)
    returning m.message_id
  )
  select count(*), count(*) filter (where g.message_id <= known.watermark)
  into   removed, counted
  from   gone g;
  delete from pgrecall.session s
  where  s.bank_id = bank.bank_id and s.session_id = any (sessions)
    and  not exists (select from pgrecall.message m
                     where m.bank_id = bank.bank_id and m.session_id = s.session_id);
  if known.bank_id is null then
    return removed;
  end if;

  if beside <> '{}' then
    perform pgrecall_internal._refresh_neighbour_weights(bank, beside, known.weighted_length);
  end if;
  after := pgrecall_internal._counted_messages(bank, beside, known.watermark, 1);
  perform pgrecall_internal._recount_lexemes(
    bank, 'message', before.lexemes || after.lexemes, before.changes || after.changes);
  perform pgrecall_internal._recount_documents(
    bank, 'message', -counted, before.total_length + after.total_length);
  return removed;
end;
$$;
comment on function pgrecall_internal._forget_messages is
'Worker of forget_messages(): erases messages, and the given sessions that have none left, and '
'takes both out of the statistics. The caller has locked the bank. Errors: 40001 a session has '
'messages that a snapshot hides. is_guarded: the caller catches that.';

create or replace function pgrecall.forget_messages(
  bank        text,
  message_ids bigint[] default null,
  session     text default null,
  during      pgrecall_internal.period default null,
  dry_run     boolean default false)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  sent_in  tstzrange := pgrecall_internal._range_of_period(during);
  locked   pgrecall.bank;
  ids      bigint[];
  sessions text[];
begin
  locked := pgrecall_internal._bank(bank);
  if num_nonnulls(message_ids, session, during) = 0 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'no condition says what to forget',
      hint    = 'Pass message_ids =>, session => or during =>, such as ''[,2026-01-01)''.';
  end if;
  if dry_run is not true then
    locked := pgrecall_internal._locked_bank(bank);
  end if;
  select coalesce(array_agg(m.message_id), '{}'),
         coalesce(array_agg(distinct m.session_id) filter (where m.session_id is not null), '{}')
  into   ids, sessions
  from   pgrecall.message m
  where  m.bank_id = forget_messages.bank
    and  (message_ids is null or m.message_id = any (message_ids))
    and  (session is null or m.session_id = session)
    and  (sent_in is null or m.sent_at <@ sent_in);
  if dry_run then
    return cardinality(ids);
  end if;
  -- A session that was only logged has no message.
  if num_nonnulls(message_ids, during) = 0 then
    sessions := sessions || session;
  end if;
  return pgrecall_internal._forget_messages(locked, ids, sessions);
end;
$$;
comment on function pgrecall.forget_messages is
'Erases the raw messages that meet all conditions given: these ids, this session, sent in this '
'window, ''[,2026-01-01)'' for all before 2026. Returns how many; dry_run only counts them. A '
'session that is left without messages is erased, too, so that it no longer counts as a '
'conversation. Facts that were extracted from them stay: forget_where(source_id =>). The BM25 '
'counts change at once; in a large bank the weights follow with maintain(). Errors: RC001, 22023 '
'no condition.';
