-- The cause arm: for a question about causes or consequences, facts reached by causal links.
--
-- "Why was the shop closed?" finds the fact that the shop was closed by its words; the answer is
-- one, two or three causal links away and may share no word with the question. _cause_direction()
-- reads from the question whether it asks for causes, consequences, or the root cause; the arm
-- starts from the five best hits of the arms before it that have causal links and walks up to three
-- links (causes, caused_by, enables, prevents) in that direction, each step weaker by option
-- cause_decay. For a root cause, facts without a further cause come first.
create or replace function pgrecall_internal._cause_direction(query text)
returns text
language sql immutable parallel safe
return (
  select case
    when q.t ~ (
      '\m(root|original|ultimate|underlying|first|deepest|real|initial|primary|prime) '
      '(causes?|reasons?|triggers?|factors?|movers?)\M'
      '|\m(in|at) the (first place|outset|very start)\M'
      '|\mat (the )?(root|bottom|heart|start|beginning|origin|back) of\M|\mto begin with\M'
      '|\multimately\M.*\m(caused?|led|why|behind|responsible|blame|due|down)\M'
      '|\m(why|caused?|led|behind|responsible|blame)\M.*\multimately\M'
      '|\m(set|sets|started?|starts|kicked?|sparked|triggered|put)\M.*'
      '\m(in motion|it all|all (of )?this|everything|the chain|the (whole|entire) \w+)\M'
      '|\m(traced?|goes?|went|dates?) (all the way )?back to\M|\mtrac(e|ed|ing)\M.*\mback\M'
      '|\m(very )?first (thing|event|step|link|sign|mistake|problem|failure)s?\M'
      '|\m(kick(ed|s)?|set|sets|start(ed|s)?|spark(ed|s)?) (it|this|that|things)( all)?( off)?\M'
      '|\moriginally\M.*\m(caused?|led|due)\M'
      '|\m(where|how|what) did (it|this|that|these|all|everything|the|any)\M.*'
      '\m(start|begin|originate|come about|come from|stem from)\M'
      '|\m(origins?|source|beginnings?|genesis|starting point|seed) of\M|\mfirst domino\M'
      '|\m(grundursache|auslöser|ursprung|cause première|à l''origine|causa raíz|causa raiz'
      '|causa prima|causa profunda|en el origen|all''origine|grondoorzaak|eigenlijke oorzaak)\M'
    ) then 'root'
    when q.t ~ (
      '\mwhat (did|does|has|have|will|would|might|could)\M.*'
      '\m(lead to|led to|caused?|result(ed)? in|trigger(ed)?|br(ing|ought) about|affect(ed)?'
      '|entail(ed)?|mean for|end in|set off|give rise to|spark(ed)?|prompt(ed)?)\M'
      '|\m(consequences?|effects?|outcomes?|aftermath|results?|impact|fallout|repercussions?'
      '|upshot|knock-on effects?|ramifications?|implications?|wake|follow-on|sequel) (of|from|to)\M'
      '|\m(consequences?|effects?|outcomes?|results?|impact|fallout|repercussions?|ramifications?)'
      ' (did|does|has|have|had|will|would|came|come|followed)\M'
      '|\mwhat (came|followed|happened|resulted|arose)\M.*'
      '\m(of|from|after|because|as a result|due to|following)\M'
      '|\mas a result of\M|\mwhat (was|were|is) (caused|affected|triggered) by\M|\mwhat followed\M'
      '|\m(folgen?|auswirkungen?|consecuencias?|conséquences?|conseguenze|gevolgen|consequências)'
      ' (von|des|der|de|du|di|del|van|do|da)\M'
    ) then 'effect'
    when q.t ~ (
      '\m(why|because|reasons?|causes?|caused|led to|leads to|due to|brought about|triggered|behind'
      '|how come|what made|resulted in|explains?|responsible for|to blame|blamed? (for|on)|owing to'
      '|prompted|accounts? for|gave rise to|contributed to|set off|sparked|provoked|grounds for'
      '|thanks to|stems? from|stemmed from|result of|consequence of|down to|what brought|what got'
      '|what drove|what pushed|on account of|culprit|set .* off)\M'
      -- A prevented event has causes too.
      '|\m(what|who|which|how)\M.*\m(prevent(ed|s)?|stop(ped|s)?|avert(ed|s)?|kept?|avoid(ed|s)?'
      '|saved?|spared?|thwart(ed|s)?|hinder(ed|s)?|in the way|foil(ed|s)?|block(ed|s)?|halt(ed|s)?'
      '|ruled? out|impeded?|hampered|held back|forestall(ed|s)?)\M'
      '|\m(warum|wieso|weshalb|ursache|grund|por qué|causa|motivo|pourquoi|raison|perché|waarom'
      '|oorzaak|reden|por que|razão)\M'
    ) then 'cause'
  end
  from (values (lower(left(query, 1000)))) as q(t)
);
comment on function pgrecall_internal._cause_direction is
'Direction of causal links that a question asks for: cause, root, effect, or null.';

create or replace function pgrecall_internal._best_seeds(hits pgrecall.arm_hit[], top integer)
returns table (memory_id bigint, strength double precision)
language sql immutable parallel safe
begin atomic
  select b.memory_id, b.score / max(b.score) over ()
  from (
    select h.memory_id, sum(1.0 / (5 + h.rank))::double precision as score
    from   unnest(hits) as h
    where  h.rank <= 20
    group  by h.memory_id
    order  by 2 desc, 1 desc
    limit  top
  ) as b;
end;
comment on function pgrecall_internal._best_seeds is
'The best hits of the arms that ran so far by reciprocal rank, with their strength, 0 to 1.';

create or replace function pgrecall_internal._cause_search(
  request pgrecall_internal.request, seeds bigint[], strengths double precision[],
  direction text, out memory_ids bigint[], out scores double precision[], out vias jsonb[])
language plpgsql stable parallel safe
set search_path from current
set jit = off
as $$
declare
  decay double precision := (request.options ->> 'cause_decay')::double precision;
  -- One step: links of at most 20 a side from each, and the 100 best facts that they lead to.
  step  constant text := $sql$
    link{n} as materialized (
      select s.memory_id as from_id, n.memory_id, s.score * $6 * n.weight as score,
             s.path || n.memory_id as path
      from   step{before} s
      cross  join lateral (
        (select o.to_id as memory_id, o.weight
         from   pgrecall.link o
         where  o.bank_id = $1 and o.from_id = s.memory_id
           and  o.kind = any (case when $7 = 'effect' then '{causes,enables,prevents}'
                                   else '{caused_by}' end::text[])
         order  by o.weight desc, o.to_id desc
         limit  20)
        union all
        (select i.from_id, i.weight
         from   pgrecall.link i
         where  i.bank_id = $1 and i.to_id = s.memory_id
           and  i.kind = any (case when $7 = 'effect' then '{caused_by}'
                                   else '{causes,enables,prevents}' end::text[])
         order  by i.weight desc, i.from_id desc
         limit  20)
      ) as n
      where  n.memory_id <> all (s.path)
    ),
    step{n} as materialized (
      select b.*
      from (
        select distinct on (l.memory_id) l.memory_id, l.score, l.path
        from   link{n} l
        order  by l.memory_id, l.score desc
      ) as b
      order  by b.score desc, b.memory_id desc
      limit  100
    )
  $sql$;
begin
  execute format(
    $sql$
      with step0 as (
        select s.memory_id, s.strength as score, array[s.memory_id] as path
        from   unnest($4, $5) as s(memory_id, strength)
        cross  join lateral (
          (select from pgrecall.link o
           where  o.bank_id = $1 and o.from_id = s.memory_id
             and  o.kind = any (case when $7 = 'effect' then '{causes,enables,prevents}'
                                     else '{caused_by}' end::text[])
           limit  1)
          union all
          (select from pgrecall.link i
           where  i.bank_id = $1 and i.to_id = s.memory_id
             and  i.kind = any (case when $7 = 'effect' then '{caused_by}'
                                     else '{causes,enables,prevents}' end::text[])
           limit  1)
          limit  1
        ) as linked
        order  by s.strength desc, s.memory_id desc
        limit  5
      ),
      %s, %s, %s,
      reached as (
        select distinct on (w.memory_id) w.memory_id,
               -- A root cause is the far end of the chain: a fact without a further cause.
               case when $7 = 'root'
                 then w.score / $6 ^ w.step * case when w.memory_id in (
                        select from_id from link1 union all select from_id from link2
                        union all select from_id from link3) then 0.5 else 1 end
                 else w.score end as score,
               w.path
        from (
          select s.*, 1 as step from step1 s
          union all select s.*, 2 from step2 s
          union all select s.*, 3 from step3 s
        ) as w
        order  by w.memory_id, w.score desc
      )
      select array_agg(t.memory_id order by t.score desc, t.memory_id desc),
             array_agg(t.score order by t.score desc, t.memory_id desc),
             array_agg(jsonb_build_object('facts', to_jsonb(t.path), 'direction', $7)
                       order by t.score desc, t.memory_id desc)
      from (
        select r.*
        from   reached r
        cross  join lateral (
          select from pgrecall.memory m
          where  m.bank_id = $1 and m.memory_id = r.memory_id
            and  array_position($8, m.fact_type) is not null and %s
          limit  1
        ) as visible
        order  by r.score desc, r.memory_id desc
        limit  20
      ) as t
    $sql$,
    replace(replace(step, '{n}', '1'), '{before}', '0'),
    replace(replace(step, '{n}', '2'), '{before}', '1'),
    replace(replace(step, '{n}', '3'), '{before}', '2'),
    request.visible_sql)
  into  memory_ids, scores, vias
  using (request.bank).bank_id, request.as_of, request.filter, seeds, strengths, decay, direction,
        request.fact_types;
end;
$$;
comment on function pgrecall_internal._cause_search is
'Facts reached from the five best seeds that have causal links, by up to three of them, with the '
'path of memory ids. Each step goes on from the 100 best facts, so that hubs of causes cost no '
'more.';

create or replace function pgrecall_internal._cause_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  result    pgrecall_internal.arm_result;
  direction text := pgrecall_internal._cause_direction(request.query);
  seeds     bigint[];
  strengths double precision[];
begin
  result.is_run := direction is not null;
  if not result.is_run then
    result.reason := 'the query asks for no cause or consequence';
  elsif is_planned then
    result.reason := format('the query asks for a %s', direction);
  else
    select array_agg(s.memory_id), array_agg(s.strength)
    into   seeds, strengths
    from   pgrecall_internal._best_seeds(before, 20) as s;
    select s.memory_ids, s.scores, s.vias
    into   result.memory_ids, result.scores, result.vias
    from   pgrecall_internal._cause_search(request, seeds, strengths, direction) as s;
    result.reason := format('asked for a %s', direction);
  end if;
  return result;
end;
$$;
comment on function pgrecall_internal._cause_arm is
'Worker of the cause arm. score: the strength of the seed times cause_decay for each step.';
