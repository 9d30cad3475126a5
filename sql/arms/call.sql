-- How an arm is called: by name, from the run of a recall or alone.
create or replace function pgrecall_internal._arm_hits(
  arm text, result pgrecall_internal.arm_result)
returns pgrecall.arm_hit[]
language sql immutable parallel safe
return array(
  -- Equal scores share a rank: the order of storing is no evidence.
  select (arm, u.id, rank() over (order by u.score desc)::integer, u.score, null,
          u.via, (result).background)::pgrecall.arm_hit
  from   unnest((result).memory_ids, (result).scores, (result).vias)
           with ordinality as u(id, score, via, n)
  order  by u.n
);
comment on function pgrecall_internal._arm_hits is
'The result of the worker of an arm as hits with ranks.';

create or replace function pgrecall_internal._call_arm(
  arm text, request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  result pgrecall_internal.arm_result;
begin
  -- Dynamic, so that nothing here names an arm; the name is that of a row of the registry.
  execute format('select * from pgrecall_internal.%I($1, $2, $3)', format('_%s_arm', arm))
  into    result
  using   request, before, is_planned;
  return result;
end;
$$;
comment on function pgrecall_internal._call_arm is 'Calls the worker of an arm.';

create or replace function pgrecall_internal._ranked(
  arm text, request pgrecall_internal.request)
returns setof pgrecall.ranked
language plpgsql stable parallel unsafe rows 100
set search_path from current
as $$
declare
  result pgrecall_internal.arm_result;
begin
  result := pgrecall_internal._call_arm(arm, request, '{}', false);
  return query
  select u.id, rank() over (order by u.score desc)::integer, u.score
  from   unnest(result.memory_ids, result.scores) with ordinality as u(id, score, n)
  order  by u.n;
end;
$$;
comment on function pgrecall_internal._ranked is 'The rows of an arm that is called alone.';
