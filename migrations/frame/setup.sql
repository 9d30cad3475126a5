-- The extension owns only a function that runs the scripts of the other routes. Tables, functions
-- and types of pgrecall are not members of the extension, so every mode of pg_dump dumps them like
-- those of any other schema, with the indexes and policies that were added later.
do $setup$
begin
  if not exists (
    select
    from   pg_depend d
    join   pg_extension x on x.oid = d.refobjid and x.extname = 'pgrecall'
    where  d.refclassid = 'pg_extension'::regclass
    and    d.classid = 'pg_namespace'::regclass
    and    d.objid = to_regnamespace('pgrecall_setup')
  ) then
    create schema pgrecall_setup;
  end if;
end;
$setup$;
comment on schema pgrecall_setup is
'What create extension pgrecall brings: select pgrecall_setup.install();';

create or replace function pgrecall_setup.install()
returns text
language plpgsql volatile parallel unsafe
set search_path = pg_catalog, pg_temp
as $setup$
declare
  owner text;
  installed text;
  code text;
  message text;
  detail text;
  hint text;
begin
  perform pg_advisory_xact_lock(hashtextextended('pgrecall', 0));
{owner}
  if to_regprocedure('pgrecall.version()') is not null then
    execute 'select pgrecall.version()' into installed;
  end if;

  case coalesce(installed, '')
    when '{version}' then
      return 'pgrecall {version} is up to date';
{scripts}
    else
      raise exception using
        errcode = 'RC012',
        message = format('no script leads from pgrecall %s to {version}', installed),
        hint    = 'Update the extension first: alter extension pgrecall update;';
  end case;
exception
  when others then
    -- Raises the same error without its context, which is a whole script.
    get stacked diagnostics
      code = returned_sqlstate, message = message_text,
      detail = pg_exception_detail, hint = pg_exception_hint;
    if detail <> '' then  -- what PostgreSQL itself reports
      raise exception using errcode = code, message = message, detail = detail, hint = hint;
    end if;
    if hint <> '' then
      raise exception using errcode = code, message = message, hint = hint;
    end if;
    raise exception using errcode = code, message = message;
end;
$setup$;
comment on function pgrecall_setup.install() is
'Installs pgrecall in this database, or upgrades it to the version of the extension, and says which.
Run it again after alter extension pgrecall update. The caller owns what it makes.';
