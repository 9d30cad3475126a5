-- Re-embedding: replacing the embedding model of a bank while it is in use.
--
-- The next model's embeddings are stored beside the current ones, in the same table under their
-- own model name. reembed_start() names the model; the caller then embeds the texts that
-- reembed_pending() returns and passes them to reembed_store(), in batches, while the bank is read
-- and written as before. reembed_finish() switches all searches to the new model in one update;
-- reembed_clean() removes the old embeddings in batches.
-- Every step can be called again: its state is in the columns next_model, next_dimensions and
-- previous_model of table bank.

create or replace function pgrecall_internal._raise_not_ready(problem text, hint text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  raise exception using errcode = 'RC014', message = problem, hint = hint;
end;
$$;
comment on function pgrecall_internal._raise_not_ready is
'Raises RC014 for a step of re-embedding that the bank is not ready for.';

create or replace function pgrecall_internal._check_reembedding(bank pgrecall.bank)
returns void
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  if bank.next_model is null then
    perform pgrecall_internal._raise_not_ready(
      format('bank "%s" is not being re-embedded', bank.bank_id),
      format('Begin with: select pgrecall.reembed_start(%L, ''name of the model'', 384);',
             bank.bank_id));
  end if;
end;
$$;
comment on function pgrecall_internal._check_reembedding is
'Raises RC014 unless a bank is being re-embedded.';

create or replace function pgrecall_internal._as_next(bank pgrecall.bank)
returns pgrecall.bank
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  bank.embedding_model := bank.next_model;
  bank.embedding_dimensions := bank.next_dimensions;
  bank.embedding_mean := bank.calibrations -> bank.next_model ->> 'mean';
  bank.low_cosine := bank.calibrations -> bank.next_model ->> 'low_cosine';
  bank.high_cosine := bank.calibrations -> bank.next_model ->> 'high_cosine';
  return bank;
end;
$$;
comment on function pgrecall_internal._as_next is 'A bank as it will be once it is re-embedded.';

create or replace function pgrecall.reembed_start(bank text, model text, dimensions integer)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  locked pgrecall.bank := pgrecall_internal._locked_bank(bank);
  kept   integer;
begin
  if coalesce(model, '') = '' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'model must name the model to re-embed with',
      hint    = 'Two sets of embeddings are told apart by the names of their models.';
  end if;
  perform pgrecall_internal._check_range('dimensions', dimensions, 1, 4000);
  if (locked.next_model, locked.next_dimensions) = (model, dimensions) then
    return;
  end if;
  if locked.next_model is not null then
    perform pgrecall_internal._raise_not_ready(
      format('bank "%s" is being re-embedded with model "%s", %s dimensions, not "%s", %s',
             bank, locked.next_model, locked.next_dimensions, model, dimensions),
      format('Go on with that one, or give it up with: select pgrecall.reembed_cancel(%L);',
             bank));
  end if;
  if locked.embedding_model = model then
    perform pgrecall_internal._raise_not_ready(
      format('bank "%s" is embedded with model "%s" already', bank, model),
      'Name another model. The same one at another length needs a name of its own.');
  end if;
  if locked.embedding_dimensions is null then
    perform pgrecall_internal._raise_not_ready(
      format('bank "%s" holds no embeddings', bank),
      'Retain facts with embeddings of the model: the first one pins it.');
  end if;

  -- Existing embeddings of this model, from an earlier attempt or before a change of model, are
  -- used if they have this length.
  select vector_dims(k.embedding) into kept
  from   pgrecall.fact_type t
  cross  join lateral (
    select e.embedding
    from   pgrecall.embedding e
    where  e.bank_id = reembed_start.bank and e.fact_type = t.fact_type
      and  e.model = reembed_start.model
    limit  1
  ) as k
  where  t.bank_id = reembed_start.bank
  limit  1;
  if kept <> dimensions then
    perform pgrecall_internal._raise_not_ready(
      format('bank "%s" still holds embeddings of model "%s" with %s dimensions, not %s',
             bank, model, kept, dimensions),
      format('Call this until it returns 0: select pgrecall.reembed_clean(%L);', bank));
  end if;

  update pgrecall.bank b
  set    next_model      = reembed_start.model,
         next_dimensions = reembed_start.dimensions
  where  b.bank_id = reembed_start.bank;
end;
$$;
comment on function pgrecall.reembed_start is
'Begins to re-embed a bank with another model: a second set of embeddings is filled beside the '
'first, which is searched until reembed_finish(). From now on retain() writes to both sets where a '
'fact has an embedding of each model. A second call for the same model changes nothing. Errors: '
'RC001, RC014 the bank is being re-embedded with another model, has this model already, or has no '
'embeddings, 22023.';

create or replace function pgrecall.reembed_pending(
  bank text, from_id bigint default 0, batch_size integer default 1000)
returns setof pgrecall.pending_text
language plpgsql stable parallel safe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  searched pgrecall.bank := pgrecall_internal._bank(bank);
begin
  perform pgrecall_internal._check_reembedding(searched);
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  -- In primary key order, with one lookup each: nothing is counted or sorted.
  return query
  select e.memory_id, e.kind, e.ordinal, coalesce(e.text, m.text),
         case when e.kind = 'text' then m.context end
  from   pgrecall.embedding e
  cross  join lateral (
    select x.text, x.context from pgrecall.memory x
    where  x.bank_id = reembed_pending.bank and x.memory_id = e.memory_id
    limit  1
  ) as m
  left   join lateral (
    select true as is_there from pgrecall.embedding x
    where  x.bank_id = reembed_pending.bank and x.memory_id = e.memory_id
      and  x.model = searched.next_model and x.kind = e.kind and x.ordinal = e.ordinal
    limit  1
  ) as n on true
  where  e.bank_id = reembed_pending.bank and e.memory_id >= reembed_pending.from_id
    and  e.model = coalesce(searched.embedding_model, '')
    and  n.is_there is null
    -- reembed_finish() computes usages, of the words of the same relations.
    and  (e.kind = 'text' or e.kind <> 'usage' and e.text is not null)
  order  by e.memory_id, e.kind, e.ordinal
  limit  batch_size;
end;
$$;
comment on function pgrecall.reembed_pending is
'Texts that still have to be embedded with the next model: of memories and of the questions they '
'answer, in order of memory_id, starting at from_id, at most batch_size rows. Pass the last '
'memory_id of a batch as the next from_id; a call from 0 also finds what was stored meanwhile. '
'Errors: RC001, RC014 the bank is not being re-embedded, 22023.';

create or replace function pgrecall_internal._store_anew(
  bank pgrecall.bank, made_before text, embeddings jsonb)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  own_model text := coalesce(bank.embedding_model, '');
  stored    bigint;
begin
  -- Memories forgotten in the meantime are skipped.
  with stored as (
    insert into pgrecall.embedding as s
           (bank_id, memory_id, model, kind, ordinal, fact_type, embedding, text, tokens)
    select distinct on (i.memory_id, i.kind, i.ordinal)
           bank.bank_id, i.memory_id, own_model, i.kind, i.ordinal, e.fact_type,
           i.embedding, e.text, i.tokens
    from   pgrecall_internal._read_embeddings(bank, embeddings) as i
    cross  join lateral (
      select x.fact_type, x.text
      from   pgrecall.embedding x
      where  x.bank_id = bank.bank_id and x.memory_id = i.memory_id and x.model = made_before
        and  x.kind = i.kind and x.ordinal = i.ordinal
      limit  1
    ) as e
    order  by i.memory_id, i.kind, i.ordinal, i.n desc
    on conflict on constraint embedding_pkey do update
    set embedding = excluded.embedding, tokens = excluded.tokens
    returning 1
  )
  select count(*) into stored from stored;
  delete from pgrecall.embedding e
  where  e.bank_id = bank.bank_id and e.model = own_model and e.kind = 'part'
    and  e.memory_id in (select i.memory_id
                         from   pgrecall_internal._read_embeddings(bank, embeddings) as i
                         where  i.kind = 'text');
  if embeddings @? '$[*].parts' then
    perform pgrecall_internal._store_parts(bank, embeddings);
  end if;
  return stored;
end;
$$;
comment on function pgrecall_internal._store_anew is
'Stores embeddings of the model of a bank for what another, or the same, model embedded before, '
'with their parts in place of those stored; returns how many.';

create or replace function pgrecall.reembed_store(bank text, model text, embeddings jsonb)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  locked pgrecall.bank := pgrecall_internal._shared_bank(bank);
begin
  perform pgrecall_internal._check_reembedding(locked);
  if model is distinct from locked.next_model then
    raise exception using
      errcode = 'RC005',
      message = format('bank "%s" is being re-embedded with model "%s", not "%s"',
                       bank, locked.next_model, model),
      hint    = format('Embed what reembed_pending() returns with "%s".', locked.next_model);
  end if;
  perform pgrecall_internal._check_embedded(embeddings, 'reembed_pending()');

  return pgrecall_internal._store_anew(
           pgrecall_internal._as_next(locked), coalesce(locked.embedding_model, ''), embeddings);
end;
$$;
comment on function pgrecall.reembed_store is
'Stores embeddings of the next model: an array of {"memory_id", "kind", "ordinal", "embedding", '
'"tokens", "parts"}, as reembed_pending() names them; kind is text and ordinal 0 when left out. '
'Returns how many it stored; those of missing memories are skipped. Errors: RC001, RC003, RC004, '
'RC005 another model, RC006, RC014 the bank is not being re-embedded.';

create or replace function pgrecall_internal._reembed_counts(
  bank text, model text, next_model text,
  out vectors bigint, out pending bigint, out textless bigint)
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  select count(*),
         count(*) filter (where n.memory_id is null and e.kind <> 'usage'
                                and (e.kind = 'text' or e.text is not null)),
         count(*) filter (where n.memory_id is null and e.kind = 'question' and e.text is null)
  into   vectors, pending, textless
  from   pgrecall.embedding e
  left   join pgrecall.embedding n
    on   n.bank_id = _reembed_counts.bank and n.memory_id = e.memory_id
    and  n.model = _reembed_counts.next_model and n.kind = e.kind and n.ordinal = e.ordinal
  where  e.bank_id = _reembed_counts.bank and e.model = _reembed_counts.model;
end;
$$;
comment on function pgrecall_internal._reembed_counts is
'How many embeddings a model has, how many of them the next model still lacks, and how many cannot '
'be made since their text was not stored.';

create or replace function pgrecall.reembed_status(bank text)
returns setof pgrecall.reembedding
language plpgsql stable parallel safe rows 1
set search_path from current
as $$
declare
  searched pgrecall.bank := pgrecall_internal._bank(bank);
begin
  return query
  select searched.embedding_model, searched.embedding_dimensions, searched.next_model,
         searched.next_dimensions, searched.previous_model, c.vectors,
         case when searched.next_model is null then 0 else c.pending end, c.textless,
         (select count(distinct e.memory_id)
          from   pgrecall_internal._embedding_models(bank) as u
          join   pgrecall.embedding e
            on   e.bank_id = reembed_status.bank and e.fact_type = u.fact_type
            and  e.model = u.model
          where  u.model <> coalesce(searched.embedding_model, '')
            and  u.model is distinct from searched.next_model)
  from   pgrecall_internal._reembed_counts(
           bank, coalesce(searched.embedding_model, ''), searched.next_model) as c;
end;
$$;
comment on function pgrecall.reembed_status is
'Progress of the re-embedding of a bank: its model; next_model while it is being re-embedded; '
'previous_model while reembed_clean() has work; the embeddings that are searched (vectors); those '
'of them that next_model still lacks (pending); questions that were retained without their text '
'and cannot be re-embedded (textless); memories with embeddings of another model (leftover). It '
'counts them with a scan of the bank''s embeddings. Errors: RC001.';

create or replace function pgrecall.reembed_finish(bank text, is_lossy boolean default false)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  locked pgrecall.bank;
  counts record;
begin
  perform pgrecall_internal._check_isolation('reembed_finish');
  locked := pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_reembedding(locked);
  counts := pgrecall_internal._reembed_counts(
    bank, coalesce(locked.embedding_model, ''), locked.next_model);
  if counts.pending > 0 then
    perform pgrecall_internal._raise_not_ready(
      format('%s of %s embeddings of bank "%s" are not made with model "%s" yet',
             counts.pending, counts.vectors, bank, locked.next_model),
      format('select * from pgrecall.reembed_pending(%L); says which ones.', bank));
  end if;
  if counts.textless > 0 and is_lossy is not true then
    perform pgrecall_internal._raise_not_ready(
      format('%s questions of bank "%s" were retained without their text and would be lost',
             counts.textless, bank),
      'Pass is_lossy => true to do without them: their facts stay, and are found by their own '
      'text.');
  end if;
  perform pgrecall_internal._refresh_usage(locked, locked.next_model);
  update pgrecall.bank b
  set    embedding_model      = locked.next_model,
         embedding_dimensions = locked.next_dimensions,
         previous_model       = coalesce(locked.embedding_model, ''),
         next_model           = null,
         next_dimensions      = null
  where  b.bank_id = reembed_finish.bank;
end;
$$;
comment on function pgrecall.reembed_finish is
'Makes the next model the model of the bank, at once: a recall searches by one of them, never by '
'both. Every embedding must exist in the next model; questions without text are dropped only with '
'is_lossy. reembed_clean() then removes the old embeddings. Errors: RC001, RC014 embeddings are '
'pending, 25001 isolation level above read committed.';

create or replace function pgrecall.reembed_cancel(bank text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall_internal._check_reembedding(pgrecall_internal._locked_bank(bank));
  update pgrecall.bank b
  set    next_model      = null,
         next_dimensions = null
  where  b.bank_id = reembed_cancel.bank;
end;
$$;
comment on function pgrecall.reembed_cancel is
'Stops re-embedding a bank, which keeps its model. Embeddings made so far are kept for another '
'reembed_start() until reembed_clean() removes them. Errors: RC001, RC014 the bank is not being '
're-embedded.';

create or replace function pgrecall_internal._embedding_models(bank text)
returns table (fact_type text, model text)
language plpgsql stable parallel safe rows 10
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  -- One index lookup per model, however many embeddings each has.
  return query
  with recursive found as (
    select t.fact_type, (
             select e.model from pgrecall.embedding e
             where  e.bank_id = _embedding_models.bank and e.fact_type = t.fact_type
             order  by e.model
             limit  1) as model
    from (
      select x.fact_type
      from   pgrecall.fact_type x
      where  x.bank_id = _embedding_models.bank
      union  all
      select ''  -- what kinds of relations mean
    ) as t
    union  all
    select f.fact_type, (
             select e.model from pgrecall.embedding e
             where  e.bank_id = _embedding_models.bank and e.fact_type = f.fact_type
               and  e.model > f.model
             order  by e.model
             limit  1)
    from   found f
    where  f.model is not null
  )
  select f.fact_type, f.model from found f where f.model is not null;
end;
$$;
comment on function pgrecall_internal._embedding_models is
'The models that a bank has embeddings of, by fact type.';

create or replace function pgrecall.reembed_clean(bank text, batch_size integer default 100)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  locked pgrecall.bank := pgrecall_internal._locked_bank(bank);
  ids    bigint[];
begin
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  ids := array(
    select distinct l.memory_id
    from (
      select o.memory_id
      from   pgrecall_internal._embedding_models(bank) as u
      cross  join lateral (
        select e.memory_id
        from   pgrecall.embedding e
        where  e.bank_id = reembed_clean.bank and e.fact_type = u.fact_type
          and  e.model = u.model
        limit  batch_size
      ) as o
      where  u.model <> coalesce(locked.embedding_model, '')
        and  u.model is distinct from locked.next_model
      limit  batch_size
    ) as l
  );
  delete from pgrecall.embedding e
  where  e.bank_id = reembed_clean.bank and e.memory_id = any (ids)
    and  e.model <> coalesce(locked.embedding_model, '')
    and  e.model is distinct from locked.next_model;
  if cardinality(ids) = 0 then
    update pgrecall.bank b
    set    previous_model = null
    where  b.bank_id = reembed_clean.bank and b.previous_model is not null;
  end if;
  return cardinality(ids);
end;
$$;
comment on function pgrecall.reembed_clean is
'Removes the embeddings of other models than the bank''s own and the next one, of up to batch_size '
'memories; returns how many memories. Call it until it returns 0. Errors: RC001, 22023.';
