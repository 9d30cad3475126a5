"""Every statement the driver sends, and how its rows are read.

A :class:`Call` does no I/O: both clients send the same ones, and a test can read them. Arguments
have the names they have in SQL. Only what was given is sent, so SQL's defaults are the only ones.
Columns are read by name; columns of a newer schema that the driver does not know are ignored.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from datetime import date, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from psycopg import DataError
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap
from psycopg.errors import UndefinedColumn
from psycopg.rows import BaseRowFactory, scalar_row, tuple_row
from psycopg.types.datetime import TimestamptzLoader
from psycopg.types.json import Jsonb
from psycopg.types.range import Range, TimestamptzRange

from pgrecall.arguments import check_sent, check_type
from pgrecall.errors import (
    InvalidArgument,
    InvalidEmbedding,
    InvalidFact,
    InvalidFilter,
    RecallError,
)
from pgrecall.models import (
    Arm,
    ArmFinding,
    ArmHit,
    ArmReport,
    Bank,
    BankModels,
    BankStatistics,
    Consolidated,
    Corrected,
    DuplicateEntities,
    Hit,
    IndexStep,
    Maintained,
    Memory,
    NearCopy,
    PendingText,
    Period,
    Preparation,
    QueryEntity,
    RecallCheck,
    RecallOption,
    RecallStep,
    RecallTimes,
    Reembedding,
    Retained,
    RetainedMessage,
    StoredEmbedding,
    Turn,
    TypeHint,
)
from pgrecall.options import LISTS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Row = TypeVar("Row")
Result = TypeVar("Result")
Value = TypeVar("Value")
Record = TypeVar("Record", bound="DataclassInstance")

_TEXT_HINT = "PostgreSQL stores neither NUL characters nor half a surrogate pair: remove them."
_HAS_EMBEDDING = re.compile(r"facts\[\d+\](\.questions\[\d+\])?")
_IS_EMBEDDINGS = re.compile(_HAS_EMBEDDING.pattern + r"\.embeddings")
_MOST_DIGITS = 1000
# An empty list would have no type; rows of an export are text, so that no number is rounded.
_CASTS = {"embedding": "::real[]", "rows": "::pg_catalog.jsonb"}


@dataclass(frozen=True, slots=True)
class Call(Generic[Row, Result]):
    """One statement, ready to be sent.

    Attributes:
        sql: The statement, with named placeholders.
        parameters: A value for each placeholder.
        row_factory: Makes a row of the result's columns.
        result: Makes the answer of all rows.
        is_repeatable: Whether it may be sent again when the connection was lost and it is not
            known whether the statement had arrived.

    """

    sql: str
    parameters: Mapping[str, object]
    row_factory: BaseRowFactory[Row]
    result: Callable[[list[Row]], Result]
    is_repeatable: bool = True


class Answer(NamedTuple):
    """The hits of a recall, and the report of the same run."""

    hits: list[Hit]
    arms: list[ArmReport]


class _TimeLoader(TimestamptzLoader):
    """Reads a time; None for what Python has no datetime for: infinity, years before 1."""

    def load(self, data: Buffer) -> datetime | None:  # type: ignore[override]
        try:
            return super().load(data)
        except DataError:
            return None


def adapt(adapters: AdaptersMap) -> None:
    """Read times that Python cannot represent as None instead of failing."""
    adapters.register_loader("timestamptz", _TimeLoader)


def limit_time(seconds: float) -> Call[Any, None]:
    """Limit the time of the statements to come, unless they have a lower limit.

    Until unlimit_time() or the end of the transaction.
    """
    return Call(
        "select set_config('pgrecall.statement_timeout', old.value, true),"
        " set_config('statement_timeout', least(nullif(extract(epoch from old.value::interval)"
        " * 1000.0, 0.0), %(milliseconds)s)::bigint::pg_catalog.text, true)"
        " from (select current_setting('statement_timeout')) as old(value)",
        {"milliseconds": math.ceil(seconds * 1000)},
        tuple_row,
        _nothing,
    )


def unlimit_time() -> Call[Any, None]:
    """Restore the time limit of before limit_time()."""
    return Call(
        "select set_config('statement_timeout',"
        " current_setting('pgrecall.statement_timeout'), true)",
        {},
        tuple_row,
        _nothing,
    )


def then(call: Call[Row, Result], change: Callable[[Result], Result]) -> Call[Row, Result]:
    """Change the answer of a call."""
    return replace(call, result=lambda rows: change(call.result(rows)))


def together(several: Sequence[Call[Row, Result]]) -> Call[tuple[int, Row], list[Result]]:
    """Make one statement of several with the same columns: one round trip for all answers."""
    parts: list[str] = []
    parameters: dict[str, object] = {}
    for n, call in enumerate(several):
        text = re.sub(r"%\((\w+)\)s", rf"%(\1__{n})s", call.sql)
        parts.append(f"select {n} as call_n, row_number() over () as row_n, c.* from ({text}) as c")
        parameters |= {f"{name}__{n}": value for name, value in call.parameters.items()}

    def row_factory(cursor: Any) -> Callable[[Sequence[Any]], tuple[int, Row]]:
        row = several[0].row_factory(cursor)
        return lambda values: (values[0], row(values))

    def result(rows: list[tuple[int, Row]]) -> list[Result]:
        found: list[list[Row]] = [[] for _ in several]
        for n, row in rows:
            found[n].append(row)
        return [call.result(own) for call, own in zip(several, found, strict=True)]

    sql = f"{' union all '.join(parts)} order by call_n, row_n"
    return Call(sql, parameters, row_factory, result, all(call.is_repeatable for call in several))


def version() -> Call[str, str]:
    """Return the version of the schema."""
    return _value("version")


def log_position() -> Call[str, str]:
    """Return a position in the log behind all that is committed."""
    return Call("select pgrecall.log_position()::pg_catalog.text", {}, scalar_row, _single)


def replica_lag(*, at_most: float | None, after: str | None) -> Call[float | None, float | None]:
    """Measure how far a standby is behind, and fail where that is too far."""
    return _value("replica_lag", at_most=at_most, after=after)


def create_bank(
    bank: str,
    *,
    text_search_config: str | None = None,
    embedding_model: str | None = None,
    embedding_dimensions: int | None = None,
    fact_types: Sequence[str] | None = None,
    settings: Mapping[str, object] | None = None,
    exist_ok: bool = False,
) -> Call[Any, None]:
    """Create a bank; with exist_ok only where no bank has that name."""
    missing = " where not exists (select from pgrecall.bank_overview where bank_id = %(bank)s)"
    arguments, parameters = _arguments(
        {"bank": bank},
        text_search_config=text_search_config,
        embedding_model=embedding_model,
        embedding_dimensions=embedding_dimensions,
        fact_types=_listed(fact_types),
        settings=settings,
    )
    return Call(
        f"select pgrecall.create_bank({arguments}){missing if exist_ok else ''}",
        parameters,
        scalar_row,
        _nothing,
        is_repeatable=exist_ok,
    )


def configure_bank(bank: str, settings: Mapping[str, object]) -> Call[Any, None]:
    """Change a bank's defaults."""
    return _command("configure_bank", {"bank": bank, "settings": settings})


def add_fact_type(bank: str, fact_type: str, *, description: str | None) -> Call[Any, None]:
    """Add a fact type to a bank."""
    return _command(
        "add_fact_type", {"bank": bank, "fact_type": fact_type}, description=description
    )


def drop_bank(bank: str) -> Call[int, int]:
    """Drop a bank with everything in it."""
    return _value("drop_bank", {"bank": bank}, is_repeatable=False)


def clone_bank(bank: str, new_bank: str) -> Call[int, int]:
    """Copy a bank."""
    return _value("clone_bank", {"bank": bank, "new_bank": new_bank}, is_repeatable=False)


def exported_rows(bank: str, *, after: str | None, batch_size: int) -> Call[str, list[str]]:
    """Return a page of the rows of a bank, each as JSON text."""
    listing, parameters = _arguments({"bank": bank, "batch_size": batch_size}, after=after)
    sql = f"select r::pg_catalog.text from pgrecall.exported_rows({listing}) as r"
    return Call(sql, parameters, scalar_row, list)


def import_rows(bank: str, rows: Iterable[object]) -> Call[int, int]:
    """Store rows of an export."""
    texts = [
        row if isinstance(row, str) else json.dumps(_jsonable(row, f"rows[{i}]", InvalidFact))
        for i, row in enumerate(rows)
    ]
    return _value("import_rows", {"bank": bank, "rows": f"[{','.join(texts)}]"})


def banks() -> Call[Bank, list[Bank]]:
    """List all banks by name."""
    return Call("select * from pgrecall.bank_overview order by bank_id", {}, _row(Bank), list)


def bank_models(bank: str) -> Call[BankModels, BankModels]:
    """Return a bank's embedding model, and the one it is being re-embedded with."""
    return _record(BankModels, "bank_models", {"bank": bank})


def bank_options(bank: str) -> Call[Any, dict[str, object]]:
    """Return every recall option with its default in a bank."""
    return _value("bank_options", {"bank": bank})


def recall_options() -> Call[RecallOption, list[RecallOption]]:
    """List the options of a recall."""
    return _records(RecallOption, "recall_options")


def arms() -> Call[Arm, list[Arm]]:
    """List the retrieval arms."""
    return _records(Arm, "arms")


def retain(
    bank: str,
    facts: Sequence[object],
    *,
    model: str | None,
    link: str | None,
    replace: str | None = None,
) -> Call[Retained, list[Retained]]:
    """Write a batch of facts, as made by :func:`plain_facts`."""
    return _records(
        Retained,
        "retain",
        {"bank": bank, "facts": Jsonb(facts)},
        model=model,
        link=link,
        replace=replace,
    )


def stored_embeddings(
    bank: str, facts: Sequence[object]
) -> Call[StoredEmbedding, list[StoredEmbedding]]:
    """List the embeddings that a bank has of facts."""
    return _records(StoredEmbedding, "stored_embeddings", {"bank": bank, "facts": Jsonb(facts)})


def retain_messages(
    bank: str, messages: Iterable[object]
) -> Call[RetainedMessage, list[RetainedMessage]]:
    """Write a batch of raw messages."""
    rows = [_jsonable(row, f"messages[{i}]", InvalidFact) for i, row in enumerate(messages)]
    return _records(RetainedMessage, "retain_messages", {"bank": bank, "messages": Jsonb(rows)})


def forget(bank: str, memory_ids: Iterable[int]) -> Call[int, int]:
    """Erase memories."""
    return _value("forget", {"bank": bank, "memory_ids": list(memory_ids)}, is_repeatable=False)


def forget_where(
    bank: str,
    *,
    filter: str | Sequence[object] | None,
    fact_key: str | None,
    source_id: str | None,
    dry_run: bool | None,
) -> Call[int, int]:
    """Erase the memories that meet conditions."""
    return _value(
        "forget_where",
        {"bank": bank},
        is_repeatable=False,
        filter=_filter_text(filter),
        fact_key=fact_key,
        source_id=source_id,
        dry_run=dry_run,
    )


def forget_messages(
    bank: str,
    message_ids: Iterable[int] | None,
    *,
    session: str | None,
    during: Period | None,
    dry_run: bool | None,
) -> Call[int, int]:
    """Erase raw messages."""
    return _value(
        "forget_messages",
        {"bank": bank},
        is_repeatable=False,
        message_ids=None if message_ids is None else list(message_ids),
        session=session,
        during=to_range(during),
        dry_run=dry_run,
    )


def stored_memories(bank: str, memory_ids: Iterable[int]) -> Call[Memory, list[Memory]]:
    """Return memories by id."""
    return _memories("stored_memories", {"bank": bank, "memory_ids": list(memory_ids)})


def list_memories(
    bank: str,
    *,
    filter: str | Sequence[object] | None,
    fact_types: Sequence[str] | None,
    tags: Sequence[str] | None,
    during: Period | None,
    entity: str | None,
    as_of: datetime | None,
    is_ended_too: bool,
    before_id: int | None,
    top_k: int | None,
) -> Call[Memory, list[Memory]]:
    """Return a page of the memories that meet conditions."""
    needed: dict[str, object] = {"bank": bank} | ({"as_of": None} if is_ended_too else {})
    return _memories(
        "list_memories",
        needed,
        filter=_filter_text(filter),
        fact_types=_listed(fact_types),
        tags=_listed(tags),
        during=to_range(during),
        entity=entity,
        as_of=as_of,
        before_id=before_id,
        top_k=top_k,
    )


def memory_history(bank: str, memory_id: int, *, top_k: int | None) -> Call[Memory, list[Memory]]:
    """Return the versions of a fact."""
    return _memories("memory_history", {"bank": bank, "memory_id": memory_id}, top_k=top_k)


def update_memory(
    bank: str, memory_id: int, changes: object, *, model: str | None
) -> Call[Memory, Memory]:
    """Replace a memory by a version of it with other fields."""
    call = _memories(
        "update_memory",
        {"bank": bank, "memory_id": memory_id, "changes": Jsonb(changes)},
        model=model,
    )
    return Call(call.sql, call.parameters, call.row_factory, _single, is_repeatable=False)


def supersede(
    bank: str,
    memory_id: int,
    *,
    superseded_by: int | None,
    at: datetime | None,
    reach: str | None,
    dry_run: bool | None,
) -> Call[Corrected, list[Corrected]]:
    """End a memory's validity."""
    call = _records(
        Corrected,
        "supersede",
        {"bank": bank, "memory_id": memory_id},
        superseded_by=superseded_by,
        at=at,
        reach=reach,
        dry_run=dry_run,
    )
    return replace(call, is_repeatable=False)


def near_copies(
    bank: str,
    memory_id: int,
    *,
    superseded_by: int | None,
    min_similarity: float | None,
    as_of: datetime | None,
) -> Call[NearCopy, list[NearCopy]]:
    """List the memories that say nearly the same as one."""
    return _records(
        NearCopy,
        "near_copies",
        {"bank": bank, "memory_id": memory_id},
        superseded_by=superseded_by,
        min_similarity=min_similarity,
        as_of=as_of,
    )


def unsupersede(bank: str, memory_id: int) -> Call[Corrected, list[Corrected]]:
    """Revert the last correction of a memory."""
    call = _records(Corrected, "unsupersede", {"bank": bank, "memory_id": memory_id})
    return replace(call, is_repeatable=False)


def consolidate(
    bank: str, *, dry_run: bool | None, min_similarity: float | None, top_k: int | None
) -> Call[Consolidated, list[Consolidated]]:
    """Merge near duplicates, or list them."""
    return _records(
        Consolidated,
        "consolidate",
        {"bank": bank},
        dry_run=dry_run,
        min_similarity=min_similarity,
        top_k=top_k,
    )


def unconsolidate(bank: str) -> Call[Corrected, list[Corrected]]:
    """Undo the latest consolidation."""
    call = _records(Corrected, "unconsolidate", {"bank": bank})
    return replace(call, is_repeatable=False)


def log_session(
    bank: str, session: str, *, started_at: datetime | None, ended_at: datetime | None
) -> Call[Any, None]:
    """Record when a conversation took place."""
    return _command(
        "log_session",
        {"bank": bank, "session": session},
        is_repeatable=False,
        started_at=started_at,
        ended_at=ended_at,
    )


def last_session_end(
    bank: str, *, before: datetime | None
) -> Call[datetime | None, datetime | None]:
    """Return when the last conversation ended."""
    return _value("last_session_end", {"bank": bank}, before=before)


def prepare_recall(bank: str, query: str, *, before: datetime) -> Call[Preparation, Preparation]:
    """Prepare a query before it is embedded."""
    return _record(Preparation, "prepare_recall", {"bank": bank, "query": query, "before": before})


def refresh_statistics(bank: str, *, is_full: bool | None) -> Call[Any, None]:
    """Refresh the statistics of keyword search."""
    return _command("refresh_statistics", {"bank": bank}, is_full=is_full)


def bank_statistics(bank: str) -> Call[BankStatistics, list[BankStatistics]]:
    """Return the statistics of keyword search."""
    return _records(BankStatistics, "bank_statistics", {"bank": bank})


def highlight(
    bank: str, memory_id: int, query: str, *, start_mark: str | None, end_mark: str | None
) -> Call[str, str]:
    """Mark in a memory what a query finds."""
    return _value(
        "highlight",
        {"bank": bank, "memory_id": memory_id, "query": query},
        start_mark=start_mark,
        end_mark=end_mark,
    )


def vocabulary_drift(bank: str) -> Call[float | None, float | None]:
    """Compare a bank's frequent words with those of its snapshot."""
    return _value("vocabulary_drift", {"bank": bank})


def snapshot_vocabulary(bank: str) -> Call[Any, None]:
    """Keep a bank's frequent words, to compare with later."""
    return _command("snapshot_vocabulary", {"bank": bank})


def link_pending(bank: str, *, batch_size: int | None) -> Call[int, int]:
    """Write deferred links."""
    return _value("link_pending", {"bank": bank}, batch_size=batch_size)


def maintain(bank: str | None, *, batch_size: int | None) -> Call[Maintained, list[Maintained]]:
    """Do a piece of the pending work."""
    return _records(Maintained, "maintain", bank=bank, batch_size=batch_size)


def log_recalls(bank: str, samples: Sequence[Mapping[str, object]]) -> Call[int, int]:
    """Write samples of recalls into the log."""
    return _value("log_recalls", {"bank": bank, "samples": Jsonb(list(samples))})


def recall_stats(
    bank: str | None, *, since: datetime | None
) -> Call[RecallTimes, list[RecallTimes]]:
    """Sum up the log of recalls."""
    return _records(RecallTimes, "recall_stats", bank=bank, since=since)


def pending_links(bank: str) -> Call[int, int]:
    """Count the facts whose links were deferred."""
    return _value("pending_links", {"bank": bank})


def embed_pending(
    bank: str, *, from_id: int, batch_size: int
) -> Call[PendingText, list[PendingText]]:
    """List texts of memories without an embedding."""
    return _records(
        PendingText, "embed_pending", {"bank": bank, "from_id": from_id, "batch_size": batch_size}
    )


def embed_store(
    bank: str, *, model: str, texts: Sequence[PendingText], vectors: Iterable[object]
) -> Call[int, int]:
    """Store embeddings of such texts."""
    embeddings = [
        {"memory_id": text.memory_id, "embedding": vector_text(vector)}
        for text, vector in zip(texts, vectors, strict=True)
    ]
    return _value("embed_store", {"bank": bank, "embeddings": Jsonb(embeddings), "model": model})


def calibrate_bank(bank: str, calibration: Mapping[str, object] | None) -> Call[int, int]:
    """Give the model of a bank its constants."""
    return _value("calibrate_bank", {"bank": bank, "calibration": Jsonb(calibration)})


def reembed_start(bank: str, *, model: str, dimensions: int) -> Call[Any, None]:
    """Begin to re-embed a bank, or continue."""
    return _command("reembed_start", {"bank": bank, "model": model, "dimensions": dimensions})


def reembed_pending(
    bank: str, *, from_id: int, batch_size: int
) -> Call[PendingText, list[PendingText]]:
    """List texts still to be embedded with the next model."""
    return _records(
        PendingText, "reembed_pending", {"bank": bank, "from_id": from_id, "batch_size": batch_size}
    )


def reembed_store(
    bank: str, *, model: str, texts: Sequence[PendingText], vectors: Iterable[object]
) -> Call[int, int]:
    """Store embeddings of the next model."""
    embeddings = [
        {
            "memory_id": text.memory_id,
            "kind": text.kind,
            "ordinal": text.ordinal,
            "embedding": vector_text(vector),
        }
        for text, vector in zip(texts, vectors, strict=True)
    ]
    return _value("reembed_store", {"bank": bank, "model": model, "embeddings": Jsonb(embeddings)})


def reembed_status(bank: str) -> Call[Reembedding, Reembedding]:
    """Return the progress of a re-embedding."""
    return _record(Reembedding, "reembed_status", {"bank": bank})


def reembed_finish(bank: str, *, is_lossy: bool | None) -> Call[Any, None]:
    """Make the next model the bank's own."""
    return _command("reembed_finish", {"bank": bank}, is_repeatable=False, is_lossy=is_lossy)


def reembed_clean(bank: str, *, batch_size: int | None) -> Call[int, int]:
    """Remove embeddings of other models."""
    return _value("reembed_clean", {"bank": bank}, batch_size=batch_size)


def reembed_cancel(bank: str) -> Call[Any, None]:
    """Cancel re-embedding a bank."""
    return _command("reembed_cancel", {"bank": bank}, is_repeatable=False)


def index_plan(bank: str | None) -> Call[IndexStep, list[IndexStep]]:
    """List the statements that are due for vector indexes."""
    return _records(IndexStep, "index_plan", bank=bank)


def index_builds() -> Call[Any, int]:
    """Count the vector indexes that are being built, of any bank; index_plan() leaves them out."""
    return Call(
        "select count(*) from pg_catalog.pg_stat_progress_create_index p"
        " join pg_catalog.pg_inherits i on i.inhrelid = p.relid"
        " where i.inhparent = 'pgrecall.embedding'::pg_catalog.regclass",
        {},
        scalar_row,
        _single,
    )


UNLIMITED = ("set statement_timeout = 0", "set lock_timeout = 0")
"""What to send before a statement of :func:`index_plan`, which may take hours."""
LIMITED = ("reset statement_timeout", "reset lock_timeout")
"""What to send afterwards."""


def recall_check(
    bank: str, *, sample: int | None, k: int | None, depth: int | None, is_next: bool | None
) -> Call[RecallCheck, list[RecallCheck]]:
    """Compare searches by index with exact ones."""
    return _records(
        RecallCheck,
        "recall_check",
        {"bank": bank},
        sample=sample,
        k=k,
        depth=depth,
        is_next=is_next,
    )


def query_entities(bank: str, query: str) -> Call[QueryEntity, list[QueryEntity]]:
    """List the entities that a query names."""
    return _records(QueryEntity, "query_entities", {"bank": bank, "query": query})


def merge_entities(bank: str, entity_id: int, others: Iterable[int]) -> Call[int, int]:
    """Merge entities into one."""
    return _value("merge_entities", {"bank": bank, "entity_id": entity_id, "others": list(others)})


def split_entity(bank: str, entity_id: int, memory_ids: Iterable[int], name: str) -> Call[int, int]:
    """Split an entity in two."""
    return _value(
        "split_entity",
        {"bank": bank, "entity_id": entity_id, "memory_ids": list(memory_ids), "name": name},
    )


def rename_entity(bank: str, entity_id: int, name: str) -> Call[Any, None]:
    """Give an entity another name."""
    return _command("rename_entity", {"bank": bank, "entity_id": entity_id, "name": name})


def duplicate_entities(
    bank: str, *, top_k: int | None
) -> Call[DuplicateEntities, list[DuplicateEntities]]:
    """List pairs of entities that may be the same."""
    return _records(DuplicateEntities, "duplicate_entities", {"bank": bank}, top_k=top_k)


def type_hints(bank: str, query: str) -> Call[TypeHint, list[TypeHint]]:
    """List the fact types that the words of a query ask for."""
    return _records(TypeHint, "type_hints", {"bank": bank, "query": query})


def message_context(
    bank: str, message_id: int, *, before: int | None, after: int | None
) -> Call[Turn, list[Turn]]:
    """Return a message with those before and after it."""
    return _records(
        Turn,
        "message_context",
        {"bank": bank, "message_id": message_id},
        before=before,
        after=after,
    )


def recall_arguments(
    arguments: Mapping[str, object], options: Mapping[str, object]
) -> dict[str, object]:
    """Gather the arguments of the recall family, checked and converted.

    Args:
        arguments: The named arguments, by name.
        options: What goes into the argument options, by name.

    """
    ready = {
        name: _listed(value) if name in ("fact_types", "tags") else value
        for name, value in arguments.items()
        if value is not None
    }
    if "filter" in ready:
        ready["filter"] = _filter_text(ready["filter"])
    ready["options"] = {
        name: _jsonable(_listed(value) if name in LISTS else value, name, InvalidArgument)
        for name, value in options.items()
    }
    checked(**ready)
    return ready


def recall_report(arguments: Mapping[str, object]) -> Call[Any, Answer]:
    """Find memories, best first, with the report of the same run.

    The report is in the first row only, which exists also without hits.
    """
    listing, parameters = _arguments(None, **arguments)
    # A function of others in a schema of the caller's path could fit better than to_jsonb().
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


def explain_recall(
    arguments: Mapping[str, object], *, is_run: bool | None
) -> Call[ArmReport, list[ArmReport]]:
    """Report on each arm; planned only where is_run is false."""
    return _records(ArmReport, "explain_recall", None, **arguments, is_run=is_run)


def arm_hits(arguments: Mapping[str, object]) -> Call[ArmFinding, list[ArmFinding]]:
    """Return what each arm finds, before fusion."""
    return _records(ArmFinding, "arm_hits", None, **arguments)


def why_not(arguments: Mapping[str, object], memory_id: int) -> Call[RecallStep, list[RecallStep]]:
    """Return where a recall has a memory, or what keeps it out."""
    return _records(RecallStep, "why_not", None, **arguments, memory_id=memory_id)


def plain_facts(facts: Iterable[object]) -> list[object]:
    """Convert facts to JSON values; embeddings become compact text.

    Args:
        facts: Mappings in the documented format, or bare texts. They are left as they are.

    Raises:
        InvalidFact: a fact holds what JSON or PostgreSQL cannot, such as a NUL character.
        InvalidEmbedding: an embedding is not a list of numbers.

    """
    return [
        _jsonable({"text": fact} if isinstance(fact, str) else fact, f"facts[{i}]", InvalidFact)
        for i, fact in enumerate(facts)
    ]


def to_floats(embedding: object, where: str = "embedding") -> list[float]:
    """Read an embedding: a list, a tuple, a numpy array, a torch tensor, a pgvector value.

    Args:
        embedding: Shape (dimensions,).
        where: Its name in an error.

    Raises:
        InvalidEmbedding: it is not a flat list of numbers.

    """
    for method in ("tolist", "to_list"):  # numpy and torch; pgvector
        if hasattr(embedding, method):
            embedding = getattr(embedding, method)()
    if isinstance(embedding, Iterable) and not isinstance(embedding, str | bytes | Mapping):
        try:
            return [float(number) for number in embedding]
        except (TypeError, ValueError, OverflowError):
            pass
    raise InvalidEmbedding(
        f"{where} is not a flat list of numbers",
        hint="Give one number per dimension: [0.1, 0.2, ...]",
    )


def vector_text(embedding: object, where: str = "embedding") -> str:
    """Write an embedding as short text, exactly enough for a halfvec: ``[0.1,0.2]``."""
    if isinstance(embedding, str):
        return embedding
    return f"[{','.join(format(number, '.6g') for number in to_floats(embedding, where))}]"


def array_text(numbers: Sequence[float]) -> str:
    """Write numbers as an array, exactly enough for a halfvec; psycopg is slow to write a list."""
    return "{" + ("%.6g," * len(numbers) % tuple(numbers))[:-1] + "}"


def to_range(during: Period | None) -> TimestamptzRange | None:
    """Make a range of a period.

    Raises:
        InvalidArgument: it is no pair of times, or ends before it starts.

    """
    if during is None:
        return None
    check_type("during", during, Period)
    start, end = during
    if start is not None and end is not None and end < start:
        raise InvalidArgument(
            f"during ends before it starts: {end.isoformat()} is before {start.isoformat()}",
            hint="Give (start, end); None leaves a side open.",
        )
    return TimestamptzRange(start, end)


def _value(
    function: str,
    needed: Mapping[str, object] | None = None,
    *,
    is_repeatable: bool = True,
    **given: object,
) -> Call[Any, Any]:
    """Call a function that returns one value."""
    listing, parameters = _arguments(needed, **given)
    return Call(
        f"select pgrecall.{function}({listing})", parameters, scalar_row, _single, is_repeatable
    )


def _command(
    function: str, needed: Mapping[str, object], *, is_repeatable: bool = True, **given: object
) -> Call[Any, None]:
    """Call a function that returns nothing."""
    call = _value(function, needed, is_repeatable=is_repeatable, **given)
    return replace(call, result=_nothing)


def _records(
    kind: type[Record],
    function: str,
    needed: Mapping[str, object] | None = None,
    **given: object,
) -> Call[Record, list[Record]]:
    """Call a function that returns rows."""
    listing, parameters = _arguments(needed, **given)
    return Call(f"select * from pgrecall.{function}({listing})", parameters, _row(kind), list)


def _record(
    kind: type[Record], function: str, needed: Mapping[str, object], **given: object
) -> Call[Record, Record]:
    """Call a function that returns one row."""
    listing, parameters = _arguments(needed, **given)
    return Call(f"select * from pgrecall.{function}({listing})", parameters, _row(kind), _single)


def _arguments(
    needed: Mapping[str, object] | None = None, **given: object
) -> tuple[str, dict[str, object]]:
    """List the arguments that are needed and those that were given, and their values."""
    sent = {name: value for name, value in given.items() if value is not None and value != {}}
    sent = {**(needed or {}), **sent}
    listing = ", ".join(f"{name} => %({name})s{_CASTS.get(name, '')}" for name in sent)
    return listing, checked(**sent)


def _row(kind: type[Record]) -> BaseRowFactory[Record]:
    """Make rows of the columns that a class has a field for.

    One that an older schema does not return is missed like one of a table: a caller is told both
    versions.
    """
    needed = {
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    }

    def factory(cursor: Any) -> Callable[[Sequence[Any]], Record]:
        known = _names(kind)
        columns = [
            (place, column.name)
            for place, column in enumerate(cursor.description or ())
            if column.name in known
        ]
        missing = needed.difference(name for _, name in columns)
        if missing:
            raise UndefinedColumn(f"pgrecall returned no {', '.join(sorted(missing))}")
        return lambda values: kind(**{name: values[place] for place, name in columns})

    return factory


@cache
def _names(kind: type[DataclassInstance]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _memories(
    function: str, needed: Mapping[str, object], **given: object
) -> Call[Memory, list[Memory]]:
    """Call a function that returns memories."""
    listing, parameters = _arguments(needed, **given)
    return Call(f"select * from pgrecall.{function}({listing})", parameters, _memory_row, list)


_MEMORY_LISTS = ("tags", "entities", "ended_entities", "ended_relations")


def _memory_row(cursor: Any) -> Callable[[Sequence[Any]], Memory]:
    names = [column.name for column in cursor.description or ()]

    def row(values: Sequence[Any]) -> Memory:
        column = dict(zip(names, values, strict=True))
        lists = {name: tuple(column.get(name) or ()) for name in _MEMORY_LISTS}
        return _of(Memory, {**column, **lists, "occurred": _period(column["occurred"])})

    return row


def _period(occurred: Range[datetime] | None) -> Period | None:
    return None if occurred is None else (occurred.lower, occurred.upper)


def _filter_text(condition: object) -> str | None:
    """Write a filter of nested lists as JSON; an expression is text already."""
    if condition is None or isinstance(condition, str):
        return condition
    return json.dumps(_jsonable(condition, "filter", InvalidFilter))


def _answer_row(
    cursor: Any,
) -> Callable[[Sequence[Any]], tuple[Hit | None, list[ArmReport]]]:
    names = [column.name for column in cursor.description or ()]

    def row(values: Sequence[Any]) -> tuple[Hit | None, list[ArmReport]]:
        column = dict(zip(names, values, strict=True))
        hit = _hit(column) if column["ordinality"] is not None else None
        return hit, [_of(ArmReport, arm) for arm in column["report"] or ()]

    return row


def _answer(rows: list[tuple[Hit | None, list[ArmReport]]]) -> Answer:
    return Answer(
        [hit for hit, _ in rows if hit is not None], [arm for _, report in rows for arm in report]
    )


def _hit(column: Mapping[str, Any]) -> Hit:
    return _of(
        Hit,
        {
            **column,
            "tags": tuple(column["tags"] or ()),
            "metadata": column["metadata"] or {},
            "occurred": _period(column["occurred"]),
            "arms": {name: _of(ArmHit, arm) for name, arm in column["arms"].items()},
            "fused_rank": column["rank"],
            "rerank_score": None,
            "final_score": column["score"],
            "conflicts_with": tuple(column["conflicts_with"] or ()),
        },
    )


def _of(kind: type[Record], values: Mapping[str, Any]) -> Record:
    """Make an object of the values that its class has a field for."""
    return kind(**{name: values[name] for name in _names(kind) if name in values})


def _listed(texts: object) -> object:
    """Treat a text as a list of one text, not of its letters."""
    if isinstance(texts, str):
        return [texts]
    return list(texts) if isinstance(texts, Iterable) else texts


def _single(rows: list[Value]) -> Value:
    return rows[0]


def _nothing(_rows: list[Any]) -> None:
    return None


def checked(**parameters: object) -> dict[str, object]:
    """Reject text that PostgreSQL cannot store, and wrap JSON values."""
    checked: dict[str, object] = {}
    for name, value in parameters.items():
        check_sent(name, value)
        error = InvalidFilter if name == "filter" else InvalidArgument
        if isinstance(value, str):
            _check_text(value, name, error)
        elif type(value) is int:
            # Without a type, as a literal: what is too large is refused by the argument's own type.
            _check_digits(value, name, error)
            value = str(value)
        elif isinstance(value, Mapping):
            value = Jsonb(_jsonable(value, name, error))
        elif isinstance(value, list):
            for position, element in enumerate(value):
                if isinstance(element, str):
                    _check_text(element, f"{name}[{position}]", error)
        checked[name] = value
    return checked


def _check_digits(number: int, where: str, error: type[RecallError]) -> None:
    if abs(number) >= 10**_MOST_DIGITS:
        raise error(f"{where} is a number of more than {_MOST_DIGITS} digits")


def _check_text(text: str, where: str, error: type[RecallError]) -> None:
    if "\0" in text:
        raise error(f"{where} contains a NUL character", hint=_TEXT_HINT)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise error(f"{where} contains a lone surrogate", hint=_TEXT_HINT) from None


def _jsonable(value: object, where: str, error: type[RecallError]) -> object:
    """Copy a value as JSON; `where` names the part in an error."""
    try:
        return _plain(value, where, error)
    except RecursionError:
        raise error(f"{where} is nested too deeply") from None


def _plain(value: object, where: str, error: type[RecallError]) -> object:
    match value:
        case str():
            _check_text(value, where, error)
            return value
        case None | bool():
            return value
        case int():
            _check_digits(value, where, error)
            return value
        case float():
            if not math.isfinite(value):
                raise error(f"{where} is {value}, which is not a finite number")
            return value
        case date():
            return value.isoformat()
        case timedelta():
            return f"{value.days} days {value.seconds + value.microseconds / 1e6} seconds"
        case Mapping():
            return {
                _key(key, where, error): (
                    vector_text(part, f"{where}.{key}")
                    if part is not None
                    and (
                        (key == "embedding" and _HAS_EMBEDDING.fullmatch(where))
                        or _IS_EMBEDDINGS.fullmatch(where)
                    )
                    else _plain(part, f"{where}.{key}", error)
                )
                for key, part in value.items()
            }
        case list() | tuple() | set() | frozenset():
            return [_plain(part, f"{where}[{i}]", error) for i, part in enumerate(value)]
    if hasattr(value, "tolist"):  # a number or an array of numpy
        return _plain(value.tolist(), where, error)
    raise error(
        f"{where} is a value of type {type(value).__name__}, which JSON cannot hold",
        hint="Use text, numbers, true, false, null, dates, lists and objects.",
    )


def _key(key: object, where: str, error: type[RecallError]) -> str:
    if not isinstance(key, str):
        raise error(f"{where} has the key {key!r}, which is not text")
    _check_text(key, f"a key of {where}", error)
    return key
