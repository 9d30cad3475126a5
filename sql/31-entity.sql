create or replace function pgrecall.normalised_name(name text)
returns text
language sql immutable parallel safe
return lower(trim(regexp_replace(pgrecall._normalised(name), '[^[:alnum:]]+', ' ', 'g')));
comment on function pgrecall.normalised_name(text) is
'A name as it is compared: in Unicode form NFKC, lower case, punctuation and runs '
'of spaces as one space.';

create or replace function pgrecall._words(query text)
returns table (word text, starts_at integer, ends_at integer, is_joined boolean, is_letter boolean)
language sql immutable parallel safe
begin atomic
  select p.word,
         (sum(p.gap + length(p.word)) over running - length(p.word))::integer + 1,
         (sum(p.gap + length(p.word)) over running)::integer,
         p.gap = 0 and row_number() over running > 1,
         p.word ~ ('^[' || pgrecall._cjk() || ']$')
  from (
    select r.n, m.n as part, m.match[1] as word,
           case m.n when 1 then length(r.match[1]) else 0 end as gap
    from   regexp_matches(left(query, 4000), '([^[:alnum:]]*)([[:alnum:]]+)', 'g')
             with ordinality as r(match, n),
           regexp_matches(r.match[2], '[\u30a1-\u30fa\u30fc-\u30ff\uff66-\uff9f]+|['
                                      || pgrecall._cjk() || ']|[^' || pgrecall._cjk() || ']+', 'g')
             with ordinality as m(match, n)
    -- A pasted page asks about what it names first.
    order  by r.n, m.n
    limit  200
  ) as p
  window running as (order by p.n, p.part)
  order  by p.n, p.part;
end;
comment on function pgrecall._words(text) is
'The first 200 words of a query in order, with the positions of their first and last characters. '
'Of Chinese, Japanese and Korean each letter is a word (is_letter), and each run of katakana. '
'is_joined: nothing stands between it and the word before.';

create or replace function pgrecall._phrases(query text)
returns table (phrase text, first integer, last integer, starts_at integer, ends_at integer)
language sql immutable parallel safe
begin atomic
  with question as materialized (
    select array_agg(case when w.is_joined then '' else ' ' end || lower(w.word)) as words,
           array_agg(w.starts_at) as starts, array_agg(w.ends_at) as ends,
           array_agg(w.is_letter) as letters, array_agg(w.is_joined) || false as joined,
           array_agg(w.number) as numbers, count(*)::integer as length
    from (
      select x.*, count(*) filter (where not x.is_joined) over (order by x.ends_at) as number
      from   pgrecall._words(query) as x
      order  by x.ends_at
    ) as w
  )
  select ltrim(array_to_string(q.words[f.n:l.n], '')), f.n, l.n, q.starts[f.n], q.ends[l.n]
  from   question q
  cross  join generate_series(1, q.length) as f(n)
  cross  join generate_series(f.n, least(f.n + 11, q.length)) as l(n)
  where  q.numbers[l.n] - q.numbers[f.n] < 8
    -- One letter within others is a part of a word: 王 is not in 王国.
    and  not (f.n = l.n and q.letters[f.n] and (q.joined[f.n] or q.joined[f.n + 1]));
end;
comment on function pgrecall._phrases(text) is
'Runs of one to eight words of a query, of up to twelve letters where no spaces part words, '
'normalised as names are; first and last count words, starts_at and ends_at characters.';

create or replace function pgrecall._companions(bank text, entity_id bigint)
returns table (companion_id bigint, facts bigint)
language plpgsql stable parallel safe rows 50
set search_path from current
as $$
begin
  return query
  select x.entity_id, count(*)
  from   pgrecall.fact_type t
  cross  join lateral (
    select m.memory_id
    from   pgrecall.mention m
    where  m.bank_id = _companions.bank and m.entity_id = _companions.entity_id
      -- "between" rather than "=", so that only the primary key has this order.
      and  m.fact_type between t.fact_type and t.fact_type
    order  by m.fact_type desc, m.memory_id desc
    limit  100
  ) as latest
  cross  join lateral (
    select o.entity_id
    from   pgrecall.mention o
    where  o.bank_id = _companions.bank and o.memory_id = latest.memory_id
      and  o.entity_id <> _companions.entity_id
    limit  100
  ) as x
  where  t.bank_id = _companions.bank
  group  by x.entity_id;
end;
$$;
comment on function pgrecall._companions(text, bigint) is
'Entities named together with an entity, and in how many facts: of the latest 100 of each type.';

create or replace function pgrecall._kind(kind text)
returns text
language sql immutable parallel safe
return nullif(coalesce('{
  "people": "person", "human": "person", "individual": "person", "user": "person",
  "speaker": "person", "per": "person",
  "organization": "organisation", "company": "organisation", "business": "organisation",
  "firm": "organisation", "org": "organisation", "corporation": "organisation",
  "institution": "organisation", "employer": "organisation",
  "location": "place", "city": "place", "town": "place", "village": "place", "country": "place",
  "region": "place", "gpe": "place", "loc": "place",
  "tool": "product", "app": "product", "application": "product", "software": "product",
  "service": "product", "system": "product", "platform": "product",
  "other": "", "misc": "", "unknown": "", "entity": "", "thing": "", "object": "",
  "concept": "", "topic": ""
}'::jsonb ->> lower(trim(kind)), lower(trim(kind))), '');
comment on function pgrecall._kind(text) is
'A kind of entity as it is compared: a company is an organisation. Null: it says nothing.';

create or replace function pgrecall._differ(kind text, other text)
returns boolean
language sql immutable parallel safe
return coalesce(_differ.kind <> _differ.other, false);
comment on function pgrecall._differ(text, text) is
'Whether two kinds, as _kind() returns them, are known not to be the same.';

create or replace function pgrecall._fact_names(facts jsonb)
returns table (index integer, fact_type text, alias text, name text, kind text)
language sql immutable parallel safe
begin atomic
  with named as (
    select f.n as index, coalesce(f.fact ->> 'fact_type', 'world') as fact_type,
           case jsonb_typeof(e.item) when 'string' then e.item #>> '{}' else e.item ->> 'name' end
             as name,
           e.item ->> 'kind' as kind
    from   jsonb_array_elements(facts) with ordinality as f(fact, n)
    cross  join lateral (
      select e.value
      from   jsonb_array_elements(coalesce(nullif(f.fact -> 'entities', 'null'), '[]')) as e
      union all
      select r.value -> s.side
      from   jsonb_array_elements(coalesce(nullif(f.fact -> 'relations', 'null'), '[]')) as r,
             unnest(array['from', 'to']) as s(side)
    ) as e(item)
  ),
  ranked as (
    select n.index, n.fact_type, a.alias, n.name, n.kind,
           row_number() over (partition by n.index, a.alias, k.kind order by n.name) as copy,
           k.kind is null and count(k.kind) over (partition by n.index, a.alias) > 0 as is_told
    from   named n
    cross  join lateral (select pgrecall.normalised_name(n.name)) as a(alias)
    cross  join lateral (select pgrecall._kind(n.kind)) as k(kind)
  )
  select r.index::integer, r.fact_type, r.alias, r.name, r.kind
  from   ranked r
  where  r.copy = 1 and not r.is_told;
end;
comment on function pgrecall._fact_names(jsonb) is
'Whom checked facts name, each once per fact, those of relations too: index counts facts from 1, '
'alias is the name normalised. One name of two kinds in a fact is two.';

create or replace function pgrecall._resolve(
  bank text, memory_ids bigint[], aliases text[], kinds text[])
returns table (n integer, entity_id bigint, confidence real)
language plpgsql stable parallel safe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  with asked as materialized (
    select u.n, u.memory_id, u.alias, pgrecall._kind(u.kind) as kind
    from   unnest(memory_ids, aliases, kinds) with ordinality as u(memory_id, alias, kind, n)
  ),
  candidate as materialized (
    select d.alias, c.entity_id, c.confidence, c.is_own, c.kind, l.mentioned_at,
           array(select x.companion_id
                 from   pgrecall._companions(_resolve.bank, c.entity_id) as x) as companions
    from   (select distinct a.alias from asked a) as d
    cross  join lateral (
      select b.entity_id, b.confidence, pgrecall._kind(e.kind) as kind,
             pgrecall.normalised_name(e.name) = b.alias as is_own
      from   pgrecall.entity_alias b
      cross  join lateral (
        select x.name, x.kind
        from   pgrecall.entity x
        where  x.bank_id = _resolve.bank and x.entity_id = b.entity_id
        limit  1
      ) as e
      where  b.bank_id = _resolve.bank and b.alias = d.alias
      order  by b.confidence desc, b.entity_id
      limit  10
    ) as c
    left   join lateral (
      select m.mentioned_at
      from (
        select max(y.memory_id) as memory_id
        from   pgrecall.fact_type t
        cross  join lateral (
          select x.memory_id
          from   pgrecall.mention x
          where  x.bank_id = _resolve.bank and x.entity_id = c.entity_id
            and  x.fact_type between t.fact_type and t.fact_type
          order  by x.fact_type desc, x.memory_id desc
          limit  1
        ) as y
        where  t.bank_id = _resolve.bank
      ) as latest
      cross  join lateral (
        select z.mentioned_at
        from   pgrecall.memory z
        where  z.bank_id = _resolve.bank and z.memory_id = latest.memory_id
        limit  1
      ) as m
    ) as l on true
  ),
  evidence as (
    select a.n, c.entity_id, c.confidence as belief, c.is_own, c.kind, a.kind as asked_kind,
           (select count(*) from unnest(o.others) as x where x = any (c.companions)) as shared,
           coalesce(power(0.5, least(abs(extract(epoch from m.mentioned_at)
                                         - extract(epoch from c.mentioned_at)) / 86400, 3000)
                               / 30.0)::double precision, 0) as recency,
           c.entity_id = any (o.others) and not pgrecall._differ(c.kind, a.kind) as is_named
    from   asked a
    join   candidate c on c.alias = a.alias
    cross  join lateral (
      select array(
        select x.entity_id from pgrecall.mention x
        where  x.bank_id = _resolve.bank and x.memory_id = a.memory_id
        limit  100
      ) as others
    ) as o
    cross  join lateral (
      select y.mentioned_at
      from   pgrecall.memory y
      where  y.bank_id = _resolve.bank and y.memory_id = a.memory_id
      limit  1
    ) as m
  ),
  weighed as (
    select e.n, e.entity_id, e.is_named, e.belief as alias_belief,
           e.belief * (1 + 4 * e.shared + e.recency) * case when e.is_own then 2 else 1 end
           * case
               when e.kind = e.asked_kind then 1
               when not pgrecall._differ(e.kind, e.asked_kind) then 0.5
               else 0.25
             end as weight
    from   evidence e
    where  e.is_named or e.shared >= 2 or not pgrecall._differ(e.kind, e.asked_kind)
  ),
  ranked as (
    select w.n, w.entity_id,
           (w.weight / nullif(sum(w.weight) over (partition by w.n), 0))::real as share,
           bool_or(w.is_named) over (partition by w.n) as is_known,
           row_number() over (
             partition by w.n order by w.weight desc, w.alias_belief desc, w.entity_id) as place
    from   weighed w
  )
  select a.n::integer, r.entity_id, coalesce(r.share, 0)
  from   asked a
  left   join ranked r on r.n = a.n and r.place = 1
  where  r.is_known is not true
  order  by a.n;
end;
$$;
comment on function pgrecall._resolve(text, bigint[], text[], text[]) is
'Whom names mean that several entities go by, or one of another kind; n counts the names from 1. '
'Of the ten best believed in, the one of most weight: belief in the alias x (1 + 4 s + r) x k, '
'doubled for an entity whose own name it is. s is the number of other entities of the fact that '
'latest facts name it together with; r = 0.5 ^ (days / 30) from its latest mention to the fact; k '
'is 1 for the same kind, 0.5 where one is unknown, 0.25 for another kind, which is out of the '
'question unless s >= 2. Ties: the better believed in, the older. confidence is its share of the '
'weights; entity_id is null where nobody is left. A name is left out where the fact names one of '
'them otherwise: in full, or as retained '
'before.';

create or replace function pgrecall._retain_mentions(bank text, facts jsonb, memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  indexes  integer[];
  aliases  text[];
  names    text[];
  kinds    text[];
  has_kind boolean;
begin
  with named as materialized (
    select n.*, pgrecall._kind(n.kind) as kind_class
    from   pgrecall._fact_names(facts) as n
  ),
  candidate as materialized (
    select d.alias, c.entity_ids, c.kinds, c.confidence
    from   (select distinct n.alias from named n) as d
    cross  join lateral (
      select array_agg(x.entity_id) as entity_ids, array_agg(pgrecall._kind(x.kind)) as kinds,
             min(x.confidence) as confidence
      from (
        select b.entity_id, b.confidence, e.kind
        from   pgrecall.entity_alias b
        cross  join lateral (
          select z.kind
          from   pgrecall.entity z
          where  z.bank_id = _retain_mentions.bank and z.entity_id = b.entity_id
          limit  1
        ) as e
        where  b.bank_id = _retain_mentions.bank and b.alias = d.alias
        limit  2
      ) as x
    ) as c
  ),
  judged as materialized (
    select n.*, c.entity_ids[1] as entity_id, c.confidence, c.kinds[1] is null as has_no_kind,
           cardinality(c.entity_ids) > 1 or pgrecall._differ(n.kind_class, c.kinds[1])
           or (n.kind_class is null
               and bool_or(pgrecall._differ(n.kind_class, c.kinds[1])) over (partition by n.alias))
             as is_doubtful
    from   named n
    join   candidate c on c.alias = n.alias
  ),
  told as (
    update pgrecall.entity e
    set    kind = t.kind
    from (
      select distinct on (j.entity_id) j.entity_id, j.kind
      from   judged j
      where  j.has_no_kind and j.kind_class is not null and not j.is_doubtful
      order  by j.entity_id, j.index
    ) as t
    where  e.bank_id = _retain_mentions.bank and e.entity_id = t.entity_id
  ),
  certain as (
    insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id, confidence)
    select _retain_mentions.bank, j.entity_id, j.fact_type, memory_ids[j.index], max(j.confidence)
    from   judged j
    where  not j.is_doubtful
    group  by 2, 3, 4
    on conflict on constraint mention_pkey do nothing
  )
  select array_agg(j.index order by j.index, j.alias, j.kind),
         array_agg(j.alias order by j.index, j.alias, j.kind),
         array_agg(j.name order by j.index, j.alias, j.kind),
         array_agg(j.kind order by j.index, j.alias, j.kind)
  into   indexes, aliases, names, kinds
  from   judged j
  where  j.is_doubtful;
  if indexes is null then
    return;
  end if;

  -- Those of a known kind first: some become entities, whom those of no kind may mean.
  foreach has_kind in array array[true, false] loop
    with doubtful as materialized (
      select d.*, memory_ids[d.index] as memory_id,
             row_number() over (order by d.index, d.alias, d.kind)::integer as n
      from   unnest(indexes, aliases, names, kinds) as d(index, alias, name, kind)
      where  (pgrecall._kind(d.kind) is not null) = has_kind
    ),
    resolved as materialized (
      select d.*, r.entity_id, r.confidence
      from   pgrecall._resolve(
               _retain_mentions.bank,
               (select array_agg(x.memory_id order by x.n) from doubtful x),
               (select array_agg(x.alias order by x.n) from doubtful x),
               (select array_agg(x.kind order by x.n) from doubtful x)) as r
      join   doubtful d on d.n = r.n
    ),
    new_entity as (
      insert into pgrecall.entity as e (bank_id, name, kind)
      select _retain_mentions.bank, u.name, u.kind
      from (
        select distinct on (r.alias, pgrecall._kind(r.kind)) r.name, r.kind, r.n
        from   resolved r
        where  r.entity_id is null
        order  by r.alias, pgrecall._kind(r.kind), r.n
      ) as u
      order  by u.n
      returning e.entity_id, pgrecall.normalised_name(e.name) as alias,
                pgrecall._kind(e.kind) as kind
    ),
    new_alias as (
      insert into pgrecall.entity_alias (bank_id, alias, entity_id)
      select _retain_mentions.bank, n.alias, n.entity_id
      from   new_entity n
      union
      select _retain_mentions.bank, pgrecall.normalised_name(a.alias), n.entity_id
      from   new_entity n
      join   resolved r on r.alias = n.alias and pgrecall._kind(r.kind) = n.kind
      cross  join lateral jsonb_path_query(
        facts -> (r.index - 1), 'lax $.entities[*] ? (exists (@.aliases))') as i(item)
      cross  join lateral jsonb_array_elements_text(
        coalesce(nullif(i.item -> 'aliases', 'null'), '[]')) as a(alias)
      where  pgrecall.normalised_name(i.item ->> 'name') = n.alias
        and  pgrecall._kind(i.item ->> 'kind') = n.kind
    )
    insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id, confidence)
    select _retain_mentions.bank, u.entity_id, u.fact_type, u.memory_id, max(u.confidence)
    from (
      select coalesce(r.entity_id, n.entity_id) as entity_id,
             coalesce(facts -> (r.index - 1) ->> 'fact_type', 'world') as fact_type, r.memory_id,
             case when r.entity_id is null then 1 else r.confidence end as confidence
      from   resolved r
      left   join new_entity n on r.entity_id is null and n.alias = r.alias
                              and n.kind = pgrecall._kind(r.kind)
    ) as u
    group  by u.entity_id, u.fact_type, u.memory_id
    on conflict on constraint mention_pkey do nothing;
  end loop;
end;
$$;
comment on function pgrecall._retain_mentions(text, jsonb, bigint[]) is
'Writes whom checked facts name; every name is an alias by now. A name of one entity means that '
'one, and fills in its kind; other names are weighed by _resolve(), and become an entity of their '
'own where only one of another kind goes by them.';

create or replace function pgrecall._retain_relations(bank text, facts jsonb, memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  insert into pgrecall.relation
         (bank_id, from_id, kind, to_id, memory_id, confidence, valid_from, valid_to)
  select _retain_relations.bank, s.entity_id, r.value ->> 'kind', e.entity_id, s.memory_id,
         coalesce((r.value ->> 'confidence')::real, 1) * s.confidence * e.confidence,
         (r.value ->> 'valid_from')::timestamptz, (r.value ->> 'valid_to')::timestamptz
  from   jsonb_array_elements(facts) with ordinality as f(fact, n)
  cross  join lateral
         jsonb_array_elements(coalesce(nullif(f.fact -> 'relations', 'null'), '[]')) as r
  -- Its ends are those whom the fact was found to mean.
  cross  join lateral (
    select x.*
    from   pgrecall.entity_alias a
    cross  join lateral (
      select m.entity_id, m.memory_id, m.confidence
      from   pgrecall.mention m
      where  m.bank_id = _retain_relations.bank and m.memory_id = memory_ids[f.n]
        and  m.entity_id = a.entity_id
      limit  1
    ) as x
    where  a.bank_id = _retain_relations.bank
      and  a.alias = pgrecall.normalised_name(r.value ->> 'from')
    order  by x.confidence desc, a.confidence desc, x.entity_id
    limit  1
  ) as s
  cross  join lateral (
    select x.*
    from   pgrecall.entity_alias a
    cross  join lateral (
      select m.entity_id, m.confidence
      from   pgrecall.mention m
      where  m.bank_id = _retain_relations.bank and m.memory_id = memory_ids[f.n]
        and  m.entity_id = a.entity_id
      limit  1
    ) as x
    where  a.bank_id = _retain_relations.bank
      and  a.alias = pgrecall.normalised_name(r.value ->> 'to')
    order  by x.confidence desc, a.confidence desc, x.entity_id
    limit  1
  ) as e
  where  s.entity_id <> e.entity_id
  on conflict do nothing;
end;
$$;
comment on function pgrecall._retain_relations(text, jsonb, bigint[]) is
'Writes the relations of checked facts, between the entities whom these mention.';

create or replace function pgrecall._mentions(bank text, entity_id bigint)
returns bigint
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return (
    select count(*) from (
      select from pgrecall.mention m
      where  m.bank_id = _mentions.bank and m.entity_id = _mentions.entity_id
      limit  1000
    ) as bounded
  );
end;
$$;
comment on function pgrecall._mentions(text, bigint) is
'In how many facts an entity is named; counting stops at 1,000.';

create or replace function pgrecall._query_names(bank text, query text)
returns table (entity_id bigint, phrase text, starts_at integer, ends_at integer, confidence real)
language plpgsql stable parallel safe rows 5
set search_path from current
as $$
begin
  return query
  with found as materialized (
    select p.*, a.entity_id, a.confidence
    from   pgrecall._phrases(query) as p
    cross  join lateral (
      select b.entity_id, b.confidence
      from   pgrecall.entity_alias b
      where  b.bank_id = _query_names.bank and b.alias = p.phrase
      order  by b.confidence desc, b.entity_id
      limit  10
    ) as a
  ),
  -- The longest name wins: "Ana Silva" is not also every Ana.
  hit as materialized (
    select f.*, count(*) over (partition by f.first, f.last) as candidates
    from   found f
    where  not exists (
      select from found l
      where  l.first <= f.first and l.last >= f.last and l.last - l.first > f.last - f.first
    )
  ),
  weighed as (
    select h.*, h.confidence * (1 + 4 * coalesce(s.shared, 0)) as weight
    from   hit h
    left   join lateral (
      select count(distinct o.phrase) as shared
      from   pgrecall._companions(_query_names.bank, h.entity_id) as c
      join   hit o on o.entity_id = c.companion_id and o.phrase <> h.phrase
      where  h.candidates > 1
    ) as s on h.candidates > 1
  )
  select w.entity_id, w.phrase, w.starts_at, w.ends_at,
         case w.candidates
           when 1 then w.confidence
           else (w.weight / nullif(sum(w.weight) over (partition by w.first, w.last), 0))::real
         end
  from   weighed w;
end;
$$;
comment on function pgrecall._query_names(text, text) is
'Worker of query_entities(): each name of a query, at each place where it stands, with at most '
'ten entities that go by it.';

create or replace function pgrecall.query_entities(bank text, query text)
returns table (entity_id bigint, name text, kind text, matched text, confidence real)
language plpgsql stable parallel safe rows 5
set search_path from current
as $$
begin
  perform pgrecall._bank(bank);
  return query
  select e.entity_id, e.name, e.kind, n.phrase, coalesce(n.confidence, 0)
  from (
    select distinct on (q.entity_id) q.entity_id, q.phrase, q.confidence
    from   pgrecall._query_names(
             query_entities.bank, pgrecall._normalised(query_entities.query)) as q
    order  by q.entity_id, length(q.phrase) desc, q.confidence desc
  ) as n
  cross  join lateral (
    select x.entity_id, x.name, x.kind
    from   pgrecall.entity x
    where  x.bank_id = query_entities.bank and x.entity_id = n.entity_id
    limit  1
  ) as e
  order  by e.entity_id;
end;
$$;
comment on function pgrecall.query_entities(text, text) is
'Entities named in a query: the longest names that stand in it, of at most eight words or twelve '
'Chinese, Japanese or Korean letters, and all entities that go by each. confidence, 0 to 1, is the '
'belief in the alias; where several entities go by a name each has its share of '
'belief x (1 + 4 n), n being the number of other names in the query that latest facts name it '
'together with. Errors: RC001.';

create or replace function pgrecall._named_entities(bank text, query text)
returns pgrecall.named_entity[]
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return array(
    select (q.entity_id, q.matched, q.confidence)::pgrecall.named_entity
    from   pgrecall.query_entities(bank, query) as q
  );
end;
$$;
comment on function pgrecall._named_entities(text, text) is
'query_entities() as one value.';

create or replace function pgrecall.without_names(bank text, query text)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  searched pgrecall.bank := pgrecall._bank(bank);
  starts   integer[];
  ends     integer[];
  kept     text;
begin
  perform pgrecall._check_text('query', query);
  query := pgrecall._normalised(query);
  select array_agg(s.starts_at - s.has_sign), array_agg(s.ends_at + s.possessive)
  into   starts, ends
  from (
    select n.starts_at, n.ends_at,
           (substr(query, n.starts_at - 1, 1) in ('@', '#'))::integer as has_sign,
           coalesce(length((
             regexp_match(substr(query, n.ends_at, 4),
                          '^.([''’][sS])(?![[:alnum:]])'))[1]), 0)
           + (substr(query, n.ends_at, 3) ~ '^[sxzSXZ][''’](?![[:alnum:]])')::integer
             as possessive
    from   pgrecall._query_names(without_names.bank, without_names.query) as n
    cross  join lateral (
      select from pgrecall.entity e
      where  e.bank_id = without_names.bank and e.entity_id = n.entity_id
        -- What is written small, "pricing model", says what the question is about.
        and  (e.name <> lower(e.name) or e.name = upper(e.name) or e.kind = 'person')
      limit  1
    ) as proper
    -- A part of an identifier is no whole word.
    where  substr(left(query, n.starts_at - 1), greatest(n.starts_at - 2, 1))
             !~ '[[:alnum:]][-_.@:+#]'
      and  substr(query, n.ends_at + 1, 2) !~ '^[-_.@:+#][[:alnum:]]'
  ) as s;
  if starts is null then
    return without_names.query;
  end if;

  kept := (
    select coalesce(string_agg(c.letter, '' order by c.n), '')
    from   string_to_table(left(query, 4100), null) with ordinality as c(letter, n)
    where  not exists (
      select from unnest(starts, ends) as s(starts_at, ends_at)
      where  c.n between s.starts_at and s.ends_at)
  ) || substr(query, 4101);
  kept := regexp_replace(kept, '\(\s*\)|\[\s*\]|"\s*"|“\s*”|«\s*»', ' ', 'g');
  kept := regexp_replace(kept, '\s+', ' ', 'g');
  kept := regexp_replace(kept, ' ([?!.,;:]+)(?=\s|$)', '\1', 'g');
  kept := regexp_replace(kept, '^[\s?!.,;:]+|\s+$', '', 'g');
  -- "Who is?" asks for nothing any more.
  if to_tsvector(searched.text_search_config::regconfig, kept) = '' then
    return without_names.query;
  end if;
  return kept;
end;
$$;
comment on function pgrecall.without_names(text, text) is
'A query without the names that query_entities() finds in it, each with its possessive ''s, for '
'an embedding: names say who, not what. Names that are all lower case, unless a person''s, and '
'parts of identifiers stay; so does the whole query where nothing but names and stop words would '
'be left, or where there are none. Errors: RC001, 22023.';

create or replace function pgrecall._rarity(mentions bigint, documents bigint)
returns double precision
language sql immutable parallel safe
return ln(1 + (greatest(documents, mentions) - mentions + 0.5) / (mentions + 0.5))
       / ln(2 + 2 * greatest(documents, mentions, 1)::double precision);
comment on function pgrecall._rarity(bigint, bigint) is
'Weight of an entity, 0 to 1: its IDF over the highest possible. One that stands in every fact '
'weighs next to nothing.';
