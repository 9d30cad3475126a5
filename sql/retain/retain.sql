-- Writing and forgetting facts.
--
-- retain() is a sequence of steps, each a function: _pin_model() fixes the model and the length of
-- the bank's embeddings by the first one stored; _read_fact() checks each fact and types it;
-- _store_memories() and the functions after it write memories, embeddings, entities, mentions,
-- relations and links. The bank is locked from the first statement to the end of the transaction:
-- shared with others that retain, unless _is_alone() says otherwise. Between those, a unique index,
-- the rows of known facts and name_lock decide which of two writers of the same fact, name or key
-- comes first; each kind is locked in a fixed order. A batch is written whole or not at all.
-- content_hash identifies a fact: retaining it again stores nothing new and returns the existing
-- memory. As the last step _replace() (retain/replacement.sql) ends older facts that new ones
-- replace. Plans of statements that read tables are not kept (force_custom_plan): a plan made for
-- an empty bank would read the whole table in a full one. Plans that only compute or insert are
-- kept.

create or replace function pgrecall_internal._pin_model(
  bank pgrecall.bank, facts jsonb, model text)
returns pgrecall.bank
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
declare
  own_model  text := coalesce(bank.embedding_model, model);
  before     pgrecall.bank := bank;
  place      text;
  first_json jsonb;
begin
  select format('facts[%s].%s', f.n - 1, e.place), e.embedding
  into   place, first_json
  from   jsonb_array_elements(facts) with ordinality as f(fact, n)
  cross  join lateral (
    select 'embedding', pgrecall_internal._vector(f.fact, own_model, true)
    union all
    select format('questions[%s].embedding', q.n - 1),
           pgrecall_internal._vector(q.value, own_model, true)
    from   jsonb_path_query(f.fact, 'lax $.questions[*]') with ordinality as q(value, n)
  ) as e(place, embedding)
  where  e.embedding is not null
  limit  1;
  perform pgrecall_internal._checked_embedding(bank, 'facts', null, model);
  if first_json is null then
    return bank;
  end if;

  if bank.embedding_dimensions is null then
    bank.embedding_dimensions :=
      vector_dims(pgrecall_internal._embedding_field(place, first_json, bank));
    if bank.embedding_dimensions > 4000 then
      raise exception using
        errcode = 'RC004',
        message = format('%s: expected at most 4000 dimensions, not %s',
                         place, bank.embedding_dimensions),
        hint    = 'Longer embeddings cannot be indexed; ask the model for fewer dimensions.';
    end if;
  end if;
  if bank.embedding_model is null and model <> '' then
    bank.embedding_model := model;
    -- Embeddings stored without a model name are assigned to this model, so that they are still
    -- found.
    update pgrecall.embedding e
    set    model = _pin_model.model
    where  e.bank_id = bank.bank_id and e.model = '';
  end if;
  if bank is distinct from before then
    update pgrecall.bank b
    set    embedding_dimensions = bank.embedding_dimensions,
           embedding_model      = bank.embedding_model
    where  b.bank_id = bank.bank_id;
  end if;
  return bank;
end;
$$;
comment on function pgrecall_internal._pin_model is
'Fixes the length of a bank''s embeddings by the first embedding in facts, and the name of their '
'model by the first model named; returns the updated row of the bank. Errors: RC004, RC005, RC006.';

create or replace function pgrecall_internal._is_alone(
  bank pgrecall.bank, facts jsonb, model text, replace text)
returns boolean
language sql stable parallel safe
return coalesce(
  -- The first embedding pins the model, in the row of the bank.
  (bank.embedding_dimensions is null or bank.embedding_model is null and model <> '')
  and jsonb_path_exists(
        facts, 'lax $[*] ? (exists(@.embedding) || exists(@.embeddings) || exists(@.questions))')
  -- Two names may mean one entity, and no index tells equal facts that expire apart.
  or coalesce(_is_alone.replace, bank.replace) in ('relation', 'both')
     and jsonb_path_exists(facts, 'lax $[*].relations[*]')
  or jsonb_path_exists(facts, 'lax $[*].expires_at'), false);
comment on function pgrecall_internal._is_alone is
'Whether retain() needs the bank for itself to store these facts.';

create or replace function pgrecall_internal._check_quarantine(
  bank pgrecall.bank, facts pgrecall_internal.fact_row[])
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  place  integer;
  source text;
begin
  if bank.quarantined = '{}' then
    return;
  end if;
  select f.n - 1, pgrecall_internal._source(bank.quarantined, f.source_id) into place, source
  from   unnest(facts) as f
  where  pgrecall_internal._source(bank.quarantined, f.source_id) is not null
  order  by f.n
  limit  1;
  if found then
    raise exception using
      errcode = 'RC015',
      message = format('facts[%s].source_id: source "%s" is in quarantine', place, source),
      hint    = format('Accept its facts again with: select * from pgrecall.release(%L, %L);',
                       bank.bank_id, source);
  end if;
end;
$$;
comment on function pgrecall_internal._check_quarantine is
'Raises RC015 for a fact of a source in quarantine.';

create or replace function pgrecall_internal._lock_names(
  bank text, facts pgrecall_internal.fact_row[], mode text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  insert into pgrecall_internal.name_lock (bank_id, slot)
  select _lock_names.bank, k.slot
  from (
    select hashtextextended('name ' || w.name, 0) & 4095 as slot
    from (
      select distinct a.alias, e.kind_class
      from   unnest(facts) as f
      cross  join lateral unnest(f.names) as e
      cross  join lateral unnest(e.aliases || e.alias) as a(alias)
    ) as n
    -- A person may be known by a part of the name.
    cross  join lateral unnest(
             n.alias || case when n.kind_class = 'person' and strpos(n.alias, ' ') > 0
                          then pgrecall_internal._name_ends(n.alias) end) as w(name)
    -- A name of an entity of another kind may become an entity too.
    where  (select true
            from   pgrecall.entity_alias b
            cross  join lateral (
              select e.name, e.kind
              from   pgrecall.entity e
              where  e.bank_id = _lock_names.bank and e.entity_id = b.entity_id
              limit  1
            ) as x
            where  b.bank_id = _lock_names.bank and b.alias = n.alias
              and  not pgrecall_internal._kinds_conflict(
                         x.name, pgrecall_internal._kind_class(x.kind), n.kind_class)
              -- A kind is given to an entity that has none.
              and  not (pgrecall_internal._kind_class(x.kind) is null
                        and n.kind_class is not null)
            limit  1) is null
    union
    select hashtextextended(
             'key ' || lower(pgrecall_internal._normalised(f.fact_key)), 0) & 4095
    from   unnest(facts) as f
    where  mode in ('key', 'both') and f.fact_key is not null
  ) as k
  order  by k.slot
  on conflict on constraint name_lock_pkey do update
  set slot = excluded.slot;
end;
$$;
comment on function pgrecall_internal._lock_names is
'Locks the names in facts that may become entities or give one a kind, those of people with their '
'first and last words, and the keys that replace facts. A transaction that waited sees what the '
'other stored in its next statement; with an old snapshot it fails (40001).';

create or replace function pgrecall_internal._store_memories(
  bank pgrecall.bank, facts pgrecall_internal.fact_row[], known_ids bigint[], is_linked boolean,
  average_length double precision)
returns bigint[]
language plpgsql volatile parallel unsafe
set search_path from current
set extra_float_digits = 1
set plan_cache_mode = force_generic_plan
as $$
declare
  new_ids bigint[];
begin
  with stored as (
    insert into pgrecall.memory as m
           (bank_id, memory_id, fact_type, text, context, fact_key, source_id, tags, metadata,
            occurred, mentioned_at, confidence, proof_count, valid_from, valid_to, content_hash,
            is_linked, lexical_length, lexical_weights, lexical_document)
    select bank.bank_id, i.memory_id, i.fact_type, i.text, i.context, i.fact_key, i.source_id,
           i.tags, i.metadata, i.occurred, coalesce(i.mentioned_at, now()), i.confidence,
           i.proof_count, least(i.mentioned_at, now()), i.expires_at, i.content_hash,
           _store_memories.is_linked, x.length, x.weights,
           pgrecall_internal._lexical_document(bank, i.text, i.context, i.fact_key)
    from (
      -- Ids follow the order of the facts.
      select nextval('pgrecall.id_seq') as memory_id, o.*
      from (
        select u.*
        from (
          select distinct on (f.content_hash)
                 f.n, f.fact_type, f.text, f.context, f.fact_key, f.source_id, f.tags,
                 f.metadata, f.occurred, f.mentioned_at, f.confidence, f.proof_count,
                 f.content_hash, f.expires_at
          from   unnest(facts) as f
          where  known_ids[f.n] is null
          order  by f.content_hash, f.n
        ) as u
        order  by u.n
      ) as o
      offset 0
    ) as i
    cross  join lateral pgrecall_internal._weighed_document(
             bank, i.text, i.context, i.fact_key, average_length) as x
    -- Two batches with the same facts wait for each other in one direction only.
    order  by i.content_hash
    on conflict (bank_id, content_hash) where valid_to is null do nothing
    returning m.memory_id
  )
  select coalesce(array_agg(s.memory_id order by s.memory_id), '{}') into new_ids from stored s;
  return new_ids;
end;
$$;
comment on function pgrecall_internal._store_memories is
'Writes the memories of facts that the bank does not hold yet; returns their ids.';

create or replace function pgrecall_internal._memory_ids(
  bank text, facts pgrecall_internal.fact_row[], replace text)
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index and its order, also those made while a table was small.
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
begin
  -- One lookup each, whatever the planner assumes about a table not analysed yet: only one index
  -- provides each range in its order. An ended fact counts as known only where storing it again
  -- would change nothing: it expires at that time, it would be replaced again at the same time, or
  -- its copy holds.
  return array(
    select known.memory_id
    from (
      select u.n, u.content_hash, u.mentioned_at,
             -- Of equal facts in the batch any end will do: they are one memory.
             array_agg(u.expires_at) over (partition by u.content_hash) as ends,
             replace in ('key', 'both') and u.fact_key is not null
             or replace in ('relation', 'both') and u.relations <> '{}' as is_replacing,
             replace in ('key', 'both') and u.fact_key is not null and u.mentioned_at is null
             and u.n < max(u.n) filter (where u.mentioned_at is null) over (
                         partition by lower(pgrecall_internal._normalised(u.fact_key)))
               as is_passed
      from   unnest(facts) as u
    ) as f
    left   join lateral (
      select c.memory_id
      from (
        (select m.memory_id, 1 as place
         from   pgrecall.memory m
         where  m.bank_id = _memory_ids.bank and m.valid_to is null
           and  m.content_hash between f.content_hash and f.content_hash
         order  by m.content_hash
         limit  1)
        union all
        (select m.memory_id, 2 as place
         from (
           select x.memory_id, x.valid_from, x.valid_to, x.superseded_by, x.corrections
           from   pgrecall.memory x
           where  x.bank_id = _memory_ids.bank and x.valid_to is not null
             and  x.content_hash between f.content_hash and f.content_hash
           order  by x.content_hash
           offset 0  -- found by the hash, not by the order
         ) as m
         where  (m.valid_to > greatest(now(), m.valid_from) or m.valid_to = any (f.ends)
                 or f.is_replacing and m.superseded_by is not null
                    and (f.is_passed or m.valid_from = f.mentioned_at)
                 or m.corrections -> -1 ->> 'kind' = 'consolidate'
                    and exists (select from pgrecall.memory k
                                where  k.bank_id = _memory_ids.bank
                                  and  k.memory_id = m.superseded_by and k.valid_to is null))
         order  by m.memory_id desc
         limit  1)
      ) as c
      order  by c.place
      limit  1
    ) as known on true
    order  by f.n
  );
end;
$$;
comment on function pgrecall_internal._memory_ids is
'The memories that hold facts, in the order of the facts; null for one that the bank does not '
'hold. replace: how they replace others, as for retain().';

create or replace function pgrecall_internal._keyed_ids(
  bank text, facts pgrecall_internal.fact_row[], mode text)
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index and its order, also those made while a table was small.
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
begin
  if mode not in ('key', 'both') then
    return '{}';
  end if;
  return array(
    select m.memory_id
    from (
      select lower(pgrecall_internal._normalised(f.fact_key)) as fact_key,
             least(min(f.mentioned_at), now()) as since
      from   unnest(facts) as f
      where  f.fact_key is not null
      group  by 1
    ) as k
    cross  join lateral (
      select x.memory_id
      from   pgrecall.memory x
      where  x.bank_id = _keyed_ids.bank and x.fact_key is not null
        and  lower(pgrecall_internal._normalised(x.fact_key)) between k.fact_key and k.fact_key
        and  coalesce(x.valid_to, 'infinity'::timestamptz) > k.since
      order  by lower(pgrecall_internal._normalised(x.fact_key))
      offset 0
    ) as m
  );
end;
$$;
comment on function pgrecall_internal._keyed_ids is
'The memories that facts may end by their keys: as _slot_members() reads them.';

create or replace function pgrecall_internal._update_known(
  bank text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- The array is read once, not for each memory, however few the planner takes them for.
set enable_nestloop = off
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
begin
  if not exists (
    select from unnest(facts) as f where f.expires_at is not null or f.proof_count > 1
  ) then
    return;
  end if;
  update pgrecall.memory m
  set    proof_count = greatest(m.proof_count, e.proof_count),
         valid_to    = case
           when m.superseded_by is null and m.valid_from <= e.expires_at
                and (m.valid_to is null or m.valid_to > now()) then e.expires_at
           else m.valid_to end
  from (
    select memory_ids[f.n] as memory_id, max(f.proof_count) as proof_count,
           (array_agg(f.expires_at order by f.n desc)
              filter (where f.expires_at is not null))[1] as expires_at
    from   unnest(facts) as f
    group  by 1
  ) as e
  -- The array keeps to the primary key, whatever is known of the bank.
  where  m.bank_id = _update_known.bank and m.memory_id = e.memory_id
    and  m.memory_id = any (memory_ids)
    and  (m.proof_count < e.proof_count
          or m.superseded_by is null and m.valid_from <= e.expires_at
             and (m.valid_to is null or m.valid_to > now())
             and m.valid_to is distinct from e.expires_at);
end;
$$;
comment on function pgrecall_internal._update_known is
'Raises the proof_count of memories to that of equal facts where that is greater, and sets the '
'expiry of those that hold to that of the last equal fact. The memories must be locked.';

create or replace function pgrecall_internal._store_embeddings(
  bank text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
begin
  insert into pgrecall.embedding
         (bank_id, memory_id, model, kind, ordinal, fact_type, embedding, text, tokens)
  select _store_embeddings.bank, memory_ids[f.n], v.model, v.kind, v.ordinal, f.fact_type,
         v.embedding, v.text, v.tokens
  from   unnest(facts) as f
  cross  join lateral unnest(f.vectors) as v
  -- In the order of _store_anew(), which may store some of them at the same time.
  order  by v.kind = 'part', 2, v.kind, v.ordinal
  on conflict on constraint embedding_pkey do nothing;
end;
$$;
comment on function pgrecall_internal._store_embeddings is
'Writes the embeddings of facts, their parts and their questions: of the bank''s model, and of the '
'next one while the bank is being re-embedded.';

create or replace function pgrecall_internal._facts(facts jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
begin
  if jsonb_typeof(facts) in ('object', 'string') then
    facts := jsonb_build_array(facts);
  end if;
  perform pgrecall_internal._check_array('facts', facts);
  if jsonb_path_exists(facts, 'strict $[*] ? (@.type() == "string")') then
    return (
      select jsonb_agg(
               case jsonb_typeof(f.fact)
                 when 'string' then jsonb_build_object('text', f.fact)
                 else f.fact
               end order by f.n)
      from   jsonb_array_elements(facts) with ordinality as f(fact, n)
    );
  end if;
  return facts;
end;
$$;
comment on function pgrecall_internal._facts is
'Facts as an array of objects: a single fact becomes an array, a text becomes a fact. Error: '
'RC003.';

create or replace function pgrecall.retain(
  bank    text,
  facts   jsonb,
  model   text default null,
  link    text default 'now',
  replace text default null)
returns setof pgrecall.retained
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $$
declare
  locked     pgrecall.bank;
  fact_types text[];
  fact_rows  pgrecall_internal.fact_row[];
  mode       text;
  average    double precision;
  counted    bigint;
  new_ids    bigint[];
  memory_ids bigint[];
  is_related boolean;
  has_names  boolean;
  unknown    text[];
begin
  locked := pgrecall_internal._bank_to_write(bank, 'pgrecall.memory', 'insert');
  facts := pgrecall_internal._facts(facts);
  if not pgrecall_internal._is_alone(locked, facts, model, retain.replace) then
    begin
      locked := pgrecall_internal._shared_bank(bank);
      if pgrecall_internal._is_alone(locked, facts, model, retain.replace) then
        raise object_in_use;
      end if;
    exception when object_in_use then
      -- It was changed meanwhile. The shared lock is given back: two writers that held it would
      -- wait for each other.
      null;
    end;
  end if;
  if pgrecall_internal._is_alone(locked, facts, model, retain.replace) then
    locked := pgrecall_internal._locked_bank(bank);
  end if;
  mode := coalesce(retain.replace, locked.replace);
  fact_types := array(
    select t.fact_type from pgrecall.fact_type t where t.bank_id = retain.bank order by 1
  );
  perform pgrecall_internal._check_choice(
    'link', link, '{now,deferred}',
    'With "deferred" call pgrecall.link_pending() when the load is done.');
  perform pgrecall_internal._check_choice(
    'replace', mode, '{none,key,relation,both}',
    'With "key" a fact ends the older facts of its fact_key.');
  locked := pgrecall_internal._pin_model(locked, facts, model);
  fact_rows := pgrecall_internal._read_facts(facts, locked, fact_types);
  perform pgrecall_internal._check_quarantine(locked, fact_rows);
  -- Many facts have none of these: what would write them then costs nothing.
  is_related := jsonb_path_exists(facts, 'lax $[*].relations[*]');
  has_names := is_related or jsonb_path_exists(facts, 'lax $[*].entities[*]');
  if has_names or mode in ('key', 'both') then
    perform pgrecall_internal._lock_names(bank, fact_rows, mode);
  end if;
  select s.weighted_length, s.document_count into average, counted
  from   pgrecall_internal.statistics s
  where  s.bank_id = retain.bank and s.kind = 'memory';
  new_ids := pgrecall_internal._store_memories(
    locked, fact_rows, pgrecall_internal._memory_ids(bank, fact_rows, mode), link = 'now',
    coalesce(average, 20));
  memory_ids := pgrecall_internal._memory_ids(bank, fact_rows, mode);
  -- With those that _replace() may end: one that retains them without replacing locks no key.
  perform from (
    select u.id
    from   unnest(memory_ids || pgrecall_internal._keyed_ids(bank, fact_rows, mode)) as u(id)
    where  u.id not in (select unnest(new_ids))
    group  by u.id
    order  by u.id
  ) as k
  cross   join lateral (
    select from pgrecall.memory m
    where  m.bank_id = retain.bank and m.memory_id between k.id and k.id
    for    no key update
  ) as x;
  perform pgrecall_internal._update_known(bank, fact_rows, memory_ids);
  perform pgrecall_internal._store_embeddings(bank, fact_rows, memory_ids);
  if has_names then
    -- Most facts name who is known, and give no aliases.
    unknown := pgrecall_internal._unknown_names(bank, fact_rows);
    if unknown <> '{}' then
      perform pgrecall_internal._store_short_names(bank, fact_rows, unknown);
    end if;
    if unknown <> '{}' or jsonb_path_exists(facts, 'lax $[*].entities[*].aliases[*]') then
      perform pgrecall_internal._store_entities(bank, fact_rows);
    end if;
    perform pgrecall_internal._store_mentions(
      locked, fact_rows, memory_ids,
      array(select u from unnest(memory_ids) as u except select unnest(new_ids)));
  end if;
  if is_related then
    perform pgrecall_internal._store_relations(bank, fact_rows, memory_ids);
  end if;
  if jsonb_path_exists(facts, 'lax $[*].links[*]') then
    perform pgrecall_internal._store_causal_links(bank, fact_rows, memory_ids);
  end if;
  if link = 'now' then
    perform pgrecall_internal._link_memories(bank, new_ids);
  end if;
  perform pgrecall_internal._replace(locked, mode, fact_rows, memory_ids);
  -- The check whether a refresh is due counts new facts, up to a tenth of the bank or 500; so it is
  -- done about ten times before a refresh, not for each fact.
  if exists (
    select from unnest(new_ids) as id
    where  hashint8(id) % greatest(least(coalesce(counted, 0), 5000) / 100, 1) = 0
  ) then
    counted := pgrecall_internal._refresh_when_due(
      locked, 'memory', 500 + cardinality(new_ids));
    if counted > 0 then
      perform pgrecall_internal._refresh_usage(locked, coalesce(locked.embedding_model, ''));
    end if;
  end if;

  return query
  select u.n::integer - 1, u.id,
         u.id in (select unnest(new_ids))
           and row_number() over (partition by u.id order by u.n) = 1,
         coalesce((select true from pgrecall.embedding e
                   where  e.bank_id = retain.bank and e.memory_id = u.id and e.kind = 'text'
                   limit  1), false)
  from   unnest(memory_ids) with ordinality as u(id, n)
  order  by u.n;
end;
$$;
comment on function pgrecall.retain is
'Writes facts, an array of texts or of objects: text (required), fact_type (world), context, '
'fact_key, source_id, tags, metadata, occurred ("2026-03-05", a timestamp or [start, end]), '
'mentioned_at, confidence, proof_count (1), expires_at, entities, relations, links, questions, '
'embedding, embeddings ({"model": embedding}), tokens (token vectors in base64, or {"model": '
'tokens}), parts (further embeddings of the text: of what follows in a long one, or with its '
'heading; or {"model": parts}). All or nothing. A person''s first or last name means who has it in '
'full, whichever comes first, if a fact gives the kind: {"name", "kind": "person", "aliases"}. A '
'fact that is already stored is not stored again, but a greater proof_count and a new expires_at '
'are kept. Returns one row per fact, in order; index counts from 0. model names the model of the '
'embeddings. Embeddings of the bank''s model and of the one that it is being re-embedded with are '
'stored, others are not. link => ''deferred'' leaves temporal links to link_pending(). replace '
'says which older facts a fact ends, at the time it was said: none, those of its fact_key (key), '
'those that lead the same relation from the same entity elsewhere (relation), or both; null: the '
'setting of the bank. Errors: RC001, RC003 naming fact and field, RC004 dimensions, RC005 model, '
'RC006 embedding, RC008 fact type, RC015 its source is in quarantine, or may not end a fact that '
'is trusted more, 22023.';

create or replace function pgrecall.stored_embeddings(bank text, facts jsonb)
returns setof pgrecall.stored_embedding
language plpgsql stable parallel unsafe
set search_path from current
-- Cached plans must use an index and its order, also those made while a table was small.
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $$
declare
  searched   pgrecall.bank := pgrecall_internal._bank(bank);
  fact_types text[] := array(
    select t.fact_type from pgrecall.fact_type t
    where  t.bank_id = stored_embeddings.bank
    order  by 1
  );
begin
  facts := pgrecall_internal._facts(facts);
  return query
  select f.n::integer - 1, e.kind, e.ordinal, e.model, e.embedding, e.tokens
  from   jsonb_array_elements(facts) with ordinality as f(fact, n)
  cross  join lateral pgrecall_internal._read_fact(
           case jsonb_typeof(f.fact)
             -- All but vectors is checked, so that no fact is embedded that retain() refuses, and
             -- but links: those of a stream may lead to earlier batches.
             when 'object' then f.fact - array['links', 'questions', 'embedding', 'embeddings',
                                               'tokens', 'parts']
             else f.fact
           end,
           f.n::integer - 1, jsonb_array_length(facts), searched, fact_types) as read
  cross  join lateral (
    select m.memory_id
    from   pgrecall.memory m
    where  m.bank_id = stored_embeddings.bank and m.valid_to is null
      and  m.content_hash between read.content_hash and read.content_hash
    order  by m.content_hash
    limit  1
  ) as known
  cross  join lateral (
    select x.kind, x.ordinal, x.model,
           -- As the model gave it, but for its length: retain() subtracts the mean again.
           coalesce(x.embedding + case x.model
             when searched.embedding_model then searched.embedding_mean
             else (searched.calibrations -> x.model ->> 'mean')::halfvec
           end, x.embedding) as embedding, x.tokens
    from   pgrecall.embedding x
    where  x.bank_id = stored_embeddings.bank and x.memory_id = known.memory_id
      and  (x.kind in ('text', 'part')
            or x.text = f.fact #>> array['questions', x.ordinal::text, 'text'])
    offset 0  -- a lookup for each fact, as in _memory_ids()
  ) as e
  order  by f.n, e.kind, e.ordinal, e.model;
end;
$$;
comment on function pgrecall.stored_embeddings is
'The stored embeddings of facts, of their parts and of the questions they answer. facts is as for '
'retain(), to which they can be passed instead of being computed again. All models, in order of '
'index, kind, ordinal and model; none for new facts. Reads only. Errors: RC001, RC003 naming fact '
'and field, RC008 fact type: as retain(), but for links and vectors.';

create or replace function pgrecall_internal._deleted_memories(
  bank text, memory_ids bigint[], is_guarded boolean default false)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans of the cascades must use an index, also those made while a table was small; those of
-- the partitions of embeddings would be made anew for each memory.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  removed bigint;
begin
  if not (is_guarded or pgrecall_internal._sees_commits()) then
    begin
      return pgrecall_internal._deleted_memories(bank, memory_ids, true);
    exception when foreign_key_violation then
      perform pgrecall_internal._check_snapshot(bank);
    end;
  end if;
  with gone as (
    delete from pgrecall.memory m
    where  m.bank_id = _deleted_memories.bank
      and  m.memory_id = any (_deleted_memories.memory_ids)
    returning 1
  )
  select count(*) into removed from gone;
  return removed;
end;
$$;
comment on function pgrecall_internal._deleted_memories is
'Deletes memories for forget(), and returns how many there were. Errors: 40001 another memory that '
'a snapshot hides names one of them. is_guarded: the caller catches that.';

create or replace function pgrecall.forget(bank text, memory_ids bigint[])
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  locked  pgrecall.bank;
  named   bigint[];
  change  record;
  removed bigint;
begin
  locked := pgrecall_internal._locked_bank(bank);
  change := pgrecall_internal._uncount_memories(locked, memory_ids);
  named := array(
    select distinct e.entity_id from pgrecall.mention e
    where  e.bank_id = forget.bank and e.memory_id = any (forget.memory_ids)
  );
  update pgrecall.memory m
  set    superseded_by = null
  where  m.bank_id = forget.bank and m.superseded_by = any (forget.memory_ids);
  removed := pgrecall_internal._deleted_memories(bank, memory_ids);
  -- An entity without mentions is deleted. Looked up one by one: joined, a table analysed while it
  -- was empty is read whole for each.
  delete from pgrecall.entity e
  where  e.bank_id = forget.bank
    and  e.entity_id = any (array(
           select n from unnest(named) as n
           where  not exists (select from pgrecall.mention x
                              where x.bank_id = forget.bank and x.entity_id = n offset 0)));
  perform pgrecall_internal._recount_documents(
    locked, 'memory', change.documents, change.total_length);
  return removed;
end;
$$;
comment on function pgrecall.forget is
'Erases memories with their embeddings, mentions, relations and links, and the entities that no '
'other memory mentions; returns how many memories were erased. What consolidate() merged into them '
'stays ended, unlike with forget_where(): who names a memory means what it says. A raw message '
'that says the same stays, and is found: forget_messages(). The BM25 counts change at once. '
'Errors: RC001.';
