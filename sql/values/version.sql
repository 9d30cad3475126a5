create or replace function pgrecall.version()
returns text
language sql immutable parallel safe
return '0.2.0';
comment on function pgrecall.version is 'Version of the installed pgrecall: major.minor.patch.';
