-- Updating a memory: a new version takes its place, and the old one is kept as its history.
--
-- The content of a row never changes, so that a recall as of an earlier time finds what was known
-- then. update_memory() ends the memory now and retains a fact with its fields and the changes.
-- What a fact is made of besides its fields is copied from row to row, and not read again from
-- JSON: mentions and relations keep the entities that their names were resolved to, embeddings
-- their bits. Links by similarity and time are made anew. A new text keeps the entities that it
-- names, and the relations between them that it states as much as the old one did: a relation that
-- the text no longer bears out would lead recalls to a fact that does not say so.
create or replace function pgrecall_internal._fact_of(memory pgrecall.memory)
returns jsonb
language plpgsql stable parallel safe
set timezone = 'UTC'
set extra_float_digits = 1
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

create or replace function pgrecall_internal._is_time_given(memory pgrecall.memory)
returns boolean
language plpgsql stable parallel safe
set search_path from current
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $$
begin
  return memory.content_hash = pgrecall_internal._content_hash(
    memory.fact_type, memory.text, memory.context, memory.fact_key, memory.source_id,
    memory.occurred, memory.mentioned_at);
end;
$$;
comment on function pgrecall_internal._is_time_given is
'Whether a memory is known by when it was said, too, since the fact told that.';

create or replace function pgrecall_internal._is_name_in(alias text, words text)
returns boolean
language sql immutable parallel safe
return strpos(words, ' ' || alias || ' ') > 0
       -- The genitive of German and Dutch, "Anas Chefin".
       or length(alias) > 2 and strpos(words, ' ' || alias || 's ') > 0
       or alias ~ ('[' || pgrecall_internal._unspaced() || ']') and strpos(words, alias) > 0;
comment on function pgrecall_internal._is_name_in is
'Whether a text, normalised as a name is, has a normalised name in it, between spaces.';

create or replace function pgrecall_internal._named_in(
  bank text, entity_ids bigint[], words text, former_words text)
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return array(
    select a.entity_id
    from   pgrecall.entity_alias a
    where  a.bank_id = _named_in.bank and a.entity_id = any (_named_in.entity_ids)
    group  by a.entity_id
    having bool_or(pgrecall_internal._is_name_in(a.alias, words))
       -- "Ana", of Ana Silva, where the former text did not say more either.
       or  not bool_or(pgrecall_internal._is_name_in(a.alias, former_words))
           and bool_or(pgrecall_internal._is_name_in(split_part(a.alias, ' ', 1), words)
                       and pgrecall_internal._is_name_in(split_part(a.alias, ' ', 1), former_words))
  );
end;
$$;
comment on function pgrecall_internal._named_in is
'Those of the entities that a text names by any of their aliases, or by the first word of one '
'where its former version named them no better.';

create or replace function pgrecall_internal._is_kind_in(kind text, config regconfig, words text)
returns boolean
language sql stable parallel safe
return tsvector_to_array(to_tsvector(config, pgrecall.normalised_name(kind)))
         <@ tsvector_to_array(to_tsvector(config, words))
       or exists (
         select from jsonb_each(pgrecall.default_relation_words()) as w(word, meanings)
         where  strpos(words, ' ' || w.word || ' ') > 0
           and  replace(lower(kind), ' ', '_') in (
                  select substr(m, 6) from jsonb_array_elements_text(w.meanings) as m));
comment on function pgrecall_internal._is_kind_in is
'Whether a text, normalised as a name is, has the words of a kind of relation, or one that the '
'lexicon has for it.';

create or replace function pgrecall_internal._document_words(memory pgrecall.memory)
returns text
language sql immutable parallel safe
return ' ' || pgrecall.normalised_name(concat_ws(' ', (memory).text, (memory).context)) || ' ';
comment on function pgrecall_internal._document_words is
'Text and context of a memory, normalised as a name is, between spaces.';

create or replace function pgrecall_internal._copy_mentions(
  bank pgrecall.bank, former pgrecall.memory, version pgrecall.memory, changes jsonb)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  words        text := pgrecall_internal._document_words(version);
  former_words text := pgrecall_internal._document_words(former);
  mentioned    bigint[];
begin
  if not changes ? 'entities' then
    mentioned := array(
      select x.entity_id from pgrecall.mention x
      where  x.bank_id = bank.bank_id and x.memory_id = former.memory_id);
    if changes ? 'text' then
      mentioned := pgrecall_internal._named_in(bank.bank_id, mentioned, words, former_words);
    end if;
    -- The version may be counted already.
    perform pgrecall_internal._recount_mentions(bank.bank_id, array[version.memory_id], -1);
    insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id, confidence)
    select bank.bank_id, x.entity_id, version.fact_type, version.memory_id, x.confidence
    from   pgrecall.mention x
    where  x.bank_id = bank.bank_id and x.memory_id = former.memory_id
      and  x.entity_id = any (mentioned)
    on conflict on constraint mention_pkey do nothing;
    perform pgrecall_internal._recount_mentions(bank.bank_id, array[version.memory_id], 1);
  end if;
  if not changes ? 'relations' then
    mentioned := array(
      select x.entity_id from pgrecall.mention x
      where  x.bank_id = bank.bank_id and x.memory_id = version.memory_id);
    insert into pgrecall.relation
           (bank_id, from_id, kind, to_id, memory_id, confidence, valid_from, valid_to)
    select bank.bank_id, x.from_id, x.kind, x.to_id, version.memory_id, x.confidence,
           x.valid_from, x.valid_to
    from (
      -- Found before they are sorted: the primary key has their order, but leads through the bank.
      select y.*
      from   pgrecall.relation y
      where  y.bank_id = bank.bank_id and y.memory_id = former.memory_id
      offset 0
    ) as x
    where  x.from_id = any (mentioned) and x.to_id = any (mentioned)
      and  (not changes ? 'text'
            or pgrecall_internal._is_kind_in(
                 x.kind, bank.text_search_config::regconfig, words)
            or not pgrecall_internal._is_kind_in(
                 x.kind, bank.text_search_config::regconfig, former_words))
    order  by x.relation_id
    on conflict do nothing;
  end if;
end;
$$;
comment on function pgrecall_internal._copy_mentions is
'Copies mentions and relations of a memory to its new version, unless the changes give them: '
'relations between entities that the version mentions. Of a new text: the entities that it names, '
'and no relation for whose kind the former text had words and the new one has none.';

create or replace function pgrecall_internal._copy_parts(
  bank pgrecall.bank, from_id bigint, to_id bigint, changes jsonb)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  former  pgrecall.memory;
  version pgrecall.memory;
begin
  select m.* into former from pgrecall.memory m
  where  m.bank_id = bank.bank_id and m.memory_id = _copy_parts.from_id;
  select m.* into version from pgrecall.memory m
  where  m.bank_id = bank.bank_id and m.memory_id = _copy_parts.to_id;
  perform pgrecall_internal._copy_mentions(bank, former, version, changes);
  -- Causal links from others to it belong to them, and lead to the new version as well.
  insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
  select bank.bank_id, _copy_parts.to_id as from_id, x.kind, x.to_id, x.weight
  from   pgrecall.link x
  where  x.bank_id = bank.bank_id and x.from_id = _copy_parts.from_id
    and  x.kind <> 'temporal' and not changes ? 'links'
    and  x.to_id is distinct from _copy_parts.to_id  -- <> would let the index on to_id be used
  union  all
  select bank.bank_id, x.from_id, x.kind, _copy_parts.to_id as to_id, x.weight
  from   pgrecall.link x
  where  x.bank_id = bank.bank_id and x.to_id = _copy_parts.from_id
    and  x.kind <> 'temporal' and x.from_id <> _copy_parts.to_id
  on conflict on constraint link_pkey do nothing;
  insert into pgrecall.embedding
         (bank_id, memory_id, model, kind, ordinal, fact_type, embedding, text, tokens)
  select bank.bank_id, _copy_parts.to_id, x.model, x.kind, x.ordinal, version.fact_type,
         x.embedding, x.text, x.tokens
  from   pgrecall.embedding x
  where  x.bank_id = bank.bank_id and x.memory_id = _copy_parts.from_id
    and  case when x.kind in ('text', 'part') then not changes ? 'text'
              when x.kind = 'question' then not changes ? 'questions' end
  on conflict on constraint embedding_pkey do nothing;
  insert into pgrecall.attached_row (bank_id, memory_id, relation, key, row_hash)
  select bank.bank_id, _copy_parts.to_id, x.relation, x.key, x.row_hash
  from   pgrecall.attached_row x
  where  x.bank_id = bank.bank_id and x.memory_id = _copy_parts.from_id
  on conflict on constraint attached_row_pkey do nothing;
end;
$$;
comment on function pgrecall_internal._copy_parts is
'Copies to the new version of a memory what the changes leave as it was: mentions and relations '
'(_copy_mentions()), causal links in both directions, the embedding of an unchanged text, '
'questions, and which row of an attached table it is of.';

create or replace function pgrecall.update_memory(
  bank text, memory_id bigint, changes jsonb, model text default null)
returns setof pgrecall.stored_memory
language plpgsql volatile parallel unsafe rows 1
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  locked  pgrecall.bank;
  memory  pgrecall.memory;
  fact    jsonb;
  is_said boolean;
  new_id  bigint;
  is_new  boolean;
  updated pgrecall.stored_memory;
begin
  locked := pgrecall_internal._locked_bank(bank);
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
  -- Another transaction, which began after this one, may have ended it.
  if memory.valid_to <= now()
     or memory.valid_to <= clock_timestamp() and memory.corrections is not null
  then
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
  -- A version is known by what its memory was known by: a document retained again has it.
  is_said := changes ? 'mentioned_at' or pgrecall_internal._is_time_given(memory);
  if not is_said then
    fact := fact - 'mentioned_at';
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
  perform pgrecall_internal._check_successors(bank, array[memory_id], array[new_id]);
  update pgrecall.memory m
  set    superseded_by = new_id,
         corrections   = jsonb_set(m.corrections, '{-1,replaced_by}', to_jsonb(new_id))
  where  m.bank_id = update_memory.bank and m.memory_id = update_memory.memory_id;
  if is_new then
    -- As of earlier times the old version was known.
    update pgrecall.memory m
    set    valid_from   = least(greatest(now(), memory.valid_from), m.valid_to),
           mentioned_at = case when is_said then m.mentioned_at else memory.mentioned_at end,
           is_linked    = true
    where  m.bank_id = update_memory.bank and m.memory_id = new_id;
  end if;
  perform pgrecall_internal._copy_parts(locked, memory_id, new_id, changes);
  perform pgrecall_internal._link_memories(bank, array[new_id]);
  select s.* into updated from pgrecall.stored_memories(bank, array[new_id]) as s;
  updated.ended_entities := array(
    select e.name
    from (
      select x.entity_id from pgrecall.mention x
      where  x.bank_id = update_memory.bank and x.memory_id = update_memory.memory_id
      except
      select x.entity_id from pgrecall.mention x
      where  x.bank_id = update_memory.bank and x.memory_id = new_id
    ) as x
    -- Looked up one by one: a cached plan could read all entities of the bank.
    cross  join lateral (
      select n.name from pgrecall.entity n
      where  n.bank_id = update_memory.bank and n.entity_id = x.entity_id
      limit  1
    ) as e
    order  by e.name);
  updated.ended_relations := array(
    select concat_ws(' ', (select n.name from pgrecall.entity n
                           where  n.bank_id = update_memory.bank and n.entity_id = x.from_id),
                     x.kind, (select n.name from pgrecall.entity n
                              where  n.bank_id = update_memory.bank and n.entity_id = x.to_id))
    from (
      select z.*
      from   pgrecall.relation z
      where  z.bank_id = update_memory.bank and z.memory_id = update_memory.memory_id
        and  coalesce((
               select false from pgrecall.relation y
               where  y.bank_id = update_memory.bank and y.memory_id = new_id
                 and  y.from_id = z.from_id and y.kind = z.kind and y.to_id = z.to_id), true)
      offset 0
    ) as x
    order  by x.relation_id);
  return next updated;
end;
$$;
comment on function pgrecall.update_memory is
'Replaces a memory by a version of it with other fields, as retain() takes them: {"text": "...", '
'"tags": []}; null takes a field away. Returns the new version, or the memory where nothing '
'changes. The old one ends now and stays as history: memory_history() lists it, unsupersede() '
'brings it back in place of the new one. Causal links and questions are kept unless given, '
'entities and relations too, but a new text keeps only those that it still names: an entity by one '
'of its names, a relation by both its ends and, where the old text had a word for its kind, such a '
'word; of given entities the relations between them. ended_entities and ended_relations tell which '
'the new version no longer has. A new text needs an embedding: pass one, with its model, or let '
'embed_pending() name it. Errors: RC001, RC010 unknown memory, 22023 nothing to change, or it has '
'ended, and those of retain().';
