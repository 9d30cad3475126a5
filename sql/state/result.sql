-- Row types of the public functions that write facts, show statistics and plan indexes.
--
-- A function that returns several columns returns one of these types, never "returns table": a new
-- column is then "alter type ... add attribute", and create or replace keeps the function, the
-- grants on it and the views above it. With returns table it would have to be dropped.
-- The types of the recall functions are in state/types.sql. Attributes are only added, at the end;
-- one that exists keeps its name, its type and its meaning.

create type pgrecall.retained as (
  index       integer,
  memory_id   bigint,
  is_new      boolean,
  is_embedded boolean
);
comment on type pgrecall.retained is
'A row of retain(), one for each fact. index: position of the fact in the array, from 0. '
'memory_id: the memory that holds it. is_new: this call stored it; false: it was already stored, '
'or occurs earlier in the array. is_embedded: it has an embedding, of this call or from before.';

create type pgrecall.retained_message as (
  index      integer,
  message_id bigint,
  is_new     boolean
);
comment on type pgrecall.retained_message is
'A row of retain_messages(), one for each message. index: position of the message in the array, '
'from 0. message_id: the message as stored. is_new: this call stored it; false: it was already '
'stored, or occurs earlier in the array.';

create type pgrecall.query_entity as (
  entity_id  bigint,
  name       text,
  kind       text,
  matched    text,
  confidence real
);
comment on type pgrecall.query_entity is
'A row of query_entities(). entity_id, name, kind: the entity, as in table entity. matched: the '
'normalised name of it that occurs in the query. confidence: certainty, 0 to 1, that this name '
'means this entity.';

create type pgrecall.duplicate_entity as (
  entity_id  bigint,
  name       text,
  other_id   bigint,
  other_name text,
  score      double precision,
  reason     text
);
comment on type pgrecall.duplicate_entity is
'A row of duplicate_entities(), a pair. entity_id, name: the entity with more mentions, to be '
'kept. other_id, other_name: the one to merge into it. score: how likely they are the same, 0 to '
'1. reason: their common features, in words.';

create type pgrecall.bank_statistic as (
  kind           text,
  document_count bigint,
  average_length double precision,
  lexeme_count   bigint,
  waiting        bigint,
  refreshed_at   timestamptz,
  is_weighed     boolean
);
comment on type pgrecall.bank_statistic is
'A row of bank_statistics(). kind: memory or message. document_count: documents counted. '
'average_length: their mean length in lexemes. lexeme_count: different lexemes in them. waiting: '
'documents not counted yet. refreshed_at: time of the last count. is_weighed: false while '
'maintain() has weights to compute.';

create type pgrecall.maintained as (
  bank_id   text,
  task      text,
  kind      text,
  documents bigint
);
comment on type pgrecall.maintained is
'A row of maintain(). task: count, weigh, link or prune. kind: memory, message or recall. '
'documents: how many were counted, weighed, linked, or deleted from recall_log.';

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
comment on type pgrecall.recall_times is
'A row of recall_stats(). samples: recalls that were logged. recalls: how many recalls these stand '
'for. p50_ms and so on: percentiles of the whole time; wait, embed, database, rerank: of these '
'stages. without_hits and degraded: samples that found nothing, and from which something was left '
'out.';

create type pgrecall.lexeme_frequency as (
  lexeme    text,
  frequency integer
);
comment on type pgrecall.lexeme_frequency is
'A row of lexemes(). lexeme: a normalised word, identifier or pair of letters. frequency: how '
'often it occurs in the text.';

create type pgrecall.pending_text as (
  memory_id bigint,
  kind      text,
  ordinal   smallint,
  text      text,
  context   text
);
comment on type pgrecall.pending_text is
'A row of reembed_pending(), embed_pending() and the like, a text to embed. memory_id: the '
'memory it belongs to. kind: text for the memory itself, question for a question that it '
'answers, relation for the words of a kind of relation that it states, name for a name in it '
'that may be short for another one. ordinal: number of the question, from 0. text: what to '
'embed. context: that of the memory, for embedders that read it; null for what is not the memory '
'itself.';

create type pgrecall.stored_embedding as (
  index     integer,
  kind      text,
  ordinal   smallint,
  model     text,
  embedding halfvec,
  tokens    bytea
);
comment on type pgrecall.stored_embedding is
'A row of stored_embeddings(), a stored embedding. index: position of the fact in the array, from '
'0. kind: text for the fact itself, question for a question that it answers. ordinal: number of '
'the question, from 0. model: the model that made the embedding; empty: unknown. tokens: as in '
'table embedding.';

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
comment on type pgrecall.reembedding is
'The row of reembed_status(). model, dimensions: those of the bank. next_model, next_dimensions: '
'those of the model it is being re-embedded with; null: none. previous_model: the model before the '
'last reembed_finish() while reembed_clean() still has work; null: none. vectors: embeddings of '
'model. pending: those of them that next_model still lacks. textless: questions retained without '
'their text, which cannot be re-embedded. leftover: memories with embeddings of another model than '
'these two.';

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
comment on type pgrecall.index_step is
'A row of index_plan(), a statement to run. bank_id: whose vectors the index covers; null where '
'the bank is gone, since the index does not name it. fact_type: null, as it covers all; of an '
'index made by 0.2.0, to be dropped, its own. action: create, drop or rename. statement: the SQL. '
'reason: why it is due. index_name: the index that it creates or drops, or its new name. '
'estimated_bytes: size of an index to create. estimated_seconds: time to build it on one core; '
'both null for other actions.';

create type pgrecall.recall_checked as (
  fact_type          text,
  path               text,
  questions          integer,
  recall             double precision,
  milliseconds       real,
  exact_milliseconds real
);
comment on type pgrecall.recall_checked is
'A row of recall_check(), one for each fact type. path: the index used, or that the search was '
'exact. questions: searches made. recall: mean share, 0 to 1, of the k nearest vectors found. '
'milliseconds: mean time of a search. exact_milliseconds: mean time of an exact search.';

create type pgrecall.near_copy as (
  memory_id       bigint,
  text            text,
  similarity      double precision,
  shared_entities text[],
  is_same_source  boolean
);
comment on type pgrecall.near_copy is
'A row of near_copies(). memory_id, text: the near copy. similarity: 0 to 1, of the embeddings, or '
'of the words where one has none. shared_entities: names of the entities that both mention. '
'is_same_source: equal source_id.';

create type pgrecall.corrected as (
  memory_id     bigint,
  text          text,
  valid_from    timestamptz,
  valid_to      timestamptz,
  superseded_by bigint
);
comment on type pgrecall.corrected is
'A memory after supersede(), unsupersede() or unconsolidate(); with dry_run, as it would be.';

create type pgrecall.consolidated as (
  kept_id     bigint,
  memory_id   bigint,
  kept_text   text,
  text        text,
  similarity  double precision,
  proof_count integer
);
comment on type pgrecall.consolidated is
'A row of consolidate(), one for each memory that ends. kept_id, kept_text: the memory that it is '
'merged into. memory_id, text: the one that ends. similarity: 1 for the same text, else of the '
'embeddings. proof_count: that of the kept memory, which is the sum of all merged into it.';

create type pgrecall.table_security as (
  relation text,
  status   text,
  policies text[],
  open_to  text[]
);
comment on type pgrecall.table_security is
'A row of row_security_status(), a table. relation: its name. status: fenced, closed, open or '
'private. policies: names of its policies. open_to: roles that have rights on all its rows.';
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
comment on type pgrecall.stored_memory is
'A row of stored_memories(), list_memories(), memory_history() and update_memory(): the columns of '
'table memory of the same names. entities: names of the entities that it mentions. ended_by: what '
'set valid_to, supersede, update, consolidate, quarantine or retain (a fact that replaced it); '
'null: it holds, or has expired. ended_entities, ended_relations: only of update_memory(), the '
'entities and the relations ("Maya leads Atlas") that the version before had and this one has not. '
'written_by: the role that stored it.';

create type pgrecall.audited as (
  at          timestamptz,
  by          text,
  action      text,
  memory_id   bigint,
  source_id   text,
  other_id    bigint,
  text        text
);
comment on type pgrecall.audited is
'A row of audit(). at: when. by: the role; null: not known. action: retain (stored), supersede, '
'update, replace, consolidate (ended by these), or quarantine. memory_id, source_id, text: the '
'memory. other_id: the memory that it was ended for; null: none.';

create type pgrecall.memory_count as (
  starts_at        timestamptz,
  fact_type        text,
  memories         bigint,
  current_memories bigint
);
comment on type pgrecall.memory_count is
'A row of memory_counts(): how many memories of a type were stored, said or occurred from '
'starts_at on, up to the next hour, day, week, month, quarter or year, and how many hold now.';

create type pgrecall.listed_entity as (
  entity_id     bigint,
  name          text,
  kind          text,
  aliases       text[],
  mention_count bigint,
  created_at    timestamptz
);
comment on type pgrecall.listed_entity is
'A row of list_entities(). aliases: all its names, in normalised form. mention_count: how many '
'memories mention it.';

create type pgrecall.memory_detail as (
  mentions    jsonb,
  relations   jsonb,
  embeddings  jsonb,
  corrections jsonb,
  is_linked   boolean
);
comment on type pgrecall.memory_detail is
'The row of memory_details(). mentions: [{"entity_id", "name", "kind", "confidence"}]. relations: '
'[{"from_id", "from", "kind", "to_id", "to", "confidence", "valid_from", "valid_to"}]. embeddings: '
'[{"model", "kind", "dimensions", "text"}], kind and text as in table embedding. corrections: as '
'in table memory, the latest last. is_linked: whether it has its links.';

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
comment on type pgrecall.graph_edge is
'An edge of neighbourhood(). hop: its distance from the start, in steps. from_kind and to_kind: '
'entity or memory; from_name and to_name: the name, or the first 200 characters of the text; '
'from_mentions and to_mentions: of an entity, how many memories mention it at least: all that are '
'counted, see bank_statistics(), or up to 1,000. kind: that of a relation or link, or mentions. '
'weight: confidence, or similarity of a link, 0 to 1. memory_id: the memory that states a relation '
'or mentions an entity; null for a link. from_rarity and to_rarity: how much an entity tells, 0 to '
'1: as the graph arm weighs it, nearly 0 for one that every memory mentions; null for a memory.';

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
comment on type pgrecall.logged_recall is
'A row of slow_recalls(): columns of table recall_log. asked_at: when the recall began. total_ms: '
'its milliseconds, and those of its stages: waiting for a connection, embedding, the database, '
'reranking. left_out: what failed or was left out; empty for a whole recall.';

create type pgrecall.relation_size as (
  relation    text,
  live_rows   bigint,
  dead_rows   bigint,
  table_bytes bigint,
  index_bytes bigint,
  vacuumed_at timestamptz,
  analysed_at timestamptz
);
comment on type pgrecall.relation_size is
'A row of relation_sizes(). live_rows, dead_rows: as PostgreSQL estimates them; dead rows wait for '
'vacuum. vacuumed_at, analysed_at: the last time, manual or automatic; null: never.';

create type pgrecall.index_build as (
  index_name text,
  relation   text,
  phase      text,
  done       real,
  rows_done  bigint,
  started_at timestamptz,
  waits_for  integer
);
comment on type pgrecall.index_build is
'A row of index_builds(). index_name: null until it is in the catalog. done: what part of the '
'table has been read, 0 to 1; null in phases without progress. rows_done: rows put into the index. '
'waits_for: the process id that a concurrent build waits for; null: none.';

create type pgrecall.standby as (
  name           text,
  state          text,
  behind_bytes   bigint,
  behind_seconds double precision
);
comment on type pgrecall.standby is
'A row of standbys(). state: as in pg_stat_replication; null: the role may not see it. '
'behind_bytes: bytes of the log that it has not replayed. behind_seconds: how long ago the primary '
'wrote what it replayed last; null where nothing was written lately.';

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
comment on type pgrecall.attached_table is
'A row of attached_tables(). status: copying, while the first pass over the rows is not done; '
'current, behind (changes wait for sync_table()), or broken, where problem says why. key, columns, '
'apply: as attached. memories: made of its rows, former contents not counted. table_rows: '
'PostgreSQL''s estimate, for a progress bar; null: not known. pending: changes that wait. failed: '
'rows that cannot be stored, of which problem names one. pending_for: how long the oldest change '
'has waited.';

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
comment on type pgrecall.synced_table is
'A row of sync_table(): how many rows of the table had their memories added, changed and removed, '
'how many were unchanged or have no text, and how many could not be stored. is_complete: nothing '
'is left to do.';
