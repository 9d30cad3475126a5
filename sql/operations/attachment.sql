-- Attaching a table of the user's own: its rows become memories, which follow changes of the rows.
--
-- attach_table() checks columns and rights, stores the mapping, and creates four statement triggers
-- on the table that note changed keys (state/attachment.sql). The triggers run a function that
-- attach_table() creates beside the table, with the rights of the table's owner. Hence a role that
-- may write to the table needs no right in pgrecall, and no code runs with the rights of somebody
-- else. The name of the triggers is a hash of bank, table and columns: a row of attachment that
-- claims what the owner has not attached has no triggers, and is not synced. The function only
-- inserts keys. With apply => 'commit' it also syncs them when the transaction commits, after its
-- last statement, so that it locks no bank while it waits for a row. If constraints are set
-- immediate, the next change or sync brings them into the bank. sync_table() (operations/sync.sql)
-- does the rest. Statements consist of names from the catalog (%I) and quoted constants (%L).
create or replace function pgrecall_internal._attachment_name(
  bank text, relation text, key text, columns jsonb)
returns text
language sql stable parallel safe
return 'pgrecall_' || left(encode(sha256(convert_to(
  jsonb_build_array(bank, relation, key, columns)::text, 'UTF8')), 'hex'), 16);
comment on function pgrecall_internal._attachment_name is
'Name of the function, and first part of the names of the triggers, of an attached table; table '
'attachment takes no other.';

create or replace function pgrecall_internal._attachment(bank text, relation text)
returns pgrecall.attachment
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  found_ones pgrecall.attachment[];
  part       constant text := '("([^"]|"")+"|[[:alpha:]_][[:alnum:]_$]*)';
  -- As attach_table() reads it; null where it is no such name, as without the quotes that it needs.
  named      text[] := case
    when relation ~ format('^(%s\.)?%s$', part, part) then parse_ident(relation) end;
begin
  found_ones := array(
    select a from pgrecall.attachment a
    cross  join lateral parse_ident(a.relation) as p(names)
    where  a.bank_id = _attachment.bank
      and  (a.relation = _attachment.relation or p.names[2] = _attachment.relation
            or named in (p.names, p.names[2:]))
    order  by a.relation);
  if cardinality(found_ones) <> 1 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = case cardinality(found_ones)
        when 0 then format('table "%s" is not attached to bank "%s"', relation, bank)
        else format('several tables "%s" are attached to bank "%s"', relation, bank) end,
      hint    = coalesce(
        'Attached are: ' || (select string_agg(a.relation, ', ' order by a.relation)
                             from   pgrecall.attachment a
                             where  a.bank_id = _attachment.bank),
        format('Attach it with: select * from pgrecall.attach_table(%L, %L, ''id'', ''body'');',
               bank, relation));
  end if;
  return found_ones[1];
end;
$$;
comment on function pgrecall_internal._attachment is
'The attachment of a table, by its name with or without the schema. Errors: 22023 none.';

create or replace function pgrecall_internal._is_unnoted(attachment pgrecall.attachment)
returns boolean
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  relation oid := to_regclass(attachment.relation);
begin
  return exists (select from pg_class c where c.oid = relation and c.relkind = 'r')
         and 4 > (
           select count(*) from pg_trigger t
           where  t.tgrelid = relation and t.tgenabled in ('O', 'A')
             and  starts_with(t.tgname, attachment.note_name || '_note_'));
end;
$$;
comment on function pgrecall_internal._is_unnoted is
'Whether a table is there without the triggers that note its changes.';

create or replace function pgrecall_internal._attachment_problem(attachment pgrecall.attachment)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  relation oid := to_regclass(attachment.relation);
  lost     text := (
    select min(n.name)
    from (
      select attachment.key as name
      union all
      select x from jsonb_each(attachment.columns) as e
      cross  join lateral jsonb_array_elements_text(e.value) as x
    ) as n
    where  not exists (select from pg_attribute a
                       where  a.attrelid = relation and a.attname = n.name
                         and  a.attnum > 0 and not a.attisdropped));
begin
  return case
    when relation is null or (select c.relkind from pg_class c where c.oid = relation) <> 'r' then
      format('table %s is gone, or has another name now', attachment.relation)
    when pgrecall_internal._is_unnoted(attachment) then
      format('the triggers of table %s are gone or disabled', attachment.relation)
    when lost is not null then
      format('table %s has no column "%s"', attachment.relation, lost)
    when not has_table_privilege(relation, 'select') then
      format('role "%s" may not read table %s', current_user, attachment.relation)
    when row_security_active(relation) then
      format('row security hides rows of table %s from role "%s"', attachment.relation,
             current_user)
  end;
end;
$$;
comment on function pgrecall_internal._attachment_problem is
'Why an attached table cannot be synced by the current role; null where it can.';

create or replace function pgrecall_internal._checked_column(relation regclass, name text)
returns pg_attribute
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  found_column pg_attribute;
begin
  select a.* into found_column
  from   pg_attribute a
  where  a.attrelid = relation and a.attname = name and a.attnum > 0 and not a.attisdropped;
  if not found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('table %s has no column "%s"', relation, name),
      hint    = 'It has ' || (
        select string_agg(a.attname, ', ' order by a.attnum)
        from   pg_attribute a
        where  a.attrelid = relation and a.attnum > 0 and not a.attisdropped)
        || '. An expression can be made a column: generated always as (...) stored.';
  end if;
  return found_column;
end;
$$;
comment on function pgrecall_internal._checked_column is
'A column of a table. Errors: 22023 no column has that name.';

create or replace function pgrecall_internal._key_type(relation regclass, key text)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  key_type text := format_type(
    (pgrecall_internal._checked_column(relation, key)).atttypid, null);
begin
  -- Every sync checks this, because the input function of a user-defined type might run code of a
  -- user.
  if key_type not in ('smallint', 'integer', 'bigint', 'text', 'character varying', 'uuid') then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('column "%s" of table %s is of type %s, which cannot be a key',
                       key, relation, key_type),
      hint    = 'A key is an integer, a text or a uuid. For another type add a column of text: '
                'generated always as (...) stored.';
  end if;
  return key_type;
end;
$$;
comment on function pgrecall_internal._key_type is
'The type of the key column of a table. Errors: 22023 no such type can be a key.';

create or replace function pgrecall_internal._column_expression(
  relation regclass, field text, name text)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  found_column pg_attribute := pgrecall_internal._checked_column(relation, name);
  is_own       boolean := found_column.atttypid >= 16384;  -- a user-defined type
  kind         "char";
  of_type      text := format_type(found_column.atttypid, null);
  value        text := format('r.%I', name);
  -- Never a cast of a user-defined type, which might run code of a user.
  as_text      text := format('nullif(format(''%%s'', %s), '''')', value);
begin
  select t.typcategory into kind from pg_type t where t.oid = found_column.atttypid;
  if field in ('text', 'context', 'fact_type', 'fact_key') then
    return format('to_jsonb(%s)', as_text);
  elsif field = 'metadata' then
    return format('jsonb_build_object(%L::text, %s)', name, case
      when is_own then as_text
      -- What jsonb cannot hold, such as \u0000, stays text.
      when of_type = 'json' then format(
        'case when pg_input_is_valid(%1$s::text, ''jsonb'') then %1$s::jsonb '
        'else to_jsonb(%1$s::text) end', value)
      else value end);
  elsif field in ('entities', 'tags') then
    if of_type = 'jsonb' then
      return format('case coalesce(jsonb_typeof(%1$s), ''null'') when ''array'' then %1$s '
                    'when ''null'' then ''[]'' else jsonb_build_array(%1$s) end', value);
    elsif kind = 'A' and not is_own then
      return format('to_jsonb(array(select x.item from unnest(%s::text[]) as x(item) '
                    'where x.item <> ''''))', value);
    end if;
    return format('to_jsonb(array_remove(array[%s], null))', as_text);
  elsif of_type in ('tstzrange', 'tsrange', 'daterange') and field = 'occurred' then
    return format(
      'case when not isempty(%1$s) then jsonb_build_array('
      'nullif(to_jsonb(lower(%1$s)), ''"-infinity"''), '
      'nullif(to_jsonb(upper(%1$s)), ''"infinity"'')) end', value);
  elsif not is_own and kind in ('D', 'N') and (kind = 'N') = (field = 'confidence') then
    -- An infinite time says that there is none.
    return format('nullif(nullif(to_jsonb(%s), ''"infinity"''), ''"-infinity"'')', value);
  elsif kind = 'S' and field <> 'confidence' then
    return format('to_jsonb(%s)', as_text);
  end if;
  raise exception using
    errcode = 'invalid_parameter_value',
    message = format('column "%s" of table %s is of type %s, which cannot be %s', name, relation,
                     of_type, field),
    hint    = case field
      when 'confidence' then 'Name a column of numbers from 0 to 1.'
      when 'occurred' then 'Name a column of dates, times, or a range of them.'
      else 'Name a column of dates or times.' end;
end;
$$;
comment on function pgrecall_internal._column_expression is
'SQL for the JSON that a column gives a field of a fact. Errors: 22023 no such column, or one of '
'an unfit type.';

create or replace function pgrecall_internal._row_expression(
  relation regclass, source text, key text, fact_type text, columns jsonb)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return (
    select format('jsonb_build_object(''fact_type'', %L::text, ''source_id'', '
                  '%L::text || format(''%%s'', r.%I))', fact_type, source || ':', key)
           || string_agg(format(' || jsonb_strip_nulls(jsonb_build_object(%L::text, %s))',
                                f.field, f.expression), '' order by f.field)
    from (
      select c.field,
             string_agg(
               case when c.field in ('entities', 'tags')
                 then format('coalesce(%s, ''[]'')', x.expression) else x.expression end,
               ' || ' order by n.place) as expression
      from (
        select e.key as field, e.value from jsonb_each(columns) as e
        where  e.key <> 'metadata'
        union all
        -- The key is among the metadata, so that a row of a recall can be joined by it.
        select 'metadata', to_jsonb(array[key]) || coalesce(columns -> 'metadata', '[]')
      ) as c(field, names)
      cross  join lateral jsonb_array_elements_text(c.names) with ordinality as n(name, place)
      cross  join lateral pgrecall_internal._column_expression(relation, c.field, n.name)
               as x(expression)
      group  by c.field
    ) as f
  );
end;
$$;
comment on function pgrecall_internal._row_expression is
'SQL that makes a fact, without null fields, of a row r of a table. Errors: 22023.';

create or replace function pgrecall_internal._attachable(relation regclass, key text)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  the_table  pg_class;
  key_column pg_attribute;
begin
  select c.* into the_table from pg_class c where c.oid = relation;
  if not found then
    raise exception using
      errcode = 'null_value_not_allowed',
      message = 'relation must not be null',
      hint    = 'Name the table: select pgrecall.attach_table(''team'', ''ticket'', ''id'', '
                '''body'');';
  elsif the_table.relkind <> 'r' or the_table.relpersistence = 't' or the_table.relispartition
     or exists (select from pg_inherits i where relation in (i.inhparent, i.inhrelid))
     or the_table.oid < 16384  -- of PostgreSQL itself
     or the_table.relnamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
  then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s cannot be attached', relation),
      hint    = 'Attach an ordinary table of your own. Triggers on a view, a temporary table, a '
                'partition or a partitioned table would miss changes.';
  elsif not pg_has_role(the_table.relowner, 'usage') then
    raise exception using
      errcode = 'insufficient_privilege',
      message = format('role "%s" does not own table %s', current_user, relation),
      hint    = format('Its owner attaches it: set role %I;',
                       pg_get_userbyid(the_table.relowner));
  elsif not has_table_privilege(the_table.relowner, 'pgrecall.attached_change', 'insert') then
    raise exception using
      errcode = 'insufficient_privilege',
      message = format('role "%s", which owns table %s, may not note its changes',
                       pg_get_userbyid(the_table.relowner), relation),
      hint    = format('Its triggers run with the rights of that role: grant pgrecall_writer to '
                       '%I;', pg_get_userbyid(the_table.relowner));
  end if;
  key_column := pgrecall_internal._checked_column(relation, key);
  perform pgrecall_internal._key_type(relation, key);
  if not key_column.attnotnull
     or not exists (
       select from pg_index i
       where  i.indrelid = relation and i.indisunique and i.indisvalid and i.indimmediate
         and  i.indpred is null and i.indnkeyatts = 1 and i.indkey[0] = key_column.attnum)
  then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('column "%s" of table %s is not a key', key, relation),
      hint    = 'A key is not null and has a unique index of its own. For several columns add one: '
                'generated always as (a || '':'' || b) stored.';
  end if;
end;
$$;
comment on function pgrecall_internal._attachable is
'Checks that the current role may attach a table, and that a column identifies its rows. Errors: '
'22004, 22023, 42501.';

create or replace function pgrecall_internal._attached_columns(
  relation regclass, text_column text, occurred text, entities text[], fields jsonb)
returns jsonb
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  columns jsonb;
  field   text;
  names   jsonb;
begin
  perform pgrecall_internal._check_object(
    'fields', fields, 'Write {"context": "title", "tags": ["labels"]}: columns by field.');
  columns := jsonb_strip_nulls(jsonb_build_object(
    'text', to_jsonb(array[text_column]),
    'occurred', case when occurred is not null then to_jsonb(array[occurred]) end,
    'entities', case when cardinality(entities) > 0 then to_jsonb(entities) end));
  for field, names in select e.key, e.value from jsonb_each(fields) as e loop
    if field not in ('context', 'fact_type', 'fact_key', 'mentioned_at', 'expires_at',
                     'confidence', 'tags', 'metadata')
    then
      raise exception using
        errcode = 'invalid_parameter_value',
        message = format('fields cannot have "%s"', field),
        hint    = 'They are context, fact_type, fact_key, mentioned_at, expires_at, confidence, '
                  'tags and metadata.';
    end if;
    names := case jsonb_typeof(names) when 'array' then names else jsonb_build_array(names) end;
    if jsonb_array_length(names) = 0
       or jsonb_array_length(names) > 1 and field not in ('tags', 'metadata')
       or jsonb_path_exists(names, '$[*] ? (@.type() != "string")')
    then
      raise exception using
        errcode = 'invalid_parameter_value',
        message = format('fields.%s cannot be %s', field, left(names::text, 80)),
        hint    = 'Name a column; of tags and metadata also several, in an array.';
    end if;
    columns := columns || jsonb_build_object(field, names);
  end loop;
  -- Each of them exists, and is of a type that fits.
  perform pgrecall_internal._column_expression(relation, e.key, n.name)
  from   jsonb_each(columns) as e
  cross  join lateral jsonb_array_elements_text(e.value) as n(name);
  return columns;
end;
$$;
comment on function pgrecall_internal._attached_columns is
'The columns by field, as table attachment keeps them, checked. Errors: 22023.';

create or replace function pgrecall_internal._noted_attachment(name text, relation text)
returns pgrecall.attachment
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  noted pgrecall.attachment;
begin
  select a.* into noted from pgrecall.attachment a where a.note_name = _noted_attachment.name;
  -- A bank may also be hidden, from a session that lacks its setting: a change would be lost.
  if not found and row_security_active('pgrecall.attachment') then
    raise exception using
      errcode = 'insufficient_privilege',
      message = format('row security hides the bank of table %s from role "%s"', relation,
                       current_user),
      hint    = format('Set the setting that enable_row_security() goes by to the name of the '
                       'bank, or let the owner of the table see it. If the bank was dropped: '
                       'drop function %I.%I cascade;', (parse_ident(relation))[1], name);
  end if;
  return noted;
end;
$$;
comment on function pgrecall_internal._noted_attachment is
'The attachment whose triggers have this name, for them; null where its bank was dropped. Errors: '
'42501 row security hides the bank.';

create or replace function pgrecall_internal._create_note_triggers(
  relation regclass, attachment pgrecall.attachment)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  name     text := attachment.note_name;
  noted_by text := format('%I.%I', (parse_ident(attachment.relation))[1], name);
  event    text;
  seen     text;
begin
  perform pgrecall_internal._drop_note_triggers(relation, name);
  -- It does nothing after the bank, or pgrecall itself, was dropped, so that the table keeps
  -- working. An upgrade does not reach it: it leaves to _noted_attachment() what may change.
  execute format($sql$
    create function %1$s() returns trigger
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
    as $body$
    declare
      bank       text;
      table_name text;
    begin
      if to_regclass('pgrecall.attached_change') is null then
        return null;
      end if;
      select a.bank_id, a.relation into bank, table_name
      from   pgrecall_internal._noted_attachment(%2$L, tg_relid::regclass::text) as a;
      if bank is null then
        return null;
      elsif tg_level = 'ROW' then
        if exists (select from pgrecall.attached_change c
                   where  c.bank_id = bank and c.relation = table_name and c.problem is null)
        then
          perform pgrecall.sync_table(bank, table_name, 100000, is_copying => false);
        end if;
      elsif tg_op = 'INSERT' then
        insert into pgrecall.attached_change (bank_id, relation, key)
        select bank, table_name, n.%3$I::text from new_rows n;
      elsif tg_op = 'UPDATE' then
        insert into pgrecall.attached_change (bank_id, relation, key)
        select bank, table_name, u.key
        from (select o.%3$I::text from old_rows o union select n.%3$I::text from new_rows n)
               as u(key);
      elsif tg_op = 'DELETE' then
        insert into pgrecall.attached_change (bank_id, relation, key)
        select bank, table_name, o.%3$I::text from old_rows o;
      else
        insert into pgrecall.attached_change (bank_id, relation) values (bank, table_name);
      end if;
      return null;
    end;
    $body$
    $sql$, noted_by, name, attachment.key);
  execute format('revoke all on function %s() from public', noted_by);
  -- Owned by the owner of the table, whoever attached it: the owner decides what a cast of the key,
  -- or another trigger, runs.
  execute format('alter function %s() owner to %I', noted_by, (
    select pg_get_userbyid(c.relowner) from pg_class c where c.oid = relation));
  for event, seen in
    values ('insert', 'referencing new table as new_rows'),
           ('update', 'referencing old table as old_rows new table as new_rows'),
           ('delete', 'referencing old table as old_rows'),
           ('truncate', '')
  loop
    execute format('create trigger %I after %s on %s %s for each statement execute function %s()',
                   name || '_note_' || event, event, relation, seen, noted_by);
  end loop;
  if attachment.apply = 'commit' then
    execute format('create constraint trigger %I after insert or update or delete on %s '
                   'deferrable initially deferred for each row execute function %s()',
                   name || '_sync', relation, noted_by);
  end if;
end;
$$;
comment on function pgrecall_internal._create_note_triggers is
'Creates the triggers of an attachment on a table, in place of earlier ones.';

create or replace function pgrecall.attached_tables(bank text)
returns setof pgrecall.attached_table
language plpgsql stable parallel safe rows 5
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  perform pgrecall_internal._bank(bank);
  return query
  select a.bank_id, a.relation,
         case
           when p.problem is not null then 'broken'
           when not a.is_copied then 'copying'
           when c.pending > 0 then 'behind'
           else 'current' end,
         a.key, a.columns, a.apply,
         (select count(distinct w.key) from pgrecall.attached_row w
          where  w.bank_id = attached_tables.bank and w.relation = a.relation),
         (select nullif(t.reltuples, -1)::bigint from pg_class t
          where  t.oid = to_regclass(a.relation)),
         c.pending, c.failed, coalesce(p.problem, c.problem), c.pending_for
  from   pgrecall.attachment a
  cross  join lateral (
    select count(*) filter (where x.problem is null) as pending,
           count(*) filter (where x.problem is not null) as failed,
           min(format('row %s: %s', x.key, x.problem)) filter (where x.problem is not null)
             as problem,
           clock_timestamp() - min(x.noted_at) filter (where x.problem is null) as pending_for
    from   pgrecall.attached_change x
    where  x.bank_id = attached_tables.bank and x.relation = a.relation
  ) as c
  cross  join lateral pgrecall_internal._attachment_problem(a) as p(problem)
  where  a.bank_id = attached_tables.bank
  order  by a.relation;
end;
$$;
comment on function pgrecall.attached_tables is
'The tables that are attached to a bank, and how far behind each is. Errors: RC001.';

create or replace function pgrecall.attach_table(
  bank            text,
  relation        regclass,
  key             text,
  text            text,
  fact_type       text default 'world',
  occurred        text default null,
  entities        text[] default '{}',
  fields          jsonb default '{}',
  apply           text default 'later',
  is_history_kept boolean default true)
returns setof pgrecall.attached_table
language plpgsql volatile parallel unsafe rows 1
set search_path from current
set quote_all_identifiers = off
as $$
declare
  attached pgrecall.attachment;
begin
  perform pgrecall_internal._bank_to_write(bank);
  perform pgrecall_internal._attachable(relation, key);
  perform pgrecall_internal._lock_attached(relation);
  perform pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._fact_types(bank, array[fact_type]);
  perform pgrecall_internal._check_choice(
    'apply', apply, '{later,commit}',
    'With "later" call pgrecall.sync_table() when changes are to reach the bank.');
  select a.* into attached
  from   pgrecall.attachment a
  where  a.bank_id = attach_table.bank and to_regclass(a.relation) = attach_table.relation;
  if attached.key <> attach_table.key then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('table %s is attached by column "%s", not "%s"', relation, attached.key,
                       key),
      hint    = format('Its memories are known by that. Detach it first, and erase them: select '
                       'pgrecall.detach_table(%L, %L, true);', bank, attached.relation);
  end if;
  -- Other columns give the triggers other names.
  perform pgrecall_internal._drop_note_triggers(relation, attached.note_name);
  insert into pgrecall.attachment as a
         (bank_id, relation, note_name, key, columns, fact_type, apply, is_history_kept)
  select attach_table.bank, n.name,
         pgrecall_internal._attachment_name(bank, n.name, attach_table.key, n.columns),
         attach_table.key, n.columns, attach_table.fact_type, attach_table.apply,
         coalesce(attach_table.is_history_kept, true)
  from (
    select format('%s.%I', c.relnamespace::regnamespace, c.relname) as name,
           pgrecall_internal._attached_columns(
             attach_table.relation, attach_table.text, attach_table.occurred,
             attach_table.entities, attach_table.fields) as columns
    from   pg_class c
    where  c.oid = attach_table.relation
  ) as n
  on conflict on constraint attachment_pkey do update
  set    key = excluded.key, note_name = excluded.note_name, columns = excluded.columns,
         fact_type = excluded.fact_type, apply = excluded.apply,
         is_history_kept = excluded.is_history_kept,
         -- All rows are read again: those that now give another fact are changed.
         is_copied = false, copied_key = null
  returning a.* into attached;
  perform pgrecall_internal._create_note_triggers(relation, attached);
  return query
  select t.* from pgrecall.attached_tables(bank) as t where t.relation = attached.relation;
end;
$$;
comment on function pgrecall.attach_table is
'Makes the rows of a table of your own memories of a bank. key and text name columns, occurred a '
'column of times or ranges, entities columns with a name, an array of names, or jsonb as retain() '
'takes it. fields names columns for other fields: {"context": "title", "tags": ["labels"]}, of '
'context, fact_type, fact_key (such as the number of a ticket, so that it is found by it), '
'mentioned_at, expires_at, confidence, tags and metadata. Nothing is copied yet: call '
'sync_table() until it is complete. From now on triggers note changes. apply => ''later'': '
'sync_table() brings them into the bank; ''commit'': the changing transaction does so when it '
'commits, and has the bank for itself meanwhile; a truncate is left to sync_table(). A memory has '
'the source_id schema.table:key, and the key in its metadata. A changed row ends its memory and '
'gets a new one, or with is_history_kept => false replaces it; a deleted row, one without a text, '
'or one that cannot be stored, has no memory. Call it again with other columns, and all rows are '
'read again. The owner of the table calls it, and the triggers run with the owner''s rights; a '
'change is refused where row security hides the bank from the owner. Locks the table against '
'writers for a moment. Errors: RC001, RC008, 22004, 22023 naming the column or table that does '
'not fit, 42501 not the owner.';

create or replace function pgrecall.detach_table(
  bank text, relation text, is_forgotten boolean default false)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  attached   pgrecall.attachment;
  memory_ids bigint[];
begin
  perform pgrecall_internal._bank_to_write(bank);
  attached := pgrecall_internal._attachment(bank, relation);
  if to_regclass(attached.relation) is not null then
    perform pgrecall_internal._lock_attached(attached.relation::regclass);
  end if;
  perform pgrecall_internal._locked_bank(bank);
  memory_ids := array(
    select w.memory_id from pgrecall.attached_row w
    where  w.bank_id = detach_table.bank and w.relation = attached.relation);
  if to_regclass(attached.relation) is not null then
    perform pgrecall_internal._drop_note_triggers(attached.relation::regclass, attached.note_name);
  end if;
  delete from pgrecall.attachment a
  where  a.bank_id = detach_table.bank and a.relation = attached.relation;
  if is_forgotten then
    return pgrecall.forget(bank, memory_ids);
  end if;
  return cardinality(memory_ids);
end;
$$;
comment on function pgrecall.detach_table is
'Removes the triggers from a table, which may no longer exist. Its memories stay as ordinary ones, '
'or with is_forgotten are erased; returns how many there are. relation: its name, with or without '
'the schema. Errors: RC001, 22023 not attached, 42501 not the owner of the table.';
