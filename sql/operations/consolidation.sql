-- Consolidation: merging near duplicates into one memory.
--
-- Two current memories are duplicates if they have the same type, key, time of occurrence,
-- entities, numbers and negations, and either the same text except for case and spaces, or
-- embeddings of the required similarity. The memory of the most trusted source is kept; among
-- equals, the one with the highest confidence, then the latest. The others end now and point to it,
-- and its proof_count is the sum of all. As of earlier times all of them are found. A memory is
-- merged only into one that is kept, so that chains of ever less similar memories do not collapse.
-- A memory of a row of an attached table is not merged: it changes, and goes, with its row.
-- Texts are grouped by sorting. One search of the vector index finds what is similar to a memory
-- that has a counterpart in all else. Without an index only memories that agree in all else are
-- compared: up to 1,000 each with each, more by the signs of their vectors. So the work is n log n
-- in the memories of the bank.
create or replace function pgrecall_internal._duplicates(
  bank text, min_similarity double precision, top_k integer)
returns table (kept_id bigint, memory_id bigint, similarity double precision)
language plpgsql stable parallel unsafe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
-- Without statistics of these rows the planner would choose a nested loop.
set enable_nestloop = off
-- A group without an index is read once for each of its memories, not from files.
set work_mem = '64MB'
set jit = off
as $$
declare
  owner      pgrecall.bank := pgrecall_internal._bank(bank);
  is_indexed constant boolean := (pgrecall_internal._hnsw_index(owner)).index_name is not null;
  -- A group up to this size is compared each with each.
  most       constant integer := 1000;
begin
  return query
  with current as materialized (
    select m.memory_id, n.normal,
           jsonb_build_array(
             m.fact_type, lower(pgrecall_internal._normalised(m.fact_key)), m.occurred::text,
             pgrecall_internal._numbers_and_negations(m.text),
             array(
               select x.entity_id from pgrecall.mention x
               where  x.bank_id = _duplicates.bank and x.memory_id = m.memory_id
               order  by x.entity_id)) as likeness,
           row_number() over (
             order by pgrecall_internal._trust(owner.source_trust, m.source_id) desc,
                      m.confidence desc, m.mentioned_at desc, m.memory_id desc) as place
    from   pgrecall.memory m
    cross  join lateral (
      select sha256(convert_to(lower(regexp_replace(
               btrim(pgrecall_internal._normalised(m.text)), '[[:space:]]+', ' ', 'g')),
               'UTF8')) as normal
      offset 0
    ) as n
    where  m.bank_id = _duplicates.bank and m.valid_to is null
      and  not exists (select from pgrecall.attached_row r
                       where  r.bank_id = _duplicates.bank and r.memory_id = m.memory_id)
  ),
  counted as materialized (
    select array_agg(u.memory_id) as ids,
           array_agg(u.memory_id) filter (where u.alike > 1) as searched
    from   (select c.memory_id, count(*) over (partition by c.likeness) as alike
            from   current c) as u
    where  is_indexed
  ),
  embedded as materialized (
    select c.memory_id, c.likeness, e.embedding,
           count(*) over (partition by c.likeness) as alike
    from   current c
    join   pgrecall.embedding e
      on   e.bank_id = _duplicates.bank and e.memory_id = c.memory_id
      and  e.model = coalesce(owner.embedding_model, '') and e.kind = 'text'
    where  not is_indexed
  ),
  alike as materialized (
    select array_agg(e.memory_id) as ids, array_agg(e.embedding) as embeddings
    from   embedded e
    where  e.alike between 2 and most
    group  by e.likeness
  ),
  -- Similar vectors differ in few signs. So in one of 16 orders by signs, each of which begins with
  -- another element, they most likely lie beside one another.
  beside as materialized (
    select distinct least(s.memory_id, o.id) as one_id, greatest(s.memory_id, o.id) as other_id
    from (
      select e.memory_id, array_agg(e.memory_id) over (
               partition by e.likeness, r.n
               order  by substring(e.signs || e.signs from r.n * length(e.signs) / 16 + 1 for 64)
               rows   between 1 following and 5 following) as ids
      from   (select x.memory_id, x.likeness, binary_quantize(x.embedding) as signs
              from   embedded x
              where  x.alike > most) as e
      cross  join generate_series(0, 15) as r(n)
    ) as s
    cross  join unnest(s.ids) as o(id)
  ),
  near as (
    select x.from_id, x.to_id, x.similarity
    from   counted n
    -- Among current ones: those that were merged before are as similar.
    cross  join lateral pgrecall_internal._similar_memories(
             owner, coalesce(n.searched, '{}'), min_similarity, among => n.ids) as x
    union all
    select f.id, x.id, x.similarity
    from   alike g
    cross  join lateral unnest(g.ids, g.embeddings) as f(id, embedding)
    cross  join lateral (
      select t.id, least(pgrecall_internal._similarity(
               1 - (t.embedding <=> f.embedding), owner.low_cosine, owner.high_cosine), 1)
               as similarity
      from   unnest(g.ids, g.embeddings) as t(id, embedding)
      where  t.id <> f.id
      order  by t.embedding <=> f.embedding, t.id desc
      limit  5
    ) as x
    where  x.similarity >= min_similarity
    union all
    select x.from_id, x.to_id, x.similarity
    from (
      select p.from_id, p.to_id, p.similarity,
             row_number() over (partition by p.from_id order by p.similarity desc, p.to_id desc)
               as n
      from   beside b
      join   embedded f on f.memory_id = b.one_id
      join   embedded t on t.memory_id = b.other_id
      cross  join lateral (
        select least(pgrecall_internal._similarity(
                 1 - (t.embedding <=> f.embedding), owner.low_cosine, owner.high_cosine), 1)
                 as similarity
        offset 0
      ) as s
      cross  join lateral (values (b.one_id, b.other_id, s.similarity),
                                  (b.other_id, b.one_id, s.similarity))
                            as p(from_id, to_id, similarity)
      where  s.similarity >= min_similarity
    ) as x
    where  x.n <= 5
  ),
  pair as (
    select c.memory_id, first_value(c.memory_id) over same as other_id,
           first_value(c.place) over same as other_place, 1::double precision as similarity
    from   current c
    window same as (partition by c.likeness, c.normal order by c.place)
    union all
    select case when a.place > b.place then a.memory_id else b.memory_id end as memory_id,
           case when a.place > b.place then b.memory_id else a.memory_id end as other_id,
           least(a.place, b.place) as other_place, x.similarity
    from   near x
    join   current a on a.memory_id = x.from_id
    join   current b on b.memory_id = x.to_id and b.likeness = a.likeness
  ),
  -- Each points to its best duplicate, or to itself where there is none better.
  best as materialized (
    select distinct on (p.memory_id) p.memory_id, p.other_id, p.similarity
    from   pair p
    order  by p.memory_id, p.other_place, p.similarity desc
  )
  select d.other_id, d.memory_id, d.similarity
  from   best d
  join   best k on k.memory_id = d.other_id and k.other_id = k.memory_id
  where  d.other_id <> d.memory_id
  order  by d.similarity desc, d.memory_id
  limit  top_k;
end;
$$;
comment on function pgrecall_internal._duplicates is
'Memories to be merged (memory_id), and the memories to merge them into (kept_id), most similar '
'first. It is longer than 100 lines because it is one statement, whose parts are its steps.';

create or replace function pgrecall.consolidate(
  bank           text,
  dry_run        boolean default true,
  min_similarity double precision default 0.95,
  top_k          integer default 1000)
returns setof pgrecall.consolidated
language plpgsql volatile parallel unsafe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  correction_id bigint;
  kept          bigint[];
  merged        bigint[];
  similarities  double precision[];
  kept_ids      bigint[];
  counts        integer[];
begin
  if dry_run is distinct from false then
    perform pgrecall_internal._bank(bank);
  else
    perform pgrecall_internal._locked_bank(bank);
  end if;
  perform pgrecall_internal._check_share('min_similarity', min_similarity);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 100000);
  select coalesce(array_agg(d.kept_id), '{}'), coalesce(array_agg(d.memory_id), '{}'),
         array_agg(d.similarity)
  into   kept, merged, similarities
  from   pgrecall_internal._duplicates(bank, min_similarity, top_k) as d;
  select array_agg(g.memory_id), array_agg(g.total)
  into   kept_ids, counts
  from (
    select m.memory_id, least(m.proof_count + sum(o.proof_count), 2147483647)::integer as total
    from   unnest(kept, merged) as p(kept_id, memory_id)
    join   pgrecall.memory m on m.bank_id = consolidate.bank and m.memory_id = p.kept_id
    join   pgrecall.memory o on o.bank_id = consolidate.bank and o.memory_id = p.memory_id
    group  by m.memory_id, m.proof_count
  ) as g;
  if dry_run is not distinct from false and merged <> '{}' then
    correction_id := nextval('pgrecall.id_seq');
    perform pgrecall_internal._end_memories(
      bank, 'consolidate', correction_id, merged,
      array_fill(now(), array[cardinality(merged)]), kept);
    update pgrecall.memory m
    set    proof_count = g.total,
           corrections = pgrecall_internal._corrections(
                           row(m.*)::pgrecall.memory, 'consolidate', correction_id, m.memory_id,
                           null)
    from   unnest(kept_ids, counts) as g(memory_id, total)
    where  m.bank_id = consolidate.bank and m.memory_id = g.memory_id;
  end if;
  return query
  select k.memory_id, m.memory_id, k.text, m.text, p.similarity, g.total
  from   unnest(kept, merged, similarities) as p(kept_id, memory_id, similarity)
  join   pgrecall.memory k on k.bank_id = consolidate.bank and k.memory_id = p.kept_id
  join   pgrecall.memory m on m.bank_id = consolidate.bank and m.memory_id = p.memory_id
  join   unnest(kept_ids, counts) as g(memory_id, total) on g.memory_id = p.kept_id
  order  by k.memory_id, p.similarity desc, m.memory_id;
end;
$$;
comment on function pgrecall.consolidate is
'Merges current memories that say the same: they have the same type, key, occurred, entities, '
'numbers and negations, and the same text except for case and spaces, or embeddings with a '
'similarity of min_similarity where one is among the 5 nearest of the other (without a vector '
'index, the nearest of those that agree in all else; among more than 1,000 such that search is '
'approximate, too). The memory of the most trusted source is '
'kept; among equals, the one with the highest confidence, then the latest. The others end now and '
'point to it, and their proof counts are added up. dry_run, the default, only lists the pairs, at '
'most top_k; call it again until it returns none. Memories of attached tables are left out. '
'unconsolidate() undoes a call, unsupersede() one group. Errors: RC001, 22023.';

create or replace function pgrecall.unconsolidate(bank text)
returns setof pgrecall.corrected
language plpgsql volatile parallel unsafe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  ids  bigint[];
begin
  perform pgrecall_internal._locked_bank(bank);
  with last as (
    select m.memory_id, (m.corrections -> -1 ->> 'correction_id')::bigint as correction_id
    from   pgrecall.memory m
    where  m.bank_id = unconsolidate.bank and m.corrections -> -1 ->> 'kind' = 'consolidate'
  )
  select array_agg(l.memory_id order by l.memory_id)
  into   ids
  from   last l
  where  l.correction_id = (select max(x.correction_id) from last x);
  perform pgrecall_internal._restore(bank, ids);
  return query
  select * from pgrecall_internal._corrected(bank, ids);
end;
$$;
comment on function pgrecall.unconsolidate is
'Undoes the latest call of consolidate() that was not undone yet. Memories that were corrected '
'again since stay as they are. Returns the restored memories, none where there is nothing to undo. '
'Errors: RC001, 22023 another memory now has the content of one of them.';
