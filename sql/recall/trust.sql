-- Trust in sources: it lowers scores, and limits how many rows of one source come before all
-- others.
--
-- After fusion, the score of a row is multiplied by the trust of its source. Nothing in a text can
-- make up for that: stuffed with words, near every question, the newest, or said by many, a row of
-- trust 0.1 has at most a tenth of the highest possible score. A row that is similar to a row of a
-- more trusted source repeats or denies it, and is lowered a second time, by the ratio of the two
-- trusts. The first untrusted_rows of a source trusted less than 1, and the first source_rows of
-- any source, keep their places; its other rows follow behind all else.
create or replace function pgrecall_internal._is_alike(
  bank pgrecall.bank, distance double precision, lexical_distance double precision)
returns boolean
language sql immutable parallel safe
return coalesce(pgrecall_internal._similarity(
                  1 - distance, (bank).low_cosine, (bank).high_cosine), 0) >= 0.8
       or coalesce(1 - lexical_distance, 0) >= 0.4;
comment on function pgrecall_internal._is_alike is
'Whether two rows say nearly the same, by the cosine distances of their embeddings and of their '
'lexical weights. Null: a row has none.';

create or replace function pgrecall_internal._denied_trust(
  bank pgrecall.bank, ids bigint[], trusts double precision[])
returns double precision[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return array(
    with row as materialized (
      select u.n, u.trust, m.lexical_weights, e.embedding
      from   unnest(ids[1:50], trusts[1:50]) with ordinality as u(id, trust, n)
      cross  join lateral (
        select x.lexical_weights from pgrecall.memory x
        where  x.bank_id = bank.bank_id and x.memory_id = u.id
        limit  1
      ) as m
      left   join lateral (
        select x.embedding from pgrecall.embedding x
        where  x.bank_id = bank.bank_id and x.memory_id = u.id
          and  x.model = coalesce(bank.embedding_model, '')
          and  x.kind = 'text'
        limit  1
      ) as e on true
      where  (select count(distinct t) from unnest(trusts[1:50]) as t) > 1
    ),
    alike as (
      select less.n, max(more.trust) as trust
      from   row less
      join   row more
        on   more.trust > less.trust
        and  pgrecall_internal._is_alike(
               bank, less.embedding <=> more.embedding,
               less.lexical_weights <=> more.lexical_weights)
      group  by less.n
    )
    select u.trust * coalesce(u.trust / a.trust, 1)
    from   unnest(trusts) with ordinality as u(trust, n)
    left   join alike a on a.n = u.n
    order  by u.n);
end;
$$;
comment on function pgrecall_internal._denied_trust is
'The trust of rows, which are in order, best first. Where one of the first 50 is similar to '
'another of them that is trusted more, its trust is multiplied by the ratio of the two.';

create or replace function pgrecall_internal._trusted_order(
  request pgrecall_internal.request, sources jsonb,
  inout ids bigint[], inout scores double precision[], inout shares jsonb[],
  out surplus boolean[])
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  most      integer := (request.options ->> 'untrusted_rows')::integer;
  of_source integer := nullif((request.options ->> 'source_rows')::integer, 0);
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
  weighed as materialized (
    select r.*, pgrecall_internal._source(sources, r.source_id) as source, o.trust
    from   row r
    cross  join lateral (
      select pgrecall_internal._trust(sources, r.source_id) as trust
      offset 0
    ) as o
    where  o.trust > 0
  ),
  trusted as (
    select w.id, w.n, w.share, w.score, d.trust,
           w.trust < 1 and most < row_number() over (
             partition by w.source
             order by w.score * d.trust desc, w.n)
           or w.source_id is not null and of_source < row_number() over (
             partition by w.source_id
             order by w.score * d.trust desc, w.n) is true as is_over
    from (
      select array_agg(x.id order by x.n) as ids, array_agg(x.trust order by x.n) as trusts
      from   weighed x
    ) as a
    cross  join lateral unnest(
             a.ids, pgrecall_internal._denied_trust(request.bank, a.ids, a.trusts)) as d(id, trust)
    join   weighed w on w.id = d.id
  ),
  factor as (
    select t.id, t.n, t.share, t.score, t.is_over, t.trust * case when t.is_over then least(1,
             min(t.score * t.trust) filter (where not t.is_over) over ()
             / nullif(max(t.score * t.trust) filter (where t.is_over) over (), 0) * 0.999)
             else 1 end as factor
    from   trusted t
  )
  select array_agg(f.id order by f.is_over, f.score * f.factor desc, f.n),
         array_agg(f.score * f.factor order by f.is_over, f.score * f.factor desc, f.n),
         array_agg(f.is_over order by f.is_over, f.score * f.factor desc, f.n),
         array_agg(case when f.factor = 1 then f.share else (
           select jsonb_object_agg(a.key, a.value || jsonb_build_object(
                    'contribution', (a.value ->> 'contribution')::double precision * f.factor))
           from   jsonb_each(f.share) as a) end
           order by f.is_over, f.score * f.factor desc, f.n)
  into   ids, scores, surplus, shares
  from   factor f;
end;
$$;
comment on function pgrecall_internal._trusted_order is
'The fused rows with scores and contributions multiplied by _denied_trust(), best first. Rows of '
'trust 0 are left out. surplus: which rows untrusted_rows and source_rows put behind all others.';
