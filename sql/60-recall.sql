create or replace function pgrecall._run_arm(
  arm        text,
  bank       pgrecall.bank,
  query      text,
  embedding  halfvec,
  during     tstzrange,
  fact_types text[],
  filter     jsonb,
  seeds      pgrecall.arm_hit[],
  as_of      timestamptz,
  depth      integer,
  time_basis text,
  named      pgrecall.named_entity[])
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  case arm
    when 'semantic', 'hypothetical' then
      return query
      select * from pgrecall._semantic(
        bank, embedding, fact_types, filter, as_of, depth);
    when 'lexical' then
      return query
      select * from pgrecall._lexical_search(
        bank, 'memory', query, fact_types, filter, as_of, depth);
    when 'message' then
      return query
      select * from pgrecall._lexical_search(
        bank, 'message', query, array['message'], null, as_of, depth);
    when 'key' then
      return query
      select * from pgrecall.key_arm(bank.bank_id, query, fact_types, filter, as_of, depth);
    when 'temporal' then
      return query
      select * from pgrecall.temporal_arm(
        bank.bank_id, during, embedding, fact_types, filter, as_of, depth,
        coalesce(bank.embedding_model, ''), time_basis);
    when 'graph' then
      return query
      select * from pgrecall._graph(
        bank.bank_id, query, named,
        coalesce(seeds, pgrecall._seeds(bank, query, embedding, fact_types, filter, as_of)),
        fact_types, filter, as_of, depth);
  end case;
end;
$$;
comment on function pgrecall._run_arm(
  text, pgrecall.bank, text, halfvec, tstzrange, text[], jsonb, pgrecall.arm_hit[], timestamptz,
  integer, text, pgrecall.named_entity[]) is
'Runs the worker of an arm; the graph starts from seeds, or where there are none finds its own.';

create or replace function pgrecall._index_scans()
returns jsonb
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  return (
    select coalesce(jsonb_object_agg(i.relname, s.scans), '{}')
    from   pg_index x
    join   pg_class i on i.oid = x.indexrelid
    join   pg_class t on t.oid = x.indrelid
    cross  join lateral pg_stat_get_xact_numscans(i.oid) as s(scans)
    where  i.relnamespace = 'pgrecall'::regnamespace and s.scans > 0
      and  t.relname !~ '^(bank|fact_type|statistics|lexeme)$'
  );
end;
$$;
comment on function pgrecall._index_scans() is
'How often this transaction has scanned each index of what the arms look into; nothing with '
'track_counts off.';

create or replace function pgrecall._gather(
  bank         pgrecall.bank,
  query        text,
  embedding    halfvec,
  during       tstzrange,
  fact_types   text[],
  filter       jsonb,
  arms         text[],
  weights      jsonb,
  depth        integer,
  as_of        timestamptz,
  hypothetical halfvec,
  budget       text,
  time_basis   text,
  hinted_types text[],
  hint         text,
  gates        jsonb,
  named        pgrecall.named_entity[],
  is_explained boolean,
  out hits     pgrecall.arm_hit[],
  out report   jsonb)
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  is_only_date boolean := arms is null and budget <> 'high' and during is not null
                          and named = '{}' and pgrecall._is_only_date(query);
  arm        text;
  is_run     boolean;
  reason     text;
  status     text;
  found_hits pgrecall.arm_hit[];
  found_size bigint;
  began      timestamptz;
  gated      text[];
  scans      jsonb;
begin
  loop
    hits := '{}';
    report := '[]';
    for arm, is_run, reason in
      select p.arm, p.is_run, p.reason
      from   pgrecall._arm_plan(bank, query, embedding, during, filter, arms, weights,
                                hypothetical, budget, is_only_date) as p
    loop
      if is_explained then
        scans := pgrecall._index_scans();
      end if;
      began := clock_timestamp();
      found_hits := '{}';
      status := case when is_run then 'ran' else 'skipped' end;
      if is_run then
        -- A broken arm must not take the others with it. Wrong input is the caller's to know of, a
        -- rolled back transaction (class 40: a conflict on a standby, too) the caller's to retry.
        begin
          if arm = 'graph' and arms is null and budget <> 'high' and named = '{}'
             and pgrecall._expansion_bound(bank.bank_id, named, hits) < pgrecall._graph_floor()
          then
            status := 'skipped';
            reason := 'no entity or link leads on from what the arms before found';
          else
            reason := hint;
            found_hits := array(
              select (arm, a.memory_id, a.rank, a.score)::pgrecall.arm_hit
              from   pgrecall._run_arm(
                       arm, bank, query,
                       case arm when 'hypothetical' then hypothetical else embedding end,
                       during, coalesce(hinted_types, fact_types), filter,
                       case when arms is null or arms && '{semantic,lexical}' then hits end,
                       as_of, depth, time_basis, named) as a
            );
            if arm in ('semantic', 'hypothetical') then
              reason := concat_ws('; ', hint, nullif(current_setting('pgrecall.note', true), ''));
            end if;
          end if;
        exception when others then
          if sqlstate like 'RC%' or sqlstate like '40%' or sqlstate = '22023' then
            raise;
          end if;
          status := 'failed';
          reason := sqlerrm;
          raise warning using
            errcode = '01RC1',
            message = format('the %s arm failed and was left out: %s', arm, sqlerrm),
            hint    = format('Run pgrecall.%s_arm() alone to see the error.', arm);
        end;
        hits := hits || found_hits;
      end if;
      report := report || jsonb_build_object(
        'arm', arm, 'status', status, 'reason', reason,
        'rows', cardinality(found_hits), 'best_score', (found_hits[1]).score,
        'milliseconds', extract(epoch from clock_timestamp() - began) * 1000,
        'indexes', case when is_explained and is_run then (
          select string_agg(i.key, ', ' order by i.key)
          from   jsonb_each(pgrecall._index_scans()) as i
          where  i.value is distinct from scans -> i.key
        ) end);
    end loop;

    -- Narrowed too far: once more, everywhere.
    exit when hinted_types is null and not is_only_date;
    select count(distinct h.memory_id) into found_size
    from   unnest(hits) as h
    where  h.arm <> 'message';
    exit when found_size >= bank.widen_below;
    hint := format('widened: %s results were fewer than %s', found_size, bank.widen_below);
    hinted_types := null;
    is_only_date := false;
  end loop;

  if gates <> '{}' then
    gated := pgrecall._gated_arms(hits, gates);
    hits := array(select h from unnest(hits) as h where h.arm <> all (gated));
    report := (
      select jsonb_agg(
               case when r.value ->> 'arm' <> all (gated) then r.value
                    else r.value || jsonb_build_object(
                      'status', 'gated',
                      'reason', format('best score %s is below the gate %s',
                                       round((r.value ->> 'best_score')::numeric, 4),
                                       gates ->> (r.value ->> 'arm')))
               end order by r.n)
      from   jsonb_array_elements(report) with ordinality as r(value, n)
    );
  end if;
end;
$$;
comment on function pgrecall._gather(
  pgrecall.bank, text, halfvec, tstzrange, text[], jsonb, text[], jsonb, integer, timestamptz,
  halfvec, text, text, text[], text, jsonb, pgrecall.named_entity[], boolean) is
'Runs the arms that can help; returns what they found and a report of each. Hinted types, and a '
'query that is only a date, narrow the search, unless too little is found. An arm that fails is '
'left out with warning 01RC1, one that its gate keeps out without.';

create or replace function pgrecall._boosts(
  bank pgrecall.bank, named pgrecall.named_entity[], hits pgrecall.arm_hit[],
  out ids bigint[], out boosts double precision[])
language plpgsql stable parallel safe
set search_path from current
-- Its plans are kept, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  if bank.named_boost = 0 or named = '{}' then
    return;
  end if;
  select array_agg(n.memory_id), array_agg(1 + bank.named_boost * n.confidence)
  into   ids, boosts
  from (
    select h.memory_id, max(e.confidence) as confidence
    from   (select distinct x.memory_id from unnest(hits) as x) as h
    cross  join unnest(named) as e
    cross  join lateral (
      select from pgrecall.mention m
      where  m.bank_id = bank.bank_id and m.memory_id = h.memory_id
        and  m.entity_id = e.entity_id
      limit  1
    ) as stated
    group  by h.memory_id
  ) as n;
end;
$$;
comment on function pgrecall._boosts(
  pgrecall.bank, pgrecall.named_entity[], pgrecall.arm_hit[]) is
'Which of the memories found mention an entity named in the query, and what that multiplies their '
'contributions by: 1 + named_boost * confidence.';

create or replace function pgrecall._asked(query text)
returns text
language sql immutable parallel safe
return left(coalesce(btrim(query, E' \t\r\n'), ''), 16000);
comment on function pgrecall._asked(text) is
'A query without white space around it, its first 16,000 characters, empty when null.';

create or replace function pgrecall._recall_arguments(
  bank text, query text, embedding halfvec, during tstzrange, fact_types text[], tags text[],
  filter jsonb, arms text[], weights jsonb, top_k integer, depth integer, hypothetical halfvec,
  model text, time_mode text, k integer, fusion text, time_basis text, use_hints boolean,
  budget text, skip integer, gates jsonb, collapse boolean, diversity double precision,
  min_relevance double precision, recency_half_life interval, recency_decay text,
  out searched pgrecall.bank, out all_types text[], out whole_filter jsonb, out all_weights jsonb,
  out all_depth integer, out hinted_types text[], out hint text, out all_gates jsonb,
  out all_fusion text, out half_life interval, out decay text)
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  unknown text;
  ends    timestamptz;
begin
  searched := pgrecall._bank(bank);
  if pgrecall._asked(query) = ''
     and num_nonnulls(embedding, hypothetical, during) = 0
  then
    raise exception using
      errcode = 'RC007',
      message = 'nothing to recall by: the query is empty and there is no embedding',
      hint    = 'Pass a question, an embedding => or a window during =>.';
  end if;
  perform pgrecall._check_text('query', query);
  perform pgrecall._check_embedding(searched, 'embedding', embedding, model);
  perform pgrecall._check_embedding(searched, 'hypothetical', hypothetical, model);
  perform pgrecall._check_range('top_k', top_k, 1, 1000);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  if k is not null then
    perform pgrecall._check_range('k', k, 1, 10000);
  end if;
  all_types := pgrecall._fact_types(bank, fact_types);

  select a into unknown from unnest(arms) as a
  where  a is null or not pgrecall.default_weights() ? a
  limit  1;
  if found or cardinality(arms) = 0 then
    raise exception using
      errcode = 'RC009',
      message = case when cardinality(arms) = 0 then 'arms is empty'
                     else format('unknown arm "%s"', unknown) end,
      hint    = format('Arms: %s.', pgrecall._arm_names());
  end if;
  perform pgrecall._check_by_arm('weight', weights);
  perform pgrecall._check_by_arm('gate', gates);
  all_weights := pgrecall.default_weights() || searched.weights || coalesce(weights, '{}');
  all_gates := searched.gates || coalesce(gates, '{}');

  if fusion not in ('rrf', 'score_rrf', 'linear') then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('fusion must be "rrf", "score_rrf" or "linear", not "%s"', fusion),
      hint    = 'Leave it out for the default of the bank.';
  end if;
  all_fusion := coalesce(fusion, searched.fusion);
  decay := coalesce(recency_decay, searched.recency_decay);
  perform pgrecall._check_recency(recency_half_life, decay, all_fusion);
  if all_fusion = 'linear' then
    half_life := coalesce(recency_half_life, searched.recency_half_life);
  end if;
  perform pgrecall._check_range('skip', skip, 0, 10000);
  perform pgrecall._check_share('diversity', diversity);
  perform pgrecall._check_share('min_relevance', min_relevance);
  if collapse is null then
    raise exception using
      errcode = 'null_value_not_allowed',
      message = 'collapse must not be null',
      hint    = 'Pass true to keep the best of each source_id, or false to keep all.';
  end if;
  if time_mode is null or time_mode not in ('boost', 'filter') then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('time_mode must be "boost" or "filter", not "%s"', time_mode),
      hint    = '"boost" lifts what occurred in the window; "filter" leaves out all else.';
  end if;
  perform pgrecall._check_time_basis(time_basis);
  if budget is null or budget not in ('low', 'mid', 'high') then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('budget must be "low", "mid" or "high", not "%s"', budget),
      hint    = '"mid" runs each arm that can help; "low" leaves out the graph and messages.';
  end if;
  all_depth := case budget
    when 'low' then least(depth, greatest(top_k, depth / 2))
    when 'high' then least(2 * depth, 10000)
    else depth
  end;
  if use_hints and fact_types is null then
    select array_agg(h.fact_type), 'only ' || string_agg(
             format('%s, by the word "%s"', h.fact_type, trim(h.matched, '*')), '; ')
    into   hinted_types, hint
    from   pgrecall.type_hints(bank, query) as h
    where  h.fact_type = any (all_types);
    if hinted_types is null then
      hint := (select format('all types, by the words "%s"', trim(h.matched, '*'))
               from   pgrecall.type_hints(bank, query) as h
               where  h.fact_type is null);
    end if;
  end if;
  whole_filter := '["and"]';
  if filter is not null then
    whole_filter := whole_filter || jsonb_build_array(filter);
  end if;
  if tags is not null then
    whole_filter := whole_filter || jsonb_build_array(
      jsonb_build_array('overlaps', 'tags', to_jsonb(tags)));
  end if;
  if during is not null and time_mode = 'filter' then
    -- The spans of a filter are half-open: an end that belongs to the window is let in.
    ends := upper(during) + upper_inc(during)::integer * interval '1 microsecond';
    whole_filter := whole_filter || jsonb_build_array(case
      when isempty(during) then '["in", "memory_id", []]'
      when time_basis = 'occurred' then
        jsonb_build_array('overlaps', 'occurred', jsonb_build_array(lower(during), ends))
      else jsonb_build_array(
        'or', jsonb_build_array('overlaps', 'occurred', jsonb_build_array(lower(during), ends)),
        '["and", ["is null", "occurred"]]'
        || case when lower(during) is null then '[]'
             else jsonb_build_array(jsonb_build_array('>=', 'mentioned_at', lower(during))) end
        || case when ends is null then '[]'
             else jsonb_build_array(jsonb_build_array('<', 'mentioned_at', ends)) end)
    end);
  end if;
  if jsonb_array_length(whole_filter) = 1 then
    whole_filter := null;
  end if;
  perform pgrecall._filter_sql(whole_filter);
end;
$$;
comment on function pgrecall._recall_arguments(
  text, text, halfvec, tstzrange, text[], text[], jsonb, text[], jsonb, integer, integer, halfvec,
  text, text, integer, text, text, boolean, text, integer, jsonb, boolean, double precision,
  double precision, interval, text) is
'Checks the arguments of a recall and fills in the defaults of the bank. Tags and a filtering '
'window become part of the filter; hinted_types are those that the words of the query hint at.';

create or replace function pgrecall._hybrid_recall(
  bank pgrecall.bank, query text, embedding halfvec, during tstzrange, fact_types text[],
  filter jsonb, arms text[], weights jsonb, top_k integer, depth integer, as_of timestamptz,
  hypothetical halfvec, k integer, fusion text, budget text, time_basis text, hinted_types text[],
  hint text, gates jsonb, skip integer, collapse boolean, diversity double precision,
  min_relevance double precision, half_life interval, decay text)
returns setof pgrecall.recalled
language plpgsql volatile parallel unsafe rows 50
set search_path from current
as $$
declare
  hits     pgrecall.arm_hit[];
  named    pgrecall.named_entity[] := pgrecall._named_entities(bank.bank_id, query);
  is_embedded  boolean := embedding is not null;
  is_date      boolean := during is not null and named = '{}'
                          and (query = '' and not is_embedded or pgrecall._is_only_date(query));
  word_mass    double precision;
  message_mass double precision;
  ids      bigint[];
  scores   double precision[];
  shares   jsonb[];
  boosted  record;
  arranged record;
  is_arranged boolean := collapse or diversity > 0 or half_life is not null;
  places   bigint[];
begin
  hits := (pgrecall._gather(bank, query, embedding, during, fact_types, filter,
                            arms, weights, depth, as_of, hypothetical, budget, time_basis,
                            hinted_types, hint, gates, named, false)).hits;
  boosted := pgrecall._boosts(bank, named, hits);
  if not is_date then
    word_mass := pgrecall._word_mass(bank, 'memory', query);
    if exists (select from unnest(hits) as h where h.arm = 'message') then
      message_mass := pgrecall._word_mass(bank, 'message', query);
    end if;
  end if;
  -- Ties at the last rank stay in until recency has settled them.
  select array_agg(f.memory_id), array_agg(f.score), array_agg(f.arms)
  into   ids, scores, shares
  from   pgrecall._fuse(
           hits, weights, k, fusion, boosted.ids, boosted.boosts,
           case when not is_arranged and min_relevance = 0 then skip + top_k end) as f
  where  min_relevance = 0
     or  pgrecall._relevance(f.arms, word_mass, message_mass, is_embedded, is_date)
           >= min_relevance;
  if is_arranged then
    arranged := pgrecall._arranged(
      bank, skip + top_k, collapse, diversity, half_life, decay, as_of, ids, scores, shares);
    ids := arranged.ids;
    scores := arranged.scores;
    shares := arranged.arms;
    places := array(select generate_series(1, cardinality(ids)));
  end if;

  return query
  select row_number() over (
           order by r.place, r.score desc, r.mentioned_at desc, r.memory_id desc)::integer,
         r.memory_id, r.kind, r.fact_type, r.text, r.context, r.fact_key, r.source_id, r.tags,
         r.metadata, r.occurred, r.mentioned_at, r.confidence, r.score, r.arms,
         pgrecall._relevance(r.arms, word_mass, message_mass, is_embedded, is_date),
         r.proof_count
  from (
    select m.memory_id, 'memory', m.fact_type, m.text, m.context, m.fact_key, m.source_id, m.tags,
           m.metadata, m.occurred, m.mentioned_at, m.confidence, m.proof_count, f.score, f.arms,
           f.place
    from   unnest(ids, scores, shares, places) as f(memory_id, score, arms, place)
    join   pgrecall.memory m on m.bank_id = bank.bank_id and m.memory_id = f.memory_id
    union all
    select t.message_id, 'message', null, t.text, t.speaker, null, t.session_id, '{}',
           '{}', null, t.sent_at, null, null, f.score, f.arms, f.place
    from   unnest(ids, scores, shares, places) as f(memory_id, score, arms, place)
    join   pgrecall.message t on t.bank_id = bank.bank_id and t.message_id = f.memory_id
  ) as r(memory_id, kind, fact_type, text, context, fact_key, source_id, tags, metadata, occurred,
         mentioned_at, confidence, proof_count, score, arms, place)
  order  by 1
  offset skip
  limit  top_k;
end;
$$;
comment on function pgrecall._hybrid_recall(
  pgrecall.bank, text, halfvec, tstzrange, text[], jsonb, text[], jsonb, integer, integer,
  timestamptz, halfvec, integer, text, text, text, text[], text, jsonb, integer, boolean,
  double precision, double precision, interval, text) is
'Worker of hybrid_recall(); its arguments are checked.';

create or replace function pgrecall.hybrid_recall(
  bank         text,
  query        text,
  embedding    halfvec default null,
  during       tstzrange default null,
  fact_types   text[] default null,
  tags         text[] default null,
  filter       jsonb default null,
  arms         text[] default null,
  weights      jsonb default null,
  top_k        integer default 50,
  depth        integer default 100,
  as_of        timestamptz default now(),
  hypothetical halfvec default null,
  model        text default null,
  time_mode    text default 'boost',
  k            integer default null,
  fusion       text default null,
  time_basis   text default 'occurred',
  use_hints    boolean default false,
  budget       text default 'mid',
  skip         integer default 0,
  gates        jsonb default null,
  collapse     boolean default false,
  diversity    double precision default 0,
  min_relevance     double precision default 0,
  recency_half_life interval default null,
  recency_decay     text default null)
returns setof pgrecall.recalled
language plpgsql volatile parallel unsafe rows 50
set search_path from current
as $$
declare
  a record;
begin
  a := pgrecall._recall_arguments(
    bank, query, embedding, during, fact_types, tags, filter, arms, weights, top_k, depth,
    hypothetical, model, time_mode, k, fusion, time_basis, use_hints, budget, skip, gates,
    collapse, diversity, min_relevance, recency_half_life, recency_decay);
  return query
  select * from pgrecall._hybrid_recall(
    a.searched, pgrecall._asked(query), embedding, during, a.all_types,
    a.whole_filter, arms, a.all_weights, top_k, a.all_depth, coalesce(as_of, now()), hypothetical,
    coalesce(k, (a.searched).rrf_k), a.all_fusion, budget, time_basis, a.hinted_types, a.hint,
    a.all_gates, skip, collapse, diversity, min_relevance, a.half_life, a.decay);
end;
$$;
comment on function pgrecall.hybrid_recall(
  text, text, halfvec, tstzrange, text[], text[], jsonb, text[], jsonb, integer, integer,
  timestamptz, halfvec, text, text, integer, text, text, boolean, text, integer, jsonb, boolean,
  double precision, double precision, interval, text) is
'The memories of a bank that best answer a query, best first: every arm that can help runs, '
'fusion joins them. '
'Without an embedding the lexical, key, graph, temporal and message arms answer. during boosts '
'what occurred in the window, or filters with time_mode => ''filter''. '
'tags keeps memories with any of them; filter is a condition such as ["and", [">=", "confidence", '
'0.8], ["=", "metadata.team", "core"]]. '
'arms and weights ({"graph": 0.5}) choose and weigh arms, fusion (rrf, score_rrf, linear) and k '
'how they are joined; as_of answers as of an earlier time; depth is how deep each arm looks. '
'arms of a row holds rank, score and contribution per arm; contributions add up to score. kind is '
'memory or message (context: its speaker, source_id: its session). '
'A memory that mentions an entity named in the query counts more, by the bank''s named_boost. '
'time_basis => ''mentioned'' takes the time of saying where it is not known when something '
'happened. use_hints searches only the types that type_hints() finds, unless too little comes. '
'budget: mid runs the arms that can contribute, as arm_plan() says; low leaves out graph, messages '
'and the hypothetical answer and looks half as deep; high skips only what has nothing to work on '
'and looks twice as deep. arms runs those and no others. '
'skip leaves out the first: pages of one order, which ends with what the arms find at this depth. '
'gates ({"semantic": 0.3}) leave out arms whose best score is lower, but never all. collapse keeps '
'the best of each source_id. diversity, 0 to 1, puts off what is like the rows before it (maximal '
'marginal relevance among the first 200): rows are then no longer in the order of their scores. '
'relevance says how likely a row answers the query; min_relevance, 0 to 1, leaves out what is '
'less likely, and may leave nothing. recency_half_life, with fusion linear alone, multiplies '
'scores by recency_boost(); everywhere ties go to what was said last. '
'Errors: RC001 bank, RC004 dimensions, RC005 model, RC006 vector, RC007 nothing to recall by, '
'RC008 fact type, RC009 arm, RC011 filter, 22023 value out of range.';

create or replace function pgrecall.explain_recall(
  bank         text,
  query        text,
  embedding    halfvec default null,
  during       tstzrange default null,
  fact_types   text[] default null,
  tags         text[] default null,
  filter       jsonb default null,
  arms         text[] default null,
  weights      jsonb default null,
  top_k        integer default 50,
  depth        integer default 100,
  as_of        timestamptz default now(),
  hypothetical halfvec default null,
  model        text default null,
  time_mode    text default 'boost',
  k            integer default null,
  fusion       text default null,
  time_basis   text default 'occurred',
  use_hints    boolean default false,
  budget       text default 'mid',
  skip         integer default 0,
  gates        jsonb default null,
  collapse     boolean default false,
  diversity    double precision default 0,
  min_relevance     double precision default 0,
  recency_half_life interval default null,
  recency_decay     text default null)
returns table (arm text, status text, reason text, rows integer, best_score double precision,
               milliseconds double precision, indexes text)
language plpgsql volatile parallel unsafe rows 7
set search_path from current
as $$
declare
  a record;
begin
  a := pgrecall._recall_arguments(
    bank, query, embedding, during, fact_types, tags, filter, arms, weights, top_k, depth,
    hypothetical, model, time_mode, k, fusion, time_basis, use_hints, budget, skip, gates,
    collapse, diversity, min_relevance, recency_half_life, recency_decay);
  return query
  select r.arm, r.status, r.reason, r.rows, r.best_score, r.milliseconds, r.indexes
  from   jsonb_to_recordset((pgrecall._gather(
           a.searched, pgrecall._asked(query), embedding, during, a.all_types,
           a.whole_filter, arms, a.all_weights, a.all_depth, coalesce(as_of, now()),
           hypothetical, budget, time_basis, a.hinted_types, a.hint, a.all_gates,
           pgrecall._named_entities(bank, pgrecall._asked(query)), true)).report)
           as r(arm text, status text, reason text, rows integer, best_score double precision,
                milliseconds double precision, indexes text);
end;
$$;
comment on function pgrecall.explain_recall(
  text, text, halfvec, tstzrange, text[], text[], jsonb, text[], jsonb, integer, integer,
  timestamptz, halfvec, text, text, integer, text, text, boolean, text, integer, jsonb, boolean,
  double precision, double precision, interval, text) is
'What each arm does for a recall with these arguments: ran, gated, skipped or failed and why, '
'rows found, best score, milliseconds. The reason of an arm that ran says how it went, and whether '
'types were narrowed or widened; gated is an arm that ran but whose best score is below its gate. '
'indexes are those that it scanned, as counted while it ran; null: none, or with track_counts off. '
'Errors: as hybrid_recall().';

create or replace function pgrecall.arm_plan(
  bank         text,
  query        text,
  embedding    halfvec default null,
  during       tstzrange default null,
  fact_types   text[] default null,
  tags         text[] default null,
  filter       jsonb default null,
  arms         text[] default null,
  weights      jsonb default null,
  top_k        integer default 50,
  depth        integer default 100,
  as_of        timestamptz default now(),
  hypothetical halfvec default null,
  model        text default null,
  time_mode    text default 'boost',
  k            integer default null,
  fusion       text default null,
  time_basis   text default 'occurred',
  use_hints    boolean default false,
  budget       text default 'mid',
  skip         integer default 0,
  gates        jsonb default null,
  collapse     boolean default false,
  diversity    double precision default 0,
  min_relevance     double precision default 0,
  recency_half_life interval default null,
  recency_decay     text default null)
returns table (arm text, is_run boolean, reason text)
language plpgsql stable parallel unsafe rows 7
set search_path from current
as $$
declare
  a    record;
  text_of text := pgrecall._asked(query);
begin
  a := pgrecall._recall_arguments(
    bank, query, embedding, during, fact_types, tags, filter, arms, weights, top_k, depth,
    hypothetical, model, time_mode, k, fusion, time_basis, use_hints, budget, skip, gates,
    collapse, diversity, min_relevance, recency_half_life, recency_decay);
  return query
  select *
  from   pgrecall._arm_plan(
           a.searched, text_of, embedding, during, a.whole_filter, arms, a.all_weights,
           hypothetical, budget,
           arms is null and budget <> 'high' and during is not null
           and pgrecall._is_only_date(text_of)
           and pgrecall._named_entities(bank, text_of) = '{}');
end;
$$;
comment on function pgrecall.arm_plan(
  text, text, halfvec, tstzrange, text[], text[], jsonb, text[], jsonb, integer, integer,
  timestamptz, halfvec, text, text, integer, text, text, boolean, text, integer, jsonb, boolean,
  double precision, double precision, interval, text) is
'Which arms hybrid_recall() would run with these arguments, and why or why not, in words and '
'without running them. The graph may still be left out once it is seen that nothing leads on from '
'what the arms before it found. Errors: as hybrid_recall().';
