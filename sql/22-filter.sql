create or replace function pgrecall._filter_value(filter jsonb, path text, type text)
returns text
language plpgsql stable parallel safe
set search_path from current
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $$
declare
  value   jsonb := filter #> path::text[];
  wanted  text := case when type in ('bigint', 'real') then 'number' else 'string' end;
  literal text;
begin
  if value is null or jsonb_typeof(value) <> wanted then
    raise exception using
      errcode = 'RC011',
      message = format('filter: expected a %s, not %s', wanted, coalesce(value, 'null')),
      hint    = format('The column is of type %s. Test for null with ["is null", column].', type);
  end if;
  begin
    -- The cast is tried here, so that its error speaks of the filter. type is one of our own words.
    execute format('select $1::%s::text', type) into literal using value #>> '{}';
  exception when data_exception then
    raise exception using
      errcode = 'RC011',
      message = format('filter: %s is not a %s', value, type),
      hint    = 'Write times as 2026-03-05 or 2026-03-05T14:00Z.';
  end;
  if type = 'timestamptz' then
    -- As we read it: no session's time zone shall move it.
    return format('%L::timestamptz', literal);
  end if;
  return format('($3 #>> %L)::%s', path, type);
end;
$$;
comment on function pgrecall._filter_value(jsonb, text, text) is
'SQL that reads the value at a path of the filter, which is parameter $3. A time without a zone is '
'in UTC. Errors: RC011.';

create or replace function pgrecall._filter_sql(filter jsonb, path text[] default '{}')
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  node   jsonb := filter #> path;
  op     text := node ->> 0;
  name   text := node ->> 1;
  size   integer;
  here   text := array_to_string(path || '2'::text, ',');
  name_at text := '{' || array_to_string(path || '1'::text, ',') || '}';
  type   text;
  column_sql text;
  parts  text[];
  is_reversed boolean;
begin
  if filter is null then
    return 'true';
  end if;
  if jsonb_typeof(node) is distinct from 'array'
     or jsonb_typeof(node -> 0) is distinct from 'string'
  then
    raise exception using
      errcode = 'RC011',
      message = format('filter: %s is not a condition', coalesce(node, 'null')),
      hint    = 'A condition is an array such as [">=", "confidence", 0.8] or ["and", c, c].';
  end if;
  size := jsonb_array_length(node);

  if op in ('and', 'or', 'not') then
    if size < 2 or (op = 'not' and size <> 2) or cardinality(path) > 50 then
      raise exception using
        errcode = 'RC011',
        message = format('filter: "%s" has %s conditions', op, size - 1),
        hint    = '"not" takes one condition, "and" and "or" one or more, nested at most 50 deep.';
    end if;
    parts := array(
      select pgrecall._filter_sql(filter, path || i::text) from generate_series(1, size - 1) as i
    );
    return case op
      when 'not' then format('(not coalesce(%s, false))', parts[1])
      else '(' || array_to_string(parts, format(' %s ', op)) || ')'
    end;
  end if;

  type := case
    when name in ('fact_type', 'text', 'context', 'fact_key', 'source_id') then 'text'
    when name in ('memory_id', 'proof_count') then 'bigint'
    when name = 'confidence' then 'real'
    when name in ('mentioned_at', 'created_at') then 'timestamptz'
    when name = 'occurred' then 'tstzrange'
    when name = 'tags' then 'text[]'
    when name like 'metadata.%' and length(name) > 9 then 'metadata'
  end;
  if type is null then
    raise exception using
      errcode = 'RC011',
      message = format('filter: unknown column "%s"', name),
      hint    = 'Columns: memory_id, fact_type, text, context, fact_key, source_id, confidence, '
                'proof_count, mentioned_at, created_at, occurred, tags, metadata.KEY.';
  end if;
  -- No word of the filter enters the statement: names are ours, times are written anew, all other
  -- values and keys are read from $3.
  column_sql := case type
    when 'metadata' then format('(m.metadata ->> substr($3 #>> %L, 10))', name_at)
    else 'm.' || name
  end;

  if op in ('is null', 'is not null') and size = 2 then
    return format('(%s %s)', column_sql, op);
  end if;
  if size <> 3 then
    raise exception using
      errcode = 'RC011',
      message = format('filter: "%s" does not take %s operands', op, size - 1),
      hint    = 'Write [operator, column, value], or ["is null", column].';
  end if;

  if op in ('=', '<>', '<', '<=', '>', '>=') and type not in ('tstzrange', 'text[]') then
    if type = 'metadata' and jsonb_typeof(node -> 2) = 'number' then
      return format(
        '(case when jsonb_typeof(m.metadata -> substr($3 #>> %L, 10)) = ''number'''
        ' then %s::numeric %s ($3 #>> %L)::numeric end)',
        name_at, column_sql, op, '{' || here || '}');
    end if;
    return format('(%s %s %s)', column_sql, op,
                  pgrecall._filter_value(filter, '{' || here || '}',
                                         replace(type, 'metadata', 'text')));
  end if;
  if op in ('like', 'ilike') and type in ('text', 'metadata') then
    if node ->> 2 ~ '(^|[^\\])(\\\\)*\\$' then
      raise exception using
        errcode = 'RC011',
        message = format('filter: pattern %s ends in a backslash', node -> 2),
        hint    = 'A backslash makes the character after it stand for itself: write two of them.';
    end if;
    return format('(%s %s %s)', column_sql, op,
                  pgrecall._filter_value(filter, '{' || here || '}', 'text'));
  end if;
  if op = 'in' and type not in ('tstzrange', 'text[]') and jsonb_typeof(node -> 2) = 'array' then
    parts := array(
      select pgrecall._filter_value(filter, format('{%s,%s}', here, i),
                                    replace(type, 'metadata', 'text'))
      from   generate_series(0, jsonb_array_length(node -> 2) - 1) as i
    );
    return case when cardinality(parts) = 0 then 'false'
                else format('(%s in (%s))', column_sql, array_to_string(parts, ', ')) end;
  end if;
  if op in ('contains', 'overlaps') and type = 'text[]' and jsonb_typeof(node -> 2) = 'array' then
    parts := array(
      select pgrecall._filter_value(filter, format('{%s,%s}', here, i), 'text')
      from   generate_series(0, jsonb_array_length(node -> 2) - 1) as i
    );
    return format('(m.tags %s array[%s]::text[])',
                  case op when 'contains' then '@>' else '&&' end, array_to_string(parts, ', '));
  end if;
  if op = 'overlaps' and type = 'tstzrange' and jsonb_typeof(node -> 2) = 'array'
     and jsonb_array_length(node -> 2) = 2
  then
    parts := array(
      select case
               when jsonb_typeof(node #> array['2', i::text]) = 'null' then 'null'
               else pgrecall._filter_value(filter, format('{%s,%s}', here, i), 'timestamptz')
             end
      from generate_series(0, 1) as i
      order by i
    );
    -- timestamptz literals, put together by _filter_value().
    execute format('select %s > %s', parts[1], parts[2]) into is_reversed;
    if is_reversed then
      raise exception using
        errcode = 'RC011',
        message = format('filter: %s ends before it starts', node -> 2),
        hint    = 'Write [start, end], with null for an open side.';
    end if;
    return format('(m.occurred && tstzrange(%s, %s))', parts[1], parts[2]);
  end if;

  raise exception using
    errcode = 'RC011',
    message = format('filter: operator "%s" does not fit column "%s" and %s', op, name, node -> 2),
    hint    = 'Operators: = <> < <= > >= in like ilike on single values; contains and overlaps '
              'with '
              'an array on tags; overlaps with [start, end] on occurred; is null; is not null.';
end;
$$;
comment on function pgrecall._filter_sql(jsonb, text[]) is
'A filter as SQL over alias m of memory; its values stay in parameter $3. Errors: RC011 naming '
'what.';

-- Statements of the arms are put together at run time: a branch per fact type, with the type as a
-- constant so that each meets its own index, and the predicate of the filter. Their parameters are
-- $1 bank, $2 as_of, $3 filter, $4 depth, then the arm's own.
create or replace function pgrecall._union_all(branch text, fact_types text[])
returns text
language sql immutable parallel safe
return (
  select string_agg('(' || replace(branch, '{fact_type}', quote_literal(t)) || ')',
                    E'\nunion all\n')
  -- A bank that holds nothing gets the branch of no type, which keeps the statement whole.
  from   unnest(case when fact_types = '{}' then array[''] else fact_types end) as t
);
comment on function pgrecall._union_all(text, text[]) is
'A statement of one branch per fact type; {fact_type} in the branch becomes the literal.';

create or replace function pgrecall._visible_sql(filter jsonb)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return 'm.valid_from <= $2 and (m.valid_to is null or m.valid_to > $2) and '
         || pgrecall._filter_sql(filter);
end;
$$;
comment on function pgrecall._visible_sql(jsonb) is
'Predicate over alias m: held true as of $2, passing the filter ($3).';
