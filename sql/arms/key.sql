-- The key arm: memories whose fact_key occurs in the query, the strongest signal.
--
-- A key is compared as a whole, in any case and Unicode form: every run of one to five words of the
-- query is looked up in the index on keys, and so is the whole query. Words end at spaces and, in a
-- second reading, at signs within them that identifiers seldom have, as in "node.js's" and
-- "pool.size=30", and before the number of a line or version, as in "posting.py:42". A name with a
-- number is also looked up as others write it: "ADR 31" is adr-31. A longer key is more specific,
-- so its length is the score.
create or replace function pgrecall_internal._key_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- The cached plan must use the index on keys.
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
  result pgrecall_internal.arm_result;
  asked  text := lower(request.query);
  signs  constant text :=  -- of the second reading
    '(?<=[^[:space:]])[^[:alnum:][:space:]._+#@/$%~:-]+(?=[[:alnum:]_])|'
    '(?<=[[:alpha:]])(?::l?|@v?|#l)(?=[0-9])';
  numbered constant text :=  -- a name with a number, both as wholes
    '(?<![[:alnum:]._+#@/$%~:-])([[:alpha:]]+(?:[._/-][[:alpha:]]+)*)(?:[[:space:]]+|[._#/:-])?'
    '([0-9]+(?:[.-][0-9]+)*)(?![[:alnum:]_+@/$%~]|[._#/:-][[:alnum:]])';
begin
  result.is_run := coalesce((
    select true from pgrecall.memory m
    where  m.bank_id = (request.bank).bank_id and m.fact_key is not null
    order  by lower(pgrecall_internal._normalised(m.fact_key))
    limit  1
  ), false);
  if not result.is_run then
    result.reason := 'no fact of the bank has a key';
    return result;
  elsif is_planned then
    result.reason := 'the bank has facts with keys';
    return result;
  end if;
  with key as (
    select k.key, bool_or(k.is_given) as is_given
    from (
      -- The whole query, and runs of one to five of its words, with and without the punctuation
      -- around them.
      select trim(asked), false
      union all
      select unnest(array[
               w.a, w.a || w.b, w.a || w.b || w.c, w.a || w.b || w.c || w.d,
               w.a || w.b || w.c || w.d || w.e,
               regexp_replace(w.head, '[^[:alnum:]_+#/$%-]+$', ''),
               w.head || w.b_tail, w.head || w.b || w.c_tail, w.head || w.b || w.c || w.d_tail,
               w.head || w.b || w.c || w.d || w.e_tail]), false
      from (
        select left(asked, 2000)
        union all
        select regexp_replace(left(asked, 2000), signs, ' ', 'g') where asked ~ signs
      ) as t(reading)
      cross  join lateral (
        -- spaced: the words, each after a space. heads: without the punctuation before them. tails:
        -- each after a space, without the punctuation behind it.
        select array_agg(x.word order by x.n) as words,
               array_agg(' ' || x.word order by x.n) as spaced,
               array_agg(regexp_replace(x.word, '^[^[:alnum:]._+#@/$~-]+', '') order by x.n)
                 as heads,
               array_agg(' ' || regexp_replace(x.word, '[^[:alnum:]_+#/$%-]+$', '') order by x.n)
                 as tails
        from   unnest((regexp_split_to_array(t.reading, '\s+'))[:200])
                 with ordinality as x(word, n)
      ) as l
      cross  join lateral unnest(
        l.words, l.spaced[2:], l.spaced[3:], l.spaced[4:], l.spaced[5:], l.heads, l.tails[2:],
        l.tails[3:], l.tails[4:], l.tails[5:])
          as w(a, b, c, d, e, head, b_tail, c_tail, d_tail, e_tail)
      union all
      select n.parts[1] || s.sign || n.parts[2], false
      from   regexp_matches(left(asked, 2000), numbered, 'g') as n(parts)
      cross  join unnest(array['', ' ', '-', '.', '_', '#', '/', ':', '@']) as s(sign)
      union all
      select lower(pgrecall_internal._normalised(btrim(x, E' \t\r\n'))), true
      from   jsonb_array_elements_text(case
               when jsonb_typeof(request.options -> 'keys') = 'array'
               then request.options -> 'keys' else '[]' end) as x
    ) as k(key, is_given)
    group  by k.key
  ),
  found as (
    select array_agg(s.memory_id order by s.score desc, s.memory_id desc) as ids,
           array_agg(s.score order by s.score desc, s.memory_id desc) as scores
    from (
      -- Keys named by the call outrank keys that occur in the query.
      select m.memory_id,
             case when k.is_given then 1000 else length(m.fact_key) end::double precision as score
      from   key k
      cross  join lateral (
        -- Only one index provides this range in this order, however small the planner believes the
        -- bank to be.
        select x.memory_id, x.fact_key
        from   pgrecall.memory x
        where  x.bank_id = (request.bank).bank_id and x.fact_key is not null
          and  lower(pgrecall_internal._normalised(x.fact_key)) between k.key and k.key
          -- As of infinity, too, an open end is later.
          and  coalesce(x.valid_to, 'infinity'::timestamptz)
                 > least(request.as_of, '294276-12-31')
        order  by lower(pgrecall_internal._normalised(x.fact_key))
        offset 0
      ) as m
    ) as s
  )
  select coalesce(array_agg(f.ids[p.place] order by p.n), '{}'),
         coalesce(array_agg(f.scores[p.place] order by p.n), '{}')
  into   result.memory_ids, result.scores
  from   found f
  cross  join lateral unnest(pgrecall_internal._visible_places(request, f.ids, request.depth))
           with ordinality as p(place, n);
  return result;
end;
$$;
comment on function pgrecall_internal._key_arm is
'Worker of the key arm: the memories whose key is among the option keys, with score 1,000, and '
'those whose key occurs in the query, the longest first.';

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
'of one to five of the first 200 words, or the whole query. Words end at spaces, and also at signs '
'within them other than ._+#@/$%~:-, so that node.js stands in "node.js''s", and before the number '
'of a line or version: posting.py stands in "posting.py:42". A name with a number may be joined by '
'another sign or space: "ADR 31" is adr-31. score is the length of the key: a longer key is more '
'specific. Errors: RC001, RC008, RC011, 22023.';
