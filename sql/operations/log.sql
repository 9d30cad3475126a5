-- The log of recalls: writing it and summing it up.
--
-- log_recalls() takes what clients sampled; recall_stats() gives counts and percentiles by bank,
-- slow_recalls() single recalls.
-- Percentiles are those of the samples; counts of recalls are estimated from their shares.

create or replace function pgrecall_internal._milliseconds_field(place text, value jsonb)
returns real
language plpgsql immutable parallel safe
as $$
begin
  if (case when jsonb_typeof(value) = 'number' then value::numeric not between 0 and 1000000000
           else true end)
  then
    perform pgrecall_internal._raise_invalid_field(
      place, format('expected a number from 0 to 1000000000, not %s',
                    coalesce(left(value::text, 80), 'null')),
      'Give each time in milliseconds.');
  end if;
  return value::real;
end;
$$;
comment on function pgrecall_internal._milliseconds_field is
'Reads a time in milliseconds, which must be given. Errors: RC003.';

create or replace function pgrecall.log_recalls(bank text, samples jsonb)
returns integer
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  keys   text[] := '{asked_at,share,total_ms,wait_ms,embed_ms,database_ms,rerank_ms,hits,left_out}';
  sample jsonb;
  place  text;
  logged pgrecall.recall_log;
  done   integer := 0;
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_array('samples', samples);
  if current_setting('transaction_read_only')::boolean then
    return 0;
  end if;
  begin
    for sample in select s from jsonb_array_elements(samples) as s loop
      place := format('samples[%s]', done);
      perform pgrecall_internal._check_keys(place, sample, keys);
      logged.asked_at := pgrecall_internal._time_field(place || '.asked_at', sample -> 'asked_at');
      logged.share := pgrecall_internal._fraction_field(place || '.share', sample -> 'share');
      if logged.asked_at is null or not isfinite(logged.asked_at)
         or logged.share is null or logged.share <= 0
      then
        perform pgrecall_internal._raise_invalid_field(
          place, 'asked_at and a share above 0 are needed',
          'Pass when it was asked, and the log_share of the bank then.');
      end if;
      logged.left_out := array(
        select left(pgrecall_internal._string_field(place || '.left_out', w, true), 100)
        from   jsonb_array_elements(
                 pgrecall_internal._array_field(place || '.left_out', sample -> 'left_out')) as w
      );
      insert into pgrecall.recall_log (
        bank_id, asked_at, share, total_ms, wait_ms, embed_ms, database_ms, rerank_ms, hits,
        left_out)
      values (
        log_recalls.bank, logged.asked_at, logged.share,
        pgrecall_internal._milliseconds_field(place || '.total_ms', sample -> 'total_ms'),
        pgrecall_internal._milliseconds_field(place || '.wait_ms', sample -> 'wait_ms'),
        pgrecall_internal._milliseconds_field(place || '.embed_ms', sample -> 'embed_ms'),
        pgrecall_internal._milliseconds_field(place || '.database_ms', sample -> 'database_ms'),
        pgrecall_internal._milliseconds_field(place || '.rerank_ms', sample -> 'rerank_ms'),
        pgrecall_internal._milliseconds_field(place || '.hits', sample -> 'hits')::integer,
        logged.left_out);
      done := done + 1;
    end loop;
  exception when foreign_key_violation then
    -- It was dropped meanwhile: the log waits for no writer, so it does not lock the bank.
    perform pgrecall_internal._raise_replaced(bank);
  end;
  return done;
end;
$$;
comment on function pgrecall.log_recalls is
'Writes samples of recalls into recall_log; returns how many. Each is an object: asked_at, share '
'above 0 to 1, total_ms, wait_ms, embed_ms, database_ms, rerank_ms, hits, and left_out, an array '
'of texts. The driver calls it where log_share of the bank is above 0. In a read-only transaction '
'and on a standby it writes nothing and returns 0. Errors: RC001, RC003 invalid sample, 22023.';

create or replace function pgrecall.recall_stats(
  bank text default null, since timestamptz default now() - interval '1 day')
returns setof pgrecall.recall_times
language plpgsql stable parallel safe rows 10
set search_path from current
as $$
begin
  if bank is not null then
    perform pgrecall_internal._bank(bank);
  end if;
  return query
  select l.bank_id, count(*),
         -- Small shares of a bank must not end the call for all banks.
         least(round(sum(1 / l.share::numeric)), 9223372036854775807)::bigint,
         percentile_cont(0.5) within group (order by l.total_ms),
         percentile_cont(0.95) within group (order by l.total_ms),
         percentile_cont(0.99) within group (order by l.total_ms),
         max(l.total_ms)::double precision,
         percentile_cont(0.95) within group (order by l.wait_ms),
         percentile_cont(0.95) within group (order by l.embed_ms),
         percentile_cont(0.95) within group (order by l.database_ms),
         percentile_cont(0.95) within group (order by l.rerank_ms),
         count(*) filter (where l.hits = 0), count(*) filter (where l.left_out <> '{}')
  from   pgrecall.recall_log l
  where  (l.bank_id = recall_stats.bank or recall_stats.bank is null)
    and  l.asked_at >= coalesce(recall_stats.since, '-infinity')
  group  by l.bank_id
  order  by l.bank_id;
end;
$$;
comment on function pgrecall.recall_stats is
'How many recalls banks had since a time, and how long they took, from the samples in recall_log. '
'bank null: all. since null: all that is kept. No row for a bank without samples: set its '
'log_share by configure_bank(), as in {"log_share": 0.01}. Errors: RC001.';

create or replace function pgrecall.slow_recalls(
  bank  text default null,
  since timestamptz default now() - interval '1 day',
  top_k integer default 20)
returns setof pgrecall.logged_recall
language plpgsql stable parallel safe rows 20
set search_path from current
as $$
begin
  if bank is not null then
    perform pgrecall_internal._bank(bank);
  end if;
  perform pgrecall_internal._check_range('top_k', top_k, 1, 10000);
  return query
  select l.bank_id, l.asked_at, l.total_ms, l.wait_ms, l.embed_ms, l.database_ms, l.rerank_ms,
         l.hits, l.left_out
  from   pgrecall.recall_log l
  where  (l.bank_id = slow_recalls.bank or slow_recalls.bank is null)
    and  l.asked_at >= coalesce(slow_recalls.since, '-infinity')
  order  by l.total_ms desc, l.asked_at desc, l.sample_id
  limit  slow_recalls.top_k;
end;
$$;
comment on function pgrecall.slow_recalls is
'The slowest recalls that were logged since a time, slowest first: when, how long each '
'stage took, how many hits. bank null: of all banks. At most top_k, 1 to 10,000. '
'Errors: RC001, 22023.';
