-- The words by which people ask for relations: the boss of somebody, whom somebody reports to.
--
-- default_relation_words() is a lexicon of common relations (work, family, place, ownership,
-- membership) in the seven languages of the temporal grammar. A word has meanings of the form
-- "noun>kind": X's word is where a relation of that kind leads from X; "noun<kind": where it leads
-- from to X; "verb>kind" and "verb<kind": X does it to whom the relation leads to, or comes from.
-- Option relation_words adds words to it, for a call or for a bank. Words of the kinds themselves
-- ("skippers", "customer_of") need no entry: _kind_means() derives them.
create or replace function pgrecall_internal._relation_rows()
returns table (forth text, back text, nouns text, inverse_nouns text, verbs text,
               inverse_verbs text)
language sql immutable parallel safe
begin atomic
  values
    ('reports_to answers_to managed_by supervised_by works_under',
     'manages supervises boss_of manager_of oversees',
     'boss,bosses,manager,managers,supervisor,supervisors,superior,superiors,line manager,chief,'
     'chef,chefin,vorgesetzter,vorgesetzte,jefe,jefa,supervisora,patron,patronne,responsable,'
     'supérieur,supérieure,capo,responsabile,superiore,baas,leidinggevende,chefe,gestor,gestora',
     'subordinate,subordinates,direct report,direct reports,report,reports,underling,underlings,'
     'mitarbeiter,untergebener,subordinado,subordonné,subordinato,ondergeschikte',
     'report to,reports to,reported to,reporting to,answer to,answers to,managed by,supervised by,'
     'work under,works under,berichtet an,rapporteert aan',
     'manage,manages,managed,supervise,supervises,supervised,oversee,oversees'),
    ('mentored_by coached_by advised_by', 'mentors mentor_of coaches advises',
     'mentor,mentors,coach,coaches,adviser,advisor,mentorin,mentora,conseiller',
     'mentee,mentees,protégé,protegee,protege,schützling',
     'mentored by,coached by,advised by,learn from,learns from',
     'mentor,mentors,mentored,coach,coaches,coached,advise,advises'),
    ('married_to spouse_of partner_of wife_of husband_of',
     'married_to spouse_of partner_of wife_of husband_of',
     'wife,husband,spouse,partner,frau,mann,ehefrau,ehemann,esposa,esposo,marido,mujer,femme,mari,'
     'épouse,époux,moglie,marito,vrouw,echtgenoot,echtgenote,mulher',
     '', 'married to,marry,married,verheiratet mit,casado con,casada con,marié à,sposato con', ''),
    ('child_of son_of daughter_of', 'parent_of mother_of father_of',
     'parent,parents,mother,father,mum,mom,dad,mutter,vater,eltern,madre,padre,mère,père,moeder,'
     'vader,mãe,pai',
     'child,children,son,sons,daughter,daughters,kid,kids,kind,kinder,sohn,tochter,hijo,hija,fils,'
     'fille,figlio,figlia,zoon,dochter,filho,filha',
     '', ''),
    ('sibling_of brother_of sister_of', 'sibling_of brother_of sister_of',
     'sibling,siblings,brother,brothers,sister,sisters,bruder,schwester,geschwister,hermano,'
     'hermana,'
     'frère,sœur,soeur,fratello,sorella,broer,zus,irmão,irmã',
     '', '', ''),
    ('lives_in resides_in based_in home_town', '',
     'home,home town,hometown,home city,city,town,residence,wohnort,ciudad,ville,città,woonplaats,'
     'cidade', 'resident,residents,inhabitant,inhabitants',
     'live,lives,lived,living,reside,resides,based,call home,calls home,wohnt,lebt,vive,habite,vit,'
     'abita,woont,mora', ''),
    ('works_at works_for employed_by', 'employs',
     'employer,company,firm,workplace,arbeitgeber,empresa,employeur,entreprise,datore di lavoro,'
     'werkgever,empregador',
     'employee,employees,staff,worker,workers,angestellte,empleado,employé,dipendente,werknemer',
     'work for,works for,worked for,work at,works at,employed by,work,works,working,arbeitet,'
     'trabaja,travaille,lavora,werkt,trabalha', 'employ,employs'),
    ('member_of part_of belongs_to on_team', 'has_member',
     'team,group,department,unit,division,squad,abteilung,equipo,équipe,squadra,afdeling,equipe',
     'member,members,mitglied,miembro,membre,membro,lid',
     'belong to,belongs to,member of,part of', ''),
    ('led_by headed_by run_by', 'leads heads runs manages captains skippers chairs directs',
     'leader,leaders,lead,head,captain,skipper,chair,director,leiter,leiterin,líder,chef d''équipe',
     '', 'led by,headed by,run by,headed up by',
     'lead,leads,led,head,heads,run,runs,captain,captains,chair,chairs,direct,directs,in charge of,'
     'leitet,dirige,leidt,lidera'),
    ('works_on assigned_to contributes_to', '',
     'project,projects,projekt,proyecto,projet,progetto,projeto',
     'developer,developers,contributor,contributors,engineer,engineers',
     'work on,works on,working on,worked on,assigned to', ''),
    ('owned_by belongs_to', 'owns owner_of possesses',
     'owner,owners,besitzer,besitzerin,dueño,dueña,propriétaire,proprietario,proprietaria,eigenaar,'
     'dono,dona', '', 'owned by,belong to,belongs to,gehört', 'own,owns,owned,possess,possesses'),
    ('made_by built_by produced_by manufactured_by',
     'makes made builds built produces manufactures maker_of',
     'maker,builder,manufacturer,producer,hersteller,fabricante,fabricant,produttore,fabrikant', '',
     'made by,built by,produced by,manufactured by',
     'make,makes,made,build,builds,built,produce,produces,manufacture,manufactures'),
    ('located_in lies_in situated_in based_in', '',
     'location,country,region,place,site,ort,land,lugar,lieu,luogo,plaats', '',
     'located in,located,lie,lies,situated,stand,stands', ''),
    ('born_in', '', 'birthplace,place of birth,geburtsort,lugar de nacimiento', '',
     'born in,born,geboren,nació,nata,nato', ''),
    ('sells_to supplies', 'customer_of client_of buys_from',
     'customer,customers,client,clients,buyer,buyers,kunde,kunden,cliente,klant',
     'supplier,suppliers,vendor,vendors,lieferant,proveedor,fournisseur,fornitore,leverancier',
     'supply,supplies,sell to,sells to', 'buy from,buys from'),
    ('friend_of knows', 'friend_of knows',
     'friend,friends,freund,freundin,amigo,amiga,ami,amie,amico,amica,vriend,vriendin', '',
     'know,knows', ''),
    ('colleague_of works_with', 'colleague_of works_with',
     'colleague,colleagues,coworker,coworkers,kollege,kollegin,colega,collègue,collega', '',
     'work with,works with', ''),
    ('taught_by student_of', 'teaches teacher_of',
     'teacher,teachers,lehrer,lehrerin,profesor,professeur,insegnante,leraar,professor',
     'student,students,pupil,pupils,schüler', 'taught by', 'teach,teaches,taught'),
    ('treated_by patient_of', 'treats doctor_of',
     'doctor,physician,therapist,dentist,arzt,ärztin,médico,médecin,medico,dokter',
     'patient,patients', 'treated by', 'treat,treats');
end;
comment on function pgrecall_internal._relation_rows is
'The lexicon of relations: kinds that lead from X to Y, kinds that lead from Y to X, nouns for Y '
'as seen from X and for X as seen from Y, verbs of X and of Y.';

create or replace function pgrecall.default_relation_words()
returns jsonb
language sql immutable parallel safe
begin atomic
  select jsonb_object_agg(w.word, w.meanings)
  from (
    select m.word, jsonb_agg(distinct m.role || m.direction || m.kind) as meanings
    from (
      select btrim(n.word) as word, n.role,
             case n.is_forth when d.is_forth then '>' else '<' end as direction, d.kind
      from   pgrecall_internal._relation_rows() as r
      cross  join lateral (
        select x as word, 'noun' as role, true as is_forth
        from string_to_table(r.nouns, ',') as x
        union all
        select x as word, 'noun' as role, false as is_forth
        from string_to_table(r.inverse_nouns, ',') as x
        union all
        select x as word, 'verb' as role, true as is_forth
        from string_to_table(r.verbs, ',') as x
        union all
        select x as word, 'verb' as role, false as is_forth
        from string_to_table(r.inverse_verbs, ',') as x
      ) as n
      cross  join lateral (
        select x as kind, true as is_forth
        from string_to_table(r.forth, ' ') as x
        union all
        select x as kind, false as is_forth
        from string_to_table(r.back, ' ') as x
      ) as d
      where  n.word <> '' and d.kind <> ''
    ) as m
    group  by m.word
  ) as w;
end;
comment on function pgrecall.default_relation_words is
'Words that ask for a relation, each with its meanings: {"boss": ["noun>reports_to", '
'"noun<manages"], "works for": ["verb>works_for"]}. Option relation_words adds to it.';

create or replace function pgrecall_internal._kind_means(
  kind text, is_forth boolean, word text)
returns boolean
language plpgsql immutable parallel safe
as $$
declare
  parts text[] := string_to_array(lower(replace(kind, ' ', '_')), '_');
  asked text[] := string_to_array(word, ' ');
  stem  text := coalesce((ts_lexize('pg_catalog.english_stem', parts[1]))[1], parts[1]);
  first text := coalesce((ts_lexize('pg_catalog.english_stem', asked[1]))[1], asked[1]);
begin
  if cardinality(parts) > 1 and parts[cardinality(parts)] = 'of' then
    -- customer_of: X's customers are those from whom it leads to X.
    return not is_forth and first = stem;
  end if;
  -- mentors: X's mentor; skippers: X's skipper; leads: X's leader.
  return not is_forth and first in (stem, stem || 'er', stem || 'or');
end;
$$;
comment on function pgrecall_internal._kind_means is
'Whether a word that no lexicon has asks for a relation by its kind: skippers, customer_of.';
