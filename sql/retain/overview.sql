-- A bank at a glance: how many memories by time, which entities, and all that belongs to a memory.
--
-- They serve browsers of memories, such as the console or a BI tool, beside the lists.
-- memory_counts() reads the bank once; the others read by index and are bounded.
create or replace function pgrecall.memory_counts(
  bank text, unit text default 'month', basis text default 'stored', filter text default null)
returns setof pgrecall.memory_count
language plpgsql stable parallel unsafe rows 100
set search_path from current
as $$
declare
  condition jsonb := pgrecall_internal._parsed_filter(filter);
  moment    text;
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_choice('unit', unit, '{hour,day,week,month,quarter,year}');
  perform pgrecall_internal._check_choice('basis', basis, '{stored,said,occurred}');
  moment := case basis
    when 'stored' then 'm.created_at'
    when 'said' then 'm.mentioned_at'
    -- What began before all time is counted by its end.
    else $sql$ coalesce(nullif(lower(m.occurred), '-infinity'), upper(m.occurred)) $sql$
  end;
  -- Text of the filter does not enter the statement: see values/filter.sql.
  return query execute format($sql$
    select date_trunc($4, t.moment, 'UTC'), m.fact_type, count(*),
           count(*) filter (where m.valid_to is null or m.valid_to > $2)
    from   pgrecall.memory m
    cross  join lateral (select %s) as t(moment)
    where  m.bank_id = $1 and isfinite(t.moment) and %s
    group  by 1, 2
    order  by 1, 2
  $sql$, moment, pgrecall_internal._filter_sql(condition))
  using bank, now(), condition, unit;
end;
$$;
comment on function pgrecall.memory_counts is
'How many memories of each type there are by hour, day, week, month, quarter or year (unit, in '
'UTC), in order of time, and how many of them hold now. basis says which time: when they were '
'stored, were said, or occurred; those without it are not counted. filter: as in a recall. Errors: '
'RC001, RC011 filter, 22023.';

create or replace function pgrecall.list_entities(
  bank       text,
  name       text default null,
  kind       text default null,
  entity_ids bigint[] default null,
  before_id  bigint default null,
  top_k      integer default 50)
returns setof pgrecall.listed_entity
language plpgsql stable parallel unsafe rows 50
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  wanted text := pgrecall.normalised_name(name);
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 100000);
  if before_id is not null then
    perform pgrecall_internal._check_entity(bank, before_id);
  end if;
  return query
  with counted as (
    select e.entity_id, e.name, e.kind, e.created_at,
           coalesce((select c.mention_count from pgrecall_internal.entity_count c
                     where  c.bank_id = list_entities.bank and c.entity_id = e.entity_id), 0)
             as mentions
    from   pgrecall.entity e
    where  e.bank_id = list_entities.bank
      and  (list_entities.kind is null or e.kind = list_entities.kind)
      and  (list_entities.entity_ids is null or e.entity_id = any (list_entities.entity_ids))
      and  (coalesce(wanted, '') = '' or exists (
              select from pgrecall.entity_alias a
              where  a.bank_id = list_entities.bank and a.entity_id = e.entity_id
                and  (strpos(a.alias, wanted) > 0
                      or strpos(pgrecall_internal._unaccented(a.alias), wanted) > 0)))
  )
  select p.entity_id, p.name, p.kind,
         array(select a.alias
               from   pgrecall.entity_alias a
               where  a.bank_id = list_entities.bank and a.entity_id = p.entity_id
               order  by a.alias),
         greatest(p.mentions, (
           select x.count
           from   pgrecall_internal._mentions(list_entities.bank, p.entity_id) as x)),
         p.created_at
  from (
    select c.*
    from   counted c
    where  list_entities.before_id is null
       or  (c.mentions, c.entity_id) < (
             select coalesce(max(b.mention_count), 0), list_entities.before_id
             from   pgrecall_internal.entity_count b
             where  b.bank_id = list_entities.bank and b.entity_id = list_entities.before_id)
    order  by c.mentions desc, c.entity_id desc
    limit  list_entities.top_k
  ) as p
  order  by p.mentions desc, p.entity_id desc;
end;
$$;
comment on function pgrecall.list_entities is
'Entities, those first that most memories mention; equal ones latest first. name: a part of any of '
'their names, also without its accents, kind: their kind, entity_ids: only these. For the next '
'page pass the last entity_id as before_id. The order goes by what is counted, see '
'bank_statistics(). Errors: RC001, RC013 unknown before_id, 22023.';

create or replace function pgrecall.memory_details(bank text, memory_id bigint)
returns setof pgrecall.memory_detail
language plpgsql stable parallel unsafe rows 1
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_memory(bank, memory_id);
  return query
  select
    (select coalesce(jsonb_agg(jsonb_build_object(
              'entity_id', e.entity_id, 'name', e.name, 'kind', e.kind,
              'confidence', x.confidence) order by e.name, e.entity_id), '[]')
     from   pgrecall.mention x
     join   pgrecall.entity e on e.bank_id = memory_details.bank and e.entity_id = x.entity_id
     where  x.bank_id = memory_details.bank and x.memory_id = memory_details.memory_id),
    (select coalesce(jsonb_agg(jsonb_build_object(
              'from_id', r.from_id, 'from', f.name, 'kind', r.kind, 'to_id', r.to_id,
              'to', t.name, 'confidence', r.confidence, 'valid_from', r.valid_from,
              'valid_to', r.valid_to) order by r.relation_id), '[]')
     from (
       -- Found before they are sorted: the primary key has their order, but leads through the bank.
       select x.*
       from   pgrecall.relation x
       where  x.bank_id = memory_details.bank and x.memory_id = memory_details.memory_id
       offset 0
     ) as r
     join   pgrecall.entity f on f.bank_id = memory_details.bank and f.entity_id = r.from_id
     join   pgrecall.entity t on t.bank_id = memory_details.bank and t.entity_id = r.to_id),
    (select coalesce(jsonb_agg(jsonb_build_object(
              'model', x.model, 'kind', x.kind, 'dimensions', vector_dims(x.embedding),
              'text', x.text) order by x.model, x.kind desc, x.ordinal), '[]')
     from   pgrecall.embedding x
     where  x.bank_id = memory_details.bank and x.memory_id = memory_details.memory_id),
    (select coalesce(m.corrections, '[]')
     from   pgrecall.memory m
     where  m.bank_id = memory_details.bank and m.memory_id = memory_details.memory_id),
    (select m.is_linked
     from   pgrecall.memory m
     where  m.bank_id = memory_details.bank and m.memory_id = memory_details.memory_id);
end;
$$;
comment on function pgrecall.memory_details is
'All that belongs to a memory, in one row: the entities that it mentions, the relations that it '
'states, the embeddings that it has, its corrections. neighbours() has its links. Errors: RC001, '
'RC010 unknown memory.';
