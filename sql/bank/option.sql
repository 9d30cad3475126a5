-- The options of a recall: all settings besides its named arguments.
--
-- recall_options() is the only place where an option is declared. A row gives its name, type,
-- default, range and meaning; from it come the check of the options of a call or bank, the defaults
-- that a bank may set by configure_bank(), the reference, the keyword arguments of the driver and
-- what the command takes by --set. So an option is added by a row here and by the line that reads
-- it, (request.options ->> 'name').
--
-- The value in effect is that of the call, else that of the bank, else the default. Weights and
-- gates are merged per arm, other options are replaced whole. A null selects the next of these.
create or replace function pgrecall.recall_options()
returns setof pgrecall.recall_option
language sql stable parallel safe rows 25
begin atomic
  select o.name, o.type, o.default_value, o.range, o.description,
         o.lowest::double precision, o.highest::double precision, o.choices, o.is_bank_default
  from (
    values
      ('arms', 'text[]', null::jsonb, 'names of arms()',
       'The arms to run, and no others. Null: all that can help.',
       null, null, null::text[], true),
      ('weights', 'object', pgrecall.default_weights(), '0 to 1000000 for an arm',
       'Weight of each arm in the fusion: {"graph": 0.5}. 0: the arm is not run.',
       0, 1000000, null, true),
      ('gates', 'object', '{}', '0 to 1000000 for an arm',
       'Score that the best hit of an arm must reach: {"semantic": 0.3}. An arm below it is left '
       'out, but never all arms.',
       0, 1000000, null, true),
      ('fusion', 'text', '"score_rrf"', 'score_rrf, rrf, linear',
       'How the arms are joined: by the function of this name.',
       null, null, '{score_rrf,rrf,linear}', true),
      ('rrf_k', 'integer', '60', '1 to 10000',
       'k of reciprocal rank fusion; the larger it is, the less ranks count.',
       1, 10000, null, true),
      ('depth', 'integer', '100', '1 to 10000',
       'How many rows each arm gives, the graph arm beside others half as many; those that compare '
       'embeddings and the temporal arm up to half as many more, about whom the query names. Where '
       'neither bank nor call sets it: at least skip + top_k.',
       1, 10000, null, true),
      ('budget', 'text', '"mid"', 'low, mid, high',
       'mid runs the arms that can help; low leaves out graph, messages and the hypothetical '
       'answer and looks half as deep; high skips only what has nothing to work on and looks twice '
       'as deep.',
       null, null, '{low,mid,high}', true),
      ('skip', 'integer', '0', '0 to 10000',
       'How many of the best rows to skip, for the next page. Set depth for all pages alike: '
       'arms that look deeper change the order a little.',
       0, 10000, null, true),
      ('collapse', 'boolean', 'false', 'true, false',
       'Keeps only the best row of each source_id.',
       null, null, null, true),
      ('diversity', 'number', '0', '0 to 1',
       'Moves rows that resemble earlier ones further down (maximal marginal relevance among the '
       'first 200): rows are then not in the order of their scores.',
       0, 1, null, true),
      ('untrusted_rows', 'integer', '3', '0 to 1000',
       'How many rows of one source that is trusted less than 1 (source_trust of the bank) may '
       'stand before others; more of them come last.',
       0, 1000, null, true),
      ('source_rows', 'integer', '0', '0 to 1000',
       'Rows of one source_id that may stand before others; further ones follow behind all else. '
       '0: any number.',
       0, 1000, null, true),
      ('min_relevance', 'number', '0', '0 to 1',
       'Leaves out rows whose relevance is lower, and may leave none.',
       0, 1, null, true),
      ('use_hints', 'boolean', 'false', 'true, false',
       'Searches only the fact types that type_hints() finds in the query, unless that finds too '
       'little (widen_below).',
       null, null, null, true),
      ('widen_below', 'integer', '5', '0 to 1000',
       'A recall that was narrowed by hints looks everywhere when it finds fewer memories than '
       'this. 0: never.',
       0, 1000, null, true),
      ('type_hints', 'object', null, 'words by fact type, "*" for any',
       'Words that say which fact type a query asks for. Null: those of default_type_hints().',
       null, null, null, true),
      ('relation_words', 'object', null, 'meanings by word',
       'Words that ask for relations or causes, {"skipper": ["noun<skippers"]}: over those of '
       'default_relation_words().',
       null, null, null, true),
      ('graph_steps', 'integer', '2', '1 to 4',
       'How many mentions, relations and links that the query does not ask for a path of the graph '
       'arm may follow. Those that it asks for do not count.',
       1, 4, null, true),
      ('prefer', 'text', '"relevant"', 'relevant, latest, former',
       'latest puts the newest of nearly equal rows about the same first, former the oldest.',
       null, null, '{relevant,latest,former}', true),
      ('latest_words', 'text[]', null, '100 texts of 1 to 1000 characters',
       'Words or phrases by which a question asks for the latest state, beside those that the '
       'driver knows: it reads them and sets prefer.',
       null, 100, null, true),
      ('former_words', 'text[]', null, '100 texts of 1 to 1000 characters',
       'Words or phrases by which a question asks for a former state, as in latest_words.',
       null, 100, null, true),
      ('time_mode', 'text', '"boost"', 'boost, filter, events',
       'boost lifts what occurred in the window of during; filter leaves out all else; events also '
       'leaves out what began before the window and ended after it.',
       null, null, '{boost,filter,events}', true),
      ('time_basis', 'text', '"occurred"', 'occurred, mentioned',
       'mentioned takes the time when it was said where the time when it happened is not known.',
       null, null, '{occurred,mentioned}', true),
      ('recency_half_life', 'interval', null, 'longer than 0',
       'Age at which recency neither lifts nor lowers a score, only with fusion linear; see '
       'recency_boost(). Null: age only settles ties.',
       null, null, null, true),
      ('recency_decay', 'text', '"exponential"', 'exponential, linear',
       'How recency falls with age; linear reaches 0 at twice the half-life.',
       null, null, '{exponential,linear}', true),
      ('named_boost', 'number', '3', '0 to 10',
       'How much more a memory counts for each entity that it mentions and the query names, or if '
       'the graph leads to it from there: contributions are multiplied by 1 + named_boost * the '
       'sum, at most two thirds, of the confidence in each entity * how much its name says: a '
       'sixth where half of the facts mention it, a third where a quarter or fewer do.',
       0, 10, null, true),
      ('doubt', 'number', '0.9', '0 to 1',
       'Share of its weight that the lexical or a semantic arm loses where it can hardly tell '
       'memories apart and the other can: embeddings in a language that their model does not know, '
       'words in long questions.',
       0, 1, null, true),
      ('known_words', 'number', '1', '0 to 1',
       'Share of the words of the query that the embedding model knows, as its embedder says. From '
       '0.75 on the semantic arm has all of its weight, at 0.25 none. Below 0.75 doubt takes more '
       'of it where similarities are vague.',
       0, 1, null, false),
      ('similarity_floor', 'number', '0.2', '-1 to 1',
       'Cosine similarity below which the semantic arms return nothing.',
       -1, 1, null, true),
      ('candidate_limit', 'integer', '9000', '100 to 100000000',
       'About how many memories the lexical arms score at most, those with the rarest words and '
       'sets of words first; a quarter as many where these are enough.',
       100, 100000000, null, true),
      ('ef_search', 'integer', null, '1 to 1000',
       'Candidates that a search of an HNSW index keeps: more find more and take longer. Null: '
       'a fifth more than depth, or five times depth with vector_search binary or leading.',
       1, 1000, null, true),
      ('exact_limit', 'integer', '1000000', '0 to 9000000000000000',
       'Vectors of a bank up to which all that pass a filter are compared where its HNSW '
       'index finds too few of them; beyond, the report says that some may be missing.',
       0, 9e15, null, true),
      ('arm_timeout', 'interval', null, 'longer than 0',
       'Time after which no further arm begins; the arms that ran answer. An arm waits for a lock '
       'for at most a quarter of it. A running arm goes on; statement_timeout ends the statement.',
       null, null, null, true),
      ('about_embedding', 'embedding', null, 'numbers, as many as embedding has',
       'Embedding of the query without names, about_text of prepare_recall(): compares the facts '
       'about those whom the query names with each other. Only with an embedding.',
       null, null, null, false),
      ('hypothetical', 'embedding', null, 'numbers, as many as embedding has',
       'Embedding of a hypothetical answer (HyDE), which is searched with too.',
       null, null, null, false),
      ('explain', 'boolean', 'false', 'true, false',
       'Counts the index scans of each arm, for its report.',
       null, null, null, false),
      ('with_tokens', 'boolean', 'false', 'true, false',
       'Returns the token vectors of memories; the driver reranks by them and sets this itself.',
       null, null, null, false),
      ('keys', 'text[]', null, '100 texts of 1 to 1000 characters',
       'Keys of facts that the key arm finds, each as a whole, before those that stand in the '
       'query. A query may then be empty.',
       null, 100, null, false),
      ('terms', 'text[]', null, '100 texts of 1 to 1000 characters',
       'Synonyms and expansions of the query, which the arms lexical and message look for with '
       'half the weight of its own words. A query may then be empty.',
       null, 100, null, false),
      ('entity', 'text', null, 'a name',
       'Keeps only what mentions the entity of this name; any of its names will do. For several '
       'entities, or other conditions too, use entity in a filter.',
       null, null, null, false),
      ('window', 'text', null, 'a name of windows(), or a range',
       'The window of time by its name, in place of during: {"window": "last quarter"}.',
       null, null, null, false)
  ) as o(name, type, default_value, range, description, lowest, highest, choices, is_bank_default);
end;
comment on function pgrecall.recall_options is
'Every option of a recall: name, type, default, range, what it does. is_bank_default: '
'configure_bank() takes it as well.';

create or replace function pgrecall_internal._option_defaults()
returns jsonb
language sql immutable parallel safe
-- Folded to a constant in the plans that use it.
return (
  select jsonb_object_agg(o.name, coalesce(o.default_value, 'null'))
  from   pgrecall.recall_options() as o
);
comment on function pgrecall_internal._option_defaults is
'The defaults of all options by name.';

create or replace function pgrecall_internal._check_by_arm(
  name text, numbers jsonb, lowest double precision, highest double precision,
  is_any_arm boolean default false)
returns void
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  hint  text := case name
    when 'gate' then 'A gate is the least best score an arm must reach: {"semantic": 0.3}; 0: none.'
    else 'A weight of 0 leaves the arm out; 1 is the usual one: {"lexical": 2, "graph": 0}.'
  end;
  arm   text;
  value jsonb;
begin
  perform pgrecall_internal._check_object(name || 's', coalesce(numbers, '{}'), hint);
  for arm, value in select e.key, e.value from jsonb_each(numbers) as e loop
    if not is_any_arm and not pgrecall.default_weights() ? arm then
      raise exception using
        errcode = 'RC009',
        message = format('unknown arm "%s" in %ss', arm, name),
        hint    = format('Arms: %s.', pgrecall_internal._arm_names());
    end if;
    if jsonb_typeof(value) <> 'number'
       or value::text::numeric not between lowest::numeric and highest::numeric
    then
      raise exception using
        errcode = 'invalid_parameter_value',
        message = format('%s of arm "%s" must be a number from %s to %s, not %s',
                         name, arm, lowest::numeric, highest::numeric, left(value::text, 80)),
        hint    = hint;
    end if;
  end loop;
end;
$$;
comment on function pgrecall_internal._check_by_arm is
'Checks an object of numbers by arm; name is weight or gate. Errors: RC009 unknown arm, 22023.';

create or replace function pgrecall_internal._invalid_option(
  name text, wanted text, value jsonb, hint text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  raise exception using
    errcode = 'invalid_parameter_value',
    message = format('%s must be %s, not %s', name, wanted, left(value::text, 80)),
    hint    = hint;
end;
$$;
comment on function pgrecall_internal._invalid_option is 'Raises 22023 for the value of an option.';

create or replace function pgrecall_internal._check_arms_option(value jsonb)
returns void
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  unknown text;
begin
  if jsonb_typeof(value) <> 'array' then
    perform pgrecall_internal._invalid_option(
      'arms', 'an array of names', value, 'Write ["lexical", "semantic"].');
  end if;
  select a.name into unknown
  from   jsonb_array_elements(value) as a(name)
  where  jsonb_typeof(a.name) <> 'string' or not pgrecall.default_weights() ? (a.name #>> '{}')
  limit  1;
  if found or value = '[]' then
    raise exception using
      errcode = 'RC009',
      message = case when value = '[]' then 'arms is empty'
                     else format('unknown arm "%s"', trim(unknown, '"')) end,
      hint    = format('Arms: %s.', pgrecall_internal._arm_names());
  end if;
end;
$$;
comment on function pgrecall_internal._check_arms_option is
'Raises RC009 for an unknown arm or an empty array, 22023 unless it is an array.';

create or replace function pgrecall_internal._check_texts_option(
  option pgrecall.recall_option, value jsonb)
returns void
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  hint constant text := format('Write {"%s": ["spring tide", "fix.e-47821"]}.', option.name);
  bad  jsonb;
begin
  if jsonb_typeof(value) <> 'array' then
    perform pgrecall_internal._invalid_option(option.name, 'an array of texts', value, hint);
  elsif jsonb_array_length(value) > option.highest then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s holds %s texts, not %s at most',
                       option.name, jsonb_array_length(value), option.highest),
      hint    = 'Pass only the best.';
  end if;
  select t.value into bad
  from   jsonb_array_elements(value) as t
  where  jsonb_typeof(t.value) <> 'string'
     or  length(t.value #>> '{}') > 1000 or t.value #>> '{}' !~ '\S'
  limit  1;
  if found then
    perform pgrecall_internal._invalid_option(
      option.name, 'texts of 1 to 1000 characters', bad, hint);
  end if;
end;
$$;
comment on function pgrecall_internal._check_texts_option is
'Raises 22023 unless value is an array of texts, no more than the option takes.';

create or replace function pgrecall_internal._checked_option(
  option pgrecall.recall_option, value jsonb)
returns jsonb
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  kind    text := jsonb_typeof(value);
  -- Valid in a call, in configure_bank() and in an arm that is called alone.
  example text := coalesce(
    'The default is ' || option.default_value::text || '.',
    format('Write %s, for example.',
           case option.type when 'interval' then '"30 days"' when 'embedding' then '[0.1, 0.2]'
                            else '{}' end));
begin
  case option.type
    when 'boolean' then
      if kind <> 'boolean' then
        perform pgrecall_internal._invalid_option(option.name, 'true or false', value, example);
      end if;
    when 'integer', 'number' then
      if kind <> 'number'
         or value::text::numeric not between option.lowest::numeric and option.highest::numeric
         or option.type = 'integer' and value::text::numeric % 1 <> 0
      then
        perform pgrecall_internal._invalid_option(
          option.name, format('between %s and %s', option.lowest::numeric, option.highest::numeric),
          value, example);
      end if;
    when 'text' then
      if kind <> 'string' or value #>> '{}' <> all (option.choices) then
        perform pgrecall_internal._invalid_option(
          option.name,
          coalesce(pgrecall_internal._quoted_choices(option.choices), 'a text'), value,
          option.description);
      end if;
    when 'interval' then
      if kind <> 'string' or not pg_input_is_valid(value #>> '{}', 'interval')
         or (value #>> '{}')::interval <= interval '0'
      then
        perform pgrecall_internal._invalid_option(
          option.name, 'an interval longer than 0', value, example);
      end if;
    when 'text[]' then
      if option.name = 'arms' then
        perform pgrecall_internal._check_arms_option(value);
      else
        perform pgrecall_internal._check_texts_option(option, value);
      end if;
    when 'embedding' then
      if kind not in ('array', 'string') then
        perform pgrecall_internal._invalid_option(
          option.name, 'an array of numbers', value, example);
      end if;
    when 'object' then
      if option.lowest is not null then
        perform pgrecall_internal._check_by_arm(
          trim(trailing 's' from option.name), value, option.lowest, option.highest);
      elsif kind <> 'object' then
        perform pgrecall_internal._invalid_option(option.name, 'an object', value, example);
      end if;
  end case;
  return value;
end;
$$;
comment on function pgrecall_internal._checked_option is
'The value, not null, of an option. Raises 22023, or RC009 for an unknown arm, unless it fits.';

create or replace function pgrecall_internal._checked_options(options jsonb)
returns jsonb
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  given     record;
  nearest   text;
  arguments constant text[] := '{during, fact_types, tags, filter, top_k, as_of, model}';
begin
  if jsonb_typeof(options) <> 'object' then
    perform pgrecall_internal._check_object(
      'options', options, 'Pass ''{"diversity": 0.2}'', for example.');
  end if;
  for given in
    select e.key, e.value, o as option
    from   jsonb_each(options) as e
    left   join pgrecall.recall_options() as o on o.name = e.key
  loop
    if given.option is null then
      nearest := pgrecall_internal._nearest_name(
        given.key, arguments || array(select o.name from pgrecall.recall_options() as o));
      raise exception using
        errcode = 'invalid_parameter_value',
        message = format('unknown option "%s"', given.key),
        hint    = case
          when nearest = any (arguments)
            then format('Did you mean %s? It is an argument of its own: %1$s => ...', nearest)
          else format('Did you mean "%s"? select * from pgrecall.recall_options(); lists them.',
                      nearest)
        end;
    elsif given.value <> 'null' then
      given.value := pgrecall_internal._checked_option(given.option, given.value);
    end if;
  end loop;
  return options;
end;
$$;
comment on function pgrecall_internal._checked_options is
'The options. Raises 22023 or RC009 unless every key is an option and every value fits it.';

create or replace function pgrecall_internal._check_recency(options jsonb)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if options ->> 'recency_half_life' is not null and options ->> 'fusion' <> 'linear' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('recency_half_life does not go with fusion "%s"', options ->> 'fusion'),
      hint    = 'In a sum of 1 / (k + rank), ten percent is dozens of ranks. Choose fusion '
                '"linear"; with the others recency only settles ties.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_recency is
'Raises 22023 where a half-life is set with a fusion by ranks.';

create or replace function pgrecall_internal._bank_options(
  bank pgrecall.bank, is_embedded boolean default true)
returns jsonb
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  defaults jsonb := pgrecall_internal._option_defaults();
  weights  jsonb := case when is_embedded
                      then bank.calibrations -> bank.embedding_model -> 'weights' end;
begin
  if bank.options = '{}' and weights is null then
    return defaults;
  end if;
  return defaults || bank.options || jsonb_build_object(
    'weights', defaults -> 'weights' || coalesce(weights, '{}')
               || coalesce(bank.options -> 'weights', '{}'));
end;
$$;
comment on function pgrecall_internal._bank_options is
'Every option with its default in a bank: first what the bank sets, then, for a question with an '
'embedding, what its model sets.';

create or replace function pgrecall_internal._known_weights(
  weights jsonb, known_words double precision)
returns jsonb
language sql immutable parallel safe
begin atomic
  select weights || jsonb_object_agg(
           a.arm, coalesce((weights ->> a.arm)::double precision, a.weight)
                  * greatest(0, least(1, (known_words - 0.25) / 0.5)))
  from   pgrecall.arms() as a
  where  'embedding' = any (a.needs);
end;
comment on function pgrecall_internal._known_weights is
'The weights, reduced for arms that compare the embedding of the query where the model knows few '
'of its words: whole down to a share of 0.75, nothing at 0.25 and below.';

create or replace function pgrecall_internal._resolved_options(defaults jsonb, options jsonb)
returns jsonb
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  given jsonb;
begin
  given := jsonb_strip_nulls(pgrecall_internal._checked_options(options));
  given := defaults || given || jsonb_build_object(
    'weights', defaults -> 'weights' || coalesce(given -> 'weights', '{}'),
    'gates', defaults -> 'gates' || coalesce(given -> 'gates', '{}'));
  -- A half-life set by the bank applies only with its own fusion.
  if given ->> 'fusion' <> 'linear' and options ->> 'recency_half_life' is null then
    given := given || '{"recency_half_life": null}';
  end if;
  if (given ->> 'known_words')::double precision < 0.75 then
    given := jsonb_set(given, '{weights}', pgrecall_internal._known_weights(
      given -> 'weights', (given ->> 'known_words')::double precision));
  end if;
  if given ->> 'recency_half_life' is not null then
    perform pgrecall_internal._check_recency(given);
  end if;
  return given;
end;
$$;
comment on function pgrecall_internal._resolved_options is
'Every option with its value in a call. defaults: those of the bank. Errors: 22023, RC009.';

create or replace function pgrecall.bank_options(bank text)
returns jsonb
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return pgrecall_internal._bank_options(pgrecall_internal._bank(bank));
end;
$$;
comment on function pgrecall.bank_options is
'Every option of a recall by name, with its default in a bank; weights: of a question with an '
'embedding. Errors: RC001.';
