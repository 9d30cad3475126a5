-- Sessions and raw messages.
--
-- A message is verbatim text with its speaker and time. The message arm searches it with BM25, as
-- the lexical arm does with facts (table memory has the same lexical columns), but it has no
-- embedding, no entities and no links. Messages share the sequence of ids with memories, so that an
-- id in an answer is unique.
-- A session groups messages and has a start and an end.

create table pgrecall.session (
  bank_id    text not null,
  session_id text not null,
  started_at timestamptz not null,
  ended_at   timestamptz,
  constraint session_pkey primary key (bank_id, session_id),
  constraint session_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade,
  constraint session_session_id_check check (session_id <> ''),
  constraint session_ended_at_check check (ended_at >= started_at)
);
comment on table pgrecall.session is
'Conversations with their start and end, for questions such as "since we last talked".';
comment on column pgrecall.session.ended_at is 'Null: not over yet.';

create index session_bank_id_ended_at_idx on pgrecall.session (bank_id, ended_at)
  where ended_at is not null;

create table pgrecall.message (
  bank_id         text not null,
  message_id      bigint not null default nextval('pgrecall.id_seq'),
  session_id      text,
  role            text not null default 'user',
  speaker         text,
  text            text not null,
  sent_at         timestamptz not null default now(),
  content_hash    bytea not null,
  lexical_length  integer not null default 0,
  lexical_weights sparsevec not null default '{}/1000000000',
  constraint message_pkey primary key (bank_id, message_id),
  constraint message_bank_id_fkey
    foreign key (bank_id) references pgrecall.bank (bank_id) on delete cascade,
  constraint message_bank_id_session_id_fkey
    foreign key (bank_id, session_id) references pgrecall.session (bank_id, session_id),
  constraint message_role_check check (role in ('user', 'assistant', 'system', 'tool')),
  constraint message_text_check check (text <> '' and length(text) <= 100000),
  constraint message_content_hash_check check (octet_length(content_hash) = 32),
  constraint message_lexical_length_check check (lexical_length >= 0)
);
comment on table pgrecall.message is
'Raw conversation; covers what was not extracted as a fact. Written by retain_messages().';
comment on column pgrecall.message.content_hash is
'SHA-256 of session, role, speaker, text and time: retaining it again stores nothing.';
comment on column pgrecall.message.lexical_length is 'Number of lexemes, repeated ones counted.';
comment on column pgrecall.message.lexical_weights is
'BM25 weight per lexeme without the IDF; dimension = hash of the lexeme.';

create unique index message_bank_id_content_hash_key on pgrecall.message (bank_id, content_hash)
  where content_hash is not null;
create index message_bank_id_session_id_idx on pgrecall.message (bank_id, session_id, sent_at)
  where session_id is not null;
create index message_lexical_keys_idx on pgrecall.message
  using gin (pgrecall_internal._lexical_keys(bank_id, 'message', lexical_weights))
  with (fastupdate = off);
