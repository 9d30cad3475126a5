-- What the next release changes in the state (sql/00 to 19) of a database that has the latest
-- release, and what it removes. Functions and views are re-created by the upgrade itself.

-- Vector indexes.
alter table pgrecall.bank add column hnsw_threshold integer not null default 20000;
alter table pgrecall.bank add column hnsw_m integer not null default 16;
alter table pgrecall.bank add column hnsw_ef_construction integer not null default 64;
alter table pgrecall.bank add column ef_search integer not null default 100;
alter table pgrecall.bank add column vector_search text not null default 'full';
alter table pgrecall.bank add column leading_dimensions integer not null default 256;
alter table pgrecall.bank add column exact_limit integer not null default 1000000;
alter table pgrecall.bank add constraint bank_hnsw_threshold_check
  check (hnsw_threshold between 1 and 1000000000);
alter table pgrecall.bank add constraint bank_hnsw_m_check
  check (hnsw_m between 2 and 100);
alter table pgrecall.bank add constraint bank_hnsw_ef_construction_check
  check (hnsw_ef_construction between greatest(4, 2 * hnsw_m) and 1000);
alter table pgrecall.bank add constraint bank_ef_search_check
  check (ef_search between 1 and 1000);
alter table pgrecall.bank add constraint bank_vector_search_check
  check (vector_search in ('full', 'binary', 'leading'));
alter table pgrecall.bank add constraint bank_leading_dimensions_check
  check (leading_dimensions between 1 and 4000);
alter table pgrecall.bank add constraint bank_exact_limit_check
  check (exact_limit >= 0);
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
drop function pgrecall._semantic(text, halfvec, text[], jsonb, timestamptz, integer);
