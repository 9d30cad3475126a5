create or replace function pgrecall.default_weights()
returns jsonb
language sql immutable parallel safe
return '{"semantic": 1, "lexical": 1, "graph": 0.75, "temporal": 1, "key": 3, "message": 0.9, '
       '"hypothetical": 0.5}'::jsonb;
comment on function pgrecall.default_weights() is
'The arms and their weights in the fusion, where neither bank nor call says otherwise.';

create or replace function pgrecall._check_by_arm(
  name text, numbers jsonb, is_any_arm boolean default false)
returns void
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  hint  text := case name
    when 'gate' then 'A gate is the least best score an arm must reach: {"semantic": 0.3}; 0: none.'
    else 'A weight of 0 takes the arm''s say away; 1 is the usual one: {"lexical": 2, "graph": 0}.'
  end;
  arm   text;
  value jsonb;
begin
  if jsonb_typeof(numbers) <> 'object' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%ss must be an object, not %s', name, numbers),
      hint    = hint;
  end if;
  for arm, value in select e.key, e.value from jsonb_each(numbers) as e loop
    if not is_any_arm and not pgrecall.default_weights() ? arm then
      raise exception using
        errcode = 'RC009',
        message = format('unknown arm "%s" in %ss', arm, name),
        hint    = format('Arms: %s.', pgrecall._arm_names());
    end if;
    if jsonb_typeof(value) <> 'number' or value::text::numeric not between 0 and 1000000 then
      raise exception using
        errcode = 'invalid_parameter_value',
        message = format('%s of arm "%s" must be a number from 0 to 1000000, not %s',
                         name, arm, value),
        hint    = hint;
    end if;
  end loop;
end;
$$;
comment on function pgrecall._check_by_arm(text, jsonb, boolean) is
'Checks weights or gates; name is weight or gate. Raises RC009 for an unknown arm, 22023 for what '
'is not a number from 0 to 1,000,000.';

create or replace function pgrecall._arm_names()
returns text
language sql immutable parallel safe
return (
  select string_agg(a, ', ' order by a) from jsonb_object_keys(pgrecall.default_weights()) as a
);
comment on function pgrecall._arm_names() is 'The arms, for hints.';

create or replace function pgrecall._check_time_settings(settings jsonb)
returns void
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  name   text;
  value  jsonb;
  wanted text;
begin
  if settings is null or jsonb_typeof(settings) <> 'object' then
    if settings is null then
      return;
    end if;
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('time_settings must be an object, not %s', left(settings::text, 80)),
      hint    = 'Write {"language": "de", "recent_days": 14}, or {} for the defaults.';
  end if;
  for name, value in select e.key, e.value from jsonb_each(settings) as e loop
    wanted := case
      when name = 'language' and coalesce(value #>> '{}' !~ '^[a-z]{2}$', true)
        then 'a code of two small letters such as "de"'
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
comment on function pgrecall._check_time_settings(jsonb) is
'Raises 22023 for a setting of time_settings that there is not, or whose value is unusable.';

create or replace function pgrecall._settings()
returns text[]
language sql immutable parallel safe
return array[
  'weights', 'fusion', 'rrf_k', 'gates', 'recency_half_life', 'recency_decay', 'named_boost',
  'is_name_embedded', 'time_settings', 'similarity_floor', 'hnsw_threshold', 'hnsw_m',
  'hnsw_ef_construction', 'ef_search', 'vector_search', 'leading_dimensions', 'exact_limit',
  'bm25_k1', 'bm25_b',
  'candidate_limit', 'lexical_backend', 'context_weight', 'key_weight', 'message_context_weight',
  'type_hints', 'widen_below'];
comment on function pgrecall._settings() is
'The columns of bank that configure_bank() sets.';

create or replace function pgrecall.configure_bank(bank text, settings jsonb)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  locked  pgrecall.bank := pgrecall._locked_bank(bank);
  unknown text;
begin
  if settings is null or jsonb_typeof(settings) <> 'object' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('settings must be an object, not %s', coalesce(settings, 'null')),
      hint    = 'Pass ''{"rrf_k": 20}'', for example.';
  end if;
  select k into unknown from jsonb_object_keys(settings) as k
  where  k <> all (pgrecall._settings());
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('unknown setting "%s"', unknown),
      hint    = format('Settings: %s.', array_to_string(pgrecall._settings(), ', '));
  end if;
  perform pgrecall._check_by_arm('weight', settings -> 'weights');
  perform pgrecall._check_by_arm('gate', settings -> 'gates');
  perform pgrecall._check_type_hints(bank, settings -> 'type_hints');
  perform pgrecall._check_time_settings(settings -> 'time_settings');
  perform pgrecall._check_recency(
    (settings ->> 'recency_half_life')::interval,
    coalesce(settings ->> 'recency_decay', locked.recency_decay),
    coalesce(settings ->> 'fusion', locked.fusion));
  if settings ->> 'lexical_backend' = 'pg_textsearch'
     and not exists (select from pg_extension x where x.extname = 'pg_textsearch')
  then
    raise exception using
      errcode = 'feature_not_supported',
      message = 'lexical_backend: the extension pg_textsearch is not installed in this database',
      hint    = 'Add it to shared_preload_libraries, restart, and: create extension pg_textsearch;';
  end if;

  -- Null takes the bank's own words away, or its half-life; any other setting has no null.
  select coalesce(jsonb_object_agg(s.key, nullif(s.value, 'null')), '{}') into settings
  from   jsonb_each(settings) as s
  where  s.value <> 'null' or s.key in ('type_hints', 'recency_half_life');
  execute (
    select format('update pgrecall.bank b set %s from jsonb_populate_record($1, $2) as n '
                  'where b.bank_id = $1.bank_id',
                  string_agg(format('%1$I = n.%1$I', s.name), ', '))
    from   unnest(pgrecall._settings()) as s(name)
  )
  using locked, settings;

  if settings ->> 'lexical_backend' <> locked.lexical_backend then
    select b.* into locked from pgrecall.bank b where b.bank_id = configure_bank.bank;
    update pgrecall.memory m
    set    lexical_document = pgrecall._lexical_document(locked, m.text, m.context, m.fact_key)
    where  m.bank_id = configure_bank.bank;
  end if;
exception when check_violation or data_exception then
  if sqlstate = '22023' then
    raise;
  end if;
  raise exception using
    errcode = 'invalid_parameter_value',
    message = format('unusable setting: %s', sqlerrm),
    hint    = 'The comments on the columns of pgrecall.bank give the range of each setting.';
end;
$$;
comment on function pgrecall.configure_bank(text, jsonb) is
'Sets defaults of a bank, named as the columns of pgrecall.bank that hold them and say what they '
'do: {"rrf_k": 20, "weights": {"graph": 0}}; others stay. '
'Errors: RC001, RC008 hint for an unknown fact type, RC009 unknown arm, 0A000 pg_textsearch is not '
'installed, 22023 unknown setting or value out of range.';

create or replace function pgrecall.add_fact_type(
  bank text, fact_type text, description text default '')
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall._locked_bank(bank);
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
comment on function pgrecall.add_fact_type(text, text, text) is
'Adds a kind of memory to a bank, or describes it anew. Errors: RC001, 22023 unusable name.';

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
begin
  if bank is null or bank = '' or length(bank) > 200 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('"%s" cannot name a bank', left(bank, 50)),
      hint    = 'Use 1 to 200 characters.';
  end if;
  if embedding_dimensions not between 1 and 4000 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('embedding_dimensions must be between 1 and 4000, not %s',
                       embedding_dimensions),
      hint    = 'Longer embeddings cannot be indexed; ask the model for fewer dimensions.';
  end if;
  begin
    if text_search_config::regconfig is null then
      raise undefined_object;
    end if;
  exception when others then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('text search configuration "%s" does not exist', text_search_config),
      hint    = 'select cfgname from pg_ts_config; lists them. simple fits mixed languages.';
  end;

  insert into pgrecall.bank (bank_id, text_search_config, embedding_model, embedding_dimensions)
  values (create_bank.bank, create_bank.text_search_config,
          nullif(create_bank.embedding_model, ''), create_bank.embedding_dimensions)
  on conflict on constraint bank_pkey do nothing;
  if not found then
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
comment on function pgrecall.create_bank(text, text, text, integer, text[], jsonb) is
'Creates a bank with the fact types world, experience, opinion, observation, preference, event and '
'those in fact_types. '
'embedding_model and embedding_dimensions are pinned by the first embedding when not given. '
'Errors: RC002 bank exists, 22023 unusable name, configuration, dimensions or setting.';

create or replace function pgrecall.drop_bank(bank text)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  removed bigint;
begin
  perform pgrecall._locked_bank(bank);
  -- Children first: cascades would look for each row's children one row at a time.
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
comment on function pgrecall.drop_bank(text) is
'Erases a bank and all it holds; returns how many memories it held. Errors: RC001.';

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
comment on view pgrecall.bank_overview is 'The banks and how much each holds.';
