"""Operations: versions, statistics, indexes, attached tables, replicas, the log of recalls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from psycopg.rows import scalar_row, tuple_row
from psycopg.types.json import Jsonb

from pgrecall.arguments import check_type
from pgrecall.calls.call import (
    Call,
    call_command,
    call_record,
    call_records,
    call_value,
    nothing,
    single,
)
from pgrecall.calls.values import listed
from pgrecall.rows import (
    AttachedTable,
    BankStatistics,
    IndexBuild,
    IndexStep,
    LoggedRecall,
    Maintained,
    RecallCheck,
    RecallTimes,
    RelationSize,
    Standby,
    SyncedTable,
)


def version() -> Call[str, str]:
    """Return the version of the schema."""
    return call_value("version")


def log_position() -> Call[str, str]:
    """Return a position in the log after everything committed."""
    return Call("select pgrecall.log_position()::pg_catalog.text", {}, scalar_row, single)


def replica_lag(*, at_most: float | None, after: str | None) -> Call[float | None, float | None]:
    """Measure the lag of a standby; fail if it is too large."""
    return call_value("replica_lag", at_most=at_most, after=after)


def read_committed() -> Call[Any, None]:
    """Let the transaction that has just begun see what others commit."""
    return Call("set transaction isolation level read committed", {}, tuple_row, nothing)


def refresh_statistics(bank: str, *, is_full: bool | None) -> Call[Any, None]:
    """Refresh the statistics of keyword search."""
    return call_command("refresh_statistics", {"bank": bank}, is_full=is_full)


def bank_statistics(bank: str) -> Call[BankStatistics, list[BankStatistics]]:
    """Return the statistics of keyword search."""
    return call_records(BankStatistics, "bank_statistics", {"bank": bank})


def vocabulary_drift(bank: str) -> Call[float | None, float | None]:
    """Compare a bank's frequent words with those of its snapshot."""
    return call_value("vocabulary_drift", {"bank": bank})


def snapshot_vocabulary(bank: str) -> Call[Any, None]:
    """Store a bank's most frequent words for a later comparison."""
    return call_command("snapshot_vocabulary", {"bank": bank})


def maintain(bank: str | None, *, batch_size: int | None) -> Call[Maintained, list[Maintained]]:
    """Do a part of the pending work."""
    return call_records(Maintained, "maintain", bank=bank, batch_size=batch_size)


def attach_table(
    bank: str,
    relation: str,
    *,
    key: str,
    text: str,
    fact_type: str | None,
    occurred: str | None,
    entities: Sequence[str],
    fields: Mapping[str, str | Sequence[str]] | None,
    apply: str | None,
    is_history_kept: bool | None,
) -> Call[AttachedTable, AttachedTable]:
    """Attach a table to a bank."""
    return call_record(
        AttachedTable,
        "attach_table",
        {"bank": bank, "relation": relation, "key": key, "text": text},
        fact_type=fact_type,
        occurred=occurred,
        entities=listed(entities) or None,
        fields=fields,
        apply=apply,
        is_history_kept=is_history_kept,
    )


def sync_table(
    bank: str, relation: str | None, *, batch_size: int | None
) -> Call[SyncedTable, list[SyncedTable]]:
    """Copy a batch of changed rows to a bank."""
    return call_records(
        SyncedTable, "sync_table", {"bank": bank}, relation=relation, batch_size=batch_size
    )


def attached_tables(bank: str) -> Call[AttachedTable, list[AttachedTable]]:
    """List the tables attached to a bank."""
    return call_records(AttachedTable, "attached_tables", {"bank": bank})


def detach_table(bank: str, relation: str, *, is_forgotten: bool | None) -> Call[int, int]:
    """Detach a table from a bank."""
    return call_value(
        "detach_table", {"bank": bank, "relation": relation}, is_forgotten=is_forgotten
    )


def log_recalls(bank: str, samples: Sequence[Mapping[str, object]]) -> Call[int, int]:
    """Write a sample of recalls to the log."""
    return call_value("log_recalls", {"bank": bank, "samples": Jsonb(list(samples))})


def recall_stats(
    bank: str | None, *, since: datetime | None
) -> Call[RecallTimes, list[RecallTimes]]:
    """Sum up the log of recalls."""
    return call_records(RecallTimes, "recall_stats", bank=bank, since=since)


def calibrate_bank(bank: str, calibration: Mapping[str, object] | None) -> Call[int, int]:
    """Set the constants of the model of a bank."""
    check_type("calibration", calibration, Mapping[str, object] | None)
    return call_value("calibrate_bank", {"bank": bank, "calibration": Jsonb(calibration)})


def index_plan(bank: str | None) -> Call[IndexStep, list[IndexStep]]:
    """List the statements that are due for vector indexes."""
    return call_records(IndexStep, "index_plan", bank=bank)


def index_builds() -> Call[IndexBuild, list[IndexBuild]]:
    """List the vector indexes being built, of all banks; index_plan() omits these."""
    return call_records(IndexBuild, "index_builds")


def slow_recalls(*, top_k: int) -> Call[LoggedRecall, list[LoggedRecall]]:
    """List the slowest logged recalls of the last day."""
    return call_records(LoggedRecall, "slow_recalls", top_k=top_k)


def relation_sizes(*, top_k: int) -> Call[RelationSize, list[RelationSize]]:
    """List the largest tables."""
    return call_records(RelationSize, "relation_sizes", top_k=top_k)


def standbys() -> Call[Standby, list[Standby]]:
    """List the standbys that follow the server."""
    return call_records(Standby, "standbys")


_LIMITS = (
    "from pg_catalog.pg_settings"
    " where name in ('statement_timeout', 'lock_timeout', 'transaction_timeout')"
)
UNLIMITED = f"select pg_catalog.set_config(name, '0', false) {_LIMITS}"
"""Sent before a statement of :func:`index_plan`, which may take hours."""
LIMITED = f"select pg_catalog.set_config(name, reset_val, false) {_LIMITS}"
"""Sent afterwards."""


def recall_check(
    bank: str, *, sample: int | None, k: int | None, depth: int | None, is_next: bool | None
) -> Call[RecallCheck, list[RecallCheck]]:
    """Compare index searches with exact ones."""
    return call_records(
        RecallCheck,
        "recall_check",
        {"bank": bank},
        sample=sample,
        k=k,
        depth=depth,
        is_next=is_next,
    )
