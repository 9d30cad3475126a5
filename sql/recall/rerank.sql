-- Reranking: joins the fused scores of hits with the relevance that a reranker gives their texts.
-- The driver passes the relevances of late interaction or of a cross-encoder; any client may pass
-- its own. No table is read.
create or replace function pgrecall.rerank(
  hits       pgrecall.recalled[],
  relevances double precision[],
  boosts     double precision[] default '{}',
  mode       text default 'blend')
returns setof pgrecall.reranked
language plpgsql immutable parallel safe rows 50
set search_path from current
as $$
declare
  is_blend boolean := mode = 'blend';
  worth    double precision := case when is_blend
    then (select greatest(0, least(1, (stddev_pop(r) - 0.05) / 0.01)) from unnest(relevances) as r)
    else 1 end;
  odd      double precision;
  highest  double precision := (
    select max(r)
    from   unnest(relevances) with ordinality as u(r, n)
    where  hits[u.n].is_surplus is not true);
  best     double precision := (select nullif(max(h.score), 0) from unnest(hits) as h);
  is_named boolean := exists (
    select
    from   unnest(hits) as h
    cross  join lateral jsonb_each(h.arms) as a
    where  (a.value ->> 'named')::double precision > 0);
  named_states bigint[] := array(select h.variant_of from unnest(hits) as h);
  finals   double precision[];
  ordered  integer[];  -- places, in fused order, of hits with a relevance, by final score
  held     boolean[];  -- whether a hit has a path
  placed   boolean[];  -- whether a hit has its place in the answer
  next     integer := 1;  -- in ordered
  chosen   integer[] := '{}';
begin
  if coalesce(mode not in ('blend', 'replace'), true) then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('mode must be "blend" or "replace", not "%s"', mode),
      hint    = 'With "blend" the fused score counts beside the relevance.';
  end if;
  select r into odd from unnest(relevances) as r where r not between 0 and 1 limit 1;
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('a relevance must be between 0 and 1, not %s', odd),
      hint    = 'Make relevances of logits first, by 1 / (1 + exp(-logit)).';
  end if;
  select b into odd from unnest(boosts) as b where b not between 0 and 1000000 limit 1;
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('a boost must be between 0 and 1000000, not %s', odd),
      hint    = 'It multiplies the score of a row: 1 changes nothing.';
  elsif highest is null or worth = 0 then
    return query
    select h.memory_id, h.ordinality::integer, null::double precision, h.score,
           1::double precision, 0::double precision
    from   unnest(hits) with ordinality as h;
    return;
  end if;

  -- A reranker reads only the text. The part of a score that a key, a time window, a rare name or a
  -- path gave stays.
  with scored as materialized (
    select h.ordinality::integer as place, p.is_led,
           case when is_blend and (h.variant_of is not null or h.memory_id = any (named_states))
             then coalesce(h.variant_of, h.memory_id) else -h.ordinality end as variant,
           case when h.is_surplus is not true then 1 end
           * coalesce(boosts[h.ordinality], 1) * case when is_blend
             then (h.score - s.said * (1 - exp(6 * worth * (relevances[h.ordinality] - highest))))
                  / coalesce(best, 1)
             else relevances[h.ordinality] end as final
    from   unnest(hits) with ordinality as h
    -- An entity that nobody asked about leads to whatever it is in.
    cross  join lateral (
      select h.via is not null
             and (is_named or not h.via ? 'entities' or h.via ?| '{relations,direction}') as is_led
    ) as p
    cross  join lateral (
      select case when not p.is_led then h.score - coalesce(sum(
               (a.value ->> 'contribution')::double precision * case
                 when a.key in ('key', 'temporal') then 1
                 else coalesce((a.value ->> 'named')::double precision, 0) end), 0)
             else 0 end as said
      from   jsonb_each(h.arms) as a
    ) as s
  ),
  -- Other states of one row share its places as before: the first of them gets the best score.
  placed_in as (
    select s.*, row_number() over (partition by s.variant order by s.place) as state,
           row_number() over (partition by s.variant order by s.final desc nulls last) as better
    from   scored s
  )
  select array_agg(b.final order by a.place),
         array_agg(a.place order by b.final desc, a.place) filter (where b.final is not null),
         array_agg(a.is_led and is_blend order by a.place),
         array_agg(false)
  into   finals, ordered, held, placed
  from   placed_in a
  join   placed_in b on b.variant = a.variant and b.better = a.state;
  for place in 1 .. coalesce(cardinality(hits), 0) loop
    if finals[place] is null or held[place] and not placed[place] then
      chosen[place] := place;
    else
      while placed[ordered[next]] loop
        next := next + 1;
      end loop;
      chosen[place] := ordered[next];
    end if;
    placed[chosen[place]] := true;
  end loop;
  return query
  select h.memory_id, c.rank::integer,
         case when finals[c.place] is not null then relevances[c.place] end,
         max(coalesce(finals[c.place], 0)) over (order by c.rank desc),
         case when finals[c.place] is null then 1 else coalesce(boosts[c.place], 1) end, worth
  from   unnest(chosen) with ordinality as c(place, rank)
  join   unnest(hits) with ordinality as h on h.ordinality = c.place
  order  by c.rank;
end;
$$;
comment on function pgrecall.rerank is
'Rows of hybrid_recall(), in its order, reranked by the relevance that a reranker gives their '
'texts: a number from 0 to 1 for each of the first rows, null where there is none. With mode blend '
'the share of the best score is multiplied by e ^ (6 * trust * (relevance - best relevance)), then '
'by the boost, 1 where none is given. trust is how much the relevances say about this question: it '
'grows from 0 to 1 as their standard deviation grows from 0.05 to 0.06. Relevances that lie close '
'together, as those of long texts about one subject, say little; at 0 the fused order stays. A row '
'that a path led to (via) is not lowered, and never falls below its fused place, unless nobody is '
'named and the path is a shared entity alone; nor is the part of a score lowered that a key, a '
'time window or a rare name gave. Rows with variant_of and the row that it names share their '
'places and scores in that order. With mode replace the relevance alone counts. A row without '
'relevance keeps its place, as does one that untrusted_rows or source_rows put behind all others, '
'and rows behind the last relevance stay behind. Errors: 22023 another mode, a relevance outside 0 '
'to 1, a boost outside 0 to 1,000,000.';
