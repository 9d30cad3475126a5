-- Maintenance: the work that retain() leaves over, done in batches.
--
-- Retaining a fact takes the same time in a bank of any size. What grows with the bank is left
-- pending: counting documents where many were stored at once (bank/statistics.sql), computing
-- weights anew when the mean length of the documents has changed, and links that were deferred
-- (retain/link.sql). So is deleting old samples from the log of recalls (operations/log.sql). None
-- of it changes what a bank holds; recalls work meanwhile. maintain() does a bounded piece of it.
-- Call it until it returns no row, each call in a transaction of its own: what a call has done
-- stays done, whatever stops the next.

create or replace function pgrecall_internal._maintain_bank(bank text, batch_size integer)
returns setof pgrecall.maintained
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
set lock_timeout = '1s'
as $$
declare
  locked pgrecall.bank;
  done   pgrecall.maintained;
begin
  done.bank_id := bank;
  -- A bank with nothing to do is not locked. Weights come first, because a transaction that shares
  -- a bank must not wait for exclusive use of it.
  foreach done.kind in array array['memory', 'message'] loop
    if pgrecall_internal._is_weighing_due(bank, done.kind) then
      begin
        locked := pgrecall_internal._locked_bank(bank);
        done.task := 'weigh';
        done.documents := pgrecall_internal._weigh_documents(locked, done.kind, batch_size);
        return next done;
      exception when lock_not_available then
        -- Other writers must not wait any longer behind this one; a later call tries again.
        null;
      end;
    end if;
  end loop;
  foreach done.kind in array array['memory', 'message'] loop
    if pgrecall_internal._is_refresh_due(bank, done.kind) then
      locked := pgrecall_internal._shared_bank(bank);
      done.task := 'count';
      done.documents := pgrecall_internal._refresh_when_due(locked, done.kind, batch_size);
      return next done;
    end if;
  end loop;
  if exists (
    select from pgrecall.memory m
    where  m.bank_id = _maintain_bank.bank and not m.is_linked
  ) then
    done.task := 'link';
    done.kind := 'memory';
    done.documents := pgrecall.link_pending(bank, batch_size);
    return next done;
  end if;
  if exists (
    select from pgrecall.recall_log l
    where  l.bank_id = _maintain_bank.bank and l.asked_at < now() - interval '30 days'
  ) then
    delete from pgrecall.recall_log l
    using (
      select o.asked_at, o.sample_id
      from   pgrecall.recall_log o
      where  o.bank_id = _maintain_bank.bank and o.asked_at < now() - interval '30 days'
      limit  _maintain_bank.batch_size
    ) as x
    where  l.bank_id = _maintain_bank.bank and l.asked_at = x.asked_at
      and  l.sample_id = x.sample_id;
    get diagnostics done.documents = row_count;
    done.task := 'prune';
    done.kind := 'recall';
    return next done;
  end if;
end;
$$;
comment on function pgrecall_internal._maintain_bank is
'Does the pending work of one bank, at most batch_size documents of each task.';

create or replace function pgrecall.maintain(bank text default null, batch_size integer default 500)
returns setof pgrecall.maintained
language plpgsql volatile parallel unsafe rows 3
set search_path from current
as $$
declare
  name text;
  did  pgrecall.maintained[];
  rest bigint := batch_size;
begin
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  perform pgrecall_internal._check_isolation('maintain');
  perform pgrecall_internal._check_writable();
  if bank is not null then
    perform pgrecall_internal._bank(bank);
  end if;
  for name in
    select b.bank_id from pgrecall.bank b
    where  b.bank_id = maintain.bank or maintain.bank is null
    order  by b.bank_id
  loop
    begin
      did := array(
        select m from pgrecall_internal._maintain_bank(name, batch_size) as m
        where  m.documents > 0);
    exception when others then
      -- One bank must not keep the others from their turn; a later call tries it again.
      if maintain.bank is not null and sqlstate <> '55P03' then
        raise;
      end if;
      did := '{}';
      raise warning using
        errcode = sqlstate,
        message = format('maintain() left bank "%s" out: %s', name, sqlerrm);
    end;
    return query select d.* from unnest(did) as d;
    rest := rest - coalesce((select sum(d.documents) from unnest(did) as d), 0);
    exit when rest <= 0;
  end loop;
end;
$$;
comment on function pgrecall.maintain is
'Does work that retain() left pending: counts documents, computes BM25 weights anew when the mean '
'length has changed, writes deferred links, deletes samples older than 30 days from recall_log; at '
'most batch_size documents of each. bank null: of all banks in turn, until batch_size documents '
'are done. Returns what it did, no row when nothing is left: call it until then. Weights wait for '
'transactions that write into the bank; after a second it leaves them to a later call. A bank that '
'another transaction holds, or whose work fails while all banks are asked for, is left out with a '
'warning. Errors: RC001, 22023, 25001 isolation level above read committed.';
