-- Facts, read from the JSON that retain() gets.
--
-- _read_fact() checks one fact, field by field in a fixed order, and returns it as a row of type
-- fact_row (state/input.sql); the functions above it read the objects inside a fact. Each returns
-- what it checked, so that a field is read once. The first invalid field ends the call: RC003 and
-- related errors name the fact and the field. Equal content_hash means the same fact; its inputs
-- must never change, or stored facts would be stored again.

create or replace function pgrecall_internal._read_name(place text, value jsonb)
returns pgrecall_internal.fact_name
language plpgsql immutable parallel safe
as $$
declare
  read pgrecall_internal.fact_name;
begin
  read.name := pgrecall_internal._string_field(place, value, true);
  read.alias := pgrecall.normalised_name(read.name);
  if read.alias = '' or length(read.name) > 500 then
    perform pgrecall_internal._raise_invalid_field(
      place, format('%s cannot name an entity', left(value::text, 80)),
      'A name has a letter or digit and at most 500 characters.');
  end if;
  read.aliases := '{}';
  return read;
end;
$$;
comment on function pgrecall_internal._read_name is
'A string that is a valid name of an entity. Errors: RC003.';

create or replace function pgrecall_internal._read_entity(place text, item jsonb)
returns pgrecall_internal.fact_name
language plpgsql immutable parallel safe
as $$
declare
  read pgrecall_internal.fact_name;
begin
  if jsonb_typeof(item) = 'string' then
    return pgrecall_internal._read_name(place || '.name', item);
  end if;
  perform pgrecall_internal._check_keys(place, item, array['name', 'kind', 'aliases']);
  read := pgrecall_internal._read_name(place || '.name', item -> 'name');
  read.kind := pgrecall_internal._string_field(place || '.kind', item -> 'kind');
  read.kind_class := pgrecall_internal._kind_class(read.kind);
  if item ? 'aliases' then
    read.aliases := array(
      select (pgrecall_internal._read_name(place || '.aliases', a.value)).alias
      from   jsonb_array_elements(
               pgrecall_internal._array_field(place || '.aliases', item -> 'aliases')) as a
    );
  end if;
  return read;
end;
$$;
comment on function pgrecall_internal._read_entity is
'An element of entities: a name, or {"name", "kind", "aliases"}. Errors: RC003.';

create or replace function pgrecall_internal._read_relation(place text, item jsonb)
returns pgrecall_internal.fact_relation
language plpgsql stable parallel safe
as $$
declare
  read pgrecall_internal.fact_relation;
  name pgrecall_internal.fact_name;
begin
  perform pgrecall_internal._check_keys(
    place, item, array['from', 'kind', 'to', 'confidence', 'valid_from', 'valid_to']);
  name := pgrecall_internal._read_name(place || '.from', item -> 'from');
  read.from_name := name.name;
  read.from_alias := name.alias;
  read.kind := pgrecall_internal._string_field(place || '.kind', item -> 'kind', true, 500);
  name := pgrecall_internal._read_name(place || '.to', item -> 'to');
  read.to_name := name.name;
  read.to_alias := name.alias;
  read.confidence := coalesce(
    pgrecall_internal._fraction_field(place || '.confidence', item -> 'confidence'), 1);
  read.valid_from := pgrecall_internal._time_field(place || '.valid_from', item -> 'valid_from');
  read.valid_to := pgrecall_internal._time_field(place || '.valid_to', item -> 'valid_to');
  if read.valid_to <= read.valid_from then
    perform pgrecall_internal._raise_invalid_field(
      place || '.valid_to', 'it is not after valid_from', 'A relation ends after it began.');
  end if;
  return read;
end;
$$;
comment on function pgrecall_internal._read_relation is
'An element of relations. Errors: RC003.';

create or replace function pgrecall_internal._read_link(
  place text, item jsonb, index integer, size integer)
returns pgrecall_internal.fact_link
language plpgsql immutable parallel safe
as $$
declare
  read pgrecall_internal.fact_link;
begin
  perform pgrecall_internal._check_keys(
    place, item, array['kind', 'weight', 'to_id', 'to_index', 'to_key']);
  read.weight := coalesce(
    pgrecall_internal._fraction_field(place || '.weight', item -> 'weight'), 1);
  read.kind := item ->> 'kind';
  if coalesce(read.kind, '') not in ('causes', 'caused_by', 'enables', 'prevents') then
    perform pgrecall_internal._raise_invalid_field(
      place || '.kind', format('unknown kind %s', coalesce(item -> 'kind', 'null')),
      'Kinds: causes, caused_by, enables, prevents.');
  end if;
  if num_nonnulls(item ->> 'to_id', item ->> 'to_index', item ->> 'to_key') <> 1 then
    perform pgrecall_internal._raise_invalid_field(
      place, 'it needs one of to_id, to_index, to_key',
      'Name the fact it leads to by memory id, position or fact_key.');
  end if;
  read.to_key := pgrecall_internal._string_field(
    place || '.to_key', item -> 'to_key', longest => 500);
  if item ->> 'to_id' is not null and not pgrecall_internal._is_id(item ->> 'to_id')
     or item ->> 'to_index' !~ '^\d{1,9}$'
     or (item ->> 'to_index')::integer not between 0 and size - 1
     or (item ->> 'to_index')::integer = index
  then
    perform pgrecall_internal._raise_invalid_field(
      place, format('it leads nowhere: %s', item),
      format('to_id is a memory id, to_index a position from 0 to %s other than its own.',
             size - 1));
  end if;
  read.to_id := item ->> 'to_id';
  read.to_index := item ->> 'to_index';
  read.target := item - 'kind' - 'weight';
  return read;
end;
$$;
comment on function pgrecall_internal._read_link is
'An element of links, of the fact at index (from 0) of size facts. Errors: RC003.';

create or replace function pgrecall_internal._vector(item jsonb, model text, is_own boolean)
returns jsonb
language sql immutable parallel safe
return coalesce(case when is_own then nullif(item -> 'embedding', 'null') end,
                nullif(item -> 'embeddings' -> model, 'null'));
comment on function pgrecall_internal._vector is
'The embedding of a fact or question for a model: under its name in embeddings; for the bank''s '
'own model (is_own) also field embedding, which takes precedence. Null: none.';

create or replace function pgrecall_internal._made_by(value jsonb, model text, is_own boolean)
returns jsonb
language sql immutable parallel safe
return nullif(case when jsonb_typeof(value) = 'object' then value -> model
                   when is_own then value end, 'null');
comment on function pgrecall_internal._made_by is
'What a model made, of a field that holds it by the name of the model, or that of the bank''s own '
'model (is_own) as it is. Null: none.';

create or replace function pgrecall_internal._tokens_field(
  place text, item jsonb, model text, is_own boolean)
returns bytea
language plpgsql immutable parallel unsafe
set search_path from current
as $$
declare
  value  jsonb := pgrecall_internal._made_by(item -> 'tokens', model, is_own);
  tokens bytea;
begin
  if value is null then
    return null;
  end if;
  begin
    tokens := decode(pgrecall_internal._string_field(place || '.tokens', value), 'base64');
  exception when data_exception then
    perform pgrecall_internal._raise_invalid_field(
      place || '.tokens', format('it is not base64: %s', left(value::text, 80)),
      'Pass what the driver makes, or none.');
  end;
  if octet_length(tokens) > 3072 then
    perform pgrecall_internal._raise_invalid_field(
      place || '.tokens', format('%s bytes are more than 3072', octet_length(tokens)),
      'Keep the vectors of fewer tokens.');
  end if;
  return tokens;
end;
$$;
comment on function pgrecall_internal._tokens_field is
'Field tokens of a fact: token vectors as base64, those of the bank''s own model (is_own), or by '
'the name of their model, {"model": "..."}. Null: none. Errors: RC003.';

create or replace function pgrecall_internal._parts_field(
  place text, item jsonb, bank pgrecall.bank, is_own boolean)
returns halfvec[]
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  value jsonb := pgrecall_internal._made_by(item -> 'parts', bank.embedding_model, is_own);
begin
  if jsonb_array_length(pgrecall_internal._array_field(place || '.parts', value)) > 1000 then
    perform pgrecall_internal._raise_invalid_field(
      place || '.parts', format('%s parts are more than 1000', jsonb_array_length(value)),
      'Embed longer parts.');
  end if;
  return array(
    select pgrecall_internal._embedding_field(
             format('%s.parts[%s]', place, e.n - 1), e.value, bank)
    from   jsonb_array_elements(value) with ordinality as e(value, n)
    order  by e.n);
end;
$$;
comment on function pgrecall_internal._parts_field is
'Field parts of a fact: embeddings of what follows in a long text, or of it with its heading, '
'those of the bank''s own model (is_own), or by the name of their model, {"model": [...]}. Errors: '
'RC003, RC004, RC006.';

create or replace function pgrecall_internal._read_embeddings(
  bank pgrecall.bank, embeddings jsonb)
returns table (memory_id bigint, kind text, ordinal smallint, text text, embedding halfvec,
               tokens bytea, parts halfvec[], n bigint)
language sql stable parallel unsafe rows 100
begin atomic
  -- Called in a from clause, so that it is inlined: only what is used is read.
  select (e.item ->> 'memory_id')::bigint, coalesce(e.item ->> 'kind', 'text'),
         coalesce(e.item ->> 'ordinal', '0')::smallint, e.item ->> 'text',
         -- A missing embedding gets the same error as an empty one.
         pgrecall_internal._embedding_field(
           format('embeddings[%s].embedding', e.n - 1), coalesce(e.item -> 'embedding', '""'),
           bank),
         pgrecall_internal._tokens_field(
           format('embeddings[%s]', e.n - 1), e.item, (bank).embedding_model, true),
         pgrecall_internal._parts_field(format('embeddings[%s]', e.n - 1), e.item, bank, true),
         e.n
  from   jsonb_array_elements(embeddings) with ordinality as e(item, n);
end;
comment on function pgrecall_internal._read_embeddings is
'Embeddings of texts that are stored already, as embed_store() takes them, n counting from 1. '
'Errors: those of _embedding_field(), _tokens_field() and _parts_field().';

create or replace function pgrecall_internal._read_parts(
  place text, item jsonb, bank pgrecall.bank, is_own boolean)
returns pgrecall_internal.fact_vector[]
language sql stable parallel unsafe
return array(
  select (coalesce(bank.embedding_model, ''), 'part', p.n - 1, p.embedding, null, null)
           ::pgrecall_internal.fact_vector
  from   unnest(pgrecall_internal._parts_field(place, item, bank, is_own))
           with ordinality as p(embedding, n)
);
comment on function pgrecall_internal._read_parts is
'Field parts of a fact as embeddings to store. Errors: those of _parts_field().';

create or replace function pgrecall_internal._read_vectors(
  place text, item jsonb, bank pgrecall.bank, kind text, ordinal integer, content text)
returns pgrecall_internal.fact_vector[]
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  own_json  jsonb := pgrecall_internal._vector(item, bank.embedding_model, true);
  own       pgrecall_internal.fact_vector;
  following pgrecall_internal.fact_vector;
  has_parts boolean := kind = 'text' and item ? 'parts';
  read      pgrecall_internal.fact_vector[];
begin
  if jsonb_typeof(item -> 'embeddings') not in ('object', 'null') then
    perform pgrecall_internal._raise_invalid_field(
      place || '.embeddings',
      format('expected an object, not %s', left((item -> 'embeddings')::text, 80)),
      'Write {"name of the model": [0.1, 0.2]}.');
  end if;
  if own_json is null then
    if nullif(nullif(item -> 'embeddings', 'null'), '{}') is not null then
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
    return '{}';
  end if;
  own.model := coalesce(bank.embedding_model, '');
  own.kind := kind;
  own.ordinal := ordinal;
  own.embedding := pgrecall_internal._embedding_field(place || '.embedding', own_json, bank);
  own.text := content;
  if kind = 'text' then
    own.tokens := pgrecall_internal._tokens_field(place, item, bank.embedding_model, true);
  end if;
  read := array[own];
  if has_parts then
    read := read || pgrecall_internal._read_parts(place, item, bank, true);
  end if;
  if bank.next_model is not null then
    bank := pgrecall_internal._as_next(bank);
    following := own;
    following.model := bank.next_model;
    following.embedding := pgrecall_internal._embedding_field(
      format('%s.embeddings.%s', place, bank.next_model),
      pgrecall_internal._vector(item, bank.next_model, false), bank);
    if kind = 'text' then
      following.tokens := pgrecall_internal._tokens_field(place, item, bank.next_model, false);
    end if;
    if following.embedding is not null then
      read := read || following;
      if has_parts then
        read := read || pgrecall_internal._read_parts(place, item, bank, false);
      end if;
    end if;
  end if;
  return read;
end;
$$;
comment on function pgrecall_internal._read_vectors is
'The embeddings of a fact or question: of the bank''s model, and of the next one while the bank is '
're-embedded. Empty: none. Errors: RC003, RC004, RC005 only embeddings of other models, RC006.';

create or replace function pgrecall_internal._read_questions(
  place text, value jsonb, bank pgrecall.bank)
returns pgrecall_internal.fact_vector[]
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  item    jsonb;
  n       integer;
  field   text;
  content text;
  vectors pgrecall_internal.fact_vector[];
  read    pgrecall_internal.fact_vector[] := '{}';
begin
  if jsonb_array_length(pgrecall_internal._array_field(place, value)) > 1000 then
    perform pgrecall_internal._raise_invalid_field(
      place, format('%s questions are more than 1000', jsonb_array_length(value)),
      'Keep those that users would ask.');
  end if;
  for item, n in
    select e.value, e.n - 1
    from   jsonb_array_elements(pgrecall_internal._array_field(place, value))
             with ordinality as e(value, n)
    order  by e.n
  loop
    field := format('%s[%s]', place, n);
    perform pgrecall_internal._check_keys(field, item, array['text', 'embedding', 'embeddings']);
    content := pgrecall_internal._string_field(field || '.text', item -> 'text');
    vectors := pgrecall_internal._read_vectors(field, item, bank, 'question', n, content);
    if vectors = '{}' then
      perform pgrecall_internal._raise_invalid_field(
        field || '.embedding', 'missing', 'A question is found by its embedding only.');
    end if;
    read := read || vectors;
  end loop;
  return read;
end;
$$;
comment on function pgrecall_internal._read_questions is
'The embeddings of the questions that a fact answers. Errors: those of _read_vectors().';

create or replace function pgrecall_internal._content_hash(
  fact_type text, text text, context text, fact_key text, source_id text, occurred tstzrange,
  mentioned_at timestamptz)
returns bytea
language sql stable parallel safe
return sha256(convert_to(jsonb_build_array(
         fact_type, text, context, fact_key, source_id, occurred::text,
         extract(epoch from mentioned_at))::text, 'UTF8'));
comment on function pgrecall_internal._content_hash is
'What a fact is known by: SHA-256 over these of its fields, the times null where not given. The '
'caller sets timezone to UTC and datestyle to ISO, which are part of it.';

create or replace function pgrecall_internal._read_fact(
  fact jsonb, index integer, size integer, bank pgrecall.bank, fact_types text[])
returns pgrecall_internal.fact_row
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  place text := format('facts[%s]', index);
  read  pgrecall_internal.fact_row;
begin
  perform pgrecall_internal._check_keys(place, fact, array[
    'text', 'fact_type', 'context', 'fact_key', 'source_id', 'tags', 'metadata', 'occurred',
    'mentioned_at', 'confidence', 'proof_count', 'entities', 'relations', 'links', 'questions',
    'embedding', 'embeddings', 'tokens', 'parts', 'expires_at']);
  read.n := index + 1;
  read.text := pgrecall_internal._string_field(place || '.text', fact -> 'text', true);
  read.context := pgrecall_internal._string_field(place || '.context', fact -> 'context');
  -- These three are indexed: a longer value would exceed the size of an index entry.
  read.fact_type := coalesce(
    pgrecall_internal._string_field(place || '.fact_type', fact -> 'fact_type', longest => 500),
    'world');
  read.fact_key := pgrecall_internal._string_field(
    place || '.fact_key', fact -> 'fact_key', longest => 500);
  read.source_id := pgrecall_internal._string_field(
    place || '.source_id', fact -> 'source_id', longest => 500);
  if read.fact_type <> all (fact_types) then
    raise exception using
      errcode = 'RC008',
      message = format('%s.fact_type: bank "%s" has no fact type "%s"', place, bank.bank_id,
                       fact ->> 'fact_type'),
      hint    = format('It has %s. Add one with: select pgrecall.add_fact_type(%L, %L);',
                       array_to_string(fact_types, ', '), bank.bank_id, fact ->> 'fact_type');
  end if;
  read.metadata := coalesce(nullif(fact -> 'metadata', 'null'), '{}');
  if jsonb_typeof(read.metadata) <> 'object' then
    perform pgrecall_internal._raise_invalid_field(
      place || '.metadata', format('expected an object, not %s', left(read.metadata::text, 80)),
      'Write {"team": "core"}, for example.');
  -- Clients that read JSON fail at deeper values and greater numbers, with every row of an answer.
  elsif read.metadata <> '{}'
        and (jsonb_path_exists(read.metadata, 'strict $.**{100}')
             or jsonb_path_exists(read.metadata, 'strict $.** ? (@ > 1e308 || @ < -1e308)'))
  then
    perform pgrecall_internal._raise_invalid_field(
      place || '.metadata', 'nested 100 levels deep or more, or with a number beyond 1e308',
      'Store what is deeper, or a longer number, as a text.');
  end if;
  read.occurred := pgrecall_internal._span_field(place || '.occurred', fact -> 'occurred');
  read.mentioned_at := pgrecall_internal._time_field(
    place || '.mentioned_at', fact -> 'mentioned_at');
  read.expires_at := pgrecall_internal._time_field(place || '.expires_at', fact -> 'expires_at');
  if read.expires_at <= least(read.mentioned_at, now()) then
    perform pgrecall_internal._raise_invalid_field(
      place || '.expires_at',
      format('%s is not after the fact was said', left((fact -> 'expires_at')::text, 80)),
      'A fact expires after its mentioned_at, which is now where it is not given.');
  end if;
  read.confidence := coalesce(
    pgrecall_internal._fraction_field(place || '.confidence', fact -> 'confidence'), 1);
  if fact ->> 'proof_count' is not null and (
       jsonb_typeof(fact -> 'proof_count') <> 'number'
       or fact ->> 'proof_count' !~ '^[1-9]\d{0,8}$')
  then
    perform pgrecall_internal._raise_invalid_field(
      place || '.proof_count',
      format('expected a whole number from 1 to 999999999, not %s',
             left((fact -> 'proof_count')::text, 80)),
      'It counts the sources that say so; leave it out for one.');
  end if;
  read.proof_count := coalesce((fact ->> 'proof_count')::integer, 1);
  read.vectors := pgrecall_internal._read_vectors(place, fact, bank, 'text', 0, null);

  -- Most facts have few of the fields below; only given fields cost a query.
  read.tags := '{}';
  if fact ? 'tags' then
    read.tags := array(
      select pgrecall_internal._string_field(place || '.tags', e.value, true)
      from   jsonb_array_elements(
               pgrecall_internal._array_field(place || '.tags', fact -> 'tags'))
               with ordinality as e(value, n)
      order  by e.n);
  end if;
  read.names := '{}';
  if fact ? 'entities' then
    read.names := array(
      select pgrecall_internal._read_entity(format('%s.entities[%s]', place, e.n - 1), e.value)
      from   jsonb_array_elements(
               pgrecall_internal._array_field(place || '.entities', fact -> 'entities'))
               with ordinality as e(value, n)
      order  by e.n);
    -- An alias that a stranger gives would change whom others mean.
    if bank.source_trust <> '{}' then
      read.names := array(
        select row(n.name, n.alias, n.kind, n.kind_class, case
                 when pgrecall_internal._trust(bank.source_trust, read.source_id) = 1
                   then n.aliases
                 else '{}' end)::pgrecall_internal.fact_name
        from   unnest(read.names) as n);
    end if;
  end if;
  if fact ? 'relations' then
    read.relations := array(
      select pgrecall_internal._read_relation(format('%s.relations[%s]', place, e.n - 1), e.value)
      from   jsonb_array_elements(
               pgrecall_internal._array_field(place || '.relations', fact -> 'relations'))
               with ordinality as e(value, n)
      order  by e.n);
    read.names := read.names || array(
      select row(s.name, s.alias, null, null, '{}')::pgrecall_internal.fact_name
      from   unnest(read.relations) with ordinality
               as r(from_name, from_alias, kind, to_name, to_alias, confidence, valid_from,
                    valid_to, n)
      cross  join lateral (
        values (1, r.from_name, r.from_alias), (2, r.to_name, r.to_alias)
      ) as s(side, name, alias)
      order  by r.n, s.side);
  end if;
  if fact ? 'links' then
    read.links := array(
      select pgrecall_internal._read_link(
               format('%s.links[%s]', place, e.n - 1), e.value, index, size)
      from   jsonb_array_elements(
               pgrecall_internal._array_field(place || '.links', fact -> 'links'))
               with ordinality as e(value, n)
      order  by e.n);
  end if;
  if fact ? 'questions' then
    read.vectors := read.vectors || pgrecall_internal._read_questions(
      place || '.questions', fact -> 'questions', bank);
  end if;

  read.content_hash := pgrecall_internal._content_hash(
    read.fact_type, read.text, read.context, read.fact_key, read.source_id, read.occurred,
    read.mentioned_at);
  return read;
end;
$$;
comment on function pgrecall_internal._read_fact is
'Checks a fact, the one at index (from 0) of size facts, and returns it typed, without the '
'aliases that a source trusted below 1 gives for entities. The caller sets timezone to UTC and '
'datestyle to ISO, for content_hash. It is a long function, since the order of its checks is the '
'order in which errors are reported. Errors: RC003 (field), RC004, RC005, RC006 (embedding) or '
'RC008 (fact type), naming the fact and the field.';

create or replace function pgrecall_internal._read_facts(
  facts jsonb, bank pgrecall.bank, fact_types text[])
returns pgrecall_internal.fact_row[]
language plpgsql stable parallel unsafe
set search_path from current
-- Of what is called here, too: it reads no table, and to plan it for each fact takes longer than
-- to run it.
set plan_cache_mode = force_generic_plan
as $$
begin
  return array(
    select pgrecall_internal._read_fact(
             f.fact, f.n::integer - 1, jsonb_array_length(facts), bank, fact_types)
    from   jsonb_array_elements(facts) with ordinality as f(fact, n)
    order  by f.n
  );
end;
$$;
comment on function pgrecall_internal._read_facts is
'Facts, an array, as rows, in order. Errors: those of _read_fact().';
