-- Makes the bank that the other scripts use: psql -v facts=10000 -f fill.sql
select pgrecall.create_bank('load' || :facts, embedding_model => 'made', embedding_dimensions => 64);

select count(*)
from   generate_series(1, :facts, 500) as first
cross  join lateral pgrecall.retain('load' || :facts, (
         select jsonb_agg(jsonb_build_object(
                  'text', format('Name%s met word%s about word%s, matter %s',
                                 n % 200, n * 7919 % 2000 + 1, n * 7907 % 3001, n),
                  'entities', jsonb_build_array('Name' || n % 200),
                  'occurred', '2026-01-01'::timestamptz + n * interval '10 minutes',
                  'embedding', (select jsonb_agg(round(sin((n * 7919 % 2000 + 1) * d)::numeric, 3))
                                from   generate_series(1, 64) as d)))
         from   generate_series(first, least(first + 499, :facts)) as n), link => 'deferred');

-- First the index, for links are sought by it.
select statement from pgrecall.index_plan('load' || :facts) where action = 'create' \gexec

select pgrecall.maintain('load' || :facts, 100000);

analyze;
