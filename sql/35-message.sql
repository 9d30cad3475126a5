create or replace function pgrecall.log_session(
  bank text, session text, started_at timestamptz default now(), ended_at timestamptz default null)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall._locked_bank(bank);
  if session is null or session = '' or length(session) > 500 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('"%s" cannot name a session', left(session, 50)),
      hint    = 'Use 1 to 500 characters.';
  end if;
  -- The call that fills in the end need not know the start.
  started_at := least(started_at, (
    select s.started_at from pgrecall.session s
    where  s.bank_id = log_session.bank and s.session_id = log_session.session));
  if started_at is null or ended_at < started_at then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('session "%s" cannot last from %s to %s', session,
                       coalesce(started_at::text, 'null'), ended_at),
      hint    = 'A session ends after it started.';
  end if;
  insert into pgrecall.session as s (bank_id, session_id, started_at, ended_at)
  values (log_session.bank, log_session.session, log_session.started_at, log_session.ended_at)
  on conflict on constraint session_pkey do update
  set started_at = least(s.started_at, excluded.started_at),
      ended_at   = coalesce(excluded.ended_at, s.ended_at);
end;
$$;
comment on function pgrecall.log_session(text, text, timestamptz, timestamptz) is
'Notes that a conversation began, and when known that it ended; a second call fills in the end. '
'Errors: RC001, 22023.';

create or replace function pgrecall.last_session_end(bank text, before timestamptz default now())
returns timestamptz
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  perform pgrecall._bank(bank);
  return (
    select s.ended_at
    from   pgrecall.session s
    where  s.bank_id = last_session_end.bank and s.ended_at < last_session_end.before
    order  by s.ended_at desc
    limit  1
  );
end;
$$;
comment on function pgrecall.last_session_end(text, timestamptz) is
'When the last conversation that was over by then ended; null when there was none. Errors: RC001.';

create or replace function pgrecall.retain_messages(bank text, messages jsonb)
returns table (index integer, message_id bigint, is_new boolean)
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
set timezone = 'UTC'
as $$
declare
  locked      pgrecall.bank := pgrecall._locked_bank(bank);
  average     double precision;
  hashes      bytea[];
  new_ids     bigint[];
  message     jsonb;
  n           integer;
begin
  perform pgrecall._check_array('messages', messages);
  for message, n in
    select m.value, m.n - 1 from jsonb_array_elements(messages) with ordinality as m(value, n)
  loop
    perform pgrecall._check_keys(format('messages[%s]', n), message,
                                 array['session', 'role', 'speaker', 'text', 'sent_at']);
    perform pgrecall._check_string(format('messages[%s].text', n), message -> 'text', true);
    perform pgrecall._check_string(
      format('messages[%s].session', n), message -> 'session', longest => 500);
    perform pgrecall._check_string(format('messages[%s].speaker', n), message -> 'speaker');
    perform pgrecall._check_time(format('messages[%s].sent_at', n), message -> 'sent_at', false);
    if coalesce(message ->> 'role', 'user') not in ('user', 'assistant', 'system', 'tool') then
      perform pgrecall._invalid_fact(
        format('messages[%s].role', n), format('unknown role %s', message -> 'role'),
        'Roles: user, assistant, system, tool.');
    end if;
  end loop;

  insert into pgrecall.session (bank_id, session_id, started_at)
  select retain_messages.bank, m.value ->> 'session',
         min(coalesce((m.value ->> 'sent_at')::timestamptz, now()))
  from   jsonb_array_elements(messages) as m
  where  m.value ->> 'session' is not null
  group  by m.value ->> 'session'
  on conflict on constraint session_pkey do nothing;

  hashes := array(
    select sha256(convert_to(jsonb_build_array(
             m.value ->> 'session', coalesce(m.value ->> 'role', 'user'), m.value ->> 'speaker',
             m.value ->> 'text', extract(epoch from (m.value ->> 'sent_at')::timestamptz)
           )::text, 'UTF8'))
    from   jsonb_array_elements(messages) with ordinality as m(value, n)
    order  by m.n
  );
  select s.weighted_length into average
  from   pgrecall.statistics s
  where  s.bank_id = retain_messages.bank and s.kind = 'message';

  with stored as (
    insert into pgrecall.message as t
           (bank_id, session_id, role, speaker, text, sent_at, content_hash,
            lexical_length, lexical_weights)
    select retain_messages.bank, i.value ->> 'session', coalesce(i.value ->> 'role', 'user'),
           i.value ->> 'speaker', i.value ->> 'text',
           coalesce((i.value ->> 'sent_at')::timestamptz, now()), i.content_hash,
           x.length, x.weights
    from (
      select distinct on (hashes[m.n]) hashes[m.n] as content_hash, m.value, m.n as position
      from   jsonb_array_elements(messages) with ordinality as m(value, n)
      order  by hashes[m.n], m.n
    ) as i,
    pgrecall._lexical(locked, i.value ->> 'text', null, null, coalesce(average, 20)) as x
    order  by i.position
    on conflict (bank_id, content_hash) do nothing
    returning t.message_id
  )
  select coalesce(array_agg(s.message_id), '{}') into new_ids from stored s;
  if locked.message_context_weight > 0 then
    perform pgrecall._weigh_beside(locked, new_ids, coalesce(average, 20));
  end if;
  perform pgrecall._refresh_when_due(locked, 'message');

  return query
  select h.n::integer - 1, t.message_id,
         t.message_id = any (new_ids)
         and row_number() over (partition by t.message_id order by h.n) = 1
  from   unnest(hashes) with ordinality as h(content_hash, n)
  cross  join lateral (
    select m.message_id
    from   pgrecall.message m
    where  m.bank_id = retain_messages.bank and m.content_hash = h.content_hash
    limit  1
  ) as t
  order  by h.n;
end;
$$;
comment on function pgrecall.retain_messages(text, jsonb) is
'Writes raw messages, an array of objects: text (required), session, role (user), speaker, '
'sent_at. '
'All or nothing; a message that is there already is not stored again. One row a message, in order; '
'index counts from 0. '
'Errors: RC001, RC003 naming message and field.';

create or replace function pgrecall._weigh_beside(
  bank pgrecall.bank, message_ids bigint[], average_length double precision)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  update pgrecall.message t
  set    (lexical_length, lexical_weights) = (
           select x.length, x.weights
           from   pgrecall._message_lexical(bank, t, average_length) as x)
  where  t.bank_id = bank.bank_id and t.session_id is not null
    and  t.message_id in (
           select b.message_id
           from   unnest(message_ids) as u(message_id)
           cross  join lateral pgrecall.message_context(bank.bank_id, u.message_id, 1, 1) as b);
end;
$$;
comment on function pgrecall._weigh_beside(pgrecall.bank, bigint[], double precision) is
'Weighs messages anew, and those right before and after them, whose neighbours they have become.';

create or replace function pgrecall.message_context(
  bank text, message_id bigint, before integer default 2, after integer default 2)
returns setof pgrecall.turn
language plpgsql stable parallel safe rows 5
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  asked pgrecall.message;
begin
  perform pgrecall._bank(bank);
  perform pgrecall._check_range('before', before, 0, 1000);
  perform pgrecall._check_range('after', after, 0, 1000);
  select t.* into asked
  from   pgrecall.message t
  where  t.bank_id = message_context.bank and t.message_id = message_context.message_id;
  if not found then
    raise exception using
      errcode = 'RC010',
      message = format('bank "%s" has no message %s', bank, coalesce(message_id::text, 'null')),
      hint    = 'Pass the id of a row of kind "message" that a recall on the same bank returned.';
  end if;

  return query
  select c.place::integer, c.message_id, c.session_id, c.role, c.speaker, c.text, c.sent_at
  from (
    (select -row_number() over (order by t.sent_at desc, t.message_id desc) as place, t.*
     from   pgrecall.message t
     where  t.bank_id = message_context.bank and t.session_id = asked.session_id
       and  t.sent_at <= asked.sent_at
       and  (t.sent_at, t.message_id) < (asked.sent_at, asked.message_id)
     order  by t.sent_at desc, t.message_id desc
     limit  message_context.before)
    union all
    (select 0, t.*
     from   pgrecall.message t
     where  t.bank_id = message_context.bank and t.message_id = asked.message_id)
    union all
    (select row_number() over (order by t.sent_at, t.message_id), t.*
     from   pgrecall.message t
     where  t.bank_id = message_context.bank and t.session_id = asked.session_id
       and  t.sent_at >= asked.sent_at
       and  (t.sent_at, t.message_id) > (asked.sent_at, asked.message_id)
     order  by t.sent_at, t.message_id
     limit  message_context.after)
  ) as c
  order  by c.place;
end;
$$;
comment on function pgrecall.message_context(text, bigint, integer, integer) is
'A message with those said before and after it in the same session, in order; alone when it '
'belongs to no session. Errors: RC001, RC010 unknown message, 22023.';
