-- Similarity: what a cosine counts as, on the scale of a bank (operations/calibration.sql).
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
'What a cosine counts as: 0.2 at low, 0.7 at high, 1 at 1, linear between and below, -1 at least; '
'the cosine itself where low is null.';
