create or replace function pgrecall.temporal_arm(
  bank       text,
  during     tstzrange,
  embedding  halfvec default null,
  fact_types text[] default null,
  filter     jsonb default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
set jit = off
as $$
declare
  searched pgrecall.bank := pgrecall._bank(bank);
  types    text[];
begin
  perform pgrecall._check_embedding(searched, 'embedding', embedding, model);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  types := pgrecall._fact_types(bank, fact_types);
  if during is null or isempty(during) then
    return;
  end if;

  return query execute format(
    $sql$
      with entry as (
        -- proximity: 1 inside the window, falling to 0 a day before and a week after it.
        select u.memory_id,
               case
                 when u.occurred && $5 then 1
                 when u.occurred << $5
                   then 1 - extract(epoch from lower($5) - upper(u.occurred)) / 86400
                 else 1 - extract(epoch from lower(u.occurred) - upper($5)) / 604800
               end * coalesce(0.5 + 0.5 * v.similarity, 1) as score
        from   (%1$s) as u
        left   join lateral (
          select max(1 - (e.embedding <=> $6)) as similarity
          from   pgrecall.embedding e
          where  e.bank_id = $1 and e.memory_id = u.memory_id and e.model = $7
            and  $6 is not null
        ) as v on true
        order  by 2 desc, u.memory_id desc
        limit  $4
      ),
      step as (
        select l.to_id as memory_id, max(0.5 * e.score * l.weight) as score
        from   (select * from entry order by score desc, memory_id desc limit 20) as e
        join   pgrecall.link l
               on l.bank_id = $1 and l.from_id = e.memory_id and l.kind <> 'semantic'
        group  by l.to_id
        union all
        select l.from_id, max(0.5 * e.score * l.weight)
        from   (select * from entry order by score desc, memory_id desc limit 20) as e
        join   pgrecall.link l on l.bank_id = $1 and l.to_id = e.memory_id and l.kind <> 'semantic'
        group  by l.from_id
      ),
      neighbour as (
        select s.memory_id, s.score
        from   step s
        join   pgrecall.memory m on m.bank_id = $1 and m.memory_id = s.memory_id
        where  array_position($8, m.fact_type) is not null and %2$s
      )
      select t.memory_id, row_number() over (order by t.score desc, t.memory_id desc)::integer,
             t.score::double precision
      from (
        select a.memory_id, max(a.score) as score
        from   (select * from entry union all select * from neighbour) as a
        where  a.score > 0
        group  by a.memory_id
      ) as t
      order  by t.score desc, t.memory_id desc
      limit  $4
    $sql$,
    pgrecall._union_all(
      -- The bounds again as scalars, for the btree; the most recent 2,000 at most are weighed.
      $sql$
        select m.memory_id, m.occurred
        from   pgrecall.memory m
        where  m.bank_id = $1 and m.fact_type = {fact_type} and m.occurred is not null
          and  lower(m.occurred) < upper($5) + interval '7 days'
          and  upper(m.occurred) > lower($5) - interval '1 day'
          and  $sql$ || pgrecall._visible_sql(filter) || $sql$
        order  by lower(m.occurred) desc
        limit  2000
      $sql$, types),
    pgrecall._visible_sql(filter)
  )
  using bank, as_of, filter, depth,
        tstzrange(coalesce(lower(during), '-infinity'), coalesce(upper(during), 'infinity'),
                  case when upper_inc(during) then '[]' else '[)' end),
        embedding, coalesce(searched.embedding_model, ''), types;
end;
$$;
comment on function pgrecall.temporal_arm(
  text, tstzrange, halfvec, text[], jsonb, timestamptz, integer, text) is
'Memories that occurred within a window or near it (a day before, a week after), and their '
'neighbours in time and cause at half the score. '
'score = proximity, 0 to 1, times (0.5 + 0.5 similarity) where an embedding is given. Errors: '
'RC001, RC004, RC005, RC006, RC008, RC011, 22023.';
