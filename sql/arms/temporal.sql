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

create or replace function pgrecall_internal._temporal_search(
  request pgrecall_internal.request, out memory_ids bigint[], out scores double precision[])
language plpgsql stable parallel safe
set search_path from current
set jit = off
as $$
declare
  during_at tstzrange;
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
        cross  join lateral (
          -- 1 inside the window, falling from 0.9 to 0 at the end of the slack on either side.
          select case
            -- Facts that begin, end or lie in the window precede those that only span it.
            when u.occurred && $5 then
              case when (lower(u.occurred) < lower($5) or lower(u.occurred) = '-infinity')
                    and (upper(u.occurred) > upper($5) or upper(u.occurred) = 'infinity')
                   then 0.5 else 1 end
            when u.occurred << $5
              then 0.9 - 0.9 * date_part('epoch', lower($5) - upper(u.occurred)) / 259200
            else 0.9 - 0.9 * date_part('epoch', lower(u.occurred) - upper($5))
                             / date_part('epoch', $8)
          end as proximity
        ) as p
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
        pgrecall_internal._slack_after(during_at), (request.bank).low_cosine,
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
