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
comment on column pgrecall.statistics.average_length is 'Mean number of lexemes of a document.';
comment on column pgrecall.statistics.weighted_length is
'The mean that the stored weights were made with; they are made anew when it strays.';
comment on column pgrecall.statistics.watermark is 'Documents up to this id are counted.';

create table pgrecall.lexeme (
  bank_id        text not null,
  kind           text not null,
  lexeme         text not null,
  document_count integer not null,
  constraint lexeme_pkey primary key (bank_id, kind, lexeme),
  constraint lexeme_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade,
  constraint lexeme_kind_check check (kind in ('memory', 'message')),
  constraint lexeme_document_count_check check (document_count >= 1)
);
comment on column pgrecall.lexeme.kind is 'memory or message, as in statistics.';
comment on column pgrecall.lexeme.document_count is 'Number of documents it stands in.';
comment on table pgrecall.lexeme is
'In how many documents of a bank a lexeme stands. A lexeme that is not here counts as rare.';
