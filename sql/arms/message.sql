-- The message arm: raw messages that share words with the query, by BM25 as in the lexical arm.
--
-- It covers what was not extracted as a fact. No other arm finds messages, so the score itself says
-- how certain a hit is: it is the share of the highest score that the words of the query allow.
-- Beside messages that were sent in the window of a request those of another time count half.
-- Filters apply to memories, so a recall with a filter leaves messages out. Rows of this arm are of
-- kind message; message_context() returns what was said before and after.
create or replace function pgrecall_internal._message_arm(
  request pgrecall_internal.request, before pgrecall.arm_hit[], is_planned boolean)
returns pgrecall_internal.arm_result
language plpgsql stable parallel safe
set search_path from current
as $$
declare
  result  pgrecall_internal.arm_result;
  search  record;
  nearest double precision;
begin
  if request.message_terms is null then
    result.reason := 'the bank holds no messages';
  elsif not pgrecall_internal._has_word(request, 'message', request.message_terms) then
    result.reason := 'no message has a word of the query';
  elsif is_planned then
    result.reason := 'messages have words of the query';
    result.is_run := true;
  else
    search := pgrecall_internal._lexical_search(request, 'message', request.message_terms);
    result.is_run := true;
    result.memory_ids := search.memory_ids;
    -- Where none was sent near the window, all count in full.
    select coalesce(max(pgrecall_internal._nearness(m.sent_at, request.during)), 1)
    into   nearest
    from   unnest(search.memory_ids) as u(message_id)
    join   pgrecall.message m
      on   m.bank_id = (request.bank).bank_id and m.message_id = u.message_id
    where  request.during is not null;
    result.scores := array(
      select s.score / (request.message_terms).idf_sum / nearest
      from   unnest(search.scores) with ordinality as s(score, n)
      order  by s.n);
  end if;
  result.is_run := coalesce(result.is_run, false);
  return result;
end;
$$;
comment on function pgrecall_internal._message_arm is 'Worker of the message arm.';

create or replace function pgrecall.message_arm(
  bank text, query text, as_of timestamptz default now(), depth integer default 100)
returns setof pgrecall.ranked
language plpgsql volatile parallel unsafe rows 100
set search_path from current
as $$
begin
  return query
  select * from pgrecall_internal._ranked('message', pgrecall_internal._request(
    bank, query, as_of => as_of, options => jsonb_build_object('depth', depth), arm => 'message'));
end;
$$;
comment on function pgrecall.message_arm is
'Raw messages that share words with the query, sent by as_of; quotes and minus as in '
'lexical_arm(). memory_id is the message_id. score is BM25 over the sum of the query''s IDFs, '
'above 0: a short message with all words comes near 1. Errors: RC001, 22023.';
