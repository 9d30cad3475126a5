-- pgrecall 0.2.0, the whole schema. Assembled from sql/ and migrations/ by make build: edit there.

-- state/schema.sql
-- pgrecall: the memory of an AI agent, in PostgreSQL.
--
-- This file checks what the database must have, makes the two schemas, and the sequence of all ids.
-- Schema pgrecall holds what users call and read; pgrecall_internal holds private objects, which
-- may change in any release. All scripts run inside one transaction, whichever route runs them:
-- psql -1 -f, pgrecall migrate, or pgrecall_setup.install() of the extension. pgvector is created
-- where it is missing and the role may. Installs and upgrades wait for one another. Nothing is
-- created when a check fails, and every failure has the code RC012 and a hint.
--
-- All indexes that begin with the bank look equally good to a planner that knows nothing of a bank,
-- or plans for one of average size. So only the primary key of a table lists all rows of a bank;
-- any other such index is partial, by "is not null" where nothing else limits it, and is considered
-- only where a search implies its predicate, as a comparison of that column does.

-- First of all: where others may create functions in a schema on the caller's path, one whose
-- arguments fit better would be called instead of PostgreSQL's own, with the caller's rights.
do $$
begin
  perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
end;
$$;

-- Functions freeze this search_path (set search_path from current), so that no caller's path
-- reaches into them.
do $$
declare
  vector_schema name;
  vector_version text;
begin
  if current_setting('server_version_num')::integer < 160000 then
    raise exception using
      errcode = 'RC012',
      message = format('PostgreSQL 16 or newer is needed, not %s',
                       current_setting('server_version')),
      hint    = 'Upgrade the server first, with pg_upgrade or by dump and restore.';
  end if;

  perform pg_advisory_xact_lock(hashtextextended('pgrecall', 0));

  if to_regnamespace('pgrecall') is not null then
    raise exception using
      errcode = 'RC012',
      message = 'schema "pgrecall" already exists in this database',
      hint    = 'To upgrade an installed pgrecall run: pgrecall migrate, or: alter extension '
                'pgrecall update; select pgrecall_setup.install();';
  end if;

  if not exists (select from pg_extension x where x.extname = 'vector') then
    begin
      -- By name in a string: the extension of pgrecall requires it, and then it is there.
      execute 'create extension vector schema public';
    exception when insufficient_privilege or undefined_file or feature_not_supported
              or invalid_schema_name then
      raise exception using
        errcode = 'RC012',
        message = format('pgvector is not installed in this database: %s', sqlerrm),
        hint    = case
          when exists (select from pg_available_extensions a where a.name = 'vector')
            then 'Have it installed by a role that may: create extension vector;'
          else 'Install pgvector 0.8 or newer on the server, then: create extension vector;' end;
    end;
  end if;
  select n.nspname, x.extversion
  into   vector_schema, vector_version
  from   pg_extension x
  join   pg_namespace n on n.oid = x.extnamespace
  where  x.extname = 'vector';
  if string_to_array(vector_version, '.')::integer[] < array[0, 8, 0] then
    raise exception using
      errcode = 'RC012',
      message = format('pgvector 0.8.0 or newer is needed, not %s', vector_version),
      hint    = 'Upgrade it: alter extension vector update;';
  end if;

  -- Functions look up their names in pgvector's schema too, where one whose arguments fit better
  -- would win over pg_catalog's.
  if exists (
    select
    from   pg_namespace n
    cross  join lateral aclexplode(n.nspacl) a
    where  n.nspname = vector_schema and a.grantee = 0 and a.privilege_type = 'CREATE'
  ) then
    raise exception using
      errcode = 'RC012',
      message = format('everybody may create functions in schema "%s", where pgvector is',
                       vector_schema),
      hint    = format('Run: revoke create on schema %I from public; or move pgvector: alter '
                       'extension vector set schema ...;', vector_schema);
  end if;
  -- SQL_ASCII does not know characters, and others lack some of those in the words and patterns
  -- that follow.
  if getdatabaseencoding() <> 'UTF8' then
    raise exception using
      errcode = 'RC012',
      message = format('the encoding of database "%s" is %s', current_database(),
                       getdatabaseencoding()),
      hint    = 'Create one with another encoding: create database memory encoding ''UTF8'' '
                'template template0;';
  end if;

  perform set_config('search_path', format('pg_catalog, %I, pg_temp', vector_schema), true);
end;
$$;

-- The path holds until the transaction ends; outside a transaction the script must fail.
do $$
begin
  if current_setting('search_path') not like 'pg_catalog, %, pg_temp' then
    raise exception using
      errcode = 'RC012',
      message = 'this script was not run in one transaction',
      hint    = 'Run it with: psql -1 -v ON_ERROR_STOP=1 -f';
  end if;
  -- Loads pgvector's library: before that, only a superuser can create functions that set hnsw.*.
  execute 'select ''[1]''::halfvec';

  create schema pgrecall;
  create schema pgrecall_internal;
end;
$$;
comment on schema pgrecall is
'Memory of AI agents: banks of facts, recalled by meaning, words, relations and time. Start at '
'pgrecall.hybrid_recall().';

comment on schema pgrecall_internal is
'Private objects of pgrecall. They may change in any release: use those of schema pgrecall.';

-- One sequence for everything that carries an id: a memory and a message never share one,
-- and every shard has its own range of ids.
create sequence pgrecall.id_seq as bigint;
comment on sequence pgrecall.id_seq is
'Ids of memories, messages, entities and relations. Give every shard a range of its own.';

-- state/bank.sql
-- A bank is one memory: of an agent, a user, a project. All other tables carry its bank_id first in
-- their keys, and one call touches one bank.
--
-- bank holds what belongs to the data: the embedding model that is pinned, the text search
-- configuration, how words are weighted when they are stored, how vectors are indexed. The defaults
-- for recalls are a jsonb of their own, options, so that a new option does not change the table;
-- recall_options() declares them and configure_bank() checks them.
--
-- fact_type lists the kinds of memory that a bank holds.
create table pgrecall.bank (
  bank_id              text not null,
  text_search_config   text not null default 'english',
  embedding_model      text,
  embedding_dimensions integer,
  bm25_k1              real not null default 1.2,
  bm25_b               real not null default 0.75,
  created_at           timestamptz not null default now(),
  context_weight       real not null default 0.5,
  key_weight           real not null default 1,
  options              jsonb not null default '{}',
  is_name_embedded     boolean not null default false,
  time_settings        jsonb not null default '{}',
  message_context_weight real not null default 0,
  hnsw_threshold       integer not null default 10000,
  hnsw_m               integer not null default 16,
  hnsw_ef_construction integer not null default 64,
  vector_search        text not null default 'full',
  leading_dimensions   integer not null default 256,
  next_model           text,
  next_dimensions      integer,
  previous_model       text,
  lexical_backend      text not null default 'sparsevec',
  replace              text not null default 'none',
  single_relations     text[] not null default '{}',
  fence_key            uuid not null default gen_random_uuid(),
  log_share            real not null default 0,
  calibrations         jsonb not null default
                         '{"pgrecall-small-1": {"low_cosine": 0.15, "high_cosine": 0.59,'
                         ' "weights": {"lexical": 0.45, "temporal": 1}},'
                         ' "pgrecall-small-2": {"low_cosine": 0.15, "high_cosine": 0.56,'
                         ' "weights": {"lexical": 0.35, "temporal": 1}}}',
  embedding_mean       halfvec generated always as
                         ((calibrations -> embedding_model ->> 'mean')::halfvec) stored,
  low_cosine           double precision generated always as
                         ((calibrations -> embedding_model ->> 'low_cosine')::double precision)
                         stored,
  high_cosine          double precision generated always as
                         ((calibrations -> embedding_model ->> 'high_cosine')::double precision)
                         stored,
  source_trust         jsonb not null default '{}',
  quarantined          jsonb not null default '{}',
  constraint bank_pkey primary key (bank_id),
  constraint bank_bank_id_check check (bank_id <> '' and length(bank_id) <= 200),
  constraint bank_embedding_model_check check (embedding_model <> ''),
  constraint bank_embedding_dimensions_check check (embedding_dimensions between 1 and 4000),
  constraint bank_bm25_k1_check check (bm25_k1 between 0 and 10),
  constraint bank_bm25_b_check check (bm25_b between 0 and 1),
  constraint bank_context_weight_check check (context_weight between 0 and 100),
  constraint bank_key_weight_check check (key_weight between 0 and 100),
  constraint bank_options_check check (jsonb_typeof(options) = 'object'),
  constraint bank_time_settings_check check (jsonb_typeof(time_settings) = 'object'),
  constraint bank_message_context_weight_check check (message_context_weight between 0 and 100),
  constraint bank_hnsw_threshold_check check (hnsw_threshold between 1 and 1000000000),
  constraint bank_hnsw_m_check check (hnsw_m between 2 and 100),
  constraint bank_hnsw_ef_construction_check
    check (hnsw_ef_construction between greatest(4, 2 * hnsw_m) and 1000),
  constraint bank_vector_search_check check (vector_search in ('full', 'binary', 'leading')),
  constraint bank_leading_dimensions_check check (leading_dimensions between 1 and 4000),
  constraint bank_next_model_check check (next_model <> '' and next_model <> embedding_model),
  constraint bank_next_dimensions_check check (next_dimensions between 1 and 4000),
  constraint bank_next_check check ((next_model is null) = (next_dimensions is null)),
  constraint bank_lexical_backend_check check (lexical_backend in ('sparsevec', 'pg_textsearch')),
  constraint bank_replace_check check (replace in ('none', 'key', 'relation', 'both')),
  constraint bank_single_relations_check check (array_position(single_relations, null) is null),
  constraint bank_log_share_check check (log_share between 0 and 1),
  constraint bank_calibrations_check check (jsonb_typeof(calibrations) = 'object'),
  constraint bank_source_trust_check check (jsonb_typeof(source_trust) = 'object'),
  constraint bank_quarantined_check check (jsonb_typeof(quarantined) = 'object')
);
comment on table pgrecall.bank is
'One memory: an agent, a user, a project. Every other table carries its bank_id first in its key.';
comment on column pgrecall.bank.text_search_config is
'Text search configuration of the lexical arms, such as english or simple. Fixed once facts are '
'stored.';
comment on column pgrecall.bank.embedding_model is
'Model that made the embeddings; a query or fact that names another one is an error. Null: not '
'pinned yet.';
comment on column pgrecall.bank.embedding_dimensions is
'Length of every embedding of the bank, 1 to 4000. Null: pinned by the first embedding stored.';
comment on column pgrecall.bank.bm25_k1 is
'Term frequency saturation of BM25. Takes effect on stored facts at the next full '
'refresh_statistics().';
comment on column pgrecall.bank.bm25_b is
'Length normalisation of BM25, 0 to 1. Takes effect on stored facts at the next full '
'refresh_statistics().';
comment on column pgrecall.bank.context_weight is
'Weight of words in the context of a fact relative to its text, as in BM25F; 0: ignored. Takes '
'effect on stored facts at the next full refresh_statistics(), which setting it to or from 0 does.';
comment on column pgrecall.bank.key_weight is
'Weight of words in the fact_key, in the same way as context_weight.';
comment on column pgrecall.bank.options is
'Defaults of this bank for the options of a recall, {"diversity": 0.2}: the recall_options() that '
'configure_bank() was given. Read them with bank_options().';
comment on column pgrecall.bank.is_name_embedded is
'Whether questions are embedded with the names of entities in them; otherwise prepare_recall() '
'takes them out.';
comment on column pgrecall.bank.time_settings is
'How the driver reads times in questions: {"language": "de", "country": "AT", "southern": false, '
'"day_first": true, "recent_days": 30, "few": 3}, any subset. The language is that of '
'text_search_config if it is not set.';
comment on column pgrecall.bank.message_context_weight is
'Weight of words in the messages right before and after one relative to its own text, as in BM25F; '
'0: ignored. Takes effect on stored messages at the next full refresh_statistics(), which setting '
'it to or from 0 does.';
comment on column pgrecall.bank.hnsw_threshold is
'Number of vectors at which index_plan() adds an HNSW index; below half of it, it drops the index.';
comment on column pgrecall.bank.hnsw_m is 'Neighbours of each element in an HNSW index, 2 to 100.';
comment on column pgrecall.bank.hnsw_ef_construction is
'Candidates considered when an element is inserted into an HNSW index, from twice hnsw_m to 1000.';
comment on column pgrecall.bank.vector_search is
'full: by the whole vectors. binary: by the signs of their elements. leading: by their first '
'leading_dimensions, for models trained for that (Matryoshka). Candidates found by the last two '
'are ranked by their whole vectors.';
comment on column pgrecall.bank.leading_dimensions is
'Elements that vector_search leading compares first; a shorter vector is compared whole.';
comment on column pgrecall.bank.next_model is
'Model that the bank is being re-embedded with; searches use it only after reembed_finish(). Null: '
'none.';
comment on column pgrecall.bank.next_dimensions is 'Length of the embeddings of next_model.';
comment on column pgrecall.bank.previous_model is
'Model before the last reembed_finish(), until reembed_clean() has removed its embeddings; empty '
'when it had no name. Null: none.';
comment on column pgrecall.bank.lexical_backend is
'Index behind the lexical arm: sparsevec, which is exact and needs nothing else, or the index of '
'the extension pg_textsearch that lexical_index_plan() asks for.';
comment on column pgrecall.bank.replace is
'Which facts end older ones when they are retained. none: no fact. key: a fact ends those of its '
'fact_key. relation: a fact ends those that lead the same relation from the same entity to another '
'one. both: a fact does either.';
comment on column pgrecall.bank.single_relations is
'Kinds of relations that an entity has to only one other at a time, such as lives_in. Facts that '
'name different ones conflict, and replace one another where replace says so. Empty: every kind, '
'where replace is relation or both.';
comment on column pgrecall.bank.fence_key is
'Secret of the bank. A recall under row security passes it to the function that searches without '
'row security, as proof that its role may read the bank. enable_row_security() changes it.';
comment on column pgrecall.bank.log_share is
'Share of the driver''s recalls that is logged in recall_log, 0 to 1; 0: none.';
comment on column pgrecall.bank.calibrations is
'Constants by the name of their model: those that calibrate_bank() stored, and those of the models '
'that come with the driver. Embeddings of a model with a mean are stored as vectors of length 1 '
'minus it.';
comment on column pgrecall.bank.embedding_mean is
'Vector subtracted from the embeddings of embedding_model. Null: none.';
comment on column pgrecall.bank.low_cosine is
'Cosine of embedding_model that counts as a similarity of 0.2. Null: similarities are cosines.';
comment on column pgrecall.bank.high_cosine is
'Cosine of embedding_model that counts as a similarity of 0.7.';
comment on column pgrecall.bank.source_trust is
'How far sources are trusted, 0 to 1: {"web:*": 0.2, "web:handbook": 1}; a * at the end stands for '
'any ending. The trust multiplies the score of a source''s facts, and no fact ends one from a '
'source that is trusted more. A source not named here has 1.';
comment on column pgrecall.bank.quarantined is
'Sources in quarantine, each with the correction_id of what quarantine() did to its facts.';

create table pgrecall.fact_type (
  bank_id     text not null,
  fact_type   text not null,
  description text not null default '',
  constraint fact_type_pkey primary key (bank_id, fact_type),
  constraint fact_type_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade,
  constraint fact_type_fact_type_check
    check (fact_type ~ '^[a-z][a-z0-9_]{0,62}$' and fact_type <> 'message')
);
comment on table pgrecall.fact_type is
'The kinds of memory that a bank holds. Statements that arms build query each in a branch.';

-- state/memory.sql
-- Facts: table memory, and the functions that its indexes use.
--
-- A row is one fact, as retain() wrote it. Its content never changes: a correction sets valid_to
-- and records the previous values in corrections; forget() deletes it. Embeddings, mentions,
-- relations and links are in tables of their own and refer to it by (bank_id, memory_id). Every key
-- and every index begins with bank_id, so that banks do not slow each other down and can be
-- distributed; the lexical index hashes the bank into its keys instead, since GIN cannot order.
-- content_hash makes retain() idempotent. lexical_weights is a sparse vector of BM25 weights
-- without the IDF, which changes with each document and is multiplied in at query time.

-- Indexes use the functions below: a change of one needs a migration that rebuilds its indexes.

create or replace function pgrecall_internal._normalised(content text)
returns text
-- Strict: the planner then knows that a compared key is not null, as the partial index requires.
language plpgsql immutable strict parallel safe
as $$
begin
  -- Shortcut for plain ASCII, as most texts are, and for single-byte encodings.
  if octet_length(content) = length(content) or getdatabaseencoding() <> 'UTF8' then
    return content;
  end if;
  return normalize(content, nfkc);
end;
$$;
comment on function pgrecall_internal._normalised is
'A text in Unicode form NFKC, for comparisons: one code point for an accented letter, wide letters '
'and digits as plain ones. Unchanged in a database whose encoding is not UTF8.';

create or replace function pgrecall_internal._scope(bank_id text, fact_type text)
returns bigint
language sql immutable parallel safe
return hashtextextended(_scope.fact_type, hashtextextended(_scope.bank_id, 0));
comment on function pgrecall_internal._scope is
'Hash of a bank and a fact type, from which the keys of the lexical index are derived.';

create or replace function pgrecall_internal._lexical_keys(
  bank_id text, fact_type text, weights sparsevec)
returns bigint[]
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  scope bigint := pgrecall_internal._scope(_lexical_keys.bank_id, _lexical_keys.fact_type);
begin
  -- A sparsevec prints as {dimension:weight,...}/dimensions.
  return array(
    select hashint8extended(split_part(element, ':', 1)::bigint, scope)
    from   unnest(string_to_array(trim(split_part(weights::text, '/', 1), '{}'), ',')) as element
  );
end;
$$;
comment on function pgrecall_internal._lexical_keys is
'Keys of a document in the lexical index: the dimensions of its weights, hashed with its bank and '
'fact type.';

create table pgrecall.memory (
  bank_id         text not null,
  memory_id       bigint not null default nextval('pgrecall.id_seq'),
  fact_type       text not null,
  text            text not null,
  context         text,
  fact_key        text,
  source_id       text,
  tags            text[] not null default '{}',
  metadata        jsonb not null default '{}',
  occurred        tstzrange,
  mentioned_at    timestamptz not null default now(),
  confidence      real not null default 1,
  proof_count     integer not null default 1,
  valid_from      timestamptz not null default now(),
  valid_to        timestamptz,
  superseded_by   bigint,
  content_hash    bytea not null,
  is_linked       boolean not null default false,
  lexical_length  real not null default 0,
  lexical_weights sparsevec not null default '{}/1000000000',
  created_at      timestamptz not null default now(),
  lexical_document text,
  corrections     jsonb,
  written_by      text default current_user,
  constraint memory_pkey primary key (bank_id, memory_id),
  constraint memory_bank_id_fact_type_fkey
    foreign key (bank_id, fact_type) references pgrecall.fact_type (bank_id, fact_type)
    on delete cascade,
  constraint memory_bank_id_superseded_by_fkey
    foreign key (bank_id, superseded_by) references pgrecall.memory (bank_id, memory_id),
  constraint memory_text_check check (text <> '' and length(text) <= 100000),
  constraint memory_fact_key_check check (fact_key <> ''),
  constraint memory_metadata_check check (jsonb_typeof(metadata) = 'object'),
  constraint memory_occurred_check check (not isempty(occurred)),
  constraint memory_confidence_check check (confidence between 0 and 1),
  constraint memory_proof_count_check check (proof_count >= 1),
  constraint memory_valid_to_check check (valid_to >= valid_from),
  constraint memory_superseded_by_check
    check (superseded_by is null or (valid_to is not null and superseded_by <> memory_id)),
  constraint memory_content_hash_check check (octet_length(content_hash) = 32),
  constraint memory_lexical_length_check check (lexical_length >= 0)
);
comment on table pgrecall.memory is
'Facts. Written by retain(), ended by supersede(), erased by forget().';
comment on column pgrecall.memory.fact_key is
'Exact key under which the fact can be looked up: deploy.window. The key arm compares it in lower '
'case.';
comment on column pgrecall.memory.source_id is 'Document or conversation the fact was taken from.';
comment on column pgrecall.memory.occurred is
'When it happened, half-open; an open side is infinity. Null: unknown.';
comment on column pgrecall.memory.mentioned_at is 'When it was said.';
comment on column pgrecall.memory.confidence is 'Confidence in the fact, 0 to 1.';
comment on column pgrecall.memory.proof_count is 'Number of independent sources that state it.';
comment on column pgrecall.memory.valid_from is
'Known from here on: when it was said or stored, whichever is earlier. as_of compares with it.';
comment on column pgrecall.memory.valid_to is
'The fact no longer holds from here on; in the future: it expires then. Null: it holds without '
'end.';
comment on column pgrecall.memory.superseded_by is 'The memory that replaced this one.';
comment on column pgrecall.memory.content_hash is
'SHA-256 of the fields that identify the fact: retaining it again stores nothing.';
comment on column pgrecall.memory.is_linked is
'False until link_pending() has written its links.';
comment on column pgrecall.memory.lexical_length is
'Number of lexemes, repeated ones counted, those of context and fact_key by their weights.';
comment on column pgrecall.memory.lexical_weights is
'BM25 weight per lexeme without the IDF; dimension = hash of the lexeme.';
comment on column pgrecall.memory.lexical_document is
'The lexemes as numbers, each repeated by its weighted frequency, for an index of pg_textsearch. '
'Null in banks with another lexical_backend.';
comment on column pgrecall.memory.corrections is
'Corrections of the fact, the latest last, each with the previous values of the row: [{"kind": '
'"supersede", "correction_id": 7, "replaced_by": 5, "valid_to": null, "superseded_by": null, '
'"proof_count": 1, "by": "ana", "at": "2026-03-05T14:00:00+00:00"}]. kind: supersede, update, '
'retain, consolidate or quarantine. by: the role. unsupersede() removes the last, release() that '
'of quarantine(). Null: none.';
comment on column pgrecall.memory.written_by is
'Role that stored the fact. Null: stored before release 0.2.0.';

create unique index memory_bank_id_content_hash_key on pgrecall.memory (bank_id, content_hash)
  where valid_to is null;
create index memory_bank_id_content_hash_idx on pgrecall.memory (bank_id, content_hash)
  where valid_to is not null;
-- Ordered by valid_to, so that current facts of a key are found without reading its history.
create index memory_bank_id_fact_key_idx
  on pgrecall.memory (bank_id, lower(pgrecall_internal._normalised(fact_key)),
                      coalesce(valid_to, 'infinity'::timestamptz))
  where fact_key is not null;
create index memory_bank_id_source_id_idx on pgrecall.memory (bank_id, source_id)
  where source_id is not null;
create index memory_bank_id_fact_type_occurred_idx
  on pgrecall.memory (bank_id, fact_type, lower(occurred), upper(occurred))
  where occurred is not null;
create index memory_bank_id_fact_type_mentioned_at_idx
  on pgrecall.memory (bank_id, fact_type, mentioned_at) where occurred is null;
create index memory_bank_id_superseded_by_idx on pgrecall.memory (bank_id, superseded_by)
  where superseded_by is not null;
create index memory_bank_id_is_linked_idx on pgrecall.memory (bank_id, memory_id)
  where not is_linked;
create index memory_lexical_keys_idx on pgrecall.memory
  using gin (pgrecall_internal._lexical_keys(bank_id, fact_type, lexical_weights))
  with (fastupdate = off);

-- state/embedding.sql
-- Embeddings of memories and of the questions they answer: table embedding and its partitions.
--
-- The table is partitioned by bank, so that all vectors of a bank are in one partition and each
-- partition has few of the partial HNSW indexes that index_plan() creates
-- (operations/index-plan.sql): PostgreSQL tries every index of a table when it plans. The number of
-- partitions is fixed at install. A row belongs to one model. While a bank is re-embedded it has
-- rows of two models; searches compare with the bank's model only.

create table pgrecall.embedding (
  bank_id   text not null,
  memory_id bigint not null,
  model     text not null,
  kind      text not null default 'text',
  ordinal   smallint not null default 0,
  fact_type text not null,
  embedding halfvec not null,
  text      text,
  tokens    bytea,
  constraint embedding_pkey primary key (bank_id, memory_id, model, kind, ordinal),
  constraint embedding_bank_id_memory_id_fkey
    foreign key (bank_id, memory_id) references pgrecall.memory (bank_id, memory_id)
    on delete cascade,
  constraint embedding_kind_check check (kind in ('text', 'question', 'relation', 'usage')),
  constraint embedding_ordinal_check check (ordinal >= 0)
) partition by hash (bank_id);
comment on table pgrecall.embedding is
'Vectors, stored apart from the facts, so that a bank can hold those of two models.';
comment on column pgrecall.embedding.model is
'Model that made it; empty when the caller named none.';
comment on column pgrecall.embedding.kind is
'text: of the fact itself. question: of a question that the fact answers. relation: of the words '
'of a kind of relation that the fact states, one row for each kind of a bank. usage: the mean of '
'these words and of the facts that state the kind.';
comment on column pgrecall.embedding.ordinal is
'Number of the question, or of the kind of relation, among those of one fact, from 0.';
comment on column pgrecall.embedding.fact_type is
'As in memory: the arms query each fact type apart. Empty for relation and usage, which belong to '
'no single fact, so that no arm that searches by fact type finds them.';
comment on column pgrecall.embedding.text is
'The question, or the words of a relation, that were embedded; null for the text of the memory, '
'and for a question whose text was not given, which cannot be re-embedded.';
comment on column pgrecall.embedding.tokens is
'Vectors of the tokens of a memory''s text, four bits a number, where the model makes them. The '
'driver reranks by them. At most 3072 bytes. Null: none.';

-- Up to 4000 dimensions stay in the row: an exact search must not fetch each vector from TOAST.
alter table pgrecall.embedding alter column embedding set storage main;
-- These bytes do not compress, and an exact search need not read past them.
alter table pgrecall.embedding alter column tokens set storage external;

create index embedding_bank_id_fact_type_model_idx
  on pgrecall.embedding (bank_id, fact_type, model) where fact_type is not null;
create index embedding_bank_id_text_idx
  on pgrecall.embedding (bank_id, text) where fact_type = '';

-- To choose the number: set pgrecall.partitions = 128; before running the script.
do $$
declare
  partitions integer := coalesce(nullif(current_setting('pgrecall.partitions', true), ''), '32');
begin
  for remainder in 0 .. partitions - 1 loop
    execute format(
      'create table pgrecall_internal.%I partition of pgrecall.embedding
       for values with (modulus %s, remainder %s)',
      'embedding_' || remainder, partitions, remainder
    );
    execute format(
      'comment on table pgrecall_internal.%I is %L',
      'embedding_' || remainder, 'A hash partition of embedding by bank.'
    );
  end loop;
end;
$$;

-- state/entity.sql
-- Entities: what facts are about, the names they have, and how they are related.
--
-- A fact names entities; retain() resolves each name to an entity by its aliases
-- (retain/mention.sql) and stores the result as a mention. A name may be an alias of several
-- entities: confidence says how certain an alias or a mention is. A relation is stated by a fact
-- about two entities; it is deleted with the fact. Entities have no further properties: everything
-- known about them is in the facts that mention them. mention repeats fact_type, since the graph
-- arm reads the latest facts per type in primary key order.

create table pgrecall.entity (
  bank_id    text not null,
  entity_id  bigint not null default nextval('pgrecall.id_seq'),
  name       text not null,
  kind       text,
  created_at timestamptz not null default now(),
  constraint entity_pkey primary key (bank_id, entity_id),
  constraint entity_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade,
  constraint entity_name_check check (name <> '' and length(name) <= 500)
);
comment on table pgrecall.entity is 'People, places, projects, things: what facts are about.';
comment on column pgrecall.entity.kind is 'person, place, project, ...; any word. Null: unknown.';

create table pgrecall.entity_alias (
  bank_id    text not null,
  alias      text not null,
  entity_id  bigint not null,
  confidence real not null default 1,
  constraint entity_alias_pkey primary key (bank_id, alias, entity_id),
  constraint entity_alias_bank_id_entity_id_fkey
    foreign key (bank_id, entity_id) references pgrecall.entity (bank_id, entity_id)
    on delete cascade,
  constraint entity_alias_alias_check check (alias <> ''),
  constraint entity_alias_confidence_check check (confidence between 0 and 1)
);
comment on table pgrecall.entity_alias is
'Names of entities, the main one included. One name can be an alias of several entities.';
comment on column pgrecall.entity_alias.alias is 'Normalised by pgrecall.normalised_name().';
comment on column pgrecall.entity_alias.confidence is
'Confidence that the name means this entity, 0 to 1.';

create index entity_alias_bank_id_entity_id_idx on pgrecall.entity_alias (bank_id, entity_id)
  where entity_id is not null;
-- Ana Silva as "Ana" or "Silva": _name_parts().
create index entity_alias_bank_id_first_idx on pgrecall.entity_alias
  (bank_id, split_part(alias, ' ', 1)) where strpos(alias, ' ') > 0;
create index entity_alias_bank_id_last_idx on pgrecall.entity_alias
  (bank_id, split_part(alias, ' ', -1)) where strpos(alias, ' ') > 0;

create table pgrecall.mention (
  bank_id   text not null,
  entity_id bigint not null,
  fact_type text not null,
  memory_id bigint not null,
  confidence real not null default 1,
  constraint mention_pkey primary key (bank_id, entity_id, fact_type, memory_id),
  constraint mention_bank_id_entity_id_fkey
    foreign key (bank_id, entity_id) references pgrecall.entity (bank_id, entity_id)
    on delete cascade,
  constraint mention_bank_id_memory_id_fkey
    foreign key (bank_id, memory_id) references pgrecall.memory (bank_id, memory_id)
    on delete cascade,
  constraint mention_confidence_check check (confidence between 0 and 1)
);
comment on table pgrecall.mention is 'Which fact mentions which entity.';
comment on column pgrecall.mention.fact_type is
'As in memory: the arms query each fact type apart.';
comment on column pgrecall.mention.confidence is
'Confidence that the fact means this entity and not another one of the same name, 0 to 1.';

create index mention_bank_id_memory_id_idx on pgrecall.mention (bank_id, memory_id, entity_id)
  where memory_id is not null;

create table pgrecall.relation (
  bank_id     text not null,
  relation_id bigint not null default nextval('pgrecall.id_seq'),
  from_id     bigint not null,
  kind        text not null,
  to_id       bigint not null,
  memory_id   bigint not null,
  confidence  real not null default 1,
  valid_from  timestamptz,
  valid_to    timestamptz,
  constraint relation_pkey primary key (bank_id, relation_id),
  constraint relation_bank_id_from_id_fkey
    foreign key (bank_id, from_id) references pgrecall.entity (bank_id, entity_id)
    on delete cascade,
  constraint relation_bank_id_to_id_fkey
    foreign key (bank_id, to_id) references pgrecall.entity (bank_id, entity_id)
    on delete cascade,
  constraint relation_bank_id_memory_id_fkey
    foreign key (bank_id, memory_id) references pgrecall.memory (bank_id, memory_id)
    on delete cascade,
  constraint relation_kind_check check (kind <> ''),
  constraint relation_to_id_check check (to_id <> from_id),
  constraint relation_confidence_check check (confidence between 0 and 1),
  constraint relation_valid_to_check check (valid_to > valid_from)
);
comment on table pgrecall.relation is 'Typed relations between entities: Ana reports_to Sam.';
comment on column pgrecall.relation.kind is 'reports_to, lives_in, owns, ...; any word.';
comment on column pgrecall.relation.memory_id is 'The fact that states it.';
comment on column pgrecall.relation.confidence is
'Confidence in the relation, 0 to 1: as given, times the confidence of the two mentions.';
comment on column pgrecall.relation.valid_from is
'The relation holds from here on. Null: always.';
comment on column pgrecall.relation.valid_to is 'The relation ended here. Null: it still holds.';

create unique index relation_bank_id_memory_id_key
  on pgrecall.relation (bank_id, memory_id, from_id, kind, to_id) where memory_id is not null;
create index relation_bank_id_from_id_relation_id_idx
  on pgrecall.relation (bank_id, from_id, relation_id) where from_id is not null;
create index relation_bank_id_from_id_kind_relation_id_idx
  on pgrecall.relation (bank_id, from_id, kind, relation_id) where from_id is not null;
create index relation_bank_id_to_id_relation_id_idx
  on pgrecall.relation (bank_id, to_id, relation_id) where to_id is not null;

create table pgrecall_internal.name_lock (
  bank_id text not null,
  slot    integer not null,
  constraint name_lock_pkey primary key (bank_id, slot),
  constraint name_lock_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade
);
comment on table pgrecall_internal.name_lock is
'Rows that writers lock, by updating them, for new names of entities and for keys that replace '
'facts: two writers of the same one take turns. The rows hold nothing and can be deleted.';
comment on column pgrecall_internal.name_lock.slot is 'Hash of the name, 0 to 4095.';

-- state/link.sql
-- Links between facts, which the graph arm follows besides mentions and relations.
--
-- The number of links that a fact has is bounded when it is written, so that neither storage nor
-- the time of a recall grows with the square of the bank. Links between facts of the same entity
-- are not stored, for mentions imply them, nor between similar ones, which are searched for.
-- retain() and link_pending() write links (retain/link.sql).
-- Deleting a memory deletes its links, in both directions.

create table pgrecall.link (
  bank_id text not null,
  from_id bigint not null,
  kind    text not null,
  to_id   bigint not null,
  weight  real not null,
  constraint link_pkey primary key (bank_id, from_id, kind, to_id),
  constraint link_bank_id_from_id_fkey
    foreign key (bank_id, from_id) references pgrecall.memory (bank_id, memory_id)
    on delete cascade,
  constraint link_bank_id_to_id_fkey
    foreign key (bank_id, to_id) references pgrecall.memory (bank_id, memory_id)
    on delete cascade,
  constraint link_kind_check
    check (kind in ('temporal', 'causes', 'caused_by', 'enables', 'prevents')),
  constraint link_to_id_check check (to_id <> from_id),
  constraint link_weight_check check (weight between 0 and 1)
);
comment on table pgrecall.link is
'Edges between facts, bounded when written: 1 temporal a fact, causal ones as given.';
comment on column pgrecall.link.kind is
'temporal, or causal: causes, caused_by, enables, prevents. Directed.';
comment on column pgrecall.link.weight is
'temporal: 1 at the same time, 0 a day apart. causal: confidence, 0 to 1.';

create index link_bank_id_to_id_idx on pgrecall.link (bank_id, to_id, kind)
  where to_id is not null;

-- state/message.sql
-- Sessions and raw messages.
--
-- A message is verbatim text with its speaker and time. The message arm searches it with BM25, as
-- the lexical arm does with facts (table memory has the same lexical columns), but it has no
-- embedding, no entities and no links. Messages share the sequence of ids with memories, so that an
-- id in an answer is unique.
-- A session groups messages and has a start and an end.

create table pgrecall.session (
  bank_id    text not null,
  session_id text not null,
  started_at timestamptz not null,
  ended_at   timestamptz,
  constraint session_pkey primary key (bank_id, session_id),
  constraint session_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade,
  constraint session_session_id_check check (session_id <> ''),
  constraint session_ended_at_check check (ended_at >= started_at)
);
comment on table pgrecall.session is
'Conversations with their start and end, for questions such as "since we last talked".';
comment on column pgrecall.session.ended_at is 'Null: not over yet.';

create index session_bank_id_ended_at_idx on pgrecall.session (bank_id, ended_at)
  where ended_at is not null;

create table pgrecall.message (
  bank_id         text not null,
  message_id      bigint not null default nextval('pgrecall.id_seq'),
  session_id      text,
  role            text not null default 'user',
  speaker         text,
  text            text not null,
  sent_at         timestamptz not null default now(),
  content_hash    bytea not null,
  lexical_length  integer not null default 0,
  lexical_weights sparsevec not null default '{}/1000000000',
  constraint message_pkey primary key (bank_id, message_id),
  constraint message_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade,
  constraint message_bank_id_session_id_fkey
    foreign key (bank_id, session_id) references pgrecall.session (bank_id, session_id),
  constraint message_role_check check (role in ('user', 'assistant', 'system', 'tool')),
  constraint message_text_check check (text <> '' and length(text) <= 100000),
  constraint message_content_hash_check check (octet_length(content_hash) = 32),
  constraint message_lexical_length_check check (lexical_length >= 0)
);
comment on table pgrecall.message is
'Raw conversation; covers what was not extracted as a fact. Written by retain_messages().';
comment on column pgrecall.message.content_hash is
'SHA-256 of session, role, speaker, text and time: retaining it again stores nothing.';
comment on column pgrecall.message.lexical_length is 'Number of lexemes, repeated ones counted.';
comment on column pgrecall.message.lexical_weights is
'BM25 weight per lexeme without the IDF; dimension = hash of the lexeme.';

create unique index message_bank_id_content_hash_key on pgrecall.message (bank_id, content_hash)
  where content_hash is not null;
create index message_bank_id_session_id_idx on pgrecall.message (bank_id, session_id, sent_at)
  where session_id is not null;
create index message_lexical_keys_idx on pgrecall.message
  using gin (pgrecall_internal._lexical_keys(bank_id, 'message', lexical_weights))
  with (fastupdate = off);

-- state/attachment.sql
-- The user's own tables whose rows are memories, and what has changed in them.
--
-- attach_table() (operations/attachment.sql) writes a row of attachment and puts triggers on the
-- table. They note the keys that change in attached_change, in the transaction that changes them: a
-- rollback leaves no note, and a note is never visible without its row. sync_table()
-- (operations/sync.sql) reads the rows of these keys and retains, updates or forgets their
-- memories; attached_row says which memory was made from which row, and from what content. Tables
-- are known by name, not by oid, so that a dump of these rows can be restored anywhere.

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
  constraint attachment_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade,
  constraint attachment_columns_check check (jsonb_typeof(columns) = 'object'),
  constraint attachment_apply_check check (apply in ('later', 'commit'))
);
comment on table pgrecall.attachment is
'Tables whose rows are memories of a bank. Written by attach_table() and sync_table().';
comment on column pgrecall.attachment.relation is
'Schema and name of the table, quoted if need be.';
comment on column pgrecall.attachment.note_name is
'Name of the function of its triggers, a hash: everybody may read the definitions of functions.';
comment on column pgrecall.attachment.key is 'The column that tells rows apart.';
comment on column pgrecall.attachment.columns is
'The columns that make up each field of a fact: {"text": ["body"], "entities": ["author"]}.';
comment on column pgrecall.attachment.fact_type is
'The fact type of rows where no column gives one.';
comment on column pgrecall.attachment.apply is
'When changes reach the bank. later: with sync_table(); commit: when the transaction that made '
'them commits.';
comment on column pgrecall.attachment.is_history_kept is
'Whether a changed row keeps its former content, for recalls as of an earlier time.';
comment on column pgrecall.attachment.is_copied is 'Whether the first pass over all rows is done.';
comment on column pgrecall.attachment.copied_key is
'How far that pass has come, in order of the key; null: not begun.';

create index attachment_note_name_idx on pgrecall.attachment (note_name);

create table pgrecall.attached_row (
  bank_id   text not null,
  memory_id bigint not null,
  relation  text not null,
  key       text not null,
  row_hash  bytea not null,
  constraint attached_row_pkey primary key (bank_id, memory_id),
  constraint attached_row_bank_id_memory_id_fkey
    foreign key (bank_id, memory_id) references pgrecall.memory (bank_id, memory_id)
    on delete cascade,
  constraint attached_row_bank_id_relation_fkey
    foreign key (bank_id, relation) references pgrecall.attachment (bank_id, relation)
    on delete cascade,
  constraint attached_row_row_hash_check check (octet_length(row_hash) = 32)
);
comment on table pgrecall.attached_row is
'The memories made from rows of attached tables, from former contents of a row too. Join it to the '
'table by key.';
comment on column pgrecall.attached_row.relation is 'The table, as in attachment.';
comment on column pgrecall.attached_row.key is 'The key of the row, as text.';
comment on column pgrecall.attached_row.row_hash is
'SHA-256 of the fact made from the row: a row that gives the same fact again is left alone.';

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
comment on table pgrecall.attached_change is
'Changes of attached tables that have not reached the bank, and rows that cannot be stored. '
'Written by the triggers on the tables.';
comment on column pgrecall.attached_change.relation is 'The table, as in attachment.';
comment on column pgrecall.attached_change.key is
'The key of a row that was inserted, updated or deleted; null: the table was emptied.';
comment on column pgrecall.attached_change.noted_at is
'When the transaction that made the change began.';
comment on column pgrecall.attached_change.problem is
'Why the row could not be stored; the next change to the row tries again. Null: not tried yet.';

-- One index of the notes that wait, one of the rows that failed. A batch takes the oldest notes
-- from the first and looks up its keys in the second, however many either holds.
create index attached_change_bank_id_relation_idx
  on pgrecall.attached_change (bank_id, relation, change_id) where problem is null;
create index attached_change_bank_id_relation_key_idx
  on pgrecall.attached_change (bank_id, relation, key) where problem is not null;

-- state/statistics.sql
-- Statistics of the documents of a bank, for BM25 and for vocabulary_drift().
--
-- statistics holds the number and the mean length of the documents, lexeme in how many documents
-- each lexeme occurs, entity_count how many memories mention each entity, vocabulary a snapshot of
-- the most frequent lexemes. Memories and messages are counted separately. bank/statistics.sql
-- refreshes all four; nothing else writes them.
-- They can be deleted: a full refresh_statistics() rebuilds them.

create table pgrecall_internal.statistics (
  bank_id         text not null,
  kind            text not null,
  document_count  bigint not null,
  average_length  double precision not null,
  weighted_length double precision not null,
  watermark       bigint not null,
  refreshed_at    timestamptz not null,
  weighed_to      bigint,
  constraint statistics_pkey primary key (bank_id, kind),
  constraint statistics_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade,
  constraint statistics_kind_check check (kind in ('memory', 'message')),
  constraint statistics_document_count_check check (document_count >= 0),
  constraint statistics_average_length_check check (average_length >= 0),
  constraint statistics_weighted_length_check check (weighted_length > 0)
);
comment on table pgrecall_internal.statistics is
'Number and mean length of the documents of a bank, for BM25. A summary like that of ANALYZE: it '
'is refreshed periodically, not on every write.';
comment on column pgrecall_internal.statistics.kind is
'memory or message: each has statistics of its own.';
comment on column pgrecall_internal.statistics.document_count is 'Number of documents counted.';
comment on column pgrecall_internal.statistics.average_length is
'Mean lexical_length of a document.';
comment on column pgrecall_internal.statistics.weighted_length is
'The mean that the stored weights were computed with. When average_length is more than 5 % off, '
'they are computed anew.';
comment on column pgrecall_internal.statistics.watermark is 'Documents up to this id are counted.';
comment on column pgrecall_internal.statistics.weighed_to is
'While weights are computed anew: documents up to this id are weighted with weighted_length, some '
'later ones still with the mean before. Null: all are weighted with weighted_length.';

-- A generated column uses the function below: changing it needs a migration that recomputes the
-- column.
create or replace function pgrecall_internal._dimension(lexeme text)
returns integer
language sql immutable parallel safe
return (hashtextextended(lexeme, 0) & 9223372036854775807) % 1000000000 + 1;
comment on function pgrecall_internal._dimension is
'Dimension of a lexeme in lexical_weights, 1 to 1,000,000,000.';

create table pgrecall_internal.lexeme (
  bank_id        text not null,
  kind           text not null,
  lexeme         text not null,
  document_count integer not null,
  dimension      integer not null,
  constraint lexeme_pkey primary key (bank_id, kind, dimension, lexeme),
  constraint lexeme_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade,
  constraint lexeme_kind_check check (kind in ('memory', 'message')),
  constraint lexeme_document_count_check check (document_count >= 1)
);
comment on column pgrecall_internal.lexeme.kind is 'memory or message, as in statistics.';
comment on column pgrecall_internal.lexeme.document_count is 'Number of documents it occurs in.';
comment on column pgrecall_internal.lexeme.dimension is
'Its dimension in lexical_weights, _dimension(lexeme). Two lexemes may share one. Not generated: a '
'key with a generated column cannot be replicated.';
comment on table pgrecall_internal.lexeme is
'In how many documents of a bank a lexeme occurs. A lexeme without a row counts as rare.';

create table pgrecall_internal.entity_count (
  bank_id       text not null,
  entity_id     bigint not null,
  mention_count bigint not null,
  constraint entity_count_pkey primary key (bank_id, entity_id),
  constraint entity_count_bank_id_entity_id_fkey
    foreign key (bank_id, entity_id) references pgrecall.entity (bank_id, entity_id)
    on delete cascade,
  constraint entity_count_mention_count_check check (mention_count >= 1)
);
comment on table pgrecall_internal.entity_count is
'How many of the counted memories of a bank mention an entity. An entity without a row counts as '
'rare.';
comment on column pgrecall_internal.entity_count.mention_count is
'Number of memories that mention it, up to the watermark in statistics.';

create table pgrecall_internal.vocabulary (
  bank_id      text not null,
  lexemes      text[] not null,
  is_automatic boolean not null,
  taken_at     timestamptz not null,
  constraint vocabulary_pkey primary key (bank_id),
  constraint vocabulary_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade
);
comment on table pgrecall_internal.vocabulary is
'Snapshot of the most frequent lexemes of the memories of a bank, the baseline of '
'vocabulary_drift().';
comment on column pgrecall_internal.vocabulary.lexemes is 'At most 5,000, the most frequent first.';
comment on column pgrecall_internal.vocabulary.taken_at is 'When the snapshot was taken.';
comment on column pgrecall_internal.vocabulary.is_automatic is
'Taken by a refresh, which replaces it until 10,000 memories are counted; false: by '
'snapshot_vocabulary().';

-- state/types.sql
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
'where half of the facts mention it, half where an eighth or fewer do, summed, at most 1; null '
'where there are none. via: the path that led there, as one text of ids in a JSON string, which '
'hybrid_recall() resolves into the object that a row of its answer has; null where there is none. '
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
  diversity        double precision
);
comment on type pgrecall.preparation is
'The row of prepare_recall(): what is needed before a question is embedded. prefer, diversity: '
'these options of the bank; null: it has none.';

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
  watermark  bigint
);
comment on type pgrecall_internal.terms is
'The lexemes of a query as one collection (memories or messages) counts them, rarest first: '
'dimension in lexical_weights, IDF, number of documents. is_shared: one shares its dimension with '
'another lexeme of the bank. documents: how many are counted, with ids up to watermark.';

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
'value. query: trimmed and normalised. fact_types: those to search now; all_types: those to search '
'when that finds too little; is_whole: these are all that the bank has. visible_sql: the filter, '
'the window and as_of as a predicate over alias m of memory. arms: those asked for; null: all that '
'apply. lexemes, memory_terms and message_terms are null where no arm searches for words. note: '
'how the types were narrowed or widened. found: the arms that found something so far; null in an '
'arm that is called alone. about: memories that mention whom the query names, see _about().';

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
  asked text := lower(btrim(range));
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
create cast (varchar as pgrecall_internal.period)
  with function pgrecall_internal._period_of_text (text) as implicit;

-- state/result.sql
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
'A row of reembed_pending(), a text to embed. memory_id: the memory it belongs to. kind: text for '
'the memory itself, question for a question that it answers. ordinal: number of the question, from '
'0. text: what to embed. context: that of the memory, for embedders that read it; null for what is '
'not the memory itself.';

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

-- state/input.sql
-- Typed rows of facts and messages for retain() and retain_messages(): JSON is read once.
--
-- _read_fact() and _read_message() check each element of the array that the caller passed and turn
-- it into one row of type fact_row or message_row. Everything that is written afterwards (memories,
-- embeddings, entities, relations, links) comes from an array of these rows; no later step reads
-- JSON. Names are normalised here, once, since every later step compares them.
-- The types are private: no public function takes or returns them.

create type pgrecall_internal.fact_name as (
  name       text,
  alias      text,
  kind       text,
  kind_class text,
  aliases    text[]
);
comment on type pgrecall_internal.fact_name is
'A name in a fact: of an entity that it lists, or of one end of a relation. alias: the name '
'normalised. kind: as given; null: not given. kind_class: kind as _kind_class() compares it. '
'aliases: the other names given for the entity, normalised.';

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
comment on type pgrecall_internal.fact_relation is
'A relation in a fact. from_name, to_name: its ends as given. from_alias, to_alias: normalised.';

create type pgrecall_internal.fact_link as (
  kind     text,
  weight   real,
  to_id    bigint,
  to_index integer,
  to_key   text,
  target   jsonb
);
comment on type pgrecall_internal.fact_link is
'A causal link in a fact. It leads to a memory by one of: to_id, to_index (position in the array, '
'from 0), to_key (a fact_key). target: that field as given, for the error message.';

create type pgrecall_internal.fact_vector as (
  model     text,
  kind      text,
  ordinal   smallint,
  embedding halfvec,
  text      text,
  tokens    bytea
);
comment on type pgrecall_internal.fact_vector is
'An embedding of a fact (kind text) or of a question that it answers (kind question, ordinal from '
'0, text if given), as table embedding stores it, with the token vectors of a text.';

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
comment on type pgrecall_internal.fact_row is
'A fact that retain() was given, checked. n: position in the array, from 1. Defaults are filled '
'in, but mentioned_at and expires_at are null where they were not given. names: the entities it '
'lists, then the ends of its relations, in the order given. vectors: embeddings of the bank''s '
'model and of the one that it is being re-embedded with.';

create type pgrecall_internal.fact_mention as (
  n          integer,
  memory_id  bigint,
  fact_type  text,
  name       text,
  alias      text,
  kind       text,
  kind_class text
);
comment on type pgrecall_internal.fact_mention is
'A name in a stored fact, to be resolved to an entity. n: position of the fact in the array, from '
'1. The other attributes are as in fact_row and fact_name.';

create type pgrecall_internal.slot_member as (
  slot      text,
  memory_id bigint,
  value     text,
  said_at   timestamptz,
  ends_at   timestamptz,
  is_said   boolean,
  trust     double precision
);
comment on type pgrecall_internal.slot_member is
'A fact among those that replace one another. slot: a key, or a relation of an entity. value: the '
'value it states; only another value replaces it. said_at: when the fact was said. ends_at: its '
'valid_to. is_said: it is in the current call of retain(). trust: that of its source.';

create type pgrecall_internal.message_row as (
  n            integer,
  session_id   text,
  role         text,
  speaker      text,
  text         text,
  sent_at      timestamptz,
  content_hash bytea
);
comment on type pgrecall_internal.message_row is
'A message that retain_messages() was given, checked. n: position in the array, from 1. sent_at is '
'null where it was not given.';

create type pgrecall_internal.attached_fact as (
  key       text,
  fact      jsonb,
  row_hash  bytea,
  memory_id bigint,
  status    text
);
comment on type pgrecall_internal.attached_fact is
'A row of an attached table, as sync_table() reads it. fact: as retain() takes it; null: the row '
'is gone, or has no text. memory_id: the memory that holds it; null: none. status: new, changed, '
'gone or same.';

-- state/log.sql
-- The log of recalls: how long a sample of them took.
--
-- A recall writes nothing, so that it works on a standby and in a read-only transaction too. Where
-- log_share of a bank is above 0, clients of the driver keep that share of their recalls and hand
-- them over in batches, on a connection of their own, by log_recalls() (operations/log.sql).
-- No row holds a question, an answer or an embedding.

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
  constraint recall_log_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade,
  constraint recall_log_share_check check (share > 0 and share <= 1),
  constraint recall_log_hits_check check (hits >= 0)
);
comment on table pgrecall.recall_log is
'A sample of the recalls of the banks whose log_share is above 0: times and counts, no texts. '
'Written by log_recalls(), summed up by recall_stats(); maintain() deletes what is older than 30 '
'days.';
comment on column pgrecall.recall_log.asked_at is
'When the recall began, by the clock of the client.';
comment on column pgrecall.recall_log.share is
'The log_share that it was kept with: it stands for 1 / share recalls.';
comment on column pgrecall.recall_log.total_ms is 'Milliseconds from the call to its return.';
comment on column pgrecall.recall_log.wait_ms is 'Of these, waiting for a connection.';
comment on column pgrecall.recall_log.embed_ms is 'Embedding the question.';
comment on column pgrecall.recall_log.database_ms is
'The answer of the database, network included.';
comment on column pgrecall.recall_log.rerank_ms is 'Reranking.';
comment on column pgrecall.recall_log.hits is 'Rows returned.';
comment on column pgrecall.recall_log.left_out is
'What failed or was left out: arm, embedder, reranker; empty for a whole recall.';

-- values/arm.sql
-- The registry of arms: one row for each; no other code lists them.
--
-- An arm is one file in arms/, or the room graph/, with a worker
-- pgrecall_internal._ARM_arm(request, before, is_planned), which returns
-- pgrecall_internal.arm_result, and one row here. The code that plans, runs, weights and reports
-- arms (recall/run.sql) loops over the rows in the order of place, and calls the workers through
-- _arm_result(), which is composed of the rows; the row decides when an arm is skipped without a
-- call.
--
-- place matters where an arm takes seeds from the hits of others: the graph and source arms come
-- after these.
create or replace function pgrecall.arms()
returns setof pgrecall.arm
language sql immutable parallel safe rows 8
begin atomic
  values
    ('key', 1, 3::double precision, '{query,keys}'::text[], 'low', 'memory',
     'Memories whose fact_key stands in the query.', null::double precision),
    ('semantic', 2, 1, '{embedding}', 'low', 'memory',
     'Memories nearest to the embedding of the query.', null),
    ('lexical', 3, 1, '{query,terms}', 'low', 'memory',
     'Memories that share words with the query, by BM25.', null),
    ('temporal', 4, 1.5, '{during}', 'low', 'memory',
     'Memories that happened in a window of time or near it.', null),
    ('message', 5, 1.2, '{query,terms}', 'mid', 'message',
     'Raw messages that share words with the query, by BM25.', 0.3),
    ('hypothetical', 6, 0.5, '{hypothetical}', 'mid', 'memory',
     'Memories nearest to the embedding of a made-up answer.', null),
    ('graph', 7, 11, '{names}', 'mid', 'memory',
     'Memories that entities, relations, causes and nearness in time lead to.', 1),
    ('source', 8, 0, '{}', 'mid', 'memory',
     'Other memories of the sources of the best hits.', null);
end;
comment on function pgrecall.arms is
'The arms, in the order in which they run, with what each needs and its default weight. Weight 0: '
'it runs only where a call or the bank gives it a weight.';

create or replace function pgrecall.default_weights()
returns jsonb
language sql immutable parallel safe
return (select jsonb_object_agg(a.arm, a.weight) from pgrecall.arms() as a);
comment on function pgrecall.default_weights is
'The weights of the arms in the fusion, unless bank or call sets others.';

create or replace function pgrecall_internal._arm_names()
returns text
language sql immutable parallel safe
return (select string_agg(a.arm, ', ' order by a.arm) from pgrecall.arms() as a);
comment on function pgrecall_internal._arm_names is 'The names of the arms, for hints.';

-- values/filter-token.sql
-- The tokens of a filter expression, and the parsers of single tokens: types, constants, numbers.
--
-- A tokenizer cuts the text in one pass, by a regular expression; values/filter-expression.sql
-- reads the tokens. Tokens are a JSON array of [code, value, position]. The code of a word is the
-- word in lower case, of an operator itself, of a string ', of a quoted identifier ", of a number
-- 0, of the end empty. Every error is RC011, names the token and its position, and lists columns
-- and operators.
create or replace function pgrecall_internal._invalid_filter(
  problem text, tokens jsonb default null, at integer default null)
returns void
language plpgsql immutable parallel safe
as $$
declare
  code text := tokens -> at ->> 0;
begin
  raise exception using
    errcode = 'RC011',
    message = 'filter: ' || case
      when at is null then problem
      when code = '' then replace(problem, '{}', 'the end of the filter')
      else replace(problem, '{}', case code
             when '''' then quote_literal(left(tokens -> at ->> 1, 50))
             else format('"%s"', left(tokens -> at ->> 1, 50))
           end) || format(' at character %s', tokens -> at ->> 2)
    end,
    hint = 'Columns: memory_id, fact_type, text, context, fact_key, source_id, tags, metadata, '
           'occurred, mentioned_at, created_at, confidence, proof_count, entity. '
           'Operators: = <> < <= > >=, between, in (...), is [not] null, [not] like, [not] ilike, '
           'and or not, metadata->>''key'', tags @> array[...], tags && array[...], '
           'occurred && ''[start,end)'', entity = ''name''.';
end;
$$;
comment on function pgrecall_internal._invalid_filter is
'Raises RC011 with the problem and where it is: {} becomes the token, and its position, counted in '
'characters from 1, comes last.';

create or replace function pgrecall_internal._filter_tokens(filter text)
returns jsonb
language plpgsql immutable parallel safe
as $$
declare
  -- An unterminated token extends to the end, so that no text is read twice. The longest match
  -- wins.
  pattern constant text := concat_ws('|',
    '\s+',
    '--[^\n]*',
    '/\*(?:[^*]|\*+[^*/])*\**/?',
    '''(?:[^'']|'''')*''?',
    '"(?:[^"]|"")*"?',
    '[A-Za-z_][A-Za-z0-9_$]*',
    '(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[A-Za-z0-9_.$]*',
    '->>|->|::|<=|>=|<>|!=|@>|<@|&&|[|][|]',
    '.');
  tokens jsonb;
  broken jsonb;
begin
  select jsonb_agg(jsonb_build_array(
           case
             when t.word ~ '^[A-Za-z_]' then lower(t.word collate "C")
             when t.word ~ '^[0-9]|^\.[0-9]' then '0'
             when t.word ~ '^[''"]' then left(t.word, 1)
             when t.word = '!=' then '<>'
             else t.word
           end,
           case left(t.word, 1)
             when '''' then replace(substr(left(t.word, -1), 2), '''''', '''')
             when '"' then replace(substr(left(t.word, -1), 2), '""', '"')
             else t.word
           end,
           t.position) order by t.position),
         jsonb_agg(jsonb_build_array(left(t.word, 1), t.position) order by t.position)
           filter (where t.word ~ '^[''"]' and (length(t.word) - length(replace(
                           t.word, left(t.word, 1), ''))) % 2 = 1
                      or t.word ~ '^/\*' and t.word !~ '^/\*.*\*/$')
  into   tokens, broken
  from (
    select m.match[1] as word,
           sum(length(m.match[1])) over (order by m.ordinality) - length(m.match[1]) + 1 as position
    from   regexp_matches(filter, pattern, 'g') with ordinality as m(match, ordinality)
  ) as t
  where  t.word !~ '^\s|^--' and not (t.word ~ '^/\*' and t.word ~ '^/\*.*\*/$');
  if broken is not null then
    perform pgrecall_internal._invalid_filter(
      format('the %s that begins at character %s does not end',
             case broken -> 0 ->> 0 when '''' then 'string' when '"' then 'identifier'
                  else 'comment' end,
             broken -> 0 ->> 1));
  end if;
  return coalesce(tokens, '[]') || jsonb_build_array(jsonb_build_array('', '', 0));
end;
$$;
comment on function pgrecall_internal._filter_tokens is
'The tokens of a filter expression: [[code, value, position], ...], the end last. Comments and '
'white space are left out. Errors: RC011 for a string, quoted identifier or comment without end.';

create or replace function pgrecall_internal._after_token(tokens jsonb, at integer, code text)
returns integer
language plpgsql immutable parallel safe
as $$
begin
  if tokens -> at ->> 0 <> code then
    perform pgrecall_internal._invalid_filter(
      format('expected %s, not {}', case code when '0' then 'a number' when '''' then 'a string'
                                         else format('"%s"', code) end),
      tokens, at);
  end if;
  return at + 1;
end;
$$;
comment on function pgrecall_internal._after_token is
'The number of the token after this one; this one must have the code. Errors: RC011.';

create or replace function pgrecall_internal._filter_type(
  tokens jsonb, inout at integer, out kind text)
language plpgsql immutable parallel safe
as $$
declare
  first integer := at;
  name  text := tokens -> at ->> 0;
begin
  at := at + 1;
  if name = 'double' and tokens -> at ->> 0 = 'precision' then
    at := at + 1;
  end if;
  if tokens -> at ->> 0 = '(' then
    at := pgrecall_internal._after_token(tokens, at + 1, '0');
    if tokens -> at ->> 0 = ',' then
      at := pgrecall_internal._after_token(tokens, at + 1, '0');
    end if;
    at := pgrecall_internal._after_token(tokens, at, ')');
  end if;
  if name = 'timestamp' and tokens -> at ->> 0 in ('with', 'without') then
    at := pgrecall_internal._after_token(tokens, at + 1, 'time');
    at := pgrecall_internal._after_token(tokens, at, 'zone');
  end if;
  kind := case
    when name in ('date', 'timestamp', 'timestamptz') then 'time'
    when name in ('smallint', 'int2', 'integer', 'int', 'int4', 'bigint', 'int8', 'decimal', 'dec',
                  'numeric', 'real', 'float', 'float4', 'float8', 'double') then 'number'
  end;
  if tokens -> at ->> 0 = '[' and name ~ '^[a-z_]' then
    at := pgrecall_internal._after_token(tokens, at + 1, ']');
    kind := 'array';
  end if;
  if kind is null then
    perform pgrecall_internal._invalid_filter('cannot cast to {}', tokens, first);
  end if;
end;
$$;
comment on function pgrecall_internal._filter_type is
'Reads the name of a type: its kind is time, number or array. Errors: RC011 for all others.';

create or replace function pgrecall_internal._filter_cast(node jsonb, kind text, tokens jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
begin
  if kind = 'number' and node ->> 'column' like 'metadata.%' then
    return node || '{"is_number": true}';
  end if;
  if not (kind = 'time' and coalesce(node -> 'value', 'null') <> 'null'
          or kind = 'array' and node ? 'strings')
  then
    perform pgrecall_internal._invalid_filter(
      format('cannot cast {} to %s', case kind when 'array' then 'an array' else 'a ' || kind end),
      tokens, (node ->> 'at')::integer);
  end if;
  return node;
end;
$$;
comment on function pgrecall_internal._filter_cast is
'The operand after a cast. A key of metadata is cast to a number, a constant to a time, array[...] '
'to an array. Errors: RC011 for all others.';

create or replace function pgrecall_internal._filter_constant(
  node jsonb, column_name text, tokens jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
begin
  if node -> 'value' = 'null' then
    perform pgrecall_internal._invalid_filter(
      format('compare "%1$s" with null by: %1$s is null', left(column_name, 200)), tokens,
      (node ->> 'at')::integer);
  end if;
  if not node ? 'value' then
    perform pgrecall_internal._invalid_filter(
      format('expected a constant to compare "%s" with, not {}', left(column_name, 200)), tokens,
      (node ->> 'at')::integer);
  end if;
  return node -> 'value';
end;
$$;
comment on function pgrecall_internal._filter_constant is
'The value of an operand that must be a constant. Errors: RC011.';

create or replace function pgrecall_internal._filter_number(
  tokens jsonb, at integer, is_negative boolean default false)
returns jsonb
language plpgsql immutable parallel safe
as $$
declare
  word text := tokens -> at ->> 1;
begin
  if word !~ '^([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$'
     or (word ~ '\D' and not pg_input_is_valid(word, 'double precision'))
  then
    perform pgrecall_internal._invalid_filter('expected a number, not {}', tokens, at);
  end if;
  if is_negative then
    word := '-' || word;
  end if;
  -- Whole numbers are exact. Others are read as floats, also because 1e9999 has 10,000 digits.
  return case when word ~ '^-?[0-9]+$' then to_jsonb(word::numeric)
              else to_jsonb(word::double precision) end;
end;
$$;
comment on function pgrecall_internal._filter_number is
'The value of a token that is a number. Errors: RC011.';

-- values/filter-expression.sql
-- Filter expressions: a condition in PostgreSQL's notation,
--
--   confidence > 0.8 and metadata->>'team' = 'core' and tags @> array['deploy']
--
-- read into the nested JSON arrays of values/filter.sql, such as ["and", [">", "confidence", 0.8],
-- c]. _parsed_filter() is the entry point; it also takes those arrays as JSON text.
--
-- A recursive-descent parser reads the tokens of values/filter-token.sql: or, and, not; comparison;
-- operand. Its functions take the number of the first token to read and return that of the first
-- one they did not read (at). The user's text is compared and copied; it never becomes SQL. Time
-- and memory grow with the length of the text; nesting is at most 50 deep.
--
-- A condition is a JSON array, an operand an object: at, and column, value, strings, period or any.
create or replace function pgrecall_internal._filter_values(
  tokens jsonb, depth integer, closing text, column_name text,
  inout at integer, out constants jsonb)
language plpgsql immutable parallel safe
as $$
declare
  elements jsonb[] := '{}';
  code     text;
  operand  record;
begin
  if tokens -> at ->> 0 = closing then
    at := at + 1;
    constants := '[]';
    return;
  end if;
  loop
    if tokens -> at ->> 0 = '''' and tokens -> (at + 1) ->> 0 in (',', closing) then
      -- Fast path for the most frequent case.
      elements := array_append(elements, tokens -> at -> 1);
      at := at + 1;
    else
      operand := pgrecall_internal._filter_operand(tokens, depth + 1, at);
      elements := array_append(elements, case
        when column_name = 'occurred' and operand.node -> 'value' = 'null' then 'null'
        else pgrecall_internal._filter_constant(operand.node, column_name, tokens)
      end);
      at := operand.at;
    end if;
    code := tokens -> at ->> 0;
    exit when code = closing;
    at := pgrecall_internal._after_token(tokens, at, ',');
  end loop;
  at := at + 1;
  constants := to_jsonb(elements);
end;
$$;
comment on function pgrecall_internal._filter_values is
'Reads constants with commas between them up to the closing token. The sides of a period '
'(column_name occurred) may be null. Errors: RC011.';

create or replace function pgrecall_internal._filter_name(tokens jsonb, at integer)
returns jsonb
language plpgsql immutable parallel safe
as $$
declare
  code text := tokens -> at ->> 0;
  name text := case code when '"' then tokens -> at ->> 1 else code end;
begin
  if code !~ '^[a-z_"]'
     or code in ('and', 'or', 'not', 'in', 'is', 'like', 'ilike', 'between', 'as')
  then
    perform pgrecall_internal._invalid_filter(
      'expected a column or a constant, not {}', tokens, at);
  elsif tokens -> (at + 1) ->> 0 = '(' then
    perform pgrecall_internal._invalid_filter('function {} is not allowed', tokens, at);
  elsif tokens -> (at + 1) ->> 0 = '.' then
    perform pgrecall_internal._invalid_filter(
      format('unknown column "%s.%s"', left(name, 200), left(tokens -> (at + 2) ->> 1, 200)),
      tokens, at);
  elsif name not in ('memory_id', 'fact_type', 'text', 'context', 'fact_key', 'source_id', 'tags',
                     'metadata', 'occurred', 'mentioned_at', 'created_at', 'confidence',
                     'proof_count', 'entity')
  then
    perform pgrecall_internal._invalid_filter('unknown column {}', tokens, at);
  end if;
  return jsonb_build_object('at', at, 'column', name);
end;
$$;
comment on function pgrecall_internal._filter_name is
'The operand of a token that names a column. Errors: RC011.';

create or replace function pgrecall_internal._filter_primary(
  tokens jsonb, depth integer, inout at integer, out node jsonb)
language plpgsql immutable parallel safe
as $$
declare
  start integer := at;
  code  text := tokens -> at ->> 0;
  next  text := tokens -> (at + 1) ->> 0;
  part  record;
begin
  if depth > 50 then
    perform pgrecall_internal._invalid_filter('nested more than 50 deep', tokens, at);
  end if;
  if code = '(' then
    part := pgrecall_internal._filter_disjunction(tokens, depth + 1, at + 1);
    node := part.node;
    at := pgrecall_internal._after_token(tokens, part.at, ')');
  elsif code in ('''', 'true', 'false', 'null') then
    node := jsonb_build_object('at', start, 'value',
              case code when '''' then tokens -> at -> 1 else code::jsonb end);
    at := at + 1;
  elsif code in ('date', 'timestamp', 'timestamptz') and next in ('''', '(', 'with', 'without') then
    part := pgrecall_internal._filter_type(tokens, at);
    at := pgrecall_internal._after_token(tokens, part.at, '''');
    node := jsonb_build_object('at', start, 'value', tokens -> part.at -> 1);
  elsif code = '0' or code in ('+', '-') and next = '0' then
    at := at + case code when '0' then 1 else 2 end;
    node := jsonb_build_object('at', start, 'value',
              pgrecall_internal._filter_number(tokens, at - 1, code = '-'));
  elsif code = 'cast' and next = '(' then
    part := pgrecall_internal._filter_operand(tokens, depth + 1, at + 2);
    node := part.node;
    part := pgrecall_internal._filter_type(
      tokens, pgrecall_internal._after_token(tokens, part.at, 'as'));
    node := pgrecall_internal._filter_cast(node, part.kind, tokens);
    at := pgrecall_internal._after_token(tokens, part.at, ')');
  elsif code = 'array' and next = '[' then
    part := pgrecall_internal._filter_values(tokens, depth, ']', 'tags', at + 2);
    node := jsonb_build_object('at', start, 'strings', part.constants);
    at := part.at;
  elsif code = 'tstzrange' and next = '(' then
    part := pgrecall_internal._filter_values(tokens, depth, ')', 'occurred', at + 2);
    if jsonb_array_length(part.constants) <> 2 then
      perform pgrecall_internal._invalid_filter('{} takes a start and an end', tokens, start);
    end if;
    node := jsonb_build_object('at', start, 'period', part.constants);
    at := part.at;
  elsif code = 'any' and next = '(' then
    part := pgrecall_internal._filter_operand(tokens, depth + 1, at + 2);
    if part.node ->> 'column' is distinct from 'tags' then
      perform pgrecall_internal._invalid_filter('{} takes tags', tokens, start);
    end if;
    node := jsonb_build_object('at', start, 'any', true);
    at := pgrecall_internal._after_token(tokens, part.at, ')');
  else
    node := pgrecall_internal._filter_name(tokens, at);
    at := at + 1;
  end if;
end;
$$;
comment on function pgrecall_internal._filter_primary is
'Reads an operand without its suffixes, or a parenthesised expression. Errors: RC011.';

create or replace function pgrecall_internal._filter_operand(
  tokens jsonb, depth integer, inout at integer, out node jsonb,
  allow_condition boolean default false)
language plpgsql immutable parallel safe
as $$
declare
  start integer := at;
  part  record;
begin
  part := pgrecall_internal._filter_primary(tokens, depth, at);
  node := part.node;
  at := part.at;
  if jsonb_typeof(node) = 'array' then
    if not allow_condition then
      perform pgrecall_internal._invalid_filter(
        'expected a column or a constant, not {}', tokens, start);
    end if;
    return;
  end if;
  while tokens -> at ->> 0 in ('->>', '::') loop
    if tokens -> at ->> 0 = '::' then
      part := pgrecall_internal._filter_type(tokens, at + 1);
      node := pgrecall_internal._filter_cast(node, part.kind, tokens);
      at := part.at;
    elsif node ->> 'column' = 'metadata' then
      if coalesce(tokens -> (at + 1) ->> 0 <> '''' or tokens -> (at + 1) ->> 1 = '', true) then
        perform pgrecall_internal._invalid_filter('expected a key, not {}', tokens, at + 1);
      end if;
      node := node || jsonb_build_object('column', 'metadata.' || (tokens -> (at + 1) ->> 1));
      at := at + 2;
      if tokens -> at ->> 0 = '::' then
        -- In PostgreSQL such a cast would apply to the key.
        perform pgrecall_internal._invalid_filter(
          'expected parentheses around what is cast before {}', tokens, at);
      end if;
    else
      perform pgrecall_internal._invalid_filter('{} reads only keys of metadata', tokens, at);
    end if;
  end loop;
end;
$$;
comment on function pgrecall_internal._filter_operand is
'Reads a column or a constant, with the key and the casts that follow it; where allowed, also a '
'condition in parentheses. Errors: RC011.';

create or replace function pgrecall_internal._compared_column(node jsonb, tokens jsonb)
returns text
language plpgsql immutable parallel safe
as $$
begin
  if not node ? 'column' or node ->> 'column' in ('tags', 'metadata', 'occurred') then
    perform pgrecall_internal._invalid_filter(
      case when node ? 'column' then 'this operator does not take column {}'
           else 'expected a column, not {}' end,
      tokens, (node ->> 'at')::integer);
  end if;
  return node ->> 'column';
end;
$$;
comment on function pgrecall_internal._compared_column is
'The name of an operand that must be a column of single values, or a key of metadata. '
'Errors: RC011.';

create or replace function pgrecall_internal._compared_period(node jsonb, tokens jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
declare
  literal text := btrim(node ->> 'value', E' \t\r\n');
  sides   text[];
begin
  if node ? 'period' then
    return node -> 'period';
  end if;
  sides := regexp_match(literal, '^([[(])([^,]*),([^,]*)[)]$');
  sides := array[sides[1], btrim(sides[2], E' \t\r\n'), btrim(sides[3], E' \t\r\n')];
  if sides[1] is null or (sides[1] = '(' and sides[2] <> '')
     or jsonb_typeof(node -> 'value') <> 'string'
  then
    perform pgrecall_internal._invalid_filter(
      'expected a period as ''[start,end)'', not {}', tokens, (node ->> 'at')::integer);
  end if;
  return jsonb_build_array(btrim(nullif(sides[2], ''), '"'), btrim(nullif(sides[3], ''), '"'));
end;
$$;
comment on function pgrecall_internal._compared_period is
'[start, end] of an operand that must be a period, null for an open side. Errors: RC011.';

create or replace function pgrecall_internal._compared(
  op text, left_node jsonb, right_node jsonb, tokens jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
declare
  column_name text := left_node ->> 'column';
  constant    jsonb;
begin
  if op in ('@>', '&&') then
    if column_name = 'tags' and right_node ? 'strings' then
      return jsonb_build_array(case op when '@>' then 'contains' else 'overlaps' end, 'tags',
                               right_node -> 'strings');
    elsif column_name = 'occurred' and op = '&&' then
      return jsonb_build_array('overlaps', 'occurred',
                               pgrecall_internal._compared_period(right_node, tokens));
    end if;
    if column_name = 'tags' then
      perform pgrecall_internal._invalid_filter(
        'expected array[''...'', ''...''], not {}', tokens, (right_node ->> 'at')::integer);
    end if;
    perform pgrecall_internal._invalid_filter(
      format('operator "%s" does not take {}', op), tokens, (left_node ->> 'at')::integer);
  end if;
  if right_node ? 'any' and op = '=' then
    return jsonb_build_array('contains', 'tags', jsonb_build_array(
      pgrecall_internal._filter_constant(left_node, 'tags', tokens)));
  end if;
  if left_node ? 'value' and right_node ? 'column' then
    return pgrecall_internal._compared(
      case op when '<>' then op else translate(op, '<>', '><') end, right_node, left_node, tokens);
  end if;
  column_name := pgrecall_internal._compared_column(left_node, tokens);
  constant := pgrecall_internal._filter_constant(right_node, column_name, tokens);
  if left_node ? 'is_number' and jsonb_typeof(constant) = 'string' then
    perform pgrecall_internal._invalid_filter(
      'expected a number, not {}', tokens, (right_node ->> 'at')::integer);
  end if;
  return jsonb_build_array(op, column_name, constant);
end;
$$;
comment on function pgrecall_internal._compared is
'The condition of an operator between two operands; a constant may stand on either side of a '
'comparison. Errors: RC011.';

create or replace function pgrecall_internal._filter_comparison(
  tokens jsonb, depth integer, inout at integer, out node jsonb)
language plpgsql immutable parallel safe
as $$
declare
  code    text;
  first   record;
  second  record;
  is_not  boolean;
  column_name text;
begin
  first := pgrecall_internal._filter_operand(tokens, depth, at, true);
  node := first.node;
  at := first.at;
  code := tokens -> at ->> 0;
  if jsonb_typeof(node) = 'array' or code in ('', ')', ']', ',', ';', 'and', 'or', 'as') then
    return;
  end if;
  is_not := code = 'not';
  if is_not then
    at := at + 1;
    code := tokens -> at ->> 0;
  end if;
  at := at + 1;
  if code in ('in', 'like', 'ilike', 'between') then
    column_name := pgrecall_internal._compared_column(node, tokens);
  end if;

  if code = 'in' then
    second := pgrecall_internal._filter_values(
      tokens, depth, ')', column_name, pgrecall_internal._after_token(tokens, at, '('));
    node := jsonb_build_array('in', column_name, second.constants);
  elsif code in ('like', 'ilike') then
    second := pgrecall_internal._filter_operand(tokens, depth, at);
    node := jsonb_build_array(code, column_name,
              pgrecall_internal._filter_constant(second.node, column_name, tokens));
  elsif code = 'between' then
    first := pgrecall_internal._filter_operand(tokens, depth, at);
    second := pgrecall_internal._filter_operand(
      tokens, depth, pgrecall_internal._after_token(tokens, first.at, 'and'));
    node := jsonb_build_array('and',
      jsonb_build_array('>=', column_name,
        pgrecall_internal._filter_constant(first.node, column_name, tokens)),
      jsonb_build_array('<=', column_name,
        pgrecall_internal._filter_constant(second.node, column_name, tokens)));
  elsif code = 'is' and not is_not then
    if not node ? 'column' then
      perform pgrecall_internal._invalid_filter(
        'expected a column, not {}', tokens, (node ->> 'at')::integer);
    end if;
    is_not := tokens -> at ->> 0 = 'not';
    at := pgrecall_internal._after_token(
      tokens, case when is_not then at + 1 else at end, 'null');
    node := jsonb_build_array(
      case when is_not then 'is not null' else 'is null' end, node -> 'column');
    return;
  elsif code in ('=', '<>', '<', '<=', '>', '>=', '@>', '&&') and not is_not then
    second := pgrecall_internal._filter_operand(tokens, depth, at);
    node := pgrecall_internal._compared(code, node, second.node, tokens);
  else
    perform pgrecall_internal._invalid_filter('expected an operator, not {}', tokens, at - 1);
  end if;
  at := second.at;
  if is_not then
    node := jsonb_build_array('not', node);
  end if;
end;
$$;
comment on function pgrecall_internal._filter_comparison is
'Reads a comparison, a condition in parentheses, or an operand without an operator. Errors: RC011.';

create or replace function pgrecall_internal._filter_disjunction(
  tokens jsonb, depth integer, inout at integer, out node jsonb)
language plpgsql immutable parallel safe
as $$
declare
  any_of    jsonb[] := '{}';
  all_of    jsonb[] := '{}';
  negations integer;
  code      text;
  part      record;
begin
  loop
    negations := 0;
    while tokens -> at ->> 0 = 'not' loop
      at := at + 1;
      negations := negations + 1;
    end loop;
    part := pgrecall_internal._filter_comparison(tokens, depth + negations, at);
    node := part.node;
    at := part.at;
    code := tokens -> at ->> 0;
    if jsonb_typeof(node) = 'object' then
      -- In parentheses it may be an operand of a comparison that continues after them.
      if depth > 0 and negations = 0 and any_of = '{}' and all_of = '{}' and code = ')' then
        return;
      end if;
      perform pgrecall_internal._invalid_filter(
        '{} by itself is not a condition', tokens, (node ->> 'at')::integer);
    end if;
    for i in 1 .. negations loop
      node := jsonb_build_array('not', node);
    end loop;
    all_of := array_append(all_of, node);
    if code <> 'and' then
      any_of := array_append(any_of, case cardinality(all_of)
        when 1 then node else '["and"]' || to_jsonb(all_of) end);
      all_of := '{}';
      exit when code <> 'or';
    end if;
    at := at + 1;
  end loop;
  node := case cardinality(any_of) when 1 then any_of[1] else '["or"]' || to_jsonb(any_of) end;
end;
$$;
comment on function pgrecall_internal._filter_disjunction is
'Reads conditions joined by or, and and not, up to the first token that belongs to none; in '
'parentheses also a single operand. Errors: RC011.';

create or replace function pgrecall_internal._parsed_filter(filter text)
returns jsonb
language plpgsql immutable strict parallel safe
set search_path from current
as $$
declare
  tokens jsonb;
  parsed record;
begin
  if filter !~ '\S' then
    return null;
  end if;
  if filter ~ '^\s*\[' then
    if not pg_input_is_valid(filter, 'jsonb') then
      raise exception using
        errcode = 'RC011',
        message = format('filter: begins with [ and is not valid JSON: %s',
                         (select e.message from pg_input_error_info(filter, 'jsonb') as e)),
        hint    = 'Write an expression such as confidence > 0.8, or an array such as '
                  '[">", "confidence", 0.8].';
    end if;
    return filter::jsonb;
  end if;
  if length(filter) > 100000 then
    perform pgrecall_internal._invalid_filter(
      format('an expression has at most 100000 characters, not %s', length(filter)));
  end if;
  tokens := pgrecall_internal._filter_tokens(filter);
  parsed := pgrecall_internal._filter_disjunction(tokens, 0, 0);
  if tokens -> parsed.at ->> 0 = ';' then
    parsed.at := parsed.at + 1;
  end if;
  if tokens -> parsed.at ->> 0 <> '' then
    perform pgrecall_internal._invalid_filter(
      'expected "and", "or" or the end, not {}', tokens, parsed.at);
  end if;
  return parsed.node;
end;
$$;
comment on function pgrecall_internal._parsed_filter is
'A filter as _filter_sql() takes it, of an expression in PostgreSQL''s notation or of the JSON '
'array form as text; null for null and blank text. Types of values are checked by _filter_sql(). '
'Errors: RC011 naming the token and its position.';

-- values/filter.sql
-- Filters as SQL. A filter is nested JSON arrays, operator first, such as
-- ["and", [">=", "confidence", 0.8], ["in", "source_id", ["a", "b"]]]. _filter_sql() checks one and
-- returns a predicate over alias m of pgrecall.memory, in which the filter itself is parameter $3
-- of the statement.
--
-- No text of the filter enters the statement: names of columns and operators come from fixed lists,
-- times are rewritten, all other values and keys are read from $3. A list of values is checked in
-- one pass and read from $3 as one array, so that time and memory grow with its length; the planner
-- folds it to a constant, which can use an index on the column or is hashed by the executor.
--
-- entity is not a column: it stands for the entities that the memory mentions, by any of their
-- names. $1 of the statement is the bank.
--
-- A comparison with a column or key that a memory does not have is false, and "not" of it true: a
-- memory meets a condition or its "not".
--
-- A filter has at most 1,000 conditions and 200,000 values in lists, nested at most 50 deep.
create or replace function pgrecall_internal._filter_value(filter jsonb, path text[], type text)
returns text
language plpgsql stable parallel safe
set search_path from current
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $$
declare
  value  jsonb := filter #> path;
  wanted text := case when type in ('bigint', 'real') then 'number' else 'string' end;
begin
  if value is null or jsonb_typeof(value) <> wanted then
    raise exception using
      errcode = 'RC011',
      message = format('filter: expected a %s, not %s', wanted,
                       left(coalesce(value, 'null')::text, 200)),
      hint    = format('The column is of type %s. Test for null with ["is null", column].', type);
  end if;
  -- An expression: for a plain variable, pg_input_is_valid() caches the type of the first call.
  if not pg_input_is_valid(value #>> '{}', type || '') then
    raise exception using
      errcode = 'RC011',
      message = format('filter: %s is not a %s', left(value::text, 200), type),
      hint    = case when type = 'timestamptz'
                  then 'Write times as 2026-03-05 or 2026-03-05T14:00Z.'
                  else format('The column is of type %s.', type) end;
  end if;
  if type = 'timestamptz' then
    -- With its UTC offset: independent of the time zone of the session.
    return format('%L::timestamptz', (value #>> '{}')::timestamptz);
  end if;
  return format('($3 #>> %L)::%s', path, type);
end;
$$;
comment on function pgrecall_internal._filter_value is
'SQL that reads the value at a path of the filter, which is parameter $3. A time without a zone is '
'in UTC. Errors: RC011.';

create or replace function pgrecall_internal._texts(list jsonb)
returns text[]
language sql immutable parallel safe
return array(select jsonb_array_elements_text(_texts.list));
comment on function pgrecall_internal._texts is
'The elements of a JSON array as text, in order. Immutable, so that the planner folds it.';

create or replace function pgrecall_internal._filter_list(filter jsonb, path text[], type text)
returns text
language plpgsql stable parallel safe
set search_path from current
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $$
declare
  list   jsonb := filter #> path;
  wanted text := case when type in ('bigint', 'real') then 'number' else 'string' end;
  wrong  text;
begin
  if jsonb_array_length(list) > 200000 then
    raise exception using
      errcode = 'RC011',
      message = format('filter: a list of %s values is too long', jsonb_array_length(list)),
      hint    = 'A filter has at most 200000 values in lists.';
  end if;
  select e.ordinality - 1
  into   wrong
  from   jsonb_array_elements(list) with ordinality as e
  where  jsonb_typeof(e.value) <> wanted
     or  (type <> 'text' and not pg_input_is_valid(e.value #>> '{}', type || ''))
  limit  1;
  if wrong is not null then
    -- Called for its error.
    return pgrecall_internal._filter_value(filter, path || wrong, type);
  end if;
  if type = 'timestamptz' then
    return format('%L::timestamptz[]', array(
      select (e.value #>> '{}')::timestamptz from jsonb_array_elements(list) as e));
  end if;
  return format('pgrecall_internal._texts($3 #> %L)::%s[]', path, type);
end;
$$;
comment on function pgrecall_internal._filter_list is
'SQL that reads the list at a path of the filter, which is parameter $3, as one array of the type. '
'Errors: RC011 naming the first value that does not fit.';

create or replace function pgrecall_internal._filter_column(
  filter jsonb, path text[], out column_name text, out column_type text, out column_sql text)
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  column_name := filter #>> path;
  column_type := case
    when column_name in ('fact_type', 'text', 'context', 'fact_key', 'source_id') then 'text'
    when column_name in ('memory_id', 'proof_count') then 'bigint'
    when column_name = 'confidence' then 'real'
    when column_name in ('mentioned_at', 'created_at') then 'timestamptz'
    when column_name = 'occurred' then 'tstzrange'
    when column_name = 'tags' then 'text[]'
    when column_name = 'entity' then 'entity'
    when column_name like 'metadata.%' and length(column_name) > 9 then 'metadata'
  end;
  if column_type is null then
    raise exception using
      errcode = 'RC011',
      message = format('filter: unknown column "%s"', left(column_name, 200)),
      hint    = 'Columns: memory_id, fact_type, text, context, fact_key, source_id, confidence, '
                'proof_count, mentioned_at, created_at, occurred, tags, metadata.KEY, entity.';
  end if;
  column_sql := case column_type
    when 'metadata' then format('(m.metadata ->> substr($3 #>> %L, 10))', path)
    when 'entity' then '(select x.entity_id from pgrecall.mention x'
                       ' where x.bank_id = $1 and x.memory_id = m.memory_id limit 1)'
    else 'm.' || column_name
  end;
end;
$$;
comment on function pgrecall_internal._filter_column is
'The column named at a path of the filter: its name, its type (metadata: a key of it, read as '
'text; entity: what the memory mentions), and SQL that reads it, of an entity any. Errors: RC011 '
'naming an unknown column.';

create or replace function pgrecall_internal._filter_period(filter jsonb, path text[])
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  sides text[] := array(
    select case jsonb_typeof(filter #> (path || i::text))
             when 'null' then 'null'
             else pgrecall_internal._filter_value(filter, path || i::text, 'timestamptz')
           end
    from   generate_series(0, 1) as i
    order  by i
  );
  is_reversed boolean;
begin
  -- timestamptz literals made by _filter_value().
  execute format('select %s > %s', sides[1], sides[2]) into is_reversed;
  if is_reversed then
    raise exception using
      errcode = 'RC011',
      message = format('filter: %s ends before it starts', filter #> path),
      hint    = 'Write [start, end], with null for an open side.';
  end if;
  return format('tstzrange(%s, %s)', sides[1], sides[2]);
end;
$$;
comment on function pgrecall_internal._filter_period is
'SQL of the range at a path of the filter, given as [start, end], null for an open side. Errors: '
'RC011.';

create or replace function pgrecall_internal._comparison_sql(filter jsonb, path text[])
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  op      text := filter #>> (path || '0'::text);
  size    integer := jsonb_array_length(filter #> path);
  left_at text[] := path || '1'::text;
  value_at text[] := path || '2'::text;
  kind    text := jsonb_typeof(filter #> value_at);
  is_list boolean := kind = 'array';
  source  record;
  type    text;
begin
  source := pgrecall_internal._filter_column(filter, left_at);
  type := replace(source.column_type, 'metadata', 'text');
  if op in ('is null', 'is not null') and size = 2 then
    return format('(%s %s)', source.column_sql, op);
  end if;
  if size <> 3 then
    raise exception using
      errcode = 'RC011',
      message = format('filter: "%s" does not take %s operands', left(op, 200), size - 1),
      hint    = 'Write [operator, column, value], or ["is null", column].';
  end if;

  if type = 'entity' and (op = '=' or op = 'in' and is_list) then
    return format(
      '(exists (select from pgrecall.mention x where x.bank_id = $1 and x.memory_id = m.memory_id'
      ' and x.entity_id = any (array(select a.entity_id from pgrecall.entity_alias a'
      ' where a.bank_id = $1 and a.alias in (select pgrecall.normalised_name(n)'
      ' from unnest(%s) as n)))))',
      case op when 'in' then pgrecall_internal._filter_list(filter, value_at, 'text')
              else format('array[%s]', pgrecall_internal._filter_value(filter, value_at, 'text'))
      end);
  end if;
  if op in ('=', '<>', '<', '<=', '>', '>=') and type not in ('tstzrange', 'text[]', 'entity') then
    if source.column_type = 'metadata' and kind = 'number' then
      return format(
        '(case when jsonb_typeof(m.metadata -> substr($3 #>> %L, 10)) = ''number'''
        ' then %s::numeric %s ($3 #>> %L)::numeric end)',
        left_at, source.column_sql, op, value_at);
    end if;
    return format('(%s %s %s)', source.column_sql, op,
                  pgrecall_internal._filter_value(filter, value_at, type));
  end if;
  if op in ('like', 'ilike') and type = 'text' then
    if filter #>> value_at ~ '(^|[^\\])(\\\\)*\\$' then
      raise exception using
        errcode = 'RC011',
        message = format('filter: pattern %s ends in a backslash', filter #> value_at),
        hint    = 'A backslash makes the character after it stand for itself: write two of them.';
    end if;
    return format('(%s %s %s)', source.column_sql, op,
                  pgrecall_internal._filter_value(filter, value_at, 'text'));
  end if;
  if op = 'in' and type not in ('tstzrange', 'text[]', 'entity') and is_list then
    return case jsonb_array_length(filter #> value_at)
      when 0 then 'false'
      else format('(%s = any (%s))', source.column_sql,
                  pgrecall_internal._filter_list(filter, value_at, type))
    end;
  end if;
  if op = 'overlaps' and type = 'text[]' and is_list
     and jsonb_array_length(filter #> value_at) > 100
  then
    -- && compares each tag of each memory with each value: 16 seconds for 20,000 memories and
    -- 200,000 values. This looks each tag up in a hash table of the values.
    return format('(exists (select from unnest(m.tags) as t(tag) where t.tag = any (%s)))',
                  pgrecall_internal._filter_list(filter, value_at, 'text'));
  end if;
  if op in ('contains', 'overlaps') and type = 'text[]' and is_list then
    return format('(m.tags %s %s)', case op when 'contains' then '@>' else '&&' end,
                  pgrecall_internal._filter_list(filter, value_at, 'text'));
  end if;
  if op = 'overlaps' and type = 'tstzrange' and is_list
     and jsonb_array_length(filter #> value_at) = 2
  then
    return format('(m.occurred && %s)', pgrecall_internal._filter_period(filter, value_at));
  end if;

  raise exception using
    errcode = 'RC011',
    message = format('filter: operator "%s" does not fit column "%s" and %s', left(op, 200),
                     left(source.column_name, 200), left((filter #> value_at)::text, 200)),
    hint    = 'Operators: = <> < <= > >= in like ilike on single values; contains and overlaps '
              'with an array on tags; overlaps with [start, end] on occurred; = and in with names '
              'on entity; is null; is not null.';
end;
$$;
comment on function pgrecall_internal._comparison_sql is
'The condition at a path of the filter, which compares a column, as SQL. Errors: RC011.';

create or replace function pgrecall_internal._condition_sql(
  filter jsonb, path text[], out sql text, out condition_count integer, out value_count integer)
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  op    text := filter #>> (path || '0'::text);
  size  integer;
  parts text[] := '{}';
  part  record;
begin
  if jsonb_typeof(filter #> path) is distinct from 'array'
     or jsonb_typeof(filter #> (path || '0'::text)) is distinct from 'string'
  then
    raise exception using
      errcode = 'RC011',
      message = format('filter: %s is not a condition',
                       left(coalesce(filter #> path, 'null')::text, 200)),
      hint    = 'A condition is an array such as [">=", "confidence", 0.8] or ["and", c, c].';
  end if;
  size := jsonb_array_length(filter #> path);
  condition_count := 1;
  value_count := case when jsonb_typeof(filter #> (path || '2'::text)) = 'array'
                      then jsonb_array_length(filter #> (path || '2'::text)) else 0 end;
  if op not in ('and', 'or', 'not') then
    sql := pgrecall_internal._comparison_sql(filter, path);
    return;
  end if;

  value_count := 0;
  if size < 2 or (op = 'not' and size <> 2) or cardinality(path) > 50 then
    raise exception using
      errcode = 'RC011',
      message = format('filter: "%s" has %s conditions', op, size - 1),
      hint    = '"not" takes one condition, "and" and "or" one or more, nested at most 50 deep.';
  end if;
  for i in 1 .. size - 1 loop
    part := pgrecall_internal._condition_sql(filter, path || i::text);
    parts[i] := part.sql;
    condition_count := condition_count + part.condition_count;
    value_count := value_count + part.value_count;
    if condition_count > 1000 or value_count > 200000 then
      raise exception using
        errcode = 'RC011',
        message = case when condition_count > 1000
                       then 'filter: more than 1000 conditions'
                       else 'filter: more than 200000 values in lists' end,
        hint    = 'To compare a column with many values, give "in" the list of them.';
    end if;
  end loop;
  sql := case op
    when 'not' then format('(not coalesce(%s, false))', parts[1])
    else '(' || array_to_string(parts, format(' %s ', op)) || ')'
  end;
end;
$$;
comment on function pgrecall_internal._condition_sql is
'The condition at a path of the filter as SQL, and its numbers of conditions and list values. '
'Errors: RC011.';

create or replace function pgrecall_internal._filter_sql(filter jsonb)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  if filter is null then
    return 'true';
  end if;
  return (pgrecall_internal._condition_sql(filter, '{}')).sql;
end;
$$;
comment on function pgrecall_internal._filter_sql is
'A filter as SQL over alias m of memory; its values stay in parameter $3. Errors: RC011.';

-- Statements of the arms are built at run time: a branch per fact type, with the type as a constant
-- so that each uses its own index, and the predicate of the filter. Their parameters are $1 bank,
-- $2 as_of, $3 filter, $4 depth, then the arm's own.
create or replace function pgrecall_internal._union_all(branch text, fact_types text[])
returns text
language sql immutable parallel safe
return (
  select string_agg('(' || replace(branch, '{fact_type}', quote_literal(t)) || ')',
                    E'\nunion all\n')
  -- An empty bank gets a branch without a type, which keeps the statement valid.
  from   unnest(case when fact_types = '{}' then array[''] else fact_types end) as t
);
comment on function pgrecall_internal._union_all is
'A statement of one branch per fact type; {fact_type} in the branch becomes the literal.';

create or replace function pgrecall_internal._holds(
  valid_from timestamptz, valid_to timestamptz, at timestamptz)
returns boolean
language sql immutable parallel safe
return (valid_from is null or valid_from <= at) and (valid_to is null or valid_to > at);
comment on function pgrecall_internal._holds is
'Whether what is valid from one time to another, null being open, holds at a time; inlined.';

create or replace function pgrecall_internal._visible_sql(filter jsonb)
returns text
language sql stable parallel safe
return 'm.valid_from <= $2 and (m.valid_to is null or m.valid_to > $2) and '
       || case when filter is null then 'true' else pgrecall_internal._filter_sql(filter) end;
comment on function pgrecall_internal._visible_sql is
'Predicate over alias m: valid as of $2 and passes the filter ($3).';

-- values/lexeme.sql
-- Lexemes: the terms that the lexical arms index and look up.
--
-- lexemes() is the only place where a text is cut into terms; documents and queries go through it
-- alike. Words are stemmed by the text search configuration of the bank. Identifiers, codes, dates
-- and addresses are also kept as typed, so that "max_client_conn" is found exactly. Amounts are
-- also kept as others write them: 512MB as 512 and MB, and 1,299.00 as 1299.
-- Chinese, Japanese and Korean are cut into pairs of letters.
-- All functions are SQL without tables: the planner inlines them.
-- A change here makes stored weights and new queries disagree until a full refresh_statistics().

create or replace function pgrecall_internal._cjk()
returns text
language sql immutable parallel safe
return '\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u318f'
       '\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff'
       '\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff';
comment on function pgrecall_internal._cjk is
'The letters of Chinese, Japanese and Korean, for use inside a bracket expression.';

create or replace function pgrecall_internal._suffix()
returns text
language sql immutable parallel safe
return '(?:[+#]+(?![[:alnum:]+#]))';
comment on function pgrecall_internal._suffix is
'The + and # at the end of a word, which belong to it, as in C++ and C#: a regular expression.';

create or replace function pgrecall_internal._marks(content text)
returns text
language sql immutable parallel safe
return coalesce(case when octet_length(content) > length(content) then (
  -- What the parser of words reads as part of one.
  select string_agg(c.mark, '')
  from   (select distinct x from string_to_table(_marks.content, null) as x) as c(mark)
  where  octet_length(c.mark) > 1 and c.mark !~ '[[:alnum:]]'
    and  (select count(*) from ts_parse('default', 'a' || c.mark || 'a')) = 1
) end, '');
comment on function pgrecall_internal._marks is
'The marks in a text that belong to words and are no letters, for use inside a bracket expression '
'beside [:alnum:], as the virama of Hindi and the tones of Thai; empty where there are none.';

create or replace function pgrecall_internal._spaced(content text)
returns text
language sql immutable parallel safe
return regexp_replace(
  regexp_replace(content, '[' || pgrecall_internal._cjk() || ']+', ' ', 'g'),
  '[-_./@:+#]+(?=[[:alnum:]])', ' ', 'g'
);
comment on function pgrecall_internal._spaced is
'A text without Chinese, Japanese and Korean, and with spaces between the parts of identifiers: '
'max_client_conn becomes max client conn.';

create or replace function pgrecall_internal._with_amounts(content text)
returns text
language sql immutable parallel safe
return case when content ~ '[0-9](?:[[:alpha:]]|[,.''’][0-9]{3})' then regexp_replace(
  regexp_replace(
    content,
    '(?<![[:alnum:]_,.''’])([1-9][0-9]{0,2})(?:[,.''’]([0-9]{3}))(?:[,.''’]([0-9]{3}))?'
    '(?:[,.''’]([0-9]{3}))?(?![0-9])',
    '\& \1\2\3\4', 'g'),
  '(?<![[:alnum:]_,.''’])([0-9]+(?:[,.][0-9]+)?)([[:alpha:]]+)\M', '\& \1 \2', 'g')
  else content end;
comment on function pgrecall_internal._with_amounts is
'A text with the numbers in it whose digits are in groups also without the signs between these, '
'and those with a unit also apart from it: 1,299 1299 for 1,299, 512MB 512 MB for 512MB.';

create or replace function pgrecall.lexemes(config regconfig, content text)
returns setof pgrecall.lexeme_frequency
language sql immutable parallel safe
begin atomic
  with normalised as materialized (
    select n.content,
           regexp_replace(n.content, '[' || pgrecall_internal._cjk() || ']+', ' ', 'g') as spelt
    from   (select pgrecall_internal._normalised(lexemes.content) offset 0) as n(content)
  )
  select u.lexeme, sum(u.frequency)::integer
  from   normalised as t
  cross  join lateral (
    select w.lexeme, cardinality(w.positions)
    from   unnest(to_tsvector(
             config, pgrecall_internal._spaced(pgrecall_internal._with_amounts(t.spelt)))) as w
    union all
    -- Identifiers, codes, dates, addresses as typed.
    select lower(i.match[1]), 1
    from   regexp_matches(
             t.spelt,
             '[[:alnum:]]+(?:(?:[-_./@:+#]+[[:alnum:]]+)+' || pgrecall_internal._suffix() || '?|'
             || pgrecall_internal._suffix() || ')', 'g'
           ) as i(match)
    where  length(i.match[1]) <= 200
    union all
    -- Chinese, Japanese and Korean have no spaces between words: each pair of adjacent letters.
    select p.letter || coalesce(p.next, ''), 1
    from (
      select c.letter, c.n, lead(c.letter) over (partition by r.n order by c.n) as next
      from   regexp_matches(t.content, '[' || pgrecall_internal._cjk() || ']+', 'g')
               with ordinality as r(match, n),
             string_to_table(r.match[1], null) with ordinality as c(letter, n)
    ) as p
    where  p.next is not null or p.n = 1
  ) as u(lexeme, frequency)
  group by u.lexeme;
end;
comment on function pgrecall.lexemes is
'The lexemes of a text and how often each occurs in it: words as the configuration stems them, '
'identifiers as typed, 512MB also as 512 and MB, 1,299 also as 1299, Chinese, Japanese and Korean '
'by pairs of letters. The text is read in Unicode form NFKC. Letters with and without accents are '
'different, unless the configuration removes the accents, as one with the dictionary unaccent '
'does.';

create or replace function pgrecall_internal._field_lexemes(
  config regconfig, content text, context text, context_weight double precision,
  fact_key text, key_weight double precision)
returns table (lexeme text, frequency double precision)
language sql immutable parallel safe
begin atomic
  select u.lexeme, sum(u.frequency)
  from (
    select l.lexeme, l.frequency::double precision
    from   pgrecall.lexemes(config, content) as l
    union all
    select l.lexeme, l.frequency * context_weight
    from   pgrecall.lexemes(config, context) as l
    where  context <> '' and context_weight > 0
    union all
    select l.lexeme, l.frequency * key_weight
    from   pgrecall.lexemes(config, fact_key) as l
    where  fact_key <> '' and key_weight > 0
  ) as u(lexeme, frequency)
  group by u.lexeme;
end;
comment on function pgrecall_internal._field_lexemes is
'The lexemes of a memory and how often each occurs in it, weighted by field: the text has weight '
'1.';

-- values/name.sql
-- Names: how they are compared, and how a query is cut into words and phrases.
--
-- A name is compared in normalised form (normalised_name()), and a kind of entity by its class
-- (_kind_class()); both are stored as given.
create or replace function pgrecall.normalised_name(name text)
returns text
language sql immutable parallel safe
return lower(trim(regexp_replace(
  pgrecall_internal._normalised(name),
  '(?:[^[:alnum:]+#]|(?<![[:alnum:]+#])[+#]+|[+#]+(?=[[:alnum:]]))+', ' ', 'g')));
comment on function pgrecall.normalised_name is
'A name in normalised form, for comparisons: Unicode form NFKC, lower case, punctuation and runs '
'of spaces as one space. + and # at the end of a word belong to it: C++ and C# are not C.';

create or replace function pgrecall_internal._words(query text)
returns table (word text, starts_at integer, ends_at integer, is_joined boolean, is_letter boolean)
language sql immutable parallel safe
begin atomic
  select p.word,
         (sum(p.gap + length(p.word)) over running - length(p.word))::integer + 1,
         (sum(p.gap + length(p.word)) over running)::integer,
         p.gap = 0 and row_number() over running > 1,
         p.word ~ ('^[' || pgrecall_internal._cjk() || ']$')
  from (
    select r.n, m.n as part, m.word, case m.n when 1 then length(r.match[1]) else 0 end as gap
    from   regexp_matches(
             left(query, 4000),
             '([^[:alnum:]]*)([[:alnum:]]+' || pgrecall_internal._suffix() || '?)', 'g')
             with ordinality as r(match, n)
    cross  join lateral (
      select 1 as n, r.match[2] as word
      where  octet_length(r.match[2]) = length(r.match[2])
      union  all
      select x.n, x.match[1]
      from   regexp_matches(
               r.match[2],
               '[\u30a1-\u30fa\u30fc-\u30ff\uff66-\uff9f]+|[' || pgrecall_internal._cjk() || ']|[^'
               || pgrecall_internal._cjk() || ']+', 'g')
               with ordinality as x(match, n)
      where  octet_length(r.match[2]) > length(r.match[2])
    ) as m
    -- Only the beginning of a long pasted text is read.
    order  by r.n, m.n
    limit  200
  ) as p
  window running as (order by p.n, p.part)
  order  by p.n, p.part;
end;
comment on function pgrecall_internal._words is
'The first 200 words of a query in order, with the positions of their first and last characters. '
'In Chinese, Japanese and Korean each letter is a word (is_letter), and each run of katakana. '
'is_joined: it directly follows the word before.';

create or replace function pgrecall_internal._phrases(query text, firsts integer[] default null)
returns table (phrase text, first integer, last integer, starts_at integer, ends_at integer)
language sql immutable parallel safe
begin atomic
  with question as materialized (
    select array_agg(case when w.is_joined then '' else ' ' end || lower(w.word)) as words,
           array_agg(w.starts_at) as starts, array_agg(w.ends_at) as ends,
           array_agg(w.is_letter) as letters, array_agg(w.is_joined) || false as joined,
           array_agg(w.number) as numbers, count(*)::integer as length
    from (
      select x.*, count(*) filter (where not x.is_joined) over (order by x.ends_at) as number
      from   pgrecall_internal._words(query) as x
      order  by x.ends_at
    ) as w
  )
  select ltrim(array_to_string(q.words[f.n:l.n], '')), f.n, l.n, q.starts[f.n], q.ends[l.n]
  from   question q
  cross  join unnest(coalesce(firsts, array(select generate_series(1, q.length)))) as f(n)
  cross  join generate_series(f.n, least(f.n + 11, q.length)) as l(n)
  where  q.numbers[l.n] - q.numbers[f.n] < 8
    -- A letter among others is part of a word: 王 is not in 王国.
    and  not (f.n = l.n and q.letters[f.n] and (q.joined[f.n] or q.joined[f.n + 1]));
end;
comment on function pgrecall_internal._phrases is
'Runs of one to eight words of a query, normalised as names are; of up to twelve letters in '
'languages without spaces between words. first and last count words, starts_at and ends_at '
'characters. firsts: only runs whose first is one of these.';

create or replace function pgrecall_internal._kind_class(kind text)
returns text
language sql immutable parallel safe
return nullif(coalesce('{
  "people": "person", "human": "person", "individual": "person", "user": "person",
  "speaker": "person", "per": "person",
  "organization": "organisation", "company": "organisation", "business": "organisation",
  "firm": "organisation", "org": "organisation", "corporation": "organisation",
  "institution": "organisation", "employer": "organisation",
  "location": "place", "city": "place", "town": "place", "village": "place", "country": "place",
  "region": "place", "gpe": "place", "loc": "place",
  "tool": "product", "app": "product", "application": "product", "software": "product",
  "service": "product", "system": "product", "platform": "product",
  "other": "", "misc": "", "unknown": "", "entity": "", "thing": "", "object": "",
  "concept": "", "topic": ""
}'::jsonb ->> lower(trim(kind)), lower(trim(kind))), '');
comment on function pgrecall_internal._kind_class is
'A kind of entity in normalised form, for comparisons: company and organisation are equal. Null: '
'unknown, or an unspecific word such as thing.';

create or replace function pgrecall_internal._kinds_differ(kind text, other text)
returns boolean
language sql immutable parallel safe
return coalesce(_kinds_differ.kind <> _kinds_differ.other, false);
comment on function pgrecall_internal._kinds_differ is
'Whether two kinds, as _kind_class() returns them, are both known and different.';

create or replace function pgrecall_internal._rarity(mentions bigint, documents bigint)
returns double precision
language sql immutable parallel safe
-- Logarithms of numeric take fifty times as long.
return ln(1 + (greatest(documents, mentions) - mentions + 0.5::double precision)
              / (mentions + 0.5::double precision))
       / ln(2 + 2 * greatest(documents, mentions, 1)::double precision);
comment on function pgrecall_internal._rarity is
'Weight of an entity, 0 to 1: its IDF, divided by the highest possible IDF. The weight of an '
'entity that every fact mentions is nearly 0.';

create or replace function pgrecall_internal._nearest_name(
  name text, names text[], least_alike double precision default 0)
returns text
language sql immutable parallel safe
return (
  -- Ordered by the Dice coefficient of letter pairs.
  select n.name
  from   unnest(names) as n(name)
  cross  join lateral (
    select count(*) / (length(n.name) + least(length(_nearest_name.name), 60) + 2.0) * 2 as alike
    from  (select substr(_nearest_name.name, i, 2)
           from   generate_series(0, least(length(_nearest_name.name), 60)) as i
           intersect
           select substr(n.name, i, 2) from generate_series(0, length(n.name)) as i) as x
  ) as s
  where  s.alike >= least_alike
  order  by s.alike desc, n.name
  limit  1
);
comment on function pgrecall_internal._nearest_name is
'The name whose spelling is most similar, by at least least_alike, 0 to 1; null where there is '
'none.';

-- values/check.sql
-- Checks of arguments.
--
-- The _check_* functions return nothing and raise an error whose hint says what to pass. They come
-- before all other logic since every file uses them.
-- Fields of JSON objects are checked in field.sql.
create or replace function pgrecall_internal._check_range(
  name text, value bigint, lowest bigint, highest bigint)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if value is null or value not between lowest and highest then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s must be between %s and %s, not %s',
                       name, lowest, highest, coalesce(value::text, 'null')),
      hint    = format('Pass %s => %s, for example.', name, least(greatest(50, lowest), highest));
  end if;
end;
$$;
comment on function pgrecall_internal._check_range is
'Raises 22023 unless lowest <= value <= highest.';

create or replace function pgrecall_internal._check_share(name text, value double precision)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if value is null or value = 'NaN' or value not between 0 and 1 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s must be between 0 and 1, not %s', name, coalesce(value::text, 'null')),
      hint    = format('Pass %s => 0.9, for example.', name);
  end if;
end;
$$;
comment on function pgrecall_internal._check_share is
'Raises 22023 unless 0 <= value <= 1.';

create or replace function pgrecall_internal._check_text(name text, value text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if length(value) > 100000 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s has %s characters, more than 100000', name, length(value)),
      hint    = 'Pass only the part that asks the question.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_text is
'Raises 22023 when a text is longer than 100,000 characters.';

create or replace function pgrecall_internal._check_elements(
  name text, elements text[], all_of text, code text default '22023')
returns void
language plpgsql immutable parallel safe
as $$
begin
  if exists (select from unnest(elements) as u where u is null) then
    raise exception using
      errcode = code,
      message = format('%s must not contain null', name),
      hint    = format('Leave it out of the list. %s => null stands for %s.', name, all_of);
  end if;
end;
$$;
comment on function pgrecall_internal._check_elements is
'Raises an error with that code when an element is null; all_of says what null stands for.';

create or replace function pgrecall_internal._check_array(name text, value jsonb)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if value is null or jsonb_typeof(value) <> 'array' then
    raise exception using
      errcode = 'RC003',
      message = format('%s: expected an array, not %s',
                       name, coalesce(left(value::text, 80), 'null')),
      hint    = 'Pass ''[{"text": "..."}]''::jsonb.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_array is
'Raises RC003 unless a value is an array.';

create or replace function pgrecall_internal._check_entity_name(name text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if coalesce(pgrecall.normalised_name(name), '') = '' or length(name) > 500 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s cannot name an entity', coalesce('"' || left(name, 80) || '"', 'null')),
      hint    = 'A name has a letter or digit and at most 500 characters.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_entity_name is
'Raises 22023 unless a name is valid for an entity.';

create or replace function pgrecall.to_embedding(elements real[])
returns halfvec
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  problem text;
begin
  if elements is null then
    return null;
  end if;
  select case
           when count(*) = 0 then 'it is empty'
           when array_ndims(elements) > 1 then 'it is an array of arrays'
           when count(*) > 16000 then format('%s elements are more than 16000', count(*))
           when count(e) < count(*) then 'an element is null'
           when bool_or(e = 'NaN') then 'an element is NaN'
           when bool_or(abs(e) > 65504) then 'an element is infinite or beyond 65504'
           when bool_and(abs(e) < 6e-8) then 'all elements are zero'
         end
  into   problem
  from   unnest(elements) as e;
  if problem is not null then
    raise exception using
      errcode = 'RC006',
      message = format('unusable embedding: %s', problem),
      hint    = 'Pass the finite numbers that the embedding model returned.';
  end if;
  return elements::halfvec;
end;
$$;
comment on function pgrecall.to_embedding is
'Numbers as an embedding, of shape (dimensions,). Errors: RC006 empty, nested, too long, null, '
'NaN, infinite or all zero.';

create or replace function pgrecall_internal._checked_embedding(
  bank pgrecall.bank, name text, embedding halfvec, model text)
returns halfvec
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  -- The next model also differs from the bank's model where the latter has no name.
  if model <> bank.embedding_model or model = bank.next_model then
    raise exception using
      errcode = 'RC005',
      message = format('bank "%s" is embedded with model "%s", not "%s"',
                       bank.bank_id, coalesce(bank.embedding_model, ''), model),
      hint    = case when model = bank.next_model
        then format('It is being re-embedded; use "%s" until reembed_finish() is called.',
                    coalesce(bank.embedding_model, ''))
        -- The driver appends the prompts of a model to its name.
        when split_part(model, ' [', 1) = split_part(bank.embedding_model, ' [', 1)
          then format('In square brackets are the prompts before a question and before a passage: '
                      'embed the %s with those of "%s".', name, bank.embedding_model)
        else format('Embed the %s with "%s".', name, bank.embedding_model) end;
  end if;
  if embedding is null then
    return null;
  end if;
  if vector_dims(embedding) <> bank.embedding_dimensions then
    raise exception using
      errcode = 'RC004',
      message = format('%s: expected %s dimensions, not %s',
                       name, bank.embedding_dimensions, vector_dims(embedding)),
      hint    = format('Bank "%s" is embedded with %s; use the same model.', bank.bank_id,
                       coalesce('"' || bank.embedding_model || '"', 'another model'));
  end if;
  if l2_norm(embedding) = 0 then
    raise exception using
      errcode = 'RC006',
      message = format('%s: unusable embedding: all elements are zero', name),
      hint    = 'Pass the finite numbers that the embedding model returned.';
  end if;
  return embedding;
end;
$$;
comment on function pgrecall_internal._checked_embedding is
'The embedding. Raises RC004 (dimensions), RC005 (model) or RC006 (zero) unless a bank can compare '
'it.';

create or replace function pgrecall_internal._centred(
  bank pgrecall.bank, name text, embedding halfvec)
returns halfvec
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  centred halfvec := l2_normalize(embedding) - bank.embedding_mean;
begin
  if l2_norm(centred) = 0 then
    raise exception using
      errcode = 'RC006',
      message = format('%s: unusable embedding: it is the mean of its model', name),
      hint    = 'Pass the finite numbers that the embedding model returned.';
  end if;
  return centred;
end;
$$;
comment on function pgrecall_internal._centred is
'An embedding as a bank whose model has a mean stores and compares it: its direction minus the '
'mean. Errors: RC006 nothing is left.';

create or replace function pgrecall_internal._quoted_choices(choices text[])
returns text
language sql immutable parallel safe
return regexp_replace('"' || array_to_string(choices, '", "') || '"', ', ([^,]*)$', ' or \1');
comment on function pgrecall_internal._quoted_choices is
'Choices as an error names them: "a", "b" or "c".';

create or replace function pgrecall_internal._check_choice(
  name text, value text, choices text[], hint text default null)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if value is null or value <> all (choices) then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s must be %s, not "%s"', name,
                       pgrecall_internal._quoted_choices(choices), left(coalesce(value, ''), 50)),
      hint    = coalesce(hint, format('Pass %s => %L.', name, choices[1]));
  end if;
end;
$$;
comment on function pgrecall_internal._check_choice is
'Raises 22023 where a value is none of the choices.';

create or replace function pgrecall_internal._check_object(name text, value jsonb, hint text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if value is null or jsonb_typeof(value) <> 'object' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s must be an object, not %s', name,
                       coalesce(left(value::text, 80), 'null')),
      hint    = hint;
  end if;
end;
$$;
comment on function pgrecall_internal._check_object is
'Raises 22023 unless a value is an object.';

-- values/field.sql
-- Fields of JSON objects that callers pass: checked and read in one step.
--
-- Every *_field function takes the path of a field (facts[3].text) and its value, and returns the
-- value with its SQL type; null when the field is absent or null. An invalid value raises RC003
-- with the path, so that the caller finds it in a large batch.
-- Times are read in UTC, whatever the session's time zone. Only numeric dates and timestamps are
-- accepted: "today", which PostgreSQL also accepts, would change its meaning tomorrow.

create or replace function pgrecall_internal._is_id(value text)
returns boolean
language sql immutable parallel safe
return case when value ~ '^\d{1,19}$' then value::numeric <= 9223372036854775807 else false end;
comment on function pgrecall_internal._is_id is 'Whether a text is an id: a bigint, 0 upwards.';

create or replace function pgrecall_internal._raise_invalid_field(
  place text, problem text, hint text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  raise exception using
    errcode = 'RC003',
    message = format('%s: %s', place, problem),
    hint    = hint;
end;
$$;
comment on function pgrecall_internal._raise_invalid_field is
'Raises RC003 for a field of a fact or message.';

create or replace function pgrecall_internal._check_keys(place text, value jsonb, keys text[])
returns void
language plpgsql immutable parallel safe
as $$
declare
  unknown text;
begin
  if jsonb_typeof(value) <> 'object' then
    perform pgrecall_internal._raise_invalid_field(
      place, format('expected an object, not %s', left(value::text, 80)),
      format('Its fields: %s.', array_to_string(keys, ', ')));
  end if;
  select k into unknown from jsonb_object_keys(value) as k where k <> all (keys) limit 1;
  if found then
    perform pgrecall_internal._raise_invalid_field(
      place || '.' || unknown, 'unknown field',
      format('Fields: %s.', array_to_string(keys, ', ')));
  end if;
end;
$$;
comment on function pgrecall_internal._check_keys is
'Raises RC003 unless a value is an object with no other keys than these.';

create or replace function pgrecall_internal._string_field(
  place text, value jsonb, is_required boolean default false, longest integer default 100000)
returns text
language plpgsql immutable parallel safe
as $$
declare
  content text := value #>> '{}';
begin
  if value is null or jsonb_typeof(value) = 'null' then
    if is_required then
      perform pgrecall_internal._raise_invalid_field(place, 'missing', 'Give it as a string.');
    end if;
  elsif jsonb_typeof(value) <> 'string' then
    perform pgrecall_internal._raise_invalid_field(
      place, format('expected a string, not %s', left(value::text, 80)),
      'Put it in double quotes.');
  elsif trim(content) = '' then
    perform pgrecall_internal._raise_invalid_field(
      place, 'it is empty', 'Leave it out, or give it a value.');
  elsif length(content) > longest then
    perform pgrecall_internal._raise_invalid_field(
      place, format('%s characters are more than %s', length(content), longest),
      case when longest = 100000 then 'Split it into several facts.' else 'Shorten it.' end);
  end if;
  return content;
end;
$$;
comment on function pgrecall_internal._string_field is
'A field that is a string of 1 to longest characters. Errors: RC003.';

create or replace function pgrecall_internal._fraction_field(place text, value jsonb)
returns real
language plpgsql immutable parallel safe
as $$
begin
  -- A real cannot hold a number below 1e-37.
  if jsonb_typeof(value) <> 'null'
     and (jsonb_typeof(value) <> 'number' or value::text::numeric not between 0 and 1
          or (value <> '0' and value::text::numeric < 1e-37))
  then
    perform pgrecall_internal._raise_invalid_field(
      place, format('expected a number from 0 to 1, not %s', left(value::text, 80)),
      '1 is certain; leave it out for that.');
  end if;
  return value #>> '{}';
end;
$$;
comment on function pgrecall_internal._fraction_field is
'A field that is a number from 0 to 1. Errors: RC003.';

create or replace function pgrecall_internal._time_field(place text, value jsonb)
returns timestamptz
language plpgsql stable parallel safe
set timezone = 'UTC'
as $$
begin
  if value is null or jsonb_typeof(value) = 'null' then
    return null;
  end if;
  if jsonb_typeof(value) <> 'string' or value #>> '{}' !~ '^\d{4,6}-\d\d-\d\d([ T]|$)'
     or not pg_input_is_valid(value #>> '{}', 'timestamptz')
  then
    perform pgrecall_internal._raise_invalid_field(
      place, format('%s is not a time', left(value::text, 80)),
      'Write 2026-03-05 or 2026-03-05T14:00Z.');
  end if;
  return value #>> '{}';
end;
$$;
comment on function pgrecall_internal._time_field is
'A field that is a timestamp, or a date, read as its first instant in UTC. Errors: RC003.';

create or replace function pgrecall_internal._span_field(place text, value jsonb)
returns tstzrange
language plpgsql stable parallel unsafe
set timezone = 'UTC'
as $$
declare
  ends jsonb := case jsonb_typeof(value) when 'array' then value else jsonb_build_array(value) end;
  span tstzrange;
begin
  if value is null or jsonb_typeof(value) = 'null' then
    return null;
  end if;
  if exists (
    select from jsonb_array_elements(ends) as e
    where  jsonb_typeof(e) not in ('string', 'null')
       or  e #>> '{}' !~ '^\d{4,6}-\d\d-\d\d([ T]|$)'
  ) then
    raise exception using errcode = 'data_exception', message = 'not a time';
  end if;
  if jsonb_typeof(value) = 'string' and ends ->> 0 ~ '^\d{4,6}-\d\d-\d\d( BC)?$' then
    span := tstzrange((ends ->> 0)::date, (ends ->> 0)::date + 1);
  elsif jsonb_typeof(value) = 'string' then
    span := tstzrange((ends ->> 0)::timestamptz, (ends ->> 0)::timestamptz, '[]');
  elsif jsonb_array_length(ends) = 2 then
    span := tstzrange(coalesce(ends ->> 0, '-infinity')::timestamptz,
                      coalesce(ends ->> 1, 'infinity')::timestamptz);
  end if;
  if span is null or isempty(span) then
    raise exception using errcode = 'data_exception', message = 'empty';
  end if;
  return span;
exception when data_exception then
  perform pgrecall_internal._raise_invalid_field(
    place, format('%s is not a time span', left(value::text, 80)),
    'Write 2026-03-05, 2026-03-05T14:00Z, or [start, end] with start before end '
    'and null for an open side.');
end;
$$;
comment on function pgrecall_internal._span_field is
'A field that is a time span: "2026-03-05" is that day in UTC, a timestamp that instant, [start, '
'end] is half-open, with null for an open side. Errors: RC003, also when the span is empty.';

create or replace function pgrecall_internal._array_field(place text, value jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
begin
  if value is null or jsonb_typeof(value) = 'null' then
    return '[]';
  elsif jsonb_typeof(value) <> 'array' then
    perform pgrecall_internal._raise_invalid_field(
      place, format('expected an array, not %s', left(value::text, 80)),
      'Put it in square brackets.');
  end if;
  return value;
end;
$$;
comment on function pgrecall_internal._array_field is
'A field that is an array, [] when absent. Errors: RC003.';

create or replace function pgrecall_internal._check_embedded(embeddings jsonb, listing text)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  wrong record;
begin
  perform pgrecall_internal._check_array('embeddings', embeddings);
  select v.n - 1 as index, v.item,
         jsonb_typeof(v.item) = 'object' and pgrecall_internal._is_id(v.item ->> 'memory_id')
           as has_id
  into   wrong
  from   jsonb_array_elements(embeddings) with ordinality as v(item, n)
  where  jsonb_typeof(v.item) <> 'object' or not pgrecall_internal._is_id(v.item ->> 'memory_id')
     or  not pg_input_is_valid(coalesce(v.item ->> 'ordinal', '0'), 'smallint')
  order  by v.n
  limit  1;
  if not found then
    return;
  end if;
  perform pgrecall_internal._raise_invalid_field(
    format('embeddings[%s].%s', wrong.index,
           case when wrong.has_id then 'ordinal' else 'memory_id' end),
    case when wrong.has_id
         then format('expected a number up to 32767, not %s', wrong.item -> 'ordinal')
         else format('expected the id of a memory, not %s', left(wrong.item::text, 80)) end,
    format('Write {"memory_id": 5, "embedding": [0.1, 0.2]}, with an id of %s.', listing));
end;
$$;
comment on function pgrecall_internal._check_embedded is
'Raises RC003 unless each element of an array names a memory, and an ordinal or none. listing: the '
'function that lists what there is to embed.';

create or replace function pgrecall_internal._embedding_field(
  place text, value jsonb, bank pgrecall.bank)
returns halfvec
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  embedding halfvec;
begin
  if value is null or jsonb_typeof(value) = 'null' then
    return null;
  end if;
  begin
    embedding := (value #>> '{}')::halfvec;
  exception when data_exception or program_limit_exceeded then
    raise exception using
      errcode = 'RC006',
      message = format('%s: unusable embedding: %s', place, left(sqlerrm, 120)),
      hint    = 'Pass the finite numbers that the embedding model returned, as an array or as '
                '"[0.1, 0.2]".';
  end;
  embedding := pgrecall_internal._checked_embedding(bank, place, embedding, null);
  if bank.embedding_mean is not null then
    embedding := pgrecall_internal._centred(bank, place, embedding);
  end if;
  return embedding;
end;
$$;
comment on function pgrecall_internal._embedding_field is
'An embedding of the bank''s model, array or string, as it is stored; null when absent. Errors: '
'RC004, RC006.';

-- values/phrase.sql
-- Query syntax of the lexical arms: plain words, which are optional, "phrases in quotes", which
-- must occur, and -words and -"phrases", which must not.
--
-- _parsed_query() parses a query, once in a recall. _matches_phrases() tests whether a text has the
-- phrases and none of the exclusions: adjacent words, stemmed as the bank's text search
-- configuration does, identifiers and scripts without spaces as they were typed. Quotes and dashes
-- in a query of more than 1,000 characters belong to a pasted text and are ignored.
create or replace function pgrecall_internal._parsed_query(
  query text, out words text, out phrases text[], out excluded text[])
language plpgsql immutable parallel safe
as $$
declare
  quoted constant text := '(?<![[:alnum:]])"([^"]+)"(?![[:alnum:]])';
  minus  text := '(?:^| )-([[:alpha:]][[:alnum:]]*(?:[-_./@:+#'']+[[:alnum:]]+)*'
                 || pgrecall_internal._suffix() || '?)';
  bare   text;
begin
  -- Only the beginning of a very long text is searched.
  words := left(query, 16000);
  phrases := '{}';
  excluded := '{}';
  -- A long query is a pasted text: its quotes and dashes are not operators.
  if length(words) > 1000 then
    return;
  end if;
  bare := translate(pgrecall_internal._normalised(query), '“”„', '"""');
  if bare !~ '"|(^| )-[[:alpha:]]' then
    return;
  end if;
  minus := replace(minus, '[:alnum:]', '[:alnum:]' || pgrecall_internal._marks(bare));
  excluded := array(
    select p.match[1] from regexp_matches(bare, '(?:^| )-' || quoted, 'g') as p(match)
  );
  bare := regexp_replace(bare, '(^| )-' || quoted, ' ', 'g');
  phrases := array(
    select p.match[1]
    from   regexp_matches(bare, quoted, 'g') as p(match)
    -- A phrase without words is ignored.
    where  p.match[1] ~ '[[:alnum:]]'
  );
  bare := regexp_replace(bare, quoted, ' ', 'g');
  excluded := excluded || array(
    select p.match[1] from regexp_matches(bare, minus, 'g') as p(match)
  );
  words := concat_ws(' ', regexp_replace(bare, minus, ' ', 'g'), array_to_string(phrases, ' '));
end;
$$;
comment on function pgrecall_internal._parsed_query is
'Parts of a query: optional words, required phrases ("in quotes"), and excluded words and phrases '
'(-word, -"in quotes"); phrases and exclusions in Unicode form NFKC.';

create or replace function pgrecall_internal._has_phrase(
  config regconfig, phrase text, fields text[])
returns boolean
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  typed text := '[' || pgrecall_internal._cjk() || ']|[[:alnum:]](?:[-_./@:+#]+[[:alnum:]]'
                || '|' || pgrecall_internal._suffix() || ')';
  words text;
begin
  if phrase ~ typed then
    -- As typed, and where it does not begin or end in a script without spaces, as whole words.
    typed := regexp_replace(lower(btrim(phrase)), '([^[:alnum:][:space:]])', '\\\1', 'g');
    typed := regexp_replace(typed, '[[:space:]]+', '\\s+', 'g');
    if btrim(phrase) ~ ('^(?![' || pgrecall_internal._cjk() || '])[[:alnum:]]') then
      typed := '(?<![[:alnum:]])' || typed;
    end if;
    if btrim(phrase) ~ ('(?![' || pgrecall_internal._cjk() || '])[[:alnum:]]$') then
      typed := typed || '(?![[:alnum:]])';
    end if;
    return exists (
      select from unnest(fields) as f
      where  lower(pgrecall_internal._normalised(f)) ~ ('(?:' || typed || ')')
    );
  end if;
  words := pgrecall_internal._spaced(phrase);
  if to_tsvector(config, words) = '' then
    -- A phrase of stop words alone: to be or not to be.
    config := 'simple';
    if to_tsvector(config, words) = '' then
      return false;
    end if;
  end if;
  return exists (
    select from unnest(fields) as f
    where  to_tsvector(config, pgrecall_internal._spaced(pgrecall_internal._normalised(f)))
             @@ phraseto_tsquery(config, words)
  );
end;
$$;
comment on function pgrecall_internal._has_phrase is
'Whether the words of a phrase, in Unicode form NFKC, are adjacent in one of the fields, stemmed '
'as the configuration does; a phrase with an identifier or Chinese, Japanese or Korean in it, as '
'typed.';

create or replace function pgrecall_internal._matches_phrases(
  config regconfig, phrases text[], excluded text[], fields text[])
returns boolean
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  return (
    select bool_and(pgrecall_internal._has_phrase(config, p, fields)) from unnest(phrases) as p
  ) is not false and (
    select bool_or(pgrecall_internal._has_phrase(config, x, fields)) from unnest(excluded) as x
  ) is not true;
end;
$$;
comment on function pgrecall_internal._matches_phrases is
'Whether the fields contain all phrases and no exclusion.';

-- values/similarity.sql
-- Similarity: the value of a cosine on the scale of a bank (operations/calibration.sql), and the
-- direction of questions, by which the semantic arm recognises a vector that is near all of them.
create or replace function pgrecall_internal._similarity(
  cosine double precision, low double precision, high double precision)
returns double precision
language sql immutable parallel safe
return case
  when low is null then cosine
  when cosine < high then greatest(-1, 0.2 + 0.5 * (cosine - low) / (high - low))
  else 0.7 + 0.3 * (cosine - high) / (1 - high)
end;
comment on function pgrecall_internal._similarity is
'The similarity that a cosine counts as: 0.2 at low, 0.7 at high, 1 at 1, linear between and '
'below, -1 at least. The cosine itself where low is null.';

create or replace function pgrecall_internal._question_direction(model text, dimensions integer)
returns halfvec
language sql immutable parallel safe
return case when model = 'pgrecall-small-2' and dimensions = 768 then (
    '[-3,0,1,-2,-2,-1,4,3,1,-2,1,2,-2,7,-1,-4,-1,1,-1,-3,2,0,-4,3,-1,-5,1,-1,3,8,1,4,-2,-8,4,-2,2,'
    '-4,-3,-7,-1,-3,0,-1,-1,3,4,3,-2,-5,1,4,-1,3,4,-5,0,2,0,2,-2,2,0,-2,2,-5,-2,-2,-5,1,-1,2,2,7,'
    '2,-1,3,5,0,2,-4,-2,-4,-5,3,0,-4,-2,2,-2,-6,4,4,1,-8,3,0,-4,-5,1,4,-1,3,-1,-4,0,0,-1,6,4,-3,'
    '0,-4,-3,-2,-2,5,1,1,1,4,16,4,0,-4,0,5,-2,-1,5,1,5,-4,0,1,-3,2,-1,-4,-1,2,-2,-3,-3,4,0,0,-2,'
    '-3,-2,7,1,-3,0,4,0,7,1,-1,-1,4,-2,-7,7,3,1,0,-6,-3,-1,2,2,-1,-4,-2,1,1,4,0,0,6,0,-4,3,-3,2,'
    '5,1,-1,1,0,1,2,3,-6,-1,0,-10,1,-3,5,5,-3,6,-1,-2,1,-4,0,0,-1,-1,2,1,-6,4,1,6,0,2,-2,-1,-2,'
    '-3,2,-2,5,-2,-2,2,-3,-6,5,2,1,7,-2,0,0,6,-3,-9,0,-1,-1,9,-3,0,0,0,4,-5,-3,3,2,3,-1,2,1,3,2,'
    '0,2,-6,-2,-4,0,-9,-3,3,0,-1,-6,2,-3,2,5,-2,-4,1,-1,6,0,3,-2,3,-4,4,-3,6,5,2,1,0,4,-10,2,-3,'
    '2,-3,-2,3,-9,6,-2,-7,-7,-2,1,0,-4,1,-4,3,0,-2,0,3,-1,2,0,-8,-4,1,-2,-3,-1,-1,0,-1,-7,-1,0,'
    '-2,2,0,-7,-3,7,1,8,3,3,1,6,1,5,0,4,-4,0,-7,6,4,2,2,3,8,-1,-1,1,1,-1,0,3,3,7,-2,-2,13,-1,2,1,'
    '-2,-3,5,-4,-8,-1,5,-4,-5,-3,2,-1,5,-1,2,0,1,4,1,-2,0,1,0,-1,-2,-3,-1,0,-4,-1,0,-1,0,3,2,1,2,'
    '-3,0,2,-2,-3,2,2,2,-2,2,6,2,0,0,-1,-4,0,0,-3,-1,1,-3,3,-1,-1,-2,-2,-4,1,2,1,0,3,1,0,-1,-4,4,'
    '3,-3,-3,-2,-1,-1,1,-3,0,-5,-1,-3,4,-1,0,-4,-1,-3,-3,3,0,0,1,-4,-1,0,-2,-3,-1,2,-3,1,-2,0,-1,'
    '6,1,4,2,-1,-4,-2,0,1,0,0,-3,-2,0,1,1,-1,2,1,-1,-3,4,2,-2,2,-4,1,-3,0,1,-1,0,3,5,2,-2,0,1,-1,'
    '0,-2,-1,-5,1,0,-5,3,-2,0,1,7,0,1,0,0,2,0,3,2,-1,3,0,0,2,4,-1,-7,0,0,1,0,1,1,-3,0,-1,1,1,1,0,'
    '0,-1,0,2,2,1,-1,2,2,3,4,1,1,-1,1,0,-1,-1,-1,-3,2,-2,-2,-3,0,-3,0,0,-1,0,0,1,2,-2,-3,1,0,-2,'
    '0,-4,-1,2,-4,-4,0,-1,0,-2,3,2,-3,0,2,3,1,0,-3,2,0,2,0,5,-1,-1,-2,1,2,-4,1,-1,3,2,-3,-7,-3,1,'
    '-1,-6,3,-1,5,0,1,-2,-2,3,-3,0,9,0,2,0,2,1,1,-2,2,0,0,-1,-2,1,0,2,0,2,-1,-3,1,0,2,-1,-1,0,-1,'
    '5,1,-1,1,-2,5,-3,-2,-3,0,-5,-3,-1,2,0,-1,1,-1,1,-1,0,-3,2,-1,1,0,-1,4,-1,-3,1,1,2,1,-1,4,-1,'
    '3,1,1,4,1,0,-2,-4,1,2,-1,0,0,-1,1,0,4,0,2,1,2,-5,-3,-2,1,-2,0,3,-5,-2,3,0,4,4,2,-3,1,-1,-2,'
    '-2,3,1,2,1,-3,1,-3,-4,1,2,0,2,0]')::halfvec end;
comment on function pgrecall_internal._question_direction is
'The direction that the embeddings of questions of a model share, of any length: the mean of 800, '
'as bench/training/question_direction.py prints it. Null where it is not known.';

-- values/version.sql
create or replace function pgrecall.version()
returns text
language sql immutable parallel safe
return '0.2.0';
comment on function pgrecall.version is 'Version of the installed pgrecall: major.minor.patch.';

-- values/weight.sql
-- BM25 weights of documents, computed when a memory or message is written.
--
-- A document is stored as a sparse vector with one weight per lexeme: its term frequency, saturated
-- and normalised by length, without the IDF. The IDF changes with every document of the bank and is
-- multiplied in at query time; so an inner product of two sparse vectors is the BM25 score. The
-- dimension of a lexeme is a hash of it: two lexemes may share one, which the query rechecks. The
-- mean length that the weights need comes from the statistics (bank/statistics.sql), which
-- recomputes the weights when the mean has changed. Fields (context, fact_key, neighbours of a
-- message) are weighted as in BM25F.

create or replace function pgrecall_internal._to_sparsevec(
  dimensions integer[], weights double precision[])
returns setof sparsevec
language sql immutable parallel safe rows 1
begin atomic
  -- Called in a from clause, so that it is inlined: before 18 each call would be planned anew.
  select ('{' || coalesce(string_agg(t.d || ':' || t.w, ',' order by t.d), '')
          || '}/1000000000')::sparsevec
  from (
    -- The type holds at most 16,000 elements.
    select u.d, sum(u.w)::real
    from   unnest(dimensions, weights) as u(d, w)
    group  by u.d
    order  by sum(u.w) desc
    limit  16000
  ) as t(d, w);
end;
comment on function pgrecall_internal._to_sparsevec is
'Weights by dimension as a vector; weights of the same dimension are added.';

create or replace function pgrecall_internal._document_weights(
  bank pgrecall.bank, content text, context text, fact_key text, average_length double precision,
  out length real, out weights sparsevec)
language plpgsql immutable parallel safe
set search_path from current
-- Weights become a vector as text.
set extra_float_digits = 1
-- To cut a text into lexemes takes a tenth of the time of planning that.
set plan_cache_mode = force_generic_plan
as $$
declare
  dimensions  integer[];
  frequencies double precision[];
  saturated   double precision[];
begin
  if coalesce(context, fact_key) is null then
    select coalesce(array_agg(pgrecall_internal._dimension(l.lexeme)), '{}'),
           coalesce(array_agg(l.frequency), '{}')
    into   dimensions, frequencies
    from   pgrecall.lexemes(bank.text_search_config::regconfig, content) as l;
  else
    select coalesce(array_agg(pgrecall_internal._dimension(l.lexeme)), '{}'),
           coalesce(array_agg(l.frequency), '{}')
    into   dimensions, frequencies
    from   pgrecall_internal._field_lexemes(
             bank.text_search_config::regconfig, content, context, bank.context_weight,
             fact_key, bank.key_weight) as l;
  end if;
  length := coalesce((select sum(tf) from unnest(frequencies) as tf), 0);
  saturated := array(
    select tf / (tf + bank.bm25_k1 * (1 - bank.bm25_b + bank.bm25_b * length / average_length))
    from   unnest(frequencies) with ordinality as u(tf, position)
    order  by position
  );
  weights := (select v from pgrecall_internal._to_sparsevec(dimensions, saturated) as v);
end;
$$;
comment on function pgrecall_internal._document_weights is
'Length of a document in lexemes and its BM25 weights tf / (tf + k1 (1 - b + b length / average)), '
'without the IDF (Robertson and Zaragoza 2009, eq. 3.15; the constant factor k1 + 1 left out). tf '
'and length are sums over the fields, each times its weight (BM25F of Robertson, Zaragoza and '
'Taylor 2004, with one b for all fields).';

create or replace function pgrecall_internal._document_word(bank_id text, dimension integer)
returns text
language sql immutable parallel safe
return (hashint8extended(dimension, hashtextextended(bank_id, 0)) & 9223372036854775807)::text;
comment on function pgrecall_internal._document_word is
'The word that stands for a lexeme of a bank in lexical_document, by its dimension. It differs '
'between banks.';

create or replace function pgrecall_internal._lexical_document(
  bank pgrecall.bank, content text, context text, fact_key text)
returns text
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  if bank.lexical_backend <> 'pg_textsearch' then
    return null;
  end if;
  return (
    select coalesce(string_agg(
             repeat(pgrecall_internal._document_word(
                      bank.bank_id, pgrecall_internal._dimension(l.lexeme)) || ' ',
                    greatest(round(l.frequency), 1)::integer), ''), '')
    from   pgrecall_internal._field_lexemes(
             bank.text_search_config::regconfig, content, context, bank.context_weight,
             fact_key, bank.key_weight) as l
  );
end;
$$;
comment on function pgrecall_internal._lexical_document is
'The text of a memory for pg_textsearch: the words of its lexemes, each repeated by its weighted '
'frequency, rounded, at least once. Null where the bank has another lexical_backend.';

create or replace function pgrecall_internal._message_context(
  bank pgrecall.bank, message pgrecall.message)
returns text
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  if bank.message_context_weight = 0 or message.session_id is null then
    return null;
  end if;
  return (
    select string_agg(b.text, ' ')
    from (
      (select t.text
       from   pgrecall.message t
       where  t.bank_id = bank.bank_id and t.session_id = message.session_id
         and  t.sent_at <= message.sent_at
         and  (t.sent_at, t.message_id) < (message.sent_at, message.message_id)
       order  by t.sent_at desc, t.message_id desc
       limit  1)
      union all
      (select t.text
       from   pgrecall.message t
       where  t.bank_id = bank.bank_id and t.session_id = message.session_id
         and  t.sent_at >= message.sent_at
         and  (t.sent_at, t.message_id) > (message.sent_at, message.message_id)
       order  by t.sent_at, t.message_id
       limit  1)
    ) as b
  );
end;
$$;
comment on function pgrecall_internal._message_context is
'The texts of the messages right before and after a message; null where message_context_weight is '
'0.';

create or replace function pgrecall_internal._message_weights(
  bank pgrecall.bank, message pgrecall.message, average_length double precision,
  out length real, out weights sparsevec)
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  bank.context_weight := bank.message_context_weight;
  select x.length, x.weights into length, weights
  from   pgrecall_internal._document_weights(
           bank, message.text, pgrecall_internal._message_context(bank, message), null,
           average_length) as x;
end;
$$;
comment on function pgrecall_internal._message_weights is
'Length and weights of a message together with its neighbours, as _document_weights() defines '
'them.';

-- bank/lock.sql
-- The lookups and locks that nearly every function begins with.
--
-- _bank() returns the row of a bank or raises RC001. Writers lock the bank until the end of their
-- transaction; readers never wait. A writer that only adds calls _shared_bank() and works beside
-- others that add; one that changes or removes calls _locked_bank() and is alone. These are
-- advisory locks, granted in the order of asking, so that nobody starves; their keys come from the
-- secret fence_key, so that no stranger holds them. Writers that share register the ids they may
-- use (_settled_id()). Which lock is taken when is in sql/reference.md.
create or replace function pgrecall_internal._roles_that_may(
  relation regclass, privilege text, is_any_bank boolean)
returns text[]
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return array(
    select r.rolname::text
    from   pg_class c
    cross  join lateral aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) as a
    join   pg_roles r on r.oid = a.grantee
    where  c.oid = relation and a.privilege_type = upper(privilege)
      and  (not is_any_bank or not c.relrowsecurity or r.oid = c.relowner or r.rolbypassrls
            or exists (select from pg_policy p
                       where  p.polrelid = c.oid and p.polname = 'pgrecall_admin'
                         and  r.oid = any (p.polroles)))
    order  by r.oid = c.relowner, r.rolname
  );
end;
$$;
comment on function pgrecall_internal._roles_that_may is
'The roles that were given a privilege on a table, its owner last. is_any_bank: only those that '
'row security keeps to no bank.';

create or replace function pgrecall_internal._raise_not_permitted(
  what text, relation regclass, privilege text, is_any_bank boolean default false)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  able text[] := pgrecall_internal._roles_that_may(relation, privilege, is_any_bank);
begin
  raise exception using
    errcode = 'insufficient_privilege',
    message = format('role "%s" may not %s', current_user, what),
    hint    = format('These roles and their members may: %s. For example: grant %I to %I;',
                     array_to_string(able, ', '), able[1], current_user);
end;
$$;
comment on function pgrecall_internal._raise_not_permitted is
'Raises 42501 naming the roles that may do it.';

create or replace function pgrecall_internal._bank(bank text)
returns pgrecall.bank
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  found_bank pgrecall.bank;
  nearest    text;
begin
  if current_setting('standard_conforming_strings') = 'off' then
    raise exception using
      errcode = 'object_not_in_prerequisite_state',
      message = 'standard_conforming_strings is off: functions and filters would be misread',
      hint    = 'Run: set standard_conforming_strings = on;';
  end if;
  if bank is null then
    raise exception using
      errcode = 'null_value_not_allowed',
      message = 'bank must not be null',
      hint    = 'Name the bank to look into; select * from pgrecall.bank_overview lists them.';
  end if;
  select b.* into found_bank from pgrecall.bank b where b.bank_id = _bank.bank;
  if not found then
    -- Among those that the role may see, and no more than can be compared at once.
    nearest := pgrecall_internal._nearest_name(
      bank, array(select b.bank_id from pgrecall.bank b limit 1000), 0.6);
    raise exception using
      errcode = 'RC001',
      message = format('bank "%s" does not exist', bank),
      hint    = coalesce('Did you mean "' || nearest || '"? ', '') || case
        when row_security_active('pgrecall.bank')
          then format(
            'Row security shows role "%s" only its own banks; %s may see and create any.',
            current_user, array_to_string(
              pgrecall_internal._roles_that_may('pgrecall.bank', 'insert', true), ', '))
        else format('Create it with: select pgrecall.create_bank(%L);', bank) end;
  end if;
  return found_bank;
end;
$$;
comment on function pgrecall_internal._bank is 'The row of a bank. Errors: RC001 unknown bank.';

create or replace function pgrecall_internal._lock_key(
  bank pgrecall.bank, purpose integer default 0)
returns bigint
language sql immutable parallel safe
return hashtextextended(bank.fence_key::text, purpose);
comment on function pgrecall_internal._lock_key is
'Key of an advisory lock of a bank. purpose 0: for writers, 1: for refreshing its statistics.';

create or replace function pgrecall_internal._sees_commits()
returns boolean
language sql stable parallel safe
return current_setting('transaction_isolation') in ('read committed', 'read uncommitted');
comment on function pgrecall_internal._sees_commits is
'Whether each statement of the transaction sees what others have committed.';

create or replace function pgrecall_internal._raise_replaced(bank text)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  -- The bank was dropped during the wait; a new one may have taken its name.
  perform pgrecall_internal._bank(bank);
  raise exception using
    errcode = 'serialization_failure',
    message = format('bank "%s" was replaced meanwhile, or may not be written', bank),
    hint    = 'Run the statement again.';
end;
$$;
comment on function pgrecall_internal._raise_replaced is
'Raises RC001 for a bank that is gone, 40001 for one that was replaced.';

create or replace function pgrecall_internal._check_writable()
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  if current_setting('transaction_read_only')::boolean then
    raise exception using
      errcode = 'read_only_sql_transaction',
      message = case when pg_is_in_recovery()
        then 'this server is a standby: nothing can be written here'
        else 'the transaction is read-only: nothing can be written in it' end,
      hint    = case when pg_is_in_recovery()
        then 'Connect to the primary: target_session_attrs=read-write finds it among the hosts of '
             'a DSN.'
        else 'Begin with: begin read write;' end;
  end if;
end;
$$;
comment on function pgrecall_internal._check_writable is
'Raises 25006 on a standby and in a read-only transaction.';

create or replace function pgrecall_internal._bank_to_write(
  bank text, relation regclass default 'pgrecall.bank', privilege text default 'update')
returns pgrecall.bank
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  found_bank pgrecall.bank := pgrecall_internal._bank(bank);
begin
  perform pgrecall_internal._check_writable();
  if not has_table_privilege(relation, privilege) then
    perform pgrecall_internal._raise_not_permitted(
      format('write into bank "%s"', bank), relation, privilege);
  end if;
  return found_bank;
end;
$$;
comment on function pgrecall_internal._bank_to_write is
'The row of a bank, for a role that has one privilege on a table. Errors: RC001 unknown bank, '
'25006 nothing can be written here, 42501 naming the roles that may write.';

create or replace function pgrecall_internal._locked_bank(bank text)
returns pgrecall.bank
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  found_bank pgrecall.bank := pgrecall_internal._bank_to_write(bank);
  key        uuid := found_bank.fence_key;
begin
  perform pg_advisory_xact_lock(pgrecall_internal._lock_key(found_bank));
  -- Not "for update": that would also block the foreign key checks of other writers.
  select b.* into found_bank from pgrecall.bank b where b.bank_id = _locked_bank.bank
  for no key update;
  if not found or found_bank.fence_key <> key then
    perform pgrecall_internal._raise_replaced(bank);
  end if;
  -- The row is also updated, once per transaction: a writer whose snapshot is older than this
  -- commit then fails (40001) instead of acting on old data.
  update pgrecall.bank b
  set    created_at = b.created_at
  where  b.bank_id = _locked_bank.bank and b.xmin <> pg_current_xact_id()::xid;
  return found_bank;
end;
$$;
comment on function pgrecall_internal._locked_bank is
'Locks a bank against all other writers until the transaction ends; returns its row. Errors: RC001 '
'unknown bank, 40001 replaced meanwhile, 42501 the role may only read.';

create or replace function pgrecall_internal._register_writer(bank pgrecall.bank)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  own      text := pg_current_xact_id()::text;
  first_id text := current_setting('pgrecall.first_id', true);
begin
  -- Once per transaction, so that many calls take one lock.
  if coalesce(first_id, '') not like own || ' %' then
    first_id := own || ' ' || coalesce(pg_sequence_last_value('pgrecall.id_seq'), 0);
    perform set_config('pgrecall.first_id', first_id, true);
  end if;
  perform pg_advisory_xact_lock_shared(
    hashtext(bank.fence_key::text), (split_part(first_id, ' ', 2)::bigint & 2147483647)::integer);
end;
$$;
comment on function pgrecall_internal._register_writer is
'Shows other sessions, by an advisory lock, above which id the transaction writes into a bank.';

create or replace function pgrecall_internal._settled_id(bank pgrecall.bank)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  -- Read before the locks: a writer that registers later writes above it.
  last_id bigint := coalesce(pg_sequence_last_value('pgrecall.id_seq'), 0);
begin
  return least(last_id, (
    -- A lock has room for 31 bits of the id.
    select min(last_id - ((last_id - l.objid::bigint) & 2147483647))
    from   pg_locks l
    where  l.locktype = 'advisory' and l.objsubid = 2 and l.granted
      and  l.database = (select d.oid from pg_database d where d.datname = current_database())
      and  l.classid::bigint = hashtext(bank.fence_key::text)::bigint & 4294967295
      and  l.pid is distinct from pg_backend_pid()
  ));
end;
$$;
comment on function pgrecall_internal._settled_id is
'The id up to which no running transaction adds documents to a bank: a later statement sees all of '
'them.';

create or replace function pgrecall_internal._shared_bank(bank text)
returns pgrecall.bank
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  found_bank pgrecall.bank :=
    pgrecall_internal._bank_to_write(bank, 'pgrecall.memory', 'insert');
  key        uuid := found_bank.fence_key;
begin
  perform pg_advisory_xact_lock_shared(pgrecall_internal._lock_key(found_bank));
  if pgrecall_internal._sees_commits() then
    select b.* into found_bank from pgrecall.bank b where b.bank_id = _shared_bank.bank;
  else
    -- Fails (40001) where a writer that had the bank for itself has committed since the snapshot.
    -- Writers that share meet where they must: at a name or key (name_lock), or an equal fact.
    select b.* into found_bank from pgrecall.bank b where b.bank_id = _shared_bank.bank
    for share;
  end if;
  if not found or found_bank.fence_key <> key then
    perform pgrecall_internal._raise_replaced(bank);
  end if;
  perform pgrecall_internal._register_writer(found_bank);
  return found_bank;
end;
$$;
comment on function pgrecall_internal._shared_bank is
'Locks a bank, shared with other writers that only add, until the transaction ends; returns its '
'row. Errors: RC001 unknown bank, 40001 replaced meanwhile, 42501 the role may only read.';

create or replace function pgrecall_internal._check_isolation(name text)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  if not pgrecall_internal._sees_commits() then
    raise exception using
      errcode = 'active_sql_transaction',
      message = format('%s() must see what others commit, so not at isolation level "%s"', name,
                       current_setting('transaction_isolation')),
      hint    = 'Begin with: begin isolation level read committed;';
  end if;
end;
$$;
comment on function pgrecall_internal._check_isolation is
'Raises 25001 unless the transaction is at isolation level read committed.';

create or replace function pgrecall_internal._fact_types(bank text, fact_types text[])
returns text[]
language plpgsql stable parallel safe
set search_path from current
-- Forces index lookups, whatever the statistics of the bank.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
  known   text[];
  unknown text;
begin
  if fact_types is null then
    -- Fact types without memories are left out: each adds a branch to plan.
    return array(
      select t.fact_type
      from   pgrecall.fact_type t
      cross  join lateral (
        -- One lookup each: index order keeps the planner from scanning the whole bank.
        (select true from pgrecall.memory m
         where  m.bank_id = _fact_types.bank and m.fact_type = t.fact_type
           and  m.occurred is not null
         order  by lower(m.occurred)
         limit  1)
        union all
        (select true from pgrecall.memory m
         where  m.bank_id = _fact_types.bank and m.fact_type = t.fact_type and m.occurred is null
         order  by m.mentioned_at
         limit  1)
        limit  1
      ) as held
      where  t.bank_id = _fact_types.bank
      order  by t.fact_type
    );
  end if;
  perform pgrecall_internal._check_elements('fact_types', fact_types, 'all types', 'RC008');
  select array_agg(t.fact_type order by t.fact_type)
  into   known
  from   pgrecall.fact_type t
  where  t.bank_id = _fact_types.bank;
  select u into unknown from unnest(fact_types) as u where u <> all (known) limit 1;
  if found then
    raise exception using
      errcode = 'RC008',
      message = format('bank "%s" has no fact type "%s"', bank, unknown),
      hint    = format('It has %s. Add one with: select pgrecall.add_fact_type(%L, %L);',
                       array_to_string(known, ', '), bank, unknown);
  end if;
  return array(select distinct u from unnest(fact_types) as u order by u);
end;
$$;
comment on function pgrecall_internal._fact_types is
'The fact types to search; null: all that hold a memory. Errors: RC008 unknown fact type, or '
'null.';

create or replace function pgrecall_internal._check_memory(bank text, memory_id bigint)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  perform 1 from pgrecall.memory m
  where  m.bank_id = _check_memory.bank and m.memory_id = _check_memory.memory_id;
  if not found then
    raise exception using
      errcode = 'RC010',
      message = format('bank "%s" has no memory %s', bank, coalesce(memory_id::text, 'null')),
      hint    = 'Pass ids that retain() or a recall on the same bank returned.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_memory is
'Raises RC010 unless the bank holds the memory.';

create or replace function pgrecall_internal._check_entity(bank text, entity_id bigint)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  perform 1 from pgrecall.entity e
  where  e.bank_id = _check_entity.bank and e.entity_id = _check_entity.entity_id;
  if not found then
    raise exception using
      errcode = 'RC013',
      message = format('bank "%s" has no entity %s', bank, coalesce(entity_id::text, 'null')),
      hint    = format('Look for it with: select * from pgrecall.query_entities(%L, ''its name'');',
                       bank);
  end if;
end;
$$;
comment on function pgrecall_internal._check_entity is
'Raises RC013 unless the bank holds the entity.';

-- bank/option.sql
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
       'sum, at most 1, of the confidence in each entity * how much its name says: a sixth where '
       'half of the facts mention it, a third where a quarter does, half where an eighth or fewer '
       'do.',
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

-- bank/hint.sql
-- Which fact types the words of a query ask for.
--
-- Option use_hints searches only the types that type_hints() finds. Where that finds too little
-- (option widen_below), everything is searched: a wrong hint costs time and not answers.
create or replace function pgrecall.default_type_hints()
returns jsonb
language sql immutable parallel safe
return '{
  "preference": ["prefer*", "preference*", "like", "likes", "liked", "dislike*", "favourite*",
                 "favorite*", "setting", "settings", "my default", "my defaults", "rather"],
  "event": ["when did", "when was", "when were", "happen*", "what time", "at what time",
            "on what date", "what day"],
  "*": ["who is", "who was", "who are", "tell me about"]
}'::jsonb;
comment on function pgrecall.default_type_hints is
'Words that tell the fact type a question asks for, where the bank has none of its own. "*" is for '
'questions about somebody or something, of any type; a trailing asterisk matches any ending.';

create or replace function pgrecall_internal._check_type_hints(bank text, type_hints jsonb)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  unknown text;
begin
  if type_hints is null or jsonb_typeof(type_hints) = 'null' then
    return;
  end if;
  perform pgrecall_internal._check_object(
    'type_hints', type_hints,
    'Write {"preference": ["prefer*", "my default"]}, or null for the default.');
  select k into unknown from jsonb_object_keys(type_hints) as k
  where  k <> '*'
    and  not exists (select from pgrecall.fact_type t
                     where t.bank_id = _check_type_hints.bank and t.fact_type = k);
  if found then
    raise exception using
      errcode = 'RC008',
      message = format('type_hints: bank "%s" has no fact type "%s"', bank, unknown),
      hint    = format('Add it with: select pgrecall.add_fact_type(%L, %L);', bank, unknown);
  end if;
  select h.key into unknown from jsonb_each(type_hints) as h
  where  jsonb_typeof(h.value) <> 'array' or jsonb_array_length(h.value) > 200
     or  exists (select from jsonb_array_elements(h.value) as w
                 where jsonb_typeof(w) <> 'string' or length(w #>> '{}') > 200
                    or pgrecall.normalised_name(w #>> '{}') = '');
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('type_hints: "%s" needs an array of words', unknown),
      hint    = 'At most 200, each with a letter or digit: ["prefer*", "my default"].';
  end if;
end;
$$;
comment on function pgrecall_internal._check_type_hints is
'Raises 22023 unless hints are null or arrays of words by fact type, RC008 for an unknown type.';

create or replace function pgrecall_internal._type_hints(type_hints jsonb, query text)
returns setof pgrecall.type_hint
language plpgsql stable parallel safe rows 2
set search_path from current
as $$
declare
  words text := ' ' || pgrecall.normalised_name(left(query, 2000)) || ' ';
begin
  return query
  select nullif(h.key, '*'), w.word
  from   jsonb_each(coalesce(nullif(type_hints, 'null'), pgrecall.default_type_hints())) as h
  cross  join lateral (
    select t.word
    from   jsonb_array_elements_text(h.value) with ordinality as t(word, n)
    where  strpos(words, ' ' || pgrecall.normalised_name(t.word)
                         || case when t.word like '%*' then '' else ' ' end) > 0
    order  by t.n
    limit  1
  ) as w
  order  by h.key;
end;
$$;
comment on function pgrecall_internal._type_hints is
'Worker of type_hints(): the words are given, or null for those of default_type_hints().';

create or replace function pgrecall.type_hints(bank text, query text)
returns setof pgrecall.type_hint
language plpgsql stable parallel safe rows 2
set search_path from current
as $$
declare
  options jsonb := pgrecall.bank_options(bank);
begin
  perform pgrecall_internal._check_text('query', query);
  return query
  select * from pgrecall_internal._type_hints(options -> 'type_hints', query);
end;
$$;
comment on function pgrecall.type_hints is
'Fact types that a query asks for by its words, and the first word that implies it. fact_type is '
'null for a question about somebody or something, whose answer is of any type. The words are those '
'of default_type_hints() or of the bank''s option type_hints. Errors: RC001, 22023.';

-- bank/trust.sql
-- Trust in sources: how much what they say counts, and what they may do to what others said.
--
-- Whoever may talk to an agent may write into its memory. source_trust of a bank gives sources a
-- trust from 0 to 1, by their source_id or by a prefix of it ("web:*"). All ids with one prefix are
-- one source, since a writer can choose the rest freely. The score of a fact is multiplied by the
-- trust (recall/trust.sql), and no fact ends one whose source is trusted more. A bank that names no
-- source pays no time for this. quarantine() (operations/quarantine.sql) takes out all facts of a
-- source: its trust is 0 then.
create or replace function pgrecall_internal._check_sources(name text, sources jsonb)
returns void
language plpgsql immutable parallel safe
as $$
declare
  bad record;
begin
  if sources is null then
    return;
  end if;
  perform pgrecall_internal._check_object(
    name, sources,
    'Write {"web:*": 0.2}: a number from 0 to 1, by source or by a prefix with an asterisk.');
  select e.key, e.value into bad
  from   jsonb_each(sources) as e
  where  length(e.key) > 500
     or  jsonb_typeof(e.value) <> 'number' or (e.value #>> '{}')::numeric not between 0 and 1
  order  by e.key
  limit  1;
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s: trust of source "%s" must be a number from 0 to 1, not %s',
                       name, left(bad.key, 80), left(bad.value::text, 80)),
      hint    = 'A source that is not named has 1; 0 keeps its facts out of every answer.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_sources is
'Raises 22023 unless sources is an object of numbers from 0 to 1, by names of at most 500 '
'characters.';

create or replace function pgrecall_internal._source(sources jsonb, source_id text)
returns text
language sql immutable parallel safe
return (
  select k.name
  from   jsonb_object_keys(sources) as k(name)
  where  k.name = coalesce(source_id, '')
     or  k.name like '%*' and starts_with(coalesce(source_id, ''), left(k.name, -1))
  order  by k.name <> coalesce(source_id, ''), length(k.name) desc
  limit  1
);
comment on function pgrecall_internal._source is
'The key of sources that a source_id matches: its own name, else the longest prefix; null: none.';

create or replace function pgrecall_internal._untrusted(quarantined jsonb)
returns jsonb
language sql immutable parallel safe
return (select jsonb_object_agg(k.name, 0) from jsonb_object_keys(quarantined) as k(name));
comment on function pgrecall_internal._untrusted is
'The trust of sources in quarantine, 0 for each.';

create or replace function pgrecall_internal._sources(bank pgrecall.bank)
returns jsonb
language sql immutable parallel safe
return case
  when (bank).quarantined = '{}' then (bank).source_trust
  else (bank).source_trust || pgrecall_internal._untrusted((bank).quarantined)
end;
comment on function pgrecall_internal._sources is
'The trust of the sources that a bank names, 0 for those in quarantine.';

create or replace function pgrecall_internal._trust(sources jsonb, source_id text)
returns double precision
language sql immutable parallel safe
return case when sources = '{}' then 1 else coalesce(
  (sources ->> pgrecall_internal._source(sources, source_id))::double precision, 1) end;
comment on function pgrecall_internal._trust is 'The trust of a source, 0 to 1; 1 unless named.';

create or replace function pgrecall_internal._check_successors(
  bank text, memory_ids bigint[], successors bigint[], places integer[] default null)
returns void
language plpgsql stable parallel safe
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  sources jsonb := (select b.source_trust from pgrecall.bank b
                    where  b.bank_id = _check_successors.bank);
  refused record;
begin
  if sources = '{}' then
    return;
  end if;
  select u.memory_id, u.successor_id, m.source_id, s.source_id as other_source,
         pgrecall_internal._trust(sources, m.source_id) as trust,
         pgrecall_internal._trust(sources, s.source_id) as other_trust,
         coalesce('facts[' || u.place || ']: ', '') as place
  into   refused
  from   unnest(memory_ids, successors, places) with ordinality
           as u(memory_id, successor_id, place, n)
  join   pgrecall.memory m on m.bank_id = _check_successors.bank and m.memory_id = u.memory_id
  join   pgrecall.memory s on s.bank_id = _check_successors.bank and s.memory_id = u.successor_id
  where  pgrecall_internal._trust(sources, s.source_id)
         < pgrecall_internal._trust(sources, m.source_id)
  order  by u.n
  limit  1;
  if found then
    raise exception using
      errcode = 'RC015',
      message = format('%sa fact of source "%s" (trust %s) may not end memory %s of source "%s" '
                       '(trust %s)', refused.place, refused.other_source, refused.other_trust,
                       refused.memory_id, coalesce(refused.source_id, ''), refused.trust),
      hint    = 'Retain it with replace => ''none'', so that both stand; or trust its source as '
                'much, by source_trust of configure_bank().';
  end if;
end;
$$;
comment on function pgrecall_internal._check_successors is
'Raises RC015 where a memory would be ended by one whose source is trusted less. places: the '
'positions of the successors among facts, from 0; null: they are in no array of facts.';

-- bank/statistics.sql
-- Statistics of the documents of a bank: for BM25 how many there are, their mean length, and in how
-- many each lexeme occurs; for the graph how many mention each entity.
--
-- Memories and messages are two collections with statistics of their own. They are a summary like
-- that of ANALYZE: writing a document does not change them. retain() counts once a tenth of the
-- documents are new, or 500 (_refresh_when_due()), and only documents above the watermark. Scores
-- between two counts use slightly old counts, which BM25 tolerates. The weights of all documents
-- are computed with one mean length, weighted_length. When the true mean is more than 5 % off, they
-- are computed again: at once in a bank of up to 500 documents, in batches by maintain()
-- (operations/maintenance.sql) in a larger one, so that no retain() waits for that. Until then
-- scores are those of BM25 with slightly other k1 and b, the same for all documents. What is erased
-- is taken out at once (bank/recount.sql). A full refresh counts everything again, with the current
-- settings of the bank. The vocabulary is a snapshot of the most frequent lexemes:
-- vocabulary_drift() compares with it.

create or replace function pgrecall_internal._document_counts(
  bank pgrecall.bank, kind text, after bigint, upto bigint, ids bigint[] default null)
returns table (lexeme text, documents bigint)
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select x.lexeme, count(*)
  from (
    select m.text, m.context, m.fact_key, bank.context_weight
    from   pgrecall.memory m
    where  kind = 'memory' and m.bank_id = bank.bank_id
      and  m.memory_id > after and m.memory_id <= upto
      and  (ids is null or m.memory_id = any (ids))
    union all
    select m.text, pgrecall_internal._message_context(bank, row(m.*)::pgrecall.message), null,
           bank.message_context_weight
    from   pgrecall.message m
    where  kind = 'message' and m.bank_id = bank.bank_id
      and  m.message_id > after and m.message_id <= upto
      and  (ids is null or m.message_id = any (ids))
  ) as d
  cross  join lateral pgrecall_internal._field_lexemes(
           bank.text_search_config::regconfig, d.text, d.context, d.context_weight, d.fact_key,
           bank.key_weight) as x
  group  by x.lexeme;
end;
$$;
comment on function pgrecall_internal._document_counts is
'In how many documents of a kind with ids above after, up to upto, each lexeme occurs; with ids '
'only in these.';

create or replace function pgrecall_internal._top_lexemes(bank text)
returns text[]
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return array(
    select l.lexeme
    from   pgrecall_internal.lexeme l
    where  l.bank_id = _top_lexemes.bank and l.kind = 'memory'
    order  by l.document_count desc, l.lexeme
    limit  5000
  );
end;
$$;
comment on function pgrecall_internal._top_lexemes is
'The 5,000 lexemes that occur in the most memories of a bank.';

create or replace function pgrecall_internal._snapshot_vocabulary(bank text, is_automatic boolean)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  insert into pgrecall_internal.vocabulary as v (bank_id, lexemes, is_automatic, taken_at)
  values (_snapshot_vocabulary.bank, pgrecall_internal._top_lexemes(bank), is_automatic, now())
  on conflict on constraint vocabulary_pkey do update
  set lexemes      = excluded.lexemes,
      is_automatic = excluded.is_automatic,
      taken_at     = excluded.taken_at
  where not excluded.is_automatic or v.is_automatic;
end;
$$;
comment on function pgrecall_internal._snapshot_vocabulary is
'Stores the vocabulary of a bank. An automatic snapshot does not replace a manual one.';

create or replace function pgrecall_internal._refresh_lengths(bank pgrecall.bank, kind text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  if kind = 'memory' then
    -- Only documents whose length can differ: by field weights, and by how release 0.1.0 read
    -- texts that are not ASCII.
    update pgrecall.memory m
    set    lexical_length = (
             pgrecall_internal._document_weights(bank, m.text, m.context, m.fact_key, 1)).length
    where  m.bank_id = bank.bank_id
      and  (coalesce(m.context, m.fact_key) is not null or octet_length(m.text) > length(m.text));
  else
    update pgrecall.message m
    set    lexical_length = (
             pgrecall_internal._message_weights(bank, row(m.*)::pgrecall.message, 1)).length
    where  m.bank_id = bank.bank_id;
  end if;
end;
$$;
comment on function pgrecall_internal._refresh_lengths is
'Recounts the lexemes of all documents of a kind.';

create or replace function pgrecall_internal._refresh_weights(
  bank pgrecall.bank, kind text, average_length double precision, is_full boolean,
  after bigint, upto bigint)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  if kind = 'memory' then
    update pgrecall.memory m
    set    lexical_weights = (pgrecall_internal._document_weights(
             bank, m.text, m.context, m.fact_key, average_length)).weights,
           lexical_document = case
             when is_full
               then pgrecall_internal._lexical_document(bank, m.text, m.context, m.fact_key)
             else m.lexical_document
           end
    where  m.bank_id = bank.bank_id and m.memory_id > after and m.memory_id <= upto;
  else
    update pgrecall.message m
    set    lexical_weights = (pgrecall_internal._message_weights(
             bank, row(m.*)::pgrecall.message, average_length)).weights
    where  m.bank_id = bank.bank_id and m.message_id > after and m.message_id <= upto;
  end if;
end;
$$;
comment on function pgrecall_internal._refresh_weights is
'Recomputes the BM25 weights of the documents of a kind with ids above after, up to upto; is_full: '
'also their lexical_document.';

create or replace function pgrecall_internal._count_mentions(
  bank text, after bigint, upto bigint, ids bigint[] default null,
  counted pgrecall.mention[] default '{}')
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  insert into pgrecall_internal.entity_count as c (bank_id, entity_id, mention_count)
  select _count_mentions.bank, x.entity_id, count(*)
  from   pgrecall.mention x
  where  x.bank_id = _count_mentions.bank and x.memory_id > after and x.memory_id <= upto
    and  (ids is null or x.memory_id = any (ids))
    and  not exists (select from unnest(counted) as k
                     where k.entity_id = x.entity_id and k.memory_id = x.memory_id)
  group  by x.entity_id
  order  by x.entity_id
  on conflict on constraint entity_count_pkey do update
  set mention_count = c.mention_count + excluded.mention_count;
end;
$$;
comment on function pgrecall_internal._count_mentions is
'Adds the memories with ids above after, up to upto, to the counts of the entities that they '
'mention; with ids only these. The mentions in counted are counted already.';

create or replace function pgrecall_internal._next_documents(
  bank text, kind text, after bigint, batch_size bigint, upto bigint,
  out documents bigint, out total_length double precision, out last_id bigint)
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  upto := coalesce(upto, 9223372036854775807);
  select count(*), sum(d.lexical_length::double precision), max(d.id)
  into   documents, total_length, last_id
  from (
    (select m.memory_id as id, m.lexical_length
     from   pgrecall.memory m
     where  kind = 'memory'
       and  m.bank_id = _next_documents.bank and m.memory_id > after and m.memory_id <= upto
     order  by m.memory_id
     limit  batch_size)
    union all
    (select m.message_id, m.lexical_length
     from   pgrecall.message m
     where  kind = 'message'
       and  m.bank_id = _next_documents.bank and m.message_id > after and m.message_id <= upto
     order  by m.message_id
     limit  batch_size)
  ) as d;
end;
$$;
comment on function pgrecall_internal._next_documents is
'The first batch_size documents of a kind with ids above after, up to upto: how many there '
'are, the sum of their lengths, and the last id. batch_size, upto null: all.';

create or replace function pgrecall_internal._is_weighed(known pgrecall_internal.statistics)
returns boolean
language sql immutable parallel safe
return (known).weighed_to is null
       and coalesce(
             abs((known).weighted_length / nullif((known).average_length, 0) - 1) <= 0.05, true);
comment on function pgrecall_internal._is_weighed is
'Whether all weights were computed with one mean length that is at most 5 % off.';

create or replace function pgrecall_internal._is_weighing_due(bank text, kind text)
returns boolean
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return exists (
    select from pgrecall_internal.statistics s
    where  s.bank_id = _is_weighing_due.bank and s.kind = _is_weighing_due.kind
      and  not pgrecall_internal._is_weighed(row(s.*)::pgrecall_internal.statistics)
  );
end;
$$;
comment on function pgrecall_internal._is_weighing_due is
'Whether the weights of the documents of a kind are to be computed anew, or not yet all of them.';

create or replace function pgrecall_internal._weigh_documents(
  bank pgrecall.bank, kind text, batch_size integer)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  known pgrecall_internal.statistics;
  batch record;
begin
  select s.* into known from pgrecall_internal.statistics s
  where  s.bank_id = bank.bank_id and s.kind = _weigh_documents.kind;
  if not found or pgrecall_internal._is_weighed(known) then
    return 0;
  end if;
  if known.weighed_to is null then
    known.weighted_length := known.average_length;
    known.weighed_to := 0;
  end if;
  batch := pgrecall_internal._next_documents(
    bank.bank_id, kind, known.weighed_to, batch_size, null);
  perform pgrecall_internal._refresh_weights(
    bank, kind, known.weighted_length, false, known.weighed_to, batch.last_id);
  update pgrecall_internal.statistics s
  set    weighted_length = known.weighted_length,
         weighed_to      = case when batch.documents = batch_size then batch.last_id end
  where  s.bank_id = bank.bank_id and s.kind = _weigh_documents.kind;
  return batch.documents;
end;
$$;
comment on function pgrecall_internal._weigh_documents is
'Computes the weights of the next batch_size documents with the current mean length, where that is '
'due; returns how many. Later documents get theirs with the same mean. The bank must be locked.';

create or replace function pgrecall_internal._refresh_collection(
  bank pgrecall.bank, kind text, is_full boolean, batch_size bigint, is_alone boolean)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  known      pgrecall_internal.statistics;
  after      bigint := 0;
  old_count  bigint := 0;
  old_length double precision := 0;
  settled    bigint;
  batch      record;
  average    double precision;
  -- The mean length that retain() assumes for the first documents of a bank.
  weighted   double precision := 20;
begin
  select s.* into known from pgrecall_internal.statistics s
  where  s.bank_id = bank.bank_id and s.kind = _refresh_collection.kind;
  weighted := coalesce(known.weighted_length, weighted);
  if known.bank_id is not null and not is_full then
    after := known.watermark;
    old_count := known.document_count;
    old_length := known.average_length * known.document_count;
  else
    delete from pgrecall_internal.lexeme l
    where  l.bank_id = bank.bank_id and l.kind = _refresh_collection.kind;
    delete from pgrecall_internal.entity_count c
    where  c.bank_id = bank.bank_id and _refresh_collection.kind = 'memory';
  end if;
  if is_full then
    perform pgrecall_internal._refresh_lengths(bank, kind);
  end if;

  -- A statement of its own: the next one sees what has committed until here.
  settled := case when not is_alone then pgrecall_internal._settled_id(bank) end;
  batch := pgrecall_internal._next_documents(bank.bank_id, kind, after, batch_size, settled);
  if kind = 'memory' then
    perform pgrecall_internal._count_mentions(bank.bank_id, after, batch.last_id);
  end if;
  insert into pgrecall_internal.lexeme as l (bank_id, kind, lexeme, dimension, document_count)
  select bank.bank_id, _refresh_collection.kind, x.lexeme,
         pgrecall_internal._dimension(x.lexeme) as dimension, x.documents
  from   pgrecall_internal._document_counts(
           bank, _refresh_collection.kind, after, batch.last_id) as x
  order  by dimension, x.lexeme
  on conflict on constraint lexeme_pkey do update
  set document_count = l.document_count + excluded.document_count;
  average := (old_length + coalesce(batch.total_length, 0))
             / greatest(old_count + batch.documents, 1);
  -- k1 or b may have changed.
  if is_full and average > 0 then
    weighted := average;
    known.weighed_to := null;
    perform pgrecall_internal._refresh_weights(bank, kind, average, true, 0, batch.last_id);
  end if;

  insert into pgrecall_internal.statistics as s
         (bank_id, kind, document_count, average_length, weighted_length, watermark, refreshed_at,
          weighed_to)
  values (bank.bank_id, _refresh_collection.kind, old_count + batch.documents, average, weighted,
          coalesce(batch.last_id, after), now(), known.weighed_to)
  on conflict on constraint statistics_pkey do update
  set document_count  = excluded.document_count,
      average_length  = excluded.average_length,
      weighted_length = excluded.weighted_length,
      watermark       = excluded.watermark,
      refreshed_at    = excluded.refreshed_at,
      weighed_to      = excluded.weighed_to;
  -- The vocabulary of the first facts is not yet typical of a bank: for texts of one kind the
  -- similarity between the first 10,000 and 50,000 is 0.70, between 1,000 and 50,000 0.42.
  if kind = 'memory' and coalesce(known.document_count, 0) < 10000 then
    perform pgrecall_internal._snapshot_vocabulary(bank.bank_id, true);
  end if;
  -- Only a writer that has the bank for itself weighs: documents being stored get weights of the
  -- old mean.
  if old_count + batch.documents <= greatest(batch_size, 500)
     and pgrecall_internal._is_weighing_due(bank.bank_id, kind)
     and (is_alone or pg_try_advisory_xact_lock(pgrecall_internal._lock_key(bank)))
  then
    perform pgrecall_internal._weigh_documents(bank, kind, null);
  end if;
  return batch.documents;
end;
$$;
comment on function pgrecall_internal._refresh_collection is
'Counts the documents of one kind, memory or message, that are new, at most batch_size of them; '
'is_full: all, and computes their weights. Weights of up to batch_size documents, or 500, are '
'computed anew where that is due. is_alone: nobody else writes into the bank; otherwise the caller '
'is the only one that refreshes, and what others are storing is left out. Returns how many it '
'counted.';

create or replace function pgrecall_internal._is_refresh_due(bank text, kind text)
returns boolean
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  known     pgrecall_internal.statistics;
  threshold bigint;
begin
  select s.* into known from pgrecall_internal.statistics s
  where  s.bank_id = _is_refresh_due.bank and s.kind = _is_refresh_due.kind;
  threshold := least(coalesce(known.document_count, 0) / 10, 500);
  -- Counting stops at the threshold, so it costs less than storing those documents did.
  return threshold < (
    select count(*) from (
      select from pgrecall.memory m
      where  _is_refresh_due.kind = 'memory'
        and  m.bank_id = _is_refresh_due.bank and m.memory_id > coalesce(known.watermark, 0)
      union all
      select from pgrecall.message m
      where  _is_refresh_due.kind = 'message'
        and  m.bank_id = _is_refresh_due.bank and m.message_id > coalesce(known.watermark, 0)
      limit threshold + 1
    ) as fresh
  );
end;
$$;
comment on function pgrecall_internal._is_refresh_due is
'Whether the documents of a kind that are not counted exceed a tenth of those counted, or 500.';

create or replace function pgrecall_internal._refresh_when_due(
  bank pgrecall.bank, kind text, batch_size bigint)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  -- One session at a time; what it leaves is counted later. An old snapshot would miss documents.
  if pgrecall_internal._sees_commits()
     and pgrecall_internal._is_refresh_due(bank.bank_id, kind)
     and pg_try_advisory_xact_lock(pgrecall_internal._lock_key(bank, 1))
  then
    return pgrecall_internal._refresh_collection(bank, kind, false, batch_size, false);
  end if;
  return 0;
end;
$$;
comment on function pgrecall_internal._refresh_when_due is
'Counts at most batch_size new documents where that is due; returns how many.';

create or replace function pgrecall_internal._recount(bank pgrecall.bank, kind text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  if exists (select from pgrecall_internal.statistics s
             where  s.bank_id = bank.bank_id and s.kind = _recount.kind)
  then
    perform pgrecall_internal._check_isolation('refresh_statistics');
    perform pgrecall_internal._refresh_collection(bank, kind, true, null, true);
  end if;
end;
$$;
comment on function pgrecall_internal._recount is
'Counts the documents of a kind anew, where any were counted, and computes their weights. The bank '
'must be locked. Errors: 25001.';

create or replace function pgrecall.refresh_statistics(bank text, is_full boolean default false)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  locked pgrecall.bank;
begin
  perform pgrecall_internal._check_isolation('refresh_statistics');
  locked := pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._refresh_collection(locked, 'memory', is_full, null, true);
  perform pgrecall_internal._refresh_collection(locked, 'message', is_full, null, true);
end;
$$;
comment on function pgrecall.refresh_statistics is
'Counts the documents stored since the last refresh; is_full counts all of them again and computes '
'all weights, after a setting of BM25 was changed: in a large bank that holds the lock for '
'minutes. retain() counts on its own once a tenth of the documents are new, or 500; maintain() '
'does the rest. Errors: RC001, 25001 isolation level above read committed.';

create or replace function pgrecall.bank_statistics(bank text)
returns setof pgrecall.bank_statistic
language plpgsql stable parallel unsafe rows 2
set search_path from current
as $$
begin
  perform pgrecall_internal._bank(bank);
  return query
  select s.kind, s.document_count, s.average_length,
         (select count(*) from pgrecall_internal.lexeme l
          where  l.bank_id = bank_statistics.bank and l.kind = s.kind),
         case s.kind
           when 'memory' then (select count(*) from pgrecall.memory m
                               where m.bank_id = bank_statistics.bank and m.memory_id > s.watermark)
           else (select count(*) from pgrecall.message m
                 where m.bank_id = bank_statistics.bank and m.message_id > s.watermark)
         end,
         s.refreshed_at,
         pgrecall_internal._is_weighed(row(s.*)::pgrecall_internal.statistics)
  from   pgrecall_internal.statistics s
  where  s.bank_id = bank_statistics.bank
  order  by s.kind;
end;
$$;
comment on function pgrecall.bank_statistics is
'The statistics of a bank that BM25 uses, for memories and for messages, and how many documents '
'they do not count yet (waiting). is_weighed: the stored weights were all computed with that mean '
'length, or one within 5 %; otherwise maintain() has work. Errors: RC001.';

create or replace function pgrecall.snapshot_vocabulary(bank text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._snapshot_vocabulary(bank, false);
end;
$$;
comment on function pgrecall.snapshot_vocabulary is
'Stores the 5,000 most frequent lexemes of the memories of a bank: vocabulary_drift() compares '
'with them from now on. Errors: RC001.';

create or replace function pgrecall.vocabulary_drift(bank text)
returns double precision
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  old_lexemes text[];
  new_lexemes text[];
  shared      integer;
begin
  perform pgrecall_internal._bank(bank);
  select v.lexemes into old_lexemes
  from   pgrecall_internal.vocabulary v where v.bank_id = vocabulary_drift.bank;
  new_lexemes := pgrecall_internal._top_lexemes(bank);
  select count(*) into shared
  from   unnest(old_lexemes) as o(lexeme) join unnest(new_lexemes) as n(lexeme) using (lexeme);
  return shared::double precision
         / nullif(cardinality(old_lexemes) + cardinality(new_lexemes) - shared, 0);
end;
$$;
comment on function pgrecall.vocabulary_drift is
'Jaccard similarity, 0 to 1, of the 5,000 most frequent lexemes of the memories of a bank as '
'counted now and at its snapshot. Below 0.7 the subject of the bank has changed. Null before the '
'first count. The snapshot is that of the first 10,000 memories, or of snapshot_vocabulary(). '
'Errors: RC001.';

-- bank/bank.sql
-- Banks: creating, configuring, dropping and listing them.
--
-- create_bank() makes a bank with six fact types; configure_bank() changes its defaults, which are
-- of two kinds: options of a recall, declared by recall_options() and kept in bank.options, and
-- settings for storage and indexes, which are columns of bank. The views bank_overview and fact are
-- for people and BI tools.
create or replace function pgrecall_internal._check_time_settings(settings jsonb)
returns void
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  name   text;
  value  jsonb;
  wanted text;
begin
  perform pgrecall_internal._check_object(
    'time_settings', coalesce(settings, '{}'),
    'Write {"language": "de", "recent_days": 14}, or {} for the defaults.');
  for name, value in select e.key, e.value from jsonb_each(settings) as e loop
    wanted := case
      when name = 'language' and coalesce(value #>> '{}' !~ '^[a-z]{2}$', true)
        then 'a code of two small letters such as "de"'
      when name = 'country' and coalesce(value #>> '{}' !~ '^[A-Z]{2}$', true)
        then 'an ISO 3166 code such as "AT"'
      when name in ('southern', 'day_first') and jsonb_typeof(value) <> 'boolean'
        then 'true or false'
      when name = 'recent_days' and coalesce(value #>> '{}' !~ '^[1-9][0-9]{0,3}$', true)
        then 'a number of days from 1 to 9999'
      when name = 'few' and coalesce(value #>> '{}' !~ '^([2-9]|[1-9][0-9])$', true)
        then 'a number from 2 to 99'
      when name not in ('language', 'country', 'southern', 'day_first', 'recent_days', 'few')
        then 'left out: there is no such setting'
    end;
    if wanted is not null then
      raise exception using
        errcode = 'invalid_parameter_value',
        message = format('time_settings: "%s" must be %s, not %s', name, wanted, value),
        hint    = 'Settings: language, country, southern, day_first, recent_days, few.';
    end if;
  end loop;
end;
$$;
comment on function pgrecall_internal._check_time_settings is
'Raises 22023 for an unknown or invalid setting of time_settings.';

create or replace function pgrecall_internal._settings()
returns text[]
language sql immutable parallel safe
return array[
  'is_name_embedded', 'time_settings', 'hnsw_threshold', 'hnsw_m', 'hnsw_ef_construction',
  'vector_search', 'leading_dimensions', 'bm25_k1', 'bm25_b', 'lexical_backend', 'context_weight',
  'key_weight', 'message_context_weight', 'replace', 'single_relations', 'log_share',
  'source_trust'];
comment on function pgrecall_internal._settings is
'The columns of bank that configure_bank() sets.';

create or replace function pgrecall_internal._check_settings(bank pgrecall.bank, settings jsonb)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  known   text[] := pgrecall_internal._settings() || array(
    select o.name from pgrecall.recall_options() as o where o.is_bank_default);
  unknown text;
  options jsonb;
begin
  perform pgrecall_internal._check_object(
    'settings', settings, 'Pass ''{"rrf_k": 20}'', for example.');
  select k into unknown from jsonb_object_keys(settings) as k where k <> all (known);
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('unknown setting "%s"', unknown),
      hint    = case when exists (
                  select from pg_proc p
                  where  p.oid = 'pgrecall.create_bank'::regproc and unknown = any (p.proargnames))
                then format('It is an argument of create_bank(), %s => ...: create another bank '
                            'with it, and retain the facts there.', unknown)
                else format('Did you mean "%s"? Settings: %s.',
                            pgrecall_internal._nearest_name(unknown, known),
                            array_to_string(known, ', ')) end;
  end if;
  options := settings - pgrecall_internal._settings();
  perform pgrecall_internal._checked_options(options);
  bank.options := jsonb_strip_nulls(bank.options || options);
  perform pgrecall_internal._check_recency(pgrecall_internal._bank_options(bank));
  perform pgrecall_internal._check_type_hints(bank.bank_id, settings -> 'type_hints');
  perform pgrecall_internal._check_time_settings(settings -> 'time_settings');
  perform pgrecall_internal._check_sources(
    'source_trust', nullif(settings -> 'source_trust', 'null'));
  if settings ->> 'lexical_backend' = 'pg_textsearch'
     and not exists (select from pg_extension x where x.extname = 'pg_textsearch')
  then
    raise exception using
      errcode = 'feature_not_supported',
      message = 'lexical_backend: the extension pg_textsearch is not installed in this database',
      hint    = 'Add it to shared_preload_libraries, restart, and: create extension pg_textsearch;';
  end if;
end;
$$;
comment on function pgrecall_internal._check_settings is
'Checks the settings passed to configure_bank(), options and columns.';

create or replace function pgrecall_internal._raise_invalid_setting(columns jsonb, violated text)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  setting record;
begin
  select a.attname as name, columns -> a.attname as value,
         coalesce(
           -- Without casts: bm25_b >= 0::double precision.
           'Its range: ' || regexp_replace(
             substring(pg_get_constraintdef(c.oid, true) from '^CHECK \((.*)\)$'),
             '::[a-z]+( precision)?(\[\])?', '', 'g'),
           'Its type: ' || format_type(a.atttypid, null)) as range,
         col_description(a.attrelid, a.attnum) as comment
  into   setting
  from   pg_attribute a
  left   join pg_constraint c on c.conrelid = a.attrelid and c.conname = violated
  where  a.attrelid = 'pgrecall.bank'::regclass and columns ? a.attname
    and  case when violated <> '' then a.attnum = any (c.conkey)
              else a.attndims > 0
                   or not pg_input_is_valid(columns ->> a.attname, format_type(a.atttypid, null))
         end
  -- JSON arrays are no literals of PostgreSQL's.
  order  by a.attndims
  limit  1;
  raise exception using
    errcode = 'invalid_parameter_value',
    message = format('setting "%s" cannot be %s', setting.name, left(setting.value::text, 80)),
    hint    = format('%s. %s', setting.range, setting.comment);
end;
$$;
comment on function pgrecall_internal._raise_invalid_setting is
'Raises 22023 for the one of these columns of bank that violates a constraint, or, where that is '
'empty, is not of its type.';

create or replace function pgrecall.configure_bank(bank text, settings jsonb)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  locked     pgrecall.bank;
  configured pgrecall.bank;
  columns    jsonb;
  violated   text;
begin
  locked := pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_settings(locked, settings);
  -- null removes an option of the bank; columns do not take null.
  select coalesce(jsonb_object_agg(s.key, s.value), '{}') into columns
  from   jsonb_each(settings) as s
  where  s.key = any (pgrecall_internal._settings()) and s.value <> 'null';
  begin
    execute (
      select format('update pgrecall.bank b set options = $3, %s '
                    'from jsonb_populate_record($1, $2) as n where b.bank_id = $1.bank_id',
                    string_agg(format('%1$I = n.%1$I', s.name), ', ')) || ' returning b.*'
      from   unnest(pgrecall_internal._settings()) as s(name)
    )
    into  configured
    using locked, columns,
          jsonb_strip_nulls(locked.options || (settings - pgrecall_internal._settings()));
  exception when check_violation or data_exception or feature_not_supported then
    get stacked diagnostics violated = constraint_name;
    perform pgrecall_internal._raise_invalid_setting(columns, violated);
  end;

  if configured.lexical_backend <> locked.lexical_backend then
    update pgrecall.memory m
    set    lexical_document = pgrecall_internal._lexical_document(
             configured, m.text, m.context, m.fact_key)
    where  m.bank_id = configure_bank.bank;
  end if;
  -- What is erased later leaves the counts with the words of these fields, or without them.
  if (configured.context_weight > 0, configured.key_weight > 0)
     <> (locked.context_weight > 0, locked.key_weight > 0)
  then
    perform pgrecall_internal._recount(configured, 'memory');
  end if;
  if (configured.message_context_weight > 0) <> (locked.message_context_weight > 0) then
    perform pgrecall_internal._recount(configured, 'message');
  end if;
end;
$$;
comment on function pgrecall.configure_bank is
'Sets defaults of a bank, {"rrf_k": 20, "weights": {"graph": 0}}: any option of recall_options() '
'with is_bank_default, and the columns of pgrecall.bank that hold settings, described there. '
'Others stay; one that is given is replaced whole, {"weights": ...} too; null removes an option of '
'the bank. A field weight set to 0, or from 0, does a full refresh_statistics(). Errors: RC001, '
'RC008 hint for an unknown fact type, RC009 unknown arm, 0A000 pg_textsearch is not installed, '
'22023 unknown setting or value out of range, 25001 isolation level above read committed where a '
'refresh is needed.';

create or replace function pgrecall.add_fact_type(
  bank text, fact_type text, description text default '')
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall_internal._locked_bank(bank);
  if fact_type is null or fact_type !~ '^[a-z][a-z0-9_]{0,62}$' or fact_type = 'message' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('"%s" cannot name a fact type', fact_type),
      hint    = 'Use a lower-case word of letters, digits and underscores, but not "message".';
  end if;
  insert into pgrecall.fact_type (bank_id, fact_type, description)
  values (add_fact_type.bank, add_fact_type.fact_type, coalesce(add_fact_type.description, ''))
  on conflict on constraint fact_type_pkey do update
  set    description = excluded.description
  where  excluded.description <> '';
end;
$$;
comment on function pgrecall.add_fact_type is
'Adds a fact type to a bank, or changes its description. Errors: RC001, 22023 unusable name.';

create or replace function pgrecall_internal._check_new_bank(bank text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  -- More than 600 bytes would leave no room for a key of 500 letters in an index.
  if bank is null or bank = '' or length(bank) > 200 or octet_length(bank) > 600 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('"%s" cannot name a bank', left(bank, 50)),
      hint    = 'Use 1 to 200 characters, and at most 600 bytes.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_new_bank is
'Raises 22023 unless a name is valid for a bank.';

create or replace function pgrecall.create_bank(
  bank                 text,
  text_search_config   text default 'english',
  embedding_model      text default null,
  embedding_dimensions integer default null,
  fact_types           text[] default null,
  settings             jsonb default '{}')
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  fact_type text;
  is_new    boolean;
begin
  perform pgrecall_internal._check_new_bank(bank);
  perform pgrecall_internal._check_writable();
  if embedding_dimensions not between 1 and 4000 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('embedding_dimensions must be between 1 and 4000, not %s',
                       embedding_dimensions),
      hint    = 'Longer embeddings cannot be indexed; ask the model for fewer dimensions.';
  end if;
  begin
    -- A number or "-" also casts to regconfig, whatever has that number.
    if not exists (select from pg_ts_config c where c.oid = text_search_config::regconfig) then
      raise undefined_object;
    end if;
  exception when others then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('text search configuration "%s" does not exist', text_search_config),
      hint    = 'select cfgname from pg_ts_config; lists them. simple fits mixed languages.';
  end;

  begin
    insert into pgrecall.bank (bank_id, text_search_config, embedding_model, embedding_dimensions)
    values (create_bank.bank, create_bank.text_search_config,
            nullif(create_bank.embedding_model, ''), create_bank.embedding_dimensions)
    on conflict on constraint bank_pkey do nothing;
    is_new := found;
  exception when insufficient_privilege then
    -- No right on the table, or a name that row security forbids the role.
    perform pgrecall_internal._raise_not_permitted(
      format('create bank "%s"', bank), 'pgrecall.bank', 'insert', is_any_bank => true);
  end;
  if not is_new then
    raise exception using
      errcode = 'RC002',
      message = format('bank "%s" already exists', bank),
      hint    = format('Change its defaults with pgrecall.configure_bank(%L, ...), '
                       'or choose another name.', bank);
  end if;

  insert into pgrecall.fact_type (bank_id, fact_type, description)
  values (create_bank.bank, 'world', 'Facts about the world and the people in it.'),
         (create_bank.bank, 'experience', 'What the agent itself did and saw.'),
         (create_bank.bank, 'opinion', 'Judgements, with a confidence.'),
         (create_bank.bank, 'observation', 'Conclusions drawn from several facts.'),
         (create_bank.bank, 'preference', 'How somebody wants things to be.'),
         (create_bank.bank, 'event', 'Things that happened at a time.');
  foreach fact_type in array coalesce(fact_types, '{}') loop
    perform pgrecall.add_fact_type(bank, fact_type);
  end loop;
  perform pgrecall.configure_bank(bank, coalesce(settings, '{}'));
end;
$$;
comment on function pgrecall.create_bank is
'Creates a bank with the fact types world, experience, opinion, observation, preference, event and '
'those in fact_types. '
'embedding_model and embedding_dimensions are pinned by the first embedding when not given. '
'Errors: RC002 bank exists, 22023 unusable name, configuration, dimensions or setting, 42501 '
'naming the roles that may.';

create or replace function pgrecall_internal._lock_attached(relation regclass)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  -- A transaction that changed the table may wait for the bank when it commits: who changes the
  -- triggers locks the bank after the table. A sync, which holds the bank, still reads the table.
  execute format('lock table only %s in share row exclusive mode', relation);
end;
$$;
comment on function pgrecall_internal._lock_attached is
'Locks a table against writers, for a change of its triggers; before its bank is locked.';

create or replace function pgrecall_internal._drop_note_triggers(relation regclass, name text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  trigger_name text;
  noted_by     regprocedure;
begin
  for trigger_name, noted_by in
    select t.tgname, t.tgfoid::regprocedure
    from   pg_trigger t
    where  t.tgrelid = relation and starts_with(t.tgname, name || '_')
  loop
    execute format('drop trigger %I on %s', trigger_name, relation);
  end loop;
  if noted_by is not null then
    execute format('drop function %s', noted_by);
  end if;
end;
$$;
comment on function pgrecall_internal._drop_note_triggers is
'Drops the triggers of an attachment and their function.';

create or replace function pgrecall.drop_bank(bank text)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans of the cascades must use an index, also those made while a table was small.
set enable_seqscan = off
as $$
declare
  removed bigint;
begin
  perform pgrecall_internal._bank(bank);
  if not has_table_privilege('pgrecall.bank', 'delete') then
    perform pgrecall_internal._raise_not_permitted(
      format('drop bank "%s"', bank), 'pgrecall.bank', 'delete', is_any_bank => true);
  end if;
  perform pgrecall_internal._bank_to_write(bank);
  perform pgrecall_internal._lock_attached(c.oid)
  from   pgrecall.attachment a
  join   pg_class c on c.oid = to_regclass(a.relation)
  where  a.bank_id = drop_bank.bank and pg_has_role(c.relowner, 'usage');
  perform pgrecall_internal._locked_bank(bank);
  -- Where row security keeps the owner of an attached table from seeing that its bank is gone, the
  -- triggers would refuse every change.
  perform pgrecall_internal._drop_note_triggers(c.oid, a.note_name)
  from   pgrecall.attachment a
  join   pg_class c on c.oid = to_regclass(a.relation)
  where  a.bank_id = drop_bank.bank and pg_has_role(c.relowner, 'usage');
  -- Children first: cascades would look up the children of each row one at a time.
  delete from pgrecall.link x where x.bank_id = drop_bank.bank;
  delete from pgrecall.relation x where x.bank_id = drop_bank.bank;
  delete from pgrecall.mention x where x.bank_id = drop_bank.bank;
  delete from pgrecall.embedding x where x.bank_id = drop_bank.bank;
  delete from pgrecall.entity x where x.bank_id = drop_bank.bank;
  with gone as (
    delete from pgrecall.memory x where x.bank_id = drop_bank.bank returning 1
  )
  select count(*) into removed from gone;
  delete from pgrecall.message x where x.bank_id = drop_bank.bank;
  delete from pgrecall.bank x where x.bank_id = drop_bank.bank;
  return removed;
end;
$$;
comment on function pgrecall.drop_bank is
'Erases a bank and all it holds, and the triggers of its attached tables where the role may; '
'returns how many memories it held. Errors: RC001, 42501 naming the roles that may.';

create or replace view pgrecall.bank_overview with (security_invoker = true) as
select b.bank_id,
       (select count(*) from pgrecall.memory m where m.bank_id = b.bank_id)   as memories,
       (select count(*) from pgrecall.message m where m.bank_id = b.bank_id)  as messages,
       (select count(*) from pgrecall.entity e where e.bank_id = b.bank_id)   as entities,
       b.embedding_model,
       b.embedding_dimensions,
       b.text_search_config,
       b.created_at
from   pgrecall.bank b;
comment on view pgrecall.bank_overview is 'The banks, and how many rows each holds.';

create or replace function pgrecall.bank_models(bank text)
returns pgrecall.bank_model
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  found_bank pgrecall.bank := pgrecall_internal._bank(bank);
begin
  return (found_bank.embedding_model, found_bank.embedding_dimensions,
          found_bank.next_model)::pgrecall.bank_model;
end;
$$;
comment on function pgrecall.bank_models is
'The model that a bank is embedded with, and the one that it is being re-embedded with. Errors: '
'RC001.';

create or replace view pgrecall.fact with (security_invoker = true) as
select m.memory_id,
       m.bank_id,
       m.fact_type,
       m.text,
       m.context,
       m.fact_key,
       m.source_id,
       m.tags,
       m.metadata,
       lower(m.occurred) as occurred_start,
       upper(m.occurred) as occurred_end,
       m.mentioned_at,
       m.confidence,
       m.proof_count,
       array(
         select e.name
         from   pgrecall.mention x
         join   pgrecall.entity e on e.bank_id = x.bank_id and e.entity_id = x.entity_id
         where  x.bank_id = m.bank_id and x.memory_id = m.memory_id
         order  by e.name
       ) as entities,
       m.valid_to is null or m.valid_to > now() as is_current
from   pgrecall.memory m;
comment on view pgrecall.fact is
'The facts of all banks to explore in SQL and BI tools: text, time, entities, and whether it still '
'holds. Compare bank_id; to recall, use hybrid_recall().';

-- bank/recount.sql
-- Statistics of the documents of a bank after some are erased, or mention other entities.
--
-- forget() and forget_messages() may erase most of a bank at once, and what is left must not be
-- ranked by the words of what is gone: what is erased leaves the counts and the mean length in the
-- same transaction. What a message adds to those beside it (message_context_weight), or takes from
-- them, is counted at once, too. Such writers have the bank for themselves, so no writer waits for
-- another at these rows. A document that ended, or whose source is in quarantine, is still there
-- and still counts. Only documents up to the watermark are counted, and only those are taken out.

create or replace function pgrecall_internal._recount_lexemes(
  bank pgrecall.bank, kind text, lexemes text[], changes bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  with change as materialized (
    select u.lexeme, sum(u.documents) as documents,
           pgrecall_internal._dimension(u.lexeme) as dimension
    from   unnest(lexemes, changes) as u(lexeme, documents)
    group  by u.lexeme
    having sum(u.documents) <> 0
  ),
  gone as (
    delete from pgrecall_internal.lexeme l
    using  change c
    where  l.bank_id = bank.bank_id and l.kind = _recount_lexemes.kind and l.lexeme = c.lexeme
      and  l.dimension = c.dimension
      -- The array keeps to the primary key, whatever is known of the bank.
      and  l.dimension = any (array(select x.dimension from change x))
      and  l.document_count + c.documents <= 0
    returning l.lexeme
  ),
  -- No word of what is erased stays in the snapshot that vocabulary_drift() compares with; an empty
  -- one in its place still counts as one that the bank had.
  known as (
    update pgrecall_internal.vocabulary v
    set    lexemes = array(
             select case when w.lexeme in (select g.lexeme from gone g) then '' else w.lexeme end
             from   unnest(v.lexemes) with ordinality as w(lexeme, n)
             order  by w.n)
    where  v.bank_id = bank.bank_id and _recount_lexemes.kind = 'memory'
      and  v.lexemes && array(select g.lexeme from gone g)
  ),
  fewer as (
    update pgrecall_internal.lexeme l
    set    document_count = l.document_count + c.documents
    from   change c
    where  l.bank_id = bank.bank_id and l.kind = _recount_lexemes.kind and l.lexeme = c.lexeme
      and  l.dimension = c.dimension
      and  l.dimension = any (array(select x.dimension from change x))
      and  c.documents < 0 and l.document_count + c.documents > 0
  )
  insert into pgrecall_internal.lexeme as l (bank_id, kind, lexeme, dimension, document_count)
  select bank.bank_id, _recount_lexemes.kind, c.lexeme, c.dimension, c.documents
  from   change c
  where  c.documents > 0
  order  by c.dimension, c.lexeme
  on conflict on constraint lexeme_pkey do update
  set document_count = l.document_count + excluded.document_count;
end;
$$;
comment on function pgrecall_internal._recount_lexemes is
'Changes the number of documents of a kind that each of these lexemes occurs in. A lexeme of none '
'leaves an empty one in the vocabulary of the bank.';

create or replace function pgrecall_internal._recount_mentions(
  bank text, memory_ids bigint[], sign integer)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- However many entities a memory mentions: the planner takes them for few.
set enable_nestloop = off
set plan_cache_mode = force_custom_plan
as $$
declare
  watermark bigint := (
    select s.watermark from pgrecall_internal.statistics s
    where  s.bank_id = _recount_mentions.bank and s.kind = 'memory');
begin
  if sign > 0 then
    perform pgrecall_internal._count_mentions(bank, 0, watermark, memory_ids);
    return;
  end if;
  with gone as (
    select x.entity_id, count(*) as mentions
    from   pgrecall.mention x
    where  x.bank_id = _recount_mentions.bank and x.memory_id = any (memory_ids)
      and  x.memory_id <= watermark
    group  by x.entity_id
  ),
  unmentioned as (
    delete from pgrecall_internal.entity_count c
    using  gone g
    where  c.bank_id = _recount_mentions.bank and c.entity_id = g.entity_id
      and  c.entity_id = any (array(select x.entity_id from gone x))
      and  c.mention_count <= g.mentions
  )
  update pgrecall_internal.entity_count c
  set    mention_count = c.mention_count - g.mentions
  from   gone g
  where  c.bank_id = _recount_mentions.bank and c.entity_id = g.entity_id
    and  c.entity_id = any (array(select x.entity_id from gone x))
    and  c.mention_count > g.mentions;
end;
$$;
comment on function pgrecall_internal._recount_mentions is
'Subtracts the mentions of some memories from the counts of entities before they change (sign -1), '
'or adds them afterwards (1).';

create or replace function pgrecall_internal._recount_documents(
  bank pgrecall.bank, kind text, documents bigint, total_length double precision)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  rest bigint;
begin
  update pgrecall_internal.statistics s
  set    document_count = greatest(s.document_count + _recount_documents.documents, 0),
         average_length = greatest(s.average_length * s.document_count + total_length, 0)
                          / greatest(s.document_count + _recount_documents.documents, 1)
  where  s.bank_id = bank.bank_id and s.kind = _recount_documents.kind
  returning s.document_count into rest;
  -- As after storing: at once where there are few, else maintain() does it.
  if rest <= 500 and pgrecall_internal._is_weighing_due(bank.bank_id, kind) then
    perform pgrecall_internal._weigh_documents(bank, kind, null);
  end if;
end;
$$;
comment on function pgrecall_internal._recount_documents is
'Adds to the number of documents of a kind and to their total length (negative for what is '
'erased), and weighs the others anew where that is due and they are few. The bank must be locked.';

create or replace function pgrecall_internal._uncount_memories(
  bank pgrecall.bank, memory_ids bigint[],
  out documents bigint, out total_length double precision)
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  watermark bigint := (
    select s.watermark from pgrecall_internal.statistics s
    where  s.bank_id = bank.bank_id and s.kind = 'memory');
  lexemes   text[];
  changes   bigint[];
begin
  select array_agg(c.lexeme), array_agg(-c.documents)
  into   lexemes, changes
  from   pgrecall_internal._document_counts(bank, 'memory', 0, watermark, memory_ids) as c;
  perform pgrecall_internal._recount_lexemes(bank, 'memory', lexemes, changes);
  perform pgrecall_internal._recount_mentions(bank.bank_id, memory_ids, -1);
  select -count(*), -coalesce(sum(m.lexical_length), 0)
  into   documents, total_length
  from   pgrecall.memory m
  where  m.bank_id = bank.bank_id and m.memory_id = any (memory_ids) and m.memory_id <= watermark;
end;
$$;
comment on function pgrecall_internal._uncount_memories is
'Subtracts memories that are about to be erased from the counts of lexemes and entities; returns '
'what _recount_documents() is to add once they are erased. The bank must be locked.';

-- bank/vector-index.sql
-- What searches and indexes of vectors have in common.
--
-- The name of an index is a hash of the bank, model and expression: searches look it up by name
-- (_hnsw_index()). Everybody may read the definitions of indexes, so a predicate compares hashes,
-- and searches repeat it word for word (_hnsw_scope()). The expressions here (_vector_key()) must
-- be identical in searches and in indexes, or PostgreSQL does not match them.
create or replace function pgrecall_internal._vector_key(
  bank pgrecall.bank, dimensions integer, vector text, prefix text default '')
returns text
language sql stable parallel safe
return case bank.vector_search
  when 'full' then format('%s::%shalfvec(%s)', vector, prefix, dimensions)
  when 'binary' then format('%sbinary_quantize(%s)::bit(%s)', prefix, vector, dimensions)
  else format('%1$ssubvector(%2$s, 1, %3$s)::%1$shalfvec(%3$s)', prefix, vector,
              least(bank.leading_dimensions, dimensions))
end;
comment on function pgrecall_internal._vector_key is
'SQL of the part of a vector that searches of a bank compare, by its vector_search: the expression '
'that its HNSW indexes are on. prefix goes before the names of types and functions of pgvector.';

create or replace function pgrecall_internal._hnsw_name(
  bank pgrecall.bank, model text, dimensions integer)
returns text
language sql stable parallel safe
return 'embedding_hnsw_' || left(encode(sha256(convert_to(jsonb_build_array(
  bank.bank_id, model, pgrecall_internal._vector_key(bank, dimensions, '')
)::text, 'UTF8')), 'hex'), 24);
comment on function pgrecall_internal._hnsw_name is
'Name of the HNSW index over the vectors of a bank and model: deterministic, and different for '
'another vector_search or number of dimensions.';

create or replace function pgrecall_internal._hnsw_scope(bank text, model text)
returns text
language sql stable parallel safe
return format('hashtextextended(bank_id, 0) = %s and hashtextextended(model, 0) = %s '
              'and fact_type <> ''''', bank, model);
comment on function pgrecall_internal._hnsw_scope is
'SQL of the predicate of an HNSW index over embedding. The arguments are SQL for two hashes: '
'constants in the statement that creates the index; in a search, expressions that planning folds '
'to these constants.';

create or replace function pgrecall_internal._hnsw_bytes(
  bank pgrecall.bank, dimensions integer, elements bigint)
returns bigint
language sql immutable parallel safe
-- The layout of pgvector's pages: an element has its vector and its neighbours, 2 m of them at the
-- lowest level and m at each of 1 / (m - 1) further levels on average.
return 8192 * ceil(elements / greatest(1, floor(8152 / (
  88 + case bank.vector_search when 'full' then 2 * dimensions
                               when 'binary' then dimensions / 8.0
                               else 2 * least(bank.leading_dimensions, dimensions) end
  + 6.0 * bank.hnsw_m * (2 + 1.0 / (bank.hnsw_m - 1))))))::bigint;
comment on function pgrecall_internal._hnsw_bytes is
'Estimated bytes of an HNSW index of so many vectors.';

create or replace function pgrecall_internal._hnsw_index(
  bank pgrecall.bank, out index_name text, out elements bigint)
language plpgsql stable parallel safe
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  id regclass;
begin
  index_name := pgrecall_internal._hnsw_name(
    bank, coalesce(bank.embedding_model, ''), bank.embedding_dimensions);
  id := to_regclass('pgrecall_internal.' || index_name);
  if id is null then
    index_name := null;
    return;
  end if;
  if (select x.indisvalid from pg_index x where x.indexrelid = id) then
    elements := pg_relation_size(id) * 1000
                / pgrecall_internal._hnsw_bytes(bank, bank.embedding_dimensions, 1000);
  else
    index_name := null;
  end if;
end;
$$;
comment on function pgrecall_internal._hnsw_index is
'The HNSW index of index_plan() over the vectors of a bank, where it is valid, else null. '
'elements: about how many it holds.';

-- request/name.sql
-- Names in a query, resolved to entities.
--
-- query_entities() cuts a query into runs of words (_words(), _phrases()), looks each up among the
-- aliases and keeps the longest matches. A word that is no name may be the first or last of one
-- (_name_parts()). Where several entities have the same name, their co-mentions decide: the other
-- entities of their latest facts.
-- Every lookup is bounded (200 words, 50 parts, 10 entities a name, 100 facts a type), so that
-- neither a long query nor an entity mentioned everywhere makes a recall slow.
create or replace function pgrecall_internal._co_mentions(bank text, entity_id bigint)
returns table (other_id bigint)
language plpgsql stable parallel safe rows 50
set search_path from current
as $$
begin
  return query
  select distinct x.entity_id
  from   pgrecall.fact_type t
  cross  join lateral (
    select m.memory_id
    from   pgrecall.mention m
    where  m.bank_id = _co_mentions.bank and m.entity_id = _co_mentions.entity_id
      -- "between" rather than "=", so that only the primary key provides this order.
      and  m.fact_type between t.fact_type and t.fact_type
    order  by m.fact_type desc, m.memory_id desc
    limit  100
  ) as latest
  cross  join lateral (
    select o.entity_id
    from   pgrecall.mention o
    where  o.bank_id = _co_mentions.bank and o.memory_id = latest.memory_id
      and  o.entity_id <> _co_mentions.entity_id
    limit  100
  ) as x
  where  t.bank_id = _co_mentions.bank;
end;
$$;
comment on function pgrecall_internal._co_mentions is
'Entities that the latest 100 facts of each type about an entity mention too.';

create or replace function pgrecall_internal._name_parts(bank text, query text)
returns setof pgrecall_internal.named_entity
language sql stable parallel safe rows 1
begin atomic
  -- Called in a from clause, so that it is inlined.
  with alone as materialized (
    -- Of "Ana Silva" no word stands alone: she need not be the one Silva who is known. "Did Ana" is
    -- Ana, and "Silvas Haus", in German, Silva.
    select distinct case when w.words[2] is null then w.words[1] else left(w.words[1], -1) end
                      as part
    from   pgrecall.bank b
    cross  join regexp_matches(
             left(query, 4000),
             '\m[[:upper:]][[:alnum:]]*(?:[-_.@:+#''’ ][[:upper:]][[:alnum:]]*)*', 'g') as r(run)
    cross  join string_to_array(r.run[1], ' ') as x(words)
    cross  join lateral (
      select case when to_tsvector(b.text_search_config::regconfig, x.words[1]) = ''
               then x.words[2:] else x.words end as words
    ) as w
    where  b.bank_id = _name_parts.bank
      and  w.words[1] ~ '^[[:alpha:]]{2,}$' and w.words[3] is null
      and  (w.words[2] is null or w.words[1] like '%__s')
    limit  50
  )
  select k.entity_id, lower(p.part), k.confidence, null::integer, null::integer, null::bigint
  from   alone p
  cross  join lateral (
    select x.entity_id, max(x.confidence)::real as confidence, count(*) over () as sharers
    from (
      (select a.entity_id, a.confidence
       from   pgrecall.entity_alias a
       where  a.bank_id = _name_parts.bank and strpos(a.alias, ' ') > 0
         and  split_part(a.alias, ' ', 1) = lower(p.part)
       limit  30)
      union  all
      (select a.entity_id, a.confidence
       from   pgrecall.entity_alias a
       where  a.bank_id = _name_parts.bank and strpos(a.alias, ' ') > 0
         and  split_part(a.alias, ' ', -1) = lower(p.part)
       limit  30)
    ) as x
    cross  join lateral (
      select e.name
      from   pgrecall.entity e
      where  e.bank_id = _name_parts.bank and e.entity_id = x.entity_id
      limit  1
    ) as e
    -- As written in the name, which "Walk" in "a long walk" is not.
    where  strpos(e.name, p.part) > 0
    group  by x.entity_id
  ) as k
  -- What many are called by is a common word.
  where  k.sharers <= 3
    and  not exists (
      select from pgrecall.entity_alias a
      where  a.bank_id = _name_parts.bank and a.alias = lower(p.part));
end;
comment on function pgrecall_internal._name_parts is
'Entities that a normalised query names by the first or last word of a name alone, "Ana" or '
'"Silva", where that is no name of its own, is written with a capital as in the name, and stands '
'beside no other capital. Nothing is found by a word that begins or ends the names of more than '
'three entities.';

create or replace function pgrecall_internal._query_names(bank text, query text)
returns table (entity_id bigint, phrase text, starts_at integer, ends_at integer, confidence real)
language plpgsql stable parallel safe rows 5
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  words  text[];
  spaced text[];  -- the same, each after a space
  firsts integer[];
  parts  pgrecall_internal.named_entity[] := '{}';
  is_genitive boolean := query ~ 's [[:upper:]]';
begin
  -- Most questions name nobody. It is cheaper to find out whether a question contains a name, and
  -- at which words, than to list all its phrases with their positions. Text without spaces between
  -- words needs the phrases.
  if query !~ ('[' || pgrecall_internal._cjk() || ']') then
    words := (string_to_array(pgrecall.normalised_name(left(query, 4000)), ' '))[:200];
    spaced := string_to_array(' ' || array_to_string(words, E'\n '), E'\n');
    firsts := array(
      select distinct w.n::integer
      from   pgrecall.entity_alias a
      join   unnest(words) with ordinality as w(word, n)
        on   starts_with(a.alias || ' ', w.word || ' ')
             or starts_with(a.alias || 's ', w.word || ' ')
      where  a.bank_id = _query_names.bank and a.alias = any (array(
        select unnest(case when is_genitive
                        then array[r.run, case when r.run like '%s' then left(r.run, -1) end]
                        else array[r.run] end)
        from   unnest(words, spaced[2:], spaced[3:], spaced[4:], spaced[5:], spaced[6:],
                      spaced[7:], spaced[8:]) as w(a, b, c, d, e, f, g, h)
        cross  join lateral unnest(array[
                 w.a, w.a || w.b, w.a || w.b || w.c, w.a || w.b || w.c || w.d,
                 w.a || w.b || w.c || w.d || w.e, w.a || w.b || w.c || w.d || w.e || w.f,
                 w.a || w.b || w.c || w.d || w.e || w.f || w.g,
                 w.a || w.b || w.c || w.d || w.e || w.f || w.g || w.h]) as r(run)))
    );
    parts := array(
      select p from pgrecall_internal._name_parts(_query_names.bank, _query_names.query) as p);
    if parts <> '{}' then
      firsts := array(
        select unnest(firsts)
        union
        select w.n::integer
        from   unnest(parts) as p
        join   unnest(words) with ordinality as w(word, n)
          on   w.word in (p.matched, case when is_genitive then p.matched || 's' end));
    end if;
    if firsts = '{}' then
      return;
    end if;
  end if;
  return query
  with phrase as materialized (
    select p.*,
           -- The German and Dutch genitive: "Anas Chefin".
           case when p.phrase like '%__s' and substr(query, p.ends_at, 3) ~ '^s [[:upper:]]'
                     and substr(query, p.starts_at, 1) ~ '[[:upper:]]'
                then left(p.phrase, -1) end as stem
    from   pgrecall_internal._phrases(query, firsts) as p
  ),
  known as materialized (
    select a.alias, a.entity_id, a.confidence,
           row_number() over (
             partition by a.alias order by a.confidence desc, a.entity_id) as place
    from (
      select b.alias, b.entity_id, b.confidence
      from   pgrecall.entity_alias b
      where  b.bank_id = _query_names.bank
        and  b.alias = any (array(select unnest(array[p.phrase, p.stem]) from phrase p))
      union  all
      select p.matched, p.entity_id, p.confidence from unnest(parts) as p
    ) as a
  ),
  found as materialized (
    select p.*, k.entity_id, k.confidence
    from   known k
    join   phrase p
      on   k.alias = case when exists (select from known x where x.alias = p.phrase)
                       then p.phrase else p.stem end
    where  k.place <= 10
  ),
  -- The longest name wins: "Ana Silva" does not also mean every other Ana.
  hit as materialized (
    select f.*, count(*) over (partition by f.first, f.last) as candidates
    from   found f
    where  not exists (
      select from found l
      where  l.first <= f.first and l.last >= f.last and l.last - l.first > f.last - f.first
    )
  ),
  weighed as (
    select h.*, h.confidence * (1 + 4 * coalesce(s.shared, 0)) as weight
    from   hit h
    left   join lateral (
      select count(distinct o.phrase) as shared
      from   pgrecall_internal._co_mentions(_query_names.bank, h.entity_id) as c
      join   hit o on o.entity_id = c.other_id and o.phrase <> h.phrase
      where  h.candidates > 1
    ) as s on h.candidates > 1
  )
  select w.entity_id, w.phrase, w.starts_at, w.ends_at,
         case w.candidates
           when 1 then w.confidence
           else (w.weight / nullif(sum(w.weight) over (partition by w.first, w.last), 0))::real
         end
  from   weighed w;
end;
$$;
comment on function pgrecall_internal._query_names is
'Used by query_entities(): each occurrence of a name in a query, with at most ten entities that '
'have it as an alias.';

create or replace function pgrecall_internal._mentions(bank text, entity_id bigint)
returns table (count bigint)
language sql stable parallel safe rows 1
begin atomic
  -- Called in a from clause, so that it is inlined.
  select count(*)
  from (
    select from pgrecall.mention m
    where  m.bank_id = _mentions.bank and m.entity_id = _mentions.entity_id
    limit  1000
  ) as bounded;
end;
comment on function pgrecall_internal._mentions is
'Number of facts that mention an entity; counting stops at 1,000.';

create or replace function pgrecall_internal._named_entities(bank text, query text)
returns setof pgrecall_internal.named_entity
language sql stable parallel safe rows 5
begin atomic
  -- Called in a from clause, so that it is inlined.
  select n.entity_id, n.phrase, n.confidence, n.starts_at, n.ends_at,
         case when m.count < 1000 then m.count else greatest(m.count, (
           select c.mention_count
           from   pgrecall_internal.entity_count c
           where  c.bank_id = _named_entities.bank and c.entity_id = n.entity_id)) end
  from (
    select distinct on (q.entity_id)
           q.entity_id, q.phrase, coalesce(q.confidence, 0)::real as confidence, q.starts_at,
           q.ends_at
    from   pgrecall_internal._query_names(bank, query) as q
    order  by q.entity_id, length(q.phrase) desc, q.confidence desc
  ) as n
  cross  join lateral pgrecall_internal._mentions(_named_entities.bank, n.entity_id) as m
  order  by n.entity_id;
end;
comment on function pgrecall_internal._named_entities is
'The entities that a normalised query names, each by its longest name, with the number of facts '
'that mention it: 1,000 or more as bank_statistics() counts them.';

create or replace function pgrecall.query_entities(bank text, query text)
returns setof pgrecall.query_entity
language plpgsql stable parallel safe rows 5
set search_path from current
as $$
begin
  perform pgrecall_internal._bank(bank);
  return query
  select e.entity_id, e.name, e.kind, n.matched, n.confidence
  from   pgrecall_internal._named_entities(
           query_entities.bank, pgrecall_internal._normalised(query_entities.query)) as n
  cross  join lateral (
    select x.entity_id, x.name, x.kind
    from   pgrecall.entity x
    where  x.bank_id = query_entities.bank and x.entity_id = n.entity_id
    limit  1
  ) as e
  order  by e.entity_id;
end;
$$;
comment on function pgrecall.query_entities is
'Entities named in a query: the longest names that occur in it, of at most eight words or twelve '
'Chinese, Japanese or Korean letters, and all entities that have such a name as an alias. '
'confidence, 0 to 1, is the confidence in the alias. Where several entities have a name, each gets '
'its share of confidence x (1 + 4 n): n is the number of other names in the query whose entities '
'occur with it in its latest facts. A word with a capital that is no name, and stands beside no '
'other capital, is the first or last word of one: "Silva" means Ana Silva where at most three are '
'called so. Errors: RC001.';

create or replace function pgrecall_internal._without_names(bank pgrecall.bank, query text)
returns text
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  rare  bigint;
  names pgrecall_internal.named_entity[];
  span  record;
  kept  text := '';
  upto  integer := 0;  -- up to here all is kept or left out
begin
  perform pgrecall_internal._check_text('query', query);
  query := pgrecall_internal._normalised(query);
  names := array(
    select (n.entity_id, n.phrase, n.confidence, n.starts_at, n.ends_at, null)
             ::pgrecall_internal.named_entity
    from   pgrecall_internal._query_names(bank.bank_id, _without_names.query) as n);
  if names = '{}' then
    return _without_names.query;
  end if;
  rare := coalesce((
    select s.document_count / 20
    from   pgrecall_internal.statistics s
    where  s.bank_id = bank.bank_id and s.kind = 'memory'), 0);
  for span in
    select n.starts_at - (substr(query, n.starts_at - 1, 1) in ('@', '#'))::integer as starts_at,
           n.ends_at + coalesce(length((
             regexp_match(substr(query, n.ends_at, 4),
                          '^.([''’][sS])(?![[:alnum:]])'))[1]), 0)
           + (substr(query, n.ends_at, 3) ~ '^[sxzSXZ][''’](?![[:alnum:]])')::integer
             as ends_at
    from   unnest(names) as n
    cross  join lateral (
      select from pgrecall.entity e
      where  e.bank_id = bank.bank_id and e.entity_id = n.entity_id
        -- A rare name is what the question is about: an embedding of the rest finds anything. A
        -- name that every twentieth fact mentions distinguishes nothing.
        and  (select count(*)
              from (
                select from pgrecall.mention m
                where  m.bank_id = bank.bank_id and m.entity_id = n.entity_id
                limit  rare + 1
              ) as bounded) > rare
        -- A name in lower case ("pricing model") is part of the subject: it stays.
        and  (e.name <> lower(e.name) or e.name = upper(e.name) or e.kind = 'person')
      limit  1
    ) as proper
    -- A part of an identifier is not a word of its own.
    where  substr(left(query, n.starts_at - 1), greatest(n.starts_at - 2, 1))
             !~ '[[:alnum:]][-_.@:+#]'
      and  substr(query, n.ends_at + 1, 2) !~ '^[-_.@:+#][[:alnum:]]'
    order  by 1, 2
  loop
    kept := kept || substr(query, upto + 1, greatest(0, span.starts_at - upto - 1));
    upto := greatest(upto, span.ends_at);
  end loop;
  if upto = 0 then
    return _without_names.query;
  end if;
  kept := kept || substr(query, upto + 1);
  kept := regexp_replace(kept, '\(\s*\)|\[\s*\]|"\s*"|“\s*”|«\s*»', ' ', 'g');
  kept := regexp_replace(kept, '\s+', ' ', 'g');
  kept := regexp_replace(kept, ' ([?!.,;:]+)(?=\s|$)', '\1', 'g');
  kept := regexp_replace(kept, '^[\s?!.,;:]+|\s+$', '', 'g');
  -- Only stop words are left ("Who is?"): an embedding of them would match anything.
  if to_tsvector(bank.text_search_config::regconfig, kept) = '' then
    return _without_names.query;
  end if;
  return kept;
end;
$$;
comment on function pgrecall_internal._without_names is 'Worker of without_names().';

create or replace function pgrecall.without_names(bank text, query text)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return pgrecall_internal._without_names(pgrecall_internal._bank(bank), query);
end;
$$;
comment on function pgrecall.without_names is
'A query without the names that query_entities() finds in it and that more than a twentieth of the '
'facts mention, each with its possessive ''s, for embedding: such names say who is meant, not what '
'is asked. Names in lower case, unless of a person, and parts of identifiers are kept. The query '
'is returned unchanged where it has no such names, or where only stop words would be left. Errors: '
'RC001, 22023.';

-- request/term.sql
-- The terms of a query with their IDFs, and the choice of candidates to score.
--
-- _terms() gives each lexeme its dimension, IDF and document count, rarest first. Scoring every
-- document with any word of a question would read most of a large bank; _candidates() chooses the
-- rarest words, and sets of the others, so that about candidate_limit documents are scored. A
-- lexeme shares its dimension with another one once in a billion pairs: where a bank holds such a
-- pair, and for documents that are not counted yet, _recheck_lexemes() reads the text again.
create or replace function pgrecall_internal._terms(
  bank_id text, kind text, lexemes text[], expanded text[] default '{}')
returns pgrecall_internal.terms
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  terms pgrecall_internal.terms;
begin
  -- Rarest first; a lexeme without statistics counts as rare.
  select array_agg(t.dimension) filter (where t.dimension is not null),
         array_agg(t.idf) filter (where t.dimension is not null),
         array_agg(t.count) filter (where t.dimension is not null),
         -- Expansion terms do not raise the highest possible score.
         coalesce(sum(t.idf) filter (where not t.is_expanded), sum(t.idf)),
         coalesce(bool_or(t.is_shared), false), min(c.documents), min(c.watermark)
  into   terms
  from (
    select max(s.document_count) as documents, max(s.watermark) as watermark
    from   pgrecall_internal.statistics s
    where  s.bank_id = _terms.bank_id and s.kind = _terms.kind
  ) as c
  left   join lateral (
    select pgrecall_internal._dimension(q.lexeme) as dimension,
           coalesce(l.document_count, 0)::bigint as count,
           case when q.n > cardinality(lexemes) then 0.5 else 1 end
           * ln(1 + (greatest(c.documents, l.document_count, 1)
                     - coalesce(l.document_count, 0) + 0.5)
                    / (coalesce(l.document_count, 0) + 0.5)) as idf,
           q.n > cardinality(lexemes) as is_expanded, l.is_shared
    from   unnest(lexemes || expanded) with ordinality as q(lexeme, n)
    -- One lookup each, also while the planner assumes a small table.
    cross  join lateral (
      select max(x.document_count) filter (where x.lexeme = q.lexeme) as document_count,
             coalesce(bool_or(x.lexeme <> q.lexeme), false) as is_shared
      from   pgrecall_internal.lexeme x
      where  x.bank_id = _terms.bank_id and x.kind = _terms.kind
        and  x.dimension = pgrecall_internal._dimension(q.lexeme)
    ) as l
    order  by 2, 1
  ) as t on true;
  return terms;
end;
$$;
comment on function pgrecall_internal._terms is
'Lexemes of a query with their IDF ln(1 + (N - n + 0.5) / (n + 0.5)) as in Lucene, n being the '
'documents of N that hold the lexeme. kind is memory or message. Expansion terms have half their '
'IDF. idf_sum: upper bound of the BM25 score of the query''s own lexemes. is_shared is never null, '
'so that the row as a whole is not null.';

create or replace function pgrecall_internal._candidates(
  dimensions integer[], idfs double precision[], counts bigint[], documents bigint,
  candidate_limit integer,
  out singles integer[], out sets text[])
language plpgsql immutable parallel safe
as $$
declare
  first   integer := 1;
  counted double precision := 0;
  others  bigint := 0;
  count   bigint;
begin
  -- A fifth of the limit goes to single words, rarest first.
  while first <= cardinality(dimensions) and counted + counts[first] <= candidate_limit / 5 loop
    counted := counted + counts[first];
    first := first + 1;
  end loop;
  -- Where few documents hold any of the words, it takes less time to score all of them than to
  -- choose.
  foreach count in array counts[first:] loop
    others := others + count;
  end loop;
  if counted + others <= candidate_limit / 2.5 then
    singles := dimensions;
    sets := '{}';
    return;
  end if;

  -- Sets are made of the ten rarest other words, and taken by their sum of IDFs while they fit: a
  -- document with none of the singles must contain all words of one set. A taken set makes its
  -- supersets redundant. Words of one question co-occur about three times as often as by chance. A
  -- set with few documents is not extended.
  with recursive word as (
    select *
    from   unnest(dimensions[first : first + 9], idfs[first : first + 9], counts[first : first + 9])
             with ordinality as t(dimension, idf, count, position)
  ),
  word_set as (
    select array[w.dimension] as words, w.position as last, w.idf, w.count as most,
           w.count::double precision as chance, w.count::double precision as estimate
    from   word w
    union all
    select s.words || w.dimension, w.position, s.idf + w.idf, s.most, x.chance,
           least(s.most, x.chance)
    from   word_set s
    join   word w on w.position > s.last
    cross  join lateral (select s.chance * 3 * w.count / documents) as x(chance)
    where  s.estimate > candidate_limit / 25 and cardinality(s.words) < 5
  ),
  ranked as (
    select s.words, trim_array(s.words, 1) as shorter, s.estimate,
           row_number() over (order by s.idf desc, s.words) as rank
    from   word_set s
  ),
  running as (
    select r.words, r.shorter, r.rank,
           sum(r.estimate - coalesce(l.estimate, 0)) over (order by r.rank) as total
    from   ranked r
    left   join (select x.shorter, sum(x.estimate) from ranked x group by x.shorter)
                  as l(words, estimate) using (words)
  ),
  taken as (
    select b.words, b.shorter
    from   (select r.words, r.shorter, max(r.total) over (order by r.rank) as total
            from   running r) as b
    where  b.total <= candidate_limit - counted
  )
  select dimensions[1 : first - 1]
           || coalesce(array_agg(t.words[1]) filter (where cardinality(t.words) = 1), '{}'),
         coalesce(array_agg(t.words::text) filter (where cardinality(t.words) > 1), '{}')
  into   singles, sets
  from   taken t
  where  t.shorter not in (select x.words from taken x);
end;
$$;
comment on function pgrecall_internal._candidates is
'Which documents to score, about candidate_limit: those with any of singles, or with all '
'dimensions of one of sets (arrays, rarest first). Both are empty where no set of words is rare '
'enough.';

create or replace function pgrecall_internal._scoped_keys(
  bank_id text, fact_type text, dimensions integer[])
returns bigint[]
language sql immutable parallel safe
return array(
  select hashint8extended(
           d::bigint, pgrecall_internal._scope(_scoped_keys.bank_id, _scoped_keys.fact_type))
  from   unnest(dimensions) as d
);
comment on function pgrecall_internal._scoped_keys is
'Keys of lexemes in the lexical index, as _lexical_keys() makes them from a document.';

create or replace function pgrecall_internal._recheck_lexemes(
  bank pgrecall.bank, kind text, ids bigint[], lexemes text[])
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  config regconfig := bank.text_search_config::regconfig;
begin
  if kind = 'memory' then
    return array(
      select u.id
      from   unnest(ids) as u(id)
      cross  join lateral (
        select m.text, m.context, m.fact_key
        from   pgrecall.memory m
        where  m.bank_id = bank.bank_id and m.memory_id = u.id
        limit  1
      ) as d
      -- Lexemes of the text alone are cheaper than those of all fields.
      where  tsvector_to_array(to_tsvector(
               config, pgrecall_internal._spaced(pgrecall_internal._normalised(d.text))))
               && _recheck_lexemes.lexemes
         or  exists (
               select from pgrecall_internal._field_lexemes(
                 config, d.text, d.context, bank.context_weight, d.fact_key, bank.key_weight) as l
               where  l.lexeme = any (_recheck_lexemes.lexemes))
    );
  end if;
  return array(
    select u.id
    from   unnest(ids) as u(id)
    cross  join lateral (
      select row(x.*)::pgrecall.message as message
      from   pgrecall.message x
      where  x.bank_id = bank.bank_id and x.message_id = u.id
      limit  1
    ) as d
    where  exists (
             select from pgrecall_internal._field_lexemes(
               config, (d.message).text, pgrecall_internal._message_context(bank, d.message),
               bank.message_context_weight, null, 0) as l
             where  l.lexeme = any (_recheck_lexemes.lexemes))
  );
end;
$$;
comment on function pgrecall_internal._recheck_lexemes is
'Those of the documents that really contain one of the lexemes. A score may stem from another '
'lexeme of the same dimension.';

-- request/request.sql
-- A recall is resolved once, on entry, into one value of type pgrecall_internal.request: the row of
-- the bank, the options, the fact types, the filter compiled to a predicate, the entities that the
-- query names, its words and their IDF. Every arm and every later step takes this value; nothing is
-- parsed, looked up or compiled a second time in one recall.
--
-- _request() checks every argument of the recall family and raises their errors: RC001 bank, RC004
-- dimensions, RC005 model, RC006 vector, RC007 nothing to recall by, RC008 fact type, RC009 arm,
-- RC011 filter, 22023 value out of range. Names and words are looked up only where an arm that may
-- run needs them, by its row in arms().
create or replace function pgrecall_internal._to_halfvec(embedding anycompatible)
returns halfvec
language plpgsql immutable parallel unsafe
set search_path from current
as $$
begin
  if embedding is null then
    return null;
  elsif pg_typeof(embedding) = 'halfvec'::regtype then
    return embedding;
  end if;
  begin
    -- An assignment: it takes the casts of pgvector, or reads a text as '[0.1, 0.2]'.
    declare
      converted halfvec := embedding;
    begin
      return converted;
    end;
  exception when data_exception or program_limit_exceeded then
    raise exception using
      errcode = 'RC006',
      message = format('unusable embedding: %s', left(sqlerrm, 120)),
      hint    = 'Pass the finite numbers that the embedding model returned, as an array or as '
                '"[0.1, 0.2]".';
  end;
end;
$$;
comment on function pgrecall_internal._to_halfvec is
'An embedding of any type that clients send: halfvec, vector, an array of numbers, or text. '
'Errors: RC006.';

create or replace function pgrecall_internal._range_of_period(during pgrecall_internal.period)
returns tstzrange
language plpgsql immutable strict parallel safe
as $$
begin
  if isempty(during) then
    return 'empty';
  end if;
  -- Times are whole microseconds. What reads a window compares its first one.
  return tstzrange(
    lower(during) + (not lower_inc(during))::integer * interval '1 microsecond',
    upper(during), case when upper_inc(during) then '[]' else '[)' end);
end;
$$;
comment on function pgrecall_internal._range_of_period is
'A window as a tstzrange that holds its lower bound.';

create or replace function pgrecall_internal._parsed_request(
  request pgrecall_internal.request, has_messages boolean)
returns pgrecall_internal.request
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  parsed   record;
  expanded text[] := '{}';
begin
  request.words := request.query;
  request.phrases := '{}';
  request.excluded := '{}';
  -- A character outside ASCII may be a form of a quote or a dash.
  if request.query ~ '["-]' or octet_length(request.query) > length(request.query) then
    parsed := pgrecall_internal._parsed_query(request.query);
    request.words := parsed.words;
    request.phrases := parsed.phrases;
    request.excluded := parsed.excluded;
  end if;
  request.lexemes := array(
    select l.lexeme
    from   pgrecall.lexemes((request.bank).text_search_config::regconfig, request.words) as l
  );
  if jsonb_typeof(request.options -> 'terms') = 'array' then
    expanded := array(
      select l.lexeme
      from   pgrecall.lexemes((request.bank).text_search_config::regconfig, (
               select string_agg(t, E'\n')
               from   jsonb_array_elements_text(request.options -> 'terms') as t)) as l
      where  l.lexeme <> all (request.lexemes)
    );
  end if;
  request.memory_terms := pgrecall_internal._terms(
    (request.bank).bank_id, 'memory', request.lexemes, expanded);
  if has_messages then
    request.message_terms := pgrecall_internal._terms(
      (request.bank).bank_id, 'message', request.lexemes, expanded);
  end if;
  request.lexemes := request.lexemes || expanded;
  return request;
end;
$$;
comment on function pgrecall_internal._parsed_request is
'A request with the words of its query and of option terms, their IDF, and its phrases. '
'message_terms stays null where the bank holds no messages.';

create or replace function pgrecall_internal._window_filter(
  during tstzrange, time_basis text, is_events boolean)
returns jsonb
language plpgsql stable parallel safe
as $$
declare
  -- Ranges in a filter are half-open: an inclusive upper bound is extended.
  starts timestamptz := lower(during);
  ends   timestamptz := upper(during) + upper_inc(during)::integer * interval '1 microsecond';
  happened jsonb := jsonb_build_array('overlaps', 'occurred', jsonb_build_array(starts, ends));
  -- An occurrence spans the open side of a window only if it is open on that side too, that is,
  -- reaches beyond every finite time.
  before jsonb := jsonb_build_array(
    null, coalesce(to_jsonb(nullif(starts, '-infinity')), '"4714-11-24T00:00:00Z BC"'));
  after  jsonb := jsonb_build_array(
    coalesce(to_jsonb(nullif(ends, 'infinity')), '"294276-12-31T23:59:59.999999Z"'), null);
  said   jsonb := '["and", ["is null", "occurred"]]';
begin
  if isempty(during) then
    return '["in", "memory_id", []]';
  elsif is_events then
    happened := jsonb_build_array('and', happened, jsonb_build_array('not', jsonb_build_array(
      'and', jsonb_build_array('overlaps', 'occurred', before),
      jsonb_build_array('overlaps', 'occurred', after))));
  end if;
  if time_basis = 'occurred' then
    return happened;
  end if;
  if starts is not null then
    said := said || jsonb_build_array(jsonb_build_array('>=', 'mentioned_at', starts));
  end if;
  if ends is not null then
    said := said || jsonb_build_array(jsonb_build_array('<', 'mentioned_at', ends));
  end if;
  return jsonb_build_array('or', happened, said);
end;
$$;
comment on function pgrecall_internal._window_filter is
'The condition of time_mode = filter: occurred overlaps the window. With time_basis = mentioned, a '
'memory without occurred meets it if its mentioned_at lies in the window. is_events: occurred must '
'begin, end or lie in the window, and not just span it.';

create or replace function pgrecall_internal._whole_filter(
  filter jsonb, tags text[], during tstzrange, options jsonb)
returns jsonb
language sql stable parallel safe
-- Appending an array appends its elements. Without a condition only "and" is left.
return nullif(
  '["and"]'
  || case when filter is null then '[]' else jsonb_build_array(filter) end
  || case when tags is null then '[]'
          else jsonb_build_array(jsonb_build_array('overlaps', 'tags', to_jsonb(tags))) end
  || case when options ->> 'entity' is null then '[]'
          else jsonb_build_array(jsonb_build_array('=', 'entity', options -> 'entity')) end
  || case when during is null or options ->> 'time_mode' = 'boost' then '[]'
          else jsonb_build_array(pgrecall_internal._window_filter(
            during, options ->> 'time_basis', options ->> 'time_mode' = 'events')) end,
  '["and"]');
comment on function pgrecall_internal._whole_filter is
'The filter, the tags, option entity and the window of time_mode = filter as one condition. Null: '
'there is none.';

create or replace function pgrecall_internal._hinted_request(request pgrecall_internal.request)
returns pgrecall_internal.request
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  hinted text[];
begin
  select array_agg(h.fact_type) filter (where h.fact_type = any (request.all_types)),
         coalesce('only ' || string_agg(
                    format('%s, by the word "%s"', h.fact_type, trim(h.matched, '*')), '; ')
                    filter (where h.fact_type = any (request.all_types)),
                  'all types, by the words "'
                  || min(trim(h.matched, '*')) filter (where h.fact_type is null) || '"')
  into   hinted, request.note
  from   pgrecall_internal._type_hints(request.options -> 'type_hints', request.query) as h;
  request.fact_types := coalesce(hinted, request.all_types);
  return request;
end;
$$;
comment on function pgrecall_internal._hinted_request is
'A request narrowed to the fact types that the words of its query hint at.';

create or replace function pgrecall_internal._request(
  bank       text,
  query      text,
  embedding  halfvec default null,
  during     tstzrange default null,
  fact_types text[] default null,
  tags       text[] default null,
  filter     text default null,
  top_k      bigint default 10,
  as_of      timestamptz default null,
  model      text default null,
  options    jsonb default null,
  arm        text default null)
returns pgrecall_internal.request
language plpgsql stable parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  request      pgrecall_internal.request;
  needs        text[] := '{names,terms}';
  is_expanded  boolean;
  is_read      boolean;  -- whether an arm may need the words of the query
  has_names    boolean;  -- of the bank
  has_messages boolean;
begin
  request.bank := pgrecall_internal._bank(bank);
  request.options := pgrecall_internal._bank_options(request.bank, embedding is not null);
  if options <> '{}' then
    request.options := pgrecall_internal._resolved_options(request.options, options);
  end if;
  -- Only the beginning of a very long text is searched.
  request.query := left(coalesce(btrim(query, E' \t\r\n'), ''), 16000);
  if octet_length(request.query) > length(request.query) then
    request.query := pgrecall_internal._normalised(request.query);
  end if;
  request.embedding := embedding;
  if request.options ->> 'hypothetical' is not null then
    request.hypothetical := pgrecall_internal._to_halfvec(request.options ->> 'hypothetical');
  end if;
  is_expanded := 'array' in (jsonb_typeof(request.options -> 'keys'),
                             jsonb_typeof(request.options -> 'terms'));
  during := coalesce(
    pgrecall_internal._range_of_period(
      (request.options ->> 'window')::pgrecall_internal.period),
    during);
  request.during := during;
  if arm is null and request.query = '' and not is_expanded
     and num_nonnulls(embedding, request.hypothetical, during) = 0
  then
    raise exception using
      errcode = 'RC007',
      message = 'nothing to recall by: the query is empty and there is no embedding',
      hint    = 'Pass a question, an embedding =>, a window during => or the option keys or terms.';
  end if;
  if length(query) > length(request.query) then
    perform pgrecall_internal._check_text('query', query);
  end if;
  if num_nonnulls(embedding, model) > 0 then
    request.embedding := pgrecall_internal._checked_embedding(
      request.bank, 'embedding', embedding, model);
  end if;
  if request.hypothetical is not null then
    request.hypothetical := pgrecall_internal._checked_embedding(
      request.bank, 'hypothetical', request.hypothetical, model);
  end if;
  if (request.bank).embedding_mean is not null then
    request.embedding := pgrecall_internal._centred(request.bank, 'embedding', embedding);
    request.hypothetical := pgrecall_internal._centred(
      request.bank, 'hypothetical', request.hypothetical);
  end if;
  if top_k between 1 and 1000 is not true then
    perform pgrecall_internal._check_range('top_k', top_k, 1, 1000);
  end if;
  request.top_k := top_k;
  request.as_of := coalesce(as_of, now());
  request.depth := (request.options ->> 'depth')::integer;
  request.depth := case request.options ->> 'budget'
    when 'low' then least(request.depth, greatest(top_k, request.depth / 2))
    when 'high' then least(2 * request.depth, 10000)
    else request.depth
  end;
  -- A default must not limit what the call asks for.
  if not (request.bank).options || coalesce(options, '{}') ? 'depth' then
    request.depth := greatest(
      request.depth, least(top_k + (request.options ->> 'skip')::bigint, 10000));
  end if;
  if arm is not null then
    request.arms := array[arm];
  elsif jsonb_typeof(request.options -> 'arms') = 'array' then
    request.arms := array(
      select a from jsonb_array_elements_text(request.options -> 'arms') as a);
  end if;
  request.all_types := pgrecall_internal._fact_types(bank, fact_types);
  request.is_whole := fact_types is null;
  request.fact_types := request.all_types;
  if tags is not null then
    perform pgrecall_internal._check_elements('tags', tags, 'no condition');
  end if;
  request.filter := pgrecall_internal._parsed_filter(filter);
  request.filter := pgrecall_internal._whole_filter(
    request.filter, tags, during, request.options);
  request.visible_sql := pgrecall_internal._visible_sql(request.filter);

  if request.arms is not null then
    needs := array(
      select n from pgrecall.arms() as a, unnest(a.needs) as n
      where  a.arm = any (request.arms));
  end if;
  is_read := (request.query <> '' or is_expanded) and (arm is null or needs && '{terms,names}');
  if is_read then
    select (select true from pgrecall.entity_alias a
            where  a.bank_id = _request.bank
            order  by a.alias
            limit  1),
           (select true from pgrecall.message m
            where  m.bank_id = _request.bank
            order  by m.message_id
            limit  1)
    into   has_names, has_messages;
  end if;
  request.named := '{}';
  if request.query <> '' and has_names
     and (arm is null and ((request.options ->> 'named_boost')::double precision > 0
                           or during is not null)
          or 'names' = any (needs))
  then
    request.named := array(
      select n from pgrecall_internal._named_entities(bank, request.query) as n);
  end if;
  if fact_types is null and (request.options ->> 'use_hints')::boolean then
    request := pgrecall_internal._hinted_request(request);
  end if;
  if is_read then
    request := pgrecall_internal._parsed_request(request, has_messages);
  end if;
  if request.named <> '{}' then
    request.about := pgrecall_internal._about(request);
  end if;
  return request;
end;
$$;
comment on function pgrecall_internal._request is
'Checks the arguments of a recall, fills in the defaults of the bank, and looks up all that the '
'arms need. arm: the arm that is called alone; the query may then be empty. Errors: those of '
'hybrid_recall().';

create or replace function pgrecall_internal._are_visible(
  request pgrecall_internal.request, memory_ids bigint[])
returns boolean
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return request.filter is null and cardinality(memory_ids) = (
    select count(*)
    from   pgrecall.memory m
    where  m.bank_id = (request.bank).bank_id and m.memory_id = any (memory_ids)
      and  array_position(request.fact_types, m.fact_type) is not null
      and  m.valid_from <= request.as_of
      and  (m.valid_to is null or m.valid_to > request.as_of));
end;
$$;
comment on function pgrecall_internal._are_visible is
'Whether all of the memories would be among _visible_places(), as nearly always. It takes a third '
'of the time, and is not asked where there is a filter.';

create or replace function pgrecall_internal._visible_places(
  request pgrecall_internal.request, memory_ids bigint[], most integer)
returns integer[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  places integer[];
  tried  integer;
begin
  if cardinality(memory_ids) > 0 is not true then
    return '{}';
  end if;
  -- The first ones are nearly always enough. If not, all are checked.
  foreach tried in array array[most, cardinality(memory_ids)] loop
    if request.filter is null then
      places := array(
        select u.n
        from   unnest(memory_ids[1:tried]) with ordinality as u(id, n)
        cross  join lateral (
          select from pgrecall.memory m
          where  m.bank_id = (request.bank).bank_id and m.memory_id = u.id
            and  (request.fact_types is null
                  or array_position(request.fact_types, m.fact_type) is not null)
            and  m.valid_from <= request.as_of
            and  (m.valid_to is null or m.valid_to > request.as_of)
          limit  1
        ) as visible
        order  by u.n
        limit  most
      );
    else
      execute format(
        $sql$
          select array(
            select u.n
            from   unnest($4) with ordinality as u(id, n)
            cross  join lateral (
              select from pgrecall.memory m
              where  m.bank_id = $1 and m.memory_id = u.id
                and  ($5 is null or array_position($5, m.fact_type) is not null) and %s
              limit  1
            ) as visible
            order  by u.n
            limit  $6
          )
        $sql$, request.visible_sql)
      into  places
      using (request.bank).bank_id, request.as_of, request.filter, memory_ids[1:tried],
            request.fact_types, most;
    end if;
    exit when cardinality(places) = most or tried >= cardinality(memory_ids);
  end loop;
  return places;
end;
$$;
comment on function pgrecall_internal._visible_places is
'The positions, from 1, of the first most memories that have one of fact_types (any type where '
'that is null), are valid as of the recall, and pass its filter.';

create or replace function pgrecall_internal._name_weights(request pgrecall_internal.request)
returns table (entity_id bigint, mentions bigint, weight double precision)
language sql stable parallel safe rows 5
begin atomic
  -- Called in a from clause, so that it is inlined.
  select q.entity_id, q.mentions,
         q.confidence / 6 * least(3, greatest(1, ln(
           greatest((request.memory_terms).documents, 1) / greatest(q.mentions, 1)::float8)
           / ln(2::float8)))
  from   unnest(request.named) as q;
end;
comment on function pgrecall_internal._name_weights is
'How much each name in a query says: the confidence in its entity times a sixth of the binary '
'logarithm of how many facts there are for each that mentions it, at least a sixth and at most a '
'half.';

create or replace function pgrecall_internal._about(request pgrecall_internal.request)
returns pgrecall_internal.memories_about
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  about pgrecall_internal.memories_about;
begin
  select array_agg(f.memory_id), array_agg(f.weight)
  into   about
  from (
    select m.memory_id, sum(e.weight) as weight
    from (
      select n.entity_id, n.weight
      from   pgrecall_internal._name_weights(request) as n
      where  n.mentions < least(1000, (request.memory_terms).documents / 4.0)
      order  by n.weight desc, n.mentions, n.entity_id
      limit  10
    ) as e
    cross  join lateral (
      select x.memory_id
      from   pgrecall.mention x
      where  x.bank_id = (request.bank).bank_id and x.entity_id = e.entity_id
      limit  1000
    ) as m
    group  by m.memory_id
    order  by 2 desc, 1 desc
    limit  1000
  ) as f;
  request.fact_types := request.all_types;  -- to which they may be widened
  if not pgrecall_internal._are_visible(request, about.memory_ids) then
    select array_agg(about.memory_ids[p]), array_agg(about.weights[p])
    into   about
    from   unnest(pgrecall_internal._visible_places(request, about.memory_ids, 1000)) as p;
  end if;
  return about;
end;
$$;
comment on function pgrecall_internal._about is
'The memories of a request that mention an entity named in the query which fewer than 1,000 '
'mention and less than a quarter of all, those first that mention several: at most 1,000, of ten '
'entities. Among the nearest of all memories there may be few of them.';

-- arms/call.sql
-- How an arm is called: by name, from the run of a recall or alone.
create or replace function pgrecall_internal._arm_hits(
  arm text, result pgrecall_internal.arm_result)
returns setof pgrecall.arm_hit
language sql immutable parallel safe rows 100
begin atomic
  -- Called in a from clause, so that it is inlined. Equal scores share a rank, because the order of
  -- storing is no evidence.
  select arm, u.id, (rank() over (order by u.score desc))::integer, u.score, null::real,
         -- A path of one element is the hit itself.
         case when u.path like E'%\x1f%' then to_jsonb(u.path) end, (result).background
  from   unnest((result).memory_ids, (result).scores, (result).paths)
           with ordinality as u(id, score, path, n)
  order  by u.n;
end;
comment on function pgrecall_internal._arm_hits is 'The hits of an arm with their ranks.';

create or replace function pgrecall_internal._call_arm(
  arm text, request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean,
  out result pgrecall_internal.arm_result, out hits pgrecall.arm_hit[])
language plpgsql stable parallel unsafe
set search_path from current
as $$
begin
  -- Dynamic, so that no arm is named here. The name is that of a row of the registry.
  execute format('select * from pgrecall_internal.%I($1, $2, $3)', format('_%s_arm', arm))
  into    result
  using   request, before, is_planned;
  hits := '{}';
  if result.is_run and not is_planned then
    hits := array(select h from pgrecall_internal._arm_hits(arm, result) as h);
  end if;
end;
$$;
comment on function pgrecall_internal._call_arm is
'Calls the worker of an arm. Returns its result, and its hits with ranks.';

create or replace function pgrecall_internal._ranked(
  arm text, request pgrecall_internal.request)
returns setof pgrecall.ranked
language plpgsql stable parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select h.memory_id, h.rank, h.score
  from   unnest((pgrecall_internal._call_arm(arm, request, '{}', false)).hits) as h;
end;
$$;
comment on function pgrecall_internal._ranked is 'The rows of an arm that is called alone.';

create or replace function pgrecall_internal._named_hits(
  request pgrecall_internal.request, hits pgrecall.arm_hit[])
returns pgrecall.arm_hit[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  -- A search costs as much as ten mentions read.
  most constant integer := least(10 * cardinality(hits), 999);
begin
  if request.named = '{}' or hits = '{}' then
    return hits;
  end if;
  return array(
    with hit as materialized (
      select *
      from   unnest(hits) with ordinality
               as h(arm, memory_id, rank, score, named, via, background, place)
    ),
    entity as materialized (
      select n.entity_id, n.mentions, n.weight from pgrecall_internal._name_weights(request) as n
    ),
    named as materialized (
      select m.memory_id, least(1, sum(e.weight))::real as weight
      from   entity e
      cross  join lateral (
        -- The mentions of the entity, or if these are many more than the hits, one search for each
        -- hit.
        select x.memory_id
        from   pgrecall.mention x
        where  e.mentions <= most and x.bank_id = (request.bank).bank_id
          and  x.entity_id = e.entity_id
        union  all
        select h.memory_id
        from   (select distinct x.memory_id from hit x) as h
        where  e.mentions > most and coalesce(
                 (select true
                  from   pgrecall.mention x
                  where  x.bank_id = (request.bank).bank_id and x.memory_id = h.memory_id
                    and  x.entity_id between e.entity_id and e.entity_id
                  limit  1), false)
      ) as m
      group  by m.memory_id
    )
    select (h.arm, h.memory_id, h.rank, h.score,
            greatest(n.weight, f.weight, case when h.via is not null then (
              select max(e.weight) from entity e
              where  'e' || e.entity_id = o.element) end)::real,
            h.via, h.background)::pgrecall.arm_hit
    from   hit h
    left   join named n on n.memory_id = h.memory_id
    -- A path is about whom its origin names; what was only said before or after need not be.
    cross  join lateral (
      select case when h.via #>> '{}' !~ E'f[0-9]+\x1ff'
                  then split_part(h.via #>> '{}', E'\x1f', 1) end as element
    ) as o
    left   join named f
      on   f.memory_id = case when o.element like 'f%' then substr(o.element, 2)::bigint end
    order  by h.place
  );
end;
$$;
comment on function pgrecall_internal._named_hits is
'The hits, each with the weights of the names whose entities its memory mentions, summed, at most '
'1, or those of a memory or an entity from which a path of mentions, relations and causes leads to '
'it.';

create or replace function pgrecall_internal._doubted_weights(
  options jsonb, arms pgrecall_internal.arm_found[])
returns jsonb
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  weights  constant jsonb := options -> 'weights';
  doubt    constant double precision := (options ->> 'doubt')::double precision;
  arm      pgrecall_internal.arm_found;
  apart    double precision;
  words    double precision;
  meaning  double precision;
  sureness double precision;
  graph    double precision := 0;
  changed  jsonb := '{}';
begin
  foreach arm in array arms loop
    apart := 1 - arm.eleventh / nullif(arm.best, 0);
    if arm.arm = 'lexical' then
      words := apart;
      -- Beside embeddings that know few words of the question, words are surer.
      sureness := greatest(0, least(1, greatest(
        (apart - 0.5) / 0.2, 8 * (0.75 - (options ->> 'known_words')::double precision))));
    elsif arm.background < 'infinity' and arm.eleventh > 0 then
      meaning := greatest(meaning, apart);
    elsif arm.is_graph then
      graph := (weights ->> arm.arm)::double precision * least(1, arm.best / arm.certain_at);
    end if;
  end loop;
  if doubt = 0 or sureness is null then
    return weights;
  end if;
  foreach arm in array arms loop
    if arm.arm = 'lexical' and arm.eleventh > 0 and words < 2 * meaning then
      changed := changed || jsonb_build_object(
        arm.arm,
        (weights ->> arm.arm)::double precision * (1 - doubt * (1 - words / (2 * meaning))));
    elsif arm.background is not null and arm.best > 0 then
      changed := changed || jsonb_build_object(
        arm.arm,
        (weights ->> arm.arm)::double precision
        * (1 - doubt * case arm.background when 'infinity' then 1 else sureness * (
            1 - greatest(0, least(1, (1 - arm.background / arm.best - 0.3) / 0.3))) end));
    elsif arm.finds = 'message' and graph > 0 then
      -- The graph votes again for what others found, as far as it is certain, but leads to no
      -- message. Therefore messages get a share of its weight.
      changed := changed || jsonb_build_object(
        arm.arm, (weights ->> arm.arm)::double precision * (1 + graph));
    end if;
  end loop;
  return weights || changed;
end;
$$;
comment on function pgrecall_internal._doubted_weights is
'The weights in options, lowered for words or embeddings where they can hardly distinguish '
'memories and the '
'others can. Certainty of embeddings falls from 1 to 0 as the best similarity, less its '
'background, falls from 0.6 to 0.3 of itself. Sureness of words rises from 0 to 1 as the lexical '
'score falls by 0.5 to 0.7 of itself up to the eleventh hit, or as the share of the words of the '
'query that its embedding knows falls from 0.75 to 0.625. The weight of an arm that compares '
'embeddings is multiplied by 1 - doubt * sureness * (1 - certainty), by 1 - doubt where its '
'background is infinite. That of the lexical arm is multiplied by 1 - doubt * (1 - w / (2 m)) '
'where that is less than 1: w and m are by how much of themselves the lexical score and the '
'similarity fall up to the eleventh hit, of eleven at least; m is not known beside an infinite '
'background.';

create or replace function pgrecall_internal._arms_found(hits pgrecall.arm_hit[])
returns pgrecall_internal.arm_found[]
language sql immutable parallel safe
return array(
  select (h.arm, a.finds, a.needs = '{names}', a.certain_at, h.best, h.worst, h.eleventh,
          h.background)::pgrecall_internal.arm_found
  from (
    select x.arm, max(x.score) as best, min(x.score) as worst,
           case when count(*) > 10 then min(x.score) filter (where x.rank <= 11) else 0 end
             as eleventh,
           max(x.background) as background
    from   unnest(hits) as x
    group  by x.arm
  ) as h
  left   join pgrecall.arms() as a on a.arm = h.arm
);
comment on function pgrecall_internal._arms_found is 'The arms that have any of the hits.';

-- arms/key.sql
-- The key arm: memories whose fact_key occurs in the query, the strongest signal.
--
-- A key is compared as a whole, in any case and Unicode form: every run of one to five words of the
-- query is looked up in the index on keys, and so is the whole query. Words end at spaces and, in a
-- second reading, at signs within them that identifiers seldom have, as in "node.js's" and
-- "pool.size=30", and before the number of a line or version, as in "posting.py:42". A name with a
-- number is also looked up as others write it: "ADR 31" is adr-31. A longer key is more specific,
-- so its length is the score.
create or replace function pgrecall_internal._key_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- The cached plan must use the index on keys.
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
  result pgrecall_internal.arm_result;
  asked  text := lower(request.query);
  signs  constant text :=  -- of the second reading
    '(?<=[^[:space:]])[^[:alnum:][:space:]._+#@/$%~:-]+(?=[[:alnum:]_])|'
    '(?<=[[:alpha:]])(?::l?|@v?|#l)(?=[0-9])';
  numbered constant text :=  -- a name with a number, both as wholes
    '(?<![[:alnum:]._+#@/$%~:-])([[:alpha:]]+(?:[._/-][[:alpha:]]+)*)(?:[[:space:]]+|[._#/:-])?'
    '([0-9]+(?:[.-][0-9]+)*)(?![[:alnum:]_+@/$%~]|[._#/:-][[:alnum:]])';
begin
  result.is_run := coalesce((
    select true from pgrecall.memory m
    where  m.bank_id = (request.bank).bank_id and m.fact_key is not null
    order  by lower(pgrecall_internal._normalised(m.fact_key))
    limit  1
  ), false);
  if not result.is_run then
    result.reason := 'no fact of the bank has a key';
    return result;
  elsif is_planned then
    result.reason := 'the bank has facts with keys';
    return result;
  end if;
  with key as (
    select k.key, bool_or(k.is_given) as is_given
    from (
      -- The whole query, and runs of one to five of its words, with and without the punctuation
      -- around them.
      select trim(asked), false
      union all
      select unnest(array[
               w.a, w.a || w.b, w.a || w.b || w.c, w.a || w.b || w.c || w.d,
               w.a || w.b || w.c || w.d || w.e,
               regexp_replace(w.head, '[^[:alnum:]_+#/$%-]+$', ''),
               w.head || w.b_tail, w.head || w.b || w.c_tail, w.head || w.b || w.c || w.d_tail,
               w.head || w.b || w.c || w.d || w.e_tail]), false
      from (
        select left(asked, 2000)
        union all
        select regexp_replace(left(asked, 2000), signs, ' ', 'g') where asked ~ signs
      ) as t(reading)
      cross  join lateral (
        -- spaced: the words, each after a space. heads: without the punctuation before them. tails:
        -- each after a space, without the punctuation behind it.
        select array_agg(x.word order by x.n) as words,
               array_agg(' ' || x.word order by x.n) as spaced,
               array_agg(regexp_replace(x.word, '^[^[:alnum:]._+#@/$~-]+', '') order by x.n)
                 as heads,
               array_agg(' ' || regexp_replace(x.word, '[^[:alnum:]_+#/$%-]+$', '') order by x.n)
                 as tails
        from   unnest((regexp_split_to_array(t.reading, '\s+'))[:200])
                 with ordinality as x(word, n)
      ) as l
      cross  join lateral unnest(
        l.words, l.spaced[2:], l.spaced[3:], l.spaced[4:], l.spaced[5:], l.heads, l.tails[2:],
        l.tails[3:], l.tails[4:], l.tails[5:])
          as w(a, b, c, d, e, head, b_tail, c_tail, d_tail, e_tail)
      union all
      select n.parts[1] || s.sign || n.parts[2], false
      from   regexp_matches(left(asked, 2000), numbered, 'g') as n(parts)
      cross  join unnest(array['', ' ', '-', '.', '_', '#', '/', ':', '@']) as s(sign)
      union all
      select lower(pgrecall_internal._normalised(btrim(x, E' \t\r\n'))), true
      from   jsonb_array_elements_text(case
               when jsonb_typeof(request.options -> 'keys') = 'array'
               then request.options -> 'keys' else '[]' end) as x
    ) as k(key, is_given)
    group  by k.key
  ),
  found as (
    select array_agg(s.memory_id order by s.score desc, s.memory_id desc) as ids,
           array_agg(s.score order by s.score desc, s.memory_id desc) as scores
    from (
      -- Keys named by the call outrank keys that occur in the query.
      select m.memory_id,
             case when k.is_given then 1000 else length(m.fact_key) end::double precision as score
      from   key k
      cross  join lateral (
        -- Only one index provides this range in this order, however small the planner believes the
        -- bank to be.
        select x.memory_id, x.fact_key
        from   pgrecall.memory x
        where  x.bank_id = (request.bank).bank_id and x.fact_key is not null
          and  lower(pgrecall_internal._normalised(x.fact_key)) between k.key and k.key
          and  coalesce(x.valid_to, 'infinity'::timestamptz) > request.as_of
        order  by lower(pgrecall_internal._normalised(x.fact_key))
        offset 0
      ) as m
    ) as s
  )
  select coalesce(array_agg(f.ids[p.place] order by p.n), '{}'),
         coalesce(array_agg(f.scores[p.place] order by p.n), '{}')
  into   result.memory_ids, result.scores
  from   found f
  cross  join lateral unnest(pgrecall_internal._visible_places(request, f.ids, request.depth))
           with ordinality as p(place, n);
  return result;
end;
$$;
comment on function pgrecall_internal._key_arm is
'Worker of the key arm: the memories whose key is among the option keys, with score 1,000, and '
'those whose key occurs in the query, the longest first.';

create or replace function pgrecall.key_arm(
  bank       text,
  query      text,
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100)
returns setof pgrecall.ranked
language plpgsql volatile parallel unsafe rows 10
set search_path from current
as $$
begin
  return query
  select * from pgrecall_internal._ranked('key', pgrecall_internal._request(
    bank, query, fact_types => fact_types, filter => filter, as_of => as_of,
    options => jsonb_build_object('depth', depth), arm => 'key'));
end;
$$;
comment on function pgrecall.key_arm is
'Memories whose fact_key occurs in the query as whole words, in any case and Unicode form: a run '
'of one to five of the first 200 words, or the whole query. Words end at spaces, and also at signs '
'within them other than ._+#@/$%~:-, so that node.js stands in "node.js''s", and before the number '
'of a line or version: posting.py stands in "posting.py:42". A name with a number may be joined by '
'another sign or space: "ADR 31" is adr-31. score is the length of the key: a longer key is more '
'specific. Errors: RC001, RC008, RC011, 22023.';

-- arms/semantic.sql
-- The semantic arm: memories whose embeddings are nearest to that of the query, by cosine.
--
-- A bank is searched exactly, through the btree on bank, type and model, until there is a partial
-- HNSW index of all its vectors, as index_plan() proposes it; then that index is used where it is
-- cheaper. More candidates are read than needed, because ended memories, and several questions of
-- one memory, take places: a fifth more by index, where each one costs, twice as many exactly, by
-- signs or leading elements five times, 100 at least. Where a filter leaves too few, the search is
-- exact, up to option exact_limit. A memory with anticipated questions counts once, by its best
-- vector.

-- A hub is a vector that is near all questions, as the mean of many questions is. Facts lie apart
-- from questions. Where the cosine of a fact with the direction of questions exceeds the median of
-- the bank by more than five standard deviations, four times the excess is taken off its
-- similarity. The deviation is 1.48 times the distance from the median to the quartile farther from
-- questions, which hubs in the sample move little. Of 8,500 facts measured, three have an excess. A
-- vector just below this limit is not lowered, nor is one that is near a single question.
create or replace function pgrecall_internal._lower_hubs(
  bank pgrecall.bank, direction halfvec, most double precision, floor double precision,
  inout memory_ids bigint[], inout scores double precision[])
language plpgsql stable parallel safe
set search_path from current
set enable_seqscan = off
as $$
declare
  hubs     bigint[];
  excesses double precision[];
begin
  select array_agg(c.memory_id), array_agg(c.excess)
  into   hubs, excesses
  from (
    select e.memory_id, 1 - (e.embedding <=> direction) - most as excess
    from   pgrecall.embedding e
    where  e.bank_id = bank.bank_id and e.memory_id = any (_lower_hubs.memory_ids)
      and  e.model = bank.embedding_model and e.kind = 'text'
  ) as c
  where c.excess > 0;
  if hubs is not null then
    select coalesce(array_agg(c.id order by c.score desc, c.id desc), '{}'),
           coalesce(array_agg(c.score order by c.score desc, c.id desc), '{}')
    into   memory_ids, scores
    from (
      select u.id, u.score - 4 * coalesce(h.excess, 0) as score
      from   unnest(_lower_hubs.memory_ids, _lower_hubs.scores) as u(id, score)
      left   join unnest(hubs, excesses) as h(id, excess) on h.id = u.id
    ) as c
    where c.score >= floor;
  end if;
end;
$$;
comment on function pgrecall_internal._lower_hubs is
'Hits of the semantic arm, best first, after the excess of hubs is taken off their scores. most: '
'the highest cosine with direction that has no excess.';

create or replace function pgrecall_internal._semantic_search(
  request   pgrecall_internal.request,
  embedding halfvec,
  is_exact  boolean default false,
  out memory_ids bigint[],
  out scores     double precision[],
  out background double precision,
  out note       text,
  out hint       text)
language plpgsql stable parallel unsafe
set search_path from current
set jit = off
-- Each branch has one right plan, which must not depend on statistics.
set enable_seqscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
set hnsw.ef_search = 100
set hnsw.iterative_scan = relaxed_order
set hnsw.max_scan_tuples = 20000
as $$
declare
  bank        pgrecall.bank := request.bank;
  filter      jsonb := request.filter;
  depth       integer := request.depth;
  searched    text := coalesce(bank.embedding_model, '');  -- the model
  floor       double precision := (request.options ->> 'similarity_floor')::double precision;
  named_boost double precision := (request.options ->> 'named_boost')::double precision;
  low         double precision := bank.low_cosine;
  high        double precision := bank.high_cosine;
  exact_limit bigint := (request.options ->> 'exact_limit')::bigint;
  -- Candidates by signs or leading elements are compared again.
  fetched     bigint := greatest(
    100, depth * case bank.vector_search when 'full' then 1 else 5 end);
  is_whole    boolean := request.is_whole and request.fact_types = request.all_types;
  hnsw        record;
  needed      bigint;
  counted     bigint;
  by_index    boolean := false;
  unused      text;
  statement   text;
  found_ids   bigint[];
  distances   double precision[];
  horizon     double precision;
  is_short    boolean;
  are_questions boolean;
  about       pgrecall_internal.memories_about := request.about;
  direction   halfvec := case when bank.embedding_mean is null then
    pgrecall_internal._question_direction(bank.embedding_model, bank.embedding_dimensions) end;
  most        double precision;
begin
  memory_ids := '{}';
  scores := '{}';
  if bank.embedding_dimensions is null or request.fact_types = '{}' then
    return;
  end if;
  if not is_exact then
    hnsw := pgrecall_internal._hnsw_index(bank);
    if hnsw.index_name is not null then
      -- An index candidate costs about as much as 20 sequential comparisons, and some are of types
      -- that are not searched. Their share is that among 64 memories from all over the bank.
      needed := ceil(sqrt(20.0 * fetched * hnsw.elements));
      counted := hnsw.elements * case when is_whole then 1 else (
        select coalesce(avg((s.fact_type = any (request.fact_types))::integer), 0)
        from (
          select min(x.memory_id) as first, max(x.memory_id) - min(x.memory_id) + 1 as ids
          from   pgrecall.memory x
          where  x.bank_id = bank.bank_id
        ) as r
        cross  join generate_series(1, 64) as n
        cross  join lateral (
          select m.fact_type
          from   pgrecall.memory m
          where  m.bank_id = bank.bank_id
            and  m.memory_id >= r.first + abs(hashint8extended(n, 0) % r.ids)
          order  by m.memory_id
          limit  1
        ) as s) end;
      by_index := counted >= needed;
      if not by_index then
        unused := format('by index from %s vectors on',
                         case when is_whole then 20 * fetched else needed end);
      end if;
    end if;
  end if;
  if filter is null and bank.vector_search = 'full' then
    -- Leaves room for ended memories, which are removed afterwards; with a filter, the search
    -- itself leaves them out.
    fetched := fetched * case when by_index then 1.2 else 2 end;
  end if;
  if by_index then
    perform set_config('hnsw.ef_search',
                       coalesce(request.options ->> 'ef_search', least(1000, fetched)::text), true),
            set_config('hnsw.max_scan_tuples',
                       greatest(fetched, least(20000, hnsw.elements / 20))::text, true);
  end if;

  loop
    is_short := false;
    if filter is null and not by_index then
      -- The usual search: a static statement, planned once a session. Equal types, rather than any
      -- of them, leave the planner one index, whatever it takes the bank for.
      select array_agg(n.memory_id), array_agg(n.score), bool_or(n.kind = 'question')
      into   memory_ids, scores, are_questions
      from (
        select x.memory_id, x.kind,
               pgrecall_internal._similarity(1 - x.distance, low, high) as score
        from   unnest(request.fact_types) as t(fact_type)
        cross  join lateral (
          select e.memory_id, e.kind, e.embedding <=> _semantic_search.embedding as distance
          from   pgrecall.embedding e
          where  e.bank_id = bank.bank_id and e.fact_type = t.fact_type and e.model = searched
          offset 0
        ) as x
        order  by x.distance, x.memory_id desc
        limit  fetched
      ) as n
      where  n.score >= floor;
      horizon := scores[fetched];
      if are_questions then
        select array_agg(u.id order by u.score desc, u.id desc),
               array_agg(u.score order by u.score desc, u.id desc)
        into   memory_ids, scores
        from (
          select x.id, max(x.score) as score
          from   unnest(memory_ids, scores) as x(id, score)
          group  by x.id
        ) as u;
      end if;
      memory_ids := coalesce(memory_ids, '{}');
      scores := coalesce(scores, '{}');
    else
      statement := case when by_index then
        -- The inner order is by the indexed expression, whose dimensions are a constant. Whole
        -- vectors rerank its candidates.
        format(
          $sql$
            select n.memory_id, n.embedding <=> $5 as distance
            from (
              select e.memory_id, e.embedding
              from   pgrecall.embedding e
              where  e.bank_id = $1 and e.model = $6 and %s %s %s
              order  by %s %s %s
              limit  $7
            ) as n
          $sql$,
          pgrecall_internal._hnsw_scope('hashtextextended($1, 0)', 'hashtextextended($6, 0)'),
          case when not is_whole then 'and e.fact_type = any ($8)' end,
          case when filter is not null then format(
            'and (select true from pgrecall.memory m
                  where m.bank_id = $1 and m.memory_id = e.memory_id and %s)',
            request.visible_sql) end,
          pgrecall_internal._vector_key(bank, bank.embedding_dimensions, 'e.embedding'),
          case bank.vector_search when 'binary' then '<~>' else '<=>' end,
          pgrecall_internal._vector_key(bank, bank.embedding_dimensions, '$5'))
      else
        -- Memories are filtered first and then joined to their vectors.
        pgrecall_internal._union_all(format(
          $sql$
            select m.memory_id, e.embedding <=> $5 as distance
            from   pgrecall.memory m
            -- No condition on fact_type that an index has: the planner might read all by it.
            cross  join lateral (
              select v.embedding from pgrecall.embedding v
              where  v.bank_id = $1 and v.memory_id = m.memory_id and v.model = $6
                and  coalesce(v.fact_type, '') <> ''
            ) as e
            where  m.bank_id = $1 and m.fact_type = {fact_type} and %s
            order  by 2
            limit  $7
          $sql$, request.visible_sql), request.fact_types)
      end;
      execute format(
        'select array_agg(f.memory_id), array_agg(f.distance) '
        'from (select * from (%s) as u order by u.distance, u.memory_id desc limit $7) as f',
        statement)
      into  found_ids, distances
      using bank.bank_id, request.as_of, filter, depth, embedding, searched, fetched,
            request.fact_types;

      -- Who filled the limit may hold more below the worst score (horizon). An index that returned
      -- fewer gave up early; with a filter, depth rows are enough.
      counted := coalesce(cardinality(found_ids), 0);
      horizon := pgrecall_internal._similarity(1 - distances[fetched], low, high);
      is_short := by_index and counted < case when filter is null then fetched else depth end
                  and coalesce(pgrecall_internal._similarity(
                    1 - distances[counted], low, high) >= floor, true);
      -- The search is then exact, unless the bank exceeds exact_limit.
      if is_short and hnsw.elements <= exact_limit then
        by_index := false;
        continue;
      end if;

      select coalesce(array_agg(f.memory_id), '{}'), coalesce(array_agg(f.score), '{}')
      into   memory_ids, scores
      from (
        select u.memory_id,
               pgrecall_internal._similarity(1 - min(u.distance), low, high) as score
        from   unnest(found_ids, distances) as u(memory_id, distance)
        group  by u.memory_id
        having pgrecall_internal._similarity(1 - min(u.distance), low, high) >= floor
        order  by 2 desc, 1 desc
      ) as f;
    end if;
    if filter is null
       and not pgrecall_internal._are_visible(request, memory_ids[1:depth])
    then
      select coalesce(array_agg(memory_ids[p.place] order by p.n), '{}'),
             coalesce(array_agg(scores[p.place] order by p.n), '{}')
      into   memory_ids, scores
      from   unnest(pgrecall_internal._visible_places(request, memory_ids, depth))
               with ordinality as p(place, n);
    end if;
    memory_ids := memory_ids[1:depth];
    scores := scores[1:depth];
    -- Fetch more where ended memories, or many questions of one memory, took the places of others.
    exit when horizon is null or horizon <= coalesce(scores[depth], floor);
    fetched := case when by_index then 2 else 10 end * fetched;
  end loop;

  if about.memory_ids is not null then
    select coalesce(array_agg(u.id order by u.score desc, u.id desc), '{}'),
           coalesce(array_agg(u.score order by u.score desc, u.id desc), '{}')
    into   memory_ids, scores
    from (
      select x.id, max(x.score) as score
      from (
        select * from unnest(memory_ids, scores) as f(id, score)
        union all
        -- Vectors are read in one scan: one for each memory takes four times as long.
        (select a.id, max(a.score)
         from (
           select w.id, w.weight, null::double precision as score
           from   unnest(about.memory_ids, about.weights) as w(id, weight)
           union all
           select e.memory_id, null, pgrecall_internal._similarity(
                    1 - (e.embedding <=> _semantic_search.embedding), low, high)
           from   pgrecall.embedding e
           where  e.bank_id = bank.bank_id and e.memory_id = any (about.memory_ids)
             and  e.model = searched
             and  array_position(request.fact_types, e.fact_type) is not null
         ) as a
         group  by a.id
         order  by max(a.score) * (1 + named_boost * max(a.weight)) desc nulls last
         limit  (depth + 1) / 2)
      ) as x
      where  x.score >= floor
      group  by x.id
    ) as u;
  end if;

  -- In less than half a sample, the best hits are too large a part. In the order of the index by
  -- fact type, no more rows are read than sampled, however few a type has.
  select case when count(*) >= 50 then
           greatest(floor, percentile_cont(0.75) within group (order by s.score)) end,
         case when count(*) >= 50 then
           1 - percentile_cont(0.5) within group (order by s.from_questions)
           + 7.4 * (percentile_cont(0.75) within group (order by s.from_questions)
                    - percentile_cont(0.5) within group (order by s.from_questions)) end
  into   background, most
  from (
    select pgrecall_internal._similarity(
             1 - (s.embedding <=> _semantic_search.embedding), low, high) as score,
           s.embedding <=> direction as from_questions
    from   unnest(request.fact_types) as t(fact_type)
    cross  join lateral (
      select e.fact_type, e.model, e.embedding
      from   pgrecall.embedding e
      where  e.bank_id = bank.bank_id
        and  e.fact_type >= t.fact_type  -- what the index needs to be considered
        and  (e.fact_type, e.model) >= (t.fact_type, coalesce(bank.embedding_model, ''))
      order  by e.fact_type, e.model
      limit  100
    ) as s
    where  s.fact_type = t.fact_type and s.model = coalesce(bank.embedding_model, '')
    limit  100
  ) as s;
  if most is not null then
    select h.memory_ids, h.scores
    into   memory_ids, scores
    from   pgrecall_internal._lower_hubs(bank, direction, most, floor, memory_ids, scores) as h;
  end if;
  note := concat_ws('; ', case when by_index then 'by ' || hnsw.index_name else 'exactly' end,
                    unused, case when is_short then 'short of what passes' end);
  if is_short then
    hint := format('To compare all that pass the filter: select pgrecall.configure_bank(%L, '
                   '''{"exact_limit": %s}'');', bank.bank_id, 2 * hnsw.elements);
    raise warning using
      errcode = '01RC2',
      message = format('the search of bank "%s" gave up before it had enough', bank.bank_id),
      hint    = hint;
  end if;
end;
$$;
comment on function pgrecall_internal._semantic_search is
'Hits of the semantic arms, nearest first. background: the similarity that a quarter of a sample '
'of 100 vectors reaches; null where there are fewer than 50. note: the access path. is_exact: '
'without the index. hint, and warning 01RC2: the index gave up before enough candidates passed the '
'filter. It is longer than 100 lines because its statement is built once and run again exactly or '
'with a larger limit.';

create or replace function pgrecall_internal._has_rare_identifier(
  lexemes text[], terms pgrecall_internal.terms, most integer)
returns boolean
language plpgsql immutable parallel safe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
begin
  return exists (
    select from unnest(lexemes) as l
    -- A digit behind a letter, an underscore, or a dot between two letters or digits and as many:
    -- E-47821, is_ready, posting.py; not 3rd, 401k, well-known or U.S. Or three numbers and more
    -- between dots: 2.12.2. Or a number that is no year and not round, where few have it: issue
    -- 9291. But no date and no thousands: 2026-03-05, 15.03.2026 or 1.250.000.
    cross  join lateral (select l ~ '^(?!(19|20)[0-9]{2}$)(?![0-9]*00$)[0-9]{3,}$') as x(is_number)
    where  (x.is_number
            or l ~ '[a-z].*[0-9]|_|[a-z0-9]{2}\.(?![0-9]+$)[a-z0-9]{2}|^[0-9]+(\.[0-9]+){2,}$')
      and  l !~ '^([0-9]{1,2}\.[0-9]{1,2}\.(19|20)[0-9]{2}|(19|20)[0-9]{2}(\.[0-9]{1,2}){2})$'
      and  l !~ '^[0-9]{1,3}(\.[0-9]{3}){1,2}$'
      and  terms.counts[array_position(terms.dimensions, pgrecall_internal._dimension(l))]
           between 1 and greatest(1, least(
             case when x.is_number then 10 else most end, terms.documents / 20)));
end;
$$;
comment on function pgrecall_internal._has_rare_identifier is
'Whether one of the lexemes has the form of an identifier, and at most a twentieth of the '
'memories, and no more than most, or ten where it is a number, have it.';

create or replace function pgrecall_internal._semantic_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  result pgrecall_internal.arm_result;
  search record;
begin
  result.is_run := (request.bank).embedding_dimensions is not null
                   and request.embedding is not null;
  if not result.is_run then
    result.reason := 'the bank holds no embeddings';
  elsif is_planned then
    result.reason := 'an embedding is given';
  else
    search := pgrecall_internal._semantic_search(request, request.embedding);
    result.memory_ids := search.memory_ids;
    result.scores := search.scores;
    -- Embeddings hardly tell identifiers apart.
    result.background := case
      when pgrecall_internal._has_rare_identifier(
             request.lexemes, request.memory_terms, request.depth)
        then 'infinity' else search.background end;
    result.reason := search.note;
    result.hint := search.hint;
  end if;
  return result;
end;
$$;
comment on function pgrecall_internal._semantic_arm is 'Worker of the semantic arm.';

create or replace function pgrecall.semantic_arm(
  bank       text,
  embedding  anycompatible,
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null)
returns setof pgrecall.ranked
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select * from pgrecall_internal._ranked('semantic', pgrecall_internal._request(
    bank, '', pgrecall_internal._to_halfvec(embedding), fact_types => fact_types,
    filter => filter, as_of => as_of, model => model,
    options => jsonb_build_object('depth', depth), arm => 'semantic'));
end;
$$;
comment on function pgrecall.semantic_arm is
'Memories nearest in meaning. score is the cosine similarity, -1 to 1, on the scale that '
'calibrate_bank() set, and not below the bank''s option similarity_floor. With the packaged model, '
'what makes a fact near to every question is taken off. A memory with anticipated questions counts '
'once, by its best vector. A bank with an index, see index_plan(), is searched by it where that is '
'faster. Warning 01RC2: the index gave up before enough memories passed the filter. '
'Errors: RC001, RC004, RC005, RC006, RC008, RC011, 22023.';

create or replace function pgrecall_internal._hypothetical_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  result pgrecall_internal.arm_result;
begin
  request.embedding := request.hypothetical;
  result := pgrecall_internal._semantic_arm(request, before, is_planned);
  if is_planned and result.is_run then
    result.reason := 'a hypothetical answer is given';
  end if;
  return result;
end;
$$;
comment on function pgrecall_internal._hypothetical_arm is 'Worker of the hypothetical arm.';

create or replace function pgrecall.hypothetical_arm(
  bank       text,
  embedding  anycompatible,
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null)
returns setof pgrecall.ranked
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select * from pgrecall.semantic_arm(bank, embedding, fact_types, filter, as_of, depth, model);
end;
$$;
comment on function pgrecall.hypothetical_arm is
'The semantic arm for the embedding of a made-up answer (HyDE, Gao et al. 2022). Errors: as '
'semantic_arm().';

-- arms/source.sql
-- The source arm: other memories of the sources of the best hits, the best source first.
--
-- Text from the same document or conversation often completes a good hit. The arm takes the sources
-- of the 10 best hits of the arms before it, of messages their session, and returns their newest
-- memories. Its weight is 0 unless a bank or a call sets it: where facts are short turns of long
-- conversations, the arm brings more noise than answers.
create or replace function pgrecall_internal._source_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel safe
set search_path from current
set jit = off
as $$
declare
  result pgrecall_internal.arm_result;
begin
  result.is_run := true;
  if is_planned then
    result.reason := 'sources of what the arms before find may hold more';
    return result;
  end if;
  execute format(
    $sql$
      with best as (
        select h.memory_id, min(h.rank) as rank
        from   unnest($5) as h
        group  by h.memory_id
        order  by 2, 1 desc
        limit  10
      ),
      source as (
        select s.source_id, min(b.rank) as rank
        from   best b
        cross  join lateral (
          select x.source_id
          from   pgrecall.memory x
          where  x.bank_id = $1 and x.memory_id = b.memory_id
          union all
          select y.session_id
          from   pgrecall.message y
          where  y.bank_id = $1 and y.message_id = b.memory_id
          limit  1
        ) as s
        group  by s.source_id
      )
      select array_agg(t.memory_id order by t.score desc, t.memory_id desc),
             array_agg(t.score order by t.score desc, t.memory_id desc)
      from (
        select o.memory_id, 1.0::double precision / s.rank as score
        from   source s
        cross  join lateral (
          select m.memory_id
          from   pgrecall.memory m
          where  m.bank_id = $1 and m.source_id = s.source_id
            and  array_position($6, m.fact_type) is not null and %s
          order  by m.memory_id desc
          limit  50
        ) as o
        where  not exists (select from best b where b.memory_id = o.memory_id)
        order  by 2 desc, 1 desc
        limit  $4
      ) as t
    $sql$,
    request.visible_sql)
  into  result.memory_ids, result.scores
  using (request.bank).bank_id, request.as_of, request.filter, request.depth, before,
        request.fact_types;
  return result;
end;
$$;
comment on function pgrecall_internal._source_arm is
'Worker of the source arm. score is 1 / the rank of the best hit of the source.';

-- arms/temporal.sql
-- The temporal arm: what happened in a window of time or near it.
--
-- It finds the memories whose occurred overlaps the window, or lies up to 3 days before or some
-- days after it (_slack_after()), through the btree on time. A window raises scores; only option
-- time_mode makes it a filter. The graph arm follows links from these memories.
--
-- How much similarity counts among them depends on what the question says besides the time. "Which
-- team did Sidwell play for in 2002?" is answered by few facts, which are far more similar than
-- others: then other facts of 2002 are no answers. "What was said on 5 March?" is as near to
-- the eleventh fact as to the first, and the window decides. Then names tell facts of the window
-- apart, or where there is none, a little of their similarity. Without an embedding words tell how
-- similar a fact is.
create or replace function pgrecall_internal._slack_after(during tstzrange)
returns interval
language sql immutable parallel safe
-- People report events later: those of a day within a week, those of a month within the next month.
return interval '7 days' + case
  when isfinite(lower(during)) and isfinite(upper(during))
    then least(0.75 * (upper(during) - lower(during)), interval '30 days')
  else interval '0'
end;
comment on function pgrecall_internal._slack_after is
'Slack after a window: 7 days plus three quarters of its length, at most 30 days of that. The '
'slack before a window is 3 days.';

create or replace function pgrecall_internal._proximity(
  occurred tstzrange, during tstzrange, slack interval)
returns double precision
language sql immutable parallel safe
-- Facts that begin, end or lie in the window precede those that only span it.
return case
  when occurred && during then
    case when (lower(occurred) < lower(during) or lower(occurred) = '-infinity')
          and (upper(occurred) > upper(during) or upper(occurred) = 'infinity')
         then 0.5 else 1 end
  when occurred << during
    then 0.9 - 0.9 * date_part('epoch', lower(during) - upper(occurred)) / 259200
  else 0.9 - 0.9 * date_part('epoch', lower(occurred) - upper(during)) / date_part('epoch', slack)
end;
comment on function pgrecall_internal._proximity is
'How near an occurrence is to a window: 1 inside, falling from 0.9 to 0 at the end of the slack on '
'either side, 0.5 where it only spans the window.';

create or replace function pgrecall_internal._nearness(sent_at timestamptz, during tstzrange)
returns double precision
language sql immutable parallel safe
return case when during is null then 1
  else 1 + greatest(0, pgrecall_internal._proximity(
    tstzrange(sent_at, sent_at, '[]'), during, pgrecall_internal._slack_after(during))) end;
comment on function pgrecall_internal._nearness is
'How often a message counts that was sent near a window: twice inside, falling to once at the end '
'of the slack on either side; once without a window.';

create or replace function pgrecall_internal._temporal_sql(
  time_basis text, visible_sql text, fact_types text[])
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  -- The bounds are repeated as scalars, for the btree. Memories that begin after the window are
  -- read apart, nearest first: in a dense bank they would keep out what happened in the window.
  branch constant text := (
    select string_agg(
             format(
               $sql$
                 (select m.memory_id, %1$s as occurred
                  from   pgrecall.memory m
                  where  m.bank_id = $1 and m.fact_type = {fact_type} and m.occurred is %4$s
                    and  %2$s < upper($5) and %3$s > lower($5) - interval '3 days'
                    and  %5$s
                  order  by %2$s desc
                  limit  greatest(1000, $4))
                 union all
                 (select m.memory_id, %1$s
                  from   pgrecall.memory m
                  where  m.bank_id = $1 and m.fact_type = {fact_type} and m.occurred is %4$s
                    and  %2$s >= upper($5) and %2$s < upper($5) + $8
                    and  %5$s
                  order  by %2$s
                  limit  greatest(300, $4))
               $sql$,
               v.range, v.start, v.finish, v.present, visible_sql),
             E'\nunion all\n')
    from (
      values ('m.occurred', 'lower(m.occurred)', 'upper(m.occurred)', 'not null'),
             ('tstzrange(m.mentioned_at, m.mentioned_at, ''[]'')', 'm.mentioned_at',
              'm.mentioned_at', 'null')
    ) as v(range, start, finish, present)
    where  v.present = 'not null' or time_basis = 'mentioned');
begin
  return format(
    $sql$
      with near as materialized (
        select u.memory_id, p.proximity
        from (
          %s
          union all
          -- No index has this condition on types, so that these are read by their ids.
          select m.memory_id, %s
          from   pgrecall.memory m
          where  m.bank_id = $1 and m.memory_id = any ($11)
            and  array_position(%s, m.fact_type) is not null
        ) as u
        cross  join lateral pgrecall_internal._proximity(u.occurred, $5, $8) as p(proximity)
        where  p.proximity > 0
      ),
      alike as (
        -- Vectors are read in one scan: one for each memory takes four times as long.
        select n.memory_id, max(n.proximity) as proximity, max(n.similarity) as similarity
        from (
          select x.memory_id, x.proximity, null::double precision as similarity
          from   near x
          union all
          select w.memory_id, null, w.score
          from   unnest($11, $14) as w(memory_id, score)
          union all
          select e.memory_id, null,
                 pgrecall_internal._similarity(1 - (e.embedding <=> $6), $9, $10)
          from   pgrecall.embedding e
          where  $6 is not null and e.bank_id = $1 and e.model = $7
            and  coalesce(e.fact_type, '') <> ''
            and  e.memory_id = any (array(select x.memory_id from near x))
        ) as n
        group  by n.memory_id
        having max(n.proximity) > 0
      ),
      scored as materialized (
        select s.memory_id,
               s.proximity * (1 - $13 + $13 * coalesce(
                 (s.similarity / greatest($12, max(s.similarity) over ()))
                 ^ case when $6 is null then 2 else 3 end, 0))
                 as score
        from (
          select a.memory_id, a.proximity, nullif(greatest(0, a.similarity), 0) as similarity
          from   alike a
        ) as s
      )
      select array_agg(t.memory_id order by t.score desc, t.memory_id desc),
             array_agg(t.score order by t.score desc, t.memory_id desc)
      from (
        (select s.* from scored s order by s.score desc, s.memory_id desc limit $4)
        union
        (select s.*
         from   scored s
         where  s.memory_id in (select unnest($11))
         order  by s.score desc, s.memory_id desc
         limit  ($4 + 1) / 2)
      ) as t
    $sql$,
    case when fact_types is null
      then format('select x.* from unnest($3) as t(fact_type) cross join lateral (%s) as x',
                  replace(branch, '{fact_type}', 't.fact_type'))
    else pgrecall_internal._union_all(branch, fact_types) end,
    case time_basis when 'occurred' then 'm.occurred'
      else 'coalesce(m.occurred, tstzrange(m.mentioned_at, m.mentioned_at, ''[]''))' end,
    case when fact_types is null then '$3' else format('%L::text[]', fact_types) end);
end;
$$;
comment on function pgrecall_internal._temporal_sql is
'The search of a window as SQL: bank $1, as_of $2, filter $3, depth $4, window $5, embedding $6, '
'model $7, slack $8, low and high cosine $9 and $10, memories with the words of the query and '
'those about whom it names $11: of these half of depth are returned, too; best similarity $12, '
'share of similarity $13; similarities by words of the first of $11 $14, null with an embedding. '
'Without fact_types, $3 holds these.';

-- The search without a filter, by occurred alone, is planned once a session, any other for each
-- recall.
do $do$
begin
  execute format(
    $sql$
      create or replace function %s(
        bank text, as_of timestamptz, fact_types text[], depth integer, during tstzrange,
        embedding halfvec, model text, slack interval, low double precision, high double precision,
        about bigint[], best double precision, share double precision, words double precision[])
      returns table (memory_ids bigint[], scores double precision[])
      language plpgsql stable parallel safe rows 1
      set search_path from current
      set jit = off
      -- Each branch has one right plan, which must not depend on statistics.
      set enable_seqscan = off
      set enable_bitmapscan = off
      set enable_sort = off
      set plan_cache_mode = force_generic_plan
      as %L
    $sql$,
    'pgrecall_internal._occurred_near',
    format('begin return query %s; end;', pgrecall_internal._temporal_sql(
      'occurred', pgrecall_internal._visible_sql(null), null)));
end;
$do$;
comment on function pgrecall_internal._occurred_near is
'_temporal_sql() of a request without a filter, by occurred alone.';

create or replace function pgrecall_internal._temporal_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel safe
set search_path from current
set jit = off
as $$
declare
  result pgrecall_internal.arm_result;
  bank   constant pgrecall.bank := request.bank;
  model  constant text := coalesce(bank.embedding_model, '');
  during tstzrange := request.during;
  about  bigint[];
  words  double precision[];
  best   double precision;
  share  double precision;
  least_share constant double precision := case when request.named = '{}' then 0.1 else 0 end;
begin
  result.is_run := during is not null;
  if is_planned then
    result.reason := 'a time window is given';
  end if;
  if is_planned or during is null or isempty(during) then
    return result;
  end if;
  -- What has the words is looked up as well: of a wide window the arm reads the latest alone.
  select array_agg(w.memory_id order by w.place), array_agg(w.score / w.best order by w.place), 1,
         (0.7 - case when count(*) > 10
                  then min(w.score) filter (where w.place <= 11) / max(w.best) else 0 end) / 0.2
  into   about, words, best, share
  from  (select h.memory_id, h.score, max(h.score) over () as best,
                row_number() over (order by h.rank) as place
         from   unnest(before) as h
         where  h.arm = 'lexical') as w
  where  w.place <= 50
  having count(*) > 0;
  if request.embedding is not null then
    words := null;
    select max(h.score), (max(h.score) - min(h.score) filter (where h.rank <= 11) - 0.1) / 0.1
    into   best, share
    from   unnest(before) as h
    where  h.arm = 'semantic'
    having count(*) > 10;
  end if;
  about := about || (request.about).memory_ids;
  if share > least_share then
    share := least(share, 0.9);
  else
    best := null;
    share := case when request.embedding is null and words is null then 0 else least_share end;
  end if;
  -- A bound in the first 13 or the last 276 years that PostgreSQL can represent becomes infinite,
  -- because the slack might not fit.
  during := tstzrange(
    case when lower(during) >= '4700-01-01 BC' then lower(during) else '-infinity' end,
    case when upper(during) <= '294000-01-01' then upper(during) else 'infinity' end,
    case when upper_inc(during) then '[]' else '[)' end);
  if request.filter is null and request.options ->> 'time_basis' = 'occurred' then
    select n.memory_ids, n.scores
    into   result.memory_ids, result.scores
    from   pgrecall_internal._occurred_near(
             bank.bank_id, request.as_of, request.fact_types, request.depth, during,
             request.embedding, model, pgrecall_internal._slack_after(during), bank.low_cosine,
             bank.high_cosine, about, best, share, words) as n;
  else
    execute pgrecall_internal._temporal_sql(
      request.options ->> 'time_basis', request.visible_sql, request.fact_types)
    into    result.memory_ids, result.scores
    using   bank.bank_id, request.as_of, request.filter, request.depth, during, request.embedding,
            model, pgrecall_internal._slack_after(during), bank.low_cosine, bank.high_cosine, about,
            best, share, words;
  end if;
  return result;
end;
$$;
comment on function pgrecall_internal._temporal_arm is
'Worker of the temporal arm: memories in the time window of a request or near it, best first.';

create or replace function pgrecall.temporal_arm(
  bank       text,
  during     pgrecall_internal.period,
  embedding  anycompatible default null::text,
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null,
  time_basis text default 'occurred')
returns setof pgrecall.ranked
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select * from pgrecall_internal._ranked('temporal', pgrecall_internal._request(
    bank, '', pgrecall_internal._to_halfvec(embedding), pgrecall_internal._range_of_period(during),
    fact_types => fact_types, filter => filter, as_of => as_of, model => model,
    options => jsonb_build_object('depth', depth, 'time_basis', time_basis), arm => 'temporal'));
end;
$$;
comment on function pgrecall.temporal_arm is
'Memories that occurred within a window or near it: up to 3 days before; after it up to 7 days and '
'three quarters of its length, at most 30 days of that. time_basis => ''mentioned'' uses '
'mentioned_at where occurred is null. score is the proximity, 1 within the window and 0.9 falling '
'to 0 around it, times 1 - s + s (similarity / the best similarity) ^ 3 where an embedding is '
'given; a memory without one has similarity 0. s is 0.1; in a recall it is 0 where the query names '
'an entity, and grows to 0.9 as the similarity of the semantic arm falls by 0.1 to 0.19 up to its '
'eleventh hit: then the best is that of the bank, else that of the window. A recall without an '
'embedding takes the square of the score of the lexical arm, as a share of the best, for that '
'power, and s grows as this share falls by 0.3 to 0.48. Errors: RC001, RC004, RC005, RC006, RC008, '
'RC011, 22023.';

-- arms/textsearch.sql
-- The other backend of the lexical arm: the index of the extension pg_textsearch, for banks whose
-- setting lexical_backend asks for it, where the extension is installed.
--
-- Facts of such banks carry lexical_document, their lexemes as numbers that the bank assigns, so
-- that words, fields and languages are treated as in the arm. There is one index for all these
-- banks; lexical_index_plan() returns the statements that create and drop it. The arm itself
-- answers phrases, exclusions and messages, and all queries while the index is missing.
create or replace function pgrecall_internal._textsearch(
  request pgrecall_internal.request,
  out ids bigint[], out scores double precision[])
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- The index returns rows in order. A sort would score each row of the bank separately.
set enable_sort = off
as $$
declare
  extension_schema name := (
    select n.nspname
    from   pg_extension x join pg_namespace n on n.oid = x.extnamespace
    where  x.extname = 'pg_textsearch'
  );
begin
  if not exists (
    select from pg_index i
    where  i.indexrelid = to_regclass('pgrecall.memory_lexical_document_idx') and i.indisvalid
  ) then
    raise notice using
      message = format('bank "%s" is to be searched by pg_textsearch, and its index is missing',
                       (request.bank).bank_id),
      hint    = 'Until it is there, the arm answers by itself: '
                'select statement from pgrecall.lexical_index_plan();';
    return;
  end if;
  -- Its scores include the factor k1 + 1.
  execute format(
    $sql$
      select coalesce(array_agg(t.id order by t.score desc, t.id desc), '{}'),
             coalesce(array_agg(t.score order by t.score desc, t.id desc), '{}')
      from (
        select m.memory_id as id, -(m.lexical_document operator(%1$I.<@>) %2$s) / 2.2 as score
        from   pgrecall.memory m
        where  m.bank_id = $1 and m.fact_type = any ($5) and %3$s
        order  by m.lexical_document operator(%1$I.<@>) %2$s
        limit  $4
      ) as t
      where  t.score > 0
    $sql$,
    extension_schema,
    format('%I.to_bm25query($6, %L)', extension_schema, 'pgrecall.memory_lexical_document_idx'),
    request.visible_sql
  )
  into  ids, scores
  using (request.bank).bank_id, request.as_of, request.filter, request.depth, request.fact_types,
        (select string_agg(pgrecall_internal._document_word((request.bank).bank_id, d), ' ')
         from   unnest((request.memory_terms).dimensions) as d);
end;
$$;
comment on function pgrecall_internal._textsearch is
'The memories of a bank that the index of pg_textsearch finds by lexemes, and their BM25 scores. '
'Null, with a notice, where the index is missing.';

create or replace function pgrecall.lexical_index_plan()
returns setof pgrecall.index_statement
language plpgsql stable parallel safe rows 1
set search_path from current
as $$
declare
  is_valid  boolean := (
    select i.indisvalid from pg_index i
    where  i.indexrelid = to_regclass('pgrecall.memory_lexical_document_idx')
  );
  is_wanted boolean := exists (
    select b.bank_id from pgrecall.bank b where b.lexical_backend = 'pg_textsearch'
  );
begin
  if not is_valid or is_valid and not is_wanted then
    return query values (
      'drop index concurrently pgrecall.memory_lexical_document_idx;',
      case when is_wanted then 'it was not built to the end'
           else 'no bank is searched by pg_textsearch' end
    );
  end if;
  if is_wanted and is_valid is not true then
    return query values (
      'create index concurrently memory_lexical_document_idx on pgrecall.memory '
      'using bm25 (lexical_document) with (text_config = ''pg_catalog.simple'');',
      'a bank is to be searched by pg_textsearch'
    );
  end if;
end;
$$;
comment on function pgrecall.lexical_index_plan is
'Statements that are due for the index of the banks whose lexical_backend is pg_textsearch, in '
'order. Run them outside a transaction, as a role that sees all banks. There is one index for all '
'such banks: k1 and b are 1.2 and 0.75 for each, and BM25 counts with the number of facts and the '
'mean length of all of them together; dead versions of facts count until they are vacuumed. The '
'index must be built concurrently: otherwise pg_textsearch 1.0.0 misses facts that were updated in '
'place.';

-- arms/lexical.sql
-- The lexical arm: memories that share words with the query, ranked by true BM25.
--
-- Each memory stores the BM25 weights of its lexemes as a sparse vector. A GIN index on lexemes,
-- hashed with bank and fact type, finds candidates by the rarest words and sets of words
-- (request/term.sql), and one inner product with the IDFs of the query ranks them. Phrases must
-- occur in the text, excluded words must not (values/phrase.sql). The message arm uses the same
-- search over raw messages. A bank may use pg_textsearch for its memories instead
-- (arms/textsearch.sql).
create or replace function pgrecall_internal._lexical_search(
  request pgrecall_internal.request, kind text, terms pgrecall_internal.terms,
  out memory_ids bigint[], out scores double precision[])
language plpgsql stable parallel safe
set search_path from current
-- The weights of the query become a vector as text.
set extra_float_digits = 1
set jit = off
-- To start a parallel worker takes longer than its work.
set max_parallel_workers_per_gather = 0
-- The cached plan must use the index of keys, even if it was made while the table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  bank     pgrecall.bank := request.bank;
  depth    integer := request.depth;
  limits   integer := (request.options ->> 'candidate_limit')::integer;
  config   regconfig := bank.text_search_config::regconfig;
  weights  sparsevec := (
    select v from pgrecall_internal._to_sparsevec(terms.dimensions, terms.idfs) as v);
  has_phrase boolean := request.phrases <> '{}' or request.excluded <> '{}';
  chosen   record;
  part     integer;
  required integer[];
  matches  text;
  ids      bigint[];
  doubtful bigint[];
  is_built boolean := true;
  checked  bigint[];
  branch   text;
begin
  if terms.dimensions is null then
    return;
  end if;
  -- The other backend supports neither phrases nor messages.
  if kind = 'memory' and bank.lexical_backend = 'pg_textsearch' and not has_phrase then
    select t.ids, t.scores into ids, scores
    from   pgrecall_internal._textsearch(request) as t;
  end if;
  if ids is null then
    if request.phrases <> '{}' then
      -- Candidates have all words of the phrases, and all parts of their identifiers. A single
      -- Chinese, Japanese or Korean letter is not indexed inside a word.
      required := array(
        select distinct pgrecall_internal._dimension(l.lexeme)
        from   unnest(request.phrases) as p,
               pgrecall.lexemes(config, regexp_replace(p, '[-_./@:+#]+', ' ', 'g')) as l
        where  l.lexeme !~ ('^[' || pgrecall_internal._cjk() || ']$')
      );
    end if;
    -- A quarter of the limit finds nearly all of the best. The whole limit follows where that
    -- yields too few.
    foreach part in array array[limits / 4, limits] loop
      if required <> '{}' then
        matches := format(
          '{keys} @> pgrecall_internal._scoped_keys($1, {fact_type}, %L)', required);
      else
        chosen := pgrecall_internal._candidates(
          terms.dimensions, terms.idfs, terms.counts, terms.documents, part);
        continue when chosen.singles = '{}' and chosen.sets = '{}' and part < limits;
        if chosen.sets = '{}' and chosen.singles = terms.dimensions
           and request.filter is null and not has_phrase
        then
          -- The usual search of a bank that is not large: a static statement, planned once a
          -- session. One scan reads all types.
          select array_agg(t.id order by t.score desc, t.id desc),
                 array_agg(t.score order by t.score desc, t.id desc),
                 array_agg(t.id) filter (
                   where terms.is_shared or t.id > coalesce(terms.watermark, 0))
          into   ids, scores, doubtful
          from (
            select m.memory_id as id, -(m.lexical_weights <#> weights) as score
            from   pgrecall.memory m
            where  kind = 'memory' and m.bank_id collate "C" = bank.bank_id
              and  array_position(request.fact_types, m.fact_type) is not null
              and  m.valid_from <= request.as_of
              and  (m.valid_to is null or m.valid_to > request.as_of)
              and  pgrecall_internal._lexical_keys(m.bank_id, m.fact_type, m.lexical_weights)
                   && array(
                     -- The same as _scoped_keys(), which would be called for each type.
                     select hashint8extended(
                              d::bigint, pgrecall_internal._scope(bank.bank_id, f.fact_type))
                     from   unnest(request.fact_types) as f(fact_type), unnest(chosen.singles) as d)
            union all
            select m.message_id,
                   -(m.lexical_weights <#> weights)
                   * pgrecall_internal._nearness(m.sent_at, request.during)
            from   pgrecall.message m
            where  kind = 'message' and m.bank_id collate "C" = bank.bank_id
              and  m.sent_at <= request.as_of
              and  pgrecall_internal._lexical_keys(m.bank_id, 'message', m.lexical_weights)
                   && array(
                     select hashint8extended(
                              d::bigint, pgrecall_internal._scope(bank.bank_id, 'message'))
                     from   unnest(chosen.singles) as d)
            order  by 2 desc, 1 desc
            limit  depth
          ) as t
          where  t.score > 0;
          is_built := false;
          exit;
        end if;
        -- Sets that differ only in the last word share a scan, which reads the posting lists of the
        -- other words once.
        select string_agg(c.condition, ' or ')
        into   matches
        from (
          select format('{keys} && pgrecall_internal._scoped_keys($1, {fact_type}, %L)',
                        case when chosen.singles = '{}' and chosen.sets = '{}'
                          then terms.dimensions[1:1] else chosen.singles end)
          where  chosen.singles <> '{}' or chosen.sets = '{}'
          union all
          select format('{keys} @> pgrecall_internal._scoped_keys($1, {fact_type}, %L) and '
                        '{keys} && pgrecall_internal._scoped_keys($1, {fact_type}, %L)',
                        trim_array(w.words, 1), array_agg(w.words[cardinality(w.words)]))
          from   (select s::integer[] from unnest(chosen.sets) as s) as w(words)
          group  by trim_array(w.words, 1)
        ) as c(condition);
      end if;
      -- Only generated names and numbers are written into the statement.
      matches := replace(matches, '{keys}', format(
        'pgrecall_internal._lexical_keys(m.bank_id, %s, m.lexical_weights)',
        case kind when 'memory' then 'm.fact_type' else quote_literal('message') end));

      -- The keys belong to one bank and type, so their index alone finds the candidates. Without
      -- statistics the planner might choose an index that begins with the bank and compute every
      -- key again; another collation and "is not distinct from" rule that index out.
      branch := case kind
        when 'memory' then
          $sql$
            select m.memory_id as id, -(m.lexical_weights <#> $5) as score {fields}
            from   pgrecall.memory m
            where  m.bank_id collate "C" = $1 and m.fact_type is not distinct from {fact_type}
              and  $sql$ || request.visible_sql
        else
          $sql$
            select m.message_id as id,
                   -(m.lexical_weights <#> $5) * pgrecall_internal._nearness(m.sent_at, $9) as score
                   {fields}
            from   pgrecall.message m
            where  m.bank_id collate "C" = $1 and m.sent_at <= $2
          $sql$
      end || format(' and (%s) order by 2 desc, 1 desc', matches);
      if not has_phrase then
        branch := replace(branch, '{fields}', '') || ' limit $4';
      else
        -- Phrases are checked in score order until there are enough hits.
        branch := format(
          'select c.id, c.score from (%s offset 0) as c '
          'where pgrecall_internal._matches_phrases($6, $7, $8, c.fields) limit $4',
          replace(branch, '{fields}', format(', array[%s] as fields', concat_ws(', ', 'm.text',
            case when kind = 'memory' and bank.context_weight > 0 then 'm.context' end,
            case when kind = 'memory' and bank.key_weight > 0 then 'm.fact_key' end))));
      end if;
      execute format(
        $sql$
          select coalesce(array_agg(t.id order by t.score desc, t.id desc), '{}'),
                 coalesce(array_agg(t.score order by t.score desc, t.id desc), '{}')
          from   (select u.* from (%s) as u order by u.score desc, u.id desc limit $4) as t
          where  t.score > 0
        $sql$,
        pgrecall_internal._union_all(
          branch, case kind when 'memory' then request.fact_types else '{message}' end)
      )
      into  ids, scores
      using bank.bank_id, request.as_of, request.filter, depth,
            weights, config,
            request.phrases, request.excluded, request.during;
      exit when required <> '{}' or cardinality(ids) >= depth;
      exit when cardinality(chosen.singles) = cardinality(terms.dimensions);
    end loop;
  end if;

  -- A score may stem from another lexeme of the same dimension. The text is rechecked where the
  -- bank has such a pair, and in documents that are not counted yet.
  if is_built then
    doubtful := array(
      select u from unnest(ids) as u where terms.is_shared or u > coalesce(terms.watermark, 0)
    );
  end if;
  if doubtful <> '{}' then
    checked := pgrecall_internal._recheck_lexemes(bank, kind, doubtful, request.lexemes);
    select array_agg(u.id order by u.n), array_agg(u.score order by u.n)
    into   ids, scores
    from   unnest(ids, scores) with ordinality as u(id, score, n)
    where  u.id <> all (doubtful) or u.id = any (checked);
  end if;
  memory_ids := coalesce(ids, '{}');
  scores := coalesce(scores, '{}');
end;
$$;
comment on function pgrecall_internal._lexical_search is
'Hits of the lexical arm (kind = memory) or of the message arm (kind = message), best first. It is '
'longer than 100 lines because its statement is built from the chosen candidates.';

create or replace function pgrecall_internal._has_word(
  request pgrecall_internal.request, kind text, terms pgrecall_internal.terms)
returns boolean
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  if terms.dimensions is null then
    return false;
  elsif 0 < any (terms.counts) then
    return true;
  end if;
  -- Documents that are not counted yet may hold any word.
  return coalesce(case kind when 'memory' then (
    select m.memory_id from pgrecall.memory m
    where  m.bank_id = (request.bank).bank_id
    order  by m.memory_id desc
    limit  1)
  else (
    select m.message_id from pgrecall.message m
    where  m.bank_id = (request.bank).bank_id
    order  by m.message_id desc
    limit  1) end, 0) > coalesce(terms.watermark, 0);
end;
$$;
comment on function pgrecall_internal._has_word is
'Whether the memories or messages of a bank may hold a word of the query.';

create or replace function pgrecall_internal._lexical_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  result pgrecall_internal.arm_result;
  search record;
begin
  result.is_run := case when 0 < any ((request.memory_terms).counts) then true
                        else pgrecall_internal._has_word(
                          request, 'memory', request.memory_terms) end;
  if not result.is_run then
    result.reason := 'the bank knows no word of the query';
  elsif is_planned then
    result.reason := 'the bank knows words of the query';
  else
    search := pgrecall_internal._lexical_search(request, 'memory', request.memory_terms);
    result.memory_ids := search.memory_ids;
    result.scores := search.scores;
  end if;
  return result;
end;
$$;
comment on function pgrecall_internal._lexical_arm is 'Worker of the lexical arm.';

create or replace function pgrecall.lexical_arm(
  bank       text,
  query      text,
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100)
returns setof pgrecall.ranked
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select * from pgrecall_internal._ranked('lexical', pgrecall_internal._request(
    bank, query, fact_types => fact_types, filter => filter, as_of => as_of,
    options => jsonb_build_object('depth', depth), arm => 'lexical'));
end;
$$;
comment on function pgrecall.lexical_arm is
'Memories that share words with the query. The words of a "phrase in quotes" must be adjacent in a '
'memory; a -word must not occur in it. score is BM25 (Robertson and Zaragoza 2009, IDF as in '
'Lucene), above 0. About candidate_limit memories at most are scored, those with the rarest words, '
'and fewer where these are enough. The first 16,000 characters of a query are read. Errors: RC001, '
'RC008, RC011, 22023.';

-- arms/message.sql
-- The message arm: raw messages that share words with the query, by BM25 as in the lexical arm.
--
-- It covers what was not extracted as a fact. No other arm finds messages, so the score itself says
-- how certain a hit is: it is the share of the highest score that the words of the query allow.
-- Beside messages that were sent in the window of a request those of another time count half.
-- Filters apply to memories, so a recall with a filter leaves messages out. Rows of this arm are of
-- kind message; message_context() returns what was said before and after.
create or replace function pgrecall_internal._message_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  result  pgrecall_internal.arm_result;
  search  record;
  nearest double precision;
begin
  if request.message_terms is null then
    result.reason := 'the bank holds no messages';
  elsif not pgrecall_internal._has_word(request, 'message', request.message_terms) then
    result.reason := 'no message has a word of the query';
  elsif is_planned then
    result.reason := 'messages have words of the query';
    result.is_run := true;
  else
    search := pgrecall_internal._lexical_search(request, 'message', request.message_terms);
    result.is_run := true;
    result.memory_ids := search.memory_ids;
    -- Where none was sent near the window, all count in full.
    select coalesce(max(pgrecall_internal._nearness(m.sent_at, request.during)), 1)
    into   nearest
    from   unnest(search.memory_ids) as u(message_id)
    join   pgrecall.message m
      on   m.bank_id = (request.bank).bank_id and m.message_id = u.message_id
    where  request.during is not null;
    result.scores := array(
      select s.score / (request.message_terms).idf_sum / nearest
      from   unnest(search.scores) with ordinality as s(score, n)
      order  by s.n);
  end if;
  result.is_run := coalesce(result.is_run, false);
  return result;
end;
$$;
comment on function pgrecall_internal._message_arm is 'Worker of the message arm.';

create or replace function pgrecall.message_arm(
  bank text, query text, as_of timestamptz default now(), depth integer default 100)
returns setof pgrecall.ranked
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select * from pgrecall_internal._ranked('message', pgrecall_internal._request(
    bank, query, as_of => as_of, options => jsonb_build_object('depth', depth), arm => 'message'));
end;
$$;
comment on function pgrecall.message_arm is
'Raw messages that share words with the query, sent by as_of; quotes and minus as in '
'lexical_arm(). memory_id is the message_id. score is BM25 over the sum of the query''s IDFs, '
'above 0: a short message with all words comes near 1. Errors: RC001, 22023.';

-- graph/similar.sql
-- The facts nearest in meaning to given ones: similar facts of neighbours() and neighbourhood(),
-- and what consolidate() compares.
--
-- They are searched for on request. As stored links they cost more than everything else that is
-- written for a fact, and a recall does not follow them (bench/TRIED.md).
create or replace function pgrecall_internal._similar_memories(
  bank pgrecall.bank, memory_ids bigint[], min_similarity double precision,
  most integer default 5, among bigint[] default null)
returns table (from_id bigint, to_id bigint, similarity double precision)
language plpgsql stable parallel unsafe rows 5
set search_path from current
set jit = off
-- Each branch has one right plan, which must not depend on statistics.
set enable_seqscan = off
set enable_sort = off
set hnsw.ef_search = 40
set hnsw.iterative_scan = relaxed_order
as $$
declare
  is_indexed boolean;
begin
  if bank.embedding_dimensions is null or memory_ids = '{}' then
    return;
  end if;
  is_indexed := (pgrecall_internal._hnsw_index(bank)).index_name is not null;
  -- An index over whole vectors returns the nearest in order. An index over signs or leading
  -- elements yields 50 candidates, compared again by their whole vectors. PostgreSQL uses a partial
  -- index only where the statement contains its constants and its expression literally.
  if bank.vector_search <> 'full' then
    perform set_config('hnsw.ef_search', '100', true);
  end if;
  return query execute format(
    $sql$
      select v.memory_id, n.memory_id, least(n.similarity, 1)
      from   unnest($2) as f(memory_id)
      cross  join lateral (
        select e.memory_id, e.embedding
        from   pgrecall.embedding e
        where  e.bank_id = $1 and e.memory_id >= f.memory_id and e.model = $3 and e.kind = 'text'
        order  by e.memory_id
        limit  1
      ) as v
      cross  join lateral (
        select u.memory_id, pgrecall_internal._similarity(1 - u.distance, $4, $5) as similarity
        from   (%s) as u
        order  by u.distance, u.memory_id desc
        limit  $7
      ) as n
      where  v.memory_id = f.memory_id and n.similarity >= $6
    $sql$,
    case when is_indexed then format(
      $sql$
        select x.memory_id, x.embedding <=> v.embedding as distance
        from (
          select e.memory_id, e.embedding
          from   pgrecall.embedding e
          where  e.bank_id = $1 and e.model = $3 and e.kind = 'text'
            and  e.memory_id <> v.memory_id and %s
            and  ($8 is null or e.memory_id = any ($8))
          order  by %s %s %s
          limit  %s
        ) as x
      $sql$,
      pgrecall_internal._hnsw_scope('hashtextextended($1, 0)', 'hashtextextended($3, 0)'),
      pgrecall_internal._vector_key(bank, bank.embedding_dimensions, 'e.embedding'),
      case bank.vector_search when 'binary' then '<~>' else '<=>' end,
      pgrecall_internal._vector_key(bank, bank.embedding_dimensions, 'v.embedding'),
      case bank.vector_search when 'full' then most else greatest(50, most) end)
    else
      pgrecall_internal._union_all(
        $sql$
          select e.memory_id, e.embedding <=> v.embedding as distance
          from   pgrecall.embedding e
          where  e.bank_id = $1 and e.fact_type = {fact_type} and e.model = $3
            and  e.kind = 'text' and e.memory_id <> v.memory_id
            and  ($8 is null or e.memory_id = any ($8))
          order  by 2
          limit  $7
        $sql$, pgrecall_internal._fact_types(bank.bank_id, null))
    end
  )
  using bank.bank_id, memory_ids, coalesce(bank.embedding_model, ''), bank.low_cosine,
        bank.high_cosine, min_similarity, most, among;
end;
$$;
comment on function pgrecall_internal._similar_memories is
'The most memories that are most similar to each memory, from min_similarity on: by HNSW index '
'where there is one, else exactly. among: only these are searched for.';

-- graph/path.sql
-- Explanations from the graph, in words: neighbours() of a memory, path() between two entities.
--
-- Both serve people and agents that show why facts are connected. A recall does not use them.
-- path() searches from both ends, the smaller frontier first, and stops when one side has more than
-- 2,000 entities, so that a hub does not make it read the whole bank.
create or replace function pgrecall.neighbours(
  bank text, memory_id bigint, top_k integer default 50)
returns setof pgrecall.neighbour
language plpgsql stable parallel unsafe rows 50
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  owner     pgrecall.bank := pgrecall_internal._bank(bank);
  documents bigint;
begin
  perform pgrecall_internal._check_memory(bank, memory_id);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 10000);
  select s.document_count into documents
  from   pgrecall_internal.statistics s
  where  s.bank_id = neighbours.bank and s.kind = 'memory';
  return query
  with linked as (
    (select o.to_id as id, o.kind, o.weight, true as is_forth
     from   pgrecall.link o
     where  o.bank_id = neighbours.bank and o.from_id = neighbours.memory_id
     limit  1000)
    union all
    (select i.from_id, i.kind, i.weight, false
     from   pgrecall.link i
     where  i.bank_id = neighbours.bank and i.to_id = neighbours.memory_id
     limit  1000)
    union all
    select s.to_id, 'semantic', s.similarity::real, true
    from   pgrecall_internal._similar_memories(owner, array[neighbours.memory_id], 0.7) as s
  ),
  named as materialized (
    select x.entity_id, e.name,
           pgrecall_internal._rarity(n.count, coalesce(documents, 1)) as rarity
    from (
      select m.entity_id
      from   pgrecall.mention m
      where  m.bank_id = neighbours.bank and m.memory_id = neighbours.memory_id
      limit  100
    ) as x
    cross  join lateral (
      select y.name
      from   pgrecall.entity y
      where  y.bank_id = neighbours.bank and y.entity_id = x.entity_id
      limit  1
    ) as e
    cross  join lateral pgrecall_internal._mentions(neighbours.bank, x.entity_id) as n
  ),
  shared as (
    select o.memory_id as id, n.name, n.rarity
    from   named n
    cross  join pgrecall.fact_type t
    cross  join lateral (
      select m.memory_id
      from   pgrecall.mention m
      where  m.bank_id = neighbours.bank and m.entity_id = n.entity_id
        and  m.fact_type between t.fact_type and t.fact_type
      order  by m.fact_type desc, m.memory_id desc
      limit  50
    ) as o
    where  t.bank_id = neighbours.bank
  ),
  found as (
    (select distinct on (l.id, why)
           l.id, l.kind as via, l.weight::double precision as weight,
           case l.kind
             when 'semantic' then format('means nearly the same: similarity %s',
                                         round(l.weight::numeric, 2))
             when 'temporal' then 'happened at about the same time'
             when 'causes' then
               case when l.is_forth then 'is caused by this' else 'causes this' end
             when 'caused_by' then
               case when l.is_forth then 'causes this' else 'is caused by this' end
             when 'enables' then
               case when l.is_forth then 'is enabled by this' else 'enables this' end
             else case when l.is_forth then 'is prevented by this' else 'prevents this' end
           end as why
     from   linked l
     order  by l.id, why, l.weight desc)
    union all
    select s.id, 'entity', tanh(0.5 * sum(s.rarity)),
           'names ' || string_agg(s.name, ', ' order by s.rarity desc, s.name) || ' too'
    from   shared s
    where  s.id <> neighbours.memory_id
    group  by s.id
  )
  select f.id, m.text, f.via, f.weight, f.why
  from (
    select u.* from found u order by u.weight desc, u.id desc, u.via limit neighbours.top_k
  ) as f
  cross  join lateral (
    select x.text
    from   pgrecall.memory x
    where  x.bank_id = neighbours.bank and x.memory_id = f.id
    limit  1
  ) as m
  order  by f.weight desc, f.id desc, f.via;
end;
$$;
comment on function pgrecall.neighbours is
'Neighbours of a memory in the graph, strongest first, with a row for each reason. via is the kind '
'of the link, semantic for the 5 most similar memories with a similarity of 0.7 or more, or entity '
'where both memories name the same entity. weight, 0 to 1, is that of the link, the similarity, or '
'tanh(0.5 n) with n the rarity-weighted number of shared entities. why says it in words. Only the '
'latest 50 memories of each type per entity are considered. Superseded memories are included. '
'Errors: RC001, RC010 unknown memory, 22023.';

create or replace function pgrecall_internal._relations_of(
  bank text, entity_ids bigint[], at timestamptz, most integer)
returns table (
  from_id bigint, kind text, to_id bigint, confidence real, memory_id bigint, is_forth boolean)
language plpgsql stable parallel safe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select r.*
  from   unnest(entity_ids) as u(id)
  cross  join lateral (
    (select o.from_id, o.kind, o.to_id, o.confidence, o.memory_id, true
     from   pgrecall.relation o
     -- "between" rather than "=", so that only one index provides this order. A relation that does
     -- not hold must not take the place of one that does. Not exists(): a join could read all
     -- memories of a bank that was never analysed.
     where  o.bank_id = _relations_of.bank and o.from_id between u.id and u.id
       and  pgrecall_internal._holds(o.valid_from, o.valid_to, at)
       and  (select pgrecall_internal._holds(m.valid_from, m.valid_to, at)
             from   pgrecall.memory m
             where  m.bank_id = _relations_of.bank and m.memory_id = o.memory_id)
     order  by o.from_id desc, o.relation_id desc
     limit  most)
    union all
    (select i.from_id, i.kind, i.to_id, i.confidence, i.memory_id, false
     from   pgrecall.relation i
     where  i.bank_id = _relations_of.bank and i.to_id between u.id and u.id
       and  pgrecall_internal._holds(i.valid_from, i.valid_to, at)
       and  (select pgrecall_internal._holds(m.valid_from, m.valid_to, at)
             from   pgrecall.memory m
             where  m.bank_id = _relations_of.bank and m.memory_id = i.memory_id)
     order  by i.to_id desc, i.relation_id desc
     limit  most)
  ) as r;
end;
$$;
comment on function pgrecall_internal._relations_of is
'The newest relations of entities that hold at a time, as do the facts that state them: at most '
'most of an entity in each direction. is_forth: from_id is one of the entities.';

create or replace function pgrecall_internal._facts_about(
  bank text, entity_ids bigint[], at timestamptz, most integer)
returns table (entity_id bigint, memory_id bigint, confidence real)
language plpgsql stable parallel safe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select u.id, x.memory_id, x.confidence
  from   unnest(entity_ids) as u(id)
  cross  join pgrecall.fact_type t
  cross  join lateral (
    select m.memory_id, m.confidence
    from   pgrecall.mention m
    where  m.bank_id = _facts_about.bank and m.entity_id = u.id
      and  m.fact_type between t.fact_type and t.fact_type
      and  (select pgrecall_internal._holds(f.valid_from, f.valid_to, at)
            from   pgrecall.memory f
            where  f.bank_id = _facts_about.bank and f.memory_id = m.memory_id)
    order  by m.fact_type desc, m.memory_id desc
    limit  most
  ) as x
  where  t.bank_id = _facts_about.bank;
end;
$$;
comment on function pgrecall_internal._facts_about is
'The newest facts that mention entities and hold at a time: at most most of each type for an '
'entity.';

create or replace function pgrecall_internal._steps(bank text, entity_ids bigint[])
returns table (from_id bigint, to_id bigint, via text, memory_id bigint, is_forth boolean)
language plpgsql stable parallel safe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select distinct on (n.to_id) n.from_id, n.to_id, n.via, n.memory_id, n.is_forth
  from (
    select case when r.is_forth then r.from_id else r.to_id end,
           case when r.is_forth then r.to_id else r.from_id end, r.kind, r.memory_id, r.is_forth, 0
    from   pgrecall_internal._relations_of(_steps.bank, entity_ids, now(), 50) as r
    union all
    select f.entity_id, x.entity_id, 'mentioned with', f.memory_id, true, 1
    from   pgrecall_internal._facts_about(_steps.bank, entity_ids, now(), 50) as f
    cross  join lateral (
      select o.entity_id
      from   pgrecall.mention o
      where  o.bank_id = _steps.bank and o.memory_id = f.memory_id and o.entity_id <> f.entity_id
      limit  20
    ) as x
  ) as n(from_id, to_id, via, memory_id, is_forth, place)
  where  n.to_id <> all (entity_ids)
  -- A relation precedes a mention, and a newer fact precedes an older one.
  order  by n.to_id, n.place, n.memory_id desc, n.via, n.from_id;
end;
$$;
comment on function pgrecall_internal._steps is
'Entities one step from any of these entities, and the step: a relation in either direction, or '
'else a fact that names both. Only what holds now counts. Per entity the newest 50 relations in '
'each direction and 50 facts of each type are followed.';

create or replace function pgrecall.path(
  bank text, entity_a bigint, entity_b bigint, longest integer default 6)
returns setof pgrecall.path_step
language plpgsql stable parallel unsafe rows 5
set search_path from current
as $$
declare
  -- From each end, by entity: the steps that reached those visited, and the last of these.
  steps   jsonb[];
  rims    jsonb[];
  side    integer;
  sizes   bigint[];
  meeting bigint;
  place   bigint;
  taken   jsonb;
  way     jsonb[] := '{}';
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_entity(bank, entity_a);
  perform pgrecall_internal._check_entity(bank, entity_b);
  perform pgrecall_internal._check_range('longest', longest, 1, 10);
  if entity_a = entity_b then
    return;
  end if;

  steps := array[jsonb_build_object(entity_a, null), jsonb_build_object(entity_b, null)];
  rims := steps;
  -- The smaller frontier is expanded until the two meet, or a side has more than 2,000 entities.
  for n in 1 .. longest loop
    sizes := array(select (select count(*) from jsonb_object_keys(u.entities))
                   from   unnest(rims || steps) with ordinality as u(entities, n)
                   order  by u.n);
    exit when 0 = any (sizes) or 2000 < any (sizes);
    side := case when sizes[1] <= sizes[2] then 1 else 2 end;
    rims[side] := (
      select coalesce(jsonb_object_agg(s.to_id, to_jsonb(s)), '{}')
      from   pgrecall_internal._steps(
               bank, array(select k::bigint from jsonb_object_keys(rims[side]) as k)) as s
      where  not steps[side] ? s.to_id::text);
    steps[side] := steps[side] || rims[side];
    meeting := (
      select min(k::bigint) from jsonb_object_keys(rims[side]) as k where steps[3 - side] ? k);
    exit when meeting is not null;
  end loop;
  if meeting is null then
    return;
  end if;

  place := meeting;
  while place <> entity_a loop
    taken := steps[1] -> place::text;
    way := taken || way;
    place := (taken ->> 'from_id')::bigint;
  end loop;
  place := meeting;
  while place <> entity_b loop
    taken := steps[2] -> place::text;
    -- Found from b, so its direction is reversed.
    way := way || (taken || jsonb_build_object(
      'from_id', taken -> 'to_id', 'to_id', taken -> 'from_id',
      'is_forth', not (taken ->> 'is_forth')::boolean));
    place := (taken ->> 'from_id')::bigint;
  end loop;

  return query
  select w.n::integer, f.name, s.via, t.name, s.memory_id,
         case
           when s.via = 'mentioned with' then format('%s and %s: %s', f.name, t.name, m.text)
           when s.is_forth then format('%s %s %s: %s', f.name, s.via, t.name, m.text)
           else format('%s %s %s: %s', t.name, s.via, f.name, m.text)
         end,
         s.from_id, s.to_id
  from   unnest(way) with ordinality as w(taken, n)
  cross  join lateral jsonb_to_record(w.taken) as s(
    from_id bigint, to_id bigint, via text, memory_id bigint, is_forth boolean)
  cross  join lateral (
    select e.name from pgrecall.entity e
    where  e.bank_id = path.bank and e.entity_id = s.from_id
    limit  1
  ) as f
  cross  join lateral (
    select e.name from pgrecall.entity e
    where  e.bank_id = path.bank and e.entity_id = s.to_id
    limit  1
  ) as t
  cross  join lateral (
    select x.text from pgrecall.memory x
    where  x.bank_id = path.bank and x.memory_id = s.memory_id
    limit  1
  ) as m
  order  by w.n;
end;
$$;
comment on function pgrecall.path is
'A shortest path between two entities, of at most longest steps (1 to 10), in order; no row where '
'there is none. A step is a relation in either direction, or else a fact that names both '
'("mentioned with"); only facts that hold now count. memory_id is the fact, and why says the step '
'in words, with the relation in the direction in which it holds. Per entity the newest 50 '
'relations in each direction and 50 facts of each type are followed, and the search stops when '
'either side has more than 2,000 entities, so that it may miss a path through a hub. Ids: '
'query_entities(). Errors: RC001, RC013 unknown entity, 22023.';

-- graph/word.sql
-- The words by which a question asks for edges of the graph: "the boss of", "reports to", "why",
-- "what came of".
--
-- default_relation_words() is a lexicon of common relations (work, family, place, ownership,
-- membership) and of causes in the seven languages of the temporal grammar. A word, or a phrase of
-- up to three, has meanings of the form "noun>kind": the word names the target of a relation of
-- that kind from X; "noun<kind": the source of one to X; "verb>kind" and "verb<kind": X does it to
-- the target, or to the source; "link>cause", "link>effect", "link>root" and "link>prevention":
-- causal links to causes, to effects, to the cause behind all others, and to what prevented it.
-- Option relation_words adds words to it, for a call or for a bank. _asked_edges() finds the words
-- of a question; no sentence is parsed.
create or replace function pgrecall_internal._relation_rows()
returns table (forth text, back text, nouns text, inverse_nouns text, verbs text,
               inverse_verbs text)
language sql immutable parallel safe
begin atomic
  values
    ('reports_to answers_to managed_by supervised_by works_under subordinate_of',
     'manages supervises boss_of manager_of oversees supervisor_of',
     'boss,bosses,manager,managers,supervisor,supervisors,superior,superiors,line manager,chief,'
     'higher up,higher ups,overseer,foreman,forewoman,gaffer,senior,team leader,head,leader,lead,'
     'captain,director,'
     'chef,chefin,cheffe,vorgesetzter,vorgesetzte,jefe,jefa,supervisora,patron,patronne,'
     'responsable,supérieur,supérieure,capo,responsabile,superiore,baas,leidinggevende,chefe,'
     'gestor,gestora',
     'subordinate,subordinates,direct report,direct reports,report,reports,underling,underlings,'
     'mitarbeiter,untergebener,subordinado,subordonné,subordinato,ondergeschikte',
     'report to,reports to,reported to,reporting to,answer to,answers to,managed by,supervised by,'
     'untersteht,unterstellt,reporta a,responde a,depende de,dépend de,rend compte à,risponde a,'
     'dipende da,verantwoording af aan,'
     'overseen by,work under,works under,serve under,serves under,accountable to,responsible to,'
     'take orders from,takes orders from,berichtet an,rapporteert aan',
     'manage,manages,managed,supervise,supervises,supervised,oversee,oversees,in charge of,'
     'boss around,preside over,presides over,supervisa,dirige,encadre,supervisiona'),
    ('mentored_by coached_by advised_by tutored_by trained_by guided_by apprentice_of',
     'mentors mentor_of coaches advises tutors trains guides',
     'mentor,mentors,coach,coaches,adviser,advisor,sensei,counsellor,counselor,guide,guru,'
     'role model,tutor,tutors,trainer,mentorin,mentora,mentore,conseiller,conseillère',
     'mentee,mentees,protégé,protégée,protegee,protege,trainee,apprentice,disciple,schützling',
     'mentored by,coached by,advised by,tutored by,trained by,guided by,learn from,learns from,'
     'taken under the wing',
     'mentor,mentors,mentored,coach,coaches,coached,advise,advises,advised,tutor,tutors,tutored,'
     'guide,guides,guided,train,trains,trained'),
    ('married_to spouse_of partner_of wife_of husband_of wed_to',
     'married_to spouse_of partner_of wife_of husband_of wed_to',
     'wife,husband,spouse,spouses,partner,missus,missis,hubby,better half,other half,significant '
     'other,bride,groom,bridegroom,consort,life partner,wedded wife,lady wife,'
     'frau,mann,man,ehefrau,ehemann,gattin,gatte,esposa,esposo,marido,mujer,femme,mari,'
     'épouse,époux,moglie,marito,vrouw,echtgenoot,echtgenote,mulher',
     '',
     'married to,marry,married,marries,wed,wed to,wedded to,got married to,tied the knot with,'
     'share vows with,hitched to,verheiratet mit,casado con,casada con,marié à,sposato con', ''),
    ('child_of son_of daughter_of raised_by', 'parent_of mother_of father_of raised',
     'parent,parents,mother,father,mum,mom,mama,mummy,mommy,mam,dad,daddy,papa,pa,ma,old man,'
     'folks,begetter,mutter,vater,eltern,madre,padre,mère,père,moeder,vader,mãe,pai',
     'child,children,son,sons,daughter,daughters,kid,kids,offspring,boy,girl,little one,heir,'
     'firstborn,baby,kind,kinder,sohn,tochter,hijo,hija,fils,fille,figlio,figlia,zoon,dochter,'
     'filho,filha',
     'born to,raised by,brought up by,child of',
     'raise,raised,father,fathered,bring up,brought up'),
    ('sibling_of brother_of sister_of twin_of', 'sibling_of brother_of sister_of twin_of',
     'sibling,siblings,brother,brothers,bro,sister,sisters,sis,twin,twins,bruder,schwester,'
     'geschwister,hermano,hermana,frère,sœur,soeur,fratello,sorella,broer,zus,irmão,irmã',
     '', '', ''),
    ('lives_in resides_in based_in home_town lives_at resident_of', '',
     'where is,where s,where are,where was,wo ist,wo sitzt,dónde está,dónde queda,où est,'
     'où se trouve,'
     'dov è,waar is,onde está,onde fica,'
     'home,homes,home town,hometown,home city,city,town,village,residence,address,abode,dwelling,'
     'whereabouts,domicile,place of residence,wohnort,ciudad,ville,città,woonplaats,cidade',
     'resident,residents,inhabitant,inhabitants,occupant,tenant',
     'live,lives,lived,living,reside,resides,resided,residing,dwell,dwells,dwelt,based,settled,'
     'settle,inhabit,inhabits,stay,stays,staying,housed,make home,made home,call home,calls home,'
     'have a home,has a home,at home,wohnt,wohnen,lebt,leben,vive,viven,habite,habitent,réside,vit,'
     'abita,risiede,woont,wonen,mora,moram,reside', ''),
    ('works_at works_for employed_by', 'employs',
     'employer,employers,company,firm,workplace,arbeitgeber,firma,ditta,bedrijf,compañía,empresa,'
     'employeur,entreprise,'
     'datore di lavoro,werkgever,empregador',
     'employee,employees,staff,worker,workers,angestellte,empleado,employé,dipendente,werknemer',
     'work for,works for,worked for,work at,works at,employed by,employed at,on the payroll of,'
     'paid by,work,works,working,arbeitet,trabaja,travaille,lavora,werkt,trabalha',
     'employ,employs,employed'),
    ('member_of part_of belongs_to on_team in_team', 'has_member',
     'team,teams,group,department,unit,division,squad,crew,club,association,abteilung,equipo,'
     'équipe,squadra,afdeling,equipe',
     'member,members,mitglied,miembro,membre,membro,lid',
     'belong to,belongs to,member of,part of,sit with,sits with,sit in,sits in,enrolled in,'
     'affiliated with,assigned to', ''),
    ('led_by headed_by run_by captained_by directed_by',
     'leads heads runs manages captains skippers chairs directs leader_of head_of',
     'whose,wessen,wiens,van wie,de quién,à qui,di chi,de quem,leader,leaders,lead,head,captain,'
     'skipper,chair,chairman,chairwoman,chairperson,director,boss,'
     'chief,manager,supervisor,gaffer,foreman,'
     'principal,commander,coordinator,leiter,leiterin,líder,chef d''équipe',
     '', 'led by,headed by,run by,headed up by,captained by,directed by,chaired by,steered by,'
     'under the leadership of',
     'lead,leads,led,head,heads,headed,run,runs,captain,captains,chair,chairs,direct,directs,'
     'in charge of,at the helm of,steer,steers,command,commands,coordinate,coordinates,'
     'leitet,führt,dirige,encabeza,guida,leidt,lidera,chefia'),
    ('works_on assigned_to contributes_to involved_in develops', '',
     'project,projects,undertaking,undertakings,assignment,assignments,initiative,endeavour,'
     'endeavor,venture,projekt,proyecto,projet,progetto,projeto',
     'developer,developers,contributor,contributors,engineer,engineers,collaborator,collaborators',
     'work on,works on,working on,worked on,assigned to,busy with,occupied with,involved in,'
     'engaged in,engaged on,busy,occupied,tied up with,'
     'contribute to,contributes to,toil on,toils on,devote time to,'
     'spend time on,spends time on', ''),
    ('owned_by belongs_to', 'owns owner_of possesses has',
     'whose,wessen,wiens,van wie,de quién,à qui,di chi,de quem,owner,owners,proprietor,possessor,'
     'holder,keeper,landlord,landlady,'
     'besitzer,besitzerin,dueño,dueña,propriétaire,proprietario,proprietaria,eigenaar,dono,dona',
     'possession,possessions,property,properties,belongings,belonging',
     'owned by,belong to,belongs to,belonged to,in the possession of,gehört,gehören,pertenece a,'
     'appartient à,appartiene a,toebehoort aan,pertence a',
     'own,owns,owned,has got,have got,possess,possesses,possessed,hold title to,holds title to,'
     'besitzt,posee,possède,possiede,bezit,possui'),
    ('made_by built_by produced_by manufactured_by constructed_by created_by designed_by',
     'makes made builds built produces manufactures maker_of constructs creates',
     'maker,makers,builder,builders,manufacturer,producer,creator,constructor,'
     'hersteller,fabricante,fabricant,produttore,fabrikant',
     'product,products,creation',
     'made by,built by,produced by,manufactured by,constructed by,assembled by,crafted by,'
     'created by,turned out by,come from the works of',
     'make,makes,made,build,builds,built,produce,produces,produced,manufacture,manufactures,'
     'manufactured,construct,constructs,constructed,assemble,assembled,craft,crafted,create,'
     'created,turn out,turned out,gebaut,hergestellt,baute,produziert,fabricó,construyó,construido,'
     'produjo,fabriqué,construit,produit,costruito,fabbricato,prodotto,gebouwd,gemaakt,bouwde,'
     'maakte,construiu,fabricou,feito,produziu'),
    ('located_in lies_in situated_in based_in part_of capital_of', '',
     'where is,where s,where are,where was,wo ist,wo sitzt,dónde está,dónde queda,où est,'
     'où se trouve,'
     'dov è,waar is,onde está,onde fica,location,country,region,país,pays,paese,place,'
     'site,nation,state,land,province,county,'
     'ort,lugar,lieu,luogo,plaats', '',
     'located in,located,lie,lies,situated,stand,stands,found in,sit,sits,belong to,'
     'belongs to', ''),
    ('born_in birthplace native_of', '',
     'birthplace,place of birth,native town,native city,birth town,city of birth,town of birth,'
     'geburtsort,lugar de nacimiento', 'native,natives',
     'born in,born,hail from,hails from,come from,comes from,is from,was from,are from,native of,'
     'first saw the light,'
     'woher,de dónde,d où,di dove,di dov è,da dove,waar vandaan,de onde,geboren,nació,nacido,'
     'nacida,né,née,nata,nato,nasceu,nascido,nascida', ''),
    ('sells_to supplies', 'customer_of client_of buys_from supplied_by',
     'customer,customers,client,clients,buyer,buyers,purchaser,kunde,kunden,cliente,klant',
     'supplier,suppliers,vendor,vendors,seller,provider,lieferant,proveedor,fournisseur,fornitore,'
     'leverancier',
     'supply,supplies,supplied,sell to,sells to,deliver to,delivers to',
     'buy from,buys from,purchase from,supplied by'),
    ('friend_of knows acquainted_with', 'friend_of knows acquainted_with',
     'friend,friends,pal,pals,buddy,mate,mates,acquaintance,acquaintances,companion,chum,'
     'freund,freundin,amigo,amiga,ami,amie,amico,amica,vriend,vriendin', '',
     'know,knows,befriended,acquainted with,friends with,meets up with,hangs out with', ''),
    ('colleague_of works_with', 'colleague_of works_with',
     'colleague,colleagues,coworker,coworkers,co worker,workmate,teammate,teammates,'
     'kollege,kollegin,colega,collègue,collega', '',
     'work with,works with,collaborate with,collaborates with', ''),
    ('taught_by student_of', 'teaches teacher_of',
     'teacher,teachers,instructor,lecturer,schoolmaster,lehrer,lehrerin,profesor,professeur,'
     'insegnante,leraar,professor',
     'student,students,pupil,pupils,schüler', 'taught by,study under,studies under',
     'teach,teaches,taught,instruct,instructs'),
    ('treated_by patient_of', 'treats doctor_of',
     'doctor,physician,therapist,dentist,gp,surgeon,arzt,ärztin,médico,médecin,medico,dokter',
     'patient,patients', 'treated by', 'treat,treats,treated');
end;
comment on function pgrecall_internal._relation_rows is
'The lexicon of relations: kinds that lead from X to Y, kinds that lead from Y to X, nouns for Y '
'as seen from X and for X as seen from Y, verbs of X and of Y.';

create or replace function pgrecall_internal._cause_rows()
returns table (direction text, words text)
language sql immutable parallel safe rows 4
begin atomic
  values
    ('cause',
     'why,because,reason,reasons,cause,causes,caused,cause of,causes of,led to,leads to,led,'
     'brought about,brought on,triggered,trigger,trigger for,behind,due to,how come,what made,'
     'explains,explain,explanation,responsible,responsible for,blame,to blame,owing to,prompted,'
     'accounts for,gave rise to,contributed to,set off,sparked,provoked,stems,stemmed,culprit,'
     'thanks to,down to,grounds for,'
     'warum,wieso,weshalb,ursache,grund,por qué,causa,motivo,pourquoi,raison,perché,waarom,'
     'oorzaak,reden,por que,razão'),
    ('effect',
     'lead to,result in,consequence,consequences,consequence of,consequences of,effect,effects,'
     'outcome,outcomes,outcome of,aftermath,result of,results of,impact,fallout,repercussions,'
     'ramifications,upshot,sequel,followed,followed from,follow,resulted from,came of,came from,'
     'comes of,because of,as a result,arose from,happened after,affected by,bring about,'
     'bring on,give rise to,set off by,did cause,did trigger,did spark,did prompt,did provoke,'
     'did affect,did entail,does cause,does trigger,would cause,end in,'
     'folge,folgen,auswirkung,auswirkungen,consecuencia,consecuencias,conséquence,conséquences,'
     'conseguenza,conseguenze,gevolg,gevolgen,consequência,consequências'),
    ('root',
     'root,root cause,root of,origin,origins,origin of,source of,original cause,originally,'
     'ultimate,ultimately,ultimate cause,underlying,underlying cause,underlying reason,'
     'first cause,real cause,real reason,first place,the first place,at the bottom,bottom of,'
     'at the heart,begin with,to begin with,start,started,did start,begin,began,traced back,'
     'trace back,trace,traced,go back,goes back,went back,back to,very first,first thing,'
     'first domino,kicked off,kick off,in motion,starting point,genesis,seed of,'
     'grundursache,auslöser,ursprung,cause première,causa raíz,causa raiz,causa prima,'
     'causa profunda,grondoorzaak'),
    ('prevention',
     'averted,prevented,stopped,spared,avoided,thwarted,hindered,forestalled');
end;
comment on function pgrecall_internal._cause_rows is
'The lexicon of causal links: words that ask for causes, for effects, for the root of all causes, '
'and for what prevents.';

create or replace function pgrecall_internal._relation_words()
returns jsonb
language sql immutable parallel safe
begin atomic
  select jsonb_object_agg(w.word, w.meanings)
  from (
    select m.word, jsonb_agg(m.meaning) as meanings
    from (
      select btrim(n.word) as word, n.way || r.row as meaning
      from   pgrecall_internal._relation_rows() with ordinality
               as r(forth, back, nouns, inverse_nouns, verbs, inverse_verbs, row)
      cross  join lateral (
        values ('noun>', r.nouns), ('noun<', r.inverse_nouns),
               ('verb>', r.verbs), ('verb<', r.inverse_verbs)
      ) as l(way, words)
      cross  join lateral (select l.way, x from string_to_table(l.words, ',') as x) as n(way, word)
      where  n.word <> ''
      union all
      select x, 'link>' || c.direction
      from   pgrecall_internal._cause_rows() as c
      cross  join lateral string_to_table(c.words, ',') as x
    ) as m
    group  by m.word
  ) as w;
end;
comment on function pgrecall_internal._relation_words is
'The lexicon by word, as questions look it up: {"boss": ["noun>1"], "why": ["link>cause"]}, the '
'numbers being rows of _relation_rows(). An eighth of default_relation_words(), for the first '
'recall of a session reads it.';

-- From here on the function is its value: computed by the first recall of each session it took a
-- fifteenth of that recall.
do $$
begin
  execute format(
    'create or replace function %s() returns jsonb language sql immutable parallel safe '
    'return %L::jsonb', 'pgrecall_internal._relation_words', pgrecall_internal._relation_words());
end;
$$;

create or replace function pgrecall_internal._meanings(meaning text)
returns setof text
language sql immutable parallel safe rows 4
begin atomic
  select _meanings.meaning where _meanings.meaning like 'link%'
  union all
  select left(_meanings.meaning, 4) || k.way || k.kind
  from   pgrecall_internal._relation_rows() with ordinality
           as r(forth, back, nouns, inverse_nouns, verbs, inverse_verbs, row)
  cross  join lateral (
    select substr(_meanings.meaning, 5, 1) as way, x as kind
    from   string_to_table(r.forth, ' ') as x
    union all
    select translate(substr(_meanings.meaning, 5, 1), '<>', '><'), x
    from   string_to_table(r.back, ' ') as x
  ) as k
  where  r.row::text = substr(_meanings.meaning, 6) and k.kind <> '';
end;
comment on function pgrecall_internal._meanings is
'A meaning of _relation_words() in the form of default_relation_words(): one for each kind of its '
'row.';

create or replace function pgrecall.default_relation_words()
returns jsonb
language sql immutable parallel safe
begin atomic
  select jsonb_object_agg(w.word, w.meanings)
  from (
    select e.key as word, jsonb_agg(distinct k.meaning) as meanings
    from   jsonb_each(pgrecall_internal._relation_words()) as e
    cross  join lateral jsonb_array_elements_text(e.value) as m(meaning)
    cross  join lateral pgrecall_internal._meanings(m.meaning) as k(meaning)
    group  by e.key
  ) as w;
end;
comment on function pgrecall.default_relation_words is
'Words that ask for a relation, each with its meanings: {"boss": ["noun>reports_to", '
'"noun<manages"], "works for": ["verb>works_for"]}. Option relation_words adds to it.';

create or replace function pgrecall_internal._asked_edges(
  request pgrecall_internal.request,
  out keys text[], out bits integer[], out causes text, out is_root boolean,
  out is_prevention boolean)
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_generic_plan
set jit = off
as $$
declare
  own     jsonb := coalesce(request.options -> 'relation_words', 'null');
  query   text := lower(request.query);
  words   text[];
  starts  integer[];
  ends    integer[];
  firsts  integer[];  -- phrases of the question that ask for something: their words, and how many
  lasts   integer[];  -- follow the first
  mores   integer[];
  phrases text[];
begin
  if request.named = '{}' and query !~ ('[' || pgrecall_internal._cjk() || ']') then
    -- Where the words stand tells whether they are part of a name.
    words := (string_to_array(
      btrim(regexp_replace(left(query, 4000), '[^[:alnum:]]+', ' ', 'g')), ' '))[:200];
  else
    select array_agg(w.word order by w.starts_at), array_agg(w.starts_at order by w.starts_at),
           array_agg(w.ends_at order by w.starts_at)
    into   words, starts, ends
    from   pgrecall_internal._words(query) as w;
  end if;

  -- Most questions ask for no edge: the lexicon, a constant of the plan, is asked first.
  select array_agg(p.first), array_agg(p.last), array_agg(p.more), array_agg(p.word)
  into   firsts, lasts, mores, phrases
  from   unnest(words, words[2:], words[3:]) with ordinality as w(a, b, c, n)
  cross  join lateral (
    values (w.n, w.n, 0, w.a), (w.n, w.n + 1, 1, w.a || ' ' || w.b),
           (w.n, w.n + 2, 2, w.a || ' ' || w.b || ' ' || w.c),
           -- "What did it cause", "where is Ana from": a phrase around what it is about.
           (w.n, w.n, 1, case when w.n <= cardinality(words) - 2
                           then w.a || ' ' || words[cardinality(words)] end)
  ) as p(first, last, more, word)
  where  pgrecall_internal._relation_words() ? p.word or own ? p.word;
  if phrases is null then
    keys := '{}';
    bits := '{}';
    is_root := false;
    is_prevention := false;
    return;
  end if;

  with name as materialized (
    select min(u.n) as first, max(u.n) as last
    from   unnest(request.named) as e
    join   unnest(starts, ends) with ordinality as u(starts_at, ends_at, n)
      on   u.starts_at >= e.starts_at and u.ends_at <= e.ends_at
    group  by e.starts_at, e.ends_at
  ),
  phrase as materialized (
    select p.first, p.last, p.more, own -> p.word as meanings,
           pgrecall_internal._relation_words() -> p.word as known
    from   unnest(firsts, lasts, mores, phrases) as p(first, last, more, word)
    where  not exists (select from name n where p.first <= n.last and p.last >= n.first)
  ),
  asked as materialized (
    select m.meaning, split_part(translate(m.meaning, '<', '>'), '>', 1) as role,
           substr(m.meaning, 6) as kind, substr(m.meaning, 5, 1) = '>' as is_forth,
           -- A name after a verb is its object, a name before a verb its subject.
           p.first > (select min(n.last) from name n) as is_behind,
           dense_rank() over (order by p.first, p.last) as n, p.more
    from   phrase p
    cross  join lateral (
      select jsonb_array_elements_text(p.meanings)
      union all
      select k
      from   jsonb_array_elements_text(p.known) as m, pgrecall_internal._meanings(m) as k
      where  p.meanings is null
    ) as m(meaning)
    where  not exists (  -- the longest phrase wins
      select from phrase l
      where  l.first <= p.first and l.last >= p.last and l.more > p.more)
  ),
  key as (
    select a.kind || d.way as key, bit_or(1 << (a.n - 1)::integer) as bits
    from   asked a
    cross  join lateral (
      select case when a.is_forth then '>' else '<' end
      where  a.role = 'noun' or a.is_behind is not false
      union
      select case when a.is_forth then '<' else '>' end
      where  a.role = 'verb' and a.is_behind is not true
    ) as d(way)
    where  a.role in ('noun', 'verb') and a.n <= 12
    group  by 1
  )
  select coalesce((select array_agg(k.key order by k.key) from key k), '{}'),
         coalesce((select array_agg(k.bits order by k.key) from key k), '{}'),
         (select case when a.kind in ('root', 'prevention') then 'cause' else a.kind end
          from   asked a
          where  a.role = 'link'
          order  by a.more desc, a.n
          limit  1),
         coalesce((select bool_or(a.kind = 'root') from asked a where a.role = 'link'), false),
         coalesce((select bool_or(a.kind = 'prevention') from asked a where a.role = 'link'), false)
  into   keys, bits, causes, is_root, is_prevention;
end;
$$;
comment on function pgrecall_internal._asked_edges is
'The edges that a query asks for. keys: kinds of relations with the direction in which to follow '
'them, reports_to> along and reports_to< against the relation. bits: the words of the query that '
'ask for the key, one bit each. causes: cause or effect, the direction of causal links. is_root: '
'whether the query asks for the cause behind all others. is_prevention: whether it asks for what '
'prevented something. A noun gives the direction itself, a verb by its position before or after '
'the name.';

-- graph/walk.sql
-- Walks along relations from the entities that a question names, and from those that the best hits
-- mention. They answer questions that ask for a chain: "the home of Ana's boss".
--
-- A relation is a hypothesis, not a share: each kind is followed with the whole mass of the entity,
-- divided among the relations of that kind and direction, so that "Ana's boss" outweighs "whom Ana
-- manages". The question itself says how likely a path is: the embedding of the question is
-- compared with the sum of the meanings of the kinds on the path (retain/usage.sql), each counted
-- once. A path is near if its kinds together cover the question, whatever their words and order; a
-- superfluous kind leads away from it. Where a question asks for no relation, no path is near. An
-- edge that a word of the lexicon (word.sql) asks for counts four times, once per path for each
-- word. Without embeddings only such edges are followed. The meaning of a kind is looked up where a
-- path comes to it, so that a walk costs the same in a bank with any number of kinds, and a path
-- that is hardly near is not followed.
--
-- The sixteen best ends are followed further, up to three relations far, so that a walk reads a
-- bounded number of relations in any bank. Each start counts separately: the score of what two
-- named entities lead to is the sum of both.
create or replace function pgrecall_internal._words_of_kind(kind text)
returns text
language sql immutable parallel safe
return lower(replace(kind, '_', ' '));
comment on function pgrecall_internal._words_of_kind is
'A kind of relations as words: "reports to" for reports_to; inlined.';

create or replace function pgrecall_internal._walked(
  request pgrecall_internal.request, keys text[], bits integer[],
  hit_ids bigint[], hit_masses double precision[],
  entity_ids bigint[], entity_masses double precision[],
  out memory_ids bigint[], out scores double precision[], out paths text[])
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  bank      constant text := (request.bank).bank_id;
  -- The time that the question asks about: its window, else all of the past, else now.
  since     constant timestamptz := case
    when request.during is not null then coalesce(lower(request.during), '-infinity')
    when request.options ->> 'prefer' = 'former' then '-infinity'
    else request.as_of end;
  until     constant timestamptz := case
    when request.during is null then request.as_of
    else coalesce(upper(request.during) - (not upper_inc(request.during))::integer
                                          * interval '1 microsecond', 'infinity') end;
begin
  -- The walk is a long statement. Planning it takes 6% of the first recall of a session.
  if not exists (select from pgrecall.relation r where r.bank_id = bank) then
    return;
  end if;
  with recursive start as materialized (
    select e.id, sum(e.mass) as mass, (array_agg(e.way order by e.mass desc))[1] as way
    from (
      select u.id, u.mass, 'e' || u.id as way from unnest(entity_ids, entity_masses) as u(id, mass)
      union all
      select m.entity_id, h.mass / (1 + count(*) over (partition by h.id)),
             case when m.entity_id = any (entity_ids) then 'e' || m.entity_id
                  else 'f' || h.id || E'\x1fe' || m.entity_id end
      from   unnest(hit_ids, hit_masses) as h(id, mass)
      cross  join lateral (
        select x.entity_id from pgrecall.mention x
        where  x.bank_id = bank and x.memory_id = h.id
        limit  20
      ) as m
      where  h.mass >= 0.25
    ) as e
    where  keys <> '{}' or request.embedding is not null
    group  by e.id
    order  by 2 desc
    limit  16
  ),
  walk as (
    select s.id, 0 as steps, s.mass, 0 as words, '{}'::text[] as kinds, s.mass as score, s.way,
           null::bigint as memory_id, null::halfvec as meaning
    from   start s
    union all
    select u.id, w.steps + 1, w.mass * u.share / g.total, g.words, g.kinds,
           w.mass * u.share / g.total * g.worth,
           concat_ws(E'\x1f', w.way, g.label || ':' || u.memory_id, 'e' || u.id), u.memory_id,
           g.meaning
    from (
      select *
      from   walk x
      where  x.steps < 3
      order  by x.score desc, x.memory_id desc
      limit  16
    ) as w
    cross  join lateral (
      select l.label, l.total, l.ids, l.memory_ids, l.shares, p.words, p.kinds, p.meaning,
             4 ^ bit_count(p.words::bit(32)) * 0.6 ^ w.steps
             * case when p.meaning is null then 1
                    else 80 * greatest(pgrecall_internal._similarity(
                           1 - (p.meaning <=> request.embedding), (request.bank).low_cosine,
                           (request.bank).high_cosine), 0) ^ 6 end as worth
      from (
        select r.label, lower(replace(substr(r.label, 2), ' ', '_')) as kind,
               sum(f.weight) as total, array_agg(r.id) as ids, array_agg(r.memory_id) as memory_ids,
               array_agg(r.confidence * f.weight) as shares
        from (
          (select o.to_id as id, '>' || o.kind as label, o.memory_id, o.confidence, o.valid_from,
                  o.valid_to
           from   pgrecall.relation o
           where  o.bank_id = bank and o.from_id between w.id and w.id
           order  by o.from_id desc, o.relation_id desc
           limit  100)
          union all
          (select i.from_id, '<' || i.kind, i.memory_id, i.confidence, i.valid_from, i.valid_to
           from   pgrecall.relation i
           where  i.bank_id = bank and i.to_id between w.id and w.id
           order  by i.to_id desc, i.relation_id desc
           limit  100)
        ) as r
        cross  join lateral (
          -- A relation that did not hold then, or whose fact had ended, counts less.
          select case when least(r.valid_to, m.valid_to) > since is not false
                       and r.valid_from <= until is not false
                      then 1 else 0.3 end::double precision as weight
          from   pgrecall.memory m
          where  m.bank_id = bank and m.memory_id = r.memory_id and m.valid_from <= request.as_of
          limit  1
        ) as f
        where  r.valid_from is null or r.valid_from <= greatest(request.as_of, until)
        group  by r.label
      ) as l
      left   join lateral (
        select y.embedding
        from   (select pgrecall_internal._words_of_kind(l.kind)) as n(words)
        join   pgrecall.embedding y
          -- Only the index on words provides this order.
          on   y.bank_id = bank and y.fact_type = ''
          and  y.model = coalesce((request.bank).embedding_model, '')
          and  y.kind = 'usage' and y.text between n.words and n.words
        where  request.embedding is not null
        order  by y.text
        limit  1
      ) as k on true
      cross  join lateral (
        select coalesce(bits[array_position(keys, l.kind || left(l.label, 1))], 0) & ~w.words as bit
      ) as f
      cross  join lateral (
        select w.words | (f.bit & -f.bit) as words,
               case when l.kind = any (w.kinds) then w.kinds else w.kinds || l.kind end as kinds,
               case when l.kind = any (w.kinds) then w.meaning
                    else coalesce(w.meaning + k.embedding, k.embedding, w.meaning) end as meaning
        offset 0
      ) as p
      where  f.bit <> 0 or k.embedding is not null
      offset 0  -- What a path is worth is computed once for all relations of a label.
    ) as g
    cross  join lateral unnest(g.ids, g.memory_ids, g.shares) as u(id, memory_id, share)
    where  (g.worth >= 0.002 or g.words <> w.words)
      -- No entity twice.
      and  position('e' || u.id || E'\x1f' in w.way || E'\x1f') = 0
  )
  select array_agg(t.memory_id order by t.score desc, t.memory_id desc),
         array_agg(t.score order by t.score desc, t.memory_id desc),
         array_agg(t.way order by t.score desc, t.memory_id desc)
  into   memory_ids, scores, paths
  from (
    select w.memory_id, sum(w.score) as score, (array_agg(w.way order by w.score desc))[1] as way
    from (
      select distinct on (x.memory_id, split_part(x.way, E'\x1f', 1)) x.memory_id, x.score, x.way
      from   walk x
      where  x.memory_id is not null
      order  by x.memory_id, split_part(x.way, E'\x1f', 1), x.score desc
    ) as w
    group  by w.memory_id
  ) as t;
end;
$$;
comment on function pgrecall_internal._walked is
'The facts that state the relations on the paths that a question asks for, best first. score is '
'the mass of the start, divided at each entity by the number of relations of the same kind and '
'direction, of which those that do not hold in the window of the question, or now, count 0.3, '
'x 0.6 for each relation after the first, x 4 for each word that asks for one, x 80 s ^ 6, where s '
'is the similarity of the kinds on the path to the question, on the scale of the bank. paths: as '
'_activated() writes them. keys and bits: those of _asked_edges().';

-- graph/activation.sql
-- Spreading activation: what the graph leads to from hits and from the entities that a query names.
--
-- Facts and entities are nodes; mentions, relations, causal and temporal links are edges. Mass
-- starts at the best hits and at the named entities, and moves along the edges of a node in
-- proportion to their weights. No mass is added, so that a hub spreads thin by itself, and nothing
-- is cut off by its id. An entity that the question does not name, with n edges, gives a fact that
-- mentions it 1 / n of its mass, from four edges on 4 / n of that: that facts share what many
-- mention says little. A flow below least_flow is not followed, nor are the edges of a node that
-- holds less than two (forward push: Andersen, Chung and Lang 2006), which bounds a step to
-- 1 / least_flow flows in a bank of any size. The score of a fact is the mass that arrives in it,
-- weighted by its path.
--
-- What a question asks for conditions edges: a causal link in the direction that it asks for weighs
-- a hundred times as much and costs no step of option graph_steps, and the relations that it asks
-- for are walked (walk.sql). Where it asks for no cause, a path of causal links is as short as any
-- other, and such a link weighs ten times a mention behind one clear hit and less behind a crowd:
-- of the events of a month, those with causes would outvote the others. What prevents something is
-- no cause of it: beside causes it counts a tenth, unless it is asked for. Where it names somebody,
-- causes are those of hits about them: of other hits with causal links a twentieth counts. So
-- chains of relations, causes and their roots, facts that share a rare entity, and what was said
-- just before or after come from one graph.
-- Likeness is no edge: what it leads to, the semantic arm finds, and spreading over it costs
-- answers (bench/TRIED.md).
--
-- A path is a text of elements: fID for a fact, eID for an entity, >KIND:ID and <KIND:ID for a
-- relation along and against its direction with the fact that states it, *cause and *effect for
-- causal links.
create or replace function pgrecall_internal._has_cause(bank text, memory_ids bigint[])
returns boolean
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  -- A search for each memory: with an array of ids the planner may prefer to read all links.
  return exists (
    select from unnest(memory_ids) as u(id)
    where  coalesce(
             (select true from pgrecall.link o
              where  o.bank_id = _has_cause.bank and o.from_id = u.id
                and  o.kind between 'caused_by' and 'prevents'
              limit  1),
             (select true from pgrecall.link i
              where  i.bank_id = _has_cause.bank and i.to_id = u.id
                and  i.kind between 'caused_by' and 'prevents'
              limit  1),
             false)
  );
end;
$$;
comment on function pgrecall_internal._has_cause is
'Whether a causal link begins or ends at any of the memories.';

create or replace function pgrecall_internal._least_flow()
returns double precision
language sql immutable parallel safe
return 0.002;
comment on function pgrecall_internal._least_flow is
'The share of all mass below which a flow is not followed.';

create or replace function pgrecall_internal._activated(
  request pgrecall_internal.request,
  hit_ids bigint[], hit_masses double precision[],
  entity_ids bigint[], entity_masses double precision[],
  steps integer,
  out memory_ids bigint[], out scores double precision[], out paths text[])
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  least_flow constant double precision := pgrecall_internal._least_flow();
  decay      constant double precision := 0.7;
  bank       constant text := (request.bank).bank_id;
  asked      record := pgrecall_internal._asked_edges(request);
  walked     record := pgrecall_internal._walked(
    request, asked.keys, asked.bits, hit_ids, hit_masses, entity_ids, entity_masses);
  -- The nodes that hold mass now: one for each way of having come there.
  ids          bigint[] := hit_ids || entity_ids;
  are_entities boolean[] := array_fill(false, array[cardinality(hit_ids)])
                            || array_fill(true, array[cardinality(entity_ids)]);
  are_caused   boolean[] := array_fill(false, array[cardinality(ids)]);  -- by links asked for
  unasked      integer[] := array_fill(0, array[cardinality(ids)]);  -- steps nobody asked for
  masses       double precision[] := hit_masses || entity_masses;
  ways         text[] := array_fill(null::text, array[cardinality(ids)]);  -- null: begins there
  -- Of all steps.
  all_ids      bigint[] := coalesce(walked.memory_ids, '{}');
  all_scores   double precision[] := coalesce(walked.scores, '{}');
  all_ways     text[] := coalesce(walked.paths, '{}');
  -- Of one step.
  fact_ids     bigint[];
  fact_scores  double precision[];
  fact_ways    text[];
begin
  if asked.causes is not null and entity_ids <> '{}'
     and pgrecall_internal._has_cause(bank, hit_ids)
  then
    -- Where a hit is about an entity that the question names, the causes of other hits matter
    -- little.
    masses := array(
      select case when bool_or(h.is_anchored) over () and not h.is_anchored then 0.05 * h.mass
                  else h.mass end
      from (
        select u.mass, u.n, coalesce(
                 (select true from pgrecall.mention m
                  where  m.bank_id = bank and m.memory_id = u.id
                    and  m.entity_id = any (entity_ids)
                  limit  1), false) as is_anchored
        from   unnest(hit_ids, hit_masses) with ordinality as u(id, mass, n)
      ) as h
      order  by h.n) || entity_masses;
  end if;
  all_ids := all_ids || hit_ids;
  all_scores := all_scores || masses[:cardinality(hit_ids)];
  all_ways := all_ways || ways[:cardinality(hit_ids)];
  for step in 0 .. steps + 1 loop
    -- Where all steps are taken, causal links alone lead on, where the question asks for causes;
    -- steps is at least 1.
    if step >= steps and not asked.is_root then
      exit when asked.causes is null;
      exit when not steps > any (unasked)
            and not pgrecall_internal._has_cause(bank, coalesce(fact_ids, '{}'));
    end if;

    with node as materialized (
      select u.id, u.is_entity, u.is_caused, u.unasked, u.mass,
             coalesce(u.way, case when u.is_entity then 'e' else 'f' end || u.id) as way,
             (ceil(u.mass / least_flow))::integer as most
      from   unnest(ids, are_entities, are_caused, unasked, masses, ways)
               as u(id, is_entity, is_caused, unasked, mass, way)
      where  u.mass >= 2 * least_flow
    ),
    -- The sum of the weights is computed for each node: over all sorted edges, the step took a
    -- tenth longer.
    edge as (
      -- Of facts. A fact keeps a share: one with a single edge passes on half.
      select n.is_caused or x.is_caused as is_caused, n.unasked, n.mass, n.way, x.id,
             x.is_entity, x.label, null::bigint as memory_id, x.is_asked, x.weight,
             x.total + 1 as total
      from   node n
      cross  join lateral (select y.*, sum(y.weight) over () as total from (
        (select m.entity_id, true, null, false, false, 1::double precision
         from   pgrecall.mention m
         where  n.unasked < steps and m.bank_id = bank and m.memory_id = n.id
         limit  100)
        union all
        select l.id, false, l.label,
               coalesce(l.label = '*' || asked.causes, false), l.label is not null,
               l.weight * case when l.label is null then 3
                               when l.label = '*' || asked.causes then 100
                               when asked.causes is not null then 3
                               else 10 * coalesce((
                                 -- 1 for one hit, 1 / n for n alike.
                                 select sum(m ^ 2) / nullif(sum(m) ^ 2, 0)
                                 from   unnest(hit_masses) as m), 1) end
               * case when l.is_prevention and not asked.is_prevention and bool_or(
                             l.label = '*' || asked.causes and not l.is_prevention) over ()
                      then 0.1 else 1 end
        from (
          -- An update has the causes of what it updated, which would take a share of them, or
          -- its place.
          (select o.to_id as id, o.weight, o.kind = 'prevents' as is_prevention,
                  case o.kind when 'temporal' then null when 'caused_by' then '*cause'
                              else '*effect' end as label
           from   pgrecall.link o
           where  o.bank_id = bank and o.from_id = n.id
             and  case when o.kind = 'temporal' then n.unasked < steps else (
                    select true from pgrecall.memory m
                    where  m.bank_id = bank and m.memory_id = o.to_id
                      and  m.valid_from <= request.as_of
                      and  (m.valid_to is null or m.valid_to > request.as_of
                            or m.corrections -> -1 ->> 'kind' is distinct from 'update')
                    limit  1) end
           limit  100)
          union all
          (select i.from_id, i.weight, i.kind = 'prevents',
                  case i.kind when 'temporal' then null when 'caused_by' then '*effect'
                              else '*cause' end
           from   pgrecall.link i
           where  i.bank_id = bank and i.to_id = n.id
             and  case when i.kind = 'temporal' then n.unasked < steps else (
                    select true from pgrecall.memory m
                    where  m.bank_id = bank and m.memory_id = i.from_id
                      and  m.valid_from <= request.as_of
                      and  (m.valid_to is null or m.valid_to > request.as_of
                            or m.corrections -> -1 ->> 'kind' is distinct from 'update')
                    limit  1) end
           limit  100)
        ) as l
        union all
        -- A root has nothing behind it: the mass that arrives there stays.
        select n.id, false, 'stay', true, true, 10
        where  asked.is_root and n.is_caused
      ) as y(id, is_entity, label, is_caused, is_asked, weight)) as x
      where  not n.is_entity
      union all
      -- Of entities.
      select n.is_caused, n.unasked, n.mass, n.way, x.id, x.is_entity, x.label, x.memory_id, false,
             x.weight,
             x.total * case when step > 0 and x.label is null then greatest(1, x.total / 4)
                            else 1 end
      from   node n
      cross  join lateral (select y.*, sum(y.weight) over () as total from (
        (select m.memory_id, false, null, null::bigint, 1::double precision
         from   pgrecall.mention m
         where  m.bank_id = bank and m.entity_id = n.id
         order  by m.fact_type desc, m.memory_id desc
         -- Beside hits, what is too little for each is followed nowhere.
         limit  n.most + (hit_ids <> '{}')::integer)
        union all
        select r.id, true, r.label, r.memory_id, r.confidence
        from (
          (select o.to_id as id, '>' || o.kind as label, o.memory_id, o.confidence, o.valid_from
           from   pgrecall.relation o
           where  o.bank_id = bank and o.from_id between n.id and n.id
           order  by o.from_id desc, o.relation_id desc
           limit  n.most)
          union all
          (select i.from_id, '<' || i.kind, i.memory_id, i.confidence, i.valid_from
           from   pgrecall.relation i
           where  i.bank_id = bank and i.to_id between n.id and n.id
           order  by i.to_id desc, i.relation_id desc
           limit  n.most)
        ) as r
        cross  join lateral (
          select from pgrecall.memory x
          where  x.bank_id = bank and x.memory_id = r.memory_id and x.valid_from <= request.as_of
          limit  1
        ) as known
        where  r.valid_from is null or r.valid_from <= request.as_of
      ) as y(id, is_entity, label, memory_id, weight)) as x
      where  n.is_entity
    )
    select array_agg(t.id), array_agg(t.is_entity), array_agg(t.is_caused),
           array_agg(t.unasked), array_agg(t.mass), array_agg(t.way),
           array_agg(t.id) filter (where not t.is_entity) as fact_ids,
           array_agg(t.way) filter (where not t.is_entity) as fact_ways,
           array_agg(
             t.mass * case when t.is_caused then 10
                           when t.unasked < steps then 0.3 * decay ^ t.unasked
                           else decay ^ steps end)
             filter (where not t.is_entity) as fact_scores
    into   ids, are_entities, are_caused, unasked, masses, ways, fact_ids, fact_ways, fact_scores
    from (
      select f.id, f.is_entity, f.is_caused, f.unasked, sum(f.flow) as mass,
             (array_agg(f.way order by f.flow desc))[1] as way
      from (
        select e.id, e.is_entity, e.is_caused, e.unasked + (not e.is_asked)::integer as unasked,
               e.mass * e.weight / e.total as flow,
               -- A path begins with the named entity, and ends with what a fact states.
               case when e.label = 'stay' then e.way
                    when e.is_entity and e.label is null and e.id = any (entity_ids)
                      then 'e' || e.id
                    else concat_ws(E'\x1f', e.way, e.label || coalesce(':' || e.memory_id, ''),
                                   case when e.is_entity then 'e' else 'f' end || e.id) end
                 as way
        from   edge e
        where  e.mass * e.weight / e.total >= least_flow
          -- An entity reached by the last step would lead nowhere.
          and  e.unasked + (not e.is_asked)::integer <= steps - e.is_entity::integer
      ) as f
      group  by f.id, f.is_entity, f.is_caused, f.unasked
    ) as t;
    exit when ids is null;
    all_ids := all_ids || fact_ids;
    all_ways := all_ways || fact_ways;
    all_scores := all_scores || fact_scores;
  end loop;

  select array_agg(t.id order by t.score desc, t.id desc),
         array_agg(sqrt(t.score) order by t.score desc, t.id desc),
         array_agg(t.way order by t.score desc, t.id desc)
  into   memory_ids, scores, paths
  from (
    select u.id, sum(u.score) as score, (array_agg(u.way order by u.score desc))[1] as way
    from (
      -- The start of a path took no step.
      select x.id, x.score * case when x.way is null then 0.3 else 1 end,
             coalesce(x.way, 'f' || x.id)
      from   unnest(all_ids, all_scores, all_ways) as x(id, score, way)
    ) as u(id, score, way)
    group  by u.id
  ) as t;
end;
$$;
comment on function pgrecall_internal._activated is
'Facts that hold mass after spreading from hits and entities, whose masses add up to about 1, best '
'first. score is the square root of the mass that passed through: 0.3 x 0.7 ^ n of it after n '
'steps that the question did not ask for (0.7 ^ n after the last), ten times all of it along '
'causes asked for, and what _walked() gives. paths: the heaviest path to each. steps: how many '
'steps that the question did not ask for a path may have. It is longer than 100 lines because it '
'is one statement and its loop.';

-- graph/graph.sql
-- The graph arm: what spreading activation finds from the best hits of the arms before it and from
-- the entities that the query names.
--
-- Six tenths of the mass start in hits, by the fifth power of their share of the best fused
-- score, so that a clear winner leads on and a crowd does not; the rest in the entities named, each
-- by its confidence over its number of mentions. Less starts there where many facts hold the words
-- of a name and few mention the entity, as with "album" or "first": then the question hardly means
-- it. Without one of the two the other gets all. Where an entity has more mentions than flows are
-- followed, as much starts in those facts about the named that fit the question best.
--
-- Only what a question asks for can reach a score of 1, at which arms() calls the arm certain.
-- Where the mass only stays in hits and spreads to their neighbours, less of the weight counts,
-- because the arm then adds little to the arms before it.
create or replace function pgrecall_internal._hit_masses(
  request pgrecall_internal.request, hits pgrecall.arm_hit[],
  arms pgrecall_internal.arm_found[], total double precision,
  out memory_ids bigint[], out masses double precision[])
language plpgsql immutable parallel safe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
declare
  boost   double precision := (request.options ->> 'named_boost')::double precision;
  k       integer := (request.options ->> 'rrf_k')::integer;
  weights jsonb := pgrecall_internal._doubted_weights(request.options, arms);
begin
  with arm as (
    select f.arm, f.best, (weights ->> f.arm)::double precision as weight
    from   unnest(arms) as f
    where  f.finds = 'memory'
  ),
  fused as (
    select h.memory_id,
           sum(a.weight * h.score / a.best
               * (1 + boost * coalesce(h.named, 0)) / (k + h.rank)) as score
    from   unnest(hits) as h
    join   arm a on a.arm = h.arm
    where  h.score > 0 and a.weight > 0
    group  by h.memory_id
  ),
  best as (
    select f.memory_id, (f.score / max(f.score) over ()) ^ 5 as share
    from   fused f
    order  by f.score desc, f.memory_id desc
    limit  50
  )
  select array_agg(s.memory_id order by s.share desc, s.memory_id desc),
         array_agg(total * (s.share / s.shares) order by s.share desc, s.memory_id desc)
  into   memory_ids, masses
  from   (select b.memory_id, b.share, sum(b.share) over () as shares from best b) as s;
end;
$$;
comment on function pgrecall_internal._hit_masses is
'The 50 best hits with the mass that each starts with, by the fifth power of its share of the best '
'score, by score-weighted RRF. total: the sum of the masses.';

create or replace function pgrecall_internal._entity_masses(
  request pgrecall_internal.request,
  out entity_ids bigint[], out masses double precision[], out sure double precision)
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
begin
  if request.named = '{}' then
    return;
  end if;
  select array_agg(e.entity_id), array_agg(e.mass / e.total), least(1, sum(e.sure))
  into   entity_ids, masses, sure
  from (
    select q.entity_id, q.confidence / n.facts as mass,
           sum(q.confidence / n.facts) over () as total,
           greatest(q.mentions, 1)::double precision / n.facts as sure
    from   unnest(request.named) as q
    cross  join lateral (
      select greatest(1, q.mentions, min(t.count)) as facts
      from   pgrecall.lexemes((request.bank).text_search_config::regconfig, q.matched) as l
      join   unnest((request.memory_terms).dimensions, (request.memory_terms).counts)
               as t(dimension, count)
        on   t.dimension = pgrecall_internal._dimension(l.lexeme)
    ) as n
  ) as e
  where  e.mass > 0;
end;
$$;
comment on function pgrecall_internal._entity_masses is
'The entities that a query names with the mass that each starts with, together 1: confidence over '
'the number of facts that mention it, or that hold the rarest word of its name, whichever is more. '
'sure: the share of those facts that mention it, summed, at most 1.';

create or replace function pgrecall_internal._named_masses(
  request pgrecall_internal.request, hits pgrecall.arm_hit[],
  entity_ids bigint[], entity_masses double precision[],
  inout memory_ids bigint[], inout masses double precision[], out is_added boolean)
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
declare
  thin double precision := (
    select sum(u.mass)
    from   unnest(entity_ids, entity_masses) as u(id, mass)
    join   unnest(request.named) as q on q.entity_id = u.id
    where  u.mass < q.mentions * pgrecall_internal._least_flow());
begin
  is_added := thin is not null and (request.about).memory_ids is not null;
  if not is_added then
    return;
  end if;
  select array_agg(m.id order by m.mass desc, m.id desc),
         array_agg(m.mass order by m.mass desc, m.id desc)
  into   memory_ids, masses
  from (
    select u.id, sum(u.mass) as mass
    from (
      select x.id, x.mass from unnest(memory_ids, masses) as x(id, mass)
      union all
      select b.id, thin * (b.score ^ 3 / sum(b.score ^ 3) over ())
      from (
        select f.id,
               f.named * (1 + f.similarity)
               -- Without the temporal arm, or any of its hits, the window says nothing.
               * case when max(f.proximity) over () > 0 then coalesce(f.proximity, 0) else 1 end
                 as score
        from (
          select h.memory_id as id, max(h.named)::double precision as named,
                 greatest(0, max(h.score) filter (where h.arm = 'semantic')) as similarity,
                 max(h.score) filter (where h.arm = 'temporal') as proximity
          from   unnest(hits) as h
          where  h.named > 0
          group  by h.memory_id
        ) as f
        order  by 2 desc, 1 desc
        limit  50
      ) as b
      where  b.score > 0
    ) as u
    group  by u.id
  ) as m;
end;
$$;
comment on function pgrecall_internal._named_masses is
'Memories and masses, and added to these, where an entity that a query names has too many mentions '
'for its mass to spread over, the 50 hits about the named that fit the question best, with that '
'mass: by the third power of the weights of the names, more for similarity, times the score in the '
'window.';

create or replace function pgrecall_internal._graph_search(
  request pgrecall_internal.request, hits pgrecall.arm_hit[],
  out memory_ids bigint[], out scores double precision[], out paths text[])
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
declare
  named_share constant double precision := 0.4;
  entity record := pgrecall_internal._entity_masses(request);
  share  double precision := case when entity.entity_ids is null then 1
                                  else 1 - named_share * entity.sure end;
  seed   record := pgrecall_internal._hit_masses(
    request, hits, coalesce(request.found, pgrecall_internal._arms_found(hits)), share);
  found  record;
  depth  integer;
begin
  if seed.memory_ids is null then
    share := 0;
  end if;
  for n in 1 .. coalesce(cardinality(entity.masses), 0) loop
    entity.masses[n] := (1 - share) * entity.masses[n];
  end loop;
  seed := pgrecall_internal._named_masses(
    request, hits, entity.entity_ids, entity.masses, seed.memory_ids, seed.masses);
  found := pgrecall_internal._activated(
    request, coalesce(seed.memory_ids, '{}'), coalesce(seed.masses, '{}'),
    coalesce(entity.entity_ids, '{}'), coalesce(entity.masses, '{}'),
    (request.options ->> 'graph_steps')::integer);
  -- Where nothing leads on, the hits alone are no evidence from the graph.
  if not seed.is_added and position(E'\x1f' in array_to_string(found.paths, '')) = 0 then
    memory_ids := '{}';
    return;
  end if;
  if request.during is not null and request.named = '{}' then
    -- Where nobody is named, the window anchors the question: memories outside it count less,
    -- whatever led to them.
    select array_agg(t.id order by t.score desc, t.id desc),
           array_agg(t.score order by t.score desc, t.id desc),
           array_agg(t.path order by t.score desc, t.id desc)
    into   found.memory_ids, found.scores, found.paths
    from (
      select u.id, u.path,
             case when m.at && request.during then u.score else 0.1 * u.score end as score
      from   unnest(found.memory_ids, found.scores, found.paths) as u(id, score, path)
      cross  join lateral (
        select coalesce(x.occurred, tstzrange(x.mentioned_at, x.mentioned_at, '[]')) as at
        from   pgrecall.memory x
        where  x.bank_id = (request.bank).bank_id and x.memory_id = u.id
        limit  1
      ) as m
    ) as t;
  end if;
  -- Beside other arms its second half changes no answer (bench/TRIED.md).
  depth := case when request.arms = '{graph}' then request.depth else (request.depth + 1) / 2 end;
  memory_ids := found.memory_ids[:depth];
  scores := found.scores[:depth];
  paths := found.paths[:depth];
  if not pgrecall_internal._are_visible(request, memory_ids) then
    -- A join, because finding an element of an array of texts reads those before it.
    select array_agg(f.id order by f.n), array_agg(f.score order by f.n),
           array_agg(f.path order by f.n)
    into   memory_ids, scores, paths
    from   unnest(found.memory_ids, found.scores, found.paths) with ordinality
             as f(id, score, path, n)
    join   unnest(pgrecall_internal._visible_places(request, found.memory_ids, depth)) as p
      on   p = f.n;
  end if;
  memory_ids := coalesce(memory_ids, '{}');
end;
$$;
comment on function pgrecall_internal._graph_search is
'Hits of the graph arm, best first. paths: the path to each, as _activated() writes it.';

create or replace function pgrecall_internal._has_edge(bank text)
returns boolean
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return coalesce(
    (select true from pgrecall.mention x
     where  x.bank_id = _has_edge.bank
     order  by x.entity_id, x.fact_type, x.memory_id
     limit  1),
    (select true from pgrecall.link l
     where  l.bank_id = _has_edge.bank
     order  by l.from_id, l.kind, l.to_id
     limit  1),
    false);
end;
$$;
comment on function pgrecall_internal._has_edge is 'Whether a bank holds an entity or a link.';

create or replace function pgrecall_internal._graph_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel unsafe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
declare
  result pgrecall_internal.arm_result;
  search record;
begin
  result.is_run := false;
  if request.query = '' and request.embedding is null then
    result.reason := 'there is nothing to start from';
  elsif coalesce((request.named[1]).mentions, 0) = 0
        and not pgrecall_internal._has_edge((request.bank).bank_id) then
    result.reason := 'the bank holds neither entities nor links';
  elsif is_planned then
    result.is_run := true;
    result.reason := 'entities and links may lead on from what the arms before find';
  else
    if before = '{}' and request.arms is not null then
      -- Alone, without the arms before it, the graph arm asks two itself.
      before := pgrecall_internal._named_hits(
        request,
        (pgrecall_internal._call_arm('semantic', request, '{}', false)).hits
        || (pgrecall_internal._call_arm('lexical', request, '{}', false)).hits);
    end if;
    search := pgrecall_internal._graph_search(request, before);
    result.is_run := true;
    result.memory_ids := search.memory_ids;
    result.scores := search.scores;
    result.paths := search.paths;
    if result.memory_ids = '{}' and request.arms is null
       and request.options ->> 'budget' <> 'high'
    then
      result.is_run := false;
      result.reason := 'no entity or link leads on from what the arms before found';
    end if;
  end if;
  return result;
end;
$$;
comment on function pgrecall_internal._graph_arm is 'Worker of the graph arm.';

create or replace function pgrecall.graph_arm(
  bank       text,
  query      text,
  embedding  anycompatible default null::text,
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null)
returns setof pgrecall.ranked
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select * from pgrecall_internal._ranked('graph', pgrecall_internal._request(
    bank, query, pgrecall_internal._to_halfvec(embedding), fact_types => fact_types,
    filter => filter, as_of => as_of, model => model,
    options => jsonb_build_object('depth', depth), arm => 'graph'));
end;
$$;
comment on function pgrecall.graph_arm is
'Memories that mentions, relations, causal and temporal links lead to, from the best of the '
'semantic and lexical arms and from the entities that the query names, by spreading activation in '
'option graph_steps steps. score: the square root of the mass that reached a memory, 0 upwards; '
'one on a path of relations or causes that the query asks for counts ten times for each. Errors: '
'RC001, RC004, RC005, RC006, RC008, RC011, 22023.';

create or replace function pgrecall.link_expansion(
  bank       text,
  seeds      bigint[],
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  strengths  double precision[] default null)
returns setof pgrecall.expanded
language plpgsql stable parallel unsafe rows 100
set search_path from current
as $$
declare
  request pgrecall_internal.request := pgrecall_internal._request(
    bank, '', fact_types => fact_types, filter => filter, as_of => as_of,
    options => jsonb_build_object('depth', depth), arm => 'graph');
  seed    record;
  found   record;
begin
  if exists (select from unnest(strengths) as s(strength)
             where s.strength not between 0 and 1e100) then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'strengths must be numbers from 0 to 1e100',
      hint    = 'Pass one for each seed, such as the score of its hit.';
  end if;
  select array_agg(s.id) as ids, array_agg(s.strength / s.total) as masses
  into   seed
  from (
    select u.id, max(coalesce(u.strength, 1)) as strength,
           sum(max(coalesce(u.strength, 1))) over () as total
    from   unnest(seeds, strengths) as u(id, strength)
    where  u.id is not null
    group  by u.id
    having max(coalesce(u.strength, 1)) > 0
  ) as s;
  found := pgrecall_internal._activated(
    request, coalesce(seed.ids, '{}'), coalesce(seed.masses, '{}'), '{}', '{}', 2);
  return query
  select found.memory_ids[u.p], row_number() over (order by u.n)::integer, found.scores[u.p],
         case when l.is_causal then 0 else found.scores[u.p] end, 0::double precision,
         case when l.is_causal then found.scores[u.p] else 0 end
  from   unnest(pgrecall_internal._visible_places(
           request, found.memory_ids, request.depth)) with ordinality as u(p, n)
  cross  join lateral (
    select found.paths[u.p] ~ E'\x1f[*](cause|effect)\x1ff[0-9]+$' as is_causal
  ) as l
  order  by u.n;
end;
$$;
comment on function pgrecall.link_expansion is
'The seeds, and memories that the graph leads to from them in two steps. strengths, 0 and more, '
'are the shares of the seeds (equal when null). score is that of graph_arm(). entity_score is the '
'score where the last step was an entity, a relation or a link in time, causal_score where it was '
'a causal link; semantic_score is 0. Errors: RC001, RC008, RC011, 22023.';

create or replace function pgrecall.entity_walk(
  bank       text,
  query      text,
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  hops       integer default null)
returns setof pgrecall.ranked
language plpgsql stable parallel unsafe rows 100
set search_path from current
as $$
declare
  request pgrecall_internal.request := pgrecall_internal._request(
    bank, query, fact_types => fact_types, filter => filter, as_of => as_of,
    options => jsonb_build_object('depth', depth), arm => 'graph');
  entity  record;
  found   record;
begin
  hops := coalesce(hops, 2);
  perform pgrecall_internal._check_range('hops', hops, 0, 3);
  entity := pgrecall_internal._entity_masses(request);
  found := pgrecall_internal._activated(
    request, '{}', '{}', coalesce(entity.entity_ids, '{}'), coalesce(entity.masses, '{}'),
    hops + 1);
  return query
  select found.memory_ids[u.p], u.n::integer, found.scores[u.p]
  from   unnest(pgrecall_internal._visible_places(request, found.memory_ids, request.depth))
           with ordinality as u(p, n)
  order  by u.n;
end;
$$;
comment on function pgrecall.entity_walk is
'Memories about the entities named in a query and about entities up to hops relations away (0 to '
'3; 2 when null), best first. score is that of graph_arm(). Relations that the query asks for come '
'first. Errors: RC001, RC008, RC011, 22023.';

-- graph/neighbourhood.sql
-- The graph around an entity or a memory, for drawing it: neighbourhood().
--
-- The graph is read hop by hop. Each node adds a bounded number of edges, the newest, and all nodes
-- together at most top_k, so that a hub of any size is drawn as quickly as a small one. An edge has
-- its stored direction, from whichever end it was reached.
create or replace function pgrecall_internal._hop(
  bank pgrecall.bank, entity_ids bigint[], memory_ids bigint[], as_of timestamptz, hop integer)
returns setof pgrecall.graph_edge
language plpgsql stable parallel unsafe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  with edge as (
    select 'entity' as from_kind, r.from_id, r.kind, 'entity' as to_kind, r.to_id,
           r.confidence as weight, r.memory_id
    from   pgrecall_internal._relations_of(
             (_hop.bank).bank_id, entity_ids, _hop.as_of, 25) as r
    union all
    select 'memory', x.memory_id, 'mentions', 'entity', x.entity_id, x.confidence, x.memory_id
    from   pgrecall_internal._facts_about(
             (_hop.bank).bank_id, entity_ids, _hop.as_of, 10) as x
    union all
    select 'memory', f.id, 'mentions', 'entity', x.entity_id, x.confidence, f.id
    from   unnest(memory_ids) as f(id)
    cross  join lateral (
      select m.entity_id, m.confidence
      from   pgrecall.mention m
      where  m.bank_id = (_hop.bank).bank_id and m.memory_id = f.id
      limit  20
    ) as x
    union all
    select 'memory', x.from_id, x.kind, 'memory', x.to_id, x.weight, null
    from   unnest(memory_ids) as f(id)
    cross  join lateral (
      (select o.from_id, o.kind, o.to_id, o.weight
       from   pgrecall.link o
       where  o.bank_id = (_hop.bank).bank_id and o.from_id = f.id
         and  (select pgrecall_internal._holds(m.valid_from, m.valid_to, _hop.as_of)
               from   pgrecall.memory m
               where  m.bank_id = (_hop.bank).bank_id and m.memory_id = o.to_id)
       limit  25)
      union all
      (select i.from_id, i.kind, i.to_id, i.weight
       from   pgrecall.link i
       where  i.bank_id = (_hop.bank).bank_id and i.to_id = f.id
         and  (select pgrecall_internal._holds(m.valid_from, m.valid_to, _hop.as_of)
               from   pgrecall.memory m
               where  m.bank_id = (_hop.bank).bank_id and m.memory_id = i.from_id)
       limit  25)
    ) as x
    union all
    -- Only of the memory where the graph begins: a search for each of many nodes would be slow.
    -- Its former versions, which are the most similar, are left out first.
    select 'memory', s.from_id, 'semantic', 'memory', s.to_id, s.similarity::real, null
    from (
      select u.*
      from   pgrecall_internal._similar_memories(
               bank, case when hop = 1 then memory_ids else '{}' end, 0.7, 50) as u
      where  (select pgrecall_internal._holds(m.valid_from, m.valid_to, _hop.as_of)
              from   pgrecall.memory m
              where  m.bank_id = (_hop.bank).bank_id and m.memory_id = u.to_id)
      order  by u.similarity desc, u.to_id desc
      limit  5
    ) as s
  )
  select distinct _hop.hop, e.from_kind, e.from_id, null::text, null::bigint, e.kind, e.to_kind,
         e.to_id, null::text, null::bigint, e.weight, e.memory_id, null::real, null::real
  from   edge e;
end;
$$;
comment on function pgrecall_internal._hop is
'The edges of entities and memories, without names: of an entity the newest 25 relations in each '
'direction and the newest 10 facts of each type, of a memory its entities, 25 links in each '
'direction and, in the first hop, the 5 most similar memories. Only edges whose facts hold as of '
'the given time are returned.';

create or replace function pgrecall.neighbourhood(
  bank      text,
  entity_id bigint default null,
  memory_id bigint default null,
  hops      integer default 1,
  as_of     timestamptz default now(),
  top_k     integer default 150)
returns setof pgrecall.graph_edge
language plpgsql stable parallel unsafe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  edges      pgrecall.graph_edge[] := '{}';
  added      pgrecall.graph_edge[];
  entity_ids bigint[] := array_remove(array[entity_id], null);
  memory_ids bigint[] := array_remove(array[memory_id], null);
  seen       text[];
  documents  bigint := (
    select s.document_count from pgrecall_internal.statistics s
    where  s.bank_id = bank and s.kind = 'memory');
  owner      pgrecall.bank := pgrecall_internal._bank(bank);
begin
  as_of := coalesce(as_of, now());
  perform pgrecall_internal._check_range('hops', hops, 1, 3);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 2000);
  if num_nonnulls(entity_id, memory_id) <> 1 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'either entity_id or memory_id says where the graph begins',
      hint    = 'Pass entity_id =>, as query_entities() or list_entities() returns it, or '
                'memory_id =>.';
  elsif entity_id is not null then
    perform pgrecall_internal._check_entity(bank, entity_id);
  else
    perform pgrecall_internal._check_memory(bank, memory_id);
    memory_ids := array(
      select m.memory_id
      from   pgrecall.memory m
      where  m.bank_id = neighbourhood.bank and m.memory_id = neighbourhood.memory_id
        and  pgrecall_internal._holds(m.valid_from, m.valid_to, as_of));
  end if;

  seen := array(select 'entity' || u from unnest(entity_ids) as u
                union all select 'memory' || u from unnest(memory_ids) as u);
  for n in 1 .. hops loop
    added := array(
      select x
      from   pgrecall_internal._hop(owner, entity_ids, memory_ids, as_of, n) as x
      where  not exists (
               select from unnest(edges) as y
               where  (y.from_kind, y.from_id, y.kind, y.to_kind, y.to_id)
                        = (x.from_kind, x.from_id, x.kind, x.to_kind, x.to_id))
      -- Relations and causes say more than mentions, and mentions more than similarity.
      order  by case when x.from_kind = 'entity' then 0
                     when x.kind = 'semantic' then 3
                     when x.kind = 'temporal' then 4
                     when x.kind = 'mentions' then 2
                     else 1 end,
                x.weight desc, x.from_id desc, x.to_id desc, x.kind
      limit  top_k - cardinality(edges)
    );
    edges := edges || added;
    entity_ids := array(
      select x.from_id from unnest(added) as x
      where  x.from_kind = 'entity' and 'entity' || x.from_id <> all (seen)
      union
      select x.to_id from unnest(added) as x
      where  x.to_kind = 'entity' and 'entity' || x.to_id <> all (seen));
    memory_ids := array(
      select x.from_id from unnest(added) as x
      where  x.from_kind = 'memory' and 'memory' || x.from_id <> all (seen)
      union
      select x.to_id from unnest(added) as x
      where  x.to_kind = 'memory' and 'memory' || x.to_id <> all (seen));
    seen := seen || array(select 'entity' || u from unnest(entity_ids) as u
                          union all select 'memory' || u from unnest(memory_ids) as u);
    exit when cardinality(edges) >= top_k;
  end loop;

  return query
  with node as materialized (
    select n.kind, n.id,
           case n.kind
             when 'entity' then (
               select e.name from pgrecall.entity e
               where  e.bank_id = neighbourhood.bank and e.entity_id = n.id)
             else (
               select left(m.text, 200) from pgrecall.memory m
               where  m.bank_id = neighbourhood.bank and m.memory_id = n.id)
           end as name,
           case n.kind
             when 'entity' then greatest(
               (select x.count from pgrecall_internal._mentions(neighbourhood.bank, n.id) as x),
               (select c.mention_count from pgrecall_internal.entity_count c
                where  c.bank_id = neighbourhood.bank and c.entity_id = n.id))
           end as mentions
    from (
      select x.from_kind as kind, x.from_id as id from unnest(edges) as x
      union
      select x.to_kind, x.to_id from unnest(edges) as x
    ) as n
  )
  select e.hop, e.from_kind, e.from_id, f.name, f.mentions, e.kind, e.to_kind, e.to_id, t.name,
         t.mentions, e.weight, e.memory_id,
         pgrecall_internal._rarity(f.mentions, coalesce(documents, 1))::real,
         pgrecall_internal._rarity(t.mentions, coalesce(documents, 1))::real
  from   unnest(edges) with ordinality as e(
           hop, from_kind, from_id, from_name, from_mentions, kind, to_kind, to_id, to_name,
           to_mentions, weight, memory_id, from_rarity, to_rarity, place)
  join   node f on f.kind = e.from_kind and f.id = e.from_id
  join   node t on t.kind = e.to_kind and t.id = e.to_id
  order  by e.place;
end;
$$;
comment on function pgrecall.neighbourhood is
'The graph around an entity or a memory, up to 3 hops, as edges: those of nearer hops first, and '
'within a hop relations, then causes, mentions, and similar facts. It contains only what holds as '
'of as_of. At most top_k edges, 1 to 2,000: of an entity the newest 25 relations in each direction '
'and 10 facts of each type, of a memory 20 entities and 25 links in each direction, and of the '
'memory where the graph begins the 5 most similar. Errors: RC001, RC010 unknown memory, RC013 '
'unknown entity, 22023.';

-- retain/conflict.sql
-- Facts that contradict one another, marked in the rows of a recall.
--
-- Two memories conflict if both hold at the time asked about, and either share a fact_key but not a
-- text, or state the same relation of one entity to different entities. A relation conflicts only
-- if the bank says that an entity has only one of its kind at a time: by single_relations, or by a
-- replace that ends all others. Where times are known, they must overlap: occurred of both
-- memories, and valid_from to valid_to of both relations. Only returned rows are checked, each by
-- an index lookup of at most 20 others.
create or replace function pgrecall_internal._with_conflicts(
  request pgrecall_internal.request, hits pgrecall.recalled[])
returns pgrecall.recalled[]
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  bank   pgrecall.bank := request.bank;
  kinds  text[] := bank.single_relations;  -- empty: every kind that the bank's replace ends
  place  integer;
  others bigint[];
begin
  for place, others in
    select h.ordinality, array_agg(distinct o.memory_id)
    from   unnest(hits) with ordinality as h
    cross  join lateral (
      -- Those with the same key and another text. Only one index provides this range in this order.
      (select m.memory_id
       from   pgrecall.memory m
       where  h.fact_key is not null and m.bank_id = bank.bank_id and m.fact_key is not null
         and  lower(pgrecall_internal._normalised(m.fact_key))
                between lower(pgrecall_internal._normalised(h.fact_key))
                and     lower(pgrecall_internal._normalised(h.fact_key))
         and  coalesce(m.valid_to, 'infinity'::timestamptz) > request.as_of
         and  m.valid_from <= request.as_of and m.memory_id <> h.memory_id
         and  lower(pgrecall_internal._normalised(m.text))
                <> lower(pgrecall_internal._normalised(h.text))
         and  (m.occurred && h.occurred) is not false
       order  by lower(pgrecall_internal._normalised(m.fact_key))
       limit  20)
      union all
      -- Those that state a relation of the row to another entity.
      select m.memory_id
      from (
        select x.from_id, x.kind, x.to_id, x.valid_from, x.valid_to
        from   pgrecall.relation x
        where  (kinds <> '{}' or bank.replace in ('relation', 'both')) and h.kind = 'memory'
          and  x.bank_id = bank.bank_id and x.memory_id = h.memory_id
          and  (kinds = '{}' or x.kind = any (kinds))
        limit  20
      ) as r
      cross  join lateral (
        -- The newest hundred of that kind: earlier ones were mostly replaced.
        select x.memory_id, x.to_id, x.valid_from, x.valid_to
        from   pgrecall.relation x
        where  x.bank_id = bank.bank_id and x.from_id = r.from_id and x.kind = r.kind
        order  by x.relation_id desc
        limit  100
      ) as x
      cross  join lateral (
        select y.memory_id
        from   pgrecall.memory y
        where  y.bank_id = bank.bank_id and y.memory_id = x.memory_id
          and  y.valid_from <= request.as_of
          and  coalesce(y.valid_to, 'infinity'::timestamptz) > request.as_of
          and  (y.occurred && h.occurred) is not false
        limit  1
      ) as m
      where  x.to_id <> r.to_id and x.memory_id <> h.memory_id
        and  tstzrange(x.valid_from, x.valid_to) && tstzrange(r.valid_from, r.valid_to)
    ) as o
    group  by h.ordinality
  loop
    hits[place].conflicts_with := others;
  end loop;
  return hits;
end;
$$;
comment on function pgrecall_internal._with_conflicts is
'The rows of an answer, each with the memories that it conflicts with: those that as of the recall '
'have its key and another text, or state a relation of it to another entity, of the kinds in '
'single_relations, or of every kind where the bank names none and replaces by relation.';

-- retain/entity.sql
-- Correcting entities by hand: merge, split, rename, and find duplicates.
--
-- The names in facts are resolved to entities when the facts are written (retain/mention.sql);
-- wrong resolutions are corrected here. Aliases, mentions and relations follow the entities.
-- duplicate_entities() proposes pairs to merge. It compares names by their trigrams, without an
-- extension, and confirms similar names by their co-mentions: two spellings of one person occur
-- with the same people and places. merge_entities() and split_entity() are idempotent.

create or replace function pgrecall.merge_entities(bank text, entity_id bigint, others bigint[])
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans of the cascades must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
declare
  gone         bigint[];
  affected     bigint[];
  relation_ids bigint[];
begin
  perform pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_entity(bank, entity_id);
  gone := array(
    select e.entity_id
    from   pgrecall.entity e
    where  e.bank_id = merge_entities.bank and e.entity_id = any (others)
      and  e.entity_id <> merge_entities.entity_id
    order  by e.entity_id
  );
  affected := array(
    select distinct m.memory_id from pgrecall.mention m
    where  m.bank_id = merge_entities.bank and m.entity_id = any (gone)
  );
  perform pgrecall_internal._recount_mentions(bank, affected, -1);

  insert into pgrecall.entity_alias as k (bank_id, alias, entity_id, confidence)
  select merge_entities.bank, a.alias, merge_entities.entity_id, max(a.confidence)
  from   pgrecall.entity_alias a
  where  a.bank_id = merge_entities.bank and a.entity_id = any (gone)
  group  by a.alias
  on conflict on constraint entity_alias_pkey do update
  set confidence = greatest(k.confidence, excluded.confidence);

  insert into pgrecall.mention as k (bank_id, entity_id, fact_type, memory_id, confidence)
  select merge_entities.bank, merge_entities.entity_id, m.fact_type, m.memory_id,
         max(m.confidence)
  from   pgrecall.mention m
  where  m.bank_id = merge_entities.bank and m.entity_id = any (gone)
  group  by m.fact_type, m.memory_id
  on conflict on constraint mention_pkey do update
  set confidence = greatest(k.confidence, excluded.confidence);

  -- Relations between the merged entities, and duplicates within a fact, are deleted.
  relation_ids := array(
    select distinct r.relation_id
    from   unnest(gone || merge_entities.entity_id) as g(id)
    cross  join lateral (
      select f.relation_id from pgrecall.relation f
      where  f.bank_id = merge_entities.bank and f.from_id = g.id
      union  all
      select t.relation_id from pgrecall.relation t
      where  t.bank_id = merge_entities.bank and t.to_id = g.id
    ) as r);
  with edge as (
    select r.relation_id, r.kind, r.memory_id, r.confidence,
           case when r.from_id = any (gone) then merge_entities.entity_id else r.from_id end
             as from_id,
           case when r.to_id = any (gone) then merge_entities.entity_id else r.to_id end as to_id
    from   pgrecall.relation r
    where  r.bank_id = merge_entities.bank and r.relation_id = any (relation_ids)
  ),
  copy as (
    select e.relation_id, e.from_id = e.to_id as is_loop,
           row_number() over (partition by e.memory_id, e.from_id, e.kind, e.to_id
                              order by e.confidence desc, e.relation_id) as n
    from   edge e
  )
  delete from pgrecall.relation r
  where  r.bank_id = merge_entities.bank
    and  r.relation_id = any (array(
           select c.relation_id from copy c where c.is_loop or c.n > 1));
  update pgrecall.relation r
  set    from_id = case when r.from_id = any (gone) then merge_entities.entity_id
                        else r.from_id end,
         to_id   = case when r.to_id = any (gone) then merge_entities.entity_id else r.to_id end
  where  r.bank_id = merge_entities.bank and r.relation_id = any (relation_ids)
    and  (r.from_id = any (gone) or r.to_id = any (gone));

  update pgrecall.entity e
  set    kind = (
           select o.kind from pgrecall.entity o
           where  o.bank_id = merge_entities.bank and o.entity_id = any (gone)
             and  o.kind is not null
           order  by o.entity_id
           limit  1)
  where  e.bank_id = merge_entities.bank and e.entity_id = merge_entities.entity_id
    and  e.kind is null and cardinality(gone) > 0;
  delete from pgrecall.entity e
  where  e.bank_id = merge_entities.bank and e.entity_id = any (gone);
  perform pgrecall_internal._recount_mentions(bank, affected, 1);
  return cardinality(gone);
end;
$$;
comment on function pgrecall.merge_entities is
'Merges other entities into an entity, which keeps its name and takes over their aliases, mentions '
'and relations. Among equal relations of one fact the one with the highest confidence stays. '
'Returns how many were merged; ids of missing entities are not counted. Errors: RC001, RC013 '
'unknown entity.';

create or replace function pgrecall.split_entity(
  bank text, entity_id bigint, memory_ids bigint[], name text)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  old_entity pgrecall.entity;
  moved      bigint[];
  new_id     bigint;
begin
  perform pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_entity(bank, entity_id);
  perform pgrecall_internal._check_entity_name(name);
  select e.* into old_entity from pgrecall.entity e
  where  e.bank_id = split_entity.bank and e.entity_id = split_entity.entity_id;
  moved := array(
    select distinct m.memory_id from pgrecall.mention m
    where  m.bank_id = split_entity.bank and m.entity_id = split_entity.entity_id
      and  m.memory_id = any (split_entity.memory_ids)
  );
  if moved = '{}' then
    -- A repeated call returns the entity of the first.
    select e.entity_id into new_id
    from   pgrecall.mention m
    join   pgrecall.entity e on e.bank_id = split_entity.bank and e.entity_id = m.entity_id
    where  m.bank_id = split_entity.bank and m.memory_id = any (split_entity.memory_ids)
      and  e.name = split_entity.name
    order  by e.entity_id desc
    limit  1;
    if new_id is not null then
      return new_id;
    end if;
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('none of the memories names entity %s', entity_id),
      hint    = format('Those that do: select * from pgrecall.mention where bank_id = %L and '
                       'entity_id = %s;', bank, entity_id);
  end if;
  perform 1 from pgrecall.mention m
  where  m.bank_id = split_entity.bank and m.entity_id = split_entity.entity_id
    and  m.memory_id <> all (moved)
  limit  1;
  if not found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('no other memory names entity %s', entity_id),
      hint    = format('Rename it instead: select pgrecall.rename_entity(%L, %s, %L);',
                       bank, entity_id, name);
  end if;

  insert into pgrecall.entity as e (bank_id, name, kind)
  values (split_entity.bank, split_entity.name, old_entity.kind)
  returning e.entity_id into new_id;
  -- It keeps the aliases that occur in its facts; the old name if none does.
  insert into pgrecall.entity_alias (bank_id, alias, entity_id)
  with said as materialized (
    select ' ' || pgrecall.normalised_name(m.text) || ' ' as text
    from   pgrecall.memory m
    where  m.bank_id = split_entity.bank and m.memory_id = any (moved)
  ),
  called as (
    select a.alias
    from   pgrecall.entity_alias a
    where  a.bank_id = split_entity.bank and a.entity_id = split_entity.entity_id
      and  exists (select from said s where strpos(s.text, ' ' || a.alias || ' ') > 0)
  )
  select split_entity.bank, n.alias, new_id
  from (
    select c.alias from called c
    union
    select pgrecall.normalised_name(split_entity.name)
    union
    select pgrecall.normalised_name(old_entity.name) where not exists (select from called)
  ) as n(alias);
  delete from pgrecall.entity_alias a
  where  a.bank_id = split_entity.bank and a.entity_id = split_entity.entity_id
    and  a.alias = pgrecall.normalised_name(split_entity.name)
    and  a.alias <> pgrecall.normalised_name(old_entity.name);

  perform pgrecall_internal._recount_mentions(bank, moved, -1);
  update pgrecall.mention m
  set    entity_id = new_id, confidence = 1
  where  m.bank_id = split_entity.bank and m.entity_id = split_entity.entity_id
    and  m.memory_id = any (moved);
  perform pgrecall_internal._recount_mentions(bank, moved, 1);
  update pgrecall.relation r
  set    from_id = new_id
  where  r.bank_id = split_entity.bank and r.from_id = split_entity.entity_id
    and  r.memory_id = any (moved);
  update pgrecall.relation r
  set    to_id = new_id
  where  r.bank_id = split_entity.bank and r.to_id = split_entity.entity_id
    and  r.memory_id = any (moved);
  return new_id;
end;
$$;
comment on function pgrecall.split_entity is
'Splits an entity in two: the mentions and relations of these memories move to a new entity of '
'that name and of the same kind. Aliases of the old entity that occur in these memories become '
'aliases of the new one too, so that later facts are resolved between the two; the new name is no '
'longer an alias of the old entity. Returns the new id, also when the same call was made before. '
'Errors: RC001, RC013 unknown entity, 22023 unusable name, no memory or every memory mentions it.';

create or replace function pgrecall.rename_entity(bank text, entity_id bigint, name text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_entity(bank, entity_id);
  perform pgrecall_internal._check_entity_name(name);
  insert into pgrecall.entity_alias (bank_id, alias, entity_id)
  values (rename_entity.bank, pgrecall.normalised_name(rename_entity.name),
          rename_entity.entity_id)
  on conflict on constraint entity_alias_pkey do nothing;
  update pgrecall.entity e
  set    name = rename_entity.name
  where  e.bank_id = rename_entity.bank and e.entity_id = rename_entity.entity_id;
end;
$$;
comment on function pgrecall.rename_entity is
'Gives an entity another name; the old one stays an alias. Errors: RC001, RC013 unknown entity, '
'22023 unusable name.';

create or replace function pgrecall_internal._similar_entities(bank text, top_k integer)
returns table (entity_id bigint, other_id bigint, likeness double precision, is_part boolean,
               reason text)
language plpgsql stable parallel safe rows 200
set search_path from current
set jit = off
-- Names are joined by hash, however few the planner takes them for.
set enable_nestloop = off
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  with named as materialized (
    select a.entity_id, a.alias, pgrecall_internal._kind_class(e.kind) as kind,
           array(select w from string_to_table(a.alias, ' ') as w order by w) as words,
           -- Of each word with two spaces before it and one after.
           array(select distinct substr('  ' || w.word || ' ', g.n, 3)
                 from   string_to_table(a.alias, ' ') as w(word),
                        generate_series(1, length(w.word) + 1) as g(n)
                 order  by 1) as trigrams,
           row_number() over (order by a.entity_id, a.alias) as n
    from (
      select x.entity_id, x.kind
      from   pgrecall.entity x
      where  x.bank_id = _similar_entities.bank
      order  by x.entity_id desc
      limit  10000
    ) as e
    cross  join lateral (
      select y.entity_id, y.alias
      from   pgrecall.entity_alias y
      where  y.bank_id = _similar_entities.bank and y.entity_id = e.entity_id
      limit  20
    ) as a
  ),
  -- A trigram of many names is not distinctive.
  gram as materialized (
    select g.gram, array_agg(n.n order by n.n) as numbers
    from   named n, unnest(n.trigrams) as g(gram)
    group  by g.gram
    having count(*) between 2 and 50
  ),
  near as materialized (
    select x.n, y.n as other
    from   gram g, unnest(g.numbers) as x(n), unnest(g.numbers) as y(n)
    where  x.n < y.n
    group  by x.n, y.n
    -- The names of many equally named entities consist of such trigrams: their pairs are added
    -- here.
    union
    select s.numbers[1], y.n
    from (
      select array_agg(n.n order by n.n) as numbers
      from   named n
      group  by n.alias
      having count(*) > 1
    ) as s
    cross  join lateral unnest(s.numbers[2:50]) as y(n)
  ),
  likeness as (
    select x.entity_id as one, y.entity_id as other,
           case
             when x.alias = y.alias then 1.0
             when x.words = y.words then 0.95
             when x.words <@ y.words or y.words <@ x.words then 0.7
             else t.shared::double precision
                  / (cardinality(x.trigrams) + cardinality(y.trigrams) - t.shared)
           end as likeness,
           x.words <@ y.words or y.words <@ x.words as is_part,
           case
             when x.alias = y.alias then format('both go by "%s"', x.alias)
             when x.words = y.words
               then format('"%s" and "%s" have the same words', x.alias, y.alias)
             when x.words <@ y.words then format('"%s" is a part of "%s"', x.alias, y.alias)
             when y.words <@ x.words then format('"%s" is a part of "%s"', y.alias, x.alias)
             else format('"%s" and "%s" are spelt alike', x.alias, y.alias)
           end as reason
    from   near p
    join   named x on x.n = p.n
    join   named y on y.n = p.other
    cross  join lateral (
      select count(*) as shared
      from   (select unnest(x.trigrams) intersect all select unnest(y.trigrams)) as i
    ) as t
    where  x.entity_id <> y.entity_id and not pgrecall_internal._kinds_differ(x.kind, y.kind)
  )
  select b.one, b.other, b.likeness::double precision, b.is_part, b.reason
  from (
    select distinct on (l.one, l.other) l.*
    from   likeness l
    where  l.likeness >= 0.4
    order  by l.one, l.other, l.likeness desc, l.reason
  ) as b
  order  by b.likeness desc, b.one, b.other
  limit  top_k;
end;
$$;
comment on function pgrecall_internal._similar_entities is
'The top_k pairs of entities with the most similar names, from a likeness of 0.4, of compatible '
'kinds. likeness: 1 for the same alias, 0.95 for the same words in another order, 0.7 where one '
'name has the words of the other (is_part), else the Jaccard similarity of their trigrams. Limits: '
'the newest 10,000 entities, 20 names of each, trigrams of at most 50 names.';

create or replace function pgrecall.duplicate_entities(bank text, top_k integer default 50)
returns setof pgrecall.duplicate_entity
language plpgsql stable parallel unsafe rows 50
set search_path from current
set jit = off
set plan_cache_mode = force_custom_plan
as $$
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 10000);
  return query
  with pair as materialized (
    select p.entity_id as one, p.other_id as other, p.likeness, p.is_part, p.reason
    from   pgrecall_internal._similar_entities(duplicate_entities.bank, 4 * top_k) as p
  ),
  neighbours as materialized (
    select e.entity_id, array_agg(c.other_id) as co_mentions
    from   (select p.one from pair p union select p.other from pair p) as e(entity_id)
    cross  join lateral pgrecall_internal._co_mentions(duplicate_entities.bank, e.entity_id) as c
    group  by e.entity_id
  ),
  judged as (
    select p.one, p.other, p.likeness, p.is_part, p.reason, s.shared,
           coalesce(p.other = any (x.co_mentions), false) as has_common_fact,
           coalesce(s.shared::double precision
                    / nullif(least(cardinality(x.co_mentions), cardinality(y.co_mentions)), 0), 0)
             as overlap
    from   pair p
    left   join neighbours x on x.entity_id = p.one
    left   join neighbours y on y.entity_id = p.other
    cross  join lateral (
      select count(*) as shared from unnest(x.co_mentions) as c where c = any (y.co_mentions)
    ) as s
  ),
  scored as (
    select j.*,
           j.likeness * (0.5 + 0.5 * j.overlap)
             * case when j.has_common_fact then 0.5 else 1 end as score,
           (select x.count from pgrecall_internal._mentions(duplicate_entities.bank, j.one) as x)
             as mentions,
           (select x.count from pgrecall_internal._mentions(duplicate_entities.bank, j.other) as x)
             as other_mentions
    from   judged j
    -- Similar names alone are weak evidence: they need shared co-mentions unless nearly equal.
    where  j.likeness >= 0.95 or (j.likeness >= 0.6 and not j.is_part) or j.shared > 0
    order  by score desc, j.one, j.other
    limit  duplicate_entities.top_k
  )
  select k.entity_id, k.name, o.entity_id, o.name, s.score,
         s.reason
         || case when s.shared > 0
              then format(', and stand together with %s of the same', s.shared) else '' end
         || case when s.has_common_fact then ', but also with each other' else '' end
  from   scored s
  cross  join lateral (
    select e.entity_id, e.name from pgrecall.entity e
    where  e.bank_id = duplicate_entities.bank
      and  e.entity_id = case when s.other_mentions > s.mentions then s.other else s.one end
    limit  1
  ) as k
  cross  join lateral (
    select e.entity_id, e.name from pgrecall.entity e
    where  e.bank_id = duplicate_entities.bank
      and  e.entity_id = case when s.other_mentions > s.mentions then s.one else s.other end
    limit  1
  ) as o
  order  by s.score desc, k.entity_id, o.entity_id;
end;
$$;
comment on function pgrecall.duplicate_entities is
'Pairs of entities that may be the same, likeliest first: merge_entities(bank, entity_id, '
'array[other_id]) merges them. entity_id is the one with more mentions. Pairs of kinds that differ '
'are left out. score = likeness x (0.5 + 0.5 overlap), half of that where a fact mentions both. '
'likeness: 1 where both have the same alias, 0.95 for the same words in another order, 0.7 where '
'one name has the words of the other, else the Jaccard similarity of their trigrams, from 0.4. '
'overlap: the share of their co-mentions (the entities that latest facts mention with each) that '
'they have in common; it must not be 0 where likeness is below 0.6, or where one name is a part of '
'the other. Limits: the newest 10,000 entities, 20 names of each, trigrams of at most 50 names. '
'Errors: RC001, 22023.';

-- retain/link.sql
-- Links between facts: the edges that the graph arm follows.
--
-- A fact gets a bounded number of links when it is written, whatever the size of the bank: causal
-- links as given by the caller, and one temporal link to the preceding fact. retain() writes causal
-- links at once, and temporal ones unless they were deferred to link_pending() by link =>
-- 'deferred'. Facts with a similar meaning are not linked: graph/similar.sql searches for them.

create or replace function pgrecall_internal._store_causal_links(
  bank text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  link    record;
  from_id bigint;
  target  bigint;
begin
  for link in
    select f.n, l.position, l.kind, l.weight, l.to_id, l.to_index, l.to_key, l.target
    from   unnest(facts) as f
    cross  join lateral unnest(f.links) with ordinality
             as l(kind, weight, to_id, to_index, to_key, target, position)
    order  by f.n, l.position
  loop
    from_id := memory_ids[link.n];
    target := case
      when link.to_index is not null then memory_ids[link.to_index + 1]
      when link.to_id is not null then (
        select m.memory_id from pgrecall.memory m
        where  m.bank_id = _store_causal_links.bank and m.memory_id = link.to_id)
      else (
        select m.memory_id from pgrecall.memory m
        where  m.bank_id = _store_causal_links.bank
          and  lower(pgrecall_internal._normalised(m.fact_key))
                 = lower(pgrecall_internal._normalised(link.to_key))
          and  m.memory_id <> from_id
        order  by m.valid_to desc nulls first, m.memory_id desc
        limit  1)
    end;
    if target is null then
      perform pgrecall_internal._raise_invalid_field(
        format('facts[%s].links[%s]', link.n - 1, link.position - 1),
        format('no memory of bank "%s" answers to %s', bank, link.target),
        'Retain the fact that it leads to first, or in the same call.');
    end if;
    insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
    select _store_causal_links.bank, from_id, link.kind, target, link.weight
    where  target <> from_id
    on conflict on constraint link_pkey do nothing;
  end loop;
end;
$$;
comment on function pgrecall_internal._store_causal_links is
'Writes the causal links of facts. Errors: RC003 the target of a link does not exist.';

create or replace function pgrecall_internal._is_moment(occurred tstzrange)
returns boolean
language sql stable parallel safe
return extract(epoch from upper(occurred)) - extract(epoch from lower(occurred)) <= 90000;
comment on function pgrecall_internal._is_moment is
'Whether what occurred took at most a day, which has up to 25 hours.';

create or replace function pgrecall_internal._link_memories(bank text, memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index and its order, also those made while a table was small.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
begin
  -- The fact that happened just before, at most a day earlier: one link per fact, which chains the
  -- facts of a day. Among facts of the same time it is the one stored just before. Only the last 20
  -- are searched: sorting all facts of a day would cost more with each fact. What took longer than
  -- a day, such as a year, is next to nothing in time.
  insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
  select _link_memories.bank, v.memory_id, 'temporal', n.memory_id,
         1 - extract(epoch from v.started_at - n.started_at) / 86400
  from   unnest(memory_ids) as u(memory_id)
  cross  join lateral (
    select m.memory_id, lower(m.occurred) as started_at
    from   pgrecall.memory m
    where  m.bank_id = _link_memories.bank and m.memory_id = u.memory_id
      and  pgrecall_internal._is_moment(m.occurred)
    limit  1
  ) as v
  cross  join lateral (
    select b.memory_id, b.started_at
    from (
      (select s.memory_id, lower(s.occurred) as started_at
       from (
         select m.memory_id, m.occurred
         from   pgrecall.memory m
         where  m.bank_id = _link_memories.bank and m.memory_id < v.memory_id
         order  by m.memory_id desc
         limit  20
       ) as s
       where  lower(s.occurred) = v.started_at and pgrecall_internal._is_moment(s.occurred)
       order  by s.memory_id desc
       limit  1)
      union all
      select p.memory_id, lower(p.occurred)
      from   pgrecall.fact_type t
      cross  join lateral (
        select m.memory_id, m.occurred
        from   pgrecall.memory m
        where  m.bank_id = _link_memories.bank and m.fact_type = t.fact_type
          and  m.occurred is not null
          and  lower(m.occurred) > v.started_at - interval '1 day'
          and  lower(m.occurred) < v.started_at
        order  by lower(m.occurred) desc
        limit  20
      ) as p
      where  t.bank_id = _link_memories.bank and pgrecall_internal._is_moment(p.occurred)
    ) as b
    order  by b.started_at desc, b.memory_id desc
    limit  1
  ) as n
  where  isfinite(v.started_at)
  on conflict on constraint link_pkey do nothing;
end;
$$;
comment on function pgrecall_internal._link_memories is
'Writes temporal links, from facts that took at most a day: to the one before, within a day.';

create or replace function pgrecall.link_pending(bank text, batch_size integer default 1000)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  memory_ids bigint[];
begin
  perform pgrecall_internal._shared_bank(bank);
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  memory_ids := array(
    select p.memory_id
    from (
      select m.memory_id from pgrecall.memory m
      where  m.bank_id = link_pending.bank and not m.is_linked
      order  by m.memory_id
      limit  batch_size
      -- Another call links those.
      for    no key update skip locked
    ) as p
  );
  perform pgrecall_internal._link_memories(bank, memory_ids);
  -- The range is what the index is searched by, whatever the statistics say.
  update pgrecall.memory m
  set    is_linked = true
  where  m.bank_id = link_pending.bank and m.memory_id = any (memory_ids)
    and  m.memory_id between memory_ids[1] and memory_ids[cardinality(memory_ids)]
    and  not m.is_linked;
  return cardinality(memory_ids);
end;
$$;
comment on function pgrecall.link_pending is
'Links up to batch_size facts that were retained with link => ''deferred''; returns how many. Call '
'it until it returns 0; pending_links() counts the rest. Errors: RC001, 22023.';

create or replace function pgrecall.pending_links(bank text)
returns bigint
language plpgsql stable parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall_internal._bank(bank);
  return (
    select count(*) from pgrecall.memory m
    where  m.bank_id = pending_links.bank and not m.is_linked
  );
end;
$$;
comment on function pgrecall.pending_links is
'How many facts of a bank were retained with link => ''deferred'' and wait for link_pending(). '
'Errors: RC001.';

-- retain/mention.sql
-- Entity resolution of the names in facts: writes entities, aliases, mentions and relations.
--
-- retain() calls three functions in turn. _store_entities() creates an entity for each unknown
-- name. _store_mentions() then resolves every name to an entity: a name of one entity means that
-- entity; a name of several, or of an entity of another kind, is resolved by _resolve_names(),
-- which compares co-mentions, time and kind. _store_relations() connects the resolved entities. New
-- names are locked before (_lock_names()), so that two writers do not create an entity of the same
-- name; a writer that deletes or merges entities has the bank for itself. The queries look up one
-- alias or entity at a time, each in a lateral subquery with a limit, so that they use the index
-- also before the tables are analysed.

create or replace function pgrecall_internal._alias_candidates(bank text, aliases text[])
returns table (alias text, entity_id bigint, confidence real, is_own_name boolean, kind_class text,
               last_mentioned_at timestamptz, co_mentions bigint[])
language plpgsql stable parallel safe rows 20
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select d.alias, c.entity_id, c.confidence, c.is_own_name, c.kind_class, l.mentioned_at,
         array(select x.other_id
               from   pgrecall_internal._co_mentions(_alias_candidates.bank, c.entity_id) as x)
  from   (select distinct u.alias from unnest(aliases) as u(alias)) as d
  cross  join lateral (
    select b.entity_id, b.confidence, pgrecall_internal._kind_class(e.kind) as kind_class,
           pgrecall.normalised_name(e.name) = b.alias as is_own_name
    from   pgrecall.entity_alias b
    cross  join lateral (
      select x.name, x.kind
      from   pgrecall.entity x
      where  x.bank_id = _alias_candidates.bank and x.entity_id = b.entity_id
      limit  1
    ) as e
    where  b.bank_id = _alias_candidates.bank and b.alias = d.alias
    order  by b.confidence desc, b.entity_id
    limit  10
  ) as c
  left   join lateral (
    select m.mentioned_at
    from (
      select max(y.memory_id) as memory_id
      from   pgrecall.fact_type t
      cross  join lateral (
        select x.memory_id
        from   pgrecall.mention x
        where  x.bank_id = _alias_candidates.bank and x.entity_id = c.entity_id
          and  x.fact_type between t.fact_type and t.fact_type
        order  by x.fact_type desc, x.memory_id desc
        limit  1
      ) as y
      where  t.bank_id = _alias_candidates.bank
    ) as latest
    cross  join lateral (
      select z.mentioned_at
      from   pgrecall.memory z
      where  z.bank_id = _alias_candidates.bank and z.memory_id = latest.memory_id
      limit  1
    ) as m
  ) as l on true;
end;
$$;
comment on function pgrecall_internal._alias_candidates is
'The entities that have each alias, at most the ten with the highest confidence. is_own_name: the '
'alias is the name of the entity. last_mentioned_at: time of its latest memory. co_mentions: '
'entities that its latest facts mention too.';

create or replace function pgrecall_internal._resolve_names(
  bank text, names pgrecall_internal.fact_mention[])
returns table (n integer, entity_id bigint, confidence real)
language plpgsql stable parallel safe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  with asked as materialized (
    select u.number, u.memory_id, u.alias, u.kind_class
    from   unnest(names) with ordinality
             as u(n, memory_id, fact_type, name, alias, kind, kind_class, number)
  ),
  candidate as materialized (
    select c.*
    from   pgrecall_internal._alias_candidates(
             _resolve_names.bank, array(select a.alias from asked a)) as c
  ),
  evidence as (
    select a.number, c.entity_id, c.confidence as alias_confidence, c.is_own_name, c.kind_class,
           a.kind_class as asked_kind,
           (select count(*) from unnest(o.others) as x where x = any (c.co_mentions)) as shared,
           coalesce(power(0.5, least(abs(extract(epoch from m.mentioned_at)
                                         - extract(epoch from c.last_mentioned_at)) / 86400, 3000)
                               / 30.0)::double precision, 0) as recency,
           c.entity_id = any (o.others)
             and not pgrecall_internal._kinds_differ(c.kind_class, a.kind_class) as is_mentioned
    from   asked a
    join   candidate c on c.alias = a.alias
    cross  join lateral (
      select array(
        select x.entity_id from pgrecall.mention x
        where  x.bank_id = _resolve_names.bank and x.memory_id = a.memory_id
        limit  100
      ) as others
    ) as o
    cross  join lateral (
      select y.mentioned_at
      from   pgrecall.memory y
      where  y.bank_id = _resolve_names.bank and y.memory_id = a.memory_id
      limit  1
    ) as m
  ),
  weighted as (
    select e.number, e.entity_id, e.is_mentioned, e.alias_confidence,
           e.alias_confidence * (1 + 4 * e.shared + e.recency)
           * case when e.is_own_name then 2 else 1 end
           * case
               when e.kind_class = e.asked_kind then 1
               when not pgrecall_internal._kinds_differ(e.kind_class, e.asked_kind) then 0.5
               else 0.25
             end as weight
    from   evidence e
    where  e.is_mentioned or e.shared >= 2
       or  not pgrecall_internal._kinds_differ(e.kind_class, e.asked_kind)
  ),
  ranked as (
    select w.number, w.entity_id,
           (w.weight / nullif(sum(w.weight) over (partition by w.number), 0))::real as share,
           bool_or(w.is_mentioned) over (partition by w.number) as is_resolved,
           row_number() over (
             partition by w.number
             order by w.weight desc, w.alias_confidence desc, w.entity_id) as place
    from   weighted w
  )
  select a.number::integer, r.entity_id, coalesce(r.share, 0)
  from   asked a
  left   join ranked r on r.number = a.number and r.place = 1
  where  r.is_resolved is not true
  order  by a.number;
end;
$$;
comment on function pgrecall_internal._resolve_names is
'The entity that each name means, for names of several entities or of one of another kind; n '
'counts the names from 1. Among the candidates of _alias_candidates() the one with the highest '
'weight is taken: confidence in the alias x (1 + 4 s + r) x k, doubled where it is the entity''s '
'own name. s: number of other entities of the fact among its co-mentions. r = 0.5 ^ (days / 30) '
'between its latest mention and the fact. k: 1 for the same kind, 0.5 where one is unknown, 0.25 '
'for another kind, which requires s >= 2. Ties: the higher confidence in the alias, then the older '
'entity. confidence is the share of the weights; entity_id is null where no candidate is left. A '
'name is left out where the fact already mentions one of the candidates: by its full name, or from '
'an earlier retain().';

create or replace function pgrecall_internal._store_entities(
  bank text, facts pgrecall_internal.fact_row[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  -- A name becomes an entity unless it is an alias of an entity of the bank or batch. Where two
  -- names in the batch are aliases of each other, the first of them is the entity.
  with named as materialized (
    select e.name, e.alias, e.kind, e.kind_class, e.aliases, array[f.n, e.position] as position
    from   unnest(facts) as f
    cross  join lateral unnest(f.names) with ordinality
             as e(name, alias, kind, kind_class, aliases, position)
  ),
  alias as (
    select n.alias as owner, a.alias, min(n.kind_class) as kind_class, min(n.position) as position
    from   named n, unnest(n.aliases) as a(alias)
    group  by 1, 2
  ),
  first_alias as (
    select a.owner, a.alias
    from   alias a
    where  a.owner <> a.alias
      and  not exists (
             select from alias b
             where  b.owner = a.alias and (b.position, b.owner) < (a.position, a.owner))
  ),
  new_entity as (
    insert into pgrecall.entity as e (bank_id, name, kind)
    select _store_entities.bank, u.name, u.kind
    from (
      select distinct on (n.alias) n.name, n.kind,
             min(n.position) over (partition by n.alias) as position
      from   named n
      where  (select true from pgrecall.entity_alias a
              where  a.bank_id = _store_entities.bank and a.alias = n.alias
              limit  1) is null
        and  not exists (
               select from first_alias a
               where  a.alias = n.alias
                 and  not exists (select from first_alias o where o.alias = a.owner))
      order  by n.alias, n.kind is null, n.position
    ) as u
    -- The older of two entities with one name is preferred, so ids follow the order of the names.
    order  by u.position
    returning e.entity_id, e.name, e.kind
  ),
  known as (
    select e.entity_id, e.kind, pgrecall.normalised_name(e.name) as alias from new_entity e
    union
    select a.entity_id, e.kind, a.alias
    from   (select distinct n.alias from named n) as d
    cross  join lateral (
      select x.entity_id, x.alias
      from   pgrecall.entity_alias x
      where  x.bank_id = _store_entities.bank and x.alias = d.alias
      offset 0
    ) as a
    cross  join lateral (
      select x.kind
      from   pgrecall.entity x
      where  x.bank_id = _store_entities.bank and x.entity_id = a.entity_id
      limit  1
    ) as e
  )
  insert into pgrecall.entity_alias (bank_id, alias, entity_id)
  select _store_entities.bank, k.alias, k.entity_id from known k
  union
  select _store_entities.bank, a.alias, k.entity_id
  from   alias a
  join   known k on k.alias = a.owner
  where  not pgrecall_internal._kinds_differ(
           a.kind_class, pgrecall_internal._kind_class(k.kind))
  order  by 2, 3
  on conflict do nothing;
end;
$$;
comment on function pgrecall_internal._store_entities is
'Writes the entities and aliases of facts: afterwards every name in them is an alias.';

create or replace function pgrecall_internal._store_certain_mentions(
  bank text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns pgrecall_internal.fact_mention[]
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small; and join names by hash,
-- however few the planner takes them for.
set enable_seqscan = off
set enable_nestloop = off
set plan_cache_mode = force_generic_plan
as $$
declare
  ambiguous pgrecall_internal.fact_mention[];
begin
  with ranked as (
    select f.n, memory_ids[f.n] as memory_id, f.fact_type, e.name, e.alias, e.kind, e.kind_class,
           row_number() over (partition by f.n, e.alias, e.kind_class order by e.name) as copy,
           e.kind_class is null and count(e.kind_class) over (partition by f.n, e.alias) > 0
             as has_kind_elsewhere
    from   unnest(facts) as f
    cross  join lateral unnest(f.names) as e
  ),
  -- Each name once per fact; one with two kinds in a fact counts as two.
  named as materialized (
    select * from ranked r where r.copy = 1 and not r.has_kind_elsewhere
  ),
  candidate as materialized (
    select d.alias, c.entity_ids, c.kind_classes, c.confidence
    from   (select distinct n.alias from named n) as d
    cross  join lateral (
      select array_agg(x.entity_id) as entity_ids,
             array_agg(pgrecall_internal._kind_class(x.kind)) as kind_classes,
             min(x.confidence) as confidence
      from (
        select b.entity_id, b.confidence, e.kind
        from   pgrecall.entity_alias b
        cross  join lateral (
          select z.kind
          from   pgrecall.entity z
          where  z.bank_id = _store_certain_mentions.bank and z.entity_id = b.entity_id
          limit  1
        ) as e
        where  b.bank_id = _store_certain_mentions.bank and b.alias = d.alias
        limit  2
      ) as x
    ) as c
  ),
  judged as materialized (
    select n.*, c.entity_ids[1] as entity_id, c.confidence,
           c.kind_classes[1] is null as has_no_kind,
           cardinality(c.entity_ids) > 1
           or pgrecall_internal._kinds_differ(n.kind_class, c.kind_classes[1])
           or (n.kind_class is null
               and bool_or(pgrecall_internal._kinds_differ(n.kind_class, c.kind_classes[1]))
                     over (partition by n.alias)) as is_ambiguous
    from   named n
    join   candidate c on c.alias = n.alias
  ),
  kind_found as materialized (
    select distinct on (j.entity_id) j.entity_id, j.kind
    from   judged j
    where  j.has_no_kind and j.kind_class is not null and not j.is_ambiguous
    order  by j.entity_id, j.n
  ),
  kind_stored as (
    update pgrecall.entity e
    set    kind = t.kind
    from   kind_found t
    -- The array keeps to the primary key, whatever is known of the bank.
    where  e.bank_id = _store_certain_mentions.bank and e.entity_id = t.entity_id
      and  e.entity_id = any (array(select x.entity_id from kind_found x))
  ),
  stored as (
    insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id, confidence)
    select _store_certain_mentions.bank, j.entity_id, j.fact_type, j.memory_id, max(j.confidence)
    from   judged j
    where  not j.is_ambiguous
    group  by 2, 3, 4
    on conflict on constraint mention_pkey do nothing
  )
  select array_agg(
           row(j.n, j.memory_id, j.fact_type, j.name, j.alias, j.kind, j.kind_class)
             ::pgrecall_internal.fact_mention
           order by j.n, j.alias, j.kind)
  into   ambiguous
  from   judged j
  where  j.is_ambiguous;
  return coalesce(ambiguous, '{}');
end;
$$;
comment on function pgrecall_internal._store_certain_mentions is
'Writes the mentions of the names in facts, those of relations too, that have one entity, of a '
'compatible kind; the entity takes over the kind where its own is unknown. Returns the other '
'names, which are ambiguous, in order. memory_ids are those of the facts, in order.';

create or replace function pgrecall_internal._store_ambiguous_mentions(
  bank text, names pgrecall_internal.fact_mention[], facts pgrecall_internal.fact_row[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  with resolved as materialized (
    select d.n, d.memory_id, d.fact_type, d.name, d.alias, d.kind, d.kind_class, d.position,
           r.entity_id, r.confidence
    from   pgrecall_internal._resolve_names(_store_ambiguous_mentions.bank, names) as r
    join   unnest(names) with ordinality
             as d(n, memory_id, fact_type, name, alias, kind, kind_class, position)
      on   d.position = r.n
  ),
  new_entity as (
    insert into pgrecall.entity as e (bank_id, name, kind)
    select _store_ambiguous_mentions.bank, u.name, u.kind
    from (
      select distinct on (r.alias, r.kind_class) r.name, r.kind, r.position
      from   resolved r
      where  r.entity_id is null
      order  by r.alias, r.kind_class, r.position
    ) as u
    order  by u.position
    returning e.entity_id, pgrecall.normalised_name(e.name) as alias,
              pgrecall_internal._kind_class(e.kind) as kind_class
  ),
  new_alias as (
    insert into pgrecall.entity_alias (bank_id, alias, entity_id)
    select _store_ambiguous_mentions.bank, n.alias, n.entity_id
    from   new_entity n
    union
    select _store_ambiguous_mentions.bank, a.alias, n.entity_id
    from   new_entity n
    join   resolved r on r.alias = n.alias and r.kind_class = n.kind_class
    join   unnest(facts) as f on f.n = r.n
    cross  join lateral unnest(f.names) as i
    cross  join lateral unnest(i.aliases) as a(alias)
    where  i.alias = n.alias and i.kind_class = n.kind_class
  )
  insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id, confidence)
  select _store_ambiguous_mentions.bank, u.entity_id, u.fact_type, u.memory_id, max(u.confidence)
  from (
    select coalesce(r.entity_id, n.entity_id) as entity_id, r.fact_type, r.memory_id,
           case when r.entity_id is null then 1 else r.confidence end as confidence
    from   resolved r
    left   join new_entity n on r.entity_id is null and n.alias = r.alias
                            and n.kind_class = r.kind_class
  ) as u
  group  by u.entity_id, u.fact_type, u.memory_id
  on conflict on constraint mention_pkey do nothing;
end;
$$;
comment on function pgrecall_internal._store_ambiguous_mentions is
'Writes the mentions of ambiguous names, as _resolve_names() resolves them. A name whose '
'candidates are all of another kind becomes a new entity, with the aliases that the fact gives for '
'it.';

create or replace function pgrecall_internal._store_mentions(
  bank text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  -- A fact that is known may mention more than when it was counted.
  watermark bigint := (
    select s.watermark from pgrecall_internal.statistics s
    where  s.bank_id = _store_mentions.bank and s.kind = 'memory');
  known     bigint[] := array(select u from unnest(memory_ids) as u where u <= watermark);
  counted   pgrecall.mention[] := array(
    select x
    from   unnest(known) as u(memory_id)
    cross  join lateral (
      select m.* from pgrecall.mention m
      where  m.bank_id = _store_mentions.bank and m.memory_id between u.memory_id and u.memory_id
      offset 0
    ) as x);
  names     pgrecall_internal.fact_mention[];
  has_kind  boolean;
begin
  names := pgrecall_internal._store_certain_mentions(bank, facts, memory_ids);
  -- Names with a kind first: some become entities that are candidates for names without a kind.
  foreach has_kind in array case when names = '{}' then '{}' else array[true, false] end loop
    perform pgrecall_internal._store_ambiguous_mentions(
      bank,
      array(select u from unnest(names) as u
            where (u.kind_class is not null) = has_kind
            order by u.n, u.alias, u.kind),
      facts);
  end loop;
  if known <> '{}' then
    perform pgrecall_internal._count_mentions(bank, 0, watermark, known, counted);
  end if;
end;
$$;
comment on function pgrecall_internal._store_mentions is
'Writes which entities facts mention, after _store_entities(); memory_ids are those of the facts, '
'in order.';

create or replace function pgrecall_internal._store_relations(
  bank text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  insert into pgrecall.relation
         (bank_id, from_id, kind, to_id, memory_id, confidence, valid_from, valid_to)
  select _store_relations.bank, s.entity_id, r.kind, e.entity_id, s.memory_id,
         r.confidence * s.confidence * e.confidence, r.valid_from, r.valid_to
  from   unnest(facts) as f
  cross  join lateral unnest(f.relations) as r
  -- Its ends are entities that the fact mentions.
  cross  join lateral (
    select x.*
    from (
      select k.entity_id, k.confidence
      from   pgrecall.entity_alias k
      where  k.bank_id = _store_relations.bank and k.alias = r.from_alias
      offset 0
    ) as a
    cross  join lateral (
      select m.entity_id, m.memory_id, m.confidence
      from   pgrecall.mention m
      where  m.bank_id = _store_relations.bank and m.memory_id = memory_ids[f.n]
        and  m.entity_id = a.entity_id
      limit  1
    ) as x
    order  by x.confidence desc, a.confidence desc, x.entity_id
    limit  1
  ) as s
  cross  join lateral (
    select x.*
    from (
      select k.entity_id, k.confidence
      from   pgrecall.entity_alias k
      where  k.bank_id = _store_relations.bank and k.alias = r.to_alias
      offset 0
    ) as a
    cross  join lateral (
      select m.entity_id, m.confidence
      from   pgrecall.mention m
      where  m.bank_id = _store_relations.bank and m.memory_id = memory_ids[f.n]
        and  m.entity_id = a.entity_id
      limit  1
    ) as x
    order  by x.confidence desc, a.confidence desc, x.entity_id
    limit  1
  ) as e
  where  s.entity_id <> e.entity_id
  on conflict do nothing;
end;
$$;
comment on function pgrecall_internal._store_relations is
'Writes the relations of facts, between entities that they mention; after _store_mentions().';

-- retain/message.sql
-- Raw messages and the sessions they belong to.
--
-- Messages are verbatim; facts are extracted from them. retain_messages() reads each message once
-- into a typed row, stores those that the bank does not hold yet and opens the sessions that they
-- name. message_context() returns a message with its neighbours.
-- Where a bank sets message_context_weight, the words of the messages right before and after one
-- also count for it: storing a message then changes the weights of its neighbours. log_session()
-- stores the bounds of a conversation, for questions such as "since we last talked".

create or replace function pgrecall.log_session(
  bank text, session text, started_at timestamptz default now(), ended_at timestamptz default null)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall_internal._shared_bank(bank);
  if session is null or session = '' or length(session) > 500 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('"%s" cannot name a session', left(session, 50)),
      hint    = 'Use 1 to 500 characters.';
  end if;
  -- A call that sets the end need not repeat the start.
  started_at := least(started_at, (
    select s.started_at from pgrecall.session s
    where  s.bank_id = log_session.bank and s.session_id = log_session.session));
  if started_at is null or ended_at < started_at then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('session "%s" cannot last from %s to %s', session,
                       coalesce(started_at::text, 'null'), ended_at),
      hint    = 'A session ends after it started.';
  end if;
  insert into pgrecall.session as s (bank_id, session_id, started_at, ended_at)
  values (log_session.bank, log_session.session, log_session.started_at, log_session.ended_at)
  on conflict on constraint session_pkey do update
  set started_at = least(s.started_at, excluded.started_at),
      ended_at   = coalesce(excluded.ended_at, s.ended_at);
end;
$$;
comment on function pgrecall.log_session is
'Records when a conversation began and, if known, when it ended; a second call sets the end. '
'Errors: RC001, 22023.';

create or replace function pgrecall.last_session_end(bank text, before timestamptz default now())
returns timestamptz
language plpgsql stable parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall_internal._bank(bank);
  return (
    select s.ended_at
    from   pgrecall.session s
    where  s.bank_id = last_session_end.bank and s.ended_at < last_session_end.before
    order  by s.ended_at desc
    limit  1
  );
end;
$$;
comment on function pgrecall.last_session_end is
'End of the last conversation that ended before a time; null: none. Errors: RC001.';

create or replace function pgrecall_internal._content_text(place text, content jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
begin
  if jsonb_typeof(content) <> 'array' then
    return content;
  end if;
  if jsonb_path_exists(content, '$[*] ? (@.type() != "object")') then
    perform pgrecall_internal._raise_invalid_field(
      place, 'a part is not an object', 'Write [{"type": "text", "text": "..."}], or a string.');
  end if;
  return to_jsonb((
    select string_agg(p.value ->> 'text', E'\n' order by p.n)
    from   jsonb_array_elements(content) with ordinality as p(value, n)
    where  p.value ->> 'text' <> ''));
end;
$$;
comment on function pgrecall_internal._content_text is
'The text in field content of a chat API''s message: a string, or the texts of its parts, one a '
'line. Errors: RC003.';

create or replace function pgrecall_internal._read_message(message jsonb, index integer)
returns pgrecall_internal.message_row
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  place text := format('messages[%s]', index);
  body  jsonb;
  read  pgrecall_internal.message_row;
begin
  -- The last six stand in messages of chat APIs, and hold no text.
  perform pgrecall_internal._check_keys(place, message, array[
    'session', 'role', 'speaker', 'text', 'sent_at', 'content', 'name',
    'tool_calls', 'tool_call_id', 'function_call', 'refusal', 'annotations', 'audio']);
  read.n := index + 1;
  if message ? 'content' and message ? 'text' then
    perform pgrecall_internal._raise_invalid_field(
      place || '.content', 'it stands beside text', 'Give one of the two.');
  elsif message ? 'content'
        or not message ? 'text'
           and message ?| array['tool_calls', 'function_call', 'refusal', 'audio']
  then
    body := pgrecall_internal._content_text(place || '.content', message -> 'content');
    if coalesce(body, 'null') in ('null', '""') then
      perform pgrecall_internal._raise_invalid_field(
        place || '.content', 'there is no text',
        'Leave out messages without text, such as those that only call tools.');
    end if;
    read.text := pgrecall_internal._string_field(place || '.content', body, true);
  else
    read.text := pgrecall_internal._string_field(place || '.text', message -> 'text', true);
  end if;
  read.session_id := pgrecall_internal._string_field(
    place || '.session', message -> 'session', longest => 500);
  read.speaker := coalesce(
    pgrecall_internal._string_field(place || '.speaker', message -> 'speaker'),
    pgrecall_internal._string_field(place || '.name', message -> 'name'));
  read.sent_at := pgrecall_internal._time_field(place || '.sent_at', message -> 'sent_at');
  read.role := case message ->> 'role'
    when 'developer' then 'system' when 'function' then 'tool'
    else coalesce(message ->> 'role', 'user') end;
  if read.role not in ('user', 'assistant', 'system', 'tool') then
    perform pgrecall_internal._raise_invalid_field(
      place || '.role', format('unknown role %s', message -> 'role'),
      'Roles: user, assistant, system, tool.');
  end if;
  read.content_hash := sha256(convert_to(jsonb_build_array(
    read.session_id, read.role, read.speaker, read.text, extract(epoch from read.sent_at)
  )::text, 'UTF8'));
  return read;
end;
$$;
comment on function pgrecall_internal._read_message is
'Checks a message, the one at index (from 0), and returns it typed. content_hash is SHA-256 over '
'session, role, speaker, text, and the time where given. The fields of chat APIs are read too: '
'content for text, name for speaker, the roles developer (system) and function (tool). Errors: '
'RC003.';

create or replace function pgrecall_internal._refresh_neighbour_weights(
  bank pgrecall.bank, message_ids bigint[], average_length double precision)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  update pgrecall.message t
  set    (lexical_length, lexical_weights) = (
           select x.length, x.weights
           from   pgrecall_internal._message_weights(
                    bank, row(t.*)::pgrecall.message, average_length) as x)
  where  t.bank_id = bank.bank_id and t.session_id is not null
    and  t.message_id in (
           select b.message_id
           from   unnest(message_ids) as u(message_id)
           cross  join lateral pgrecall.message_context(bank.bank_id, u.message_id, 1, 1) as b);
end;
$$;
comment on function pgrecall_internal._refresh_neighbour_weights is
'Recomputes the weights of messages and of those right before and after them: a message is '
'weighted together with its neighbours.';

create or replace function pgrecall_internal._counted_messages(
  bank pgrecall.bank, message_ids bigint[], upto bigint, sign integer,
  out lexemes text[], out changes bigint[], out total_length double precision)
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  select array_agg(c.lexeme), array_agg(sign * c.documents)
  into   lexemes, changes
  from   pgrecall_internal._document_counts(bank, 'message', 0, upto, message_ids) as c;
  select sign * coalesce(sum(m.lexical_length), 0)
  into   total_length
  from   pgrecall.message m
  where  m.bank_id = bank.bank_id and m.message_id = any (message_ids) and m.message_id <= upto;
end;
$$;
comment on function pgrecall_internal._counted_messages is
'What those of the given messages whose ids are not above upto add to the statistics: in how many '
'of them each lexeme occurs, and their total length, multiplied by sign.';

create or replace function pgrecall_internal._messages_beside(
  bank text, said pgrecall_internal.message_row[])
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return array(
    select distinct b.message_id
    from   unnest(said) as s
    cross  join lateral (
      (select t.message_id
       from   pgrecall.message t
       where  t.bank_id = _messages_beside.bank and t.session_id = s.session_id
         and  t.sent_at <= coalesce(s.sent_at, now())
       order  by t.sent_at desc, t.message_id desc
       limit  1)
      union all
      (select t.message_id
       from   pgrecall.message t
       where  t.bank_id = _messages_beside.bank and t.session_id = s.session_id
         and  t.sent_at > coalesce(s.sent_at, now())
       order  by t.sent_at, t.message_id
       limit  1)
    ) as b);
end;
$$;
comment on function pgrecall_internal._messages_beside is
'The stored messages right before and after those that are about to be stored.';

create or replace function pgrecall_internal._message_ids(
  bank text, messages pgrecall_internal.message_row[])
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index and its order, also those made while a table was small.
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return array(
    select t.message_id
    from   unnest(messages) as m
    left   join lateral (
      -- Only one index provides this range in this order.
      select x.message_id
      from   pgrecall.message x
      where  x.bank_id = _message_ids.bank and x.content_hash is not null
        and  x.content_hash between m.content_hash and m.content_hash
      order  by x.content_hash
      limit  1
    ) as t on true
    order  by m.n
  );
end;
$$;
comment on function pgrecall_internal._message_ids is
'The stored messages that are equal to these, in their order.';

create or replace function pgrecall.retain_messages(bank text, messages jsonb)
returns setof pgrecall.retained_message
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
set timezone = 'UTC'
as $$
declare
  locked       pgrecall.bank;
  message_rows pgrecall_internal.message_row[];
  known        pgrecall_internal.statistics;
  beside       bigint[];
  before       record;
  after        record;
  new_ids      bigint[];
begin
  locked := pgrecall_internal._bank_to_write(bank, 'pgrecall.memory', 'insert');
  perform pgrecall_internal._check_array('messages', messages);
  message_rows := array(
    select pgrecall_internal._read_message(m.value, m.n::integer - 1)
    from   jsonb_array_elements(messages) with ordinality as m(value, n)
    order  by m.n
  );
  if locked.message_context_weight = 0 then
    locked := pgrecall_internal._shared_bank(bank);
  end if;
  -- The words of a message also count for its neighbours, which others may have written.
  if locked.message_context_weight > 0 then
    locked := pgrecall_internal._locked_bank(bank);
  end if;
  insert into pgrecall.session (bank_id, session_id, started_at)
  select retain_messages.bank, m.session_id, min(coalesce(m.sent_at, now()))
  from   unnest(message_rows) as m
  where  m.session_id is not null
  group  by m.session_id
  order  by m.session_id
  on conflict on constraint session_pkey do nothing;

  select s.* into known
  from   pgrecall_internal.statistics s
  where  s.bank_id = retain_messages.bank and s.kind = 'message';
  if locked.message_context_weight > 0 and known.watermark is not null then
    beside := pgrecall_internal._messages_beside(bank, message_rows);
    before := pgrecall_internal._counted_messages(locked, beside, known.watermark, -1);
  end if;
  with stored as (
    insert into pgrecall.message as t
           (bank_id, message_id, session_id, role, speaker, text, sent_at, content_hash,
            lexical_length, lexical_weights)
    select retain_messages.bank, i.message_id, i.session_id, i.role, i.speaker, i.text,
           coalesce(i.sent_at, now()), i.content_hash, x.length, x.weights
    from (
      -- Ids follow the order of the messages.
      select nextval('pgrecall.id_seq') as message_id, o.*
      from (
        select u.*
        from (
          select distinct on (m.content_hash) m.*
          from   unnest(message_rows) as m
          order  by m.content_hash, m.n
        ) as u
        order  by u.n
      ) as o
      offset 0
    ) as i
    cross  join lateral pgrecall_internal._document_weights(
             locked, i.text, null, null, coalesce(known.weighted_length, 20)) as x
    -- As in _store_memories().
    order  by i.content_hash
    on conflict (bank_id, content_hash) where content_hash is not null do nothing
    returning t.message_id
  )
  select coalesce(array_agg(s.message_id), '{}') into new_ids from stored s;
  if locked.message_context_weight > 0 then
    perform pgrecall_internal._refresh_neighbour_weights(
      locked, new_ids, coalesce(known.weighted_length, 20));
  end if;
  if beside <> '{}' then
    after := pgrecall_internal._counted_messages(locked, beside, known.watermark, 1);
    perform pgrecall_internal._recount_lexemes(
      locked, 'message', before.lexemes || after.lexemes, before.changes || after.changes);
    perform pgrecall_internal._recount_documents(
      locked, 'message', 0, before.total_length + after.total_length);
  end if;
  perform pgrecall_internal._refresh_when_due(locked, 'message', 500 + cardinality(new_ids));

  return query
  select u.n::integer - 1, u.id,
         u.id in (select unnest(new_ids))
           and row_number() over (partition by u.id order by u.n) = 1
  from   unnest(pgrecall_internal._message_ids(bank, message_rows)) with ordinality as u(id, n)
  order  by u.n;
end;
$$;
comment on function pgrecall.retain_messages is
'Writes raw messages, an array of objects: text (required), session, role (user), speaker, '
'sent_at; or as chat APIs have them, {"role": "user", "content": "..."}. All or nothing. A message '
'that is already stored is not stored again. Returns one row per message, in order; index counts '
'from 0. Errors: RC001, RC003 naming message and field.';

create or replace function pgrecall.message_context(
  bank text, message_id bigint, before integer default 2, after integer default 2)
returns setof pgrecall.turn
language plpgsql stable parallel safe rows 5
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  asked pgrecall.message;
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('before', before, 0, 1000);
  perform pgrecall_internal._check_range('after', after, 0, 1000);
  select t.* into asked
  from   pgrecall.message t
  where  t.bank_id = message_context.bank and t.message_id = message_context.message_id;
  if not found then
    raise exception using
      errcode = 'RC010',
      message = format('bank "%s" has no message %s', bank, coalesce(message_id::text, 'null')),
      hint    = 'Pass the id of a row of kind "message" that a recall on the same bank returned.';
  end if;

  return query
  select c.place::integer, c.message_id, c.session_id, c.role, c.speaker, c.text, c.sent_at
  from (
    (select -row_number() over (order by t.sent_at desc, t.message_id desc) as place, t.*
     from   pgrecall.message t
     where  t.bank_id = message_context.bank and t.session_id = asked.session_id
       and  t.sent_at <= asked.sent_at
       and  (t.sent_at, t.message_id) < (asked.sent_at, asked.message_id)
     order  by t.sent_at desc, t.message_id desc
     limit  message_context.before)
    union all
    (select 0, t.*
     from   pgrecall.message t
     where  t.bank_id = message_context.bank and t.message_id = asked.message_id)
    union all
    (select row_number() over (order by t.sent_at, t.message_id), t.*
     from   pgrecall.message t
     where  t.bank_id = message_context.bank and t.session_id = asked.session_id
       and  t.sent_at >= asked.sent_at
       and  (t.sent_at, t.message_id) > (asked.sent_at, asked.message_id)
     order  by t.sent_at, t.message_id
     limit  message_context.after)
  ) as c
  order  by c.place;
end;
$$;
comment on function pgrecall.message_context is
'A message with those before and after it in the same session, in order; only the message where it '
'has no session. Errors: RC001, RC010 unknown message, 22023.';

-- retain/forget-message.sql
-- Forgetting raw messages: by id, by session, by time.
--
-- forget_messages() erases, and takes what it erased out of the statistics that BM25 uses
-- (bank/recount.sql). Where a bank sets message_context_weight, the messages beside an erased one
-- lose its words, too.
create or replace function pgrecall_internal._forget_messages(
  bank pgrecall.bank, message_ids bigint[], sessions text[])
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  known      pgrecall_internal.statistics;
  beside     bigint[] := '{}';
  before     record;
  after      record;
  counted    bigint;
  removed    bigint;
begin
  select s.* into known
  from   pgrecall_internal.statistics s
  where  s.bank_id = bank.bank_id and s.kind = 'message';
  -- The words of a message count for those beside it.
  if bank.message_context_weight > 0 then
    beside := array(
      select distinct c.message_id
      from   unnest(message_ids) as u(message_id)
      cross  join lateral pgrecall.message_context(bank.bank_id, u.message_id, 1, 1) as c
      where  c.message_id <> all (message_ids)
    );
  end if;
  before := pgrecall_internal._counted_messages(
    bank, message_ids || beside, known.watermark, -1);
  with gone as (
    delete from pgrecall.message m
    where  m.bank_id = bank.bank_id and m.message_id = any (message_ids)
    returning m.message_id
  )
  select count(*), count(*) filter (where g.message_id <= known.watermark)
  into   removed, counted
  from   gone g;
  delete from pgrecall.session s
  where  s.bank_id = bank.bank_id and s.session_id = any (sessions)
    and  not exists (select from pgrecall.message m
                     where m.bank_id = bank.bank_id and m.session_id = s.session_id);
  if known.bank_id is null then
    return removed;
  end if;

  if beside <> '{}' then
    perform pgrecall_internal._refresh_neighbour_weights(bank, beside, known.weighted_length);
  end if;
  after := pgrecall_internal._counted_messages(bank, beside, known.watermark, 1);
  perform pgrecall_internal._recount_lexemes(
    bank, 'message', before.lexemes || after.lexemes, before.changes || after.changes);
  perform pgrecall_internal._recount_documents(
    bank, 'message', -counted, before.total_length + after.total_length);
  return removed;
end;
$$;
comment on function pgrecall_internal._forget_messages is
'Worker of forget_messages(): erases messages, and the given sessions that have none left, and '
'takes both out of the statistics. The caller has locked the bank.';

create or replace function pgrecall.forget_messages(
  bank        text,
  message_ids bigint[] default null,
  session     text default null,
  during      pgrecall_internal.period default null,
  dry_run     boolean default false)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  sent_in  tstzrange := pgrecall_internal._range_of_period(during);
  locked   pgrecall.bank;
  ids      bigint[];
  sessions text[];
begin
  locked := pgrecall_internal._bank(bank);
  if num_nonnulls(message_ids, session, during) = 0 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'no condition says what to forget',
      hint    = 'Pass message_ids =>, session => or during =>, such as ''[,2026-01-01)''.';
  end if;
  if dry_run is not true then
    locked := pgrecall_internal._locked_bank(bank);
  end if;
  select coalesce(array_agg(m.message_id), '{}'),
         coalesce(array_agg(distinct m.session_id) filter (where m.session_id is not null), '{}')
  into   ids, sessions
  from   pgrecall.message m
  where  m.bank_id = forget_messages.bank
    and  (message_ids is null or m.message_id = any (message_ids))
    and  (session is null or m.session_id = session)
    and  (sent_in is null or m.sent_at <@ sent_in);
  if dry_run then
    return cardinality(ids);
  end if;
  -- A session that was only logged has no message.
  if num_nonnulls(message_ids, during) = 0 then
    sessions := sessions || session;
  end if;
  return pgrecall_internal._forget_messages(locked, ids, sessions);
end;
$$;
comment on function pgrecall.forget_messages is
'Erases the raw messages that meet all conditions given: these ids, this session, sent in this '
'window, ''[,2026-01-01)'' for all before 2026. Returns how many; dry_run only counts them. A '
'session that is left without messages is erased, too, so that it no longer counts as a '
'conversation. Facts that were extracted from them stay: forget_where(source_id =>). The BM25 '
'counts change at once; in a large bank the weights follow with maintain(). Errors: RC001, 22023 '
'no condition.';

-- retain/usage.sql
-- What kinds of relations mean: an embedding of the words of each kind, and one of how facts state
-- it.
--
-- A question words a relation as it likes: "who signs off her leave" asks for reports_to. Facts
-- that state reports_to are worded in as many ways, so the mean of their embeddings, with that
-- of the words "reports to", is near to such a question whatever its words are. The names in
-- them differ and cancel out; the embedding of one statement, "Ana reports to Sam", is nearer to
-- other facts about Ana (bench/TRIED.md). The graph arm follows the kinds whose usage is near
-- (graph/walk.sql).
--
-- The words come from the caller, as texts of facts do: relations_pending() and embed_pending()
-- list them, embed_store() takes them, a re-embedding makes them anew. Both vectors are rows of
-- embedding at one of the facts that state the kind, of fact type '', so that dumps, transfers,
-- policies and calibration know them. Whenever facts with new kinds come, the 500 kinds that most
-- of the latest 5,000 relations are of get such vectors, which bounds what a caller embeds.
create or replace function pgrecall_internal._embedded_words(bank text, model text)
returns table (words text)
language sql stable parallel safe rows 500
begin atomic
  select e.text
  from   pgrecall.embedding e
  where  e.bank_id = _embedded_words.bank and e.fact_type = ''
    and  e.model = _embedded_words.model and e.kind = 'relation';
end;
comment on function pgrecall_internal._embedded_words is
'The words of kinds of relations that have embeddings of a model.';

create or replace function pgrecall_internal._latest_relations(bank text)
returns table (kind text, memory_id bigint)
language sql stable parallel safe rows 5000
begin atomic
  select r.kind, r.memory_id
  from   pgrecall.relation r
  where  r.bank_id = _latest_relations.bank
  order  by r.relation_id desc
  limit  5000;
end;
comment on function pgrecall_internal._latest_relations is
'The kinds of the latest 5,000 relations of a bank, each with the fact that states it.';

create or replace function pgrecall_internal._refresh_usage(
  bank pgrecall.bank, model text, words text[] default null)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  insert into pgrecall.embedding as u
         (bank_id, memory_id, model, kind, ordinal, fact_type, embedding, text)
  select s.bank_id, s.memory_id, s.model, 'usage', s.ordinal, '',
         coalesce(l2_normalize(l2_normalize(s.embedding)::vector + f.mean)::halfvec, s.embedding),
         s.text
  from   pgrecall.embedding s
  left   join (
    select pgrecall_internal._words_of_kind(r.kind) as words,
           (array_agg(r.memory_id order by r.memory_id desc))[1:50] as memory_ids
    from   pgrecall_internal._latest_relations(bank.bank_id) as r
    where  _refresh_usage.words is null
       or  pgrecall_internal._words_of_kind(r.kind) = any (_refresh_usage.words)
    group  by 1
  ) as k on k.words = s.text
  left   join lateral (
    select l2_normalize(avg(l2_normalize(e.embedding)::vector)) as mean
    from   pgrecall.embedding e
    where  e.bank_id = bank.bank_id and e.memory_id = any (k.memory_ids)
      and  e.model = _refresh_usage.model and e.kind = 'text'
  ) as f on true
  where  s.bank_id = bank.bank_id and s.fact_type = '' and s.model = _refresh_usage.model
    and  s.kind = 'relation'
    and  (_refresh_usage.words is null or s.text = any (_refresh_usage.words))
    -- A kind that is no longer stated keeps its meaning.
    and  (f.mean is not null
          or not exists (
               select from pgrecall.embedding x
               where  x.bank_id = s.bank_id and x.memory_id = s.memory_id and x.model = s.model
                 and  x.kind = 'usage' and x.ordinal = s.ordinal))
  on conflict on constraint embedding_pkey do update set embedding = excluded.embedding;
end;
$$;
comment on function pgrecall_internal._refresh_usage is
'Computes what kinds of relations mean in a model''s embeddings, from their words and up to 50 of '
'the facts that state them. words: of which kinds; null: of all.';

create or replace function pgrecall.relations_pending(
  bank text, model text default null, memory_ids bigint[] default null)
returns setof pgrecall.pending_text
language plpgsql stable parallel safe rows 20
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  searched pgrecall.bank := pgrecall_internal._bank(bank);
begin
  if model <> searched.embedding_model
     or memory_ids is not null and not exists (
          select
          from   unnest(memory_ids) as u(id)
          join   pgrecall.relation r on r.bank_id = relations_pending.bank and r.memory_id = u.id
          where  not exists (
                   select
                   from   pgrecall_internal._embedded_words(
                            relations_pending.bank, coalesce(searched.embedding_model, '')) as e
                   where  e.words = pgrecall_internal._words_of_kind(r.kind)))
  then
    return;
  end if;
  return query
  select k.memory_id, 'relation'::text, 0::smallint, k.words, null::text
  from (
    select pgrecall_internal._words_of_kind(r.kind) as words, max(r.latest) as memory_id
    from (
      select x.kind, max(x.memory_id) as latest
      from   pgrecall_internal._latest_relations(relations_pending.bank) as x
      group  by x.kind
      order  by count(*) desc, x.kind collate "C"
      limit  500
    ) as r
    group  by 1
  ) as k
  where  not exists (
           select
           from   pgrecall_internal._embedded_words(
                    relations_pending.bank, coalesce(searched.embedding_model, '')) as e
           where  e.words = k.words)
  order  by k.memory_id, k.words;
end;
$$;
comment on function pgrecall.relations_pending is
'The kinds of relations without an embedding of the bank''s model, as words, each at a fact that '
'states it. Pass embeddings of them to embed_store(). None where model is another one than that of '
'the bank, nor where all kinds that the facts memory_ids state have embeddings. Errors: RC001.';

create or replace function pgrecall_internal._store_relation_words(
  bank pgrecall.bank, memory_ids bigint[], words text[], embeddings halfvec[])
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  named  text := coalesce(bank.embedding_model, '');
  stored bigint;
begin
  with given as (
    select distinct on (u.words) u.memory_id, u.words, u.embedding
    from   unnest(memory_ids, words, embeddings) as u(memory_id, words, embedding)
    where  exists (select from pgrecall.memory m
                   where  m.bank_id = bank.bank_id and m.memory_id = u.memory_id)
      and  not exists (
             select from pgrecall_internal._embedded_words(bank.bank_id, named) as e
             where  e.words = u.words)
    order  by u.words
  ),
  stored as (
    insert into pgrecall.embedding
           (bank_id, memory_id, model, kind, ordinal, fact_type, embedding, text)
    select bank.bank_id, g.memory_id, named, 'relation',
           coalesce(l.last, 0) + row_number() over (partition by g.memory_id order by g.words),
           '', g.embedding, g.words
    from   given g
    cross  join lateral (
      select max(e.ordinal) as last
      from   pgrecall.embedding e
      where  e.bank_id = bank.bank_id and e.memory_id = g.memory_id and e.kind = 'relation'
    ) as l
    returning 1
  )
  select count(*) into stored from stored;
  perform pgrecall_internal._refresh_usage(bank, named, words);
  return stored;
end;
$$;
comment on function pgrecall_internal._store_relation_words is
'Stores embeddings of the words of kinds of relations that have none, and what they mean; returns '
'how many. The bank must be locked.';

-- retain/reembed.sql
-- Re-embedding: replacing the embedding model of a bank while it is in use.
--
-- The next model's embeddings are stored beside the current ones, in the same table under their
-- own model name. reembed_start() names the model; the caller then embeds the texts that
-- reembed_pending() returns and passes them to reembed_store(), in batches, while the bank is read
-- and written as before. reembed_finish() switches all searches to the new model in one update;
-- reembed_clean() removes the old embeddings in batches.
-- Every step can be called again: its state is in the columns next_model, next_dimensions and
-- previous_model of table bank.

create or replace function pgrecall_internal._raise_not_ready(problem text, hint text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  raise exception using errcode = 'RC014', message = problem, hint = hint;
end;
$$;
comment on function pgrecall_internal._raise_not_ready is
'Raises RC014 for a step of re-embedding that the bank is not ready for.';

create or replace function pgrecall_internal._check_reembedding(bank pgrecall.bank)
returns void
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  if bank.next_model is null then
    perform pgrecall_internal._raise_not_ready(
      format('bank "%s" is not being re-embedded', bank.bank_id),
      format('Begin with: select pgrecall.reembed_start(%L, ''name of the model'', 384);',
             bank.bank_id));
  end if;
end;
$$;
comment on function pgrecall_internal._check_reembedding is
'Raises RC014 unless a bank is being re-embedded.';

create or replace function pgrecall_internal._as_next(bank pgrecall.bank)
returns pgrecall.bank
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  bank.embedding_model := bank.next_model;
  bank.embedding_dimensions := bank.next_dimensions;
  bank.embedding_mean := bank.calibrations -> bank.next_model ->> 'mean';
  bank.low_cosine := bank.calibrations -> bank.next_model ->> 'low_cosine';
  bank.high_cosine := bank.calibrations -> bank.next_model ->> 'high_cosine';
  return bank;
end;
$$;
comment on function pgrecall_internal._as_next is 'A bank as it will be once it is re-embedded.';

create or replace function pgrecall.reembed_start(bank text, model text, dimensions integer)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  locked pgrecall.bank := pgrecall_internal._locked_bank(bank);
  kept   integer;
begin
  if coalesce(model, '') = '' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'model must name the model to re-embed with',
      hint    = 'Two sets of embeddings are told apart by the names of their models.';
  end if;
  perform pgrecall_internal._check_range('dimensions', dimensions, 1, 4000);
  if (locked.next_model, locked.next_dimensions) = (model, dimensions) then
    return;
  end if;
  if locked.next_model is not null then
    perform pgrecall_internal._raise_not_ready(
      format('bank "%s" is being re-embedded with model "%s", %s dimensions, not "%s", %s',
             bank, locked.next_model, locked.next_dimensions, model, dimensions),
      format('Go on with that one, or give it up with: select pgrecall.reembed_cancel(%L);',
             bank));
  end if;
  if locked.embedding_model = model then
    perform pgrecall_internal._raise_not_ready(
      format('bank "%s" is embedded with model "%s" already', bank, model),
      'Name another model. The same one at another length needs a name of its own.');
  end if;
  if locked.embedding_dimensions is null then
    perform pgrecall_internal._raise_not_ready(
      format('bank "%s" holds no embeddings', bank),
      'Retain facts with embeddings of the model: the first one pins it.');
  end if;

  -- Existing embeddings of this model, from an earlier attempt or before a change of model, are
  -- used if they have this length.
  select vector_dims(k.embedding) into kept
  from   pgrecall.fact_type t
  cross  join lateral (
    select e.embedding
    from   pgrecall.embedding e
    where  e.bank_id = reembed_start.bank and e.fact_type = t.fact_type
      and  e.model = reembed_start.model
    limit  1
  ) as k
  where  t.bank_id = reembed_start.bank
  limit  1;
  if kept <> dimensions then
    perform pgrecall_internal._raise_not_ready(
      format('bank "%s" still holds embeddings of model "%s" with %s dimensions, not %s',
             bank, model, kept, dimensions),
      format('Call this until it returns 0: select pgrecall.reembed_clean(%L);', bank));
  end if;

  update pgrecall.bank b
  set    next_model      = reembed_start.model,
         next_dimensions = reembed_start.dimensions
  where  b.bank_id = reembed_start.bank;
end;
$$;
comment on function pgrecall.reembed_start is
'Begins to re-embed a bank with another model: a second set of embeddings is filled beside the '
'first, which is searched until reembed_finish(). From now on retain() writes to both sets where a '
'fact has an embedding of each model. A second call for the same model changes nothing. Errors: '
'RC001, RC014 the bank is being re-embedded with another model, has this model already, or has no '
'embeddings, 22023.';

create or replace function pgrecall.reembed_pending(
  bank text, from_id bigint default 0, batch_size integer default 1000)
returns setof pgrecall.pending_text
language plpgsql stable parallel safe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  searched pgrecall.bank := pgrecall_internal._bank(bank);
begin
  perform pgrecall_internal._check_reembedding(searched);
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  -- In primary key order, with one lookup each: nothing is counted or sorted.
  return query
  select e.memory_id, e.kind, e.ordinal, coalesce(e.text, m.text),
         case when e.kind = 'text' then m.context end
  from   pgrecall.embedding e
  cross  join lateral (
    select x.text, x.context from pgrecall.memory x
    where  x.bank_id = reembed_pending.bank and x.memory_id = e.memory_id
    limit  1
  ) as m
  left   join lateral (
    select true as is_there from pgrecall.embedding x
    where  x.bank_id = reembed_pending.bank and x.memory_id = e.memory_id
      and  x.model = searched.next_model and x.kind = e.kind and x.ordinal = e.ordinal
    limit  1
  ) as n on true
  where  e.bank_id = reembed_pending.bank and e.memory_id >= reembed_pending.from_id
    and  e.model = coalesce(searched.embedding_model, '')
    and  n.is_there is null
    -- reembed_finish() computes usages, of the words of the same relations.
    and  (e.kind = 'text' or e.kind <> 'usage' and e.text is not null)
  order  by e.memory_id, e.kind, e.ordinal
  limit  batch_size;
end;
$$;
comment on function pgrecall.reembed_pending is
'Texts that still have to be embedded with the next model: of memories and of the questions they '
'answer, in order of memory_id, starting at from_id, at most batch_size rows. Pass the last '
'memory_id of a batch as the next from_id; a call from 0 also finds what was stored meanwhile. '
'Errors: RC001, RC014 the bank is not being re-embedded, 22023.';

create or replace function pgrecall.reembed_store(bank text, model text, embeddings jsonb)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  locked pgrecall.bank := pgrecall_internal._shared_bank(bank);
  next   pgrecall.bank := pgrecall_internal._as_next(locked);
  stored bigint;
begin
  perform pgrecall_internal._check_reembedding(locked);
  if model is distinct from locked.next_model then
    raise exception using
      errcode = 'RC005',
      message = format('bank "%s" is being re-embedded with model "%s", not "%s"',
                       bank, locked.next_model, model),
      hint    = format('Embed what reembed_pending() returns with "%s".', locked.next_model);
  end if;
  perform pgrecall_internal._check_embedded(embeddings, 'reembed_pending()');

  -- Memories forgotten in the meantime are skipped.
  with stored as (
    insert into pgrecall.embedding as s
           (bank_id, memory_id, model, kind, ordinal, fact_type, embedding, text, tokens)
    select distinct on (i.memory_id, i.kind, i.ordinal)
           reembed_store.bank, i.memory_id, locked.next_model, i.kind, i.ordinal, e.fact_type,
           i.embedding, e.text, i.tokens
    from   pgrecall_internal._read_embeddings(next, embeddings) as i
    cross  join lateral (
      select x.fact_type, x.text
      from   pgrecall.embedding x
      where  x.bank_id = reembed_store.bank and x.memory_id = i.memory_id
        and  x.model = coalesce(locked.embedding_model, '')
        and  x.kind = i.kind and x.ordinal = i.ordinal
      limit  1
    ) as e
    order  by i.memory_id, i.kind, i.ordinal, i.n desc
    on conflict on constraint embedding_pkey do update
    set embedding = excluded.embedding, tokens = excluded.tokens
    returning 1
  )
  select count(*) into stored from stored;
  return stored;
end;
$$;
comment on function pgrecall.reembed_store is
'Stores embeddings of the next model: an array of {"memory_id", "kind", "ordinal", "embedding", '
'"tokens"}, as reembed_pending() names them; kind is text and ordinal 0 when left out. Returns how '
'many it stored; those of missing memories are skipped. Errors: RC001, RC003, RC004, RC005 another '
'model, RC006, RC014 the bank is not being re-embedded.';

create or replace function pgrecall_internal._reembed_counts(
  bank text, model text, next_model text,
  out vectors bigint, out pending bigint, out textless bigint)
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  select count(*),
         count(*) filter (where n.memory_id is null and e.kind <> 'usage'
                                and (e.kind = 'text' or e.text is not null)),
         count(*) filter (where n.memory_id is null and e.kind <> 'text' and e.text is null)
  into   vectors, pending, textless
  from   pgrecall.embedding e
  left   join pgrecall.embedding n
    on   n.bank_id = _reembed_counts.bank and n.memory_id = e.memory_id
    and  n.model = _reembed_counts.next_model and n.kind = e.kind and n.ordinal = e.ordinal
  where  e.bank_id = _reembed_counts.bank and e.model = _reembed_counts.model;
end;
$$;
comment on function pgrecall_internal._reembed_counts is
'How many embeddings a model has, how many of them the next model still lacks, and how many cannot '
'be made since their text was not stored.';

create or replace function pgrecall.reembed_status(bank text)
returns setof pgrecall.reembedding
language plpgsql stable parallel safe rows 1
set search_path from current
as $$
declare
  searched pgrecall.bank := pgrecall_internal._bank(bank);
begin
  return query
  select searched.embedding_model, searched.embedding_dimensions, searched.next_model,
         searched.next_dimensions, searched.previous_model, c.vectors,
         case when searched.next_model is null then 0 else c.pending end, c.textless,
         (select count(distinct e.memory_id)
          from   pgrecall_internal._embedding_models(bank) as u
          join   pgrecall.embedding e
            on   e.bank_id = reembed_status.bank and e.fact_type = u.fact_type
            and  e.model = u.model
          where  u.model <> coalesce(searched.embedding_model, '')
            and  u.model is distinct from searched.next_model)
  from   pgrecall_internal._reembed_counts(
           bank, coalesce(searched.embedding_model, ''), searched.next_model) as c;
end;
$$;
comment on function pgrecall.reembed_status is
'Progress of the re-embedding of a bank: its model; next_model while it is being re-embedded; '
'previous_model while reembed_clean() has work; the embeddings that are searched (vectors); those '
'of them that next_model still lacks (pending); questions that were retained without their text '
'and cannot be re-embedded (textless); memories with embeddings of another model (leftover). It '
'counts them with a scan of the bank''s embeddings. Errors: RC001.';

create or replace function pgrecall.reembed_finish(bank text, is_lossy boolean default false)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  locked pgrecall.bank;
  counts record;
begin
  perform pgrecall_internal._check_isolation('reembed_finish');
  locked := pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_reembedding(locked);
  counts := pgrecall_internal._reembed_counts(
    bank, coalesce(locked.embedding_model, ''), locked.next_model);
  if counts.pending > 0 then
    perform pgrecall_internal._raise_not_ready(
      format('%s of %s embeddings of bank "%s" are not made with model "%s" yet',
             counts.pending, counts.vectors, bank, locked.next_model),
      format('select * from pgrecall.reembed_pending(%L); says which ones.', bank));
  end if;
  if counts.textless > 0 and is_lossy is not true then
    perform pgrecall_internal._raise_not_ready(
      format('%s questions of bank "%s" were retained without their text and would be lost',
             counts.textless, bank),
      'Pass is_lossy => true to do without them: their facts stay, and are found by their own '
      'text.');
  end if;
  perform pgrecall_internal._refresh_usage(locked, locked.next_model);
  update pgrecall.bank b
  set    embedding_model      = locked.next_model,
         embedding_dimensions = locked.next_dimensions,
         previous_model       = coalesce(locked.embedding_model, ''),
         next_model           = null,
         next_dimensions      = null
  where  b.bank_id = reembed_finish.bank;
end;
$$;
comment on function pgrecall.reembed_finish is
'Makes the next model the model of the bank, at once: a recall searches by one of them, never by '
'both. Every embedding must exist in the next model; questions without text are dropped only with '
'is_lossy. reembed_clean() then removes the old embeddings. Errors: RC001, RC014 embeddings are '
'pending, 25001 isolation level above read committed.';

create or replace function pgrecall.reembed_cancel(bank text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall_internal._check_reembedding(pgrecall_internal._locked_bank(bank));
  update pgrecall.bank b
  set    next_model      = null,
         next_dimensions = null
  where  b.bank_id = reembed_cancel.bank;
end;
$$;
comment on function pgrecall.reembed_cancel is
'Stops re-embedding a bank, which keeps its model. Embeddings made so far are kept for another '
'reembed_start() until reembed_clean() removes them. Errors: RC001, RC014 the bank is not being '
're-embedded.';

create or replace function pgrecall_internal._embedding_models(bank text)
returns table (fact_type text, model text)
language plpgsql stable parallel safe rows 10
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  -- One index lookup per model, however many embeddings each has.
  return query
  with recursive found as (
    select t.fact_type, (
             select e.model from pgrecall.embedding e
             where  e.bank_id = _embedding_models.bank and e.fact_type = t.fact_type
             order  by e.model
             limit  1) as model
    from (
      select x.fact_type
      from   pgrecall.fact_type x
      where  x.bank_id = _embedding_models.bank
      union  all
      select ''  -- what kinds of relations mean
    ) as t
    union  all
    select f.fact_type, (
             select e.model from pgrecall.embedding e
             where  e.bank_id = _embedding_models.bank and e.fact_type = f.fact_type
               and  e.model > f.model
             order  by e.model
             limit  1)
    from   found f
    where  f.model is not null
  )
  select f.fact_type, f.model from found f where f.model is not null;
end;
$$;
comment on function pgrecall_internal._embedding_models is
'The models that a bank has embeddings of, by fact type.';

create or replace function pgrecall.reembed_clean(bank text, batch_size integer default 100)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  locked pgrecall.bank := pgrecall_internal._locked_bank(bank);
  ids    bigint[];
begin
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  ids := array(
    select distinct l.memory_id
    from (
      select o.memory_id
      from   pgrecall_internal._embedding_models(bank) as u
      cross  join lateral (
        select e.memory_id
        from   pgrecall.embedding e
        where  e.bank_id = reembed_clean.bank and e.fact_type = u.fact_type
          and  e.model = u.model
        limit  batch_size
      ) as o
      where  u.model <> coalesce(locked.embedding_model, '')
        and  u.model is distinct from locked.next_model
      limit  batch_size
    ) as l
  );
  delete from pgrecall.embedding e
  where  e.bank_id = reembed_clean.bank and e.memory_id = any (ids)
    and  e.model <> coalesce(locked.embedding_model, '')
    and  e.model is distinct from locked.next_model;
  if cardinality(ids) = 0 then
    update pgrecall.bank b
    set    previous_model = null
    where  b.bank_id = reembed_clean.bank and b.previous_model is not null;
  end if;
  return cardinality(ids);
end;
$$;
comment on function pgrecall.reembed_clean is
'Removes the embeddings of other models than the bank''s own and the next one, of up to batch_size '
'memories; returns how many memories. Call it until it returns 0. Errors: RC001, 22023.';

-- retain/fact.sql
-- Facts, read from the JSON that retain() gets.
--
-- _read_fact() checks one fact, field by field in a fixed order, and returns it as a row of type
-- fact_row (state/input.sql); the functions above it read the objects inside a fact. Each returns
-- what it checked, so that a field is read once. The first invalid field ends the call: RC003 and
-- related errors name the fact and the field. Equal content_hash means the same fact; its inputs
-- must never change, or stored facts would be stored again.

create or replace function pgrecall_internal._read_name(place text, value jsonb)
returns pgrecall_internal.fact_name
language plpgsql immutable parallel safe
as $$
declare
  read pgrecall_internal.fact_name;
begin
  read.name := pgrecall_internal._string_field(place, value, true);
  read.alias := pgrecall.normalised_name(read.name);
  if read.alias = '' or length(read.name) > 500 then
    perform pgrecall_internal._raise_invalid_field(
      place, format('%s cannot name an entity', left(value::text, 80)),
      'A name has a letter or digit and at most 500 characters.');
  end if;
  read.aliases := '{}';
  return read;
end;
$$;
comment on function pgrecall_internal._read_name is
'A string that is a valid name of an entity. Errors: RC003.';

create or replace function pgrecall_internal._read_entity(place text, item jsonb)
returns pgrecall_internal.fact_name
language plpgsql immutable parallel safe
as $$
declare
  read pgrecall_internal.fact_name;
begin
  if jsonb_typeof(item) = 'string' then
    return pgrecall_internal._read_name(place || '.name', item);
  end if;
  perform pgrecall_internal._check_keys(place, item, array['name', 'kind', 'aliases']);
  read := pgrecall_internal._read_name(place || '.name', item -> 'name');
  read.kind := pgrecall_internal._string_field(place || '.kind', item -> 'kind');
  read.kind_class := pgrecall_internal._kind_class(read.kind);
  if item ? 'aliases' then
    read.aliases := array(
      select (pgrecall_internal._read_name(place || '.aliases', a.value)).alias
      from   jsonb_array_elements(
               pgrecall_internal._array_field(place || '.aliases', item -> 'aliases')) as a
    );
  end if;
  return read;
end;
$$;
comment on function pgrecall_internal._read_entity is
'An element of entities: a name, or {"name", "kind", "aliases"}. Errors: RC003.';

create or replace function pgrecall_internal._read_relation(place text, item jsonb)
returns pgrecall_internal.fact_relation
language plpgsql stable parallel safe
as $$
declare
  read pgrecall_internal.fact_relation;
  name pgrecall_internal.fact_name;
begin
  perform pgrecall_internal._check_keys(
    place, item, array['from', 'kind', 'to', 'confidence', 'valid_from', 'valid_to']);
  name := pgrecall_internal._read_name(place || '.from', item -> 'from');
  read.from_name := name.name;
  read.from_alias := name.alias;
  read.kind := pgrecall_internal._string_field(place || '.kind', item -> 'kind', true, 500);
  name := pgrecall_internal._read_name(place || '.to', item -> 'to');
  read.to_name := name.name;
  read.to_alias := name.alias;
  read.confidence := coalesce(
    pgrecall_internal._fraction_field(place || '.confidence', item -> 'confidence'), 1);
  read.valid_from := pgrecall_internal._time_field(place || '.valid_from', item -> 'valid_from');
  read.valid_to := pgrecall_internal._time_field(place || '.valid_to', item -> 'valid_to');
  if read.valid_to <= read.valid_from then
    perform pgrecall_internal._raise_invalid_field(
      place || '.valid_to', 'it is not after valid_from', 'A relation ends after it began.');
  end if;
  return read;
end;
$$;
comment on function pgrecall_internal._read_relation is
'An element of relations. Errors: RC003.';

create or replace function pgrecall_internal._read_link(
  place text, item jsonb, index integer, size integer)
returns pgrecall_internal.fact_link
language plpgsql immutable parallel safe
as $$
declare
  read pgrecall_internal.fact_link;
begin
  perform pgrecall_internal._check_keys(
    place, item, array['kind', 'weight', 'to_id', 'to_index', 'to_key']);
  read.weight := coalesce(
    pgrecall_internal._fraction_field(place || '.weight', item -> 'weight'), 1);
  read.kind := item ->> 'kind';
  if coalesce(read.kind, '') not in ('causes', 'caused_by', 'enables', 'prevents') then
    perform pgrecall_internal._raise_invalid_field(
      place || '.kind', format('unknown kind %s', coalesce(item -> 'kind', 'null')),
      'Kinds: causes, caused_by, enables, prevents.');
  end if;
  if num_nonnulls(item ->> 'to_id', item ->> 'to_index', item ->> 'to_key') <> 1 then
    perform pgrecall_internal._raise_invalid_field(
      place, 'it needs one of to_id, to_index, to_key',
      'Name the fact it leads to by memory id, position or fact_key.');
  end if;
  read.to_key := pgrecall_internal._string_field(
    place || '.to_key', item -> 'to_key', longest => 500);
  if item ->> 'to_id' is not null and not pgrecall_internal._is_id(item ->> 'to_id')
     or item ->> 'to_index' !~ '^\d{1,9}$'
     or (item ->> 'to_index')::integer not between 0 and size - 1
     or (item ->> 'to_index')::integer = index
  then
    perform pgrecall_internal._raise_invalid_field(
      place, format('it leads nowhere: %s', item),
      format('to_id is a memory id, to_index a position from 0 to %s other than its own.',
             size - 1));
  end if;
  read.to_id := item ->> 'to_id';
  read.to_index := item ->> 'to_index';
  read.target := item - 'kind' - 'weight';
  return read;
end;
$$;
comment on function pgrecall_internal._read_link is
'An element of links, of the fact at index (from 0) of size facts. Errors: RC003.';

create or replace function pgrecall_internal._vector(item jsonb, model text, is_own boolean)
returns jsonb
language sql immutable parallel safe
return coalesce(case when is_own then nullif(item -> 'embedding', 'null') end,
                nullif(item -> 'embeddings' -> model, 'null'));
comment on function pgrecall_internal._vector is
'The embedding of a fact or question for a model: under its name in embeddings; for the bank''s '
'own model (is_own) also field embedding, which takes precedence. Null: none.';

create or replace function pgrecall_internal._tokens_field(
  place text, item jsonb, model text, is_own boolean)
returns bytea
language plpgsql immutable parallel unsafe
set search_path from current
as $$
declare
  value  jsonb := nullif(item -> 'tokens', 'null');
  tokens bytea;
begin
  if jsonb_typeof(value) = 'object' then
    value := nullif(value -> model, 'null');
  elsif not is_own then
    value := null;
  end if;
  if value is null then
    return null;
  end if;
  begin
    tokens := decode(pgrecall_internal._string_field(place || '.tokens', value), 'base64');
  exception when data_exception then
    perform pgrecall_internal._raise_invalid_field(
      place || '.tokens', format('it is not base64: %s', left(value::text, 80)),
      'Pass what the driver makes, or none.');
  end;
  if octet_length(tokens) > 3072 then
    perform pgrecall_internal._raise_invalid_field(
      place || '.tokens', format('%s bytes are more than 3072', octet_length(tokens)),
      'Keep the vectors of fewer tokens.');
  end if;
  return tokens;
end;
$$;
comment on function pgrecall_internal._tokens_field is
'Field tokens of a fact: token vectors as base64, those of the bank''s own model (is_own), or by '
'the name of their model, {"model": "..."}. Null: none. Errors: RC003.';

create or replace function pgrecall_internal._read_embeddings(
  bank pgrecall.bank, embeddings jsonb)
returns table (memory_id bigint, kind text, ordinal smallint, text text, embedding halfvec,
               tokens bytea, n bigint)
language sql stable parallel unsafe rows 100
begin atomic
  -- Called in a from clause, so that it is inlined: only what is used is read.
  select (e.item ->> 'memory_id')::bigint, coalesce(e.item ->> 'kind', 'text'),
         coalesce(e.item ->> 'ordinal', '0')::smallint, e.item ->> 'text',
         -- A missing embedding gets the same error as an empty one.
         pgrecall_internal._embedding_field(
           format('embeddings[%s].embedding', e.n - 1), coalesce(e.item -> 'embedding', '""'),
           bank),
         pgrecall_internal._tokens_field(
           format('embeddings[%s]', e.n - 1), e.item, (bank).embedding_model, true),
         e.n
  from   jsonb_array_elements(embeddings) with ordinality as e(item, n);
end;
comment on function pgrecall_internal._read_embeddings is
'Embeddings of texts that are stored already, as embed_store() takes them, n counting from 1. '
'Errors: those of _embedding_field() and _tokens_field().';

create or replace function pgrecall_internal._read_vectors(
  place text, item jsonb, bank pgrecall.bank, kind text, ordinal integer, content text)
returns pgrecall_internal.fact_vector[]
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  own_json  jsonb := pgrecall_internal._vector(item, bank.embedding_model, true);
  own       pgrecall_internal.fact_vector;
  following pgrecall_internal.fact_vector;
begin
  if jsonb_typeof(item -> 'embeddings') not in ('object', 'null') then
    perform pgrecall_internal._raise_invalid_field(
      place || '.embeddings',
      format('expected an object, not %s', left((item -> 'embeddings')::text, 80)),
      'Write {"name of the model": [0.1, 0.2]}.');
  end if;
  if own_json is null then
    if nullif(nullif(item -> 'embeddings', 'null'), '{}') is not null then
      raise exception using
        errcode = 'RC005',
        message = format('%s: bank "%s" is embedded with model "%s", not "%s"',
                         place, bank.bank_id, coalesce(bank.embedding_model, ''),
                         (select string_agg(k, '", "' order by k)
                          from   jsonb_object_keys(item -> 'embeddings') as k)),
        hint    = case when bank.embedding_model is null
          then 'Name the model that the bank is to have with model => as well.'
          else format('Bring an embedding of "%s" as well.', bank.embedding_model) end;
    end if;
    return '{}';
  end if;
  own.model := coalesce(bank.embedding_model, '');
  own.kind := kind;
  own.ordinal := ordinal;
  own.embedding := pgrecall_internal._embedding_field(place || '.embedding', own_json, bank);
  own.text := content;
  if kind = 'text' then
    own.tokens := pgrecall_internal._tokens_field(place, item, bank.embedding_model, true);
  end if;
  if bank.next_model is not null then
    bank := pgrecall_internal._as_next(bank);
    following := own;
    following.model := bank.next_model;
    following.embedding := pgrecall_internal._embedding_field(
      format('%s.embeddings.%s', place, bank.next_model),
      pgrecall_internal._vector(item, bank.next_model, false), bank);
    if kind = 'text' then
      following.tokens := pgrecall_internal._tokens_field(place, item, bank.next_model, false);
    end if;
    if following.embedding is not null then
      return array[own, following];
    end if;
  end if;
  return array[own];
end;
$$;
comment on function pgrecall_internal._read_vectors is
'The embeddings of a fact or question: of the bank''s model, and of the next one while the bank is '
're-embedded. Empty: none. Errors: RC003, RC004, RC005 only embeddings of other models, RC006.';

create or replace function pgrecall_internal._read_questions(
  place text, value jsonb, bank pgrecall.bank)
returns pgrecall_internal.fact_vector[]
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  item    jsonb;
  n       integer;
  field   text;
  content text;
  vectors pgrecall_internal.fact_vector[];
  read    pgrecall_internal.fact_vector[] := '{}';
begin
  if jsonb_array_length(pgrecall_internal._array_field(place, value)) > 1000 then
    perform pgrecall_internal._raise_invalid_field(
      place, format('%s questions are more than 1000', jsonb_array_length(value)),
      'Keep those that users would ask.');
  end if;
  for item, n in
    select e.value, e.n - 1
    from   jsonb_array_elements(pgrecall_internal._array_field(place, value))
             with ordinality as e(value, n)
    order  by e.n
  loop
    field := format('%s[%s]', place, n);
    perform pgrecall_internal._check_keys(field, item, array['text', 'embedding', 'embeddings']);
    content := pgrecall_internal._string_field(field || '.text', item -> 'text');
    vectors := pgrecall_internal._read_vectors(field, item, bank, 'question', n, content);
    if vectors = '{}' then
      perform pgrecall_internal._raise_invalid_field(
        field || '.embedding', 'missing', 'A question is found by its embedding only.');
    end if;
    read := read || vectors;
  end loop;
  return read;
end;
$$;
comment on function pgrecall_internal._read_questions is
'The embeddings of the questions that a fact answers. Errors: those of _read_vectors().';

create or replace function pgrecall_internal._content_hash(
  fact_type text, text text, context text, fact_key text, source_id text, occurred tstzrange,
  mentioned_at timestamptz)
returns bytea
language sql stable parallel safe
return sha256(convert_to(jsonb_build_array(
         fact_type, text, context, fact_key, source_id, occurred::text,
         extract(epoch from mentioned_at))::text, 'UTF8'));
comment on function pgrecall_internal._content_hash is
'What a fact is known by: SHA-256 over these of its fields, the times null where not given. The '
'caller sets timezone to UTC and datestyle to ISO, which are part of it.';

create or replace function pgrecall_internal._read_fact(
  fact jsonb, index integer, size integer, bank pgrecall.bank, fact_types text[])
returns pgrecall_internal.fact_row
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  place text := format('facts[%s]', index);
  read  pgrecall_internal.fact_row;
begin
  perform pgrecall_internal._check_keys(place, fact, array[
    'text', 'fact_type', 'context', 'fact_key', 'source_id', 'tags', 'metadata', 'occurred',
    'mentioned_at', 'confidence', 'proof_count', 'entities', 'relations', 'links', 'questions',
    'embedding', 'embeddings', 'tokens', 'expires_at']);
  read.n := index + 1;
  read.text := pgrecall_internal._string_field(place || '.text', fact -> 'text', true);
  read.context := pgrecall_internal._string_field(place || '.context', fact -> 'context');
  -- These three are indexed: a longer value would exceed the size of an index entry.
  read.fact_type := coalesce(
    pgrecall_internal._string_field(place || '.fact_type', fact -> 'fact_type', longest => 500),
    'world');
  read.fact_key := pgrecall_internal._string_field(
    place || '.fact_key', fact -> 'fact_key', longest => 500);
  read.source_id := pgrecall_internal._string_field(
    place || '.source_id', fact -> 'source_id', longest => 500);
  if read.fact_type <> all (fact_types) then
    raise exception using
      errcode = 'RC008',
      message = format('%s.fact_type: bank "%s" has no fact type "%s"', place, bank.bank_id,
                       fact ->> 'fact_type'),
      hint    = format('It has %s. Add one with: select pgrecall.add_fact_type(%L, %L);',
                       array_to_string(fact_types, ', '), bank.bank_id, fact ->> 'fact_type');
  end if;
  read.metadata := coalesce(nullif(fact -> 'metadata', 'null'), '{}');
  if jsonb_typeof(read.metadata) <> 'object' then
    perform pgrecall_internal._raise_invalid_field(
      place || '.metadata', format('expected an object, not %s', left(read.metadata::text, 80)),
      'Write {"team": "core"}, for example.');
  end if;
  read.occurred := pgrecall_internal._span_field(place || '.occurred', fact -> 'occurred');
  read.mentioned_at := pgrecall_internal._time_field(
    place || '.mentioned_at', fact -> 'mentioned_at');
  read.expires_at := pgrecall_internal._time_field(place || '.expires_at', fact -> 'expires_at');
  if read.expires_at <= least(read.mentioned_at, now()) then
    perform pgrecall_internal._raise_invalid_field(
      place || '.expires_at',
      format('%s is not after the fact was said', left((fact -> 'expires_at')::text, 80)),
      'A fact expires after its mentioned_at, which is now where it is not given.');
  end if;
  read.confidence := coalesce(
    pgrecall_internal._fraction_field(place || '.confidence', fact -> 'confidence'), 1);
  if fact ->> 'proof_count' is not null and (
       jsonb_typeof(fact -> 'proof_count') <> 'number'
       or fact ->> 'proof_count' !~ '^[1-9]\d{0,8}$')
  then
    perform pgrecall_internal._raise_invalid_field(
      place || '.proof_count',
      format('expected a whole number from 1 to 999999999, not %s',
             left((fact -> 'proof_count')::text, 80)),
      'It counts the sources that say so; leave it out for one.');
  end if;
  read.proof_count := coalesce((fact ->> 'proof_count')::integer, 1);
  read.vectors := pgrecall_internal._read_vectors(place, fact, bank, 'text', 0, null);

  -- Most facts have few of the fields below; only given fields cost a query.
  read.tags := '{}';
  if fact ? 'tags' then
    read.tags := array(
      select pgrecall_internal._string_field(place || '.tags', e.value, true)
      from   jsonb_array_elements(
               pgrecall_internal._array_field(place || '.tags', fact -> 'tags'))
               with ordinality as e(value, n)
      order  by e.n);
  end if;
  read.names := '{}';
  if fact ? 'entities' then
    read.names := array(
      select pgrecall_internal._read_entity(format('%s.entities[%s]', place, e.n - 1), e.value)
      from   jsonb_array_elements(
               pgrecall_internal._array_field(place || '.entities', fact -> 'entities'))
               with ordinality as e(value, n)
      order  by e.n);
  end if;
  if fact ? 'relations' then
    read.relations := array(
      select pgrecall_internal._read_relation(format('%s.relations[%s]', place, e.n - 1), e.value)
      from   jsonb_array_elements(
               pgrecall_internal._array_field(place || '.relations', fact -> 'relations'))
               with ordinality as e(value, n)
      order  by e.n);
    read.names := read.names || array(
      select row(s.name, s.alias, null, null, '{}')::pgrecall_internal.fact_name
      from   unnest(read.relations) with ordinality
               as r(from_name, from_alias, kind, to_name, to_alias, confidence, valid_from,
                    valid_to, n)
      cross  join lateral (
        values (1, r.from_name, r.from_alias), (2, r.to_name, r.to_alias)
      ) as s(side, name, alias)
      order  by r.n, s.side);
  end if;
  if fact ? 'links' then
    read.links := array(
      select pgrecall_internal._read_link(
               format('%s.links[%s]', place, e.n - 1), e.value, index, size)
      from   jsonb_array_elements(
               pgrecall_internal._array_field(place || '.links', fact -> 'links'))
               with ordinality as e(value, n)
      order  by e.n);
  end if;
  if fact ? 'questions' then
    read.vectors := read.vectors || pgrecall_internal._read_questions(
      place || '.questions', fact -> 'questions', bank);
  end if;

  read.content_hash := pgrecall_internal._content_hash(
    read.fact_type, read.text, read.context, read.fact_key, read.source_id, read.occurred,
    read.mentioned_at);
  return read;
end;
$$;
comment on function pgrecall_internal._read_fact is
'Checks a fact, the one at index (from 0) of size facts, and returns it typed. The caller sets '
'timezone to UTC and datestyle to ISO, for content_hash. It is a long function, since the order of '
'its checks is the order in which errors are reported. Errors: RC003 (field), RC004, '
'RC005, RC006 (embedding) or RC008 (fact type), naming the fact and the field.';

create or replace function pgrecall_internal._read_facts(
  facts jsonb, bank pgrecall.bank, fact_types text[])
returns pgrecall_internal.fact_row[]
language plpgsql stable parallel unsafe
set search_path from current
-- Of what is called here, too: it reads no table, and to plan it for each fact takes longer than
-- to run it.
set plan_cache_mode = force_generic_plan
as $$
begin
  return array(
    select pgrecall_internal._read_fact(
             f.fact, f.n::integer - 1, jsonb_array_length(facts), bank, fact_types)
    from   jsonb_array_elements(facts) with ordinality as f(fact, n)
    order  by f.n
  );
end;
$$;
comment on function pgrecall_internal._read_facts is
'Facts, an array, as rows, in order. Errors: those of _read_fact().';

-- retain/replacement.sql
-- Replacement of facts with the same key, or the same relation of an entity.
--
-- A fact holds from when it was said (valid_from) until the next fact of its key, or the next that
-- gives its relation another end, was said: so a recall as of any time finds what was known last.
-- Only facts retained with replace end others, and are ended by others said later: one that arrives
-- late ends earlier ones, and itself ends where the next began. Facts said at the same time follow
-- in the order retained. A fact that states several relations ends as a whole. A relation that
-- ended by itself (valid_to) is history and replaces nothing. All replacements of a batch are found
-- at once, sorted by key or relation and time, in n log n. Facts of a key are read from the
-- earliest time in the batch on; of a relation, all are read.
create or replace function pgrecall_internal._end_memories(
  bank text, kind text, correction_id bigint, memory_ids bigint[], ends timestamptz[],
  successors bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- The array is read once, not for each memory, however few the planner takes them for.
set enable_nestloop = off
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
begin
  update pgrecall.memory m
  set    valid_to      = greatest(e.ends_at, m.valid_from),
         superseded_by = e.successor_id,
         corrections   = pgrecall_internal._corrections(
                           row(m.*)::pgrecall.memory, _end_memories.kind,
                           _end_memories.correction_id, e.successor_id,
                           case when e.successor_id is null then memory_ids end)
  from   unnest(memory_ids, ends, successors) as e(memory_id, ends_at, successor_id)
  -- The array keeps to the primary key, whatever is known of the bank.
  where  m.bank_id = _end_memories.bank and m.memory_id = e.memory_id
    and  m.memory_id = any (memory_ids);
end;
$$;
comment on function pgrecall_internal._end_memories is
'Ends memories, each at its time and by its successor, if any, and records their previous values.';

create or replace function pgrecall_internal._corrections(
  memory pgrecall.memory, kind text, correction_id bigint, replaced_by bigint, members bigint[])
returns jsonb
language sql stable parallel safe
return coalesce((memory).corrections, '[]') || jsonb_strip_nulls(jsonb_build_object(
  'kind', kind, 'correction_id', correction_id, 'replaced_by', replaced_by, 'members', members,
  'valid_to', (memory).valid_to, 'superseded_by', (memory).superseded_by,
  'proof_count', (memory).proof_count, 'by', current_user, 'at', now()));
comment on function pgrecall_internal._corrections is
'The corrections of a memory and one more, with the current values of the row, without nulls. '
'members: the memories corrected with it, where none replaced them.';

create or replace function pgrecall_internal._is_hidden(
  valid_from timestamptz, valid_to timestamptz, corrections jsonb)
returns boolean
language sql immutable parallel safe
return coalesce(valid_to = valid_from and corrections -> -1 ->> 'kind' = 'quarantine', false);
comment on function pgrecall_internal._is_hidden is
'Whether quarantine() has taken a memory out.';

create or replace function pgrecall_internal._batch_members(
  bank pgrecall.bank, mode text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns table (slot text, fact_key text, from_id bigint, kind text, memory_id bigint, value text,
               said_at timestamptz, n integer)
language plpgsql stable parallel safe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  with said as materialized (
    select memory_ids[f.n] as memory_id, max(f.n) as n,
           lower(pgrecall_internal._normalised(f.fact_key)) as fact_key,
           least(max(f.mentioned_at), now()) as said_at,
           bool_or(f.relations <> '{}') as has_relations
    from   unnest(facts) as f
    group  by 1, 3
  )
  select 'key ' || s.fact_key, s.fact_key, null::bigint, null::text, s.memory_id,
         s.memory_id::text, s.said_at, s.n
  from   said s
  where  mode in ('key', 'both') and s.fact_key is not null
  union all
  select format('%s %s', r.from_id, r.kind), null::text, r.from_id, r.kind, s.memory_id,
         string_agg(r.to_id::text, ' ' order by r.to_id), s.said_at, s.n
  from   said s
  cross  join lateral (
    select x.from_id, x.kind, x.to_id
    from   pgrecall.relation x
    where  x.bank_id = bank.bank_id and x.memory_id = s.memory_id
      and  (x.valid_to is null or x.valid_to > s.said_at)
    offset 0
  ) as r
  where  mode in ('relation', 'both') and s.has_relations
    and  (bank.single_relations = '{}' or r.kind = any (bank.single_relations))
  group  by s.memory_id, s.said_at, s.n, r.from_id, r.kind;
end;
$$;
comment on function pgrecall_internal._batch_members is
'The facts of a batch that replace others. slot: a key or a relation of an entity. value: a fact '
'with another value replaces it; for a key every fact is another value.';

create or replace function pgrecall_internal._slot_members(
  bank pgrecall.bank, mode text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns setof pgrecall_internal.slot_member
language plpgsql stable parallel safe rows 100
set search_path from current
-- Without statistics of the batch the planner would choose a nested loop.
set plan_cache_mode = force_generic_plan
set jit = off
set enable_nestloop = off
set enable_seqscan = off
as $$
begin
  return query
  with said as materialized (
    select * from pgrecall_internal._batch_members(bank, mode, facts, memory_ids)
  ),
  slot as materialized (
    select s.slot, s.fact_key, s.from_id, s.kind, min(s.said_at) as since
    from   said s
    group  by s.slot, s.fact_key, s.from_id, s.kind
  ),
  member as (
    select o.slot, m.memory_id, m.memory_id::text as value, m.valid_from, m.valid_to,
           m.source_id
    from   slot o
    cross  join lateral (
      -- Only one index provides this range in this order.
      select x.memory_id, x.valid_from, x.valid_to, x.source_id
      from   pgrecall.memory x
      where  x.bank_id = bank.bank_id and x.fact_key is not null
        and  lower(pgrecall_internal._normalised(x.fact_key)) between o.fact_key and o.fact_key
        and  coalesce(x.valid_to, 'infinity'::timestamptz) > o.since
        and  not pgrecall_internal._is_hidden(x.valid_from, x.valid_to, x.corrections)
      order  by lower(pgrecall_internal._normalised(x.fact_key))
      offset 0
    ) as m
    where  o.fact_key is not null
    union all
    select o.slot, m.memory_id, m.value, m.valid_from, m.valid_to, m.source_id
    from   slot o
    cross  join lateral (
      select r.memory_id, r.value, x.valid_from, x.valid_to, x.source_id
      from (
        select e.memory_id, string_agg(e.to_id::text, ' ' order by e.to_id) as value
        from   pgrecall.relation e
        where  e.bank_id = bank.bank_id and e.from_id = o.from_id and e.kind = o.kind
          and  (e.valid_to is null or e.valid_to > o.since)
        group  by e.memory_id
      ) as r
      cross  join lateral (
        select y.valid_from, y.valid_to, y.source_id
        from   pgrecall.memory y
        where  y.bank_id = bank.bank_id and y.memory_id = r.memory_id
          and  coalesce(y.valid_to, 'infinity'::timestamptz) > o.since
          and  not pgrecall_internal._is_hidden(y.valid_from, y.valid_to, y.corrections)
        limit  1
      ) as x
      offset 0
    ) as m
    where  o.from_id is not null
  )
  select m.slot, m.memory_id, m.value, coalesce(s.said_at, m.valid_from), m.valid_to,
         s.memory_id is not null, pgrecall_internal._trust(bank.source_trust, m.source_id)
  from   member m
  left   join said s on s.slot = m.slot and s.memory_id = m.memory_id
  order  by m.slot, coalesce(s.said_at, m.valid_from) desc, coalesce(s.n, 0) desc,
         m.memory_id desc;
end;
$$;
comment on function pgrecall_internal._slot_members is
'The facts of each slot that a batch has a value for, the last first, those of the batch with '
'their times in the batch. Facts that ended before are left out.';

create or replace function pgrecall_internal._replacements(
  members pgrecall_internal.slot_member[], at_least double precision,
  out ended bigint[], out ends timestamptz[], out successors bigint[])
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  member     pgrecall_internal.slot_member;
  later      pgrecall_internal.slot_member;  -- the next in time
  said       pgrecall_internal.slot_member;  -- and the next that the batch says
  other      pgrecall_internal.slot_member;  -- the next after a member with another value
  other_said pgrecall_internal.slot_member;  -- the same of what the batch says
  successor  pgrecall_internal.slot_member;
begin
  ended := '{}';
  ends := '{}';
  successors := '{}';
  foreach member in array members loop
    continue when member.trust < at_least;
    if later.slot is distinct from member.slot then
      later := null;
      said := null;
      other := null;
      other_said := null;
    end if;
    if later.value <> member.value then
      other := later;
    end if;
    if said.value <> member.value then
      successor := said;
    else
      successor := other_said;
    end if;
    if member.is_said then
      other_said := successor;
      said := member;
      successor := other;
    end if;
    later := member;
    if successor.said_at < coalesce(member.ends_at, 'infinity') then
      ended := ended || member.memory_id;
      ends := ends || successor.said_at;
      successors := successors || successor.memory_id;
    end if;
  end loop;
  select coalesce(array_agg(e.memory_id), '{}'), array_agg(e.ends_at), array_agg(e.successor_id)
  into   ended, ends, successors
  from (
    select distinct on (u.memory_id) u.memory_id, u.ends_at, u.successor_id
    from   unnest(ended, ends, successors) as u(memory_id, ends_at, successor_id)
    where  u.successor_id <> u.memory_id
    order  by u.memory_id, u.ends_at, u.successor_id
  ) as e;
end;
$$;
comment on function pgrecall_internal._replacements is
'Which members of slots are ended, when, and by which: a fact of the batch by the next of its slot '
'with another value, any other by the next of the batch. Only members with a trust of at_least '
'take part.';

create or replace function pgrecall_internal._trusted_replacements(
  members pgrecall_internal.slot_member[],
  out ended bigint[], out ends timestamptz[], out successors bigint[])
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  level double precision;
  found record;
begin
  ended := '{}';
  ends := '{}';
  successors := '{}';
  for level in select distinct m.trust from unnest(members) as m order by 1 desc loop
    found := pgrecall_internal._replacements(members, level);
    -- Those of this trust; those of other trusts end one another in their own pass.
    select ended || coalesce(array_agg(u.memory_id), '{}'),
           ends || coalesce(array_agg(u.ends_at), '{}'),
           successors || coalesce(array_agg(u.successor_id), '{}')
    into   ended, ends, successors
    from   unnest(found.ended, found.ends, found.successors) as u(memory_id, ends_at, successor_id)
    where  u.memory_id in (select m.memory_id from unnest(members) as m where m.trust = level);
  end loop;
end;
$$;
comment on function pgrecall_internal._trusted_replacements is
'As _replacements(), but a member is ended only by one that is trusted as much.';

create or replace function pgrecall_internal._replace(
  bank pgrecall.bank, mode text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  members pgrecall_internal.slot_member[];
  pairs   record;
begin
  if mode = 'none' then
    return;
  end if;
  members := array(
    select m from pgrecall_internal._slot_members(bank, mode, facts, memory_ids) as m);
  pairs := pgrecall_internal._replacements(members, 0);
  if bank.source_trust <> '{}' then
    -- The batch may not end a fact that is trusted more: an error. Nor do earlier facts end one
    -- that arrives late.
    perform pgrecall_internal._check_successors(
      bank.bank_id, array_agg(u.memory_id order by f.place),
      array_agg(u.successor_id order by f.place), array_agg(f.place order by f.place))
    from   unnest(pairs.ended, pairs.successors) as u(memory_id, successor_id)
    join  (select x.id, min(x.n)::integer - 1 as place
           from   unnest(memory_ids) with ordinality as x(id, n)
           group  by x.id) as f on f.id = u.successor_id;
    pairs := pgrecall_internal._trusted_replacements(members);
  end if;
  if pairs.ended <> '{}' then
    perform pgrecall_internal._end_memories(
      bank.bank_id, 'retain', nextval('pgrecall.id_seq'), pairs.ended, pairs.ends,
      pairs.successors);
  end if;
end;
$$;
comment on function pgrecall_internal._replace is
'Ends the facts replaced by a batch, once that is stored with its relations: _replacements(). '
'Errors: RC015 it would end a fact that is trusted more.';

-- retain/retain.sql
-- Writing and forgetting facts.
--
-- retain() is a sequence of steps, each a function: _pin_model() fixes the model and the length of
-- the bank's embeddings by the first one stored; _read_fact() checks each fact and types it;
-- _store_memories() and the functions after it write memories, embeddings, entities, mentions,
-- relations and links. The bank is locked from the first statement to the end of the transaction:
-- shared with others that retain, unless _is_alone() says otherwise. Between those, a unique index,
-- the rows of known facts and name_lock decide which of two writers of the same fact, name or key
-- comes first; each kind is locked in a fixed order. A batch is written whole or not at all.
-- content_hash identifies a fact: retaining it again stores nothing new and returns the existing
-- memory. As the last step _replace() (retain/replacement.sql) ends older facts that new ones
-- replace. Plans of statements that read tables are not kept (force_custom_plan): a plan made for
-- an empty bank would read the whole table in a full one. Plans that only compute or insert are
-- kept.

create or replace function pgrecall_internal._pin_model(
  bank pgrecall.bank, facts jsonb, model text)
returns pgrecall.bank
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
declare
  own_model  text := coalesce(bank.embedding_model, model);
  before     pgrecall.bank := bank;
  place      text;
  first_json jsonb;
begin
  select format('facts[%s].%s', f.n - 1, e.place), e.embedding
  into   place, first_json
  from   jsonb_array_elements(facts) with ordinality as f(fact, n)
  cross  join lateral (
    select 'embedding', pgrecall_internal._vector(f.fact, own_model, true)
    union all
    select format('questions[%s].embedding', q.n - 1),
           pgrecall_internal._vector(q.value, own_model, true)
    from   jsonb_path_query(f.fact, 'lax $.questions[*]') with ordinality as q(value, n)
  ) as e(place, embedding)
  where  e.embedding is not null
  limit  1;
  perform pgrecall_internal._checked_embedding(bank, 'facts', null, model);
  if first_json is null then
    return bank;
  end if;

  if bank.embedding_dimensions is null then
    bank.embedding_dimensions :=
      vector_dims(pgrecall_internal._embedding_field(place, first_json, bank));
    if bank.embedding_dimensions > 4000 then
      raise exception using
        errcode = 'RC004',
        message = format('%s: expected at most 4000 dimensions, not %s',
                         place, bank.embedding_dimensions),
        hint    = 'Longer embeddings cannot be indexed; ask the model for fewer dimensions.';
    end if;
  end if;
  if bank.embedding_model is null and model <> '' then
    bank.embedding_model := model;
    -- Embeddings stored without a model name are assigned to this model, so that they are still
    -- found.
    update pgrecall.embedding e
    set    model = _pin_model.model
    where  e.bank_id = bank.bank_id and e.model = '';
  end if;
  if bank is distinct from before then
    update pgrecall.bank b
    set    embedding_dimensions = bank.embedding_dimensions,
           embedding_model      = bank.embedding_model
    where  b.bank_id = bank.bank_id;
  end if;
  return bank;
end;
$$;
comment on function pgrecall_internal._pin_model is
'Fixes the length of a bank''s embeddings by the first embedding in facts, and the name of their '
'model by the first model named; returns the updated row of the bank. Errors: RC004, RC005, RC006.';

create or replace function pgrecall_internal._is_alone(
  bank pgrecall.bank, facts jsonb, model text, replace text)
returns boolean
language sql stable parallel safe
return coalesce(
  -- The first embedding pins the model, in the row of the bank.
  (bank.embedding_dimensions is null or bank.embedding_model is null and model <> '')
  and jsonb_path_exists(
        facts, 'lax $[*] ? (exists(@.embedding) || exists(@.embeddings) || exists(@.questions))')
  -- Two names may mean one entity, and no index tells equal facts that expire apart.
  or coalesce(_is_alone.replace, bank.replace) in ('relation', 'both')
     and jsonb_path_exists(facts, 'lax $[*].relations[*]')
  or jsonb_path_exists(facts, 'lax $[*].expires_at'), false);
comment on function pgrecall_internal._is_alone is
'Whether retain() needs the bank for itself to store these facts.';

create or replace function pgrecall_internal._check_quarantine(
  bank pgrecall.bank, facts pgrecall_internal.fact_row[])
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  place  integer;
  source text;
begin
  if bank.quarantined = '{}' then
    return;
  end if;
  select f.n - 1, pgrecall_internal._source(bank.quarantined, f.source_id) into place, source
  from   unnest(facts) as f
  where  pgrecall_internal._source(bank.quarantined, f.source_id) is not null
  order  by f.n
  limit  1;
  if found then
    raise exception using
      errcode = 'RC015',
      message = format('facts[%s].source_id: source "%s" is in quarantine', place, source),
      hint    = format('Accept its facts again with: select * from pgrecall.release(%L, %L);',
                       bank.bank_id, source);
  end if;
end;
$$;
comment on function pgrecall_internal._check_quarantine is
'Raises RC015 for a fact of a source in quarantine.';

create or replace function pgrecall_internal._lock_names(
  bank text, facts pgrecall_internal.fact_row[], mode text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  insert into pgrecall_internal.name_lock (bank_id, slot)
  select _lock_names.bank, k.slot
  from (
    select hashtextextended('name ' || n.alias, 0) & 4095 as slot
    from (
      select distinct a.alias, e.kind_class
      from   unnest(facts) as f
      cross  join lateral unnest(f.names) as e
      cross  join lateral unnest(e.aliases || e.alias) as a(alias)
    ) as n
    -- A name of an entity of another kind may become an entity too.
    where  (select true
            from   pgrecall.entity_alias b
            cross  join lateral (
              select e.kind
              from   pgrecall.entity e
              where  e.bank_id = _lock_names.bank and e.entity_id = b.entity_id
              limit  1
            ) as x
            where  b.bank_id = _lock_names.bank and b.alias = n.alias
              and  not pgrecall_internal._kinds_differ(
                         pgrecall_internal._kind_class(x.kind), n.kind_class)
            limit  1) is null
    union
    select hashtextextended(
             'key ' || lower(pgrecall_internal._normalised(f.fact_key)), 0) & 4095
    from   unnest(facts) as f
    where  mode in ('key', 'both') and f.fact_key is not null
  ) as k
  order  by k.slot
  on conflict on constraint name_lock_pkey do update
  set slot = excluded.slot;
end;
$$;
comment on function pgrecall_internal._lock_names is
'Locks the names in facts that may become entities, and the keys that replace facts. A transaction '
'that waited sees what the other stored in its next statement; with an old snapshot it fails '
'(40001).';

create or replace function pgrecall_internal._store_memories(
  bank pgrecall.bank, facts pgrecall_internal.fact_row[], known_ids bigint[], is_linked boolean,
  average_length double precision)
returns bigint[]
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
declare
  new_ids bigint[];
begin
  with stored as (
    insert into pgrecall.memory as m
           (bank_id, memory_id, fact_type, text, context, fact_key, source_id, tags, metadata,
            occurred, mentioned_at, confidence, proof_count, valid_from, valid_to, content_hash,
            is_linked, lexical_length, lexical_weights, lexical_document)
    select bank.bank_id, i.memory_id, i.fact_type, i.text, i.context, i.fact_key, i.source_id,
           i.tags, i.metadata, i.occurred, coalesce(i.mentioned_at, now()), i.confidence,
           i.proof_count, least(i.mentioned_at, now()), i.expires_at, i.content_hash,
           _store_memories.is_linked, x.length, x.weights,
           pgrecall_internal._lexical_document(bank, i.text, i.context, i.fact_key)
    from (
      -- Ids follow the order of the facts.
      select nextval('pgrecall.id_seq') as memory_id, o.*
      from (
        select u.*
        from (
          select distinct on (f.content_hash)
                 f.n, f.fact_type, f.text, f.context, f.fact_key, f.source_id, f.tags,
                 f.metadata, f.occurred, f.mentioned_at, f.confidence, f.proof_count,
                 f.content_hash, f.expires_at
          from   unnest(facts) as f
          where  known_ids[f.n] is null
          order  by f.content_hash, f.n
        ) as u
        order  by u.n
      ) as o
      offset 0
    ) as i
    cross  join lateral pgrecall_internal._document_weights(
             bank, i.text, i.context, i.fact_key, average_length) as x
    -- Two batches with the same facts wait for each other in one direction only.
    order  by i.content_hash
    on conflict (bank_id, content_hash) where valid_to is null do nothing
    returning m.memory_id
  )
  select coalesce(array_agg(s.memory_id order by s.memory_id), '{}') into new_ids from stored s;
  return new_ids;
end;
$$;
comment on function pgrecall_internal._store_memories is
'Writes the memories of facts that the bank does not hold yet; returns their ids.';

create or replace function pgrecall_internal._memory_ids(
  bank text, facts pgrecall_internal.fact_row[], replace text)
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index and its order, also those made while a table was small.
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
begin
  -- One lookup each, whatever the planner assumes about a table not analysed yet: only one index
  -- provides each range in its order. An ended fact counts as known only where storing it again
  -- would change nothing: it expires at that time, it would be replaced again at the same time, or
  -- its copy holds.
  return array(
    select known.memory_id
    from (
      select u.n, u.content_hash, u.mentioned_at, u.expires_at,
             replace in ('key', 'both') and u.fact_key is not null
             or replace in ('relation', 'both') and u.relations <> '{}' as is_replacing,
             replace in ('key', 'both') and u.fact_key is not null and u.mentioned_at is null
             and u.n < max(u.n) filter (where u.mentioned_at is null) over (
                         partition by lower(pgrecall_internal._normalised(u.fact_key)))
               as is_passed
      from   unnest(facts) as u
    ) as f
    left   join lateral (
      select c.memory_id
      from (
        (select m.memory_id, 1 as place
         from   pgrecall.memory m
         where  m.bank_id = _memory_ids.bank and m.valid_to is null
           and  m.content_hash between f.content_hash and f.content_hash
         order  by m.content_hash
         limit  1)
        union all
        (select m.memory_id, 2 as place
         from (
           select x.memory_id, x.valid_from, x.valid_to, x.superseded_by, x.corrections
           from   pgrecall.memory x
           where  x.bank_id = _memory_ids.bank and x.valid_to is not null
             and  x.content_hash between f.content_hash and f.content_hash
           order  by x.content_hash
           offset 0  -- found by the hash, not by the order
         ) as m
         where  (m.valid_to > greatest(now(), m.valid_from) or m.valid_to = f.expires_at
                 or f.is_replacing and m.superseded_by is not null
                    and (f.is_passed or m.valid_from = f.mentioned_at)
                 or m.corrections -> -1 ->> 'kind' = 'consolidate'
                    and exists (select from pgrecall.memory k
                                where  k.bank_id = _memory_ids.bank
                                  and  k.memory_id = m.superseded_by and k.valid_to is null))
         order  by m.memory_id desc
         limit  1)
      ) as c
      order  by c.place
      limit  1
    ) as known on true
    order  by f.n
  );
end;
$$;
comment on function pgrecall_internal._memory_ids is
'The memories that hold facts, in the order of the facts; null for one that the bank does not '
'hold. replace: how they replace others, as for retain().';

create or replace function pgrecall_internal._update_known(
  bank text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- The array is read once, not for each memory, however few the planner takes them for.
set enable_nestloop = off
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
begin
  if not exists (
    select from unnest(facts) as f where f.expires_at is not null or f.proof_count > 1
  ) then
    return;
  end if;
  update pgrecall.memory m
  set    proof_count = greatest(m.proof_count, e.proof_count),
         valid_to    = case
           when m.superseded_by is null and m.valid_from <= e.expires_at
                and (m.valid_to is null or m.valid_to > now()) then e.expires_at
           else m.valid_to end
  from (
    select memory_ids[f.n] as memory_id, max(f.proof_count) as proof_count,
           (array_agg(f.expires_at order by f.n desc)
              filter (where f.expires_at is not null))[1] as expires_at
    from   unnest(facts) as f
    group  by 1
  ) as e
  -- The array keeps to the primary key, whatever is known of the bank.
  where  m.bank_id = _update_known.bank and m.memory_id = e.memory_id
    and  m.memory_id = any (memory_ids)
    and  (m.proof_count < e.proof_count
          or m.superseded_by is null and m.valid_from <= e.expires_at
             and (m.valid_to is null or m.valid_to > now())
             and m.valid_to is distinct from e.expires_at);
end;
$$;
comment on function pgrecall_internal._update_known is
'Raises the proof_count of memories to that of equal facts where that is greater, and sets the '
'expiry of those that hold to that of the last equal fact. The memories must be locked.';

create or replace function pgrecall_internal._store_embeddings(
  bank text, facts pgrecall_internal.fact_row[], memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
begin
  insert into pgrecall.embedding
         (bank_id, memory_id, model, kind, ordinal, fact_type, embedding, text, tokens)
  select _store_embeddings.bank, memory_ids[f.n], v.model, v.kind, v.ordinal, f.fact_type,
         v.embedding, v.text, v.tokens
  from   unnest(facts) as f
  cross  join lateral unnest(f.vectors) as v
  on conflict on constraint embedding_pkey do nothing;
end;
$$;
comment on function pgrecall_internal._store_embeddings is
'Writes the embeddings of facts and of their questions: of the bank''s model, and of the next one '
'while the bank is being re-embedded.';

create or replace function pgrecall_internal._facts(facts jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
begin
  if jsonb_typeof(facts) in ('object', 'string') then
    facts := jsonb_build_array(facts);
  end if;
  perform pgrecall_internal._check_array('facts', facts);
  if jsonb_path_exists(facts, 'strict $[*] ? (@.type() == "string")') then
    return (
      select jsonb_agg(
               case jsonb_typeof(f.fact)
                 when 'string' then jsonb_build_object('text', f.fact)
                 else f.fact
               end order by f.n)
      from   jsonb_array_elements(facts) with ordinality as f(fact, n)
    );
  end if;
  return facts;
end;
$$;
comment on function pgrecall_internal._facts is
'Facts as an array of objects: a single fact becomes an array, a text becomes a fact. Error: '
'RC003.';

create or replace function pgrecall.retain(
  bank    text,
  facts   jsonb,
  model   text default null,
  link    text default 'now',
  replace text default null)
returns setof pgrecall.retained
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $$
declare
  locked     pgrecall.bank;
  fact_types text[];
  fact_rows  pgrecall_internal.fact_row[];
  mode       text;
  average    double precision;
  counted    bigint;
  new_ids    bigint[];
  memory_ids bigint[];
begin
  locked := pgrecall_internal._bank_to_write(bank, 'pgrecall.memory', 'insert');
  facts := pgrecall_internal._facts(facts);
  if not pgrecall_internal._is_alone(locked, facts, model, retain.replace) then
    locked := pgrecall_internal._shared_bank(bank);
  end if;
  -- It may have been changed meanwhile.
  if pgrecall_internal._is_alone(locked, facts, model, retain.replace) then
    locked := pgrecall_internal._locked_bank(bank);
  end if;
  mode := coalesce(retain.replace, locked.replace);
  fact_types := array(
    select t.fact_type from pgrecall.fact_type t where t.bank_id = retain.bank order by 1
  );
  perform pgrecall_internal._check_choice(
    'link', link, '{now,deferred}',
    'With "deferred" call pgrecall.link_pending() when the load is done.');
  perform pgrecall_internal._check_choice(
    'replace', mode, '{none,key,relation,both}',
    'With "key" a fact ends the older facts of its fact_key.');
  locked := pgrecall_internal._pin_model(locked, facts, model);
  fact_rows := pgrecall_internal._read_facts(facts, locked, fact_types);
  perform pgrecall_internal._check_quarantine(locked, fact_rows);
  perform pgrecall_internal._lock_names(bank, fact_rows, mode);
  select s.weighted_length, s.document_count into average, counted
  from   pgrecall_internal.statistics s
  where  s.bank_id = retain.bank and s.kind = 'memory';
  new_ids := pgrecall_internal._store_memories(
    locked, fact_rows, pgrecall_internal._memory_ids(bank, fact_rows, mode), link = 'now',
    coalesce(average, 20));
  memory_ids := pgrecall_internal._memory_ids(bank, fact_rows, mode);
  perform from (
    select u.id
    from   unnest(memory_ids) as u(id)
    where  u.id not in (select unnest(new_ids))
    order  by u.id
  ) as k
  cross   join lateral (
    select from pgrecall.memory m
    where  m.bank_id = retain.bank and m.memory_id between k.id and k.id
    for    no key update
  ) as x;
  perform pgrecall_internal._update_known(bank, fact_rows, memory_ids);
  perform pgrecall_internal._store_embeddings(bank, fact_rows, memory_ids);
  perform pgrecall_internal._store_entities(bank, fact_rows);
  perform pgrecall_internal._store_mentions(bank, fact_rows, memory_ids);
  perform pgrecall_internal._store_relations(bank, fact_rows, memory_ids);
  perform pgrecall_internal._store_causal_links(bank, fact_rows, memory_ids);
  if link = 'now' then
    perform pgrecall_internal._link_memories(bank, new_ids);
  end if;
  perform pgrecall_internal._replace(locked, mode, fact_rows, memory_ids);
  -- The check whether a refresh is due counts new facts, up to a tenth of the bank or 500; so it is
  -- done about ten times before a refresh, not for each fact.
  if exists (
    select from unnest(new_ids) as id
    where  hashint8(id) % greatest(least(coalesce(counted, 0), 5000) / 100, 1) = 0
  ) then
    counted := pgrecall_internal._refresh_when_due(
      locked, 'memory', 500 + cardinality(new_ids));
    if counted > 0 then
      perform pgrecall_internal._refresh_usage(locked, coalesce(locked.embedding_model, ''));
    end if;
  end if;

  return query
  select u.n::integer - 1, u.id,
         u.id in (select unnest(new_ids))
           and row_number() over (partition by u.id order by u.n) = 1,
         coalesce((select true from pgrecall.embedding e
                   where  e.bank_id = retain.bank and e.memory_id = u.id and e.kind = 'text'
                   limit  1), false)
  from   unnest(memory_ids) with ordinality as u(id, n)
  order  by u.n;
end;
$$;
comment on function pgrecall.retain is
'Writes facts, an array of texts or of objects: text (required), fact_type (world), context, '
'fact_key, source_id, tags, metadata, occurred ("2026-03-05", a timestamp or [start, end]), '
'mentioned_at, confidence, proof_count (1), expires_at, entities, relations, links, questions, '
'embedding, embeddings ({"model": embedding}), tokens (token vectors in base64, or {"model": '
'tokens}). All or nothing. A fact that is already stored is not stored again, but a greater '
'proof_count and a new expires_at are kept. Returns one row per fact, in order; index counts from '
'0. model names the model of the embeddings. Embeddings of the bank''s model and of the one that '
'it is being re-embedded with are stored, others are not. link => ''deferred'' leaves temporal '
'links to link_pending(). replace says which older facts a fact ends, at the time it was said: '
'none, those of its fact_key (key), those that lead the same relation from the same entity '
'elsewhere (relation), or both; null: the setting of the bank. Errors: RC001, RC003 naming fact '
'and field, RC004 dimensions, RC005 model, RC006 embedding, RC008 fact type, RC015 its '
'source is in quarantine, or may not end a fact that is trusted more, 22023.';

create or replace function pgrecall.stored_embeddings(bank text, facts jsonb)
returns setof pgrecall.stored_embedding
language plpgsql stable parallel unsafe
set search_path from current
-- Cached plans must use an index and its order, also those made while a table was small.
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $$
declare
  searched   pgrecall.bank := pgrecall_internal._bank(bank);
  fact_types text[] := array(
    select t.fact_type from pgrecall.fact_type t
    where  t.bank_id = stored_embeddings.bank
    order  by 1
  );
begin
  facts := pgrecall_internal._facts(facts);
  if searched.embedding_dimensions is null then
    return;
  end if;
  return query
  select f.n::integer - 1, e.kind, e.ordinal, e.model, e.embedding, e.tokens
  from   jsonb_array_elements(facts) with ordinality as f(fact, n)
  cross  join lateral pgrecall_internal._read_fact(
           case jsonb_typeof(f.fact)
             -- Only the fields that identify a fact: retain() checks the rest.
             when 'object' then f.fact - array['entities', 'relations', 'links', 'tags',
                                               'metadata', 'questions', 'embedding', 'embeddings',
                                               'tokens']
             else f.fact
           end,
           f.n::integer - 1, jsonb_array_length(facts), searched, fact_types) as read
  cross  join lateral (
    select m.memory_id
    from   pgrecall.memory m
    where  m.bank_id = stored_embeddings.bank and m.valid_to is null
      and  m.content_hash between read.content_hash and read.content_hash
    order  by m.content_hash
    limit  1
  ) as known
  cross  join lateral (
    select x.kind, x.ordinal, x.model,
           -- As the model gave it, but for its length: retain() subtracts the mean again.
           coalesce(x.embedding + case x.model
             when searched.embedding_model then searched.embedding_mean
             else (searched.calibrations -> x.model ->> 'mean')::halfvec
           end, x.embedding) as embedding, x.tokens
    from   pgrecall.embedding x
    where  x.bank_id = stored_embeddings.bank and x.memory_id = known.memory_id
      and  (x.kind = 'text' or x.text = f.fact #>> array['questions', x.ordinal::text, 'text'])
    offset 0  -- a lookup for each fact, as in _memory_ids()
  ) as e
  order  by f.n, e.kind, e.ordinal, e.model;
end;
$$;
comment on function pgrecall.stored_embeddings is
'The stored embeddings of facts and of the questions they answer. facts is as for retain(), to '
'which they can be passed instead of being computed again. All models, in order of index, kind, '
'ordinal and model; none for new facts. Reads only. Errors: RC001, RC003 naming fact and field, '
'RC008 fact type.';

create or replace function pgrecall.forget(bank text, memory_ids bigint[])
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
-- Cached plans of the cascades must use an index, also those made while a table was small.
set enable_seqscan = off
as $$
declare
  locked  pgrecall.bank;
  named   bigint[];
  change  record;
  removed bigint;
begin
  locked := pgrecall_internal._locked_bank(bank);
  change := pgrecall_internal._uncount_memories(locked, memory_ids);
  named := array(
    select distinct e.entity_id from pgrecall.mention e
    where  e.bank_id = forget.bank and e.memory_id = any (forget.memory_ids)
  );
  update pgrecall.memory m
  set    superseded_by = null
  where  m.bank_id = forget.bank and m.superseded_by = any (forget.memory_ids);
  with gone as (
    delete from pgrecall.memory m
    where  m.bank_id = forget.bank and m.memory_id = any (forget.memory_ids)
    returning 1
  )
  select count(*) into removed from gone;
  -- An entity without mentions is deleted. Looked up one by one: joined, a table analysed while it
  -- was empty is read whole for each.
  delete from pgrecall.entity e
  where  e.bank_id = forget.bank
    and  e.entity_id = any (array(
           select n from unnest(named) as n
           where  not exists (select from pgrecall.mention x
                              where x.bank_id = forget.bank and x.entity_id = n offset 0)));
  perform pgrecall_internal._recount_documents(
    locked, 'memory', change.documents, change.total_length);
  return removed;
end;
$$;
comment on function pgrecall.forget is
'Erases memories with their embeddings, mentions, relations and links, and the entities that no '
'other memory mentions; returns how many memories were erased. What consolidate() merged into them '
'stays ended, unlike with forget_where(): who names a memory means what it says. The BM25 counts '
'change at once. Errors: RC001.';

-- retain/listing.sql
-- Reading memories without a question: by id, as a list, and as the history of a fact.
--
-- stored_memories() returns memories by id, list_memories() pages of those that meet conditions,
-- memory_history() the versions of a fact. All return the same row.
-- A page is found by index: by the primary key, backwards; by the mentions of an entity; by the
-- time of occurrence. Its key is the id, so that a page costs the same wherever it is. The filter
-- is the one of a recall, compiled by values/filter.sql: no text of it enters the statement.
create or replace function pgrecall.stored_memories(bank text, memory_ids bigint[])
returns setof pgrecall.stored_memory
language plpgsql stable parallel safe
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  perform pgrecall_internal._bank(bank);
  return query
  select m.memory_id, m.fact_type, m.text, m.context, m.fact_key, m.source_id, m.tags, m.metadata,
         m.occurred, m.mentioned_at, m.confidence, m.proof_count, m.valid_from, m.valid_to,
         m.superseded_by,
         array(select e.name
               from   pgrecall.mention x
               cross  join lateral (
                 select n.name from pgrecall.entity n
                 where  n.bank_id = stored_memories.bank and n.entity_id = x.entity_id
                 limit  1
               ) as e
               where  x.bank_id = stored_memories.bank and x.memory_id = m.memory_id
               order  by e.name),
         m.created_at,
         case when m.valid_to is not null then m.corrections -> -1 ->> 'kind' end,
         null::text[], null::text[], m.written_by
  from   unnest(stored_memories.memory_ids) with ordinality as u(memory_id, n)
  cross  join lateral (
    select x.*
    from   pgrecall.memory x
    where  x.bank_id = stored_memories.bank and x.memory_id = u.memory_id
    limit  1
  ) as m
  order  by u.n;
end;
$$;
comment on function pgrecall.stored_memories is
'Memories by id, in the given order, also those that no longer hold. Ids that the bank does not '
'have are left out. Errors: RC001.';

create or replace function pgrecall_internal._listed_ids(
  bank text, visible text, condition jsonb, fact_types text[], during tstzrange,
  entity_ids bigint[], as_of timestamptz, before_id bigint, top_k integer,
  required integer[] default null, begun integer[] default null)
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  rest   text := format('m.memory_id < $5 and %s order by m.memory_id desc limit $4', visible);
  branch text;
  ids    bigint[];
begin
  if entity_ids is not null then
    branch := '
      select y.memory_id
      from   unnest($6) as e(entity_id)
      cross  join lateral (
        select x.memory_id
        from   pgrecall.mention x
        where  x.bank_id = $1 and x.entity_id = e.entity_id and x.fact_type = {fact_type}
          and  x.memory_id < $5
          and  (select true from pgrecall.memory m
                where m.bank_id = $1 and m.memory_id = x.memory_id and ' || visible || ')
        order  by x.memory_id desc
        limit  $4) as y';
  elsif during is not null then
    branch := '
      (select m.memory_id
       from   pgrecall.memory m
       where  m.bank_id = $1 and m.fact_type = {fact_type} and m.occurred is not null
         and  lower(m.occurred) <= $8 and upper(m.occurred) >= $7 and ' || rest || ')
      union all
      (select m.memory_id
       from   pgrecall.memory m
       where  m.bank_id = $1 and m.fact_type = {fact_type} and m.occurred is null
         and  m.mentioned_at between $7 and $8 and ' || rest || ')';
  elsif fact_types is not null then
    branch := '
      select m.memory_id
      from   pgrecall.memory m
      where  m.bank_id = $1 and m.fact_type = any ($9) and ' || rest;
  else
    branch := 'select m.memory_id from pgrecall.memory m where m.bank_id = $1 and ' || rest;
  end if;
  if entity_ids is not null or during is not null then
    branch := pgrecall_internal._union_all(branch, fact_types);
  end if;
  -- The branches hold names and operators of ours, and literals of fact types: see filter.sql.
  execute format('select array(select distinct f.memory_id from (%s) as f'
                 ' order by f.memory_id desc limit $4)', branch)
  into    ids
  using   bank, as_of, condition, top_k, coalesce(before_id, 9223372036854775807), entity_ids,
          coalesce(lower(during), '-infinity'), coalesce(upper(during), 'infinity'), fact_types,
          required, begun;
  return ids;
end;
$$;
comment on function pgrecall_internal._listed_ids is
'Ids of the latest memories before before_id that meet condition, whose SQL is visible, latest '
'first: one index scan per fact type for a window and for an entity, else one by primary key. '
'required and begun are the dimensions of a condition on words, see find_memories().';

create or replace function pgrecall_internal._entities_named(bank text, name text)
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return case when name is not null then array(
    select a.entity_id
    from   pgrecall.entity_alias a
    where  a.bank_id = _entities_named.bank
      and  a.alias = pgrecall.normalised_name(_entities_named.name)
    limit  100
  ) end;
end;
$$;
comment on function pgrecall_internal._entities_named is
'The entities of a bank with this name, up to 100; null where name is null.';

create or replace function pgrecall.list_memories(
  bank       text,
  filter     text default null,
  fact_types text[] default null,
  tags       text[] default null,
  during     pgrecall_internal.period default null,
  entity     text default null,
  as_of      timestamptz default now(),
  before_id  bigint default null,
  top_k      integer default 50)
returns setof pgrecall.stored_memory
language plpgsql stable parallel unsafe rows 50
set search_path from current
as $$
declare
  span       tstzrange;
  condition  jsonb;
  visible    text;
  entity_ids bigint[];
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 100000);
  perform pgrecall_internal._check_elements('tags', tags, 'no condition');
  span := pgrecall_internal._range_of_period(during);
  condition := pgrecall_internal._whole_filter(
    pgrecall_internal._parsed_filter(filter), tags, span,
    '{"time_mode": "filter", "time_basis": "mentioned"}');
  visible := case when as_of is null then pgrecall_internal._filter_sql(condition)
                  else pgrecall_internal._visible_sql(condition) end;
  entity_ids := pgrecall_internal._entities_named(bank, entity);
  if fact_types is not null or span is not null or entity is not null then
    fact_types := pgrecall_internal._fact_types(bank, fact_types);
  end if;
  return query
  select s.*
  from   pgrecall.stored_memories(bank, pgrecall_internal._listed_ids(
           bank, visible, condition, fact_types, span, entity_ids, as_of, before_id, top_k)) as s;
end;
$$;
comment on function pgrecall.list_memories is
'Memories that meet all conditions given, latest stored first: a filter as in a recall, fact '
'types, any of these tags, a window in which they occurred or, without a time of occurrence, were '
'said, the name of an entity that they mention. as_of: those that hold at that time; null: those '
'that have ended as well. For the next page pass the last memory_id as before_id. At most top_k '
'rows, 1 to 100,000. Errors: RC001, RC008 fact type, RC011 filter, 22023.';

create or replace function pgrecall.memory_history(
  bank text, memory_id bigint, top_k integer default 100)
returns setof pgrecall.stored_memory
language plpgsql stable parallel unsafe rows 5
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  ids   bigint[] := array[memory_id];
  added bigint[] := ids;
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_memory(bank, memory_id);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 1000);
  while added <> '{}' and cardinality(ids) < top_k loop
    added := array(
      select n.id
      from (
        select m.superseded_by as id
        from   pgrecall.memory m
        where  m.bank_id = memory_history.bank and m.memory_id = any (added)
          and  m.superseded_by is not null
        union
        select m.memory_id as id
        from   pgrecall.memory m
        where  m.bank_id = memory_history.bank and m.superseded_by = any (added)
      ) as n
      where  n.id <> all (ids)
      order  by n.id desc
      limit  top_k - cardinality(ids)
    );
    ids := ids || added;
  end loop;
  return query
  select s.*
  from   pgrecall.stored_memories(bank, ids) as s
  order  by s.valid_from, s.memory_id;
end;
$$;
comment on function pgrecall.memory_history is
'The versions of a fact, oldest first: the memory, those that it replaced and those that replaced '
'it, by any correction, and so on. At most top_k, 1 to 1,000, the nearest to the memory. ended_by '
'says what ended each. Errors: RC001, RC010 unknown memory, 22023.';

create or replace function pgrecall_internal._merged_into(bank text, memory_ids bigint[])
returns table (memory_id bigint, successor_id bigint)
language plpgsql stable parallel safe rows 10
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  with recursive chain as (
    select m.memory_id, m.superseded_by as next_id, 1 as step
    from   pgrecall.memory m
    where  m.bank_id = _merged_into.bank and m.superseded_by = any (memory_ids)
      and  m.memory_id <> all (memory_ids)
      and  m.corrections -> -1 ->> 'kind' = 'consolidate'
    union all
    select c.memory_id, k.superseded_by, c.step + 1
    from   chain c
    cross  join lateral (
      select x.superseded_by
      from   pgrecall.memory x
      where  x.bank_id = _merged_into.bank and x.memory_id = c.next_id
        and  x.superseded_by is not null
      limit  1
    ) as k
    -- Consolidated memories may point to one another.
    where  c.next_id = any (memory_ids) and c.step < 1000
  ),
  last as (
    select distinct on (c.memory_id) c.memory_id, c.next_id
    from   chain c
    order  by c.memory_id, c.step desc
  )
  select l.memory_id, case when l.next_id <> all (memory_ids) then l.next_id end
  from   last l
  where  l.next_id <> l.memory_id
    and  (l.next_id <> all (memory_ids)
          or (select k.valid_to is null or k.valid_to > now()
              from   pgrecall.memory k
              where  k.bank_id = _merged_into.bank and k.memory_id = l.next_id));
end;
$$;
comment on function pgrecall_internal._merged_into is
'The other memories that consolidate() merged into some of these. successor_id: the first that '
'followed these and is none of them; null: the last of these holds.';

create or replace function pgrecall_internal._unmerge(
  bank text, memory_ids bigint[], successor_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
begin
  update pgrecall.memory m
  set    superseded_by = u.successor_id,
         corrections   = jsonb_set(m.corrections, '{-1,replaced_by}', to_jsonb(u.successor_id))
  from   unnest(_unmerge.memory_ids, successor_ids) as u(memory_id, successor_id)
  where  m.bank_id = _unmerge.bank and m.memory_id = u.memory_id and u.successor_id is not null;
  update pgrecall.memory m
  set    valid_to      = null,
         superseded_by = null,
         proof_count   = (m.corrections -> -1 ->> 'proof_count')::integer,
         corrections   = nullif(m.corrections - -1, '[]')
  where  m.bank_id = _unmerge.bank
    and  m.memory_id = any (array(
           -- Only one of those that say the same can hold.
           select distinct on (x.content_hash) x.memory_id
           from   unnest(_unmerge.memory_ids, successor_ids) as u(memory_id, successor_id)
           cross  join lateral (
             select y.memory_id, y.content_hash
             from   pgrecall.memory y
             where  y.bank_id = _unmerge.bank and y.memory_id = u.memory_id
             limit  1
           ) as x
           where  u.successor_id is null
             and  not exists (select from pgrecall.memory o
                              where  o.bank_id = _unmerge.bank
                                and  o.content_hash = x.content_hash and o.valid_to is null)
           order  by x.content_hash, x.memory_id desc));
end;
$$;
comment on function pgrecall_internal._unmerge is
'Lets memories that consolidate() merged into others hold again, or follow another successor.';

create or replace function pgrecall.forget_where(
  bank      text,
  filter    text default null,
  fact_key  text default null,
  source_id text default null,
  dry_run   boolean default false)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  condition  jsonb;
  ids        bigint[];
  merged     bigint[];
  successors bigint[];
  removed    bigint;
begin
  perform pgrecall_internal._bank(bank);
  condition := pgrecall_internal._parsed_filter(filter);
  if num_nonnulls(condition, fact_key, source_id) = 0 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'no condition says what to forget',
      hint    = 'Pass filter =>, fact_key => or source_id =>; pgrecall.drop_bank() erases a bank.';
  end if;
  if dry_run is not true then
    perform pgrecall_internal._locked_bank(bank);
  end if;
  -- Text of the filter does not enter the statement: see values/filter.sql.
  execute format(
    'select array(select m.memory_id from pgrecall.memory m where m.bank_id = $1 and %s%s%s)',
    pgrecall_internal._filter_sql(condition),
    case when fact_key is not null then
      ' and m.fact_key is not null and lower(pgrecall_internal._normalised(m.fact_key))'
      ' = lower(pgrecall_internal._normalised($4))' end,
    case when source_id is not null then ' and m.source_id = $5' end)
  into    ids
  using   bank, null::timestamptz, condition, fact_key, source_id;
  if dry_run then
    return cardinality(ids);
  end if;
  select array_agg(i.memory_id), array_agg(i.successor_id) into merged, successors
  from   pgrecall_internal._merged_into(bank, ids) as i;
  removed := pgrecall.forget(bank, ids);
  if merged is not null then
    perform pgrecall_internal._unmerge(bank, merged, successors);
  end if;
  return removed;
end;
$$;
comment on function pgrecall.forget_where is
'Erases the memories that meet all conditions given, as forget() does, those that no longer hold '
'as well: a filter as in a recall, a fact_key compared as by the key arm, a source_id. What does '
'not meet them and consolidate() merged into one of them, such as the same sentence of another '
'document, holds again, where that one, or what took its place and is erased with it, held; where '
'what took its place stays, it follows that. Returns how many; dry_run only counts them. Errors: '
'RC001, RC011 filter, 22023 no condition.';

-- retain/search.sql
-- Finding memories while their words are being typed.
--
-- find_memories() is list_memories() with words: whole ones are stemmed as in a recall, the last
-- one may be only begun. Nothing is ranked: the latest come first, and the key of a page is an id.
-- The vocabulary of the bank tells how many memories have the words. Rare ones are looked up in the
-- lexical index; common ones are soon met by reading backwards, or among the memories of an entity
-- or a window.
create or replace function pgrecall_internal._typed_words(
  bank pgrecall.bank, words text,
  out required integer[], out begun integer[], out recheck text, out share double precision,
  out documents bigint)
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  config  regconfig := bank.text_search_config::regconfig;
  typed   text := pgrecall_internal._normalised(words);
  last    text := substring(typed from '\S+$');
  -- No lexeme begins with a sign: @len begins lena.
  part    text := case when length(last) <= 200 then substring(last from format(
    '[[:alnum:]%1$s][[:alnum:]%1$s_./@:+#-]*$', pgrecall_internal._marks(last))) end;
  whole   integer[];
  longer  integer[];
  written text;
  terms   pgrecall_internal.terms;
  known   bigint;
  is_over boolean;
  most    constant integer := 200;
begin
  -- What follows an apostrophe or a quote may be begun; the s of Ana's is no word.
  if exists (select from pgrecall.lexemes(config, part)) then
    last := part;
  elsif part is null and length(last) <= 200
        and (last !~ '[[:alnum:]]' and typed ~ '[[:alnum:]]'
             or exists (select from pgrecall.lexemes(config, last))) then
    last := null;  -- Punctuation ends a word as a space does.
  end if;
  -- Chinese, Japanese and Korean have no words that could be begun.
  if last ~ ('[' || pgrecall_internal._cjk() || ']') then
    last := null;
  end if;
  terms := pgrecall_internal._terms(bank.bank_id, 'memory', array(
    select l.lexeme
    from   pgrecall.lexemes(config, left(typed, length(typed) - coalesce(length(last), 0))) as l));
  required := coalesce(terms.dimensions, '{}');
  documents := coalesce(terms.documents, 0);
  -- As if words stood together by chance.
  share := case when required = '{}' then 1
                when 0 = any (terms.counts) or documents = 0 then 0
                else (select exp(sum(ln(c::double precision / terms.documents)))
                      from   unnest(terms.counts) as c)
           end;
  if last is null then
    return;
  end if;
  -- Of a long word the beginning: the time of a pattern grows by more than its length.
  written := '\m' || replace(replace(
    nullif(pgrecall.normalised_name(left(last, 200)), ''), '+', '\+'), ' ', '[^[:alnum:]]+');
  -- A word that is typed further than its stem begins like that, but for a letter: movi, move.
  select array_agg(x.dimension) filter (where x.is_longer),
         array_agg(x.dimension) filter (where not x.is_longer), coalesce(sum(x.documents), 0),
         count(*) > most
  into   begun, longer, known, is_over
  from (
    select v.dimension, v.documents, starts_with(v.lexeme, lower(last)) as is_longer
    from (
      select l.dimension, l.lexeme, l.document_count
      from   pgrecall_internal.lexeme l
      where  l.bank_id = bank.bank_id and l.kind = 'memory'
      union  all
      -- Facts that are not counted yet may hold other words.
      select pgrecall_internal._dimension(l.lexeme), l.lexeme, 1
      from   pgrecall.memory m
      cross  join lateral (select concat_ws(' ', m.text, m.context, m.fact_key)) as d(content)
      cross  join lateral pgrecall.lexemes(config, d.content) as l
      where  m.bank_id = bank.bank_id and m.memory_id > coalesce(terms.watermark, 0)
        and  pgrecall_internal._normalised(d.content) ~* written
    ) as v(dimension, lexeme, documents)
    where  starts_with(v.lexeme, lower(last))
       or  length(v.lexeme) > 2 and starts_with(lower(last), left(v.lexeme, -1))
    order  by v.documents desc, v.lexeme
    limit  most + 1
  ) as x;
  -- As typed, and stemmed where it is one word: facts that are not counted yet have it too.
  whole := array(select pgrecall_internal._dimension(l.lexeme)
                 from   pgrecall.lexemes(config, last) as l);
  begun := begun || pgrecall_internal._dimension(lower(last))
           || case when cardinality(whole) = 1 then whole end;
  -- Nothing but the text tells whether such a word goes on so, or begins one of too many, and a
  -- stop word has no lexeme.
  if written <> '' and (longer is not null or whole = '{}' or is_over) then
    recheck := format(
      'pgrecall_internal._normalised(concat_ws('' '', m.text, m.context, m.fact_key)) ~* %L',
      written);
    if whole = '{}' then
      begun := null;
    else
      recheck := format(
        '(%s or pgrecall_internal._lexical_keys(m.bank_id, m.fact_type, m.lexical_weights)
                  && pgrecall_internal._scoped_keys($1, m.fact_type, %L))', recheck, begun);
      begun := case when not is_over then begun || longer end;
    end if;
  end if;
  share := case when begun is null then share
                else share * least(1, known / greatest(documents, 1)::double precision) end;
end;
$$;
comment on function pgrecall_internal._typed_words is
'Words that are being typed, as dimensions: those that a memory must have, and of those that begin '
'like the last one any; null where the last one is complete. recheck: a condition on memory m that '
'tells whether it has the last one; null: these dimensions tell. share: what part of so many '
'documents has them, by estimate.';

create or replace function pgrecall_internal._has_words_sql(is_indexed boolean)
returns text
language sql immutable parallel safe
return replace(case when is_indexed then
  '{keys} @> pgrecall_internal._scoped_keys($1, {fact_type}, $10)
   and ($11 is null or {keys} && pgrecall_internal._scoped_keys($1, {fact_type}, $11))'
  else
  -- Where the expression is not compared itself its index is not used; it is computed once.
  '(select ($10 = ''{}'' or k.keys @> pgrecall_internal._scoped_keys($1, m.fact_type, $10))
       and ($11 is null or k.keys && (
              select array_agg(s)
              from   unnest($9) as t, unnest(pgrecall_internal._scoped_keys($1, t, $11)) as s))
    from (select {keys} offset 0) as k(keys))'
  end, '{keys}', 'pgrecall_internal._lexical_keys(m.bank_id, m.fact_type, m.lexical_weights)');
comment on function pgrecall_internal._has_words_sql is
'The condition that memory m, of a type in $9, has all dimensions of $10 and one of $11: by the '
'lexical index, for a constant fact type, or by anything but that.';

create or replace function pgrecall_internal._worded_ids(
  bank text, visible text, condition jsonb, fact_types text[], entity_ids bigint[],
  as_of timestamptz, before_id bigint, top_k integer, required integer[], begun integer[],
  is_common boolean)
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
-- A page of common words is read in the order of the primary key, not sorted.
set enable_sort = off
set enable_seqscan = off
as $$
declare
  branch text;
  ids    bigint[];
begin
  if is_common then
    -- Without the lexical index, so that the primary key is read backwards until a page is full.
    branch := '
      select m.memory_id
      from (
        select x.*
        from   pgrecall.memory x
        where  x.bank_id = $1 and x.memory_id < $5
        order  by x.memory_id desc
        offset 0
      ) as m
      where  m.fact_type = any ($9)
        and  ' || visible || ' and ' || pgrecall_internal._has_words_sql(false) || ' limit $4';
  else
    -- As in _lexical_search(): another collation rules out every index but the lexical one.
    branch := pgrecall_internal._union_all('
      select m.memory_id
      from   pgrecall.memory m
      where  m.bank_id collate "C" = $1 and m.fact_type is not distinct from {fact_type}
        and  m.memory_id < $5
        and  ($6 is null or exists (
               select from pgrecall.mention x
               where  x.bank_id = $1 and x.memory_id = m.memory_id and x.entity_id = any ($6)))
        and  ' || visible || ' and ' || pgrecall_internal._has_words_sql(true) || '
      order  by m.memory_id desc limit $4',
      fact_types);
  end if;
  -- The branches hold names and operators of ours, and literals of fact types: see filter.sql.
  execute format('select array(select f.memory_id from (%s) as f order by 1 desc limit $4)', branch)
  into    ids
  using   bank, as_of, condition, top_k, coalesce(before_id, 9223372036854775807), entity_ids,
          null, null, fact_types, required, begun;
  return ids;
end;
$$;
comment on function pgrecall_internal._worded_ids is
'Ids of the latest memories before before_id that have words and meet condition, whose SQL is '
'visible, latest first: by the primary key where the words are common, else by the lexical index.';

create or replace function pgrecall.find_memories(
  bank       text,
  words      text,
  filter     text default null,
  fact_types text[] default null,
  during     pgrecall_internal.period default null,
  as_of      timestamptz default now(),
  before_id  bigint default null,
  top_k      integer default 50,
  entity     text default null)
returns setof pgrecall.stored_memory
language plpgsql stable parallel unsafe rows 50
set search_path from current
as $$
declare
  found_bank pgrecall.bank;
  span       tstzrange;
  condition  jsonb;
  visible    text;
  typed      record;
  is_common  boolean;
  entity_ids bigint[];
  ids        bigint[];
begin
  found_bank := pgrecall_internal._bank(bank);
  span := pgrecall_internal._range_of_period(during);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 100000);
  typed := pgrecall_internal._typed_words(found_bank, coalesce(words, ''));
  condition := pgrecall_internal._whole_filter(
    pgrecall_internal._parsed_filter(filter), null, span,
    '{"time_mode": "filter", "time_basis": "mentioned"}');
  visible := case when as_of is null then pgrecall_internal._filter_sql(condition)
                  else pgrecall_internal._visible_sql(condition) end
             || coalesce(' and ' || typed.recheck, '');
  fact_types := pgrecall_internal._fact_types(bank, fact_types);
  entity_ids := pgrecall_internal._entities_named(bank, entity);
  is_common := 20 * typed.share > 1
    or (select sum(c.mention_count) < typed.share * typed.documents
        from   pgrecall_internal.entity_count c
        where  c.bank_id = find_memories.bank and c.entity_id = any (entity_ids));
  if is_common and (entity_ids is not null or span is not null) then
    visible := visible || ' and ' || pgrecall_internal._has_words_sql(false);
    ids := pgrecall_internal._listed_ids(
      bank, visible, condition, fact_types, span, entity_ids, as_of, before_id, top_k,
      typed.required, typed.begun);
  else
    ids := pgrecall_internal._worded_ids(
      bank, visible, condition, fact_types, entity_ids, as_of, before_id, top_k,
      typed.required, typed.begun, is_common);
  end if;
  return query
  select s.* from pgrecall.stored_memories(bank, ids) as s;
end;
$$;
comment on function pgrecall.find_memories is
'Memories that have all of these words in their text, context or key, latest stored first, for a '
'search while somebody types: words are compared as in a recall, and the last one may be only '
'begun, unless a space follows it. A stop word counts while it is the last. Without words: all. '
'Other arguments, pages and errors are those of list_memories().';

-- retain/overview.sql
-- A bank at a glance: how many memories by time, which entities, and all that belongs to a memory.
--
-- They serve browsers of memories, such as the console or a BI tool, beside the lists.
-- memory_counts() reads the bank once; the others read by index and are bounded.
create or replace function pgrecall.memory_counts(
  bank text, unit text default 'month', basis text default 'stored', filter text default null)
returns setof pgrecall.memory_count
language plpgsql stable parallel unsafe rows 100
set search_path from current
as $$
declare
  condition jsonb := pgrecall_internal._parsed_filter(filter);
  moment    text;
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_choice('unit', unit, '{hour,day,week,month,quarter,year}');
  perform pgrecall_internal._check_choice('basis', basis, '{stored,said,occurred}');
  moment := case basis
    when 'stored' then 'm.created_at'
    when 'said' then 'm.mentioned_at'
    -- What began before all time is counted by its end.
    else $sql$ coalesce(nullif(lower(m.occurred), '-infinity'), upper(m.occurred)) $sql$
  end;
  -- Text of the filter does not enter the statement: see values/filter.sql.
  return query execute format($sql$
    select date_trunc($4, t.moment, 'UTC'), m.fact_type, count(*),
           count(*) filter (where m.valid_to is null or m.valid_to > $2)
    from   pgrecall.memory m
    cross  join lateral (select %s) as t(moment)
    where  m.bank_id = $1 and isfinite(t.moment) and %s
    group  by 1, 2
    order  by 1, 2
  $sql$, moment, pgrecall_internal._filter_sql(condition))
  using bank, now(), condition, unit;
end;
$$;
comment on function pgrecall.memory_counts is
'How many memories of each type there are by hour, day, week, month, quarter or year (unit, in '
'UTC), in order of time, and how many of them hold now. basis says which time: when they were '
'stored, were said, or occurred; those without it are not counted. filter: as in a recall. Errors: '
'RC001, RC011 filter, 22023.';

create or replace function pgrecall.list_entities(
  bank       text,
  name       text default null,
  kind       text default null,
  entity_ids bigint[] default null,
  before_id  bigint default null,
  top_k      integer default 50)
returns setof pgrecall.listed_entity
language plpgsql stable parallel unsafe rows 50
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  wanted text := pgrecall.normalised_name(name);
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 100000);
  if before_id is not null then
    perform pgrecall_internal._check_entity(bank, before_id);
  end if;
  return query
  with counted as (
    select e.entity_id, e.name, e.kind, e.created_at,
           coalesce((select c.mention_count from pgrecall_internal.entity_count c
                     where  c.bank_id = list_entities.bank and c.entity_id = e.entity_id), 0)
             as mentions
    from   pgrecall.entity e
    where  e.bank_id = list_entities.bank
      and  (list_entities.kind is null or e.kind = list_entities.kind)
      and  (list_entities.entity_ids is null or e.entity_id = any (list_entities.entity_ids))
      and  (coalesce(wanted, '') = '' or exists (
              select from pgrecall.entity_alias a
              where  a.bank_id = list_entities.bank and a.entity_id = e.entity_id
                and  strpos(a.alias, wanted) > 0))
  )
  select p.entity_id, p.name, p.kind,
         array(select a.alias
               from   pgrecall.entity_alias a
               where  a.bank_id = list_entities.bank and a.entity_id = p.entity_id
               order  by a.alias),
         greatest(p.mentions, (
           select x.count
           from   pgrecall_internal._mentions(list_entities.bank, p.entity_id) as x)),
         p.created_at
  from (
    select c.*
    from   counted c
    where  list_entities.before_id is null
       or  (c.mentions, c.entity_id) < (
             select coalesce(max(b.mention_count), 0), list_entities.before_id
             from   pgrecall_internal.entity_count b
             where  b.bank_id = list_entities.bank and b.entity_id = list_entities.before_id)
    order  by c.mentions desc, c.entity_id desc
    limit  list_entities.top_k
  ) as p
  order  by p.mentions desc, p.entity_id desc;
end;
$$;
comment on function pgrecall.list_entities is
'Entities, those first that most memories mention; equal ones latest first. name: a part of any of '
'their names, kind: their kind, entity_ids: only these. For the next page pass the last entity_id '
'as before_id. The order goes by what is counted, see bank_statistics(). Errors: RC001, RC013 '
'unknown before_id, 22023.';

create or replace function pgrecall.memory_details(bank text, memory_id bigint)
returns setof pgrecall.memory_detail
language plpgsql stable parallel unsafe rows 1
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_memory(bank, memory_id);
  return query
  select
    (select coalesce(jsonb_agg(jsonb_build_object(
              'entity_id', e.entity_id, 'name', e.name, 'kind', e.kind,
              'confidence', x.confidence) order by e.name, e.entity_id), '[]')
     from   pgrecall.mention x
     join   pgrecall.entity e on e.bank_id = memory_details.bank and e.entity_id = x.entity_id
     where  x.bank_id = memory_details.bank and x.memory_id = memory_details.memory_id),
    (select coalesce(jsonb_agg(jsonb_build_object(
              'from_id', r.from_id, 'from', f.name, 'kind', r.kind, 'to_id', r.to_id,
              'to', t.name, 'confidence', r.confidence, 'valid_from', r.valid_from,
              'valid_to', r.valid_to) order by r.relation_id), '[]')
     from (
       -- Found before they are sorted: the primary key has their order, but leads through the bank.
       select x.*
       from   pgrecall.relation x
       where  x.bank_id = memory_details.bank and x.memory_id = memory_details.memory_id
       offset 0
     ) as r
     join   pgrecall.entity f on f.bank_id = memory_details.bank and f.entity_id = r.from_id
     join   pgrecall.entity t on t.bank_id = memory_details.bank and t.entity_id = r.to_id),
    (select coalesce(jsonb_agg(jsonb_build_object(
              'model', x.model, 'kind', x.kind, 'dimensions', vector_dims(x.embedding),
              'text', x.text) order by x.model, x.kind desc, x.ordinal), '[]')
     from   pgrecall.embedding x
     where  x.bank_id = memory_details.bank and x.memory_id = memory_details.memory_id),
    (select coalesce(m.corrections, '[]')
     from   pgrecall.memory m
     where  m.bank_id = memory_details.bank and m.memory_id = memory_details.memory_id),
    (select m.is_linked
     from   pgrecall.memory m
     where  m.bank_id = memory_details.bank and m.memory_id = memory_details.memory_id);
end;
$$;
comment on function pgrecall.memory_details is
'All that belongs to a memory, in one row: the entities that it mentions, the relations that it '
'states, the embeddings that it has, its corrections. neighbours() has its links. Errors: RC001, '
'RC010 unknown memory.';

-- retain/pending.sql
-- Missing embeddings: of facts that were written in SQL, or without an embedder.
--
-- A fact is stored without an embedding where the caller has none; all arms but the semantic one
-- find it. embed_pending() lists such texts, and embed_store() stores their embeddings. Both work
-- in batches on any number of memories and keep no state: a text with an embedding is not listed,
-- so that they continue after an interruption. Questions are always stored with their embeddings. A
-- change of model is in retain/reembed.sql.
create or replace function pgrecall.embed_pending(
  bank text, from_id bigint default 0, batch_size integer default 1000)
returns setof pgrecall.pending_text
language plpgsql stable parallel unsafe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  searched pgrecall.bank;
begin
  searched := pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  -- In primary key order, with one lookup each.
  return query
  (select m.memory_id, 'text'::text, 0::smallint, m.text, m.context
   from   pgrecall.memory m
   left   join lateral (
     select true as is_there
     from   pgrecall.embedding e
     where  e.bank_id = embed_pending.bank and e.memory_id = m.memory_id
       and  e.model = coalesce(searched.embedding_model, '') and e.kind = 'text'
     limit  1
   ) as n on true
   where  m.bank_id = embed_pending.bank and m.memory_id >= embed_pending.from_id
     and  n.is_there is null
   order  by m.memory_id
   limit  batch_size)
  union all
  select r.memory_id, r.kind, r.ordinal, r.text, r.context
  from   pgrecall.relations_pending(embed_pending.bank) as r
  where  r.memory_id >= embed_pending.from_id
  order  by 1, 2 desc, 4
  limit  batch_size;
end;
$$;
comment on function pgrecall.embed_pending is
'Texts of memories without an embedding of the bank''s model, and the words of relations, as '
'relations_pending() lists them, in order of memory_id, starting at from_id, at most batch_size '
'rows. Pass embeddings of them to embed_store(). It reads the bank from from_id on; a call from 0 '
'also finds what was stored meanwhile. Errors: RC001, 22023.';

create or replace function pgrecall.tokens_pending(
  bank text, from_id bigint default 0, batch_size integer default 1000)
returns setof pgrecall.pending_text
language plpgsql stable parallel safe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  searched pgrecall.bank := pgrecall_internal._bank(bank);
begin
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  return query
  select e.memory_id, 'text'::text, 0::smallint, m.text, m.context
  from   pgrecall.embedding e
  cross  join lateral (
    select x.text, x.context
    from   pgrecall.memory x
    where  x.bank_id = tokens_pending.bank and x.memory_id = e.memory_id
    limit  1
  ) as m
  where  e.bank_id = tokens_pending.bank and e.memory_id >= tokens_pending.from_id
    and  e.model = coalesce(searched.embedding_model, '') and e.kind = 'text'
    and  e.tokens is null
  order  by e.memory_id
  limit  batch_size;
end;
$$;
comment on function pgrecall.tokens_pending is
'Texts of memories whose embedding came without token vectors, as embed_pending() lists those '
'without an embedding. embed_store() takes their "tokens" beside "embedding". Errors: RC001, '
'22023.';

create or replace function pgrecall.embed_store(
  bank text, embeddings jsonb, model text default null)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  locked pgrecall.bank;
  kept   bigint;
  worded bigint := 0;
begin
  locked := pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_embedded(embeddings, 'embed_pending()');
  locked := pgrecall_internal._pin_model(locked, embeddings, model);
  -- Memories forgotten meanwhile are skipped, and an embedding stored meanwhile stays.
  with stored as (
    insert into pgrecall.embedding as s
           (bank_id, memory_id, model, kind, ordinal, fact_type, embedding, tokens)
    select distinct on (i.memory_id)
           embed_store.bank, i.memory_id, coalesce(locked.embedding_model, ''), 'text', 0,
           m.fact_type, i.embedding, i.tokens
    from   pgrecall_internal._read_embeddings(locked, embeddings) as i
    cross  join lateral (
      select x.fact_type
      from   pgrecall.memory x
      where  x.bank_id = embed_store.bank and x.memory_id = i.memory_id
      limit  1
    ) as m
    where  i.kind <> 'relation'
    order  by i.memory_id, i.n desc
    on conflict on constraint embedding_pkey do update
    set tokens = excluded.tokens
    where s.tokens is null and excluded.tokens is not null
    returning 1
  )
  select count(*) into kept from stored;
  if embeddings @> '[{"kind": "relation"}]' then
    select pgrecall_internal._store_relation_words(
             locked, array_agg(i.memory_id), array_agg(i.text), array_agg(i.embedding))
    into   worded
    from   pgrecall_internal._read_embeddings(locked, embeddings) as i
    where  i.kind = 'relation' and i.text <> '';
  end if;
  return kept + worded;
end;
$$;
comment on function pgrecall.embed_store is
'Stores embeddings of texts that embed_pending() listed: an array of {"memory_id", "embedding", '
'"tokens"}, of relations with "kind" and "text", too; model names what made them and is pinned by '
'the first embeddings of a bank. Returns how many it stored; missing memories are skipped, and '
'those with an embedding unless they lack tokens that are given; then only the tokens are stored. '
'Errors: RC001, RC003, RC004, RC005 another model, RC006.';

-- retain/transfer.sql
-- Copies of whole banks: within a database, and as rows of JSON from one to another.
--
-- clone_bank() copies each table of a bank. exported_rows() returns the rows of all tables as JSON,
-- in pages, and import_rows() stores them under the name of any bank: every column comes back as it
-- was, ids and history included. A row is {"table": "memory", "row": {...}}, without the bank. The
-- tables come in an order in which each row refers to earlier ones only. Memories refer to one
-- another, so rows at the end ("superseded") say what superseded each. import_rows() leaves out
-- rows that are there already, so an interrupted import can be sent again, and refuses a row that
-- differs from the one that is there. Names of tables and columns come from the list below and from
-- the catalog, never from the rows.
create or replace function pgrecall_internal._bank_tables()
returns table (place integer, name text, of_table text, keys text[])
language sql immutable parallel safe rows 20
begin atomic
  select v.place, v.name, v.of_table, v.keys
  from (values
    (1,  'bank',         'pgrecall.bank',                  '{}'::text[]),
    (2,  'fact_type',    'pgrecall.fact_type',             '{fact_type}'),
    (3,  'session',      'pgrecall.session',               '{session_id}'),
    (4,  'memory',       'pgrecall.memory',                '{memory_id}'),
    (5,  'embedding',    'pgrecall.embedding',             '{memory_id,model,kind,ordinal}'),
    (6,  'entity',       'pgrecall.entity',                '{entity_id}'),
    (7,  'entity_alias', 'pgrecall.entity_alias',          '{alias,entity_id}'),
    (8,  'mention',      'pgrecall.mention',               '{entity_id,fact_type,memory_id}'),
    (9,  'relation',     'pgrecall.relation',              '{relation_id}'),
    (10, 'link',         'pgrecall.link',                  '{from_id,kind,to_id}'),
    (11, 'message',      'pgrecall.message',               '{message_id}'),
    (12, 'statistics',   'pgrecall_internal.statistics',   '{kind}'),
    (13, 'lexeme',       'pgrecall_internal.lexeme',       '{kind,dimension,lexeme}'),
    (14, 'entity_count', 'pgrecall_internal.entity_count', '{entity_id}'),
    (15, 'vocabulary',   'pgrecall_internal.vocabulary',   '{}'),
    (16, 'superseded',   'pgrecall.memory',                '{memory_id}')
  ) as v(place, name, of_table, keys);
end;
comment on function pgrecall_internal._bank_tables is
'The tables of a bank in the order of an export, each with its primary key without bank_id.';

create or replace function pgrecall_internal._columns_of(of_table text)
returns text[]
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return array(
    select a.attname::text
    from   pg_attribute a
    where  a.attrelid = of_table::regclass and a.attnum > 0 and not a.attisdropped
      -- A copy gets a fence_key of its own.
      and  a.attgenerated = '' and a.attname not in ('bank_id', 'fence_key')
    order  by a.attnum
  );
end;
$$;
comment on function pgrecall_internal._columns_of is
'The columns of a table that are stored, without bank_id and fence_key.';

create or replace function pgrecall_internal._check_creator(what text)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  if not has_table_privilege('pgrecall.bank', 'insert') then
    perform pgrecall_internal._raise_not_permitted(
      what, 'pgrecall.bank', 'insert', is_any_bank => true);
  end if;
end;
$$;
comment on function pgrecall_internal._check_creator is
'Raises 42501 unless the role may create banks; what says what it was about to do.';

create or replace function pgrecall.clone_bank(bank text, new_bank text)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  part     record;
  copied   bigint;
  memories bigint;
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_creator(format('create bank "%s"', new_bank));
  perform pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_new_bank(new_bank);
  for part in
    select t.name, t.of_table, pgrecall_internal._columns_of(t.of_table) as columns
    from   pgrecall_internal._bank_tables() as t
    where  t.name <> 'superseded'
    order  by t.place
  loop
    -- Names come from _bank_tables() and the catalog.
    execute format(
      'with done as (insert into %1$s (bank_id, %2$s) select $2, %2$s from %1$s t'
      ' where t.bank_id = $1%3$s returning 1) select count(*) from done',
      part.of_table, (select string_agg(format('%I', c), ', ') from unnest(part.columns) as c),
      -- Also where another copy, or create_bank(), takes the name at the same time.
      case part.name when 'bank' then ' on conflict do nothing' end)
    into  copied
    using bank, new_bank;
    if part.name = 'bank' and copied = 0 then
      raise exception using
        errcode = 'RC002',
        message = format('bank "%s" already exists', new_bank),
        hint    = format('Choose another name, or drop it: select pgrecall.drop_bank(%L);',
                         new_bank);
    end if;
    if part.name = 'memory' then
      memories := copied;
    end if;
  end loop;
  return memories;
end;
$$;
comment on function pgrecall.clone_bank is
'Copies a bank with all it holds under a new name, ids and history included; returns how many '
'memories it has. The two are then independent. Vector indexes are for index_plan(). Errors: '
'RC001, RC002 bank exists, 22023 unusable name, 42501 naming the roles that may.';

create or replace function pgrecall_internal._check_rows(name text, rows jsonb)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  item  jsonb;
  place text;
begin
  select r.value, format('%s[%s]', _check_rows.name, r.n - 1) into item, place
  from   jsonb_array_elements(rows) with ordinality as r(value, n)
  left   join pgrecall_internal._bank_tables() as t on t.name = r.value ->> 'table'
  where  t.name is null or jsonb_typeof(r.value -> 'row') is distinct from 'object'
  order  by r.n
  limit  1;
  if found then
    perform pgrecall_internal._raise_invalid_field(
      place, format('not an exported row: %s', left(item::text, 80)),
      'Pass what exported_rows() returned: {"table": "memory", "row": {...}}.');
  end if;
  select format('%s[%s].row.%s', _check_rows.name, r.n - 1, k.name) into place
  from   jsonb_array_elements(rows) with ordinality as r(value, n)
  cross  join lateral jsonb_object_keys(r.value -> 'row') as k(name)
  join   (select t.name, pgrecall_internal._columns_of(t.of_table) || t.keys as columns
          from   pgrecall_internal._bank_tables() as t) as c on c.name = r.value ->> 'table'
  where  k.name <> all (c.columns)
  order  by r.n
  limit  1;
  if found then
    perform pgrecall_internal._raise_invalid_field(
      place, 'unknown column', 'It may be of a newer release: upgrade pgrecall first.');
  end if;
end;
$$;
comment on function pgrecall_internal._check_rows is
'Raises RC003 unless every element is a row of a table of a bank, with columns that it has.';

create or replace function pgrecall_internal._row_count(bank text)
returns bigint
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  part    record;
  counted bigint;
  total   bigint := 0;
begin
  for part in select t.name, t.of_table from pgrecall_internal._bank_tables() as t loop
    -- Names come from _bank_tables().
    execute format(
      'select count(*) from %s t where t.bank_id = $1%s', part.of_table,
      case part.name when 'superseded' then ' and t.superseded_by is not null' end)
    into  counted
    using bank;
    total := total + counted;
  end loop;
  return total;
end;
$$;
comment on function pgrecall_internal._row_count is 'The number of rows that an export has.';

create or replace function pgrecall.exported_rows(
  bank text, after jsonb default null, batch_size integer default 1000)
returns setof jsonb
language plpgsql stable parallel unsafe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
set extra_float_digits = 1
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $$
declare
  first    jsonb := nullif(after, 'null');
  part     record;
  sent     bigint := 0;
  returned bigint;
  total    jsonb := '{}';
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  if first is not null then
    perform pgrecall_internal._check_rows('after', jsonb_build_array(first));
  elsif current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
    total := jsonb_build_object('rows', pgrecall_internal._row_count(bank));
  end if;
  for part in
    select t.name, t.of_table, t.keys, coalesce(t.name = first ->> 'table', false) as is_begun,
           't.' || array_to_string(t.keys, ', t.') as key_of_row,
           'a.' || array_to_string(t.keys, ', a.') as key_before
    from   pgrecall_internal._bank_tables() as t
    where  t.place >= coalesce((
             select b.place from pgrecall_internal._bank_tables() as b
             where  b.name = first ->> 'table'), 0)
    order  by t.place
  loop
    exit when sent >= batch_size;
    continue when part.is_begun and part.keys = '{}';
    -- Names come from _bank_tables(). The lateral join makes the key before the page a condition
    -- of the index.
    return query execute format(
      'select jsonb_build_object(''table'', %L, ''row'', p.content) || $4'
      ' from jsonb_populate_record(null::%s, $3) as a cross join lateral ('
      'select %s as content from %2$s t where t.bank_id = $1%4$s%5$s%6$s limit $2)'
      ' as p',
      part.name, part.of_table,
      case part.name
        when 'superseded'
          then 'jsonb_build_object(''memory_id'', t.memory_id, ''superseded_by'', t.superseded_by)'
        when 'memory' then 'to_jsonb(t) - ''bank_id'' - ''superseded_by'''
        when 'bank'
          then 'to_jsonb(t) - ''{bank_id,fence_key,embedding_mean,low_cosine,high_cosine}''::text[]'
        else 'to_jsonb(t) - ''bank_id''' end,
      case part.name when 'superseded' then ' and t.superseded_by is not null' end,
      case when part.is_begun
        then format(' and (%s) > (%s)', part.key_of_row, part.key_before) end,
      case when part.keys <> '{}' then ' order by t.bank_id, ' || part.key_of_row end)
    using bank, batch_size - sent,
          case when part.is_begun then first -> 'row' else '{}'::jsonb end,
          case part.name when 'bank' then total else '{}' end;
    get diagnostics returned = row_count;
    sent := sent + returned;
  end loop;
end;
$$;
comment on function pgrecall.exported_rows is
'All rows of a bank as {"table": "memory", "row": {...}}, at most batch_size, in the order in '
'which import_rows() takes them. For the next page pass the last one as after; the end is a page '
'without rows. One transaction (repeatable read) gives a consistent copy of a bank that is being '
'written; the first row then has the number of all, "rows", so that a copy that was cut is '
'noticed. Errors: RC001, RC003 after is no such row, 22023.';

create or replace function pgrecall_internal._import_table(
  bank text, name text, of_table text, keys text[], rows jsonb)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  columns text[] := array(
    select c.name
    from   unnest(pgrecall_internal._columns_of(of_table)) with ordinality as c(name, n)
    where  exists (select from jsonb_array_elements(rows) as r where r.value ? c.name)
    order  by c.n);
  stored  bigint;
  other   jsonb;
begin
  if name = 'superseded' then
    with done as (
      update pgrecall.memory m
      set    superseded_by = r.superseded_by
      from   jsonb_populate_recordset(null::pgrecall.memory, rows) as r
      where  m.bank_id = _import_table.bank and m.memory_id = r.memory_id
        and  m.superseded_by is distinct from r.superseded_by
      returning 1
    )
    select count(*) into stored from done;
    return stored;
  end if;
  -- Names come from _bank_tables() and the catalog.
  execute format(
    'with done as (insert into %1$s (bank_id%2$s) select $1%2$s'
    ' from jsonb_populate_recordset(null::%1$s, $2) as r'
    ' on conflict (%3$s) do nothing returning 1) select count(*) from done',
    of_table, (select string_agg(format(', %I', c), '') from unnest(columns) as c),
    array_to_string('{bank_id}' || keys, ', '))
  into  stored
  using bank, rows;
  if stored < jsonb_array_length(rows) and of_table like 'pgrecall.%' then
    execute format(
      'select to_jsonb(r) from jsonb_populate_recordset(null::%1$s, $2) as r'
      ' join %1$s t on t.bank_id = $1%2$s where row(%3$s) is distinct from row(%4$s) limit 1',
      of_table,
      (select string_agg(format(' and t.%1$I = r.%1$I', k), '') from unnest(keys) as k),
      (select string_agg(format('t.%I', c), ', ') from unnest(columns) as c),
      (select string_agg(format('r.%I', c), ', ') from unnest(columns) as c))
    into  other
    using bank, rows;
    if other is not null then
      raise exception using
        errcode = 'RC002',
        message = concat_ws(': ',
          format('bank "%s" holds another row of table %s already', bank, name), (
            select jsonb_object_agg(k, other -> k) from unnest(keys) as k)),
        hint    = 'Import into a bank that does not exist yet.';
    end if;
  end if;
  return stored;
end;
$$;
comment on function pgrecall_internal._import_table is
'Stores exported rows of one table that are not there yet; returns how many. Errors: RC002 a row '
'that is there differs.';

create or replace function pgrecall_internal._raise_unusable_row(
  bank text, rows jsonb, problem text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  one   record;
  place text := 'rows';
begin
  for one in
    select t.name, t.of_table, t.keys, r.n - 1 as n, jsonb_build_array(r.value -> 'row') as row
    from   jsonb_array_elements(_raise_unusable_row.rows) with ordinality as r(value, n)
    join   pgrecall_internal._bank_tables() as t on t.name = r.value ->> 'table'
    order  by t.place, r.n
  loop
    begin
      perform pgrecall_internal._import_table(bank, one.name, one.of_table, one.keys, one.row);
    exception when integrity_constraint_violation or data_exception then
      place := format('rows[%s]', one.n);
      problem := sqlerrm;
      exit;
    end;
  end loop;
  perform pgrecall_internal._raise_invalid_field(
    place, format('unusable row: %s', left(problem, 200)),
    'Pass all rows of exported_rows(), in their order and unchanged.');
end;
$$;
comment on function pgrecall_internal._raise_unusable_row is
'Raises RC003 for rows that cannot be stored together, with the first that cannot be stored alone.';

create or replace function pgrecall.import_rows(bank text, rows jsonb)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  part        record;
  stored      bigint := 0;
  greatest_id bigint;
  missing     bigint;
begin
  perform pgrecall_internal._check_new_bank(bank);
  perform pgrecall_internal._check_array('rows', rows);
  perform pgrecall_internal._check_rows('rows', rows);
  if rows @> '[{"table": "bank"}]' then
    perform pgrecall_internal._check_creator(format('import bank "%s"', bank));
  end if;
  if exists (select from pgrecall.bank b where b.bank_id = import_rows.bank)
     or not rows @> '[{"table": "bank"}]'
  then
    perform pgrecall_internal._locked_bank(bank);
  end if;
  begin
    for part in
      select t.name, t.of_table, t.keys, jsonb_agg(r.value -> 'row') as rows
      from   jsonb_array_elements(import_rows.rows) as r
      join   pgrecall_internal._bank_tables() as t on t.name = r.value ->> 'table'
      group  by t.place, t.name, t.of_table, t.keys
      order  by t.place
    loop
      stored := stored + pgrecall_internal._import_table(
        bank, part.name, part.of_table, part.keys, part.rows);
    end loop;
  exception when integrity_constraint_violation or data_exception then
    perform pgrecall_internal._raise_unusable_row(bank, rows, sqlerrm);
  end;
  -- Later ids must not collide with imported ones, unless those are of another range.
  greatest_id := (
    select max(v.id::bigint)
    from   jsonb_array_elements(rows) as r
    cross  join lateral (values
      (r.value #>> '{row,memory_id}'), (r.value #>> '{row,entity_id}'),
      (r.value #>> '{row,relation_id}'), (r.value #>> '{row,message_id}'),
      (r.value #>> '{row,corrections,-1,correction_id}')) as v(id)
  );
  -- Writers take ids meanwhile. nextval() never goes back, as setval() would where they have passed
  -- that id since the sequence was read.
  select greatest_id - coalesce(pg_sequence_last_value('pgrecall.id_seq'), 0) into missing
  from   pg_sequence s
  where  s.seqrelid = 'pgrecall.id_seq'::regclass and greatest_id between s.seqmin and s.seqmax;
  if missing > 100000 then
    perform setval('pgrecall.id_seq', greatest_id);
  else
    perform nextval('pgrecall.id_seq') from generate_series(1, missing);
  end if;
  return stored;
end;
$$;
comment on function pgrecall.import_rows is
'Stores rows of exported_rows() under the name of a bank, which the first of them creates: every '
'column as it was. Rows that are there already are left out, so an import can be sent again. '
'Returns how many were stored. All or nothing. Ids stay; where they exceed the sequence id_seq, it '
'is moved past them; by more than 100,000 needs the right to update it. Errors: RC001, RC002 the '
'bank holds another row under that key, RC003 unusable row, 22023 unusable name, 42501 naming the '
'roles that may.';

-- retain/update.sql
-- Updating a memory: a new version takes its place, and the old one is kept as its history.
--
-- The content of a row never changes, so that a recall as of an earlier time finds what was known
-- then. update_memory() ends the memory now and retains a fact with its fields and the changes.
-- What a fact is made of besides its fields is copied from row to row, and not read again from
-- JSON: mentions and relations keep the entities that their names were resolved to, embeddings
-- their bits. Links by similarity and time are made anew. A new text keeps the entities that it
-- names, and the relations between them that it states as much as the old one did: a relation that
-- the text no longer bears out would lead recalls to a fact that does not say so.
create or replace function pgrecall_internal._fact_of(memory pgrecall.memory)
returns jsonb
language plpgsql stable parallel safe
set timezone = 'UTC'
set extra_float_digits = 1
as $$
declare
  starts timestamptz := nullif(lower((memory).occurred), '-infinity');
  ends   timestamptz := nullif(upper((memory).occurred), 'infinity');
begin
  return jsonb_strip_nulls(jsonb_build_object(
      'text', (memory).text, 'fact_type', (memory).fact_type, 'context', (memory).context,
      'fact_key', (memory).fact_key, 'source_id', (memory).source_id,
      'mentioned_at', (memory).mentioned_at, 'confidence', (memory).confidence,
      'proof_count', (memory).proof_count, 'expires_at', (memory).valid_to))
    || jsonb_build_object('tags', (memory).tags, 'metadata', (memory).metadata)
    || case
         when (memory).occurred is null then '{}'
         when starts = ends then jsonb_build_object('occurred', starts)
         else jsonb_build_object('occurred', jsonb_build_array(starts, ends))
       end;
end;
$$;
comment on function pgrecall_internal._fact_of is
'The fields of a memory as a fact for retain(), without embeddings, entities, relations and links.';

create or replace function pgrecall_internal._is_time_given(memory pgrecall.memory)
returns boolean
language plpgsql stable parallel safe
set search_path from current
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $$
begin
  return memory.content_hash = pgrecall_internal._content_hash(
    memory.fact_type, memory.text, memory.context, memory.fact_key, memory.source_id,
    memory.occurred, memory.mentioned_at);
end;
$$;
comment on function pgrecall_internal._is_time_given is
'Whether a memory is known by when it was said, too, since the fact told that.';

create or replace function pgrecall_internal._is_name_in(alias text, words text)
returns boolean
language sql immutable parallel safe
return strpos(words, ' ' || alias || ' ') > 0
       -- The genitive of German and Dutch, "Anas Chefin".
       or length(alias) > 2 and strpos(words, ' ' || alias || 's ') > 0
       or alias ~ ('[' || pgrecall_internal._cjk() || ']') and strpos(words, alias) > 0;
comment on function pgrecall_internal._is_name_in is
'Whether a text, normalised as a name is, has a normalised name in it, between spaces.';

create or replace function pgrecall_internal._named_in(
  bank text, entity_ids bigint[], words text, former_words text)
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return array(
    select a.entity_id
    from   pgrecall.entity_alias a
    where  a.bank_id = _named_in.bank and a.entity_id = any (_named_in.entity_ids)
    group  by a.entity_id
    having bool_or(pgrecall_internal._is_name_in(a.alias, words))
       -- "Ana", of Ana Silva, where the former text did not say more either.
       or  not bool_or(pgrecall_internal._is_name_in(a.alias, former_words))
           and bool_or(pgrecall_internal._is_name_in(split_part(a.alias, ' ', 1), words)
                       and pgrecall_internal._is_name_in(split_part(a.alias, ' ', 1), former_words))
  );
end;
$$;
comment on function pgrecall_internal._named_in is
'Those of the entities that a text names by any of their aliases, or by the first word of one '
'where its former version named them no better.';

create or replace function pgrecall_internal._is_kind_in(kind text, config regconfig, words text)
returns boolean
language sql stable parallel safe
return tsvector_to_array(to_tsvector(config, pgrecall.normalised_name(kind)))
         <@ tsvector_to_array(to_tsvector(config, words))
       or exists (
         select from jsonb_each(pgrecall.default_relation_words()) as w(word, meanings)
         where  strpos(words, ' ' || w.word || ' ') > 0
           and  replace(lower(kind), ' ', '_') in (
                  select substr(m, 6) from jsonb_array_elements_text(w.meanings) as m));
comment on function pgrecall_internal._is_kind_in is
'Whether a text, normalised as a name is, has the words of a kind of relation, or one that the '
'lexicon has for it.';

create or replace function pgrecall_internal._document_words(memory pgrecall.memory)
returns text
language sql immutable parallel safe
return ' ' || pgrecall.normalised_name(concat_ws(' ', (memory).text, (memory).context)) || ' ';
comment on function pgrecall_internal._document_words is
'Text and context of a memory, normalised as a name is, between spaces.';

create or replace function pgrecall_internal._copy_mentions(
  bank pgrecall.bank, former pgrecall.memory, version pgrecall.memory, changes jsonb)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  words        text := pgrecall_internal._document_words(version);
  former_words text := pgrecall_internal._document_words(former);
  mentioned    bigint[];
begin
  if not changes ? 'entities' then
    mentioned := array(
      select x.entity_id from pgrecall.mention x
      where  x.bank_id = bank.bank_id and x.memory_id = former.memory_id);
    if changes ? 'text' then
      mentioned := pgrecall_internal._named_in(bank.bank_id, mentioned, words, former_words);
    end if;
    -- The version may be counted already.
    perform pgrecall_internal._recount_mentions(bank.bank_id, array[version.memory_id], -1);
    insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id, confidence)
    select bank.bank_id, x.entity_id, version.fact_type, version.memory_id, x.confidence
    from   pgrecall.mention x
    where  x.bank_id = bank.bank_id and x.memory_id = former.memory_id
      and  x.entity_id = any (mentioned)
    on conflict on constraint mention_pkey do nothing;
    perform pgrecall_internal._recount_mentions(bank.bank_id, array[version.memory_id], 1);
  end if;
  if not changes ? 'relations' then
    mentioned := array(
      select x.entity_id from pgrecall.mention x
      where  x.bank_id = bank.bank_id and x.memory_id = version.memory_id);
    insert into pgrecall.relation
           (bank_id, from_id, kind, to_id, memory_id, confidence, valid_from, valid_to)
    select bank.bank_id, x.from_id, x.kind, x.to_id, version.memory_id, x.confidence,
           x.valid_from, x.valid_to
    from (
      -- Found before they are sorted: the primary key has their order, but leads through the bank.
      select y.*
      from   pgrecall.relation y
      where  y.bank_id = bank.bank_id and y.memory_id = former.memory_id
      offset 0
    ) as x
    where  x.from_id = any (mentioned) and x.to_id = any (mentioned)
      and  (not changes ? 'text'
            or pgrecall_internal._is_kind_in(
                 x.kind, bank.text_search_config::regconfig, words)
            or not pgrecall_internal._is_kind_in(
                 x.kind, bank.text_search_config::regconfig, former_words))
    order  by x.relation_id
    on conflict do nothing;
  end if;
end;
$$;
comment on function pgrecall_internal._copy_mentions is
'Copies mentions and relations of a memory to its new version, unless the changes give them: '
'relations between entities that the version mentions. Of a new text: the entities that it names, '
'and no relation for whose kind the former text had words and the new one has none.';

create or replace function pgrecall_internal._copy_parts(
  bank pgrecall.bank, from_id bigint, to_id bigint, changes jsonb)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  former  pgrecall.memory;
  version pgrecall.memory;
begin
  select m.* into former from pgrecall.memory m
  where  m.bank_id = bank.bank_id and m.memory_id = _copy_parts.from_id;
  select m.* into version from pgrecall.memory m
  where  m.bank_id = bank.bank_id and m.memory_id = _copy_parts.to_id;
  perform pgrecall_internal._copy_mentions(bank, former, version, changes);
  -- Causal links from others to it belong to them, and lead to the new version as well.
  insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
  select bank.bank_id, _copy_parts.to_id as from_id, x.kind, x.to_id, x.weight
  from   pgrecall.link x
  where  x.bank_id = bank.bank_id and x.from_id = _copy_parts.from_id
    and  x.kind <> 'temporal' and not changes ? 'links'
    and  x.to_id is distinct from _copy_parts.to_id  -- <> would let the index on to_id be used
  union  all
  select bank.bank_id, x.from_id, x.kind, _copy_parts.to_id as to_id, x.weight
  from   pgrecall.link x
  where  x.bank_id = bank.bank_id and x.to_id = _copy_parts.from_id
    and  x.kind <> 'temporal' and x.from_id <> _copy_parts.to_id
  on conflict on constraint link_pkey do nothing;
  insert into pgrecall.embedding
         (bank_id, memory_id, model, kind, ordinal, fact_type, embedding, text, tokens)
  select bank.bank_id, _copy_parts.to_id, x.model, x.kind, x.ordinal, version.fact_type,
         x.embedding, x.text, x.tokens
  from   pgrecall.embedding x
  where  x.bank_id = bank.bank_id and x.memory_id = _copy_parts.from_id
    and  case x.kind when 'text' then not changes ? 'text'
                     when 'question' then not changes ? 'questions' end
  on conflict on constraint embedding_pkey do nothing;
  insert into pgrecall.attached_row (bank_id, memory_id, relation, key, row_hash)
  select bank.bank_id, _copy_parts.to_id, x.relation, x.key, x.row_hash
  from   pgrecall.attached_row x
  where  x.bank_id = bank.bank_id and x.memory_id = _copy_parts.from_id
  on conflict on constraint attached_row_pkey do nothing;
end;
$$;
comment on function pgrecall_internal._copy_parts is
'Copies to the new version of a memory what the changes leave as it was: mentions and relations '
'(_copy_mentions()), causal links in both directions, the embedding of an unchanged text, '
'questions, and which row of an attached table it is of.';

create or replace function pgrecall.update_memory(
  bank text, memory_id bigint, changes jsonb, model text default null)
returns setof pgrecall.stored_memory
language plpgsql volatile parallel unsafe rows 1
set search_path from current
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  locked  pgrecall.bank;
  memory  pgrecall.memory;
  fact    jsonb;
  is_said boolean;
  new_id  bigint;
  is_new  boolean;
  updated pgrecall.stored_memory;
begin
  locked := pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_memory(bank, memory_id);
  if changes is null or jsonb_typeof(changes) <> 'object' or changes = '{}' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('changes must be an object with a field, not %s',
                       coalesce(left(changes::text, 80), 'null')),
      hint    = 'Pass ''{"text": "...", "tags": ["a"]}'': the fields of a fact, as for retain().';
  end if;
  select m.* into memory from pgrecall.memory m
  where  m.bank_id = update_memory.bank and m.memory_id = update_memory.memory_id;
  -- Another transaction, which began after this one, may have ended it.
  if memory.valid_to <= now()
     or memory.valid_to <= clock_timestamp() and memory.corrections is not null
  then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('memory %s ended at %s', memory_id, memory.valid_to),
      hint    = case
        when memory.superseded_by is null then 'What no longer holds is history: retain a new fact.'
        else format('Update memory %s, which took its place.', memory.superseded_by) end;
  end if;
  fact := pgrecall_internal._fact_of(memory);
  if changes ->> 'text' = memory.text then
    changes := changes - 'text';
  end if;
  if not changes ?| array['entities', 'relations', 'links', 'questions', 'embedding', 'embeddings']
     and fact || changes = fact
  then
    return query
    select * from pgrecall.stored_memories(bank, array[memory_id]);
    return;
  end if;
  -- A version is known by what its memory was known by: a document retained again has it.
  is_said := changes ? 'mentioned_at' or pgrecall_internal._is_time_given(memory);
  if not is_said then
    fact := fact - 'mentioned_at';
  end if;
  -- Ended first: the new version may have the same content hash.
  perform pgrecall_internal._end_memories(
    bank, 'update', nextval('pgrecall.id_seq'), array[memory_id], array[now()],
    array[null::bigint]);
  select r.memory_id, r.is_new into new_id, is_new
  from   pgrecall.retain(
           bank, jsonb_build_array(fact || changes), model, link => 'deferred',
           replace => 'none') as r;
  select b.* into locked from pgrecall.bank b where b.bank_id = update_memory.bank;
  perform pgrecall_internal._check_successors(bank, array[memory_id], array[new_id]);
  update pgrecall.memory m
  set    superseded_by = new_id,
         corrections   = jsonb_set(m.corrections, '{-1,replaced_by}', to_jsonb(new_id))
  where  m.bank_id = update_memory.bank and m.memory_id = update_memory.memory_id;
  if is_new then
    -- As of earlier times the old version was known.
    update pgrecall.memory m
    set    valid_from   = least(greatest(now(), memory.valid_from), m.valid_to),
           mentioned_at = case when is_said then m.mentioned_at else memory.mentioned_at end,
           is_linked    = true
    where  m.bank_id = update_memory.bank and m.memory_id = new_id;
  end if;
  perform pgrecall_internal._copy_parts(locked, memory_id, new_id, changes);
  perform pgrecall_internal._link_memories(bank, array[new_id]);
  select s.* into updated from pgrecall.stored_memories(bank, array[new_id]) as s;
  updated.ended_entities := array(
    select e.name
    from (
      select x.entity_id from pgrecall.mention x
      where  x.bank_id = update_memory.bank and x.memory_id = update_memory.memory_id
      except
      select x.entity_id from pgrecall.mention x
      where  x.bank_id = update_memory.bank and x.memory_id = new_id
    ) as x
    -- Looked up one by one: a cached plan could read all entities of the bank.
    cross  join lateral (
      select n.name from pgrecall.entity n
      where  n.bank_id = update_memory.bank and n.entity_id = x.entity_id
      limit  1
    ) as e
    order  by e.name);
  updated.ended_relations := array(
    select concat_ws(' ', (select n.name from pgrecall.entity n
                           where  n.bank_id = update_memory.bank and n.entity_id = x.from_id),
                     x.kind, (select n.name from pgrecall.entity n
                              where  n.bank_id = update_memory.bank and n.entity_id = x.to_id))
    from (
      select z.*
      from   pgrecall.relation z
      where  z.bank_id = update_memory.bank and z.memory_id = update_memory.memory_id
        and  coalesce((
               select false from pgrecall.relation y
               where  y.bank_id = update_memory.bank and y.memory_id = new_id
                 and  y.from_id = z.from_id and y.kind = z.kind and y.to_id = z.to_id), true)
      offset 0
    ) as x
    order  by x.relation_id);
  return next updated;
end;
$$;
comment on function pgrecall.update_memory is
'Replaces a memory by a version of it with other fields, as retain() takes them: {"text": "...", '
'"tags": []}; null takes a field away. Returns the new version, or the memory where nothing '
'changes. The old one ends now and stays as history: memory_history() lists it, unsupersede() '
'brings it back in place of the new one. Causal links and questions are kept unless given, '
'entities and relations too, but a new text keeps only those that it still names: an entity by one '
'of its names, a relation by both its ends and, where the old text had a word for its kind, such a '
'word; of given entities the relations between them. ended_entities and ended_relations tell which '
'the new version no longer has. A new text needs an embedding: pass one, with its model, or let '
'embed_pending() name it. Errors: RC001, RC010 unknown memory, 22023 nothing to change, or it has '
'ended, and those of retain().';

-- recall/fusion.sql
-- Fusion: merges the rankings of the arms.
--
-- rrf() adds weight / (k + rank) over the arms, score_rrf() counts the score of a hit beside its
-- rank, linear() adds normalised scores. fuse() applies the fusion of a recall to hits: gates leave
-- out arms whose best score is too low, then one of the three functions joins the rest, with the
-- weights of the arms and the boost for memories that mention an entity named in the query. With
-- arm_hits() a caller can try other rankings of the same hits.
--
-- Every fused row has the contribution of each arm. The contributions add up to the score.
create or replace function pgrecall_internal._fuse(
  hits pgrecall.arm_hit[], arms pgrecall_internal.arm_found[], weights jsonb, k integer,
  fusion text, named_boost double precision default 0, kept integer default null)
returns setof pgrecall.fused
language sql immutable parallel safe
begin atomic
  with arm as materialized (
    select f.arm, coalesce((weights ->> f.arm)::double precision, 1) as weight, f.worst, f.best,
           greatest(f.best, f.certain_at) as certain
    from   unnest(arms) as f
  ),
  contributed as materialized (
    select h.arm, h.memory_id, h.rank, h.score, h.via,
           case when h.named > 0.167 and named_boost > 0
             then named_boost * (h.named - 1 / 6.0) / (1 + named_boost * h.named) end as named,
           a.weight * (1 + named_boost * coalesce(h.named, 0))
           * case fusion
               when 'linear' then
                 case when a.best > a.worst then (h.score - a.worst) / (a.best - a.worst) else 1 end
               when 'score_rrf' then
                 case when a.certain > 0 then greatest(h.score, 0) / a.certain else 1 end
                 / (k + h.rank)
               else 1.0 / (k + h.rank)
             end as contribution
    from   unnest(hits) as h
    join   arm a on a.arm = h.arm
    where  a.weight > 0
  ),
  fused as (
    select c.memory_id, sum(c.contribution) as score, rank() over best_first as rank,
           max(c.score) filter (where c.arm = 'lexical') as words,
           first_value(max(c.score) filter (where c.arm = 'lexical')) over best_first as best_words
    from   contributed c
    group  by c.memory_id
    window best_first as (order by sum(c.contribution) desc)
  )
  -- jsonb is the most expensive part: it is built only for the rows that are kept.
  select f.memory_id, f.rank::integer, f.score,
         jsonb_object_agg(c.arm, case
           when c.via is null and c.named is null then jsonb_build_object(
             'rank', c.rank, 'score', c.score, 'contribution', c.contribution)
           else jsonb_build_object(
                  'rank', c.rank, 'score', c.score, 'contribution', c.contribution)
                || jsonb_strip_nulls(jsonb_build_object('via', c.via, 'named', c.named)) end)
  from   fused f
  join   contributed c on c.memory_id = f.memory_id
  -- A condition on the window function alone ends it early.
  where  f.rank <= greatest(coalesce(kept, 2147483647), 40)
    and  (f.rank <= coalesce(kept, 2147483647)
          or abs(f.words - f.best_words) <= 0.3)
  group  by f.memory_id, f.rank, f.score
  order  by f.score desc, f.memory_id desc;
end;
comment on function pgrecall_internal._fuse is
'Worker of the fusions, named by fusion. The contributions to a memory that mentions an entity '
'named in the query are multiplied by 1 + named_boost * named; the share of that which a name gave '
'that says more than the commonest (a sixth) is kept beside them as named, for rerank(). kept: '
'ranks above it are left out, but for those up to 40 that the words do not tell from the best row '
'(see _settled_states()).';

create or replace function pgrecall_internal._checked_hits(hits pgrecall.arm_hit[])
returns pgrecall.arm_hit[]
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  lowest integer := (select min(h.rank) from unnest(hits) as h);
begin
  if lowest < 1 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('hits: a rank must be at least 1, not %s', lowest),
      hint    = 'Pass the rows of arm_hits(), whose ranks begin at 1.';
  end if;
  return hits;
end;
$$;
comment on function pgrecall_internal._checked_hits is
'The hits. Raises 22023 where a rank is below 1.';

create or replace function pgrecall_internal._fused(
  hits pgrecall.arm_hit[], weights jsonb, k integer, fusion text)
returns setof pgrecall.fused
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  perform pgrecall_internal._check_range('k', k, 1, 10000);
  perform pgrecall_internal._check_by_arm('weight', weights, 0, 1000000, is_any_arm => true);
  return query
  select *
  from   pgrecall_internal._fuse(
           pgrecall_internal._checked_hits(hits), pgrecall_internal._arms_found(hits), weights, k,
           fusion);
end;
$$;
comment on function pgrecall_internal._fused is
'_fuse() with all hits, after its arguments are checked. Errors: 22023.';

create or replace function pgrecall.rrf(
  hits pgrecall.arm_hit[], weights jsonb default '{}', k integer default 60)
returns setof pgrecall.fused
language sql immutable parallel safe
begin atomic
  select * from pgrecall_internal._fused(hits, weights, k, 'rrf');
end;
comment on function pgrecall.rrf is
'Weighted reciprocal rank fusion (Cormack, Clarke and Buettcher 2009): score = sum over arms of '
'weight / (k + rank). Equal scores share a rank. arms holds rank, score and contribution per arm; '
'contributions add up to the score. A weight not given is 1; an arm of weight 0 is ignored. '
'Errors: 22023 k not 1 to 10,000, weight not 0 to 1,000,000, a rank below 1.';

create or replace function pgrecall.score_rrf(
  hits pgrecall.arm_hit[], weights jsonb default '{}', k integer default 60)
returns setof pgrecall.fused
language sql immutable parallel safe
begin atomic
  select * from pgrecall_internal._fused(hits, weights, k, 'score_rrf');
end;
comment on function pgrecall.score_rrf is
'Reciprocal rank fusion weighted by score: score = sum over arms of weight * (score / best score '
'of the arm) / (k + rank). The best score is at least certain_at of arms(). A score below 0 counts '
'as 0; an arm whose scores are all 0 or less counts by rank alone. The square root of the score '
'did worse (bench/TRIED.md). Otherwise as rrf().';

create or replace function pgrecall.linear(hits pgrecall.arm_hit[], weights jsonb default '{}')
returns setof pgrecall.fused
language sql immutable parallel safe
begin atomic
  select * from pgrecall_internal._fused(hits, weights, 1, 'linear');
end;
comment on function pgrecall.linear is
'Linear fusion: score = sum over arms of weight * (score - worst score of the arm) / (best score '
'of the arm - worst), whatever the ranks. The worst hit of an arm gets 0 from it and stays in; a '
'single hit, and hits of equal score, get the whole weight. Score / best score did worse '
'(bench/TRIED.md). Otherwise as rrf(), but without k.';

create or replace function pgrecall_internal._ungated(hits pgrecall.arm_hit[], gates jsonb)
returns pgrecall.arm_hit[]
language sql immutable parallel safe
begin atomic
  -- Arms are compared by the ratio of best score to gate.
  with arm as (
    select h.arm, coalesce(max(h.score) / nullif((gates ->> h.arm)::double precision, 0),
                           'infinity') as nearness
    from   unnest(hits) as h
    group  by h.arm
  )
  select array(
    select h
    from   unnest(hits) as h
    join   arm a on a.arm = h.arm and a.nearness >= (select least(1, max(x.nearness)) from arm x));
end;
comment on function pgrecall_internal._ungated is
'The hits of the arms whose best score reaches their gate; where none does, those of the arm with '
'the highest share of its gate.';

create or replace function pgrecall.fuse(hits pgrecall.arm_hit[], options jsonb default '{}')
returns setof pgrecall.fused
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  unusable text;
  named    text[] := '{fusion,rrf_k,weights,gates,named_boost,doubt,known_words}';
  known    double precision;
  given    jsonb;
  arms     pgrecall_internal.arm_found[];
begin
  perform pgrecall_internal._checked_options(coalesce(options, '{}'));
  select k into unusable from jsonb_object_keys(options) as k where k <> all (named);
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('option "%s" is none of a fusion', unusable),
      hint    = format('Options of fuse(): %s.', array_to_string(named, ', '));
  end if;
  given := pgrecall_internal._option_defaults() || jsonb_strip_nulls(coalesce(options, '{}'));
  given := given || jsonb_build_object(
    'weights', pgrecall.default_weights() || coalesce(options -> 'weights', '{}'));
  known := (given ->> 'known_words')::double precision;
  if known < 0.75 then
    given := jsonb_set(
      given, '{weights}', pgrecall_internal._known_weights(given -> 'weights', known));
  end if;
  -- A recall does not run an arm of weight 0, so such an arm cannot be the one that stays.
  hits := array(
    select h from unnest(pgrecall_internal._checked_hits(hits)) as h
    where  (given -> 'weights' ->> h.arm)::double precision > 0
  );
  arms := pgrecall_internal._arms_found(hits);
  return query
  select *
  from   pgrecall_internal._fuse(
           pgrecall_internal._ungated(hits, given -> 'gates'), arms,
           pgrecall_internal._doubted_weights(given, arms),
           (given ->> 'rrf_k')::integer, given ->> 'fusion',
           (given ->> 'named_boost')::double precision);
end;
$$;
comment on function pgrecall.fuse is
'Fuses the hits of arm_hits() as a recall does, best first: options fusion, rrf_k, weights, gates, '
'named_boost, doubt and known_words, as in recall_options(). Equal scores share a rank. Errors: '
'22023, RC009.';

create or replace function pgrecall_internal._checked_half_life(half_life interval, decay text)
returns interval
language plpgsql immutable parallel safe
as $$
begin
  if half_life <= interval '0' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('half_life must be an interval longer than 0, not "%s"', half_life),
      hint    = 'Pass ''30 days'', for example.';
  elsif decay not in ('exponential', 'linear') then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('decay must be "exponential" or "linear", not "%s"', decay),
      hint    = 'With "linear" nothing changes from twice the half-life on.';
  end if;
  return half_life;
end;
$$;
comment on function pgrecall_internal._checked_half_life is
'The half-life. Raises 22023 unless it is above 0, and for an unknown decay.';

create or replace function pgrecall.recency_boost(
  age interval, half_life interval, decay text default 'exponential')
returns double precision
language sql immutable parallel safe
return (
  select 0.9 + 0.2 * case decay
           when 'exponential' then 0.5 ^ least(a.half_lives, 1000)
           else greatest(0, 1 - a.half_lives / 2)
         end
  from (
    select greatest(0, date_part('epoch', age) / date_part(
             'epoch', pgrecall_internal._checked_half_life(half_life, decay)))
           as half_lives
  ) as a
);
comment on function pgrecall.recency_boost is
'Factor for a score by age: 1.1 when new, 1 at the half-life, down to 0.9. decay is exponential, '
'or linear (0.9 from twice the half-life on). Errors: 22023 half_life not above 0, unknown decay.';

-- recall/highlight.sql
-- highlight() marks the words in a stored text that the lexical arm matches.
--
-- Words are compared as the arm compares them, in Unicode form NFKC and stemmed, but the marks go
-- around the stored letters. Therefore the text is read twice, as runs of words in form NFKC and as
-- stored letters with their combining marks, and the two are joined by the position of each code
-- point. Nothing is escaped: a page that shows the result must escape the text, or choose marks
-- that survive escaping.
create or replace function pgrecall_internal._letters(content text)
returns table (letter text)
language plpgsql immutable parallel safe
as $$
begin
  if octet_length(content) = length(content) or getdatabaseencoding() <> 'UTF8' then
    return query select c.letter from string_to_table(content, null) as c(letter);
    return;
  end if;
  return query
  select string_agg(d.code, '' order by d.n)
  from (
    select c.code, c.n, count(*) filter (where not (
             octet_length(c.code) > 1
             -- A combining mark: normalisation sorts it before the mark that follows all others.
             and (left(normalize(chr(837) || c.code, nfkd), 1) <> chr(837)
                  -- A vowel or a last consonant of a Hangul syllable, and the like.
                  or normalize(c.before || c.code, nfkc)
                     <> normalize(c.before, nfkc) || normalize(c.code, nfkc)))
           ) over (order by c.n) as nth
    from (
      select s.code, s.n,
             concat(lag(s.code, 2) over (order by s.n), lag(s.code) over (order by s.n)) as before
      from   string_to_table(content, null) with ordinality as s(code, n)
    ) as c
  ) as d
  group  by d.nth
  order  by d.nth;
end;
$$;
comment on function pgrecall_internal._letters is
'The letters of a text as they are stored, in order, each with its combining marks. Their NFKC '
'forms concatenate to the NFKC form of the text.';

create or replace function pgrecall.highlight(
  bank       text,
  memory_id  bigint,
  query      text,
  start_mark text default '<mark>',
  end_mark   text default '</mark>')
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  searched pgrecall.bank := pgrecall_internal._bank(bank);
  config   regconfig := searched.text_search_config::regconfig;
  cjk      text := '[' || pgrecall_internal._cjk() || ']';
  inside   text;  -- letters, for use inside a bracket expression
  content  text;
  wanted   text[];
begin
  perform pgrecall_internal._check_text('query', query);
  if greatest(length(start_mark), length(end_mark)) > 1000 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('a mark has %s characters, more than 1000',
                       greatest(length(start_mark), length(end_mark))),
      hint    = 'It stands around each match: pass a tag such as <mark>.';
  end if;
  perform pgrecall_internal._check_memory(bank, memory_id);
  select m.text into content
  from   pgrecall.memory m
  where  m.bank_id = highlight.bank and m.memory_id = highlight.memory_id;
  inside := '[:alnum:]' || pgrecall_internal._marks(pgrecall_internal._normalised(content));
  wanted := array(
    select l.lexeme
    from   pgrecall.lexemes(config, (pgrecall_internal._parsed_query(query)).words) as l
  );

  return (
    -- Outside a where clause, "in (select ...)" is a hash table that is built once. Both the text
    -- and the query may be long.
    with run as (
      select r.match[1] as run, r.n, r.match[1] ~ ('^' || cjk) as is_cjk,
             char_length(r.match[1]) = 1 as is_single
      from   regexp_matches(
               pgrecall_internal._normalised(content),
               format('%s+|[^%s]+', cjk, pgrecall_internal._cjk()), 'g')
               with ordinality as r(match, n)
    ),
    piece as (
      select array[r.n, c.n] as place, c.letter as piece,
             case when r.is_single then c.letter in (select unnest(wanted))
                  else coalesce(lag(c.letter) over w || c.letter in (select unnest(wanted)), false)
                    or coalesce(c.letter || lead(c.letter) over w in (select unnest(wanted)), false)
             end as is_hit
      from   run r, string_to_table(r.run, null) with ordinality as c(letter, n)
      where  r.is_cjk
      window w as (partition by r.n order by c.n)
      union all
      -- An identifier that the query contains is marked as a whole, any other in parts.
      select array[r.n, i.n, w.n], w.match[1],
             i.is_hit or coalesce((
               select bool_or(l.lexeme in (select unnest(wanted)))
               from   unnest(tsvector_to_array(to_tsvector(
                        config, pgrecall_internal._with_amounts(w.match[1])))) as l(lexeme)
             ), false)
      from   run r,
             -- Once for each identifier, not for each of its parts: a text may be one long
             -- identifier.
             lateral (
               select x.match, x.n,
                      lower(x.match[1]) in (select unnest(wanted))
                      or x.match[1] ~ '^[1-9][0-9]{0,2}(?:[,.''’][0-9]{3})+$'
                         and translate(x.match[1], ',.''’', '') in (select unnest(wanted)) as is_hit
               from   regexp_matches(
                        r.run,
                        format('[%1$s]+(?:[-_./@:+#]+[%1$s]+)*%2$s?'
                               '|[0-9]{1,3}(?:[,''’][0-9]{3})+(?![0-9])|[^%1$s]+', inside,
                               replace(pgrecall_internal._suffix(), '[:alnum:]', inside)), 'g'
                      ) with ordinality as x(match, n)
               offset 0
             ) as i,
             regexp_matches(
               i.match[1], format('[%1$s]+|[^%1$s]+', inside), 'g'
             ) with ordinality as w(match, n)
      where  not r.is_cjk
    ),
    -- The parsed text is in form NFKC; the marks go around the stored letters.
    read as (
      select p.is_hit, row_number() over (order by p.place, c.n) as n
      from   piece p, string_to_table(p.piece, null) with ordinality as c(code, n)
    ),
    stored as (
      select l.letter, l.n as place, row_number() over (order by l.n, c.n) as n
      from   pgrecall_internal._letters(content) with ordinality as l(letter, n),
             string_to_table(pgrecall_internal._normalised(l.letter), null)
               with ordinality as c(code, n)
    ),
    letter as (
      select s.place, s.letter, bool_or(r.is_hit) as is_hit
      from   stored s join read r using (n)
      group  by s.place, s.letter
    ),
    -- Adjacent hits share a mark.
    stretch as (
      select min(l.place) as place, l.is_hit, string_agg(l.letter, '' order by l.place) as stretch
      from (
        select *, row_number() over (order by place)
                  - row_number() over (partition by is_hit order by place) as island
        from   letter
      ) as l
      group  by l.is_hit, l.island
    )
    select string_agg(
             case when s.is_hit then concat(start_mark, s.stretch, end_mark) else s.stretch end,
             '' order by s.place)
    from   stretch s
  );
end;
$$;
comment on function pgrecall.highlight is
'The text of a memory with the words that lexical_arm() matches between start_mark and end_mark; '
'otherwise as stored, without escaping. Errors: RC001, RC010 unknown memory, 22023.';

-- recall/order.sql
-- Reordering after fusion, where options ask for it: recency, with fusion linear only
-- (recency_half_life), one row per source (collapse), diversity, and the latest or former state
-- first (prefer). Without prefer, and before the others, rows that say nearly the same as the best
-- one, and that the question does not tell apart from it, stand with the latest first, the state of
-- now or of the end of the window (_settled_states()).
--
-- Of equal scores the states come first, then the most recent, then the higher id. Maximal marginal
-- relevance covers the first 200 rows; the others follow unchanged.
create or replace function pgrecall_internal._diverse_order(
  bank pgrecall.bank, ids bigint[], scores double precision[], surplus boolean[],
  diversity double precision, top integer)
returns integer[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
as $$
declare
  window_size integer := least(cardinality(ids), 200);
  vectors     halfvec[];
  nearness    double precision[] := array_fill(0::double precision, array[window_size]);
  places      integer[] := '{}';
  chosen      integer;
begin
  vectors := array(
    select e.embedding
    from   unnest(ids[1 : window_size]) with ordinality as w(id, n)
    left   join lateral (
      select x.embedding from pgrecall.embedding x
      where  x.bank_id = bank.bank_id and x.memory_id = w.id
        and  x.model = coalesce(bank.embedding_model, '') and x.kind = 'text'
      limit  1
    ) as e on true
    order  by w.n
  );
  while cardinality(places) < least(top, window_size) loop
    select u.n into chosen
    from   unnest(scores[1 : window_size], nearness, surplus[1 : window_size])
             with ordinality as u(score, nearness, is_surplus, n)
    where  u.n <> all (places)
    order  by u.is_surplus is true,
              (1 - diversity) * u.score / scores[1] - diversity * u.nearness desc, u.n
    limit  1;
    places := places || chosen;
    nearness := array(
      select greatest(u.nearness, pgrecall_internal._similarity(
               1 - (u.vector <=> vectors[chosen]), bank.low_cosine, bank.high_cosine))
      from   unnest(vectors, nearness) with ordinality as u(vector, nearness, n)
      order  by u.n
    );
  end loop;
  return places || array(select generate_series(window_size + 1, least(top, cardinality(ids))));
end;
$$;
comment on function pgrecall_internal._diverse_order is
'Positions in ids, which are in order of falling scores, by maximal marginal relevance (Carbonell '
'and Goldstein 1998). The next row is that with the largest (1 - diversity) * score / best score - '
'diversity * cosine similarity, 0 to 1, to the nearest row before it; 0 without an embedding. '
'Covers the first 200 rows; the others follow unchanged, and so do those of surplus. Returns the '
'first top positions.';

create or replace function pgrecall_internal._reordered(
  bank pgrecall.bank, top integer, collapse boolean, diversity double precision,
  half_life interval, decay text, as_of timestamptz, states bigint[],
  inout ids bigint[], inout scores double precision[], inout arms jsonb[],
  inout surplus boolean[])
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
as $$
declare
  places integer[];
begin
  select array_agg(r.id order by r.place), array_agg(r.score order by r.place),
         array_agg(r.arms order by r.place), array_agg(r.is_surplus order by r.place)
  into   ids, scores, arms, surplus
  from (
    select b.*,
           row_number() over w as place,
           row_number() over (
             partition by b.source_id
             order by b.score desc, array_position(states, b.id), b.at desc, b.id desc)
             as place_in_source
    from (
      select f.id, f.score * coalesce(d.boost, 1) as score, d.at, d.source_id, f.is_surplus,
             case when d.boost is null then f.arms
                  else (select jsonb_object_agg(a.key, a.value || jsonb_build_object(
                                 'contribution',
                                 (a.value ->> 'contribution')::double precision * d.boost))
                        from   jsonb_each(f.arms) as a)
             end as arms
      from   unnest(ids, scores, arms, surplus) as f(id, score, arms, is_surplus)
      cross  join lateral (
        select s.at, s.source_id,
               -- A row without a time counts as neither new nor old.
               case when half_life is not null and isfinite(s.happened_at) and isfinite(as_of)
                 then pgrecall.recency_boost(as_of - s.happened_at, half_life, decay) end as boost
        from (
          select m.mentioned_at, m.source_id, coalesce(lower(m.occurred), upper(m.occurred))
          from   pgrecall.memory m
          where  m.bank_id = bank.bank_id and m.memory_id = f.id
          union  all
          select t.sent_at, t.session_id, t.sent_at
          from   pgrecall.message t
          where  t.bank_id = bank.bank_id and t.message_id = f.id
        ) as s(at, source_id, happened_at)
        limit  1
      ) as d
    ) as b
    window w as (order by b.is_surplus is true, b.score desc, array_position(states, b.id),
                          b.at desc, b.id desc)
  ) as r
  where  not collapse or r.source_id is null or r.place_in_source = 1;

  if diversity > 0 and ids is not null then
    places := pgrecall_internal._diverse_order(bank, ids, scores, surplus, diversity, top);
    select array_agg(ids[p.place] order by p.n), array_agg(scores[p.place] order by p.n),
           array_agg(arms[p.place] order by p.n), array_agg(surplus[p.place] order by p.n)
    into   ids, scores, arms, surplus
    from   unnest(places) with ordinality as p(place, n);
  end if;
end;
$$;
comment on function pgrecall_internal._reordered is
'The fused rows in the order of an answer. Scores are multiplied by recency_boost() where there '
'are a half-life and a time. Ties are ordered as in states, then by recency, then id. collapse '
'keeps the best row of each source_id. _diverse_order() comes last.';

create or replace function pgrecall_internal._began_at(
  occurred tstzrange, mentioned_at timestamptz)
returns timestamptz
language sql immutable parallel safe
return coalesce(case when isfinite(lower(occurred)) then lower(occurred) end, mentioned_at);
comment on function pgrecall_internal._began_at is
'From when a state holds: the beginning of what happened, or when it was said where that is '
'unknown.';

create or replace function pgrecall_internal._preferred_order(
  request pgrecall_internal.request, sources jsonb, ids bigint[], scores double precision[],
  surplus boolean[])
returns integer[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
as $$
declare
  is_latest boolean := request.options ->> 'prefer' = 'latest';
  places    integer[];
  sorted    integer[];
  result    integer[] := array(select generate_series(1, cardinality(ids)));
begin
  -- Reorders, by trust and then by time, the rows about the same subject as the best row that state
  -- the same relation, or are similar to it by embedding or words. No other row moves.
  with row as materialized (
    select u.n::integer as n, m.lexical_weights, e.embedding,
           array(select x.entity_id
                 from   pgrecall.mention x
                 where  x.bank_id = (request.bank).bank_id and x.memory_id = u.id
                 limit  100) as entities,
           array(select x.from_id || lower(x.kind)
                 from   pgrecall.relation x
                 where  x.bank_id = (request.bank).bank_id and x.memory_id = u.id
                 limit  100) as relations,
           u.score >= 0.5 * scores[1] as is_good,
           pgrecall_internal._trust(sources, m.source_id) as trust,
           pgrecall_internal._began_at(m.occurred, m.mentioned_at) as at
    from   unnest(ids[1:50], scores[1:50], surplus[1:50])
             with ordinality as u(id, score, is_surplus, n)
    cross  join lateral (
      select x.lexical_weights, x.occurred, x.mentioned_at, x.source_id
      from   pgrecall.memory x
      where  x.bank_id = (request.bank).bank_id and x.memory_id = u.id
      limit  1
    ) as m
    left   join lateral (
      select x.embedding from pgrecall.embedding x
      where  x.bank_id = (request.bank).bank_id and x.memory_id = u.id
        and  x.model = coalesce((request.bank).embedding_model, '')
        and  x.kind = 'text'
      limit  1
    ) as e on true
    where  u.score >= 0.3 * scores[1] and u.is_surplus is not true
  ),
  best as (
    -- The subject: the entities that the query names, if a row mentions one of them; else all
    -- entities of the best row.
    select b.*, coalesce(nullif(k.known, '{}'), b.entities) as subject
    from   row b
    cross  join lateral (
      select array(select x from unnest(b.entities) as x
                   where  x = any (array(select q.entity_id from unnest(request.named) as q)))
    ) as k(known)
    order  by k.known = '{}', b.n
    limit  1
  ),
  near as (
    select r.n, r.at, r.trust
    from   row r
    cross  join best b
    where  (b.subject = '{}' or r.entities && b.subject)
      and  (r.relations && b.relations
            or r.is_good
               and pgrecall_internal._is_alike(
                     request.bank, r.embedding <=> b.embedding,
                     r.lexical_weights <=> b.lexical_weights))
  )
  select array_agg(r.n order by r.n),
         array_agg(r.n order by r.trust desc, is_latest and r.at >= upper(request.during),
                                case when is_latest then r.at end desc,
                                case when not is_latest then r.at end, r.n)
  into   places, sorted
  from   near r;
  for i in 1 .. coalesce(cardinality(places), 0) loop
    result[places[i]] := sorted[i];
  end loop;
  return result;
end;
$$;
comment on function pgrecall_internal._preferred_order is
'The order of an answer with option prefer: positions in ids, which are in order of falling '
'scores. The subject is the entities that the query names, or where no row mentions these, all '
'entities of the best row. Of the rows about the subject, those that belong to the best of them '
'are ordered by trust, then by time: rows with three tenths of the best score that state the same '
'relation from the same entity, and rows with half of it that are similar (embeddings, on the '
'scale of the bank, 0.8; cosine of BM25 weights 0.4). The others keep their places.';

create or replace function pgrecall_internal._settled_states(
  request pgrecall_internal.request, sources jsonb, first integer, inout ids bigint[],
  scores double precision[], inout shares jsonb[], surplus boolean[], out states bigint[])
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  is_path constant text := E'[<>*]|\x1ff[0-9]+\x1fe';
  best    constant jsonb := shares[1];
  words   constant double precision := best #>> '{lexical,score}';
  means   constant double precision := best #>> '{semantic,score}';
  until   constant timestamptz := coalesce(upper(request.during), request.as_of);
  near    integer[];  -- places of rows that the question does not tell apart
  sorted  integer[];  -- of these, the states, in order
begin
  -- Most recalls end here: of rows that differ, the arms tell.
  near := array(
    with alike as materialized (
      select u.n::integer as n, u.meaning,
             lag(u.meaning) over by_meaning - u.meaning > 0.05 as is_apart
      from (
        select x.*, (x.arms #>> '{semantic,score}')::double precision as meaning
        from   unnest(shares[1:first], surplus[1:first])
                 with ordinality as x(arms, is_surplus, n)
      ) as u
      where  abs((u.arms #>> '{lexical,score}')::double precision - words)
             <= least(0.3, words / 10)
        and  coalesce(abs(u.meaning - means) <= 0.15, num_nonnulls(u.meaning, means) = 0)
        and  u.arms ? 'key' = best ? 'key' and u.is_surplus is not true
        and  coalesce(u.arms #>> '{graph,via}', '') !~ is_path
      window by_meaning as (order by u.meaning desc, u.n)
    ),
    part as (
      select a.n, count(*) filter (where a.is_apart) over (order by a.meaning desc, a.n) as part
      from   alike a
    )
    select p.n
    from   part p
    where  p.part = (select b.part from part b where b.n = 1)
    order  by p.n
  );
  if cardinality(near) < 2 then
    return;
  end if;
  -- Vectors are read in one scan: one for each row takes several times as long.
  with alike as materialized (
    select e.memory_id
    from   pgrecall.embedding e
    where  e.bank_id = (request.bank).bank_id and e.kind = 'text'
      and  e.model = coalesce((request.bank).embedding_model, '')
      and  e.memory_id = any (array(select ids[n] from unnest(near) as n))
      and  pgrecall_internal._similarity(
             1 - (e.embedding <=> (
               select b.embedding from pgrecall.embedding b
               where  b.bank_id = (request.bank).bank_id and b.memory_id = ids[1]
                 and  b.model = coalesce((request.bank).embedding_model, '') and b.kind = 'text'
               limit  1)),
             (request.bank).low_cosine, (request.bank).high_cosine) >= 0.85
  ),
  row as materialized (
    select array_position(ids, a.memory_id) as n, m.source_id, m.lexical_weights,
           array(select x.entity_id
                 from   pgrecall.mention x
                 where  x.bank_id = (request.bank).bank_id and x.memory_id = a.memory_id
                   and  x.entity_id = any (array(
                          select q.entity_id from unnest(request.named) as q))
                 order  by x.entity_id) as names,
           pgrecall_internal._began_at(m.occurred, m.mentioned_at) as at
    from   alike a
    cross  join lateral (
      select x.occurred, x.mentioned_at, x.source_id, x.lexical_weights from pgrecall.memory x
      where  x.bank_id = (request.bank).bank_id and x.memory_id = a.memory_id
      limit  1
    ) as m
  )
  select array_agg(r.n order by r.n),
         array_agg(r.n order by pgrecall_internal._trust(sources, r.source_id) desc, r.at >= until,
                                case when r.at >= until then r.at end, r.at desc, r.n)
  into   near, sorted
  from   row r
  join   row b on b.n = 1 and b.names = r.names
  -- The same words in another order ("Ana manages Ben") are no other state; nor is what lies ahead
  -- one of what lies behind, unless a window says which is asked for.
  where  r.n = 1
     or  coalesce(r.lexical_weights <=> b.lexical_weights > 0.000001, true)
         and (request.during is not null or (r.at >= until) is not distinct from (b.at >= until));
  if cardinality(near) > 1 then
    states := array(
      select ids[s.n] from unnest(sorted) with ordinality as s(n, place) order by s.place);
    shares := (
      select array_agg(case when s.place is null then u.arms else (
               select jsonb_object_agg(a.key, a.value || jsonb_build_object(
                        'contribution', scores[u.n] * coalesce(
                          (a.value ->> 'contribution')::double precision / nullif(scores[s.was], 0),
                          1.0 / (select count(*) from jsonb_object_keys(shares[s.was])))))
               from   jsonb_each(shares[s.was]) as a) end order by u.n)
      from   unnest(shares) with ordinality as u(arms, n)
      left   join unnest(near, sorted) as s(place, was) on s.place = u.n);
    for n in 1 .. cardinality(near) loop
      ids[near[n]] := states[n];
    end loop;
  end if;
end;
$$;
comment on function pgrecall_internal._settled_states is
'The fused rows, with the best row and other states of it, of the first rows, in the order of an '
'answer; states holds their ids, or is null where the best row stands alone. Other states say '
'nearly the same (similarity of the embeddings on the scale of the bank at least 0.85), and the '
'question does not tell them apart: by its words (BM25 within 0.3, and within a tenth; a word that '
'half of the facts have is worth 0.7), its meaning (similarities without a gap of 0.05, within '
'0.15), a name, a key or a path. The same words in another order, and without a window what lies '
'ahead beside what lies behind, are no states of one thing. States are ordered by trust, then the '
'latest first, up to now or the end of the window; what lies before the window, and then what '
'follows it, comes last. Each takes the place and the score of one of them, with its own '
'contributions in proportion, or equal ones where it had none.';

-- recall/prepare.sql
-- Preparation of a question before it is embedded: the text to embed, the time settings of the
-- bank, the end of the last conversation, its words for the latest and former states, which share
-- of its recalls is to be logged, and the options that keep a reranker out.
--
-- An embedding of the question without the names of entities finds more. The graph arm and option
-- named_boost match the names. Therefore a driver makes this call before the recall.
create or replace function pgrecall_internal._stemmed_language(config text)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return (
    select case lower(substring(d.dictinitoption from '(?i)language\s*=\s*''?(\w+)'))
             when 'german' then 'de' when 'spanish' then 'es' when 'french' then 'fr'
             when 'italian' then 'it' when 'dutch' then 'nl' when 'portuguese' then 'pt' end
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
  asked pgrecall.bank := pgrecall_internal._bank(bank);
begin
  return query
  select case when asked.is_name_embedded then query
              else pgrecall_internal._without_names(asked, query) end,
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
         asked.options ->> 'prefer', (asked.options ->> 'diversity')::double precision;
end;
$$;
comment on function pgrecall.prepare_recall is
'What a caller needs to embed a question and to resolve its times, as one row: the text to embed, '
'which is without_names() unless is_name_embedded is set; the time_settings, in which the language '
'is that of text_search_config unless it is set; the end of the last conversation that was over at '
'that time; latest_words and former_words of the bank, empty where it has none; its log_share; the '
'model that it is searched by, and the model that it is being re-embedded with; its options prefer '
'and diversity. Errors: RC001, 22023.';

-- recall/relevance.sql
-- Relevance: how likely a row answers the query, so that a caller can detect that there is no
-- answer.
--
-- Fusion scores compare rows, but not across queries. Relevance is a logistic function of features
-- that can be compared across queries: the cosine similarity, the share of the query's IDFs in the
-- BM25 score, an exact key, the proximity in time. Its coefficients are fitted to LoCoMo
-- (bench/quality/relevance.py); they depend on the embedding model.
create or replace function pgrecall_internal._relevance(
  arms jsonb, idf_sum double precision, is_embedded boolean)
returns double precision
language sql immutable parallel safe
-- One expression, so that it is inlined: calling it for every row would take longer than the rest.
return case
  when not is_embedded and idf_sum is null and not arms ? 'key'
    then coalesce((arms -> 'temporal' ->> 'score')::double precision, 0)
  else 1 / (1 + exp(-(
    case
      when not is_embedded then -3
      when idf_sum is null
        then 16 * coalesce((arms -> 'semantic' ->> 'score')::double precision, 0.2) - 8.5
      else 10.4 * coalesce((arms -> 'semantic' ->> 'score')::double precision, 0.2) - 6.2
    end
    + case when is_embedded then 10.5 else 15 end * case
      when arms ? 'key' then 1
      else least(1, greatest(
        coalesce((arms -> 'lexical' ->> 'score')::double precision / idf_sum, 0),
        coalesce((arms -> 'message' ->> 'score')::double precision, 0)))
    end
    + 3 * coalesce((arms -> 'temporal' ->> 'score')::double precision, 0))))
end;
comment on function pgrecall_internal._relevance is
'Probability, 0 to 1, that a row answers, from the scores of the arms: the logistic function of '
'10.4 * similarity + 10.5 * words + 3 * nearness in time - 6.2; without an embedding of 15 * words '
'+ 3 * nearness - 3; without words of 16 * similarity + 3 * nearness - 8.5; without both the '
'nearness alone. words is the share of the query''s IDFs in the BM25 score, 1 for a key; a '
'similarity that was not found is 0.2. Fitted to LoCoMo with all-MiniLM-L6-v2 and questions '
'without names, half of them without an answer in the bank, so that the relevance of the best row '
'is the probability that the bank holds the answer (bench/quality/relevance.py). It depends on the '
'embedding model. Rows that only the graph found get a low value: there were no data to fit it.';

-- recall/run.sql
-- The run of a recall: every arm that applies, in the order of the registry.
--
-- _run() goes through arms(), skips arms without input, runs the others, and returns their hits
-- with a report of each. A recall that hints have narrowed runs again without them if it finds too
-- little. An arm that fails is left out, with a warning and with a hint in its report. Wrong input,
-- a conflict that the caller should retry, and a cancelled statement are errors.
create or replace function pgrecall_internal._index_scans()
returns jsonb
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  return (
    select coalesce(jsonb_object_agg(i.relname, s.scans), '{}')
    from   pg_index x
    join   pg_class i on i.oid = x.indexrelid
    join   pg_class t on t.oid = x.indrelid
    join   pg_namespace n on n.oid = i.relnamespace
    cross  join lateral pg_stat_get_xact_numscans(i.oid) as s(scans)
    where  n.nspname in ('pgrecall', 'pgrecall_internal') and s.scans > 0
      and  t.relname !~ '^(bank|fact_type|statistics|lexeme)$'
  );
end;
$$;
comment on function pgrecall_internal._index_scans is
'Number of scans by this transaction of each index that the arms use; empty with track_counts off.';

create or replace function pgrecall_internal._other_model_hint()
returns text
language sql immutable parallel safe
return 'If the embedding model does not know the language, give the bank one that does: see '
       'pgrecall reembed.';
comment on function pgrecall_internal._other_model_hint is
'The hint of an arm that loses most of its weight because embeddings say little.';

create or replace function pgrecall_internal._skip_reason(
  request pgrecall_internal.request, arm pgrecall.arm, known text)
returns text
language sql immutable parallel safe
return case
  when arm.arm <> all (request.arms) then 'not asked for'
  when (request.options -> 'weights' ->> arm.arm)::double precision = 0
    then coalesce(case when 'embedding' = any (arm.needs) then known end, 'its weight is 0')
  when 'embedding' = any (arm.needs) and request.embedding is null then 'no embedding given'
  when 'hypothetical' = any (arm.needs) and request.hypothetical is null
    then 'no hypothetical answer given'
  when 'during' = any (arm.needs) and request.during is null then 'no time window given'
  when 'query' = any (arm.needs) and request.query = ''
       and ('keys' = any (arm.needs) and jsonb_typeof(request.options -> 'keys') = 'array'
            or 'terms' = any (arm.needs) and jsonb_typeof(request.options -> 'terms') = 'array')
           is not true
    then 'no query text given'
  when arm.finds = 'message' and request.filter is not null then 'filters are about memories'
  when request.arms is not null then null
  when array_position('{low,mid,high}', request.options ->> 'budget')
       < array_position('{low,mid,high}', arm.least_budget) then 'the budget is low'
end;
comment on function pgrecall_internal._skip_reason is
'Why an arm is left out without being called, by its row of the registry. Null: it is called. '
'known: the reason of arms that compare embeddings, where the model knows few of the words.';

-- Composed of the rows of the registry: to plan a call by name, anew for each arm, takes a tenth of
-- a recall.
do $$
begin
  execute (
    select format(
      'create or replace '
      'function pgrecall_internal._arm_result('
      '  arm text, request pgrecall_internal.request, before pgrecall.arm_hit[],'
      '  is_planned boolean) '
      'returns pgrecall_internal.arm_result '
      'language sql stable parallel unsafe '
      'return case arm %s end',
      string_agg(format('when %L then pgrecall_internal.%I(request, before, is_planned)',
                        a.arm, format('_%s_arm', a.arm)), ' ' order by a.place))
    from   pgrecall.arms() as a);
end;
$$;
comment on function pgrecall_internal._arm_result is
'What the worker of an arm returns, pgrecall_internal._ARM_arm(); inlined.';

create or replace function pgrecall_internal._run(
  request pgrecall_internal.request, is_planned boolean,
  out hits pgrecall.arm_hit[], out reports pgrecall.arm_report[],
  out arms pgrecall_internal.arm_found[])
language plpgsql stable parallel unsafe
set search_path from current
set plan_cache_mode = force_generic_plan
as $$
declare
  is_explained boolean := (request.options ->> 'explain')::boolean and not is_planned;
  arm     record;
  -- The named entities of hits are looked up once before the first arm that needs them, then arm by
  -- arm.
  is_naming boolean := request.named <> '{}';
  are_named boolean;
  known   text := case
    when request.embedding is not null
         and (request.options ->> 'known_words')::double precision < 0.75
      then format('the embedding model knows %s%% of the words of the query',
                  round(100 * (request.options ->> 'known_words')::numeric)) end;
  result  pgrecall_internal.arm_result;
  found   pgrecall.arm_hit[];
  report  pgrecall.arm_report;
  began   timestamptz;
  scans   jsonb;
  results integer;
  before  text := current_setting('lock_timeout');
  due     timestamptz := 'infinity';
  waiting interval := (request.options ->> 'arm_timeout')::interval;
begin
  if waiting is not null and not is_planned then
    due := clock_timestamp() + waiting;
    -- An arm that waits for a lock must leave time for the others.
    if before = '0' or before::interval > waiting / 4 then
      perform set_config('lock_timeout', ceil(extract(epoch from waiting) * 250)::text, true);
    end if;
  end if;
  loop
    hits := '{}';
    reports := '{}';
    arms := '{}';
    are_named := false;
    for arm in
      select a.arm as name, a.finds, a.certain_at, 'names' = any (a.needs) as has_named,
             a.needs = '{names}' as is_graph,
             pgrecall_internal._skip_reason(request, a, known) as reason,
             case when 'embedding' = any (a.needs) then known end as note
      from   pgrecall.arms() as a
      order  by a.place
    loop
      began := clock_timestamp();
      found := '{}';
      report := null;
      report.arm := arm.name;
      report.status := 'skipped';
      report.reason := coalesce(
        arm.reason,
        case when began >= due then 'the arms before it took longer than arm_timeout' end);
      if report.reason is null then
        if is_explained then
          scans := pgrecall_internal._index_scans();
        end if;
        -- A broken arm must not take the others with it. Invalid input is reported to the caller; a
        -- transaction failure (class 40, also a conflict on a standby) is the caller's to retry.
        begin
          if is_naming and arm.has_named and not are_named then
            hits := pgrecall_internal._named_hits(request, hits);
            are_named := true;
          end if;
          if arm.is_graph and arms <> '{}' then
            request.found := arms;
          end if;
          result := pgrecall_internal._arm_result(arm.name, request, hits, is_planned);
          if not result.is_run then
            report.reason := result.reason;
          elsif is_planned then
            report.status := 'planned';
            report.reason := case when request.arms is null then result.reason else 'asked for' end;
          else
            report.status := 'ran';
            report.reason := nullif(concat_ws('; ', request.note, result.reason, arm.note), '');
            report.hint := result.hint;
            if result.memory_ids <> '{}' then
              found := array(select h from pgrecall_internal._arm_hits(arm.name, result) as h);
              arms := arms || (
                arm.name, arm.finds, arm.is_graph, arm.certain_at, result.scores[1],
                result.scores[cardinality(result.scores)],
                coalesce(result.scores[11], 0), result.background)::pgrecall_internal.arm_found;
            end if;
            if are_named then
              found := pgrecall_internal._named_hits(request, found);
            end if;
          end if;
        exception when others then
          if sqlstate like 'RC%' or sqlstate like '40%' or sqlstate in ('22023', '57014') then
            raise;
          end if;
          report.status := 'failed';
          report.reason := sqlerrm;
          report.hint := format('Run pgrecall.%s_arm() alone to see the error.', arm.name);
          raise warning using
            errcode = '01RC1',
            message = format('the %s arm failed and was left out: %s', arm.name, sqlerrm),
            hint    = report.hint;
        end;
        if is_explained then
          select string_agg(i.key, ', ' order by i.key) into report.indexes
          from   jsonb_each(pgrecall_internal._index_scans()) as i
          where  i.value is distinct from scans -> i.key;
        end if;
      end if;
      if arm.note is not null and (request.options ->> 'known_words')::double precision <= 0.35 then
        report.hint := coalesce(report.hint, pgrecall_internal._other_model_hint());
      end if;
      if not is_planned then
        report.rows := cardinality(found);
        report.best_score := (found[1]).score;
        report.milliseconds := extract(epoch from clock_timestamp() - began) * 1000;
      end if;
      if cardinality(found) > 0 then
        hits := hits || found;
      end if;
      reports := reports || report;
    end loop;
    if is_naming and not are_named then
      hits := pgrecall_internal._named_hits(request, hits);
    end if;
    exit when is_planned
           or request.fact_types = request.all_types;
    -- Too few results: run again without narrowing.
    select count(distinct h.memory_id) into results
    from   unnest(hits) as h
    join   pgrecall.arms() as a on a.arm = h.arm
    where  a.finds = 'memory';
    exit when results >= (request.options ->> 'widen_below')::integer;
    request.note := format('widened: %s results were fewer than %s', results,
                           request.options ->> 'widen_below');
    request.fact_types := request.all_types;
  end loop;
  if waiting is not null then
    perform set_config('lock_timeout', before, true);
  end if;
end;
$$;
comment on function pgrecall_internal._run is
'Runs the arms in order; returns their hits, a report of each, and the arms that found something. '
'Hinted types narrow the search, unless too little is found. An arm that fails is left out with '
'warning 01RC1; an arm that would begin after arm_timeout is left out with a reason. is_planned: '
'only reports what would run. It is longer than 100 lines because one step of its loop is one arm: '
'a function of its own for that step would be entered eight times.';

-- recall/trust.sql
-- Trust in sources: it lowers scores, and limits how many rows of one source come before all
-- others.
--
-- After fusion, the score of a row is multiplied by the trust of its source. Nothing in a text can
-- make up for that: stuffed with words, near every question, the newest, or said by many, a row of
-- trust 0.1 has at most a tenth of the highest possible score. A row that is similar to a row of a
-- more trusted source repeats or denies it, and is lowered a second time, by the ratio of the two
-- trusts. The first untrusted_rows of a source trusted less than 1, and the first source_rows of
-- any source, keep their places; its other rows follow behind all else.
create or replace function pgrecall_internal._is_alike(
  bank pgrecall.bank, distance double precision, lexical_distance double precision)
returns boolean
language sql immutable parallel safe
return coalesce(pgrecall_internal._similarity(
                  1 - distance, (bank).low_cosine, (bank).high_cosine), 0) >= 0.8
       or coalesce(1 - lexical_distance, 0) >= 0.4;
comment on function pgrecall_internal._is_alike is
'Whether two rows say nearly the same, by the cosine distances of their embeddings and of their '
'lexical weights. Null: a row has none.';

create or replace function pgrecall_internal._denied_trust(
  bank pgrecall.bank, ids bigint[], trusts double precision[])
returns double precision[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return array(
    with row as materialized (
      select u.n, u.trust, m.lexical_weights, e.embedding
      from   unnest(ids[1:50], trusts[1:50]) with ordinality as u(id, trust, n)
      cross  join lateral (
        select x.lexical_weights from pgrecall.memory x
        where  x.bank_id = bank.bank_id and x.memory_id = u.id
        limit  1
      ) as m
      left   join lateral (
        select x.embedding from pgrecall.embedding x
        where  x.bank_id = bank.bank_id and x.memory_id = u.id
          and  x.model = coalesce(bank.embedding_model, '')
          and  x.kind = 'text'
        limit  1
      ) as e on true
      where  (select count(distinct t) from unnest(trusts[1:50]) as t) > 1
    ),
    alike as (
      select less.n, max(more.trust) as trust
      from   row less
      join   row more
        on   more.trust > less.trust
        and  pgrecall_internal._is_alike(
               bank, less.embedding <=> more.embedding,
               less.lexical_weights <=> more.lexical_weights)
      group  by less.n
    )
    select u.trust * coalesce(u.trust / a.trust, 1)
    from   unnest(trusts) with ordinality as u(trust, n)
    left   join alike a on a.n = u.n
    order  by u.n);
end;
$$;
comment on function pgrecall_internal._denied_trust is
'The trust of rows, which are in order, best first. Where one of the first 50 is similar to '
'another of them that is trusted more, its trust is multiplied by the ratio of the two.';

create or replace function pgrecall_internal._trusted_order(
  request pgrecall_internal.request, sources jsonb,
  inout ids bigint[], inout scores double precision[], inout shares jsonb[],
  out surplus boolean[])
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  most      integer := (request.options ->> 'untrusted_rows')::integer;
  of_source integer := nullif((request.options ->> 'source_rows')::integer, 0);
begin
  with row as (
    select u.id, u.score, u.share, u.n, s.source_id
    from   unnest(ids, scores, shares) with ordinality as u(id, score, share, n)
    cross  join lateral (
      select m.source_id
      from   pgrecall.memory m
      where  m.bank_id = (request.bank).bank_id and m.memory_id = u.id
      union  all
      select t.session_id
      from   pgrecall.message t
      where  t.bank_id = (request.bank).bank_id and t.message_id = u.id
      limit  1
    ) as s
  ),
  weighed as materialized (
    select r.*, pgrecall_internal._source(sources, r.source_id) as source, o.trust
    from   row r
    cross  join lateral (
      select pgrecall_internal._trust(sources, r.source_id) as trust
      offset 0
    ) as o
    where  o.trust > 0
  ),
  trusted as (
    select w.id, w.n, w.share, w.score, d.trust,
           w.trust < 1 and most < row_number() over (
             partition by w.source
             order by w.score * d.trust desc, w.n)
           or w.source_id is not null and of_source < row_number() over (
             partition by w.source_id
             order by w.score * d.trust desc, w.n) is true as is_over
    from (
      select array_agg(x.id order by x.n) as ids, array_agg(x.trust order by x.n) as trusts
      from   weighed x
    ) as a
    cross  join lateral unnest(
             a.ids, pgrecall_internal._denied_trust(request.bank, a.ids, a.trusts)) as d(id, trust)
    join   weighed w on w.id = d.id
  ),
  factor as (
    select t.id, t.n, t.share, t.score, t.is_over, t.trust * case when t.is_over then least(1,
             min(t.score * t.trust) filter (where not t.is_over) over ()
             / nullif(max(t.score * t.trust) filter (where t.is_over) over (), 0) * 0.999)
             else 1 end as factor
    from   trusted t
  )
  select array_agg(f.id order by f.is_over, f.score * f.factor desc, f.n),
         array_agg(f.score * f.factor order by f.is_over, f.score * f.factor desc, f.n),
         array_agg(f.is_over order by f.is_over, f.score * f.factor desc, f.n),
         array_agg(case when f.factor = 1 then f.share else (
           select jsonb_object_agg(a.key, a.value || jsonb_build_object(
                    'contribution', (a.value ->> 'contribution')::double precision * f.factor))
           from   jsonb_each(f.share) as a) end
           order by f.is_over, f.score * f.factor desc, f.n)
  into   ids, scores, surplus, shares
  from   factor f;
end;
$$;
comment on function pgrecall_internal._trusted_order is
'The fused rows with scores and contributions multiplied by _denied_trust(), best first. Rows of '
'trust 0 are left out. surplus: which rows untrusted_rows and source_rows put behind all others.';

-- recall/answer.sql
-- The answer of a recall: hits are fused, ordered, and completed to rows.
--
-- _recall() is the one worker behind hybrid_recall(), explain_recall() and recall_report(). It runs
-- the arms once and returns the rows and the reports of that same run. It and all that it calls are
-- stable, so that they see one state of the bank, whatever they wait for: a volatile function could
-- read the old model of a bank during a switch of models, and then find no embeddings of it. Rows
-- are read from memory and message only after fusion has chosen them, and jsonb is built only for
-- the rows returned.
create or replace function pgrecall_internal._gated_reports(
  reports pgrecall.arm_report[], hits pgrecall.arm_hit[], gates jsonb)
returns pgrecall.arm_report[]
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  gated text[] := array(
    select h.arm from unnest(hits) as h
    except
    select h.arm from unnest(pgrecall_internal._ungated(hits, gates)) as h);
begin
  for n in 1 .. cardinality(reports) loop
    if (reports[n]).arm = any (gated) then
      reports[n].status := 'gated';
      reports[n].reason := format('best score %s is below the gate %s',
                                  round((reports[n]).best_score::numeric, 4),
                                  gates ->> (reports[n]).arm);
    end if;
  end loop;
  return reports;
end;
$$;
comment on function pgrecall_internal._gated_reports is
'The reports of a run, with arms below their gates marked as gated.';

create or replace function pgrecall_internal._doubted_reports(
  reports pgrecall.arm_report[], arms pgrecall_internal.arm_found[], given jsonb, doubted jsonb)
returns pgrecall.arm_report[]
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  share double precision;
begin
  for n in 1 .. cardinality(reports) loop
    share := (doubted ->> (reports[n]).arm)::double precision
             / nullif((given ->> (reports[n]).arm)::double precision, 0);
    if share <= 0.5 then
      reports[n].reason := concat_ws('; ', (reports[n]).reason, format(
        'counts %s%% of its weight: %s tell these memories apart, %s hardly do',
        round(100 * share),
        case (reports[n]).arm when 'lexical' then 'embeddings' else 'words' end,
        case (reports[n]).arm when 'lexical' then 'words' else 'embeddings' end));
    end if;
    -- An identifier is doubted in every model.
    if share <= 0.2 and exists (select from unnest(arms) as a
                                where  a.arm = (reports[n]).arm and a.background < 'infinity') then
      reports[n].hint := coalesce(
        (reports[n]).hint, pgrecall_internal._other_model_hint());
    end if;
  end loop;
  return reports;
end;
$$;
comment on function pgrecall_internal._doubted_reports is
'The reports of a run. The reason of an arm that counts half of its weight or less says so. At a '
'fifth or less there is a hint, too, if another model may help.';

create or replace function pgrecall_internal._late_reports(
  request pgrecall_internal.request, reports pgrecall.arm_report[], is_found boolean)
returns pgrecall.arm_report[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
  most  constant integer := 1000;
  ids   bigint[];  -- of the memories stored last, those that became known later and still hold
  late  integer;   -- how many of them the recall asks for
  asked pgrecall_internal.request := request;  -- as of now
  first integer := (
    select min(n) from generate_subscripts(reports, 1) as n where reports[n].status = 'ran');
begin
  ids := array(
    select m.memory_id
    from (
      select x.memory_id, x.valid_from, x.valid_to
      from   pgrecall.memory x
      where  x.bank_id = (request.bank).bank_id
      order  by x.bank_id desc, x.memory_id desc
      limit  most
    ) as m
    where  m.valid_from > request.as_of and (m.valid_to is null or m.valid_to > now())
  );
  late := cardinality(ids);
  if late > 0 and not (request.is_whole and request.filter is null) then
    asked.as_of := now();
    asked.fact_types := request.all_types;
    late := cardinality(pgrecall_internal._visible_places(asked, ids, most));
  end if;
  if late > 0 and first is not null then
    reports[first].reason := concat_ws('; ', reports[first].reason, format(
      'memories that were not known yet at %s are left out: %s%s', request.as_of, late,
      case cardinality(ids) when most then ' or more' end));
    if not is_found then
      reports[first].hint := coalesce(reports[first].hint,
        'A memory is known from when it was stored, or from its mentioned_at where that is '
        'earlier: retain old data with mentioned_at, or recall with a later as_of.');
    end if;
  end if;
  return reports;
end;
$$;
comment on function pgrecall_internal._late_reports is
'The reports of a run as of a time in the past. The reason of the first arm that ran says how many '
'of the 1,000 memories stored last became known later, of those that have the fact types and pass '
'the filter of the recall. If nothing was found there is a hint, too.';

create or replace function pgrecall_internal._path_prefix(via jsonb, memory_id bigint)
returns table (id text, place bigint)
language sql immutable parallel safe rows 3
begin atomic
  select f.id, f.place
  from   jsonb_array_elements_text(_path_prefix.via -> 'facts') with ordinality as f(id, place)
  where  f.place < coalesce(
           (select min(s.place)
            from   jsonb_array_elements_text(_path_prefix.via -> 'facts')
                     with ordinality as s(id, place)
            where  s.id = _path_prefix.memory_id::text), 5)
    and  f.place < 5;
end;
comment on function pgrecall_internal._path_prefix is
'The facts of a path before a memory, the first four at most. Where the memory is not on the path, '
'the first four of the path.';

create or replace function pgrecall_internal._with_via_text(
  request pgrecall_internal.request, hits pgrecall.recalled[])
returns pgrecall.recalled[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  ids   bigint[];
  texts jsonb;
  vias  jsonb[];
begin
  ids := array(
    select distinct b.id::bigint
    from   unnest(hits) as h
    cross  join lateral pgrecall_internal._path_prefix(h.via, h.memory_id) as b
  );
  request.fact_types := null;
  select jsonb_object_agg(
           m.memory_id, left(regexp_replace(left(m.text, 800), '\s+', ' ', 'g'), 200))
  into   texts
  from   unnest(pgrecall_internal._visible_places(request, ids, cardinality(ids))) as u(place)
  cross  join lateral (
    select x.memory_id, x.text from pgrecall.memory x
    where  x.bank_id = (request.bank).bank_id and x.memory_id = ids[u.place]
    limit  1
  ) as m;
  vias := array(
    select h.via || jsonb_strip_nulls(jsonb_build_object('text', (
             select string_agg(
                      texts ->> b.id,
                      case when h.via ->> 'direction' = 'cause' then ' ← ' else ' → ' end
                      order by b.place)
             from   pgrecall_internal._path_prefix(h.via, h.memory_id) as b)))
    from   generate_series(1, cardinality(hits)) as u(n)
    cross  join lateral (select (hits[u.n]).via, (hits[u.n]).memory_id) as h
    order  by u.n
  );
  for n in 1 .. cardinality(hits) loop
    hits[n].via := vias[n];
  end loop;
  return hits;
end;
$$;
comment on function pgrecall_internal._with_via_text is
'The rows of an answer with via.text: the texts of up to four facts that precede the row on its '
'path, 200 characters of each, without facts that the filter leaves out.';

create or replace function pgrecall_internal._told_paths(
  request pgrecall_internal.request, hits pgrecall.recalled[])
returns pgrecall.recalled[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  told jsonb[];
  bare jsonb[];
begin
  with element as materialized (
    select h.n, s.place, left(s.e, 1) as sort, substr(s.e, 2) as rest, s.e
    from   generate_series(1, cardinality(hits)) as h(n)
    cross  join lateral string_to_table((hits[h.n]).via #>> '{}', E'\x1f')
             with ordinality as s(e, place)
    where  jsonb_typeof((hits[h.n]).via) = 'string'
  ),
  part as (
    select e.n, e.place, e.sort, e.e as label, y.name,
           case when e.sort in ('<', '>') then regexp_replace(e.rest, ':[0-9]+$', '') end as kind,
           case when e.sort = 'f' then e.rest::bigint
                when e.sort in ('<', '>') then substring(e.rest from ':([0-9]+)$')::bigint end
             as memory_id,
           lag(e.sort) over (partition by e.n order by e.place) as before
    from   element e
    left   join lateral (
      select x.name
      from   pgrecall.entity x
      where  e.sort = 'e' and x.bank_id = (request.bank).bank_id
        and  x.entity_id = case when e.sort = 'e' then e.rest::bigint end
      limit  1
    ) as y on true
  ),
  via as (
    select p.n,
           jsonb_strip_nulls(jsonb_build_object(
             'entities', jsonb_agg(p.name order by p.place) filter (where p.name is not null),
             'relations', jsonb_agg(p.kind order by p.place) filter (where p.kind is not null),
             'facts', jsonb_agg(p.memory_id order by p.place)
                        filter (where p.memory_id is not null),
             'direction', substr(min(p.label) filter (where p.sort = '*'), 2),
             'path', case when count(p.kind) > 0 then string_agg(
               case when p.sort = '>' then ' → ' || p.kind || ' → '
                    when p.sort = '<' then ' ← ' || p.kind || ' ← '
                    when p.before = 'f' and p.place > 2 then ' – ' || p.name
                    else p.name end, '' order by p.place) end)) as told,
           -- A path that only leads from a name to a fact about it, or from a hit to a fact near it
           -- in time, says no more than the row itself.
           count(p.kind) + count(*) filter (where p.sort = '*')
           + count(*) filter (where p.sort = 'e' and p.before = 'f') > 0 as is_telling
    from   part p
    group  by p.n
  )
  select array_agg(v.told order by u.n),
         array_agg(case when (hits[u.n]).via is not null then (
                     select jsonb_object_agg(a.key, a.value - 'via')
                     from   jsonb_each((hits[u.n]).arms) as a) end order by u.n)
  into   told, bare
  from   generate_series(1, cardinality(hits)) as u(n)
  left   join via v on v.n = u.n and v.is_telling;
  for n in 1 .. cardinality(hits) loop
    if hits[n].via is not null then
      hits[n].via := told[n];
      hits[n].arms := bare[n];
    end if;
  end loop;
  if array_remove(told, null) <> '{}' then
    hits := pgrecall_internal._with_via_text(request, hits);
  end if;
  return hits;
end;
$$;
comment on function pgrecall_internal._told_paths is
'The rows of an answer, with via in a readable form: names of entities, kinds of relations, ids of '
'facts in the order of the path, the path as one line where it follows relations, the direction '
'where it follows causes, and via.text. Null where a path only leads from a name to a fact about '
'it.';

create or replace function pgrecall_internal._answer(
  request pgrecall_internal.request, hits pgrecall.arm_hit[])
returns pgrecall.recalled[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  options       jsonb := request.options;
  skip          integer := (options ->> 'skip')::integer;
  last_rank     integer := skip + request.top_k;
  min_relevance double precision := (options ->> 'min_relevance')::double precision;
  collapse      boolean := (options ->> 'collapse')::boolean;
  diversity     double precision := (options ->> 'diversity')::double precision;
  half_life     interval := (options ->> 'recency_half_life')::interval;
  is_arranged   boolean := collapse or diversity > 0 or half_life is not null;
  is_embedded   boolean := request.embedding is not null;
  idf_sum       double precision := (request.memory_terms).idf_sum;
  -- Variables, because the statement would read the options again for each hit.
  weights       jsonb := options -> 'weights';
  rrf_k         integer := (options ->> 'rrf_k')::integer;
  fusion        text := options ->> 'fusion';
  named_boost   double precision := (options ->> 'named_boost')::double precision;
  sources       jsonb := pgrecall_internal._sources(request.bank);
  is_trusting   boolean := sources = '{}' and options ->> 'source_rows' = '0';
  kept          integer := case when not is_arranged and min_relevance = 0 and is_trusting
                                     and options ->> 'prefer' = 'relevant' then last_rank end;
  ids           bigint[];
  scores        double precision[];
  shares        jsonb[];
  surplus       boolean[];  -- null: none is
  places        integer[];  -- the order; null: by score, ties by states, then by recency
  first         integer;  -- how many rows may be states: pages of any size are of one order
  states        bigint[];  -- the best row and other states of it, in order
  trusted       record;
  settled       record;
  arranged      record;
  answer        pgrecall.recalled[];
  is_doubtful   boolean;
  has_path      boolean;
begin
  if options -> 'gates' <> '{}' then
    hits := pgrecall_internal._ungated(hits, options -> 'gates');
  end if;
  -- Ties at the last rank are kept until recency breaks them.
  select array_agg(f.memory_id), array_agg(f.score), array_agg(f.arms),
         count(*) filter (where f.rank <= 40)
  into   ids, scores, shares, first
  from   pgrecall_internal._fuse(
           hits, request.found, weights, rrf_k, fusion, named_boost, kept) as f
  where  min_relevance = 0
     or  pgrecall_internal._relevance(f.arms, idf_sum, is_embedded) >= min_relevance;
  if not is_trusting and ids is not null then
    trusted := pgrecall_internal._trusted_order(request, sources, ids, scores, shares);
    ids := trusted.ids;
    scores := trusted.scores;
    shares := trusted.shares;
    surplus := trusted.surplus;
  end if;
  if options ->> 'prefer' = 'relevant' and cardinality(ids) > 1 then
    settled := pgrecall_internal._settled_states(
      request, sources, first, ids, scores, shares, surplus);
    ids := settled.ids;
    shares := settled.shares;
    states := settled.states;
  end if;
  if is_arranged then
    arranged := pgrecall_internal._reordered(
      request.bank, last_rank, collapse, diversity, half_life, options ->> 'recency_decay',
      request.as_of, states, ids, scores, shares, surplus);
    ids := arranged.ids;
    scores := arranged.scores;
    shares := arranged.arms;
    surplus := arranged.surplus;
    places := array(select generate_series(1, cardinality(ids)));
  elsif options ->> 'prefer' <> 'relevant' and cardinality(ids) > 1 then
    -- The row that is n-th in the new order gets place n.
    places := array(
      select u.n
      from   unnest(pgrecall_internal._preferred_order(request, sources, ids, scores, surplus))
               with ordinality as u(p, n)
      order  by u.p);
  end if;

  select coalesce(array_agg(a.hit order by a.rank), '{}'),
         bool_or((a.hit).fact_key is not null) or (request.bank).single_relations <> '{}'
         or (request.bank).replace in ('relation', 'both'),
         bool_or((a.hit).via is not null)
  into   answer, is_doubtful, has_path
  from (
    select s.rank, (
             s.rank, s.memory_id, s.kind, s.fact_type, s.text, s.context, s.fact_key, s.source_id,
             s.tags, s.metadata, s.occurred, s.mentioned_at, s.confidence, s.score, s.arms,
             pgrecall_internal._relevance(s.arms, idf_sum, is_embedded),
             s.proof_count, lower(s.occurred), upper(s.occurred),
             (select a.value -> 'via' from jsonb_each(s.arms) as a
              where  a.value ? 'via'
              order  by (a.value ->> 'contribution')::double precision desc, a.key
              limit  1), null, s.written_by, s.stored_at,
             pgrecall_internal._trust(sources, s.source_id), null,
             s.is_surplus is true,
             case when array_position(states, s.memory_id) > 1 then states[1] end
             )::pgrecall.recalled as hit
    from (
      select r.*, (row_number() over (
               order by r.place, r.is_surplus, r.score desc,
                        array_position(states, r.memory_id), r.mentioned_at desc,
                        r.memory_id desc))::integer as rank
      from (
        select m.memory_id, 'memory', m.fact_type, m.text, m.context, m.fact_key, m.source_id,
               m.tags, m.metadata, m.occurred, m.mentioned_at, m.confidence, m.proof_count,
               f.score, f.arms, f.place, m.written_by, m.created_at, f.is_surplus
        from   unnest(ids, scores, shares, places, surplus)
                 as f(memory_id, score, arms, place, is_surplus)
        cross  join lateral (
          select x.* from pgrecall.memory x
          where  x.bank_id = (request.bank).bank_id and x.memory_id = f.memory_id
          limit  1
        ) as m
        union all
        select t.message_id, 'message', null, t.text, t.speaker, null, t.session_id, '{}',
               '{}', null, t.sent_at, null, null, f.score, f.arms, f.place, null, null,
               f.is_surplus
        from   unnest(ids, scores, shares, places, surplus)
                 as f(memory_id, score, arms, place, is_surplus)
        cross  join lateral (
          select x.* from pgrecall.message x
          where  x.bank_id = (request.bank).bank_id and x.message_id = f.memory_id
          limit  1
        ) as t
      ) as r(memory_id, kind, fact_type, text, context, fact_key, source_id, tags, metadata,
             occurred, mentioned_at, confidence, proof_count, score, arms, place, written_by,
             stored_at, is_surplus)
      order  by rank
      offset skip
      limit  request.top_k
    ) as s
  ) as a;
  -- Facts conflict if they share a key, or a relation of which the bank allows only one.
  if is_doubtful then
    answer := pgrecall_internal._with_conflicts(request, answer);
  end if;
  return case when has_path then pgrecall_internal._told_paths(request, answer) else answer end;
end;
$$;
comment on function pgrecall_internal._answer is
'The rows of an answer from the hits of the arms: fused, filtered by relevance, and ordered. The '
'weights in the request are those that _doubted_weights() returned.';

create or replace function pgrecall_internal._with_tokens(
  request pgrecall_internal.request, hits pgrecall.recalled[])
returns pgrecall.recalled[]
language plpgsql stable parallel safe
set search_path from current
-- Cached plans must use an index, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  found bytea[];
begin
  select array_agg(e.tokens order by u.n) into found
  from   generate_series(1, cardinality(hits)) as u(n)
  left   join lateral (
    select x.tokens
    from   pgrecall.embedding x
    where  x.bank_id = (request.bank).bank_id and x.memory_id = hits[u.n].memory_id
      and  x.model = coalesce((request.bank).embedding_model, '') and x.kind = 'text'
    limit  1
  ) as e on true;
  for n in 1 .. cardinality(hits) loop
    hits[n].tokens := found[n];
  end loop;
  return hits;
end;
$$;
comment on function pgrecall_internal._with_tokens is
'The rows of an answer with the token vectors of their memories.';

create or replace function pgrecall_internal._fence_key(bank text)
returns uuid
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return (
    select b.fence_key
    from   pg_proc p
    join   pgrecall.bank b on b.bank_id = _fence_key.bank
    where  p.oid = 'pgrecall_internal._searched_recall'::regproc
      and  p.prosecdef and pg_get_userbyid(p.proowner) <> current_user
      and  has_function_privilege(p.oid, 'execute')
  );
end;
$$;
comment on function pgrecall_internal._fence_key is
'The fence_key of a bank, for a role that may call _searched_recall() with the rights of another '
'role. Null for all others.';

create or replace function pgrecall_internal._searched_recall(
  key        uuid,
  bank       text,
  query      text,
  embedding  halfvec,
  during     tstzrange,
  fact_types text[],
  tags       text[],
  filter     text,
  top_k      bigint,
  as_of      timestamptz,
  model      text,
  options    jsonb,
  is_run     boolean,
  out hits pgrecall.recalled[],
  out arms pgrecall.arm_report[])
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  run    record;
  caller constant name := coalesce(nullif(current_setting('role'), 'none'), session_user);
begin
  -- The key proves that the caller could read the bank once. Whether the role behind it still may,
  -- the policies say. Other policies may hide more.
  if exists (
       select from pgrecall.bank b
       where  b.bank_id = _searched_recall.bank and b.fence_key = _searched_recall.key)
     and exists (
       select
       from   pg_policy p
       join   pg_class c on c.oid = p.polrelid
       cross  join lateral pg_get_expr(p.polqual, p.polrelid) as condition
       where  c.oid = 'pgrecall.bank'::regclass and c.relrowsecurity
         and  case
                when p.polname = 'pgrecall_admin' then exists (
                  select from unnest(p.polroles) as r where pg_has_role(caller, r, 'usage'))
                when p.polname <> 'pgrecall_bank' then false
                when condition ~ '_member_banks' then exists (
                  select from pg_roles r
                  where  r.rolname = _searched_recall.bank and not r.rolsuper
                    and  pg_has_role(caller, r.oid, 'usage'))
                when condition ~ 'CURRENT_USER' then _searched_recall.bank = caller
                else condition ~ 'current_setting' end)
     -- A restore without the roles leaves the function to who restored, with all rights.
     and exists (
       select
       from   pg_policy p
       join   pg_roles r on r.oid = any (p.polroles)
       where  p.polrelid = 'pgrecall.bank'::regclass and p.polname = 'pgrecall_searcher'
         and  r.rolname = current_user)
     and not exists (
       select
       from   pg_policy p
       join   pg_class c on c.oid = p.polrelid
       where  c.relnamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
         and  p.polname not in ('pgrecall_bank', 'pgrecall_admin', 'pgrecall_searcher'))
  then
    run := pgrecall_internal._recall(
      bank, query, embedding, during, fact_types, tags, filter, top_k, as_of, model, options,
      is_run);
    hits := run.hits;
    arms := run.arms;
  end if;
end;
$$;
comment on function pgrecall_internal._searched_recall is
'_recall() with the rights of the owner of this function, for a caller that has the fence_key of '
'the bank and whose role, that of the session or of its "set role", sees the bank by the policies '
'of enable_row_security(). Null for others, where there are other policies, and where the owner is '
'no searcher of create_roles().';

create or replace function pgrecall_internal._recall(
  bank       text,
  query      text,
  embedding  halfvec,
  during     tstzrange,
  fact_types text[],
  tags       text[],
  filter     text,
  top_k      bigint,
  as_of      timestamptz,
  model      text,
  options    jsonb,
  is_run     boolean default true,
  out hits pgrecall.recalled[],
  out arms pgrecall.arm_report[])
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  request pgrecall_internal.request;
  run     record;
  weights jsonb;
  key     uuid;
begin
  if row_security_active('pgrecall.memory') then
    key := pgrecall_internal._fence_key(bank);
    if key is not null then
      run := pgrecall_internal._searched_recall(
        key, bank, query, embedding, during, fact_types, tags, filter, top_k, as_of, model,
        options, is_run);
      hits := run.hits;
      arms := run.arms;
    end if;
    if arms is not null then
      return;
    end if;
  end if;
  request := pgrecall_internal._request(
    bank, query, embedding, during, fact_types, tags, filter, top_k, as_of, model, options);
  run := pgrecall_internal._run(request, not is_run);
  arms := run.reports;
  if is_run then
    request.found := run.arms;
    weights := pgrecall_internal._doubted_weights(request.options, run.arms);
    if weights <> request.options -> 'weights' then
      arms := pgrecall_internal._doubted_reports(
        arms, run.arms, request.options -> 'weights', weights);
      request.options := jsonb_set(request.options, '{weights}', weights);
    end if;
    hits := pgrecall_internal._answer(request, run.hits);
    if (request.options ->> 'with_tokens')::boolean then
      hits := pgrecall_internal._with_tokens(request, hits);
    end if;
    if request.options -> 'gates' <> '{}' then
      arms := pgrecall_internal._gated_reports(arms, run.hits, request.options -> 'gates');
    end if;
    -- Not where a client gives its own clock for now.
    if request.as_of < now() - interval '1 minute' then
      arms := pgrecall_internal._late_reports(request, arms, run.hits <> '{}');
    end if;
  end if;
end;
$$;
comment on function pgrecall_internal._recall is
'One recall: its rows, and the reports of that same run. is_run => false runs nothing, and reports '
'what would run. The bank is its first argument, so that a cluster can run all of it on the node '
'of the bank.';

-- recall/recall.sql
-- The recall family: four views of one run, with the same eleven arguments.
--
-- hybrid_recall() returns the rows, explain_recall() the reports of the arms, recall_report() both,
-- arm_hits() the hits of the arms before fusion. Their signatures and row types never change again:
-- a new setting is an option (recall_options()), a new column is an attribute at the end of its
-- type. The argument types accept what clients send: embedding takes any kind of vector, array or
-- text, during any range or text, filter an expression or JSON.
create or replace function pgrecall.hybrid_recall(
  bank       text,
  query      text,
  embedding  anycompatible default null::text,
  during     pgrecall_internal.period default null,
  fact_types text[] default null,
  tags       text[] default null,
  filter     text default null,
  top_k      bigint default 10,
  as_of      timestamptz default now(),
  model      text default null,
  options    jsonb default '{}')
returns setof pgrecall.recalled
language plpgsql volatile parallel unsafe rows 10
set search_path from current
as $$
begin
  return query
  select h.*
  from   unnest((pgrecall_internal._recall(
           bank, query, pgrecall_internal._to_halfvec(embedding),
           pgrecall_internal._range_of_period(during), fact_types, tags, filter, top_k, as_of,
           model, options)).hits) as h;
end;
$$;
comment on function pgrecall.hybrid_recall is
'The memories of a bank that best answer a query, best first: every arm that applies runs, and '
'fusion joins their hits. Without an embedding all arms but semantic and hypothetical answer. '
'embedding is a halfvec, a vector, an array of numbers, or text such as ''[0.1, 0.2]''. during is '
'a range or text, ''[2026-03-01, 2026-04-01)'', and raises facts that occurred in it; option '
'window is a window by name, ''{"window": "last quarter"}''. tags keeps memories with any of them. '
'filter is a condition, ''confidence > 0.8 and metadata->>''''team'''' = ''''core'''''', or the '
'same as JSON. as_of answers from what was known at an earlier time. model names the model that '
'made the embedding. All else is in options: {"diversity": 0.2}, see recall_options(). A memory '
'that mentions an entity named in the query counts more. Of rows that say nearly the same as the '
'best one, and that the query does not tell apart, the latest comes first (variant_of). A row of '
'kind message is a raw message. Errors: RC001 bank, RC004 dimensions, RC005 model, RC006 vector, '
'RC007 nothing to recall by, RC008 fact type, RC009 arm, RC011 filter, 22023 value out of range.';

create or replace function pgrecall.recall_report(
  bank       text,
  query      text,
  embedding  anycompatible default null::text,
  during     pgrecall_internal.period default null,
  fact_types text[] default null,
  tags       text[] default null,
  filter     text default null,
  top_k      bigint default 10,
  as_of      timestamptz default now(),
  model      text default null,
  options    jsonb default '{}')
returns pgrecall.recall_report
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  run  record;
begin
  run := pgrecall_internal._recall(
    bank, query, pgrecall_internal._to_halfvec(embedding),
    pgrecall_internal._range_of_period(during), fact_types, tags, filter, top_k, as_of, model,
    options);
  return (run.hits, run.arms)::pgrecall.recall_report;
end;
$$;
comment on function pgrecall.recall_report is
'The rows of hybrid_recall() and the reports of explain_recall(), both of one run. Arguments and '
'errors as hybrid_recall().';

create or replace function pgrecall.explain_recall(
  bank       text,
  query      text,
  embedding  anycompatible default null::text,
  during     pgrecall_internal.period default null,
  fact_types text[] default null,
  tags       text[] default null,
  filter     text default null,
  top_k      bigint default 10,
  as_of      timestamptz default now(),
  model      text default null,
  options    jsonb default '{}',
  is_run     boolean default true)
returns setof pgrecall.arm_report
language plpgsql volatile parallel unsafe rows 8
set search_path from current
as $$
begin
  return query
  select a.*
  from   unnest((pgrecall_internal._recall(
           bank, query, pgrecall_internal._to_halfvec(embedding),
           pgrecall_internal._range_of_period(during), fact_types, tags, filter, top_k, as_of,
           model, coalesce(options, '{}') || '{"explain": true}',
           coalesce(is_run, true))).arms) as a;
end;
$$;
comment on function pgrecall.explain_recall is
'Report of each arm for a recall with these arguments: whether it ran, was gated, was skipped or '
'failed, and why; rows found, best score, milliseconds, and indexes scanned (null with '
'track_counts off). is_run => false runs nothing and reports which arms would run (planned); the '
'graph arm may still be skipped when its seeds lead nowhere. Arguments and errors as '
'hybrid_recall().';

create or replace function pgrecall.arm_hits(
  bank       text,
  query      text,
  embedding  anycompatible default null::text,
  during     pgrecall_internal.period default null,
  fact_types text[] default null,
  tags       text[] default null,
  filter     text default null,
  top_k      bigint default 10,
  as_of      timestamptz default now(),
  model      text default null,
  options    jsonb default '{}')
returns setof pgrecall.arm_hit
language plpgsql volatile parallel unsafe rows 300
set search_path from current
as $$
declare
  request pgrecall_internal.request;
begin
  request := pgrecall_internal._request(
    bank, query, pgrecall_internal._to_halfvec(embedding),
    pgrecall_internal._range_of_period(during), fact_types, tags, filter, top_k, as_of, model,
    options);
  -- Whoever tries other weights needs the hits of arms with weight 0, too. With a weight of 1e-9
  -- such an arm runs, but has no say in where the graph arm starts.
  request.options := request.options || jsonb_build_object('weights', (
    select jsonb_object_agg(a.arm, greatest(
             1e-9, coalesce((request.options -> 'weights' ->> a.arm)::double precision, a.weight)))
    from   pgrecall.arms() as a));
  if request.named = '{}' then
    request.named := array(
      select n from pgrecall_internal._named_entities(bank, request.query) as n);
  end if;
  return query
  select h.* from unnest((pgrecall_internal._run(request, false)).hits) as h;
end;
$$;
comment on function pgrecall.arm_hits is
'Hits of each arm for a recall with these arguments, whatever its weight: the input of fuse(). A '
'memory has a row for each arm that found it. Arguments and errors as hybrid_recall().';

-- recall/rerank.sql
-- Reranking: joins the fused scores of hits with the relevance that a reranker gives their texts.
-- The driver passes the relevances of late interaction or of a cross-encoder; any client may pass
-- its own. No table is read.
create or replace function pgrecall.rerank(
  hits       pgrecall.recalled[],
  relevances double precision[],
  boosts     double precision[] default '{}',
  mode       text default 'blend')
returns setof pgrecall.reranked
language plpgsql immutable parallel safe rows 50
set search_path from current
as $$
declare
  is_blend boolean := mode = 'blend';
  worth    double precision := case when is_blend
    then (select greatest(0, least(1, (stddev_pop(r) - 0.05) / 0.01)) from unnest(relevances) as r)
    else 1 end;
  odd      double precision;
  highest  double precision := (
    select max(r)
    from   unnest(relevances) with ordinality as u(r, n)
    where  hits[u.n].is_surplus is not true);
  best     double precision := (select nullif(max(h.score), 0) from unnest(hits) as h);
  named_states bigint[] := array(select h.variant_of from unnest(hits) as h);
  finals   double precision[];
  ordered  integer[];  -- places, in fused order, of hits with a relevance, by final score
  held     boolean[];  -- whether a hit has a path
  placed   boolean[];  -- whether a hit has its place in the answer
  next     integer := 1;  -- in ordered
  chosen   integer[] := '{}';
begin
  if coalesce(mode not in ('blend', 'replace'), true) then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('mode must be "blend" or "replace", not "%s"', mode),
      hint    = 'With "blend" the fused score counts beside the relevance.';
  end if;
  select r into odd from unnest(relevances) as r where r not between 0 and 1 limit 1;
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('a relevance must be between 0 and 1, not %s', odd),
      hint    = 'Make relevances of logits first, by 1 / (1 + exp(-logit)).';
  end if;
  select b into odd from unnest(boosts) as b where b not between 0 and 1000000 limit 1;
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('a boost must be between 0 and 1000000, not %s', odd),
      hint    = 'It multiplies the score of a row: 1 changes nothing.';
  elsif highest is null or worth = 0 then
    return query
    select h.memory_id, h.ordinality::integer, null::double precision, h.score,
           1::double precision, 0::double precision
    from   unnest(hits) with ordinality as h;
    return;
  end if;

  -- A reranker reads only the text. The part of a score that a key, a time window, a rare name or a
  -- path gave stays.
  with scored as materialized (
    select h.ordinality::integer as place, h.via,
           case when is_blend and (h.variant_of is not null or h.memory_id = any (named_states))
             then coalesce(h.variant_of, h.memory_id) else -h.ordinality end as variant,
           case when h.is_surplus is not true then 1 end
           * coalesce(boosts[h.ordinality], 1) * case when is_blend
             then (h.score - s.said * (1 - exp(6 * worth * (relevances[h.ordinality] - highest))))
                  / coalesce(best, 1)
             else relevances[h.ordinality] end as final
    from   unnest(hits) with ordinality as h
    cross  join lateral (
      select case when h.via is null then h.score - coalesce(sum(
               (a.value ->> 'contribution')::double precision * case
                 when a.key in ('key', 'temporal') then 1
                 else coalesce((a.value ->> 'named')::double precision, 0) end), 0)
             else 0 end as said
      from   jsonb_each(h.arms) as a
    ) as s
  ),
  -- Other states of one row share its places as before: the first of them gets the best score.
  placed_in as (
    select s.*, row_number() over (partition by s.variant order by s.place) as state,
           row_number() over (partition by s.variant order by s.final desc nulls last) as better
    from   scored s
  )
  select array_agg(b.final order by a.place),
         array_agg(a.place order by b.final desc, a.place) filter (where b.final is not null),
         array_agg(a.via is not null and is_blend order by a.place),
         array_agg(false)
  into   finals, ordered, held, placed
  from   placed_in a
  join   placed_in b on b.variant = a.variant and b.better = a.state;
  for place in 1 .. coalesce(cardinality(hits), 0) loop
    if finals[place] is null or held[place] and not placed[place] then
      chosen[place] := place;
    else
      while placed[ordered[next]] loop
        next := next + 1;
      end loop;
      chosen[place] := ordered[next];
    end if;
    placed[chosen[place]] := true;
  end loop;
  return query
  select h.memory_id, c.rank::integer,
         case when finals[c.place] is not null then relevances[c.place] end,
         max(coalesce(finals[c.place], 0)) over (order by c.rank desc),
         case when finals[c.place] is null then 1 else coalesce(boosts[c.place], 1) end, worth
  from   unnest(chosen) with ordinality as c(place, rank)
  join   unnest(hits) with ordinality as h on h.ordinality = c.place
  order  by c.rank;
end;
$$;
comment on function pgrecall.rerank is
'Rows of hybrid_recall(), in its order, reranked by the relevance that a reranker gives their '
'texts: a number from 0 to 1 for each of the first rows, null where there is none. With mode blend '
'the share of the best score is multiplied by e ^ (6 * trust * (relevance - best relevance)), then '
'by the boost, 1 where none is given. trust is how much the relevances say about this question: it '
'grows from 0 to 1 as their standard deviation grows from 0.05 to 0.06. Relevances that lie '
'close together, as those of long texts about one subject, say little; at 0 the fused order stays. '
'A row that a path led to (via) is not lowered, and never falls below its fused place; nor is the '
'part of a score lowered that a key, a time window or a rare name gave. Rows with variant_of and '
'the row that it names share their places and scores in that order. With mode replace the '
'relevance alone counts. A row without relevance keeps its place, as does one that untrusted_rows '
'or source_rows put behind all others, and rows behind the last relevance stay behind. '
'Errors: 22023 another mode, a relevance outside 0 to 1, a boost outside 0 to 1,000,000.';

-- recall/why-not.sql
-- Why a memory is not in an answer: why_not() follows one memory or message through a recall.
--
-- The recall runs as in hybrid_recall(). The steps are those of a recall: whether the memory itself
-- is out of reach (it has ended, its type, the filter), each arm, the fusion, the answer. An arm
-- that missed the memory is called a second time for that memory alone, with the seeds of the run.
-- The score that it then gives is compared with that of the last hit of the arm, whatever the size
-- of the bank. No arm is named here; what is said of an arm follows from its row in arms().
create or replace function pgrecall_internal._failing_condition(
  bank text, memory_id bigint, condition jsonb)
returns jsonb
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  part   jsonb;
  failed jsonb;
  passes boolean;
begin
  if condition ->> 0 = 'and' then
    for part in select c.value from jsonb_array_elements(condition - 0) as c loop
      failed := pgrecall_internal._failing_condition(bank, memory_id, part);
      exit when failed is not null;
    end loop;
    return failed;
  end if;
  -- The text of the filter does not become part of the statement: see values/filter.sql.
  execute format(
    'select exists (select from pgrecall.memory m'
    ' where m.bank_id = $1 and m.memory_id = $4 and %s)', pgrecall_internal._filter_sql(condition))
  into  passes
  using bank, null::timestamptz, condition, memory_id;
  return case when not passes then condition end;
end;
$$;
comment on function pgrecall_internal._failing_condition is
'The first part of a filter that a memory does not meet. Null: it meets all.';

create or replace function pgrecall_internal._invisible_reason(
  request pgrecall_internal.request, memory pgrecall.memory)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  failed jsonb;
begin
  if pgrecall_internal._is_hidden(memory.valid_from, memory.valid_to, memory.corrections) then
    return format('its source, "%s", is in quarantine', memory.source_id);
  elsif memory.valid_from > request.as_of then
    return format('it is known from %s on, when it was stored or, where that is earlier, its '
                  'mentioned_at; the recall is as of %s', memory.valid_from, request.as_of);
  elsif memory.valid_to <= request.as_of then
    return format('it ended at %s: %s', memory.valid_to, concat_ws(' ',
      case memory.corrections -> -1 ->> 'kind'
        when 'supersede' then 'it was superseded'
        when 'update' then 'it was updated'
        when 'consolidate' then 'it was merged'
        when 'retain' then 'a newer fact replaced it'
        else case when memory.superseded_by is null then 'it expired'
                  else 'a newer fact replaced it' end
      end, 'by ' || memory.superseded_by));
  elsif memory.fact_type <> all (request.all_types) then
    return format('its type is %s, and asked for is %s', memory.fact_type,
                  coalesce(nullif(array_to_string(request.all_types, ', '), ''), 'none'));
  end if;
  failed := pgrecall_internal._failing_condition(
    memory.bank_id, memory.memory_id, request.filter);
  return format('it does not meet %s', left(failed::text, 200)) where failed is not null;
end;
$$;
comment on function pgrecall_internal._invisible_reason is
'Why a memory itself is out of reach of a recall; null: it is not.';

create or replace function pgrecall_internal._missed_step(
  request pgrecall_internal.request, arm pgrecall.arm, memory_id bigint, hits pgrecall.arm_hit[])
returns pgrecall.recall_step
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  step      pgrecall.recall_step := (arm.arm, 'missed', null, null, null);
  bank      pgrecall.bank := request.bank;
  floor     double precision := (request.options ->> 'similarity_floor')::double precision;
  is_vector boolean := arm.needs && '{embedding,hypothetical}';
  is_word   boolean := 'terms' = any (arm.needs);
  found     bigint;
  worst     double precision;
  before    pgrecall.arm_hit[];
  alone     pgrecall_internal.arm_result;
begin
  if is_vector and not exists (
    select from pgrecall.embedding e
    where  e.bank_id = bank.bank_id and e.memory_id = _missed_step.memory_id
      and  e.model = coalesce(bank.embedding_model, ''))
  then
    step.reason := 'it has no embedding of the model of the bank';
    return step;
  elsif is_word and pgrecall_internal._recheck_lexemes(
          bank, arm.finds, array[memory_id], request.lexemes) = '{}' then
    step.reason := 'it has no word of the query';
    return step;
  end if;
  -- Behind depth are only hits about whom the query names.
  select count(*) filter (where h.arm = arm.arm and h.rank <= request.depth),
         min(h.score) filter (where h.arm = arm.arm and h.rank <= request.depth),
         array_agg((h.arm, h.memory_id, h.rank, h.score, h.named, h.via,
                    h.background)::pgrecall.arm_hit
                   order by h.n) filter (where a.place < arm.place)
  into   found, worst, before
  from   unnest(hits) with ordinality
           as h(arm, memory_id, rank, score, named, via, background, n)
  join   pgrecall.arms() as a on a.arm = h.arm;
  -- Alone it competes with nothing, so only its score counts.
  if arm.finds = 'memory' then
    request.filter := jsonb_build_array('=', 'memory_id', memory_id);
    request.visible_sql := pgrecall_internal._visible_sql(request.filter);
    request.fact_types := request.all_types;
    request.options := request.options
                       || '{"similarity_floor": -1, "exact_limit": 9000000000000000}';
    alone := (pgrecall_internal._call_arm(
      arm.arm, request, coalesce(before, '{}'), false)).result;
    step.score := alone.scores[array_position(alone.memory_ids, memory_id)];
  end if;
  step.reason := case
    when step.score is null and is_word and (request.phrases <> '{}' or request.excluded <> '{}')
      then 'a phrase that it lacks, or a word that it must not have, keeps it out'
    when step.score is null and found = 0 then 'the arm found nothing'
    when step.score is null then format('it is none of the %s that the arm leads to', found)
    when is_vector and step.score < floor
      then format('its similarity is below similarity_floor, %s', floor)
    when step.score <= worst
      then format('the arm found %s with a score of at least %s', found, round(worst::numeric, 4))
    else 'an approximate search passed it by'
  end;
  return step;
end;
$$;
comment on function pgrecall_internal._missed_step is
'Why an arm that ran did not find a memory within reach of the recall, and the score that the arm '
'gives to the memory alone; null: none. hits: those of all arms.';

create or replace function pgrecall_internal._answer_steps(
  request pgrecall_internal.request, memory_id bigint, hits pgrecall.arm_hit[], source_id text)
returns setof pgrecall.recall_step
language plpgsql stable parallel unsafe rows 2
set search_path from current
as $$
declare
  options jsonb := request.options;
  skip    integer := (options ->> 'skip')::integer;
  top_k   integer := request.top_k;
  least   double precision := (options ->> 'min_relevance')::double precision;
  fused   record;
  answer  pgrecall.recalled[];
  place   integer;
  likely  double precision;
begin
  options := jsonb_set(options, '{weights}', pgrecall_internal._doubted_weights(
    options, request.found));
  select f.* into fused
  from (
    select u.*, count(*) over () as others
    from   pgrecall_internal._fuse(
             pgrecall_internal._ungated(hits, options -> 'gates'), request.found,
             options -> 'weights', (options ->> 'rrf_k')::integer, options ->> 'fusion',
             (options ->> 'named_boost')::double precision) as u
  ) as f
  where  f.memory_id = _answer_steps.memory_id;
  if not found then
    return query
    select s.step, s.status, null::integer, null::double precision,
           case when exists (select from unnest(hits) as h
                             where h.memory_id = _answer_steps.memory_id)
             then 'only arms below their gates found it' else 'no arm found it' end
    from  (values ('fusion', 'missed'), ('answer', 'left out')) as s(step, status);
    return;
  end if;
  return query values ('fusion', 'found', fused.rank, fused.score, format('of %s', fused.others));

  -- The whole order, of which the answer is a part.
  request.top_k := cardinality(hits);
  request.options := options || '{"skip": 0}';
  answer := pgrecall_internal._answer(request, hits);
  place := (select a.rank from unnest(answer) as a where a.memory_id = _answer_steps.memory_id);
  likely := pgrecall_internal._relevance(
    fused.arms, (request.memory_terms).idf_sum, request.embedding is not null);
  return query values (
    'answer',
    case when place > skip and place <= skip + top_k then 'returned' else 'left out' end,
    place, fused.score,
    case
      when place <= skip then format('an earlier page has it: skip is %s', skip)
      when place > skip + top_k
        then format('of %s; the answer ends at %s', cardinality(answer), skip + top_k)
      when place is not null then format('of %s', cardinality(answer))
      when pgrecall_internal._trust(pgrecall_internal._sources(request.bank), source_id) = 0
        then format('the trust in its source, "%s", is 0', source_id)
      when likely < least
        then format('its relevance is %s, and min_relevance %s', round(likely::numeric, 4), least)
      else format('a better row has its source_id, "%s", and collapse is set', source_id)
    end);
end;
$$;
comment on function pgrecall_internal._answer_steps is
'The steps of why_not() after the arms: the place of the memory in the fusion and in the answer. '
'hits: those of all arms. source_id: that of the memory.';

create or replace function pgrecall_internal._why_not(
  request pgrecall_internal.request, asked_id bigint)
returns setof pgrecall.recall_step
language plpgsql stable parallel unsafe rows 14
set search_path from current
as $$
declare
  run     record;
  hits    pgrecall.arm_hit[];
  kind    text := 'memory';
  memory  pgrecall.memory;
  message pgrecall.message;
  reason  text;
  arm     pgrecall.arm;
  hit     pgrecall.arm_hit;
  report  pgrecall.arm_report;
begin
  select m.* into memory
  from   pgrecall.memory m
  where  m.bank_id = (request.bank).bank_id and m.memory_id = asked_id;
  if not found then
    select t.* into message
    from   pgrecall.message t
    where  t.bank_id = (request.bank).bank_id and t.message_id = asked_id;
    if not found then
      perform pgrecall_internal._check_memory((request.bank).bank_id, asked_id);
    end if;
    kind := 'message';
  end if;
  run := pgrecall_internal._run(request, false);
  hits := run.hits;
  request.found := run.arms;
  reason := case
    when kind = 'memory' then pgrecall_internal._invisible_reason(request, memory)
    when request.filter is not null then 'a filter is about memories, and it is a message'
    when message.sent_at > request.as_of
      then format('it was sent at %s, and the recall is as of %s', message.sent_at, request.as_of)
  end;
  if reason is null and memory.fact_type <> all (request.fact_types)
     and not exists (select from unnest(hits) as h where h.memory_id = asked_id)
  then
    reason := format('its type is %s, and the recall was narrowed: %s', memory.fact_type,
                     request.note);
  end if;
  if reason is not null then
    return query values
      ('reach', 'left out', null::integer, null::double precision, reason),
      ('answer', 'left out', null, null, reason);
    return;
  end if;
  return query values ('reach', 'found', null::integer, null::double precision, null::text);
  for arm in select a.* from pgrecall.arms() as a where a.finds = kind order by a.place loop
    select r.* into report
    from   unnest(pgrecall_internal._gated_reports(
             run.reports, run.hits, request.options -> 'gates')) as r
    where  r.arm = arm.arm;
    select h.* into hit from unnest(hits) as h where h.arm = arm.arm and h.memory_id = asked_id;
    return query
    select s.*
    from   (select arm.arm, case when report.status = 'ran' then 'found' else report.status end,
                   hit.rank, hit.score,
                   case when report.status <> 'ran' then report.reason end
            where  hit.memory_id is not null or report.status <> 'ran') as s
    union all
    select m.*
    from   pgrecall_internal._missed_step(request, arm, asked_id, hits) as m
    where  hit.memory_id is null and report.status = 'ran';
  end loop;
  return query
  select s.*
  from   pgrecall_internal._answer_steps(
           request, asked_id, hits, coalesce(memory.source_id, message.session_id)) as s;
end;
$$;
comment on function pgrecall_internal._why_not is
'Worker of why_not(). Errors: RC010 unknown memory.';

create or replace function pgrecall.why_not(
  bank       text,
  query      text,
  memory_id  bigint,
  embedding  anycompatible default null::text,
  during     pgrecall_internal.period default null,
  fact_types text[] default null,
  tags       text[] default null,
  filter     text default null,
  top_k      bigint default 10,
  as_of      timestamptz default now(),
  model      text default null,
  options    jsonb default '{}')
returns setof pgrecall.recall_step
language plpgsql volatile parallel unsafe rows 14
set search_path from current
as $$
begin
  return query
  select s.*
  from   pgrecall_internal._why_not(
           pgrecall_internal._request(
             bank, query, pgrecall_internal._to_halfvec(embedding),
             pgrecall_internal._range_of_period(during), fact_types, tags, filter, top_k, as_of,
             model, options),
           memory_id) as s;
end;
$$;
comment on function pgrecall.why_not is
'Why a memory or message is not in the answer to a query, or its place there: a row for each step '
'of the recall, in order. The memory itself may be out of reach; each arm found it at a rank, or '
'missed it for a reason; the fusion gives it a place; the answer returns it, or leaves it out for '
'a reason. An arm that missed the memory is called for it alone, and score is what the arm then '
'gives it. Takes a little longer than a recall. Other arguments and errors as hybrid_recall(), and '
'RC010 unknown memory.';

-- operations/attachment.sql
-- Attaching a table of the user's own: its rows become memories, which follow changes of the rows.
--
-- attach_table() checks columns and rights, stores the mapping, and creates four statement triggers
-- on the table that note changed keys (state/attachment.sql). The triggers run a function that
-- attach_table() creates beside the table, with the rights of the table's owner. Hence a role that
-- may write to the table needs no right in pgrecall, and no code runs with the rights of somebody
-- else. The function only inserts keys. With apply => 'commit' it also syncs them when the
-- transaction commits, after its last statement, so that it locks no bank while it waits for a row.
-- If constraints are set immediate, the next change or sync brings them into the bank. sync_table()
-- (operations/sync.sql) does the rest. Statements consist of names from the catalog (%I) and quoted
-- constants (%L).
create or replace function pgrecall_internal._attachment_name(bank text, relation text)
returns text
language sql immutable parallel safe
return 'pgrecall_'
       || left(encode(sha256(convert_to(bank || ' ' || relation, 'UTF8')), 'hex'), 16);
comment on function pgrecall_internal._attachment_name is
'Name of the function, and first part of the names of the triggers, of an attached table.';

create or replace function pgrecall_internal._attachment(bank text, relation text)
returns pgrecall.attachment
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  found_ones pgrecall.attachment[];
begin
  found_ones := array(
    select a from pgrecall.attachment a
    where  a.bank_id = _attachment.bank
      and  (a.relation = _attachment.relation
            or (parse_ident(a.relation))[2] = _attachment.relation)
    order  by a.relation);
  if cardinality(found_ones) <> 1 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = case cardinality(found_ones)
        when 0 then format('table "%s" is not attached to bank "%s"', relation, bank)
        else format('several tables "%s" are attached to bank "%s"', relation, bank) end,
      hint    = coalesce(
        'Attached are: ' || (select string_agg(a.relation, ', ' order by a.relation)
                             from   pgrecall.attachment a
                             where  a.bank_id = _attachment.bank),
        format('Attach it with: select * from pgrecall.attach_table(%L, %L, ''id'', ''body'');',
               bank, relation));
  end if;
  return found_ones[1];
end;
$$;
comment on function pgrecall_internal._attachment is
'The attachment of a table, by its name with or without the schema. Errors: 22023 none.';

create or replace function pgrecall_internal._is_unnoted(attachment pgrecall.attachment)
returns boolean
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  relation oid := to_regclass(attachment.relation);
begin
  return exists (select from pg_class c where c.oid = relation and c.relkind = 'r')
         and 4 > (
           select count(*) from pg_trigger t
           where  t.tgrelid = relation and t.tgenabled in ('O', 'A')
             and  starts_with(t.tgname, attachment.note_name || '_note_'));
end;
$$;
comment on function pgrecall_internal._is_unnoted is
'Whether a table is there without the triggers that note its changes.';

create or replace function pgrecall_internal._attachment_problem(attachment pgrecall.attachment)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  relation oid := to_regclass(attachment.relation);
  lost     text := (
    select min(n.name)
    from (
      select attachment.key as name
      union all
      select x from jsonb_each(attachment.columns) as e
      cross  join lateral jsonb_array_elements_text(e.value) as x
    ) as n
    where  not exists (select from pg_attribute a
                       where  a.attrelid = relation and a.attname = n.name
                         and  a.attnum > 0 and not a.attisdropped));
begin
  return case
    when relation is null or (select c.relkind from pg_class c where c.oid = relation) <> 'r' then
      format('table %s is gone, or has another name now', attachment.relation)
    when pgrecall_internal._is_unnoted(attachment) then
      format('the triggers of table %s are gone or disabled', attachment.relation)
    when lost is not null then
      format('table %s has no column "%s"', attachment.relation, lost)
    when not has_table_privilege(relation, 'select') then
      format('role "%s" may not read table %s', current_user, attachment.relation)
    when row_security_active(relation) then
      format('row security hides rows of table %s from role "%s"', attachment.relation,
             current_user)
  end;
end;
$$;
comment on function pgrecall_internal._attachment_problem is
'Why an attached table cannot be synced by the current role; null where it can.';

create or replace function pgrecall_internal._checked_column(relation regclass, name text)
returns pg_attribute
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  found_column pg_attribute;
begin
  select a.* into found_column
  from   pg_attribute a
  where  a.attrelid = relation and a.attname = name and a.attnum > 0 and not a.attisdropped;
  if not found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('table %s has no column "%s"', relation, name),
      hint    = 'It has ' || (
        select string_agg(a.attname, ', ' order by a.attnum)
        from   pg_attribute a
        where  a.attrelid = relation and a.attnum > 0 and not a.attisdropped)
        || '. An expression can be made a column: generated always as (...) stored.';
  end if;
  return found_column;
end;
$$;
comment on function pgrecall_internal._checked_column is
'A column of a table. Errors: 22023 no column has that name.';

create or replace function pgrecall_internal._key_type(relation regclass, key text)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  key_type text := format_type(
    (pgrecall_internal._checked_column(relation, key)).atttypid, null);
begin
  -- Every sync checks this, because the input function of a user-defined type might run code of a
  -- user.
  if key_type not in ('smallint', 'integer', 'bigint', 'text', 'character varying', 'uuid') then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('column "%s" of table %s is of type %s, which cannot be a key',
                       key, relation, key_type),
      hint    = 'A key is an integer, a text or a uuid. For another type add a column of text: '
                'generated always as (...) stored.';
  end if;
  return key_type;
end;
$$;
comment on function pgrecall_internal._key_type is
'The type of the key column of a table. Errors: 22023 no such type can be a key.';

create or replace function pgrecall_internal._column_expression(
  relation regclass, field text, name text)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  found_column pg_attribute := pgrecall_internal._checked_column(relation, name);
  is_own       boolean := found_column.atttypid >= 16384;  -- a user-defined type
  kind         "char";
  of_type      text := format_type(found_column.atttypid, null);
  value        text := format('r.%I', name);
  -- Never a cast of a user-defined type, which might run code of a user.
  as_text      text := format('nullif(format(''%%s'', %s), '''')', value);
begin
  select t.typcategory into kind from pg_type t where t.oid = found_column.atttypid;
  if field in ('text', 'context', 'fact_type', 'fact_key') then
    return format('to_jsonb(%s)', as_text);
  elsif field = 'metadata' then
    return format('jsonb_build_object(%L::text, %s)', name,
                  case when is_own then as_text else value end);
  elsif field in ('entities', 'tags') then
    if of_type = 'jsonb' then
      return format('case coalesce(jsonb_typeof(%1$s), ''null'') when ''array'' then %1$s '
                    'when ''null'' then ''[]'' else jsonb_build_array(%1$s) end', value);
    elsif kind = 'A' and not is_own then
      return format('to_jsonb(array_remove(%s::text[], null))', value);
    end if;
    return format('to_jsonb(array_remove(array[%s], null))', as_text);
  elsif of_type in ('tstzrange', 'tsrange', 'daterange') and field = 'occurred' then
    return format('case when not isempty(%1$s) then jsonb_build_array(lower(%1$s), upper(%1$s)) '
                  'end', value);
  elsif not is_own and kind in ('D', 'N') and (kind = 'N') = (field = 'confidence') then
    return format('to_jsonb(%s)', value);
  elsif kind = 'S' and field <> 'confidence' then
    return format('to_jsonb(%s)', as_text);
  end if;
  raise exception using
    errcode = 'invalid_parameter_value',
    message = format('column "%s" of table %s is of type %s, which cannot be %s', name, relation,
                     of_type, field),
    hint    = case field
      when 'confidence' then 'Name a column of numbers from 0 to 1.'
      when 'occurred' then 'Name a column of dates, times, or a range of them.'
      else 'Name a column of dates or times.' end;
end;
$$;
comment on function pgrecall_internal._column_expression is
'SQL for the JSON that a column gives a field of a fact. Errors: 22023 no such column, or one of '
'an unfit type.';

create or replace function pgrecall_internal._row_expression(
  relation regclass, source text, key text, fact_type text, columns jsonb)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return (
    select format('jsonb_build_object(''fact_type'', %L::text, ''source_id'', '
                  '%L::text || format(''%%s'', r.%I))', fact_type, source || ':', key)
           || string_agg(format(' || jsonb_strip_nulls(jsonb_build_object(%L::text, %s))',
                                f.field, f.expression), '' order by f.field)
    from (
      select c.field,
             string_agg(
               case when c.field in ('entities', 'tags')
                 then format('coalesce(%s, ''[]'')', x.expression) else x.expression end,
               ' || ' order by n.place) as expression
      from (
        select e.key as field, e.value from jsonb_each(columns) as e
        where  e.key <> 'metadata'
        union all
        -- The key is among the metadata, so that a row of a recall can be joined by it.
        select 'metadata', to_jsonb(array[key]) || coalesce(columns -> 'metadata', '[]')
      ) as c(field, names)
      cross  join lateral jsonb_array_elements_text(c.names) with ordinality as n(name, place)
      cross  join lateral pgrecall_internal._column_expression(relation, c.field, n.name)
               as x(expression)
      group  by c.field
    ) as f
  );
end;
$$;
comment on function pgrecall_internal._row_expression is
'SQL that makes a fact, without null fields, of a row r of a table. Errors: 22023.';

create or replace function pgrecall_internal._attachable(relation regclass, key text)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  the_table  pg_class;
  key_column pg_attribute;
begin
  select c.* into the_table from pg_class c where c.oid = relation;
  if not found then
    raise exception using
      errcode = 'null_value_not_allowed',
      message = 'relation must not be null',
      hint    = 'Name the table: select pgrecall.attach_table(''team'', ''ticket'', ''id'', '
                '''body'');';
  elsif the_table.relkind <> 'r' or the_table.relpersistence = 't' or the_table.relispartition
     or exists (select from pg_inherits i where relation in (i.inhparent, i.inhrelid))
     or the_table.oid < 16384  -- of PostgreSQL itself
     or the_table.relnamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
  then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s cannot be attached', relation),
      hint    = 'Attach an ordinary table of your own. Triggers on a view, a temporary table, a '
                'partition or a partitioned table would miss changes.';
  elsif not pg_has_role(the_table.relowner, 'usage') then
    raise exception using
      errcode = 'insufficient_privilege',
      message = format('role "%s" does not own table %s', current_user, relation),
      hint    = format('Its owner attaches it: set role %I;',
                       pg_get_userbyid(the_table.relowner));
  elsif not has_table_privilege(the_table.relowner, 'pgrecall.attached_change', 'insert') then
    raise exception using
      errcode = 'insufficient_privilege',
      message = format('role "%s", which owns table %s, may not note its changes',
                       pg_get_userbyid(the_table.relowner), relation),
      hint    = format('Its triggers run with the rights of that role: grant pgrecall_writer to '
                       '%I;', pg_get_userbyid(the_table.relowner));
  end if;
  key_column := pgrecall_internal._checked_column(relation, key);
  perform pgrecall_internal._key_type(relation, key);
  if not key_column.attnotnull
     or not exists (
       select from pg_index i
       where  i.indrelid = relation and i.indisunique and i.indisvalid and i.indimmediate
         and  i.indpred is null and i.indnkeyatts = 1 and i.indkey[0] = key_column.attnum)
  then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('column "%s" of table %s is not a key', key, relation),
      hint    = 'A key is not null and has a unique index of its own. For several columns add one: '
                'generated always as (a || '':'' || b) stored.';
  end if;
end;
$$;
comment on function pgrecall_internal._attachable is
'Checks that the current role may attach a table, and that a column identifies its rows. Errors: '
'22004, 22023, 42501.';

create or replace function pgrecall_internal._attached_columns(
  relation regclass, text_column text, occurred text, entities text[], fields jsonb)
returns jsonb
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  columns jsonb;
  field   text;
  names   jsonb;
begin
  perform pgrecall_internal._check_object(
    'fields', fields, 'Write {"context": "title", "tags": ["labels"]}: columns by field.');
  columns := jsonb_strip_nulls(jsonb_build_object(
    'text', to_jsonb(array[text_column]),
    'occurred', case when occurred is not null then to_jsonb(array[occurred]) end,
    'entities', case when cardinality(entities) > 0 then to_jsonb(entities) end));
  for field, names in select e.key, e.value from jsonb_each(fields) as e loop
    if field not in ('context', 'fact_type', 'fact_key', 'mentioned_at', 'expires_at',
                     'confidence', 'tags', 'metadata')
    then
      raise exception using
        errcode = 'invalid_parameter_value',
        message = format('fields cannot have "%s"', field),
        hint    = 'They are context, fact_type, fact_key, mentioned_at, expires_at, confidence, '
                  'tags and metadata.';
    end if;
    names := case jsonb_typeof(names) when 'array' then names else jsonb_build_array(names) end;
    if jsonb_array_length(names) = 0
       or jsonb_array_length(names) > 1 and field not in ('tags', 'metadata')
       or jsonb_path_exists(names, '$[*] ? (@.type() != "string")')
    then
      raise exception using
        errcode = 'invalid_parameter_value',
        message = format('fields.%s cannot be %s', field, left(names::text, 80)),
        hint    = 'Name a column; of tags and metadata also several, in an array.';
    end if;
    columns := columns || jsonb_build_object(field, names);
  end loop;
  -- Each of them exists, and is of a type that fits.
  perform pgrecall_internal._column_expression(relation, e.key, n.name)
  from   jsonb_each(columns) as e
  cross  join lateral jsonb_array_elements_text(e.value) as n(name);
  return columns;
end;
$$;
comment on function pgrecall_internal._attached_columns is
'The columns by field, as table attachment keeps them, checked. Errors: 22023.';

create or replace function pgrecall_internal._noted_attachment(name text, relation text)
returns pgrecall.attachment
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  noted pgrecall.attachment;
begin
  select a.* into noted from pgrecall.attachment a where a.note_name = _noted_attachment.name;
  -- A bank may also be hidden, from a session that lacks its setting: a change would be lost.
  if not found and row_security_active('pgrecall.attachment') then
    raise exception using
      errcode = 'insufficient_privilege',
      message = format('row security hides the bank of table %s from role "%s"', relation,
                       current_user),
      hint    = format('Set the setting that enable_row_security() goes by to the name of the '
                       'bank, or let the owner of the table see it. If the bank was dropped: '
                       'drop function %I.%I cascade;', (parse_ident(relation))[1], name);
  end if;
  return noted;
end;
$$;
comment on function pgrecall_internal._noted_attachment is
'The attachment whose triggers have this name, for them; null where its bank was dropped. Errors: '
'42501 row security hides the bank.';

create or replace function pgrecall_internal._create_note_triggers(
  relation regclass, attachment pgrecall.attachment)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  name     text := attachment.note_name;
  noted_by text := format('%I.%I', (parse_ident(attachment.relation))[1], name);
  event    text;
  seen     text;
begin
  perform pgrecall_internal._drop_note_triggers(relation, name);
  -- It does nothing after the bank, or pgrecall itself, was dropped, so that the table keeps
  -- working. An upgrade does not reach it: it leaves to _noted_attachment() what may change.
  execute format($sql$
    create function %1$s() returns trigger
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
    as $body$
    declare
      bank       text;
      table_name text;
    begin
      if to_regclass('pgrecall.attached_change') is null then
        return null;
      end if;
      select a.bank_id, a.relation into bank, table_name
      from   pgrecall_internal._noted_attachment(%2$L, tg_relid::regclass::text) as a;
      if bank is null then
        return null;
      elsif tg_level = 'ROW' then
        if exists (select from pgrecall.attached_change c
                   where  c.bank_id = bank and c.relation = table_name and c.problem is null)
        then
          perform pgrecall.sync_table(bank, table_name, 100000, is_copying => false);
        end if;
      elsif tg_op = 'INSERT' then
        insert into pgrecall.attached_change (bank_id, relation, key)
        select bank, table_name, n.%3$I::text from new_rows n;
      elsif tg_op = 'UPDATE' then
        insert into pgrecall.attached_change (bank_id, relation, key)
        select bank, table_name, u.key
        from (select o.%3$I::text from old_rows o union select n.%3$I::text from new_rows n)
               as u(key);
      elsif tg_op = 'DELETE' then
        insert into pgrecall.attached_change (bank_id, relation, key)
        select bank, table_name, o.%3$I::text from old_rows o;
      else
        insert into pgrecall.attached_change (bank_id, relation) values (bank, table_name);
      end if;
      return null;
    end;
    $body$
    $sql$, noted_by, name, attachment.key);
  execute format('revoke all on function %s() from public', noted_by);
  -- Owned by the owner of the table, whoever attached it: the owner decides what a cast of the key,
  -- or another trigger, runs.
  execute format('alter function %s() owner to %I', noted_by, (
    select pg_get_userbyid(c.relowner) from pg_class c where c.oid = relation));
  for event, seen in
    values ('insert', 'referencing new table as new_rows'),
           ('update', 'referencing old table as old_rows new table as new_rows'),
           ('delete', 'referencing old table as old_rows'),
           ('truncate', '')
  loop
    execute format('create trigger %I after %s on %s %s for each statement execute function %s()',
                   name || '_note_' || event, event, relation, seen, noted_by);
  end loop;
  if attachment.apply = 'commit' then
    execute format('create constraint trigger %I after insert or update or delete on %s '
                   'deferrable initially deferred for each row execute function %s()',
                   name || '_sync', relation, noted_by);
  end if;
end;
$$;
comment on function pgrecall_internal._create_note_triggers is
'Creates the triggers of an attachment on a table, in place of earlier ones.';

create or replace function pgrecall.attached_tables(bank text)
returns setof pgrecall.attached_table
language plpgsql stable parallel safe rows 5
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  perform pgrecall_internal._bank(bank);
  return query
  select a.bank_id, a.relation,
         case
           when p.problem is not null then 'broken'
           when not a.is_copied then 'copying'
           when c.pending > 0 then 'behind'
           else 'current' end,
         a.key, a.columns, a.apply,
         (select count(distinct w.key) from pgrecall.attached_row w
          where  w.bank_id = attached_tables.bank and w.relation = a.relation),
         (select nullif(t.reltuples, -1)::bigint from pg_class t
          where  t.oid = to_regclass(a.relation)),
         c.pending, c.failed, coalesce(p.problem, c.problem), c.pending_for
  from   pgrecall.attachment a
  cross  join lateral (
    select count(*) filter (where x.problem is null) as pending,
           count(*) filter (where x.problem is not null) as failed,
           min(format('row %s: %s', x.key, x.problem)) filter (where x.problem is not null)
             as problem,
           clock_timestamp() - min(x.noted_at) filter (where x.problem is null) as pending_for
    from   pgrecall.attached_change x
    where  x.bank_id = attached_tables.bank and x.relation = a.relation
  ) as c
  cross  join lateral pgrecall_internal._attachment_problem(a) as p(problem)
  where  a.bank_id = attached_tables.bank
  order  by a.relation;
end;
$$;
comment on function pgrecall.attached_tables is
'The tables that are attached to a bank, and how far behind each is. Errors: RC001.';

create or replace function pgrecall.attach_table(
  bank            text,
  relation        regclass,
  key             text,
  text            text,
  fact_type       text default 'world',
  occurred        text default null,
  entities        text[] default '{}',
  fields          jsonb default '{}',
  apply           text default 'later',
  is_history_kept boolean default true)
returns setof pgrecall.attached_table
language plpgsql volatile parallel unsafe rows 1
set search_path from current
set quote_all_identifiers = off
as $$
declare
  attached pgrecall.attachment;
begin
  perform pgrecall_internal._bank_to_write(bank);
  perform pgrecall_internal._attachable(relation, key);
  perform pgrecall_internal._lock_attached(relation);
  perform pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._fact_types(bank, array[fact_type]);
  perform pgrecall_internal._check_choice(
    'apply', apply, '{later,commit}',
    'With "later" call pgrecall.sync_table() when changes are to reach the bank.');
  select a.* into attached
  from   pgrecall.attachment a
  where  a.bank_id = attach_table.bank and a.key <> attach_table.key
    and  to_regclass(a.relation) = attach_table.relation;
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('table %s is attached by column "%s", not "%s"', relation, attached.key,
                       key),
      hint    = format('Its memories are known by that. Detach it first, and erase them: select '
                       'pgrecall.detach_table(%L, %L, true);', bank, attached.relation);
  end if;
  insert into pgrecall.attachment as a
         (bank_id, relation, note_name, key, columns, fact_type, apply, is_history_kept)
  select attach_table.bank, format('%I.%I', n.nspname, c.relname),
         pgrecall_internal._attachment_name(bank, format('%I.%I', n.nspname, c.relname)),
         attach_table.key,
         pgrecall_internal._attached_columns(
           attach_table.relation, attach_table.text, attach_table.occurred, attach_table.entities,
           attach_table.fields),
         attach_table.fact_type, attach_table.apply, coalesce(attach_table.is_history_kept, true)
  from   pg_class c
  join   pg_namespace n on n.oid = c.relnamespace
  where  c.oid = attach_table.relation
  on conflict on constraint attachment_pkey do update
  set    key = excluded.key, columns = excluded.columns, fact_type = excluded.fact_type,
         apply = excluded.apply, is_history_kept = excluded.is_history_kept,
         -- All rows are read again: those that now give another fact are changed.
         is_copied = false, copied_key = null
  returning a.* into attached;
  perform pgrecall_internal._create_note_triggers(relation, attached);
  return query
  select t.* from pgrecall.attached_tables(bank) as t where t.relation = attached.relation;
end;
$$;
comment on function pgrecall.attach_table is
'Makes the rows of a table of your own memories of a bank. key and text name columns, occurred a '
'column of times or ranges, entities columns with a name, an array of names, or jsonb as retain() '
'takes it. fields names columns for other fields: {"context": "title", "tags": ["labels"]}, of '
'context, fact_type, fact_key (such as the number of a ticket, so that it is found by it), '
'mentioned_at, expires_at, confidence, tags and metadata. Nothing is copied yet: call '
'sync_table() until it is complete. From now on triggers note changes. apply => ''later'': '
'sync_table() brings them into the bank; ''commit'': the changing transaction does so when it '
'commits, and has the bank for itself meanwhile; a truncate is left to sync_table(). A memory has '
'the source_id schema.table:key, and the key in its metadata. A changed row ends its memory and '
'gets a new one, or with is_history_kept => false replaces it; a deleted row, one without a text, '
'or one that cannot be stored, has no memory. Call it again with other columns, and all rows are '
'read again. The owner of the table calls it, and the triggers run with the owner''s rights; a '
'change is refused where row security hides the bank from the owner. Locks the table against '
'writers for a moment. Errors: RC001, RC008, 22004, 22023 naming the column or table that does '
'not fit, 42501 not the owner.';

create or replace function pgrecall.detach_table(
  bank text, relation text, is_forgotten boolean default false)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  attached   pgrecall.attachment;
  memory_ids bigint[];
begin
  perform pgrecall_internal._bank_to_write(bank);
  attached := pgrecall_internal._attachment(bank, relation);
  if to_regclass(attached.relation) is not null then
    perform pgrecall_internal._lock_attached(attached.relation::regclass);
  end if;
  perform pgrecall_internal._locked_bank(bank);
  memory_ids := array(
    select w.memory_id from pgrecall.attached_row w
    where  w.bank_id = detach_table.bank and w.relation = attached.relation);
  if to_regclass(attached.relation) is not null then
    perform pgrecall_internal._drop_note_triggers(attached.relation::regclass, attached.note_name);
  end if;
  delete from pgrecall.attachment a
  where  a.bank_id = detach_table.bank and a.relation = attached.relation;
  if is_forgotten then
    return pgrecall.forget(bank, memory_ids);
  end if;
  return cardinality(memory_ids);
end;
$$;
comment on function pgrecall.detach_table is
'Removes the triggers from a table, which may no longer exist. Its memories stay as ordinary ones, '
'or with is_forgotten are erased; returns how many there are. relation: its name, with or without '
'the schema. Errors: RC001, 22023 not attached, 42501 not the owner of the table.';

-- operations/sync.sql
-- Bringing the rows of attached tables into their banks.
--
-- sync_table() works in batches. It locks the bank, takes notes of changes out of attached_change,
-- and only then reads the rows of these keys: each row as it is now, however often it changed.
-- Another transaction notes its own changes, and its notes become visible together with its rows,
-- so that nothing is lost, and a row that is read twice gives the same memory. The first pass over
-- all rows is in order of the key. Rows that cannot be stored (a text that is too long, an unknown
-- fact type, a source in quarantine) do not hold up others: they are noted with the reason, until
-- they change, and have no memory meanwhile, since that of their former content is not what they
-- say. sync_table() reads the table with the rights of its caller, and calls no cast of a
-- user-defined type.
create or replace function pgrecall_internal._attached_facts(
  attachment pgrecall.attachment, relation regclass, keys text[])
returns setof pgrecall_internal.attached_fact
language plpgsql stable parallel safe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  key_type text := pgrecall_internal._key_type(relation, attachment.key);
begin
  return query execute format(
    'select format(''%%s'', r.%1$I), x.fact, sha256(convert_to(x.fact::text, ''UTF8'')), '
    '       null::bigint, null::text '
    'from   %2$s as r '
    'cross  join lateral (select %3$s as fact) as x '
    'where  r.%1$I = any ($1::%4$s[]) and trim(x.fact ->> ''text'') <> ''''',
    attachment.key, relation,
    pgrecall_internal._row_expression(
      relation, attachment.relation, attachment.key, attachment.fact_type, attachment.columns),
    key_type) using keys;
end;
$$;
comment on function pgrecall_internal._attached_facts is
'The facts made of the rows with these keys of an attached table; none for a row without a text.';

create or replace function pgrecall_internal._memories_of_rows(
  attachment pgrecall.attachment, keys text[])
returns table (key text, memory_id bigint, row_hash bytea)
language plpgsql stable parallel safe rows 100
set search_path from current
-- An index whose order is asked for is used, whatever the planner assumes.
set enable_sort = off
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select k.key, w.memory_id, w.row_hash
  from   unnest(keys) as k(key)
  cross  join lateral (
    -- Only one index provides this range in this order.
    select x.memory_id, x.row_hash
    from   pgrecall.attached_row x
    where  x.bank_id = attachment.bank_id
      and  x.relation between attachment.relation and attachment.relation
      and  x.key between k.key and k.key
    order  by x.relation, x.key
    offset 0
  ) as w;
end;
$$;
comment on function pgrecall_internal._memories_of_rows is
'The memories that were made of the rows with these keys, from former contents too.';

create or replace function pgrecall_internal._compared_rows(
  attachment pgrecall.attachment, relation regclass, keys text[])
returns pgrecall_internal.attached_fact[]
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return array(
    select row(k.key, f.fact, f.row_hash, w.memory_id,
               case
                 when f.fact is null and w.memory_id is null then 'same'
                 when f.fact is null then 'gone'
                 when f.row_hash = w.row_hash then 'same'
                 when w.is_current then 'changed'
                 else 'new' end)::pgrecall_internal.attached_fact
    from   unnest(keys) as k(key)
    left   join pgrecall_internal._attached_facts(attachment, relation, keys) as f
           on f.key = k.key
    left   join (
      select distinct on (x.key) x.key, x.memory_id, x.row_hash, c.is_current
      from   pgrecall_internal._memories_of_rows(attachment, keys) as x
      cross  join lateral (
        select exists (
          select from pgrecall.memory m
          where  m.bank_id = attachment.bank_id and m.memory_id = x.memory_id
            and  (m.valid_to is null or m.valid_to > clock_timestamp())) as is_current
      ) as c
      -- That which holds, where an update by hand was taken back.
      order  by x.key, c.is_current desc, x.memory_id desc
    ) as w on w.key = k.key
    order  by k.key
  );
end;
$$;
comment on function pgrecall_internal._compared_rows is
'The rows with these keys as they are now, compared with what the bank holds of them.';

create or replace function pgrecall_internal._retain_rows(
  attachment pgrecall.attachment, compared pgrecall_internal.attached_fact[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  insert into pgrecall.attached_row (bank_id, memory_id, relation, key, row_hash)
  select distinct on (r.memory_id)
         attachment.bank_id, r.memory_id, attachment.relation, c.key, c.row_hash
  from   pgrecall.retain(
           attachment.bank_id,
           (select jsonb_agg(u.fact order by u.n)
            from   unnest(compared) with ordinality
                     as u(key, fact, row_hash, memory_id, status, n)),
           replace => 'none') as r
  join   unnest(compared) with ordinality as c(key, fact, row_hash, memory_id, status, n)
         on c.n = r.index + 1
  order  by r.memory_id, c.n
  -- Known from an attachment that was detached.
  on conflict on constraint attached_row_pkey do update
  set    relation = excluded.relation, key = excluded.key, row_hash = excluded.row_hash;
end;
$$;
comment on function pgrecall_internal._retain_rows is
'Retains rows of an attached table. Errors: those of retain().';

create or replace function pgrecall_internal._sync_rows(
  attachment pgrecall.attachment, relation regclass, keys text[])
returns pgrecall.synced_table
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  compared   pgrecall_internal.attached_fact[] :=
    pgrecall_internal._compared_rows(attachment, relation, keys);
  added      pgrecall_internal.attached_fact[] := array(
    select c from unnest(compared) as c where c.status = 'new' order by c.key);
  failed     bigint[] := array(
    select x.change_id
    from   unnest(keys) as k(key)
    cross  join lateral (
      -- One lookup for each key.
      select c.change_id from pgrecall.attached_change c
      where  c.bank_id = attachment.bank_id and c.relation = attachment.relation
        and  c.key = k.key and c.problem is not null
      offset 0
    ) as x);
  versions   bigint[] := '{}';
  gone       bigint[];
  one        pgrecall_internal.attached_fact;
  version_id bigint;
  done       pgrecall.synced_table;
begin
  if failed <> '{}' then
    delete from pgrecall.attached_change c
    where  c.bank_id = attachment.bank_id and c.change_id = any (failed);
  end if;
  done.bank_id := attachment.bank_id;
  done.relation := attachment.relation;
  done.failed := 0;
  -- Errors in the data are kept with the row; all others end the call.
  begin
    if added <> '{}' then
      perform pgrecall_internal._retain_rows(attachment, added);
    end if;
  exception when sqlstate 'RC003' or sqlstate 'RC008' or sqlstate 'RC015' then
    foreach one in array added loop
      begin
        perform pgrecall_internal._retain_rows(attachment, array[one]);
      exception when sqlstate 'RC003' or sqlstate 'RC008' or sqlstate 'RC015' then
        insert into pgrecall.attached_change (bank_id, relation, key, problem)
        values (attachment.bank_id, attachment.relation, one.key, sqlerrm);
        done.failed := done.failed + 1;
      end;
    end loop;
  end;
  done.added := cardinality(added) - done.failed;
  done.changed := 0;
  for one in select c.* from unnest(compared) as c where c.status = 'changed' loop
    begin
      select u.memory_id into version_id
      from   pgrecall.update_memory(
               attachment.bank_id, one.memory_id,
               -- A column that is null now takes its field away.
               (select jsonb_object_agg(e.key, null) from jsonb_each(attachment.columns) as e)
               || one.fact) as u;
      update pgrecall.attached_row w
      set    row_hash = one.row_hash
      where  w.bank_id = attachment.bank_id and w.memory_id = version_id;
      done.changed := done.changed + 1;
      versions := versions || version_id;
    exception when sqlstate 'RC003' or sqlstate 'RC008' or sqlstate 'RC015' then
      insert into pgrecall.attached_change (bank_id, relation, key, problem)
      values (attachment.bank_id, attachment.relation, one.key, sqlerrm);
      done.failed := done.failed + 1;
      perform pgrecall_internal._end_memories(
        attachment.bank_id, 'update', nextval('pgrecall.id_seq'), array[one.memory_id],
        array[now()], array[null::bigint]);
      -- The hash of no row: should the row have its former content again, it is added.
      update pgrecall.attached_row w
      set    row_hash = sha256('')
      where  w.bank_id = attachment.bank_id and w.relation = attachment.relation
        and  w.key = one.key;
    end;
  end loop;
  -- What the table no longer has is erased, with its former contents.
  gone := array(
    select w.memory_id
    from   unnest(compared) as c
    join   pgrecall_internal._memories_of_rows(
             attachment,
             array(select u.key from unnest(compared) as u where u.status in ('gone', 'changed'))
           ) as w on w.key = c.key
    where  c.status = 'gone'
       or  c.status = 'changed' and not attachment.is_history_kept
           and w.memory_id <> all (versions));
  if gone <> '{}' then
    perform pgrecall.forget(attachment.bank_id, gone);
  end if;
  select count(*) filter (where c.status = 'gone'), count(*) filter (where c.status = 'same')
  into   done.removed, done.unchanged
  from   unnest(compared) as c;
  return done;
end;
$$;
comment on function pgrecall_internal._sync_rows is
'Brings the memories of the rows with these keys up to date. The bank must be locked.';

create or replace function pgrecall_internal._taken_keys(
  attachment pgrecall.attachment, batch_size integer)
returns text[]
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  ids   bigint[] := array(
    select c.change_id from pgrecall.attached_change c
    where  c.bank_id = attachment.bank_id and c.relation = attachment.relation
      and  c.problem is null
    order  by c.change_id
    limit  _taken_keys.batch_size);
  noted text[];
begin
  with taken as (
    -- The range is what an index is searched by, whatever the statistics say.
    delete from pgrecall.attached_change c
    where  c.bank_id = attachment.bank_id and c.relation = attachment.relation
      and  c.change_id between ids[1] and ids[cardinality(ids)] and c.change_id = any (ids)
    returning c.key
  )
  select array_agg(distinct t.key) into noted from taken t;
  if array_position(noted, null) is not null then
    -- The table was emptied: every row that the bank knows is checked again, in later batches.
    insert into pgrecall.attached_change (bank_id, relation, key)
    select distinct attachment.bank_id, attachment.relation, w.key
    from   pgrecall.attached_row w
    where  w.bank_id = attachment.bank_id and w.relation = attachment.relation;
    noted := array_remove(noted, null);
  end if;
  return coalesce(noted, '{}');
end;
$$;
comment on function pgrecall_internal._taken_keys is
'Removes the oldest notes of changes to an attached table; returns the keys that they name.';

create or replace function pgrecall_internal._copied_keys(
  attachment pgrecall.attachment, relation regclass, batch_size integer)
returns text[]
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  next_keys text[];
  key_type  text := pgrecall_internal._key_type(relation, attachment.key);
begin
  execute format(
    'select array_agg(format(''%%s'', n.key) order by n.key) '
    'from (select r.%1$I as key from %2$s as r where $1 is null or r.%1$I > $1::%3$s '
    '      order by r.%1$I limit $2) as n',
    attachment.key, relation, key_type)
  into next_keys using attachment.copied_key, batch_size;
  update pgrecall.attachment a
  set    copied_key = coalesce(next_keys[cardinality(next_keys)], a.copied_key),
         is_copied = coalesce(cardinality(next_keys), 0) < batch_size
  where  a.bank_id = attachment.bank_id and a.relation = attachment.relation;
  return coalesce(next_keys, '{}');
end;
$$;
comment on function pgrecall_internal._copied_keys is
'The next keys of the first pass over an attached table, which it marks as done.';

create or replace function pgrecall_internal._is_behind(attachment pgrecall.attachment)
returns boolean
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return exists (
    select from pgrecall.attached_change c
    where  c.bank_id = attachment.bank_id and c.relation = attachment.relation
      and  c.problem is null);
end;
$$;
comment on function pgrecall_internal._is_behind is
'Whether changes of an attached table wait.';

create or replace function pgrecall_internal._sync_batch(
  attachment pgrecall.attachment, batch_size integer, is_copying boolean)
returns pgrecall.synced_table
language plpgsql volatile parallel unsafe
set search_path from current
-- A row is compared by its values as text, and types by their names.
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
set intervalstyle = 'postgres'
set bytea_output = 'hex'
set extra_float_digits = 1
set quote_all_identifiers = off
as $$
declare
  keys     text[];
  done     pgrecall.synced_table;
begin
  -- Another session may have synced it while this one waited for the bank.
  perform pgrecall_internal._locked_bank(attachment.bank_id);
  attachment := pgrecall_internal._attachment(attachment.bank_id, attachment.relation);
  keys := pgrecall_internal._taken_keys(attachment, batch_size);
  if is_copying and not attachment.is_copied and cardinality(keys) < batch_size then
    keys := array(
      select u.key from unnest(keys || pgrecall_internal._copied_keys(
        attachment, attachment.relation::regclass, batch_size - cardinality(keys))) as u(key)
      group  by u.key);
  end if;
  done := pgrecall_internal._sync_rows(attachment, attachment.relation::regclass, keys);
  done.is_complete :=
    (select a.is_copied from pgrecall.attachment a
     where  a.bank_id = attachment.bank_id and a.relation = attachment.relation)
    and not pgrecall_internal._is_behind(attachment);
  return done;
end;
$$;
comment on function pgrecall_internal._sync_batch is
'Syncs one batch of an attached table, which can be read as it was attached.';

create or replace function pgrecall.sync_table(
  bank       text,
  relation   text default null,
  batch_size integer default 1000,
  is_copying boolean default true)
returns setof pgrecall.synced_table
language plpgsql volatile parallel unsafe rows 1
set search_path from current
as $$
declare
  attached  pgrecall.attachment;
  is_behind boolean;
  has_begun boolean := false;
  problem   text;
  broken    text;
  done      pgrecall.synced_table;
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  if relation is not null then
    attached := pgrecall_internal._attachment(bank, relation);
    relation := attached.relation;
  end if;
  for attached in
    select a.* from pgrecall.attachment a
    where  a.bank_id = sync_table.bank
      and  (sync_table.relation is null or a.relation = sync_table.relation)
    order  by a.relation
  loop
    is_behind := not attached.is_copied or pgrecall_internal._is_behind(attached);
    problem := case
      -- Without its triggers nothing waits, whatever has changed.
      when is_behind or relation is not null or pgrecall_internal._is_unnoted(attached)
      then pgrecall_internal._attachment_problem(attached) end;
    done := row(bank, attached.relation, 0, 0, 0, 0, 0, problem is null);
    if problem is not null then
      broken := coalesce(broken, attached.relation);
    elsif is_behind then
      -- With nothing to do the bank is not locked.
      done := pgrecall_internal._sync_batch(attached, batch_size, is_copying);
      has_begun := true;
    end if;
    return next done;
  end loop;
  -- What the call did for other tables would be undone.
  if broken is not null and not has_begun then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = pgrecall_internal._attachment_problem(
                  pgrecall_internal._attachment(bank, broken)),
      hint    = format('Sync as a role that reads all rows, or attach the table again, which '
                       'reads all rows, or take it away: select pgrecall.detach_table(%L, %L);',
                       bank, broken);
  end if;
end;
$$;
comment on function pgrecall.sync_table is
'Brings changed rows of an attached table, and those that were not copied yet, into the bank: at '
'most batch_size notes of changes and rows, a row for each table. Call it until is_complete, each '
'call in a transaction of its own; then the bank holds what was committed before the last call. '
'relation: the name of the table, with or without its schema; null: all of the bank. Of these one '
'that cannot be synced does not keep others waiting: it is not complete, and the call that has '
'nothing to do for others refuses it; a table that is gone or not to be read only if changes of it '
'wait. is_copying => false leaves the first pass over all rows alone. New texts have no embedding: '
'embed_pending() lists them. Needs rights to read the table, all of its rows, and to write into '
'the bank, which no other writer does meanwhile. Errors: RC001, 22023 not attached, gone, renamed, '
'without its triggers or a column, or not to be read.';

-- operations/calibration.sql
-- Calibration: it puts the similarities of all embedding models on the same scale.
--
-- Some models give all texts a similar direction: two texts that have nothing in common have a
-- cosine of 0.7 or more. calibrate_bank() stores three things about a model. First, its mean
-- vector, which is subtracted from every embedding that enters the database, of facts and of
-- queries; callers send embeddings as the model returns them. Second, the two cosines that count as
-- a similarity of 0.2, the default floor of the semantic arm, and of 0.7, from which facts are
-- similar; between and beyond them, similarity is linear. Everything that compares similarities
-- gets them from _similarity(): floors, near copies, relevance, the arms that follow hits. Third,
-- the weights of the other arms where a question has an embedding.
--
-- The constants of each model are in bank.calibrations; those of the model that a bank is searched
-- by are columns of bank, generated from it, so that they change with the model. Without
-- calibration a similarity is the cosine. `pgrecall calibrate` measures the constants.
create or replace function pgrecall_internal._check_calibration(
  bank pgrecall.bank, calibration jsonb)
returns jsonb
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  hint    constant text := 'Pass what "pgrecall calibrate" wrote: {"model": "e5-small", "mean": '
    '[0.01, -0.02], "low_cosine": 0.3, "high_cosine": 0.7}.';
  model   text := calibration ->> 'model';
  problem text;
  mean    halfvec;
  low     numeric;
  high    numeric;
begin
  problem := case
    when jsonb_typeof(calibration) <> 'object'
      then format('calibration must be an object, not %s', left(calibration::text, 80))
    when not calibration ?| '{mean,low_cosine,weights}'
      then 'calibration has none of "mean", "low_cosine" and "weights"'
    when (calibration ? 'low_cosine') <> (calibration ? 'high_cosine')
      then 'calibration must have both "low_cosine" and "high_cosine" or neither'
    else (
      select format('calibration: "%s" must be %s, not %s', c.key,
                    case when c.key like '%cosine' then 'a number'
                         when c.key = 'model' then 'the name of a model'
                         else 'left out: there is no such field' end,
                    left(c.value::text, 80))
      from   jsonb_each(case jsonb_typeof(calibration) when 'object' then calibration end) as c
      where  c.key not in ('mean', 'weights')
        and  jsonb_typeof(c.value) is distinct from case
               when c.key in ('low_cosine', 'high_cosine') then 'number'
               when c.key = 'model' then 'string' end
      limit  1)
  end;
  if problem is null and calibration ? 'low_cosine' then
    low := trim_scale(round((calibration ->> 'low_cosine')::numeric, 6));
    high := trim_scale(round((calibration ->> 'high_cosine')::numeric, 6));
    if low <= -1 or low >= high or high >= 1 then
      problem := format('calibration: low_cosine must be below high_cosine, and both between -1 '
                        'and 1, not %s and %s', left(calibration ->> 'low_cosine', 20),
                        left(calibration ->> 'high_cosine', 20));
    end if;
  end if;
  if problem is null then
    bank.embedding_mean := null;
    mean := pgrecall_internal._embedding_field('calibration.mean', calibration -> 'mean', bank);
    if l2_norm(mean) >= 1 then
      problem := format('calibration.mean has a length of %s, not below 1', l2_norm(mean)::real);
    end if;
  end if;
  if problem is not null then
    raise exception using
      errcode = 'invalid_parameter_value', message = problem, hint = hint;
  end if;
  perform pgrecall_internal._checked_embedding(bank, 'calibration', null, model);
  perform pgrecall_internal._check_by_arm(
    'weight', coalesce(nullif(calibration -> 'weights', 'null'), '{}'), 0, 1000000);
  return jsonb_strip_nulls(jsonb_build_object(
    'mean', mean::text, 'low_cosine', low, 'high_cosine', high,
    'weights', calibration -> 'weights'));
end;
$$;
comment on function pgrecall_internal._check_calibration is
'A calibration as bank.calibrations keeps it; bank is as that model searches it. Errors: RC004, '
'RC005 another model, RC006 the mean, 22023.';

create or replace function pgrecall.calibrate_bank(bank text, calibration jsonb)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  locked   pgrecall.bank;
  as_model pgrecall.bank;
  named    text;
  is_next  boolean;
  content  jsonb;
  added    jsonb;
  old_mean halfvec;
  new_mean halfvec;
  rewritten bigint := 0;
begin
  locked := pgrecall_internal._locked_bank(bank);
  as_model := locked;
  named := coalesce(calibration ->> 'model', locked.embedding_model);
  is_next := coalesce(named = locked.next_model, false);
  if locked.embedding_model is null and not is_next
     and (named is null or locked.embedding_dimensions is not null)
  then
    raise exception using
      errcode = 'RC005',
      message = format('bank "%s" has no model that could be calibrated', bank),
      hint    = case when locked.embedding_dimensions is null
        then 'Name it: {"model": "e5-small", ...}.'
        else 'Its embeddings were stored without a name of their model: retain a fact with one.'
      end;
  end if;
  if is_next then
    as_model := pgrecall_internal._as_next(locked);
    as_model.next_model := null;
  end if;
  old_mean := as_model.embedding_mean;
  content := coalesce(
    pgrecall_internal._check_calibration(as_model, nullif(calibration, 'null')), '{}');
  new_mean := content ->> 'mean';
  added := case when content = '{}' then '{}' else jsonb_build_object(named, content) end;

  update pgrecall.bank b
  set    calibrations         = (b.calibrations - named) || added,
         embedding_model      = coalesce(b.embedding_model, named),
         embedding_dimensions = coalesce(b.embedding_dimensions, vector_dims(new_mean))
  where  b.bank_id = calibrate_bank.bank;
  if old_mean is distinct from new_mean then
    update pgrecall.embedding e
    set    embedding = coalesce(
             case when old_mean is null then l2_normalize(e.embedding)
                  else e.embedding + old_mean end - new_mean,
             e.embedding + old_mean)
    where  e.bank_id = calibrate_bank.bank and e.model = named;
    get diagnostics rewritten = row_count;
  end if;
  return rewritten;
end;
$$;
comment on function pgrecall.calibrate_bank is
'Gives the model of a bank, or the model that it is being re-embedded with, its constants: '
'{"model": "e5-small", "mean": [0.01, -0.02], "low_cosine": 0.3, "high_cosine": 0.7}, as `pgrecall '
'calibrate` writes them. mean is subtracted from the direction of every embedding that is stored, '
'retained or asked with. A cosine of low_cosine then counts as a similarity of 0.2, a cosine of '
'high_cosine as 0.7, and 1 as 1. Without "mean" nothing is subtracted; without the other two, '
'similarities are cosines. "weights": {"lexical": 0.5}, which no command measures, are the weights '
'of arms for a question with an embedding, where neither bank nor call sets others. null removes a '
'calibration. Without "model" it is that of the bank; a bank without a model gets the one named. '
'Stored embeddings are rewritten in place where the mean changes; returns how many. A recall that '
'runs meanwhile may compare embeddings from before and after. Errors: RC001, RC004, RC005 another '
'model, or none, RC006, RC009 unknown arm, 22023.';

-- operations/correction.sql
-- Corrections: ending a memory that no longer holds, optionally with near copies, and undoing it.
--
-- supersede() sets valid_to: a recall finds the memory only as of earlier times. Every operation
-- that ends a memory (supersede, a fact that replaces it, consolidate) records the previous values
-- in its column corrections. unsupersede() reverts the last correction of a memory, and of the
-- memories that the same correction ended; the rows are then as before, column by column.
-- near_copies() finds memories that say the same in other words, among a bounded number of
-- candidates: the nearest by embedding, or by words, and those with the same key, source or
-- entities. Texts that differ in a number or a negation are not copies, nor is a text that is more
-- similar to the successor.
create or replace function pgrecall_internal._numbers_and_negations(content text)
returns text[]
language plpgsql immutable parallel safe
as $$
begin
  return array(
    select distinct m[1]
    from   regexp_matches(
             lower(content),
             '(\d+|\m(?:no|not|never|without|nicht|kein|keine|keinen|nie|ohne|sin|nunca|pas|jamais|'
             'sans|non|mai|senza|niet|geen|nooit|zonder|não|sem)\M|n[''’]t\M)', 'g') as m
    order  by 1
  );
end;
$$;
comment on function pgrecall_internal._numbers_and_negations is
'Numbers and negations in a text, sorted: they distinguish texts of nearly the same words.';

create or replace function pgrecall_internal._text_embedding(bank pgrecall.bank, memory_id bigint)
returns halfvec
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return (
    select e.embedding
    from   pgrecall.embedding e
    where  e.bank_id = bank.bank_id and e.memory_id = _text_embedding.memory_id
      and  e.model = coalesce(bank.embedding_model, '') and e.kind = 'text'
    limit  1
  );
end;
$$;
comment on function pgrecall_internal._text_embedding is
'The embedding of a memory''s text by the model of the bank; null where it has none.';

create or replace function pgrecall_internal._similarities(
  bank pgrecall.bank, embedding halfvec, other_embedding halfvec, weights sparsevec,
  other_weights sparsevec,
  out similarity double precision, out words double precision)
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  -- A text without words has a zero vector, whose cosine distance is NaN.
  words := coalesce(nullif(1 - (weights <=> other_weights), 'NaN'), 0);
  similarity := coalesce(pgrecall_internal._similarity(
    1 - (embedding <=> other_embedding), bank.low_cosine, bank.high_cosine), words);
end;
$$;
comment on function pgrecall_internal._similarities is
'similarity: that of the embeddings of two memories, as in the semantic arm, or words where one '
'has none. words: the cosine of their BM25 weights.';

create or replace function pgrecall_internal._near_candidates(
  bank pgrecall.bank, memory pgrecall.memory, embedding halfvec, entity_ids bigint[],
  as_of timestamptz)
returns bigint[]
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return array(
    select s.memory_id
    from   pgrecall.semantic_arm(
             bank.bank_id, embedding, array[memory.fact_type], as_of => _near_candidates.as_of,
             depth => 50) as s
    where  embedding is not null
    union
    -- Of a text without an embedding its words. Without punctuation: a quote or a dash would ask
    -- for a phrase, or for texts without a word.
    select l.memory_id
    from   pgrecall.lexical_arm(
             bank.bank_id, pgrecall.normalised_name(memory.text), array[memory.fact_type],
             as_of => _near_candidates.as_of, depth => 50) as l
    where  embedding is null
    union
    (select k.memory_id
     from   pgrecall.memory k
     where  k.bank_id = bank.bank_id and k.fact_key is not null
       and  lower(pgrecall_internal._normalised(k.fact_key))
              = lower(pgrecall_internal._normalised(memory.fact_key))
       and  coalesce(k.valid_to, 'infinity'::timestamptz) > _near_candidates.as_of
     limit  50)
    union
    (select d.memory_id
     from   pgrecall.memory d
     where  d.bank_id = bank.bank_id and d.source_id = memory.source_id
     order  by d.memory_id desc
     limit  50)
    union
    select x.memory_id
    from   unnest(entity_ids[:10]) as e(entity_id)
    cross  join lateral (
      select n.memory_id
      from   pgrecall.mention n
      where  n.bank_id = bank.bank_id and n.entity_id = e.entity_id
        and  n.fact_type = memory.fact_type
      order  by n.memory_id desc
      limit  50
    ) as x
  );
end;
$$;
comment on function pgrecall_internal._near_candidates is
'Candidates for near copies of a memory: at most 50 nearest by embedding, or by words where it has '
'none, 50 with its key, 50 from its source, and 50 for each of ten entities.';

create or replace function pgrecall.near_copies(
  bank           text,
  memory_id      bigint,
  superseded_by  bigint default null,
  min_similarity double precision default 0.85,
  as_of          timestamptz default now())
returns setof pgrecall.near_copy
language plpgsql volatile parallel unsafe rows 5
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  found_bank  pgrecall.bank;
  memory      pgrecall.memory;
  successor   pgrecall.memory;
  vector      halfvec;
  next_vector halfvec;
  entity_ids  bigint[];
begin
  found_bank := pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_memory(bank, memory_id);
  if superseded_by is not null then
    perform pgrecall_internal._check_memory(bank, superseded_by);
  end if;
  perform pgrecall_internal._check_share('min_similarity', min_similarity);
  select m.* into memory from pgrecall.memory m
  where  m.bank_id = near_copies.bank and m.memory_id = near_copies.memory_id;
  select m.* into successor from pgrecall.memory m
  where  m.bank_id = near_copies.bank and m.memory_id = near_copies.superseded_by;
  vector := pgrecall_internal._text_embedding(found_bank, memory_id);
  next_vector := pgrecall_internal._text_embedding(found_bank, superseded_by);
  entity_ids := array(
    select x.entity_id from pgrecall.mention x
    where  x.bank_id = near_copies.bank and x.memory_id = near_copies.memory_id
    order  by x.entity_id
  );
  return query
  select c.memory_id, c.text, c.similarity, c.names, c.is_same_source
  from (
    select m.memory_id, m.text, a.similarity, a.words, e.names, e.has_all, m.lexical_weights,
           coalesce(m.source_id = memory.source_id, false) as is_same_source, v.embedding
    from   unnest(pgrecall_internal._near_candidates(
             found_bank, memory, vector, entity_ids, coalesce(near_copies.as_of, now()))) as i(id)
    cross  join lateral (
      select y.*
      from   pgrecall.memory y
      where  y.bank_id = near_copies.bank and y.memory_id = i.id
      limit  1
    ) as m
    cross  join lateral (
      select pgrecall_internal._text_embedding(found_bank, m.memory_id) as embedding
      offset 0
    ) as v
    cross  join lateral pgrecall_internal._similarities(
             found_bank, vector, v.embedding, memory.lexical_weights, m.lexical_weights) as a
    cross  join lateral (
      select coalesce(array_agg(n.name order by n.name), '{}') as names,
             count(*) = cardinality(entity_ids) as has_all
      from   pgrecall.mention x
      join   pgrecall.entity n on n.bank_id = near_copies.bank and n.entity_id = x.entity_id
      where  x.bank_id = near_copies.bank and x.memory_id = m.memory_id
        and  x.entity_id = any (entity_ids)
    ) as e
    where  m.memory_id <> memory.memory_id and m.fact_type = memory.fact_type
      and  pgrecall_internal._holds(m.valid_from, m.valid_to, coalesce(near_copies.as_of, now()))
      and  pgrecall_internal._numbers_and_negations(m.text)
           = pgrecall_internal._numbers_and_negations(memory.text)
  ) as c
  left   join lateral pgrecall_internal._similarities(
           found_bank, next_vector, c.embedding, successor.lexical_weights, c.lexical_weights) as o
    on   successor.memory_id is not null
  where  c.similarity >= near_copies.min_similarity
    and  (c.has_all or c.is_same_source and c.names <> '{}')
    and  c.memory_id is distinct from near_copies.superseded_by
    and  (successor.memory_id is null
          or c.similarity + c.words > o.similarity + o.words)
  order  by c.similarity desc, c.memory_id desc;
end;
$$;
comment on function pgrecall.near_copies is
'Current memories with nearly the same words as a memory, nearest first: of its type, with a '
'similarity of min_similarity (0 to 1) or more, its numbers and negations, and all its entities, '
'or some of them and the same source; not those nearer to superseded_by than to the memory. '
'supersede() with reach => ''copies'' ends them. Errors: RC001, RC010 unknown memory, 22023.';

create or replace function pgrecall_internal._corrected(bank text, memory_ids bigint[])
returns setof pgrecall.corrected
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select m.memory_id, m.text, m.valid_from, m.valid_to, m.superseded_by
  from   unnest(_corrected.memory_ids) with ordinality as u(id, n)
  cross  join lateral (
    select x.memory_id, x.text, x.valid_from, x.valid_to, x.superseded_by
    from   pgrecall.memory x
    where  x.bank_id = _corrected.bank and x.memory_id = u.id
    limit  1
  ) as m
  order  by u.n;
end;
$$;
comment on function pgrecall_internal._corrected is
'Memories after a correction, in the order given.';

create or replace function pgrecall_internal._check_not_quarantined(
  bank text, memory_id bigint, is_hidden boolean)
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  if exists (
    select from pgrecall.memory m
    where  m.bank_id = _check_not_quarantined.bank
      and  m.memory_id = _check_not_quarantined.memory_id
      and  m.corrections -> -1 ->> 'kind' = 'quarantine'
      and  (not is_hidden
            or pgrecall_internal._is_hidden(m.valid_from, m.valid_to, m.corrections))
  ) then
    raise exception using
      errcode = 'RC015',
      message = format('memory %s was last changed by quarantine()', memory_id),
      hint    = 'Release the source first; bank.quarantined names those in quarantine.';
  end if;
end;
$$;
comment on function pgrecall_internal._check_not_quarantined is
'Raises RC015 for a memory whose last correction was by quarantine(). is_hidden: only for one that '
'quarantine() took out of recalls.';

create or replace function pgrecall.supersede(
  bank          text,
  memory_id     bigint,
  superseded_by bigint default null,
  at            timestamptz default now(),
  reach         text default 'memory',
  dry_run       boolean default false)
returns setof pgrecall.corrected
language plpgsql volatile parallel unsafe rows 2
set search_path from current
as $$
declare
  ends_at timestamptz := coalesce(at, now());
  ids     bigint[] := array[memory_id];
begin
  perform pgrecall_internal._check_choice(
    'reach', reach, '{memory,copies}',
    'With "copies" what near_copies() lists ends with the memory.');
  if dry_run then
    perform pgrecall_internal._bank(bank);
  else
    perform pgrecall_internal._locked_bank(bank);
  end if;
  perform pgrecall_internal._check_memory(bank, memory_id);
  if superseded_by is not null then
    perform pgrecall_internal._check_memory(bank, superseded_by);
  end if;
  if superseded_by = memory_id then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('memory %s cannot supersede itself', memory_id),
      hint    = 'Pass the id of the newer memory, or none.';
  elsif reach = 'copies' then
    ids := ids || array(
      select c.memory_id
      from   pgrecall.near_copies(bank, memory_id, superseded_by, as_of => ends_at) as c);
  end if;
  perform pgrecall_internal._check_not_quarantined(bank, memory_id, true);
  perform pgrecall_internal._check_successors(
    bank, ids, array_fill(superseded_by, array[cardinality(ids)]));
  if dry_run then
    return query
    select c.memory_id, c.text, c.valid_from, greatest(ends_at, c.valid_from),
           supersede.superseded_by
    from   pgrecall_internal._corrected(bank, ids) as c;
    return;
  end if;
  perform pgrecall_internal._end_memories(
    bank, 'supersede', nextval('pgrecall.id_seq'), ids,
    array_fill(ends_at, array[cardinality(ids)]),
    array_fill(superseded_by, array[cardinality(ids)]));
  return query
  select * from pgrecall_internal._corrected(bank, ids);
end;
$$;
comment on function pgrecall.supersede is
'Ends a memory at a time, and names the one that replaces it, if any; a recall finds it only as of '
'earlier times. reach => ''copies'' ends what near_copies() lists as well; dry_run ends nothing. '
'Returns the ended memories. unsupersede() undoes it. Errors: RC001, RC010 unknown memory, RC015 '
'the source of superseded_by is trusted less, or that of the memory is in quarantine, 22023.';

create or replace function pgrecall_internal._restore(bank text, memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
-- An index whose order is asked for is used, whatever the planner assumes.
set enable_sort = off
set plan_cache_mode = force_custom_plan
as $$
declare
  memory_id bigint;
  other_id  bigint;
  ids       bigint[];
  ends      timestamptz[];
begin
  select m.memory_id, o.memory_id into memory_id, other_id
  from   pgrecall.memory m
  cross  join lateral (
    -- Only one index provides this range in this order.
    select x.memory_id
    from   pgrecall.memory x
    where  x.bank_id = _restore.bank and x.valid_to is null
      and  x.content_hash between m.content_hash and m.content_hash
    order  by x.content_hash
    limit  1
  ) as o
  where  m.bank_id = _restore.bank and m.memory_id = any (_restore.memory_ids)
    and  m.valid_to is not null and not m.corrections -> -1 ? 'valid_to'
  limit  1;
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('memory %s cannot be restored: memory %s now says the same',
                       memory_id, other_id),
      hint    = format('Forget the later one first: select pgrecall.forget(%L, ''{%s}'');',
                       bank, other_id);
  end if;
  select array_agg(m.memory_id), array_agg((m.corrections -> -1 ->> 'valid_to')::timestamptz)
  into   ids, ends
  from   pgrecall.memory m
  where  m.bank_id = _restore.bank and m.memory_id = any (_restore.memory_ids);
  update pgrecall.memory m
  set    valid_to      = c.valid_to,
         superseded_by = (
           select s.memory_id from pgrecall.memory s
           where  s.bank_id = _restore.bank
             and  s.memory_id = (m.corrections -> -1 ->> 'superseded_by')::bigint),
         proof_count   = (m.corrections -> -1 ->> 'proof_count')::integer,
         corrections   = nullif(m.corrections - -1, '[]')
  from   unnest(ids, ends) as c(memory_id, valid_to)
  where  m.bank_id = _restore.bank and m.memory_id = c.memory_id;
end;
$$;
comment on function pgrecall_internal._restore is
'Reverts the last correction of each of these memories. Errors: 22023 another current memory has '
'the same content.';

create or replace function pgrecall.unsupersede(bank text, memory_id bigint)
returns setof pgrecall.corrected
language plpgsql volatile parallel unsafe rows 2
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  last          jsonb;
  correction_id bigint;
  ids           bigint[];
  other         pgrecall.memory;
begin
  perform pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_memory(bank, memory_id);
  perform pgrecall_internal._check_not_quarantined(bank, memory_id, false);
  last := (
    select m.corrections -> -1 from pgrecall.memory m
    where  m.bank_id = unsupersede.bank and m.memory_id = unsupersede.memory_id
  );
  if last is null then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('no correction of memory %s is recorded', memory_id),
      hint    = 'It was never corrected, or it was by a release before 0.2.0.';
  end if;
  ids := array(
    select m.memory_id
    from   pgrecall.memory m
    where  m.bank_id = unsupersede.bank
      and  m.memory_id in (
             select unsupersede.memory_id
             union all
             select (last ->> 'replaced_by')::bigint
             union all
             select k.value::bigint from jsonb_array_elements_text(last -> 'members') as k
             union all
             select s.memory_id from pgrecall.memory s
             where  s.bank_id = unsupersede.bank
               and  s.superseded_by = (last ->> 'replaced_by')::bigint)
      and  m.corrections -> -1 -> 'correction_id' = last -> 'correction_id'
      and  m.corrections -> -1 -> 'replaced_by' is not distinct from last -> 'replaced_by'
    order  by m.memory_id <> unsupersede.memory_id, m.memory_id
  );
  -- Of a memory and the version that update_memory() stored of it, which has a later id than the
  -- correction, only one holds at a time: the version ends where it began; or, where it is what
  -- comes back, the memory ends there. First, as both may have the same content.
  correction_id := (last ->> 'correction_id')::bigint;
  if last ->> 'kind' = 'update' then
    select m.* into other
    from   pgrecall.memory m
    where  m.bank_id = unsupersede.bank and m.memory_id = (last ->> 'replaced_by')::bigint
      and  greatest(m.memory_id, unsupersede.memory_id) > correction_id;
    if (other.corrections -> -1 ->> 'correction_id')::bigint > correction_id
       or other.corrections is not null and other.valid_to <= now()
    then
      raise exception using
        errcode = 'invalid_parameter_value',
        message = format('memory %s, the other version of memory %s, was corrected since',
                         other.memory_id, memory_id),
        hint    = format('Revert that first: select * from pgrecall.unsupersede(%L, %s);', bank,
                         other.memory_id);
    end if;
    perform pgrecall_internal._end_memories(
      bank, 'update', correction_id, array[other.memory_id],
      array[case when other.memory_id > memory_id then '-infinity' else (
              select m.valid_from from pgrecall.memory m
              where  m.bank_id = unsupersede.bank and m.memory_id = unsupersede.memory_id) end],
      array[memory_id]);
  end if;
  perform pgrecall_internal._restore(bank, ids);
  return query
  select * from pgrecall_internal._corrected(bank, ids);
end;
$$;
comment on function pgrecall.unsupersede is
'Reverts the last correction of a memory: the changes of supersede(), a replacing fact or '
'consolidate() in its row, and in the rows that were corrected with it for the same successor; the '
'version that update_memory() made of it ends, as if it had never been, and comes back by '
'unsupersede() of the version. A row that was corrected again since stays as it is. Returns the '
'restored memories, this one first. Errors: RC001, RC010 unknown memory, RC015 quarantine() did '
'it, 22023 nothing to revert, the version that would end was corrected since, or another memory '
'now has the same content.';

-- operations/consolidation.sql
-- Consolidation: merging near duplicates into one memory.
--
-- Two current memories are duplicates if they have the same type, key, time of occurrence,
-- entities, numbers and negations, and either the same text except for case and spaces, or
-- embeddings of the required similarity. The memory of the most trusted source is kept; among
-- equals, the one with the highest confidence, then the latest. The others end now and point to it,
-- and its proof_count is the sum of all. As of earlier times all of them are found. A memory is
-- merged only into one that is kept, so that chains of ever less similar memories do not collapse.
-- A memory of a row of an attached table is not merged: it changes, and goes, with its row.
-- Texts are grouped by sorting. One search of the vector index finds what is similar to a memory
-- that has a counterpart in all else. Without an index only memories that agree in all else are
-- compared: up to 1,000 each with each, more by the signs of their vectors. So the work is n log n
-- in the memories of the bank.
create or replace function pgrecall_internal._duplicates(
  bank text, min_similarity double precision, top_k integer)
returns table (kept_id bigint, memory_id bigint, similarity double precision)
language plpgsql stable parallel unsafe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
-- Without statistics of these rows the planner would choose a nested loop.
set enable_nestloop = off
-- A group without an index is read once for each of its memories, not from files.
set work_mem = '64MB'
set jit = off
as $$
declare
  owner      pgrecall.bank := pgrecall_internal._bank(bank);
  is_indexed constant boolean := (pgrecall_internal._hnsw_index(owner)).index_name is not null;
  -- A group up to this size is compared each with each.
  most       constant integer := 1000;
begin
  return query
  with current as materialized (
    select m.memory_id, n.normal,
           jsonb_build_array(
             m.fact_type, lower(pgrecall_internal._normalised(m.fact_key)), m.occurred::text,
             pgrecall_internal._numbers_and_negations(m.text),
             array(
               select x.entity_id from pgrecall.mention x
               where  x.bank_id = _duplicates.bank and x.memory_id = m.memory_id
               order  by x.entity_id)) as likeness,
           row_number() over (
             order by pgrecall_internal._trust(owner.source_trust, m.source_id) desc,
                      m.confidence desc, m.mentioned_at desc, m.memory_id desc) as place
    from   pgrecall.memory m
    cross  join lateral (
      select sha256(convert_to(lower(regexp_replace(
               btrim(pgrecall_internal._normalised(m.text)), '[[:space:]]+', ' ', 'g')),
               'UTF8')) as normal
      offset 0
    ) as n
    where  m.bank_id = _duplicates.bank and m.valid_to is null
      and  not exists (select from pgrecall.attached_row r
                       where  r.bank_id = _duplicates.bank and r.memory_id = m.memory_id)
  ),
  counted as materialized (
    select array_agg(u.memory_id) as ids,
           array_agg(u.memory_id) filter (where u.alike > 1) as searched
    from   (select c.memory_id, count(*) over (partition by c.likeness) as alike
            from   current c) as u
    where  is_indexed
  ),
  embedded as materialized (
    select c.memory_id, c.likeness, e.embedding,
           count(*) over (partition by c.likeness) as alike
    from   current c
    join   pgrecall.embedding e
      on   e.bank_id = _duplicates.bank and e.memory_id = c.memory_id
      and  e.model = coalesce(owner.embedding_model, '') and e.kind = 'text'
    where  not is_indexed
  ),
  alike as materialized (
    select array_agg(e.memory_id) as ids, array_agg(e.embedding) as embeddings
    from   embedded e
    where  e.alike between 2 and most
    group  by e.likeness
  ),
  -- Similar vectors differ in few signs. So in one of 16 orders by signs, each of which begins with
  -- another element, they most likely lie beside one another.
  beside as materialized (
    select distinct least(s.memory_id, o.id) as one_id, greatest(s.memory_id, o.id) as other_id
    from (
      select e.memory_id, array_agg(e.memory_id) over (
               partition by e.likeness, r.n
               order  by substring(e.signs || e.signs from r.n * length(e.signs) / 16 + 1 for 64)
               rows   between 1 following and 5 following) as ids
      from   (select x.memory_id, x.likeness, binary_quantize(x.embedding) as signs
              from   embedded x
              where  x.alike > most) as e
      cross  join generate_series(0, 15) as r(n)
    ) as s
    cross  join unnest(s.ids) as o(id)
  ),
  near as (
    select x.from_id, x.to_id, x.similarity
    from   counted n
    -- Among current ones: those that were merged before are as similar.
    cross  join lateral pgrecall_internal._similar_memories(
             owner, coalesce(n.searched, '{}'), min_similarity, among => n.ids) as x
    union all
    select f.id, x.id, x.similarity
    from   alike g
    cross  join lateral unnest(g.ids, g.embeddings) as f(id, embedding)
    cross  join lateral (
      select t.id, least(pgrecall_internal._similarity(
               1 - (t.embedding <=> f.embedding), owner.low_cosine, owner.high_cosine), 1)
               as similarity
      from   unnest(g.ids, g.embeddings) as t(id, embedding)
      where  t.id <> f.id
      order  by t.embedding <=> f.embedding, t.id desc
      limit  5
    ) as x
    where  x.similarity >= min_similarity
    union all
    select x.from_id, x.to_id, x.similarity
    from (
      select p.from_id, p.to_id, p.similarity,
             row_number() over (partition by p.from_id order by p.similarity desc, p.to_id desc)
               as n
      from   beside b
      join   embedded f on f.memory_id = b.one_id
      join   embedded t on t.memory_id = b.other_id
      cross  join lateral (
        select least(pgrecall_internal._similarity(
                 1 - (t.embedding <=> f.embedding), owner.low_cosine, owner.high_cosine), 1)
                 as similarity
        offset 0
      ) as s
      cross  join lateral (values (b.one_id, b.other_id, s.similarity),
                                  (b.other_id, b.one_id, s.similarity))
                            as p(from_id, to_id, similarity)
      where  s.similarity >= min_similarity
    ) as x
    where  x.n <= 5
  ),
  pair as (
    select c.memory_id, first_value(c.memory_id) over same as other_id,
           first_value(c.place) over same as other_place, 1::double precision as similarity
    from   current c
    window same as (partition by c.likeness, c.normal order by c.place)
    union all
    select case when a.place > b.place then a.memory_id else b.memory_id end as memory_id,
           case when a.place > b.place then b.memory_id else a.memory_id end as other_id,
           least(a.place, b.place) as other_place, x.similarity
    from   near x
    join   current a on a.memory_id = x.from_id
    join   current b on b.memory_id = x.to_id and b.likeness = a.likeness
  ),
  -- Each points to its best duplicate, or to itself where there is none better.
  best as materialized (
    select distinct on (p.memory_id) p.memory_id, p.other_id, p.similarity
    from   pair p
    order  by p.memory_id, p.other_place, p.similarity desc
  )
  select d.other_id, d.memory_id, d.similarity
  from   best d
  join   best k on k.memory_id = d.other_id and k.other_id = k.memory_id
  where  d.other_id <> d.memory_id
  order  by d.similarity desc, d.memory_id
  limit  top_k;
end;
$$;
comment on function pgrecall_internal._duplicates is
'Memories to be merged (memory_id), and the memories to merge them into (kept_id), most similar '
'first. It is longer than 100 lines because it is one statement, whose parts are its steps.';

create or replace function pgrecall.consolidate(
  bank           text,
  dry_run        boolean default true,
  min_similarity double precision default 0.95,
  top_k          integer default 1000)
returns setof pgrecall.consolidated
language plpgsql volatile parallel unsafe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  correction_id bigint;
  kept          bigint[];
  merged        bigint[];
  similarities  double precision[];
  kept_ids      bigint[];
  counts        integer[];
begin
  if dry_run is distinct from false then
    perform pgrecall_internal._bank(bank);
  else
    perform pgrecall_internal._locked_bank(bank);
  end if;
  perform pgrecall_internal._check_share('min_similarity', min_similarity);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 100000);
  select coalesce(array_agg(d.kept_id), '{}'), coalesce(array_agg(d.memory_id), '{}'),
         array_agg(d.similarity)
  into   kept, merged, similarities
  from   pgrecall_internal._duplicates(bank, min_similarity, top_k) as d;
  select array_agg(g.memory_id), array_agg(g.total)
  into   kept_ids, counts
  from (
    select m.memory_id, least(m.proof_count + sum(o.proof_count), 2147483647)::integer as total
    from   unnest(kept, merged) as p(kept_id, memory_id)
    join   pgrecall.memory m on m.bank_id = consolidate.bank and m.memory_id = p.kept_id
    join   pgrecall.memory o on o.bank_id = consolidate.bank and o.memory_id = p.memory_id
    group  by m.memory_id, m.proof_count
  ) as g;
  if dry_run is not distinct from false and merged <> '{}' then
    correction_id := nextval('pgrecall.id_seq');
    perform pgrecall_internal._end_memories(
      bank, 'consolidate', correction_id, merged,
      array_fill(now(), array[cardinality(merged)]), kept);
    update pgrecall.memory m
    set    proof_count = g.total,
           corrections = pgrecall_internal._corrections(
                           row(m.*)::pgrecall.memory, 'consolidate', correction_id, m.memory_id,
                           null)
    from   unnest(kept_ids, counts) as g(memory_id, total)
    where  m.bank_id = consolidate.bank and m.memory_id = g.memory_id;
  end if;
  return query
  select k.memory_id, m.memory_id, k.text, m.text, p.similarity, g.total
  from   unnest(kept, merged, similarities) as p(kept_id, memory_id, similarity)
  join   pgrecall.memory k on k.bank_id = consolidate.bank and k.memory_id = p.kept_id
  join   pgrecall.memory m on m.bank_id = consolidate.bank and m.memory_id = p.memory_id
  join   unnest(kept_ids, counts) as g(memory_id, total) on g.memory_id = p.kept_id
  order  by k.memory_id, p.similarity desc, m.memory_id;
end;
$$;
comment on function pgrecall.consolidate is
'Merges current memories that say the same: they have the same type, key, occurred, entities, '
'numbers and negations, and the same text except for case and spaces, or embeddings with a '
'similarity of min_similarity where one is among the 5 nearest of the other (without a vector '
'index, the nearest of those that agree in all else; among more than 1,000 such that search is '
'approximate, too). The memory of the most trusted source is '
'kept; among equals, the one with the highest confidence, then the latest. The others end now and '
'point to it, and their proof counts are added up. dry_run, the default, only lists the pairs, at '
'most top_k; call it again until it returns none. Memories of attached tables are left out. '
'unconsolidate() undoes a call, unsupersede() one group. Errors: RC001, 22023.';

create or replace function pgrecall.unconsolidate(bank text)
returns setof pgrecall.corrected
language plpgsql volatile parallel unsafe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  ids  bigint[];
begin
  perform pgrecall_internal._locked_bank(bank);
  with last as (
    select m.memory_id, (m.corrections -> -1 ->> 'correction_id')::bigint as correction_id
    from   pgrecall.memory m
    where  m.bank_id = unconsolidate.bank and m.corrections -> -1 ->> 'kind' = 'consolidate'
  )
  select array_agg(l.memory_id order by l.memory_id)
  into   ids
  from   last l
  where  l.correction_id = (select max(x.correction_id) from last x);
  perform pgrecall_internal._restore(bank, ids);
  return query
  select * from pgrecall_internal._corrected(bank, ids);
end;
$$;
comment on function pgrecall.unconsolidate is
'Undoes the latest call of consolidate() that was not undone yet. Memories that were corrected '
'again since stay as they are. Returns the restored memories, none where there is nothing to undo. '
'Errors: RC001, 22023 another memory now has the content of one of them.';

-- operations/quarantine.sql
-- Quarantine of a source, and the audit of who wrote, ended and replaced what.
--
-- quarantine() takes all facts of a source out of every recall, whatever the time it asks for: they
-- end when they began. Facts that they had ended hold again, up to where a fact of another source
-- took over. Nothing more from the source is retained, and answers leave out messages of sessions
-- of that name. Each row that changes keeps its former values in corrections, so that release()
-- brings back exactly what was there; a row that was corrected again since stays as it is. audit()
-- reads the history that each row carries. Forgotten memories and reverted corrections leave no
-- trace.
create or replace function pgrecall_internal._check_source(source text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if source is null or source in ('', '*') or length(source) > 500 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('source must be a name of 1 to 500 characters, not "%s"',
                       coalesce(left(source, 80), 'null')),
      hint    = 'Pass a source_id, or a prefix with an asterisk: "web:*".';
  end if;
end;
$$;
comment on function pgrecall_internal._check_source is
'Raises 22023 unless source names a source, or a prefix of some but not of all.';

create or replace function pgrecall_internal._is_of_source(source_id text, source text)
returns boolean
language sql immutable parallel safe
return source_id = source
       or source like '%*' and starts_with(source_id, left(source, -1));
comment on function pgrecall_internal._is_of_source is
'Whether a source_id is this source, or has the prefix of "web:*".';

create or replace function pgrecall_internal._holding_again(bank text, memory_ids bigint[])
returns table (memory_id bigint, ends_at timestamptz, successor_id bigint)
language plpgsql stable parallel safe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
-- Without statistics of these rows the planner would choose a nested loop.
set enable_nestloop = off
set jit = off
as $$
begin
  return query
  with recursive gone as materialized (
    select m.memory_id, m.superseded_by, m.valid_to
    from   unnest(memory_ids) as u(memory_id)
    join   pgrecall.memory m on m.bank_id = _holding_again.bank and m.memory_id = u.memory_id
  ),
  ended as materialized (
    select m.memory_id, m.superseded_by, m.content_hash, m.corrections -> -1 as last
    from   gone g
    join   pgrecall.memory m on m.bank_id = _holding_again.bank and m.superseded_by = g.memory_id
    where  (m.corrections -> -1 ->> 'replaced_by')::bigint = g.memory_id
      and  not exists (select from gone x where x.memory_id = m.memory_id)
  ),
  -- From each memory to the last one of the source that followed it. A union, because consolidated
  -- memories may point to one another.
  chain as (
    select e.memory_id, e.superseded_by as next_id, null::timestamptz as ends_at, 1 as step
    from   ended e
    union
    select c.memory_id, g.superseded_by, g.valid_to, c.step + 1
    from   chain c
    join   gone g on g.memory_id = c.next_id
    where  g.superseded_by is not null and c.step < 1000
  ),
  last as (
    select distinct on (c.memory_id) c.memory_id, c.next_id, c.ends_at
    from   chain c
    order  by c.memory_id, c.step desc
  ),
  restored as (
    select e.memory_id, e.content_hash,
           case when g.memory_id is null then l.ends_at
                else (e.last ->> 'valid_to')::timestamptz end as ends_at,
           case when g.memory_id is null then l.next_id else (
             -- It may be forgotten.
             select s.memory_id from pgrecall.memory s
             where  s.bank_id = _holding_again.bank
               and  s.memory_id = (e.last ->> 'superseded_by')::bigint) end as successor_id
    from   ended e
    join   last l on l.memory_id = e.memory_id
    left   join gone g on g.memory_id = l.next_id
  )
  -- Another current memory may say the same by now.
  select distinct on (case when r.ends_at is null then r.content_hash end,
                      case when r.ends_at is not null then r.memory_id end)
         r.memory_id, r.ends_at, r.successor_id
  from   restored r
  where  r.ends_at is not null
     or  not exists (select from pgrecall.memory o
                     where  o.bank_id = _holding_again.bank and o.content_hash = r.content_hash
                       and  o.valid_to is null)
  order  by case when r.ends_at is null then r.content_hash end,
            case when r.ends_at is not null then r.memory_id end, r.memory_id desc;
end;
$$;
comment on function pgrecall_internal._holding_again is
'The memories that the given ones had ended, as they are without them: the time at which each ends '
'now, and the memory that ends it. Null: it holds.';

create or replace function pgrecall.quarantine(
  bank text, source text, dry_run boolean default false)
returns setof pgrecall.corrected
language plpgsql volatile parallel unsafe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  locked        pgrecall.bank;
  correction_id bigint;
  ids           bigint[];
  again         bigint[];
  ends          timestamptz[];
  successors    bigint[];
begin
  locked := case when dry_run then pgrecall_internal._bank(bank)
                 else pgrecall_internal._locked_bank(bank) end;
  perform pgrecall_internal._check_source(source);
  ids := array(
    select m.memory_id
    from   pgrecall.memory m
    where  m.bank_id = quarantine.bank
      and  pgrecall_internal._is_of_source(m.source_id, quarantine.source)
      and  m.corrections -> -1 ->> 'kind' is distinct from 'quarantine'
    order  by m.memory_id
  );
  select coalesce(array_agg(h.memory_id order by h.memory_id), '{}'),
         array_agg(h.ends_at order by h.memory_id), array_agg(h.successor_id order by h.memory_id)
  into   again, ends, successors
  from   pgrecall_internal._holding_again(bank, ids) as h;
  if dry_run then
    return query
    select c.memory_id, c.text, c.valid_from,
           case when u.n is null then c.valid_from else ends[u.n] end,
           case when u.n is null then c.superseded_by else successors[u.n] end
    from   pgrecall_internal._corrected(bank, ids || again) as c
    left   join unnest(again) with ordinality as u(memory_id, n) on u.memory_id = c.memory_id;
    return;
  end if;
  correction_id := coalesce((locked.quarantined ->> source)::bigint, nextval('pgrecall.id_seq'));
  update pgrecall.bank b
  set    quarantined = b.quarantined || jsonb_build_object(source, correction_id)
  where  b.bank_id = quarantine.bank;
  update pgrecall.memory m
  set    valid_to    = m.valid_from,
         corrections = pgrecall_internal._corrections(
                         row(m.*)::pgrecall.memory, 'quarantine', correction_id, null, null)
  where  m.bank_id = quarantine.bank and m.memory_id = any (ids);
  update pgrecall.memory m
  set    valid_to      = greatest(u.ends_at, case when u.ends_at is not null then m.valid_from end),
         superseded_by = u.successor_id,
         corrections   = pgrecall_internal._corrections(
                           row(m.*)::pgrecall.memory, 'quarantine', correction_id, null, null)
  from   unnest(again, ends, successors) as u(memory_id, ends_at, successor_id)
  where  m.bank_id = quarantine.bank and m.memory_id = u.memory_id;
  return query
  select * from pgrecall_internal._corrected(bank, ids || again);
end;
$$;
comment on function pgrecall.quarantine is
'Takes the facts of a source out of every recall, whatever time it asks about, and accepts no more '
'from that source: retain() raises RC015. source is a source_id, or a prefix with an asterisk, '
'"web:*". Facts that the source had ended hold again. Returns the memories that change, in their '
'new state; dry_run changes none. Call it again if others have written meanwhile. release() undoes '
'it. Errors: RC001, 22023 source names none.';

create or replace function pgrecall.release(bank text, source text)
returns setof pgrecall.corrected
language plpgsql volatile parallel unsafe rows 100
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  locked pgrecall.bank;
  ids    bigint[];
begin
  locked := pgrecall_internal._locked_bank(bank);
  perform pgrecall_internal._check_source(source);
  if not locked.quarantined ? source then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('source "%s" of bank "%s" is not in quarantine', source, bank),
      hint    = format('In quarantine are: %s.', coalesce(nullif((
                  select string_agg(k, ', ') from jsonb_object_keys(locked.quarantined) as k),
                  ''), 'none'));
  end if;
  ids := array(
    select m.memory_id
    from   pgrecall.memory m
    where  m.bank_id = release.bank and m.corrections -> -1 ->> 'kind' = 'quarantine'
      and  m.corrections -> -1 -> 'correction_id' = locked.quarantined -> source
    order  by m.memory_id
  );
  update pgrecall.bank b
  set    quarantined = b.quarantined - source
  where  b.bank_id = release.bank;
  perform pgrecall_internal._restore(bank, ids);
  -- Of "web:*" and "web:1" both may be in quarantine.
  perform pgrecall.quarantine(bank, k.name)
  from   jsonb_object_keys(locked.quarantined - source) as k(name)
  where  pgrecall_internal._is_of_source(k.name, source)
     or  pgrecall_internal._is_of_source(source, k.name);
  -- Rows of attached tables that changed meanwhile.
  update pgrecall.attached_change c
  set    problem = null
  where  c.bank_id = release.bank and c.problem is not null;
  return query
  select * from pgrecall_internal._corrected(bank, array(
    select m.memory_id
    from   pgrecall.memory m
    where  m.bank_id = release.bank and m.memory_id = any (ids)
      and  m.corrections -> -1 ->> 'kind' is distinct from 'quarantine'
    order  by m.memory_id));
end;
$$;
comment on function pgrecall.release is
'Undoes quarantine() of a source, row for row; memories that were corrected again since, or whose '
'source is in quarantine by another name, stay as they are. Facts retained meanwhile end none of '
'them, whatever replace says: conflicts_with of a recall names these. Rows of attached tables that '
'could not be stored are tried again. Returns those restored. Errors: RC001, 22023 the source is '
'not in quarantine, or another memory now says what one of them says.';

create or replace function pgrecall.audit(
  bank text, since timestamptz default '-infinity', source text default null,
  top_k bigint default 1000)
returns setof pgrecall.audited
language plpgsql stable parallel unsafe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 1000000);
  if source is not null then
    perform pgrecall_internal._check_source(source);
  end if;
  return query
  select e.at, e.by, e.action, m.memory_id, m.source_id, e.other_id, m.text
  from   pgrecall.memory m
  cross  join lateral (
    select m.created_at, m.written_by, 'retain', null::bigint, 0::bigint
    union all
    select (c.value ->> 'at')::timestamptz, c.value ->> 'by',
           case c.value ->> 'kind' when 'retain' then 'replace' else c.value ->> 'kind' end,
           (c.value ->> 'replaced_by')::bigint, c.n
    from   jsonb_array_elements(m.corrections) with ordinality as c(value, n)
  ) as e(at, by, action, other_id, n)
  where  m.bank_id = audit.bank
    and  (audit.source is null
          or pgrecall_internal._is_of_source(m.source_id, audit.source))
    and  coalesce(e.at, '-infinity') >= coalesce(audit.since, '-infinity')
  order  by e.at desc nulls last, m.memory_id desc, e.n desc
  limit  audit.top_k;
end;
$$;
comment on function pgrecall.audit is
'Who stored, ended and replaced which memories, the latest first, at most top_k: those of a source '
'(a source_id, or a prefix with an asterisk, "web:*"), since a time. It does not show forgotten '
'memories and reverted corrections. Errors: RC001, 22023.';

-- operations/index-plan.sql
-- HNSW indexes: their state, and the plan that creates and drops them.
--
-- A bank gets one partial index of the vectors of its model once there are hnsw_threshold of them;
-- below that an exact search is fast enough. One index of all fact types is searched in half of the
-- time of one for each of three; a search of one type skips the others. A function cannot build an
-- index without blocking the bank, so index_plan() only returns the statements, for a client to run
-- one by one.
-- An index whose settings changed keeps its name until the new one is built; then the new one is
-- renamed. recall_check() measures the recall of the indexes.
create or replace function pgrecall_internal._hnsw_state(bank pgrecall.bank, index_name text)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return (
    select case
             when exists (
               select from pg_stat_progress_create_index p where p.index_relid = x.indexrelid
             ) then 'building'
             when not x.indisvalid then 'invalid'
             when c.reloptions @> array['m=' || bank.hnsw_m,
                                        'ef_construction=' || bank.hnsw_ef_construction]
               then 'ready'
             else 'other'
           end
    from   pg_class c
    join   pg_index x on x.indexrelid = c.oid
    where  c.relnamespace = 'pgrecall_internal'::regnamespace and c.relname = index_name
  );
end;
$$;
comment on function pgrecall_internal._hnsw_state is
'building, invalid, ready, or other: the index was built with another m or ef_construction than '
'the bank sets. Null: there is no index.';

create or replace function pgrecall_internal._hnsw_seconds(
  bank pgrecall.bank, dimensions integer, elements bigint)
returns double precision
language sql immutable parallel safe
return elements * ln(elements + 1) / 1e6 * bank.hnsw_ef_construction / 64
       * (9 + 0.03 * dimensions * case bank.vector_search when 'binary' then 0.1 else 1 end);
comment on function pgrecall_internal._hnsw_seconds is
'Estimated seconds to build an HNSW index of so many vectors on one core, with '
'maintenance_work_mem that holds it.';

create or replace function pgrecall_internal._count_vectors(
  bank text, model text, most bigint default null)
returns bigint
language plpgsql stable parallel safe
set search_path from current
-- Forces the index, whatever the statistics.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return (
    select count(*) from (
      select from pgrecall.embedding e
      where  e.bank_id = _count_vectors.bank and e.fact_type > '' and e.model = _count_vectors.model
      limit  most
    ) as bounded
  );
end;
$$;
comment on function pgrecall_internal._count_vectors is
'How many vectors of facts and of their questions a bank has of a model, counted up to most.';

create or replace function pgrecall_internal._hnsw_definition(
  bank pgrecall.bank, index_name text, model text, dimensions integer)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  -- The statement may be run with another search_path.
  prefix text := (
    select format('%I.', n.nspname)
    from   pg_type t
    join   pg_namespace n on n.oid = t.typnamespace
    where  t.oid = 'halfvec'::regtype);
begin
  -- On the partition: PostgreSQL cannot build an index of a partitioned table concurrently. Where
  -- Citus distributes the table, no row of it tells the partition, for rows are in its shards.
  return format(
    'create index concurrently %I on %s using hnsw ((%s) %s) with (m = %s, ef_construction = %s) '
    'where %s',
    index_name,
    (select format('pgrecall_internal.%I', c.relname)
     from   pg_inherits h
     join   pg_class c on c.oid = h.inhrelid
     cross  join lateral regexp_match(
              pg_get_expr(c.relpartbound, c.oid), 'modulus (\d+), remainder (\d+)') as b(bound)
     where  h.inhparent = 'pgrecall.embedding'::regclass
       and  satisfies_hash_partition(
              h.inhparent, b.bound[1]::integer, b.bound[2]::integer, bank.bank_id)),
    pgrecall_internal._vector_key(bank, dimensions, 'embedding', prefix),
    prefix || case bank.vector_search
                when 'binary' then 'bit_hamming_ops' else 'halfvec_cosine_ops' end,
    bank.hnsw_m, bank.hnsw_ef_construction,
    pgrecall_internal._hnsw_scope(
      format('%L::bigint', hashtextextended(bank.bank_id, 0)),
      format('%L::bigint', hashtextextended(model, 0))));
end;
$$;
comment on function pgrecall_internal._hnsw_definition is
'The statement that creates an HNSW index of that name.';

create or replace function pgrecall_internal._hnsw_steps(
  bank pgrecall.bank, model text, dimensions integer, counted bigint)
returns setof pgrecall.index_step
language plpgsql stable parallel unsafe rows 2
set search_path from current
as $$
declare
  name      text := pgrecall_internal._hnsw_name(bank, model, dimensions);
  new_name  text := name || '_new';
  state     text := pgrecall_internal._hnsw_state(bank, name);
  new_state text := pgrecall_internal._hnsw_state(bank, new_name);
  elements  bigint := counted;
  is_due    boolean;
  is_built  boolean;
  reason    text;
begin
  if state = 'building' or new_state = 'building' then
    return;
  end if;
  is_due   := coalesce(state, '') in ('ready', 'other') or counted >= bank.hnsw_threshold;
  is_built := is_due and state is distinct from 'ready' and coalesce(new_state, '') = 'ready';
  if is_due and state is distinct from 'ready' then
    elements := pgrecall_internal._count_vectors(bank.bank_id, model);
  end if;
  reason := case
    when state = 'other' then format(
      'hnsw_m or hnsw_ef_construction changed, now %s and %s',
      bank.hnsw_m, bank.hnsw_ef_construction)
    when state = 'invalid' or new_state = 'invalid' then 'a build was interrupted'
    when is_due then format('%s vectors, hnsw_threshold is %s', elements, bank.hnsw_threshold)
    else format('%s vectors are fewer than hnsw_threshold %s', elements, bank.hnsw_threshold)
  end;

  -- An index with other settings is used until the new one is built and takes its name.
  return query
  select bank.bank_id, null::text, s.action, s.statement, reason, s.index_name,
         case s.action when 'create' then
           pgrecall_internal._hnsw_bytes(bank, dimensions, elements) end,
         case s.action when 'create' then
           pgrecall_internal._hnsw_seconds(bank, dimensions, elements) end
  from (
    values
      (1, new_state is not null and not is_built, 'drop', new_name,
       format('drop index concurrently pgrecall_internal.%I', new_name)),
      (2, state = 'invalid', 'drop', name,
       format('drop index concurrently pgrecall_internal.%I', name)),
      (3, is_due and state is distinct from 'ready' and not is_built, 'create',
       case state when 'other' then new_name else name end,
       pgrecall_internal._hnsw_definition(
         bank, case state when 'other' then new_name else name end, model, dimensions)),
      (4, is_due and state = 'other', 'drop', name,
       format('drop index concurrently pgrecall_internal.%I', name)),
      (5, is_built or (is_due and state = 'other'), 'rename', name,
       format('alter index pgrecall_internal.%I rename to %I', new_name, name))
  ) as s(n, is_wanted, action, index_name, statement)
  where  s.is_wanted
  order  by s.n;
end;
$$;
comment on function pgrecall_internal._hnsw_steps is
'Steps of index_plan() for the HNSW index of a bank and model, in order. None while it is being '
'built. counted: its vectors, up to hnsw_threshold.';

create or replace function pgrecall_internal._unused_hnsw_steps(bank text, kept text[])
returns setof pgrecall.index_step
language plpgsql stable parallel unsafe rows 5
set search_path from current
as $$
declare
  existing   record;
  hashes     bigint[];
  searched   pgrecall.bank;
  used_model text;
  elements   bigint;
  step       pgrecall.index_step;
begin
  for existing in
    select c.relname, pg_get_expr(x.indpred, x.indrelid) as predicate
    from   pg_inherits h
    join   pg_index x on x.indrelid = h.inhrelid
    join   pg_class c on c.oid = x.indexrelid
    where  h.inhparent = 'pgrecall.embedding'::regclass
      and  c.relname like 'embedding\_hnsw\_%' and c.relname <> all (kept)
      and  not exists (
             select from pg_stat_progress_create_index p where p.index_relid = c.oid)
    order  by c.relname
  loop
    -- Of bank and model, from the predicate of the index; of an index of 0.2.0, of one fact type,
    -- that between them.
    hashes := array(
      select v.value[1]::bigint
      from   regexp_matches(existing.predicate, '= ''(-?\d+)''::bigint', 'g')
               with ordinality as v(value, n)
      order  by v.n
    );
    continue when hashes[1] <> hashtextextended(bank, 0);
    select b.* into searched
    from   pgrecall.bank b
    where  hashtextextended(b.bank_id, 0) = hashes[1];
    -- A bank that row security hides still exists.
    continue when not found and row_security_active('pgrecall.bank');
    step := null;
    step.bank_id    := searched.bank_id;
    step.fact_type  := (
      select t.fact_type from pgrecall.fact_type t
      where  t.bank_id = searched.bank_id and hashtextextended(t.fact_type, 0) = hashes[2]
    );
    used_model := (
      select m
      from   unnest(array[coalesce(searched.embedding_model, ''), searched.next_model]) as m
      where  hashtextextended(m, 0) = hashes[cardinality(hashes)]
    );
    elements := pgrecall_internal._count_vectors(
      searched.bank_id, used_model, searched.hnsw_threshold);
    step.action     := 'drop';
    step.statement  := format('drop index concurrently pgrecall_internal.%I', existing.relname);
    step.index_name := existing.relname;
    step.reason     := case
      when searched.bank_id is null then 'the bank is gone'
      when used_model is null then format(
        'the bank is embedded with model "%s" now', coalesce(searched.embedding_model, ''))
      when elements < searched.hnsw_threshold / 2.0 then format(
        '%s vectors are fewer than half of hnsw_threshold %s', elements, searched.hnsw_threshold)
      else 'the bank searches in another way now'
    end;
    return next step;
  end loop;
end;
$$;
comment on function pgrecall_internal._unused_hnsw_steps is
'Steps that drop HNSW indexes that no search uses, other than those in kept: the bank was dropped, '
'its vectors are few or of another model, or its vector_search changed. bank null: of all banks.';

create or replace function pgrecall.index_plan(bank text default null)
returns setof pgrecall.index_step
language plpgsql stable parallel unsafe rows 10
set search_path from current
-- Forces lookups in index order, also in the functions it calls.
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
  searched pgrecall.bank;
  part     record;
  name     text;
  kept     text[] := '{}';
begin
  if bank is not null then
    perform pgrecall_internal._bank(bank);
  end if;
  for searched in
    select b.* from pgrecall.bank b
    where  index_plan.bank is null or b.bank_id = index_plan.bank
    order  by b.bank_id
  loop
    for part in
      select m.model, m.dimensions, c.counted
      from   (values (coalesce(searched.embedding_model, ''), searched.embedding_dimensions),
                     (searched.next_model, searched.next_dimensions)) as m(model, dimensions)
      cross  join lateral pgrecall_internal._count_vectors(
               searched.bank_id, m.model, searched.hnsw_threshold) as c(counted)
      where  c.counted >= searched.hnsw_threshold / 2.0
    loop
      name := pgrecall_internal._hnsw_name(searched, part.model, part.dimensions);
      kept := kept || array[name, name || '_new'];
      return query
      select s.* from pgrecall_internal._hnsw_steps(
        searched, part.model, part.dimensions, part.counted) as s;
    end loop;
  end loop;
  return query
  select s.* from pgrecall_internal._unused_hnsw_steps(bank, kept) as s;
end;
$$;
comment on function pgrecall.index_plan is
'Statements that create and drop HNSW indexes, due now, in the order to run them; of all banks '
'where none is given. It runs none itself; in psql: select statement from pgrecall.index_plan() '
'\gexec. Each runs outside a transaction block, and the bank can be used meanwhile. An index is '
'due from hnsw_threshold vectors of a bank and model on, until they are fewer than half; it is '
'built again when hnsw_m, hnsw_ef_construction or vector_search changed or a build was '
'interrupted. It is on the partition of the bank, since PostgreSQL cannot build one concurrently '
'on embedding itself. estimated_bytes is its size, which should fit into maintenance_work_mem; '
'estimated_seconds is on one core. Errors: RC001.';

create or replace function pgrecall.recall_check(
  bank text, sample integer default 100, k integer default 20, depth integer default 100,
  is_next boolean default false)
returns setof pgrecall.recall_checked
language plpgsql volatile parallel unsafe rows 3
set search_path from current
as $$
declare
  request       pgrecall_internal.request := pgrecall_internal._request(
    bank, '', options => '{"similarity_floor": -1}', arm => 'semantic');
  searched      pgrecall.bank := request.bank;
  searched_type text;
  question      halfvec;
  indexed       record;
  exact         record;
  started_at    timestamptz;
  found_at      timestamptz;
  result        pgrecall.recall_checked;
begin
  perform pgrecall_internal._check_range('sample', sample, 1, 10000);
  perform pgrecall_internal._check_range('k', k, 1, 1000);
  perform pgrecall_internal._check_range('depth', depth, k, 10000);
  if is_next then
    perform pgrecall_internal._check_reembedding(searched);
    searched := pgrecall_internal._as_next(searched);
    request.bank := searched;
  end if;

  foreach searched_type in array pgrecall_internal._fact_types(bank, null) loop
    result := (searched_type, null, 0, 0, 0, 0);
    -- A fixed sample, so that settings can be compared.
    for question in
      select e.embedding from pgrecall.embedding e
      where  e.bank_id = recall_check.bank and e.fact_type = searched_type
        and  e.model = coalesce(searched.embedding_model, '')
      order  by hashint8extended(e.memory_id, 0), e.kind, e.ordinal
      limit  sample
    loop
      request.fact_types := array[searched_type];
      request.depth := depth;
      started_at := clock_timestamp();
      indexed := pgrecall_internal._semantic_search(request, question);
      found_at := clock_timestamp();
      request.depth := k;
      exact := pgrecall_internal._semantic_search(
        request, question, is_exact => true);
      result.milliseconds :=
        result.milliseconds + extract(epoch from found_at - started_at) * 1000;
      result.exact_milliseconds :=
        result.exact_milliseconds + extract(epoch from clock_timestamp() - found_at) * 1000;
      -- A vector at the same distance as the farthest of the k nearest counts as one of them.
      result.recall := result.recall + (
        select least(1, count(*)::double precision / cardinality(exact.scores))
        from   unnest(indexed.scores[1:k]) as s
        where  s >= exact.scores[cardinality(exact.scores)] - 1e-6);
      result.path := indexed.note;
      result.questions := result.questions + 1;
    end loop;
    continue when result.questions = 0;
    result.recall := result.recall / result.questions;
    result.milliseconds := result.milliseconds / result.questions;
    result.exact_milliseconds := result.exact_milliseconds / result.questions;
    return next result;
  end loop;
end;
$$;
comment on function pgrecall.recall_check is
'What share of the k nearest vectors the semantic arm finds (recall, 0 to 1), per fact type: it '
'searches with a fixed sample of vectors of the bank and compares with exact search. path: the '
'index used, or that the search was exact. milliseconds is the mean of one search to this depth, '
'exact_milliseconds of an exact one for k. Low recall: raise ef_search, or hnsw_m and '
'hnsw_ef_construction, and run what index_plan() returns. is_next checks the vectors of the model '
'that the bank is being re-embedded with. Errors: RC001, 22023, with is_next those of '
'reembed_pending().';

-- operations/log.sql
-- The log of recalls: writing it and summing it up.
--
-- log_recalls() takes what clients sampled; recall_stats() gives counts and percentiles by bank,
-- slow_recalls() single recalls.
-- Percentiles are those of the samples; counts of recalls are estimated from their shares.

create or replace function pgrecall_internal._milliseconds_field(place text, value jsonb)
returns real
language plpgsql immutable parallel safe
as $$
begin
  if (case when jsonb_typeof(value) = 'number' then value::numeric not between 0 and 1000000000
           else true end)
  then
    perform pgrecall_internal._raise_invalid_field(
      place, format('expected a number from 0 to 1000000000, not %s',
                    coalesce(left(value::text, 80), 'null')),
      'Give each time in milliseconds.');
  end if;
  return value::real;
end;
$$;
comment on function pgrecall_internal._milliseconds_field is
'Reads a time in milliseconds, which must be given. Errors: RC003.';

create or replace function pgrecall.log_recalls(bank text, samples jsonb)
returns integer
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  keys   text[] := '{asked_at,share,total_ms,wait_ms,embed_ms,database_ms,rerank_ms,hits,left_out}';
  sample jsonb;
  place  text;
  logged pgrecall.recall_log;
  done   integer := 0;
begin
  perform pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_array('samples', samples);
  if current_setting('transaction_read_only')::boolean then
    return 0;
  end if;
  for sample in select s from jsonb_array_elements(samples) as s loop
    place := format('samples[%s]', done);
    perform pgrecall_internal._check_keys(place, sample, keys);
    logged.asked_at := pgrecall_internal._time_field(place || '.asked_at', sample -> 'asked_at');
    logged.share := pgrecall_internal._fraction_field(place || '.share', sample -> 'share');
    if logged.asked_at is null or not isfinite(logged.asked_at)
       or logged.share is null or logged.share <= 0
    then
      perform pgrecall_internal._raise_invalid_field(
        place, 'asked_at and a share above 0 are needed',
        'Pass when it was asked, and the log_share of the bank then.');
    end if;
    logged.left_out := array(
      select left(pgrecall_internal._string_field(place || '.left_out', w, true), 100)
      from   jsonb_array_elements(
               pgrecall_internal._array_field(place || '.left_out', sample -> 'left_out')) as w
    );
    insert into pgrecall.recall_log (
      bank_id, asked_at, share, total_ms, wait_ms, embed_ms, database_ms, rerank_ms, hits, left_out)
    values (
      log_recalls.bank, logged.asked_at, logged.share,
      pgrecall_internal._milliseconds_field(place || '.total_ms', sample -> 'total_ms'),
      pgrecall_internal._milliseconds_field(place || '.wait_ms', sample -> 'wait_ms'),
      pgrecall_internal._milliseconds_field(place || '.embed_ms', sample -> 'embed_ms'),
      pgrecall_internal._milliseconds_field(place || '.database_ms', sample -> 'database_ms'),
      pgrecall_internal._milliseconds_field(place || '.rerank_ms', sample -> 'rerank_ms'),
      pgrecall_internal._milliseconds_field(place || '.hits', sample -> 'hits')::integer,
      logged.left_out);
    done := done + 1;
  end loop;
  return done;
end;
$$;
comment on function pgrecall.log_recalls is
'Writes samples of recalls into recall_log; returns how many. Each is an object: asked_at, share '
'above 0 to 1, total_ms, wait_ms, embed_ms, database_ms, rerank_ms, hits, and left_out, an array '
'of texts. The driver calls it where log_share of the bank is above 0. In a read-only transaction '
'and on a standby it writes nothing and returns 0. Errors: RC001, RC003 invalid sample, 22023.';

create or replace function pgrecall.recall_stats(
  bank text default null, since timestamptz default now() - interval '1 day')
returns setof pgrecall.recall_times
language plpgsql stable parallel safe rows 10
set search_path from current
as $$
begin
  if bank is not null then
    perform pgrecall_internal._bank(bank);
  end if;
  return query
  select l.bank_id, count(*), round(sum(1 / l.share::numeric))::bigint,
         percentile_cont(0.5) within group (order by l.total_ms),
         percentile_cont(0.95) within group (order by l.total_ms),
         percentile_cont(0.99) within group (order by l.total_ms),
         max(l.total_ms)::double precision,
         percentile_cont(0.95) within group (order by l.wait_ms),
         percentile_cont(0.95) within group (order by l.embed_ms),
         percentile_cont(0.95) within group (order by l.database_ms),
         percentile_cont(0.95) within group (order by l.rerank_ms),
         count(*) filter (where l.hits = 0), count(*) filter (where l.left_out <> '{}')
  from   pgrecall.recall_log l
  where  (l.bank_id = recall_stats.bank or recall_stats.bank is null)
    and  l.asked_at >= coalesce(recall_stats.since, '-infinity')
  group  by l.bank_id
  order  by l.bank_id;
end;
$$;
comment on function pgrecall.recall_stats is
'How many recalls banks had since a time, and how long they took, from the samples in recall_log. '
'bank null: all. since null: all that is kept. No row for a bank without samples: set its '
'log_share by configure_bank(), as in {"log_share": 0.01}. Errors: RC001.';

create or replace function pgrecall.slow_recalls(
  bank  text default null,
  since timestamptz default now() - interval '1 day',
  top_k integer default 20)
returns setof pgrecall.logged_recall
language plpgsql stable parallel safe rows 20
set search_path from current
as $$
begin
  if bank is not null then
    perform pgrecall_internal._bank(bank);
  end if;
  perform pgrecall_internal._check_range('top_k', top_k, 1, 10000);
  return query
  select l.bank_id, l.asked_at, l.total_ms, l.wait_ms, l.embed_ms, l.database_ms, l.rerank_ms,
         l.hits, l.left_out
  from   pgrecall.recall_log l
  where  (l.bank_id = slow_recalls.bank or slow_recalls.bank is null)
    and  l.asked_at >= coalesce(slow_recalls.since, '-infinity')
  order  by l.total_ms desc, l.asked_at desc, l.sample_id
  limit  slow_recalls.top_k;
end;
$$;
comment on function pgrecall.slow_recalls is
'The slowest recalls that were logged since a time, slowest first: when, how long each '
'stage took, how many hits. bank null: of all banks. At most top_k, 1 to 10,000. '
'Errors: RC001, 22023.';

-- operations/maintenance.sql
-- Maintenance: the work that retain() leaves over, done in batches.
--
-- Retaining a fact takes the same time in a bank of any size. What grows with the bank is left
-- pending: counting documents where many were stored at once (bank/statistics.sql), computing
-- weights anew when the mean length of the documents has changed, and links that were deferred
-- (retain/link.sql). So is deleting old samples from the log of recalls (operations/log.sql). None
-- of it changes what a bank holds; recalls work meanwhile. maintain() does a bounded piece of it.
-- Call it until it returns no row, each call in a transaction of its own: what a call has done
-- stays done, whatever stops the next.

create or replace function pgrecall_internal._maintain_bank(bank text, batch_size integer)
returns setof pgrecall.maintained
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
set lock_timeout = '1s'
as $$
declare
  locked pgrecall.bank;
  done   pgrecall.maintained;
begin
  done.bank_id := bank;
  -- A bank with nothing to do is not locked. Weights come first, because a transaction that shares
  -- a bank must not wait for exclusive use of it.
  foreach done.kind in array array['memory', 'message'] loop
    if pgrecall_internal._is_weighing_due(bank, done.kind) then
      begin
        locked := pgrecall_internal._locked_bank(bank);
        done.task := 'weigh';
        done.documents := pgrecall_internal._weigh_documents(locked, done.kind, batch_size);
        return next done;
      exception when lock_not_available then
        -- Other writers must not wait any longer behind this one; a later call tries again.
        null;
      end;
    end if;
  end loop;
  foreach done.kind in array array['memory', 'message'] loop
    if pgrecall_internal._is_refresh_due(bank, done.kind) then
      locked := pgrecall_internal._shared_bank(bank);
      done.task := 'count';
      done.documents := pgrecall_internal._refresh_when_due(locked, done.kind, batch_size);
      return next done;
    end if;
  end loop;
  if exists (
    select from pgrecall.memory m
    where  m.bank_id = _maintain_bank.bank and not m.is_linked
  ) then
    done.task := 'link';
    done.kind := 'memory';
    done.documents := pgrecall.link_pending(bank, batch_size);
    return next done;
  end if;
  if exists (
    select from pgrecall.recall_log l
    where  l.bank_id = _maintain_bank.bank and l.asked_at < now() - interval '30 days'
  ) then
    delete from pgrecall.recall_log l
    using (
      select o.asked_at, o.sample_id
      from   pgrecall.recall_log o
      where  o.bank_id = _maintain_bank.bank and o.asked_at < now() - interval '30 days'
      limit  _maintain_bank.batch_size
    ) as x
    where  l.bank_id = _maintain_bank.bank and l.asked_at = x.asked_at
      and  l.sample_id = x.sample_id;
    get diagnostics done.documents = row_count;
    done.task := 'prune';
    done.kind := 'recall';
    return next done;
  end if;
end;
$$;
comment on function pgrecall_internal._maintain_bank is
'Does the pending work of one bank, at most batch_size documents of each task.';

create or replace function pgrecall.maintain(bank text default null, batch_size integer default 500)
returns setof pgrecall.maintained
language plpgsql volatile parallel unsafe rows 3
set search_path from current
as $$
declare
  name text;
  did  pgrecall.maintained[];
  rest bigint := batch_size;
begin
  perform pgrecall_internal._check_range('batch_size', batch_size, 1, 100000);
  perform pgrecall_internal._check_isolation('maintain');
  perform pgrecall_internal._check_writable();
  if bank is not null then
    perform pgrecall_internal._bank(bank);
  end if;
  for name in
    select b.bank_id from pgrecall.bank b
    where  b.bank_id = maintain.bank or maintain.bank is null
    order  by b.bank_id
  loop
    begin
      did := array(
        select m from pgrecall_internal._maintain_bank(name, batch_size) as m
        where  m.documents > 0);
    exception when others then
      -- One bank must not keep the others from their turn; a later call tries it again.
      if maintain.bank is not null and sqlstate <> '55P03' then
        raise;
      end if;
      did := '{}';
      raise warning using
        errcode = sqlstate,
        message = format('maintain() left bank "%s" out: %s', name, sqlerrm);
    end;
    return query select d.* from unnest(did) as d;
    rest := rest - coalesce((select sum(d.documents) from unnest(did) as d), 0);
    exit when rest <= 0;
  end loop;
end;
$$;
comment on function pgrecall.maintain is
'Does work that retain() left pending: counts documents, computes BM25 weights anew when the mean '
'length has changed, writes deferred links, deletes samples older than 30 days from recall_log; at '
'most batch_size documents of each. bank null: of all banks in turn, until batch_size documents '
'are done. Returns what it did, no row when nothing is left: call it until then. Weights wait for '
'transactions that write into the bank; after a second it leaves them to a later call. A bank that '
'another transaction holds, or whose work fails while all banks are asked for, is left out with a '
'warning. Errors: RC001, 22023, 25001 isolation level above read committed.';

-- operations/replica.sql
-- How far a standby is behind its primary.
--
-- A recall writes nothing, so it runs on a standby as on the primary. Only the part of the log that
-- the standby has replayed may differ. log_position() names a position in the log of the primary
-- behind everything committed so far. replica_lag() measures a standby, and raises an error where
-- it is not near enough for a caller. Both read the state of the server and no table. The driver
-- sends replica_lag() and a read in one round trip: if replica_lag() fails, the read does not run,
-- and if not, it sees what had been replayed by then.

create or replace function pgrecall.log_position()
returns pg_lsn
language sql volatile parallel safe
return case when pg_is_in_recovery()
            then pg_last_wal_replay_lsn()
            else pg_current_wal_insert_lsn()
       end;
comment on function pgrecall.log_position is
'Position in the write-ahead log behind all that is committed so far: on a standby the last one '
'that it has replayed.';

create or replace function pgrecall.replica_lag(
  at_most double precision default null,
  after   pg_lsn default null)
returns double precision
language plpgsql volatile parallel safe
set search_path from current
as $$
declare
  seconds double precision;
begin
  if at_most < 0 or at_most = 'nan' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('at_most must be at least 0, not %s', at_most),
      hint    = 'Give seconds; leave it out to only measure.';
  end if;
  if not pg_is_in_recovery() then
    return 0;
  end if;
  -- Without a connection to the primary, everything that was received may be replayed and yet be
  -- old.
  if exists (select from pg_stat_wal_receiver)
     and pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn() then
    seconds := 0;
  else
    seconds := abs(extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()));
  end if;
  if at_most < coalesce(seconds, 'infinity') then
    raise exception using
      errcode = 'object_not_in_prerequisite_state',
      message = format(
        'the standby is %s behind its primary, more than %s s',
        coalesce(round(seconds::numeric, 3) || ' s', 'an unknown time'), at_most),
      hint    = 'Ask the primary, or allow more.';
  end if;
  if pg_last_wal_replay_lsn() < after then
    raise exception using
      errcode = 'object_not_in_prerequisite_state',
      message = format(
        'the standby has replayed the log up to %s, not yet to %s',
        pg_last_wal_replay_lsn(), after),
      hint    = 'Ask the primary, or try again.';
  end if;
  return seconds;
end;
$$;
comment on function pgrecall.replica_lag is
'Seconds that this server is behind its primary: 0 on a primary, and on a standby that has '
'replayed all that it received over an open connection; else the age of the last transaction that '
'it has replayed, null where there is none. A lost connection is noticed after '
'wal_receiver_timeout. at_most: raise an error where the lag is more. after: raise an error where '
'the log is not replayed up to this position, as log_position() of the primary returned it. '
'Errors: 55000 too far behind, 22023 at_most out of its range.';

-- operations/server.sql
-- What a server does beside recalls: the size of tables, builds of indexes, standbys.
--
-- All are read from the statistics of PostgreSQL, which shows a role its own sessions; a member of
-- pg_monitor sees those of others. The console and doctor show them.
create or replace function pgrecall.relation_sizes(top_k integer default 20)
returns setof pgrecall.relation_size
language plpgsql stable parallel restricted rows 20
set search_path from current
as $$
begin
  perform pgrecall_internal._check_range('top_k', top_k, 1, 10000);
  return query
  select s.relid::regclass::text, s.n_live_tup, s.n_dead_tup, pg_table_size(s.relid),
         pg_indexes_size(s.relid), greatest(s.last_vacuum, s.last_autovacuum),
         greatest(s.last_analyze, s.last_autoanalyze)
  from   pg_stat_user_tables s
  where  s.schemaname in ('pgrecall', 'pgrecall_internal')
  order  by pg_total_relation_size(s.relid) desc, 1
  limit  relation_sizes.top_k;
end;
$$;
comment on function pgrecall.relation_sizes is
'The largest tables of pgrecall, largest first, with their rows, indexes and last vacuum; those of '
'embedding are its partitions. At most top_k, 1 to 10,000. Errors: 22023.';

create or replace function pgrecall.index_builds()
returns setof pgrecall.index_build
language plpgsql stable parallel restricted rows 2
set search_path from current
as $$
begin
  return query
  select c.relname::text, p.relid::regclass::text, p.phase,
         -- The heap is read once, for its rows; phases without blocks report no progress.
         (case when p.blocks_total > 0 then p.blocks_done::double precision / p.blocks_total
          end)::real,
         p.tuples_done, a.query_start,
         case when p.current_locker_pid > 0 then p.current_locker_pid::integer end
  from   pg_stat_progress_create_index p
  left   join pg_class c on c.oid = p.index_relid
  left   join pg_stat_activity a on a.pid = p.pid
  where  p.datname = current_database()
    and  p.relid in (
           select h.inhrelid from pg_inherits h
           where  h.inhparent = 'pgrecall.embedding'::regclass)
  order  by a.query_start, 1;
end;
$$;
comment on function pgrecall.index_builds is
'Builds of vector indexes that run now, of any bank, by any session that the role may see, the '
'earliest first. index_plan() does not list what is being built.';

create or replace function pgrecall.standbys()
returns setof pgrecall.standby
language plpgsql volatile parallel restricted rows 2
set search_path from current
as $$
begin
  return query
  select coalesce(r.application_name, ''), r.state,
         greatest(0, pg_wal_lsn_diff(pgrecall.log_position(), r.replay_lsn))::bigint,
         extract(epoch from r.replay_lag)::double precision
  from   pg_stat_replication r
  order  by 1, r.pid;
end;
$$;
comment on function pgrecall.standbys is
'The standbys that follow this server, by name, and how far each is behind; replica_lag() asks a '
'standby itself. A role that is not a member of pg_monitor sees only their names.';

-- operations/row-security.sql
-- Row security and roles, for databases in which several tenants have banks.
--
-- enable_row_security() fences every table that has a bank_id, and the partitions of embedding,
-- with one policy named pgrecall_bank. row_security_status() says what is fenced, and who may read
-- what is not. create_roles() creates roles for tenants. Nothing here runs unasked: an install
-- grants nothing and fences nothing. All of it can be run again, and should be after an upgrade,
-- which may add tables. For a role under row security PostgreSQL uses no index whose operators are
-- not leakproof, so that several arms would read the whole bank. Therefore a recall of such a role
-- is passed on to _searched_recall(), which create_roles() makes security definer, owned by a role
-- that may only read and sees every bank. It answers a caller that passes the fence_key of the
-- bank, which row security hides from all others. A role that must see every bank has bypassrls, or
-- is the admin role of create_roles(), which policy pgrecall_admin lets through.

create or replace function pgrecall_internal._fenced_tables()
returns setof oid
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return query
  select c.oid
  from   pg_class c
  join   pg_attribute a on a.attrelid = c.oid and a.attname = 'bank_id'
  where  c.relnamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
    and  c.relkind in ('r', 'p')
  -- A fixed order, so that two calls at once do not deadlock.
  order  by c.oid;
end;
$$;
comment on function pgrecall_internal._fenced_tables is
'The tables that have a column bank_id, the partitions of embedding too.';

create or replace function pgrecall_internal._lock_rights()
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('pgrecall', 0));
end;
$$;
comment on function pgrecall_internal._lock_rights is
'Waits for who changes rights at the same time, installs or upgrades, until the transaction ends.';

create or replace function pgrecall_internal._member_banks()
returns text[]
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return array(
    select r.rolname::text from pg_roles r
    where  pg_has_role(current_user, r.oid, 'usage') and not r.rolsuper
  );
end;
$$;
comment on function pgrecall_internal._member_banks is
'The roles whose rights the current role has, itself included: the banks that a role sees under '
'enable_row_security(''membership'').';

create or replace function pgrecall.enable_row_security(
  by text default 'role', setting text default 'pgrecall.bank')
returns integer
language plpgsql volatile parallel unsafe
set search_path from current
set client_min_messages = warning
as $$
declare
  condition text;
  relation  regclass;
  fenced    integer := 0;
begin
  perform pgrecall_internal._check_choice(
    'by', by, '{role,membership,setting}', 'With "role" a role sees the bank of its own name.');
  if setting is null or setting !~ '^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('"%s" cannot name a setting', setting),
      hint    = 'Use two words with a dot between them, such as app.bank.';
  end if;
  condition := case by
    -- In the collation of bank_id: else no index would be searched with it, and a role could tell
    -- from a plan how many rows of another bank a condition of its own finds.
    when 'role' then 'bank_id = current_user::text collate "default"'
    -- In a subquery it runs once a statement, and an index can be searched with its result.
    when 'membership' then
      'bank_id = any ((select pgrecall_internal._member_banks())::text[])'
    else format('bank_id = current_setting(%L, true)', setting)
  end;
  perform pgrecall_internal._lock_rights();
  -- Statements that define objects take no parameters; the names come from the catalog.
  for relation in select t from pgrecall_internal._fenced_tables() as t loop
    execute format('alter table %s enable row level security', relation);
    execute format('drop policy if exists pgrecall_bank on %s', relation);
    execute format('create policy pgrecall_bank on %s using (%s)', relation, condition);
    fenced := fenced + 1;
  end loop;
  update pgrecall.bank b set fence_key = gen_random_uuid();
  return fenced;
end;
$$;
comment on function pgrecall.enable_row_security is
'Restricts every role but the owner of the tables to its own banks, by row security on each table; '
'returns how many tables. by => ''role'': the bank that has the name of the role. ''membership'': '
'the banks that have the names of roles of which it is a member, itself included. ''setting'': the '
'bank that the setting names, as in: alter role app set pgrecall.bank = ''acme''; whoever can send '
'SQL can change that, so it fits only where no SQL comes from users. Policies of yours stay. Only '
'the owner of the tables may call it; a call replaces what the one before it set up. Locks every '
'table for a moment. Errors: 22023, 42501 not the owner.';

create or replace function pgrecall.disable_row_security()
returns integer
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  relation regclass;
  opened   integer := 0;
begin
  perform pgrecall_internal._lock_rights();
  for relation in
    select t
    from   pgrecall_internal._fenced_tables() as t
    join   pg_policy p on p.polrelid = t and p.polname = 'pgrecall_bank'
    order  by t
  loop
    execute format('drop policy pgrecall_bank on %s', relation);
    if not exists (
      select from pg_policy p where p.polrelid = relation
        and p.polname not in ('pgrecall_admin', 'pgrecall_searcher')
    ) then
      execute format('alter table %s disable row level security', relation);
    end if;
    opened := opened + 1;
  end loop;
  return opened;
end;
$$;
comment on function pgrecall.disable_row_security is
'Undoes enable_row_security(); returns on how many tables. A table with a policy of yours stays '
'under row security. Errors: 42501 not the owner.';

create or replace function pgrecall.row_security_status()
returns setof pgrecall.table_security
language plpgsql stable parallel safe rows 50
set search_path from current
as $$
begin
  return query
  select x.relation,
         case
           when x.is_enabled and x.policies <> '{}' then 'fenced'
           when x.is_enabled then 'closed'
           when x.open_to <> '{}' then 'open'
           else 'private'
         end,
         x.policies,
         x.open_to
  from (
    select format('%s.%I', c.relnamespace::regnamespace, c.relname) as relation,
           c.relrowsecurity as is_enabled,
           array(
             select p.polname::text from pg_policy p where p.polrelid = c.oid order by 1
           ) as policies,
           -- Without roles that row security does not restrict.
           array(
             select distinct coalesce(r.rolname::text, 'public')
             from (
               select a.grantee
               from   aclexplode(c.relacl) as a
               where  a.privilege_type in ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
               union
               select a.grantee
               from   pg_attribute k
               cross  join lateral aclexplode(k.attacl) as a
               where  k.attrelid = c.oid
             ) as g
             left   join pg_roles r on r.oid = g.grantee
             where  not c.relrowsecurity and g.grantee <> c.relowner
               and  not coalesce(r.rolsuper or r.rolbypassrls, false)
             order  by 1
           ) as open_to
    from   pgrecall_internal._fenced_tables() as t
    join   pg_class c on c.oid = t
  ) as x
  order  by x.relation;
end;
$$;
comment on function pgrecall.row_security_status is
'The tables with rows of banks, and whether row security keeps roles to theirs. status is fenced: '
'with policies; closed: without any, so that only the owner sees rows; open: roles in open_to have '
'rights on all its rows; private: only the owner has rights. open_to leaves out superusers and '
'roles with bypassrls. What the policies say is not checked.';

create or replace function pgrecall.create_roles(prefix text default 'pgrecall')
returns text[]
language plpgsql volatile parallel unsafe
set search_path from current
set client_min_messages = warning
as $$
declare
  reader   name := prefix || '_reader';
  writer   name := prefix || '_writer';
  admin    name := prefix || '_admin';
  searcher name := prefix || '_searcher';
  searched regprocedure;
  admins   text;
  new_role name;
  relation regclass;
  called   regprocedure;
begin
  if prefix is null or prefix !~ '^[a-z][a-z0-9_]{0,39}$' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('"%s" cannot begin the names of roles', prefix),
      hint    = 'Use a word of 1 to 40 small letters, digits and underscores.';
  end if;
  searched := to_regproc('pgrecall_internal._searched_recall')::oid::regprocedure;
  if searched is null then
    raise exception using
      errcode = 'undefined_function',
      message = 'function pgrecall_internal._searched_recall() is missing',
      hint    = 'It was dropped with its owner, a searcher. Create it again with: pgrecall migrate';
  end if;
  perform pgrecall_internal._lock_rights();
  -- Statements about roles take no parameters.
  foreach new_role in array array[reader, writer, admin, searcher] loop
    if to_regrole(quote_ident(new_role)) is null then
      execute format('create role %I nologin', new_role);
    elsif not pg_has_role(new_role, 'member with admin option') then
      raise exception using
        errcode = 'insufficient_privilege',
        message = format('role "%s" exists already, and role "%s" may not grant it', new_role,
                         current_user),
        hint    = 'Roles belong to the whole server, so another database may use it. Choose '
                  'another prefix: select pgrecall.create_roles(''other'');';
    end if;
  end loop;
  execute format('grant usage on schema pgrecall, pgrecall_internal to %I', reader);
  execute format('grant select on all tables in schema pgrecall, pgrecall_internal to %I', reader);
  -- A reader may log how long its recalls took.
  execute format('grant insert on pgrecall.recall_log to %I', reader);
  execute format('grant %I to %I', reader, writer);
  execute format('grant insert, update, delete on all tables in schema pgrecall, '
                 'pgrecall_internal to %I', writer);
  execute format('grant usage on sequence pgrecall.id_seq to %I', writer);
  execute format('grant %I to %I', writer, admin);
  -- Only the admin creates and drops banks.
  execute format('revoke insert, delete on pgrecall.bank from %I', writer);
  execute format('grant insert, delete on pgrecall.bank to %I', admin);
  -- The admins of other prefixes go on seeing every bank.
  select string_agg(quote_ident(r.rolname), ', ')
  into   admins
  from   pg_roles r
  where  r.rolname = admin or r.oid = any (
           select unnest(p.polroles) from pg_policy p
           where  p.polrelid = 'pgrecall.bank'::regclass and p.polname = 'pgrecall_admin');
  for relation in select t from pgrecall_internal._fenced_tables() as t loop
    execute format('drop policy if exists pgrecall_admin on %s', relation);
    execute format('create policy pgrecall_admin on %s to %s using (true)', relation, admins);
    execute format('drop policy if exists pgrecall_searcher on %s', relation);
    execute format('create policy pgrecall_searcher on %s for select to %I using (true)',
                   relation, searcher);
  end loop;
  -- Default privileges may keep functions from everybody, those of pgvector too.
  for called in
    select p.oid
    from   pg_proc p
    where  (p.pronamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
            or exists (
              select
              from   pg_depend d
              join   pg_extension x on x.oid = d.refobjid and x.extname = 'vector'
              where  d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
                and  d.refclassid = 'pg_extension'::regclass))
      and  pg_has_role(p.proowner, 'usage')
      and  not has_function_privilege(reader, p.oid, 'execute')
      -- What they do not keep back an administrator has.
      and  exists (
             select from pg_default_acl d
             where  d.defaclrole = p.proowner and d.defaclnamespace = 0 and d.defaclobjtype = 'f'
               and  not exists (select from aclexplode(d.defaclacl) a where a.grantee = 0))
  loop
    execute format('grant execute on function %s to %I', called, reader);
  end loop;
  execute format('grant %I to %I', reader, searcher);
  if not (select r.rolsuper from pg_roles r where r.rolname = current_user) then
    -- A role that is not a superuser can give a function only to a role of which it is a member and
    -- that could have created it. An upgrade takes it back.
    execute format('grant %I to current_user with inherit true, set true', searcher);
    execute format('grant create on schema pgrecall_internal to %I', searcher);
  end if;
  execute format('revoke execute on function %s from public', searched);
  execute format('grant execute on function %s to %I', searched, reader);
  execute format('alter function %s security definer', searched);
  execute format('alter function %s owner to %I', searched, searcher);
  return array[reader, writer, admin]::text[];
end;
$$;
comment on function pgrecall.create_roles is
'Creates the roles <prefix>_reader, _writer and _admin, which cannot log in, where they are '
'missing, gives each its rights, and returns their names: grant them to those who log in. The '
'reader may call what reads, the writer also what writes within a bank, the admin also create and '
'drop banks; after enable_row_security() it still sees every bank, and the others only theirs. A '
'further role, <prefix>_searcher, is granted to no one: with its rights, which only read, fenced '
'roles recall as fast as others. Run it again after an upgrade, which may add tables. Roles belong '
'to the whole server: a second database with tenants of its own takes another prefix. Roles of '
'another prefix in the same database stay as they are. Building indexes stays with the owner of '
'the tables. Errors: 22023, 42501 the caller may not create roles or does not own the tables, '
'42883 drop owned by removed a function.';

