-- Walks along relations from the entities that a question names, and from those that the best hits
-- mention. They answer questions that ask for a chain: "the home of Ana's boss".
--
-- A relation is a hypothesis, not a share: each kind is followed with the whole mass of the entity,
-- divided among the relations of that kind and direction, so that "Ana's boss" outweighs "whom Ana
-- manages". The question itself says how likely a path is: the embedding of the question is
-- compared with the sum of the meanings of the kinds on the path (retain/usage.sql), each counted
-- once. A path is near if its kinds together cover the question, whatever their words and order; a
-- superfluous kind leads away from it. Where a question asks for no relation, no path is near. An
-- edge that a word of the lexicon (word.sql) asks for counts four times, once per path for each
-- word. Without embeddings only such edges are followed. The meaning of a kind is looked up where a
-- path comes to it, so that a walk costs the same in a bank with any number of kinds, and a path
-- that is hardly near is not followed.
--
-- The sixteen best ends are followed further, up to three relations far, so that a walk reads a
-- bounded number of relations in any bank. Each start counts separately: the score of what two
-- named entities lead to is the sum of both.
create or replace function pgrecall_internal._words_of_kind(kind text)
returns text
language sql immutable parallel safe
return lower(replace(kind, '_', ' '));
comment on function pgrecall_internal._words_of_kind is
'A kind of relations as words: "reports to" for reports_to; inlined.';

create or replace function pgrecall_internal._walked(
  request pgrecall_internal.request, keys text[], bits integer[],
  hit_ids bigint[], hit_masses double precision[],
  entity_ids bigint[], entity_masses double precision[],
  out memory_ids bigint[], out scores double precision[], out paths text[])
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  bank      constant text := (request.bank).bank_id;
  silent    constant jsonb := pgrecall_internal._silent_sources(request.bank);
  -- The time that the question asks about: its window, else all of the past, else now.
  since     constant timestamptz := case
    when request.during is not null then coalesce(lower(request.during), '-infinity')
    when request.options ->> 'prefer' = 'former' then '-infinity'
    else request.as_of end;
  until     constant timestamptz := case
    when request.during is null then request.as_of
    else coalesce(upper(request.during) - (not upper_inc(request.during))::integer
                                          * interval '1 microsecond', 'infinity') end;
begin
  -- The walk is a long statement. Planning it takes 6% of the first recall of a session.
  if not exists (select from pgrecall.relation r where r.bank_id = bank) then
    return;
  end if;
  with recursive start as materialized (
    select e.id, sum(e.mass) as mass, (array_agg(e.way order by e.mass desc))[1] as way
    from (
      select u.id, u.mass, 'e' || u.id as way from unnest(entity_ids, entity_masses) as u(id, mass)
      union all
      select m.entity_id, h.mass / (1 + count(*) over (partition by h.id)),
             case when m.entity_id = any (entity_ids) then 'e' || m.entity_id
                  else 'f' || h.id || E'\x1fe' || m.entity_id end
      from   unnest(hit_ids, hit_masses) as h(id, mass)
      cross  join lateral (
        select x.entity_id from pgrecall.mention x
        where  x.bank_id = bank and x.memory_id = h.id
        limit  20
      ) as m
      where  h.mass >= 0.25
    ) as e
    where  keys <> '{}' or request.embedding is not null
    group  by e.id
    order  by 2 desc
    limit  16
  ),
  walk as (
    select s.id, 0 as steps, s.mass, 0 as words, '{}'::text[] as kinds, s.mass as score, s.way,
           null::bigint as memory_id, null::halfvec as meaning
    from   start s
    union all
    select u.id, w.steps + 1, w.mass * u.share / g.total, g.words, g.kinds,
           w.mass * u.share / g.total * g.worth,
           concat_ws(E'\x1f', w.way, g.label || ':' || u.memory_id, 'e' || u.id), u.memory_id,
           g.meaning
    from (
      select *
      from   walk x
      where  x.steps < 3
      order  by x.score desc, x.memory_id desc
      limit  16
    ) as w
    cross  join lateral (
      select l.label, l.total, l.ids, l.memory_ids, l.shares, p.words, p.kinds, p.meaning,
             4 ^ bit_count(p.words::bit(32)) * 0.6 ^ w.steps
             * case when p.meaning is null then 1
                    else 80 * greatest(pgrecall_internal._similarity(
                           1 - (p.meaning <=> request.embedding), (request.bank).low_cosine,
                           (request.bank).high_cosine), 0) ^ 6 end as worth
      from (
        select r.label, lower(replace(substr(r.label, 2), ' ', '_')) as kind,
               sum(f.weight) as total, array_agg(r.id) as ids, array_agg(r.memory_id) as memory_ids,
               array_agg(r.confidence * f.weight) as shares
        from (
          (select o.to_id as id, '>' || o.kind as label, o.memory_id, o.confidence, o.valid_from,
                  o.valid_to
           from   pgrecall.relation o
           where  o.bank_id = bank and o.from_id between w.id and w.id
           order  by o.from_id desc, o.relation_id desc
           limit  100)
          union all
          (select i.from_id, '<' || i.kind, i.memory_id, i.confidence, i.valid_from, i.valid_to
           from   pgrecall.relation i
           where  i.bank_id = bank and i.to_id between w.id and w.id
           order  by i.to_id desc, i.relation_id desc
           limit  100)
        ) as r
        cross  join lateral (
          -- A relation that did not hold then, or whose fact had ended, counts less.
          select case when least(r.valid_to, m.valid_to) > since is not false
                       and r.valid_from <= until is not false
                      then 1 else 0.3 end::double precision as weight
          from   pgrecall.memory m
          where  m.bank_id = bank and m.memory_id = r.memory_id and m.valid_from <= request.as_of
            and  pgrecall_internal._trust(silent, m.source_id) > 0
          limit  1
        ) as f
        where  r.valid_from is null or r.valid_from <= greatest(request.as_of, until)
        group  by r.label
      ) as l
      left   join lateral (
        select y.embedding
        from   (select pgrecall_internal._words_of_kind(l.kind)) as n(words)
        join   pgrecall.embedding y
          -- Only the index on words provides this order.
          on   y.bank_id = bank and y.fact_type = ''
          and  y.model = coalesce((request.bank).embedding_model, '')
          and  y.kind = 'usage' and y.text between n.words and n.words
        where  request.embedding is not null
        order  by y.text
        limit  1
      ) as k on true
      cross  join lateral (
        select coalesce(
                 bits[array_position(keys, l.kind || left(l.label, 1))],
                 (select bit_or(bits[array_position(keys, a.key)])
                  from   pgrecall_internal._alike_keys(l.kind, left(l.label, 1)) as a(key)
                  where  keys <> '{}'),
                 0) & ~w.words as bit
      ) as f
      cross  join lateral (
        select w.words | (f.bit & -f.bit) as words,
               case when l.kind = any (w.kinds) then w.kinds else w.kinds || l.kind end as kinds,
               case when l.kind = any (w.kinds) then w.meaning
                    else coalesce(w.meaning + k.embedding, k.embedding, w.meaning) end as meaning
        offset 0
      ) as p
      where  f.bit <> 0 or k.embedding is not null
      offset 0  -- What a path is worth is computed once for all relations of a label.
    ) as g
    cross  join lateral unnest(g.ids, g.memory_ids, g.shares) as u(id, memory_id, share)
    where  (g.worth >= 0.002 or g.words <> w.words)
      -- No entity twice.
      and  position('e' || u.id || E'\x1f' in w.way || E'\x1f') = 0
  )
  select array_agg(t.memory_id order by t.score desc, t.memory_id desc),
         array_agg(t.score order by t.score desc, t.memory_id desc),
         array_agg(t.way order by t.score desc, t.memory_id desc)
  into   memory_ids, scores, paths
  from (
    select w.memory_id, sum(w.score) as score, (array_agg(w.way order by w.score desc))[1] as way
    from (
      select distinct on (x.memory_id, split_part(x.way, E'\x1f', 1)) x.memory_id, x.score, x.way
      from   walk x
      where  x.memory_id is not null
      order  by x.memory_id, split_part(x.way, E'\x1f', 1), x.score desc
    ) as w
    group  by w.memory_id
  ) as t;
end;
$$;
comment on function pgrecall_internal._walked is
'The facts that state the relations on the paths that a question asks for, best first. score is '
'the mass of the start, divided at each entity by the number of relations of the same kind and '
'direction, of which those that do not hold in the window of the question, or now, count 0.3, '
'x 0.6 for each relation after the first, x 4 for each word that asks for one, x 80 s ^ 6, where s '
'is the similarity of the kinds on the path to the question, on the scale of the bank. paths: as '
'_activated() writes them. keys and bits: those of _asked_edges().';
