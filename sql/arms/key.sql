-- The key arm: memories whose fact_key occurs in the query, the strongest signal.
--
-- A key is compared as a whole, in any case and Unicode form: every run of one to five words of the
-- query is looked up in the index on keys, and so is the whole query. A longer key is more
-- specific, so its length is the score.
create or replace function pgrecall_internal._key_search(
  request pgrecall_internal.request, out memory_ids bigint[], out scores double precision[])
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- The cached plan must use the index on keys.
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
  asked  text := lower(request.query);
  words  text[] := (regexp_split_to_array(left(asked, 2000), '\s+'))[:200];
  spaced text[];  -- the same, each after a space
  heads  text[];  -- the words without the punctuation before them
  tails  text[];  -- each after a space, without the punctuation behind them
  given  text[];
  keys   text[];
begin
  heads := array(
    select regexp_replace(w.word, '^[^[:alnum:]._+#@/$~-]+', '')
    from   unnest(words) with ordinality as w(word, n)
    order  by w.n);
  spaced := array(
    select ' ' || w.word from unnest(words) with ordinality as w(word, n) order by w.n);
  tails := array(
    select ' ' || regexp_replace(w.word, '[^[:alnum:]_+#/$%-]+$', '')
    from   unnest(words) with ordinality as w(word, n)
    order  by w.n);
  -- The whole query, and runs of one to five of its words, with and without the punctuation around
  -- them.
  keys := array(
    select trim(asked)
    union
    select unnest(array[
             w.a, w.a || w.b, w.a || w.b || w.c, w.a || w.b || w.c || w.d,
             w.a || w.b || w.c || w.d || w.e,
             regexp_replace(w.head, '[^[:alnum:]_+#/$%-]+$', ''),
             w.head || w.b_tail, w.head || w.b || w.c_tail, w.head || w.b || w.c || w.d_tail,
             w.head || w.b || w.c || w.d || w.e_tail])
    from   unnest(words, spaced[2:], spaced[3:], spaced[4:], spaced[5:], heads, tails[2:],
                  tails[3:], tails[4:], tails[5:])
             as w(a, b, c, d, e, head, b_tail, c_tail, d_tail, e_tail)
  );
  -- Keys named by the call outrank keys that occur in the query.
  if jsonb_typeof(request.options -> 'keys') = 'array' then
    given := array(
      select lower(pgrecall_internal._normalised(btrim(k, E' \t\r\n')))
      from   jsonb_array_elements_text(request.options -> 'keys') as k);
    keys := array(select unnest(keys) union select unnest(given));
  end if;
  select array_agg(f.memory_id order by f.score desc, f.memory_id desc),
         array_agg(f.score order by f.score desc, f.memory_id desc)
  into   memory_ids, scores
  from (
    select m.memory_id,
           case when k.key = any (given) then 1000 else length(m.fact_key) end::double precision
             as score
    from   unnest(keys) as k(key)
    cross  join lateral (
      -- Only one index provides this range in this order, however small the planner believes the
      -- bank to be.
      select x.memory_id, x.fact_key
      from   pgrecall.memory x
      where  x.bank_id = (request.bank).bank_id and x.fact_key is not null
        and  lower(pgrecall_internal._normalised(x.fact_key)) between k.key and k.key
        and  coalesce(x.valid_to, 'infinity'::timestamptz) > request.as_of
      order  by lower(pgrecall_internal._normalised(x.fact_key))
      offset 0
    ) as m
  ) as f;
  select coalesce(array_agg(memory_ids[p.place] order by p.n), '{}'),
         coalesce(array_agg(scores[p.place] order by p.n), '{}')
  into   memory_ids, scores
  from   unnest(pgrecall_internal._visible_places(request, memory_ids, request.depth))
           with ordinality as p(place, n);
end;
$$;
comment on function pgrecall_internal._key_search is
'The memories whose key is among the option keys, with score 1,000, and those whose key occurs in '
'the query, the longest first.';

create or replace function pgrecall_internal._key_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  result pgrecall_internal.arm_result;
  search record;
begin
  result.is_run := coalesce((
    select true from pgrecall.memory m
    where  m.bank_id = (request.bank).bank_id and m.fact_key is not null
    order  by lower(pgrecall_internal._normalised(m.fact_key))
    limit  1
  ), false);
  if not result.is_run then
    result.reason := 'no fact of the bank has a key';
  elsif is_planned then
    result.reason := 'the bank has facts with keys';
  else
    search := pgrecall_internal._key_search(request);
    result.memory_ids := search.memory_ids;
    result.scores := search.scores;
  end if;
  return result;
end;
$$;
comment on function pgrecall_internal._key_arm is 'Worker of the key arm.';

create or replace function pgrecall.key_arm(
  bank       text,
  query      text,
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100)
returns setof pgrecall.ranked
language plpgsql volatile parallel unsafe rows 10
set search_path from current
as $$
begin
  return query
  select * from pgrecall_internal._ranked('key', pgrecall_internal._request(
    bank, query, fact_types => fact_types, filter => filter, as_of => as_of,
    options => jsonb_build_object('depth', depth), arm => 'key'));
end;
$$;
comment on function pgrecall.key_arm is
'Memories whose fact_key occurs in the query as whole words, in any case and Unicode form: a run '
'of one to five of the first 200 words, or the whole query. score is the length of the key: a '
'longer key is more specific. Errors: RC001, RC008, RC011, 22023.';
