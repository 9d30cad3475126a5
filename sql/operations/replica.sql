-- How far a standby is behind its primary.
--
-- A recall writes nothing, so it runs on a standby as on the primary. Only the part of the log that
-- the standby has replayed may differ. log_position() names a position in the log of the primary
-- behind everything committed so far. replica_lag() measures a standby, and raises an error where
-- it is not near enough for a caller. Both read the state of the server and no table. The driver
-- sends replica_lag() and a read in one round trip: if replica_lag() fails, the read does not run,
-- and if not, it sees what had been replayed by then.

create or replace function pgrecall.log_position()
returns pg_lsn
language sql volatile parallel safe
begin atomic
  -- At the end of a page the primary names the place behind the header of the next one, which has
  -- 40 bytes where a segment begins, 24 elsewhere. A standby gets there with the next record.
  select case
           when p.is_replayed then p.position
           when mod(p.bytes, pg_size_bytes(current_setting('wal_segment_size'))) = 40
             then p.position - 40
           when mod(p.bytes, current_setting('wal_block_size')::integer) = 24
             then p.position - 24
           else p.position
         end
  from (
    select x.is_replayed, x.position, x.position - '0/0'::pg_lsn as bytes
    from (
      select pg_is_in_recovery() as is_replayed,
             case when pg_is_in_recovery() then pg_last_wal_replay_lsn()
                  else pg_current_wal_insert_lsn() end as position
      offset 0
    ) as x
  ) as p;
end;
comment on function pgrecall.log_position is
'Position in the write-ahead log behind all that is committed so far: on a standby the last one '
'that it has replayed.';

create or replace function pgrecall.replica_lag(
  at_most double precision default null,
  after   pg_lsn default null)
returns double precision
language plpgsql volatile parallel safe
set search_path from current
as $$
declare
  seconds double precision;
begin
  if at_most < 0 or at_most = 'nan' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('at_most must be at least 0, not %s', at_most),
      hint    = 'Give seconds; leave it out to only measure.';
  end if;
  if not pg_is_in_recovery() then
    return 0;
  end if;
  -- Without a connection to the primary, everything that was received may be replayed and yet be
  -- old.
  if exists (select from pg_stat_wal_receiver)
     and pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn() then
    seconds := 0;
  else
    seconds := abs(extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()));
  end if;
  if at_most < coalesce(seconds, 'infinity') then
    raise exception using
      errcode = 'object_not_in_prerequisite_state',
      message = format(
        'the standby is %s behind its primary, more than %s s',
        coalesce(round(seconds::numeric, 3) || ' s', 'an unknown time'), at_most),
      hint    = 'Ask the primary, or allow more.';
  end if;
  if pg_last_wal_replay_lsn() < after then
    raise exception using
      errcode = 'object_not_in_prerequisite_state',
      message = format(
        'the standby has replayed the log up to %s, not yet to %s',
        pg_last_wal_replay_lsn(), after),
      hint    = 'Ask the primary, or try again.';
  end if;
  return seconds;
end;
$$;
comment on function pgrecall.replica_lag is
'Seconds that this server is behind its primary: 0 on a primary, and on a standby that has '
'replayed all that it received over an open connection; else the age of the last transaction that '
'it has replayed, null where there is none. A lost connection is noticed after '
'wal_receiver_timeout. at_most: raise an error where the lag is more. after: raise an error where '
'the log is not replayed up to this position, as log_position() of the primary returned it. '
'Errors: 55000 too far behind, 22023 at_most out of its range.';
