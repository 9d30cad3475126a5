-- Retains a new fact about a name that is known.
\set n random(1, 2000000000)
\set topic random(1, 2000)
\set name random(0, 199)
select count(*)
from   pgrecall.retain('load' || :facts, jsonb_build_array(jsonb_build_object(
         'text', format('Name%s asked for word%s, matter %s', :name, :topic, :n),
         'entities', jsonb_build_array('Name' || :name),
         'embedding', (select jsonb_agg(sin(:topic * d)) from generate_series(1, 64) as d))));
