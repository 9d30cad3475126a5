"""The options of a recall: those of the database, and those of the driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

from pgrecall.options import SqlOptions
from pgrecall.rows import Period
from pgrecall.temporal import Anchors

RerankMode = Literal["blend", "replace"]


class RecallOptions(SqlOptions, total=False):
    """The arguments of a recall, all optional; None is the same as not given.

    The options of :class:`pgrecall.options.SqlOptions` and, besides:

    Attributes:
        embedding: The query's embedding, shape (dimensions,), instead of the embedder's.
        during: (start, end) the query is about; either may be None. Default: the time that is read
            out of the query.
        fact_types: Only facts of these types.
        tags: Only facts with any of these tags.
        filter: Only facts that meet a condition, such as ``"confidence > 0.8"``; or the same as
            nested lists.
        top_k: Upper bound on the number of hits, 1 to 1000.
        as_of: Answer from what was known at that time. Default: the reference time.
        model: Name of the model of the embedding that is given.
        temporal: Whether to read a time out of the query. Default: True.
        language: Of the query, for the times in it: en, de, es, fr, it, nl or pt. Default: that of
            the bank's time_settings, else English.
        anchors: Instants of what "since I joined" may refer to: a mapping from the clause in lower
            case ("i joined") to a datetime, or a function that may return None.
        reference_time: The moment of asking, which "yesterday" counts back from. Default: now.
        rerank: Whether to rerank. Default: True, where the client has a reranker.
        candidates: How many of the best to rerank, at least 1. Default: 50 by late interaction; by
            a cross-encoder as many of these as it takes to settle the first places, and half as
            many again as are returned, twice as many from 20 on.
        rerank_mode: "blend" the reranker's order with the fused one (the default), or "replace" the
            latter.
        rerank_seconds: Time for reranking, waiting for other callers included; candidates it does
            not suffice for stay behind in fused order, and the report says so. Where more than four
            callers a core wait, all get a part of it. Default: 2.
        boosts: Alpha of the boosts "recency", "period" and "proof" of what was reranked, 0 to 1
            each: a score is multiplied with 1 - alpha / 2 to 1 + alpha / 2. Default: 0.
        timeout: Seconds for the whole call, from its start. What precedes the database's answer,
            such as embedding, gets half of what is left each time and is left out after that; the
            database all that is left, and reranking what it leaves. Default: no limit.
        strict: Whether to raise where the embedder, the reranker, an arm or the function of a
            hypothetical answer fails, instead of answering without it. Default: False.

    """

    embedding: Iterable[float] | None
    during: Period | None
    fact_types: Sequence[str] | None
    tags: Sequence[str] | None
    filter: str | Sequence[object] | None
    top_k: int | None
    as_of: datetime | None
    model: str | None
    temporal: bool | None
    language: str | None
    anchors: Anchors | None
    reference_time: datetime | None
    rerank: bool | None
    candidates: int | None
    rerank_mode: RerankMode | None
    rerank_seconds: float | None
    boosts: Mapping[str, float] | None
    timeout: float | None
    strict: bool | None
