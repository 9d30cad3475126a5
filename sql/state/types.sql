-- Row types of the public recall functions, and the private types used within a recall.
--
-- A public function returns a named composite type, never "returns table": an attribute can be
-- added at the end of a type (alter type ... add attribute) while views, grants and callers of the
-- function stay as they are. Attributes are never removed, renamed or reordered.
--
-- pgrecall_internal.period is the parameter type of the public functions for a time window. It is a
-- separate range type over timestamptz, because PostgreSQL lets only the owner of a type add
-- implicit casts: so one signature accepts a tstzrange, a daterange and text from any client. The
-- functions of these casts live here too; changing one needs a line in migrations/next.sql.
-- PostgreSQL reads a literal without a type as a range before any cast is asked, so names of
-- windows need text before them, or option window. A second function that takes text would be
-- chosen for such a literal (tried on 16 and 18), but then each name would stand for two functions:
-- a grant by name fails, and so does a gateway that chooses a function by the names of its
-- arguments.
--
-- The types of the other public functions are in state/result.sql.
create type pgrecall.arm_hit as (
  arm        text,
  memory_id  bigint,
  rank       integer,
  score      double precision,
  named      real,
  via        jsonb,
  background double precision
);
comment on type pgrecall.arm_hit is
'A hit of an arm: the id of a memory or message, its rank in the arm from 1, the score of the arm '
'(larger is better), and named: how much the entities say that the query names and the memory '
'mentions, or that a path begins at which leads to it: the confidence in each, a sixth of it '
'where half of the facts mention it, a third where a quarter or fewer do, summed, at most two '
'thirds; null where there are none. via: the path that led there, as one text of ids in a JSON '
'string, which hybrid_recall() resolves into the object that a row of its answer has; null where '
'there is none. '
'background: for arms that compare embeddings, the similarity that a quarter of the bank reaches; '
'infinite where the question has a rare identifier, which embeddings hardly tell apart; null: not '
'known.';

create type pgrecall.ranked as (
  memory_id bigint,
  rank      integer,
  score     double precision
);
comment on type pgrecall.ranked is
'A row of an arm function: the id of a memory, or of a message in message_arm(), its rank from 1, '
'and its score, larger is better.';

create type pgrecall.expanded as (
  memory_id      bigint,
  rank           integer,
  score          double precision,
  entity_score   double precision,
  semantic_score double precision,
  causal_score   double precision
);
comment on type pgrecall.expanded is
'A row of link_expansion(): score is the sum of the other three.';

create type pgrecall.fused as (
  memory_id bigint,
  rank      integer,
  score     double precision,
  arms      jsonb
);
comment on type pgrecall.fused is
'A row of a fusion. Equal scores share a rank. arms: {"lexical": {"rank": 1, "score": 7.3, '
'"contribution": 0.0164}, ...}; the contributions add up to the score.';

create type pgrecall.recalled as (
  rank           integer,
  memory_id      bigint,
  kind           text,
  fact_type      text,
  text           text,
  context        text,
  fact_key       text,
  source_id      text,
  tags           text[],
  metadata       jsonb,
  occurred       tstzrange,
  mentioned_at   timestamptz,
  confidence     real,
  score          double precision,
  arms           jsonb,
  relevance      double precision,
  proof_count    integer,
  occurred_start timestamptz,
  occurred_end   timestamptz,
  via            jsonb,
  conflicts_with bigint[],
  written_by     text,
  stored_at      timestamptz,
  trust          double precision,
  tokens         bytea,
  is_surplus     boolean,
  variant_of     bigint
);
comment on type pgrecall.recalled is
'A row of hybrid_recall(): a memory, or a raw message (kind = message: memory_id is its '
'message_id, context its speaker, source_id its session). arms: {"lexical": {"rank": 1, "score": '
'7.3, "contribution": 0.0164}, ...}; the contributions add up to score, and named is the share of '
'one that a rare name in the query gave. relevance: how likely the row answers the query, 0 to 1. '
'confidence and proof_count are those of the fact. occurred_start '
'and occurred_end are the bounds of occurred, for clients that know no ranges; an open side is '
'infinity. via: the path that led to the row, where the graph arm followed one: entities (names), '
'relations (kinds), facts (ids), path (names and relations as one line), direction (cause or '
'effect), text (what the facts before it on the path say, up to four, 200 characters of each; none '
'that the filter leaves out), each where it applies. conflicts_with: the memories, found or not, '
'that contradict the row: another text under the same fact_key, or a relation that leads elsewhere '
'(single_relations of the bank); null: none. written_by, stored_at: the role that stored the '
'memory, and when; null for a message. trust: the trust in its source, from source_trust of the '
'bank; 1 where it is not named. tokens: with option with_tokens, the token vectors of a memory as '
'table embedding has them; else null. is_surplus: untrusted_rows or source_rows puts the row '
'behind all others. variant_of: the memory_id of a row before it that says nearly the same, of '
'which it is another state: an earlier one, one trusted less, or one from after now or the end of '
'the window; null: none.';

create type pgrecall.reranked as (
  memory_id   bigint,
  rank        integer,
  relevance   double precision,
  final_score double precision,
  boost       double precision,
  trust       double precision
);
comment on type pgrecall.reranked is
'A row of rerank(), best first. relevance: as given; null where it did not count. final_score: the '
'rows are in descending order of it; a row that kept its place has that of the best row after it, '
'rows after the last relevance have 0; where trust is 0, the fused score. boost: the factor '
'applied. trust: how much the relevances counted, 0 to 1.';

create type pgrecall.arm_report as (
  arm          text,
  status       text,
  reason       text,
  rows         integer,
  best_score   double precision,
  milliseconds double precision,
  indexes      text,
  hint         text
);
comment on type pgrecall.arm_report is
'Report on one arm of a recall. status: ran, gated (ran, but its best score is below its gate), '
'skipped, failed, or planned, in a report without a run. reason: why, or details of the run. rows: '
'how many it found. indexes: those that it scanned, where option explain counts them. hint: what '
'to do if something was left out or failed; else null.';

create type pgrecall.recall_report as (
  hits pgrecall.recalled[],
  arms pgrecall.arm_report[]
);
comment on type pgrecall.recall_report is
'One run of a recall: the rows of hybrid_recall(), best first, and the report on each arm.';

create type pgrecall.recall_step as (
  step   text,
  status text,
  rank   integer,
  score  double precision,
  reason text
);
comment on type pgrecall.recall_step is
'A row of why_not(). step: reach (whether the recall may find it at all), the name of an arm, '
'fusion or answer. status: found, missed, left out or returned; for an arm that did not run: '
'skipped or failed; gated where its best score is below its gate. rank: the place, from 1, in the '
'arm, the fusion or the whole order of the answer. score: the score in the arm or the fusion; for '
'an arm that missed it, the score that it would have had; null: none. reason: why, in words; may '
'be null.';

create type pgrecall.recall_option as (
  name            text,
  type            text,
  default_value   jsonb,
  range           text,
  description     text,
  lowest          double precision,
  highest         double precision,
  choices         text[],
  is_bank_default boolean
);
comment on type pgrecall.recall_option is
'An option of a recall. type: boolean, integer, number, text, interval, text[], object or '
'embedding. range: the allowed values, in words. lowest and highest bound a number, choices lists '
'the values of a text. is_bank_default: configure_bank() takes it too.';

create type pgrecall.arm as (
  arm          text,
  place        integer,
  weight       double precision,
  needs        text[],
  least_budget text,
  finds        text,
  description  text,
  certain_at   double precision
);
comment on type pgrecall.arm is
'A row of the registry of arms. place: the order in which they run. weight: the default in the '
'fusion. needs: what the call must bring (query, embedding, hypothetical, during) and what is '
'looked up for it (names, terms); of an arm that lists keys or terms, the option of that name '
'stands in for the query. least_budget: low, mid or high. finds: memory or message. certain_at: '
'the score at which the arm is certain, for fusion score_rrf; null: its best score, whatever that '
'is.';

create type pgrecall.bank_model as (
  embedding_model      text,
  embedding_dimensions integer,
  next_model           text
);
comment on type pgrecall.bank_model is
'The model that a bank is embedded with, and the one that it is being re-embedded with; null: '
'none.';

create type pgrecall.type_hint as (
  fact_type text,
  matched   text
);
comment on type pgrecall.type_hint is
'A fact type that the words of a query ask for, null for any, and the first word that implies it.';

create type pgrecall.preparation as (
  embedded_text    text,
  time_settings    jsonb,
  last_session_end timestamptz,
  latest_words     text[],
  former_words     text[],
  log_share        real,
  embedding_model  text,
  next_model       text,
  prefer           text,
  diversity        double precision,
  about_text       text
);
comment on type pgrecall.preparation is
'The row of prepare_recall(): what is needed before a question is embedded. prefer, diversity: '
'these options of the bank; null: it has none. about_text: what to embed for option '
'about_embedding; null: nothing.';

create type pgrecall.neighbour as (
  neighbour_id bigint,
  text         text,
  via          text,
  weight       double precision,
  why          text
);
comment on type pgrecall.neighbour is
'A row of neighbours(). via: the kind of the link, or entity. weight: 0 to 1. why: in words.';

create type pgrecall.path_step as (
  step      integer,
  from_name text,
  via       text,
  to_name   text,
  memory_id bigint,
  why       text,
  from_id   bigint,
  to_id     bigint
);
comment on type pgrecall.path_step is
'A step of path(): from one entity to the next, via a relation or "mentioned with"; memory_id is '
'the fact that states it.';

create type pgrecall.index_statement as (
  statement text,
  reason    text
);
comment on type pgrecall.index_statement is
'An index statement to run, and the reason for it.';

create type pgrecall.turn as (
  place      integer,
  message_id bigint,
  session_id text,
  role       text,
  speaker    text,
  text       text,
  sent_at    timestamptz
);
comment on type pgrecall.turn is
'A row of message_context(). place: 0 is the message asked for, -1 the one before, 1 the one '
'after.';

create type pgrecall_internal.named_entity as (
  entity_id  bigint,
  matched    text,
  confidence real,
  starts_at  integer,
  ends_at    integer,
  mentions   bigint
);
comment on type pgrecall_internal.named_entity is
'An entity that a query names, as query_entities() finds it, the position of its name in the '
'normalised query, and the number of facts that mention it.';

create type pgrecall_internal.terms as (
  dimensions integer[],
  idfs       double precision[],
  counts     bigint[],
  idf_sum    double precision,
  is_shared  boolean,
  documents  bigint,
  watermark  bigint,
  spellings  text[]
);
comment on type pgrecall_internal.terms is
'The lexemes of a query as one collection (memories or messages) counts them, rarest first: '
'dimension in lexical_weights, IDF, number of documents. is_shared: one shares its dimension with '
'another lexeme of the bank. documents: how many are counted, with ids up to watermark. spellings: '
'lexemes of the bank that count as one of the query, because they differ in accents alone.';

create type pgrecall_internal.arm_found as (
  arm        text,
  finds      text,
  is_graph   boolean,
  certain_at double precision,
  best       double precision,
  worst      double precision,
  eleventh   double precision,
  background double precision
);
comment on type pgrecall_internal.arm_found is
'An arm that found something: what its row of the registry says, its best and its worst score, the '
'lowest among the ranks up to 11 (0: it has no more than ten hits), and its background.';

create type pgrecall_internal.memories_about as (
  memory_ids bigint[],
  weights    double precision[]
);
comment on type pgrecall_internal.memories_about is
'Memories that mention entities named in a query, and the weights of these names, summed; null '
'where there are none.';

create type pgrecall_internal.request as (
  bank          pgrecall.bank,
  options       jsonb,
  query         text,
  embedding     halfvec,
  about_vector  halfvec,
  hypothetical  halfvec,
  during        tstzrange,
  fact_types    text[],
  all_types     text[],
  is_whole      boolean,
  filter        jsonb,
  visible_sql   text,
  as_of         timestamptz,
  top_k         integer,
  depth         integer,
  arms          text[],
  named         pgrecall_internal.named_entity[],
  words         text,
  phrases       text[],
  excluded      text[],
  lexemes       text[],
  memory_terms  pgrecall_internal.terms,
  message_terms pgrecall_internal.terms,
  note          text,
  found         pgrecall_internal.arm_found[],
  about         pgrecall_internal.memories_about
);
comment on type pgrecall_internal.request is
'One recall, checked and resolved: the argument of every arm. options: every option with its '
'value. query: trimmed and normalised. about_vector: option about_embedding. fact_types: those to '
'search now; all_types: those to search when that finds too little; is_whole: these are all that '
'the bank has. visible_sql: the filter, the window and as_of as a predicate over alias m of '
'memory. arms: those asked for; null: all that apply. lexemes, memory_terms and message_terms are '
'null where no arm searches for words. note: how the types were narrowed or widened. found: the '
'arms that found something so far; null in an arm that is called alone. about: memories that '
'mention whom the query names, see _about().';

create type pgrecall_internal.arm_result as (
  is_run     boolean,
  reason     text,
  hint       text,
  memory_ids bigint[],
  scores     double precision[],
  paths      text[],
  background double precision
);
comment on type pgrecall_internal.arm_result is
'Result of the worker of an arm: whether it has input, why or why not, a hint where something was '
'left out, and its hits, best first, with the paths that led there.';

create type pgrecall_internal.period as range (subtype = timestamptz);
comment on type pgrecall_internal.period is
'Parameter type for a time window: tstzrange, daterange (days in UTC) and text are cast to it.';

create or replace function pgrecall_internal._period_of_range(range tstzrange)
returns pgrecall_internal.period
language plpgsql immutable strict parallel safe
as $$
begin
  if isempty(range) then
    -- Cast from the range type: a text would be cast by _period_of_text(), which recurses into
    -- this.
    return 'empty'::pgrecall_internal.period;
  end if;
  return pgrecall_internal.period(
    lower(range), upper(range),
    case when lower_inc(range) then '[' else '(' end
    || case when upper_inc(range) then ']' else ')' end);
end;
$$;
comment on function pgrecall_internal._period_of_range is 'The cast from tstzrange to period.';

create or replace function pgrecall_internal._period_of_dates(range daterange)
returns pgrecall_internal.period
language plpgsql immutable strict parallel safe
as $$
begin
  -- A daterange is always half-open; facts of a day are stored as that day in UTC.
  return pgrecall_internal._period_of_range(case
    when isempty(range) then 'empty'
    else tstzrange(lower(range)::timestamp at time zone 'UTC',
                   upper(range)::timestamp at time zone 'UTC')
  end);
end;
$$;
comment on function pgrecall_internal._period_of_dates is
'The cast from daterange to period: days in UTC.';

create type pgrecall.named_window as (
  name   text,
  during tstzrange
);
comment on type pgrecall.named_window is
'A row of windows(). name: what text for a window may say. during: the range that it means.';

create or replace function pgrecall.windows(at timestamptz default now())
returns setof pgrecall.named_window
language sql stable parallel safe
begin atomic
  -- Every column is named, as pg_dump names them: a restored function is the same. Near the ends of
  -- time there are no other days. Days are counted by the clock of the zone: a day that begins at
  -- one, when daylight saving does, lies between two that begin at midnight.
  with asked as (
    select date_trunc('day', greatest('4000-01-01 BC', least('290000-01-01', x.at::timestamp)))
             as day
    from  (select coalesce(windows.at, now()) as at) as x
    where  isfinite(x.at)
  )
  select w.name, tstzrange(w.starts::timestamptz, w.ends::timestamptz)
  from (
    select 'today' as name, a.day as starts, a.day + interval '1 day' as ends, 1 as place
    from   asked a
    union all
    select 'yesterday' as name, a.day - interval '1 day' as starts, a.day as ends, 2 as place
    from   asked a
    union all
    select t.name || ' ' || u.unit as name, date_trunc(u.unit, a.day) - t.back * u.step as starts,
           date_trunc(u.unit, a.day) + (1 - t.back) * u.step as ends, 2 * u.place + t.back as place
    from  (values ('week', interval '1 week', 2), ('month', interval '1 month', 3),
                  ('quarter', interval '3 months', 4), ('year', interval '1 year', 5)
          ) as u(unit, step, place)
    cross  join (values ('this', 0), ('last', 1)) as t(name, back)
    cross  join asked a
    union all
    select format('last %s days', n) as name, a.day - n * interval '1 day' as starts,
           a.day + interval '1 day' as ends, 100 + n as place
    from   unnest(array[7, 30, 90]) as n
    cross  join asked a
  ) as w
  order  by w.place;
end;
comment on function pgrecall.windows is
'The windows that have a name, as seen at a time (null: now; infinity has none): today, yesterday, '
'this and last week, month, quarter and year, the last 7, 30 and 90 days. Option window of a '
'recall takes these names, and "last N days" with any number; so does during of any function where '
'it is text: during => text ''last quarter''. Days begin at midnight in the time zone of the '
'session, weeks on Monday; the last N days are those and today.';

create or replace function pgrecall_internal._period_of_text(range text)
returns pgrecall_internal.period
language plpgsql stable strict parallel safe
as $$
declare
  asked text := lower(btrim(range) collate "C");
  span  tstzrange;
begin
  select w.during into span from pgrecall.windows() as w where w.name = asked;
  if asked ~ '^last [1-9][0-9]{0,4} days$' then
    span := tstzrange(current_date - substring(asked from '[0-9]+')::integer, current_date + 1);
  end if;
  if span is null and not pg_input_is_valid(range, 'tstzrange') then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('"%s" is not a window of time', left(range, 80)),
      hint    = (select 'Names of windows: ' || string_agg(w.name, ', ')
                 from   pgrecall.windows() as w)
                || ', or any number of days. Else write ''[2026-03-01, 2026-04-01)'', with a side '
                   'empty to keep it open.';
  end if;
  return pgrecall_internal._period_of_range(coalesce(span, range::tstzrange));
end;
$$;
comment on function pgrecall_internal._period_of_text is
'The cast from text to period: a name of windows(), "last N days", or a range, whose times without '
'a zone are in the time zone of the session.';

create cast (tstzrange as pgrecall_internal.period)
  with function pgrecall_internal._period_of_range (tstzrange) as implicit;
create cast (daterange as pgrecall_internal.period)
  with function pgrecall_internal._period_of_dates (daterange) as implicit;
create cast (text as pgrecall_internal.period)
  with function pgrecall_internal._period_of_text (text) as implicit;
-- JDBC sends strings as varchar.
create cast (character varying as pgrecall_internal.period)
  with function pgrecall_internal._period_of_text (text) as implicit;
