-- Missing embeddings: of facts that were written in SQL, or without an embedder.
--
-- A fact is stored without an embedding where the caller has none; all arms but the semantic one
-- find it. embed_pending() lists such texts, and embed_store() stores their embeddings. Both work
-- in batches on any number of memories and keep no state: a text with an embedding is not listed,
-- so that they continue after an interruption. Questions are always stored with their embeddings. A
-- change of model is in retain/reembed.sql.
create or replace function pgrecall.embed_pending(
  bank text, from_id bigint default 0, batch_size integer default 1000)
returns setof pgrecall.pending_text
language plpgsql stable parallel unsafe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  searched pgrecall.bank;
begin
  searched := pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  -- In primary key order, with one lookup each.
  return query
  (select m.memory_id, 'text'::text, 0::smallint, m.text, m.context
   from   pgrecall.memory m
   left   join lateral (
     select true as is_there
     from   pgrecall.embedding e
     where  e.bank_id = embed_pending.bank and e.memory_id = m.memory_id
       and  e.model = coalesce(searched.embedding_model, '') and e.kind = 'text'
     limit  1
   ) as n on true
   where  m.bank_id = embed_pending.bank and m.memory_id >= embed_pending.from_id
     and  n.is_there is null
   order  by m.memory_id
   limit  batch_size)
  union all
  select r.memory_id, r.kind, r.ordinal, r.text, r.context
  from   pgrecall.relations_pending(embed_pending.bank) as r
  where  r.memory_id >= embed_pending.from_id
  order  by 1, 2 desc, 4
  limit  batch_size;
end;
$$;
comment on function pgrecall.embed_pending is
'Texts of memories without an embedding of the bank''s model, and the words of relations, as '
'relations_pending() lists them, in order of memory_id, starting at from_id, at most batch_size '
'rows. Pass embeddings of them to embed_store(). It reads the bank from from_id on; a call from 0 '
'also finds what was stored meanwhile. Errors: RC001, 22023.';

create or replace function pgrecall.tokens_pending(
  bank text, from_id bigint default 0, batch_size integer default 1000)
returns setof pgrecall.pending_text
language plpgsql stable parallel safe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  searched pgrecall.bank := pgrecall_internal._bank(bank);
begin
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  return query
  select e.memory_id, 'text'::text, 0::smallint, m.text, m.context
  from   pgrecall.embedding e
  cross  join lateral (
    select x.text, x.context
    from   pgrecall.memory x
    where  x.bank_id = tokens_pending.bank and x.memory_id = e.memory_id
    limit  1
  ) as m
  where  e.bank_id = tokens_pending.bank and e.memory_id >= tokens_pending.from_id
    and  e.model = coalesce(searched.embedding_model, '') and e.kind = 'text'
    and  e.tokens is null
  order  by e.memory_id
  limit  batch_size;
end;
$$;
comment on function pgrecall.tokens_pending is
'Texts of memories whose embedding came without token vectors, as embed_pending() lists those '
'without an embedding. embed_store() takes their "tokens" beside "embedding". Errors: RC001, '
'22023.';

create or replace function pgrecall_internal._store_parts(bank pgrecall.bank, embeddings jsonb)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  insert into pgrecall.embedding
         (bank_id, memory_id, model, kind, ordinal, fact_type, embedding)
  select bank.bank_id, i.memory_id, coalesce(bank.embedding_model, ''), 'part', p.n - 1,
         m.fact_type, p.embedding
  from   pgrecall_internal._read_embeddings(bank, embeddings) as i
  cross  join lateral (
    select x.fact_type
    from   pgrecall.embedding x
    where  x.bank_id = bank.bank_id and x.memory_id = i.memory_id
      and  x.model = coalesce(bank.embedding_model, '') and x.kind = 'text'
    limit  1
  ) as m
  cross  join lateral unnest(i.parts) with ordinality as p(embedding, n)
  where  i.kind = 'text'
  on conflict on constraint embedding_pkey do nothing;
end;
$$;
comment on function pgrecall_internal._store_parts is
'Stores the parts of texts beside their embeddings of the model of a bank.';

create or replace function pgrecall.embed_store(
  bank text, embeddings jsonb, model text default null)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  locked pgrecall.bank;
  kept   bigint;
  worded bigint := 0;
begin
  perform pgrecall_internal._check_embedded(embeddings, 'embed_pending()');
  -- Of two transactions that have added to the bank and then want it for themselves, one fails
  -- (40P01). Words are not worth that: they stay pending.
  if pg_current_xact_id_if_assigned() is not null
     and embeddings @? '$[*]'
     and not embeddings @? '$[*] ? (!(@.kind == "relation" || @.kind == "name"))'
     and not pg_try_advisory_xact_lock(
               pgrecall_internal._lock_key(pgrecall_internal._bank_to_write(bank)))
  then
    return 0;
  end if;
  locked := pgrecall_internal._locked_bank(bank);
  locked := pgrecall_internal._pin_model(locked, embeddings, model);
  -- Memories forgotten meanwhile are skipped, and an embedding stored meanwhile stays.
  with stored as (
    insert into pgrecall.embedding as s
           (bank_id, memory_id, model, kind, ordinal, fact_type, embedding, tokens)
    select distinct on (i.memory_id)
           embed_store.bank, i.memory_id, coalesce(locked.embedding_model, ''), 'text', 0,
           m.fact_type, i.embedding, i.tokens
    from   pgrecall_internal._read_embeddings(locked, embeddings) as i
    cross  join lateral (
      select x.fact_type
      from   pgrecall.memory x
      where  x.bank_id = embed_store.bank and x.memory_id = i.memory_id
      limit  1
    ) as m
    where  i.kind not in ('relation', 'name')
    order  by i.memory_id, i.n desc
    on conflict on constraint embedding_pkey do update
    set tokens = excluded.tokens
    where s.tokens is null and excluded.tokens is not null
    returning 1
  )
  select count(*) into kept from stored;
  if embeddings @? '$[*].parts' then
    perform pgrecall_internal._store_parts(locked, embeddings);
  end if;
  if embeddings @> '[{"kind": "relation"}]' then
    select pgrecall_internal._store_relation_words(
             locked, array_agg(i.memory_id), array_agg(i.text), array_agg(i.embedding))
    into   worded
    from   pgrecall_internal._read_embeddings(locked, embeddings) as i
    where  i.kind = 'relation' and i.text <> '';
  end if;
  if embeddings @> '[{"kind": "name"}]' then
    perform pgrecall_internal._merge_short_names(
              locked, array_agg(i.text), array_agg(i.embedding))
    from   pgrecall_internal._read_embeddings(locked, embeddings) as i
    where  i.kind = 'name' and i.text <> '';
  end if;
  return kept + worded;
end;
$$;
comment on function pgrecall.embed_store is
'Stores embeddings of texts that embed_pending() listed: an array of {"memory_id", "embedding", '
'"tokens", "parts"}, of relations with "kind" and "text", too, and of names that names_pending() '
'listed, which decide who is one person. model names what made them and is pinned by the first '
'embeddings of a bank. Returns how many it stored; missing memories are skipped, and those with an '
'embedding unless they lack tokens that are given; then only the tokens are stored. Relations and '
'names alone stay pending where the transaction has written and others write into the bank. '
'Errors: RC001, RC003, RC004, RC005 another model, RC006.';

create or replace function pgrecall.embedded_texts(
  bank text, from_id bigint default 0, batch_size integer default 1000)
returns setof pgrecall.pending_text
language plpgsql stable parallel safe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  own_model text := coalesce((pgrecall_internal._bank(bank)).embedding_model, '');
begin
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  return query
  select m.memory_id, e.kind, e.ordinal, coalesce(e.text, m.text),
         case when e.kind = 'text' then m.context end
  from (
    select x.memory_id, x.text, x.context
    from   pgrecall.memory x
    where  x.bank_id = embedded_texts.bank and x.memory_id >= embedded_texts.from_id
    order  by x.memory_id
    limit  batch_size
  ) as m
  cross  join lateral (
    select y.kind, y.ordinal, y.text
    from   pgrecall.embedding y
    where  y.bank_id = embedded_texts.bank and y.memory_id = m.memory_id and y.model = own_model
      and  (y.kind = 'text' or y.kind = 'question' and y.text is not null)
    order  by y.kind desc, y.ordinal
    limit  all
  ) as e
  order  by m.memory_id, e.kind desc, e.ordinal;
end;
$$;
comment on function pgrecall.embedded_texts is
'Texts that have an embedding of the bank''s model: of at most batch_size memories from from_id on '
'and of the questions that they answer, in order of memory_id. Pass embeddings of them to '
'embed_again(). Errors: RC001, 22023.';

create or replace function pgrecall.embed_again(bank text, embeddings jsonb, model text)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  locked pgrecall.bank := pgrecall_internal._shared_bank(bank);
begin
  perform pgrecall_internal._check_embedded(embeddings, 'embedded_texts()');
  perform pgrecall_internal._checked_embedding(locked, 'texts', null, model);
  return pgrecall_internal._store_anew(
           locked, coalesce(locked.embedding_model, ''), embeddings);
end;
$$;
comment on function pgrecall.embed_again is
'Replaces embeddings of texts that embedded_texts() listed by others of the same model, in place, '
'as when a later version of it reads more of a text: an array of {"memory_id", "kind", "ordinal", '
'"embedding", "tokens", "parts"}; kind is text and ordinal 0 when left out. Returns how many it '
'stored; what has no embedding is skipped. Errors: RC001, RC003, RC004, RC005 another model, '
'RC006.';
