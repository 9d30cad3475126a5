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
  candidate_limit      integer not null default 9000,
  created_at           timestamptz not null default now(),
  type_hints           jsonb,
  widen_below          integer not null default 5,
  context_weight       real not null default 0.5,
  key_weight           real not null default 1,
  gates                jsonb not null default '{}',
  recency_half_life    interval,
  recency_decay        text not null default 'exponential',
  named_boost          real not null default 0.5,
  is_name_embedded     boolean not null default false,
  time_settings        jsonb not null default '{}',
  message_context_weight real not null default 0,
  hnsw_threshold       integer not null default 20000,
  hnsw_m               integer not null default 16,
  hnsw_ef_construction integer not null default 64,
  ef_search            integer not null default 100,
  vector_search        text not null default 'full',
  leading_dimensions   integer not null default 256,
  exact_limit          integer not null default 1000000,
  next_model           text,
  next_dimensions      integer,
  previous_model       text,
  lexical_backend      text not null default 'sparsevec',
  constraint bank_pkey primary key (bank_id),
  constraint bank_bank_id_check check (bank_id <> '' and length(bank_id) <= 200),
  constraint bank_embedding_model_check check (embedding_model <> ''),
  constraint bank_embedding_dimensions_check check (embedding_dimensions between 1 and 4000),
  constraint bank_weights_check check (jsonb_typeof(weights) = 'object'),
  constraint bank_fusion_check check (fusion in ('rrf', 'score_rrf', 'linear')),
  constraint bank_rrf_k_check check (rrf_k between 1 and 10000),
  constraint bank_similarity_floor_check check (similarity_floor between -1 and 1),
  constraint bank_bm25_k1_check check (bm25_k1 between 0 and 10),
  constraint bank_bm25_b_check check (bm25_b between 0 and 1),
  constraint bank_candidate_limit_check check (candidate_limit between 100 and 100000000),
  constraint bank_type_hints_check check (jsonb_typeof(type_hints) = 'object'),
  constraint bank_widen_below_check check (widen_below between 0 and 1000),
  constraint bank_context_weight_check check (context_weight between 0 and 100),
  constraint bank_key_weight_check check (key_weight between 0 and 100),
  constraint bank_gates_check check (jsonb_typeof(gates) = 'object'),
  constraint bank_recency_half_life_check
    check (recency_half_life is null or (recency_half_life > interval '0' and fusion = 'linear')),
  constraint bank_recency_decay_check check (recency_decay in ('exponential', 'linear')),
  constraint bank_named_boost_check check (named_boost between 0 and 10),
  constraint bank_time_settings_check check (jsonb_typeof(time_settings) = 'object'),
  constraint bank_message_context_weight_check check (message_context_weight between 0 and 100),
  constraint bank_hnsw_threshold_check check (hnsw_threshold between 1 and 1000000000),
  constraint bank_hnsw_m_check check (hnsw_m between 2 and 100),
  constraint bank_hnsw_ef_construction_check
    check (hnsw_ef_construction between greatest(4, 2 * hnsw_m) and 1000),
  constraint bank_ef_search_check check (ef_search between 1 and 1000),
  constraint bank_vector_search_check check (vector_search in ('full', 'binary', 'leading')),
  constraint bank_leading_dimensions_check check (leading_dimensions between 1 and 4000),
  constraint bank_exact_limit_check check (exact_limit >= 0),
  constraint bank_next_model_check check (next_model <> '' and next_model <> embedding_model),
  constraint bank_next_dimensions_check check (next_dimensions between 1 and 4000),
  constraint bank_next_check check ((next_model is null) = (next_dimensions is null)),
  constraint bank_lexical_backend_check check (lexical_backend in ('sparsevec', 'pg_textsearch'))
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
'rrf, score_rrf or linear, as the functions of these names join the arms.';
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
'About how many facts the lexical arms score at most, those with the rarest words and sets of '
'words first; a quarter as many where these are enough.';
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
comment on column pgrecall.bank.gates is
'Least best score per arm: {"semantic": 0.3}. An arm that stays below is left out of the answer.';
comment on column pgrecall.bank.recency_half_life is
'Age at which recency neither lifts nor lowers; with fusion linear alone. Null: age says nothing.';
comment on column pgrecall.bank.recency_decay is
'exponential, or linear: gone at twice the half-life.';
comment on column pgrecall.bank.named_boost is
'How much more a memory counts that mentions an entity named in the query: its contributions are '
'multiplied by 1 + named_boost * the confidence in the entity. 0: nothing.';
comment on column pgrecall.bank.is_name_embedded is
'Whether questions are embedded with the names of entities in them; otherwise prepare_recall() '
'takes them out.';
comment on column pgrecall.bank.time_settings is
'How the driver reads times in questions: {"language": "de", "country": "AT", "southern": false, '
'"day_first": true, "recent_days": 30, "few": 3}, any of them.';
comment on column pgrecall.bank.message_context_weight is
'What a word in the messages right before and after one counts beside a word in its own text, as '
'in BM25F; 0: nothing. Takes effect on stored messages at the next full refresh_statistics().';
comment on column pgrecall.bank.hnsw_threshold is
'Vectors of one fact type from which index_plan() wants an HNSW index; below half of it, none.';
comment on column pgrecall.bank.hnsw_m is
'Neighbours that an element of an HNSW index has, 2 to 100.';
comment on column pgrecall.bank.hnsw_ef_construction is
'Candidates weighed when an HNSW index takes in an element, from twice hnsw_m to 1000.';
comment on column pgrecall.bank.ef_search is
'Candidates that a search of an HNSW index keeps, 1 to 1000; never fewer than it is to find.';
comment on column pgrecall.bank.vector_search is
'full: by the whole vectors. binary: by the signs of their elements. leading: by their first '
'leading_dimensions, for models trained for that (Matryoshka). The whole vectors rank what the '
'last two find.';
comment on column pgrecall.bank.leading_dimensions is
'Elements that vector_search leading compares first; all of a shorter vector.';
comment on column pgrecall.bank.exact_limit is
'Vectors of one fact type up to which all that pass a filter are compared where its HNSW index '
'finds too few of them; beyond, warning 01RC2 says that some may be missing.';
comment on column pgrecall.bank.next_model is
'Model that the bank is being re-embedded with; nothing is searched by it before '
'reembed_finish(). Null: none.';
comment on column pgrecall.bank.next_dimensions is 'Length of the embeddings of next_model.';
comment on column pgrecall.bank.previous_model is
'Model before the last reembed_finish(), while reembed_clean() has still to remove its '
'embeddings; empty when it had no name. Null: none.';
comment on column pgrecall.bank.lexical_backend is
'What answers the lexical arm: sparsevec, which is exact and needs nothing else, or the index of '
'the extension pg_textsearch that lexical_index_plan() asks for.';

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
