-- BM25 weights of documents, computed when a memory or message is written.
--
-- A document is stored as a sparse vector with one weight per lexeme: its term frequency, saturated
-- and normalised by length, without the IDF. The IDF changes with every document of the bank and is
-- multiplied in at query time; so an inner product of two sparse vectors is the BM25 score. The
-- dimension of a lexeme is a hash of it: two lexemes may share one, which the query rechecks. The
-- mean length that the weights need comes from the statistics (bank/statistics.sql), which
-- recomputes the weights when the mean has changed. Fields (context, fact_key, neighbours of a
-- message) are weighted as in BM25F.

create or replace function pgrecall_internal._to_sparsevec(
  dimensions integer[], weights double precision[])
returns setof sparsevec
language sql immutable parallel safe rows 1
begin atomic
  -- Called in a from clause, so that it is inlined: before 18 each call would be planned anew.
  select ('{' || coalesce(string_agg(t.d || ':' || t.w, ',' order by t.d), '')
          || '}/1000000000')::sparsevec
  from (
    -- The type holds at most 16,000 elements.
    select u.d, sum(u.w)::real
    from   unnest(dimensions, weights) as u(d, w)
    group  by u.d
    order  by sum(u.w) desc
    limit  16000
  ) as t(d, w);
end;
comment on function pgrecall_internal._to_sparsevec is
'Weights by dimension as a vector; weights of the same dimension are added.';

create or replace function pgrecall_internal._weighed_document(
  bank pgrecall.bank, content text, context text, fact_key text, average_length double precision)
returns table (length real, weights sparsevec)
language sql stable parallel safe rows 1
begin atomic
  -- Called in a from clause, so that it is inlined: to begin a statement for each document takes as
  -- long as to cut it into lexemes. The caller sets extra_float_digits, since weights become a
  -- vector as text.
  select d.length, v.v
  from (
    select coalesce(array_agg(t.dimension), '{}') as dimensions,
           coalesce(
             array_agg(t.frequency / (t.frequency + (bank).bm25_k1 * (
                         1 - (bank).bm25_b + (bank).bm25_b * t.length / average_length))),
             '{}') as saturated,
           coalesce(max(t.length), 0) as length
    from (
      select pgrecall_internal._dimension(l.lexeme) as dimension, l.frequency,
             (sum(l.frequency) over ())::real as length
      from   pgrecall_internal._field_lexemes(
               (bank).text_search_config::regconfig, content, context, (bank).context_weight,
               fact_key, (bank).key_weight) as l
    ) as t
  ) as d
  cross  join lateral pgrecall_internal._to_sparsevec(d.dimensions, d.saturated) as v(v);
end;
comment on function pgrecall_internal._weighed_document is
'Length of a document in lexemes and its BM25 weights tf / (tf + k1 (1 - b + b length / average)), '
'without the IDF (Robertson and Zaragoza 2009, eq. 3.15; the constant factor k1 + 1 left out). tf '
'and length are sums over the fields, each times its weight (BM25F of Robertson, Zaragoza and '
'Taylor 2004, with one b for all fields).';

create or replace function pgrecall_internal._document_weights(
  bank pgrecall.bank, content text, context text, fact_key text, average_length double precision,
  out length real, out weights sparsevec)
language plpgsql immutable parallel safe
set search_path from current
set extra_float_digits = 1
-- To cut a text into lexemes takes a tenth of the time of planning that.
set plan_cache_mode = force_generic_plan
as $$
begin
  select w.length, w.weights into length, weights
  from   pgrecall_internal._weighed_document(bank, content, context, fact_key, average_length) as w;
end;
$$;
comment on function pgrecall_internal._document_weights is
'_weighed_document() where it cannot be inlined, as in an update.';

create or replace function pgrecall_internal._document_word(bank_id text, dimension integer)
returns text
language sql immutable parallel safe
return (hashint8extended(dimension, hashtextextended(bank_id, 0)) & 9223372036854775807)::text;
comment on function pgrecall_internal._document_word is
'The word that stands for a lexeme of a bank in lexical_document, by its dimension. It differs '
'between banks.';

create or replace function pgrecall_internal._lexical_document(
  bank pgrecall.bank, content text, context text, fact_key text)
returns text
language plpgsql immutable parallel safe
set search_path from current
as $$
begin
  if bank.lexical_backend <> 'pg_textsearch' then
    return null;
  end if;
  return (
    select coalesce(string_agg(
             repeat(pgrecall_internal._document_word(
                      bank.bank_id, pgrecall_internal._dimension(l.lexeme)) || ' ',
                    greatest(round(l.frequency), 1)::integer), ''), '')
    from   pgrecall_internal._field_lexemes(
             bank.text_search_config::regconfig, content, context, bank.context_weight,
             fact_key, bank.key_weight) as l
  );
end;
$$;
comment on function pgrecall_internal._lexical_document is
'The text of a memory for pg_textsearch: the words of its lexemes, each repeated by its weighted '
'frequency, rounded, at least once. Null where the bank has another lexical_backend.';

create or replace function pgrecall_internal._message_context(
  bank pgrecall.bank, message pgrecall.message)
returns text
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
begin
  if bank.message_context_weight = 0 or message.session_id is null then
    return null;
  end if;
  return (
    select string_agg(b.text, ' ')
    from (
      (select t.text
       from   pgrecall.message t
       where  t.bank_id = bank.bank_id and t.session_id = message.session_id
         and  t.sent_at <= message.sent_at
         and  (t.sent_at, t.message_id) < (message.sent_at, message.message_id)
       order  by t.sent_at desc, t.message_id desc
       limit  1)
      union all
      (select t.text
       from   pgrecall.message t
       where  t.bank_id = bank.bank_id and t.session_id = message.session_id
         and  t.sent_at >= message.sent_at
         and  (t.sent_at, t.message_id) > (message.sent_at, message.message_id)
       order  by t.sent_at, t.message_id
       limit  1)
    ) as b
  );
end;
$$;
comment on function pgrecall_internal._message_context is
'The texts of the messages right before and after a message; null where message_context_weight is '
'0.';

create or replace function pgrecall_internal._message_weights(
  bank pgrecall.bank, message pgrecall.message, average_length double precision,
  out length real, out weights sparsevec)
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  bank.context_weight := bank.message_context_weight;
  select x.length, x.weights into length, weights
  from   pgrecall_internal._document_weights(
           bank, message.text, pgrecall_internal._message_context(bank, message), null,
           average_length) as x;
end;
$$;
comment on function pgrecall_internal._message_weights is
'Length and weights of a message together with its neighbours, as _document_weights() defines '
'them.';
