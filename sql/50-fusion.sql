create or replace function pgrecall.rrf(
  hits pgrecall.arm_hit[], weights jsonb default '{}', k integer default 60)
returns table (memory_id bigint, rank integer, score double precision, arms jsonb)
language sql immutable parallel safe
begin atomic
  select f.memory_id, rank() over (order by f.score desc)::integer, f.score, f.arms
  from (
    select h.memory_id,
           sum(c.contribution) as score,
           jsonb_object_agg(h.arm, jsonb_build_object(
             'rank', h.rank, 'score', h.score, 'contribution', c.contribution)) as arms
    from   unnest(hits) as h
    cross  join lateral (
      select coalesce((weights ->> h.arm)::double precision, 1) / (k + h.rank)
    ) as c(contribution)
    where  c.contribution > 0
    group  by h.memory_id
  ) as f
  order  by f.score desc, f.memory_id desc;
end;
comment on function pgrecall.rrf(pgrecall.arm_hit[], jsonb, integer) is
'Weighted reciprocal rank fusion (Cormack, Clarke and Buettcher 2009): score = sum over arms of weight / (k + rank). '
'Equal scores share a rank. arms holds rank, score and contribution per arm; contributions add up to the score. '
'A weight not given is 1; an arm of weight 0 has no say.';
