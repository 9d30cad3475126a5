create or replace function pgrecall._word_mass(bank pgrecall.bank, kind text, query text)
returns double precision
language plpgsql stable parallel safe
set search_path from current
as $$
begin
  return (
    select sum(u)
    from   unnest((pgrecall._query_lexemes(
             bank, kind, (pgrecall._parsed_query(query)).words)).idfs) as u
  );
end;
$$;
comment on function pgrecall._word_mass(pgrecall.bank, text, text) is
'Sum of the IDFs of the words of a query, which no BM25 score of the lexical arms exceeds. Null '
'without words.';

create or replace function pgrecall._relevance(
  arms jsonb, word_mass double precision, message_mass double precision, is_embedded boolean)
returns double precision
language sql immutable parallel safe
begin atomic
  select 1 / (1 + exp(-case
           when is_embedded then -6 + 6 * e.similarity + 8 * e.words
           else -4 + 8 * e.words
         end))
  from (
    select coalesce((arms -> 'semantic' ->> 'score')::double precision, 0.2) as similarity,
           greatest(coalesce((arms -> 'lexical' ->> 'score')::double precision / word_mass, 0),
                    coalesce((arms -> 'message' ->> 'score')::double precision / message_mass, 0))
             as words
  ) as e;
end;
comment on function pgrecall._relevance(jsonb, double precision, double precision, boolean) is
'todo';
