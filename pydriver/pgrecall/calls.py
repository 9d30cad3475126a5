"""Every statement the driver sends, and how its rows are read.

A :class:`Call` does no I/O: both clients send the same ones, and a test can read them. Arguments
have the names they have in SQL.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from psycopg import DataError
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap
from psycopg.rows import BaseRowFactory, class_row, kwargs_row, scalar_row, tuple_row
from psycopg.types.datetime import TimestamptzLoader
from psycopg.types.json import Jsonb
from psycopg.types.range import Range, TimestamptzRange

from pgrecall.errors import (
    InvalidArgument,
    InvalidEmbedding,
    InvalidFact,
    InvalidFilter,
    RecallError,
)
from pgrecall.models import (
    ArmHit,
    ArmReport,
    Bank,
    BankStatistics,
    DuplicateEntities,
    Hit,
    IndexStep,
    PendingText,
    Period,
    PlannedArm,
    Preparation,
    QueryEntity,
    Ranking,
    RecallCheck,
    Reembedding,
    Retained,
    RetainedMessage,
    Turn,
    TypeHint,
)

if TYPE_CHECKING:
    from typing_extensions import LiteralString

Row = TypeVar("Row")
Result = TypeVar("Result")

_TEXT_HINT = "PostgreSQL stores neither NUL characters nor half a surrogate pair: remove them."
_HAS_EMBEDDING = re.compile(r"facts\[\d+\](\.questions\[\d+\])?")
_IS_EMBEDDINGS = re.compile(_HAS_EMBEDDING.pattern + r"\.embeddings")


@dataclass(frozen=True, slots=True)
class Call(Generic[Row, Result]):
    """One statement, ready to be sent.

    Attributes:
        sql: The statement, with named placeholders.
        parameters: A value for each placeholder.
        row_factory: Makes a row of the result's columns.
        result: Makes the answer of all rows.
        is_repeatable: Whether it may be sent again when the connection broke, and nobody knows
            if it had arrived.

    """

    sql: LiteralString
    parameters: Mapping[str, object]
    row_factory: BaseRowFactory[Row]
    result: Callable[[list[Row]], Result]
    is_repeatable: bool = True


class _TimeLoader(TimestamptzLoader):
    """Reads a time; None for what Python has no datetime for: infinity, years before 1."""

    def load(self, data: Buffer) -> datetime | None:  # type: ignore[override]
        try:
            return super().load(data)
        except DataError:
            return None


def adapt(adapters: AdaptersMap) -> None:
    """Let no far-off date in a bank spoil a recall."""
    adapters.register_loader("timestamptz", _TimeLoader)


def create_bank(
    bank: str,
    *,
    text_search_config: str,
    embedding_model: str | None,
    embedding_dimensions: int | None,
    fact_types: Sequence[str] | None,
    settings: Mapping[str, object],
) -> Call[object, None]:
    """Create a bank."""
    return Call(
        "select pgrecall.create_bank(bank => %(bank)s,"
        " text_search_config => %(text_search_config)s, embedding_model => %(embedding_model)s,"
        " embedding_dimensions => %(embedding_dimensions)s,"
        " fact_types => %(fact_types)s::text[], settings => %(settings)s)",
        _checked(
            bank=bank,
            text_search_config=text_search_config,
            embedding_model=embedding_model,
            embedding_dimensions=embedding_dimensions,
            fact_types=_texts(fact_types),
            settings=settings,
        ),
        scalar_row,
        _nothing,
        is_repeatable=False,
    )


def configure_bank(bank: str, settings: Mapping[str, object]) -> Call[object, None]:
    """Change a bank's defaults."""
    return Call(
        "select pgrecall.configure_bank(bank => %(bank)s, settings => %(settings)s)",
        _checked(bank=bank, settings=settings),
        scalar_row,
        _nothing,
    )


def add_fact_type(bank: str, fact_type: str, *, description: str) -> Call[object, None]:
    """Add a kind of memory to a bank."""
    return Call(
        "select pgrecall.add_fact_type(bank => %(bank)s, fact_type => %(fact_type)s,"
        " description => %(description)s)",
        _checked(bank=bank, fact_type=fact_type, description=description),
        scalar_row,
        _nothing,
    )


def drop_bank(bank: str) -> Call[int, int]:
    """Drop a bank with everything in it."""
    return Call(
        "select pgrecall.drop_bank(bank => %(bank)s)",
        _checked(bank=bank),
        scalar_row,
        _single,
        is_repeatable=False,
    )


def banks() -> Call[Bank, list[Bank]]:
    """List all banks by name."""
    return Call(
        "select * from pgrecall.bank_overview order by bank_id",
        {},
        class_row(Bank),
        list,
    )


def retain(
    bank: str, facts: Sequence[object], *, model: str | None, link: str
) -> Call[Retained, list[Retained]]:
    """Write a batch of facts, as made by :func:`plain_facts`."""
    return Call(
        "select * from pgrecall.retain(bank => %(bank)s, facts => %(facts)s, model => %(model)s,"
        " link => %(link)s)",
        {**_checked(bank=bank, model=model, link=link), "facts": Jsonb(facts)},
        class_row(Retained),
        list,
    )


def retain_messages(
    bank: str, messages: Iterable[object]
) -> Call[RetainedMessage, list[RetainedMessage]]:
    """Write a batch of raw messages."""
    rows = [_jsonable(row, f"messages[{i}]", InvalidFact) for i, row in enumerate(messages)]
    return Call(
        "select * from pgrecall.retain_messages(bank => %(bank)s, messages => %(messages)s)",
        {**_checked(bank=bank), "messages": Jsonb(rows)},
        class_row(RetainedMessage),
        list,
    )


def forget(bank: str, memory_ids: Iterable[int]) -> Call[int, int]:
    """Erase memories."""
    return Call(
        "select pgrecall.forget(bank => %(bank)s, memory_ids => %(memory_ids)s::bigint[])",
        _checked(bank=bank, memory_ids=list(memory_ids)),
        scalar_row,
        _single,
        is_repeatable=False,
    )


def supersede(
    bank: str, memory_id: int, *, superseded_by: int | None, at: datetime | None
) -> Call[object, None]:
    """End a memory's validity."""
    return Call(
        "select pgrecall.supersede(bank => %(bank)s, memory_id => %(memory_id)s,"
        " superseded_by => %(superseded_by)s, at => coalesce(%(at)s::timestamptz, now()))",
        _checked(bank=bank, memory_id=memory_id, superseded_by=superseded_by, at=at),
        scalar_row,
        _nothing,
    )


def log_session(
    bank: str, session: str, *, started_at: datetime | None, ended_at: datetime | None
) -> Call[object, None]:
    """Write down when a conversation took place."""
    return Call(
        "select pgrecall.log_session(bank => %(bank)s, session => %(session)s,"
        " started_at => coalesce(%(started_at)s::timestamptz, now()), ended_at => %(ended_at)s)",
        _checked(bank=bank, session=session, started_at=started_at, ended_at=ended_at),
        scalar_row,
        _nothing,
        is_repeatable=False,
    )


def last_session_end(
    bank: str, *, before: datetime | None
) -> Call[datetime | None, datetime | None]:
    """Say when the last conversation ended."""
    return Call(
        "select pgrecall.last_session_end(bank => %(bank)s,"
        " before => coalesce(%(before)s::timestamptz, now()))",
        _checked(bank=bank, before=before),
        scalar_row,
        _single,
    )


def prepare_recall(bank: str, query: str, *, before: datetime) -> Call[Preparation, Preparation]:
    """Ask what a bank knows about a question before it is embedded."""
    return Call(
        "select * from pgrecall.prepare_recall(bank => %(bank)s, query => %(query)s,"
        " before => %(before)s)",
        _checked(bank=bank, query=query, before=before),
        class_row(Preparation),
        _single,
    )


def refresh_statistics(bank: str, *, is_full: bool) -> Call[object, None]:
    """Count words anew."""
    return Call(
        "select pgrecall.refresh_statistics(bank => %(bank)s, is_full => %(is_full)s)",
        _checked(bank=bank, is_full=is_full),
        scalar_row,
        _nothing,
    )


def bank_statistics(bank: str) -> Call[BankStatistics, list[BankStatistics]]:
    """Say what keyword search knows of a bank."""
    return Call(
        "select * from pgrecall.bank_statistics(bank => %(bank)s)",
        _checked(bank=bank),
        class_row(BankStatistics),
        list,
    )


def highlight(
    bank: str, memory_id: int, query: str, *, start_mark: str, end_mark: str
) -> Call[str, str]:
    """Mark in a memory what a query finds."""
    return Call(
        "select pgrecall.highlight(bank => %(bank)s, memory_id => %(memory_id)s,"
        " query => %(query)s, start_mark => %(start_mark)s, end_mark => %(end_mark)s)",
        _checked(
            bank=bank,
            memory_id=memory_id,
            query=query,
            start_mark=start_mark,
            end_mark=end_mark,
        ),
        scalar_row,
        _single,
    )


def vocabulary_drift(bank: str) -> Call[float | None, float | None]:
    """Compare a bank's words with those it had."""
    return Call(
        "select pgrecall.vocabulary_drift(bank => %(bank)s)",
        _checked(bank=bank),
        scalar_row,
        _single,
    )


def snapshot_vocabulary(bank: str) -> Call[object, None]:
    """Keep a bank's words, to compare with later."""
    return Call(
        "select pgrecall.snapshot_vocabulary(bank => %(bank)s)",
        _checked(bank=bank),
        scalar_row,
        _nothing,
    )


def link_pending(bank: str, *, batch_size: int) -> Call[int, int]:
    """Write links that were put off."""
    return Call(
        "select pgrecall.link_pending(bank => %(bank)s, batch_size => %(batch_size)s)",
        _checked(bank=bank, batch_size=batch_size),
        scalar_row,
        _single,
    )


def pending_links(bank: str) -> Call[int, int]:
    """Count the facts whose links were put off."""
    return Call(
        "select pgrecall.pending_links(bank => %(bank)s)", _checked(bank=bank), scalar_row, _single
    )


def bank_models(bank: str) -> Call[tuple[str | None, ...], tuple[str | None, ...]]:
    """Name a bank's model, and the one it is being re-embedded with."""
    return Call(
        "select b.embedding_model, b.next_model from pgrecall._bank(bank => %(bank)s) as b",
        _checked(bank=bank),
        tuple_row,
        _single,
    )


def reembed_start(bank: str, *, model: str, dimensions: int) -> Call[object, None]:
    """Begin to re-embed a bank, or go on."""
    return Call(
        "select pgrecall.reembed_start(bank => %(bank)s, model => %(model)s,"
        " dimensions => %(dimensions)s)",
        _checked(bank=bank, model=model, dimensions=dimensions),
        scalar_row,
        _nothing,
    )


def reembed_pending(
    bank: str, *, from_id: int, batch_size: int
) -> Call[PendingText, list[PendingText]]:
    """List texts that the next model has still to embed."""
    return Call(
        "select * from pgrecall.reembed_pending(bank => %(bank)s, from_id => %(from_id)s,"
        " batch_size => %(batch_size)s)",
        _checked(bank=bank, from_id=from_id, batch_size=batch_size),
        class_row(PendingText),
        list,
    )


def reembed_store(
    bank: str, *, model: str, texts: Sequence[PendingText], vectors: Iterable[object]
) -> Call[int, int]:
    """Store what the next model made of texts."""
    embeddings = [
        {
            "memory_id": text.memory_id,
            "kind": text.kind,
            "ordinal": text.ordinal,
            "embedding": vector_text(vector),
        }
        for text, vector in zip(texts, vectors, strict=True)
    ]
    return Call(
        "select pgrecall.reembed_store(bank => %(bank)s, model => %(model)s,"
        " embeddings => %(embeddings)s)",
        {**_checked(bank=bank, model=model), "embeddings": Jsonb(embeddings)},
        scalar_row,
        _single,
    )


def reembed_status(bank: str) -> Call[Reembedding, Reembedding]:
    """Say how far the re-embedding of a bank is."""
    return Call(
        "select * from pgrecall.reembed_status(bank => %(bank)s)",
        _checked(bank=bank),
        class_row(Reembedding),
        _single,
    )


def reembed_finish(bank: str, *, is_lossy: bool) -> Call[object, None]:
    """Make the next model the bank's own."""
    return Call(
        "select pgrecall.reembed_finish(bank => %(bank)s, is_lossy => %(is_lossy)s)",
        _checked(bank=bank, is_lossy=is_lossy),
        scalar_row,
        _nothing,
        is_repeatable=False,
    )


def reembed_clean(bank: str, *, batch_size: int) -> Call[int, int]:
    """Remove what other models left behind."""
    return Call(
        "select pgrecall.reembed_clean(bank => %(bank)s, batch_size => %(batch_size)s)",
        _checked(bank=bank, batch_size=batch_size),
        scalar_row,
        _single,
    )


def reembed_cancel(bank: str) -> Call[object, None]:
    """Give up re-embedding a bank."""
    return Call(
        "select pgrecall.reembed_cancel(bank => %(bank)s)",
        _checked(bank=bank),
        scalar_row,
        _nothing,
        is_repeatable=False,
    )


def index_plan(bank: str | None) -> Call[IndexStep, list[IndexStep]]:
    """List the statements that are due for vector indexes."""
    return Call(
        "select * from pgrecall.index_plan(bank => %(bank)s)",
        _checked(bank=bank),
        class_row(IndexStep),
        list,
    )


def recall_check(
    bank: str, *, sample: int, k: int, depth: int, is_next: bool
) -> Call[RecallCheck, list[RecallCheck]]:
    """Compare searches by index with exact ones."""
    return Call(
        "select * from pgrecall.recall_check(bank => %(bank)s, sample => %(sample)s, k => %(k)s,"
        " depth => %(depth)s, is_next => %(is_next)s)",
        _checked(bank=bank, sample=sample, k=k, depth=depth, is_next=is_next),
        class_row(RecallCheck),
        list,
    )


def indexed_banks() -> Call[str, list[str]]:
    """Name the banks that have a vector index."""
    return Call(
        "select b.bank_id from pgrecall.bank b where (pgrecall._indexed_types(b, array("
        "select t.fact_type from pgrecall.fact_type t where t.bank_id = b.bank_id))).indexed"
        " <> '{}' order by b.bank_id",
        {},
        scalar_row,
        list,
    )


def query_entities(bank: str, query: str) -> Call[QueryEntity, list[QueryEntity]]:
    """List the entities that a query names."""
    return Call(
        "select * from pgrecall.query_entities(bank => %(bank)s, query => %(query)s)",
        _checked(bank=bank, query=query),
        class_row(QueryEntity),
        list,
    )


def merge_entities(bank: str, entity_id: int, others: Iterable[int]) -> Call[int, int]:
    """Make entities one."""
    return Call(
        "select pgrecall.merge_entities(bank => %(bank)s, entity_id => %(entity_id)s,"
        " others => %(others)s::bigint[])",
        _checked(bank=bank, entity_id=entity_id, others=list(others)),
        scalar_row,
        _single,
    )


def split_entity(bank: str, entity_id: int, memory_ids: Iterable[int], name: str) -> Call[int, int]:
    """Part an entity in two."""
    return Call(
        "select pgrecall.split_entity(bank => %(bank)s, entity_id => %(entity_id)s,"
        " memory_ids => %(memory_ids)s::bigint[], name => %(name)s)",
        _checked(bank=bank, entity_id=entity_id, memory_ids=list(memory_ids), name=name),
        scalar_row,
        _single,
    )


def rename_entity(bank: str, entity_id: int, name: str) -> Call[object, None]:
    """Give an entity another name."""
    return Call(
        "select pgrecall.rename_entity(bank => %(bank)s, entity_id => %(entity_id)s,"
        " name => %(name)s)",
        _checked(bank=bank, entity_id=entity_id, name=name),
        scalar_row,
        _nothing,
    )


def duplicate_entities(
    bank: str, *, top_k: int
) -> Call[DuplicateEntities, list[DuplicateEntities]]:
    """List entities that may be one."""
    return Call(
        "select * from pgrecall.duplicate_entities(bank => %(bank)s, top_k => %(top_k)s)",
        _checked(bank=bank, top_k=top_k),
        class_row(DuplicateEntities),
        list,
    )


def recall_parameters(
    *,
    bank: str,
    query: str | None,
    embedding: Sequence[float] | None,
    during: Period | None,
    fact_types: Sequence[str] | None,
    tags: Sequence[str] | None,
    filter: Sequence[object] | None,  # noqa: A002  as in SQL
    arms: Sequence[str] | None,
    weights: Mapping[str, float] | None,
    fusion: str | None,
    k: int | None,
    top_k: int,
    depth: int,
    as_of: datetime | None,
    hypothetical: Sequence[float] | None,
    model: str | None,
    time_mode: str,
    time_basis: str,
    use_hints: bool,
    budget: str,
    skip: int,
    gates: Mapping[str, float] | None,
    collapse: bool,
    diversity: float,
    min_relevance: float,
    recency_half_life: timedelta | None,
    recency_decay: str | None,
) -> dict[str, object]:
    """Gather what hybrid_recall() and explain_recall() both take."""
    return _checked(
        bank=bank,
        query=query,
        embedding=embedding,
        during=to_range(during),
        fact_types=_texts(fact_types),
        tags=_texts(tags),
        filter=filter,
        arms=_texts(arms),
        weights=weights,
        fusion=fusion,
        k=k,
        top_k=top_k,
        depth=depth,
        as_of=as_of,
        hypothetical=hypothetical,
        model=model,
        time_mode=time_mode,
        time_basis=time_basis,
        use_hints=use_hints,
        budget=budget,
        skip=skip,
        gates=gates,
        collapse=collapse,
        diversity=diversity,
        min_relevance=min_relevance,
        recency_half_life=recency_half_life,
        recency_decay=recency_decay,
    )


_RECALL_ARGUMENTS: LiteralString = (
    "(bank => %(bank)s, query => %(query)s,"
    " embedding => pgrecall.to_embedding(%(embedding)s::real[]),"
    " during => %(during)s::tstzrange, fact_types => %(fact_types)s::text[],"
    " tags => %(tags)s::text[], filter => %(filter)s::jsonb, arms => %(arms)s::text[],"
    " weights => %(weights)s::jsonb, top_k => %(top_k)s, depth => %(depth)s,"
    " as_of => coalesce(%(as_of)s::timestamptz, now()),"
    " hypothetical => pgrecall.to_embedding(%(hypothetical)s::real[]), model => %(model)s,"
    " time_mode => %(time_mode)s, fusion => %(fusion)s, k => %(k)s,"
    " time_basis => %(time_basis)s, use_hints => %(use_hints)s, budget => %(budget)s,"
    " skip => %(skip)s, gates => %(gates)s::jsonb, collapse => %(collapse)s,"
    " diversity => %(diversity)s, min_relevance => %(min_relevance)s,"
    " recency_half_life => %(recency_half_life)s::interval,"
    " recency_decay => %(recency_decay)s)"
)


def hybrid_recall(parameters: Mapping[str, object]) -> Call[Hit, list[Hit]]:
    """Find memories, best first."""
    return Call(
        "select * from pgrecall.hybrid_recall" + _RECALL_ARGUMENTS,
        parameters,
        kwargs_row(_hit),
        list,
    )


def explain_recall(parameters: Mapping[str, object]) -> Call[ArmReport, list[ArmReport]]:
    """Say how each arm fares with the same question."""
    return Call(
        "select * from pgrecall.explain_recall" + _RECALL_ARGUMENTS,
        parameters,
        class_row(ArmReport),
        list,
    )


def arm_plan(parameters: Mapping[str, object]) -> Call[PlannedArm, list[PlannedArm]]:
    """Say which arms would run for a question, without running them."""
    return Call(
        "select * from pgrecall.arm_plan" + _RECALL_ARGUMENTS,
        parameters,
        class_row(PlannedArm),
        list,
    )


def type_hints(bank: str, query: str) -> Call[TypeHint, list[TypeHint]]:
    """Say which fact types the words of a query ask for."""
    return Call(
        "select * from pgrecall.type_hints(bank => %(bank)s, query => %(query)s)",
        _checked(bank=bank, query=query),
        class_row(TypeHint),
        list,
    )


def message_context(
    bank: str, message_id: int, *, before: int, after: int
) -> Call[Turn, list[Turn]]:
    """Return a message with those beside it."""
    return Call(
        "select * from pgrecall.message_context(bank => %(bank)s, message_id => %(message_id)s,"
        " before => %(before)s, after => %(after)s)",
        _checked(bank=bank, message_id=message_id, before=before, after=after),
        class_row(Turn),
        list,
    )


def ranking(bank: str) -> Call[Ranking, Ranking]:
    """Say how a bank ranks: its own settings over the defaults."""
    return Call(
        "select b.fusion, b.rrf_k, pgrecall.default_weights() || b.weights as weights, b.gates,"
        " b.named_boost from pgrecall._bank(bank => %(bank)s) as b",
        _checked(bank=bank),
        class_row(Ranking),
        _single,
    )


def fusions(bank: str) -> Call[tuple[str, bool], dict[str, bool]]:
    """List the ways to join arms that a bank can be set to, and whether each takes a k.

    They are the functions of hits and weights. Where age counts, it is the one that is set alone.
    """
    return Call(
        "select p.proname::text, 'k' = any (p.proargnames) from pg_catalog.pg_proc p"
        " cross join pgrecall._bank(bank => %(bank)s) as b"
        " where p.pronamespace = 'pgrecall'::regnamespace and p.proname !~ '^_'"
        " and p.proargnames[1:2] = '{hits,weights}'"
        " and (b.recency_half_life is null or p.proname = b.fusion) order by 1",
        _checked(bank=bank),
        tuple_row,
        dict,
    )


def fuse(
    hits: Sequence[tuple[str, int, int, float]],
    named: Mapping[int, float],
    rankings: Sequence[Ranking],
    *,
    top_k: int,
) -> Call[tuple[list[int], list[float]], list[tuple[list[int], list[float]]]]:
    """Join the same hits in many ways: ids and scores each, equals at the last rank included.

    Args:
        hits: Arm, memory, rank and score of all that any arm found.
        named: How sure it is that a memory mentions an entity named in the question, where it does.
        rankings: The ways.
        top_k: How many rows to return of each.

    """
    arms, memory_ids, ranks, scores = zip(*hits, strict=True) if hits else ((), (), (), ())
    return Call(
        "with h as materialized (select array("
        "select (t.arm, t.memory_id, t.rank, t.score)::pgrecall.arm_hit"
        " from unnest(%(arms)s::text[], %(memory_ids)s::bigint[], %(ranks)s::integer[],"
        " %(scores)s::double precision[]) as t(arm, memory_id, rank, score)) as hits)"
        " select array_remove(array_agg(f.memory_id), null), array_remove(array_agg(f.score), null)"
        " from h cross join unnest(%(fusions)s::text[], %(ks)s::integer[], %(weights)s::jsonb[],"
        " %(gates)s::jsonb[], %(named_boosts)s::double precision[])"
        " with ordinality as c(fusion, k, weights, gates, named_boost, place)"
        # An arm of weight 0 is not asked, so it is not the one that a gate lets through.
        " cross join lateral (select array(select x from unnest(h.hits) as x"
        " where (c.weights ->> x.arm)::double precision > 0) as hits) as w"
        " cross join lateral (select case when c.gates = '{}' then w.hits else"
        " array(select x from unnest(w.hits) as x"
        " where x.arm <> all ((select pgrecall._gated_arms(w.hits, c.gates))::text[]))"
        " end as hits) as g"
        " left join lateral pgrecall._fuse(g.hits, c.weights, c.k, c.fusion, %(named)s::bigint[],"
        " array(select 1 + c.named_boost * n.confidence"
        " from unnest(%(confidences)s::double precision[]) with ordinality as n(confidence, place)"
        " order by n.place)) as f on f.rank <= %(top_k)s"
        " group by c.place order by c.place",
        {
            "arms": list(arms),
            "memory_ids": list(memory_ids),
            "ranks": list(ranks),
            "scores": list(scores),
            "named": list(named),
            "confidences": list(named.values()),
            "fusions": [ranking.fusion for ranking in rankings],
            "ks": [ranking.rrf_k for ranking in rankings],
            "weights": [Jsonb(dict(ranking.weights)) for ranking in rankings],
            "gates": [Jsonb(dict(ranking.gates)) for ranking in rankings],
            "named_boosts": [ranking.named_boost for ranking in rankings],
            "top_k": top_k,
        },
        tuple_row,
        list,
    )


def known_ids(bank: str, ids: Sequence[str]) -> Call[tuple[str, str], list[tuple[str, str]]]:
    """Say which of the ids a bank holds, and as what: (memory_id, fact_key or source_id, id)."""
    return Call(
        "select 'memory_id', m.memory_id::text from pgrecall.memory m"
        " where m.bank_id = %(bank)s and m.memory_id = any (%(numbers)s::bigint[])"
        " union select 'memory_id', t.message_id::text from pgrecall.message t"
        " where t.bank_id = %(bank)s and t.message_id = any (%(numbers)s::bigint[])"
        " union select 'fact_key', m.fact_key from pgrecall.memory m"
        " where m.bank_id = %(bank)s and m.fact_key = any (%(ids)s::text[])"
        " union select 'source_id', m.source_id from pgrecall.memory m"
        " where m.bank_id = %(bank)s and m.source_id = any (%(ids)s::text[])"
        " union select 'source_id', t.session_id from pgrecall.message t"
        " where t.bank_id = %(bank)s and t.session_id = any (%(ids)s::text[])",
        {
            **_checked(bank=bank, ids=list(ids)),
            "numbers": [int(i) for i in ids if i.isascii() and i.isdigit() and int(i) < 2**63],
        },
        tuple_row,
        list,
    )


def vector_version() -> Call[str | None, str | None]:
    """Say which pgvector the database has; None for none."""
    return Call(
        "select (select x.extversion from pg_catalog.pg_extension x where x.extname = 'vector')",
        {},
        scalar_row,
        _single,
    )


def unanalysed_tables() -> Call[str, list[str]]:
    """Name tables of more than a megabyte that PostgreSQL has never counted."""
    return Call(
        "select c.relname from pg_catalog.pg_class c"
        " where c.relnamespace = 'pgrecall'::regnamespace and c.relkind = 'r'"
        " and c.reltuples < 0 and pg_relation_size(c.oid) > 1048576 order by c.relname",
        {},
        scalar_row,
        list,
    )


def vector_index_memory() -> Call[tuple[int, int], tuple[int, int]]:
    """Say how large the vector indexes are, and how much memory pages are kept in, in bytes."""
    return Call(
        "select coalesce(sum(pg_relation_size(c.oid)), 0)::bigint,"
        " pg_size_bytes(current_setting('shared_buffers'))"
        " from pg_catalog.pg_class c where c.relnamespace = 'pgrecall'::regnamespace"
        " and c.relkind = 'i' and c.relname like 'embedding\\_hnsw\\_%%'",
        {},
        tuple_row,
        _single,
    )


def maintenance_memory() -> Call[int, int]:
    """Say how much memory an index is built in, in bytes."""
    return Call(
        "select pg_size_bytes(current_setting('maintenance_work_mem'))", {}, scalar_row, _single
    )


def plain_facts(facts: Iterable[object]) -> list[object]:
    """Turn facts into what JSON can hold; embeddings become compact text.

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
        where: What to call it in an error.

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


def to_range(during: Period | None) -> TimestamptzRange | None:
    """Make a range of a period.

    Raises:
        InvalidArgument: it ends before it starts.

    """
    if during is None:
        return None
    start, end = during
    if start is not None and end is not None and end < start:
        raise InvalidArgument(
            f"during ends before it starts: {end.isoformat()} is before {start.isoformat()}",
            hint="Give (start, end); None leaves a side open.",
        )
    return TimestamptzRange(start, end)


def _hit(**column: object) -> Hit:
    arms = cast("Mapping[str, Mapping[str, float]]", column["arms"])
    score = cast("float", column["score"])
    rank = cast("int", column["rank"])
    return Hit(
        **{
            **column,
            "tags": tuple(cast("Sequence[str]", column["tags"] or ())),
            "metadata": column["metadata"] or {},
            "occurred": _period(cast("Range[datetime] | None", column["occurred"])),
            "arms": {
                name: ArmHit(int(arm["rank"]), float(arm["score"]), float(arm["contribution"]))
                for name, arm in arms.items()
            },
        },  # type: ignore[arg-type]  # the columns are the fields
        fused_rank=rank,
        rerank_score=None,
        final_score=score,
    )


def _period(occurred: Range[datetime] | None) -> Period | None:
    return None if occurred is None else (occurred.lower, occurred.upper)


def _texts(texts: Sequence[str] | None) -> list[str] | None:
    """Take one text for a list of one, and never for a list of its letters."""
    if texts is None:
        return None
    return [texts] if isinstance(texts, str) else list(texts)


def _single(rows: list[Result]) -> Result:
    return rows[0]


def _nothing(_rows: list[object]) -> None:
    return None


def _checked(**parameters: object) -> dict[str, object]:
    """Refuse text that PostgreSQL cannot hold, and wrap what goes as JSON."""
    checked: dict[str, object] = {}
    for name, value in parameters.items():
        error = InvalidFilter if name == "filter" else InvalidArgument
        if isinstance(value, str):
            _check_text(value, name, error)
        elif value is not None and name in ("filter", "weights", "gates", "settings"):
            value = Jsonb(_jsonable(value, name, error))
        elif isinstance(value, list):
            for position, element in enumerate(value):
                if isinstance(element, str):
                    _check_text(element, f"{name}[{position}]", error)
        checked[name] = value
    return checked


def _check_text(text: str, where: str, error: type[RecallError]) -> None:
    if "\0" in text:
        raise error(f"{where} contains a NUL character", hint=_TEXT_HINT)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise error(f"{where} contains a lone surrogate", hint=_TEXT_HINT) from None


def _jsonable(value: object, where: str, error: type[RecallError]) -> object:
    """Copy a value into what JSON can hold; `where` names the part in an error."""
    try:
        return _plain(value, where, error)
    except RecursionError:
        raise error(f"{where} is nested too deeply") from None


def _plain(value: object, where: str, error: type[RecallError]) -> object:
    match value:
        case str():
            _check_text(value, where, error)
            return value
        case None | bool() | int():
            return value
        case float():
            if not math.isfinite(value):
                raise error(f"{where} is {value}, which is not a finite number")
            return value
        case date():
            return value.isoformat()
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
