-- Banks: creating, configuring, dropping and listing them.
--
-- create_bank() makes a bank with six fact types; configure_bank() changes its defaults, which are
-- of two kinds: options of a recall, declared by recall_options() and kept in bank.options, and
-- settings for storage and indexes, which are columns of bank. The views bank_overview and fact are
-- for people and BI tools.
create or replace function pgrecall_internal._check_time_settings(settings jsonb)
returns void
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  name   text;
  value  jsonb;
  wanted text;
begin
  perform pgrecall_internal._check_object(
    'time_settings', coalesce(settings, '{}'),
    'Write {"language": "de", "recent_days": 14}, or {} for the defaults.');
  for name, value in select e.key, e.value from jsonb_each(settings) as e loop
    wanted := case
      when name = 'language' and coalesce(value #>> '{}' !~ '^[a-z]{2,3}$', true)
        then 'a code of two or three small letters such as "de"'
      when name = 'country' and coalesce(value #>> '{}' !~ '^[A-Z]{2}$', true)
        then 'an ISO 3166 code such as "AT"'
      when name in ('southern', 'day_first') and jsonb_typeof(value) <> 'boolean'
        then 'true or false'
      when name = 'recent_days' and coalesce(value #>> '{}' !~ '^[1-9][0-9]{0,3}$', true)
        then 'a number of days from 1 to 9999'
      when name = 'few' and coalesce(value #>> '{}' !~ '^([2-9]|[1-9][0-9])$', true)
        then 'a number from 2 to 99'
      when name not in ('language', 'country', 'southern', 'day_first', 'recent_days', 'few')
        then 'left out: there is no such setting'
    end;
    if wanted is not null then
      raise exception using
        errcode = 'invalid_parameter_value',
        message = format('time_settings: "%s" must be %s, not %s', name, wanted, value),
        hint    = 'Settings: language, country, southern, day_first, recent_days, few.';
    end if;
  end loop;
end;
$$;
comment on function pgrecall_internal._check_time_settings is
'Raises 22023 for an unknown or invalid setting of time_settings.';

create or replace function pgrecall_internal._settings()
returns text[]
language sql immutable parallel safe
return array[
  'is_name_embedded', 'time_settings', 'hnsw_threshold', 'hnsw_m', 'hnsw_ef_construction',
  'vector_search', 'leading_dimensions', 'bm25_k1', 'bm25_b', 'lexical_backend', 'context_weight',
  'key_weight', 'message_context_weight', 'replace', 'single_relations', 'log_share',
  'source_trust', 'text_search_config'];
comment on function pgrecall_internal._settings is
'The columns of bank that configure_bank() sets.';

create or replace function pgrecall_internal._check_configuration(text_search_config text)
returns void
language plpgsql stable parallel safe
as $$
begin
  -- A number or "-" is also a valid regconfig, whatever has that number.
  if pg_input_is_valid(text_search_config, 'regconfig') then
    perform from pg_ts_config c where c.oid = text_search_config::regconfig;
    if found then
      return;
    end if;
  end if;
  raise exception using
    errcode = 'invalid_parameter_value',
    message = format('text search configuration "%s" does not exist', text_search_config),
    hint    = 'select cfgname from pg_ts_config; lists them. simple fits mixed languages.';
end;
$$;
comment on function pgrecall_internal._check_configuration is
'Raises 22023 unless there is a text search configuration of that name.';

create or replace function pgrecall_internal._check_settings(bank pgrecall.bank, settings jsonb)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  known   text[] := pgrecall_internal._settings() || array(
    select o.name from pgrecall.recall_options() as o where o.is_bank_default);
  unknown text;
  options jsonb;
begin
  perform pgrecall_internal._check_object(
    'settings', settings, 'Pass ''{"rrf_k": 20}'', for example.');
  select k into unknown from jsonb_object_keys(settings) as k where k <> all (known);
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('unknown setting "%s"', unknown),
      hint    = case when exists (
                  select from pg_proc p
                  where  p.oid = 'pgrecall.create_bank'::regproc and unknown = any (p.proargnames))
                then format('It is an argument of create_bank(), %s => ...: create another bank '
                            'with it, and retain the facts there.', unknown)
                else format('Did you mean "%s"? Settings: %s.',
                            pgrecall_internal._nearest_name(unknown, known),
                            array_to_string(known, ', ')) end;
  end if;
  options := settings - pgrecall_internal._settings();
  perform pgrecall_internal._checked_options(options);
  bank.options := jsonb_strip_nulls(bank.options || options);
  perform pgrecall_internal._check_recency(pgrecall_internal._bank_options(bank));
  perform pgrecall_internal._check_type_hints(bank.bank_id, settings -> 'type_hints');
  perform pgrecall_internal._check_time_settings(settings -> 'time_settings');
  if settings -> 'text_search_config' <> 'null' then
    perform pgrecall_internal._check_configuration(settings ->> 'text_search_config');
  end if;
  perform pgrecall_internal._check_sources(
    'source_trust', nullif(settings -> 'source_trust', 'null'));
  if settings ->> 'lexical_backend' = 'pg_textsearch'
     and not exists (select from pg_extension x where x.extname = 'pg_textsearch')
  then
    raise exception using
      errcode = 'feature_not_supported',
      message = 'lexical_backend: the extension pg_textsearch is not installed in this database',
      hint    = 'Add it to shared_preload_libraries, restart, and: create extension pg_textsearch;';
  end if;
end;
$$;
comment on function pgrecall_internal._check_settings is
'Checks the settings passed to configure_bank(), options and columns.';

create or replace function pgrecall_internal._raise_invalid_setting(columns jsonb, violated text)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  setting record;
begin
  select a.attname as name, columns -> a.attname as value,
         coalesce(
           -- Without casts: bm25_b >= 0::double precision.
           'Its range: ' || regexp_replace(
             substring(pg_get_constraintdef(c.oid, true) from '^CHECK \((.*)\)$'),
             '::[a-z]+( precision)?(\[\])?', '', 'g'),
           'Its type: ' || format_type(a.atttypid, null)) as range,
         col_description(a.attrelid, a.attnum) as comment
  into   setting
  from   pg_attribute a
  left   join pg_constraint c on c.conrelid = a.attrelid and c.conname = violated
  where  a.attrelid = 'pgrecall.bank'::regclass and columns ? a.attname
    and  case when violated <> '' then a.attnum = any (c.conkey)
              else a.attndims > 0
                   or not pg_input_is_valid(columns ->> a.attname, format_type(a.atttypid, null))
         end
  -- JSON arrays are no literals of PostgreSQL's.
  order  by a.attndims
  limit  1;
  raise exception using
    errcode = 'invalid_parameter_value',
    message = format('setting "%s" cannot be %s', setting.name, left(setting.value::text, 80)),
    hint    = format('%s. %s', setting.range, setting.comment);
end;
$$;
comment on function pgrecall_internal._raise_invalid_setting is
'Raises 22023 for the one of these columns of bank that violates a constraint, or, where that is '
'empty, is not of its type.';

create or replace function pgrecall.configure_bank(bank text, settings jsonb)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  locked     pgrecall.bank;
  configured pgrecall.bank;
  columns    jsonb;
  violated   text;
begin
  locked := pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_settings(locked, settings);
  -- null removes an option of the bank; columns do not take null.
  select coalesce(jsonb_object_agg(s.key, s.value), '{}') into columns
  from   jsonb_each(settings) as s
  where  s.key = any (pgrecall_internal._settings()) and s.value <> 'null';
  begin
    execute (
      select format('update pgrecall.bank b set options = $3, %s '
                    'from jsonb_populate_record($1, $2) as n where b.bank_id = $1.bank_id',
                    string_agg(format('%1$I = n.%1$I', s.name), ', ')) || ' returning b.*'
      from   unnest(pgrecall_internal._settings()) as s(name)
    )
    into  configured
    using locked, columns,
          jsonb_strip_nulls(locked.options || (settings - pgrecall_internal._settings()));
  exception when check_violation or data_exception or feature_not_supported then
    get stacked diagnostics violated = constraint_name;
    perform pgrecall_internal._raise_invalid_setting(columns, violated);
  end;

  if configured.lexical_backend <> locked.lexical_backend then
    update pgrecall.memory m
    set    lexical_document = pgrecall_internal._lexical_document(
             configured, m.text, m.context, m.fact_key)
    where  m.bank_id = configure_bank.bank;
  end if;
  if configured.text_search_config <> locked.text_search_config then
    perform pgrecall.refresh_statistics(bank, is_full => true);
    return;
  end if;
  -- What is erased later leaves the counts with the words of these fields, or without them.
  if (configured.context_weight > 0, configured.key_weight > 0)
     <> (locked.context_weight > 0, locked.key_weight > 0)
  then
    perform pgrecall_internal._recount(configured, 'memory');
  end if;
  if (configured.message_context_weight > 0) <> (locked.message_context_weight > 0) then
    perform pgrecall_internal._recount(configured, 'message');
  end if;
end;
$$;
comment on function pgrecall.configure_bank is
'Sets defaults of a bank, {"rrf_k": 20, "weights": {"graph": 0}}: any option of recall_options() '
'with is_bank_default, and the columns of pgrecall.bank that hold settings, described there. '
'Others stay; one that is given is replaced whole, {"weights": ...} too; null removes an option of '
'the bank. Another text_search_config, and a field weight set to 0, or from 0, does a full '
'refresh_statistics(). Errors: RC001, RC008 hint for an unknown fact type, RC009 unknown arm, '
'0A000 pg_textsearch is not installed, 22023 unknown setting or value out of range, 25001 '
'isolation level above read committed where a refresh is needed.';

create or replace function pgrecall.add_fact_type(
  bank text, fact_type text, description text default '')
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall_internal._locked_bank(bank);
  if fact_type is null or fact_type !~ '^[a-z][a-z0-9_]{0,62}$' or fact_type = 'message' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('"%s" cannot name a fact type', fact_type),
      hint    = 'Use a lower-case word of letters, digits and underscores, but not "message".';
  end if;
  insert into pgrecall.fact_type (bank_id, fact_type, description)
  values (add_fact_type.bank, add_fact_type.fact_type, coalesce(add_fact_type.description, ''))
  on conflict on constraint fact_type_pkey do update
  set    description = excluded.description
  where  excluded.description <> '';
end;
$$;
comment on function pgrecall.add_fact_type is
'Adds a fact type to a bank, or changes its description. Errors: RC001, 22023 unusable name.';

create or replace function pgrecall_internal._check_new_bank(bank text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  -- More than 600 bytes would leave no room for a key of 500 letters in an index.
  if bank is null or bank = '' or length(bank) > 200 or octet_length(bank) > 600 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('"%s" cannot name a bank', left(bank, 50)),
      hint    = 'Use 1 to 200 characters, and at most 600 bytes.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_new_bank is
'Raises 22023 unless a name is valid for a bank.';

create or replace function pgrecall.create_bank(
  bank                 text,
  text_search_config   text default 'english',
  embedding_model      text default null,
  embedding_dimensions integer default null,
  fact_types           text[] default null,
  settings             jsonb default '{}')
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  fact_type text;
  is_new    boolean;
begin
  perform pgrecall_internal._check_new_bank(bank);
  perform pgrecall_internal._check_writable();
  if embedding_dimensions not between 1 and 4000 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('embedding_dimensions must be between 1 and 4000, not %s',
                       embedding_dimensions),
      hint    = 'Longer embeddings cannot be indexed; ask the model for fewer dimensions.';
  end if;
  perform pgrecall_internal._check_configuration(text_search_config);

  begin
    insert into pgrecall.bank (bank_id, text_search_config, embedding_model, embedding_dimensions)
    values (create_bank.bank, create_bank.text_search_config,
            nullif(create_bank.embedding_model, ''), create_bank.embedding_dimensions)
    on conflict on constraint bank_pkey do nothing;
    is_new := found;
  exception when insufficient_privilege then
    -- No right on the table, or a name that row security forbids the role.
    perform pgrecall_internal._raise_not_permitted(
      format('create bank "%s"', bank), 'pgrecall.bank', 'insert', is_any_bank => true);
  end;
  if not is_new then
    raise exception using
      errcode = 'RC002',
      message = format('bank "%s" already exists', bank),
      hint    = format('Change its defaults with pgrecall.configure_bank(%L, ...), '
                       'or choose another name.', bank);
  end if;

  insert into pgrecall.fact_type (bank_id, fact_type, description)
  values (create_bank.bank, 'world', 'Facts about the world and the people in it.'),
         (create_bank.bank, 'experience', 'What the agent itself did and saw.'),
         (create_bank.bank, 'opinion', 'Judgements, with a confidence.'),
         (create_bank.bank, 'observation', 'Conclusions drawn from several facts.'),
         (create_bank.bank, 'preference', 'How somebody wants things to be.'),
         (create_bank.bank, 'event', 'Things that happened at a time.');
  foreach fact_type in array coalesce(fact_types, '{}') loop
    perform pgrecall.add_fact_type(bank, fact_type);
  end loop;
  perform pgrecall.configure_bank(bank, coalesce(settings, '{}'));
end;
$$;
comment on function pgrecall.create_bank is
'Creates a bank with the fact types world, experience, opinion, observation, preference, event and '
'those in fact_types. '
'embedding_model and embedding_dimensions are pinned by the first embedding when not given. '
'Errors: RC002 bank exists, 22023 unusable name, configuration, dimensions or setting, 42501 '
'naming the roles that may.';

create or replace function pgrecall_internal._lock_attached(relation regclass)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  -- A transaction that changed the table may wait for the bank when it commits: who changes the
  -- triggers locks the bank after the table. A sync, which holds the bank, still reads the table.
  execute format('lock table only %s in share row exclusive mode', relation);
end;
$$;
comment on function pgrecall_internal._lock_attached is
'Locks a table against writers, for a change of its triggers; before its bank is locked.';

create or replace function pgrecall_internal._drop_note_triggers(relation regclass, name text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  trigger_name text;
  noted_by     regprocedure;
begin
  for trigger_name, noted_by in
    select t.tgname, t.tgfoid::regprocedure
    from   pg_trigger t
    where  t.tgrelid = relation and starts_with(t.tgname, name || '_')
  loop
    execute format('drop trigger %I on %s', trigger_name, relation);
  end loop;
  if noted_by is not null then
    execute format('drop function %s', noted_by);
  end if;
end;
$$;
comment on function pgrecall_internal._drop_note_triggers is
'Drops the triggers of an attachment and their function.';

create or replace function pgrecall.drop_bank(bank text)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans of the cascades must use an index, also those made while a table was small.
set enable_seqscan = off
as $$
declare
  removed bigint;
begin
  perform pgrecall_internal._bank(bank);
  if not has_table_privilege('pgrecall.bank', 'delete') then
    perform pgrecall_internal._raise_not_permitted(
      format('drop bank "%s"', bank), 'pgrecall.bank', 'delete', is_any_bank => true);
  end if;
  perform pgrecall_internal._bank_to_write(bank);
  perform pgrecall_internal._lock_attached(c.oid)
  from   pgrecall.attachment a
  join   pg_class c on c.oid = to_regclass(a.relation)
  where  a.bank_id = drop_bank.bank and pg_has_role(c.relowner, 'usage');
  perform pgrecall_internal._locked_bank(bank);
  -- Where row security keeps the owner of an attached table from seeing that its bank is gone, the
  -- triggers would refuse every change.
  perform pgrecall_internal._drop_note_triggers(c.oid, a.note_name)
  from   pgrecall.attachment a
  join   pg_class c on c.oid = to_regclass(a.relation)
  where  a.bank_id = drop_bank.bank and pg_has_role(c.relowner, 'usage');
  -- Children first: cascades would look up the children of each row one at a time.
  delete from pgrecall.link x where x.bank_id = drop_bank.bank;
  delete from pgrecall.relation x where x.bank_id = drop_bank.bank;
  delete from pgrecall.mention x where x.bank_id = drop_bank.bank;
  delete from pgrecall.embedding x where x.bank_id = drop_bank.bank;
  delete from pgrecall.entity x where x.bank_id = drop_bank.bank;
  with gone as (
    delete from pgrecall.memory x where x.bank_id = drop_bank.bank returning 1
  )
  select count(*) into removed from gone;
  delete from pgrecall.message x where x.bank_id = drop_bank.bank;
  delete from pgrecall.bank x where x.bank_id = drop_bank.bank;
  return removed;
end;
$$;
comment on function pgrecall.drop_bank is
'Erases a bank and all it holds, and the triggers of its attached tables where the role may; '
'returns how many memories it held. Errors: RC001, 42501 naming the roles that may.';

create or replace view pgrecall.bank_overview with (security_invoker = true) as
select b.bank_id,
       (select count(*) from pgrecall.memory m where m.bank_id = b.bank_id)   as memories,
       (select count(*) from pgrecall.message m where m.bank_id = b.bank_id)  as messages,
       (select count(*) from pgrecall.entity e where e.bank_id = b.bank_id)   as entities,
       b.embedding_model,
       b.embedding_dimensions,
       b.text_search_config,
       b.created_at
from   pgrecall.bank b;
comment on view pgrecall.bank_overview is 'The banks, and how many rows each holds.';
comment on column pgrecall.bank_overview.memories is 'Number of facts, with those that ended.';
comment on column pgrecall.bank_overview.messages is 'Number of raw messages.';
comment on column pgrecall.bank_overview.entities is 'Number of people, places and things.';
comment on column pgrecall.bank_overview.embedding_model is
'Model of the embeddings. Null: none stored yet, or without a name.';
comment on column pgrecall.bank_overview.embedding_dimensions is
'Length of the embeddings. Null: none stored yet.';
comment on column pgrecall.bank_overview.text_search_config is
'Text search configuration, which says how words are stemmed.';

create or replace function pgrecall.bank_models(bank text)
returns pgrecall.bank_model
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  found_bank pgrecall.bank := pgrecall_internal._bank(bank);
begin
  return (found_bank.embedding_model, found_bank.embedding_dimensions,
          found_bank.next_model)::pgrecall.bank_model;
end;
$$;
comment on function pgrecall.bank_models is
'The model that a bank is embedded with, and the one that it is being re-embedded with. Errors: '
'RC001.';

create or replace view pgrecall.fact with (security_invoker = true) as
select m.memory_id,
       m.bank_id,
       m.fact_type,
       m.text,
       m.context,
       m.fact_key,
       m.source_id,
       m.tags,
       m.metadata,
       lower(m.occurred) as occurred_start,
       upper(m.occurred) as occurred_end,
       m.mentioned_at,
       m.confidence,
       m.proof_count,
       array(
         select e.name
         from   pgrecall.mention x
         join   pgrecall.entity e on e.bank_id = x.bank_id and e.entity_id = x.entity_id
         where  x.bank_id = m.bank_id and x.memory_id = m.memory_id
         order  by e.name
       ) as entities,
       m.valid_to is null or m.valid_to > now() as is_current,
       m.valid_from,
       m.valid_to,
       m.superseded_by
from   pgrecall.memory m;
comment on view pgrecall.fact is
'The facts of all banks to explore in SQL and BI tools: text, time, full names of entities, '
'whether it still holds, from when to when, and what replaced it. Compare bank_id; to recall, use '
'hybrid_recall().';
comment on column pgrecall.fact.context is 'What stood around it. Null: not given.';
comment on column pgrecall.fact.fact_key is 'Exact name of the fact: deploy.window. Null: none.';
comment on column pgrecall.fact.source_id is
'Document or conversation that it was taken from. Null: unknown.';
comment on column pgrecall.fact.metadata is
'What else was given with it, such as who said it: metadata ->> ''speaker''.';
comment on column pgrecall.fact.occurred_start is
'When it happened, from here on; what was given as a date is a day in UTC. -infinity: without '
'beginning. Null: unknown.';
comment on column pgrecall.fact.occurred_end is
'When it happened, to before here: a day ends as the next begins. infinity: without end.';
comment on column pgrecall.fact.mentioned_at is 'When it was said.';
comment on column pgrecall.fact.confidence is 'Confidence in it, 0 to 1.';
comment on column pgrecall.fact.proof_count is 'Number of independent sources that state it.';
comment on column pgrecall.fact.entities is
'Full names of whom and what it is about, in order of the alphabet.';
comment on column pgrecall.fact.is_current is 'Whether it holds now: valid_to is null or ahead.';
comment on column pgrecall.fact.valid_from is
'Known from here on: when it was said or stored, whichever is earlier.';
comment on column pgrecall.fact.valid_to is
'It no longer holds from here on; in the future: it expires then. Null: it holds without end.';
comment on column pgrecall.fact.superseded_by is
'memory_id of the fact that replaced it. Null: none did.';
