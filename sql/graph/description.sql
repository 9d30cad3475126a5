-- Entities that a query describes: "the owner of what stalled in Bristol" names no machine.
--
-- The relation arm starts from the entities that a query names. Where a fact among the best hits
-- tells of what the query describes, it starts from the other entities of that fact too. The words
-- of the query that stand in the fact are its description, and are read as a name: the words of
-- relations around them are those of the chain. A question that names somebody is only described by
-- facts that mention one of those named.
create or replace function pgrecall_internal._relation_vocabulary()
returns text[]
language sql immutable parallel safe
begin atomic
  select array_agg(distinct w.word)
  from   jsonb_object_keys(pgrecall.default_relation_words()) as k(phrase)
  cross  join lateral string_to_table(k.phrase, ' ') as w(word)
  where  length(w.word) > 3 and w.word <> all ('{where,from,with,under}');
end;
comment on function pgrecall_internal._relation_vocabulary is
'The words of the lexicon of relations, those of phrases too, without particles.';

create or replace function pgrecall_internal._may_describe(
  request pgrecall_internal.request, has_related boolean)
returns boolean
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  own   jsonb := request.options -> 'relation_words';
  words text[];
begin
  if not has_related then
    perform from pgrecall.relation o
    where  o.bank_id = (request.bank).bank_id
    order  by o.from_id, o.relation_id
    limit  1;
    if not found then
      return false;
    end if;
  end if;
  words := array(
    select w.word
    from   pgrecall_internal._words(lower(pgrecall_internal._normalised(request.query))) as w);
  return words && pgrecall_internal._relation_vocabulary()
         or jsonb_typeof(own) = 'object' and own ?| words;
end;
$$;
comment on function pgrecall_internal._may_describe is
'Whether a query has a word of a relation, in a bank that has relations. has_related: it names '
'somebody who has one.';

create or replace function pgrecall_internal._described(
  request pgrecall_internal.request, before pgrecall.arm_hit[])
returns table (entity_id bigint, strength double precision, starts_at integer, ends_at integer,
               is_worded boolean)
language plpgsql stable parallel safe rows 5
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  vocabulary text[] := pgrecall_internal._relation_vocabulary();
  query      text := lower(pgrecall_internal._normalised(request.query));
begin
  return query
  with token as materialized (
    select w.starts_at, w.ends_at, left(w.word, 5) as stem, n.is_named
    from   pgrecall_internal._words(query) as w
    cross  join lateral (
      select exists (select from unnest(request.named) as e
                     where  w.starts_at >= e.starts_at and w.ends_at <= e.ends_at) as is_named
    ) as n
    where  n.is_named
       or  length(w.word) > 2 and w.word <> all (vocabulary)
           and ts_lexize('pg_catalog.english_stem', w.word) <> '{}'
  ),
  seed as materialized (
    select s.memory_id, s.strength
    from   pgrecall_internal._best_seeds(
             array(select h from unnest(before) as h
                   where  h.arm in ('key', 'semantic', 'lexical')), 5) as s
    where  request.named = '{}'
       or  exists (
             select from unnest(request.named) as e
             cross  join lateral (
               select from pgrecall.mention x
               where  x.bank_id = (request.bank).bank_id and x.memory_id = s.memory_id
                 and  x.entity_id = e.entity_id
               limit  1
             ) as y)
  ),
  description as (
    select s.memory_id, s.strength, min(t.starts_at) as starts_at, max(t.ends_at) as ends_at,
           bool_or(not t.is_named) as is_worded
    from   seed s
    cross  join lateral (
      select m.text from pgrecall.memory m
      where  m.bank_id = (request.bank).bank_id and m.memory_id = s.memory_id
      limit  1
    ) as m
    cross  join lateral (
      select array(select left(w.word, 5)
                   from   pgrecall_internal._words(
                            lower(pgrecall_internal._normalised(left(m.text, 1000)))) as w) as stems
    ) as f
    join   token t on t.is_named or t.stem = any (f.stems)
    group  by s.memory_id, s.strength
  )
  select e.entity_id, max(d.strength), min(d.starts_at), max(d.ends_at), bool_or(d.is_worded)
  from   description d
  cross  join lateral (
    select x.entity_id from pgrecall.mention x
    where  x.bank_id = (request.bank).bank_id and x.memory_id = d.memory_id
    limit  10
  ) as e
  where  not exists (select from unnest(request.named) as n where n.entity_id = e.entity_id)
  group  by e.entity_id
  order  by 5 desc, 2 desc, 1
  limit  10;
end;
$$;
comment on function pgrecall_internal._described is
'Entities of the five best hits that the query does not name, with the strength of the hit, 0 to '
'1, and where in the normalised query the words stand that describe them: those of the text of the '
'hit, words of relations aside. is_worded: there are others than names.';

create or replace function pgrecall_internal._described_chains(
  request pgrecall_internal.request, before pgrecall.arm_hit[], has_named boolean,
  out memory_ids bigint[], out scores double precision[], out vias jsonb[])
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  described record;
  placed    pgrecall_internal.request := request;
  words     pgrecall_internal.chain_word[];
  chain     record;
  -- "Whose machine got stuck in Bristol" asks for an owner without a word for it.
  is_whose  constant boolean := request.query ~* '\m(whose|wessen|wiens)\M';
begin
  memory_ids := '{}';
  scores := '{}';
  vias := '{}';
  for described in select * from pgrecall_internal._described(request, before) loop
    continue when not described.is_worded and (has_named or not is_whose);
    placed.named := array[(described.entity_id, '', 1, described.starts_at,
                           described.ends_at)::pgrecall_internal.named_entity];
    words := array(select w from pgrecall_internal._chain_words(placed, true) as w);
    chain := pgrecall_internal._chain(request, described.entity_id, words);
    if chain.memory_ids is not null then
      memory_ids := memory_ids || chain.memory_ids;
      scores := scores || array(select s * described.strength
                                from   unnest(chain.scores) with ordinality as u(s, n) order by n);
      vias := vias || chain.vias;
    end if;
  end loop;
end;
$$;
comment on function pgrecall_internal._described_chains is
'What chains of relations from the entities described lead to, with the scores of the relation arm '
'times the strength of the hit. has_named: chains from those named led somewhere.';
