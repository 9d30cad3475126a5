-- Relevance: how likely a row answers the query, so that a caller can detect that there is no
-- answer.
--
-- Fusion scores compare rows, but not across queries. Relevance is a logistic function of features
-- that can be compared across queries: the cosine similarity, the share of the query's IDFs in the
-- BM25 score, an exact key, the proximity in time. Its coefficients are fitted to LoCoMo
-- (bench/quality/relevance.py); they depend on the embedding model.
create or replace function pgrecall_internal._relevance(
  arms jsonb, idf_sum double precision, is_embedded boolean)
returns double precision
language sql immutable parallel safe
-- One expression, so that it is inlined: calling it for every row would take longer than the rest.
return case
  when not is_embedded and idf_sum is null and not arms ? 'key'
    then coalesce((arms -> 'temporal' ->> 'score')::double precision, 0)
  else 1 / (1 + exp(-(
    case
      when not is_embedded then -3
      when idf_sum is null
        then 16 * coalesce((arms -> 'semantic' ->> 'score')::double precision, 0.2) - 8.5
      else 10.4 * coalesce((arms -> 'semantic' ->> 'score')::double precision, 0.2) - 6.2
    end
    + case when is_embedded then 10.5 else 15 end * case
      when arms ? 'key' then 1
      else least(1, greatest(
        coalesce((arms -> 'lexical' ->> 'score')::double precision / idf_sum, 0),
        coalesce((arms -> 'message' ->> 'score')::double precision, 0)))
    end
    + 3 * coalesce((arms -> 'temporal' ->> 'score')::double precision, 0))))
end;
comment on function pgrecall_internal._relevance is
'Probability, 0 to 1, that a row answers, from the scores of the arms: the logistic function of '
'10.4 * similarity + 10.5 * words + 3 * nearness in time - 6.2; without an embedding of 15 * words '
'+ 3 * nearness - 3; without words of 16 * similarity + 3 * nearness - 8.5; without both the '
'nearness alone. words is the share of the query''s IDFs in the BM25 score, 1 for a key; a '
'similarity that was not found is 0.2. Fitted to LoCoMo with all-MiniLM-L6-v2 and questions '
'without names, half of them without an answer in the bank, so that the relevance of the best row '
'is the probability that the bank holds the answer (bench/quality/relevance.py). It depends on the '
'embedding model. Rows that only the graph found get a low value: there were no data to fit it.';
