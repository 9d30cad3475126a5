-- This comes before the part of an upgrade that locks tables against readers. All tables are locked
-- at once or not at all: after waiting 50 ms for a table in use, all locks are released and tried
-- again, so that readers never queue behind a lock that is only requested. After 20 attempts the
-- upgrade gives up; nothing has changed then, and it can be run again.
-- A writer that came during the build waits for it, and holds tables itself, until the upgrade
-- ends: the upgrade gives up at once, before the server ends the writer for the deadlock. Where
-- pgrecall.lock_first is on, the tables are locked here before the build: writers find them locked
-- before they hold any, and readers wait for the build, too.
do $upgrade$
declare
  patience constant integer := 50;  -- milliseconds
  given constant text := current_setting('lock_timeout');
  begun timestamptz;
  attempt integer := 0;
  relation regclass;
begin
  if ({is_due}) is not true then
    return;
  end if;

  loop
    if exists (
      select
      from   pg_locks w
      join   pg_locks h on h.pid = w.pid and h.granted
      join   pg_class c on c.oid = h.relation
      where  not w.granted
      and    h.database = (select d.oid from pg_database d where d.datname = current_database())
      and    c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')
      and    pg_backend_pid() = any (pg_blocking_pids(w.pid))
    ) then
      raise lock_not_available using
        message = 'a session that writes holds tables and waits for the upgrade',
        hint    = 'Run the upgrade again when nobody writes, or after: '
                  'set pgrecall.lock_first = on; readers then wait for it, too.';
    end if;
    attempt := attempt + 1;
    begun := clock_timestamp();
    begin
      for relation in
        select c.oid
        from   pg_class c
        where  c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')
        and    c.relkind in ('r', 'p')
        order  by c.relispartition, c.relname
      loop
        perform set_config(
          'lock_timeout',
          greatest(
            1, patience - extract(milliseconds from clock_timestamp() - begun)::integer)::text,
          true
        );
        execute format('lock table %s in access exclusive mode', relation);
      end loop;
      exit;
    exception
      when lock_not_available or deadlock_detected then
        if attempt = 20 then
          raise lock_not_available using
            message = format('table "%s" was in use each of %s times that the upgrade tried to '
                             'lock it', relation, attempt),
            hint    = 'See who uses it: select pid, query from pg_stat_activity where state <> '
                      '''idle''; then run the upgrade again.';
        end if;
    end;
    perform pg_sleep(0.4);
  end loop;
  perform set_config('lock_timeout', given, true);
end;
$upgrade$;
