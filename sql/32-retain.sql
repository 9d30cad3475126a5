create or replace function pgrecall._time_range(value jsonb)
returns tstzrange
language plpgsql stable parallel safe
set search_path from current
set timezone = 'UTC'
as $$
declare
  starts text := case jsonb_typeof(value) when 'array' then value ->> 0 else value #>> '{}' end;
  ends   text := case jsonb_typeof(value) when 'array' then value ->> 1 end;
begin
  if value is null or jsonb_typeof(value) = 'null' then
    return null;
  end if;
  if jsonb_typeof(value) = 'array' then
    if jsonb_array_length(value) <> 2 then
      raise exception using errcode = 'data_exception', message = 'not [start, end]';
    end if;
    return tstzrange(coalesce(starts, '-infinity')::timestamptz,
                     coalesce(ends, 'infinity')::timestamptz);
  end if;
  if starts ~ '^\d{4}-\d{2}-\d{2}$' then
    return tstzrange(starts::date, starts::date + 1);
  end if;
  return tstzrange(starts::timestamptz, starts::timestamptz, '[]');
end;
$$;
comment on function pgrecall._time_range(jsonb) is
'"2026-03-05" as that day in UTC, a timestamp as that instant, [start, end] half-open with null '
'for an open side.';

create or replace function pgrecall._invalid_fact(place text, problem text, hint text)
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
comment on function pgrecall._invalid_fact(text, text, text) is
'Raises RC003 for a field of a fact or message.';

create or replace function pgrecall._check_string(
  place text, value jsonb, is_required boolean default false, longest integer default 100000)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if value is null or jsonb_typeof(value) = 'null' then
    if is_required then
      perform pgrecall._invalid_fact(place, 'missing', 'Give it as a string.');
    end if;
  elsif jsonb_typeof(value) <> 'string' then
    perform pgrecall._invalid_fact(
      place, format('expected a string, not %s', left(value::text, 80)),
      'Put it in double quotes.');
  elsif trim(value #>> '{}') = '' then
    perform pgrecall._invalid_fact(place, 'it is empty', 'Leave it out, or give it a value.');
  elsif length(value #>> '{}') > longest then
    perform pgrecall._invalid_fact(
      place, format('%s characters are more than %s', length(value #>> '{}'), longest),
      case when longest = 100000 then 'Split it into several facts.' else 'Shorten it.' end);
  end if;
end;
$$;
comment on function pgrecall._check_string(text, jsonb, boolean, integer) is
'Raises RC003 unless a field is absent or a string of 1 to longest characters.';

create or replace function pgrecall._check_time(place text, value jsonb, is_range boolean)
returns void
language plpgsql stable parallel safe
set search_path from current
set timezone = 'UTC'
as $$
begin
  if value is null or jsonb_typeof(value) = 'null' then
    return;
  end if;
  -- Not what else PostgreSQL reads as a time: "today" would be another fact tomorrow.
  if (jsonb_typeof(value) = 'array' and not is_range)
     or exists (
       select from jsonb_array_elements(
         case jsonb_typeof(value) when 'array' then value else jsonb_build_array(value) end) as e
       where  jsonb_typeof(e) not in ('string', 'null')
          or  e #>> '{}' !~ '^\d{4,6}-\d\d-\d\d([ T]|$)')
  then
    raise exception using errcode = 'data_exception', message = 'not a time';
  end if;
  if not is_range then
    perform (value #>> '{}')::timestamptz;
  elsif isempty(pgrecall._time_range(value)) then
    raise exception using errcode = 'data_exception', message = 'empty';
  end if;
exception when data_exception then
  perform pgrecall._invalid_fact(
    place,
    format('%s is not a time%s',
           left(value::text, 80), case when is_range then ' span' else '' end),
    case when is_range
      then 'Write 2026-03-05, 2026-03-05T14:00Z, or [start, end] with start before end '
           'and null for an open side.'
      else 'Write 2026-03-05 or 2026-03-05T14:00Z.'
    end);
end;
$$;
comment on function pgrecall._check_time(text, jsonb, boolean) is
'Raises RC003 unless a field is absent, a time, or (is_range) a time span that is not empty.';

create or replace function pgrecall._check_fraction(place text, value jsonb)
returns void
language plpgsql immutable parallel safe
as $$
begin
  -- Below 1e-37 a number has no place in a real.
  if jsonb_typeof(value) <> 'null'
     and (jsonb_typeof(value) <> 'number' or value::text::numeric not between 0 and 1
          or (value <> '0' and value::text::numeric < 1e-37))
  then
    perform pgrecall._invalid_fact(
      place, format('expected a number from 0 to 1, not %s', left(value::text, 80)),
      '1 is certain; leave it out for that.');
  end if;
end;
$$;
comment on function pgrecall._check_fraction(text, jsonb) is
'Raises RC003 unless a field is absent or a number from 0 to 1.';

create or replace function pgrecall._array(place text, value jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
begin
  if value is null or jsonb_typeof(value) = 'null' then
    return '[]';
  elsif jsonb_typeof(value) <> 'array' then
    perform pgrecall._invalid_fact(
      place, format('expected an array, not %s', left(value::text, 80)),
      'Put it in square brackets.');
  end if;
  return value;
end;
$$;
comment on function pgrecall._array(text, jsonb) is
'A field that is an array, [] when absent. Errors: RC003.';

create or replace function pgrecall._check_keys(place text, value jsonb, keys text[])
returns void
language plpgsql immutable parallel safe
as $$
declare
  unknown text;
begin
  if jsonb_typeof(value) <> 'object' then
    perform pgrecall._invalid_fact(
      place, format('expected an object, not %s', left(value::text, 80)),
      format('Its fields: %s.', array_to_string(keys, ', ')));
  end if;
  select k into unknown from jsonb_object_keys(value) as k where k <> all (keys) limit 1;
  if found then
    perform pgrecall._invalid_fact(place || '.' || unknown, 'unknown field',
                                   format('Fields: %s.', array_to_string(keys, ', ')));
  end if;
end;
$$;
comment on function pgrecall._check_keys(text, jsonb, text[]) is
'Raises RC003 unless a value is an object with no other keys than these.';

create or replace function pgrecall._fact_embedding(
  place text, value jsonb, bank pgrecall.bank)
returns halfvec
language plpgsql stable parallel safe
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
      message = format('%s: unusable embedding: %s', place, sqlerrm),
      hint    = 'Pass the finite numbers that the embedding model returned, as an array or as '
                '"[0.1, 0.2]".';
  end;
  perform pgrecall._check_embedding(bank, place, embedding, null);
  return embedding;
end;
$$;
comment on function pgrecall._fact_embedding(text, jsonb, pgrecall.bank) is
'An embedding in a fact, array or string, null when absent. Errors: RC004, RC006.';

create or replace function pgrecall._vector(item jsonb, model text, is_own boolean)
returns jsonb
language sql immutable parallel safe
return coalesce(case when is_own then nullif(item -> 'embedding', 'null') end,
                nullif(item -> 'embeddings' -> model, 'null'));
comment on function pgrecall._vector(jsonb, text, boolean) is
'The embedding that a fact or question brings for a model: under its name in embeddings; where it '
'is the bank''s own (is_own) also as embedding, which goes first. Null when it brings none.';

create or replace function pgrecall._check_vectors(
  place text, item jsonb, bank pgrecall.bank)
returns boolean
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  own jsonb := pgrecall._vector(item, bank.embedding_model, true);
begin
  if jsonb_typeof(item -> 'embeddings') not in ('object', 'null') then
    perform pgrecall._invalid_fact(
      place || '.embeddings',
      format('expected an object, not %s', left((item -> 'embeddings')::text, 80)),
      'Write {"name of the model": [0.1, 0.2]}.');
  end if;
  if own is null and nullif(nullif(item -> 'embeddings', 'null'), '{}') is not null then
    raise exception using
      errcode = 'RC005',
      message = format('%s: bank "%s" is embedded with model "%s", not "%s"',
                       place, bank.bank_id, coalesce(bank.embedding_model, ''),
                       (select string_agg(k, '", "' order by k)
                        from   jsonb_object_keys(item -> 'embeddings') as k)),
      hint    = case when bank.embedding_model is null
        then 'Name the model that the bank is to have with model => as well.'
        else format('Bring an embedding of "%s" as well.', bank.embedding_model) end;
  end if;
  perform pgrecall._fact_embedding(place || '.embedding', own, bank);
  if bank.next_model is not null then
    bank.embedding_model := bank.next_model;
    bank.embedding_dimensions := bank.next_dimensions;
    perform pgrecall._fact_embedding(
      format('%s.embeddings.%s', place, bank.next_model),
      pgrecall._vector(item, bank.next_model, false), bank);
  end if;
  return own is not null;
end;
$$;
comment on function pgrecall._check_vectors(text, jsonb, pgrecall.bank) is
'Whether a fact or question brings an embedding of the bank''s model. Errors: RC003, RC004, RC005 '
'only embeddings of other models, RC006.';

create or replace function pgrecall._check_fact(
  fact jsonb, index integer, size integer, bank pgrecall.bank, fact_types text[])
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  place text := format('facts[%s]', index);
  field text;
  item  jsonb;
  n     integer;
begin
  perform pgrecall._check_keys(place, fact, array[
    'text', 'fact_type', 'context', 'fact_key', 'source_id', 'tags', 'metadata', 'occurred',
    'mentioned_at', 'confidence', 'proof_count', 'entities', 'relations', 'links', 'questions',
    'embedding', 'embeddings']);
  perform pgrecall._check_string(place || '.text', fact -> 'text', true);
  perform pgrecall._check_string(place || '.context', fact -> 'context');
  -- Indexed: what is longer would not fit.
  foreach field in array array['fact_type', 'fact_key', 'source_id'] loop
    perform pgrecall._check_string(place || '.' || field, fact -> field, longest => 500);
  end loop;
  if coalesce(fact ->> 'fact_type', 'world') <> all (fact_types) then
    raise exception using
      errcode = 'RC008',
      message = format('%s.fact_type: bank "%s" has no fact type "%s"', place, bank.bank_id,
                       fact ->> 'fact_type'),
      hint    = format('It has %s. Add one with: select pgrecall.add_fact_type(%L, %L);',
                       array_to_string(fact_types, ', '), bank.bank_id, fact ->> 'fact_type');
  end if;
  if jsonb_typeof(fact -> 'metadata') not in ('object', 'null') then
    perform pgrecall._invalid_fact(
      place || '.metadata',
      format('expected an object, not %s', left((fact -> 'metadata')::text, 80)),
      'Write {"team": "core"}, for example.');
  end if;
  perform pgrecall._check_time(place || '.occurred', fact -> 'occurred', true);
  perform pgrecall._check_time(place || '.mentioned_at', fact -> 'mentioned_at', false);
  perform pgrecall._check_fraction(place || '.confidence', fact -> 'confidence');
  if fact ->> 'proof_count' is not null and (
       jsonb_typeof(fact -> 'proof_count') <> 'number'
       or fact ->> 'proof_count' !~ '^[1-9]\d{0,8}$')
  then
    perform pgrecall._invalid_fact(
      place || '.proof_count',
      format('expected a whole number from 1 to 999999999, not %s',
             left((fact -> 'proof_count')::text, 80)),
      'It counts the sources that say so; leave it out for one.');
  end if;
  perform pgrecall._check_vectors(place, fact, bank);

  perform pgrecall._check_string(place || '.tags', e.value, true)
  from    jsonb_array_elements(pgrecall._array(place || '.tags', fact -> 'tags')) as e;

  for item, n in
    select e.value, e.n - 1
    from   jsonb_array_elements(pgrecall._array(place || '.entities', fact -> 'entities'))
             with ordinality as e(value, n)
  loop
    if jsonb_typeof(item) = 'string' then
      item := jsonb_build_object('name', item);
    end if;
    field := format('%s.entities[%s]', place, n);
    perform pgrecall._check_keys(field, item, array['name', 'kind', 'aliases']);
    perform pgrecall._check_name(field || '.name', item -> 'name');
    perform pgrecall._check_string(field || '.kind', item -> 'kind');
    perform pgrecall._check_name(field || '.aliases', a.value)
    from    jsonb_array_elements(pgrecall._array(field || '.aliases', item -> 'aliases')) as a;
  end loop;

  for item, n in
    select e.value, e.n - 1
    from   jsonb_array_elements(pgrecall._array(place || '.relations', fact -> 'relations'))
             with ordinality as e(value, n)
  loop
    field := format('%s.relations[%s]', place, n);
    perform pgrecall._check_keys(
      field, item, array['from', 'kind', 'to', 'confidence', 'valid_from', 'valid_to']);
    perform pgrecall._check_name(field || '.from', item -> 'from');
    perform pgrecall._check_string(field || '.kind', item -> 'kind', true, 500);
    perform pgrecall._check_name(field || '.to', item -> 'to');
    perform pgrecall._check_fraction(field || '.confidence', item -> 'confidence');
    perform pgrecall._check_time(field || '.valid_from', item -> 'valid_from', false);
    perform pgrecall._check_time(field || '.valid_to', item -> 'valid_to', false);
    if (item ->> 'valid_to')::timestamptz <= (item ->> 'valid_from')::timestamptz then
      perform pgrecall._invalid_fact(field || '.valid_to', 'it is not after valid_from',
                                     'A relation ends after it began.');
    end if;
  end loop;

  for item, n in
    select e.value, e.n - 1
    from   jsonb_array_elements(pgrecall._array(place || '.links', fact -> 'links'))
             with ordinality as e(value, n)
  loop
    field := format('%s.links[%s]', place, n);
    perform pgrecall._check_keys(
      field, item, array['kind', 'weight', 'to_id', 'to_index', 'to_key']);
    perform pgrecall._check_fraction(field || '.weight', item -> 'weight');
    if coalesce(item ->> 'kind', '') not in ('causes', 'caused_by', 'enables', 'prevents') then
      perform pgrecall._invalid_fact(
        field || '.kind', format('unknown kind %s', coalesce(item -> 'kind', 'null')),
        'Kinds: causes, caused_by, enables, prevents.');
    end if;
    if num_nonnulls(item ->> 'to_id', item ->> 'to_index', item ->> 'to_key') <> 1 then
      perform pgrecall._invalid_fact(
        field, 'it needs one of to_id, to_index, to_key',
        'Name the fact it leads to by memory id, position or fact_key.');
    end if;
    perform pgrecall._check_string(field || '.to_key', item -> 'to_key', longest => 500);
    if item ->> 'to_id' !~ '^\d{1,18}$'
       or item ->> 'to_index' !~ '^\d{1,9}$'
       or (item ->> 'to_index')::integer not between 0 and size - 1
       or (item ->> 'to_index')::integer = index
    then
      perform pgrecall._invalid_fact(
        field, format('it leads nowhere: %s', item),
        format('to_id is a memory id, to_index a position from 0 to %s other than its own.',
               size - 1));
    end if;
  end loop;

  for item, n in
    select e.value, e.n - 1
    from   jsonb_array_elements(pgrecall._array(place || '.questions', fact -> 'questions'))
             with ordinality as e(value, n)
  loop
    field := format('%s.questions[%s]', place, n);
    perform pgrecall._check_keys(field, item, array['text', 'embedding', 'embeddings']);
    perform pgrecall._check_string(field || '.text', item -> 'text');
    if not pgrecall._check_vectors(field, item, bank) then
      perform pgrecall._invalid_fact(field || '.embedding', 'missing',
                                     'A question is found by its embedding only.');
    end if;
  end loop;
end;
$$;
comment on function pgrecall._check_fact(jsonb, integer, integer, pgrecall.bank, text[]) is
'Raises RC003 (field), RC004, RC005, RC006 (embedding) or RC008 (fact type), naming the fact and '
'the field.';

create or replace function pgrecall._check_name(place text, value jsonb)
returns void
language plpgsql immutable parallel safe
as $$
begin
  perform pgrecall._check_string(place, value, true);
  if pgrecall.normalised_name(value #>> '{}') = '' or length(value #>> '{}') > 500 then
    perform pgrecall._invalid_fact(place, format('%s cannot name an entity', left(value::text, 80)),
                                   'A name has a letter or digit and at most 500 characters.');
  end if;
end;
$$;
comment on function pgrecall._check_name(text, jsonb) is
'Raises RC003 unless a value can name an entity.';

create or replace function pgrecall._retain_entities(bank text, facts jsonb, memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  -- A name becomes an entity unless somebody goes by it already, in the bank or in this batch.
  -- Where names in the batch go by one another, the first that says so is the entity.
  with declared as (
    select e.value as item, array[f.n, e.n] as position
    from   jsonb_array_elements(facts) with ordinality as f(fact, n),
           jsonb_array_elements(coalesce(nullif(f.fact -> 'entities', 'null'), '[]'))
             with ordinality as e(value, n)
    union all
    select to_jsonb(r.value ->> s.side), array[f.n, 1000000 + r.n, s.n]
    from   jsonb_array_elements(facts) with ordinality as f(fact, n),
           jsonb_array_elements(coalesce(nullif(f.fact -> 'relations', 'null'), '[]'))
             with ordinality as r(value, n),
           unnest(array['from', 'to']) with ordinality as s(side, n)
  ),
  named as (
    select case jsonb_typeof(d.item) when 'string' then d.item #>> '{}' else d.item ->> 'name' end
             as name,
           d.item ->> 'kind' as kind,
           coalesce(nullif(d.item -> 'aliases', 'null'), '[]') as aliases,
           d.position
    from   declared d
  ),
  alias as (
    select pgrecall.normalised_name(n.name) as owner, pgrecall.normalised_name(a.alias) as alias,
           min(pgrecall._kind(n.kind)) as kind, min(n.position) as position
    from   named n, jsonb_array_elements_text(n.aliases) as a(alias)
    group  by 1, 2
  ),
  first_alias as (
    select a.owner, a.alias
    from   alias a
    where  a.owner <> a.alias
      and  not exists (
             select from alias b
             where  b.owner = a.alias and (b.position, b.owner) < (a.position, a.owner))
  ),
  new_entity as (
    insert into pgrecall.entity as e (bank_id, name, kind)
    select _retain_entities.bank, u.name, u.kind
    from (
      select distinct on (pgrecall.normalised_name(n.name)) n.name, n.kind,
             min(n.position) over (partition by pgrecall.normalised_name(n.name)) as position
      from   named n
      where  not exists (
               select from pgrecall.entity_alias a
               where  a.bank_id = _retain_entities.bank
                 and  a.alias = pgrecall.normalised_name(n.name))
        and  not exists (
               select from first_alias a
               where  a.alias = pgrecall.normalised_name(n.name)
                 and  not exists (select from first_alias o where o.alias = a.owner))
      order  by pgrecall.normalised_name(n.name), n.kind is null, n.position
    ) as u
    -- The older of two that share a name is the one meant: that is the one named first.
    order  by u.position
    returning e.entity_id, e.name, e.kind
  ),
  known as (
    select e.entity_id, e.kind, pgrecall.normalised_name(e.name) as alias from new_entity e
    union
    select a.entity_id, e.kind, a.alias
    from   pgrecall.entity_alias a
    cross  join lateral (
      select x.kind
      from   pgrecall.entity x
      where  x.bank_id = _retain_entities.bank and x.entity_id = a.entity_id
      limit  1
    ) as e
    where  a.bank_id = _retain_entities.bank
      and  a.alias in (select pgrecall.normalised_name(n.name) from named n)
  )
  insert into pgrecall.entity_alias (bank_id, alias, entity_id)
  select _retain_entities.bank, k.alias, k.entity_id from known k
  union
  select _retain_entities.bank, a.alias, k.entity_id
  from   alias a
  join   known k on k.alias = a.owner
  where  not pgrecall._differ(a.kind, pgrecall._kind(k.kind))
  on conflict do nothing;

  perform pgrecall._retain_mentions(bank, facts, memory_ids);
  perform pgrecall._retain_relations(bank, facts, memory_ids);
end;
$$;
comment on function pgrecall._retain_entities(text, jsonb, bigint[]) is
'Writes entities, aliases, mentions and relations of checked facts; memory_ids are those of the '
'facts, in order.';
