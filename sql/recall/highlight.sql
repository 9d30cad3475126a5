-- highlight() marks the words in a stored text that the lexical arm matches.
--
-- Words are compared as the arm compares them, in Unicode form NFKC and stemmed, but the marks go
-- around the stored letters. Therefore the text is read twice, as runs of words in form NFKC and as
-- stored letters with their combining marks, and the two are joined by the position of each code
-- point. Nothing is escaped: a page that shows the result must escape the text, or choose marks
-- that survive escaping.
create or replace function pgrecall_internal._letters(content text)
returns table (letter text)
language plpgsql immutable parallel safe
as $$
begin
  if octet_length(content) = length(content) or getdatabaseencoding() <> 'UTF8' then
    return query select c.letter from string_to_table(content, null) as c(letter);
    return;
  end if;
  return query
  select string_agg(d.code, '' order by d.n)
  from (
    select c.code, c.n, greatest(1, count(*) filter (where not (
             octet_length(c.code) > 1
             -- A combining mark: normalisation sorts it before the mark that follows all others.
             and (left(normalize(chr(837) || c.code, nfkd), 1) <> chr(837)
                  -- A vowel or a last consonant of a Hangul syllable, and the like.
                  or normalize(c.before || c.code, nfkc)
                     <> normalize(c.before, nfkc) || normalize(c.code, nfkc)
                  or pgrecall_internal._normalised(c.code) = ''))
           ) over (order by c.n)) as nth
    from (
      select s.code, s.n,
             concat(lag(s.code, 2) over (order by s.n), lag(s.code) over (order by s.n)) as before
      from   string_to_table(content, null) with ordinality as s(code, n)
    ) as c
  ) as d
  group  by d.nth
  order  by d.nth;
end;
$$;
comment on function pgrecall_internal._letters is
'The letters of a text as they are stored, in order, each with its combining marks and what is not '
'read after it. As _normalised() has them they concatenate to what it makes of the text.';

create or replace function pgrecall.highlight(
  bank       text,
  memory_id  bigint,
  query      text,
  start_mark text default '<mark>',
  end_mark   text default '</mark>')
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  searched pgrecall.bank := pgrecall_internal._bank(bank);
  config   regconfig := searched.text_search_config::regconfig;
  unspaced text := pgrecall_internal._unspaced();
  inside   text;  -- letters, for use inside a bracket expression
  content  text;
  wanted   text[];
begin
  perform pgrecall_internal._check_text('query', query);
  if greatest(length(start_mark), length(end_mark)) > 1000 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('a mark has %s characters, more than 1000',
                       greatest(length(start_mark), length(end_mark))),
      hint    = 'It stands around each match: pass a tag such as <mark>.';
  end if;
  perform pgrecall_internal._check_memory(bank, memory_id);
  select m.text into content
  from   pgrecall.memory m
  where  m.bank_id = highlight.bank and m.memory_id = highlight.memory_id;
  inside := '[:alnum:]' || pgrecall_internal._marks(pgrecall_internal._normalised(content));
  wanted := array(
    select l.lexeme
    from   pgrecall.lexemes(config, (pgrecall_internal._parsed_query(query)).words) as l
  );
  wanted := wanted || (pgrecall_internal._terms(bank, 'memory', wanted)).spellings;

  return (
    -- Outside a where clause, "in (select ...)" is a hash table that is built once. Both the text
    -- and the query may be long.
    with run as (
      select r.match[1] as run, r.n, r.match[1] ~ format('^[%s]', unspaced) as is_unspaced
      from   regexp_matches(
               pgrecall_internal._normalised(content), format('[%1$s]+|[^%1$s]+', unspaced), 'g')
               with ordinality as r(match, n)
    ),
    piece(place, piece, is_hit) as (
      -- Each letter of a lexeme that the query contains, which has at most three.
      select array[r.n, g.run, g.n], g.letter,
             coalesce(max(g.n + length(g.lexeme)) filter (
                        where g.lexeme in (select unnest(wanted)))
                        over (partition by r.n, g.run order by g.n
                              rows between 2 preceding and current row) > g.n, false)
      from   run r, pgrecall_internal._letter_groups(r.run) as g
      where  r.is_unspaced
      union all
      -- An identifier that the query contains is marked as a whole, any other in parts.
      select array[r.n, i.n, w.n], w.match[1],
             i.is_hit
             or coalesce(
                  pgrecall_internal._abbreviated(w.match[1]) in (select unnest(wanted)), false)
             or coalesce((
               select bool_or(l.lexeme in (select unnest(wanted)))
               from   unnest(tsvector_to_array(to_tsvector(
                        config, pgrecall_internal._with_amounts(w.match[1])))) as l(lexeme)
             ), false)
      from   run r,
             -- Once for each identifier, not for each of its parts: a text may be one long
             -- identifier.
             lateral (
               select x.match, x.n,
                      lower(regexp_replace(x.match[1], '[\u200b\u200c]', '', 'g'))
                        in (select unnest(wanted))
                      or x.match[1] ~ '^[1-9][0-9]{0,2}(?:[,.''’][0-9]{3})+$'
                         and translate(x.match[1], ',.''’', '') in (select unnest(wanted)) as is_hit
               from   regexp_matches(
                        r.run,
                        format('[%1$s]+(?:[%3$s]+[%1$s]+)*%2$s?'
                               '|[0-9]{1,3}(?:[,''’][0-9]{3})+(?![0-9])|[^%1$s]+', inside,
                               replace(pgrecall_internal._suffix(), '[:alnum:]', inside),
                               pgrecall_internal._joints()), 'g'
                      ) with ordinality as x(match, n)
               offset 0
             ) as i,
             regexp_matches(
               i.match[1], format('[%1$s]+|[^%1$s]+', inside), 'g'
             ) with ordinality as w(match, n)
      where  not r.is_unspaced
    ),
    -- The parsed text is in form NFKC; the marks go around the stored letters.
    read as (
      select p.is_hit, row_number() over (order by p.place, c.n) as n
      from   piece p, string_to_table(p.piece, null) with ordinality as c(code, n)
    ),
    stored as (
      select l.letter, l.n as place, row_number() over (order by l.n, c.n) as n
      from   pgrecall_internal._letters(content) with ordinality as l(letter, n),
             string_to_table(pgrecall_internal._normalised(l.letter), null)
               with ordinality as c(code, n)
    ),
    letter as (
      select s.place, s.letter, bool_or(r.is_hit) as is_hit
      from   stored s join read r using (n)
      group  by s.place, s.letter
    ),
    -- Adjacent hits share a mark.
    stretch as (
      select min(l.place) as place, l.is_hit, string_agg(l.letter, '' order by l.place) as stretch
      from (
        select *, row_number() over (order by place)
                  - row_number() over (partition by is_hit order by place) as island
        from   letter
      ) as l
      group  by l.is_hit, l.island
    )
    select coalesce(
             string_agg(
               case when s.is_hit then concat(start_mark, s.stretch, end_mark) else s.stretch end,
               '' order by s.place),
             content)
    from   stretch s
  );
end;
$$;
comment on function pgrecall.highlight is
'The text of a memory with the words that lexical_arm() matches between start_mark and end_mark; '
'otherwise as stored, without escaping. Errors: RC001, RC010 unknown memory, 22023.';
