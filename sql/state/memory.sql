-- Facts: table memory, and the functions that its indexes use.
--
-- A row is one fact, as retain() wrote it. Its content never changes: a correction sets valid_to
-- and records the previous values in corrections; forget() deletes it. Embeddings, mentions,
-- relations and links are in tables of their own and refer to it by (bank_id, memory_id). Every key
-- and every index begins with bank_id, so that banks do not slow each other down and can be
-- distributed; the lexical index hashes the bank into its keys instead, since GIN cannot order.
-- content_hash makes retain() idempotent. lexical_weights is a sparse vector of BM25 weights
-- without the IDF, which changes with each document and is multiplied in at query time.

-- Indexes use the functions below: a change of one needs a migration that rebuilds its indexes.

create or replace function pgrecall_internal._normalised(content text)
returns text
-- Strict: the planner then knows that a compared key is not null, as the partial index requires.
language plpgsql immutable strict parallel safe
as $$
declare
  -- What Unicode calls default ignorable, as soft hyphens and marks of direction, but not the
  -- non-joiner, which parts words; the points of Hebrew and Arabic, and the stroke that lengthens.
  unread constant text :=
    '\u00ad\u034f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061c\u0640'
    '\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u115f\u1160'
    '\u17b4\u17b5\u180b-\u180f\u200d-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff'
    '\U000e0000-\U000e0fff';
  digits constant text :=
    '\u0660-\u0669\u06f0-\u06f9\u07c0-\u07c9\u0966-\u096f\u09e6-\u09ef\u0a66-\u0a6f'
    '\u0ae6-\u0aef\u0b66-\u0b6f\u0be6-\u0bef\u0c66-\u0c6f\u0ce6-\u0cef\u0d66-\u0d6f'
    '\u0e50-\u0e59\u0ed0-\u0ed9\u0f20-\u0f29\u1040-\u1049\u1090-\u1099\u17e0-\u17e9'
    '\u1810-\u1819\u19d0-\u19d9\u1b50-\u1b59\u1c50-\u1c59\ua9d0-\ua9d9\uabf0-\uabf9';
  code   integer;
begin
  -- Shortcut for plain ASCII, as most texts are, and for single-byte encodings.
  if octet_length(content) = length(content) or getdatabaseencoding() <> 'UTF8' then
    return content;
  end if;
  content := normalize(content, nfkc);
  if content !~ ('[' || unread || digits || ']') then
    return content;
  end if;
  content := regexp_replace(content, '[' || unread || ']+', '', 'g');
  loop
    code := ascii(substring(content from '[' || digits || ']'));
    exit when code is null;
    -- The zeros of a script end in 0, those of the scripts of India in 6, in hexadecimal.
    code := code / 16 * 16 + case when code between 2304 and 3583 then 6 else 0 end;
    content := translate(
      content, (select string_agg(chr(code + n), '' order by n) from generate_series(0, 9) as n),
      '0123456789');
  end loop;
  return content;
end;
$$;
comment on function pgrecall_internal._normalised is
'A text in Unicode form NFKC, for comparisons: one code point for an accented letter, wide letters '
'and digits as plain ones; with the digits of all scripts as 0 to 9, and without what is not seen, '
'as soft hyphens, and the points of Hebrew and Arabic. Unchanged in a database whose encoding is '
'not UTF8.';

create or replace function pgrecall_internal._unaccented(content text)
returns text
-- Strict, as above.
language plpgsql immutable strict parallel safe
as $$
begin
  if octet_length(content) = length(content) or getdatabaseencoding() <> 'UTF8' then
    return content;
  end if;
  -- Unicode neither takes the stroke from a letter nor parts two that are written as one.
  content := translate(normalize(content, nfd), 'đħıłøŧĐĦŁØŦ', 'dhilotDHLOT');
  content := replace(replace(replace(content, 'æ', 'ae'), 'œ', 'oe'), 'ß', 'ss');
  content := replace(replace(content, 'Æ', 'Ae'), 'Œ', 'Oe');
  return normalize(regexp_replace(content, '[\u0300-\u036f]+', '', 'g'), nfc);
end;
$$;
comment on function pgrecall_internal._unaccented is
'A text whose letters of the Latin, Greek and Cyrillic scripts have no accents: Lodz for Łódź, '
'and soeur for sœur.';

create or replace function pgrecall_internal._scope(bank_id text, fact_type text)
returns bigint
language sql immutable parallel safe
return hashtextextended(_scope.fact_type, hashtextextended(_scope.bank_id, 0));
comment on function pgrecall_internal._scope is
'Hash of a bank and a fact type, from which the keys of the lexical index are derived.';

create or replace function pgrecall_internal._lexical_keys(
  bank_id text, fact_type text, weights sparsevec)
returns bigint[]
language plpgsql immutable parallel safe
set search_path from current
as $$
declare
  scope bigint := pgrecall_internal._scope(_lexical_keys.bank_id, _lexical_keys.fact_type);
begin
  -- A sparsevec prints as {dimension:weight,...}/dimensions.
  return array(
    select hashint8extended(split_part(element, ':', 1)::bigint, scope)
    from   unnest(string_to_array(trim(split_part(weights::text, '/', 1), '{}'), ',')) as element
  );
end;
$$;
comment on function pgrecall_internal._lexical_keys is
'Keys of a document in the lexical index: the dimensions of its weights, hashed with its bank and '
'fact type.';

create table pgrecall.memory (
  bank_id         text not null,
  memory_id       bigint not null default nextval('pgrecall.id_seq'),
  fact_type       text not null,
  text            text not null,
  context         text,
  fact_key        text,
  source_id       text,
  tags            text[] not null default '{}',
  metadata        jsonb not null default '{}',
  occurred        tstzrange,
  mentioned_at    timestamptz not null default now(),
  confidence      real not null default 1,
  proof_count     integer not null default 1,
  valid_from      timestamptz not null default now(),
  valid_to        timestamptz,
  superseded_by   bigint,
  content_hash    bytea not null,
  is_linked       boolean not null default false,
  lexical_length  real not null default 0,
  lexical_weights sparsevec not null default '{}/1000000000',
  created_at      timestamptz not null default now(),
  lexical_document text,
  corrections     jsonb,
  written_by      text default current_user,
  constraint memory_pkey primary key (bank_id, memory_id),
  constraint memory_bank_id_fact_type_fkey
    foreign key (bank_id, fact_type) references pgrecall.fact_type (bank_id, fact_type)
    on delete cascade,
  constraint memory_bank_id_superseded_by_fkey
    foreign key (bank_id, superseded_by) references pgrecall.memory (bank_id, memory_id),
  constraint memory_text_check check (text <> '' and length(text) <= 100000),
  constraint memory_fact_key_check check (fact_key <> ''),
  constraint memory_metadata_check check (jsonb_typeof(metadata) = 'object'),
  constraint memory_occurred_check check (not isempty(occurred)),
  constraint memory_confidence_check check (confidence between 0 and 1),
  constraint memory_proof_count_check check (proof_count >= 1),
  constraint memory_valid_to_check check (valid_to >= valid_from),
  constraint memory_superseded_by_check
    check (superseded_by is null or (valid_to is not null and superseded_by <> memory_id)),
  constraint memory_content_hash_check check (octet_length(content_hash) = 32),
  constraint memory_lexical_length_check check (lexical_length >= 0)
);
comment on table pgrecall.memory is
'Facts. Written by retain(), ended by supersede(), erased by forget().';
comment on column pgrecall.memory.fact_key is
'Exact key under which the fact can be looked up: deploy.window. The key arm compares it in lower '
'case.';
comment on column pgrecall.memory.source_id is 'Document or conversation the fact was taken from.';
comment on column pgrecall.memory.occurred is
'When it happened, half-open; an open side is infinity. Null: unknown.';
comment on column pgrecall.memory.mentioned_at is 'When it was said.';
comment on column pgrecall.memory.confidence is 'Confidence in the fact, 0 to 1.';
comment on column pgrecall.memory.proof_count is 'Number of independent sources that state it.';
comment on column pgrecall.memory.valid_from is
'Known from here on: when it was said or stored, whichever is earlier. as_of compares with it.';
comment on column pgrecall.memory.valid_to is
'The fact no longer holds from here on; in the future: it expires then. Null: it holds without '
'end.';
comment on column pgrecall.memory.superseded_by is 'The memory that replaced this one.';
comment on column pgrecall.memory.content_hash is
'SHA-256 of the fields that identify the fact: retaining it again stores nothing.';
comment on column pgrecall.memory.is_linked is
'False until link_pending() has written its links.';
comment on column pgrecall.memory.lexical_length is
'Number of lexemes, repeated ones counted, those of context and fact_key by their weights.';
comment on column pgrecall.memory.lexical_weights is
'BM25 weight per lexeme without the IDF; dimension = hash of the lexeme.';
comment on column pgrecall.memory.lexical_document is
'The lexemes as numbers, each repeated by its weighted frequency, for an index of pg_textsearch. '
'Null in banks with another lexical_backend.';
comment on column pgrecall.memory.corrections is
'Corrections of the fact, the latest last, each with the previous values of the row: [{"kind": '
'"supersede", "correction_id": 7, "replaced_by": 5, "valid_to": null, "superseded_by": null, '
'"proof_count": 1, "by": "ana", "at": "2026-03-05T14:00:00+00:00"}]. kind: supersede, update, '
'retain, consolidate or quarantine. by: the role. unsupersede() removes the last, release() that '
'of quarantine(). Null: none.';
comment on column pgrecall.memory.written_by is
'Role that stored the fact. Null: stored before release 0.2.0.';

create unique index memory_bank_id_content_hash_key on pgrecall.memory (bank_id, content_hash)
  where valid_to is null;
create index memory_bank_id_content_hash_idx on pgrecall.memory (bank_id, content_hash)
  where valid_to is not null;
-- Ordered by valid_to, so that current facts of a key are found without reading its history.
create index memory_bank_id_fact_key_idx
  on pgrecall.memory (bank_id, lower(pgrecall_internal._normalised(fact_key)),
                      coalesce(valid_to, 'infinity'::timestamptz))
  where fact_key is not null;
create index memory_bank_id_source_id_idx on pgrecall.memory (bank_id, source_id)
  where source_id is not null;
create index memory_bank_id_fact_type_occurred_idx
  on pgrecall.memory (bank_id, fact_type, lower(occurred), upper(occurred))
  where occurred is not null;
create index memory_bank_id_fact_type_mentioned_at_idx
  on pgrecall.memory (bank_id, fact_type, mentioned_at) where occurred is null;
create index memory_bank_id_superseded_by_idx on pgrecall.memory (bank_id, superseded_by)
  where superseded_by is not null;
create index memory_bank_id_is_linked_idx on pgrecall.memory (bank_id, memory_id)
  where not is_linked;
create index memory_lexical_keys_idx on pgrecall.memory
  using gin (pgrecall_internal._lexical_keys(bank_id, fact_type, lexical_weights))
  with (fastupdate = off);
