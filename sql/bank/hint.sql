-- Which fact types the words of a query ask for.
--
-- Option use_hints searches only the types that type_hints() finds. Where that finds too little
-- (option widen_below), everything is searched: a wrong hint costs time and not answers.
create or replace function pgrecall.default_type_hints()
returns jsonb
language sql immutable parallel safe
return '{
  "preference": ["prefer*", "preference*", "like", "likes", "liked", "dislike*", "favourite*",
                 "favorite*", "setting", "settings", "my default", "my defaults", "rather"],
  "event": ["when did", "when was", "when were", "happen*", "what time", "at what time",
            "on what date", "what day"],
  "*": ["who is", "who was", "who are", "tell me about"]
}'::jsonb;
comment on function pgrecall.default_type_hints is
'Words that tell the fact type a question asks for, where the bank has none of its own. "*" is for '
'questions about somebody or something, of any type; a trailing asterisk matches any ending.';

create or replace function pgrecall_internal._check_type_hints(bank text, type_hints jsonb)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  unknown text;
begin
  if type_hints is null or jsonb_typeof(type_hints) = 'null' then
    return;
  end if;
  perform pgrecall_internal._check_object(
    'type_hints', type_hints,
    'Write {"preference": ["prefer*", "my default"]}, or null for the default.');
  select k into unknown from jsonb_object_keys(type_hints) as k
  where  k <> '*'
    and  not exists (select from pgrecall.fact_type t
                     where t.bank_id = _check_type_hints.bank and t.fact_type = k);
  if found then
    raise exception using
      errcode = 'RC008',
      message = format('type_hints: bank "%s" has no fact type "%s"', bank, unknown),
      hint    = format('Add it with: select pgrecall.add_fact_type(%L, %L);', bank, unknown);
  end if;
  select h.key into unknown from jsonb_each(type_hints) as h
  where  jsonb_typeof(h.value) <> 'array' or jsonb_array_length(h.value) > 200
     or  exists (select from jsonb_array_elements(h.value) as w
                 where jsonb_typeof(w) <> 'string' or length(w #>> '{}') > 200
                    or pgrecall.normalised_name(w #>> '{}') = '');
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('type_hints: "%s" needs an array of words', unknown),
      hint    = 'At most 200, each with a letter or digit: ["prefer*", "my default"].';
  end if;
end;
$$;
comment on function pgrecall_internal._check_type_hints is
'Raises 22023 unless hints are null or arrays of words by fact type, RC008 for an unknown type.';

create or replace function pgrecall_internal._type_hints(type_hints jsonb, query text)
returns setof pgrecall.type_hint
language plpgsql stable parallel safe rows 2
set search_path from current
as $$
declare
  words text := ' ' || pgrecall.normalised_name(left(query, 2000)) || ' ';
begin
  return query
  select nullif(h.key, '*'), w.word
  from   jsonb_each(coalesce(nullif(type_hints, 'null'), pgrecall.default_type_hints())) as h
  cross  join lateral (
    select t.word
    from   jsonb_array_elements_text(h.value) with ordinality as t(word, n)
    where  strpos(words, ' ' || pgrecall.normalised_name(t.word)
                         || case when t.word like '%*' then '' else ' ' end) > 0
    order  by t.n
    limit  1
  ) as w
  order  by h.key;
end;
$$;
comment on function pgrecall_internal._type_hints is
'Worker of type_hints(): the words are given, or null for those of default_type_hints().';

create or replace function pgrecall.type_hints(bank text, query text)
returns setof pgrecall.type_hint
language plpgsql stable parallel safe rows 2
set search_path from current
as $$
declare
  options jsonb := pgrecall.bank_options(bank);
begin
  perform pgrecall_internal._check_text('query', query);
  return query
  select * from pgrecall_internal._type_hints(options -> 'type_hints', query);
end;
$$;
comment on function pgrecall.type_hints is
'Fact types that a query asks for by its words, and the first word that implies it. fact_type is '
'null for a question about somebody or something, whose answer is of any type. The words are those '
'of default_type_hints() or of the bank''s option type_hints. Errors: RC001, 22023.';
