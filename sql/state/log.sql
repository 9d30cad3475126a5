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
