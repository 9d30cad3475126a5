-- The hypothetical arm: the semantic search for the embedding of a made-up answer, which a caller
-- with a language model passes as option hypothetical (HyDE, Gao et al. 2022).
--
-- Its worker is that of the semantic arm with the other embedding; the two differ in weight, so
-- that a made-up answer supports what the question finds and does not outvote it.
create or replace function pgrecall_internal._hypothetical_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql volatile parallel unsafe
set search_path from current
as $$
declare
  result pgrecall_internal.arm_result;
begin
  request.embedding := request.hypothetical;
  result := pgrecall_internal._semantic_arm(request, before, is_planned);
  if is_planned and result.is_run then
    result.reason := 'a hypothetical answer is given';
  end if;
  return result;
end;
$$;
comment on function pgrecall_internal._hypothetical_arm is 'Worker of the hypothetical arm.';

create or replace function pgrecall.hypothetical_arm(
  bank       text,
  embedding  anycompatible,
  fact_types text[] default null,
  filter     text default null,
  as_of      timestamptz default now(),
  depth      integer default 100,
  model      text default null)
returns setof pgrecall.ranked
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select * from pgrecall.semantic_arm(bank, embedding, fact_types, filter, as_of, depth, model);
end;
$$;
comment on function pgrecall.hypothetical_arm is
'The semantic arm for the embedding of a made-up answer (HyDE, Gao et al. 2022). Errors: as '
'semantic_arm().';
