-- The semantic arm: memories whose embeddings are nearest to that of the query, by cosine.
--
-- A bank is searched exactly, through the btree on bank, type and model, until there is a partial
-- HNSW index of all its vectors, as index_plan() proposes it; then that index is used where it is
-- cheaper. More candidates are read than needed, because ended memories, and several questions of
-- one memory, take places: a fifth more by index, where each one costs, twice as many exactly, by
-- signs or leading elements five times, 100 at least. Where a filter leaves too few, the search is
-- exact, up to option exact_limit. A memory with anticipated questions, or with parts, counts once,
-- by its best vector.

-- A hub is a vector that is near all questions, as the mean of many questions is. Facts lie apart
-- from questions. Where the cosine of a fact with the direction of questions exceeds the median of
-- the bank by more than five standard deviations, four times the excess is taken off its
-- similarity. The deviation is 1.48 times the distance from the median to the quartile farther from
-- questions, which hubs in the sample move little. Of 8,500 facts measured, three have an excess. A
-- vector just below this limit is not lowered, nor is one that is near a single question.
create or replace function pgrecall_internal._lower_hubs(
  bank pgrecall.bank, direction halfvec, most double precision, floor double precision,
  inout memory_ids bigint[], inout scores double precision[])
language plpgsql stable parallel safe
set search_path from current
set enable_seqscan = off
as $$
declare
  hubs     bigint[];
  excesses double precision[];
begin
  select array_agg(c.memory_id), array_agg(c.excess)
  into   hubs, excesses
  from (
    select e.memory_id, 1 - (e.embedding <=> direction) - most as excess
    from   pgrecall.embedding e
    where  e.bank_id = bank.bank_id and e.memory_id = any (_lower_hubs.memory_ids)
      and  e.model = bank.embedding_model and e.kind = 'text'
  ) as c
  where c.excess > 0;
  if hubs is not null then
    select coalesce(array_agg(c.id order by c.score desc, c.id desc), '{}'),
           coalesce(array_agg(c.score order by c.score desc, c.id desc), '{}')
    into   memory_ids, scores
    from (
      select u.id, u.score - 4 * coalesce(h.excess, 0) as score
      from   unnest(_lower_hubs.memory_ids, _lower_hubs.scores) as u(id, score)
      left   join unnest(hubs, excesses) as h(id, excess) on h.id = u.id
    ) as c
    where c.score >= floor;
  end if;
end;
$$;
comment on function pgrecall_internal._lower_hubs is
'Hits of the semantic arm, best first, after the excess of hubs is taken off their scores. most: '
'the highest cosine with direction that has no excess.';

create or replace function pgrecall_internal._semantic_search(
  request   pgrecall_internal.request,
  embedding halfvec,
  is_exact  boolean default false,
  out memory_ids bigint[],
  out scores     double precision[],
  out background double precision,
  out note       text,
  out hint       text)
language plpgsql stable parallel unsafe
set search_path from current
set jit = off
-- Each branch has one right plan, which must not depend on statistics.
set enable_seqscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
set hnsw.ef_search = 100
set hnsw.iterative_scan = relaxed_order
set hnsw.max_scan_tuples = 20000
as $$
declare
  bank        pgrecall.bank := request.bank;
  filter      jsonb := request.filter;
  depth       integer := request.depth;
  searched    text := coalesce(bank.embedding_model, '');  -- the model
  floor       double precision := (request.options ->> 'similarity_floor')::double precision;
  named_boost double precision := (request.options ->> 'named_boost')::double precision;
  low         double precision := bank.low_cosine;
  high        double precision := bank.high_cosine;
  exact_limit bigint := (request.options ->> 'exact_limit')::bigint;
  -- Candidates by signs or leading elements are compared again.
  fetched     bigint := greatest(
    100, depth * case bank.vector_search when 'full' then 1 else 5 end);
  is_whole    boolean := request.is_whole and request.fact_types = request.all_types;
  hnsw        record;
  needed      bigint;
  counted     bigint;
  by_index    boolean := false;
  unused      text;
  statement   text;
  found_ids   bigint[];
  kinds       text[];
  distances   double precision[];
  horizon     double precision;
  is_short    boolean;
  are_several boolean;
  about       pgrecall_internal.memories_about := request.about;
  direction   halfvec := case when bank.embedding_mean is null then
    pgrecall_internal._question_direction(bank.embedding_model, bank.embedding_dimensions) end;
  most        double precision;
begin
  memory_ids := '{}';
  scores := '{}';
  if bank.embedding_dimensions is null or request.fact_types = '{}' then
    return;
  end if;
  if not is_exact then
    hnsw := pgrecall_internal._hnsw_index(bank);
    if hnsw.index_name is not null then
      -- An index candidate costs about as much as 20 sequential comparisons, and some are of types
      -- that are not searched. Their share is that among 64 memories from all over the bank.
      needed := ceil(sqrt(20.0 * fetched * hnsw.elements));
      counted := hnsw.elements * case when is_whole then 1 else (
        select coalesce(avg((s.fact_type = any (request.fact_types))::integer), 0)
        from (
          select min(x.memory_id) as first, max(x.memory_id) - min(x.memory_id) + 1 as ids
          from   pgrecall.memory x
          where  x.bank_id = bank.bank_id
        ) as r
        cross  join generate_series(1, 64) as n
        cross  join lateral (
          select m.fact_type
          from   pgrecall.memory m
          where  m.bank_id = bank.bank_id
            and  m.memory_id >= r.first + abs(hashint8extended(n, 0) % r.ids)
          order  by m.memory_id
          limit  1
        ) as s) end;
      by_index := counted >= needed;
      if not by_index then
        unused := format('by index from %s vectors on',
                         case when is_whole then 20 * fetched else needed end);
      end if;
    end if;
  end if;
  if filter is null and bank.vector_search = 'full' then
    -- Leaves room for ended memories, which are removed afterwards; with a filter, the search
    -- itself leaves them out.
    fetched := fetched * case when by_index then 1.2 else 2 end;
  end if;
  if by_index then
    perform set_config('hnsw.ef_search',
                       coalesce(request.options ->> 'ef_search', least(1000, fetched)::text), true),
            set_config('hnsw.max_scan_tuples',
                       greatest(fetched, least(20000, hnsw.elements / 20))::text, true);
  end if;

  loop
    is_short := false;
    if filter is null and not by_index then
      -- The usual search: a static statement, planned once a session. Equal types, rather than any
      -- of them, leave the planner one index, whatever it takes the bank for.
      select array_agg(n.memory_id) filter (where n.score >= floor),
             array_agg(n.score) filter (where n.score >= floor), bool_or(n.kind <> 'text'),
             case when count(*) = fetched then
               pgrecall_internal._similarity(1 - max(n.distance), low, high) end
      into   memory_ids, scores, are_several, horizon
      from (
        select x.memory_id, x.kind, x.distance,
               pgrecall_internal._similarity_of(x.kind, x.distance, low, high) as score
        from   unnest(request.fact_types) as t(fact_type)
        cross  join lateral (
          select e.memory_id, e.kind, e.embedding <=> _semantic_search.embedding as distance
          from   pgrecall.embedding e
          where  e.bank_id = bank.bank_id and e.fact_type = t.fact_type and e.model = searched
          offset 0
        ) as x
        order  by x.distance, x.memory_id desc
        limit  fetched
      ) as n;
      if are_several then
        select array_agg(u.id order by u.score desc, u.id desc),
               array_agg(u.score order by u.score desc, u.id desc)
        into   memory_ids, scores
        from (
          select x.id, max(x.score) as score
          from   unnest(memory_ids, scores) as x(id, score)
          group  by x.id
        ) as u;
      end if;
      memory_ids := coalesce(memory_ids, '{}');
      scores := coalesce(scores, '{}');
    else
      statement := case when by_index then
        -- The inner order is by the indexed expression, whose dimensions are a constant. Whole
        -- vectors rerank its candidates.
        format(
          $sql$
            select n.memory_id, n.kind, n.embedding <=> $5 as distance
            from (
              select e.memory_id, e.kind, e.embedding
              from   pgrecall.embedding e
              where  e.bank_id = $1 and e.model = $6 and %s %s %s
              order  by %s %s %s
              limit  $7
            ) as n
          $sql$,
          pgrecall_internal._hnsw_scope('hashtextextended($1, 0)', 'hashtextextended($6, 0)'),
          case when not is_whole then 'and e.fact_type = any ($8)' end,
          case when filter is not null then format(
            'and (select true from pgrecall.memory m
                  where m.bank_id = $1 and m.memory_id = e.memory_id and %s)',
            request.visible_sql) end,
          pgrecall_internal._vector_key(bank, bank.embedding_dimensions, 'e.embedding'),
          case bank.vector_search when 'binary' then '<~>' else '<=>' end,
          pgrecall_internal._vector_key(bank, bank.embedding_dimensions, '$5'))
      else
        -- Memories are filtered first and then joined to their vectors.
        pgrecall_internal._union_all(format(
          $sql$
            select m.memory_id, e.kind, e.embedding <=> $5 as distance
            from   pgrecall.memory m
            -- No condition on fact_type that an index has: the planner might read all by it.
            cross  join lateral (
              select v.kind, v.embedding from pgrecall.embedding v
              where  v.bank_id = $1 and v.memory_id = m.memory_id and v.model = $6
                and  coalesce(v.fact_type, '') <> ''
            ) as e
            where  m.bank_id = $1 and m.fact_type = {fact_type} and %s
            order  by 3
            limit  $7
          $sql$, request.visible_sql), request.fact_types)
      end;
      execute format(
        'select array_agg(f.memory_id), array_agg(f.kind), array_agg(f.distance) '
        'from (select * from (%s) as u order by u.distance, u.memory_id desc limit $7) as f',
        statement)
      into  found_ids, kinds, distances
      using bank.bank_id, request.as_of, filter, depth, embedding, searched, fetched,
            request.fact_types;

      -- Who filled the limit may hold more below the worst score (horizon). An index that returned
      -- fewer gave up early; with a filter, depth rows are enough.
      counted := coalesce(cardinality(found_ids), 0);
      horizon := pgrecall_internal._similarity(1 - distances[fetched], low, high);
      is_short := by_index and counted < case when filter is null then fetched else depth end
                  and coalesce(pgrecall_internal._similarity(
                    1 - distances[counted], low, high) >= floor, true);
      -- The search is then exact, unless the bank exceeds exact_limit.
      if is_short and hnsw.elements <= exact_limit then
        by_index := false;
        continue;
      end if;

      select coalesce(array_agg(f.memory_id), '{}'), coalesce(array_agg(f.score), '{}')
      into   memory_ids, scores
      from (
        select u.memory_id,
               max(pgrecall_internal._similarity_of(u.kind, u.distance, low, high)) as score
        from   unnest(found_ids, kinds, distances) as u(memory_id, kind, distance)
        group  by u.memory_id
        having max(pgrecall_internal._similarity_of(u.kind, u.distance, low, high)) >= floor
        order  by 2 desc, 1 desc
      ) as f;
    end if;
    if filter is null
       and not pgrecall_internal._are_visible(request, memory_ids[1:depth])
    then
      select coalesce(array_agg(memory_ids[p.place] order by p.n), '{}'),
             coalesce(array_agg(scores[p.place] order by p.n), '{}')
      into   memory_ids, scores
      from   unnest(pgrecall_internal._visible_places(request, memory_ids, depth))
               with ordinality as p(place, n);
    end if;
    memory_ids := memory_ids[1:depth];
    scores := scores[1:depth];
    -- Fetch more where ended memories, or many questions or parts of one memory, took the places of
    -- others.
    exit when horizon is null or horizon <= coalesce(scores[depth], floor);
    fetched := case when by_index then 2 else 10 end * fetched;
  end loop;

  if about.memory_ids is not null then
    -- By the query without names, which say nothing about what is asked of those they name. The
    -- best of these facts is then as near as the best by the whole query.
    select coalesce(array_agg(u.id order by u.score desc, u.id desc), '{}'),
           coalesce(array_agg(u.score order by u.score desc, u.id desc), '{}')
    into   memory_ids, scores
    from (
      select x.id, max(x.score) as score
      from (
        select f.id, f.score
        from   unnest(memory_ids, scores) as f(id, score)
        where  request.about_vector is null or f.id <> all (about.memory_ids)
        union all
        (select n.id, n.score
         from (
           select a.id, max(a.weight) as weight,
                  coalesce(
                    max(a.nameless) + max(max(a.score)) over () - max(max(a.nameless)) over (),
                    max(a.score)) as score
           from (
             select w.id, w.weight, null::double precision as score,
                    null::double precision as nameless
             from   unnest(about.memory_ids, about.weights) as w(id, weight)
             union all
             -- Vectors are read in one scan: one for each memory takes four times as long.
             select e.memory_id, null,
                    pgrecall_internal._similarity_of(
                      e.kind, e.embedding <=> _semantic_search.embedding, low, high),
                    pgrecall_internal._similarity_of(
                      e.kind, e.embedding <=> request.about_vector, low, high)
             from   pgrecall.embedding e
             where  e.bank_id = bank.bank_id and e.memory_id = any (about.memory_ids)
               and  e.model = searched
               and  array_position(request.fact_types, e.fact_type) is not null
           ) as a
           group  by a.id
         ) as n
         order  by n.score * (1 + named_boost * n.weight) desc nulls last
         limit  case when request.about_vector is null then (depth + 1) / 2 else depth end)
      ) as x
      where  x.score >= floor
      group  by x.id
    ) as u;
  end if;

  -- In less than half a sample, the best hits are too large a part. In the order of the index by
  -- fact type, no more rows are read than sampled, however few a type has.
  select case when count(*) >= 50 then
           greatest(floor, percentile_cont(0.75) within group (order by s.score)) end,
         case when count(*) >= 50 then
           1 - percentile_cont(0.5) within group (order by s.from_questions)
           + 7.4 * (percentile_cont(0.75) within group (order by s.from_questions)
                    - percentile_cont(0.5) within group (order by s.from_questions)) end
  into   background, most
  from (
    select pgrecall_internal._similarity(
             1 - (s.embedding <=> _semantic_search.embedding), low, high) as score,
           s.embedding <=> direction as from_questions
    from   unnest(request.fact_types) as t(fact_type)
    cross  join lateral (
      select e.fact_type, e.model, e.embedding
      from   pgrecall.embedding e
      where  e.bank_id = bank.bank_id
        and  e.fact_type >= t.fact_type  -- what the index needs to be considered
        and  (e.fact_type, e.model) >= (t.fact_type, coalesce(bank.embedding_model, ''))
      order  by e.fact_type, e.model
      limit  100
    ) as s
    where  s.fact_type = t.fact_type and s.model = coalesce(bank.embedding_model, '')
    limit  100
  ) as s;
  if most is not null then
    select h.memory_ids, h.scores
    into   memory_ids, scores
    from   pgrecall_internal._lower_hubs(bank, direction, most, floor, memory_ids, scores) as h;
  end if;
  note := concat_ws('; ', case when by_index then 'by ' || hnsw.index_name else 'exactly' end,
                    unused, case when is_short then 'short of what passes' end);
  if is_short then
    hint := format('To compare all that pass the filter: select pgrecall.configure_bank(%L, '
                   '''{"exact_limit": %s}'');', bank.bank_id, 2 * hnsw.elements);
    raise warning using
      errcode = '01RC2',
      message = format('the search of bank "%s" gave up before it had enough', bank.bank_id),
      hint    = hint;
  end if;
end;
$$;
comment on function pgrecall_internal._semantic_search is
'Hits of the semantic arms, nearest first. background: the similarity that a quarter of a sample '
'of 100 vectors reaches; null where there are fewer than 50. note: the access path. is_exact: '
'without the index. hint, and warning 01RC2: the index gave up before enough candidates passed the '
'filter. It is longer than 100 lines because its statement is built once and run again exactly or '
'with a larger limit.';

create or replace function pgrecall_internal._has_rare_identifier(
  lexemes text[], terms pgrecall_internal.terms, most integer)
returns boolean
language plpgsql immutable parallel safe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
begin
  return exists (
    select from unnest(lexemes) as l
    -- A digit behind a letter, an underscore, or a dot between two letters or digits and as many:
    -- E-47821, is_ready, posting.py; not 3rd, 401k, well-known or U.S. Or three numbers and more
    -- between dots: 2.12.2. Or a number that is no year and not round, where few have it: issue
    -- 9291. But no date and no thousands: 2026-03-05, 15.03.2026 or 1.250.000.
    cross  join lateral (select l ~ '^(?!(19|20)[0-9]{2}$)(?![0-9]*00$)[0-9]{3,}$') as x(is_number)
    where  (x.is_number
            or l ~ '[a-z].*[0-9]|_|[a-z0-9]{2}\.(?![0-9]+$)[a-z0-9]{2}|^[0-9]+(\.[0-9]+){2,}$')
      and  l !~ '^([0-9]{1,2}\.[0-9]{1,2}\.(19|20)[0-9]{2}|(19|20)[0-9]{2}(\.[0-9]{1,2}){2})$'
      and  l !~ '^[0-9]{1,3}(\.[0-9]{3}){1,2}$'
      and  terms.counts[array_position(terms.dimensions, pgrecall_internal._dimension(l))]
           between 1 and greatest(1, least(
             case when x.is_number then 10 else most end, terms.documents / 20)));
end;
$$;
comment on function pgrecall_internal._has_rare_identifier is
'Whether one of the lexemes has the form of an identifier, and at most a twentieth of the '
'memories, and no more than most, or ten where it is a number, have it.';

create or replace function pgrecall_internal._semantic_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  result pgrecall_internal.arm_result;
  search record;
begin
  result.is_run := (request.bank).embedding_dimensions is not null
                   and request.embedding is not null;
  if not result.is_run then
    result.reason := 'the bank holds no embeddings';
  elsif is_planned then
    result.reason := 'an embedding is given';
  else
    search := pgrecall_internal._semantic_search(request, request.embedding);
    result.memory_ids := search.memory_ids;
    result.scores := search.scores;
    -- Embeddings hardly tell identifiers apart.
    result.background := case
      when pgrecall_internal._has_rare_identifier(
             request.lexemes, request.memory_terms, request.depth)
        then 'infinity' else search.background end;
    result.reason := search.note;
    result.hint := search.hint;
  end if;
  return result;
end;
$$;
comment on function pgrecall_internal._semantic_arm is 'Worker of the semantic arm.';

create or replace function pgrecall.semantic_arm(
  bank       text,
  embedding  anycompatible,
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null)
returns setof pgrecall.ranked
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select * from pgrecall_internal._ranked('semantic', pgrecall_internal._request(
    bank, '', pgrecall_internal._to_halfvec(embedding), fact_types => fact_types,
    filter => filter, as_of => as_of, model => model,
    options => jsonb_build_object('depth', depth), arm => 'semantic'));
end;
$$;
comment on function pgrecall.semantic_arm is
'Memories nearest in meaning. score is the cosine similarity, -1 to 1, on the scale that '
'calibrate_bank() set, and not below the bank''s option similarity_floor. With the packaged model, '
'what makes a fact near to every question is taken off. A memory with anticipated questions counts '
'once, by its best vector. A bank with an index, see index_plan(), is searched by it where that is '
'faster. Warning 01RC2: the index gave up before enough memories passed the filter. '
'Errors: RC001, RC004, RC005, RC006, RC008, RC011, 22023.';

create or replace function pgrecall_internal._hypothetical_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  result pgrecall_internal.arm_result;
begin
  request.embedding := request.hypothetical;
  request.about_vector := null;
  result := pgrecall_internal._semantic_arm(request, before, is_planned);
  if is_planned and result.is_run then
    result.reason := 'a hypothetical answer is given';
  end if;
  return result;
end;
$$;
comment on function pgrecall_internal._hypothetical_arm is 'Worker of the hypothetical arm.';

create or replace function pgrecall.hypothetical_arm(
  bank       text,
  embedding  anycompatible,
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null)
returns setof pgrecall.ranked
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select * from pgrecall.semantic_arm(bank, embedding, fact_types, filter, as_of, depth, model);
end;
$$;
comment on function pgrecall.hypothetical_arm is
'The semantic arm for the embedding of a made-up answer (HyDE, Gao et al. 2022). Errors: as '
'semantic_arm().';
