-- What kinds of relations mean: an embedding of the words of each kind, and one of how facts state
-- it.
--
-- A question words a relation as it likes: "who signs off her leave" asks for reports_to. Facts
-- that state reports_to are worded in as many ways, so the mean of their embeddings, with that of
-- the words "reports to", is near to such a question whatever its words are. The names in them
-- differ and cancel out; the embedding of one statement, "Ana reports to Sam", is nearer to other
-- facts about Ana (bench/TRIED.md). Who extracts facts words a kind in many ways, too, "supervised
-- by" here and "takes orders from" there, so kinds that are much alike share what they mean. The
-- graph arm follows the kinds whose usage is near (graph/walk.sql).
--
-- The words come from the caller, as texts of facts do: relations_pending() and embed_pending()
-- list them, embed_store() takes them, a re-embedding makes them anew. Both vectors are rows of
-- embedding at one of the facts that state the kind, of fact type '', so that dumps, transfers,
-- policies and calibration know them. Whenever facts with new kinds come, the 500 kinds that most
-- of the latest 5,000 relations are of get such vectors, which bounds what a caller embeds.
create or replace function pgrecall_internal._embedded_words(bank text, model text)
returns table (words text)
language sql stable parallel safe rows 500
begin atomic
  select e.text
  from   pgrecall.embedding e
  where  e.bank_id = _embedded_words.bank and e.fact_type = ''
    and  e.model = _embedded_words.model and e.kind = 'relation';
end;
comment on function pgrecall_internal._embedded_words is
'The words of kinds of relations that have embeddings of a model.';

create or replace function pgrecall_internal._latest_relations(bank text)
returns table (kind text, memory_id bigint)
language sql stable parallel safe rows 5000
begin atomic
  select r.kind, r.memory_id
  from   pgrecall.relation r
  where  r.bank_id = _latest_relations.bank
  order  by r.relation_id desc
  limit  5000;
end;
comment on function pgrecall_internal._latest_relations is
'The kinds of the latest 5,000 relations of a bank, each with the fact that states it.';

create or replace function pgrecall_internal._refresh_usage(
  bank pgrecall.bank, model text, words text[] default null)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  with meant as materialized (
    select s.bank_id, s.memory_id, s.model, s.ordinal, s.text,
           coalesce(l2_normalize(l2_normalize(s.embedding)::vector + f.mean)::halfvec,
                    l2_normalize(s.embedding)) as embedding
    from   pgrecall.embedding s
    left   join (
      select pgrecall_internal._words_of_kind(r.kind) as words,
             (array_agg(r.memory_id order by r.memory_id desc))[1:50] as memory_ids
      from   pgrecall_internal._latest_relations(bank.bank_id) as r
      where  _refresh_usage.words is null
         or  pgrecall_internal._words_of_kind(r.kind) = any (_refresh_usage.words)
      group  by 1
    ) as k on k.words = s.text
    left   join lateral (
      select l2_normalize(avg(l2_normalize(e.embedding)::vector)) as mean
      from   pgrecall.embedding e
      where  e.bank_id = bank.bank_id and e.memory_id = any (k.memory_ids)
        and  e.model = _refresh_usage.model and e.kind = 'text'
    ) as f on true
    where  s.bank_id = bank.bank_id and s.fact_type = '' and s.model = _refresh_usage.model
      and  s.kind = 'relation'
      and  (_refresh_usage.words is null or s.text = any (_refresh_usage.words))
      -- A kind that is no longer stated keeps its meaning.
      and  (f.mean is not null
            or not exists (
                 select from pgrecall.embedding x
                 where  x.bank_id = s.bank_id and x.memory_id = s.memory_id and x.model = s.model
                   and  x.kind = 'usage' and x.ordinal = s.ordinal))
  ),
  other as materialized (
    select m.text, m.embedding from meant m
    union all
    select e.text, e.embedding
    from   pgrecall.embedding e
    where  e.bank_id = bank.bank_id and e.fact_type = '' and e.model = _refresh_usage.model
      and  e.kind = 'usage' and e.text not in (select m.text from meant m)
    limit  1000
  )
  insert into pgrecall.embedding as u
         (bank_id, memory_id, model, kind, ordinal, fact_type, embedding, text)
  select m.bank_id, m.memory_id, m.model, 'usage', m.ordinal, '',
         coalesce(l2_normalize(m.embedding + m.embedding + o.alike), m.embedding), m.text
  from   meant m
  cross  join lateral (
    select sum(x.embedding) as alike
    from   other x
    where  x.text <> m.text
      and  pgrecall_internal._similarity(
             1 - (x.embedding <=> m.embedding), bank.low_cosine, bank.high_cosine) > 0.75
  ) as o
  on conflict on constraint embedding_pkey do update set embedding = excluded.embedding;
end;
$$;
comment on function pgrecall_internal._refresh_usage is
'Computes what kinds of relations mean in a model''s embeddings, from their words and up to 50 of '
'the facts that state them. Kinds of much the same meaning, "resides in" beside "lives in", share '
'theirs: to the double of each those are added whose similarity to it is above 0.75 '
'(bench/TRIED.md). words: of which kinds; null: of all.';

create or replace function pgrecall.relations_pending(
  bank text, model text default null, memory_ids bigint[] default null)
returns setof pgrecall.pending_text
language plpgsql stable parallel safe rows 20
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  searched pgrecall.bank := pgrecall_internal._bank(bank);
begin
  if model <> searched.embedding_model
     or memory_ids is not null and not exists (
          select
          from   unnest(memory_ids) as u(id)
          join   pgrecall.relation r on r.bank_id = relations_pending.bank and r.memory_id = u.id
          where  not exists (
                   select
                   from   pgrecall_internal._embedded_words(
                            relations_pending.bank, coalesce(searched.embedding_model, '')) as e
                   where  e.words = pgrecall_internal._words_of_kind(r.kind)))
  then
    return;
  end if;
  return query
  select k.memory_id, 'relation'::text, 0::smallint, k.words, null::text
  from (
    select pgrecall_internal._words_of_kind(r.kind) as words, max(r.latest) as memory_id
    from (
      select x.kind, max(x.memory_id) as latest
      from   pgrecall_internal._latest_relations(relations_pending.bank) as x
      group  by x.kind
      order  by count(*) desc, x.kind collate "C"
      limit  500
    ) as r
    group  by 1
  ) as k
  where  not exists (
           select
           from   pgrecall_internal._embedded_words(
                    relations_pending.bank, coalesce(searched.embedding_model, '')) as e
           where  e.words = k.words)
  order  by k.memory_id, k.words;
end;
$$;
comment on function pgrecall.relations_pending is
'The kinds of relations without an embedding of the bank''s model, as words, each at a fact that '
'states it. Pass embeddings of them to embed_store(). None where model is another one than that of '
'the bank, nor where all kinds that the facts memory_ids state have embeddings. Errors: RC001.';

create or replace function pgrecall_internal._store_relation_words(
  bank pgrecall.bank, memory_ids bigint[], words text[], embeddings halfvec[])
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  named  text := coalesce(bank.embedding_model, '');
  stored bigint;
begin
  with given as (
    select distinct on (u.words) u.memory_id, u.words, u.embedding
    from   unnest(memory_ids, words, embeddings) as u(memory_id, words, embedding)
    where  exists (select from pgrecall.memory m
                   where  m.bank_id = bank.bank_id and m.memory_id = u.memory_id)
      and  not exists (
             select from pgrecall_internal._embedded_words(bank.bank_id, named) as e
             where  e.words = u.words)
    order  by u.words
  ),
  stored as (
    insert into pgrecall.embedding
           (bank_id, memory_id, model, kind, ordinal, fact_type, embedding, text)
    select bank.bank_id, g.memory_id, named, 'relation',
           coalesce(l.last, 0) + row_number() over (partition by g.memory_id order by g.words),
           '', g.embedding, g.words
    from   given g
    cross  join lateral (
      select max(e.ordinal) as last
      from   pgrecall.embedding e
      where  e.bank_id = bank.bank_id and e.memory_id = g.memory_id and e.kind = 'relation'
    ) as l
    returning 1
  )
  select count(*) into stored from stored;
  perform pgrecall_internal._refresh_usage(bank, named, words);
  return stored;
end;
$$;
comment on function pgrecall_internal._store_relation_words is
'Stores embeddings of the words of kinds of relations that have none, and what they mean; returns '
'how many. The bank must be locked.';
