-- Updating a memory: a new version takes its place, and the old one is kept as its history.
--
-- The content of a row never changes, so that a recall as of an earlier time finds what was known
-- then. update_memory() ends the memory now and retains a fact with its fields and the changes.
-- What a fact is made of besides its fields is copied from row to row, and not read again from
-- JSON: mentions and relations keep the entities that their names were resolved to, embeddings
-- their bits. Links by similarity and time are made anew.
create or replace function pgrecall_internal._fact_of(memory pgrecall.memory)
returns jsonb
language plpgsql stable parallel safe
set timezone = 'UTC'
as $$
declare
  starts timestamptz := nullif(lower((memory).occurred), '-infinity');
  ends   timestamptz := nullif(upper((memory).occurred), 'infinity');
begin
  return jsonb_strip_nulls(jsonb_build_object(
      'text', (memory).text, 'fact_type', (memory).fact_type, 'context', (memory).context,
      'fact_key', (memory).fact_key, 'source_id', (memory).source_id,
      'mentioned_at', (memory).mentioned_at, 'confidence', (memory).confidence,
      'proof_count', (memory).proof_count, 'expires_at', (memory).valid_to))
    || jsonb_build_object('tags', (memory).tags, 'metadata', (memory).metadata)
    || case
         when (memory).occurred is null then '{}'
         when starts = ends then jsonb_build_object('occurred', starts)
         else jsonb_build_object('occurred', jsonb_build_array(starts, ends))
       end;
end;
$$;
comment on function pgrecall_internal._fact_of is
'The fields of a memory as a fact for retain(), without embeddings, entities, relations and links.';

create or replace function pgrecall_internal._copy_parts(
  bank pgrecall.bank, from_id bigint, to_id bigint, changes jsonb)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  new_type text := (
    select m.fact_type from pgrecall.memory m
    where  m.bank_id = bank.bank_id and m.memory_id = _copy_parts.to_id);
begin
  if not changes ? 'entities' then
    insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id, confidence)
    select bank.bank_id, x.entity_id, new_type, _copy_parts.to_id, x.confidence
    from   pgrecall.mention x
    where  x.bank_id = bank.bank_id and x.memory_id = _copy_parts.from_id
    on conflict on constraint mention_pkey do nothing;
  end if;
  if not changes ? 'relations' then
    insert into pgrecall.relation
           (bank_id, from_id, kind, to_id, memory_id, confidence, valid_from, valid_to)
    select bank.bank_id, x.from_id, x.kind, x.to_id, _copy_parts.to_id, x.confidence,
           x.valid_from, x.valid_to
    from   pgrecall.relation x
    where  x.bank_id = bank.bank_id and x.memory_id = _copy_parts.from_id
    order  by x.relation_id
    on conflict do nothing;
  end if;
  -- Causal links that others lead to it are theirs, and lead to the new version as well.
  insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
  select bank.bank_id, _copy_parts.to_id as from_id, x.kind, x.to_id, x.weight
  from   pgrecall.link x
  where  x.bank_id = bank.bank_id and x.from_id = _copy_parts.from_id
    and  x.kind not in ('semantic', 'temporal') and not changes ? 'links'
    and  x.to_id <> _copy_parts.to_id
  union  all
  select bank.bank_id, x.from_id, x.kind, _copy_parts.to_id as to_id, x.weight
  from   pgrecall.link x
  where  x.bank_id = bank.bank_id and x.to_id = _copy_parts.from_id
    and  x.kind not in ('semantic', 'temporal') and x.from_id <> _copy_parts.to_id
  on conflict on constraint link_pkey do nothing;
  insert into pgrecall.embedding
         (bank_id, memory_id, model, kind, ordinal, fact_type, embedding, text)
  select bank.bank_id, _copy_parts.to_id, x.model, x.kind, x.ordinal, new_type,
         x.embedding, x.text
  from   pgrecall.embedding x
  where  x.bank_id = bank.bank_id and x.memory_id = _copy_parts.from_id
    and  case x.kind when 'text' then not changes ? 'text' else not changes ? 'questions' end
  on conflict on constraint embedding_pkey do nothing;
end;
$$;
comment on function pgrecall_internal._copy_parts is
'Copies to the new version of a memory what the changes leave as it was: mentions, relations, '
'causal links in both directions, the embedding of an unchanged text, questions.';

create or replace function pgrecall.update_memory(
  bank text, memory_id bigint, changes jsonb, model text default null)
returns setof pgrecall.stored_memory
language plpgsql volatile parallel unsafe rows 1
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  locked pgrecall.bank := pgrecall_internal._locked_bank(bank);
  memory pgrecall.memory;
  fact   jsonb;
  new_id bigint;
  is_new boolean;
begin
  perform pgrecall_internal._check_memory(bank, memory_id);
  if changes is null or jsonb_typeof(changes) <> 'object' or changes = '{}' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('changes must be an object with a field, not %s',
                       coalesce(left(changes::text, 80), 'null')),
      hint    = 'Pass ''{"text": "...", "tags": ["a"]}'': the fields of a fact, as for retain().';
  end if;
  select m.* into memory from pgrecall.memory m
  where  m.bank_id = update_memory.bank and m.memory_id = update_memory.memory_id;
  if memory.valid_to <= now() then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('memory %s ended at %s', memory_id, memory.valid_to),
      hint    = case
        when memory.superseded_by is null then 'What no longer holds is history: retain a new fact.'
        else format('Update memory %s, which took its place.', memory.superseded_by) end;
  end if;
  fact := pgrecall_internal._fact_of(memory);
  if changes ->> 'text' = memory.text then
    changes := changes - 'text';
  end if;
  if not changes ?| array['entities', 'relations', 'links', 'questions', 'embedding', 'embeddings']
     and fact || changes = fact
  then
    return query
    select * from pgrecall.stored_memories(bank, array[memory_id]);
    return;
  end if;
  -- Ended first: the new version may have the same content hash.
  perform pgrecall_internal._end_memories(
    bank, 'update', nextval('pgrecall.id_seq'), array[memory_id], array[now()],
    array[null::bigint]);
  select r.memory_id, r.is_new into new_id, is_new
  from   pgrecall.retain(
           bank, jsonb_build_array(fact || changes), model, link => 'deferred',
           replace => 'none') as r;
  select b.* into locked from pgrecall.bank b where b.bank_id = update_memory.bank;
  update pgrecall.memory m
  set    superseded_by = new_id,
         corrections   = jsonb_set(m.corrections, '{-1,replaced_by}', to_jsonb(new_id))
  where  m.bank_id = update_memory.bank and m.memory_id = update_memory.memory_id;
  if is_new then
    -- As of earlier times it is the old version that was known.
    update pgrecall.memory m
    set    valid_from = least(now(), m.valid_to)
    where  m.bank_id = update_memory.bank and m.memory_id = new_id;
  end if;
  perform pgrecall_internal._copy_parts(locked, memory_id, new_id, changes);
  perform pgrecall_internal._link_memories(bank, array[new_id]);
  return query
  select * from pgrecall.stored_memories(bank, array[new_id]);
end;
$$;
comment on function pgrecall.update_memory is
'Replaces a memory by a version of it with other fields, as retain() takes them: {"text": "...", '
'"tags": []}; null takes a field away. Returns the new version, or the memory where nothing '
'changes. The old one ends now and stays as history: memory_history() lists it, unsupersede() '
'brings it back. Entities, relations, causal links and questions are kept unless given. A new text '
'needs an embedding: pass one, with its model, or let embed_pending() name it. Errors: RC001, '
'RC010 unknown memory, 22023 nothing to change, or it has ended, and those of retain().';
