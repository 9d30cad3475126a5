-- The words of a query that a chain of relations may use, on either side of the names in it.
--
-- The words are those of the lexicon (graph/relation-word.sql), as phrases of up to three words,
-- and others that may be those of a kind. A preposition before a question word belongs to a verb
-- after it ("to whom does Ana report"), "has Ana got" is one verb, and the head of a relative
-- clause ("the firm that built it") need not be a relation. In languages other than English a verb
-- before a name may have it as subject ("wo wohnt Ana"), so that both directions are tried.
create or replace function pgrecall_internal._chain_words(
  request pgrecall_internal.request, is_described boolean default false)
returns setof pgrecall_internal.chain_word
language plpgsql stable parallel safe rows 10
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  lexicon jsonb := pgrecall.default_relation_words();
  own     jsonb := request.options -> 'relation_words';
  query   text := lower(pgrecall_internal._normalised(request.query));
  -- Question words, words of time, and generic nouns for people: they ask for no relation.
  empty   constant text := '^(know|knows|tell|name|names|called|woman|man|person|people|someone'
                           '|somebody|anybody|guy|lady|thing|please|remember|question|longer'
                           '|before|former|formerly|previous|previously|used|still|current'
                           '|currently|nowadays|days|anymore|latest|present|presently|original'
                           '|originally|once|first|last|earlier|initially|today)$';
  article constant text := '^(the|his|her|their|my|our|your|a|an|whose|der|die|das|el|la|le|il|lo'
                           '|de|het|o|a|s)$';
  which   constant text := '^(which|what|welche[rsmn]?|qué|que|cuál|quale|quel|quelle|welk|welke'
                           '|qual)$';
  generic constant text := '^(place|location|spot|site|whereabouts|part)$';
  of_word constant text := '^(of|von|de|di|van|do|da)$';
  whom    constant text := '^(person|people|one|man|woman|guy|lady|someone|somebody|individual'
                           '|who|whom|that|which|whoever|whomever|company|firm|place|town|city'
                           '|country|team|group|thing|project|colleague|human)$';
  -- Words that a preposition stands before: "to whom", "an wen".
  fronted constant text := '^(who|whom|whose|which|what|wem|wen|welche[rmns]?|quién|quien|qué|cuál'
                           '|qui|quoi|quelle?|chi|cui|quale|wie|wat|welke?|quem|qual)$';
  by_word constant text := '^(by|von|por|par|da|door)$';
  nominative constant text := '^(wer|quién|quien|qui|chi|quem)$';
  relative constant text := '^(that|which|who|whom|whose|where|die|der|das|que|qui|che|dat|wat)$';
  -- Words that ask for a relation by themselves, and particles that stand apart from their verb.
  where_is constant text := '^(where|wo|dónde|où|dov|waar|onde) ';
  whose   constant text := '^(whose|wessen|wiens|van wie|de quién|à qui|di chi|de quem)$';
  be      constant text := '^(is|are|was|were|ist|war|es|era|est|était|è|era|é)$';
  particle constant text := '^(from|of|to|with|on|at|in|for|under|by|got|vandaan|aan|an)$';
  placed  constant text[] := '{noun>lives_in,verb>lives_in,noun>located_in,verb>located_in'
                             ',noun>born_in,verb>born_in}';
  -- Outside English the place of a verb does not tell its subject from its object.
  is_foreign constant boolean :=
    query !~ '\m(who|whom|whose|what|which|where|when|how|why)\M'
    and query ~ '\m(wer|wem|wen|wessen|wo|woher|was|welche[rmns]?|dónde|quién|quien|qué|cuál|où|qui'
                '|que|quel|quelle|dove|dov|chi|che|cosa|quale|waar|wie|wat|welke?|onde|quem|o que'
                '|qual)\M';
begin
  if jsonb_typeof(own) = 'object' then
    lexicon := lexicon || own;
  end if;
  return query
  with token as materialized (
    select w.word, w.starts_at, w.ends_at,
           row_number() over (order by w.starts_at)::integer as n,
           count(*) over ()::integer as count
    from   pgrecall_internal._words(query) as w
  ),
  name as materialized (
    select e.entity_id, min(t.n) as first, max(t.n) as last
    from   unnest(request.named) as e
    join   token t on t.starts_at >= e.starts_at and t.ends_at <= e.ends_at
    group  by e.entity_id
  ),
  -- Phrases of up to three words that the lexicon has; the longest wins.
  phrase as materialized (
    select p.*,
           case when p.is_passive
             then array(select translate(x, '<>', '><')
                        from jsonb_array_elements_text(lexicon -> p.word) as x
                        where x like 'verb%')
             else array(select jsonb_array_elements_text(lexicon -> p.word)) end as meanings
    from (
      select f.n as first, f.n + l.more as last, l.more + 1 as size,
             (select string_agg(t.word, ' ' order by t.n) from token t
              where t.n between f.n and f.n + l.more) as word, false as is_passive
      from   token f
      cross  join generate_series(0, 2) as l(more)
      where  f.n + l.more <= f.count
      union all
      -- "To whom does Ana report": report to.
      select v.n - more, v.n, more + 2,
             concat_ws(' ', case when more = 1 then b.word end, v.word, p.word), false
      from   token p
      join   token w on w.n = p.n + 1 and w.word ~ fronted
      join   token v on v.n > w.n
      join   token b on b.n = v.n - 1
      left   join token f on f.n = v.n + 1
      cross  join generate_series(0, 1) as more
      where  f.word is distinct from p.word
      union all
      -- "By whom was it reviewed": who reviewed it.
      select v.n, v.n, 1, v.word, true
      from   token p
      join   token w on w.n = p.n + 1 and w.word ~ fronted
      join   token v on v.n > w.n and v.n = v.count
      where  p.word ~ by_word
      union all
      -- "Des Chefs": the genitive of German.
      select t.n, t.n, 1, left(t.word, -l), false
      from   token t
      cross  join generate_series(1, 2) as l
      where  is_foreign and not lexicon ? t.word and right(t.word, l) = right('es', l)
      union all
      -- "What has Ana got": has got. Words that stand together go first.
      select v.n, v.n, 1, p.word || ' ' || v.word, false
      from   token p
      join   token v on v.n > p.n + 1 and v.n >= v.count - 1
      where  v.word ~ particle
    ) as p(first, last, size, word, is_passive)
    where  lexicon ? p.word
      and  not exists (select from name o where p.first <= o.last and p.last >= o.first)
  ),
  known as materialized (
    select p.*, p.meanings && placed as is_place,
           exists (select from unnest(p.meanings) as x where x like 'noun%') as is_noun,
           exists (select from unnest(p.meanings) as x where x like 'verb%') as is_verb
    from   phrase p
    where  not exists (
             select from phrase l
             where  l.first <= p.first and l.last >= p.last
               and  (l.size > p.size or l.size = p.size and l.is_passive and not p.is_passive))
      -- "The man Ana reports to" is not her husband, as in Dutch.
      and  (p.word <> 'man' or is_foreign)
  ),
  other as materialized (
    select t.*
    from   token t
    where  length(t.word) > 3 and t.word !~ empty
      and  ts_lexize('pg_catalog.english_stem', t.word) <> '{}'
      and  not exists (select from known k where t.n between k.first and k.last)
      and  not exists (select from name o where t.n between o.first and o.last)
  ),
  used as (
    select k.first, k.last, k.word,
           -- "In which town is the firm" asks where it is.
           k.meanings || case when k.meanings @> '{noun>lives_in}' and b.word ~ which
                              then '{noun>located_in}' else '{}' end::text[] as meanings
    from   known k
    left   join token b on b.n = k.first - 1
    left   join token f on f.n = k.last + 1
    -- "Do you know who" does not ask for acquaintances, "what place" for nothing that "where" does
    -- not.
    where  not (k.word = 'know' and coalesce(b.word in ('you', 'to'), false))
      and  not (k.word ~ generic and coalesce(b.word ~ which, true))
      -- "In which town does Ana live" asks for no more than "where".
      and  not (k.meanings @> '{noun>lives_in}' and coalesce(b.word ~ which, false)
                and exists (select from known x
                            where  x.first <> k.first
                              and  x.meanings && '{noun>lives_in,verb>lives_in}'::text[]))
      -- "Where is Ana's boss" asks for a place, where no other word does. "Where is the town Ana
      -- lives in" asks for that of the town.
      and  (k.word !~ where_is
            or exists (select from known x where x.word !~ where_is)
               and not exists (
                 select from other o
                 left   join token s on s.n = o.n - 1
                 where  o.n > (select min(n.last) from name n) and coalesce(s.word, '') <> 's')
               and (not exists (select from known x where x.is_place and x.word !~ where_is)
                    or exists (select from known x
                               join   token a on a.n = x.first - 1 and a.word ~ article
                               join   known v on v.first > x.last and v.is_place
                               where  x.is_noun and x.is_place and x.word !~ where_is)))
      -- "Whose is the car", "whose team is Ana in".
      and  (k.word !~ whose or is_described or coalesce(f.word ~ be, false)
            or exists (select from known x where x.first = k.last + 1 and x.is_noun))
    union all
    -- Other words may be those of a kind: they are tried, and skipped where no edge matches.
    select o.n, o.n, o.word, '{}'
    from   other o
    where  not is_described
  ),
  -- Of "workplace mentor" and "project manager" only the last word is a relation.
  -- The head of "the project Ana is assigned to" says which of the meanings of the verb is meant.
  headed as materialized (
    select h.first as head, v.first as verb, h.meanings
    from   known h
    join   name m on h.last = m.first - 1
    join   known v on v.is_verb and v.last > m.last
    join   token b on b.n = v.first - 1
    where  h.is_noun and (v.first = m.last + 1 or v.first = m.last + 2 and b.word ~ be)
      and  exists (select from unnest(v.meanings) as x, unnest(h.meanings) as y
                   where  x like 'verb%' and substr(x, 6) = substr(y, 6))
  ),
  candidate as (
    select u.first, u.last, u.word,
           case when h.verb is null then u.meanings
                else array(select x from unnest(u.meanings) as x
                           where  substr(x, 6) in (select substr(y, 6)
                                                   from   unnest(h.meanings) as y)) end
             as meanings
    from   used u
    left   join headed h on h.verb = u.first
    where  not exists (select from headed o where o.head = u.first)
      and  (u.word ~ where_is or u.word ~ whose
       or  not exists (
             select from known k
             where  k.first = u.last + 1 and k.is_noun
               -- "Whom does Ana's wife mentor" ends on a verb.
               and  not (k.is_verb and query ~ '\m(do|does|did)\M'
                         and k.last = (select max(t.n) from token t))
               and  (u.meanings = '{}'
                     or exists (select from unnest(u.meanings) as x where x like 'noun%'))))
  )
  select m.entity_id, c.first < m.first,
         row_number() over (
           partition by m.entity_id, c.first < m.first
           order by case when c.first < m.first then -c.last else c.first end)::integer,
         c.word, s.is_noun, s.is_verb,
         -- A noun next to the name binds first.
         c.meanings <> '{}' and s.is_noun
         and (not s.is_verb
              and (c.first = m.last + 2 and b.word = 's'
                   or c.last = m.first - 2 and f.word is not null)
              -- "Anas Chefin".
              or is_foreign and c.first = m.last + 1)
         -- So does the verb of "the one Ana dotes on".
         or coalesce(s.is_verb and c.first = m.last + 1 and beside.word ~ whom, false),
         -- "Ana's gaffer", "the gaffer of", "the one Ana dotes on", "the one who dotes on Ana".
         s.is_noun and coalesce(b.word = 's' or f.word ~ of_word and b.word ~ article, false)
         or c.meanings = '{}' and coalesce(
           c.first = m.last + 1 and beside.word ~ whom
           or c.last < m.first and m.first - c.last <= 3 and b.word in ('who', 'that')
              and exists (select from token a where a.n = c.first - 2 and a.word ~ whom), false),
         -- "Which company", "the company that".
         coalesce(b.word ~ which, false) or coalesce(f.word ~ relative, false)
         or exists (select from token g where g.n = f.n + 1 and g.word ~ fronted)
         or c.word ~ where_is or c.word ~ whose,
         case
           -- "What is Ana the owner of" and "of what is Ana the owner" ask for what Ana owns,
           -- "whose boss is Ana" for whom she manages.
           when f.word ~ of_word and f.n = f.count
             or c.last = b.count and s.is_noun and c.last > m.last and exists (
                  select from token p join token w on w.n = p.n + 1 and w.word ~ fronted
                  where  p.word ~ of_word)
             or b.word ~ whose and f.word ~ be and m.first = f.n + 1 and m.last = f.count
             then array(select translate(x, '<>', '><') from unnest(c.meanings) as x)
           when is_foreign and s.is_verb and not coalesce(c.last < m.first and b.word ~ nominative
                                                          and b.n = 1, false)
             then c.meanings || array(select translate(x, '<>', '><') from unnest(c.meanings) as x
                                      where x like 'verb%')
           else c.meanings end
  from   name m
  join   candidate c on c.last < m.first or c.first > m.last
  left   join token b on b.n = c.first - 1
  left   join token f on f.n = c.last + 1
  left   join token beside on beside.n = m.first - 1
  cross  join lateral (
    select c.meanings = '{}' or exists (select from unnest(c.meanings) as x where x like 'noun%')
             as is_noun,
           -- "Ana's mentor", "the mentor of": a noun there, whatever else it may be.
           (c.meanings = '{}' or exists (select from unnest(c.meanings) as x where x like 'verb%'))
             and not (exists (select from unnest(c.meanings) as x where x like 'noun%')
                      and (coalesce(b.word, '') = 's'
                           or coalesce(f.word, '') ~ of_word))
             as is_verb
  ) as s
  where  not (c.word ~ whose and coalesce(f.word ~ be, false) = false and exists (
               select from token x where x.n = c.last + 2 and x.word ~ be
               and m.first = x.n + 1 and m.last = x.count));
end;
$$;
comment on function pgrecall_internal._chain_words is
'The words on either side of each name of a query, from near to far, with what each means by the '
'lexicon. is_described: the names are descriptions, for which no other word is tried, and whose '
'asks for an owner. Long, for it is one list of words and one statement whose parts all read '
'the same tokens.';
