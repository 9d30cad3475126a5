-- Entities: what facts are about, the names they have, and how they are related.
--
-- A fact names entities; retain() resolves each name to an entity by its aliases
-- (retain/mention.sql) and stores the result as a mention. A name may be an alias of several
-- entities: confidence says how certain an alias or a mention is. A relation is stated by a fact
-- about two entities; it is deleted with the fact. Entities have no further properties: everything
-- known about them is in the facts that mention them. mention repeats fact_type, since the graph
-- arm reads the latest facts per type in primary key order.

create table pgrecall.entity (
  bank_id    text not null,
  entity_id  bigint not null default nextval('pgrecall.id_seq'),
  name       text not null,
  kind       text,
  created_at timestamptz not null default now(),
  constraint entity_pkey primary key (bank_id, entity_id),
  constraint entity_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade,
  constraint entity_name_check check (name <> '' and length(name) <= 500)
);
comment on table pgrecall.entity is 'People, places, projects, things: what facts are about.';
comment on column pgrecall.entity.kind is 'person, place, project, ...; any word. Null: unknown.';

create table pgrecall.entity_alias (
  bank_id    text not null,
  alias      text not null,
  entity_id  bigint not null,
  confidence real not null default 1,
  constraint entity_alias_pkey primary key (bank_id, alias, entity_id),
  constraint entity_alias_bank_id_entity_id_fkey
    foreign key (bank_id, entity_id) references pgrecall.entity (bank_id, entity_id)
    on delete cascade,
  constraint entity_alias_alias_check check (alias <> ''),
  constraint entity_alias_confidence_check check (confidence between 0 and 1)
);
comment on table pgrecall.entity_alias is
'Names of entities, the main one included. One name can be an alias of several entities.';
comment on column pgrecall.entity_alias.alias is 'Normalised by pgrecall.normalised_name().';
comment on column pgrecall.entity_alias.confidence is
'Confidence that the name means this entity, 0 to 1.';

create index entity_alias_bank_id_entity_id_idx on pgrecall.entity_alias (bank_id, entity_id)
  where entity_id is not null;
-- Ana Silva as "Ana" or "Silva": _name_parts().
create index entity_alias_bank_id_first_idx on pgrecall.entity_alias
  (bank_id, split_part(pgrecall_internal._unaccented(alias), ' ', 1)) where strpos(alias, ' ') > 0;
create index entity_alias_bank_id_last_idx on pgrecall.entity_alias
  (bank_id, split_part(pgrecall_internal._unaccented(alias), ' ', -1)) where strpos(alias, ' ') > 0;

-- Names that are typed without their accents: _query_names().
create index entity_alias_unaccented_idx on pgrecall.entity_alias
  (bank_id, pgrecall_internal._unaccented(alias))
  where pgrecall_internal._unaccented(alias) <> alias;

create table pgrecall.mention (
  bank_id   text not null,
  entity_id bigint not null,
  fact_type text not null,
  memory_id bigint not null,
  confidence real not null default 1,
  constraint mention_pkey primary key (bank_id, entity_id, fact_type, memory_id),
  constraint mention_bank_id_entity_id_fkey
    foreign key (bank_id, entity_id) references pgrecall.entity (bank_id, entity_id)
    on delete cascade,
  constraint mention_bank_id_memory_id_fkey
    foreign key (bank_id, memory_id) references pgrecall.memory (bank_id, memory_id)
    on delete cascade,
  constraint mention_confidence_check check (confidence between 0 and 1)
);
comment on table pgrecall.mention is 'Which fact mentions which entity.';
comment on column pgrecall.mention.fact_type is
'As in memory: the arms query each fact type apart.';
comment on column pgrecall.mention.confidence is
'Confidence that the fact means this entity and not another one of the same name, 0 to 1.';

create index mention_bank_id_memory_id_idx on pgrecall.mention (bank_id, memory_id, entity_id)
  where memory_id is not null;

create table pgrecall.relation (
  bank_id     text not null,
  relation_id bigint not null default nextval('pgrecall.id_seq'),
  from_id     bigint not null,
  kind        text not null,
  to_id       bigint not null,
  memory_id   bigint not null,
  confidence  real not null default 1,
  valid_from  timestamptz,
  valid_to    timestamptz,
  constraint relation_pkey primary key (bank_id, relation_id),
  constraint relation_bank_id_from_id_fkey
    foreign key (bank_id, from_id) references pgrecall.entity (bank_id, entity_id)
    on delete cascade,
  constraint relation_bank_id_to_id_fkey
    foreign key (bank_id, to_id) references pgrecall.entity (bank_id, entity_id)
    on delete cascade,
  constraint relation_bank_id_memory_id_fkey
    foreign key (bank_id, memory_id) references pgrecall.memory (bank_id, memory_id)
    on delete cascade,
  constraint relation_kind_check check (kind <> ''),
  constraint relation_to_id_check check (to_id <> from_id),
  constraint relation_confidence_check check (confidence between 0 and 1),
  constraint relation_valid_to_check check (valid_to > valid_from)
);
comment on table pgrecall.relation is 'Typed relations between entities: Ana reports_to Sam.';
comment on column pgrecall.relation.kind is 'reports_to, lives_in, owns, ...; any word.';
comment on column pgrecall.relation.memory_id is 'The fact that states it.';
comment on column pgrecall.relation.confidence is
'Confidence in the relation, 0 to 1: as given, times the confidence of the two mentions.';
comment on column pgrecall.relation.valid_from is
'The relation holds from here on. Null: always.';
comment on column pgrecall.relation.valid_to is 'The relation ended here. Null: it still holds.';

create unique index relation_bank_id_memory_id_key
  on pgrecall.relation (bank_id, memory_id, from_id, kind, to_id) where memory_id is not null;
create index relation_bank_id_from_id_relation_id_idx
  on pgrecall.relation (bank_id, from_id, relation_id) where from_id is not null;
create index relation_bank_id_from_id_kind_relation_id_idx
  on pgrecall.relation (bank_id, from_id, kind, relation_id) where from_id is not null;
create index relation_bank_id_to_id_relation_id_idx
  on pgrecall.relation (bank_id, to_id, relation_id) where to_id is not null;

create table pgrecall_internal.name_lock (
  bank_id text not null,
  slot    integer not null,
  constraint name_lock_pkey primary key (bank_id, slot),
  constraint name_lock_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade
);
comment on table pgrecall_internal.name_lock is
'Rows that writers lock, by updating them, for new names of entities and for keys that replace '
'facts: two writers of the same one take turns. The rows hold nothing and can be deleted.';
comment on column pgrecall_internal.name_lock.slot is 'Hash of the name, 0 to 4095.';
