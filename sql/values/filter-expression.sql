-- Filter expressions: a condition in PostgreSQL's notation,
--
--   confidence > 0.8 and metadata->>'team' = 'core' and tags @> array['deploy']
--
-- read into the nested JSON arrays of values/filter.sql, such as ["and", [">", "confidence", 0.8],
-- c]. _parsed_filter() is the entry point; it also takes those arrays as JSON text.
--
-- A recursive-descent parser reads the tokens of values/filter-token.sql: or, and, not; comparison;
-- operand. Its functions take the number of the first token to read and return that of the first
-- one they did not read (at). The user's text is compared and copied; it never becomes SQL. Time
-- and memory grow with the length of the text; nesting is at most 50 deep.
--
-- A condition is a JSON array, an operand an object: at, and column, value, strings, period or any.
create or replace function pgrecall_internal._filter_values(
  tokens jsonb, depth integer, closing text, column_name text,
  inout at integer, out constants jsonb)
language plpgsql immutable parallel safe
as $$
declare
  elements jsonb[] := '{}';
  code     text;
  operand  record;
begin
  if tokens -> at ->> 0 = closing then
    at := at + 1;
    constants := '[]';
    return;
  end if;
  loop
    if tokens -> at ->> 0 = '''' and tokens -> (at + 1) ->> 0 in (',', closing) then
      -- Fast path for the most frequent case.
      elements := array_append(elements, tokens -> at -> 1);
      at := at + 1;
    else
      operand := pgrecall_internal._filter_operand(tokens, depth + 1, at);
      elements := array_append(elements, case
        when column_name = 'occurred' and operand.node -> 'value' = 'null' then 'null'
        else pgrecall_internal._filter_constant(operand.node, column_name, tokens)
      end);
      at := operand.at;
    end if;
    code := tokens -> at ->> 0;
    exit when code = closing;
    at := pgrecall_internal._after_token(tokens, at, ',');
  end loop;
  at := at + 1;
  constants := to_jsonb(elements);
end;
$$;
comment on function pgrecall_internal._filter_values is
'Reads constants with commas between them up to the closing token. The sides of a period '
'(column_name occurred) may be null. Errors: RC011.';

create or replace function pgrecall_internal._filter_name(tokens jsonb, at integer)
returns jsonb
language plpgsql immutable parallel safe
as $$
declare
  code text := tokens -> at ->> 0;
  name text := case code when '"' then tokens -> at ->> 1 else code end;
begin
  if code !~ '^[a-z_"]'
     or code in ('and', 'or', 'not', 'in', 'is', 'like', 'ilike', 'between', 'as')
  then
    perform pgrecall_internal._invalid_filter(
      'expected a column or a constant, not {}', tokens, at);
  elsif tokens -> (at + 1) ->> 0 = '(' then
    perform pgrecall_internal._invalid_filter('function {} is not allowed', tokens, at);
  elsif tokens -> (at + 1) ->> 0 = '.' then
    perform pgrecall_internal._invalid_filter(
      format('unknown column "%s.%s"', left(name, 200), left(tokens -> (at + 2) ->> 1, 200)),
      tokens, at);
  elsif name not in ('memory_id', 'fact_type', 'text', 'context', 'fact_key', 'source_id', 'tags',
                     'metadata', 'occurred', 'mentioned_at', 'created_at', 'confidence',
                     'proof_count', 'entity')
  then
    perform pgrecall_internal._invalid_filter('unknown column {}', tokens, at);
  end if;
  return jsonb_build_object('at', at, 'column', name);
end;
$$;
comment on function pgrecall_internal._filter_name is
'The operand of a token that names a column. Errors: RC011.';

create or replace function pgrecall_internal._filter_primary(
  tokens jsonb, depth integer, inout at integer, out node jsonb)
language plpgsql immutable parallel safe
as $$
declare
  start integer := at;
  code  text := tokens -> at ->> 0;
  next  text := tokens -> (at + 1) ->> 0;
  part  record;
begin
  if depth > 50 then
    perform pgrecall_internal._invalid_filter('nested more than 50 deep', tokens, at);
  end if;
  if code = '(' then
    part := pgrecall_internal._filter_disjunction(tokens, depth + 1, at + 1);
    node := part.node;
    at := pgrecall_internal._after_token(tokens, part.at, ')');
  elsif code in ('''', 'true', 'false', 'null') then
    node := jsonb_build_object('at', start, 'value',
              case code when '''' then tokens -> at -> 1 else code::jsonb end);
    at := at + 1;
  elsif code in ('date', 'timestamp', 'timestamptz') and next in ('''', '(', 'with', 'without') then
    part := pgrecall_internal._filter_type(tokens, at);
    at := pgrecall_internal._after_token(tokens, part.at, '''');
    node := jsonb_build_object('at', start, 'value', tokens -> part.at -> 1);
  elsif code = '0' or code in ('+', '-') and next = '0' then
    at := at + case code when '0' then 1 else 2 end;
    node := jsonb_build_object('at', start, 'value',
              pgrecall_internal._filter_number(tokens, at - 1, code = '-'));
  elsif code = 'cast' and next = '(' then
    part := pgrecall_internal._filter_operand(tokens, depth + 1, at + 2);
    node := part.node;
    part := pgrecall_internal._filter_type(
      tokens, pgrecall_internal._after_token(tokens, part.at, 'as'));
    node := pgrecall_internal._filter_cast(node, part.kind, tokens);
    at := pgrecall_internal._after_token(tokens, part.at, ')');
  elsif code = 'array' and next = '[' then
    part := pgrecall_internal._filter_values(tokens, depth, ']', 'tags', at + 2);
    node := jsonb_build_object('at', start, 'strings', part.constants);
    at := part.at;
  elsif code = 'tstzrange' and next = '(' then
    part := pgrecall_internal._filter_values(tokens, depth, ')', 'occurred', at + 2);
    if jsonb_array_length(part.constants) <> 2 then
      perform pgrecall_internal._invalid_filter('{} takes a start and an end', tokens, start);
    end if;
    node := jsonb_build_object('at', start, 'period', part.constants);
    at := part.at;
  elsif code = 'any' and next = '(' then
    part := pgrecall_internal._filter_operand(tokens, depth + 1, at + 2);
    if part.node ->> 'column' is distinct from 'tags' then
      perform pgrecall_internal._invalid_filter('{} takes tags', tokens, start);
    end if;
    node := jsonb_build_object('at', start, 'any', true);
    at := pgrecall_internal._after_token(tokens, part.at, ')');
  else
    node := pgrecall_internal._filter_name(tokens, at);
    at := at + 1;
  end if;
end;
$$;
comment on function pgrecall_internal._filter_primary is
'Reads an operand without its suffixes, or a parenthesised expression. Errors: RC011.';

create or replace function pgrecall_internal._filter_operand(
  tokens jsonb, depth integer, inout at integer, out node jsonb,
  allow_condition boolean default false)
language plpgsql immutable parallel safe
as $$
declare
  start integer := at;
  part  record;
begin
  part := pgrecall_internal._filter_primary(tokens, depth, at);
  node := part.node;
  at := part.at;
  if jsonb_typeof(node) = 'array' then
    if not allow_condition then
      perform pgrecall_internal._invalid_filter(
        'expected a column or a constant, not {}', tokens, start);
    end if;
    return;
  end if;
  while tokens -> at ->> 0 in ('->>', '::') loop
    if tokens -> at ->> 0 = '::' then
      part := pgrecall_internal._filter_type(tokens, at + 1);
      node := pgrecall_internal._filter_cast(node, part.kind, tokens);
      at := part.at;
    elsif node ->> 'column' = 'metadata' then
      if coalesce(tokens -> (at + 1) ->> 0 <> '''' or tokens -> (at + 1) ->> 1 = '', true) then
        perform pgrecall_internal._invalid_filter('expected a key, not {}', tokens, at + 1);
      end if;
      node := node || jsonb_build_object('column', 'metadata.' || (tokens -> (at + 1) ->> 1));
      at := at + 2;
      if tokens -> at ->> 0 = '::' then
        -- In PostgreSQL such a cast would apply to the key.
        perform pgrecall_internal._invalid_filter(
          'expected parentheses around what is cast before {}', tokens, at);
      end if;
    else
      perform pgrecall_internal._invalid_filter('{} reads only keys of metadata', tokens, at);
    end if;
  end loop;
end;
$$;
comment on function pgrecall_internal._filter_operand is
'Reads a column or a constant, with the key and the casts that follow it; where allowed, also a '
'condition in parentheses. Errors: RC011.';

create or replace function pgrecall_internal._compared_column(node jsonb, tokens jsonb)
returns text
language plpgsql immutable parallel safe
as $$
begin
  if not node ? 'column' or node ->> 'column' in ('tags', 'metadata', 'occurred') then
    perform pgrecall_internal._invalid_filter(
      case when node ? 'column' then 'this operator does not take column {}'
           else 'expected a column, not {}' end,
      tokens, (node ->> 'at')::integer);
  end if;
  return node ->> 'column';
end;
$$;
comment on function pgrecall_internal._compared_column is
'The name of an operand that must be a column of single values, or a key of metadata. '
'Errors: RC011.';

create or replace function pgrecall_internal._compared_period(node jsonb, tokens jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
declare
  literal text := btrim(node ->> 'value', E' \t\r\n');
  sides   text[];
begin
  if node ? 'period' then
    return node -> 'period';
  end if;
  sides := regexp_match(literal, '^([[(])([^,]*),([^,]*)[)]$');
  sides := array[sides[1], btrim(sides[2], E' \t\r\n'), btrim(sides[3], E' \t\r\n')];
  if sides[1] is null or (sides[1] = '(' and sides[2] <> '')
     or jsonb_typeof(node -> 'value') <> 'string'
  then
    perform pgrecall_internal._invalid_filter(
      'expected a period as ''[start,end)'', not {}', tokens, (node ->> 'at')::integer);
  end if;
  return jsonb_build_array(btrim(nullif(sides[2], ''), '"'), btrim(nullif(sides[3], ''), '"'));
end;
$$;
comment on function pgrecall_internal._compared_period is
'[start, end] of an operand that must be a period, null for an open side. Errors: RC011.';

create or replace function pgrecall_internal._compared(
  op text, left_node jsonb, right_node jsonb, tokens jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
declare
  column_name text := left_node ->> 'column';
  constant    jsonb;
begin
  if op in ('@>', '&&') then
    if column_name = 'tags' and right_node ? 'strings' then
      return jsonb_build_array(case op when '@>' then 'contains' else 'overlaps' end, 'tags',
                               right_node -> 'strings');
    elsif column_name = 'occurred' and op = '&&' then
      return jsonb_build_array('overlaps', 'occurred',
                               pgrecall_internal._compared_period(right_node, tokens));
    end if;
    if column_name = 'tags' then
      perform pgrecall_internal._invalid_filter(
        'expected array[''...'', ''...''], not {}', tokens, (right_node ->> 'at')::integer);
    end if;
    perform pgrecall_internal._invalid_filter(
      format('operator "%s" does not take {}', op), tokens, (left_node ->> 'at')::integer);
  end if;
  if right_node ? 'any' and op = '=' then
    return jsonb_build_array('contains', 'tags', jsonb_build_array(
      pgrecall_internal._filter_constant(left_node, 'tags', tokens)));
  end if;
  if left_node ? 'value' and right_node ? 'column' then
    return pgrecall_internal._compared(
      case op when '<>' then op else translate(op, '<>', '><') end, right_node, left_node, tokens);
  end if;
  column_name := pgrecall_internal._compared_column(left_node, tokens);
  constant := pgrecall_internal._filter_constant(right_node, column_name, tokens);
  if left_node ? 'is_number' and jsonb_typeof(constant) = 'string' then
    perform pgrecall_internal._invalid_filter(
      'expected a number, not {}', tokens, (right_node ->> 'at')::integer);
  end if;
  return jsonb_build_array(op, column_name, constant);
end;
$$;
comment on function pgrecall_internal._compared is
'The condition of an operator between two operands; a constant may stand on either side of a '
'comparison. Errors: RC011.';

create or replace function pgrecall_internal._filter_comparison(
  tokens jsonb, depth integer, inout at integer, out node jsonb)
language plpgsql immutable parallel safe
as $$
declare
  code    text;
  first   record;
  second  record;
  is_not  boolean;
  column_name text;
begin
  first := pgrecall_internal._filter_operand(tokens, depth, at, true);
  node := first.node;
  at := first.at;
  code := tokens -> at ->> 0;
  if jsonb_typeof(node) = 'array' or code in ('', ')', ']', ',', ';', 'and', 'or', 'as') then
    return;
  end if;
  is_not := code = 'not';
  if is_not then
    at := at + 1;
    code := tokens -> at ->> 0;
  end if;
  at := at + 1;
  if code in ('in', 'like', 'ilike', 'between') then
    column_name := pgrecall_internal._compared_column(node, tokens);
  end if;

  if code = 'in' then
    second := pgrecall_internal._filter_values(
      tokens, depth, ')', column_name, pgrecall_internal._after_token(tokens, at, '('));
    node := jsonb_build_array('in', column_name, second.constants);
  elsif code in ('like', 'ilike') then
    second := pgrecall_internal._filter_operand(tokens, depth, at);
    node := jsonb_build_array(code, column_name,
              pgrecall_internal._filter_constant(second.node, column_name, tokens));
  elsif code = 'between' then
    first := pgrecall_internal._filter_operand(tokens, depth, at);
    second := pgrecall_internal._filter_operand(
      tokens, depth, pgrecall_internal._after_token(tokens, first.at, 'and'));
    node := jsonb_build_array('and',
      jsonb_build_array('>=', column_name,
        pgrecall_internal._filter_constant(first.node, column_name, tokens)),
      jsonb_build_array('<=', column_name,
        pgrecall_internal._filter_constant(second.node, column_name, tokens)));
  elsif code = 'is' and not is_not then
    if not node ? 'column' then
      perform pgrecall_internal._invalid_filter(
        'expected a column, not {}', tokens, (node ->> 'at')::integer);
    end if;
    is_not := tokens -> at ->> 0 = 'not';
    at := pgrecall_internal._after_token(
      tokens, case when is_not then at + 1 else at end, 'null');
    node := jsonb_build_array(
      case when is_not then 'is not null' else 'is null' end, node -> 'column');
    return;
  elsif code in ('=', '<>', '<', '<=', '>', '>=', '@>', '&&') and not is_not then
    second := pgrecall_internal._filter_operand(tokens, depth, at);
    node := pgrecall_internal._compared(code, node, second.node, tokens);
  else
    perform pgrecall_internal._invalid_filter('expected an operator, not {}', tokens, at - 1);
  end if;
  at := second.at;
  if is_not then
    node := jsonb_build_array('not', node);
  end if;
end;
$$;
comment on function pgrecall_internal._filter_comparison is
'Reads a comparison, a condition in parentheses, or an operand without an operator. Errors: RC011.';

create or replace function pgrecall_internal._filter_disjunction(
  tokens jsonb, depth integer, inout at integer, out node jsonb)
language plpgsql immutable parallel safe
as $$
declare
  any_of    jsonb[] := '{}';
  all_of    jsonb[] := '{}';
  negations integer;
  code      text;
  part      record;
begin
  loop
    negations := 0;
    while tokens -> at ->> 0 = 'not' loop
      at := at + 1;
      negations := negations + 1;
    end loop;
    part := pgrecall_internal._filter_comparison(tokens, depth + negations, at);
    node := part.node;
    at := part.at;
    code := tokens -> at ->> 0;
    if jsonb_typeof(node) = 'object' then
      -- In parentheses it may be an operand of a comparison that continues after them.
      if depth > 0 and negations = 0 and any_of = '{}' and all_of = '{}' and code = ')' then
        return;
      end if;
      perform pgrecall_internal._invalid_filter(
        '{} by itself is not a condition', tokens, (node ->> 'at')::integer);
    end if;
    for i in 1 .. negations loop
      node := jsonb_build_array('not', node);
    end loop;
    all_of := array_append(all_of, node);
    if code <> 'and' then
      any_of := array_append(any_of, case cardinality(all_of)
        when 1 then node else '["and"]' || to_jsonb(all_of) end);
      all_of := '{}';
      exit when code <> 'or';
    end if;
    at := at + 1;
  end loop;
  node := case cardinality(any_of) when 1 then any_of[1] else '["or"]' || to_jsonb(any_of) end;
end;
$$;
comment on function pgrecall_internal._filter_disjunction is
'Reads conditions joined by or, and and not, up to the first token that belongs to none; in '
'parentheses also a single operand. Errors: RC011.';

create or replace function pgrecall_internal._parsed_filter(filter text)
returns jsonb
language plpgsql immutable strict parallel safe
set search_path from current
as $$
declare
  tokens jsonb;
  parsed record;
begin
  if filter !~ '\S' then
    return null;
  end if;
  if filter ~ '^\s*\[' then
    if not pg_input_is_valid(filter, 'jsonb') then
      raise exception using
        errcode = 'RC011',
        message = format('filter: begins with [ and is not valid JSON: %s',
                         (select e.message from pg_input_error_info(filter, 'jsonb') as e)),
        hint    = 'Write an expression such as confidence > 0.8, or an array such as '
                  '[">", "confidence", 0.8].';
    end if;
    return filter::jsonb;
  end if;
  if length(filter) > 100000 then
    perform pgrecall_internal._invalid_filter(
      format('an expression has at most 100000 characters, not %s', length(filter)));
  end if;
  tokens := pgrecall_internal._filter_tokens(filter);
  parsed := pgrecall_internal._filter_disjunction(tokens, 0, 0);
  if tokens -> parsed.at ->> 0 = ';' then
    parsed.at := parsed.at + 1;
  end if;
  if tokens -> parsed.at ->> 0 <> '' then
    perform pgrecall_internal._invalid_filter(
      'expected "and", "or" or the end, not {}', tokens, parsed.at);
  end if;
  return parsed.node;
end;
$$;
comment on function pgrecall_internal._parsed_filter is
'A filter as _filter_sql() takes it, of an expression in PostgreSQL''s notation or of the JSON '
'array form as text; null for null and blank text. Types of values are checked by _filter_sql(). '
'Errors: RC011 naming the token and its position.';
