"""Recalls: options, answers and explanations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from psycopg.types.json import Jsonb

from pgrecall.calls.call import (
    Call,
    call_record,
    call_records,
    call_value,
    column_names,
    made_of,
    named_arguments,
    period_of,
    row_of,
)
from pgrecall.calls.values import checked, filter_text, jsonable, listed
from pgrecall.errors import InvalidArgument
from pgrecall.options import LISTS
from pgrecall.rows import (
    Arm,
    ArmFinding,
    ArmHit,
    ArmReport,
    Hit,
    Preparation,
    RecallOption,
    RecallStep,
    Reranked,
    TypeHint,
)


class Answer(NamedTuple):
    """The hits of a recall and the report on its run."""

    hits: list[Hit]
    arms: list[ArmReport]


def recall_options() -> Call[RecallOption, list[RecallOption]]:
    """List the options of a recall."""
    return call_records(RecallOption, "recall_options")


def arms() -> Call[Arm, list[Arm]]:
    """List the retrieval arms."""
    return call_records(Arm, "arms")


def prepare_recall(bank: str, query: str, *, before: datetime) -> Call[Preparation, Preparation]:
    """Prepare a query before it is embedded."""
    return call_record(
        Preparation, "prepare_recall", {"bank": bank, "query": query, "before": before}
    )


def highlight(
    bank: str, memory_id: int, query: str, *, start_mark: str | None, end_mark: str | None
) -> Call[str, str]:
    """Mark the words of a memory that match a query."""
    return call_value(
        "highlight",
        {"bank": bank, "memory_id": memory_id, "query": query},
        start_mark=start_mark,
        end_mark=end_mark,
    )


def type_hints(bank: str, query: str) -> Call[TypeHint, list[TypeHint]]:
    """List the fact types that the words of a query ask for."""
    return call_records(TypeHint, "type_hints", {"bank": bank, "query": query})


def recall_arguments(
    arguments: Mapping[str, object], options: Mapping[str, object]
) -> dict[str, object]:
    """Check and convert the arguments of recalls.

    Args:
        arguments: The named arguments, by name.
        options: What goes into the argument options, by name.

    """
    ready = {
        name: listed(value) if name in ("fact_types", "tags") else value
        for name, value in arguments.items()
        if value is not None
    }
    if "filter" in ready:
        ready["filter"] = filter_text(ready["filter"])
    ready["options"] = {
        name: jsonable(listed(value) if name in LISTS else value, name, InvalidArgument)
        for name, value in options.items()
    }
    checked(**ready)
    return ready


def recall_report(arguments: Mapping[str, object]) -> Call[Any, Answer]:
    """Find memories, best first, with the report on the run.

    The report is in the first row, which exists even without hits.
    """
    listing, parameters = named_arguments(None, **arguments)
    # Qualified, since a schema on the caller's path may have a better match than to_jsonb().
    return Call(
        "select h.*,"
        " case when coalesce(h.ordinality, 1) = 1 then pg_catalog.to_jsonb(r.arms) end as report"
        f" from pgrecall.recall_report({listing}) as r"
        " left join lateral pg_catalog.unnest(r.hits) with ordinality as h on true"
        " order by h.ordinality",
        parameters,
        _answer_row,
        _answer,
    )


def rerank(
    hits: Sequence[Hit],
    relevances: Sequence[float | None],
    *,
    boosts: Sequence[float],
    mode: str,
) -> Call[Reranked, list[Reranked]]:
    """Order hits by their fused scores and the relevances of the first ones."""
    rows = [
        {
            "memory_id": hit.memory_id,
            "score": hit.score,
            "arms": {
                name: {"contribution": arm.contribution, "named": arm.named}
                for name, arm in hit.arms.items()
            },
            "via": {} if hit.via else None,  # that there is one
            "is_surplus": hit.is_surplus,
            "variant_of": hit.variant_of,
        }
        for hit in hits
    ]
    return Call(
        "select r.* from pgrecall.rerank(hits => array(select h"
        " from pg_catalog.jsonb_populate_recordset(null::pgrecall.recalled, %(hits)s) as h),"
        " relevances => %(relevances)s::pg_catalog.float8[],"
        " boosts => %(boosts)s::pg_catalog.float8[], mode => %(mode)s) as r order by r.rank",
        {
            "hits": Jsonb(rows),
            "relevances": [*relevances],
            "boosts": [*boosts],
            "mode": mode,
        },
        row_of(Reranked),
        list,
    )


def explain_recall(
    arguments: Mapping[str, Any], *, is_run: bool | None
) -> Call[ArmReport, list[ArmReport]]:
    """Report on each arm; with is_run false, only plan."""
    return call_records(ArmReport, "explain_recall", None, **arguments, is_run=is_run)


def arm_hits(arguments: Mapping[str, Any]) -> Call[ArmFinding, list[ArmFinding]]:
    """Return the hits of each arm before fusion."""
    return call_records(ArmFinding, "arm_hits", None, **arguments)


def why_not(arguments: Mapping[str, Any], memory_id: int) -> Call[RecallStep, list[RecallStep]]:
    """Return the place of a memory in a recall, or why it has none."""
    return call_records(RecallStep, "why_not", None, **arguments, memory_id=memory_id)


def _answer_row(
    cursor: Any,
) -> Callable[[Sequence[Any]], tuple[Hit | None, list[ArmReport]]]:
    names = column_names(cursor)

    def row(values: Sequence[Any]) -> tuple[Hit | None, list[ArmReport]]:
        column = dict(zip(names, values, strict=True))
        hit = _hit(column) if column["ordinality"] is not None else None
        return hit, [made_of(ArmReport, arm) for arm in column["report"] or ()]

    return row


def _answer(rows: list[tuple[Hit | None, list[ArmReport]]]) -> Answer:
    return Answer(
        [hit for hit, _ in rows if hit is not None], [arm for _, report in rows for arm in report]
    )


def _hit(column: Mapping[str, Any]) -> Hit:
    return made_of(
        Hit,
        {
            **column,
            "tags": tuple(column["tags"] or ()),
            "metadata": column["metadata"] or {},
            "occurred": period_of(column["occurred"]),
            "arms": {name: made_of(ArmHit, arm) for name, arm in column["arms"].items()},
            "fused_rank": column["rank"],
            "rerank_score": None,
            "final_score": column["score"],
            "conflicts_with": tuple(column["conflicts_with"] or ()),
        },
    )
