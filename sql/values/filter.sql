-- Filters as SQL. A filter is nested JSON arrays, operator first, such as
-- ["and", [">=", "confidence", 0.8], ["in", "source_id", ["a", "b"]]]. _filter_sql() checks one and
-- returns a predicate over alias m of pgrecall.memory, in which the filter itself is parameter $3
-- of the statement.
--
-- No text of the filter enters the statement: names of columns and operators come from fixed lists,
-- times are rewritten, all other values and keys are read from $3. A list of values is checked in
-- one pass and read from $3 as one array, so that time and memory grow with its length; the planner
-- folds it to a constant, which can use an index on the column or is hashed by the executor.
--
-- entity is not a column: it stands for the entities that the memory mentions, by any of their
-- names. $1 of the statement is the bank.
--
-- A comparison with a column or key that a memory does not have is false, and "not" of it true: a
-- memory meets a condition or its "not".
--
-- A filter has at most 1,000 conditions and 200,000 values in lists, nested at most 50 deep.
create or replace function pgrecall_internal._filter_value(filter jsonb, path text[], type text)
returns text
language plpgsql stable parallel safe
set search_path from current
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $$
declare
  value  jsonb := filter #> path;
  wanted text := case when type in ('bigint', 'real') then 'number' else 'string' end;
begin
  if value is null or jsonb_typeof(value) <> wanted then
    raise exception using
      errcode = 'RC011',
      message = format('filter: expected a %s, not %s', wanted,
                       left(coalesce(value, 'null')::text, 200)),
      hint    = format('The column is of type %s. Test for null with ["is null", column].', type);
  end if;
  -- An expression: for a plain variable, pg_input_is_valid() caches the type of the first call.
  if not pg_input_is_valid(value #>> '{}', type || '') then
    raise exception using
      errcode = 'RC011',
      message = format('filter: %s is not a %s', left(value::text, 200), type),
      hint    = case when type = 'timestamptz'
                  then 'Write times as 2026-03-05 or 2026-03-05T14:00Z.'
                  else format('The column is of type %s.', type) end;
  end if;
  if type = 'timestamptz' then
    -- With its UTC offset: independent of the time zone of the session.
    return format('%L::timestamptz', (value #>> '{}')::timestamptz);
  end if;
  return format('($3 #>> %L)::%s', path, type);
end;
$$;
comment on function pgrecall_internal._filter_value is
'SQL that reads the value at a path of the filter, which is parameter $3. A time without a zone is '
'in UTC. Errors: RC011.';

create or replace function pgrecall_internal._texts(list jsonb)
returns text[]
language sql immutable parallel safe
return array(select jsonb_array_elements_text(_texts.list));
comment on function pgrecall_internal._texts is
'The elements of a JSON array as text, in order. Immutable, so that the planner folds it.';

create or replace function pgrecall_internal._filter_list(filter jsonb, path text[], type text)
returns text
language plpgsql stable parallel safe
set search_path from current
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $$
declare
  list   jsonb := filter #> path;
  wanted text := case when type in ('bigint', 'real') then 'number' else 'string' end;
  wrong  text;
begin
  if jsonb_array_length(list) > 200000 then
    raise exception using
      errcode = 'RC011',
      message = format('filter: a list of %s values is too long', jsonb_array_length(list)),
      hint    = 'A filter has at most 200000 values in lists.';
  end if;
  select e.ordinality - 1
  into   wrong
  from   jsonb_array_elements(list) with ordinality as e
  where  jsonb_typeof(e.value) <> wanted
     or  (type <> 'text' and not pg_input_is_valid(e.value #>> '{}', type || ''))
  limit  1;
  if wrong is not null then
    -- Called for its error.
    return pgrecall_internal._filter_value(filter, path || wrong, type);
  end if;
  if type = 'timestamptz' then
    return format('%L::timestamptz[]', array(
      select (e.value #>> '{}')::timestamptz from jsonb_array_elements(list) as e));
  end if;
  return format('pgrecall_internal._texts($3 #> %L)::%s[]', path, type);
end;
$$;
comment on function pgrecall_internal._filter_list is
'SQL that reads the list at a path of the filter, which is parameter $3, as one array of the type. '
'Errors: RC011 naming the first value that does not fit.';

create or replace function pgrecall_internal._filter_column(
  filter jsonb, path text[], out column_name text, out column_type text, out column_sql text)
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  column_name := filter #>> path;
  column_type := case
    when column_name in ('fact_type', 'text', 'context', 'fact_key', 'source_id') then 'text'
    when column_name in ('memory_id', 'proof_count') then 'bigint'
    when column_name = 'confidence' then 'real'
    when column_name in ('mentioned_at', 'created_at') then 'timestamptz'
    when column_name = 'occurred' then 'tstzrange'
    when column_name = 'tags' then 'text[]'
    when column_name = 'entity' then 'entity'
    when column_name like 'metadata.%' and length(column_name) > 9 then 'metadata'
  end;
  if column_type is null then
    raise exception using
      errcode = 'RC011',
      message = format('filter: unknown column "%s"', left(column_name, 200)),
      hint    = 'Columns: memory_id, fact_type, text, context, fact_key, source_id, confidence, '
                'proof_count, mentioned_at, created_at, occurred, tags, metadata.KEY, entity.';
  end if;
  column_sql := case column_type
    when 'metadata' then format('(m.metadata ->> substr($3 #>> %L, 10))', path)
    when 'entity' then '(select x.entity_id from pgrecall.mention x'
                       ' where x.bank_id = $1 and x.memory_id = m.memory_id limit 1)'
    else 'm.' || column_name
  end;
end;
$$;
comment on function pgrecall_internal._filter_column is
'The column named at a path of the filter: its name, its type (metadata: a key of it, read as '
'text; entity: what the memory mentions), and SQL that reads it, of an entity any. Errors: RC011 '
'naming an unknown column.';

create or replace function pgrecall_internal._filter_period(filter jsonb, path text[])
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  sides text[] := array(
    select case jsonb_typeof(filter #> (path || i::text))
             when 'null' then 'null'
             else pgrecall_internal._filter_value(filter, path || i::text, 'timestamptz')
           end
    from   generate_series(0, 1) as i
    order  by i
  );
  is_reversed boolean;
begin
  -- timestamptz literals made by _filter_value().
  execute format('select %s > %s', sides[1], sides[2]) into is_reversed;
  if is_reversed then
    raise exception using
      errcode = 'RC011',
      message = format('filter: %s ends before it starts', filter #> path),
      hint    = 'Write [start, end], with null for an open side.';
  end if;
  return format('tstzrange(%s, %s)', sides[1], sides[2]);
end;
$$;
comment on function pgrecall_internal._filter_period is
'SQL of the range at a path of the filter, given as [start, end], null for an open side. Errors: '
'RC011.';

create or replace function pgrecall_internal._comparison_sql(filter jsonb, path text[])
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  op      text := filter #>> (path || '0'::text);
  size    integer := jsonb_array_length(filter #> path);
  left_at text[] := path || '1'::text;
  value_at text[] := path || '2'::text;
  kind    text := jsonb_typeof(filter #> value_at);
  is_list boolean := kind = 'array';
  source  record;
  type    text;
begin
  source := pgrecall_internal._filter_column(filter, left_at);
  type := replace(source.column_type, 'metadata', 'text');
  if op in ('is null', 'is not null') and size = 2 then
    return format('(%s %s)', source.column_sql, op);
  end if;
  if size <> 3 then
    raise exception using
      errcode = 'RC011',
      message = format('filter: "%s" does not take %s operands', left(op, 200), size - 1),
      hint    = 'Write [operator, column, value], or ["is null", column].';
  end if;

  if type = 'entity' and (op = '=' or op = 'in' and is_list) then
    return format(
      '(exists (select from pgrecall.mention x where x.bank_id = $1 and x.memory_id = m.memory_id'
      ' and x.entity_id = any ((select pgrecall_internal._entities_named($1, %s))::bigint[])))',
      case op when 'in' then pgrecall_internal._filter_list(filter, value_at, 'text')
              else format('array[%s]', pgrecall_internal._filter_value(filter, value_at, 'text'))
      end);
  end if;
  if op in ('=', '<>', '<', '<=', '>', '>=') and type not in ('tstzrange', 'text[]', 'entity') then
    if source.column_type = 'metadata' and kind = 'number' then
      return format(
        '(case when jsonb_typeof(m.metadata -> substr($3 #>> %L, 10)) = ''number'''
        ' then %s::numeric %s ($3 #>> %L)::numeric end)',
        left_at, source.column_sql, op, value_at);
    end if;
    return format('(%s %s %s)', source.column_sql, op,
                  pgrecall_internal._filter_value(filter, value_at, type));
  end if;
  if op in ('like', 'ilike') and type = 'text' then
    if filter #>> value_at ~ '(^|[^\\])(\\\\)*\\$' then
      raise exception using
        errcode = 'RC011',
        message = format('filter: pattern %s ends in a backslash', filter #> value_at),
        hint    = 'A backslash makes the character after it stand for itself: write two of them.';
    end if;
    return format('(%s %s %s)', source.column_sql, op,
                  pgrecall_internal._filter_value(filter, value_at, 'text'));
  end if;
  if op = 'in' and type not in ('tstzrange', 'text[]', 'entity') and is_list then
    return case jsonb_array_length(filter #> value_at)
      when 0 then 'false'
      else format('(%s = any (%s))', source.column_sql,
                  pgrecall_internal._filter_list(filter, value_at, type))
    end;
  end if;
  if op = 'overlaps' and type = 'text[]' and is_list
     and jsonb_array_length(filter #> value_at) > 100
  then
    -- && compares each tag of each memory with each value: 16 seconds for 20,000 memories and
    -- 200,000 values. This looks each tag up in a hash table of the values.
    return format('(exists (select from unnest(m.tags) as t(tag) where t.tag = any (%s)))',
                  pgrecall_internal._filter_list(filter, value_at, 'text'));
  end if;
  if op in ('contains', 'overlaps') and type = 'text[]' and is_list then
    return format('(m.tags %s %s)', case op when 'contains' then '@>' else '&&' end,
                  pgrecall_internal._filter_list(filter, value_at, 'text'));
  end if;
  if op = 'overlaps' and type = 'tstzrange' and is_list
     and jsonb_array_length(filter #> value_at) = 2
  then
    return format('(m.occurred && %s)', pgrecall_internal._filter_period(filter, value_at));
  end if;

  raise exception using
    errcode = 'RC011',
    message = format('filter: operator "%s" does not fit column "%s" and %s', left(op, 200),
                     left(source.column_name, 200), left((filter #> value_at)::text, 200)),
    hint    = 'Operators: = <> < <= > >= in like ilike on single values; contains and overlaps '
              'with an array on tags; overlaps with [start, end] on occurred; = and in with names '
              'on entity; is null; is not null.';
end;
$$;
comment on function pgrecall_internal._comparison_sql is
'The condition at a path of the filter, which compares a column, as SQL. Errors: RC011.';

create or replace function pgrecall_internal._condition_sql(
  filter jsonb, path text[], out sql text, out condition_count integer, out value_count integer)
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  op    text := filter #>> (path || '0'::text);
  size  integer;
  parts text[] := '{}';
  part  record;
begin
  if jsonb_typeof(filter #> path) is distinct from 'array'
     or jsonb_typeof(filter #> (path || '0'::text)) is distinct from 'string'
  then
    raise exception using
      errcode = 'RC011',
      message = format('filter: %s is not a condition',
                       left(coalesce(filter #> path, 'null')::text, 200)),
      hint    = 'A condition is an array such as [">=", "confidence", 0.8] or ["and", c, c].';
  end if;
  size := jsonb_array_length(filter #> path);
  condition_count := 1;
  value_count := case when jsonb_typeof(filter #> (path || '2'::text)) = 'array'
                      then jsonb_array_length(filter #> (path || '2'::text)) else 0 end;
  if op not in ('and', 'or', 'not') then
    sql := pgrecall_internal._comparison_sql(filter, path);
    return;
  end if;

  value_count := 0;
  if size < 2 or (op = 'not' and size <> 2) or cardinality(path) > 50 then
    raise exception using
      errcode = 'RC011',
      message = format('filter: "%s" has %s conditions', op, size - 1),
      hint    = '"not" takes one condition, "and" and "or" one or more, nested at most 50 deep.';
  end if;
  for i in 1 .. size - 1 loop
    part := pgrecall_internal._condition_sql(filter, path || i::text);
    parts[i] := part.sql;
    condition_count := condition_count + part.condition_count;
    value_count := value_count + part.value_count;
    if condition_count > 1000 or value_count > 200000 then
      raise exception using
        errcode = 'RC011',
        message = case when condition_count > 1000
                       then 'filter: more than 1000 conditions'
                       else 'filter: more than 200000 values in lists' end,
        hint    = 'To compare a column with many values, give "in" the list of them.';
    end if;
  end loop;
  sql := case op
    when 'not' then format('(not coalesce(%s, false))', parts[1])
    else '(' || array_to_string(parts, format(' %s ', op)) || ')'
  end;
end;
$$;
comment on function pgrecall_internal._condition_sql is
'The condition at a path of the filter as SQL, and its numbers of conditions and list values. '
'Errors: RC011.';

create or replace function pgrecall_internal._filter_sql(filter jsonb)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  if filter is null then
    return 'true';
  end if;
  return (pgrecall_internal._condition_sql(filter, '{}')).sql;
end;
$$;
comment on function pgrecall_internal._filter_sql is
'A filter as SQL over alias m of memory; its values stay in parameter $3. Errors: RC011.';

-- Statements of the arms are built at run time: a branch per fact type, with the type as a constant
-- so that each uses its own index, and the predicate of the filter. Their parameters are $1 bank,
-- $2 as_of, $3 filter, $4 depth, then the arm's own.
create or replace function pgrecall_internal._union_all(branch text, fact_types text[])
returns text
language sql immutable parallel safe
return (
  select string_agg('(' || replace(branch, '{fact_type}', quote_literal(t)) || ')',
                    E'\nunion all\n')
  -- An empty bank gets a branch without a type, which keeps the statement valid.
  from   unnest(case when fact_types = '{}' then array[''] else fact_types end) as t
);
comment on function pgrecall_internal._union_all is
'A statement of one branch per fact type; {fact_type} in the branch becomes the literal.';

create or replace function pgrecall_internal._holds(
  valid_from timestamptz, valid_to timestamptz, at timestamptz)
returns boolean
language sql immutable parallel safe
return (valid_from is null or valid_from <= at) and (valid_to is null or valid_to > at);
comment on function pgrecall_internal._holds is
'Whether what is valid from one time to another, null being open, holds at a time; inlined.';

create or replace function pgrecall_internal._visible_sql(filter jsonb)
returns text
language sql stable parallel safe
return 'm.valid_from <= $2 and (m.valid_to is null or m.valid_to > $2) and '
       || case when filter is null then 'true' else pgrecall_internal._filter_sql(filter) end;
comment on function pgrecall_internal._visible_sql is
'Predicate over alias m: valid as of $2 and passes the filter ($3).';
