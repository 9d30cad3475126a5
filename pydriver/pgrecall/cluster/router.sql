-- The router: a database with PL/Proxy that knows which server holds which bank.
--
-- Only pgrecall.shards writes here. Schema pgrecall of a router has the public functions with the
-- signatures that they have on a shard, made from its catalog: each looks up where its bank is and
-- calls a function of the same name in pgrecall_router, which PL/Proxy runs on that shard as the
-- current role. place_of() and raised() are what they share.
-- Each bank has a row in pgrecall_router.bank; a name without one belongs to the shard that
-- rendezvous hashing gives it among those that take new banks.
-- security definer: the rows are nobody's business, but any role must be led to its banks.
create schema pgrecall_router;
create schema pgrecall_internal;
create schema pgrecall;

create table pgrecall_router.shard (
  shard   text primary key check (shard ~ '^[a-z0-9_]{1,40}$'),
  dsn     text not null unique,
  is_open boolean not null default true,
  version text not null
);
comment on table pgrecall_router.shard is
'The servers that hold banks. dsn is without user and password; is_open: takes new banks; version: '
'of pgrecall when the shard was last looked at.';

create table pgrecall_router.bank (
  bank_id   text primary key,
  shard     text not null references pgrecall_router.shard,
  moving_to text references pgrecall_router.shard,
  left_on   text references pgrecall_router.shard
);
create index bank_shard_idx on pgrecall_router.bank (shard);
comment on table pgrecall_router.bank is
'Where each bank is. moving_to: where an unfinished move may have left a copy; left_on: where a '
'finished one has not yet removed the bank.';

create sequence pgrecall_router.id_block as bigint minvalue 0;
comment on sequence pgrecall_router.id_block is
'Blocks of 2^40 ids: each shard takes its ids from a block of its own.';

create function pgrecall_router.dsn_of(shard text)
returns text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select s.dsn from pgrecall_router.shard s where s.shard = dsn_of.shard);
end;
$$;
comment on function pgrecall_router.dsn_of is
'How to reach a shard. The functions of PL/Proxy take the name of a shard and never a DSN: with one '
'of their own, callers would reach whatever the server of the router reaches.';

create function pgrecall_router.place_of(bank text, attempt integer default 1)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  place text;
begin
  select b.shard into place from pgrecall_router.bank b where b.bank_id = place_of.bank;
  if found then
    return place;
  end if;
  select s.shard into place
  from   pgrecall_router.shard s
  where  s.is_open or bank is null
  order  by hashtextextended(coalesce(bank, ''), hashtext(s.shard)), s.shard
  limit  1 offset case when bank is null then attempt - 1 else 0 end;
  if not found then
    raise exception using
      errcode = 'object_not_in_prerequisite_state',
      message = 'the router has no shard that takes new banks',
      hint    = 'Add one: pgrecall shard add NAME DSN';
  end if;
  return place;
end;
$$;
comment on function pgrecall_router.place_of is
'The shard of a bank; of no bank (null) any shard, another one for each attempt.';

create function pgrecall_router.placed(bank text, beside text default null)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  wanted text := pgrecall_router.place_of(coalesce(beside, bank));
begin
  if bank is null then
    return;
  end if;
  -- A row that is there is locked, so that unplaced() does not take it away meanwhile.
  insert into pgrecall_router.bank as b (bank_id, shard) values (bank, wanted)
  on conflict (bank_id) do update set shard = b.shard;
  if pgrecall_router.place_of(bank) <> wanted then
    raise exception using
      errcode = 'RC002',
      message = format('bank "%s" already exists', bank),
      hint    = format('Choose another name, or drop it: select pgrecall.drop_bank(%L);', bank);
  end if;
end;
$$;
comment on function pgrecall_router.placed is
'Enters a new bank where its name, or that of the bank beside it, leads.';

create function pgrecall_router.unplaced(bank text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform from pgrecall_router.bank b where b.bank_id = unplaced.bank for update;
  if not exists (
    select from pgrecall_router.bank_overview(pgrecall_router.place_of(bank), bank)
  ) then
    delete from pgrecall_router.bank b
    where  b.bank_id = unplaced.bank and b.moving_to is null and b.left_on is null;
  end if;
end;
$$;
comment on function pgrecall_router.unplaced is
'Takes a bank that was dropped out of the directory; one that its shard still has stays.';

create function pgrecall_router.shard_count()
returns bigint
language sql stable security definer
set search_path = pg_catalog, pg_temp
begin atomic
  select count(*) from pgrecall_router.shard;
end;
comment on function pgrecall_router.shard_count is 'The number of shards.';

create function pgrecall_router.is_remote(message text)
returns boolean
language sql immutable
return message ~ '^[^ ]+\(\d+\): \[[^]]*\] REMOTE ERROR: ';
comment on function pgrecall_router.is_remote is
'Whether a message of PL/Proxy is that of an error that the shard has raised.';

create function pgrecall_router.raised(
  bank    text,
  shard   text,
  attempt integer,
  state   text,
  message text,
  detail  text,
  hint    text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if state = 'XX000' and message like '%PL/Proxy%' and not pgrecall_router.is_remote(message) then
    if bank is null and attempt < pgrecall_router.shard_count() then
      return;
    end if;
    raise exception using
      errcode = 'connection_failure',
      message = format('shard "%s" does not answer: %s', shard,
                       trim(regexp_replace(message, '^.*?\] ', ''), E' \n')),
      hint    = 'Banks on other shards are not affected; pgrecall shard status shows all.';
  end if;
  if state = 'RC001' and pgrecall_router.place_of(bank) <> shard then
    return;
  end if;
  message := regexp_replace(message, '^[^ ]+\(\d+\): \[[^]]*\] REMOTE ERROR: ', '');
  detail := regexp_replace(coalesce(detail, ''), '^Remote detail: ', '');
  hint := regexp_replace(coalesce(hint, ''), '^Remote hint: ', '');
  -- An empty detail or hint would be shown as one.
  if detail <> '' then
    raise exception using errcode = state, message = message, detail = detail, hint = hint;
  elsif hint <> '' then
    raise exception using errcode = state, message = message, hint = hint;
  end if;
  raise exception using errcode = state, message = message;
end;
$$;
comment on function pgrecall_router.raised is
'Raises what a shard has raised, in its own words; 08006 where it does not answer. Returns where '
'the call may succeed elsewhere: on another shard, or since the bank has moved.';

create function pgrecall_router.vector_text(embedding anycompatible)
returns text
language sql immutable
as $$ select translate(embedding::text, '{}', '[]') $$;
comment on function pgrecall_router.vector_text is
'An embedding as the text that pgvector reads, without pgvector on the router.';
