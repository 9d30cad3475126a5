-- Asks a question with a name, two words and a vector.
\set topic random(1, 2000)
\set name random(0, 199)
select count(*)
from   pgrecall.hybrid_recall(
         'load' || :facts, format('what did Name%s say of word%s', :name, :topic),
         array(select sin(:topic * d) from generate_series(1, 64) as d)::real[]);
