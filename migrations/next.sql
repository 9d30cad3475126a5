-- What the next release changes in the state (sql/00 to 19) of a database that has the latest
-- release, and what it removes. Functions and views are re-created by the upgrade itself.

drop index pgrecall.memory_bank_id_fact_type_occurred_idx;
create index memory_bank_id_fact_type_occurred_idx
  on pgrecall.memory (bank_id, fact_type, lower(occurred), upper(occurred))
  where occurred is not null;
