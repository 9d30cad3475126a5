-- Similarity: the value of a cosine on the scale of a bank (operations/calibration.sql), the
-- direction of questions, by which the semantic arm recognises a vector that is near all of them,
-- and that of names of people (retain/short-name.sql).
create or replace function pgrecall_internal._similarity(
  cosine double precision, low double precision, high double precision)
returns double precision
language sql immutable parallel safe
return case
  when low is null then cosine
  when cosine < high then greatest(-1, 0.2 + 0.5 * (cosine - low) / (high - low))
  else 0.7 + 0.3 * (cosine - high) / (1 - high)
end;
comment on function pgrecall_internal._similarity is
'The similarity that a cosine counts as: 0.2 at low, 0.7 at high, 1 at 1, linear between and '
'below, -1 at least. The cosine itself where low is null.';

create or replace function pgrecall_internal._similarity_of(
  kind text, distance double precision, low double precision, high double precision)
returns double precision
language sql immutable parallel safe
return pgrecall_internal._similarity(1 - distance, low, high)
       - case kind when 'part' then 0.05 else 0 end;
comment on function pgrecall_internal._similarity_of is
'The similarity of a memory to a question by one of its embeddings, at this cosine distance. Parts '
'of a long text lose 0.05: of many texts one is near by chance.';

create or replace function pgrecall_internal._question_direction(model text, dimensions integer)
returns halfvec
language sql immutable parallel safe
return case when model = 'pgrecall-small-2' and dimensions = 768 then (
    '[-3,0,1,-2,-2,-1,4,3,1,-2,1,2,-2,7,-1,-4,-1,1,-1,-3,2,0,-4,3,-1,-5,1,-1,3,8,1,4,-2,-8,4,-2,2,'
    '-4,-3,-7,-1,-3,0,-1,-1,3,4,3,-2,-5,1,4,-1,3,4,-5,0,2,0,2,-2,2,0,-2,2,-5,-2,-2,-5,1,-1,2,2,7,'
    '2,-1,3,5,0,2,-4,-2,-4,-5,3,0,-4,-2,2,-2,-6,4,4,1,-8,3,0,-4,-5,1,4,-1,3,-1,-4,0,0,-1,6,4,-3,'
    '0,-4,-3,-2,-2,5,1,1,1,4,16,4,0,-4,0,5,-2,-1,5,1,5,-4,0,1,-3,2,-1,-4,-1,2,-2,-3,-3,4,0,0,-2,'
    '-3,-2,7,1,-3,0,4,0,7,1,-1,-1,4,-2,-7,7,3,1,0,-6,-3,-1,2,2,-1,-4,-2,1,1,4,0,0,6,0,-4,3,-3,2,'
    '5,1,-1,1,0,1,2,3,-6,-1,0,-10,1,-3,5,5,-3,6,-1,-2,1,-4,0,0,-1,-1,2,1,-6,4,1,6,0,2,-2,-1,-2,'
    '-3,2,-2,5,-2,-2,2,-3,-6,5,2,1,7,-2,0,0,6,-3,-9,0,-1,-1,9,-3,0,0,0,4,-5,-3,3,2,3,-1,2,1,3,2,'
    '0,2,-6,-2,-4,0,-9,-3,3,0,-1,-6,2,-3,2,5,-2,-4,1,-1,6,0,3,-2,3,-4,4,-3,6,5,2,1,0,4,-10,2,-3,'
    '2,-3,-2,3,-9,6,-2,-7,-7,-2,1,0,-4,1,-4,3,0,-2,0,3,-1,2,0,-8,-4,1,-2,-3,-1,-1,0,-1,-7,-1,0,'
    '-2,2,0,-7,-3,7,1,8,3,3,1,6,1,5,0,4,-4,0,-7,6,4,2,2,3,8,-1,-1,1,1,-1,0,3,3,7,-2,-2,13,-1,2,1,'
    '-2,-3,5,-4,-8,-1,5,-4,-5,-3,2,-1,5,-1,2,0,1,4,1,-2,0,1,0,-1,-2,-3,-1,0,-4,-1,0,-1,0,3,2,1,2,'
    '-3,0,2,-2,-3,2,2,2,-2,2,6,2,0,0,-1,-4,0,0,-3,-1,1,-3,3,-1,-1,-2,-2,-4,1,2,1,0,3,1,0,-1,-4,4,'
    '3,-3,-3,-2,-1,-1,1,-3,0,-5,-1,-3,4,-1,0,-4,-1,-3,-3,3,0,0,1,-4,-1,0,-2,-3,-1,2,-3,1,-2,0,-1,'
    '6,1,4,2,-1,-4,-2,0,1,0,0,-3,-2,0,1,1,-1,2,1,-1,-3,4,2,-2,2,-4,1,-3,0,1,-1,0,3,5,2,-2,0,1,-1,'
    '0,-2,-1,-5,1,0,-5,3,-2,0,1,7,0,1,0,0,2,0,3,2,-1,3,0,0,2,4,-1,-7,0,0,1,0,1,1,-3,0,-1,1,1,1,0,'
    '0,-1,0,2,2,1,-1,2,2,3,4,1,1,-1,1,0,-1,-1,-1,-3,2,-2,-2,-3,0,-3,0,0,-1,0,0,1,2,-2,-3,1,0,-2,'
    '0,-4,-1,2,-4,-4,0,-1,0,-2,3,2,-3,0,2,3,1,0,-3,2,0,2,0,5,-1,-1,-2,1,2,-4,1,-1,3,2,-3,-7,-3,1,'
    '-1,-6,3,-1,5,0,1,-2,-2,3,-3,0,9,0,2,0,2,1,1,-2,2,0,0,-1,-2,1,0,2,0,2,-1,-3,1,0,2,-1,-1,0,-1,'
    '5,1,-1,1,-2,5,-3,-2,-3,0,-5,-3,-1,2,0,-1,1,-1,1,-1,0,-3,2,-1,1,0,-1,4,-1,-3,1,1,2,1,-1,4,-1,'
    '3,1,1,4,1,0,-2,-4,1,2,-1,0,0,-1,1,0,4,0,2,1,2,-5,-3,-2,1,-2,0,3,-5,-2,3,0,4,4,2,-3,1,-1,-2,'
    '-2,3,1,2,1,-3,1,-3,-4,1,2,0,2,0]')::halfvec end;
comment on function pgrecall_internal._question_direction is
'The direction that the embeddings of questions of a model share, of any length: the mean of 800, '
'as bench/training/question_direction.py prints it. Null where it is not known.';

create or replace function pgrecall_internal._person_direction(bank pgrecall.bank)
returns halfvec
language sql immutable parallel safe
return case when (bank).embedding_model = 'pgrecall-small-2' and (bank).embedding_mean is null
             and (bank).embedding_dimensions = 768 then (
    '[-1,6,-3,2,2,1,3,-2,3,1,4,-2,4,1,1,3,-5,-8,4,0,-3,0,0,-1,-6,-1,5,-10,-2,5,1,3,-1,0,1,1,2,-9,'
    '5,-4,6,4,-2,-1,2,2,0,-2,-7,1,-5,3,0,0,4,-4,1,5,-2,9,-4,1,-1,10,-1,1,-3,-5,-2,2,4,1,1,2,-1,2,'
    '-4,1,2,1,3,1,2,7,-5,2,-3,-2,-3,-1,1,-5,-3,7,8,1,1,1,-3,2,-1,-1,-1,-2,-4,0,0,0,-1,2,-8,3,2,1,'
    '-1,1,7,3,-4,-1,2,-3,0,1,1,-5,7,3,3,6,2,0,-2,1,1,-4,-1,-1,-3,-3,-1,-1,-4,-8,3,-1,5,0,-1,1,-3,'
    '-1,-1,2,4,1,5,-1,-4,-3,3,-1,5,2,0,0,4,-1,-1,2,-4,-5,1,6,0,0,1,8,-3,9,4,3,-1,1,-4,-3,0,2,3,2,'
    '-2,-2,1,3,-1,3,-2,2,0,1,1,2,0,3,4,-1,-1,0,-3,0,1,-3,-3,3,-1,5,-1,0,-4,-1,-4,2,5,-5,1,0,4,6,'
    '-5,-2,3,-4,-1,3,-8,0,0,0,5,3,5,-3,-2,0,-2,-2,-3,2,-5,2,2,-2,-1,2,-13,1,-6,0,-2,-4,4,0,3,8,'
    '-2,-3,1,-2,2,5,-1,-2,0,-2,-4,3,-3,-4,-4,1,-4,0,2,2,1,4,0,3,-4,4,-1,-4,4,-6,-1,-9,3,2,-1,0,3,'
    '-2,-4,6,-7,4,1,-5,1,-4,-3,-1,-2,3,2,4,-4,4,-2,-8,-5,8,-1,-1,-1,-3,1,-2,6,-5,4,-2,0,-3,-4,9,'
    '-3,-9,2,1,3,11,1,4,-1,0,-1,2,-2,-3,-1,-6,-2,4,-3,0,-1,1,-2,-5,1,2,-4,2,-1,0,-1,-3,3,8,0,-1,'
    '-1,2,-4,1,-3,1,-7,-3,-4,1,2,-1,-5,-1,1,4,2,-3,-1,2,3,0,-1,4,2,1,2,1,1,5,-1,0,-1,7,-4,-1,-2,'
    '-2,-1,-3,-2,-1,2,-1,0,-2,3,-2,-2,-1,-3,-1,-1,-3,0,-4,3,-1,-3,2,2,4,-2,-4,2,1,1,-3,-3,-3,2,0,'
    '-4,2,-2,-4,-3,2,0,-1,-1,3,0,-1,-2,-2,-1,3,5,-3,2,1,-4,0,-3,-2,-2,-1,0,1,-2,3,-4,3,-1,1,-2,'
    '-2,-4,4,-6,6,-1,2,1,2,0,-3,3,-1,-1,-5,1,2,2,-1,0,0,-4,-3,4,-2,2,2,1,4,0,-4,0,0,-1,0,2,-1,2,'
    '-3,1,-2,1,-3,-5,2,-1,-4,1,4,0,1,7,-2,-1,2,-1,0,1,-3,1,-4,1,2,2,4,4,3,1,1,0,0,-3,1,-1,-2,-2,'
    '7,-2,3,-7,-1,4,0,5,3,2,-2,3,-3,0,-3,0,-1,-1,0,-1,3,0,-1,1,-1,1,-2,-2,3,6,-6,-2,0,-1,0,-1,0,'
    '1,-3,2,3,5,1,-2,2,-1,2,4,2,0,-1,1,0,-3,1,-1,2,-3,-5,-1,4,4,0,0,-1,-1,0,1,-1,0,-1,3,0,1,1,2,'
    '1,-3,2,0,1,-2,-1,1,4,-2,-1,3,2,-4,2,3,-2,1,0,-5,-4,2,0,3,-2,3,1,-1,-1,-2,-1,-2,0,1,1,3,1,-1,'
    '1,-1,-2,-2,-2,1,-3,0,1,4,2,-1,1,-1,-3,0,1,-1,-4,-1,-1,1,3,0,-1,0,-1,-1,3,1,-4,4,0,-1,0,-2,4,'
    '-6,-3,3,1,2,4,1,2,-1,3,3,-2,3,3,-3,-6,3,-2,0,1,3,2,-2,-1,0,1,3,2,1,0,-3,-2,2,0,3,-1,4,0,-4,'
    '-1,2,-1,2,-2,-2,0,0,-4,0,-3,-3,1,2,-4,1,0,-1,-1,5,2,3,0]')::halfvec end;
comment on function pgrecall_internal._person_direction is
'The direction of names of people among the embeddings of names by a bank''s model, as '
'bench/training/person_direction.py prints it. Null where it is not known.';

create or replace function pgrecall_internal._person_odds(embedding halfvec, direction halfvec)
returns double precision
language sql immutable parallel safe
return 66.9 * (1 - (embedding <=> direction)) - 8.05;
comment on function pgrecall_internal._person_odds is
'The natural logarithm of the odds that a name is one of a person, by its embedding and '
'_person_direction(), as bench/training/person_direction.py prints it.';
