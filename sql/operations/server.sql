-- What a server does beside recalls: the size of tables, builds of indexes, standbys.
--
-- All are read from the statistics of PostgreSQL, which shows a role its own sessions; a member of
-- pg_monitor sees those of others. The console and doctor show them.
create or replace function pgrecall.relation_sizes(top_k integer default 20)
returns setof pgrecall.relation_size
language plpgsql stable parallel restricted rows 20
set search_path from current
as $$
begin
  perform pgrecall_internal._check_range('top_k', top_k, 1, 10000);
  return query
  select s.relid::regclass::text, s.n_live_tup, s.n_dead_tup, pg_table_size(s.relid),
         pg_indexes_size(s.relid), greatest(s.last_vacuum, s.last_autovacuum),
         greatest(s.last_analyze, s.last_autoanalyze)
  from   pg_stat_user_tables s
  where  s.schemaname in ('pgrecall', 'pgrecall_internal')
  order  by pg_total_relation_size(s.relid) desc, 1
  limit  relation_sizes.top_k;
end;
$$;
comment on function pgrecall.relation_sizes is
'The largest tables of pgrecall, largest first, with their rows, indexes and last vacuum; those of '
'embedding are its partitions. At most top_k, 1 to 10,000. Errors: 22023.';

create or replace function pgrecall.index_builds()
returns setof pgrecall.index_build
language plpgsql stable parallel restricted rows 2
set search_path from current
as $$
begin
  return query
  select c.relname::text, p.relid::regclass::text, p.phase,
         -- The heap is read once, for its rows; phases without blocks report no progress.
         (case when p.blocks_total > 0 then p.blocks_done::double precision / p.blocks_total
          end)::real,
         p.tuples_done, a.query_start,
         case when p.current_locker_pid > 0 then p.current_locker_pid::integer end
  from   pg_stat_progress_create_index p
  left   join pg_class c on c.oid = p.index_relid
  left   join pg_stat_activity a on a.pid = p.pid
  where  p.datname = current_database()
    and  p.relid in (
           select h.inhrelid from pg_inherits h
           where  h.inhparent = 'pgrecall.embedding'::regclass)
  order  by a.query_start, 1;
end;
$$;
comment on function pgrecall.index_builds is
'Builds of vector indexes that run now, of any bank, by any session that the role may see, the '
'earliest first. index_plan() does not list what is being built.';

create or replace function pgrecall.standbys()
returns setof pgrecall.standby
language plpgsql volatile parallel restricted rows 2
set search_path from current
as $$
begin
  return query
  select coalesce(r.application_name, ''), r.state,
         greatest(0, pg_wal_lsn_diff(pgrecall.log_position(), r.replay_lsn))::bigint,
         extract(epoch from r.replay_lag)::double precision
  from   pg_stat_replication r
  order  by 1, r.pid;
end;
$$;
comment on function pgrecall.standbys is
'The standbys that follow this server, by name, and how far each is behind; replica_lag() asks a '
'standby itself. A role that is not a member of pg_monitor sees only their names.';
