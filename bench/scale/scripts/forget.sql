-- Forgets a fact, so that the bank stays as large as it is.
\set chance random(1, 2000000000)
select pgrecall.forget('load' || :facts, array(
         select m.memory_id from pgrecall.memory m
         where  m.bank_id = 'load' || :facts
           and  m.memory_id >= (
                  select min(x.memory_id) + :chance % (max(x.memory_id) - min(x.memory_id) + 1)
                  from   pgrecall.memory x where x.bank_id = 'load' || :facts)
         order  by m.memory_id
         limit  1));
