-- A recall is resolved once, on entry, into one value of type pgrecall_internal.request: the row of
-- the bank, the options, the fact types, the filter compiled to a predicate, the entities that the
-- query names, its words and their IDF. Every arm and every later step takes this value; nothing is
-- parsed, looked up or compiled a second time in one recall.
--
-- _request() checks every argument of the recall family and raises their errors: RC001 bank, RC004
-- dimensions, RC005 model, RC006 vector, RC007 nothing to recall by, RC008 fact type, RC009 arm,
-- RC011 filter, 22023 value out of range. Names and words are looked up only where an arm that may
-- run needs them, by its row in arms().
create or replace function pgrecall_internal._to_halfvec(embedding anycompatible)
returns halfvec
language plpgsql immutable parallel unsafe
set search_path from current
as $$
begin
  if embedding is null then
    return null;
  elsif pg_typeof(embedding) = 'halfvec'::regtype then
    return embedding;
  end if;
  begin
    -- An assignment: it takes the casts of pgvector, or reads a text as '[0.1, 0.2]'.
    declare
      converted halfvec := embedding;
    begin
      return converted;
    end;
  exception when data_exception or program_limit_exceeded then
    raise exception using
      errcode = 'RC006',
      message = format('unusable embedding: %s', left(sqlerrm, 120)),
      hint    = 'Pass the finite numbers that the embedding model returned, as an array or as '
                '"[0.1, 0.2]".';
  end;
end;
$$;
comment on function pgrecall_internal._to_halfvec is
'An embedding of any type that clients send: halfvec, vector, an array of numbers, or text. '
'Errors: RC006.';

create or replace function pgrecall_internal._range_of_period(during pgrecall_internal.period)
returns tstzrange
language plpgsql immutable strict parallel safe
as $$
begin
  if isempty(during) then
    return 'empty';
  end if;
  -- Times are whole microseconds. What reads a window compares its first one.
  return tstzrange(
    lower(during) + (not lower_inc(during))::integer * interval '1 microsecond',
    upper(during), case when upper_inc(during) then '[]' else '[)' end);
end;
$$;
comment on function pgrecall_internal._range_of_period is
'A window as a tstzrange that holds its lower bound.';

create or replace function pgrecall_internal._parsed_request(
  request pgrecall_internal.request, has_messages boolean)
returns pgrecall_internal.request
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  parsed   record;
  expanded text[] := '{}';
begin
  request.words := request.query;
  request.phrases := '{}';
  request.excluded := '{}';
  -- A character outside ASCII may be a form of a quote or a dash.
  if request.query ~ '["-]' or octet_length(request.query) > length(request.query) then
    parsed := pgrecall_internal._parsed_query(request.query);
    request.words := parsed.words;
    request.phrases := parsed.phrases;
    request.excluded := parsed.excluded;
  end if;
  request.lexemes := array(
    select l.lexeme
    from   pgrecall.lexemes((request.bank).text_search_config::regconfig, request.words) as l
  );
  if request.lexemes = '{}' and request.excluded <> '{}' then
    -- Only what writes the minus as well is not excluded: "What does -x do?"
    request.lexemes := array(
      select l.lexeme
      from   pgrecall.lexemes((request.bank).text_search_config::regconfig,
                              array_to_string(request.excluded, ' ')) as l
    );
  end if;
  if jsonb_typeof(request.options -> 'terms') = 'array' then
    expanded := array(
      select l.lexeme
      from   pgrecall.lexemes((request.bank).text_search_config::regconfig, (
               select string_agg(t, E'\n')
               from   jsonb_array_elements_text(request.options -> 'terms') as t)) as l
      where  l.lexeme <> all (request.lexemes)
    );
  end if;
  request.memory_terms := pgrecall_internal._terms(
    (request.bank).bank_id, 'memory', request.lexemes, expanded);
  if has_messages then
    request.message_terms := pgrecall_internal._terms(
      (request.bank).bank_id, 'message', request.lexemes, expanded);
  end if;
  request.lexemes := request.lexemes || expanded || (request.memory_terms).spellings
                     || (request.message_terms).spellings;
  return request;
end;
$$;
comment on function pgrecall_internal._parsed_request is
'A request with the words of its query and of option terms, their IDF, and its phrases. '
'message_terms stays null where the bank holds no messages.';

create or replace function pgrecall_internal._window_filter(
  during tstzrange, time_basis text, is_events boolean)
returns jsonb
language plpgsql stable parallel safe
as $$
declare
  -- Ranges in a filter are half-open: an inclusive upper bound is extended.
  starts timestamptz := lower(during);
  ends   timestamptz := upper(during) + upper_inc(during)::integer * interval '1 microsecond';
  happened jsonb := jsonb_build_array('overlaps', 'occurred', jsonb_build_array(starts, ends));
  -- An occurrence spans the open side of a window only if it is open on that side too, that is,
  -- reaches beyond every finite time.
  before jsonb := jsonb_build_array(
    null, coalesce(to_jsonb(nullif(starts, '-infinity')), '"4714-11-24T00:00:00Z BC"'));
  after  jsonb := jsonb_build_array(
    coalesce(to_jsonb(nullif(ends, 'infinity')), '"294276-12-31T23:59:59.999999Z"'), null);
  said   jsonb := '["and", ["is null", "occurred"]]';
begin
  if isempty(during) then
    return '["in", "memory_id", []]';
  elsif is_events then
    happened := jsonb_build_array('and', happened, jsonb_build_array('not', jsonb_build_array(
      'and', jsonb_build_array('overlaps', 'occurred', before),
      jsonb_build_array('overlaps', 'occurred', after))));
  end if;
  if time_basis = 'occurred' then
    return happened;
  end if;
  if starts is not null then
    said := said || jsonb_build_array(jsonb_build_array('>=', 'mentioned_at', starts));
  end if;
  if ends is not null then
    said := said || jsonb_build_array(jsonb_build_array('<', 'mentioned_at', ends));
  end if;
  return jsonb_build_array('or', happened, said);
end;
$$;
comment on function pgrecall_internal._window_filter is
'The condition of time_mode = filter: occurred overlaps the window. With time_basis = mentioned, a '
'memory without occurred meets it if its mentioned_at lies in the window. is_events: occurred must '
'begin, end or lie in the window, and not just span it.';

create or replace function pgrecall_internal._whole_filter(
  filter jsonb, tags text[], during tstzrange, options jsonb)
returns jsonb
language sql stable parallel safe
-- Appending an array appends its elements. Without a condition only "and" is left.
return nullif(
  '["and"]'
  || case when filter is null then '[]' else jsonb_build_array(filter) end
  || case when tags is null then '[]'
          else jsonb_build_array(jsonb_build_array('overlaps', 'tags', to_jsonb(tags))) end
  || case when options ->> 'entity' is null then '[]'
          else jsonb_build_array(jsonb_build_array('=', 'entity', options -> 'entity')) end
  || case when during is null or options ->> 'time_mode' = 'boost' then '[]'
          else jsonb_build_array(pgrecall_internal._window_filter(
            during, options ->> 'time_basis', options ->> 'time_mode' = 'events')) end,
  '["and"]');
comment on function pgrecall_internal._whole_filter is
'The filter, the tags, option entity and the window of time_mode = filter as one condition. Null: '
'there is none.';

create or replace function pgrecall_internal._hinted_request(request pgrecall_internal.request)
returns pgrecall_internal.request
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  hinted text[];
begin
  select array_agg(h.fact_type) filter (where h.fact_type = any (request.all_types)),
         coalesce('only ' || string_agg(
                    format('%s, by the word "%s"', h.fact_type, trim(h.matched, '*')), '; ')
                    filter (where h.fact_type = any (request.all_types)),
                  'all types, by the words "'
                  || min(trim(h.matched, '*')) filter (where h.fact_type is null) || '"')
  into   hinted, request.note
  from   pgrecall_internal._type_hints(request.options -> 'type_hints', request.query) as h;
  request.fact_types := coalesce(hinted, request.all_types);
  return request;
end;
$$;
comment on function pgrecall_internal._hinted_request is
'A request narrowed to the fact types that the words of its query hint at.';

create or replace function pgrecall_internal._request(
  bank       text,
  query      text,
  embedding  halfvec default null,
  during     tstzrange default null,
  fact_types text[] default null,
  tags       text[] default null,
  filter     text default null,
  top_k      bigint default 10,
  as_of      timestamptz default null,
  model      text default null,
  options    jsonb default null,
  arm        text default null)
returns pgrecall_internal.request
language plpgsql stable parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  request      pgrecall_internal.request;
  needs        text[] := '{names,terms}';
  is_expanded  boolean;
  is_read      boolean;  -- whether an arm may need the words of the query
  has_names    boolean;  -- of the bank
  has_messages boolean;
begin
  request.bank := pgrecall_internal._bank(bank);
  request.options := pgrecall_internal._bank_options(request.bank, embedding is not null);
  if options <> '{}' then
    request.options := pgrecall_internal._resolved_options(request.options, options);
  end if;
  -- Only the beginning of a very long text is searched.
  request.query := left(coalesce(btrim(query, E' \t\r\n'), ''), 16000);
  if octet_length(request.query) > length(request.query) then
    request.query := pgrecall_internal._normalised(request.query);
  end if;
  request.embedding := embedding;
  if request.options ->> 'hypothetical' is not null then
    request.hypothetical := pgrecall_internal._to_halfvec(request.options ->> 'hypothetical');
  end if;
  if request.options ->> 'about_embedding' is not null then
    request.about_vector := pgrecall_internal._to_halfvec(request.options ->> 'about_embedding');
  end if;
  is_expanded := 'array' in (jsonb_typeof(request.options -> 'keys'),
                             jsonb_typeof(request.options -> 'terms'));
  during := coalesce(
    pgrecall_internal._range_of_period(
      (request.options ->> 'window')::pgrecall_internal.period),
    during);
  request.during := during;
  if arm is null and request.query = '' and not is_expanded
     and num_nonnulls(embedding, request.hypothetical, during) = 0
  then
    raise exception using
      errcode = 'RC007',
      message = 'nothing to recall by: the query is empty and there is no embedding',
      hint    = 'Pass a question, an embedding =>, a window during => or the option keys or terms.';
  end if;
  if length(query) > length(request.query) then
    perform pgrecall_internal._check_text('query', query);
  end if;
  if num_nonnulls(embedding, model) > 0 then
    request.embedding := pgrecall_internal._checked_embedding(
      request.bank, 'embedding', embedding, model);
  end if;
  if request.hypothetical is not null then
    request.hypothetical := pgrecall_internal._checked_embedding(
      request.bank, 'hypothetical', request.hypothetical, model);
  end if;
  if request.about_vector is not null then
    request.about_vector := pgrecall_internal._checked_embedding(
      request.bank, 'about_embedding', request.about_vector, model);
  end if;
  if (request.bank).embedding_mean is not null then
    request.embedding := pgrecall_internal._centred(request.bank, 'embedding', embedding);
    request.about_vector := pgrecall_internal._centred(
      request.bank, 'about_embedding', request.about_vector);
    request.hypothetical := pgrecall_internal._centred(
      request.bank, 'hypothetical', request.hypothetical);
  end if;
  if top_k between 1 and 1000 is not true then
    perform pgrecall_internal._check_range('top_k', top_k, 1, 1000);
  end if;
  request.top_k := top_k;
  request.as_of := coalesce(as_of, now());
  request.depth := (request.options ->> 'depth')::integer;
  request.depth := case request.options ->> 'budget'
    when 'low' then least(request.depth, greatest(top_k, request.depth / 2))
    when 'high' then least(2 * request.depth, 10000)
    else request.depth
  end;
  -- A default must not limit what the call asks for.
  if not (request.bank).options || coalesce(options, '{}') ? 'depth' then
    request.depth := greatest(
      request.depth, least(top_k + (request.options ->> 'skip')::bigint, 10000));
  end if;
  if arm is not null then
    request.arms := array[arm];
  elsif jsonb_typeof(request.options -> 'arms') = 'array' then
    request.arms := array(
      select a from jsonb_array_elements_text(request.options -> 'arms') as a);
  end if;
  request.all_types := pgrecall_internal._fact_types(bank, fact_types);
  request.is_whole := fact_types is null;
  request.fact_types := request.all_types;
  if tags is not null then
    perform pgrecall_internal._check_elements('tags', tags, 'no condition');
  end if;
  request.filter := pgrecall_internal._parsed_filter(filter);
  request.filter := pgrecall_internal._whole_filter(
    request.filter, tags, during, request.options);
  request.visible_sql := pgrecall_internal._visible_sql(request.filter);

  if request.arms is not null then
    needs := array(
      select n from pgrecall.arms() as a, unnest(a.needs) as n
      where  a.arm = any (request.arms));
  end if;
  is_read := (request.query <> '' or is_expanded) and (arm is null or needs && '{terms,names}');
  if is_read then
    select (select true from pgrecall.entity_alias a
            where  a.bank_id = _request.bank
            order  by a.alias
            limit  1),
           (select true from pgrecall.message m
            where  m.bank_id = _request.bank
            order  by m.message_id
            limit  1)
    into   has_names, has_messages;
  end if;
  request.named := '{}';
  if request.query <> '' and has_names
     and (arm is null and ((request.options ->> 'named_boost')::double precision > 0
                           or during is not null)
          or 'names' = any (needs))
  then
    request.named := array(
      select n from pgrecall_internal._named_entities(bank, request.query) as n);
  end if;
  if fact_types is null and (request.options ->> 'use_hints')::boolean then
    request := pgrecall_internal._hinted_request(request);
  end if;
  if is_read then
    request := pgrecall_internal._parsed_request(request, has_messages);
  end if;
  if request.named <> '{}' then
    request.about := pgrecall_internal._about(request);
  end if;
  return request;
end;
$$;
comment on function pgrecall_internal._request is
'Checks the arguments of a recall, fills in the defaults of the bank, and looks up all that the '
'arms need. arm: the arm that is called alone; the query may then be empty. Errors: those of '
'hybrid_recall().';

create or replace function pgrecall_internal._are_visible(
  request pgrecall_internal.request, memory_ids bigint[])
returns boolean
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return request.filter is null and cardinality(memory_ids) = (
    select count(*)
    from   pgrecall.memory m
    where  m.bank_id = (request.bank).bank_id and m.memory_id = any (memory_ids)
      and  array_position(request.fact_types, m.fact_type) is not null
      and  m.valid_from <= request.as_of
      and  (m.valid_to is null or m.valid_to > request.as_of));
end;
$$;
comment on function pgrecall_internal._are_visible is
'Whether all of the memories would be among _visible_places(), as nearly always. It takes a third '
'of the time, and is not asked where there is a filter.';

create or replace function pgrecall_internal._visible_places(
  request pgrecall_internal.request, memory_ids bigint[], most integer)
returns integer[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  places integer[];
  tried  integer;
begin
  if cardinality(memory_ids) > 0 is not true then
    return '{}';
  end if;
  -- The first ones are nearly always enough. If not, all are checked.
  foreach tried in array array[most, cardinality(memory_ids)] loop
    if request.filter is null then
      places := array(
        select u.n
        from   unnest(memory_ids[1:tried]) with ordinality as u(id, n)
        cross  join lateral (
          select from pgrecall.memory m
          where  m.bank_id = (request.bank).bank_id and m.memory_id = u.id
            and  (request.fact_types is null
                  or array_position(request.fact_types, m.fact_type) is not null)
            and  m.valid_from <= request.as_of
            and  (m.valid_to is null or m.valid_to > request.as_of)
          limit  1
        ) as visible
        order  by u.n
        limit  most
      );
    else
      execute format(
        $sql$
          select array(
            select u.n
            from   unnest($4) with ordinality as u(id, n)
            cross  join lateral (
              select from pgrecall.memory m
              where  m.bank_id = $1 and m.memory_id = u.id
                and  ($5 is null or array_position($5, m.fact_type) is not null) and %s
              limit  1
            ) as visible
            order  by u.n
            limit  $6
          )
        $sql$, request.visible_sql)
      into  places
      using (request.bank).bank_id, request.as_of, request.filter, memory_ids[1:tried],
            request.fact_types, most;
    end if;
    exit when cardinality(places) = most or tried >= cardinality(memory_ids);
  end loop;
  return places;
end;
$$;
comment on function pgrecall_internal._visible_places is
'The positions, from 1, of the first most memories that have one of fact_types (any type where '
'that is null), are valid as of the recall, and pass its filter.';

create or replace function pgrecall_internal._name_weights(request pgrecall_internal.request)
returns table (entity_id bigint, mentions bigint, weight double precision)
language sql stable parallel safe rows 5
begin atomic
  -- Called in a from clause, so that it is inlined.
  select q.entity_id, q.mentions,
         q.confidence / 6 * least(2, greatest(1, ln(
           greatest((request.memory_terms).documents, 1) / greatest(q.mentions, 1)::float8)
           / ln(2::float8)))
  from   unnest(request.named) as q;
end;
comment on function pgrecall_internal._name_weights is
'How much each name in a query says: the confidence in its entity times a sixth of the binary '
'logarithm of how many facts there are for each that mentions it, at least a sixth and at most a '
'third.';

create or replace function pgrecall_internal._about(request pgrecall_internal.request)
returns pgrecall_internal.memories_about
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  about pgrecall_internal.memories_about;
begin
  select array_agg(f.memory_id), array_agg(f.weight)
  into   about
  from (
    select m.memory_id, sum(e.weight) as weight
    from (
      select n.entity_id, n.weight
      from   pgrecall_internal._name_weights(request) as n
      where  n.mentions < least(1000, (request.memory_terms).documents / 4.0)
      order  by n.weight desc, n.mentions, n.entity_id
      limit  10
    ) as e
    cross  join lateral (
      select x.memory_id
      from   pgrecall.mention x
      where  x.bank_id = (request.bank).bank_id and x.entity_id = e.entity_id
      limit  1000
    ) as m
    group  by m.memory_id
    order  by 2 desc, 1 desc
    limit  1000
  ) as f;
  request.fact_types := request.all_types;  -- to which they may be widened
  if not pgrecall_internal._are_visible(request, about.memory_ids) then
    select array_agg(about.memory_ids[p]), array_agg(about.weights[p])
    into   about
    from   unnest(pgrecall_internal._visible_places(request, about.memory_ids, 1000)) as p;
  end if;
  return about;
end;
$$;
comment on function pgrecall_internal._about is
'The memories of a request that mention an entity named in the query which fewer than 1,000 '
'mention and less than a quarter of all, those first that mention several: at most 1,000, of ten '
'entities. Among the nearest of all memories there may be few of them.';
