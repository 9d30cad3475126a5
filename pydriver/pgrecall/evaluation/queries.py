"""SQL statements of the evaluation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from psycopg.rows import tuple_row
from psycopg.types.json import Jsonb

from pgrecall.calls.call import Call
from pgrecall.calls.values import checked
from pgrecall.rows import ArmFinding

_ID = re.compile("[0-9]{1,19}")


def fuse(
    hits: Sequence[ArmFinding], ways: Sequence[Mapping[str, object]], *, top_k: int
) -> Call[Any, list[tuple[list[int], list[float]]]]:
    """Fuse the same hits in many ways; return ids and scores of each.

    Args:
        hits: Hits of the arms.
        ways: Options of each fusion.
        top_k: Number of rows of each; ties at the last rank are included.

    """
    rows = [asdict(hit) for hit in hits]
    return Call(
        "with h as materialized (select array(select x from"
        " jsonb_populate_recordset(null::pgrecall.arm_hit, %(hits)s) as x) as hits)"
        " select array_remove(array_agg(f.memory_id), null), array_remove(array_agg(f.score), null)"
        " from h cross join unnest(%(ways)s::jsonb[]) with ordinality as w(options, place)"
        " left join lateral pgrecall.fuse(hits => h.hits, options => w.options) as f"
        " on f.rank <= %(top_k)s group by w.place order by w.place",
        {"hits": Jsonb(rows), "ways": [Jsonb(dict(way)) for way in ways], "top_k": top_k},
        tuple_row,
        list,
    )


def known_ids(bank: str, ids: Sequence[str]) -> Call[Any, list[tuple[str, str]]]:
    """Return the ids that a bank holds, as pairs of field name and id."""
    return Call(
        "select 'memory_id', f.memory_id::text from pgrecall.fact f"
        " where f.bank_id = %(bank)s and f.memory_id = any (%(numbers)s::bigint[])"
        " union select 'memory_id', t.message_id::text from pgrecall.message t"
        " where t.bank_id = %(bank)s and t.message_id = any (%(numbers)s::bigint[])"
        " union select 'fact_key', f.fact_key from pgrecall.fact f"
        " where f.bank_id = %(bank)s and f.fact_key = any (%(ids)s::text[])"
        " union select 'source_id', f.source_id from pgrecall.fact f"
        " where f.bank_id = %(bank)s and f.source_id = any (%(ids)s::text[])"
        " union select 'source_id', t.session_id from pgrecall.message t"
        " where t.bank_id = %(bank)s and t.session_id = any (%(ids)s::text[])",
        {
            **checked(bank=bank, ids=list(ids)),
            "numbers": [int(i) for i in ids if _ID.fullmatch(i) and int(i) < 2**63],
        },
        tuple_row,
        list,
    )


def identities(
    bank: str, memory_ids: Sequence[int]
) -> Call[Any, list[tuple[int, str | None, str | None, datetime | None]]]:
    """Return memory_id, fact_key, source_id and mentioned_at of memories and messages."""
    return Call(
        "select f.memory_id, f.fact_key, f.source_id, f.mentioned_at from pgrecall.fact f"
        " where f.bank_id = %(bank)s and f.memory_id = any (%(memory_ids)s::bigint[])"
        " union all select t.message_id, null, t.session_id, t.sent_at from pgrecall.message t"
        " where t.bank_id = %(bank)s and t.message_id = any (%(memory_ids)s::bigint[])",
        {**checked(bank=bank), "memory_ids": list(memory_ids)},
        tuple_row,
        list,
    )
