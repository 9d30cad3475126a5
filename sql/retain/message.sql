-- Raw messages and the sessions they belong to.
--
-- Messages are verbatim; facts are extracted from them. retain_messages() reads each message once
-- into a typed row, stores those that the bank does not hold yet and opens the sessions that they
-- name. message_context() returns a message with its neighbours.
-- Where a bank sets message_context_weight, the words of the messages right before and after one
-- also count for it: storing a message then changes the weights of its neighbours. log_session()
-- stores the bounds of a conversation, for questions such as "since we last talked".

create or replace function pgrecall.log_session(
  bank text, session text, started_at timestamptz default now(), ended_at timestamptz default null)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall_internal._shared_bank(bank);
  if session is null or session = '' or length(session) > 500 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('"%s" cannot name a session', left(session, 50)),
      hint    = 'Use 1 to 500 characters.';
  end if;
  -- A call that sets the end need not repeat the start.
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
comment on function pgrecall.log_session is
'Records when a conversation began and, if known, when it ended; a second call sets the end. '
'Errors: RC001, 22023.';

create or replace function pgrecall.last_session_end(bank text, before timestamptz default now())
returns timestamptz
language plpgsql stable parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall_internal._bank(bank);
  return (
    select s.ended_at
    from   pgrecall.session s
    where  s.bank_id = last_session_end.bank and s.ended_at < last_session_end.before
    order  by s.ended_at desc
    limit  1
  );
end;
$$;
comment on function pgrecall.last_session_end is
'End of the last conversation that ended before a time; null: none. Errors: RC001.';

create or replace function pgrecall_internal._content_text(place text, content jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
begin
  if jsonb_typeof(content) <> 'array' then
    return content;
  end if;
  if jsonb_path_exists(content, '$[*] ? (@.type() != "object")') then
    perform pgrecall_internal._raise_invalid_field(
      place, 'a part is not an object', 'Write [{"type": "text", "text": "..."}], or a string.');
  end if;
  return to_jsonb((
    select string_agg(p.value ->> 'text', E'\n' order by p.n)
    from   jsonb_array_elements(content) with ordinality as p(value, n)
    where  p.value ->> 'text' <> ''));
end;
$$;
comment on function pgrecall_internal._content_text is
'The text in field content of a chat API''s message: a string, or the texts of its parts, one a '
'line. Errors: RC003.';

create or replace function pgrecall_internal._read_message(message jsonb, index integer)
returns pgrecall_internal.message_row
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  place text := format('messages[%s]', index);
  body  jsonb;
  read  pgrecall_internal.message_row;
begin
  -- The last six stand in messages of chat APIs, and hold no text.
  perform pgrecall_internal._check_keys(place, message, array[
    'session', 'role', 'speaker', 'text', 'sent_at', 'content', 'name',
    'tool_calls', 'tool_call_id', 'function_call', 'refusal', 'annotations', 'audio']);
  read.n := index + 1;
  if message ? 'content' and message ? 'text' then
    perform pgrecall_internal._raise_invalid_field(
      place || '.content', 'it stands beside text', 'Give one of the two.');
  elsif message ? 'content'
        or not message ? 'text'
           and message ?| array['tool_calls', 'function_call', 'refusal', 'audio']
  then
    body := pgrecall_internal._content_text(place || '.content', message -> 'content');
    if coalesce(body, 'null') in ('null', '""') then
      perform pgrecall_internal._raise_invalid_field(
        place || '.content', 'there is no text',
        'Leave out messages without text, such as those that only call tools.');
    end if;
    read.text := pgrecall_internal._string_field(place || '.content', body, true);
  else
    read.text := pgrecall_internal._string_field(place || '.text', message -> 'text', true);
  end if;
  read.session_id := pgrecall_internal._string_field(
    place || '.session', message -> 'session', longest => 500);
  read.speaker := coalesce(
    pgrecall_internal._string_field(place || '.speaker', message -> 'speaker'),
    pgrecall_internal._string_field(place || '.name', message -> 'name'));
  read.sent_at := pgrecall_internal._time_field(place || '.sent_at', message -> 'sent_at');
  read.role := case message ->> 'role'
    when 'developer' then 'system' when 'function' then 'tool'
    else coalesce(message ->> 'role', 'user') end;
  if read.role not in ('user', 'assistant', 'system', 'tool') then
    perform pgrecall_internal._raise_invalid_field(
      place || '.role', format('unknown role %s', message -> 'role'),
      'Roles: user, assistant, system, tool.');
  end if;
  read.content_hash := sha256(convert_to(jsonb_build_array(
    read.session_id, read.role, read.speaker, read.text, extract(epoch from read.sent_at)
  )::text, 'UTF8'));
  return read;
end;
$$;
comment on function pgrecall_internal._read_message is
'Checks a message, the one at index (from 0), and returns it typed. content_hash is SHA-256 over '
'session, role, speaker, text, and the time where given. The fields of chat APIs are read too: '
'content for text, name for speaker, the roles developer (system) and function (tool). Errors: '
'RC003.';

create or replace function pgrecall_internal._read_messages(messages jsonb)
returns pgrecall_internal.message_row[]
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  perform pgrecall_internal._check_array('messages', messages);
  return array(
    select pgrecall_internal._read_message(m.value, m.n::integer - 1)
    from   jsonb_array_elements(messages) with ordinality as m(value, n)
    order  by m.n
  );
end;
$$;
comment on function pgrecall_internal._read_messages is
'The messages of an array, in order. Errors: RC003 naming message and field.';

create or replace function pgrecall_internal._refresh_neighbour_weights(
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
           from   pgrecall_internal._message_weights(
                    bank, row(t.*)::pgrecall.message, average_length) as x)
  where  t.bank_id = bank.bank_id and t.session_id is not null
    and  t.message_id in (
           select b.message_id
           from   unnest(message_ids) as u(message_id)
           cross  join lateral pgrecall.message_context(bank.bank_id, u.message_id, 1, 1) as b);
end;
$$;
comment on function pgrecall_internal._refresh_neighbour_weights is
'Recomputes the weights of messages and of those right before and after them: a message is '
'weighted together with its neighbours.';

create or replace function pgrecall_internal._counted_messages(
  bank pgrecall.bank, message_ids bigint[], upto bigint, sign integer,
  out lexemes text[], out changes bigint[], out total_length double precision)
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  select array_agg(c.lexeme), array_agg(sign * c.documents)
  into   lexemes, changes
  from (
    select x.lexeme, count(*) as documents
    from   (select distinct u from unnest(message_ids) as u where u <= upto) as k(id)
    cross  join lateral (
      select m.text,
             pgrecall_internal._message_context(bank, row(m.*)::pgrecall.message) as context
      from   pgrecall.message m
      where  m.bank_id = bank.bank_id and m.message_id = k.id
      limit  1
    ) as d
    cross  join lateral pgrecall_internal._field_lexemes(
             bank.text_search_config::regconfig, d.text, d.context, bank.message_context_weight,
             null, bank.key_weight) as x
    group  by x.lexeme
  ) as c;
  select sign * coalesce(sum(m.lexical_length), 0)
  into   total_length
  from   pgrecall.message m
  where  m.bank_id = bank.bank_id and m.message_id = any (message_ids) and m.message_id <= upto;
end;
$$;
comment on function pgrecall_internal._counted_messages is
'What those of the given messages whose ids are not above upto add to the statistics: in how many '
'of them each lexeme occurs, and their total length, multiplied by sign.';

create or replace function pgrecall_internal._messages_beside(
  bank text, said pgrecall_internal.message_row[])
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return array(
    select distinct b.message_id
    from   unnest(said) as s
    cross  join lateral (
      (select t.message_id
       from   pgrecall.message t
       where  t.bank_id = _messages_beside.bank and t.session_id = s.session_id
         and  t.sent_at <= coalesce(s.sent_at, now())
       order  by t.sent_at desc, t.message_id desc
       limit  1)
      union all
      (select t.message_id
       from   pgrecall.message t
       where  t.bank_id = _messages_beside.bank and t.session_id = s.session_id
         and  t.sent_at > coalesce(s.sent_at, now())
       order  by t.sent_at, t.message_id
       limit  1)
    ) as b);
end;
$$;
comment on function pgrecall_internal._messages_beside is
'The stored messages right before and after those that are about to be stored.';

create or replace function pgrecall_internal._message_ids(
  bank text, messages pgrecall_internal.message_row[])
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index and its order, also those made while a table was small.
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return array(
    select t.message_id
    from   unnest(messages) as m
    left   join lateral (
      -- Only one index provides this range in this order.
      select x.message_id
      from   pgrecall.message x
      where  x.bank_id = _message_ids.bank and x.content_hash is not null
        and  x.content_hash between m.content_hash and m.content_hash
      order  by x.content_hash
      limit  1
    ) as t on true
    order  by m.n
  );
end;
$$;
comment on function pgrecall_internal._message_ids is
'The stored messages that are equal to these, in their order.';

create or replace function pgrecall_internal._store_messages(
  bank pgrecall.bank, messages pgrecall_internal.message_row[], average_length double precision)
returns bigint[]
language plpgsql volatile parallel unsafe
set search_path from current
set extra_float_digits = 1
set plan_cache_mode = force_generic_plan
as $$
declare
  new_ids bigint[];
begin
  with stored as (
    insert into pgrecall.message as t
           (bank_id, message_id, session_id, role, speaker, text, sent_at, content_hash,
            lexical_length, lexical_weights)
    select bank.bank_id, i.message_id, i.session_id, i.role, i.speaker, i.text,
           coalesce(i.sent_at, now()), i.content_hash, x.length, x.weights
    from (
      -- Ids follow the order of the messages.
      select nextval('pgrecall.id_seq') as message_id, o.*
      from (
        select u.*
        from (
          select distinct on (m.content_hash) m.*
          from   unnest(messages) as m
          order  by m.content_hash, m.n
        ) as u
        order  by u.n
      ) as o
      offset 0
    ) as i
    cross  join lateral pgrecall_internal._weighed_document(
             bank, i.text, null, null, average_length) as x
    -- As in _store_memories().
    order  by i.content_hash
    on conflict (bank_id, content_hash) where content_hash is not null do nothing
    returning t.message_id
  )
  select coalesce(array_agg(s.message_id), '{}') into new_ids from stored s;
  return new_ids;
end;
$$;
comment on function pgrecall_internal._store_messages is
'Writes messages that the bank does not hold yet; returns their ids.';

create or replace function pgrecall.retain_messages(bank text, messages jsonb)
returns setof pgrecall.retained_message
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
set timezone = 'UTC'
as $$
declare
  locked       pgrecall.bank;
  message_rows pgrecall_internal.message_row[];
  known        pgrecall_internal.statistics;
  beside       bigint[];
  before       record;
  after        record;
  new_ids      bigint[];
  message_ids  bigint[];
begin
  locked := pgrecall_internal._bank_to_write(bank, 'pgrecall.memory', 'insert');
  message_rows := pgrecall_internal._read_messages(messages);
  if locked.message_context_weight = 0 then
    begin
      locked := pgrecall_internal._shared_bank(bank);
      if locked.message_context_weight > 0 then
        raise object_in_use;
      end if;
    exception when object_in_use then
      -- It was changed meanwhile: as in retain().
      null;
    end;
  end if;
  -- The words of a message also count for its neighbours, which others may have written.
  if locked.message_context_weight > 0 then
    locked := pgrecall_internal._locked_bank(bank);
  end if;
  insert into pgrecall.session (bank_id, session_id, started_at)
  select retain_messages.bank, m.session_id, min(coalesce(m.sent_at, now()))
  from   unnest(message_rows) as m
  where  m.session_id is not null
  group  by m.session_id
  order  by m.session_id
  on conflict on constraint session_pkey do nothing;
  -- Only where a message is earlier, so that writers of one session need not wait for one another;
  -- and in order, as above, so that none waits for who waits for it.
  with earlier as materialized (
    select x.session_id, e.started_at
    from (
      select m.session_id, min(coalesce(m.sent_at, now())) as started_at
      from   unnest(message_rows) as m
      where  m.session_id is not null
      group  by m.session_id
      order  by m.session_id
      offset 0
    ) as e
    cross  join lateral (
      select s.session_id
      from   pgrecall.session s
      where  s.bank_id = retain_messages.bank and s.session_id = e.session_id
        and  s.started_at > e.started_at
      for    no key update
    ) as x
  )
  update pgrecall.session s
  set    started_at = least(s.started_at, o.started_at)
  from   earlier o
  where  s.bank_id = retain_messages.bank and s.session_id = o.session_id
    -- The array keeps to the primary key, whatever is known of the bank.
    and  s.session_id = any (array(select x.session_id from earlier x));

  select s.* into known
  from   pgrecall_internal.statistics s
  where  s.bank_id = retain_messages.bank and s.kind = 'message';
  if locked.message_context_weight > 0 and known.watermark is not null then
    beside := pgrecall_internal._messages_beside(bank, message_rows);
    before := pgrecall_internal._counted_messages(locked, beside, known.watermark, -1);
  end if;
  new_ids := pgrecall_internal._store_messages(
    locked, message_rows, coalesce(known.weighted_length, 20));
  if locked.message_context_weight > 0 then
    perform pgrecall_internal._refresh_neighbour_weights(
      locked, new_ids, coalesce(known.weighted_length, 20));
  end if;
  if beside <> '{}' then
    after := pgrecall_internal._counted_messages(locked, beside, known.watermark, 1);
    perform pgrecall_internal._recount_lexemes(
      locked, 'message', before.lexemes || after.lexemes, before.changes || after.changes);
    perform pgrecall_internal._recount_documents(
      locked, 'message', 0, before.total_length + after.total_length);
  end if;
  perform pgrecall_internal._refresh_when_due(locked, 'message', 500 + cardinality(new_ids));

  -- Not within the query: the planner would call it as well.
  message_ids := pgrecall_internal._message_ids(bank, message_rows);
  return query
  select u.n::integer - 1, u.id,
         u.id in (select unnest(new_ids))
           and row_number() over (partition by u.id order by u.n) = 1
  from   unnest(message_ids) with ordinality as u(id, n)
  order  by u.n;
end;
$$;
comment on function pgrecall.retain_messages is
'Writes raw messages, an array of objects: text (required), session, role (user), speaker, '
'sent_at; or as chat APIs have them, {"role": "user", "content": "..."}. All or nothing. A message '
'that is already stored is not stored again. Returns one row per message, in order; index counts '
'from 0. Errors: RC001, RC003 naming message and field.';

create or replace function pgrecall.stored_messages(bank text, messages jsonb)
returns setof pgrecall.retained_message
language plpgsql stable parallel unsafe
set search_path from current
set timezone = 'UTC'
as $$
declare
  message_rows pgrecall_internal.message_row[];
begin
  perform pgrecall_internal._bank(bank);
  message_rows := pgrecall_internal._read_messages(messages);
  return query
  select r.n - 1, s.id,
         s.id is null and row_number() over (partition by r.content_hash order by r.n) = 1
  from   unnest(message_rows) with ordinality as r
  join   unnest(pgrecall_internal._message_ids(bank, message_rows)) with ordinality as s(id, n)
           on s.n = r.n
  order  by r.n;
end;
$$;
comment on function pgrecall.stored_messages is
'What retain_messages() would return for these messages: message_id is null for those that are not '
'stored yet, and is_new says which it would store. Reads only. Errors: those of retain_messages().';

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
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('before', before, 0, 1000);
  perform pgrecall_internal._check_range('after', after, 0, 1000);
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
comment on function pgrecall.message_context is
'A message with those before and after it in the same session, in order; only the message where it '
'has no session. Errors: RC001, RC010 unknown message, 22023.';
