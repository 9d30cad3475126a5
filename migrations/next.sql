-- What the next release changes in the state (sql/00 to 19) of a database that has the latest
-- release, and what it removes. Functions and views are re-created by the upgrade itself.

-- Re-embedding.
alter table pgrecall.bank add column next_model text;
alter table pgrecall.bank add column next_dimensions integer;
alter table pgrecall.bank add column previous_model text;
alter table pgrecall.bank add constraint bank_next_model_check
  check (next_model <> '' and next_model <> embedding_model);
alter table pgrecall.bank add constraint bank_next_dimensions_check
  check (next_dimensions between 1 and 4000);
alter table pgrecall.bank add constraint bank_next_check
  check ((next_model is null) = (next_dimensions is null));
comment on column pgrecall.bank.next_model is
'Model that the bank is being re-embedded with; nothing is searched by it before '
'reembed_finish(). Null: none.';
comment on column pgrecall.bank.next_dimensions is 'Length of the embeddings of next_model.';
comment on column pgrecall.bank.previous_model is
'Model before the last reembed_finish(), while reembed_clean() has still to remove its '
'embeddings; empty when it had no name. Null: none.';
alter table pgrecall.embedding add column text text;
comment on column pgrecall.embedding.text is
'The question that was embedded; null for the text of the memory, and where nobody gave it: such '
'a question cannot be re-embedded.';
drop function pgrecall._semantic(text, halfvec, text[], jsonb, timestamptz, integer);
drop function pgrecall._seeds(text, text, halfvec, text[], jsonb, timestamptz);
