-- Names in a query, resolved to entities.
--
-- query_entities() cuts a query into runs of words (_words(), _phrases()), looks each up among the
-- aliases and keeps the longest matches. A word that is no name may be the first or last of one,
-- and two words may be one that is misspelt (_name_parts()). Where several entities have the same
-- name, their co-mentions decide: the other entities of their latest facts.
-- Every lookup is bounded (200 words, 50 parts, 10 entities a name, 100 facts a type), so that
-- neither a long query nor an entity mentioned everywhere makes a recall slow.
create or replace function pgrecall_internal._co_mentions(bank text, entity_id bigint)
returns table (other_id bigint)
language plpgsql stable parallel safe rows 50
set search_path from current
as $$
begin
  return query
  select distinct x.entity_id
  from   pgrecall.fact_type t
  cross  join lateral (
    select m.memory_id
    from   pgrecall.mention m
    where  m.bank_id = _co_mentions.bank and m.entity_id = _co_mentions.entity_id
      -- "between" rather than "=", so that only the primary key provides this order.
      and  m.fact_type between t.fact_type and t.fact_type
    order  by m.fact_type desc, m.memory_id desc
    limit  100
  ) as latest
  cross  join lateral (
    select o.entity_id
    from   pgrecall.mention o
    where  o.bank_id = _co_mentions.bank and o.memory_id = latest.memory_id
      and  o.entity_id <> _co_mentions.entity_id
    limit  100
  ) as x
  where  t.bank_id = _co_mentions.bank;
end;
$$;
comment on function pgrecall_internal._co_mentions is
'Entities that the latest 100 facts of each type about an entity mention too.';

create or replace function pgrecall_internal._full_names(bank text, part text)
returns table (entity_id bigint, confidence real, is_exact boolean)
language sql stable parallel safe rows 2
begin atomic
  -- Called in a from clause, so that it is inlined. Most parts have no accents to take off.
  (select a.entity_id, a.confidence, split_part(a.alias, ' ', 1) = _full_names.part
   from   pgrecall.entity_alias a
   where  a.bank_id = _full_names.bank and strpos(a.alias, ' ') > 0
     and  split_part(pgrecall_internal._unaccented(a.alias), ' ', 1)
            = case when octet_length(part) = length(part) then part
                   else pgrecall_internal._unaccented(part) end
   limit  30)
  union  all
  (select a.entity_id, a.confidence, split_part(a.alias, ' ', -1) = _full_names.part
   from   pgrecall.entity_alias a
   where  a.bank_id = _full_names.bank and strpos(a.alias, ' ') > 0
     and  split_part(pgrecall_internal._unaccented(a.alias), ' ', -1)
            = case when octet_length(part) = length(part) then part
                   else pgrecall_internal._unaccented(part) end
   limit  30);
end;
comment on function pgrecall_internal._full_names is
'Entities with a name of several words that begins or ends with a normalised word, at most 30 '
'each; one may come twice. is_exact: with the same accents.';

create or replace function pgrecall_internal._mentions(bank text, entity_id bigint)
returns table (count bigint)
language sql stable parallel safe rows 1
begin atomic
  -- Called in a from clause, so that it is inlined.
  select count(*)
  from (
    select from pgrecall.mention m
    where  m.bank_id = _mentions.bank and m.entity_id = _mentions.entity_id
    limit  1000
  ) as bounded;
end;
comment on function pgrecall_internal._mentions is
'Number of facts that mention an entity; counting stops at 1,000.';

create or replace function pgrecall_internal._entities_named(bank text, names text[])
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
as $$
begin
  names := array(select pgrecall.normalised_name(n) from unnest(names) as n);
  return array(
    select a.entity_id
    from   pgrecall.entity_alias a
    where  a.bank_id = _entities_named.bank and a.alias = any (names)
    union
    select a.entity_id
    from   pgrecall.entity_alias a
    where  a.bank_id = _entities_named.bank
      and  pgrecall_internal._unaccented(a.alias) = any (names)
      and  pgrecall_internal._unaccented(a.alias) <> a.alias);
end;
$$;
comment on function pgrecall_internal._entities_named is
'The entities of a bank with one of these names, "Jose" also those called José, for conditions.';

create or replace function pgrecall_internal._name_parts(bank text, query text)
returns setof pgrecall_internal.named_entity
language sql stable parallel safe rows 1
begin atomic
  -- Called in a from clause, so that it is inlined.
  with run as materialized (
    select w.words, b.text_search_config::regconfig as config
    from   pgrecall.bank b
    cross  join regexp_matches(
             left(query, 4000),
             '\m[[:upper:]][[:alnum:]]*(?:[-_.@:+#''’ ][[:upper:]][[:alnum:]]*)*', 'g') as r(run)
    cross  join string_to_array(r.run[1], ' ') as x(words)
    cross  join lateral (
      select case when to_tsvector(b.text_search_config::regconfig, x.words[1]) = ''
               then x.words[2:] else x.words end as words
    ) as w
    where  b.bank_id = _name_parts.bank and query <> upper(query)
    limit  50
  ),
  asked as materialized (
    -- Of "Ana Silva" no word stands alone: she need not be the one Silva who is known. "Did Ana" is
    -- Ana, and "Silvas Haus", in German, Silva.
    select distinct p.part, lower(p.part) as matched, null as lexeme, null as other
    from   run r
    cross  join lateral (
      select case when r.words[2] is null then r.words[1] else left(r.words[1], -1) end as part
    ) as p
    where  r.words[1] ~ '^[[:alpha:]]{2,}$' and r.words[3] is null
      and  (r.words[2] is null or r.words[1] like '%__s')
    union  all
    -- But "Anna Silva" is she where no Anna is known.
    select distinct u.part, lower(e.ends[1] || ' ' || e.ends[2]) as matched,
           x.lexemes[1] as lexeme, u.other
    from   run r
    cross  join lateral (select r.words[cardinality(r.words) - 1:]) as e(ends)
    cross  join lateral (values (e.ends[1], e.ends[2]), (e.ends[2], e.ends[1])) as u(part, other)
    cross  join lateral (
      select tsvector_to_array(to_tsvector(r.config, u.other)) as lexemes
    ) as x
    where  u.part ~ '^[[:alpha:]]{2,}$' and u.other ~ '^[[:alpha:]]{3,}$'
      and  cardinality(x.lexemes) = 1
    union  all
    -- Where capitals tell nothing, any word that only the names have. Columns are named, or else a
    -- dump writes them otherwise.
    select distinct w.word[1] as part, lower(w.word[1]) as matched, x.lexemes[1] as lexeme,
           null as other
    from   pgrecall.bank b
    cross  join regexp_matches(left(query, 4000), '\m[[:alpha:]]{2,}\M', 'g') as w(word)
    cross  join lateral (
      select tsvector_to_array(to_tsvector(b.text_search_config::regconfig, w.word[1])) as lexemes
    ) as x
    where  b.bank_id = _name_parts.bank and query in (lower(query), upper(query))
      and  cardinality(x.lexemes) = 1
    limit  50
  )
  select k.entity_id, p.matched, k.confidence, null::integer, null::integer, null::bigint
  from   asked p
  cross  join lateral (
    select x.entity_id, max(x.confidence)::real as confidence, x.is_exact,
           bool_or(x.is_exact) over () as has_exact,
           count(*) over (partition by x.is_exact) as sharers,
           sum(max(m.count)) over (partition by x.is_exact) as mentions
    from   pgrecall_internal._full_names(_name_parts.bank, lower(p.part)) as x
    cross  join lateral (
      -- Where the accents are others, "Jose" is written as in José, but "José" not as in Jose.
      select case when x.is_exact then e.name
               else pgrecall_internal._unaccented(e.name) end as name
      from   pgrecall.entity e
      where  e.bank_id = _name_parts.bank and e.entity_id = x.entity_id
      limit  1
    ) as e
    cross  join lateral (
      select case when p.lexeme is not null and p.other is null then (
               select c.count from pgrecall_internal._mentions(_name_parts.bank, x.entity_id) as c)
             end as count
    ) as m
    where  case
             when p.other is not null then strpos(e.name, p.part) > 0 and exists (
               select
               from   unnest(pgrecall_internal._name_ends(lower(e.name))) as w(word)
               where  abs(length(w.word) - length(p.other)) <= 2
                 and  pgrecall_internal._nearest_name(lower(p.other), array[w.word], 0.6)
                        is not null)
             -- As written in the name, which "Walk" in "a long walk" is not.
             when p.lexeme is null then strpos(e.name, p.part) > 0
             else pgrecall_internal._has_full_name(e.name)
                  and (x.is_exact or pgrecall_internal._unaccented(p.matched) = p.matched)
           end
    group  by x.entity_id, x.is_exact
  ) as k
  -- What many are called by is a common word.
  where  k.sharers <= case when p.other is null then 3 else 1 end
    and  k.is_exact = k.has_exact
    -- That of a misspelt name, whose mentions are not counted, must be in none.
    and  (p.lexeme is null or 2 * coalesce(k.mentions, 0) >= (
            select coalesce(max(l.document_count), 0)
            from   pgrecall_internal.lexeme l
            where  l.bank_id = _name_parts.bank and l.kind = 'memory' and l.lexeme = p.lexeme
              and  l.dimension = pgrecall_internal._dimension(p.lexeme)))
    and  (p.lexeme is null or k.is_exact or 2 * coalesce(k.mentions, 0) >= (
            select coalesce(max(l.document_count), 0)
            from   pgrecall_internal.lexeme l
            where  l.bank_id = _name_parts.bank and l.kind = 'memory'
              and  pgrecall_internal._unaccented(l.lexeme) = p.lexeme
              and  pgrecall_internal._unaccented(l.lexeme) <> l.lexeme))
    -- Neither is a name of its own.
    and  not exists (
      select from pgrecall.entity_alias a
      where  a.bank_id = _name_parts.bank
        and  a.alias = any (array[p.matched, lower(p.other)]))
    and  (k.is_exact or not exists (
            select from pgrecall.entity_alias a
            where  a.bank_id = _name_parts.bank
              and  pgrecall_internal._unaccented(a.alias) = p.matched
              and  pgrecall_internal._unaccented(a.alias) <> a.alias));
end;
comment on function pgrecall_internal._name_parts is
'Entities that a normalised query names by the first or last word of a name alone, "Ana" or '
'"Silva", where that is no name of its own, is written with a capital as in the name, and stands '
'beside no other capital; in a query without capitals, or all in capitals, where at most twice as '
'many facts have the word as mention them. Nothing is found by a word that begins or ends the '
'names of more than three entities. And by two words, "Anna Silva", of which one begins or ends '
'the name and the other, which no fact has, is spelt much like the other end (0.6 by '
'_nearest_name()), where this is true of one entity. "Jose" is a word of José Muñoz unless a name '
'has it as it is.';

create or replace function pgrecall_internal._query_names(bank text, query text)
returns table (entity_id bigint, phrase text, starts_at integer, ends_at integer, confidence real)
language plpgsql stable parallel safe rows 5
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  config regconfig := (
    select b.text_search_config::regconfig from pgrecall.bank b
    where  b.bank_id = _query_names.bank);
  words   text[];
  spaced  text[];  -- the same, each after a space
  runs    text[];
  aliases text[];
  alias   text;
  rest    text;  -- the words without these
  firsts  integer[];
  parts   pgrecall_internal.named_entity[] := '{}';
  has_parts   boolean;  -- whether there may be any
  is_genitive boolean := query ~ 's [[:upper:]]';
  has_accents boolean := exists (
    select from pgrecall.entity_alias a
    where  a.bank_id = _query_names.bank and pgrecall_internal._unaccented(a.alias) <> a.alias);
begin
  -- Most questions name nobody. It is cheaper to find out whether a question contains a name, and
  -- at which words, than to list all its phrases with their positions. Text without spaces between
  -- words needs the phrases.
  if query !~ ('[' || pgrecall_internal._unspaced() || ']') then
    words := (string_to_array(pgrecall.normalised_name(left(query, 4000)), ' '))[:200];
    spaced := string_to_array(' ' || array_to_string(words, E'\n '), E'\n');
    runs := (
      select array_agg(array[
               w.a, w.a || w.b, w.a || w.b || w.c, w.a || w.b || w.c || w.d,
               w.a || w.b || w.c || w.d || w.e, w.a || w.b || w.c || w.d || w.e || w.f,
               w.a || w.b || w.c || w.d || w.e || w.f || w.g,
               w.a || w.b || w.c || w.d || w.e || w.f || w.g || w.h])
      from   unnest(words, spaced[2:], spaced[3:], spaced[4:], spaced[5:], spaced[6:], spaced[7:],
                    spaced[8:]) as w(a, b, c, d, e, f, g, h)
    );
    if is_genitive then
      runs := array(
        select unnest(array[r, case when r like '%s' then left(r, -1) end]) from unnest(runs) as r);
    end if;
    aliases := array(
      select distinct a.alias
      from   pgrecall.entity_alias a
      where  a.bank_id = _query_names.bank and a.alias = any (runs)
    );
    rest := ' ' || array_to_string(words, '  ') || ' ';
    foreach alias in array aliases loop
      rest := replace(rest, ' ' || replace(alias, ' ', '  ') || ' ', ' ');
    end loop;
    -- Capitals of stop words tell nothing, nor do those of the names just found. But "Did Will" is
    -- Will; and no sign between words stays, or else "Ana/Silva" would be a file.
    has_parts := case
      when query in (lower(query), upper(query)) then query ~ '\m[[:alpha:]]{2,}\M'
      else tsvector_to_array(to_tsvector(config, rest))
           && tsvector_to_array(to_tsvector(config, regexp_replace(
                query, '\m[^[:upper:]][[:alnum:]]*|[^[:alnum:]]+', ' ', 'g'))) end;
    if not has_parts and query ~ '\m[[:upper:]][[:alnum:]]* [[:upper:]]' then
      has_parts := exists (
        select
        from   regexp_matches(
                 query, '\m[[:upper:]][[:alnum:]]* ([[:upper:]][[:alnum:]]*)', 'g') as m(second)
        where  strpos(rest, ' ' || lower(m.second[1]) || ' ') > 0);
    end if;
    if has_parts then
      parts := array(
        select p from pgrecall_internal._name_parts(_query_names.bank, _query_names.query) as p);
      aliases := aliases || array(select p.matched from unnest(parts) as p);
    end if;
    if has_accents then
      aliases := aliases || array(
        select pgrecall_internal._unaccented(a.alias)
        from   pgrecall.entity_alias a
        where  a.bank_id = _query_names.bank
          and  pgrecall_internal._unaccented(a.alias) = any (runs)
          and  pgrecall_internal._unaccented(a.alias) <> a.alias);
    end if;
    if aliases = '{}' then
      return;
    end if;
    firsts := array(
      select distinct w.n::integer
      from   unnest(aliases) as a(alias)
      join   unnest(words) with ordinality as w(word, n)
        on   starts_with(a.alias || ' ', w.word || ' ')
             or starts_with(a.alias || 's ', w.word || ' ')
    );
  end if;
  return query
  with phrase as materialized (
    select p.*,
           -- The German and Dutch genitive: "Anas Chefin".
           case when p.phrase like '%__s' and substr(query, p.ends_at, 3) ~ '^s [[:upper:]]'
                     and substr(query, p.starts_at, 1) ~ '[[:upper:]]'
                then left(p.phrase, -1) end as stem
    from   pgrecall_internal._phrases(query, firsts) as p
  ),
  known as materialized (
    select a.alias, a.entity_id, a.confidence,
           row_number() over (
             partition by a.alias order by a.confidence desc, a.entity_id) as place
    from (
      select b.alias, b.entity_id, b.confidence
      from   pgrecall.entity_alias b
      where  b.bank_id = _query_names.bank
        and  b.alias = any (array(select unnest(array[p.phrase, p.stem]) from phrase p))
      union  all
      select p.matched, p.entity_id, p.confidence from unnest(parts) as p
      union  all
      -- Typed without the accents of the name, where no name is written so, but no stop word: "the"
      -- does not name Thế.
      select pgrecall_internal._unaccented(b.alias), b.entity_id, b.confidence
      from   pgrecall.entity_alias b
      where  has_accents and b.bank_id = _query_names.bank
        and  pgrecall_internal._unaccented(b.alias)
             = any (array(select unnest(array[p.phrase, p.stem]) from phrase p))
        and  pgrecall_internal._unaccented(b.alias) <> b.alias
        and  to_tsvector(config, pgrecall_internal._unaccented(b.alias)) <> ''
        and  not exists (
               select from pgrecall.entity_alias x
               where  x.bank_id = _query_names.bank
                 and  x.alias = pgrecall_internal._unaccented(b.alias))
    ) as a
  ),
  found as materialized (
    select p.*, k.entity_id, k.confidence
    from   known k
    join   phrase p
      on   k.alias = case when exists (select from known x where x.alias = p.phrase)
                       then p.phrase else p.stem end
    where  k.place <= 10
  ),
  -- The longest name wins: "Ana Silva" does not also mean every other Ana.
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
      from   pgrecall_internal._co_mentions(_query_names.bank, h.entity_id) as c
      join   hit o on o.entity_id = c.other_id and o.phrase <> h.phrase
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
comment on function pgrecall_internal._query_names is
'Used by query_entities(): each occurrence of a name in a query, with at most ten entities that '
'have it as an alias.';

create or replace function pgrecall_internal._named_entities(bank text, query text)
returns setof pgrecall_internal.named_entity
language sql stable parallel safe rows 5
begin atomic
  -- Called in a from clause, so that it is inlined.
  select n.entity_id, n.phrase, n.confidence, n.starts_at, n.ends_at,
         case when m.count < 1000 then m.count else greatest(m.count, (
           select c.mention_count
           from   pgrecall_internal.entity_count c
           where  c.bank_id = _named_entities.bank and c.entity_id = n.entity_id)) end
  from (
    select distinct on (q.entity_id)
           q.entity_id, q.phrase, coalesce(q.confidence, 0)::real as confidence, q.starts_at,
           q.ends_at
    from   pgrecall_internal._query_names(bank, query) as q
    order  by q.entity_id, length(q.phrase) desc, q.confidence desc
  ) as n
  cross  join lateral pgrecall_internal._mentions(_named_entities.bank, n.entity_id) as m
  order  by n.entity_id;
end;
comment on function pgrecall_internal._named_entities is
'The entities that a normalised query names, each by its longest name, with the number of facts '
'that mention it: 1,000 or more as bank_statistics() counts them.';

create or replace function pgrecall.query_entities(bank text, query text)
returns setof pgrecall.query_entity
language plpgsql stable parallel safe rows 5
set search_path from current
as $$
begin
  perform pgrecall_internal._bank(bank);
  return query
  select e.entity_id, e.name, e.kind, n.matched, n.confidence
  from   pgrecall_internal._named_entities(
           query_entities.bank, pgrecall_internal._normalised(query_entities.query)) as n
  cross  join lateral (
    select x.entity_id, x.name, x.kind
    from   pgrecall.entity x
    where  x.bank_id = query_entities.bank and x.entity_id = n.entity_id
    limit  1
  ) as e
  order  by e.entity_id;
end;
$$;
comment on function pgrecall.query_entities is
'Entities named in a query: the longest names that occur in it, of at most eight words or, in '
'scripts without spaces, 24 letters, and all entities that have such a name as an alias. '
'confidence, 0 to 1, is the confidence in the alias. Where several entities have a name, each gets '
'its share of confidence x (1 + 4 n): n is the number of other names in the query whose entities '
'occur with it in its latest facts. A word with a capital that is no name, and stands beside no '
'other capital, is the first or last word of one: "Silva" means Ana Silva where at most three are '
'called so; so does "silva" in a query without capitals, if few other facts have the word. "Anna '
'Silva" means her, too, where no fact has the word Anna. Errors: RC001.';

create or replace function pgrecall_internal._without_parts(
  config text, query text, parts int4range[])
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  kept text := '';
  rest integer := 1;  -- before this all is kept or left out
  part int4range;
begin
  if parts is null then
    return _without_parts.query;
  end if;
  foreach part in array parts loop
    kept := kept || substr(query, rest, greatest(0, lower(part) - rest));
    rest := greatest(rest, upper(part));
  end loop;
  kept := kept || substr(query, rest);
  kept := regexp_replace(kept, '\(\s*\)|\[\s*\]|"\s*"|“\s*”|«\s*»', ' ', 'g');
  kept := regexp_replace(kept, '\s+', ' ', 'g');
  kept := regexp_replace(kept, ' ([?!.,;:]+)(?=\s|$)', '\1', 'g');
  kept := regexp_replace(kept, '^[\s?!.,;:]+|\s+$', '', 'g');
  -- Only stop words are left ("Who is?"): an embedding of them would match anything.
  return case when to_tsvector(config::regconfig, kept) = '' then query else kept end;
end;
$$;
comment on function pgrecall_internal._without_parts is
'A query without parts, ranges of its characters counted from 1, in order; whole where there are '
'none, or only stop words would be left.';

create or replace function pgrecall_internal._without_names(
  bank pgrecall.bank, query text, out embedded_text text, out about_text text)
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  few    constant bigint := 3;
  rare   bigint;
  names  pgrecall_internal.named_entity[];
  parts  int4range[];
  common int4range[];
begin
  perform pgrecall_internal._check_text('query', query);
  query := pgrecall_internal._normalised(query);
  embedded_text := query;
  names := array(
    select (n.entity_id, n.phrase, n.confidence, n.starts_at, n.ends_at, null)
             ::pgrecall_internal.named_entity
    from   pgrecall_internal._query_names(bank.bank_id, _without_names.query) as n);
  if names = '{}' then
    return;
  end if;
  rare := coalesce((
    select s.document_count / 20
    from   pgrecall_internal.statistics s
    where  s.bank_id = bank.bank_id and s.kind = 'memory'), 0);
  select array_agg(x.part order by x.part),
         array_agg(x.part order by x.part) filter (where x.mentions > rare)
  into   parts, common
  from (
    select int4range(
             n.starts_at - (substr(query, n.starts_at - 1, 1) in ('@', '#'))::integer,
             n.ends_at + coalesce(length((
               regexp_match(substr(query, n.ends_at, 4),
                            '^.([''’][sS])(?![[:alnum:]])'))[1]), 0)
             + (substr(query, n.ends_at, 3) ~ '^[sxzSXZ][''’](?![[:alnum:]])')::integer, '[]')
             as part,
           proper.mentions
    from   unnest(names) as n
    cross  join lateral (
      select (select count(*)
              from (
                select from pgrecall.mention m
                where  m.bank_id = bank.bank_id and m.entity_id = n.entity_id
                limit  greatest(rare, few) + 1
              ) as bounded) as mentions
      from   pgrecall.entity e
      where  e.bank_id = bank.bank_id and e.entity_id = n.entity_id
        -- A name in lower case ("pricing model") is part of the subject: it stays.
        and  (e.name <> lower(e.name) or e.name = upper(e.name) or e.kind = 'person')
      limit  1
    ) as proper
    -- A rare name is what the question is about: an embedding of the rest finds anything, unless
    -- facts about whom it names are compared alone. A name that every twentieth fact mentions
    -- distinguishes nothing.
    where  proper.mentions > least(rare, few)
      -- A part of an identifier is not a word of its own.
      and  substr(left(query, n.starts_at - 1), greatest(n.starts_at - 2, 1))
             !~ '[[:alnum:]][-_.@:+#]'
      and  substr(query, n.ends_at + 1, 2) !~ '^[-_.@:+#][[:alnum:]]'
  ) as x;
  embedded_text := pgrecall_internal._without_parts(bank.text_search_config, query, common);
  if parts is distinct from common then
    about_text := nullif(
      pgrecall_internal._without_parts(bank.text_search_config, query, parts), query);
  end if;
end;
$$;
comment on function pgrecall_internal._without_names is
'Worker of without_names(). about_text: without the names that more than three facts mention, too; '
'null where that is the same, or only stop words would be left.';

create or replace function pgrecall.without_names(bank text, query text)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return (pgrecall_internal._without_names(
            pgrecall_internal._bank(bank), query)).embedded_text;
end;
$$;
comment on function pgrecall.without_names is
'A query without the names that query_entities() finds in it and that more than a twentieth of the '
'facts mention, each with its possessive ''s, for embedding: such names say who is meant, not what '
'is asked. Names in lower case, unless of a person, and parts of identifiers are kept. The query '
'is returned unchanged where it has no such names, or where only stop words would be left. Errors: '
'RC001, 22023.';
