-- Which fact types the words of a query ask for, and whether it asks only for a time.
--
-- Both narrow a recall before it runs: option use_hints searches only the types that type_hints()
-- finds, and a query that is only a date ("what happened in March?") needs no search by meaning or
-- links. A narrowed recall that finds too little searches everything (option widen_below), so a
-- wrong hint costs time and not answers.
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

create or replace function pgrecall_internal._is_only_date(query text)
returns boolean
language sql immutable parallel safe
return length(query) <= 200 and pgrecall.normalised_name(query) ~ (
  '^((what|whats|s|when|which|did|do|does|done|doing|was|were|is|are|has|have|had|been|be|we|i|you'
  '|they|us|me|my|our|there|it|happen|happens|happened|happening|occur|occurs|occurred|go|goes'
  '|going|went|on|in|at|of|the|a|an|to|from|until|till|before|after|since|between|and|or|during'
  '|within|over|around|about|by|for|back|through|all|any|anything|something|everything|thing'
  '|things|event|events|show|list|tell|say|give|new|news|update|updates|development|developments'
  '|incident|incidents|occurrence|occurrences|highlight|highlights|recap|summary|summarise'
  '|summarize|overview|notable|noteworthy|remarkable|special|unusual|interesting|important'
  '|take|takes|took|taken|place|come|came|up|out|how|please|can|could|worth|mentioning|knowing'
  '|bring|brings|brought|like|look|looked|unfold|unfolded|arise|arose|pass|passed|transpire'
  '|transpired|else|much|exactly|so|miss|missed|rundown|roundup|run|round|leave|away|off|holiday'
  '|vacation|fill|catch|brief|sum|report|happenings|goings|busy|rest'
  '|january|february|march|april|may|june|july|august|september|october|november|december'
  '|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec'
  '|monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tue|tues|wed|thu|thur|thurs|fri'
  '|sat|sun|day|days|week|weeks|month|months|year|years|hour|hours|quarter|decade|weekend|weekends'
  '|morning|afternoon|evening|night|noon|midnight|today|yesterday|tomorrow|tonight|last|next'
  '|past|this|that|previous|coming|recent|recently|lately|ago|earlier|later|early|mid|middle|late'
  '|end|beginning|start|first|second|third|fourth|fifth|spring|summer|autumn|fall|winter|am|pm|utc'
  '|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|couple|few|several'
  '|q[1-4]|[0-9]+(st|nd|rd|th|s|am|pm)?)( |$))+$'
);
comment on function pgrecall_internal._is_only_date is
'Whether an English query asks for a time and nothing else: what happened in March 2026? The '
'caller excludes a query that names an entity called April.';
