-- The temporal arm: what happened in a window of time or near it.
--
-- It finds the memories whose occurred overlaps the window, or lies up to 3 days before or some
-- days after it (_slack_after()), through the btree on time. A window raises scores; only option
-- time_mode makes it a filter. The graph arm follows links from these memories.
--
-- How much similarity counts among them depends on what the question says besides the time. "Which
-- team did Sidwell play for in 2002?" is answered by few facts, which are far more similar than
-- others: then other facts of 2002 are no answers. "What was said on 5 March?" is as near to
-- the eleventh fact as to the first, and the window decides. Then names tell facts of the window
-- apart, or where there is none, a little of their similarity. Without an embedding words tell how
-- similar a fact is.
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

create or replace function pgrecall_internal._nearness(sent_at timestamptz, during tstzrange)
returns double precision
language sql immutable parallel safe
return case when during is null then 1
  else 1 + greatest(0, pgrecall_internal._proximity(
    tstzrange(sent_at, sent_at, '[]'), during, pgrecall_internal._slack_after(during))) end;
comment on function pgrecall_internal._nearness is
'How often a message counts that was sent near a window: twice inside, falling to once at the end '
'of the slack on either side; once without a window.';

create or replace function pgrecall_internal._temporal_sql(
  time_basis text, visible_sql text, fact_types text[])
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  -- The bounds are repeated as scalars, for the btree. Memories that begin after the window are
  -- read apart, nearest first: in a dense bank they would keep out what happened in the window.
  branch constant text := (
    select string_agg(
             format(
               $sql$
                 (select m.memory_id, %1$s as occurred
                  from   pgrecall.memory m
                  where  m.bank_id = $1 and m.fact_type = {fact_type} and m.occurred is %4$s
                    and  %2$s < upper($5) and %3$s > lower($5) - interval '3 days'
                    and  %5$s
                  order  by %2$s desc
                  limit  greatest(1000, $4))
                 union all
                 (select m.memory_id, %1$s
                  from   pgrecall.memory m
                  where  m.bank_id = $1 and m.fact_type = {fact_type} and m.occurred is %4$s
                    and  %2$s >= upper($5) and %2$s < upper($5) + $8
                    and  %5$s
                  order  by %2$s
                  limit  greatest(300, $4))
               $sql$,
               v.range, v.start, v.finish, v.present, visible_sql),
             E'\nunion all\n')
    from (
      values ('m.occurred', 'lower(m.occurred)', 'upper(m.occurred)', 'not null'),
             ('tstzrange(m.mentioned_at, m.mentioned_at, ''[]'')', 'm.mentioned_at',
              'm.mentioned_at', 'null')
    ) as v(range, start, finish, present)
    where  v.present = 'not null' or time_basis = 'mentioned');
begin
  return format(
    $sql$
      with near as materialized (
        select u.memory_id, p.proximity
        from (
          %s
          union all
          -- No index has this condition on types, so that these are read by their ids.
          select m.memory_id, %s
          from   pgrecall.memory m
          where  m.bank_id = $1 and m.memory_id = any ($11)
            and  array_position(%s, m.fact_type) is not null
        ) as u
        cross  join lateral pgrecall_internal._proximity(u.occurred, $5, $8) as p(proximity)
        where  p.proximity > 0
      ),
      alike as (
        -- Vectors are read in one scan: one for each memory takes four times as long.
        select n.memory_id, max(n.proximity) as proximity, max(n.similarity) as similarity
        from (
          select x.memory_id, x.proximity, null::double precision as similarity
          from   near x
          union all
          select w.memory_id, null, w.score
          from   unnest($11, $14) as w(memory_id, score)
          union all
          select e.memory_id, null,
                 pgrecall_internal._similarity_of(e.kind, e.embedding <=> $6, $9, $10)
          from   pgrecall.embedding e
          where  $6 is not null and e.bank_id = $1 and e.model = $7
            and  coalesce(e.fact_type, '') <> ''
            and  e.memory_id = any (array(select x.memory_id from near x))
        ) as n
        group  by n.memory_id
        having max(n.proximity) > 0
      ),
      scored as materialized (
        select s.memory_id,
               s.proximity * (1 - $13 + $13 * coalesce(
                 (s.similarity / greatest($12, max(s.similarity) over ()))
                 ^ case when $6 is null then 2 else 3 end, 0))
                 as score
        from (
          select a.memory_id, a.proximity, nullif(greatest(0, a.similarity), 0) as similarity
          from   alike a
        ) as s
      )
      select array_agg(t.memory_id order by t.score desc, t.memory_id desc),
             array_agg(t.score order by t.score desc, t.memory_id desc)
      from (
        (select s.* from scored s order by s.score desc, s.memory_id desc limit $4)
        union
        (select s.*
         from   scored s
         where  s.memory_id in (select unnest($11))
         order  by s.score desc, s.memory_id desc
         limit  ($4 + 1) / 2)
      ) as t
    $sql$,
    case when fact_types is null
      then format('select x.* from unnest($3) as t(fact_type) cross join lateral (%s) as x',
                  replace(branch, '{fact_type}', 't.fact_type'))
    else pgrecall_internal._union_all(branch, fact_types) end,
    case time_basis when 'occurred' then 'm.occurred'
      else 'coalesce(m.occurred, tstzrange(m.mentioned_at, m.mentioned_at, ''[]''))' end,
    case when fact_types is null then '$3' else format('%L::text[]', fact_types) end);
end;
$$;
comment on function pgrecall_internal._temporal_sql is
'The search of a window as SQL: bank $1, as_of $2, filter $3, depth $4, window $5, embedding $6, '
'model $7, slack $8, low and high cosine $9 and $10, memories with the words of the query and '
'those about whom it names $11: of these half of depth are returned, too; best similarity $12, '
'share of similarity $13; similarities by words of the first of $11 $14, null with an embedding. '
'Without fact_types, $3 holds these.';

-- The search without a filter, by occurred alone, is planned once a session, any other for each
-- recall.
do $do$
begin
  execute format(
    $sql$
      create or replace function %s(
        bank text, as_of timestamptz, fact_types text[], depth integer, during tstzrange,
        embedding halfvec, model text, slack interval, low double precision, high double precision,
        about bigint[], best double precision, share double precision, words double precision[])
      returns table (memory_ids bigint[], scores double precision[])
      language plpgsql stable parallel safe rows 1
      set search_path from current
      set jit = off
      -- Each branch has one right plan, which must not depend on statistics.
      set enable_seqscan = off
      set enable_bitmapscan = off
      set enable_sort = off
      set plan_cache_mode = force_generic_plan
      as %L
    $sql$,
    'pgrecall_internal._occurred_near',
    format('begin return query %s; end;', pgrecall_internal._temporal_sql(
      'occurred', pgrecall_internal._visible_sql(null), null)));
end;
$do$;
comment on function pgrecall_internal._occurred_near is
'_temporal_sql() of a request without a filter, by occurred alone.';

create or replace function pgrecall_internal._temporal_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel safe
set search_path from current
set jit = off
as $$
declare
  result pgrecall_internal.arm_result;
  bank   constant pgrecall.bank := request.bank;
  model  constant text := coalesce(bank.embedding_model, '');
  during tstzrange := request.during;
  about  bigint[];
  words  double precision[];
  best   double precision;
  share  double precision;
  least_share constant double precision := case when request.named = '{}' then 0.1 else 0 end;
begin
  result.is_run := during is not null;
  if is_planned then
    result.reason := 'a time window is given';
  end if;
  if is_planned or during is null or isempty(during) then
    return result;
  end if;
  -- What has the words is looked up as well: of a wide window the arm reads the latest alone.
  select array_agg(w.memory_id order by w.place), array_agg(w.score / w.best order by w.place), 1,
         (0.7 - case when count(*) > 10
                  then min(w.score) filter (where w.place <= 11) / max(w.best) else 0 end) / 0.2
  into   about, words, best, share
  from  (select h.memory_id, h.score, max(h.score) over () as best,
                row_number() over (order by h.rank) as place
         from   unnest(before) as h
         where  h.arm = 'lexical') as w
  where  w.place <= 50
  having count(*) > 0;
  if request.embedding is not null then
    words := null;
    select max(h.score), (max(h.score) - min(h.score) filter (where h.rank <= 11) - 0.1) / 0.1
    into   best, share
    from   unnest(before) as h
    where  h.arm = 'semantic'
    having count(*) > 10;
  end if;
  about := about || (request.about).memory_ids;
  if share > least_share then
    share := least(share, 0.9);
  else
    best := null;
    share := case when request.embedding is null and words is null then 0 else least_share end;
  end if;
  -- A bound in the first 13 or the last 276 years that PostgreSQL can represent becomes infinite,
  -- because the slack might not fit.
  during := tstzrange(
    case when lower(during) >= '4700-01-01 BC' then lower(during) else '-infinity' end,
    case when upper(during) <= '294000-01-01' then upper(during) else 'infinity' end,
    case when upper_inc(during) then '[]' else '[)' end);
  if request.filter is null and request.options ->> 'time_basis' = 'occurred' then
    select n.memory_ids, n.scores
    into   result.memory_ids, result.scores
    from   pgrecall_internal._occurred_near(
             bank.bank_id, request.as_of, request.fact_types, request.depth, during,
             request.embedding, model, pgrecall_internal._slack_after(during), bank.low_cosine,
             bank.high_cosine, about, best, share, words) as n;
  else
    execute pgrecall_internal._temporal_sql(
      request.options ->> 'time_basis', request.visible_sql, request.fact_types)
    into    result.memory_ids, result.scores
    using   bank.bank_id, request.as_of, request.filter, request.depth, during, request.embedding,
            model, pgrecall_internal._slack_after(during), bank.low_cosine, bank.high_cosine, about,
            best, share, words;
  end if;
  return result;
end;
$$;
comment on function pgrecall_internal._temporal_arm is
'Worker of the temporal arm: memories in the time window of a request or near it, best first.';

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
'to 0 around it, times 1 - s + s (similarity / the best similarity) ^ 3 where an embedding is '
'given; a memory without one has similarity 0. s is 0.1; in a recall it is 0 where the query names '
'an entity, and grows to 0.9 as the similarity of the semantic arm falls by 0.1 to 0.19 up to its '
'eleventh hit: then the best is that of the bank, else that of the window. A recall without an '
'embedding takes the square of the score of the lexical arm, as a share of the best, for that '
'power, and s grows as this share falls by 0.3 to 0.48. Errors: RC001, RC004, RC005, RC006, RC008, '
'RC011, 22023.';
