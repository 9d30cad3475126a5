-- pgrecall 0.1.0, the whole schema. Assembled from sql/ and migrations/ by make build: edit there.

-- sql/00-schema.sql
-- pgrecall: the memory of an AI agent, in PostgreSQL.
-- Run inside one transaction: create extension, psql -1 -f, or pgrecall migrate.

-- Functions freeze this search_path (set search_path from current), so that no caller's path
-- reaches into them.
do $$
declare
  vector_schema name;
  vector_version text;
begin
  if to_regnamespace('pgrecall') is not null then
    raise exception using
      errcode = 'RC012',
      message = 'schema "pgrecall" already exists in this database',
      hint    = 'To upgrade an installed pgrecall run: pgrecall migrate, or: alter extension '
                'pgrecall update;';
  end if;

  select n.nspname, x.extversion
  into   vector_schema, vector_version
  from   pg_extension x
  join   pg_namespace n on n.oid = x.extnamespace
  where  x.extname = 'vector';

  if vector_schema is null then
    raise exception using
      errcode = 'RC012',
      message = 'pgvector is not installed in this database',
      hint    = 'Install it first: create extension vector;';
  end if;
  if string_to_array(vector_version, '.')::integer[] < array[0, 8, 0] then
    raise exception using
      errcode = 'RC012',
      message = format('pgvector 0.8.0 or newer is needed, not %s', vector_version),
      hint    = 'Upgrade it: alter extension vector update;';
  end if;

  perform set_config('search_path', format('pg_catalog, %I, pg_temp', vector_schema), true);
end;
$$;

-- The path holds until the transaction ends. Without one, nothing below may succeed.
do $$
begin
  if current_setting('search_path') not like 'pg_catalog, %, pg_temp' then
    raise exception using
      errcode = 'RC012',
      message = 'this script was not run in one transaction',
      hint    = 'Run it with: psql -1 -v ON_ERROR_STOP=1 -f';
  end if;
  create schema pgrecall;
end;
$$;
comment on schema pgrecall is
'Memory of AI agents: banks of facts, found again by meaning, words, relations and time. Start at '
'pgrecall.hybrid_recall().';

-- One sequence for everything that carries an id: a memory and a message never share one,
-- and a shard is told apart by its range of ids.
create sequence pgrecall.id_seq as bigint;
comment on sequence pgrecall.id_seq is
'Ids of memories, messages, entities and relations. Give every shard a range of its own.';

-- sql/01-bank.sql
create table pgrecall.bank (
  bank_id              text not null,
  text_search_config   text not null default 'english',
  embedding_model      text,
  embedding_dimensions integer,
  weights              jsonb not null default '{}',
  fusion               text not null default 'score_rrf',
  rrf_k                integer not null default 60,
  similarity_floor     real not null default 0.2,
  bm25_k1              real not null default 1.2,
  bm25_b               real not null default 0.75,
  candidate_limit      integer not null default 10000,
  created_at           timestamptz not null default now(),
  type_hints           jsonb,
  widen_below          integer not null default 5,
  context_weight       real not null default 0.5,
  key_weight           real not null default 1,
  constraint bank_pkey primary key (bank_id),
  constraint bank_bank_id_check check (bank_id <> '' and length(bank_id) <= 200),
  constraint bank_embedding_model_check check (embedding_model <> ''),
  constraint bank_embedding_dimensions_check check (embedding_dimensions between 1 and 4000),
  constraint bank_weights_check check (jsonb_typeof(weights) = 'object'),
  constraint bank_fusion_check check (fusion in ('rrf', 'score_rrf')),
  constraint bank_rrf_k_check check (rrf_k between 1 and 10000),
  constraint bank_similarity_floor_check check (similarity_floor between -1 and 1),
  constraint bank_bm25_k1_check check (bm25_k1 between 0 and 10),
  constraint bank_bm25_b_check check (bm25_b between 0 and 1),
  constraint bank_candidate_limit_check check (candidate_limit between 100 and 100000000),
  constraint bank_type_hints_check check (jsonb_typeof(type_hints) = 'object'),
  constraint bank_widen_below_check check (widen_below between 0 and 1000),
  constraint bank_context_weight_check check (context_weight between 0 and 100),
  constraint bank_key_weight_check check (key_weight between 0 and 100)
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
comment on column pgrecall.bank.weights is
'Weight per arm in the fusion, over pgrecall.default_weights(): {"graph": 0.5}. Not negative.';
comment on column pgrecall.bank.fusion is
'rrf or score_rrf, as the functions of these names join the arms.';
comment on column pgrecall.bank.rrf_k is
'k of reciprocal rank fusion: larger makes ranks count less.';
comment on column pgrecall.bank.similarity_floor is
'Cosine similarity below which the semantic arms return nothing, -1 to 1.';
comment on column pgrecall.bank.bm25_k1 is
'Term frequency saturation of BM25. Takes effect on stored facts at the next full '
'refresh_statistics().';
comment on column pgrecall.bank.bm25_b is
'Length normalisation of BM25, 0 to 1. Takes effect on stored facts at the next full '
'refresh_statistics().';
comment on column pgrecall.bank.candidate_limit is
'About how many facts the lexical arms score, those with the rarest words and sets of words first.';
comment on column pgrecall.bank.type_hints is
'Words by fact type, as in default_type_hints(). Null: those.';
comment on column pgrecall.bank.widen_below is
'Memories below which a recall that was narrowed by hints, or to a date, looks everywhere after '
'all. 0: never.';
comment on column pgrecall.bank.context_weight is
'What a word in the context of a fact counts beside one in its text, as in BM25F; 0: nothing. '
'Takes effect on stored facts at the next full refresh_statistics().';
comment on column pgrecall.bank.key_weight is
'What a word in the fact_key counts, as context_weight.';

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
'Kinds of memory a bank holds. Every arm asks for each in a branch of its own.';

-- sql/02-memory.sql
-- The two functions below stand in an index: changing them needs a migration that rebuilds it.

create or replace function pgrecall._scope(bank_id text, fact_type text)
returns bigint
language sql immutable parallel safe
return hashtextextended(_scope.fact_type, hashtextextended(_scope.bank_id, 0));
comment on function pgrecall._scope(text, text) is
'Hash of a bank and a fact type, from which the keys of the lexical index are derived.';

create or replace function pgrecall._lexical_keys(bank_id text, fact_type text, weights sparsevec)
returns bigint[]
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  scope bigint := pgrecall._scope(_lexical_keys.bank_id, _lexical_keys.fact_type);
begin
  -- A sparsevec prints as {dimension:weight,...}/dimensions.
  return array(
    select hashint8extended(split_part(element, ':', 1)::bigint, scope)
    from   unnest(string_to_array(trim(split_part(weights::text, '/', 1), '{}'), ',')) as element
  );
end;
$$;
comment on function pgrecall._lexical_keys(text, text, sparsevec) is
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
comment on column pgrecall.memory.confidence is 'Belief in the fact, 0 to 1.';
comment on column pgrecall.memory.proof_count is 'Number of independent sources that say so.';
comment on column pgrecall.memory.valid_from is
'Known from here on: when it was said or stored, whichever is earlier. as_of compares with it.';
comment on column pgrecall.memory.valid_to is
'No longer held true from here on. Null: still held true.';
comment on column pgrecall.memory.superseded_by is 'The memory that replaced this one.';
comment on column pgrecall.memory.content_hash is
'SHA-256 of what makes the fact the same fact: retaining it again stores nothing.';
comment on column pgrecall.memory.is_linked is
'False while link_pending() has still to write its links.';
comment on column pgrecall.memory.lexical_length is
'Number of lexemes, repeated ones counted, those of context and fact_key by their weights.';
comment on column pgrecall.memory.lexical_weights is
'BM25 weight per lexeme without the IDF; dimension = hash of the lexeme.';

create unique index memory_bank_id_content_hash_key on pgrecall.memory (bank_id, content_hash)
  where valid_to is null;
create index memory_bank_id_fact_key_idx on pgrecall.memory (bank_id, lower(fact_key))
  where fact_key is not null;
create index memory_bank_id_source_id_idx on pgrecall.memory (bank_id, source_id)
  where source_id is not null;
create index memory_bank_id_fact_type_occurred_idx
  on pgrecall.memory (bank_id, fact_type, lower(occurred), upper(occurred));
create index memory_bank_id_fact_type_mentioned_at_idx
  on pgrecall.memory (bank_id, fact_type, mentioned_at) where occurred is null;
create index memory_bank_id_superseded_by_idx on pgrecall.memory (bank_id, superseded_by)
  where superseded_by is not null;
create index memory_bank_id_is_linked_idx on pgrecall.memory (bank_id, memory_id)
  where not is_linked;
create index memory_lexical_keys_idx on pgrecall.memory
  using gin (pgrecall._lexical_keys(bank_id, fact_type, lexical_weights)) with (fastupdate = off);

-- sql/03-embedding.sql
create table pgrecall.embedding (
  bank_id   text not null,
  memory_id bigint not null,
  model     text not null,
  kind      text not null default 'text',
  ordinal   smallint not null default 0,
  fact_type text not null,
  embedding halfvec not null,
  constraint embedding_pkey primary key (bank_id, memory_id, model, kind, ordinal),
  constraint embedding_bank_id_memory_id_fkey
    foreign key (bank_id, memory_id) references pgrecall.memory (bank_id, memory_id)
    on delete cascade,
  constraint embedding_kind_check check (kind in ('text', 'question')),
  constraint embedding_ordinal_check check (ordinal >= 0)
) partition by hash (bank_id);
comment on table pgrecall.embedding is
'Vectors, apart from the facts, so that a bank can be embedded anew beside the old vectors.';
comment on column pgrecall.embedding.model is
'Model that made it; empty when the caller named none.';
comment on column pgrecall.embedding.kind is
'text: of the fact itself. question: of a question that the fact answers.';
comment on column pgrecall.embedding.ordinal is 'Tells apart the questions of one fact, from 0.';
comment on column pgrecall.embedding.fact_type is 'As in memory: the arms ask per fact type.';

-- Up to 4000 dimensions stay in the row: an exact search must not fetch each vector from TOAST.
alter table pgrecall.embedding alter column embedding set storage main;

create index embedding_bank_id_fact_type_model_idx
  on pgrecall.embedding (bank_id, fact_type, model);

-- A bank lives in one partition, so that partial HNSW indexes stay few on each.
-- Chosen at install: set pgrecall.partitions = 64; before running the script.
do $$
declare
  partitions integer := coalesce(nullif(current_setting('pgrecall.partitions', true), ''), '16');
begin
  for remainder in 0 .. partitions - 1 loop
    execute format(
      'create table pgrecall.%I partition of pgrecall.embedding
       for values with (modulus %s, remainder %s)',
      'embedding_' || remainder, partitions, remainder
    );
    execute format(
      'comment on table pgrecall.%I is %L',
      'embedding_' || remainder, 'A hash partition of embedding by bank.'
    );
  end loop;
end;
$$;

-- sql/04-entity.sql
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
'Names an entity goes by, its own included. One name can stand for several entities.';
comment on column pgrecall.entity_alias.alias is 'Normalised by pgrecall.normalised_name().';
comment on column pgrecall.entity_alias.confidence is
'Belief that the name means this entity, 0 to 1.';

create index entity_alias_bank_id_entity_id_idx on pgrecall.entity_alias (bank_id, entity_id);

create table pgrecall.mention (
  bank_id   text not null,
  entity_id bigint not null,
  fact_type text not null,
  memory_id bigint not null,
  constraint mention_pkey primary key (bank_id, entity_id, fact_type, memory_id),
  constraint mention_bank_id_entity_id_fkey
    foreign key (bank_id, entity_id) references pgrecall.entity (bank_id, entity_id)
    on delete cascade,
  constraint mention_bank_id_memory_id_fkey
    foreign key (bank_id, memory_id) references pgrecall.memory (bank_id, memory_id)
    on delete cascade
);
comment on table pgrecall.mention is 'Which fact names which entity.';
comment on column pgrecall.mention.fact_type is 'As in memory: the arms ask per fact type.';

create index mention_bank_id_memory_id_idx on pgrecall.mention (bank_id, memory_id, entity_id);

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
comment on table pgrecall.relation is 'Typed edges between entities: Ana reports_to Sam.';
comment on column pgrecall.relation.kind is 'reports_to, lives_in, owns, ...; any word.';
comment on column pgrecall.relation.memory_id is 'The fact that says so.';
comment on column pgrecall.relation.confidence is 'Belief in the edge, 0 to 1.';
comment on column pgrecall.relation.valid_from is 'The edge holds from here on. Null: always did.';
comment on column pgrecall.relation.valid_to is 'The edge ended here. Null: it still holds.';

create unique index relation_bank_id_memory_id_key
  on pgrecall.relation (bank_id, memory_id, from_id, kind, to_id);
create index relation_bank_id_from_id_idx on pgrecall.relation (bank_id, from_id);
create index relation_bank_id_to_id_idx on pgrecall.relation (bank_id, to_id);

-- sql/05-link.sql
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
    check (kind in ('semantic', 'temporal', 'causes', 'caused_by', 'enables', 'prevents')),
  constraint link_to_id_check check (to_id <> from_id),
  constraint link_weight_check check (weight between 0 and 1)
);
comment on table pgrecall.link is
'Edges between facts, bounded when written: 5 semantic and 1 temporal a fact, causal ones as '
'given.';
comment on column pgrecall.link.kind is
'semantic, temporal, or causal: causes, caused_by, enables, prevents. From the one to the other.';
comment on column pgrecall.link.weight is
'semantic: cosine similarity, 0.7 to 1. temporal: 1 at the same time, 0 a day apart. causal: '
'belief, 0 to 1.';

create index link_bank_id_to_id_idx on pgrecall.link (bank_id, to_id, kind);

-- sql/06-message.sql
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
'Conversations and their bounds: what "since we last talked" means.';
comment on column pgrecall.session.ended_at is 'Null: not over yet.';

create index session_bank_id_started_at_idx on pgrecall.session (bank_id, started_at);

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
'Raw conversation: the safety net for what no fact was made of. Written by retain_messages().';
comment on column pgrecall.message.content_hash is
'SHA-256 of session, role, speaker, text and time: retaining it again stores nothing.';
comment on column pgrecall.message.lexical_length is 'Number of lexemes, repeated ones counted.';
comment on column pgrecall.message.lexical_weights is
'BM25 weight per lexeme without the IDF; dimension = hash of the lexeme.';

create unique index message_bank_id_content_hash_key on pgrecall.message (bank_id, content_hash);
create index message_bank_id_session_id_idx on pgrecall.message (bank_id, session_id, sent_at);
create index message_lexical_keys_idx on pgrecall.message
  using gin (pgrecall._lexical_keys(bank_id, 'message', lexical_weights)) with (fastupdate = off);

-- sql/07-statistics.sql
create table pgrecall.statistics (
  bank_id         text not null,
  kind            text not null,
  document_count  bigint not null,
  average_length  double precision not null,
  weighted_length double precision not null,
  watermark       bigint not null,
  refreshed_at    timestamptz not null,
  constraint statistics_pkey primary key (bank_id, kind),
  constraint statistics_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade,
  constraint statistics_kind_check check (kind in ('memory', 'message')),
  constraint statistics_document_count_check check (document_count >= 0),
  constraint statistics_average_length_check check (average_length >= 0),
  constraint statistics_weighted_length_check check (weighted_length > 0)
);
comment on table pgrecall.statistics is
'What BM25 needs to know of a bank, a summary like that of ANALYZE: refreshed, never counted on '
'write.';
comment on column pgrecall.statistics.kind is 'memory or message: each is a collection of its own.';
comment on column pgrecall.statistics.document_count is 'Number of documents counted.';
comment on column pgrecall.statistics.average_length is 'Mean lexical_length of a document.';
comment on column pgrecall.statistics.weighted_length is
'The mean that the stored weights were made with; they are made anew when it strays.';
comment on column pgrecall.statistics.watermark is 'Documents up to this id are counted.';

-- The function below fills a column: changing it needs a migration that fills it anew.
create or replace function pgrecall._dimension(lexeme text)
returns integer
language sql immutable parallel safe
return (hashtextextended(lexeme, 0) & 9223372036854775807) % 1000000000 + 1;
comment on function pgrecall._dimension(text) is
'Dimension of a lexeme in lexical_weights, 1 to 1,000,000,000.';

create table pgrecall.lexeme (
  bank_id        text not null,
  kind           text not null,
  lexeme         text not null,
  document_count integer not null,
  dimension      integer not null generated always as (pgrecall._dimension(lexeme)) stored,
  constraint lexeme_pkey primary key (bank_id, kind, dimension, lexeme),
  constraint lexeme_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade,
  constraint lexeme_kind_check check (kind in ('memory', 'message')),
  constraint lexeme_document_count_check check (document_count >= 1)
);
comment on column pgrecall.lexeme.kind is 'memory or message, as in statistics.';
comment on column pgrecall.lexeme.document_count is 'Number of documents it stands in.';
comment on column pgrecall.lexeme.dimension is
'Of lexical_weights. Two lexemes may share one.';
comment on table pgrecall.lexeme is
'In how many documents of a bank a lexeme stands. A lexeme that is not here counts as rare.';

create table pgrecall.vocabulary (
  bank_id      text not null,
  lexemes      text[] not null,
  is_automatic boolean not null,
  taken_at     timestamptz not null,
  constraint vocabulary_pkey primary key (bank_id),
  constraint vocabulary_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade
);
comment on table pgrecall.vocabulary is
'The most frequent lexemes of the memories of a bank as they were at a time: what '
'vocabulary_drift() compares with.';
comment on column pgrecall.vocabulary.lexemes is 'At most 5,000, the most frequent first.';
comment on column pgrecall.vocabulary.taken_at is 'When the snapshot was taken.';
comment on column pgrecall.vocabulary.is_automatic is
'Taken by a refresh, and anew by each until 10,000 memories are counted; false: by '
'snapshot_vocabulary().';

-- sql/08-types.sql
create type pgrecall.arm_hit as (
  arm       text,
  memory_id bigint,
  rank      integer,
  score     double precision
);
comment on type pgrecall.arm_hit is
'What an arm found: the id of a memory or message, its rank in the arm from 1, and the arm''s own '
'score.';

-- A type, not "returns table": a column can be added to it without dropping the functions that
-- return it.
create type pgrecall.recalled as (
  rank         integer,
  memory_id    bigint,
  kind         text,
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
  score        double precision,
  arms         jsonb
);
comment on type pgrecall.recalled is
'A row of hybrid_recall(): a memory, or a raw message (kind = message: memory_id is its '
'message_id, context its speaker, '
'source_id its session). arms: {"lexical": {"rank": 1, "score": 7.3, "contribution": 0.0164}, '
'...}.';

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

-- sql/20-version.sql
create or replace function pgrecall.version()
returns text
language sql immutable parallel safe
return '0.1.0';
comment on function pgrecall.version() is 'Version of the installed pgrecall, as in 0.1.0.';

-- sql/21-check.sql
create or replace function pgrecall._bank(bank text)
returns pgrecall.bank
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  found_bank pgrecall.bank;
begin
  if bank is null then
    raise exception using
      errcode = 'null_value_not_allowed',
      message = 'bank must not be null',
      hint    = 'Name the bank to look into; select * from pgrecall.bank_overview lists them.';
  end if;
  select b.* into found_bank from pgrecall.bank b where b.bank_id = _bank.bank;
  if not found then
    raise exception using
      errcode = 'RC001',
      message = format('bank "%s" does not exist', bank),
      hint    = format('Create it with: select pgrecall.create_bank(%L);', bank);
  end if;
  return found_bank;
end;
$$;
comment on function pgrecall._bank(text) is 'The row of a bank. Errors: RC001 unknown bank.';

create or replace function pgrecall._locked_bank(bank text)
returns pgrecall.bank
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  found_bank pgrecall.bank;
begin
  perform pgrecall._bank(bank);
  -- Writers of one bank take turns, so that they neither deadlock nor name an entity twice.
  -- Not "for update": that would also keep out the foreign key checks of other writers.
  select b.* into found_bank from pgrecall.bank b where b.bank_id = _locked_bank.bank
  for no key update;
  if not found then
    -- Gone while we waited for it; there may be a new one of that name.
    perform pgrecall._bank(bank);
    raise exception using
      errcode = 'serialization_failure',
      message = format('bank "%s" was replaced meanwhile, or may not be written', bank),
      hint    = 'Run the statement again.';
  end if;
  -- Written too, once a transaction: a writer whose snapshot is older than our commit then fails
  -- (40001) rather than name an entity twice.
  update pgrecall.bank b
  set    created_at = b.created_at
  where  b.bank_id = _locked_bank.bank and b.xmin <> pg_current_xact_id()::xid;
  return found_bank;
end;
$$;
comment on function pgrecall._locked_bank(text) is
'The row of a bank, locked until the transaction ends. Errors: RC001 unknown bank, 40001 replaced '
'meanwhile.';

create or replace function pgrecall._fact_types(bank text, fact_types text[])
returns text[]
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  known   text[];
  unknown text;
begin
  select array_agg(t.fact_type order by t.fact_type)
  into   known
  from   pgrecall.fact_type t
  where  t.bank_id = _fact_types.bank;
  if fact_types is null then
    -- Kinds that hold nothing are left out: each costs a branch to plan.
    return array(
      select u
      from   unnest(known) as u
      cross  join lateral (
        -- A lookup each: the order of an index keeps the planner from reading the whole bank.
        select from pgrecall.memory m
        where  m.bank_id = _fact_types.bank and m.fact_type = u
        order  by lower(m.occurred)
        limit  1
      ) as held
      order  by u
    );
  end if;
  select u into unknown from unnest(fact_types) as u where u <> all (known) or u is null limit 1;
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
comment on function pgrecall._fact_types(text, text[]) is
'The fact types to search, when null all that hold a memory. Errors: RC008 unknown fact type.';

create or replace function pgrecall._check_range(
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
comment on function pgrecall._check_range(text, bigint, bigint, bigint) is
'Raises 22023 unless lowest <= value <= highest.';

create or replace function pgrecall._check_text(name text, value text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if length(value) > 100000 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('%s has %s characters, more than 100000', name, length(value)),
      hint    = 'Pass the part of it that asks something.';
  end if;
end;
$$;
comment on function pgrecall._check_text(text, text) is
'Raises 22023 when a text is longer than 100,000 characters.';

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
comment on function pgrecall.to_embedding(real[]) is
'Numbers as an embedding, of shape (dimensions,). Errors: RC006 empty, nested, too long, null, '
'NaN, infinite or all zero.';

create or replace function pgrecall._check_embedding(
  bank pgrecall.bank, name text, embedding halfvec, model text)
returns void
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  if model <> bank.embedding_model then
    raise exception using
      errcode = 'RC005',
      message = format('bank "%s" is embedded with model "%s", not "%s"',
                       bank.bank_id, bank.embedding_model, model),
      hint    = format('Embed the %s with "%s".', name, bank.embedding_model);
  end if;
  if embedding is null then
    return;
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
end;
$$;
comment on function pgrecall._check_embedding(pgrecall.bank, text, halfvec, text) is
'Raises RC004 (dimensions), RC005 (model) or RC006 (zero) for a vector a bank cannot compare.';

-- sql/22-filter.sql
create or replace function pgrecall._filter_value(filter jsonb, path text, type text)
returns text
language plpgsql stable parallel safe
set search_path from current
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $$
declare
  value   jsonb := filter #> path::text[];
  wanted  text := case when type in ('bigint', 'real') then 'number' else 'string' end;
  literal text;
begin
  if value is null or jsonb_typeof(value) <> wanted then
    raise exception using
      errcode = 'RC011',
      message = format('filter: expected a %s, not %s', wanted, coalesce(value, 'null')),
      hint    = format('The column is of type %s. Test for null with ["is null", column].', type);
  end if;
  begin
    -- The cast is tried here, so that its error speaks of the filter. type is one of our own words.
    execute format('select $1::%s::text', type) into literal using value #>> '{}';
  exception when data_exception then
    raise exception using
      errcode = 'RC011',
      message = format('filter: %s is not a %s', value, type),
      hint    = 'Write times as 2026-03-05 or 2026-03-05T14:00Z.';
  end;
  if type = 'timestamptz' then
    -- As we read it: no session's time zone shall move it.
    return format('%L::timestamptz', literal);
  end if;
  return format('($3 #>> %L)::%s', path, type);
end;
$$;
comment on function pgrecall._filter_value(jsonb, text, text) is
'SQL that reads the value at a path of the filter, which is parameter $3. A time without a zone is '
'in UTC. Errors: RC011.';

create or replace function pgrecall._filter_sql(filter jsonb, path text[] default '{}')
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  node   jsonb := filter #> path;
  op     text := node ->> 0;
  name   text := node ->> 1;
  size   integer;
  here   text := array_to_string(path || '2'::text, ',');
  name_at text := '{' || array_to_string(path || '1'::text, ',') || '}';
  type   text;
  column_sql text;
  parts  text[];
  is_reversed boolean;
begin
  if filter is null then
    return 'true';
  end if;
  if jsonb_typeof(node) is distinct from 'array'
     or jsonb_typeof(node -> 0) is distinct from 'string'
  then
    raise exception using
      errcode = 'RC011',
      message = format('filter: %s is not a condition', coalesce(node, 'null')),
      hint    = 'A condition is an array such as [">=", "confidence", 0.8] or ["and", c, c].';
  end if;
  size := jsonb_array_length(node);

  if op in ('and', 'or', 'not') then
    if size < 2 or (op = 'not' and size <> 2) or cardinality(path) > 50 then
      raise exception using
        errcode = 'RC011',
        message = format('filter: "%s" has %s conditions', op, size - 1),
        hint    = '"not" takes one condition, "and" and "or" one or more, nested at most 50 deep.';
    end if;
    parts := array(
      select pgrecall._filter_sql(filter, path || i::text) from generate_series(1, size - 1) as i
    );
    return case op
      when 'not' then format('(not coalesce(%s, false))', parts[1])
      else '(' || array_to_string(parts, format(' %s ', op)) || ')'
    end;
  end if;

  type := case
    when name in ('fact_type', 'text', 'context', 'fact_key', 'source_id') then 'text'
    when name in ('memory_id', 'proof_count') then 'bigint'
    when name = 'confidence' then 'real'
    when name in ('mentioned_at', 'created_at') then 'timestamptz'
    when name = 'occurred' then 'tstzrange'
    when name = 'tags' then 'text[]'
    when name like 'metadata.%' and length(name) > 9 then 'metadata'
  end;
  if type is null then
    raise exception using
      errcode = 'RC011',
      message = format('filter: unknown column "%s"', name),
      hint    = 'Columns: memory_id, fact_type, text, context, fact_key, source_id, confidence, '
                'proof_count, mentioned_at, created_at, occurred, tags, metadata.KEY.';
  end if;
  -- No word of the filter enters the statement: names are ours, times are written anew, all other
  -- values and keys are read from $3.
  column_sql := case type
    when 'metadata' then format('(m.metadata ->> substr($3 #>> %L, 10))', name_at)
    else 'm.' || name
  end;

  if op in ('is null', 'is not null') and size = 2 then
    return format('(%s %s)', column_sql, op);
  end if;
  if size <> 3 then
    raise exception using
      errcode = 'RC011',
      message = format('filter: "%s" does not take %s operands', op, size - 1),
      hint    = 'Write [operator, column, value], or ["is null", column].';
  end if;

  if op in ('=', '<>', '<', '<=', '>', '>=') and type not in ('tstzrange', 'text[]') then
    if type = 'metadata' and jsonb_typeof(node -> 2) = 'number' then
      return format(
        '(case when jsonb_typeof(m.metadata -> substr($3 #>> %L, 10)) = ''number'''
        ' then %s::numeric %s ($3 #>> %L)::numeric end)',
        name_at, column_sql, op, '{' || here || '}');
    end if;
    return format('(%s %s %s)', column_sql, op,
                  pgrecall._filter_value(filter, '{' || here || '}',
                                         replace(type, 'metadata', 'text')));
  end if;
  if op in ('like', 'ilike') and type in ('text', 'metadata') then
    if node ->> 2 ~ '(^|[^\\])(\\\\)*\\$' then
      raise exception using
        errcode = 'RC011',
        message = format('filter: pattern %s ends in a backslash', node -> 2),
        hint    = 'A backslash makes the character after it stand for itself: write two of them.';
    end if;
    return format('(%s %s %s)', column_sql, op,
                  pgrecall._filter_value(filter, '{' || here || '}', 'text'));
  end if;
  if op = 'in' and type not in ('tstzrange', 'text[]') and jsonb_typeof(node -> 2) = 'array' then
    parts := array(
      select pgrecall._filter_value(filter, format('{%s,%s}', here, i),
                                    replace(type, 'metadata', 'text'))
      from   generate_series(0, jsonb_array_length(node -> 2) - 1) as i
    );
    return case when cardinality(parts) = 0 then 'false'
                else format('(%s in (%s))', column_sql, array_to_string(parts, ', ')) end;
  end if;
  if op in ('contains', 'overlaps') and type = 'text[]' and jsonb_typeof(node -> 2) = 'array' then
    parts := array(
      select pgrecall._filter_value(filter, format('{%s,%s}', here, i), 'text')
      from   generate_series(0, jsonb_array_length(node -> 2) - 1) as i
    );
    return format('(m.tags %s array[%s]::text[])',
                  case op when 'contains' then '@>' else '&&' end, array_to_string(parts, ', '));
  end if;
  if op = 'overlaps' and type = 'tstzrange' and jsonb_typeof(node -> 2) = 'array'
     and jsonb_array_length(node -> 2) = 2
  then
    parts := array(
      select case
               when jsonb_typeof(node #> array['2', i::text]) = 'null' then 'null'
               else pgrecall._filter_value(filter, format('{%s,%s}', here, i), 'timestamptz')
             end
      from generate_series(0, 1) as i
      order by i
    );
    -- timestamptz literals, put together by _filter_value().
    execute format('select %s > %s', parts[1], parts[2]) into is_reversed;
    if is_reversed then
      raise exception using
        errcode = 'RC011',
        message = format('filter: %s ends before it starts', node -> 2),
        hint    = 'Write [start, end], with null for an open side.';
    end if;
    return format('(m.occurred && tstzrange(%s, %s))', parts[1], parts[2]);
  end if;

  raise exception using
    errcode = 'RC011',
    message = format('filter: operator "%s" does not fit column "%s" and %s', op, name, node -> 2),
    hint    = 'Operators: = <> < <= > >= in like ilike on single values; contains and overlaps '
              'with '
              'an array on tags; overlaps with [start, end] on occurred; is null; is not null.';
end;
$$;
comment on function pgrecall._filter_sql(jsonb, text[]) is
'A filter as SQL over alias m of memory; its values stay in parameter $3. Errors: RC011 naming '
'what.';

-- Statements of the arms are put together at run time: a branch per fact type, with the type as a
-- constant so that each meets its own index, and the predicate of the filter. Their parameters are
-- $1 bank, $2 as_of, $3 filter, $4 depth, then the arm's own.
create or replace function pgrecall._union_all(branch text, fact_types text[])
returns text
language sql immutable parallel safe
return (
  select string_agg('(' || replace(branch, '{fact_type}', quote_literal(t)) || ')',
                    E'\nunion all\n')
  -- A bank that holds nothing gets the branch of no type, which keeps the statement whole.
  from   unnest(case when fact_types = '{}' then array[''] else fact_types end) as t
);
comment on function pgrecall._union_all(text, text[]) is
'A statement of one branch per fact type; {fact_type} in the branch becomes the literal.';

create or replace function pgrecall._visible_sql(filter jsonb)
returns text
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return 'm.valid_from <= $2 and (m.valid_to is null or m.valid_to > $2) and '
         || pgrecall._filter_sql(filter);
end;
$$;
comment on function pgrecall._visible_sql(jsonb) is
'Predicate over alias m: held true as of $2, passing the filter ($3).';

-- sql/23-lexeme.sql
create or replace function pgrecall._cjk()
returns text
language sql immutable parallel safe
return '\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u318f'
       '\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff'
       '\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff';
comment on function pgrecall._cjk() is
'The letters of Chinese, Japanese and Korean, for the inside of a bracket expression.';

create or replace function pgrecall._spaced(content text)
returns text
language sql immutable parallel safe
return regexp_replace(
  regexp_replace(content, '[' || pgrecall._cjk() || ']+', ' ', 'g'),
  '[-_./@:+#]+(?=[[:alnum:]])', ' ', 'g'
);
comment on function pgrecall._spaced(text) is
'A text without Chinese, Japanese and Korean, the parts of identifiers apart: max_client_conn is '
'also max, client and conn.';

create or replace function pgrecall.lexemes(config regconfig, content text)
returns table (lexeme text, frequency integer)
language sql immutable parallel safe
begin atomic
  select u.lexeme, sum(u.frequency)::integer
  from (
    select w.lexeme, cardinality(w.positions)
    from   unnest(to_tsvector(config, pgrecall._spaced(content))) as w
    union all
    -- Identifiers, codes, dates, addresses as typed.
    select lower(i.match[1]), 1
    from   regexp_matches(
             regexp_replace(content, '[' || pgrecall._cjk() || ']+', ' ', 'g'),
             '[[:alnum:]]+(?:[-_./@:+#]+[[:alnum:]]+)+', 'g'
           ) as i(match)
    where  length(i.match[1]) <= 200
    union all
    -- Chinese, Japanese and Korean, which put no space between words: each two letters in a row.
    select p.letter || coalesce(p.next, ''), 1
    from (
      select c.letter, c.n, lead(c.letter) over (partition by r.n order by c.n) as next
      from   regexp_matches(content, '[' || pgrecall._cjk() || ']+', 'g')
               with ordinality as r(match, n),
             string_to_table(r.match[1], null) with ordinality as c(letter, n)
    ) as p
    where  p.next is not null or p.n = 1
  ) as u(lexeme, frequency)
  group by u.lexeme;
end;
comment on function pgrecall.lexemes(regconfig, text) is
'The lexemes of a text and how often each stands in it: words as the configuration stems them, '
'identifiers as typed, Chinese, Japanese and Korean by pairs of letters.';

create or replace function pgrecall._field_lexemes(
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
comment on function pgrecall._field_lexemes(
  regconfig, text, text, double precision, text, double precision) is
'The lexemes of a memory and how often each stands in it, fields weighted: that of the text is 1.';

create or replace function pgrecall._to_sparsevec(dimensions integer[], weights double precision[])
returns sparsevec
language sql immutable parallel safe
return (
  select ('{' || coalesce(string_agg(t.d || ':' || t.w, ',' order by t.d), '')
          || '}/1000000000')::sparsevec
  from (
    -- 16,000 elements are the most that the type holds.
    select u.d, sum(u.w)::real
    from   unnest(dimensions, weights) as u(d, w)
    group  by u.d
    order  by sum(u.w) desc
    limit  16000
  ) as t(d, w)
);
comment on function pgrecall._to_sparsevec(integer[], double precision[]) is
'Weights by dimension as a vector; weights of one dimension add up.';

create or replace function pgrecall._lexical(
  bank pgrecall.bank, content text, context text, fact_key text, average_length double precision,
  out length real, out weights sparsevec)
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  dimensions  integer[];
  frequencies double precision[];
begin
  if coalesce(context, fact_key) is null then
    select coalesce(array_agg(pgrecall._dimension(l.lexeme)), '{}'),
           coalesce(array_agg(l.frequency), '{}')
    into   dimensions, frequencies
    from   pgrecall.lexemes(bank.text_search_config::regconfig, content) as l;
  else
    select coalesce(array_agg(pgrecall._dimension(l.lexeme)), '{}'),
           coalesce(array_agg(l.frequency), '{}')
    into   dimensions, frequencies
    from   pgrecall._field_lexemes(bank.text_search_config::regconfig, content,
                                   context, bank.context_weight, fact_key, bank.key_weight) as l;
  end if;
  length := coalesce((select sum(tf) from unnest(frequencies) as tf), 0);
  weights := pgrecall._to_sparsevec(dimensions, array(
    select tf / (tf + bank.bm25_k1 * (1 - bank.bm25_b + bank.bm25_b * length / average_length))
    from   unnest(frequencies) with ordinality as u(tf, position)
    order  by position
  ));
end;
$$;
comment on function pgrecall._lexical(pgrecall.bank, text, text, text, double precision) is
'Length of a document in lexemes and its BM25 weights tf / (tf + k1 (1 - b + b length / average)), '
'without the IDF (Robertson and Zaragoza 2009, eq. 3.15; the constant factor k1 + 1 left out). tf '
'and length are sums over the fields, each times its weight (BM25F of Robertson, Zaragoza and '
'Taylor 2004, with one b for all fields).';

create or replace function pgrecall._documents(bank text, kind text, after bigint)
returns table (id bigint, content text, context text, fact_key text)
language plpgsql stable parallel safe rows 1000
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  if kind = 'memory' then
    return query
    select m.memory_id, m.text, m.context, m.fact_key
    from   pgrecall.memory m
    where  m.bank_id = _documents.bank and m.memory_id > _documents.after;
  else
    return query
    select m.message_id, m.text, null::text, null::text
    from   pgrecall.message m
    where  m.bank_id = _documents.bank and m.message_id > _documents.after;
  end if;
end;
$$;
comment on function pgrecall._documents(text, text, bigint) is
'Texts that the lexical arm (memory) or the message arm (message) indexes, with ids above after.';

create or replace function pgrecall._top_lexemes(bank text)
returns text[]
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  return array(
    select l.lexeme
    from   pgrecall.lexeme l
    where  l.bank_id = _top_lexemes.bank and l.kind = 'memory'
    order  by l.document_count desc, l.lexeme
    limit  5000
  );
end;
$$;
comment on function pgrecall._top_lexemes(text) is
'The 5,000 lexemes that stand in most memories of a bank.';

create or replace function pgrecall._snapshot_vocabulary(bank text, is_automatic boolean)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  insert into pgrecall.vocabulary as v (bank_id, lexemes, is_automatic, taken_at)
  values (_snapshot_vocabulary.bank, pgrecall._top_lexemes(bank), is_automatic, now())
  on conflict on constraint vocabulary_pkey do update
  set lexemes      = excluded.lexemes,
      is_automatic = excluded.is_automatic,
      taken_at     = excluded.taken_at
  where not excluded.is_automatic or v.is_automatic;
end;
$$;
comment on function pgrecall._snapshot_vocabulary(text, boolean) is
'Keeps the vocabulary of a bank; automatically not over one that was asked for.';

create or replace function pgrecall._refresh(
  bank pgrecall.bank, kind text, is_full boolean)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  known    pgrecall.statistics;
  old_count   bigint := 0;
  old_length  double precision := 0;
  weighted    double precision := 0;
  after       bigint := 0;
  added_count bigint;
  added_length double precision;
  last_id     bigint;
  average     double precision;
begin
  select s.* into known from pgrecall.statistics s
  where  s.bank_id = bank.bank_id and s.kind = _refresh.kind;
  if found then
    weighted := known.weighted_length;
  end if;
  if found and not is_full then
    after := known.watermark;
    old_count := known.document_count;
    old_length := known.average_length * known.document_count;
  else
    delete from pgrecall.lexeme l where l.bank_id = bank.bank_id and l.kind = _refresh.kind;
  end if;

  if is_full and kind = 'memory' then
    -- The weights of the fields may have changed.
    update pgrecall.memory m
    set    lexical_length = (pgrecall._lexical(bank, m.text, m.context, m.fact_key, 1)).length
    where  m.bank_id = bank.bank_id and coalesce(m.context, m.fact_key) is not null;
  end if;
  if kind = 'memory' then
    select count(*), sum(m.lexical_length::double precision), max(m.memory_id)
    into   added_count, added_length, last_id
    from   pgrecall.memory m
    where  m.bank_id = bank.bank_id and m.memory_id > after;
  else
    select count(*), sum(m.lexical_length), max(m.message_id)
    into   added_count, added_length, last_id
    from   pgrecall.message m
    where  m.bank_id = bank.bank_id and m.message_id > after;
  end if;

  insert into pgrecall.lexeme as l (bank_id, kind, lexeme, document_count)
  select bank.bank_id, _refresh.kind, x.lexeme, count(*)
  from   pgrecall._documents(bank.bank_id, _refresh.kind, after) as d,
         pgrecall._field_lexemes(bank.text_search_config::regconfig, d.content,
                                 d.context, bank.context_weight, d.fact_key, bank.key_weight) as x
  group  by x.lexeme
  order  by pgrecall._dimension(x.lexeme), x.lexeme
  on conflict on constraint lexeme_pkey do update
  set document_count = l.document_count + excluded.document_count;

  average := (old_length + coalesce(added_length, 0)) / greatest(old_count + added_count, 1);
  -- Weights made with a mean that is more than 5 % off are made anew; a full refresh, which may
  -- follow a change of k1 or b, leaves none.
  if average > 0 and (is_full or abs(weighted / average - 1) > 0.05) then
    weighted := average;
    if kind = 'memory' then
      update pgrecall.memory m
      set    lexical_weights = (pgrecall._lexical(
               bank, m.text, m.context, m.fact_key, average)).weights
      where  m.bank_id = bank.bank_id;
    else
      update pgrecall.message m
      set    lexical_weights = (pgrecall._lexical(bank, m.text, null, null, average)).weights
      where  m.bank_id = bank.bank_id;
    end if;
  end if;

  insert into pgrecall.statistics as s
         (bank_id, kind, document_count, average_length, weighted_length, watermark, refreshed_at)
  values (bank.bank_id, _refresh.kind, old_count + added_count, average,
          case when weighted > 0 then weighted else 1 end, coalesce(last_id, after), now())
  on conflict on constraint statistics_pkey do update
  set document_count  = excluded.document_count,
      average_length  = excluded.average_length,
      weighted_length = excluded.weighted_length,
      watermark       = excluded.watermark,
      refreshed_at    = excluded.refreshed_at;
  -- The words of the first facts say little of what the bank is about: of texts of one kind those
  -- of the first 10,000 and of 50,000 have a similarity of 0.70, those of 1,000 and 50,000 of 0.42.
  if kind = 'memory' and coalesce(known.document_count, 0) < 10000 then
    perform pgrecall._snapshot_vocabulary(bank.bank_id, true);
  end if;
end;
$$;
comment on function pgrecall._refresh(pgrecall.bank, text, boolean) is
'Brings the statistics of one kind up to date; the bank must be locked.';

create or replace function pgrecall._refresh_when_due(bank pgrecall.bank, kind text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  counted   bigint;
  after     bigint;
  threshold bigint;
  waiting   bigint;
begin
  select s.document_count, s.watermark into counted, after
  from   pgrecall.statistics s
  where  s.bank_id = bank.bank_id and s.kind = _refresh_when_due.kind;
  threshold := coalesce(counted, 0) / 10;
  -- Counting stops at the threshold, so that it costs no more than the batch did.
  select count(*) into waiting from (
    select from pgrecall.memory m
    where  _refresh_when_due.kind = 'memory'
      and  m.bank_id = bank.bank_id and m.memory_id > coalesce(after, 0)
    union all
    select from pgrecall.message m
    where  _refresh_when_due.kind = 'message'
      and  m.bank_id = bank.bank_id and m.message_id > coalesce(after, 0)
    limit threshold + 1
  ) as fresh;
  if waiting > threshold then
    perform pgrecall._refresh(bank, kind, false);
  end if;
end;
$$;
comment on function pgrecall._refresh_when_due(pgrecall.bank, text) is
'Refreshes the statistics once more than a tenth as many documents as they count are new.';

create or replace function pgrecall.refresh_statistics(bank text, is_full boolean default false)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  locked pgrecall.bank := pgrecall._locked_bank(bank);
begin
  perform pgrecall._refresh(locked, 'memory', is_full);
  perform pgrecall._refresh(locked, 'message', is_full);
end;
$$;
comment on function pgrecall.refresh_statistics(text, boolean) is
'Counts the documents retained since the last refresh; is_full counts all anew, after many were '
'forgotten or k1 or b was changed. '
'retain() does it by itself once a tenth is new. Errors: RC001.';

create or replace function pgrecall.bank_statistics(bank text)
returns table (kind text, document_count bigint, average_length double precision,
               lexeme_count bigint, waiting bigint, refreshed_at timestamptz)
language plpgsql stable parallel safe rows 2
set search_path from current
as $$
begin
  perform pgrecall._bank(bank);
  return query
  select s.kind, s.document_count, s.average_length,
         (select count(*) from pgrecall.lexeme l
          where  l.bank_id = bank_statistics.bank and l.kind = s.kind),
         case s.kind
           when 'memory' then (select count(*) from pgrecall.memory m
                               where m.bank_id = bank_statistics.bank and m.memory_id > s.watermark)
           else (select count(*) from pgrecall.message m
                 where m.bank_id = bank_statistics.bank and m.message_id > s.watermark)
         end,
         s.refreshed_at
  from   pgrecall.statistics s
  where  s.bank_id = bank_statistics.bank
  order  by s.kind;
end;
$$;
comment on function pgrecall.bank_statistics(text) is
'What BM25 knows of a bank and how many documents it has not counted yet (waiting). Errors: RC001.';

create or replace function pgrecall.snapshot_vocabulary(bank text)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall._locked_bank(bank);
  perform pgrecall._snapshot_vocabulary(bank, false);
end;
$$;
comment on function pgrecall.snapshot_vocabulary(text) is
'Keeps the 5,000 most frequent lexemes of the memories of a bank: vocabulary_drift() compares with '
'them from now on. Errors: RC001.';

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
  perform pgrecall._bank(bank);
  select v.lexemes into old_lexemes
  from   pgrecall.vocabulary v where v.bank_id = vocabulary_drift.bank;
  new_lexemes := pgrecall._top_lexemes(bank);
  select count(*) into shared
  from   unnest(old_lexemes) as o(lexeme) join unnest(new_lexemes) as n(lexeme) using (lexeme);
  return shared::double precision
         / nullif(cardinality(old_lexemes) + cardinality(new_lexemes) - shared, 0);
end;
$$;
comment on function pgrecall.vocabulary_drift(text) is
'Jaccard similarity, 0 to 1, of the 5,000 most frequent lexemes of the memories of a bank as '
'counted now and at its snapshot; below 0.7 the bank has come to be about something else. Null '
'before anything was counted. The snapshot is that of the first 10,000 memories, or of '
'snapshot_vocabulary(). Errors: RC001.';

-- sql/30-bank.sql
create or replace function pgrecall.default_weights()
returns jsonb
language sql immutable parallel safe
return '{"semantic": 1, "lexical": 1.5, "graph": 1, "temporal": 1, "key": 3, "message": 0.9, '
       '"hypothetical": 0.5}'::jsonb;
comment on function pgrecall.default_weights() is
'The arms and their weights in the fusion, where neither bank nor call says otherwise.';

create or replace function pgrecall._check_weights(weights jsonb)
returns void
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  arm   text;
  value jsonb;
begin
  if jsonb_typeof(weights) <> 'object' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('weights must be an object, not %s', weights),
      hint    = 'Pass weights => ''{"lexical": 2, "graph": 0}'', for example.';
  end if;
  for arm, value in select e.key, e.value from jsonb_each(weights) as e loop
    if not pgrecall.default_weights() ? arm then
      raise exception using
        errcode = 'RC009',
        message = format('unknown arm "%s" in weights', arm),
        hint    = format('Arms: %s.', pgrecall._arm_names());
    end if;
    if jsonb_typeof(value) <> 'number' or value::text::numeric not between 0 and 1000000 then
      raise exception using
        errcode = 'invalid_parameter_value',
        message = format('weight of arm "%s" must be a number from 0 to 1000000, not %s',
                         arm, value),
        hint    = 'A weight of 0 takes the arm''s say away; 1 is the usual one.';
    end if;
  end loop;
end;
$$;
comment on function pgrecall._check_weights(jsonb) is
'Raises RC009 for an unknown arm, 22023 for a weight that is not a number from 0 to 1,000,000.';

create or replace function pgrecall._arm_names()
returns text
language sql immutable parallel safe
return (
  select string_agg(a, ', ' order by a) from jsonb_object_keys(pgrecall.default_weights()) as a
);
comment on function pgrecall._arm_names() is 'The arms, for hints.';

create or replace function pgrecall.configure_bank(bank text, settings jsonb)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  locked  pgrecall.bank := pgrecall._locked_bank(bank);
  unknown text;
begin
  if settings is null or jsonb_typeof(settings) <> 'object' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('settings must be an object, not %s', coalesce(settings, 'null')),
      hint    = 'Pass ''{"rrf_k": 20}'', for example.';
  end if;
  select k into unknown from jsonb_object_keys(settings) as k
  where  k not in ('weights', 'fusion', 'rrf_k', 'similarity_floor', 'bm25_k1', 'bm25_b',
                   'candidate_limit', 'type_hints', 'widen_below', 'context_weight', 'key_weight');
  if found then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('unknown setting "%s"', unknown),
      hint    = 'Settings: weights, fusion, rrf_k, similarity_floor, bm25_k1, bm25_b, '
                'candidate_limit, type_hints, widen_below, context_weight, key_weight.';
  end if;
  perform pgrecall._check_weights(settings -> 'weights');
  perform pgrecall._check_type_hints(bank, settings -> 'type_hints');

  update pgrecall.bank b
  set    weights          = coalesce(settings -> 'weights', b.weights),
         fusion           = coalesce(settings ->> 'fusion', b.fusion),
         rrf_k            = coalesce((settings ->> 'rrf_k')::integer, b.rrf_k),
         similarity_floor = coalesce((settings ->> 'similarity_floor')::real, b.similarity_floor),
         bm25_k1          = coalesce((settings ->> 'bm25_k1')::real, b.bm25_k1),
         bm25_b           = coalesce((settings ->> 'bm25_b')::real, b.bm25_b),
         candidate_limit  = coalesce((settings ->> 'candidate_limit')::integer, b.candidate_limit),
         widen_below      = coalesce((settings ->> 'widen_below')::integer, b.widen_below),
         context_weight   = coalesce((settings ->> 'context_weight')::real, b.context_weight),
         key_weight       = coalesce((settings ->> 'key_weight')::real, b.key_weight),
         -- Null takes the bank's own words away.
         type_hints       = case when settings ? 'type_hints'
                              then nullif(settings -> 'type_hints', 'null') else b.type_hints end
  where  b.bank_id = configure_bank.bank;
exception when check_violation or data_exception then
  if sqlstate = '22023' then
    raise;
  end if;
  raise exception using
    errcode = 'invalid_parameter_value',
    message = format('unusable setting: %s', sqlerrm),
    hint    = 'The comments on the columns of pgrecall.bank give the range of each setting.';
end;
$$;
comment on function pgrecall.configure_bank(text, jsonb) is
'Sets defaults of a bank: weights, fusion, rrf_k, similarity_floor, bm25_k1, bm25_b, '
'candidate_limit, type_hints, widen_below, context_weight, key_weight; others stay. '
'Errors: RC001, RC008 hint for an unknown fact type, RC009 unknown arm, 22023 unknown setting or '
'value out of range.';

create or replace function pgrecall.add_fact_type(
  bank text, fact_type text, description text default '')
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall._locked_bank(bank);
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
comment on function pgrecall.add_fact_type(text, text, text) is
'Adds a kind of memory to a bank, or describes it anew. Errors: RC001, 22023 unusable name.';

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
begin
  if bank is null or bank = '' or length(bank) > 200 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('"%s" cannot name a bank', left(bank, 50)),
      hint    = 'Use 1 to 200 characters.';
  end if;
  if embedding_dimensions not between 1 and 4000 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('embedding_dimensions must be between 1 and 4000, not %s',
                       embedding_dimensions),
      hint    = 'Longer embeddings cannot be indexed; ask the model for fewer dimensions.';
  end if;
  begin
    if text_search_config::regconfig is null then
      raise undefined_object;
    end if;
  exception when others then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('text search configuration "%s" does not exist', text_search_config),
      hint    = 'select cfgname from pg_ts_config; lists them. simple fits mixed languages.';
  end;

  insert into pgrecall.bank (bank_id, text_search_config, embedding_model, embedding_dimensions)
  values (create_bank.bank, create_bank.text_search_config,
          nullif(create_bank.embedding_model, ''), create_bank.embedding_dimensions)
  on conflict on constraint bank_pkey do nothing;
  if not found then
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
comment on function pgrecall.create_bank(text, text, text, integer, text[], jsonb) is
'Creates a bank with the fact types world, experience, opinion, observation, preference, event and '
'those in fact_types. '
'embedding_model and embedding_dimensions are pinned by the first embedding when not given. '
'Errors: RC002 bank exists, 22023 unusable name, configuration, dimensions or setting.';

create or replace function pgrecall.drop_bank(bank text)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  removed bigint;
begin
  perform pgrecall._locked_bank(bank);
  -- Children first: cascades would look for each row's children one row at a time.
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
comment on function pgrecall.drop_bank(text) is
'Erases a bank and all it holds; returns how many memories it held. Errors: RC001.';

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
comment on view pgrecall.bank_overview is 'The banks and how much each holds.';

-- sql/31-entity.sql
create or replace function pgrecall.normalised_name(name text)
returns text
language sql immutable parallel safe
return lower(trim(regexp_replace(name, '[^[:alnum:]]+', ' ', 'g')));
comment on function pgrecall.normalised_name(text) is
'A name as it is compared: lower case, punctuation and runs of spaces as one space.';

create or replace function pgrecall._phrases(query text)
returns table (phrase text, first integer, last integer)
language sql immutable parallel safe
begin atomic
  with word as (
    select w.word, w.position::integer
    from   unnest(string_to_array(pgrecall.normalised_name(query), ' '))
             with ordinality as w(word, position)
    where  w.word <> ''
    -- A pasted page asks about what it names first.
    limit  200
  )
  select string_agg(w.word, ' ' order by w.position), f.position, f.position + n.n - 1
  from   word f
  cross  join generate_series(1, 5) as n(n)
  join   word w on w.position between f.position and f.position + n.n - 1
  group  by f.position, n.n
  having count(*) = n.n;
end;
comment on function pgrecall._phrases(text) is
'Runs of one to five words of a query, normalised as names are, with the positions of their ends.';

create or replace function pgrecall.query_entities(bank text, query text)
returns table (entity_id bigint, name text, kind text, matched text, confidence real)
language plpgsql stable parallel safe rows 5
set search_path from current
as $$
begin
  perform pgrecall._bank(bank);
  return query
  with hit as (
    select a.entity_id, a.confidence, p.phrase, p.first, p.last
    from   pgrecall._phrases(query_entities.query) as p
    join   pgrecall.entity_alias a on a.bank_id = query_entities.bank and a.alias = p.phrase
  )
  select distinct on (e.entity_id) e.entity_id, e.name, e.kind, h.phrase, h.confidence
  from   hit h
  join   pgrecall.entity e on e.bank_id = query_entities.bank and e.entity_id = h.entity_id
  -- The longest name wins: "Ana Silva" is not also every Ana.
  where  not exists (
    select from hit l
    where  l.first <= h.first and l.last >= h.last and l.last - l.first > h.last - h.first
  )
  order  by e.entity_id, length(h.phrase) desc;
end;
$$;
comment on function pgrecall.query_entities(text, text) is
'Entities named in a query: the longest names that stand in it, all entities that go by each. '
'Errors: RC001.';

create or replace function pgrecall._rarity(mentions bigint, documents bigint)
returns double precision
language sql immutable parallel safe
return ln(1 + (greatest(documents, mentions) - mentions + 0.5) / (mentions + 0.5))
       / ln(2 + 2 * greatest(documents, mentions, 1)::double precision);
comment on function pgrecall._rarity(bigint, bigint) is
'Weight of an entity, 0 to 1: its IDF over the highest possible. One that stands in every fact '
'weighs next to nothing.';

-- sql/32-retain.sql
create or replace function pgrecall._time_range(value jsonb)
returns tstzrange
language plpgsql stable parallel safe
set search_path from current
set timezone = 'UTC'
as $$
declare
  starts text := case jsonb_typeof(value) when 'array' then value ->> 0 else value #>> '{}' end;
  ends   text := case jsonb_typeof(value) when 'array' then value ->> 1 end;
begin
  if value is null or jsonb_typeof(value) = 'null' then
    return null;
  end if;
  if jsonb_typeof(value) = 'array' then
    if jsonb_array_length(value) <> 2 then
      raise exception using errcode = 'data_exception', message = 'not [start, end]';
    end if;
    return tstzrange(coalesce(starts, '-infinity')::timestamptz,
                     coalesce(ends, 'infinity')::timestamptz);
  end if;
  if starts ~ '^\d{4}-\d{2}-\d{2}$' then
    return tstzrange(starts::date, starts::date + 1);
  end if;
  return tstzrange(starts::timestamptz, starts::timestamptz, '[]');
end;
$$;
comment on function pgrecall._time_range(jsonb) is
'"2026-03-05" as that day in UTC, a timestamp as that instant, [start, end] half-open with null '
'for an open side.';

create or replace function pgrecall._invalid_fact(place text, problem text, hint text)
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
comment on function pgrecall._invalid_fact(text, text, text) is
'Raises RC003 for a field of a fact or message.';

create or replace function pgrecall._check_string(
  place text, value jsonb, is_required boolean default false, longest integer default 100000)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if value is null or jsonb_typeof(value) = 'null' then
    if is_required then
      perform pgrecall._invalid_fact(place, 'missing', 'Give it as a string.');
    end if;
  elsif jsonb_typeof(value) <> 'string' then
    perform pgrecall._invalid_fact(
      place, format('expected a string, not %s', left(value::text, 80)),
      'Put it in double quotes.');
  elsif trim(value #>> '{}') = '' then
    perform pgrecall._invalid_fact(place, 'it is empty', 'Leave it out, or give it a value.');
  elsif length(value #>> '{}') > longest then
    perform pgrecall._invalid_fact(
      place, format('%s characters are more than %s', length(value #>> '{}'), longest),
      case when longest = 100000 then 'Split it into several facts.' else 'Shorten it.' end);
  end if;
end;
$$;
comment on function pgrecall._check_string(text, jsonb, boolean, integer) is
'Raises RC003 unless a field is absent or a string of 1 to longest characters.';

create or replace function pgrecall._check_time(place text, value jsonb, is_range boolean)
returns void
language plpgsql stable parallel safe
set search_path from current
set timezone = 'UTC'
as $$
begin
  if value is null or jsonb_typeof(value) = 'null' then
    return;
  end if;
  -- Not what else PostgreSQL reads as a time: "today" would be another fact tomorrow.
  if (jsonb_typeof(value) = 'array' and not is_range)
     or exists (
       select from jsonb_array_elements(
         case jsonb_typeof(value) when 'array' then value else jsonb_build_array(value) end) as e
       where  jsonb_typeof(e) not in ('string', 'null')
          or  e #>> '{}' !~ '^\d{4,6}-\d\d-\d\d([ T]|$)')
  then
    raise exception using errcode = 'data_exception', message = 'not a time';
  end if;
  if not is_range then
    perform (value #>> '{}')::timestamptz;
  elsif isempty(pgrecall._time_range(value)) then
    raise exception using errcode = 'data_exception', message = 'empty';
  end if;
exception when data_exception then
  perform pgrecall._invalid_fact(
    place,
    format('%s is not a time%s',
           left(value::text, 80), case when is_range then ' span' else '' end),
    case when is_range
      then 'Write 2026-03-05, 2026-03-05T14:00Z, or [start, end] with start before end '
           'and null for an open side.'
      else 'Write 2026-03-05 or 2026-03-05T14:00Z.'
    end);
end;
$$;
comment on function pgrecall._check_time(text, jsonb, boolean) is
'Raises RC003 unless a field is absent, a time, or (is_range) a time span that is not empty.';

create or replace function pgrecall._check_fraction(place text, value jsonb)
returns void
language plpgsql immutable parallel safe
as $$
begin
  -- Below 1e-37 a number has no place in a real.
  if jsonb_typeof(value) <> 'null'
     and (jsonb_typeof(value) <> 'number' or value::text::numeric not between 0 and 1
          or (value <> '0' and value::text::numeric < 1e-37))
  then
    perform pgrecall._invalid_fact(
      place, format('expected a number from 0 to 1, not %s', left(value::text, 80)),
      '1 is certain; leave it out for that.');
  end if;
end;
$$;
comment on function pgrecall._check_fraction(text, jsonb) is
'Raises RC003 unless a field is absent or a number from 0 to 1.';

create or replace function pgrecall._array(place text, value jsonb)
returns jsonb
language plpgsql immutable parallel safe
as $$
begin
  if value is null or jsonb_typeof(value) = 'null' then
    return '[]';
  elsif jsonb_typeof(value) <> 'array' then
    perform pgrecall._invalid_fact(
      place, format('expected an array, not %s', left(value::text, 80)),
      'Put it in square brackets.');
  end if;
  return value;
end;
$$;
comment on function pgrecall._array(text, jsonb) is
'A field that is an array, [] when absent. Errors: RC003.';

create or replace function pgrecall._check_keys(place text, value jsonb, keys text[])
returns void
language plpgsql immutable parallel safe
as $$
declare
  unknown text;
begin
  if jsonb_typeof(value) <> 'object' then
    perform pgrecall._invalid_fact(
      place, format('expected an object, not %s', left(value::text, 80)),
      format('Its fields: %s.', array_to_string(keys, ', ')));
  end if;
  select k into unknown from jsonb_object_keys(value) as k where k <> all (keys) limit 1;
  if found then
    perform pgrecall._invalid_fact(place || '.' || unknown, 'unknown field',
                                   format('Fields: %s.', array_to_string(keys, ', ')));
  end if;
end;
$$;
comment on function pgrecall._check_keys(text, jsonb, text[]) is
'Raises RC003 unless a value is an object with no other keys than these.';

create or replace function pgrecall._fact_embedding(
  place text, value jsonb, bank pgrecall.bank)
returns halfvec
language plpgsql stable parallel safe
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
      message = format('%s: unusable embedding: %s', place, sqlerrm),
      hint    = 'Pass the finite numbers that the embedding model returned, as an array or as '
                '"[0.1, 0.2]".';
  end;
  perform pgrecall._check_embedding(bank, place, embedding, null);
  return embedding;
end;
$$;
comment on function pgrecall._fact_embedding(text, jsonb, pgrecall.bank) is
'An embedding in a fact, array or string, null when absent. Errors: RC004, RC006.';

create or replace function pgrecall._check_fact(
  fact jsonb, index integer, size integer, bank pgrecall.bank, fact_types text[])
returns void
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  place text := format('facts[%s]', index);
  field text;
  item  jsonb;
  n     integer;
begin
  perform pgrecall._check_keys(place, fact, array[
    'text', 'fact_type', 'context', 'fact_key', 'source_id', 'tags', 'metadata', 'occurred',
    'mentioned_at', 'confidence', 'entities', 'relations', 'links', 'questions', 'embedding']);
  perform pgrecall._check_string(place || '.text', fact -> 'text', true);
  perform pgrecall._check_string(place || '.context', fact -> 'context');
  -- Indexed: what is longer would not fit.
  foreach field in array array['fact_type', 'fact_key', 'source_id'] loop
    perform pgrecall._check_string(place || '.' || field, fact -> field, longest => 500);
  end loop;
  if coalesce(fact ->> 'fact_type', 'world') <> all (fact_types) then
    raise exception using
      errcode = 'RC008',
      message = format('%s.fact_type: bank "%s" has no fact type "%s"', place, bank.bank_id,
                       fact ->> 'fact_type'),
      hint    = format('It has %s. Add one with: select pgrecall.add_fact_type(%L, %L);',
                       array_to_string(fact_types, ', '), bank.bank_id, fact ->> 'fact_type');
  end if;
  if jsonb_typeof(fact -> 'metadata') not in ('object', 'null') then
    perform pgrecall._invalid_fact(
      place || '.metadata',
      format('expected an object, not %s', left((fact -> 'metadata')::text, 80)),
      'Write {"team": "core"}, for example.');
  end if;
  perform pgrecall._check_time(place || '.occurred', fact -> 'occurred', true);
  perform pgrecall._check_time(place || '.mentioned_at', fact -> 'mentioned_at', false);
  perform pgrecall._check_fraction(place || '.confidence', fact -> 'confidence');
  perform pgrecall._fact_embedding(place || '.embedding', fact -> 'embedding', bank);

  perform pgrecall._check_string(place || '.tags', e.value, true)
  from    jsonb_array_elements(pgrecall._array(place || '.tags', fact -> 'tags')) as e;

  for item, n in
    select e.value, e.n - 1
    from   jsonb_array_elements(pgrecall._array(place || '.entities', fact -> 'entities'))
             with ordinality as e(value, n)
  loop
    if jsonb_typeof(item) = 'string' then
      item := jsonb_build_object('name', item);
    end if;
    field := format('%s.entities[%s]', place, n);
    perform pgrecall._check_keys(field, item, array['name', 'kind', 'aliases']);
    perform pgrecall._check_name(field || '.name', item -> 'name');
    perform pgrecall._check_string(field || '.kind', item -> 'kind');
    perform pgrecall._check_name(field || '.aliases', a.value)
    from    jsonb_array_elements(pgrecall._array(field || '.aliases', item -> 'aliases')) as a;
  end loop;

  for item, n in
    select e.value, e.n - 1
    from   jsonb_array_elements(pgrecall._array(place || '.relations', fact -> 'relations'))
             with ordinality as e(value, n)
  loop
    field := format('%s.relations[%s]', place, n);
    perform pgrecall._check_keys(
      field, item, array['from', 'kind', 'to', 'confidence', 'valid_from', 'valid_to']);
    perform pgrecall._check_name(field || '.from', item -> 'from');
    perform pgrecall._check_string(field || '.kind', item -> 'kind', true, 500);
    perform pgrecall._check_name(field || '.to', item -> 'to');
    perform pgrecall._check_fraction(field || '.confidence', item -> 'confidence');
    perform pgrecall._check_time(field || '.valid_from', item -> 'valid_from', false);
    perform pgrecall._check_time(field || '.valid_to', item -> 'valid_to', false);
    if (item ->> 'valid_to')::timestamptz <= (item ->> 'valid_from')::timestamptz then
      perform pgrecall._invalid_fact(field || '.valid_to', 'it is not after valid_from',
                                     'A relation ends after it began.');
    end if;
  end loop;

  for item, n in
    select e.value, e.n - 1
    from   jsonb_array_elements(pgrecall._array(place || '.links', fact -> 'links'))
             with ordinality as e(value, n)
  loop
    field := format('%s.links[%s]', place, n);
    perform pgrecall._check_keys(
      field, item, array['kind', 'weight', 'to_id', 'to_index', 'to_key']);
    perform pgrecall._check_fraction(field || '.weight', item -> 'weight');
    if coalesce(item ->> 'kind', '') not in ('causes', 'caused_by', 'enables', 'prevents') then
      perform pgrecall._invalid_fact(
        field || '.kind', format('unknown kind %s', coalesce(item -> 'kind', 'null')),
        'Kinds: causes, caused_by, enables, prevents.');
    end if;
    if num_nonnulls(item ->> 'to_id', item ->> 'to_index', item ->> 'to_key') <> 1 then
      perform pgrecall._invalid_fact(
        field, 'it needs one of to_id, to_index, to_key',
        'Name the fact it leads to by memory id, position or fact_key.');
    end if;
    perform pgrecall._check_string(field || '.to_key', item -> 'to_key', longest => 500);
    if item ->> 'to_id' !~ '^\d{1,18}$'
       or item ->> 'to_index' !~ '^\d{1,9}$'
       or (item ->> 'to_index')::integer not between 0 and size - 1
       or (item ->> 'to_index')::integer = index
    then
      perform pgrecall._invalid_fact(
        field, format('it leads nowhere: %s', item),
        format('to_id is a memory id, to_index a position from 0 to %s other than its own.',
               size - 1));
    end if;
  end loop;

  for item, n in
    select e.value, e.n - 1
    from   jsonb_array_elements(pgrecall._array(place || '.questions', fact -> 'questions'))
             with ordinality as e(value, n)
  loop
    field := format('%s.questions[%s]', place, n);
    perform pgrecall._check_keys(field, item, array['text', 'embedding']);
    perform pgrecall._check_string(field || '.text', item -> 'text');
    if pgrecall._fact_embedding(field || '.embedding', item -> 'embedding', bank) is null then
      perform pgrecall._invalid_fact(field || '.embedding', 'missing',
                                     'A question is found by its embedding only.');
    end if;
  end loop;
end;
$$;
comment on function pgrecall._check_fact(jsonb, integer, integer, pgrecall.bank, text[]) is
'Raises RC003 (field), RC004, RC006 (embedding) or RC008 (fact type), naming the fact and the '
'field.';

create or replace function pgrecall._check_name(place text, value jsonb)
returns void
language plpgsql immutable parallel safe
as $$
begin
  perform pgrecall._check_string(place, value, true);
  if pgrecall.normalised_name(value #>> '{}') = '' or length(value #>> '{}') > 500 then
    perform pgrecall._invalid_fact(place, format('%s cannot name an entity', left(value::text, 80)),
                                   'A name has a letter or digit and at most 500 characters.');
  end if;
end;
$$;
comment on function pgrecall._check_name(text, jsonb) is
'Raises RC003 unless a value can name an entity.';

create or replace function pgrecall._retain_entities(bank text, facts jsonb, memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  -- A name becomes an entity unless somebody goes by it already, in the bank or in this batch.
  -- Where names in the batch go by one another, the first that says so is the entity.
  with declared as (
    select e.value as item, array[f.n, e.n] as position
    from   jsonb_array_elements(facts) with ordinality as f(fact, n),
           jsonb_array_elements(coalesce(nullif(f.fact -> 'entities', 'null'), '[]'))
             with ordinality as e(value, n)
    union all
    select to_jsonb(r.value ->> s.side), array[f.n, 1000000]
    from   jsonb_array_elements(facts) with ordinality as f(fact, n),
           jsonb_array_elements(
             coalesce(nullif(f.fact -> 'relations', 'null'), '[]')) as r,
           unnest(array['from', 'to']) as s(side)
  ),
  named as (
    select case jsonb_typeof(d.item) when 'string' then d.item #>> '{}' else d.item ->> 'name' end
             as name,
           d.item ->> 'kind' as kind,
           coalesce(nullif(d.item -> 'aliases', 'null'), '[]') as aliases,
           d.position
    from   declared d
  ),
  alias as (
    select pgrecall.normalised_name(n.name) as owner, pgrecall.normalised_name(a.alias) as alias,
           min(n.position) as position
    from   named n, jsonb_array_elements_text(n.aliases) as a(alias)
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
    select _retain_entities.bank, u.name, u.kind
    from (
      select distinct on (pgrecall.normalised_name(n.name)) n.name, n.kind,
             min(n.position) over (partition by pgrecall.normalised_name(n.name)) as position
      from   named n
      where  not exists (
               select from pgrecall.entity_alias a
               where  a.bank_id = _retain_entities.bank
                 and  a.alias = pgrecall.normalised_name(n.name))
        and  not exists (
               select from first_alias a
               where  a.alias = pgrecall.normalised_name(n.name)
                 and  not exists (select from first_alias o where o.alias = a.owner))
      order  by pgrecall.normalised_name(n.name), n.kind is null, n.position
    ) as u
    -- The older of two that share a name is the one meant: that is the one named first.
    order  by u.position
    returning e.entity_id, e.name
  ),
  known as (
    select e.entity_id, pgrecall.normalised_name(e.name) as alias from new_entity e
    union
    select a.entity_id, a.alias
    from   pgrecall.entity_alias a
    where  a.bank_id = _retain_entities.bank
      and  a.alias in (select pgrecall.normalised_name(n.name) from named n)
  )
  insert into pgrecall.entity_alias (bank_id, alias, entity_id)
  select _retain_entities.bank, k.alias, k.entity_id from known k
  union
  select _retain_entities.bank, a.alias, k.entity_id
  from   alias a
  join   known k on k.alias = a.owner
  on conflict do nothing;

  -- A name that several entities go by is taken for the one best believed in, then the oldest.
  insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id)
  select distinct _retain_entities.bank,
         pgrecall._entity(_retain_entities.bank, n.name),
         coalesce(n.fact ->> 'fact_type', 'world'), memory_ids[n.position]
  from (
    select f.fact, f.n as position,
           case jsonb_typeof(e.value)
             when 'string' then e.value #>> '{}'
             else e.value ->> 'name'
           end as name
    from   jsonb_array_elements(facts) with ordinality as f(fact, n),
           jsonb_array_elements(coalesce(nullif(f.fact -> 'entities', 'null'), '[]')) as e
    union all
    select f.fact, f.n, r.value ->> s.side
    from   jsonb_array_elements(facts) with ordinality as f(fact, n),
           jsonb_array_elements(coalesce(nullif(f.fact -> 'relations', 'null'), '[]')) as r,
           unnest(array['from', 'to']) as s(side)
  ) as n
  on conflict do nothing;

  insert into pgrecall.relation
         (bank_id, from_id, kind, to_id, memory_id, confidence, valid_from, valid_to)
  select _retain_entities.bank, s.from_id, s.kind, s.to_id, s.memory_id, s.confidence,
         s.valid_from, s.valid_to
  from (
    select pgrecall._entity(_retain_entities.bank, r.value ->> 'from') as from_id,
           r.value ->> 'kind' as kind,
           pgrecall._entity(_retain_entities.bank, r.value ->> 'to') as to_id,
           memory_ids[f.n] as memory_id,
           coalesce((r.value ->> 'confidence')::real, 1) as confidence,
           (r.value ->> 'valid_from')::timestamptz as valid_from,
           (r.value ->> 'valid_to')::timestamptz as valid_to
    from   jsonb_array_elements(facts) with ordinality as f(fact, n),
           jsonb_array_elements(coalesce(nullif(f.fact -> 'relations', 'null'), '[]')) as r
  ) as s
  where  s.from_id <> s.to_id
  on conflict do nothing;
end;
$$;
comment on function pgrecall._retain_entities(text, jsonb, bigint[]) is
'Writes entities, aliases, mentions and relations of checked facts; memory_ids are those of the '
'facts, in order.';

create or replace function pgrecall._entity(bank text, name text)
returns bigint
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return (
    select a.entity_id
    from   pgrecall.entity_alias a
    where  a.bank_id = _entity.bank and a.alias = pgrecall.normalised_name(_entity.name)
    order  by a.confidence desc, a.entity_id
    limit  1
  );
end;
$$;
comment on function pgrecall._entity(text, text) is
'The entity that a name most likely means, null when nobody goes by it.';

-- sql/33-link.sql
create or replace function pgrecall._retain_links(bank text, facts jsonb, memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  fact_index integer;
  link_index integer;
  link       jsonb;
  target     bigint;
begin
  for fact_index, link_index, link in
    select f.n - 1, l.n - 1, l.value
    from   jsonb_array_elements(facts) with ordinality as f(fact, n),
           jsonb_array_elements(coalesce(nullif(f.fact -> 'links', 'null'), '[]'))
             with ordinality as l(value, n)
  loop
    target := case
      when link ->> 'to_index' is not null then memory_ids[(link ->> 'to_index')::integer + 1]
      when link ->> 'to_id' is not null then (
        select m.memory_id from pgrecall.memory m
        where  m.bank_id = _retain_links.bank and m.memory_id = (link ->> 'to_id')::bigint)
      else (
        select m.memory_id from pgrecall.memory m
        where  m.bank_id = _retain_links.bank and lower(m.fact_key) = lower(link ->> 'to_key')
          and  m.memory_id <> memory_ids[fact_index + 1]
        order  by m.valid_to desc nulls first, m.memory_id desc
        limit  1)
    end;
    if target is null then
      perform pgrecall._invalid_fact(
        format('facts[%s].links[%s]', fact_index, link_index),
        format('no memory of bank "%s" answers to %s', bank, link - 'kind' - 'weight'),
        'Retain the fact it leads to before, or in the same call.');
    end if;
    insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
    select _retain_links.bank, memory_ids[fact_index + 1], link ->> 'kind', target,
           coalesce((link ->> 'weight')::real, 1)
    where  target <> memory_ids[fact_index + 1]
    on conflict on constraint link_pkey do nothing;
  end loop;
end;
$$;
comment on function pgrecall._retain_links(text, jsonb, bigint[]) is
'Writes the causal links of checked facts. Errors: RC003 when one leads to no memory.';

create or replace function pgrecall._link(bank text, memory_ids bigint[])
returns void
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
  select _link.bank, v.memory_id, 'semantic', n.memory_id, least(n.similarity, 1)
  from   pgrecall.embedding v
  cross  join lateral (
    select e.memory_id, 1 - (e.embedding <=> v.embedding) as similarity
    from   pgrecall.embedding e
    where  e.bank_id = _link.bank and e.model = v.model and e.kind = 'text'
      and  e.memory_id <> v.memory_id
    order  by e.embedding <=> v.embedding
    limit  5
  ) as n
  where  v.bank_id = _link.bank and v.memory_id = any (_link.memory_ids) and v.kind = 'text'
    and  n.similarity >= 0.7
  on conflict on constraint link_pkey do nothing;

  -- The fact that happened just before, at most a day earlier: chains of a day, one link a fact.
  insert into pgrecall.link (bank_id, from_id, kind, to_id, weight)
  select _link.bank, v.memory_id, 'temporal', n.memory_id,
         1 - extract(epoch from lower(v.occurred) - n.started_at) / 86400
  from   pgrecall.memory v
  cross  join lateral (
    select b.memory_id, b.started_at
    from   pgrecall.fact_type t
    cross  join lateral (
      select m.memory_id, lower(m.occurred) as started_at
      from   pgrecall.memory m
      where  m.bank_id = _link.bank and m.fact_type = t.fact_type and m.occurred is not null
        and  lower(m.occurred) > lower(v.occurred) - interval '1 day'
        and  lower(m.occurred) <= lower(v.occurred)
        and  (lower(m.occurred) < lower(v.occurred) or m.memory_id < v.memory_id)
      order  by lower(m.occurred) desc, m.memory_id desc
      limit  1
    ) as b
    where  t.bank_id = _link.bank
    order  by b.started_at desc, b.memory_id desc
    limit  1
  ) as n
  where  v.bank_id = _link.bank and v.memory_id = any (_link.memory_ids)
    and  v.occurred is not null and not lower_inf(v.occurred)
  on conflict on constraint link_pkey do nothing;

  update pgrecall.memory m
  set    is_linked = true
  where  m.bank_id = _link.bank and m.memory_id = any (_link.memory_ids) and not m.is_linked;
end;
$$;
comment on function pgrecall._link(text, bigint[]) is
'Writes semantic links (5 nearest, similarity 0.7 or more) and temporal ones (the fact before, '
'within a day).';

create or replace function pgrecall.link_pending(bank text, batch_size integer default 1000)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  memory_ids bigint[];
begin
  perform pgrecall._locked_bank(bank);
  perform pgrecall._check_range('batch_size', batch_size, 1, 100000);
  memory_ids := array(
    select m.memory_id from pgrecall.memory m
    where  m.bank_id = link_pending.bank and not m.is_linked
    order  by m.memory_id
    limit  batch_size
  );
  perform pgrecall._link(bank, memory_ids);
  return cardinality(memory_ids);
end;
$$;
comment on function pgrecall.link_pending(text, integer) is
'Links up to batch_size facts that were retained with link => ''deferred''; returns how many. Call '
'it until it returns 0. '
'Errors: RC001, 22023.';

-- sql/34-retain.sql
create or replace function pgrecall._check_array(name text, value jsonb)
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
comment on function pgrecall._check_array(text, jsonb) is
'Raises RC003 unless a value is an array.';

create or replace function pgrecall._fact_hash(fact jsonb)
returns bytea
language sql stable parallel safe
return sha256(convert_to(jsonb_build_array(
  coalesce(fact ->> 'fact_type', 'world'), fact ->> 'text', fact ->> 'context', fact ->> 'fact_key',
  fact ->> 'source_id', pgrecall._time_range(fact -> 'occurred')::text,
  extract(epoch from (fact ->> 'mentioned_at')::timestamptz)
)::text, 'UTF8'));
comment on function pgrecall._fact_hash(jsonb) is
'SHA-256 over what makes a fact the same fact: type, text, context, key, source, and its times '
'where given.';

create or replace function pgrecall.retain(
  bank text, facts jsonb, model text default null, link text default 'now')
returns table (index integer, memory_id bigint, is_new boolean)
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
set timezone = 'UTC'
set datestyle = 'ISO, YMD'
as $$
declare
  locked     pgrecall.bank := pgrecall._locked_bank(bank);
  fact_types text[] := array(
    select t.fact_type from pgrecall.fact_type t where t.bank_id = retain.bank order by 1
  );
  average    double precision;
  first_place     text;
  first_embedding jsonb;
  hashes     bytea[];
  new_ids    bigint[];
  memory_ids bigint[];
begin
  perform pgrecall._check_array('facts', facts);
  if link is null or link not in ('now', 'deferred') then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('link must be "now" or "deferred", not "%s"', link),
      hint    = 'With "deferred" call pgrecall.link_pending() when the load is done.';
  end if;

  -- The first embedding pins the dimensions, the first model named its name.
  select format('facts[%s].%s', f.n - 1, e.place), e.embedding
  into   first_place, first_embedding
  from   jsonb_array_elements(facts) with ordinality as f(fact, n)
  cross  join lateral (
    select 'embedding', f.fact -> 'embedding'
    union all
    select format('questions[%s].embedding', q.n - 1), q.value -> 'embedding'
    from   jsonb_path_query(f.fact, 'lax $.questions[*]') with ordinality as q(value, n)
  ) as e(place, embedding)
  where  e.embedding <> 'null'
  limit  1;
  perform pgrecall._check_embedding(locked, 'facts', null, model);
  if first_embedding is not null then
    if locked.embedding_dimensions is null then
      locked.embedding_dimensions :=
        vector_dims(pgrecall._fact_embedding(first_place, first_embedding, locked));
      if locked.embedding_dimensions > 4000 then
        raise exception using
          errcode = 'RC004',
          message = format('%s: expected at most 4000 dimensions, not %s',
                           first_place, locked.embedding_dimensions),
          hint    = 'Longer embeddings cannot be indexed; ask the model for fewer dimensions.';
      end if;
    end if;
    if locked.embedding_model is null and model <> '' then
      locked.embedding_model := model;
      -- Those stored under no name are taken to be of the same model, and stay findable.
      update pgrecall.embedding e
      set    model = retain.model
      where  e.bank_id = retain.bank and e.model = '';
    end if;
    update pgrecall.bank b
    set    embedding_dimensions = locked.embedding_dimensions,
           embedding_model      = locked.embedding_model
    where  b.bank_id = retain.bank
      and  (b.embedding_dimensions, b.embedding_model)
           is distinct from (locked.embedding_dimensions, locked.embedding_model);
  end if;

  perform pgrecall._check_fact(
            f.fact, f.n::integer - 1, jsonb_array_length(facts), locked, fact_types)
  from    jsonb_array_elements(facts) with ordinality as f(fact, n);

  hashes := array(
    select pgrecall._fact_hash(f.fact)
    from   jsonb_array_elements(facts) with ordinality as f(fact, n)
    order  by f.n
  );
  select s.weighted_length into average
  from   pgrecall.statistics s
  where  s.bank_id = retain.bank and s.kind = 'memory';

  with stored as (
    insert into pgrecall.memory as m
           (bank_id, fact_type, text, context, fact_key, source_id, tags, metadata, occurred,
            mentioned_at, confidence, valid_from, content_hash, lexical_length, lexical_weights)
    select retain.bank, i.fact_type, i.text, i.context, i.fact_key, i.source_id, i.tags,
           i.metadata, i.occurred, i.mentioned_at, i.confidence, least(i.mentioned_at, now()),
           i.content_hash, x.length, x.weights
    from (
      select distinct on (hashes[f.n])
             hashes[f.n]                               as content_hash,
             f.n                                       as position,
             coalesce(f.fact ->> 'fact_type', 'world') as fact_type,
             f.fact ->> 'text'                         as text,
             f.fact ->> 'context'                      as context,
             f.fact ->> 'fact_key'                     as fact_key,
             f.fact ->> 'source_id'                    as source_id,
             array(select jsonb_array_elements_text(
                            coalesce(nullif(f.fact -> 'tags', 'null'), '[]')))
                                                       as tags,
             coalesce(nullif(f.fact -> 'metadata', 'null'), '{}')
                                                       as metadata,
             pgrecall._time_range(f.fact -> 'occurred') as occurred,
             coalesce((f.fact ->> 'mentioned_at')::timestamptz, now())
                                                       as mentioned_at,
             coalesce((f.fact ->> 'confidence')::real, 1)
                                                       as confidence
      from   jsonb_array_elements(facts) with ordinality as f(fact, n)
      order  by hashes[f.n], f.n
    ) as i,
    pgrecall._lexical(locked, i.text, i.context, i.fact_key, coalesce(average, 20)) as x
    order  by i.position
    on conflict (bank_id, content_hash) where valid_to is null do nothing
    returning m.memory_id
  )
  select coalesce(array_agg(s.memory_id), '{}') into new_ids from stored s;

  -- A lookup for each, whatever the planner makes of a table that it has not analysed yet; plans
  -- are not kept either, since one made for an empty bank would read a full one over and over.
  memory_ids := array(
    select known.memory_id
    from   unnest(hashes) with ordinality as h(content_hash, n)
    cross  join lateral (
      select m.memory_id
      from   pgrecall.memory m
      where  m.bank_id = retain.bank and m.content_hash = h.content_hash and m.valid_to is null
      limit  1
    ) as known
    order  by h.n
  );

  insert into pgrecall.embedding (bank_id, memory_id, model, kind, ordinal, fact_type, embedding)
  select retain.bank, memory_ids[f.n], coalesce(locked.embedding_model, ''), e.kind, e.ordinal,
         coalesce(f.fact ->> 'fact_type', 'world'), e.embedding
  from   jsonb_array_elements(facts) with ordinality as f(fact, n)
  cross  join lateral (
    select 'text' as kind, 0::smallint as ordinal, (f.fact ->> 'embedding')::halfvec as embedding
    union all
    select 'question', (q.n - 1)::smallint, (q.value ->> 'embedding')::halfvec
    from   jsonb_array_elements(coalesce(nullif(f.fact -> 'questions', 'null'), '[]'))
             with ordinality as q(value, n)
  ) as e
  where  e.embedding is not null
  on conflict on constraint embedding_pkey do nothing;

  perform pgrecall._retain_entities(bank, facts, memory_ids);
  perform pgrecall._retain_links(bank, facts, memory_ids);
  if link = 'now' then
    perform pgrecall._link(bank, new_ids);
  end if;
  perform pgrecall._refresh_when_due(locked, 'memory');

  return query
  select u.n::integer - 1, u.id,
         u.id = any (new_ids) and row_number() over (partition by u.id order by u.n) = 1
  from   unnest(memory_ids) with ordinality as u(id, n)
  order  by u.n;
end;
$$;
comment on function pgrecall.retain(text, jsonb, text, text) is
'Writes facts, an array of objects: text (required), fact_type (world), context, fact_key, '
'source_id, tags, metadata, '
'occurred ("2026-03-05", a timestamp or [start, end]), mentioned_at, confidence, entities, '
'relations, links, questions, embedding. '
'All or nothing; a fact that is there already is not stored again. One row a fact, in order; index '
'counts from 0. '
'model names what made the embeddings. link => ''deferred'' leaves semantic and temporal links to '
'link_pending(). '
'Errors: RC001, RC003 naming fact and field, RC004 dimensions, RC005 model, RC006 embedding, RC008 '
'fact type, 22023.';

create or replace function pgrecall.forget(bank text, memory_ids bigint[])
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  named   bigint[];
  removed bigint;
begin
  perform pgrecall._locked_bank(bank);
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
  -- Nobody is remembered of whom nothing is.
  delete from pgrecall.entity e
  where  e.bank_id = forget.bank and e.entity_id = any (named)
    and  not exists (select from pgrecall.mention x
                     where x.bank_id = forget.bank and x.entity_id = e.entity_id);
  return removed;
end;
$$;
comment on function pgrecall.forget(text, bigint[]) is
'Erases memories with their embeddings, mentions, relations and links, and entities nothing else '
'names; '
'returns how many there were. Errors: RC001.';

create or replace function pgrecall.supersede(
  bank text, memory_id bigint, superseded_by bigint default null, at timestamptz default now())
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  missing bigint;
begin
  perform pgrecall._locked_bank(bank);
  select u into missing
  from   unnest(array[supersede.memory_id, supersede.superseded_by]) with ordinality as u(u, n)
  where  (u is not null or n = 1)
    and  not exists (select from pgrecall.memory m
                     where m.bank_id = supersede.bank and m.memory_id = u);
  if found then
    raise exception using
      errcode = 'RC010',
      message = format('bank "%s" has no memory %s', bank, coalesce(missing::text, 'null')),
      hint    = 'Pass ids that retain() or a recall on the same bank returned.';
  end if;
  if superseded_by = memory_id then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('memory %s cannot supersede itself', memory_id),
      hint    = 'Pass the id of the newer memory, or none.';
  end if;
  update pgrecall.memory m
  set    valid_to      = greatest(coalesce(supersede.at, now()), m.valid_from),
         superseded_by = supersede.superseded_by
  where  m.bank_id = supersede.bank and m.memory_id = supersede.memory_id;
end;
$$;
comment on function pgrecall.supersede(text, bigint, bigint, timestamptz) is
'Ends a memory at a time, optionally naming the one that replaces it; recall finds it only as of '
'earlier times. '
'Errors: RC001, RC010 unknown memory, 22023.';

-- sql/35-message.sql
create or replace function pgrecall.log_session(
  bank text, session text, started_at timestamptz default now(), ended_at timestamptz default null)
returns void
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  perform pgrecall._locked_bank(bank);
  if session is null or session = '' or length(session) > 500 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('"%s" cannot name a session', left(session, 50)),
      hint    = 'Use 1 to 500 characters.';
  end if;
  -- The call that fills in the end need not know the start.
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
comment on function pgrecall.log_session(text, text, timestamptz, timestamptz) is
'Notes that a conversation began, and when known that it ended; a second call fills in the end. '
'Errors: RC001, 22023.';

create or replace function pgrecall.last_session_end(bank text, before timestamptz default now())
returns timestamptz
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  perform pgrecall._bank(bank);
  return (
    select s.ended_at
    from   pgrecall.session s
    where  s.bank_id = last_session_end.bank and s.ended_at < last_session_end.before
    order  by s.ended_at desc
    limit  1
  );
end;
$$;
comment on function pgrecall.last_session_end(text, timestamptz) is
'When the last conversation that was over by then ended; null when there was none. Errors: RC001.';

create or replace function pgrecall.retain_messages(bank text, messages jsonb)
returns table (index integer, message_id bigint, is_new boolean)
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
set timezone = 'UTC'
as $$
declare
  locked      pgrecall.bank := pgrecall._locked_bank(bank);
  average     double precision;
  hashes      bytea[];
  new_ids     bigint[];
  message     jsonb;
  n           integer;
begin
  perform pgrecall._check_array('messages', messages);
  for message, n in
    select m.value, m.n - 1 from jsonb_array_elements(messages) with ordinality as m(value, n)
  loop
    perform pgrecall._check_keys(format('messages[%s]', n), message,
                                 array['session', 'role', 'speaker', 'text', 'sent_at']);
    perform pgrecall._check_string(format('messages[%s].text', n), message -> 'text', true);
    perform pgrecall._check_string(
      format('messages[%s].session', n), message -> 'session', longest => 500);
    perform pgrecall._check_string(format('messages[%s].speaker', n), message -> 'speaker');
    perform pgrecall._check_time(format('messages[%s].sent_at', n), message -> 'sent_at', false);
    if coalesce(message ->> 'role', 'user') not in ('user', 'assistant', 'system', 'tool') then
      perform pgrecall._invalid_fact(
        format('messages[%s].role', n), format('unknown role %s', message -> 'role'),
        'Roles: user, assistant, system, tool.');
    end if;
  end loop;

  insert into pgrecall.session (bank_id, session_id, started_at)
  select retain_messages.bank, m.value ->> 'session',
         min(coalesce((m.value ->> 'sent_at')::timestamptz, now()))
  from   jsonb_array_elements(messages) as m
  where  m.value ->> 'session' is not null
  group  by m.value ->> 'session'
  on conflict on constraint session_pkey do nothing;

  hashes := array(
    select sha256(convert_to(jsonb_build_array(
             m.value ->> 'session', coalesce(m.value ->> 'role', 'user'), m.value ->> 'speaker',
             m.value ->> 'text', extract(epoch from (m.value ->> 'sent_at')::timestamptz)
           )::text, 'UTF8'))
    from   jsonb_array_elements(messages) with ordinality as m(value, n)
    order  by m.n
  );
  select s.weighted_length into average
  from   pgrecall.statistics s
  where  s.bank_id = retain_messages.bank and s.kind = 'message';

  with stored as (
    insert into pgrecall.message as t
           (bank_id, session_id, role, speaker, text, sent_at, content_hash,
            lexical_length, lexical_weights)
    select retain_messages.bank, i.value ->> 'session', coalesce(i.value ->> 'role', 'user'),
           i.value ->> 'speaker', i.value ->> 'text',
           coalesce((i.value ->> 'sent_at')::timestamptz, now()), i.content_hash,
           x.length, x.weights
    from (
      select distinct on (hashes[m.n]) hashes[m.n] as content_hash, m.value, m.n as position
      from   jsonb_array_elements(messages) with ordinality as m(value, n)
      order  by hashes[m.n], m.n
    ) as i,
    pgrecall._lexical(locked, i.value ->> 'text', null, null, coalesce(average, 20)) as x
    order  by i.position
    on conflict (bank_id, content_hash) do nothing
    returning t.message_id
  )
  select coalesce(array_agg(s.message_id), '{}') into new_ids from stored s;
  perform pgrecall._refresh_when_due(locked, 'message');

  return query
  select h.n::integer - 1, t.message_id,
         t.message_id = any (new_ids)
         and row_number() over (partition by t.message_id order by h.n) = 1
  from   unnest(hashes) with ordinality as h(content_hash, n)
  cross  join lateral (
    select m.message_id
    from   pgrecall.message m
    where  m.bank_id = retain_messages.bank and m.content_hash = h.content_hash
    limit  1
  ) as t
  order  by h.n;
end;
$$;
comment on function pgrecall.retain_messages(text, jsonb) is
'Writes raw messages, an array of objects: text (required), session, role (user), speaker, '
'sent_at. '
'All or nothing; a message that is there already is not stored again. One row a message, in order; '
'index counts from 0. '
'Errors: RC001, RC003 naming message and field.';

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
  perform pgrecall._bank(bank);
  perform pgrecall._check_range('before', before, 0, 1000);
  perform pgrecall._check_range('after', after, 0, 1000);
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
comment on function pgrecall.message_context(text, bigint, integer, integer) is
'A message with those said before and after it in the same session, in order; alone when it '
'belongs to no session. Errors: RC001, RC010 unknown message, 22023.';

-- sql/40-semantic.sql
create or replace function pgrecall._semantic(
  bank text, embedding halfvec, fact_types text[], filter jsonb, as_of timestamptz, depth integer)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql volatile parallel unsafe rows 100
set search_path from current
set jit = off
set hnsw.ef_search = 100
set hnsw.iterative_scan = relaxed_order
as $$
declare
  searched pgrecall.bank := pgrecall._bank(bank);
  nearest  text;
  fetched  bigint := greatest(100, 5 * depth);
  ids      bigint[];
  scores   double precision[];
  is_crowded boolean;
begin
  if searched.embedding_dimensions is null then
    return;
  end if;
  perform set_config('hnsw.ef_search', least(1000, greatest(100, fetched))::text, true);

  -- The cast is that of the partial HNSW indexes, whose dimensions are the bank's. Without a filter
  -- the few memories no longer held true are left out after the search, which is quicker.
  nearest := format(
    $sql$
      select n.memory_id, 1 - n.distance as score, {fact_type} as fact_type, %4$s as is_visible
      from (
        select e.memory_id, e.embedding::halfvec(%1$s) <=> $5::halfvec(%1$s) as distance
        from   pgrecall.embedding e %2$s
        where  e.bank_id = $1 and e.fact_type = {fact_type} and e.model = $6 %3$s
        order  by e.embedding::halfvec(%1$s) <=> $5::halfvec(%1$s)
        limit  $7
      ) as n %5$s
      where  n.distance <= 1 - $8
    $sql$,
    searched.embedding_dimensions,
    case when filter is not null
      then 'join pgrecall.memory m on m.bank_id = $1 and m.memory_id = e.memory_id' end,
    case when filter is not null then 'and ' || pgrecall._visible_sql(filter) end,
    case when filter is null then 'm.memory_id is not null' else 'true' end,
    case when filter is null
      then 'left join pgrecall.memory m on m.bank_id = $1 and m.memory_id = n.memory_id and '
           || pgrecall._visible_sql(null) end
  );
  loop
    execute format(
      $sql$
        with found as (%s),
        best as (
          select f.memory_id, max(f.score) as score
          from   found f
          where  f.is_visible
          group  by f.memory_id
          order  by 2 desc, 1 desc
          limit  $4
        )
        select coalesce(array_agg(b.memory_id order by b.score desc, b.memory_id desc), '{}'),
               coalesce(array_agg(b.score order by b.score desc, b.memory_id desc), '{}'),
               exists (
                 select from found f
                 group  by f.fact_type
                 having count(*) = $7
                   and  count(distinct f.memory_id) filter (where f.is_visible) < $4
               )
        from   best b
      $sql$,
      pgrecall._union_all(nearest, fact_types)
    )
    into  ids, scores, is_crowded
    using bank, as_of, filter, depth, embedding, coalesce(searched.embedding_model, ''), fetched,
          searched.similarity_floor::double precision;
    -- Memories no longer held true, or many questions of one, took the place of others.
    exit when not is_crowded;
    fetched := 10 * fetched;
  end loop;

  return query
  select u.id, u.n::integer, u.score
  from   unnest(ids, scores) with ordinality as u(id, score, n)
  order  by u.n;
end;
$$;
comment on function pgrecall._semantic(text, halfvec, text[], jsonb, timestamptz, integer) is
'Worker of the semantic arms; its arguments are checked.';

create or replace function pgrecall.semantic_arm(
  bank       text,
  embedding  halfvec,
  fact_types text[] default null,
  filter     jsonb default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  perform pgrecall._check_embedding(pgrecall._bank(bank), 'embedding', embedding, model);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  if embedding is null then
    return;
  end if;
  return query
  select * from pgrecall._semantic(bank, embedding, pgrecall._fact_types(bank, fact_types), filter,
                                   as_of, depth);
end;
$$;
comment on function pgrecall.semantic_arm(
  text, halfvec, text[], jsonb, timestamptz, integer, text) is
'Memories nearest in meaning. score is the cosine similarity, -1 to 1, not below the bank''s '
'similarity_floor. '
'A memory with anticipated questions counts once, by its best vector. Errors: RC001, RC004, RC005, '
'RC006, RC008, RC011, 22023.';

create or replace function pgrecall.hypothetical_arm(
  bank       text,
  embedding  halfvec,
  fact_types text[] default null,
  filter     jsonb default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select * from pgrecall.semantic_arm(bank, embedding, fact_types, filter, as_of, depth, model);
end;
$$;
comment on function pgrecall.hypothetical_arm(
  text, halfvec, text[], jsonb, timestamptz, integer, text) is
'The semantic arm for the embedding of a made-up answer (HyDE, Gao et al. 2022). Errors: as '
'semantic_arm().';

-- sql/41-lexical.sql
create or replace function pgrecall._parsed_query(
  query text, out words text, out phrases text[], out excluded text[])
language plpgsql immutable parallel safe
as $$
declare
  quoted constant text := '(?<![[:alnum:]])"([^"]+)"(?![[:alnum:]])';
  minus  constant text := '(?:^| )-([[:alpha:]][[:alnum:]]*(?:[-_./@:+#'']+[[:alnum:]]+)*)';
  bare   text := translate(query, '“”„', '"""');
begin
  words := query;
  phrases := '{}';
  excluded := '{}';
  -- What is long was pasted: its quotes and dashes are not meant for us.
  if length(query) > 1000 or bare !~ '"|(^| )-[[:alpha:]]' then
    return;
  end if;
  excluded := array(
    select p.match[1] from regexp_matches(bare, '(?:^| )-' || quoted, 'g') as p(match)
  );
  bare := regexp_replace(bare, '(^| )-' || quoted, ' ', 'g');
  phrases := array(
    select p.match[1]
    from   regexp_matches(bare, quoted, 'g') as p(match)
    -- One of no words says nothing.
    where  p.match[1] ~ '[[:alnum:]]'
  );
  bare := regexp_replace(bare, quoted, ' ', 'g');
  excluded := excluded || array(
    select p.match[1] from regexp_matches(bare, minus, 'g') as p(match)
  );
  words := concat_ws(' ', regexp_replace(bare, minus, ' ', 'g'), array_to_string(phrases, ' '));
end;
$$;
comment on function pgrecall._parsed_query(text) is
'What a query asks for: words of which some should stand in the text, phrases ("in quotes") that '
'must, and words and phrases (-word, -"in quotes") that must not.';

create or replace function pgrecall._stands_in(config regconfig, phrase text, fields text[])
returns boolean
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  typed text := '[' || pgrecall._cjk() || ']|[[:alnum:]][-_./@:+#]+[[:alnum:]]';
  words text;
begin
  if phrase ~ typed then
    -- As typed, and where it does not begin or end in a script without spaces, as whole words.
    typed := regexp_replace(lower(btrim(phrase)), '([^[:alnum:][:space:]])', '\\\1', 'g');
    typed := regexp_replace(typed, '[[:space:]]+', '\\s+', 'g');
    if btrim(phrase) ~ ('^(?![' || pgrecall._cjk() || '])[[:alnum:]]') then
      typed := '(?<![[:alnum:]])' || typed;
    end if;
    if btrim(phrase) ~ ('(?![' || pgrecall._cjk() || '])[[:alnum:]]$') then
      typed := typed || '(?![[:alnum:]])';
    end if;
    return exists (select from unnest(fields) as f where lower(f) ~ ('(?:' || typed || ')'));
  end if;
  words := pgrecall._spaced(phrase);
  if to_tsvector(config, words) = '' then
    -- A phrase of stop words alone: to be or not to be.
    config := 'simple';
    if to_tsvector(config, words) = '' then
      return false;
    end if;
  end if;
  return exists (
    select from unnest(fields) as f
    where  to_tsvector(config, pgrecall._spaced(f)) @@ phraseto_tsquery(config, words)
  );
end;
$$;
comment on function pgrecall._stands_in(regconfig, text, text[]) is
'Whether the words of a phrase stand next to one another in one of the fields, stemmed as the '
'configuration does; a phrase with an identifier or Chinese, Japanese or Korean in it, as typed.';

create or replace function pgrecall._is_wanted(
  config regconfig, phrases text[], excluded text[], fields text[])
returns boolean
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  return (select bool_and(pgrecall._stands_in(config, p, fields)) from unnest(phrases) as p)
           is not false
     and (select bool_or(pgrecall._stands_in(config, x, fields)) from unnest(excluded) as x)
           is not true;
end;
$$;
comment on function pgrecall._is_wanted(regconfig, text[], text[], text[]) is
'Whether all the phrases stand in the fields, and nothing that is excluded.';

create or replace function pgrecall._query_lexemes(
  bank pgrecall.bank, kind text, query text,
  out dimensions integer[], out idfs double precision[], out counts bigint[], out documents bigint,
  out lexemes text[], out is_shared boolean, out watermark bigint)
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  select s.document_count, s.watermark into documents, watermark
  from   pgrecall.statistics s
  where  s.bank_id = bank.bank_id and s.kind = _query_lexemes.kind;

  -- Rarest first; a lexeme without statistics counts as rare.
  select array_agg(t.dimension order by t.count, t.dimension),
         array_agg(t.idf order by t.count, t.dimension),
         array_agg(t.count order by t.count, t.dimension),
         array_agg(t.lexeme),
         bool_or(t.is_shared)
  into   dimensions, idfs, counts, lexemes, is_shared
  from (
    select pgrecall._dimension(q.lexeme) as dimension,
           coalesce(l.document_count, 0)::bigint as count,
           ln(1 + (greatest(documents, l.document_count, 1) - coalesce(l.document_count, 0) + 0.5)
                  / (coalesce(l.document_count, 0) + 0.5)) as idf,
           q.lexeme,
           l.is_shared
    from   pgrecall.lexemes(bank.text_search_config::regconfig, query) as q
    -- A lookup each, also while the planner takes the table for a small one.
    cross  join lateral (
      select max(x.document_count) filter (where x.lexeme = q.lexeme) as document_count,
             coalesce(bool_or(x.lexeme <> q.lexeme), false) as is_shared
      from   pgrecall.lexeme x
      where  x.bank_id = bank.bank_id and x.kind = _query_lexemes.kind
        and  x.dimension = pgrecall._dimension(q.lexeme)
    ) as l
  ) as t;
end;
$$;
comment on function pgrecall._query_lexemes(pgrecall.bank, text, text) is
'The lexemes of a query, rarest first: dimension, IDF ln(1 + (N - n + 0.5) / (n + 0.5)) as in '
'Lucene, and n; documents is N. lexemes are they in any order; is_shared when one has its '
'dimension in common with another lexeme of the bank; documents up to watermark are counted.';

create or replace function pgrecall._worded(
  bank pgrecall.bank, kind text, ids bigint[], lexemes text[])
returns bigint[]
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  if kind = 'memory' then
    return array(
      select m.memory_id
      from   pgrecall.memory m
      where  m.bank_id = bank.bank_id and m.memory_id = any (_worded.ids)
        and  exists (
               select from pgrecall._field_lexemes(
                 bank.text_search_config::regconfig, m.text, m.context, bank.context_weight,
                 m.fact_key, bank.key_weight) as l
               where  l.lexeme = any (_worded.lexemes))
    );
  end if;
  return array(
    select m.message_id
    from   pgrecall.message m
    where  m.bank_id = bank.bank_id and m.message_id = any (_worded.ids)
      and  exists (
             select from pgrecall.lexemes(bank.text_search_config::regconfig, m.text) as l
             where  l.lexeme = any (_worded.lexemes))
  );
end;
$$;
comment on function pgrecall._worded(pgrecall.bank, text, bigint[], text[]) is
'Those of the documents in which one of the lexemes stands.';

create or replace function pgrecall._scoped_keys(
  bank_id text, fact_type text, dimensions integer[])
returns bigint[]
language sql immutable parallel safe
return array(
  select hashint8extended(d::bigint, pgrecall._scope(_scoped_keys.bank_id, _scoped_keys.fact_type))
  from   unnest(dimensions) as d
);
comment on function pgrecall._scoped_keys(text, text, integer[]) is
'Keys of lexemes in the lexical index, as _lexical_keys() makes them of a document.';

create or replace function pgrecall._candidates(
  dimensions integer[], idfs double precision[], counts bigint[], documents bigint,
  candidate_limit integer,
  out singles integer[], out sets text[])
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  first    integer := 1;
  total    double precision := 0;
  accepted integer[] := '{}';
  word_set record;
begin
  -- A third of the limit goes to single words, rarest first.
  while first <= cardinality(dimensions) and total + counts[first] <= candidate_limit / 3 loop
    total := total + counts[first];
    first := first + 1;
  end loop;
  singles := dimensions[1 : first - 1];
  sets := '{}';

  -- What has none of those needs several of the others to score as high. Of the eight rarest, sets
  -- of two, then three, then four are taken, those that weigh most first, while they fit; words of
  -- one question go together some three times as often as chance has it.
  total := 0;
  for word_set in
    select s.mask, array_agg(t.dimension order by t.position) as dimensions,
           least(min(t.count),
                 documents * exp(sum(ln(t.count::double precision / documents)))
                 * 3 ^ (count(*) - 1)) as estimate
    from   generate_series(3, (1 << least(cardinality(dimensions) - first + 1, 8)) - 1) as s(mask)
    join   unnest(dimensions[first : first + 7], idfs[first : first + 7], counts[first : first + 7])
             with ordinality as t(dimension, idf, count, position)
           on s.mask & (1 << (t.position - 1)::integer) <> 0
    group  by s.mask
    having count(*) between 2 and 4
    order  by count(*), sum(t.idf) desc, s.mask
  loop
    continue when total + word_set.estimate > candidate_limit
                  or exists (select from unnest(accepted) as a(mask)
                             where a.mask & word_set.mask = a.mask);
    total := total + word_set.estimate;
    accepted := accepted || word_set.mask;
    sets := sets || word_set.dimensions::text;
  end loop;
  if cardinality(singles) = 0 and cardinality(sets) = 0 then
    singles := dimensions[1:1];
  end if;
end;
$$;
comment on function pgrecall._candidates(
  integer[], double precision[], bigint[], bigint, integer) is
'Which documents to score: those with any of the singles, or with all of any of the sets (arrays '
'of dimensions). On 840,000 sentences that finds 99 of 100 of the true ten best with a fifth of '
'the work that single words alone need for 97.';

create or replace function pgrecall._lexical_search(
  bank pgrecall.bank, kind text, query text, fact_types text[], filter jsonb, as_of timestamptz,
  depth integer)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
set jit = off
-- Starting a worker takes longer than what it would do.
set max_parallel_workers_per_gather = 0
as $$
declare
  config   regconfig := bank.text_search_config::regconfig;
  asked    record := pgrecall._parsed_query(query);
  q        record := pgrecall._query_lexemes(bank, kind, asked.words);
  chosen   record;
  required integer[];
  matches  text;
  ids      bigint[];
  scores   double precision[];
  doubtful bigint[];
  worded   bigint[];
  branch   text;
begin
  if q.dimensions is null then
    return;
  end if;
  if asked.phrases <> '{}' then
    -- Facts with all the words of the phrases, identifiers by their parts. Of Chinese, Japanese and
    -- Korean a single letter is not found inside a word.
    required := array(
      select distinct pgrecall._dimension(l.lexeme)
      from   unnest(asked.phrases) as p,
             pgrecall.lexemes(config, regexp_replace(p, '[-_./@:+#]+', ' ', 'g')) as l
      where  l.lexeme !~ ('^[' || pgrecall._cjk() || ']$')
    );
  end if;
  if required <> '{}' then
    matches := format('%s @> pgrecall._scoped_keys($1, {fact_type}, %L)', '{keys}', required);
  else
    chosen := pgrecall._candidates(
      q.dimensions, q.idfs, q.counts, q.documents, bank.candidate_limit);
    -- Sets of two with the same rarer word share a scan, which reads that word's list once.
    select string_agg(c.condition, ' or ')
    into   matches
    from (
      select format('{keys} && pgrecall._scoped_keys($1, {fact_type}, %L)', chosen.singles)
      where  cardinality(chosen.singles) > 0
      union all
      select format('{keys} @> pgrecall._scoped_keys($1, {fact_type}, %L) and '
                    '{keys} && pgrecall._scoped_keys($1, {fact_type}, %L)',
                    array[w.word_set[1]], array_agg(w.word_set[2]))
      from   (select s::integer[] from unnest(chosen.sets) as s) as w(word_set)
      where  cardinality(w.word_set) = 2
      group  by w.word_set[1]
      union all
      select format('{keys} @> pgrecall._scoped_keys($1, {fact_type}, %L)', s)
      from   unnest(chosen.sets) as s
      where  cardinality(s::integer[]) > 2
    ) as c(condition);
  end if;
  -- What is written into the statement are names and numbers that we made.
  matches := replace(matches, '{keys}', format(
    'pgrecall._lexical_keys(m.bank_id, %s, m.lexical_weights)',
    case kind when 'memory' then 'm.fact_type' else quote_literal('message') end));

  -- The keys are those of one bank and type, so their index alone finds the candidates. A collation
  -- other than the column's, and "is not distinct from", keep the planner, which knows nothing of a
  -- fresh table, from an index that begins with the bank and would make it compute every key anew.
  branch := case kind
    when 'memory' then
      $sql$
        select m.memory_id as id, -(m.lexical_weights <#> $5) as score {fields}
        from   pgrecall.memory m
        where  m.bank_id collate "C" = $1 and m.fact_type is not distinct from {fact_type}
          and  $sql$ || pgrecall._visible_sql(filter)
    else
      $sql$
        select m.message_id as id, -(m.lexical_weights <#> $5) as score {fields}
        from   pgrecall.message m
        where  m.bank_id collate "C" = $1 and m.sent_at <= $2
      $sql$
  end || format(' and (%s) order by 2 desc, 1 desc', matches);
  if asked.phrases = '{}' and asked.excluded = '{}' then
    branch := replace(branch, '{fields}', '') || ' limit $4';
  else
    -- Phrases are looked for in the best, one after the other, until there are enough.
    branch := format(
      'select c.id, c.score from (%s offset 0) as c '
      'where pgrecall._is_wanted($6, $7, $8, c.fields) limit $4',
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
    pgrecall._union_all(branch, fact_types)
  )
  into  ids, scores
  using bank.bank_id, as_of, filter, depth,
        pgrecall._to_sparsevec(q.dimensions, q.idfs), config, asked.phrases, asked.excluded;

  -- A score may stem from another lexeme of the same dimension. Where the bank knows one, or for
  -- documents whose lexemes it has not counted, we look.
  doubtful := array(
    select u from unnest(ids) as u where q.is_shared or u > coalesce(q.watermark, 0)
  );
  if doubtful <> '{}' then
    worded := pgrecall._worded(bank, kind, doubtful, q.lexemes);
  end if;

  return query
  select u.id, row_number() over (order by u.n)::integer, u.score
  from   unnest(ids, scores) with ordinality as u(id, score, n)
  where  u.id <> all (doubtful) or u.id = any (worded)
  order  by u.n;
end;
$$;
comment on function pgrecall._lexical_search(
  pgrecall.bank, text, text, text[], jsonb, timestamptz, integer) is
'Worker of the lexical and the message arm; its arguments are checked.';

create or replace function pgrecall.lexical_arm(
  bank       text,
  query      text,
  fact_types text[] default null,
  filter     jsonb default null,
  as_of      timestamptz default now(),
  depth      integer default 100)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
as $$
declare
  searched pgrecall.bank := pgrecall._bank(bank);
begin
  perform pgrecall._check_text('query', query);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  return query
  select * from pgrecall._lexical_search(
    searched, 'memory', query, pgrecall._fact_types(bank, fact_types), filter, as_of, depth);
end;
$$;
comment on function pgrecall.lexical_arm(text, text, text[], jsonb, timestamptz, integer) is
'Memories that share words with the query, of which "phrases in quotes" must stand there, as '
'adjacent words, and -words must not. score is BM25 (Robertson and Zaragoza 2009, IDF as in '
'Lucene), above 0. '
'About candidate_limit memories are scored, those with the rarest words. Errors: '
'RC001, RC008, RC011, 22023.';

create or replace function pgrecall.message_arm(
  bank text, query text, as_of timestamptz default now(), depth integer default 100)
returns table (message_id bigint, rank integer, score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
as $$
declare
  searched pgrecall.bank := pgrecall._bank(bank);
begin
  perform pgrecall._check_text('query', query);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  return query
  select * from pgrecall._lexical_search(
    searched, 'message', query, array['message'], null, as_of, depth);
end;
$$;
comment on function pgrecall.message_arm(text, text, timestamptz, integer) is
'Raw messages that share words with the query, sent by as_of; quotes and minus as in '
'lexical_arm(). score is BM25, above 0. Errors: '
'RC001, 22023.';

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
  searched pgrecall.bank := pgrecall._bank(bank);
  config   regconfig := searched.text_search_config::regconfig;
  cjk      text := '[' || pgrecall._cjk() || ']';
  content  text;
  wanted   text[];
begin
  perform pgrecall._check_text('query', query);
  select m.text into content
  from   pgrecall.memory m
  where  m.bank_id = highlight.bank and m.memory_id = highlight.memory_id;
  if not found then
    raise exception using
      errcode = 'RC010',
      message = format('bank "%s" has no memory %s', bank, coalesce(memory_id::text, 'null')),
      hint    = 'Pass ids that retain() or a recall on the same bank returned.';
  end if;
  wanted := array(
    select l.lexeme
    from   pgrecall.lexemes(config, (pgrecall._parsed_query(query)).words) as l
  );

  return (
    with run as (
      select r.match[1] as run, r.n, r.match[1] ~ ('^' || cjk) as is_cjk
      from   regexp_matches(content, format('%s+|[^%s]+', cjk, pgrecall._cjk()), 'g')
               with ordinality as r(match, n)
    ),
    piece as (
      select array[r.n, c.n] as place, c.letter as piece,
             case when char_length(r.run) = 1 then c.letter = any (wanted)
                  else coalesce(lag(c.letter) over w || c.letter = any (wanted), false)
                    or coalesce(c.letter || lead(c.letter) over w = any (wanted), false)
             end as is_hit
      from   run r, string_to_table(r.run, null) with ordinality as c(letter, n)
      where  r.is_cjk
      window w as (partition by r.n order by c.n)
      union all
      -- An identifier is marked as a whole when it was asked for as a whole, or else in parts.
      select array[r.n, i.n, w.n], w.match[1],
             lower(i.match[1]) = any (wanted)
               or tsvector_to_array(to_tsvector(config, w.match[1])) && wanted
      from   run r,
             regexp_matches(
               r.run, '[[:alnum:]]+(?:[-_./@:+#]+[[:alnum:]]+)*|[^[:alnum:]]+', 'g'
             ) with ordinality as i(match, n),
             regexp_matches(
               i.match[1], '[[:alnum:]]+|[^[:alnum:]]+', 'g'
             ) with ordinality as w(match, n)
      where  not r.is_cjk
    ),
    -- Hits side by side share a mark.
    stretch as (
      select min(p.place) as place, p.is_hit, string_agg(p.piece, '' order by p.place) as stretch
      from (
        select *, row_number() over (order by place)
                  - row_number() over (partition by is_hit order by place) as island
        from   piece
      ) as p
      group  by p.is_hit, p.island
    )
    select string_agg(
             case when s.is_hit then concat(start_mark, s.stretch, end_mark) else s.stretch end,
             '' order by s.place)
    from   stretch s
  );
end;
$$;
comment on function pgrecall.highlight(text, bigint, text, text, text) is
'The text of a memory with the words that lexical_arm() finds it by between start_mark and '
'end_mark; all else is as it was stored, nothing is escaped. Errors: RC001, RC010 unknown memory, '
'22023.';

-- sql/42-key.sql
create or replace function pgrecall.key_arm(
  bank       text,
  query      text,
  fact_types text[] default null,
  filter     jsonb default null,
  as_of      timestamptz default now(),
  depth      integer default 100)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql stable parallel safe rows 10
set search_path from current
set jit = off
as $$
declare
  types  text[];
  words  text[];
  keys   text[];
  ids    bigint[];
  scores double precision[];
begin
  perform pgrecall._bank(bank);
  perform pgrecall._check_text('query', query);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  types := pgrecall._fact_types(bank, fact_types);
  words := regexp_split_to_array(lower(left(query, 2000)), '\s+');
  -- The whole query, and runs of one to five words, with and without the punctuation around them.
  keys := array(
    select lower(trim(query))
    union
    select k.key
    from   generate_series(1, least(cardinality(words), 200)) as f(first),
           generate_series(0, 4) as n(n),
           array_to_string(words[f.first : f.first + n.n], ' ') as r(run),
           unnest(array[
             r.run,
             regexp_replace(
               r.run, '^[^[:alnum:]._+#@/$~-]+|[^[:alnum:]_+#/$%-]+$', '', 'g')
           ]) as k(key)
  );
  execute format(
    $sql$
      select coalesce(array_agg(t.memory_id order by t.score desc, t.memory_id desc), '{}'),
             coalesce(array_agg(t.score order by t.score desc, t.memory_id desc), '{}')
      from   (select u.* from (%s) as u order by u.score desc, u.memory_id desc limit $4) as t
    $sql$,
    pgrecall._union_all(
      $sql$
        select m.memory_id, length(m.fact_key)::double precision as score
        from   pgrecall.memory m
        where  m.bank_id = $1 and m.fact_type = {fact_type} and lower(m.fact_key) = any ($5)
          and  $sql$ || pgrecall._visible_sql(filter), types)
  )
  into  ids, scores
  using bank, as_of, filter, depth, keys;

  return query
  select u.id, u.n::integer, u.score
  from   unnest(ids, scores) with ordinality as u(id, score, n)
  order  by u.n;
end;
$$;
comment on function pgrecall.key_arm(text, text, text[], jsonb, timestamptz, integer) is
'Memories whose fact_key stands in the query as whole words, in any case: up to five of them among '
'the first 200, or the whole query. score is the length of the key: a longer one says more. '
'Errors: RC001, RC008, RC011, 22023.';

-- sql/43-graph.sql
-- A fresh table has no statistics, and the planner then takes any join for a small one. Lateral
-- subqueries with a limit keep it to looking things up, a few at a time, by their ids; so does
-- "is not distinct from" to a type, for which it cannot use the index that begins with the type.

create or replace function pgrecall.link_expansion(
  bank       text,
  seeds      bigint[],
  fact_types text[] default null,
  filter     jsonb default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  strengths  double precision[] default null)
returns table (memory_id bigint, rank integer, score double precision,
               entity_score double precision, semantic_score double precision,
               causal_score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
set jit = off
as $$
declare
  documents bigint;
begin
  perform pgrecall._bank(bank);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  select s.document_count into documents
  from   pgrecall.statistics s
  where  s.bank_id = link_expansion.bank and s.kind = 'memory';

  return query execute format(
    $sql$
      with seed as (
        select s.memory_id, max(coalesce(s.strength, 1)) as strength
        from   unnest($5, $7) as s(memory_id, strength)
        group  by s.memory_id
      ),
      -- Entities of the seeds, each weighted by how rare it is; counting stops where it no longer
      -- matters.
      entity as (
        select e.entity_id, e.strength * pgrecall._rarity(c.mentions, $6) as weight
        from (
          select x.entity_id, max(s.strength) as strength
          from   seed s
          cross  join lateral (
            select i.entity_id
            from   pgrecall.mention i
            where  i.bank_id = $1 and i.memory_id = s.memory_id
            limit  100
          ) as x
          group  by x.entity_id
        ) as e
        cross join lateral (
          select count(*) as mentions from (
            select from pgrecall.mention x
            where  x.bank_id = $1 and x.entity_id = e.entity_id
            limit  1000
          ) as bounded
        ) as c
      ),
      edge as (
        select l.memory_id, l.kind, l.weight * s.strength as weight
        from   seed s
        cross  join lateral (
          (select o.to_id as memory_id, o.kind, o.weight
           from   pgrecall.link o
           where  o.bank_id = $1 and o.from_id = s.memory_id and o.kind <> 'temporal'
           limit  100)
          union all
          (select i.from_id, i.kind, i.weight
           from   pgrecall.link i
           where  i.bank_id = $1 and i.to_id = s.memory_id and i.kind <> 'temporal'
           limit  100)
        ) as l
      ),
      edge_score as (
        select e.memory_id,
               coalesce(max(e.weight) filter (where e.kind = 'semantic'), 0) as semantic_score,
               coalesce(max(e.weight) filter (where e.kind <> 'semantic'), 0) as causal_score
        from   edge e
        group  by e.memory_id
      ),
      found as (%s)
      select f.memory_id,
             row_number() over (order by f.total desc, f.memory_id desc)::integer,
             f.total, f.entity_score, f.semantic_score, f.causal_score
      from (
        select u.memory_id, tanh(0.5 * sum(u.entity_weight)) as entity_score,
               max(u.semantic_score) as semantic_score,
               max(u.causal_score) as causal_score,
               tanh(0.5 * sum(u.entity_weight)) + max(u.semantic_score) + max(u.causal_score)
                 as total
        from   found u
        group  by u.memory_id
      ) as f
      order  by f.total desc, f.memory_id desc
      limit  $4
    $sql$,
    pgrecall._union_all(
      $sql$
        select x.memory_id, x.entity_weight, x.semantic_score, x.causal_score
        from (
          select t.memory_id, e.weight as entity_weight, 0::double precision as semantic_score,
                 0::double precision as causal_score
          from   entity e
          cross  join lateral (
            select y.memory_id
            from   pgrecall.mention y
            where  y.bank_id = $1 and y.entity_id = e.entity_id and y.fact_type = {fact_type}
            order  by y.memory_id desc
            limit  50
          ) as t
          union all
          select s.memory_id, 0, s.semantic_score, s.causal_score from edge_score s
        ) as x
        cross  join lateral (
          select from pgrecall.memory m
          where  m.bank_id = $1 and m.memory_id = x.memory_id
            and  m.fact_type is not distinct from {fact_type}
            and  $sql$ || pgrecall._visible_sql(filter) || $sql$
          limit  1
        ) as visible
      $sql$,
      pgrecall._fact_types(bank, fact_types))
  )
  using bank, as_of, filter, depth, seeds, coalesce(documents, 1), strengths;
end;
$$;
comment on function pgrecall.link_expansion(
  text, bigint[], text[], jsonb, timestamptz, integer, double precision[]) is
'Memories one step from the seeds; strengths, 0 to 1, says how much each seed counts (1 when '
'null): entity_score = tanh(0.5 n) with n the rarity-weighted number of shared entities, '
'semantic_score the similarity of a semantic link in either direction, causal_score the weight of '
'a causal one; score is their sum, 0 to 3. '
'Errors: RC001, RC008, RC011, 22023.';

create or replace function pgrecall.entity_walk(
  bank       text,
  query      text,
  fact_types text[] default null,
  filter     jsonb default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  hops       integer default 2)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
set jit = off
as $$
declare
  starts      bigint[];
  confidences real[];
  documents   bigint;
begin
  perform pgrecall._bank(bank);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  perform pgrecall._check_range('hops', hops, 0, 3);
  select array_agg(q.entity_id), array_agg(q.confidence)
  into   starts, confidences
  from   pgrecall.query_entities(bank, query) as q;
  if starts is null then
    return;
  end if;
  select s.document_count into documents
  from   pgrecall.statistics s
  where  s.bank_id = entity_walk.bank and s.kind = 'memory';

  return query execute format(
    $sql$
      with recursive walk (entity_id, hop, strength, visited, via) as (
        select s.id, 0, s.confidence::double precision, array[s.id], null::bigint
        from   unnest($5, $6) as s(id, confidence)
        union all
        select n.entity_id, w.hop + 1, w.strength * n.strength, w.visited || n.entity_id,
               n.memory_id
        from   walk w
        cross  join lateral (
          -- A relation that has ended by then, or its fact, still hints at something: 0.3 of it.
          select case when r.from_id = w.entity_id then r.to_id else r.from_id end as entity_id,
                 r.confidence
                 * case when r.valid_to <= $2 or m.valid_to <= $2 then 0.3 else 1 end as strength,
                 r.memory_id
          from (
            (select * from pgrecall.relation o
             where o.bank_id = $1 and o.from_id = w.entity_id order by o.relation_id desc limit 50)
            union all
            (select * from pgrecall.relation i
             where i.bank_id = $1 and i.to_id = w.entity_id order by i.relation_id desc limit 50)
          ) as r
          join   pgrecall.memory m on m.bank_id = $1 and m.memory_id = r.memory_id
          where  m.valid_from <= $2 and (r.valid_from is null or r.valid_from <= $2)
        ) as n
        where  w.hop < $7 and n.entity_id <> all (w.visited)
      ),
      reached as (
        select w.entity_id, max(w.strength * (array[1.0, 0.6, 0.35, 0.15])[w.hop + 1]) as strength
        from   walk w
        group  by w.entity_id
        order  by 2 desc
        limit  100
      ),
      -- The facts that state an edge walked over speak of it most directly.
      stated as (
        select w.via as memory_id,
               max(w.strength * (array[1.0, 0.6, 0.35, 0.15])[w.hop]) as strength
        from   walk w
        where  w.hop > 0
        group  by w.via
      ),
      entity as (
        select r.entity_id, r.strength * pgrecall._rarity(c.mentions, $8) as weight
        from   reached r
        cross  join lateral (
          select count(*) as mentions from (
            select from pgrecall.mention x
            where  x.bank_id = $1 and x.entity_id = r.entity_id
            limit  1000
          ) as bounded
        ) as c
      ),
      found as (%s)
      select f.memory_id, row_number() over (order by f.score desc, f.memory_id desc)::integer,
             f.score
      from (
        select u.memory_id, tanh(sum(u.weight)) as score from found u group by u.memory_id
      ) as f
      order  by f.score desc, f.memory_id desc
      limit  $4
    $sql$,
    pgrecall._union_all(
      $sql$
        select x.memory_id, x.weight
        from (
          select t.memory_id, e.weight
          from   entity e
          cross  join lateral (
            select y.memory_id
            from   pgrecall.mention y
            where  y.bank_id = $1 and y.entity_id = e.entity_id and y.fact_type = {fact_type}
            order  by y.memory_id desc
            limit  50
          ) as t
          union all
          select s.memory_id, s.strength from stated s
        ) as x
        cross  join lateral (
          select from pgrecall.memory m
          where  m.bank_id = $1 and m.memory_id = x.memory_id
            and  m.fact_type is not distinct from {fact_type}
            and  $sql$ || pgrecall._visible_sql(filter) || $sql$
          limit  1
        ) as visible
      $sql$,
      pgrecall._fact_types(bank, fact_types))
  )
  using bank, as_of, filter, depth, starts, confidences, hops, coalesce(documents, 1);
end;
$$;
comment on function pgrecall.entity_walk(
  text, text, text[], jsonb, timestamptz, integer, integer) is
'Memories about the entities named in a query and about those up to hops relations away (0 to 3). '
'An entity weighs 1.0 / 0.6 / 0.35 / 0.15 by hop x confidence x 0.3 once a relation, or the fact '
'that states it, has ended x rarity; score = tanh(sum), 0 to 1. '
'Errors: RC001, RC008, RC011, 22023.';

create or replace function pgrecall._graph(
  bank text, query text, seeds pgrecall.arm_hit[], fact_types text[], filter jsonb,
  as_of timestamptz, depth integer)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
as $$
declare
  ids       bigint[];
  strengths double precision[];
begin
  -- The 20 best of each arm, the first at full strength, the tenth at half of it.
  select array_agg(s.memory_id), array_agg(10.0 / (9 + s.rank))
  into   ids, strengths
  from   unnest(seeds) as s
  where  s.arm in ('semantic', 'lexical') and s.rank <= 20;

  return query
  select t.memory_id, row_number() over (order by t.score desc, t.memory_id desc)::integer, t.score
  from (
    select u.memory_id, sum(u.score) as score
    from (
      -- A neighbour in meaning of what was found is mostly more of the same: it supports, it does
      -- not lead.
      select e.memory_id, e.entity_score + 0.3 * e.semantic_score + e.causal_score as score
      from   pgrecall.link_expansion(bank, ids, fact_types, filter, as_of, depth, strengths) as e
      union all
      select w.memory_id, w.score
      from   pgrecall.entity_walk(bank, query, fact_types, filter, as_of, depth) as w
    ) as u
    group  by u.memory_id
    -- Below this a memory shares little more than a name that stands everywhere.
    having sum(u.score) >= 0.5
  ) as t
  order  by t.score desc, t.memory_id desc
  limit  depth;
end;
$$;
comment on function pgrecall._graph(
  text, text, pgrecall.arm_hit[], text[], jsonb, timestamptz, integer) is
'Worker of the graph arm: link expansion from the best of the semantic and lexical arms plus the '
'walk from the entities of the query.';

create or replace function pgrecall._seeds(
  bank text, query text, embedding halfvec, fact_types text[], filter jsonb, as_of timestamptz)
returns pgrecall.arm_hit[]
language plpgsql volatile parallel unsafe
set search_path from current
as $$
begin
  return array(
    select ('semantic', s.memory_id, s.rank, s.score)::pgrecall.arm_hit
    from   pgrecall.semantic_arm(bank, embedding, fact_types, filter, as_of, 20) as s
    union all
    select ('lexical', l.memory_id, l.rank, l.score)::pgrecall.arm_hit
    from   pgrecall.lexical_arm(bank, query, fact_types, filter, as_of, 20) as l
  );
end;
$$;
comment on function pgrecall._seeds(text, text, halfvec, text[], jsonb, timestamptz) is
'Where link expansion starts: the 20 best of the semantic and of the lexical arm.';

create or replace function pgrecall.graph_arm(
  bank       text,
  query      text,
  embedding  halfvec default null,
  fact_types text[] default null,
  filter     jsonb default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  perform pgrecall._check_embedding(pgrecall._bank(bank), 'embedding', embedding, model);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  return query
  select * from pgrecall._graph(
    bank, query, pgrecall._seeds(bank, query, embedding, fact_types, filter, as_of),
    fact_types, filter, as_of, depth);
end;
$$;
comment on function pgrecall.graph_arm(
  text, text, halfvec, text[], jsonb, timestamptz, integer, text) is
'Memories that relations lead to: link_expansion() from the 20 best of the semantic and lexical '
'arms each, plus entity_walk(). '
'score = entity_score + 0.3 semantic_score + causal_score + the walk, 0.5 to 3.3; less is noise '
'and left out. Errors: RC001, RC004, RC005, RC006, RC008, RC011, 22023.';

-- sql/44-temporal.sql
create or replace function pgrecall._slack_after(during tstzrange)
returns interval
language sql immutable parallel safe
-- People talk about things afterwards: about a day within the week, about a month within the next.
return interval '7 days' + case
  when isfinite(lower(during)) and isfinite(upper(during))
    then least(0.75 * (upper(during) - lower(during)), interval '30 days')
  else interval '0'
end;
comment on function pgrecall._slack_after(tstzrange) is
'How long after a window something still counts: 7 days and three quarters of the length of the '
'window, at most 30 days of that. Before it, 3 days do.';

create or replace function pgrecall._check_time_basis(time_basis text)
returns void
language plpgsql immutable parallel safe
as $$
begin
  if time_basis is null or time_basis not in ('occurred', 'mentioned') then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('time_basis must be "occurred" or "mentioned", not "%s"', time_basis),
      hint    = '"mentioned" takes the time of saying where it is not known when it happened.';
  end if;
end;
$$;
comment on function pgrecall._check_time_basis(text) is
'Raises 22023 unless a time basis is occurred or mentioned.';

create or replace function pgrecall.temporal_arm(
  bank       text,
  during     tstzrange,
  embedding  halfvec default null,
  fact_types text[] default null,
  filter     jsonb default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null,
  time_basis text default 'occurred')
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql stable parallel safe rows 100
set search_path from current
set jit = off
as $$
declare
  searched pgrecall.bank := pgrecall._bank(bank);
  types    text[];
  during_at tstzrange;
  branch   text;
begin
  perform pgrecall._check_embedding(searched, 'embedding', embedding, model);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  perform pgrecall._check_time_basis(time_basis);
  types := pgrecall._fact_types(bank, fact_types);
  if during is null or isempty(during) then
    return;
  end if;
  during_at := tstzrange(
    coalesce(lower(during), '-infinity'), coalesce(upper(during), 'infinity'),
    case when upper_inc(during) then '[]' else '[)' end);

  -- The bounds again as scalars, for the btree; the most recent 2,000 at most are weighed.
  branch := $sql$
    select m.memory_id, m.occurred
    from   pgrecall.memory m
    where  m.bank_id = $1 and m.fact_type = {fact_type} and m.occurred is not null
      and  lower(m.occurred) < upper($5) + $9
      and  upper(m.occurred) > lower($5) - interval '3 days'
      and  $sql$ || pgrecall._visible_sql(filter) || $sql$
    order by lower(m.occurred) desc
    limit  2000
  $sql$;
  if time_basis = 'mentioned' then
    branch := '(' || branch || $sql$)
      union all
      (select m.memory_id, tstzrange(m.mentioned_at, m.mentioned_at, '[]')
       from   pgrecall.memory m
       where  m.bank_id = $1 and m.fact_type = {fact_type} and m.occurred is null
         and  m.mentioned_at < upper($5) + $9
         and  m.mentioned_at > lower($5) - interval '3 days'
         and  $sql$ || pgrecall._visible_sql(filter) || $sql$
       order by m.mentioned_at desc
       limit 2000)
    $sql$;
  end if;

  return query execute format(
    $sql$
      with recursive entry as (
        -- proximity: 1 inside the window, falling to 0 at the end of the slack on either side.
        select u.memory_id,
               case
                 when u.occurred && $5 then 1
                 when u.occurred << $5
                   then 1 - extract(epoch from lower($5) - upper(u.occurred)) / 259200
                 else 1 - extract(epoch from lower(u.occurred) - upper($5))
                          / extract(epoch from $9)
               end::double precision * coalesce(0.75 + 0.25 * v.similarity, 1) as score
        from   (%1$s) as u
        left   join lateral (
          select max(1 - (e.embedding <=> $6)) as similarity
          from   pgrecall.embedding e
          where  e.bank_id = $1 and e.memory_id = u.memory_id and e.model = $7
            and  $6 is not null
        ) as v on true
        order  by 2 desc, u.memory_id desc
        limit  $4
      ),
      -- From the 20 best along links in time and cause, two steps, at most 20 links each way.
      walk (memory_id, score, step, visited) as (
        select e.memory_id, e.score, 0, array[e.memory_id]
        from   (select * from entry order by score desc, memory_id desc limit 20) as e
        union all
        select n.memory_id, 0.5 * w.score * n.weight, w.step + 1, w.visited || n.memory_id
        from   walk w
        cross  join lateral (
          (select o.to_id as memory_id, o.weight
           from   pgrecall.link o
           where  o.bank_id = $1 and o.from_id = w.memory_id and o.kind <> 'semantic'
           limit  20)
          union all
          (select i.from_id, i.weight
           from   pgrecall.link i
           where  i.bank_id = $1 and i.to_id = w.memory_id and i.kind <> 'semantic'
           limit  20)
        ) as n
        where  w.step < 2 and n.weight > 0 and n.memory_id <> all (w.visited)
      ),
      neighbour as (
        select s.memory_id, s.score
        from   (select w.memory_id, max(w.score) as score
                from   walk w
                where  w.step > 0
                group  by w.memory_id) as s
        cross  join lateral (
          select from pgrecall.memory m
          where  m.bank_id = $1 and m.memory_id = s.memory_id
            and  array_position($8, m.fact_type) is not null and %2$s
          limit  1
        ) as visible
      )
      select t.memory_id, row_number() over (order by t.score desc, t.memory_id desc)::integer,
             t.score
      from (
        select a.memory_id, max(a.score) as score
        from   (select * from entry union all select * from neighbour) as a
        where  a.score > 0
        group  by a.memory_id
      ) as t
      order  by t.score desc, t.memory_id desc
      limit  $4
    $sql$,
    pgrecall._union_all(branch, types),
    pgrecall._visible_sql(filter)
  )
  using bank, as_of, filter, depth, during_at, embedding, coalesce(searched.embedding_model, ''),
        types, pgrecall._slack_after(during_at);
end;
$$;
comment on function pgrecall.temporal_arm(
  text, tstzrange, halfvec, text[], jsonb, timestamptz, integer, text, text) is
'Memories that occurred within a window or near it (3 days before; after, 7 days and three '
'quarters of its length, 30 days of that at most), and what is one or two links in time and cause '
'away from the best of them, each step at half the score. '
'time_basis => ''mentioned'' takes the time of saying where it is not known when it happened. '
'score = proximity, 0 to 1, times (0.75 + 0.25 similarity) where an embedding is given. Errors: '
'RC001, RC004, RC005, RC006, RC008, RC011, 22023.';

-- sql/50-fusion.sql
create or replace function pgrecall._fuse(
  hits pgrecall.arm_hit[], weights jsonb, k integer, by_score boolean)
returns table (memory_id bigint, rank integer, score double precision, arms jsonb)
language sql immutable parallel safe
begin atomic
  select f.memory_id, rank() over (order by f.score desc)::integer, f.score, f.arms
  from (
    select c.memory_id,
           sum(c.contribution) as score,
           jsonb_object_agg(c.arm, jsonb_build_object(
             'rank', c.rank, 'score', c.score, 'contribution', c.contribution)) as arms
    from (
      select h.arm, h.memory_id, h.rank, h.score,
             coalesce((weights ->> h.arm)::double precision, 1) / (k + h.rank)
             * case when by_score and max(h.score) over (partition by h.arm) > 0
                 then greatest(h.score, 0) / max(h.score) over (partition by h.arm)
                 else 1
               end as contribution
      from   unnest(hits) as h
    ) as c
    where  c.contribution > 0
    group  by c.memory_id
  ) as f
  order  by f.score desc, f.memory_id desc;
end;
comment on function pgrecall._fuse(pgrecall.arm_hit[], jsonb, integer, boolean) is
'Worker of rrf() and score_rrf().';

create or replace function pgrecall.rrf(
  hits pgrecall.arm_hit[], weights jsonb default '{}', k integer default 60)
returns table (memory_id bigint, rank integer, score double precision, arms jsonb)
language sql immutable parallel safe
begin atomic
  select f.memory_id, f.rank, f.score, f.arms from pgrecall._fuse(hits, weights, k, false) as f;
end;
comment on function pgrecall.rrf(pgrecall.arm_hit[], jsonb, integer) is
'Weighted reciprocal rank fusion (Cormack, Clarke and Buettcher 2009): score = sum over arms of '
'weight / (k + rank). '
'Equal scores share a rank. arms holds rank, score and contribution per arm; contributions add up '
'to the score. '
'A weight not given is 1; an arm of weight 0 has no say.';

create or replace function pgrecall.score_rrf(
  hits pgrecall.arm_hit[], weights jsonb default '{}', k integer default 60)
returns table (memory_id bigint, rank integer, score double precision, arms jsonb)
language sql immutable parallel safe
begin atomic
  select f.memory_id, f.rank, f.score, f.arms from pgrecall._fuse(hits, weights, k, true) as f;
end;
comment on function pgrecall.score_rrf(pgrecall.arm_hit[], jsonb, integer) is
'Reciprocal rank fusion that knows how good a rank is: score = sum over arms of weight * (score / '
'best score of the arm) / (k + rank). '
'The rest as rrf().';

-- sql/55-plan.sql
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
comment on function pgrecall.default_type_hints() is
'Words that tell the fact type a question asks for, where the bank has none of its own. "*" is for '
'questions about somebody or something, of any type; an asterisk ends what may go on.';

create or replace function pgrecall._check_type_hints(bank text, type_hints jsonb)
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
  if jsonb_typeof(type_hints) <> 'object' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('type_hints must be an object, not %s', left(type_hints::text, 80)),
      hint    = 'Write {"preference": ["prefer*", "my default"]}, or null for the default.';
  end if;
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
comment on function pgrecall._check_type_hints(text, jsonb) is
'Raises 22023 unless hints are null or arrays of words by fact type, RC008 for an unknown type.';

create or replace function pgrecall.type_hints(bank text, query text)
returns table (fact_type text, matched text)
language plpgsql stable parallel safe rows 2
set search_path from current
as $$
declare
  searched pgrecall.bank := pgrecall._bank(bank);
  words    text;
begin
  perform pgrecall._check_text('query', query);
  words := ' ' || pgrecall.normalised_name(left(query, 2000)) || ' ';
  return query
  select nullif(h.key, '*'), w.word
  from   jsonb_each(coalesce(searched.type_hints, pgrecall.default_type_hints())) as h
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
comment on function pgrecall.type_hints(text, text) is
'Fact types that a query asks for by its words, and the first word that says so. fact_type is null '
'for a question about somebody or something, whose answer is of any type. The words are those of '
'default_type_hints() or of the bank''s setting type_hints. Errors: RC001, 22023.';

create or replace function pgrecall._is_only_date(query text)
returns boolean
language sql immutable parallel safe
return length(query) <= 200 and pgrecall.normalised_name(query) ~ (
  '^((what|whats|when|which|did|do|does|done|doing|was|were|is|are|has|have|had|been|be|we|i|you'
  '|they|us|me|my|our|there|it|happen|happens|happened|happening|occur|occurs|occurred|go|goes'
  '|going|went|on|in|at|of|the|a|an|to|from|until|till|before|after|since|between|and|or|during'
  '|within|over|around|about|by|for|back|through|all|any|anything|something|everything|thing'
  '|things|event|events|show|list|tell|say|give'
  '|january|february|march|april|may|june|july|august|september|october|november|december'
  '|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec'
  '|monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tue|tues|wed|thu|thur|thurs|fri'
  '|sat|sun|day|days|week|weeks|month|months|year|years|hour|hours|quarter|decade|weekend|weekends'
  '|morning|afternoon|evening|night|noon|midnight|today|yesterday|tomorrow|tonight|last|next'
  '|past|this|that|previous|coming|recent|recently|lately|ago|earlier|later|early|mid|middle|late'
  '|end|beginning|start|first|second|third|fourth|fifth|spring|summer|autumn|fall|winter|am|pm|utc'
  '|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|couple|few|several'
  '|q[1-4]|[0-9]+(st|nd|rd|th|s|am|pm)?)( |$))+$'
);
comment on function pgrecall._is_only_date(text) is
'Whether an English query asks for a time and nothing else: what happened in March 2026?';

create or replace function pgrecall._graph_bound(
  bank text, query text, seeds pgrecall.arm_hit[])
returns double precision
language plpgsql stable parallel safe
set search_path from current
set jit = off
-- Its plans are kept, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  documents    bigint;
  walk_weight  double precision;
  has_relation boolean;
  entity_weight double precision;
  similarity   double precision;
  has_cause    boolean;
begin
  select s.document_count into documents
  from   pgrecall.statistics s
  where  s.bank_id = _graph_bound.bank and s.kind = 'memory';
  documents := coalesce(documents, 1);

  select coalesce(sum(q.confidence * pgrecall._rarity(c.mentions, documents)), 0),
         coalesce(bool_or(r.is_there), false)
  into   walk_weight, has_relation
  from   pgrecall.query_entities(bank, query) as q
  cross  join lateral (
    select count(*) as mentions from (
      select from pgrecall.mention x
      where  x.bank_id = _graph_bound.bank and x.entity_id = q.entity_id
      limit  1000
    ) as bounded
  ) as c
  left   join lateral (
    (select true from pgrecall.relation o
     where o.bank_id = _graph_bound.bank and o.from_id = q.entity_id limit 1)
    union all
    (select true from pgrecall.relation i
     where i.bank_id = _graph_bound.bank and i.to_id = q.entity_id limit 1)
  ) as r(is_there) on true;
  if has_relation then
    return 'infinity';
  end if;

  with seed as materialized (
    select s.memory_id, max(10.0 / (9 + s.rank)) as strength
    from   unnest(seeds) as s
    where  s.arm in ('semantic', 'lexical') and s.rank <= 20
    group  by s.memory_id
  ),
  edge as (
    select l.kind, l.weight * s.strength as weight
    from   seed s
    cross  join lateral (
      (select o.kind, o.weight from pgrecall.link o
       where  o.bank_id = _graph_bound.bank and o.from_id = s.memory_id and o.kind <> 'temporal'
       limit  100)
      union all
      (select i.kind, i.weight from pgrecall.link i
       where  i.bank_id = _graph_bound.bank and i.to_id = s.memory_id and i.kind <> 'temporal'
       limit  100)
    ) as l
  )
  select (
    select coalesce(sum(e.strength * pgrecall._rarity(c.mentions, documents)), 0)
    from (
      select x.entity_id, max(s.strength) as strength
      from   seed s
      cross  join lateral (
        select i.entity_id from pgrecall.mention i
        where  i.bank_id = _graph_bound.bank and i.memory_id = s.memory_id
        limit  100
      ) as x
      group  by x.entity_id
    ) as e
    cross join lateral (
      select count(*) as mentions from (
        select from pgrecall.mention x
        where  x.bank_id = _graph_bound.bank and x.entity_id = e.entity_id
        limit  1000
      ) as bounded
    ) as c
  ),
  (select max(e.weight) from edge e where e.kind = 'semantic'),
  exists (select from edge e where e.kind <> 'semantic' and e.weight > 0)
  into entity_weight, similarity, has_cause;
  if has_cause then
    return 'infinity';
  end if;
  return tanh(0.5 * entity_weight) + 0.3 * coalesce(similarity, 0) + tanh(walk_weight);
end;
$$;
comment on function pgrecall._graph_bound(text, text, pgrecall.arm_hit[]) is
'No memory can score higher than this in the graph arm that starts from these seeds; infinity '
'where relations or causes lead on. A small part of the work of the arm itself.';

create or replace function pgrecall._arm_plan(
  bank pgrecall.bank, query text, embedding halfvec, during tstzrange, filter jsonb, arms text[],
  weights jsonb, hypothetical halfvec, budget text, is_only_date boolean)
returns table (arm text, is_run boolean, reason text)
language plpgsql stable parallel unsafe rows 7
set search_path from current
-- Its plans are kept, also those made while a table was small.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  has_key     boolean;
  has_message boolean;
  has_edge    boolean;
  knows       boolean;
  hears       boolean;
begin
  if arms is null then
    begin
      -- In the order of an index: on a table never analysed the planner would rather look for the
      -- first by reading all. Documents not counted yet may hold any word.
      select (select true from pgrecall.memory m
              where  m.bank_id = bank.bank_id and m.fact_key is not null
              order  by lower(m.fact_key) limit 1),
             (select true from pgrecall.message m
              where  m.bank_id = bank.bank_id
              order  by m.message_id limit 1),
             coalesce(
               (select true from pgrecall.link l
                where  l.bank_id = bank.bank_id
                order  by l.from_id, l.kind, l.to_id limit 1),
               (select true from pgrecall.mention x
                where  x.bank_id = bank.bank_id
                order  by x.entity_id, x.fact_type, x.memory_id limit 1)),
             (select m.memory_id from pgrecall.memory m
              where  m.bank_id = bank.bank_id
              order  by m.memory_id desc limit 1) > coalesce(
                (select s.watermark from pgrecall.statistics s
                 where  s.bank_id = bank.bank_id and s.kind = 'memory'), 0),
             (select m.message_id from pgrecall.message m
              where  m.bank_id = bank.bank_id
              order  by m.message_id desc limit 1) > coalesce(
                (select s.watermark from pgrecall.statistics s
                 where  s.bank_id = bank.bank_id and s.kind = 'message'), 0)
      into   has_key, has_message, has_edge, knows, hears;
      select coalesce(knows, false) or coalesce(bool_or(m.is_known), false),
             coalesce(hears, false) or coalesce(bool_or(t.is_known), false)
      into   knows, hears
      from   pgrecall.lexemes(bank.text_search_config::regconfig, query) as q
      left   join lateral (
        select true from pgrecall.lexeme l
        where  l.bank_id = bank.bank_id and l.kind = 'memory'
          and  l.dimension = pgrecall._dimension(q.lexeme) and l.lexeme = q.lexeme
        limit  1
      ) as m(is_known) on true
      left   join lateral (
        select true from pgrecall.lexeme l
        where  has_message and l.bank_id = bank.bank_id and l.kind = 'message'
          and  l.dimension = pgrecall._dimension(q.lexeme) and l.lexeme = q.lexeme
        limit  1
      ) as t(is_known) on true;
    exception when others then
      if sqlstate like '40%' then
        raise;
      end if;
      -- What is broken or not to be read here is for the arms to tell.
      has_key := true; has_message := true; has_edge := true; knows := true; hears := true;
    end;
  end if;

  -- The graph comes after semantic and lexical: their best are its seeds.
  for arm in
    select unnest(
      array['key', 'semantic', 'lexical', 'graph', 'temporal', 'message', 'hypothetical'])
  loop
    reason := case
      when arm <> all (arms) then 'not asked for'
      when (weights ->> arm)::double precision = 0 then 'its weight is 0'
      when arm = 'semantic' and embedding is null then 'no embedding given'
      when arm = 'hypothetical' and hypothetical is null then 'no hypothetical answer given'
      when arm = 'temporal' and during is null then 'no time window given'
      when arm in ('key', 'lexical', 'message') and query = '' then 'no query text given'
      when arm = 'message' and filter is not null then 'filters are about memories'
      when arms is not null then null
      when budget = 'low' and arm in ('graph', 'message', 'hypothetical') then 'the budget is low'
      when is_only_date and arm in ('semantic', 'graph', 'message', 'hypothetical')
        then 'the query is only a date'
      when arm in ('semantic', 'hypothetical') and bank.embedding_dimensions is null
        then 'the bank holds no embeddings'
      when arm = 'key' and has_key is null then 'no fact of the bank has a key'
      when arm = 'lexical' and not knows then 'the bank knows no word of the query'
      when arm = 'message' and has_message is null then 'the bank holds no messages'
      when arm = 'message' and not hears then 'no message has a word of the query'
      when arm = 'graph' and query = '' and embedding is null then 'there is nothing to start from'
      when arm = 'graph' and has_edge is null then 'the bank holds neither entities nor links'
    end;
    is_run := reason is null;
    reason := coalesce(reason, case
      when arms is not null then 'asked for'
      when arm = 'key' then 'the bank has facts with keys'
      when arm = 'semantic' then 'an embedding is given'
      when arm = 'lexical' then 'the bank knows words of the query'
      when arm = 'graph' then 'entities and links may lead on from what the arms before find'
      when arm = 'temporal' then 'a time window is given'
      when arm = 'message' then 'messages have words of the query'
      else 'a hypothetical answer is given'
    end);
    return next;
  end loop;
end;
$$;
comment on function pgrecall._arm_plan(
  pgrecall.bank, text, halfvec, tstzrange, jsonb, text[], jsonb, halfvec, text, boolean) is
'Worker of arm_plan(). Arms that were asked for run whenever they have something to work on.';

-- sql/60-recall.sql
create or replace function pgrecall._run_arm(
  arm        text,
  bank       pgrecall.bank,
  query      text,
  embedding  halfvec,
  during     tstzrange,
  fact_types text[],
  filter     jsonb,
  seeds      pgrecall.arm_hit[],
  as_of      timestamptz,
  depth      integer,
  time_basis text)
returns table (memory_id bigint, rank integer, score double precision)
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  case arm
    when 'semantic', 'hypothetical' then
      return query
      select * from pgrecall._semantic(
        bank.bank_id, embedding, fact_types, filter, as_of, depth);
    when 'lexical' then
      return query
      select * from pgrecall._lexical_search(
        bank, 'memory', query, fact_types, filter, as_of, depth);
    when 'message' then
      return query
      select * from pgrecall._lexical_search(
        bank, 'message', query, array['message'], null, as_of, depth);
    when 'key' then
      return query
      select * from pgrecall.key_arm(bank.bank_id, query, fact_types, filter, as_of, depth);
    when 'temporal' then
      return query
      select * from pgrecall.temporal_arm(
        bank.bank_id, during, embedding, fact_types, filter, as_of, depth,
        time_basis => time_basis);
    when 'graph' then
      return query
      select * from pgrecall._graph(
        bank.bank_id, query,
        coalesce(seeds, pgrecall._seeds(bank.bank_id, query, embedding, fact_types, filter, as_of)),
        fact_types, filter, as_of, depth);
  end case;
end;
$$;
comment on function pgrecall._run_arm(
  text, pgrecall.bank, text, halfvec, tstzrange, text[], jsonb, pgrecall.arm_hit[], timestamptz,
  integer, text) is
'Runs the worker of an arm; the graph starts from seeds, or where there are none finds its own.';

create or replace function pgrecall._gather(
  bank         pgrecall.bank,
  query        text,
  embedding    halfvec,
  during       tstzrange,
  fact_types   text[],
  filter       jsonb,
  arms         text[],
  weights      jsonb,
  depth        integer,
  as_of        timestamptz,
  hypothetical halfvec,
  budget       text,
  time_basis   text,
  hinted_types text[],
  hint         text,
  out hits     pgrecall.arm_hit[],
  out report   jsonb)
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  is_only_date boolean := arms is null and budget <> 'high' and during is not null
                          and pgrecall._is_only_date(query);
  arm        text;
  is_run     boolean;
  reason     text;
  status     text;
  found_hits pgrecall.arm_hit[];
  found_size bigint;
  began      timestamptz;
begin
  loop
    hits := '{}';
    report := '[]';
    for arm, is_run, reason in
      select p.arm, p.is_run, p.reason
      from   pgrecall._arm_plan(bank, query, embedding, during, filter, arms, weights,
                                hypothetical, budget, is_only_date) as p
    loop
      began := clock_timestamp();
      found_hits := '{}';
      status := case when is_run then 'ran' else 'skipped' end;
      if is_run then
        -- A broken arm must not take the others with it. Wrong input is the caller's to know of, a
        -- rolled back transaction (class 40: a conflict on a standby, too) the caller's to retry.
        begin
          if arm = 'graph' and arms is null and budget <> 'high'
             and pgrecall._graph_bound(bank.bank_id, query, hits) < 0.5
          then
            status := 'skipped';
            reason := 'no entity or link leads on from what the arms before found';
          else
            reason := hint;
            found_hits := array(
              select (arm, a.memory_id, a.rank, a.score)::pgrecall.arm_hit
              from   pgrecall._run_arm(
                       arm, bank, query,
                       case arm when 'hypothetical' then hypothetical else embedding end,
                       during, coalesce(hinted_types, fact_types), filter,
                       case when arms is null or arms && '{semantic,lexical}' then hits end,
                       as_of, depth, time_basis) as a
            );
          end if;
        exception when others then
          if sqlstate like 'RC%' or sqlstate like '40%' or sqlstate = '22023' then
            raise;
          end if;
          status := 'failed';
          reason := sqlerrm;
          raise warning using
            errcode = '01RC1',
            message = format('the %s arm failed and was left out: %s', arm, sqlerrm),
            hint    = format('Run pgrecall.%s_arm() alone to see the error.', arm);
        end;
        hits := hits || found_hits;
      end if;
      report := report || jsonb_build_object(
        'arm', arm, 'status', status, 'reason', reason,
        'rows', cardinality(found_hits), 'best_score', (found_hits[1]).score,
        'milliseconds', extract(epoch from clock_timestamp() - began) * 1000);
    end loop;

    -- Narrowed too far: once more, everywhere.
    exit when hinted_types is null and not is_only_date;
    select count(distinct h.memory_id) into found_size
    from   unnest(hits) as h
    where  h.arm <> 'message';
    exit when found_size >= bank.widen_below;
    hint := format('widened: %s results were fewer than %s', found_size, bank.widen_below);
    hinted_types := null;
    is_only_date := false;
  end loop;
end;
$$;
comment on function pgrecall._gather(
  pgrecall.bank, text, halfvec, tstzrange, text[], jsonb, text[], jsonb, integer, timestamptz,
  halfvec, text, text, text[], text) is
'Runs the arms that can help; returns what they found and a report of each. Hinted types, and a '
'query that is only a date, narrow the search, unless too little is found. An arm that fails is '
'left out with warning 01RC1.';

create or replace function pgrecall._recall_arguments(
  bank text, query text, embedding halfvec, during tstzrange, fact_types text[], tags text[],
  filter jsonb, arms text[], weights jsonb, top_k integer, depth integer, hypothetical halfvec,
  model text, time_mode text, k integer, fusion text, time_basis text, use_hints boolean,
  budget text,
  out searched pgrecall.bank, out all_types text[], out whole_filter jsonb, out all_weights jsonb,
  out all_depth integer, out hinted_types text[], out hint text)
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  unknown text;
  ends    timestamptz;
begin
  searched := pgrecall._bank(bank);
  if coalesce(btrim(query, E' \t\r\n'), '') = ''
     and num_nonnulls(embedding, hypothetical, during) = 0
  then
    raise exception using
      errcode = 'RC007',
      message = 'nothing to recall by: the query is empty and there is no embedding',
      hint    = 'Pass a question, an embedding => or a window during =>.';
  end if;
  perform pgrecall._check_text('query', query);
  perform pgrecall._check_embedding(searched, 'embedding', embedding, model);
  perform pgrecall._check_embedding(searched, 'hypothetical', hypothetical, model);
  perform pgrecall._check_range('top_k', top_k, 1, 1000);
  perform pgrecall._check_range('depth', depth, 1, 10000);
  if k is not null then
    perform pgrecall._check_range('k', k, 1, 10000);
  end if;
  all_types := pgrecall._fact_types(bank, fact_types);

  select a into unknown from unnest(arms) as a
  where  a is null or not pgrecall.default_weights() ? a
  limit  1;
  if found or cardinality(arms) = 0 then
    raise exception using
      errcode = 'RC009',
      message = case when cardinality(arms) = 0 then 'arms is empty'
                     else format('unknown arm "%s"', unknown) end,
      hint    = format('Arms: %s.', pgrecall._arm_names());
  end if;
  perform pgrecall._check_weights(weights);
  all_weights := pgrecall.default_weights() || searched.weights || coalesce(weights, '{}');

  if fusion not in ('rrf', 'score_rrf') then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('fusion must be "rrf" or "score_rrf", not "%s"', fusion),
      hint    = 'Leave it out for the default of the bank.';
  end if;
  if time_mode is null or time_mode not in ('boost', 'filter') then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('time_mode must be "boost" or "filter", not "%s"', time_mode),
      hint    = '"boost" lifts what occurred in the window; "filter" leaves out all else.';
  end if;
  perform pgrecall._check_time_basis(time_basis);
  if budget is null or budget not in ('low', 'mid', 'high') then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = format('budget must be "low", "mid" or "high", not "%s"', budget),
      hint    = '"mid" runs each arm that can help; "low" leaves out the graph and messages.';
  end if;
  all_depth := case budget
    when 'low' then least(depth, greatest(top_k, depth / 2))
    when 'high' then least(2 * depth, 10000)
    else depth
  end;
  if use_hints and fact_types is null then
    select array_agg(h.fact_type), 'only ' || string_agg(
             format('%s, by the word "%s"', h.fact_type, trim(h.matched, '*')), '; ')
    into   hinted_types, hint
    from   pgrecall.type_hints(bank, query) as h
    where  h.fact_type = any (all_types);
    if hinted_types is null then
      hint := (select format('all types, by the words "%s"', trim(h.matched, '*'))
               from   pgrecall.type_hints(bank, query) as h
               where  h.fact_type is null);
    end if;
  end if;
  whole_filter := '["and"]';
  if filter is not null then
    whole_filter := whole_filter || jsonb_build_array(filter);
  end if;
  if tags is not null then
    whole_filter := whole_filter || jsonb_build_array(
      jsonb_build_array('overlaps', 'tags', to_jsonb(tags)));
  end if;
  if during is not null and time_mode = 'filter' then
    -- The spans of a filter are half-open: an end that belongs to the window is let in.
    ends := upper(during) + upper_inc(during)::integer * interval '1 microsecond';
    whole_filter := whole_filter || jsonb_build_array(case
      when isempty(during) then '["in", "memory_id", []]'
      when time_basis = 'occurred' then
        jsonb_build_array('overlaps', 'occurred', jsonb_build_array(lower(during), ends))
      else jsonb_build_array(
        'or', jsonb_build_array('overlaps', 'occurred', jsonb_build_array(lower(during), ends)),
        '["and", ["is null", "occurred"]]'
        || case when lower(during) is null then '[]'
             else jsonb_build_array(jsonb_build_array('>=', 'mentioned_at', lower(during))) end
        || case when ends is null then '[]'
             else jsonb_build_array(jsonb_build_array('<', 'mentioned_at', ends)) end)
    end);
  end if;
  if jsonb_array_length(whole_filter) = 1 then
    whole_filter := null;
  end if;
  perform pgrecall._filter_sql(whole_filter);
end;
$$;
comment on function pgrecall._recall_arguments(
  text, text, halfvec, tstzrange, text[], text[], jsonb, text[], jsonb, integer, integer, halfvec,
  text, text, integer, text, text, boolean, text) is
'Checks the arguments of a recall and fills in the defaults of the bank. Tags and a filtering '
'window become part of the filter; hinted_types are those that the words of the query hint at.';

create or replace function pgrecall._hybrid_recall(
  bank pgrecall.bank, query text, embedding halfvec, during tstzrange, fact_types text[],
  filter jsonb, arms text[], weights jsonb, top_k integer, depth integer, as_of timestamptz,
  hypothetical halfvec, k integer, fusion text, budget text, time_basis text, hinted_types text[],
  hint text)
returns setof pgrecall.recalled
language plpgsql volatile parallel unsafe rows 50
set search_path from current
as $$
declare
  hits   pgrecall.arm_hit[];
  ids    bigint[];
  scores double precision[];
  shares jsonb[];
begin
  hits := (pgrecall._gather(bank, query, embedding, during, fact_types, filter,
                            arms, weights, depth, as_of, hypothetical, budget, time_basis,
                            hinted_types, hint)).hits;
  -- Ties at the last rank stay in until recency has settled them.
  select array_agg(f.memory_id), array_agg(f.score), array_agg(f.arms)
  into   ids, scores, shares
  from   pgrecall._fuse(hits, weights, k, fusion = 'score_rrf') as f
  where  f.rank <= top_k;

  return query
  select row_number() over (order by r.score desc, r.mentioned_at desc, r.memory_id desc)::integer,
         r.*
  from (
    select m.memory_id, 'memory', m.fact_type, m.text, m.context, m.fact_key, m.source_id, m.tags,
           m.metadata, m.occurred, m.mentioned_at, m.confidence, f.score, f.arms
    from   unnest(ids, scores, shares) as f(memory_id, score, arms)
    join   pgrecall.memory m on m.bank_id = bank.bank_id and m.memory_id = f.memory_id
    union all
    select t.message_id, 'message', null, t.text, t.speaker, null, t.session_id, '{}',
           '{}', null, t.sent_at, null, f.score, f.arms
    from   unnest(ids, scores, shares) as f(memory_id, score, arms)
    join   pgrecall.message t on t.bank_id = bank.bank_id and t.message_id = f.memory_id
  ) as r(memory_id, kind, fact_type, text, context, fact_key, source_id, tags, metadata, occurred,
         mentioned_at, confidence, score, arms)
  order  by 1
  limit  top_k;
end;
$$;
comment on function pgrecall._hybrid_recall(
  pgrecall.bank, text, halfvec, tstzrange, text[], jsonb, text[], jsonb, integer, integer,
  timestamptz, halfvec, integer, text, text, text, text[], text) is
'Worker of hybrid_recall(); its arguments are checked.';

create or replace function pgrecall.hybrid_recall(
  bank         text,
  query        text,
  embedding    halfvec default null,
  during       tstzrange default null,
  fact_types   text[] default null,
  tags         text[] default null,
  filter       jsonb default null,
  arms         text[] default null,
  weights      jsonb default null,
  top_k        integer default 50,
  depth        integer default 100,
  as_of        timestamptz default now(),
  hypothetical halfvec default null,
  model        text default null,
  time_mode    text default 'boost',
  k            integer default null,
  fusion       text default null,
  time_basis   text default 'occurred',
  use_hints    boolean default false,
  budget       text default 'mid')
returns setof pgrecall.recalled
language plpgsql volatile parallel unsafe rows 50
set search_path from current
as $$
declare
  a record;
begin
  a := pgrecall._recall_arguments(
    bank, query, embedding, during, fact_types, tags, filter, arms, weights, top_k, depth,
    hypothetical, model, time_mode, k, fusion, time_basis, use_hints, budget);
  return query
  select * from pgrecall._hybrid_recall(
    a.searched, coalesce(btrim(query, E' \t\r\n'), ''), embedding, during, a.all_types,
    a.whole_filter, arms, a.all_weights, top_k, a.all_depth, coalesce(as_of, now()), hypothetical,
    coalesce(k, (a.searched).rrf_k), coalesce(fusion, (a.searched).fusion), budget, time_basis,
    a.hinted_types, a.hint);
end;
$$;
comment on function pgrecall.hybrid_recall(
  text, text, halfvec, tstzrange, text[], text[], jsonb, text[], jsonb, integer, integer,
  timestamptz, halfvec, text, text, integer, text, text, boolean, text) is
'The memories of a bank that best answer a query, best first: every arm that can help runs, '
'reciprocal rank fusion joins them. '
'Without an embedding the lexical, key, graph and temporal arms answer. during boosts what '
'occurred in the window, or filters with time_mode => ''filter''. '
'tags keeps memories with any of them; filter is a condition such as ["and", [">=", "confidence", '
'0.8], ["=", "metadata.team", "core"]]. '
'arms and weights ({"graph": 0.5}) choose and weigh arms, fusion (rrf, score_rrf) and k how they '
'are joined; as_of answers as of an earlier time; depth is how deep each arm looks. '
'arms of a row holds rank, score and contribution per arm; contributions add up to score. kind is '
'memory or message (context: its speaker, source_id: its session). '
'time_basis => ''mentioned'' takes the time of saying where it is not known when something '
'happened. use_hints searches only the types that type_hints() finds, unless too little comes. '
'budget: mid runs the arms that can contribute, as arm_plan() says; low leaves out graph, messages '
'and the hypothetical answer and looks half as deep; high skips only what has nothing to work on '
'and looks twice as deep. arms runs those and no others. '
'Errors: RC001 bank, RC004 dimensions, RC005 model, RC006 vector, RC007 nothing to recall by, '
'RC008 fact type, RC009 arm, RC011 filter, 22023 value out of range.';

create or replace function pgrecall.explain_recall(
  bank         text,
  query        text,
  embedding    halfvec default null,
  during       tstzrange default null,
  fact_types   text[] default null,
  tags         text[] default null,
  filter       jsonb default null,
  arms         text[] default null,
  weights      jsonb default null,
  top_k        integer default 50,
  depth        integer default 100,
  as_of        timestamptz default now(),
  hypothetical halfvec default null,
  model        text default null,
  time_mode    text default 'boost',
  k            integer default null,
  fusion       text default null,
  time_basis   text default 'occurred',
  use_hints    boolean default false,
  budget       text default 'mid')
returns table (arm text, status text, reason text, rows integer, best_score double precision,
               milliseconds double precision)
language plpgsql volatile parallel unsafe rows 7
set search_path from current
as $$
declare
  a record;
begin
  a := pgrecall._recall_arguments(
    bank, query, embedding, during, fact_types, tags, filter, arms, weights, top_k, depth,
    hypothetical, model, time_mode, k, fusion, time_basis, use_hints, budget);
  return query
  select r.arm, r.status, r.reason, r.rows, r.best_score, r.milliseconds
  from   jsonb_to_recordset((pgrecall._gather(
           a.searched, coalesce(btrim(query, E' \t\r\n'), ''), embedding, during, a.all_types,
           a.whole_filter, arms, a.all_weights, a.all_depth, coalesce(as_of, now()),
           hypothetical, budget, time_basis, a.hinted_types, a.hint)).report)
           as r(arm text, status text, reason text, rows integer, best_score double precision,
                milliseconds double precision);
end;
$$;
comment on function pgrecall.explain_recall(
  text, text, halfvec, tstzrange, text[], text[], jsonb, text[], jsonb, integer, integer,
  timestamptz, halfvec, text, text, integer, text, text, boolean, text) is
'What each arm does for a recall with these arguments: ran, skipped or failed and why, rows found, '
'best score, milliseconds. The reason of an arm that ran says whether types were narrowed or '
'widened. Errors: as hybrid_recall().';

create or replace function pgrecall.arm_plan(
  bank         text,
  query        text,
  embedding    halfvec default null,
  during       tstzrange default null,
  fact_types   text[] default null,
  tags         text[] default null,
  filter       jsonb default null,
  arms         text[] default null,
  weights      jsonb default null,
  top_k        integer default 50,
  depth        integer default 100,
  as_of        timestamptz default now(),
  hypothetical halfvec default null,
  model        text default null,
  time_mode    text default 'boost',
  k            integer default null,
  fusion       text default null,
  time_basis   text default 'occurred',
  use_hints    boolean default false,
  budget       text default 'mid')
returns table (arm text, is_run boolean, reason text)
language plpgsql stable parallel unsafe rows 7
set search_path from current
as $$
declare
  a    record;
  text_of text := coalesce(btrim(query, E' \t\r\n'), '');
begin
  a := pgrecall._recall_arguments(
    bank, query, embedding, during, fact_types, tags, filter, arms, weights, top_k, depth,
    hypothetical, model, time_mode, k, fusion, time_basis, use_hints, budget);
  return query
  select *
  from   pgrecall._arm_plan(
           a.searched, text_of, embedding, during, a.whole_filter, arms, a.all_weights,
           hypothetical, budget,
           arms is null and budget <> 'high' and during is not null
           and pgrecall._is_only_date(text_of));
end;
$$;
comment on function pgrecall.arm_plan(
  text, text, halfvec, tstzrange, text[], text[], jsonb, text[], jsonb, integer, integer,
  timestamptz, halfvec, text, text, integer, text, text, boolean, text) is
'Which arms hybrid_recall() would run with these arguments, and why or why not, in words and '
'without running them. The graph may still be left out once it is seen that nothing leads on from '
'what the arms before it found. Errors: as hybrid_recall().';

-- sql/99-dump.sql
-- Installed by create extension, the tables are the extension's, and pg_dump leaves their rows out
-- unless told otherwise. As a plain script there is nothing to tell.
do $$
declare
  relation regclass;
begin
  for relation in
    select c.oid
    from   pg_class c
    join   pg_depend d on d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'
    join   pg_extension x on x.oid = d.refobjid and x.extname = 'pgrecall'
    where  c.relnamespace = 'pgrecall'::regnamespace and c.relkind in ('r', 'p', 'S')
    order  by c.oid
  loop
    perform pg_extension_config_dump(relation, '');
  end loop;
end;
$$;

