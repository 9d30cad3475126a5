-- The registry of arms: one row for each; no other code lists them.
--
-- An arm is one file in arms/, or the room graph/, with a worker
-- pgrecall_internal._ARM_arm(request, before, is_planned), which returns
-- pgrecall_internal.arm_result, and one row here. The code that plans, runs, weights and reports
-- arms (recall/run.sql) loops over the rows in the order of place, and calls the workers through
-- _arm_result(), which is composed of the rows; the row decides when an arm is skipped without a
-- call.
--
-- place matters where an arm takes seeds from the hits of others: the graph and source arms come
-- after these.
create or replace function pgrecall.arms()
returns setof pgrecall.arm
language sql immutable parallel safe rows 8
begin atomic
  values
    ('key', 1, 3::double precision, '{query,keys}'::text[], 'low', 'memory',
     'Memories whose fact_key stands in the query.', null::double precision),
    ('semantic', 2, 1, '{embedding}', 'low', 'memory',
     'Memories nearest to the embedding of the query.', null),
    ('lexical', 3, 1, '{query,terms}', 'low', 'memory',
     'Memories that share words with the query, by BM25.', null),
    ('temporal', 4, 1.5, '{during}', 'low', 'memory',
     'Memories that happened in a window of time or near it.', null),
    ('message', 5, 1.2, '{query,terms}', 'mid', 'message',
     'Raw messages that share words with the query, by BM25.', 0.3),
    ('hypothetical', 6, 0.5, '{hypothetical}', 'mid', 'memory',
     'Memories nearest to the embedding of a made-up answer.', null),
    ('graph', 7, 11, '{names}', 'mid', 'memory',
     'Memories that entities, relations, causes and nearness in time lead to.', 1),
    ('source', 8, 0, '{}', 'mid', 'memory',
     'Other memories of the sources of the best hits.', null);
end;
comment on function pgrecall.arms is
'The arms, in the order in which they run, with what each needs and its default weight. Weight 0: '
'it runs only where a call or the bank gives it a weight.';

create or replace function pgrecall.default_weights()
returns jsonb
language sql immutable parallel safe
return (select jsonb_object_agg(a.arm, a.weight) from pgrecall.arms() as a);
comment on function pgrecall.default_weights is
'The weights of the arms in the fusion, unless bank or call sets others.';

create or replace function pgrecall_internal._arm_names()
returns text
language sql immutable parallel safe
return (select string_agg(a.arm, ', ' order by a.arm) from pgrecall.arms() as a);
comment on function pgrecall_internal._arm_names is 'The names of the arms, for hints.';
