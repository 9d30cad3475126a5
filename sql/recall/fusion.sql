-- Fusion: merges the rankings of the arms.
--
-- rrf() adds weight / (k + rank) over the arms, score_rrf() counts the score of a hit beside its
-- rank, linear() adds normalised scores. fuse() applies the fusion of a recall to hits: gates leave
-- out arms whose best score is too low, then one of the three functions joins the rest, with the
-- weights of the arms and the boost for memories that mention an entity named in the query. With
-- arm_hits() a caller can try other rankings of the same hits.
--
-- Every fused row has the contribution of each arm. The contributions add up to the score.
create or replace function pgrecall_internal._fuse(
  hits pgrecall.arm_hit[], arms pgrecall_internal.arm_found[], weights jsonb, k integer,
  fusion text, named_boost double precision default 0, kept integer default null)
returns setof pgrecall.fused
language sql immutable parallel safe
begin atomic
  with arm as materialized (
    select f.arm, coalesce((weights ->> f.arm)::double precision, 1) as weight, f.worst, f.best,
           greatest(f.best, f.certain_at) as certain
    from   unnest(arms) as f
  ),
  contributed as materialized (
    select h.arm, h.memory_id, h.rank, h.score, h.via,
           case when h.named > 0.167 and named_boost > 0
             then named_boost * (h.named - 1 / 6.0) / (1 + named_boost * h.named) end as named,
           a.weight * (1 + named_boost * coalesce(h.named, 0))
           * case fusion
               when 'linear' then
                 case when a.best > a.worst then (h.score - a.worst) / (a.best - a.worst) else 1 end
               when 'score_rrf' then
                 case when a.certain > 0 then greatest(h.score, 0) / a.certain else 1 end
                 / (k + h.rank)
               else 1.0 / (k + h.rank)
             end as contribution
    from   unnest(hits) as h
    join   arm a on a.arm = h.arm
    where  a.weight > 0
  ),
  fused as (
    select c.memory_id, sum(c.contribution) as score, rank() over best_first as rank,
           max(c.score) filter (where c.arm = 'lexical') as words,
           first_value(max(c.score) filter (where c.arm = 'lexical')) over best_first as best_words
    from   contributed c
    group  by c.memory_id
    window best_first as (order by sum(c.contribution) desc)
  )
  -- jsonb is the most expensive part: it is built only for the rows that are kept.
  select f.memory_id, f.rank::integer, f.score,
         jsonb_object_agg(c.arm, case
           when c.via is null and c.named is null then jsonb_build_object(
             'rank', c.rank, 'score', c.score, 'contribution', c.contribution)
           else jsonb_build_object(
                  'rank', c.rank, 'score', c.score, 'contribution', c.contribution)
                || jsonb_strip_nulls(jsonb_build_object('via', c.via, 'named', c.named)) end)
  from   fused f
  join   contributed c on c.memory_id = f.memory_id
  -- A condition on the window function alone ends it early.
  where  f.rank <= greatest(coalesce(kept, 2147483647), 40)
    and  (f.rank <= coalesce(kept, 2147483647)
          or abs(f.words - f.best_words) <= 0.3)
  group  by f.memory_id, f.rank, f.score
  order  by f.score desc, f.memory_id desc;
end;
comment on function pgrecall_internal._fuse is
'Worker of the fusions, named by fusion. The contributions to a memory that mentions an entity '
'named in the query are multiplied by 1 + named_boost * named; the share of that which a name gave '
'that says more than the commonest (a sixth) is kept beside them as named, for rerank(). kept: '
'ranks above it are left out, but for those up to 40 that the words do not tell from the best row '
'(see _settled_states()).';

create or replace function pgrecall_internal._checked_hits(hits pgrecall.arm_hit[])
returns pgrecall.arm_hit[]
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  lowest integer := (select min(h.rank) from unnest(hits) as h);
begin
  if lowest < 1 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('hits: a rank must be at least 1, not %s', lowest),
      hint    = 'Pass the rows of arm_hits(), whose ranks begin at 1.';
  end if;
  return hits;
end;
$$;
comment on function pgrecall_internal._checked_hits is
'The hits. Raises 22023 where a rank is below 1.';

create or replace function pgrecall_internal._fused(
  hits pgrecall.arm_hit[], weights jsonb, k integer, fusion text)
returns setof pgrecall.fused
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  perform pgrecall_internal._check_range('k', k, 1, 10000);
  perform pgrecall_internal._check_by_arm('weight', weights, 0, 1000000, is_any_arm => true);
  return query
  select *
  from   pgrecall_internal._fuse(
           pgrecall_internal._checked_hits(hits), pgrecall_internal._arms_found(hits), weights, k,
           fusion);
end;
$$;
comment on function pgrecall_internal._fused is
'_fuse() with all hits, after its arguments are checked. Errors: 22023.';

create or replace function pgrecall.rrf(
  hits pgrecall.arm_hit[], weights jsonb default '{}', k integer default 60)
returns setof pgrecall.fused
language sql immutable parallel safe
begin atomic
  select * from pgrecall_internal._fused(hits, weights, k, 'rrf');
end;
comment on function pgrecall.rrf is
'Weighted reciprocal rank fusion (Cormack, Clarke and Buettcher 2009): score = sum over arms of '
'weight / (k + rank). Equal scores share a rank. arms holds rank, score and contribution per arm; '
'contributions add up to the score. A weight not given is 1; an arm of weight 0 is ignored. '
'Errors: 22023 k not 1 to 10,000, weight not 0 to 1,000,000, a rank below 1.';

create or replace function pgrecall.score_rrf(
  hits pgrecall.arm_hit[], weights jsonb default '{}', k integer default 60)
returns setof pgrecall.fused
language sql immutable parallel safe
begin atomic
  select * from pgrecall_internal._fused(hits, weights, k, 'score_rrf');
end;
comment on function pgrecall.score_rrf is
'Reciprocal rank fusion weighted by score: score = sum over arms of weight * (score / best score '
'of the arm) / (k + rank). The best score is at least certain_at of arms(). A score below 0 counts '
'as 0; an arm whose scores are all 0 or less counts by rank alone. The square root of the score '
'did worse (bench/TRIED.md). Otherwise as rrf().';

create or replace function pgrecall.linear(hits pgrecall.arm_hit[], weights jsonb default '{}')
returns setof pgrecall.fused
language sql immutable parallel safe
begin atomic
  select * from pgrecall_internal._fused(hits, weights, 1, 'linear');
end;
comment on function pgrecall.linear is
'Linear fusion: score = sum over arms of weight * (score - worst score of the arm) / (best score '
'of the arm - worst), whatever the ranks. The worst hit of an arm gets 0 from it and stays in; a '
'single hit, and hits of equal score, get the whole weight. Score / best score did worse '
'(bench/TRIED.md). Otherwise as rrf(), but without k.';

create or replace function pgrecall_internal._ungated(hits pgrecall.arm_hit[], gates jsonb)
returns pgrecall.arm_hit[]
language sql immutable parallel safe
begin atomic
  -- Arms are compared by the ratio of best score to gate.
  with arm as (
    select h.arm, coalesce(max(h.score) / nullif((gates ->> h.arm)::double precision, 0),
                           'infinity') as nearness
    from   unnest(hits) as h
    group  by h.arm
  )
  select array(
    select h
    from   unnest(hits) as h
    join   arm a on a.arm = h.arm and a.nearness >= (select least(1, max(x.nearness)) from arm x));
end;
comment on function pgrecall_internal._ungated is
'The hits of the arms whose best score reaches their gate; where none does, those of the arm with '
'the highest share of its gate.';

create or replace function pgrecall.fuse(hits pgrecall.arm_hit[], options jsonb default '{}')
returns setof pgrecall.fused
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  unusable text;
  named    text[] := '{fusion,rrf_k,weights,gates,named_boost,doubt,known_words}';
  known    double precision;
  given    jsonb;
  arms     pgrecall_internal.arm_found[];
begin
  perform pgrecall_internal._checked_options(coalesce(options, '{}'));
  select k into unusable from jsonb_object_keys(options) as k where k <> all (named);
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('option "%s" is none of a fusion', unusable),
      hint    = format('Options of fuse(): %s.', array_to_string(named, ', '));
  end if;
  given := pgrecall_internal._option_defaults() || jsonb_strip_nulls(coalesce(options, '{}'));
  given := given || jsonb_build_object(
    'weights', pgrecall.default_weights() || coalesce(options -> 'weights', '{}'));
  known := (given ->> 'known_words')::double precision;
  if known < 0.75 then
    given := jsonb_set(
      given, '{weights}', pgrecall_internal._known_weights(given -> 'weights', known));
  end if;
  -- A recall does not run an arm of weight 0, so such an arm cannot be the one that stays.
  hits := array(
    select h from unnest(pgrecall_internal._checked_hits(hits)) as h
    where  (given -> 'weights' ->> h.arm)::double precision > 0
  );
  arms := pgrecall_internal._arms_found(hits);
  return query
  select *
  from   pgrecall_internal._fuse(
           pgrecall_internal._ungated(hits, given -> 'gates'), arms,
           pgrecall_internal._doubted_weights(given, arms),
           (given ->> 'rrf_k')::integer, given ->> 'fusion',
           (given ->> 'named_boost')::double precision);
end;
$$;
comment on function pgrecall.fuse is
'Fuses the hits of arm_hits() as a recall does, best first: options fusion, rrf_k, weights, gates, '
'named_boost, doubt and known_words, as in recall_options(). Equal scores share a rank. Errors: '
'22023, RC009.';

create or replace function pgrecall_internal._checked_half_life(half_life interval, decay text)
returns interval
language plpgsql immutable parallel safe
as $$
begin
  if half_life <= interval '0' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('half_life must be an interval longer than 0, not "%s"', half_life),
      hint    = 'Pass ''30 days'', for example.';
  elsif decay not in ('exponential', 'linear') then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('decay must be "exponential" or "linear", not "%s"', decay),
      hint    = 'With "linear" nothing changes from twice the half-life on.';
  end if;
  return half_life;
end;
$$;
comment on function pgrecall_internal._checked_half_life is
'The half-life. Raises 22023 unless it is above 0, and for an unknown decay.';

create or replace function pgrecall.recency_boost(
  age interval, half_life interval, decay text default 'exponential')
returns double precision
language sql immutable parallel safe
return (
  select 0.9 + 0.2 * case decay
           when 'exponential' then 0.5 ^ least(a.half_lives, 1000)
           else greatest(0, 1 - a.half_lives / 2)
         end
  from (
    select greatest(0, date_part('epoch', age) / date_part(
             'epoch', pgrecall_internal._checked_half_life(half_life, decay)))
           as half_lives
  ) as a
);
comment on function pgrecall.recency_boost is
'Factor for a score by age: 1.1 when new, 1 at the half-life, down to 0.9. decay is exponential, '
'or linear (0.9 from twice the half-life on). Errors: 22023 half_life not above 0, unknown decay.';
