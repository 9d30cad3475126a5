-- Trust in sources: how much what they say counts, and what they may do to what others said.
--
-- Whoever may talk to an agent may write into its memory. source_trust of a bank gives sources a
-- trust from 0 to 1, by their source_id or by a prefix of it ("web:*"). All ids with one prefix are
-- one source, since a writer can choose the rest freely. The score of a fact is multiplied by the
-- trust (recall/trust.sql), and no fact ends one whose source is trusted more. A bank that names no
-- source pays no time for this. quarantine() (operations/quarantine.sql) takes out all facts of a
-- source: its trust is 0 then.
create or replace function pgrecall_internal._check_sources(name text, sources jsonb)
returns void
language plpgsql immutable parallel safe
as $$
declare
  bad record;
begin
  if sources is null then
    return;
  end if;
  perform pgrecall_internal._check_object(
    name, sources,
    'Write {"web:*": 0.2}: a number from 0 to 1, by source or by a prefix with an asterisk.');
  select e.key, e.value into bad
  from   jsonb_each(sources) as e
  where  length(e.key) > 500
     or  jsonb_typeof(e.value) <> 'number' or (e.value #>> '{}')::numeric not between 0 and 1
  order  by e.key
  limit  1;
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s: trust of source "%s" must be a number from 0 to 1, not %s',
                       name, left(bad.key, 80), left(bad.value::text, 80)),
      hint    = 'A source that is not named has 1; 0 keeps its facts out of every answer.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_sources is
'Raises 22023 unless sources is an object of numbers from 0 to 1, by names of at most 500 '
'characters.';

create or replace function pgrecall_internal._source(sources jsonb, source_id text)
returns text
language sql immutable parallel safe
return (
  select k.name
  from   jsonb_object_keys(sources) as k(name)
  where  k.name = coalesce(source_id, '')
     or  k.name like '%*' and starts_with(coalesce(source_id, ''), left(k.name, -1))
  order  by k.name <> coalesce(source_id, ''), length(k.name) desc
  limit  1
);
comment on function pgrecall_internal._source is
'The key of sources that a source_id matches: its own name, else the longest prefix; null: none.';

create or replace function pgrecall_internal._with_quarantined(sources jsonb, quarantined jsonb)
returns jsonb
language sql immutable parallel safe
-- Of "web:1" the longer name counts, and "web:*" may be in quarantine.
return (sources - array(
    select k.name
    from   jsonb_object_keys(sources) as k(name)
    where  pgrecall_internal._source(quarantined, k.name) is not null))
  || (select jsonb_object_agg(k.name, 0) from jsonb_object_keys(quarantined) as k(name));
comment on function pgrecall_internal._with_quarantined is
'The trust of sources, 0 for those in quarantine.';

create or replace function pgrecall_internal._sources(bank pgrecall.bank)
returns jsonb
language sql immutable parallel safe
return case
  when (bank).quarantined = '{}' then (bank).source_trust
  else pgrecall_internal._with_quarantined((bank).source_trust, (bank).quarantined)
end;
comment on function pgrecall_internal._sources is
'The trust of the sources that a bank names, 0 for those in quarantine.';

create or replace function pgrecall_internal._trust(sources jsonb, source_id text)
returns double precision
language sql immutable parallel safe
return case when sources = '{}' then 1 else coalesce(
  (sources ->> pgrecall_internal._source(sources, source_id))::double precision, 1) end;
comment on function pgrecall_internal._trust is 'The trust of a source, 0 to 1; 1 unless named.';

create or replace function pgrecall_internal._silent_sources(bank pgrecall.bank)
returns jsonb
language sql immutable parallel safe
return case when pgrecall_internal._sources(bank) @? '$.* ? (@ == 0)'
         then pgrecall_internal._sources(bank) else '{}' end;
comment on function pgrecall_internal._silent_sources is
'The trust of the sources that a bank names, where one of them has 0, as in quarantine. {}: none '
'has, and no fact need be looked at for its source.';

create or replace function pgrecall_internal._is_heard(
  bank pgrecall.bank, sources jsonb, memory_id bigint)
returns boolean
language plpgsql stable parallel safe
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return coalesce((
    select pgrecall_internal._trust(sources, m.source_id) > 0
    from   pgrecall.memory m
    where  m.bank_id = bank.bank_id and m.memory_id = _is_heard.memory_id), true);
end;
$$;
comment on function pgrecall_internal._is_heard is
'Whether the source of a memory is trusted above 0; true of a message.';

create or replace function pgrecall_internal._check_successors(
  bank text, memory_ids bigint[], successors bigint[], places integer[] default null)
returns void
language plpgsql stable parallel safe
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  sources jsonb := (select b.source_trust from pgrecall.bank b
                    where  b.bank_id = _check_successors.bank);
  refused record;
begin
  if sources = '{}' then
    return;
  end if;
  select u.memory_id, u.successor_id, m.source_id, s.source_id as other_source,
         pgrecall_internal._trust(sources, m.source_id) as trust,
         pgrecall_internal._trust(sources, s.source_id) as other_trust,
         coalesce('facts[' || u.place || ']: ', '') as place
  into   refused
  from   unnest(memory_ids, successors, places) with ordinality
           as u(memory_id, successor_id, place, n)
  join   pgrecall.memory m on m.bank_id = _check_successors.bank and m.memory_id = u.memory_id
  join   pgrecall.memory s on s.bank_id = _check_successors.bank and s.memory_id = u.successor_id
  where  pgrecall_internal._trust(sources, s.source_id)
         < pgrecall_internal._trust(sources, m.source_id)
  order  by u.n
  limit  1;
  if found then
    raise exception using
      errcode = 'RC015',
      message = format('%sa fact of source "%s" (trust %s) may not end memory %s of source "%s" '
                       '(trust %s)', refused.place, refused.other_source, refused.other_trust,
                       refused.memory_id, coalesce(refused.source_id, ''), refused.trust),
      hint    = 'Retain it with replace => ''none'', so that both stand; or trust its source as '
                'much, by source_trust of configure_bank().';
  end if;
end;
$$;
comment on function pgrecall_internal._check_successors is
'Raises RC015 where a memory would be ended by one whose source is trusted less. places: the '
'positions of the successors among facts, from 0; null: they are in no array of facts.';
