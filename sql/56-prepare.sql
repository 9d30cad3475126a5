-- What a caller asks a bank before it embeds a question: the text to embed, how the bank reads
-- times, when the last conversation ended, which words of its own ask for the latest state or for a
-- former one.
--
-- Names say who, not what: an embedding of the question without the names of entities finds more,
-- and the names are carried by the graph arm and by option named_boost. That is why a driver makes
-- this look-up before the one call of the recall.
create or replace function pgrecall.prepare_recall(
  bank text, query text, before timestamptz default now())
returns setof pgrecall.preparation
language plpgsql stable parallel safe rows 1
set search_path from current
as $$
declare
  asked pgrecall.bank := pgrecall_internal._bank(bank);
begin
  return query
  select case when asked.is_name_embedded then query else pgrecall.without_names(bank, query) end,
         asked.time_settings, pgrecall.last_session_end(bank, before),
         array(select jsonb_array_elements_text(asked.options -> 'latest_words')),
         array(select jsonb_array_elements_text(asked.options -> 'former_words'));
end;
$$;
comment on function pgrecall.prepare_recall is
'What a caller needs to know of a bank to embed a question and to read the time out of it: the '
'text to embed, which is without_names() unless is_name_embedded is set; the time_settings; when '
'the last conversation that was over by then ended; and latest_words and former_words of the bank, '
'empty where it has none. One row. Errors: RC001, 22023.';
