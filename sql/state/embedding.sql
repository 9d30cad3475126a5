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
  constraint embedding_kind_check
    check (kind in ('text', 'part', 'question', 'relation', 'usage')),
  constraint embedding_ordinal_check check (ordinal >= 0)
) partition by hash (bank_id);
comment on table pgrecall.embedding is
'Vectors, stored apart from the facts, so that a bank can hold those of two models.';
comment on column pgrecall.embedding.model is
'Model that made it; empty when the caller named none.';
comment on column pgrecall.embedding.kind is
'text: of the fact itself, or as much of it as the model reads. part: of what follows in a longer '
'one, or of it with its heading. question: of a question that the fact answers. relation: of the '
'words of a kind of relation that the fact states, one row for each kind of a bank. usage: the '
'mean of these words and of the facts that state the kind.';
comment on column pgrecall.embedding.ordinal is
'Number of the part, the question or the kind of relation among those of one fact, from 0.';
comment on column pgrecall.embedding.fact_type is
'As in memory: the arms query each fact type apart. Empty for relation and usage, which belong to '
'no single fact, so that no arm that searches by fact type finds them.';
comment on column pgrecall.embedding.text is
'The question, or the words of a relation, that were embedded; null for the text of the memory and '
'its parts, and for a question whose text was not given, which cannot be re-embedded.';
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
  if partitions < 1 then
    raise exception using
      errcode = 'RC012',
      message = format('pgrecall.partitions must be at least 1, not %s', partitions),
      hint    = 'Leave it at 32: reset pgrecall.partitions;';
  end if;
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
