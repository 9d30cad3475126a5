-- Typed rows of facts and messages for retain() and retain_messages(): JSON is read once.
--
-- _read_fact() and _read_message() check each element of the array that the caller passed and turn
-- it into one row of type fact_row or message_row. Everything that is written afterwards (memories,
-- embeddings, entities, relations, links) comes from an array of these rows; no later step reads
-- JSON. Names are normalised here, once, since every later step compares them.
-- The types are private: no public function takes or returns them.

create type pgrecall_internal.fact_name as (
  name       text,
  alias      text,
  kind       text,
  kind_class text,
  aliases    text[]
);
comment on type pgrecall_internal.fact_name is
'A name in a fact: of an entity that it lists, or of one end of a relation. alias: the name '
'normalised. kind: as given; null: not given. kind_class: kind as _kind_class() compares it. '
'aliases: the other names given for the entity, normalised.';

create type pgrecall_internal.fact_relation as (
  from_name  text,
  from_alias text,
  kind       text,
  to_name    text,
  to_alias   text,
  confidence real,
  valid_from timestamptz,
  valid_to   timestamptz
);
comment on type pgrecall_internal.fact_relation is
'A relation in a fact. from_name, to_name: its ends as given. from_alias, to_alias: normalised.';

create type pgrecall_internal.fact_link as (
  kind     text,
  weight   real,
  to_id    bigint,
  to_index integer,
  to_key   text,
  target   jsonb
);
comment on type pgrecall_internal.fact_link is
'A causal link in a fact. It leads to a memory by one of: to_id, to_index (position in the array, '
'from 0), to_key (a fact_key). target: that field as given, for the error message.';

create type pgrecall_internal.fact_vector as (
  model     text,
  kind      text,
  ordinal   smallint,
  embedding halfvec,
  text      text,
  tokens    bytea
);
comment on type pgrecall_internal.fact_vector is
'An embedding of a fact (kind text), of a part of it that the model does not read otherwise '
'(part), or of a question that it answers (question, text if given), ordinal from 0, as table '
'embedding stores it, with the token vectors of a text.';

create type pgrecall_internal.fact_row as (
  n            integer,
  fact_type    text,
  text         text,
  context      text,
  fact_key     text,
  source_id    text,
  tags         text[],
  metadata     jsonb,
  occurred     tstzrange,
  mentioned_at timestamptz,
  confidence   real,
  proof_count  integer,
  content_hash bytea,
  names        pgrecall_internal.fact_name[],
  relations    pgrecall_internal.fact_relation[],
  links        pgrecall_internal.fact_link[],
  vectors      pgrecall_internal.fact_vector[],
  expires_at   timestamptz
);
comment on type pgrecall_internal.fact_row is
'A fact that retain() was given, checked. n: position in the array, from 1. Defaults are filled '
'in, but mentioned_at and expires_at are null where they were not given. names: the entities it '
'lists, then the ends of its relations, in the order given. vectors: embeddings of the bank''s '
'model and of the one that it is being re-embedded with.';

create type pgrecall_internal.fact_mention as (
  n          integer,
  memory_id  bigint,
  fact_type  text,
  name       text,
  alias      text,
  kind       text,
  kind_class text
);
comment on type pgrecall_internal.fact_mention is
'A name in a stored fact, to be resolved to an entity. n: position of the fact in the array, from '
'1. The other attributes are as in fact_row and fact_name.';

create type pgrecall_internal.slot_member as (
  slot      text,
  memory_id bigint,
  value     text,
  said_at   timestamptz,
  ends_at   timestamptz,
  is_said   boolean,
  trust     double precision
);
comment on type pgrecall_internal.slot_member is
'A fact among those that replace one another. slot: a key, or a relation of an entity. value: the '
'value it states; only another value replaces it. said_at: when the fact was said. ends_at: its '
'valid_to. is_said: it is in the current call of retain(). trust: that of its source.';

create type pgrecall_internal.message_row as (
  n            integer,
  session_id   text,
  role         text,
  speaker      text,
  text         text,
  sent_at      timestamptz,
  content_hash bytea
);
comment on type pgrecall_internal.message_row is
'A message that retain_messages() was given, checked. n: position in the array, from 1. sent_at is '
'null where it was not given.';

create type pgrecall_internal.attached_fact as (
  key       text,
  fact      jsonb,
  row_hash  bytea,
  memory_id bigint,
  status    text
);
comment on type pgrecall_internal.attached_fact is
'A row of an attached table, as sync_table() reads it. fact: as retain() takes it; null: the row '
'is gone, or has no text. memory_id: the memory that holds it; null: none. status: new, changed, '
'gone or same.';
