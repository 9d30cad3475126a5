  select r.rolname into owner
  from   pg_namespace n
  join   pg_roles r on r.oid = n.nspowner
  where  n.nspname = 'pgrecall' and not r.rolsuper
    and  (select s.rolsuper from pg_roles s where s.rolname = current_user);
  if found then
    raise exception using
      errcode = 'RC012',
      message = format('schema "pgrecall" belongs to "%s", whose functions would run as '
                       'superuser', owner),
      hint    = format('Connect as "%s"; or, if it is not yours: drop schema pgrecall cascade;',
                       owner);
  end if;
