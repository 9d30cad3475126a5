-- Reading memories without a question: by id, as a list, and as the history of a fact.
--
-- stored_memories() returns memories by id, list_memories() pages of those that meet conditions,
-- memory_history() the versions of a fact. All return the same row.
-- A page is found by index: by the primary key, backwards; by the mentions of an entity; by the
-- time of occurrence. Its key is the id, so that a page costs the same wherever it is. The filter
-- is the one of a recall, compiled by values/filter.sql: no text of it enters the statement.
create or replace function pgrecall.stored_memories(bank text, memory_ids bigint[])
returns setof pgrecall.stored_memory
language plpgsql stable parallel safe
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  perform pgrecall_internal._bank(bank);
  return query
  select m.memory_id, m.fact_type, m.text, m.context, m.fact_key, m.source_id, m.tags, m.metadata,
         m.occurred, m.mentioned_at, m.confidence, m.proof_count, m.valid_from, m.valid_to,
         m.superseded_by,
         array(select e.name
               from   pgrecall.mention x
               cross  join lateral (
                 select n.name from pgrecall.entity n
                 where  n.bank_id = stored_memories.bank and n.entity_id = x.entity_id
                 limit  1
               ) as e
               where  x.bank_id = stored_memories.bank and x.memory_id = m.memory_id
               order  by e.name),
         m.created_at,
         case when m.valid_to is not null
           then pgrecall_internal._ended_by(m.memory_id, m.corrections) end,
         null::text[], null::text[], m.written_by
  from   unnest(stored_memories.memory_ids) with ordinality as u(memory_id, n)
  cross  join lateral (
    select x.*
    from   pgrecall.memory x
    where  x.bank_id = stored_memories.bank and x.memory_id = u.memory_id
    limit  1
  ) as m
  order  by u.n;
end;
$$;
comment on function pgrecall.stored_memories is
'Memories by id, in the given order, also those that no longer hold. Ids that the bank does not '
'have are left out. Errors: RC001.';

create or replace function pgrecall_internal._listed_ids(
  bank text, visible text, condition jsonb, fact_types text[], during tstzrange,
  entity_ids bigint[], as_of timestamptz, before_id bigint, top_k integer,
  required integer[] default null, begun integer[] default null)
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  rest   text := format('m.memory_id < $5 and %s order by m.memory_id desc limit $4', visible);
  branch text;
  ids    bigint[];
begin
  if entity_ids is not null then
    branch := '
      select y.memory_id
      from   unnest($6) as e(entity_id)
      cross  join lateral (
        select x.memory_id
        from   pgrecall.mention x
        where  x.bank_id = $1 and x.entity_id = e.entity_id and x.fact_type = {fact_type}
          and  x.memory_id < $5
          and  (select true from pgrecall.memory m
                where m.bank_id = $1 and m.memory_id = x.memory_id and ' || visible || ')
        order  by x.memory_id desc
        limit  $4) as y';
  elsif during is not null then
    branch := '
      (select m.memory_id
       from   pgrecall.memory m
       where  m.bank_id = $1 and m.fact_type = {fact_type} and m.occurred is not null
         and  lower(m.occurred) <= $8 and upper(m.occurred) >= $7 and ' || rest || ')
      union all
      (select m.memory_id
       from   pgrecall.memory m
       where  m.bank_id = $1 and m.fact_type = {fact_type} and m.occurred is null
         and  m.mentioned_at between $7 and $8 and ' || rest || ')';
  elsif fact_types is not null then
    branch := '
      select m.memory_id
      from   pgrecall.memory m
      where  m.bank_id = $1 and m.fact_type = any ($9) and ' || rest;
  else
    branch := 'select m.memory_id from pgrecall.memory m where m.bank_id = $1 and ' || rest;
  end if;
  if entity_ids is not null or during is not null then
    branch := pgrecall_internal._union_all(branch, fact_types);
  end if;
  -- The branches hold names and operators of ours, and literals of fact types: see filter.sql.
  execute format('select array(select distinct f.memory_id from (%s) as f'
                 ' order by f.memory_id desc limit $4)', branch)
  into    ids
  using   bank, as_of, condition, top_k, coalesce(before_id, 9223372036854775807), entity_ids,
          coalesce(lower(during), '-infinity'), coalesce(upper(during), 'infinity'), fact_types,
          required, begun;
  return ids;
end;
$$;
comment on function pgrecall_internal._listed_ids is
'Ids of the latest memories before before_id that meet condition, whose SQL is visible, latest '
'first: one index scan per fact type for a window and for an entity, else one by primary key. '
'required and begun are the dimensions of a condition on words, see find_memories().';

create or replace function pgrecall.list_memories(
  bank       text,
  filter     text default null,
  fact_types text[] default null,
  tags       text[] default null,
  during     pgrecall_internal.period default null,
  entity     text default null,
  as_of      timestamptz default now(),
  before_id  bigint default null,
  top_k      integer default 50)
returns setof pgrecall.stored_memory
language plpgsql stable parallel unsafe rows 50
set search_path from current
as $$
declare
  span       tstzrange;
  condition  jsonb;
  visible    text;
  entity_ids bigint[];
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 100000);
  perform pgrecall_internal._check_elements('tags', tags, 'no condition');
  span := pgrecall_internal._range_of_period(during);
  condition := pgrecall_internal._whole_filter(
    pgrecall_internal._parsed_filter(filter), tags, span,
    '{"time_mode": "filter", "time_basis": "mentioned"}');
  visible := case when as_of is null then pgrecall_internal._filter_sql(condition)
                  else pgrecall_internal._visible_sql(condition) end;
  if entity is not null then
    entity_ids := pgrecall_internal._entities_named(bank, array[entity]);
  end if;
  if fact_types is not null or span is not null or entity is not null then
    fact_types := pgrecall_internal._fact_types(bank, fact_types);
  end if;
  return query
  select s.*
  from   pgrecall.stored_memories(bank, pgrecall_internal._listed_ids(
           bank, visible, condition, fact_types, span, entity_ids, as_of, before_id, top_k)) as s;
end;
$$;
comment on function pgrecall.list_memories is
'Memories that meet all conditions given, latest stored first: a filter as in a recall, fact '
'types, any of these tags, a window in which they occurred or, without a time of occurrence, were '
'said, the name of an entity that they mention. as_of: those that hold at that time; null: those '
'that have ended as well. For the next page pass the last memory_id as before_id. At most top_k '
'rows, 1 to 100,000. Errors: RC001, RC008 fact type, RC011 filter, 22023.';

create or replace function pgrecall.memory_history(
  bank text, memory_id bigint, top_k integer default 100)
returns setof pgrecall.stored_memory
language plpgsql stable parallel unsafe rows 5
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  ids   bigint[] := array[memory_id];
  added bigint[] := ids;
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_memory(bank, memory_id);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 1000);
  while added <> '{}' and cardinality(ids) < top_k loop
    added := array(
      select n.id
      from (
        select m.superseded_by as id
        from   pgrecall.memory m
        where  m.bank_id = memory_history.bank and m.memory_id = any (added)
          and  m.superseded_by is not null
        union
        select m.memory_id as id
        from   pgrecall.memory m
        where  m.bank_id = memory_history.bank and m.superseded_by = any (added)
      ) as n
      where  n.id <> all (ids)
      order  by n.id desc
      limit  top_k - cardinality(ids)
    );
    ids := ids || added;
  end loop;
  return query
  select s.*
  from   pgrecall.stored_memories(bank, ids) as s
  order  by s.valid_from, s.memory_id;
end;
$$;
comment on function pgrecall.memory_history is
'The versions of a fact, oldest first: the memory, those that it replaced and those that replaced '
'it, by any correction, and so on. At most top_k, 1 to 1,000, the nearest to the memory. ended_by '
'says what ended each. Errors: RC001, RC010 unknown memory, 22023.';

create or replace function pgrecall_internal._merged_into(bank text, memory_ids bigint[])
returns table (memory_id bigint, successor_id bigint)
language plpgsql stable parallel safe rows 10
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  with recursive chain as (
    select m.memory_id, m.superseded_by as next_id, 1 as step
    from   pgrecall.memory m
    where  m.bank_id = _merged_into.bank and m.superseded_by = any (memory_ids)
      and  m.memory_id <> all (memory_ids)
      and  m.corrections -> -1 ->> 'kind' = 'consolidate'
    union all
    select c.memory_id, k.superseded_by, c.step + 1
    from   chain c
    cross  join lateral (
      select x.superseded_by
      from   pgrecall.memory x
      where  x.bank_id = _merged_into.bank and x.memory_id = c.next_id
        and  x.superseded_by is not null
      limit  1
    ) as k
    -- Consolidated memories may point to one another.
    where  c.next_id = any (memory_ids) and c.step < 1000
  ),
  last as (
    select distinct on (c.memory_id) c.memory_id, c.next_id
    from   chain c
    order  by c.memory_id, c.step desc
  )
  select l.memory_id, case when l.next_id <> all (memory_ids) then l.next_id end
  from   last l
  where  l.next_id <> l.memory_id
    and  (l.next_id <> all (memory_ids)
          or (select k.valid_to is null or k.valid_to > now()
              from   pgrecall.memory k
              where  k.bank_id = _merged_into.bank and k.memory_id = l.next_id));
end;
$$;
comment on function pgrecall_internal._merged_into is
'The other memories that consolidate() merged into some of these. successor_id: the first that '
'followed these and is none of them; null: the last of these holds.';

create or replace function pgrecall_internal._unmerge(
  bank text, memory_ids bigint[], successor_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
begin
  update pgrecall.memory m
  set    superseded_by = u.successor_id,
         corrections   = jsonb_set(m.corrections, '{-1,replaced_by}', to_jsonb(u.successor_id))
  from   unnest(_unmerge.memory_ids, successor_ids) as u(memory_id, successor_id)
  where  m.bank_id = _unmerge.bank and m.memory_id = u.memory_id and u.successor_id is not null;
  update pgrecall.memory m
  set    valid_to      = null,
         superseded_by = null,
         corrections   = nullif(m.corrections - -1, '[]')
  where  m.bank_id = _unmerge.bank
    and  m.memory_id = any (array(
           -- Only one of those that say the same can hold.
           select distinct on (x.content_hash) x.memory_id
           from   unnest(_unmerge.memory_ids, successor_ids) as u(memory_id, successor_id)
           cross  join lateral (
             select y.memory_id, y.content_hash
             from   pgrecall.memory y
             where  y.bank_id = _unmerge.bank and y.memory_id = u.memory_id
             limit  1
           ) as x
           where  u.successor_id is null
             and  x.memory_id not in (
                    select e.memory_id
                    from   pgrecall_internal._equal_memories(
                             _unmerge.bank, _unmerge.memory_ids) as e)
           order  by x.content_hash, x.memory_id desc));
end;
$$;
comment on function pgrecall_internal._unmerge is
'Lets memories that consolidate() merged into others hold again, or follow another successor.';

create or replace function pgrecall.forget_where(
  bank      text,
  filter    text default null,
  fact_key  text default null,
  source_id text default null,
  dry_run   boolean default false)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  condition  jsonb;
  ids        bigint[];
  merged     bigint[];
  successors bigint[];
  removed    bigint;
begin
  perform pgrecall_internal._bank(bank);
  condition := pgrecall_internal._parsed_filter(filter);
  if num_nonnulls(condition, fact_key, source_id) = 0 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'no condition says what to forget',
      hint    = 'Pass filter =>, fact_key => or source_id =>; pgrecall.drop_bank() erases a bank.';
  end if;
  if dry_run is not true then
    perform pgrecall_internal._locked_bank(bank);
  end if;
  -- Text of the filter does not enter the statement: see values/filter.sql.
  execute format(
    'select array(select m.memory_id from pgrecall.memory m where m.bank_id = $1 and %s%s%s)',
    pgrecall_internal._filter_sql(condition),
    case when fact_key is not null then
      ' and m.fact_key is not null and lower(pgrecall_internal._normalised(m.fact_key))'
      ' = lower(pgrecall_internal._normalised($4))' end,
    case when source_id is not null then ' and m.source_id = $5' end)
  into    ids
  using   bank, null::timestamptz, condition, fact_key, source_id;
  if dry_run then
    return cardinality(ids);
  end if;
  select array_agg(i.memory_id), array_agg(i.successor_id) into merged, successors
  from   pgrecall_internal._merged_into(bank, ids) as i;
  removed := pgrecall.forget(bank, ids);
  if merged is not null then
    perform pgrecall_internal._unmerge(bank, merged, successors);
  end if;
  return removed;
end;
$$;
comment on function pgrecall.forget_where is
'Erases the memories that meet all conditions given, as forget() does, those that no longer hold '
'as well: a filter as in a recall, a fact_key compared as by the key arm, a source_id. What does '
'not meet them and consolidate() merged into one of them, such as the same sentence of another '
'document, holds again, where that one, or what took its place and is erased with it, held; where '
'what took its place stays, it follows that. Raw messages stay: forget_messages(session => the '
'source_id). Returns how many; dry_run only counts them. Errors: '
'RC001, RC011 filter, 22023 no condition.';
