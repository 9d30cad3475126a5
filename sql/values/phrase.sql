-- Query syntax of the lexical arms: plain words, which are optional, "phrases in quotes", which
-- must occur, and -words and -"phrases", which must not. What stands between 'single quotes' or
-- `backticks` is text, as the -l of `ls -l`.
--
-- _parsed_query() parses a query, once in a recall. _matches_phrases() tests whether a text has the
-- phrases and none of the exclusions: adjacent words, stemmed as the bank's text search
-- configuration does, identifiers and scripts without spaces as they were typed. A text that has
-- the minus as well is not excluded: "terraform apply -target" asks for an option. Quotes and
-- dashes in a query of several lines or more than 1,000 characters belong to a pasted text and are
-- ignored, and so are the quotes of code.
create or replace function pgrecall_internal._parsed_query(
  query text, out words text, out phrases text[], out excluded text[])
language plpgsql immutable parallel safe
as $$
declare
  -- Quotes of code stand behind a sign or a name, as in print("hello") and {"port": 80}.
  apart  constant text := '(?:(?<![^[:space:]])|(?<=(?:^|[[:space:]])[(]))';
  quoted constant text := '"([^"]+)"(?![[:alnum:]])';
  typed  constant text := '([''‘][^''’]+[''’]|`[^`]+`)(?![[:alnum:]])';
  minus  constant text := '([[:alpha:]][[:alnum:]]*(?:[' || pgrecall_internal._joints()
                          || ''']+[[:alnum:]]+)*' || pgrecall_internal._suffix() || '?)';
  bare   text;
  marked text;  -- a regular expression: -"excluded", "phrase", 'text' or -excluded
begin
  -- Only the beginning of a very long text is searched.
  words := left(query, 16000);
  phrases := '{}';
  excluded := '{}';
  -- A long query, or one of several lines, is a pasted text: its quotes and dashes are not
  -- operators.
  if length(words) > 1000 or btrim(words, E' \t\r\n') ~ E'\n' then
    return;
  end if;
  bare := translate(pgrecall_internal._normalised(query), '“”„', '"""');
  if bare !~ '"|(^| )-[[:alpha:]]' then
    return;
  end if;
  marked := format(
    '(?:^| )-%1$s|%4$s%1$s|(?<![[:alnum:]])%2$s|(?:^| )-%3$s', quoted, typed,
    replace(minus, '[:alnum:]', '[:alnum:]' || pgrecall_internal._marks(bare)), apart);
  excluded := array(
    select coalesce(p.match[1], p.match[4])
    from   regexp_matches(bare, marked, 'g') as p(match)
    where  num_nonnulls(p.match[1], p.match[4]) > 0
  );
  phrases := array(
    select p.match[2]
    from   regexp_matches(bare, marked, 'g') as p(match)
    -- A phrase without words is ignored.
    where  p.match[2] ~ '[[:alnum:]]'
  );
  words := concat_ws(
    ' ', regexp_replace(bare, marked, ' \3 ', 'g'), array_to_string(phrases, ' '));
end;
$$;
comment on function pgrecall_internal._parsed_query is
'Parts of a query: optional words, required phrases ("in quotes"), and excluded words and phrases '
'(-word, -"in quotes"); phrases and exclusions in Unicode form NFKC. What stands between single '
'quotes or backticks is text.';

create or replace function pgrecall_internal._as_typed(phrase text)
returns text
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  typed text := regexp_replace(lower(btrim(phrase)), '([^[:alnum:][:space:]])', '\\\1', 'g');
begin
  typed := regexp_replace(typed, '[[:space:]]+', '\\s+', 'g');
  if btrim(phrase) ~ ('^(?![' || pgrecall_internal._unspaced() || '])[[:alnum:]]') then
    typed := '(?<![[:alnum:]])' || typed;
  end if;
  if btrim(phrase) ~ ('(?![' || pgrecall_internal._unspaced() || '])[[:alnum:]]$') then
    typed := typed || '(?![[:alnum:]])';
  end if;
  return '(?:' || typed || ')';
end;
$$;
comment on function pgrecall_internal._as_typed is
'A regular expression for a phrase as typed, in lower case, and where it does not begin or end in '
'a script without spaces, as whole words.';

create or replace function pgrecall_internal._has_typed(pattern text, fields text[])
returns boolean
language sql immutable parallel safe
return exists (
  select from unnest(fields) as f where lower(pgrecall_internal._normalised(f)) ~ pattern
);
comment on function pgrecall_internal._has_typed is
'Whether a regular expression matches one of the fields in lower case.';

create or replace function pgrecall_internal._has_phrase(
  config regconfig, phrase text, fields text[])
returns boolean
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  typed text := '[' || pgrecall_internal._unspaced() || ']|[[:alnum:]](?:[-_./@:+#]+[[:alnum:]]'
                || '|' || pgrecall_internal._suffix() || ')';
  words text;
begin
  if phrase ~ typed then
    return pgrecall_internal._has_typed(pgrecall_internal._as_typed(phrase), fields);
  end if;
  words := pgrecall_internal._spaced(phrase);
  if to_tsvector(config, words) = '' then
    -- A phrase of stop words alone: to be or not to be.
    config := 'simple';
    if to_tsvector(config, words) = '' then
      return false;
    end if;
  end if;
  return exists (
    select from unnest(fields) as f
    where  to_tsvector(config, pgrecall_internal._spaced(pgrecall_internal._normalised(f)))
             @@ phraseto_tsquery(config, words)
  );
end;
$$;
comment on function pgrecall_internal._has_phrase is
'Whether the words of a phrase, in Unicode form NFKC, are adjacent in one of the fields, stemmed '
'as the configuration does; a phrase with an identifier or letters of _unspaced() in it, as typed.';

create or replace function pgrecall_internal._matches_phrases(
  config regconfig, phrases text[], excluded text[], fields text[])
returns boolean
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  return (
    select bool_and(pgrecall_internal._has_phrase(config, p, fields)) from unnest(phrases) as p
  ) is not false and (
    select bool_or(pgrecall_internal._has_phrase(config, x, fields)
                   and not pgrecall_internal._has_typed(
                     '(?<![[:alnum:]])-' || pgrecall_internal._as_typed(x), fields))
    from   unnest(excluded) as x
  ) is not true;
end;
$$;
comment on function pgrecall_internal._matches_phrases is
'Whether the fields contain all phrases and no exclusion, unless with its minus.';
