-- Quarantine of a source, and the audit of who wrote, ended and replaced what.
--
-- quarantine() takes all facts of a source out of every recall, whatever the time it asks for: they
-- end when they began. Facts that they had ended hold again, up to where a fact of another source
-- took over. Nothing more from the source is retained, and answers leave out messages of sessions
-- of that name. Each row that changes keeps its former values in corrections, so that release()
-- brings back exactly what was there; a row that was corrected again since stays as it is. audit()
-- reads the history that each row carries. Forgotten memories and reverted corrections leave no
-- trace.
create or replace function pgrecall_internal._check_source(source text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if source is null or source in ('', '*') or length(source) > 500 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('source must be a name of 1 to 500 characters, not "%s"',
                       coalesce(left(source, 80), 'null')),
      hint    = 'Pass a source_id, or a prefix with an asterisk: "web:*".';
  end if;
end;
$$;
comment on function pgrecall_internal._check_source is
'Raises 22023 unless source names a source, or a prefix of some but not of all.';

create or replace function pgrecall_internal._is_of_source(source_id text, source text)
returns boolean
language sql immutable parallel safe
return source_id = source
       or source like '%*' and starts_with(source_id, left(source, -1));
comment on function pgrecall_internal._is_of_source is
'Whether a source_id is this source, or has the prefix of "web:*".';

create or replace function pgrecall_internal._replaced_again(
  bank pgrecall.bank, gone bigint[], memory_ids bigint[], former_ends timestamptz[])
returns table (memory_id bigint, ends_at timestamptz, successor_id bigint)
language plpgsql stable parallel safe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
-- Without statistics of these rows the planner would choose a nested loop.
set enable_nestloop = off
set jit = off
as $$
declare
  facts   pgrecall_internal.fact_row[];
  members pgrecall_internal.slot_member[];
  pairs   record;
begin
  -- They are facts that arrive late, a moment before they were said: so those that ended when they
  -- began are among the members, too. What ended one tells whether keys or relations replace.
  facts := array(
    select jsonb_populate_record(null::pgrecall_internal.fact_row, jsonb_build_object(
             'n', u.n, 'mentioned_at', m.valid_from - interval '1 microsecond',
             'fact_key', case when bank.replace in ('key', 'both') or k.is_same
                           then m.fact_key end,
             'relations', case when bank.replace in ('relation', 'both') or not k.is_same
                            then '[{}]' else '[]' end::jsonb))
    from   unnest(memory_ids) with ordinality as u(id, n)
    join   pgrecall.memory m on m.bank_id = bank.bank_id and m.memory_id = u.id
    join   pgrecall.memory s on s.bank_id = bank.bank_id and s.memory_id = m.superseded_by
    cross  join lateral (
      select coalesce(lower(pgrecall_internal._normalised(m.fact_key))
                      = lower(pgrecall_internal._normalised(s.fact_key)), false) as is_same
    ) as k
    order  by u.n);
  if facts = '{}' then
    return;
  end if;
  members := array(
    select row(x.slot, x.memory_id, x.value, coalesce(m.valid_from, x.said_at),
               case when x.is_said then f.ends_at else x.ends_at end, x.is_said,
               x.trust)::pgrecall_internal.slot_member
    from   pgrecall_internal._slot_members(bank, 'both', facts, memory_ids) as x
    left   join pgrecall.memory m
           on m.bank_id = bank.bank_id and m.memory_id = x.memory_id and x.is_said
    left   join unnest(memory_ids, former_ends) as f(id, ends_at) on f.id = x.memory_id
    left   join unnest(gone) as g(id) on g.id = x.memory_id
    where  g.id is null
    order  by x.slot, coalesce(m.valid_from, x.said_at) desc, x.memory_id desc);
  pairs := case when bank.source_trust = '{}' then pgrecall_internal._replacements(members, 0)
                else pgrecall_internal._trusted_replacements(members) end;
  return query
  select u.memory_id, u.ends_at, u.successor_id
  from   unnest(pairs.ended, pairs.ends, pairs.successors) as u(memory_id, ends_at, successor_id)
  join   unnest(memory_ids) as i(id) on i.id = u.memory_id;
end;
$$;
comment on function pgrecall_internal._replaced_again is
'When and by which other fact each of these is replaced once those in gone, which had replaced '
'them, are taken out: by the next of the key or relation, before its former end. No row: by none.';

create or replace function pgrecall_internal._holding_again(bank text, memory_ids bigint[])
returns table (memory_id bigint, ends_at timestamptz, successor_id bigint)
language plpgsql stable parallel safe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
-- Without statistics of these rows the planner would choose a nested loop.
set enable_nestloop = off
set jit = off
as $$
begin
  return query
  with recursive gone as materialized (
    select m.memory_id, m.superseded_by, m.valid_to, m.corrections -> -1 ->> 'kind' as kind
    from   unnest(memory_ids) as u(memory_id)
    join   pgrecall.memory m on m.bank_id = _holding_again.bank and m.memory_id = u.memory_id
  ),
  ended as materialized (
    select m.memory_id, m.superseded_by, m.content_hash, m.valid_from,
           m.corrections -> -1 ->> 'kind' as kind, f.value as former
    from   gone g
    join   pgrecall.memory m on m.bank_id = _holding_again.bank and m.superseded_by = g.memory_id
    cross  join lateral (
      -- The values before the source changed it, once or several times in turn.
      select c.value
      from (
        select e.value, e.n,
               bool_and(coalesce((e.value ->> 'replaced_by')::bigint = any (memory_ids), false))
                 over (order by e.n desc) as is_of_source
        from   jsonb_array_elements(m.corrections) with ordinality as e(value, n)
      ) as c
      where  c.is_of_source
      order  by c.n
      limit  1
    ) as f
    where  (m.corrections -> -1 ->> 'replaced_by')::bigint = g.memory_id
      and  not exists (select from gone x where x.memory_id = m.memory_id)
  ),
  -- From each memory to the last one of the source that followed it. A union, because consolidated
  -- memories may point to one another. Not where one replaced the other, and was replaced: the next
  -- fact may replace only the one, and one that did not, since it said the same, the other.
  chain as (
    select e.memory_id, e.superseded_by as next_id, null::timestamptz as ends_at, 1 as step,
           e.kind = 'retain' as is_replaced
    from   ended e
    union
    select c.memory_id, g.superseded_by, g.valid_to, c.step + 1, false
    from   chain c
    join   gone g on g.memory_id = c.next_id
    where  g.superseded_by is not null and c.step < 1000
      and  not (c.is_replaced and g.kind = 'retain')
  ),
  last as (
    select distinct on (c.memory_id) c.memory_id, c.next_id, c.ends_at
    from   chain c
    order  by c.memory_id, c.step desc
  ),
  kept as (
    select e.memory_id, e.content_hash, e.valid_from,
           case when g.memory_id is null then l.ends_at
                else (e.former ->> 'valid_to')::timestamptz end as ends_at,
           case when g.memory_id is null then l.next_id else (
             -- It may be forgotten.
             select s.memory_id from pgrecall.memory s
             where  s.bank_id = _holding_again.bank
               and  s.memory_id = (e.former ->> 'superseded_by')::bigint) end as successor_id
    from   ended e
    join   last l on l.memory_id = e.memory_id
    left   join gone g on g.memory_id = l.next_id
  ),
  restored as materialized (
    select k.memory_id, k.content_hash, k.valid_from,
           least(k.ends_at, r.ends_at) as ends_at,
           case when r.ends_at < coalesce(k.ends_at, 'infinity') then r.successor_id
                else k.successor_id end as successor_id
    from   kept k
    left   join pgrecall_internal._replaced_again(
             (select b from pgrecall.bank b where b.bank_id = _holding_again.bank),
             _holding_again.memory_ids,
             array(select e.memory_id from ended e where e.kind = 'retain'
                   order by e.memory_id),
             array(select (e.former ->> 'valid_to')::timestamptz from ended e
                   where e.kind = 'retain' order by e.memory_id)) as r
           on r.memory_id = k.memory_id
  )
  -- Another memory that holds may say the same by now.
  select distinct on (case when r.ends_at <= now() then r.memory_id end,
                      case when coalesce(r.ends_at, 'infinity') > now() then r.content_hash end)
         r.memory_id,
         greatest(r.ends_at, case when r.ends_at is not null then r.valid_from end),
         r.successor_id
  from   restored r
  where  r.ends_at <= now()
     or  r.memory_id not in (
           select e.memory_id
           from   pgrecall_internal._equal_memories(
                    _holding_again.bank, array(select x.memory_id from restored x)) as e)
  order  by case when r.ends_at <= now() then r.memory_id end,
            case when coalesce(r.ends_at, 'infinity') > now() then r.content_hash end,
            r.memory_id desc;
end;
$$;
comment on function pgrecall_internal._holding_again is
'The memories that the given ones had ended, as they are without them: the time at which each ends '
'now, and the memory that ends it. Null: it holds.';

create or replace function pgrecall.quarantine(
  bank text, source text, dry_run boolean default false)
returns setof pgrecall.corrected
language plpgsql volatile parallel unsafe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  locked        pgrecall.bank;
  correction_id bigint;
  ids           bigint[];
  again         bigint[];
  ends          timestamptz[];
  successors    bigint[];
begin
  locked := case when dry_run then pgrecall_internal._bank(bank)
                 else pgrecall_internal._locked_bank(bank) end;
  perform pgrecall_internal._check_source(source);
  ids := array(
    select m.memory_id
    from   pgrecall.memory m
    where  m.bank_id = quarantine.bank
      and  pgrecall_internal._is_of_source(m.source_id, quarantine.source)
      and  m.corrections -> -1 ->> 'kind' is distinct from 'quarantine'
    order  by m.memory_id
  );
  select coalesce(array_agg(h.memory_id order by h.memory_id), '{}'),
         array_agg(h.ends_at order by h.memory_id), array_agg(h.successor_id order by h.memory_id)
  into   again, ends, successors
  from   pgrecall_internal._holding_again(bank, ids) as h;
  if dry_run then
    return query
    select c.memory_id, c.text, c.valid_from,
           case when u.n is null then c.valid_from else ends[u.n] end,
           case when u.n is null then c.superseded_by else successors[u.n] end
    from   pgrecall_internal._corrected(bank, ids || again) as c
    left   join unnest(again) with ordinality as u(memory_id, n) on u.memory_id = c.memory_id;
    return;
  end if;
  correction_id := coalesce((locked.quarantined ->> source)::bigint, nextval('pgrecall.id_seq'));
  update pgrecall.bank b
  set    quarantined = b.quarantined || jsonb_build_object(source, correction_id)
  where  b.bank_id = quarantine.bank;
  update pgrecall.memory m
  set    valid_to    = m.valid_from,
         corrections = pgrecall_internal._corrections(
                         row(m.*)::pgrecall.memory, 'quarantine', correction_id, null, null)
  where  m.bank_id = quarantine.bank and m.memory_id = any (ids);
  begin
    update pgrecall.memory m
    set    valid_to      = u.ends_at,
           superseded_by = u.successor_id,
           corrections   = pgrecall_internal._corrections(
                             row(m.*)::pgrecall.memory, 'quarantine', correction_id, null, null)
    from   unnest(again, ends, successors) as u(memory_id, ends_at, successor_id)
    where  m.bank_id = quarantine.bank and m.memory_id = u.memory_id;
  exception when unique_violation then
    perform pgrecall_internal._check_snapshot(bank);
    raise;
  end;
  return query
  select * from pgrecall_internal._corrected(bank, ids || again);
end;
$$;
comment on function pgrecall.quarantine is
'Takes the facts of a source out of every recall, whatever time it asks about, and accepts no more '
'from that source: retain() raises RC015. source is a source_id, or a prefix with an asterisk, '
'"web:*". Facts that the source had ended hold again. Returns the memories that change, in their '
'new state; dry_run changes none. Call it again if others have written meanwhile. release() undoes '
'it. Errors: RC001, 22023 source names none.';

create or replace function pgrecall.release(bank text, source text)
returns setof pgrecall.corrected
language plpgsql volatile parallel unsafe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  locked pgrecall.bank;
  ids    bigint[];
begin
  locked := pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_source(source);
  if not locked.quarantined ? source then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('source "%s" of bank "%s" is not in quarantine', source, bank),
      hint    = format('In quarantine are: %s.', coalesce(nullif((
                  select string_agg(k, ', ') from jsonb_object_keys(locked.quarantined) as k),
                  ''), 'none'));
  end if;
  ids := array(
    select m.memory_id
    from   pgrecall.memory m
    where  m.bank_id = release.bank and m.corrections -> -1 ->> 'kind' = 'quarantine'
      and  m.corrections -> -1 -> 'correction_id' = locked.quarantined -> source
    order  by m.memory_id
  );
  update pgrecall.bank b
  set    quarantined = b.quarantined - source
  where  b.bank_id = release.bank;
  perform pgrecall_internal._restore(bank, ids);
  -- Of "web:*" and "web:1" both may be in quarantine.
  perform pgrecall.quarantine(bank, k.name)
  from   jsonb_object_keys(locked.quarantined - source) as k(name)
  where  pgrecall_internal._is_of_source(k.name, source)
     or  pgrecall_internal._is_of_source(source, k.name);
  -- Rows of attached tables that changed meanwhile.
  update pgrecall.attached_change c
  set    problem = null
  where  c.bank_id = release.bank and c.problem is not null;
  return query
  select * from pgrecall_internal._corrected(bank, array(
    select m.memory_id
    from   pgrecall.memory m
    where  m.bank_id = release.bank and m.memory_id = any (ids)
      and  m.corrections -> -1 ->> 'kind' is distinct from 'quarantine'
    order  by m.memory_id));
end;
$$;
comment on function pgrecall.release is
'Undoes quarantine() of a source, row for row; memories that were corrected again since, or whose '
'source is in quarantine by another name, stay as they are. Facts retained meanwhile end none of '
'them, whatever replace says: conflicts_with of a recall names these. Rows of attached tables that '
'could not be stored are tried again. Returns those restored. Errors: RC001, 22023 the source is '
'not in quarantine, or another memory now says what one of them says.';

create or replace function pgrecall.audit(
  bank text, since timestamptz default '-infinity', source text default null,
  top_k bigint default 1000)
returns setof pgrecall.audited
language plpgsql stable parallel unsafe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 1000000);
  if source is not null then
    perform pgrecall_internal._check_source(source);
  end if;
  return query
  select e.at, e.by, e.action, m.memory_id, m.source_id, e.other_id, m.text
  from   pgrecall.memory m
  cross  join lateral (
    select m.created_at, m.written_by, 'retain', null::bigint, 0::bigint
    union all
    select (c.value ->> 'at')::timestamptz, c.value ->> 'by',
           case c.value ->> 'kind' when 'retain' then 'replace' else c.value ->> 'kind' end,
           (c.value ->> 'replaced_by')::bigint, c.n
    from   jsonb_array_elements(m.corrections) with ordinality as c(value, n)
  ) as e(at, by, action, other_id, n)
  where  m.bank_id = audit.bank
    and  (audit.source is null
          or pgrecall_internal._is_of_source(m.source_id, audit.source))
    and  coalesce(e.at, '-infinity') >= coalesce(audit.since, '-infinity')
  order  by e.at desc nulls last, m.memory_id desc, e.n desc
  limit  audit.top_k;
end;
$$;
comment on function pgrecall.audit is
'Who stored, ended and replaced which memories, the latest first, at most top_k: those of a source '
'(a source_id, or a prefix with an asterisk, "web:*"), since a time. It does not show forgotten '
'memories and reverted corrections. Errors: RC001, 22023.';
