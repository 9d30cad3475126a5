create or replace function pgrecall.prepare_recall(
  bank text, query text, before timestamptz default now())
returns table (embedded_text text, time_settings jsonb, last_session_end timestamptz)
language plpgsql stable parallel safe rows 1
set search_path from current
as $$
declare
  asked pgrecall.bank := pgrecall._bank(bank);
begin
  return query
  select case when asked.is_name_embedded then query else pgrecall.without_names(bank, query) end,
         asked.time_settings, pgrecall.last_session_end(bank, before);
end;
$$;
comment on function pgrecall.prepare_recall(text, text, timestamptz) is
'What a caller needs to know of a bank to embed a question and to read the time out of it: the '
'text to embed, which is without_names() unless is_name_embedded is set; the time_settings; and '
'when the last conversation that was over by then ended. One row. Errors: RC001, 22023.';
