-- Finding memories while their words are being typed.
--
-- find_memories() is list_memories() with words: whole ones are stemmed as in a recall, the last
-- one may be only begun. Nothing is ranked: the latest come first, and the key of a page is an id.
-- The vocabulary of the bank tells which words begin like the last one, and how common they are:
-- rare words are looked up in the lexical index, common ones are soon met by reading backwards.
create or replace function pgrecall_internal._typed_words(
  bank pgrecall.bank, words text,
  out required integer[], out begun integer[], out is_common boolean)
language plpgsql stable parallel safe
set search_path from current
set plan_cache_mode = force_custom_plan
as $$
declare
  config regconfig := bank.text_search_config::regconfig;
  typed  text := pgrecall_internal._normalised(words);
  last   text := substring(typed from '\S+$');
  terms  pgrecall_internal.terms;
  known  bigint;
begin
  -- Chinese, Japanese and Korean have no words that could be begun.
  if last ~ ('[' || pgrecall_internal._cjk() || ']') then
    last := null;
  end if;
  terms := pgrecall_internal._terms(bank.bank_id, 'memory', array(
    select l.lexeme
    from   pgrecall.lexemes(config, left(typed, length(typed) - coalesce(length(last), 0))) as l));
  required := coalesce(terms.dimensions, '{}');
  is_common := required = '{}' or 20 * terms.counts[1] > terms.documents;
  if last is null then
    return;
  end if;
  -- As it is typed, and stemmed where it is one word: facts that are not counted yet have it too.
  select array_agg(x.dimension), coalesce(sum(x.document_count), 0)
  into   begun, known
  from (
    select v.dimension, v.document_count
    from   pgrecall_internal.lexeme v
    where  v.bank_id = bank.bank_id and v.kind = 'memory'
      and  starts_with(v.lexeme, lower(last))
    order  by v.document_count desc, v.lexeme
    limit  200
  ) as x;
  begun := begun || pgrecall_internal._dimension(lower(last)) || array(
    select pgrecall_internal._dimension(min(l.lexeme))
    from   pgrecall.lexemes(config, last) as l
    having count(*) = 1);
  is_common := is_common and 20 * known > coalesce(terms.documents, 0);
end;
$$;
comment on function pgrecall_internal._typed_words is
'Words that are being typed, as dimensions: those that a memory must have, and of those that begin '
'like the last one any; null where the last one is complete. is_common: more than about a '
'twentieth of the memories have them.';

create or replace function pgrecall.find_memories(
  bank       text,
  words      text,
  filter     text default null,
  fact_types text[] default null,
  during     pgrecall_internal.period default null,
  as_of      timestamptz default now(),
  before_id  bigint default null,
  top_k      integer default 50)
returns setof pgrecall.stored_memory
language plpgsql stable parallel unsafe rows 50
set search_path from current
-- A page is read in the order of the primary key, not sorted: see below.
set enable_sort = off
set enable_seqscan = off
as $$
declare
  found_bank pgrecall.bank;
  condition  jsonb;
  visible    text;
  typed      record;
  has_words  text;
  branch     text;
  ids        bigint[];
  hint       text;
begin
  found_bank := pgrecall_internal._bank(bank);
  perform pgrecall_internal._check_range('top_k', top_k, 1, 100000);
  typed := pgrecall_internal._typed_words(found_bank, coalesce(words, ''));
  condition := pgrecall_internal._whole_filter(
    pgrecall_internal._parsed_filter(filter), null,
    pgrecall_internal._range_of_period(during),
    '{"time_mode": "filter", "time_basis": "mentioned"}');
  visible := case when as_of is null then pgrecall_internal._filter_sql(condition)
                  else pgrecall_internal._visible_sql(condition) end;
  fact_types := pgrecall_internal._fact_types(bank, fact_types);
  has_words := '
    {keys} @> pgrecall_internal._scoped_keys($1, {fact_type}, $6)
    and ($7 is null or {keys} && pgrecall_internal._scoped_keys($1, {fact_type}, $7))';
  if typed.is_common then
    -- Without its index, so that the primary key is read backwards until a page is full.
    has_words := replace(replace(has_words, '{fact_type}', 'm.fact_type'), '{keys}', '
      (pgrecall_internal._lexical_keys(m.bank_id, m.fact_type, m.lexical_weights)
       || array[]::bigint[])');
    branch := '
      select m.memory_id
      from (
        select x.*
        from   pgrecall.memory x
        where  x.bank_id = $1 and x.memory_id < $5
        order  by x.memory_id desc
        offset 0
      ) as m
      where  m.fact_type = any ($8)
        and  ' || visible || ' and ' || has_words || ' limit $4';
  else
    -- As in _lexical_search(): another collation rules out every index but the lexical one.
    has_words := replace(has_words, '{keys}',
      'pgrecall_internal._lexical_keys(m.bank_id, m.fact_type, m.lexical_weights)');
    branch := pgrecall_internal._union_all('
      select m.memory_id
      from   pgrecall.memory m
      where  m.bank_id collate "C" = $1 and m.fact_type is not distinct from {fact_type}
        and  m.memory_id < $5
        and  ' || visible || ' and ' || has_words || ' order by m.memory_id desc limit $4',
      fact_types);
  end if;
  -- The branches hold names and operators of ours, and literals of fact types: see filter.sql.
  execute format('select array(select f.memory_id from (%s) as f order by 1 desc limit $4)', branch)
  into    ids
  using   bank, as_of, condition, top_k, coalesce(before_id, 9223372036854775807),
          typed.required, typed.begun, fact_types;
  return query
  select s.* from pgrecall.stored_memories(bank, ids) as s;
exception when sqlstate 'RC000' or invalid_parameter_value then
  get stacked diagnostics hint = pg_exception_hint;
  raise exception using errcode = sqlstate, message = sqlerrm, hint = hint;
end;
$$;
comment on function pgrecall.find_memories is
'Memories that have all of these words in their text, context or key, latest stored first, for a '
'search while somebody types: words are compared as in a recall, and the last one may be only '
'begun, unless a space follows it. Without words: all. Other arguments, pages and errors are those '
'of list_memories(); a condition on entity goes into the filter.';
