create or replace function pgrecall._fuse(
  hits pgrecall.arm_hit[], weights jsonb, k integer, by_score boolean)
returns table (memory_id bigint, rank integer, score double precision, arms jsonb)
language sql immutable parallel safe
begin atomic
  select f.memory_id, rank() over (order by f.score desc)::integer, f.score, f.arms
  from (
    select c.memory_id,
           sum(c.contribution) as score,
           jsonb_object_agg(c.arm, jsonb_build_object(
             'rank', c.rank, 'score', c.score, 'contribution', c.contribution)) as arms
    from (
      select h.arm, h.memory_id, h.rank, h.score,
             coalesce((weights ->> h.arm)::double precision, 1) / (k + h.rank)
             * case when by_score and max(h.score) over (partition by h.arm) > 0
                 then greatest(h.score, 0) / max(h.score) over (partition by h.arm)
                 else 1
               end as contribution
      from   unnest(hits) as h
    ) as c
    where  c.contribution > 0
    group  by c.memory_id
  ) as f
  order  by f.score desc, f.memory_id desc;
end;
comment on function pgrecall._fuse(pgrecall.arm_hit[], jsonb, integer, boolean) is
'Worker of rrf() and score_rrf().';

create or replace function pgrecall.rrf(
  hits pgrecall.arm_hit[], weights jsonb default '{}', k integer default 60)
returns table (memory_id bigint, rank integer, score double precision, arms jsonb)
language sql immutable parallel safe
begin atomic
  select f.memory_id, f.rank, f.score, f.arms from pgrecall._fuse(hits, weights, k, false) as f;
end;
comment on function pgrecall.rrf(pgrecall.arm_hit[], jsonb, integer) is
'Weighted reciprocal rank fusion (Cormack, Clarke and Buettcher 2009): score = sum over arms of '
'weight / (k + rank). '
'Equal scores share a rank. arms holds rank, score and contribution per arm; contributions add up '
'to the score. '
'A weight not given is 1; an arm of weight 0 has no say.';

create or replace function pgrecall.score_rrf(
  hits pgrecall.arm_hit[], weights jsonb default '{}', k integer default 60)
returns table (memory_id bigint, rank integer, score double precision, arms jsonb)
language sql immutable parallel safe
begin atomic
  select f.memory_id, f.rank, f.score, f.arms from pgrecall._fuse(hits, weights, k, true) as f;
end;
comment on function pgrecall.score_rrf(pgrecall.arm_hit[], jsonb, integer) is
'Reciprocal rank fusion that knows how good a rank is: score = sum over arms of weight * (score / '
'best score of the arm) / (k + rank). '
'The rest as rrf().';
