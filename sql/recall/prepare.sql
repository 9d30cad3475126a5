-- Preparation of a question before it is embedded: the text to embed, the time settings of the
-- bank, the end of the last conversation, its words for the latest and former states, which share
-- of its recalls is to be logged, and the options that keep a reranker out.
--
-- An embedding of the question without the names of entities finds more: the graph arm and option
-- named_boost match the names. Without rare names it compares the facts about whom these name.
-- Therefore a driver makes this call before the recall.
create or replace function pgrecall_internal._stemmed_language(config text)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return (
    select case lower(substring(d.dictinitoption from '(?i)language\s*=\s*''?(\w+)'))
             when 'arabic' then 'ar' when 'armenian' then 'hy' when 'basque' then 'eu'
             when 'catalan' then 'ca' when 'danish' then 'da' when 'dutch' then 'nl'
             when 'estonian' then 'et' when 'finnish' then 'fi' when 'french' then 'fr'
             when 'german' then 'de' when 'greek' then 'el' when 'hindi' then 'hi'
             when 'hungarian' then 'hu' when 'indonesian' then 'id' when 'irish' then 'ga'
             when 'italian' then 'it' when 'lithuanian' then 'lt' when 'nepali' then 'ne'
             when 'norwegian' then 'no' when 'portuguese' then 'pt' when 'romanian' then 'ro'
             when 'russian' then 'ru' when 'serbian' then 'sr' when 'spanish' then 'es'
             when 'swedish' then 'sv' when 'tamil' then 'ta' when 'turkish' then 'tr' end
    from   pg_ts_config_map m
    join   pg_ts_dict d on d.oid = m.mapdict
    where  m.mapcfg = config::regconfig
      and  m.maptokentype = 2  -- words with letters outside ASCII
    order  by m.mapseqno desc
    limit  1
  );
end;
$$;
comment on function pgrecall_internal._stemmed_language is
'Code of the language that a text search configuration stems words in, such as de for german and '
'for a copy of it; null where the driver reads no times in it, and for English, its default.';

create or replace function pgrecall.prepare_recall(
  bank text, query text, before timestamptz default now())
returns setof pgrecall.preparation
language plpgsql stable parallel safe rows 1
set search_path from current
as $$
declare
  asked      pgrecall.bank := pgrecall_internal._bank(bank);
  about_text text;
begin
  if not asked.is_name_embedded then
    select n.embedded_text, n.about_text
    into   query, about_text
    from   pgrecall_internal._without_names(asked, query) as n;
  end if;
  return query
  select prepare_recall.query,
         jsonb_strip_nulls(jsonb_build_object(
           'language', pgrecall_internal._stemmed_language(asked.text_search_config)))
           || asked.time_settings,
         -- As last_session_end(), which would look up the bank again.
         (select s.ended_at
          from   pgrecall.session s
          where  s.bank_id = asked.bank_id and s.ended_at < prepare_recall.before
          order  by s.ended_at desc
          limit  1),
         array(select jsonb_array_elements_text(asked.options -> 'latest_words')),
         array(select jsonb_array_elements_text(asked.options -> 'former_words')),
         asked.log_share, asked.embedding_model, asked.next_model,
         asked.options ->> 'prefer', (asked.options ->> 'diversity')::double precision,
         about_text;
end;
$$;
comment on function pgrecall.prepare_recall is
'What a caller needs to embed a question and to resolve its times, as one row: the text to embed, '
'which is without_names() unless is_name_embedded is set; the time_settings, in which the language '
'is that of text_search_config unless it is set; the end of the last conversation that was over at '
'that time; latest_words and former_words of the bank, empty where it has none; its log_share; the '
'model that it is searched by, and the model that it is being re-embedded with; its options prefer '
'and diversity; and about_text, the query without the names that more than three facts mention, to '
'embed for option about_embedding: null where that is the text to embed, would be but stop words, '
'or is_name_embedded is set. Errors: RC001, 22023.';
