-- Installed by create extension, the tables are the extension's, and pg_dump leaves their rows out
-- unless told otherwise. As a plain script there is nothing to tell.
do $$
declare
  relation regclass;
begin
  for relation in
    select c.oid
    from   pg_class c
    join   pg_depend d on d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'
    join   pg_extension x on x.oid = d.refobjid and x.extname = 'pgrecall'
    where  c.relnamespace = 'pgrecall'::regnamespace and c.relkind in ('r', 'p', 'S')
    order  by c.oid
  loop
    perform pg_extension_config_dump(relation, '');
  end loop;
end;
$$;
