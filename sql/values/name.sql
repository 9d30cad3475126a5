-- Names: how they are compared, and how a query is cut into words and phrases.
--
-- A name is compared in normalised form (normalised_name()), and a kind of entity by its class
-- (_kind_class()); both are stored as given.
create or replace function pgrecall.normalised_name(name text)
returns text
language sql immutable parallel safe
return lower(trim(regexp_replace(
  pgrecall_internal._normalised(name),
  '(?:[^[:alnum:]+#]|(?<![[:alnum:]+#])[+#]+|[+#]+(?=[[:alnum:]]))+', ' ', 'g')));
comment on function pgrecall.normalised_name is
'A name in normalised form, for comparisons: Unicode form NFKC, lower case, punctuation and runs '
'of spaces as one space. + and # at the end of a word belong to it: C++ and C# are not C.';

create or replace function pgrecall_internal._words(query text)
returns table (word text, starts_at integer, ends_at integer, is_joined boolean, is_letter boolean)
language sql immutable parallel safe
begin atomic
  select p.word,
         (sum(p.gap + length(p.word)) over running - length(p.word))::integer + 1,
         (sum(p.gap + length(p.word)) over running)::integer,
         p.gap = 0 and row_number() over running > 1,
         p.word ~ ('^[' || pgrecall_internal._unspaced() || ']$')
  from (
    select r.n, m.n as part, m.word, case m.n when 1 then length(r.match[1]) else 0 end as gap
    from   regexp_matches(
             left(query, 4000),
             '([^[:alnum:]]*)([[:alnum:]]+' || pgrecall_internal._suffix() || '?)', 'g')
             with ordinality as r(match, n)
    cross  join lateral (
      select 1 as n, r.match[2] as word
      where  octet_length(r.match[2]) = length(r.match[2])
      union  all
      select x.n, x.match[1]
      from   regexp_matches(
               r.match[2],
               '[\u30a1-\u30fa\u30fc-\u30ff\uff66-\uff9f]+|['
               || pgrecall_internal._unspaced() || ']|[^' || pgrecall_internal._unspaced() || ']+',
               'g')
               with ordinality as x(match, n)
      where  octet_length(r.match[2]) > length(r.match[2])
    ) as m
    -- Only the beginning of a long pasted text is read.
    order  by r.n, m.n
    limit  200
  ) as p
  window running as (order by p.n, p.part)
  order  by p.n, p.part;
end;
comment on function pgrecall_internal._words is
'The first 200 words of a query in order, with the positions of their first and last characters. '
'In scripts without spaces each letter is a word (is_letter), and each run of katakana. '
'is_joined: it directly follows the word before.';

create or replace function pgrecall_internal._phrases(query text, firsts integer[] default null)
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
      from   pgrecall_internal._words(query) as x
      order  by x.ends_at
    ) as w
  )
  select ltrim(array_to_string(q.words[f.n:l.n], '')), f.n, l.n, q.starts[f.n], q.ends[l.n]
  from   question q
  cross  join unnest(coalesce(firsts, array(select generate_series(1, q.length)))) as f(n)
  cross  join generate_series(f.n, least(f.n + 23, q.length)) as l(n)
  where  q.numbers[l.n] - q.numbers[f.n] < 8
    -- A letter among others is part of a word: 王 is not in 王国.
    and  not (f.n = l.n and q.letters[f.n] and (q.joined[f.n] or q.joined[f.n + 1]));
end;
comment on function pgrecall_internal._phrases is
'Runs of one to eight words of a query, normalised as names are; of up to 24 letters in '
'languages without spaces between words. first and last count words, starts_at and ends_at '
'characters. firsts: only runs whose first is one of these.';

create or replace function pgrecall_internal._name_ends(alias text)
returns text[]
language sql immutable parallel safe
return array[split_part(alias, ' ', 1), split_part(alias, ' ', -1)];
comment on function pgrecall_internal._name_ends is
'The first and the last word of a normalised name: what is called for short; inlined.';

create or replace function pgrecall_internal._has_full_name(name text)
returns boolean
language sql immutable parallel safe
return name ~ ' ' and name !~ '^[[:lower:]]|[''’]s | [[:lower:]][^ ]*$';
comment on function pgrecall_internal._has_full_name is
'Whether a name is that of a person in full rather than a word for one: neither "my boss" nor '
'"Ana''s Mom", but "Leonardo da Vinci".';

create or replace function pgrecall_internal._kind_class(kind text)
returns text
language sql immutable parallel safe
return nullif(coalesce('{
  "people": "person", "human": "person", "individual": "person", "user": "person",
  "speaker": "person", "per": "person",
  "persona": "person", "personne": "person", "persoon": "person", "pessoa": "person",
  "organization": "organisation", "company": "organisation", "business": "organisation",
  "firm": "organisation", "org": "organisation", "corporation": "organisation",
  "institution": "organisation", "employer": "organisation",
  "unternehmen": "organisation", "firma": "organisation", "organización": "organisation",
  "empresa": "organisation", "entreprise": "organisation", "azienda": "organisation",
  "organizzazione": "organisation", "bedrijf": "organisation", "organisatie": "organisation",
  "organização": "organisation",
  "location": "place", "city": "place", "town": "place", "village": "place", "country": "place",
  "region": "place", "gpe": "place", "loc": "place",
  "ort": "place", "stadt": "place", "lugar": "place", "ciudad": "place", "lieu": "place",
  "ville": "place", "luogo": "place", "città": "place", "plaats": "place", "stad": "place",
  "cidade": "place",
  "tool": "product", "app": "product", "application": "product", "software": "product",
  "service": "product", "system": "product", "platform": "product",
  "produkt": "product", "producto": "product", "produit": "product", "prodotto": "product",
  "produto": "product",
  "other": "", "misc": "", "unknown": "", "entity": "", "thing": "", "object": "",
  "concept": "", "topic": ""
}'::jsonb ->> lower(trim(kind)), lower(trim(kind))), '');
comment on function pgrecall_internal._kind_class is
'A kind of entity in normalised form, for comparisons: company and organisation are equal, and '
'so are person and persona, in any of the seven languages. Null: unknown, or an unspecific word '
'such as thing.';

create or replace function pgrecall_internal._is_known_kind(kind text)
returns boolean
language sql immutable parallel safe
return coalesce(kind in ('person', 'organisation', 'place', 'product'), false);
comment on function pgrecall_internal._is_known_kind is
'Whether a kind, as _kind_class() returns it, is one of four that exclude each other.';

create or replace function pgrecall_internal._may_be_person(kind text)
returns boolean
language sql immutable parallel safe
return kind = 'person' or not pgrecall_internal._is_known_kind(kind);
comment on function pgrecall_internal._may_be_person is
'Whether who has a kind, as _kind_class() returns it, may be a person; inlined.';

create or replace function pgrecall_internal._kinds_conflict(name text, kind text, other text)
returns boolean
language sql immutable parallel safe
return coalesce(
  kind <> other and case
    when strpos(name, ' ') = 0
      then 'person' in (kind, other)
           or pgrecall_internal._is_known_kind(kind) and pgrecall_internal._is_known_kind(other)
    else 'person' in (kind, other)
         and pgrecall_internal._is_known_kind(kind) and pgrecall_internal._is_known_kind(other)
  end,
  false);
comment on function pgrecall_internal._kinds_conflict is
'Whether two kinds, as _kind_class() returns them, tell apart two entities of a name. Who extracts '
'facts calls the same a project and an initiative, a person and an engineer, so only kinds that '
'exclude each other do, and beside a person any other, "Mercury" the planet; of names of several '
'words, which hardly anything else has, a person and an organisation, a place or a product.';

create or replace function pgrecall_internal._kinds_part(short_kind text, full_kind text)
returns boolean
language sql immutable parallel safe
return coalesce(
  short_kind <> full_kind
  and (short_kind <> 'person' or pgrecall_internal._is_known_kind(full_kind)),
  false);
comment on function pgrecall_internal._kinds_part is
'Whether the kind of who goes by one word, as _kind_class() returns it, parts that name from a '
'full one: "Ana" the boat is not Ana Silva, but Ana, a person, may be Ana Silva, an engineer.';

create or replace function pgrecall_internal._rarity(mentions bigint, documents bigint)
returns double precision
language sql immutable parallel safe
-- Logarithms of numeric take fifty times as long.
return ln(1 + (greatest(documents, mentions) - mentions + 0.5::double precision)
              / (mentions + 0.5::double precision))
       / ln(2 + 2 * greatest(documents, mentions, 1)::double precision);
comment on function pgrecall_internal._rarity is
'Weight of an entity, 0 to 1: its IDF, divided by the highest possible IDF. The weight of an '
'entity that every fact mentions is nearly 0.';

create or replace function pgrecall_internal._nearest_name(
  name text, names text[], least_alike double precision default 0)
returns text
language sql immutable parallel safe
return (
  -- Ordered by the Dice coefficient of letter pairs.
  select n.name
  from   unnest(names) as n(name)
  cross  join lateral (
    select count(*) / (length(n.name) + least(length(_nearest_name.name), 60) + 2.0) * 2 as alike
    from  (select substr(_nearest_name.name, i, 2)
           from   generate_series(0, least(length(_nearest_name.name), 60)) as i
           intersect
           select substr(n.name, i, 2) from generate_series(0, length(n.name)) as i) as x
  ) as s
  where  s.alike >= least_alike
  order  by s.alike desc, n.name
  limit  1
);
comment on function pgrecall_internal._nearest_name is
'The name whose spelling is most similar, by at least least_alike, 0 to 1; null where there is '
'none.';
