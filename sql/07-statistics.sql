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
