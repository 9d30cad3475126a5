create type pgrecall.arm_hit as (
  arm       text,
  memory_id bigint,
  rank      integer,
  score     double precision
);
comment on type pgrecall.arm_hit is
'What an arm found: the id of a memory or message, its rank in the arm from 1, and the arm''s own '
'score.';

create type pgrecall.named_entity as (
  entity_id  bigint,
  matched    text,
  confidence real
);
comment on type pgrecall.named_entity is
'An entity that a query names, as query_entities() finds it: looked up once, handed from arm to '
'arm.';

-- A type, not "returns table": a column can be added to it without dropping the functions that
-- return it.
create type pgrecall.recalled as (
  rank         integer,
  memory_id    bigint,
  kind         text,
  fact_type    text,
  text         text,
  context      text,
  fact_key     text,
  source_id    text,
  tags         text[],
  metadata     jsonb,
  occurred     tstzrange,
  mentioned_at timestamptz,
  confidence   real,
  score        double precision,
  arms         jsonb,
  relevance    double precision,
  proof_count  integer
);
comment on type pgrecall.recalled is
'A row of hybrid_recall(): a memory, or a raw message (kind = message: memory_id is its '
'message_id, context its speaker, '
'source_id its session). arms: {"lexical": {"rank": 1, "score": 7.3, "contribution": 0.0164}, '
'...}. relevance: how likely the row answers the query, 0 to 1; confidence and proof_count are '
'those of the fact.';

create type pgrecall.turn as (
  place      integer,
  message_id bigint,
  session_id text,
  role       text,
  speaker    text,
  text       text,
  sent_at    timestamptz
);
comment on type pgrecall.turn is
'A row of message_context(). place: 0 is the message asked for, -1 the one before, 1 the one '
'after.';
