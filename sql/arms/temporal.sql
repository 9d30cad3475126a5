-- The temporal arm: what happened in a window of time or near it.
--
-- It finds the memories whose occurred overlaps the window, or lies up to 3 days before or some
-- days after it (_slack_after()), through the btree on time. With an embedding, similarity also
-- ranks them. A window raises scores; only option time_mode makes it a filter. The graph arm
-- follows links from these memories.
create or replace function pgrecall_internal._slack_after(during tstzrange)
returns interval
language sql immutable parallel safe
-- People report events later: those of a day within a week, those of a month within the next month.
return interval '7 days' + case
  when isfinite(lower(during)) and isfinite(upper(during))
    then least(0.75 * (upper(during) - lower(during)), interval '30 days')
  else interval '0'
end;
comment on function pgrecall_internal._slack_after is
'Slack after a window: 7 days plus three quarters of its length, at most 30 days of that. The '
'slack before a window is 3 days.';

create or replace function pgrecall_internal._proximity(
  occurred tstzrange, during tstzrange, slack interval)
returns double precision
language sql immutable parallel safe
-- Facts that begin, end or lie in the window precede those that only span it.
return case
  when occurred && during then
    case when (lower(occurred) < lower(during) or lower(occurred) = '-infinity')
          and (upper(occurred) > upper(during) or upper(occurred) = 'infinity')
         then 0.5 else 1 end
  when occurred << during
    then 0.9 - 0.9 * date_part('epoch', lower(during) - upper(occurred)) / 259200
  else 0.9 - 0.9 * date_part('epoch', lower(occurred) - upper(during)) / date_part('epoch', slack)
end;
comment on function pgrecall_internal._proximity is
'How near an occurrence is to a window: 1 inside, falling from 0.9 to 0 at the end of the slack on '
'either side, 0.5 where it only spans the window.';

create or replace function pgrecall_internal._occurred_near(
  request pgrecall_internal.request, during tstzrange, slack interval,
  out memory_ids bigint[], out scores double precision[])
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- Each branch has one right plan, which must not depend on statistics.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
  bank      constant text := (request.bank).bank_id;
  low       constant double precision := (request.bank).low_cosine;
  high      constant double precision := (request.bank).high_cosine;
  searched  constant text := coalesce((request.bank).embedding_model, '');
begin
  with near as materialized (
    select u.memory_id, pgrecall_internal._proximity(u.occurred, during, slack) as proximity
    from   unnest(request.fact_types) as t(fact_type)
    cross  join lateral (
      (select m.memory_id, m.occurred
       from   pgrecall.memory m
       where  m.bank_id = bank and m.fact_type = t.fact_type and m.occurred is not null
         and  lower(m.occurred) < upper(during)
         and  upper(m.occurred) > lower(during) - interval '3 days'
         and  m.valid_from <= request.as_of
         and  (m.valid_to is null or m.valid_to > request.as_of)
       order  by lower(m.occurred) desc
       limit  1000)
      union  all
      (select m.memory_id, m.occurred
       from   pgrecall.memory m
       where  m.bank_id = bank and m.fact_type = t.fact_type and m.occurred is not null
         and  lower(m.occurred) >= upper(during) and lower(m.occurred) < upper(during) + slack
         and  m.valid_from <= request.as_of
         and  (m.valid_to is null or m.valid_to > request.as_of)
       order  by lower(m.occurred)
       limit  300)
    ) as u
  ),
  alike as (
    -- Vectors are read in one scan: one for each memory takes four times as long.
    select n.memory_id, max(n.proximity) as proximity, max(n.cosine) as cosine
    from (
      select x.memory_id, x.proximity, null::double precision as cosine
      from   near x
      where  x.proximity > 0
      union all
      select e.memory_id, null, 1 - (e.embedding <=> request.embedding)
      from   pgrecall.embedding e
      where  request.embedding is not null and e.bank_id = bank and e.model = searched
        and  e.fact_type <> ''
        and  e.memory_id = any (array(select x.memory_id from near x where x.proximity > 0))
    ) as n
    group  by n.memory_id
  )
  select array_agg(t.memory_id order by t.score desc, t.memory_id desc),
         array_agg(t.score order by t.score desc, t.memory_id desc)
  into   memory_ids, scores
  from (
    select a.memory_id,
           a.proximity * case when request.embedding is null then 1 else 0.75 + 0.25 * coalesce(
             pgrecall_internal._similarity(a.cosine, low, high), 0) end as score
    from   alike a
    order  by 2 desc, 1 desc
    limit  request.depth
  ) as t;
end;
$$;
comment on function pgrecall_internal._occurred_near is
'As _temporal_search() of a request without a filter, by occurred alone: a statement that is '
'planned once a session, while another one is planned for each recall.';

create or replace function pgrecall_internal._temporal_search(
  request pgrecall_internal.request, out memory_ids bigint[], out scores double precision[])
language plpgsql stable parallel safe
set search_path from current
set jit = off
as $$
declare
  during_at tstzrange;
  slack     interval;
  found     record;
  timed     text;
  branch    text;
begin
  -- A bound in the first 13 or the last 276 years that PostgreSQL can represent becomes infinite,
  -- because the slack might not fit.
  during_at := tstzrange(
    case when lower(request.during) >= '4700-01-01 BC' then lower(request.during)
         else '-infinity' end,
    case when upper(request.during) <= '294000-01-01' then upper(request.during)
         else 'infinity' end,
    case when upper_inc(request.during) then '[]' else '[)' end);
  slack := pgrecall_internal._slack_after(during_at);
  if request.filter is null and request.options ->> 'time_basis' = 'occurred' then
    found := pgrecall_internal._occurred_near(request, during_at, slack);
    memory_ids := found.memory_ids;
    scores := found.scores;
    return;
  end if;

  -- The bounds are repeated as scalars, for the btree. Memories that begin after the window are
  -- read apart, nearest first: in a dense bank they would keep out what happened in the window.
  foreach timed in array case request.options ->> 'time_basis'
    when 'mentioned' then '{occurred,mentioned}' else '{occurred}'::text[] end
  loop
    branch := concat_ws(E'\nunion all\n', branch, replace(replace(replace(replace(
      $sql$
        (select m.memory_id, {range} as occurred
         from   pgrecall.memory m
         where  m.bank_id = $1 and m.fact_type = {fact_type} and m.occurred is {present}
           and  {start} < upper($5) and {end} > lower($5) - interval '3 days'
           and  $sql$ || request.visible_sql || $sql$
         order  by {start} desc
         limit  1000)
        union all
        (select m.memory_id, {range}
         from   pgrecall.memory m
         where  m.bank_id = $1 and m.fact_type = {fact_type} and m.occurred is {present}
           and  {start} >= upper($5) and {start} < upper($5) + $8
           and  $sql$ || request.visible_sql || $sql$
         order  by {start}
         limit  300)
      $sql$,
      '{range}', case timed when 'occurred' then 'm.occurred'
                            else 'tstzrange(m.mentioned_at, m.mentioned_at, ''[]'')' end),
      '{present}', case timed when 'occurred' then 'not null' else 'null' end),
      '{start}', case timed when 'occurred' then 'lower(m.occurred)' else 'm.mentioned_at' end),
      '{end}', case timed when 'occurred' then 'upper(m.occurred)' else 'm.mentioned_at' end));
  end loop;

  execute format(
    $sql$
      with near as (
        select u.memory_id, p.proximity
        from   (%1$s) as u
        cross  join lateral pgrecall_internal._proximity(u.occurred, $5, $8) as p(proximity)
        where  p.proximity > 0
      )
      select array_agg(t.memory_id order by t.score desc, t.memory_id desc),
             array_agg(t.score order by t.score desc, t.memory_id desc)
      from (
        select u.memory_id,
               u.proximity
               * case when $6 is null then 1
                      else 0.75 + 0.25 * coalesce(
                             pgrecall_internal._similarity(u.cosine, $9, $10), 0) end as score
        from   (%2$s) as u
        order  by 2 desc, u.memory_id desc
        limit  $4
      ) as t
    $sql$,
    pgrecall_internal._union_all(branch, request.fact_types),
    case when request.embedding is null
      then 'select n.memory_id, n.proximity, null::double precision as cosine from near n'
    else
      -- All vectors are read in one scan. A scan for each memory takes four times as long.
      $sql$
        select n.memory_id, max(n.proximity) as proximity, max(n.cosine) as cosine
        from (
          select x.memory_id, x.proximity, null::double precision as cosine from near x
          union all
          select e.memory_id, null, 1 - (e.embedding <=> $6)
          from   pgrecall.embedding e
          where  e.bank_id = $1 and e.model = $7 and e.fact_type <> ''
            and  e.memory_id = any (array(select x.memory_id from near x))
        ) as n
        group  by n.memory_id
      $sql$ end
  )
  into  memory_ids, scores
  using (request.bank).bank_id, request.as_of, request.filter, request.depth, during_at,
        request.embedding, coalesce((request.bank).embedding_model, ''),
        slack, (request.bank).low_cosine,
        (request.bank).high_cosine;
end;
$$;
comment on function pgrecall_internal._temporal_search is
'Memories in the time window of a request or near it, best first.';

create or replace function pgrecall_internal._temporal_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  result pgrecall_internal.arm_result;
  search record;
begin
  result.is_run := request.during is not null;
  if is_planned then
    result.reason := 'a time window is given';
  elsif result.is_run and not isempty(request.during) then
    search := pgrecall_internal._temporal_search(request);
    result.memory_ids := search.memory_ids;
    result.scores := search.scores;
  end if;
  return result;
end;
$$;
comment on function pgrecall_internal._temporal_arm is 'Worker of the temporal arm.';

create or replace function pgrecall.temporal_arm(
  bank       text,
  during     pgrecall_internal.period,
  embedding  anycompatible default null::text,
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null,
  time_basis text default 'occurred')
returns setof pgrecall.ranked
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select * from pgrecall_internal._ranked('temporal', pgrecall_internal._request(
    bank, '', pgrecall_internal._to_halfvec(embedding), pgrecall_internal._range_of_period(during),
    fact_types => fact_types, filter => filter, as_of => as_of, model => model,
    options => jsonb_build_object('depth', depth, 'time_basis', time_basis), arm => 'temporal'));
end;
$$;
comment on function pgrecall.temporal_arm is
'Memories that occurred within a window or near it: up to 3 days before; after it up to 7 days and '
'three quarters of its length, at most 30 days of that. time_basis => ''mentioned'' uses '
'mentioned_at where occurred is null. score is the proximity, 1 within the window and 0.9 falling '
'to 0 around it, times (0.75 + 0.25 similarity) where an embedding is given; a memory without one '
'has similarity 0. Errors: RC001, RC004, RC005, RC006, RC008, RC011, 22023.';
