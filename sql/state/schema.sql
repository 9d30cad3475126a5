-- pgrecall: the memory of an AI agent, in PostgreSQL.
--
-- This file checks what the database must have, makes the two schemas, and the sequence of all ids.
-- Schema pgrecall holds what users call and read; pgrecall_internal holds private objects, which
-- may change in any release. All scripts run inside one transaction, whichever route runs them:
-- psql -1 -f, pgrecall migrate, or pgrecall_setup.install() of the extension. pgvector is created
-- where it is missing and the role may. Installs and upgrades wait for one another. Nothing is
-- created when a check fails, and every failure has the code RC012 and a hint.
--
-- All indexes that begin with the bank look equally good to a planner that knows nothing of a bank,
-- or plans for one of average size. So only the primary key of a table lists all rows of a bank;
-- any other such index is partial, by "is not null" where nothing else limits it, and is considered
-- only where a search implies its predicate, as a comparison of that column does.

-- First of all: where others may create functions in a schema on the caller's path, one whose
-- arguments fit better would be called instead of PostgreSQL's own, with the caller's rights.
do $$
begin
  perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  -- The path that functions freeze is compared as text.
  perform pg_catalog.set_config('quote_all_identifiers', 'off', true);
end;
$$;

-- Functions freeze this search_path (set search_path from current), so that no caller's path
-- reaches into them.
do $$
declare
  vector_schema name;
  vector_version text;
begin
  if current_setting('server_version_num')::integer < 160000 then
    raise exception using
      errcode = 'RC012',
      message = format('PostgreSQL 16 or newer is needed, not %s',
                       current_setting('server_version')),
      hint    = 'Upgrade the server first, with pg_upgrade or by dump and restore.';
  end if;

  perform pg_advisory_xact_lock(hashtextextended('pgrecall', 0));

  if to_regnamespace('pgrecall') is not null then
    raise exception using
      errcode = 'RC012',
      message = 'schema "pgrecall" already exists in this database',
      hint    = 'To upgrade an installed pgrecall run: pgrecall migrate, or: alter extension '
                'pgrecall update; select pgrecall_setup.install();';
  end if;

  if not exists (select from pg_extension x where x.extname = 'vector') then
    begin
      -- By name in a string: the extension of pgrecall requires it, and then it is there.
      execute 'create extension vector schema public';
    exception when insufficient_privilege or undefined_file or feature_not_supported
              or invalid_schema_name then
      raise exception using
        errcode = 'RC012',
        message = format('pgvector is not installed in this database: %s', sqlerrm),
        hint    = case
          when exists (select from pg_available_extensions a where a.name = 'vector')
            then 'Have it installed by a role that may: create extension vector;'
          else 'Install pgvector 0.8 or newer on the server, then: create extension vector;' end;
    end;
  end if;
  select n.nspname, x.extversion
  into   vector_schema, vector_version
  from   pg_extension x
  join   pg_namespace n on n.oid = x.extnamespace
  where  x.extname = 'vector';
  if string_to_array(vector_version, '.')::integer[] < array[0, 8, 0] then
    raise exception using
      errcode = 'RC012',
      message = format('pgvector 0.8.0 or newer is needed, not %s', vector_version),
      hint    = 'Upgrade it: alter extension vector update;';
  end if;

  if not has_schema_privilege(vector_schema, 'usage') then
    raise exception using
      errcode = 'RC012',
      message = format('role "%s" may not use schema "%s", where pgvector is', current_user,
                       vector_schema),
      hint    = format('Run as its owner: grant usage on schema %I to %I;', vector_schema,
                       current_user);
  end if;
  if not has_database_privilege(current_database(), 'create') then
    raise exception using
      errcode = 'RC012',
      message = format('role "%s" may not create schemas in database "%s"', current_user,
                       current_database()),
      hint    = format('Run as its owner: grant create on database %I to %I;',
                       current_database(), current_user);
  end if;

  -- Functions look up their names in pgvector's schema too, where one whose arguments fit better
  -- would win over pg_catalog's.
  if exists (
    select
    from   pg_namespace n
    cross  join lateral aclexplode(n.nspacl) a
    where  n.nspname = vector_schema and a.grantee = 0 and a.privilege_type = 'CREATE'
  ) then
    raise exception using
      errcode = 'RC012',
      message = format('everybody may create functions in schema "%s", where pgvector is',
                       vector_schema),
      hint    = format('Run: revoke create on schema %I from public; or move pgvector: alter '
                       'extension vector set schema ...;', vector_schema);
  end if;
  -- SQL_ASCII does not know characters, and others lack some of those in the words and patterns
  -- that follow.
  if getdatabaseencoding() <> 'UTF8' then
    raise exception using
      errcode = 'RC012',
      message = format('the encoding of database "%s" is %s', current_database(),
                       getdatabaseencoding()),
      hint    = 'Create one with another encoding: create database memory encoding ''UTF8'' '
                'template template0;';
  end if;
  -- Text search knows only the letters of LC_CTYPE, which may be C where the provider is ICU.
  if chr(233) !~ '[[:alpha:]]'
     or to_tsvector('simple', chr(8220) || chr(201)) <> to_tsvector('simple', chr(233)) then
    raise warning using
      message = format('the locale of database "%s", with LC_CTYPE %s, knows no letters but a to z',
                       current_database(), (select d.datctype from pg_database d
                                            where d.datname = current_database())),
      hint    = 'Names and words with others are cut, joined or refused. Create one of another '
                'locale: create database memory locale ''C.UTF-8'' template template0;';
  end if;

  perform set_config('search_path', format('pg_catalog, %I, pg_temp', vector_schema), true);
end;
$$;

-- The path holds until the transaction ends; outside a transaction the script must fail.
do $$
begin
  if current_setting('search_path') not like 'pg_catalog, %, pg_temp' then
    raise exception using
      errcode = 'RC012',
      message = 'this script was not run in one transaction',
      hint    = 'Run it with: psql -1 -v ON_ERROR_STOP=1 -f';
  end if;
  -- Loads pgvector's library: before that, only a superuser can create functions that set hnsw.*.
  execute 'select ''[1]''::halfvec';

  create schema pgrecall;
  create schema pgrecall_internal;
end;
$$;
comment on schema pgrecall is
'Memory of AI agents: banks of facts, recalled by meaning, words, relations and time. Start at '
'pgrecall.hybrid_recall().';

comment on schema pgrecall_internal is
'Private objects of pgrecall. They may change in any release: use those of schema pgrecall.';

-- One sequence for everything that carries an id: a memory and a message never share one,
-- and every shard has its own range of ids.
create sequence pgrecall.id_seq as bigint;
comment on sequence pgrecall.id_seq is
'Ids of memories, messages, entities and relations. Give every shard a range of its own.';
