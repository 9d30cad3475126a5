-- The source arm: other memories of the sources of the best hits, the best source first.
--
-- Text from the same document or conversation often completes a good hit. The arm takes the sources
-- of the 10 best hits of the arms before it, of messages their session, and returns their newest
-- memories. Its weight is 0 unless a bank or a call sets it: where facts are short turns of long
-- conversations, the arm brings more noise than answers.
create or replace function pgrecall_internal._source_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel safe
set search_path from current
set jit = off
as $$
declare
  result pgrecall_internal.arm_result;
begin
  result.is_run := true;
  if is_planned then
    result.reason := 'sources of what the arms before find may hold more';
    return result;
  end if;
  execute format(
    $sql$
      with best as (
        select h.memory_id, min(h.rank) as rank
        from   unnest($5) as h
        group  by h.memory_id
        order  by 2, 1 desc
        limit  10
      ),
      source as (
        select s.source_id, min(b.rank) as rank
        from   best b
        cross  join lateral (
          select x.source_id
          from   pgrecall.memory x
          where  x.bank_id = $1 and x.memory_id = b.memory_id
          union all
          select y.session_id
          from   pgrecall.message y
          where  y.bank_id = $1 and y.message_id = b.memory_id
          limit  1
        ) as s
        group  by s.source_id
      )
      select array_agg(t.memory_id order by t.score desc, t.memory_id desc),
             array_agg(t.score order by t.score desc, t.memory_id desc)
      from (
        select o.memory_id, 1.0::double precision / s.rank as score
        from   source s
        cross  join lateral (
          select m.memory_id
          from   pgrecall.memory m
          where  m.bank_id = $1 and m.source_id = s.source_id
            and  array_position($6, m.fact_type) is not null and %s
          order  by m.memory_id desc
          limit  50
        ) as o
        where  not exists (select from best b where b.memory_id = o.memory_id)
        order  by 2 desc, 1 desc
        limit  $4
      ) as t
    $sql$,
    request.visible_sql)
  into  result.memory_ids, result.scores
  using (request.bank).bank_id, request.as_of, request.filter, request.depth, before,
        request.fact_types;
  return result;
end;
$$;
comment on function pgrecall_internal._source_arm is
'Worker of the source arm. score is 1 / the rank of the best hit of the source.';
