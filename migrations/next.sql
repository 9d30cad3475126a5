-- What the next release changes in the state (sql/00 to 19) of a database that has the latest
-- release, and what it removes. Functions and views are re-created by the upgrade itself.

-- Texts, keys and names are compared in Unicode form NFKC.
create function pgrecall._normalised(content text)
returns text
-- Strict, so that a key compared is known to be not null, as the index on keys asks.
language plpgsql immutable strict parallel safe
as $$
begin
  -- Plain ASCII, which is most of what there is, and all in an encoding of one byte.
  if octet_length(content) = length(content) or getdatabaseencoding() <> 'UTF8' then
    return content;
  end if;
  return normalize(content, nfkc);
end;
$$;
comment on function pgrecall._normalised(text) is
'A text as it is compared, in Unicode form NFKC: one code point for an accented letter, wide '
'letters and digits as plain ones. In a database whose encoding is not UTF8, as it is.';
drop index pgrecall.memory_bank_id_fact_key_idx;
create index memory_bank_id_fact_key_idx
  on pgrecall.memory (bank_id, lower(pgrecall._normalised(fact_key)))
  where fact_key is not null;
insert into pgrecall.entity_alias (bank_id, alias, entity_id, confidence)
select n.bank_id, n.alias, n.entity_id, n.confidence
from (
  select u.bank_id, u.entity_id, u.confidence,
         lower(trim(regexp_replace(pgrecall._normalised(u.name), '[^[:alnum:]]+', ' ', 'g')))
           as alias
  from (
    select e.bank_id, e.entity_id, e.name, 1::real as confidence
    from   pgrecall.entity e
    union all
    select a.bank_id, a.entity_id, a.alias, a.confidence
    from   pgrecall.entity_alias a
  ) as u
  where  octet_length(u.name) > length(u.name)
) as n
where  n.alias <> ''
on conflict do nothing;

-- A bank may be searched by pg_textsearch.
alter table pgrecall.bank add column lexical_backend text not null default 'sparsevec';
alter table pgrecall.bank add constraint bank_lexical_backend_check
  check (lexical_backend in ('sparsevec', 'pg_textsearch'));
comment on column pgrecall.bank.lexical_backend is
'What answers the lexical arm: sparsevec, which is exact and needs nothing else, or the index of '
'the extension pg_textsearch that lexical_index_plan() asks for.';
alter table pgrecall.memory add column lexical_document text;
comment on column pgrecall.memory.lexical_document is
'The lexemes as numbers, each as often as it counts, for an index of pg_textsearch. Null in banks '
'with another lexical_backend.';
comment on column pgrecall.bank.candidate_limit is
'About how many facts the lexical arms score at most, those with the rarest words and sets of '
'words first; a quarter as many where these are enough.';
