-- The run of a recall: every arm that applies, in the order of the registry.
--
-- _run() goes through arms(), skips arms without input, runs the others, and returns their hits
-- with a report of each. A recall that hints have narrowed runs again without them if it finds too
-- little. An arm that fails is left out, with a warning and with a hint in its report. Wrong input,
-- a conflict that the caller should retry, and a cancelled statement are errors.
create or replace function pgrecall_internal._index_scans()
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
    join   pg_namespace n on n.oid = i.relnamespace
    cross  join lateral pg_stat_get_xact_numscans(i.oid) as s(scans)
    where  n.nspname in ('pgrecall', 'pgrecall_internal') and s.scans > 0
      and  t.relname !~ '^(bank|fact_type|statistics|lexeme)$'
  );
end;
$$;
comment on function pgrecall_internal._index_scans is
'Number of scans by this transaction of each index that the arms use; empty with track_counts off.';

create or replace function pgrecall_internal._other_model_hint()
returns text
language sql immutable parallel safe
return 'If the embedding model does not know the language, give the bank one that does: see '
       'pgrecall reembed.';
comment on function pgrecall_internal._other_model_hint is
'The hint of an arm that loses most of its weight because embeddings say little.';

create or replace function pgrecall_internal._skip_reason(
  request pgrecall_internal.request, arm pgrecall.arm, known text)
returns text
language sql immutable parallel safe
return case
  when arm.arm <> all (request.arms) then 'not asked for'
  when (request.options -> 'weights' ->> arm.arm)::double precision = 0
    then coalesce(case when 'embedding' = any (arm.needs) then known end, 'its weight is 0')
  when 'embedding' = any (arm.needs) and request.embedding is null then 'no embedding given'
  when 'hypothetical' = any (arm.needs) and request.hypothetical is null
    then 'no hypothetical answer given'
  when 'during' = any (arm.needs) and request.during is null then 'no time window given'
  when 'query' = any (arm.needs) and request.query = ''
       and ('keys' = any (arm.needs) and jsonb_typeof(request.options -> 'keys') = 'array'
            or 'terms' = any (arm.needs) and jsonb_typeof(request.options -> 'terms') = 'array')
           is not true
    then 'no query text given'
  when arm.finds = 'message' and request.filter is not null then 'filters are about memories'
  when request.arms is not null then null
  when array_position('{low,mid,high}', request.options ->> 'budget')
       < array_position('{low,mid,high}', arm.least_budget) then 'the budget is low'
end;
comment on function pgrecall_internal._skip_reason is
'Why an arm is left out without being called, by its row of the registry. Null: it is called. '
'known: the reason of arms that compare embeddings, where the model knows few of the words.';

-- Composed of the rows of the registry: to plan a call by name, anew for each arm, takes a tenth of
-- a recall.
do $$
begin
  execute (
    select format(
      'create or replace '
      'function pgrecall_internal._arm_result('
      '  arm text, request pgrecall_internal.request, before pgrecall.arm_hit[],'
      '  is_planned boolean) '
      'returns pgrecall_internal.arm_result '
      'language sql stable parallel unsafe '
      'return case arm %s end',
      string_agg(format('when %L then pgrecall_internal.%I(request, before, is_planned)',
                        a.arm, format('_%s_arm', a.arm)), ' ' order by a.place))
    from   pgrecall.arms() as a);
end;
$$;
comment on function pgrecall_internal._arm_result is
'What the worker of an arm returns, pgrecall_internal._ARM_arm(); inlined.';

create or replace function pgrecall_internal._run(
  request pgrecall_internal.request, is_planned boolean,
  out hits pgrecall.arm_hit[], out reports pgrecall.arm_report[],
  out arms pgrecall_internal.arm_found[])
language plpgsql stable parallel unsafe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
declare
  is_explained boolean := (request.options ->> 'explain')::boolean and not is_planned;
  arm     record;
  -- The named entities of hits are looked up once before the first arm that needs them, then arm by
  -- arm.
  is_naming boolean := request.named <> '{}';
  are_named boolean;
  known   text := case
    when request.embedding is not null
         and (request.options ->> 'known_words')::double precision < 0.75
      then format('the embedding model knows %s%% of the words of the query',
                  round(100 * (request.options ->> 'known_words')::numeric)) end;
  result  pgrecall_internal.arm_result;
  reached pgrecall.arm_hit[];
  report  pgrecall.arm_report;
  began   timestamptz;
  scans   jsonb;
  results integer;
  before  text := current_setting('lock_timeout');
  due     timestamptz := 'infinity';
  waiting interval := (request.options ->> 'arm_timeout')::interval;
begin
  if waiting is not null and not is_planned then
    due := clock_timestamp() + waiting;
    -- An arm that waits for a lock must leave time for the others.
    if before = '0' or before::interval > waiting / 4 then
      perform set_config('lock_timeout', ceil(extract(epoch from waiting) * 250)::text, true);
    end if;
  end if;
  loop
    hits := '{}';
    reports := '{}';
    arms := '{}';
    are_named := false;
    for arm in
      select a.arm as name, a.finds, a.certain_at, 'names' = any (a.needs) as has_named,
             a.needs = '{names}' as is_graph,
             pgrecall_internal._skip_reason(request, a, known) as reason,
             case when 'embedding' = any (a.needs) then known end as note
      from   pgrecall.arms() as a
      order  by a.place
    loop
      began := clock_timestamp();
      reached := '{}';
      report := null;
      report.arm := arm.name;
      report.status := 'skipped';
      report.reason := coalesce(
        arm.reason,
        case when began >= due then 'the arms before it took longer than arm_timeout' end);
      if report.reason is null then
        if is_explained then
          scans := pgrecall_internal._index_scans();
        end if;
        -- A broken arm must not take the others with it. Invalid input is reported to the caller; a
        -- transaction failure (class 40, also a conflict on a standby) is the caller's to retry.
        begin
          if is_naming and arm.has_named and not are_named then
            hits := pgrecall_internal._named_hits(request, hits);
            are_named := true;
          end if;
          if arm.is_graph and arms <> '{}' then
            request.found := arms;
          end if;
          result := pgrecall_internal._arm_result(arm.name, request, hits, is_planned);
          if not result.is_run then
            report.reason := result.reason;
          elsif is_planned then
            report.status := 'planned';
            report.reason := case when request.arms is null then result.reason else 'asked for' end;
          else
            report.status := 'ran';
            report.reason := nullif(concat_ws('; ', request.note, result.reason, arm.note), '');
            report.hint := result.hint;
            if result.memory_ids <> '{}' then
              reached := array(select h from pgrecall_internal._arm_hits(arm.name, result) as h);
              arms := arms || (
                arm.name, arm.finds, arm.is_graph, arm.certain_at, result.scores[1],
                result.scores[cardinality(result.scores)],
                coalesce(result.scores[11], 0), result.background)::pgrecall_internal.arm_found;
            end if;
            if are_named then
              reached := pgrecall_internal._named_hits(request, reached);
            end if;
          end if;
        exception when others then
          if sqlstate like 'RC%' or sqlstate like '40%' or sqlstate in ('22023', '57014') then
            raise;
          end if;
          report.status := 'failed';
          report.reason := sqlerrm;
          report.hint := format('Run pgrecall.%s_arm() alone to see the error.', arm.name);
          raise warning using
            errcode = '01RC1',
            message = format('the %s arm failed and was left out: %s', arm.name, sqlerrm),
            hint    = report.hint;
        end;
        if is_explained then
          select string_agg(i.key, ', ' order by i.key) into report.indexes
          from   jsonb_each(pgrecall_internal._index_scans()) as i
          where  i.value is distinct from scans -> i.key;
        end if;
      end if;
      if arm.note is not null and (request.options ->> 'known_words')::double precision <= 0.35 then
        report.hint := coalesce(report.hint, pgrecall_internal._other_model_hint());
      end if;
      if not is_planned then
        report.rows := cardinality(reached);
        report.best_score := (reached[1]).score;
        report.milliseconds := extract(epoch from clock_timestamp() - began) * 1000;
      end if;
      if cardinality(reached) > 0 then
        hits := hits || reached;
      end if;
      reports := reports || report;
    end loop;
    if is_naming and not are_named then
      hits := pgrecall_internal._named_hits(request, hits);
    end if;
    exit when is_planned
           or request.fact_types = request.all_types;
    -- Too few results: run again without narrowing.
    select count(distinct h.memory_id) into results
    from   unnest(hits) as h
    join   pgrecall.arms() as a on a.arm = h.arm
    where  a.finds = 'memory';
    exit when results >= (request.options ->> 'widen_below')::integer;
    request.note := format('widened: %s results were fewer than %s', results,
                           request.options ->> 'widen_below');
    request.fact_types := request.all_types;
  end loop;
  if waiting is not null then
    perform set_config('lock_timeout', before, true);
  end if;
end;
$$;
comment on function pgrecall_internal._run is
'Runs the arms in order; returns their hits, a report of each, and the arms that found something. '
'Hinted types narrow the search, unless too little is found. An arm that fails is left out with '
'warning 01RC1; an arm that would begin after arm_timeout is left out with a reason. is_planned: '
'only reports what would run. It is longer than 100 lines because one step of its loop is one arm: '
'a function of its own for that step would be entered eight times.';
