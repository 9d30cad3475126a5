-- The words by which a question asks for edges of the graph: "the boss of", "reports to", "why",
-- "what came of".
--
-- default_relation_words() is a lexicon of common relations (work, family, place, ownership,
-- membership) and of causes in the seven languages of the temporal grammar. A word, or a phrase of
-- up to three, has meanings of the form "noun>kind": the word names the target of a relation of
-- that kind from X; "noun<kind": the source of one to X; "verb>kind" and "verb<kind": X does it to
-- the target, or to the source; "link>cause", "link>effect", "link>root" and "link>prevention":
-- causal links to causes, to effects, to the cause behind all others, and to what prevented it.
-- Option relation_words adds words to it, for a call or for a bank. _asked_edges() finds the words
-- of a question; no sentence is parsed. Kinds that facts give in other words of the lexicon count
-- as well (_alike_keys()).
create or replace function pgrecall_internal._relation_rows()
returns table (forth text, back text, nouns text, inverse_nouns text, verbs text,
               inverse_verbs text)
language sql immutable parallel safe
begin atomic
  values
    ('reports_to answers_to managed_by supervised_by works_under subordinate_of',
     'manages supervises boss_of manager_of oversees supervisor_of',
     'boss,bosses,manager,managers,supervisor,supervisors,superior,superiors,line manager,chief,'
     'higher up,higher ups,overseer,foreman,forewoman,gaffer,senior,team leader,head,leader,lead,'
     'captain,director,'
     'chef,chefin,cheffe,vorgesetzter,vorgesetzte,jefe,jefa,supervisora,patron,patronne,'
     'responsable,supérieur,supérieure,capo,responsabile,superiore,baas,leidinggevende,chefe,'
     'gestor,gestora',
     'subordinate,subordinates,direct report,direct reports,report,reports,underling,underlings,'
     'mitarbeiter,untergebener,subordinado,subordonné,subordinato,ondergeschikte',
     'report to,reports to,reported to,reporting to,answer to,answers to,managed by,supervised by,'
     'untersteht,unterstellt,reporta a,responde a,depende de,dépend de,rend compte à,risponde a,'
     'dipende da,verantwoording af aan,'
     'overseen by,work under,works under,serve under,serves under,accountable to,responsible to,'
     'take orders from,takes orders from,berichtet an,rapporteert aan',
     'manage,manages,managed,supervise,supervises,supervised,oversee,oversees,in charge of,'
     'boss around,preside over,presides over,supervisa,dirige,encadre,supervisiona'),
    ('mentored_by coached_by advised_by tutored_by trained_by guided_by apprentice_of',
     'mentors mentor_of coaches advises tutors trains guides',
     'mentor,mentors,coach,coaches,adviser,advisor,sensei,counsellor,counselor,guide,guru,'
     'role model,tutor,tutors,trainer,mentorin,mentora,mentore,conseiller,conseillère',
     'mentee,mentees,protégé,protégée,protegee,protege,trainee,apprentice,disciple,schützling',
     'mentored by,coached by,advised by,tutored by,trained by,guided by,learn from,learns from,'
     'taken under the wing',
     'mentor,mentors,mentored,coach,coaches,coached,advise,advises,advised,tutor,tutors,tutored,'
     'guide,guides,guided,train,trains,trained'),
    ('married_to spouse_of partner_of wife_of husband_of wed_to',
     'married_to spouse_of partner_of wife_of husband_of wed_to',
     'wife,husband,spouse,spouses,partner,missus,missis,hubby,better half,other half,significant '
     'other,bride,groom,bridegroom,consort,life partner,wedded wife,lady wife,'
     'frau,mann,man,ehefrau,ehemann,gattin,gatte,esposa,esposo,marido,mujer,femme,mari,'
     'épouse,époux,moglie,marito,vrouw,echtgenoot,echtgenote,mulher',
     '',
     'married to,marry,married,marries,wed,wed to,wedded to,got married to,tied the knot with,'
     'share vows with,hitched to,verheiratet mit,casado con,casada con,marié à,sposato con', ''),
    ('child_of son_of daughter_of raised_by', 'parent_of mother_of father_of raised',
     'parent,parents,mother,father,mum,mom,mama,mummy,mommy,mam,dad,daddy,papa,pa,ma,old man,'
     'folks,begetter,mutter,vater,eltern,madre,padre,mère,père,moeder,vader,mãe,pai',
     'child,children,son,sons,daughter,daughters,kid,kids,offspring,boy,girl,little one,heir,'
     'firstborn,baby,kind,kinder,sohn,tochter,hijo,hija,fils,fille,figlio,figlia,zoon,dochter,'
     'filho,filha',
     'born to,raised by,brought up by,child of',
     'raise,raised,father,fathered,bring up,brought up'),
    ('sibling_of brother_of sister_of twin_of', 'sibling_of brother_of sister_of twin_of',
     'sibling,siblings,brother,brothers,bro,sister,sisters,sis,twin,twins,bruder,schwester,'
     'geschwister,hermano,hermana,frère,sœur,soeur,fratello,sorella,broer,zus,irmão,irmã',
     '', '', ''),
    ('lives_in resides_in based_in home_town lives_at resident_of', '',
     'where is,where s,where are,where was,wo ist,wo sitzt,dónde está,dónde queda,où est,'
     'où se trouve,'
     'dov è,waar is,onde está,onde fica,'
     'home,homes,home town,hometown,home city,city,town,village,residence,address,abode,dwelling,'
     'whereabouts,domicile,place of residence,wohnort,ciudad,ville,città,woonplaats,cidade',
     'resident,residents,inhabitant,inhabitants,occupant,tenant',
     'live,lives,lived,living,reside,resides,resided,residing,dwell,dwells,dwelt,based,settled,'
     'settle,inhabit,inhabits,stay,stays,staying,housed,make home,made home,call home,calls home,'
     'have a home,has a home,at home,wohnt,wohnen,lebt,leben,vive,viven,habite,habitent,réside,vit,'
     'abita,risiede,woont,wonen,mora,moram,reside', ''),
    ('works_at works_for employed_by', 'employs',
     'employer,employers,company,firm,workplace,arbeitgeber,firma,ditta,bedrijf,compañía,empresa,'
     'employeur,entreprise,'
     'datore di lavoro,werkgever,empregador',
     'employee,employees,staff,worker,workers,angestellte,empleado,employé,dipendente,werknemer',
     'work for,works for,worked for,work at,works at,employed by,employed at,on the payroll of,'
     'paid by,work,works,working,arbeitet,trabaja,travaille,lavora,werkt,trabalha',
     'employ,employs,employed'),
    ('member_of part_of belongs_to on_team in_team', 'has_member',
     'team,teams,group,department,unit,division,squad,crew,club,association,abteilung,equipo,'
     'équipe,squadra,afdeling,equipe',
     'member,members,mitglied,miembro,membre,membro,lid',
     'belong to,belongs to,member of,part of,sit with,sits with,sit in,sits in,enrolled in,'
     'affiliated with,assigned to', ''),
    ('led_by headed_by run_by captained_by directed_by',
     'leads heads runs manages captains skippers chairs directs leader_of head_of',
     'whose,wessen,wiens,van wie,de quién,à qui,di chi,de quem,leader,leaders,lead,head,captain,'
     'skipper,chair,chairman,chairwoman,chairperson,director,boss,'
     'chief,manager,supervisor,gaffer,foreman,'
     'principal,commander,coordinator,leiter,leiterin,líder,chef d''équipe',
     '', 'led by,headed by,run by,headed up by,captained by,directed by,chaired by,steered by,'
     'under the leadership of',
     'lead,leads,led,head,heads,headed,run,runs,captain,captains,chair,chairs,direct,directs,'
     'in charge of,at the helm of,steer,steers,command,commands,coordinate,coordinates,'
     'leitet,führt,dirige,encabeza,guida,leidt,lidera,chefia'),
    ('works_on assigned_to contributes_to involved_in develops', '',
     'project,projects,undertaking,undertakings,assignment,assignments,initiative,endeavour,'
     'endeavor,venture,projekt,proyecto,projet,progetto,projeto',
     'developer,developers,contributor,contributors,engineer,engineers,collaborator,collaborators',
     'work on,works on,working on,worked on,assigned to,busy with,occupied with,involved in,'
     'engaged in,engaged on,busy,occupied,tied up with,'
     'contribute to,contributes to,toil on,toils on,devote time to,'
     'spend time on,spends time on', ''),
    ('owned_by belongs_to', 'owns owner_of possesses has',
     'whose,wessen,wiens,van wie,de quién,à qui,di chi,de quem,owner,owners,proprietor,possessor,'
     'holder,keeper,landlord,landlady,'
     'besitzer,besitzerin,dueño,dueña,propriétaire,proprietario,proprietaria,eigenaar,dono,dona',
     'possession,possessions,property,properties,belongings,belonging',
     'owned by,belong to,belongs to,belonged to,in the possession of,gehört,gehören,pertenece a,'
     'appartient à,appartiene a,toebehoort aan,pertence a',
     'own,owns,owned,has got,have got,possess,possesses,possessed,hold title to,holds title to,'
     'besitzt,posee,possède,possiede,bezit,possui'),
    ('made_by built_by produced_by manufactured_by constructed_by created_by designed_by',
     'makes made builds built produces manufactures maker_of constructs creates',
     'maker,makers,builder,builders,manufacturer,producer,creator,constructor,'
     'hersteller,fabricante,fabricant,produttore,fabrikant',
     'product,products,creation',
     'made by,built by,produced by,manufactured by,constructed by,assembled by,crafted by,'
     'created by,turned out by,come from the works of',
     'make,makes,made,build,builds,built,produce,produces,produced,manufacture,manufactures,'
     'manufactured,construct,constructs,constructed,assemble,assembled,craft,crafted,create,'
     'created,turn out,turned out,gebaut,hergestellt,baute,produziert,fabricó,construyó,construido,'
     'produjo,fabriqué,construit,produit,costruito,fabbricato,prodotto,gebouwd,gemaakt,bouwde,'
     'maakte,construiu,fabricou,feito,produziu'),
    ('located_in lies_in situated_in based_in part_of capital_of', '',
     'where is,where s,where are,where was,wo ist,wo sitzt,dónde está,dónde queda,où est,'
     'où se trouve,'
     'dov è,waar is,onde está,onde fica,location,country,region,país,pays,paese,place,'
     'site,nation,state,land,province,county,'
     'ort,lugar,lieu,luogo,plaats', '',
     'located in,located,lie,lies,situated,stand,stands,found in,sit,sits,belong to,'
     'belongs to', ''),
    ('born_in birthplace native_of', '',
     'birthplace,place of birth,native town,native city,birth town,city of birth,town of birth,'
     'geburtsort,lugar de nacimiento', 'native,natives',
     'born in,born,hail from,hails from,come from,comes from,is from,was from,are from,native of,'
     'first saw the light,'
     'woher,de dónde,d où,di dove,di dov è,da dove,waar vandaan,de onde,geboren,nació,nacido,'
     'nacida,né,née,nata,nato,nasceu,nascido,nascida', ''),
    ('sells_to supplies', 'customer_of client_of buys_from supplied_by',
     'customer,customers,client,clients,buyer,buyers,purchaser,kunde,kunden,cliente,klant',
     'supplier,suppliers,vendor,vendors,seller,provider,lieferant,proveedor,fournisseur,fornitore,'
     'leverancier',
     'supply,supplies,supplied,sell to,sells to,deliver to,delivers to',
     'buy from,buys from,purchase from,supplied by'),
    ('friend_of knows acquainted_with', 'friend_of knows acquainted_with',
     'friend,friends,pal,pals,buddy,mate,mates,acquaintance,acquaintances,companion,chum,'
     'freund,freundin,amigo,amiga,ami,amie,amico,amica,vriend,vriendin', '',
     'know,knows,befriended,acquainted with,friends with,meets up with,hangs out with', ''),
    ('colleague_of works_with', 'colleague_of works_with',
     'colleague,colleagues,coworker,coworkers,co worker,workmate,teammate,teammates,'
     'kollege,kollegin,colega,collègue,collega', '',
     'work with,works with,collaborate with,collaborates with', ''),
    ('taught_by student_of', 'teaches teacher_of',
     'teacher,teachers,instructor,lecturer,schoolmaster,lehrer,lehrerin,profesor,professeur,'
     'insegnante,leraar,professor',
     'student,students,pupil,pupils,schüler', 'taught by,study under,studies under',
     'teach,teaches,taught,instruct,instructs'),
    ('treated_by patient_of', 'treats doctor_of',
     'doctor,physician,therapist,dentist,gp,surgeon,arzt,ärztin,médico,médecin,medico,dokter',
     'patient,patients', 'treated by', 'treat,treats,treated');
end;
comment on function pgrecall_internal._relation_rows is
'The lexicon of relations: kinds that lead from X to Y, kinds that lead from Y to X, nouns for Y '
'as seen from X and for X as seen from Y, verbs of X and of Y.';

create or replace function pgrecall_internal._cause_rows()
returns table (direction text, words text)
language sql immutable parallel safe rows 4
begin atomic
  values
    ('cause',
     'why,because,reason,reasons,cause,causes,caused,cause of,causes of,led to,leads to,led,'
     'brought about,brought on,triggered,trigger,trigger for,behind,due to,how come,what made,'
     'explains,explain,explanation,responsible,responsible for,blame,to blame,owing to,prompted,'
     'accounts for,gave rise to,contributed to,set off,sparked,provoked,stems,stemmed,culprit,'
     'thanks to,down to,grounds for,'
     'warum,wieso,weshalb,ursache,grund,por qué,causa,motivo,pourquoi,raison,perché,waarom,'
     'oorzaak,reden,por que,razão'),
    ('effect',
     'lead to,result in,consequence,consequences,consequence of,consequences of,effect,effects,'
     'outcome,outcomes,outcome of,aftermath,result of,results of,impact,fallout,repercussions,'
     'ramifications,upshot,sequel,followed,followed from,follow,resulted from,came of,came from,'
     'comes of,because of,as a result,arose from,happened after,affected by,bring about,'
     'bring on,give rise to,set off by,did cause,did trigger,did spark,did prompt,did provoke,'
     'did affect,did entail,does cause,does trigger,would cause,end in,'
     'folge,folgen,auswirkung,auswirkungen,consecuencia,consecuencias,conséquence,conséquences,'
     'conseguenza,conseguenze,gevolg,gevolgen,consequência,consequências'),
    ('root',
     'root,root cause,root of,origin,origins,origin of,source of,original cause,originally,'
     'ultimate,ultimately,ultimate cause,underlying,underlying cause,underlying reason,'
     'first cause,real cause,real reason,first place,the first place,at the bottom,bottom of,'
     'at the heart,begin with,to begin with,start,started,did start,begin,began,traced back,'
     'trace back,trace,traced,go back,goes back,went back,back to,very first,first thing,'
     'first domino,kicked off,kick off,in motion,starting point,genesis,seed of,'
     'grundursache,auslöser,ursprung,cause première,causa raíz,causa raiz,causa prima,'
     'causa profunda,grondoorzaak'),
    ('prevention',
     'averted,prevented,stopped,spared,avoided,thwarted,hindered,forestalled');
end;
comment on function pgrecall_internal._cause_rows is
'The lexicon of causal links: words that ask for causes, for effects, for the root of all causes, '
'and for what prevents.';

create or replace function pgrecall_internal._relation_words()
returns jsonb
language sql immutable parallel safe
begin atomic
  select jsonb_object_agg(w.word, w.meanings)
  from (
    select m.word, jsonb_agg(m.meaning) as meanings
    from (
      select btrim(n.word) as word, n.way || r.row as meaning
      from   pgrecall_internal._relation_rows() with ordinality
               as r(forth, back, nouns, inverse_nouns, verbs, inverse_verbs, row)
      cross  join lateral (
        values ('noun>', r.nouns), ('noun<', r.inverse_nouns),
               ('verb>', r.verbs), ('verb<', r.inverse_verbs)
      ) as l(way, words)
      cross  join lateral (select l.way, x from string_to_table(l.words, ',') as x) as n(way, word)
      where  n.word <> ''
      union all
      select x, 'link>' || c.direction
      from   pgrecall_internal._cause_rows() as c
      cross  join lateral string_to_table(c.words, ',') as x
    ) as m
    group  by m.word
  ) as w;
end;
comment on function pgrecall_internal._relation_words is
'The lexicon by word, as questions look it up: {"boss": ["noun>1"], "why": ["link>cause"]}, the '
'numbers being rows of _relation_rows(). An eighth of default_relation_words(), for the first '
'recall of a session reads it.';

-- From here on the function is its value: computed by the first recall of each session it took a
-- fifteenth of that recall.
do $$
begin
  execute format(
    'create or replace function %s() returns jsonb language sql immutable parallel safe '
    'return %L::jsonb', 'pgrecall_internal._relation_words', pgrecall_internal._relation_words());
end;
$$;

create or replace function pgrecall_internal._meanings(meaning text)
returns setof text
language sql immutable parallel safe rows 4
begin atomic
  select _meanings.meaning where _meanings.meaning like 'link%'
  union all
  select left(_meanings.meaning, 4) || k.way || k.kind
  from   pgrecall_internal._relation_rows() with ordinality
           as r(forth, back, nouns, inverse_nouns, verbs, inverse_verbs, row)
  cross  join lateral (
    select substr(_meanings.meaning, 5, 1) as way, x as kind
    from   string_to_table(r.forth, ' ') as x
    union all
    select translate(substr(_meanings.meaning, 5, 1), '<>', '><'), x
    from   string_to_table(r.back, ' ') as x
  ) as k
  where  r.row::text = substr(_meanings.meaning, 6) and k.kind <> '';
end;
comment on function pgrecall_internal._meanings is
'A meaning of _relation_words() in the form of default_relation_words(): one for each kind of its '
'row.';

create or replace function pgrecall_internal._alike_keys(kind text, way text)
returns setof text
language sql immutable parallel safe rows 1
begin atomic
  select '#' || substr(m.meaning, 6)
         || case when (substr(m.meaning, 5, 1) = '>') = p.is_target then way
                 else translate(way, '<>', '><') end
  from   (select replace(kind, '_', ' ')) as k(words)
  cross  join lateral (
    select 'verb' as role, true as is_target, k.words as phrase
    union  all
    -- Columns are named, or else a dump writes them otherwise.
    select 'noun' as role, true as is_target, substr(k.words, 5) as phrase
    where  k.words like 'has %'
    union  all
    select 'noun' as role, false as is_target,
           left(case when k.words like 'is %' then substr(k.words, 4) else k.words end, -3)
             as phrase
    where  k.words like '% of'
  ) as p
  cross  join lateral jsonb_array_elements_text(
           pgrecall_internal._relation_words() -> p.phrase) as m(meaning)
  where  left(m.meaning, 4) = p.role;
end;
comment on function pgrecall_internal._alike_keys is
'The rows of the lexicon, as keys of _asked_edges(), that a kind of relation is as good as, if it '
'is a verb of one ("takes_orders_from") or "has N" or "N of" with one of its nouns: in the way > '
'"inhabitant_of" is that of lives_in>, "has_gaffer" that of reports_to>, "boss_of" of reports_to<.';

create or replace function pgrecall.default_relation_words()
returns jsonb
language sql immutable parallel safe
begin atomic
  select jsonb_object_agg(w.word, w.meanings)
  from (
    select e.key as word, jsonb_agg(distinct k.meaning) as meanings
    from   jsonb_each(pgrecall_internal._relation_words()) as e
    cross  join lateral jsonb_array_elements_text(e.value) as m(meaning)
    cross  join lateral pgrecall_internal._meanings(m.meaning) as k(meaning)
    group  by e.key
  ) as w;
end;
comment on function pgrecall.default_relation_words is
'Words that ask for a relation, each with its meanings: {"boss": ["noun>reports_to", '
'"noun<manages"], "works for": ["verb>works_for"]}. Option relation_words adds to it.';

create or replace function pgrecall_internal._asked_edges(
  request pgrecall_internal.request,
  out keys text[], out bits integer[], out causes text, out is_root boolean,
  out is_prevention boolean)
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_generic_plan
set jit = off
as $$
declare
  own     jsonb := coalesce(request.options -> 'relation_words', 'null');
  query   text := lower(request.query);
  words   text[];
  starts  integer[];
  ends    integer[];
  firsts  integer[];  -- phrases of the question that ask for something: their words, and how many
  lasts   integer[];  -- follow the first
  mores   integer[];
  phrases text[];
begin
  if request.named = '{}' and query !~ ('[' || pgrecall_internal._unspaced() || ']') then
    -- Where the words stand tells whether they are part of a name.
    words := (string_to_array(
      btrim(regexp_replace(left(query, 4000), '[^[:alnum:]]+', ' ', 'g')), ' '))[:200];
  else
    select array_agg(w.word order by w.starts_at), array_agg(w.starts_at order by w.starts_at),
           array_agg(w.ends_at order by w.starts_at)
    into   words, starts, ends
    from   pgrecall_internal._words(query) as w;
  end if;

  -- Most questions ask for no edge: the lexicon, a constant of the plan, is asked first.
  select array_agg(p.first), array_agg(p.last), array_agg(p.more), array_agg(p.word)
  into   firsts, lasts, mores, phrases
  from   unnest(words, words[2:], words[3:]) with ordinality as w(a, b, c, n)
  cross  join lateral (
    values (w.n, w.n, 0, w.a), (w.n, w.n + 1, 1, w.a || ' ' || w.b),
           (w.n, w.n + 2, 2, w.a || ' ' || w.b || ' ' || w.c),
           -- "What did it cause", "where is Ana from": a phrase around what it is about.
           (w.n, w.n, 1, case when w.n <= cardinality(words) - 2
                           then w.a || ' ' || words[cardinality(words)] end)
  ) as p(first, last, more, word)
  where  pgrecall_internal._relation_words() ? p.word or own ? p.word;
  if phrases is null then
    keys := '{}';
    bits := '{}';
    is_root := false;
    is_prevention := false;
    return;
  end if;

  with name as materialized (
    select min(u.n) as first, max(u.n) as last
    from   unnest(request.named) as e
    join   unnest(starts, ends) with ordinality as u(starts_at, ends_at, n)
      on   u.starts_at >= e.starts_at and u.ends_at <= e.ends_at
    group  by e.starts_at, e.ends_at
  ),
  phrase as materialized (
    select p.first, p.last, p.more, own -> p.word as meanings,
           pgrecall_internal._relation_words() -> p.word as known
    from   unnest(firsts, lasts, mores, phrases) as p(first, last, more, word)
    where  not exists (select from name n where p.first <= n.last and p.last >= n.first)
  ),
  asked as materialized (
    select m.meaning, split_part(translate(m.meaning, '<', '>'), '>', 1) as role,
           substr(m.meaning, 6) as kind, substr(m.meaning, 5, 1) = '>' as is_forth,
           -- A name after a verb is its object, a name before a verb its subject.
           p.first > (select min(n.last) from name n) as is_behind,
           dense_rank() over (order by p.first, p.last) as n, p.more
    from   phrase p
    cross  join lateral (
      select jsonb_array_elements_text(p.meanings)
      union all
      select k
      from   jsonb_array_elements_text(p.known) as m, pgrecall_internal._meanings(m) as k
      where  p.meanings is null
      union all
      -- The row itself, for kinds in other words: _alike_keys().
      select left(m, 5) || '#' || substr(m, 6)
      from   jsonb_array_elements_text(p.known) as m
      where  p.meanings is null and m not like 'link%'
    ) as m(meaning)
    where  not exists (  -- the longest phrase wins
      select from phrase l
      where  l.first <= p.first and l.last >= p.last and l.more > p.more)
  ),
  key as (
    select a.kind || d.way as key, bit_or(1 << (a.n - 1)::integer) as bits
    from   asked a
    cross  join lateral (
      select case when a.is_forth then '>' else '<' end
      where  a.role = 'noun' or a.is_behind is not false
      union
      select case when a.is_forth then '<' else '>' end
      where  a.role = 'verb' and a.is_behind is not true
    ) as d(way)
    where  a.role in ('noun', 'verb') and a.n <= 12
    group  by 1
  )
  select coalesce((select array_agg(k.key order by k.key) from key k), '{}'),
         coalesce((select array_agg(k.bits order by k.key) from key k), '{}'),
         (select case when a.kind in ('root', 'prevention') then 'cause' else a.kind end
          from   asked a
          where  a.role = 'link'
          order  by a.more desc, a.n
          limit  1),
         coalesce((select bool_or(a.kind = 'root') from asked a where a.role = 'link'), false),
         coalesce((select bool_or(a.kind = 'prevention') from asked a where a.role = 'link'), false)
  into   keys, bits, causes, is_root, is_prevention;
end;
$$;
comment on function pgrecall_internal._asked_edges is
'The edges that a query asks for. keys: kinds of relations with the direction in which to follow '
'them, reports_to> along and reports_to< against the relation, and rows of the lexicon, #1>. '
'bits: the words of the query that ask for the key, one bit each. causes: cause or effect, the '
'direction of causal links. is_root: whether the query asks for the cause behind all others. '
'is_prevention: whether it asks for what prevented something. A noun gives the direction itself, '
'a verb by its position before or after the name.';
