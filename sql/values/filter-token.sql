-- The tokens of a filter expression, and the parsers of single tokens: types, constants, numbers.
--
-- A tokenizer cuts the text in one pass, by a regular expression; values/filter-expression.sql
-- reads the tokens. Tokens are a JSON array of [code, value, position]. The code of a word is the
-- word in lower case, of an operator itself, of a string ', of a quoted identifier ", of a number
-- 0, of the end empty. Every error is RC011, names the token and its position, and lists columns
-- and operators.
create or replace function pgrecall_internal._invalid_filter(
  problem text, tokens jsonb default null, at integer default null)
returns void
language plpgsql immutable parallel safe
as $$
declare
  code text := tokens -> at ->> 0;
begin
  raise exception using
    errcode = 'RC011',
    message = 'filter: ' || case
      when at is null then problem
      when code = '' then replace(problem, '{}', 'the end of the filter')
      else replace(problem, '{}', case code
             when '''' then quote_literal(left(tokens -> at ->> 1, 50))
             else format('"%s"', left(tokens -> at ->> 1, 50))
           end) || format(' at character %s', tokens -> at ->> 2)
    end,
    hint = 'Columns: memory_id, fact_type, text, context, fact_key, source_id, tags, metadata, '
           'occurred, mentioned_at, created_at, confidence, proof_count, entity. '
           'Operators: = <> < <= > >=, between, in (...), is [not] null, [not] like, [not] ilike, '
           'and or not, metadata->>''key'', tags @> array[...], tags && array[...], '
           'occurred && ''[start,end)'', entity = ''name''.';
end;
$$;
comment on function pgrecall_internal._invalid_filter is
'Raises RC011 with the problem and where it is: {} becomes the token, and its position, counted in '
'characters from 1, comes last.';

create or replace function pgrecall_internal._filter_tokens(filter text)
returns jsonb
language plpgsql immutable parallel safe
as $$
declare
  -- An unterminated token extends to the end, so that no text is read twice. The longest match
  -- wins.
  pattern constant text := concat_ws('|',
    '\s+',
    '--[^\n]*',
    '/\*(?:[^*]|\*+[^*/])*\**/?',
    '''(?:[^'']|'''')*''?',
    '"(?:[^"]|"")*"?',
    '[A-Za-z_][A-Za-z0-9_$]*',
    '(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[A-Za-z0-9_.$]*',
    '->>|->|::|<=|>=|<>|!=|@>|<@|&&|[|][|]',
    '.');
  tokens jsonb;
  broken jsonb;
begin
  select jsonb_agg(jsonb_build_array(
           case
             when t.word ~ '^[A-Za-z_]' then lower(t.word collate "C")
             when t.word ~ '^[0-9]|^\.[0-9]' then '0'
             when t.word ~ '^[''"]' then left(t.word, 1)
             when t.word = '!=' then '<>'
             else t.word
           end,
           case left(t.word, 1)
             when '''' then replace(substr(left(t.word, -1), 2), '''''', '''')
             when '"' then replace(substr(left(t.word, -1), 2), '""', '"')
             else t.word
           end,
           t.position) order by t.position),
         jsonb_agg(jsonb_build_array(left(t.word, 1), t.position) order by t.position)
           filter (where t.word ~ '^[''"]' and (length(t.word) - length(replace(
                           t.word, left(t.word, 1), ''))) % 2 = 1
                      or t.word ~ '^/\*' and t.word !~ '^/\*.*\*/$')
  into   tokens, broken
  from (
    select m.match[1] as word,
           sum(length(m.match[1])) over (order by m.ordinality) - length(m.match[1]) + 1 as position
    from   regexp_matches(filter, pattern, 'g') with ordinality as m(match, ordinality)
  ) as t
  where  t.word !~ '^\s|^--' and not (t.word ~ '^/\*' and t.word ~ '^/\*.*\*/$');
  if broken is not null then
    perform pgrecall_internal._invalid_filter(
      format('the %s that begins at character %s does not end',
             case broken -> 0 ->> 0 when '''' then 'string' when '"' then 'identifier'
                  else 'comment' end,
             broken -> 0 ->> 1));
  end if;
  return coalesce(tokens, '[]') || jsonb_build_array(jsonb_build_array('', '', 0));
end;
$$;
comment on function pgrecall_internal._filter_tokens is
'The tokens of a filter expression: [[code, value, position], ...], the end last. Comments and '
'white space are left out. Errors: RC011 for a string, quoted identifier or comment without end.';

create or replace function pgrecall_internal._after_token(tokens jsonb, at integer, code text)
returns integer
language plpgsql immutable parallel safe
as $$
begin
  if tokens -> at ->> 0 <> code then
    perform pgrecall_internal._invalid_filter(
      format('expected %s, not {}', case code when '0' then 'a number' when '''' then 'a string'
                                         else format('"%s"', code) end),
      tokens, at);
  end if;
  return at + 1;
end;
$$;
comment on function pgrecall_internal._after_token is
'The number of the token after this one; this one must have the code. Errors: RC011.';

create or replace function pgrecall_internal._filter_type(
  tokens jsonb, inout at integer, out kind text)
language plpgsql immutable parallel safe
as $$
declare
  first integer := at;
  name  text := tokens -> at ->> 0;
begin
  at := at + 1;
  if name = 'double' and tokens -> at ->> 0 = 'precision' then
    at := at + 1;
  end if;
  if tokens -> at ->> 0 = '(' then
    at := pgrecall_internal._after_token(tokens, at + 1, '0');
    if tokens -> at ->> 0 = ',' then
      at := pgrecall_internal._after_token(tokens, at + 1, '0');
    end if;
    at := pgrecall_internal._after_token(tokens, at, ')');
  end if;
  if name = 'timestamp' and tokens -> at ->> 0 in ('with', 'without') then
    at := pgrecall_internal._after_token(tokens, at + 1, 'time');
    at := pgrecall_internal._after_token(tokens, at, 'zone');
  end if;
  kind := case
    when name in ('date', 'timestamp', 'timestamptz') then 'time'
    when name in ('smallint', 'int2', 'integer', 'int', 'int4', 'bigint', 'int8', 'decimal', 'dec',
                  'numeric', 'real', 'float', 'float4', 'float8', 'double') then 'number'
  end;
  if tokens -> at ->> 0 = '[' and name ~ '^[a-z_]' then
    at := pgrecall_internal._after_token(tokens, at + 1, ']');
    kind := 'array';
  end if;
  if kind is null then
    perform pgrecall_internal._invalid_filter('cannot cast to {}', tokens, first);
  end if;
end;
$$;
comment on function pgrecall_internal._filter_type is
'Reads the name of a type: its kind is time, number or array. Errors: RC011 for all others.';

create or replace function pgrecall_internal._filter_cast(node jsonb, kind text, tokens jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
begin
  if kind = 'number' and node ->> 'column' like 'metadata.%' then
    return node || '{"is_number": true}';
  end if;
  if not (kind = 'time' and coalesce(node -> 'value', 'null') <> 'null'
          or kind = 'array' and node ? 'strings')
  then
    perform pgrecall_internal._invalid_filter(
      format('cannot cast {} to %s', case kind when 'array' then 'an array' else 'a ' || kind end),
      tokens, (node ->> 'at')::integer);
  end if;
  return node;
end;
$$;
comment on function pgrecall_internal._filter_cast is
'The operand after a cast. A key of metadata is cast to a number, a constant to a time, array[...] '
'to an array. Errors: RC011 for all others.';

create or replace function pgrecall_internal._filter_constant(
  node jsonb, column_name text, tokens jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
begin
  if node -> 'value' = 'null' then
    perform pgrecall_internal._invalid_filter(
      format('compare "%1$s" with null by: %1$s is null', left(column_name, 200)), tokens,
      (node ->> 'at')::integer);
  end if;
  if not node ? 'value' then
    perform pgrecall_internal._invalid_filter(
      format('expected a constant to compare "%s" with, not {}', left(column_name, 200)), tokens,
      (node ->> 'at')::integer);
  end if;
  return node -> 'value';
end;
$$;
comment on function pgrecall_internal._filter_constant is
'The value of an operand that must be a constant. Errors: RC011.';

create or replace function pgrecall_internal._filter_number(
  tokens jsonb, at integer, is_negative boolean default false)
returns jsonb
language plpgsql immutable parallel safe
as $$
declare
  word text := tokens -> at ->> 1;
begin
  if word !~ '^([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$'
     or (word ~ '\D' and not pg_input_is_valid(word, 'double precision'))
  then
    perform pgrecall_internal._invalid_filter('expected a number, not {}', tokens, at);
  end if;
  if is_negative then
    word := '-' || word;
  end if;
  -- Whole numbers are exact. Others are read as floats, also because 1e9999 has 10,000 digits.
  return case when word ~ '^-?[0-9]+$' then to_jsonb(word::numeric)
              else to_jsonb(word::double precision) end;
end;
$$;
comment on function pgrecall_internal._filter_number is
'The value of a token that is a number. Errors: RC011.';
