create or replace function pgrecall._check_array(name text, value jsonb)
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
comment on function pgrecall._check_array(text, jsonb) is
'Raises RC003 unless a value is an array.';

create or replace function pgrecall._fact_hash(fact jsonb)
returns bytea
language sql stable parallel safe
return sha256(convert_to(jsonb_build_array(
  coalesce(fact ->> 'fact_type', 'world'), fact ->> 'text', fact ->> 'context', fact ->> 'fact_key',
  fact ->> 'source_id', pgrecall._time_range(fact -> 'occurred')::text,
  extract(epoch from (fact ->> 'mentioned_at')::timestamptz)
)::text, 'UTF8'));
comment on function pgrecall._fact_hash(jsonb) is
'SHA-256 over what makes a fact the same fact: type, text, context, key, source, and its times '
'where given.';

create or replace function pgrecall.retain(
  bank text, facts jsonb, model text default null, link text default 'now')
returns table (index integer, memory_id bigint, is_new boolean)
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $$
declare
  locked     pgrecall.bank := pgrecall._locked_bank(bank);
  fact_types text[] := array(
    select t.fact_type from pgrecall.fact_type t where t.bank_id = retain.bank order by 1
  );
  own_model  text := coalesce(locked.embedding_model, model);
  average    double precision;
  counted    bigint;
  first_place     text;
  first_embedding jsonb;
  hashes     bytea[];
  new_ids    bigint[];
  memory_ids bigint[];
  known_id   bigint;
  proofs     integer;
begin
  perform pgrecall._check_array('facts', facts);
  if link is null or link not in ('now', 'deferred') then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('link must be "now" or "deferred", not "%s"', link),
      hint    = 'With "deferred" call pgrecall.link_pending() when the load is done.';
  end if;

  -- The first embedding pins the dimensions, the first model named its name.
  select format('facts[%s].%s', f.n - 1, e.place), e.embedding
  into   first_place, first_embedding
  from   jsonb_array_elements(facts) with ordinality as f(fact, n)
  cross  join lateral (
    select 'embedding', pgrecall._vector(f.fact, own_model, true)
    union all
    select format('questions[%s].embedding', q.n - 1), pgrecall._vector(q.value, own_model, true)
    from   jsonb_path_query(f.fact, 'lax $.questions[*]') with ordinality as q(value, n)
  ) as e(place, embedding)
  where  e.embedding is not null
  limit  1;
  perform pgrecall._check_embedding(locked, 'facts', null, model);
  if first_embedding is not null then
    if locked.embedding_dimensions is null then
      locked.embedding_dimensions :=
        vector_dims(pgrecall._fact_embedding(first_place, first_embedding, locked));
      if locked.embedding_dimensions > 4000 then
        raise exception using
          errcode = 'RC004',
          message = format('%s: expected at most 4000 dimensions, not %s',
                           first_place, locked.embedding_dimensions),
          hint    = 'Longer embeddings cannot be indexed; ask the model for fewer dimensions.';
      end if;
    end if;
    if locked.embedding_model is null and model <> '' then
      locked.embedding_model := model;
      -- Those stored under no name are taken to be of the same model, and stay findable.
      update pgrecall.embedding e
      set    model = retain.model
      where  e.bank_id = retain.bank and e.model = '';
    end if;
    update pgrecall.bank b
    set    embedding_dimensions = locked.embedding_dimensions,
           embedding_model      = locked.embedding_model
    where  b.bank_id = retain.bank
      and  (b.embedding_dimensions, b.embedding_model)
           is distinct from (locked.embedding_dimensions, locked.embedding_model);
  end if;

  perform pgrecall._check_fact(
            f.fact, f.n::integer - 1, jsonb_array_length(facts), locked, fact_types)
  from    jsonb_array_elements(facts) with ordinality as f(fact, n);

  hashes := array(
    select pgrecall._fact_hash(f.fact)
    from   jsonb_array_elements(facts) with ordinality as f(fact, n)
    order  by f.n
  );
  select s.weighted_length, s.document_count into average, counted
  from   pgrecall.statistics s
  where  s.bank_id = retain.bank and s.kind = 'memory';

  with stored as (
    insert into pgrecall.memory as m
           (bank_id, fact_type, text, context, fact_key, source_id, tags, metadata, occurred,
            mentioned_at, confidence, proof_count, valid_from, content_hash, is_linked,
            lexical_length, lexical_weights, lexical_document)
    select retain.bank, i.fact_type, i.text, i.context, i.fact_key, i.source_id, i.tags,
           i.metadata, i.occurred, i.mentioned_at, i.confidence, i.proof_count,
           least(i.mentioned_at, now()), i.content_hash, retain.link = 'now', x.length, x.weights,
           pgrecall._lexical_document(locked, i.text, i.context, i.fact_key)
    from (
      select distinct on (hashes[f.n])
             hashes[f.n]                               as content_hash,
             f.n                                       as position,
             coalesce(f.fact ->> 'fact_type', 'world') as fact_type,
             f.fact ->> 'text'                         as text,
             f.fact ->> 'context'                      as context,
             f.fact ->> 'fact_key'                     as fact_key,
             f.fact ->> 'source_id'                    as source_id,
             array(select jsonb_array_elements_text(
                            coalesce(nullif(f.fact -> 'tags', 'null'), '[]')))
                                                       as tags,
             coalesce(nullif(f.fact -> 'metadata', 'null'), '{}')
                                                       as metadata,
             pgrecall._time_range(f.fact -> 'occurred') as occurred,
             coalesce((f.fact ->> 'mentioned_at')::timestamptz, now())
                                                       as mentioned_at,
             coalesce((f.fact ->> 'confidence')::real, 1)
                                                       as confidence,
             coalesce((f.fact ->> 'proof_count')::integer, 1)
                                                       as proof_count
      from   jsonb_array_elements(facts) with ordinality as f(fact, n)
      order  by hashes[f.n], f.n
    ) as i,
    pgrecall._lexical(locked, i.text, i.context, i.fact_key, coalesce(average, 20)) as x
    order  by i.position
    on conflict (bank_id, content_hash) where valid_to is null do nothing
    returning m.memory_id
  )
  select coalesce(array_agg(s.memory_id), '{}') into new_ids from stored s;

  -- A lookup for each, whatever the planner makes of a table that it has not analysed yet; plans
  -- are not kept either, since one made for an empty bank would read a full one over and over.
  memory_ids := array(
    select known.memory_id
    from   unnest(hashes) with ordinality as h(content_hash, n)
    cross  join lateral (
      select m.memory_id
      from   pgrecall.memory m
      where  m.bank_id = retain.bank and m.content_hash = h.content_hash and m.valid_to is null
      limit  1
    ) as known
    order  by h.n
  );

  for known_id, proofs in
    select memory_ids[f.n], max((f.fact ->> 'proof_count')::integer)
    from   jsonb_array_elements(facts) with ordinality as f(fact, n)
    where  (f.fact ->> 'proof_count')::integer > 1
    group  by 1
    order  by 1
  loop
    update pgrecall.memory m
    set    proof_count = proofs
    where  m.bank_id = retain.bank and m.memory_id = known_id and m.proof_count < proofs;
  end loop;

  -- While the bank is being re-embedded, what comes with both models' vectors lands in both sets.
  insert into pgrecall.embedding
         (bank_id, memory_id, model, kind, ordinal, fact_type, embedding, text)
  select retain.bank, memory_ids[f.n], v.model, e.kind, e.ordinal,
         coalesce(f.fact ->> 'fact_type', 'world'), (v.embedding #>> '{}')::halfvec, e.text
  from   jsonb_array_elements(facts) with ordinality as f(fact, n)
  cross  join lateral (
    select 'text' as kind, 0::smallint as ordinal, f.fact as item, null as text
    union all
    select 'question', (q.n - 1)::smallint, q.value, q.value ->> 'text'
    from   jsonb_array_elements(coalesce(nullif(f.fact -> 'questions', 'null'), '[]'))
             with ordinality as q(value, n)
  ) as e
  cross  join lateral (
    select coalesce(locked.embedding_model, '') as model,
           pgrecall._vector(e.item, locked.embedding_model, true) as embedding
    union all
    select locked.next_model, pgrecall._vector(e.item, locked.next_model, false)
  ) as v
  where  v.embedding is not null
  on conflict on constraint embedding_pkey do nothing;

  perform pgrecall._retain_entities(bank, facts, memory_ids);
  perform pgrecall._retain_links(bank, facts, memory_ids);
  if link = 'now' then
    perform pgrecall._link(bank, new_ids);
  end if;
  -- To see whether a refresh is due takes counting what is new, up to a tenth of the bank: so not
  -- for each fact, but about ten times on the way there.
  if exists (
    select from unnest(new_ids) as id
    where  hashint8(id) % greatest(coalesce(counted, 0) / 100, 1) = 0
  ) then
    perform pgrecall._refresh_when_due(locked, 'memory');
  end if;

  return query
  select u.n::integer - 1, u.id,
         u.id = any (new_ids) and row_number() over (partition by u.id order by u.n) = 1
  from   unnest(memory_ids) with ordinality as u(id, n)
  order  by u.n;
end;
$$;
comment on function pgrecall.retain(text, jsonb, text, text) is
'Writes facts, an array of objects: text (required), fact_type (world), context, fact_key, '
'source_id, tags, metadata, '
'occurred ("2026-03-05", a timestamp or [start, end]), mentioned_at, confidence, proof_count (1), '
'entities, relations, links, questions, embedding, embeddings ({"model": embedding}). '
'All or nothing; a fact that is there already is not stored again, but a greater proof_count is '
'kept. One row a fact, in order; index '
'counts from 0. '
'model names what made each embedding; of embeddings those of the bank''s model and of the one it '
'is being re-embedded with are kept. link => ''deferred'' leaves semantic and temporal links to '
'link_pending(). '
'Errors: RC001, RC003 naming fact and field, RC004 dimensions, RC005 model, RC006 embedding, RC008 '
'fact type, 22023.';

create or replace function pgrecall.forget(bank text, memory_ids bigint[])
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  named   bigint[];
  removed bigint;
begin
  perform pgrecall._locked_bank(bank);
  named := array(
    select distinct e.entity_id from pgrecall.mention e
    where  e.bank_id = forget.bank and e.memory_id = any (forget.memory_ids)
  );
  update pgrecall.memory m
  set    superseded_by = null
  where  m.bank_id = forget.bank and m.superseded_by = any (forget.memory_ids);
  with gone as (
    delete from pgrecall.memory m
    where  m.bank_id = forget.bank and m.memory_id = any (forget.memory_ids)
    returning 1
  )
  select count(*) into removed from gone;
  -- Nobody is remembered of whom nothing is.
  delete from pgrecall.entity e
  where  e.bank_id = forget.bank and e.entity_id = any (named)
    and  not exists (select from pgrecall.mention x
                     where x.bank_id = forget.bank and x.entity_id = e.entity_id);
  return removed;
end;
$$;
comment on function pgrecall.forget(text, bigint[]) is
'Erases memories with their embeddings, mentions, relations and links, and entities nothing else '
'names; '
'returns how many there were. Errors: RC001.';

create or replace function pgrecall.supersede(
  bank text, memory_id bigint, superseded_by bigint default null, at timestamptz default now())
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall._locked_bank(bank);
  perform pgrecall._check_memory(bank, memory_id);
  if superseded_by is not null then
    perform pgrecall._check_memory(bank, superseded_by);
  end if;
  if superseded_by = memory_id then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('memory %s cannot supersede itself', memory_id),
      hint    = 'Pass the id of the newer memory, or none.';
  end if;
  update pgrecall.memory m
  set    valid_to      = greatest(coalesce(supersede.at, now()), m.valid_from),
         superseded_by = supersede.superseded_by
  where  m.bank_id = supersede.bank and m.memory_id = supersede.memory_id;
end;
$$;
comment on function pgrecall.supersede(text, bigint, bigint, timestamptz) is
'Ends a memory at a time, optionally naming the one that replaces it; recall finds it only as of '
'earlier times. '
'Errors: RC001, RC010 unknown memory, 22023.';
