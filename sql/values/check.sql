-- Checks of arguments.
--
-- The _check_* functions return nothing and raise an error whose hint says what to pass. They come
-- before all other logic since every file uses them.
-- Fields of JSON objects are checked in field.sql.
create or replace function pgrecall_internal._check_range(
  name text, value bigint, lowest bigint, highest bigint)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if value is null or value not between lowest and highest then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s must be between %s and %s, not %s',
                       name, lowest, highest, coalesce(value::text, 'null')),
      hint    = format('Pass %s => %s, for example.', name, least(greatest(50, lowest), highest));
  end if;
end;
$$;
comment on function pgrecall_internal._check_range is
'Raises 22023 unless lowest <= value <= highest.';

create or replace function pgrecall_internal._check_share(name text, value double precision)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if value is null or value = 'NaN' or value not between 0 and 1 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s must be between 0 and 1, not %s', name, coalesce(value::text, 'null')),
      hint    = format('Pass %s => 0.9, for example.', name);
  end if;
end;
$$;
comment on function pgrecall_internal._check_share is
'Raises 22023 unless 0 <= value <= 1.';

create or replace function pgrecall_internal._check_text(name text, value text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if length(value) > 100000 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s has %s characters, more than 100000', name, length(value)),
      hint    = 'Pass only the part that asks the question.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_text is
'Raises 22023 when a text is longer than 100,000 characters.';

create or replace function pgrecall_internal._check_elements(
  name text, elements text[], all_of text, code text default '22023')
returns void
language plpgsql immutable parallel safe
as $$
begin
  if exists (select from unnest(elements) as u where u is null) then
    raise exception using
      errcode = code,
      message = format('%s must not contain null', name),
      hint    = format('Leave it out of the list. %s => null stands for %s.', name, all_of);
  end if;
end;
$$;
comment on function pgrecall_internal._check_elements is
'Raises an error with that code when an element is null; all_of says what null stands for.';

create or replace function pgrecall_internal._check_array(name text, value jsonb)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if value is null or jsonb_typeof(value) <> 'array' then
    raise exception using
      errcode = 'RC003',
      message = format('%s: expected an array, not %s',
                       name, coalesce(left(value::text, 80), 'null')),
      hint    = 'Pass ''[{"text": "..."}]''::jsonb.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_array is
'Raises RC003 unless a value is an array.';

create or replace function pgrecall_internal._check_entity_name(name text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if coalesce(pgrecall.normalised_name(name), '') = '' or length(name) > 500 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s cannot name an entity', coalesce('"' || left(name, 80) || '"', 'null')),
      hint    = 'A name has a letter or digit and at most 500 characters.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_entity_name is
'Raises 22023 unless a name is valid for an entity.';

create or replace function pgrecall.to_embedding(elements real[])
returns halfvec
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  problem text;
begin
  if elements is null then
    return null;
  end if;
  select case
           when count(*) = 0 then 'it is empty'
           when array_ndims(elements) > 1 then 'it is an array of arrays'
           when count(*) > 16000 then format('%s elements are more than 16000', count(*))
           when count(e) < count(*) then 'an element is null'
           when bool_or(e = 'NaN') then 'an element is NaN'
           when bool_or(abs(e) > 65504) then 'an element is infinite or beyond 65504'
           when bool_and(abs(e) < 6e-8) then 'all elements are zero'
         end
  into   problem
  from   unnest(elements) as e;
  if problem is not null then
    raise exception using
      errcode = 'RC006',
      message = format('unusable embedding: %s', problem),
      hint    = 'Pass the finite numbers that the embedding model returned.';
  end if;
  return elements::halfvec;
end;
$$;
comment on function pgrecall.to_embedding is
'Numbers as an embedding, of shape (dimensions,). Errors: RC006 empty, nested, too long, null, '
'NaN, infinite or all zero.';

create or replace function pgrecall_internal._checked_embedding(
  bank pgrecall.bank, name text, embedding halfvec, model text)
returns halfvec
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  -- The next model also differs from the bank's model where the latter has no name.
  if model <> bank.embedding_model or model = bank.next_model then
    raise exception using
      errcode = 'RC005',
      message = format('bank "%s" is embedded with model "%s", not "%s"',
                       bank.bank_id, coalesce(bank.embedding_model, ''), model),
      hint    = case when model = bank.next_model
        then format('It is being re-embedded; use "%s" until reembed_finish() is called.',
                    coalesce(bank.embedding_model, ''))
        -- The driver appends the prompts of a model to its name.
        when split_part(model, ' [', 1) = split_part(bank.embedding_model, ' [', 1)
          then format('In square brackets are the prompts before a question and before a passage: '
                      'embed the %s with those of "%s".', name, bank.embedding_model)
        else format('Embed the %s with "%s".', case name when 'embedding' then 'question'
                    else name end, bank.embedding_model) end;
  end if;
  if embedding is null then
    return null;
  end if;
  if vector_dims(embedding) <> bank.embedding_dimensions then
    raise exception using
      errcode = 'RC004',
      message = format('%s: expected %s dimensions, not %s',
                       name, bank.embedding_dimensions, vector_dims(embedding)),
      hint    = format('Bank "%s" is embedded with %s; use the same model.', bank.bank_id,
                       coalesce('"' || bank.embedding_model || '"', 'another model'));
  end if;
  if l2_norm(embedding) = 0 then
    raise exception using
      errcode = 'RC006',
      message = format('%s: unusable embedding: all elements are zero', name),
      hint    = 'Pass the finite numbers that the embedding model returned.';
  end if;
  return embedding;
end;
$$;
comment on function pgrecall_internal._checked_embedding is
'The embedding. Raises RC004 (dimensions), RC005 (model) or RC006 (zero) unless a bank can compare '
'it.';

create or replace function pgrecall_internal._centred(
  bank pgrecall.bank, name text, embedding halfvec)
returns halfvec
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  centred halfvec := l2_normalize(embedding) - bank.embedding_mean;
begin
  if l2_norm(centred) = 0 then
    raise exception using
      errcode = 'RC006',
      message = format('%s: unusable embedding: it is the mean of its model', name),
      hint    = 'Pass the finite numbers that the embedding model returned.';
  end if;
  return centred;
end;
$$;
comment on function pgrecall_internal._centred is
'An embedding as a bank whose model has a mean stores and compares it: its direction minus the '
'mean. Errors: RC006 nothing is left.';

create or replace function pgrecall_internal._quoted_choices(choices text[])
returns text
language sql immutable parallel safe
return regexp_replace('"' || array_to_string(choices, '", "') || '"', ', ([^,]*)$', ' or \1');
comment on function pgrecall_internal._quoted_choices is
'Choices as an error names them: "a", "b" or "c".';

create or replace function pgrecall_internal._check_choice(
  name text, value text, choices text[], hint text default null)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if value is null or value <> all (choices) then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s must be %s, not "%s"', name,
                       pgrecall_internal._quoted_choices(choices), left(coalesce(value, ''), 50)),
      hint    = coalesce(hint, format('Pass %s => %L.', name, choices[1]));
  end if;
end;
$$;
comment on function pgrecall_internal._check_choice is
'Raises 22023 where a value is none of the choices.';

create or replace function pgrecall_internal._check_object(name text, value jsonb, hint text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if value is null or jsonb_typeof(value) <> 'object' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s must be an object, not %s', name,
                       coalesce(left(value::text, 80), 'null')),
      hint    = hint;
  end if;
end;
$$;
comment on function pgrecall_internal._check_object is
'Raises 22023 unless a value is an object.';
