-- Corrections: ending a memory that no longer holds, optionally with near copies, and undoing it.
--
-- supersede() sets valid_to: a recall finds the memory only as of earlier times. Every operation
-- that ends a memory (supersede, a fact that replaces it, consolidate) records the previous values
-- in its column corrections. unsupersede() reverts the last correction of a memory, and of the
-- memories that the same correction ended; the rows are then as before, column by column.
-- near_copies() finds memories that say the same in other words, among a bounded number of
-- candidates: the nearest by embedding, or by words, and those with the same key, source or
-- entities. Texts that differ in a number or a negation are not copies, nor is a text that is more
-- similar to the successor.
create or replace function pgrecall_internal._numbers_and_negations(content text)
returns text[]
language plpgsql immutable parallel safe
as $$
begin
  return array(
    select distinct m[1]
    from   regexp_matches(
             lower(content),
             '(\d+|\m(?:no|not|never|without|nicht|kein|keine|keinen|nie|ohne|sin|nunca|pas|jamais|'
             'sans|non|mai|senza|niet|geen|nooit|zonder|não|sem)\M|n[''’]t\M)', 'g') as m
    order  by 1
  );
end;
$$;
comment on function pgrecall_internal._numbers_and_negations is
'Numbers and negations in a text, sorted: they distinguish texts of nearly the same words.';

create or replace function pgrecall_internal._text_embedding(bank pgrecall.bank, memory_id bigint)
returns halfvec
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return (
    select e.embedding
    from   pgrecall.embedding e
    where  e.bank_id = bank.bank_id and e.memory_id = _text_embedding.memory_id
      and  e.model = coalesce(bank.embedding_model, '') and e.kind = 'text'
    limit  1
  );
end;
$$;
comment on function pgrecall_internal._text_embedding is
'The embedding of a memory''s text by the model of the bank; null where it has none.';

create or replace function pgrecall_internal._similarities(
  bank pgrecall.bank, embedding halfvec, other_embedding halfvec, weights sparsevec,
  other_weights sparsevec,
  out similarity double precision, out words double precision)
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  -- A text without words has a zero vector, whose cosine distance is NaN.
  words := coalesce(nullif(1 - (weights <=> other_weights), 'NaN'), 0);
  similarity := coalesce(pgrecall_internal._similarity(
    1 - (embedding <=> other_embedding), bank.low_cosine, bank.high_cosine), words);
end;
$$;
comment on function pgrecall_internal._similarities is
'similarity: that of the embeddings of two memories, as in the semantic arm, or words where one '
'has none. words: the cosine of their BM25 weights.';

create or replace function pgrecall_internal._near_candidates(
  bank pgrecall.bank, memory pgrecall.memory, embedding halfvec, entity_ids bigint[],
  as_of timestamptz)
returns bigint[]
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return array(
    select s.memory_id
    from   pgrecall.semantic_arm(
             bank.bank_id, embedding, array[memory.fact_type], as_of => _near_candidates.as_of,
             depth => 50) as s
    where  embedding is not null
    union
    -- Of a text without an embedding its words. Without punctuation: a quote or a dash would ask
    -- for a phrase, or for texts without a word.
    select l.memory_id
    from   pgrecall.lexical_arm(
             bank.bank_id, pgrecall.normalised_name(memory.text), array[memory.fact_type],
             as_of => _near_candidates.as_of, depth => 50) as l
    where  embedding is null
    union
    (select k.memory_id
     from   pgrecall.memory k
     where  k.bank_id = bank.bank_id and k.fact_key is not null
       and  lower(pgrecall_internal._normalised(k.fact_key))
              = lower(pgrecall_internal._normalised(memory.fact_key))
       and  coalesce(k.valid_to, 'infinity'::timestamptz) > _near_candidates.as_of
     limit  50)
    union
    (select d.memory_id
     from   pgrecall.memory d
     where  d.bank_id = bank.bank_id and d.source_id = memory.source_id
     order  by d.memory_id desc
     limit  50)
    union
    select x.memory_id
    from   unnest(entity_ids[:10]) as e(entity_id)
    cross  join lateral (
      select n.memory_id
      from   pgrecall.mention n
      where  n.bank_id = bank.bank_id and n.entity_id = e.entity_id
        and  n.fact_type = memory.fact_type
      order  by n.memory_id desc
      limit  50
    ) as x
  );
end;
$$;
comment on function pgrecall_internal._near_candidates is
'Candidates for near copies of a memory: at most 50 nearest by embedding, or by words where it has '
'none, 50 with its key, 50 from its source, and 50 for each of ten entities.';

create or replace function pgrecall.near_copies(
  bank           text,
  memory_id      bigint,
  superseded_by  bigint default null,
  min_similarity double precision default 0.85,
  as_of          timestamptz default now())
returns setof pgrecall.near_copy
language plpgsql volatile parallel unsafe rows 5
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  found_bank  pgrecall.bank;
  memory      pgrecall.memory;
  successor   pgrecall.memory;
  vector      halfvec;
  next_vector halfvec;
  entity_ids  bigint[];
begin
  found_bank := pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_memory(bank, memory_id);
  if superseded_by is not null then
    perform pgrecall_internal._check_memory(bank, superseded_by);
  end if;
  perform pgrecall_internal._check_share('min_similarity', min_similarity);
  select m.* into memory from pgrecall.memory m
  where  m.bank_id = near_copies.bank and m.memory_id = near_copies.memory_id;
  select m.* into successor from pgrecall.memory m
  where  m.bank_id = near_copies.bank and m.memory_id = near_copies.superseded_by;
  vector := pgrecall_internal._text_embedding(found_bank, memory_id);
  next_vector := pgrecall_internal._text_embedding(found_bank, superseded_by);
  entity_ids := array(
    select x.entity_id from pgrecall.mention x
    where  x.bank_id = near_copies.bank and x.memory_id = near_copies.memory_id
    order  by x.entity_id
  );
  return query
  select c.memory_id, c.text, c.similarity, c.names, c.is_same_source
  from (
    select m.memory_id, m.text, a.similarity, a.words, e.names, e.has_all, m.lexical_weights,
           coalesce(m.source_id = memory.source_id, false) as is_same_source, v.embedding
    from   unnest(pgrecall_internal._near_candidates(
             found_bank, memory, vector, entity_ids, coalesce(near_copies.as_of, now()))) as i(id)
    cross  join lateral (
      select y.*
      from   pgrecall.memory y
      where  y.bank_id = near_copies.bank and y.memory_id = i.id
      limit  1
    ) as m
    cross  join lateral (
      select pgrecall_internal._text_embedding(found_bank, m.memory_id) as embedding
      offset 0
    ) as v
    cross  join lateral pgrecall_internal._similarities(
             found_bank, vector, v.embedding, memory.lexical_weights, m.lexical_weights) as a
    cross  join lateral (
      select coalesce(array_agg(n.name order by n.name), '{}') as names,
             count(*) = cardinality(entity_ids) as has_all
      from   pgrecall.mention x
      join   pgrecall.entity n on n.bank_id = near_copies.bank and n.entity_id = x.entity_id
      where  x.bank_id = near_copies.bank and x.memory_id = m.memory_id
        and  x.entity_id = any (entity_ids)
    ) as e
    where  m.memory_id <> memory.memory_id and m.fact_type = memory.fact_type
      and  pgrecall_internal._holds(m.valid_from, m.valid_to, coalesce(near_copies.as_of, now()))
      and  pgrecall_internal._numbers_and_negations(m.text)
           = pgrecall_internal._numbers_and_negations(memory.text)
  ) as c
  left   join lateral pgrecall_internal._similarities(
           found_bank, next_vector, c.embedding, successor.lexical_weights, c.lexical_weights) as o
    on   successor.memory_id is not null
  where  c.similarity >= near_copies.min_similarity
    and  (c.has_all or c.is_same_source and c.names <> '{}')
    and  c.memory_id is distinct from near_copies.superseded_by
    and  (successor.memory_id is null
          or c.similarity + c.words > o.similarity + o.words)
  order  by c.similarity desc, c.memory_id desc;
end;
$$;
comment on function pgrecall.near_copies is
'Current memories with nearly the same words as a memory, nearest first: of its type, with a '
'similarity of min_similarity (0 to 1) or more, its numbers and negations, and all its entities, '
'or some of them and the same source; not those nearer to superseded_by than to the memory. '
'supersede() with reach => ''copies'' ends them. Errors: RC001, RC010 unknown memory, 22023.';

create or replace function pgrecall_internal._corrected(bank text, memory_ids bigint[])
returns setof pgrecall.corrected
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select m.memory_id, m.text, m.valid_from, m.valid_to, m.superseded_by
  from   unnest(_corrected.memory_ids) with ordinality as u(id, n)
  cross  join lateral (
    select x.memory_id, x.text, x.valid_from, x.valid_to, x.superseded_by
    from   pgrecall.memory x
    where  x.bank_id = _corrected.bank and x.memory_id = u.id
    limit  1
  ) as m
  order  by u.n;
end;
$$;
comment on function pgrecall_internal._corrected is
'Memories after a correction, in the order given.';

create or replace function pgrecall_internal._check_not_quarantined(
  bank text, memory_id bigint, is_hidden boolean)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  if exists (
    select from pgrecall.memory m
    where  m.bank_id = _check_not_quarantined.bank
      and  m.memory_id = _check_not_quarantined.memory_id
      and  m.corrections -> -1 ->> 'kind' = 'quarantine'
      and  (not is_hidden
            or pgrecall_internal._is_hidden(m.valid_from, m.valid_to, m.corrections))
  ) then
    raise exception using
      errcode = 'RC015',
      message = format('memory %s was last changed by quarantine()', memory_id),
      hint    = 'Release the source first; bank.quarantined names those in quarantine.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_not_quarantined is
'Raises RC015 for a memory whose last correction was by quarantine(). is_hidden: only for one that '
'quarantine() took out of recalls.';

create or replace function pgrecall.supersede(
  bank          text,
  memory_id     bigint,
  superseded_by bigint default null,
  at            timestamptz default now(),
  reach         text default 'memory',
  dry_run       boolean default false)
returns setof pgrecall.corrected
language plpgsql volatile parallel unsafe rows 2
set search_path from current
as $$
declare
  ends_at timestamptz := coalesce(at, now());
  ids     bigint[] := array[memory_id];
  ends    timestamptz[];
begin
  perform pgrecall_internal._check_choice(
    'reach', reach, '{memory,copies}',
    'With "copies" what near_copies() lists ends with the memory.');
  if dry_run then
    perform pgrecall_internal._bank(bank);
  else
    perform pgrecall_internal._locked_bank(bank);
  end if;
  perform pgrecall_internal._check_memory(bank, memory_id);
  if superseded_by is not null then
    perform pgrecall_internal._check_memory(bank, superseded_by);
  end if;
  if superseded_by = memory_id then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('memory %s cannot supersede itself', memory_id),
      hint    = 'Pass the id of the newer memory, or none.';
  elsif ends_at = 'infinity' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'at must be a time, not infinity',
      hint    = 'A memory without an end holds until one is set.';
  elsif reach = 'copies' then
    ids := ids || array(
      select c.memory_id
      from   pgrecall.near_copies(bank, memory_id, superseded_by, as_of => ends_at) as c);
  end if;
  perform pgrecall_internal._check_not_quarantined(bank, memory_id, true);
  perform pgrecall_internal._check_successors(
    bank, ids, array_fill(superseded_by, array[cardinality(ids)]));
  -- What ends before holds no longer than that.
  ends := array(
    select least(ends_at, c.valid_to) from pgrecall_internal._corrected(bank, ids) as c);
  if dry_run then
    return query
    select c.memory_id, c.text, c.valid_from, greatest(least(ends_at, c.valid_to), c.valid_from),
           supersede.superseded_by
    from   pgrecall_internal._corrected(bank, ids) as c;
    return;
  end if;
  perform pgrecall_internal._end_memories(
    bank, 'supersede', nextval('pgrecall.id_seq'), ids, ends,
    array_fill(superseded_by, array[cardinality(ids)]));
  return query
  select * from pgrecall_internal._corrected(bank, ids);
end;
$$;
comment on function pgrecall.supersede is
'Ends a memory at a time, and names the one that replaces it, if any; a recall finds it only as of '
'earlier times. One that has ended before, or expires before, keeps that end. reach => ''copies'' '
'ends what near_copies() lists as well; dry_run ends nothing. Returns the ended memories. '
'unsupersede() undoes it. Errors: RC001, RC010 unknown memory, RC015 the source of superseded_by '
'is trusted less, or that of the memory is in quarantine, 22023.';

create or replace function pgrecall_internal._restore(
  bank text, memory_ids bigint[], is_guarded boolean default false)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  memory_id bigint;
  other_id  bigint;
  ids       bigint[];
  ends      timestamptz[];
begin
  if not (is_guarded or pgrecall_internal._sees_commits()) then
    begin
      perform pgrecall_internal._restore(bank, memory_ids, true);
    exception when unique_violation then
      perform pgrecall_internal._check_snapshot(bank);
    end;
    return;
  end if;
  -- The memory that consolidate() kept was not ended: it keeps an expiry that was given since.
  select array_agg(m.memory_id),
         array_agg(case when pgrecall_internal._ended_by(m.memory_id, m.corrections) is null
                     then m.valid_to
                     else (m.corrections -> -1 ->> 'valid_to')::timestamptz end)
  into   ids, ends
  from   pgrecall.memory m
  where  m.bank_id = _restore.bank and m.memory_id = any (_restore.memory_ids);
  select e.memory_id, e.other_id into memory_id, other_id
  from   pgrecall_internal._equal_memories(bank, memory_ids) as e
  join   unnest(ids, ends) as c(memory_id, ends_at) on c.memory_id = e.memory_id
  cross  join lateral (
    select x.valid_from, x.valid_to
    from   pgrecall.memory x
    where  x.bank_id = _restore.bank and x.memory_id = e.memory_id
    limit  1
  ) as m
  where  m.valid_to <= greatest(now(), m.valid_from) and coalesce(c.ends_at, 'infinity') > now()
  order  by e.memory_id, e.other_id
  limit  1;
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('memory %s cannot be restored: memory %s now says the same',
                       memory_id, other_id),
      hint    = format('Forget the later one first: select pgrecall.forget(%L, ''{%s}'');',
                       bank, other_id);
  end if;
  update pgrecall.memory m
  set    valid_to      = c.valid_to,
         superseded_by = (
           select s.memory_id from pgrecall.memory s
           where  s.bank_id = _restore.bank
             and  s.memory_id = (m.corrections -> -1 ->> 'superseded_by')::bigint),
         -- Only consolidate() changes it, and only of the memory that it keeps.
         proof_count   = case
           when pgrecall_internal._ended_by(m.memory_id, m.corrections) is null
             then (m.corrections -> -1 ->> 'proof_count')::integer
           else m.proof_count end,
         corrections   = nullif(m.corrections - -1, '[]')
  from   unnest(ids, ends) as c(memory_id, valid_to)
  where  m.bank_id = _restore.bank and m.memory_id = c.memory_id;
end;
$$;
comment on function pgrecall_internal._restore is
'Reverts the last correction of each of these memories. Errors: 22023 another memory that holds '
'has the same content, 40001 that a snapshot hides. is_guarded: the caller catches that.';

create or replace function pgrecall.unsupersede(bank text, memory_id bigint)
returns setof pgrecall.corrected
language plpgsql volatile parallel unsafe rows 2
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  last          jsonb;
  correction_id bigint;
  ids           bigint[];
  other         pgrecall.memory;
begin
  perform pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_memory(bank, memory_id);
  perform pgrecall_internal._check_not_quarantined(bank, memory_id, false);
  last := (
    select m.corrections -> -1 from pgrecall.memory m
    where  m.bank_id = unsupersede.bank and m.memory_id = unsupersede.memory_id
  );
  if last is null then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('no correction of memory %s is recorded', memory_id),
      hint    = 'It was never corrected, or it was by a release before 0.2.0.';
  end if;
  ids := array(
    select m.memory_id
    from   pgrecall.memory m
    where  m.bank_id = unsupersede.bank
      and  m.memory_id in (
             select unsupersede.memory_id
             union all
             select (last ->> 'replaced_by')::bigint
             union all
             select k.value::bigint from jsonb_array_elements_text(last -> 'members') as k
             union all
             select s.memory_id from pgrecall.memory s
             where  s.bank_id = unsupersede.bank
               and  s.superseded_by = (last ->> 'replaced_by')::bigint)
      and  m.corrections -> -1 -> 'correction_id' = last -> 'correction_id'
      and  m.corrections -> -1 -> 'replaced_by' is not distinct from last -> 'replaced_by'
    order  by m.memory_id <> unsupersede.memory_id, m.memory_id
  );
  -- Of a memory and the version that update_memory() stored of it, which has a later id than the
  -- correction, only one holds at a time: the version ends where it began; or, where it is what
  -- comes back, the memory ends there. First, as both may have the same content.
  correction_id := (last ->> 'correction_id')::bigint;
  if last ->> 'kind' = 'update' then
    select m.* into other
    from   pgrecall.memory m
    where  m.bank_id = unsupersede.bank and m.memory_id = (last ->> 'replaced_by')::bigint
      and  greatest(m.memory_id, unsupersede.memory_id) > correction_id;
    if (other.corrections -> -1 ->> 'correction_id')::bigint > correction_id
       or other.corrections is not null and other.valid_to <= now()
    then
      raise exception using
        errcode = 'invalid_parameter_value',
        message = format('memory %s, the other version of memory %s, was corrected since',
                         other.memory_id, memory_id),
        hint    = format('Revert that first: select * from pgrecall.unsupersede(%L, %s);', bank,
                         other.memory_id);
    end if;
    perform pgrecall_internal._end_memories(
      bank, 'update', correction_id, array[other.memory_id],
      array[case when other.memory_id > memory_id then '-infinity' else (
              select m.valid_from from pgrecall.memory m
              where  m.bank_id = unsupersede.bank and m.memory_id = unsupersede.memory_id) end],
      array[memory_id]);
  end if;
  perform pgrecall_internal._restore(bank, ids);
  return query
  select * from pgrecall_internal._corrected(bank, ids);
end;
$$;
comment on function pgrecall.unsupersede is
'Reverts the last correction of a memory: the changes of supersede(), a replacing fact or '
'consolidate() in its row, and in the rows that were corrected with it for the same successor; the '
'version that update_memory() made of it ends, as if it had never been, and comes back by '
'unsupersede() of the version. A row that was corrected again since stays as it is. Returns the '
'restored memories, this one first. Errors: RC001, RC010 unknown memory, RC015 quarantine() did '
'it, 22023 nothing to revert, the version that would end was corrected since, or another memory '
'now has the same content.';
