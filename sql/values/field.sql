-- Fields of JSON objects that callers pass: checked and read in one step.
--
-- Every *_field function takes the path of a field (facts[3].text) and its value, and returns the
-- value with its SQL type; null when the field is absent or null. An invalid value raises RC003
-- with the path, so that the caller finds it in a large batch.
-- Times are read in UTC, whatever the session's time zone. Only numeric dates and timestamps are
-- accepted: "today", which PostgreSQL also accepts, would change its meaning tomorrow.

create or replace function pgrecall_internal._is_id(value text)
returns boolean
language sql immutable parallel safe
return case when value ~ '^\d{1,19}$' then value::numeric <= 9223372036854775807 else false end;
comment on function pgrecall_internal._is_id is 'Whether a text is an id: a bigint, 0 upwards.';

create or replace function pgrecall_internal._raise_invalid_field(
  place text, problem text, hint text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  raise exception using
    errcode = 'RC003',
    message = format('%s: %s', place, problem),
    hint    = hint;
end;
$$;
comment on function pgrecall_internal._raise_invalid_field is
'Raises RC003 for a field of a fact or message.';

create or replace function pgrecall_internal._check_keys(place text, value jsonb, keys text[])
returns void
language plpgsql immutable parallel safe
as $$
declare
  unknown text;
begin
  if jsonb_typeof(value) <> 'object' then
    perform pgrecall_internal._raise_invalid_field(
      place, format('expected an object, not %s', left(value::text, 80)),
      format('Its fields: %s.', array_to_string(keys, ', ')));
  end if;
  if value - keys <> '{}' then
    unknown := (select k from jsonb_object_keys(value) as k where k <> all (keys) limit 1);
    perform pgrecall_internal._raise_invalid_field(
      place || '.' || unknown, 'unknown field',
      format('Fields: %s.', array_to_string(keys, ', ')));
  end if;
end;
$$;
comment on function pgrecall_internal._check_keys is
'Raises RC003 unless a value is an object with no other keys than these.';

create or replace function pgrecall_internal._string_field(
  place text, value jsonb, is_required boolean default false, longest integer default 100000)
returns text
language plpgsql immutable parallel safe
as $$
declare
  content text := value #>> '{}';
begin
  if value is null or jsonb_typeof(value) = 'null' then
    if is_required then
      perform pgrecall_internal._raise_invalid_field(place, 'missing', 'Give it as a string.');
    end if;
  elsif jsonb_typeof(value) <> 'string' then
    perform pgrecall_internal._raise_invalid_field(
      place, format('expected a string, not %s', left(value::text, 80)),
      'Put it in double quotes.');
  elsif trim(content) = '' then
    perform pgrecall_internal._raise_invalid_field(
      place, 'it is empty', 'Leave it out, or give it a value.');
  elsif length(content) > longest then
    perform pgrecall_internal._raise_invalid_field(
      place, format('%s characters are more than %s', length(content), longest),
      case when longest = 100000 then 'Split it into several facts.' else 'Shorten it.' end);
  end if;
  return content;
end;
$$;
comment on function pgrecall_internal._string_field is
'A field that is a string of 1 to longest characters. Errors: RC003.';

create or replace function pgrecall_internal._fraction_field(place text, value jsonb)
returns real
language plpgsql immutable parallel safe
as $$
begin
  -- A real cannot hold a number below 1e-37.
  if jsonb_typeof(value) <> 'null'
     and (jsonb_typeof(value) <> 'number' or value::text::numeric not between 0 and 1
          or (value <> '0' and value::text::numeric < 1e-37))
  then
    perform pgrecall_internal._raise_invalid_field(
      place, format('expected a number from 0 to 1, not %s', left(value::text, 80)),
      '1 is certain; leave it out for that.');
  end if;
  return value #>> '{}';
end;
$$;
comment on function pgrecall_internal._fraction_field is
'A field that is a number from 0 to 1. Errors: RC003.';

create or replace function pgrecall_internal._time_field(place text, value jsonb)
returns timestamptz
language plpgsql stable parallel safe
set timezone = 'UTC'
as $$
begin
  if value is null or jsonb_typeof(value) = 'null' then
    return null;
  end if;
  if jsonb_typeof(value) <> 'string' or value #>> '{}' !~ '^\d{4,6}-\d\d-\d\d([ T]|$)'
     or not pg_input_is_valid(value #>> '{}', 'timestamptz')
  then
    perform pgrecall_internal._raise_invalid_field(
      place, format('%s is not a time', left(value::text, 80)),
      'Write 2026-03-05 or 2026-03-05T14:00Z.');
  end if;
  return value #>> '{}';
end;
$$;
comment on function pgrecall_internal._time_field is
'A field that is a timestamp, or a date, read as its first instant in UTC. Errors: RC003.';

create or replace function pgrecall_internal._span_field(place text, value jsonb)
returns tstzrange
language plpgsql stable parallel unsafe
set timezone = 'UTC'
as $$
declare
  ends jsonb := case jsonb_typeof(value) when 'array' then value else jsonb_build_array(value) end;
  span tstzrange;
begin
  if value is null or jsonb_typeof(value) = 'null' then
    return null;
  end if;
  if exists (
    select from jsonb_array_elements(ends) as e
    where  jsonb_typeof(e) not in ('string', 'null')
       or  e #>> '{}' !~ '^\d{4,6}-\d\d-\d\d([ T]|$)'
  ) then
    raise exception using errcode = 'data_exception', message = 'not a time';
  end if;
  if jsonb_typeof(value) = 'string' and ends ->> 0 ~ '^\d{4,6}-\d\d-\d\d( BC)?$' then
    span := tstzrange((ends ->> 0)::date, (ends ->> 0)::date + 1);
  elsif jsonb_typeof(value) = 'string' then
    span := tstzrange((ends ->> 0)::timestamptz, (ends ->> 0)::timestamptz, '[]');
  elsif jsonb_array_length(ends) = 2 then
    span := tstzrange(coalesce(ends ->> 0, '-infinity')::timestamptz,
                      coalesce(ends ->> 1, 'infinity')::timestamptz);
  end if;
  if span is null or isempty(span) then
    raise exception using errcode = 'data_exception', message = 'empty';
  end if;
  return span;
exception when data_exception then
  perform pgrecall_internal._raise_invalid_field(
    place, format('%s is not a time span', left(value::text, 80)),
    'Write 2026-03-05, 2026-03-05T14:00Z, or [start, end] with start before end '
    'and null for an open side.');
end;
$$;
comment on function pgrecall_internal._span_field is
'A field that is a time span: "2026-03-05" is that day in UTC, a timestamp that instant, [start, '
'end] is half-open, with null for an open side. Errors: RC003, also when the span is empty.';

create or replace function pgrecall_internal._array_field(place text, value jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
begin
  if value is null or jsonb_typeof(value) = 'null' then
    return '[]';
  elsif jsonb_typeof(value) <> 'array' then
    perform pgrecall_internal._raise_invalid_field(
      place, format('expected an array, not %s', left(value::text, 80)),
      'Put it in square brackets.');
  end if;
  return value;
end;
$$;
comment on function pgrecall_internal._array_field is
'A field that is an array, [] when absent. Errors: RC003.';

create or replace function pgrecall_internal._check_embedded(embeddings jsonb, listing text)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  wrong record;
begin
  perform pgrecall_internal._check_array('embeddings', embeddings);
  select v.n - 1 as index, v.item,
         jsonb_typeof(v.item) = 'object' and pgrecall_internal._is_id(v.item ->> 'memory_id')
           as has_id
  into   wrong
  from   jsonb_array_elements(embeddings) with ordinality as v(item, n)
  where  jsonb_typeof(v.item) <> 'object' or not pgrecall_internal._is_id(v.item ->> 'memory_id')
     or  not pg_input_is_valid(coalesce(v.item ->> 'ordinal', '0'), 'smallint')
  order  by v.n
  limit  1;
  if not found then
    return;
  end if;
  perform pgrecall_internal._raise_invalid_field(
    format('embeddings[%s].%s', wrong.index,
           case when wrong.has_id then 'ordinal' else 'memory_id' end),
    case when wrong.has_id
         then format('expected a number up to 32767, not %s', wrong.item -> 'ordinal')
         else format('expected the id of a memory, not %s', left(wrong.item::text, 80)) end,
    format('Write {"memory_id": 5, "embedding": [0.1, 0.2]}, with an id of %s.', listing));
end;
$$;
comment on function pgrecall_internal._check_embedded is
'Raises RC003 unless each element of an array names a memory, and an ordinal or none. listing: the '
'function that lists what there is to embed.';

create or replace function pgrecall_internal._embedding_field(
  place text, value jsonb, bank pgrecall.bank)
returns halfvec
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  embedding halfvec;
begin
  if value is null or jsonb_typeof(value) = 'null' then
    return null;
  end if;
  begin
    embedding := (value #>> '{}')::halfvec;
  exception when data_exception or program_limit_exceeded then
    raise exception using
      errcode = 'RC006',
      message = format('%s: unusable embedding: %s', place, left(sqlerrm, 120)),
      hint    = 'Pass the finite numbers that the embedding model returned, as an array or as '
                '"[0.1, 0.2]".';
  end;
  embedding := pgrecall_internal._checked_embedding(bank, place, embedding, null);
  if bank.embedding_mean is not null then
    embedding := pgrecall_internal._centred(bank, place, embedding);
  end if;
  return embedding;
end;
$$;
comment on function pgrecall_internal._embedding_field is
'An embedding of the bank''s model, array or string, as it is stored; null when absent. Errors: '
'RC004, RC006.';
