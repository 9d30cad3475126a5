-- Trust in sources, in the answer: scores by trust, and few rows of one source before all others.
--
-- The score of a row is multiplied by the trust of its source after fusion, so that nothing in a
-- text makes up for it: stuffed with words, near every question, newest, or said by many, a row of
-- trust 0.1 has at most a tenth of the score that the best row can have. Of one source that is
-- trusted less than 1, untrusted_rows keep their place; the others follow behind all else.
create or replace function pgrecall_internal._trusted_order(
  request pgrecall_internal.request, sources jsonb,
  inout ids bigint[], inout scores double precision[], inout shares jsonb[])
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  most integer := (request.options ->> 'untrusted_rows')::integer;
begin
  with row as (
    select u.id, u.score, u.share, u.n, s.source_id
    from   unnest(ids, scores, shares) with ordinality as u(id, score, share, n)
    cross  join lateral (
      select m.source_id
      from   pgrecall.memory m
      where  m.bank_id = (request.bank).bank_id and m.memory_id = u.id
      union  all
      select t.session_id
      from   pgrecall.message t
      where  t.bank_id = (request.bank).bank_id and t.message_id = u.id
      limit  1
    ) as s
  ),
  of_source as materialized (
    select r.source_id, pgrecall_internal._source(sources, r.source_id) as source,
           pgrecall_internal._trust(sources, r.source_id) as trust
    from   row r
    group  by r.source_id
  ),
  trusted as (
    select r.id, r.n, r.share, r.score, o.trust,
           o.trust < 1 and most < row_number() over (
             partition by coalesce(o.source, ''), o.trust < 1
             order by r.score * o.trust desc, r.n) as is_over
    from   row r
    join   of_source o on o.source_id is not distinct from r.source_id
    where  o.trust > 0
  ),
  factor as (
    select t.id, t.n, t.share, t.score, t.trust * case when t.is_over then least(1,
             min(t.score * t.trust) filter (where not t.is_over) over ()
             / max(t.score * t.trust) filter (where t.is_over) over () * 0.999) else 1 end as factor
    from   trusted t
  )
  select array_agg(f.id order by f.score * f.factor desc, f.n),
         array_agg(f.score * f.factor order by f.score * f.factor desc, f.n),
         array_agg(case when f.factor = 1 then f.share else (
           select jsonb_object_agg(a.key, a.value || jsonb_build_object(
                    'contribution', (a.value ->> 'contribution')::double precision * f.factor))
           from   jsonb_each(f.share) as a) end order by f.score * f.factor desc, f.n)
  into   ids, scores, shares
  from   factor f;
end;
$$;
comment on function pgrecall_internal._trusted_order is
'The fused rows with scores and contributions multiplied by the trust of their sources, best '
'first; those of trust 0 are left out.';
