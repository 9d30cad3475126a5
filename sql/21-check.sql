-- Checks of arguments, and the lookups that nearly every function begins with.
--
-- _bank() returns the row of a bank or raises RC001. Writers lock the bank until the end of their
-- transaction; readers never wait. Who only adds calls _shared_bank() and works beside others that
-- add; who changes or removes calls _locked_bank() and is alone. These are advisory locks, granted
-- in the order of asking, so that nobody starves; their keys come from the secret fence_key, so
-- that no stranger holds them. Writers that share register the ids they may use (_settled_id()).
-- Which lock is taken when is in sql/reference.md.
-- The _check_* functions return nothing and raise an error whose hint says what to pass. They come
-- before all other logic since every file uses them.
-- Fields of JSON objects are checked in 28-field.sql.

create or replace function pgrecall_internal._bank(bank text)
returns pgrecall.bank
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  found_bank pgrecall.bank;
begin
  if bank is null then
    raise exception using
      errcode = 'null_value_not_allowed',
      message = 'bank must not be null',
      hint    = 'Name the bank to look into; select * from pgrecall.bank_overview lists them.';
  end if;
  select b.* into found_bank from pgrecall.bank b where b.bank_id = _bank.bank;
  if not found then
    raise exception using
      errcode = 'RC001',
      message = format('bank "%s" does not exist', bank),
      hint    = format('Create it with: select pgrecall.create_bank(%L);', bank);
  end if;
  return found_bank;
end;
$$;
comment on function pgrecall_internal._bank is 'The row of a bank. Errors: RC001 unknown bank.';

create or replace function pgrecall_internal._lock_key(
  bank pgrecall.bank, purpose integer default 0)
returns bigint
language sql immutable parallel safe
return hashtextextended(bank.fence_key::text, purpose);
comment on function pgrecall_internal._lock_key is
'Key of an advisory lock of a bank. purpose 0: who writes, 1: who refreshes its statistics.';

create or replace function pgrecall_internal._sees_commits()
returns boolean
language sql stable parallel safe
return current_setting('transaction_isolation') in ('read committed', 'read uncommitted');
comment on function pgrecall_internal._sees_commits is
'Whether each statement of the transaction sees what others have committed.';

create or replace function pgrecall_internal._raise_replaced(bank text)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  -- The bank was dropped during the wait; a new one may have its name.
  perform pgrecall_internal._bank(bank);
  raise exception using
    errcode = 'serialization_failure',
    message = format('bank "%s" was replaced meanwhile, or may not be written', bank),
    hint    = 'Run the statement again.';
end;
$$;
comment on function pgrecall_internal._raise_replaced is
'Raises RC001 for a bank that is gone, 40001 for one that is another now.';

create or replace function pgrecall_internal._locked_bank(bank text)
returns pgrecall.bank
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  found_bank pgrecall.bank := pgrecall_internal._bank(bank);
  key        uuid := found_bank.fence_key;
begin
  perform pg_advisory_xact_lock(pgrecall_internal._lock_key(found_bank));
  -- Not "for update": that would also block the foreign key checks of other writers.
  select b.* into found_bank from pgrecall.bank b where b.bank_id = _locked_bank.bank
  for no key update;
  if not found or found_bank.fence_key <> key then
    perform pgrecall_internal._raise_replaced(bank);
  end if;
  -- The row is also updated, once per transaction: a writer whose snapshot is older than this
  -- commit then fails (40001) instead of going by what it was.
  update pgrecall.bank b
  set    created_at = b.created_at
  where  b.bank_id = _locked_bank.bank and b.xmin <> pg_current_xact_id()::xid;
  return found_bank;
end;
$$;
comment on function pgrecall_internal._locked_bank is
'The row of a bank, with no other writer beside, until the transaction ends. Errors: RC001 unknown '
'bank, 40001 replaced meanwhile.';

create or replace function pgrecall_internal._register_writer(bank pgrecall.bank)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  own      text := pg_current_xact_id()::text;
  first_id text := current_setting('pgrecall.first_id', true);
begin
  -- Once per transaction, so that many calls take one lock.
  if coalesce(first_id, '') not like own || ' %' then
    first_id := own || ' ' || coalesce(pg_sequence_last_value('pgrecall.id_seq'), 0);
    perform set_config('pgrecall.first_id', first_id, true);
  end if;
  perform pg_advisory_xact_lock_shared(
    hashtext(bank.fence_key::text), (split_part(first_id, ' ', 2)::bigint & 2147483647)::integer);
end;
$$;
comment on function pgrecall_internal._register_writer is
'Shows to others, as an advisory lock, above which id the transaction writes into a bank.';

create or replace function pgrecall_internal._settled_id(bank pgrecall.bank)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  -- Read before the locks: who registers later writes above it.
  last_id bigint := coalesce(pg_sequence_last_value('pgrecall.id_seq'), 0);
begin
  return least(last_id, (
    -- A lock has room for 31 bits of the id.
    select min(last_id - ((last_id - l.objid::bigint) & 2147483647))
    from   pg_locks l
    where  l.locktype = 'advisory' and l.objsubid = 2 and l.granted
      and  l.database = (select d.oid from pg_database d where d.datname = current_database())
      and  l.classid::bigint = hashtext(bank.fence_key::text)::bigint & 4294967295
      and  l.pid is distinct from pg_backend_pid()
  ));
end;
$$;
comment on function pgrecall_internal._settled_id is
'Up to this id no running transaction adds documents to a bank: a later statement sees them all.';

create or replace function pgrecall_internal._shared_bank(bank text)
returns pgrecall.bank
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  found_bank pgrecall.bank;
  key        uuid;
begin
  -- A snapshot may be older than what other writers have added: who has one is alone.
  if not pgrecall_internal._sees_commits() then
    return pgrecall_internal._locked_bank(bank);
  end if;
  found_bank := pgrecall_internal._bank(bank);
  key := found_bank.fence_key;
  perform pg_advisory_xact_lock_shared(pgrecall_internal._lock_key(found_bank));
  select b.* into found_bank from pgrecall.bank b where b.bank_id = _shared_bank.bank;
  if not found or found_bank.fence_key <> key then
    perform pgrecall_internal._raise_replaced(bank);
  end if;
  perform pgrecall_internal._register_writer(found_bank);
  return found_bank;
end;
$$;
comment on function pgrecall_internal._shared_bank is
'The row of a bank, for a writer that only adds, beside others that do so, until the transaction '
'ends. Errors: RC001 unknown bank, 40001 replaced meanwhile.';

create or replace function pgrecall_internal._check_isolation(name text)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  if not pgrecall_internal._sees_commits() then
    raise exception using
      errcode = 'active_sql_transaction',
      message = format('%s() must see what others commit, so not at isolation level "%s"', name,
                       current_setting('transaction_isolation')),
      hint    = 'Begin with: begin isolation level read committed;';
  end if;
end;
$$;
comment on function pgrecall_internal._check_isolation is
'Raises 25001 unless the transaction is at isolation level read committed.';

create or replace function pgrecall_internal._fact_types(bank text, fact_types text[])
returns text[]
language plpgsql stable parallel safe
set search_path from current
-- Forces index lookups, whatever the statistics of the bank.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  known   text[];
  unknown text;
begin
  select array_agg(t.fact_type order by t.fact_type)
  into   known
  from   pgrecall.fact_type t
  where  t.bank_id = _fact_types.bank;
  if fact_types is null then
    -- Fact types without memories are left out: each adds a branch to plan.
    return array(
      select u
      from   unnest(known) as u
      cross  join lateral (
        -- One lookup each: index order keeps the planner from scanning the whole bank.
        (select true from pgrecall.memory m
         where  m.bank_id = _fact_types.bank and m.fact_type = u and m.occurred is not null
         order  by lower(m.occurred)
         limit  1)
        union all
        (select true from pgrecall.memory m
         where  m.bank_id = _fact_types.bank and m.fact_type = u and m.occurred is null
         order  by m.mentioned_at
         limit  1)
        limit  1
      ) as held
      order  by u
    );
  end if;
  select u into unknown from unnest(fact_types) as u where u <> all (known) or u is null limit 1;
  if found then
    raise exception using
      errcode = 'RC008',
      message = format('bank "%s" has no fact type "%s"', bank, unknown),
      hint    = format('It has %s. Add one with: select pgrecall.add_fact_type(%L, %L);',
                       array_to_string(known, ', '), bank, unknown);
  end if;
  return array(select distinct u from unnest(fact_types) as u order by u);
end;
$$;
comment on function pgrecall_internal._fact_types is
'The fact types to search, when null all that hold a memory. Errors: RC008 unknown fact type.';

create or replace function pgrecall_internal._check_memory(bank text, memory_id bigint)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  perform 1 from pgrecall.memory m
  where  m.bank_id = _check_memory.bank and m.memory_id = _check_memory.memory_id;
  if not found then
    raise exception using
      errcode = 'RC010',
      message = format('bank "%s" has no memory %s', bank, coalesce(memory_id::text, 'null')),
      hint    = 'Pass ids that retain() or a recall on the same bank returned.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_memory is
'Raises RC010 unless the bank holds the memory.';

create or replace function pgrecall_internal._check_entity(bank text, entity_id bigint)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  perform 1 from pgrecall.entity e
  where  e.bank_id = _check_entity.bank and e.entity_id = _check_entity.entity_id;
  if not found then
    raise exception using
      errcode = 'RC013',
      message = format('bank "%s" has no entity %s', bank, coalesce(entity_id::text, 'null')),
      hint    = format('Look for it with: select * from pgrecall.query_entities(%L, ''its name'');',
                       bank);
  end if;
end;
$$;
comment on function pgrecall_internal._check_entity is
'Raises RC013 unless the bank holds the entity.';

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
      hint    = 'Pass the part of it that asks something.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_text is
'Raises 22023 when a text is longer than 100,000 characters.';

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

create or replace function pgrecall_internal._check_embedding(
  bank pgrecall.bank, name text, embedding halfvec, model text)
returns void
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
        then format('It is being re-embedded; use "%s" until reembed_finish() was called.',
                    coalesce(bank.embedding_model, ''))
        -- The driver names the prompts of a model behind its name.
        when split_part(model, ' [', 1) = split_part(bank.embedding_model, ' [', 1)
          then format('In square brackets are the prompts before a question and before a passage: '
                      'embed the %s with those of "%s".', name, bank.embedding_model)
        else format('Embed the %s with "%s".', name, bank.embedding_model) end;
  end if;
  if embedding is null then
    return;
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
end;
$$;
comment on function pgrecall_internal._check_embedding is
'Raises RC004 (dimensions), RC005 (model) or RC006 (zero) for a vector a bank cannot compare.';

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
'An embedding as it is stored and compared in a bank whose model has a mean: its direction minus '
'the mean. Errors: RC006 nothing is left.';
