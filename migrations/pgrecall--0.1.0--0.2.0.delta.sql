-- What the next release changes in the state (sql/state/) of a database that has the latest
-- release. Functions, views and comments are made anew by the upgrade itself; see README.md here.
-- The public functions whose arguments or rows change:
-- drop public: arm_plan, bank_statistics, entity_walk, explain_recall, graph_arm, hybrid_recall
-- drop public: hypothetical_arm, key_arm, lexemes, lexical_arm, link_expansion, message_arm
-- drop public: query_entities, retain, retain_messages, rrf, score_rrf, semantic_arm, temporal_arm
-- drop public: supersede, type_hints
-- drop column: bank.weights, bank.fusion, bank.rrf_k, bank.similarity_floor, bank.candidate_limit
-- drop column: bank.type_hints, bank.widen_below

-- phase: catalog

create schema pgrecall_internal;
-- Whoever could call functions goes on to reach what they are made of.
do $$
declare
  part record;
begin
  for part in
    select case x.grantee when 0 then 'public' else x.grantee::regrole::text end as grantee
    from   pg_namespace n
    cross  join lateral aclexplode(n.nspacl) x
    where  n.nspname = 'pgrecall'
    and    x.privilege_type = 'USAGE'
    and    x.grantee <> n.nspowner
  loop
    execute format('grant usage on schema pgrecall_internal to %s', part.grantee);
  end loop;
end;
$$;
-- An index and a generated column stand on these.
alter function pgrecall._lexical_keys(text, text, sparsevec) set schema pgrecall_internal;
alter function pgrecall._dimension(text) set schema pgrecall_internal;

alter type pgrecall.arm_hit add attribute named real;
alter type pgrecall.arm_hit add attribute via jsonb;
alter type pgrecall.arm_hit add attribute background double precision;
alter type pgrecall.recalled add attribute relevance double precision;
alter type pgrecall.recalled add attribute proof_count integer;
alter type pgrecall.recalled add attribute occurred_start timestamptz;
alter type pgrecall.recalled add attribute occurred_end timestamptz;
alter type pgrecall.recalled add attribute via jsonb;
alter type pgrecall.recalled add attribute conflicts_with bigint[];
alter type pgrecall.recalled add attribute written_by text;
alter type pgrecall.recalled add attribute stored_at timestamptz;
alter type pgrecall.recalled add attribute trust double precision;
alter type pgrecall.recalled add attribute tokens bytea;
alter type pgrecall.recalled add attribute is_surplus boolean;
alter type pgrecall.recalled add attribute variant_of bigint;
create type pgrecall.ranked as (
  memory_id bigint,
  rank      integer,
  score     double precision
);
create type pgrecall.expanded as (
  memory_id      bigint,
  rank           integer,
  score          double precision,
  entity_score   double precision,
  semantic_score double precision,
  causal_score   double precision
);
create type pgrecall.fused as (
  memory_id bigint,
  rank      integer,
  score     double precision,
  arms      jsonb
);
create type pgrecall.reranked as (
  memory_id   bigint,
  rank        integer,
  relevance   double precision,
  final_score double precision,
  boost       double precision,
  trust       double precision
);
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
create type pgrecall.recall_report as (
  hits pgrecall.recalled[],
  arms pgrecall.arm_report[]
);
create type pgrecall.named_window as (
  name   text,
  during tstzrange
);
create type pgrecall.recall_step as (
  step   text,
  status text,
  rank   integer,
  score  double precision,
  reason text
);
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
create type pgrecall.bank_model as (
  embedding_model      text,
  embedding_dimensions integer,
  next_model           text
);
create type pgrecall.type_hint as (
  fact_type text,
  matched   text
);
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
create type pgrecall.neighbour as (
  neighbour_id bigint,
  text         text,
  via          text,
  weight       double precision,
  why          text
);
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
create type pgrecall.index_statement as (
  statement text,
  reason    text
);
create type pgrecall_internal.named_entity as (
  entity_id  bigint,
  matched    text,
  confidence real,
  starts_at  integer,
  ends_at    integer,
  mentions   bigint
);
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
create type pgrecall_internal.memories_about as (
  memory_ids bigint[],
  weights    double precision[]
);
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
create type pgrecall_internal.arm_result as (
  is_run     boolean,
  reason     text,
  hint       text,
  memory_ids bigint[],
  scores     double precision[],
  paths      text[],
  background double precision
);
create type pgrecall_internal.period as range (subtype = timestamptz);
create type pgrecall.retained as (
  index       integer,
  memory_id   bigint,
  is_new      boolean,
  is_embedded boolean
);
create type pgrecall.retained_message as (
  index      integer,
  message_id bigint,
  is_new     boolean
);
create type pgrecall.query_entity as (
  entity_id  bigint,
  name       text,
  kind       text,
  matched    text,
  confidence real
);
create type pgrecall.duplicate_entity as (
  entity_id  bigint,
  name       text,
  other_id   bigint,
  other_name text,
  score      double precision,
  reason     text
);
create type pgrecall.bank_statistic as (
  kind           text,
  document_count bigint,
  average_length double precision,
  lexeme_count   bigint,
  waiting        bigint,
  refreshed_at   timestamptz,
  is_weighed     boolean
);
create type pgrecall.maintained as (
  bank_id   text,
  task      text,
  kind      text,
  documents bigint
);
create type pgrecall.lexeme_frequency as (
  lexeme    text,
  frequency integer
);
create type pgrecall.pending_text as (
  memory_id bigint,
  kind      text,
  ordinal   smallint,
  text      text,
  context   text
);
create type pgrecall.stored_embedding as (
  index     integer,
  kind      text,
  ordinal   smallint,
  model     text,
  embedding halfvec,
  tokens    bytea
);
create type pgrecall.reembedding as (
  model           text,
  dimensions      integer,
  next_model      text,
  next_dimensions integer,
  previous_model  text,
  vectors         bigint,
  pending         bigint,
  textless        bigint,
  leftover        bigint
);
create type pgrecall.index_step as (
  bank_id           text,
  fact_type         text,
  action            text,
  statement         text,
  reason            text,
  index_name        text,
  estimated_bytes   bigint,
  estimated_seconds double precision
);
create type pgrecall.recall_checked as (
  fact_type          text,
  path               text,
  questions          integer,
  recall             double precision,
  milliseconds       real,
  exact_milliseconds real
);
create type pgrecall.near_copy as (
  memory_id       bigint,
  text            text,
  similarity      double precision,
  shared_entities text[],
  is_same_source  boolean
);
create type pgrecall.corrected as (
  memory_id     bigint,
  text          text,
  valid_from    timestamptz,
  valid_to      timestamptz,
  superseded_by bigint
);
create type pgrecall.consolidated as (
  kept_id     bigint,
  memory_id   bigint,
  kept_text   text,
  text        text,
  similarity  double precision,
  proof_count integer
);
create type pgrecall.table_security as (
  relation text,
  status   text,
  policies text[],
  open_to  text[]
);
create type pgrecall.stored_memory as (
  memory_id     bigint,
  fact_type     text,
  text          text,
  context       text,
  fact_key      text,
  source_id     text,
  tags          text[],
  metadata      jsonb,
  occurred      tstzrange,
  mentioned_at  timestamptz,
  confidence    real,
  proof_count   integer,
  valid_from    timestamptz,
  valid_to      timestamptz,
  superseded_by bigint,
  entities      text[],
  created_at    timestamptz,
  ended_by      text,
  ended_entities  text[],
  ended_relations text[],
  written_by    text
);
create type pgrecall.audited as (
  at          timestamptz,
  by          text,
  action      text,
  memory_id   bigint,
  source_id   text,
  other_id    bigint,
  text        text
);
create type pgrecall.memory_count as (
  starts_at        timestamptz,
  fact_type        text,
  memories         bigint,
  current_memories bigint
);
create type pgrecall.listed_entity as (
  entity_id     bigint,
  name          text,
  kind          text,
  aliases       text[],
  mention_count bigint,
  created_at    timestamptz
);
create type pgrecall.memory_detail as (
  mentions    jsonb,
  relations   jsonb,
  embeddings  jsonb,
  corrections jsonb,
  is_linked   boolean
);
create type pgrecall.graph_edge as (
  hop           integer,
  from_kind     text,
  from_id       bigint,
  from_name     text,
  from_mentions bigint,
  kind          text,
  to_kind       text,
  to_id         bigint,
  to_name       text,
  to_mentions   bigint,
  weight        real,
  memory_id     bigint,
  from_rarity   real,
  to_rarity     real
);
create type pgrecall.logged_recall as (
  bank_id     text,
  asked_at    timestamptz,
  total_ms    real,
  wait_ms     real,
  embed_ms    real,
  database_ms real,
  rerank_ms   real,
  hits        integer,
  left_out    text[]
);
create type pgrecall.relation_size as (
  relation    text,
  live_rows   bigint,
  dead_rows   bigint,
  table_bytes bigint,
  index_bytes bigint,
  vacuumed_at timestamptz,
  analysed_at timestamptz
);
create type pgrecall.index_build as (
  index_name text,
  relation   text,
  phase      text,
  done       real,
  rows_done  bigint,
  started_at timestamptz,
  waits_for  integer
);
create type pgrecall.standby as (
  name           text,
  state          text,
  behind_bytes   bigint,
  behind_seconds double precision
);
create type pgrecall_internal.fact_name as (
  name       text,
  alias      text,
  kind       text,
  kind_class text,
  aliases    text[]
);
create type pgrecall_internal.fact_relation as (
  from_name  text,
  from_alias text,
  kind       text,
  to_name    text,
  to_alias   text,
  confidence real,
  valid_from timestamptz,
  valid_to   timestamptz
);
create type pgrecall_internal.fact_link as (
  kind     text,
  weight   real,
  to_id    bigint,
  to_index integer,
  to_key   text,
  target   jsonb
);
create type pgrecall_internal.fact_vector as (
  model     text,
  kind      text,
  ordinal   smallint,
  embedding halfvec,
  text      text,
  tokens    bytea
);
create type pgrecall_internal.fact_row as (
  n            integer,
  fact_type    text,
  text         text,
  context      text,
  fact_key     text,
  source_id    text,
  tags         text[],
  metadata     jsonb,
  occurred     tstzrange,
  mentioned_at timestamptz,
  confidence   real,
  proof_count  integer,
  content_hash bytea,
  names        pgrecall_internal.fact_name[],
  relations    pgrecall_internal.fact_relation[],
  links        pgrecall_internal.fact_link[],
  vectors      pgrecall_internal.fact_vector[],
  expires_at   timestamptz
);
create type pgrecall_internal.fact_mention as (
  n          integer,
  memory_id  bigint,
  fact_type  text,
  name       text,
  alias      text,
  kind       text,
  kind_class text
);
create type pgrecall_internal.slot_member as (
  slot      text,
  memory_id bigint,
  value     text,
  said_at   timestamptz,
  ends_at   timestamptz,
  is_said   boolean,
  trust     double precision
);
create type pgrecall_internal.message_row as (
  n            integer,
  session_id   text,
  role         text,
  speaker      text,
  text         text,
  sent_at      timestamptz,
  content_hash bytea
);

create type pgrecall.recall_times as (
  bank_id         text,
  samples         bigint,
  recalls         bigint,
  p50_ms          double precision,
  p95_ms          double precision,
  p99_ms          double precision,
  max_ms          double precision,
  wait_p95_ms     double precision,
  embed_p95_ms    double precision,
  database_p95_ms double precision,
  rerank_p95_ms   double precision,
  without_hits    bigint,
  degraded        bigint
);

create table pgrecall_internal.entity_count (
  bank_id       text not null,
  entity_id     bigint not null,
  mention_count bigint not null,
  constraint entity_count_pkey primary key (bank_id, entity_id),
  constraint entity_count_mention_count_check check (mention_count >= 1)
);

create table pgrecall_internal.name_lock (
  bank_id text not null,
  slot    integer not null,
  constraint name_lock_pkey primary key (bank_id, slot)
);

create table pgrecall.recall_log (
  bank_id     text not null,
  asked_at    timestamptz not null,
  sample_id   uuid not null default gen_random_uuid(),
  share       real not null,
  total_ms    real not null,
  wait_ms     real not null,
  embed_ms    real not null,
  database_ms real not null,
  rerank_ms   real not null,
  hits        integer not null,
  left_out    text[] not null default '{}',
  constraint recall_log_pkey primary key (bank_id, asked_at, sample_id),
  constraint recall_log_share_check check (share > 0 and share <= 1),
  constraint recall_log_hits_check check (hits >= 0)
);

-- Tables of the user's own.
create table pgrecall.attachment (
  bank_id         text not null,
  relation        text not null,
  key             text not null,
  columns         jsonb not null,
  fact_type       text not null,
  apply           text not null default 'later',
  is_history_kept boolean not null default true,
  is_copied       boolean not null default false,
  copied_key      text,
  created_at      timestamptz not null default now(),
  note_name       text not null,
  constraint attachment_pkey primary key (bank_id, relation),
  constraint attachment_columns_check check (jsonb_typeof(columns) = 'object'),
  constraint attachment_apply_check check (apply in ('later', 'commit')),
  constraint attachment_note_name_check check (
    note_name = 'pgrecall_' || left(encode(sha256(convert_to(
      jsonb_build_array(bank_id, relation, key, columns)::text, 'UTF8')), 'hex'), 16))
);

create index attachment_note_name_idx on pgrecall.attachment (note_name);

create table pgrecall.attached_row (
  bank_id   text not null,
  memory_id bigint not null,
  relation  text not null,
  key       text not null,
  row_hash  bytea not null,
  constraint attached_row_pkey primary key (bank_id, memory_id),
  constraint attached_row_bank_id_relation_fkey
    foreign key (bank_id, relation) references pgrecall.attachment (bank_id, relation)
    on delete cascade,
  constraint attached_row_row_hash_check check (octet_length(row_hash) = 32)
);

create index attached_row_bank_id_relation_idx
  on pgrecall.attached_row (bank_id, relation, key, memory_id) where relation is not null;

create table pgrecall.attached_change (
  bank_id   text not null,
  change_id bigint not null default nextval('pgrecall.id_seq'),
  relation  text not null,
  key       text,
  noted_at  timestamptz not null default now(),
  problem   text,
  constraint attached_change_pkey primary key (bank_id, change_id),
  constraint attached_change_bank_id_relation_fkey
    foreign key (bank_id, relation) references pgrecall.attachment (bank_id, relation)
    on delete cascade
);

create index attached_change_bank_id_relation_idx
  on pgrecall.attached_change (bank_id, relation, change_id) where problem is null;
create index attached_change_bank_id_relation_key_idx
  on pgrecall.attached_change (bank_id, relation, key) where problem is not null;

create type pgrecall_internal.attached_fact as (
  key       text,
  fact      jsonb,
  row_hash  bytea,
  memory_id bigint,
  status    text
);

create type pgrecall.attached_table as (
  bank_id     text,
  relation    text,
  status      text,
  key         text,
  columns     jsonb,
  apply       text,
  memories    bigint,
  table_rows  bigint,
  pending     bigint,
  failed      bigint,
  problem     text,
  pending_for interval
);

create type pgrecall.synced_table as (
  bank_id     text,
  relation    text,
  added       bigint,
  changed     bigint,
  removed     bigint,
  unchanged   bigint,
  failed      bigint,
  is_complete boolean
);

-- phase: build

create cast (tstzrange as pgrecall_internal.period)
  with function pgrecall_internal._period_of_range (tstzrange) as implicit;
create cast (daterange as pgrecall_internal.period)
  with function pgrecall_internal._period_of_dates (daterange) as implicit;
create cast (text as pgrecall_internal.period)
  with function pgrecall_internal._period_of_text (text) as implicit;
-- What JDBC sends a string as.
create cast (varchar as pgrecall_internal.period)
  with function pgrecall_internal._period_of_text (text) as implicit;

-- Keys are compared in Unicode form NFKC, and found by their end. The index takes over the name of
-- the old one below.
create index if not exists memory_bank_id_fact_key_new_idx
  on pgrecall.memory (bank_id, lower(pgrecall_internal._normalised(fact_key)),
                      coalesce(valid_to, 'infinity'::timestamptz))
  where fact_key is not null;
create index if not exists memory_bank_id_content_hash_idx
  on pgrecall.memory (bank_id, content_hash)
  where valid_to is not null;
create index if not exists memory_bank_id_fact_type_occurred_new_idx
  on pgrecall.memory (bank_id, fact_type, lower(occurred), upper(occurred))
  where occurred is not null;
-- Ana Silva as "Ana" or "Silva".
create index if not exists entity_alias_bank_id_first_idx on pgrecall.entity_alias
  (bank_id, split_part(pgrecall_internal._unaccented(alias), ' ', 1)) where strpos(alias, ' ') > 0;
create index if not exists entity_alias_bank_id_last_idx on pgrecall.entity_alias
  (bank_id, split_part(pgrecall_internal._unaccented(alias), ' ', -1)) where strpos(alias, ' ') > 0;
-- Words with accents, for questions that are typed without.
create index if not exists lexeme_unaccented_idx on pgrecall.lexeme
  (bank_id, kind, pgrecall_internal._unaccented(lexeme))
  where pgrecall_internal._unaccented(lexeme) <> lexeme;
create index if not exists entity_alias_unaccented_idx on pgrecall.entity_alias
  (bank_id, pgrecall_internal._unaccented(alias))
  where pgrecall_internal._unaccented(alias) <> alias;
-- The newest relations of an entity are read without reading all of them.
create index if not exists relation_bank_id_from_id_relation_id_idx
  on pgrecall.relation (bank_id, from_id, relation_id) where from_id is not null;
create index if not exists relation_bank_id_from_id_kind_relation_id_idx
  on pgrecall.relation (bank_id, from_id, kind, relation_id) where from_id is not null;
create index if not exists relation_bank_id_to_id_relation_id_idx
  on pgrecall.relation (bank_id, to_id, relation_id) where to_id is not null;
-- Only the primary key lists all rows of a bank.
create unique index if not exists relation_bank_id_memory_id_new_key
  on pgrecall.relation (bank_id, memory_id, from_id, kind, to_id) where memory_id is not null;
create index if not exists entity_alias_bank_id_entity_id_new_idx
  on pgrecall.entity_alias (bank_id, entity_id) where entity_id is not null;
create index if not exists mention_bank_id_memory_id_new_idx
  on pgrecall.mention (bank_id, memory_id, entity_id) where memory_id is not null;
create index if not exists link_bank_id_to_id_new_idx
  on pgrecall.link (bank_id, to_id, kind) where to_id is not null;
create unique index if not exists message_bank_id_content_hash_new_key
  on pgrecall.message (bank_id, content_hash) where content_hash is not null;
create index if not exists message_bank_id_session_id_new_idx
  on pgrecall.message (bank_id, session_id, sent_at) where session_id is not null;
create index if not exists session_bank_id_ended_at_idx
  on pgrecall.session (bank_id, ended_at) where ended_at is not null;
create index embedding_bank_id_fact_type_model_new_idx
  on pgrecall.embedding (bank_id, fact_type, model) where fact_type is not null;
-- Names are compared in Unicode form NFKC, and with + and # at the end of a word.
insert into pgrecall.entity_alias (bank_id, alias, entity_id, confidence)
select n.bank_id, n.alias, n.entity_id, n.confidence
from (
  select u.bank_id, u.entity_id, u.confidence,
         lower(trim(regexp_replace(
           pgrecall_internal._normalised(u.name),
           '(?:[^[:alnum:]+#]|(?<![[:alnum:]+#])[+#]+|[+#]+(?=[[:alnum:]]))+', ' ', 'g'))) as alias
  from (
    select e.bank_id, e.entity_id, e.name, 1::real as confidence
    from   pgrecall.entity e
    union all
    select a.bank_id, a.entity_id, a.alias, a.confidence
    from   pgrecall.entity_alias a
  ) as u
  where  octet_length(u.name) > length(u.name) or u.name ~ '[[:alnum:]][+#]'
) as n
where  n.alias <> ''
on conflict do nothing;

-- Mentions are counted up to the watermark, as documents are.
insert into pgrecall_internal.entity_count (bank_id, entity_id, mention_count)
select x.bank_id, x.entity_id, count(*)
from   pgrecall.mention x
join   pgrecall.statistics s
       on s.bank_id = x.bank_id and s.kind = 'memory' and x.memory_id <= s.watermark
group  by x.bank_id, x.entity_id
on conflict do nothing;

-- phase: swap

drop index pgrecall.memory_bank_id_fact_key_idx;
alter index pgrecall.memory_bank_id_fact_key_new_idx rename to memory_bank_id_fact_key_idx;
drop index pgrecall.memory_bank_id_fact_type_occurred_idx;
alter index pgrecall.memory_bank_id_fact_type_occurred_new_idx
  rename to memory_bank_id_fact_type_occurred_idx;
drop index pgrecall.relation_bank_id_from_id_idx;
drop index pgrecall.relation_bank_id_to_id_idx;
drop index pgrecall.relation_bank_id_memory_id_key;
alter index pgrecall.relation_bank_id_memory_id_new_key rename to relation_bank_id_memory_id_key;
drop index pgrecall.entity_alias_bank_id_entity_id_idx;
alter index pgrecall.entity_alias_bank_id_entity_id_new_idx
  rename to entity_alias_bank_id_entity_id_idx;
drop index pgrecall.mention_bank_id_memory_id_idx;
alter index pgrecall.mention_bank_id_memory_id_new_idx rename to mention_bank_id_memory_id_idx;
drop index pgrecall.link_bank_id_to_id_idx;
alter index pgrecall.link_bank_id_to_id_new_idx rename to link_bank_id_to_id_idx;
drop index pgrecall.message_bank_id_content_hash_key;
alter index pgrecall.message_bank_id_content_hash_new_key
  rename to message_bank_id_content_hash_key;
drop index pgrecall.message_bank_id_session_id_idx;
alter index pgrecall.message_bank_id_session_id_new_idx rename to message_bank_id_session_id_idx;
drop index pgrecall.session_bank_id_started_at_idx;
drop index pgrecall.embedding_bank_id_fact_type_model_idx;
alter index pgrecall.embedding_bank_id_fact_type_model_new_idx
  rename to embedding_bank_id_fact_type_model_idx;

-- What is private moves to a schema of its own.
alter table pgrecall.statistics set schema pgrecall_internal;
alter table pgrecall_internal.statistics add column weighed_to bigint;
alter table pgrecall.lexeme set schema pgrecall_internal;
alter table pgrecall_internal.lexeme alter column dimension drop expression;
alter table pgrecall.vocabulary set schema pgrecall_internal;
-- locks: pgrecall.embedding
do $$
declare
  part regclass;
begin
  for part in
    select i.inhrelid from pg_inherits i where i.inhparent = 'pgrecall.embedding'::regclass
  loop
    execute format('alter table %s set schema pgrecall_internal', part);
  end loop;
  for part in
    select i.inhrelid from pg_inherits i
    where  i.inhparent = 'pgrecall.embedding_bank_id_fact_type_model_idx'::regclass
  loop
    execute format('alter index %s rename to %I', part,
                   regexp_replace(part::text, '^.*\.(.*idx)1$', '\1'));
  end loop;
end;
$$;

-- What a bank sets for its recalls becomes one column of options; defaults are not written down,
-- except for the candidates, of which 0.1.0 took more.
alter table pgrecall.bank add column options jsonb not null default '{}';
alter table pgrecall.bank add constraint bank_options_check
  check (jsonb_typeof(options) = 'object');
update pgrecall.bank b
set    options = jsonb_strip_nulls(jsonb_build_object(
         'weights', nullif(b.weights, '{}'),
         'fusion', nullif(b.fusion, 'score_rrf'),
         'rrf_k', nullif(b.rrf_k, 60),
         'similarity_floor', nullif(b.similarity_floor, 0.2::real),
         'candidate_limit', b.candidate_limit,
         'type_hints', b.type_hints,
         'widen_below', nullif(b.widen_below, 5)));
alter table pgrecall.bank drop column weights;
alter table pgrecall.bank drop column fusion;
alter table pgrecall.bank drop column rrf_k;
alter table pgrecall.bank drop column similarity_floor;
alter table pgrecall.bank drop column candidate_limit;
alter table pgrecall.bank drop column type_hints;
alter table pgrecall.bank drop column widen_below;

-- Names in questions, times in questions, neighbours of messages.
alter table pgrecall.bank add column is_name_embedded boolean not null default false;
alter table pgrecall.bank add column time_settings jsonb not null default '{}';
alter table pgrecall.bank add column message_context_weight real not null default 0;
alter table pgrecall.bank add constraint bank_time_settings_check
  check (jsonb_typeof(time_settings) = 'object');
alter table pgrecall.bank add constraint bank_message_context_weight_check
  check (message_context_weight between 0 and 100);

-- A log of recalls.
alter table pgrecall.recall_log add constraint recall_log_bank_id_fkey
  foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade;

-- Tables of the user's own.
alter table pgrecall.attachment add constraint attachment_bank_id_fkey
  foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade;
alter table pgrecall.attached_row add constraint attached_row_bank_id_memory_id_fkey
  foreign key (bank_id, memory_id) references pgrecall.memory (bank_id, memory_id)
  on delete cascade;

-- retain() keeps how sure it was of whom a name means.
alter table pgrecall.mention add column confidence real not null default 1;
alter table pgrecall.mention
  add constraint mention_confidence_check check (confidence between 0 and 1);

-- Similar facts are searched for when they are asked for.
delete from pgrecall.link where kind = 'semantic';
alter table pgrecall.link drop constraint link_kind_check;
alter table pgrecall.link add constraint link_kind_check
  check (kind in ('temporal', 'causes', 'caused_by', 'enables', 'prevents'));

-- Vector indexes.
alter table pgrecall.bank add column hnsw_threshold integer not null default 10000;
alter table pgrecall.bank add column hnsw_m integer not null default 16;
alter table pgrecall.bank add column hnsw_ef_construction integer not null default 64;
alter table pgrecall.bank add column vector_search text not null default 'full';
alter table pgrecall.bank add column leading_dimensions integer not null default 256;
alter table pgrecall.embedding drop constraint embedding_kind_check;
alter table pgrecall.embedding add constraint embedding_kind_check
  check (kind in ('text', 'part', 'question', 'relation', 'usage'));
alter table pgrecall.bank add constraint bank_hnsw_threshold_check
  check (hnsw_threshold between 1 and 1000000000);
alter table pgrecall.bank add constraint bank_hnsw_m_check
  check (hnsw_m between 2 and 100);
alter table pgrecall.bank add constraint bank_hnsw_ef_construction_check
  check (hnsw_ef_construction between greatest(4, 2 * hnsw_m) and 1000);
alter table pgrecall.bank add constraint bank_vector_search_check
  check (vector_search in ('full', 'binary', 'leading'));
alter table pgrecall.bank add constraint bank_leading_dimensions_check
  check (leading_dimensions between 1 and 4000);

-- Re-embedding.
alter table pgrecall.bank add column next_model text;
alter table pgrecall.bank add column next_dimensions integer;
alter table pgrecall.bank add column previous_model text;
alter table pgrecall.bank add constraint bank_next_model_check
  check (next_model <> '' and next_model <> embedding_model);
alter table pgrecall.bank add constraint bank_next_dimensions_check
  check (next_dimensions between 1 and 4000);
alter table pgrecall.bank add constraint bank_next_check
  check ((next_model is null) = (next_dimensions is null));
alter table pgrecall.embedding add column text text;
alter table pgrecall.embedding add column tokens bytea;
alter table pgrecall.embedding alter column tokens set storage external;
create index embedding_bank_id_text_idx
  on pgrecall.embedding (bank_id, text) where fact_type = '';

-- A bank may be searched by pg_textsearch.
alter table pgrecall.bank add column lexical_backend text not null default 'sparsevec';
alter table pgrecall.bank add constraint bank_lexical_backend_check
  check (lexical_backend in ('sparsevec', 'pg_textsearch'));
alter table pgrecall.memory add column lexical_document text;

-- Corrections.
alter table pgrecall.bank add column replace text not null default 'none';
alter table pgrecall.bank add column single_relations text[] not null default '{}';
-- Not at once: a volatile default would rewrite the table and its index.
alter table pgrecall.bank add column fence_key uuid;
update pgrecall.bank set fence_key = gen_random_uuid();
alter table pgrecall.bank alter column fence_key set default gen_random_uuid();
alter table pgrecall.bank alter column fence_key set not null;
alter table pgrecall.bank add column log_share real not null default 0;
alter table pgrecall.bank add constraint bank_log_share_check check (log_share between 0 and 1);
alter table pgrecall.bank add constraint bank_replace_check
  check (replace in ('none', 'key', 'relation', 'both'));
alter table pgrecall.bank add constraint bank_single_relations_check
  check (array_position(single_relations, null) is null);
alter table pgrecall.memory add column corrections jsonb;

-- Who wrote a fact, which of old ones is not known, and how far its source is trusted.
alter table pgrecall.memory add column written_by text;
alter table pgrecall.memory alter column written_by set default current_user;

-- Calibration of embedding models.
alter table pgrecall.bank add column calibrations jsonb not null default
  '{"pgrecall-small-1": {"low_cosine": 0.15, "high_cosine": 0.59,'
  ' "weights": {"lexical": 0.45, "temporal": 1}},'
  ' "pgrecall-small-2": {"low_cosine": 0.15, "high_cosine": 0.56,'
  ' "weights": {"lexical": 0.35, "temporal": 1}}}';
alter table pgrecall.bank add column embedding_mean halfvec generated always as
  ((calibrations -> embedding_model ->> 'mean')::halfvec) stored;
alter table pgrecall.bank add column low_cosine double precision generated always as
  ((calibrations -> embedding_model ->> 'low_cosine')::double precision) stored;
alter table pgrecall.bank add column high_cosine double precision generated always as
  ((calibrations -> embedding_model ->> 'high_cosine')::double precision) stored;
alter table pgrecall.bank add constraint bank_calibrations_check
  check (jsonb_typeof(calibrations) = 'object');

-- Trust in sources; behind the generated columns, as in a fresh install.
alter table pgrecall.bank add column source_trust jsonb not null default '{}';
alter table pgrecall.bank add column quarantined jsonb not null default '{}';
alter table pgrecall.bank add constraint bank_source_trust_check
  check (jsonb_typeof(source_trust) = 'object');
alter table pgrecall.bank add constraint bank_quarantined_check
  check (jsonb_typeof(quarantined) = 'object');

-- Not with its table, for that would lock entity for longer.
alter table pgrecall_internal.entity_count
  add constraint entity_count_bank_id_entity_id_fkey
  foreign key (bank_id, entity_id) references pgrecall.entity (bank_id, entity_id)
  on delete cascade;
alter table pgrecall_internal.name_lock
  add constraint name_lock_bank_id_fkey
  foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade;
