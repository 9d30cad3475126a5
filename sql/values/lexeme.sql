-- Lexemes: the terms that the lexical arms index and look up.
--
-- lexemes() is the only place where a text is cut into terms; documents and queries go through it
-- alike. Words are stemmed by the text search configuration of the bank. Identifiers, codes, dates
-- and addresses are also kept as typed, so that "max_client_conn" is found exactly. Amounts are
-- also kept as others write them: 512MB as 512 and MB, and 1,299.00 as 1299. Hashes are also kept
-- as git abbreviates them, so that a shorter one finds a longer one, and the reverse.
-- Chinese, Japanese and Korean are cut into pairs of letters, Thai, Lao, Burmese and Khmer into
-- groups of three.
-- All functions are SQL without tables: the planner inlines them.
-- A change here makes stored weights and new queries disagree until a full refresh_statistics().

create or replace function pgrecall_internal._cjk()
returns text
language sql immutable parallel safe
return '\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u318f'
       '\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff'
       '\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff';
comment on function pgrecall_internal._cjk is
'The letters of Chinese, Japanese and Korean, for use inside a bracket expression.';

create or replace function pgrecall_internal._syllabic()
returns text
language sql immutable parallel safe
return '\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ecf\u0edc-\u0edf'
       '\u1000-\u103f\u1050-\u108f\u109a-\u109f\u1780-\u17d3\u17d7\u17dc-\u17dd'
       '\u1950-\u1974\u1980-\u19c9\u1a20-\u1a7c\ua9e0-\ua9ef\ua9fa-\ua9fe'
       '\uaa60-\uaac2\uaadb-\uaadf\U00011700-\U0001172b';
comment on function pgrecall_internal._syllabic is
'The letters and marks of Thai, Lao, Burmese, Khmer and other scripts of that region in which '
'Unicode finds no ends of words (Line_Break SA), for use inside a bracket expression.';

create or replace function pgrecall_internal._unspaced()
returns text
language sql immutable parallel safe
return pgrecall_internal._cjk() || pgrecall_internal._syllabic();
comment on function pgrecall_internal._unspaced is
'The letters of _cjk() and _syllabic(), whose texts are not cut at spaces alone, for use inside a '
'bracket expression.';

create or replace function pgrecall_internal._letter_groups(content text)
returns table (run bigint, n bigint, letter text, lexeme text)
language sql immutable parallel safe
begin atomic
  select g.run, g.n, g.letter,
         case when g.n = 1 then g.letter || coalesce(g.second, '') || coalesce(g.third, '')
              else g.letter || g.second || g.third end
  from (
    select r.n as run, c.n, c.letter, lead(c.letter) over w as second,
           case when r.is_syllabic then lead(c.letter, 2) over w else '' end as third
    from (
      select x.n, coalesce(x.match[1], x.match[2]) as letters, x.match[2] is not null as is_syllabic
      from   regexp_matches(
               _letter_groups.content,
               '([' || pgrecall_internal._cjk() || ']+)|(['
               || pgrecall_internal._syllabic() || ']+)', 'g'
             ) with ordinality as x(match, n)
      offset 0  -- The rows of the window do not carry the whole text.
    ) as r,
    string_to_table(r.letters, null) with ordinality as c(letter, n)
    window w as (partition by r.n order by c.n)
  ) as g;
end;
comment on function pgrecall_internal._letter_groups is
'The letters of scripts without spaces between words, each with the lexeme that begins with it: '
'two letters of _cjk(), three of _syllabic(); null where fewer are left, but a shorter run of '
'letters is a lexeme as a whole. run: number of the run, n: place of the letter in it.';

create or replace function pgrecall_internal._joints()
returns text
language sql immutable parallel safe
return '-_./@:+#\u200b\u200c';
comment on function pgrecall_internal._joints is
'The signs that join the parts of an identifier, and what parts words unseen, the zero-width space '
'and the non-joiner, for use at the beginning of a bracket expression.';

create or replace function pgrecall_internal._suffix()
returns text
language sql immutable parallel safe
return '(?:[+#]+(?![[:alnum:]+#]))';
comment on function pgrecall_internal._suffix is
'The + and # at the end of a word, which belong to it, as in C++ and C#: a regular expression.';

create or replace function pgrecall_internal._marks(content text)
returns text
language sql immutable parallel safe
return coalesce(case when octet_length(content) > length(content) then (
  -- What the parser of words reads as part of one.
  select string_agg(c.mark, '')
  from   (select distinct x from string_to_table(_marks.content, null) as x) as c(mark)
  where  octet_length(c.mark) > 1 and c.mark !~ '[[:alnum:]\u200b\u200c]'
    and  (select count(*) from ts_parse('default', 'a' || c.mark || 'a')) = 1
) end, '');
comment on function pgrecall_internal._marks is
'The marks in a text that belong to words and are no letters, for use inside a bracket expression '
'beside [:alnum:], as the virama of Hindi and the tones of Thai; empty where there are none.';

create or replace function pgrecall_internal._parted(content text)
returns text
language sql immutable parallel safe
return regexp_replace(
  content, '[' || pgrecall_internal._joints() || ']+(?=[[:alnum:]])', ' ', 'g');
comment on function pgrecall_internal._parted is
'A text with spaces between the parts of identifiers: max_client_conn becomes max client conn.';

create or replace function pgrecall_internal._spaced(content text)
returns text
language sql immutable parallel safe
return pgrecall_internal._parted(
  regexp_replace(content, '[' || pgrecall_internal._unspaced() || ']+', ' ', 'g'));
comment on function pgrecall_internal._spaced is
'A text without the letters of _unspaced(), and with spaces between the parts of identifiers: '
'max_client_conn becomes max client conn.';

create or replace function pgrecall_internal._with_amounts(content text)
returns text
language sql immutable parallel safe
return case when content ~ '[0-9](?:[[:alpha:]]|[,.''’][0-9]{3})' then regexp_replace(
  regexp_replace(
    content,
    '(?<![[:alnum:]_,.''’])([1-9][0-9]{0,2})(?:[,.''’]([0-9]{3}))(?:[,.''’]([0-9]{3}))?'
    '(?:[,.''’]([0-9]{3}))?(?![0-9])',
    '\& \1\2\3\4', 'g'),
  '(?<![[:alnum:]_,.''’])([0-9]+(?:[,.][0-9]+)?)([[:alpha:]]+)\M', '\& \1 \2', 'g')
  else content end;
comment on function pgrecall_internal._with_amounts is
'A text with the numbers in it whose digits are in groups also without the signs between these, '
'and those with a unit also apart from it: 1,299 1299 for 1,299, 512MB 512 MB for 512MB.';

create or replace function pgrecall_internal._abbreviated(word text)
returns text
language sql immutable parallel safe
return case when word ~* '^[0-9a-f]{8,64}$' and word ~ '[0-9]' and word ~ '[[:alpha:]]'
            then lower(left(word, 7)) end;
comment on function pgrecall_internal._abbreviated is
'A hash as git abbreviates it, by its first seven digits; null for any other word.';

create or replace function pgrecall.lexemes(config regconfig, content text)
returns setof pgrecall.lexeme_frequency
language sql immutable parallel safe
begin atomic
  select u.lexeme, sum(u.frequency)::integer
  from (
    -- Most texts are plain ASCII, where there is nothing to look for.
    select case when n.is_ascii then n.content else regexp_replace(
             n.content, '[' || pgrecall_internal._unspaced() || ']+', ' ', 'g') end as spelt,
           case when not n.is_ascii then n.content end as content
    from (
      select x.content, octet_length(x.content) = length(x.content) as is_ascii
      from   (select pgrecall_internal._normalised(lexemes.content) offset 0) as x(content)
    ) as n
    offset 0
  ) as t
  cross  join lateral (
    select w.lexeme, cardinality(w.positions)
    from   unnest(to_tsvector(
             config, pgrecall_internal._parted(pgrecall_internal._with_amounts(t.spelt)))) as w
    union all
    -- Identifiers, codes, dates, addresses as typed.
    select lower(regexp_replace(i.match[1], '[\u200b\u200c]', '', 'g')), 1
    from   regexp_matches(
             t.spelt,
             '[[:alnum:]]+(?:(?:[' || pgrecall_internal._joints() || ']+[[:alnum:]]+)+'
             || pgrecall_internal._suffix() || '?|'
             || pgrecall_internal._suffix() || ')', 'g'
           ) as i(match)
    where  length(i.match[1]) <= 200
    union all
    -- Hashes abbreviated. Few texts have one, and to look for them takes long.
    select pgrecall_internal._abbreviated(h.match[1]), 1
    from   regexp_matches(case when t.spelt ~* '\m[0-9a-f]{8}' then t.spelt end,
                          '\m([0-9a-f]{8,64})\M', 'gi') as h(match)
    where  pgrecall_internal._abbreviated(h.match[1]) is not null
    union all
    -- Scripts without spaces between words.
    select g.lexeme, 1 from pgrecall_internal._letter_groups(t.content) as g
    where  g.lexeme is not null
  ) as u(lexeme, frequency)
  group by u.lexeme;
end;
comment on function pgrecall.lexemes is
'The lexemes of a text and how often each occurs in it: words as the configuration stems them, '
'identifiers as typed, 512MB also as 512 and MB, 1,299 also as 1299, hashes of eight or more '
'hexadecimal digits also as their first seven, Chinese, Japanese and Korean by pairs of letters, '
'Thai, Lao, Burmese and Khmer by threes. The text is read in Unicode form NFKC. Letters with and '
'without accents are different here; lexical_arm() finds them for each other.';

create or replace function pgrecall_internal._field_lexemes(
  config regconfig, content text, context text, context_weight double precision,
  fact_key text, key_weight double precision)
returns table (lexeme text, frequency double precision)
language sql immutable parallel safe
begin atomic
  select l.lexeme, sum(l.frequency * f.weight)
  from (
    values (content, 1::double precision), (context, context_weight), (fact_key, key_weight)
  ) as f(content, weight)
  cross  join lateral pgrecall.lexemes(config, f.content) as l
  where  f.content <> '' and f.weight > 0
  group  by l.lexeme;
end;
comment on function pgrecall_internal._field_lexemes is
'The lexemes of a memory and how often each occurs in it, weighted by field: the text has weight '
'1.';
