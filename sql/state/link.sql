-- Links between facts, which the graph arm follows besides mentions and relations.
--
-- The number of links that a fact has is bounded when it is written, so that neither storage nor
-- the time of a recall grows with the square of the bank. Links between facts of the same entity
-- are not stored, for mentions imply them, nor between similar ones, which are searched for.
-- retain() and link_pending() write links (retain/link.sql).
-- Deleting a memory deletes its links, in both directions.

create table pgrecall.link (
  bank_id text not null,
  from_id bigint not null,
  kind    text not null,
  to_id   bigint not null,
  weight  real not null,
  constraint link_pkey primary key (bank_id, from_id, kind, to_id),
  constraint link_bank_id_from_id_fkey
    foreign key (bank_id, from_id) references pgrecall.memory (bank_id, memory_id)
    on delete cascade,
  constraint link_bank_id_to_id_fkey
    foreign key (bank_id, to_id) references pgrecall.memory (bank_id, memory_id)
    on delete cascade,
  constraint link_kind_check
    check (kind in ('temporal', 'causes', 'caused_by', 'enables', 'prevents')),
  constraint link_to_id_check check (to_id <> from_id),
  constraint link_weight_check check (weight between 0 and 1)
);
comment on table pgrecall.link is
'Edges between facts, bounded when written: 1 temporal a fact, causal ones as given.';
comment on column pgrecall.link.kind is
'temporal, or causal: causes, caused_by, enables, prevents. Directed.';
comment on column pgrecall.link.weight is
'temporal: 1 at the same time, 0 a day apart. causal: confidence, 0 to 1.';

create index link_bank_id_to_id_idx on pgrecall.link (bank_id, to_id, kind)
  where to_id is not null;
