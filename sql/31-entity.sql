create or replace function pgrecall.normalised_name(name text)
returns text
language sql immutable parallel safe
return lower(trim(regexp_replace(pgrecall._normalised(name), '[^[:alnum:]]+', ' ', 'g')));
comment on function pgrecall.normalised_name(text) is
'A name as it is compared: in Unicode form NFKC, lower case, punctuation and runs '
'of spaces as one space.';

create or replace function pgrecall._phrases(query text)
returns table (phrase text, first integer, last integer)
language sql immutable parallel safe
begin atomic
  with word as (
    select w.word, w.position::integer
    from   unnest(string_to_array(pgrecall.normalised_name(query), ' '))
             with ordinality as w(word, position)
    where  w.word <> ''
    -- A pasted page asks about what it names first.
    limit  200
  )
  select string_agg(w.word, ' ' order by w.position), f.position, f.position + n.n - 1
  from   word f
  cross  join generate_series(1, 5) as n(n)
  join   word w on w.position between f.position and f.position + n.n - 1
  group  by f.position, n.n
  having count(*) = n.n;
end;
comment on function pgrecall._phrases(text) is
'Runs of one to five words of a query, normalised as names are, with the positions of their ends.';

create or replace function pgrecall.query_entities(bank text, query text)
returns table (entity_id bigint, name text, kind text, matched text, confidence real)
language plpgsql stable parallel safe rows 5
set search_path from current
as $$
begin
  perform pgrecall._bank(bank);
  return query
  with hit as (
    select a.entity_id, a.confidence, p.phrase, p.first, p.last
    from   pgrecall._phrases(query_entities.query) as p
    join   pgrecall.entity_alias a on a.bank_id = query_entities.bank and a.alias = p.phrase
  )
  select distinct on (e.entity_id) e.entity_id, e.name, e.kind, h.phrase, h.confidence
  from   hit h
  join   pgrecall.entity e on e.bank_id = query_entities.bank and e.entity_id = h.entity_id
  -- The longest name wins: "Ana Silva" is not also every Ana.
  where  not exists (
    select from hit l
    where  l.first <= h.first and l.last >= h.last and l.last - l.first > h.last - h.first
  )
  order  by e.entity_id, length(h.phrase) desc;
end;
$$;
comment on function pgrecall.query_entities(text, text) is
'Entities named in a query: the longest names that stand in it, all entities that go by each. '
'Errors: RC001.';

create or replace function pgrecall._rarity(mentions bigint, documents bigint)
returns double precision
language sql immutable parallel safe
return ln(1 + (greatest(documents, mentions) - mentions + 0.5) / (mentions + 0.5))
       / ln(2 + 2 * greatest(documents, mentions, 1)::double precision);
comment on function pgrecall._rarity(bigint, bigint) is
'Weight of an entity, 0 to 1: its IDF over the highest possible. One that stands in every fact '
'weighs next to nothing.';
