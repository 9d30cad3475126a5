-- Why a memory is not in an answer: why_not() follows one memory or message through a recall.
--
-- The recall runs as in hybrid_recall(). The steps are those of a recall: whether the memory itself
-- is out of reach (it has ended, its type, the filter), each arm, the fusion, the answer. An arm
-- that missed the memory is called a second time for that memory alone, with the seeds of the run.
-- The score that it then gives is compared with that of the last hit of the arm, whatever the size
-- of the bank. No arm is named here; what is said of an arm follows from its row in arms().
create or replace function pgrecall_internal._failing_condition(
  bank text, memory_id bigint, condition jsonb)
returns jsonb
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  part   jsonb;
  failed jsonb;
  passes boolean;
begin
  if condition ->> 0 = 'and' then
    for part in select c.value from jsonb_array_elements(condition - 0) as c loop
      failed := pgrecall_internal._failing_condition(bank, memory_id, part);
      exit when failed is not null;
    end loop;
    return failed;
  end if;
  -- The text of the filter does not become part of the statement: see values/filter.sql.
  execute format(
    'select exists (select from pgrecall.memory m'
    ' where m.bank_id = $1 and m.memory_id = $4 and %s)', pgrecall_internal._filter_sql(condition))
  into  passes
  using bank, null::timestamptz, condition, memory_id;
  return case when not passes then condition end;
end;
$$;
comment on function pgrecall_internal._failing_condition is
'The first part of a filter that a memory does not meet. Null: it meets all.';

create or replace function pgrecall_internal._invisible_reason(
  request pgrecall_internal.request, memory pgrecall.memory)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  failed jsonb;
begin
  if pgrecall_internal._is_hidden(memory.valid_from, memory.valid_to, memory.corrections) then
    return format('its source, "%s", is in quarantine', memory.source_id);
  elsif memory.valid_from > request.as_of then
    return format('it is known from %s on, when it was stored or, where that is earlier, its '
                  'mentioned_at; the recall is as of %s', memory.valid_from, request.as_of);
  elsif memory.valid_to <= request.as_of then
    return format('it ended at %s: %s', memory.valid_to, concat_ws(' ',
      case pgrecall_internal._ended_by(memory.memory_id, memory.corrections)
        when 'supersede' then 'it was superseded'
        when 'update' then 'it was updated'
        when 'consolidate' then 'it was merged'
        when 'retain' then 'a newer fact replaced it'
        else case when memory.superseded_by is null then 'it expired'
                  else 'a newer fact replaced it' end
      end, 'by ' || memory.superseded_by));
  elsif memory.fact_type <> all (request.all_types) then
    return format('its type is %s, and asked for is %s', memory.fact_type,
                  coalesce(nullif(array_to_string(request.all_types, ', '), ''), 'none'));
  end if;
  failed := pgrecall_internal._failing_condition(
    memory.bank_id, memory.memory_id, request.filter);
  return format('it does not meet %s', left(failed::text, 200)) where failed is not null;
end;
$$;
comment on function pgrecall_internal._invisible_reason is
'Why a memory itself is out of reach of a recall; null: it is not.';

create or replace function pgrecall_internal._missed_step(
  request pgrecall_internal.request, arm pgrecall.arm, memory_id bigint, hits pgrecall.arm_hit[])
returns pgrecall.recall_step
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  step      pgrecall.recall_step := (arm.arm, 'missed', null, null, null);
  bank      pgrecall.bank := request.bank;
  floor     double precision := (request.options ->> 'similarity_floor')::double precision;
  is_vector boolean := arm.needs && '{embedding,hypothetical}';
  is_word   boolean := 'terms' = any (arm.needs);
  hit_count bigint;
  worst     double precision;
  before    pgrecall.arm_hit[];
  alone     pgrecall_internal.arm_result;
begin
  if is_vector and not exists (
    select from pgrecall.embedding e
    where  e.bank_id = bank.bank_id and e.memory_id = _missed_step.memory_id
      and  e.model = coalesce(bank.embedding_model, ''))
  then
    step.reason := 'it has no embedding of the model of the bank';
    return step;
  elsif is_word and pgrecall_internal._recheck_lexemes(
          bank, arm.finds, array[memory_id], request.lexemes) = '{}' then
    step.reason := 'it has no word of the query';
    return step;
  end if;
  -- Behind depth are only hits about whom the query names.
  select count(*) filter (where h.arm = arm.arm and h.rank <= request.depth),
         min(h.score) filter (where h.arm = arm.arm and h.rank <= request.depth),
         array_agg((h.arm, h.memory_id, h.rank, h.score, h.named, h.via,
                    h.background)::pgrecall.arm_hit
                   order by h.n) filter (where a.place < arm.place)
  into   hit_count, worst, before
  from   unnest(hits) with ordinality
           as h(arm, memory_id, rank, score, named, via, background, n)
  join   pgrecall.arms() as a on a.arm = h.arm;
  -- Alone it competes with nothing, so only its score counts.
  if arm.finds = 'memory' then
    request.filter := jsonb_build_array('=', 'memory_id', memory_id);
    request.visible_sql := pgrecall_internal._visible_sql(request.filter);
    request.fact_types := request.all_types;
    request.options := request.options
                       || '{"similarity_floor": -1, "exact_limit": 9000000000000000}';
    alone := (pgrecall_internal._call_arm(
      arm.arm, request, coalesce(before, '{}'), false)).result;
    step.score := alone.scores[array_position(alone.memory_ids, memory_id)];
  end if;
  step.reason := case
    when step.score is null and is_word and (request.phrases <> '{}' or request.excluded <> '{}')
      then 'a phrase that it lacks, or a word that it must not have, keeps it out'
    when step.score is null and hit_count = 0 then 'the arm found nothing'
    when step.score is null then format('it is none of the %s that the arm leads to', hit_count)
    when is_vector and step.score < floor
      then format('its similarity is below similarity_floor, %s', floor)
    when step.score <= worst
      then format('the arm found %s with a score of at least %s', hit_count,
                  round(worst::numeric, 4))
    else 'an approximate search passed it by'
  end;
  return step;
end;
$$;
comment on function pgrecall_internal._missed_step is
'Why an arm that ran did not find a memory within reach of the recall, and the score that the arm '
'gives to the memory alone; null: none. hits: those of all arms.';

create or replace function pgrecall_internal._answer_steps(
  request pgrecall_internal.request, memory_id bigint, hits pgrecall.arm_hit[], source_id text)
returns setof pgrecall.recall_step
language plpgsql stable parallel unsafe rows 2
set search_path from current
as $$
declare
  options jsonb := request.options;
  skip    integer := (options ->> 'skip')::integer;
  top_k   integer := request.top_k;
  least   double precision := (options ->> 'min_relevance')::double precision;
  fused   record;
  answer  pgrecall.recalled[];
  place   integer;
  likely  double precision;
begin
  options := jsonb_set(options, '{weights}', pgrecall_internal._doubted_weights(
    options, request.found));
  select f.* into fused
  from (
    select u.*, count(*) over () as others
    from   pgrecall_internal._fuse(
             pgrecall_internal._ungated(hits, options -> 'gates'), request.found,
             options -> 'weights', (options ->> 'rrf_k')::integer, options ->> 'fusion',
             (options ->> 'named_boost')::double precision) as u
  ) as f
  where  f.memory_id = _answer_steps.memory_id;
  if not found then
    return query
    select s.step, s.status, null::integer, null::double precision,
           case when exists (select from unnest(hits) as h
                             where h.memory_id = _answer_steps.memory_id)
             then 'only arms below their gates found it' else 'no arm found it' end
    from  (values ('fusion', 'missed'), ('answer', 'left out')) as s(step, status);
    return;
  end if;
  return query values ('fusion', 'found', fused.rank, fused.score, format('of %s', fused.others));

  -- The whole order, of which the answer is a part.
  request.top_k := cardinality(hits);
  request.options := options || '{"skip": 0}';
  answer := pgrecall_internal._answer(request, hits);
  place := (select a.rank from unnest(answer) as a where a.memory_id = _answer_steps.memory_id);
  likely := pgrecall_internal._relevance(
    fused.arms, (request.memory_terms).idf_sum, request.embedding is not null);
  return query values (
    'answer',
    case when place > skip and place <= skip + top_k then 'returned' else 'left out' end,
    place, fused.score,
    case
      when place <= skip then format('an earlier page has it: skip is %s', skip)
      when place > skip + top_k
        then format('of %s; the answer ends at %s', cardinality(answer), skip + top_k)
      when place is not null then format('of %s', cardinality(answer))
      when pgrecall_internal._trust(pgrecall_internal._sources(request.bank), source_id) = 0
        then format('the trust in its source, "%s", is 0', source_id)
      when likely < least
        then format('its relevance is %s, and min_relevance %s', round(likely::numeric, 4), least)
      else format('a better row has its source_id, "%s", and collapse is set', source_id)
    end);
end;
$$;
comment on function pgrecall_internal._answer_steps is
'The steps of why_not() after the arms: the place of the memory in the fusion and in the answer. '
'hits: those of all arms. source_id: that of the memory.';

create or replace function pgrecall_internal._why_not(
  request pgrecall_internal.request, asked_id bigint)
returns setof pgrecall.recall_step
language plpgsql stable parallel unsafe rows 14
set search_path from current
as $$
declare
  run     record;
  hits    pgrecall.arm_hit[];
  kind    text := 'memory';
  memory  pgrecall.memory;
  message pgrecall.message;
  reason  text;
  arm     pgrecall.arm;
  hit     pgrecall.arm_hit;
  report  pgrecall.arm_report;
begin
  select m.* into memory
  from   pgrecall.memory m
  where  m.bank_id = (request.bank).bank_id and m.memory_id = asked_id;
  if not found then
    select t.* into message
    from   pgrecall.message t
    where  t.bank_id = (request.bank).bank_id and t.message_id = asked_id;
    if not found then
      perform pgrecall_internal._check_memory((request.bank).bank_id, asked_id);
    end if;
    kind := 'message';
  end if;
  run := pgrecall_internal._run(request, false);
  hits := run.hits;
  request.found := run.arms;
  reason := case
    when kind = 'memory' then pgrecall_internal._invisible_reason(request, memory)
    when request.filter is not null then 'a filter is about memories, and it is a message'
    when message.sent_at > request.as_of
      then format('it was sent at %s, and the recall is as of %s', message.sent_at, request.as_of)
  end;
  if reason is null and memory.fact_type <> all (request.fact_types)
     and not exists (select from unnest(hits) as h where h.memory_id = asked_id)
  then
    reason := format('its type is %s, and the recall was narrowed: %s', memory.fact_type,
                     request.note);
  end if;
  if reason is not null then
    return query values
      ('reach', 'left out', null::integer, null::double precision, reason),
      ('answer', 'left out', null, null, reason);
    return;
  end if;
  return query values ('reach', 'found', null::integer, null::double precision, null::text);
  for arm in select a.* from pgrecall.arms() as a where a.finds = kind order by a.place loop
    select r.* into report
    from   unnest(pgrecall_internal._gated_reports(
             run.reports, run.hits, request.options -> 'gates')) as r
    where  r.arm = arm.arm;
    select h.* into hit from unnest(hits) as h where h.arm = arm.arm and h.memory_id = asked_id;
    return query
    select s.*
    from   (select arm.arm, case when report.status = 'ran' then 'found' else report.status end,
                   hit.rank, hit.score,
                   case when report.status <> 'ran' then report.reason end
            where  hit.memory_id is not null or report.status <> 'ran') as s
    union all
    select m.*
    from   pgrecall_internal._missed_step(request, arm, asked_id, hits) as m
    where  hit.memory_id is null and report.status = 'ran';
  end loop;
  return query
  select s.*
  from   pgrecall_internal._answer_steps(
           request, asked_id, hits, coalesce(memory.source_id, message.session_id)) as s;
end;
$$;
comment on function pgrecall_internal._why_not is
'Worker of why_not(). Errors: RC010 unknown memory.';

create or replace function pgrecall.why_not(
  bank       text,
  query      text,
  memory_id  bigint,
  embedding  anycompatible default null::text,
  during     pgrecall_internal.period default null,
  fact_types text[] default null,
  tags       text[] default null,
  filter     text default null,
  top_k      bigint default 10,
  as_of      timestamptz default now(),
  model      text default null,
  options    jsonb default '{}')
returns setof pgrecall.recall_step
language plpgsql volatile parallel unsafe rows 14
set search_path from current
as $$
begin
  return query
  select s.*
  from   pgrecall_internal._why_not(
           pgrecall_internal._request(
             bank, query, pgrecall_internal._to_halfvec(embedding),
             pgrecall_internal._range_of_period(during), fact_types, tags, filter, top_k, as_of,
             model, options),
           memory_id) as s;
end;
$$;
comment on function pgrecall.why_not is
'Why a memory or message is not in the answer to a query, or its place there: a row for each step '
'of the recall, in order. The memory itself may be out of reach; each arm found it at a rank, or '
'missed it for a reason; the fusion gives it a place; the answer returns it, or leaves it out for '
'a reason. An arm that missed the memory is called for it alone, and score is what the arm then '
'gives it. Takes a little longer than a recall. Other arguments and errors as hybrid_recall(), and '
'RC010 unknown memory.';
