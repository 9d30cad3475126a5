-- What the next release changes in the state (sql/00 to 19) of a database that has the latest
-- release, and what it removes. Functions and views are re-created by the upgrade itself.

-- It returns two columns more.
drop function pgrecall._phrases(text);

-- retain() keeps how sure it was of whom a name means.
alter table pgrecall.mention add column confidence real not null default 1;
alter table pgrecall.mention
  add constraint mention_confidence_check check (confidence between 0 and 1);
comment on column pgrecall.mention.confidence is
'Belief that the fact means this entity and none of the same name, 0 to 1. See resolution in '
'retain().';
comment on column pgrecall.relation.confidence is
'Belief in the edge, 0 to 1: as given, times the belief that the fact means these two entities.';
-- Names are resolved for all facts at once.
drop function pgrecall._entity(text, text);

-- The newest relations of an entity are read without reading all of them.
create index relation_bank_id_from_id_relation_id_idx
  on pgrecall.relation (bank_id, from_id, relation_id);
create index relation_bank_id_to_id_relation_id_idx
  on pgrecall.relation (bank_id, to_id, relation_id);
drop index pgrecall.relation_bank_id_from_id_idx;
drop index pgrecall.relation_bank_id_to_id_idx;
