-- The user's own tables whose rows are memories, and what has changed in them.
--
-- attach_table() (operations/attachment.sql) writes a row of attachment and puts triggers on the
-- table. They note the keys that change in attached_change, in the transaction that changes them: a
-- rollback leaves no note, and a note is never visible without its row. sync_table()
-- (operations/sync.sql) reads the rows of these keys and retains, updates or forgets their
-- memories; attached_row says which memory was made from which row, and from what content. Tables
-- are known by name, not by oid, so that a dump of these rows can be restored anywhere.

create table pgrecall.attachment (
  bank_id         text not null,
  relation        text not null,
  key             text not null,
  columns         jsonb not null,
  fact_type       text not null,
  apply           text not null default 'later',
  is_history_kept boolean not null default true,
  is_copied       boolean not null default false,
  copied_key      text,
  created_at      timestamptz not null default now(),
  note_name       text not null,
  constraint attachment_pkey primary key (bank_id, relation),
  constraint attachment_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade,
  constraint attachment_columns_check check (jsonb_typeof(columns) = 'object'),
  constraint attachment_apply_check check (apply in ('later', 'commit')),
  constraint attachment_note_name_check check (
    note_name = 'pgrecall_' || left(encode(sha256(convert_to(
      jsonb_build_array(bank_id, relation, key, columns)::text, 'UTF8')), 'hex'), 16))
);
comment on table pgrecall.attachment is
'Tables whose rows are memories of a bank. Written by attach_table() and sync_table().';
comment on column pgrecall.attachment.relation is
'Schema and name of the table, quoted if need be.';
comment on column pgrecall.attachment.note_name is
'Name of the function of its triggers, a hash: everybody may read the definitions of functions. '
'It stands for bank, table and columns, so that who writes this row can claim none that the owner '
'of the table, whose triggers have the name, has not attached.';
comment on column pgrecall.attachment.key is 'The column that tells rows apart.';
comment on column pgrecall.attachment.columns is
'The columns that make up each field of a fact: {"text": ["body"], "entities": ["author"]}.';
comment on column pgrecall.attachment.fact_type is
'The fact type of rows where no column gives one.';
comment on column pgrecall.attachment.apply is
'When changes reach the bank. later: with sync_table(); commit: when the transaction that made '
'them commits.';
comment on column pgrecall.attachment.is_history_kept is
'Whether a changed row keeps its former content, for recalls as of an earlier time.';
comment on column pgrecall.attachment.is_copied is 'Whether the first pass over all rows is done.';
comment on column pgrecall.attachment.copied_key is
'How far that pass has come, in order of the key; null: not begun.';

create index attachment_note_name_idx on pgrecall.attachment (note_name);

create table pgrecall.attached_row (
  bank_id   text not null,
  memory_id bigint not null,
  relation  text not null,
  key       text not null,
  row_hash  bytea not null,
  constraint attached_row_pkey primary key (bank_id, memory_id),
  constraint attached_row_bank_id_memory_id_fkey
    foreign key (bank_id, memory_id) references pgrecall.memory (bank_id, memory_id)
    on delete cascade,
  constraint attached_row_bank_id_relation_fkey
    foreign key (bank_id, relation) references pgrecall.attachment (bank_id, relation)
    on delete cascade,
  constraint attached_row_row_hash_check check (octet_length(row_hash) = 32)
);
comment on table pgrecall.attached_row is
'The memories made from rows of attached tables, from former contents of a row too. Join it to the '
'table by key.';
comment on column pgrecall.attached_row.relation is 'The table, as in attachment.';
comment on column pgrecall.attached_row.key is 'The key of the row, as text.';
comment on column pgrecall.attached_row.row_hash is
'SHA-256 of the fact made from the row: a row that gives the same fact again is left alone.';

create index attached_row_bank_id_relation_idx
  on pgrecall.attached_row (bank_id, relation, key, memory_id) where relation is not null;

create table pgrecall.attached_change (
  bank_id   text not null,
  change_id bigint not null default nextval('pgrecall.id_seq'),
  relation  text not null,
  key       text,
  noted_at  timestamptz not null default now(),
  problem   text,
  constraint attached_change_pkey primary key (bank_id, change_id),
  constraint attached_change_bank_id_relation_fkey
    foreign key (bank_id, relation) references pgrecall.attachment (bank_id, relation)
    on delete cascade
);
comment on table pgrecall.attached_change is
'Changes of attached tables that have not reached the bank, and rows that cannot be stored. '
'Written by the triggers on the tables.';
comment on column pgrecall.attached_change.relation is 'The table, as in attachment.';
comment on column pgrecall.attached_change.key is
'The key of a row that was inserted, updated or deleted; null: the table was emptied.';
comment on column pgrecall.attached_change.noted_at is
'When the transaction that made the change began.';
comment on column pgrecall.attached_change.problem is
'Why the row could not be stored; the next change to the row tries again. Null: not tried yet.';

-- One index of the notes that wait, one of the rows that failed. A batch takes the oldest notes
-- from the first and looks up its keys in the second, however many either holds.
create index attached_change_bank_id_relation_idx
  on pgrecall.attached_change (bank_id, relation, change_id) where problem is null;
create index attached_change_bank_id_relation_key_idx
  on pgrecall.attached_change (bank_id, relation, key) where problem is not null;
