-- The answer of a recall: hits are fused, ordered, and completed to rows.
--
-- _recall() is the one worker behind hybrid_recall(), explain_recall() and recall_report(). It runs
-- the arms once and returns the rows and the reports of that same run. It and all that it calls are
-- stable, so that they see one state of the bank, whatever they wait for: a volatile function could
-- read the old model of a bank during a switch of models, and then find no embeddings of it. Rows
-- are read from memory and message only after fusion has chosen them, and jsonb is built only for
-- the rows returned.
create or replace function pgrecall_internal._gated_reports(
  reports pgrecall.arm_report[], hits pgrecall.arm_hit[], gates jsonb)
returns pgrecall.arm_report[]
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  gated text[] := array(
    select h.arm from unnest(hits) as h
    except
    select h.arm from unnest(pgrecall_internal._ungated(hits, gates)) as h);
begin
  for n in 1 .. cardinality(reports) loop
    if (reports[n]).arm = any (gated) then
      reports[n].status := 'gated';
      reports[n].reason := format('best score %s is below the gate %s',
                                  round((reports[n]).best_score::numeric, 4),
                                  gates ->> (reports[n]).arm);
    end if;
  end loop;
  return reports;
end;
$$;
comment on function pgrecall_internal._gated_reports is
'The reports of a run, with arms below their gates marked as gated.';

create or replace function pgrecall_internal._doubted_reports(
  reports pgrecall.arm_report[], arms pgrecall_internal.arm_found[], given jsonb, doubted jsonb)
returns pgrecall.arm_report[]
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  share double precision;
begin
  for n in 1 .. cardinality(reports) loop
    share := (doubted ->> (reports[n]).arm)::double precision
             / nullif((given ->> (reports[n]).arm)::double precision, 0);
    if share <= 0.5 then
      reports[n].reason := concat_ws('; ', (reports[n]).reason, format(
        'counts %s%% of its weight: %s tell these memories apart, %s hardly do',
        round(100 * share),
        case (reports[n]).arm when 'lexical' then 'embeddings' else 'words' end,
        case (reports[n]).arm when 'lexical' then 'words' else 'embeddings' end));
    end if;
    -- An identifier is doubted in every model. Two conditions: as one they are a statement per arm.
    if share <= 0.2 then
      if exists (select from unnest(arms) as a
                 where  a.arm = (reports[n]).arm and a.background < 'infinity') then
        reports[n].hint := coalesce(
          (reports[n]).hint, pgrecall_internal._other_model_hint());
      end if;
    end if;
  end loop;
  return reports;
end;
$$;
comment on function pgrecall_internal._doubted_reports is
'The reports of a run. The reason of an arm that counts half of its weight or less says so. At a '
'fifth or less there is a hint, too, if another model may help.';

create or replace function pgrecall_internal._late_reports(
  request pgrecall_internal.request, reports pgrecall.arm_report[], is_found boolean)
returns pgrecall.arm_report[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
  most  constant integer := 1000;
  ids   bigint[];  -- of the memories stored last, those that became known later and still hold
  late  integer;   -- how many of them the recall asks for
  asked pgrecall_internal.request := request;  -- as of now
  first integer := (
    select min(n) from generate_subscripts(reports, 1) as n where reports[n].status = 'ran');
begin
  ids := array(
    select m.memory_id
    from (
      select x.memory_id, x.valid_from, x.valid_to
      from   pgrecall.memory x
      where  x.bank_id = (request.bank).bank_id
      order  by x.bank_id desc, x.memory_id desc
      limit  most
    ) as m
    where  m.valid_from > request.as_of and (m.valid_to is null or m.valid_to > now())
  );
  late := cardinality(ids);
  if late > 0 and not (request.is_whole and request.filter is null) then
    asked.as_of := now();
    asked.fact_types := request.all_types;
    late := cardinality(pgrecall_internal._visible_places(asked, ids, most));
  end if;
  if late > 0 and first is not null then
    reports[first].reason := concat_ws('; ', reports[first].reason, format(
      'memories that were not known yet at %s are left out: %s%s', request.as_of, late,
      case cardinality(ids) when most then ' or more' end));
    if not is_found then
      reports[first].hint := coalesce(reports[first].hint,
        'A memory is known from when it was stored, or from its mentioned_at where that is '
        'earlier: retain old data with mentioned_at, or recall with a later as_of.');
    end if;
  end if;
  return reports;
end;
$$;
comment on function pgrecall_internal._late_reports is
'The reports of a run as of a time in the past. The reason of the first arm that ran says how many '
'of the 1,000 memories stored last became known later, of those that have the fact types and pass '
'the filter of the recall. If nothing was found there is a hint, too.';

create or replace function pgrecall_internal._path_prefix(via jsonb, memory_id bigint)
returns table (id text, place bigint)
language sql immutable parallel safe rows 3
begin atomic
  select f.id, f.place
  from   jsonb_array_elements_text(_path_prefix.via -> 'facts') with ordinality as f(id, place)
  where  f.place < coalesce(
           (select min(s.place)
            from   jsonb_array_elements_text(_path_prefix.via -> 'facts')
                     with ordinality as s(id, place)
            where  s.id = _path_prefix.memory_id::text), 5)
    and  f.place < 5;
end;
comment on function pgrecall_internal._path_prefix is
'The facts of a path before a memory, the first four at most. Where the memory is not on the path, '
'the first four of the path.';

create or replace function pgrecall_internal._with_via_text(
  request pgrecall_internal.request, hits pgrecall.recalled[])
returns pgrecall.recalled[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  ids   bigint[];
  texts jsonb;
  vias  jsonb[];
begin
  ids := array(
    select distinct b.id::bigint
    from   unnest(hits) as h
    cross  join lateral pgrecall_internal._path_prefix(h.via, h.memory_id) as b
  );
  request.fact_types := null;
  select jsonb_object_agg(
           m.memory_id, left(regexp_replace(left(m.text, 800), '\s+', ' ', 'g'), 200))
  into   texts
  from   unnest(pgrecall_internal._visible_places(request, ids, cardinality(ids))) as u(place)
  cross  join lateral (
    select x.memory_id, x.text from pgrecall.memory x
    where  x.bank_id = (request.bank).bank_id and x.memory_id = ids[u.place]
    limit  1
  ) as m;
  vias := array(
    select h.via || jsonb_strip_nulls(jsonb_build_object('text', (
             select string_agg(
                      texts ->> b.id,
                      case when h.via ->> 'direction' = 'cause' then ' ← ' else ' → ' end
                      order by b.place)
             from   pgrecall_internal._path_prefix(h.via, h.memory_id) as b)))
    from   generate_series(1, cardinality(hits)) as u(n)
    cross  join lateral (select (hits[u.n]).via, (hits[u.n]).memory_id) as h
    order  by u.n
  );
  for n in 1 .. cardinality(hits) loop
    hits[n].via := vias[n];
  end loop;
  return hits;
end;
$$;
comment on function pgrecall_internal._with_via_text is
'The rows of an answer with via.text: the texts of up to four facts that precede the row on its '
'path, 200 characters of each, without facts that the filter leaves out.';

create or replace function pgrecall_internal._told_paths(
  request pgrecall_internal.request, hits pgrecall.recalled[])
returns pgrecall.recalled[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  told jsonb[];
  bare jsonb[];
begin
  with element as materialized (
    select h.n, s.place, left(s.e, 1) as sort, substr(s.e, 2) as rest, s.e
    from   generate_series(1, cardinality(hits)) as h(n)
    cross  join lateral string_to_table((hits[h.n]).via #>> '{}', E'\x1f')
             with ordinality as s(e, place)
    where  jsonb_typeof((hits[h.n]).via) = 'string'
  ),
  part as (
    select e.n, e.place, e.sort, e.e as label, y.name,
           case when e.sort in ('<', '>') then regexp_replace(e.rest, ':[0-9]+$', '') end as kind,
           case when e.sort = 'f' then e.rest::bigint
                when e.sort in ('<', '>') then substring(e.rest from ':([0-9]+)$')::bigint end
             as memory_id,
           lag(e.sort) over (partition by e.n order by e.place) as before
    from   element e
    left   join lateral (
      select x.name
      from   pgrecall.entity x
      where  e.sort = 'e' and x.bank_id = (request.bank).bank_id
        and  x.entity_id = case when e.sort = 'e' then e.rest::bigint end
      limit  1
    ) as y on true
  ),
  via as (
    select p.n,
           jsonb_strip_nulls(jsonb_build_object(
             'entities', jsonb_agg(p.name order by p.place) filter (where p.name is not null),
             'relations', jsonb_agg(p.kind order by p.place) filter (where p.kind is not null),
             'facts', jsonb_agg(p.memory_id order by p.place)
                        filter (where p.memory_id is not null),
             'direction', substr(min(p.label) filter (where p.sort = '*'), 2),
             'path', case when count(p.kind) > 0 then string_agg(
               case when p.sort = '>' then ' → ' || p.kind || ' → '
                    when p.sort = '<' then ' ← ' || p.kind || ' ← '
                    when p.before = 'f' and p.place > 2 then ' – ' || p.name
                    else p.name end, '' order by p.place) end)) as told,
           -- A path that only leads from a name to a fact about it, or from a hit to a fact near it
           -- in time, says no more than the row itself.
           count(p.kind) + count(*) filter (where p.sort = '*')
           + count(*) filter (where p.sort = 'e' and p.before = 'f') > 0 as is_telling
    from   part p
    group  by p.n
  )
  select array_agg(v.told order by u.n),
         array_agg(case when (hits[u.n]).via is not null then (
                     select jsonb_object_agg(a.key, a.value - 'via')
                     from   jsonb_each((hits[u.n]).arms) as a) end order by u.n)
  into   told, bare
  from   generate_series(1, cardinality(hits)) as u(n)
  left   join via v on v.n = u.n and v.is_telling;
  for n in 1 .. cardinality(hits) loop
    if hits[n].via is not null then
      hits[n].via := told[n];
      hits[n].arms := bare[n];
    end if;
  end loop;
  if array_remove(told, null) <> '{}' then
    hits := pgrecall_internal._with_via_text(request, hits);
  end if;
  return hits;
end;
$$;
comment on function pgrecall_internal._told_paths is
'The rows of an answer, with via in a readable form: names of entities, kinds of relations, ids of '
'facts in the order of the path, the path as one line where it follows relations, the direction '
'where it follows causes, and via.text. Null where a path only leads from a name to a fact about '
'it.';

create or replace function pgrecall_internal._answer(
  request pgrecall_internal.request, hits pgrecall.arm_hit[])
returns pgrecall.recalled[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  options       jsonb := request.options;
  skip          integer := (options ->> 'skip')::integer;
  last_rank     integer := skip + request.top_k;
  min_relevance double precision := (options ->> 'min_relevance')::double precision;
  collapse      boolean := (options ->> 'collapse')::boolean;
  diversity     double precision := (options ->> 'diversity')::double precision;
  half_life     interval := (options ->> 'recency_half_life')::interval;
  is_arranged   boolean := collapse or diversity > 0 or half_life is not null;
  is_embedded   boolean := request.embedding is not null;
  idf_sum       double precision := (request.memory_terms).idf_sum;
  -- Variables, because the statement would read the options again for each hit.
  weights       jsonb := options -> 'weights';
  rrf_k         integer := (options ->> 'rrf_k')::integer;
  fusion        text := options ->> 'fusion';
  named_boost   double precision := (options ->> 'named_boost')::double precision;
  sources       jsonb := pgrecall_internal._sources(request.bank);
  is_trusting   boolean := sources = '{}' and options ->> 'source_rows' = '0';
  kept          integer := case when not is_arranged and min_relevance = 0 and is_trusting
                                     and options ->> 'prefer' = 'relevant' then last_rank end;
  ids           bigint[];
  scores        double precision[];
  shares        jsonb[];
  surplus       boolean[];  -- null: none is
  places        integer[];  -- the order; null: by score, ties by states, then by recency
  first         integer;  -- how many rows may be states: pages of any size are of one order
  states        bigint[];  -- the best row and other states of it, in order
  trusted       record;
  settled       record;
  arranged      record;
  answer        pgrecall.recalled[];
  is_doubtful   boolean;
  has_path      boolean;
begin
  if options -> 'gates' <> '{}' then
    hits := pgrecall_internal._ungated(hits, options -> 'gates');
  end if;
  -- Ties at the last rank are kept until recency breaks them.
  select array_agg(f.memory_id), array_agg(f.score), array_agg(f.arms),
         count(*) filter (where f.rank <= 40)
  into   ids, scores, shares, first
  from   pgrecall_internal._fuse(
           hits, request.found, weights, rrf_k, fusion, named_boost, kept) as f
  where  min_relevance = 0
     or  pgrecall_internal._relevance(f.arms, idf_sum, is_embedded) >= min_relevance;
  if not is_trusting and ids is not null then
    trusted := pgrecall_internal._trusted_order(request, sources, ids, scores, shares);
    ids := trusted.ids;
    scores := trusted.scores;
    shares := trusted.shares;
    surplus := trusted.surplus;
  end if;
  if options ->> 'prefer' = 'relevant' and cardinality(ids) > 1 then
    settled := pgrecall_internal._settled_states(
      request, sources, first, ids, scores, shares, surplus);
    ids := settled.ids;
    shares := settled.shares;
    states := settled.states;
  end if;
  if is_arranged then
    arranged := pgrecall_internal._reordered(
      request.bank, last_rank, collapse, diversity, half_life, options ->> 'recency_decay',
      request.as_of, states, ids, scores, shares, surplus);
    ids := arranged.ids;
    scores := arranged.scores;
    shares := arranged.arms;
    surplus := arranged.surplus;
    places := array(select generate_series(1, cardinality(ids)));
  elsif options ->> 'prefer' <> 'relevant' and cardinality(ids) > 1 then
    -- The row that is n-th in the new order gets place n.
    places := array(
      select u.n
      from   unnest(pgrecall_internal._preferred_order(
               request, sources, first, ids, scores, shares, surplus)) with ordinality as u(p, n)
      order  by u.p);
  end if;

  select coalesce(array_agg(a.hit order by a.rank), '{}'),
         bool_or((a.hit).fact_key is not null) or (request.bank).single_relations <> '{}'
         or (request.bank).replace in ('relation', 'both'),
         bool_or((a.hit).via is not null)
  into   answer, is_doubtful, has_path
  from (
    select s.rank, (
             s.rank, s.memory_id, s.kind, s.fact_type, s.text, s.context, s.fact_key, s.source_id,
             s.tags, s.metadata, s.occurred, s.mentioned_at, s.confidence, s.score, s.arms,
             pgrecall_internal._relevance(s.arms, idf_sum, is_embedded),
             s.proof_count, lower(s.occurred), upper(s.occurred),
             (select a.value -> 'via' from jsonb_each(s.arms) as a
              where  a.value ? 'via'
              order  by (a.value ->> 'contribution')::double precision desc, a.key
              limit  1), null, s.written_by, s.stored_at,
             pgrecall_internal._trust(sources, s.source_id), null,
             s.is_surplus is true,
             case when array_position(states, s.memory_id) > 1 then states[1] end
             )::pgrecall.recalled as hit
    from (
      select r.*, (row_number() over (
               order by r.place, r.is_surplus, r.score desc,
                        array_position(states, r.memory_id), r.mentioned_at desc,
                        r.memory_id desc))::integer as rank
      from (
        select m.memory_id, 'memory', m.fact_type, m.text, m.context, m.fact_key, m.source_id,
               m.tags, m.metadata, m.occurred, m.mentioned_at, m.confidence, m.proof_count,
               f.score, f.arms, f.place, m.written_by, m.created_at, f.is_surplus
        from   unnest(ids, scores, shares, places, surplus)
                 as f(memory_id, score, arms, place, is_surplus)
        cross  join lateral (
          select x.* from pgrecall.memory x
          where  x.bank_id = (request.bank).bank_id and x.memory_id = f.memory_id
          limit  1
        ) as m
        union all
        select t.message_id, 'message', null, t.text, t.speaker, null, t.session_id, '{}',
               '{}', null, t.sent_at, null, null, f.score, f.arms, f.place, null, null,
               f.is_surplus
        from   unnest(ids, scores, shares, places, surplus)
                 as f(memory_id, score, arms, place, is_surplus)
        cross  join lateral (
          select x.* from pgrecall.message x
          where  x.bank_id = (request.bank).bank_id and x.message_id = f.memory_id
          limit  1
        ) as t
      ) as r(memory_id, kind, fact_type, text, context, fact_key, source_id, tags, metadata,
             occurred, mentioned_at, confidence, proof_count, score, arms, place, written_by,
             stored_at, is_surplus)
      order  by rank
      offset skip
      limit  request.top_k
    ) as s
  ) as a;
  -- Facts conflict if they share a key, or a relation of which the bank allows only one.
  if is_doubtful then
    answer := pgrecall_internal._with_conflicts(request, answer);
  end if;
  return case when has_path then pgrecall_internal._told_paths(request, answer) else answer end;
end;
$$;
comment on function pgrecall_internal._answer is
'The rows of an answer from the hits of the arms: fused, filtered by relevance, and ordered. The '
'weights in the request are those that _doubted_weights() returned.';

create or replace function pgrecall_internal._with_tokens(
  request pgrecall_internal.request, hits pgrecall.recalled[])
returns pgrecall.recalled[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  vectors bytea[];
begin
  select array_agg(e.tokens order by u.n) into vectors
  from   generate_series(1, cardinality(hits)) as u(n)
  left   join lateral (
    select x.tokens
    from   pgrecall.embedding x
    where  x.bank_id = (request.bank).bank_id and x.memory_id = hits[u.n].memory_id
      and  x.model = coalesce((request.bank).embedding_model, '') and x.kind = 'text'
    limit  1
  ) as e on true;
  for n in 1 .. cardinality(hits) loop
    hits[n].tokens := vectors[n];
  end loop;
  return hits;
end;
$$;
comment on function pgrecall_internal._with_tokens is
'The rows of an answer with the token vectors of their memories.';

create or replace function pgrecall_internal._fence_key(bank text)
returns uuid
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return (
    select b.fence_key
    from   pg_proc p
    join   pgrecall.bank b on b.bank_id = _fence_key.bank
    where  p.oid = 'pgrecall_internal._searched_recall'::regproc
      and  p.prosecdef and pg_get_userbyid(p.proowner) <> current_user
      and  has_function_privilege(p.oid, 'execute')
  );
end;
$$;
comment on function pgrecall_internal._fence_key is
'The fence_key of a bank, for a role that may call _searched_recall() with the rights of another '
'role. Null for all others.';

create or replace function pgrecall_internal._searched_recall(
  key        uuid,
  bank       text,
  query      text,
  embedding  halfvec,
  during     tstzrange,
  fact_types text[],
  tags       text[],
  filter     text,
  top_k      bigint,
  as_of      timestamptz,
  model      text,
  options    jsonb,
  is_run     boolean,
  out hits pgrecall.recalled[],
  out arms pgrecall.arm_report[])
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  run    record;
  caller constant name := coalesce(nullif(current_setting('role'), 'none'), session_user);
begin
  -- The key proves that the caller could read the bank once. Whether the role behind it still may,
  -- the policies say. Other policies may hide more.
  if exists (
       select from pgrecall.bank b
       where  b.bank_id = _searched_recall.bank and b.fence_key = _searched_recall.key)
     and exists (
       select
       from   pg_policy p
       join   pg_class c on c.oid = p.polrelid
       cross  join lateral pg_get_expr(p.polqual, p.polrelid) as condition
       where  c.oid = 'pgrecall.bank'::regclass and c.relrowsecurity
         and  case
                when p.polname = 'pgrecall_admin' then exists (
                  select from unnest(p.polroles) as r where pg_has_role(caller, r, 'usage'))
                when p.polname <> 'pgrecall_bank' then false
                when condition ~ '_member_banks' then exists (
                  select from pg_roles r
                  where  r.rolname = _searched_recall.bank and not r.rolsuper
                    and  pg_has_role(caller, r.oid, 'usage'))
                when condition ~ 'CURRENT_USER' then _searched_recall.bank = caller
                else condition ~ 'current_setting' end)
     -- A restore without the roles leaves the function to who restored, with all rights.
     and exists (
       select
       from   pg_policy p
       join   pg_roles r on r.oid = any (p.polroles)
       where  p.polrelid = 'pgrecall.bank'::regclass and p.polname = 'pgrecall_searcher'
         and  r.rolname = current_user)
     and not exists (
       select
       from   pg_policy p
       join   pg_class c on c.oid = p.polrelid
       where  c.relnamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
         and  p.polname not in ('pgrecall_bank', 'pgrecall_admin', 'pgrecall_searcher'))
  then
    run := pgrecall_internal._recall(
      bank, query, embedding, during, fact_types, tags, filter, top_k, as_of, model, options,
      is_run);
    hits := run.hits;
    arms := run.arms;
  end if;
end;
$$;
comment on function pgrecall_internal._searched_recall is
'_recall() with the rights of the owner of this function, for a caller that has the fence_key of '
'the bank and whose role, that of the session or of its "set role", sees the bank by the policies '
'of enable_row_security(). Null for others, where there are other policies, and where the owner is '
'no searcher of create_roles().';

create or replace function pgrecall_internal._recall(
  bank       text,
  query      text,
  embedding  halfvec,
  during     tstzrange,
  fact_types text[],
  tags       text[],
  filter     text,
  top_k      bigint,
  as_of      timestamptz,
  model      text,
  options    jsonb,
  is_run     boolean default true,
  out hits pgrecall.recalled[],
  out arms pgrecall.arm_report[])
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  request pgrecall_internal.request;
  run     record;
  weights jsonb;
  key     uuid;
begin
  if row_security_active('pgrecall.memory') then
    key := pgrecall_internal._fence_key(bank);
    if key is not null then
      run := pgrecall_internal._searched_recall(
        key, bank, query, embedding, during, fact_types, tags, filter, top_k, as_of, model,
        options, is_run);
      hits := run.hits;
      arms := run.arms;
    end if;
    if arms is not null then
      return;
    end if;
  end if;
  request := pgrecall_internal._request(
    bank, query, embedding, during, fact_types, tags, filter, top_k, as_of, model, options);
  run := pgrecall_internal._run(request, not is_run);
  arms := run.reports;
  if is_run then
    request.found := run.arms;
    weights := pgrecall_internal._doubted_weights(request.options, run.arms);
    if weights <> request.options -> 'weights' then
      arms := pgrecall_internal._doubted_reports(
        arms, run.arms, request.options -> 'weights', weights);
      request.options := jsonb_set(request.options, '{weights}', weights);
    end if;
    hits := pgrecall_internal._answer(request, run.hits);
    if (request.options ->> 'with_tokens')::boolean then
      hits := pgrecall_internal._with_tokens(request, hits);
    end if;
    if request.options -> 'gates' <> '{}' then
      arms := pgrecall_internal._gated_reports(arms, run.hits, request.options -> 'gates');
    end if;
    -- Not where a client gives its own clock for now.
    if request.as_of < now() - interval '1 minute' then
      arms := pgrecall_internal._late_reports(request, arms, run.hits <> '{}');
    end if;
  end if;
end;
$$;
comment on function pgrecall_internal._recall is
'One recall: its rows, and the reports of that same run. is_run => false runs nothing, and reports '
'what would run. The bank is its first argument, so that a cluster can run all of it on the node '
'of the bank.';
