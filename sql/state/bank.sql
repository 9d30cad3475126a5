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
'Text search configuration of the lexical arms, such as english or simple. Another one does a full '
'refresh_statistics().';
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
