-- What the next release changes in the state (sql/00 to 19) of a database that has the latest
-- release, and what it removes. Functions and views are re-created by the upgrade itself.

-- It returns two columns more.
drop function pgrecall._phrases(text);
-- Fusion: linear mode, gates, recency, relevance, pages.
alter table pgrecall.bank add column gates jsonb not null default '{}';
alter table pgrecall.bank add column recency_half_life interval;
alter table pgrecall.bank add column recency_decay text not null default 'exponential';
alter table pgrecall.bank drop constraint bank_fusion_check;
alter table pgrecall.bank add constraint bank_fusion_check
  check (fusion in ('rrf', 'score_rrf', 'linear'));
alter table pgrecall.bank add constraint bank_gates_check check (jsonb_typeof(gates) = 'object');
alter table pgrecall.bank add constraint bank_recency_half_life_check
  check (recency_half_life is null or (recency_half_life > interval '0' and fusion = 'linear'));
alter table pgrecall.bank add constraint bank_recency_decay_check
  check (recency_decay in ('exponential', 'linear'));
comment on column pgrecall.bank.fusion is
'rrf, score_rrf or linear, as the functions of these names join the arms.';
comment on column pgrecall.bank.gates is
'Least best score per arm: {"semantic": 0.3}. An arm that stays below is left out of the answer.';
comment on column pgrecall.bank.recency_half_life is
'Age at which recency neither lifts nor lowers; with fusion linear alone. Null: age says nothing.';
comment on column pgrecall.bank.recency_decay is
'exponential, or linear: gone at twice the half-life.';
alter type pgrecall.recalled add attribute relevance double precision;
alter type pgrecall.recalled add attribute proof_count integer;
comment on type pgrecall.recalled is
'A row of hybrid_recall(): a memory, or a raw message (kind = message: memory_id is its '
'message_id, context its speaker, '
'source_id its session). arms: {"lexical": {"rank": 1, "score": 7.3, "contribution": 0.0164}, '
'...}. relevance: how likely the row answers the query, 0 to 1; confidence and proof_count are '
'those of the fact.';
drop function pgrecall._check_weights(jsonb);
-- They hold on to _fuse(); the upgrade makes them anew.
create or replace function pgrecall.rrf(
  hits pgrecall.arm_hit[], weights jsonb default '{}', k integer default 60)
returns table (memory_id bigint, rank integer, score double precision, arms jsonb)
language plpgsql immutable parallel safe
as $$ begin end; $$;
create or replace function pgrecall.score_rrf(
  hits pgrecall.arm_hit[], weights jsonb default '{}', k integer default 60)
returns table (memory_id bigint, rank integer, score double precision, arms jsonb)
language plpgsql immutable parallel safe
as $$ begin end; $$;
drop function pgrecall._fuse(pgrecall.arm_hit[], jsonb, integer, boolean);
drop function pgrecall._gather(
  pgrecall.bank, text, halfvec, tstzrange, text[], jsonb, text[], jsonb, integer, timestamptz,
  halfvec, text, text, text[], text);
drop function pgrecall._recall_arguments(
  text, text, halfvec, tstzrange, text[], text[], jsonb, text[], jsonb, integer, integer, halfvec,
  text, text, integer, text, text, boolean, text);
drop function pgrecall._hybrid_recall(
  pgrecall.bank, text, halfvec, tstzrange, text[], jsonb, text[], jsonb, integer, integer,
  timestamptz, halfvec, integer, text, text, text, text[], text);
drop function pgrecall.hybrid_recall(
  text, text, halfvec, tstzrange, text[], text[], jsonb, text[], jsonb, integer, integer,
  timestamptz, halfvec, text, text, integer, text, text, boolean, text);
drop function pgrecall.explain_recall(
  text, text, halfvec, tstzrange, text[], text[], jsonb, text[], jsonb, integer, integer,
  timestamptz, halfvec, text, text, integer, text, text, boolean, text);
drop function pgrecall.arm_plan(
  text, text, halfvec, tstzrange, text[], text[], jsonb, text[], jsonb, integer, integer,
  timestamptz, halfvec, text, text, integer, text, text, boolean, text);

-- Names in questions, times in questions, neighbours of messages.
alter table pgrecall.bank add column named_boost real not null default 0.5;
alter table pgrecall.bank add column is_name_embedded boolean not null default false;
alter table pgrecall.bank add column time_settings jsonb not null default '{}';
alter table pgrecall.bank add column message_context_weight real not null default 0;
alter table pgrecall.bank add constraint bank_named_boost_check
  check (named_boost between 0 and 10);
alter table pgrecall.bank add constraint bank_time_settings_check
  check (jsonb_typeof(time_settings) = 'object');
alter table pgrecall.bank add constraint bank_message_context_weight_check
  check (message_context_weight between 0 and 100);
comment on column pgrecall.bank.named_boost is
'How much more a memory counts that mentions an entity named in the query: its contributions are '
'multiplied by 1 + named_boost * the confidence in the entity. 0: nothing.';
comment on column pgrecall.bank.is_name_embedded is
'Whether questions are embedded with the names of entities in them; otherwise prepare_recall() '
'takes them out.';
comment on column pgrecall.bank.time_settings is
'How the driver reads times in questions: {"language": "de", "country": "AT", "southern": false, '
'"day_first": true, "recent_days": 30, "few": 3}, any of them.';
comment on column pgrecall.bank.message_context_weight is
'What a word in the messages right before and after one counts beside a word in its own text, as '
'in BM25F; 0: nothing. Takes effect on stored messages at the next full refresh_statistics().';

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

-- Re-embedding.
alter table pgrecall.bank add column next_model text;
alter table pgrecall.bank add column next_dimensions integer;
alter table pgrecall.bank add column previous_model text;
alter table pgrecall.bank add constraint bank_next_model_check
  check (next_model <> '' and next_model <> embedding_model);
alter table pgrecall.bank add constraint bank_next_dimensions_check
  check (next_dimensions between 1 and 4000);
alter table pgrecall.bank add constraint bank_next_check
  check ((next_model is null) = (next_dimensions is null));
comment on column pgrecall.bank.next_model is
'Model that the bank is being re-embedded with; nothing is searched by it before '
'reembed_finish(). Null: none.';
comment on column pgrecall.bank.next_dimensions is 'Length of the embeddings of next_model.';
comment on column pgrecall.bank.previous_model is
'Model before the last reembed_finish(), while reembed_clean() has still to remove its '
'embeddings; empty when it had no name. Null: none.';
alter table pgrecall.embedding add column text text;
comment on column pgrecall.embedding.text is
'The question that was embedded; null for the text of the memory, and where nobody gave it: such '
'a question cannot be re-embedded.';
drop function pgrecall._semantic(text, halfvec, text[], jsonb, timestamptz, integer);
drop function pgrecall._seeds(text, text, halfvec, text[], jsonb, timestamptz);
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

-- The newest relations of an entity are read without reading all of them.
create index relation_bank_id_from_id_relation_id_idx
  on pgrecall.relation (bank_id, from_id, relation_id);
create index relation_bank_id_to_id_relation_id_idx
  on pgrecall.relation (bank_id, to_id, relation_id);
drop index pgrecall.relation_bank_id_from_id_idx;
drop index pgrecall.relation_bank_id_to_id_idx;
drop index pgrecall.memory_bank_id_fact_type_occurred_idx;
create index memory_bank_id_fact_type_occurred_idx
  on pgrecall.memory (bank_id, fact_type, lower(occurred), upper(occurred))
  where occurred is not null;
comment on column pgrecall.bank.candidate_limit is
'About how many facts the lexical arms score at most, those with the rarest words and sets of '
'words first; a quarter as many where these are enough.';

create type pgrecall.named_entity as (
  entity_id  bigint,
  matched    text,
  confidence real
);
comment on type pgrecall.named_entity is
'An entity that a query names, as query_entities() finds it: looked up once, handed from arm to '
'arm.';
drop function pgrecall._graph_bound(text, text, pgrecall.arm_hit[]);
drop function pgrecall._graph(
  text, text, pgrecall.arm_hit[], text[], jsonb, timestamptz, integer);
drop function pgrecall._run_arm(
  text, pgrecall.bank, text, halfvec, tstzrange, text[], jsonb, pgrecall.arm_hit[], timestamptz,
  integer, text);
alter table pgrecall.bank alter column candidate_limit set default 9000;
