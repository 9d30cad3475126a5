-- The recall family: four views of one run, with the same eleven arguments.
--
-- hybrid_recall() returns the rows, explain_recall() the reports of the arms, recall_report() both,
-- arm_hits() the hits of the arms before fusion. Their signatures and row types never change again:
-- a new setting is an option (recall_options()), a new column is an attribute at the end of its
-- type. The argument types accept what clients send: embedding takes any kind of vector, array or
-- text, during any range or text, filter an expression or JSON.
create or replace function pgrecall.hybrid_recall(
  bank       text,
  query      text,
  embedding  anycompatible default null::text,
  during     pgrecall_internal.period default null,
  fact_types text[] default null,
  tags       text[] default null,
  filter     text default null,
  top_k      bigint default 10,
  as_of      timestamptz default now(),
  model      text default null,
  options    jsonb default '{}')
returns setof pgrecall.recalled
language plpgsql volatile parallel unsafe rows 10
set search_path from current
as $$
begin
  return query
  select h.*
  from   unnest((pgrecall_internal._recall(
           bank, query, pgrecall_internal._to_halfvec(embedding),
           pgrecall_internal._range_of_period(during), fact_types, tags, filter, top_k, as_of,
           model, options)).hits) as h;
end;
$$;
comment on function pgrecall.hybrid_recall is
'The memories of a bank that best answer a query, best first: every arm that applies runs, and '
'fusion joins their hits. Without an embedding all arms but semantic and hypothetical answer. '
'embedding is a halfvec, a vector, an array of numbers, or text such as ''[0.1, 0.2]''. during is '
'a range or text, ''[2026-03-01, 2026-04-01)'', and raises facts that occurred in it; option '
'window is a window by name, ''{"window": "last quarter"}''. tags keeps memories with any of them. '
'filter is a condition, ''confidence > 0.8 and metadata->>''''team'''' = ''''core'''''', or the '
'same as JSON. as_of answers from what was known at an earlier time. model names the model that '
'made the embedding. All else is in options: {"diversity": 0.2}, see recall_options(). A memory '
'that mentions an entity named in the query counts more. Of rows that say nearly the same as the '
'best one, and that the query does not tell apart, the latest comes first (variant_of). A row of '
'kind message is a raw message. Errors: RC001 bank, RC004 dimensions, RC005 model, RC006 vector, '
'RC007 nothing to recall by, RC008 fact type, RC009 arm, RC011 filter, 22023 value out of range.';

create or replace function pgrecall.recall_report(
  bank       text,
  query      text,
  embedding  anycompatible default null::text,
  during     pgrecall_internal.period default null,
  fact_types text[] default null,
  tags       text[] default null,
  filter     text default null,
  top_k      bigint default 10,
  as_of      timestamptz default now(),
  model      text default null,
  options    jsonb default '{}')
returns pgrecall.recall_report
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  run  record;
begin
  run := pgrecall_internal._recall(
    bank, query, pgrecall_internal._to_halfvec(embedding),
    pgrecall_internal._range_of_period(during), fact_types, tags, filter, top_k, as_of, model,
    options);
  return (run.hits, run.arms)::pgrecall.recall_report;
end;
$$;
comment on function pgrecall.recall_report is
'The rows of hybrid_recall() and the reports of explain_recall(), both of one run. Arguments and '
'errors as hybrid_recall().';

create or replace function pgrecall.explain_recall(
  bank       text,
  query      text,
  embedding  anycompatible default null::text,
  during     pgrecall_internal.period default null,
  fact_types text[] default null,
  tags       text[] default null,
  filter     text default null,
  top_k      bigint default 10,
  as_of      timestamptz default now(),
  model      text default null,
  options    jsonb default '{}',
  is_run     boolean default true)
returns setof pgrecall.arm_report
language plpgsql volatile parallel unsafe rows 8
set search_path from current
as $$
begin
  return query
  select a.*
  from   unnest((pgrecall_internal._recall(
           bank, query, pgrecall_internal._to_halfvec(embedding),
           pgrecall_internal._range_of_period(during), fact_types, tags, filter, top_k, as_of,
           model, coalesce(options, '{}') || '{"explain": true}',
           coalesce(is_run, true))).arms) as a;
end;
$$;
comment on function pgrecall.explain_recall is
'Report of each arm for a recall with these arguments: whether it ran, was gated, was skipped or '
'failed, and why; rows found, best score, milliseconds, and indexes scanned (null with '
'track_counts off). is_run => false runs nothing and reports which arms would run (planned); the '
'graph arm may still be skipped when its seeds lead nowhere. Arguments and errors as '
'hybrid_recall().';

create or replace function pgrecall.arm_hits(
  bank       text,
  query      text,
  embedding  anycompatible default null::text,
  during     pgrecall_internal.period default null,
  fact_types text[] default null,
  tags       text[] default null,
  filter     text default null,
  top_k      bigint default 10,
  as_of      timestamptz default now(),
  model      text default null,
  options    jsonb default '{}')
returns setof pgrecall.arm_hit
language plpgsql volatile parallel unsafe rows 300
set search_path from current
as $$
declare
  request pgrecall_internal.request;
begin
  request := pgrecall_internal._request(
    bank, query, pgrecall_internal._to_halfvec(embedding),
    pgrecall_internal._range_of_period(during), fact_types, tags, filter, top_k, as_of, model,
    options);
  -- Whoever tries other weights needs the hits of arms with weight 0, too. With a weight of 1e-9
  -- such an arm runs, but has no say in where the graph arm starts.
  request.options := request.options || jsonb_build_object('weights', (
    select jsonb_object_agg(a.arm, greatest(
             1e-9, coalesce((request.options -> 'weights' ->> a.arm)::double precision, a.weight)))
    from   pgrecall.arms() as a));
  if request.named = '{}' then
    request.named := array(
      select n from pgrecall_internal._named_entities(bank, request.query) as n);
  end if;
  return query
  select h.* from unnest((pgrecall_internal._run(request, false)).hits) as h;
end;
$$;
comment on function pgrecall.arm_hits is
'Hits of each arm for a recall with these arguments, whatever its weight: the input of fuse(). A '
'memory has a row for each arm that found it. Arguments and errors as hybrid_recall().';
