-- Statistics of the documents of a bank after some are erased, or mention other entities.
--
-- forget() and forget_messages() may erase most of a bank at once, and what is left must not be
-- ranked by the words of what is gone: what is erased leaves the counts and the mean length in the
-- same transaction. What a message adds to those beside it (message_context_weight), or takes from
-- them, is counted at once, too. Such writers have the bank for themselves, so no writer waits for
-- another at these rows. A document that ended, or whose source is in quarantine, is still there
-- and still counts. Only documents up to the watermark are counted, and only those are taken out.

create or replace function pgrecall_internal._recount_lexemes(
  bank pgrecall.bank, kind text, lexemes text[], changes bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small; and join lexemes by
-- hash, however few the planner takes them for.
set enable_seqscan = off
set enable_nestloop = off
set plan_cache_mode = force_generic_plan
as $$
begin
  if coalesce(lexemes, '{}') = '{}' then
    return;
  end if;
  with change as materialized (
    select u.lexeme, sum(u.documents) as documents,
           pgrecall_internal._dimension(u.lexeme) as dimension
    from   unnest(lexemes, changes) as u(lexeme, documents)
    group  by u.lexeme
    having sum(u.documents) <> 0
  ),
  gone as (
    delete from pgrecall_internal.lexeme l
    using  change c
    where  l.bank_id = bank.bank_id and l.kind = _recount_lexemes.kind and l.lexeme = c.lexeme
      and  l.dimension = c.dimension
      -- The array keeps to the primary key, whatever is known of the bank.
      and  l.dimension = any (array(select x.dimension from change x))
      and  l.document_count + c.documents <= 0
    returning l.lexeme
  ),
  -- No word of what is erased stays in the snapshot that vocabulary_drift() compares with; an empty
  -- one in its place still counts as one that the bank had.
  known as (
    update pgrecall_internal.vocabulary v
    set    lexemes = array(
             select case when w.lexeme in (select g.lexeme from gone g) then '' else w.lexeme end
             from   unnest(v.lexemes) with ordinality as w(lexeme, n)
             order  by w.n)
    where  v.bank_id = bank.bank_id and _recount_lexemes.kind = 'memory'
      -- Not by the operator of arrays: it compares each with each.
      and  exists (select from unnest(v.lexemes) as w(lexeme)
                   where  w.lexeme in (select g.lexeme from gone g))
  ),
  fewer as (
    update pgrecall_internal.lexeme l
    set    document_count = l.document_count + c.documents
    from   change c
    where  l.bank_id = bank.bank_id and l.kind = _recount_lexemes.kind and l.lexeme = c.lexeme
      and  l.dimension = c.dimension
      and  l.dimension = any (array(select x.dimension from change x))
      and  c.documents < 0 and l.document_count + c.documents > 0
  )
  insert into pgrecall_internal.lexeme as l (bank_id, kind, lexeme, dimension, document_count)
  select bank.bank_id, _recount_lexemes.kind, c.lexeme, c.dimension, c.documents
  from   change c
  where  c.documents > 0
  order  by c.dimension, c.lexeme
  on conflict on constraint lexeme_pkey do update
  set document_count = l.document_count + excluded.document_count;
end;
$$;
comment on function pgrecall_internal._recount_lexemes is
'Changes the number of documents of a kind that each of these lexemes occurs in. A lexeme of none '
'leaves an empty one in the vocabulary of the bank.';

create or replace function pgrecall_internal._recount_mentions(
  bank text, memory_ids bigint[], sign integer)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- As above: however many entities a memory mentions.
set enable_seqscan = off
set enable_nestloop = off
set plan_cache_mode = force_generic_plan
as $$
declare
  watermark bigint := (
    select s.watermark from pgrecall_internal.statistics s
    where  s.bank_id = _recount_mentions.bank and s.kind = 'memory');
begin
  if sign > 0 then
    perform pgrecall_internal._count_mentions(bank, 0, watermark, memory_ids);
    return;
  end if;
  with gone as (
    select x.entity_id, count(*) as mentions
    from   pgrecall.mention x
    where  x.bank_id = _recount_mentions.bank and x.memory_id = any (memory_ids)
      and  x.memory_id <= watermark
    group  by x.entity_id
  ),
  unmentioned as (
    delete from pgrecall_internal.entity_count c
    using  gone g
    where  c.bank_id = _recount_mentions.bank and c.entity_id = g.entity_id
      and  c.entity_id = any (array(select x.entity_id from gone x))
      and  c.mention_count <= g.mentions
  )
  update pgrecall_internal.entity_count c
  set    mention_count = c.mention_count - g.mentions
  from   gone g
  where  c.bank_id = _recount_mentions.bank and c.entity_id = g.entity_id
    and  c.entity_id = any (array(select x.entity_id from gone x))
    and  c.mention_count > g.mentions;
end;
$$;
comment on function pgrecall_internal._recount_mentions is
'Subtracts the mentions of some memories from the counts of entities before they change (sign -1), '
'or adds them afterwards (1).';

create or replace function pgrecall_internal._recount_documents(
  bank pgrecall.bank, kind text, documents bigint, total_length double precision)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  rest bigint;
begin
  update pgrecall_internal.statistics s
  set    document_count = greatest(s.document_count + _recount_documents.documents, 0),
         average_length = greatest(s.average_length * s.document_count + total_length, 0)
                          / greatest(s.document_count + _recount_documents.documents, 1)
  where  s.bank_id = bank.bank_id and s.kind = _recount_documents.kind
  returning s.document_count into rest;
  -- As after storing: at once where there are few, else maintain() does it.
  if rest <= 500 and pgrecall_internal._is_weighing_due(bank.bank_id, kind) then
    perform pgrecall_internal._weigh_documents(bank, kind, null);
  end if;
end;
$$;
comment on function pgrecall_internal._recount_documents is
'Adds to the number of documents of a kind and to their total length (negative for what is '
'erased), and weighs the others anew where that is due and they are few. The bank must be locked.';

create or replace function pgrecall_internal._uncount_memories(
  bank pgrecall.bank, memory_ids bigint[],
  out documents bigint, out total_length double precision)
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  watermark bigint := (
    select s.watermark from pgrecall_internal.statistics s
    where  s.bank_id = bank.bank_id and s.kind = 'memory');
  lexemes   text[];
  changes   bigint[];
begin
  select array_agg(c.lexeme), array_agg(-c.documents)
  into   lexemes, changes
  from (
    select x.lexeme, count(*) as documents
    from   (select distinct u from unnest(memory_ids) as u where u <= watermark) as k(id)
    cross  join lateral (
      select m.text, m.context, m.fact_key
      from   pgrecall.memory m
      where  m.bank_id = bank.bank_id and m.memory_id = k.id
      limit  1
    ) as d
    cross  join lateral pgrecall_internal._field_lexemes(
             bank.text_search_config::regconfig, d.text, d.context, bank.context_weight,
             d.fact_key, bank.key_weight) as x
    group  by x.lexeme
  ) as c;
  perform pgrecall_internal._recount_lexemes(bank, 'memory', lexemes, changes);
  perform pgrecall_internal._recount_mentions(bank.bank_id, memory_ids, -1);
  select -count(*), -coalesce(sum(m.lexical_length), 0)
  into   documents, total_length
  from   pgrecall.memory m
  where  m.bank_id = bank.bank_id and m.memory_id = any (memory_ids) and m.memory_id <= watermark;
end;
$$;
comment on function pgrecall_internal._uncount_memories is
'Subtracts memories that are about to be erased from the counts of lexemes and entities; returns '
'what _recount_documents() is to add once they are erased. The bank must be locked.';
