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
comment on function pgrecall.default_type_hints() is
'Words that tell the fact type a question asks for, where the bank has none of its own. "*" is for '
'questions about somebody or something, of any type; an asterisk ends what may go on.';

create or replace function pgrecall._check_type_hints(bank text, type_hints jsonb)
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
  if jsonb_typeof(type_hints) <> 'object' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('type_hints must be an object, not %s', left(type_hints::text, 80)),
      hint    = 'Write {"preference": ["prefer*", "my default"]}, or null for the default.';
  end if;
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
comment on function pgrecall._check_type_hints(text, jsonb) is
'Raises 22023 unless hints are null or arrays of words by fact type, RC008 for an unknown type.';

create or replace function pgrecall.type_hints(bank text, query text)
returns table (fact_type text, matched text)
language plpgsql stable parallel safe rows 2
set search_path from current
as $$
declare
  searched pgrecall.bank := pgrecall._bank(bank);
  words    text;
begin
  perform pgrecall._check_text('query', query);
  words := ' ' || pgrecall.normalised_name(left(query, 2000)) || ' ';
  return query
  select nullif(h.key, '*'), w.word
  from   jsonb_each(coalesce(searched.type_hints, pgrecall.default_type_hints())) as h
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
comment on function pgrecall.type_hints(text, text) is
'Fact types that a query asks for by its words, and the first word that says so. fact_type is null '
'for a question about somebody or something, whose answer is of any type. The words are those of '
'default_type_hints() or of the bank''s setting type_hints. Errors: RC001, 22023.';

create or replace function pgrecall._is_only_date(query text)
returns boolean
language sql immutable parallel safe
return length(query) <= 200 and pgrecall.normalised_name(query) ~ (
  '^((what|whats|when|which|did|do|does|done|doing|was|were|is|are|has|have|had|been|be|we|i|you'
  '|they|us|me|my|our|there|it|happen|happens|happened|happening|occur|occurs|occurred|go|goes'
  '|going|went|on|in|at|of|the|a|an|to|from|until|till|before|after|since|between|and|or|during'
  '|within|over|around|about|by|for|back|through|all|any|anything|something|everything|thing'
  '|things|event|events|show|list|tell|say|give'
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
comment on function pgrecall._is_only_date(text) is
'Whether an English query asks for a time and nothing else: what happened in March 2026? Unless it '
'names somebody called April.';

create or replace function pgrecall._arm_plan(
  bank pgrecall.bank, query text, embedding halfvec, during tstzrange, filter jsonb, arms text[],
  weights jsonb, hypothetical halfvec, budget text, is_only_date boolean)
returns table (arm text, is_run boolean, reason text)
language plpgsql stable parallel unsafe rows 7
set search_path from current
-- Its plans are kept, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  has_key     boolean;
  has_message boolean;
  has_edge    boolean;
  has_timeless boolean;
  knows       boolean;
  hears       boolean;
begin
  if arms is null then
    begin
      -- In the order of an index: on a table never analysed the planner would rather look for the
      -- first by reading all. Documents not counted yet may hold any word.
      select (select true from pgrecall.memory m
              where  m.bank_id = bank.bank_id and m.fact_key is not null
              order  by lower(pgrecall._normalised(m.fact_key)) limit 1),
             (select true from pgrecall.message m
              where  m.bank_id = bank.bank_id
              order  by m.message_id limit 1),
             coalesce(
               (select true from pgrecall.link l
                where  l.bank_id = bank.bank_id
                order  by l.from_id, l.kind, l.to_id limit 1),
               (select true from pgrecall.mention x
                where  x.bank_id = bank.bank_id
                order  by x.entity_id, x.fact_type, x.memory_id limit 1)),
             (select true
              from   pgrecall.fact_type t
              cross  join lateral (
                select from pgrecall.memory m
                where  m.bank_id = bank.bank_id and m.fact_type = t.fact_type
                  and  m.occurred is null
                order  by m.mentioned_at limit 1
              ) as timeless
              where  is_only_date and t.bank_id = bank.bank_id
              limit  1),
             (select m.memory_id from pgrecall.memory m
              where  m.bank_id = bank.bank_id
              order  by m.memory_id desc limit 1) > coalesce(
                (select s.watermark from pgrecall.statistics s
                 where  s.bank_id = bank.bank_id and s.kind = 'memory'), 0),
             (select m.message_id from pgrecall.message m
              where  m.bank_id = bank.bank_id
              order  by m.message_id desc limit 1) > coalesce(
                (select s.watermark from pgrecall.statistics s
                 where  s.bank_id = bank.bank_id and s.kind = 'message'), 0)
      into   has_key, has_message, has_edge, has_timeless, knows, hears;
      if length(query) > 1000 then
        -- Some word of so many is known.
        knows := true;
        hears := true;
      elsif not is_only_date or has_timeless then
        select coalesce(knows, false) or coalesce(bool_or(m.is_known), false),
               coalesce(hears, false) or coalesce(bool_or(t.is_known), false)
        into   knows, hears
        from   pgrecall.lexemes(bank.text_search_config::regconfig, query) as q
        left   join lateral (
          select true from pgrecall.lexeme l
          where  l.bank_id = bank.bank_id and l.kind = 'memory'
            and  l.dimension = pgrecall._dimension(q.lexeme) and l.lexeme = q.lexeme
          limit  1
        ) as m(is_known) on true
        left   join lateral (
          select true from pgrecall.lexeme l
          where  has_message and l.bank_id = bank.bank_id and l.kind = 'message'
            and  l.dimension = pgrecall._dimension(q.lexeme) and l.lexeme = q.lexeme
          limit  1
        ) as t(is_known) on true;
      end if;
    exception when others then
      if sqlstate like '40%' then
        raise;
      end if;
      -- What is broken or not to be read here is for the arms to tell.
      has_key := true; has_message := true; has_edge := true; has_timeless := true;
      knows := true; hears := true;
    end;
  end if;

  -- The graph comes after semantic and lexical: their best are its seeds.
  for arm in
    select unnest(
      array['key', 'semantic', 'lexical', 'graph', 'temporal', 'message', 'hypothetical'])
  loop
    reason := case
      when arm <> all (arms) then 'not asked for'
      when (weights ->> arm)::double precision = 0 then 'its weight is 0'
      when arm = 'semantic' and embedding is null then 'no embedding given'
      when arm = 'hypothetical' and hypothetical is null then 'no hypothetical answer given'
      when arm = 'temporal' and during is null then 'no time window given'
      when arm in ('key', 'lexical', 'message') and query = '' then 'no query text given'
      when arm = 'message' and filter is not null then 'filters are about memories'
      when arms is not null then null
      when budget = 'low' and arm in ('graph', 'message', 'hypothetical') then 'the budget is low'
      when is_only_date and arm in ('semantic', 'graph', 'message', 'hypothetical')
        then 'the query is only a date'
      when is_only_date and arm = 'lexical' and has_timeless is null
        then 'the query is only a date, and all facts have theirs'
      when arm in ('semantic', 'hypothetical') and bank.embedding_dimensions is null
        then 'the bank holds no embeddings'
      when arm = 'key' and has_key is null then 'no fact of the bank has a key'
      when arm = 'lexical' and not knows then 'the bank knows no word of the query'
      when arm = 'message' and has_message is null then 'the bank holds no messages'
      when arm = 'message' and not hears then 'no message has a word of the query'
      when arm = 'graph' and query = '' and embedding is null then 'there is nothing to start from'
      when arm = 'graph' and has_edge is null then 'the bank holds neither entities nor links'
    end;
    is_run := reason is null;
    reason := coalesce(reason, case
      when arms is not null then 'asked for'
      when arm = 'key' then 'the bank has facts with keys'
      when arm = 'semantic' then 'an embedding is given'
      when arm = 'lexical' then 'the bank knows words of the query'
      when arm = 'graph' then 'entities and links may lead on from what the arms before find'
      when arm = 'temporal' then 'a time window is given'
      when arm = 'message' then 'messages have words of the query'
      else 'a hypothetical answer is given'
    end);
    return next;
  end loop;
end;
$$;
comment on function pgrecall._arm_plan(
  pgrecall.bank, text, halfvec, tstzrange, jsonb, text[], jsonb, halfvec, text, boolean) is
'Worker of arm_plan(). Arms that were asked for run whenever they have something to work on.';
