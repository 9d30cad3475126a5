create or replace function pgrecall.key_arm(
  bank       text,
  query      text,
  fact_types text[] default null,
  filter     jsonb default null,
  as_of      timestamptz default now(),
  depth      integer default 100)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql stable parallel safe rows 10
set search_path from current
set jit = off
set enable_sort = off
as $$
declare
  types  text[];
  asked  text;
  words  text[];
  keys   text[];
  ids    bigint[];
  scores double precision[];
begin
  perform pgrecall._bank(bank);
  perform pgrecall._check_text('query', query);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  types := pgrecall._fact_types(bank, fact_types);
  asked := lower(pgrecall._normalised(query));
  words := regexp_split_to_array(left(asked, 2000), '\s+');
  -- The whole query, and runs of one to five words, with and without the punctuation around them.
  keys := array(
    select trim(asked)
    union
    select k.key
    from   generate_series(1, least(cardinality(words), 200)) as f(first),
           generate_series(0, 4) as n(n),
           array_to_string(words[f.first : f.first + n.n], ' ') as r(run),
           unnest(array[
             r.run,
             regexp_replace(
               r.run, '^[^[:alnum:]._+#@/$~-]+|[^[:alnum:]_+#/$%-]+$', '', 'g')
           ]) as k(key)
  );
  execute format(
    $sql$
      select coalesce(array_agg(t.memory_id order by t.score desc, t.memory_id desc), '{}'),
             coalesce(array_agg(t.score order by t.score desc, t.memory_id desc), '{}')
      from   (select u.* from (%s) as u order by u.score desc, u.memory_id desc limit $4) as t
    $sql$,
    pgrecall._union_all(
      $sql$
        select m.memory_id, length(m.fact_key)::double precision as score
        from   unnest($5) as k(key)
        cross  join lateral (
          -- A range and its order have but one index to come from, however small the planner takes
          -- the bank for.
          select x.*
          from   pgrecall.memory x
          where  x.bank_id = $1 and x.fact_key is not null
            and  lower(pgrecall._normalised(x.fact_key)) between k.key and k.key
          order  by lower(pgrecall._normalised(x.fact_key))
          offset 0
        ) as m
        where  m.fact_type = {fact_type} and $sql$ || pgrecall._visible_sql(filter), types)
  )
  into  ids, scores
  using bank, as_of, filter, depth, keys;

  return query
  select u.id, u.n::integer, u.score
  from   unnest(ids, scores) with ordinality as u(id, score, n)
  order  by u.n;
end;
$$;
comment on function pgrecall.key_arm(text, text, text[], jsonb, timestamptz, integer) is
'Memories whose fact_key stands in the query as whole words, in any case and Unicode form: '
'up to five of them among the first 200, or the whole query. score is the length of the key: a '
'longer one says more. '
'Errors: RC001, RC008, RC011, 22023.';
