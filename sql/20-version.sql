create or replace function pgrecall.version()
returns text
language sql immutable parallel safe
return '0.1.0';
comment on function pgrecall.version() is 'Version of the installed pgrecall, as in 0.1.0.';
