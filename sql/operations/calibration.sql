-- Calibration: it puts the similarities of all embedding models on the same scale.
--
-- Some models give all texts a similar direction: two texts that have nothing in common have a
-- cosine of 0.7 or more. calibrate_bank() stores three things about a model. First, its mean
-- vector, which is subtracted from every embedding that enters the database, of facts and of
-- queries; callers send embeddings as the model returns them. Second, the two cosines that count as
-- a similarity of 0.2, the default floor of the semantic arm, and of 0.7, from which facts are
-- similar; between and beyond them, similarity is linear. Everything that compares similarities
-- gets them from _similarity(): floors, near copies, relevance, the arms that follow hits. Third,
-- the weights of the other arms where a question has an embedding.
--
-- The constants of each model are in bank.calibrations; those of the model that a bank is searched
-- by are columns of bank, generated from it, so that they change with the model. Without
-- calibration a similarity is the cosine. `pgrecall calibrate` measures the constants.
create or replace function pgrecall_internal._check_calibration(
  bank pgrecall.bank, calibration jsonb)
returns jsonb
language plpgsql stable parallel unsafe
set search_path from current
as $$
declare
  hint    constant text := 'Pass what "pgrecall calibrate" wrote: {"model": "e5-small", "mean": '
    '[0.01, -0.02], "low_cosine": 0.3, "high_cosine": 0.7}.';
  model   text := calibration ->> 'model';
  problem text;
  mean    halfvec;
  low     numeric;
  high    numeric;
begin
  problem := case
    when jsonb_typeof(calibration) <> 'object'
      then format('calibration must be an object, not %s', left(calibration::text, 80))
    when not calibration ?| '{mean,low_cosine,weights}'
      then 'calibration has none of "mean", "low_cosine" and "weights"'
    when (calibration ? 'low_cosine') <> (calibration ? 'high_cosine')
      then 'calibration must have both "low_cosine" and "high_cosine" or neither'
    else (
      select format('calibration: "%s" must be %s, not %s', c.key,
                    case when c.key like '%cosine' then 'a number'
                         when c.key = 'model' then 'the name of a model'
                         else 'left out: there is no such field' end,
                    left(c.value::text, 80))
      from   jsonb_each(case jsonb_typeof(calibration) when 'object' then calibration end) as c
      where  c.key not in ('mean', 'weights')
        and  jsonb_typeof(c.value) is distinct from case
               when c.key in ('low_cosine', 'high_cosine') then 'number'
               when c.key = 'model' then 'string' end
      limit  1)
  end;
  if problem is null and calibration ? 'low_cosine' then
    low := trim_scale(round((calibration ->> 'low_cosine')::numeric, 6));
    high := trim_scale(round((calibration ->> 'high_cosine')::numeric, 6));
    if low <= -1 or low >= high or high >= 1 then
      problem := format('calibration: low_cosine must be below high_cosine, and both between -1 '
                        'and 1, not %s and %s', left(calibration ->> 'low_cosine', 20),
                        left(calibration ->> 'high_cosine', 20));
    end if;
  end if;
  if problem is null then
    bank.embedding_mean := null;
    mean := pgrecall_internal._embedding_field('calibration.mean', calibration -> 'mean', bank);
    if l2_norm(mean) >= 1 then
      problem := format('calibration.mean has a length of %s, not below 1', l2_norm(mean)::real);
    end if;
  end if;
  if problem is not null then
    raise exception using
      errcode = 'invalid_parameter_value', message = problem, hint = hint;
  end if;
  perform pgrecall_internal._checked_embedding(bank, 'calibration', null, model);
  perform pgrecall_internal._check_by_arm(
    'weight', coalesce(nullif(calibration -> 'weights', 'null'), '{}'), 0, 1000000);
  return jsonb_strip_nulls(jsonb_build_object(
    'mean', mean::text, 'low_cosine', low, 'high_cosine', high,
    'weights', calibration -> 'weights'));
end;
$$;
comment on function pgrecall_internal._check_calibration is
'A calibration as bank.calibrations keeps it; bank is as that model searches it. Errors: RC004, '
'RC005 another model, RC006 the mean, 22023.';

create or replace function pgrecall.calibrate_bank(bank text, calibration jsonb)
returns bigint
language plpgsql volatile parallel unsafe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  locked   pgrecall.bank;
  as_model pgrecall.bank;
  named    text;
  is_next  boolean;
  content  jsonb;
  added    jsonb;
  old_mean halfvec;
  new_mean halfvec;
  rewritten bigint := 0;
begin
  locked := pgrecall_internal._locked_bank(bank);
  as_model := locked;
  named := coalesce(calibration ->> 'model', locked.embedding_model);
  is_next := coalesce(named = locked.next_model, false);
  if locked.embedding_model is null and not is_next
     and (named is null or locked.embedding_dimensions is not null)
  then
    raise exception using
      errcode = 'RC005',
      message = format('bank "%s" has no model that could be calibrated', bank),
      hint    = case when locked.embedding_dimensions is null
        then 'Name it: {"model": "e5-small", ...}.'
        else 'Its embeddings were stored without a name of their model: retain a fact with one.'
      end;
  end if;
  if is_next then
    as_model := pgrecall_internal._as_next(locked);
    as_model.next_model := null;
  end if;
  old_mean := as_model.embedding_mean;
  content := coalesce(
    pgrecall_internal._check_calibration(as_model, nullif(calibration, 'null')), '{}');
  new_mean := content ->> 'mean';
  added := case when content = '{}' then '{}' else jsonb_build_object(named, content) end;

  update pgrecall.bank b
  set    calibrations         = (b.calibrations - named) || added,
         embedding_model      = coalesce(b.embedding_model, named),
         embedding_dimensions = coalesce(b.embedding_dimensions, vector_dims(new_mean))
  where  b.bank_id = calibrate_bank.bank;
  if old_mean is distinct from new_mean then
    update pgrecall.embedding e
    set    embedding = coalesce(
             case when old_mean is null then l2_normalize(e.embedding)
                  else e.embedding + old_mean end - new_mean,
             e.embedding + old_mean)
    where  e.bank_id = calibrate_bank.bank and e.model = named;
    get diagnostics rewritten = row_count;
  end if;
  return rewritten;
end;
$$;
comment on function pgrecall.calibrate_bank is
'Gives the model of a bank, or the model that it is being re-embedded with, its constants: '
'{"model": "e5-small", "mean": [0.01, -0.02], "low_cosine": 0.3, "high_cosine": 0.7}, as `pgrecall '
'calibrate` writes them. mean is subtracted from the direction of every embedding that is stored, '
'retained or asked with. A cosine of low_cosine then counts as a similarity of 0.2, a cosine of '
'high_cosine as 0.7, and 1 as 1. Without "mean" nothing is subtracted; without the other two, '
'similarities are cosines. "weights": {"lexical": 0.5}, which no command measures, are the weights '
'of arms for a question with an embedding, where neither bank nor call sets others. null removes a '
'calibration. Without "model" it is that of the bank; a bank without a model gets the one named. '
'Stored embeddings are rewritten in place where the mean changes; returns how many. A recall that '
'runs meanwhile may compare embeddings from before and after. Errors: RC001, RC004, RC005 another '
'model, or none, RC006, RC009 unknown arm, 22023.';
