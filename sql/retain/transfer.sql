-- Copies of whole banks: within a database, and as rows of JSON from one to another.
--
-- clone_bank() copies each table of a bank. exported_rows() returns the rows of all tables as JSON,
-- in pages, and import_rows() stores them under the name of any bank: every column comes back as it
-- was, ids and history included. A row is {"table": "memory", "row": {...}}, without the bank. The
-- tables come in an order in which each row refers to earlier ones only. Memories refer to one
-- another, so rows at the end ("superseded") say what superseded each. import_rows() leaves out
-- rows that are there already, so an interrupted import can be sent again, and refuses a row that
-- differs from the one that is there. Names of tables and columns come from the list below and from
-- the catalog, never from the rows.
create or replace function pgrecall_internal._bank_tables()
returns table (place integer, name text, of_table text, keys text[])
language sql immutable parallel safe rows 20
begin atomic
  select v.place, v.name, v.of_table, v.keys
  from (values
    (1,  'bank',         'pgrecall.bank',                  '{}'::text[]),
    (2,  'fact_type',    'pgrecall.fact_type',             '{fact_type}'),
    (3,  'session',      'pgrecall.session',               '{session_id}'),
    (4,  'memory',       'pgrecall.memory',                '{memory_id}'),
    (5,  'embedding',    'pgrecall.embedding',             '{memory_id,model,kind,ordinal}'),
    (6,  'entity',       'pgrecall.entity',                '{entity_id}'),
    (7,  'entity_alias', 'pgrecall.entity_alias',          '{alias,entity_id}'),
    (8,  'mention',      'pgrecall.mention',               '{entity_id,fact_type,memory_id}'),
    (9,  'relation',     'pgrecall.relation',              '{relation_id}'),
    (10, 'link',         'pgrecall.link',                  '{from_id,kind,to_id}'),
    (11, 'message',      'pgrecall.message',               '{message_id}'),
    (12, 'statistics',   'pgrecall_internal.statistics',   '{kind}'),
    (13, 'lexeme',       'pgrecall_internal.lexeme',       '{kind,dimension,lexeme}'),
    (14, 'entity_count', 'pgrecall_internal.entity_count', '{entity_id}'),
    (15, 'vocabulary',   'pgrecall_internal.vocabulary',   '{}'),
    (16, 'superseded',   'pgrecall.memory',                '{memory_id}')
  ) as v(place, name, of_table, keys);
end;
comment on function pgrecall_internal._bank_tables is
'The tables of a bank in the order of an export, each with its primary key without bank_id.';

create or replace function pgrecall_internal._columns_of(of_table text)
returns text[]
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return array(
    select a.attname::text
    from   pg_attribute a
    where  a.attrelid = of_table::regclass and a.attnum > 0 and not a.attisdropped
      -- A copy gets a fence_key of its own.
      and  a.attgenerated = '' and a.attname not in ('bank_id', 'fence_key')
    order  by a.attnum
  );
end;
$$;
comment on function pgrecall_internal._columns_of is
'The columns of a table that are stored, without bank_id and fence_key.';

create or replace function pgrecall_internal._check_creator(what text)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  if not has_table_privilege('pgrecall.bank', 'insert') then
    perform pgrecall_internal._raise_not_permitted(
      what, 'pgrecall.bank', 'insert', is_any_bank => true);
  end if;
end;
$$;
comment on function pgrecall_internal._check_creator is
'Raises 42501 unless the role may create banks; what says what it was about to do.';

create or replace function pgrecall.clone_bank(bank text, new_bank text)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  part     record;
  copied   bigint;
  memories bigint;
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_creator(format('create bank "%s"', new_bank));
  perform pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_new_bank(new_bank);
  for part in
    select t.name, t.of_table, pgrecall_internal._columns_of(t.of_table) as columns
    from   pgrecall_internal._bank_tables() as t
    where  t.name <> 'superseded'
    order  by t.place
  loop
    -- Names come from _bank_tables() and the catalog.
    execute format(
      'with done as (insert into %1$s (bank_id, %2$s) select $2, %2$s from %1$s t'
      ' where t.bank_id = $1%3$s returning 1) select count(*) from done',
      part.of_table, (select string_agg(format('%I', c), ', ') from unnest(part.columns) as c),
      -- Also where another copy, or create_bank(), takes the name at the same time.
      case part.name when 'bank' then ' on conflict do nothing' end)
    into  copied
    using bank, new_bank;
    if part.name = 'bank' and copied = 0 then
      raise exception using
        errcode = 'RC002',
        message = format('bank "%s" already exists', new_bank),
        hint    = format('Choose another name, or drop it: select pgrecall.drop_bank(%L);',
                         new_bank);
    end if;
    if part.name = 'memory' then
      memories := copied;
    end if;
  end loop;
  return memories;
end;
$$;
comment on function pgrecall.clone_bank is
'Copies a bank with all it holds under a new name, ids and history included; returns how many '
'memories it has. The two are then independent. Vector indexes are for index_plan(). Errors: '
'RC001, RC002 bank exists, 22023 unusable name, 42501 naming the roles that may.';

create or replace function pgrecall_internal._check_rows(name text, rows jsonb)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  item  jsonb;
  place text;
begin
  select r.value, format('%s[%s]', _check_rows.name, r.n - 1) into item, place
  from   jsonb_array_elements(rows) with ordinality as r(value, n)
  left   join pgrecall_internal._bank_tables() as t on t.name = r.value ->> 'table'
  where  t.name is null or jsonb_typeof(r.value -> 'row') is distinct from 'object'
  order  by r.n
  limit  1;
  if found then
    perform pgrecall_internal._raise_invalid_field(
      place, format('not an exported row: %s', left(item::text, 80)),
      'Pass what exported_rows() returned: {"table": "memory", "row": {...}}.');
  end if;
  select format('%s[%s].row.%s', _check_rows.name, r.n - 1, k.name) into place
  from   jsonb_array_elements(rows) with ordinality as r(value, n)
  cross  join lateral jsonb_object_keys(r.value -> 'row') as k(name)
  join   (select t.name, pgrecall_internal._columns_of(t.of_table) || t.keys as columns
          from   pgrecall_internal._bank_tables() as t) as c on c.name = r.value ->> 'table'
  where  k.name <> all (c.columns)
  order  by r.n
  limit  1;
  if found then
    perform pgrecall_internal._raise_invalid_field(
      place, 'unknown column', 'It may be of a newer release: upgrade pgrecall first.');
  end if;
end;
$$;
comment on function pgrecall_internal._check_rows is
'Raises RC003 unless every element is a row of a table of a bank, with columns that it has.';

create or replace function pgrecall_internal._row_count(bank text)
returns bigint
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  part    record;
  counted bigint;
  total   bigint := 0;
begin
  for part in select t.name, t.of_table from pgrecall_internal._bank_tables() as t loop
    -- Names come from _bank_tables().
    execute format(
      'select count(*) from %s t where t.bank_id = $1%s', part.of_table,
      case part.name when 'superseded' then ' and t.superseded_by is not null' end)
    into  counted
    using bank;
    total := total + counted;
  end loop;
  return total;
end;
$$;
comment on function pgrecall_internal._row_count is 'The number of rows that an export has.';

create or replace function pgrecall.exported_rows(
  bank text, after jsonb default null, batch_size integer default 1000)
returns setof jsonb
language plpgsql stable parallel unsafe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
set extra_float_digits = 1
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $$
declare
  first    jsonb := nullif(after, 'null');
  part     record;
  sent     bigint := 0;
  returned bigint;
  total    jsonb := '{}';
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  if first is not null then
    perform pgrecall_internal._check_rows('after', jsonb_build_array(first));
  elsif current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
    total := jsonb_build_object('rows', pgrecall_internal._row_count(bank));
  end if;
  for part in
    select t.name, t.of_table, t.keys, coalesce(t.name = first ->> 'table', false) as is_begun,
           't.' || array_to_string(t.keys, ', t.') as key_of_row,
           'a.' || array_to_string(t.keys, ', a.') as key_before
    from   pgrecall_internal._bank_tables() as t
    where  t.place >= coalesce((
             select b.place from pgrecall_internal._bank_tables() as b
             where  b.name = first ->> 'table'), 0)
    order  by t.place
  loop
    exit when sent >= batch_size;
    continue when part.is_begun and part.keys = '{}';
    -- Names come from _bank_tables(). The lateral join makes the key before the page a condition
    -- of the index.
    return query execute format(
      'select jsonb_build_object(''table'', %L, ''row'', p.content) || $4'
      ' from jsonb_populate_record(null::%s, $3) as a cross join lateral ('
      'select %s as content from %2$s t where t.bank_id = $1%4$s%5$s%6$s limit $2)'
      ' as p',
      part.name, part.of_table,
      case part.name
        when 'superseded'
          then 'jsonb_build_object(''memory_id'', t.memory_id, ''superseded_by'', t.superseded_by)'
        when 'memory' then 'to_jsonb(t) - ''bank_id'' - ''superseded_by'''
        when 'bank'
          then 'to_jsonb(t) - ''{bank_id,fence_key,embedding_mean,low_cosine,high_cosine}''::text[]'
        else 'to_jsonb(t) - ''bank_id''' end,
      case part.name when 'superseded' then ' and t.superseded_by is not null' end,
      case when part.is_begun
        then format(' and (%s) > (%s)', part.key_of_row, part.key_before) end,
      case when part.keys <> '{}' then ' order by t.bank_id, ' || part.key_of_row end)
    using bank, batch_size - sent,
          case when part.is_begun then first -> 'row' else '{}'::jsonb end,
          case part.name when 'bank' then total else '{}' end;
    get diagnostics returned = row_count;
    sent := sent + returned;
  end loop;
end;
$$;
comment on function pgrecall.exported_rows is
'All rows of a bank as {"table": "memory", "row": {...}}, at most batch_size, in the order in '
'which import_rows() takes them. For the next page pass the last one as after; the end is a page '
'without rows. One transaction (repeatable read) gives a consistent copy of a bank that is being '
'written; the first row then has the number of all, "rows", so that a copy that was cut is '
'noticed. Errors: RC001, RC003 after is no such row, 22023.';

create or replace function pgrecall_internal._import_table(
  bank text, name text, of_table text, keys text[], rows jsonb)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  columns text[] := array(
    select c.name
    from   unnest(pgrecall_internal._columns_of(of_table)) with ordinality as c(name, n)
    where  exists (select from jsonb_array_elements(rows) as r where r.value ? c.name)
    order  by c.n);
  stored  bigint;
  other   jsonb;
begin
  if name = 'superseded' then
    with done as (
      update pgrecall.memory m
      set    superseded_by = r.superseded_by
      from   jsonb_populate_recordset(null::pgrecall.memory, rows) as r
      where  m.bank_id = _import_table.bank and m.memory_id = r.memory_id
        and  m.superseded_by is distinct from r.superseded_by
      returning 1
    )
    select count(*) into stored from done;
    return stored;
  end if;
  -- Names come from _bank_tables() and the catalog.
  execute format(
    'with done as (insert into %1$s (bank_id%2$s) select $1%2$s'
    ' from jsonb_populate_recordset(null::%1$s, $2) as r'
    ' on conflict (%3$s) do nothing returning 1) select count(*) from done',
    of_table, (select string_agg(format(', %I', c), '') from unnest(columns) as c),
    array_to_string('{bank_id}' || keys, ', '))
  into  stored
  using bank, rows;
  if stored < jsonb_array_length(rows) and of_table like 'pgrecall.%' then
    execute format(
      'select to_jsonb(r) from jsonb_populate_recordset(null::%1$s, $2) as r'
      ' join %1$s t on t.bank_id = $1%2$s where row(%3$s) is distinct from row(%4$s) limit 1',
      of_table,
      (select string_agg(format(' and t.%1$I = r.%1$I', k), '') from unnest(keys) as k),
      (select string_agg(format('t.%I', c), ', ') from unnest(columns) as c),
      (select string_agg(format('r.%I', c), ', ') from unnest(columns) as c))
    into  other
    using bank, rows;
    if other is not null then
      raise exception using
        errcode = 'RC002',
        message = concat_ws(': ',
          format('bank "%s" holds another row of table %s already', bank, name), (
            select jsonb_object_agg(k, other -> k) from unnest(keys) as k)),
        hint    = 'Import into a bank that does not exist yet.';
    end if;
  end if;
  return stored;
end;
$$;
comment on function pgrecall_internal._import_table is
'Stores exported rows of one table that are not there yet; returns how many. Errors: RC002 a row '
'that is there differs.';

create or replace function pgrecall_internal._raise_unusable_row(
  bank text, rows jsonb, problem text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  one   record;
  place text := 'rows';
begin
  for one in
    select t.name, t.of_table, t.keys, r.n - 1 as n, jsonb_build_array(r.value -> 'row') as row
    from   jsonb_array_elements(_raise_unusable_row.rows) with ordinality as r(value, n)
    join   pgrecall_internal._bank_tables() as t on t.name = r.value ->> 'table'
    order  by t.place, r.n
  loop
    begin
      perform pgrecall_internal._import_table(bank, one.name, one.of_table, one.keys, one.row);
    exception when integrity_constraint_violation or data_exception then
      place := format('rows[%s]', one.n);
      problem := sqlerrm;
      exit;
    end;
  end loop;
  perform pgrecall_internal._raise_invalid_field(
    place, format('unusable row: %s', left(problem, 200)),
    'Pass all rows of exported_rows(), in their order and unchanged.');
end;
$$;
comment on function pgrecall_internal._raise_unusable_row is
'Raises RC003 for rows that cannot be stored together, with the first that cannot be stored alone.';

create or replace function pgrecall.import_rows(bank text, rows jsonb)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  part        record;
  stored      bigint := 0;
  greatest_id bigint;
  missing     bigint;
begin
  perform pgrecall_internal._check_new_bank(bank);
  perform pgrecall_internal._check_array('rows', rows);
  perform pgrecall_internal._check_rows('rows', rows);
  if rows @> '[{"table": "bank"}]' then
    perform pgrecall_internal._check_creator(format('import bank "%s"', bank));
  end if;
  if exists (select from pgrecall.bank b where b.bank_id = import_rows.bank)
     or not rows @> '[{"table": "bank"}]'
  then
    perform pgrecall_internal._locked_bank(bank);
  end if;
  begin
    for part in
      select t.name, t.of_table, t.keys, jsonb_agg(r.value -> 'row') as rows
      from   jsonb_array_elements(import_rows.rows) as r
      join   pgrecall_internal._bank_tables() as t on t.name = r.value ->> 'table'
      group  by t.place, t.name, t.of_table, t.keys
      order  by t.place
    loop
      stored := stored + pgrecall_internal._import_table(
        bank, part.name, part.of_table, part.keys, part.rows);
    end loop;
    -- Later ids must not collide with imported ones, unless those are of another range.
    greatest_id := (
      select max(v.id::bigint)
      from   jsonb_array_elements(rows) as r
      cross  join lateral (values
        (r.value #>> '{row,memory_id}'), (r.value #>> '{row,entity_id}'),
        (r.value #>> '{row,relation_id}'), (r.value #>> '{row,message_id}'),
        ((select max(c::bigint)::text
          from   jsonb_path_query(r.value, 'lax $.row.corrections[*].correction_id') as c)),
        -- Of a source that had no fact yet.
        ((select max(q.value::bigint)::text
          from   jsonb_each_text(nullif(r.value #> '{row,quarantined}', 'null')) as q))) as v(id)
    );
  exception when integrity_constraint_violation or data_exception then
    perform pgrecall_internal._raise_unusable_row(bank, rows, sqlerrm);
  end;
  -- Writers take ids meanwhile. nextval() never goes back, as setval() would where they have passed
  -- that id since the sequence was read.
  select greatest_id - coalesce(pg_sequence_last_value('pgrecall.id_seq'), 0) into missing
  from   pg_sequence s
  where  s.seqrelid = 'pgrecall.id_seq'::regclass and greatest_id between s.seqmin and s.seqmax;
  if missing > 100000 then
    perform setval('pgrecall.id_seq', greatest_id);
  else
    perform nextval('pgrecall.id_seq') from generate_series(1, missing);
  end if;
  return stored;
end;
$$;
comment on function pgrecall.import_rows is
'Stores rows of exported_rows() under the name of a bank, which the first of them creates: every '
'column as it was. Rows that are there already are left out, so an import can be sent again. '
'Returns how many were stored. All or nothing. Ids stay; where they exceed the sequence id_seq, it '
'is moved past them; by more than 100,000 needs the right to update it. Errors: RC001, RC002 the '
'bank holds another row under that key, RC003 unusable row, 22023 unusable name, 42501 naming the '
'roles that may.';
