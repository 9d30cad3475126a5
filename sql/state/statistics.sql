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
-- Spellings of words that are typed without accents: _terms().
create index lexeme_unaccented_idx on pgrecall_internal.lexeme
  (bank_id, kind, pgrecall_internal._unaccented(lexeme))
  where pgrecall_internal._unaccented(lexeme) <> lexeme;
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
